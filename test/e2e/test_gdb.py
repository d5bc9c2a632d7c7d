#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Stacks, locals and globals at random moments of many programs are what gdb shows there.

A moment is a time chosen by a seed; gdb gets to it by counting how often its instruction was executed since main() began,
in a run with the same addresses.  Frames are compared by address through all libraries up to _start, names and variables
in the program's own frames."""
import os
import random
import re
import subprocess

import othertools
import tbdtest
from test_source import known

OPTIONS = "window=500000"
# (folder, programs); the first list runs always, the second with TBD_LONG=1.  Left out: programs whose memory holds random
# bytes of the kernel (stack protectors, pointer guards), process ids or addresses of translated code (x87 environments), and those that gdb
# would take minutes for.
PROGRAMS = [("programs", ["containers", "rep", "variables_O2_5"]), ("examples/forensics", ["ring"])]
MORE = [("programs", ["recursion_fixed", "switches", "recursion", "straddle", "strings", "tls", "variables_O0_4", "variables_O0_5", "variables_O2_4", "vector_sse",
                      "args", "jumps", "stores", "stores_fixed", "atomics"]),
        ("examples/forensics", ["leak", "list_fixed", "neighbour", "stale_flag", "uninitialised", "use_after_free", "double_free_fixed", "leak_fixed",
                                "ring_fixed", "use_after_free_fixed"]),
        ("examples", ["list", "overflow", "stale", "lost"])]
MOMENTS = 24 if tbdtest.LONG else 4
LIMIT = 400000  # blocks: gdb stops at every execution of an instruction, however often it is told to go on

SCRIPT = """
for line in ("set backtrace past-main on", "set backtrace past-entry off", "set print frame-arguments none",
             "set print symbol off", "set print elements 200", "set max-value-size unlimited",
             "set print object off", "set host-charset ASCII", "set target-charset ASCII", "set print vtbl off"):
    gdb.execute(line)
own = %r
if own.startswith("containers"):
    gdb.execute("set language c++")
def text(symbol, frame):
    try:
        return symbol.value(frame).format_string()
    except gdb.error as error:
        return "error: %%s" %% error
# An object of C++ that is not constructed yet is nonsense, and gdb's printers say so in ways of their own.
def is_made(symbol, frame):
    return not own.startswith("containers") or symbol.is_argument or frame.find_sal().line > symbol.line
def variables(frame):
    try:
        block = frame.block()
    except RuntimeError:
        return None
    found = []
    while block is not None:
        found += [[s.name, text(s, frame)] for s in block if (s.is_variable or s.is_argument) and is_made(s, frame)]
        if block.function is not None:
            return found
        block = block.superblock
    return found
def is_own(frame):
    line = frame.find_sal().symtab
    return line is not None and line.objfile.filename.split("/")[-1] == own
def stack():
    frame, found = gdb.newest_frame(), []
    while frame is not None and len(found) < 60:
        if frame.type() == gdb.TAILCALL_FRAME: # not on the stack: gdb's conclusion about what jumped away
            frame = frame.older()
            continue
        found.append([frame.pc(), frame.name() if is_own(frame) or frame.name() is None else "", frame.type() == gdb.INLINE_FRAME,
                      frame.type() == gdb.SIGTRAMP_FRAME, variables(frame) if is_own(frame) else None])
        frame = frame.older()
    return found
gdb.Breakpoint("main", temporary=True)
run()
wanted = %r
stops = {}
for pc, hit in wanted:
    if value("$pc") == pc:
        hit -= 1
    if hit == 0:
        say([pc, stack(), value("$rsp")])
        continue
    b = gdb.Breakpoint("*%%#x" %% pc)
    b.ignore_count = hit - 1
    stops[pc] = b
while stops and alive():
    go()
    if not alive():
        break
    pc = value("$pc")
    if pc in stops:
        say([pc, stack(), value("$rsp")])
        stops.pop(pc).delete()
"""


