#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Signals as events: what ended the program, why and where, and the functions that run as handlers, as gdb sees them."""
import json

import othertools
import tbdtest

OPTIONS = "window=500000"
PROGRAMS = ("die_segv", "die_deep", "die_fpe", "die_hlt", "die_ud2", "die_abort", "die_handled", "die_alarm", "segv_repair")
CODES = {"SEGV_MAPERR": 1, "SEGV_ACCERR": 2, "FPE_INTDIV": 1, "ILL_ILLOPN": 2, "SI_KERNEL": 128, "SI_USER": 0, "SI_TKILL": -6}
SIGNALS = """
gdb.execute("handle SIGSEGV SIGBUS SIGILL SIGFPE SIGABRT SIGALRM SIGUSR1 SIGTERM stop print pass", to_string=True)
name = []
gdb.events.stop.connect(lambda event: name.append(getattr(event, "stop_signal", "")))
run()
while alive():
    say([name[-1], int(gdb.parse_and_eval("$_siginfo.si_code")), value("$_siginfo._sifields._sigfault.si_addr"), value("$pc")])
    go()
"""


def fixed(name, folder):
    """(path, trace at fixed addresses, environment in which gdb sees the same ones)"""
    path = tbdtest.program(name)
    tbdtest.record(tbdtest.fixed([path]), folder, OPTIONS)
    return path, tbdtest.find_trace(folder, path), tbdtest.idle_env(folder, OPTIONS)


def check_signals(name, folder):
    path, trace, env = fixed(name, folder)
    wanted = othertools.gdb_script([path], SIGNALS, env=env)
    rows = trace.ask("signals")
    assert [r["signal"] for r in rows] == [w[0] for w in wanted], (name, rows, wanted)
    pid, wheres = trace.info()["pid"], ["addr == %#x" % address if 0 < code < 128 else "addr == 1 or time == %d" % row["time"]
                                        for row, (_, code, address, _) in zip(rows, wanted)]
    found = trace.script("signals where " + where for where in wheres)
    for row, (_, code, address, pc), those in zip(rows, wanted, found):
        assert CODES[row["reason"]] == code, (name, row, code)
        if 0 < code < 128:
            assert row["addr"] == hex(address) and row["from"] == hex(pc), (name, row, hex(address), hex(pc))
            assert those == [r for r in rows if r.get("addr") == row["addr"]], (name, row)
        else:
            assert row in those, (name, row)
            assert "addr" not in row and row.get("sender", pid) == pid, (name, row)
    effects = [r["effect"] for r in rows]
    dies = name.startswith("die")
    assert effects == ["handled"] * (len(rows) - dies) + ["ends the program"] * dies, (name, effects)
    return trace, rows[-1]


def test_signals_have_gdb_s_reasons_and_addresses(folder):
    for name in PROGRAMS:
        check_signals(name, folder + "/" + name)


def test_the_signal_that_ended_the_program_is_where_it_ended(folder):
    for name in ("die_segv", "die_handled", "die_abort"):
        trace, fatal = check_signals(name, folder + "/" + name)
        keys = [k for k in ("signal", "reason", "addr", "sender", "effect", "pc") if k in fatal]
        for words in (["goto", "last"], ["where"], ["goto", "last", "backward", "signal", 1]):
            event = trace.one(*words)
            assert {k: event.get(k) for k in keys} == {k: fatal[k] for k in keys}, (words, event, fatal)
            assert tbdtest.position(event) == fatal["position"], (words, event)
        assert event["type"] == "signal" and trace.count("signal") == len(trace.ask("signals"))
        text = trace.tbdq("goto", "last", json_output=False).out.decode()
        assert all(str(fatal[k]) in text for k in ("signal", "reason", "effect", "text")), text
        end = trace.info()["end_signal"]
        assert {k: end.get(k) for k in keys if k != "pc"} == {k: fatal[k] for k in keys if k != "pc"}, (end, fatal)
        assert name == "die_abort" or end["pc"] == fatal["pc"] and end["line"] == fatal["line"], (end, fatal)
        assert fatal["signal"] in trace.tbdq("info", json_output=False).out.decode()
        before = trace.one("reverse-stepi")
        assert "signal" not in before and "signal" in trace.one("stepi"), before
        number = {"SIGSEGV": 11, "SIGABRT": 6}[fatal["signal"]]
        assert trace.ask("signals", "where", "signal==%d && pc==%s" % (number, fatal["pc"]))[-1]["position"] == fatal["position"]
        assert trace.ask("count", "signal", "by", "value")[0]["by"].startswith("SIG")
    trace = tbdtest.record([tbdtest.program("stores")], folder + "/exit", OPTIONS)[1]
    assert not trace.ask("signals") and "end_signal" not in trace.info() and "signal" not in trace.one("goto", "last")


