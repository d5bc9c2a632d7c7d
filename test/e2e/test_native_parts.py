#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Questions about some windows of native play, while the others are not counted: the answers, and the positions, are those of the counted trace."""
import os
import re
import shutil

import tbdtest
from test_counting import is_uncounted
from test_prompt import Prompt
from test_progress import Terminal

IN_WINDOW = re.compile(r"@w(\d+)\+(\d+)")


def record(folder, rounds=2000000, argv=None):
    argv = argv or [tbdtest.program("many_windows"), str(rounds)]
    result, trace = tbdtest.record(argv, folder, "mode=native,aftercount=no,cut=0300")
    tbdtest.need_native_play(result)
    return trace


def parts(trace):
    cache = os.path.join(trace.path, "cache")
    return [name for name in os.listdir(cache) if name.endswith(".windows")] if os.path.isdir(cache) else []


def text(trace, *words, at=None):
    result = trace.tbdq(*words, at=at, json_output=False)
    return result.code, result.out.decode(), result.err.decode()


def times(counted, answer):
    """The answer with each position in a window replaced by its time."""
    def time_of(match):
        where = counted.ask("where", at=match.group(0))[0]
        return str(where["time"])
    return IN_WINDOW.sub(time_of, answer)


# Each about the end, or about what the one before has come to.
QUESTIONS = (("--at", "last", "where"), ("--at", "last", "bt"), ("--at", "last", "regs"), ("--at", "last", "mem", "&rare", "16"), ("--at", "last", "print", "marks"),
             ("goto", "last", "backward", "func_enter", "1"), ("where",), ("goto", "current", "backward", "store", "7"), ("stepi",), ("reverse-stepi", "3"),
             ("print", "$pc"), ("goto", "last", "backward", "syscall", "1"), ("goto", "last", "backward", "func_enter", "1", "where", "func==mark"),
             ("finish",), ("goto", "last", "backward", "store", "1", "of", "rare"), ("goto", "last", "forward", "store", "1"), ("bt",))


# Of threads and signals.
MORE_QUESTIONS = (("--at", "last", "where"), ("goto", "last", "backward", "func_enter", "3"), ("goto", "current", "backward", "store", "20"), ("regs",), ("stepi", "2"),
                  ("reverse-stepi", "5"), ("goto", "last", "backward", "thread_switch", "1"), ("bt",), ("goto", "last", "backward", "syscall", "4"),
                  ("goto", "last", "backward", "load", "5"), ("goto", "last", "backward", "func_exit", "2"), ("goto", "last", "backward", "line", "2"), ("next",))


def compare(trace, folder, questions):
    """How many of the answers name positions in windows.  A question that needs all windows ends it."""
    counted = tbdtest.Trace(os.path.join(folder, "counted"))
    shutil.copytree(trace.path, counted.path, symlinks=True)
    assert counted.info()["windows"] > 8 and not is_uncounted(counted), counted.info()
    seen = 0
    for question in questions:
        here, there = text(trace, *question), text(counted, *question)
        if not is_uncounted(trace):
            break
        seen += "@w" in here[1]
        assert (here[0], times(counted, here[1])) == there[:2], (question, here, there)
    assert parts(trace) or not is_uncounted(trace)
    return seen


def test_answers_about_the_end_are_those_of_the_counted_trace(folder):
    trace = record(os.path.join(folder, "traces"))
    assert compare(trace, folder, QUESTIONS) > 5 and is_uncounted(trace)


def test_answers_about_the_end_of_a_program_with_threads(folder):
    trace = record(os.path.join(folder, "traces"), argv=[tbdtest.program("thread_signals")])
    assert compare(trace, folder, MORE_QUESTIONS) > 3


def test_positions_in_windows_stay_valid(folder):
    trace = record(folder)
    where = trace.ask("goto", "last", "backward", "store", "1", "of", "rare")[0]
    position = "%s+%d" % (where["time"], where["offset"])
    assert IN_WINDOW.match(position), position
    here = [text(trace, *words, at=position) for words in (("regs",), ("bt",), ("print", "rare"))]
    assert text(trace, "goto", position)[0] == 0
    assert is_uncounted(trace)
    assert trace.ask("count", "func_enter") and not is_uncounted(trace)
    assert [text(trace, *words, at=position) for words in (("regs",), ("bt",), ("print", "rare"))] == here
    now = trace.ask("where")[0] # remembered, though it was written before
    assert isinstance(now["time"], int) and (now["pc"], now["offset"]) == (where["pc"], where["offset"]), (now, where)
    assert trace.ask("goto", position)[0]["time"] == now["time"]


