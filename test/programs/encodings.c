// SPDX-License-Identifier: MIT
// libs: Zydis
/* One instruction of every encoding that Zydis knows, with random operands: what it does to registers,
 * flags, vector and x87 state and memory, or the signal it raises, is printed, one line each.  Left out
 * are those that go elsewhere, that the kernel answers, that differ from run to run, or that would pull
 * out the ground (segment registers, protection keys).
 *
 *     encodings [ROUNDS [SEED [HEX]]]     with HEX only this instruction, and all its state
 *
 * Half of the rounds run on writable pages, half on pages that are made read-only first. */
#define _GNU_SOURCE
#include "check.h"
#include <Zydis/Zydis.h>
#include <asm/hwcap2.h>
#include <asm/prctl.h>
#include <cpuid.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define PAGE 4096u
#define ARENA 0x20000000ull /* between pages without access */
#define ARENA_BYTES (2 * PAGE)
#define STACK 0x20010000ull
#define CODE 0x20020000ull
#define CODE_BYTES (16 * PAGE)
#define SLOT 64u
#define MIDDLE (ARENA + PAGE - 64)
#define XSAVE_BYTES 4096u
#define XSAVE_MASK 0xe7u /* x87, SSE, AVX, AVX-512 */

struct state {
    uint64_t gpr[16]; /* in the processor's order */
    uint64_t flags;
    uint64_t at; /* rip - code */
    int signo, code;
    uint64_t address, error, trap;
    _Alignas(64) uint8_t xsave[XSAVE_BYTES];
};

/* Used by the assembly below. */
struct state start, end;
uint64_t code_at, own_stack;

void run_code(void);
void collect(void);
void after_signal(void);
extern uint32_t plain_mxcsr;
uint32_t plain_mxcsr = 0x1f80;

__asm__("   .text\n"
        "run_code:\n"
        "   push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
        "   mov %rsp, own_stack(%rip)\n"
        "   mov $-1, %eax; mov $-1, %edx\n"
        "   lea start(%rip), %rcx\n"
        "   xrstor64 192(%rcx)\n"
        "   pushq 128(%rcx)\n"
        "   mov 0(%rcx), %rax; mov 16(%rcx), %rdx; mov 24(%rcx), %rbx; mov 40(%rcx), %rbp\n"
        "   mov 48(%rcx), %rsi; mov 56(%rcx), %rdi; mov 64(%rcx), %r8; mov 72(%rcx), %r9\n"
        "   mov 80(%rcx), %r10; mov 88(%rcx), %r11; mov 96(%rcx), %r12; mov 104(%rcx), %r13\n"
        "   mov 112(%rcx), %r14; mov 120(%rcx), %r15\n"
        "   popfq\n"
        "   mov 32(%rcx), %rsp\n"
        "   mov 8(%rcx), %rcx\n"
        "   jmp *code_at(%rip)\n"
        "collect:\n"
        "   mov %rsp, end+32(%rip)\n"
        "   mov own_stack(%rip), %rsp\n"
        "   pushfq\n"
        "   push %rcx\n"
        "   lea end(%rip), %rcx\n"
        "   mov %rax, 0(%rcx); mov %rdx, 16(%rcx); mov %rbx, 24(%rcx); mov %rbp, 40(%rcx)\n"
        "   mov %rsi, 48(%rcx); mov %rdi, 56(%rcx); mov %r8, 64(%rcx); mov %r9, 72(%rcx)\n"
        "   mov %r10, 80(%rcx); mov %r11, 88(%rcx); mov %r12, 96(%rcx); mov %r13, 104(%rcx)\n"
        "   mov %r14, 112(%rcx); mov %r15, 120(%rcx)\n"
        "   popq 8(%rcx)\n"
        "   popq 128(%rcx)\n"
        "   cld\n"
        "   mov $0xe7, %eax; xor %edx, %edx\n"
        "   xsave64 192(%rcx)\n"
        "after_signal:\n"
        "   fninit\n"
        "   ldmxcsr plain_mxcsr(%rip)\n"
        "   vzeroupper\n"
        "   pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
        "   ret\n");
