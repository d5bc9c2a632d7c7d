#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`path merged`: what all threads of a dump ran, in one order.  Programs hand work from thread to thread and print in which order they had it
(test/programs/hand_over.c): the view never contradicts that, and where system calls hand the work over, it is the same."""
import os
import signal

import tbdtest

PROGRAM = tbdtest.program("hand_over")
ALL = 1 << 24


def dump(folder, *words, options="mode=crash"):
    """(the program's order: thread ids, the dump)"""
    root = os.path.join(folder, "-".join(words) + options.replace(",", "-"))
    result, trace = tbdtest.record([PROGRAM, *words], root, options)
    assert result.code == -signal.SIGABRT, result
    return [int(word) for word in result.out.split()], trace


def merged(trace, *words):
    rows = [row for row in trace.ask("path", "merged", *words) if "group" in row]
    assert all(a["group"] <= b["group"] for a, b in zip(rows, rows[1:])), "groups are out of order"
    for row in rows:
        assert row["thread"] not in row["beside"], row
    return rows


def visits(rows, order):
    """Entries of take_turn(), of which the program has written down the order, the oldest first: (its turn, row)."""
    calls = [row for row in rows if row.get("function", "").endswith("!take_turn")]
    first = min((row["pc"] for row in calls), default=None)
    found, left = [], {}
    for turn, thread in enumerate(order):
        left.setdefault(thread, []).append(turn)
    for row in reversed([row for row in calls if row["pc"] == first]):
        found.append((left[row["thread"]].pop(), row))
    return found[::-1]


def is_known(one, other):
    """Does the view say that the first, which stands above the second, ran before it?"""
    return one["thread"] == other["thread"] or one["thread"] not in other["beside"] or other["thread"] not in one["beside"]


def contradictions(found):
    return [(a, b) for i, (turn, a) in enumerate(found) for later, b in found[i + 1:] if later < turn and is_known(a, b)]


def test_work_that_goes_through_pipes_is_in_the_programs_own_order(folder):
    for options in ("mode=crash", "mode=crash,record=1", "mode=crash,record=9", "mode=crash,condensed=1M"):
        for attempt in range(20):
            order, trace = dump(folder, "pipes", "crash", str(attempt), options=options)
            found = visits(merged(trace, ALL, "blocks"), order)
            assert [turn for turn, _ in found] == list(range(len(order))) and not contradictions(found), (options, found)
            known = [is_known(a, b) for (_, a), (_, b) in zip(found, found[1:])]
            # a row names the threads beside it, not what they ran then: of two that each were late once it does not say more
            if all(known):
                break
        assert all(known) and len(known) == 39, (options, found)
        # as lines, with repeats folded, each turn is there once more
        lines = [row for row in merged(trace, ALL, "fold", "text") if row.get("function", "").endswith("!take_turn")]
        threads = [row["thread"] for i, row in enumerate(lines) if i == 0 or lines[i - 1]["thread"] != row["thread"]]
        assert threads == order, (options, threads, order)
        assert any("turns[done++] = own;" in row["text"] for row in lines), lines[:3]


def test_work_that_goes_by_a_lock_is_never_in_another_order(folder):
    order, trace = dump(folder, "lock", "crash")
    found = visits(merged(trace, ALL, "blocks"), order)
    assert len(found) == len(order) and not contradictions(found), found


def test_what_no_system_call_orders_is_said_to_have_no_order(folder):
    for options in ("mode=crash", "mode=crash,record=9"):
        order, trace = dump(folder, "spins", "crash", options=options)
        rows = merged(trace, 30000, "blocks")
        found = visits(rows, order)
        assert not contradictions(found), (options, found)
        spinning = [row for row in rows if row.get("function", "").endswith("!by_spinning")]
        assert sum(len(row["beside"]) > 0 for row in spinning) > len(spinning) / 2, (options, len(spinning))


def test_a_thread_runs_after_what_started_it_and_before_what_waits_for_its_end(folder):
    order, trace = dump(folder, "pipes", "crash")
    rows = merged(trace, ALL, "blocks")
    for thread in set(order):
        groups = [row["group"] for row in rows if row["thread"] == thread]
        main = [row["group"] for row in rows if row["thread"] not in order]
        assert min(main) < min(groups) and max(groups) < max(main), thread


def test_a_count_is_the_last_rows_and_without_records_nothing_is_known(folder):
    _, trace = dump(folder, "pipes", "crash")
    rows = merged(trace, ALL)
    assert merged(trace, 30) == rows[-30:] and len(rows) > 1000
    table = trace.tbdq("path", "merged", 5, json_output=False)
    assert table.code == 0 and b"group" in table.out and b"beside" in table.out, table
    for words in (("thread", rows[0]["thread"]), ("--values",), ("from", "-9"), ("parts",)):
        refused = trace.tbdq("path", "merged", *words)
        assert refused.code == 2, refused
    _, trace = dump(folder, "pipes", "crash", options="mode=crash,record=0")
    said = trace.tbdq("path", "merged", ALL)
    assert said.code == 0 and b"--record=2" in said.err, said
    assert len({row["group"] for row in merged(trace, ALL)}) == 1


def test_a_program_that_was_killed_has_an_order_too(folder):
    root = os.path.join(folder, "killed")
    os.makedirs(root)
    process = tbdtest.start([PROGRAM, "pipes", "waits"], root, "mode=crash")
    said = b""
    while said.count(b" ") < 40:
        said += os.read(process.stdout.fileno(), 4096)
    process.kill()
    process.wait()
    tbdtest.wait_organizers(root)
    order, trace = [int(word) for word in said.split()], tbdtest.find_trace(root, PROGRAM)
    found = visits(merged(trace, ALL, "blocks"), order)
    assert [turn for turn, _ in found] == list(range(len(order))), found


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_") and callable(t)])
