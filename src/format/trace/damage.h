// SPDX-License-Identifier: MIT
/* damage.h - reading on after damage, so that everything undamaged can still be read
 *
 * Records are found again by their checksums; windows that the index has lost are restored from
 * their own TOCs, which have the window's number.  tbd_trace_damage() reports everything that is
 * missing.
 *
 * DAMAGE-1  Nothing is made up. A window that cannot be restored keeps its number and its times,
 *     is_lost, and cannot be loaded; memory that it may have changed is unknown after it. (not
 *     checked: test_trace_damage does) */
#ifndef TBD_FORMAT_DAMAGE_H
#define TBD_FORMAT_DAMAGE_H

#include "format/files/file.h"

struct tbd_trace;

struct tbd_damage {
    char (*texts)[200]; /* owned */
    size_t count;
    size_t capacity;
    uint32_t restored; /* number after the window that was restored last */
    uint32_t restored_from;
    size_t restored_note; /* index in `texts` of the note about it */
    void **owned;         /* owned, like what they point to: pages of restored windows */
    size_t owned_count;
    size_t owned_capacity;
    uint32_t *lost; /* owned: windows whose modified pages are unknown, ascending */
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
/* As tbd_file_next(), but after a damaged record goes on with the next good one, if there is
 * one. */
TBD_MUST_CHECK enum tbd_status tbd_damage_next(struct tbd_trace *trace, struct tbd_file *file,
                                               struct tbd_record_view *out, struct tbd_error *why);

/* The index has lost the windows before number `number`, which begins at `first_time`: adds them
 * from their TOCs, or as lost ones.  TBD_CORRUPT: impossible. */
TBD_MUST_CHECK enum tbd_status tbd_damage_fill(struct tbd_trace *trace, uint32_t number,
                                               uint64_t first_time);
/* Takes the pages that the window with this number and span modified from its TOC, for the next
 * window record. */
bool tbd_damage_pages(struct tbd_trace *trace, uint32_t number, uint32_t span);
/* The end of the index may be lost: adds the windows that follow, as long as there are TOCs. */
TBD_MUST_CHECK enum tbd_status tbd_damage_follow(struct tbd_trace *trace);
/* Called once the index is read. */
TBD_MUST_CHECK enum tbd_status tbd_damage_settle(struct tbd_trace *trace);
/* Is there a window in [from, to) whose modified pages are unknown? */
bool tbd_damage_between(const struct tbd_trace *trace, uint32_t from, uint32_t to);

#endif
