#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Probes in processes that were not started under tbd: their system calls end as if nobody had come, what cannot be is said, and nothing changes then."""
import os
import re
import signal
import subprocess
import tempfile
import time

import tbdtest

ATTACHED = os.path.join(tbdtest.PROGRAMS, "attached")
PROBED = os.path.join(tbdtest.PROGRAMS, "probed")
KINDS = ("sleep", "poll", "epoll", "futex", "sigwait", "semop", "suspend", "read", "spin")


def start(*argv, **more):
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=tbdtest.clean_env(), **more)
    assert process.stdout.readline() == "ready\n"
    return process


def tracer(pid, script):
    process = subprocess.Popen([tbdtest.TBD, "probe", "-p", str(pid), script], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return process, process.stderr.readline()


def may_attach():
    """Yama lets a process attach to its descendants at most; the tracer here is a sister."""
    try:
        return os.geteuid() == 0 or int(open("/proc/sys/kernel/yama/ptrace_scope", encoding="utf-8").read()) == 0
    except OSError:
        return True


def test_calls_end_as_without(_):
    """The only thread waits in a call: it waits as long, and gets the same result, after the engine came through it."""
    if not may_attach():
        raise tbdtest.Skip("kernel.yama.ptrace_scope")
    running = [(kind, start(ATTACHED, kind)) for kind in KINDS]
    tracers = [(kind, process, *tracer(process.pid, "uprobe:attached:attached_done { @ = count() }")) for kind, process in running]
    for kind, process, seen, line in tracers:
        if "blocks SIGTRAP" in line:
            assert kind == "sigwait", (kind, line)  # all its threads block all signals: refused, and let go
        else:
            assert "1 probes" in line, (kind, line)
        text, errors = process.communicate("\n")
        assert process.returncode == 0 and text == kind + " done\n", (kind, text, errors)
        out = seen.communicate()[0]
        assert out == ("" if kind == "sigwait" else "@: 1\n"), (kind, out)


def test_threads_under_load(_):
    """Ten sessions, one after the other, half of them after the keeper has gone and come again, in a program with eight threads that is never stopped: its results are as natively."""
    if not may_attach():
        raise tbdtest.Skip("kernel.yama.ptrace_scope")
    calls = 300000
    while sessions_under_load(calls) == 0:  # a machine on which it had ended before the first session began
        calls *= 4
        assert calls < 10 ** 8, "no session in a program that runs for long"


def sessions_under_load(calls):
    """How many sessions, at most ten, there were while the program ran."""
    expected = subprocess.run([PROBED, "8", str(calls)], input="", capture_output=True, text=True, check=True).stdout
    process = start(PROBED, "8", str(calls))
    rounds = 0
    process.stdin.write("\n")
    process.stdin.flush()
    while rounds < 10 and process.poll() is None:
        seen, line = tracer(process.pid, "uprobe:probed:do_* { @ = count() }")
        if "probes in process" not in line:
            break
        rounds += 1
        seen.send_signal(signal.SIGINT)
        seen.communicate()
        if rounds % 2:
            stopped = subprocess.run([tbdtest.TBD, "stop", str(process.pid)], capture_output=True, text=True, timeout=60, check=False)
            if stopped.returncode != 0:  # it has ended, or does right now
                process.wait(timeout=10)
    text = "ready\n" + process.communicate("\n")[0]
    assert text == expected and process.returncode == 0, (rounds, text, expected)
    return rounds


def test_what_cannot_be_is_said(_):
    """Seccomp, a debugger, stopped, static, no process: the reason is said, the process is as before."""
    script = "uprobe:*:attached_done { @ = count() }"
    run = lambda pid: subprocess.run([tbdtest.TBD, "probe", "-p", str(pid), script], capture_output=True, text=True, timeout=60, check=False)
    process = start(ATTACHED, "seccomp")
    limited = run(process.pid)
    assert limited.returncode == 4 and "seccomp" in limited.stderr, limited
    process.communicate("\n")
    assert process.returncode == 0
    process = start(ATTACHED, "sleep")
    os.kill(process.pid, signal.SIGSTOP)
    while not re.search(r"^State:\s+T", open("/proc/%d/status" % process.pid, encoding="utf-8").read(), re.M):
        time.sleep(0.01)
    stopped = run(process.pid)
    assert stopped.returncode == 4 and "is stopped" in stopped.stderr, stopped
    os.kill(process.pid, signal.SIGCONT)
    process.communicate("\n")
    assert process.returncode == 0
    gone = run(process.pid)
    assert gone.returncode in (1, 4) and "no such process" in gone.stderr, gone
    process = start(ATTACHED, "traced")
    for _ in range(100):
        if not re.search(r"^TracerPid:\s+0$", open("/proc/%d/status" % process.pid, encoding="utf-8").read(), re.M):
            traced = run(process.pid)
            assert traced.returncode == 4 and "debugger" in traced.stderr, traced
            break
        time.sleep(0.02)
    process.communicate("\n")
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "static.c")
        with open(source, "w", encoding="utf-8") as file:
            file.write('#include <stdio.h>\nint main(void) { puts("ready"); fflush(stdout); getchar(); return 0; }\n')
        if subprocess.run(["cc", "-static", "-o", source[:-2], source], capture_output=True, check=False).returncode == 0:
            process = start(source[:-2])
            static = run(process.pid)
            assert static.returncode == 4 and "statically linked" in static.stderr, static
            process.communicate("\n")
            assert process.returncode == 0


if __name__ == "__main__":
    tbdtest.main(test_calls_end_as_without,
                 test_threads_under_load,
                 test_what_cannot_be_is_said)
