// SPDX-License-Identifier: MIT
/* step_pcs.c - runs a program natively, instruction by instruction, and prints where its first thread was
 *
 *     step_pcs MOST STEPS PROGRAM [ARGUMENT ...]
 *
 * The variable XX_PRELOAD is the program's LD_PRELOAD.  It runs up to its first int3, from where it is stepped.  The last MOST addresses before it died of a signal, after the lines of /proc/PID/maps; 77 after STEPS instructions.  The rounds of a
 * string instruction with a prefix count as one.  Nothing of tbd is used: it is what rings are compared with. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

struct stepping {
    pid_t pid;
    uint64_t *pcs; /* the last `most`, in a circle */
    uint64_t most, count, steps;
};

/* In place: what the program has on its stack is as long as it was. */
static void name_preload(void)
{
    for (char **variable = environ; *variable != NULL; variable++)
        if (strncmp(*variable, "XX_PRELOAD=", strlen("XX_PRELOAD=")) == 0)
            memcpy(*variable, "LD", 2);
}

static void start(char **argv)
{
    name_preload();
    personality(ADDR_NO_RANDOMIZE);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0)
        execv(argv[0], argv);
    perror(argv[0]);
    _exit(126);
}

static bool is_string(uint8_t opcode)
{
    return (opcode >= 0xa4 && opcode <= 0xa7) || (opcode >= 0xaa && opcode <= 0xaf) ||
           (opcode >= 0x6c && opcode <= 0x6f);
}

/* Is the instruction at `pc` one that is repeated? */
static bool is_repeated(const struct stepping *s, uint64_t pc)
{
    bool has_prefix = false;
    uint64_t word;

    errno = 0;
    word = (uint64_t)ptrace(PTRACE_PEEKTEXT, s->pid, pc, NULL);
    if (errno != 0)
        return false;
    for (unsigned i = 0; i < 7; i++, word >>= 8) {
        uint8_t byte = (uint8_t)word;

        if (byte == 0xf2 || byte == 0xf3)
            has_prefix = true;
        else if (byte != 0x66 && (byte & 0xf0) != 0x40)
            return has_prefix && is_string(byte);
    }
    return false;
}

static void take(struct stepping *s, uint64_t pc)
{
    if (s->count != 0 && s->pcs[(s->count - 1) % s->most] == pc && is_repeated(s, pc))
        return;
    s->pcs[s->count++ % s->most] = pc;
}

static void print(const struct stepping *s)
{
    uint64_t first = s->count > s->most ? s->count - s->most : 0;

    for (uint64_t i = first; i < s->count; i++)
        printf("%" PRIx64 "\n", s->pcs[i % s->most]);
}

static void print_maps(pid_t pid)
{
    char path[64], line[4300];
    FILE *maps;

    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    maps = fopen(path, "r");
    while (maps != NULL && fgets(line, sizeof(line), maps) != NULL)
        fputs(line, stdout);
    if (maps != NULL)
        fclose(maps);
    puts("");
}

static bool is_caught(const struct stepping *s, int signo)
{
    char path[64], line[256];
    unsigned long long caught = 0;
    FILE *status;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)s->pid);
    status = fopen(path, "r");
    while (status != NULL && fgets(line, sizeof(line), status) != NULL)
        sscanf(line, "SigCgt: %llx", &caught);
    if (status != NULL)
        fclose(status);
    return (caught >> (signo - 1) & 1) != 0;
}

/* Does the program die of it?  What a handler catches does not end the stepping. */
static bool is_fatal(const struct stepping *s, int signo)
{
    return (signo == SIGSEGV || signo == SIGABRT || signo == SIGFPE || signo == SIGILL) &&
           !is_caught(s, signo);
}

/* What comes before would take most of the time. */
static bool run_to_trap(const struct stepping *s)
{
    int status;

    return ptrace(PTRACE_CONT, s->pid, NULL, 0) == 0 &&
           waitpid(s->pid, &status, __WALL) == s->pid && WIFSTOPPED(status) &&
           WSTOPSIG(status) == SIGTRAP;
}

/* 0 when it has died; otherwise an exit status. */
static int step(struct stepping *s)
{
    struct user_regs_struct regs, now;
    int status, signo = 0;

    while (s->steps-- != 0) {
        if (ptrace(PTRACE_GETREGS, s->pid, NULL, &regs) != 0)
            return 1;
        if (signo == 0 || !is_caught(s, signo)) /* else a handler begins now */
            take(s, regs.rip);
        if (ptrace(PTRACE_SINGLESTEP, s->pid, NULL, signo) != 0 ||
            waitpid(s->pid, &status, __WALL) != s->pid || !WIFSTOPPED(status))
            return 1;
        signo = WSTOPSIG(status);
        if (signo == SIGTRAP)
            signo = 0;
        if (signo == 0)
            continue;
        if (is_fatal(s, signo))
            return 0;
        if (ptrace(PTRACE_GETREGS, s->pid, NULL, &now) == 0 && now.rip == regs.rip)
            s->count--; /* it has not run: it begins again, perhaps after a handler */
    }
    return 77;
}

int main(int argc, char **argv)
{
    struct stepping s = { .pid = 0 };
    int status, result;

    if (argc < 4)
        return 2;
    s.most = strtoull(argv[1], NULL, 10);
    s.steps = strtoull(argv[2], NULL, 10);
    s.pcs = calloc(s.most + 1, sizeof(*s.pcs));
    s.pid = fork();
    if (s.pid == 0)
        start(argv + 3);
    if (s.pcs == NULL || s.most == 0 || s.pid < 0 || waitpid(s.pid, &status, 0) != s.pid ||
        !WIFSTOPPED(status))
        return 1;
    ptrace(PTRACE_SETOPTIONS, s.pid, NULL, PTRACE_O_EXITKILL);
    result = run_to_trap(&s) ? step(&s) : 1;
    if (result == 0) {
        print_maps(s.pid);
        print(&s);
    }
    kill(s.pid, SIGKILL);
    waitpid(s.pid, &status, __WALL);
    free(s.pcs);
    return result;
}
