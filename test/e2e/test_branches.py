#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Branch context (mode=context, option `branches`): tbd_branch_context() and `tbdq branches` against the jumps that a full recording of the same
program has, decoded with objdump."""
import json
import os
import re
import subprocess

import tbdtest
import test_rows

TALLIES = ("counts", "xor", "sum", "product")
FUNCTIONS = ("collatz", "rounds", "kinds", "deep", "returns_twice", "grows", "leaf")
TRANSFERS = re.compile(r"^(j\w+|call|ret|notrack jmp|bnd jmp|loop\w*)\b")


def build(folder, *options):
    path = os.path.join(folder, "branches")
    subprocess.run(["cc", "-g", "-I", os.path.join(tbdtest.SOURCE, "include"), os.path.join(tbdtest.SOURCE, "test", "programs", "branches.c"),
                    "-o", path, *options], check=True)
    return path


def instructions(program):
    """Of each function: [(offset in it, text)]."""
    out = subprocess.run(["objdump", "-d", "--no-show-raw-insn", program], check=True, capture_output=True, text=True).stdout
    functions = {}
    for line in out.splitlines():
        head = re.match(r"^([0-9a-f]+) <([^>]+)>:$", line)
        if head:
            start, listing = int(head[1], 16), functions.setdefault(head[2], [])
        elif re.match(r"^ +[0-9a-f]+:\t", line):
            address, text = line.split(":\t")
            listing.append((int(address, 16) - start, text.strip()))
    return functions


def last_of(listing, offset):
    """The instruction that ends the block at this offset, the offset after it."""
    for (at, text), (after, _) in zip(listing, listing[1:] + [(1 << 40, "")]):
        if at >= offset and TRANSFERS.match(text):
            return at, text, after
    return listing[-1][0], "", 1 << 40


def jumps_of(program, trace):
    """Truth: per function, how often each jump had jumped in its outermost call when that asked last: {offset: times}."""
    code = instructions(program)
    blocks = [(row["time"], row["function"], row["function_offset"]) for row in
              trace.ask("all", "block_entry", "where", "module == \"branches\"") if row.get("function") in FUNCTIONS + ("main",)]
    calls, answers = {name: [] for name in FUNCTIONS}, {}
    before = (0, "", 0)
    for n, (time, name, offset) in enumerate(blocks):
        listing = code.get(name, [])
        if name not in FUNCTIONS:
            before = (time, name, offset)
            continue
        last = last_of(code[before[1]], before[2])[1] if before[1] in code else ""
        if offset == 0 and not (before[1] == name and before[0] == time - 1 and last.startswith("j")):
            calls[name].append({})
        at, text, after = last_of(listing, offset)
        counts = calls[name][-1]
        if text.startswith("j") and not text.startswith("jmp") and n + 1 < len(blocks) and blocks[n + 1][0] == time + 1:
            target = next_offset(text)
            if blocks[n + 1][1:] == (name, target) and target != after:
                counts[at] = counts.get(at, 0) + 1
        if text.startswith("call") and "tbd_branch_context" in text and len(calls[name]) == 1:
            answers[name] = dict(counts)
        if text.startswith("ret"):
            calls[name].pop()
        before = (time, name, offset)
    return answers


def next_offset(text):
    """"jne 1364 <collatz+0x14>": 0x14"""
    place = re.search(r"<[^+>]+(?:\+0x([0-9a-f]+))?>", text)
    return int(place[1] or "0", 16) if place else -1


def values_of(program, folder, tally, *words):
    env = tbdtest.clean_env({"TBD_DIR": folder})
    result = tbdtest.run([tbdtest.TBD, "record", "--mode=context", "--tally=" + tally, "--branches=" + ";".join(FUNCTIONS), "--", program, *words], env=env)
    assert result.code == 0 and not result.err, result
    return result.out.decode().splitlines()


def decode(value, program, name, tally):
    result = tbdtest.run([tbdtest.TBDQ, "--json", "branches", value, "--program", program, "--function", name, "--tally", tally])
    rows = [json.loads(line) for line in result.out.splitlines()]
    for row in rows:
        test_rows.check_object("branches", test_rows.documented()["branches"], row)
    ways = {}
    for row in rows:
        ways.setdefault(row["way"], {})[row["function_offset"]] = row["times"]
    return result, rows, list(ways.values())


def check(name, tally, value, program, truth):
    result, rows, ways = decode(value, program, name, tally)
    shown = (name, tally, value, truth, result)
    if tally == "product" and int(value, 16) == 0:
        assert result.code == 1 and b"than a product of 64 bits holds" in result.err, shown
        assert sum(truth.values()) >= 8, shown
    elif tally == "xor":
        assert result.code == 0 and set(ways[0] if ways else {}) == {at for at, times in truth.items() if times % 2} and len(ways) <= 1, shown
    elif not truth:
        assert result.code == 0 and not rows and b"no branch" in result.err, shown
    else:
        full = {row["function_offset"]: row["times"] for row in rows if row.get("or_more")}
        said = {at: min(times, full.get(at, times)) for at, times in truth.items()}
        assert result.code == 0 and said in ways and (tally == "sum" or len(ways) == 1), shown


def test_values_are_those_of_recordings(folder):
    """With all four tallies: loops, a loop that begins at the first instruction, a return where another branch leads, recursion, longjmp, alloca,
    a prologue in the middle, a jump table."""
    for option in ("-O2", "-O0") if tbdtest.LONG else ("-O2",):
        program = build(folder, option)
        native = tbdtest.run([program])
        assert native.code == 0 and {line.split()[1] for line in native.out.decode().splitlines()} == {"0" * 16}, native
        _, trace = tbdtest.record([program], os.path.join(folder, "full" + option))
        truth = jumps_of(program, trace)
        assert set(truth) == set(FUNCTIONS) and sum(map(bool, truth.values())) >= 6, truth
        for tally in TALLIES:
            lines = [line.split() for line in values_of(program, folder, tally)]
            assert [name for name, _ in lines] == [*FUNCTIONS, "main"] and lines[-1][1] == "0" * 16, lines
            for name, value in lines[:-1]:
                check(name, tally, value, program, truth[name])


def test_signals_change_no_value(folder):
    """At any instruction, with handlers that call the same functions; in a program without debug information, and position-dependent."""
    program = build(folder, "-O2", "-no-pie")
    for tally in TALLIES if tbdtest.LONG else ("counts", "product"):
        assert values_of(program, folder, tally, "storm") == ["0 values differ"], tally


def test_what_cannot_be_counted(folder):
    """One line each, and the program runs as it does."""
    program = build(folder, "-O2")
    env = tbdtest.clean_env({"TBD_DIR": folder})
    native = tbdtest.run([program])
    for names, wrong in (("no_such", b"no function no_such"), ("collatz;main2", b"no function main2"), ("next", b""), ("handler", b"")):
        result = tbdtest.run([tbdtest.TBD, "record", "--mode=context", "--branches=" + names, "--", program], env=env)
        assert wrong in result.err and result.code == (2 if wrong else result.code), (names, result)
    for text in ("x", "branches:1", "branches:5-3", "branches:1-", ":1-2", "a" * 99 + ":1-2", "branches:10000000000000000-2", "branches:1-2;"):
        result = tbdtest.run([program], env=tbdtest.trace_env(folder, "mode=context,branches=" + text))
        assert (result.code, result.out) == (native.code, native.out), (text, result)
        assert b"option 'branches' in TBD_OPTIONS needs" in result.err or text == "branches:1-2;", (text, result)
    # places that are no function's: nothing is counted, nothing changes
    for text in ("branches:1-100000", "branches:1201-1777", "libc.so.6:28000-28fff", "branches:10000000-10000010"):
        result = tbdtest.run([program], env=tbdtest.trace_env(folder, "mode=context,branches=" + text))
        assert (result.code, result.out) == (native.code, native.out) or b"branches" in result.err or b"main" in result.out, (text, result)
        assert result.code == 0, (text, result)
    for words, code in ((["1"], 2), (["1", "--program", program], 2), (["1", "--program", program, "--function", "leaf", "--tally", "order"], 2),
                        (["x", "--program", program, "--function", "leaf"], 2), (["1", "--program", "/etc/passwd", "--function", "leaf"], 4),
                        (["ffffffffffffffff", "--program", program, "--function", "leaf", "--tally", "sum"], 1),
                        (["7919", "--program", program, "--function", "leaf", "--tally", "product"], 1)):
        result = tbdtest.run([tbdtest.TBDQ, "branches", *words])
        assert result.code == code and not result.out and result.err.startswith(b"tbdq: "), (words, result)


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_") and callable(t)])
