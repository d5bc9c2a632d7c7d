#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Traces are portable: a replay needs the processor features that the program used, not all features of the recording's processor."""
import os
import re

import tbdtest


def has_avx512():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        return any(" avx512f " in line and " avx512bw " in line for line in f if line.startswith("flags"))


def need_avx512():
    if not has_avx512():
        raise tbdtest.Skip("a processor without AVX-512")


def record(name, folder, options, env=None):
    return tbdtest.record([tbdtest.program(name)], os.path.join(folder, options.replace("=", "-")), options + ",window=20000", env=env)[1]


def test_what_uses_no_avx512_replays_everywhere(folder):
    """Images with its registers and without, each replayed with and without."""
    for name in ("strings", "threads", "sig_frame", "floating"):
        for option in ("cpu=v3", "cpu=v3test"):
            trace = record(name, folder, option, tbdtest.V3_ENV)
            trace.verify()
            trace.verify(env=tbdtest.REPLAY_V3)


def test_registers_are_the_same_wherever_they_are_replayed(folder):
    trace = record("vector_avx", folder, "cpu=v3", tbdtest.V3_ENV)
    event = trace.ask("all", "store", "where", "func==main")[40]
    answers = [trace.tbdq("regs", at=tbdtest.position(event), env=env) for env in (None, tbdtest.REPLAY_V3)]
    assert answers[0].code == 0 and answers[0].out == answers[1].out, answers


def test_a_window_that_needs_more_says_what(folder):
    """In libc's string functions; other windows of the same trace replay."""
    need_avx512()
    trace = record("vector_avx512", folder, "cpu=own")
    trace.verify()
    result = trace.tbdq("verify", env=tbdtest.REPLAY_V3, json_output=False)
    said = (result.out + result.err).decode()
    found = re.search(r"it needs AVX-512, which this processor does not have: the instruction at (0x[0-9a-f]+), in the block of time (\d+)",
                      said)
    assert result.code == 3 and found and " 0 divergences" in said, said
    lines = [line for line in said.splitlines() if "AVX-512" in line]
    assert len(lines) <= trace.info()["windows"], said
    text = trace.one("goto", "first", "forward", "state", 1, "where", "time==%s and pc==%s" % (found.group(2), found.group(1)))["text"]
    assert re.search(r"[xyz]mm|\bk", text), text
    # A question about the state there says the same.
    result = trace.tbdq("regs", at="%d" % (int(found.group(2)) + 1), env=tbdtest.REPLAY_V3)
    assert result.code == 3 and b"it needs AVX-512" in result.err, result


def test_tiles_are_needed_only_where_they_are_used(folder):
    """Registers of AMX are kept beside the processor's; instructions that name them say so."""
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        if " amx_tile " not in f.read():
            raise tbdtest.Skip("a processor without AMX")
    trace = tbdtest.record([tbdtest.program("amx_tiles")], folder, "cpu=own,window=4000")[1]
    trace.verify()
    said = trace.tbdq("verify", env=tbdtest.REPLAY_V3, json_output=False)
    text = (said.out + said.err).decode()
    missed = len(re.findall(r"window \d+ was not replayed: .*needs (?:AMX|AVX-512), which", text))
    assert "it needs AMX, which this processor does not have: the instruction at 0x" in text, text
    assert " 0 divergences" in text and missed < trace.info()["windows"], text


def test_only_windows_that_use_it_need_it(folder):
    """main() uses it at its end only."""
    need_avx512()
    trace = tbdtest.record([tbdtest.program("late_avx512")], folder, "cpu=v3,window=5000", env=tbdtest.V3_ENV)[1]
    trace.verify()
    said = trace.tbdq("verify", env=tbdtest.REPLAY_V3, json_output=False)
    text = (said.out + said.err).decode()
    missed = re.findall(r"window (\d+) was not replayed: .*needs AVX-512", text)
    windows = trace.info()["windows"]
    assert missed == [str(windows - 1)] and windows > 4 and " 0 divergences" in text, (missed, windows, text)


def test_the_option_hides_it_from_the_program(folder):
    """As on a processor of x86-64-v3."""
    need_avx512()
    for option, there in (("cpu=own", True), ("cpu=v3", False), ("cpu=v3test", False)):
        result, _ = tbdtest.record([tbdtest.program("asks_cpu")], os.path.join(folder, option), option)
        found = dict(line.split() for line in result.out.decode().splitlines())
        assert (int(found["avx512f"]) != 0) == there and found["avx2"] == "1", (option, found)
        assert (int(found["xcr0"], 16) & 0xe0 != 0) == there and (int(found["xsave"]) > 832) == there, (option, found)


def test_the_launcher_hides_it_from_the_library(folder):
    """Its functions are chosen before the program is taken over."""
    for number, tunables in enumerate((None, "glibc.malloc.check=0", "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW")):
        root = os.path.join(folder, str(number))
        traced = tbdtest.run([os.path.join(tbdtest.BUILD, "tbd"), "record", "--cpu=v3", "--dir=" + root, "--", tbdtest.program("strings")],
                             env={"GLIBC_TUNABLES": tunables} if tunables else None)
        tbdtest.wait_organizers(root)
        assert traced.code == 0, traced
        trace = tbdtest.find_trace(root, tbdtest.program("strings"))
        assert not any(row["feature"].startswith("AVX512") for row in trace.info()["needs"]), (tunables, trace.info()["needs"])
        trace.verify(env=tbdtest.REPLAY_V3)


def test_info_says_what_the_code_needs(folder):
    """Nothing beyond x86-64-v3 where neither libc nor the program uses it."""
    def needs(trace):
        return {row["feature"]: row["blocks"] for row in trace.info()["needs"]}
    strings = record("strings", folder, "cpu=v3test", tbdtest.V3_ENV)
    plain = needs(strings)
    assert bool(strings.info()["needing_windows"]) == bool(plain), strings.info()
    assert not any(name.startswith("AVX512") for name in plain), plain
    if has_avx512():
        found = needs(record("vector_avx512", folder, "cpu=own"))
        assert found["AVX512F"] > 0 and "AVX512F_512" not in found, found
        assert tbdtest.find_trace(os.path.join(folder, "cpu-own"), tbdtest.program("vector_avx512")).info()["needing_windows"]
    text = tbdtest.find_trace(os.path.join(folder, "cpu-v3test"), tbdtest.program("strings")).tbdq("info", json_output=False).out
    assert b"\nneeds      x86-64-v3" in text, text


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
