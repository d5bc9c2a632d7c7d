# SPDX-License-Identifier: MIT
"""An answer that had to leave windows out says so in its exit status, in JSON and in a note, and it is not kept.  An answer
that did not need these windows does not."""
import ctypes
import glob
import json
import os
import shutil
import struct

import tbdtest

COMMANDS = ("all store", "stores where size == 8", "calls \"store_*\"", "lines stores.c", "count store by thread", "count load by thread", "history target",
            "first func == main and target > 0", "last func == main and target == 0", "trace first last", "why target", "goto first forward store 100000",
            "goto last backward store where time < 10 then backward store", "first target > 1000", "all load where size == 2", "syscalls", "signals")


def recorded(folder, program="stores", options="window=500,lean=never", args=()):
    return tbdtest.record([tbdtest.program(program), *args], folder, options)[1]


def file_of(trace, window, suffix):
    return glob.glob(os.path.join(trace.path, "windows", "*", "%03d.%s" % (window, suffix)))[0]


def lose(trace, window):
    """Removes everything that is kept of a window; returns a function that brings it back."""
    files = [file for suffix in ("toc", "trace", "blocks") for file in glob.glob(os.path.join(trace.path, "windows", "*", "%03d.%s" % (window, suffix)))]
    for file in files:
        shutil.copy2(file, file + ".whole")
        os.truncate(file, 0)
    return lambda: [os.replace(file + ".whole", file) for file in files]


START, END = 160, 328  # of general registers, in the TOC's section of registers


def diverge(trace, window, register=END + 8 * 12):
    """Another r12 at the window's end than play had, or another one at its start; its events are not kept."""
    try:
        xxhash = ctypes.CDLL("libxxhash.so.0")
    except OSError as error:
        raise tbdtest.Skip("no libxxhash") from error
    for name, arguments in (("XXH3_64bits", [ctypes.c_char_p, ctypes.c_size_t]), ("XXH3_64bits_withSeed", [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64])):
        getattr(xxhash, name).argtypes, getattr(xxhash, name).restype = arguments, ctypes.c_uint64
    assert trace.tbdq("lower", str(window), "2").code == 0
    name = file_of(trace, window, "toc")
    with open(name, "rb") as file:
        data = bytearray(file.read())
    at = struct.unpack_from("<I", data, 16)[0]
    kind, _, size = struct.unpack_from("<IIQ", data, at)
    assert kind == 30 and size == 496, (kind, size)
    data[at + 24 + register] ^= 4
    seed = xxhash.XXH3_64bits(bytes(data[at:at + 16]), 16)
    struct.pack_into("<Q", data, at + 16, xxhash.XXH3_64bits_withSeed(bytes(data[at + 24:at + 24 + size]), size, seed))
    with open(name, "wb") as file:
        file.write(data)


def ask(trace, question, *options):
    """Its objects, what it says it lacks (None: nothing), the result."""
    result = tbdtest.run([tbdtest.TBDQ, "-t", trace.path, "--json", "--at", "last", *options, question], timeout=200)
    found = [json.loads(line) for line in result.out.splitlines()]
    lacks = found.pop() if found and "incomplete" in found[-1] else None
    assert not [row for row in found if "incomplete" in row], (question, result)
    assert (lacks is None) == (b"may be incomplete" not in result.err), (question, result)
    return found, lacks, result


def windows_of(trace):
    return [(w["time"], w["time"] + w["blocks"]) for w in trace.ask("windows")]


def window_at(windows, event):
    return next(i for i, (first, end) in enumerate(windows) if first <= event["time"] < end)


def some(number):
    """All commands at first, then every other one."""
    return COMMANDS[number - 1::2] if number and not tbdtest.LONG else COMMANDS


def ask_whole(trace):
    """The objects of all commands, from one process; nothing is incomplete."""
    answers = trace.script((line for question in COMMANDS for line in ("goto last", question)), options=["--no-cache"], misses=True)[1::2]
    assert not [rows for rows in answers for row in rows if "incomplete" in row], answers
    return dict(zip(COMMANDS, answers))


def test_every_command_says_so(folder):
    trace = recorded(folder)
    windows = windows_of(trace)
    assert len(windows) > 8, windows
    whole = ask_whole(trace)
    told = 0
    for number, lost in enumerate(((3,), (1, 2, 5), tuple(range(len(windows))))):
        undo = [lose(trace, window) for window in lost]
        for question in some(number):
            found, lacks, result = ask(trace, question, "--no-cache")
            assert result.code in (0, 1, 3), (question, result)
            if lacks is None:
                assert result.code == 3 or found == whole[question], (question, lost, result)
                continue
            told += 1
            assert result.code == 3 and lacks["incomplete"] is True and lacks["why"], (question, result)
            assert lacks["windows"] and set(lacks["windows"]) <= set(range(len(windows))) and not lacks["lost_end"], (question, lacks)
            assert result.err.count(b"may be incomplete") == 1, (question, result)
            if question.startswith(("all", "stores", "lines", "syscalls")):
                assert [row for row in found if row.get("found", True)] == [row for row in whole[question] if row in found], (question, lost)
                assert set(lost) & set(lacks["windows"]), (question, lacks)
        for back in undo:
            back()
    assert told > 20, told
    assert ask_whole(trace) == whole


