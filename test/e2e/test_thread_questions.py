#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Threads: questions about them against gdb, against each other, and against a plain reading of the windows."""
import collections
import os
import re

import othertools
import stepping
import tbdtest

KEPT = "rbx r12 r13 r14 r15".split()
SMALL = "quantum=61,window=97"


def recorded(folder, name, options=SMALL):
    _, trace = tbdtest.record([tbdtest.program(name)], folder, options)
    assert trace.ask("threads"), trace
    return trace


def on_thread(trace, thread, command, at=None):
    words = [tbdtest.TBDQ, "-t", trace.path, "--json", "--thread", str(thread)] + (["--at", at] if at else [])
    result = tbdtest.run(words + command.split(), stdin=None)
    assert result.code == 0, result
    return [tbdtest.json.loads(line) for line in result.out.decode().splitlines()]


class Reading:
    """Block entries, calls and system calls of a trace, read from what `dump` prints of each window."""

    def __init__(self, trace):
        self.entries = []   # (time, thread, address)
        self.entered = []   # (time, thread): blocks after a call of their thread
        self.calls = []     # (time of the call's block, thread)
        self.switches = []  # (time of the next block, thread, from)
        thread = trace.ask("threads")[0]["thread"]
        called, began = {}, {}
        lines = "".join("dump %d\n" % window for window in range(trace.info()["windows"]))
        result = tbdtest.run([tbdtest.TBDQ, "-t", trace.path], stdin=lines.encode())
        assert result.code == 0, result
        for line in result.out.decode().splitlines():
            words = line.split()
            if "block" in words[2:3]:
                time = int(words[1])
                self.entries.append((time, thread, int(words[4], 16)))
                if called.pop(thread, False):
                    self.entered.append((time, thread))
                began[thread] = time
            elif words[2:3] == ["call"]:
                called[thread] = True
            elif "control to thread" in line:
                match = re.search(r"control to thread (\d+) from (\d+)", line)
                thread = int(match.group(1))
                self.switches.append((self.entries[-1][0] + 1 if self.entries else 0, thread, int(match.group(2))))
            elif "message %d," % 8 in line:
                self.calls.append((began[thread], thread))
            elif "message %d," % 10 in line:
                called.pop(thread, None)


def test_registers_of_waiting_threads_as_gdb_sees_them(folder):
    path = tbdtest.program("thread_registers")
    said = othertools.gdb_script([path], """
gdb.execute("set non-stop off")
gdb.Breakpoint("marker")
run()
for thread in gdb.selected_inferior().threads():
    thread.switch()
    say([value("$" + r) for r in "%s".split()] + [value("$xmm8.v2_int64[0]"), str(gdb.newest_frame().name())])
""" % " ".join(KEPT))
    wanted = sorted(tuple(row[:6]) for row in said if row[6] == "wait_here")
    assert len(wanted) == 3, said
    trace = recorded(folder, "thread_registers", "quantum=61")
    trace.one("goto", "first", "forward", "func_enter", 1, "where", "func==marker")
    found = []
    for thread in trace.ask("threads"):
        if thread.get("function") == "wait_here":
            regs = on_thread(trace, thread["thread"], "regs")[0]
            assert regs["thread"] == thread["thread"] and regs["rip"] == thread["pc"]
            found.append(tuple([tbdtest.number(regs[r]) for r in KEPT] + [tbdtest.number(regs["xmm8"]) & (1 << 64) - 1]))
            assert [f["function"] for f in on_thread(trace, thread["thread"], "bt")][:2] == ["wait_here", "start_thread"]
    assert sorted(found) == wanted, (found, wanted)


