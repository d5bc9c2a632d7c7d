#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random sequences of gdb's commands, with breakpoints, conditions, counts and watched variables: over a trace they stop where they stop over
the program itself, and backward a run stops at the same places, the last one first.  With TBD_LONG=1: 200 sequences, else a few."""
import json

import othertools
import test_remote
import tbdtest

# In 10, 15 and 27 gdb steps to where the condition of a breakpoint does not hold; in 51, 61 and 75 over accesses to watched memory.
SEEDS = list(range(200)) if tbdtest.LONG else [10, 15, 27, 51, 61, 75, 0, 1, 2, 3]
COUNT = len(SEEDS)

WALK = """
import random
LINES = [20, 23, 25, 27, 28, 36, 38, 39, 40, 41, 47, 48, 57, 58, 69, 72, 73, 75]
CONDITIONS = {"insert": ["key == 7", "key > 15", "at == 0", "key == 4 && used > 5", "at != 0 && at->key < key", "total != 0 || key == 12"],
              "sum": ["level == 3", "at != 0 && at->key % 3 == 1", "level > 2 && depth < 5", "at == 0 && level == 4"],
              "mark": ["n == 5", "n > 3 && table[0] > 6", "flags == 1", "!(n < 7)"], "collatz": ["n == 7", "n % 2 == 1", "(n & 6) == 6", "n > 1 && n < 5"]}
WATCHES = ["total", "depth", "used", "flags", "table[3]", "nodes[4].uses", "*(int *)&nodes[9].key"]
def alive_here():
    try:
        return gdb.newest_frame().name() not in ("_exit", "__GI__exit", "_dl_start", "_start")
    except gdb.error:
        return False
def place():
    if not alive_here():
        return ["end"]
    frame, depth = gdb.newest_frame(), 0
    while frame.older() is not None and frame.name() != "main" and depth < 50:
        frame, depth = frame.older(), depth + 1
    frame = gdb.newest_frame()
    said = [frame.name(), frame.find_sal().line, value("$pc") & 0xfff, depth]
    return said + [int(gdb.parse_and_eval(name)) for name in ("total", "depth", "used", "flags")]
def points(rng, watches):
    made = []
    for _ in range(rng.randrange(1, 4)):
        name = rng.choice(list(CONDITIONS))
        made.append(rng.choice(["break " + name, "break %s if %s" % (name, rng.choice(CONDITIONS[name])), "break %s if %s" % (name, rng.choice(CONDITIONS[name])),
                                "break gdb_walk.c:%d" % rng.choice(LINES), "tbreak " + name]))
    for _ in range(rng.choice([0, 0, 1, 2]) if watches else 0):
        made.append(rng.choice(["watch ", "watch ", "watch -location ", "awatch "]) + rng.choice(WATCHES))
    return made
def one(word):
    if gdb.newest_frame().name() not in ("insert", "sum", "mark", "collatz") and word.split()[0] in ("finish", "until", "advance"):
        word = "next"
    run(word)
def walk(number, watches):
    rng = random.Random(number)
    begin()
    said = []
    for line in points(rng, watches):
        run(line)
        said.append(line)
    for _ in range(14):
        word = rng.choice(["continue"] * 6 + ["continue %d" % rng.randrange(2, 5), "next", "next 3", "step", "step", "step 4", "stepi 3", "nexti", "finish", "until",
                           "advance %d" % rng.choice(LINES)])
        if not alive_here():
            break
        one(word)
        said.append([word] + place())
    run("delete")
    return said
"""

NATIVE = """
run = lambda line: gdb.execute(line, to_string=True)
def begin():
    run("tbreak main")
    run("run")
"""
IN_TRACE = """
def begin():
    run("delete"); run("reverse-continue"); run("reverse-continue"); run("tbreak main"); run("continue")
"""


def differences(ours, theirs):
    for number, (a, b) in enumerate(zip(ours, theirs)):
        if a != b:
            at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
            yield SEEDS[number], [x for x in a if isinstance(x, str)], at, a[max(at - 1, 0):at + 1], b[max(at - 1, 0):at + 1]


def test_random_walks_stop_as_over_the_program(folder):
    watches = True
    try:
        othertools.need_watchpoints()
    except tbdtest.Skip:
        watches = False
    argv = [tbdtest.program("gdb_walk")]
    script = WALK + "for number in %r:\n    say(walk(number, %r))\n" % (SEEDS, watches)
    native = othertools.gdb_script(argv, NATIVE + script, timeout=1500)
    trace = tbdtest.record(argv, folder)[1]
    ours = test_remote.in_trace(trace, IN_TRACE + script, timeout=1500)
    assert len(ours) == len(native) == COUNT
    found = list(differences(ours, native))
    assert not found, "%d of %d; the first: %r" % (len(found), COUNT, found[:3])
    places = {json.dumps(row[1:]) for rows in native for row in rows}
    assert len(places) > min(4 * COUNT, 200), len(places)  # the program has no more than some hundred that differ


def test_runs_back_are_the_mirror_of_runs(folder):
    trace = tbdtest.record([tbdtest.program("gdb_walk")], folder)[1]
    said = test_remote.in_trace(trace, IN_TRACE + WALK + """
