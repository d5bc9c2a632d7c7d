#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Errors outside our control: killed programs, killed organizers, full and
unwritable disks, damaged traces, programs that cannot be traced.  The program's results never change;
the tracer prints one line."""
import errno
import glob
import os
import random
import re
import resource
import shutil
import signal
import stat
import struct
import subprocess
import time

import inputs
import tbdtest


def tool_lines(err):
    return [line for line in err.splitlines() if line.startswith(b"tbd") and not line.startswith(b"tbd: hint: ")]


def one_line(result, *words):
    """The tracer says one line (and perhaps a hint), with these words in it."""
    lines = tool_lines(result.err)
    assert len(lines) == 1, "not one line from tbd: %r" % result.err
    for word in words:
        assert word.encode() in lines[0], "%r is not in %r" % (word, lines[0])


def untouched(argv, env, **how):
    """The program's own results with this environment are the native ones; returns the run."""
    native, result = tbdtest.run(argv, **how), tbdtest.run(argv, env=env, **how)
    tbdtest.same(native, result, tool_lines=True)
    return result


def check_killed_trace(trace):
    """Opens, verifies, knows its last block and answers about the past."""
    info = trace.info()
    assert info["dropped"] == 0 and info["blocks"] > 0, info
    trace.verify()
    last = trace.one("goto", "last")
    assert last["time"] <= info["blocks"] and last["time"] + 1 >= info["blocks"], (last, info["blocks"])
    assert "rip" in str(trace.one("regs", at=tbdtest.position(last)))
    assert trace.ask("goto", "last", "backward", "block_entry", 1)
    return info


def test_program_killed_at_random_moments(folder):
    argv = [tbdtest.program("many_windows")]
    chance = random.Random(os.urandom(8) if tbdtest.LONG else 17)
    begin = time.monotonic()
    tbdtest.record(argv, folder + "/whole")
    whole = time.monotonic() - begin
    for i in range(50 if tbdtest.LONG else 5):
        root, delay = folder + "/k%d" % i, chance.uniform(0.02, max(whole * 0.9, 0.1))
        process = tbdtest.start(argv, root, "window=200000")
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        tbdtest.wait_organizers(root)
        trace = tbdtest.find_trace(root, argv[0])
        if trace is None or trace.info()["blocks"] == 0:  # before the program's first block, or its first report
            assert delay < max(0.3, whole / 2), "killed after %.2f s, no trace, or an empty one" % delay
        else:
            check_killed_trace(trace)
        shutil.rmtree(root)


def test_program_that_kills_itself(folder):
    argv = [tbdtest.program("die_kill")]
    result, trace = tbdtest.record(argv, folder)
    assert result.code == -9 and result.out == b"before\n", result
    check_killed_trace(trace)
    stack = trace.ask("bt", at="last")  # the call did not return: it is no event yet, but its block was entered
    assert stack[0]["function"] == "kill" and stack[1]["function"] == "main", stack
    values = bytes.fromhex(trace.one("mem", "&last_values", 12000, at="last")["bytes"])
    assert struct.unpack("<3000I", values) == tuple(i * 3 + 1 for i in range(3000))


def test_organizer_killed_at_random_moments(folder):
    argv = [tbdtest.program("many_windows")]
    native, chance = tbdtest.run(argv), random.Random(os.urandom(8) if tbdtest.LONG else 23)
    hit = 0
    for i in range(30 if tbdtest.LONG else 5):
        root = folder + "/o%d" % i
        process = tbdtest.start(argv, root)
        hit += tbdtest.kill_organizers(root, process, chance.uniform(0, 0.4))
        out, err = process.communicate(timeout=120)
        tbdtest.same(native, tbdtest.Result(out, err, process.returncode), tool_lines=True)
        trace = tbdtest.find_trace(root, argv[0])
        if trace:
            result = trace.tbdq("info")
            assert result.code in (0, 3), result
        shutil.rmtree(root)
    assert hit > 0


def test_kill_at_random(folder):
    """The script that kills every program and every organizer: a few here, all with TBD_LONG=1."""
    how = ["--kills", "50", "--organizers", "20"] if tbdtest.LONG else \
          ["--kills", "1", "--organizers", "1", "--seed", "7", "dl", "forks", "spawns"]
    result = tbdtest.run([os.path.join(tbdtest.SOURCE, "scripts", "kill-at-random"), "--build", tbdtest.BUILD] + how,
                         timeout=590 if not tbdtest.LONG else 7200)
    assert result.code == 0 and b" 0 failed" in result.out.splitlines()[-1], result.out.decode() + result.err.decode()


