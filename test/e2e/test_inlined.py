#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Functions that the compiler inlined everywhere: breakpoints, `finish` and `list` as gdb, conditions by their code, clear messages."""
import subprocess

import othertools
import tbdtest

SOURCE = """\
#include <stdio.h>
volatile int table[8], sum;
static inline __attribute__((always_inline)) void
put(int at, int value)
{
    table[at & 7] = value;
    sum += value;
}
static inline __attribute__((always_inline)) int
twice(int n)
{
    put(n, n);
    if (n % 3 == 0)
        table[7] = n;
    put(n + 1, n);
    return 2 * n;
}
__attribute__((noinline)) static int user(int n)
{
    int result = twice(n);

    table[0] = result;
    return result + sum;
}
int main(void)
{
    int result = 0;

    for (int i = 0; i < 6; i++)
        result += user(i);
    put(3, result);
    printf("%d\\n", sum);
    return 0;
}
"""


def recorded(folder, level):
    source, path = folder + "/inlined.c", folder + "/inlined" + level
    with open(source, "w", encoding="utf-8") as f:
        f.write(SOURCE)
    subprocess.run(["cc", "-g", level, "-fno-pie", "-no-pie", "-o", path, source], check=True)
    return path, tbdtest.record([path], folder + "/traces" + level)[1]


def stops_of_gdb(path, name):
    """(pc, pc after `finish`) of every stop at the function."""
    return othertools.gdb_script([path], """
gdb.Breakpoint(%r)
run()
while alive():
    row = [value("$pc")]
    for b in gdb.breakpoints():
        b.enabled = False
    if gdb.newest_frame().type() == gdb.INLINE_FRAME:
        gdb.execute("finish", to_string=True)
        row.append(value("$pc"))
    for b in gdb.breakpoints():
        b.enabled = True
    say(row)
    go()
""" % name)


def test_breakpoints_stop_at_every_copy(folder):
    for level, name, least in (("-O0", "twice", 6), ("-O1", "twice", 6), ("-O2", "twice", 6), ("-O0", "put", 13)):
        path, trace = recorded(folder, level)
        # Without `finish`: it moves gdb past the start of a copy that follows at once.
        wanted = othertools.gdb_script([path], "gdb.Breakpoint(%r)\nrun()\nwhile alive():\n    say(value('$pc'))\n    go()\n" % name)
        trace.one("goto", "first")
        lines = ["break " + name] + ["continue"] * (len(wanted) + 1)
        said = tbdtest.run([tbdtest.TBDQ, "-t", trace.path, "--json"], stdin="\n".join(lines).encode() + b"\n")
        found = [tbdtest.number(tbdtest.json.loads(line)["pc"]) for line in said.out.splitlines() if b'"breakpoint"' in line]
        assert len(wanted) >= least and found == wanted, (level, name, [hex(x) for x in found], [hex(x) for x in wanted], said)
        trace.one("goto", "first")
        assert tbdtest.number(trace.one("goto", name)["pc"]) == wanted[0]


def test_finish_ends_in_the_function_around(folder):
    for level in ("-O0", "-O1", "-O2") if tbdtest.LONG else ("-O2",):
        path, trace = recorded(folder, level)
        position, compared = "first", 0
        for row in stops_of_gdb(path, "put"):
            event = trace.one("goto", position, "forward", "state", 1, "where", "pc==%#x" % row[0])
            position = tbdtest.position(event)
            if len(row) == 1:
                continue
            trace.one("goto", position)
            found = trace.ask("finish")[-1]
            assert tbdtest.number(found["pc"]) == row[1], (level, event, found, [hex(x) for x in row])
            compared += 1
        assert compared >= 6, (level, compared)


DEEP = """\
static __attribute__((noinline)) long down(long n)
{
    volatile long at = n;
    return n == 0 ? 1 : at + down(n - 1);
}
int main(void)
{
    return (int)(down(5) + down(6)) & 1;
}
"""


