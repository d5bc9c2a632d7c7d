// SPDX-License-Identifier: MIT
/* signals.h - signals of the traced program: caught by the engine, delivered at block boundaries
 *
 *   kernel --> handle (SIG) --+- ours: guard pages, safe copies -> continue
 *                             +- asynchronous: queue, kick -> settle (APP) -> frame on the program's stack
 *                            +- the program's own fault -> exact registers -> after_fault (APP)
 *
 * The kernel calls one engine handler for every signal that the program catches or that would end
 * it, and always for SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGTRAP.  All other signals (ignored,
 * stopping) keep the program's own disposition in the kernel.  The kernel's mask is the program's
 * mask, except that those five are blocked only during a system call of the program; at other times
 * the engine holds them for it (signals_held.c).
 *
 * SIGNALS-1  While a thread has a signal queued, the kernel blocks all others for it and it makes no
 *     system call; so at most one is queued. (not checked: the kernel's masks are not seen from
 *     here)
 *
 * Every thread has its own state (struct tbd_signals, in its saved context: threads.h).  The
 * handler finds the state by the signal stack that it runs on.  In a thread that waits, the handler
 * only queues the signal; it is delivered when the thread has its turn. */
#ifndef TBD_HOOKS_SIGNALS_H
#define TBD_HOOKS_SIGNALS_H

#include "base/layout.h"
#include "hooks/table/syscalls.h"
#include "patcher/thread.h"

#include <stdbool.h>
#include <stddef.h>

#define TBD_SIGNAL_COUNT        65 /* 1 .. 64 */
#define TBD_SIGNAL_NOT_IN_BLOCK 0xffffffffu
/* SIGTRAP with this value is another engine's: the program is to go on natively
 * (hooks/calls/debugged.h). */
#define TBD_LET_GO_VALUE (TBD_ENGINE_BASE + 0x7ead)
/* ... or, in free run, to come to a boundary and wait there. */
#define TBD_PAUSE_VALUE (TBD_ENGINE_BASE + 0x7eaf)
/* ... timers of the engine's, in native play: a signal has waited long for a stop; some processor time has
 * passed.  They send SIGILL: while a SIGTRAP is on its way, the kernel drops that of an int3, which is past then; but an
 * instruction whose SIGILL was dropped is executed again. */
#define TBD_TIMER_SIGNAL SIGILL
#define TBD_LATE_VALUE   (TBD_ENGINE_BASE + 0x7eb0)
#define TBD_TICK_VALUE   (TBD_ENGINE_BASE + 0x7eb1)

/* Translated code cannot run with the trap flag set: why the program is let go before. */
#define TBD_RFLAGS_TRAP  0x100u
#define TBD_STEPS_ITSELF "it executes its instructions one at a time (the trap flag)"

/* The layout of the kernel. */
struct tbd_action {
    uint64_t handler; /* 0 = default, 1 = ignore */
    uint64_t flags;
    uint64_t restorer;
    uint64_t mask;
};

struct tbd_altstack {
    uint64_t sp;
    uint32_t flags;
    uint32_t pad;
    uint64_t bytes;
};

struct tbd_queued_signal {
    uint32_t signo;
    bool is_sync;
    bool is_shared; /* not a signal: translated code met memory of hooks/memory/shared.h */
    uint32_t insn;  /* is_sync: K, or TBD_SIGNAL_NOT_IN_BLOCK */
    uint64_t error, trap, address; /* for the frame: as the kernel gave them */
    uint8_t info[TBD_SIGINFO_BYTES];
};

#define TBD_HELD_SIGNALS 6 /* numbers that can be held */

/* Signals that were sent while the program had them blocked (signals_held.c). */
struct tbd_held_signals {
    uint64_t set; /* as in a signal mask */
    uint8_t info[TBD_HELD_SIGNALS][TBD_SIGINFO_BYTES];
};

