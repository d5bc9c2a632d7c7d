// SPDX-License-Identifier: MIT
/* page_slots.h - contents of pages by address, a slot for each, of which there is a fixed number
 *
 * A slot is in the table, lent to the caller, or free.  Memory of slots that were never taken is not touched.
 * Context: ORG, one thread at a time. */
#ifndef TBD_ORGANIZER_PAGE_SLOTS_H
#define TBD_ORGANIZER_PAGE_SLOTS_H

#include "format/files/page_numbers.h"

#define TBD_SLOT_BYTES 4096u

/* Slots have numbers from 1 on; 0 is none.  Pages are named by address / TBD_SLOT_BYTES. */
struct tbd_page_slots {
    uint8_t (*pages)[TBD_SLOT_BYTES]; /* owned; slot n is pages[n - 1]; NULL: there are no slots */
    uint32_t capacity;
    uint32_t *free; /* owned; the one given back last is taken first: the caches have it */
    uint32_t free_count;
    uint32_t touched;              /* slots up to this one were taken at least once */
    struct tbd_page_numbers table; /* slots by page */
};

/* False without memory; then it is empty, as tbd_page_slots_free() leaves it. */
bool tbd_page_slots_make(struct tbd_page_slots *out, uint32_t capacity);
void tbd_page_slots_free(struct tbd_page_slots *slots);

/* Lends a slot to the caller; 0: there is none left. */
uint32_t tbd_page_slots_take(struct tbd_page_slots *slots);
/* Gives back what was lent; 0 is fine. */
void tbd_page_slots_give(struct tbd_page_slots *slots, uint32_t slot);

/* 0: the table has none. */
uint32_t tbd_page_slots_find(const struct tbd_page_slots *slots, uint64_t page);
/* Puts a slot that was lent into the table, which has none for the page.  False without memory: it is still lent. */
bool tbd_page_slots_put(struct tbd_page_slots *slots, uint64_t page, uint32_t slot);
/* The reverse: lends the page's slot; 0: the table has none. */
uint32_t tbd_page_slots_take_out(struct tbd_page_slots *slots, uint64_t page);

/* Takes out and gives back the page's slot, if the table has one; those of all pages that [start, end) touches; and all. */
void tbd_page_slots_forget(struct tbd_page_slots *slots, uint64_t page);
void tbd_page_slots_forget_range(struct tbd_page_slots *slots, uint64_t start, uint64_t end);
void tbd_page_slots_forget_all(struct tbd_page_slots *slots);

#endif