_Static_assert(offsetof(struct state, flags) == 128 && offsetof(struct state, xsave) == 192, "assembly");

#define GS_BASE 0x1234560ull

static ZydisDecoder decoder;
static uint64_t seed = 1;
static uint32_t offset_of[8], size_of[8];
static uint64_t features;

static uint64_t any(void)
{
    return check_random(&seed);
}

static uint64_t below(uint64_t n)
{
    return (any() >> 20) % n;
}

/* ---- running ---- */

/* An instruction that should have been left out. */
static void lose_ground(int signo, uint64_t rip)
{
    const uint8_t *code = (const uint8_t *)(uintptr_t)code_at;

    fflush(stdout);
    printf("\nsignal %d at %llx, not in the code at %llx:", signo, (unsigned long long)rip,
           (unsigned long long)code_at);
    for (unsigned n = 0; n < 15; n++)
        printf(" %02x", code[n]);
    printf("\n");
    fflush(stdout);
    _Exit(98);
}

static void on_signal(int signo, siginfo_t *info, void *context)
{
    static const uint8_t order[16] = { REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                       REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                       REG_R12, REG_R13, REG_R14, REG_R15 };
    ucontext_t *uc = context;
    greg_t *g = uc->uc_mcontext.gregs;

    if ((uint64_t)g[REG_RIP] - code_at > SLOT)
        lose_ground(signo, (uint64_t)g[REG_RIP]);
    for (unsigned r = 0; r < 16; r++)
        end.gpr[r] = (uint64_t)g[order[r]];
    end.flags = (uint64_t)g[REG_EFL];
    end.at = (uint64_t)g[REG_RIP] - code_at;
    end.signo = signo;
    end.code = info->si_code;
    end.address = (uint64_t)(uintptr_t)info->si_addr;
    if (end.address - code_at < SLOT)
        end.address -= code_at;
    end.error = (uint64_t)g[REG_ERR];
    end.trap = (uint64_t)g[REG_TRAPNO];
    memcpy(end.xsave, uc->uc_mcontext.fpregs, XSAVE_BYTES - 1024);
    g[REG_RIP] = (greg_t)(uintptr_t)after_signal;
    g[REG_RSP] = (greg_t)own_stack;
    g[REG_EFL] = 0x202;
}

static void *map_at(uint64_t at, size_t bytes, int prot)
{
    void *p = mmap((void *)(uintptr_t)at, bytes, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

    CHECK(p == (void *)(uintptr_t)at);
    return p;
}

static void set_up(void)
{
    static uint8_t stack[1 << 16];
    static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP };
    struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };
    stack_t alternate = { .ss_sp = stack, .ss_size = sizeof(stack) };
    uint32_t a, b, c, d;

    map_at(ARENA, ARENA_BYTES, PROT_READ | PROT_WRITE);
    map_at(STACK, PAGE, PROT_READ | PROT_WRITE);
    map_at(CODE, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC);
    CHECK(sigaltstack(&alternate, NULL) == 0);
    for (unsigned n = 0; n < sizeof(signals) / sizeof(signals[0]); n++)
        CHECK(sigaction(signals[n], &action, NULL) == 0);
    for (unsigned n = 2; n < 8; n++)
        if (__get_cpuid_count(13, n, &a, &b, &c, &d)) {
            size_of[n] = a;
            offset_of[n] = b;
        }
    __asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    features = a & XSAVE_MASK;
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    CHECK(syscall(SYS_arch_prctl, ARCH_SET_GS, GS_BASE) == 0);
}

/* ---- the state before ---- */

static uint64_t any_value(void)
{
    static const uint64_t special[] = { 0, 1, 0x80, 0xff, 0x7fff, 0x80000000, 0xffffffff, 0x7fffffffffffffff,
                                        0x8000000000000000, 0xffffffffffffffff };

    switch (below(4)) {
    case 0: return special[below(sizeof(special) / sizeof(special[0]))];
    case 1: return below(64);
    default: return any();
    }
}