def test_finish_ends_the_selected_frame(folder):
    source, path = folder + "/deep.c", folder + "/deep"
    with open(source, "w", encoding="utf-8") as f:
        f.write(DEEP)
    subprocess.run(["cc", "-g", "-O0", "-fno-pie", "-no-pie", "-o", path, source], check=True)
    trace = tbdtest.record([path], folder + "/traces-deep")[1]
    for up in (1, 3, 5):
        wanted = othertools.gdb_script([path], """
gdb.Breakpoint("down").condition = "n == 0"
run()
gdb.execute("up %d", to_string=True)
gdb.execute("finish", to_string=True)
say([value("$pc"), value("$rax")])
""" % up)[0]
        trace.one("goto", "first", "forward", "func_enter", 1, "where", "func==down and arg0==0")
        trace.ask("up", up)
        answer = trace.ask("finish")
        assert answer[0]["type"] == "func_exit" and answer[0]["result"] == str(wanted[1]), (up, answer, wanted)
        assert tbdtest.number(answer[-1]["pc"]) == wanted[0], (up, answer, wanted)
    # main's return is not the innermost function's either
    trace.one("goto", "first", "forward", "func_enter", 1, "where", "func==down and arg0==0")
    trace.ask("up", 6)
    assert trace.ask("finish")[0]["result"] == "0", trace.ask("where")


COPIES = """\
volatile int seen[4], total;
static __attribute__((noinline)) int callee(int n)
{
    seen[0] = n;
    return n + seen[0];
}
static inline __attribute__((always_inline)) int inner(int n)
{
    int r = callee(n);
    seen[1] = r;
    return r + 1;
}
static inline __attribute__((always_inline)) int outer(int n)
{
    int a = inner(n);
    seen[2] = a;
    return a + inner(n + 1);
}
static __attribute__((noinline)) int around(int n)
{
    int b = outer(n);
    seen[3] = b;
    return b;
}
int main(void)
{
    total = around(3);
    total += around(4);
    return 0;
}
"""


def test_finish_leaves_the_selected_copy(folder):
    """callee() is called by a copy of inner() in a copy of outer() in around(): `up` to each, and `finish`."""
    compared = 0
    for level in ("-O0", "-Og", "-O2") if tbdtest.LONG else ("-O2",):
        source, path = folder + "/copies.c", folder + "/copies" + level
        with open(source, "w", encoding="utf-8") as f:
            f.write(COPIES)
        subprocess.run(["cc", "-g", level, "-fno-pie", "-no-pie", "-o", path, source], check=True)
        trace = tbdtest.record([path], folder + "/traces" + level)[1]
        for call in (1, 2, 4):
            for up in (1, 2, 3):
                wanted = othertools.gdb_script([path], """
b = gdb.Breakpoint("callee")
b.ignore_count = %d
run()
b.enabled = False
gdb.execute("up %d", to_string=True)
gdb.execute("finish", to_string=True)
say([value("$pc"), gdb.selected_frame().name()])
""" % (call - 1, up))[0]
                trace.one("goto", "first", "forward", "func_enter", call, "where", "func==callee")
                trace.ask("up", up)
                answer = trace.ask("finish")[-1]
                frame = trace.ask("bt")[0]
                assert tbdtest.number(answer["pc"]) == wanted[0], (level, call, up, answer, frame, hex(wanted[0]), wanted[1])
                compared += 1
    assert compared == (27 if tbdtest.LONG else 9)


def test_conditions_know_the_code_of_copies(folder):
    for level in ("-O0", "-O2"):
        trace = recorded(folder, level)[1]
        stores = trace.ask("all", "store", "of", "table", "where", "func==put")
        everything = trace.ask("all", "store", "of", "table")
        lines = {e["line"] for e in stores}
        assert len(stores) == 13 and lines == {6}, (level, stores)
        assert {e["line"] for e in everything if e not in stores} == {14, 22}, (level, everything)
        around = trace.ask("all", "store", "of", "table", "where", "func==twice")
        assert len(around) == 14 and {e["line"] for e in around} == {6, 14}, (level, around)


