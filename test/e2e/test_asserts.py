#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An assertion that fails in the engine: the program goes on natively, the trace says why, and a replay of it ends
with the same words.  Needs a build with TBD_ASSERTS."""
import os
import re
import subprocess

import tbdtest

# A wild store into the engine's thread block (patcher/thread.h, THREAD-1), which exists only in a traced program.
STRAY = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < 300000; i++) {
        sum = sum * 31 + (i ^ sum >> 3);
        if (i == 10000 && getenv("LD_PRELOAD"))
            *(volatile uint64_t *)(MARK) = 1;
    }
    printf("%u\n", sum);
    return 7;
}
"""
MARK = "(0x500000000000ull + (64ull << 30) + (2ull << 30) - 8)"  # the block's last field (base/layout.h)


def built(folder):
    if os.environ.get("TBD_ASSERTS") != "1":
        raise tbdtest.Skip("a build without assertions")
    source, path = folder + "/stray.c", folder + "/stray"
    with open(source, "w", encoding="utf-8") as f:
        f.write(STRAY)
    subprocess.run(["cc", "-O1", "-DMARK=" + MARK, "-o", path, source], check=True)
    return path


def test_the_program_goes_on_and_the_trace_says_why(folder):
    path = built(folder)
    native = tbdtest.run([path])
    traced, trace = tbdtest.record([path], folder + "/traces", options="window=100000")
    assert native.code == 7 and (traced.out, traced.code) == (native.out, native.code), traced
    said = [line for line in traced.err.decode().splitlines() if line.startswith("tbd: ")]
    assert len(said) == 1 and re.search(r"untraced: internal error: THREAD-1: .*\(play\.c:\d+\)", said[0]), traced.err
    info = trace.info()
    assert info["end"] == "detached" and "internal error: THREAD-1" in str(info["notes"]), info


def test_a_replay_ends_with_it(folder):
    _, trace = tbdtest.record([built(folder)], folder + "/traces", options="window=1000")
    result = trace.tbdq("verify", json_output=False)
    assert result.code == 3 and trace.info()["windows"] > 3, result
    assert re.search(rb"internal error: THREAD-1: .*\(run_window\.c:\d+\)", result.out), result
    assert b"1 windows were not replayed" in result.out, result  # only that with the store


if __name__ == "__main__":
    tbdtest.main(test_the_program_goes_on_and_the_trace_says_why, test_a_replay_ends_with_it)
