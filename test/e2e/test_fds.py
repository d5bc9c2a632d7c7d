#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`tbdq fds`: what is open where, against /proc/self/fd; mistakes; what became of one descriptor."""
import re

import tbdtest

KINDS = (("pipe:", "pipe"), ("anon_inode:[eventpoll]", "epoll"), ("anon_inode:[eventfd]", "eventfd"), ("anon_inode:[timerfd]", "timerfd"),
         ("/memfd:", "memfd"), ("/", "file|device or directory"))


def ends(text):
    """{"parent": {3: "/path", ...}, ...}: what the program saw in /proc/self/fd."""
    return {name: {int(fd): path for fd, path in (word.split("=", 1) for word in rest.split()) if int(fd) > 2}
            for name, rest in re.findall(r"^end (\w+)(.*)$", text, re.M)}


def check_open(rows, wanted):
    found = {fd: row for row in rows for fd in row["fds"] if fd > 2}
    assert set(found) == set(wanted), (set(found) ^ set(wanted), wanted)
    for fd, path in wanted.items():
        kind = found[fd]["kind"]
        if kind == "came in a message":
            assert path.endswith("descriptor_kinds"), (fd, path)
        elif path.startswith("socket:"):
            assert kind.startswith(("socket", "TCP connection 127.0.0.1:")), (fd, path, kind)
        else:
            wanted_kind = next(kind for start, kind in KINDS if path.startswith(start))
            assert re.match(wanted_kind, kind), (fd, path, kind)


def test_fds_of_three_processes_are_the_kernel_s(folder):
    result, trace = tbdtest.record([tbdtest.program("descriptor_kinds")], folder, "window=3000")
    assert result.code == 0, result
    wanted = ends(result.out.decode())
    by_process = {"fork": "child", "start": "parent", "exec": "exec"}

    seen = set()
    for row in trace.ask("processes"):
        name = by_process[row["by"]]
        rows = tbdtest.Trace(row["trace"]).ask("fds", "leaks")
        check_open(rows, wanted[name])
        seen.add(name)
        opened = next(row for row in rows if "leak_in_a_loop" in (row["opened"] or "") or name == "exec")
        assert name == "exec" or (opened["count"], opened["closes_on_exec"]) == (7, True), opened
    assert seen == {"child", "parent", "exec"}, seen
    check_errors(trace)
    check_histories(trace)


def check_errors(trace):
    rows = {row["error"]: row for row in trace.ask("fds", "errors")}
    assert {error: row["count"] for error, row in rows.items()} == {
        "double close": 3, "use after close": 1, "never open": 1, "not open for that": 1}, rows
    assert rows["never open"]["fds"] == [178] and rows["use after close"]["call"].startswith("read("), rows
    double = rows["double close"]
    assert "close_it" in double["closed"] and "open_self" in double["opened"] and "/proc/self/exe" in double["opening"], double
    text = trace.tbdq("fds", "errors", json_output=False).out
    assert b"passed over: 1 closes" in text, text


def check_histories(trace):
    rows = trace.ask("fds", "of", "148")
    assert [row["change"] for row in rows] == ["copied", "copied"], rows
    assert rows[0]["kind"] == "pipe, writes" and 140 in rows[0]["copies"] and 144 not in rows[1]["copies"], rows
    assert rows[1]["kind"] == "file" and 100 in rows[1]["copies"], rows
    assert [row["change"] for row in trace.ask("fds", "of", "144")] == ["copied", "closed"]
    assert [row["change"] for row in trace.ask("fds", "of", "149")] == ["copied", "marked close-on-exec"]
    assert trace.ask("fds", "of", "178")[0]["change"] == "failed: EBADF"
    opened = rows[0]["position"]
    assert 148 not in {fd for row in trace.ask("fds", at=opened) for fd in row["fds"]}
    answer = trace.tbdq("fds", "of", "999", json_output=False)
    assert answer.code == 1, answer
    assert trace.tbdq("fds", "nonsense", json_output=False).code == 2


if __name__ == "__main__":
    tbdtest.main(test_fds_of_three_processes_are_the_kernel_s)