STACKS = """
gdb.execute("set backtrace past-main off")
places = %r
for pc in places:
    gdb.Breakpoint("*%%#x" %% pc)
run()
while alive():
    frame, names = gdb.newest_frame(), []
    while frame is not None:
        names.insert(0, frame.name())
        frame = frame.older()
    say(names)
    go()
"""


def test_stacks_have_the_calls_of_copies(folder):
    for level in ("-O0", "-O1", "-O2") if tbdtest.LONG else ("-O0", "-O2"):
        path, trace = recorded(folder, level)
        stores = trace.ask("all", "store", "of", "table")
        wanted = othertools.gdb_script([path], STACKS % sorted({tbdtest.number(e["pc"]) for e in stores}))
        assert len(wanted) == len(stores) == 21
        places = []  # (pattern, where the stores are, or how many)
        for names in map(list, sorted(set(map(tuple, wanted)))):
            for pattern in ("**," + ",".join(names), ",".join(["**"] + ["*" if n == "user" else n for n in names[:-1]] + names[-1:])):
                places.append((pattern, [tbdtest.position(e) for e, stack in zip(stores, wanted) if stack == names]))
        places += [("**,user,**", 20), ("**,twice,**", 14), ("**,put,**", 13), ("**,put,*", 0), ("**,twice,*", 12), ("**,main,put", 1),
                   ("**,user,put", 0), ("**,put,twice", 0), ("**,main,*", 7)]
        answers = trace.script("all store of table where stack=<%s>" % pattern for pattern, _ in places)
        for (pattern, there), found in zip(places, answers, strict=True):
            assert (len(found) if isinstance(there, int) else [tbdtest.position(e) for e in found]) == there, (level, pattern, found, there)
        # The function column is the innermost call, and leads to the function around.
        assert [e["function"] for e in stores] == [stack[-1] for stack in wanted], stores
        outer = [[name for name in stack if name in ("main", "user")][-1] for stack in wanted]
        assert [e.get("outer", e["function"]) for e in stores] == outer, stores
        rows = trace.ask("stores", "of", "table")
        assert [(e["function"], e.get("outer")) for e in rows] == [(e["function"], e.get("outer")) for e in stores]
        # A function that is entered is not the copy that it begins with; copies may be around it.
        entries = trace.ask("all", "func_enter", "where", "stack=<**,main,user>")
        assert len(entries) == 6 == len(trace.ask("calls", "user", "where", "stack=<**,main,user>")) and {e["function"] for e in entries} == {"user"}
        assert not trace.ask("calls", "user", "where", "stack=<**,put>")
        assert b"called 'nobody'" in trace.tbdq("all", "store", "where", "stack=<**,nobody>").err


CALLER = """\
#include <stdio.h>
volatile int sum;
__attribute__((noinline)) static void leaf(int n) { sum += n; }
static inline __attribute__((always_inline)) void each(int n)
{
    for (int i = 0; i < n; i++)
        leaf(i);
}
int main(void)
{
    each(3);
    leaf(9);
    printf("%d\\n", sum);
    return 0;
}
"""


def test_calls_out_of_copies_have_them_as_callers(folder):
    source, path = folder + "/caller.c", folder + "/caller"
    with open(source, "w", encoding="utf-8") as f:
        f.write(CALLER)
    subprocess.run(["cc", "-g", "-O1", "-o", path, source], check=True)
    trace = tbdtest.record([path], folder + "/traces-caller")[1]
    for pattern, count in (("**,each,leaf", 3), ("**,main,each,leaf", 3), ("**,main,leaf", 1), ("**,leaf", 4)):
        for words in (["calls", "leaf"], ["all", "func_enter"], ["all", "func_exit"], ["all", "store", "of", "sum"]):
            found = trace.ask(*words, "where", "stack=<%s>" % pattern)
            assert len(found) == count, (pattern, words, found)


def counts(trace, *words):
    return {row["by"].split("!")[1]: row["count"] for row in trace.ask("count", *words)}


