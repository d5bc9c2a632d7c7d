#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Values before a crash in programs with threads: what is inferred does not go past stores of another thread, whose order is not known."""
import os
import struct

import tbdtest
from test_values import compiled, script

# The main thread notes all that it reads: of `room`, which the other thread writes all the time, and of `calm`, which it alone writes.
SHARED = """#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
static volatile long room[64], *volatile shared = room;
static volatile long calm[64];
static volatile int go;
static volatile long (*seen)[2];  /* a file's, of which a dump knows nothing */
static void *other(void *arg)
{
    for (long i = 0;; i++) {
        shared[i & 63] = i * 3;
        go = 1;
    }
    return arg;
}
__attribute__((noinline)) static void note(long k, long theirs, long mine)
{
    seen[k][0] = theirs;
    seen[k][1] = mine;
}
int main(int argc, char **argv)
{
    pthread_t thread;
    int fd = open(argv[argc - 1], O_RDWR | O_CREAT, 0600);
    if (ftruncate(fd, sizeof(*seen) * 120) != 0)
        return 1;
    seen = mmap(NULL, sizeof(*seen) * 120, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    pthread_create(&thread, NULL, other, NULL);
    while (!go)
        ;
    for (volatile int i = 0; i < 100000; i++)
        ;
    for (long k = 0; k < 120; k++) {
        usleep(200);
        volatile long *at = calm + k % 64;
        note(k, shared[k & 63], calm[(k * 7) & 63]);
        at[0] = k * 11;
    }
    *(volatile long *)0 = seen[3][0] == 0;
}
"""


def test_what_is_inferred_does_not_cross_other_threads(folder):
    """Of what another thread writes a value is right, or not known."""
    program = compiled(folder, "shared", SHARED, "-O1", "-pthread")
    where, notes = os.path.join(folder, "dump"), os.path.join(folder, "notes")
    os.makedirs(where)
    assert tbdtest.run([program, notes], env=tbdtest.trace_env(where, "mode=crash")).code < 0
    tbdtest.wait_organizers(where)
    dump = tbdtest.find_trace(where, "shared")
    entries = [row["back"] for row in dump.ask("path", "4000", "blocks")[1:] if row["function"].endswith("!note") and "+" not in row["back"]]
    assert len(entries) >= 100, len(entries)
    known, wrong, mine = 0, 0, 0
    with open(notes, "rb") as file:
        truths = list(struct.iter_unpack("qq", file.read()))
    for answer in script(dump, entries, "print k", "print theirs", "print mine"):
        if answer[0]["certainty"] == "unknown":
            continue
        truth = truths[int(answer[0]["value"])]
        for said, real in ((answer[1], truth[0]), (answer[2], truth[1])):
            assert said["certainty"] != "exact" or int(said["value"]) == int(real), (answer, truth)
        known += answer[1]["certainty"] != "unknown"
        wrong += answer[1]["certainty"] != "unknown" and int(answer[1]["value"]) != int(truth[0])
        mine += answer[2]["certainty"] != "unknown" and int(answer[2]["value"]) == int(truth[1])
    assert wrong * 100 <= known, (wrong, known, mine)
    assert mine > 70, (wrong, known, mine)


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
