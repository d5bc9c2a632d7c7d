#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Values around a crash: what a simulation says is exact is what single-stepping saw (test/tools/step_values.c); what a dump answers before its
end is what a full recording of the same run has."""
import csv
import json
import os
import subprocess

import tbdtest


def shares(name, last, record=0):
    """The row for the last instructions of an example that crashes."""
    program = os.path.join(tbdtest.BUILD, "examples", "forensics", name)
    result = tbdtest.run([os.path.join(tbdtest.BUILD, "step_values"), str(last), str(record), program])
    if result.code == 77:
        raise tbdtest.Skip(result.err.decode())
    assert result.code == 0, result
    return list(csv.DictReader(line for line in result.out.decode().splitlines() if "," in line))


def test_exact_values_of_crashes_are_never_wrong(folder):
    for name in ("crash_callback", "crash_goto"):
        for row in shares(name, 20000):
            assert row["exact_but_wrong"] == "0", (name, row)
            assert float(row["wrong"]) < 5 and float(row["exact"]) > 3, (name, row)


def test_registers_on_the_way_make_more_known(folder):
    without, given = shares("crash_callback", 20000)[-1], shares("crash_callback", 20000, 7)[-1]
    assert given["exact_but_wrong"] == "0", given
    assert float(given["unknown"]) < float(without["unknown"]), (without, given)


# ---- what a dump answers before its end ----

REGISTERS = ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", *("r%d" % i for i in range(8, 16)), "rip", "fs_base", "gs_base"]


HIDES = """volatile int sink;
static void work(int n)
{
    int i = n + 1;
    for (int k = 0; k < 3; k++) {
        int i = k * 100;
        sink = i;  /* inner */
    }
    *(volatile int *)0 = i;
}
int main(void) { work(7); return 0; }
"""


# Text of which memory has nothing, or only the beginning.
TEXTS = """#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
struct named { long value; char name[16]; };
struct named *none, *half;
char *page, *tail, *whole;
int main(void)
{
    page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(page + 4096, 4096);
    memset(page, 'x', 4096);
    tail = memcpy(page + 4092, "abcd", 4);
    half = (struct named *)(page + 4096 - 8 - 6);
    whole = memcpy(page + 2000, "abc", 4);
    return none->value;
}
"""


# The ring begins in deep(), long after work() has set its registers.  Nothing stores them before work() restores its caller's.
BEFORE_THE_RING = """#include <stdint.h>
long table[2] = { 5, 7 };
volatile long sink;
__attribute__((noinline, used)) void deep(void) { for (volatile int i = 0; i < 400000; i++) ; }
long work(int choice);
__asm__(".text\\n.type work, @function\\nwork: push %r12\\npush %r13\\npush %rbx\\n"
        "lea table(%rip), %r12\\nmov %rdi, %rbx\\nmov $1, %r13d\\ntest %edi, %edi\\nje 1f\\nmov $2, %r13d\\n"
        "1: call deep\\nrdtsc\\nmov %rax, sink(%rip)\\nmov (%r12), %rax\\nadd %rbx, %rax\\npop %rbx\\npop %r13\\npop %r12\\nret\\n.size work, . - work\\n");
