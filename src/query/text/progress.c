// SPDX-License-Identifier: MIT
/* progress.c - see progress.h */
#include "query/text/progress.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

double tbd_progress_now(void)
{
    return (double)tbd_clock_ns() * 1e-9;
}

/* Seconds before the first line: TBD_PROGRESS_DELAY, else one second. */
static double delay(void)
{
    const char *given = getenv("TBD_PROGRESS_DELAY");
    char *end = NULL;
    double seconds = given != NULL ? strtod(given, &end) : 0;

    return given != NULL && end != given && *end == '\0' && seconds >= 0 ? seconds : 1.0;
}

static struct {
    tbd_progress_told show;
    void *context;
} listener;

void tbd_progress_listen(tbd_progress_told show, void *context)
{
    listener.show = show;
    listener.context = context;
}

static bool is_silent;

void tbd_progress_silence(void)
{
    is_silent = true;
}

void tbd_progress_start(struct tbd_progress *progress, bool quiet)
{
    *progress =
        (struct tbd_progress){ .enabled = listener.show != NULL ||
                                          (!quiet && !is_silent && isatty(STDERR_FILENO) != 0) };
    progress->started = tbd_progress_now();
    progress->last = progress->started;
    progress->delay = delay();
}

void tbd_progress_show(struct tbd_progress *progress, const char *what, uint64_t done,
                       uint64_t total, uint64_t found)
{
    char text[32] = "";
    double time;
    double left;

    if (!progress->enabled)
        return;
    time = tbd_progress_now();
    if (time - progress->started < progress->delay || time - progress->last < 0.1)
        return;
    progress->last = time;
    progress->shown = true;
    if (listener.show != NULL) {
        listener.show(listener.context, what, done, total);
        return;
    }
    left = done == 0 ? 0 : (time - progress->started) / (double)done * (double)(total - done);
    if (found != TBD_PROGRESS_NONE)
        snprintf(text, sizeof(text), ", found %" PRIu64, found);
    dprintf(STDERR_FILENO, "\r%s: %" PRIu64 " of %" PRIu64 " windows%s, %.0f s left \033[K", what,
            done, total, text, left);
}

double tbd_progress_seconds(const struct tbd_progress *progress)
{
    return tbd_progress_now() - progress->started;
}

void tbd_progress_clear(struct tbd_progress *progress)
{
    if (progress->shown && listener.show != NULL)
        listener.show(listener.context, NULL, 0, 0);
    else if (progress->shown)
        dprintf(STDERR_FILENO, "\r\033[K");
    progress->shown = false;
}