def test_counts_of_threads_add_up(folder):
    trace = recorded(folder, "thread_locks", SMALL + ",count=now")  # `info` knows the returns
    threads, info = trace.ask("threads"), trace.info()
    assert len(threads) == info["threads"] > 3
    assert sum(t["blocks"] for t in threads) == info["blocks"]
    assert sum(t["switches"] for t in threads) == info["switches"] == trace.count("thread_switch")
    for kind, total in (("store", None), ("syscall", info["syscalls"]), ("func_exit", info["returns"])):
        everything, *each = trace.counts([kind] + ["%s where thread==%d" % (kind, t["thread"]) for t in threads])
        assert sum(each) == everything == (everything if total is None else total), kind
    assert trace.counts("block_entry where thread==%d" % t["thread"] for t in threads[1:4]) == [t["blocks"] for t in threads[1:4]]
    assert all(t["creator"] in [c["thread"] for c in threads] for t in threads[1:])


def test_events_belong_to_the_thread_that_ran(folder):
    trace = recorded(folder, "thread_registers", "quantum=16,window=23")
    reading = Reading(trace)
    assert len(reading.entries) == trace.info()["blocks"]
    events = trace.events("block_entry")
    assert [(e["time"], e["thread"], tbdtest.number(e["pc"])) for e in events] == reading.entries
    switches = [(e["time"], e["thread"], e["previous"]) for e in trace.events("thread_switch")]
    assert switches == reading.switches and len(switches) > 5
    calls = [(e.get("began", e["time"]), e["thread"]) for e in trace.events("syscall")]
    assert calls == reading.calls and any(e.get("began") for e in trace.events("syscall"))


def jumped_to(trace, plain):
    """Pairs (time, thread): blocks to which the thread came from another function, neither by a call nor after one of the system.  First those
    that begin a function, then those that may begin one (with an inlined copy)."""
    led, perhaps, before = set(), set(), {}
    called, waited = set(plain.entered), set(plain.calls)

    def function(event):
        return event.get("module"), event.get("function", "").split(".")[0]

    for event in trace.events("block_entry"):
        here, last = (event["time"], event["thread"]), before.get(event["thread"])
        before[event["thread"]] = event
        if last is None or here in called or (last["time"], last["thread"]) in waited or function(last) == function(event):
            continue
        if event.get("function_offset") == 0 and not re.search("@plt$|^sub_", event["function"]):
            led.add(here)
        if not event.get("function_offset"):
            perhaps.add(here)
    return led, perhaps


def check_entries(trace, most):
    """Entries of the functions entered most often: found by all ways, and what the plain reading says."""
    plain = Reading(trace)
    led, perhaps = jumped_to(trace, plain)
    entered = set(plain.entered) | perhaps
    handled = {(e["time"], e["thread"]) for e in trace.events("signal")}  # the plain reading knows calls only
    blocks = set(plain.entries)
    events = trace.events("func_enter")
    assert handled <= {(e["time"], e["thread"]) for e in events}
    for e in events:
        assert (e["time"], e["thread"]) not in handled or (e["time"], e["thread"], tbdtest.number(e["pc"])) in blocks, e
    events = [e for e in events if (e["time"], e["thread"]) not in handled]
    found = [(e["time"], e["thread"]) for e in events]
    assert len(set(found)) == len(found) and set(found) <= entered, sorted(set(found) - entered)
    assert led - handled <= set(found), sorted(led - set(found))
    pcs = collections.Counter(e["pc"] for e in events).most_common(most)
    answers = iter(trace.script(shape % pc for pc, _ in pcs for shape in ("all func_enter where pc==%s", "goto last backward func_enter 1 where pc==%s")))
    for (pc, count), found, (last,) in zip(pcs, answers, answers):
        wanted = [(t, thread) for t, thread, start in plain.entries if start == tbdtest.number(pc) and (t, thread) in entered]
        assert [(e["time"], e["thread"]) for e in found] == wanted, pc
        assert len(wanted) == count, (pc, wanted, count)
        assert (last["time"], last["thread"]) == wanted[-1], (last, wanted[-1])
    return events


def test_functions_are_entered_by_the_thread_that_called(folder):
    check_entries(recorded(folder, "thread_cancel", "quantum=61,window=500"), 12)


