// SPDX-License-Identifier: MIT
/* operations_strings.c - pcmpistri and pcmpistrm: two strings of 16 bytes compared, as the control byte says
 *
 * Only solved forward.  What comes after the zero that ends a string does not count, so it need not be known. */
#include "replay/simulate/operations.h"
#include "replay/simulate/strings.h"

enum control {
    CONTROL_WORDS = 0x01,
    CONTROL_SIGNED = 0x02,
    CONTROL_HOW = 0x0c, /* how they are compared */
    CONTROL_NEGATIVE = 0x10,
    CONTROL_MASKED = 0x20, /* NEGATIVE only for elements before the second string's end */
    CONTROL_LAST = 0x40,   /* the index is the last one's, not the first one's */
    CONTROL_SPREAD = 0x40, /* the mask has an element, not a bit, for each */
};

enum string_matching { ANY_OF = 0x00, IN_RANGES = 0x04, SAME_PLACES = 0x08, FOUND_AT = 0x0c };

/* Elements before the first zero. */
struct elements {
    int32_t at[16];
    unsigned length;
};

/* False: an element before the end is not known. */
static bool read_elements(const struct tbd_bits lanes[2], unsigned control, struct elements *out)
{
    unsigned width = control & CONTROL_WORDS ? 16 : 8;

    for (out->length = 0; out->length < 128 / width; out->length++) {
        unsigned bit = out->length * width;
        struct tbd_bits element =
            tbd_bits_only(tbd_bits_right(lanes[bit / 64], bit % 64), tbd_bits_low(width));

        if (element.known != tbd_bits_low(width))
            return false;
        if (element.value == 0)
            break;
        out->at[out->length] = control & CONTROL_SIGNED
                                   ? (int32_t)(element.value << (32 - width)) >> (32 - width)
                                   : (int32_t)element.value;
    }
    return true;
}

static bool is_any_of(const struct elements *set, int32_t element)
{
    for (unsigned i = 0; i < set->length; i++)
        if (set->at[i] == element)
            return true;
    return false;
}

static bool is_in_ranges(const struct elements *ranges, int32_t element)
{
    for (unsigned i = 0; i + 1 < ranges->length; i += 2)
        if (ranges->at[i] <= element && element <= ranges->at[i + 1])
            return true;
    return false;
}

/* Does `what` begin at element `from` of `in`, as far as the register goes? */
static bool is_found_at(const struct elements *what, const struct elements *in, unsigned from,
                        unsigned count)
{
    for (unsigned i = 0; i < what->length && from + i < count; i++)
        if (from + i >= in->length || in->at[from + i] != what->at[i])
            return false;
    return true;
}

static bool matches(const struct elements *x, const struct elements *y, unsigned i,
                    unsigned control)
{
    unsigned count = control & CONTROL_WORDS ? 8 : 16;

    switch ((enum string_matching)(control & CONTROL_HOW)) {
    case ANY_OF: return i < y->length && is_any_of(x, y->at[i]);
    case IN_RANGES: return i < y->length && is_in_ranges(x, y->at[i]);
    case SAME_PLACES:
        return i < x->length && i < y->length ? x->at[i] == y->at[i]
                                              : i >= x->length && i >= y->length;
    case FOUND_AT: return is_found_at(x, y, i, count);
    }
    return false;
}

/* A bit for each element of the second string. */
static uint64_t compare(const struct elements *x, const struct elements *y, unsigned control)
{
    unsigned count = control & CONTROL_WORDS ? 8 : 16;
    uint64_t result = 0;

    for (unsigned i = 0; i < count; i++) {
        bool negative =
            control & CONTROL_NEGATIVE && (!(control & CONTROL_MASKED) || i < y->length);

        result |= (uint64_t)(matches(x, y, i, control) != negative) << i;
    }
    return result;
}

static uint64_t index_of(uint64_t result, unsigned control)
{
    if (result == 0)
        return control & CONTROL_WORDS ? 8 : 16;
    return control & CONTROL_LAST ? 63 - (uint64_t)__builtin_clzll(result)
                                  : (uint64_t)__builtin_ctzll(result);
}

static uint64_t flags_of(uint64_t result, const struct elements *x, const struct elements *y,
                         unsigned control)
{
    unsigned count = control & CONTROL_WORDS ? 8 : 16;

    return (result != 0 ? TBD_CF : 0) | (y->length < count ? TBD_ZF : 0) |
           (x->length < count ? TBD_SF : 0) | (result & 1 ? TBD_OF : 0);
}

/* 64 bits of the mask. */
static uint64_t mask_of(uint64_t result, unsigned control, unsigned lane)
{
    unsigned width = control & CONTROL_WORDS ? 16 : 8, each = 64 / width;
    uint64_t mask = 0;

    if (!(control & CONTROL_SPREAD))
        return lane == 0 ? result : 0;
    for (unsigned i = 0; i < each; i++)
        if (result >> (lane * each + i) & 1)
            mask |= tbd_bits_low(width) << (i * width);
    return mask;
}

void tbd_solve_strings(struct tbd_solver *s, const struct tbd_insn_op *op)
{
    const struct tbd_bits first[2] = { s->slot[op->a], s->slot[op->b] };
    const struct tbd_bits second[2] = { s->slot[op->c], s->slot[op->e] };
    struct elements x, y;
    uint64_t result, value = 0;

    if (!read_elements(first, op->aux, &x) || !read_elements(second, op->aux, &y))
        return;
    result = compare(&x, &y, op->aux);
    switch ((enum tbd_strings)op->shift) {
    case TBD_STRINGS_INDEX: value = index_of(result, op->aux); break;
    case TBD_STRINGS_FLAGS: value = flags_of(result, &x, &y, op->aux); break;
    case TBD_STRINGS_LOW: value = mask_of(result, op->aux, 0); break;
    case TBD_STRINGS_HIGH: value = mask_of(result, op->aux, 1); break;
    }
    tbd_solver_learn(s, op->d, tbd_bits_of(value));
}
