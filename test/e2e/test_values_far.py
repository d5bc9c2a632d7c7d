#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Values far before a crash: rows before a long loop and rows after it come from simulations of their own (src/query/commands/path_rows.c)."""
import os

import tbdtest
from test_values import compiled, dump_of

SOURCE = """\
int table[64];
volatile int sink;
__attribute__((noinline)) int put(int n)
{
    int next = n * 3 + 1;

    table[n & 63] = next;
    return next;
}
__attribute__((noinline)) void spin(int n)
{
    for (int i = 0; i < n; i++)
        sink += i;
}
int main(void)
{
    int a = put(5);

    a = put(a);
    spin(60000);
    a = put(a);
    a = put(a);
    *(volatile int *)(long)sink = a;
    return 0;
}
"""
STORES = [(5, 16), (16, 49), (49, 148), (148, 445)]  # what put() gets, and returns


def crashed(folder):
    return dump_of(compiled(folder, "far", SOURCE, "-O0"), os.path.join(folder, "far.d"), "ring=4M")


def test_rows_on_both_sides_of_a_loop_have_their_values(folder):
    dump = crashed(folder)
    rows = dump.ask("path", "60", "fold", "--values")[1:]
    stores = [row for row in rows if row.get("text") == "table[n & 63] = next;"]
    assert any(row.get("times", 1) >= 50000 for row in rows) and len(stores) == len(STORES), [row["back"] for row in rows]
    for row, (n, following) in zip(stores, STORES):
        values = {value["name"]: value for value in row["values"]}
        assert values["n"]["value"] == str(n) and values["next"]["value"] == str(following), row
        assert {values[name]["certainty"] for name in ("n", "next")} <= {"exact", "inferred"}, row
        # The same as at that position, and as where only what is near is asked about.
        assert dump.ask("--at", row["back"], "print", "next")[0]["value"] == str(following), row
    near = dump.ask("path", "4", "fold", "--values")[1:]
    assert near == rows[-len(near):], (near, rows)


# No value says what the one before it was: each follows from registers that were recorded earlier, where a ring was full.
ONE_WAY = """\
__attribute__((noinline)) static unsigned long mix(unsigned long x, long n) { return (x * x) ^ (x >> 3) ^ n; }
int main(void)
{
    unsigned long x = 7;
    for (long n = 0; n < 300000; n++)
        x = mix(x, n);
    *(volatile int *)0 = (int)x;
}
"""


def test_registers_of_condensed_laps_count(folder):
    """Laps before the last one, too, have registers where they ended."""
    dump = dump_of(compiled(folder, "one_way", ONE_WAY, "-O1"), os.path.join(folder, "one_way.d"), "condensed=4M")
    truth, x = {}, 7
    for n in range(300000):
        truth[n] = x
        x = (x * x % 2**64) ^ (x >> 3) ^ n
    rows = dump.ask("path", "160000", "blocks")
    entries = [row["back"] for row in rows if row.get("function", "").endswith("!mix") and "+" not in row["back"]]
    known = 0
    for back in (entries[len(entries) * k // 8] for k in range(1, 8)):
        value, number = (dump.ask("print", name, at=back)[0] for name in ("x", "n"))
        if value["certainty"] != "unknown":
            assert int(value["value"]) == truth[int(number["value"])], (back, value, number)
            known += 1
    assert known >= 5, known


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_") and callable(t)])
