#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""nvi edits a file under a pseudo-terminal driven by a script: same screen bytes, same file, and the
trace knows every byte that was read from the terminal."""
import fcntl
import os
import select
import struct
import subprocess
import termios
import time

import inputs
import tbdtest

KEYS = ["dd", "p", "3j", "A and more\x1b", "/packet\r", "cwPARCEL\x1b", "n", ".", ":1,5s/o/0/g\r", "yyP", "G", "ofinal line\x1b",
        "5G", "J", "u", "\x06", "\x02", ":set number\r", "10Gdw", "ihello \x1b", "0x", ":wq\r"]


def drive(argv, cwd, env, keys):
    """Sends the keys one group after the other, each when the program is quiet; returns (status, screen bytes)."""
    master, slave = tbdtest.need_terminal()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = subprocess.Popen(argv, cwd=cwd, env=tbdtest.clean_env({"TERM": "vt100", "EXINIT": "set noexrc", **env}),
                               stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
                               preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    os.close(slave)
    screen, waiting, started = b"", list(keys), time.monotonic()
    while time.monotonic() - started < 120:
        quiet = 1.5 if not screen else 0.12
        if select.select([master], [], [], quiet)[0]:
            try:
                data = os.read(master, 65536)
            except OSError:
                break
            if not data:
                break
            screen += data
        elif waiting:
            os.write(master, waiting.pop(0).encode())
    os.close(master)
    return process.wait(30), screen


def session(folder, name, env):
    """A fresh copy of the file in a folder of the same path for every run."""
    where = os.path.join(folder, "work")
    os.makedirs(where, exist_ok=True)
    path = os.path.join(where, "text")
    inputs.text(path, 6000)
    status, screen = drive([tbdtest.need(name), path], where, env, KEYS)
    with open(path, "rb") as f:
        return status, screen, f.read()


def check_session(folder, name):
    native = session(folder, name, {})
    assert native[0] == 0 and b"PARCEL" in native[2] and b"final line" in native[2], native[0]
    root = os.path.join(folder, "traces")
    os.makedirs(root)
    traced = session(folder, name, tbdtest.trace_env(root))
    tbdtest.wait_organizers(root)
    assert traced[0] == native[0], (traced[0], traced[1][-300:])
    assert traced[2] == native[2], "the edited file differs"
    if session(folder, name, {})[1] == native[1]:  # the screen is deterministic: compare it too
        # On a busy machine a pause can be mistaken for quiet; then what is drawn depends on when keys come.
        again = (session(folder, name, tbdtest.trace_env(folder + "/again"))[1] for _ in range(3))
        assert traced[1] == native[1] or native[1] in again, "the screen differs"
    trace = tbdtest.find_trace(root, tbdtest.need(name))
    trace.verify()
    return trace


def test_nvi(folder):
    trace = check_session(folder, "nvi")
    sent = sum(len(k) for k in KEYS)
    events = trace.events("syscall", "syscall==read and arg0==0 and signed(retval) > 0")
    found = sum(tbdtest.number(e["retval"]) for e in events)
    assert found == sent, "%d bytes typed, the trace has %d read from the terminal" % (sent, found)


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
