#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tbd crash -p and tbd stop in processes that run already: calls end as if nobody had come, threads notice nothing, a death leaves a dump, what cannot be is said."""
import os
import random
import re
import signal
import subprocess
import time

import tbdtest
import test_attach

TAKEN = os.path.join(tbdtest.PROGRAMS, "taken")


def tbd(root, *argv):
    env = tbdtest.clean_env()
    env["TBD_DIR"] = root
    return subprocess.run([tbdtest.TBD, *argv], capture_output=True, text=True, timeout=120, check=False, env=env)


def begin(root, pid, how="crash"):
    result = tbd(root, how, "-p", str(pid))
    assert result.returncode == 0 and ("is recorded" if how == "record" else "has rings") in result.stderr, result
    return int(re.search(r"(\d+) threads", result.stderr).group(1))


def end(root, pid):
    result = tbd(root, "stop", str(pid))
    assert result.returncode == 0, result
    with open("/proc/%d/maps" % pid, encoding="utf-8") as maps:
        assert "tbd-stream" not in maps.read()


def state(pid):
    """What the kernel has of each thread: its mask, and the process' handlers."""
    found = []
    for tid in sorted(os.listdir("/proc/%d/task" % pid)):
        with open("/proc/%d/task/%s/status" % (pid, tid), encoding="utf-8") as file:
            found.append((tid, re.findall(r"^(Sig(?:Blk|Ign|Cgt)):\s+(\w+)", file.read(), re.M)))
    return found


def replays(root, least):
    """Every recording does, from its first window on."""
    tbdtest.wait_organizers(root)
    found = tbdtest.traces(root)
    assert len(found) >= least, found
    for trace in found:
        trace.verify()


def may():
    if not test_attach.may_attach():
        raise tbdtest.Skip("kernel.yama.ptrace_scope")


def test_calls_end_as_without(root):
    """The only thread waits in a call: the engine comes, goes, and comes again to record; the call waits as long, and gets the same result; handlers and masks are as before; the recordings replay."""
    may()
    running = [(kind, test_attach.start(test_attach.ATTACHED, kind)) for kind in test_attach.KINDS]
    for kind, process in running:
        before = state(process.pid) if kind in ("spin", "sigwait") else None
        assert begin(root, process.pid) == 1
        end(root, process.pid)
        assert before in (None, state(process.pid)), (before, state(process.pid))
        begin(root, process.pid, "record")
        if kind in ("spin", "read"):
            end(root, process.pid)
    for kind, process in running:
        text, errors = process.communicate("\n")
        assert process.returncode == 0 and text == kind + " done\n", (kind, text, errors)
    replays(root, len(running))


def test_threads_notice_nothing(root):
    """Twenty threads that compute, sleep, lock, talk and get signals check themselves through rounds of coming and going, some of them recorded."""
    may()
    process = test_attach.start(TAKEN, "20")
    for i in range(100 if tbdtest.LONG else 4):
        assert begin(root, process.pid, "record" if i % 2 else "crash") == 21
        end(root, process.pid)
    begin(root, process.pid, "record")
    text, errors = process.communicate("\n")
    assert process.returncode == 0 and text == "done\n", (text, errors)
    replays(root, 3)


STARTS = 200 if tbdtest.LONG else 12


def test_programs_that_are_just_starting(root):
    """They are taken, or left alone with a reason, also while the library puts the engine into place; none dies."""
    may()
    chance = random.Random(1)
    for _ in range(STARTS):
        running = subprocess.Popen([tbdtest.TBD, "arm", "--", TAKEN, "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   env=tbdtest.clean_env({"TBD_DIR": root}))
        time.sleep(chance.random() * 0.03)
        taken = tbd(root, "crash", "-p", str(running.pid))
        assert taken.returncode in (0, 1, 4) and "process %d" % running.pid in taken.stderr or "has ended" in taken.stderr, taken
        running.kill()
        running.communicate()
        assert running.returncode == -signal.SIGKILL, (running.returncode, taken)


def test_a_death_leaves_a_dump(root):
    """The rings have what ran since the engine came, and the dump the state at the end."""
    may()
    process = test_attach.start(TAKEN, "5", "abort")
    begin(root, process.pid)
    process.communicate("\n")
    assert process.returncode == -signal.SIGABRT, process.returncode
    tbdtest.wait_organizers(root)
    ask = [tbdtest.TBDQ, "-t", tbdtest.find_trace(root, "taken").path]
    stack = tbdtest.run(ask + ["bt"]).out.decode()
    assert re.search(r"\bdie\b", stack) and re.search(r"\bmain\b", stack), stack
    path = tbdtest.run(ask + ["path", "400"]).out.decode()
    assert "abort" in path and re.search(r"\bdie\b", path), path


def test_what_cannot_be_is_said(root):
    """Seccomp, a debugger, recorded already, static: the reason is said, and the process is as before."""
    may()

    def refused(process, word):
        result = tbd(root, "crash", "-p", str(process.pid))
        assert result.returncode == 4 and word in result.stderr, result
        text, _ = process.communicate("\n")
        assert process.returncode == 0, text

    refused(test_attach.start(test_attach.ATTACHED, "seccomp"), "seccomp")
    process = test_attach.start(test_attach.ATTACHED, "sleep")
    begin(root, process.pid)
    refused(process, "something where the engine would be")
    gone = tbd(root, "crash", "-p", str(process.pid))
    assert gone.returncode == 1 and "no process" in gone.stderr, gone
    wrong = tbd(root, "crash", "-p", "x")
    assert wrong.returncode == 2, wrong
    process = test_attach.start(test_attach.ATTACHED, "spin")
    for how in ("record", "record"):  # nothing is left of the first one
        nowhere = tbd(root, how, "-p", str(process.pid), "--dir=/dev/null/traces")
        assert nowhere.returncode == 4 and "organizer" in nowhere.stderr, nowhere
    with open("/proc/%d/maps" % process.pid, encoding="utf-8") as maps:
        assert "tbd-stream" not in maps.read()
    text, errors = process.communicate("\n")
    assert process.returncode == 0 and text == "spin done\n" and not errors, (text, errors)


if __name__ == "__main__":
    tbdtest.main(test_calls_end_as_without,
                 test_threads_notice_nothing,
                 test_programs_that_are_just_starting,
                 test_a_death_leaves_a_dump,
                 test_what_cannot_be_is_said)
