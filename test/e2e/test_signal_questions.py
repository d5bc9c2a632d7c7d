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
    for row, (_, code, address, pc) in zip(rows, wanted):
        assert CODES[row["reason"]] == code, (name, row, code)
        if 0 < code < 128:
            assert row["addr"] == hex(address) and row["from"] == hex(pc), (name, row, hex(address), hex(pc))
        else:
            assert "addr" not in row and row.get("sender", trace.info()["pid"]) == trace.info()["pid"], (name, row)
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


if __name__ == "__main__":
    tbdtest.main(test_signals_have_gdb_s_reasons_and_addresses, test_the_signal_that_ended_the_program_is_where_it_ended,
                 test_the_fatal_signal_survives_slices_and_levels)
