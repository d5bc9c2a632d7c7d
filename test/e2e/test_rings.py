#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the rings of a dump say about the time before its end (mode=crash): instruction by instruction what a native, single-stepped run
executes; positions, stacks, calls, lines and counts as a full recording of the same program has them."""
import bisect
import json
import os

import tbdtest

STEP_PCS = os.path.join(tbdtest.BUILD, "step_pcs")
# By this a program dies when it has done its work, before the linker's destructors: the linker knows one file more in one run.
DIE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
typedef int program(int, char **, char **);
static program *work;
__attribute__((noinline)) static void die(void) { signal(SIGSEGV, SIG_DFL); *(volatile int *)8 = 1; for (;;); }
__attribute__((noreturn)) void exit(int status) { (void)status; die(); for (;;); }
static int work_and_die(int argc, char **argv, char **envp) {
    if (getenv("TBD_STEPS"))
        __asm__ volatile("int3");
    int result = work(argc, argv, envp);
    die();
    return result;
}
int __libc_start_main(program *main, int argc, char **argv, void *init, void *fini, void *rtld_fini, void *end)
{
    int (*start)(program *, int, char **, void *, void *, void *, void *);
    *(void **)&start = dlsym(RTLD_NEXT, "__libc_start_main");
    work = main;
    return start(work_and_die, argc, argv, init, fini, rtld_fini, end);
}
"""
STEPS = 30000000
CONDENSED = "mode=crash,ring=256K,condensed=4M"
MOST_ROWS = 1 << 20  # of a dump, which condensed laps make longer than rings of that size are


def make_die(folder):
    """A library by which a program dies when it has done its work."""
    library, source = os.path.join(folder, "die.so"), os.path.join(folder, "die.c")
    with open(source, "w", encoding="ascii") as f:
        f.write(DIE)
    assert tbdtest.run(["cc", "-shared", "-fPIC", "-o", library, source]).code == 0
    return library


def environments(root, library, options="mode=crash,ring=256K"):
    """That of a run with rings, and a native one of the same length: what is on the stack lies at the same places."""
    rings = tbdtest.trace_env(root, options)
    rings["LD_PRELOAD"] += ":" + library
    rings["LD_BIND_NOW"] = "1"  # or the linker looks for names in libtbd.so too, in one run only
    native = {("XX_PRELOAD" if key == "LD_PRELOAD" else key): value for key, value in rings.items()}
    native["XX_PRELOAD"] = library.rjust(len(rings["LD_PRELOAD"]), "/")
    rings["TBD_STEPX"] = native["TBD_STEPS"] = "1"
    return rings, native


def ring_of(argv, root, env):
    """(dump, [(module, offset, may not have run)]) of the thread that died."""
    os.makedirs(root, exist_ok=True)
    result = tbdtest.run(tbdtest.fixed(argv), env=env)
    assert result.code < 0, result
    tbdtest.wait_organizers(root)
    for name in sorted(os.listdir(root)):
        dump = tbdtest.Trace(os.path.join(root, name))
        if os.path.exists(os.path.join(dump.path, "header")):
            break
    end, *rows = dump.ask("path", MOST_ROWS, "insns")
    modules = sorted((int(m["start"], 16), int(m["end"], 16), m["module"]) for m in dump.ask("modules"))
    unsure = {row["back"].split("+")[0] for row in rows if row.get("uncertain")}
    own = [row for row in rows if row["thread"] == end["thread"]]
    return dump, [(*place(int(row["pc"], 16), modules), row["back"].split("+")[0] in unsure) for row in own]


def place(pc, modules):
    """Independent of where files are mapped; in memory without a file only the place in the page is."""
    at = bisect.bisect_right(modules, (pc, 1 << 64)) - 1
    if at >= 0 and pc < modules[at][1]:
        return modules[at][2], pc - modules[at][0]
    return None, pc % 4096