int main(int argc, char **argv) { (void)argv; volatile long got = work(argc); sink = got; *(volatile int *)0 = 0; return 0; }
"""


# What scramble() makes is written over before the end; only its last numbers are there.
# Each round forgets what the one before has computed.
FORGETFUL = """#include <stdio.h>
static volatile unsigned long sum;
__attribute__((noipa)) static unsigned long step(unsigned long a, int odd) { if (odd) a += 3; return (a * a >> 5) + 1; }
int main(void) {
    unsigned long a = 1234567;
    long rounds;
    puts("ready");
    fflush(stdout);
    if (scanf("%ld", &rounds) != 1) return 1;
    for (long i = 0; i < rounds; i++) a = step(a, (int)(i * 7 / 3 & 1));
    sum = a;
    sum = 0;
    *(volatile int *)0 = 1;
    return 0;
}
"""

PROBED = """struct node { long value, other; } nodes[4];
volatile long noise;
static unsigned long seed = 1;
__attribute__((noinline)) static void scramble(void)
{
    for (int i = 0; i < 4; i++) {
        seed = seed * 3 + (seed >> 3);
        nodes[i].value = (long)seed;
    }
}
__attribute__((noinline)) static long step(struct node *p, long n)
{
    long local = p->value * n;
    noise = local;
    return local ^ 3;
}
int main(void)
{
    long sum = 0;
    for (long k = 0; k < 500; k++) {
        scramble();
        for (int i = 0; i < 4; i++)
            sum += step(&nodes[i], k);
    }
    *(volatile int *)0 = (int)sum;
    return 0;
}
"""


# One element of `table` was something else before the end, and what that was is older than the ring.
IN_PARTS = """long table[6];
char text[24] = "this is not known>";
__attribute__((noinline)) static void deep(void) { for (volatile int i = 0; i < 400000; i++) ; }
int main(int argc, char **argv)
{
    (void)argv;
    for (int i = 0; i < 6; i++)
        table[i] = 10 * argc + i;
    deep();
    table[2] = 5;  /* the last store */
    *(volatile int *)0 = 1;
    return 0;
}
"""


# What `total` was before its last store follows from a constant, 30,000 instructions before.
LONG_AGO = """static volatile unsigned long total;
__attribute__((noipa)) static unsigned long step(unsigned long a) { return (a * a >> 5) + 3; }
int main(void)
{
    unsigned long a = 1234567;
    for (int i = 0; i < 4000; i++)
        a = step(a);
    total = a;
    total = 0;  /* the last store */
    *(volatile int *)0 = 1;
    return 0;
}
"""


def compiled(folder, name, source, *options):
    program = os.path.join(folder, name)
    with open(program + ".c", "w", encoding="utf-8") as file:
        file.write(source)
    assert tbdtest.run([tbdtest.need("cc"), "-g", "-o", program, program + ".c", *options]).code == 0
    return program


def dump_of(program, folder, options):
    os.makedirs(folder)
    assert tbdtest.run([program], env=tbdtest.trace_env(folder, "mode=crash," + options)).code < 0
    tbdtest.wait_organizers(folder)
    return tbdtest.find_trace(folder, os.path.basename(program))


def known_share(dump):
    return float(dump.ask("advise", "10000")[0]["known"].split()[0])


SIGNALLED = """#include <signal.h>
static volatile long count;
static void handle(int signo) { count += signo; }
__attribute__((noinline)) static long mix(long n) { for (int i = 0; i < 6; i++) n = n * 3 + (n >> 5); return n; }
int main(void)
{
    long sum = 1;
    signal(SIGUSR1, handle);
    for (int i = 0; i < 300; i++) {
        sum = mix(sum + i);
        raise(SIGUSR1);
    }
    *(volatile int *)0 = (int)sum;
    return 0;
}
"""


def both(name, root, program=None):
    """The dump and the full recording of an example that crashes, or of another program, at the same addresses."""
    found = []
    for options in ("mode=crash,ring=1M", "mode=traced"):
        where = os.path.join(root, options.split(",", maxsplit=1)[0])
        os.makedirs(where)
        env = tbdtest.trace_env(where, options)
        env["TBD_PADDING"] = "x" * (100 - len(where) - len(options))
        assert tbdtest.run(tbdtest.fixed([program or os.path.join(tbdtest.BUILD, "examples", "forensics", name)]), env=env).code < 0
        tbdtest.wait_organizers(where)
        found.append(tbdtest.find_trace(where, name))
    return found


def script(trace, positions, *commands):
    """The answers at each position."""
    lines = [line for position in positions for line in ("goto " + position, *commands)]
    result = tbdtest.run([tbdtest.TBDQ, "-t", trace.path, "--json", "-q"], stdin="\n".join(lines).encode() + b"\n")
    assert result.code in (0, 1), result
    answers = [json.loads(line) for line in result.out.decode().splitlines()]
    return [answers[i + 1:i + 1 + len(commands)] for i in range(0, len(answers), 1 + len(commands))]


def judge(said, certainty, truth, what):
    """1: known, 0: not.  What is exact must be right."""
    assert certainty in ("exact", "inferred", "unknown"), what
    assert (said is None) == (certainty == "unknown"), what
    assert certainty != "exact" or said == truth, (what, said, truth)
    return certainty != "unknown" and said == truth


def test_a_dump_knows_what_a_recording_has(folder):
    """Registers and variables at positions of the last blocks."""
    dump, full = both("crash_callback", folder)
    last, backs = full.info()["blocks"], [1, 2, 3, 5, 8, 9, 13, 21, 60, 150, 400, 1000]
    ours = script(dump, ["-%d" % back for back in backs], "regs", "print idle", "print handlers", "mem &idle 16")
    theirs = script(full, [str(last - back) for back in backs], "regs", "print idle", "print handlers", "mem &idle 16")
    known = 0
    for back, mine, real in zip(backs, ours, theirs, strict=True):
        assert mine[0]["position"] == "-%d" % back and mine[0]["rip"]["value"] == real[0]["rip"], (mine[0], real[0])
        known += sum(judge(mine[0][name]["value"], mine[0][name]["certainty"], real[0][name], (back, name)) for name in REGISTERS)
        for a, b in zip(mine[1:3], real[1:3]):
            said = None if a["certainty"] == "unknown" else a["value"]
            known += judge(said, a["certainty"], b["value"], (back, a))
        judge(None if mine[3]["certainty"] == "unknown" else mine[3]["bytes"], mine[3]["certainty"], real[3]["bytes"], (back, mine[3]))
    assert known > 0.5 * len(backs) * len(REGISTERS), known


def test_path_shows_values(folder):
    """Of the loop that disarms a callback, by the names in its lines; what is wanted alone."""
    dump, _ = both("crash_callback", folder)
    rows = dump.ask("path", "20", "--values")[1:]
    loop = [{v["name"]: v for v in row["values"]} for row in rows if row.get("text") == "if (++idle[i] == 6)"]
    assert len(loop) == 4 and [row["i"]["value"] for row in loop] == ["0", "1", "2", "3"], loop
    assert all(row["idle"]["certainty"] == "exact" and row["idle"]["after"] != row["idle"]["value"] for row in loop), loop
    assert loop[3]["idle"]["after"] == dump.one("print", "idle")["value"], loop
    insn = dump.ask("path", "2", "insns", "--values", "--only", "rdx")[1]
    assert insn["insn"].startswith("call rdx") and [(v["name"], v["value"]) for v in insn["values"]] == [("rdx", "0x0")], insn
    wanted = dump.ask("path", "4", "--values", "--only", "value,$rdi,nothing_of_that_name")[-2]["values"]
    assert [v["name"] for v in wanted] == ["value", "$rdi"], wanted
    text = dump.tbdq("path", "4", "--values", "--why", json_output=False).out.decode()
    assert "device = 2, value = 7" in text, text
    # A row alone, from its position on, is as among the others; the variables of an instruction's line are those of the row that it begins.
    for row in dump.ask("path", "20", "--values")[-8:]:
        assert dump.ask("path", "2", "from", row["back"], "forward", "--values")[1] == row, row
        insn = dump.ask("path", "2", "insns", "from", row["back"], "forward", "--values", "--variables")[1]
        assert [(v["name"], v.get("value")) for v in insn["values"]] == [(v["name"], v.get("value")) for v in row["values"]], (row, insn)
    assert dump.tbdq("path", "2", "from", "-1+1").code == 2 and dump.tbdq("path", "--exact").code == 2
    # Without an assumption what rests on one is unknown, and the rest is the same.
    some = dump.ask("path", "1000", "insns", "--values")[1:]
    sure = dump.ask("path", "1000", "insns", "--values", "--exact")[1:]
    # Each inferred value names what it rests on, and none that is exact does.
    for value in [value for row in some + dump.ask("path", "1000", "--values")[1:] for value in row["values"]]:
        certainties = {value[key] for key in ("certainty", "after_certainty") if key in value}
        assert "inferred" not in certainties or value["why"].startswith("if "), value
        assert certainties != {"exact"} or "why" not in value, value
    values = [(a, b) for one, other in zip(some, sure, strict=True) for a, b in zip(one["values"], other["values"], strict=True)]
    assert any("inferred" in (a.get("certainty"), a.get("after_certainty")) for a, _ in values), "nothing is inferred"
    for a, b in values:
        for key in ("", "after_"):
            certainty, value = a.get(key + "certainty"), "after" if key else "value"
            assert b.get(key + "certainty") == ("unknown" if certainty == "inferred" else certainty), (a, b)
            assert b.get(value) == (None if certainty == "inferred" else a.get(value)), (a, b)
    found = dump.ask("path", "20", "--where", "i == 2 && idle[2] > 0")[1:]
    assert found and all(row["source"].startswith("crash_callback.c:2") for row in found), found
    assert dump.tbdq("path", "20", "--where", "no_such_name").code == 2
    refused = dump.tbdq("path", "20", "--where", "rdx == 0")
    assert refused.code == 2 and b"hint: the register is $rdx here" in refused.err, refused
    assert dump.ask("path", "2", "insns", "--where", "$rdx == 0")[1]["insn"].startswith("call rdx")


THREAD_ENDED = """#include <pthread.h>
volatile long sum;
static void *count(void *upto) { for (long i = 0; i < (long)upto; i++) sum += i; return 0; }
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, count, (void *)20);
    pthread_join(thread, 0);
    for (int k = 0; k < 5; k++)
        sum += k;
    *(volatile int *)0 = (int)sum;
    return 0;
}
"""


def test_threads_that_ended_have_rows_without_values(folder):
    """The dump has their rings, not their registers: that is a note, the others' values are shown; no row of theirs fulfils a condition."""
    source, program, root = (os.path.join(folder, name) for name in ("ended.c", "ended", "traces"))
    with open(source, "w", encoding="ascii") as file:
        file.write(THREAD_ENDED)
    subprocess.run(["cc", "-g", "-o", program, source, "-lpthread"], check=True)
    os.makedirs(root)
    assert tbdtest.run([program], env=tbdtest.trace_env(root, "mode=crash")).code < 0
    tbdtest.wait_organizers(root)
    dump = tbdtest.Trace(os.path.join(root, "latest"))
    result = dump.tbdq("path", "20", "--values")
    assert result.code == 0 and b"note: of 1 threads the dump has no registers" in result.err, result
    rows = [json.loads(line) for line in result.out.splitlines()[1:]]
    assert {row["function"].split("!")[1] for row in rows} >= {"main", "start_thread"}, rows
    named = [value for row in rows for value in row.get("values", ()) if value["name"] == "k"]
    held = [value for value in named if value["value"] is not None]
    assert [value["value"] for value in held][-1] == "4" and all(value["certainty"] == "inferred" for value in held), named
    found = dump.tbdq("path", "20", "--where", "k == 3")
    lines = [json.loads(line) for line in found.out.splitlines()[1:]]
    assert found.code == 0 and lines and all(row["function"] == "ended!main" for row in lines), found
    assert b"it is not known whether k == 3" in found.err, found


