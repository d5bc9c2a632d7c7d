// SPDX-License-Identifier: MIT
// links: tbd_patcher_host tbd_base Zydis::Zydis
// sources: patcher_harness.c
/* test_patcher_random.c - random instruction sequences: native against translated
 *
 * Each sequence runs natively (ended by a trap or a fault, caught by a signal handler) and under
 * translation from the same start state; registers, flags, vector registers and memory must agree,
 * and the reported stores, undone from the last to the first, must give back the start state.
 * PATCHER_SEED and PATCHER_ROUNDS in the environment choose another run. */
#include "patcher_harness.h"
#include "random_numbers.h"

#include <Zydis/Zydis.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cmocka.h>

#define MEMORY_AT    0x40000000ul /* program data: within reach of the code, not near address 0 */
#define MEMORY_BYTES 0x10000ul
#define STACK_AT     0x40020000ul
#define STACK_BYTES  0x8000ul
#define DUMP_AT      0x40040000ul /* vector registers at the end */
#define LOAD_AT      0x40041000ul /* and at the start */
#define CODE_AT      0x40060000ul
#define CODE_BYTES   4096u
#define STATUS_FLAGS 0xcd5ull

struct memory {
    uint8_t data[MEMORY_BYTES];
    uint8_t stack[STACK_BYTES];
};

static struct memory initial, native_end, undone;
static struct tbd_regs native_regs;
static uint8_t native_vectors[16 * 32];
static sigjmp_buf out_of_native;
static struct tbd_regs start_regs;
static uint8_t *code_at;
static uint64_t body_at;
static bool no_pushf;

/* ---- generating ---- */

static void put(const void *bytes, size_t count)
{
    memcpy(code_at, bytes, count);
    code_at += count;
}

static void put8(unsigned byte)
{
    *code_at++ = (uint8_t)byte;
}

static unsigned tail(uint8_t *out, unsigned at)
{
    unsigned modrm = below(256);
    unsigned mod;

    if (below(3)) /* memory with a short displacement, mostly */
        modrm = (modrm & 0x3f) | (below(3) << 6);
    mod = modrm >> 6;
    out[at++] = (uint8_t)modrm;
    if (mod != 3 && (modrm & 7) == 4)
        out[at++] = (uint8_t)below(256);
    for (unsigned n = 0; n < 12; n++)
        out[at++] = (uint8_t)below(256);
    if (mod == 2 || (mod == 0 && (modrm & 7) == 5)) /* displacements near */
        out[at - 9] = 0, out[at - 10] = 0;
    return at;
}

static unsigned legacy(uint8_t *out)
{
    static const uint8_t prefixes[] = { 0x66, 0xf2, 0xf3, 0x66, 0xf0, 0x67 };
    unsigned at = 0;

    if (!below(3))
        out[at++] = prefixes[below(!below(4) ? 6 : 4)];
    if (below(3))
        out[at++] = (uint8_t)(0x40 + below(16));
    if (!below(2)) {
        out[at++] = 0x0f;
        if (!below(4))
            out[at++] = below(2) ? 0x38 : 0x3a;
    }
    out[at++] = (uint8_t)below(256);
    return tail(out, at);
}

static unsigned vex_or_evex(uint8_t *out)
{
    unsigned at = 0;

    switch (below(4)) {
    case 0:
        out[at++] = 0xc5;
        out[at++] = (uint8_t)below(256);
        break;
    case 1:
        out[at++] = 0x62;
        out[at++] = (uint8_t)((below(256) & 0xf0) | (1 + below(3)));
        out[at++] = (uint8_t)(below(256) | 4);
        out[at++] = (uint8_t)(below(256) & (below(2) ? 0xff : 0x78));
        break;
    default:
        out[at++] = 0xc4;
        out[at++] = (uint8_t)((below(256) & 0xe0) | (1 + below(3)));
        out[at++] = (uint8_t)below(256);
        break;
    }
    out[at++] = (uint8_t)below(256);
    return tail(out, at);
}

/* Excludes instructions that would end the process, depend on the address of the code, or change
 * machine state that the test does not restore. */
