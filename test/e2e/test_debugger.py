#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A trace in gdb and lldb: what gdb's own tests of reverse debugging are about, conditions, signals, system calls, functions that are called, checkpoints.

gdb over the program itself says where to stop; the way back is the mirror of the way forward."""
import os
import re
import shutil
import subprocess

import othertools
import tbdtest
from test_remote import in_trace

SOURCE = os.path.join(tbdtest.SOURCE, "test", "programs", "reversed.c")
# Where it stands, without addresses that differ from run to run; `main` has the innermost frame's depth.
PLACE = """
gdb.execute("set print frame-info short-location")
def depth():
    frame, count = gdb.newest_frame(), 0
    while frame is not None:
        frame, count = frame.older(), count + 1
    return count
def place():
    frame = gdb.newest_frame()
    return [frame.name(), frame.find_sal().line, value("$pc") & 0xfff, depth()]
def shown(text):
    return gdb.parse_and_eval(text).format_string(max_elements=200)
def go_on(word, times=1):
    found = []
    for _ in range(times):
        run(word)
        found.append(place())
    return found
"""


def marks():
    """{name: line} of the program's comments."""
    with open(SOURCE, encoding="utf-8") as file:
        return {name: number for number, line in enumerate(file, 1) for name in re.findall(r"/\* mark: (\w+) \*/", line)}


def native(script):
    """The same script in gdb over the program, from main() on."""
    return othertools.gdb_script([tbdtest.program("reversed")], 'gdb.Breakpoint("main", temporary=True)\nrun()\n'
                                 "run = lambda line: gdb.execute(line, to_string=True)\n" + PLACE + script)


def replayed(trace, script):
    return in_trace(trace, "run('handle all nostop noprint pass')\nrun('tbreak main')\nrun('continue')\n" + PLACE + script)


FORWARD = """
def stops(*lines):
    for line in lines:
        run(line)
    say(place())
stops("break work if n > 3 && counter < 20 || n == 7", "continue")
say([shown("n"), shown("counter")])
stops("continue")
say([shown("n"), shown("counter")])
stops("delete", "tbreak bump", "continue")
stops("until")
stops("finish")
stops("advance work")
stops("finish")
stops("delete", "break depth_of if n % 2 == 1", "continue")
say(go_on("continue", 2))
stops("delete", "tbreak states", "continue")
say(go_on("next", 4))
stops("finish")
stops("handle SIGUSR1 stop print pass", "continue")
say([shown("$_siginfo.si_signo"), shown("$_siginfo.si_code")])
stops("stepi")
stops("finish")
stops("handle SIGUSR1 nostop noprint pass", "tbreak handler", "continue")
stops("next")
stops("break handler", "continue")
say(go_on("continue", 3))
"""
# gdb over a program stops after the instruction that calls the kernel, before the call is made.
CALLS = """
run("catch syscall write")
found = []
for i in range(6):
    run("continue")
    found.append([gdb.newest_frame().name(), value("$pc") - (CALL if i % 2 == 0 else 0) & 0xfff, value("$rdi"), value("$rdx")])
say(found)
"""


def test_stops_are_those_of_gdb_over_the_program(folder):
    """Conditions, tbreak, until, advance, finish, signals before their handlers, system calls and their returns."""
    trace = tbdtest.record([tbdtest.program("reversed")], folder)[1]
    ours, theirs = replayed(trace, FORWARD), native(FORWARD)
    assert len(theirs) > 15 and ours == theirs, [pair for pair in zip(ours, theirs) if pair[0] != pair[1]][:3]
    ours, theirs = replayed(trace, "CALL = 0\n" + CALLS), native("CALL = 2\n" + CALLS)
    assert ours == theirs and len(ours[0]) == 6, (ours, theirs)


