// SPDX-License-Identifier: MIT
/* dump_rings.h - what the threads of a dump ran last, as instructions, places and calls (mode=crash)
 *
 * The file `crash` has block entries (format/files/crash_file.h).  Everything else follows from the code that it has, too:
 *
 *     tbd_rings_open()     the dump in a folder
 *     tbd_rings_block()    a block's instructions and how it ends
 *     tbd_rings_reach()    which of a thread's entries are looked at: a dump may have more than fit in memory (ring_reach.c)
 *     tbd_rings_steps()    a thread's entries, and how many instructions of each ran (ring_steps.c)
 *     tbd_rings_place()    function and source line of an instruction
 *     tbd_rings_stack()    the calls around a position, as far as control flow tells (ring_calls.c)
 *
 * Nothing here knows values.  A position is written -N+K: instruction K of the N-th entry from the thread's end.
 * Files may have changed since: names are those of the files as they are now.  One dump from one thread. */
#ifndef TBD_QUERY_DUMP_RINGS_H
#define TBD_QUERY_DUMP_RINGS_H

#include "format/files/crash_file.h"
#include "query/debuginfo/dwarf_file.h"

struct tbd_rings_insn {
    uint64_t pc;
    uint32_t place; /* 1 + its index; 0: not asked for yet */
    uint8_t length;
    uint8_t offset_is_known; /* 0: the code is not known; the only instruction of its block */
};

/* How a block ends: what may be entered next. */
enum tbd_rings_end {
    TBD_RINGS_GOES_ON = 0,    /* what follows it: also after a system call */
    TBD_RINGS_JUMPS,          /* `target` */
    TBD_RINGS_BRANCHES,       /* either */
    TBD_RINGS_CALLS,          /* `target` */
    TBD_RINGS_JUMPS_ANYWHERE, /* its target is a value */
    TBD_RINGS_CALLS_ANYWHERE,
    TBD_RINGS_RETURNS,
    TBD_RINGS_SIGRETURN, /* system call 15, which loads all registers */
    TBD_RINGS_FAULTS,    /* there was nothing to run: no instruction of it began, a signal came */
    TBD_RINGS_UNKNOWN    /* its code is not known */
};

struct tbd_rings_block {
    struct tbd_rings_insn *insns; /* owned; NULL until it is asked for */
    uint32_t insn_count;          /* at least 1 */
    enum tbd_rings_end end;
    uint64_t target; /* of a direct transfer */
    uint64_t after;  /* the address after its last instruction */
    uint8_t begins;  /* enum tbd_rings_begin */
};

/* What a block's first instruction is the first one of, as symbols say. */
enum tbd_rings_begin {
    TBD_RINGS_NOT_ASKED = 0,
    TBD_RINGS_BEGINS_NOTHING,
    TBD_RINGS_BEGINS_FUNCTION,
    TBD_RINGS_BEGINS_STUB, /* an import stub */
    TBD_RINGS_BEGINS_BINDER /* what binds a stub's function when it is called first, and jumps to it */
};

struct tbd_rings_place {
    uint64_t address;
    const char *module;          /* NULL: in none */
    const char *function;        /* NULL: not known */
    uint64_t function_start;     /* 0: not known */
    struct tbd_source_line line; /* line 0: not known */
    bool begins_line;            /* the byte before it belongs to another line */
};

#define TBD_RINGS_CUT       1u /* it was interrupted: `insns` of its instructions ran */
#define TBD_RINGS_UNCERTAIN 2u /* at most `insns` ran; the ring does not tell how many */
#define TBD_RINGS_HANDLER   4u /* a signal handler's first block */
#define TBD_RINGS_CAME_BACK 8u /* it ends with rt_sigreturn, which led into an interrupted block */

struct tbd_rings_step {
    uint32_t block;
    uint16_t insns; /* that ran, or began to */
    uint16_t flags; /* TBD_RINGS_* */
};

/* A signal handler that began right after a step, or in it. */
struct tbd_rings_handler {
    uint64_t before;  /* the step */
    uint64_t resumes; /* where what was interrupted goes on; 0: nobody knows */
};

