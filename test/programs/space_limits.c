// SPDX-License-Identifier: MIT
/* space_limits.c - a program that limits its address space and its data, as fossil and servers do: what is refused then, what
 * the limits are said to be, and which ones forked, spawned and executed programs have */
#define _GNU_SOURCE
#include <errno.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MB ((size_t)1 << 20)

extern char **environ;

static const char *outcome(int failed)
{
    return failed ? strerror(errno) : "ok";
}

static void say_limits(const char *who)
{
    struct rlimit data, space;

    getrlimit(RLIMIT_DATA, &data);
    getrlimit(RLIMIT_AS, &space);
    printf("%s: data %lld MB, space %lld MB\n", who, (long long)data.rlim_cur >> 20,
           (long long)space.rlim_cur >> 20);
    fflush(stdout);
}

static void limit(int resource, size_t megabytes)
{
    struct rlimit now;

    getrlimit(resource, &now);
    now.rlim_cur = megabytes ? megabytes * MB : now.rlim_max;
    printf("limit %d to %zu MB: %s\n", resource, megabytes, outcome(setrlimit(resource, &now)));
}

/* Mapped and unmapped again. */
static void try_map(const char *what, size_t bytes, int prot, int flags)
{
    void *at = mmap(NULL, bytes, prot, flags | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    printf("map %zu MB %s: %s\n", bytes / MB, what, outcome(at == MAP_FAILED));
    if (at != MAP_FAILED)
        munmap(at, bytes);
}

static void try_maps(void)
{
    try_map("private", 20 * MB, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    try_map("private", 200 * MB, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    try_map("private", 600 * MB, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    try_map("that cannot be written", 200 * MB, PROT_NONE, MAP_PRIVATE);
    try_map("shared", 200 * MB, PROT_READ | PROT_WRITE, MAP_SHARED);
    try_map("shared", 600 * MB, PROT_READ | PROT_WRITE, MAP_SHARED);
}

static void try_changes(void)
{
    char *at = mmap(NULL, 300 * MB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *small = mmap(NULL, MB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *over;
    void *heap = sbrk(0);

    printf("300 MB: %s\n", outcome(at == MAP_FAILED));
    printf("20 MB become data: %s\n", outcome(mprotect(at, 20 * MB, PROT_READ | PROT_WRITE)));
    printf("200 MB become data: %s\n", outcome(mprotect(at, 200 * MB, PROT_READ | PROT_WRITE)));
    at[0] = 1;
    over = mmap(at, 300 * MB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE,
                -1, 0);
    printf("mapped over it: %s\n", outcome(over == MAP_FAILED));
    over = mremap(small, MB, 20 * MB, MREMAP_MAYMOVE);
    printf("grown to 20 MB: %s\n", outcome(over == MAP_FAILED));
    small = over == MAP_FAILED ? small : over;
    over = mremap(small, 20 * MB, 400 * MB, MREMAP_MAYMOVE);
    printf("grown to 400 MB: %s\n", outcome(over == MAP_FAILED));
    munmap(small, 20 * MB);
    munmap(at, 300 * MB);
    printf("break 200 MB up: %s\n", outcome(sbrk((intptr_t)(200 * MB)) == (void *)-1));
    printf("break 10 MB up: %s\n", outcome(sbrk((intptr_t)(10 * MB)) == (void *)-1));
    printf("break back: %s\n", outcome(brk(heap)));
    over = malloc(150 * MB);
    printf("malloc of 150 MB: %s\n", over ? "memory" : "none");
    free(over);
}

static void try_segment(size_t bytes)
{
    int id = shmget(IPC_PRIVATE, bytes, IPC_CREAT | 0600);
    void *at = shmat(id, NULL, 0);

    printf("segment of %zu MB: %s\n", bytes / MB, outcome(at == (void *)-1));
    if (at != (void *)-1)
        shmdt(at);
    shmctl(id, IPC_RMID, NULL);
}

static void try_errors(void)
{
    struct rlimit bad = { 5, 3 }, old = { 0, 0 };

    printf("more now than at most: %s\n", outcome(setrlimit(RLIMIT_AS, &bad)));
    printf("address 1: %s\n",
           outcome((int)syscall(SYS_prlimit64, 0, RLIMIT_DATA, (void *)1, NULL)));
    printf("answer to 1: %s\n",
           outcome((int)syscall(SYS_prlimit64, 0, RLIMIT_DATA, NULL, (void *)1)));
    printf("no address: %s\n", outcome((int)syscall(SYS_setrlimit, RLIMIT_DATA, NULL)));
    printf("getrlimit: %s", outcome((int)syscall(SYS_getrlimit, RLIMIT_DATA, &old)));
    printf(" %lld\n", (long long)old.rlim_cur >> 20);
    printf("own pid: %s", outcome((int)syscall(SYS_prlimit64, getpid(), RLIMIT_AS, NULL, &old)));
    printf(" %lld\n", (long long)old.rlim_cur >> 20);
}

static void try_children(void)
{
    char *const arguments[] = { (char *)"space_limits", (char *)"executed", NULL };
    pid_t pid = fork();

    if (!pid) {
        say_limits("forked");
        try_map("private", 200 * MB, PROT_READ | PROT_WRITE, MAP_PRIVATE);
        fflush(stdout);
        execv("/nowhere", arguments);
        try_map("private", 200 * MB, PROT_READ | PROT_WRITE, MAP_PRIVATE);
        fflush(stdout);
        execv("/proc/self/exe", arguments);
        _exit(1);
    }
    waitpid(pid, NULL, 0);
    posix_spawn(&pid, "/proc/self/exe", NULL, NULL, arguments, environ);
    waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        say_limits(argv[1]);
        try_map("private", 200 * MB, PROT_READ | PROT_WRITE, MAP_PRIVATE);
        return 0;
    }
    limit(RLIMIT_DATA, 100);
    try_maps();
    try_changes();
    fflush(stdout);
    limit(RLIMIT_AS, 500);
    try_maps();
    try_segment(100 * MB);
    try_segment(600 * MB);
    try_errors();
    fflush(stdout);
    try_children();
    limit(RLIMIT_AS, 0);
    limit(RLIMIT_DATA, 0);
    try_maps();
    say_limits("ended");
    return 0;
}