RANDOM = """
import random
WORDS = ["stepi", "stepi 3", "nexti", "step", "next", "next 2", "finish", "until", "advance bump", "advance work"] + 5 * ["point"]
POINTS = ["bump if by %% %d == %d", "work if n > %d && counter >= %d", "depth_of if n < %d || n == %d", "handler if number > %d + %d", "loops if n > %d + %d", "states if n != %d + %d"]
def at_end():
    return not alive() or gdb.newest_frame().name() in ("_exit", "__GI__exit")
def alive():
    return gdb.selected_inferior().pid != 0
def sequence(number):
    rng, said = random.Random(number), []
    run("tbreak work if n == %d" % rng.randrange(6))
    begin()
    for _ in range(10):
        said.append(place())
        word = rng.choice(WORDS)
        if word == "point":
            run("tbreak " + rng.choice(POINTS) % (rng.randrange(1, 4), rng.randrange(3)))
            word = "continue"
        if word == "finish" and gdb.newest_frame().name() == "main":
            word = "next"
        said.append(word)
        run(word)
        if at_end():
            break
    run("delete")
    return said
"""
BACK = """
def begin():
    run("tbd goto first")
    run("continue")
for number in range(%d):
    say(sequence(number))
    rng = random.Random(-number)
    for point in rng.sample(POINTS, 3):
        run("break " + point %% (rng.randrange(1, 4), rng.randrange(3)))
    run("catch syscall write")
    begin()
    forward = go_on("continue", 5)
    backward = go_on("reverse-continue", 4)
    say([[x for x in forward[:-1][::-1] if x[0] not in ("_exit", "__GI__exit")], backward])
    run("delete")
"""


def test_random_sequences_are_those_of_gdb_over_the_program(folder):
    """Forward as over the program; then stops backward are the mirror of those forward."""
    count = 200 if tbdtest.LONG else 6
    trace = tbdtest.record([tbdtest.program("reversed")], folder)[1]
    ours = in_trace(trace, "run('handle all nostop noprint pass')\n" + PLACE + RANDOM + BACK % count, timeout=3000)
    theirs = othertools.gdb_script([tbdtest.program("reversed")], "run = lambda line: gdb.execute(line, to_string=True)\n" + PLACE + RANDOM +
                                   "def begin():\n    run('run')\nfor number in range(%d):\n    say(sequence(number))\n" % count, timeout=3000)
    assert len(theirs) == count and ours[::2] == theirs, [(n, pair) for n, pair in enumerate(zip(ours[::2], theirs)) if pair[0] != pair[1]][:1]
    for number, (forward, backward) in enumerate(ours[1::2]):
        assert len(forward) < 4 or forward == backward, (number, forward, backward)


