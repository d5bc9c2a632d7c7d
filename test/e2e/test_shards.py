#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tbdq --shard and unite: the answer of the whole run from those of its parts, byte for byte."""
import glob
import os
import random
import shutil
import signal
import subprocess

import tbdtest

QUESTIONS = [
    (["all", "store", "where", "addr==&target"], []),
    (["all", "func_enter", "where", "func==main or func==store_8"], ["--json"]),
    (["stores", "target"], []),
    (["stores", "target"], ["--csv", "--wall"]),
    (["syscalls"], []),
    (["signals"], ["--json"]),
    (["count", "store", "by", "line"], []),
    (["count", "func_enter"], ["--csv"]),
    (["goto", "first", "forward", "store", "7", "where", "addr==&target"], []),
    (["goto", "last", "backward", "store", "3", "where", "addr==&target"], ["--json"]),
    (["goto", "last", "backward", "store", "1000", "where", "addr==&target"], ["--json"]),
    (["goto", "first", "forward", "store", "100000", "where", "addr==&target"], []),
    (["all", "store", "where", "addr==1"], []),
    (["calls", "main"], []),
    (["log", "store_8", "%d of %s", "i", "&target", "also", "store of neighbour", "%d", "neighbour"], ["--wall"]),
    (["log", "store_8:return", "done"], ["--json"]),
    (["history", "neighbour"], []),
    (["history", "neighbour", "where", "newval > 50"], ["--json"]),
]
MORE_QUESTIONS = [
    (["calls", "store_8"], ["--json"]),
    (["calls", "store_8", "where", "duration > 0"], ["--csv"]),
    (["log", "store_8", "%d", "i", "also", "main", "begins"], ["--csv"]),
    (["log", "store_8", "where", "i > 1000", "never"], []),
    (["history", "target"], ["--csv"]),
    (["history", "heap_word"], []),
    (["history", "*heap_word", "where", "newval < oldval"], []),
    (["history", "(long)environ"], []),
]


def recorded(folder):
    _, trace = tbdtest.record([tbdtest.program("stores")], folder + "/traces", "window=300")
    assert trace.info()["windows"] > 12, trace.info()
    return trace


def alone(trace, question, options):
    return tbdtest.run([tbdtest.TBDQ, "-t", trace.path, "-q", "--no-cache", *options, *question], stdin=None)


def shards(trace, folder, count, question, options):
    """Files with the answers of all shards."""
    os.makedirs(folder, exist_ok=True)
    paths = []
    for number in range(1, count + 1):
        result = alone(trace, question, ["--shard", "%d/%d" % (number, count), *options])
        assert result.code in (0, 1, 3), result
        paths.append("%s/%02d" % (folder, number))
        with open(paths[-1], "wb") as file:
            file.write(result.out)
    return paths


def united(paths, *options):
    return tbdtest.run([tbdtest.TBDQ, *options, "unite", *paths], stdin=None)


def check_same(whole, result):
    assert (whole.out, whole.code, whole.err) == (result.out, result.code, result.err), \
        "alone: %r\nunited: %r\n%r\n%r" % (whole, result, whole.out[:300], result.out[:300])


def test_same_as_alone(folder):
    """All commands that take shards, all forms; more shards than windows, too."""
    trace = recorded(folder)
    numbers = random.Random(9)
    for i, (question, options) in enumerate(QUESTIONS + (MORE_QUESTIONS if tbdtest.LONG else [])):
        whole = alone(trace, question, options)
        assert whole.code in (0, 1), whole
        for count in ((1, 2, 5, 100) if tbdtest.LONG else (7,) if i == 2 else (2,)):
            paths = shards(trace, folder + "/parts", count, question, options)
            numbers.shuffle(paths)
            check_same(whole, united(paths))
            shutil.rmtree(folder + "/parts")


def test_what_is_missing(folder):
    """A shard that is not there, cut, or had to leave out a window: the rest is shown, and the status says that it may not be all."""
    trace = recorded(folder)
    question = ["stores", "target"]
    paths = shards(trace, folder + "/parts", 4, question, [])
    whole = united(paths)
    assert whole.code == 0
    result = united(paths[:1] + paths[2:])
    assert result.code == 3 and b"of 4 shards 1 is missing: 2" in result.err, result
    assert len(result.out) < len(whole.out)
    with open(paths[2], "rb") as file:
        lines = file.read().splitlines(True)
    for cut in (lines[:-1], lines[:-1] + [lines[-1][:20]], lines[:2] + lines[3:], lines[:2] + [b'{"time": -1}\n'] + lines[2:]):
        with open(paths[2], "wb") as file:
            file.write(b"".join(cut))
        result = united(paths)
        assert result.code == 3 and b"shard 3" in result.err, (result, cut[-1])
    toc = sorted(glob.glob(trace.path + "/windows/**/*.toc", recursive=True))[6]
    os.truncate(toc, 100)
    for options in ([], ["--json"]):
        whole = alone(trace, question, options)
        assert whole.code == 3, whole
        check_same(whole, united(shards(trace, folder + "/parts", 3, question, options)))


