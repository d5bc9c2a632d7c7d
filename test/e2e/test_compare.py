#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Positions, values and counts against gdb (debug registers, breakpoints, memory at exit) and
valgrind's lackey, on programs at fixed addresses (no PIE, setarch -R)."""
import re
import subprocess

import othertools
import tbdtest

OPTIONS = "window=500000"


class Pair:
    """A program traced at fixed addresses, and the environment in which gdb sees the same ones."""

    def __init__(self, name, folder, options=OPTIONS):
        self.path = tbdtest.program(name + "_fixed")
        self.argv, self.symbols = [self.path], {}
        native = tbdtest.run(self.argv)
        result, self.trace = tbdtest.record(tbdtest.fixed(self.argv), folder, options)
        self.trace = tbdtest.find_trace(folder, self.path)
        tbdtest.same(native, result)
        self.env = tbdtest.idle_env(folder, options)

    def address(self, symbol):
        if symbol not in self.symbols:
            self.symbols[symbol] = othertools.symbol_address(self.path, symbol)
        return self.symbols[symbol]

    def heap_word(self):
        return read_word(self.trace, "last", self.address("heap_word"))


def read_word(trace, at, address, size=8):
    answer = trace.one("mem", hex(address), size, at=at)
    return int.from_bytes(memory_bytes(answer), "little")


def memory_bytes(answer):
    return bytes.fromhex(answer["bytes"])


def next_instruction(path):
    """Address of each instruction -> address of the next one."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], stdout=subprocess.PIPE, check=True).stdout.decode()
    starts = [int(m.group(1), 16) for m in re.finditer(r"^ +([0-9a-f]+):\t", text, re.M)]
    return dict(zip(starts, starts[1:]))


def within(address, size):
    return "addr >= %d and addr < %d" % (address, address + size)


def test_stores_to_a_global_as_lackey_sees_them(folder):
    pair = Pair("stores", folder)
    address = pair.address("target")
    wanted = [(a, n) for kind, a, n in othertools.lackey_accesses(pair.argv, address, 8) if kind in "SM"]
    assert len(wanted) == 1600, len(wanted)
    assert pair.trace.count("store", within(address, 8), len(wanted)) == len(wanted)
    for n in [1, 2, 3, 4, 5, 777, 1599, 1600] + list(range(30, 1600, 97)):
        event = pair.trace.one("goto", "first", "forward", "store", n, "where", within(address, 8))
        assert (tbdtest.number(event["addr"]), event["size"]) == wanted[n - 1], (n, event, wanted[n - 1])
        again = pair.trace.one("goto", "last", "backward", "store", len(wanted) + 1 - n, "where", within(address, 8))
        assert (again["time"], again["offset"]) == (event["time"], event["offset"]), (n, event, again)


def test_every_access_of_the_program_as_lackey_sees_it(folder):
    """All loads and stores that the program's own code makes, in order: instruction, size, and the address where
    it is a variable's (valgrind has stack and heap elsewhere)."""
    for name in ("stores", "straddle", "switches") + (("recursion",) if tbdtest.LONG else ()):
        pair = Pair(name, folder + "/" + name)
        start, end = pair.address("_start"), pair.address("_fini")
        seen = othertools.lackey_accesses_of_code(pair.argv, start, end)
        for kind, letters in (("store", "SM"), ("load", "LM")):
            wanted = [(pc, size, static(pair, at)) for pc, letter, at, size in repeats_merged(pair.path, seen) if letter in letters]
            events = pair.trace.events(kind, "pc >= %d and pc < %d" % (start, end))
            found = [(tbdtest.number(e["pc"]), e["size"], static(pair, tbdtest.number(e["addr"]))) for e in events]
            for n, (a, b) in enumerate(zip(found, wanted)):
                assert a == b, "%s: %s %d: %s, lackey: %s" % (name, kind, n, [hex(x or 0) for x in a], [hex(x or 0) for x in b])
            assert len(found) == len(wanted) > 100, (name, kind, len(found), len(wanted))


def repeats_merged(path, accesses):
    """A repeated string instruction is one event with a range for us; lackey reports every element."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], stdout=subprocess.PIPE, check=True).stdout.decode()
    repeated = {int(m.group(1), 16) for m in re.finditer(r"^ +([0-9a-f]+):\trep ", text, re.M)}
    merged = []
    for pc, letter, at, size in accesses:
        last = merged[-1] if merged else None
        if pc in repeated and last and last[:2] == (pc, letter) and last[2] + last[3] == at:
            merged[-1] = (pc, letter, last[2], last[3] + size)
        else:
            merged.append((pc, letter, at, size))
    return merged


def static(pair, address):
    return address if address < pair.address("_end") else None


def test_all_accesses_to_a_global_as_the_debug_registers_see_them(folder):
    pair = Pair("stores", folder)
    address, after = pair.address("neighbour"), next_instruction(pair.path)
    wanted = [tuple(x) for x in othertools.gdb_accesses(pair.argv, address, 8, pair.env)]
    events = pair.trace.events("store", within(address, 8)) + pair.trace.events("load", within(address, 8))
    events.sort(key=lambda e: (e["time"], e["offset"]))
    found = [(after[tbdtest.number(e["pc"])], tbdtest.number(e["newval" if e["type"] == "store" else "oldval"])) for e in events]
    assert len(wanted) >= 80 and found == wanted, (len(found), len(wanted), found[:4], wanted[:4])


def test_values_of_a_heap_word_as_a_watchpoint_sees_them(folder):
    othertools.need_watchpoints()
    pair = Pair("stores", folder)
    address = pair.heap_word()
    said = othertools.gdb_script(pair.argv, """
