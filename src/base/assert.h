// SPDX-License-Identifier: MIT
/* assert.h - what must hold, checked in builds with TBD_ASSERTS
 *
 *   TBD_INVARIANT("RING-1", condition)  what the head of a file states under that label
 *   TBD_ASSERT(condition)               what else must hold here
 *
 * Input (bytes of a trace, the user's text, memory of the program) is validated, never asserted: a
 * failure here is a mistake in tbd.  Ordinary processes print it and abort.  The engine must not
 * abort the program: it remembers the first failure, and at the next boundary play stops recording
 * and lets the program go on natively (hooks/boot/play.c); a replay process gives up the
 * window and says why (replay/stub).
 *
 * Without TBD_ASSERTS a condition is compiled and never evaluated: it may call static functions
 * that nothing else calls.  Contexts: all. */
#ifndef TBD_BASE_ASSERT_H
#define TBD_BASE_ASSERT_H

#include <stddef.h>

#ifndef TBD_ASSERTS
#define TBD_ASSERTS 0
#endif

#define TBD_ASSERT(condition)           TBD_ASSERT_TEXT(condition, #condition)
#define TBD_INVARIANT(label, condition) TBD_ASSERT_TEXT(condition, label ": " #condition)
#define TBD_ASSERT_TEXT(condition, text)                                                           \
    do {                                                                                           \
        if (TBD_ASSERTS && __builtin_expect(!(condition), 0))                                      \
            tbd_assert_failed("internal error: " text " (" __FILE_NAME__                           \
                              ":" TBD_ASSERT_LINE(__LINE__) ")");                                  \
    } while (0)
#define TBD_ASSERT_LINE(line)   TBD_ASSERT_STRING(line)
#define TBD_ASSERT_STRING(line) #line

/* `what` is a literal.  Does not return in ordinary processes. */
void tbd_assert_failed(const char *what) __attribute__((cold));

/* Engine: the first assertion that failed in this process; NULL: none has. */
const char *tbd_assert_seen(void);

static inline const char *tbd_assert_failure(void)
{
    return TBD_ASSERTS ? tbd_assert_seen() : NULL;
}

#endif
