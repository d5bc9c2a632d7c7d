#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Rings under adverse conditions (mode=crash): a program that damages the engine, limits of memory, files and processes, more threads than rings.
The program ends, by itself or of a signal; what there is can be read; where nothing is recorded that is said in one line."""
import os
import resource
import subprocess

import tbdtest

TBD = os.path.join(tbdtest.BUILD, "tbd")
# Writes over a page of the engine's data, argv[1] counted from the first, then makes system calls, loads a library, runs new code.
DAMAGE = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static char maps[1 << 20];
int main(int argc, char **argv)
{
    FILE *file = fopen("/proc/self/maps", "r");
    int page = atoi(argv[1]), seen = 0;
    maps[fread(maps, 1, sizeof(maps) - 1, file)] = '\0';
    for (char *line = strtok(maps, "\n"); line; line = strtok(NULL, "\n")) {
        unsigned long at, end;
        char prot[8];
        sscanf(line, "%lx-%lx %7s", &at, &end, prot);
        for (; at >= 0x500000000000ul && at < 0x500009000000ul && at < end && prot[1] == 'w'; at += 4096)
            if (seen++ == page)
                memset((void *)at, 0xa5, 4096);
    }
    for (int i = 0; i < 1000; i++)
        getppid(), free(malloc(100 + i));
    if (dlopen("libm.so.6", RTLD_NOW) && argc > 2)
        printf("%d\n", seen);
    fclose(file);
    return 7;
}
"""


def crash(argv, root, options="", limit=None):
    """(result, folders of dumps)."""
    os.makedirs(root)
    env = tbdtest.clean_env(tbdtest.trace_env(root, "mode=crash,memory=stacks" + options))
    done = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=limit, timeout=100, check=False)
    tbdtest.wait_organizers(root)
    return tbdtest.Result(done.stdout, done.stderr, done.returncode), [name for name in os.listdir(root) if name not in ("latest", ".modules")]


def test_a_program_that_damages_the_engine(folder):
    """It dies of a signal if the engine does; the collector has the rings."""
    source, program = os.path.join(folder, "damage.c"), os.path.join(folder, "damage")
    with open(source, "w", encoding="ascii") as f:
        f.write(DAMAGE)
    subprocess.run(["cc", "-O1", "-o", program, source, "-ldl"], check=True)
    result, _ = crash([program, "-1", "count"], os.path.join(folder, "count"))
    pages, died, said = int(result.out), 0, 0
    assert result.code == 7 and pages > 100, result
    for page in range(0, pages if tbdtest.LONG else 60):
        root = os.path.join(folder, str(page))
        result, names = crash([program, str(page)], root)
        assert result.code == 7 or result.code < 0, (page, result)
        assert all(line.startswith(b"tbd: ") for line in result.err.splitlines()), (page, result)  # its log level may be there, too
        died, said = died + (result.code < 0), said + (b"internal error: signal" in result.err)
        for name in names:
            for words in (["path", "3"], ["info"]):
                answer = tbdtest.run([tbdtest.TBDQ, "-t", os.path.join(root, name), *words])
                assert answer.code in (0, 1, 3) and answer.err.count(b"\n") <= 2, (page, words, answer)
                assert words == ["info"] or result.code == 7 or answer.code == 0, (page, words, answer)
    assert died and said and died < pages, (died, said)


NO_STACK = r"""
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static char stack[1 << 16];
static void handler(int signal, siginfo_t *info, void *context)
{
    char text[] = "signal 00 code 000\n";
    text[7] += signal / 10, text[8] += signal % 10;
    text[15] += info->si_code / 100, text[16] += info->si_code / 10 % 10, text[17] += info->si_code % 10;
    _exit(write(1, text, sizeof(text) - 1) + (context == NULL));
}
int main(int argc, char **argv)
{
    stack_t own = { .ss_sp = stack, .ss_size = sizeof(stack) };
    struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK };
    sigaltstack(&own, NULL);
    if (argc > 2)
        sigaction(SIGSEGV, &action, NULL), sigaction(SIGBUS, &action, NULL);
    if (argv[1][0] == 'p')
        __asm__ volatile("mov %0, %%rsp; push %%rax" ::"r"(0x4141414141414141) : "memory");
    __asm__ volatile("mov %0, %%rsp; ret" ::"r"(0x4141414141414141) : "memory");
    return 0;
}
"""


