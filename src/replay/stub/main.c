// SPDX-License-Identifier: MIT
/* main.c - a replay process: start-up, then one plan after the other
 *
 * The process is the engine ELF started as a program.  It has three descriptors (replay/plan.h).
 * It unmaps everything outside the engine's range; from then on it has only the engine, the plan,
 * the stream and the memory of one window. */
#include "replay/stub/stub.h"

#include "base/assert.h"
#include "base/fmt.h"
#include "base/linux.h"
#include "base/sys.h"
#include "replay/stub/memory.h"
#include "replay/stub/turn.h"

/* Exit statuses of a failed start, for the driver's message. */
enum { EXIT_NO_PLAN = 80, EXIT_BAD_PLAN = 81, EXIT_NOT_EMPTY = 82 };

static struct tbd_plan_head *map_plan(void)
{
    int flags = MAP_SHARED | MAP_FIXED_NOREPLACE;
    struct tbd_plan_head *plan = (void *)TBD_PLAN_BASE;

    if (tbd_sys_mmap(TBD_PLAN_BASE, TBD_PLAN_MAX_BYTES, PROT_READ | PROT_WRITE, flags, TBD_PLAN_FD,
                     0) != (long)TBD_PLAN_BASE)
        tbd_sys_exit_group(EXIT_NO_PLAN);
    if (plan->magic != TBD_PLAN_MAGIC || plan->version != TBD_PLAN_VERSION)
        tbd_sys_exit_group(EXIT_BAD_PLAN);
    return plan;
}

void tbd_stub_fail(struct tbd_plan_head *plan, enum tbd_plan_outcome outcome, const char *format,
                   ...)
{
    va_list list;

    va_start(list, format);
    tbd_fmt_list(plan->report.what, sizeof(plan->report.what), format, list);
    va_end(list);
    plan->report.outcome = outcome;
    tbd_stub_serve(plan);
}

void tbd_stub_serve(struct tbd_plan_head *plan)
{
    const char *why;

    if (tbd_assert_failure()) { /* results after it are not reliable */
        plan->report.outcome = TBD_OUTCOME_FAILED;
        tbd_fmt(plan->report.what, sizeof(plan->report.what), "%s", tbd_assert_failure());
    }
    tbd_turn_done(plan);
    plan->report.outcome = TBD_OUTCOME_NONE;
    why = tbd_memory_begin(plan);
    if (why)
        tbd_stub_fail(plan, TBD_OUTCOME_FAILED, "%s", why);
    tbd_stub_run();
}

void tbd_stub_main(void)
{
    struct tbd_plan_head *plan = map_plan();
    const char *why;

    tbd_sys6(__NR_prctl, PR_SET_NAME, tbd_sys_pointer("tbd-replay"), 0, 0, 0, 0);
    if (!tbd_memory_clear_process())
        tbd_sys_exit_group(EXIT_NOT_EMPTY);
    why = tbd_stub_set_up(plan);
    if (why)
        tbd_stub_fail(plan, TBD_OUTCOME_FAILED, "%s", why);
    why = tbd_stub_confine();
    if (why)
        tbd_stub_fail(plan, TBD_OUTCOME_FAILED, "%s", why);
    plan->report.outcome = TBD_OUTCOME_COMPLETE;
    tbd_stub_serve(plan);
}
