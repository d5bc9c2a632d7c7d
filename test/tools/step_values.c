// SPDX-License-Identifier: MIT
/* step_values.c - how much a simulation finds of what a program that crashes held, against single-stepping
 *
 * usage: step_values LAST RECORD PROGRAM [ARGUMENT...]
 *
 * Runs the program one instruction at a time until it dies of a signal, and keeps what its registers, flags and memory
 * operands held before each of the last LAST instructions, and half as many before them.  A simulation then gets the instructions, the registers and memory
 * at the end, and what the option record=RECORD would have recorded on the way (recorded.h).  Prints, for each distance from the end, how
 * many register uses and memory operands read are exact and right, inferred and right, wrong, unknown.  Status 1: an exact
 * value is wrong.  STEP_PRELOAD: a library for the program alone.  STEP_FROM_TRAP: the program runs at
 * full speed up to a trap instruction in it; what it does after is what is stepped.  STEP_WHY=N: also says where what is unknown in the last N
 * instructions begins, and what wrong values rest on.  STEP_FAR=N: prints the same of the 1,000 instructions from N before the end on, once with
 * everything wanted, once with these alone (tbd_simulation_focus()).  Repeated string instructions count as one.  One thread. */
#include "reasons.h"
#include "recorded.h"

#include "hooks/table/syscalls.h"
#include "replay/simulate/operations.h"
#include "replay/simulate/simulate.h"

#include <Zydis/Zydis.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <asm/unistd_64.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { READS = 4, CACHE = 1 << 16, PAGES = 1 << 13 };

/* What there was before one instruction. */
struct moment {
    struct user_regs_struct regs;
    uint8_t code[16];
    uint64_t memory[READS]; /* of its first memory operands, as far as they were read */
    uint8_t read;           /* mask of those */
    bool is_cut;            /* a signal came before it, or while it ran */
};

struct code {
    uint64_t address;
    uint8_t bytes[16];
    struct tbd_sim_insn *insn;
};

struct mapping {
    uint64_t start, end, offset;
    int fd;            /* of its file */
    bool is_relocated; /* ld.so has written there before */
};

static struct {
    pid_t pid;
    int mem;
    struct moment *ring;
    size_t asked;       /* of the last steps */
    size_t why;         /* of the last steps: reasons are printed */
    size_t last, count; /* count: of all steps; last: of those that are kept, half as many again */
    struct code *cache;
    struct mapping *mappings;
    size_t mapping_count;
    struct recorded recorded;
} run;

static void give_up(const char *what)
{
    fprintf(stderr, "step_values: %s: %s\n", what, strerror(errno));
    exit(77);
}

/* ---- the program ---- */

static void start(char **argv)
{
    int status;
    char path[64];

    run.pid = fork();
    if (run.pid < 0)
        give_up("fork");
    if (run.pid == 0) {
        personality(ADDR_NO_RANDOMIZE);
        if (getenv("STEP_PRELOAD"))
            setenv("LD_PRELOAD", getenv("STEP_PRELOAD"), 1);
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        execvp(argv[0], argv);
        _exit(127);
    }
    if (waitpid(run.pid, &status, 0) != run.pid || !WIFSTOPPED(status))
        give_up(argv[0]);
    ptrace(PTRACE_SETOPTIONS, run.pid, NULL, (void *)PTRACE_O_EXITKILL);
    snprintf(path, sizeof(path), "/proc/%d/mem", (int)run.pid);
    run.mem = open(path, O_RDONLY | O_CLOEXEC);
    if (run.mem < 0)
        give_up(path);
}

/* Lets it run to a trap instruction. */
static bool run_to_trap(void)
{
    int status, send = 0;

    do {
        if (ptrace(PTRACE_CONT, run.pid, NULL, (void *)(intptr_t)send) != 0 ||
            waitpid(run.pid, &status, 0) != run.pid || !WIFSTOPPED(status))
            return false;
        send = WSTOPSIG(status);
    } while (send != SIGTRAP);
    return true;
}

static bool peek(uint64_t address, void *out, size_t bytes)
{
    return pread(run.mem, out, bytes, (off_t)address) == (ssize_t)bytes;
}

