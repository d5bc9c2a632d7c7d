// SPDX-License-Identifier: MIT
/* chaos.c - see chaos.h */
#include "hooks/threads/chaos.h"

/* Each a power of two of block entries, drawn evenly. */
#define STRETCH_LEAST_BITS 6u
#define STRETCH_BITS       12u   /* to 2^19 */
#define STRETCH_TURNS      1024u /* of the longest size, at most */
#define SCALE_BITS         15u

/* A turn costs as much as thousands of block entries.  FREE_TURNS cost what they may; later there is one for TURN_ENTRIES
 * block entries on average: where there were more, scales begin with SPARING_SCALE. */
#define FREE_TURNS    1024u
#define TURN_ENTRIES  128u
#define SPARING_SCALE 8u

#define SIGNAL_BITS 14u

/* One stretch in two starves threads, each with this chance; one of those in four is strict. */
#define STARVING_STRETCH 2u
#define STARVED          4u
#define STRICT           4u
#define HOLD_MS_BITS     8u
#define STARVED_CALLS    64u /* a loop around sched_yield() waits for somebody */

/* splitmix64 */
static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
    value = (value ^ value >> 27) * 0x94d049bb133111eb;
    return value ^ value >> 31;
}

uint64_t tbd_chaos_draw(struct tbd_chaos *chaos)
{
    chaos->random += 0x9e3779b97f4a7c15;
    return mix(chaos->random);
}

static uint32_t below(struct tbd_chaos *chaos, uint32_t n)
{
    return (uint32_t)((tbd_chaos_draw(chaos) >> 32) * n >> 32);
}

/* From 1 to 2 << bits. */
static uint64_t power(struct tbd_chaos *chaos, uint32_t bits)
{
    uint64_t low = 1ull << below(chaos, bits + 1);

    return low + (tbd_chaos_draw(chaos) & (low - 1)) + (low > 1);
}

bool tbd_chaos_once_in(struct tbd_chaos *chaos, uint32_t n)
{
    return chaos->is_on && below(chaos, n) == 0;
}

void tbd_chaos_init(struct tbd_chaos *chaos, uint64_t seed)
{
    *chaos = (struct tbd_chaos){ .is_on = seed != 0, .random = mix(seed) };
}

void tbd_chaos_look(struct tbd_chaos *chaos, uint64_t now)
{
    uint64_t length;
    uint32_t least = 0;

    if (!chaos->is_on || now < chaos->stretch_end)
        return;
    if (chaos->turns > FREE_TURNS + now / TURN_ENTRIES)
        least = SPARING_SCALE;
    chaos->scale = (uint8_t)(least + below(chaos, SCALE_BITS - least));
    length = power(chaos, STRETCH_BITS) << STRETCH_LEAST_BITS;
    if (length > (uint64_t)STRETCH_TURNS << chaos->scale)
        length = (uint64_t)STRETCH_TURNS << chaos->scale;
    chaos->stretch_end = now + length;
    chaos->starved = below(chaos, STARVING_STRETCH) ? 0 : tbd_chaos_draw(chaos) | 1;
    chaos->is_strict = chaos->starved && !below(chaos, STRICT);
    chaos->has_held = false;
    chaos->gave_way = 0;
}

void tbd_chaos_gave_way(struct tbd_chaos *chaos)
{
    if (++chaos->gave_way > STARVED_CALLS)
        chaos->starved = 0;
}

uint64_t tbd_chaos_turn(struct tbd_chaos *chaos)
{
    chaos->turns++;
    return power(chaos, chaos->scale);
}

bool tbd_chaos_starves(const struct tbd_chaos *chaos, uint32_t number)
{
    return chaos->starved && mix(chaos->starved + number) % STARVED == 0;
}

uint64_t tbd_chaos_rank(uint64_t draw, uint32_t number)
{
    return mix(draw ^ (uint64_t)number << 32);
}

uint32_t tbd_chaos_hold(struct tbd_chaos *chaos)
{
    if (!chaos->is_strict || chaos->has_held)
        return 0;
    chaos->has_held = true;
    return (uint32_t)power(chaos, HOLD_MS_BITS - 1);
}

uint64_t tbd_chaos_signal_delay(struct tbd_chaos *chaos)
{
    return below(chaos, 2) ? 0 : power(chaos, SIGNAL_BITS);
}
