#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""x as gdb prints it; $values while a session lasts, also in conditions; values as JSON; answers that go to commands and files."""
import json
import os
import subprocess

import othertools
import tbdtest
from test_prompt import Prompt

SOURCE = """\
#include <stdio.h>
struct pair { int first; const char *second; };
struct bits { unsigned low : 3; int high : 5; };
struct all { struct pair pairs[2]; double real; struct bits bits; union { int whole; char parts[4]; }; _Bool truth; void *none; };
char bytes[16] = "ab\\n\\0\\377xyz";
int ints[6] = { 1, -2, 0x12345678, 4, 5, 6 };
long longs[3] = { 1, -1, 0x123456789abcdef };
double reals[3] = { 1.5, -0.1, 1e300 };
float floats[4] = { 1.5f, -2, 3, 4 };
short shorts[9] = { 1, -1, 300 };
const char *texts = "one\\0two\\0three";
struct all all = { { { 1, "one" }, { -2, 0 } }, 0.5, { 5, -3 }, { 0x64636261 }, 1, 0 };
struct bits counted;
__attribute__((noinline)) int stop(int n)
{
    return n;
}
void *ptrs[3] = { bytes, (void *)stop, 0 };
int total;
__attribute__((noinline)) int add(int n)
{
    total += n;
    counted.low = (unsigned)n;
    counted.high = -n;
    return total;
}
int main(void)
{
    char local[24] = "local";
    int wanted = 3;
    double half = 2.5;

    for (int i = 0; i < 6; i++)
        stop(add(i));
    return stop((int)local[0] + wanted + (int)half) != 0x6c + 5;
}
"""
EXAMINED = ["x/8xb bytes", "x/9cb bytes", "x/5dw ints", "x/5ow ints", "x/3tw ints", "x/3zw ints", "x/6uh shorts", "x/9dh shorts",
            "x/3gx longs", "x/3og longs", "x/2tg longs", "x/3fg reals", "x/4fw floats", "x/3a ptrs", "x/3s texts", "x/2s bytes",
            "x/2xw ints", "x", "x/3", "x/2xw &ints[1]", "x/3c bytes", "x/2xw local", "x/4ub bytes", "x/2ob bytes", "x/2tb bytes",
            "x/2ah shorts", "x/2cw ints", "x/2fb bytes", "x/2fh shorts", "x/2f reals", "x/f &floats[1]", "x/dw &ints[1]"]


def recorded(folder):
    source, path = folder + "/kept.c", folder + "/kept"
    with open(source, "w", encoding="utf-8") as f:
        f.write(SOURCE)
    subprocess.run(["cc", "-g", "-O0", "-fno-pie", "-no-pie", "-o", path, source], check=True)
    tbdtest.record(tbdtest.fixed([path]), folder + "/traces", "window=500000")
    trace = tbdtest.find_trace(folder + "/traces", path)
    trace.one("goto", "first", "forward", "func_enter", 4, "where", "func==stop")
    trace.one("up")
    return path, trace, tbdtest.idle_env(folder + "/traces", "window=500000")


def session(trace, lines, *options):
    """The lines of the answers in one session."""
    result = tbdtest.run([tbdtest.TBDQ, "-t", trace.path, *options], stdin="\n".join(lines).encode() + b"\n")
    assert result.code == 0, result
    return result.out.decode().splitlines()


def test_memory_is_examined_as_by_gdb(folder):
    path, trace, env = recorded(folder)
    wanted = othertools.gdb_script([path], """
gdb.Breakpoint("stop").ignore_count = 3
run()
gdb.execute("up")
for line in %r:
    say(gdb.execute(line, to_string=True))
""" % EXAMINED, env=env)
    found, lines = session(trace, EXAMINED), "".join(wanted).splitlines()
    assert found == lines, [(a, b) for a, b in zip(found, lines) if a != b] or (found[len(lines):], lines[len(found):])
    assert [(v["addr"], v["value"]) for v in trace.ask("x/2dw", "ints")] == [(hex(tbdtest.number(trace.one("print", "&ints")["value"].split()[0])), "0x1"),
                                                                         (trace.one("print", "&ints[1]")["value"].split()[0], "0xfffffffe")]
    for wrong in ("x/4qx ints", "x/0x ints", "x", "x/2x nothing"):
        assert trace.tbdq(wrong, json_output=False).code == 2, wrong
    assert trace.tbdq("x/2xw 16", json_output=False).code == 1


