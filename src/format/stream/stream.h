// SPDX-License-Identifier: MIT
/* stream.h - the memory that engine and organizer share
 *
 * Its contents are in block_def.h (definitions of blocks) and messages.h.
 *
 * A stream is one shared memory file.  The engine (in play or in a replay process) produces, one
 * consumer takes: the organizer in play, the replay driver otherwise; the code that consumes is the
 * same (organizer/).
 *
 *   offset 0                  struct tbd_stream_head
 *   defs_offset               struct tbd_block_def [def_capacity]    append only
 *   heap_offset               bytes: struct tbd_op arrays, code bytes; append only
 *   chunks_offset             slot 0, slot 1, ... each chunk_stride bytes, with a chunk in it:
 *
 *       | entries area | guard page | operand area | guard page |
 *
 *   areas_offset              areas of area_bytes and a guard page.  Replay: in one of them
 *                             (replay/plan.h says which) the operands of a window's chunks
 *                             follow one another, in place of the chunks' own areas, so that they
 *                             need not be copied together.  Play that only counts: the one in which
 *                             block entries are counted, the engine's own.
 *
 * Entries are uint32_t.  An entry is the id of a block (1 .. 2^31-1), written when the block is
 * entered, or TBD_ENTRY_MESSAGE | kind, written after a message is complete.  0 means "nothing
 * yet": the consumer zeroes the entries area before it gives a chunk back.  Operands are bytes
 * without padding, in the order of the entries: a block's record (fixed length, laid out by its
 * ops), or a message: struct tbd_message followed by its payload.
 *
 * A stream that only counts (recorded with count=later) has no block entries: there each message that
 * comes after some begins with a TBD_MSG_PASSED, which says how many.
 *
 * Translated code keeps the next-entry pointer in r15 and the next-operand pointer in r14.  There
 * is no bounds check: the entries area is filled from a start chosen so that it ends at the guard
 * page exactly when something is due (the end of the window, of the area, a stop position); an
 * operand that runs into its guard page moves the unfinished record to the next chunk.
 *
 * Invariants
 * STREAM-1  Entry i+1 is written after every operand of entry i. So after SIGKILL all entries but
 *     the last of the unpublished chunk have complete operands. (not checked: killing programs
 *     anywhere does, test_robust.py)
 * STREAM-2  A block's record is wholly inside one chunk, and so is a message.
 * STREAM-3  A block definition and its heap bytes are complete before its id appears.
 * STREAM-4  Time is the number of block entries before; messages do not count.
 * STREAM-5  A window ends with TBD_MSG_WINDOW_END, in the chunk with ENDS_WINDOW set; the next
 *     window starts with the next chunk.  The last window too: pages, TBD_MSG_END, REGS,
 *     WINDOW_END; engine_state is ENDED then.  A killed program leaves no such end.
 *
 * STREAM-6  TBD_MSG_UNMAP is where a page's contents end. A call that makes, replaces, moves or
 *     empties a mapping (mmap, munmap, mremap, madvise(MADV_DONTNEED), brk) sends UNMAP for the
 *     range that it takes or takes away, even if nothing was there, and then REGION for what is
 *     there now. REGION alone changes attributes (mprotect) and keeps contents. Pages modified so
 *     far are sent (TBD_PAGE_DIRTY) before the call's own message, UNMAP and REGION after it. (not
 *     checked: replays do: contents would differ)
 *
 * Consumers treat all of it as hostile: a program can scribble over the memory.
 */
#ifndef TBD_FORMAT_STREAM_H
#define TBD_FORMAT_STREAM_H

#include "format/stream/block_def.h"
#include "format/stream/messages.h"

#include <stdint.h>

#define TBD_STREAM_MAGIC   0x0a0d6d6165727473ull /* "stream\r\n" */
#define TBD_STREAM_VERSION 4
#define TBD_FAILURE_BYTES  320u

#define TBD_ENTRY_MESSAGE 0x80000000u

#define TBD_STREAM_MAX_CHUNKS 64
#define TBD_ENTRIES_BYTES     (256u << 10) /* 65536 entries */
#define TBD_OPERANDS_BYTES    (1u << 20)
#define TBD_CHUNK_STRIDE      (TBD_ENTRIES_BYTES + TBD_OPERANDS_BYTES + 2u * 4096u)

/* The most that one entry can overflow an operand area: no block record is longer. */
#define TBD_RECORD_MAX_BYTES 8192u
/* A message's payload is never longer; senders split (pages, ranges, long system calls). */
#define TBD_MESSAGE_MAX_BYTES (256u << 10)

/* A chunk's descriptor, written by the engine before `published` grows: chunk number n is at n %
 * chunk_count.  The engine chooses the chunk's slot: the one given back last, as long as the
 * consumer keeps up, so that the same few stay in the caches. */
struct tbd_chunk {
    uint64_t first_time;     /*  0: time of the first block entry in it */
    uint32_t entries_offset; /*  8: where its first entry is, bytes into the entries area */
    uint32_t entry_count;    /* 12: TBD_COUNT_OPEN while it is being filled */
    uint32_t operand_bytes;  /* 16: valid once published */
    uint32_t flags;          /* 20: TBD_CHUNK_* */
    uint32_t slot;           /* 24: index of the slot at chunks_offset, below chunk_count */
    uint32_t reserved;       /* 28 */
};
_Static_assert(sizeof(struct tbd_chunk) == 32, "tbd_chunk is 32 bytes");

