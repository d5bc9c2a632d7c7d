#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Native play: the program runs its own code, a replay finds the events; compared with native runs and with traced recordings."""
import os
import subprocess

import run_program
import tbdtest

# Of the same length, so that stacks are the same.
NATIVE = "mode=native,count=now"
TRACED = "mode=traced,count=now"


def record(argv, folder, options=NATIVE, **how):
    result, trace = tbdtest.record(argv, folder, options, **how)
    if b"runs translated" in result.err:
        raise tbdtest.Skip("this kernel cannot: " + result.err.decode())
    return result, trace


def check(argv, folder, **how):
    """Runs it natively and in native play: the same output, and every window replays to the same registers and pages."""
    expected = tbdtest.run(argv, **how)
    result, trace = record(argv, folder, **how)
    assert (result.out, result.code) == (expected.out, expected.code), (result, expected)
    trace.verify()
    return trace


# What recordings of some programs are asked beside ANSWERS; the long program only this.
OWN_QUESTIONS = {"many_windows": (("all", "syscall"), ("history", "rare"), ("--at", "last", "why", "rare"), ("calls", "mark"),
                                  ("count", "func_enter", "by", "func"), ("goto", "last", "backward", "store", "1", "where", "touches[&rare,8]")),
                 "stores": (("history", "target"), ("--at", "last", "why", "target")),
                 "recursion": (("calls", "main"),)}
# Programs whose results depend on nothing that differs between two runs (process numbers, x87 pointers).
DETERMINISTIC = ("funcptr", "strings", "planted", "pairs", "rep", "branches", "exceptions", "flags", "vector_sse", "thrown", "moments", "variables")
ANSWERS = (("all", "syscall"), ("all", "signal"), ("count", "func_enter", "by", "func"), ("count", "store", "by", "func"), ("count", "load", "by", "func"),
           ("goto", "last", "backward", "store", "3"), ("goto", "first", "forward", "func_enter", "5"))
# When it ran, where the trace is, and what is known of windows without a replay.
INFO_OF_THE_RECORDING = {"trace", "pid", "started", "ended", "windows", "uncounted", "needing_windows", "levels", "calls", "returns", "stores"}


def answers_of_both(name, folder):
    argv = tbdtest.fixed([tbdtest.program(name)])
    with tbdtest.one_processor():
        record(argv, os.path.join(folder, "own"))
        tbdtest.record(argv, os.path.join(folder, "trd"), TRACED)
    native, traced = (tbdtest.find_trace(os.path.join(folder, part), argv[-1]) for part in ("own", "trd"))
    here, there = ({key: value for key, value in trace.info().items() if key not in INFO_OF_THE_RECORDING} for trace in (native, traced))
    assert here == there, (name, here, there)
    for question in (ANSWERS if name != "many_windows" else ()) + OWN_QUESTIONS.get(name, ()):
        here, there = (answers(trace, (question,)) for trace in (native, traced))
        assert here == there, (name, question, here, there)
        assert here[0] or question == ("all", "signal"), (name, question)
    assert all(window["level"] for trace in (native, traced) for window in trace.ask("windows"))


def test_traced_and_native_recordings_give_the_same_answers(folder):
    for name in tuple(OWN_QUESTIONS) + (DETERMINISTIC if tbdtest.LONG else ()):
        answers_of_both(name, os.path.join(folder, name))


def test_a_filter_that_reads_and_writes(folder):
    gzip = tbdtest.need("gzip")
    check([gzip, "-c", os.path.join(tbdtest.HERE, "tbdtest.py")], folder)


def test_children_have_traces_of_their_own(folder):
    shell = tbdtest.need("sh")
    check([shell, "-c", "(echo in a child); ls / | wc -l; exit 3"], folder)
    tbdtest.check_traces(folder, 4)


def test_a_program_that_makes_code_goes_on_translated(folder):
    """The trace says so, and answers as a traced one does; the part before it is native, so its windows are of both kinds."""
    argv = tbdtest.fixed([tbdtest.program("generated")])
    with tbdtest.one_processor():
        record(argv, os.path.join(folder, "own"))
        tbdtest.record(argv, os.path.join(folder, "trd"), TRACED)
    native, traced = (tbdtest.find_trace(os.path.join(folder, part), tbdtest.program("generated")) for part in ("own", "trd"))
    native.verify()
    notes = " ".join(native.info()["notes"])
    assert "translated" in notes and "makes code" in notes, notes
    assert native.info()["blocks"] == traced.info()["blocks"], (native.info(), traced.info())
    questions = (("all", "syscall"), ("count", "store", "by", "func"), ("count", "func_enter", "by", "func"))
    for question in questions:
        here, there = (answers(trace, (question,)) for trace in (native, traced))
        assert here == there, (question, here, there)


def test_threads_take_turns(folder):
    trace = check([tbdtest.program("threads")], folder)
    assert trace.info()["end"] == "exit 0" and len(trace.ask("threads")) > 1, trace.info()


def answers(trace, questions):
    """Threads and processes have other numbers in each recording."""
    return [[{key: value for key, value in row.items() if key not in ("thread", "process")} for row in trace.ask(*question)] for question in questions]


def test_computations_are_cut(folder):
    argv = tbdtest.fixed([tbdtest.program("cuts"), "400000"])
    with tbdtest.one_processor():
        record(argv, os.path.join(folder, "own"), NATIVE + ",cut=0200")
        tbdtest.record(argv, os.path.join(folder, "trd"), TRACED + ",chunks=8")
    native, traced = (tbdtest.find_trace(os.path.join(folder, part), tbdtest.program("cuts")) for part in ("own", "trd"))
    native.verify()
    assert native.info()["windows"] >= 10, native.info()
    assert native.info()["blocks"] == traced.info()["blocks"], (native.info(), traced.info())
    questions = (("all", "syscall"), ("goto", "last", "backward", "store", "1", "where", "touches[&in_memory,8]"), ("count", "func_enter", "by", "func"))
    assert answers(native, questions) == answers(traced, questions)


def test_signals_come_in_the_midst_of_computations(folder):
    argv = [tbdtest.program("cuts"), "600000", "signals"]
    trace = check(argv, folder)
    assert len(trace.ask("all", "signal")) >= 20, trace.info()
    assert trace.info()["end"].startswith("exit"), trace.info()


def test_a_signal_ends_an_endless_computation(folder):
    check([tbdtest.need("perl"), "-e", "alarm 1; 1 while 1"], folder)


def test_a_killed_program_is_recorded_up_to_its_last_stop(folder):
    argv = ["/bin/sh", "-c", "echo one; echo two; kill -KILL $$"]
    result, trace = record(argv, folder)
    assert result.out == b"one\ntwo\n" and result.code == -9, result
    trace.verify()
    assert subprocess.run([tbdtest.TBDQ, "-t", trace.path, "info"], stdout=subprocess.DEVNULL, check=False).returncode == 0


def test_every_program(folder):
    if not tbdtest.LONG:
        raise tbdtest.Skip("for scripts/check --long")
    run_program.check_every("--native", folder)


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