/* What tbd_rings_steps() finds; owned, all NULL until then. */
struct tbd_rings_walked {
    struct tbd_rings_step *steps;
    struct tbd_rings_handler *handlers; /* in the order of their steps */
    size_t handler_count;
};

struct tbd_rings_thread {
    uint32_t tid;
    bool has_older; /* earlier blocks are lost */
    bool
        is_asked; /* if no thread is named: the dying one, the first one of a process that goes on */
    bool is_dying;
    const uint32_t *
        entries; /* the stretch of them that is looked at: the newest ones, or those of tbd_rings_reach() */
    uint64_t count;
    uint64_t after; /* entries after these; 0: these are the newest ones */
    struct tbd_rings_walked walked;
    struct tbd_rings_kept_stretch {
        const uint32_t *entries;
        uint64_t count;
        struct tbd_rings_walked walked; /* NULL while it is the thread's */
    } newest;                           /* those that are not condensed */
    uint64_t older;                     /* entries before them, in chunks */
    uint32_t *reached;                  /* owned: `entries`, if they are not the newest ones */
    const struct tbd_crash_when
        *when; /* NULL: it is a thread; else a table, whose entries do not follow each other */
};

struct tbd_rings {
    char *path; /* owned: the dump's folder */
    struct tbd_crash_dump dump;
    struct tbd_rings_thread *threads;        /* owned; dump.head->thread_count of them */
    struct tbd_rings_thread first, last;     /* tables; their entries are owned */
    struct tbd_rings_thread kept;            /* the same, of tbd_rings_keep() */
    struct tbd_crash_when *kept_when;        /* owned */
    const struct tbd_crash_kept **kept_rows; /* owned: what row i is about */
    struct tbd_rings_block *blocks;          /* owned; dump.head->block_count of them */
    struct tbd_rings_place *places;          /* owned */
    size_t place_count, place_capacity;
    struct tbd_elf_file **files; /* owned: of modules; NULL: not open */
    bool *tried;
};

/* `path` NULL: the newest dump in the trace root.  On failure *why says what is wrong; close it all the same. */
TBD_MUST_CHECK enum tbd_status tbd_rings_open(const char *path, struct tbd_rings *out,
                                              struct tbd_error *why);
void tbd_rings_close(struct tbd_rings *ring);

/* What parts of the program have kept: `part`, or all with NULL, as a table ring->kept, once.  TBD_NOTFOUND: there is no such part;
 * TBD_NOMEM. */
TBD_MUST_CHECK enum tbd_status tbd_rings_keep(struct tbd_rings *ring, const char *part);

/* Looks at the stretch of the thread's entries that has the `back`-th from its end (from 1): the newest ones, or some 4 million
 * around it.  Steps and what was made of them belong to a stretch.  TBD_NOTFOUND: there are not as many; TBD_CORRUPT, TBD_NOMEM: it
 * stays where it was. */
TBD_MUST_CHECK enum tbd_status tbd_rings_reach(struct tbd_rings *ring,
                                               struct tbd_rings_thread *thread, uint64_t back);
/* The entry nearest to the end whose block is wanted, of those further from it than *back and than all that is not condensed.  *back
 * becomes its number.  TBD_NOTFOUND; else as tbd_rings_reach(). */
TBD_MUST_CHECK enum tbd_status tbd_rings_find_older(const struct tbd_rings *ring,
                                                    const struct tbd_rings_thread *thread,
                                                    const bool *wanted, uint64_t *back);
/* Does the stretch have it? */
static inline bool tbd_rings_has(const struct tbd_rings_thread *thread, uint64_t back)
{
    return back > thread->after && back <= thread->after + thread->count;
}
/* Entries from the thread's end to a step, and back: the last entry is 1. */
static inline uint64_t tbd_rings_back(const struct tbd_rings_thread *thread, uint64_t step)
{
    return thread->after + thread->count - step;
}
static inline uint64_t tbd_rings_step_at(const struct tbd_rings_thread *thread, uint64_t back)
{
    return thread->after + thread->count - back;
}

