#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Events that are only counted by place: a window that must be replayed gives the numbers without its events, and they are those of a walk over the events."""
import os

import tbdtest

# Calls by pointers and import stubs, jumps between functions, deep stacks, stores of the kernel, mappings; signals, faults and threads, whose windows are walked.
PROGRAMS = ("funcptr", "tail_calls", "recursion", "stores", "maps", "sys_files", "dl", "sigstack", "left_faults", "thread_mix")
WINDOW = 20000
COUNTED = [(kind, by) for kind in ("func_enter", "func_exit", "block_entry", "store") for by in ("func", "outer", "line", "thread")]
OTHERS = ["count func_enter by value", "count store where size == 8 by func", "count syscall by value", "count func_enter where func == main by func"]
LINES = ["count %s by %s" % pair for pair in COUNTED] + OTHERS


def answers(trace, *options):
    return trace.script(LINES, options=["--no-cache", *options])


def check_program(name, folder):
    _, trace = tbdtest.record([tbdtest.program(name)], os.path.join(folder, name), f"window={WINDOW},lean=never")
    walked = answers(trace)
    assert sum(row["count"] for row in walked[COUNTED.index(("block_entry", "thread"))]) == trace.info()["blocks"], name
    trace.ask("lower", "all", "2")
    for workers in ("1", "3"):
        counted = answers(trace, "-j", workers)
        for line, a, b in zip(LINES, walked, counted):
            assert a == b, (name, workers, line, [pair for pair in zip(a, b) if pair[0] != pair[1]][:2])


def test_events_counted_by_place_are_those_of_a_walk(folder):
    for name in PROGRAMS:
        check_program(name, folder)


def test_native_play_is_counted_as_its_events_are(folder):
    for name in ("funcptr", "recursion", "maps"):
        _, trace = tbdtest.record([tbdtest.program(name)], os.path.join(folder, "native-" + name), "mode=native,aftercount=no")
        counted = answers(trace)
        trace.ask("raise", "all", "3")
        for line, a, b in zip(LINES, answers(trace), counted):
            assert a == b, (name, line, [pair for pair in zip(a, b) if pair[0] != pair[1]][:2])


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
