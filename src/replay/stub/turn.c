// SPDX-License-Identifier: MIT
/* turn.c - see turn.h */
#include "replay/stub/turn.h"

#include "base/sys.h"

static void pass(struct tbd_plan_head *plan, uint32_t turn)
{
    __atomic_store_n(&plan->turn, turn, __ATOMIC_RELEASE);
    tbd_sys_futex_wake(&plan->turn);
}

/* Waits until the driver says RUN. */
static void wait_for_run(struct tbd_plan_head *plan, uint32_t passed)
{
    uint32_t turn;

    while ((turn = __atomic_load_n(&plan->turn, __ATOMIC_ACQUIRE)) == passed)
        tbd_sys_futex_wait(&plan->turn, passed, -1);
    if (turn != TBD_TURN_RUN)
        tbd_sys_exit_group(0);
}

void tbd_turn_done(struct tbd_plan_head *plan)
{
    pass(plan, TBD_TURN_DONE);
    wait_for_run(plan, TBD_TURN_DONE);
}

void tbd_turn_ask_page(struct tbd_plan_head *plan)
{
    pass(plan, TBD_TURN_PAGE);
    wait_for_run(plan, TBD_TURN_PAGE);
}
