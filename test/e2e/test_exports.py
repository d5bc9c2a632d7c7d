#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`tbdq export`: each file is read by something that is not ours, and compared with `tbdq calls`."""
import json
import os
import re
import shutil

import tbdtest



def fields(data):
    """The fields of a protocol-buffers message: (number, value) in order; bytes for what has a length."""
    at, out = 0, []

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
    while at < len(data):
        key = varint()
        if key & 7 == 0:
            out.append((key >> 3, varint()))
        else:
            assert key & 7 == 2, key
            size = varint()
            out.append((key >> 3, data[at:at + size]))
            at += size
    assert at == len(data)
    return out


def exported(folder, form, *words, options=""):
    _, trace = tbdtest.record([tbdtest.program("heap")], folder, options or "window=500")
    path = os.path.join(folder, "out")
    result = trace.tbdq("export", form, path, *words, json_output=False)
    assert result.code == 0, result
    return trace, path


def calls(trace, *names):
    """name -> entry times, exit times + 1"""
    rows = {name: trace.ask("calls", name) for name in names}
    return {name: [(row["time"], int(re.match(r"\d+", row["exit"])[0]) + 1) for row in rows[name]] for name in names}


NAMES = ("main", "wrapped", "leak_in_a_loop", "leak_array", "use_after_free")


def test_perfetto_has_nested_calls_threads_and_system_calls(folder):
    trace, path = exported(folder, "perfetto")
    with open(path, "rb") as file:
        packets = [fields(packet) for number, packet in fields(file.read()) if number == 1]
    assert all((10, 1) in packet for packet in packets) and (13, 1) in packets[0], packets[0]
    names, open_now, slices, instants, tracks = {}, [], [], [], []
    for packet in packets:
        own = dict(packet)
        if 12 in own:
            names.update((dict(fields(name))[1], dict(fields(name))[2].decode()) for number, name in fields(own[12]) if number == 2)
        if 60 in own:
            tracks.append(dict(fields(own[60])))
        if 11 in own:
            event = dict(fields(own[11]))
            if event[9] == 1:
                open_now.append((names[event[10]], own[8]))
            elif event[9] == 2:
                slices.append((*open_now.pop(), own[8]))
            else:
                instants.append(event[23].decode())
    assert not open_now and len(tracks) == 2 and dict(fields(tracks[0][3]))[1] == dict(fields(tracks[1][4]))[1], tracks
    for name, wanted in calls(trace, *NAMES).items():
        assert [row[1:] for row in slices if row[0] == name] == wanted, (name, wanted, slices)
    assert len(instants) == len(trace.ask("syscalls")), instants


MARKED = """#include <tbd/tbd.h>
static volatile int level = 7;
static volatile double share;
static void __attribute__((noinline)) inner(int n)
{
    level = 1 - n;
    share = n / 4.0;
}
static void __attribute__((noinline)) outer(int n)
{
    inner(n);
    inner(n + 1);
}
int main(void)
{
    for (int i = 0; i < 3; i++) {
        if (tbd_mark)
            tbd_mark(i == 1 ? "a \\"middle\\"" : "step");
        outer(i);
    }
    return 0;
}
"""


