#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Memory that another process may write: what a replay finds by itself is not logged, and all questions have the same answers."""
import os
import subprocess

import tbdtest

ROUNDS = 3000
SOURCE = """
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
volatile long *words;
long sum;
__attribute__((noinline)) static void store(long n) { words[n % 8] = n * n; }
__attribute__((noinline)) static void load(long n) { sum += words[(n + 3) % 8]; }
__attribute__((noinline)) static void add(long n) { words[8 + n % 4] += n; }
__attribute__((noinline)) static void atomics(long n)
{
    long seen = n - 1;
    sum += __atomic_fetch_add(&words[16], n, __ATOMIC_SEQ_CST);
    sum += __atomic_compare_exchange_n(&words[17], &seen, n, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    sum += __atomic_exchange_n(&words[18], n, __ATOMIC_SEQ_CST);
}
__attribute__((noinline)) static void copy(long n) { memmove((void *)&words[64 + n % 3], (void *)&words[n % 5], 56); }
__attribute__((noinline)) static void wait_for(long n)
{
    words[32] = n;
    while (words[40] != n)
        sched_yield();
    sum += words[33];
}
int main(void)
{
    words = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t other = fork();
    if (!other) {
        for (long n = 1; n <= ROUNDS / 100; n++) {
            while (words[32] != n)
                sched_yield();
            words[33] = n * 7;
            words[0] = n;
            __atomic_store_n(&words[40], n, __ATOMIC_SEQ_CST);
        }
        _exit(0);
    }
    for (long n = 1; n <= ROUNDS; n++) {
        store(n);
        load(n);
        add(n);
        atomics(n);
        copy(n);
        if (n % 100 == 0)
            wait_for(n / 100);
    }
    waitpid(other, NULL, 0);
    printf("%ld\\n", sum);
    return 0;
}
"""
IN_WORDS = "addr >= words and addr < words + 1024"
QUESTIONS = ["count store by func where " + IN_WORDS, "count load by func where " + IN_WORDS,
             "all store where func == add and addr == words + 9", "all load where func == load and addr == words + 4",
             "all store where func == atomics and addr == words + 17", "history words[10]", "history words[33]", "last words[17] == 1000",
             "count store by func where newval == 49"]


BEGIN = "goto last backward func_enter 1 where func == copy"  # for variables


def build(folder):
    source, path = os.path.join(folder, "shared.c"), os.path.join(folder, "shared")
    with open(source, "w", encoding="utf-8") as f:
        f.write(SOURCE.replace("ROUNDS", str(ROUNDS)))
    subprocess.run(["cc", "-g", "-O1", "-fno-stack-protector", "-o", path, source], check=True)
    return path


# Times depend on how often one process has waited for the other, and so does what is done there.
KEPT = ("by", "count", "value", "oldval", "newval", "size", "line", "text")


def timeless(rows):
    return [{key: row[key] for key in KEPT if key in row} for row in rows if not str(row.get("by")).endswith("wait_for")]


def answers(trace):
    return [timeless(rows) for rows in trace.script(QUESTIONS, options=["--no-cache"], begin=BEGIN)]


def check_same(trace, wanted, when):
    for question, a, b in zip(QUESTIONS, wanted, answers(trace)):
        assert a == b, (when, question, a, b)


def test_what_is_not_logged_is_found_all_the_same(folder):
    path = build(folder)
    _, whole = tbdtest.record([path], folder + "/whole", "mode=traced,count=now,lean=never")
    _, later = tbdtest.record([path], folder + "/later", "mode=traced,count=later")
    wanted = answers(whole)
    assert all(wanted), [(q, len(a)) for q, a in zip(QUESTIONS, wanted)]
    check_same(later, wanted, "not counted")
    assert sum(w["toc_bytes"] for w in later.ask("windows")) < sum(w["toc_bytes"] for w in whole.ask("windows")) / 2
    later.verify()
    later.ask("raise", "all")
    check_same(later, wanted, "with events on disk")
    later.verify()
    later.ask("lower", "all", "1")
    check_same(later, wanted, "without them again")
    later.verify()


def test_of_what_is_not_logged_slices_know_it_too(folder):
    _, later = tbdtest.record([build(folder)], folder + "/later", "mode=traced,count=later")
    blocks = later.info()["blocks"]
    wanted = later.script(QUESTIONS, options=["--no-cache"], begin=BEGIN)
    for size in (blocks // 3, blocks // 40):
        got = later.script(QUESTIONS, options=["--no-cache"], begin=BEGIN, env={"TBD_SLICE_BLOCKS": str(size)})
        assert got == wanted, size


if __name__ == "__main__":
    tbdtest.main(test_what_is_not_logged_is_found_all_the_same, test_of_what_is_not_logged_slices_know_it_too)