REVERSE = """
line = %r
def at():
    frame = gdb.newest_frame()
    return "%%s:%%d" %% (frame.name(), frame.find_sal().line)
def want(word, function, mark):
    for one in word.split("; "):
        run(one)
    say([word, at(), "%%s:%%d" %% (function, line[mark])])
# step, next and finish, into functions and over them, over a library's too
want("tbreak reversed.c:%%d; continue" %% line["after"], "main", "after")
want("next", "main", "sum")
want("reverse-next", "main", "after")
want("reverse-next", "main", "call")
want("step", "work", "work")
want("next", "work", "write")
want("reverse-next", "work", "work")
want("next; next", "work", "worked")
want("reverse-next", "work", "write")
want("reverse-finish", "main", "call")
want("tbreak bump; continue", "bump", "bump")
want("finish", "main", "sum")
# breakpoints, those next to each other, conditions
want("break reversed.c:%%d; break reversed.c:%%d; continue" %% (line["quick"], line["kept"]), "states", "quick")
want("continue", "states", "kept")
want("reverse-continue", "states", "quick")
want("continue; continue", "states", "quick")
want("reverse-continue", "states", "kept")
want("reverse-continue", "states", "quick")
# variables there and back: in a register, static, of a block, global
before = [shown(x) for x in ("quick", "kept", "n", "counter", "watched")]
want("next", "states", "kept")
run("next"); run("next")
between = [shown(x) for x in ("quick", "kept", "n", "counter", "watched")]
run("reverse-next"); run("reverse-next"); run("reverse-next")
say([before, between, [shown(x) for x in ("quick", "kept", "n", "counter", "watched")]])
# a watchpoint, both ways
run("delete")
run("watch watched")
run("continue"); first = shown("watched")
run("continue"); second = shown("watched")
run("reverse-continue"); third = shown("watched")
run("reverse-continue"); fourth = shown("watched")
say([first, second, third, fourth])
run("delete")
# until and advance, both ways
want("tbreak reversed.c:%%d; continue" %% line["loop"], "loops", "loop")
want("until; until; until", "loops", "left")
want("tbreak reversed.c:%%d; reverse-continue" %% line["loops"], "main", "loops")
want("advance reversed.c:%%d" %% line["left"], "loops", "left")
# recursion
want("tbreak reversed.c:%%d; reverse-continue" %% line["bottom"], "depth_of", "bottom")
say(depth())
want("reverse-finish", "depth_of", "deeper")
# signals: each handler there and back
run("break handler")
forward = go_on("continue", 8)
backward = go_on("reverse-continue", 7)
say([forward[:-1][::-1], backward, len({tuple(x) for x in forward})])
run("delete")
# every signal before its handler
run("tbreak signals"); run("reverse-continue")
run("handle all stop print pass")
forward = go_on("continue", 6)
backward = go_on("reverse-continue", 5)
say([forward[:-1][::-1], backward, len(forward)])
run("handle all nostop noprint pass")
# mappings at the position
want("tbreak reversed.c:%%d; continue" %% line["print"], "main", "print")
want("next; reverse-next", "main", "print") # over printf(), and back over it
want("reverse-next; next", "main", "print")
want("tbreak reversed.c:%%d; reverse-continue" %% line["unmap"], "main", "unmap")
address = "%%#x" %% value("(long)mapping")
def is_mapped(): # another mapping may end there
    return any(row.split()[:1] == [address] for row in run("info proc mappings").splitlines())
has = [is_mapped()]
for word in ("next", "reverse-next"):
    run(word)
    has.append(is_mapped())
say(has)
# checkpoints and commands that move
run("checkpoint")
there = place()
run("tbd goto first forward func_enter 2 where func==bump")
moved = place()
run("restart 1")
say([moved[0], there, place(), run("info checkpoints").count("position")])
# functions that are called, in a copy
run("tbreak reversed.c:%%d" %% line["kept"]); run("reverse-continue")
state = [shown(x) for x in ("counter", "watched", "$rax", "$rsp", "$pc", "$eflags", "$xmm0")]
say([shown(x) for x in ("bump(5)", "bump(5)", "half(5.0, 2)", 'length("hello")', "depth_of(3)", "counter")])
say(state == [shown(x) for x in ("counter", "watched", "$rax", "$rsp", "$pc", "$eflags", "$xmm0")])
for wrong in ("print counter = 1", "print $rax = 1", "print aborts()"):
    try:
        run(wrong)
        say("done")
    except gdb.error as error:
        say(str(error).splitlines()[0])
run("reverse-stepi"); run("stepi")
say(state == [shown(x) for x in ("counter", "watched", "$rax", "$rsp", "$pc", "$eflags", "$xmm0")])
say(run("monitor where").split()[0])
say([run("info sharedlibrary").count("Yes"), "AT_PHDR" in run("info auxv"), "rw" in run("info mem")])
"""


def test_what_reverse_debugging_is_tested_for(folder):
    """The subjects of gdb.reverse: step, next, finish, until, break, consecutive, printf, watch, machinestate, solib, recursion, signals."""
    trace = tbdtest.record([tbdtest.program("reversed")], folder)[1]
    said = replayed(trace, REVERSE % marks())
    moves = [row for row in said if isinstance(row, list) and len(row) == 3 and isinstance(row[0], str) and isinstance(row[1], str) and ":" in row[1]]
    assert len(moves) > 25 and all(row[1] == row[2] for row in moves), [row for row in moves if row[1] != row[2]]
    rest = [row for row in said if row not in moves]
    before, between, after = rest[0]
    assert before == after != between, rest[0]
    first, second, third, fourth = rest[1]
    assert first != second and third == first and fourth == "0", rest[1]
    assert rest[2] >= 6 and rest[3][0] == rest[3][1] and rest[3][2] == 1, rest[2:4]
    assert rest[4][0] == rest[4][1] and rest[4][2] == 6, rest[4]
    assert rest[5] == [True, False, True], rest[5:7]
    assert rest[6][0] == "bump" and rest[6][1] == rest[6][2] and rest[6][3] == 1, rest[6]
    counter = int(rest[7][5])
    assert rest[7] == [str(counter + 5), str(counter + 5), "2.5", "5", "3", str(counter)], rest[7]
    assert rest[8] is True and rest[11].startswith("The program being debugged ") and "done" not in rest[9:12], rest[8:12]
    assert rest[12] is True and rest[14][0] >= 3 and rest[14][1:] == [True, True], rest[12:]


