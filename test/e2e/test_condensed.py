#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Laps of rings that are over and condensed: programs that call eight functions in the order of a generator of numbers, so that the file
itself shows whether an entry is missing, twice, or at the wrong place; in threads, killed at any moment, while rings change their length."""
import array
import json
import os
import random
import signal
import struct
import subprocess
import time

import tbdtest
from test_robust import MemoryGroup

SOURCE = """
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
static __thread volatile unsigned seen;
#define F(n) __attribute__((noinline)) void called_##n(void) { seen += n; if (seen & 1) seen += 2; }
F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7)
static void (*const table[8])(void) = { called_0, called_1, called_2, called_3, called_4, called_5, called_6, called_7 };
static long count;
static void *work(void *first)
{
    uint32_t state = (uint32_t)(uintptr_t)first;
    for (long i = 0; i < count; i++) {
        state ^= state << 13, state ^= state >> 17, state ^= state << 5;
        table[state & 7]();
        for (unsigned n = state >> 29; n; n--)
            seen++;
    }
    return 0;
}
static void on_alarm(int signal) { (void)signal; seen++; }
int main(int argc, char **argv)
{
    pthread_t other[3];
    int threads = atoi(argv[2]);
    count = atol(argv[1]);
    if (argc > 3 && argv[3][0] == 's') {
        signal(SIGALRM, on_alarm);
        ualarm(500, 500);
    }
    for (int i = 0; i < threads; i++)
        pthread_create(&other[i], 0, work, (void *)(uintptr_t)(i + 2));
    write(1, "begun\\n", 6);
    work((void *)1);
    if (argc > 3 && argv[3][0] == 'w') {
        write(1, "waits\\n", 6);
        pause();
    }
    for (int i = 0; i < threads; i++)
        pthread_join(other[i], 0);
    return 3;
}
"""
HEAD, MODULE, BLOCK, THREAD = 400, 288, 24, 32


def make(folder):
    """(program, {address of a function: its number})"""
    source, program = os.path.join(folder, "ordered.c"), os.path.join(folder, "ordered")
    with open(source, "w", encoding="ascii") as f:
        f.write(SOURCE)
    assert tbdtest.run([tbdtest.need("cc"), "-O1", "-no-pie", "-pthread", "-w", "-o", program, source]).code == 0
    names = tbdtest.run([tbdtest.need("nm"), program]).out.decode().split("\n")
    return program, {int(line.split()[0], 16): int(line[-1]) for line in names if " called_" in line}


def threads_of(path):
    """[(there was more, [starts of blocks])] of the file `crash`."""
    with open(os.path.join(path, "crash"), "rb") as f:
        data = f.read()
    modules, blocks, threads = struct.unpack_from("<III", data, 24)
    entries, code, older = (struct.unpack_from("<Q", data, at)[0] for at in (40, 352, 392))
    at = HEAD + modules * MODULE
    starts = [struct.unpack_from("<Q", data, at + i * BLOCK)[0] for i in range(blocks)]
    at += blocks * BLOCK
    end = len(data) - older - code
    ids = array.array("I", data[end - 4 * entries:end])
    found, first = [], 0
    for i in range(threads):
        _, flags, count, older, _ = struct.unpack_from("<IIQQQ", data, at + i * THREAD)
        found.append((flags & 1 or older > 0, [starts[n] for n in ids[first:first + count]]))
        first += count
    assert first == entries
    return found


def numbers(first, count):
    """What the generator gives."""
    state, found = first, []
    for _ in range(count):
        state ^= state << 13 & 0xffffffff
        state ^= state >> 17
        state ^= state << 5 & 0xffffffff
        found.append(state & 7)
    return bytes(found)


TRUTH = [numbers(first, 100000) for first in (1, 2, 3, 4)]
WIDTH = 32


def taps():
    """The powers of the generator's polynomial (Berlekamp and Massey): any 33 numbers in a row are 0, bit by bit, if those are added."""
    bits, now, before, length, shift = [n & 1 for n in TRUTH[0][:4 * WIDTH]], 1, 1, 0, 1
    for n, _ in enumerate(bits):
        if sum(bits[n - k] for k in range(length + 1) if now >> k & 1) & 1 == 0:
            shift += 1
        elif 2 * length <= n:
            now, before, length, shift = now ^ before << shift, now, n + 1 - length, 1
        else:
            now, shift = now ^ before << shift, shift + 1
    assert length == WIDTH
    return [WIDTH - k for k in range(WIDTH + 1) if now >> k & 1]


