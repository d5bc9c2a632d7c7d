#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Windows that are born lean: their pages are differences from the contents at the end of earlier windows.  Memory is the same
as if all pages were whole, whatever happens to the trace, and damage affects few windows."""
import os
import re
import shutil
import struct

import tbdtest

END, DELTA, GROUP = 1, 32, 8  # flags of a page; windows that depend on each other (docs/FORMAT.md)


def record(folder, options=""):
    with tbdtest.one_processor():
        _, trace = tbdtest.record([tbdtest.program("many_windows"), "700000"], folder, "window=20000,count=now,lean=always" + options)
    return trace


def copy_of(trace, name):
    path = os.path.join(os.path.dirname(trace.path), name)
    shutil.copytree(trace.path, path)
    return tbdtest.Trace(path)


def toc_of(trace, window):
    return os.path.join(trace.path, "windows", "%d" % (window // 1000), "%03d.toc" % (window % 1000))


def record_at(data, wanted):
    """Offset of a record's payload, and its length."""
    at = struct.unpack_from("<I", data, 16)[0]
    while at < len(data):
        kind, _, size = struct.unpack_from("<IIQ", data, at)
        if kind == wanted:
            return at + 24, size
        at += 24 + size + -size % 8
    raise AssertionError("no record of type %d" % wanted)


def page_flags(trace, window):
    with open(toc_of(trace, window), "rb") as f:
        data = f.read()
    at, size = record_at(data, 32)
    return [struct.unpack_from("<I", data, entry + 16)[0] for entry in range(at, at + size, 32)]


def pages_size(trace):
    total = 0
    for window in range(len(trace.ask("windows"))):
        with open(toc_of(trace, window), "rb") as f:
            total += record_at(f.read(), 33)[1]
    return total


def memory(trace, times):
    """Of some pages of the table, without any replay, and of the stack."""
    return trace.at(times, ["mem &table+%d 64" % offset for offset in (0, 0x4000, 0x13800)] + ["mem rsp 32"])


def test_pages_are_differences_and_memory_is_the_same(folder):
    trace = record(folder)
    windows = trace.ask("windows")
    assert {w["level"] for w in windows} == {2} and len(windows) > 100, windows
    for number in range(len(windows) - 1):  # in the last one the program ends, with pages that no window before has changed
        kinds = [flags & 0xffff for flags in page_flags(trace, number) if flags & END]
        of = sum(bool(flags & DELTA) for flags in kinds)
        assert of * 2 >= len(kinds) if number % GROUP else not of or number == 0, (number, kinds)
    times = [w["time"] + offset for w in windows[3::41] for offset in (0, 7777)]
    trace.verify()
    raised, one, merged = (copy_of(trace, name) for name in ("raised", "one", "merged"))
    raised.ask("raise", "all")
    assert not any(flags & DELTA for number in range(len(windows)) for flags in page_flags(raised, number))
    assert pages_size(trace) * 2 < pages_size(raised)
    one.ask("lower", "all", "1")
    merged.ask("merge", "all", "5")
    fresh = memory(raised, times)
    for other in (trace, one, merged):
        assert memory(other, times) == fresh, other.path
        other.verify()


def test_limits_hold_for_differences_too(folder):
    whole = record(os.path.join(folder, "whole"))
    size = sum(w["toc_bytes"] for w in whole.ask("windows"))
    kept = record(os.path.join(folder, "kept"), ",keep=%d" % (2 * size // 3))
    assert kept.ask("windows")[0]["time"] > 0
    kept.verify()
    kept.ask("lower", "all", "1")
    kept.verify()
    tight = record(os.path.join(folder, "tight"), ",budget=%d,level2=30" % (2 * size // 3))
    assert {w["level"] for w in tight.ask("windows")} == {1, 2}
    tight.verify()
    tight.ask("merge", "all", "4")
    tight.verify()


def test_recording_that_is_cut_short(folder):
    for delay in (0.02, 0.1, 0.3):
        where = os.path.join(folder, str(delay))
        process = tbdtest.start([tbdtest.program("many_windows")], where, "window=20000,count=now,lean=always")
        tbdtest.kill_organizers(where, process, delay)
        assert process.wait() == 0
        trace = tbdtest.find_trace(where, tbdtest.program("many_windows"))
        begun = trace and all(os.path.exists(os.path.join(trace.path, name)) for name in ("index", "header"))
        if begun and trace.ask("windows"):
            trace.verify()


def test_damage_costs_the_windows_of_a_group(folder):
    trace = record(folder)
    count, hit = len(trace.ask("windows")), 5 * GROUP + 2
    with open(toc_of(trace, hit), "rb") as f:
        whole = f.read()
    at, size = record_at(whole, 33)
    damaged = bytearray(whole)
    damaged[at + size // 2] ^= 16
    os.chmod(toc_of(trace, hit), 0o600)
    for contents in (damaged, whole[:at]):
        with open(toc_of(trace, hit), "wb") as f:
            f.write(contents)
        result = trace.tbdq("verify", json_output=False)
        assert result.code == 3 and b"diverged" not in result.out + result.err, result
        lost = sorted({int(n) for n in re.findall(rb"window (\d+) was not replayed", result.out)})
        # The window after the group begins with the state that the group ended with.
        assert hit in lost and set(lost) <= set(range(hit, 6 * GROUP + 1)), (lost, result)
        assert b"%d windows were not replayed" % len(lost) in result.out and count > 6 * GROUP + 1, result
    with open(toc_of(trace, hit), "wb") as f:
        f.write(whole)
    trace.verify()


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
