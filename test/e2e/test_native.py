#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Native play: the program runs its own code, a replay finds the events; compared with native runs and with traced recordings."""
import contextlib
import json
import os
import random
import shutil
import subprocess
import sys

import run_program
import tbdtest

# Of the same length, so that stacks are the same.
NATIVE = "mode=native,count=now"
TRACED = "mode=traced,count=now"


def record(argv, folder, options=NATIVE, **how):
    result, trace = tbdtest.record(argv, folder, options, **how)
    tbdtest.need_native_play(result)
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
INFO_OF_THE_RECORDING = {"trace", "pid", "started", "ended", "windows", "window_blocks", "uncounted", "needing_windows", "levels", "calls", "returns", "stores"}


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


def test_code_that_decodes_in_two_ways_is_the_program_s_own(folder):
    """Where most of its code looks like other instructions if it is read from a byte later; compilers have such lists of jumps."""
    trace = check([tbdtest.program("jump_lists")], folder)
    notes = " ".join(trace.info()["notes"])
    assert "translated" not in notes, notes


def test_a_program_that_makes_code_goes_on_translated(folder):
    """The trace says so, and answers as a traced one does; the part before it is native, so its windows are of both kinds."""
    argv = tbdtest.fixed([tbdtest.program("generated")])
    with tbdtest.one_processor():
        # How much xsavec stores, when names are bound, depends on what the processor ran before, in one kind of play, too.
        record(argv, os.path.join(folder, "own"), env={"LD_BIND_NOW": "1"})
        tbdtest.record(argv, os.path.join(folder, "trd"), TRACED, env={"LD_BIND_NOW": "1"})
    native, traced = (tbdtest.find_trace(os.path.join(folder, part), tbdtest.program("generated")) for part in ("own", "trd"))
    native.verify()
    notes = " ".join(native.info()["notes"])
    assert "translated" in notes and "makes code" in notes, notes
    assert native.info()["blocks"] == traced.info()["blocks"], (native.info(), traced.info())
    questions = (("all", "syscall"), ("count", "store", "by", "func"), ("count", "func_enter", "by", "func"))
    for question in questions:
        here, there = (answers(trace, (question,)) for trace in (native, traced))
        assert here == there, (question, here, there)


def drop_old_windows(folder, argv, limit="budget", rounds=1500):
    """A trace of which most must go, still uncounted, whatever its number of windows; and how many bytes it may have."""
    argv = tbdtest.fixed([tbdtest.program(argv), str(rounds)])
    options = NATIVE + ",cut=4000,aftercount=no,%s=%09d"  # of the same length, as above
    with tbdtest.one_processor():
        record(argv, os.path.join(folder, "all"), options % (limit, 0))
        whole = tbdtest.find_trace(os.path.join(folder, "all"), argv[-2])
        bytes_most = (6 << 20) + tbdtest.disk_use(whole.path) - tbdtest.disk_use(os.path.join(whole.path, "windows"))
        record(argv, os.path.join(folder, "few"), options % (limit, bytes_most))
    return whole, tbdtest.find_trace(os.path.join(folder, "few"), argv[-2]), bytes_most


def end_of_run(trace):
    """What was made long ago, as the end sees it; positions count the blocks of one trace."""
    questions = ["print " + name for name in ("text_of_long_ago", "numbers_of_long_ago[4000]", "moved_long_ago[130000]", "moved_long_ago[400000]",
                                              "kept_long_ago[100]", "kept_long_ago[5000]", "signals_seen")]
    return trace.script(["goto last", "goto last backward func_enter 1 where func==remember"] + questions + ["bt"])[2:]


def test_a_budget_drops_windows_that_are_not_counted(folder):
    whole, few, budget = drop_old_windows(folder, "long_ago")
    assert tbdtest.disk_use(few.path) <= budget, (tbdtest.disk_use(few.path), budget)
    stops = [int(name) for name in os.listdir(os.path.join(few.path, "stops"))]
    part = few.one("goto", "last")  # before all is counted
    assert "@w" in json.dumps(part), part
    few.one("goto", "@w%d+0" % min(stops))
    assert "0-1.windows" in os.listdir(os.path.join(few.path, "cache")), os.listdir(os.path.join(few.path, "cache"))
    for at in ("@w0+1", "@w%d+1" % (min(stops) - 1)):
        answer = few.tbdq("goto", at)
        assert answer.code == 2 and ("%s: the window was dropped" % at).encode() in answer.err, answer
    info, every = few.info(), whole.info()
    assert info["dropped_windows"] == min(stops) > 0 and every["dropped_windows"] == 0, (info, every)
    assert info["windows"] > 0 and info["end"] == "exit 0", info  # how many there were depends on the time
    few.verify()
    here, there = (end_of_run(trace) for trace in (few, whole))
    assert here == there, [pair for pair in zip(here, there) if pair[0] != pair[1]]
    first, threads = few.one("goto", "first"), few.ask("threads", at="first")
    assert any(thread["start"] == 0 for thread in threads) and first["time"] > 0, (threads, first)
    assert few.ask("print", "text_of_long_ago", at="first")[0]["value"] == whole.ask("print", "text_of_long_ago", at="last")[0]["value"]