static bool is_allowed(const ZydisDecodedInstruction *i, const ZydisDecodedOperand *op)
{
    switch (i->mnemonic) {
    case ZYDIS_MNEMONIC_PUSHF:
    case ZYDIS_MNEMONIC_PUSHFQ: return !no_pushf;
    case ZYDIS_MNEMONIC_POPF:
    case ZYDIS_MNEMONIC_POPFQ:
    case ZYDIS_MNEMONIC_STD:
    case ZYDIS_MNEMONIC_LDMXCSR:
    case ZYDIS_MNEMONIC_VLDMXCSR:
    case ZYDIS_MNEMONIC_FXRSTOR:
    case ZYDIS_MNEMONIC_FXRSTOR64:
    case ZYDIS_MNEMONIC_FLDCW:
    case ZYDIS_MNEMONIC_FLDENV:
    case ZYDIS_MNEMONIC_FRSTOR:
    case ZYDIS_MNEMONIC_WRPKRU:
    case ZYDIS_MNEMONIC_RDPKRU:
    case ZYDIS_MNEMONIC_STAC:
    case ZYDIS_MNEMONIC_CLAC:
    case ZYDIS_MNEMONIC_STR:
    case ZYDIS_MNEMONIC_SLDT:
    case ZYDIS_MNEMONIC_SMSW:
    case ZYDIS_MNEMONIC_LAR:
    case ZYDIS_MNEMONIC_LSL:
    case ZYDIS_MNEMONIC_VERR:
    case ZYDIS_MNEMONIC_VERW:
    case ZYDIS_MNEMONIC_MONITORX:
    case ZYDIS_MNEMONIC_MWAITX:
    case ZYDIS_MNEMONIC_CLZERO:
    case ZYDIS_MNEMONIC_FNSTSW:
    case ZYDIS_MNEMONIC_TPAUSE:
    case ZYDIS_MNEMONIC_UMWAIT:
    case ZYDIS_MNEMONIC_UMONITOR:
    case ZYDIS_MNEMONIC_MCOMMIT: return false;
    default: break;
    }
    if (i->attributes & (ZYDIS_ATTRIB_HAS_SEGMENT_FS | ZYDIS_ATTRIB_HAS_SEGMENT_GS))
        return false; /* the test's own thread data */
    if (i->meta.category == ZYDIS_CATEGORY_XSAVE || i->meta.category == ZYDIS_CATEGORY_XSAVEOPT ||
        i->meta.category == ZYDIS_CATEGORY_AMX_TILE || i->meta.category == ZYDIS_CATEGORY_X87_ALU ||
        i->meta.category == ZYDIS_CATEGORY_GATHER || i->meta.category == ZYDIS_CATEGORY_AVX2GATHER)
        return false;
    for (unsigned n = 0; n < i->operand_count; n++) /* leave rsp to the stack snippets, mostly */
        if (op[n].type == ZYDIS_OPERAND_TYPE_REGISTER &&
            op[n].visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT &&
            (op[n].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
            (op[n].reg.value == ZYDIS_REGISTER_RSP || op[n].reg.value == ZYDIS_REGISTER_ESP ||
             op[n].reg.value == ZYDIS_REGISTER_SP || op[n].reg.value == ZYDIS_REGISTER_SPL))
            return false;
    return true;
}

static ZydisDecoder decoder;

/* One random plain instruction, at code_at; its length. */
static unsigned put_random(void)
{
    uint8_t bytes[32];
    ZydisDecodedInstruction i;
    ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
    struct tbd_insn insn;

    for (;;) {
        memset(bytes, 0, sizeof(bytes));
        if (below(4))
            legacy(bytes);
        else
            vex_or_evex(bytes);
        if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, 15, &i, op)))
            continue;
        if (!tbd_decode(&insn, (uint64_t)(uintptr_t)code_at, bytes, 15))
            continue;
        if ((insn.kind == TBD_INSN_PLAIN || insn.kind == TBD_INSN_NOP) && is_allowed(&i, op))
            break;
    }
    put(bytes, i.length);
    return i.length;
}