def moments(trace, seed):
    """{pc: (time, hits since main() began)} of random times after main() began; each pc once."""
    main = tbdtest.position(trace.one("goto", "first", "forward", "func_enter", 1, "where", "func==main"))
    first, last = int(main.split("+")[0]), int(tbdtest.position(trace.one("goto", "last")).split("+")[0])
    chosen, found = random.Random(seed), {}
    for _ in range(8):
        times = [chosen.randint(first, last - 1) for _ in range(MOMENTS)]
        places = trace.script([line for time in times for line in ("goto %d+0" % time, "where")])[1::2]
        drawn = {int(place["pc"], 16): time for [place], time in zip(places, times)}
        drawn = {pc: time for pc, time in drawn.items() if pc not in found}
        # How often since main() began; the block at main() counts when it begins there.
        hits = trace.script(["all block_entry where pc==%#x and time>=%d and time<=%d" % (pc, first, time) for pc, time in drawn.items()])
        found.update({pc: (time, len(events)) for (pc, time), events in zip(drawn.items(), hits) if len(events) <= 200})
        if len(found) >= MOMENTS:
            break
    return dict(list(found.items())[:MOMENTS])


def tidy_name(name):
    """Without parameters and the mark that a compiler gives to a part of a function, or to one within another."""
    return re.sub(r"\(.*|(\.(part|cold|constprop|isra))?\.\d+", "", name or "")


def tidy_value(text):
    text = known(text)
    text = re.sub(r"\[\d+\] = ", "", text)  # gdb numbers the elements of lists and sets
    text = re.sub(r'"((?:[^"\\]|\\(?!000).)*)\\000(?:[^"\\]|\\.)*"(\.\.\.)?', r'"\1"', text)  # up to the first NUL
    text = text.replace('"...', '"')  # each has its own limit
    text = re.sub(r"@0x[0-9a-f]+: ", "", text)  # its printers leave out where a reference leads
    text = re.sub(r"(0x[0-9a-f]+) <(?:[^<>]|<[^<>]*>)*>", r"\1", text)  # what the pointer leads to
    text = re.sub(r"^\((?:[^(){}]|\([^()]*\))* [*&]\) ", "", text)  # the class of an object
    text = re.sub(r"<(\w+::)+(\w+)> = ", r"<\2> = ", text)  # a base class, without its namespace
    return re.sub(r"std::(\w+)<(\w+::)*(\w+)>", r"std::\1<\3>", text)


def same_values(found, wanted):
    """Names that both know; what gdb cannot read is not compared."""
    differences, number = [], 0
    # gdb lists what an inlined function inherits twice, once without a place.
    places = {name for name, text in wanted if "<optimized out>" not in text}
    wanted = [(name, text) for name, text in wanted if text != "<optimized out>" or name not in places]
    for name, text in wanted:
        if name not in found or text.startswith("error: ") or "<error" in text or "<synthetic" in text:
            continue
        # Its printer of std::deque, while the constructor is at work: fewer than no elements.
        if re.match(r"std::\w+ with -\d+ elements", text):
            continue
        # gdb assumes that a register which functions may change freely still has the caller's value.
        if any("which a called function may have changed" in t for t in found[name]):
            continue
        number += 1
        if tidy_value(text) not in [tidy_value(t) for t in found[name]]:
            differences.append((name, found[name], text))
    return differences, number


