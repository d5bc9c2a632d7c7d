// SPDX-License-Identifier: MIT
/* stream.h - the memory that engine and organizer share, and its contents
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
 *   areas_offset              replay only: operand areas of area_bytes and a guard page.  In one of
 *                             them (replay/plan.h says which) the operands of a window's chunks
 *                             follow one another, in place of the chunks' own areas, so that they
 *                             need not be copied together.
 *
 * Entries are uint32_t.  An entry is the id of a block (1 .. 2^31-1), written when the block is
 * entered, or TBD_ENTRY_MESSAGE | kind, written after a message is complete.  0 means "nothing
 * yet": the consumer zeroes the entries area before it gives a chunk back.  Operands are bytes
 * without padding, in the order of the entries: a block's record (fixed length, laid out by its
 * ops), or a message: struct tbd_message followed by its payload.
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

#include <stdint.h>

#define TBD_STREAM_MAGIC   0x0a0d6d6165727473ull /* "stream\r\n" */
#define TBD_STREAM_VERSION 2

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
    uint32_t area_count;    /*  96: 0 in play */
    uint32_t reserved0;     /* 100 */

    /* engine writes, organizer reads (acquire) */
    _Alignas(64) uint32_t published; /* 128: chunks handed over so far, modulo 2^32 */
    uint32_t def_count;              /* 132: ids 1 .. def_count are defined */
    uint64_t heap_used;              /* 136 */
    uint64_t waits;                  /* 144: times the engine found all chunks full */
    uint32_t engine_state;           /* 152: TBD_ENGINE_* */
    uint32_t engine_lock;            /* 156: robust futex word, see TBD_ENGINE_EXEC */

    /* organizer writes, engine reads (acquire) */
    _Alignas(64) uint32_t released; /* 192: chunks given back so far, modulo 2^32 */
    uint32_t organizer_state;       /* 196: TBD_ORGANIZER_* */
    uint32_t organizer_lock;        /* 200: robust futex word: organizer's tid; the kernel
                                            sets FUTEX_OWNER_DIED when it dies */
    uint32_t reserved1;             /* 204 */

    _Alignas(64) struct tbd_chunk chunks[TBD_STREAM_MAX_CHUNKS]; /* 256: at number % chunk_count */
};
_Static_assert(sizeof(struct tbd_stream_head) == 256 + 32 * TBD_STREAM_MAX_CHUNKS, "no padding");

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

/* ---- block definitions ---- */

/* How a block ends: what its last instruction is. */
enum tbd_end {
    TBD_END_LIMIT = 1,  /* instruction limit, or the next bytes cannot be executed, or after a store
                         * in memory that is executable and writable or shared */
    TBD_END_JUMP = 2,   /* direct jmp */
    TBD_END_BRANCH = 3, /* jcc, jrcxz, loop */
    TBD_END_CALL = 4,   /* direct call */
    TBD_END_CALL_INDIRECT = 5,
    TBD_END_JUMP_INDIRECT = 6,
    TBD_END_RETURN = 7,
    TBD_END_SYSCALL = 8,
    TBD_END_SPECIAL = 9, /* executed by the engine: enum tbd_special in the message */
    TBD_END_FAULT = 10,  /* the bytes do not decode or cannot be fetched: entering it raises a
                              signal */
};

#define TBD_BLOCK_MAX_INSNS 64u
/* The longest instruction (Intel SDM volume 2, 2.3.11). */
#define TBD_INSN_MAX_BYTES 15u

struct tbd_block_def {
    uint64_t start;         /*  0: application address of the first instruction */
    uint64_t code_hash;     /*  8: tbd_hash64() of the code bytes */
    uint64_t code_offset;   /* 16: heap offset of the code bytes */
    uint64_t ops_offset;    /* 24: heap offset of struct tbd_op[op_count], 8-aligned */
    uint32_t code_bytes;    /* 32: 1 .. 64*15 (0 for TBD_END_FAULT) */
    uint32_t operand_bytes; /* 36: length of the record; at most TBD_RECORD_MAX_BYTES */
    uint16_t op_count;      /* 40 */
    uint16_t insn_count;    /* 42 */
    uint8_t end;            /* 44: enum tbd_end */
    uint8_t flags;          /* 45: 0 */
    uint16_t last_insn;     /* 46: offset of the last instruction in the code bytes */
};
_Static_assert(sizeof(struct tbd_block_def) == 48, "tbd_block_def is 48 bytes");

