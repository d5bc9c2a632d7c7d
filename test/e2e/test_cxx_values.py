#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Values of C++ that need more than plain C types, as gdb and the printers of its C++ library show them."""
import re

import othertools
import tbdtest

OPTIONS = "window=500000"
STOPS = """
gdb.execute("set host-charset UTF-8")
gdb.execute("set print static-members off")
gdb.Breakpoint("stop")
run()
while alive():
    frame = gdb.newest_frame().older()
    frame.select()
    found = {}
    block = frame.block()
    while block is not None and not block.is_global and not block.is_static:
        for symbol in block:
            if (symbol.is_variable or symbol.is_argument) and symbol.name not in found:
                try:
                    found[symbol.name] = frame.read_var(symbol).format_string(symbols=False, unions=True)
                except (gdb.error, RuntimeError, UnicodeError):
                    found[symbol.name] = None
        block = None if block.function else block.superblock
    say([str(frame.function() and frame.function().symtab and frame.find_sal().line), found])
    go()
"""


def recorded(folder):
    path = tbdtest.program("cxx_values")
    tbdtest.record(tbdtest.fixed([path]), folder, OPTIONS)
    return path, tbdtest.find_trace(folder, path), tbdtest.idle_env(folder, OPTIONS)


def stops(folder):
    """For each call of stop(): {name: value} of its caller's variables as gdb and as tbdq show them."""
    path, trace, env = recorded(folder)
    said = othertools.gdb_script([path], STOPS, env=env)
    found = []
    for number in range(len(said)):
        trace.one("goto", "first", "forward", "func_enter", number + 1, "where", "func==stop")
        frame = trace.one("frame", 1)
        found.append({v["name"]: v["value"] for v in trace.ask("locals")})
        assert str(frame["line"]) == said[number][0], (frame, said[number])
    return trace, [s[1] for s in said], found


def plain(text):
    """Without names of symbols, which gdb leaves out here; a path without its parts."""
    text = re.sub(r"(0x[0-9a-f]+) <[^>]*(?:<.*>)?[^>]*>", r"\\1", text)
    text = re.sub(r"(@0x[0-9a-f]+): .*", r"\1", text).replace("{<No data fields>}", "{}")
    return re.sub(r'(filesystem::path "[^"]*") = \{.*\}$', r"\1", text)


def test_closures_and_local_classes_have_variables(folder):
    trace, wanted, found = stops(folder)
    names = [set(values) for values in found]
    assert {"a", "b", "inner", "captured", "local"} <= names[0] and {"this", "n", "sum"} <= names[1], names
    assert {"k", "twice"} <= names[2] and {"d", "captured", "c"} <= names[3], names
    for before, after in zip(wanted[:4], found[:4]):
        assert len(before) >= 2, before
        for name, value in before.items():
            if value is not None:
                assert plain(after[name]) == plain(value), (name, after[name], value)
    rows = trace.ask("calls", "*Local::add") + trace.ask("calls", '"*lambda(int, double)*"')
    assert [r["values"][1:] for r in rows][0] == ["n=4"] and rows[1]["values"][1] == "a=1" and rows[0]["result"] == "14", rows


def test_values_are_printed_as_by_gdb(folder):
    _, wanted, found = stops(folder)
    compared = {}
    for name, value in wanted[-1].items():
        if value is not None and name not in ("i",):
            compared[name] = (plain(found[-1][name]), plain(value))
    assert len(compared) >= 28, sorted(compared)
    wrong = {name: pair for name, pair in compared.items() if pair[0] != pair[1]}
    assert not wrong, wrong


if __name__ == "__main__":
    tbdtest.main(test_closures_and_local_classes_have_variables, test_values_are_printed_as_by_gdb)
