#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tbd record --chaos: races show, the seed repeats the schedule, and programs and replays are right all the same."""
import random
import shutil

import tbdtest

RACES = ("lost", "check", "publish", "aba", "wakeup", "deadlock")


def shows(race, folder, options, verify=False):
    """Does the race show in a run with these options?"""
    result, trace = tbdtest.record([tbdtest.program("races"), race], folder, options)
    assert result.code in (0, 1), result
    tbdtest.ends_like(trace.info(), result)
    if verify:
        trace.verify()
    shutil.rmtree(folder)
    return result.code == 1


def test_races_show(folder):
    """Six races that taking turns as usual does not show.  Long: none of 100 plain runs, and at least 20 of 100 seeds."""
    runs = 100 if tbdtest.LONG else 10
    for race in RACES:
        plain = sum(shows(race, folder + "/plain", "") for _ in range(runs if tbdtest.LONG else 1))
        if tbdtest.LONG:
            found = sum(shows(race, folder + "/chaos", "chaos=%d" % seed, True) for seed in range(1, runs + 1))
        else:
            found = any(shows(race, folder + "/chaos", "chaos=%d" % seed, seed == 1) for seed in range(1, runs + 1))
        print("%s: %d of %d plain, %d of %d chaos" % (race, plain, runs if tbdtest.LONG else 1, found, runs))
        assert plain == 0, race
        assert found >= (20 if tbdtest.LONG else 1), (race, found)


def schedule(race, folder, seed):
    """When each turn began, from the first one on, and whose it was, by the threads' numbers.  What the linker does before depends on
    where the program lies."""
    result, trace = tbdtest.record([tbdtest.program("races"), race], folder, "chaos=%d" % seed)
    threads = [one["thread"] for one in trace.ask("threads")]
    turns = [(event["time"], threads.index(event["thread"])) for event in trace.events("thread_switch")]
    shutil.rmtree(folder)
    return result.code, [(time - turns[0][0], thread) for time, thread in turns]


def test_seed_repeats(folder):
    """The same seed gives the same results and the same turns; another one does not."""
    for race in ("lost", "deadlock"):
        first, again, other = (schedule(race, folder + "/a", seed) for seed in (7, 7, 9))
        assert len(first[1]) > 10, first
        assert first == again, (first[0], again[0], [pair for pair in zip(first[1], again[1]) if pair[0] != pair[1]][:3])
        assert first != other


def test_programs_are_right(folder):
    """Programs with threads and signals have the same results, and replay: only when they run differs."""
    names = ["thread_locks", "thread_pipes", "thread_signals", "thread_main_leaves", "sig_storm", "sig_waits", "forks"]
    numbers = random.Random(3)
    for name in names * (20 if tbdtest.LONG else 1):
        native, root = tbdtest.run([tbdtest.program(name)]), "%s/%s" % (folder, name)
        traced, trace = tbdtest.record([tbdtest.program(name)], root, "chaos=%d" % numbers.randint(1, 1 << 30))
        tbdtest.same(native, traced)
        assert trace is not None, name
        for one in tbdtest.traces(root):
            one.verify()
        shutil.rmtree(root)


def test_seed_is_said(folder):
    """--chaos says the seed that it has chosen, info knows it, and only recordings have one."""
    def run(*options):
        return tbdtest.run([tbdtest.TBD, "record", *options, "--", tbdtest.program("races")], env={"TBD_DIR": folder})
    result = run("--chaos", "--aftercount=no")
    words = result.err.decode().split()
    assert result.code == 0 and words[:3] == ["tbd:", "chaos:", "seed"], result
    tbdtest.wait_organizers(folder)
    trace = tbdtest.find_trace(folder, tbdtest.program("races"))
    assert "chaos: seed %s" % words[3].rstrip(";") in trace.info()["notes"], trace.info()
    for wrong in (("--chaos=x",), ("--chaos=5", "--mode=free"), ("--chaos=99999999999",)):
        result = run(*wrong)
        assert result.code == 2 and b"chaos" in result.err, result


tbdtest.main(test_races_show, test_seed_repeats, test_programs_are_right, test_seed_is_said)