def test_organizer_ignores_signals_for_the_group(folder):
    """Ctrl-C reaches the program only; the trace ends with the program."""
    argv = [tbdtest.program("many_windows")]
    process = tbdtest.start(argv, folder)
    while tbdtest.find_trace(folder, argv[0]) is None and process.poll() is None:
        time.sleep(0.002)
    organizers = tbdtest.organizers(folder)
    assert organizers
    for pid in organizers:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(pid, number)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0 and not tool_lines(err), err
    tbdtest.wait_organizers(folder)
    tbdtest.find_trace(folder, argv[0]).verify()


def test_trace_root_that_cannot_be_written(folder):
    plain = os.path.join(folder, "file")
    with open(plain, "w"):
        pass
    for root in (plain, plain + "/below", "/proc/tbd", "/dev/null/x"):
        result = untouched([tbdtest.program("stores")], tbdtest.trace_env(root))
        one_line(result, root)
    assert os.listdir(folder) == ["file"]


def test_disk_that_is_full(folder):
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1500k", "tmpfs", folder], check=False,
                                           stderr=subprocess.DEVNULL).returncode:
        raise tbdtest.Skip("no permission to mount a small file system")
    try:
        argv = [tbdtest.program("big_memory")]
        native = tbdtest.run(argv)
        result, trace = tbdtest.record(argv, folder + "/traces", "window=100000")
        tbdtest.same(native, result, tool_lines=True)
        if trace is not None:
            answer = trace.tbdq("info")
            assert answer.code in (0, 3), answer
            if answer.code == 0:
                text = answer.out.decode().lower()
                assert "full" in text or "space" in text or "disk" in text, "the trace does not say why it ends: " + text
                trace.verify()
    finally:
        subprocess.run(["umount", "-l", folder], check=False)


class MemoryGroup:
    """A control group of version 1 or 2 of our own, with a limit of memory."""

    def __init__(self):
        name = "tbd-test-%d" % os.getpid()
        for root, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
            self.folder = os.path.join(root, name)
            try:
                os.mkdir(self.folder)
            except OSError:
                continue
            self.limit = os.path.join(self.folder, limit)
            if os.path.exists(self.limit):
                return
            os.rmdir(self.folder)
        raise tbdtest.Skip("no permission to make a control group that limits memory")

    def run(self, megabytes, argv, env):
        with open(self.limit, "w", encoding="utf-8") as out:
            out.write("%dM" % megabytes)
        return tbdtest.run(["sh", "-c", 'echo $$ >%s/cgroup.procs && exec "$@"' % self.folder, "sh"] + argv, env=env)

    def remove(self):
        for _ in range(100):  # the organizer may live a little longer
            try:
                return os.rmdir(self.folder)
            except OSError:
                time.sleep(0.1)


def test_control_group_that_limits_memory(folder):
    """Where the organizer has no place, the program goes on, and one line says so; with few chunks there is place."""
    group = MemoryGroup()
    try:
        argv = [tbdtest.program("recursion")]
        native = tbdtest.run(argv)
        for number, (megabytes, options, fits) in enumerate(((12, "", False), (24, "chunks=4", True), (300, "", True))):
            root = "%s/traces%d" % (folder, number)
            os.makedirs(root)
            result = group.run(megabytes, [tbdtest.TBD, "record", "--"] + argv, {"TBD_DIR": root, "TBD_OPTIONS": options})
            assert (result.code, result.out) == (native.code, native.out), (megabytes, result)
            lines = [line for line in result.err.decode().splitlines() if line.startswith("tbd: ")]
            assert len(lines) <= 1 and (not fits or not lines), (megabytes, result)
            if not lines:
                tbdtest.find_trace(root, argv[0]).verify()
    finally:
        group.remove()


def test_file_size_limit(folder):
    """A limit that the organizer inherits: it must not die of SIGXFSZ unnoticed, the program goes on."""
    argv = [tbdtest.program("many_windows")]
    native = tbdtest.run(argv)
    root = folder + "/traces"
    os.makedirs(root)
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=tbdtest.clean_env(tbdtest.trace_env(root)),
                               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200000, 200000)))
    out, err = process.communicate(timeout=120)
    tbdtest.same(native, tbdtest.Result(out, err, process.returncode), tool_lines=True)
    tbdtest.wait_organizers(root)
    trace = tbdtest.find_trace(root, argv[0])
    assert trace is None or trace.tbdq("info").code in (0, 3)


