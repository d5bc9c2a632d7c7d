#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""run_program.py SOURCE BINARY [--v3] [--later | --free | --native]: one test program, native against traced, as its source's comments
say (see test/programs/check.h).  With --v3 as on a processor without AVX-512, replayed on this one, too; with --later
recorded with count=later, and forked children are verified as well; with --free run with mode=free, which leaves no trace;
with --native recorded with mode=native, which lets some programs go ("native: WHY"), with the results that they have natively."""
import glob
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
    if "--v3" in sys.argv:
        have = [flag for flag in have if not flag.startswith(("avx512", "amx"))]
    return [w for w in wanted if w not in have]


def long_env(want):
    return want.get("long_env", "") if tbdtest.LONG else ""


def check_end(result, want):
    expected = -int(want["signal"]) if "signal" in want else int(want.get("exit", "0"))
    assert result.code == expected, "native run ended with %d, not %d: %r" % (result.code, expected, result)


def check_later(first):
    """No window with blocks was counted, and those of other processes replay, too."""
    for trace in tbdtest.traces(os.path.dirname(first.path)):
        if any(w["blocks"] and not w["uncounted"] for w in trace.ask("windows")):
            raise AssertionError("%s has counted windows" % trace)
        if trace.path != first.path:
            trace.verify(timeout=200)


def check_native(first, native, recorded, want):
    """The trace ends where the program was let go, or tells its whole life; all that there is replays."""
    tbdtest.need_native_play(recorded)
    tbdtest.same(native, recorded, tool_lines=True)
    for trace in tbdtest.traces(os.path.dirname(first.path)):
        trace.verify(timeout=200)
    info = first.info()
    if "native" in want:
        assert info["end"].startswith("detached") and want["native"] in " ".join(info["notes"]), (want["native"], info)
    elif "end" not in want and "missing" not in want:
        tbdtest.ends_like(info, recorded)


def check_free(native, argv, root, how, want):
    os.makedirs(root)
    options = ",".join(filter(None, ("mode=free", want.get("options"))))
    result = tbdtest.run(argv, **{**how, "env": {**how["env"], **tbdtest.trace_env(root, options)}})
    tbdtest.same(native, result, tool_lines="missing" in want)
    assert not os.listdir(root), os.listdir(root)


def check(source, binary, folder):
    want = attributes(source)
    if "--native" in sys.argv and "native_fails" in want:
        raise tbdtest.Skip("not yet with the program's own code: " + want["native_fails"])
    if "--free" in sys.argv and "free_fails" in want:
        raise tbdtest.Skip("not in a free run: " + want["free_fails"])
    lacking = missing_feature(want.get("cpu", "").split())
    if lacking:
        raise tbdtest.Skip("CPU without " + " ".join(lacking))
    argv = [binary] + shlex.split(want.get("args", ""))
    how = {"stdin": want.get("stdin", "").encode(), "timeout": 300,
           "env": dict(pair.split("=", 1) for pair in (want.get("env", "") + " " + long_env(want)).split())}
    options = want.get("options", "")
    if "--later" in sys.argv:
        options = options + ",count=later" if options else "count=later"
    if "--v3" in sys.argv:
        how["env"].update(tbdtest.V3_ENV)
        options = options + "," + tbdtest.V3 if options else tbdtest.V3
    native = tbdtest.run(argv, **how)
    if native.code == 77:
        raise tbdtest.Skip(native.out.decode(errors="replace").strip())
    check_end(native, want)
    if "--free" in sys.argv:
        check_free(native, argv, os.path.join(folder, "traces"), how, want)
        return
    if "--native" in sys.argv:
        options = ",".join(filter(None, (options, "mode=native,count=now")))
    traced, trace = tbdtest.record(argv, os.path.join(folder, "traces"), options=options, **how)
    assert trace is not None, "no trace was written: %r" % traced
    if "--native" in sys.argv:
        check_native(trace, native, traced, want)
        return
    tbdtest.same(native, traced, tool_lines="missing" in want)
    if want.get("replay") != "no":
        trace.verify(timeout=200)
        if "--v3" in sys.argv:
            trace.verify(timeout=200, env=tbdtest.REPLAY_V3)
        if "--later" in sys.argv:
            check_later(trace)
    info = trace.info()
    if "end" in want:
        assert info["end"] == want["end"], info
    elif "missing" not in want:
        tbdtest.ends_like(info, traced)
    if "missing" in want:
        notes = " ".join(map(str, info.get("notes", [])))
        assert want["missing"] in notes, "no note about %s: %s" % (want["missing"], info)
    assert info["dropped"] == 0, info


def check_every(option, folder):
    """All test programs, as with that option (--later, --free, --native)."""
    sys.argv.append(option)
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "programs")
    for source in sorted(glob.glob(root + "/*.c") + glob.glob(root + "/*.cc")):
        name = os.path.splitext(os.path.basename(source))[0]
        try:
            check(source, tbdtest.program(name), os.path.join(folder, name))
        except tbdtest.Skip as reason:
            print("%s: skipped: %s" % (name, reason))


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
