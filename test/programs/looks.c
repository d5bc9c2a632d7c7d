// SPDX-License-Identifier: MIT
/* A program that looks at what a tracer could leave: its descriptors and their table, threads, pending signals, timers, the
 * limits that it comes to. */
#define _GNU_SOURCE
#include "check.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FEW_FILES = 20, ROUNDS = 100, SPIN = 100000 };

/* The numbers of the descriptors, and of the threads, as /proc shows them. */
static void list(const char *path)
{
    DIR *d = opendir(path);
    struct dirent *entry;
    int is_open[1024] = { 0 }, others = 0;

    CHECK(d != NULL);
    while ((entry = readdir(d)) != NULL)
        if (entry->d_name[0] != '.' && atoi(entry->d_name) < 1024)
            is_open[atoi(entry->d_name)] = 1;
        else
            others += entry->d_name[0] != '.';
    CHECK(closedir(d) == 0);
    printf("%s:", path);
    for (int i = 0; i < 1024; i++)
        if (is_open[i])
            printf(" %d", i);
    printf(", %d others\n", others);
}

static void show_status(void)
{
    static const char *const wanted[] = { "FDSize:", "Threads:", "SigPnd:", "ShdPnd:", "TracerPid:", "NoNewPrivs:", "Seccomp:" };
    char line[4096];
    FILE *f = fopen("/proc/self/status", "r");

    CHECK(f != NULL);
    while (fgets(line, sizeof(line), f) != NULL)
        for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
            if (strncmp(line, wanted[i], strlen(wanted[i])) == 0)
                fputs(line, stdout);
    fclose(f);
}

/* Computes between the calls, so that ticks come there. */
static void wait_for_nothing(void)
{
    uint64_t all = ~0ull, pending, found = 0;
    volatile unsigned count = 0;

    CHECK(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, 8) == 0);
    for (int i = 0; i < ROUNDS; i++) {
        for (int k = 0; k < SPIN; k++)
            count++;
        CHECK(syscall(SYS_rt_sigpending, &pending, 8) == 0);
        found |= pending;
    }
    CHECK(syscall(SYS_tkill, gettid(), SIGILL) == 0);
    CHECK(syscall(SYS_rt_sigpending, &pending, 8) == 0);
    printf("pending: %lx, then %lx\n", (unsigned long)found, (unsigned long)pending);
    CHECK(syscall(SYS_rt_sigtimedwait, &all, NULL, &(struct timespec){ 0, 0 }, 8) == SIGILL);
}

/* New mappings while there is no room for another descriptor. */
static void use_all_descriptors(void)
{
    struct rlimit limit = { FEW_FILES, FEW_FILES };
    int last = -1, fd;
    char *memory;

    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    while ((fd = open("/dev/null", O_RDONLY)) >= 0)
        last = fd;
    printf("last %d, errno %d\n", last, errno);
    for (int i = 0; i < 5; i++) {
        memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(memory != MAP_FAILED);
        memset(memory, i, 1 << 20);
        printf("%lx\n", (unsigned long)check_hash(memory, 1 << 20));
        CHECK(munmap(memory, 1 << 20) == 0);
    }
    CHECK(close_range(3, ~0u, 0) == 0 && open("/dev/null", O_RDONLY) == 3 && close(3) == 0);
}

int main(void)
{
    struct timespec second = { 0, 0 };
    siginfo_t info;
    int status;
    pid_t child;

    list("/proc/self/fd");
    list("/proc/self/fdinfo");
    show_status();
    wait_for_nothing();
    fflush(stdout);
    child = fork();
    if (!child) {
        list("/proc/self/fd");
        use_all_descriptors();
        list("/proc/self/fd");
        show_status();
        exit(3);
    }
    CHECK(waitpid(child, &status, __WALL) == child && WEXITSTATUS(status) == 3);
    CHECK(waitid(P_ALL, 0, &info, WEXITED | WNOHANG | __WALL) == -1 && errno == ECHILD);
    use_all_descriptors();
    CHECK(nanosleep(&second, NULL) == 0);
    puts("looks ok");
    return 0;
}
