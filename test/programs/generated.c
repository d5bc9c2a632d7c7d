// SPDX-License-Identifier: MIT
/* Code written at run time, made executable, run, changed, run again; called where it was unmapped, moved away, or may not be
 * executed any more. */
#define _GNU_SOURCE
#include "check.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#define BYTES 8192u

static sigjmp_buf back;

/* mov $value, %eax; ret */
static void write_code(unsigned char *at, uint32_t value)
{
    at[0] = 0xb8;
    memcpy(at + 1, &value, 4);
    at[5] = 0xc3;
}

static unsigned call(unsigned char *at)
{
    return ((unsigned (*)(void))(uintptr_t)at)();
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)context;
    siglongjmp(back, info->si_code);
}

/* Why the call is refused (SEGV_*); 0: it is not. */
static int refusal(unsigned char *at)
{
    int code = sigsetjmp(back, 1);

    if (code == 0)
        call(at);
    return code;
}

static void map_code(unsigned char *at, uint32_t value)
{
    CHECK(mmap(at, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
    write_code(at, value);
    CHECK(mprotect(at, BYTES, PROT_READ | PROT_EXEC) == 0);
    CHECK(call(at) == value);
}

/* It ran before, each time. */
static void call_what_is_gone(unsigned char *at)
{
    struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };

    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    map_code(at, 1);
    CHECK(munmap(at, BYTES) == 0 && refusal(at) == SEGV_MAPERR);
    map_code(at, 2);
    CHECK(mprotect(at, BYTES, PROT_READ) == 0 && refusal(at) == SEGV_ACCERR);
    map_code(at, 3);
    CHECK(mremap(at, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, at + 2 * BYTES) == at + 2 * BYTES);
    CHECK(call(at + 2 * BYTES) == 3 && refusal(at) == SEGV_MAPERR);
}

int main(void)
{
    unsigned char *page = mmap(NULL, 4 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned sum = 0;

    CHECK(page != MAP_FAILED);
    for (uint32_t i = 0; i < 100; i++) {
        CHECK(mprotect(page, BYTES, PROT_READ | PROT_WRITE) == 0);
        write_code(page, i * 3);
        write_code(page + 4093, i * 5); /* crosses into the second page */
        CHECK(mprotect(page, BYTES, PROT_READ | PROT_EXEC) == 0);
        sum += call(page);
        sum += call(page + 4093);
    }
    CHECK(sum == 8 * 99 * 50);
    call_what_is_gone(page);
    printf("%u\n", sum);
    return 0;
}
