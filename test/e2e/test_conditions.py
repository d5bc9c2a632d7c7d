#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Conditions over variables in every place where a compiler puts them; the program's own counts must agree."""
import os
import re
import subprocess

import tbdtest

ROUNDS = 20000
MASK = 0xffffffff


def rounds(count):
    """What the loop of hot_values.c has in its variables, as they are when `sink` is written."""
    total, at, real = 1, 0, 0.0
    for i in range(count):
        mixed = (total * 2654435761 + i) & MASK
        yield {"i": i, "mixed": mixed, "total": total, "weight": at * at, "sum": real}
        real = real * 0.5 + (mixed & 1023)
        total = mixed ^ (mixed >> 7) ^ (at * at)
        at = (at + 1) % 7


def explained(trace, condition, workers):
    """How many stores there are, and how many windows were replayed for registers."""
    result = trace.tbdq("-j", workers, "--explain", "count", "store", "where", condition, json_output=False)
    words = re.search(rb"(\d+) replayed for registers", result.err)
    lines = result.out.split()
    return (int(lines[2]) if result.code == 0 else 0), int(words.group(1))


def test_variables_in_registers(folder):
    _, trace = tbdtest.record([tbdtest.program("hot_values"), str(ROUNDS)], folder, "window=7000")
    values = list(rounds(ROUNDS))
    here = "func==churn and addr>=&sink and addr<&sink+1024 and "
    for condition, holds in (("mixed % 7 == 3", lambda v: v["mixed"] % 7 == 3),
                             ("i >= 19990 or i < 5", lambda v: v["i"] >= 19990 or v["i"] < 5),
                             ("at->weight == 25 && i % 3 == 1", lambda v: v["weight"] == 25 and v["i"] % 3 == 1),
                             ("at->next->next->weight == 9", lambda v: v["weight"] == 1),
                             ("newval == mixed", lambda v: True),
                             ("mixed == 0x11223344", lambda v: v["mixed"] == 0x11223344)):
        for workers in ("1", "2"):
            found, replayed = explained(trace, here + "(%s)" % condition, workers)
            assert found == sum(1 for v in values if holds(v)), (condition, found)
            assert replayed > 1, (condition, replayed)


