#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Rows of `stores of`, loads and `calls` in many programs are what gdb's watchpoints, breakpoints and `finish` see.

The program's name is the seed that chooses variables and functions.  gdb runs the program at the same addresses."""
import os
import random
import re
import subprocess

import othertools
import tbdtest
from test_compare import next_instruction
from test_gdb import LIMIT, OPTIONS, check_programs

PROGRAMS = [("programs", ["variables_O0_5", "jumps"]), ("examples/forensics", ["ring", "list_fixed"])]  # the short form's
VARIABLES, FUNCTIONS = (4, 4) if tbdtest.LONG else (2, 2)
STOPS = 400 if tbdtest.LONG else 60  # of gdb, for each variable and function; later ones are not compared

RUNTIME = ("main", "frame_dummy", "register_tm_clones", "deregister_tm_clones")  # what compilers add; main() is called once
# Every call: the arguments that are numbers or pointers, and what `finish` says.
CALLS = """
class Leave(gdb.FinishBreakpoint):
    def __init__(self, row):
        super().__init__(gdb.newest_frame(), internal=True)
        self.row = row
    def stop(self):
        self.row[2] = number(self.return_value)
        return False
def number(v):
    if v is None:
        return None
    kind = v.type.strip_typedefs().code
    known = kind in (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_PTR, gdb.TYPE_CODE_ENUM, gdb.TYPE_CODE_BOOL, gdb.TYPE_CODE_CHAR)
    return int(v) & ((1 << 8 * v.type.sizeof) - 1) if known and not v.is_optimized_out else None
rows = []
for place in %r:
    gdb.Breakpoint(place)
run()
for _ in range(%d):
    if not alive():
        break
    frame = gdb.newest_frame()
    if frame.type() == gdb.NORMAL_FRAME and frame.function() is not None:
        row = [frame.name(), {s.name: number(frame.read_var(s)) for s in frame.block() if s.is_argument}, None]
        rows.append(row)
        try:
            Leave(row)
        except ValueError: # no caller
            pass
    go()
say(rows)
"""


def globals_of(path):
    """{name: (address, size)} of the program's own variables of 4 and 8 bytes that are in the debug information."""
    text = subprocess.run(["nm", "-S", path], stdout=subprocess.PIPE, check=True).stdout.decode()
    found = re.findall(r"^([0-9a-f]+) 0*([48]) [bBdD] (\w+)$", text, re.M)
    return {name: (int(address, 16), int(size)) for address, size, name in found if not name.startswith("_")}


def address_in_run(trace, name):
    """Where the variable is; None where that is not known."""
    for row in trace.ask("print", "&" + name, at="last"):
        return int(row["value"].split()[0].rstrip(")").split("0x")[-1].split(" ")[0], 16)
    return None


def check_variable(path, trace, env, name, size, after):
    """Accesses that gdb's debug registers see from main() on, in order: where, and the value after."""
    address = address_in_run(trace, name)
    wanted = [tuple(x) for x in othertools.gdb_script([path], """
gdb.Breakpoint("main", temporary=True)
run()
gdb.Breakpoint("*(unsigned %s *)%#x", gdb.BP_WATCHPOINT, gdb.WP_ACCESS)
for _ in range(%d):
    go()
    if not alive():
        break
    say((value("$pc"), value("*(unsigned %s *)%#x")))
""" % ({4: "int", 8: "long"}[size], address, STOPS, {4: "int", 8: "long"}[size], address), env=env)]
    main = trace.one("goto", "first", "forward", "func_enter", 1, "where", "func==main")["time"]
    events = [e for kind in ("store", "load") for e in trace.ask("all", kind, "of", name, at="last") if e["time"] >= main]
    # One instruction that loads and stores stops gdb once; what a system call writes does not.
    rows = {(e["time"], e["offset"]): e for e in sorted(events, key=lambda e: e["type"] == "store") if not e.get("implicit")}
    rows = [rows[key] for key in sorted(rows)][:STOPS]
    if any(e["addr"] != hex(address) or e["size"] != size or tbdtest.number(e["pc"]) - base_of(trace, path) not in after for e in rows):
        return 0  # parts of it, or accesses by libraries: test_compare does these
    found = [(after[tbdtest.number(e["pc"]) - base_of(trace, path)] + base_of(trace, path),
              tbdtest.number(e["newval" if e["type"] == "store" else "oldval"])) for e in rows]
    assert found == wanted[:len(found)] and len(found) == min(len(wanted), STOPS), (name, len(found), len(wanted), found[:3], wanted[:3])
    stores = [(tbdtest.position(r), r["newval"]) for r in trace.ask("stores", "of", name, at="last")]
    events = [(tbdtest.position(e), e["newval"]) for e in trace.ask("all", "store", "of", name, at="last")]
    assert stores == events, (name, stores[:3], events[:3])
    return len(found)