/* The state of one thread; the handlers are common to all threads (tbd_actions). */
struct tbd_signals {
    uint32_t pending; /* queued holds a signal: SIG sets, APP clears */
    /* in free run: the thread is wanted at a boundary.  SIG sets, APP clears there.  Beside `pending`: one
     * comparison looks at both (tbd_program_syscall) */
    uint32_t called_in;
    struct tbd_queued_signal queued;
    struct tbd_queued_signal fault;
    uint64_t mask;           /* as the program sees it */
    uint64_t temporary_mask; /* during sigsuspend, ppoll, ... */
    bool has_temporary;
    struct tbd_altstack altstack;
    /* The program's last fault, which the kernel shows in every later frame. */
    uint64_t last_error, last_trap, last_address;
    struct tbd_held_signals held; /* for this thread */
    uint64_t lent;                /* the kernel has these during the call; */
    uint64_t lent_own;            /* these of them are for this thread */
    uint64_t waits_for;           /* the call can bring these, which the mask blocks */
    uint64_t asked;               /* the kernel has nudges of these for the thread */
    bool has_dropped;             /* one came that the program does not notice */
    bool directs;                 /* it is in a call that sends a signal to one thread */
    bool has_tiles; /* the kernel's frames for this thread have tiles, since it used them first */
};
_Static_assert(offsetof(struct tbd_signals, pending) == 0 &&
                   offsetof(struct tbd_signals, called_in) == 4,
               "tbd_program_syscall() reads both words at once");

/* By signal number, for all threads. */
extern struct tbd_action tbd_actions[TBD_SIGNAL_COUNT];

struct tbd_ucontext; /* sigframe.h */

/* Functions of the layers above that signals lead to. */
struct tbd_signal_exits {
    /* SIG, native play: has the program's own code stopped (hooks/own/own.h)?  after_fault follows.  NULL: the
     * program's code is translated. */
    bool (*stops)(int signo, const uint8_t *info, struct tbd_ucontext *context, uint64_t gs_base);
    /* SIG: is the program's own code there?  NULL as `stops`. */
    bool (*has_own)(uint64_t rip);
    /* SIG, native play: a signal was queued while the program's own code runs. */
    void (*queued)(void);
    /* APP, native play: the thread's ticks pause, or go on: while the kernel has TBD_TIMER_SIGNAL wait, the program would see
     * them, and another signal of this number would be lost. */
    void (*pauses)(const struct tbd_signals *signals, bool pauses);
    /* APP: registers are in the thread block, the fault in `fault`.  Does not return. */
    void (*after_fault)(struct tbd_thread *thread);
    /* SIG: a SIGCHLD with this siginfo has come.  True: the program must not know of it.  False:
     * `info` now names a child that the program may know of. */
    bool (*hides_child)(uint8_t *info);
    /* APP: the program is about to die of a signal.  True: what is sent now is a dump, in which the thread's
     * registers are those at its one block's entry.  NULL: nothing is to be done. */
    bool (*dies)(struct tbd_thread *thread);
    /* SIG: somebody outside asks for a dump, or with TBD_CRASH_SET for a change.  NULL: there are none. */
    void (*asked)(uint64_t what);
    /* APP: this signal is about to be delivered, at thread->regs.  NULL: nobody wants to know. */
    void (*delivers)(struct tbd_thread *thread, uint32_t signo);
    /* APP: the dump is written; the signal comes next. */
    void (*dumped)(void);
};

/* BOOT: reads what the program inherited, installs the engine's handlers and signal stack.  `exits`
 * must stay valid for ever. */
bool tbd_signals_init(struct tbd_thread *thread, const struct tbd_signal_exits *exits);
/* BOOT, in a process that runs already: only what is common to all its threads, which are stopped, with every signal
 * blocked. */
void tbd_signals_take(const struct tbd_signal_exits *exits);
/* The calling thread, whose state is `signals`, gets the engine's signal stack; its own becomes what the program sees. */
void tbd_signals_take_stack(struct tbd_signals *signals, uint64_t engine_stack);
/* Are the engine's handlers installed? */
bool tbd_signals_are_ours(void);
/* All threads are in the engine, none of them will be called in any more, the handlers are about to be the program's: what was sent to
 * call them in, and has not come yet, never will. */
void tbd_signals_drop_calls(void);
/* Restores the program's own handlers and signal stack when the engine detaches;
 * tbd_signals_go_native() sets the mask. */
void tbd_signals_restore(void);
/* The two halves of tbd_signals_restore(): handlers of the process; signal stack and signals that
 * wait of this thread (`signals`), which then has every signal blocked. */
void tbd_signals_restore_handlers(void);
void tbd_signals_restore_thread(struct tbd_signals *signals);
/* Like tbd_signals_restore(), for a child made with CLONE_CLEAR_SIGHAND that shares its parent's
 * memory. */
void tbd_signals_restore_cleared(void);
/* In a child made with CLONE_CLEAR_SIGHAND: signals that the program handled get the default
 * action, ignored signals stay ignored. */
