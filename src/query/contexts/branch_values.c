// SPDX-License-Identifier: MIT
/* branch_values.c - see branch_values.h */
#include "query/contexts/branch_values.h"

/* ---- counts, product ---- */

static void find_counts(const struct tbd_branch_function *f, uint64_t value,
                        struct tbd_branch_answer *out)
{
    uint64_t fields = 0;

    for (uint32_t i = 0; i < f->count; i++) {
        uint64_t field = tbd_branch_field(f, i);

        fields |= field;
        out->ways[0].times[i] = (value & field) >> __builtin_ctzll(field);
        if ((value & field) == field)
            out->full |= 1ull << i;
    }
    out->count = (value & ~fields) == 0;
}

static void find_factors(const struct tbd_branch_function *f, uint64_t value,
                         struct tbd_branch_answer *out)
{
    for (uint32_t i = 0; value != 0 && i < f->count; i++)
        for (; value % tbd_branch_prime(i) == 0; value /= tbd_branch_prime(i))
            out->ways[0].times[i]++;
    out->count = value == 1;
}

/* ---- xor ---- */

struct equations {
    uint64_t number[TBD_BRANCH_MAX]; /* its highest bit is in no other one */
    uint64_t of[TBD_BRANCH_MAX];     /* of which branches it is made */
    uint32_t count;
    uint64_t none[TBD_BRANCH_MAX]; /* sets of branches that come to 0 */
    uint32_t none_count;
};

static uint64_t highest(uint64_t number)
{
    return 1ull << (63 - __builtin_clzll(number));
}

static void reduce(const struct equations *e, uint64_t *number, uint64_t *of)
{
    for (uint32_t i = 0; i < e->count; i++)
        if (*number & highest(e->number[i])) {
            *number ^= e->number[i];
            *of ^= e->of[i];
        }
}

static void add_number(struct equations *e, uint64_t number, uint64_t of)
{
    reduce(e, &number, &of);
    if (number == 0) {
        e->none[e->none_count++] = of;
        return;
    }
    for (uint32_t i = 0; i < e->count; i++)
        if (e->number[i] & highest(number)) {
            e->number[i] ^= number;
            e->of[i] ^= of;
        }
    e->number[e->count] = number;
    e->of[e->count++] = of;
}

static void find_odd(const struct tbd_branch_function *f, uint64_t value,
                     struct tbd_branch_answer *out)
{
    struct equations e = { .count = 0 };
    uint64_t of = 0, sets;

    for (uint32_t i = 0; i < f->count; i++)
        add_number(&e, tbd_branch_number(f, i), 1ull << i);
    reduce(&e, &value, &of);
    if (value != 0)
        return;
    sets = e.none_count < 6 ? 1ull << e.none_count : TBD_BRANCH_ANSWERS;
    out->is_complete = e.none_count <= 6;
    for (uint64_t set = 0; set < sets; set++) {
        uint64_t odd = of;

        for (uint32_t n = 0; n < e.none_count && n < 6; n++)
            odd ^= set >> n & 1 ? e.none[n] : 0;
        for (uint32_t i = 0; i < f->count; i++)
            out->ways[out->count].times[i] = odd >> i & 1;
        out->count++;
    }
}

enum tbd_status tbd_branch_find(const struct tbd_branch_code *code, enum tbd_branch_scheme scheme,
                                uint64_t value, struct tbd_branch_answer *out)
{
    *out = (struct tbd_branch_answer){ .is_complete = true };
    if (code->function.count == 0 || code->is_full)
        return TBD_OK;
    switch (scheme) {
    case TBD_BRANCH_COUNTS: find_counts(&code->function, value, out); break;
    case TBD_BRANCH_PRODUCT: find_factors(&code->function, value, out); break;
    case TBD_BRANCH_XOR: find_odd(&code->function, value, out); break;
    case TBD_BRANCH_SUM: return tbd_branch_find_paths(code, value, out);
    case TBD_BRANCH_SCHEMES:
    default: break;
    }
    return TBD_OK;
}
