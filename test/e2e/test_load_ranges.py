#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Loads from chosen memory that a program with rings records (`--trigger='loads of RANGE'`): what is recorded is what was there, more follows from
it, and the program computes what it computes alone."""
import os
import subprocess

import tbdtest
from test_values import PROBED, compiled, dump_of, judge, known_share, script

# Loads of all kinds from `table`, `own` and the heap, between instructions whose flags and registers must stay.
KINDS = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <emmintrin.h>
static unsigned long table[64];
static __thread unsigned long own[8];
static unsigned long plus(unsigned long a) { return a + table[a % 64]; }
static unsigned long times(unsigned long a) { return a * 33 ^ table[a >> 3 & 63]; }
static unsigned long (*volatile ops[2])(unsigned long) = { plus, times };
__attribute__((noinline)) static unsigned long flags(unsigned long a, unsigned long b)
{
    unsigned long r = 0;
    unsigned char carry = 0;
    __asm__ volatile("add %3, %0; mov 8(%4), %%rcx; adc (%4,%5,8), %0; mov %%rcx, %2; setc %1; cmpq $3, 16(%4); cmovb 24(%4), %0"
                     : "+r"(a), "=r"(carry), "=r"(r) : "r"(b), "r"(table), "r"(b & 31) : "rcx", "cc", "memory");
    __asm__ volatile("mov %1, %%r10; mov 8(%%r10), %%r11; mov (%%r10,%%rcx,8), %%r15; lea (%%r11,%%r15), %0"
                     : "=r"(b) : "r"(table), "c"(a & 63) : "r10", "r11", "r15", "memory");
    return a ^ b ^ r ^ carry;
}
int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 2000;
    unsigned long sum = 1, *heap = malloc(64 * sizeof(long));
    printf("%p\\n", (void *)own);
    fflush(stdout);
    memset(heap, 7, 64 * sizeof(long));
    for (int i = 0; i < rounds; i++) {
        __m128i v = _mm_loadu_si128((const __m128i *)((const char *)table + i % 400));
        table[i % 64] = sum ^ (unsigned long)_mm_cvtsi128_si64(v);
        own[i % 8] += sum;
        sum = flags(sum, ops[sum & 1](own[i & 7] + heap[i % 64]));
        heap[i % 64] += (unsigned char)((char *)table)[sum % 512] + *(unsigned short *)((char *)heap + sum % 500);
        sum += (unsigned long)strlen((char *)heap) + (unsigned long)memchr(table, (int)(sum & 255), 512) % 7 * 0;
    }
    printf("%lx\\n", sum);
    fflush(stdout);
    if (argc > 2)
        abort();
    return 0;
}
"""

RANGES = "loads of table; loads of ops; loads of heap; loads of .data"


def values_of(dump):
    """How often something was recorded beside the rings."""
    lines = [line for line in dump.tbdq("info", json_output=False).out.decode().splitlines() if line.startswith("values")]
    return int(lines[0].split()[-2]) if lines else 0


def test_loads_are_recorded_with_their_values(folder):
    program = compiled(folder, "probed", PROBED, "-O1", "-no-pie")
    plain = dump_of(program, os.path.join(folder, "plain"), "record=0")
    address = next(int(line.split()[0], 16) for line in tbdtest.run([tbdtest.need("nm"), program]).out.decode().splitlines() if line.endswith(" nodes"))
    seed, values = 1, []
    for _ in range(500):
        for _ in range(4):
            seed = (seed * 3 + (seed >> 3)) % (1 << 64)
            values.append(seed - (1 << 64) if seed >> 63 else seed)
    for number, wish in enumerate(("loads of nodes", "loads of probed!nodes", "loads of 0x%x-0x%x" % (address, address + 64))):
        given = dump_of(program, os.path.join(folder, "given%d" % number), "record=0,trigger=" + wish)
        assert known_share(given) > known_share(plain) + 10, (known_share(given), known_share(plain))
        rows = [row for row in given.ask("path", "1200", "blocks")[1:] if row["function"].endswith("!step") and "+" not in row["back"]]
        entries = [row["back"] for row in rows if row["pc"] == min(row["pc"] for row in rows)][-80:]
        assert len(entries) >= 40, entries
        known = 0
        for k, (answer,) in enumerate(script(given, entries, "print p->value")):
            known += judge(None if answer["certainty"] == "unknown" else answer["value"], answer["certainty"], str(values[k - len(entries)]), (k, answer))
        assert known >= len(entries) - 1, (known, len(entries))
    # Half of the memory: half of the loads.
    half = dump_of(program, os.path.join(folder, "half"), "record=0,trigger=loads of 0x%x-0x%x" % (address, address + 32))
    assert values_of(half) * 2 - 4 <= values_of(given) <= values_of(half) * 2 + 4, (values_of(half), values_of(given))


def test_a_program_computes_the_same(folder):
    """Flags, all registers, vectors, thread-local memory, pointers to functions; also while the ranges come and go."""
    program = compiled(folder, "kinds", KINDS, "-O2")
    alone = tbdtest.run([program, "20000"])
    assert alone.code == 0 and alone.out
    alone = alone.out.splitlines()[1]
    for wish in (RANGES, "loads of 0x1000-0x7fff0000; loads of heap", "loads of 0x7ff000000000-0x7ff07fffffff"):
        result = tbdtest.run([tbdtest.TBD, "crash", "--dir=" + folder, "--trigger=" + wish, "--", program, "20000"])
        assert result.code == 0 and result.out.splitlines()[1] == alone, (wish, result)
    alone = tbdtest.run([program, "2000000"])
    process = tbdtest.start([program, "2000000"], folder, "mode=crash", stdin=subprocess.DEVNULL)
    own = int(process.stdout.readline(), 16)  # thread-local: by fs
    for wish in ("loads of table", "", "loads of 0x%x-0x%x; loads of .data" % (own, own + 64), "main", "loads of heap") * 2:
        result = tbdtest.run([tbdtest.TBD, "set", str(process.pid), "trigger=" + wish])
        assert result.code == 0 or process.poll() is not None, result
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0 and out == alone.out.splitlines(keepends=True)[1], (out, alone)


def test_wrong_ranges_are_said(folder):
    program = compiled(folder, "probed", PROBED, "-O1")
    for wish, said in (("loads of", b"is expected"), ("loads of nodes if 1", b"is expected"), ("loads of nobody", b"waits"),
                       ("loads of 0x2000-0x1000", b"no memory"), ("loads of 0x0-0x1000", b"no memory"), ("loads of 0x1000-0x200001000", b"2 GB"),
                       ("loads of nodes; loads of seed; loads of noise; loads of .bss; loads of heap", b"too many"), ("loads of .nothing", b"waits")):
        result = tbdtest.run([tbdtest.TBD, "crash", "--dir=" + folder, "--trigger=" + wish, "--", program])
        assert result.code < 0 and said in result.err and b"tbd set:" in result.err, (wish, result)


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