def test_keep_drops_windows_that_are_not_counted(folder):
    _, few, most = drop_old_windows(folder, "long_ago", limit="keep")
    assert tbdtest.disk_use(few.path) <= most and few.info()["dropped_windows"] > 0, (tbdtest.disk_use(few.path), most, few.info())
    few.verify()


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
    assert native.info()["windows"] >= 5, native.info()
    assert native.info()["blocks"] == traced.info()["blocks"], (native.info(), traced.info())
    questions = (("all", "syscall"), ("goto", "last", "backward", "store", "1", "where", "touches[&in_memory,8]"), ("count", "func_enter", "by", "func"))
    assert answers(native, questions) == answers(traced, questions)


def test_a_program_steps_through_its_calls(folder):
    argv = [tbdtest.program("call_sites"), "steps"]
    result, _ = record(argv, folder, "mode=native,aftercount=no")
    tbdtest.same(tbdtest.run(argv), result, tool_lines=True)
    assert b"2 in the call" in result.out, result


def test_calls_that_are_made_often_are_no_longer_dispatched(folder):
    result, _ = record([tbdtest.program("call_sites")], folder, "mode=native,aftercount=no,log=debug")
    jumps = [line for line in result.err.decode().splitlines() if "jumps" in line and "before" in line]
    assert len(jumps) >= 7, result  # those of the program itself, of each kind


def test_mappings_are_not_split(folder):
    """The engine writes into code, and puts it back, in all places of a mapping."""
    argv = [tbdtest.need("grep"), "-c", "libc.so", "/proc/self/maps"]
    result, trace = record(argv, folder)
    assert result.out == tbdtest.run(argv).out, result
    trace.verify()


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


# Computes a little, and writes a line, again and again.
LINES = 600
WRITER = "BEGIN { for (i = 0; i < %d; i++) { for (j = 0; j < 60; j++) x += j %% 7; print i, x; fflush() } }" % LINES
CUTS = ("0500", "2000", "0")  # microseconds: many windows, some, one or two


def draw(short, long, seed):
    """What to draw moments and lengths with, for each of some rounds; with TBD_LONG=1 each time others."""
    chance = random.Random(os.urandom(8) if tbdtest.LONG else seed)
    return ((i, chance) for i in range(long if tbdtest.LONG else short))


