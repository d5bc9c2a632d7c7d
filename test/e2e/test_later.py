#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Windows that a replay counts (count=later): whatever is asked, the answers are those of a run that was counted while it ran."""
import os
import subprocess

import run_program
import tbdtest

# As long as each other: the programs' stacks begin at the same place.
NOW, LATER = "count=now,insns=64", "count=later,keep=0"


def both(folder, name, options="", args=()):
    """The same run at the same addresses, counted and uncounted."""
    found = []
    for count, where in ((NOW, "now"), (LATER, "ltr")):
        with tbdtest.one_processor():
            result, trace = tbdtest.record(tbdtest.fixed([tbdtest.program(name), *args]), os.path.join(folder, where), count + options)
        assert result.code == 0 and trace, result
        found.append(next(t for t in tbdtest.traces(os.path.join(folder, where)) if os.path.basename(t.path).startswith(name)))
    now, later = found
    assert now.info()["blocks"] == later.info()["blocks"]
    assert now.info()["uncounted"] == 0 and later.info()["uncounted"] == later.info()["windows"]
    return now, later


def same_answers(now, later, *questions):
    """Without the process' number."""
    for line, expected, found in zip(questions, *(trace.script(questions) for trace in (now, later))):
        without = [[{key: value for key, value in row.items() if key not in ("thread", "tid", "pid")} for row in rows] for rows in (expected, found)]
        assert expected and without[0] == without[1], (line, without)


def test_questions_have_the_same_answers(folder):
    now, later = both(folder, "many_windows", ",window=40000", ["300000"])
    last = now.info()["blocks"]
    same_answers(now, later, "stores of rare", "calls mark", "count func_enter by func", "history marks", "syscalls",
                 "goto last backward store 1 where touches[&marks,4]",
                 "goto first forward store 1 where touches[&rare,8]",
                 "goto first forward func_exit 3 where func==mark")
    for at in (last // 7, last // 2, last - 1000):
        same_answers(now, later, "goto %d" % at, "regs", "bt", "mem &table+64 64", "print marks", "goto current forward load 1", "goto %d backward store 1" % at)
    later.verify()


def test_questions_about_calls_and_stores(folder):
    for name in ("recursion", "stores", "funcptr"):
        now, later = both(os.path.join(folder, name), name, ",window=20000")
        same_answers(now, later, *("count " + kind for kind in ("func_enter", "func_exit", "store")), "calls main", "count func_enter by func")


def test_raising_counts(folder):
    now, later = both(folder, "many_windows", ",window=100000", ["300000"])
    later.ask("raise", "1-3", "2")
    assert [(w["level"], w["uncounted"]) for w in later.ask("windows")][:5] == [(1, True)] + [(2, False)] * 3 + [(1, True)]
    later.ask("raise", "all", "2")
    assert {w["level"] for w in later.ask("windows")} == {2} and later.info()["stores"] == now.info()["stores"]
    later.verify()
    later.ask("raise", "all")
    later.verify()
    counted, info = now.info(), later.info()
    assert info["uncounted"] == 0
    for key in ("stores", "calls", "returns", "syscalls", "specials", "blocks"):
        assert info[key] == counted[key], key
    for a, b in zip(now.ask("windows"), later.ask("windows")):
        assert all(a[key] == b[key] for key in ("level", "stores", "calls", "returns", "uncounted")), (a, b)
    later.ask("lower", "all", "2")
    later.verify()


def test_uncounted_windows_merge_and_grow_old(folder):
    _, trace = tbdtest.record([tbdtest.program("many_windows"), "300000"], os.path.join(folder, "merged"), "count=later,window=20000")
    expected = trace.ask("stores", "of", "rare")
    trace.ask("merge", "all", "8")
    assert any(w["uncounted"] for w in trace.ask("windows"))
    assert trace.ask("stores", "of", "rare") == expected
    trace.verify()
    _, tight = tbdtest.record([tbdtest.program("many_windows")], os.path.join(folder, "tight"), "count=later,window=20000,budget=16M")
    tight.verify()


def test_killed_programs_keep_all_windows(folder):
    argv = [tbdtest.program("many_windows")]
    for delay in (0.1, 0.3):
        where = os.path.join(folder, str(delay))
        process = tbdtest.start(argv, where, "count=later,window=20000")
        tbdtest.await_organizer(where, process)
        try:
            process.wait(delay)
        except subprocess.TimeoutExpired:
            process.kill()
        process.wait()
        tbdtest.wait_organizers(where)
        trace = tbdtest.find_trace(where, argv[0])
        if trace:
            trace.verify()


def test_blocks_after_the_last_event_from_outside_are_kept(folder):
    """The program kills itself in a call that never returns: what it did since the call before is only counted."""
    argv = [tbdtest.program("die_kill")]
    result, trace = tbdtest.record(argv, folder, "count=later")
    assert result.code == -9, result
    trace.verify()
    stack = trace.ask("bt", at="last")
    assert [frame["function"] for frame in stack[:2]] == ["kill", "main"], stack


def test_windows_are_counted_later_on_few_processors(folder):
    """Unless an option asks for windows that keep more."""
    for number, (count, options) in enumerate(((1, "lean=auto"), (1, "lean=auto,count=now"), (1, "lean=never"), (1, "lean=auto,level3=9"), (3, "lean=auto"))):
        processors = sorted(os.sched_getaffinity(0))[:count]
        if len(processors) < count:
            continue
        argv = [tbdtest.need("taskset"), "-c", ",".join(map(str, processors)), tbdtest.program("stores")]
        where = os.path.join(folder, str(number))
        env = {**tbdtest.trace_env(where), "TBD_OPTIONS": options + ",aftercount=no"}
        assert tbdtest.run(argv, env=env).code == 0
        tbdtest.wait_organizers(where)
        later = tbdtest.find_trace(where, tbdtest.program("stores")).info()["uncounted"] != 0
        assert later == (number == 0), (count, options)


def test_every_program(folder):
    if not tbdtest.LONG:
        raise tbdtest.Skip("for scripts/check --long")
    run_program.check_every("--later", folder)


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
