// SPDX-License-Identifier: MIT
/* past.h - what a thread of a dump held before the dump's end, as far as it follows (mode=crash)
 *
 * The rings say which instructions ran, the dump what registers and memory hold at its end; the simulation (replay/simulate)
 * finds from that what they held before, and for a program that was killed, whose dump has no end, from what was recorded beside
 * the rings:
 *
 *     tbd_past_new()       simulates a stretch of a thread's instructions, up to its end (past.c)
 *     tbd_past_go()        to a position: registers and memory there (past_moment.c)
 *     tbd_past_enter()     the session's questions are about that position now, until tbd_past_leave()
 *
 * A value is exact, inferred or unknown.
 *
 * PAST-1  What is unknown is never given out as a value. (not checked: test_values.py compares with full recordings) */
#ifndef TBD_QUERY_PAST_H
#define TBD_QUERY_PAST_H

#include "query/rings/dump_rings.h"
#include "query/session/session.h"
#include "replay/simulate/simulate.h"

#define TBD_PAST_BEFORE 10000u  /* instructions before a position that are simulated, too */
#define TBD_PAST_FAR    100000u /* if something is unknown with as many */
#define TBD_PAST_MOST                                                                              \
    2000000u /* a position farther from the thread's end has no values: it takes too much memory */

/* Values are wanted in this stretch before the thread's end, as distances in instructions.  to >= from: anywhere. */
struct tbd_past_focus {
    uint64_t from, to;
};

/* From at least `before` instructions before ring step `step` on, if the ring has as many; outside of the focus less becomes known. */
struct tbd_past_others;
struct tbd_past_reach {
    uint64_t step, before;
    struct tbd_past_focus focus;
    const struct tbd_past_others
        *others; /* borrowed as long as the past is there; NULL: none that store */
    /* A thread that stopped where its last block begins, and may come from its end, too, has not run it.  Values may be those of another
     * round then, but are not unknown. */
    bool begins_last;
};

enum tbd_certainty { TBD_UNKNOWN = 0, TBD_INFERRED, TBD_EXACT };

struct tbd_past_pages;

/* A position of the simulation in a function of which what ran before is not known: where its steps begin, after a gap, or after the
 * return from a function that had begun before. */
struct tbd_past_resumed {
    size_t at;
    uint64_t pc;
};

enum { TBD_PAST_RESUMED = 32 };

struct tbd_past {
    struct tbd_session *session; /* borrowed, open on the dump */
    struct tbd_rings *ring;      /* borrowed */
    struct tbd_rings_thread *thread;
    struct tbd_simulation *sim;   /* owned */
    struct tbd_past_pages *pages; /* owned: memory at the end */
    struct tbd_past_focus focus;
    const struct tbd_past_others *others; /* borrowed, or NULL */
    bool begins_last;                     /* of the reach */
    uint64_t first_step;                  /* of the ring, that is simulated; all after it are too */
    uint32_t
        *first_insn; /* owned; of each of these, and of the end: its first step in the simulation */
    struct tbd_past_resumed resumed[TBD_PAST_RESUMED]; /* the first ones */
    size_t resumed_count;
    size_t depth;     /* while steps are added: calls that have not returned */
    bool is_resumed;  /* while steps are added: the next one is in such a function */
    bool ends_inside; /* where the thread was at its end is not certain */

    /* the position, after tbd_past_go() */
    uint64_t step;
    uint32_t insn;
    size_t at;                     /* position in the simulation */
    struct tbd_sim_moment *moment; /* owned; NULL: memory was not asked for yet */
    bool exact_only;               /* what is inferred counts as unknown */
    bool has_entered;
    uint32_t
        used_why; /* since tbd_past_enter(): what inferred memory that was read rests on; 0: nothing */
    struct tbd_session_past hook;
};

/* Simulates the thread's last instructions.  TBD_NOTKEPT, and session->why says so, if the dump lacks the thread's registers. */
TBD_MUST_CHECK enum tbd_status tbd_past_new(struct tbd_session *session, struct tbd_rings *ring,
                                            struct tbd_rings_thread *thread,
                                            const struct tbd_past_reach *reach,
                                            struct tbd_past **out);
/* That TBD_NOTKEPT, for what lies before all that may be simulated. */
enum tbd_status tbd_past_too_far(struct tbd_session *session);
void tbd_past_free(struct tbd_past *past);
/* How many instructions ran from the step on, or TBD_PAST_MOST if there are as many. */
uint64_t tbd_past_insns_from(const struct tbd_rings_thread *thread, uint64_t step);
/* The last step from which to before `step` at least `insns` instructions ran; else the first one. */
uint64_t tbd_past_step_before(const struct tbd_rings_thread *thread, uint64_t step, uint64_t insns);

/* Before instruction `insn` of ring step `step`; `insn` may be the number of those that ran.  False: the simulation does not
 * have it. */
bool tbd_past_go(struct tbd_past *past, uint64_t step, uint32_t insn);
/* A place of the simulation (TBD_RAX, TBD_PLACE_FLAGS, ...) at the position. */
struct tbd_simulated tbd_past_place(const struct tbd_past *past, unsigned place);
/* The bytes at an address, and which of their bits are known and exact. */
void tbd_past_bytes(struct tbd_past *past, uint64_t address, size_t count, uint8_t *bytes,
                    uint8_t *known, uint8_t *exact);
/* The ring's step and instruction that a step of the simulation is. */
void tbd_past_where(const struct tbd_past *past, size_t sim_step, uint64_t *out_step,
                    uint32_t *out_insn);
/* The address of the instruction at the position. */
uint64_t tbd_past_pc(const struct tbd_past *past);

/* Registers and memory of the session are those of the position.  `exact_only`: as far as they are exact. */
void tbd_past_enter(struct tbd_past *past, bool exact_only);
/* The same for one of many rows, which no selected frame is about. */
void tbd_past_enter_row(struct tbd_past *past, bool exact_only);
void tbd_past_leave(struct tbd_past *past);

/* How well those bits of a value are known: as the least of them. */
enum tbd_certainty tbd_past_certainty(struct tbd_simulated value, uint64_t bits);
const char *tbd_certainty_text(enum tbd_certainty certainty);

#endif