def test_the_fatal_signal_survives_slices_and_levels(folder):
    trace = tbdtest.record([tbdtest.program("die_deep")], folder, "window=20000")[1]
    fatal = trace.one("signals")
    windows = trace.ask("windows")
    assert len(windows) > 2 and fatal["reason"].startswith("SEGV_"), (windows, fatal)
    for level in (2, 1):
        assert trace.tbdq("lower", "all", level).code == 0
        assert trace.one("signals") == fatal and trace.info()["end_signal"]["addr"] == fatal["addr"]
    result = trace.tbdq("signals", env=tbdtest.clean_env({"TBD_SLICE_BLOCKS": "3000"}))
    assert result.code == 0 and json.loads(result.out) == fatal, result
    assert trace.tbdq("merge", "all", len(windows)).code == 0
    merged = trace.one("signals")
    assert (merged["position"], merged["addr"]) == (fatal["position"], fatal["addr"]), (merged, fatal)
    assert trace.info()["end_signal"]["addr"] == fatal["addr"]


HANDLERS = """
for name in ("on_fault", "on_user"):
    gdb.Breakpoint(name)
run()
while alive():
    frame = gdb.newest_frame()
    caller = frame.older()
    if caller.type() == gdb.SIGTRAMP_FRAME:
        caller = caller.older()
    say([frame.name(), int(frame.read_var("signo")), caller.name()])
    go()
"""


def test_handlers_are_functions_that_are_entered(folder):
    path, trace, env = fixed("die_handled", folder)
    wanted = othertools.gdb_script([path], HANDLERS, env=env)
    assert [w[:2] for w in wanted] == [["on_fault", 11], ["on_fault", 8], ["on_fault", 4], ["on_user", 10]], wanted
    rows = [row for name in ("on_fault", "on_user") for row in trace.ask("calls", name)]
    found = [[r["function"], r["values"][0], r["caller"].split("!")[-1].split("+")[0]] for r in sorted(rows, key=lambda r: r["time"])]
    for one, (name, signo, caller) in zip(found, wanted):
        assert one[:2] == [name, "signo=%d" % signo] and (caller is None or one[2].split(".")[0] == caller or "raise" in caller or "kill" in caller), (one, caller)
    assert len(found) == len(wanted), (found, wanted)
    for kind in ("func_enter", "signal"):
        assert trace.count(kind, "func==on_fault", 3) == 3 and trace.count(kind, "func==on_user && pc==on_user", 1) == 1
    signals = [r for r in trace.ask("signals") if r["effect"] == "handled"]
    entered = trace.events("func_enter", "func==on_fault || func==on_user")
    assert [(e["time"], e["from"], int(e["args"][0], 16)) for e in entered] == [
        (s["time"], s["from"], {"SIGSEGV": 11, "SIGFPE": 8, "SIGILL": 4, "SIGUSR1": 10}[s["signal"]]) for s in signals], (entered, signals)
    back = trace.one("goto", "last", "backward", "func_enter", 1, "where", "func==on_user")
    assert tbdtest.position(back) == tbdtest.position(entered[-1])
    assert rows[-1]["function"] == "on_user" and rows[-1]["exit"] is not None, rows[-1]


def test_handlers_are_found_in_windows_that_call_nothing_else(folder):
    trace = tbdtest.record([tbdtest.program("sig_random"), "1"], folder, "window=3000")[1]
    handled = [s for s in trace.ask("signals") if s["effect"] == "handled"]
    assert len(handled) > 3, handled
    names = sorted({s["function"] for s in handled})
    for name in names:
        times = {s["time"] for s in handled if s["function"] == name}
        entered = {e["time"] for e in trace.events("func_enter", "func==%s" % name)}
        assert times <= entered, (name, sorted(times - entered)[:3])


if __name__ == "__main__":
    tbdtest.main(test_signals_have_gdb_s_reasons_and_addresses, test_the_signal_that_ended_the_program_is_where_it_ended,
                 test_handlers_are_functions_that_are_entered, test_handlers_are_found_in_windows_that_call_nothing_else,
                 test_the_fatal_signal_survives_slices_and_levels)