def files_of(path):
    return sorted(f for f in glob.glob(path + "/**", recursive=True) if os.path.isfile(f) and "/modules/" not in f)


QUESTIONS = (["info"], ["windows"], ["modules"], ["verify"], ["goto", "first", "forward", "store", "100"],
             ["goto", "last", "backward", "func_enter", "2"], ["--at", "1000", "mem", "0x400000", "64"], ["--at", "last", "regs"],
             ["--at", "last", "bt"])


def check_damaged(path, what):
    """Every question ends soon, with a status of ours, and complains about a file if at all."""
    for words in QUESTIONS:
        result = tbdtest.run([tbdtest.TBDQ, "-t", path, *words], stdin=None, timeout=60)
        outside = result.code == 2 and b"no such position" in result.err  # less of the trace is left
        assert result.code in (0, 1, 3) or outside, "%s: tbdq %s: %r" % (what, " ".join(words), result)
        if result.code == 3 and words == ["verify"] and not result.err:  # says so window by window
            assert b"was not replayed: " in result.out and b" at offset " in result.out, "%s: %r" % (what, result)
        elif result.code == 3:
            assert len(result.err.splitlines()) in (1, 2) and result.err.startswith(b"tbd"), "%s: %r" % (what, result)


def test_damaged_traces(folder):
    _, trace = tbdtest.record([tbdtest.program("stores")], folder, "window=20000")
    chance = random.Random(5)
    for name in files_of(trace.path):
        with open(name, "rb") as f:
            whole = f.read()
        for turn in range(6 if tbdtest.LONG else 1):
            at = chance.randrange(max(len(whole), 1))
            flipped = bytearray(whole)
            if whole:
                flipped[at] ^= 1 << chance.randrange(8)
            for damaged, what in ((whole[:at], "cut at %d" % at), (bytes(flipped), "bit flipped at %d" % at)):
                os.chmod(name, 0o600)
                with open(name, "wb") as f:
                    f.write(damaged)
                check_damaged(trace.path, "%s %s" % (os.path.basename(name), what))
        with open(name, "wb") as f:
            f.write(whole)
    trace.verify()


def test_a_damaged_image_is_no_divergence(folder):
    _, trace = tbdtest.record([tbdtest.program("stores")], folder, "window=1000")
    name, chance = os.path.join(trace.path, "image"), random.Random(29)
    with open(name, "rb") as f:
        whole = f.read()
    for _ in range(8):
        at = chance.randrange(80, len(whole))
        damaged = bytearray(whole)
        damaged[at] ^= 1 << chance.randrange(8)
        os.chmod(name, 0o600)
        is_cut = chance.random() < 0.5
        with open(name, "wb") as f:
            f.write(whole[:at] if is_cut else damaged)
        for words in (["verify"], ["--at", "5", "regs"]):
            result = trace.tbdq(*words, json_output=False)
            said = result.out + result.err
            assert b"diverged" not in said and (result.code == 0) == (b"image at offset" not in said), (at, result)
            assert result.code == 3 or (result.code == 0 and not is_cut), (at, result)
        modules = trace.tbdq("modules", json_output=False)
        assert not is_cut or b"note: [vdso] is damaged" in modules.err, (at, modules)


def test_calls_that_the_engine_does_not_know_how_to_record_are_refused(folder):
    _, trace = tbdtest.record([tbdtest.program("refused_calls")], folder)
    results = {row["syscall"]: tbdtest.number(row["retval"]) for row in trace.ask("syscalls")}
    for call in ("io_uring_setup", "io_uring_enter", "io_uring_register", "io_setup", "io_destroy", "io_getevents",
                 "io_submit", "io_cancel", "io_pgetevents", "map_shadow_stack"):
        assert results[call] == 2**64 - errno.ENOSYS, results


def records(data):
    """Type, offset of the payload and its length of each record of a file."""
    at = struct.unpack_from("<I", data, 16)[0]
    while at < len(data):
        kind, _, size = struct.unpack_from("<IIQ", data, at)
        yield kind, at + 24, size
        at += 24 + size + -size % 8


