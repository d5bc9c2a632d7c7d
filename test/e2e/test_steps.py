#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Steps in both directions lead where gdb's do, from random moments of programs at -O0, -Og and -O2; stacks and scalar variables there are
gdb's.

A difference must have a reason that stepping.py knows, which it checks against the list of single-stepped instructions: gdb 13 has
shortcomings that tbdq need not share.  Under gdb's process record every command is tried at every moment.  It does not do signals,
longjmp and some instructions; there, steps forward are compared with those of a run of its own.  With TBD_LONG=1: all programs, else a sample;
TBD_STEPS=tails.c,shapes.cc chooses among them, TBD_LEVELS=O0,O2 among the levels."""
import collections
import os
import re
import subprocess

import stepping
import tbdtest
from test_gdb import same_values, tidy_name

LEVELS = tuple(filter(None, os.environ.get("TBD_LEVELS", "").split(","))) or ("O0", "Og", "O2")
CHOSEN = list(filter(None, os.environ.get("TBD_STEPS", "").split(",")))
REPLAYED = ["calls.c", "loops.c", "inlined.c", "values.c", "objects.cc", "templates.cc", "throws.cc",
            "parser.c", "tables.c", "machine.c", "matrices.c", "tails.c", "trees.c", "sorting.cc", "shapes.cc", "visits.cc", "generators.cc",
            "clones.c", "cold.c", "variadic.c", "states.c", "nested.c", "layers.c", "diamond.cc", "lambdas.cc", "chains.cc"]
NATIVE = REPLAYED + ["jumps.c", "handlers.c", "recover.c", "deep_throws.cc", "../variables.c"]
COMMANDS = stepping.FORWARD + stepping.BACKWARD
MOMENTS = 75 if tbdtest.LONG else 3
# gdb replays an unwinder's instructions one by one: a step takes it a second, and each time that it dies it records anew.
FEWER = {"throws.cc": 25}


def programs(names, quick, folder, fewer=None):
    """Programs, built and recorded; with moments, of some programs fewer than of the others."""
    every = [(name, level) for name in names for level in LEVELS if not CHOSEN or name in CHOSEN]
    for name, level in every if tbdtest.LONG else quick:
        place = os.path.join(folder, name + level)
        program = stepping.Program(stepping.built(name, level, place), place + "/traces")
        print("        %s: %d instructions" % (program.name, len(program.states)), flush=True)
        yield program, program.moments(min(MOMENTS, (fewer or {}).get(name, MOMENTS)), name + level)


class Differences:
    """All of the programs, to be seen in one run."""

    def __init__(self):
        self.found = []

    def collect(self, check, *what):
        try:
            check(*what)
        except AssertionError as error:
            self.found.append(str(error))
            print("        " + self.found[-1], flush=True)

    def assert_none(self):
        assert not self.found, "%d without a reason, the first is %s" % (len(self.found), self.found[0])


def assert_tried(moments, of_all):
    """There are at least so many moments, where that many are of all programs."""
    if CHOSEN and not moments:
        raise tbdtest.Skip("none of the chosen programs belongs to it")
    assert moments >= (of_all if tbdtest.LONG and not CHOSEN else 5), moments


def compare(program, command, at, wanted, found, frames, tally):
    """`wanted`, `found`: numbers."""
    tally["steps"] += 1
    if wanted == found:
        return
    reason = stepping.explain(program, command, at, wanted, found, frames)
    tally[reason] += 1
    assert reason, "%s %s at %s: gdb %s, tbdq %s" % (program.name, command, program.text(at), program.text(wanted), program.text(found))


def shown(function):
    """Without template arguments, parameters and namespaces; libraries have several names for a function."""
    name = re.sub(r"\[abi:\w+\]", "", function)
    while re.search(r"<[^<>]*>", name):
        name = re.sub(r"<[^<>]*>", "", name)
    name = re.sub(r"\{lambda\([^{}]*\)#\d+\}|(?<!operator)\([^()]*\)(?: const)?(?=::)", "", name)
    return tidy_name(name).split("::")[-1]


def is_own(frame, program):
    return frame["pc"] is not None and int(frame["pc"], 16) < 0x500000  # it is linked at fixed addresses, below all libraries


def check_stack(program, at, wanted, found, tally):
    ours = [(shown(f["function"]) if is_own(f, program) else "", f.get("line", 0), f["inlined"]) for f in found[:len(wanted)]]
    theirs = [(shown(name) if mine[0] else "", line, inlined) for (name, line, inlined, _), mine in zip(wanted, ours)]
    if len(found) < len(wanted) or ours != theirs:
        reason = stepping.explain_stack(program, found, ours, theirs)
        assert reason, (program.name, program.text(at), ours, theirs)
        tally[reason] += 1


def check_value(program, at, frame, difference, tally):
    reason = stepping.explain_value(program, at, frame, *difference)
    assert reason, (program.name, program.text(at), frame, difference)
    tally[reason] += 1


def check_variables(program, said, stacks, tally, all_differences):
    """Of the program's own functions.  What a register held when a function was entered is not always known to tbdq.  Left out is code where
    gdb shows other values than the location lists and registers give: of the library at -Og, and functions with constant parameters."""
    depths = [min(4, len(row[3])) for row in said]
    found = stepping.variables(program, [row[0] for row in said], depths)
    for row, depth, stack in zip(said, depths, stacks):
        for number in range(depth):
            wanted = row[3][number][3]
            if not wanted or not is_own(stack[number], program) or program.name == "templates_Og" or \
               "constprop" in stack[number]["function"] or (number == 0 and stepping.is_in_prologue(program, row[0])):
                continue
            ours = {}
            for v in found[row[0], number]:
                if "at the function's entry is not known" not in v["value"]:
                    ours.setdefault(v["name"], []).append(re.sub(r"^(0x[0-9a-f]+) <.*>$", r"\1", v["value"]))
            differences, count = same_values(ours, wanted)
            for difference in differences:
                all_differences.collect(check_value, program, row[0], number, difference, tally)
            tally["values"] += count


def test_steps_lead_where_gdb_s_do(folder):
    tally, differences = collections.Counter(), Differences()
    for program, moments in programs(REPLAYED, [("loops.c", "O0"), ("inlined.c", "O2")], folder, FEWER):
        said, stacks = program.gdb(moments, COMMANDS), []
        for (at, pc, sp, frames, theirs), (ours, leads) in zip(said, program.tbdq(moments, COMMANDS)):
            assert program.states[program.index_of[at]][1] == pc, "the runs differ: %s" % program.text(at)
            tally["moments"] += 1
            differences.collect(check_stack, program, at, frames, ours, tally)
            stacks.append(ours)
            for command, wanted, lead in zip(COMMANDS, theirs, leads):
                if wanted in ("end", stepping.DIED):  # the end of what gdb recorded
                    tally[wanted] += 1
                else:
                    differences.collect(compare, program, command, at, wanted, lead[0] if lead else None, frames, tally)
        check_variables(program, said, stacks, tally, differences)
    print("        %s" % dict(tally))
    differences.assert_none()
    assert_tried(tally["moments"], 1000)
    assert tally["steps"] >= 6 * tally["moments"] and tally["values"] > 10, tally


def test_a_statement_begins_where_a_path_through_it_does_too(folder):
    """One address has a row that begins a statement, and one with a discriminator after it: steps end there, as gdb's do."""
    program = stepping.Program(stepping.built("visits.cc", "O2", folder), folder + "/traces")
    moments, commands, lines = program.numbers[1:6], ["step", "next"], []
    for (at, _, _, _, theirs), (_, leads) in zip(program.gdb(moments, commands), program.tbdq(moments, commands)):
        assert theirs == [lead and lead[0] for lead in leads], (program.text(at), [program.text(number) for number in theirs], leads)
        lines += [program.states[program.index_of[number]][4] for number in theirs]
    assert lines.count(69) >= 4, lines


