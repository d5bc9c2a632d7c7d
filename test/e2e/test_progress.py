#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A long question shows its progress on a terminal, and nowhere else.  Ctrl-C ends it; the trace and the files of its
cache stay valid."""
import glob
import os
import re
import select
import signal
import subprocess
import fcntl
import termios
import time

import tbdtest

# Every window is read for its loads: many times what it takes for a line to appear.
LONG = ("-j", "1", "--no-cache", "all", "load", "where", "oldval == 99 and size == 3")
KEPT = ("-j", "2", "count", "store", "where", "newval & 0xfff == 77")
LINE = re.compile(r"\rsearching: (\d+) of (\d+) windows, found (\d+), (\d+) s left")


class Terminal:
    """tbdq on a terminal of its own, answers and messages alike."""

    def __init__(self, trace, *words):
        self.master, slave = tbdtest.need_terminal()
        self.text = ""
        self.process = subprocess.Popen([tbdtest.TBDQ, "-t", trace.path, *words], stdin=slave, stdout=slave, stderr=slave,
                                        env=tbdtest.clean_env({"TERM": "xterm", "TBD_PROGRESS_DELAY": "0.1"}), start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)

    def read(self, enough=lambda text: False):
        """Until it ends, or the text is enough."""
        end = time.monotonic() + 120
        while not enough(self.text):
            assert time.monotonic() < end, self.text
            if not select.select([self.master], [], [], 1)[0]:
                continue
            try:
                part = os.read(self.master, 65536)
            except OSError:  # nobody has the terminal any more
                part = b""
            if not part:
                break
            self.text += part.decode(errors="replace")
        return self.text

    def close(self):
        status = self.process.wait(60)
        os.close(self.master)
        return status


def recorded(folder, options="window=3000"):
    return tbdtest.record([tbdtest.program("many_windows")], folder, options)[1]


def files_below(path):
    return {name: os.path.getsize(name) for name in glob.glob(path + "/**", recursive=True) if os.path.isfile(name)}


def test_a_long_question_shows_how_far_it_is(folder):
    trace = recorded(folder)
    total = len(trace.ask("windows"))
    terminal = Terminal(trace, *LONG)
    text = terminal.read()
    assert terminal.close() == 1, text
    lines = [tuple(map(int, found)) for found in LINE.findall(text)]
    assert len(lines) >= 3, text
    done = [line[0] for line in lines]
    assert done == sorted(done) and done[0] < done[-1] <= total, done
    assert {line[1] for line in lines} == {total} and {line[2] for line in lines} == {0}, lines
    # the line is gone before the answer comes
    assert "\r\x1b[K" in text[text.rindex("s left"):], text[-200:]
    quiet = Terminal(trace, "-q", *LONG)
    assert "windows, found" not in quiet.read() and quiet.close() == 1, quiet.text


def test_nothing_is_shown_where_nobody_looks(folder):
    trace = recorded(folder, "window=100000")
    result = tbdtest.run([tbdtest.TBDQ, "-t", trace.path, *LONG], stdin=None)
    assert result.code == 1 and b"windows, found" not in result.err, result


def test_an_interrupted_question_leaves_everything_in_order(folder):
    """Ctrl-C while windows are replayed and kept: files of the trace are untouched, what is kept is whole, and nothing
    that is half done stays when the next question has used the folder."""
    trace = recorded(folder, "window=20000")
    whole = trace.tbdq("--no-cache", *KEPT).out
    trace.ask("lower", "all", "1")
    before = files_below(trace.path)
    for enough in (1, 3, 9):
        terminal = Terminal(trace, *KEPT)
        # this many windows are kept, and it goes on
        while len(glob.glob(trace.path + "/cache/*.raised")) < enough and terminal.process.poll() is None:
            time.sleep(0.001)
        os.write(terminal.master, b"\x03")
        terminal.read()
        assert terminal.close() in (-signal.SIGINT, 0, 1), terminal.text
        after = files_below(trace.path)
        assert {name: size for name, size in after.items() if "/cache/" not in name} == before
    left = trace.path + "/cache/new.%d.7.part" % terminal.process.pid  # of a process that is gone
    with open(left, "w", encoding="ascii") as file:
        file.write("half of a window")
    assert trace.tbdq(*KEPT).out == whole and trace.tbdq(*KEPT).out == whole
    assert not glob.glob(trace.path + "/cache/new.*"), glob.glob(trace.path + "/cache/*")
    trace.verify()


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
