#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Under tbd crash: calls about signals, limits and names whose arguments and answers lie in pages that another thread fills (userfaultfd).  That thread makes such
calls, too, and meets new code: nobody may keep it from that while a call waits for its page."""
import os

import tbdtest

SOURCE = """
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CHECK(condition) do if (!(condition)) { printf("%d: %s\\n", __LINE__, #condition); fflush(stdout); _Exit(99); } while (0)
#define PAGE  4096ul
#define PAGES 16ul

struct action {
    unsigned long handler, flags, restorer, mask;
};

static int faults;
static unsigned char *area;
static atomic_uint filled;

/* Written anew for each page: code that nobody has run. */
static void run_new_code(unsigned number)
{
    static unsigned char *code;
    unsigned char bytes[] = { 0xb8, (unsigned char)number, 0, 0, 0, 0xc3 };

    if (!code)
        code = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(code != MAP_FAILED);
    memcpy(code + number * 64, bytes, sizeof(bytes));
    CHECK(((int (*)(void))(uintptr_t)(code + number * 64))() == (int)number);
}

static void *fill(void *argument)
{
    static unsigned char page[PAGE] __attribute__((aligned(4096)));
    struct uffd_msg message;
    sigset_t set, old;
    stack_t stack;

    while (read(faults, &message, sizeof(message)) == sizeof(message)) {
        struct uffdio_copy copy = { .dst = message.arg.pagefault.address & ~(PAGE - 1), .src = (uintptr_t)page, .len = PAGE };

        CHECK(message.event == UFFD_EVENT_PAGEFAULT);
        sigemptyset(&set);
        sigaddset(&set, SIGUSR2);
        CHECK(sigprocmask(SIG_BLOCK, &set, &old) == 0);
        CHECK(sigaltstack(NULL, &stack) == 0);
        run_new_code(filled);
        filled++;
        CHECK(ioctl(faults, UFFDIO_COPY, &copy) == 0);
    }
    return argument;
}

static void *page(unsigned long number)
{
    return area + number * PAGE + 256;
}

int main(void)
{
    struct uffdio_api api = { .api = UFFD_API };
    struct uffdio_register what = { .mode = UFFDIO_REGISTER_MODE_MISSING };
    unsigned long usr1 = 1ul << (SIGUSR1 - 1), mask = 0;
    struct action *action;
    struct rlimit *limit;
    stack_t *stack;
    pthread_t thread;

    faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    if (faults < 0 || ioctl(faults, UFFDIO_API, &api) != 0) {
        printf("no userfaultfd here\\n");
        exit(77);
    }
    area = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(area != MAP_FAILED);
    what.range = (struct uffdio_range){ (uintptr_t)area, PAGES * PAGE };
    CHECK(ioctl(faults, UFFDIO_REGISTER, &what) == 0);
    CHECK(pthread_create(&thread, NULL, fill, NULL) == 0);

    /* answers */
    CHECK(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &usr1, page(0), 8) == 0);
    CHECK(syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, page(1), 8) == 0);
    CHECK(*(unsigned long *)page(1) & usr1);
    CHECK(!(*(unsigned long *)page(0) & usr1));
    CHECK(syscall(SYS_rt_sigaction, SIGUSR2, NULL, page(2), 8) == 0);
    action = page(2);
    CHECK(action->handler == 0);
    CHECK(sigaltstack(NULL, page(3)) == 0);
    stack = page(3);
    CHECK(stack->ss_flags == SS_DISABLE);
    CHECK(syscall(SYS_rt_sigpending, page(4), 8) == 0);
    CHECK(raise(SIGUSR1) == 0);
    CHECK(syscall(SYS_rt_sigtimedwait, &usr1, page(5), NULL, 8) == SIGUSR1);
    CHECK(((siginfo_t *)page(5))->si_signo == SIGUSR1);
    /* arguments: the page has zeros */
    CHECK(syscall(SYS_rt_sigprocmask, SIG_SETMASK, page(6), &mask, 8) == 0);
    CHECK(mask & usr1);
    CHECK(syscall(SYS_rt_sigaction, SIGUSR2, page(7), page(8), 8) == 0);
    CHECK(sigaltstack(page(9), page(10)) == 0); /* none, as before */
    CHECK(prctl(PR_GET_NAME, page(13)) == 0);
    CHECK(strcmp(page(13), "filled_answers") == 0);
    CHECK(syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, page(11)) == 0);
    limit = page(11);
    CHECK(limit->rlim_max != 0);
    CHECK(syscall(SYS_prlimit64, 0, RLIMIT_CORE, page(12), NULL) == 0);
    /* an answer that cannot be written: what was asked for has happened */
    CHECK(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &usr1, 8l, 8) == -1);
    CHECK(syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, 8) == 0 && mask & usr1);
    printf("%u pages were filled\\n", filled);
    fflush(stdout);
    _exit(0);
}
"""


def test_calls_wait_for_pages_without_keeping_anybody(folder):
    source, program = os.path.join(folder, "filled_answers.c"), os.path.join(folder, "filled_answers")
    with open(source, "w", encoding="ascii") as f:
        f.write(SOURCE)
    assert tbdtest.run([tbdtest.need("cc"), "-O1", "-pthread", "-w", "-o", program, source]).code == 0
    native = tbdtest.run([program])
    if native.code == 77:
        raise tbdtest.Skip("no userfaultfd here")
    assert native.code == 0 and native.out == b"14 pages were filled\n", native
    for options in ("mode=free", "mode=crash", "mode=crash,record=0", "mode=crash,context"):
        root = os.path.join(folder, options.replace(",", "-"))
        os.makedirs(root)
        result = tbdtest.run([program], env=tbdtest.trace_env(root, options), timeout=60)
        assert result.code == 0 and result.out == native.out, (options, result)
    tbdtest.wait_organizers(root)


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_") and callable(t)])
