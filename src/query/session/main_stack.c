// SPDX-License-Identifier: MIT
/* main_stack.c - see main_stack.h */
#include "query/session/main_stack.h"

/* Nothing but the main thread's stack lies within this distance below its end. */
#define MAIN_STACK_MOST (128ull << 20)

static uint64_t find_end(struct tbd_session *session)
{
    const struct tbd_region *regions = NULL;
    size_t count = 0;

    if (tbd_trace_window_count(session->trace) == 0 ||
        tbd_trace_regions(session->trace, 0, &regions, &count, &session->why) != TBD_OK)
        return 0;
    for (size_t i = 0; i < count; i++) {
        if ((regions[i].flags & TBD_REGION_STACK) != 0)
            return regions[i].end;
    }
    return 0;
}

bool tbd_is_on_main_stack(struct tbd_session *session, uint64_t address)
{
    if (!session->main_stack.is_known)
        session->main_stack.end = find_end(session);
    session->main_stack.is_known = true;
    return address < session->main_stack.end && session->main_stack.end - address < MAIN_STACK_MOST;
}