/* Events inside a block, in program order.  A pure function of the block and the hook set. */
enum tbd_op_kind {
    TBD_OP_STORE = 1, /* old bytes[size] at `data` */
    TBD_OP_CALL = 2,  /* function entry: uint64_t sp, rdi, rsi, rdx, rcx, r8, r9 before the call
                         instruction (56 bytes at `data`); from = this instruction, to = start of
                         the next block entered.  A call's push of the return address is a
                         TBD_OP_STORE of its own, after this op.  Also on `jmp *[rip+x]` and `jmp
                         *%r11` (import stubs): flag TBD_OPF_TAIL. */
    TBD_OP_RET = 3,   /* function exit: uint64_t sp (where the return address lies), rax (16
                         bytes) */
    TBD_OP_LOAD = 4,  /* no data */
    TBD_OP_NOTE = 5,  /* replay only: the registers of the mask `add` (TBD_NOTE_*) before the
                         instruction, `size` bytes at `data`: the general ones in order, then the
                         vector ones */
};

/* Registers that a replay is asked to report before the instruction at `pc` (TBD_HOOK_NOTES). */
struct tbd_note_site {
    uint64_t pc;        /* 0 */
    uint32_t registers; /* 8: TBD_NOTE_* */
    uint32_t reserved;  /* 12 */
};
_Static_assert(sizeof(struct tbd_note_site) == 16, "tbd_note_site is 16 bytes");
#define TBD_NOTE_GENERAL 0x0000ffffu /* bit r: register r, 8 bytes */
#define TBD_NOTE_VECTOR  0xffff0000u /* bit 16 + n: the low 16 bytes of vector register n */
static inline uint32_t tbd_note_bytes(uint32_t registers)
{
    uint32_t bytes = 0;

    for (; registers; registers &= registers - 1)
        bytes += registers & TBD_NOTE_GENERAL ? 8 : 16;
    return bytes;
}

struct tbd_op {
    uint8_t kind;  /* 0: enum tbd_op_kind */
    uint8_t flags; /* 1: TBD_OPF_* */
    uint16_t insn; /* 2: index of the instruction in the block: the K of TIME+K */
    uint32_t size; /* 4: bytes accessed (STORE, LOAD); for CALL and RET 0 */
    uint32_t data; /* 8: record offset of its data; for LOAD 0 */
    uint32_t base; /* 12: record offset of a uint64_t the address is relative to, or
                             TBD_BASE_NONE: the address is `add` itself */
    int64_t add;   /* 16: address = base + add.  (CALL, RET: base = TBD_BASE_NONE, add = 0) */
};
_Static_assert(sizeof(struct tbd_op) == 24, "tbd_op is 24 bytes");

#define TBD_BASE_NONE 0xffffffffu
#define TBD_OPF_TAIL  1u /* CALL: control left by a jump, the stack pointer is the caller's */
#define TBD_OPF_RMW   2u /* LOAD or STORE: the instruction reads and writes this place */

/* ---- messages ---- */

struct tbd_message {
    uint32_t kind;  /* 0: enum tbd_message_kind, equal to the entry's low bits */
    uint32_t bytes; /* 4: of the payload that follows, without padding */
};
_Static_assert(sizeof(struct tbd_message) == 8, "tbd_message is 8 bytes");

enum tbd_message_kind {
    TBD_MSG_START = 1,      /* struct tbd_msg_start + strings: first message of a stream */
    TBD_MSG_REGION = 2,     /* struct tbd_msg_region + path: a mapping (at start; later ones follow
                                from system calls, but are sent as well, after the call) */
    TBD_MSG_UNMAP = 3,      /* struct tbd_range: nothing is mapped here any more */
    TBD_MSG_PAGE = 4,       /* struct tbd_msg_page + 4096 bytes */
    TBD_MSG_READ_PAGES = 5, /* uint64_t addresses of pages read in the window */
    TBD_MSG_REGS = 6,       /* struct tbd_regs + xsave image: a thread's registers here.  At a
                             * window's end one for every living thread, the running one's last */
    TBD_MSG_WINDOW_END = 7, /* struct tbd_msg_window_end: last message of a window */
    TBD_MSG_SYSCALL = 8,    /* struct tbd_msg_syscall, then writes (struct tbd_write) */
    TBD_MSG_SPECIAL = 9,    /* struct tbd_msg_special, then writes */
    TBD_MSG_SIGNAL = 10,    /* struct tbd_msg_signal, then writes, then struct tbd_regs + xsave
                                image */
    TBD_MSG_INTERRUPTED = 11, /* uint64_t K: only instructions 0..K-1 of the block before ran.  Its
                               * record has its full length all the same: the ops of later
                               * instructions are zeros, not events */
    TBD_MSG_NOTE = 12,        /* uint32_t severity (0 info, 1 something is missing), text */
    TBD_MSG_END = 13,         /* struct tbd_msg_end: nothing follows except the last window's own
                               * end (pages before it; REGS and WINDOW_END after it) */
    TBD_MSG_THREAD = 14,      /* struct tbd_msg_thread; START: then struct tbd_regs + xsave image */
    TBD_MSG_SHARED = 15,      /* struct tbd_msg_shared + uint64_t addresses of instructions */
    TBD_MSG_CODE = 16,        /* struct tbd_msg_code, then writes */
    TBD_MSG_KIND_COUNT
};