void tbd_signals_clear_handlers(void);
/* Gives the calling thread the engine's signal stack, below `top` + half a stack slot; `before`:
 * its old one. */
void tbd_signals_set_stack(uint64_t engine_stack, struct tbd_altstack *old);
/* Before and after execve: sets what the new program inherits, and undoes it. */
void tbd_signals_before_exec(void);
void tbd_signals_after_exec(void);

/* Blocks every signal but the five in the kernel; returns the previous mask. */
uint64_t tbd_signals_block_all(void);
/* Signals that the engine needs at any time stay let in. */
void tbd_signals_set_kernel_mask(uint64_t mask);
/* The program's own mask, of a thread that goes on natively: nothing stays let in. */
void tbd_signals_set_native_mask(uint64_t mask);
/* The mask that the kernel has while translated code runs with `mask`.  As long as a signal is held
 * that the mask lets in, all others stay blocked: the held one comes first. */
uint64_t tbd_signals_kernel_mask(uint64_t mask);
/* Gives the kernel the program's mask again, unless a signal is queued. */
void tbd_signals_let_in(void);

/* Has the engine ever held a signal? */
bool tbd_signals_were_held(void);
/* Is one about to be delivered to this thread? */
bool tbd_signals_come(const struct tbd_signals *signals);
/* APP: queues a signal that was held and that the mask lets in now.  True: one is queued. */
bool tbd_signals_take_held(void);
/* FORK_CHILD: a child begins without signals that wait. */
void tbd_signals_forget_held(void);
/* Gives the kernel what is held for the thread `signals`, and has it block what the program blocks,
 * for the time of a system call, which can bring `wanted`.  False: there is nothing to give, and
 * nothing to end. */
bool tbd_signals_lend(struct tbd_signals *signals, uint64_t wanted);
void tbd_signals_lend_end(struct tbd_signals *signals);
/* The call has brought `info` of this signal.  True: it was only a nudge, and the call is to be made
 * again; the signal itself is in the kernel now, unless another thread has got it. */
bool tbd_signals_was_nudge(struct tbd_signals *signals, uint32_t signo, const uint8_t *info);
/* The call has brought what calls the thread to a boundary: it ends there, as if it was interrupted. */
bool tbd_signals_was_for_engine(struct tbd_signals *signals, int signo, const uint8_t *info);
/* The same for what was read of a descriptor, if that is a signalfd: both are taken out.  The bytes that are left; 0: the
 * call is to be made again. */
int64_t tbd_signals_without_nudges(struct tbd_signals *signals, uint64_t descriptor,
                                   uint64_t buffer, int64_t bytes);

/* APP: delivers the queued signal at thread->regs (a block boundary). */
void tbd_signals_deliver(struct tbd_thread *thread);
/* Raises a synchronous signal made by the engine at thread->regs.rip. */
void tbd_signals_raise(struct tbd_thread *thread, const struct tbd_queued_signal *fault);
/* Ends the program by the signal that its instruction raises when it is executed natively;
 * `offset`: of the instruction in its block. */
_Noreturn void tbd_signals_die_again(struct tbd_thread *thread, uint32_t signo, uint64_t offset);
/* Would a handler run for this synchronous signal now? */
bool tbd_signals_has_handler(uint32_t signo);

/* The system calls; results as the kernel's.  The caller records the memory that they write. */
int64_t tbd_signals_action(uint64_t signo, const struct tbd_action *set, struct tbd_action *old);
int64_t tbd_signals_procmask(uint64_t how, const uint64_t *set, uint64_t *old);
/* Has the kernel permit tiles, which it does if the program's signal stacks are long enough; its result. */
int64_t tbd_signals_request_tiles(const struct tbd_thread *thread);
int64_t tbd_signals_altstack(const struct tbd_thread *thread, const struct tbd_altstack *set,
                             struct tbd_altstack *old);
/* rt_sigreturn: registers from the frame at rsp.  False: the frame is bad, as the kernel finds
 * it. */
bool tbd_signals_return(struct tbd_thread *thread);
/* The SIGSEGV that the kernel forces on a thread whose frame it can neither write nor read. */
void tbd_signals_force_segv(struct tbd_thread *thread);

/* signals_last.c: makes the kernel remember the program's last fault again.  Called before the
 * program's handlers are restored. */
void tbd_signals_repeat_last_fault(void);

#endif