/* What instructions are aimed at is filled; the rest stays zero, if nobody writes there. */
static const struct {
    uint64_t start;
    size_t bytes;
} filled[] = { { ARENA, 256 },
               { MIDDLE - 512, 1024 },
               { ARENA + ARENA_BYTES - 256, 256 },
               { STACK + PAGE / 2 - 128, 512 } };
#define FILLED (sizeof(filled) / sizeof(filled[0]))

/* Words that are ordinary as integers, floats and doubles. */
static void fill(uint8_t *at, size_t bytes)
{
    static const uint64_t words[] = { 0, 0x3ff0000000000000, 0x3f8000003f800000, 0xbff8000000000000,
                                      0x40490fdb40490fdb, 0x7ff0000000000000, 0x7fc00000ff800000, 0x0000000100000001,
                                      0x8000000000000001, 0x00000001c0000000 };

    for (size_t n = 0; n + 8 <= bytes; n += 8) {
        uint64_t word = below(2) ? words[below(sizeof(words) / sizeof(words[0]))] : any();

        memcpy(at + n, &word, 8);
    }
}

static void put(uint8_t *at, uint64_t value, size_t bytes)
{
    memcpy(at, &value, bytes);
}

static void make_vectors(void)
{
    uint8_t *x = start.xsave;
    bool strict = below(8) == 0;

    memset(x, 0, sizeof(start.xsave));
    fill(x + 160, 256);
    for (unsigned n = 2; n < 8; n++)
        if (features >> n & 1)
            fill(x + offset_of[n], size_of[n]);
    put(x, 0x37f & ~(strict ? below(64) : 0), 2);
    for (unsigned n = 0; n < 8; n++) {
        fill(x + 32 + 16 * n, 8);
        x[32 + 16 * n + 7] |= 0x80; /* normal */
        put(x + 32 + 16 * n + 8, 0x3ff8 + below(16) + (below(2) << 15), 2);
    }
    x[4] = below(4) ? 0xff : (uint8_t)any(); /* stack slots in use */
    put(x + 24, (0x1f80 & ~(strict ? below(64) << 7 : 0)) | below(4) << 13 | (below(8) == 0) << 15, 4);
    put(x + 512, features, 8);
}

static void make_start(void)
{
    for (unsigned r = 0; r < 16; r++)
        start.gpr[r] = any_value();
    start.gpr[1] = below(20); /* of rep */
    start.gpr[3] = MIDDLE + below(64);
    start.gpr[4] = STACK + PAGE / 2 + 8 * below(8);
    start.gpr[5] = STACK + PAGE / 2 + 64;
    start.gpr[6] = MIDDLE + below(128);
    start.gpr[7] = MIDDLE + below(128);
    if (below(8) == 0) /* the end is near */
        start.gpr[6 + below(2)] = below(2) ? ARENA + below(16) : ARENA + ARENA_BYTES - below(64);
    start.flags = 0x202 | (any() & 0x8d5) | (below(4) == 0) << 10;
    make_vectors();
    for (unsigned n = 0; n < FILLED; n++)
        fill((uint8_t *)(uintptr_t)filled[n].start, filled[n].bytes);
}

/* ---- which ---- */

struct sample {
    uint8_t bytes[15];
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
};

