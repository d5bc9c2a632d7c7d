// SPDX-License-Identifier: MIT
/* notes.c - a program writes down where it was, by itself
 *
 * Linked to a program that is compiled with -fsanitize-coverage=trace-pc: the compiler calls __sanitizer_cov_trace_pc() in each
 * basic block.  Each thread has a file in the folder NOTES_DIR, named by its number: struct notes, with the addresses that these calls
 * returned to, the last NOTES of them.  It is what rings are compared with (test_noted_rings.py), in the same run.
 *
 * A note is taken by the one instruction at `noted`, with which a block begins: so a signal comes before it or after it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NOTES = 1 << 16 };

struct notes {
    uint64_t count;
    uint64_t places[NOTES];
};

static __thread struct notes *notes;
static __thread int is_beginning;

void __sanitizer_cov_trace_pc(void);

/* NULL: the program runs without a folder, or this is called from its own calls. */
__attribute__((noinline)) static struct notes *begin(void)
{
    const char *folder = getenv("NOTES_DIR");
    char path[300];
    void *at;
    int fd;

    if (is_beginning || folder == NULL)
        return NULL;
    is_beginning = 1;
    snprintf(path, sizeof(path), "%s/%ld", folder, syscall(SYS_gettid));
    fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(struct notes)) != 0)
        abort();
    at = mmap(NULL, sizeof(struct notes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED || close(fd) != 0)
        abort();
    notes = at;
    is_beginning = 0;
    return at;
}

/* A forked child has notes of its own. */
static void forget(void)
{
    notes = NULL;
}

__attribute__((constructor)) static void start(void)
{
    pthread_atfork(NULL, NULL, forget);
}

__attribute__((noinline)) void __sanitizer_cov_trace_pc(void)
{
    struct notes *own = notes;
    uint64_t n = 1;

    if (own == NULL && (own = begin()) == NULL)
        return;
    __asm__ volatile("jmp noted\n\t.globl noted\nnoted: xadd %0, %1"
                     : "+r"(n), "+m"(own->count)
                     :
                     : "memory", "cc");
    own->places[n % NOTES] = (uint64_t)(uintptr_t)__builtin_return_address(0);
}
