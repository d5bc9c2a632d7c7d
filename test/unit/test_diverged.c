// SPDX-License-Identifier: MIT
// links: tbd_query tbd_replay tbd_format tbd_base
/* Reports of divergences: the likely cause, from the words of the description. */
#include "query/commands/diverged.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void check(const char *what, const char *words)
{
    const char *cause = tbd_diverged_cause(what);

    assert_non_null(cause);
    assert_non_null(strstr(cause, words));
}

static void test_causes(void **state)
{
    (void)state;
    check("the byte at 0x1000 is 0x1 before it is overwritten, not 0x2", "the kernel");
    check("the byte at 0x1000 is 0x1 before the store, in play it was 0x2", "the kernel");
    check("thread 5 gives way, in play it was thread 6", "switch");
    check("a system call at time 5, where play has a turn of another thread next, at time 5",
          "switch");
    check("system call 1 (write) where play had 0 (read)", "control went another way");
    check("argument 1 of write is 0x1, in play it was 0x2", "before this call");
    check("block 0x1000 where play had block 0x2000", "branch");
    check("rflags is 0x1 at the window's end, in play it was 0x2", "flags undefined");
    check("byte 3 of the vector state is 0x1 at the window's end, in play it was 0x2", "vector");
    check("the byte at 0x1000 is 0x1 at the window's end, in play it was 0x2",
          "last thing that wrote");
    check("word 1 of a return's operands differs", "register");
    assert_null(tbd_diverged_cause("something else"));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_causes) };

    return cmocka_run_group_tests_name("divergences", tests, NULL, NULL);
}
