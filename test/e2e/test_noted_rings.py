#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Rings against what the program itself writes down, in the same run: the compiler puts a call into each basic block, which notes
where it was called from (test/tools/notes.c).  So threads, signals and whatever else differs between two runs can be compared, too."""
import array
import bisect
import os
import re

import tbdtest

SOURCES = os.path.join(tbdtest.SOURCE, "test", "programs")
NOTES = 1 << 16
RING = "256K"  # 65536 blocks of each thread: several blocks for each note


def attribute(text, key):
    """What "// key: words" of a program's first lines says."""
    return " ".join(re.findall("^// %s:(.*)$" % key, text[:2000], re.MULTILINE)).split()


def build(name, folder):
    """(program, arguments) of test/programs, noting where it is."""
    source = next(path for path in (os.path.join(SOURCES, name + end) for end in (".c", ".cc")) if os.path.exists(path))
    notes, program = os.path.join(folder, "notes.o"), os.path.join(folder, name)
    compiler = tbdtest.need("cc" if source.endswith(".c") else "c++")
    if not os.path.exists(notes):
        made = tbdtest.run([tbdtest.need("cc"), "-O2", "-fPIC", "-c", "-o", notes, os.path.join(tbdtest.SOURCE, "test", "tools", "notes.c")])
        assert made.code == 0, made
    with open(source, encoding="utf-8") as f:
        text = f.read()
    made = tbdtest.run([compiler, "-O2", "-g", "-fsanitize-coverage=trace-pc", "-fno-optimize-sibling-calls", *attribute(text, "flags"), source,
                        notes, "-o", program, "-lpthread", *("-l" + lib for lib in attribute(text, "libs"))])
    assert made.code == 0, made.err
    return program, attribute(text, "args")


def code_of(program):
    """(where a note begins, where it is taken, where the calls return to), as offsets in the file."""
    listing = tbdtest.run([tbdtest.need("objdump"), "-d", "--no-show-raw-insn", program]).out.decode()
    start, noted = (int(re.search(r"^([0-9a-f]+) <%s>:$" % name, listing, re.MULTILINE).group(1), 16)
                    for name in ("__sanitizer_cov_trace_pc", "noted"))
    calls = re.findall(r"\tcall +[0-9a-f]+ <__sanitizer_cov_trace_pc>\n +([0-9a-f]+):|\tcall .*<__sanitizer_cov_trace_pc>\n\n([0-9a-f]+) <",
                       listing)
    return start, noted, sorted(int(one or other, 16) for one, other in calls)


ANYWHERE = 0  # a note of which the ring does not say where: its call is older, or a signal came after the call


def notes_of(rows, code, base):
    """The notes that a thread's ring has; and how many of the last may not have been taken.

    A signal may come between a call and the block that it leads to: that block then follows the end of the handler.  A ring may
    begin in a handler that came between a call and its note."""
    start, noted, returns = code
    found, open_calls, before, unsure = [], [], None, 0
    for row in rows:
        at = int(row["pc"], 16) - base
        for _ in range(row["blocks"]):
            if at == start:  # the block before it ends with the call
                is_call = before is not None and start - 0x100000 < before < returns[-1]
                open_calls.append(returns[bisect.bisect_right(returns, before)] + base if is_call else ANYWHERE)
            elif at == noted:
                found.append(open_calls.pop() if open_calls else ANYWHERE)
                unsure = len(found) if row.get("uncertain") else 0
            before = at
    return found, unsure


def notes_in(path):
    """What the thread has written down, the last NOTES of it at most; and how often in all."""
    words = array.array("Q")
    with open(path, "rb") as f:
        words.frombytes(f.read())
    count = words[0]
    return [words[1 + i % NOTES] for i in range(max(0, count - NOTES), count)], count


def check_thread(who, ring, unsure, path, has_older):
    """All that the ring has, from the end on, and the notes go back to; it has all there is unless it has come round."""
    assert ring.count(ANYWHERE) <= 2 + len(ring) // 1000, (who, ring.count(ANYWHERE))
    truth, count = notes_in(path)
    for left_out in (0, 1) if unsure == len(ring) != 0 else (0,):
        kept = ring[:len(ring) - left_out]
        is_all = len(kept) == count
        kept = kept[max(0, len(kept) - len(truth)):]
        known = truth[len(truth) - len(kept):]
        if all(a in (b, ANYWHERE) for a, b in zip(kept, known)) and len(ring) - left_out <= count and (has_older or is_all):
            return len(kept)
    ours, theirs = ring[::-1], truth[::-1]
    n = next((n for n, (a, b) in enumerate(zip(ours, theirs)) if a not in (b, ANYWHERE)), min(len(ours), len(theirs)))
    raise AssertionError("%s: %d in the ring, %d noted; note %d from the end differs: %s | %s" % (
        who, len(ring), count, n, [hex(place) for place in ours[max(0, n - 3):n + 3]], [hex(place) for place in theirs[max(0, n - 3):n + 3]]))


