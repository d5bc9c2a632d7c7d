#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Everyday work with programs - building, version control, databases, scripts, stress tests - recorded with all its processes:
the results are the native ones, and every process's trace is whole and replays.  docs/PROGRAMS.md has the measurements of the long forms."""
import os
import shutil

import tbdtest


def check_all(argv, folder, least=1, fresh=None, **how):
    """Native and traced run agree, and every process replays.  `fresh` puts back what a run changes."""
    root = os.path.join(folder, "traces")
    fresh = fresh or (lambda: None)
    fresh()
    native = tbdtest.run(argv, **how)
    fresh()
    result, trace = tbdtest.record(argv, root, **how)
    tbdtest.same(native, result)
    assert trace is not None, result
    return result, tbdtest.check_traces(root, least)


def put(folder, name, text):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def content(path):
    with open(path, "rb") as f:
        return f.read()


# ---- building ----

def c_file(functions, seed):
    """A C file of about ten lines per function: loops, switches, calls, tables, strings."""
    parts = ["#include <stdio.h>\n#include <string.h>\n\nstatic long total_%d;\n" % seed]
    for i in range(functions):
        name, before = "step_%d_%d" % (seed, i), "step_%d_%d(n - 1, text)" % (seed, i - 1) if i else "n"
        parts.append(
            "long %s(long n, const char *text)\n{\n"
            "    static const int table[] = { %d, %d, %d };\n"
            "    for (long k = 0; k < n %% %d; k++)\n"
            "        switch ((k + text[0]) %% 3) {\n"
            "        case 0: total_%d += table[k %% 3] * n; break;\n"
            "        case 1: total_%d ^= (long)strlen(text) << (k & 7); break;\n"
            "        default: total_%d -= n > 0 ? %s : k / (n | 1); }\n"
            "    return total_%d + %d;\n}\n"
            % (name, i * 7 % 13, i * 5 % 11, i, i % 9 + 2, seed, seed, seed, before, seed, i))
    return "\n".join(parts)


def test_gcc_large_file_long(folder):
    """cc1 and as are started by exec; their output is the native one."""
    if not tbdtest.LONG:
        raise tbdtest.Skip("--long")
    source = put(folder, "large.c", c_file(270, 1))
    output = folder + "/large.o"
    argv = [tbdtest.need("gcc"), "-O1", "-c", "-o", output, source]
    assert tbdtest.run(argv).code == 0
    wanted = content(output)
    _, traces = check_all(argv, folder, 3, timeout=600)
    assert content(output) == wanted
    programs = {os.path.basename(trace.info()["program"]) for trace in traces}
    assert "cc1" in programs, programs


MAKEFILE = """
OBJ = $(patsubst %.c,%.o,$(wildcard *.c))
lib.a: $(OBJ)
\t@ar rcsD $@ $(sort $^)
%.o: %.c
\t@gcc -O1 -c -o $@ $<
"""


def test_make(folder):
    """Several compilers at once, started by make."""
    project, files = folder + "/project", 15 if tbdtest.LONG else 2
    for i in range(files):
        put(project, "part%d.c" % i, c_file(4 if tbdtest.LONG else 1, i))
    put(project, "Makefile", MAKEFILE)
    made = []

    def fresh():
        if os.path.exists(project + "/lib.a"):
            made.append(content(project + "/lib.a"))
            for name in os.listdir(project):
                if name.endswith((".o", ".a")):
                    os.unlink(os.path.join(project, name))

    tbdtest.need("gcc")
    check_all([tbdtest.need("make"), "-s", "-j4"], folder, 3 * files + 2, fresh, cwd=project, timeout=900)
    fresh()
    assert len(made) == 2 and made[0] == made[1] and made[0].startswith(b"!<arch>"), made


# ---- versioning ----

GIT_ENV = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b",
           "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b", "GIT_AUTHOR_DATE": "1700000000 +0000",
           "GIT_COMMITTER_DATE": "1700000000 +0000"}


def git(*words):
    result = tbdtest.run([tbdtest.need("git"), *words], env=GIT_ENV)
    assert result.code == 0, result
    return result.out


def repository(folder, commits):
    path = folder + "/origin"
    git("init", "-q", "-b", "main", path)
    for i in range(commits):
        put(path, "file%d.c" % (i % 7), c_file(3 + i % 5, i))
        git("-C", path, "add", ".")
        git("-C", path, "commit", "-q", "-m", "change %d" % i)
    return path