/* jcc, loop or jrcxz over the next instruction */
static void put_branch(void)
{
    uint8_t *disp;

    put8(below(4) ? 0x70 + below(16) : 0xe0 + below(4));
    disp = code_at++;
    *disp = (uint8_t)put_random();
}

static void put_near_branch(void)
{
    uint32_t length;
    uint8_t *disp;

    put8(0x0f);
    put8(0x80 + below(16));
    disp = code_at;
    code_at += 4;
    length = put_random();
    memcpy(disp, &length, 4);
}

/* push r; pop r; push imm; call over nothing */
static void put_stack(void)
{
    static const uint8_t call_next[] = { 0xe8, 0, 0, 0, 0 };
    unsigned r = below(16);

    switch (below(5)) {
    case 0:
        if (r >> 3)
            put8(0x41);
        put8(0x50 + (r & 7));
        break;
    case 1:
        if (r == TBD_RSP)
            r = TBD_R14;
        if (r >> 3)
            put8(0x41);
        put8(0x58 + (r & 7));
        break;
    case 2:
        put8(0x6a);
        put8(below(256));
        break;
    case 3: put8(no_pushf ? 0x50 : 0x9c); break;
    default: put(call_next, sizeof(call_next)); break;
    }
}

/* lea r, [rip + after]; push r; ret    or jmp r    or call r    or push r; jmp [rsp] */
static void put_indirect(void)
{
    unsigned r = below(16);
    unsigned kind = below(4);
    unsigned push = r >> 3 ? 2 : 1;
    unsigned lengths[] = { push + 1u, push + 1u, push + 1u, push + 3u };
    uint32_t disp = lengths[kind];

    if (r == TBD_RSP)
        return;
    put8(0x48 | (r >> 3) << 2);
    put8(0x8d);
    put8(5 | (r & 7) << 3);
    put(&disp, 4);
    if (r >> 3)
        put8(0x41);
    switch (kind) {
    case 0:
        put8(0x50 + (r & 7));
        put8(0xc3);
        break;
    case 1:
        put8(0xff);
        put8(0xe0 + (r & 7));
        break;
    case 2:
        put8(0xff);
        put8(0xd0 + (r & 7));
        break;
    default:
        put8(0x50 + (r & 7));
        put8(0xff);
        put8(0x24);
        put8(0x24);
        break;
    }
}

/* mov r, imm32 */
static void put_number(unsigned r, uint32_t number)
{
    if (r >> 3)
        put8(0x41);
    put8(0xb8 + (r & 7));
    put(&number, 4);
}

/* lea r, [rip + after]; push r; lea b, [rsp + 8]; mov i, -1; jmp|call [b + i * 8] */
static void put_indirect_memory(void)
{
    unsigned r = below(16);
    unsigned b = below(16);
    unsigned i = below(16);
    const uint8_t lea_rsp_8[] = { (uint8_t)(0x48 | (b >> 3) << 2), 0x8d,
                                  (uint8_t)((b & 7) << 3 | 0x44), 0x24, 8 };
    const uint8_t movsxd_i[] = { (uint8_t)(0x48 | (i >> 3) * 5), 0x63,
                                 (uint8_t)(0xc0 | (i & 7) * 9) };
    const uint8_t transfer[] = { (uint8_t)(0x40 | (i >> 3) << 1 | b >> 3), 0xff,
                                 (uint8_t)(below(2) ? 0x54 : 0x64),
                                 (uint8_t)(0xc0 | (i & 7) << 3 | (b & 7)), 0 };
    uint8_t *disp;
    uint32_t after;

    if (r == TBD_RSP || b == TBD_RSP || i == TBD_RSP || b == i)
        return;
    put8(0x48 | (r >> 3) << 2);
    put8(0x8d);
    put8(5 | (r & 7) << 3);
    disp = code_at;
    code_at += 4;
    if (r >> 3)
        put8(0x41);
    put8(0x50 + (r & 7));
    put(lea_rsp_8, sizeof(lea_rsp_8));
    put_number(i, UINT32_MAX);
    put(movsxd_i, sizeof(movsxd_i));
    put(transfer, sizeof(transfer));
    after = (uint32_t)(code_at - (disp + 4));
    memcpy(disp, &after, 4);
    put_number(b, 0);
}

