#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Windows that age: lowered, raised, merged.  Whatever was done to them, every window replays alone and questions
have the answers that the fresh trace gives; raised windows are what play wrote, byte for byte."""
import filecmp
import glob
import os
import shutil
import subprocess
import time

import tbdtest

tbdtest.KEEPS_EVENTS = True

# Programs that map, unmap, protect, move memory, take signals, fork, and have threads.
NAMES = {"maps": 900, "sigstack": 900, "threads": 4000}
if tbdtest.LONG:
    NAMES.update({"segv_repair": 900, "dl": 4000})


def tree(folder):
    """Files below a folder, by relative path, with their sizes."""
    found = {}
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            found[os.path.relpath(path, folder)] = os.path.getsize(path)
    return found


def assert_same_files(a, b):
    assert tree(a) == tree(b), "%s: %r" % (a, set(tree(a).items()) ^ set(tree(b).items()))
    for name in tree(a):
        assert filecmp.cmp(os.path.join(a, name), os.path.join(b, name), shallow=False), name


def copy_of(trace, name):
    path = os.path.join(os.path.dirname(trace.path), name)
    shutil.copytree(trace.path, path)
    return tbdtest.Trace(path)


def levels(trace):
    return [w["level"] for w in trace.ask("windows")]


def aged(trace):
    """Copies of a trace in several states."""
    two, one, merged, mixed = (copy_of(trace, name) for name in ("two", "one", "merged", "mixed"))
    two.ask("lower", "all", "2")
    one.ask("lower", "all", "1")
    merged.ask("lower", "all", "1")
    merged.ask("merge", "all", "4")
    count = len(levels(trace))
    mixed.ask("lower", "0-%d" % (count // 2), "2")
    mixed.ask("merge", "0-%d" % (count // 3))
    if len(levels(mixed)) > 2:
        mixed.ask("merge", "0-1")
    return two, one, merged, mixed


def record(name, folder, window, options="", rounds=None):
    """`rounds`: of many_windows, if it need not be as long as it is otherwise."""
    _, trace = tbdtest.record([tbdtest.program(name)] + [str(rounds)] * (rounds is not None), folder, "window=%d%s" % (window, options))
    return trace


def test_programs_at_every_level(folder):
    for name, window in NAMES.items():
        where = os.path.join(folder, name)
        trace = record(name, where, window)
        trace.verify()
        for other in aged(trace):
            other.verify()
        one = tbdtest.Trace(os.path.join(where, "one"))
        # The last window of a program that was killed stays as it is: nobody could bring it back.
        assert set(levels(one)[:-1]) <= {1}, levels(one)
        for other in (one, tbdtest.Trace(os.path.join(where, "two"))):
            other.ask("raise", "all")
            assert_same_files(os.path.join(trace.path, "windows"), os.path.join(other.path, "windows"))
        shutil.rmtree(where)


def assert_as_a_replay_counts(trace):
    """What was counted in play, with or without events at hand, is what a replay of the events counts, and the files are the
    same: raised from level 1 they are made of the replay alone."""
    trace.verify()
    one = copy_of(trace, "one")
    one.ask("lower", "all", "1")
    for other in (one, trace):
        other.ask("raise", "all")
        assert set(levels(other)) == {3}, levels(other)
    trace.verify()
    assert_same_files(os.path.join(trace.path, "windows"), os.path.join(one.path, "windows"))


def test_windows_born_without_events_are_raised(folder):
    for name, window in {**NAMES, "many_windows": 10000}.items():
        where = os.path.join(folder, name)
        trace = record(name, where, window, ",count=now,lean=always", 300000 if name == "many_windows" else None)
        # The last window of a program that was killed has them: nobody could bring them back.
        assert set(levels(trace)[:-1]) == {2}, levels(trace)
        assert_as_a_replay_counts(trace)
        shutil.rmtree(where)


def test_windows_are_built_while_they_come(folder):
    """Workers begin with a window when some of its block entries are there; it may end anywhere."""
    trace = record("many_windows", os.path.join(folder, "whole"), 1100000, ",count=now,lean=always")
    assert set(levels(trace)) == {2} and len(levels(trace)) > 3, levels(trace)
    assert_as_a_replay_counts(trace)
    for delay in (0.02, 0.04, 0.08):
        where = os.path.join(folder, str(delay))
        process = tbdtest.start([tbdtest.program("many_windows")], where, "window=1100000,count=now,lean=always")
        tbdtest.await_organizer(where, process)
        time.sleep(delay)
        process.kill()
        process.communicate()
        tbdtest.wait_organizers(where)
        killed = tbdtest.find_trace(where, tbdtest.program("many_windows"))
        if killed and killed.ask("windows"):
            killed.verify()


def test_a_busy_organizer_leaves_events_to_replay(folder):
    """Windows come faster than one thread builds them: which ones are born without events depends on the machine, what is
    known of them does not."""
    organizer = os.path.join(folder, "organizer")
    with open(organizer, "w", encoding="ascii") as f:
        f.write('#!/bin/sh\nexec %s/tbd-organizer "$@" --threads 1\n' % tbdtest.BUILD)
    os.chmod(organizer, 0o755)
    trace = record("many_windows", os.path.join(folder, "auto"), 20000, ",count=now,lean=auto,organizer=" + organizer, 400000)
    assert set(levels(trace)) <= {2, 3}, levels(trace)
    assert_as_a_replay_counts(trace)
    limited = record("many_windows", os.path.join(folder, "limited"), 20000, ",count=now,lean=auto,level3=5,level2=7,organizer=" + organizer, 400000)
    found = levels(limited)
    assert set(found[:-12]) == {1} and set(found[-12:-5]) == {2} and set(found[-5:]) <= {2, 3}, found
    limited.verify()


def test_answers_stay_the_same(folder):
    trace = record("many_windows", folder, 10000, rounds=300000)
    times = [w["time"] + w["blocks"] // 3 for w in trace.ask("windows")]

    def answers(t):
        lines = ["all syscall", "all func_enter where func==main", "goto first forward store 3", "goto last backward func_exit 2"]
        for time in times[:: max(1, len(times) // 3)]:
            lines += ["goto %d" % time, "regs", "mem rsp 64", "bt"]
        [info], *found = t.script(["info"] + lines)
        assert all(found), [line for line, answer in zip(lines, found) if not answer]
        return [{key: info[key] for key in ("blocks", "stores", "calls", "returns", "syscalls", "end")}] + found

    fresh = answers(trace)
    for other in aged(trace):
        assert answers(other) == fresh, other.path


def test_sizes_shrink(folder):
    trace = record("many_windows", folder, 20000, rounds=600000)
    two, one, merged, _ = aged(trace)
    sizes = [sum(tree(os.path.join(t.path, "windows")).values()) for t in (trace, two, one, merged)]
    assert sizes == sorted(sizes, reverse=True) and len(set(sizes)) == 4, sizes


def test_eight_merged_windows_take_a_third(folder):
    """On a real program; bench/run has the geometric mean over many."""
    script = "local t = {} for i = 1, 100000 do t[i % 1000] = (t[i % 997] or 0) + i % 7 end print(#t)"
    _, trace = tbdtest.record([tbdtest.need("lua5.4"), "-e", script], folder, "window=50000")
    assert len(trace.ask("windows")) > 32
    sizes = []
    for what in (("lower", "all", "1"), ("merge", "all", "8")):
        trace.ask(*what)
        sizes.append(sum(tree(os.path.join(trace.path, "windows")).values()))
    assert sizes[1] * 3 <= sizes[0], sizes
    trace.verify()


def test_an_index_that_lost_its_last_changes_is_told(folder):
    """The index ends between two records, after the one that says how the program ended: the windows' own files
    count.  Merged windows are lost with the record that says so, and also windows whose pages are differences to theirs.  All
    others answer."""
    trace = record("many_windows", folder, 20000, rounds=300000)
    windows, question = trace.ask("windows"), ("--no-cache", "count", "store", "where", "newval & 0xfff == 77 and time >= %d")
    start = windows[20]["time"]
    fresh, end = [trace.tbdq(*question[:-1], question[-1] % t).out for t in (0, start)], os.path.getsize(trace.path + "/index")
    trace.ask("lower", "0-19", "1")
    lowered = os.path.getsize(trace.path + "/index")
    shutil.copy(trace.path + "/index", trace.path + "/whole")
    os.truncate(trace.path + "/index", end)
    assert "cut off" in " ".join(trace.info()["damage"]), trace.info()
    assert trace.tbdq(*question[:-1], question[-1] % 0).out == fresh[0]
    os.rename(trace.path + "/whole", trace.path + "/index")
    trace.ask("merge", "0-15", "8")
    assert len(trace.ask("windows")) == len(windows) - 14 and not trace.info()["damage"]
    os.truncate(trace.path + "/index", lowered)
    assert "cut off" in " ".join(trace.info()["damage"]), trace.info()
    found = trace.tbdq(*question[:-1], question[-1] % start).out
    assert found == fresh[1] != fresh[0], (found, fresh)
    result = trace.tbdq("mem", "&table", "8", at=str(windows[15]["time"]))
    assert result.code == 3 and b"the index has lost" in result.err, (result.code, result.out, result.err)


def record_watched(folder, options):
    """Traces a program of about 180 windows; returns the trace and the most bytes that it had on disk."""
    os.makedirs(folder)
    argv = [tbdtest.program("many_windows")]
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             env=tbdtest.clean_env(tbdtest.trace_env(folder, options)))
    most = 0
    while child.poll() is None or tbdtest.organizers(folder):
        most = max([most] + [tbdtest.disk_use(os.path.join(folder, name)) for name in os.listdir(folder) if name.endswith("-1")])
    assert child.returncode == 0
    return tbdtest.find_trace(folder, argv[0]), most


def is_as_long(a, b):
    """The lengths of variables in the environment make a few blocks' difference."""
    return abs(a.info()["blocks"] - b.info()["blocks"]) < 1000