def stepped(argv, env):
    """[(module, offset)] of a native run, by another program of ours that knows nothing of rings."""
    result = tbdtest.run([STEP_PCS, "3000000", str(STEPS), *argv], env=env)
    if result.code == 77:
        return None
    assert result.code == 0, result
    maps, pcs = result.out.decode().split("\n\n", 1)
    start, files = {}, {}
    for line in maps.splitlines():
        words = line.split()
        if len(words) < 6 or "-" not in words[0]:
            continue
        low, high = (int(word, 16) for word in words[0].split("-"))
        start.setdefault(words[5], low)
        files[words[5]] = high
    modules = sorted((start[path], files[path], os.path.basename(path)) for path in start if path.startswith("/") or path == "[vdso]")
    return [place(int(pc, 16), modules) for pc in pcs.split()]


def main_of(name, ring):
    """Where main begins; 0: the ring does not reach back to it.  Before it the linker knows libtbd.so, in one run only."""
    return max((i for i in range(1, len(ring)) if ring[i][0] == name and ring[i - 1][0] == "die.so"), default=0)


def follows_cpuid(name, ring, i):
    """Is it after a cpuid of the program's own?  Some hypervisors execute that one without a trap, so that a step is two instructions."""
    module, offset, _ = ring[i - 1]
    if i == 0 or module != name:
        return False
    with open(tbdtest.program(name), "rb") as file:
        file.seek(offset)
        return file.read(2) == b"\x0f\xa2" and ring[i][:2] == (name, offset + 2)


def compare(name, ring, native):
    """From the end back to main, or all of the ring.  What may not have run, as the ring says itself, may be missing."""
    i, j = len(ring) - 1, len(native) - 1
    first = main_of(name, ring)
    while i >= first:
        module, offset, unsure = ring[i]
        if j >= 0 and (module, offset) == native[j]:
            j -= 1
        elif not unsure and not follows_cpuid(name, ring, i):
            raise AssertionError("%s: %d of %d from the end: %s %x in the ring, %s in the native run; around: %s | %s" % (
                name, len(ring) - i, len(ring), module, offset, native[j], ring[max(0, i - 6):i + 4], native[max(0, j - 6):j + 4]))
        i -= 1


def check_program(name, folder, library, options):
    argv, root = [tbdtest.program(name)], os.path.join(folder, name + str(len(options)))
    rings, native = environments(root, library, options)
    truth = stepped(argv, native)
    if truth is None:
        return None
    _, ring = ring_of(argv, root, rings)
    compare(name, ring, truth)
    return len(ring) - main_of(name, ring)


# Programs whose rings are the ends of native runs that are stepped, instruction by instruction; and what a ring could get wrong there.
# Others are compared with full recordings (test_free.py) and with what they note themselves, all their threads (test_noted_rings.py).
STEPPED = {
    "die_segv": "calls deep",
    "long_jumps": "longjmp, signals",
    "left_faults": "faults before indirect transfers, whose handlers leave by longjmp",
    "generated": "generated code",
    "sigstack": "signals",
}
STEPPED_LONG = {
    "alignment": "faults",
    "asks_cpu": "special instructions",
    "atomics": "threads",
    "containers": "C++ templates, indirect calls",
    "cpu": "special instructions",
    "cxx_types": "C++ virtual calls",
    "die_fpe": "faults",
    "die_handled": "signals",
    "die_hlt": "faults",
    "die_ud2": "faults",
    "emptied": "memory that goes away",
    "engine_loads": "special instructions",
    "far_loads": "rep, a fault whose handler leaves by longjmp",
    "floating": "floating point",
    "folded": "inlined loops",
    "funcptr": "indirect calls",
    "heap": "allocation",
    "high_regs": "vector registers",
    "hot_values": "loops",
    "inet": "system calls",
    "jumps": "jumps of all kinds",
    "moved_memory": "memory that moves",
    "odd_bytes": "odd instructions",
    "odd_insns": "odd instructions",
    "page_edges": "code at the edge of pages",
    "passed": "C++ calls",
    "reads_mapped": "files in memory",
    "recursion": "deep recursion",
    "rep": "rep",
    "reversed": "rep, backward",
    "self_modifying": "generated code",
    "shared_calls": "system calls",
    "strings": "rep",
}