def test_counts_are_those_of_the_innermost_function(folder):
    for level in ("-O0", "-O2"):
        trace = recorded(folder, level)[1]
        question = ("store", "of", "table")
        # 12 stores in put() in twice() in user() and one in put() in main(); two of twice() itself, six of user().
        inner = {"put": 13, "twice": 2, "user": 6}
        assert counts(trace, *question, "by", "func") == inner == counts(trace, *question), level
        assert counts(trace, *question, "by", "outer") == {"user": 20, "main": 1}, level
        for name in inner:
            assert counts(trace, *question, "where", "func==" + name, "by", "func")[name] == inner[name], (level, name)
        for by in ("func", "outer"):
            entered = counts(trace, "func_enter", "where", "func==user or func==main", "by", by)
            assert entered == {"user": 6, "main": 1}, (level, by, entered)


def test_what_has_no_entry_is_said_to_be_inlined(folder):
    trace = recorded(folder, "-O1")[1]
    for words in (["calls", "twice"], ["all", "func_enter", "where", "func==twice"], ["count", "func_exit", "where", "func==twice"]):
        answer = trace.tbdq(*words, json_output=False)
        assert answer.code == 2 and b"'twice' is inlined" in answer.err and b"inlined.c:20 (in user)" in answer.err, (words, answer)
    answer = trace.tbdq("calls", "nothing", json_output=False)
    assert answer.code == 2 and b"inlined" not in answer.err.replace(b"inlined.c", b""), answer
    texts = [row["text"] for row in trace.ask("list", "twice")]
    assert "twice(int n)" in texts, texts


def test_what_has_no_instruction_left_is_said_to_be_inlined(folder):
    source, path = folder + "/gone.c", folder + "/gone"
    with open(source, "w", encoding="utf-8") as f:
        f.write("static inline int same(int n) { return n; }\nint main(int argc, char **argv) { (void)argv; return same(argc) - 1; }\n")
    subprocess.run(["cc", "-g", "-O2", "-o", path, source], check=True)
    trace = tbdtest.record([path], folder + "/traces")[1]
    answer = trace.tbdq("calls", "same", json_output=False)
    assert answer.code == 2 and b"'same' is inlined wherever it is called, and no instruction of it is left" in answer.err, answer
    answer = trace.tbdq("breakpoints", json_output=False)
    assert answer.code == 0 and answer.out.startswith(b"there are none"), answer


BOTH = """\
#include <cstdio>
volatile int table[8], sum;
namespace shop {
static inline void put(int at, int value)
{
    table[at & 7] = value;
    sum = sum + value;
}
struct Item {
    int n;
    int cost(int k) const { put(n, k); return n * k; }
    int cost(double k) const { put(n + 1, (int)k); return (int)(n * k); }
};
__attribute__((noinline)) int far(void (*f)(int, int), int a)
{
    f(a, 1);
    return a;
}
}
namespace other {
__attribute__((noinline)) int far(int a) { sum = sum + a; return a + 7; }
}
template <typename T> __attribute__((noinline)) T twice(T x) { sum = sum + 1; return x + x; }
__attribute__((noinline)) int over(int a) { sum = sum + a; return a + 1; }
__attribute__((noinline)) int over(double a) { sum = sum + 2; return (int)a + 2; }
__attribute__((noinline)) int use(int a)
{
    shop::put(a, 2);
    return a + sum;
}
int main(int argc, char **)
{
    shop::Item item = { argc };
    int total = 0;

    for (int i = 0; i < 3; i++) {
        shop::put(i + argc, i);
        total += use(i);
    }
    total += shop::far(shop::put, 4) + item.cost(3) + item.cost(2.5) + twice(4) + (int)twice(2.5) + over(1) + over(1.5) + other::far(3);
    std::printf("%d\\n", total);
    return 0;
}
"""


