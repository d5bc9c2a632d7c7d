// SPDX-License-Identifier: MIT
/* Memory that another process writes at the same time: anonymous, a file, POSIX and System V shared memory.  The
 * other one is not traced. */
// options: children=no
#define _GNU_SOURCE
#include "check.h"
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES 65536
#define ROUNDS 500

struct area {
    _Atomic uint64_t ready, go, sum; /* `sum` is added to by both */
    uint64_t plain;
    char text[4096];
    unsigned char block[32768];
};

/* Looks again at once, then after a while: on a busy machine the other one may not run for long. */
static void wait_for(_Atomic uint64_t *word, uint64_t round)
{
    for (unsigned spins = 1; atomic_load(word) < round; spins++) {
        if (spins % 64 == 0)
            usleep(100);
        else if (spins % 16 == 0)
            sched_yield();
    }
}

static void serve(struct area *area)
{
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        wait_for(&area->go, round);
        atomic_fetch_add(&area->sum, round);
        area->plain = round * 0x0101010101010101u;
        snprintf(area->text, sizeof(area->text), "round %lu of the other process", (unsigned long)round);
        memset(area->block + round % 128 * 256, (int)round, 256);
        atomic_store(&area->ready, round);
    }
    _exit(0);
}

/* The compiler keeps each access to shared memory: that is what is tested. */
static uint64_t talk(struct area *area)
{
    static unsigned char copy[sizeof(area->block)];
    uint64_t hash = 0;
    char text[64];

    for (uint64_t round = 1; round <= ROUNDS; round++) {
        atomic_fetch_add(&area->sum, 1);
        atomic_store(&area->go, round);
        wait_for(&area->ready, round);
        CHECK(*(volatile uint64_t *)&area->plain == round * 0x0101010101010101u);
        snprintf(text, sizeof(text), "round %lu of the other process", (unsigned long)round);
        CHECK(strcmp(text, area->text) == 0);
        if (round % 100 == 0) {
            memcpy(copy, area->block, sizeof(copy));
            hash = hash * 31 + check_hash(copy, sizeof(copy));
            CHECK(copy[round % 128 * 256 + 255] == (unsigned char)round);
        }
    }
    CHECK(atomic_load(&area->sum) == (uint64_t)ROUNDS * (ROUNDS + 1) / 2 + ROUNDS);
    return hash;
}

static void try_memory(const char *name, void *memory)
{
    struct area *area = memory;
    pid_t child;
    int status;

    CHECK(memory != MAP_FAILED && memory != (void *)-1);
    memset(area, 0, sizeof(*area));
    child = fork();
    if (child == 0)
        serve(area);
    printf("%s: %016lx\n", name, (unsigned long)talk(area));
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void *map_file(int fd)
{
    CHECK(fd >= 0 && ftruncate(fd, BYTES) == 0);
    return mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

int main(void)
{
    char path[] = "/tmp/tbd-shared-XXXXXX";
    int fd = mkstemp(path), id = shmget(IPC_PRIVATE, BYTES, IPC_CREAT | 0600);
    void *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char first;

    try_memory("anonymous", memory);
    CHECK(munmap(memory, BYTES) == 0);
    memory = map_file(fd);
    try_memory("file", memory);
    CHECK(pwrite(fd, "changed by write", 17, 0) == 17 && strcmp(memory, "changed by write") == 0);
    CHECK(lseek(fd, 0, SEEK_SET) == 0 && read(fd, (char *)memory + 100, 10) == 10);
    CHECK(memcmp((char *)memory + 100, "changed by", 10) == 0);
    unlink(path);
    try_memory("memfd", map_file(memfd_create("tbd-test", 0)));
    CHECK(id >= 0);
    memory = shmat(id, NULL, 0);
    try_memory("segment", memory);
    CHECK(shmctl(id, IPC_RMID, NULL) == 0 && shmdt(memory) == 0);
    CHECK(read(fd, &first, 1) == 1 && first == ' ');
    return 0;
}