def test_rings_are_the_ends_of_stepped_runs(folder):
    """Instruction by instruction, all of the ring; in the long form also with the laps before it."""
    assert len(STEPPED) + len(STEPPED_LONG) >= 30
    library = make_die(folder)
    for name in [*STEPPED, *(STEPPED_LONG if tbdtest.LONG else [])]:
        for options in ["mode=crash,ring=256K", *([CONDENSED] if tbdtest.LONG or name == "die_segv" else [])]:
            compared = check_program(name, folder, library, options)
            assert compared is not None and compared > 100, (name, options, compared)
            print("compared: %s, %s: %d instructions" % (name, options, compared))


# ---- what commands answer ----

def both(name, folder, library):
    """The dump and the full recording of runs that do the same, at the same addresses."""
    found = []
    for options in ("mode=crash,ring=2M", "mode=traced"):
        root = os.path.join(folder, name, options.split(",", maxsplit=1)[0])
        os.makedirs(root)
        env = tbdtest.trace_env(root, options)
        env["LD_PRELOAD"] += ":" + library
        env["TBD_PADDING"] = "x" * (100 - len(root) - len(options))
        assert tbdtest.run(tbdtest.fixed([tbdtest.program(name)]), env=env).code == -11
        tbdtest.wait_organizers(root)
        found.append(next(t for t in tbdtest.traces(root) if os.path.basename(t.path).startswith(name)))
    return found


