#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Probes where it is hard: in children, in code that the program makes and changes, in the engine itself, in functions of libc of every kind."""
import os
import re
import socket
import subprocess
import time

import tbdtest
from test_probes import COUNT, END, PLACE, PUT, START, STOP, Session, addresses, armed, probe

OURS = 10 # TBD_PROBE_OURS


def build(folder, name, text, *flags):
    source, program = os.path.join(folder, name + ".c"), os.path.join(folder, name)
    with open(source, "w", encoding="utf-8") as out:
        out.write(text)
    subprocess.run([tbdtest.need("cc"), "-O1", "-o", program, source, *flags], check=True)
    return program


FORKS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) long forked_step(long x) { __asm__ volatile("" : "+r"(x)); return x * 7 + 1; }
static long work(long from)
{
    for (int i = 0; i < 1000; i++)
        from = forked_step(from) ^ i;
    return from;
}
int main(void)
{
    long expected = work(3);
    int ends[2], status, bad = 0;
    pid_t late;
    char byte;
    puts("ready");
    fflush(stdout);
    getchar();
    if (pipe(ends) != 0)
        return 2;
    late = fork(); /* goes on after the session */
    if (late == 0) {
        close(ends[1]);
        status = work(3) != expected || read(ends[0], &byte, 1) != 0;
        _exit(status || work(3) != expected);
    }
    for (int i = 0; i < 20; i++) {
        pid_t child = i % 2 ? fork() : vfork();
        if (child == 0)
            _exit(work(3) != expected);
        bad += child < 0 || waitpid(child, &status, 0) != child || status != 0;
    }
    printf("%d\n", bad);
    fflush(stdout);
    getchar();
    close(ends[1]);
    bad = waitpid(late, &status, 0) != late || status != 0;
    printf("%d\n", bad);
    return 0;
}
"""


def test_children_keep_probes(folder):
    """Hits of forked children count; a child that outlives the session, with the traps in its copy of the code, computes what it computes natively."""
    program = build(folder, "forks", FORKS)
    for options in ([], ["--traps"]):
        process = armed([program])
        with subprocess.Popen([tbdtest.TBD, "probe", *options, "-p", str(process.pid), "insn:forks:forked_step { @[reg(\"ip\")] = count() }"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as asking:
            assert "probes in process" in asking.stderr.readline()
            process.stdin.write("\n")
            process.stdin.flush()
            assert process.stdout.readline() == "0\n"
            asking.terminate()
            found = [int(n) for n in re.findall(r"^@\[.*\]: (\d+)$", asking.stdout.read(), re.M)]
        assert len(found) >= 2 and all(20000 <= n <= 21000 for n in found), found
        text = process.communicate("\n")[0]
        assert process.returncode == 0 and text == "0\n", (process.returncode, text)


CHANGES = r"""
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
/* mov $N, %eax; add $N, %edi; imul $N, %edi, %edx; add %edx, %eax; ret */
static unsigned char first[] = { 0xb8, 1, 0, 0, 0, 0x83, 0xc7, 5, 0x69, 0xd7, 3, 0, 0, 0, 0x01, 0xd0, 0xc3 };
static int expected(int x, int a, int b, int c) { return a + (x + b) * c; }
int main(void)
{
    unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int (*call)(int) = (int (*)(int))code;
    int bad = 0, a = 1, b = 5, c = 3;
    memcpy(code, first, sizeof(first));
    printf("ready\n%p\n", (void *)code);
    fflush(stdout);
    while (getchar() == 'n') {
        for (int i = 0; i < 1000; i++)
            bad += call(i) != expected(i, a, b, c);
        memcpy(code + 1, &(int){ a = 77 }, 4); /* behind the trap */
        bad += call(9) != expected(9, a, b, c);
        memcpy(code + 1, &(int){ a = 1 }, 4);
        code[7] = (unsigned char)(b = 100);
        mprotect(code, 4096, PROT_READ | PROT_EXEC);
        bad += call(9) != expected(9, a, b, c);
        mprotect(code, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
        first[10] = (unsigned char)(c = 9);
        first[7] = (unsigned char)(b = 11);
        memcpy(code, first, sizeof(first)); /* with the traps */
        for (int i = 0; i < 1000; i++)
            bad += call(i) != expected(i, a, b, c);
        printf("%d\n", bad);
        fflush(stdout);
    }
    return 0;
}
"""


def test_code_that_the_program_makes_and_changes(folder):
    """Each instruction of generated code has a probe. When the program writes another one in its place, or over its end, that one is executed, while the
    session lasts and afterwards."""
    process = armed([build(folder, "changes", CHANGES)])
    code = int(process.stdout.readline(), 16)
    places = [(code + offset, 0) for offset in (0, 5, 8, 14, 16)]
    for _ in range(3):
        session = Session(process.pid)
        assert session.open([(COUNT, 0, 1, 0, 0, 0)])[0] == 0 and session.code((PUT, 0, 0, 0, 0), (END, 0, 0, 0, 0))[0] == 0
        assert session.places(PLACE, places)[0] == 0 and session.order(START)[0] == 0
        process.stdin.write("n")
        process.stdin.flush()
        assert process.stdout.readline() == "0\n"
        assert session.count(0) >= 5 * 1000
        assert session.order(STOP)[0] == 0
        session.socket.close()
    process.stdin.write("n")
    process.stdin.flush()
    assert process.stdout.readline() == "0\n"
    process.communicate("\n")
    assert process.returncode == 0


def test_the_engine_is_not_probed(folder):
    """A place in our own code is refused, by a packet and by a script; the program goes on."""
    process = armed([build(folder, "forks", FORKS)])
    session = Session(process.pid)
    assert session.open([(COUNT, 0, 1, 0, 0, 0)])[0] == 0 and session.code((PUT, 0, 0, 0, 0), (END, 0, 0, 0, 0))[0] == 0
    with open("/proc/%d/maps" % process.pid, encoding="utf-8") as maps:
        ours = [int(line.split("-")[0], 16) for line in maps if re.match(r"5000\w{8}-\w+ r.x", line)]
    assert ours, "no code of the engine"
    for at in ours:
        assert session.places(PLACE, [(at + 16, 0)])[0] == OURS, at
    session.socket.close()
    for at in ours:
        result = subprocess.run([tbdtest.TBD, "probe", "-p", str(process.pid), "address:%d { @ = count() }" % (at + 16)], capture_output=True, text=True,
                                timeout=60, check=False)
        assert result.returncode in (1, 4) and result.stderr, result
    process.communicate("\n\n")
    assert process.returncode == 0



LOCKS = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long shared, rounds;
static volatile long handled;
__attribute__((noinline)) void inside(long by) { shared += by; __asm__ volatile(""); }
__attribute__((noinline)) void in_handler(int signal) { handled += signal == SIGALRM; }
__attribute__((noinline)) long direct(void) { return syscall(SYS_getppid); }
static void *run(void *bad)
{
    for (long i = 0; i < rounds; i++) {
        char *text = malloc((size_t)(16 + i % 900));
        memset(text, (int)i, 16);
        pthread_mutex_lock(&lock);
        inside(1);
        pthread_mutex_unlock(&lock);
        *(long *)bad += direct() != getppid() || text[15] != (char)i;
        free(text);
    }
    return NULL;
}
int main(int argc, char **argv)
{
    struct itimerval often = { { 0, 700 }, { 0, 700 } };
    pthread_t threads[4];
    long bad[4] = { 0 };
    rounds = argc > 1 ? atol(argv[1]) : 1000;
    puts("ready");
    fflush(stdout);
    getchar();
    signal(SIGALRM, in_handler);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, run, &bad[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    memset(&often, 0, sizeof(often));
    setitimer(ITIMER_REAL, &often, NULL);
    getchar(); /* so that it can be probed still */
    printf("%ld %ld %ld\n", shared, bad[0] + bad[1] + bad[2] + bad[3], handled);
    return 0;
}
"""
IN_LOCKS = ("insn:locks:inside { @inside[reg(\"ip\")] = count() } uprobe:locks:in_handler { @handled = count() } insn:libc:syscall { @calls[reg(\"ip\")] = count() } "
            "insn:libc:pthread_mutex_unlock { @unlock = count() } uretprobe:libc:malloc { @sizes = hist(retval & 4095) } "
            + " ".join("uprobe:libc:%s { @%s[ustack] = count() }" % (name, name) for name in ("malloc", "free", "pthread_mutex_lock")))


def test_locks_allocation_signal_handlers_and_system_calls(folder):
    """Probes while a lock is held and in the functions that take it, in malloc and free, in a handler that comes every 700 us, on the instruction of a system call."""
    program = build(folder, "locks", LOCKS, "-lpthread")
    for options in ([], ["--traps"]):
        result = probe(IN_LOCKS, [program, "1000"], options, input="\n")
        own = re.search(r"^(\d+) (\d+) (\d+)$", result.stdout, re.M)
        assert result.returncode == 0 and own and own[1] == "4000" and own[2] == "0", result
        found = {name: [int(n) for n in re.findall(r"^@%s(?:\[[^\]]*\])?: (\d+)$" % name, result.stdout, re.M)] for name in ("inside", "handled", "calls")}
        assert len(found["inside"]) >= 2 and set(found["inside"]) == {4000}, found
        assert sum(found["handled"]) == int(own[3]) > 0, (found, own[3])
        assert max(found["calls"]) == 4000, found


def test_who_asks_is_killed(folder):
    """The consumer dies of SIGKILL while records come faster than they are read: the program goes on, computes what it does, and can be probed again."""
    program = build(folder, "locks", LOCKS, "-lpthread")
    process = armed([program, "20000"])
    for turn in range(3):
        with subprocess.Popen([tbdtest.TBD, "probe", "-p", str(process.pid), "uprobe:locks:inside { printf(\"%d %d\\n\", tid, arg0); @ = count() }"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as asking:
            said = asking.stderr.readline()
            assert "probes in process" in said, (turn, said, process.poll())
            if turn == 0:
                process.stdin.write("\n")
                process.stdin.flush()
                asking.stdout.readline() # the pipe fills, then the rings do
                time.sleep(0.2)
            asking.kill()
    out = process.communicate("\n")[0]
    assert process.returncode == 0 and re.match(r"80000 0 \d+\n$", out), (process.returncode, out)


def test_the_program_is_killed(folder):
    """It dies of SIGKILL among hits: who asks shows what was counted until then, and ends; no keeper stays."""
    program = build(folder, "locks", LOCKS, "-lpthread")
    process = armed([program, "100000000"])
    with subprocess.Popen([tbdtest.TBD, "probe", "-p", str(process.pid), "uprobe:locks:inside { @ = count() } uprobe:locks:direct { printf(\"one\\n\"); }"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as asking:
        assert "probes in process" in asking.stderr.readline()
        process.stdin.write("\n")
        process.stdin.flush()
        assert asking.stdout.readline() == "one\n"
        keeper = "\0tbd-armed-%d-%d" % (int(os.readlink("/proc/self/ns/pid")[5:-1]), process.pid)
        process.kill()
        text = asking.communicate(timeout=60)[0]
    assert process.wait() == -9 and int(re.search(r"^@: (\d+)$", text, re.M)[1]) > 0, text[-200:]
    for _ in range(200):
        address = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            address.connect(keeper)
        except ConnectionRefusedError:
            break
        finally:
            address.close()
        time.sleep(0.02)
    else:
        assert False, "the keeper listens still"


if __name__ == "__main__":
    tbdtest.main(test_children_keep_probes,
                 test_code_that_the_program_makes_and_changes,
                 test_the_engine_is_not_probed,
                 test_locks_allocation_signal_handlers_and_system_calls,
                 test_who_asks_is_killed,
                 test_the_program_is_killed)