def test_damage_to_the_image_costs_only_windows_that_need_its_page(folder):
    _, trace = tbdtest.record([tbdtest.program("stores")], folder, "window=300")
    name = os.path.join(trace.path, "image")
    with open(name, "rb") as f:
        whole = f.read()
    places = {kind: (at, size) for kind, at, size in records(whole)}
    table, data = places[32], places[33][0]
    entries = [struct.unpack_from("<QIIIIQ", whole, at) for at in range(table[0], sum(table), 32)]
    vdso = next(tbdtest.number(r["start"]) for r in trace.ask("modules") if r["module"] == "[vdso]")
    os.chmod(name, 0o600)
    with open(name, "wb") as f:  # damaged checksums harm nobody
        f.write(whole[:places[42][0]] + bytes([whole[places[42][0]] ^ 4]) + whole[places[42][0] + 1:])
    assert trace.tbdq("verify").code == 0
    lost, told = [], 0
    for address, _, _, _, size, offset in entries:
        if not size:
            continue
        damaged = bytearray(whole)
        damaged[data + offset + size // 2] ^= 1
        with open(name, "wb") as f:
            f.write(damaged)
        result = trace.tbdq("verify", json_output=False)
        assert result.code in (0, 3) and b"diverged" not in result.out + result.err, (address, result)
        found = re.search(rb"(\d+) windows were not replayed", result.out)
        lost.append(int(found.group(1)) if found else 0)
        assert not lost[-1] or b"the page at 0x%x" % address in result.out + result.err, (address, result)
        result = trace.tbdq("modules", json_output=False)
        is_vdso = vdso <= address < vdso + 0x10000
        assert (b"[vdso] is damaged" in result.err) == is_vdso == (b"  [vdso] " not in result.out), (address, result)
        told += is_vdso
    windows = len(trace.ask("windows"))
    assert told and windows > 10 and 0 in lost and any(0 < n < windows for n in lost), (windows, lost)


def test_windows_that_need_what_is_lost_are_damaged_not_divergent(folder):
    """Windows without their events are replayed; an unknown block, or memory of a lost window, is then caused by the damage."""
    _, trace = tbdtest.record([tbdtest.program("stores")], folder, "window=1000")
    trace.ask("lower", "all", "2")
    lost = 0
    for name in ("blocks", "index"):
        path = os.path.join(trace.path, name)
        os.chmod(path, 0o600)
        with open(path, "rb") as f:
            whole = f.read()
        for at in range(len(whole) // 4, len(whole), len(whole) // (8 if tbdtest.LONG else 4)):
            for damaged in (whole[:at], whole[:at] + bytes(64) + whole[at + 64:]):
                with open(path, "wb") as f:
                    f.write(damaged)
                for words in (["verify"], ["--at", "last", "bt"], ["goto", "last", "backward", "store", "1", "where", "rax == 99"]):
                    result = tbdtest.run([tbdtest.TBDQ, "--no-cache", "-t", trace.path, *words])
                    said = result.out + result.err
                    assert b"diverged at" not in said, (name, at, len(damaged), words, result)
                    lost += b"without what is lost" in said
        with open(path, "wb") as f:
            f.write(whole)
    trace.verify()
    assert lost, "no window needed what was lost"


def test_missing_files(folder):
    _, trace = tbdtest.record([tbdtest.program("stores")], folder, "window=20000")
    for name in files_of(trace.path):
        os.rename(name, name + ".gone")
        check_damaged(trace.path, os.path.basename(name) + " gone")
        os.rename(name + ".gone", name)
    trace.verify()


def test_trace_of_another_version(folder):
    _, trace = tbdtest.record([tbdtest.program("stores")], folder)
    changed = []
    for name in files_of(trace.path):
        with open(name, "r+b") as f:
            head = f.read(16)
            if not head.startswith(b"TBD\r\n\x1a\n"):
                continue
            f.seek(12)
            f.write(struct.pack("<H", struct.unpack("<H", head[12:14])[0] + 1))
            changed.append((name, head))
    assert len(changed) >= 4, changed
    result = trace.tbdq("info")
    assert result.code == 3 and b"format 2" in result.err and b"header" in result.err, result
    for name, head in changed:
        with open(name, "r+b") as f:
            f.write(head)
    assert trace.tbdq("info").code == 0


def test_modes_keep_secrets(folder):
    old = os.umask(0)
    try:
        _, trace = tbdtest.record([tbdtest.program("stores")], folder + "/new/root")
    finally:
        os.umask(old)
    for where, folders, names in os.walk(trace.path):
        assert stat.S_IMODE(os.stat(where).st_mode) == 0o700, where
        for name in names:
            mode = stat.S_IMODE(os.lstat(os.path.join(where, name)).st_mode)
            assert os.path.islink(os.path.join(where, name)) or mode & 0o177 == 0, (name, oct(mode))


def test_program_file_changed_since(folder):
    program = os.path.join(folder, "program")
    shutil.copy(tbdtest.program("recursion"), program)
    _, trace = tbdtest.record([program], folder + "/traces")
    before = trace.one("goto", "first", "forward", "func_enter", 5, "where", "func==fib")
    os.unlink(program)
    shutil.copy(tbdtest.program("stores"), program)
    after = trace.one("goto", "first", "forward", "func_enter", 5, "where", "func==fib")
    assert before == after
    trace.verify()
    os.unlink(program)
    assert trace.one("goto", "first", "forward", "func_enter", 5, "where", "func==fib") == before


def elf32(path):
    """A 32-bit program: exit(3)."""
    code = bytes.fromhex("b801000000bb03000000cd80")
    header = b"\x7fELF\x01\x01\x01" + bytes(9) + struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, 0x8048054, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    segment = struct.pack("<IIIIIIII", 1, 0, 0x8048000, 0x8048000, 84 + len(code), 84 + len(code), 5, 0x1000)
    with open(path, "wb") as f:
        f.write(header + segment + code)
    os.chmod(path, 0o755)


def untraceable(folder, argv, *words):
    native = tbdtest.run(argv)
    env = {"TBD_DIR": folder + "/traces"}
    result = tbdtest.run([tbdtest.TBD, "record", "--", *argv], env=env)
    one_line(result, *words)
    assert result.out == native.out and result.code in (native.code, 4), (native, result)
    result = tbdtest.run(argv, env=tbdtest.trace_env(folder + "/traces"))
    assert result.code == native.code and result.out == native.out, result


def test_static_program(folder):
    source = os.path.join(folder, "s.c")
    with open(source, "w") as f:
        f.write("#include <stdio.h>\nint main(void) { puts(\"static\"); return 5; }\n")
    if tbdtest.run([tbdtest.need("cc"), "-static", "-o", folder + "/s", source]).code:
        raise tbdtest.Skip("no static libc")
    untraceable(folder, [folder + "/s"], "static")


def test_32_bit_program(folder):
    elf32(folder + "/p32")
    try:
        native = tbdtest.run([folder + "/p32"])
    except OSError:
        raise tbdtest.Skip("this kernel runs no 32-bit programs")
    if native.code != 3:
        raise tbdtest.Skip("this kernel runs no 32-bit programs")
    untraceable(folder, [folder + "/p32"], "32-bit")


def test_set_uid_program(folder):
    if os.geteuid() != 0:
        raise tbdtest.Skip("needs root")
    os.chmod(folder, 0o755)
    program = os.path.join(folder, "setuid")
    shutil.copy(tbdtest.program("stores"), program)
    os.chown(program, 1, 1)
    os.chmod(program, 0o4755)
    result = tbdtest.run([tbdtest.TBD, "record", "--", program], env={"TBD_DIR": folder + "/traces"})
    one_line(result, "set-uid")


def test_program_that_does_not_exist(folder):
    result = tbdtest.run([tbdtest.TBD, "record", "--", folder + "/nothing"], env={"TBD_DIR": folder})
    assert result.code in (4, 127), result
    one_line(result, "nothing")


def test_a_patched_program_leaves_no_trace(folder):
    """mode=patched, and hooks=none, which means the same, and mode=free: translated, with the program's own results; nothing is kept."""
    argv = [tbdtest.program("stores")]
    for number, options in enumerate(("mode=patched", "hooks=none", "mode=patched,hooks=full", "mode=free", "mode=free,hooks=full")):
        root = "%s/%d" % (folder, number)
        os.makedirs(root)
        result = untouched(argv, tbdtest.trace_env(root, options + ",log=debug"))
        assert tool_lines(result.err), "it was not translated: %r" % result.err
        assert not os.listdir(root), os.listdir(root)


def test_options_that_do_not_exist(folder):
    for options, word in (("colour=red", "colour"), ("window=many", "window"), ("hooks=maybe", "hooks"), ("mode=nowhere", "mode"),
                          ("mode=replay", "auto|native|traced|later|patched|free|crash")):
        result = untouched([tbdtest.program("stores")], tbdtest.trace_env(folder, options))
        one_line(result, word)
    result = tbdtest.run([tbdtest.TBD, "record", "--colour", "--", "/bin/true"])
    assert result.code == 2 and b"--colour" in result.err, result
    for words in (["-x", "ls"], ["--window=3", "--", "ls"]):
        result = tbdtest.run([tbdtest.TBD, "record", *words])
        assert result.code == 2 and words[0].split("=")[0].strip("-").encode() in result.err, result
    result = tbdtest.run([tbdtest.TBD, "/bin/true"])
    assert result.code == 2 and b"tbd record -- /bin/true" in result.err, result
    for words in (["-h"], ["record", "-h"], ["--version"], ["record", "--version"]):
        result = tbdtest.run([tbdtest.TBD, *words])
        assert result.code == 0 and result.out and not result.err, result
    result = tbdtest.run([tbdtest.TBDQ, "info"], env=tbdtest.clean_env({"TBD_DIR": folder + "/none"}))
    assert result.code == 3 and b"tbd record" in result.err and (folder + "/none").encode() in result.err, result
    result = tbdtest.run([tbdtest.TBDQ, "--colour", "info"])
    assert result.code == 2 and b"--colour" in result.err, result
    assert not [name for name in os.listdir(folder) if "-" in name], os.listdir(folder)


def test_organizer_that_cannot_be_started(folder):
    result = untouched([tbdtest.program("stores")], tbdtest.trace_env(folder, "organizer=/no/such/organizer"))
    one_line(result, "organizer")


def test_an_organizer_that_dies_at_its_start(folder):
    """Of the program, or of one of its children: that process goes on natively, with its own results."""
    argv, count = [tbdtest.program("clones")], folder + "/count"
    native = tbdtest.run(argv)
    tbdtest.same(native, tbdtest.record(argv, folder + "/none", "children=no")[0], tool_lines=True)
    wrapper = folder + "/organizer"
    with open(wrapper, "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\nn=0\nuntil mkdir %s-$n 2>/dev/null; do n=$((n+1)); done\n"
                "[ $n = $(cat %s) ] && kill -9 $$\nexec %s/tbd-organizer \"$@\"\n" % (count, count, tbdtest.BUILD))
    os.chmod(wrapper, 0o755)
    died = 0
    for n in range(5):
        for name in glob.glob(count + "-*"):
            os.rmdir(name)
        with open(count, "w", encoding="utf-8") as f:
            f.write("%d" % n)
        root = "%s/%d" % (folder, n)
        result = tbdtest.record(argv, root, "organizer=" + wrapper)[0]
        tbdtest.same(native, result, tool_lines=True)
        died += b"the organizer does not start" in result.err
    assert died >= 4, died  # one more where user namespaces are allowed


def test_other_libraries_preloaded_too(folder):
    source, library = folder + "/p.c", folder + "/libp.so"
    with open(source, "w") as f:
        f.write("#include <stdio.h>\n#include <stdlib.h>\n__attribute__((constructor)) static void s(void) { puts(\"preloaded\"); }\n"
                "int atoi(const char *t) { return (int)strtol(t, NULL, 10) + 1; }\n")
    assert tbdtest.run([tbdtest.need("cc"), "-shared", "-fPIC", "-o", library, source]).code == 0
    argv = [tbdtest.program("exec_self"), "0"]
    native = tbdtest.run(argv, env={"LD_PRELOAD": library})
    assert native.out == b"preloaded\n1 left\npreloaded\n0 left\n" or b"preloaded" in native.out, native
    for order in (library + ":" + tbdtest.LIBRARY, tbdtest.LIBRARY + ":" + library):
        env = {**tbdtest.trace_env(folder + "/traces"), "LD_PRELOAD": order}
        os.makedirs(folder + "/traces", exist_ok=True)
        result = tbdtest.run(argv, env=env)
        tbdtest.wait_organizers(folder + "/traces")
        tbdtest.same(native, result)


def test_output_is_complete_when_the_pipe_closes(folder):
    """`program | head -1`: the program gets SIGPIPE as it would without us."""
    argv = [tbdtest.need("seq"), "1000000"]
    codes = []
    for env in ({}, tbdtest.trace_env(folder)):
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=tbdtest.clean_env(env),
                                   preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL))
        process.stdout.read(100)
        process.stdout.close()
        codes.append(process.wait(60))
        process.stderr.close()
    assert codes[0] == codes[1] == -signal.SIGPIPE, codes
    tbdtest.wait_organizers(folder)
    tbdtest.find_trace(folder, "seq").verify()