def test_answers_do_not_depend_on_what_was_asked_before(folder):
    dump, _ = both("crash_callback", folder)
    lines = [line for n in (1, 30, 200, 40, 2) for line in ("goto -%d" % n, "regs", "path 12 --values --why")]
    together = tbdtest.run([tbdtest.TBDQ, "-t", dump.path, "-q"], stdin="\n".join(lines).encode() + b"\n")
    alone = [tbdtest.run([tbdtest.TBDQ, "-t", dump.path, "-q"], stdin="\n".join(lines[at:at + 3]).encode() + b"\n") for at in range(0, len(lines), 3)]
    assert together.out == b"".join(one.out for one in alone) and b"unknown" in together.out, together
    # Rows are about their own innermost frames: one that is selected at the position changes neither values nor what is found.
    for question in ("path 200 blocks --values --why", "path 40 --where idle[1]>=0"):
        before, after = (tbdtest.run([tbdtest.TBDQ, "-t", dump.path, "-q", "--json"], stdin=("goto -30\n%s%s\n" % (select, question)).encode())
                         for select in ("", "thread %d\nframe 1\n" % dump.ask("path", "1")[0]["thread"]))
        rows = before.out.splitlines()[1:]
        assert len(rows) > 10 and rows == after.out.splitlines()[-len(rows):] and not after.err, (question, before, after)


