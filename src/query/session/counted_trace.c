// SPDX-License-Identifier: MIT
/* counted_trace.c - see counted_trace.h */
#include "query/session/counted_trace.h"

#include "base/processors.h"
#include "query/session/counted_aside.h"
#include "query/text/progress.h"
#include "replay/native/count_stops.h"

#include <stdio.h>

static void show(void *context, uint32_t done, uint32_t count)
{
    tbd_progress_show(context, "counting", done, count, TBD_PROGRESS_NONE);
}

/* Another process began before the question came. */
static void show_waiting(void *context, uint32_t done, uint32_t count)
{
    tbd_progress_show(context, "counting, begun before", done, count, TBD_PROGRESS_NONE);
}

/* Replaces the trace by the counted one. */
static enum tbd_status count_in_place(const struct tbd_count_stops *how, struct tbd_trace **out,
                                      struct tbd_error *why)
{
    enum tbd_status status = tbd_count_stops(how, why);

    return status == TBD_OK ? tbd_trace_open(how->path, out, why) : status;
}

static enum tbd_status count_stops(struct tbd_trace **trace, struct tbd_error *why)
{
    const struct tbd_trace_info *info = tbd_trace_info(*trace);
    char path[4096];
    struct tbd_progress progress;
    struct tbd_count_stops how = { .path = path,
                                   .workers = tbd_processors(),
                                   .progress = show,
                                   .waits = show_waiting,
                                   .context = &progress };
    struct tbd_trace *uncounted = *trace;
    enum tbd_status status;

    snprintf(path, sizeof(path), "%s", info->path);
    *trace = NULL;
    tbd_progress_start(&progress, false);
    if (tbd_counted_aside_is_needed(uncounted)) {
        status = tbd_counted_aside(&how, uncounted, trace, why);
        tbd_trace_close(uncounted);
    } else {
        tbd_trace_close(uncounted);
        status = count_in_place(&how, trace, why);
    }
    tbd_progress_clear(&progress);
    return status;
}

enum tbd_status tbd_counted_trace_open(const char *path, struct tbd_trace **out,
                                       struct tbd_error *why)
{
    enum tbd_status status = tbd_trace_open(path, out, why);

    if (status == TBD_OK && tbd_trace_info(*out)->counts_stops)
        status = count_stops(out, why);
    return status;
}