def test_perfetto_has_marks_and_counters_to_a_depth(folder):
    """Read by protoc, which knows the public schema's numbers only."""
    protoc = tbdtest.need("protoc")
    program, schema = os.path.join(folder, "marked"), os.path.join(tbdtest.SOURCE, "test/e2e")
    with open(program + ".c", "w", encoding="utf-8") as file:
        file.write(MARKED)
    built = tbdtest.run([tbdtest.need("cc"), "-g", "-O1", "-I" + tbdtest.SOURCE + "/include", program + ".c", "-o", program])
    assert built.code == 0, built
    _, trace = tbdtest.record([program], folder + "/traces")
    path = folder + "/out"
    said = trace.tbdq("export", "perfetto", path, "depth", "3", "counter", "level", "counter", "share", json_output=False)
    assert said.code == 0, said
    with open(path, "rb") as file:
        said = tbdtest.run([protoc, "--decode=perfetto.protos.Trace", "--proto_path=" + schema, schema + "/perfetto.proto"], stdin=file.read())
    text = said.out.decode()
    assert said.code == 0 and not re.search(r"^ *\d+[:{ ]", text, re.M), "a field that the schema does not have: %s" % text
    assert re.findall(r" counter_value: (-?\d+)", text) == ["7", "1", "0", "-1", "-2"], text
    assert [float(value) for value in re.findall(r" double_counter_value: (\S+)", text)] == [0, 0.25, 0.5, 0.75], text
    marks = re.findall(r'categories: "mark"\n *name: "(.*)"\n', text)
    assert [mark.replace("\\", "") for mark in marks] == ["step", 'a "middle"', "step"], marks
    names = {number: name for number, name in re.findall(r'iid: (\d+)\n *name: "(.*)"', text)}
    begun = [names[number] for number in re.findall(r"type: TYPE_SLICE_BEGIN\n *name_iid: (\d+)", text)]
    assert "outer" in begun and "inner" not in begun and len(re.findall("TYPE_SLICE_END", text)) == len(begun), begun
    assert len(re.findall(r"counter \{", text)) == 2, text
    for words, message in ((["depth", "0"], b"export takes"), (["counter", "nothing"], b"nothing"), (["counter", "inner"], b"a counter is")):
        said = trace.tbdq("export", "perfetto", path, *words, json_output=False)
        assert said.code == 2 and message in said.err, said
    assert b"only perfetto" in trace.tbdq("export", "folded", path, "counter", "level", json_output=False).err


def test_folded_and_speedscope_agree(folder):
    trace, path = exported(folder, "folded", "func", "*a*")
    with open(path, encoding="utf-8") as file:
        folded = dict(line.rsplit(" ", 1) for line in file.read().splitlines())
    assert trace.tbdq("export", "speedscope", path, "func", "*a*", json_output=False).code == 0
    with open(path, encoding="utf-8") as file:
        scope = json.load(file)
    totals, stack, last = {}, [], 0
    for event in scope["profiles"][0]["events"]:
        if stack:
            key = ";".join(stack)
            totals[key] = totals.get(key, 0) + event["at"] - last
        last = event["at"]
        name = scope["shared"]["frames"][event["frame"]]["name"]
        if event["type"] == "O":
            stack.append(name)
        else:
            assert stack.pop() == name
    assert not stack and {key: int(value) for key, value in folded.items()} == {k: v for k, v in totals.items() if v}, folded


def test_callgrind_annotate_reads_it(folder):
    annotate = tbdtest.need("callgrind_annotate")
    trace, path = exported(folder, "callgrind", "where", "thread != 0")
    said = tbdtest.run([annotate, "--inclusive=yes", "--threshold=100", "--auto=no", path])
    assert said.code == 0, said
    found = {name: int(cost.replace(",", "")) for cost, name in re.findall(r"^ *([\d,]+) \([^)]*\) +\S*:(\w+)(?: |$)", said.out.decode(), re.M)}
    for name, wanted in calls(trace, *NAMES).items():
        assert found[name] == sum(end - start for start, end in wanted), (name, found, wanted)


def test_gdb_opens_core_files(folder):
    gdb = tbdtest.need("gdb")
    trace, path = exported(folder, "folded")
    stop = trace.ask("calls", "use_after_free")[0]["position"]
    assert trace.tbdq("export", "core", path, at=stop, json_output=False).code == 0
    said = tbdtest.run([gdb, "-nx", "-batch", "-ex", "bt", "-ex", "p/x $rip", "-ex", "p kept[3]", "-ex", "p $ymm0.v8_int32", "-ex",
                        "info proc mappings", tbdtest.program("heap"), path]).out.decode()
    assert re.search(r"#0 .*use_after_free", said) and re.search(r"#1 .* main ", said), said
    pc = trace.ask("bt", at=stop)[0]["pc"]
    assert int(re.search(r"\$1 = (0x[0-9a-f]+)", said)[1], 0) == int(pc, 0), said
    value = trace.tbdq("print", "kept[3]", at=stop, json_output=False).out.decode().strip()
    assert re.search(r"\$2 = .*%s" % value, said), (said, value)
    assert "libc.so.6" in said, said