/* vmovups between ymm0-15 and a fixed place, rip-relative */
static void put_vectors(unsigned opcode, uint64_t place)
{
    for (unsigned n = 0; n < 16; n++) {
        uint8_t insn[8] = { 0xc5, (uint8_t)(n < 8 ? 0xfc : 0x7c), (uint8_t)opcode,
                            (uint8_t)(5 | (n & 7) << 3) };
        uint32_t disp = (uint32_t)(place + 32 * n - ((uint64_t)(uintptr_t)code_at + 8));

        memcpy(insn + 4, &disp, 4);
        put(insn, sizeof(insn));
    }
}

/* Registers that the host uses too must not carry its pointers into the random program. */
__asm__(".pushsection .rodata\n"
        "clear_mmx: .irp n,0,1,2,3,4,5,6,7\n pxor %mm\\n, %mm\\n\n .endr\n"
        "clear_high: .irp n,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
        " vpxord %zmm\\n, %zmm\\n, %zmm\\n\n .endr\n"
        ".irp n,0,1,2,3,4,5,6,7\n kxorq %k\\n, %k\\n, %k\\n\n .endr\n"
        "clear_end:\n"
        ".popsection\n");
extern const uint8_t clear_mmx[], clear_high[], clear_end[];

static void put_clearing(void)
{
    put(clear_mmx, (size_t)(clear_high - clear_mmx));
    if (__builtin_cpu_supports("avx512bw"))
        put(clear_high, (size_t)(clear_end - clear_high));
}

static uint64_t generate(void)
{
    uint8_t *begin = (uint8_t *)CODE_AT;
    uint64_t stop;

    code_at = begin;
    mprotect(begin, CODE_BYTES, PROT_READ | PROT_WRITE);
    put_clearing();
    put_vectors(0x10, LOAD_AT);
    body_at = (uint64_t)(uintptr_t)code_at;
    for (unsigned n = 4 + below(20); n; n--) {
        switch (below(13)) {
        case 0: put_branch(); break;
        case 1: put_near_branch(); break;
        case 2: put_stack(); break;
        case 3: put_indirect(); break;
        case 4: put_indirect_memory(); break;
        default: put_random(); break;
        }
    }
    put_vectors(0x11, DUMP_AT);
    stop = (uint64_t)(uintptr_t)code_at;
    put8(0x0f);
    put8(0x0b);
    mprotect(begin, CODE_BYTES, PROT_READ | PROT_EXEC);
    return stop;
}

static void make_start(void)
{
    uint64_t *words = (uint64_t *)(void *)&initial;

    for (size_t n = 0; n < sizeof(initial) / 8; n++)
        words[n] = below(2) ? random64() : MEMORY_AT + MEMORY_BYTES / 2 + below(4096);
    memset(&start_regs, 0, sizeof(start_regs));
    for (unsigned r = 0; r < TBD_REG_COUNT; r++) {
        start_regs.gpr[r] =
            MEMORY_AT + MEMORY_BYTES / 2 + (below(2) ? below(2048) & ~63u : below(2048));
        if (!below(4))
            start_regs.gpr[r] = below(2) ? random64() : below(64);
    }
    /* In the middle of a page: pushes of odd sizes must not straddle, as touch.c assumes an aligned
     * rsp. */
    start_regs.gpr[TBD_RSP] = STACK_AT + STACK_BYTES / 2 + 2048 - 8 * below(8);
    start_regs.rip = CODE_AT;
    start_regs.rflags = 0x202 | (random64() & 0x8d5);
    for (unsigned n = 0; n < 16 * 32 / 8; n++)
        ((uint64_t *)LOAD_AT)[n] = random64() & 0x7fefffff7fefffffull;
}

