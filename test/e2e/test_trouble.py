#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Recording where something is missing: disk space, memory, /proc, rights, an organizer that answers.  The program's results stay its
own, and one line says what the matter is."""
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

import tbdtest

NOBODY = 65534


def said(result):
    """The tracer's lines, without hints."""
    return [line for line in result.err.decode().splitlines() if re.match("tbd: (?!hint: )", line)]


def own(result):
    """The program's own results."""
    err = b"".join(line for line in result.err.splitlines(True) if not line.startswith((b"tbd: ", b"hint: ")))
    return result.code, result.out, err


def need_root():
    if os.geteuid() != 0:
        raise tbdtest.Skip("needs root")


def one_reason(native, traced, *words):
    assert own(native) == own(traced), (native, traced)
    lines = said(traced)
    assert len(lines) == 1 and all(word in lines[0] for word in words), lines


def test_a_disk_without_space_at_any_moment(folder):
    """From too small for anything to nearly enough."""
    disk = os.path.join(folder, "disk")
    os.mkdir(disk)
    argv = [tbdtest.program("many_windows")]
    native, full = tbdtest.run(argv), 0
    for kilobytes, mode in [(size, "traced") for size in (4, 8, 32, 64, 68, 72, 80, 100, 160, 256, 400)] + [(4, "native"), (68, "native"), (400, "native")]:
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%dk" % kilobytes, "tmpfs", disk], check=False, stderr=subprocess.PIPE)
        if mount.returncode:
            raise tbdtest.Skip("no permission to mount a small file system")
        try:
            traced = tbdtest.run(argv, env=tbdtest.trace_env(disk, "window=20000,mode=" + mode))
            tbdtest.wait_organizers(disk)
            trace = tbdtest.find_trace(disk, argv[0])
            complete = trace is not None and trace.info()["end"] == "exit 0"
            if complete:
                assert own(native) == own(traced) and not said(traced), (kilobytes, traced)
            else:
                full += 1
                one_reason(native, traced, "space")
        finally:
            subprocess.run(["umount", "-l", disk], check=False)
    assert full > 4, full


def began(folder, options=""):
    """A program that runs for long, its organizer, and where its messages go."""
    root, err = os.path.join(folder, "traces"), os.path.join(folder, "err")
    with open(err, "wb") as file:
        process = tbdtest.start([tbdtest.program("stuck_organizer")], root, "chunks=2" + options, stdin=subprocess.PIPE, stderr=file)
    tbdtest.await_organizer(root, process)
    return process, tbdtest.organizers(root)[0], err


def read(path):
    with open(path, "rb") as file:
        return file.read()


def wait_for(path, text, seconds=200):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if text in read(path):
            return
        time.sleep(0.1)
    raise AssertionError("nobody says %r" % text)


def test_a_stopped_organizer_is_said(folder):
    process, organizer, err = began(folder)
    assert process.stdout.readline() == b"ready\n"
    os.kill(organizer, signal.SIGSTOP)
    process.stdin.write(b"work\n")
    process.stdin.flush()
    wait_for(err, b"waits for process %d, which writes its trace and is stopped" % organizer)
    assert process.poll() is None
    os.kill(organizer, signal.SIGCONT)
    process.stdin.write(b"end\n")
    out, _ = process.communicate(timeout=100)
    assert process.returncode == 3 and out == b"worked\nended\n", (process.returncode, out)
    with open(err, encoding="ascii") as file:
        assert len(file.read().splitlines()) == 2  # with the hint
    tbdtest.wait_organizers(folder)
    trace = tbdtest.find_trace(os.path.join(folder, "traces"), "stuck_organizer")
    assert trace.info()["end"] == "exit 3"
    trace.verify()