def test_what_lies_behind_the_answer_is_not_missed(folder):
    """Workers look ahead: what they could not read there does not matter."""
    trace = recorded(folder, options="window=200,lean=never")
    windows = windows_of(trace)
    stores = trace.ask("all", "store")
    middle = len(windows) // 2
    lose(trace, middle)
    for n in (1, len(stores) // 8, len(stores) // 4, len(stores) // 2 + 50, len(stores) - 1):
        for start, direction, expected in (("first", "forward", stores[n - 1]), ("last", "backward", stores[-n])):
            window = window_at(windows, expected)
            needs = window >= middle if direction == "forward" else window <= middle
            for workers in ("1", "4"):
                found, lacks, result = ask(trace, "goto %s %s store %d" % (start, direction, n), "-j", workers, "--no-cache")
                assert (lacks is not None) == needs and result.code == (3 if needs else 0), (n, direction, workers, window, middle, result)
                assert needs or found == [expected], (n, direction, found)
                assert not needs or middle in lacks["windows"], lacks


def test_a_window_that_diverges_is_left_out(folder):
    trace = recorded(folder, "many_windows", "window=20000", ["150000"])
    whole, lacks, _ = ask(trace, "count load by thread", "--no-cache")
    assert lacks is None
    last = len(windows_of(trace)) // 2
    diverge(trace, last)
    for workers in ("1", "3"):
        found, lacks, result = ask(trace, "count load by thread", "--no-cache", "-j", workers)
        assert result.code == 3 and lacks["windows"] == [last] and "diverged at" in lacks["why"] and "r12" in lacks["why"], (lacks, result)
        assert 0 < found[0]["count"] < whole[0]["count"], (found, whole)
    result = trace.tbdq("verify")
    summary = json.loads(result.out.splitlines()[-1])
    assert result.code == 1 and summary["divergences"] == 1 and summary["incomplete"] is False, result
    lose(trace, last + 2)
    result = trace.tbdq("verify")
    summary = json.loads(result.out.splitlines()[-1])
    assert result.code == 3 and summary["incomplete"] is True and summary["not_replayed"] >= 1, result


def differing(trace):
    """What `diverge` says: its first row, registers, pages."""
    rows = trace.ask("diverge")
    return rows[0], {row["register"]: row for row in rows if "register" in row}, {row["page"]: row for row in rows if "page" in row}


def test_diverge_tells_all_that_differs_at_a_windows_end(folder):
    trace = recorded(folder)
    whole = trace.tbdq("diverge")
    assert whole.code == 1 and not whole.out, whole
    last = len(windows_of(trace)) - 4
    diverge(trace, last)
    first, registers, pages = differing(trace)
    assert first["window"] == last and "r12" in first["what"] and not pages and set(registers) == {"r12"}, (first, registers, pages)
    assert int(registers["r12"]["play"], 16) ^ int(registers["r12"]["replay"], 16) == 4, registers
    assert trace.tbdq("diverge", str(last - 1)).code == 1 and trace.tbdq("diverge", str(last)).code == 0
    assert trace.tbdq("diverge", "1000").code == 2 and trace.tbdq("diverge", "1", "2").code == 2


def test_diverge_tells_a_page_and_a_message(folder):
    """Another rbx at a window's start is saved on the stack; another rdx leads another way."""
    trace = recorded(os.path.join(folder, "page"))
    window = len(windows_of(trace)) - 3
    diverge(trace, window, START + 8 * 3)
    first, _, pages = differing(trace)
    assert first["window"] == window and "the byte at" in first["what"] and "play" not in first, first
    assert all(len(row["play"]) == len(row["replay"]) and row["play"] != row["replay"] and row["differing"] for row in pages.values()), pages
    assert any(int(row["address"], 16) == int(first["what"].split()[3], 16) for row in pages.values()), (first, pages)
    text = trace.tbdq("diverge", json_output=False).out.decode()
    assert "bytes differ" in text and "    replay   " in text, text


def test_incomplete_answers_are_not_kept(folder):
    trace = recorded(folder, options="window=200,lean=never")
    question = "count store by line"
    whole = ask(trace, question, "--no-cache")[0]
    back = lose(trace, 4)
    for _ in range(2):
        found, lacks, result = ask(trace, question)
        assert lacks["windows"][0] == 4 and found != whole and result.code == 3, (lacks, result)
    back()
    for _ in range(2):
        found, lacks, result = ask(trace, question)
        assert found == whole and lacks is None and result.code == 0, result


def test_scripts_and_texts_say_so(folder):
    trace = recorded(folder)
    lose(trace, 2)
    for lines, code in (("goto first\nassert 1\n", 0), ("count store\necho behind\n", 3), ("- count store\necho behind\n", 3),
                        ("- goto first forward store 100000\necho behind\n", 3), ("goto first\nassert 0\n", 1)):
        script = os.path.join(folder, "script")
        with open(script, "w", encoding="ascii") as out:
            out.write(lines)
        result = tbdtest.run([tbdtest.TBDQ, "-t", trace.path, "-f", script])
        assert result.code == code and b"behind" not in result.out, (lines, result)
    for options in ((), ("--csv",)):
        result = tbdtest.run([tbdtest.TBDQ, "-t", trace.path, *options, "count store"])
        assert result.code == 3 and b"window" in result.err and b"incomplete" not in result.out, result


def test_a_lost_end_is_said(folder):
    """Neither the index nor the files say what came after the last window."""
    trace = recorded(folder, options="window=500,count=now,lean=never")
    windows = windows_of(trace)
    index = os.path.join(trace.path, "index")
    for window in range(len(windows) - 2, len(windows)):
        lose(trace, window)
    os.chmod(index, 0o600)
    os.truncate(index, os.path.getsize(index) // 3)
    found, lacks, result = ask(trace, "count store by thread")
    assert found and result.code == 3 and lacks["lost_end"] is True, (found, result)
    found, lacks, result = ask(trace, "goto first forward store")
    assert found and result.code == 0 and lacks is None, result


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
