// SPDX-License-Identifier: MIT
/* stub.h - the parts of a replay process
 *
 *     main.c    start-up, one plan after the other
 *     setup.c   patcher, decoder, stream, thread area, signal handlers
 *     memory.c  the program's memory
 *     run_window.c     one window: chunk hand-over, stops, the end
 *     logged_events.c   system calls, specials and signals out of the log
 *     areas.c   where translated code goes
 *     thread_turns.c the program's threads, which take turns
 *     fault.c   SIGSEGV: guard pages, missing pages, the program's own faults
 *     confine.c what it may not do, filter.c which system calls it may make
 *     turn.c    waiting for the driver */
#ifndef TBD_REPLAY_STUB_H
#define TBD_REPLAY_STUB_H

#include "hooks/instructions/processor.h"
#include "hooks/memory/program_memory.h"
#include "hooks/stream/recording.h"
#include "patcher/patcher.h"
#include "replay/plan.h"

/* The image is linked far above 2 GiB: only hidden functions have addresses that need no table. */
#pragma GCC visibility push(hidden)

/* The state of the process, beside tbd_recording, tbd_memory (pages without `known`), tbd_processor and the thread
 * block, which are used here as well, so that play's code for specials and window
 * ends serves replay.  Times in the ring are absolute; those of the plan are relative. */
struct tbd_stub {
    struct tbd_plan_head *plan;
    bool is_partial;    /* nothing goes into the stream */
    uint32_t hook_set;  /* of the translations that exist; 0 at first */
    uint64_t end;       /* absolute time at which the replay is over */
    uint64_t slice_end; /* likewise a slice, or what comes before the first; TBD_TIME_NEVER:
                                  there are none */
    uint64_t extra;     /* entries that are no block entries: rests after inner stops */
    uint64_t log_next;  /* index of the next log entry */
    uint64_t between;   /* index of the next one that comes between blocks, if >= log_next */
    uint64_t left;      /* likewise: the next block that was left (shared_traps.c) */
    uint64_t stop_next; /* index of the next stop */
    bool has_ended;     /* the thread that has control is gone */
    bool is_inside;     /* translated code stops at next_stop(), inside the block at hand */
    uint64_t brk;       /* page-aligned end of the heap */
};
extern struct tbd_stub tbd_stub;
extern const struct tbd_patcher_callbacks tbd_stub_callbacks; /* setup.c */

/* Entry of the engine ELF when it is started as a program; never returns (start.S). */
void tbd_stub_start(void);
_Noreturn void tbd_stub_main(void);

/* Once, after the process is empty.  NULL, or why not. */
const char *tbd_stub_set_up(struct tbd_plan_head *plan);
/* Gives up descriptors, resources and system calls.  NULL, or why that is not possible (static). */
const char *tbd_stub_confine(void);
/* Carries out the plan; tbd_stub_serve() is called when the window has ended. */
_Noreturn void tbd_stub_run(void);
/* Waits for the next plan and runs it.  Called at the end of a window, on the engine stack. */
_Noreturn void tbd_stub_serve(struct tbd_plan_head *plan);

/* Ends the window: the outcome is reported and the next plan awaited. */
_Noreturn void tbd_stub_fail(struct tbd_plan_head *plan, enum tbd_plan_outcome outcome,
                             const char *format, ...) __attribute__((format(printf, 3, 4), cold));
/* As above, with TBD_OUTCOME_DIVERGED at the current time; `instruction` of the block entered
 * last. */
_Noreturn void tbd_stub_diverge(uint32_t instruction, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

/* Relative time of the next block entry. */
uint64_t tbd_stub_time(void);

/* run_window.c: callbacks of the patcher. */
void tbd_stub_boundary(struct tbd_thread *thread);
/* The program has ended in this window, or everything asked for is there. */
_Noreturn void tbd_stub_finish(void);
/* Flushes translations of code that changed. */
void tbd_stub_code_changed(uint64_t start, uint64_t bytes);

/* logged_events.c */
void tbd_stub_syscall(struct tbd_thread *thread, uint32_t insn_bytes);
void tbd_stub_special(struct tbd_thread *thread, enum tbd_special special, uint32_t insn_bytes);
void tbd_stub_bad_code(struct tbd_thread *thread);
/* Time of the next logged signal or turn, which may have to come between blocks; UINT64_MAX if
 * none. */
uint64_t tbd_stub_between_time(void);
/* Before translated code goes on after the engine did something: signals, and what is due. */
void tbd_stub_settle(struct tbd_thread *thread);
/* Signals and turns due now. */
void tbd_stub_between(struct tbd_thread *thread);
/* The system call at rip, or that part of it which is due; afterwards tbd_stub_settle(). */
void tbd_stub_call(struct tbd_thread *thread, uint32_t insn_bytes);
/* shared_traps.c: takes over the set of instructions in a TBD_MSG_SHARED that is due now; false if there
 * is none. */
bool tbd_stub_shared(struct tbd_thread *thread);
/* A window begins: with an empty set, or the one in its first message. */
void tbd_stub_shared_begin(struct tbd_thread *thread);
/* Time of the next block that play left for a reason that replay does not have (UINT64_MAX if
 * none); before it is entered, it is seen to that it is left at the same place. */
uint64_t tbd_stub_left_time(void);
void tbd_stub_leave_block(struct tbd_thread *thread);
/* Nothing more is logged, and this block is the window's last: the program was killed, or play let
 * it go. */
bool tbd_stub_is_where_play_stopped(void);
/* These end the replay if something is needed that this processor lacks (vectors.h): parts of registers
 * that instructions change which it has; registers that the instruction at rip names. */
void tbd_stub_need_upper_halves(void);
void tbd_stub_need_registers(const struct tbd_thread *thread);
/* The program itself faulted: registers are exact, `insn` instructions of the block entered last
 * ran. */
_Noreturn void tbd_stub_faulted(uint32_t insn, int signo, uint64_t address);

/* Play detached here, or something diverged. */
void tbd_stub_detached(const char *why);

/* thread_turns.c: a logged THREAD message that is due. */
void tbd_stub_turn(struct tbd_thread *thread, const struct tbd_message *message);
/* A thread that waits; `image` has room for an xsave image.  False: there is none with this tid. */
bool tbd_stub_thread_state(uint32_t tid, struct tbd_regs *regs, void *image);
/* REGS of all that wait. */
void tbd_stub_send_threads(struct tbd_thread *thread);

/* areas.c */
uint64_t tbd_stub_reserve_area(uint64_t lo, uint64_t hi, uint64_t bytes);

/* fault.c.  False if the handlers cannot be installed. */
bool tbd_stub_catch_faults(void);

#pragma GCC visibility pop

#endif