struct tbd_range {
    uint64_t start; /* 0 */
    uint64_t end;   /* 8: one past the last byte */
};

struct tbd_msg_start {
    uint32_t pid;          /*  0 */
    uint32_t tid;          /*  4 */
    uint32_t parent_pid;   /*  8 */
    uint32_t xsave_bytes;  /* 12: size of the xsave images in this stream */
    uint64_t xcr0;         /* 16: components in them (non-compacted format) */
    uint64_t hook_set;     /* 24 */
    uint64_t engine_start; /* 32: TBD_ENGINE_BASE */
    uint64_t realtime_ns;  /* 40: CLOCK_REALTIME at take-over */
    uint64_t brk_start;    /* 48 */
    uint64_t brk_end;      /* 56 */
    uint32_t argc;         /* 64: number of NUL-terminated strings after the executable's path */
    uint16_t max_insns;    /* 68: instructions in a block at most; 0 = TBD_BLOCK_MAX_INSNS */
    uint16_t flags;        /* 70: TBD_START_* */
    /* executable path NUL, argv[0] NUL, ..., argv[argc-1] NUL, working directory NUL */
};
_Static_assert(sizeof(struct tbd_msg_start) == 72, "tbd_msg_start is 72 bytes");
/* begins in the middle of parent_pid's program, where fork returned 0 */
#define TBD_START_FORKED 1u

#define TBD_REGION_STACK 1u
#define TBD_REGION_PATCH 2u /* a patch area: reserved, never visible to the program */
#define TBD_REGION_VDSO  4u
#define TBD_REGION_VVAR  8u
/* fresh anonymous memory: its pages read as zero until stored to */
#define TBD_REGION_ANON_ZERO 16u
#define TBD_REGION_HEAP      32u
#define TBD_REGION_SHARED    64u /* other processes may write it: see TBD_MSG_SHARED */

struct tbd_msg_region {
    uint64_t start;       /*  0 */
    uint64_t end;         /*  8 */
    uint64_t file_offset; /* 16 */
    uint64_t inode;       /* 24: 0 = not a file */
    uint32_t device;      /* 32 */
    uint32_t prot;        /* 36: PROT_* */
    uint32_t map_flags;   /* 40: MAP_SHARED or MAP_PRIVATE, MAP_GROWSDOWN, ... */
    uint32_t flags;       /* 44: TBD_REGION_* */
    /* path NUL (empty for anonymous memory) */
};
_Static_assert(sizeof(struct tbd_msg_region) == 48, "tbd_msg_region is 48 bytes");

#define TBD_PAGE_DIRTY 1u /* written in this window: these are its contents at the message */
#define TBD_PAGE_FIRST 2u /* its contents were not known to the trace before (first touch) */
#define TBD_PAGE_IMAGE 4u /* part of the initial image */

struct tbd_msg_page {
    uint64_t address; /* 0: page aligned */
    uint64_t flags;   /* 8: TBD_PAGE_* */
    /* 4096 bytes */
};

/* Register numbers as the processor encodes them. */
enum tbd_reg {
    TBD_RAX,
    TBD_RCX,
    TBD_RDX,
    TBD_RBX,
    TBD_RSP,
    TBD_RBP,
    TBD_RSI,
    TBD_RDI,
    TBD_R8,
    TBD_R9,
    TBD_R10,
    TBD_R11,
    TBD_R12,
    TBD_R13,
    TBD_R14,
    TBD_R15,
    TBD_REG_COUNT
};

struct tbd_regs {
    uint64_t gpr[TBD_REG_COUNT]; /*   0 */
    uint64_t rip;                /* 128 */
    uint64_t rflags;             /* 136 */
    uint64_t fs_base;            /* 144 */
    uint64_t gs_base;            /* 152: the program's own view, 0 unless it set it */
    uint32_t thread;             /* 160: tid */
    uint32_t xsave_bytes;        /* 164: length of the image that follows, 0 if none */
};
_Static_assert(sizeof(struct tbd_regs) == 168, "tbd_regs is 168 bytes");

