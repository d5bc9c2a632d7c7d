#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`tbdq heap`: live blocks, who had an address, mistakes; against valgrind where it is there."""
import os
import re

import tbdtest

SOURCE = os.path.join(tbdtest.SOURCE, "test/programs/heap.c")


def compiled(folder, source=SOURCE):
    path = os.path.join(folder, os.path.basename(source)[:-2])
    result = tbdtest.run([tbdtest.need("cc"), "-g", "-O0", "-D_GNU_SOURCE", source, "-o", path])
    assert result.code == 0, result
    return path


def test_blocks_at_the_end_are_the_program_s(folder):
    result, trace = tbdtest.record([compiled(folder)], folder, "window=500")
    blocks, size = map(int, re.search(rb"says: (\d+) blocks (\d+) bytes", result.out).groups())
    rows = [row for row in trace.ask("heap", "leaks") if "printf" not in row["allocated"]]  # stdout's buffer
    assert (sum(row["blocks"] for row in rows), sum(row["bytes"] for row in rows)) == (blocks, size), rows
    loop = next(row for row in rows if "leak_in_a_loop" in row["allocated"])
    assert loop["blocks"] == 10 and loop["allocated"].startswith("malloc < wrapped heap.c:"), loop
    assert len(trace.ask("heap", at=loop["first"])) < len(rows)


def test_accesses_after_free_and_who_had_the_address(folder):
    _, trace = tbdtest.record([compiled(folder)], folder, "window=500")
    rows = trace.ask("heap", "errors")
    assert [(row["error"], row["into"], row["function"]) for row in rows] == [
        ("store after free", 100, "use_after_free"), ("load after free", 100, "use_after_free")], rows
    had = trace.ask("heap", "of", rows[0]["addr"])
    assert len(had) == 1 and had[0]["bytes"] == 200 and had[0]["stores"] >= 1, had
    assert "use_after_free" in had[0]["freed"] and "use_after_free" in had[0]["allocated"], had


def test_vectors_that_reach_over_a_string_are_no_errors(folder):
    """Of glibc's string functions for AVX-512 (where the processor has it), AVX2 and SSE2."""
    path = compiled(folder, os.path.join(tbdtest.SOURCE, "test/programs/questions/over_reads.c"))
    least = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX2,-AVX,-BMI2,-SSE4_2,-SSE4_1,-SSSE3"}
    for number, env in enumerate(({}, tbdtest.V3_ENV, least)):
        _, trace = tbdtest.record([path], os.path.join(folder, str(number)), env=env)
        rows = trace.ask("heap", "errors")
        assert 1 <= len(rows) <= 4 and all("wrong" in row["allocated"] and row["into"] >= 96 for row in rows), rows


def test_leaks_are_valgrind_s(folder):
    valgrind = tbdtest.need("valgrind")
    path = compiled(folder)
    said = tbdtest.run([valgrind, "--leak-check=full", "--show-leak-kinds=all", path]).err
    match = re.search(rb"in use at exit: ([\d,]+) bytes in ([\d,]+) blocks", said)
    if match is None:
        raise tbdtest.Skip("valgrind does not run here")
    wanted = [int(text.replace(b",", b"")) for text in match.groups()]
    _, trace = tbdtest.record([path], folder)
    rows = [row for row in trace.ask("heap", "leaks") if "printf" not in row["allocated"]]  # valgrind has libc free it
    found = [sum(row["bytes"] for row in rows), sum(row["blocks"] for row in rows)]
    assert found == wanted, (found, wanted, rows)
    assert b"Invalid write" in said and b"Invalid read" in said, said


if __name__ == "__main__":
    tbdtest.main(test_blocks_at_the_end_are_the_program_s, test_accesses_after_free_and_who_had_the_address,
                 test_vectors_that_reach_over_a_string_are_no_errors, test_leaks_are_valgrind_s)
