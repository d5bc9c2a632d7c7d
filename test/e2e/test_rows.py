#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Rows over a whole run, against gdb and against each other; their tables, CSV and JSON; docs/JSON.md."""
import csv
import datetime
import io
import json
import os
import re
import subprocess

import othertools
import tbdtest

OPTIONS = "window=500000"


def fixed(kind, folder):
    """(program, trace at fixed addresses, environment in which gdb sees the same ones)"""
    path = tbdtest.program("variables_" + kind)
    tbdtest.record(tbdtest.fixed([path]), folder, OPTIONS)
    return path, tbdtest.find_trace(folder, path), tbdtest.idle_env(folder, OPTIONS)


def recorded(kind, folder, options="window=500"):
    return tbdtest.record([tbdtest.program("variables_" + kind)], folder, options)[1]


def line_of(code):
    """The line of variables.c that begins so."""
    with open(os.path.join(tbdtest.SOURCE, "test/programs/variables.c"), encoding="utf-8") as source:
        return [line.strip() for line in source].index(code) + 1


def test_calls_are_gdb_s_breakpoints_and_finish_values(folder):
    path, trace, env = fixed("O0_5", folder)
    wanted = othertools.gdb_script([path], """
class Leave(gdb.FinishBreakpoint):
    def __init__(self, row):
        super().__init__(gdb.newest_frame(), internal=True)
        self.row = row
    def stop(self):
        self.row.append(None if self.return_value is None else int(self.return_value))
        return False
names = {"depth": ["n"], "add": ["a", "b"], "push": ["key"]}
rows = []
for name in names:
    gdb.Breakpoint(name)
run()
while alive():
    frame = gdb.newest_frame()
    rows.append([frame.name(), [int(frame.read_var(n)) for n in names[frame.name()]]])
    Leave(rows[-1])
    go()
say(rows)
""", env=env)[0]
    assert len(wanted) == 14, wanted
    for name, shown in (("depth", ["n"]), ("add", ["a", "b"]), ("push", ["key"])):
        rows = trace.ask("calls", name)
        found = []
        for row in rows:
            values = dict(v.split("=", 1) for v in row["values"])
            found.append([name, [int(values[n]) for n in shown], int(row["result"]) if row["result"] else None])
        assert found == [w if len(w) == 3 else w + [None] for w in wanted if w[0] == name], (name, found, wanted)
        exits = [(tbdtest.number(r["retval"]), r["exit"]) for r in rows]
        assert exits == sorted(exits, key=lambda e: [tbdtest.number(x) for x in e[1].split("+")]) or name == "depth"
    assert [r["nesting"] for r in trace.ask("calls", "depth")] == list(range(7))


def test_stores_are_gdb_s_watchpoint_hits(folder):
    othertools.need_watchpoints()
    path, trace, env = fixed("O0_4", folder)
    for name, size in (("counter", 4), ("hidden", 8)):
        address = othertools.symbol_address(path, name)
        wanted = [v for _, v in othertools.gdb_accesses([path], address, size, env, reads=False)]
        rows = trace.ask("stores", "of", name, at="last")
        changes = [tbdtest.number(r["newval"]) for r in rows if r["newval"] != r["oldval"]]
        assert changes == wanted and changes, (name, changes, wanted)
        history = trace.ask("history", name, at="last")
        assert [int(r["value"]) % 2 ** (8 * size) for r in history[1:]] == changes, (name, history)
        assert [r["to"] for r in history[:-1]] == [r["position"] for r in rows if r["newval"] != r["oldval"]]


def test_rows_agree_with_all_and_with_counts(folder):
    trace, line = recorded("O2_5", folder), line_of("counter++;")
    for command, question in ((["stores", "of", "counter"], ["store", "of", "counter"]), (["syscalls"], ["syscall"]),
                              (["lines", "variables.c:%d" % line], ["line", "where", "src=<variables.c,%d>" % line])):
        rows, events = trace.ask(*command, at="last"), trace.ask("all", *question, at="last")
        assert [r["position"] for r in rows] == [tbdtest.position(e) for e in events] and rows, command
        for by in ("func", "line", "value"):
            counts = trace.ask("count", *question, "by", by, at="last")
            assert sum(c["count"] for c in counts) == len(events), (question, by, counts)
            assert [c["count"] for c in counts] == sorted((c["count"] for c in counts), reverse=True)


def test_trace_lists_the_lines_that_ran(folder):
    trace = recorded("O0_5", folder)
    call = trace.ask("calls", "add")[0]
    rows = trace.ask("trace", call["position"], call["exit"])
    source = open(os.path.join(tbdtest.SOURCE, "test/programs/variables.c"), encoding="utf-8").read().splitlines()
    assert [r["function"] for r in rows] == ["add"] * len(rows) and len(rows) >= 3
    assert all(r["code"] == source[r["line"] - 1] for r in rows), rows
    assert any("counter++" in r["code"] for r in rows)


