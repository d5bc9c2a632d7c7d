// SPDX-License-Identifier: MIT
/* chaos.h - turns by chance (option chaos=SEED), so that races show
 *
 * Decides by chance how long a turn is, who has the next one, where turns end besides, and how long a signal waits.
 * The run is a row of stretches, each with a mood of its own:
 *
 *     scale    turns of the stretch have 1 to 2 << scale block entries, every power of two equally often; small scales are
 *              rarer after very many turns, which cost more than the program
 *     starved  some threads have no turn while another one is ready
 *     strict   ... nor, for a while, when nobody else is
 *
 * A long starvation shows what waits for too little, short turns show updates that are not atomic; few bugs need both.
 *
 * CHAOS-1  With the same seed, the same threads ready and the same times the decisions are the same: the clock is not
 *     asked, and a thread counts by how many were made before it, not by its id. (not checked: two runs would have to be
 *     compared; test_chaos.py does)
 *
 * Context: APP, with the turn lock or the lock of the queue. */
#ifndef TBD_HOOKS_CHAOS_H
#define TBD_HOOKS_CHAOS_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct tbd_chaos {
    bool is_on;
    bool is_strict;
    bool has_held;        /* this stretch has held its starved threads already */
    uint8_t scale;        /* of this stretch */
    uint32_t gave_way;    /* calls in this stretch for which threads gave way */
    uint64_t turns;       /* so far */
    uint64_t random;      /* the generator's state */
    uint64_t starved;     /* chooses the starved threads; 0: there are none */
    uint64_t stretch_end; /* time */
};

/* Seed 0: turns are as without chaos. */
void tbd_chaos_init(struct tbd_chaos *chaos, uint64_t seed);
/* A new stretch begins if the last one is over. */
void tbd_chaos_look(struct tbd_chaos *chaos, uint64_t now);
/* A thread gives way for a call.  It may be waiting for a starved one: after many such calls nobody is starved any more. */
void tbd_chaos_gave_way(struct tbd_chaos *chaos);
/* Block entries of the next turn. */
uint64_t tbd_chaos_turn(struct tbd_chaos *chaos);
/* True once in `n`. */
bool tbd_chaos_once_in(struct tbd_chaos *chaos, uint32_t n);
uint64_t tbd_chaos_draw(struct tbd_chaos *chaos);
/* `number`: of threads that were made before it. */
bool tbd_chaos_starves(const struct tbd_chaos *chaos, uint32_t number);
/* Among several ready threads, the one for which this is smallest has the turn that `draw` is about. */
uint64_t tbd_chaos_rank(uint64_t draw, uint32_t number);
/* Only starved threads are ready: milliseconds for which they wait all the same, once in a strict stretch; 0: they need
 * not. */
uint32_t tbd_chaos_hold(struct tbd_chaos *chaos);
/* Block entries until a signal is delivered; 0: it does not wait. */
uint64_t tbd_chaos_signal_delay(struct tbd_chaos *chaos);

#pragma GCC visibility pop

#endif
