// SPDX-License-Identifier: MIT
/* calling.h - the value of a call stack (calling context), the same in engine and tools
 *
 * A stack is the list of the return addresses of the calls that have not returned, from the first one on.  Each
 * has a number, made of its module's file name and its offset in that file: so equal stacks have equal values in
 * every run and on every machine with the same files.  The value of no call is 0.  Each scheme can be undone: the
 * caller's value follows from the callee's and the call's number.
 *
 * CALLING-1  tbd_calling_leave() undoes tbd_calling_enter(). (not checked: test_calling does)
 *
 * No state.  Any context. */
#ifndef TBD_BASE_CALLING_H
#define TBD_BASE_CALLING_H

#include "base/hash.h"

enum tbd_calling_scheme {
    TBD_CALLING_NONE,
    TBD_CALLING_ORDER, /* tells the order of calls apart */
    TBD_CALLING_XOR,
    TBD_CALLING_SUM,
    TBD_CALLING_SCHEMES
};

/* Calls that have no file: of code in no file (offset 0), and of signal handlers by the kernel (offset: the
 * signal). */
#define TBD_CALLING_NO_FILE ""
#define TBD_CALLING_SIGNAL  "[signal]"

/* The module's part of a number: only the last component of the path counts. */
static inline uint64_t tbd_calling_module(const char *path)
{
    uint64_t h = 0xcbf29ce484222325ull;

    for (; *path; path++)
        h = *path == '/' ? 0xcbf29ce484222325ull : (h ^ (uint8_t)*path) * 0x100000001b3ull;
    return tbd_hash64_mix(h);
}

/* The number of the call that returns to `offset` of the file.  Translated code has it as an operand whose length
 * does not depend on its value: bits 16 and 17 differ, bit 62 is set, bit 63 is not. */
static inline uint64_t tbd_calling_number(uint64_t module, uint64_t offset)
{
    uint64_t h = tbd_hash64_mix(module + offset * 0x9fb21c651e98df25ull);

    h = tbd_hash64_mix(h ^ offset);
    h = (h & ~(1ull << 16)) | (~h >> 1 & 1ull << 16);
    return (h & ~(3ull << 62)) | 1ull << 62;
}

#define TBD_CALLING_TURN  27u
#define TBD_CALLING_NINTH 0x8e38e38e38e38e39ull /* times 9 is 1 */

/* What the order scheme adds. */
static inline int32_t tbd_calling_addend(uint64_t number)
{
    return (int32_t)(uint32_t)number;
}

static inline uint64_t tbd_calling_enter(enum tbd_calling_scheme scheme, uint64_t value,
                                         uint64_t number)
{
    switch (scheme) {
    case TBD_CALLING_ORDER:
        value = value >> TBD_CALLING_TURN | value << (64 - TBD_CALLING_TURN);
        return value * 9 + (uint64_t)(int64_t)tbd_calling_addend(number);
    case TBD_CALLING_XOR: return value ^ number;
    case TBD_CALLING_SUM: return value + number;
    case TBD_CALLING_NONE:
    case TBD_CALLING_SCHEMES:
    default: return 0;
    }
}

static inline uint64_t tbd_calling_leave(enum tbd_calling_scheme scheme, uint64_t value,
                                         uint64_t number)
{
    switch (scheme) {
    case TBD_CALLING_ORDER:
        value = (value - (uint64_t)(int64_t)tbd_calling_addend(number)) * TBD_CALLING_NINTH;
        return value << TBD_CALLING_TURN | value >> (64 - TBD_CALLING_TURN);
    case TBD_CALLING_XOR: return value ^ number;
    case TBD_CALLING_SUM: return value - number;
    case TBD_CALLING_NONE:
    case TBD_CALLING_SCHEMES:
    default: return 0;
    }
}

#endif
