// SPDX-License-Identifier: MIT
/* stub.h - the parts of a replay process
 *
 *     main.c           start-up, one plan after the other
 *     setup.c          patcher, decoder, stream, thread area, signal handlers
 *     memory.c         the program's memory
 *     present_map.c    which of its pages are mapped
 *     run_window.c     one window: chunk hand-over, stops, the end
 *     logged_events.c  system calls, specials and signals from the log
 *     areas.c          addresses for translated code
 *     unread.c         memory for what nobody reads
 *     cut_place.c      where native play has cut a computation
 *     thread_turns.c   the program's threads, which take turns
 *     fault.c          SIGSEGV: guard pages, missing pages, the program's own faults
 *     confine.c        what it may not do; filter.c: which system calls it may make
 *     turn.c           waiting for the driver */
#ifndef TBD_REPLAY_STUB_H
#define TBD_REPLAY_STUB_H

#include "hooks/instructions/processor.h"
#include "hooks/memory/program_memory.h"
#include "hooks/stream/recording.h"
#include "patcher/patcher.h"
#include "replay/plan.h"

/* The image is linked above 2 GiB: without "hidden", the address of a function would need a
 * table. */
#pragma GCC visibility push(hidden)

/* The state of the process.  In addition, tbd_recording, tbd_memory (pages without `known`),
 * tbd_processor and the thread block are used as in play, because play's code for specials and
 * window ends runs here, too.  Times in the ring are absolute; those of the plan are relative. */
struct tbd_stub {
    struct tbd_plan_head *plan;
    bool is_partial;   /* nothing is sent to the stream */
    uint32_t hook_set; /* of the existing translations; 0 at first */
    uint64_t end;      /* absolute time at which the replay is over */
    /* likewise the end of the slice, or of the part before the first one; TBD_TIME_NEVER: no
     * slices */
    uint64_t slice_end;
    uint64_t extra;     /* entries that are no block entries: rests of blocks after stops inside */
    uint64_t log_next;  /* index of the next log entry */
    uint64_t between;   /* index of the next entry that is due between blocks, if >= log_next */
    uint64_t left;      /* likewise, of the next block that was left (shared_traps.c) */
    uint64_t stop_next; /* index of the next stop */
    bool has_ended;     /* the thread that had control has ended */
    bool is_inside;     /* translated code stops at next_stop(), inside the present block */
    uint64_t brk;       /* page-aligned end of the heap */
    uint64_t stops;     /* of native play, so far in the window */
    bool is_in_call;    /* a system call that was not compared with play's yet */
    bool is_in_special; /* an instruction that native play has stopped for has not ended yet */
};
extern struct tbd_stub tbd_stub;
extern const struct tbd_patcher_callbacks tbd_stub_callbacks; /* setup.c */

/* Entry of the engine ELF when it is started as a program; never returns (start.S). */
void tbd_stub_start(void);
_Noreturn void tbd_stub_main(void);

/* Called once, after the process' memory was cleared.  NULL, or why it fails. */
const char *tbd_stub_set_up(struct tbd_plan_head *plan);
/* Maps areas for what nobody reads (RING-7), and gives the ring that for a partial replay.  False: the system refuses. */
bool tbd_stub_map_unread(struct tbd_ring *ring);
/* The window's blocks are only counted, and its records go aside. */
void tbd_stub_use_unread(struct tbd_ring *ring);
/* Gives up descriptors, resources and system calls.  NULL, or why that is impossible (static
 * text). */
const char *tbd_stub_confine(void);
/* Carries out the plan; at the window's end it calls tbd_stub_serve(). */
_Noreturn void tbd_stub_run(void);
/* Waits for the next plan and runs it.  Called at the end of a window, on the engine stack. */
_Noreturn void tbd_stub_serve(struct tbd_plan_head *plan);

/* Ends the window: reports the outcome and waits for the next plan. */
_Noreturn void tbd_stub_fail(struct tbd_plan_head *plan, enum tbd_plan_outcome outcome,
                             const char *format, ...) __attribute__((format(printf, 3, 4), cold));
