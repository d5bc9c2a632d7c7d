// SPDX-License-Identifier: MIT
/* plan.h - the shared memory through which driver and replay process (stub) communicate
 *
 * The plan is one shared memory file, mapped by the stub at TBD_PLAN_BASE and by the driver
 * anywhere. The file only grows.  `turn` says who may touch the rest:
 *
 *     STARTING --stub--> DONE --driver--> RUN --stub--> DONE ...
 *                                     RUN --stub--> PAGE --driver--> RUN
 *                                  any --driver--> QUIT
 *
 * A store to `turn` is a release and is followed by a futex wake; its load is an acquire.  No other
 * ordering is needed, except that the stub's stream is consumed meanwhile.
 *
 * The driver validates what comes from the trace before it enters the plan.  The program that is
 * replayed shares the address space with the plan, and may write anything at any time.  So the
 * driver makes the head and all tables in its own memory, copies them to the plan when they are
 * complete, and relies only on its own copy (process.h).  It writes contents of pages and messages,
 * which it never reads again, directly to the plan, from TBD_PLAN_BULK on.  Data from the stub
 * (turn, request, report, registers at stops) is copied once, checked, and then used.
 *
 * Offsets are bytes from the start of the file; times are relative to the window's first block
 * entry.
 */
#ifndef TBD_REPLAY_PLAN_H
#define TBD_REPLAY_PLAN_H

#include "base/layout.h"
#include "format/stream/stream.h"

#include <stdint.h>

#define TBD_PLAN_MAGIC     0x0a0d6e616c706274ull
#define TBD_PLAN_VERSION   15
#define TBD_PLAN_BULK      (2ull << 30) /* head and tables end before it, the rest begins here */
#define TBD_PLAN_MAX_BYTES (8ull << 30)

/* Descriptors a stub is started with. */
#define TBD_PLAN_FD        3
#define TBD_PLAN_STREAM_FD 4
#define TBD_PLAN_LIFE_FD   5 /* a pipe: it hangs up when the driver ends */

enum tbd_plan_turn {
    TBD_TURN_STARTING = 0, /* the stub sets itself up */
    TBD_TURN_DONE = 1,     /* driver: read the outcome, write the next plan */
    TBD_TURN_RUN = 2,      /* stub */
    TBD_TURN_PAGE = 3,     /* driver: fill in `page` */
    TBD_TURN_QUIT = 4,     /* stub: exit */
};

/* The processor features that are used. */
enum tbd_plan_cpu { TBD_PLAN_CPU_OWN = 0, TBD_PLAN_CPU_V3 = 1 /* no AVX-512, for tests */ };

enum tbd_plan_outcome {
    TBD_OUTCOME_NONE = 0,
    TBD_OUTCOME_COMPLETE = 1, /* the window's last block was executed and everything agreed */
    TBD_OUTCOME_DIVERGED = 2, /* the report has position and `what` */
    TBD_OUTCOME_FAILED = 3,   /* the plan cannot be carried out, see `what` */
    TBD_OUTCOME_NO_STOP = 4,  /* the next stop's position does not exist, see `what` */
};

struct tbd_plan_section {
    uint64_t offset; /*  0 */
    uint64_t count;  /*  8: elements */
};

/* A mapping as it is when the window starts; sorted by start, no overlap. */
struct tbd_plan_region {
    uint64_t start;     /*  0 */
    uint64_t end;       /*  8 */
    uint32_t prot;      /* 16 */
    uint32_t flags;     /* 20: TBD_REGION_* */
    uint32_t is_file;   /* 24 */
    uint32_t map_flags; /* 28: MAP_SHARED or MAP_PRIVATE */
};
_Static_assert(sizeof(struct tbd_plan_region) == 32, "tbd_plan_region is 32 bytes");

#define TBD_PLAN_ZERO_PAGE 0u /* `contents` of a page without bytes */
/* of a page that is right as the previous window left it, if it is still mapped */
#define TBD_PLAN_SAME_PAGE 1u

