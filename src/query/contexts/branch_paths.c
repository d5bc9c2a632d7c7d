// SPDX-License-Identifier: MIT
/* branch_paths.c - which branches have a sum: a way through the function without repetition, and rounds of its loops
 *
 * The ways lead from the function's start to a block that calls tbd_branch_context() (or that calls at all, where none
 * does).  Where one would repeat a block there is a loop: what lies between is a round.  Then the value is the sum of a
 * way and of some rounds of up to three loops.  How many rounds the last loop has follows from the others, as odd numbers have
 * inverses; it must be small enough that it is none by chance. */
#include "query/contexts/branch_values.h"

#include <stdlib.h>

#define MOST_WAYS   (1u << 16)
#define MOST_LOOPS  256u
#define MOST_STEPS  (4u << 20)
#define MOST_TRIED  (1ull << 25)
#define MOST_EACH   4096u
#define CHANCE_BITS 50 /* answers by chance: one in 2^14 searches */
#define WORDS       (TBD_BRANCH_BLOCKS / 64)

/* Blocks without repetition. */
struct stretch {
    uint64_t sum, taken; /* a bit for each branch that jumps */
    uint64_t blocks[WORDS];
};

struct path_search {
    const struct tbd_branch_code *code;
    struct tbd_branch_answer *out;
    uint64_t value;
    uint64_t numbers[TBD_BRANCH_MAX];
    struct stretch *ways, *loops; /* owned */
    size_t way_count, loop_count;
    uint32_t depth_of[TBD_BRANCH_BLOCKS]; /* 1 + place in the path */
    struct stretch path[TBD_BRANCH_BLOCKS + 1];
    bool asks;
    uint32_t steps;
};

/* ---- ways and loops ---- */

static bool has(const struct stretch *all, size_t count, const struct stretch *one)
{
    for (size_t i = 0; i < count; i++)
        if (all[i].sum == one->sum)
            return true;
    return false;
}

static void add(struct path_search *s, struct stretch *all, size_t *count, size_t most,
                const struct stretch *one)
{
    if (*count == most)
        s->out->is_complete = false;
    else if (!has(all, *count < 4096 ? *count : 4096, one)) /* later ones may be there twice */
        all[(*count)++] = *one;
}

static void go_to(struct path_search *s, uint32_t block, uint32_t depth, uint64_t branch);

static void close_loop(struct path_search *s, uint32_t block, uint32_t depth, uint64_t branch)
{
    const struct stretch *from = &s->path[s->depth_of[block] - 1];
    struct stretch round = s->path[depth];

    round.taken ^= from->taken;
    round.sum -= from->sum;
    if (branch < TBD_BRANCH_MAX) {
        round.taken |= 1ull << branch;
        round.sum += s->numbers[branch];
    }
    for (uint32_t i = 0; i < WORDS; i++)
        round.blocks[i] &= ~from->blocks[i];
    round.blocks[block / 64] |= 1ull << block % 64;
    if (round.sum != 0)
        add(s, s->loops, &s->loop_count, MOST_LOOPS, &round);
}

static void follow(struct path_search *s, uint32_t block, uint32_t depth)
{
    const struct tbd_branch_block *b = &s->code->blocks[block];

    if (s->asks ? b->asks : b->calls)
        add(s, s->ways, &s->way_count, MOST_WAYS, &s->path[depth]);
    if (b->falls != TBD_BRANCH_NO_BLOCK)
        go_to(s, b->falls, depth, TBD_BRANCH_MAX);
    if (b->jumps != TBD_BRANCH_NO_BLOCK)
        go_to(s, b->jumps, depth, b->branch);
    for (uint32_t i = 1; b->is_indirect && i < s->code->block_count; i++)
        if (!s->code->blocks[i].is_led_to)
            go_to(s, i, depth, TBD_BRANCH_MAX);
}

/* s->path[depth] is what led to where the branch is. */
static void go_to(struct path_search *s, uint32_t block, uint32_t depth, uint64_t branch)
{
    struct stretch *next = &s->path[depth + 1];

    if (++s->steps > MOST_STEPS) {
        s->out->is_complete = false;
        return;
    }
    if (s->depth_of[block]) {
        close_loop(s, block, depth, branch);
        return;
    }
    *next = s->path[depth];
    if (branch < TBD_BRANCH_MAX) {
        next->taken |= 1ull << branch;
        next->sum += s->numbers[branch];
    }
    s->depth_of[block] = depth + 1 + 1;
    next->blocks[block / 64] |= 1ull << block % 64;
    follow(s, block, depth + 1);
    s->depth_of[block] = 0;
}

/* ---- answers ---- */

/* A way, and rounds of loops that it comes by. */
struct rounds {
    const struct stretch *way;
    const struct stretch *loop[3];
    uint64_t times[3];
    uint32_t count;
    uint64_t each, most; /* rounds to be tried: of the loops before the last, of that */
};

static bool meets(const struct stretch *one, const uint64_t *blocks)
{
    for (uint32_t i = 0; i < WORDS; i++)
        if (one->blocks[i] & blocks[i])
            return true;
    return false;
}

/* Does the way come by each loop, or by one that comes by it? */
static bool is_connected(const struct rounds *rounds)
{
    struct stretch reached = *rounds->way;
    uint32_t left = (1u << rounds->count) - 1, before;

    do {
        before = left;
        for (uint32_t i = 0; i < rounds->count; i++)
            if (left >> i & 1 && meets(rounds->loop[i], reached.blocks)) {
                left &= ~(1u << i);
                for (uint32_t w = 0; w < WORDS; w++)
                    reached.blocks[w] |= rounds->loop[i]->blocks[w];
            }
    } while (left != before);
    return left == 0;
}

