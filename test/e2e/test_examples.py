#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The programs under examples/ and the questions that their first comment asks.

The questions are taken from the comments, so a comment that no longer works is a failure.  Each answer
must contain the words below.  ADDRESS in a question is the value that the first answer returned.
"""
import os
import re
import shlex

import tbdtest

EXAMPLES = os.path.join(tbdtest.SOURCE, "examples")
QUESTION = re.compile(r"^ \*     tbdq (?:'(.*?)'|(bt|--at last bt))(?:  |$)", re.M)

# Program: exit status, then a word of each answer.
ANSWERS = {
    "list": (1, ["list!put_in_front", "list!restore"]),
    "overflow": (1, ["overflow!set_name", "overflow!main", "overflow!set_name"]),
    "stale": (1, ["stale!new_account", "6c6c6548", "free"]),
    "lost": (1, ["retval 0xffffffffffffffff", "(0x241, 0x137", "(0x241, 0x137"]),
    "crash": (-11, ["crash!use_handler", "crash!clear_handler", "crash!clear_handler"]),
    "lines": (0, ["= 512", "read(0, ", "lines!"]),
    "ray": (0, ["ray!add_sphere", "ray!add_sphere", "ray!trace"]),
}


def questions(name):
    with open(os.path.join(EXAMPLES, name + ".c"), encoding="utf-8") as f:
        return [shlex.split(quoted or plain) for quoted, plain in QUESTION.findall(f.read())]


def check_example(name, folder, arguments=(), stdin=b""):
    status, words = ANSWERS[name]
    argv = [os.path.join(tbdtest.BUILD, "examples", name), *arguments]
    traced, trace = tbdtest.check_run(argv, folder, stdin=stdin)
    assert traced.code == status, traced
    asked = questions(name)
    assert len(asked) == len(words), "%s: %d questions, %d answers" % (name, len(asked), len(words))
    address = None
    for question, word in zip(asked, words):
        question = [part.replace("ADDRESS", address or "ADDRESS") for part in question]
        answer = trace.tbdq(*question, json_output=False)
        text = answer.out.decode()
        assert answer.code == 0 and word in text, "%s: %s: %r" % (name, " ".join(question), answer)
        returned = re.search(r"retval (0x[0-9a-f]+)", text)
        address = address or (returned and returned[1])


def test_list(folder):
    check_example("list", folder)


def test_overflow(folder):
    check_example("overflow", folder)


def test_stale(folder):
    check_example("stale", folder)


def test_lost(folder):
    check_example("lost", folder)


def test_crash(folder):
    check_example("crash", folder)


def test_lines(folder):
    text = b"one two three\n" * 150
    check_example("lines", folder, stdin=text)


def test_ray(folder):
    check_example("ray", folder, ["30"])


def said(result):
    """Without the calls that tbd refuses, and their number."""
    return [line for line in result.out.splitlines() if not line.startswith(b"io_") and b"calls checked" not in line]


def test_every_system_call(folder):
    """The table's own test makes more than a hundred different calls: they must replay, too."""
    argv = [os.path.join(tbdtest.BUILD, "test_syscalls"), "calls"]
    if not os.path.exists(argv[0]):
        raise tbdtest.Skip("test_syscalls is not built")
    for end in tbdtest.need_terminal():
        os.close(end)
    native = tbdtest.run(argv)
    traced, trace = tbdtest.record(argv, os.path.join(folder, "traces"))
    assert native.code == traced.code == 0, (native, traced)
    assert said(native) == said(traced), (native, traced)
    trace.verify()
    assert trace.info()["syscalls"] > 1000


if __name__ == "__main__":
    tbdtest.main(test_list, test_overflow, test_stale, test_lost, test_crash, test_lines, test_ray,
                 test_every_system_call)
