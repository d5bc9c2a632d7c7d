#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Traces that an older version wrote, or an emulated processor of another maker ("emulated": by qemu, which has no
AVX-512 and another MXCSR mask): they open, answer as they did then, and replay.

test/golden/VERSION-NAME.tar.xz is a trace of program.c there, without copies of modules, and VERSION-NAME.json what was
answered.  How one is made: record it in a folder with a plain name (its path is in the trace, and the environment, so use env -i), empty `modules`,
pack it with `tar c NAME | xz`, and run this file with --answers to write the answers."""
import glob
import json
import os
import sys
import tarfile

import tbdtest

GOLDEN = os.path.join(tbdtest.SOURCE, "test", "golden")


def traces(folder):
    """(name, trace) of each."""
    for packed in sorted(glob.glob(os.path.join(GOLDEN, "*.tar.xz"))):
        name = os.path.basename(packed)[: -len(".tar.xz")]
        with tarfile.open(packed) as tar:
            tar.extractall(folder, filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(folder)
        yield name, tbdtest.Trace(os.path.join(folder, name))


def answers(trace):
    info = trace.info()
    found = {"info": {key: info[key] for key in ("program", "args", "end", "blocks", "window_blocks", "stores", "calls",
                                                "returns", "syscalls", "distinct_blocks")}}
    found["windows"] = [[w["time"], w["blocks"], w["level"], w["stores"]] for w in trace.ask("windows")]
    found["syscalls"] = [[e["time"], e["call"]] for e in trace.ask("all", "syscall")]
    last = found["windows"][-1][0]
    for time in (found["windows"][0][0] + 300, last - 200, last + 5):
        regs = trace.one("regs", at=str(time))
        found["at %d" % time] = [[regs[r] for r in ("rax", "rbx", "rsp", "rip", "rflags", "xmm3")], trace.ask("mem", "rsp", "32", at=str(time))]
    return found


def check_answers(name, trace):
    with open(os.path.join(GOLDEN, name + ".json"), encoding="utf-8") as f:
        expected = json.load(f)
    found = json.loads(json.dumps(answers(trace)))
    for key, value in expected.items():
        assert found.get(key) == value, "%s: %s: %r, then it was %r" % (name, key, found.get(key), value)


def test_traces_of_older_versions(folder):
    count = count_timeless = 0
    for name, trace in traces(folder):
        check_answers(name, trace)
        if "ended" not in trace.info():
            timeless = trace.tbdq("--since", "+1s", "syscalls")
            assert timeless.code == 3 and b"does not say when" in timeless.err, timeless
            count_timeless += 1
        for env in (None, tbdtest.REPLAY_V3):
            trace.verify(env=env)
        count += 1
    assert count >= 6 and count_timeless == 5, (count, count_timeless)


def write_answers(folder):
    for name, trace in traces(folder):
        path = os.path.join(GOLDEN, name + ".json")
        if not os.path.exists(path):
            with open(path, "w", encoding="utf-8") as f:
                json.dump(answers(trace), f)
                f.write("\n")


if __name__ == "__main__":
    if "--answers" in sys.argv:
        sys.argv.remove("--answers")
        tbdtest.main(write_answers)
    else:
        tbdtest.main(test_traces_of_older_versions)