def test_step_into_a_function_ends_at_the_next_row_after_its_prologue(folder):
    """Be that row a statement or not: `reversed` of matrices.c has its only statements of lines 49 and 50 at its entry."""
    program = stepping.Program(stepping.built("matrices.c", "O2", folder), folder + "/traces")
    entered = [i for i, state in enumerate(program.states) if state[3] == "reversed" and program.states[i - 1][5].startswith("call")]
    calls = [program.numbers[i - 1] for i in entered if program.states[i - 1][3] == "main"]
    assert len(calls) == 2 and program.states[entered[0]][5].startswith("push"), entered
    for (at, _, _, _, theirs), (_, leads) in zip(program.gdb(calls, ["step"]), program.tbdq(calls, ["step"])):
        assert theirs == [lead and lead[0] for lead in leads], (program.text(at), program.text(theirs[0]), leads)
        assert program.states[program.index_of[theirs[0]]][3] == "reversed"


def test_a_thunk_is_not_the_function_that_it_leads_to(folder):
    program = stepping.Program(stepping.built("shapes.cc", "Og", folder), folder + "/traces")
    entered = [i for i, state in enumerate(program.states) if state[3] == "Circle::length" and program.states[i - 1][3] != state[3]]
    thunks = [i for i, state in enumerate(program.states)
              if state[3] == "non-virtual thunk to Circle::length" and program.states[i - 1][5].startswith("call")]
    assert len(entered) == len(thunks) == 4
    for name in ("Circle::length", "length"):
        for question in (["all", "func_enter", "where", "func==" + name], ["calls", name]):
            assert len(program.trace.ask(*question)) == len(entered), question
    calls = [program.numbers[i - 1] for i in thunks]
    for at, (_, leads) in zip(calls, program.tbdq(calls, ["step"])):
        assert program.index_of[leads[0][0]] in entered, (program.text(at), leads)