/* A page to be present from the beginning; sorted by address. */
struct tbd_plan_page {
    uint64_t address;  /* 0 */
    uint64_t contents; /* 8: offset of 4096 bytes, or TBD_PLAN_ZERO_PAGE, TBD_PLAN_SAME_PAGE */
};
_Static_assert(sizeof(struct tbd_plan_page) == 16, "tbd_plan_page is 16 bytes");

struct tbd_plan_log {
    uint64_t time;    /* 0: of the next block entry */
    uint64_t message; /* 8: offset of a struct tbd_message with its payload */
};

/* Registers are wanted at a position (partial replay); sorted. */
struct tbd_plan_stop {
    uint64_t time;        /*  0 */
    uint32_t instruction; /*  8: K */
    uint32_t done;        /* 12: set by the stub: TBD_STOP_* */
    uint64_t xsave;       /* 16: offset of TBD_PLAN_XSAVE_BYTES for the image */
    uint32_t thread;      /* 24: whose; 0 = the one that has control there */
    uint32_t stack_bytes; /* 28: of the stack, too; the stub sets the number that could be read */
    uint64_t stack;       /* 32: offset of the space for them */
    uint64_t stack_start; /* 40: set by the stub: their address */
    struct tbd_regs regs; /* 48 */
};
#define TBD_PLAN_XSAVE_BYTES 12288u
#define TBD_STOP_FILLED      1u
#define TBD_STOP_NO_THREAD   2u /* that thread does not live at the position */

/* A slot for a thread that does not have control. */
struct tbd_plan_thread {
    uint32_t tid;         /*  0: 0 = free */
    uint32_t reserved;    /*  4 */
    uint64_t xsave;       /*  8: offset of TBD_PLAN_XSAVE_BYTES */
    struct tbd_regs regs; /* 16 */
};
_Static_assert(sizeof(struct tbd_plan_thread) == 184, "tbd_plan_thread is 184 bytes");

struct tbd_plan_range {
    uint64_t start; /* 0 */
    uint64_t end;   /* 8 */
};

#define TBD_PLAN_NO_AREA UINT32_MAX /* operands go into their chunks */

/* In a hook set: block entries are counted between messages (TBD_MSG_PASSED), and not put into the stream; no operands.  Blocks are those
 * of the other hooks. */
#define TBD_PLAN_COUNTS (1u << 31)
/* Likewise: entries and messages are put into the stream as ever, but no operands. */
#define TBD_PLAN_ENTRIES (1u << 30)
/* With TBD_PLAN_COUNTS: translated code is that of the other hooks, and writes records, which nobody reads.  Of the blocks between two
 * messages only their number and the last one are known. */
#define TBD_PLAN_ASIDE (1u << 29)

#define TBD_PLAN_FLUSH 1u /* forget all translations first */

/* The answer to a page request. */
enum tbd_page_answer { TBD_PAGE_ABSENT = 0, TBD_PAGE_GIVEN = 1, TBD_PAGE_ZERO = 2 };

struct tbd_plan_request {
    uint64_t address; /*  0: stub: page wanted */
    /*  8: stub: its mapping was made by the last of this many log messages; 0: before the window */
    uint64_t order;
    uint32_t answer;        /* 16: driver: enum tbd_page_answer */
    uint32_t reserved;      /* 20 */
    uint8_t contents[4096]; /* 24: driver */
};

/* The last instruction of the block entered last. */
#define TBD_PLAN_LAST_INSN UINT32_MAX

#define TBD_PLAN_AREAS 64u
/* The stub's report at the end. */
struct tbd_plan_report {
    uint32_t outcome;     /*  0: enum tbd_plan_outcome */
    uint32_t instruction; /*  4: K of the divergence, or TBD_PLAN_LAST_INSN */
    uint64_t time;        /*  8: relative */
    uint32_t thread;      /* 16: tid: of the divergence */
    /* 20: executable mappings were replaced: keep no code for the next window */
    uint32_t code_changed;
    char what[256]; /* 24 */
    /* of the divergence: the thread's registers, the log's next message, and whether the thread is at a system call */
    struct tbd_regs regs;
    uint64_t log_next;
    uint64_t is_call;
    uint64_t area_count; /* patch areas reserved so far, for collisions with later windows */
    struct tbd_plan_range areas[TBD_PLAN_AREAS];
};