def test_what_does_not_fit(folder):
    """Files that are no shards of one answer are refused before anything is printed; damaged ones never crash it."""
    trace = recorded(folder)
    paths = shards(trace, folder + "/parts", 2, ["stores", "target"], [])
    others = shards(trace, folder + "/others", 2, ["syscalls"], [])
    with open(paths[0], "rb") as file:
        good = file.read()
    newer = folder + "/newer"
    with open(newer, "wb") as file:
        file.write(good.replace(b'"tbd_shard":1', b'"tbd_shard":2', 1))
    for wrong in ([paths[0], others[1]], [paths[0], paths[0]], [newer, paths[1]], [tbdtest.LIBRARY], [folder], ["/dev/zero"]):
        result = united(wrong)
        assert result.code == 2 and not result.out and b"unite" in result.err, (wrong, result)
    assert united(paths, "--json").code == 2
    for words in (["info"], ["fds"], ["goto", "5"], ["goto", "first", "then", "forward", "store"]):
        assert alone(trace, words, ["--shard", "1/2"]).code == 2, words
    for shard in ("0/2", "3/2", "1", "x", "1/0", "-1/2"):
        assert alone(trace, ["syscalls"], ["--shard", shard]).code == 2, shard
    numbers = random.Random(os.urandom(8) if tbdtest.LONG else 4)
    for _ in range(2000 if tbdtest.LONG else 60):
        bytes_ = bytearray(good)
        for _ in range(numbers.randint(1, 4)):
            bytes_[numbers.randrange(len(bytes_))] = numbers.choice(b'"{}[]:,0189-\n\xffnte ')
        with open(newer, "wb") as file:
            file.write(bytes_[:numbers.choice([len(bytes_), numbers.randrange(len(bytes_))])])
        result = united([newer, paths[1]])
        assert result.code in (0, 2, 3), (result, bytes(bytes_))