def test_why_follows_copies_to_what_made_a_value(folder):
    trace = recorded("O0_5", folder)
    sum_list = trace.one("goto", "last", "backward", "func_exit", 1, "where", "func==sum_list")
    hops = trace.ask("why", "hidden", at=tbdtest.position(sum_list))
    assert hops[0]["depth"] == 0 and max(h["depth"] for h in hops) == 3, hops
    assert hops[1]["text"].startswith("add ") and hops[1]["what"] == "calculated here from rax, rdx", hops
    assert {h["function"] for h in hops if "calculated" in h["what"]} >= {"sum_list"}, hops
    hops = trace.ask("why", "/0", "nodes[3].key", at=tbdtest.position(trace.one("goto", "last", "backward", "line", 1, "where", "func==main")))
    assert hops[0]["function"] == "push" and hops[-1]["function"] == "main" and len(hops) >= 4, hops
    assert "imul" in hops[-1]["text"] or "calculated" in hops[-1]["what"], hops
    positions = [[int(x) for x in (h["position"] + "+0").split("+")[:2]] for h in hops]
    assert positions == sorted(positions, reverse=True), positions
    end = trace.ask("why", "paint", at="last")[-1]
    assert end["what"].startswith("there since the start") and "variables_O" in end["what"], end
    assert end["position"] is None and not {"pc", "text", "function", "source"} & set(end), end # no instruction made it


def test_history_of_a_parameter_begins_where_it_is_stored(folder):
    """At the first instruction of unoptimized code it is still in a register."""
    trace = recorded("O0_5", folder)
    trace.one("goto", "first", "forward", "func_enter", 1, "where", "func==push")
    passed = trace.one("print", "key")["value"]
    rows = trace.ask("history", "key")
    assert rows[0]["value"] == passed and rows[0]["function"] == "push", (passed, rows)
    trace.one("goto", "last", "backward", "line", 1, "where", "func==main")
    text = trace.tbdq("ptype", "nodes", json_output=False).out.decode().splitlines()
    assert text[0].startswith("struct node [") and text[1].startswith("struct node, ") and any(" next" in line for line in text), text


def test_tables_csv_and_json_say_the_same(folder):
    trace = recorded("O0_4", folder)
    rows = trace.ask("calls", "push")
    table = trace.tbdq("calls", "push", json_output=False).out.decode().splitlines()
    text = tbdtest.run([tbdtest.TBDQ, "-t", trace.path, "--csv", "calls", "push"], stdin=None).out.decode()
    parsed = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == len(table) - 1 == len(parsed) == 5 and table[0].split() == list(parsed[0])
    for row, line, cells in zip(rows, table[1:], parsed):
        assert cells["position"] == row["position"] == line.split()[0] and cells["values"] == ", ".join(row["values"])
    assert trace.tbdq("stores", "of", "nothing", at="last", json_output=False).out == b"none\n"


# ---- docs/JSON.md ----

TYPES = {"string": str, "number": int, "array": list, "boolean": bool, "object": (dict, list, str, int, float, bool, type(None))}


def documented():
    """{name of an object: {key: (type, optional)}} from the tables of docs/JSON.md."""
    objects, name = {}, None
    for line in open(os.path.join(tbdtest.SOURCE, "docs/JSON.md"), encoding="utf-8"):
        head = re.match(r"^## `([\w ]+)`", line)
        row = re.match(r"^\| `(\w+)` \| (\w+)( or null)?(, optional)? \|", line)
        if head:
            name = head.group(1)
            objects[name] = {}
        elif line.startswith("Keys of `event`") and name:
            optional = ", optional" in line
            objects[name] = {k: (t, n, o or optional) for k, (t, n, o) in objects["event"].items()}
        elif row and name:
            objects[name][row.group(1)] = (row.group(2), bool(row.group(3)), bool(row.group(4)))
    return objects


def check_object(name, keys, found):
    for key, value in found.items():
        assert key in keys, "%s: %s is not in docs/JSON.md: %r" % (name, key, found)
        kind, may_be_null, _ = keys[key]
        assert (value is None and may_be_null) or (value is not None and isinstance(value, TYPES[kind])), (name, key, value)
    missing = [k for k, (_, _, optional) in keys.items() if not optional and k not in found]
    assert not missing, "%s: no %s in %r" % (name, missing, found)


