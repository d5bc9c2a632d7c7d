#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Searches: what windows, plans, walks and replays find must agree with each other."""
import glob
import os
import random
import re
import shutil
import signal
import subprocess
import time

import tbdtest

# A condition that no summary can decide: nothing is skipped.
ALWAYS_SEARCHED = "(%s) or time==0xffffffffffffffff"


def recorded(folder, name, window):
    """Counted on any machine: what is skipped is seen by the counts."""
    _, trace = tbdtest.record([tbdtest.program(name)], folder, "count=now,window=%d" % window)
    return trace


def fixed(folder, name, window):
    """At fixed addresses, with an environment of fixed length, so that two runs can be compared."""
    setarch = tbdtest.need("setarch")
    with tbdtest.one_processor():
        tbdtest.record([setarch, "-R", tbdtest.program(name)], folder, "window=%07d" % window)
    return tbdtest.find_trace(folder, tbdtest.program(name))


def from_main(trace, question):
    """Events after main was entered, without values: what the loader does, and random bytes, differ between runs."""
    main = trace.one("goto", "first", "forward", "func_enter", 1, "where", "func==main")
    events = trace.ask("all", *question)
    return [(e["time"] - main["time"], e["offset"], e["type"], e["pc"], e.get("addr"), e.get("size"), e["text"])
            for e in events if e["time"] > main["time"]]


def explained(trace, *words):
    """The numbers that --explain gives: (considered, skipped, searched, replayed in full)."""
    result = tbdtest.run([tbdtest.TBDQ, "-t", trace.path, "--explain", *map(str, words)], stdin=None)
    numbers = re.search(rb"windows: (\d+) considered, (\d+) skipped by their summaries, (\d+) searched, (\d+)", result.err)
    assert numbers, result
    return result, tuple(int(n) for n in numbers.groups())


def test_answers_do_not_depend_on_the_windows(folder):
    small, large = fixed(folder + "/small", "stores", 61), fixed(folder + "/large", "stores", 1 << 20)
    assert len(small.ask("windows")) > 50 and len(large.ask("windows")) == 1
    for question in (["func_enter"], ["func_exit"], ["block_entry"], ["store"], ["load"], ["syscall"],
                     ["store", "where", "addr==&target and newval & 1 == 1"],
                     ["store", "where", "touches[&heap_word,8] or mem[&neighbour,8]==40"],
                     ["func_enter", "where", "stack=<**,main,*>"],
                     ["store", "where", "func==main and rsp & 15 == 0"]):
        a, b = from_main(small, question), from_main(large, question)
        assert a and a == b, (question, len(a), len(b), [pair for pair in zip(a, b) if pair[0] != pair[1]][:1])


def test_forward_and_backward_count_alike(folder):
    trace = recorded(folder, "stores", 500)
    for kind in ("func_enter", "func_exit", "block_entry", "store", "load", "syscall"):
        everything = trace.ask("all", kind)
        for n in random.Random(1).sample(range(1, len(everything) + 1), min(6, len(everything))):
            forward = trace.one("goto", "first", "forward", kind, n)
            backward = trace.one("goto", "last", "backward", kind, len(everything) + 1 - n)
            assert forward == everything[n - 1], (forward, everything[n - 1])
            assert backward == everything[n - 1], (backward, everything[n - 1])


def test_plans_leave_no_answer_out(folder):
    trace = recorded(folder, "many_windows", 100000)
    assert len(trace.ask("windows")) > 20
    for kind, where in (("store", "addr==&rare"), ("store", "touches[&marks,4] and newval>2"),
                        ("func_enter", "func==mark"), ("func_enter", "func==mark or func==\"_IO_*\""),
                        ("func_exit", "func==mark and retval!=1"), ("block_entry", "pc==&mark"),
                        ("block_entry", "not module!=libc"), ("load", "addr==&marks"),
                        ("store", "func==mark and not addr==&rare"), ("store", "addr==&rare and time>2000000")):
        planned = trace.count(kind, where)
        assert planned == trace.count(kind, ALWAYS_SEARCHED % where) and planned > 0, (kind, where, planned)


def test_windows_without_an_answer_are_skipped(folder):
    trace = recorded(folder, "many_windows", 100000)
    windows = len(trace.ask("windows"))
    result, numbers = explained(trace, "goto", "last", "backward", "store", 5, "where", "addr==&rare")
    assert result.code == 0 and numbers[1] >= windows // 2 and numbers[2] <= 7 and numbers[3] == 0, numbers
    result, numbers = explained(trace, "goto", "last", "backward", "store", 1, "where", "addr==&mark")
    assert result.code == 1 and numbers == (windows, windows, 0, 0), numbers  # code is never written


