// SPDX-License-Identifier: MIT
/* window_ends.c - see window_ends.h */
#include "replay/window_ends.h"

#include "format/window/window_make.h"
#include "replay/compare.h"
#include "replay/full.h"
#include "replay/native/stops_window.h"
#include "replay/replayer_private.h"

static enum tbd_status replay(struct tbd_window_ends *ends, struct tbd_divergence *divergence,
                              struct tbd_error *why)
{
    struct tbd_worker *worker = &ends->replayer->workers[ends->worker];
    /* of a window without an end play has not said which pages were written */
    uint32_t hooks = TBD_HOOKS_PLAY | (ends->play->complete ? 0 : TBD_HOOK_TOUCH);
    enum tbd_status status;

    if (tbd_window_begins_with(ends->play, TBD_MSG_STOPS))
        return tbd_stops_end(worker, &ends->replay, divergence, why);
    status = tbd_full_events(worker, hooks, &ends->replay, divergence, why);
    return status ? status : tbd_compare_windows(ends->play, ends->replay, divergence);
}

enum tbd_status tbd_replay_ends(struct tbd_replayer *replayer, unsigned worker, uint32_t window,
                                struct tbd_window_ends *out, struct tbd_divergence *divergence,
                                struct tbd_error *why)
{
    const struct tbd_window_summary *summary = tbd_trace_window(replayer->trace, window);
    enum tbd_status status;

    *out = (struct tbd_window_ends){ .replayer = replayer, .worker = worker };
    if (tbd_slice_count(replayer->trace, window) > 1)
        return tbd_slices_verify(replayer, worker, window, divergence, why);
    status = tbd_replayer_begin(replayer, worker, window, summary->level >= TBD_LEVEL_EVENTS,
                                &out->play, why);
    return status ? status : replay(out, divergence, why);
}

void tbd_window_ends_free(struct tbd_window_ends *ends)
{
    if (ends->play)
        tbd_replayer_finish(ends->replayer, ends->worker, ends->play);
    tbd_window_free(ends->replay);
}