def test_signals_from_outside(folder):
    """A handler runs when a signal comes from another process in the middle of a computation."""
    script = os.path.join(folder, "s.pl")
    with open(script, "w") as f:
        f.write("$| = 1; my $n = 0; $SIG{USR1} = sub { $n++; print \"got $n\\n\" }; print \"ready\\n\";\n"
                "my $x = 0; while ($n < 5) { $x = ($x * 31 + 7) % 65537 } print \"end\\n\"; exit 9;\n")
    process = tbdtest.start([tbdtest.need("perl"), script], folder + "/traces")
    assert process.stdout.readline() == b"ready\n"
    for i in range(1, 6):
        process.send_signal(signal.SIGUSR1)
        assert process.stdout.readline() == b"got %d\n" % i
    assert process.stdout.read() == b"end\n" and process.wait(60) == 9 and not process.stderr.read()
    process.stdout.close()
    process.stderr.close()


def test_stop_and_continue(folder):
    """SIGSTOP and SIGCONT while it runs: output as ever."""
    name = folder + "/text"
    inputs.text(name, 300000)
    argv = [tbdtest.need("gzip"), "-c", name]
    native = tbdtest.run(argv)
    process = tbdtest.start(argv, folder + "/traces")
    tbdtest.stop_and_continue(process)
    out, err = process.communicate(timeout=100)
    tbdtest.same(native, tbdtest.Result(out, err, process.returncode))
    tbdtest.wait_organizers(folder + "/traces")
    tbdtest.find_trace(folder + "/traces", "gzip").verify()


