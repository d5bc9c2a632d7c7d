// SPDX-License-Identifier: MIT
/* allocation.c - no answer of tbdq is a different one because an allocation failed
 *
 * Libraries (libelf, libdw, the demangler) answer a failed allocation as if what they look for did not exist: a name, a
 * line, a frame.  Nobody can tell the two apart afterwards.  So malloc() and the like of this process are these, which
 * lead on to the next ones (libc's, or those of a preloaded library) and look at what comes back.
 *
 * ALLOCATION-1  A small allocation that fails ends the process with a message and status 4.  A large one, which may be
 *     more than any machine has, is answered with NULL and remembered: the command that it was made for fails at its end,
 *     whatever it has found (query/text/shortage.h). (not checked: test_memory.py does) */
#include "query/commands/commands.h"
#include "query/text/shortage.h"

#include "base/status.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LARGE_BYTES (1u << 20)

static void *(*next_malloc)(size_t bytes);
static void *(*next_calloc)(size_t count, size_t bytes);
static void *(*next_realloc)(void *block, size_t bytes);

/* The first allocation is made before there are threads.  dlsym() may allocate: it does without. */
static bool find_next(void)
{
    static bool is_looking;

    if (is_looking)
        return false;
    is_looking = true;
    *(void **)&next_malloc = dlsym(RTLD_NEXT, "malloc");
    *(void **)&next_calloc = dlsym(RTLD_NEXT, "calloc");
    *(void **)&next_realloc = dlsym(RTLD_NEXT, "realloc");
    is_looking = false;
    return true;
}

static bool is_ready(void)
{
    return next_realloc != NULL || find_next();
}

/* No stdio: this may be an allocation of its own. */
static _Noreturn void give_up(void)
{
    const char *parts[] = { "tbdq: ", tbd_status_text(TBD_NOMEM), "\n" };

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (write(STDERR_FILENO, parts[i], strlen(parts[i])) < 0)
            break;
    _exit(TBD_EXIT_SYSTEM);
}

/* Keeps ALLOCATION-1. */
static void *checked(void *block, size_t bytes)
{
    if (block == NULL && bytes != 0) {
        if (bytes < LARGE_BYTES)
            give_up();
        tbd_shortage_note();
        errno = ENOMEM;
    }
    return block;
}

void *malloc(size_t bytes)
{
    return is_ready() ? checked(next_malloc(bytes), bytes) : NULL;
}

void *calloc(size_t count, size_t bytes)
{
    size_t all;

    if (!is_ready())
        return NULL;
    return checked(next_calloc(count, bytes),
                   __builtin_mul_overflow(count, bytes, &all) ? SIZE_MAX : all);
}

void *realloc(void *block, size_t bytes)
{
    return is_ready() ? checked(next_realloc(block, bytes), bytes) : NULL;
}
