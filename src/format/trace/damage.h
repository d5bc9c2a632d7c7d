// SPDX-License-Identifier: MIT
/* damage.h - reading on behind damage, so that everything undamaged still answers
 *
 * Records are found again by their checksums; windows that the index has lost come back from their
 * own TOCs, which say which window they are.  Whatever is missing is said: tbd_trace_damage().
 *
 * DAMAGE-1  Nothing is made up.  A window of which nobody knows anything keeps its number and its
 *     times, is_lost, and cannot be loaded; contents of memory that it may have changed are not
 *     known behind it. */
#ifndef TBD_FORMAT_DAMAGE_H
#define TBD_FORMAT_DAMAGE_H

#include "format/files/file.h"

struct tbd_trace;

struct tbd_damage {
    char (*texts)[200]; /* owned */
    size_t count;
    size_t capacity;
    uint32_t restored; /* number behind the window that came back last */
    uint32_t restored_from;
    size_t restored_note; /* which of `texts` says so */
    void **owned;         /* owned, and what they point to: pages of windows that came back */
    size_t owned_count;
    size_t owned_capacity;
    uint32_t *lost; /* owned: windows of which nobody knows what they modified, ascending */
    size_t lost_count;
    size_t lost_capacity;
};

void tbd_damage_note(struct tbd_trace *trace, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));
void tbd_damage_free(struct tbd_trace *trace);

/* As tbd_file_open(), but a damaged file header is only noted. */
TBD_MUST_CHECK enum tbd_status tbd_damage_open(struct tbd_trace *trace, const char *name,
                                               enum tbd_file_kind kind, struct tbd_file *out,
                                               struct tbd_error *why);
/* As tbd_file_next(), but goes on with the next good record behind a damaged one, if there is
 * one. */
TBD_MUST_CHECK enum tbd_status tbd_damage_next(struct tbd_trace *trace, struct tbd_file *file,
                                               struct tbd_record_view *out, struct tbd_error *why);

/* The index has lost the windows before number `number`, which begins at `first_time`: from their
 * TOCs, or as lost ones.  TBD_CORRUPT: that cannot be. */
TBD_MUST_CHECK enum tbd_status tbd_damage_fill(struct tbd_trace *trace, uint32_t number,
                                               uint64_t first_time);
/* Which pages the window with this number and span modified, from its TOC: they are those of the
 * next window record. */
bool tbd_damage_pages(struct tbd_trace *trace, uint32_t number, uint32_t span);
/* The end of the index may be lost: windows that follow, as long as there are TOCs. */
TBD_MUST_CHECK enum tbd_status tbd_damage_follow(struct tbd_trace *trace);
/* Once the index is read. */
TBD_MUST_CHECK enum tbd_status tbd_damage_settle(struct tbd_trace *trace);
/* Is there a window of which nobody knows what it modified, at or behind `from`, but before
 * `to`? */
bool tbd_damage_between(const struct tbd_trace *trace, uint32_t from, uint32_t to);

#endif
