#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exceptions and longjmp: frames that never return have no exit and no result, and steps end where gdb's do.

The programs count the entries and the returns of each of their functions; single steps show them too, with their order and results."""
import othertools
import singlestep
import stepping
import tbdtest

FUNCTIONS = {"long_jumps": ["leaf", "nested", "catcher", "sibling", None, "faulty"],
             "thrown": ["leaf", "plain", "guarded", "catcher", "changes", "sibling"]}
RESULTS = {("long_jumps", "leaf"): lambda n: n + 100 if n % 3 == 0 else None,
           ("long_jumps", "catcher"): lambda n: (n + 1102, None, 1000)[n % 3],
           ("long_jumps", "sibling"): lambda n: -n,
           ("long_jumps", "faulty"): lambda n: None if n % 2 else n,
           ("thrown", "leaf"): lambda n: None if n % 4 else n + 100,
           ("thrown", "guarded"): lambda n: None if n % 4 else n + 102,
           ("thrown", "catcher"): lambda n: (n + 102, 2 * n, None, None)[n % 4],
           ("thrown", "changes"): lambda n: (n + 102, 2 * n, None, None)[n % 4],
           ("thrown", "sibling"): lambda n: -n}


def recorded(name, folder, options=""):
    return tbdtest.record([tbdtest.program(name)], folder, options=options)


def check_calls(name, run, trace):
    counts = [tuple(map(int, line.split())) for line in run.out.decode().splitlines()[:6]]
    wanted = [pair for pair in zip(FUNCTIONS[name], counts, strict=True) if pair[0]]
    answers = trace.script("calls " + function for function, _ in wanted)
    for (function, (entered, returned)), rows in zip(wanted, answers, strict=True):
        assert len(rows) == entered, (name, function, len(rows), entered)
        assert sum(row["exit"] is not None for row in rows) == returned, (name, function, rows)
        assert all((row["exit"] is None) == (row["retval"] is None) == row.get("left", False) for row in rows), (name, function, rows)
        if (name, function) in RESULTS:
            for row in rows:
                n = int(row["values"]["n"]) if isinstance(row["values"], dict) else int(row["values"][0].split("=")[1])
                wanted = RESULTS[name, function](n)
                assert row.get("result") == (None if wanted is None else str(wanted)), (name, function, row)


def test_frames_that_were_left_have_no_result(folder):
    for name in FUNCTIONS:
        for options in ("", "window=300"):
            run, trace = recorded(name, folder + "/" + name + options, options)
            assert run.code == 0, run
            check_calls(name, run, trace)
    text = trace.tbdq("calls", "guarded", json_output=False).out.decode()
    assert text.count("left by exception or longjmp") == 9, text


# Programs of test_steps, and functions that -O0 and -Og do not inline; -O2 inlines or clones some.
CHANGED = ("nested", "itself")
OWN = {"jumps.c": ["main", "leaf", "nested", "catcher", "sibling", "itself"],
       "throws.cc": ["main", "leaf", "plain", "guarded", "again", "catcher", "makes"]}


def check_single_steps(path, functions, folder):
    """Entries, exits, their order, nesting, results and stack pointers of all calls of all functions."""
    truth = singlestep.calls(path, functions)
    trace = tbdtest.record([path], folder)[1]
    rows = sorted(((row["time"], row["offset"]), row) for found in trace.script("calls " + name for name in functions) for row in found)
    rows = [row for _, row in rows]
    base = int(rows[0]["sp"], 16)
    found = [(row["function"], int(row["sp"], 16) - base, row["nesting"], row.get("left", False),
              None if row["retval"] is None else int(row["retval"], 16)) for row in rows]
    wanted = [(c.function, c.sp, c.nesting, c.left, c.result) for c in truth]
    assert found == wanted, (path, [pair for pair in zip(found, wanted) if pair[0] != pair[1]][:4], len(found), len(wanted))
    ours = [(tuple(map(int, (row["exit"] + "+0").split("+")[:2])), number) for number, row in enumerate(rows) if row["exit"]]
    theirs = [(c.exit, number) for number, c in enumerate(truth) if c.exit is not None and not c.left]
    entered = [((row["time"], row["offset"]), -1) for row in rows]
    assert [n for _, n in sorted(ours + entered)] == [n for _, n in sorted(theirs + [(c.enter, -1) for c in truth])], path
    return sum(c.left for c in truth), sum(not c.left for c in truth)


def test_calls_are_those_that_single_steps_show(folder):
    left = returned = 0
    programs = [(tbdtest.program(name), ["main"] + [f for f in functions if f]) for name, functions in FUNCTIONS.items()]
    programs += [(stepping.built(name, level, folder), functions) for name, functions in OWN.items() for level in ("O0", "Og")]
    programs += [(stepping.built(name, "O2", folder), [f for f in functions if f not in CHANGED]) for name, functions in OWN.items()]
    for number, (path, functions) in enumerate(programs):
        more = check_single_steps(path, functions, "%s/%d" % (folder, number))
        left, returned = left + more[0], returned + more[1]
    assert left > 100 and returned > 100, (left, returned)


def test_nested_calls_end_with_their_frames(folder):
    trace = recorded("long_jumps", folder)[1]
    rows = trace.ask("calls", "nested")
    assert [row["nesting"] for row in rows] == [0, 1, 2] * 12, rows


# Where `finish` or some `next` lead from the calls for which a condition holds: gdb loses its way where a frame is left.
STEPS = """
b = gdb.Breakpoint(%r)
run()
while alive():
    row = [value("$pc")]
    if value(%r):
        b.enabled = False
        for _ in range(%d):
            gdb.execute(%r, to_string=True)
            row.append(value("$pc"))
        b.enabled = True
    say(row)
    go()