/* NULL without memory. */
const struct tbd_rings_block *tbd_rings_block(struct tbd_rings *ring, uint32_t block);
/* The code of an instruction; NULL if it is not known. */
const uint8_t *tbd_rings_code(const struct tbd_rings *ring, uint32_t block, uint32_t insn);
/* All thread->count steps, the oldest first.  NULL without memory. */
const struct tbd_rings_step *tbd_rings_steps(struct tbd_rings *ring,
                                             struct tbd_rings_thread *thread);
void tbd_rings_free_steps(struct tbd_rings_walked *walked);
/* Where the code goes on that the handler after step `at` interrupted; 0: nobody knows.  After tbd_rings_steps(). */
uint64_t tbd_rings_resumes(const struct tbd_rings_thread *thread, uint64_t at);
/* May the second be entered right after the first has run to its end? */
bool tbd_rings_can_follow(const struct tbd_rings_block *block, uint64_t next);

/* NULL without memory.  Borrowed until the next call. */
const struct tbd_rings_place *tbd_rings_place(struct tbd_rings *ring, uint32_t block,
                                              uint32_t insn);
/* Is its first instruction the first one of a function, as symbols say? */
bool tbd_rings_begins_function(struct tbd_rings *ring, uint32_t block);
/* The same as a kind; asked for once. */
enum tbd_rings_begin tbd_rings_begins(struct tbd_rings *ring, uint32_t block);
/* Is the block's last instruction in the function that begins with block `start`, or in a part of it that was moved away? */
bool tbd_rings_is_inside(struct tbd_rings *ring, uint32_t block, uint32_t start);
/* May something else than a call and a handler's return lead from the block to a function? */
bool tbd_rings_leads_on(struct tbd_rings *ring, uint32_t block);
/* The place of an address that no block need have. */
struct tbd_rings_place tbd_rings_place_at(struct tbd_rings *ring, uint64_t address);

/* ---- calls ---- */

struct tbd_rings_frame {
    uint64_t pc;    /* the first frame's instruction; of others what is returned to */
    bool is_signal; /* a signal interrupted it: it goes on at pc, which no call precedes */
};

struct tbd_rings_stack {
    struct tbd_rings_frame *frames; /* owned; innermost first */
    size_t count;
    bool is_whole; /* it reaches the end of the stack that was given */
};

/* The stack as step `at` (from 0) of the thread begins.  `last` (may be NULL) is the stack at the thread's end, innermost first,
 * whose first frame is where it was.  TBD_NOMEM. */
TBD_MUST_CHECK enum tbd_status tbd_rings_stack(struct tbd_rings *ring,
                                               struct tbd_rings_thread *thread, uint64_t at,
                                               const struct tbd_rings_frame *last,
                                               size_t last_count, struct tbd_rings_stack *out);

/* A function that was entered in the ring: by a call, by a jump of another function, in whose frame it goes on, or to handle a
 * signal. */
struct tbd_rings_call {
    uint64_t from; /* step whose last instruction leads there; that the signal came after */
    uint64_t
        entered; /* step that begins the function: stubs are skipped, and handlers before it; UINT64_MAX: none */
    uint64_t
        until; /* step whose last instruction ends it; UINT64_MAX: it does not end in the ring */
    uint64_t jumped; /* step that jumps to another function; UINT64_MAX: none */
    uint64_t before; /* number of the call that jumped to it; UINT64_MAX: none */
    uint32_t depth;  /* calls of the ring around it that have not ended */
    bool by_stub;    /* an import stub jumped to it, and something else to the stub */
    bool is_bound;   /* its function is being bound: not entered yet */
    bool was_left;   /* by longjmp or an exception */
};

/* In the order in which they began; the caller frees *out. */
TBD_MUST_CHECK enum tbd_status tbd_rings_calls(struct tbd_rings *ring,
                                               struct tbd_rings_thread *thread,
                                               struct tbd_rings_call **out, size_t *out_count);

#endif