static struct code *code_at(uint64_t address)
{
    struct code *code = &run.cache[(address ^ address >> 16) % CACHE];

    if (code->address == address)
        return code;
    tbd_insn_free(code->insn);
    *code = (struct code){ .address = address };
    if (!peek(address, code->bytes, 15)) /* it may end with its page */
        for (size_t n = 0; n < 15 && peek(address + n, &code->bytes[n], 1);)
            n++;
    if (tbd_insn_make(address, code->bytes, 15, &code->insn) != TBD_OK)
        code->insn = NULL;
    return code;
}

static struct tbd_bits truth(const struct user_regs_struct *r, unsigned place)
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
static void note_memory(struct moment *moment, const struct tbd_sim_insn *insn)
{
    struct tbd_solver solver;

    if (insn->memory_count == 0)
        return;
    tbd_solver_begin(&solver, insn);
    for (size_t i = 0; i < insn->read_count; i++)
        tbd_solver_learn(&solver, insn->reads[i].slot, truth(&moment->regs, insn->reads[i].place));
    tbd_solver_solve(&solver, insn);
    for (size_t i = 0; i < insn->memory_count && i < READS; i++) {
        const struct tbd_insn_memory *m = &insn->memory[i];

        if (!m->write && tbd_bits_full(solver.slot[m->address]) &&
            peek(solver.slot[m->address].value + m->offset, &moment->memory[i], m->bytes))
            moment->read |= (uint8_t)(1u << i);
    }
}

static void note(const struct user_regs_struct *regs)
{
    struct moment *moment = &run.ring[run.count % run.last];
    const struct moment *before = &run.ring[(run.count - 1) % run.last];
    struct code *code = code_at(regs->rip);

    if (run.count > 0 && before->regs.rip == regs->rip && code->insn != NULL && code->insn->repeats)
        return;
    recorded_step(&run.recorded, run.count, regs, code->bytes);
    memset(moment, 0, sizeof(*moment));
    moment->regs = *regs;
    memcpy(moment->code, code->bytes, 16);
    if (code->insn != NULL)
        note_memory(moment, code->insn);
    run.count++;
}

/* Steps until a signal kills it; returns the registers then. */
static bool step_to_end(struct user_regs_struct *regs, int *signo)
{
    int status, send = 0;
    siginfo_t info;

    for (;;) {
        ptrace(PTRACE_GETREGS, run.pid, NULL, regs);
        if (send == 0) /* else the step that was noted did not run: the signal comes before it */
            note(regs);
        else if (run.count != 0) {
            run.ring[(run.count - 1) % run.last].is_cut = true;
            recorded_interrupted(&run.recorded);
        }
        if (ptrace(PTRACE_SINGLESTEP, run.pid, NULL, (void *)(intptr_t)send) != 0 ||
            waitpid(run.pid, &status, 0) != run.pid || !WIFSTOPPED(status))
            return false;
        send = WSTOPSIG(status);
        if (send == SIGTRAP && ptrace(PTRACE_GETSIGINFO, run.pid, NULL, &info) == 0 &&
            info.si_code != SI_USER && info.si_code != SI_TKILL)
            send = 0;
        if (send == SIGSEGV || send == SIGBUS || send == SIGFPE || send == SIGILL ||
            send == SIGABRT) {
            ptrace(PTRACE_GETREGS, run.pid, NULL, regs);
            *signo = send;
            return true;
        }
    }
}

/* ---- what the simulation is told ---- */

/* Pages at the end, each read once. */
static const struct page {
    uint64_t address; /* plus 1 if there is none */
    uint8_t bytes[4096];
} * page_at(uint64_t address)
{
    static struct page *pages;
    struct page *page;

    address &= ~4095ull;
    if (pages == NULL && (pages = calloc(PAGES, sizeof(*pages))) == NULL)
        give_up("memory");
    page = &pages[address / 4096 * 0x9e3779b97f4a7c15ull % PAGES];
    if ((page->address & ~1ull) == address && address != 0)
        return page;
    page->address = address + !peek(address, page->bytes, 4096);
    return page;
}

static struct tbd_bits final_memory(void *arg, uint64_t address)
{
    const struct page *page = page_at(address);
    uint64_t value;