def test_git(folder):
    """clone through the transport, log with patches, gc with threads that compress."""
    origin, copy = repository(folder, 60 if tbdtest.LONG else 6), folder + "/copy"
    tbdtest.need("git")
    check_all(["git", "clone", "-q", "--no-local", origin, copy], folder + "/1", 3,
              lambda: shutil.rmtree(copy, ignore_errors=True), env=GIT_ENV)
    assert git("-C", copy, "rev-parse", "HEAD") == git("-C", origin, "rev-parse", "HEAD")
    result, _ = check_all(["git", "-C", copy, "log", "--stat", "-p"], folder + "/2", env=GIT_ENV)
    assert b"change 5" in result.out
    if tbdtest.LONG:
        check_all(["git", "-C", copy, "gc", "-q", "--prune=now"], folder + "/3", 2, env=GIT_ENV)
    git("-C", copy, "fsck", "--strict")


# ---- scripts ----

JOBS = """
set -m
(for i in 1 2 3; do echo sub $i; done; until grep -q "^State:.S" /proc/$$/status; do :; done) & # dash forgets a job
wait $!; echo "done $?"                                  # that has ended before it waits: 127
sleep 50 & c=$!
is() { until grep -q "^State:.$1" /proc/$c/status; do :; done; }
is S; kill -STOP $c; is T; jobs | sed 's/[0-9][0-9]* *sleep/sleep/' | head -3
bg >/dev/null; is S; kill $c; wait $c; echo "killed $?"
seq 1 ROUNDS | sort -rn | awk '{s += $1} END {print s}'
f() { return 7; }; f; echo $?
x=$(for i in 1 2 3; do echo $i | wc -c; done | sort | uniq -c); echo "$x"
trap 'echo usr1' USR1; kill -USR1 $$; trap 'echo bye' EXIT
(exit 9); echo $?
"""


def jobs(folder, shell, more=""):
    """On a terminal, which dash wants for job control; the shell says at different moments that a job has ended."""
    text = put(folder, "jobs.sh", JOBS.replace("ROUNDS", "100000" if tbdtest.LONG else "200") + more)
    for end in tbdtest.need_terminal():
        os.close(end)
    argv = [tbdtest.need("script", shell, "awk"), "-qec", "%s %s 2>/dev/null" % (shell, text), "/dev/null"]
    result, _ = check_all(argv, folder, 12, stdin=None)
    assert b"killed 143" in result.out and b"bye" in result.out, result


def test_bash_jobs(folder):
    jobs(folder, "bash", "diff <(seq 5) <(seq 6)\n")


def test_dash_jobs_long(folder):
    if not tbdtest.LONG:
        raise tbdtest.Skip("--long")
    jobs(folder, "dash")


def test_small_tools(folder):
    """Programs that start others: with a limit of time, in parallel, in new sessions and name spaces."""
    commands = [["timeout", "-s", "INT", "0.3", "sleep", "50"], ["sh", "-c", "seq 6 | xargs -n2 -P3 echo | sort"],
                ["setsid", "-w", "sh", "-c", "echo a; exit 4"], ["env", "-i", "A=b", "/usr/bin/env"],
                ["find", "/usr/include/linux", "-name", "*io*.h", "-newermt", "1990-01-01"]]
    if tbdtest.run(["unshare", "-Ur", "true"]).code == 0:
        commands.append(["unshare", "-Ur", "sh", "-c", "id -u"])
    for i, command in enumerate(commands):
        tbdtest.need(command[0])
        check_all(command, "%s/%d" % (folder, i))


# ---- databases and memory between processes ----

SQLITE = """
import sqlite3, sys, threading
name, rows = sys.argv[1], int(sys.argv[2])
c = sqlite3.connect(name); c.execute('create table t(a integer primary key, b text)'); c.commit()
def work(k):
    d = sqlite3.connect(name, timeout=100)
    for i in range(rows):
        with d: d.execute('insert into t(b) values(?)', (f'{k}-{i}',))
    d.close()
threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
print(c.execute('select count(*), sum(length(b)), count(distinct b) from t').fetchone(), c.execute('pragma integrity_check').fetchone())
"""

SHARED = """
from multiprocessing import Process, shared_memory
def child(name, n):
    m = shared_memory.SharedMemory(name)
    for i in range(ROUNDS): m.buf[n] = (m.buf[n] + 1) & 255
    m.close()
if __name__ == '__main__':
    m = shared_memory.SharedMemory(create=True, size=4096)
    ps = [Process(target=child, args=(m.name, i)) for i in range(3)]
    [p.start() for p in ps]; [p.join() for p in ps]
    print(bytes(m.buf[:3]).hex(), [p.exitcode for p in ps]); m.close(); m.unlink()
"""