COVERED = r'''
#include <stdio.h>
static int total;
static int never(int x)
{
    return x * 2;
}
static int odd(int x)
{
    if (x % 2)
        return 1;
    return 0;
}
int main(int argc, char **argv)
{
    int i = 0;
    (void)argv;
    for (int k = 0; k < 100; k++) {
        if (odd(k))
            total += 3;
        else
            total -= 1;
    }
    while (i < 50) {
        i++;
        switch (i % 3) {
        case 0:
            total ^= 1;
            break;
        default:
            total += i;
        }
    }
    do
        total--;
    while (total > 1000);
    if (argc > 5)
        printf("%d", never(3));
    printf("%d\n", total);
    return 0;
}
'''


def read_lcov(path):
    """file -> ({line: count}, {function: count})"""
    files, functions = {}, {}
    with open(path, encoding="utf-8") as file:
        for row in file:
            key, _, rest = row.strip().partition(":")
            if key == "SF":
                lines, functions = files.setdefault(rest, ({}, {}))
            elif key == "DA":
                lines[int(rest.split(",")[0])] = int(rest.split(",")[1])
            elif key == "FNDA":
                functions[rest.split(",", 1)[1]] = int(rest.split(",")[0])
    return files


def test_lcov_is_what_gcov_counts(folder):
    gcov = tbdtest.need("gcov")
    source, path = os.path.join(folder, "covered.c"), os.path.join(folder, "covered")
    with open(source, "w", encoding="utf-8") as file:
        file.write(COVERED)
    for flags, out in ((["--coverage"], path + "_gcov"), ([], path)):
        built = tbdtest.run([tbdtest.need("cc"), "-g", "-O0", *flags, source, "-o", out], cwd=folder)
        assert built.code == 0, built
    assert tbdtest.run([path + "_gcov"], cwd=folder).code == 0
    said = tbdtest.run([gcov, "--json-format", "--stdout", "covered_gcov-covered"], cwd=folder)
    wanted = json.loads(said.out)["files"][0]
    lines = {line["line_number"]: line["count"] for line in wanted["lines"]}
    functions = {row["name"]: row["execution_count"] for row in wanted["functions"]}
    _, trace = tbdtest.record([path], folder, "window=400")
    info = path + ".info"
    assert trace.tbdq("export", "lcov", info, json_output=False).code == 0
    files = {os.path.basename(name): both for name, both in read_lcov(info).items()}
    found, called = files["covered.c"]
    assert {name: called[name] for name in functions} == functions, (called, functions)
    text = dict(enumerate(COVERED.split("\n"), 1))
    both = set(found) & set(lines)
    assert len(both) >= 20 and {line: found[line] for line in both} == {line: lines[line] for line in both}, (found, lines)
    # gcov also counts labels and the names of functions, which have no code; code of braces is not its business
    assert all(re.match(r"\s*(case |default:|static int |int main)", text[line]) for line in set(lines) - both), (found, lines)
    assert all(text[line].strip() in ("{", "}") for line in set(found) - both), (found, lines)
    genhtml = shutil.which("genhtml")  # the comparison above counts without it
    if genhtml is not None:
        check_genhtml(genhtml, folder, info)


def check_genhtml(genhtml, folder, info):
    html = os.path.join(folder, "html")
    said = tbdtest.run([genhtml, "-q", "-o", html, info])
    assert said.code == 0, said
    with open(os.path.join(html, "index.html"), encoding="utf-8") as file:
        assert "LCOV" in file.read()


REFERENCES = r'''
static volatile int a[64];
static volatile long sum;
static volatile double real = 1;
static char from[64], to[64];
static int sum_of(int depth) { volatile int own = depth; return depth == 0 ? own : own + sum_of(depth - 1); }
static void strings(char *d, const char *s, unsigned long n)
{
    __asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
    n = 3;
    __asm__ volatile("rep stosq" : "+D"(d), "+c"(n) : "a"(0L) : "memory");
    __asm__ volatile("movsb" : "+D"(d), "+S"(s) : : "memory");
}
__attribute__((noinline)) void begin(void)
{
    for (int i = 0; i < 50; i++) { a[i] = i; sum += a[i] * (i % 3 ? 2 : 1); real *= 1.5; }
    sum += sum_of(20);
    strings(to, from, 29);
    __asm__ volatile("lock incq %0\n\txchgq %1, %0\n\tpushq %0\n\tpopq %0" : "+m"(sum) : "r"(5L) : "memory");
    __asm__ volatile("movups %0, %%xmm0\n\tmovups %%xmm0, %1\n\tcmpxchgq %2, %3" : : "m"(from), "m"(to), "r"(1L), "m"(sum) : "xmm0", "rax", "memory");
}
__attribute__((noinline)) void end(void) { sum++; }
int main(void) { begin(); end(); return 0; }
'''