    (void)arg;
    if (page->address & 1)
        return (struct tbd_bits){ 0, 0 };
    memcpy(&value, page->bytes + address % 4096, sizeof(value));
    return tbd_bits_of(value);
}

static void read_mappings(void)
{
    char path[64], line[1024], name[512], kind[8];
    struct mapping m = { .fd = -1 };
    FILE *maps;

    snprintf(path, sizeof(path), "/proc/%d/maps", (int)run.pid);
    maps = fopen(path, "re");
    if (maps == NULL)
        give_up(path);
    run.mappings = calloc(4096, sizeof(*run.mappings));
    while (run.mappings != NULL && run.mapping_count < 4096 && fgets(line, sizeof(line), maps)) {
        *name = '\0';
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %511s", &m.start, &m.end,
                   kind, &m.offset, name) < 4)
            continue;
        if (kind[1] == 'w' && run.mapping_count > 0 &&
            run.mappings[run.mapping_count - 1].end == m.start)
            run.mappings[run.mapping_count - 1].is_relocated = true;
        if (kind[1] == 'w' || *name != '/')
            continue;
        m.is_relocated = false;
        m.fd = open(name, O_RDONLY | O_CLOEXEC);
        if (m.fd >= 0)
            run.mappings[run.mapping_count++] = m;
    }
    fclose(maps);
}

static struct tbd_bits constant_at(uint64_t address)
{
    uint64_t in_file;

    for (size_t i = 0; i < run.mapping_count; i++) {
        const struct mapping *m = &run.mappings[i];

        if (address < m->start || address >= m->end || m->is_relocated)
            continue;
        if (tbd_bits_full(final_memory(NULL, address)) &&
            pread(m->fd, &in_file, 8, (off_t)(address - m->start + m->offset)) == 8 &&
            final_memory(NULL, address).value == in_file)
            return tbd_bits_of(in_file);
        break;
    }
    return (struct tbd_bits){ 0, 0 };
}

/* What cannot be written, and is what the file has.  Not what ld.so has written before: it lies before what can be written. */
static struct tbd_bits constant_memory(void *arg, uint64_t address)
{
    static struct {
        uint64_t address;
        struct tbd_bits bits;
        bool is_there;
    } words[CACHE];
    size_t at = (address / 8 ^ address >> 20) % CACHE;

    (void)arg;
    if (!words[at].is_there || words[at].address != address) {
        words[at].address = address;
        words[at].bits = constant_at(address);
        words[at].is_there = true;
    }
    return words[at].bits;
}

static size_t fixed_since(void *arg, uint64_t address)
{
    size_t first = run.count - 1 > run.last ? run.count - run.last : 0, since;

    (void)arg;
    for (size_t i = 0; i < run.mapping_count; i++) {
        if (address < run.mappings[i].start || address >= run.mappings[i].end)
            continue;
        since = recorded_fixed_since(&run.recorded, address & ~4095ull);
        return since == SIZE_MAX || since < first ? since == SIZE_MAX ? since : 0 : since - first;
    }
    return SIZE_MAX;
}

static bool call_writes(void *arg, uint64_t number, const uint64_t args[6], unsigned known,
                        struct tbd_sim_range out[6], size_t *out_count)
{
    struct tbd_sys_call call = { .number = number };
    struct tbd_sys_range ranges[6];

    (void)arg;
    memcpy(call.args, args, sizeof(call.args));
    if (!tbd_syscall_bounds(&call, known, ranges, out_count))
        return false;
    for (size_t i = 0; i < *out_count; i++)
        out[i] = (struct tbd_sim_range){ ranges[i].address, ranges[i].bytes };
    return true;
}

static const struct moment *moment_at(size_t i)
{
    size_t first = run.count > run.last ? run.count - run.last : 0;

    return &run.ring[(first + i) % run.last];
}

/* xmm0 to 15 at the end. */
static void know_vectors(struct tbd_simulation *sim)
{
    struct user_fpregs_struct fp;
    uint64_t lane;

    if (ptrace(PTRACE_GETFPREGS, run.pid, NULL, &fp) != 0)
        return;
    for (unsigned i = 0; i < 32; i++) {
        memcpy(&lane, (const uint8_t *)fp.xmm_space + 8 * (size_t)i, 8);
        tbd_simulation_know(sim, TBD_PLACE_VECTOR + 8 * (i / 2) + i % 2, tbd_bits_of(lane));
    }
}

