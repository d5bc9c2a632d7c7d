// SPDX-License-Identifier: MIT
/* patcher_harness.c - runs a function of the test itself under translation, in process */
#include "patcher_harness.h"

#include "patcher/cache.h"
#include "patcher/translate.h"

#include <Zydis/Zydis.h>
#include <asm/prctl.h>
#include <cpuid.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define STACK_BYTES  (8u << 20)
#define OPERAND_AREA (64u << 20)
#define GUARD        4096u
#define MAX_DEFS     65536u
#define MAX_OPS      (64u * MAX_DEFS)

static struct {
    struct tbd_thread *thread;
    uint8_t *gs;
    uint8_t *entries;
    uint8_t *operands;
    uint8_t *stack;
    uint8_t *engine_stack;
    uint8_t *signal_stack;
    struct harness_def *defs;
    uint32_t def_count;
    struct tbd_op *ops;
    uint32_t op_count;
    uint64_t stop;
    uint64_t blocks;
    harness_sink sink;
    void *sink_arg;
    void *back[5];
    bool far;
    bool changes;
    unsigned areas_left;
    uint32_t area_bytes;
    bool constant;
    bool only_counts;
    uint32_t hook_set;
    struct tbd_regs result;
} h;

struct harness_fault harness_fault;

static void *map_at(uintptr_t address, size_t bytes, int prot)
{
    void *p =
        mmap((void *)address, bytes, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (p == MAP_FAILED) {
        perror("mmap");
        abort();
    }
    return p;
}

static void *map(size_t bytes, int prot)
{
    return map_at(0, bytes, prot);
}

/* ---- stream ---- */

static uint32_t define(const struct tbd_block_def *def, const struct tbd_op *ops,
                       const uint8_t *code)
{
    struct harness_def *d;

    (void)code;
    if (h.def_count == MAX_DEFS - 1 || h.op_count + def->op_count > MAX_OPS)
        abort();
    d = &h.defs[++h.def_count];
    d->op = h.ops + h.op_count;
    h.op_count += def->op_count;
    d->def = *def;
    memcpy(d->op, ops, def->op_count * sizeof(*ops));
    return h.def_count;
}

static void report_block(uint32_t id, const uint8_t *record, uint32_t insns)
{
    const struct harness_def *d = &h.defs[id];
    struct harness_event event = { .block = h.blocks, .id = id };

    h.sink(&event, h.sink_arg);
    for (unsigned n = 0; n < d->def.op_count && d->op[n].insn < insns; n++) {
        const struct tbd_op *op = &d->op[n];

        event.op = op;
        event.address = (uint64_t)op->add;
        if (op->base != TBD_BASE_NONE) {
            uint64_t base;

            memcpy(&base, record + op->base, 8);
            event.address += base;
        }
        event.data = record + op->data;
        h.sink(&event, h.sink_arg);
    }
}

static void drain(struct tbd_thread *thread)
{
    const uint32_t *entry = (const uint32_t *)(void *)h.entries;
    const uint32_t *end = (const uint32_t *)(uintptr_t)thread->entry_next;
    const uint8_t *record = h.operands;

    if (h.only_counts) {
        h.blocks += (uint64_t)(end - entry);
        entry = end;
    }
    for (; entry < end; entry++) {
        if (h.sink)
            report_block(*entry, record, UINT32_MAX);
        record += h.defs[*entry].def.operand_bytes;
        h.blocks++;
    }
    if (record != (const uint8_t *)(uintptr_t)thread->operand_next) {
        fprintf(stderr, "operands end at %p, expected %p\n",
                (const void *)(uintptr_t)thread->operand_next, (const void *)record);
        abort();
    }
    thread->entry_next = (uint64_t)(uintptr_t)h.entries;
    thread->operand_next = (uint64_t)(uintptr_t)h.operands;
}

static void boundary(struct tbd_thread *thread)
{
    drain(thread);
    thread->kick = 0;
}

/* ---- callbacks ---- */

static uint64_t executable(struct tbd_app_pc pc, uint64_t want, bool *out_changes)
{
    (void)pc;
    *out_changes = h.changes;
    return want;
}

static bool word(uint64_t address, uint64_t *out, bool *out_constant)
{
    struct iovec to = { out, sizeof(*out) }, from = { (void *)(uintptr_t)address, sizeof(*out) };

    *out_constant = h.constant;
    return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == sizeof(*out);
}

static uint64_t reserve_area(uint64_t lo, uint64_t hi, uint64_t bytes)
{
    uint64_t at = h.far ? 0x200000000000ull : (lo & ~0xfffffull) - bytes;

    (void)hi;
    if (h.areas_left == 0)
        return 0;
    h.areas_left--;
    for (unsigned n = 0; n < 64; n++, at -= bytes) {
        void *p = mmap((void *)(uintptr_t)at, bytes, PROT_READ | PROT_WRITE | PROT_EXEC,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

        if (p != MAP_FAILED)
            return (uint64_t)(uintptr_t)p;
    }
    return 0;
}

static void do_syscall(struct tbd_thread *thread, uint32_t insn_bytes)
{
    uint64_t *r = thread->regs.gpr;

    r[TBD_RAX] = (uint64_t)syscall((long)r[TBD_RAX], r[TBD_RDI], r[TBD_RSI], r[TBD_RDX], r[TBD_R10],
                                   r[TBD_R8], r[TBD_R9]);
    thread->regs.rip += insn_bytes;
    r[TBD_RCX] = thread->regs.rip;
    r[TBD_R11] = thread->regs.rflags;
}

/* Runs one copied instruction with six registers of the program. */
static void run_instruction(struct tbd_thread *thread, const uint8_t *code, uint32_t bytes)
{
    static uint8_t *page;
    uint64_t *r = thread->regs.gpr;
    uint64_t a = r[TBD_RAX], b = r[TBD_RBX], c = r[TBD_RCX], d = r[TBD_RDX], si = r[TBD_RSI],
             di = r[TBD_RDI];

    if (!page)
        page = map(4096, PROT_READ | PROT_WRITE | PROT_EXEC);
    memcpy(page, code, bytes);
    page[bytes] = 0xc3;
    __asm__ volatile("call *%6"
                     : "+a"(a), "+b"(b), "+c"(c), "+d"(d), "+S"(si), "+D"(di)
                     : "r"(page)
                     : "memory");
    r[TBD_RAX] = a;
    r[TBD_RBX] = b;
    r[TBD_RCX] = c;
    r[TBD_RDX] = d;
    r[TBD_RSI] = si;
    r[TBD_RDI] = di;
}

#define SKIPPED 77 /* exit code of a test that was left out */

static void special(struct tbd_thread *thread, enum tbd_special kind, uint32_t insn_bytes)
{
    const uint8_t *code = (const uint8_t *)(uintptr_t)thread->regs.rip;

    switch (kind) {
    case TBD_SPECIAL_RDTSC:
    case TBD_SPECIAL_RDTSCP:
    case TBD_SPECIAL_CPUID:
    case TBD_SPECIAL_XGETBV:
    case TBD_SPECIAL_REP_STORE: run_instruction(thread, code, insn_bytes); break;
    default:
        /* The C library of another machine may choose other string functions. */
        fprintf(stderr, "skipped: special instruction %d at %#llx is for the runtime\n", kind,
                (unsigned long long)thread->regs.rip);
        _exit(SKIPPED);
    }
    thread->regs.rip += insn_bytes;
}

static void bad_code(struct tbd_thread *thread)
{
    if (thread->regs.rip != h.stop) {
        fprintf(stderr, "bad code at %#llx\n", (unsigned long long)thread->regs.rip);
        abort();
    }
    drain(thread);
    h.result = thread->regs;
    __builtin_longjmp(h.back, 1);
}

static void with_vector_state(void (*fn)(void *), void *arg)
{
    fn(arg);
}

static const struct tbd_patcher_callbacks callbacks = {
    .define = define,
    .executable = executable,
    .word = word,
    .reserve_area = reserve_area,
    .syscall = do_syscall,
    .special = special,
    .boundary = boundary,
    .bad_code = bad_code,
    .with_vector_state = with_vector_state,
};

/* ---- faults ---- */

static void regs_of(const ucontext_t *uc, struct tbd_regs *out)
{
    static const int order[TBD_REG_COUNT] = { REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                              REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                              REG_R12, REG_R13, REG_R14, REG_R15 };

    memset(out, 0, sizeof(*out));
    for (unsigned n = 0; n < TBD_REG_COUNT; n++)
        out->gpr[n] = (uint64_t)uc->uc_mcontext.gregs[order[n]];
    out->rip = (uint64_t)uc->uc_mcontext.gregs[REG_RIP];
    out->rflags = (uint64_t)uc->uc_mcontext.gregs[REG_EFL];
}

/* The faulting block has been entered, its record is unfinished. */
static void end_by_fault(const struct tbd_regs *cpu)
{
    bool inside = harness_fault.where.where == TBD_INT_INSIDE;
    bool entered = inside && h.hook_set;

    h.result = harness_fault.state;
    h.thread->entry_next = harness_fault.where.entry_next - (entered ? 4 : 0);
    h.thread->operand_next = harness_fault.where.operand_next;
    drain(h.thread);
    if (entered && h.sink)
        report_block(harness_fault.where.id, (const uint8_t *)(uintptr_t)cpu->gpr[TBD_R14],
                     harness_fault.where.insn);
}

static void on_fault(int signo, siginfo_t *info, void *context)
{
    ucontext_t *uc = context;
    uint8_t *at = info->si_addr;
    struct tbd_regs cpu;

    regs_of(uc, &cpu);
    if (signo == SIGSEGV && at >= h.entries + TBD_ENTRIES_BYTES &&
        at < h.entries + TBD_ENTRIES_BYTES + GUARD) {
        uc->uc_mcontext.gregs[REG_RIP] = (long long)tbd_patcher_boundary_exit(h.thread, cpu.rip);
        return;
    }
    harness_fault.happened = true;
    harness_fault.where = tbd_patcher_interrupted(h.thread, &cpu, &harness_fault.state);
    if (harness_fault.where.where == TBD_INT_NOT_CACHE) {
        fprintf(stderr, "fault %d at %#llx, address %p\n", signo, (unsigned long long)cpu.rip,
                (void *)at);
        signal(signo, SIG_DFL);
        return;
    }
    end_by_fault(&cpu);
    __builtin_longjmp(h.back, 1);
}

/* Before every run: the test framework installs handlers of its own. */
static void catch_faults(void)
{
    struct sigaction sa = { .sa_sigaction = on_fault,
                            .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };
    stack_t ss = { .ss_sp = h.signal_stack, .ss_size = 1 << 20 };

    sigaltstack(&ss, NULL);
    sigaction(SIGSEGV, &sa, NULL);
    sigaction(SIGFPE, &sa, NULL);
    sigaction(SIGBUS, &sa, NULL);
    sigaction(SIGILL, &sa, NULL);
}

/* ---- set-up ---- */

static uint32_t decoder_init(void *decoder, int mode, int width)
{
    return ZydisDecoderInit(decoder, (ZydisMachineMode)mode, (ZydisStackWidth)width);
}

static uint32_t decode_full(const void *decoder, const void *bytes, uint64_t length,
                            void *instruction, void *operands)
{
    return ZydisDecoderDecodeFull(decoder, bytes, length, instruction, operands);
}

const char *harness_obstacle(void)
{
#ifdef __SANITIZE_ADDRESS__
    return "the sanitizer's own memory and code would be part of the test";
#else
    return __builtin_cpu_supports("bmi2") ? NULL : "the processor has no BMI2";
#endif
}

/* Processors whose code runs on this one. */
static const struct processor {
    bool loop_is_slow, has_adx;
} others[] = { { false, false }, { true, false } };
static const struct processor *other;

/* 0, and true in *is_child, in the child; else the child's exit code. */
static int run_as(const struct processor *processor, bool *is_child)
{
    int status = 0;
    pid_t child = fork();

    *is_child = child == 0;
    if (child == 0) {
        other = processor;
        return 0;
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return 1;
    return WEXITSTATUS(status);
}

void harness_also_as_other_processors(void)
{
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        bool is_child = false;
        int code = run_as(&others[i], &is_child);

        if (is_child)
            return;
        if (code == SKIPPED)
            exit(code);
        if (code) {
            printf("failed with the code of processor %zu\n", i);
            exit(1);
        }
    }
}

static void init(const struct tbd_codegen_config *config)
{
    static const struct tbd_decoder_api api = { decoder_init, decode_full, NULL };
    uint8_t *area = map_at(0x100000000000, TBD_THREAD_AREA_BYTES, PROT_READ | PROT_WRITE);

    h.hook_set = config->hook_set;
    h.areas_left = UINT32_MAX;
    h.gs = area + TBD_THREAD_GS_OFFSET;
    h.thread = (struct tbd_thread *)(void *)(h.gs - sizeof(struct tbd_thread));
    h.entries = map(TBD_ENTRIES_BYTES + GUARD, PROT_READ | PROT_WRITE);
    mprotect(h.entries + TBD_ENTRIES_BYTES, GUARD, PROT_NONE);
    h.operands = map(OPERAND_AREA, PROT_READ | PROT_WRITE);
    h.stack = map(STACK_BYTES, PROT_READ | PROT_WRITE);
    h.engine_stack = map(STACK_BYTES, PROT_READ | PROT_WRITE);
    h.defs = map(MAX_DEFS * sizeof(*h.defs), PROT_READ | PROT_WRITE);
    h.ops = map(MAX_OPS * sizeof(*h.ops), PROT_READ | PROT_WRITE);
    h.thread->engine_stack = (uint64_t)(uintptr_t)(h.engine_stack + STACK_BYTES - 256);
    syscall(SYS_arch_prctl, ARCH_SET_GS, h.gs);
    h.signal_stack = map(1 << 20, PROT_READ | PROT_WRITE);
    tbd_patcher_set_decoder(&api);
    tbd_patcher_init(&callbacks, config);
    if (other) {
        tbd_translate_loop_is_slow = other->loop_is_slow;
        tbd_translate_has_adx = other->has_adx;
    }
}

void harness_init(uint32_t hook_set, bool link)
{
    init(&(struct tbd_codegen_config){
        .hook_set = hook_set, .max_insns = TBD_BLOCK_MAX_INSNS, .link = link });
}

void harness_init_free(void)
{
    init(&(struct tbd_codegen_config){ .hook_set = TBD_HOOKS_NONE,
                                       .max_insns = TBD_BLOCK_MAX_INSNS,
                                       .link = true,
                                       .is_free = true });
}

void harness_only_counts(bool counts)
{
    h.only_counts = counts;
}

void harness_configure(uint32_t hook_set, uint32_t max_insns, bool link)
{
    struct tbd_codegen_config config = { .hook_set = hook_set,
                                         .max_insns = max_insns,
                                         .link = link,
                                         .area_bytes = h.area_bytes,
                                         .omits_records = h.only_counts,
                                         .only_counts = h.only_counts };

    h.def_count = 0;
    h.op_count = 0;
    h.hook_set = hook_set;
    tbd_patcher_configure(&config);
}

void harness_changing_code(bool changes)
{
    h.changes = changes;
}

void harness_far_areas(bool far)
{
    h.far = far;
}

void harness_constant_memory(bool constant)
{
    h.constant = constant;
}

void harness_limit_areas(uint32_t bytes, unsigned more)
{
    h.area_bytes = bytes;
    h.areas_left = more;
}

void harness_set_sink(harness_sink sink, void *arg)
{
    h.sink = sink;
    h.sink_arg = arg;
}

const struct harness_def *harness_definition(uint32_t id)
{
    return &h.defs[id];
}

struct tbd_thread *harness_thread(void)
{
    return h.thread;
}

uint64_t harness_blocks(void)
{
    return h.blocks;
}

uint8_t *harness_stack_top(void)
{
    return h.stack + STACK_BYTES - 4096;
}

static uint8_t *cell(uint64_t address)
{
    return h.gs + (((address >> TBD_PAGE_SHIFT) * 2) & 0xffffffffu);
}

bool harness_touched(uint64_t address, bool written)
{
    return cell(address)[written];
}

void harness_clear_touch(uint64_t address)
{
    cell(address)[0] = 0;
    cell(address)[1] = 0;
}

/* ---- running ---- */

/* Not inlined: the jump back must find this frame's registers as it saved them. */
static __attribute__((noinline)) void run_until_stop(void)
{
    if (!__builtin_setjmp(h.back))
        tbd_patcher_run(h.thread);
}

void harness_run(struct tbd_regs *regs, uint64_t stop)
{
    unsigned long fs = 0;

    syscall(SYS_arch_prctl, ARCH_GET_FS, &fs);
    h.thread->regs = *regs;
    h.thread->regs.fs_base = fs;
    h.thread->entry_next = (uint64_t)(uintptr_t)h.entries;
    h.thread->operand_next = (uint64_t)(uintptr_t)h.operands;
    h.thread->self = (uint64_t)(uintptr_t)h.thread;
    h.stop = stop;
    h.blocks = 0;
    harness_fault.happened = false;
    catch_faults();
    run_until_stop();
    *regs = h.result;
}

__attribute__((noinline, naked)) static void stop_here(void)
{
    __asm__("ud2");
}

uint64_t harness_call(void *f, const uint64_t args[6])
{
    struct tbd_regs regs = { .rflags = 0x202 };
    uint64_t sp = (uint64_t)(uintptr_t)harness_stack_top() - 8;
    uint64_t stop = (uint64_t)(uintptr_t)stop_here;

    memcpy((void *)(uintptr_t)sp, &stop, 8);
    regs.rip = (uint64_t)(uintptr_t)f;
    regs.gpr[TBD_RSP] = sp;
    regs.gpr[TBD_RDI] = args[0];
    regs.gpr[TBD_RSI] = args[1];
    regs.gpr[TBD_RDX] = args[2];
    regs.gpr[TBD_RCX] = args[3];
    regs.gpr[TBD_R8] = args[4];
    regs.gpr[TBD_R9] = args[5];
    harness_run(&regs, stop);
    return regs.gpr[TBD_RAX];
}

uint32_t harness_hook_set(void)
{
    return h.hook_set;
}

static void dump_code(const char *what, uint64_t at, uint64_t end)
{
    ZydisDisassembledInstruction i;

    printf("%s\n", what);
    while (at < end && ZYAN_SUCCESS(ZydisDisassembleIntel(ZYDIS_MACHINE_MODE_LONG_64, at,
                                                          (void *)(uintptr_t)at, 15, &i))) {
        printf("    %llx  %s\n", (unsigned long long)at, i.text);
        at += i.info.length;
    }
}

void harness_dump(void)
{
    for (uint32_t id = 1; id <= h.def_count; id++) {
        const struct tbd_block_def *def = &h.defs[id].def;
        const struct tbd_block_code *block = tbd_cache_find(def->start);

        if (!block || block->id != id)
            continue;
        printf("block %u: end %u, %u operand bytes\n", id, def->end, def->operand_bytes);
        dump_code("  program", def->start, def->start + def->code_bytes);
        dump_code("  translated", block->cache_start, block->cache_end);
    }
}