def test_instructions_are_examined_as_by_gdb(folder):
    path, trace, env = recorded(folder)
    lines = ["x/8i add", "x", "x/3", "x/2i $pc", "x/9i main", "x/i stop", "x/2xw ints", "x/2i"]
    wanted = othertools.gdb_script([path], """
gdb.Breakpoint("stop").ignore_count = 3
run()
gdb.execute("up")
for line in %r:
    say(gdb.execute(line, to_string=True))
""" % lines[:-1], env=env)
    found, wanted = session(trace, lines), "".join(wanted).splitlines()
    # Arrow, address and symbol; the text of an instruction is another disassembler's.
    labels = [line.split("\t")[0] for line in found]
    assert labels[:-2] == [line.split("\t")[0] for line in wanted] and len(wanted) == 32, (found, wanted)
    assert found[-3] == wanted[-1] and [line.split("\t")[0].startswith("   0x") for line in found[-2:]] == [True, True], found[-3:]
    mnemonics = [[line.split("\t")[1].split()[0] for line in answer[:31]] for answer in (found, wanted)]
    assert sum(ours in (theirs, theirs[:-1]) for ours, theirs in zip(*mnemonics)) >= 25, mnemonics
    rows = trace.ask("x/3i", "add")
    assert [r["value"] for r in rows] == [line.split("\t")[1] for line in found[:3]] and rows[1]["size"] == \
        tbdtest.number(rows[2]["addr"]) - tbdtest.number(rows[1]["addr"]), rows
    assert found[19].startswith("=> "), found
    assert trace.tbdq("x/2i", "16", json_output=False).code == 1


def test_values_are_kept_in_a_session(folder):
    _, trace, _ = recorded(folder)
    said = session(trace, ["print i", "print total", "print $1 + $", "print $$", "print $$2", "set $there = &ints[1]", "print *$there",
                           "set $all = all.pairs[1].first", "goto last", "print $all + $1", "print $there[1]", "p $x = 40", "p $x + 2", "print $6"])
    values = [line for line in said if not line.endswith("ret") and "  " not in line]
    assert values[:6] == ["3", "6", "9", "6", "6", "-2"], said
    assert values[-4:] == ["1", "305419896", "42", "-2"], (values, said)
    for line, word in (("print $nothing", b"$nothing"), ("print $9", b"$9"), ("set total = 3", b"past"), ("set print nothing on", b"pretty")):
        result = trace.tbdq(line, json_output=False)
        assert result.code == 2 and word in result.err, (line, result)
    found = session(trace, ["set print pretty on", "print all.pairs[0]", "print -pretty off -- all.pairs[0].first", "set print pretty off", "print counted"])
    assert found == ["{", "  first = 1,", session(trace, ["print -pretty on all.pairs[0]"])[2], "}", "1", "{low = 5, high = -5}"], found


def test_conditions_use_values_from_here(folder):
    _, trace, _ = recorded(folder)
    at = ["all", "func_enter", "where"]
    rows = trace.ask("all", "store", "of", "total", "where", "newval==3")
    for condition in ("newval==$wanted", "newval==frame.wanted", "newval==frame.half+0.5", "newval > frame.half and newval <= $i"):
        assert [tbdtest.position(e) for e in trace.ask("all", "store", "of", "total", "where", condition)] == [tbdtest.position(e) for e in rows], condition
    assert len(trace.ask(*at, "func==add and rdi==$wanted")) == 1 and len(trace.ask(*at, "func==add and rdi < frame.wanted")) == 3
    said = session(trace, ["set $limit = wanted - 1", "count func_enter where func==add and rdi > $limit"], "--json")
    assert json.loads(said[-1])["count"] == 3, said
    assert len(trace.ask("all", "func_enter", "where", "func==add and $rdi==2")) == 1, "a register, of the event"
    for wrong in ("newval==$nothing", "newval==frame.nothing", "newval==$all"):
        result = trace.tbdq("all", "store", "of", "total", "where", wrong)
        assert result.code == 2 and wrong.split("==")[1].strip("$").split(".")[-1].encode() in result.err, (wrong, result)
    values = [row["value"] for row in trace.ask("history", "counted.low")]
    assert values == ["0", "1", "2", "3", "4", "5"], values
    assert [row["value"] for row in trace.ask("history", "counted.high")] == ["0", "-1", "-2", "-3", "-4", "-5"]


def test_values_are_json(folder):
    _, trace, _ = recorded(folder)
    data = trace.one("print", "all")["data"]
    assert data["pairs"][0]["first"] == 1 and data["pairs"][0]["second"]["text"] == "one" and data["pairs"][1] == {"first": -2, "second": "0x0"}, data
    assert data["real"] == 0.5 and data["bits"] == {"low": 5, "high": -3} and data["whole"] == 0x64636261 and data["parts"] == "abcd", data
    assert data["truth"] is True and data["none"] == "0x0", data
    assert trace.one("print", "ints[1]@2")["data"] == [-2, 0x12345678]
    assert {v["name"]: v["data"] for v in trace.ask("locals")} == {"local": "local", "wanted": 3, "half": 2.5, "i": 3}
    assert [row["parameters"] for row in trace.ask("calls", "add")] == [{"n": n} for n in range(6)]
    assert [thread["number"] for thread in trace.ask("threads")] == [1]
    assert trace.ask("bt", "thread", "1") == trace.ask("bt", "thread", str(trace.ask("threads")[0]["thread"]))


