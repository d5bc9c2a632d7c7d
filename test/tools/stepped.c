// SPDX-License-Identifier: MIT
/* stepped.c - runs a program one instruction at a time (stepped.h) */
#include "stepped.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

struct stepped stepped;

void stepped_give_up(const char *what)
{
    fprintf(stderr, "step_values: %s: %s\n", what, strerror(errno));
    exit(77);
}

void stepped_start(char **argv)
{
    int status;
    char path[64];

    stepped.pid = fork();
    if (stepped.pid < 0)
        stepped_give_up("fork");
    if (stepped.pid == 0) {
        personality(ADDR_NO_RANDOMIZE);
        if (getenv("STEP_PRELOAD"))
            setenv("LD_PRELOAD", getenv("STEP_PRELOAD"), 1);
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        execvp(argv[0], argv);
        _exit(127);
    }
    if (waitpid(stepped.pid, &status, 0) != stepped.pid || !WIFSTOPPED(status))
        stepped_give_up(argv[0]);
    ptrace(PTRACE_SETOPTIONS, stepped.pid, NULL, (void *)PTRACE_O_EXITKILL);
    snprintf(path, sizeof(path), "/proc/%d/mem", (int)stepped.pid);
    stepped.mem = open(path, O_RDONLY | O_CLOEXEC);
    if (stepped.mem < 0)
        stepped_give_up(path);
}

/* Lets it run to a trap instruction. */
bool stepped_run_to_trap(void)
{
    int status, send = 0;

    do {
        if (ptrace(PTRACE_CONT, stepped.pid, NULL, (void *)(intptr_t)send) != 0 ||
            waitpid(stepped.pid, &status, 0) != stepped.pid || !WIFSTOPPED(status))
            return false;
        send = WSTOPSIG(status);
    } while (send != SIGTRAP);
    return true;
}

bool stepped_peek(uint64_t address, void *out, size_t bytes)
{
    return pread(stepped.mem, out, bytes, (off_t)address) == (ssize_t)bytes;
}

static struct stepped_code *code_at(uint64_t address)
{
    struct stepped_code *code = &stepped.cache[(address ^ address >> 16) % CACHE];

    if (code->address == address)
        return code;
    tbd_insn_free(code->insn);
    *code = (struct stepped_code){ .address = address };
    if (!stepped_peek(address, code->bytes, 15)) /* it may end with its page */
        for (size_t n = 0; n < 15 && stepped_peek(address + n, &code->bytes[n], 1);)
            n++;
    if (tbd_insn_make(address, code->bytes, 15, &code->insn) != TBD_OK)
        code->insn = NULL;
    return code;
}

struct tbd_bits stepped_truth(const struct user_regs_struct *r, unsigned place)
{
    const uint64_t gpr[16] = { r->rax, r->rcx, r->rdx, r->rbx, r->rsp, r->rbp, r->rsi, r->rdi,
                               r->r8,  r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15 };

    if (place < 16)
        return tbd_bits_of(gpr[place]);
    switch (place) {
    case TBD_PLACE_FLAGS:
        return (struct tbd_bits){ r->eflags & TBD_STATUS_FLAGS, TBD_STATUS_FLAGS };
    case TBD_PLACE_DF: return tbd_bits_of(r->eflags >> 10 & 1);
    case TBD_PLACE_FS: return tbd_bits_of(r->fs_base);
    case TBD_PLACE_GS: return tbd_bits_of(r->gs_base);
    default: return (struct tbd_bits){ 0, 0 };
    }
}

/* What the instruction is about to read. */
static void note_memory(struct stepped_moment *moment, const struct tbd_sim_insn *insn)
{
    struct tbd_solver solver;

    if (insn->memory_count == 0)
        return;
    tbd_solver_begin(&solver, insn);
    for (size_t i = 0; i < insn->read_count; i++)
        tbd_solver_learn(&solver, insn->reads[i].slot,
                         stepped_truth(&moment->regs, insn->reads[i].place));
    tbd_solver_solve(&solver, insn);
    for (size_t i = 0; i < insn->memory_count && i < READS; i++) {
        const struct tbd_insn_memory *m = &insn->memory[i];

        if (!m->write && tbd_bits_full(solver.slot[m->address]) &&
            stepped_peek(solver.slot[m->address].value + m->offset, &moment->memory[i], m->bytes))
            moment->read |= (uint8_t)(1u << i);
    }
}

static void note(const struct user_regs_struct *regs)
{
    struct stepped_moment *moment = &stepped.ring[stepped.count % stepped.last];
    const struct stepped_moment *before = &stepped.ring[(stepped.count - 1) % stepped.last];
    struct stepped_code *code = code_at(regs->rip);

    if (stepped.count > 0 && before->regs.rip == regs->rip && code->insn != NULL &&
        code->insn->repeats)
        return;
    recorded_step(&stepped.recorded, stepped.count, regs, code->bytes);
    memset(moment, 0, sizeof(*moment));
    moment->regs = *regs;
    memcpy(moment->code, code->bytes, 16);
    if (code->insn != NULL)
        note_memory(moment, code->insn);
    stepped.count++;
}

/* Steps until a signal kills it; returns the registers then. */
bool stepped_to_end(struct user_regs_struct *regs, int *signo)
{
    int status, send = 0;
    siginfo_t info;

    for (;;) {
        ptrace(PTRACE_GETREGS, stepped.pid, NULL, regs);
        if (send == 0) /* else the step that was noted did not run: the signal comes before it */
            note(regs);
        else if (stepped.count != 0) {
            stepped.ring[(stepped.count - 1) % stepped.last].is_cut = true;
            recorded_interrupted(&stepped.recorded);
        }
        if (ptrace(PTRACE_SINGLESTEP, stepped.pid, NULL, (void *)(intptr_t)send) != 0 ||
            waitpid(stepped.pid, &status, 0) != stepped.pid || !WIFSTOPPED(status))
            return false;
        send = WSTOPSIG(status);
        if (send == SIGTRAP && ptrace(PTRACE_GETSIGINFO, stepped.pid, NULL, &info) == 0 &&
            info.si_code != SI_USER && info.si_code != SI_TKILL)
            send = 0;
        if (send == SIGSEGV || send == SIGBUS || send == SIGFPE || send == SIGILL ||
            send == SIGABRT) {
            ptrace(PTRACE_GETREGS, stepped.pid, NULL, regs);
            *signo = send;
            return true;
        }
    }
}

const struct stepped_moment *stepped_moment_at(size_t i)
{
    size_t first = stepped.count > stepped.last ? stepped.count - stepped.last : 0;

    return &stepped.ring[(first + i) % stepped.last];
}
