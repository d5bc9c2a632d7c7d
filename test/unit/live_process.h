// SPDX-License-Identifier: MIT
/* live_process.h - a forked child under ptrace as a source of regions, registers and memory, so
 * that symbols and stacks are tested against a real process without a trace */
#ifndef TBD_TEST_LIVE_PROCESS_H
#define TBD_TEST_LIVE_PROCESS_H

#include "format/trace/trace.h"
#include "query/session/code/stack.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIVE_MAX_REGIONS 256

struct live {
    pid_t pid;
    int memory;
    struct tbd_region regions[LIVE_MAX_REGIONS];
    size_t region_count;
};

static inline void live_take_line(struct live *live, const char *line)
{
    struct tbd_region *region = &live->regions[live->region_count];
    char prot[8] = "", path[4096] = "";
    unsigned major, minor;

    memset(region, 0, sizeof(*region));
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64 " %4095[^\n]",
               &region->start, &region->end, prot, &region->file_offset, &major, &minor,
               &region->inode, path) < 7)
        return;
    region->prot = (uint32_t)((prot[0] == 'r' ? PROT_READ : 0) | (prot[1] == 'w' ? PROT_WRITE : 0) |
                              (prot[2] == 'x' ? PROT_EXEC : 0));
    region->path = strdup(path);
    live->region_count++;
}

static inline void live_read_maps(struct live *live)
{
    char path[64], line[8192];
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/maps", live->pid);
    file = fopen(path, "r");
    while (file && fgets(line, sizeof(line), file) && live->region_count < LIVE_MAX_REGIONS)
        live_take_line(live, line);
    if (file)
        fclose(file);
}

/* Runs `body` in a child that stops with SIGSTOP first; the child exits with what body returns. */
static inline bool live_start(struct live *live, int (*body)(void))
{
    char path[64];
    int status;

    memset(live, 0, sizeof(*live));
    live->pid = fork();
    if (live->pid == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        _exit(body());
    }
    if (live->pid < 0 || waitpid(live->pid, &status, 0) != live->pid || !WIFSTOPPED(status))
        return false;
    ptrace(PTRACE_SETOPTIONS, live->pid, 0, PTRACE_O_EXITKILL);
    snprintf(path, sizeof(path), "/proc/%d/mem", live->pid);
    live->memory = open(path, O_RDONLY | O_CLOEXEC);
    live_read_maps(live);
    return live->memory >= 0 && live->region_count > 0;
}

static inline void live_end(struct live *live)
{
    kill(live->pid, SIGKILL);
    waitpid(live->pid, NULL, 0);
    close(live->memory);
    for (size_t i = 0; i < live->region_count; i++)
        free((void *)(uintptr_t)live->regions[i].path);
}

static inline bool live_read(void *context, uint64_t address, void *out, size_t bytes)
{
    struct live *live = context;

    return pread(live->memory, out, bytes, (off_t)address) == (ssize_t)bytes;
}

static inline struct tbd_regs live_regs(const struct live *live)
{
    struct user_regs_struct u;
    struct tbd_regs regs = { 0 };

    ptrace(PTRACE_GETREGS, live->pid, 0, &u);
    const uint64_t gpr[TBD_REG_COUNT] = { u.rax, u.rcx, u.rdx, u.rbx, u.rsp, u.rbp, u.rsi, u.rdi,
                                          u.r8,  u.r9,  u.r10, u.r11, u.r12, u.r13, u.r14, u.r15 };
    memcpy(regs.gpr, gpr, sizeof(gpr));
    regs.rip = u.rip;
    regs.rflags = u.eflags;
    return regs;
}

#endif
