// SPDX-License-Identifier: MIT
/* wall_time.h - positions and the clock on the wall
 *
 * The recording notes the time at system calls, signals and the ends of windows, at most every few
 * microseconds.  Times between are interpolated, by block entries, and said to be so. */
#ifndef TBD_QUERY_WALL_TIME_H
#define TBD_QUERY_WALL_TIME_H

#include "query/session/session.h"

struct tbd_wall_time {
    uint64_t ns;   /* since 1970, as CLOCK_REALTIME */
    bool is_exact; /* noted there; else interpolated */
};

/* When the block entry with this time was made; false: the trace does not know. */
bool tbd_wall_time_at(struct tbd_session *session, uint64_t time, struct tbd_wall_time *out);
/* The first block entry that was made at `ns` or later; the number of block entries if none was.  False:
 * the trace has no times. */
bool tbd_wall_time_find(struct tbd_session *session, uint64_t ns, uint64_t *out);
/* "09:35:53.123456", with "~" before it if it is interpolated; with `is_full`
 * "2026-11-23T09:35:53.123456+01:00".  In the time zone of the user who asks.  Returns `out`. */
#define TBD_WALL_TIME_BYTES 48u
char *tbd_wall_time_text(const struct tbd_wall_time *time, bool is_full, char *out);
/* HH:MM[:SS[.FRACTION]] on a day of the recording, DATE[T ]HH:MM..., with Z or +HH:MM, @SECONDS since
 * 1970, +NUMBER[us|ms|s|m|h] since the recording's start.  False: it is none of them. */
bool tbd_wall_time_read(const struct tbd_session *session, const char *text, uint64_t *out_ns);

#endif