def check_stack(at, said, frames, regs, tally):
    """The frames that both know: [(number, tbdq's, gdb's)]."""
    pc, wanted, sp = said
    assert int(regs["rsp"], 16) == sp, (at, hex(pc))
    frames = frames[:60]
    found = [int(f["pc"], 16) for f in frames if not f.get("inlined")]
    # Code of the C runtime without frame information: gdb guesses, into data at times.
    wanted = [f for f in wanted if f[1] is not None or f[0] in found]
    theirs = [f[0] for f in wanted if not f[2]]
    # Without frame information (the bottom of a coroutine's stack) gdb ends; tbdq shows what looks like a caller, marked as a guess.
    while len(found) > len(theirs) and frames[-1].get("guess"):
        frames, found = frames[:-1], found[:-1]
    assert found == theirs, (at, [hex(a) for a in found], [hex(a) for a in theirs])
    tally["frames"] += len(theirs)
    pairs = [(number, frame, their) for number, (frame, their) in enumerate(zip(frames, wanted)) if their[1]]
    for number, frame, (_, name, inlined, _, _) in pairs:
        assert tidy_name(frame["function"]) == tidy_name(name) and bool(frame.get("inlined")) == inlined, (at, number, frame, name)
    # gdb's printers have their own notation for some templates of libraries.
    # Values at entry are followed through a limited number of callers.
    return [(number, frame, their) for number, frame, their in pairs
            if len(wanted) < 60 and their[4] and not their[1].startswith(("std::", "__gnu_cxx::", "operator"))]


def check_locals(at, number, frame, their, rows, tally):
    ours = {}
    # At a function's first instruction gdb shows the frame, where unoptimized code has stored no parameter yet; tbdq
    # shows what is passed (test_source.py compares that with the source).
    is_entry = number == 0 and frame.get("function_offset") == 0
    for v in rows:
        if not (is_entry and v.get("parameter")):
            ours.setdefault(v["name"], []).append(v["value"])
    differences, count = same_values(ours, their[4])
    assert not differences, (at, number, their[1], differences)
    tally["values"] += count


def check_moments(trace, wanted, said, tally):
    ats = ["%d+0" % wanted[answer[0]][0] for answer in said]
    answers = trace.script([line for at in ats for line in ("goto " + at, "bt", "regs")])
    found = [check_stack(at, answer, answers[3 * i + 1], answers[3 * i + 2][0], tally) for i, (at, answer) in enumerate(zip(ats, said))]
    answers = iter(trace.script([line for at, frames in zip(ats, found) for line in ["goto " + at] + ["locals %d" % f[0] for f in frames]]))
    for at, frames in zip(ats, found):
        next(answers)
        for frame in frames:
            check_locals(at, *frame, next(answers), tally)


def check_program(path, folder, tally):
    result, trace = tbdtest.record(tbdtest.fixed([path]), folder, OPTIONS)
    trace = tbdtest.find_trace(folder, path)
    if trace is None or trace.info()["blocks"] > LIMIT:
        return
    wanted = moments(trace, path.split("/")[-1])
    env = tbdtest.idle_env(folder, OPTIONS)
    said = othertools.gdb_script([path], SCRIPT % (os.path.basename(path), [(pc, hits) for pc, (_, hits) in wanted.items()]), env=env,
                                 own_mistakes=True)
    check_moments(trace, wanted, said, tally)
    tally["moments"] += len(said)
    tally["programs"] += bool(said)


def check_programs(check, folder, tally, programs=None):
    """check(path, folder, tally) for each program; in the long form these are all."""
    chosen = PROGRAMS + MORE if tbdtest.LONG else programs or PROGRAMS
    paths = [os.path.join(tbdtest.BUILD, where, name) for where, names in chosen for name in names]
    for path in [p for p in paths if os.path.exists(p)]:
        try:
            check(path, os.path.join(folder, path.replace("/", "_")), tally)
        except AssertionError as error:
            raise AssertionError("%s: %s" % (path, error))
        print("        %s: %s" % (os.path.basename(path), tally), flush=True)


def test_random_moments_are_as_gdb_sees_them(folder):
    tally = {"programs": 0, "moments": 0, "frames": 0, "values": 0}
    check_programs(check_program, folder, tally)
    assert tally["programs"] >= (30 if tbdtest.LONG else 4) and tally["values"] > (100 if tbdtest.LONG else 30), tally
    assert tally["moments"] >= (300 if tbdtest.LONG else 12), tally


if __name__ == "__main__":
    tbdtest.main(test_random_moments_are_as_gdb_sees_them)