struct tbd_msg_window_end {
    uint64_t time;        /*  0: of the next block entry: the next window's first time */
    uint64_t dirty_pages; /*  8: TBD_MSG_PAGE messages with TBD_PAGE_DIRTY at the window's end */
    uint64_t read_pages;  /* 16 */
};

/* A run of memory written by the kernel or by the engine on the instruction's behalf. */
struct tbd_write {
    uint64_t address; /* 0 */
    uint32_t bytes;   /* 8 */
    uint32_t flags;   /* 12: TBD_WRITE_* */
    /* old bytes[bytes], new bytes[bytes]  (with TBD_WRITE_NO_OLD only the new ones) */
};
#define TBD_WRITE_NO_OLD 1u /* the old bytes are not known (fresh mapping) */
#define TBD_WRITE_MORE   2u /* continues in the next message of the same kind */

struct tbd_msg_syscall {
    uint64_t number;      /*  0 */
    uint64_t args[6];     /*  8 */
    uint64_t result;      /* 56: rax afterwards, -errno for errors */
    uint32_t write_count; /* 64: struct tbd_write that follow */
    uint32_t flags;       /* 68: TBD_SYSCALL_* */
};
_Static_assert(sizeof(struct tbd_msg_syscall) == 72, "tbd_msg_syscall is 72 bytes");
#define TBD_SYSCALL_MORE      1u /* further messages for the same call follow (more writes) */
#define TBD_SYSCALL_CONTINUED 2u /* this is such a further message */
#define TBD_SYSCALL_UNKNOWN   4u /* not in the table: its writes were found by comparison */
#define TBD_SYSCALL_NORETURN  8u /* exit, exit_group, execve that succeeded, rt_sigreturn */
/* not made: a filter of the program's own (seccomp) gave the result, or, with NORETURN, ended
 * the thread */
#define TBD_SYSCALL_REFUSED 16u

enum tbd_special {
    TBD_SPECIAL_RDTSC = 1,
    TBD_SPECIAL_RDTSCP,
    TBD_SPECIAL_CPUID,
    TBD_SPECIAL_RDRAND,
    TBD_SPECIAL_RDSEED,
    TBD_SPECIAL_RDPID,
    TBD_SPECIAL_XGETBV,
    TBD_SPECIAL_XSAVE,
    TBD_SPECIAL_REP_STORE,    /* rep movs/stos/ins: one event with a range, one or more messages */
    TBD_SPECIAL_MASKED_STORE, /* AVX masked moves, scatters, maskmovdqu: the bytes really written */
    TBD_SPECIAL_OTHER_STORE,  /* long stores: fxsave, ... */
    TBD_SPECIAL_RDFSBASE,
    TBD_SPECIAL_WRFSBASE,
    TBD_SPECIAL_RDGSBASE,
    TBD_SPECIAL_WRGSBASE,
    TBD_SPECIAL_OTHER,
    TBD_SPECIAL_SHARED, /* any instruction that is in the set of TBD_MSG_SHARED */
    TBD_SPECIAL_LOADS,  /* loads whose address or length is not known when code is translated:
                         * repeated lods, scas, cmps; gathers */
    TBD_SPECIAL_APART,  /* plain accesses that translated code cannot make: relative to gs without a
                           register for the address; as SHARED otherwise */
    TBD_SPECIAL_STATE,  /* outputs that depend on the processor's state: rdpmc, lsl, reads of
                           segment registers, xtest */
    TBD_SPECIAL_SEGMENT, /* loads of a segment register */
    TBD_SPECIAL_XBEGIN,  /* a transaction, which aborts at once */
};

struct tbd_msg_special {
    uint32_t special;            /*  0: enum tbd_special */
    uint32_t write_count;        /*  4 */
    uint64_t gpr_mask;           /*  8: bit r: gpr[r] below is an output that replay must supply */
    uint64_t gpr[TBD_REG_COUNT]; /* 16 */
    uint64_t rflags;             /* 144: afterwards */
    uint32_t flags;              /* 152: TBD_SPECIAL_F_* */
    uint32_t others;             /* 156: the first `others` writes are not the instruction's: other
                      * processes made them before it read the memory */
};
_Static_assert(sizeof(struct tbd_msg_special) == 160, "tbd_msg_special is 160 bytes");
/* outputs are a function of the inputs: replay executes it again and must get the same writes */
#define TBD_SPECIAL_F_REPLAYED 1u
#define TBD_SPECIAL_F_MORE     2u /* further messages for the same execution follow */
/* a repeated instruction that has not ended: the next block begins with it */
#define TBD_SPECIAL_F_LEFT 4u