static bool is_left_out_by_name(ZydisMnemonic m)
{
    switch (m) {
    case ZYDIS_MNEMONIC_RDTSC: case ZYDIS_MNEMONIC_RDTSCP: case ZYDIS_MNEMONIC_RDPMC: case ZYDIS_MNEMONIC_RDPRU:
    case ZYDIS_MNEMONIC_RDRAND: case ZYDIS_MNEMONIC_RDSEED: case ZYDIS_MNEMONIC_RDPID: case ZYDIS_MNEMONIC_CPUID:
    case ZYDIS_MNEMONIC_XGETBV: case ZYDIS_MNEMONIC_RDPKRU: case ZYDIS_MNEMONIC_WRPKRU:
    case ZYDIS_MNEMONIC_RDFSBASE: case ZYDIS_MNEMONIC_WRFSBASE: case ZYDIS_MNEMONIC_RDGSBASE:
    case ZYDIS_MNEMONIC_WRGSBASE: case ZYDIS_MNEMONIC_SGDT: case ZYDIS_MNEMONIC_SIDT: case ZYDIS_MNEMONIC_SLDT:
    case ZYDIS_MNEMONIC_SMSW: case ZYDIS_MNEMONIC_STR: case ZYDIS_MNEMONIC_LSL: case ZYDIS_MNEMONIC_LAR:
    case ZYDIS_MNEMONIC_VERR: case ZYDIS_MNEMONIC_VERW: case ZYDIS_MNEMONIC_INT: case ZYDIS_MNEMONIC_INTO:
    case ZYDIS_MNEMONIC_IRET: case ZYDIS_MNEMONIC_IRETD: case ZYDIS_MNEMONIC_IRETQ:
    case ZYDIS_MNEMONIC_LFS: case ZYDIS_MNEMONIC_LGS: case ZYDIS_MNEMONIC_LSS: case ZYDIS_MNEMONIC_XBEGIN:
    case ZYDIS_MNEMONIC_XEND: case ZYDIS_MNEMONIC_XTEST: case ZYDIS_MNEMONIC_XABORT: case ZYDIS_MNEMONIC_XRSTOR:
    case ZYDIS_MNEMONIC_XRSTOR64: case ZYDIS_MNEMONIC_XSAVE: case ZYDIS_MNEMONIC_XSAVE64:
    case ZYDIS_MNEMONIC_XSAVEC: case ZYDIS_MNEMONIC_XSAVEC64: case ZYDIS_MNEMONIC_XSAVEOPT:
    case ZYDIS_MNEMONIC_XSAVEOPT64: case ZYDIS_MNEMONIC_FXSAVE: case ZYDIS_MNEMONIC_FXSAVE64:
    case ZYDIS_MNEMONIC_FNSAVE: case ZYDIS_MNEMONIC_FNSTENV: case ZYDIS_MNEMONIC_ENQCMD:
    case ZYDIS_MNEMONIC_MWAITX: case ZYDIS_MNEMONIC_MONITORX: case ZYDIS_MNEMONIC_UMWAIT:
    case ZYDIS_MNEMONIC_UMONITOR: case ZYDIS_MNEMONIC_TPAUSE: case ZYDIS_MNEMONIC_SENDUIPI:
    case ZYDIS_MNEMONIC_VMCALL: case ZYDIS_MNEMONIC_VMMCALL: case ZYDIS_MNEMONIC_CLUI: case ZYDIS_MNEMONIC_STUI:
    case ZYDIS_MNEMONIC_TESTUI: case ZYDIS_MNEMONIC_UIRET: case ZYDIS_MNEMONIC_PTWRITE: return true;
    default: return false;
    }
}

static bool is_segment_operand(const ZydisDecodedOperand *op)
{
    if (op->type == ZYDIS_OPERAND_TYPE_REGISTER)
        return op->reg.value >= ZYDIS_REGISTER_ES && op->reg.value <= ZYDIS_REGISTER_GS &&
               op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
    return op->type == ZYDIS_OPERAND_TYPE_MEMORY &&
           op->mem.segment == ZYDIS_REGISTER_FS;
}

static bool is_left_out(const struct sample *s)
{
    switch (s->insn.meta.category) {
    case ZYDIS_CATEGORY_UNCOND_BR: case ZYDIS_CATEGORY_COND_BR: case ZYDIS_CATEGORY_CALL: case ZYDIS_CATEGORY_RET:
    case ZYDIS_CATEGORY_SYSCALL: case ZYDIS_CATEGORY_SYSRET: case ZYDIS_CATEGORY_INTERRUPT: case ZYDIS_CATEGORY_VTX:
    case ZYDIS_CATEGORY_AMX_TILE: return true;
    default: break;
    }
    for (unsigned n = 0; n < s->insn.operand_count; n++)
        if (is_segment_operand(&s->op[n]))
            return true;
    return is_left_out_by_name(s->insn.mnemonic);
}

static bool decode(struct sample *s)
{
    return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, s->bytes, sizeof(s->bytes), &s->insn, s->op));
}

/* ---- operands that can be reached ---- */

