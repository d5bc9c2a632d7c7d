#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every command of docs/TUTORIAL.md gives the answer that is printed below it there; addresses and times may differ."""
import os
import re
import subprocess

import tbdtest

TUTORIAL = os.path.join(tbdtest.SOURCE, "docs", "TUTORIAL.md")


def commands():
    """(command, the lines below it)."""
    found = []
    with open(TUTORIAL, encoding="utf-8") as f:
        for line in f:
            if line.startswith("    $ "):
                found.append((line[6:].rstrip("\n"), []))
            elif line.startswith("    ") and found:
                found[-1][1].append(line[4:].rstrip("\n"))
    return found


def tidy(line):
    line = re.sub(r"\b0x[0-9a-f]{6,}", "ADDRESS", line)
    line = re.sub(r"^\d+\+(\d+)  ", r"TIME+\1  ", line)
    line = re.sub(r"^blocks .*", "blocks", line)
    return re.sub(r"(libc\.so\.6!).*", r"\1", line).rstrip()


def test_the_tutorial_is_true(folder):
    env = tbdtest.clean_env({"TBD_DIR": folder, "PATH": tbdtest.BUILD + ":" + os.environ["PATH"]})
    asked = commands()
    assert len(asked) > 20, len(asked)
    for command, wanted in asked:
        command = command.replace("../examples", os.path.join(tbdtest.SOURCE, "examples"))
        result = subprocess.run(["bash", "-c", command], cwd=tbdtest.BUILD, env=env, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100, check=False)
        found = [tidy(line) for line in result.stdout.decode().splitlines()]
        assert found == [tidy(line) for line in wanted], "%s\nfound:  %s\nwanted: %s" % (command, found, wanted)


if __name__ == "__main__":
    tbdtest.main(test_the_tutorial_is_true)