static void know_all(struct tbd_simulation *sim, const struct user_regs_struct *regs)
{
    for (unsigned place = 0; place < TBD_PLACE_VECTOR; place++)
        tbd_simulation_know(sim, place, truth(regs, place));
}

/* What was recorded before step `i`. */
static void know_recorded(struct tbd_simulation *sim, size_t first, size_t i)
{
    const struct recorded_set *set = recorded_set_at(&run.recorded, first + i);
    const struct recorded_call *call = recorded_call_before(&run.recorded, first + i);
    const struct moment *moment = moment_at(i);

    if (call != NULL && i > 0)
        recorded_tell_call(call, sim);
    if (set == NULL)
        return;
    know_all(sim, &moment->regs);
    recorded_tell_bytes(sim, moment->regs.rsp, set->stack, set->stack_bytes);
}

static bool is_sigreturn(const struct moment *moment)
{
    return moment->code[0] == 0x0f && moment->code[1] == 0x05 &&
           moment->regs.rax == __NR_rt_sigreturn;
}

/* The last moment is that of the instruction that did not run. */
static size_t add_steps(struct tbd_simulation *sim, size_t steps)
{
    size_t first = run.count > run.last ? run.count - run.last : 0;

    for (size_t i = 0; i < steps; i++) {
        const struct moment *moment = moment_at(i);
        struct tbd_sim_insn *insn;
        size_t length;
        bool returns;

        if (tbd_insn_make(moment->regs.rip, moment->code, 15, &insn) != TBD_OK)
            give_up("an instruction");
        length = insn->length;
        know_recorded(sim, first, i);
        if (moment->is_cut && tbd_simulation_interrupted(sim, moment->regs.rip) != TBD_OK)
            give_up("an interruption");
        returns = is_sigreturn(moment) && !moment->is_cut && i + 1 < steps;
        if ((returns ? tbd_simulation_add_return(sim, moment->regs.rip, moment_at(i + 1)->regs.rip)
                     : tbd_simulation_add(sim, moment->regs.rip, moment->code, length)) != TBD_OK)
            give_up("a step");
        if (i + 1 < steps && !returns &&
            (moment->is_cut || !tbd_insn_leads_to(insn, moment_at(i + 1)->regs.rip)))
            tbd_simulation_break(sim, i);
        tbd_insn_free(insn);
    }
    return steps;
}

/* ---- the comparison ---- */

struct tally {
    size_t exact, inferred, wrong, unknown, exact_wrong;
};

static void judge(struct tally *tally, struct tbd_simulated said, struct tbd_bits is)
{
    uint64_t differs = (said.bits.value ^ is.value) & said.bits.known & is.known;

    if (differs & said.exact)
        tally->exact_wrong++;
    if (differs != 0)
        tally->wrong++;
    else if ((is.known & ~said.exact) == 0)
        tally->exact++;
    else if ((is.known & ~said.bits.known) == 0)
        tally->inferred++;
    else
        tally->unknown++;
}

static void report(const struct tbd_simulation *sim, size_t step, size_t place)
{
    const struct tbd_sim_insn *insn = tbd_simulation_insn(sim, step);

    fprintf(stderr, "exact and wrong: step %zu at %#" PRIx64 ", %s %zu\n", step, insn->address,
            place < TBD_PLACE_COUNT ? "place" : "memory", place % TBD_PLACE_COUNT);
}

/* Steps that truly wrote to the word that an assumption says was left alone. */
static void blame_store(const struct tbd_simulation *sim, const struct tbd_assumption *a,
                        size_t step)
{
    const struct tbd_sim_insn *insn = tbd_simulation_insn(sim, step);
    struct tbd_solver solver;

    tbd_solver_begin(&solver, insn);
    for (size_t i = 0; i < insn->read_count; i++)
        tbd_solver_learn(&solver, insn->reads[i].slot,
                         truth(&moment_at(step)->regs, insn->reads[i].place));
    tbd_solver_solve(&solver, insn);
    for (size_t i = 0; i < insn->memory_count; i++) {
        const struct tbd_insn_memory *m = &insn->memory[i];
        uint64_t at = solver.slot[m->address].value + m->offset;

        if (m->write && tbd_bits_full(solver.slot[m->address]) && at < a->address + 8 &&
            a->address < at + m->bytes)
            fprintf(stderr,
                    "  %#" PRIx64 " is written at step %zu, %#" PRIx64 " %s, %u at %#" PRIx64 "\n",
                    a->address, step, insn->address,
                    ZydisMnemonicGetString((ZydisMnemonic)insn->mnemonic), (unsigned)m->bytes, at);
    }
}

