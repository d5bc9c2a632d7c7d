#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Windows that a question had replayed, and answers about whole runs, are kept for the next question: it has the same
answers, even if the trace and the kept files change meanwhile."""
import os
import random
import re
import shutil
import subprocess

import tbdtest

tbdtest.KEEPS_EVENTS = True

QUESTIONS = (["all", "store", "where", "newval & 0xffff == 77"], ["all", "func_enter", "where", "func==main"],
             ["all", "syscall"])
SCAN = ["count", "store", "where", "newval & 0xfff == 77", "by", "func"]
LIST = ["all", "store", "where", "newval & 0xfff == 77"] # keeps the events that it has replayed; a count does not


def recorded(folder, options="window=30000", name="many_windows", rounds=300000):
    """Some 30 windows, if nothing else is said."""
    return tbdtest.record([tbdtest.program(name)] + [str(rounds)] * (name == "many_windows"), folder, options)[1]


def explained(trace, *words):
    """The answer; windows replayed; windows from the cache."""
    result = tbdtest.run([tbdtest.TBDQ, "-t", trace.path, "--explain", *words], stdin=None)
    numbers = re.search(rb"(\d+) replayed in full, (\d+) replayed for an earlier question", result.err)
    assert numbers and result.code in (0, 1), result
    return result.out, int(numbers[1]), int(numbers[2])


def files_of(trace):
    folder = os.path.join(trace.path, "cache")
    return {name: os.path.join(folder, name) for name in sorted(os.listdir(folder))} if os.path.isdir(folder) else {}


def cache_of(trace):
    return {name: path for name, path in files_of(trace).items() if not name.endswith(".answer")}


def answers_of(trace):
    return [path for name, path in files_of(trace).items() if name.endswith(".answer")]


def cache_bytes(trace):
    return sum(os.path.getsize(path) for path in files_of(trace).values())


def answers(trace, times):
    return trace.script(" ".join(question) for question in QUESTIONS) + trace.at(times, ("regs", "mem rsp 64", "bt", "locals"))


def test_the_second_question_replays_nothing(folder):
    trace = recorded(folder)
    times = [w["time"] + w["blocks"] // 3 for w in trace.ask("windows")][::16]
    fresh, whole = answers(trace, times), explained(trace, *LIST)
    assert whole[1:] == (0, 0) and b"main" in whole[0] and all(fresh[:3]) and not cache_of(trace), (whole, fresh[:3])
    changes = ("lower", "0-24", "2"), ("lower", "0-20", "1"), ("merge", "0-10", "4"), ("lower", "all", "1")
    for what in changes if tbdtest.LONG else changes[1:3]:
        trace.ask(*what)
        first = explained(trace, *LIST)
        assert first[0] == whole[0] and first[1] > 0, (what, first)
        assert explained(trace, *LIST) == (whole[0], 0, first[1] + first[2]), what
        assert answers(trace, times) == fresh, what
    for path in files_of(trace).values():
        assert os.stat(path).st_mode & 0o777 == 0o600, path
    assert os.stat(os.path.join(trace.path, "cache")).st_mode & 0o777 == 0o700
    trace.verify()


def test_programs_of_all_kinds(folder):
    """Signals, threads, mappings that come and go: events from the cache are those of the fresh trace."""
    for name in ("threads", "segv_repair", "maps"):
        trace = recorded(os.path.join(folder, name), "window=4000", name)
        questions = (["all", "store", "where", "newval & 7 == 3"], ["all", "syscall"], ["all", "signal"],
                     ["all", "thread_switch"])
        fresh = [told(trace, "--no-cache", *question) for question in questions]
        trace.ask("lower", "all", "1")
        for _ in range(2):
            assert [told(trace, *question) for question in questions] == fresh, name
        assert explained(trace, "count", "store")[2] > 0


def test_damage_costs_a_replay(folder):
    trace = recorded(folder)
    trace.ask("lower", "all", "1")
    whole, raised, _ = explained(trace, *LIST)
    files = list(cache_of(trace).values())
    rng = random.Random(7)
    assert raised == len(files) > 22
    for i, path in enumerate(files[:20]):
        with open(path, "r+b") as file:
            size = os.path.getsize(path)
            if i % 2:
                file.truncate(rng.randrange(size))
            else:
                at = rng.randrange(size - 8)
                file.seek(at)
                byte = file.read(1)[0]
                file.seek(at)
                file.write(bytes([byte ^ 1 << rng.randrange(8)]))
    shutil.copy(files[21], files[20])  # a good file under another's name
    assert explained(trace, *LIST) == (whole, 21, raised - 21)
    assert explained(trace, *LIST) == (whole, 0, raised)


def test_many_ask_at_once(folder):
    trace = recorded(folder)
    whole = explained(trace, *LIST)[0]
    trace.ask("lower", "all", "1")
    children = [subprocess.Popen([tbdtest.TBDQ, "-t", trace.path, "-j", "2", *LIST], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=tbdtest.clean_env({})) for _ in range(4)]
    for child in children:
        out, err = child.communicate()
        assert child.returncode in (0, 1) and not err, (child.returncode, err)
        assert out == whole, (out, whole)
    last = explained(trace, *LIST)
    assert last[:2] == (whole, 0) and last[2] > 20 and b"main" in whole, (last, whole)
    assert all(name.endswith(".raised") for name in cache_of(trace)), cache_of(trace)


def test_the_folder_stays_small(folder):
    """A budget of 64M leaves 4M: a question that needs more keeps its first windows, and later ones push out what was
    not used for longest."""
    trace = recorded(folder, "window=100000,budget=64M", rounds=1500000)
    trace.ask("lower", "all", "1")
    whole, raised, _ = explained(trace, *LIST)
    kept = set(cache_of(trace))
    assert 0 < cache_bytes(trace) <= 4 << 20 and len(kept) < raised, (cache_bytes(trace), len(kept), raised)
    second = explained(trace, *LIST)
    assert second[0] == whole and second[2] > 0 and cache_bytes(trace) <= 4 << 20, (second, cache_bytes(trace))
    windows = trace.ask("windows")
    for window in windows[::6]:
        assert trace.tbdq("list", at=str(window["time"] + window["blocks"] // 2)).code in (0, 1), window
        assert cache_bytes(trace) <= 4 << 20, cache_bytes(trace)
    assert not kept <= set(cache_of(trace)), kept


def test_without_a_folder_nothing_is_lost(folder):
    trace = recorded(folder)
    trace.ask("lower", "all", "1")
    with open(os.path.join(trace.path, "cache"), "w") as file:
        file.write("not a folder")
    first, second = explained(trace, *LIST), explained(trace, *LIST)
    assert first == second and first[1] > 0 and first[2] == 0, (first, second)


# Questions that search all windows.
WHOLE = (SCAN, ["--json", *SCAN], ["--csv", *SCAN], ["all", "store", "where", "newval & 0xffff == 77"],
         ["stores", "where", "newval & 0xffff == 77"])


def told(trace, *words):
    """Without anything said beside the answer."""
    done = subprocess.run([tbdtest.TBDQ, "-t", trace.path, *words], stdin=subprocess.DEVNULL, capture_output=True, check=False,
                          env=tbdtest.clean_env())
    assert done.returncode in (0, 1) and not done.stderr, done
    return done.stdout


def test_answers_are_kept(folder):
    """Nothing is searched when a question is asked again: it is answered with the windows taken away."""
    trace = recorded(folder, "window=8000", "strings")
    fresh = [told(trace, "--no-cache", *words) for words in WHOLE]
    assert all(fresh) and len(set(fresh)) == len(fresh) and not files_of(trace)
    assert [told(trace, *words) for words in WHOLE] == fresh
    assert len(answers_of(trace)) == len(WHOLE), answers_of(trace)
    os.rename(trace.path + "/windows", trace.path + "/away")
    assert [told(trace, *words) for words in WHOLE] == fresh
    assert trace.tbdq("count", "store", "where", "newval == 12345").err  # not asked before
    assert trace.tbdq("--no-cache", *SCAN).err
    os.rename(trace.path + "/away", trace.path + "/windows")
    trace.ask("lower", "all", "1")
    trace.ask("merge", "all", "4")
    assert [told(trace, *words) for words in WHOLE] == fresh and not cache_of(trace)
    assert [told(trace, "--no-cache", *words) for words in WHOLE[:1]] == fresh[:1] and not cache_of(trace)


def test_answers_are_of_their_position(folder):
    """What an expression denotes depends on where it is asked; a goto in between is another question."""
    trace = recorded(folder, "window=2000", "strings")
    question = ("count", "store", "of", "*(long *)$rsp")
    last = trace.info()["blocks"] - 1
    times = [last * k // 9 for k in (1, 4, 6, 9)]
    fresh = [told(trace, "--no-cache", "--at", str(time), *question) for time in times]
    assert len(set(fresh)) > 1, fresh
    for _ in range(2):
        assert [told(trace, "--at", str(time), *question) for time in times] == fresh
        for time, expected in zip(times, fresh):
            trace.tbdq("goto", str(time))
            assert told(trace, *question) == expected


def test_damaged_answers_are_found_anew(folder):
    trace = recorded(folder, "window=4000", "strings")
    whole, rng = told(trace, *SCAN), random.Random(3)
    path, = answers_of(trace)
    with open(path, "rb") as file:
        good = file.read()
    for i in range(12):
        bad = bytearray(good[:rng.randrange(len(good))] if i % 2 else good)
        if i % 2 == 0:
            bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        with open(path, "wb") as file:
            file.write(bad)
        assert told(trace, *SCAN) == whole, i
        with open(path, "rb") as file:
            kept = file.read()
        assert kept == good or len(bad) >= len(good) - 7, i  # what is only padding is no damage


def test_a_trace_that_grows_keeps_no_answers(folder):
    """While it is recorded there are no last answers; windows that are finished are answered from."""
    argv = [tbdtest.program("many_windows")]
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             env=tbdtest.clean_env(tbdtest.trace_env(folder, "window=20000,budget=24M")))
    seen = 0
    while child.poll() is None or tbdtest.organizers(folder):
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            result = tbdtest.run([tbdtest.TBDQ, "-t", path, *SCAN], stdin=None)
            finished = tbdtest.run([tbdtest.TBDQ, "-t", path, "--json", "info"], stdin=None)
            if b'"finished":false' in finished.out:
                seen += result.code in (0, 1, 3)  # 3: a window was merged meanwhile, which a busy machine makes likely
                assert not [n for n in os.listdir(path + "/cache") if n.endswith(".answer")] \
                    if os.path.isdir(path + "/cache") else True
    assert child.returncode == 0 and seen > 0, (child.returncode, seen)
    trace = tbdtest.find_trace(folder, argv[0])
    whole = told(trace, "--no-cache", *SCAN)
    assert b"main" in whole and told(trace, *SCAN) == whole and told(trace, *SCAN) == whole and len(answers_of(trace)) == 1


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