#define TBD_COUNT_OPEN        0xffffffffu
#define TBD_CHUNK_ENDS_WINDOW 1u
#define TBD_CHUNK_WRAPS       2u /* the next chunk's operands begin at the operand area's start again */

/* Futex words: `published`, `released`, `organizer_state`. */
struct tbd_stream_head {
    uint64_t magic;         /*   0 */
    uint32_t version;       /*   8 */
    uint32_t chunk_count;   /*  12: 2 .. TBD_STREAM_MAX_CHUNKS */
    uint64_t defs_offset;   /*  16 */
    uint64_t heap_offset;   /*  24 */
    uint64_t chunks_offset; /*  32 */
    uint64_t total_bytes;   /*  40 */
    uint32_t def_capacity;  /*  48 */
    uint32_t chunk_stride;  /*  52 */
    uint64_t heap_capacity; /*  56 */
    uint64_t window_blocks; /*  64: block entries in a window; 0 = windows end only on request */
    uint32_t hook_set;      /*  72: TBD_HOOK_* */
    uint32_t pid;           /*  76: of the producer */
    uint64_t areas_offset;  /*  80 */
    uint64_t area_bytes;    /*  88: without the guard page */
    uint32_t area_count;    /*  96: 0 in play, 1 if it only counts */
    uint32_t flags;         /* 100: TBD_STREAM_* */

    /* engine writes, organizer reads (acquire) */
    _Alignas(64) uint32_t published; /* 128: chunks handed over so far, modulo 2^32 */
    uint32_t def_count;              /* 132: ids 1 .. def_count are defined */
    uint64_t heap_used;              /* 136 */
    uint64_t waits;                  /* 144: times the engine found all chunks full */
    uint32_t engine_state;           /* 152: TBD_ENGINE_* */
    uint32_t engine_lock;            /* 156: robust futex word, see TBD_ENGINE_EXEC */
    /* only counting: entries of the area up to this offset, and of the area before it was used
     * again, are in `passed`, or were sent; the rest are those that are not 0 */
    uint64_t counted;             /* 160 */
    struct tbd_msg_passed passed; /* 168 */

    /* organizer writes, engine reads (acquire) */
    _Alignas(64) uint32_t released; /* 192: chunks given back so far, modulo 2^32 */
    uint32_t organizer_state;       /* 196: TBD_ORGANIZER_* */
    uint32_t organizer_lock;        /* 200: robust futex word: organizer's tid; the kernel
                                            sets FUTEX_OWNER_DIED when it dies */
    uint32_t reserved1;             /* 204 */

    _Alignas(64) struct tbd_chunk chunks[TBD_STREAM_MAX_CHUNKS]; /* 256: at number % chunk_count */
    /* After the chunks: why, with a NUL; written before organizer_state says FAILED */
    char failure[TBD_FAILURE_BYTES];
};
_Static_assert(sizeof(struct tbd_stream_head) ==
                   256 + 32 * TBD_STREAM_MAX_CHUNKS + TBD_FAILURE_BYTES,
               "no padding");

#define TBD_STREAM_ONLY_COUNTS 1u /* block entries are in TBD_MSG_PASSED */
/* and they are stops of native play: each has a block with the stopping instruction alone */
#define TBD_STREAM_NATIVE 2u
/* recorded by native play.  Pages read are not in the stream: the trace keeps all files that are mapped */
#define TBD_STREAM_OWN_CODE 4u

enum tbd_engine_state {
    TBD_ENGINE_RUNNING = 0,
    TBD_ENGINE_ENDED = 1, /* TBD_MSG_END was published; nothing follows */
    TBD_ENGINE_EXEC = 2,  /* execve is under way, everything before is published.  It succeeded
                               (the program has ended, TBD_ENDED_EXEC; its process lives on) when
                               the kernel sets FUTEX_OWNER_DIED in engine_lock; it failed when the
                               state is RUNNING again */
};

enum tbd_organizer_state {
    TBD_ORGANIZER_STARTING = 0,
    TBD_ORGANIZER_READY = 1,  /* the trace directory exists and can be written */
    TBD_ORGANIZER_FAILED = 2, /* it cannot go on (directory, disk): detach */
    TBD_ORGANIZER_DONE = 3,   /* everything is written, the end record too */
};

/* Hook set: which events translated code reports. */
#define TBD_HOOK_BLOCKS 1u  /* block entries; always on when anything is */
#define TBD_HOOK_STORES 2u  /* address and old bytes */
#define TBD_HOOK_CALLS  4u  /* function entries and exits */
#define TBD_HOOK_TOUCH  8u  /* touch map: pages read and written */
#define TBD_HOOK_LOADS  16u /* load addresses, as events */
/* registers before chosen instructions: replay only, struct tbd_note_site */
#define TBD_HOOK_NOTES    32u
#define TBD_HOOKS_NONE    0u /* patching alone, for measurement */
#define TBD_HOOKS_PLAY    (TBD_HOOK_BLOCKS | TBD_HOOK_STORES | TBD_HOOK_CALLS | TBD_HOOK_TOUCH)
#define TBD_HOOKS_FULL    (TBD_HOOK_BLOCKS | TBD_HOOK_STORES | TBD_HOOK_CALLS)
#define TBD_HOOKS_PARTIAL TBD_HOOK_BLOCKS

#endif