def test_an_organizer_stopped_at_the_end_is_said(folder):
    process, organizer, err = began(folder)
    assert process.stdout.readline() == b"ready\n"
    os.kill(organizer, signal.SIGSTOP)
    process.stdin.write(b"end\n")
    process.stdin.flush()
    wait_for(err, b"is stopped")
    os.kill(organizer, signal.SIGKILL)
    out, _ = process.communicate(timeout=100)
    assert process.returncode == 3 and out == b"ended\n", (process.returncode, out)
    wait_for(err, b"ends early: the organizer is gone: it was killed", 1)


def test_an_organizer_that_is_killed_is_said(folder):
    process, organizer, err = began(folder)
    assert process.stdout.readline() == b"ready\n"
    os.kill(organizer, signal.SIGKILL)
    out, _ = process.communicate(b"work\nend\n", timeout=100)
    assert process.returncode == 3 and out == b"worked\nended\n", (process.returncode, out)
    wait_for(err, b"goes on untraced: the organizer is gone: it was killed", 1)


def test_an_organizer_killed_in_a_computation_is_said(folder):
    """Natively hardly anything is sent."""
    process, organizer, err = began(folder, ",mode=native")
    assert process.stdout.readline() == b"ready\n"
    os.kill(organizer, signal.SIGKILL)
    process.stdin.write(b"work\n")
    process.stdin.flush()
    while b"goes on untraced: the organizer is gone: it was killed" not in read(err):
        process.stdin.write(b"work\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"worked\n"
    process.communicate(b"end\n", timeout=100)
    assert process.returncode == 3, process.returncode


HANGS = """#!%s
import ctypes, mmap, os, time
stream = mmap.mmap(3, 4096)
base = ctypes.addressof(ctypes.c_char.from_buffer(stream))
entry, robust = (ctypes.c_int64 * 1)(), (ctypes.c_int64 * 3)()
entry[0], robust[0] = ctypes.addressof(robust), ctypes.addressof(entry)
robust[1] = base + 200 - ctypes.addressof(entry)  # organizer_lock
ctypes.c_uint32.from_address(base + 200).value = os.getpid()
ctypes.CDLL(None).syscall(273, ctypes.byref(robust), 24)  # set_robust_list
ctypes.c_uint32.from_address(base + 196).value = 1  # organizer_state: READY
time.sleep(1000)
""" % sys.executable


def test_an_organizer_that_hangs_is_said(folder):
    path, err = os.path.join(folder, "tbd-organizer"), os.path.join(folder, "err")
    with open(path, "w", encoding="ascii") as file:
        file.write(HANGS)
    os.chmod(path, 0o755)
    with open(err, "wb") as file:
        process = tbdtest.start([tbdtest.program("stuck_organizer")], os.path.join(folder, "traces"), "chunks=2,organizer=" + path,
                                stdin=subprocess.PIPE, stderr=file)
    assert process.stdout.readline() == b"ready\n"
    process.stdin.write(b"work\n")
    process.stdin.flush()
    wait_for(err, b"has done nothing for 20 seconds")
    with open(err, "rb") as file:
        pid = int(re.search(rb"waits for process (\d+),", file.read())[1])
    assert process.poll() is None
    os.kill(pid, signal.SIGKILL)
    out, _ = process.communicate(b"end\n", timeout=100)
    assert process.returncode == 3 and out == b"worked\nended\n", (process.returncode, out)
    wait_for(err, b"goes on untraced: the organizer is gone", 1)


def limited(argv, root, kind, lower, upper=None, user=None, **env):
    """Recorded under a limit, perhaps by another user."""
    def limit():
        resource.setrlimit(kind, (lower, lower if upper is None else upper))
        if user is not None:
            os.setgid(user)
            os.setuid(user)

    os.mkdir(root)
    done = subprocess.run(argv, env=tbdtest.clean_env({**tbdtest.trace_env(root), **env}), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=limit, timeout=100, check=False)
    tbdtest.wait_organizers(root)
    return tbdtest.Result(done.stdout, done.stderr, done.returncode), tbdtest.find_trace(root, argv[0])


def test_other_limits(folder):
    """What the program may not pass itself stops the recording; its lower limits do not."""
    argv = [tbdtest.program("stores")]
    native = tbdtest.run(argv)
    for number, (kind, value, reason, option) in enumerate((
            (resource.RLIMIT_DATA, 20 << 20, "limit of 20 MB on data", b"ulimit -d"),
            (resource.RLIMIT_FSIZE, 1 << 20, "file size limit", b"ulimit -f"),
            (resource.RLIMIT_NOFILE, 12, "limit of 12 open files", b"ulimit -n"))):
        traced, trace = limited(argv, os.path.join(folder, "upper%d" % number), kind, value)
        one_reason(native, traced, reason)
        assert option in traced.err and trace is None, traced
    most = resource.RLIM_INFINITY
    for number, (kind, value) in enumerate(((resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_NOFILE, 5), (resource.RLIMIT_CPU, 100),
                                            (resource.RLIMIT_AS, 100 << 20), (resource.RLIMIT_DATA, 20 << 20))):
        upper = min(resource.getrlimit(kind)[1], 4096) if kind == resource.RLIMIT_NOFILE else most
        traced, trace = limited(argv, os.path.join(folder, "lower%d" % number), kind, value, upper)
        assert own(native) == own(traced) and not said(traced), traced
        trace.verify()


def test_a_limited_number_of_processes(folder):
    need_root()
    user = 54321  # nobody else's: all processes of a user count
    for path in (os.path.join(tbdtest.BUILD, "libtbd.so"), tbdtest.program("stores")):
        shutil.copy(path, folder)
    program = os.path.join(folder, "stores")
    os.chmod(folder, 0o755)
    native = tbdtest.run([tbdtest.need("setpriv"), "--reuid=%d" % user, "--clear-groups", program])
    if native.code != tbdtest.run([program]).code:
        raise tbdtest.Skip("other users cannot reach the test's folder")
    traced, trace = limited([program], os.path.join(folder, "traces"), resource.RLIMIT_NPROC, 1, user=user,
                            LD_PRELOAD=os.path.join(folder, "libtbd.so"))
    one_reason(native, traced, "number of processes is limited")
    assert trace is None


def test_limits_of_the_address_space(folder):
    argv = [tbdtest.program("stores")]
    native, refused = tbdtest.run(argv), 0
    for megabytes in (60, 200, 1000, 4000, 16000, 64000, 300000, 1 << 20):
        traced, trace = limited(argv, os.path.join(folder, str(megabytes)), resource.RLIMIT_AS, megabytes << 20)
        if trace is not None and trace.info()["end"] == "exit %d" % native.code:
            assert own(native) == own(traced) and not said(traced), (megabytes, traced)
            trace.verify()
            continue
        refused += 1
        one_reason(native, traced, "limit of %d MB" % megabytes)
        assert b"ulimit -v" in traced.err, traced
    assert refused > 2, refused


def test_without_proc(folder):
    """As in a chroot without it."""
    inside = [tbdtest.need("unshare"), "--mount"]
    script = ["sh", "-c", "mount -t tmpfs none /proc && exec \"$0\" \"$@\""]
    if tbdtest.run(inside + script + ["true"]).code:
        inside += ["--user", "--map-root-user"]
    if tbdtest.run(inside + script + ["true"]).code:
        raise tbdtest.Skip("no permission to hide /proc")
    command = [tbdtest.program("stores")]
    env = tbdtest.trace_env(os.path.join(folder, "traces"))
    preload = ["env"] + ["%s=%s" % pair for pair in env.items()]
    one_reason(tbdtest.run(inside + script + command), tbdtest.run(inside + script + preload + command), "/proc/self/maps", "untraced")


def test_a_child_in_another_root_folder(folder):
    """It cannot find its organizer there."""
    need_root()
    root = os.path.join(folder, "root")
    os.mkdir(root)
    text = "import os,sys\nos.chroot(sys.argv[1])\npid = os.fork()\nif pid == 0: os._exit(5)\nprint(os.waitpid(pid, 0)[1])\n"
    argv = [sys.executable, "-S", "-E", "-c", text, root]
    native = tbdtest.run(argv)
    if native.code:
        raise tbdtest.Skip("no permission for another root folder")
    for mode in ("traced", "native"):
        traced, trace = tbdtest.record(argv, os.path.join(folder, mode), "mode=" + mode)
        one_reason(native, traced, "/proc/self/maps", "untraced")
        assert trace.info()["end"] == "exit 0"
    proc = os.path.join(root, "proc")
    os.mkdir(proc)
    if subprocess.run(["mount", "--bind", "/proc", proc], check=False, stderr=subprocess.DEVNULL).returncode:
        return
    try:
        traced = tbdtest.run(argv, env=tbdtest.trace_env(os.path.join(folder, "traces")))
        one_reason(native, traced, "cannot start the organizer", "root folder")
    finally:
        subprocess.run(["umount", "-l", proc], check=False)


def test_a_fifo_is_not_executed(folder):
    """The kernel does not wait at it."""
    fifo, script = os.path.join(folder, "fifo"), os.path.join(folder, "script")
    os.mkfifo(fifo, 0o755)
    with open(script, "w", encoding="ascii") as file:
        file.write("#! %s\n" % fifo)
    os.chmod(script, 0o755)
    for path in (fifo, script):
        tbdtest.check_run([tbdtest.need("env"), "-i", path], folder, timeout=60)  # so that we add the variables


def test_a_program_with_file_capabilities(folder):
    need_root()
    os.chmod(folder, 0o755)
    program = os.path.join(folder, "stores")
    shutil.copy(tbdtest.program("stores"), program)
    if tbdtest.run([tbdtest.need("setcap"), "cap_net_bind_service+ep", program]).code:
        raise tbdtest.Skip("no permission to give capabilities to a file")
    for name in ("tbd", "libtbd.so"):
        shutil.copy(os.path.join(tbdtest.BUILD, name), folder)
    other = [tbdtest.need("setpriv"), "--reuid=%d" % NOBODY, "--regid=%d" % NOBODY, "--clear-groups"]
    native = tbdtest.run(other + [program])
    traced = tbdtest.run(other + [os.path.join(folder, "tbd"), "record", "--", program])
    one_reason(native, traced, "file capabilities", program)


LOW_PAGE = """
#include <stdio.h>
#include <sys/mman.h>

int main(void)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

    if (page == MAP_FAILED)
        return 77;
    __asm__ volatile("movl $5, 0x10" ::: "memory");
    puts("mapped");
    return 0;
}
"""


def test_memory_that_only_root_may_map_is_named(folder):
    """Page 0: a replay in its own user namespace is not given it, and is no divergence."""
    need_root()
    source, path = os.path.join(folder, "low.c"), os.path.join(folder, "low")
    with open(source, "w", encoding="ascii") as f:
        f.write(LOW_PAGE)
    subprocess.run([tbdtest.need("gcc"), "-O1", "-o", path, source], check=True)
    native = tbdtest.run([path])
    if native.code == 77:
        raise tbdtest.Skip("root may not map page 0 here")
    traced, trace = tbdtest.record([path], folder)
    assert own(native) == own(traced), (native, traced)
    result = trace.tbdq("verify", json_output=False)
    lines = [line for line in (result.out + result.err).decode().splitlines() if "not replayed: the window" in line]
    if result.code == 0:
        raise tbdtest.Skip("replay processes get no user namespace here")
    assert result.code == 3 and len(lines) == 1 and "vm.mmap_min_addr" in lines[0], result


if __name__ == "__main__":
    tbdtest.main(*[value for name, value in sorted(globals().items()) if name.startswith("test_")])
