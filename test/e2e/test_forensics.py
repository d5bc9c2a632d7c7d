#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every program in examples/forensics fails, and its script finds the cause; the same program without
the bug works, and the script finds nothing."""
import glob
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


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