def searched(result):
    """The numbers of the windows that were searched, and why others were skipped: (kind, index, summaries)."""
    windows = re.search(rb"searched: ([0-9 ]+|none)", result.err).group(1)
    reasons = re.search(rb"skipped: (\d+) by time or kind of event, (\d+) by the index, (\d+) by their", result.err)
    return [] if windows == b"none" else sorted(map(int, windows.split())), tuple(map(int, reasons.groups()))


def test_the_index_leads_to_the_windows_that_hold_the_answer(folder):
    """Words written at the beginning, in 3 of 2,000 windows, beside a hot one, and never."""
    trace = recorded(folder, "planted", 1500)
    windows = trace.ask("windows")
    assert len(windows) >= 2000, len(windows)
    starts = [w["time"] for w in windows]
    for name, count in (("early", 1), ("thrice", 3), ("page+8", 1), ("never", 0)):
        address = "addr==&page + 8" if name == "page+8" else "addr==&" + name
        result, numbers = explained(trace, "all", "store", "where", address)
        found, reasons = searched(result)
        expected = {max(i for i, start in enumerate(starts) if start <= e["time"])
                    for e in trace.ask("all", "store", "where", ALWAYS_SEARCHED % address)}
        assert len(expected) == count and set(found) == expected, (name, found, expected)
        assert numbers == (len(windows), len(windows) - count, count, 0), (name, numbers)
        assert reasons[2] == 0 and sum(reasons) == len(windows) - count, reasons
    result, numbers = explained(trace, "goto", "last", "backward", "func_enter", 2, "where", "func==plant_thrice")
    assert numbers[2] == 2 and searched(result)[1][2] == 0, result