static void blame(const struct tbd_simulation *sim, struct tbd_simulated said)
{
    struct tbd_assumption a;

    for (uint32_t why = said.why; tbd_simulation_assumption(sim, why, &a); why = a.parent)
        for (size_t step = a.from + 1; step < a.to && tbd_simulation_insn(sim, step) != NULL;
             step++)
            blame_store(sim, &a, step);
}

static void judge_one(struct tally *tally, const struct tbd_simulation *sim, size_t step,
                      size_t place, struct tbd_simulated said, struct tbd_bits is)
{
    struct tally before = *tally;

    judge(tally, said, is);
    if (tally->wrong + tally->inferred != before.wrong + before.inferred)
        reasons_count_inferred(sim, said.why, tally->wrong == before.wrong);
    if (tally->exact_wrong != before.exact_wrong && before.exact_wrong < 10)
        report(sim, step, place);
    if (tally->wrong != before.wrong && run.why != 0 && before.wrong < 4000) {
        reasons_of_wrong(sim, step, place, said, is.value);
        if (before.wrong < 400) /* it looks at all steps between */
            blame(sim, said);
    }
}

/* The flags that the instruction looks at: not those that it only leaves alone. */
static uint64_t tested_flags(const struct moment *moment)
{
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    ZydisDecodedInstruction insn;
    ZydisDecoder decoder;

    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, moment->code, 15, &insn, operands)) ||
        insn.cpu_flags == NULL)
        return 0;
    return insn.cpu_flags->tested & TBD_STATUS_FLAGS;
}

/* What the step uses of a place. */
static struct tbd_bits used(const struct moment *moment, unsigned place)
{
    struct tbd_bits is = truth(&moment->regs, place);

    return place == TBD_PLACE_FLAGS ? tbd_bits_only(is, tested_flags(moment)) : is;
}

static void judge_step(const struct tbd_simulation *sim, size_t i, struct tally *tally)
{
    const struct tbd_sim_insn *insn = tbd_simulation_insn(sim, i);
    const struct moment *moment = moment_at(i);

    for (size_t k = 0; k < (size_t)insn->read_count + insn->copy_count; k++) {
        unsigned place =
            k < insn->read_count ? insn->reads[k].place : insn->copies[k - insn->read_count].from;

        if (place > TBD_PLACE_FLAGS || used(moment, place).known == 0)
            continue;
        judge_one(tally, sim, i, place, tbd_simulation_place(sim, i, place), used(moment, place));
    }
    for (size_t k = 0; k < insn->memory_count && k < READS; k++)
        if (moment->read & 1u << k)
            judge_one(tally, sim, i, TBD_PLACE_COUNT + k, tbd_simulation_data(sim, i, k),
                      tbd_bits_of(moment->memory[k]));
}

static void print(size_t distance, const struct tally *t)
{
    double all = (double)(t->exact + t->inferred + t->wrong + t->unknown) / 100.0;

    printf("%zu,%.2f,%.2f,%.2f,%.2f,%zu\n", distance, (double)t->exact / all,
           (double)t->inferred / all, (double)t->wrong / all, (double)t->unknown / all,
           t->exact_wrong);
}

static size_t compare(const struct tbd_simulation *sim, size_t steps)
{
    struct tally tally = { 0 };
    size_t distance = 1000;

    puts("last,exact,inferred,wrong,unknown,exact_but_wrong");
    for (size_t n = 1; n <= steps && n <= run.asked; n++) {
        judge_step(sim, steps - n, &tally);
        if (n == distance || n == steps || n == run.asked) {
            print(n, &tally);
            distance *= 10;
        }
    }
    return tally.exact_wrong;
}