def test_a_name_is_the_same_variable_after_a_row(folder):
    """A line that calls walk(), which has a sum of its own: afterwards the name means that one; and where a function returns."""
    dump, _ = both("list", folder)
    rows = dump.ask("path", "60", "--values")[1:]
    held = {row["text"]: {v["name"]: v for v in row["values"]} for row in rows if "text" in row}
    assert held["sum = walk();"]["sum"]["certainty"] == "exact" and "after" not in held["sum = walk();"]["sum"], held["sum = walk();"]
    assert held["int sum = 0;"]["sum"]["after"] == "0", held["int sum = 0;"]
    assert "after" not in held["}"].get("sum", {}) and held["sum += node->value;"]["node"]["certainty"] == "exact", held
    # An inner block's variable hides one: the line before the block and the block's last one speak of two.
    source, program = os.path.join(folder, "hides.c"), os.path.join(folder, "hides")
    with open(source, "w", encoding="ascii") as file:
        file.write(HIDES)
    subprocess.run([tbdtest.need("cc"), "-g", "-O0", "-w", source, "-o", program], check=True)
    root = os.path.join(folder, "root")
    assert tbdtest.run([tbdtest.TBD, "crash", "--record=5", "--", program], env=tbdtest.clean_env({"TBD_DIR": root})).code < 0
    tbdtest.wait_organizers(root)
    rows = tbdtest.Trace(os.path.join(root, "latest")).ask("path", "14", "--values", "--only", "i")[1:]
    said = [(row["text"], [v.get("value") for v in row["values"]], [v.get("after") for v in row["values"] if v.get("after") != v.get("value")]) for row in rows]
    inner = [(held, after) for text, held, after in said if text == "sink = i;  /* inner */"]
    assert inner == [(["0"], [None]), (["100"], [None]), (["200"], [None])], said
    assert [(text, after) for text, _, after in said if text.startswith("int i = k")] == [("int i = k * 100;", [value]) for value in ("0", "100", "200")], said
    assert all(after in ([], [None]) for text, _, after in said if text.startswith("for")), said