/* Likewise, with TBD_OUTCOME_DIVERGED at the current time and `instruction` of the block entered
 * last. */
_Noreturn void tbd_stub_diverge(uint32_t instruction, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

/* Relative time of the next block entry. */
uint64_t tbd_stub_time(void);
/* The same as the log counts it. */
uint64_t tbd_stub_log_time(void);

/* run_window.c: callbacks of the patcher. */
void tbd_stub_boundary(struct tbd_thread *thread);
/* The program has ended in this window, or all requested results are complete. */
_Noreturn void tbd_stub_finish(void);
/* Flushes the translations of changed code. */
void tbd_stub_code_changed(uint64_t start, uint64_t bytes);

/* logged_events.c */
void tbd_stub_syscall(struct tbd_thread *thread, uint32_t insn_bytes);
void tbd_stub_special(struct tbd_thread *thread, enum tbd_special special, uint32_t insn_bytes);
void tbd_stub_bad_code(struct tbd_thread *thread);
void tbd_stub_bad_target(struct tbd_thread *thread, uint32_t record_bytes);
/* A block at the cut is about to be entered. */
void tbd_stub_asked(struct tbd_thread *thread);
/* Time of the next logged event that is due between blocks (signal, turn, ...); UINT64_MAX:
 * none. */
uint64_t tbd_stub_between_time(void);
/* Called before translated code continues after the engine has handled an event: replays signals,
 * and handles what is due. */
void tbd_stub_settle(struct tbd_thread *thread);
/* Replays signals and turns that are due now. */
void tbd_stub_between(struct tbd_thread *thread);
/* Replays the system call at rip, or the part of it that is due; the caller then calls
 * tbd_stub_settle(). */
void tbd_stub_call(struct tbd_thread *thread, uint32_t insn_bytes);
/* The thread has waited in the call at rip, and has its turn again. */
void tbd_stub_go_on_with_call(struct tbd_thread *thread, uint32_t insn_bytes);
/* shared_traps.c: takes over the set of instructions in a TBD_MSG_SHARED that is due now; false:
 * none is due. */
bool tbd_stub_shared(struct tbd_thread *thread);
/* Called when a window begins: the set is empty, or in its first message. */
void tbd_stub_shared_begin(struct tbd_thread *thread);
/* Time of the next block that play left for a reason that replay does not have; UINT64_MAX: none.
 * Before it is entered, tbd_stub_leave_block() makes sure that it is left at the same place. */
uint64_t tbd_stub_left_time(void);
void tbd_stub_leave_block(struct tbd_thread *thread);
/* Is the log at its end, and this block the window's last?  Then the program was killed, or play
 * let it go. */
bool tbd_stub_is_where_play_stopped(void);
/* End the replay if it needs registers that this processor lacks (vectors.h): upper halves in use,
 * which instructions of this processor would clear; registers named by the instruction at rip. */
void tbd_stub_need_upper_halves(void);
void tbd_stub_need_registers(const struct tbd_thread *thread);
/* The program itself faulted.  Its registers are exact, and `insn` instructions of the block
 * entered last have run. */
_Noreturn void tbd_stub_faulted(uint32_t insn, int signo, uint64_t address);

/* Play detached here, or something diverged. */
void tbd_stub_detached(const char *why);

/* thread_turns.c: a logged THREAD message that is due. */
void tbd_stub_turn(struct tbd_thread *thread, const struct tbd_message *message);
/* The registers of a waiting thread; `image` has space for an xsave image.  False: no thread has
 * this tid. */
bool tbd_stub_thread_state(uint32_t tid, struct tbd_regs *regs, void *image);
/* Sends REGS for all waiting threads. */
void tbd_stub_send_threads(struct tbd_thread *thread);

/* areas.c */
uint64_t tbd_stub_reserve_area(uint64_t lo, uint64_t hi, uint64_t bytes);

/* fault.c.  False if the handlers cannot be installed. */
bool tbd_stub_catch_faults(void);

#pragma GCC visibility pop

#endif
