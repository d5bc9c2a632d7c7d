// SPDX-License-Identifier: MIT
/* check.h - what the test programs share
 *
 * A program checks itself, prints only what is the same in every run (no addresses, no
 * pids, no times) and exits with 0.  Comments of the form "// key: value" in its first lines tell the
 * harness (test/e2e/run_program.py) how to build and run it and what to expect:
 *   libs: flags: cpu:        libraries, compiler flags, CPU features without which it is skipped
 *   args: stdin: env:        how it is run
 *   long_env:                more of env: with TBD_LONG=1
 *   options:                 TBD_OPTIONS, beside the folder
 *   exit: signal:            expected end; default exit 0
 *   end: WORD                how the trace says that it ended, if not as the program did
 *   missing: WORD            the trace must say that it lacks something (a note with WORD)
 *   native: WORD             native play lets the program go, with a reason that has WORD
 *   native_fails: WHY        native play cannot do it yet
 *   free_fails: WHY          a free run does not do it
 *   replay: no               windows need not verify yet
 * A program that cannot be tested here says why and exits with 77.
 */
#ifndef TEST_PROGRAMS_CHECK_H
#define TEST_PROGRAMS_CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                   \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);                 \
            fflush(stdout);                                                                \
            _Exit(99);                                                                     \
        }                                                                                  \
    } while (0)

/* Deterministic numbers: xorshift64. */
static inline uint64_t check_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* FNV-1a over a range: one number for a lot of memory. */
static inline uint64_t check_hash(const void *data, size_t bytes)
{
    const unsigned char *p = data;
    uint64_t hash = 0xcbf29ce484222325u;

    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ p[i]) * 0x100000001b3u;
    return hash;
}

#endif
