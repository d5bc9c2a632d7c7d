// SPDX-License-Identifier: MIT
// end: exec
// long_env: DEEPEST=1
/* What programs do that is hard on somebody who lives in their process: closing and replacing every descriptor, small limits,
 * reading their own mappings and code, another root directory, much reserved memory, deep recursion under a stack
 * limit that grows, mappings over code that ran. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void descriptors(void)
{
    int out = dup(1), ends[2];
    char text[6];

    CHECK(syscall(436 /* close_range */, 3, out - 1, 0) == 0 || errno == ENOSYS || out == 3);
    CHECK(syscall(436, out + 1, ~0u, 0) == 0 || errno == ENOSYS);
    for (int fd = out + 1; fd < 300; fd++)
        CHECK(dup2(0, fd) == fd || errno == EBADF);
    for (int fd = 3; fd < 1024; fd++)
        if (fd != out)
            close(fd);
    CHECK(pipe(ends) == 0 && write(ends[1], "hello", 6) == 6 && read(ends[0], text, 6) == 6);
    CHECK(strcmp(text, "hello") == 0);
    close(ends[0]);
    close(ends[1]);
    close(out);
    puts("descriptors");
}

/* Lines have the form that the kernel's have, do not overlap, and hold this code and this stack. */
static void own_mappings(void)
{
    unsigned long start, end, offset, inode, last = 0, here = (unsigned long)own_mappings;
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4500], flags[5], device[32];
    int found = 0;

    CHECK(maps != NULL);
    while (fgets(line, sizeof(line), maps)) {
        CHECK(sscanf(line, "%lx-%lx %4s %lx %31s %lu", &start, &end, flags, &offset, device, &inode) == 6);
        CHECK(start >= last && end > start && strlen(flags) == 4);
        last = end;
        found += here >= start && here < end && flags[0] == 'r' && flags[2] == 'x';
        found += (unsigned long)line >= start && (unsigned long)line < end && flags[1] == 'w';
    }
    CHECK(found == 2 && fclose(maps) == 0);
    puts("mappings");
}

static void own_code(void)
{
    static const unsigned char *const code = (const unsigned char *)(uintptr_t)own_code;
    uint64_t first = check_hash(code, 64);
    int fd = open("/proc/self/mem", O_RDONLY);
    unsigned char copy[64];

    CHECK(fd >= 0 && pread(fd, copy, 64, (off_t)(uintptr_t)code) == 64 && close(fd) == 0);
    CHECK(check_hash(copy, 64) == first && first == check_hash(code, 64));
    puts("code");
}

static void reserve(void)
{
    size_t bytes = 10ul << 30;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    CHECK(memory != MAP_FAILED);
    for (size_t at = 0; at < bytes; at += bytes / 50)
        memory[at] = (char)(at >> 20);
    CHECK(memory[bytes / 50 * 7] == (char)(bytes / 50 * 7 >> 20));
    CHECK(munmap(memory, bytes) == 0);
    puts("10 GB");
}

/* The frame is used behind the call, so that every level is there. */
static unsigned __attribute__((noinline)) recurse(unsigned depth, volatile char *above)
{
    volatile char frame[1000];
    unsigned below;

    frame[0] = (char)depth;
    frame[999] = *above;
    below = depth ? recurse(depth - 1, frame) : 0;
    return below + (frame[0] == (char)depth) + (unsigned)(frame[999] == *above);
}

static void deep_stack(void)
{
    struct rlimit limit;
    char top = 1;

    CHECK(recurse(5000, &top) == 2 * 5001);
    CHECK(getrlimit(RLIMIT_STACK, &limit) == 0);
    limit.rlim_cur = 32ul << 20;
    if (setrlimit(RLIMIT_STACK, &limit) == 0)
        CHECK(recurse(20000, &top) == 2 * 20001);
    limit.rlim_cur = 64ul << 20;
    if (getenv("DEEPEST") && setrlimit(RLIMIT_STACK, &limit) == 0)
        CHECK(recurse(40000, &top) == 2 * 40001);
    puts("stack");
}

static void small_limits(void)
{
    struct rlimit files = { 4, 4 }, size = { 1000, 1000 }, space = { 1ul << 20, 1ul << 20 };
    int status, fd;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0 && setrlimit(RLIMIT_FSIZE, &size) == 0);
        CHECK(setrlimit(RLIMIT_AS, &space) == 0);
        CHECK(mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == ENOMEM);
        while ((fd = dup(0)) >= 0)
            CHECK(fd < 4);
        CHECK(errno == EMFILE);
        CHECK(recurse(100, (char[]){ 1 }) == 202);
        _exit(3);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3);
    puts("limits");
}

static void other_root(void)
{
    int status;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        if (chroot("/proc/self/fdinfo") == 0) /* root only */
            CHECK(chdir("/") == 0 && open("/etc/passwd", O_RDONLY) < 0 && errno == ENOENT);
        CHECK(prctl(PR_SET_DUMPABLE, 0) == 0 && prctl(PR_GET_DUMPABLE) == 0);
        _exit(4);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 4);
    CHECK(prctl(PR_SET_DUMPABLE, 0) == 0);
    own_mappings();
    puts("root");
}

/* Code that ran is replaced by other code at the same place, by a mapping over it. */
static void over_code(void)
{
    static const unsigned char returns[] = { 0xb8, 0, 0, 0, 0, 0xc3 }; /* mov eax, N; ret */
    unsigned char *place = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(place != MAP_FAILED);
    for (int i = 1; i < 20; i++) {
        CHECK(mmap(place, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == place);
        memcpy(place, returns, sizeof(returns));
        place[1] = (unsigned char)i;
        CHECK(mprotect(place, 4096, PROT_READ | PROT_EXEC) == 0);
        CHECK(((int (*)(void))(uintptr_t)place)() == i);
    }
    puts("over code");
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1) {
        puts("executed anew");
        return 0;
    }
    descriptors();
    own_mappings();
    own_code();
    reserve();
    deep_stack();
    small_limits();
    other_root();
    over_code();
    unsetenv("LD_PRELOAD");
    execv("/proc/self/exe", (char *[]){ argv[0], "again", NULL });
    return 1;
}