static void set_memory(const struct memory *m)
{
    /* its exceptions stay until they are cleared, and stmxcsr shows them */
    static const uint32_t mxcsr = 0x1f80;

    __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
    memcpy((void *)MEMORY_AT, m->data, MEMORY_BYTES);
    memcpy((void *)STACK_AT, m->stack, STACK_BYTES);
}

static void get_memory(struct memory *m)
{
    memcpy(m->data, (void *)MEMORY_AT, MEMORY_BYTES);
    memcpy(m->stack, (void *)STACK_AT, STACK_BYTES);
}

/* ---- native ---- */

static const int order[TBD_REG_COUNT] = { REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                          REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                          REG_R12, REG_R13, REG_R14, REG_R15 };

static void begin_native(int signo, siginfo_t *info, void *context)
{
    ucontext_t *uc = context;

    (void)signo;
    (void)info;
    for (unsigned r = 0; r < TBD_REG_COUNT; r++)
        uc->uc_mcontext.gregs[order[r]] = (long long)start_regs.gpr[r];
    uc->uc_mcontext.gregs[REG_RIP] = (long long)start_regs.rip;
    uc->uc_mcontext.gregs[REG_EFL] = (long long)start_regs.rflags;
}

static struct tbd_regs *end_regs = &native_regs; /* where the next native end goes */

static void end_native(int signo, siginfo_t *info, void *context)
{
    ucontext_t *uc = context;

    (void)info;
    for (unsigned r = 0; r < TBD_REG_COUNT; r++)
        end_regs->gpr[r] = (uint64_t)uc->uc_mcontext.gregs[order[r]];
    end_regs->rip = (uint64_t)uc->uc_mcontext.gregs[REG_RIP];
    end_regs->rflags = (uint64_t)uc->uc_mcontext.gregs[REG_EFL];
    siglongjmp(out_of_native, signo);
}

static void catch_native_ends(void)
{
    static const int ends[] = { SIGSEGV, SIGILL, SIGFPE, SIGBUS };
    struct sigaction sa = { .sa_sigaction = end_native, .sa_flags = SA_SIGINFO | SA_ONSTACK };

    for (size_t n = 0; n < sizeof(ends) / sizeof(ends[0]); n++)
        sigaction(ends[n], &sa, NULL);
}

static void run_native(void)
{
    static uint8_t signal_stack[1 << 16];
    struct sigaction sa = { .sa_sigaction = begin_native, .sa_flags = SA_SIGINFO | SA_ONSTACK };
    stack_t ss = { .ss_sp = signal_stack, .ss_size = sizeof(signal_stack) };

    sigaltstack(&ss, NULL);
    catch_native_ends();
    sigaction(SIGUSR1, &sa, NULL);
    if (!sigsetjmp(out_of_native, 1))
        raise(SIGUSR1);
    __asm__ volatile("cld; emms");
}

/* ---- comparing ---- */

static uint8_t *undo_place(uint64_t address, uint32_t size)
{
    if (address >= MEMORY_AT && address + size <= MEMORY_AT + MEMORY_BYTES)
        return undone.data + (address - MEMORY_AT);
    if (address >= STACK_AT && address + size <= STACK_AT + STACK_BYTES)
        return undone.stack + (address - STACK_AT);
    return NULL;
}

struct store {
    uint64_t address;
    uint32_t size;
    uint8_t old[64];
};

static struct store stores[4096];
static unsigned store_count;
static unsigned untouched;

/* Marked as read or written, or the page before as read (base/layout.h). */
static bool is_known_read(uint64_t address)
{
    return harness_touched(address, false) || harness_touched(address, true) ||
           harness_touched(address - 4096, false);
}

static void collect(const struct harness_event *event, void *arg)
{
    struct store *s = &stores[store_count];

    (void)arg;
    if (event->op && event->op->kind == TBD_OP_LOAD &&
        (!is_known_read(event->address) || !is_known_read(event->address + event->op->size - 1)))
        untouched++;
    if (!event->op || event->op->kind != TBD_OP_STORE || store_count == 4096)
        return;
    s->address = event->address;
    s->size = event->op->size;
    memcpy(s->old, event->data, s->size);
    store_count++;
    if (!harness_touched(s->address, true) || !harness_touched(s->address + s->size - 1, true))
        untouched++;
}

