#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random programs (generate.py): same output, zero divergences, and the trace counts calls and
stores as the program itself does.  `--seed N` runs that one."""
import os
import random
import sys
import time

import generate
import tbdtest

FLAGS = ["-O0", "-O1", "-O2", "-O3", "-Os", "-O2 -fPIE -pie", "-O2 -mavx2", "-O1 -fno-omit-frame-pointer", "-O3 -march=native"]


def build(folder, seed):
    source, binary = os.path.join(folder, "r%d.c" % seed), os.path.join(folder, "r%d" % seed)
    with open(source, "w") as f:
        f.write(generate.Generator(seed).program())
    flags = random.Random(seed).choice(FLAGS).split()
    result = tbdtest.run([tbdtest.need("cc"), "-w", "-g", *flags, "-fno-optimize-sibling-calls", "-o", binary, source])
    assert result.code == 0, result
    return binary


def check_seed(folder, seed):
    binary = build(folder, seed)
    window = random.Random(seed + 1).choice([1000, 5000, 30000, 1000000])
    result, trace = tbdtest.check_run([binary], folder, options="window=%d" % window)
    assert result.code == 0, result
    counts = [int(line.split()[2]) for line in result.out.decode().splitlines() if line.startswith("call ")]
    for i in {0, len(counts) // 2, len(counts) - 1}:
        found = trace.count("func_enter", "func==f%d" % i, counts[i])
        assert found == counts[i], "seed %d: f%d entered %d times, trace says %d" % (seed, i, counts[i], found)
    i = seed % len(counts)
    condition = "addr == &entered + %d" % (4 * i)
    found = trace.count("store", condition, counts[i])
    assert found == counts[i], "seed %d: %d stores to entered[%d], trace says %d" % (seed, counts[i], i, found)
    if counts[i]:
        last = trace.one("goto", "last", "backward", "store", 1, "where", condition)
        assert tbdtest.number(last["oldval"]) == counts[i] - 1 and tbdtest.number(last["newval"]) == counts[i], last


def test_random_programs(folder):
    if "--seed" in sys.argv:
        check_seed(folder, int(sys.argv[sys.argv.index("--seed") + 1]))
        return
    first = int(time.time()) % 1000000 * 1000 if tbdtest.LONG else 1
    for seed in range(first, first + (200 if tbdtest.LONG else 4)):
        try:
            check_seed(os.path.join(folder), seed)
        except AssertionError as error:
            raise AssertionError("seed %d: %s" % (seed, error))


if __name__ == "__main__":
    tbdtest.main(test_random_programs)
