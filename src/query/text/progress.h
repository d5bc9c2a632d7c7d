// SPDX-License-Identifier: MIT
/* progress.h - one line on a terminal while a command takes more than a second, or what a server shows instead */
#ifndef TBD_QUERY_PROGRESS_H
#define TBD_QUERY_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct tbd_progress {
    bool enabled; /* somebody listens, or stderr is a terminal and nobody asked for quiet */
    bool shown;
    double started, last;
    double delay; /* seconds before the first line */
};

/* From now on progress is told to `show`, and not to a terminal; `what` NULL: it is over.  NULL: to a terminal
 * again. */
typedef void (*tbd_progress_told)(void *context, const char *what, uint64_t done, uint64_t total);
void tbd_progress_listen(tbd_progress_told show, void *context);

void tbd_progress_start(struct tbd_progress *progress, bool quiet);
/* From now on no progress is shown on a terminal, for what begins before anybody can ask for quiet. */
void tbd_progress_silence(void);
/* Shows "what: done of total windows, found N, M s left", at most ten times a second. */
#define TBD_PROGRESS_NONE UINT64_MAX /* `found`: nothing is looked for */
void tbd_progress_show(struct tbd_progress *progress, const char *what, uint64_t done,
                       uint64_t total, uint64_t found);
/* Seconds of a clock that never goes back. */
double tbd_progress_now(void);
/* Seconds since the start. */
double tbd_progress_seconds(const struct tbd_progress *progress);
void tbd_progress_clear(struct tbd_progress *progress);

#endif
