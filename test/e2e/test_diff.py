#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`tbdq diff` finds the planted branch in pairs of runs, and what it depended on."""
import json
import os
import re

import tbdtest

SOURCE = os.path.join(tbdtest.SOURCE, "test/programs/pairs.c")
REGRESSION = os.path.join(tbdtest.SOURCE, "examples/forensics/regression")


def compile_to(path, source, *flags):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    compiled = tbdtest.run([tbdtest.need("cc"), "-g", *(flags or ["-O0"]), source, "-o", path, "-lpthread"])
    assert compiled.code == 0, compiled
    return path


def planted(name):
    with open(SOURCE, encoding="utf-8") as source:
        return "pairs.c:%d" % next(number for number, text in enumerate(source, 1) if "planted %s */" % name in text)


def one_run(path, folder, name, text="", stdin=b"", env=None):
    argv = [path, name] + ([text] if text else [])
    return tbdtest.record(argv, folder, "window=4000", env=env, stdin=stdin)[1]


def ask(a, b, *more):
    result = a.tbdq("diff", a.path, b.path, *more)
    assert result.code == 0, result
    return [json.loads(line) for line in result.out.decode().splitlines()]


def first_of(rows, thread=1):
    return next(row for row in rows if row["type"] == "difference" and row["thread"] == thread)


# name: how the two runs differ, and the origin that is to be found
PAIRS = {
    "input": ({"stdin": b"abc\n" * 20 + b"abcd\n" * 5}, {"stdin": b"abc\n" * 20 + b"xbcd\n" * 5}, "input"),
    "argument": ({"text": "abc"}, {"text": "abcd"}, "start"),
    "race": ({"env": {"PAIRS_FIRST": "200000"}}, {"env": {"PAIRS_SECOND": "200000"}}, "order"),
    "interrupted": ({"text": "n"}, {"text": "y"}, "start"),
    "crash": ({"text": "5"}, {"text": "15"}, "start"),
    "environment": ({"env": {"PAIRS_LEVEL": "3"}}, {"env": {"PAIRS_LEVEL": "7"}}, "start"),
    "callback": ({"text": "1"}, {"text": "6"}, "start"),
    "pointer": ({"text": "1"}, {"text": "2"}, "start"),
    "cases": ({"text": "b"}, {"text": "d"}, "start"),
    "real": ({"text": "1.5"}, {"text": "9.25"}, "start"),
    "recursion": ({"text": "5"}, {"text": "8"}, "start"),
}


def check_pair(folder, path, name):
    first, second, origin = PAIRS[name]
    own = os.path.join(folder, name)
    a, b = (one_run(path, os.path.join(own, side), name, **how) for side, how in (("a", first), ("b", second)))
    found = first_of(ask(a, b))
    assert found["a"]["branch"]["source"] == found["b"]["branch"]["source"] == planted(name), found
    assert found["how"] == ("fault" if name == "crash" else "branch") and found["origin"] == origin, found
    assert found["a"]["branch"]["function"].split("+")[0] == found["b"]["branch"]["function"].split("+")[0]
    for row in found["why"]:
        assert "value" not in row["a"] or row["a"]["value"] != row["b"]["value"] or row["a"]["value"] == "?" or \
            row["a"]["what"].startswith("zmm"), row
    return found


def test_pairs_part_at_the_planted_branch(folder):
    path = compile_to(os.path.join(folder, "pairs"), SOURCE)
    names = list(PAIRS) if tbdtest.LONG else ["input", "race", "crash"]
    for name in names:
        found = check_pair(folder, path, name)
        print("        %s: %s" % (name, found["cause"]))
        if name == "input":  # its 81st line begins with another letter
            assert "from number 80 of" in found["cause"], found["cause"]
        if name == "race":
            assert re.search("thread [23] wrote it last in A, [23] in B", found["cause"]), found


def until_different(path, folder, name):
    """Runs of which chance decides: two that print different numbers."""
    runs = {}
    for i in range(60):
        result, trace = tbdtest.record([path, name], os.path.join(folder, str(i)), "window=4000")
        runs.setdefault(result.out, trace)
        if len(runs) == 2:
            return [runs[key] for key in sorted(runs)]
    raise tbdtest.Skip("chance did not show in 60 runs")


def test_chance_is_named_and_passed_over(folder):
    path = compile_to(os.path.join(folder, "pairs"), SOURCE)
    kinds = {"process": ("pid", "pids"), "moment": ("time", "times"), "address": ("address", "addresses")}
    for name in kinds if tbdtest.LONG else ["process"]:
        origin, rule = kinds[name]
        a, b = until_different(path, os.path.join(folder, name), name)
        found = first_of(ask(a, b))
        assert found["a"]["branch"]["source"] == planted(name) and found["origin"] == origin, found
        rest = a.tbdq("diff", a.path, b.path, "--ignore", rule, json_output=False)
        assert rest.code == 1 and b"no difference but those that are ignored" in rest.out, rest