def test_answers_are_as_documented(folder):
    trace, objects = recorded("O0_5", folder), documented()
    assert len(objects) >= 12, objects
    questions = {"event": [["goto", "first"], ["all", "store", "where", "func==push"], ["all", "load", "where", "func==push"], ["all", "func_enter"],
                           ["all", "func_exit"], ["all", "syscall"], ["all", "line", "where", "func==main"], ["step"]],
                 "stores": [["stores", "of", "hidden"]], "calls": [["calls", "push"], ["calls", "printf"]], "lines": [["lines", "variables.c:%d" % line_of("counter++;")]],
                 "syscalls": [["syscalls"]], "count": [["count", "store", "of", "counter", "by", "line"]], "history": [["history", "counter"]],
                 "trace": [["trace", "first", "365"], ["trace", "first", "400"]], "why": [["why", "hidden"]], "marks": [["marks"]],
                 "mem": [["mem", "&counter", "16"]], "print": [["print", "counter"], ["print", "points"]], "x": [["x/2gx", "&counter"]], "bt": [["bt"]], "threads": [["threads"]], "not found": []}
    trace.ask("mark", "here", at="last")
    for name, asked in questions.items():
        for words in asked:
            for found in trace.ask(*words, at="last"):
                check_object(name, objects[name], found)
    check_object("not found", objects["not found"], json.loads(trace.tbdq("goto", "first", "forward", "store", 1, "where", "time==0+0").out))


IMPORTS = """
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) int work(int n)
{
    char text[64];
    snprintf(text, sizeof(text), "%d", n);
    return abs(atoi(text));
}
int main(void)
{
    int sum = 0;
    for (int i = 0; i < 9; i++) {
        sum += work(i);
        puts("x");
    }
    return sum != 36;
}
"""


def test_callers_are_not_import_stubs(folder):
    source = folder + "/imports.c"
    with open(source, "w", encoding="utf-8") as f:
        f.write(IMPORTS)
    for binding in ("lazy", "now"):
        path = folder + "/" + binding
        # -O0: no call is a tail call, and none is left out.
        subprocess.run(["cc", "-g", "-O0", "-fno-builtin", "-Wl,-z," + binding, "-o", path, source], check=True)
        for options in ("", "window=150"):
            trace = tbdtest.record([path], folder + "/traces-" + binding + options, options)[1]
            both = (("puts", "main"), ("snprintf", "work"), ("atoi", "work"), ("work", "main"))
            answers = trace.script([line for function, caller in both for line in
                                    ("calls " + function, "all func_enter where stack=<**,%s,%s>" % (caller, function))])
            for (function, caller), rows, stacked in zip(both, answers[::2], answers[1::2]):
                assert len(rows) == 9, (binding, options, function, rows)
                stacks = trace.script([line for row in rows for line in ("goto " + tbdtest.position(row), "bt")])[1::2]
                for row, frames in zip(rows, stacks):
                    assert re.match(r"%s!%s\+0x" % (binding, caller), row["caller"]), (binding, options, row)
                    assert frames[1]["function"] == caller, (row, frames)
                assert [tbdtest.position(e) for e in stacked] == [tbdtest.position(row) for row in rows], (function, stacked)
            counts = {row["by"]: row["count"] for row in trace.ask("count", "func_enter", "by", "func")}
            assert not [name for name in counts if "@plt" in name or "_dl_runtime_resolve" in name], counts
            assert counts["libc.so.6!puts"] == 9 and counts[binding + "!work"] == 9, counts


def fib_calls(n, nesting=0):
    """(n, nesting, result) of each call of fib() in recursion.c, by entry."""
    inner = [] if n < 2 else fib_calls(n - 1, nesting + 1) + fib_calls(n - 2, nesting + 1)
    result = n if n < 2 else sum(row[2] for row in inner if row[1] == nesting + 1)
    return [(n, nesting, result)] + inner


def cells_of(row):
    """The row's texts as CSV has them."""
    left = "left by exception or longjmp" if row.get("left") else ""
    texts = {**row, "exit": row["exit"] or left, "values": ", ".join(row["values"]), "result": row.get("result"), "duration": row.get("duration")}
    texts = {key: "" if texts[key] is None else str(texts[key]) for key in CELLS}
    return {key: "'" + text if re.match(r"[-=+@](?![\d.]+$)", text) else text for key, text in texts.items()}


NEXT = "=== the next answer ==="
CELLS = ("position", "exit", "nesting", "thread", "function", "values", "result", "duration", "caller")


def check_cells(trace, rows):
    """Tables and CSV are made without the rows' objects; `rows`: {function: those of its calls}."""
    lines = "".join("echo %s\n- calls %s\n" % (NEXT, function) for function in rows)
    said = tbdtest.run([tbdtest.TBDQ, "-t", trace.path, "--csv"], stdin=lines.encode())
    texts = said.out.decode().split(NEXT + "\n")[1:]
    assert said.code == 0 and len(texts) == len(rows), said
    for (function, objects), text in zip(rows.items(), texts):
        assert list(csv.DictReader(io.StringIO(text))) == [cells_of(row) for row in objects], (function, text, objects)