struct tbd_msg_signal {
    uint32_t signo;       /*  0 */
    uint32_t write_count; /*  4: the frame, as implicit stores */
    uint32_t flags;       /*  8: TBD_SIGNAL_* */
    uint32_t reserved;    /* 12 */
    uint64_t handler;     /* 16 */
    uint64_t frame;       /* 24: address of the frame (handler's rsp) */
    uint8_t siginfo[128]; /* 32 */
};
_Static_assert(sizeof(struct tbd_msg_signal) == 160, "tbd_msg_signal is 160 bytes");
#define TBD_SIGNAL_SYNC 1u /* raised by the instruction at this position */

/* Threads run one at a time; entries between two SWITCH messages belong to one thread.  The first
 * window begins with the thread of TBD_MSG_START, every other one with the thread whose REGS were
 * last at the end of the window before.
 *
 * A thread that must wait inside a system call gives up control there: its block was entered, a
 * SWITCH follows, and the call's SYSCALL message comes directly after the SWITCH back to it (so
 * does INTERRUPTED if the call was not made after all, and is made again; it is then about the
 * thread's own last block).  Its REGS in between have rip on the system call instruction. */
enum tbd_thread_event {
    TBD_THREAD_START = 1,  /* `thread` exists, made by the system call before this message;
                              registers follow */
    TBD_THREAD_SWITCH = 2, /* `thread` runs from here on */
    TBD_THREAD_END = 3,    /* `thread` is gone (exit); a SWITCH follows, unless it was the last
                              one */
};
enum tbd_thread_reason {
    TBD_SWITCH_BLOCKED = 1, /* the thread before waits in a system call */
    TBD_SWITCH_QUANTUM = 2, /* it had its share of block entries */
    TBD_SWITCH_YIELD = 3,   /* sched_yield and the like */
    TBD_SWITCH_EXIT = 4,    /* it ended */
};
struct tbd_msg_thread {
    uint32_t event;      /*  0: enum tbd_thread_event */
    uint32_t thread;     /*  4: tid */
    uint32_t from;       /*  8: START: the creator; SWITCH: who ran before; END: 0 */
    uint32_t reason;     /* 12: SWITCH: enum tbd_thread_reason; END: exit status */
    uint64_t block_time; /* 16: SWITCH to a thread inside a system call: when the block that ends
                                with the call was entered; else TBD_NO_BLOCK_TIME */
};
_Static_assert(sizeof(struct tbd_msg_thread) == 24, "tbd_msg_thread is 24 bytes");
#define TBD_NO_BLOCK_TIME UINT64_MAX

/* Only instructions that the engine executes access memory that other processes may write; they end
 * their blocks (TBD_SPECIAL_SHARED).  They are found while the program runs: an INTERRUPTED
 * followed by this message means that a block was left before such an instruction for the first
 * time, which is in the set from there on.  A window begins with the whole set, unless it is empty.
 * With no address and no flag, the block was left because its last instruction had to wait for a
 * page that somebody else fills (userfaultfd). */
struct tbd_msg_shared {
    uint32_t flags; /* 0: TBD_SHARED_* */
    uint32_t count; /* 4: of the addresses that follow */
};
_Static_assert(sizeof(struct tbd_msg_shared) == 8, "tbd_msg_shared is 8 bytes");
#define TBD_SHARED_WHOLE 1u /* replaces the set; else adds to it */

/* Code in memory that others may write was read, before the block at `start` is entered for the
 * first time or after a change.  Others' writes to the bytes of this block count as if made just
 * now. */
struct tbd_msg_code {
    uint32_t write_count; /* 0 */
    uint32_t bytes;       /* 4 */
    uint64_t start;       /* 8 */
};
_Static_assert(sizeof(struct tbd_msg_code) == 16, "tbd_msg_code is 16 bytes");

enum tbd_end_how {
    TBD_ENDED_EXIT = 1,   /* value = exit status */
    TBD_ENDED_SIGNAL = 2, /* value = signal number that terminates the program */
    TBD_ENDED_EXEC = 3,
    TBD_ENDED_DETACHED = 4, /* the program goes on untraced; text says why */
    TBD_ENDED_KILLED = 5,   /* written by the organizer: the program vanished */
    TBD_ENDED_STOP = 6,     /* replay: the stop position was reached */
};

struct tbd_msg_end {
    uint32_t how;    /* 0: enum tbd_end_how */
    uint32_t value;  /* 4 */
    uint64_t offset; /* 8: K: of the last block, instructions 0..K-1 ran (TBD_END_WHOLE = all) */
    /* text NUL */
};
#define TBD_END_WHOLE UINT64_MAX

#endif