def check_program(name, folder, condensed=False):
    """How many notes of how many threads were compared."""
    program, arguments = build(name, folder)
    root, notes = os.path.join(folder, name + ".traces"), os.path.join(folder, name + ".notes")
    os.makedirs(root)
    os.makedirs(notes)
    options = "mode=crash,dump=exit,ring=" + RING + (",condensed=4M" if condensed else "")
    env = {**tbdtest.trace_env(root, options), "NOTES_DIR": notes}
    native, result = tbdtest.run([program, *arguments], timeout=60), tbdtest.run([program, *arguments], env=env, timeout=60)
    tbdtest.same(native, result)
    tbdtest.wait_organizers(root)
    code, compared = code_of(program), []
    for trace in (trace for trace in tbdtest.traces(root) if os.path.exists(os.path.join(trace.path, "header"))):
        most = 1 << 19 if condensed else 1 << 24
        _, *rows = trace.ask("path", most, "blocks")
        base = min(int(module["start"], 16) for module in trace.ask("modules") if module["module"] == name) if code[0] < 1 << 20 else 0
        for thread in sorted({row["thread"] for row in rows}):
            own, path = [row for row in rows if row["thread"] == thread], os.path.join(notes, str(thread))
            if os.path.exists(path):
                ring, unsure = notes_of(own, code, base)
                has_older = len(rows) >= most - 1 if condensed else sum(row["blocks"] for row in own) > 60000
                compared.append(check_thread("%s, thread %d" % (name, thread), ring, unsure, path, has_older))
    return compared


# Names made by chance; a thread that outlives the first one; signals at all kinds of instructions, often, and while rings come round.
NOTED = ["same_place", "thread_main_leaves", "sig_insns", "sig_often", "sig_full_rings"]
# Not those whose threads go on natively, and note more, when the dump of a death has been taken.
NOTED_LONG = [
    "threads", "thread_mix", "thread_exit", "thread_cancel", "thread_signals", "thread_locks", "thread_lives", "thread_pipes", "thread_registers",
    "thread_names", "thread_many", "thread_objects", "races", "atomics", "sigstack", "sig_calls", "sig_edits", "sig_random", "sig_waits",
    "sigqueues", "alarm", "segv_repair", "page_faults", "guard_pages", "switches", "frames", "long_jumps", "exceptions", "thrown",
    "unwinding", "dl", "generated", "self_modifying", "tls", "moments", "recursion", "funcptr", "die_segv", "die_abort", "die_deep", "die_fpe",
    "die_handled", "jumps", "views", "containers", "heap", "hot_values", "variables"]


def test_rings_are_what_programs_noted(folder):
    """All threads of each, as far back as their rings go."""
    for name in NOTED + (NOTED_LONG if tbdtest.LONG else []):
        compared = check_program(name, folder)
        assert sum(compared) > 0, (name, compared)
        print("compared: %s: %s notes" % (name, " + ".join(map(str, compared))))


def test_condensed_laps_are_what_programs_noted(folder):
    """The same with the laps before: as far back as the notes go, or half a million blocks."""
    if not tbdtest.LONG:
        raise tbdtest.Skip("for scripts/check --long")
    for name in NOTED + NOTED_LONG:
        compared = check_program(name, folder, True)
        assert sum(compared) > 0, (name, compared)
        print("compared: %s: %s notes" % (name, " + ".join(map(str, compared))))


def handlers_in(rows, name):
    """(the row with which a handler begins, where the thread goes on when it and those that come at once after it have returned)."""
    found, resumed, start = [], None, min(int(row["pc"], 16) for row in rows if row["function"] == name)
    for row, after in zip(rows[-2::-1], rows[:0:-1]):
        if row["function"].endswith("__restore_rt") and int(after["pc"], 16) != start:
            resumed = after["pc"]
        elif int(row["pc"], 16) == start and resumed is not None:
            found.append((row, resumed))
    return found


def test_stacks_under_handlers_that_come_anywhere(folder):
    """Below a handler is what goes on after it, and main is at the end, however often a handler came before that."""
    program, arguments = build("sig_often", folder)
    root = os.path.join(folder, "traces")
    os.makedirs(root)
    env = {**tbdtest.trace_env(root, "mode=crash,dump=exit,ring=" + RING), "NOTES_DIR": folder}
    assert tbdtest.run([program, *arguments], env=env, timeout=60).code == 0
    tbdtest.wait_organizers(root)
    trace, = (trace for trace in tbdtest.traces(root) if os.path.exists(os.path.join(trace.path, "header")))
    _, *rows = trace.ask("path", 1 << 24, "blocks")
    places = [n for n, row in enumerate(rows) if row["function"] == "sig_often!main"]
    begun = handlers_in(rows[places[0]:places[-1]], "sig_often!on_signal")
    assert len(begun) > 10, len(begun)  # a fast processor fills the ring between few
    for (row, resumed), frames in zip(begun, trace.at([row["back"] for row, _ in begun], ["bt"])):
        assert frames[0]["pc"] == row["pc"] and frames[1]["pc"] == resumed, (row, resumed, frames)
        assert [frame.get("function") for frame in frames].count("main") == 1, (row, frames)


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