def test_text_that_is_not_known_is_not_shown(folder):
    """Characters in memory that the dump does not have, before the end and at it: no text is made of them, and text that goes on there says so."""
    source, program, root = (os.path.join(folder, name) for name in ("texts.c", "texts", "root"))
    with open(source, "w", encoding="ascii") as file:
        file.write(TEXTS)
    subprocess.run([tbdtest.need("cc"), "-g", "-O0", "-w", source, "-o", program], check=True)
    assert tbdtest.run([tbdtest.TBD, "crash", "--", program], env=tbdtest.clean_env({"TBD_DIR": root})).code < 0
    tbdtest.wait_organizers(root)
    dump = tbdtest.Trace(os.path.join(root, "latest"))
    for at in ({"at": "-1"}, {}):
        for text, value, data in (("none->name", "<memory at 0x8 is not known>", "<memory at 0x8 is not known>"), ("tail", '"abcd" <the rest is not known>', None),
                                  ("half->name", '"xxabcd" <the rest is not known>', '"xxabcd" <the rest is not known>')):
            said = dump.one("print", text, **at)
            assert said["value"].endswith(value) and (said["data"]["text"] if text == "tail" else said["data"]) == data, (at, text, said)
            assert said.get("certainty") == ("unknown" if at else None), (at, text, said)
        said = dump.one("print", "*none", **at)
        assert "name = <memory at 0x8 is not known>" in said["value"] and said["data"]["name"] == "<memory at 0x8 is not known>", (at, said)
    assert dump.one("print", "whole")["data"] == {"addr": dump.one("print", "&page[2000]")["value"].split()[0], "text": "abc"}


def test_what_is_known_of_an_array_is_shown(folder):
    """The elements that are known, and "<unknown>" for the others; text that looks like what is said of these is only text."""
    dump = dump_of(compiled(folder, "in_parts", IN_PARTS), os.path.join(folder, "in_parts.d"), "ring=256K,condensed=0,record=0")
    row = next(row for row in dump.ask("path", "20", "--values", "--only", "table,text") if "the last store" in row.get("text", ""))
    values = {value["name"]: value for value in row["values"]}
    assert values["table"]["value"] == "{10, 11, <unknown>, 13, 14, 15}" and values["table"]["certainty"] == "unknown", row
    assert values["table"]["after"] == "{10, 11, 5, 13, 14, 15}" and values["table"]["after_certainty"] == "exact", row
    assert values["text"]["certainty"] == "exact", row
    said = dump.ask("--at", row["back"], "print", "table")[0]
    assert said["unknown_parts"] == 1 and said["certainty"] == "unknown", said
    assert dump.ask("--at", row["back"], "print", "text")[0]["certainty"] == "exact"
    many = dump.ask("--at", row["back"], "print", "table[0]@3")[0]
    assert many["unknown_parts"] == 1 and many["certainty"] == "unknown", many
    few = dump.ask("--at", row["back"], "print", "table[3]@3")[0]
    assert few["certainty"] == "exact" and few["value"] == "{13, 14, 15}", few
    count = dump.ask("--at", row["back"], "print", "table[0]@table[2]")[0]
    assert count["certainty"] == "unknown" and count["value"].endswith("is not known>"), count


def test_what_ran_long_ago_is_looked_at_if_a_value_is_unknown(folder):
    dump = dump_of(compiled(folder, "long_ago", LONG_AGO, "-O1"), os.path.join(folder, "long_ago.d"), "ring=1M,condensed=0,record=0")
    truth = 1234567
    for _ in range(4000):
        truth = ((truth * truth % 2 ** 64) >> 5) + 3
    back = next(row["back"] for row in dump.ask("path", "20", "text") if "the last store" in row.get("text", ""))
    said = dump.ask("--at", back, "print", "total")[0]
    assert said["value"] == str(truth) and said["certainty"] != "unknown", (truth, said)
    assert dump.ask("--at", back, "print", "$rip")[0]["certainty"] == "exact"


def test_names_are_those_of_the_program_that_ran(folder):
    """The program's file has been replaced since, or is gone: names and lines come from the dump's copy; without one there are none, and it says so."""
    program, root = (os.path.join(folder, name) for name in ("hides", "root"))
    for text, level in ((HIDES, "-O0"), (HIDES.replace("static void work", "static void other(int n) { sink = n; }\nstatic void work").replace("work(7)", "other(1), work(7)"), "-O1")):
        source = os.path.join(folder, "hides%s.c" % level)
        with open(source, "w", encoding="ascii") as file:
            file.write(text)
        subprocess.run([tbdtest.need("cc"), "-g", level, "-w", source, "-o", program if level == "-O0" else program + ".new"], check=True)
        if level == "-O0":
            assert tbdtest.run([tbdtest.TBD, "crash", "--", program], env=tbdtest.clean_env({"TBD_DIR": root})).code < 0
            tbdtest.wait_organizers(root)
    dump = tbdtest.Trace(os.path.join(root, "latest"))

    def said():
        found = [dump.tbdq("path", "12", "--values"), dump.tbdq("where", at="-2"), dump.tbdq("print", "i", at="-2")]
        return [f.out for f in found], b"".join(f.err for f in found)

    before, note = said()
    assert b"hides!work" in before[0] and b"hides-O0.c:5" in before[0] and b"hides!work" in before[1] and not note, (before, note)
    os.rename(program + ".new", program)
    assert said() == (before, b"")
    os.rename(program, program + ".new")
    assert said() == (before, b"")
    os.rename(program + ".new", program)
    modules = os.path.join(os.path.realpath(dump.path), "modules")
    copies = [name for name in os.listdir(modules) if name.endswith("-hides")]
    assert len(copies) == 1, copies
    os.remove(os.path.join(modules, copies[0]))
    rows = dump.tbdq("path", "12")
    assert b"hides is not the file that ran: no names from it" in rows.err and rows.err.count(b"hides is not") == 1, rows
    assert rows.code == 0 and b'"function":"hides"' in rows.out and b"hides!" not in rows.out, rows