def test_a_budget_is_kept_while_recording(folder):
    whole, size = record_watched(os.path.join(folder, "whole"), "window=20000")
    fixed = size - tbdtest.disk_use(os.path.join(whole.path, "windows"))
    budget = fixed + (size - fixed) // 5
    trace, most = record_watched(os.path.join(folder, "tight"), "window=20000,budget=%d" % budget)
    largest = max(w["toc_bytes"] + w["trace_bytes"] + w["block_bytes"] for w in whole.ask("windows"))
    assert most <= budget + largest, "%d bytes, budget %d, a window %d" % (most, budget, largest)
    windows = trace.ask("windows")
    assert {1, 3} <= set(levels(trace)) and windows[0]["time"] == 0, levels(trace)
    assert is_as_long(trace, whole)
    keys = [sum(tree(os.path.join(t.path, "keys")).values()) for t in (whole, trace)]
    assert keys[1] <= budget // 8 + keys[0] // 2, keys  # one file of three may be more than its share
    trace.verify()
    assert trace.tbdq("count", "store", "where", "oldval == 0x1234567 and rax == 1").code in (0, 1)
    cached = tbdtest.disk_use(os.path.join(trace.path, "cache"))
    assert cached and tbdtest.disk_use(trace.path) <= budget + largest, (cached, tbdtest.disk_use(trace.path), budget)