def test_a_window_in_the_middle_and_what_lies_before_it(folder):
    trace = record(folder)
    middle = trace.ask("--at", "last", "where")[0]["time"]
    number = int(IN_WINDOW.match(middle).group(1)) // 2
    code, out, _ = text(trace, "goto", "@w%d+5" % number, "backward", "store", "1")
    assert code == 0 and out.startswith("@w%d+" % number), out
    code, out, _ = text(trace, "goto", "@w%d+0" % number, "backward", "block_entry", "1")
    assert code == 0 and out.startswith("@w%d+" % (number - 1)), out
    assert is_uncounted(trace)
    first = text(trace, "goto", "@w0+3") # nothing is before it
    assert first[0] == 0 and first[1].startswith("3+0 "), first


def test_the_prompt_goes_on_with_more_windows(folder):
    trace = record(folder)
    prompt = Prompt(trace, folder)

    def ask(line):
        return prompt.ask(line + "\r", "many_windows-1 ") + prompt.until("> ")

    assert IN_WINDOW.search(prompt.text), prompt.text
    assert "there is no command" in ask("gto last")
    assert IN_WINDOW.search(ask("goto last backward func_enter 1 where func==mark"))
    assert "$1 = " in ask("print rare")
    ask("mark there")
    before = ask("bt")
    assert is_uncounted(trace) and "mark" in before
    assert "mark" in ask("count func_enter where func==mark by func") # about all windows
    assert not is_uncounted(trace) and not IN_WINDOW.search(prompt.text[-40:]), prompt.text[-40:]
    assert ask("bt").split("many_windows-1 ")[0] == before.split("many_windows-1 ")[0]
    assert "$2 = " in ask("print $1") # what was printed is still there
    assert not IN_WINDOW.search(ask("goto @there"))
    prompt.quit()
    code, marks, _ = text(trace, "marks")
    assert code == 0 and re.match(r"@there  \d+\+0", marks), marks


def test_counting_shows_its_progress(folder):
    trace = record(folder, 8000000)
    copy = tbdtest.Trace(trace.path + "-copy")
    shutil.copytree(trace.path, copy.path, symlinks=True)
    shown, quiet = (Terminal(one, "-j", "1", *words, "count", "syscall") for one, words in ((trace, ()), (copy, ("-q",))))
    assert re.search(r"\rcounting: (\d+) of (\d+) windows, \d+ s left", shown.read()), shown.text
    assert "counting" not in quiet.read(), quiet.text
    shown.close()
    quiet.close()


def test_what_is_no_position_in_a_window(folder):
    trace = record(folder, 40000)
    for words in (("@w9999999+1",), ("@w99999999999999999999+1",), ("@w0+99999999999",), ("@w0+1+99",)):
        code, out, err = text(trace, "goto", *words)
        assert code == 2 and not out and err.startswith("tbdq: no such position: "), (words, code, out, err)
        assert text(trace, "where", at=words[0]) == (code, out, err), words
    for words in (("goto", "5"), ("goto", "first"), ("goto", "last", "backward", "store", "1", "where", "time < 50")):
        code, out, _ = text(trace, *words)
        assert code == 0 and "@w" not in out, (words, out)


def test_a_trace_in_parts_that_is_damaged_is_not_used(folder):
    trace = record(os.path.join(folder, "traces"))
    before = text(trace, "--at", "last", "regs")
    assert before[0] == 0 and parts(trace), before
    for name in ("header", "index", "blocks"):
        copy = tbdtest.Trace(os.path.join(folder, name))
        shutil.copytree(trace.path, copy.path, symlinks=True)
        path = os.path.join(copy.path, "cache", parts(copy)[0], "trace-1", name)
        with open(path, "r+b") as file:
            file.truncate(os.path.getsize(path) // 3)
        assert text(copy, "--at", "last", "regs")[:2] == before[:2], name


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
