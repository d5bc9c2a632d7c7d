#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Probes where it is hard: in children, in code that the program makes and changes, in the engine itself, in functions of libc of every kind."""
import os
import re
import subprocess

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


if __name__ == "__main__":
    tbdtest.main(test_children_keep_probes,
                 test_code_that_the_program_makes_and_changes,
                 test_the_engine_is_not_probed)