static int register_number(ZydisRegister r)
{
    if (r >= ZYDIS_REGISTER_RAX && r <= ZYDIS_REGISTER_R15)
        return r - ZYDIS_REGISTER_RAX;
    if (r >= ZYDIS_REGISTER_EAX && r <= ZYDIS_REGISTER_R15D)
        return r - ZYDIS_REGISTER_EAX;
    return -1;
}

static void small_elements(ZydisRegister r)
{
    unsigned n = r >= ZYDIS_REGISTER_ZMM0   ? (unsigned)(r - ZYDIS_REGISTER_ZMM0)
                 : r >= ZYDIS_REGISTER_YMM0 ? (unsigned)(r - ZYDIS_REGISTER_YMM0)
                                            : (unsigned)(r - ZYDIS_REGISTER_XMM0);
    uint8_t *part[4] = { start.xsave + 160 + 16 * n, start.xsave + offset_of[2] + 16 * n,
                         start.xsave + offset_of[6] + 32 * n, start.xsave + offset_of[6] + 32 * n + 16 };

    for (unsigned p = 0; p < 4; p++) {
        if (n >= 16)
            part[p] = start.xsave + offset_of[7] + 64 * (n - 16) + 16 * p;
        for (unsigned e = 0; e < 2; e++)
            put(part[p] + 8 * e, below(64), 8);
    }
}

/* Not a store that some processors do not have: which of two faults comes first is not kept. */
static bool may_fault(const struct sample *s, const ZydisDecodedOperand *op)
{
    return !(op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) ||
           (s->insn.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY &&
            (s->insn.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT || s->insn.opcode_map == ZYDIS_OPCODE_MAP_0F));
}

static void aim(struct sample *s, const ZydisDecodedOperand *op, uint64_t code)
{
    int base = register_number(op->mem.base), index = register_number(op->mem.index);
    uint64_t target = MIDDLE + 16 * below(5) + below(2) * below(16);
    int32_t disp;

    if (below(10) == 0 && may_fault(s, op))
        target = below(2) ? ARENA - below(32) : ARENA + ARENA_BYTES - below(70);
    if (op->mem.segment == ZYDIS_REGISTER_GS)
        target -= GS_BASE;
    if (op->mem.base == ZYDIS_REGISTER_RIP || op->mem.base == ZYDIS_REGISTER_EIP) {
        disp = (int32_t)(target - (code + s->insn.length));
        memcpy(s->bytes + s->insn.raw.disp.offset, &disp, 4);
    } else if (op->mem.base == ZYDIS_REGISTER_NONE && s->insn.raw.disp.size == 32) {
        put(s->bytes + s->insn.raw.disp.offset, target, 4);
    } else if (base >= 0 && base != 4) {
        start.gpr[base] = target - (op->mem.disp.has_displacement ? (uint64_t)op->mem.disp.value : 0);
    }
    if (op->mem.type == ZYDIS_MEMOP_TYPE_VSIB)
        small_elements(op->mem.index);
    else if (index >= 0 && index != base)
        start.gpr[index] = below(8);
}

static bool is_bit_test(ZydisMnemonic m)
{
    return m == ZYDIS_MNEMONIC_BT || m == ZYDIS_MNEMONIC_BTS || m == ZYDIS_MNEMONIC_BTR || m == ZYDIS_MNEMONIC_BTC;
}

static void prepare(struct sample *s, uint64_t code)
{
    for (unsigned n = 0; n < s->insn.operand_count; n++)
        if (s->op[n].type == ZYDIS_OPERAND_TYPE_MEMORY && s->op[n].visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT)
            aim(s, &s->op[n], code);
    if (is_bit_test(s->insn.mnemonic) && register_number(s->op[1].reg.value) >= 0)
        start.gpr[register_number(s->op[1].reg.value)] = below(512) - 256;
    if (s->insn.mnemonic == ZYDIS_MNEMONIC_POPF || s->insn.mnemonic == ZYDIS_MNEMONIC_POPFQ)
        put((uint8_t *)(uintptr_t)start.gpr[4], 0x202 | (any() & 0xcd5), 8);
}

/* ---- the state after ---- */