def test_next_leads_out_of_thunks_and_of_code_moved_before_its_statement(folder):
    """A thunk jumps to a function that begins with an inlined one; code of an inlined function is above the function's start, or of its caller."""
    for level in ("Og", "O2"):
        program = stepping.Program(stepping.built("diamond.cc", level, os.path.join(folder, level)), os.path.join(folder, level, "traces"))
        moments = [number for number, state in zip(program.numbers, program.states)
                   if state[2] == program.name and state[4] is not None and
                   (" thunk to " in state[3] or state[3] == "Motor::~Motor" or state[3] == "main" and state[4] in (7, 11))][:40]
        assert len(moments) > 10
        for (at, _, _, frames, theirs), (_, leads) in zip(program.gdb(moments, ["next"]), program.tbdq(moments, ["next"])):
            compare(program, "next", at, theirs[0], leads[0] and leads[0][0], frames, collections.Counter())


def test_step_enters_a_thunk_that_has_the_function_s_code(folder):
    program = stepping.Program(stepping.built("shapes.cc", "O2", folder), folder + "/traces")
    entered = [i for i, state in enumerate(program.states)
               if state[3] == "non-virtual thunk to Circle::length" and program.states[i - 1][5].startswith("call")]
    if not entered or any(not program.states[i + 1][5].startswith("ret") for i in entered):
        raise tbdtest.Skip("this compiler's thunks jump to the function")
    for i, (_, leads) in zip(entered, program.tbdq([program.numbers[i - 1] for i in entered], ["step"])):
        assert leads[0] and leads[0][0] == program.numbers[i] and program.states[i][4] is not None, (program.text(program.numbers[i]), leads)


def test_copies_deep_within_each_other_are_told_apart(folder):
    program = stepping.Program(stepping.built("layers.c", "Og", folder), folder + "/traces")
    moments = [number for number, state in zip(program.numbers, program.states)
               if state[2] == program.name and len(program.chains.get(state[1], [])) > 14][:8:2]
    commands = ["step", "next", "finish"]
    assert len(moments) == 4
    for (at, _, _, _, theirs), (_, leads) in zip(program.gdb(moments, commands), program.tbdq(moments, commands)):
        assert theirs == [lead and lead[0] for lead in leads], (program.text(at), [program.text(number) for number in theirs], leads)


def test_a_handler_that_jumps_away_is_passed_over(folder):
    """From the instruction that faults, which nexti stops at, to where the handler's siglongjmp leads."""
    program = stepping.Program(stepping.built("recover.c", "O2", folder), folder + "/traces")
    handler = [i for i, state in enumerate(program.states) if state[3] == "on_fault"]
    before, after = handler[0] - 1, next(i for i in range(handler[-1], len(program.states)) if program.states[i][3] == "peek")
    (_, leads), = program.tbdq([program.numbers[before]], ["nexti", "nexti 2", "nexti 3", "next"])
    assert leads[0][0] is None and program.states[before][1] < leads[0][1] < program.states[before][1] + 8, leads
    assert [lead[0] for lead in leads[1:3]] == program.numbers[after:after + 2] and leads[3][0] > program.numbers[after], (program.text(after), leads)
    assert program.states[program.index_of[leads[3][0]]][3] == "peek" and leads[3][2] == leads[0][2], leads


def test_parameters_of_a_callback_are_what_the_library_passed(folder):
    """At -Og they are known from the caller's call site alone, which takes the function from its own frame."""
    program = stepping.Program(stepping.built("tables.c", "Og", folder), folder + "/traces")
    calls = [number for number, state in zip(program.numbers, program.states) if state[3] == "by_count"]
    entered = [number for number in calls if number - 1 not in calls]
    later = [entered[0] + 5, entered[1] + 5]
    if stepping.stack_of(program, later[0])[1].get("line", 0) == 0:
        raise tbdtest.Skip("the C library has no debug information here")
    for at, inside in zip(entered, later):
        first, last = ([v["value"] for v in stepping.variables(program, [number], [1])[number, 0] if v["name"] in ("a", "b")] for number in (at, inside))
        assert first == last and all(value.startswith("0x") for value in first), (first, last)