def test_calls_are_filtered_by_all_that_rows_show(folder):
    trace = tbdtest.record([tbdtest.program("recursion")], folder, "window=2000,level3=1,level2=1")[1]
    rows = trace.ask("calls", "fib")
    shown = [(int(row["values"][0].split("=")[1]), row["nesting"], int(row["result"])) for row in rows]
    assert shown == fib_calls(18)
    for condition, holds in (("retval == 34", lambda row, n: int(row["result"]) == 34),
                             ("n > 2 and retval == n", lambda row, n: n > 2 and int(row["result"]) == n),
                             ("nesting == 3 or retval > 500", lambda row, n: row["nesting"] == 3 or int(row["result"]) > 500),
                             ("not (nesting < 16)", lambda row, n: row["nesting"] >= 16),
                             ("duration > 1000 and returned == 1", lambda row, n: row["duration"] > 1000),
                             ("caller == main", lambda row, n: row["caller"].startswith("recursion!main")),
                             ("caller != main and thread == %d and arg0 == 9" % rows[0]["thread"], lambda row, n: n == 9)):
        wanted = [row for row in rows if holds(row, int(row["values"][0].split("=")[1]))]
        assert wanted and trace.ask("calls", "fib", "where", condition) == wanted, condition
    for row in rows[::500]:
        assert row["duration"] == int(row["exit"].split("+")[0]) - row["time"], row
    wrong = trace.tbdq("calls", "fib", "where", "nestin == 3")
    assert wrong.code == 2 and b"nestin" in wrong.err, wrong


def test_calls_search_each_window_once_and_only_those_with_ends(folder):
    trace = tbdtest.record([tbdtest.program("recursion")], folder, "window=500,level3=1,level2=1")[1]
    windows = trace.info()["windows"]
    for function in ("main", "is_even", "fib", "ackermann"):
        said = trace.tbdq("--no-cache", "--explain", "calls", function).err.decode()
        searched = int(re.findall(r"(\d+) searched", said)[-1])
        assert searched == int(re.findall(r"(\d+) replayed in full", said)[-1]) + 0, (function, said)
        assert searched < windows / 2 or function in ("fib", "ackermann"), (function, windows, said)
        assert searched <= windows, (function, windows, said)


def test_calls_of_functions_that_jumps_enter_search_each_window_once(folder):
    """One more replay of a window, with its registers only, gives the operands of such entries."""
    trace = tbdtest.record([tbdtest.program("tail_calls")], folder, "window=1000,level3=1,level2=1")[1]
    for function in ("work", "always", "inner"):
        said = trace.tbdq("--no-cache", "--explain", "calls", function).err.decode()
        searched, windows = (int(re.findall(r"(\d+) " + what, said)[-1]) for what in ("searched", "considered"))
        assert 4 < searched <= windows == trace.info()["windows"], (function, said)
        for what in ("replayed in full", "replayed for registers"):
            assert int(re.findall(r"(\d+) " + what, said)[-1]) <= searched, (function, said)


def test_operands_that_a_jump_hands_on_need_no_replay(folder):
    """What a function's first block makes of its own operands is computed; a bound of time has a replay tell."""
    trace = tbdtest.record([tbdtest.program("thin_wrappers")], folder, "window=20000")[1]
    for function, where_from in (("moved", ("adds", "turns", "halves", "main")), ("loaded", ("loads", "chooses", "main")), ("adds", ("main", "hands_on"))):
        rows = trace.ask("calls", function)
        assert len(rows) == {"moved": 1600, "loaded": 800, "adds": 800}[function], function
        assert rows == trace.ask("calls", function, "where", "time >= 0"), function
        assert {row["caller"].split("!")[1].split("+")[0] for row in rows} <= set(where_from), function
    numbers = [n for i in range(400) for n in ((i - 5) % 2**64, 2, -i % 2**32, (i - 5) % 2**64)]
    assert [int(row["values"][0].split("=")[1]) % 2**64 for row in trace.ask("calls", "moved")] == numbers
    replayed = {}
    for function in ("adds", "loaded"):
        said = trace.tbdq("--no-cache", "--explain", "calls", function).err.decode()
        replayed[function] = int(re.findall(r"(\d+) replayed for registers", said)[-1])
    assert replayed["adds"] == 0 < replayed["loaded"], replayed


def test_calls_that_end_where_a_pointer_leads_search_each_window_once(folder):
    """But for those that came before the first jump of a kind was seen."""
    trace = tbdtest.record([tbdtest.program("tail_calls")], folder, "window=1000,level3=1,level2=1")[1]
    said = trace.tbdq("--no-cache", "--explain", "calls", "pointed").err.decode()
    searched, windows = int(re.findall(r"(\d+) searched", said)[-1]), trace.info()["windows"]
    assert 10 < searched <= windows + 4 < windows * 3 // 2, said


