#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Searches: what windows, plans, walks and replays find must agree with each other."""
import random
import re

import tbdtest

# A condition that no summary can decide: nothing is skipped.
ALWAYS_SEARCHED = "(%s) or time==0xffffffffffffffff"


def recorded(folder, name, window):
    _, trace = tbdtest.record([tbdtest.program(name)], folder, "window=%d" % window)
    return trace


def fixed(folder, name, window):
    """At fixed addresses, with an environment of fixed length, so that two runs can be compared."""
    setarch = tbdtest.need("setarch")
    tbdtest.record([setarch, "-R", tbdtest.program(name)], folder, "window=%07d" % window)
    return tbdtest.find_trace(folder, tbdtest.program(name))


def from_main(trace, question):
    """Events after main was entered, without values: what the loader does, and random bytes, differ between runs."""
    main = trace.one("goto", "first", "forward", "func_enter", 1, "where", "func==main")
    events = trace.ask("all", *question)
    return [(e["time"] - main["time"], e["offset"], e["type"], e["pc"], e.get("addr"), e.get("size"), e["text"])
            for e in events if e["time"] > main["time"]]


def explained(trace, *words):
    """The numbers that --explain gives: (considered, skipped, searched, replayed in full)."""
    result = tbdtest.run([tbdtest.TBDQ, "-t", trace.path, "--explain", *map(str, words)], stdin=None)
    numbers = re.search(rb"windows: (\d+) considered, (\d+) skipped by their summaries, (\d+) searched, (\d+)", result.err)
    assert numbers, result
    return result, tuple(int(n) for n in numbers.groups())


def test_answers_do_not_depend_on_the_windows(folder):
    small, large = fixed(folder + "/small", "stores", 61), fixed(folder + "/large", "stores", 1 << 20)
    assert len(small.ask("windows")) > 50 and len(large.ask("windows")) == 1
    for question in (["func_enter"], ["func_exit"], ["block_entry"], ["store"], ["load"], ["syscall"],
                     ["store", "where", "addr==&target and newval & 1 == 1"],
                     ["store", "where", "touches[&heap_word,8] or mem[&neighbour,8]==40"],
                     ["func_enter", "where", "stack=<**,main,*>"],
                     ["store", "where", "func==main and rsp & 15 == 0"]):
        a, b = from_main(small, question), from_main(large, question)
        assert a and a == b, (question, len(a), len(b), [pair for pair in zip(a, b) if pair[0] != pair[1]][:1])


def test_forward_and_backward_count_alike(folder):
    trace = recorded(folder, "stores", 500)
    for kind in ("func_enter", "func_exit", "block_entry", "store", "load", "syscall"):
        everything = trace.ask("all", kind)
        for n in random.Random(1).sample(range(1, len(everything) + 1), min(6, len(everything))):
            forward = trace.one("goto", "first", "forward", kind, n)
            backward = trace.one("goto", "last", "backward", kind, len(everything) + 1 - n)
            assert forward == everything[n - 1], (forward, everything[n - 1])
            assert backward == everything[n - 1], (backward, everything[n - 1])


def test_plans_leave_no_answer_out(folder):
    trace = recorded(folder, "many_windows", 100000)
    assert len(trace.ask("windows")) > 20
    for kind, where in (("store", "addr==&rare"), ("store", "touches[&marks,4] and newval>2"),
                        ("func_enter", "func==mark"), ("func_enter", "func==mark or func==\"_IO_*\""),
                        ("func_exit", "func==mark and retval!=1"), ("block_entry", "pc==&mark"),
                        ("block_entry", "not module!=libc"), ("load", "addr==&marks"),
                        ("store", "func==mark and not addr==&rare"), ("store", "addr==&rare and time>2000000")):
        planned = trace.count(kind, where)
        assert planned == trace.count(kind, ALWAYS_SEARCHED % where) and planned > 0, (kind, where, planned)


def test_windows_without_an_answer_are_skipped(folder):
    trace = recorded(folder, "many_windows", 100000)
    windows = len(trace.ask("windows"))
    result, numbers = explained(trace, "goto", "last", "backward", "store", 5, "where", "addr==&rare")
    assert result.code == 0 and numbers[1] >= windows // 2 and numbers[2] <= 7 and numbers[3] == 0, numbers
    result, numbers = explained(trace, "goto", "last", "backward", "store", 1, "where", "addr==&mark")
    assert result.code == 1 and numbers == (windows, windows, 0, 0), numbers  # code is never written


def test_lists_show_the_values_that_positions_have(folder):
    trace = recorded(folder, "strings", 3000)
    blocks = trace.info()["blocks"]
    where = "time>%d and time<%d" % (blocks // 2, blocks // 2 + 2500)
    for kind in ("store", "load"):
        everything = trace.ask("all", kind, "where", where)
        for n in random.Random(2).sample(range(len(everything)), 12):
            single = trace.one("goto", "first", "forward", kind, n + 1, "where", where)
            assert single == everything[n], (single, everything[n])


def test_conditions_on_values_agree_with_the_values_shown(folder):
    trace = recorded(folder, "stores", 700)
    stores = [e for e in trace.ask("all", "store") if "newval" in e]
    for value in random.Random(3).sample(sorted({int(e["newval"], 16) for e in stores if e["size"] <= 8}), 8):
        found = trace.ask("all", "store", "where", "newval==%d and size<=8" % value)
        assert [tbdtest.position(e) for e in found] == [tbdtest.position(e) for e in stores
                                                        if e["size"] <= 8 and int(e["newval"], 16) == value]
    assert not trace.ask("all", "store", "where", "mem[addr,1] != oldval & 0xff")
    assert not trace.ask("all", "load", "where", "mem[addr,1] != oldval & 0xff")
    assert not trace.ask("all", "func_enter", "where", "rip != pc or rsp != sp or mem[sp,1] != mem[rsp,1]")


def test_stack_conditions_agree_with_call_stacks(folder):
    trace = recorded(folder, "recursion", 20000)
    blocks, chosen = trace.info()["blocks"], random.Random(4)
    for kind in ("func_enter", "store", "func_exit"):
        for _ in range(5):
            start = chosen.randrange(blocks // 10, blocks * 9 // 10)
            event = trace.one("goto", start, "forward", kind, 1)
            frames = trace.ask("bt", at=tbdtest.position(event))
            names = ['"%s"' % f["function"] if f["function"] else "*" for f in reversed(frames)]
            pattern = ",".join(names if len(names) < 40 else ["*"] * (len(names) - 20) + names[-20:])
            same = trace.one("goto", start, "forward", kind, 1, "where", "stack=<%s>" % pattern)
            assert tbdtest.position(same) == tbdtest.position(event), (pattern, event, same)


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