def same_rows(name, function, dump, full, keys=("pc", "nesting", "duration", "caller")):
    """The calls of a function: who calls, how long they take, how they nest, how they end, and the stacks in them."""
    ours, theirs = dump.ask("calls", function), full.ask("calls", function)
    assert ours and len(ours) == len(theirs), (name, function, len(ours), len(theirs))
    for a, b in zip(ours, theirs):
        for key in keys:
            assert a.get(key) == b.get(key), (name, function, key, a, b)
        assert (a["exit"] is None, a.get("left", False)) == (b["exit"] is None, b.get("left", False)), (name, function, a, b)
    chosen = slice(None, None, max(1, len(ours) // 5))
    stacks = [[[(f["pc"], f.get("function"), f.get("line")) for f in frames if not f["inlined"] and (f.get("function") or f.get("frame") == 0)]
               for frames in trace.at([row["position"] for row in rows[chosen]], ["bt"])] for trace, rows in ((dump, ours), (full, theirs))]
    for a, here, there in zip(ours[chosen], *stacks, strict=True):
        assert here and here == there, (name, function, a["position"], here, there)
    return ours


CALLS = {"die_segv": ["damage", "main"]}
CALLS_LONG = {"long_jumps": ["catcher", "faulty", "nested", "sibling"], "thrown": ["sibling", "guarded"]}


def test_a_dump_answers_as_a_recording_does(folder):
    """Calls, stacks and lines of programs with deep recursion, longjmp and exceptions."""
    library = make_die(folder)
    for name, functions in {**CALLS, **(CALLS_LONG if tbdtest.LONG else {})}.items():
        file = name + (".cc" if name == "thrown" else ".c")
        dump, full = both(name, folder, library)
        for function in functions:
            same_rows(name, function, dump, full)
        lines = [[(row["source"], row["pc"]) for row in trace.ask("lines", file)] for trace in (dump, full)]
        begun = len(lines[0])
        if name == "die_segv":  # the line whose instruction faults has begun, too
            assert lines[0].pop() == ("die_segv.c:10", dump.ask("path", 1)[0]["pc"]), lines[0]
        assert lines[0] and lines[0] == lines[1], (name, len(lines[0]), len(lines[1]))
        assert sum(row["count"] for row in dump.ask("count", "line", "by", "line") if row["by"].startswith(file + ":")) == begun


def test_stacks_before_the_end_have_as_many_frames_as_asked(folder):
    tbdtest.record([tbdtest.program("die_deep")], folder, "mode=crash")
    tbdtest.wait_organizers(folder)
    dump = tbdtest.Trace(os.path.join(folder, "latest"))
    whole, some = dump.script(["goto -20", "bt", "bt 3", "bt 99999999"])[1:3]
    assert len(whole) > 100 and some == whole[:3], (len(whole), some)
    result = dump.tbdq("bt", "-20", json_output=False)
    assert result.code == 0
    for words in (["bt", "0"], ["bt", "x"], ["bt", "3", "4"]):
        assert dump.tbdq("--at", "-20", *words).code == 2, words


ENTERED = ["tail_calls"]
ENTERED_LONG = ["long_jumps", "thrown"]
KEYS = {"thrown": ("pc", "nesting", "caller")}  # unwinding takes some blocks more or less, as files lie


def test_a_dump_has_functions_that_jumps_and_signals_enter(folder):
    """Each function as often as in a recording, import stubs and what binds them left out; the program's own ones with callers and ends."""
    library = make_die(folder)
    for name in ENTERED + (ENTERED_LONG if tbdtest.LONG else []):
        dump, full = both(name, folder, library)
        own, theirs = ({row["by"]: row["count"] for row in trace.ask("count", "func_enter", "by", "func")} for trace in (dump, full))
        if sum(own.values()) < sum(theirs.values()):  # the ring has come round
            own, theirs = ({key: n for key, n in counts.items() if key.startswith(name + "!")} for counts in (own, theirs))
        assert own and own == theirs, (name, set(own.items()) ^ set(theirs.items()))
        written = [key.split("!")[1] for key in own if key.startswith(name + "!")]
        for function in [f for f in written if not f.startswith("_") and not f.endswith("tm_clones") and f not in ("main", "frame_dummy")]:
            rows = same_rows(name, function, dump, full, *([KEYS[name]] if name in KEYS else []))
            assert dump.one("goto", function)["position"] == rows[-1]["position"], (name, function)


# ---- tables ----

PHASES = """
#include <stdio.h>
static volatile int total;
#define PHASE(n) __attribute__((noinline)) static void phase_##n(void) { for (int i = 0; i < 40000; i++) if (total++ & 1) total += n; }
PHASE(1) PHASE(2) PHASE(3) PHASE(4)
__attribute__((noinline)) static void only_once(void) { total++; }
int main(void) { phase_3(); only_once(); phase_1(); phase_4(); phase_1(); phase_2(); *(volatile int *)8 = 1; return 0; }
"""


def test_tables_know_what_rings_have_forgotten(folder):
    """Each block once, by its first and by its last entry, over laps of the ring; the ring has the last phase alone."""
    source, binary = os.path.join(folder, "phases.c"), os.path.join(folder, "phases")
    with open(source, "w", encoding="ascii") as f:
        f.write(PHASES)
    assert tbdtest.run(["cc", "-g", "-O1", "-o", binary, source]).code == 0
    for tables in ("none", "both"):
        root = os.path.join(folder, tables)
        assert tbdtest.run([binary], env=tbdtest.trace_env(root, "mode=crash,tables=" + tables)).code == -11
        tbdtest.wait_organizers(root)
    dump = tbdtest.Trace(os.path.join(folder, "none", "latest"))
    assert dump.tbdq("path", "first").code == 1 and {row["function"] for row in dump.ask("path", 30000)[1:]} == {"phases!phase_2", "phases!main"}
    dump = tbdtest.Trace(os.path.join(folder, "both", "latest"))
    order = {}
    for table in ("first", "last"):
        rows = dump.ask("path", 100000, table, "blocks")
        assert len(rows) > 100 and rows == sorted(rows, key=lambda row: row["when"]), rows[:5]
        assert len({row["pc"] for row in rows}) == len(rows) and rows[-1]["back"] == "-1", rows[-3:]
        own = [row["function"].split("!")[1] for row in rows if row.get("function", "").startswith("phases!")]
        order[table] = [name for i, name in enumerate(own) if name.startswith(("phase", "only")) and own.index(name) == i]
        assert dump.ask("path", 3, table, "insns")[-1]["insn"] and dump.tbdq("path", table, json_output=False).out.count(b"\n") == 41
    assert order == {"first": ["phase_3", "only_once", "phase_1", "phase_4", "phase_2"],
                     "last": ["phase_3", "only_once", "phase_4", "phase_1", "phase_2"]}, order
    assert rows[-1]["pc"] == dump.ask("path", 1, "blocks")[-1]["pc"]


# ---- parts ----

RARE = "static volatile int sum;\n__attribute__((noinline)) int rare(int n) { for (int i = 0; i < n; i++) sum += i; return sum; }\n"
OFTEN = """
#include <pthread.h>
static volatile unsigned total;
int rare(int n);
__attribute__((noinline)) static void often(void) { for (int i = 0; i < 6000; i++) if (total++ & 1) total += 3; }
static void *work(void *argument) { for (int i = 0; i < 5; i++) { rare(i); often(); } return argument; }
int main(void)
{
    pthread_t thread;
    for (int n = 0; n < 2; n++) {
        pthread_create(&thread, 0, work, 0);
        pthread_join(thread, 0);
    }
    work(0);
    *(volatile int *)8 = 1;
    return 0;
}
"""


def build_often(folder):
    """A program that is most of the time in itself, and now and then in a library of its own."""
    for name, text in (("rare.c", RARE), ("often.c", OFTEN)):
        with open(os.path.join(folder, name), "w", encoding="ascii") as f:
            f.write(text)
    library, program = os.path.join(folder, "librare.so"), os.path.join(folder, "often")
    assert tbdtest.run(["cc", "-g", "-O1", "-shared", "-fPIC", "-o", library, os.path.join(folder, "rare.c")]).code == 0
    made = tbdtest.run(["cc", "-g", "-O1", "-pthread", "-o", program, os.path.join(folder, "often.c"), library, "-Wl,-rpath," + folder])
    assert made.code == 0, made
    return program


def by_thread(rows):
    """The entries of each thread, the thread that is younger later."""
    found = {}
    for row in rows:
        found.setdefault(row["thread"], []).extend([int(row["pc"], 16)] * row["blocks"])
    return [found[thread] for thread in sorted(found)]


def entered_modules(entries, modules):
    return [pc for i, pc in enumerate(entries) if i == 0 or place(pc, modules)[0] != place(entries[i - 1], modules)[0]]


def test_parts_are_kept_longer_than_rings(folder):
    """Of a module, and where modules are entered: as in rings that are long enough for everything."""
    program = build_often(folder)
    dumps = []
    for number, options in enumerate(("ring=4M", "ring=256K,parts=librare.so 64K;modules;libnone.so 4M;work();none()")):
        root = os.path.join(folder, str(number))
        result = tbdtest.run(tbdtest.fixed([program]), env=tbdtest.trace_env(root, "mode=crash," + options))
        assert result.code == -11 and (not result.err or number and b"has code of these parts; they wait: none()\n" in result.err), result
        tbdtest.wait_organizers(root)
        dumps.append(tbdtest.Trace(os.path.join(root, "latest")))
    whole, parts = dumps
    modules = sorted((int(m["start"], 16), int(m["end"], 16), m["module"]) for m in whole.ask("modules"))
    everything = whole.ask("path", 1 << 24, "blocks")[1:]
    entries = by_thread(everything)
    assert len(entries) == 3 or len(entries) == 2, len(entries)  # the second thread may have the first one's ring
    kept = by_thread(parts.ask("path", 1 << 24, "blocks", "part", "librare.so"))
    entered = by_thread(parts.ask("path", 1 << 24, "blocks", "part", "modules"))
    assert len(kept) == len(entered) == 3 and sum(map(len, kept)) > 60, [len(k) for k in kept]
    for n in (0, -1):
        own = [pc for pc in entries[n] if place(pc, modules)[0] == "librare.so"]
        assert kept[n] == own, (n, len(kept[n]), len(own))
    assert kept[1] == kept[2] or kept[1] == kept[0], "the threads do the same"
    work = by_thread(parts.ask("path", 1 << 24, "blocks", "part", "work()"))
    of_work = by_thread([row for row in everything if row.get("function") == "often!work"])
    assert len(work) == 3 and [work[0], work[-1]] == [of_work[0], of_work[-1]] and len(work[0]) > 10, [len(w) for w in work]
    assert entered[0][-20:] == entered_modules(entries[0], modules)[-20:], entered[0][-20:]
    rows = parts.ask("path", 1 << 24, "parts")
    assert rows == sorted(rows, key=lambda row: row["when"]) and {row["part"] for row in rows} == {"librare.so", "modules", "work()"}
    assert {row["source"] for row in rows if row["part"] == "librare.so" and row["function"].endswith("!rare")} == {"rare.c:2"}
    assert b"librare.so" in parts.tbdq("path", "5", "part", "librare.so", json_output=False).out
    for words, code in ((["part", "libnone.so"], 1), (["part", "other"], 1), (["part"], 2), (["parts", "last"], 2), (["parts", "fold"], 2)):
        assert parts.tbdq("path", *words).code == code, words
    assert whole.tbdq("path", "parts").code == 1
    for dump, part, said in ((whole, "work()", b"no part of the program had a ring of its own\nhint: tbd crash --parts="),
                             (parts, "none()", b"nothing of none() ran\nhint: these had: "),
                             (parts, "other", b"'other' had no ring of its own\nhint: these had: ")):
        result = dump.tbdq("path", "part", part)
        assert said in result.err and (dump is whole or b"librare.so" in result.err), (part, result)


def test_source_files_are_parts(folder):
    """What was compiled from a file, wherever it lies; it is more than its module."""
    program, dumps = build_often(folder), []
    for number, options in enumerate(("ring=4M", "ring=256K,parts=rare.c 64K;librare.so 64K;none.c 4M;some/often.c 4M")):
        root = os.path.join(folder, str(number))
        result = tbdtest.run(tbdtest.fixed([program]), env=tbdtest.trace_env(root, "mode=crash," + options))
        assert result.code == -11, result
        assert not number or b"has code of these parts; they wait: none.c; some/often.c\n" in result.err, result
        tbdtest.wait_organizers(root)
        dumps.append(tbdtest.Trace(os.path.join(root, "latest")))
    whole, parts = dumps
    rare = by_thread([row for row in whole.ask("path", 1 << 24, "blocks")[1:] if row.get("function") == "librare.so!rare"])
    kept = by_thread(parts.ask("path", 1 << 24, "blocks", "part", "rare.c"))
    assert len(kept) == 3 and [kept[0], kept[-1]] == [rare[0], rare[-1]] and len(rare[0]) > 10, (len(kept), list(map(len, kept)), list(map(len, rare)))
    rows = parts.ask("path", 1 << 24, "parts")
    assert not [row for row in rows if row["part"] == "librare.so" and row["function"].endswith("!rare")]
    assert {row["part"] for row in rows} <= {"rare.c", "librare.so"}, {row["part"] for row in rows}


def test_libraries_are_parts_by_the_names_of_their_links(folder):
    """A program loads librare.so.1; the kernel knows the file that the link leads to: librare.so.1.2."""
    build_often(folder)
    whole, link, program = (os.path.join(folder, name) for name in ("librare.so.1.2", "librare.so.1", "often"))
    made = tbdtest.run(["cc", "-g", "-O1", "-shared", "-fPIC", "-Wl,-soname,librare.so.1", "-o", whole, os.path.join(folder, "rare.c")])
    assert made.code == 0, made
    os.symlink("librare.so.1.2", link)
    made = tbdtest.run(["cc", "-g", "-O1", "-pthread", "-o", program, os.path.join(folder, "often.c"), link, "-Wl,-rpath," + folder])
    assert made.code == 0, made
    for part, is_one in (("librare.so.1", True), ("librare.so", True), ("librare.so.1.2", True), ("librare.so.2", False), ("librare.so.1.", False),
                         ("librare", False)):
        root = os.path.join(folder, "of " + part)
        result = tbdtest.run(tbdtest.fixed([program]), env=tbdtest.trace_env(root, "mode=crash,parts=" + part))
        assert result.code == -11 and not result.err, result
        tbdtest.wait_organizers(root)
        dump = tbdtest.Trace(os.path.join(root, "latest"))
        if not is_one:
            assert dump.tbdq("path", "part", part).code == 1, part
            continue
        rows = dump.ask("path", 1 << 24, "blocks", "part", part)
        assert rows and {row["function"].partition("!")[0] for row in rows} == {"librare.so.1.2"}, (part, rows[:3])
        if part == "librare.so.1":  # elsewhere, too
            root += "trigger"
            result = tbdtest.run([program], env=tbdtest.trace_env(root, "mode=crash,trigger=librare.so.1!rare"))
            tbdtest.wait_organizers(root)
            assert not result.err and [t.info()["end"].startswith("detached") for t in tbdtest.traces(root)] == [True, False], result


AT_ONCE = """
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
int rare(int n);
static volatile unsigned totals[4];
__attribute__((noinline)) static void often(long n) { for (int i = 0; i < 9000; i++) if (totals[n]++ & 1) totals[n] += 3; }
static void *work(void *argument)
{
    for (long i = 1;; i++) {
        rare(7);
        often((long)argument);
        if (i == 60 && !argument)
            puts("done");
    }
    return argument;
}
int main(void)
{
    pthread_t thread;
    setlinebuf(stdout);
    for (long n = 0; n < 4; n++)
        pthread_create(&thread, 0, work, (void *)n);
    pause();
}
"""


def test_parts_of_threads_that_run_at_once_and_are_killed(folder):
    """Every call into a library, whole and in order, of each thread, though nobody had a moment to write anything."""
    build_often(folder)
    program, root = os.path.join(folder, "at_once"), os.path.join(folder, "root")
    with open(program + ".c", "w", encoding="ascii") as f:
        f.write(AT_ONCE)
    made = tbdtest.run(["cc", "-g", "-O1", "-pthread", "-o", program, program + ".c", os.path.join(folder, "librare.so"), "-Wl,-rpath," + folder])
    assert made.code == 0, made
    process = tbdtest.start([program], root, "mode=crash,parts=librare.so 4M;modules 4M;often() 64K")
    assert process.stdout.readline() == b"done\n"
    process.kill()
    process.communicate(timeout=60)
    tbdtest.wait_organizers(root)
    dump = tbdtest.find_trace(root, program)
    kept = [entries for entries in by_thread(dump.ask("path", 1 << 24, "blocks", "part", "librare.so")) if len(entries) > 20]
    period = kept[0].index(kept[0][0], 1) if kept else 0
    assert kept and len(kept[0]) >= 60 * period and period > 5, [len(entries) for entries in kept]
    for entries in kept:  # each call of rare(7) is the same
        assert all(entry == kept[0][i % period] for i, entry in enumerate(entries)), entries[:20]
    names = {}
    for row in dump.ask("path", 1 << 24, "blocks", "part", "modules"):
        names.setdefault(row["thread"], []).append(row["function"].split("!")[0])
    assert all(one != other for own in names.values() for one, other in zip(own, own[1:])), names
    assert sum(own.count("librare.so") for own in names.values()) >= sum(len(entries) // period for entries in kept)
    often = dump.ask("path", 1 << 24, "blocks", "part", "often()")
    assert sum(row["blocks"] for row in often) == 4096 and {row["function"] for row in often} == {"at_once!often"}, len(often)


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