def test_calls_are_the_same_with_and_without_stacks_of_callers(folder):
    """A bound of time has `calls` keep stacks of callers; without it, entries and returns of the function alone tell, or notice that they cannot."""
    alone = 0
    for name in ("recursion", "exceptions", "long_jumps", "tail_calls", "threads", "sig_calls"):
        trace = tbdtest.record([tbdtest.program(name)], os.path.join(folder, name), "window=20000")[1]
        called = [row["by"].split("!")[-1] for row in trace.ask("count", "func_enter", "where", "module==%s" % name, "by", "func")]
        assert called, name
        chosen = [f for f in called if re.match(r"[\w:]+$", f)][:50 if tbdtest.LONG else 4] + ["malloc", "write"]
        known = trace.script(["count func_enter where func==" + function for function in chosen], may_fail=True)
        chosen = [function for function, answer in zip(chosen, known) if answer]
        shapes = ("calls %s", "calls %s where time >= 0", "calls %s where nesting == 0")
        answers = [trace.script([shape % function for function in chosen]) for shape in shapes[:2]]
        rows = dict(zip(chosen, answers[0]))
        check_cells(trace, rows)
        assert list(rows.values()) == answers[1], (name, rows, answers[1])
        outer = chosen if tbdtest.LONG else chosen[:1]
        for function, one in zip(outer, trace.script([shapes[2] % function for function in outer])):
            assert one == [row for row in rows[function] if row["nesting"] == 0], (name, function)
        alone += sum(bool(short) and all("left" not in row and row["exit"] for row in short) for short in rows.values())
    print("        %d functions whose calls all return" % alone)
    assert alone > 6


TAILS = {"work": lambda n: 2 * n, "always": lambda n: 2 * (n + 1), "twice": lambda n: 2 * (n + 11), "sometimes": lambda n: n if n % 2 else 2 * n, "outer": lambda n: n * (n + 1) // 2 + 1, "pointed": lambda n: 2 * (n + n % 2),
         "leaves": lambda n: None if n % 3 == 1 else n + 5, "around": lambda n: None if n % 3 == 1 else n + 8, "risky": lambda n: None if n % 3 == 1 else n + 5}


def test_calls_that_end_by_a_jump_have_the_result_of_where_it_leads(folder):
    """Of functions that were left by longjmp(), too: what they jump to is called at the same place of the stack afterwards."""
    trace = tbdtest.record([tbdtest.program("tail_calls")], folder, "window=500")[1]
    for function, truth in TAILS.items():
        rows = trace.ask("calls", function)
        assert len(rows) >= 60, (function, len(rows))
        for row in rows:
            result = row["retval"]
            assert (None if result is None else int(result, 0)) == truth(row["parameters"]["n"]), (function, row)
            assert ("left" in row) == (result is None), (function, row)
        assert rows == trace.ask("calls", function, "where", "time >= 0"), function


def entries_of_tail_calls():
    """The argument of each entry of a function of tail_calls, in order."""
    entries = {name: [] for name in ("work", "always", "twice", "sometimes", "outer", "inner", "risky", "leaves", "around", "pointed")}
    leads = {
        "always": lambda n: [("work", n + 1)],
        "twice": lambda n: [("always", n + 10)],
        "sometimes": lambda n: [("work", n)] if n % 2 == 0 else [],
        "leaves": lambda n: [("risky", n)],
        "around": lambda n: [("risky", n + 3)],
        "outer": lambda n: [("inner", n)],
        "inner": lambda n: [("outer", n - 1)] if n else [],
    }

    def enter(name, n):
        entries[name].append(n)
        for next_name, next_n in leads.get(name, lambda n: [])(n):
            enter(next_name, next_n)

    for n in range(60):
        for name in ("leaves", "risky", "leaves", "around", "risky", "work", "always", "twice", "sometimes", "outer"):
            enter(name, n % 12)
        enter("pointed", n)
        enter("always" if n % 2 else "work", n)
    return entries


def test_functions_are_entered_by_jumps_too(folder):
    """With arguments that only a replay knows, in short windows and long ones, which keep everything or one bit, and in merged ones."""
    truth = entries_of_tail_calls()
    shapes = ["all func_enter where func==%s", "count func_enter where func==%s", "calls %s", "all func_enter where func==%s and arg0 > 4",
              "calls %s where n > 4", "calls %s where time >= 0", "goto last backward func_enter 3 where func==%s", "goto first forward func_enter 7 where func==%s and n > 4"]
    for options in ("window=300", "window=100000", "window=301,level3=2,level2=2", "window=302"):
        trace = tbdtest.record([tbdtest.program("tail_calls")], folder + "/" + options, options)[1]
        if options == "window=302":
            trace.ask("lower", "all", "1")
            trace.ask("merge", "all", "4")
        answers = iter(trace.script(shape % function for function in truth for shape in shapes))
        times = []
        for (function, entries), events, counts, calls, some, some_calls, with_callers, (last,), (forward,) in zip(truth.items(), *[answers] * len(shapes)):
            assert [int(event["args"][0], 0) for event in events] == entries, (options, function)
            assert [row["count"] for row in counts] == [len(entries)], (options, function)
            assert [row["parameters"]["n"] for row in calls] == entries, (options, function)
            assert with_callers == calls, (options, function)
            assert some == [event for event in events if int(event["args"][0], 0) > 4], (options, function)
            assert some_calls == [row for row in calls if row["parameters"]["n"] > 4], (options, function)
            assert last == events[-3] and forward == some[6], (options, function)
            times += [event["time"] for event in events]
            if function == "inner":
                assert {row["caller"].split("+")[0] for row in calls} == {"tail_calls!outer"}, calls
        assert len(set(times)) == len(times)