def stops(word):
    found = []
    while len(found) < 400:
        run(word)
        if run("monitor where").split()[0] in ends:
            return found
        found.append([run("monitor where").split()[0]] + place())
run("monitor goto last")
ends = [run("monitor goto first").split()[0], run("monitor goto last").split()[0]]
for number in range(%d):
    begin()
    run("reverse-continue"); run("reverse-continue")
    for line in points(random.Random(1000 + number), False):
        if not line.startswith("tbreak"):
            run(line)
    forward = stops("continue")
    say([forward, stops("reverse-continue")[::-1]])
""" % COUNT, timeout=1500)
    assert len(said) == COUNT
    for number, (forward, backward) in enumerate(said):
        assert forward == backward, (number, [x for x in zip(forward, backward) if x[0] != x[1]][:2], len(forward), len(backward))
    assert sum(len(forward) for forward, _ in said) > 5 * COUNT


MIRROR = """
stopped = []
gdb.events.stop.connect(lambda event: stopped.append([[point.number, point.type != gdb.BP_BREAKPOINT] for point in getattr(event, "breakpoints", [])]))
def at():
    time, offset = run("monitor where").split()[0].split("+")
    return [int(time), int(offset)]
def stops(word):
    # Each thing at which a run stops, in the order in which the run meets it: an access to watched memory comes before what is after it.
    turn = -1 if word.startswith("reverse") else 1
    found, before = [], None
    while len(found) < 400:
        stopped.clear()
        run(word)
        here = at()
        if here in ends:
            return found
        for number, watches in sorted(stopped[0], key=lambda row: (not row[1], turn * row[0])):
            found.append([number, watches] + here)
    return found
run("monitor goto last")
ends = [at()]
run("monitor goto first")
ends.append(at())
def mirror(number):
    begin()
    run("reverse-continue"); run("reverse-continue")
    made = [line for line in points(random.Random(number), True) if not line.startswith("tbreak")]
    for line in made:
        run(line)
    forward = stops("continue")
    say([made, forward, stops("reverse-continue")[::-1]])
"""


def follows(before, after):
    """Is `after` the position one instruction later?"""
    return after in ([before[0], before[1] + 1], [before[0] + 1, 0])


def is_mirror(forward, backward):
    """Forward a run stops after an access, backward before it."""
    if len(forward) != len(backward):
        return False
    key = lambda row: row[:2] + (row[2:] if not row[1] else [])
    return all(key(a) == key(b) and (not a[1] or follows(b[2:], a[2:])) for a, b in zip(forward, backward))


def test_watched_memory_stops_runs_both_ways(folder):
    """Breakpoints and watchpoints together, to the end and back again."""
    trace = tbdtest.record([tbdtest.program("gdb_walk")], folder)[1]
    said = test_remote.in_trace(trace, IN_TRACE + WALK + MIRROR + "for number in range(2000, %d):\n    mirror(number)\n" % (2000 + COUNT), timeout=1500)
    assert len(said) == COUNT
    wrong = [(2000 + i, row[0], len(row[1]), len(row[2]), [x for x in zip(row[1], row[2]) if not is_mirror([x[0]], [x[1]])][:2])
             for i, row in enumerate(said) if not is_mirror(row[1], row[2])]
    assert not wrong, "%d of %d; the first: %r" % (len(wrong), COUNT, wrong[:3])
    assert sum(row[1] for _, forward, _ in said for row in forward) > COUNT and sum(not row[1] for _, forward, _ in said for row in forward) > COUNT


def test_watchpoints_that_gdb_carries_out_itself(folder):
    """A watch that gdb looks at after each instruction stops where one of ours does, both ways."""
    trace = tbdtest.record([tbdtest.program("gdb_walk")], folder)[1]
    found = []
    for hardware in (1, 0):
        found.append(test_remote.in_trace(trace, """
run("set can-use-hw-watchpoints %d")
def at():
    return run("monitor where").split()[0]
def go(word, count):
    rows = []
    for _ in range(count):
        run(word)
        rows.append([at(), value(expression)])
    return rows
run("tbreak mark if n == 2"); run("continue")
begin = at()
for expression, count in (("flags", 3), ("table[1]", 2), ("i", 2)):
    run("monitor goto " + begin); run("stepi"); run("reverse-stepi")
    kind = run("watch " + expression).split()[0]
    said = [kind, go("continue", count), go("reverse-continue", count - 1)]
    run("delete")
    say(said)
""" % hardware, timeout=600))
    assert [row[0] for row in found[0]] == ["Hardware"] * 3 and [row[0] for row in found[1]] == ["Watchpoint"] * 3, found
    assert [row[1:] for row in found[0]] == [row[1:] for row in found[1]], found


if __name__ == "__main__":
    tbdtest.main(test_random_walks_stop_as_over_the_program, test_runs_back_are_the_mirror_of_runs, test_watched_memory_stops_runs_both_ways,
                 test_watchpoints_that_gdb_carries_out_itself)