def test_answers_go_to_commands_and_files(folder):
    _, trace, _ = recorded(folder)
    prompt = Prompt(trace, folder)
    prompt.ask("bt > %s/bt.txt\r" % folder, "+0> ")
    prompt.ask("print total >> %s/bt.txt\r" % folder, "+0> ")
    lines = open(folder + "/bt.txt", encoding="utf-8").read().splitlines()
    assert "main" in lines[1] and lines[-1].endswith("= 6"), lines
    counted = "%d" % len(trace.ask("calls", "add"))
    for line in ("calls add | grep -c add", "pipe calls add | grep -c add", "| calls add | grep -c add"):
        assert counted in prompt.ask(line + "\r", "+0> ").split("\r\n"), line
    # Operators stay operators.
    assert "= 7" in prompt.ask("print wanted | 4\r", "+0> ") and "= 1" in prompt.ask("print total > wanted\r", "+0> ")
    assert "= 7" in prompt.ask("print total | i\r", "+0> "), "a variable"
    for line, word in (("count store where newval > nobody.knows", "nobody"), ("count store where newval | sed", "sed")):
        said = prompt.ask(line + "\r", "+0> ")
        assert word in said and "tbdq: " in said and not os.path.exists("nobody.knows"), said
    assert not os.path.exists("wanted")
    prompt.ask("count store of total where newval > 3 > %s/count.txt\r" % folder, "+0> ")
    assert open(folder + "/count.txt", encoding="utf-8").read().split()[-2] == "3"
    assert "3" in prompt.ask("count store of total where newval > 3 | tail -n 1 | cut -c1\r", "+0> ").split("\r\n")
    prompt.quit()


def test_why_has_values_and_callers(folder):
    _, trace, _ = recorded(folder)
    rows = trace.ask("why", "total")
    assert rows[0]["value"] == "0x6" and rows[0]["caller"].startswith("kept!main+") and rows[0]["function"] == "add", rows[0]
    assert {"0x3"} <= {row["value"] for row in rows if row.get("value")}, rows
    _, other = tbdtest.record([tbdtest.program("variables_O2_5")], folder + "/optimized")
    other.one("goto", "first", "forward", "line", 3, "where", "func==sum_list")
    kept = {v["name"]: v["value"] for v in other.ask("locals") if v["known"] and "addr" not in v}
    assert "at" in kept, kept
    rows = other.ask("why", "at")
    assert rows[0]["value"] == kept["at"] and rows[0]["what"].startswith("from memory"), (rows, kept)


STEPS = """
gdb.Breakpoint("walk")
run()
start, end = gdb.newest_frame().block().start, gdb.newest_frame().block().end
depth = len([f for f in [gdb.newest_frame()]])
while start <= value("$pc") < end:
    found = []
    for name in ("sum", "n"):
        try:
            found.append(str(int(gdb.parse_and_eval(name))))
        except (gdb.error, ValueError):
            found.append(None)
    say(found)
    gdb.execute("stepi", to_string=True)
"""
WALK = """\
volatile int sink;
__attribute__((noinline)) int walk(int n)
{
    int sum = 1;

    while (n > 0) {
        sum = sum * 3 + n;
        sink = n;
        n--;
    }
    sink = sum;
    return sum;
}
int main(void)
{
    return walk(6) == walk(2);
}
"""


def test_history_of_a_variable_in_a_register(folder):
    source, path = folder + "/walk.c", folder + "/walk"
    with open(source, "w", encoding="utf-8") as f:
        f.write(WALK)
    subprocess.run(["cc", "-g", "-Og", "-fno-pie", "-no-pie", "-o", path, source], check=True)
    trace = tbdtest.record([path], folder + "/traces")[1]
    trace.one("goto", "first", "forward", "line", 5, "where", "func==walk")
    steps = othertools.gdb_script([path], STEPS)
    for at, name in enumerate(("sum", "n")):
        wanted = [v for i, v in enumerate(s[at] for s in steps) if v is not None and (i == 0 or v != steps[i - 1][at])]
        rows = trace.ask("history", name)
        found = [row["value"] for row in rows]
        rest = iter(wanted)
        assert len(found) >= 6 and all(v in rest for v in found), (name, found, wanted)
        assert all(a["to"] == b["from"] for a, b in zip(rows, rows[1:])) and all(row["function"] == "walk" for row in rows), rows
        for row in rows:
            assert trace.one("print", name, at=row["from"])["value"] == row["value"], row


