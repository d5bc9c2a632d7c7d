// SPDX-License-Identifier: MIT
/* age.h - what becomes of windows while a trace grows: levels, merging, dropping
 *
 * One thread of the organizer calls tbd_ager_step() whenever something is due; everybody else tells it about
 * new windows.  Changes themselves are made by format/merging/change.h and format/merging/index_write.h. */
#ifndef TBD_ORGANIZER_AGE_H
#define TBD_ORGANIZER_AGE_H

#include "format/writer/writer.h"

#include <pthread.h>

/* 0: no limit. */
struct tbd_age_limits {
    /* bytes of the trace on disk: details are given up, then windows merge */
    uint64_t budget;
    uint32_t level3;       /* this many windows keep their events at most */
    uint32_t level2;       /* and this many before them their counts */
    uint64_t keep_bytes;   /* the oldest windows are dropped beyond this size */
    uint64_t keep_seconds; /* or this age */
    /* the index is rewritten when it has grown by half and this many bytes; 0: the default */
    uint64_t index_slack;
    /* windows of native play cannot be lowered or merged: over budget the oldest are dropped */
    bool only_drops;
};

/* The smaller one of budget and keep; 0: none. */
uint64_t tbd_age_bytes(const struct tbd_age_limits *limits);

struct tbd_ager;
/* `lock` guards the writer's index; functions with _locked are called with it, the others without. */
TBD_MUST_CHECK enum tbd_status tbd_ager_new(const struct tbd_age_limits *limits,
                                            struct tbd_writer *writer, pthread_mutex_t *lock,
                                            struct tbd_ager **out);
void tbd_ager_free(struct tbd_ager *ager);
bool tbd_ager_is_needed(const struct tbd_age_limits *limits);

/* A window is in the trace.  `can_change`: a replay would bring its events back. */
TBD_MUST_CHECK enum tbd_status
tbd_ager_add_locked(struct tbd_ager *ager, const struct tbd_disk_window *window, bool can_change);
/* May a window's files be written now?  Not while the trace has reached a limit and the ager frees
 * space.  Every permission ends with the window being added or taken back. */
bool tbd_ager_may_write_locked(struct tbd_ager *ager);
void tbd_ager_take_back_locked(struct tbd_ager *ager);
/* A key file waits for space in the same way; its space is reserved from
 * tbd_ager_expect_keys_locked() on.  Each expected file is added, also if it could not be
 * written. */
void tbd_ager_expect_keys_locked(struct tbd_ager *ager, uint64_t bytes);
bool tbd_ager_may_write_keys_locked(const struct tbd_ager *ager);
void tbd_ager_add_keys_locked(struct tbd_ager *ager, uint64_t bytes);
/* The ager makes no changes from now on: the trace cannot be changed. */
void tbd_ager_stop_locked(struct tbd_ager *ager);
bool tbd_ager_is_due_locked(const struct tbd_ager *ager);
/* Makes one change that is due. */
TBD_MUST_CHECK enum tbd_status tbd_ager_step(struct tbd_ager *ager);

#endif