EVERY = """
stopped = []
gdb.events.stop.connect(lambda event: stopped.append(getattr(event, "stop_signal", "breakpoint")))
run("handle all stop print pass")
run("handle SIGTRAP nopass")
def stops(word):
    found = []
    while len(found) < 300:
        stopped.clear()
        run(word)
        if ended():
            return found
        frame = gdb.newest_frame()
        found.append([stopped[0], frame.name(), int(gdb.parse_and_eval("wanted")), int(gdb.parse_and_eval("caught"))])
    return found
"""


def test_every_signal_stops_both_ways(folder):
    """Before its handler, and in it, as over the program itself; backward the same, the last one first."""
    program = tbdtest.program("every_signal")
    native = othertools.gdb_script([program], EVERY.replace("run(", "order(").replace("stopped = []", """
order = lambda line: gdb.execute(line, to_string=True)
def ended():
    return gdb.selected_inferior().pid == 0
stopped = []""", 1) + """
order("tbreak main"); run(); order("break handle")
say(stops("continue"))
""", timeout=300)[0]
    trace = tbdtest.record([program], folder)[1]
    forward, backward = replayed(trace, """
def ended():
    return gdb.newest_frame().name() in ("_exit", "__GI__exit") or value("wanted") == 0
""" + EVERY + """
run("break handle")
say(stops("continue"))
say(stops("reverse-continue"))
""")
    names = {row[0] for row in native}
    assert len(native) > 110 and len(names) > 50, (len(native), sorted(names))
    assert forward == native, (len(forward), len(native), [pair for pair in zip(forward, native) if pair[0] != pair[1]][:3])
    assert backward == forward[::-1], (len(forward), len(backward), backward[-1], [pair for pair in zip(backward, forward[::-1]) if pair[0] != pair[1]][:3])


def lldb(trace, program, *commands):
    """What lldb says to these commands; it has the last word by `continue`."""
    path = tbdtest.need("lldb-14") if shutil.which("lldb-14") else tbdtest.need("lldb")
    server = subprocess.Popen([tbdtest.TBDQ, "-t", trace.path, "--at", "first", "serve", "--gdb", ":0"], stderr=subprocess.PIPE, env=tbdtest.clean_env())
    try:
        port = re.search(rb":(\d+)", server.stderr.readline()).group(1).decode()
        words = ["settings set plugin.process.gdb-remote.packet-timeout 100", "settings set stop-line-count-before 0", "settings set stop-line-count-after 0",
                 "target create " + program, "gdb-remote 127.0.0.1:" + port, *commands]
        result = subprocess.run([path, "--no-lldbinit", "--batch"] + [w for word in words for w in ("-o", word)], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=250, check=False, env=tbdtest.clean_env())
    finally:
        server.terminate()
        server.communicate()
    return result.stdout.decode(errors="replace")


def test_lldb_steps_both_ways(folder):
    trace = tbdtest.record([tbdtest.program("reversed")], folder)[1]
    line = marks()
    back = "process plugin packet monitor direction back"
    said = lldb(trace, tbdtest.program("reversed"), "breakpoint set --name bump --condition 'by == 3'", "continue", "thread step-out", "thread step-over",
                "thread step-inst", back, "thread step-inst", "thread step-inst", "continue", "expression bump(5)", "expression counter", "bt", "register read rip ymm0",
                "image list", "thread list")
    places = re.findall(r"frame #0: 0x[0-9a-f]+ reversed`(\w+)(?:\([^)]*\))? at reversed\.c:(\d+)", said)
    lines = [(name, int(number)) for name, number in places]
    loop = line["call"] - 1
    wanted = [("bump", line["bump"]), ("main", line["sum"]), ("main", loop), ("main", loop), ("main", loop), ("main", line["sum"]), ("bump", line["bump"])]
    assert lines[:7] == wanted, (lines, said)
    assert "$1 = 8" in said and "$2 = 3" in said and "libc.so.6" in said and "ymm0 = " in said, said


if __name__ == "__main__":
    tbdtest.main(test_every_signal_stops_both_ways, test_stops_are_those_of_gdb_over_the_program, test_random_sequences_are_those_of_gdb_over_the_program, test_what_reverse_debugging_is_tested_for, test_lldb_steps_both_ways)