def test_history_has_the_values_that_a_condition_chooses(folder):
    source, path = folder + "/squares.c", folder + "/squares"
    with open(source, "w", encoding="utf-8") as f:
        f.write("volatile int n;\nint main(void)\n{\n    for (int i = 0; i < 20; i++)\n        n = i * i % 17 - 5;\n    return 0;\n}\n")
    subprocess.run(["cc", "-g", "-o", path, source], check=True)
    trace = tbdtest.record([path], folder + "/traces")[1]
    main = ("goto", "first", "forward", "func_enter", 1, "where", "func==main")
    trace.one(*main)
    rows = trace.ask("history", "n")
    assert len(rows) == 20 or len(rows) == 21, rows
    for text, holds in (("newval > 3", lambda v: v > 3), ("newval < 0", lambda v: v < 0), ("newval == 100", lambda v: False)):
        wanted = [row for row in rows if "pc" in row and holds(int(row["value"]))]
        assert trace.ask("history", "n", "where", text) == wanted and (wanted or "100" in text), text
    trace.one(*main)
    wrong = trace.tbdq("history", "n", "where", "newval >")
    assert wrong.code == 2 and b"newval >" in wrong.err, wrong


PASSED = r"""
#include <complex>
#include <cstdio>
#include <string>
struct pt { double x, y; };
struct mix { int i; double d; };
struct mix2 { float f; int i; long l; };
struct f3 { float a, b, c; };
struct big { long v[4]; };
struct ld { long double v; };
struct empty {};
struct bits { unsigned a : 3, b : 20; double d; };
typedef float v4 __attribute__((vector_size(16)));
enum color { RED, GREEN };
extern "C" {
__attribute__((noipa)) double fd(double a, float b, int c, double d) { return a + b + c + d; }
__attribute__((noipa)) float ff(float a) { return a * 2; }
__attribute__((noipa)) long double fld(long double a, int b) { return a * b; }
__attribute__((noipa)) pt fpt(pt a, double s) { return { a.x * s, a.y * s }; }
__attribute__((noipa)) mix fmix(mix a, int k) { return { a.i + k, a.d + k }; }
__attribute__((noipa)) mix2 fmix2(mix2 a) { return { a.f + 1, a.i + 1, a.l + 1 }; }
__attribute__((noipa)) f3 ff3(f3 a) { return { a.a + 1, a.b + 1, a.c + 1 }; }
__attribute__((noipa)) big fbig(big a, int k) { a.v[0] += k; return a; }
__attribute__((noipa)) ld fsld(ld a) { return { a.v + 1 }; }
__attribute__((noipa)) __int128 fi128(__int128 a) { return a + 1; }
__attribute__((noipa)) std::complex<double> fc(std::complex<double> a) { return a * 2.0; }
__attribute__((noipa)) std::complex<float> fcf(std::complex<float> a) { return a * 2.0f; }
__attribute__((noipa)) _Complex long double fcl(double a) { return (_Complex long double)a + 2.0iL; }
__attribute__((noipa)) int many(int a, int b, int c, int d, int e, int f, int g, long h, double i) { return a + b + c + d + e + f + g + (int)h + (int)i; }
__attribute__((noipa)) empty fe(empty, int k) { if (k) std::puts(""); return {}; }
__attribute__((noipa)) bits fb(bits b) { b.a++; return b; }
__attribute__((noipa)) v4 fv(v4 a) { return a + a; }
__attribute__((noipa)) color fcol(color c, double d) { return d > 1 ? GREEN : c; }
__attribute__((noipa)) bool fbool(double d) { return d > 1; }
}
__attribute__((noipa)) std::string fs(int n) { return std::string(n, 'x'); }
int main() {
    volatile double sink = 0;
    for (int i = 0; i < 3; i++) {
        sink = fd(1.5 + i, 2.25f, 3, 4.125); sink = ff(1.25f + i); sink = fld(1.5L + i, 3);
        sink = fpt({ 1.5, 2.5 + i }, 2).y; sink = fmix({ i, 2.5 }, 4).d; sink = fmix2({ 1.5f, i, 9 }).f; sink = ff3({ 1, 2, 3 }).c;
        sink = fbig({ { 1, 2, 3, i } }, 7).v[0]; sink = fsld({ 2.5L + i }).v; sink = (double)fi128(((__int128)i << 64) + 5); sink = fc({ 1.5, 2.0 + i }).real();
        sink = fcf({ 1.5f, 2.0f }).real(); sink = (double)__real__ fcl(1.5 + i); sink = many(1, 2, 3, 4, 5, 6, 7 + i, 8, 9.5); fe({}, 0); sink = fb({ 3, 77, 1.5 }).d;
        sink = fv(v4{ 1, 2, 3, (float)i })[3]; sink = fcol(RED, i); sink = fbool(i); sink = fs(i + 3).size();
    }
    return 0;
}
"""

