// SPDX-License-Identifier: MIT
/* handed_laps.h - laps that are over and wait to be condensed, by the collector or by their thread (option `condensed`)
 *
 * A ring of TBD_LAP_BYTES takes turns in TBD_LAPS places: its area, and others of this length beside it, each with a guard page.  From
 * lap `turned_from` on a lap lies in place (lap - turned_from) % TBD_LAPS, and none begins before the one that lay there is in a chunk
 * (condensed.h).  So all laps between the newest chunk's and the ring's own are whole, each in its place, whoever has died.  Rings of
 * another length have one place; so have all if `turned_from` is 0.
 *
 * A lap that waits is condensed by whoever comes first, and its bits are put into a chunk by its thread alone, in their order.  The
 * collector takes a lap, leaves its bits in the memory, and says so; if the thread cannot wait it takes the lap back and condenses
 * it itself, and what the collector says afterwards is not believed: the number in `state` is another one then.
 *
 *     the thread     LAP_OURS -> LAP_WAITS with the next number; from any -> LAP_OURS
 *     the collector  LAP_WAITS -> LAP_TAKEN -> LAP_DONE, with the same number
 *
 * HANDED_LAPS-1  A lap that waits, is taken or is done is not written to. (not checked: test_condensed.py) */
#ifndef TBD_FORMAT_HANDED_LAPS_H
#define TBD_FORMAT_HANDED_LAPS_H

#include <stdint.h>

#define TBD_LAPS           4u
#define TBD_LAP_BYTES      (256u << 10)
#define TBD_LAP_STRIDE     (TBD_LAP_BYTES + 4096u) /* of places beside the area */
#define TBD_LAP_BITS_BYTES (64u << 10)             /* that the collector may leave of a lap */

enum tbd_lap_step { TBD_LAP_OURS, TBD_LAP_WAITS, TBD_LAP_TAKEN, TBD_LAP_DONE };
#define TBD_LAP_STEPS 4u

struct tbd_lap {
    uint64_t state;   /*  0: a number times TBD_LAP_STEPS, plus the step */
    uint32_t count;   /*  8: ids */
    uint32_t bytes;   /* 12: of its bits; 0: they are too many */
    uint32_t id_bits; /* 16 */
    uint32_t reserved;
};
_Static_assert(sizeof(struct tbd_lap) == 24, "tbd_lap is 24 bytes");

/* How the collector hears of laps that wait. */
struct tbd_lap_call {
    uint32_t is_heard; /* 1: somebody condenses */
    uint32_t posted;   /* futex: goes up with each lap that waits */
    uint32_t sleeps;   /* 1: the collector has to be woken */
    uint32_t reserved;
};

static inline uint32_t tbd_lap_place(uint64_t turned_from, uint64_t lap)
{
    return turned_from && lap >= turned_from ? (uint32_t)((lap - turned_from) % TBD_LAPS) : 0;
}

#endif