def test_questions_before_the_end_are_not_about_the_end(folder):
    """The frame, the types, the source and an assertion at a position where another function ran; what rests on an assumption is not asserted."""
    dump, _ = both("list", folder)
    row = next(row for row in dump.ask("path", "30", "--values")[1:] if row.get("text") == "sum ^= i * amount;")
    where = dump.one("where", at=row["back"])
    for command in ("frame 0", "up", "down"):
        frame = dump.one(*command.split(), at=row["back"])
        assert (frame["function"], frame["line"] == int(where["source"].split(":")[1])) == (("main", False) if command == "up" else ("work", True)), (command, frame)
    assert [line["line"] for line in dump.ask("list", at=row["back"]) if line["current"]] == [int(where["source"].split(":")[1])]
    assert dump.one("ptype", "amount", at=row["back"]) and dump.tbdq("ptype", "before", at=row["back"]).code == 2
    value = next(v for v in row["values"] if v["name"] == "amount")
    assert value["certainty"] == "exact" and dump.tbdq("assert", "amount == " + value["value"], at=row["back"]).code == 0
    assert dump.tbdq("assert", "amount == %s + 1" % value["value"], at=row["back"]).code == 1
    refused = dump.tbdq("disas", "3", at=row["back"])
    assert refused.code == 3 and b"path 10 insns from " + row["back"].encode() in refused.err, refused
    assert dump.ask("disas", "work", at=row["back"])[0]["text"] == "push rbp"
    # What is inferred is nothing that an assertion may rest on.
    dump, _ = both("crash_callback", os.path.join(folder, "inferred"))
    guessed = next((row["back"], v) for row in dump.ask("path", "400", "insns", "--values")[1:] for v in row["values"] if v.get("certainty") == "inferred" and v["name"] in REGISTERS)
    assert dump.tbdq("assert", "$%s == %s" % (guessed[1]["name"], guessed[1]["value"]), at=guessed[0]).code != 0, guessed


def test_a_dump_goes_where_values_were(folder):
    """goto with a condition, the values over time as a recording has them; what is unknown is neither."""
    dump, full = both("crash_callback", folder)
    place = dump.one("goto", "crash_callback.c:29", "where", "i", "==", "2")
    assert place["source"] == "crash_callback.c:29" and dump.one("print", "i")["value"] == "2", place
    assert dump.tbdq("goto", "crash_callback.c:29", "where", "i", "==", "77").code == 1
    dump.ask("goto", "last")
    for name in ("idle[0]", "idle[1]", "idle[2]", "handlers[2]"):
        ours, theirs = dump.ask("history", name), [row["value"] for row in full.ask("history", name)]
        exact = [row["value"] for row in ours if row["certainty"] == "exact"]
        rest = iter(theirs)
        assert all(value in rest for value in exact), (name, ours, theirs) # in this order, others between
        assert exact or name == "handlers[2]", (name, ours)
        assert ours[-1]["to"] is None and ours[-1]["value"] == dump.one("print", name)["value"], ours


def test_why_finds_the_same_instructions(folder):
    """In a dump as in a recording of the same run: what called through a handler that somebody had cleared."""
    dump, full = both("crash_callback", folder)
    last = full.info()["blocks"]
    theirs = [row for row in full.ask("why", "handlers[2]")]
    ours = dump.ask("why", "handlers[2]")
    assert [row["source"] for row in ours] == [row["source"] for row in theirs], (ours, theirs)
    assert int(theirs[0]["position"].split("+")[0]) - last == int(ours[0]["position"].split("+")[0]), (ours, theirs, last)
    assert ours[0]["certainty"] == "exact" and ours[0]["value"] == "0x0", ours
    called = dump.ask("--at", "-2+12", "why", "$rdx")
    assert called[1]["source"] == ours[0]["source"] and "memory at" in called[0]["what"], called
    assert dump.tbdq("why").code == 2 and dump.tbdq("why", "no_such_name").code == 2
    # Of a register that is named by its lower half, that half is followed.
    halves = []
    for rows in dump.at(range(-1, -30, -1), ["why /1 $rdx"]):
        halves += [after["value"] for row, after in zip(rows, rows[1:]) if row["what"].startswith("copied from e") and after["depth"] == row["depth"]]
    assert halves and all(value is None or int(value, 16) < 1 << 32 for value in halves), halves


