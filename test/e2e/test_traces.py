#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tbdq ls and rm: the traces of the trace root."""
import json
import os
import subprocess

import tbdtest

LIST = os.path.join(tbdtest.BUILD, "examples/list")


def tbdq(root, *words):
    return subprocess.run([tbdtest.TBDQ, *words], env=tbdtest.clean_env({"TBD_DIR": root}), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)


def listed(root):
    return [json.loads(line) for line in tbdq(root, "--json", "ls").stdout.splitlines()]


def names(root):
    return [row["trace"] for row in listed(root)]


def recorded(folder):
    for _ in range(3):
        tbdtest.record([LIST], folder)
    return folder


def test_traces_are_listed(folder):
    assert tbdq(folder + "/none", "ls").returncode == 1 and not names(folder)
    rows = listed(recorded(folder))
    assert [row["trace"] for row in rows] == ["list-1", "list-2", "list-3"], rows
    for row in rows:
        info = json.loads(tbdq(folder, "--json", "-t", row["trace"], "info").stdout)
        assert row["blocks"] == info["blocks"] and row["pid"] == info["pid"] and row["end"] == "exit 1", (row, info)
        assert LIST in row["command"] and row["bytes"] > 4096, row
    _, trace = tbdtest.record(["/bin/echo", "a\\b\x1b[1m\t"], folder + "/odd")
    assert listed(folder + "/odd")[0]["command"] == trace.ask("processes")[0]["command"] == "/bin/echo a\\b\x1b[1m\t"
    assert tbdq(folder, "--csv", "ls").stdout.startswith(b"trace,started,end,blocks,size,command\r\nlist-1,")
    assert tbdq(folder, "ls", "list-1").returncode == 2


def test_removed_traces_are_gone(folder):
    recorded(folder)
    assert os.readlink(folder + "/latest") == "list-3"
    assert tbdq(folder, "rm", "list-1", "list-3").returncode == 0
    assert names(folder) == ["list-2"] and os.readlink(folder + "/latest") == "list-2"
    for wrong in ("list-1", "latest", "..", ".", "../" + os.path.basename(folder) + "/list-2", ""):
        said = tbdq(folder, "rm", "list-2", wrong)
        assert said.returncode == 2 and b"no trace of yours" in said.stderr, (wrong, said)
    assert names(folder) == ["list-2"], "nothing goes unless all can"
    assert tbdq(folder, "rm", "list-2", "list-2").returncode == 0
    assert not names(folder) and not os.path.lexists(folder + "/latest")


def test_only_what_is_in_the_trace_is_removed(folder):
    recorded(folder)
    kept = folder + "/kept"
    os.mkdir(kept)
    with open(kept + "/file", "w", encoding="utf-8") as f:
        f.write("x")
    os.symlink(kept, folder + "/list-1/windows/planted")
    os.symlink(kept + "/file", folder + "/list-1/planted")
    os.symlink("list-2", folder + "/alias")
    assert "alias" not in names(folder) and tbdq(folder, "rm", "alias").returncode == 2
    assert tbdq(folder, "rm", "list-1").returncode == 0
    assert os.listdir(kept) == ["file"] and not os.path.exists(folder + "/list-1")
    if os.geteuid() == 0:
        os.chown(folder + "/list-2", 65534, 65534)
        assert names(folder) == ["list-3"] and tbdq(folder, "rm", "list-2").returncode == 2


def test_a_trace_in_the_making_stays(folder):
    process = tbdtest.start(["/bin/sleep", "1000"], folder, "window=100")
    while not any(row["end"] == "recording" for row in listed(folder)):  # what has only begun and is killed holds nothing
        assert process.poll() is None
    said = tbdq(folder, "rm", "sleep-1")
    process.kill()
    process.communicate(timeout=60)
    assert said.returncode == 2 and b"being recorded" in said.stderr, said
    tbdtest.wait_organizers(folder)
    assert listed(folder)[0]["end"] == "killed" and tbdq(folder, "rm", "sleep-1").returncode == 0


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