static bool undo_gives_start(void)
{
    get_memory(&undone);
    while (store_count) {
        const struct store *s = &stores[--store_count];
        uint8_t *place = undo_place(s->address, s->size);

        if (place)
            memcpy(place, s->old, s->size);
    }
    return !memcmp(&undone, &initial, sizeof(initial));
}

static bool same(const struct tbd_regs *a, const struct tbd_regs *b, uint64_t flags)
{
    return !memcmp(a->gpr, b->gpr, sizeof(a->gpr)) && a->rip == b->rip &&
           (a->rflags & flags) == (b->rflags & flags);
}

static void explain(uint64_t round, uint64_t stop, const struct tbd_regs *t)
{
    ZydisDisassembledInstruction i;
    uint64_t at = body_at;

    print_error(
        "round %llu%s%s\n", (unsigned long long)round,
        memcmp(native_vectors, (void *)DUMP_AT, sizeof(native_vectors)) ? ", vectors differ" : "",
        memcmp(&undone, &initial, sizeof(initial)) ? ", undone stores differ (if it came to that)"
                                                   : "");
    for (size_t n = 0; n < sizeof(initial); n++)
        if (((uint8_t *)&undone)[n] != ((uint8_t *)&initial)[n])
            print_error("undone %zx: %02x, was %02x\n", n, ((uint8_t *)&undone)[n],
                        ((uint8_t *)&initial)[n]);
    for (unsigned r = 0; r < TBD_REG_COUNT; r++)
        print_error("%u: start %016llx native %016llx translated %016llx%s\n", r,
                    (unsigned long long)start_regs.gpr[r], (unsigned long long)native_regs.gpr[r],
                    (unsigned long long)t->gpr[r], native_regs.gpr[r] == t->gpr[r] ? "" : " <--");
    print_error("rip native %llx translated %llx flags %llx %llx\n",
                (unsigned long long)native_regs.rip, (unsigned long long)t->rip,
                (unsigned long long)native_regs.rflags, (unsigned long long)t->rflags);
    while (at < stop - 16 * 8) {
        bool good =
            ZYAN_SUCCESS(ZydisDisassembleIntel(ZYDIS_MACHINE_MODE_LONG_64, at, (void *)at, 15, &i));

        print_error("  %llx  %s\n", (unsigned long long)at, good ? i.text : "?");
        at += good ? i.info.length : 1;
    }
}

/* Runs one sequence natively and translated; false when they differ. */
static bool try_round(uint64_t round)
{
    struct tbd_regs t;
    struct memory translated_end;
    uint64_t stop;
    bool good;

    make_start();
    stop = generate();
    set_memory(&initial);
    undone = initial;
    memset((void *)DUMP_AT, 0, sizeof(native_vectors));
    run_native();
    get_memory(&native_end);
    memcpy(native_vectors, (void *)DUMP_AT, sizeof(native_vectors));
    memset((void *)DUMP_AT, 0, sizeof(native_vectors));
    set_memory(&initial);
    tbd_patcher_flush_range(harness_thread(), CODE_AT, CODE_AT + CODE_BYTES);
    t = start_regs;
    store_count = 0;
    untouched = 0;
    for (uint64_t at = MEMORY_AT - 4096; at < STACK_AT + STACK_BYTES + 4096; at += 4096)
        harness_clear_touch(at);
    harness_run(&t, stop);
    __asm__ volatile("cld; emms");
    get_memory(&translated_end);
    good = same(&native_regs, &t, STATUS_FLAGS) &&
           !memcmp(&native_end, &translated_end, sizeof(native_end)) &&
           !memcmp(native_vectors, (void *)DUMP_AT, sizeof(native_vectors)) && !untouched;
    if (untouched || memcmp(&native_end, &translated_end, sizeof(native_end)))
        print_error("%u accesses not in the touch map, memory %s\n", untouched,
                    memcmp(&native_end, &translated_end, sizeof(native_end)) ? "differs"
                                                                             : "is the same");
    if (good && (harness_hook_set() & TBD_HOOK_STORES))
        good = undo_gives_start();
    if (!good)
        explain(round, stop, &t);
    return good;
}