def test_what_is_older_than_the_ring_follows_from_the_code(folder):
    """All paths through the caller to where the ring comes back to it have set a register: to one value, or at least in one place."""
    dump = dump_of(compiled(folder, "older", BEFORE_THE_RING, "-O1", "-no-pie"), os.path.join(folder, "root"), "record=0")
    at = next(row["back"] for row in dump.ask("path", "3")[1:] if "work" in row["function"])
    table = dump.ask("print", "(long)&table")[0]["value"]
    for position in (at, "-20"):
        regs = dump.ask("--at", position, "regs")[0]
        assert regs["r12"] == {"value": hex(int(table)), "certainty": "inferred"}, (position, regs)
        assert regs["r13"] == {"value": None, "certainty": "unknown"} and regs["rbx"]["value"] in (None, "0x1"), (position, regs)
    older = {name: dump.ask("--at", at, "why", "$" + name)[-1] for name in ("r12", "r13", "rbx")}
    assert all(row["function"].endswith("!work") and row["position"] is None for row in older.values()), older
    assert int(older["rbx"]["pc"], 16) == int(older["r12"]["pc"], 16) + 7 and "pc" not in older["r13"], older
    written = dump.ask("--at", "-1", "print", "sink")[0]  # by rdtsc, before that line writes it again
    assert written["certainty"] == "unknown" and written["written"]["function"].endswith("!work") and written["written"]["certain"], written
    assert written["written"]["position"] == dump.ask("--at", "-1", "why", "sink")[0]["position"], written
    assert dump.ask("--at", "-20", "print", "$r13")[0]["written"]["position"] is None
    assert b"written last at -" in dump.tbdq("--at", "-1", "print", "sink", json_output=False).out
    rests = [value["why"] for row in dump.ask("path", "3", "blocks", "--values", "--why", "--only", "r12") for value in row.get("values", []) if "why" in value]
    assert all("entered at its beginning" in why for why in rests), rests


def test_registers_come_back_from_signal_handlers(folder):
    """What rt_sigreturn loads is what the signal saved."""
    dump, full = both("signalled", folder, compiled(folder, "signalled", SIGNALLED, "-O2"))
    last, backs = full.info()["blocks"], list(range(1, 400, 7))
    known = right = 0
    for back, mine, real in zip(backs, script(dump, ["-%d" % back for back in backs], "regs"), script(full, [str(last - back) for back in backs], "regs"), strict=True):
        if mine[0]["rip"]["value"] != real[0]["rip"]:  # blocks are counted otherwise where a handler begins
            continue
        for name in REGISTERS:
            if int(mine[0][name]["value"] or "0", 16) & 0xffffffff == mine[0]["thread"]:  # another one in the other process
                continue
            right += judge(mine[0][name]["value"], mine[0][name]["certainty"], real[0][name], (back, name))
            known += mine[0][name]["certainty"] != "unknown"
    assert known > 100 and right == known, (known, right, len(backs))