def broken_at(calls):
    """How many numbers are in order, wherever they begin; None: all."""
    for bit in range(3):
        row = int(calls.translate(bytes(48 + (n >> bit & 1) for n in range(256)))[::-1] or b"0", 2)
        wrong = 0
        for power in TAPS:
            wrong ^= row >> power
        wrong &= (1 << max(0, len(calls) - WIDTH)) - 1
        if wrong:
            return (wrong & -wrong).bit_length() + WIDTH - 1
    return None


TAPS = taps()


def check(path, functions, least=1):
    """Each thread's calls are those of its generator, one after the other; from its first one on, unless the file says that there was
    more.  How many calls there are of each."""
    lengths = []
    for has_older, starts in threads_of(path):
        calls = bytes(functions[start] for start in starts if start in functions)
        assert broken_at(calls) is None, (path, len(calls), broken_at(calls))
        assert has_older or any(calls[:len(truth)] == truth[:len(calls)] for truth in TRUTH), (path, len(calls))
        lengths.append(len(calls))
    assert max(lengths, default=0) >= least, (path, lengths)
    return lengths


def test_the_check_finds_what_it_should(folder):
    del folder
    good = TRUTH[2][5000:9000]
    assert broken_at(good) is None
    for bad in (good[:2000] + good[2001:], good[:2000] + good[1999:], good[:2000] + good[3000:], good[:2000] + good[:2000]):
        assert 1990 < broken_at(bad) < 2040, broken_at(bad)


def dump_in(root):
    tbdtest.wait_organizers(root)
    return next(os.path.join(root, name) for name in sorted(os.listdir(root)) if os.path.exists(os.path.join(root, name, "crash")))


RUNS = ("0", []), ("3", []), ("0", ["signals"])  # threads beside the first, and words
COUNT = 240000  # eight million entries of four threads are all that is expanded
ENDS = {  # options: least calls, of COUNT
    "ring=256K": 1,
    "ring=256K,condensed=2M": COUNT,
    "ring=1M,condensed=4M,tables=both,parts=modules": COUNT,
    "ring=256K,condensed=2M,record=5": COUNT,
    "ring=256K,condensed=1M": COUNT // 2,  # which has forgotten the beginning, or some of it
}


def test_all_that_ran_is_there(folder):
    program, functions = make(folder)
    for number, (options, least) in enumerate(ENDS.items()):
        for threads, words in RUNS if tbdtest.LONG else [RUNS[number % 3]]:
            root = os.path.join(folder, "%d-%s-%d" % (number, threads, len(words)))
            os.makedirs(root)
            env = tbdtest.trace_env(root, "mode=crash,dump=exit," + options)
            env["TBD_PROCESSORS"] = str(1 + number % 2)  # the collector condenses if there are two
            result = tbdtest.run([program, str(COUNT), threads, *words], env=env)
            assert result.code == 3 and result.out == b"begun\n", result
            lengths = check(dump_in(root), functions, least)
            print(options, threads, words, lengths)


def blocks_from(root, back, count, *words):
    """[(entries from the end, address)] of the blocks from there on."""
    result = tbdtest.run([tbdtest.TBDQ, "--json", "path", str(count), "blocks", "from", "-%d" % back, *words], env=tbdtest.clean_env({"TBD_DIR": root}))
    assert result.code == 0, result
    rows = [json.loads(line) for line in result.out.splitlines()]
    return [(-int(row["back"].split("+")[0]), int(row["pc"], 16)) for row in rows if "back" in row], result.err.decode()