def test_calls_that_windows_cut_from_their_targets_are_found(folder):
    """Quanta and windows of a few blocks: many calls wait for their target through windows of others."""
    events = check_entries(recorded(folder, "thread_registers", "quantum=16,window=17"), 5)
    work = [e for e in events if e["function"] == "work"]
    assert len(work) == 3 and len({e["thread"] for e in work}) == 3


def test_a_window_may_begin_where_a_jump_enters_a_function(folder):
    """With a parameter just above its return address, as a handler has its signal's context."""
    trace = recorded(folder, "thread_jumps", "window=17")
    events = trace.events("func_enter", "func==taken")
    assert [tbdtest.number(e["args"][0]) for e in events] == list(range(100)), events
    starts = {w["time"] for w in trace.ask("windows")}
    assert any(e["time"] in starts for e in events)


def test_a_call_that_waited_shows_its_own_instruction(folder):
    trace = recorded(folder, "thread_pipes", "quantum=500,window=20000")
    waited = [e for e in trace.events("syscall", "syscall==read") if "began" in e]
    assert len(waited) > 5
    for event in waited[:3] + waited[-3:]:
        assert event["text"] == "syscall" and event["began"] < event["time"], event
        regs = on_thread(trace, event["thread"], "regs", at=tbdtest.position(event))[0]
        assert regs["rip"] == event["pc"] and tbdtest.number(regs["rax"]) == 0, (regs, event)
        begin = trace.one("where", at=str(event["began"]))
        assert begin["thread"] == event["thread"] and begin["function"] == event["function"], begin
    question = ["goto", "first", "forward", "syscall", 1, "where",
                "syscall==read and time==%d and thread==%d" % (waited[0]["time"], waited[0]["thread"])]
    event = trace.one(*question)
    assert trace.one("regs")["thread"] == event["thread"], "the thread of the answer is remembered"
    assert trace.count("syscall", "syscall==read and rip==pc") == trace.count("syscall", "syscall==read")


