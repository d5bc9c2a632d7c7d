// SPDX-License-Identifier: MIT
/* thread_names.c - see thread_names.h */
#include "query/session/thread_names.h"

#include <stdio.h>
#include <string.h>

/* The string as it was when the thread named itself. */
static bool read_name(struct tbd_session *session, const struct tbd_thread_info *thread, char *out)
{
    struct tbd_position position = { .time = thread->name_time };
    size_t used = 0;

    if (thread->name_address == 0)
        return false;
    if (position.time >= session->info->blocks)
        position = tbd_session_last(session);
    while (used < TBD_THREAD_NAME_BYTES - 1 &&
           tbd_session_read(session, position, thread->name_address + used, &out[used], 1) ==
               TBD_OK &&
           out[used] != '\0')
        used++;
    out[used] = '\0';
    return used != 0;
}

void tbd_thread_name(struct tbd_session *session, const struct tbd_thread_info *thread,
                     char out[TBD_THREAD_NAME_BYTES])
{
    const char *program = session->info->program;
    const char *slash = strrchr(program, '/');
    uint64_t at = UINT64_MAX;
    uint32_t generations = tbd_trace_thread_count(session->trace);

    for (; thread != NULL && generations != 0; generations--) {
        if (thread->name_time <= at && read_name(session, thread, out))
            return;
        at = thread->start_time;
        thread = thread->creator == 0
                     ? NULL
                     : tbd_trace_thread_of(session->trace, thread->creator, at == 0 ? 0 : at - 1);
    }
    snprintf(out, TBD_THREAD_NAME_BYTES, "%s", slash == NULL ? program : slash + 1);
}
