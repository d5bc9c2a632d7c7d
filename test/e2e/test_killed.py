#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Values in the dump of a program that was killed: they follow from what was recorded beside its rings, and are true or unknown."""
import json
import os
import subprocess

import tbdtest

SOURCE = """\
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
struct sum { unsigned n; const char *name; unsigned values[4]; unsigned long total; };
static const unsigned factors[4] = { 3, 5, 7, 11 };
unsigned turns;
__attribute__((noinline)) void note(struct sum *sum, unsigned value)
{
    sum->values[sum->n % 4] = value;
    sum->total += value;
    sum->n++;
    turns++;
}
__attribute__((noinline)) unsigned next(unsigned n, unsigned value)
{
    return value * factors[n % 4] + n;
}
static void *work(void *arg)
{
    struct sum sum = { 0, "sums", { 0 }, 0 };
    unsigned value = 1;

    for (unsigned n = 0; n < 30000; n++) {
        value = next(n, value);
        note(&sum, value);
        if (n % 1000 == 0)
            (void)getppid();
    }
    return arg == NULL ? NULL : (void *)sum.total;
}
int main(int argc, char **argv)
{
    pthread_t thread;

    if (argc > 1 && pthread_create(&thread, NULL, work, NULL) == 0)
        pthread_join(thread, NULL);
    else
        work(argv);
    raise(SIGKILL);
}
"""
LAST, TURNS = 30000, 400


def truth():
    """Of each turn: what next() is given, and what note() is: n, value, and the struct before it."""
    factors, value, total, values, out = (3, 5, 7, 11), 1, 0, [0] * 4, []
    for n in range(LAST):
        old, value = value, (value * factors[n % 4] + n) & 0xffffffff
        out.append({"n": n, "old": old, "value": value, "total": total, "values": list(values)})
        values[n % 4] = value
        total += value
    return out


def killed(folder, options, argv):
    source, path, traces = folder + "/sums.c", folder + "/sums", folder + "/traces" + options.replace("/", "_") + str(len(argv))
    if not os.path.exists(path):
        with open(source, "w", encoding="utf-8") as f:
            f.write(SOURCE)
        subprocess.run(["cc", "-g", "-O1", "-pthread", "-o", path, source], check=True)
    result = tbdtest.run([path, *argv], env=tbdtest.trace_env(traces, "mode=crash" + options))
    assert result.code == -9, result
    tbdtest.wait_organizers(traces)
    return tbdtest.find_trace(traces, path)


def moments(dump, function):
    """(number of the turn, position, thread) of calls of the function among the last turns."""
    calls = dump.ask("calls", function)
    assert len(calls) > TURNS and len({row["thread"] for row in calls}) == 1, (function, len(calls))
    return [(LAST - back, calls[-back]["position"], calls[-back]["thread"]) for back in range(1, TURNS, 41)]


def look(dump, function, names):
    """Each exact value is right.  The shares of values that are exact, inferred and right, inferred and wrong."""
    turns, found = truth(), [0, 0, 0]
    wanted = moments(dump, function)
    lines = [line for _, position, thread in wanted for line in ["goto %s thread %d" % (position, thread)] + ["print " + name for name in names]]
    answers = iter(dump.script(lines, begin=None))
    for n, position, _ in wanted:
        assert next(answers)[0]["position"] == position, position
        for name, key in names.items():
            row = next(answers)[0]
            if row["certainty"] == "unknown":
                continue
            is_right = str(row["value"]) == str(key(turns[n]))
            assert is_right or row["certainty"] == "inferred", (function, n, name, row)
            found[0 if row["certainty"] == "exact" else 1 if is_right else 2] += 1
    return [count / (len(wanted) * len(names)) for count in found]


def test_values_of_a_killed_program(folder):
    of_next = {"n": lambda turn: turn["n"], "value": lambda turn: turn["old"]}
    of_note = {"value": lambda turn: turn["value"], "sum->n": lambda turn: turn["n"], "sum->total": lambda turn: turn["total"],
               "sum->values[1]": lambda turn: turn["values"][1]}
    for options, argv in (("", []), (",record=0", []), ("", ["thread"])):
        dump = killed(folder, options, argv)
        info = dump.info()
        assert info["rings_only"] and (info["rings"]["values"] > 0) == (options == ""), info
        exact, right, wrong = look(dump, "next", of_next)
        assert wrong == 0 and (exact + right == 1 or options), (options, argv, exact, right, wrong)
        exact, right, _ = look(dump, "note", of_note)
        # Of memory that other threads may write nothing is known before the first registers that a ring still has.
        assert exact + right >= (0 if options else 1 if not argv else 0.25), (options, argv, exact, right)


def test_source_and_code_of_a_killed_program(folder):
    """What needs only the files that were mapped is answered as in other dumps."""
    dump = killed(folder, "", [])
    answers = dump.script(["goto note", "list", "locals", "up", "bt", "ptype struct sum", "symbol note", "line note", "modules", "disas note", "x/2i $pc",
                           "print factors", "down", "print sum->name", "path 3 insns --values"], begin=None)
    assert any(row.get("current") and "sum->values" in row["text"] for row in answers[1]), answers[1]
    assert {row["name"]: row["value"] for row in answers[2]}["value"] == str(truth()[-1]["value"]), answers[2]
    assert [row["function"] for row in answers[4]][:2] == ["note", "work"], answers[4]
    assert [row["module"] for row in answers[8]].count("sums") == 1, answers[8]
    assert answers[9][0]["pc"] == answers[0][0]["pc"] and len(answers[9]) > 4, answers[9]
    assert "{3, 5, 7, 11}" in json.dumps(answers[11]) and answers[11][0]["certainty"] == "exact", answers[11]
    assert '"sums"' in answers[13][0]["value"], answers[13]
    assert any(row.get("values") for row in answers[14]), answers[14]


if __name__ == "__main__":
    tbdtest.main(test_values_of_a_killed_program, test_source_and_code_of_a_killed_program)
