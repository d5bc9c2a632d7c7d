#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Traces from a stranger: their code may do anything in its replay process, but does no harm outside."""
import json
import os

import tbdtest

WITHOUT = os.path.join(tbdtest.BUILD, "without")
SCRIBBLE = os.path.join(tbdtest.BUILD, "replay_scribble")


def scribble(folder, window, rounds, seeds, env=None):
    """Replays of every kind while the memory that they share with the process is written to."""
    _, trace = tbdtest.record([tbdtest.program("many_windows"), str(rounds)], folder, "window=%d" % window)
    for seed in seeds:
        result = tbdtest.run([SCRIBBLE, trace.path, str(seed), "20" if tbdtest.LONG else "3"], stdin=None,
                             env={"TBD_REPLAY_SECONDS": "2", **(env or {})})
        assert result.code == 0, "seed %d: %r" % (seed, result)


def test_scribbling_over_all_shared_memory_harms_nobody(folder):
    scribble(folder, 50000, 300000, range(1, 4))


def test_scribbling_between_slices_harms_nobody(folder):
    scribble(folder, 200000, 600000, range(4, 6), {"TBD_SLICE_BLOCKS": "7000"})


def strange(folder, mode, rounds, memory=None):
    """The reasons why the windows of a hostile program could not be replayed; without the first and the last window, in which it does
    nothing hostile."""
    _, trace = tbdtest.record([tbdtest.program("stranger"), mode, str(rounds)], folder, "window=200000")
    env = {"TBD_REPLAY_SECONDS": "20" if mode == "calls" else "1", **({"TBD_REPLAY_MEMORY": str(memory)} if memory else {})}
    result = tbdtest.run([tbdtest.TBDQ, "-t", trace.path, "--no-cache", "--json", "verify"], stdin=None, env=env)
    assert result.code in (1, 3), result
    assert b"\033" not in result.out + result.err and b"\a" not in result.out + result.err, result
    lines = [json.loads(line) for line in result.out.splitlines()]
    assert lines[-1]["windows"] == rounds + 1 and lines[-1]["divergences"] + lines[-1]["not_replayed"] >= rounds, lines
    return [line["what"] for line in lines[1:-1]]


def test_a_program_that_writes_into_its_driver_s_plan_is_ended(folder):
    assert any("misbehaves" in what for what in strange(folder, "scribble", 12))


def test_a_program_that_lies_about_its_replay_is_found_out(folder):
    """Some lies are contradicted by the process's own honest code before the driver looks."""
    reasons = strange(folder, "lie", 16)
    assert any("misbehaves" in what for what in reasons), reasons


def test_a_program_that_runs_in_circles_is_ended(folder):
    reasons = strange(folder, "spin", 2)
    assert all("processor time" in what or "progress" in what for what in reasons), reasons


def test_a_program_that_takes_memory_is_ended(folder):
    assert any("more than 300 MB of memory" in what for what in strange(folder, "fill", 2, memory=300))


def test_system_calls_of_replayed_code_end_its_process(folder):
    reasons = strange(folder, "calls", 11)
    assert len(reasons) >= 10 and all("a system call that it may not make" in what for what in reasons), reasons


def verify_without(folder, call):
    trace = tbdtest.find_trace(folder, "stranger")
    result = tbdtest.run([WITHOUT, call, tbdtest.TBDQ, "-t", trace.path, "--no-cache", "--json", "verify"], stdin=None)
    if result.code == 77:
        raise tbdtest.Skip("no seccomp")
    return result, [json.loads(line) for line in result.out.splitlines()]


def test_what_cannot_be_confined_is_not_replayed(folder):
    """prctl(PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, PR_SET_PDEATHSIG), close_range."""
    tbdtest.record([tbdtest.program("stranger")], folder)
    for call in ("157:22", "157:38", "157:1", "436"):
        result, lines = verify_without(folder, call)
        assert result.code == 3 and lines[-1]["not_replayed"] == lines[-1]["windows"], (call, result)
        assert all("cannot be confined" in line["what"] for line in lines[:-1]), (call, result)


def test_without_namespaces_it_is_replayed_and_said(folder):
    """mount(2) is what makes their root empty."""
    tbdtest.record([tbdtest.program("stranger")], folder)
    result, lines = verify_without(folder, "165")
    assert result.code == 0 and lines[-1]["namespaces"] is False, result


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