def test_a_program_killed_at_any_moment_has_all_that_it_did(folder):
    """Every write(2) of which something was received is in the trace, but perhaps the last, which was not over."""
    argv = [tbdtest.need("awk"), WRITER]
    for i, chance in draw(3, 50, 11):
        root = os.path.join(folder, "k%d" % i)
        process = tbdtest.start(argv, root, "mode=native,cut=" + chance.choice(CUTS), bufsize=0)
        received = b"".join(process.stdout.readline() for _ in range(chance.randrange(1, LINES // 2)))
        process.kill()
        rest, err = process.communicate(timeout=60)
        tbdtest.need_native_play(tbdtest.Result(rest, err, 0))
        received += rest
        tbdtest.wait_organizers(root)
        trace = tbdtest.find_trace(root, argv[0])
        trace.verify()
        writes, info = trace.script(["all syscall where syscall==write and signed(retval) > 0", "info"])
        told = sum(tbdtest.number(event["retval"]) for event in writes)
        assert len(received) - told in (0, len(received.splitlines(True)[-1])), (len(received), told, info)
        assert info[0]["end"] in ("killed", "exit 0"), info
        shutil.rmtree(root)


def test_a_killed_organizer_changes_nothing(folder):
    argv = [tbdtest.need("awk"), WRITER]
    expected = tbdtest.run(argv)
    for i, chance in draw(2, 20, 5):
        root = os.path.join(folder, "o%d" % i)
        process = tbdtest.start(argv, root, "mode=native,cut=" + chance.choice(CUTS))
        tbdtest.kill_organizers(root, process, chance.uniform(0, 0.2))
        out, err = process.communicate(timeout=120)
        tbdtest.need_native_play(tbdtest.Result(out, err, 0))
        tbdtest.same(expected, tbdtest.Result(out, err, process.returncode), tool_lines=True)
        trace = tbdtest.find_trace(root, argv[0])
        if trace and trace.tbdq("info").code == 0:
            trace.verify()
        shutil.rmtree(root)


def test_a_trace_that_cannot_be_written_is_counted_elsewhere(folder):
    """In the user's cache, for the next question too; without a cache only as long as tbdq runs."""
    if os.geteuid() != 0:
        raise tbdtest.Skip("needs root to become somebody else")
    _, trace = record([tbdtest.program("recursion")], folder)
    copy, home, none = (os.path.join(folder, name) for name in ("copy", "home", "none"))
    shutil.copytree(trace.path, copy)
    for path, owner in ((home, 65534), (none, 0)):
        os.mkdir(path)
        os.chown(path, owner, owner)
    for name in ("tbdq", "tbd-replay"):
        shutil.copy(os.path.join(tbdtest.BUILD, name), folder)
    for root, _, files in os.walk(folder):
        for path in [root] + [os.path.join(root, name) for name in files]:
            os.chmod(path, 0o755)
    question = ["goto", "first", "forward", "func_enter", "3", "where", "func==fib"]
    expected, before = tbdtest.run([tbdtest.TBDQ, "-t", copy, *question]), sorted(os.walk(trace.path))

    def ask(cache, *question):
        other = [tbdtest.need("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups", folder + "/tbdq", "-t", trace.path]
        result = tbdtest.run(other + list(question), env={"XDG_CACHE_HOME": cache, "TMPDIR": home})
        assert result.code == 0, result
        return result.out, [line for line in result.err.decode().splitlines() if "is counted" in line]

    for cache, words, left in ((none, "in a temporary folder", []), (home, "in your cache", ["tbd"])):
        out, said = ask(cache, *question)
        assert out == expected.out, expected
        assert len(said) == 1 and words in said[0], (out, said)
        assert os.listdir(home) == left, os.listdir(home)
    assert ask(home, "where")[1] == [] and sorted(os.walk(trace.path)) == before


# System calls that fail (without.py), and what is said then: on stderr, or by a note of the trace; None: it goes on natively, with other means.
ENOSYS, EPERM, EINVAL = 38, 1, 22
PAGES_FOLLOWED, USER_DISPATCH, LOST = b"userfaultfd, Linux 6.7", b"user dispatch of system calls", "no longer says which pages are written"
WITHOUT = {"userfaultfd": ((323, ENOSYS), PAGES_FOLLOWED), "UFFDIO_API": ((16, EINVAL, 1, 0xc018aa3f), PAGES_FOLLOWED),
           "PR_SET_SYSCALL_USER_DISPATCH": ((157, EINVAL, 0, 59), USER_DISPATCH), "PAGEMAP_SCAN": ((16, EINVAL, 1, 0xc0606610), LOST),
           "pidfd_getfd": ((438, EPERM), None), "pidfd_open": ((434, ENOSYS), None), "timer_create": ((222, EINVAL), None)}


def test_a_kernel_without_what_it_needs(folder):
    """Each is taken away: the results are the program's, and the trace replays, whether it ran translated or by other means."""
    argv = [tbdtest.program("cuts"), "30000"]
    expected = tbdtest.run(argv)
    record(argv, os.path.join(folder, "with"))  # skips where this kernel is one
    for name, (call, said) in WITHOUT.items():
        root = os.path.join(folder, name)
        os.mkdir(root)
        env = tbdtest.trace_env(root, "mode=native")
        command = [sys.executable, os.path.join(tbdtest.HERE, "without.py")] + [str(number) for number in call] + ["--", env.pop("LD_PRELOAD")]
        result = tbdtest.run(command + argv, env=env)
        assert (result.out, result.code) == (expected.out, expected.code), (name, result, expected)
        tbdtest.wait_organizers(root)
        trace = tbdtest.find_trace(root, argv[0])
        trace.verify()
        info = trace.info()
        assert info["end"] == "exit 0" and result.err.count(b"tbd: ") == (said in (PAGES_FOLLOWED, USER_DISPATCH)), (name, info, result)
        assert said is None or said in (result.err if isinstance(said, bytes) else " ".join(info["notes"])), (name, info, result)
        assert said is LOST or not info["notes"], (name, info)


@contextlib.contextmanager
def small_disk(folder, size):
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=" + size, "tmpfs", folder], check=False,
                                           stderr=subprocess.DEVNULL).returncode:
        raise tbdtest.Skip("no permission to mount a small file system")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=False)


def test_a_full_disk_is_said(folder):
    """The program's results stay; what was recorded before replays, once there is space for that."""
    argv, disk = [tbdtest.program("big_memory")], os.path.join(folder, "disk")
    expected = tbdtest.run(argv)
    os.mkdir(disk)
    for size in ("300k", "5m") + (("1m", "2m", "3m", "4m", "6m", "8m", "12m", "16m") if tbdtest.LONG else ()):
        with small_disk(disk, size):
            result, trace = record(argv, os.path.join(disk, "traces"), "mode=native,cut=1000")
            tbdtest.same(expected, result, tool_lines=True)
            answer = trace.tbdq("verify", env={"XDG_CACHE_HOME": os.path.join(folder, "cache")})  # which has space
            assert answer.code == 0 or b"space" in answer.err, (size, answer)
            assert answer.code == 0 or not trace.tbdq("windows").out, (size, answer)
            copy = tbdtest.Trace(shutil.copytree(trace.path, os.path.join(folder, size)))
        copy.verify()
        assert copy.info()["end"] == "exit 0" or "space" in copy.info()["end_text"], (size, copy.info())


def test_a_window_that_does_not_replay_is_named_and_others_are_whole(folder):
    """A file that it read is lost, both the file and its copy; the program has another content now, and its copy is there."""
    program, data = shutil.copy(tbdtest.program("reads_mapped"), os.path.join(folder, "reads")), os.path.join(folder, "data")
    shutil.copy(tbdtest.program("cuts"), data)
    os.utime(data, (10 ** 9, 10 ** 9))
    expected = tbdtest.run([program, data])
    result, trace = record([program, data], os.path.join(folder, "traces"), "mode=native,cut=0300")
    tbdtest.same(expected, result, tool_lines=True)
    for path in [data] + [os.path.join(trace.path, "modules", name) for name in os.listdir(os.path.join(trace.path, "modules")) if name.endswith("-data")]:
        os.remove(path)
    os.remove(program)
    shutil.copy(tbdtest.program("cuts"), program)
    answer = trace.tbdq("verify")
    rows = [json.loads(line) for line in answer.out.decode().splitlines()]
    lost = {row["window"] for row in rows if row.get("diverged")}
    notes = [note for note in trace.info()["notes"] if "is not counted" in note]
    assert answer.code == 1 and lost, answer
    assert {int(note.split()[1]) for note in notes} == lost, (notes, rows)
    assert trace.info()["windows"] > len(lost) + 3 and len(lost) <= 2, trace.info()


def test_a_damaged_recording_is_not_counted(folder):
    """What was lost of its files says nothing about the program: the damage is said, and nothing takes the recording's place."""
    _, trace = record([tbdtest.program("stores")], folder)
    image = os.path.join(trace.path, "image")
    os.truncate(image, os.path.getsize(image) // 2)
    for question in ("info", "verify", "bt"):
        answer = trace.tbdq(question)
        assert answer.code == 3 and b"image at offset" in answer.err, answer
    assert os.path.isdir(os.path.join(trace.path, "stops"))


def test_the_first_event_that_differs_is_told_of_a_window_that_is_not_counted(folder):
    """An rdtsc that native play does not see: its replay does, where play has the next system call."""
    argv = [tbdtest.program("hidden_deep")]
    result, trace = record(argv, folder, "mode=native,cut=0")
    assert result.out == b"before\nafter\n", result
    (first,) = trace.ask("diverge")
    assert "special instruction" in first["what"] and "write(1" in first["play"] and first["likely"], first
    assert first["replay"]["function"] == "main" and first["replay"]["file"].endswith("hidden_deep.c") and first["replay"]["call"] is None, first
    assert first["window"] < len(trace.ask("windows")) and trace.tbdq("verify").code == 1, first
    told = trace.tbdq("diverge", json_output=False).out.decode()
    assert "  play     " in told and "  replay   " in told and "hidden_deep!main" in told, told
    lacking = trace.tbdq("count", "store", "by", "func")
    assert lacking.code == 3 and b"no replay comes" in lacking.err, lacking


def test_every_program(folder):
    if not tbdtest.LONG:
        raise tbdtest.Skip("for scripts/check --long")
    run_program.check_every("--native", folder)


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