struct tbd_plan_head {
    uint64_t magic;        /*  0 */
    uint32_t version;      /*  8 */
    uint32_t turn;         /* 12: enum tbd_plan_turn; futex */
    uint32_t has_fsgsbase; /* 16: wrfsbase and wrgsbase may be used */
    uint32_t reserved1;    /* 20 */

    /* driver, before RUN */
    uint64_t first_time; /* 24: absolute time of the window's first block entry */
    uint64_t blocks;     /* 32: the window ends after this many block entries */
    uint32_t
        hook_set; /* 40: TBD_HOOK_*, TBD_PLAN_COUNTS, _ENTRIES, _ASIDE; TBD_HOOKS_PARTIAL: nothing is put into the stream */
    uint32_t max_insns;   /* 44 */
    uint32_t flags;       /* 48: TBD_PLAN_* */
    uint32_t complete;    /* 52: 0 = the program was killed in this window: no end state */
    uint32_t area;        /* 56: the stream's operand area for this window, or TBD_PLAN_NO_AREA */
    uint32_t cpu;         /* 60: enum tbd_plan_cpu */
    struct tbd_regs regs; /* 64 */
    uint64_t xsave;       /* offset of regs.xsave_bytes */
    uint64_t xcr0;
    uint64_t xsave_bytes;            /* of an image with all its components */
    uint64_t brk;                    /* page-aligned end of the heap */
    struct tbd_plan_section regions; /* struct tbd_plan_region */
    struct tbd_plan_section pages;   /* struct tbd_plan_page */
    struct tbd_plan_section log;     /* struct tbd_plan_log */
    struct tbd_plan_section dirty;   /* uint64_t: pages that play wrote */
    struct tbd_plan_section stops;   /* struct tbd_plan_stop */
    /* struct tbd_note_site, by pc (TBD_HOOK_NOTES); if they differ from the previous plan's,
     * TBD_PLAN_FLUSH is set */
    struct tbd_plan_section notes;
    struct tbd_plan_section avoid;  /* struct tbd_plan_range: no patch areas here */
    struct tbd_plan_section prefer; /* struct tbd_plan_range: where play had its patch areas */
    /* struct tbd_plan_range: code that is as in the previous window */
    struct tbd_plan_section keep;
    /* struct tbd_plan_thread: one more than the most that can wait */
    struct tbd_plan_section threads;
    /* uint64_t: instructions that the engine executes from the start on
     * (patcher/forced_specials.h); the log has later ones, and at a window's start all */
    struct tbd_plan_section forced_specials;
    /* Slices (replay/slices.h), relative times.  A window in which the program was killed has
     * none. */
    /* before it, nothing is put into the stream; then the state is sent, unless it is 0 */
    uint64_t from;
    uint64_t until; /* the replay ends here: at `blocks`, or at a slice's end */
    /* the state is sent each time this many entries have passed; 0: only at the end */
    uint64_t slice;
    /* uint64_t: further pages of the state, as long as they are mapped */
    struct tbd_plan_section gone;
    /* of native play: times in the log, and `blocks`, count its stops (hooks/own/own.h), which replay
     * recognizes in their order */
    uint64_t counts_stops;
    /* the program was let go, or died, in the last block, whose last instruction did not run */
    uint64_t is_cut_short;
    /* recorded by native play: the processor has made each system call's instruction, and so changed rcx and r11,
     * also where the call did not end */
    uint64_t own_code;
    /* native play has cut the window (TBD_MSG_CUT): its state at the end, by which its place is found */
    uint64_t has_cut;
    struct tbd_regs cut_regs;
    uint64_t cut_xsave;                /* offset of cut_regs.xsave_bytes */
    struct tbd_plan_section cut_pages; /* struct tbd_plan_page: those that play wrote */

    /* stub */
    struct tbd_plan_request page;
    struct tbd_plan_report report;
};

#endif
