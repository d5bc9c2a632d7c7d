#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Whole questions without enough memory: each allocation of tbdq and of its libraries fails once, alone and with all
later ones.  Either the answer is right, or tbdq says what it could not do."""
import os
import random

import tbdtest

LIBRARY = os.path.join(tbdtest.BUILD, "libfailing_malloc.so")
POINTS = None if tbdtest.LONG else 24  # of the allocations of a question
MESSAGES = (b"memory", b"Cannot allocate")


def ask(trace, folder, words, first=0, last=0):
    count = os.path.join(folder, "count")
    env = {"LD_PRELOAD": LIBRARY, "TBD_FAIL_FIRST": str(first), "TBD_FAIL_LAST": str(last), "TBD_FAIL_COUNT": count}
    argv = [tbdtest.TBDQ, "-t", trace.path, "--json", "-j", "1", "--no-cache", *words]
    result = tbdtest.run(argv, stdin=None, env=env)
    return result, int(open(count).read()) if os.path.exists(count) else 0


def check(result, expected, what):
    """The same answer, or status 4 with the reason; what it has printed until then is the answer's beginning."""
    if result.code == expected.code and result.out == expected.out:
        return
    assert result.code == 4, (what, result, expected)
    assert result.err.startswith(b"tbdq: ") and any(m in result.err for m in MESSAGES), (what, result)
    assert expected.out.startswith(result.out), (what, result, expected)


def sweep(folder, *words):
    if not os.path.exists(LIBRARY):
        raise tbdtest.Skip("sanitizers have their own malloc()")
    _, trace = tbdtest.record([tbdtest.program("variables")], folder, "window=2000")
    expected, count = ask(trace, folder, words)
    assert expected.code in (0, 1) and expected.out and count > 100, (expected, count)
    points = range(1, count + 1)
    if POINTS:
        points = sorted(random.Random(len(words)).sample(points, POINTS))
    for n in points:
        check(ask(trace, folder, words, n, n)[0], expected, "%s: allocation %d fails" % (words, n))
        check(ask(trace, folder, words, n, count * 2)[0], expected, "%s: allocations from %d on fail" % (words, n))


def test_info(folder):
    sweep(folder, "info")


def test_windows(folder):
    sweep(folder, "windows")


def test_a_search_without_names(folder):
    sweep(folder, "goto", "first", "forward", "store", "999999999", "where", "oldval==3")


if __name__ == "__main__":
    tbdtest.main(*[test for name, test in sorted(globals().items()) if name.startswith("test_")])
