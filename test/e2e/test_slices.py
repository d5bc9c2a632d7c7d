#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Long windows are replayed in slices.  Cut into small ones, a merged window has the answers that it gives whole."""
import json
import os
import random
import re

import tbdtest

# Programs with threads, mappings that come and go, signals, deep stacks; and the size of a slice.
PROGRAMS = {"maps": 211, "thread_mix": 30011}
if tbdtest.LONG:
    PROGRAMS.update({"sigstack": 97, "recursion": 20011, "stores": 61, "shared_insns": 997})
KINDS = ("func_enter", "func_exit", "syscall", "signal", "thread_switch", "store", "load", "line")
FEW = ("syscall", "signal", "thread_switch")
CONDITIONS = (("store", "newval & 0xff == 0x11"), ("store", "rax & 3 == 1"), ("func_enter", "stack=<**,main,**>"),
              ("func_exit", "mem[rsp,8] & 1 == 1"), ("block_entry", "func==main"), ("syscall", "retval > 100"))


def asked(trace, slice_blocks, lines):
    """The answers to these lines without a cache, from one process: opening debug information costs more than an answer."""
    return trace.script(lines, options=["--no-cache"], env={"TBD_SLICE_BLOCKS": str(slice_blocks)} if slice_blocks else None)


def merged(name, folder):
    _, trace = tbdtest.record([tbdtest.program(name)], os.path.join(folder, name), "window=20000")
    trace.ask("lower", "all", "1")
    trace.ask("merge", "all")
    return trace


def check_same(trace, size, *lines):
    """Each line has the same answer in slices of that size; the answers."""
    whole, cut = asked(trace, 0, lines), asked(trace, size, lines)
    for line, a, b in zip(lines, whole, cut):
        assert a == b, (trace, line, len(a), len(b), [p for p in zip(a, b) if p[0] != p[1]][:1])
    return whole


