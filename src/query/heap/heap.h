// SPDX-License-Identifier: MIT
/* heap.h - the blocks of memory that a program had, from the calls of its allocator
 *
 * Calls are those of the malloc family and of operator new and delete, whoever implements them.  A call that
 * another one of them makes (operator new calls malloc) is a part of it: only the outer one counts.  A change is
 * what a call does to the blocks: a free when it is called, an allocation when it returns. */
#ifndef TBD_QUERY_HEAP_H
#define TBD_QUERY_HEAP_H

#include "query/commands/commands.h"

#define TBD_HEAP_NONE       UINT32_MAX
#define TBD_HEAP_FRAMES_MAX 32u

#define TBD_HEAP_ERRORS_SHOWN 4u /* stores to one freed block that are shown, and loads */

struct tbd_heap_call {
    const char *name; /* "malloc" */
    struct tbd_position enter, exit;
    bool has_ended;
    uint32_t thread;
    uint64_t size;       /* allocated */
    uint64_t old, fresh; /* the block that it takes; that it gives, 0: none */
    uint32_t frames;     /* index in `frames` of the heap */
    uint32_t frame_count;
};

struct tbd_heap_block {
    uint64_t start, size;
    uint32_t made, freed; /* calls; `freed` TBD_HEAP_NONE: never */
};

/* A block is made or freed at `at`, by a call. */
struct tbd_heap_change {
    struct tbd_position at;
    uint32_t call;
    uint32_t block; /* TBD_HEAP_NONE: a free of no live block */
    bool is_free;
};

/* Read from a trace, calls have frames; united from shards, each has one frame, which is the index of its text. */
struct tbd_heap {
    bool is_known;               /* the program has such functions */
    struct tbd_heap_call *calls; /* owned; by entry */
    size_t call_count, call_capacity;
    uint64_t *frames; /* owned: addresses of the calls around each call, innermost first */
    size_t frame_count, frame_capacity;
    char **texts; /* owned; NULL: there are frames */
    size_t text_count, text_capacity;
    struct tbd_heap_block *blocks; /* owned; in the order in which they are made */
    size_t block_count, block_capacity;
    struct tbd_heap_change *changes; /* owned; in order */
    size_t change_count, change_capacity;
};

/* heap_calls.c: finds all of them that begin in these times, with a search.  Free it in any case. */
enum tbd_exit tbd_heap_read(struct tbd_command_run *run, const struct tbd_asked_span *span,
                            struct tbd_heap *out);
/* heap_calls.c: only events in these times. */
void tbd_heap_narrow(struct tbd_question *question, const struct tbd_asked_span *span);
void tbd_heap_free(struct tbd_heap *heap);
/* heap_blocks.c: pairs the calls; false without memory. */
bool tbd_heap_pair(struct tbd_heap *heap);

/* heap_blocks.c: is a call that comes next inside one of its thread that is in the list? */
bool tbd_heap_is_inner(const struct tbd_heap *heap, uint32_t thread, struct tbd_position enter);
/* heap_blocks.c: the order of stacks; 0: they are the same. */
int tbd_heap_compare_stacks(const struct tbd_heap *heap, uint32_t call, uint32_t other);

/* heap_errors.c: wrong frees, and accesses to freed blocks. */
enum tbd_exit tbd_heap_errors(struct tbd_command_run *run, const struct tbd_heap *heap);

/* heap_rows.c: a call as people read it: "malloc < main main.c:12 < _start"; of `max` frames. */
void tbd_heap_stack_text(struct tbd_command_run *run, const struct tbd_heap *heap, uint32_t call,
                         size_t max, char *out, size_t bytes);

/* The blocks that live at `position`, by stack. */
enum tbd_exit tbd_heap_print_live(struct tbd_command_run *run, struct tbd_heap *heap,
                                  struct tbd_position position);
void tbd_heap_say_unknown(void);
extern const char *const tbd_heap_block_columns[], *const tbd_heap_error_columns[];

#endif