def test_a_clone_is_called_as_its_function(folder):
    """NAME.constprop.0 and the like are the function, made for some of its callers, and often all that there is of it."""
    path = stepping.built("clones.c", "O2", folder)
    names = re.findall(r" t (level\S*)$", subprocess.run(["nm", path], stdout=subprocess.PIPE, check=True).stdout.decode(), re.M)
    if names != ["level.constprop.0"]:
        raise tbdtest.Skip("this compiler makes no clone of it: %s" % names)
    trace = tbdtest.record([path], folder)[1]
    for question in (["all", "func_enter", "where", "func==level"], ["calls", "level"], ["all", "func_enter", "where", "stack=<**,main,level>"]):
        rows = trace.ask(*question)
        assert len(rows) >= 4 and {row["function"] for row in rows} == {"level.constprop.0"}, (question, rows)
    assert trace.one("goto", "first", "forward", "func_enter", 1, "where", "func==level")["line"] in (5, 6)


def test_finish_leaves_a_copy_from_code_before_its_entry(folder):
    """Optimization moves what std::allocator's inlined functions pass to `operator new` before the address where their copies begin."""
    program = stepping.Program(stepping.built("templates.cc", "O2", folder), folder + "/traces")
    moments = [program.numbers[i - 2] for i, state in enumerate(program.states[:-1])
               if state[5].startswith("call") and "_M_realloc_insert" in (state[3] or "") and
               (program.states[i + 1][3] or "").startswith("operator new")]
    assert moments
    for (at, _, _, _, theirs), (_, leads) in zip(program.gdb(moments, ["finish"]), program.tbdq(moments, ["finish"])):
        assert leads[0] and theirs[0] == leads[0][0], (program.text(at), program.text(theirs[0]), leads)


def test_reverse_step_leads_from_a_landing_pad_into_what_was_left(folder):
    """Into the function that threw, or the cleanup that went on unwinding: the last code with lines that the single-stepped list has before, or
    from its middle into a function that it has called."""
    for level in LEVELS if tbdtest.LONG else ("Og",):
        program = stepping.Program(stepping.built("throws.cc", level, os.path.join(folder, level)), os.path.join(folder, level, "traces"))
        landings = [program.numbers[i] for i, state in enumerate(program.states)
                    if i and state[2] == program.name and (program.states[i - 1][3] or "").startswith("_Unwind_")]
        assert len(landings) > 5
        for at, (_, leads) in zip(landings, program.tbdq(landings, ["reverse-step"])):
            before = [state for state in program.states[:program.index_of[at]] if state[2] == program.name and state[4] is not None][-1]
            first = program.index_of[leads[0][0]]
            between = {state[3:5] for state in program.states[first:program.index_of[at]] if state[2] == program.name and state[4] is not None}
            assert between <= {program.states[first][3:5], before[3:5]}, (program.text(at), program.text(leads[0][0]), before, between)


def test_code_that_was_moved_away_belongs_to_its_function(folder):
    """NAME.cold: no function of its own, whatever led there.  gdb steps as we do; what called the function the single-stepped list tells."""
    program = stepping.Program(stepping.built("cold.c", "O2", folder), folder + "/traces")
    moved = [program.numbers[i] for i, state in enumerate(program.states) if (state[3] or "").endswith(".cold")]
    assert len(moved) > 20
    for at, (_, leads) in zip(moved, program.tbdq(moved, ["reverse-finish"])):
        assert leads[0] and stepping.goes_to_call(program, at, leads[0][0]), (program.text(at), leads)
    first = [at for at in moved if (program.states[program.index_of[at] - 1][3] or "") != program.states[program.index_of[at]][3]]
    commands = ["next", "finish", "reverse-next", "reverse-step"]
    for (at, _, _, frames, theirs), (_, leads) in zip(program.gdb(first, commands), program.tbdq(first, commands)):
        for command, wanted, lead in zip(commands, theirs, leads):
            compare(program, command, at, wanted, lead[0] if lead else None, frames, collections.Counter())
    start = subprocess.run(["nm", program.path], stdout=subprocess.PIPE, check=True).stdout.decode()
    start = {name: int(at, 16) for at, name in re.findall(r"^(\w+) . (\S+)$", start, re.M)}
    for name, calls in (("checked", 6), ("leaves", 6), ("chosen", 6)):
        for question in (["all", "func_enter", "where", "func==" + name], ["calls", name]):
            assert len(program.trace.ask(*question)) == calls, question
        entered = {int(e["pc"], 16) for e in program.trace.ask("all", "block_entry", "where", "func==" + name)}
        assert entered & set(range(start[name + ".cold"], start[name + ".cold"] + 30)) and start[name] in entered, entered
        assert int(program.trace.ask("disas", name)[0]["pc"], 16) == start[name]
        assert int(program.trace.one("print", "&" + name)["data"], 16) == start[name]