def test_small_limits(folder):
    """Little address space, few descriptors, an unlimited stack (another layout of mappings)."""
    argv = [tbdtest.program("maps")]
    native = tbdtest.run(argv)
    unlimited = resource.RLIM_INFINITY
    limits = ((resource.RLIMIT_AS, 400 << 20), (resource.RLIMIT_NOFILE, 5), (resource.RLIMIT_STACK, unlimited), (resource.RLIMIT_STACK, 256 << 10),
              (resource.RLIMIT_DATA, 64 << 20), (resource.RLIMIT_MEMLOCK, 0))
    for i, (limit, value, mode) in enumerate([(*pair, "traced") for pair in limits] + [(*pair, "native") for pair in limits]):
        root = folder + "/l%d" % i
        os.makedirs(root)
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=tbdtest.clean_env(tbdtest.trace_env(root, "mode=" + mode)),
                                   preexec_fn=lambda which=limit, v=value: resource.setrlimit(which, (v, resource.getrlimit(which)[1])))
        out, err = process.communicate(timeout=60)
        result = tbdtest.Result(out, err, process.returncode)
        try:
            tbdtest.same(native, result, tool_lines=True)
        except AssertionError as error:
            raise AssertionError("limit %d: %s" % (i, error))
        assert len(tool_lines(err)) <= 1, err
        tbdtest.wait_organizers(root)
        if not tool_lines(err):
            tbdtest.find_trace(root, argv[0]).verify()


