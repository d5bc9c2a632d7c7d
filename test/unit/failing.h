// SPDX-License-Identifier: MIT
/* failing.h - allocations fail one by one
 *
 * What links failing.c has its calls of malloc() and the like counted, and some of them fail: those
 * of the code under test, not those that libraries make.  A sweep runs an act again and again, first
 * with its first allocation failing, then with its second, until there are no more; and once
 * more with all from there on failing.  Each time the act must say TBD_NOMEM and leave nothing
 * behind, or come to what it comes to with all the memory there is. */
#ifndef TEST_FAILING_H
#define TEST_FAILING_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

/* What an act came to, for comparison. */
struct outcome {
    enum tbd_status status;
    uint64_t print; /* of the result; only where it is TBD_OK */
};

void outcome_add(struct outcome *outcome, const void *bytes, size_t count);
#define OUTCOME_ADD(outcome, object) outcome_add(outcome, &(object), sizeof(object))

struct act {
    const char *name;
    /* Does it all and takes it away again, except for what is kept for ever. */
    void (*run)(void *context, struct outcome *outcome);
    /* Before and after each run, without failures; NULL is fine. */
    void (*prepare)(void *context);
    void (*check)(void *context);
    void *context;
    unsigned stride;     /* only every so manieth; 0: each */
    bool may_go_without; /* it may come to another result with TBD_OK: `check` judges it */
};

/* Fails the test where an act does anything else. */
void failing_sweep(const struct act *act);

#endif