def test_all_of_a_long_run_is_there(folder):
    """More entries than anybody holds in memory at once: each stretch of them is what the generator says, and lies where it must."""
    program, functions = make(folder)
    count = 1500000
    result = tbdtest.run([program, str(count), "0"], env=tbdtest.trace_env(folder, "mode=crash,dump=exit,condensed=64M"))
    assert result.code == 3, result
    (has_older, newest), = threads_of(dump_in(folder))
    assert has_older and len(newest) > 2 << 20
    info = tbdtest.run([tbdtest.TBDQ, "--json", "goto", "first"], env=tbdtest.clean_env({"TBD_DIR": folder}))
    oldest = -int(json.loads(info.out.splitlines()[-1])["position"])
    assert oldest > 5 * count and oldest > len(newest) + (4 << 20), (oldest, len(newest))
    chance, truth, last = random.Random(19), numbers(1, count), -1
    places = sorted([chance.randrange(len(newest) + 4000, oldest - 20000) for _ in range(24 if tbdtest.LONG else 1)] +
                    [len(newest) + 4000, len(newest) + (2 << 20) + 1000], reverse=True)
    for back in places:
        rows, _ = blocks_from(folder, back, 3000, "forward")
        assert [row[0] for row in rows] == list(range(back, back - 3000, -1)), (back, rows[:3])
        calls = bytes(functions[pc] for _, pc in rows if pc in functions)
        at = truth.find(calls)
        assert len(calls) > 100 and at > last, (back, len(calls), at, last)
        last = at
        before, _ = blocks_from(folder, back - 2999, 3000)
        assert before == rows, (back, before[:3], rows[:3])
    # the whole is as long as it has to be: the first calls are at its beginning, and the stretch that ends there says so
    rows, said = blocks_from(folder, oldest, 30000, "forward")
    calls = bytes(functions[pc] for _, pc in rows if pc in functions)
    assert len(calls) > 1000 and truth.startswith(calls) and not said, (len(calls), said)
    rows, said = blocks_from(folder, len(newest) - 500, 3000)
    assert len(rows) == 501 and rows[0][0] == len(newest) and "goes on: path from -%d " % (len(newest) + 1) in said, (said, rows[0], len(rows))
    # questions about a stretch say so; where a function is looked for, all is looked through
    for commands, code, out, said in (
            ("goto -%d\ncount block_entry" % (oldest - 100000), 0, "", "count looks at -%d to " % oldest),
            ("goto main\nbt", 0, "main", "the ring does not reach back to it"),
            ("goto main\nregs", None, "", "values are computed for the last"),
            ("goto main\ngoto last\nregs", 0, '"rip"', ""),
            ("goto -%d" % (oldest + 1), None, "", "is not in the ring")):
        result = tbdtest.run([tbdtest.TBDQ, "--json", "-f", "/dev/stdin"], env=tbdtest.clean_env({"TBD_DIR": folder}), stdin=commands.encode() + b"\n")
        assert (result.code == code if code is not None else result.code > 0), (commands, result)
        assert out in result.out.decode() and said in result.err.decode(), (commands, result)
    # where older entries are damaged nothing is said not to be there
    path = os.path.join(dump_in(folder), "crash")
    with open(path, "r+b") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(end - (1 << 18))
        file.write(b"\xff" * (1 << 18))
    subprocess.run([os.path.join(tbdtest.BUILD, "reseal"), path], check=True)
    env = tbdtest.clean_env({"TBD_DIR": folder})
    result = tbdtest.run([tbdtest.TBDQ, "goto", "main"], env=env)
    assert result.code == 3 and not result.out and b"goto: the older entries of thread" in result.err and b"impossible value" in result.err, result
    assert tbdtest.run([tbdtest.TBDQ, "goto", "first"], env=env).code == 0  # chunks do not need each other