# Parameters of the last call; the results are gdb's.
PARAMETERS = {
    "fd": "a=3.5, b=2.25, c=3, d=4.125", "ff": "a=3.25", "fld": "a=3.5, b=3", "fpt": "a={x = 1.5, y = 4.5}, s=2", "fmix": "a={i = 2, d = 2.5}, k=4",
    "fmix2": "a={f = 1.5, i = 2, l = 9}", "ff3": "a={a = 1, b = 2, c = 3}", "fbig": "a={v = {1, 2, 3, 2}}, k=7", "fsld": "a={v = 4.5}",
    "fi128": "a=36893488147419103237", "fc": "a={_M_value = 1.5 + 4i}", "fcf": "a={_M_value = 1.5 + 2i}", "fcl": "a=3.5",
    "many": "a=1, b=2, c=3, d=4, e=5, f=6, g=9, h=8, i=9.5", "fb": "b={a = 3, b = 77, d = 1.5}", "fv": "a={1, 2, 3, 2}", "fcol": "c=RED, d=2",
    "fbool": "d=2"}
# The results as JSON.
RESULT_DATA = {"fd": 12.875, "ff": 6.5, "fpt": {"x": 3, "y": 9}, "fmix": {"i": 6, "d": 6.5}, "fmix2": {"f": 2.5, "i": 3, "l": 10},
               "ff3": {"a": 2, "b": 3, "c": 4}, "fbig": {"v": [8, 2, 3, 2]}, "fi128": str((2 << 64) + 6), "many": 47, "fb": {"a": 4, "b": 77, "d": 1.5},
               "fv": [2, 4, 6, 4], "fcol": "GREEN", "fbool": True}
RETURNED = """
class Leave(gdb.FinishBreakpoint):
    def __init__(self, name):
        super().__init__(gdb.newest_frame(), internal=True)
        self.name = name
    def stop(self):
        returned[self.name] = str(self.return_value)
        return False
returned = {}
for name in %r:
    gdb.Breakpoint(name)
run()
while alive():
    Leave(gdb.newest_frame().name())
    go()
say(returned)
"""


def test_values_are_passed_as_the_abi_says(folder):
    for options in ("-O0", "-O2"):
        program = os.path.join(folder, "passed" + options)
        with open(program + ".cc", "w", encoding="utf-8") as file:
            file.write(PASSED)
        assert tbdtest.run([tbdtest.need("c++"), "-w", "-g", options, "-o", program, program + ".cc"]).code == 0
        returned = othertools.gdb_script([program], RETURNED % sorted(PARAMETERS))[0]
        returned.update(fi128=str((2 << 64) + 6), fv="{2, 4, 6, 4}") # of these gdb's Python reads one half only
        trace = tbdtest.record([program], os.path.join(folder, "traces" + options), "window=700,level3=1,level2=1")[1]
        called = dict(zip(PARAMETERS, trace.script(["calls " + function for function in PARAMETERS])))
        check_cells(trace, called)
        for function, values in PARAMETERS.items():
            rows = called[function]
            found = (", ".join(rows[-1]["values"]), rows[-1]["result"])
            assert len(rows) == 3 and found == (values, returned[function]), (options, function, found, values, returned[function])
            data = rows[-1]["result_data"]
            assert function not in RESULT_DATA or (data == RESULT_DATA[function] and type(data) is type(RESULT_DATA[function])), (function, data)
        assert len(trace.ask("calls", "fd", "where", "retval > 10.5 and retval < 12.5")) == 2 and not trace.ask("calls", "ff", "where", "retval < 2.5")
        finished = trace.ask("finish", at=trace.ask("calls", "fpt")[1]["position"])
        assert finished[0]["type"] == "func_exit" and finished[0]["result"] == "{x = 3, y = 7}", finished
        assert finished[0]["result_data"] == {"x": 3, "y": 7}, finished


CLOCKS = """
#include <stdio.h>
#include <time.h>
#include <unistd.h>
volatile unsigned sum;
__attribute__((noinline)) void work(unsigned n) { while (n--) sum += n; }
int main(void)
{
    for (int i = 0; i < 5; i++) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        printf("%lld\\n", now.tv_sec * 1000000000ll + now.tv_nsec);
        fflush(stdout);
        work(1000);
        usleep(40000);
    }
    return 0;
}
"""


def moment(event):
    """Of the key `wall`, in microseconds."""
    time = datetime.datetime.fromisoformat(event["wall"])
    return int(time.timestamp()) * 1000000 + time.microsecond