def test_questions_while_windows_age(folder):
    """Answers of a trace that is being recorded, under a budget that lets hardly anything stay as it is: right,
    or that the trace has changed meanwhile."""
    os.makedirs(os.path.join(folder, "t"))
    argv = [tbdtest.program("many_windows")]
    env = tbdtest.trace_env(os.path.join(folder, "t"), "window=20000,budget=16M,count=now")
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=tbdtest.clean_env(env))
    answers = 0
    while child.poll() is None or tbdtest.organizers(folder):
        trace = tbdtest.find_trace(os.path.join(folder, "t"), argv[0])
        if trace is None or not os.path.exists(os.path.join(trace.path, "header")):
            continue
        for words in (("--at", "12345", "mem", "rsp", "16"), ("goto", "first", "forward", "store", "3"), ("windows",)):
            result = tbdtest.run([tbdtest.TBDQ, "-t", trace.path, *words])
            answers += result.code == 0
            assert result.code in (0, 1) or b"ask again" in result.err or b"no such" in result.err or \
                b"still being written" in result.err or b"not in the trace" in result.err, result
    assert child.returncode == 0 and answers > 2, answers
    trace.verify()


def test_limits_by_number(folder):
    _, trace = tbdtest.record([tbdtest.program("many_windows"), "300000"], folder, "window=10000,level3=5,level2=7")
    found = levels(trace)
    assert found == [1] * (len(found) - 12) + [2] * 7 + [3] * 5, found
    trace.verify()


