#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Whole questions without enough memory: each allocation of tbdq and of its libraries fails once, alone and with all
later ones.  Either the answer is right, or tbdq says what it could not do."""
import os
import random

import tbdtest

LIBRARY = os.path.join(tbdtest.BUILD, "libfailing_malloc.so")
POINTS = 500 if tbdtest.LONG else 5  # of the allocations of a question
LARGE = 1 << 20  # tools/allocation.c
MESSAGES = (b"memory", b"Cannot allocate")


def ask(trace, folder, words, first=0, last=0, least=0):
    count = os.path.join(folder, "count")
    env = {"LD_PRELOAD": LIBRARY, "TBD_FAIL_FIRST": str(first), "TBD_FAIL_LAST": str(last),
           "TBD_FAIL_COUNT": count, "TBD_FAIL_BYTES": str(least)}
    argv = [tbdtest.TBDQ, "-t", trace.path, "--json", "-j", "1", "--no-cache", *words]
    result = tbdtest.run(argv, stdin=None, env=env)
    return result, int(open(count).read()) if os.path.exists(count) else 0


def check(result, expected, what):
    """The same answer, or status 4 with the reason; what it has printed until then is the answer's beginning, unless it
    says that this, too, may lack something."""
    if result.code == expected.code and result.out == expected.out:
        return
    assert result.code == 4, (what, result, expected)
    assert result.err.startswith(b"tbdq: ") and any(m in result.err for m in MESSAGES), (what, result)
    assert expected.out.startswith(result.out) or b"may lack" in result.err, (what, result, expected)


def sweep(folder, *words, at="", least=0):
    """`at`: a question for the position to ask at.  `least`: only allocations of at least this many bytes fail."""
    if not os.path.exists(LIBRARY):
        raise tbdtest.Skip("sanitizers have their own malloc()")
    _, trace = tbdtest.record([tbdtest.program("variables")], folder, "window=2000")
    if at:
        words = ("--at", tbdtest.position(trace.one(*at.split(" ", 6))), *words)
    expected, count = ask(trace, folder, words, least=least)
    assert expected.code == 0 and expected.out and count > (0 if least else 100), (expected, count)
    points = sorted(random.Random(" ".join(words)).sample(range(1, count + 1), min(POINTS, count)))
    for n in points:
        check(ask(trace, folder, words, n, n, least)[0], expected, "%s: allocation %d fails" % (words, n))
        check(ask(trace, folder, words, n, count * 2, least)[0], expected, "%s: allocations from %d on fail" % (words, n))
    print("measured: %s: %d of %d allocations" % (" ".join(words), len(points), count))


IN_SUM_LIST = "goto first forward line 3 where func==sum_list"


def test_info(folder):
    sweep(folder, "info")


def test_windows(folder):
    sweep(folder, "windows")


def test_a_search_without_names(folder):
    sweep(folder, "all", "store", "where", "oldval==3")


def test_bt(folder):
    sweep(folder, "bt", at=IN_SUM_LIST)


def test_print(folder):
    sweep(folder, "print", "*first", at=IN_SUM_LIST)


def test_locals(folder):
    sweep(folder, "locals", at=IN_SUM_LIST)


def test_list(folder):
    sweep(folder, "list", at=IN_SUM_LIST)


def test_disas(folder):
    sweep(folder, "disas", at=IN_SUM_LIST)


def test_calls(folder):
    sweep(folder, "calls", "add")


def test_count_by_func(folder):
    sweep(folder, "count", "func_enter", "by", "func")


def test_history(folder):
    sweep(folder, "history", "counter")


def test_why(folder):
    sweep(folder, "why", "counter")


def test_large_allocations(folder):
    """These are not the end of tbdq, but of the answer."""
    for words in (("bt",), ("locals",), ("regs",)):
        sweep(folder, *words, at=IN_SUM_LIST, least=LARGE)
    sweep(folder, "history", "counter", least=LARGE)


if __name__ == "__main__":
    tbdtest.main(*[test for name, test in sorted(globals().items()) if name.startswith("test_")])
