#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tbd crash -p and tbd stop in processes that run already: calls end as if nobody had come, threads notice nothing, a death leaves a dump, what cannot be is said."""
import ctypes
import os
import random
import re
import signal
import socket
import struct
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


# ---- as Yama and other rules have it: a seccomp filter that refuses one call (linux/filter.h, linux/seccomp.h)

LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
NUMBER, FIRST_ARGUMENT, SECOND_ARGUMENT = 0, 16, 24  # in struct seccomp_data
ALLOW, KILL, EPERM = 0x7fff0000, 0x80000000, 0x50001
PTRACE, PRCTL = 101, 157
PR_SET_PTRACER = 0x59616d61

NO_PTRACE = ((LOAD, 0, 0, NUMBER), (EQUAL, 0, 1, PTRACE), (RETURN, 0, 0, EPERM), (RETURN, 0, 0, ALLOW))
DIES_NAMING_ITS_TRACER = ((LOAD, 0, 0, NUMBER), (EQUAL, 0, 4, PRCTL), (LOAD, 0, 0, FIRST_ARGUMENT), (EQUAL, 0, 2, PR_SET_PTRACER),
                          (LOAD, 0, 0, SECOND_ARGUMENT), (EQUAL, 0, 1, 0), (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, KILL))


class Program(ctypes.Structure):
    _fields_ = [("count", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def limit(rules):
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
    libc = ctypes.CDLL(None)
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    assert libc.prctl(22, 2, ctypes.byref(Program(len(rules), ctypes.addressof(code)))) == 0


def without_ptrace(root, *argv):
    env = tbdtest.clean_env({"TBD_DIR": os.path.basename(root)})
    return subprocess.run([tbdtest.TBD, *argv], capture_output=True, text=True, timeout=120, check=False, env=env, cwd=os.path.dirname(root),
                          preexec_fn=lambda: limit(NO_PTRACE))


def start_armed(root, *argv):
    process = subprocess.Popen([tbdtest.TBD, "arm", "--", *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=tbdtest.clean_env({"TBD_DIR": root}))
    assert process.stdout.readline() == "ready\n"
    return process


def handlers(pid):
    return [line for _, lines in state(pid) for line in lines if line[0] != "SigBlk"]


def beside(pid):
    """The answer to a packet that the keeper, or its deputy, must refuse."""
    space = os.stat("/proc/%d/ns/pid" % pid).st_ino
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.connect("\0tbd-armed-%d-%d" % (space, pid))
        for packet in (b"x", struct.pack("<4I", 10, 3, 2, 0), struct.pack("<4I", 10, 16, 17, 0) + b"a\0" * 16,
                       struct.pack("<4I", 10, 2, 1, 0) + b"a\0b"):
            connection.send(packet)
            if len(packet) < 8:
                answer = connection.recv(64)
                if not answer:
                    return
                continue
            answer = connection.recv(64)
            if not answer:  # the deputy serves one packet each time
                return
            assert struct.unpack("<I", answer[:4])[0] == 1, answer


def test_armed_programs_are_taken_over_without_ptrace(root):
    """Who must not use ptrace takes an armed program over, lets it go, and again; its probes come back; threads notice nothing, and recordings replay."""
    process = start_armed(root, TAKEN, "20")
    before = handlers(process.pid)
    for i in range(20 if tbdtest.LONG else 3):
        beside(process.pid)
        how = "record" if i % 2 else "crash"
        taken = without_ptrace(root, how, "-p", str(process.pid))
        assert taken.returncode == 0 and "21 threads" in taken.stderr, taken
        probed = without_ptrace(root, "probe", "-p", str(process.pid), "uprobe:taken:main { @ = count() }")
        assert probed.returncode == 4 and "it is recorded" in probed.stderr, probed
        end(root, process.pid)
    assert handlers(process.pid) == before, (before, handlers(process.pid))
    probed = without_ptrace(root, "probe", "-p", str(process.pid), "interval:ms:100 { exit() } uprobe:taken:main { @ = count() }")
    assert probed.returncode == 0 and "1 probes in process" in probed.stderr, probed
    taken = without_ptrace(root, "record", "-p", str(process.pid))
    assert taken.returncode == 0, taken
    text, errors = process.communicate("\n")
    assert process.returncode == 0 and text == "done\n", (text, errors)
    replays(root, 2)


def test_who_is_not_armed_cannot_be_taken_over_without_ptrace(root):
    """It is said, and the program goes on."""
    process = test_attach.start(test_attach.ATTACHED, "spin")
    refused = without_ptrace(root, "crash", "-p", str(process.pid))
    assert refused.returncode == 4 and "cannot attach" in refused.stderr, refused
    assert "ptrace_scope" in refused.stderr or "as containers have" in refused.stderr, refused
    text, _ = process.communicate("\n")
    assert process.returncode == 0 and text == "spin done\n", text


def test_an_armed_program_names_its_keeper(_):
    """The kernel ends a program at that call here, an armed one, and only that."""
    for begins, status in (([], 0), ([tbdtest.TBD, "arm", "--"], -signal.SIGSYS)):
        ended = subprocess.run(begins + ["/bin/true"], stderr=subprocess.DEVNULL, check=False, env=tbdtest.clean_env(),
                               preexec_fn=lambda: limit(DIES_NAMING_ITS_TRACER))
        assert ended.returncode == status, (begins, ended)


def test_a_stop_that_lasts_too_long_ends(root):
    """Then the threads go on as they were, which is said, and it is tried again; nothing is left of it, and what is taken at last is right."""
    may()
    process = test_attach.start(TAKEN, "10")
    taken = 0
    for i in range(60 if tbdtest.LONG else 2):
        how = "record" if i % 2 else "crash"
        result = tbd(root, how, "-p", str(process.pid), "--pause=%d" % (1 + i // 2))
        late = result.stderr.count("and goes on as it was")
        assert (result.returncode == 4 and late == 5) or (result.returncode == 0 and late < 5), result
        if result.returncode == 0:
            end(root, process.pid)
            taken += how == "record"
    begin(root, process.pid, "record")
    text, errors = process.communicate("\n")
    assert process.returncode == 0 and text == "done\n", (text, errors)
    replays(root, taken + 1)
    assert len(tbdtest.traces(root)) == taken + 1, (taken, tbdtest.traces(root))


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


def test_restartable_sequences(root):
    """In rings they would be tried for ever, so that is refused; a recording follows them, and nothing is lost."""
    may()
    process = subprocess.Popen([tbdtest.program("rseq_counters"), "long"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if process.stdout.readline() != "has sequences\n":
        process.communicate("\n")
        raise tbdtest.Skip("the C library registers no restartable sequences")
    for _ in range(3):
        result = tbd(root, "crash", "-p", str(process.pid))
        assert result.returncode == 4 and "uses restartable sequences (rseq)" in result.stderr and "tbd record -p" in result.stderr, result
        with open("/proc/%d/maps" % process.pid, encoding="utf-8") as maps:
            assert "tbd-stream" not in maps.read()
    begin(root, process.pid, "record")
    end(root, process.pid)
    text, errors = process.communicate("\n")  # the program itself checks its sums
    assert process.returncode == 0 and not errors and not text, (text, errors)


if __name__ == "__main__":
    tbdtest.main(test_calls_end_as_without,
                 test_threads_notice_nothing,
                 test_programs_that_are_just_starting,
                 test_armed_programs_are_taken_over_without_ptrace,
                 test_who_is_not_armed_cannot_be_taken_over_without_ptrace,
                 test_an_armed_program_names_its_keeper,
                 test_a_stop_that_lasts_too_long_ends,
                 test_a_death_leaves_a_dump,
                 test_what_cannot_be_is_said,
                 test_restartable_sequences)