# What a wrong command would do: the way of another one, or an instruction more or less.  Not found would be reverse-step that goes back by
# one instruction within a line: stepping.is_beginning() does not ask whether a statement begins there.
FAULTS = [("nexti", "stepi"), ("step", "stepi"), ("step", "next"), ("next", "step"), ("next", "finish"), ("finish", "next"), ("until", "stepi"),
          ("until", "finish"), ("reverse-nexti", "reverse-stepi"), ("reverse-step", "reverse-next"),
          ("reverse-next", "reverse-step"), ("reverse-next", "reverse-finish"), ("reverse-finish", "reverse-next")] + \
         [(command, by) for command in COMMANDS for by in (-1, 1)]


def planted(program, leads, command, fault):
    """Where the wrong command leads."""
    lead = leads[COMMANDS.index(fault if isinstance(fault, str) else command)]
    number = lead[0] if lead else None
    if isinstance(fault, str) or number not in program.index_of:
        return number
    return program.numbers[min(max(program.index_of[number] + fault, 0), len(program.numbers) - 1)]


def is_found(program, said, answers, command, fault):
    """Does the comparison fail?"""
    for (at, _, _, frames, theirs), (_, leads) in zip(said, answers):
        wanted = theirs[COMMANDS.index(command)]
        if wanted not in ("end", stepping.DIED):
            try:
                compare(program, command, at, wanted, planted(program, leads, command, fault), frames, collections.Counter())
            except AssertionError:
                return True
    return False


def test_a_wrong_command_is_found(folder):
    """No reason of stepping.py is so wide that it explains a fault away."""
    left, tally = list(FAULTS), collections.Counter()
    for name, level in (("calls.c", "O0"), ("inlined.c", "O2"), ("loops.c", "Og")):  # the last one in case the others found less
        if not left:
            break
        program = stepping.Program(stepping.built(name, level, folder), os.path.join(folder, name))
        moments = program.moments(30, name)
        said, answers = program.gdb(moments, COMMANDS), program.tbdq(moments, COMMANDS)
        left = [fault for fault in left if not is_found(program, said, answers, *fault)]
        tally[name] = len(left)
    print("        %d faults; not found after each program: %s" % (len(FAULTS), dict(tally)))
    assert not left, left


def is_same(lead, wanted):
    return wanted == "end" or (lead is not None and lead[1:] == wanted)


def test_steps_forward_lead_where_a_run_of_gdb_s_own_does(folder):
    tally, differences = collections.Counter(), Differences()
    for program, moments in programs(NATIVE, [("jumps.c", "O0"), ("handlers.c", "O2")], folder):
        answers = dict(zip(moments, program.tbdq(moments, stepping.FORWARD)))
        tally["moments"] += len(moments)
        for number, command in enumerate(stepping.FORWARD):
            for at, wanted in program.gdb_natively(moments, command).items():
                frames, leads = answers[at]
                lead = leads[number]
                if not is_same(lead, wanted):
                    # gdb tells no start of an inlined function where a breakpoint is, even if it is to be ignored: this time no other one is set.
                    wanted = program.gdb_natively([at], command).get(at, wanted)
                if is_same(lead, wanted):
                    tally["steps"] += 1
                    continue
                pc = program.recorded_pc(wanted[0])
                there = [n for n in program.numbers if n > at and program.states[program.index_of[n]][1] == pc]
                differences.collect(compare, program, command, at, there[0] if there else -1, lead[0] if lead else None,
                                    [(f["function"], f.get("line"), f["inlined"]) for f in frames], tally)
    print("        %s" % dict(tally))
    differences.assert_none()
    assert_tried(tally["moments"], 2000)
    assert CHOSEN or tally["steps"] >= 2 * tally["moments"], tally


if __name__ == "__main__":
    tbdtest.main(*[f for n, f in sorted(globals().items()) if n.startswith("test_")])