static uint64_t hash_words(const void *data, size_t bytes)
{
    uint64_t hash = 0xcbf29ce484222325u;
    uint64_t word;

    for (size_t n = 0; n + 8 <= bytes; n += 8) {
        memcpy(&word, (const uint8_t *)data + n, 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 29;
    }
    return hash;
}

/* Components in their first state are as zeros; where the last x87 instruction was is another matter. */
static uint64_t hash_vectors(uint8_t *x)
{
    uint64_t present, hash;

    memcpy(&present, x + 512, 8);
    memset(x + 6, 0, 18);
    memset(x + 28, 0, 4);
    if (!(present & 1)) {
        memset(x + 32, 0, 128);
        put(x, 0x37f, 6);
    }
    for (unsigned n = 0; n < 8; n++)
        memset(x + 32 + 16 * n + 10, 0, 6);
    if (!(present & 2))
        memset(x + 160, 0, 256);
    hash = hash_words(x, 416);
    for (unsigned n = 2; n < 8; n++) {
        if (!(features >> n & 1))
            continue;
        if (!(present >> n & 1))
            memset(x + offset_of[n], 0, size_of[n]);
        hash = hash * 31 + hash_words(x + offset_of[n], size_of[n]);
    }
    return hash;
}

static bool is_zero(uint64_t start, uint64_t behind)
{
    static const uint8_t zeros[PAGE];

    return memcmp((void *)(uintptr_t)start, zeros, behind - start) == 0;
}

static uint64_t hash_memory(void)
{
    uint64_t hash = 0;

    for (unsigned n = 0; n < FILLED; n++)
        hash = hash * 31 + hash_words((void *)(uintptr_t)filled[n].start, filled[n].bytes);
    if (!is_zero(ARENA + 256, MIDDLE - 512) || !is_zero(MIDDLE + 512, ARENA + ARENA_BYTES - 256) ||
        !is_zero(STACK, STACK + PAGE / 2 - 128) || !is_zero(STACK + PAGE / 2 + 384, STACK + PAGE))
        hash = hash_words((void *)(uintptr_t)ARENA, ARENA_BYTES) * 31 +
               hash_words((void *)(uintptr_t)STACK, PAGE);
    return hash;
}

static void print_bytes(const uint8_t *bytes, size_t count)
{
    for (size_t n = 0; n < count; n++)
        printf("%02x", bytes[n]);
}

static void print_all(void)
{
    for (unsigned r = 0; r < 16; r++)
        printf("\n  gpr%-2u %016llx %016llx", r, (unsigned long long)start.gpr[r], (unsigned long long)end.gpr[r]);
    printf("\n  flags %llx %llx\n  fpu ", (unsigned long long)start.flags, (unsigned long long)end.flags);
    print_bytes(start.xsave, 160);
    printf("\n      ");
    print_bytes(end.xsave, 160);
    for (unsigned n = 0; n < 16; n++) {
        printf("\n  xmm%-2u ", n);
        print_bytes(start.xsave + 160 + 16 * n, 16);
        printf(" ");
        print_bytes(end.xsave + 160 + 16 * n, 16);
    }
    printf("\n  memory ");
    print_bytes((uint8_t *)(uintptr_t)MIDDLE - 64, 320);
}

/* ---- one case ---- */

static void put_code(const struct sample *s, uint64_t code)
{
    static const uint8_t jump[] = { 0xff, 0x25, 0, 0, 0, 0 }; /* jmp *0(%rip) */
    uint8_t *at = (uint8_t *)(uintptr_t)code;

    memcpy(at, s->bytes, s->insn.length);
    memcpy(at + s->insn.length, jump, sizeof(jump));
    put(at + s->insn.length + sizeof(jump), (uint64_t)(uintptr_t)collect, 8);
}

static void run_case(struct sample *s, uint64_t code, bool in_full)
{
    uint64_t state;

    memset(&end, 0, sizeof(end));
    code_at = code;
    run_code();
    if (!end.signo)
        end.at = s->insn.length;
    state = hash_vectors(end.xsave);
    print_bytes(s->bytes, s->insn.length);
    printf(" %s %llx", ZydisMnemonicGetString(s->insn.mnemonic), (unsigned long long)end.at);
    if (end.signo)
        printf(" signal %d code %d at %llx error %llx trap %llu", end.signo, end.code,
               (unsigned long long)end.address, (unsigned long long)end.error, (unsigned long long)end.trap);
    printf(" %llx %llx %llx %llx", (unsigned long long)check_hash(end.gpr, sizeof(end.gpr)),
           (unsigned long long)end.flags, (unsigned long long)state, (unsigned long long)hash_memory());
    if (in_full)
        print_all();
    printf("\n");
}

/* Each case has its own numbers, so that it can be had alone. */
static uint64_t seed_of(const uint8_t *bytes, uint64_t round)
{
    return check_hash(bytes, 15) ^ (round * 0x9e3779b97f4a7c15ull) ^ 1;
}

static bool is_read_only_round(uint64_t round)
{
    return round & 1;
}

/* What programs are not let go for: README.md, limits. */
static bool is_followed_with_gs(const struct sample *s, const ZydisDecodedOperand *op)
{
    bool is_masked = op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
                     ((s->insn.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX && s->insn.avx.mask.reg != ZYDIS_REGISTER_K0 &&
                       s->insn.avx.mask.reg != ZYDIS_REGISTER_NONE) ||
                      s->insn.mnemonic == ZYDIS_MNEMONIC_VMASKMOVPS || s->insn.mnemonic == ZYDIS_MNEMONIC_VMASKMOVPD ||
                      s->insn.mnemonic == ZYDIS_MNEMONIC_VPMASKMOVD || s->insn.mnemonic == ZYDIS_MNEMONIC_VPMASKMOVQ);

    switch (s->insn.mnemonic) {
    case ZYDIS_MNEMONIC_CLFLUSH: case ZYDIS_MNEMONIC_CLFLUSHOPT: case ZYDIS_MNEMONIC_CLWB: case ZYDIS_MNEMONIC_CLDEMOTE:
    case ZYDIS_MNEMONIC_MOVDIR64B: case ZYDIS_MNEMONIC_CLZERO:
        return false;
    default: break;
    }
    return op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.type == ZYDIS_MEMOP_TYPE_MEM && !is_masked &&
           op->encoding == ZYDIS_OPERAND_ENCODING_MODRM_RM && s->insn.meta.category != ZYDIS_CATEGORY_MPX;
}

/* Of the same instruction, one in four that can be.  Without fsgsbase programs are let go for some of these. */
static void make_relative_to_gs(struct sample *s, uint64_t round)
{
    struct sample with = { .bytes = { 0x65 } };

    seed = seed_of(s->bytes, round + 1000);
    if (below(4) || s->bytes[0] == 0x65 || !(getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE))
        return;
    memcpy(with.bytes + 1, s->bytes, 14);
    for (unsigned n = 0; n < s->insn.operand_count_visible; n++)
        if (is_followed_with_gs(s, &s->op[n]) && decode(&with)) {
            *s = with;
            return;
        }
}

static void try_bytes(const uint8_t *bytes, uint64_t round, uint64_t code, bool in_full)
{
    struct sample s;

    memcpy(s.bytes, bytes, 15);
    if (!decode(&s) || is_left_out(&s))
        return;
    if (!in_full)
        make_relative_to_gs(&s, round);
    memset(s.bytes + s.insn.length, 0, 15u - s.insn.length);
    seed = seed_of(s.bytes, round);
    make_start();
    prepare(&s, code);
    if (is_read_only_round(round))
        mprotect((void *)(uintptr_t)(code & ~(PAGE - 1ull)), PAGE, PROT_READ | PROT_WRITE);
    put_code(&s, code);
    if (is_read_only_round(round))
        mprotect((void *)(uintptr_t)(code & ~(PAGE - 1ull)), PAGE, PROT_READ | PROT_EXEC);
    run_case(&s, code, in_full);
}

static uint64_t next_code(void)
{
    static uint64_t next;

    next = (next + SLOT) % CODE_BYTES;
    return CODE + next;
}

/* ---- all ---- */

/* ModR/M and what may follow it. */
static void put_operands(uint8_t *at, unsigned reg)
{
    unsigned mod = (unsigned)below(4);

    for (unsigned n = 0; n < 8; n++)
        at[n] = (uint8_t)any();
    at[0] = (uint8_t)(mod << 6 | reg << 3 | below(8));
    if (below(3) == 0)
        at[0] = (uint8_t)(reg << 3 | 5); /* rip-relative */
    if (mod == 2)
        put(at + 2, below(256), 8);
}

static void legacy(uint64_t round, unsigned map, unsigned opcode, unsigned reg)
{
    static const uint8_t prefixes[] = { 0, 0x66, 0xf2, 0xf3, 0xf0, 0x67 };

    for (unsigned p = 0; p < sizeof(prefixes); p++) {
        uint8_t bytes[24] = { 0 };
        unsigned n = 0;

        if (prefixes[p])
            bytes[n++] = prefixes[p];
        if (below(2))
            bytes[n++] = (uint8_t)(0x40 | below(16));
        if (map)
            bytes[n++] = 0x0f;
        if (map >= 2)
            bytes[n++] = map == 2 ? 0x38 : 0x3a;
        bytes[n++] = (uint8_t)opcode;
        put_operands(bytes + n, reg);
        try_bytes(bytes, round, next_code(), false);
    }
}

static void vex(uint64_t round, unsigned map, unsigned opcode, unsigned reg)
{
    for (unsigned n = 0; n < 16; n++) { /* pp, L, W */
        uint8_t bytes[24] = { 0xc4, (uint8_t)(below(8) << 5 | map),
                              (uint8_t)((n >> 3) << 7 | below(16) << 3 | (n >> 2 & 1) << 2 | (n & 3)), (uint8_t)opcode };

        if (below(2))
            bytes[2] |= 0x78; /* where vvvv must be so */
        put_operands(bytes + 4, reg);
        try_bytes(bytes, round, next_code(), false);
    }
}

static void evex(uint64_t round, unsigned map, unsigned opcode, unsigned reg)
{
    for (unsigned n = 0; n < 32; n++) { /* pp, W, L'L */
        uint8_t bytes[24] = { 0x62, (uint8_t)(below(16) << 4 | map),
                              (uint8_t)((n >> 2 & 1) << 7 | below(16) << 3 | 4 | (n & 3)),
                              (uint8_t)(below(2) << 7 | (n >> 3) << 5 | (below(4) == 0) << 4 | below(2) << 3 | below(8)),
                              (uint8_t)opcode };

        if (below(2)) {
            bytes[2] |= 0x78;
            bytes[3] |= 8;
        }
        put_operands(bytes + 5, reg);
        try_bytes(bytes, round, next_code(), false);
    }
}

static void everything(uint64_t round, uint64_t first)
{
    CHECK(mprotect((void *)(uintptr_t)CODE, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
    for (unsigned opcode = 0; opcode < 256; opcode++) {
        for (unsigned reg = 0; reg < 8; reg += round > 1 ? 1 + (unsigned)below(3) : 3 + (unsigned)below(5)) {
            seed = (first * 0x10001 + round) * 0x9e3779b97f4a7c15ull + opcode * 8 + reg + 1;
            for (unsigned map = 0; map < 4; map++)
                legacy(round, map, opcode, reg);
            seed = (first * 0x10001 + round) * 0x9e3779b97f4a7c15ull + 4096 + opcode * 8 + reg;
            for (unsigned map = 1; map < 4; map++)
                vex(round, map, opcode, reg);
            for (unsigned map = 1; map < 7; map++)
                evex(round, map, opcode, reg);
        }
    }
}

static void only(const char *hex)
{
    uint8_t bytes[24] = { 0 };

    for (unsigned n = 0; n < 15 && hex[0] && hex[1]; n++, hex += 2)
        sscanf(hex, "%2hhx", &bytes[n]);
    for (uint64_t round = 0; round < 40; round++)
        try_bytes(bytes, round, next_code(), true);
}

int main(int argc, char **argv)
{
    uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 0) : 2;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;

    set_up();
    if (argc > 3)
        only(argv[3]);
    else
        for (uint64_t round = 0; round < rounds; round++)
            everything(round, first);
    return 0;
}
