#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Values around a crash: what a simulation says is exact is what single-stepping saw (test/tools/step_values.c)."""
import csv
import os

import tbdtest


def shares(name, last, every=0):
    """The row for the last instructions of an example that crashes."""
    program = os.path.join(tbdtest.BUILD, "examples", "forensics", name)
    result = tbdtest.run([os.path.join(tbdtest.BUILD, "step_values"), str(last), str(every), program])
    if result.code == 77:
        raise tbdtest.Skip(result.err.decode())
    assert result.code == 0, result
    return list(csv.DictReader(line for line in result.out.decode().splitlines() if "," in line))


def test_exact_values_of_crashes_are_never_wrong(folder):
    for name in ("crash_callback", "crash_goto"):
        for row in shares(name, 20000):
            assert row["exact_but_wrong"] == "0", (name, row)
            assert float(row["wrong"]) < 5 and float(row["exact"]) > 3, (name, row)


def test_registers_on_the_way_make_more_known(folder):
    without, given = shares("crash_callback", 20000)[-1], shares("crash_callback", 20000, 1000)[-1]
    assert given["exact_but_wrong"] == "0", given
    assert float(given["unknown"]) < float(without["unknown"]), (without, given)


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