def recorded_both(folder):
    source, path = folder + "/both.cc", folder + "/both"
    with open(source, "w", encoding="utf-8") as f:
        f.write(BOTH)
    subprocess.run(["c++", "-g", "-O1", "-finline-functions", "-fno-pie", "-no-pie", "-o", path, source], check=True)
    return path, tbdtest.record([path], folder + "/traces-both")[1]


def stops(trace, name):
    trace.one("goto", "first")
    said = tbdtest.run([tbdtest.TBDQ, "-t", trace.path, "--json"], stdin="\n".join(["break " + name] + ["- continue"] * 14).encode() + b"\n")
    return [tbdtest.number(tbdtest.json.loads(line)["pc"]) for line in said.out.splitlines() if b'"breakpoint"' in line]


def test_own_code_and_copies_are_one_function(folder):
    path, trace = recorded_both(folder)
    for name in ("put", "shop::put"):
        wanted = othertools.gdb_script([path], "gdb.Breakpoint(%r)\nrun()\nwhile alive():\n    say(value('$pc'))\n    go()\n" % name)
        found = stops(trace, name)
        # Where code is mixed, gdb goes on to the start of a statement.
        assert len(wanted) == len(found) == 9 and all(0 <= b - a <= 8 for a, b in zip(found, wanted)), ([hex(x) for x in found], [hex(x) for x in wanted])
        assert sum(a == b for a, b in zip(found, wanted)) >= 7, (found, wanted)
        assert len(trace.ask("all", "store", "of", "table", "where", "func==" + name)) == 9, name
        calls = trace.tbdq("calls", name, json_output=False)
        assert calls.code == 0 and b"also inlined" in calls.err and b"both.cc:28 (in use)" in calls.err, calls
        first, again = (trace.tbdq("log", name, "%d", "at", json_output=False) for _ in range(2))
        assert first.out == again.out and first.err == again.err and b"also inlined" in again.err, (first, again)
        assert "static inline void put(int at, int value)" in [row["text"] for row in trace.ask("list", name)]
    for name, count in (("Item::cost", 2), ("shop::Item::cost", 2), ("cost", 2), ("Item::cost(int)", 1), ("shop::Item::cost(double)", 1), ("other::cost", 0)):
        answer = trace.tbdq("all", "store", "of", "table", "where", "func==" + name)
        assert len(answer.out.splitlines()) == count and answer.code == (0 if count else 2), (name, answer)
    said = trace.tbdq("--complete", "break pu", json_output=False).out.split() + trace.tbdq("--complete", "break shop::", json_output=False).out.split()
    assert b"put" in said and b"shop::put" in said, said


def test_names_of_several_functions_are_told(folder):
    _, trace = recorded_both(folder)
    for name, both in (("far", (b"shop::far (both.cc:", b"other::far (both.cc:")), ("over", (b"over (both.cc:24)", b", over (both.cc:25)")),
                       ("twice", (b"twice<int>", b"twice<double>"))):
        for words in (["break", name], ["disas", name]):
            answer = trace.tbdq(*words, json_output=False)
            assert answer.code == 0 and b"'%s' means" % name.encode() in answer.err and all(one in answer.err for one in both), (words, answer)
        listed = trace.tbdq("list", name, "3", json_output=False).out
        assert listed.count(b"file: ") == 2, listed
        assert len(trace.ask("calls", name)) == 2, name
    for name in ("shop::far", "other::far", "over(int)", "over(double)", "twice<int>", "twice<double>"):
        assert b"means" not in trace.tbdq("break", name, json_output=False).err, name
        for words in (["all", "func_enter", "where", "func==" + name], ["calls", name]):
            assert len(trace.ask(*words)) == 1, (words, trace.ask(*words))
        assert len(stops(trace, name)) == 1, name
        assert trace.tbdq("list", name).code == 0 and trace.tbdq("disas", name).code == 0, name
    assert len(trace.ask("all", "func_enter", "where", "(func==over(int) or func!=over) and func==over")) == 1


if __name__ == "__main__":
    tbdtest.main(*[f for n, f in sorted(globals().items()) if n.startswith("test_")])