def references(path, start, end):
    """From the instruction at `start` to that at `end`: (kind, address, size). Stacks begin elsewhere: theirs count from the first one."""
    found, stack, is_on = [], None, False
    with open(path, encoding="utf-8") as file:
        rows = re.findall(r"^(I | [LSM]) ([0-9a-f]+),(\d+)$", file.read(), re.M)
    for kind, text, size in rows:
        address = int(text, 16)
        if kind == "I ":
            is_on = address == start or is_on and address != end
        if address >> 32 and stack is None and is_on:
            stack = address
        if is_on:
            found.append((kind.strip(), address - stack if address >> 32 else address, int(size)))
    return found


def as_tbd_says_it(rows):
    """Lackey's rows: a locked instruction has its load twice there; each round of a rep is an instruction, the last without a reference.
    Here its loads are one, and so are its stores."""
    out, at = [], 0
    while at < len(rows):
        group = [rows[at]]
        while at + len(group) < len(rows) and rows[at + len(group)][0] != "I":
            group.append(rows[at + len(group)])
        at += len(group)
        if out and out[-1][0] == group[0]:
            out[-1] += group[1:]
        else:
            out.append(group)
    joined = []
    for group in out:
        for letter in "LS":
            rows = [row for row in group if row[0] == letter]
            if len(rows) > 1 and len(group) != 3:
                group = [row for row in group if row[0] != letter] + [(letter, rows[0][1], sum(row[2] for row in rows))]
        if len(group) == 3 and group[1][0] == "L" and group[2] == ("M", *group[1][1:]):
            del group[1]
        joined += group
    return joined


def test_lackey_has_the_references_that_valgrind_s_has(folder):
    valgrind = tbdtest.need("valgrind")
    source, path, log = (os.path.join(folder, name) for name in ("referring.c", "referring", "log"))
    with open(source, "w", encoding="utf-8") as file:
        file.write(REFERENCES)
    built = tbdtest.run([tbdtest.need("cc"), "-O1", "-fno-pie", "-no-pie", source, "-o", path], cwd=folder)
    assert built.code == 0, built
    names = {row.split()[2]: int(row.split()[0], 16) for row in tbdtest.run(["nm", path]).out.decode().splitlines() if len(row.split()) == 3}
    said = tbdtest.run([valgrind, "--tool=lackey", "--trace-mem=yes", "--log-file=" + log, path], cwd=folder)
    assert said.code == 0, said
    _, trace = tbdtest.record([path], folder, "window=100")
    out, parts = path + ".out", [path + ".1", path + ".2"]
    assert trace.tbdq("export", "lackey", out, json_output=False).code == 0
    wanted = as_tbd_says_it(references(log, names["begin"], names["end"]))
    found = references(out, names["begin"], names["end"])
    assert len(wanted) > 1000 and {row[0] for row in wanted} == set("ILSM"), wanted
    assert found == wanted, [pair for pair in zip(found, wanted) if pair[0] != pair[1]][:5]
    for part, span in zip(parts, (("to", "150"), ("from", "150"))):
        assert trace.tbdq("export", "lackey", part, *span, json_output=False).code == 0
    texts = []
    for name in [out, *parts]:
        with open(name, encoding="utf-8") as file:
            texts.append(file.read())
    assert texts[1] and texts[2] and texts[0] == texts[1] + texts[2]
    for words in (("from",), ("from", "-1"), ("until", "3"), ("to", "99999999999999999999")):
        assert trace.tbdq("export", "lackey", out, *words, json_output=False).code == 2, words
    assert trace.tbdq("export", "lackey", out, "from", "10000000", json_output=False).code == 1


if __name__ == "__main__":
    tbdtest.main(test_perfetto_has_nested_calls_threads_and_system_calls, test_perfetto_has_marks_and_counters_to_a_depth, test_folded_and_speedscope_agree, test_callgrind_annotate_reads_it,
                 test_gdb_opens_core_files, test_lcov_is_what_gcov_counts,
                 test_lackey_has_the_references_that_valgrind_s_has)