ASYNC = """
import asyncio, os, signal, sys, threading
async def echo(reader, writer):
    while line := await reader.readline():
        writer.write(line.upper()); await writer.drain()
    writer.close()
async def client(port, k):
    reader, writer = await asyncio.open_connection('127.0.0.1', port)
    got = []
    for i in range(3):
        writer.write(b'line %d of %d\\n' % (i, k)); got.append((await reader.readline()).decode().strip())
    writer.close(); await writer.wait_closed()
    return got
async def main():
    loop, caught = asyncio.get_running_loop(), asyncio.Queue()
    loop.add_signal_handler(signal.SIGUSR1, caught.put_nowait, 'usr1')
    server = await asyncio.start_server(echo, '127.0.0.1', 0)
    port = server.sockets[0].getsockname()[1]
    print(await asyncio.gather(*(client(port, k) for k in range(4))))
    os.kill(os.getpid(), signal.SIGUSR1); print(await caught.get())
    print(await asyncio.gather(*(loop.run_in_executor(None, pow, 3, k, 1009) for k in range(5))))
    child = await asyncio.create_subprocess_exec('sort', '-r', stdin=-1, stdout=-1)
    print((await child.communicate(b'a\\nc\\nb\\n'))[0], child.returncode)
    try: await asyncio.wait_for(asyncio.sleep(100), 0.01)
    except asyncio.TimeoutError: print('timeout')
    server.close(); await server.wait_closed()
asyncio.run(main())
"""


def test_python_asyncio(folder):
    """Sockets, signals, threads, a child, time limits, all in one loop of events."""
    result, _ = check_all(["/usr/bin/python3", put(folder, "events.py", ASYNC)], folder, 2)
    assert b"LINE 2 OF 3" in result.out and b"timeout" in result.out, result


def test_sqlite_threads(folder):
    """Four threads insert into one database file and wait for each other's locks."""
    script, data = put(folder, "threads.py", SQLITE), folder + "/t.db"

    def fresh():
        if os.path.exists(data):
            os.unlink(data)

    result, _ = check_all(["/usr/bin/python3", script, data, "200" if tbdtest.LONG else "4"], folder, 1, fresh, timeout=600)
    assert b"'ok'" in result.out, result


def test_python_shared_bytes_long(folder):
    if not tbdtest.LONG:
        raise tbdtest.Skip("--long")
    script = put(folder, "shared.py", SHARED.replace("ROUNDS", "1000"))
    result, _ = check_all(["/usr/bin/python3", script], folder, 5)
    assert b"[0, 0, 0]" in result.out, result


# ---- programs that test themselves ----

def self_test(argv, folder, least, timeout=1500):
    """The program says whether it is content: by its status, natively too (else the machine is the reason)."""
    native = tbdtest.run(argv, timeout=timeout, cwd=folder)
    if native.code:
        raise tbdtest.Skip("fails natively: %r" % native)
    traced, trace = tbdtest.record(argv, folder + "/traces", timeout=timeout, cwd=folder)
    assert traced.code == 0 and trace is not None, traced
    return tbdtest.check_traces(folder + "/traces", least, may_be_killed=True)


STRESSORS = {"cpu": (3, 60), "signal": (200, 20000), "fork": (10, 100), "futex": (500, 20000), "pipe": (500, 50000)}
if tbdtest.LONG:
    STRESSORS.update({"vm": (2, 200), "mmap": (1, 10)})


def test_stress_ng(folder):
    """Each class by itself; --verify has stress-ng check its own results."""
    stress = tbdtest.need("stress-ng")
    for name, operations in STRESSORS.items():
        argv = [stress, "--" + name, "1", "--%s-ops" % name, str(operations[tbdtest.LONG]), "--verify", "--timeout", "120",
                "--temp-path", folder]
        if name in ("vm", "mmap"):
            argv += ["--%s-bytes" % name, "64M"]
        where = os.path.join(folder, name)
        os.makedirs(where)
        self_test(argv, where, 2)
        shutil.rmtree(where)


def library(folder, name, *more):
    python = "/usr/bin/python3"
    if tbdtest.run([python, "-c", "import test.test_mmap"]).code:
        raise tbdtest.Skip("the tests of Python's library are not installed")
    # As `python3 -m test`; servers and clients in tests give each other 5 or 30 s, which is not much on a busy machine.
    patient = "from test import support; support.LOOPBACK_TIMEOUT = support.SHORT_TIMEOUT = 900; " \
              "from test.libregrtest import main; main()"
    self_test([python, "-c", patient, "-q", *more, name], folder, 1, 3000 if tbdtest.LONG else 1500)


def long_library(folder, name, *more):
    if not tbdtest.LONG:
        raise tbdtest.Skip("--long")
    library(folder, name, *more)


def test_python_mmap_long(folder):
    long_library(folder, "test_mmap")


def test_python_threading_long(folder):
    long_library(folder, "test_threading")


def test_python_signal_long(folder):
    long_library(folder, "test_signal")


def test_python_subprocess_long(folder):
    """All but the tests that change the user: who they become may not write into the trace folder."""
    long_library(folder, "test_subprocess", "-i", "test_user", "-i", "test_group", "-i", "test_extra_groups")


def test_python_asyncio_long(folder):
    long_library(folder, "test_asyncio")


def test_python_shared_memory_long(folder):
    long_library(folder, "test_multiprocessing_spawn", "-m", "*SharedMemory*")


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
