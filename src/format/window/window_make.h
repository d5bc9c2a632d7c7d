// SPDX-License-Identifier: MIT
/* window_make.h - making a struct tbd_window: for the reader of window files and for the organizer
 *
 * A window owns its memory: everything its pointers lead to was taken with tbd_window_memory() or
 * given with tbd_window_adopt(), and is freed by tbd_window_free(). */
#ifndef TBD_FORMAT_WINDOW_MAKE_H
#define TBD_FORMAT_WINDOW_MAKE_H

#include "format/window/blocks.h"
#include "format/window/window.h"

/* An empty window that holds a reference on `blocks`.  NULL without memory. */
struct tbd_window *tbd_window_new(struct tbd_block_table *blocks);
/* Zeroed, 16-aligned.  NULL without memory. */
void *tbd_window_memory(struct tbd_window *window, size_t bytes);
/* Takes over a pointer from malloc.  On failure it is freed and false returned. */
bool tbd_window_adopt(struct tbd_window *window, void *memory);
/* Memory for at least `bytes` bytes of any contents; for a window's events.  NULL without
 * memory. */
void *tbd_window_large_buffer(struct tbd_window *window, size_t bytes);
/* Takes over what tbd_large_buffer_take() gave.  On failure it is given back and false returned. */
bool tbd_window_adopt_large_buffer(struct tbd_window *window, void *buffer);
/* Takes over memory to be freed with release(), by the thread that frees the window.  On failure it
 * is freed at once and false returned. */
bool tbd_window_adopt_with(struct tbd_window *window, void *memory, void (*release)(void *));

/* Moves all memory that `from` owns to `window` and frees `from`: its pointers stay valid.  False
 * without memory; then nothing has changed. */
bool tbd_window_inherit(struct tbd_window *window, struct tbd_window *from);

/* Checks entries and operands against each other and the blocks, and makes the checkpoints for
 * tbd_cursor_seek().  TBD_CORRUPT: `*out_entry` is the entry where it goes wrong. */
TBD_MUST_CHECK enum tbd_status tbd_window_index(struct tbd_window *window, size_t *out_entry);

/* A block entry that a cursor can start from: there is one for this many entries. */
#define TBD_CHECKPOINT_ENTRIES 512u
struct tbd_checkpoint {
    size_t entry;
    size_t operand;
    uint64_t time;   /* absolute */
    uint32_t index;  /* of its event */
    uint32_t thread; /* that enters it */
};
/* For code that checks a window while making it, instead of tbd_window_index().  False without
 * memory. */
bool tbd_window_put_checkpoint(struct tbd_window *window, const struct tbd_checkpoint *here);

/* `window` without events gets those of `from`, which is the same window and is freed: entries,
 * operands, log, checkpoints, blocks.  On failure (no memory) both stay as they are. */
bool tbd_window_take_events(struct tbd_window *window, struct tbd_window *from);

/* Is this a message that belongs to the order of events (and so to the log and the operands)? */
static inline bool tbd_message_is_event(uint32_t kind)
{
    return kind == TBD_MSG_SYSCALL || kind == TBD_MSG_SPECIAL || kind == TBD_MSG_SIGNAL ||
           kind == TBD_MSG_INTERRUPTED || kind == TBD_MSG_THREAD || kind == TBD_MSG_SHARED ||
           kind == TBD_MSG_CODE || kind == TBD_MSG_MAPPED || kind == TBD_MSG_RSEQ ||
           kind == TBD_MSG_CUT || kind == TBD_MSG_TRANSLATED || kind == TBD_MSG_READ ||
           kind == TBD_MSG_STOPS || kind == TBD_MSG_CALLING || kind == TBD_MSG_UNLOGGED;
}

/* Is such a message of the order of events in the log, too?  The others only replays send. */
static inline bool tbd_message_is_logged(uint32_t kind)
{
    return kind != TBD_MSG_READ && kind != TBD_MSG_UNLOGGED;
}

/* Does the thread in control do something with it?  Not with what the kernel does for it in between:
 * the block that comes next may still be one that it calls. */
static inline bool tbd_message_is_done_by_thread(uint32_t kind)
{
    return kind != TBD_MSG_RSEQ && kind != TBD_MSG_CUT && kind != TBD_MSG_TRANSLATED &&
           kind != TBD_MSG_STOPS && kind != TBD_MSG_CALLING;
}

/* Are fixed part and writes of such a message inside its payload? */
bool tbd_message_check(uint32_t kind, const uint8_t *payload, uint32_t bytes);

/* The fixed part of a THREAD message (checked). */
static inline struct tbd_msg_thread tbd_thread_message(const struct tbd_message *message)
{
    struct tbd_msg_thread thread;

    __builtin_memcpy(&thread, (const uint8_t *)(const void *)message + sizeof(*message),
                     sizeof(thread));
    return thread;
}
static inline uint32_t tbd_message_kind(const struct tbd_message *message)
{
    uint32_t kind;

    __builtin_memcpy(&kind, (const void *)message, sizeof(kind));
    return kind;
}

/* Does its log begin with such a message? */
static inline bool tbd_window_begins_with(const struct tbd_window *window, uint32_t kind)
{
    return window->log_count && tbd_message_kind(window->log[0].message) == kind;
}
static inline uint32_t tbd_message_payload_bytes(const struct tbd_message *message)
{
    struct tbd_message head;

    __builtin_memcpy(&head, (const void *)message, sizeof(head));
    return head.bytes;
}

/* Is this a possible payload of TBD_MSG_START: all strings there? */
bool tbd_start_check(const uint8_t *payload, size_t bytes);
/* Can this be a range of the program's memory? */
bool tbd_range_check(uint64_t start, uint64_t end);

/* The writes in a SYSCALL, SPECIAL or SIGNAL message. */
struct tbd_write_view {
    uint64_t address;
    uint32_t bytes;
    const uint8_t *old_bytes; /* NULL if not known */
    const uint8_t *new_bytes;
};
struct tbd_write_cursor {
    const uint8_t *at;
    const uint8_t *end;
    uint32_t left;
};
void tbd_writes_first(uint32_t kind, const uint8_t *payload, uint32_t bytes,
                      struct tbd_write_cursor *out);
/* False after the last one, or where the payload is too short. */
bool tbd_writes_next(struct tbd_write_cursor *cursor, struct tbd_write_view *out);

/* The page in window->start; NULL if it is not there. */
const struct tbd_page_contents *tbd_window_start(const struct tbd_window *window, uint64_t address);
/* The page's earliest contents in window->first; NULL if it is not there. */
const struct tbd_page_contents *tbd_window_first(const struct tbd_window *window, uint64_t address);

/* Adds the window's early calls to the entries of its block summaries. */
void tbd_window_count_early_calls(struct tbd_window *window);

/* XXH3_64 of end registers, xsave image and dirty pages in address order. */
uint64_t tbd_window_digest(const struct tbd_window *window);

/* Sorts pages as in a window: by address, then by time. */
void tbd_page_contents_sort(struct tbd_page_contents *pages, size_t count);

static inline const struct tbd_block *tbd_window_block(const struct tbd_window *window, uint32_t id)
{
    return tbd_block_table_get(window->blocks_by_id, id);
}

#endif
