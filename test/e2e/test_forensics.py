#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every program in examples/forensics fails, and its script finds the cause; the same program without
the bug works, and the script finds nothing."""
import glob
import json
import os
import subprocess

import tbdtest

FOLDER = os.path.join(tbdtest.SOURCE, "examples", "forensics")


def script(trace, name):
    return subprocess.run([tbdtest.TBDQ, "-t", trace.path, "-f", os.path.join(FOLDER, name + ".tbdq")],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)


def check(name, folder):
    wrong, trace = tbdtest.record([os.path.join(tbdtest.BUILD, "examples", "forensics", name)], folder + "/wrong")
    assert wrong.code != 0, "the bug did not show: %r" % wrong
    said = script(trace, name)
    assert said.returncode == 0, said
    last = said.stdout.decode().splitlines()[-1]
    assert last.startswith("cause: "), said.stdout
    right, trace = tbdtest.record([os.path.join(tbdtest.BUILD, "examples", "forensics", name + "_fixed")], folder + "/right")
    assert right.code == 0, right
    said = script(trace, name)
    assert said.returncode == 1 and b"cause: " not in said.stdout and b"failed: " in said.stderr, said
    return last


def test_causes_are_found(folder):
    names = sorted(os.path.basename(path)[:-5] for path in glob.glob(FOLDER + "/*.tbdq"))
    assert len(names) >= 10, names
    for name in names:
        print("        %s: %s" % (name, check(name, os.path.join(folder, name))))


def line_of_cause(name):
    with open(os.path.join(FOLDER, name + ".c"), encoding="utf-8") as f:
        return "%s.c:%d" % (name, next(n for n, line in enumerate(f, 1) if "/* cause" in line))


def test_crashes_whose_path_shows_the_cause(folder):
    """A core file has the state, as the dump has: no frame is at the cause's line.  What ran last is."""
    names = sorted(os.path.basename(path)[:-2] for path in glob.glob(FOLDER + "/crash_*.c"))
    assert len(names) >= 3, names
    for name in names:
        root = os.path.join(folder, name)
        os.makedirs(root)
        argv = [os.path.join(tbdtest.BUILD, "examples", "forensics", name)]
        env = tbdtest.clean_env({"TBD_DIR": root})
        native, wrong = tbdtest.run(argv), tbdtest.run([tbdtest.TBD, "crash", "--", *argv], env=env)
        tbdtest.same(native, wrong)
        assert wrong.code < 0, wrong
        tbdtest.wait_organizers(root)
        cause = line_of_cause(name)
        path = tbdtest.run([tbdtest.TBDQ, "--json", "path", "5000"], env=env)
        rows = [json.loads(line) for line in path.out.splitlines()][1:]
        assert cause in [row.get("source") for row in rows], (cause, path)
        stack = tbdtest.run([tbdtest.TBDQ, "bt"], env=env)
        assert stack.code == 0 and cause.encode() not in stack.out, stack
        right = tbdtest.run([tbdtest.TBD, "crash", "--", argv[0] + "_fixed"], env=tbdtest.clean_env({"TBD_DIR": root + "/right"}))
        assert right.code == 0 and not os.path.exists(root + "/right/latest"), right


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
