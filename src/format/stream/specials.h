// SPDX-License-Identifier: MIT
/* specials.h - instructions that the engine executes for the program, and sets of them
 *
 * The numbers are in messages (TBD_MSG_SPECIAL) and so in traces: new ones come last. */
#ifndef TBD_FORMAT_SPECIALS_H
#define TBD_FORMAT_SPECIALS_H

#include <stdbool.h>
#include <stdint.h>

enum tbd_special {
    TBD_SPECIAL_RDTSC = 1,
    TBD_SPECIAL_RDTSCP,
    TBD_SPECIAL_CPUID,
    TBD_SPECIAL_RDRAND,
    TBD_SPECIAL_RDSEED,
    TBD_SPECIAL_RDPID,
    TBD_SPECIAL_XGETBV,
    TBD_SPECIAL_XSAVE,
    TBD_SPECIAL_REP_STORE, /* rep movs/stos/ins: one event with a range, one or more messages */
    /* AVX masked moves, scatters, maskmovdqu, rows of tiles: the bytes really written */
    TBD_SPECIAL_MASKED_STORE,
    TBD_SPECIAL_OTHER_STORE, /* long stores: fxsave, ... */
    TBD_SPECIAL_RDFSBASE,
    TBD_SPECIAL_WRFSBASE,
    TBD_SPECIAL_RDGSBASE,
    TBD_SPECIAL_WRGSBASE,
    TBD_SPECIAL_OTHER,
    TBD_SPECIAL_SHARED, /* any instruction that is in the set of TBD_MSG_SHARED */
    TBD_SPECIAL_LOADS,  /* loads whose address or length is not known when code is translated:
                         * repeated lods, scas, cmps; gathers; rows of tiles */
    TBD_SPECIAL_APART,  /* plain accesses that translated code cannot make: relative to gs without a
                           register for the address; as SHARED otherwise */
    TBD_SPECIAL_STATE,  /* outputs that depend on the processor's state: rdpmc, lsl, reads of
                           segment registers, xtest */
    TBD_SPECIAL_SEGMENT, /* loads of a segment register */
    TBD_SPECIAL_XBEGIN,  /* a transaction, which aborts at once */
};

/* A set of them: bit k is kind k. */
typedef uint32_t tbd_specials;

#define TBD_SPECIALS_1(kind) ((tbd_specials)1 << (kind))
/* What they write to general registers is another value in another run. */
#define TBD_SPECIALS_OF_THE_RUN                                                                    \
    (TBD_SPECIALS_1(TBD_SPECIAL_RDTSC) | TBD_SPECIALS_1(TBD_SPECIAL_RDTSCP) |                      \
     TBD_SPECIALS_1(TBD_SPECIAL_CPUID) | TBD_SPECIALS_1(TBD_SPECIAL_RDRAND) |                      \
     TBD_SPECIALS_1(TBD_SPECIAL_RDSEED) | TBD_SPECIALS_1(TBD_SPECIAL_RDPID) |                      \
     TBD_SPECIALS_1(TBD_SPECIAL_XGETBV))
/* Those for which native play stops the program: also what a processor calls in use (xsave) and whether
 * a transaction begins are of the run. */
#define TBD_SPECIALS_NATIVE_STOPS                                                                  \
    (TBD_SPECIALS_OF_THE_RUN | TBD_SPECIALS_1(TBD_SPECIAL_XSAVE) |                                 \
     TBD_SPECIALS_1(TBD_SPECIAL_XBEGIN))

static inline bool tbd_specials_have(tbd_specials set, enum tbd_special kind)
{
    return (set >> kind & 1) != 0;
}

#endif
