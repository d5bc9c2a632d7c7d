#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Traces from a stranger: code in them may do anything in its replay process, and harms nobody."""
import os

import tbdtest

SCRIBBLE = os.path.join(tbdtest.BUILD, "replay_scribble")


def scribble(folder, window, seeds, env=None):
    """Replays of every kind while the memory that they share with the process is written to."""
    _, trace = tbdtest.record([tbdtest.program("many_windows")], folder, "window=%d" % window)
    for seed in seeds:
        result = tbdtest.run([SCRIBBLE, trace.path, str(seed), "20" if tbdtest.LONG else "5"], stdin=None,
                             env={"TBD_REPLAY_SECONDS": "2", **(env or {})})
        assert result.code == 0, "seed %d: %r" % (seed, result)


def test_scribbling_over_all_shared_memory_harms_nobody(folder):
    scribble(folder, 50000, range(1, 4))


def test_scribbling_between_slices_harms_nobody(folder):
    scribble(folder, 200000, range(4, 6), {"TBD_SLICE_BLOCKS": "7000"})


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