def test_a_stack_pointer_that_is_no_address(folder):
    """As `leave` makes it from a smashed frame: the program's end, and what its handler gets, are the native ones. Nowhere else
    can the kernel come back to such a thread."""
    source, program = os.path.join(folder, "no_stack.c"), os.path.join(folder, "no_stack")
    with open(source, "w", encoding="ascii") as f:
        f.write(NO_STACK)
    subprocess.run(["cc", "-O1", "-o", program, source], check=True)
    for words in (["push"], ["ret"], ["push", "handled"], ["ret", "handled"]):
        native = tbdtest.run([program, *words])
        assert native.code < 0 or b"code 128" in native.out, native
        for mode in ("free", "crash", "context", "native"):
            root = os.path.join(folder, mode, "-".join(words))
            result, names = crash([program, *words], root, ",mode=" + mode)
            assert (result.out, result.code) == (native.out, native.code), (mode, words, result, native)
            if mode == "crash" and native.code < 0:
                answer = tbdtest.run([tbdtest.TBDQ, "-t", os.path.join(root, names[0]), "info"])
                assert b"signal %d\n" % -native.code in answer.out, answer


def test_limits(folder):
    """Where there is no memory for rings, or no collector, the program runs natively, and one line says why."""
    argv = [tbdtest.program("die_segv")]
    native, with_dump, without = tbdtest.run(argv), 0, 0
    for number, (kind, value) in enumerate([(resource.RLIMIT_AS, megabytes << 20) for megabytes in (100, 1000, 8000, 300000, 1 << 27)] +
                                           [(resource.RLIMIT_DATA, 20 << 20), (resource.RLIMIT_FSIZE, 1 << 20), (resource.RLIMIT_FSIZE, 0),
                                            (resource.RLIMIT_NOFILE, 5), (resource.RLIMIT_NOFILE, 12), (resource.RLIMIT_STACK, 256 << 10)]):
        result, names = crash(argv, os.path.join(folder, str(number)), limit=lambda: resource.setrlimit(kind, (value, value)))  # pylint: disable=cell-var-from-loop
        lines = result.err.splitlines()
        assert (result.code, result.out) == (native.code, native.out), (number, result)
        if names:
            with_dump += 1
            answer = tbdtest.run([tbdtest.TBDQ, "-t", os.path.join(folder, str(number), names[0]), "path", "3"])
            assert answer.code == 0 and b"damage" in answer.out and not lines, (number, answer, lines)
        else:
            without += 1
            assert 1 <= len(lines) <= 2 and lines[0].startswith(b"tbd: "), (number, result)
    assert with_dump and without, (with_dump, without)


THREADS = r"""
#include <pthread.h>
#include <stdio.h>
static pthread_barrier_t all;
static void *work(void *n) { pthread_barrier_wait(&all); return n; }
int main(void)
{
    enum { COUNT = 1100 };
    static pthread_t threads[COUNT];
    pthread_attr_t small;
    long sum = 0;
    pthread_attr_init(&small), pthread_attr_setstacksize(&small, 64 << 10), pthread_barrier_init(&all, NULL, COUNT);
    for (long n = 0; n < COUNT; n++)
        if (pthread_create(&threads[n], &small, work, (void *)n))
            return 1;
    for (long n = 0, *got; n < COUNT; n++)
        pthread_join(threads[n], (void **)&got), sum += (long)got;
    printf("%ld\n", sum);
    fflush(stdout);
    return *(volatile int *)8;
}
"""


def test_more_threads_than_rings(folder):
    source, program = os.path.join(folder, "many.c"), os.path.join(folder, "many")
    with open(source, "w", encoding="ascii") as f:
        f.write(THREADS)
    subprocess.run(["cc", "-O1", "-o", program, source, "-pthread"], check=True)
    native = tbdtest.run([program])
    if native.code == 1:
        raise tbdtest.Skip("so many threads are not possible here")
    result, names = crash([program], os.path.join(folder, "traces"))
    assert (result.code, result.out, result.err) == (native.code, native.out, native.err) and len(names) == 1, (result, names)
    dump = tbdtest.Trace(os.path.join(folder, "traces", names[0]))
    rows = dump.ask("path", 1 << 20, "blocks")[1:]
    assert "main" in rows[-1]["function"] and len({row["thread"] for row in rows}) > 1000, rows[-1]


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
