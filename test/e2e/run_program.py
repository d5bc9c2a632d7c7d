#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""run_program.py SOURCE BINARY: one test program, native against traced, as its source's comments
say (see test/programs/check.h)."""
import os
import re
import shlex
import shutil
import sys
import tempfile

import tbdtest


def attributes(source):
    found = {}
    with open(source, encoding="utf-8") as f:
        for line in list(f)[:15]:
            match = re.match(r"// (\w+): *(.*)$", line)
            if match:
                found[match.group(1)] = match.group(2)
    return found


def missing_feature(wanted):
    with open("/proc/cpuinfo") as f:
        have = next((line for line in f if line.startswith("flags")), "").split()
    return [w for w in wanted if w not in have]


def check_end(result, want):
    expected = -int(want["signal"]) if "signal" in want else int(want.get("exit", "0"))
    assert result.code == expected, "native run ended with %d, not %d: %r" % (result.code, expected, result)


def check(source, binary, folder):
    want = attributes(source)
    lacking = missing_feature(want.get("cpu", "").split())
    if lacking:
        raise tbdtest.Skip("CPU without " + " ".join(lacking))
    argv = [binary] + shlex.split(want.get("args", ""))
    how = {"stdin": want.get("stdin", "").encode(), "timeout": 100,
           "env": dict(pair.split("=", 1) for pair in want.get("env", "").split())}
    native = tbdtest.run(argv, **how)
    if native.code == 77:
        raise tbdtest.Skip(native.out.decode(errors="replace").strip())
    check_end(native, want)
    traced, trace = tbdtest.record(argv, os.path.join(folder, "traces"), options=want.get("options", ""), **how)
    tbdtest.same(native, traced, tool_lines="missing" in want)
    assert trace is not None, "no trace was written: %r" % traced
    if want.get("replay") != "no":
        trace.verify(timeout=200)
    info = trace.info()
    if "end" in want:
        assert info["end"] == want["end"], info
    elif "missing" not in want:
        tbdtest.ends_like(trace, traced)
    if "missing" in want:
        notes = " ".join(map(str, info.get("notes", [])))
        assert want["missing"] in notes, "no note about %s: %s" % (want["missing"], info)
    assert info["dropped"] == 0, info


def main():
    folder = tempfile.mkdtemp(prefix="tbd-program-")
    try:
        check(sys.argv[1], sys.argv[2], folder)
        print("passed")
    except tbdtest.Skip as reason:
        print("skipped: %s" % reason)
        sys.exit(77)
    except AssertionError as error:
        print("failed: %s" % error)
        sys.exit(1)
    finally:
        if "--keep" in sys.argv:
            print("kept: " + folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