def test_ranks(folder):
    """tbdq-mpi gives the same answer; a rank that dies costs its shard's time."""
    mpirun, tool = tbdtest.need("mpirun"), os.path.join(tbdtest.BUILD, "tbdq-mpi")
    if not os.path.exists(tool):
        raise tbdtest.Skip("tbdq-mpi is not built")
    trace = recorded(folder)
    argv = [mpirun, "--allow-run-as-root", "--oversubscribe", "-n", "3", tool, "--shards", "7", "-t", trace.path]
    for question in (["stores", "target"], ["--json", "count", "store", "by", "line"]):
        whole = alone(trace, question, [])
        result = tbdtest.run(argv + question, stdin=None, timeout=300)
        assert (result.code, result.out) == (whole.code, whole.out), result
    assert tbdtest.run(argv + ["stores", "no_such_variable"], stdin=None, timeout=300).code == 2
    question = ["stores", "target"]
    argv = [mpirun, "--enable-recovery", *argv[1:5], tool, "--report", "--shards", "60" if tbdtest.LONG else "9", "--patience", "6", "-t", trace.path, "--no-cache", *question]
    process = subprocess.Popen(argv, env=tbdtest.clean_env(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for line in process.stderr:
        if b" rank 2 seconds" in line:
            break
    os.kill(rank_of(process, 2), signal.SIGKILL)
    out, err = process.communicate(timeout=300)
    whole = alone(trace, question, [])
    assert (process.returncode, out) == (whole.code, whole.out) and b"rank 2 is not heard of" in err, (process.returncode, err)


ALLOCATOR = """
#include <stddef.h>
#include <stdio.h>
static _Alignas(64) char memory[1 << 20];
static size_t used;
void *malloc(size_t size)
{
    char *block = memory + used;

    used += (size + 63) & ~(size_t)63;
    return block;
}
void free(void *block)
{
    (void)block;
}
static char *volatile kept[4];
int main(void)
{
    for (int i = 0; i < 4; i++)
        kept[i] = malloc(100);
    for (int round = 0; round < 300; round++) {
        char *volatile block = malloc(40 + round % 3);

        if (round % 3 != 0)
            free(block);
        if (round % 50 == 0)
            free(kept[1]);
        kept[round % 2][round % 90] = (char)(kept[1][7] + round);
        if (round == 120)
            free(kept[2] + 8);
        if (round == 200)
            free((char *)memory + sizeof(memory) - 64);
    }
    return 0;
}
"""


def test_heap_is_that_of_the_whole_run(folder):
    """Blocks that live over many shards, frees that are wrong, more accesses to a freed block than are shown, vectors at the edges."""
    with open(folder + "/allocator.c", "w", encoding="utf-8") as file:
        file.write(ALLOCATOR)
    programs = [(folder + "/allocator.c", 100), (tbdtest.SOURCE + "/test/programs/heap.c", 200), (tbdtest.SOURCE + "/test/programs/questions/over_reads.c", 40)]
    for i, (source, window) in enumerate(programs):
        path = "%s/p%d" % (folder, i)
        made = tbdtest.run([tbdtest.need("cc"), "-g", "-O0", "-fno-builtin", "-D_GNU_SOURCE", source, "-o", path, "-I", tbdtest.SOURCE + "/test/programs"])
        assert made.code == 0, made
        _, trace = tbdtest.record([path], "%s/traces%d" % (folder, i), "window=%d" % window)
        errors = trace.ask("heap", "errors")
        positions = [tuple(map(int, (row["position"] + "+0").split("+")[:2])) for row in errors]
        assert errors and positions == sorted(positions), errors
        if i == 0:
            kinds = [row["error"] for row in errors]
            assert [kinds.count(kind) for kind in ("double free", "free inside a block", "free of no block", "load after free", "store after free")] == [5, 1, 1, 4, 4], kinds
        middle = str(trace.info()["blocks"] // 2)
        questions = [(["heap", "leaks"], []), (["heap", "errors"], ["--json"]), (["heap", "of", errors[0]["addr"]], ["--json"]), (["heap"], ["--at", middle])]
        if not tbdtest.LONG:
            questions = questions if i == 0 else questions[2 - i:3 - i]
        else:
            questions += [(["heap", "leaks"], ["--json"]), (["heap", "errors"], ["--csv"]), (["heap", "of", errors[-1]["addr"]], []), (["heap", "of", "1"], [])]
        for question, options in questions:
            whole = alone(trace, question, options)
            for count in (2, 17) if tbdtest.LONG else (4,):
                paths = shards(trace, folder + "/parts", count, question, options)
                check_same(whole, united(paths))
                shutil.rmtree(folder + "/parts")
    paths = shards(trace, folder + "/parts", 3, ["heap", "leaks"], [])
    assert united(paths[1:]).code == 3
    with open(paths[1], "rb") as file:
        good = file.read()
    numbers = random.Random(os.urandom(8) if tbdtest.LONG else 5)
    for _ in range(1000 if tbdtest.LONG else 40):
        bytes_ = bytearray(good)
        for _ in range(numbers.randint(1, 4)):
            bytes_[numbers.randrange(len(bytes_))] = numbers.choice(b'"{}[]:,0189-\n\xffnte ')
        with open(paths[1], "wb") as file:
            file.write(bytes_)
        result = united(paths)
        assert result.code in (0, 2, 3), (result, bytes(bytes_))


def rank_of(mpirun, number):
    """The process of a rank."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/environ" % pid, "rb") as file, open("/proc/%s/stat" % pid, encoding="utf-8") as stat:
                if b"OMPI_COMM_WORLD_RANK=%d\0" % number in file.read() and stat.read().split()[3] == str(mpirun.pid):
                    return int(pid)
        except OSError:
            continue
    raise AssertionError("there is no rank %d" % number)


def test_recipes(folder):
    """The scripts of examples/cluster give the answer of the whole run."""
    trace = recorded(folder)
    question = ["-t", trace.path, "count", "store", "by", "line"]
    whole = alone(trace, question[2:], [])
    cluster, env = os.path.join(tbdtest.SOURCE, "examples/cluster"), {"TBDQ": tbdtest.TBDQ}
    names = ["shards.sh"] + ["parallel.sh"] * (shutil.which("parallel") is not None)
    for name in names:
        result = tbdtest.run([os.path.join(cluster, name), "3", *question], stdin=None, env=env)
        assert (result.code, result.out) == (whole.code, whole.out), (name, result)
    os.mkdir(folder + "/answer")
    for task in ("1", "2"):
        env = {"TBDQ": tbdtest.TBDQ, "FOLDER": folder + "/answer", "SLURM_ARRAY_TASK_ID": task, "SLURM_ARRAY_TASK_COUNT": "2"}
        assert tbdtest.run([os.path.join(cluster, "slurm.sh"), *question], stdin=None, env=env).code == 0
    check_same(whole, united(sorted(glob.glob(folder + "/answer/*"))))


tbdtest.main(test_same_as_alone, test_what_is_missing, test_what_does_not_fit, test_heap_is_that_of_the_whole_run, test_ranks, test_recipes)