def test_strange_names_of_programs(folder):
    for name in ("with space", "a,b=c", "-dash", "caf\u00e9", "line\nbreak", "x" * 255, "latest", "..x", "dot.d"):
        program = os.path.join(folder, name)
        shutil.copy(tbdtest.program("stores"), program)
        native = tbdtest.run([program])
        root = os.path.join(folder, "traces")
        result, _ = tbdtest.record([program], root)
        tbdtest.same(native, result)
        result = tbdtest.run([tbdtest.TBDQ, "--json", "info"], env={"TBD_DIR": root})
        assert result.code == 0 and b"blocks" in result.out, (name, result)
        shutil.rmtree(root)
        os.unlink(program)


def test_many_at_once_into_one_folder(folder):
    argv = [tbdtest.program("recursion")]
    native = tbdtest.run(argv)
    for process in [tbdtest.start(argv, folder) for _ in range(6)]:
        out, err = process.communicate(timeout=100)
        tbdtest.same(native, tbdtest.Result(out, err, process.returncode))
    tbdtest.wait_organizers(folder)
    traces = sorted(glob.glob(folder + "/recursion-*"))
    assert len(traces) == 6, traces
    for path in traces:
        assert tbdtest.Trace(path).count("func_enter", "func==fib", 8361) == 8361, path


def test_closed_standard_streams(folder):
    """With 0, 1 or 2 closed no descriptor of ours may take their place."""
    argv = [tbdtest.program("self")]
    for closed in ((0,), (1,), (2,), (0, 1, 2)):
        codes = []
        for env in ({}, tbdtest.trace_env(folder)):
            process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                       env=tbdtest.clean_env(env), preexec_fn=lambda: [os.close(fd) for fd in closed])
            codes.append(process.wait(60))
        assert codes[0] == codes[1], (closed, codes)
    tbdtest.wait_organizers(folder)
    traces = sorted(glob.glob(folder + "/self-*"))
    assert len(traces) == 4, traces
    for path in traces:
        tbdtest.Trace(path).verify()


