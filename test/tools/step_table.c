// SPDX-License-Identifier: MIT
/* step_table.c - how many of the instructions that a program executes the simulation's table lacks
 *
 * usage: step_table MOST PROGRAM [ARGUMENT...]
 *
 * Runs the program one instruction at a time, MOST of them at most, and prints for each mnemonic that
 * replay/simulate/instructions.def lacks, or lacks in the shape in which it ran, how often it ran and an example of it, most
 * first; then the sum, and all that ran.  One thread; the rounds of a string instruction with a prefix count one by one. */
#include "replay/simulate/insn.h"

#include <Zydis/Zydis.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CACHE = 1 << 18, BYTES = 15 };

struct code {
    uint64_t address;
    uint8_t bytes[BYTES];
    uint16_t mnemonic;
    bool is_lacking;
};

struct count {
    uint64_t steps;
    uint64_t address; /* of an example */
    uint8_t bytes[BYTES];
};

static struct {
    pid_t pid;
    int mem;
    uint64_t steps;
    struct code cache[CACHE];
    struct count lacking[ZYDIS_MNEMONIC_MAX_VALUE + 1];
} run;

static void start(char **argv)
{
    char path[64];
    int status;

    run.pid = fork();
    if (run.pid == 0) {
        personality(ADDR_NO_RANDOMIZE);
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0)
            execvp(argv[0], argv);
        perror(argv[0]);
        _exit(126);
    }
    snprintf(path, sizeof(path), "/proc/%d/mem", (int)run.pid);
    if (run.pid < 0 || waitpid(run.pid, &status, 0) != run.pid || !WIFSTOPPED(status) ||
        (run.mem = open(path, O_RDONLY | O_CLOEXEC)) < 0) {
        fprintf(stderr, "step_table: %s does not start\n", argv[0]);
        exit(77);
    }
    ptrace(PTRACE_SETOPTIONS, run.pid, NULL, PTRACE_O_EXITKILL);
}

/* What is mapped later at the same address is not seen: few programs do that. */
static const struct code *code_at(uint64_t address)
{
    struct code *code = &run.cache[(address ^ address >> 18) % CACHE];
    struct tbd_sim_insn *insn;

    if (code->address == address)
        return code;
    *code = (struct code){ .address = address, .is_lacking = true };
    if (pread(run.mem, code->bytes, BYTES, (off_t)address) != BYTES) /* it may end with its page */
        for (int n = 0; n < BYTES && pread(run.mem, &code->bytes[n], 1, (off_t)address + n) == 1;)
            n++;
    if (tbd_insn_make(address, code->bytes, BYTES, &insn) != TBD_OK)
        return code;
    code->mnemonic = insn->mnemonic;
    code->is_lacking = insn->kind == TBD_INSN_UNKNOWN || insn->kind == TBD_INSN_HAVOC;
    tbd_insn_free(insn);
    return code;
}

static void count_step(uint64_t pc)
{
    const struct code *code = code_at(pc);
    struct count *count = &run.lacking[code->mnemonic];

    run.steps++;
    if (!code->is_lacking)
        return;
    count->steps++;
    count->address = code->address;
    memcpy(count->bytes, code->bytes, BYTES);
}

static void step(uint64_t most)
{
    struct user_regs_struct regs;
    siginfo_t info;
    int status, send = 0;

    while (run.steps < most && ptrace(PTRACE_GETREGS, run.pid, NULL, &regs) == 0) {
        count_step(regs.rip);
        if (ptrace(PTRACE_SINGLESTEP, run.pid, NULL, (void *)(intptr_t)send) != 0 ||
            waitpid(run.pid, &status, 0) != run.pid || !WIFSTOPPED(status))
            return;
        send = WSTOPSIG(status);
        if (send == SIGTRAP && ptrace(PTRACE_GETSIGINFO, run.pid, NULL, &info) == 0 &&
            info.si_code != SI_USER && info.si_code != SI_TKILL)
            send = 0;
    }
    kill(run.pid, SIGKILL);
}

static int by_steps(const void *a, const void *b)
{
    const struct count *x = a, *y = b;

    return x->steps < y->steps ? 1 : -(x->steps > y->steps);
}

static void print_row(const struct count *count)
{
    ZydisDisassembledInstruction text;

    if (!ZYAN_SUCCESS(ZydisDisassembleIntel(ZYDIS_MACHINE_MODE_LONG_64, count->address,
                                            count->bytes, BYTES, &text)))
        snprintf(text.text, sizeof(text.text), "not an instruction");
    printf("%" PRIu64 " %s\n", count->steps, text.text);
}

int main(int argc, char **argv)
{
    uint64_t sum = 0;

    if (argc < 3)
        return 2;
    start(argv + 2);
    step(strtoull(argv[1], NULL, 10));
    qsort(run.lacking, ZYDIS_MNEMONIC_MAX_VALUE + 1, sizeof(run.lacking[0]), by_steps);
    for (const struct count *row = run.lacking; row->steps != 0; row++) {
        print_row(row);
        sum += row->steps;
    }
    printf("%" PRIu64 " of %" PRIu64 " steps, %.4f %%\n", sum, run.steps,
           100.0 * (double)sum / (double)(run.steps ? run.steps : 1));
    return 0;
}