static void found(struct path_search *s, const struct rounds *rounds)
{
    struct tbd_branch_taken *out = &s->out->ways[s->out->count];

    if (!is_connected(rounds))
        return;
    if (s->out->count == TBD_BRANCH_ANSWERS) {
        s->out->is_complete = false;
        return;
    }
    for (uint32_t i = 0; i < s->code->function.count; i++) {
        out->times[i] = rounds->way->taken >> i & 1;
        for (uint32_t k = 0; k < rounds->count; k++)
            out->times[i] += (rounds->loop[k]->taken >> i & 1) * rounds->times[k];
    }
    for (uint32_t i = 0; i < s->out->count; i++)
        if (__builtin_memcmp(&s->out->ways[i], out, sizeof(*out)) == 0)
            return;
    s->out->count++;
}

/* number * times == value; 0: never, or not so few times. */
static uint64_t times_of(uint64_t value, uint64_t number, uint64_t most)
{
    unsigned even = (unsigned)__builtin_ctzll(number);
    uint64_t odd = number >> even, inverse = odd, times;

    if (value & ((1ull << even) - 1))
        return 0;
    for (unsigned i = 0; i < 5; i++)
        inverse *= 2 - odd * inverse;
    times = (value >> even) * inverse;
    if (even)
        times &= (1ull << (64 - even)) - 1;
    return times <= most ? times : 0;
}

/* The last loop's rounds follow from what is left. */
static void try_last(struct path_search *s, struct rounds *rounds, uint64_t left, size_t first)
{
    uint32_t last = rounds->count++;

    for (size_t i = first; i < s->loop_count; i++) {
        rounds->loop[last] = &s->loops[i];
        rounds->times[last] = times_of(left, s->loops[i].sum, rounds->most);
        if (rounds->times[last])
            found(s, rounds);
    }
    rounds->count = last;
}

/* What is left is to be made of `before` loops from `first` on, and of a last one.  The last of two comes in any order: it
 * is the one that may have many rounds. */
static void try_loops(struct path_search *s, struct rounds *rounds, uint64_t left, size_t first,
                      uint32_t before)
{
    uint32_t at = rounds->count;

    if (before == 0) {
        try_last(s, rounds, left, at == 1 ? 0 : first);
        return;
    }
    for (size_t i = first; i < s->loop_count; i++) {
        uint64_t rest = left;

        rounds->loop[at] = &s->loops[i];
        for (rounds->times[at] = 1; rounds->times[at] <= rounds->each; rounds->times[at]++) {
            rest -= s->loops[i].sum;
            rounds->count = at + 1;
            try_loops(s, rounds, rest, i + 1, before - 1);
        }
    }
    rounds->count = at;
}

static uint64_t root(uint64_t number)
{
    uint64_t r = 0;

    while ((r + 1) * (r + 1) <= number)
        r++;
    return r;
}

/* How many rounds can be tried in bounded time? */
static void set_limits(const struct path_search *s, uint32_t loops, struct rounds *rounds)
{
    uint64_t tried = s->way_count * s->loop_count, loop = s->loop_count;

    rounds->each = 1;
    if (loops == 2)
        rounds->each = MOST_TRIED / (tried * loop + 1);
    if (loops == 3)
        rounds->each = root(MOST_TRIED / (tried * loop * loop / 6 + 1));
    if (rounds->each > MOST_EACH)
        rounds->each = MOST_EACH;
    rounds->most = (1ull << CHANCE_BITS) / (loops >= 2 ? MOST_TRIED : tried + 1);
}

static void try_rounds(struct path_search *s, uint32_t loops)
{
    struct rounds rounds = { .count = 0 };

    set_limits(s, loops, &rounds);
    if (rounds.each == 0)
        s->out->is_complete = false;
    for (size_t i = 0; i < s->way_count && rounds.each != 0; i++) {
        rounds.way = &s->ways[i];
        if (loops != 0)
            try_loops(s, &rounds, s->value - s->ways[i].sum, 0, loops - 1);
        else if (s->ways[i].sum == s->value)
            found(s, &rounds);
    }
}

static void search(struct path_search *s)
{
    for (uint32_t i = 0; i < s->code->function.count; i++)
        s->numbers[i] = tbd_branch_number(&s->code->function, i);
    for (uint32_t i = 0; i < s->code->block_count; i++)
        s->asks |= s->code->blocks[i].asks;
    go_to(s, 0, 0, TBD_BRANCH_MAX);
    for (uint32_t loops = 0; loops <= 3 && s->out->count == 0; loops++)
        try_rounds(s, loops);
}

enum tbd_status tbd_branch_find_paths(const struct tbd_branch_code *code, uint64_t value,
                                      struct tbd_branch_answer *out)
{
    struct path_search *s = calloc(1, sizeof(*s));
    bool ok = s != NULL;

    if (ok && code->block_count != 0) {
        *s = (struct path_search){ .code = code,
                                   .out = out,
                                   .value = value,
                                   .ways = calloc(MOST_WAYS, sizeof(struct stretch)),
                                   .loops = calloc(MOST_LOOPS, sizeof(struct stretch)) };
        ok = s->ways != NULL && s->loops != NULL;
    }
    if (ok && code->block_count != 0)
        search(s);
    else
        out->is_complete = false;
    if (s) {
        free(s->ways);
        free(s->loops);
    }
    free(s);
    return ok ? TBD_OK : TBD_NOMEM;
}