def test_triggers_record_values(folder):
    """A variable at a function, registers where `advise` says; what is recorded is what the program had there."""
    program = compiled(folder, "probed", PROBED, "-O1", "-no-pie")
    plain, given = (dump_of(program, os.path.join(folder, name), "record=0" + trigger) for name, trigger in (("plain", ""), ("given", ",trigger=step records *p")))
    seed, values = 1, []
    for _ in range(500):
        for _ in range(4):
            seed = (seed * 3 + (seed >> 3)) % (1 << 64)
            values.append(seed - (1 << 64) if seed >> 63 else seed)
    entries = [row["back"] for row in given.ask("path", "700", "blocks")[1:] if row["function"].endswith("!step") and "+" not in row["back"]][-80:]
    assert len(entries) == 80 and known_share(given) > known_share(plain) + 10, entries
    for answers, least in ((script(given, entries, "print p->value", "print n", "print nodes[0].value"), 80), (script(plain, entries, "print p->value", "print n"), 0)):
        known = 0
        for k, answer in enumerate(answers):
            for said, truth in ((answer[0], values[k - 80]), (answer[1], 480 + k // 4)):
                known += judge(None if said["certainty"] == "unknown" else said["value"], said["certainty"], str(truth), (k, said))
        assert known >= 2 * least and (least or known < 140), known
    # What advise proposes makes about as much more known as it said.
    proposed = [row for row in plain.ask("advise", "10000") if "trigger" in row][0]
    assert proposed["trigger"].startswith("probed!"), proposed
    more = dump_of(program, os.path.join(folder, "more"), "record=0,trigger=" + proposed["trigger"])
    assert known_share(more) > float(proposed["known"].split()[0]) - 5 and known_share(more) > known_share(plain), (known_share(more), proposed)
    # What has no value there is said, and nothing is recorded for it.
    for wish, said in (("step records nobody", b"no variable 'nobody'"), ("step+1", b"no instruction of the function begins there"), ("signal USR1 records", b"not understood"), ("step records *p times 3", b"")):
        result = tbdtest.run([tbdtest.TBD, "crash", "--dir=" + os.path.join(folder, "wrong"), "--trigger=" + wish, "--", program])
        assert said in result.err and b"tbd set:" in result.err, result


def advised(dump, last):
    return float(dump.ask("advise", str(last))[0]["known"].split()[0])


def forgetful(program, folder, options, setting, rounds):
    """Its dump; the dial is turned before it computes."""
    os.makedirs(folder)
    process = tbdtest.start([program], folder, "mode=crash" + options, stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    assert not setting or tbdtest.run([tbdtest.TBD, "set", str(process.pid), setting]).code == 0, setting
    process.communicate(b"%d\n" % rounds, timeout=60)
    assert process.returncode < 0
    tbdtest.wait_organizers(folder)
    return tbdtest.find_trace(folder, "forgetful")


def test_registers_are_recorded_where_a_ring_is_full(folder):
    """By default, without checks in blocks: from there on all values are known; with checks that come or go while it runs, at once."""
    program = compiled(folder, "forgetful", FORGETFUL, "-O1")
    runs = {"none": (",record=1", None, 200000), "come": ("", "record=5", 200000), "went": (",record=5", "record=2", 200000),
            # A third of a ring apart: in one of them the last time that it was full is long ago, but not too long.
            **{"default %d" % n: ("", None, 200000 + n * 5000) for n in range(3)}}
    dumps = {name: forgetful(program, os.path.join(folder, name), *run) for name, run in runs.items()}
    near = {name: advised(dump, 2000) for name, dump in dumps.items()}
    far = {name: advised(dump, 100000) for name, dump in dumps.items()}
    assert max(near["none"], far["none"]) < 80 and sorted(far[name] for name in far if name.startswith("default"))[-1] > 80, (near, far)
    assert near["went"] < 80 and near["come"] == far["come"] == 100, (near, far)


WRITTEN_OVER = r"""
static unsigned long table[1000];
int main(void)
{
    for (unsigned long i = 0; i < 30000; i++) {
        unsigned long j = (table[i % 1000] >> 7 ^ i) % 1000;

        table[j] = table[j] * 6364136223846793005ul + i;
        if (table[j] >> 63)
            table[(j + 500) % 1000] ^= table[j] >> 3;
    }
    *(volatile int *)(table[7] & 0) = 1;
    return 0;
}
"""


def test_memory_is_copied_where_a_ring_is_full(folder):
    """What a program wrote over is known from the copy on, and nothing of it without."""
    program = compiled(folder, "written_over", WRITTEN_OVER, "-O1")
    known = []
    for setting in (1, 2):
        where = os.path.join(folder, "memory%d" % setting)
        os.makedirs(where)
        assert tbdtest.run([program], env=tbdtest.trace_env(where, "mode=crash,record=%d" % setting)).code < 0
        tbdtest.wait_organizers(where)
        known.append(advised(tbdtest.find_trace(where, "written_over"), 200000))
    assert known[0] < 90 and known[1] > known[0] + 10, known


def test_more_is_known_with_the_dial(folder):
    """What `advise` counts, in dumps of the same program: more with each setting."""
    known = []
    for setting in (0, 5, 9):
        where = os.path.join(folder, str(setting))
        os.makedirs(where)
        env = tbdtest.trace_env(where, "mode=crash,record=%d" % setting)
        assert tbdtest.run([os.path.join(tbdtest.BUILD, "examples", "forensics", "crash_callback")], env=env).code < 0
        tbdtest.wait_organizers(where)
        dump = tbdtest.find_trace(where, "crash_callback")
        rows = dump.ask("advise", "20000")
        assert rows[0]["advice"] == "as it is" and all(row["uses"] > 0 for row in rows if row["advice"].startswith("the result")), rows
        known.append(float(rows[0]["known"].split()[0]))
        assert float(rows[-1]["known"].split()[0]) >= known[-1], rows
        if setting == 0:  # what the next steps of the dial would make known, and their cost
            far = dump.ask("advise", "100000")
            settings = {row["advice"]: row for row in far if row["advice"].startswith("record=")}
            assert all(float(row["known"].split()[0]) >= float(far[0]["known"].split()[0]) for row in settings.values()), far
            assert float(settings["record=2"]["known"].split()[0]) > float(far[0]["known"].split()[0]), far
            assert "0.05" in settings["record=2"]["cost"] and "checks" in settings["record=3"]["cost"], settings
    assert known[0] + 10 < known[1] <= known[2] and known[2] > 90, known
    assert dump.tbdq("advise", "many").code == 2


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