"""


def check_steps(name, function, condition, command, count, folder):
    """Compares where the steps lead, one after the other, from each call."""
    trace = recorded(name, folder + "/" + "-".join((name, function, command)))[1]
    wanted = othertools.gdb_script([tbdtest.program(name)], STEPS % (function, condition, count, command))
    calls = trace.ask("calls", function)
    assert sum(len(row) > 1 for row in wanted) >= 3, (name, function, wanted)
    for row in wanted[:8 if tbdtest.LONG else 3]:
        call = calls.pop(0)
        lines = ["goto %s forward state 1 where pc==%#x" % (tbdtest.position(call), row[0])] + [command] * len(row[1:])
        for number, (pc, answer) in enumerate(zip(row[1:], trace.script(lines)[1:])):
            found = answer[-1]
            assert tbdtest.number(found["pc"]) == pc, (name, function, command, number, call, found, hex(pc), [hex(x) for x in row])
            # Steps may lead to the next call of the function.
            calls = [c for c in calls if (c["time"], c["offset"]) > (found["time"], found["offset"])]


def test_finish_ends_where_gdb_s_does(folder):
    for name, function, condition in (("long_jumps", "leaf", "n % 3 == 0"), ("long_jumps", "catcher", "n % 3 != 1"),
                                      ("long_jumps", "sibling", "1"), ("thrown", "leaf", "n % 4 == 0"),
                                      ("thrown", "catcher", "n % 4 < 2"), ("thrown", "sibling", "1")):
        check_steps(name, function, condition, "finish", 1, folder)


def test_next_ends_where_gdb_s_does(folder):
    for name, function, condition in (("long_jumps", "leaf", "n % 3 == 0"), ("long_jumps", "sibling", "1"),
                                      ("long_jumps", "faulty", "n % 2 == 0"), ("thrown", "leaf", "n % 4 == 0"), ("thrown", "sibling", "1")):
        check_steps(name, function, condition, "next", 6, folder)


def test_steps_out_of_frames_that_are_left_end_where_the_program_goes_on(folder):
    """What single steps show: the first instruction of the program itself with a stack pointer above the frame."""
    for name, functions in (("long_jumps", ("leaf", "nested", "faulty")), ("thrown", ("leaf", "plain", "guarded", "changes"))):
        trace = recorded(name, folder + "/" + name)[1]
        for function in functions:
            left = [row for row in trace.ask("calls", function) if row.get("left")]
            assert len(left) >= 3, (name, function)
            trace.one("goto", tbdtest.position(left[0]))
            answer = trace.tbdq("finish")
            assert b"did not return" in answer.err and answer.code == 0, answer
            for call in left[:4 if tbdtest.LONG else 2]:
                at = "goto " + tbdtest.position(call)
                truth = at + " forward state 1 where sp > %s and module==%s" % (call["sp"], name)
                [truth], _, _, [where], _, *steps = trace.script([truth, at, "finish", "where", at] + ["next"] * 12)
                assert tbdtest.position(where) == tbdtest.position(truth), (name, function, call, truth, where)
                steps = [step[-1] for step in steps if step]
                found = [step for step in steps if (step["time"], step["offset"]) >= (truth["time"], truth["offset"])][:1] or steps[-1:]
                assert tbdtest.position(found[0]) == tbdtest.position(truth), (name, function, call, truth, found)


def test_history_of_a_local_ends_where_its_frame_is_left(folder):
    trace = recorded("long_jumps", folder)[1]
    left = [row for row in trace.ask("calls", "nested") if row.get("left")][:4]
    for call in left:
        at = tbdtest.position(call)
        truth = trace.one("goto", at, "forward", "state", 1, "where", "sp > %s and module==long_jumps" % call["sp"])
        trace.one("goto", at, "forward", "line", 1, "where", "func==nested and line > %d" % call["line"])
        rows = trace.ask("history", "depth")
        assert rows and {row["function"] for row in rows} == {"nested"} and rows[-1]["to"] == tbdtest.position(truth), (call, rows, truth)


def test_reverse_next_at_a_function_s_start_goes_to_its_caller(folder):
    trace = recorded("long_jumps", folder)[1]
    rows = trace.ask("calls", "sibling")
    for row in rows[2:8]:
        trace.one("goto", tbdtest.position(row), "forward", "line", 1, "where", "func==sibling")
        for _ in range(3):
            found = trace.one("reverse-next")
            if found["function"] != "sibling":
                break
        assert found["function"] == "main", (row, found)


if __name__ == "__main__":
    tbdtest.main(test_frames_that_were_left_have_no_result, test_calls_are_those_that_single_steps_show, test_nested_calls_end_with_their_frames,
                 test_finish_ends_where_gdb_s_does, test_next_ends_where_gdb_s_does,
                 test_steps_out_of_frames_that_are_left_end_where_the_program_goes_on,
                 test_history_of_a_local_ends_where_its_frame_is_left,
                 test_reverse_next_at_a_function_s_start_goes_to_its_caller)
