// SPDX-License-Identifier: MIT
/* messages.h - the messages of the stream: everything that is not a block entry
 *
 * A message is a struct tbd_message and its payload, among the operands.  Most are saved in a
 * window's log as they are. */
#ifndef TBD_FORMAT_MESSAGES_H
#define TBD_FORMAT_MESSAGES_H

#include "format/stream/specials.h"

#include <stdint.h>

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
    TBD_MSG_PASSED = 17,      /* struct tbd_msg_passed: block entries that are not in the stream */
    TBD_MSG_MAPPED = 18,      /* struct tbd_msg_mapped */
    TBD_MSG_RSEQ = 19,        /* struct tbd_msg_rseq, then writes */
    TBD_MSG_CLOCK = 20,       /* struct tbd_msg_clock: what time it is; in no log */
    TBD_MSG_OPENED = 21,      /* struct tbd_msg_opened + addresses; in no log */
    TBD_MSG_CUT = 22,         /* struct tbd_msg_cut: only in the log of a trace that counts stops */
    TBD_MSG_TRANSLATED =
        23,            /* struct tbd_msg_translated: only in the log of a trace that counts stops */
    TBD_MSG_READ = 24, /* struct tbd_msg_read: only in replays with TBD_HOOK_LOADS */
    /* struct tbd_msg_stops: first in the log of a window of native play that no replay has counted */
    TBD_MSG_STOPS = 25,
    TBD_MSG_CALLING = 26, /* struct tbd_msg_calling: only in the log of a crash dump */
    /* struct tbd_msg_special, then writes: only from replays, of an instruction that play has not logged; in no log */
    TBD_MSG_UNLOGGED = 27,
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
    uint32_t xsave_bytes;  /* 12: size of an xsave image with all components */
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
/* a crash dump: all that is known is the state at its one block entry, before the instruction at which the
 * program died */
#define TBD_START_DUMP 2u

#define TBD_REGION_STACK 1u
#define TBD_REGION_PATCH 2u /* a patch area: reserved, never visible to the program */
#define TBD_REGION_VDSO  4u
#define TBD_REGION_VVAR  8u
/* fresh anonymous memory: its pages read as zero until stored to */
#define TBD_REGION_ANON_ZERO 16u
#define TBD_REGION_HEAP      32u
#define TBD_REGION_SHARED    64u  /* other processes may write it: see TBD_MSG_SHARED */
#define TBD_REGION_PARTIAL   128u /* a crash dump: pages that are not in the image are not known */

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

/* A change of mappings that no argument of a system call tells: how far a stack can grow now, what a child of
 * vfork has changed.  A replay makes it, where it stands among the events. */
struct tbd_msg_mapped {
    uint64_t start; /*  0 */
    uint64_t end;   /*  8 */
    uint32_t prot;  /* 16: PROT_* */
    uint32_t flags; /* 20: TBD_MAPPED_* */
};
_Static_assert(sizeof(struct tbd_msg_mapped) == 24, "tbd_msg_mapped is 24 bytes");
#define TBD_MAPPED_GONE   1u /* nothing is mapped there any more */
#define TBD_MAPPED_ZERO   2u /* a new mapping, of zeros */
#define TBD_MAPPED_KEPT   4u /* only the protection has changed */
#define TBD_MAPPED_SHARED 8u
#define TBD_MAPPED_SENT   32u /* nothing changes; touched pages were sent, in case that it does */
#define TBD_MAPPED_HEAP   16u /* the heap ends there now: at `end`, or at `start` if it is gone */

#define TBD_PAGE_DIRTY 1u /* written in this window: these are its contents at the message */
#define TBD_PAGE_FIRST 2u /* its contents were not known to the trace before (first touch) */
#define TBD_PAGE_IMAGE 4u /* part of the initial image */
#define TBD_PAGE_LAST  8u /* native play: no event of its window follows */
/* with TBD_PAGE_DIRTY, in streams that a trace is made from again (replay/native/): what follows is not the page, but its frame in that
 * trace; none: a page of zeros */
#define TBD_PAGE_FRAME 16u
#define TBD_PAGE_DIFFERENCE                                                                        \
    32u /* the frame is that of a difference to what the page held before the window */

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
    uint32_t xsave_bytes; /* 164: of the image that follows, 0 if none; shorter without tiles */
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
/* it failed after part of its effect: the sixth argument of mprotect, pkey_mprotect and madvise is the
 * number of bytes for which they worked; mmap and mremap have unmapped their target */
#define TBD_SYSCALL_PARTIAL 32u

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
/* Where block entries are only counted (TBD_STREAM_ONLY_COUNTS), play does not log an instruction that accesses memory which
 * others may write (TBD_SPECIAL_SHARED) if others have written nothing there that the log does not know: it has the outputs that
 * a replay gets, too.  A replay whose log has no message about such an instruction sends an UNLOGGED one. */