def test_only_the_end_is_kept(folder):
    whole, size = record_watched(os.path.join(folder, "whole"), "window=20000")
    keep = size - tbdtest.disk_use(os.path.join(whole.path, "windows")) * 3 // 4
    trace, most = record_watched(os.path.join(folder, "kept"), "window=20000,keep=%d" % keep)
    assert most <= keep * 1.1, (most, keep)
    windows = trace.ask("windows")
    assert windows[0]["time"] > 0 and is_as_long(trace, whole), windows[0]
    trace.verify()
    middle = windows[len(windows) // 2]["time"] + 11
    assert trace.ask("regs", at=str(middle)) and trace.ask("mem", "rsp", "64", at=str(middle))
    before = trace.tbdq("regs", at="0")
    assert before.code != 0 and b"has times %d to" % windows[0]["time"] in before.err, before
    trace.ask("lower", "all")
    trace.ask("merge", "all", "5")
    trace.verify()
    assert_a_lost_image_is_told(trace, middle)


def assert_a_lost_image_is_told(trace, position):
    """A reader sees the same when windows are dropped while it reads."""
    image, = glob.glob(os.path.join(trace.path, "image-*"))
    os.rename(image, image + ".gone")
    for words in (("regs",), ("goto", "current", "backward", "load", "1"), ("verify",)):
        result = trace.tbdq(*words, at=str(position), json_output=False)
        said = result.out + result.err
        assert b"diverged at" not in said and (result.code == 3 or words != ("verify",)), (words, result)
        assert os.path.basename(image).encode() in said, (words, result)
    os.rename(image + ".gone", image)


def test_what_cannot_be_done_is_said(folder):
    trace = record("strings", folder, 900)
    for words in (("lower",), ("lower", "5-2"), ("lower", "all", "3"), ("raise", "99999"), ("merge", "all", "1")):
        result = tbdtest.run([tbdtest.TBDQ, "-t", trace.path, *words])
        assert result.code == 2, (words, result)
    trace.ask("merge", "0-1")
    result = tbdtest.run([tbdtest.TBDQ, "-t", trace.path, "raise", "0"])
    assert result.code == 2 and b"1 of windows 0-0" in result.err and b"merged" in result.err, result


def test_raise_leaves_merged_windows_and_goes_on(folder):
    trace = record("strings", folder, 900)
    trace.ask("lower", "all", "1")
    trace.ask("merge", "1-2")
    last = len(trace.ask("windows")) - 1
    result = tbdtest.run([tbdtest.TBDQ, "-t", trace.path, "raise", "0-%d" % last])
    assert result.code == 0 and b"%d windows raised" % last in result.out and b"1 of windows" in result.err, result
    assert [w["level"] for w in trace.ask("windows")] == [3, 1] + [3] * (last - 1), trace.ask("windows")


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