/* ---- a stretch far from the end ---- */

enum { FAR_STEPS = 1000, FOCUS_GRID = 16384, FOCUS_AROUND = 10000 };

static struct tbd_simulation *simulate(const struct user_regs_struct *end, size_t steps,
                                       size_t focus)
{
    struct tbd_simulation_source source = { .final = final_memory,
                                            .constant = constant_memory,
                                            .fixed_since = fixed_since,
                                            .call_writes = call_writes };
    struct tbd_simulation *sim;

    if (tbd_simulation_new(&source, &sim) != TBD_OK)
        give_up("memory");
    add_steps(sim, steps);
    know_all(sim, end);
    know_vectors(sim);
    tbd_simulation_ends_at(sim, end->rip);
    if (focus != 0) {
        size_t from = (focus + FOCUS_AROUND + FOCUS_GRID - 1) / FOCUS_GRID * FOCUS_GRID;
        size_t to = (focus - FAR_STEPS - FOCUS_AROUND) / FOCUS_GRID * FOCUS_GRID;

        tbd_simulation_focus(sim, steps > from ? steps - from : 0, steps - to);
    }
    if (tbd_simulation_run(sim, true) != TBD_OK)
        give_up("simulation");
    return sim;
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* What is known of steps that far from the end, if all are wanted, and if they alone are. */
static void compare_far(const struct tbd_simulation *all, const struct user_regs_struct *end,
                        size_t steps, size_t distance)
{
    struct tally of_all = { 0 }, of_focus = { 0 };
    double before = seconds();
    struct tbd_simulation *sim = simulate(end, steps, distance);

    fprintf(stderr, "focus: %.2f s\n", seconds() - before);
    for (size_t n = 0; n < FAR_STEPS; n++) {
        judge_step(all, steps - distance + n, &of_all);
        judge_step(sim, steps - distance + n, &of_focus);
    }
    print(distance - 1, &of_all); /* as rows of bench/values, which must differ */
    print(distance, &of_focus);
    tbd_simulation_free(sim);
}

int main(int argc, char **argv)
{
    struct tbd_simulation_counts counts;
    struct user_regs_struct end;
    struct tbd_simulation *sim;
    size_t steps, wrong, far;
    double before;
    int signo;

    if (argc < 4)
        return 2;
    run.asked = strtoul(argv[1], NULL, 10);
    run.last = run.asked + run.asked / 2 + 1;
    run.why = getenv("STEP_WHY") ? strtoul(getenv("STEP_WHY"), NULL, 10) : 0;
    run.ring = calloc(run.last, sizeof(*run.ring));
    run.cache = calloc(CACHE, sizeof(*run.cache));
    if (run.ring == NULL || run.cache == NULL)
        give_up("memory");
    start(argv + 3);
    recorded_begin(&run.recorded, (unsigned)strtoul(argv[2], NULL, 10), run.mem,
                   getenv("STEP_FROM_TRAP") == NULL);
    if ((getenv("STEP_FROM_TRAP") && !run_to_trap()) || !step_to_end(&end, &signo)) {
        fprintf(stderr, "step_values: it did not die of a signal\n");
        return 2;
    }
    read_mappings();
    steps = (run.count < run.last ? run.count : run.last) - 1;
    before = seconds();
    sim = simulate(&end, steps, 0);
    before = seconds() - before;
    counts = tbd_simulation_counts(sim);
    wrong = compare(sim, steps);
    if (run.why != 0)
        reasons_of_inferred();
    if (run.why != 0)
        reasons_of_unknown(sim, steps > run.why ? steps - run.why : 0);
    fprintf(
        stderr,
        "signal %d after %zu steps; %zu passes, %zu assumptions, %zu withdrawn, %zu contradictions, %.2f s\n",
        signo, run.count, counts.passes, counts.assumptions, counts.withdrawn,
        counts.contradictions, before);
    far = getenv("STEP_FAR") ? strtoul(getenv("STEP_FAR"), NULL, 10) : 0;
    if (far > 3 * FOCUS_GRID && far < steps)
        compare_far(sim, &end, steps, far);
    kill(run.pid, SIGKILL);
    tbd_simulation_free(sim);
    return wrong != 0;
}