def test_many_events_have_the_registers_of_single_ones(folder):
    """The registers that one replay notes are those that a stop at the position finds."""
    _, trace = tbdtest.record([tbdtest.program("hot_values"), "4000"], folder, "window=3000")
    for kind, register in (("store", "rcx"), ("line", "rdx"), ("block_entry", "r10"), ("load", "rsi"), ("func_exit", "rbx"),
                           ("func_enter", "r12")):
        events = trace.ask("all", kind, "where", "%s&1 == 1" % register)
        everything = {tbdtest.position(e) for e in trace.ask("all", kind)}
        odd = {tbdtest.position(e) for e in events}
        assert 0 < len(odd) < len(everything), (kind, len(odd), len(everything))
        for which, bit in ((odd, 1), (everything - odd, 0)):
            some = sorted(which)[::len(which) // 5 + 1]
            for at, [registers] in zip(some, trace.at(some, ["regs"]), strict=True):
                assert tbdtest.number(registers[register]) & 1 == bit, (kind, at, registers)


def test_registers_that_have_no_room_in_a_block_are_found_one_by_one(folder):
    """A condition that reads all registers at all instructions: more than a block's record takes."""
    _, trace = tbdtest.record([tbdtest.program("moments")], folder, "window=100000")
    zero = "+".join("(%s^%s)" % (r, r) for r in ("rbx rcx rdx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15").split())
    few = trace.tbdq("count", "state", "where", "rax & 1 == 1", json_output=False)
    many = trace.tbdq("--explain", "count", "state", "where", "rax & 1 == 1 or %s != 0" % zero, json_output=False)
    assert few.code == many.code == 0 and few.out == many.out, (few, many)
    noted, single = (int(n) for n in re.search(rb"(\d+) replayed for registers.*positions replayed to: (\d+)", many.err).groups())
    assert noted > 0 and single > 0, many.err


FLOATS = """
#include <stdio.h>
volatile float small = -2013263.625f, tenth = 0.1f, big = 16777216.0f;
volatile double real = -5.75;
volatile int n = 16777217, five = 5;
__attribute__((noinline)) static int stop(void) { return n; }
int main(void)
{
    printf("%d\\n", stop());
    SHOW
}
"""
# With the value that the compiler gives them: an int and a float make a float.
CALCULATED = ["small + five", "tenth + 1", "tenth * 3", "tenth + 0.2f", "tenth + 0.2", "n == big", "n + 0.0f == big", "(float)real * tenth", "(float)0.1 == 0.1",
              "(float)0.1 == tenth", "tenth == 0.1", "tenth == 0.1f", "tenth * 10 == 1", "-tenth - tenth", "five ? tenth : n", "(int)real", "(unsigned char)(real + 8)",
              "(long)small", "(int)(tenth * 70)", "(_Bool)tenth", "small / five", "1.1f * 1.1f", "1.1 * 1.1f", "sizeof(tenth + five)", "sizeof(tenth + real)"]


def test_floats_are_calculated_as_in_c(folder):
    source, binary = os.path.join(folder, "floats.c"), os.path.join(folder, "floats")
    with open(source, "w", encoding="ascii") as f:
        f.write(FLOATS.replace("SHOW", "".join('printf("%%.17g\\n", (double)(%s));' % text for text in CALCULATED)))
    subprocess.run(["cc", "-g", "-O0", "-w", source, "-o", binary], check=True)
    result, trace = tbdtest.record([binary], folder)
    at = tbdtest.position(trace.one("goto", "first", "forward", "func_enter", 1, "where", "func==stop"))
    conditions = ["(double)(%s) == %s" % pair for pair in zip(CALCULATED, result.out.decode().split()[1:], strict=True)]
    printed = trace.at([at], ["print " + condition for condition in conditions])
    counted = trace.counts("func_enter where func==stop and " + condition for condition in conditions)
    for condition, [value], count in zip(conditions, printed, counted, strict=True):
        assert value["value"] == "1" and count == 1, (condition, value, count)


def truth(trace, expression, position):
    """What print says: None where it has no value."""
    result = trace.tbdq("print", "(%s) != 0" % expression, at=position, json_output=False)
    return int(result.out) if result.code == 0 and result.out.strip().isdigit() else None


def changed(trace, command, condition):
    """The event of first or last; checks that the condition holds just where the answer says."""
    event = trace.one(command, condition)
    assert trace.one("where")["time"] == event["time"]
    assert truth(trace, condition, event["since" if command == "first" else "until"]) == 1, (command, condition, event)
    return event


def test_first_and_last_are_the_instructions_that_change_a_condition(folder):
    _, trace = tbdtest.record([tbdtest.program("moments")], folder, "window=600")
    for command, condition, function, values in (
            ("first", "total > 1000", "count_down", None), ("last", "total > 1000", "main", ("0x64f", "0x5")),
            ("first", "level > 20", "raise_by", ("0xf", "0x15")), ("last", "level < 40", "raise_by", ("0x24", "0x2d")),
            ("first", "level == 21 && steps == 10", "raise_by", ("0xf", "0x15"))):
        event = changed(trace, command, condition)
        assert (event["type"], event["function"]) == ("store", function), (command, condition, event)
        assert values is None or (event["oldval"], event["newval"]) == values, (condition, event)
        if function != "raise_by":
            assert truth(trace, condition, tbdtest.position(event)) == (0 if command == "first" else 1), event
    total = changed(trace, "first", "total > 1000")
    assert tbdtest.number(total["oldval"]) <= 1000 < tbdtest.number(total["newval"]), total
    for command, condition in (("first", "rounds == 20"), ("last", "rounds == 20"), ("first", "height < 50")):
        event = changed(trace, command, condition)
        assert event["function"] == "count_down" and event["type"] == "state", (condition, event)
        assert truth(trace, condition, tbdtest.position(event)) == (0 if command == "first" else 1), (condition, event)
    event = changed(trace, "last", "rounds == 34")
    assert event["function"] == "count_down" and event["text"].startswith("ret"), event
    event = changed(trace, "first", "height == 100")
    assert event["function"] == "count_down" and tbdtest.position(event) == event["since"], event
    assert trace.ask("first", "total == 77") == [] and trace.ask("last", "level == 77") == []


def holding(trace, function, condition):
    """(instructions of all calls at which the condition holds, at which it does not, at which it means nothing)."""
    inside = "func==%s and " % function
    return tuple(trace.counts("state where " + inside + text for text in
                              ("(%s)" % condition, "not (%s)" % condition, "not ((%s) or not (%s))" % (condition, condition))))


def test_what_is_left_on_the_stack_decides_no_condition(folder):
    _, trace = tbdtest.record([tbdtest.program("unset")], folder)
    for function, variable, value in (("narrow", "sum", 3), ("narrow", "more", 6), ("wide", "both.a", 6),
                                      ("wide", "half", 2.25), ("passed_on", "parts[0]", 4), ("ways", "late", 9)):
        assert trace.count("state", "func==%s and %s == 77" % (function, variable)) == 0, (function, variable)
        held, wrong, _ = holding(trace, function, "%s == %s" % (variable, value))
        assert held > 0 and wrong == 0, (function, variable, held, wrong)
        event = trace.one("first", "%s == %s" % (variable, value))
        assert (event["type"], event["function"]) == ("store", function), (variable, event)


def test_parameters_have_their_values_before_they_are_stored(folder):
    """At every instruction, but where the register already has another value and the frame has none yet."""
    _, trace = tbdtest.record([tbdtest.program("unset")], folder)
    for function, variable, value, lost in (("narrow", "a", 1, 1), ("narrow", "b", 2, 3), ("narrow", "c", 3, 2), ("wide", "x", 4.5, 0),
                                            ("wide", "n", 6, 0), ("passed_on", "n", 4, 0)):
        states = trace.count("state", "func==" + function)
        held, wrong, _ = holding(trace, function, "%s == %s" % (variable, value))
        assert wrong == 0 and states - lost - 3 <= held <= states, (function, variable, held, wrong, states)
    text = {v["name"]: v["value"] for v in trace.ask("locals", at=tbdtest.position(
        trace.one("goto", "first", "forward", "state", 3, "where", "func==wide")))}
    assert (text["x"], text["n"]) == ("4.5", "6"), text


def test_a_local_variable_has_the_history_of_its_own_call(folder):
    _, trace = tbdtest.record([tbdtest.program("moments")], folder, "window=600")
    enter, leave = (trace.one("goto", "first", "forward", kind, 1, "where", "func==climb") for kind in ("func_enter", "func_exit"))
    trace.one("goto", "first", "forward", "func_enter", 5, "where", "func==raise_by")
    for what, at in (("*what", None), ("level", tbdtest.position(leave))):
        if at is not None:
            trace.one("goto", tbdtest.position(enter))
            trace.one("goto", "current", "forward", "line", 4, "where", "func==climb")
        rows = trace.ask("history", what)
        assert [int(r["value"]) for r in rows] == [0, 1, 3, 6, 10, 15, 21, 28, 36, 45], (what, rows)
        assert rows[-1]["to"] == tbdtest.position(leave), rows[-1]
        assert all(a["to"] == a2["position"] for a, a2 in zip(rows, rows[1:])), rows
        assert int(rows[0]["from"].split("+")[0]) >= enter["time"], rows[0]
    assert int(trace.ask("history", "total", at="last")[-1]["value"]) == 5


def test_every_instruction_is_a_state(folder):
    _, trace = tbdtest.record([tbdtest.program("moments")], folder, "window=600")
    states = trace.ask("all", "state", "where", "func==count_down")
    steps = trace.one("goto", tbdtest.position(states[0]))
    for state in states[1:8]:
        steps = trace.one("stepi")
        assert tbdtest.position(steps) == tbdtest.position(state) and steps["pc"] == state["pc"], (steps, state)
    assert trace.count("state", "func==count_down") == len(states)
    late = {tbdtest.position(s) for s in trace.ask("all", "state", "where", "func==count_down and rounds >= 30")}
    for state in states[::len(states) // 15]:
        at = tbdtest.position(state)
        assert (truth(trace, "rounds >= 30", at) == 1) == (at in late), state


def test_each_thread_has_its_own_variables(folder):
    _, trace = tbdtest.record([tbdtest.program("thread_moods")], folder, "window=900,quantum=300")
    for by in (1, 2, 3, 4):
        calls = trace.ask("all", "func_enter", "where", "func==cheer and by==%d and mood >= %d" % (by, 30 * by))
        assert len(calls) == 10, (by, calls)
        stores = trace.ask("all", "store", "where", "func==cheer and addr==&all_moods and mood == %d" % (7 * by))
        expected = [n for n in (1, 2, 3, 4) if 7 * by % n == 0 and 7 * by <= 40 * n]
        assert len(stores) == len({e["thread"] for e in stores}) == len(expected), (by, stores)


def test_variables_in_vector_registers_and_in_pieces(folder):
    _, trace = tbdtest.record([tbdtest.program("views")], folder, "window=20000")
    for condition, count in (("who.name == \"bob\"", 1), ("\"bob\" != who.name", 2), ("who.name =~ \"heap$\"", 1), ("who.name == \"\"", 1),
                             ("title == \"doctor\"", 1), ("title != \"doctor\"", 2), ("title =~ \"^doctor$\"", 1), ("title =~ \"sor$\"", 2),
                             ("raw == \"bob\"", 1), ("weight == 70.5", 1), ("weight > 65 && weight < 90", 2), ("both.first == 4", 1),
                             ("both.second == 2 && both.first > 3", 2), ("(who.age > 3 ? both.first : 100) == 5", 1),
                             ("(who.age == 4 ? weight : 0) > 70.25", 1), ("(title == \"doctor\" ? 1 : 0) != 0", 1), ("mood == 10", 1), ("weight", 3), ("!weight", 0), ("weight ? who.age == 4 : 0", 1)):
        found = trace.ask("all", "func_enter", "where", "func==\"*visit*\" and " + condition)
        assert len(found) == count, (condition, found)
    for condition in ("title == 3", "both == 3", "who.name ? 1 : 2", "weight =~ \"a\""):
        result = trace.tbdq("count", "func_enter", "where", "func==\"*visit*\" and (%s)" % condition, json_output=False)
        assert result.code == 2 and len(result.err.splitlines()) >= 3, (condition, result)


def test_sums_in_vector_registers(folder):
    _, trace = tbdtest.record([tbdtest.program("hot_values"), "3000"], folder, "window=7000")
    values = [dict(v, sum=v["sum"] * 0.5 + (v["mixed"] & 1023)) for v in rounds(3000)]  # when it is written to `reals`
    here = "func==churn and addr>=&reals and addr<&reals+32 and "
    for condition, holds in (("sum > 1500", lambda v: v["sum"] > 1500), ("sum / 2 < 300 && i > 10", lambda v: v["sum"] < 600 and v["i"] > 10),
                             ("(i % 2 == 0 ? sum : 0) > 1000", lambda v: v["i"] % 2 == 0 and v["sum"] > 1000)):
        found, replayed = explained(trace, here + "(%s)" % condition, "1")
        assert found == sum(1 for v in values if holds(v)) and found > 10 and replayed > 0, (condition, found, replayed)


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