PRICES = """#include <stdio.h>
static int rebate(int sum)
{
    int percent = 0;
    if (sum > 100)
        percent = 5;
    if (sum > 500)
        percent = 10;
    return sum * percent / 100;
}
static int total(const int *items, int count)
{
    int sum = 0;
    for (int i = 0; i < count; i++)
        sum += items[i];
    return sum - rebate(sum);
}
int main(void)
{
    int items[100], count = 0;
    while (count < 100 && scanf("%d", &items[count]) == 1)
        count++;
    int sum = total(items, count);
    if (sum > 950)
        puts("too much");
    return 0;
}
"""
# a changed line: what it was, what it is, the line in the changed text
CHANGES = {
    "constant": ("percent = 10;", "percent = 1;", 8),
    "condition": ("sum > 500", "sum > 5000", 7),
    "bound": ("i < count", "i < count - 1", 14),
    "inserted": ("    int sum = 0;\n", "    int sum = 0;\n    if (count > 2)\n        sum += 100;\n", 14),
    "result": ("return sum - rebate(sum);", "return sum + rebate(sum);", 16),
    "removed": ("    if (sum > 100)\n        percent = 5;\n    if (sum > 500)\n        percent = 10;\n", "    if (sum > 100)\n        percent = 5;\n", 7),
}


def blame(folder, name, *flags):
    old, new, line = CHANGES[name]
    paths = []
    for side, text in (("good", PRICES), ("bad", PRICES.replace(old, new))):
        own = os.path.join(folder, name, side)
        os.makedirs(own, exist_ok=True)
        source = os.path.join(own, "prices.c")
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        paths.append(compile_to(os.path.join(own, "prices"), source, *flags))
    numbers = os.path.join(folder, "numbers")
    with open(numbers, "w", encoding="utf-8") as file:
        file.write("200\n600\n200\n")
    said = tbdtest.run([REGRESSION] + paths + [numbers], env={"TBD": tbdtest.TBD, "TBDQ": tbdtest.TBDQ})
    assert said.code == 0 and said.out.decode().strip() == "prices.c:%d" % line, (name, flags, said)
    return tbdtest.run([REGRESSION, paths[0], paths[0], numbers], env={"TBD": tbdtest.TBD, "TBDQ": tbdtest.TBDQ})


def test_a_changed_line_is_to_blame(folder):
    names = list(CHANGES) if tbdtest.LONG else ["constant", "inserted"]
    for name in names:
        same = blame(os.path.join(folder, "O0"), name)
        assert same.code == 1 and same.out == b"", same
    if tbdtest.LONG:
        blame(os.path.join(folder, "O2"), "bound", "-O2")


WEIGHTS = """#include <stdio.h>
static int weight(int c)
{
    return c >= 'a' ? c - 'a' + 1 : 30; /* planted */
}
int main(void)
{
    int c, sum = 0;
    while ((c = getchar()) != EOF)
        sum += weight(c);
    printf("%d\\n", sum);
    return 0;
}
"""


def test_output_differs_where_no_branch_does(folder):
    """Two builds, and two inputs, that only calculate other values: the call that writes them, and where they come from."""
    source, paths = os.path.join(folder, "weights.c"), []
    for side, text in (("good", WEIGHTS), ("bad", WEIGHTS.replace("'a' + 1", "'a'"))):
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        paths.append(compile_to(os.path.join(folder, side, "weights"), source))
    line = "weights.c:%d" % next(number for number, text in enumerate(WEIGHTS.splitlines(), 1) if "planted" in text)
    numbers = os.path.join(folder, "numbers")
    with open(numbers, "wb") as file:
        file.write(b"hello world")
    for one, other, code, out in ((*paths, 0, line), (paths[0], paths[0], 1, "")):
        said = tbdtest.run([REGRESSION, one, other, numbers], env={"TBD": tbdtest.TBD, "TBDQ": tbdtest.TBDQ})
        assert (said.code, said.out.decode().strip()) == (code, out), said
    a, b = (tbdtest.record([paths[0]], os.path.join(folder, name), stdin=text)[1] for name, text in (("a", b"hello world"), ("b", b"hellp world")))
    found = first_of(ask(a, b, "--ignore", "libc"))
    assert found["how"] == "output" and found["byte"] == 2 and found["origin"] == "input" and "from number 4 of" in found["cause"], found
    assert all("write" in found[side]["branch"]["function"] for side in "ab"), found
    text = a.tbdq("diff", a.path, b.path, "--ignore", "libc", "--brief", json_output=False)
    assert b"all steps are equal\nthey give out other bytes, from number 2 of the call" in text.out, text


def test_counts_and_text(folder):
    path = compile_to(os.path.join(folder, "pairs"), SOURCE)
    a, b = (one_run(path, os.path.join(folder, side), "recursion", text) for side, text in (("a", "5"), ("b", "9")))
    counts = {row["name"]: (row["a"], row["b"]) for row in ask(a, b) if row["type"] == "count"}
    assert counts["depth"] == (6, 10), counts
    assert counts[planted("recursion")] == (6, 10), counts
    text = a.tbdq("diff", a.path, b.path, json_output=False)
    assert re.search(rb"thread 1: \d+ equal steps\nthey part at the branch\n  A ", text.out), text
    assert b"depth(n=0)   in B: depth(n=4)" in text.out, text
    several = [row for row in ask(a, b, "--max", "3", "--brief") if row["type"] == "difference"]
    assert len(several) >= 1 and "why" not in several[0], several
    for words, message in (([], b"two traces"), ([a.path], b"two traces"), ([a.path, b.path, "--max", "0"], b"two traces"),
                           ([a.path, b.path, "--nosuch"], b"two traces"), ([a.path, "/nosuch"], b"/nosuch")):
        answer = a.tbdq("diff", *words, json_output=False)
        assert answer.code in (2, 3) and message in answer.err, (words, answer)


if __name__ == "__main__":
    tbdtest.main(test_pairs_part_at_the_planted_branch, test_chance_is_named_and_passed_over, test_a_changed_line_is_to_blame,
                 test_output_differs_where_no_branch_does, test_counts_and_text)
