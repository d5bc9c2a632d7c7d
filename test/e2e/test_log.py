#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`tbdq log` prints what the program itself printed at the same places."""
import os

import tbdtest

SOURCE = os.path.join(tbdtest.SOURCE, "test/programs/logged.c")
PLACES = ["insert", "enter %+05d %.2f", "key", "weight", "also", "logged.c:%d", "line %s %d", "item->name", "item->key", "also",
          "insert:return", "leave %ld", "retval"]


def places():
    with open(SOURCE, encoding="utf-8") as source:
        line = next(number for number, text in enumerate(source, 1) if "log here" in text)
    return [word % line if word.startswith("logged.c") else word for word in PLACES]


def record(folder, *flags):
    path = os.path.join(folder, "logged")
    compiled = tbdtest.run([tbdtest.need("cc"), "-g", *flags, SOURCE, "-o", path])
    assert compiled.code == 0, compiled
    return tbdtest.record([path], folder, "window=2000")


def test_several_places_in_order_are_what_the_program_printed(folder):
    for flags in (["-O0"], ["-O2"]):
        own = os.path.join(folder, flags[0])
        os.makedirs(own)
        result, trace = record(own, *flags)
        answer = trace.tbdq("log", *places(), json_output=False)
        assert answer.code == 0, answer
        lines = [line[16:] for line in answer.out.decode().splitlines()]
        assert lines == result.out.decode().splitlines(), (flags, lines[:9])
        rows = trace.ask("log", *places())
        assert [row["text"] for row in rows] == lines
        times = [(row["time"], row["offset"]) for row in rows]
        assert times == sorted(times), times


def test_conditions_arrays_and_stores(folder):
    _, trace = record(folder, "-O0")
    line = places()[5]
    rows = trace.ask("log", line, "where", "key > 800", "%.3s|%s|%p", "item->tag", "item->tag", "item")
    assert len(rows) == sum(7 * i - 500 > 800 for i in range(200)) and all(row["text"].startswith("123|12345678|0x") for row in rows)
    rows = trace.ask("log", "store of head", "%p", "newval")
    assert len(rows) == 200 and len({row["text"] for row in rows}) == 200


def test_what_is_wrong_is_said(folder):
    _, trace = record(folder, "-O0")
    for words, message in ((["insert", "%d"], b"more conversions"), (["insert", "x", "key"], b"fewer conversions"),
                           (["insert", "%n", "key"], b"unknown conversion"), (["insert", "%*d", "key"], b"unknown conversion"),
                           (["insert", "%1000d", "key"], b"two digits"), (["insert", "%d", "nosuch"], b"no variable 'nosuch'"),
                           (["nosuch", "x"], b"nosuch"), (["insert", "%s", "key"], b"not a string"), ([], b"takes a place")):
        answer = trace.tbdq("log", *words, json_output=False)
        assert answer.code == 2 and message in answer.err, (words, answer)


if __name__ == "__main__":
    tbdtest.main(test_several_places_in_order_are_what_the_program_printed, test_conditions_arrays_and_stores,
                 test_what_is_wrong_is_said)