/* ---- interrupted anywhere ---- */

static unsigned steps_left;
static bool went_native;
static struct tbd_interruption stopped_at;

/* Single step: after enough steps in translated code the program goes on natively from the state
 * that the patcher derives from the registers. */
static void on_step(int signo, siginfo_t *info, void *context)
{
    ucontext_t *uc = context;
    struct tbd_regs cpu = { .rip = (uint64_t)uc->uc_mcontext.gregs[REG_RIP] };
    struct tbd_regs state;

    (void)signo;
    (void)info;
    if (!tbd_patcher_owns(cpu.rip)) {
        uc->uc_mcontext.gregs[REG_EFL] &= ~0x100ll; /* on again with the program's flags */
        return;
    }
    if (steps_left > 0) {
        steps_left--;
        return;
    }
    for (unsigned r = 0; r < TBD_REG_COUNT; r++)
        cpu.gpr[r] = (uint64_t)uc->uc_mcontext.gregs[order[r]];
    cpu.rflags = (uint64_t)uc->uc_mcontext.gregs[REG_EFL];
    stopped_at = tbd_patcher_interrupted(harness_thread(), &cpu, &state);
    if (stopped_at.where == TBD_INT_NOT_CACHE)
        return;
    for (unsigned r = 0; r < TBD_REG_COUNT; r++)
        uc->uc_mcontext.gregs[order[r]] = (long long)state.gpr[r];
    uc->uc_mcontext.gregs[REG_RIP] = (long long)state.rip;
    uc->uc_mcontext.gregs[REG_EFL] = (long long)state.rflags & ~0x100ll;
    went_native = true;
    catch_native_ends();
}

static void prepare_interruption(void)
{
    struct sigaction sa = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO | SA_ONSTACK };

    sigaction(SIGTRAP, &sa, NULL);
    steps_left = below(150);
    went_native = false;
}

/* Natively; translated once, so that everything is linked; then again, interrupted. */
static bool try_interruption(uint64_t round)
{
    struct tbd_regs t;
    struct memory end;
    uint64_t stop;
    bool good;

    make_start();
    stop = generate();
    undone = initial;
    set_memory(&initial);
    memset((void *)DUMP_AT, 0, sizeof(native_vectors));
    run_native();
    get_memory(&native_end);
    memcpy(native_vectors, (void *)DUMP_AT, sizeof(native_vectors));
    tbd_patcher_flush_range(harness_thread(), CODE_AT, CODE_AT + CODE_BYTES);
    set_memory(&initial);
    t = start_regs;
    harness_run(&t, stop);
    set_memory(&initial);
    memset((void *)DUMP_AT, 0, sizeof(native_vectors));
    prepare_interruption();
    t = start_regs;
    t.rflags |= 0x100;
    end_regs = &t;
    if (!sigsetjmp(out_of_native, 1))
        harness_run(&t, stop);
    end_regs = &native_regs;
    __asm__ volatile("cld; emms");
    if (!went_native)
        return true;
    get_memory(&end);
    good = same(&native_regs, &t, STATUS_FLAGS) && !memcmp(&native_end, &end, sizeof(end)) &&
           !memcmp(native_vectors, (void *)DUMP_AT, sizeof(native_vectors));
    if (!good) {
        print_error("stopped: where %d insn %u hook %u\n", stopped_at.where, stopped_at.insn,
                    stopped_at.in_hook);
        explain(round, stop, &t);
    }
    return good;
}

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text ? strtoull(text, NULL, 0) : otherwise;
}