ROUNDS = """\
volatile int sink;
__attribute__((noipa)) int doubled(int n) { return sink = 2 * n; }
int main(void)
{
    int all = 0;

    for (int i = 1; i < 6; i++) all += doubled(i);
    sink = all;
    return all != 30;
}
"""


def test_history_of_a_register_that_changes_within_a_line(folder):
    """No line begins while the loop runs."""
    source, path = folder + "/rounds.c", folder + "/rounds"
    with open(source, "w", encoding="utf-8") as f:
        f.write(ROUNDS)
    for level in ("-Og", "-O2"):
        subprocess.run(["cc", "-g", level, "-o", path, source], check=True)
        trace = tbdtest.record([path], folder + "/traces" + level)[1]
        at = tbdtest.position(trace.ask("lines", "rounds.c:8")[0])
        if trace.tbdq("print", "&all", at=at).code == 0:
            raise tbdtest.Skip("this compiler keeps it in memory")
        rows = trace.ask("history", "all", at=at)
        assert [row["value"] for row in rows] == ["0", "2", "6", "12", "20", "30"], (level, rows)
        assert all(a["to"] == b["from"] for a, b in zip(rows, rows[1:])), rows


MEAN = """\
#include <stdio.h>
static double numbers[6] = { 2, 0.5, 4, 8, 0.25, 16 };
__attribute__((noinline)) double mean(const double *v, int n)
{
    double sum = 0;
    float low = 1000;
    for (int i = 0; i < n; i++) {
        sum += v[i];
        if (v[i] < low)
            low = (float)v[i];
        if (i == 3)
            puts("three");
    }
    printf("%f\\n", (double)low);
    return sum / n;
}
int main(int argc, char **argv)
{
    (void)argv;
    return mean(numbers, 5 + argc) > 100;
}
"""


def test_history_and_why_of_vector_registers_and_results(folder):
    """A double and a float in vector registers, and a counter that is a result of another one."""
    source, path = folder + "/mean.c", folder + "/mean"
    with open(source, "w", encoding="utf-8") as f:
        f.write(MEAN)
    subprocess.run(["cc", "-g", "-O2", "-o", path, source], check=True)
    trace = tbdtest.record([path], folder + "/traces")[1]
    positions = [tbdtest.position(row) for row in trace.ask("lines", "mean.c:11")][1:3]
    for name, wanted in (("sum", ["0", "2", "2.5", "6.5", "14.5", "14.75", "30.75"]), ("low", ["1000", "2", "0.5", "0.25"]),
                         ("i", ["0", "1", "2", "3", "4", "5"])):
        answers = {json.dumps(rows): rows for rows in (trace.ask("history", name, at=at) for at in positions)}
        assert len(answers) == 1, (name, answers)  # also where the variable has no place just then
        rows = next(iter(answers.values()))
        assert [row["value"] for row in rows][:len(wanted)] == wanted, (name, rows)
        assert trace.one("print", name, at=rows[-1]["from"])["value"] == rows[-1]["value"], rows
    for at in positions:
        chain = trace.ask("why", "sum", at=at)
        assert chain[0]["text"].startswith("addsd") and chain[0]["line"] == 8, chain
        assert any("memory" in row["what"] for row in chain), chain
        register = chain[0]["text"].split()[1].rstrip(",")
        assert trace.ask("why", "$" + register, at=at)[0]["position"] == chain[0]["position"], chain
    counter = trace.ask("why", "i", at=positions[0])[0]
    assert counter["line"] == 7, counter
    constant = trace.tbdq("why", "n", at=positions[0])
    assert constant.code == 0 or b"not in memory" in constant.err, constant


def test_threads_have_small_numbers(folder):
    _, trace = tbdtest.record([tbdtest.program("threads")], folder + "/traces")
    threads = trace.ask("threads")
    assert [t["number"] for t in threads] == list(range(1, len(threads) + 1)) and len(threads) >= 4
    second = threads[1]["thread"]
    for words in (["count", "func_enter", "where", "thread=="], ["count", "syscall", "where", "thread!="]):
        assert trace.ask(*words[:-1], words[-1] + "2") == trace.ask(*words[:-1], words[-1] + str(second)) != [], words
    at = str(threads[1]["start"] + 1000)
    assert trace.ask("bt", "thread", "2", at=at) == trace.ask("bt", "thread", str(second), at=at) != []
    assert trace.tbdq("--thread", "2", "--at", at, "regs").out == trace.tbdq("--thread", str(second), "--at", at, "regs").out != b""


if __name__ == "__main__":
    tbdtest.main(*[f for n, f in sorted(globals().items()) if n.startswith("test_")])