def test_stack_conditions_follow_each_thread(folder):
    trace = recorded(folder, "threads", "quantum=61,window=5000")
    inside = trace.events("func_enter", "func==__pthread_mutex_lock and stack=<**,start_thread,work,__pthread_mutex_lock>")
    everything = trace.events("func_enter", "func==__pthread_mutex_lock")
    assert 4000 < len(inside) < len(everything), len(inside)
    for event in inside[::len(inside) // 4] + everything[:3] + everything[-3:]:
        names = [f["function"] for f in trace.ask("bt", at=tbdtest.position(event))]
        matches = names[0].endswith("pthread_mutex_lock") and names[1:3] == ["work", "start_thread"]
        assert matches == (event in inside), (event, names)


def test_threads_replay_in_windows_of_any_size(folder):
    names, sizes = ("thread_signals", "thread_registers", "thread_cancel"), ("quantum=17,window=16", "quantum=400,window=100", "quantum=1000,window=1000")
    for name, options in [(name, options) for name in names for options in sizes] if tbdtest.LONG else zip(names, sizes):
        tbdtest.check_run([tbdtest.program(name)], folder + "/" + name + options, options)


def test_windows_that_lost_their_events_know_their_threads(folder):
    trace = recorded(folder, "thread_registers", "quantum=16,window=50,level3=2,level2=2,count=now")
    trace.verify()
    windows = trace.ask("windows")
    assert {w["level"] for w in windows} == {1, 2, 3}, windows
    check_entries(trace, 4)
    threads = trace.ask("threads")
    assert sum(t["blocks"] for t in threads) == trace.info()["blocks"]
    assert trace.counts("block_entry where thread==%d" % t["thread"] for t in threads) == [t["blocks"] for t in threads]


def test_names_of_threads(folder):
    _, trace = tbdtest.record([tbdtest.program("thread_names")], folder, SMALL)
    names = [t["name"] for t in trace.ask("threads")]
    assert names == ["renamed main", "thread_names", "worker two", "renamed main"], names


STEPS = {"O0": ["next", "next", "next", "step", "step", "next", "finish", "next", "next", "step", "finish", "next"],
         "O2": ["next", "step", "nexti", "next", "step", "stepi", "next", "until", "step", "next", "finish"]}
# From each entry of outer(), with the other threads held.
STEPPED = """
entry = gdb.Breakpoint("*outer")
run()
while alive():
    said = [value("$edi"), value("$esi"), gdb.selected_thread().num]
    gdb.execute("set scheduler-locking on")
    entry.enabled = False
    for command in %r:
        gdb.execute(command, to_string=True)
        said.append([value("$pc"), gdb.newest_frame().name(), gdb.newest_frame().find_sal().line])
    entry.enabled = True
    gdb.execute("set scheduler-locking off")
    say(said)
    go()
"""


def script_answers(trace, lines):
    """The last JSON object that each line of a script prints."""
    text = "".join("%s\necho =\n" % line for line in lines)
    said = tbdtest.run([tbdtest.TBDQ, "-t", trace.path, "--json"], stdin=text.encode())
    parts = said.out.decode().split("=\n")
    assert len(parts) == len(lines) + 1, said
    return [tbdtest.json.loads(part.splitlines()[-1]) if part.strip() else None for part in parts[:-1]]


def test_threads_step_as_under_gdb(folder):
    """Steps stay in their thread, also in one that is selected and does not have control; breakpoints may be for one thread."""
    for level, steps in STEPS.items():
        path = stepping.built("threads.c", level, folder)
        _, trace = tbdtest.record([path], os.path.join(folder, level), "quantum=61")
        threads = [row["thread"] for row in trace.ask("threads")]
        for number, rounds, thread, *wanted in othertools.gdb_script([path], STEPPED % steps):
            entry = "goto first forward func_enter 1 where func==outer and arg0==%d and arg1==%d" % (number, rounds)
            found = script_answers(trace, [entry] + steps)
            assert {hop["thread"] for hop in found} == {threads[thread - 1]}, found
            places = [[tbdtest.number(hop["pc"]), hop["function"], hop.get("line")] for hop in found[1:]]
            assert places == wanted, (level, number, rounds, places, wanted)
    here = trace.one("goto", "first", "forward", "func_enter", 2, "where", "func==outer")
    others = [row["number"] for row in trace.ask("threads") if row.get("pc") and not row["control"] and row["number"] != 1]
    assert len(others) == 2, others
    for other in others:
        at, own = "goto %d+%d" % (here["time"], here["offset"]), "goto current forward block_entry 1 where thread==%d" % threads[other - 1]
        for command in ("next", "finish", "nexti", "reverse-next", "reverse-finish", "reverse-nexti", "stepi"):
            chosen = script_answers(trace, [at, "thread %d" % other, command])[-1]
            moved = script_answers(trace, [at, own, command])[-1]
            moved["type"] = chosen["type"]
            assert chosen == moved and chosen["thread"] != here["thread"], (command, other, chosen, moved)
        stops = script_answers(trace, ["goto first", "break outer thread %d" % other] + 2 * ["continue"])[2:]
        assert [stop["thread"] for stop in stops] == 2 * [threads[other - 1]], stops


def test_wrong_threads_get_one_clear_line(folder):
    trace = recorded(folder, "thread_registers", "")
    for words in (["--thread", "x", "where"], ["--thread", "99999999", "regs"], ["regs", "thread", "no"]):
        result = tbdtest.run([tbdtest.TBDQ, "-t", trace.path] + words, stdin=None)
        assert result.code in (1, 2) and result.err.startswith(b"tbdq: "), result


if __name__ == "__main__":
    tbdtest.main(*[f for n, f in list(globals().items()) if n.startswith("test_")])