def check_searches(trace, size, chosen):
    blocks = trace.info()["blocks"]
    start = chosen.randrange(blocks * 2 // 3)
    spans = {kind: (0, blocks) if kind in FEW else (start, start + min(4 * size, 5000)) for kind in KINDS}
    answers = check_same(trace, size, *("all %s where time > %d and time < %d" % (kind, *spans[kind]) for kind in KINDS))
    lines = []
    for kind, found in zip(KINDS, answers):
        for event in chosen.sample(found, min(len(found), 2 if tbdtest.LONG else 1)):
            n, at = chosen.choice((1, 2, 30)), tbdtest.position(event)
            lines += ["goto %s %s %s %d" % (at, direction, kind, n) for direction in ("forward", "backward")]
    for kind, condition in CONDITIONS:
        lines += ["count %s where %s" % (kind, condition), "goto last backward %s 2 where %s" % (kind, condition)]
    check_same(trace, size, *lines)


def check_moments(trace, size, chosen):
    blocks = trace.info()["blocks"]
    starts = [k * size + d for k in (1, blocks // size // 2) for d in (-1, 0)]
    times = starts + chosen.sample(range(blocks), 8 if tbdtest.LONG else 1)
    check_same(trace, size, *(line for time in times for line in ("goto %d" % time, "regs", "bt", "mem rsp-64 192")))


def test_slices_give_the_answers_of_the_whole(folder):
    for name, size in PROGRAMS.items():
        trace = merged(name, folder)
        chosen = random.Random(name)
        check_searches(trace, size, chosen)
        check_moments(trace, size, chosen)


def test_values_stored_to_memory_that_is_mapped_again_are_its_own(folder):
    """The next store to an address may be one to another mapping: what it found is not what was stored before."""
    trace = merged("maps", folder)
    rows, = check_same(trace, PROGRAMS["maps"], "all store")
    fresh = [int(row["newval"], 16) for row in rows if "main" in (row.get("function"), row.get("outer")) and row["size"] == 1 and row["oldval"] == "0x0"]
    assert all(fresh.count(value) >= 3 for value in range(2, 51)), fresh


def entries_replayed(trace, size, *argv):
    """Block entries that all replays for a question had to run."""
    argv = [tbdtest.TBDQ, "-t", trace.path, "--no-cache", "--explain", *argv]
    result = tbdtest.run(argv, stdin=None, env={"TBD_SLICE_BLOCKS": str(size)})
    assert result.code == 0, result
    return int(re.findall(rb"block entries replayed: (\d+)", result.err)[-1])


def test_registers_in_every_slice_cost_one_way_through_the_window(folder):
    """They are those of events, or of moments: each replay begins where its slice, or one before, does."""
    trace = merged("thread_mix", folder)
    blocks = trace.info()["blocks"]
    size = blocks // 50
    assert entries_replayed(trace, size, "count", "store", "where", "rax & 3 == 1") < 5 * blocks
    path = os.path.join(folder, "moments")
    with open(path, "w", encoding="utf-8") as f:
        f.writelines("goto %d\nprint $rsp\n" % (k * size + 3) for k in range(1, 50))
        f.write("count block_entry where time < 100\n")
    assert entries_replayed(trace, size, "-f", path) < 5 * blocks


def test_slices_know_which_instructions_access_shared_memory(folder):
    trace = merged("double_mapped", folder)
    assert check_same(trace, trace.info()["blocks"] // 17, "count store where rax & 3 == 1") != [[]]


def test_slices_of_any_size_verify(folder):
    for name in PROGRAMS:
        trace = merged(name, folder)
        blocks = trace.one("windows")["blocks"]
        for size in (blocks // 2, blocks // 50 + 1):
            result = tbdtest.run([tbdtest.TBDQ, "-t", trace.path, "verify"], stdin=None, env={"TBD_SLICE_BLOCKS": str(size)})
            assert result.code == 0, (trace, size, result)


def test_windows_that_come_in_slices_are_not_raised(folder):
    trace = merged("maps", folder)
    argv = [tbdtest.TBDQ, "-t", trace.path, "raise", "all"]
    result = tbdtest.run(argv, stdin=None, env={"TBD_SLICE_BLOCKS": "1000"})
    assert result.code == 2 and b"cannot be kept with their events" in result.err and b"hint: " in result.err, result
    assert [w["level"] for w in trace.ask("windows")] == [1]
    trace.ask("raise", "all")
    assert [w["level"] for w in trace.ask("windows")] == [3]


FAR = """
volatile unsigned sum;
__attribute__((noinline)) static void spin(unsigned n) { while (n--) sum += n; }
__attribute__((noinline)) static unsigned leaf(unsigned n)
{
    sum++;
    return n * 2;
}
__attribute__((noinline)) static unsigned deep(unsigned n)
{
    unsigned result = n == 0 ? leaf(n) : deep(n - 1) + leaf(n);
    sum += result;
    return result;
}
int main(void)
{
    for (unsigned round = 0; round < 3; round++) {
        spin(1500000);
        deep(5);
    }
    return 0;
}
"""


def test_steps_far_inside_a_window_are_those_in_short_windows(folder):
    """Walks that start far inside a window know the stack there."""
    os.makedirs(folder, exist_ok=True)
    source, program = os.path.join(folder, "far.c"), os.path.join(folder, "far")
    with open(source, "w", encoding="utf-8") as file:
        file.write(FAR)
    assert tbdtest.run(["cc", "-g", "-O0", "-o", program, source]).code == 0
    answers = []
    for window in (20000, 50000000):
        trace = tbdtest.record([program], os.path.join(folder, str(window)), "window=%d" % window)[1]
        calls = trace.ask("calls", "deep")
        assert [row["nesting"] for row in calls] == [0, 1, 2, 3, 4, 5] * 3 and calls[17]["result"] == "0", calls
        found = []
        for call in (calls[8], calls[15]):
            questions = ("next", "next 3", "reverse-next", "reverse-next 2", "finish", "reverse-finish", "step 4", "reverse-step 4",
                         "goto current backward func_enter 1 where stack=<**,main,deep,deep>",
                         "goto current forward func_exit 1 where stack=<**,main,deep>",
                         "goto current backward line 3 where frame == %s + 8" % call["sp"])
            answers_here = trace.script(line for question in questions for line in ("goto " + call["position"], question))[1::2]
            for question, rows in zip(questions, answers_here):
                event = rows[-1]
                found.append((question.split("==")[0], event["time"] - call["time"], event["offset"], event["function"], event.get("line")))
        answers.append(found)
    assert answers[0] == answers[1], [pair for pair in zip(*answers) if pair[0] != pair[1]]


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