gdb.Breakpoint("store_8", temporary=True)
run()
say(value("heap_word"))
gdb.Breakpoint("*(unsigned long *)%#x", gdb.BP_WATCHPOINT, gdb.WP_WRITE)
while True:
    go()
    if not alive():
        break
    say(value("*(unsigned long *)%#x"))
""" % (address, address), env=pair.env)
    assert said[0] == address, "heap at %#x in gdb, at %#x in the trace" % (said[0], address)
    events = pair.trace.events("store", within(address, 8) + " and func==main")
    values = [tbdtest.number(e["newval"]) for e in events]
    assert len(events) == 500 and values[1:] == said[1:], (len(events), len(said), values[:3], said[:3])
    for n in range(7, 500, 61):
        one = pair.trace.one("goto", "first", "forward", "store", n, "where", within(address, 8) + " and func==main")
        assert one == events[n - 1], (n, one, events[n - 1])
    olds = [tbdtest.number(e["oldval"]) for e in events]
    assert olds[1:] == values[:-1] and olds[0] == 0, olds[:4]


def test_calls_and_arguments_as_breakpoints_see_them(folder):
    pair = Pair("recursion", folder)
    wanted = othertools.gdb_script(pair.argv, """
b = gdb.Breakpoint("*(char *)&fib")
run()
while alive():
    say(value("$rdi") & 0xffffffff)
    go()
""", env=pair.env)
    trace = pair.trace
    assert len(wanted) == 8361 and trace.count("func_enter", "func==fib", 8361) == 8361
    numbers = (0, 1, 2, 3, 9, 17, 18)
    counts = trace.counts("func_enter where func==fib and (arg0 & 0xffffffff) == %d" % n for n in numbers)
    assert counts == [wanted.count(n) for n in numbers], counts
    hits = (1, 2, 3, 100, 4180, 8361)
    for hit, [event] in zip(hits, trace.script("goto first forward func_enter %d where func==fib" % hit for hit in hits)):
        assert tbdtest.number(event["args"][0]) & 0xffffffff == wanted[hit - 1], (hit, event)
        assert tbdtest.number(event["pc"]) == pair.address("fib") and event["function"].startswith("fib"), event
    assert trace.count("func_exit", "func==fib", 8361) == 8361
    for symbol in ("is_even", "is_odd"):
        count = othertools.gdb_count_calls(pair.argv, "*(char *)&" + symbol, env=pair.env)
        assert trace.count("func_enter", "func==" + symbol, count) == count, (symbol, count)


def test_return_values_of_the_recursion(folder):
    trace = Pair("recursion", folder).trace
    last = trace.one("goto", "last", "backward", "func_exit", 1, "where", "func==fib")
    assert tbdtest.number(last["retval"]) == 2584, last
    fib = [0, 1]
    while len(fib) < 19:
        fib.append(fib[-1] + fib[-2])
    for n in (5, 10, 17):
        enter = trace.one("goto", "first", "forward", "func_enter", 1, "where", "func==fib and (arg0 & 0xffffffff) == %d" % n)
        leave = trace.one("goto", tbdtest.position(enter), "forward", "func_exit", 1, "where",
                          "func==fib and sp == %s" % hex(stack_pointer(trace, enter)))
        assert tbdtest.number(leave["retval"]) == fib[n], (n, leave)


def stack_pointer(trace, event):
    return tbdtest.number(registers(trace, tbdtest.position(event))["rsp"])


def registers(trace, at):
    answer = trace.one("regs", at=at)
    return answer.get("regs", answer)


def test_registers_at_the_nth_hit_as_gdb_sees_them(folder):
    for name, symbol, hits in (("recursion", "fib", (1, 2, 17, 500, 8361)), ("recursion", "ackermann", (1, 50)),
                               ("many_windows", "mark", (1, 3, 5))):
        pair = Pair(name, folder + "/" + name)
        seen = othertools.gdb_registers_at(pair.argv, symbol, hits, pair.env)
        assert len(seen) == len(hits)
        for hit, wanted in zip(hits, seen):
            event = pair.trace.one("goto", "first", "forward", "func_enter", hit, "where", "func==" + symbol)
            found = registers(pair.trace, tbdtest.position(event))
            for register in othertools.REGISTERS:
                assert tbdtest.number(found[register]) == wanted[register], (symbol, hit, register, found[register], hex(wanted[register]))
            flags = tbdtest.number(found.get("rflags", found.get("eflags")))
            assert (flags ^ wanted["eflags"]) & 0xcd5 == 0, (symbol, hit, hex(flags), hex(wanted["eflags"]))


def enter_nth(trace, symbol, hit):
    return tbdtest.position(trace.one("goto", "first", "forward", "func_enter", hit, "where", "func==" + symbol))


def test_memory_in_the_middle_as_gdb_sees_it(folder):
    """The whole table and the top of the stack at calls that are a million blocks apart."""
    pair, hits = Pair("many_windows", folder, "window=300000"), (1, 2, 4, 5)
    seen = othertools.gdb_at_hits(pair.argv, "mark", hits, """
