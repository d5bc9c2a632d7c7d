#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Databases: many kinds of statements from several threads on one file; a server with its processes and shared memory.
The results are the native ones, and every process's trace is whole and replays.  docs/PROGRAMS.md has the measurements of the long forms."""
import glob
import os
import pwd
import shutil
import signal
import subprocess
import time

import tbdtest


def check_sqlite(folder, mode, rows):
    script = os.path.join(tbdtest.HERE, "sqlite_speed.py")
    results = []
    for name in ("native", "traced"):
        os.makedirs(folder + "/" + name)
        argv = ["/usr/bin/python3", script, "%s/%s/t.db" % (folder, name), str(rows), mode]
        if name == "native":
            results.append(tbdtest.run(argv))
        else:
            results.append(tbdtest.record(argv, folder + "/traces", timeout=1500)[0])
    tbdtest.same(*results)
    assert results[0].code == 0 and b"[('ok',)]" in results[0].out and mode.encode() in results[0].out, results[0]
    tbdtest.check_traces(folder + "/traces")


def test_sqlite_speed(folder):
    """The log's index is memory that the connections share (wal)."""
    check_sqlite(folder, "wal", 1500 if tbdtest.LONG else 40)


def test_sqlite_speed_journal_long(folder):
    if not tbdtest.LONG:
        raise tbdtest.Skip("--long")
    check_sqlite(folder, "delete", 500)


# ---- a server with a process for each client ----

class Postgres:
    """The server refuses to run as root: then it runs as its own user, with copies of the tools below `folder`."""

    def __init__(self, folder):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        if not found:
            raise tbdtest.Skip("no postgresql")
        self.bin, self.folder, self.port = found[-1], folder, str(tbdtest.free_port())
        self.user = None
        if os.geteuid() == 0:
            try:
                self.user = pwd.getpwnam("postgres")
            except KeyError:
                raise tbdtest.Skip("no user postgres")
            os.chmod(folder, 0o755)
        for name in ("", "/db", "/traces", "/tools"):
            os.makedirs(folder + name, exist_ok=True)
            if self.user:
                os.chown(folder + name, self.user.pw_uid, self.user.pw_gid)
        for name in ("libtbd.so", "tbd-organizer"):
            shutil.copy(os.path.join(tbdtest.BUILD, name), folder + "/tools")
        self.traced = {**tbdtest.trace_env(folder + "/traces"), "LD_PRELOAD": folder + "/tools/libtbd.so"}

    def become(self):
        if self.user:
            os.setgroups([])
            os.setgid(self.user.pw_gid)
            os.setuid(self.user.pw_uid)

    def run(self, program, *words, env=None):
        argv = [self.bin + "/" + program, *words]
        done = subprocess.run(argv, env=tbdtest.clean_env(env), cwd=self.folder, preexec_fn=self.become, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=900)
        return done.returncode, done.stdout

    def client(self, program, *words):
        code, out = self.run(program, "-h", self.folder, "-p", self.port, *words)
        assert code == 0, (program, out)
        return out

    def start(self):
        argv = [self.bin + "/postgres", "-D", "db", "-p", self.port, "-k", self.folder, "-c", "shared_buffers=16MB", "-h", ""]
        return subprocess.Popen(argv, env=tbdtest.clean_env(self.traced), cwd=self.folder, preexec_fn=self.become,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def wait_until_ready(self):
        end = time.monotonic() + 100
        while self.run("pg_isready", "-q", "-h", self.folder, "-p", self.port)[0]:
            assert time.monotonic() < end, "the server does not answer"
            time.sleep(0.2)


def test_postgres_long(folder):
    """Four clients at once: a process for each, and memory that all of them share."""
    if not tbdtest.LONG:
        raise tbdtest.Skip("--long")
    server = Postgres(folder)
    code, out = server.run("initdb", "-D", "db", "-N", "-A", "trust", "--no-locale", env=server.traced)
    assert code == 0, out
    process = server.start()
    try:
        server.wait_until_ready()
        server.client("pgbench", "-i", "-q", "-s", "1", "postgres")
        load = server.client("pgbench", "-c", "4", "-t", "20", "postgres")
        assert b"processed: 80/80" in load, load
        out = server.client("psql", "-Atc", "select count(*), (select sum(abalance) from pgbench_accounts) = sum(delta), "
                            "(select sum(bbalance) from pgbench_branches) = sum(delta) from pgbench_history", "postgres")
        assert out == b"80|t|t\n", out
        process.send_signal(signal.SIGINT)
        assert process.wait(100) == 0
    finally:
        process.kill()
        process.wait(30)
    tbdtest.check_traces(folder + "/traces", 12)


if __name__ == "__main__":
    tbdtest.main(test_sqlite_speed, test_sqlite_speed_journal_long, test_postgres_long)