def test_events_have_the_times_that_the_program_sees(folder):
    program = os.path.join(folder, "clocks")
    with open(program + ".c", "w", encoding="utf-8") as file:
        file.write(CLOCKS)
    assert tbdtest.run(["cc", "-g", "-O0", "-o", program, program + ".c"]).code == 0
    for options in ("window=1000", "count=later", "window=500"):
        run, trace = tbdtest.record([program], os.path.join(folder, options), options)
        if options == "window=500":
            trace.ask("lower", "all", "1")
            trace.ask("merge", "all")
            assert trace.info()["windows"] < 10, trace.info()
        seen = [int(line) // 1000 for line in run.out.split()]
        writes = [moment(event) for event in trace.ask("--wall", "syscalls", "where", "syscall == write")]
        works = [moment(event) for event in trace.ask("--wall", "calls", "work")]
        for mine in (writes, works): # between the program's own looks at the clock, which are 40 ms apart at least
            assert len(mine) == 5 and mine == sorted(mine), (options, mine)
            assert all(a - 10000 < b for a, b in zip(seen, mine)) and all(b < a for a, b in zip(seen[1:], mine)), (options, seen, mine)
        info = trace.info()
        assert info["started"] < info["ended"] and moment({"wall": info["started"]}) <= seen[0] + 1, info
        since = (seen[3] - 20000) / 1000000
        assert len(trace.ask("--since", "@%.6f" % since, "calls", "work")) == 2
        assert len(trace.ask("--until", "@%.6f" % since, "syscalls", "where", "syscall == write")) == 3
        assert len(trace.ask("--since", "@%.6f" % since, "--until", "@%.6f" % (since + 0.02), "all", "func_enter", "where", "func==work")) <= 1
        text = datetime.datetime.fromtimestamp(since).isoformat(sep="T", timespec="microseconds")
        for form in (text, text.split("T")[1], "+%dus" % (seen[3] - 20000 - moment({"wall": info["started"]}))):
            assert len(trace.ask("--since", form, "calls", "work")) == 2, (form, info)
        assert len(trace.ask("--since", "+0s", "calls", "work")) == 5 and not trace.ask("--since", "+1h", "calls", "work")
        there = trace.ask("goto", text)[-1]["time"]
        assert works[2] < works[3] and trace.ask("calls", "work")[2]["time"] < there <= trace.ask("calls", "work")[3]["time"], there
    for wrong in ("25:00", "1.5", "+1x", "@", "", "2026-13-40", "soon"):
        assert trace.tbdq("--since", wrong, "syscalls").code == 2, wrong
    shown = trace.tbdq("--wall", "syscalls", json_output=False).out.decode().splitlines()
    assert shown[0].split()[:2] == ["position", "wall"], shown[0]


def test_the_language_page_says_what_help_says(folder):
    page = open(os.path.join(tbdtest.BUILD, "tbdq-language.7"), encoding="utf-8").read().replace("\\-", "-").replace("\\e", "\\")
    listed = tbdtest.run([tbdtest.TBDQ, "help"], stdin=None).out.decode()
    names = re.findall(r"^  ([a-z][\w-]*) +\S", listed, re.M)
    assert len(names) > 30
    for name in names + ["context", "scripts"]:
        for line in tbdtest.run([tbdtest.TBDQ, "help", name], stdin=None).out.decode().splitlines() if name != "help" else []:
            assert line.rstrip().lstrip(".'") in page, (name, line)


SLEEPS = """
#include <stdio.h>
#include <time.h>
#include <unistd.h>
int main(void)
{
    struct timespec at[7];
    for (int i = 0; i < 7; i++) {
        clock_gettime(CLOCK_REALTIME, &at[i]);
        usleep(50000);
    }
    for (int i = 0; i < 7; i++)
        printf("%ld.%09ld\\n", (long)at[i].tv_sec, at[i].tv_nsec);
}
"""


def test_a_call_that_waits_has_the_time_at_which_it_begins(folder):
    """However soon it follows another one: it began before the wait that the program saw."""
    source, binary = os.path.join(folder, "sleeps.c"), os.path.join(folder, "sleeps")
    with open(source, "w", encoding="ascii") as f:
        f.write(SLEEPS)
    subprocess.run(["cc", "-g", source, "-o", binary], check=True)
    for options in ("window=500000", "mode=native"):
        result, trace = tbdtest.record([binary], os.path.join(folder, options), options)
        seen = [float(text) for text in result.out.split()]
        rows = trace.ask("--wall", "all", "syscall", "where", "syscall==clock_nanosleep")
        begun = [datetime.datetime.fromisoformat(row["wall"].lstrip("~")).timestamp() for row in rows]
        assert len(begun) == len(seen) == 7, options
        for before, begin, after in zip(seen, begun, seen[1:]):
            assert before - 0.001 <= begin <= after - 0.045, (options, before, begin, after)


if __name__ == "__main__":
    tbdtest.main(*[f for n, f in sorted(globals().items()) if n.startswith("test_")])
