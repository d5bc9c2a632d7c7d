#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Replay in all its forms: raised windows, load events, registers at positions, each against what
play wrote (replay_check); windows cut at every few blocks; replay processes that die or hang."""
import contextlib
import glob
import json
import os
import shutil
import signal
import subprocess
import time

import inputs
import tbdtest

tbdtest.KEEPS_EVENTS = True

CHECK = os.path.join(tbdtest.BUILD, "replay_check")


def check(argv, folder, window, samples=40 if tbdtest.LONG else 6, **how):
    """Records natively checked, then replays every window in every way."""
    _, trace = tbdtest.check_run(argv, folder, options="window=%d" % window, **how)
    result = tbdtest.run([CHECK, trace.path, str(samples)], stdin=None, timeout=600)
    assert result.code == 0, "%s: %r" % (argv, result.out)
    return trace


def test_feature_programs_in_small_windows(folder):
    """Some ten to fifty windows each, a quarter of them where the long variants do not run."""
    sizes = {"strings": 9000, "flags": 9000, "redzone": 14000, "floating": 4000, "alarm": 4000, "dl": 4000, "exceptions": 30000, "unwinding": 14000,
             "shared_insns": 4000, "code_forms": 14000}
    names = ("stores", "strings", "switches", "jumps", "rep", "straddle", "vector_sse", "flags", "redzone",
             "high_regs", "floating", "maps", "segv_repair", "traps", "alarm", "unwinding", "x87_pointers")
    for name in names + (("dl", "exceptions", "shared_insns", "code_forms") if tbdtest.LONG else ()):
        where = os.path.join(folder, name)
        check([tbdtest.program(name)], where, sizes.get(name, 700) * (1 if tbdtest.LONG else 4))
        shutil.rmtree(where)


def test_windows_of_a_few_blocks(folder):
    check([tbdtest.program("recursion")], folder, 40, samples=3)


def test_windows_that_calls_fill_end_early(folder):
    """Few blocks, and calls that log a megabyte read and what it overwrote: no window is much above 64 MiB."""
    argv = ["/bin/dd", "if=/dev/zero", "of=/dev/null", "bs=1M", "count=100", "status=none"]
    _, trace = tbdtest.check_run(argv, folder)
    windows = trace.ask("windows")
    assert 3 <= len(windows) <= 5, windows
    assert all(b["time"] == a["time"] + a["blocks"] for a, b in zip(windows, windows[1:])), windows


def test_lua(folder):
    script = "local t={} for i=1,3000 do t[i]=tostring(i*i) end print(#table.concat(t))"
    check([tbdtest.need("lua5.4"), "-e", script], folder, 100000)


def test_gzip_in_default_windows(folder):
    text = os.path.join(folder, "in.txt")
    inputs.text(text, 300000 if tbdtest.LONG else 80000)
    trace = check([tbdtest.need("gzip"), "-6", "-c", text], folder, 1 << 20)
    assert len(trace.ask("windows")) > 2, trace.ask("windows")


def replay_processes(parent):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid) as f:
                fields = f.read().rpartition(")")[2].split()
            with open("/proc/%s/comm" % pid) as f:
                if int(fields[1]) == parent and f.read().strip() == "tbd-replay":
                    found.append(int(pid))
        except OSError:
            pass
    return found


def interfere(folder, signum):
    """Sends a signal to the first replay process of a running verify; returns its outcome."""
    _, trace = tbdtest.record([tbdtest.program("many_windows")], os.path.join(folder, "traces"), "window=20000")
    verify = subprocess.Popen([tbdtest.TBDQ, "-t", trace.path, "-j", "1", "verify"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env=tbdtest.clean_env())
    end = time.monotonic() + 20
    while not replay_processes(verify.pid) and verify.poll() is None and time.monotonic() < end:
        pass
    for pid in replay_processes(verify.pid):
        os.kill(pid, signum)
    out, _ = verify.communicate(timeout=120)
    return trace, verify.returncode, out


def test_verify_quick_needs_no_recorded_events(folder):
    """Events of one window are damaged: that counts when they are compared, and not when end states are."""
    _, trace = tbdtest.record([tbdtest.program("stores")], folder, "window=700,lean=never")
    events = sorted(glob.glob(os.path.join(trace.path, "windows", "*", "*.trace")))
    assert len(events) > 2, events
    with open(events[1], "r+b") as file:
        file.seek(os.path.getsize(events[1]) // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 0x10]))
    for words, code, lost in (((), 3, 1), (("--quick",), 0, 0), (("--quick", "-j2"), 0, 0)):
        result = trace.tbdq("verify", *words)
        assert result.code == code, (words, result)
        summary = json.loads(result.out.splitlines()[-1])
        assert summary["not_replayed"] == lost and summary["divergences"] == 0, (words, summary)


def test_a_killed_replay_process_is_told_and_the_rest_goes_on(folder):
    trace, code, out = interfere(folder, signal.SIGKILL)
    if code != 0:
        assert b"killed by signal 9" in out, out
    trace.verify()


def test_replay_processes_that_are_stopped_go_on(folder):
    """As with Ctrl-Z and fg: most of them wait then, and go on waiting with a system call of its own."""
    _, trace = tbdtest.record([tbdtest.program("many_windows")], folder, "window=20000")
    verify = subprocess.Popen([tbdtest.TBDQ, "-t", trace.path, "--no-cache", "verify"], stdout=subprocess.PIPE, env=tbdtest.clean_env())
    stopped = 0
    while verify.poll() is None:
        found = replay_processes(verify.pid)
        for what in (signal.SIGSTOP, signal.SIGCONT):
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, what)
            time.sleep(0.01)
        stopped += len(found)
    out, _ = verify.communicate()
    assert stopped and verify.returncode == 0, (stopped, verify.returncode, out)


def test_libraries_between_ranges_that_may_grow_without_limit(folder):
    """At fixed addresses libraries lie close below the stack, and close above a mapping that grows: only play's patch areas are within
    their reach."""
    tbdtest.record(tbdtest.fixed([tbdtest.program("growing_stacks")]), folder, "window=2000,lean=never")
    tbdtest.find_trace(folder, tbdtest.program("growing_stacks")).verify()


def test_no_replay_process_stays_behind(folder):
    """tbdq is killed at several moments: while its processes wait for a window, and for room in a stream."""
    for options, moments in (("window=20000", 1), ("window=2000000", 4)):
        _, trace = tbdtest.record([tbdtest.program("many_windows")], os.path.join(folder, options), options)
        for moment in range(moments):
            verify = subprocess.Popen([tbdtest.TBDQ, "-t", trace.path, "verify"], stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL, env=tbdtest.clean_env())
            end = time.monotonic() + 20
            while not replay_processes(verify.pid) and verify.poll() is None and time.monotonic() < end:
                pass
            time.sleep(moment * 0.008)
            children = replay_processes(verify.pid)
            verify.kill()
            verify.wait()
            end = time.monotonic() + 10
            while any(os.path.exists("/proc/%d" % pid) for pid in children):
                assert time.monotonic() < end, "replay processes outlive tbdq: %r" % children
                time.sleep(0.05)


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