def test_another_user(folder):
    """Nothing needs a privilege."""
    if os.geteuid() != 0:
        raise tbdtest.Skip("needs root to become somebody else")
    os.chmod(folder, 0o777)
    private = folder + "/build"  # the build tree may lie where that user cannot look
    os.makedirs(private)
    for name in ("libtbd.so", "tbd-organizer", "tbd-replay", "tbdq", "programs/strings", "programs/sys_misc"):
        shutil.copy(os.path.join(tbdtest.BUILD, name), private)
    for program in ("strings", "sys_misc"):
        env = {"LD_PRELOAD": private + "/libtbd.so", "TBD_DIR": folder + "/traces"}
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", *("%s=%s" % pair for pair in env.items())]
        result = tbdtest.run([tbdtest.need("setpriv")] + command[1:] + [private + "/" + program])
        assert result.code == 0 and not result.err, result
        tbdtest.wait_organizers(folder)
        trace = tbdtest.find_trace(folder + "/traces", program)
        assert os.stat(trace.path).st_uid == 65534
        result = tbdtest.run(command[:4] + [private + "/tbdq", "-t", trace.path, "verify"], stdin=None)
        assert result.code == 0, result


def test_a_trace_that_cannot_be_written(folder):
    """Questions are answered; a position lasts as long as tbdq does, and that is said."""
    if os.geteuid() != 0:
        raise tbdtest.Skip("needs root to become somebody else")
    tbdtest.record([tbdtest.program("recursion")], folder)
    trace = tbdtest.find_trace(folder, "recursion")
    os.chmod(folder, 0o755)
    tbdq = folder + "/tbdq"
    shutil.copy(tbdtest.TBDQ, tbdq)
    shutil.copy(os.path.join(tbdtest.BUILD, "tbd-replay"), folder)
    setpriv = [tbdtest.need("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups", tbdq, "-t", trace.path]
    refused = tbdtest.run(setpriv + ["info"])
    assert refused.code == 4 and b"Permission denied" in refused.err and b"no such trace" not in refused.err, refused
    for root, _, files in os.walk(trace.path):
        os.chmod(root, 0o755)
        for name in files:
            os.chmod(os.path.join(root, name), 0o644)
    moved = tbdtest.run(setpriv + ["goto", "first"])
    assert moved.code == 0 and moved.out.startswith(b"0+0 ") and b"position is forgotten" in moved.err, moved
    script = tbdtest.run(setpriv + ["-q"], stdin=b"goto first forward func_enter 3 where func==main or func==fib\nup\nframe\nwhere\n"
                         b"goto first\nwhere\nframe\n")
    lines = script.out.decode().splitlines()
    assert script.code == 0 and script.err == b"tbdq: note: the trace belongs to another user (0)\n", script
    assert lines[-2].startswith("0+0 ") and lines[-1].startswith("#0 "), script
    assert [line for line in lines if line.startswith("#1 ")], script


def test_large_arguments(folder):
    argv = ["/bin/echo"] + ["x" * 1000 + str(i) for i in range(1000)]
    tbdtest.check_run(argv, folder)



def test_a_trace_that_is_just_being_made_is_waited_for(folder):
    _, trace = tbdtest.record([tbdtest.program("args")], os.path.join(folder, "traces"))
    new = os.path.join(folder, "new")
    shutil.copytree(trace.path, new)
    os.rename(os.path.join(new, "header"), os.path.join(folder, "header"))
    asked = subprocess.Popen([tbdtest.TBDQ, "-t", new, "--json", "info"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env=tbdtest.clean_env())
    try:
        asked.wait(timeout=0.3)
    except subprocess.TimeoutExpired:
        pass
    assert asked.returncode is None, "it did not wait: %r" % (asked.communicate(),)
    os.rename(os.path.join(folder, "header"), os.path.join(new, "header"))
    out, err = asked.communicate(timeout=20)
    assert asked.returncode == 0 and b'"finished":true' in out, (asked.returncode, out, err)
    other = os.path.join(folder, "other")
    os.mkdir(other)
    os.utime(other, (0, 0))
    refused = tbdtest.run([tbdtest.TBDQ, "-t", other, "info"])
    assert refused.code == 3 and b"no such trace" in refused.err, refused


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