def test_what_the_index_does_not_cover_is_found_by_the_summaries(folder):
    """Without the index, or with damaged parts of it, the answers are the same."""
    trace = recorded(folder, "planted", 10000)
    parts = sorted(glob.glob(trace.path + "/keys/*"))
    everything = len(trace.ask("windows"))
    # One for 64 windows each; what had been collected when the program ended may have one of its own.
    assert (everything + 63) // 64 <= len(parts) <= (everything + 63) // 64 + 1, (parts, everything)
    question = ("all", "store", "where", "addr==&thrice")
    expected = explained(trace, *question)[0].out
    with open(parts[0], "r+b") as part:
        part.seek(70)
        part.write(b"\xff")
    os.truncate(parts[-1], os.path.getsize(parts[-1]) // 2)
    result, numbers = explained(trace, *question)
    assert result.out == expected and numbers[2] == 3 and searched(result)[1][2] > 0, result
    shutil.rmtree(trace.path + "/keys")
    result, numbers = explained(trace, *question)
    assert result.out == expected and numbers[2] == 3 and searched(result)[1][1] == 0, result


def test_memory_is_the_same_at_every_level(folder):
    """Memory in lowered windows: without a replay if they do not modify it, otherwise with one."""
    trace = recorded(folder, "strings", 3000)
    chance, last = random.Random(9), trace.info()["blocks"] - 1
    stores = [int(e["addr"], 16) for e in trace.ask("all", "store", "where", "time>%d" % (last * 9 // 10))]
    asked = [(chance.randrange(last // 3, last), chance.choice(stores) & ~7) for _ in range(25)]

    def answers():
        results = [trace.tbdq("--at", str(time), "mem", hex(address), "64") for time, address in asked]
        return [(r.code, r.out) for r in results]
    before = answers()
    assert sum(code == 0 for code, _ in before) > 15, before
    assert trace.tbdq("lower", "all", "1").code == 0
    assert {w["level"] for w in trace.ask("windows")} >= {1}
    assert answers() == before


def test_an_interrupted_question_leaves_the_trace_as_it_was(folder):
    trace = recorded(folder, "many_windows", 2000)
    files = {name: os.path.getsize(name) for name in glob.glob(trace.path + "/**", recursive=True)}
    for _ in range(3):
        question = subprocess.Popen([tbdtest.TBDQ, "-t", trace.path, "all", "load", "where", "oldval==99 and size==3"],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=tbdtest.clean_env())
        time.sleep(0.3)
        question.send_signal(signal.SIGINT)
        question.communicate(timeout=60)
    after = {name: os.path.getsize(name) for name in glob.glob(trace.path + "/**", recursive=True)}
    assert {n: s for n, s in after.items() if n in files} == files and not [n for n in after if ".part" in n], after
    result, numbers = explained(trace, "all", "store", "where", "addr==&rare")
    assert result.code == 0 and numbers[2] == 5, result


def damaged(chance, path):
    """One random file of the trace is cut off or gets a bit flipped; returns its name and what makes it whole."""
    name = chance.choice(["header", "index", "blocks", "keys", "toc", "trace", "blocks of a window"])
    pattern = {"keys": "keys/*", "toc": "windows/0/*.toc", "trace": "windows/0/*.trace",
               "blocks of a window": "windows/0/*.blocks"}.get(name, name)
    file = chance.choice(sorted(glob.glob(path + "/" + pattern)))
    with open(file, "rb") as f:
        whole = f.read()
    at = chance.randrange(len(whole))
    bad = whole[:at] if chance.random() < 0.5 else whole[:at] + bytes([whole[at] ^ 1 << chance.randrange(8)]) + whole[at + 1:]
    with open(file, "wb") as f:
        f.write(bad)
    return name, file, whole


def test_damage_costs_only_what_is_damaged(folder):
    trace = recorded(folder, "planted", 25000)
    question = [tbdtest.TBDQ, "-t", trace.path, "all", "store", "where", "addr==&thrice"]
    expected = tbdtest.run(question, stdin=None).out
    lines = expected.splitlines()
    assert len(lines) == 6, expected
    chance, lost = random.Random(5), 0
    for _ in range(400 if tbdtest.LONG else 60):
        name, file, whole = damaged(chance, trace.path)
        result = tbdtest.run(question, stdin=None)
        with open(file, "wb") as f:
            f.write(whole)
        assert result.code in (0, 1, 3), (file, result)
        if result.out != expected:
            lost += 1
            assert name in ("blocks", "index", "toc"), (file, result)
            assert b"tbdq: note: " in result.err or b"tbdq: " in result.err, (file, result)
            assert name == "blocks" or result.out.count(b"\n") >= 4, (file, result)
            assert all(line in lines for line in result.out.splitlines() if b" store " in line), (file, result)
    assert tbdtest.run(question, stdin=None).out == expected
    assert lost < 30, lost


def test_windows_that_the_index_has_lost_come_from_their_own_files(folder):
    trace = recorded(folder, "planted", 25000)
    assert trace.tbdq("lower", "10-60", "1").code == 0 and trace.tbdq("merge", "16-31").code == 0
    kept = ("time", "blocks", "level", "stores")
    whole = [[w[k] for k in kept] for w in trace.ask("windows")]
    with open(trace.path + "/index", "rb") as f:
        index = f.read()
    for size in (0, 70):
        with open(trace.path + "/index", "wb") as f:
            f.write(index[:size])
        found = [[w[k] for k in kept] for w in trace.ask("windows")]
        assert found == whole, (size, [pair for pair in zip(found, whole) if pair[0] != pair[1]][:3], len(found), len(whole))
    with open(trace.path + "/index", "wb") as f:
        f.write(index)
    assert trace.info()["damage"] == []


def test_lists_show_the_values_that_positions_have(folder):
    trace = recorded(folder, "strings", 3000)
    blocks = trace.info()["blocks"]
    where = "time>%d and time<%d" % (blocks // 2, blocks // 2 + 2500)
    for kind in ("store", "load"):
        everything = trace.ask("all", kind, "where", where)
        for n in random.Random(2).sample(range(len(everything)), 12):
            single = trace.one("goto", "first", "forward", kind, n + 1, "where", where)
            assert single == everything[n], (single, everything[n])


def test_a_search_at_one_place_finds_what_a_search_everywhere_does(folder):
    """Stores and their values: at one place, blocks that do not touch it are passed without a look."""
    for name, window in (("strings" if tbdtest.LONG else "stores", 9000), ("sigstack", 2000)):
        trace = recorded(os.path.join(folder, name), name, window)
        stores = [e for e in trace.ask("all", "store") if e["size"] > 0]
        places = random.Random(4).sample(sorted({int(e["addr"], 16) for e in stores}), 3 if tbdtest.LONG else 2)
        for level in (3, 1):
            found = trace.script(["all store where touches[%d,5]" % place for place in places])
            for place, events in zip(places, found):
                wanted = [e for e in stores if place < int(e["addr"], 16) + e["size"] and int(e["addr"], 16) < place + 5]
                assert events == wanted, (name, level, hex(place))
            trace.ask("lower", "all", "1")


def test_conditions_on_values_agree_with_the_values_shown(folder):
    trace = recorded(folder, "stores", 700)
    stores = [e for e in trace.ask("all", "store") if "newval" in e]
    for value in random.Random(3).sample(sorted({int(e["newval"], 16) for e in stores if e["size"] <= 8}), 8):
        found = trace.ask("all", "store", "where", "newval==%d and size<=8" % value)
        assert [tbdtest.position(e) for e in found] == [tbdtest.position(e) for e in stores
                                                        if e["size"] <= 8 and int(e["newval"], 16) == value]
    assert not trace.ask("all", "store", "where", "mem[addr,1] != oldval & 0xff")
    assert not trace.ask("all", "load", "where", "mem[addr,1] != oldval & 0xff")
    assert not trace.ask("all", "func_enter", "where", "rip != pc or rsp != sp or mem[sp,1] != mem[rsp,1]")


def side_by_side(loads):
    """(address, bytes) of loads: pieces of one repeated instruction are one."""
    joined = []
    for event in loads:
        start, size, at = int(event["addr"], 16), event["size"], (event["time"], event["offset"])
        if joined and joined[-1][2] == at and joined[-1][0] + joined[-1][1] == start:
            joined[-1][1] += size
        else:
            joined.append([start, size, at])
    return [(start, size) for start, size, _ in joined]


def test_loads_of_instructions_that_the_engine_executes_are_found(folder):
    """Repeated strings, gathers, memory that other processes may write: the program says what each of them reads."""
    output, trace = tbdtest.record([tbdtest.program("engine_loads")], folder, "window=3000")
    wanted = {}
    for line in output.out.decode().splitlines():
        name, offset, size = line.split()
        wanted.setdefault(name, []).append((int(offset), int(size)))
    assert len(wanted) == 8, output.stdout
    for name, loads in wanted.items():
        base = int(trace.one("print", name[1:] if name[0] == "*" else "&" + name, at="last")["value"].split()[0], 16)
        found = trace.ask("all", "load", "where", "touches[%d,%d]" % (base, max(offset + size for offset, size in loads)))
        assert side_by_side(found) == [(base + offset, size) for offset, size in loads], (name, found)
    trace.verify()


def test_stack_conditions_agree_with_call_stacks(folder):
    trace = recorded(folder, "recursion", 20000)
    blocks, chosen = trace.info()["blocks"], random.Random(4)
    moves = ["goto %d forward %s 1" % (chosen.randrange(blocks // 10, blocks * 9 // 10), kind) for kind in ("func_enter", "store", "func_exit") for _ in range(5)]
    told = trace.script(line for move in moves for line in (move, "bt"))
    patterns = []
    for frames in told[1::2]:
        names = ['"%s"' % f["function"] if f["function"] else "*" for f in reversed(frames)]
        patterns.append(",".join(names if len(names) < 40 else ["*"] * (len(names) - 20) + names[-20:]))
    again = trace.script("%s where stack=<%s>" % pair for pair in zip(moves, patterns, strict=True))
    for pattern, [event], [same] in zip(patterns, told[::2], again, strict=True):
        assert tbdtest.position(same) == tbdtest.position(event), (pattern, event, same)


def test_names_that_mean_nothing_are_refused_before_a_window_is_looked_at(folder):
    trace = recorded(folder, "many_windows", 100000)
    for kind, where in (("func_enter", "func==mark and nope==1"), ("store", "func==mark and nope > 1"), ("line", "func==main and nope"),
                        ("func_enter", "func==mark and i==1")):  # which main has
        result, numbers = explained(trace, "count", kind, "where", where)
        assert result.code == 2 and b"there is no variable '" in result.err and numbers == (0, 0, 0, 0), (where, result)
    for kind, where, name in (("store", "nope==1", b"nope"), ("block_entry", "nosuchname > 1 and time > 5", b"nosuchname"), ("func_enter", "i==1 and ways::nope==2", b"ways::nope")):
        for words in (("goto", "first", "forward", kind, 1), ("count", kind)):
            result, numbers = explained(trace, *words, "where", where)
            assert result.code == 2 and b"there is no variable '%s' in scope" % name in result.err and numbers == (0, 0, 0, 0), (where, result)
    for where, meant in (("func==main and value < 0", b"; events have newval, oldval\n"), ("func==mark and tid == 1", b"; events have thread\n"),
                         ("func==mark and nope == 1", b"in scope\n")):
        result, _ = explained(trace, "count", "store", "where", where)
        assert result.code == 2 and meant in result.err, (where, result)
    for where in ("nope==1 or time >= 0", "not (nope==1) or time >= 0"):  # the other side holds
        assert trace.count("func_enter", where) > 0, where
    assert trace.count("func_enter", "func==mark and (value < 1 or value >= 1)") == trace.count("func_enter", "func==mark") > 0


def test_all_prints_what_goto_prints(folder):
    for program in ("recursion", "threads"):
        trace = recorded(folder, program, 20000)
        for kind in ("func_enter", "func_exit", "line", "block_entry"):
            text = trace.tbdq("all", kind, "where", "time<3000", json_output=False).out
            lines = text.replace(b"\n     ", b"\n\0").split(b"\n")
            rows = [i for i, line in enumerate(lines) if line and not line.startswith(b"\0")]
            for n in (1, 2, len(rows) // 2, len(rows)):
                whole = b"\n".join(lines[rows[n - 1]:(rows + [len(lines) - 1])[n]]).replace(b"\0", b"     ") + b"\n"
                assert trace.tbdq("goto", "first", "forward", kind, n, "where", "time<3000", json_output=False).out == whole, (program, kind, n)


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