/* outputs are a function of the inputs: replay executes it again and must get the same writes */
#define TBD_SPECIAL_F_REPLAYED 1u
#define TBD_SPECIAL_F_MORE     2u /* further messages for the same execution follow */
/* a repeated instruction that has not ended: the next block begins with it */
#define TBD_SPECIAL_F_LEFT 4u
/* Native play has stopped for it, although it is not in TBD_SPECIALS_NATIVE_STOPS: a store of x87 state, lsl, rdpru. */
#define TBD_SPECIAL_F_STOP 8u

/* An UNLOGGED message has at most this many: an instruction that writes more is logged. */
#define TBD_UNLOGGED_MOST_BYTES 1024u

#define TBD_SIGINFO_BYTES 128 /* of a siginfo_t, as the kernel fills it */

struct tbd_msg_signal {
    uint32_t signo;                     /*  0 */
    uint32_t write_count;               /*  4: the frame, as implicit stores */
    uint32_t flags;                     /*  8: TBD_SIGNAL_* */
    uint32_t reserved;                  /* 12 */
    uint64_t handler;                   /* 16 */
    uint64_t frame;                     /* 24: address of the frame (handler's rsp) */
    uint8_t siginfo[TBD_SIGINFO_BYTES]; /* 32 */
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

/* Blocks were entered, one after another, of which no entries are in the stream. */
struct tbd_msg_passed {
    uint32_t blocks;   /*  0: how many, at least 1 */
    uint32_t first;    /*  4: id of the first */
    uint32_t last;     /*  8: and of the last */
    uint32_t reserved; /* 12 */
};
_Static_assert(sizeof(struct tbd_msg_passed) == 16, "tbd_msg_passed is 16 bytes");

/* What the kernel does for restartable sequences (rseq(2)) on the way back to the program. */
struct tbd_msg_rseq {
    uint64_t rip;         /*  0: where the thread goes on */
    uint32_t write_count; /*  8 */
    uint32_t flags;       /* 12: TBD_RSEQ_* */
};
_Static_assert(sizeof(struct tbd_msg_rseq) == 16, "tbd_msg_rseq is 16 bytes");
#define TBD_RSEQ_ABORTED 1u /* it was in a critical section, which begins again: rip is another */

/* Native play has cut a computation here, where a control transfer has just led to: the state at the window's end
 * tells which arrival at this address it is.  The last event of its window. */
struct tbd_msg_cut {
    uint64_t rip;     /* 0 */
    uint64_t used_ns; /* 8: processor time of the window, about */
};
_Static_assert(sizeof(struct tbd_msg_cut) == 16, "tbd_msg_cut is 16 bytes");

/* Native play goes on with translated code: each window from here on begins with this message, and has block entries
 * where the windows before have stops. */
struct tbd_msg_translated {
    uint64_t reserved;
};

/* The window's times are numbers of stops, among windows whose times are block entries. */
struct tbd_msg_stops {
    uint64_t reserved;
};

/* The calling context of a thread (base/calling.h) at the moment of a dump. */
struct tbd_msg_calling {
    uint64_t value;  /*  0 */
    uint32_t thread; /*  8: tid */
    uint32_t scheme; /* 12: enum tbd_calling_scheme */
};
_Static_assert(sizeof(struct tbd_msg_calling) == 16, "tbd_msg_calling is 16 bytes");

/* The instruction that the next SPECIAL message is about has read this memory. */
struct tbd_msg_read {
    uint64_t address; /* 0 */
    uint64_t bytes;   /* 8: at least 1 */
};
_Static_assert(sizeof(struct tbd_msg_read) == 16, "tbd_msg_read is 16 bytes");

struct tbd_msg_clock {
    uint64_t realtime_ns; /* CLOCK_REALTIME */
};

/* What a descriptor leads to that the system call before this message has opened, accepted or connected. */
struct tbd_msg_opened {
    uint64_t device;      /*  0: st_dev */
    uint64_t inode;       /*  8 */
    uint64_t size;        /* 16: of a file, after the call */
    uint32_t mode;        /* 24: st_mode */
    uint32_t descriptor;  /* 28 */
    uint32_t peer;        /* 32: of an accepted Unix socket: the process that connected; else 0 */
    uint16_t socket_type; /* 36: SOCK_*; 0: it is no socket */
    uint16_t local_bytes; /* 38: of a socket's own address, which follows */
    uint16_t peer_bytes;  /* 40: of its peer's, which follows that one */
    uint16_t reserved[3]; /* 42 */
};
_Static_assert(sizeof(struct tbd_msg_opened) == 48, "tbd_msg_opened is 48 bytes");
#define TBD_OPENED_ADDRESS_MAX 128u /* struct sockaddr_storage */

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
    /* text NUL; SIGNAL: then siginfo[TBD_SIGINFO_BYTES], unless nobody but the kernel knew it */
};
#define TBD_END_WHOLE UINT64_MAX

#endif