def base_of(trace, path):
    """What was added to the addresses in the file."""
    if trace.path not in _bases:
        main = trace.one("goto", "first", "forward", "func_enter", 1, "where", "func==main")
        _bases[trace.path] = tbdtest.number(main["pc"]) - othertools.symbol_address(path, "main")
    return _bases[trace.path]


_bases = {}


def is_optimized(path):
    text = subprocess.run(["readelf", "--debug-dump=info", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
    levels = re.findall(rb"-O(\w)", re.search(rb"DW_AT_producer.*", text).group(0))
    return bool(levels) and levels[-1] != b"0"


def functions_of(trace, path):
    """Names of the program's own functions that it called, not too often."""
    own = os.path.basename(path)
    names = {}
    for row in trace.ask("count", "func_enter", "where", "module==%s" % own, "by", "func", at="last"):
        name = row["by"].split("!")[-1]
        if re.fullmatch(r"\w+", name) and not name.startswith("_") and name not in RUNTIME and row["count"] < STOPS:
            names[name] = row["count"]
    return sorted(names)


def check_functions(path, trace, env, names):
    places = ["*(char *)&" + name for name in names] if is_optimized(path) else names
    wanted = othertools.gdb_script([path], CALLS % (places, 4 * STOPS), env=env, own_mistakes=True)
    number = 0
    for name in names:
        theirs = [row for row in wanted[0] if row[0] == name] if wanted else []
        ours = trace.ask("calls", name, at="last")
        if len(wanted[0]) == 4 * STOPS:
            continue
        assert len(ours) == len(theirs), (name, len(ours), len(theirs))
        for row, (_, arguments, result) in zip(ours, theirs):
            values = dict(v.split("=", 1) for v in row["values"])
            for key, value in arguments.items():
                shown = re.match(r"-?(0x[0-9a-f]+|\d+)", values.get(key, ""))
                if value is None or shown is None:
                    continue
                assert (int(shown.group(0), 0) - value) % 2 ** 32 == 0, (name, row, arguments)
                number += 1
            shown = re.match(r"-?(0x[0-9a-f]+|\d+)", row["result"] or "")
            if result is not None and shown is not None:
                assert (int(shown.group(0), 0) - result) % 2 ** 32 == 0, (name, row, result)
                number += 1
    return number


def check_program(path, folder, tally):
    tbdtest.record(tbdtest.fixed([path]), folder, OPTIONS)
    trace = tbdtest.find_trace(folder, path)
    if trace is None or trace.info()["blocks"] > LIMIT:
        return
    env, chosen = tbdtest.idle_env(folder, OPTIONS), random.Random(os.path.basename(path))
    variables, after = globals_of(path), next_instruction(path)
    for name in chosen.sample(sorted(variables), min(VARIABLES, len(variables))):
        if not trace.ask("print", "&" + name, at="last"):
            continue
        count = check_variable(path, trace, env, name, variables[name][1], after)
        tally["variables"] += count != 0
        tally["accesses"] += count
    names = functions_of(trace, path)
    names = chosen.sample(names, min(FUNCTIONS, len(names)))
    if names:
        tally["values"] += check_functions(path, trace, env, names)
        tally["functions"] += len(names)
    tally["programs"] += 1


def test_accesses_and_calls_of_many_programs_are_gdb_s(folder):
    othertools.need_watchpoints()
    tally = {"programs": 0, "variables": 0, "accesses": 0, "functions": 0, "values": 0}
    check_programs(check_program, folder, tally, PROGRAMS)
    assert tally["programs"] >= (30 if tbdtest.LONG else 4) and tally["accesses"] > 20 and tally["values"] > 20, tally


if __name__ == "__main__":
    tbdtest.main(test_accesses_and_calls_of_many_programs_are_gdb_s)
