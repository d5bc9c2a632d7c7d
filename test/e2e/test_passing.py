#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Conditions about an event's own values are asked while a window's replay passes: the answers are those of a walk over its events."""
import os
import random

import tbdtest

# Windows that are passed, and such as are walked: signals, faults, threads, memory that goes away.
PROGRAMS = ("funcptr", "tail_calls", "stores", "maps", "dl", "left_faults", "thread_mix")
WINDOW = 20000
LINES = [
    "count store where newval > 10 by func",
    "count store where newval == 0 and size == 8 by line",
    "count store where oldval == 0 and newval != 0 by func",
    "count store where newval + oldval == 7 by thread",
    "count store where 100 <= newval and newval < 0x7f0000000000 by outer",
    "count store where signed(newval) < 0 by func",
    "count store where newval / oldval == 1 by func",
    "count store where oldval == 1 or newval == 1 by func",
    "count store where func == main by func",
    "count store by value",
    "count store where size == 1 by value",
    "count func_enter where arg0 == 0 by func",
    "count func_enter where arg1 > arg0 by func",
    "count func_enter by value",
    "count func_enter where arg0 < 16 by value",
    "count func_exit where retval == 0 by func",
    "count func_exit where signed(retval) < 0 by line",
    "count func_exit by value",
    "count block_entry where time > 1000 and time < 30000 by func",
    "goto last backward store 1 where newval == 0",
    "goto last backward store 3 where newval == 1 and size == 4",
    "goto first forward store 1 where newval == 3",
    "goto first forward store 1 where newval == 0x123456789abcdef0",
    "goto last backward store 1 where newval == 0x123456789abcdef0",
    "goto 25000 backward store 1 where newval != 0 and size == 8",
    "goto 25000 forward store 2 where newval != 0 and oldval != 0",
    "goto 25000 forward store 1 where size == 16",
    "goto last backward func_exit 1 where retval == 0",
    "goto first forward func_enter 2 where arg0 == 0",
    "goto last backward func_enter 1 where arg1 == 1",
]


def answers(trace, lines, *options, **settings):
    rows = []
    for line, answer in zip(lines, trace.script(lines, options=["--no-cache", *options], **settings)):
        rows.append(sorted(answer, key=str) if line.startswith("count") else answer)
    return rows


def same(name, lines, expected, got, *what):
    for line, a, b in zip(lines, expected, got):
        assert a == b, (name, what, line, [pair for pair in zip(a, b) if pair[0] != pair[1]][:2], len(a), len(b))


def number(choice):
    return choice.choice(["0", "1", "2", "8", "255", "4096", "0x7fffffff", "0xffffffffffffffff", str(choice.randrange(1 << choice.randrange(1, 64)))])


def condition(choice, fields):
    """A few comparisons, joined by and, or, not."""
    def one():
        left = choice.choice(fields)
        right = number(choice) if choice.random() < 0.8 else choice.choice(fields)
        operator = choice.choice(["==", "!="] if right == "0" else ["==", "!=", "<", "<=", ">", ">="])
        text = "%s %s %s" % ((left, operator, right) if choice.random() < 0.8 else (right, operator, left))
        return "not (%s)" % text if choice.random() < 0.2 else text

    return (" %s " % choice.choice(["and", "and", "or"])).join(one() for _ in range(choice.randrange(1, 4)))


def random_lines(seed, count):
    choice = random.Random(seed)
    fields = {"store": ["addr", "size", "oldval", "newval", "newval", "time", "pc"], "func_enter": ["arg0", "arg1", "arg2", "sp"], "func_exit": ["retval", "retval", "sp"]}
    lines = []
    for _ in range(count):
        kind = choice.choice(list(fields))
        where = condition(choice, fields[kind])
        if choice.random() < 0.6:
            lines.append("count %s where %s by %s" % (kind, where, choice.choice(["func", "line", "thread", "value"])))
        else:
            start, way = choice.choice([("first", "forward"), ("last", "backward"), ("%d" % choice.randrange(60000), "backward"), ("%d" % choice.randrange(60000), "forward")])
            lines.append("goto %s %s %s %d where %s" % (start, way, kind, choice.choice([1, 1, 1, 2, 40]), where))
    return lines


def check_program(name, folder, seed):
    lines = LINES + random_lines(seed, 12)
    _, trace = tbdtest.record([tbdtest.program(name)], os.path.join(folder, name), f"window={WINDOW},lean=never")
    walked = answers(trace, lines)
    trace.ask("lower", "all", "2")
    same(name, lines, walked, answers(trace, lines, "-j", "3"), "3", seed)
    trace.ask("lower", "all", "1")
    same(name, lines, walked, answers(trace, lines, env={"TBD_SLICE_BLOCKS": "3000"}), "slices", seed)


def test_what_passes_is_what_a_walk_finds(folder):
    for seed, name in enumerate(PROGRAMS):
        check_program(name, folder, seed)


def test_native_play_is_passed_as_it_is_walked(folder):
    for seed, name in enumerate(("tail_calls", "stores", "sigstack")):
        lines = LINES + random_lines(100 + seed, 8)
        _, trace = tbdtest.record([tbdtest.program(name)], os.path.join(folder, "native-" + name), "mode=native,aftercount=no")
        passed = answers(trace, lines, env={"TBD_SLICE_BLOCKS": "5000"})
        trace.ask("raise", "all", "3")
        same(name, lines, answers(trace, lines), passed, "native", seed)


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
