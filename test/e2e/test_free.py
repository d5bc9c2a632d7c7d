#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Free run: threads at the same time, the kernel's own system calls; native results (test/programs again with --free).  With
mode=crash, dumps of what the threads of a program that died ran last."""
import glob
import json
import os
import signal
import sys

import run_program
import tbdtest
import test_rows


def same_as_native(argv, folder, options="mode=free", **how):
    env = tbdtest.trace_env(folder, options)
    native, free = tbdtest.run(argv, **how), tbdtest.run(argv, env=env, **how)
    tbdtest.same(native, free)
    assert not os.listdir(folder), os.listdir(folder)
    return free


def test_programs_of_others(folder):
    """A shell with pipes and its children, and an interpreter with threads that load, compile and collect."""
    work = "import threading, json, re, zlib\n" \
           "def f(n):\n" \
           "    out[n] = zlib.crc32(json.dumps([re.sub('a+', str(i), 'caat') for i in range(200)]).encode()) + n\n" \
           "out = {}\n" \
           "threads = [threading.Thread(target=f, args=(n,)) for n in range(12)]\n" \
           "[t.start() for t in threads]; [t.join() for t in threads]; print(sorted(out.items()))\n"
    same_as_native([sys.executable, "-c", work], folder)
    same_as_native(["/bin/sh", "-c", "for i in 1 2 3; do echo $i | cat | sed s/1/x/; done; (exit 7); echo $?; kill -TERM $$"], folder)


# ---- mode=crash ----

def crash(argv, root, **how):
    """Runs with rings; the result is the native one."""
    os.makedirs(root, exist_ok=True)
    native, result = tbdtest.run(argv, **how), tbdtest.run(argv, env=tbdtest.trace_env(root, "mode=crash"), **how)
    tbdtest.same(native, result)
    tbdtest.wait_organizers(root)
    return result


def dumps(root):
    found = sorted(os.path.dirname(path) for path in glob.glob(root + "/*/crash") if "/latest/" not in path)
    assert len(found) == len(set(os.listdir(root)) - {"latest", ".modules"}), os.listdir(root)
    return found


def path_and_end(dump, *words):
    result = tbdtest.run([tbdtest.TBDQ, "-t", dump, "--json", "path", *words])
    assert result.code == 0 and not result.err, result
    end, *rows = [json.loads(line) for line in result.out.splitlines()]
    test_rows.check_object("path", test_rows.documented()["path"], end)
    return end, rows


def path(dump, *words):
    return path_and_end(dump, *words)[1]


def check_end(end, trace, code):
    """The signal, its siginfo, and all registers are those of the full recording."""
    last = trace.one("goto", "last")
    for key in ("signal", "reason", "addr", "module", "function"):
        assert end.get(key) == last.get(key), (key, end, last)
    assert end["signal"] == signal.Signals(-code).name and end["regs"]["rip"] == end["pc"], end
    done = {"SIGABRT": 2, "SIGTRAP": 1}.get(end["signal"])  # the system call or int3 has been executed
    if done:
        assert int(end["pc"], 16) in (int(last["pc"], 16), int(last["pc"], 16) + done), (end, last)
        return
    assert (end["pc"], end["function_offset"], end["line"]) == (last["pc"], last["function_offset"], last["line"]), (end, last)
    regs = trace.one("regs", at="last")
    for name, value in end["regs"].items():
        value, expected = int(value, 16), int(regs[name], 16)
        if name == "rflags":
            value &= ~0x10000  # RF, which the processor sets for the fault's handler
        assert value == expected or (value, expected) == (end["thread"], regs["thread"]), (name, end, regs)


def test_a_ring_ends_as_a_full_recording_does(folder):
    """Block by block; and it is the newest dump, whoever is asked."""
    for name, code in (("die_segv", -11), ("die_abort", -6), ("die_deep", -11), ("die_fpe", -8), ("die_int3", -5)):
        argv, root = tbdtest.fixed([tbdtest.program(name)]), os.path.join(folder, name)
        # the environments of both runs are equally long, so that addresses on the stack, and flags that come from them, are the same
        assert len("mode=crash" + "rings") == len("mode=traced" + "full")
        result = crash(argv, os.path.join(root, "rings"))
        assert result.code == code, result
        end, rows = path_and_end(*dumps(os.path.join(root, "rings")), "12", "blocks", "regs")
        _, trace = tbdtest.record(argv, os.path.join(root, "full"), "mode=traced")
        trace = next(t for t in tbdtest.traces(os.path.join(root, "full")) if os.path.basename(t.path).startswith(name))
        entries = trace.script("goto last backward block_entry %d" % n for n in range(1, 13))
        for n, [entry] in enumerate(entries, 1):
            expected = entry["pc"]
            assert rows[-n]["pc"] == expected and rows[-n]["back"] == "-%d" % n and rows[-n]["blocks"] == 1, (name, n, expected, rows[-n])
        if name == "die_deep":  # where the stack ends depends on the environment's length; it is its end that faults
            assert end["function"] == "down" and abs(int(end["addr"], 16) - int(end["regs"]["rsp"], 16)) <= 16, end
        else:
            check_end(end, trace, code)
        if name == "die_segv":  # it stores through the pointer 0x18
            assert (end["reason"], end["addr"], end["function"], end["line"]) == ("SEGV_MAPERR", "0x18", "damage", 10), end
            assert "0x18" in [value for key, value in end["regs"].items() if key != "rip"], end
    newest = tbdtest.run([tbdtest.TBDQ, "path", "5"], env=tbdtest.clean_env({"TBD_DIR": os.path.join(folder, "die_segv", "rings")}))
    assert newest.code == 0 and b"die_segv.c:10" in newest.out.splitlines()[-1] and b"damage" in newest.out, newest
    assert len(newest.out.splitlines()) == 7 and b"SIGSEGV  reason SEGV_MAPERR  addr 0x18  at 0x" in newest.out.splitlines()[0], newest


DIE = "#include <signal.h>\n__attribute__((destructor)) static void die(void) { signal(SIGSEGV, SIG_DFL); *(volatile int *)8 = 1; }\n"
# exceptions, dlopen, thread-local storage; others, some of which test_rings.py compares with single-stepped runs
PROVEN = ["thrown", "dl", "tls"]
PROVEN_LONG = ["long_jumps", "recursion", "generated", "self_modifying", "rep", "exceptions", "unwinding", "funcptr", "strings"]
FURTHEST = 64 * 15  # bytes from a block's start to what follows it


def go_straight_on(starts, n):
    return n > 0 and 0 < starts[n] - starts[n - 1] < FURTHEST


def compare_ends(ring, full):
    """How many blocks are the same, from the end on.  An instruction that the engine executes ends a block in one mode only: there
    the other has a block more, which goes straight on from the one before it."""
    i, j, same = len(ring) - 1, len(full) - 1, 0
    while i >= 0 and j >= 0:
        if ring[i] == full[j]:
            i, j, same = i - 1, j - 1, same + 1
        elif full[j] > ring[i] and go_straight_on(full, j):
            j -= 1
        else:
            assert ring[i] > full[j] and go_straight_on(ring, i), (same, hex(ring[i]), hex(full[j]))
            i -= 1
    return same


def test_whole_rings_are_the_ends_of_full_recordings(folder):
    """Of programs that die when they have done their work: all of the ring, not only its end."""
    library = os.path.join(folder, "die.so")
    source = os.path.join(folder, "die.c")
    with open(source, "w", encoding="ascii") as f:
        f.write(DIE)
    assert tbdtest.run(["cc", "-shared", "-fPIC", "-o", library, source]).code == 0
    for name in PROVEN + (PROVEN_LONG if tbdtest.LONG else []):
        argv = tbdtest.fixed([tbdtest.program(name)])
        places = {"mode=crash": os.path.join(folder, name, "rings"), "mode=traced": os.path.join(folder, name, "full")}
        for mode, root in places.items():
            os.makedirs(root)
            env = tbdtest.trace_env(root, mode)
            env["LD_PRELOAD"] += ":" + library
            result = tbdtest.run(argv, env=env)
            assert result.code == -11, (name, mode, result)
            tbdtest.wait_organizers(root)
        end, rows = path_and_end(os.path.join(places["mode=crash"], name + "-1"), "100000", "blocks")
        ring = [int(row["pc"], 16) for row in rows if row["thread"] == end["thread"] for _ in range(row["blocks"])]
        words = ["-t", os.path.join(places["mode=traced"], name + "-1"), "--json", "all", "block_entry"]
        entries = [json.loads(line) for line in tbdtest.run([tbdtest.TBDQ, *words]).out.splitlines()]
        # what may not be executed is entered, but has no instruction that a path could list
        full = [int(row["pc"], 16) for row in entries if row["thread"] == entries[-1]["thread"] and row["text"]]
        same = compare_ends(ring, full)
        assert same > 1000 and same == len(ring), (name, same, len(ring), len(full))


def test_a_killed_program_leaves_its_rings(folder):
    """Those of threads that never left translated code as well, with more blocks than a ring holds."""
    process = tbdtest.kill_spinning(folder)
    end, rows = path_and_end(*dumps(folder), "2", "regs")
    assert set(end) == {"type", "pid"} and end["pid"] == process.pid, end
    threads = {row["thread"] for row in rows}
    spinning = {row["thread"] for row in rows if row.get("function", "").endswith("!spin")}
    assert len(threads) == 4 and len(spinning) == 3, rows
    everything = path(*dumps(folder), "100000", "blocks")
    for thread in spinning:
        assert sum(row["thread"] == thread for row in everything) > 60000


def test_the_thread_that_dies_comes_last(folder):
    assert crash([tbdtest.program("thread_dies")], folder).code == -11
    end, rows = path_and_end(*dumps(folder), "3")
    assert end["thread"] == rows[-1]["thread"] and end["function"] == "die" and "regs" not in end, (end, rows)
    assert rows[-1]["function"] == "thread_dies!die" and rows[-1]["source"] == "thread_dies.c:24", rows
    assert len({row["thread"] for row in rows}) >= 3, rows


def test_each_process_has_its_own_rings(folder):
    """A forked child and a program that was executed; whoever ends by itself leaves nothing."""
    shell = "%s; %s x & wait $!; exit 0" % (tbdtest.program("stores"), tbdtest.program("die_segv"))
    crash(["/bin/sh", "-c", shell], folder)
    assert [os.path.basename(dump) for dump in dumps(folder)] == ["die_segv-1"], dumps(folder)
    python = "import os\nif os.fork() == 0:\n    os.abort()\nprint(os.wait()[1])"
    crash([sys.executable, "-S", "-c", python], folder + "/forked")
    assert len(dumps(folder + "/forked")) == 1, dumps(folder + "/forked")


def test_a_forked_child_that_is_killed(folder):
    """Its ring has what it ran up to the system call that it waited in, whatever the engine executed in between; who ran nothing leaves none."""
    python = "import os, signal\nr, w = os.pipe()\nchild = os.fork()\nif child == 0:\n    sum(range(1000)); os.write(w, b'x'); signal.pause()\n" \
             "os.read(r, 1)\nwhile open('/proc/%d/syscall' % child).read().split()[0] != '34': pass\n" \
             "os.kill(child, signal.SIGKILL); print(os.wait()[1])"  # 34: it waits in pause()
    crash([sys.executable, "-S", "-c", python], folder)
    dump, = dumps(folder)
    end, rows = path_and_end(dump, "400", "blocks")
    assert set(end) == {"type", "pid"} and rows[-1]["function"].endswith("pause"), (end, rows[-3:])
    assert any("write" in row["function"] for row in rows if "function" in row), rows[:5]
    crash([tbdtest.program("sig_calls")], folder + "/children")
    for dump in dumps(folder + "/children"):
        assert path(dump, "1"), dump


INTO_GUARD = """
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static unsigned long wanted;
static void on_fault(int signo, siginfo_t *info, void *context) {
    (void)signo, (void)context;
    write(1, (unsigned long)info->si_addr == wanted ? "there\\n" : "elsewhere\\n", 6);
    signal(SIGSEGV, SIG_DFL);
}
/* The page after the thread's ring, of which nobody may write a byte. */
int main(void) {
    struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
    unsigned long start, end;
    char line[512], mode[8];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof(line), maps))
        if (sscanf(line, "%lx-%lx %7s", &start, &end, mode) == 3 && strcmp(mode, "---s") == 0)
            wanted = start + 8;
    sigaction(SIGSEGV, &action, NULL);
    if (!wanted)
        return 3;
    *(volatile char *)wanted = 1;
    return 4;
}
"""


def test_a_store_into_the_page_after_a_ring_is_the_program_s_fault(folder):
    """Its handler sees it; then it dies of it, and there is a dump."""
    source, program = os.path.join(folder, "into_guard.c"), os.path.join(folder, "into_guard")
    with open(source, "w", encoding="ascii") as f:
        f.write(INTO_GUARD)
    assert tbdtest.run(["cc", "-O1", "-o", program, source]).code == 0
    root = os.path.join(folder, "traces")
    result = tbdtest.run([program], env=tbdtest.trace_env(root, "mode=crash,ring=256K"), timeout=60)
    assert result.code == -signal.SIGSEGV and result.out == b"there\n", result
    tbdtest.wait_organizers(root)
    assert [row for row in path(dumps(root)[0], "20") if row.get("function", "").endswith("main")]


def test_branches_to_no_address_are_found_by_the_ring(folder):
    """The block that jumped is the ring's last entry, also where the ring has just come round, as it has by chance at some of 140,000."""
    for options in ("mode=crash", "mode=crash,condensed=1M,record=5"):
        root = os.path.join(folder, options)
        os.makedirs(root)
        same_as_native([tbdtest.program("bad_targets"), "20000"], root, options)


def test_what_is_no_dump(folder):
    for words, why in ((["-t", folder, "path"], b"not a crash dump"), (["path"], b"no crash dump")):
        result = tbdtest.run([tbdtest.TBDQ, *words], env=tbdtest.clean_env({"TBD_DIR": folder}))
        assert result.code == 3 and why in result.err, result
    for words in (["0"], ["many"], ["blocks", "insns"], ["from", "3"], ["from"], ["thread", "x"], ["forward"], ["from", "-0"]):
        result = tbdtest.run([tbdtest.TBDQ, "path", *words], env=tbdtest.clean_env({"TBD_DIR": folder}))
        assert result.code == 2, (words, result)


def test_every_program(folder):
    if not tbdtest.LONG:
        raise tbdtest.Skip("for scripts/check --long")
    run_program.check_every("--free", folder)
    for options in ("mode=free", "mode=crash,tables=both,parts=libc.so.6;modules", "mode=crash,condensed=1M"):
        root = os.path.join(folder, options.replace(";", ","))
        os.makedirs(root)
        same_as_native([tbdtest.program("thread_code"), "500"], root, options)


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_") and callable(t)])
