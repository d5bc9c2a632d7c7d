// SPDX-License-Identifier: MIT
/* event.h - one occurrence that a question can ask for
 *
 * A position has its own event type (TBD_EVENT_POSITION), so that commands about a place ("mem rsp
 * 16") use the same names as conditions do.
 *
 * The state at an event is the state just before the instruction at `pc` executes:
 *   func_enter   the function's first instruction (the block after the call, or after the signal that
 *                the function handles)
 *   func_exit    the return instruction
 *   block_entry  the block's first instruction, or the instruction the question asked for
 *   store, load  the accessing instruction; a system call's writes are stores of its instruction
 *   syscall      the system call instruction; where the thread waited in the call, the moment when it came back,
 *                which is at another thread's instruction: `pc` and the registers are its
 *                own all the same
 *   thread_switch  the first instruction that the thread executes from here on
 *   line         the first instruction of a source line's code: the one before belongs to another
 *   signal       the handler's first instruction; of the signal that ended the program, the instruction
 *                that it hit
 *   state        every instruction */
#ifndef TBD_QUERY_EVENT_H
#define TBD_QUERY_EVENT_H

#include "format/trace/trace.h"

enum tbd_event_type {
    TBD_EVENT_POSITION = 0,
    TBD_EVENT_FUNC_ENTER,
    TBD_EVENT_FUNC_EXIT,
    TBD_EVENT_BLOCK_ENTRY,
    TBD_EVENT_STORE,
    TBD_EVENT_LOAD,
    TBD_EVENT_SYSCALL,
    TBD_EVENT_THREAD_SWITCH,
    TBD_EVENT_LINE,
    TBD_EVENT_SIGNAL,
    TBD_EVENT_STATE,
    TBD_EVENT_TYPE_COUNT,
    /* Not found by a search: an entry with its end, as a row of the command `calls`. */
    TBD_EVENT_CALL = TBD_EVENT_TYPE_COUNT
};

/* "func_enter"; "position" for TBD_EVENT_POSITION. */
const char *tbd_event_type_name(enum tbd_event_type type);
/* Is it about a function's entry or exit?  Then it is one of a function with code of its own, even if
 * this begins with an inlined copy. */
static inline bool tbd_event_is_of_function(enum tbd_event_type type)
{
    return type == TBD_EVENT_FUNC_ENTER || type == TBD_EVENT_FUNC_EXIT || type == TBD_EVENT_CALL;
}
/* The type called `name` (not NUL-terminated); TBD_EVENT_POSITION if there is none. */
enum tbd_event_type tbd_event_type_find(const char *name, size_t bytes);

#define TBD_EVENT_HAS_SP    1u
#define TBD_EVENT_HAS_VALUE 2u /* `value` is known */
#define TBD_EVENT_RESUMED   4u /* of a call in which its thread waited: `began` is valid */
#define TBD_EVENT_BY_JUMP   8u /* func_enter: by a jump, of an import stub or a tail call */
/* func_enter by a jump whose block keeps no operands: `sp` and `args` are not known yet */
#define TBD_EVENT_BARE 65536u
/* func_exit, where the walk keeps frames (tbd_question.keeps_frames): a call's frame has its return
 * address at `sp`.  `from` is in that call's instruction; `began` is its time, 0 if it was made
 * before the walk began. */
#define TBD_EVENT_HAS_CALL 16u
/* func_exit: calls that this frame made have not returned */
#define TBD_EVENT_OVER 32u
/* func_exit, of a question that is with_returns or has own_returns: no return, but a call.  It puts its return address at
 * `sp`, so no frame that had its own there, or further down on this stack, lives. */
#define TBD_EVENT_OVERWRITES 2048u
/* func_enter, of a question with own_returns: its condition does not hold */
#define TBD_EVENT_UNWANTED 4096u
/* func_exit, of a question with own_returns: in another function, to which this one may have jumped */
#define TBD_EVENT_ELSEWHERE 16384u
/* ... of a call of another function, that jumped here; or its call is in an earlier window and may be such a one */
#define TBD_EVENT_OF_OTHER 32768u
/* call: its frame ended by a return; `retval` and `began` are valid */
#define TBD_EVENT_RETURNED 1024u
/* load: of an instruction that the engine executes: all that it reads side by side, not one access */
#define TBD_EVENT_BY_ENGINE 8192u
/* of signals: */
#define TBD_EVENT_FATAL      64u /* it ended the program */
#define TBD_EVENT_HAS_CODE   128u
#define TBD_EVENT_HAS_ADDR   256u
#define TBD_EVENT_HAS_SENDER 512u

struct tbd_event {
    enum tbd_event_type type;
    uint32_t block; /* id of the block that `pc` is in; 0: not known here */
    struct tbd_position position;
    uint64_t pc;
    /* func_enter: address of the call or jump that led here; of a signal's handler, and signal: the
     * interrupted address; func_exit: see TBD_EVENT_HAS_CALL */
    uint64_t from;
    /* func_enter, where the walk keeps frames: address in the call instruction to which the function
     * returns; 0: not known, or a signal's handler */
    uint64_t called_at;
    uint64_t addr;        /* store, load; signal: that of the fault */
    uint64_t size;        /* store, load: bytes */
    const uint8_t *old;   /* store: size bytes, borrowed from the window; NULL if not known */
    const uint8_t *fresh; /* store: size bytes written; NULL if the trace does not have them */
    uint64_t value;       /* store: the new value, load: the value read (at most the low 8 bytes) */
    uint64_t sp;
    uint64_t args[6]; /* func_enter, syscall */
    uint64_t retval;  /* func_exit, syscall, call */
    /* syscall, signal; call, and func_enter of a question that is with_returns: calls of the same
     * function around it, or TBD_CALLERS_UNKNOWN */
    uint64_t number;
    uint64_t
        began; /* time of the block that ends with the call (RESUMED, HAS_CALL); call: its end */
    uint32_t previous; /* thread_switch: the thread that had control before */
    uint32_t reason;   /* thread_switch: enum tbd_thread_reason */
    int32_t code;      /* signal: si_code */
    uint32_t sender;   /* signal: process id of who sent it, or of the child */
    uint32_t thread;
    uint32_t flags; /* TBD_EVENT_* */
    /* of a question that keeps values (condition/expr_keep.h); borrowed until the next event */
    struct tbd_kept_value *kept;
};

/* What lists of many calls keep of an event of func_enter; the names are the event's. */
struct tbd_call_entry {
    struct tbd_position position;
    uint64_t pc, from, called_at, sp;
    uint64_t args[6];
    struct tbd_kept_value *kept; /* owned by the list; NULL: none */
    uint32_t nesting;            /* `number` */
    uint32_t thread, flags, block;
};
struct tbd_call_entry tbd_call_entry_of(const struct tbd_event *enter);
struct tbd_event tbd_call_entry_event(const struct tbd_call_entry *entry);

/* The first min(size, 8) bytes as a little-endian number. */
uint64_t tbd_event_bytes_value(const uint8_t *bytes, uint64_t size);
/* A function's entry gets its operands from the registers at its first instruction. */
void tbd_event_take_operands(struct tbd_event *event, const struct tbd_regs *regs);
/* Register `reg`, if the event itself holds it; false otherwise. */
bool tbd_event_register(const struct tbd_event *event, unsigned reg, uint64_t *out);

static inline int tbd_position_compare(struct tbd_position a, struct tbd_position b)
{
    if (a.time != b.time)
        return a.time < b.time ? -1 : 1;
    return a.offset < b.offset ? -1 : a.offset > b.offset;
}

#endif