static void run_rounds(uint32_t hooks, uint32_t max_insns, uint64_t first)
{
    uint64_t rounds = from_environment("PATCHER_ROUNDS", getenv("TBD_LONG") ? 20000 : 300);

    seed = from_environment("PATCHER_SEED", first) * 0x9e3779b97f4a7c15ull + 1;
    harness_set_sink((hooks & TBD_HOOK_STORES) ? collect : NULL, NULL);
    for (uint64_t n = 0; n < rounds; n++) {
        if (n % 1000 == 0)
            harness_configure(hooks, max_insns, true);
        assert_true(try_round(n));
    }
    harness_set_sink(NULL, NULL);
}

static void plain_translation_agrees(void **state)
{
    (void)state;
    run_rounds(TBD_HOOKS_NONE, TBD_BLOCK_MAX_INSNS, 1);
}

static void play_hooks_agree_and_report_all_stores(void **state)
{
    (void)state;
    run_rounds(TBD_HOOKS_PLAY, TBD_BLOCK_MAX_INSNS, 2);
}

static void load_hooks_and_short_blocks_agree(void **state)
{
    (void)state;
    run_rounds(TBD_HOOKS_PLAY | TBD_HOOK_LOADS, 5, 3);
}

static void far_patch_areas_agree(void **state)
{
    (void)state;
    harness_far_areas(true);
    run_rounds(TBD_HOOKS_PLAY, TBD_BLOCK_MAX_INSNS, 4);
    harness_far_areas(false);
}

static void code_that_may_change_agrees(void **state)
{
    (void)state;
    harness_changing_code(true);
    run_rounds(TBD_HOOKS_PLAY, TBD_BLOCK_MAX_INSNS, 6);
    harness_far_areas(true);
    run_rounds(TBD_HOOKS_NONE, TBD_BLOCK_MAX_INSNS, 7);
    harness_far_areas(false);
    harness_changing_code(false);
}

static void interrupted_anywhere(uint64_t first)
{
    uint64_t rounds = from_environment("PATCHER_ROUNDS", getenv("TBD_LONG") ? 2000 : 300);

    seed = from_environment("PATCHER_SEED", first) * 0x9e3779b97f4a7c15ull + 1;
    no_pushf = true; /* it would store the trap flag */
    for (uint64_t n = 0; n < rounds; n++) {
        if (n % 150 == 0)
            harness_configure(n % 300 ? TBD_HOOKS_PLAY : TBD_HOOKS_NONE, TBD_BLOCK_MAX_INSNS, true);
        assert_true(try_interruption(n));
    }
    no_pushf = false;
}

static void interrupted_anywhere_it_can_go_on_natively(void **state)
{
    (void)state;
    interrupted_anywhere(5);
}

static void interrupted_in_code_that_may_change_it_can_go_on_natively(void **state)
{
    (void)state;
    harness_changing_code(true);
    interrupted_anywhere(8);
    harness_changing_code(false);
}

static void map_fixed(uint64_t address, size_t bytes, int prot)
{
    void *p = mmap((void *)(uintptr_t)address, bytes, prot,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

    assert_int_equal((uint64_t)(uintptr_t)p, address);
}

static int set_up(void **state)
{
    (void)state;
    map_fixed(MEMORY_AT, MEMORY_BYTES, PROT_READ | PROT_WRITE);
    map_fixed(STACK_AT, STACK_BYTES, PROT_READ | PROT_WRITE);
    map_fixed(DUMP_AT, 8192, PROT_READ | PROT_WRITE);
    map_fixed(CODE_AT, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC);
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    return 0;
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            far_patch_areas_agree), /* first: the area stays where the first block put it */
        cmocka_unit_test(plain_translation_agrees),
        cmocka_unit_test(play_hooks_agree_and_report_all_stores),
        cmocka_unit_test(load_hooks_and_short_blocks_agree),
        cmocka_unit_test(code_that_may_change_agrees),
        cmocka_unit_test(interrupted_anywhere_it_can_go_on_natively),
        cmocka_unit_test(interrupted_in_code_that_may_change_it_can_go_on_natively),
    };

    if (harness_obstacle()) {
        printf("skipped: %s\n", harness_obstacle());
        return 77;
    }
    harness_init(TBD_HOOKS_NONE, true);
    return cmocka_run_group_tests(tests, set_up, NULL);
}