def test_a_collector_that_stands_still_keeps_nobody_waiting(folder):
    """Threads condense their laps themselves then; what it says of them when it goes on is not believed."""
    program, functions = make(folder)
    env = tbdtest.clean_env({**tbdtest.trace_env(folder, "mode=crash,ring=256K,condensed=4M"), "TBD_PROCESSORS": "2"})
    process = subprocess.Popen([program, str(COUNT), "1", "waits"], env=env, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"begun\n"
    collector, = tbdtest.organizers(folder)
    chance = random.Random(7)
    for _ in range(20):
        os.kill(collector, signal.SIGSTOP)
        time.sleep(chance.random() * 0.02)
        os.kill(collector, signal.SIGCONT)
        time.sleep(chance.random() * 0.01)
    os.kill(collector, signal.SIGSTOP)
    assert process.stdout.readline() == b"waits\n"  # it has come to its end
    process.kill()
    process.communicate()
    os.kill(collector, signal.SIGCONT)
    lengths = check(dump_in(folder), functions, COUNT)
    print(lengths)


def test_killed_at_any_moment(folder):
    """Also while a lap is being condensed, which is some of the time."""
    program, functions = make(folder)
    chance = random.Random(18)
    runs = 60 if tbdtest.LONG else 4
    began = 0
    for number in range(runs):
        root = os.path.join(folder, str(number))
        os.makedirs(root)
        process = tbdtest.start([program, "2000000000", str(number % 3)], root, "mode=crash,ring=256K,condensed=" + ("1M", "8M")[number % 2])
        process.stdout.readline()
        time.sleep(chance.random() * 0.2)
        process.kill()
        process.communicate()
        path = dump_in(root)
        found = check(path, functions, 0)
        print(found)
        # On a busy machine it may not have had the processor since it said that it begins: then no thread has lost anything.
        assert max(found) > 0 or not any(has_older for has_older, _ in threads_of(path)), (path, found)
        began += max(found) > 0
    assert began * 2 >= runs, (began, runs)


def test_rings_that_change_their_length(folder):
    program, functions = make(folder)
    process = tbdtest.start([program, "2000000000", "2"], folder, "mode=crash,ring=256K,condensed=1M")
    process.stdout.readline()
    for size in ("1M", "512K", "256K", "2M", "256K", "1M"):
        assert tbdtest.run([tbdtest.TBD, "set", str(process.pid), "ring=" + size]).code == 0
        time.sleep(0.05)
    assert tbdtest.run([tbdtest.TBD, "set", str(process.pid), "ring=256K"]).code == 0
    result = tbdtest.run([tbdtest.TBD, "dump", str(process.pid)], env=tbdtest.clean_env({"TBD_DIR": folder}))
    process.kill()
    process.communicate()
    assert result.code == 0, result
    tbdtest.wait_organizers(folder)
    found = [check(os.path.join(folder, name), functions) for name in sorted(os.listdir(folder))
             if os.path.exists(os.path.join(folder, name, "crash")) and not os.path.islink(os.path.join(folder, name))]
    print(found)
    assert found


def test_a_ring_that_gets_shorter_keeps_the_newest(folder):
    """Of a program that waits, so that nothing is overwritten afterwards; also if it gets longer again."""
    program, functions = make(folder)
    for number, (options, sizes, least) in enumerate((
            ("ring=1M", ["256K"], 4000), ("ring=1M", ["256K", "1M"], 4000), ("ring=1M,condensed=1M", ["256K"], 20000),
            ("ring=1M,condensed=1M", ["512K", "256K", "1M"], 20000))):
        root = os.path.join(folder, str(number))
        os.makedirs(root)
        process = tbdtest.start([program, "20000", "0", "waits"], root, "mode=crash," + options)
        assert process.stdout.readline() + process.stdout.readline() == b"begun\nwaits\n"
        for size in sizes:
            assert tbdtest.run([tbdtest.TBD, "set", str(process.pid), "ring=" + size]).code == 0
        process.kill()
        process.communicate()
        path = dump_in(root)
        found = check(path, functions, least)
        assert bytes(functions[start] for start in threads_of(path)[0][1] if start in functions) == numbers(1, 20000)[-found[0]:]
        print(options, sizes, found)


FORKS = """
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile unsigned seen;
__attribute__((noinline)) static void before(void) { for (int i = 0; i < 300; i++) seen += i; }
__attribute__((noinline)) static void child(void) { for (int i = 0; i < 200; i++) seen ^= i; }
__attribute__((noinline)) static void parent(void) { for (int i = 0; i < 250; i++) seen -= i; }
int main(int argc, char **argv)
{
    pid_t pid;
    (void)argc;
    for (int i = 0; i < 3000; i++)
        before();
    pid = fork();
    if (pid == 0) {
        for (int i = 0; i < 3000; i++)
            child();
        if (argv[1][0] == 'k')
            kill(getpid(), SIGKILL);
        while (argv[1][0] == 'm') {
            char *more = malloc(1 << 20);
            if (more != NULL)
                memset(more, 1, 1 << 20);
        }
        abort();
    }
    for (int i = 0; i < 3000; i++)
        parent();
    waitpid(pid, NULL, 0);
    abort();
}
"""


def test_forked_children_and_no_memory(folder):
    """Laps from before a fork are the parent's alone, those after it each process's own: where the child aborts, is killed, or its control
    group has no memory left."""
    tbdtest.need("cc")
    program = os.path.join(folder, "forks")
    subprocess.run(["cc", "-O1", "-g", "-x", "c", "-", "-o", program], input=FORKS.encode(), check=True)
    for how in ("aborts", "killed", "memory"):
        env = {"TBD_DIR": os.path.join(folder, how)}
        argv = [tbdtest.TBD, "crash", "--condensed=8M", "--", program, how]
        if how == "memory":
            group = MemoryGroup()  # skips where none can be made
            try:
                result = group.run(120, argv, env)
                tbdtest.wait_organizers(env["TBD_DIR"])
            finally:
                group.remove()
        else:
            result = tbdtest.run(argv, env=tbdtest.clean_env(env))
            tbdtest.wait_organizers(env["TBD_DIR"])
        assert result.code == -signal.SIGABRT, (how, result)
        dumps = [tbdtest.Trace(os.path.join(env["TBD_DIR"], name)) for name in sorted(os.listdir(env["TBD_DIR"])) if name.startswith("forks-")]
        found = {}
        for dump in dumps:
            info, *counts = dump.script(["info", *("calls " + name for name in ("before", "parent", "child"))], begin=None)
            rings = info[0]["rings"]["threads"]
            assert len(rings) == 1 and not rings[0]["lost_older"], info
            found[tuple(len(rows) for rows in counts)] = info[0]
        assert sorted(found) == [(0, 0, 3000), (3000, 3000, 0)], (how, sorted(found))
        ended = found[0, 0, 3000]
        assert ended.get("rings_only", False) == (how != "aborts") and (how != "aborts" or ended["end"] == "signal 6"), (how, ended)
        assert found[3000, 3000, 0]["end"] == "signal 6", how


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_") and callable(t)])
