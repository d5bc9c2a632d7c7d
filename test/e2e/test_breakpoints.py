#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""break, watch and continue stop where gdb stops, and the other way round in reverse."""
import json
import os
import re
import subprocess

import othertools
import tbdtest

LIST = os.path.join(tbdtest.BUILD, "examples/list")
STOPS = 12


def recorded(folder):
    return tbdtest.record([LIST], folder)[1]


def script(trace, *lines):
    """What one process says to these commands, up to the first that fails."""
    return subprocess.run([tbdtest.TBDQ, "-t", trace.path, "--json"], input="\n".join(lines).encode() + b"\n",
                          env=tbdtest.clean_env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)


def rows(said):
    return [json.loads(line) for line in said.stdout.splitlines()]


def by_gdb(folder, setting):
    """[(function, head and restored in hexadecimal)] at each stop; None at the program's end."""
    path = folder + "/gdb"
    with open(path, "w", encoding="utf-8") as f:
        f.write("set pagination off\nset disable-randomization on\nbreak main\nrun\ndelete\n%s\n" % setting)
        f.write('continue\nprintf "stop "\noutput $pc\nprintf " %p %d\\n", head, restored\n' * STOPS)
    said = subprocess.run([tbdtest.need("gdb"), "-nx", "-batch", "-x", path, LIST], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False).stdout.decode()
    return re.findall(r"^stop .*<(\w+)[+>].* (0x[0-9a-f]+|\(nil\)) (\d+)$", said, re.M)


def by_us(trace, setting, go_on, start):
    lines = ["goto first", "goto main", setting] + (["goto last"] if start == "last" else [])
    stops = []
    for count in range(1, STOPS + 1):
        said = script(trace, *lines, "%s %d" % (go_on, count), "where", "print head", "print restored")
        if said.returncode != 0:
            break
        where, head, restored = rows(said)[-3:]
        stops.append((where["function"], int(head["value"].split()[0], 16), int(restored["value"])))
    return stops


def offsets(stops):
    """Addresses differ from run to run: those of the nodes are told by the first one."""
    values = [int(head, 16) if head != "(nil)" else 0 for _, head, _ in stops]
    first = min(value for value in values if value)
    return [(function, value - first if value else 0, int(restored)) for (function, _, restored), value in zip(stops, values)]


def same_stops(folder, trace, setting, is_watch):
    theirs = offsets(by_gdb(folder, setting))
    ours = by_us(trace, setting, "continue", "first")
    first = min(head for _, head, _ in ours if head)
    found = [(function, head - first if head else 0, restored) for function, head, restored in ours]
    assert len(found) >= 6, (setting, found)
    if is_watch:  # gdb stops behind the store, and we before it
        theirs = [theirs[0][:1] + (0,) + theirs[0][2:]] + [(one[0], before[1], one[2]) for before, one in zip(theirs, theirs[1:])]
    assert theirs == found, (setting, theirs, found)
    back = by_us(trace, setting, "reverse-continue", "last")
    assert back == ours[::-1], (setting, back, ours)


def test_breakpoints_stop_where_gdb_stops(folder):
    trace = recorded(folder)
    same_stops(folder, trace, "break put_in_front", False)


def test_watched_variables_stop_where_gdb_stops(folder):
    othertools.need_watchpoints()
    trace = recorded(folder)
    same_stops(folder, trace, "watch head", True)


def test_the_nearest_of_several_stops(folder):
    trace = recorded(folder)
    said = rows(script(trace, "goto first", "goto main", "break restore", "tbreak put_in_front if node->value == 1", "watch restored",
                       "continue", "continue", "continue", "breakpoints", "reverse-continue", "delete 1", "breakpoints"))
    stops = [row for row in said if "time" in row and "breakpoint" in row]
    assert [row["breakpoint"] for row in stops] == [2, 1, 3, 1], said
    assert [row["function"] for row in stops] == ["put_in_front", "restore", "restore", "restore"], said
    assert [row["number"] for row in said if "number" in row] == [1, 2, 3, 1, 3, 3], said
    end = script(trace, "goto last", "break restore", "continue")
    assert end.returncode == 1 and rows(end)[-1]["time"] == trace.one("goto", "last")["time"], end
    begin = script(trace, "goto first", "break restore", "reverse-continue")
    assert begin.returncode == 1 and (rows(begin)[-1]["time"], rows(begin)[-1]["offset"]) == (0, 0), begin


def test_places_and_mistakes(folder):
    trace = recorded(folder)
    trace.one("goto", "first")
    assert trace.one("goto", "main")["function"] == "main"
    line = trace.one("goto", "list.c:36")
    assert line["type"] == "line" and line["function"] == "restore", line
    trace.one("goto", "first")
    assert trace.one("until", "list.c:36") == line
    trace.one("goto", "first")
    trace.one("goto", "main")
    assert trace.one("until", "36") == line, "a line of the file that one is in"
    for wrong in ("break nosuch", "break list.c:1", "break nosuch.c:31", "watch nosuch", "watch 1 + 1", "delete 7", "continue x",
                  "break put_in_front if", "break", "watch", "until nosuch", "goto nosuch"):
        said = script(trace, wrong)
        assert said.returncode != 0 and said.stderr and not said.stdout, (wrong, said)
    again = trace.tbdq("goto main", json_output=False)
    assert again.code == 0 and b"!main" in again.out and b"before the position where you were" in again.err, again
    here = trace.one("where")
    alone = trace.tbdq("goto main", json_output=False)
    assert alone.code == 0 and alone.out == again.out and b"only once: you are there" in alone.err, alone
    assert tbdtest.position(trace.one("goto", "main")) == tbdtest.position(here) == tbdtest.position(trace.one("where"))
    trace.one("next")
    after = trace.tbdq("until list.c:36", json_output=False)
    assert after.code in (0, 1) and b"before the position" not in after.err, after


if __name__ == "__main__":
    tbdtest.main(test_breakpoints_stop_where_gdb_stops, test_watched_variables_stop_where_gdb_stops,
                 test_the_nearest_of_several_stops, test_places_and_mistakes)