read = gdb.selected_inferior().read_memory
say((value("$rsp"), bytes(read(value("$rsp"), 40)).hex(), bytes(read(%d, 4 << 16)).hex(), bytes(read(%d, 8)).hex()))
""" % (pair.address("table"), pair.address("rare")), pair.env)
    assert len(seen) == len(hits)
    for hit, (stack, *texts) in zip(hits, seen):
        at = enter_nth(pair.trace, "mark", hit)
        for address, text in zip((stack, pair.address("table"), pair.address("rare")), texts):
            found = memory_bytes(pair.trace.one("mem", hex(address), len(text) // 2, at=at)).hex()
            assert found == text, "hit %d, memory at %#x" % (hit, address)


def test_call_stacks_as_gdb_sees_them(folder):
    for name, symbol, hits in (("recursion", "fib", (1, 18, 3000)), ("recursion", "is_odd", (200,)), ("funcptr", "compare", (1, 777))):
        pair = Pair(name, folder + "/" + name + symbol)
        seen = othertools.gdb_at_hits(pair.argv, symbol, hits, """
frame, pcs = gdb.newest_frame(), []
while frame is not None:
    if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME): # these have no frame of their own
        pcs.append(frame.pc())
    frame = frame.older()
say(pcs)
""", pair.env)
        assert len(seen) == len(hits)
        for hit, wanted in zip(hits, seen):
            found = [tbdtest.number(f["pc"]) for f in pair.trace.ask("bt", at=enter_nth(pair.trace, symbol, hit)) if not f.get("inlined")]
            # gdb stops at main, which has no caller that matters to it
            assert len(wanted) > 1 and found[:len(wanted)] == wanted, (symbol, hit, list(map(hex, found)), list(map(hex, wanted)))


def test_memory_at_exit_as_gdb_sees_it(folder):
    for name in ("stores", "many_windows"):
        pair = Pair(name, folder + "/" + name)
        data = pair.address("__data_start")
        ranges = [(data & ~0xfff, 0x1000), (data, pair.address("_end") - data)]
        if name == "stores":
            ranges.append((pair.heap_word() & ~0xfff, 0x2000))
        else:
            ranges.append((pair.address("table") + 0x1234, 0x8001))
        wanted = othertools.gdb_memory_at(pair.argv, "*(char *)&_exit", ranges, pair.env)
        at = tbdtest.position(pair.trace.one("goto", "last", "backward", "func_enter", 1, "where", "func==_exit"))
        assert len(wanted) == len(ranges) and all(len(text) == 2 * size for (_, size), text in zip(ranges, wanted))
        for (address, size), text in zip(ranges, wanted):
            found = memory_bytes(pair.trace.one("mem", hex(address), size, at=at)).hex()
            wrong = [i // 2 for i in range(0, len(text), 2) if text[i:i + 2] != found[i:i + 2]]
            assert not wrong, "%s: %d of %d bytes differ, the first at %#x" % (name, len(wrong), size, address + wrong[0])


def test_a_core_file_at_the_end(folder):
    """gcore at exit; the table in it against `tbdq --at last mem`."""
    pair = Pair("many_windows", folder)
    core, address = folder + "/core", pair.address("table")
    said = othertools.gdb_script(pair.argv, """
gdb.Breakpoint("main", temporary=True)
run()
gdb.Breakpoint("*(char *)&_exit")
go()
gdb.execute("generate-core-file %s", to_string=True)
gdb.execute("kill")
gdb.execute("core-file %s", to_string=True)
say(bytes(gdb.selected_inferior().read_memory(%d, 4 << 16)).hex())
""" % (core, core, address), env=pair.env)
    found = memory_bytes(pair.trace.one("mem", hex(address), 4 << 16, at="last")).hex()
    assert len(found) == 2 << 18 and said[-1] == found


def test_system_calls_as_strace_sees_them(folder):
    pair = Pair("stores", folder)
    calls, total = othertools.strace_count(pair.argv, "write")
    events = pair.trace.events("syscall", "syscall==write")
    assert len(events) == calls and sum(tbdtest.number(e["retval"]) for e in events) == total, events


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
