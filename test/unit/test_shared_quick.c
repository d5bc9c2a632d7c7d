// SPDX-License-Identifier: MIT
// links: tbd_hooks_host tbd_patcher_host tbd_base Zydis::Zydis
/* The usual accesses to shared memory, done as the engine does them (hooks/instructions/shared_quick_shape.c), against the
 * processor: registers, flags and memory afterwards, for random values. */
#include "hooks/instructions/shared_quick_shape.h"
#include "patcher/patcher.h"

#include <Zydis/Zydis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define ARITHMETIC 0x8d5ul

struct quick_state {
    uint64_t gpr[TBD_REG_COUNT];
    uint64_t rflags;
    uint64_t memory; /* rdi leads here */
};

/* Calls `code` with general registers but rsp, rbp, rsi, r10 to r15, and with the flags. */
void quick_native(struct quick_state *state, const void *code);
__asm__(".text; .globl quick_native; .type quick_native, @function; quick_native:\n"
        "push %rbx; push %r14; push %r15; mov %rdi, %r14; mov %rsi, %r15\n"
        "push 128(%r14); popfq\n"
        "mov (%r14), %rax; mov 8(%r14), %rcx; mov 16(%r14), %rdx; mov 24(%r14), %rbx\n"
        "mov 64(%r14), %r8; mov 72(%r14), %r9; lea 136(%r14), %rdi\n"
        "call *%r15\n"
        "pushfq; pop 128(%r14)\n"
        "mov %rax, (%r14); mov %rcx, 8(%r14); mov %rdx, 16(%r14); mov %rbx, 24(%r14)\n"
        "mov %r8, 64(%r14); mov %r9, 72(%r14)\n"
        "pop %r15; pop %r14; pop %rbx; ret\n"
        ".size quick_native, . - quick_native");

/* ---- instructions ---- */

struct quick_opcode {
    uint8_t bytes[2]; /* [0] 0x0f: two */
    uint8_t digits;   /* bits: of the constants' forms; 0: a register */
    uint8_t constant; /* bytes of the constant; 4: 2 with the prefix */
    bool can_lock;
};

static const struct quick_opcode opcodes[] = {
    { { 0x00 }, 0, 0, true },           { { 0x01 }, 0, 0, true },
    { { 0x02 }, 0, 0, false },          { { 0x03 }, 0, 0, false },
    { { 0x08 }, 0, 0, true },           { { 0x09 }, 0, 0, true },
    { { 0x0a }, 0, 0, false },          { { 0x0b }, 0, 0, false },
    { { 0x10 }, 0, 0, true },           { { 0x11 }, 0, 0, true },
    { { 0x12 }, 0, 0, false },          { { 0x13 }, 0, 0, false },
    { { 0x18 }, 0, 0, true },           { { 0x19 }, 0, 0, true },
    { { 0x1a }, 0, 0, false },          { { 0x1b }, 0, 0, false },
    { { 0x20 }, 0, 0, true },           { { 0x21 }, 0, 0, true },
    { { 0x22 }, 0, 0, false },          { { 0x23 }, 0, 0, false },
    { { 0x28 }, 0, 0, true },           { { 0x29 }, 0, 0, true },
    { { 0x2a }, 0, 0, false },          { { 0x2b }, 0, 0, false },
    { { 0x30 }, 0, 0, true },           { { 0x31 }, 0, 0, true },
    { { 0x32 }, 0, 0, false },          { { 0x33 }, 0, 0, false },
    { { 0x38 }, 0, 0, false },          { { 0x39 }, 0, 0, false },
    { { 0x3a }, 0, 0, false },          { { 0x3b }, 0, 0, false },
    { { 0x80 }, 0x7f, 1, true },        { { 0x81 }, 0x7f, 4, true },
    { { 0x83 }, 0x7f, 1, true },        { { 0x80 }, 0x80, 1, false },
    { { 0x81 }, 0x80, 4, false },       { { 0x83 }, 0x80, 1, false },
    { { 0x84 }, 0, 0, false },          { { 0x85 }, 0, 0, false },
    { { 0xf6 }, 1, 1, false },          { { 0xf7 }, 1, 4, false },
    { { 0x86 }, 0, 0, true },           { { 0x87 }, 0, 0, true },
    { { 0x88 }, 0, 0, false },          { { 0x89 }, 0, 0, false },
    { { 0x8a }, 0, 0, false },          { { 0x8b }, 0, 0, false },
    { { 0xc6 }, 1, 1, false },          { { 0xc7 }, 1, 4, false },
    { { 0x63 }, 0, 0, false },          { { 0x0f, 0xb6 }, 0, 0, false },
    { { 0x0f, 0xb7 }, 0, 0, false },    { { 0x0f, 0xbe }, 0, 0, false },
    { { 0x0f, 0xbf }, 0, 0, false },    { { 0x0f, 0xb0 }, 0, 0, true },
    { { 0x0f, 0xb1 }, 0, 0, true },     { { 0x0f, 0xc0 }, 0, 0, true },
    { { 0x0f, 0xc1 }, 0, 0, true },     { { 0x0f, 0xba }, 0xe0, 1, true },
    { { 0x0f, 0xba }, 0x10, 1, false },
};
#define OPCODES (sizeof(opcodes) / sizeof(opcodes[0]))

static uint64_t random_word(void)
{
    static uint64_t state = 0x9e3779b97f4a7c15ull;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    switch (state >> 60 & 3) {
    case 0: return state >> 32 & 0x80ff;
    case 1: return UINT64_MAX;
    default: return state * 0x2545f4914f6cdd1dull;
    }
}

static uint8_t random_digit(uint8_t digits)
{
    uint8_t digit = random_word() >> 20 & 7;

    while (digits && !(digits >> digit & 1))
        digit = (digit + 1) & 7;
    return digit;
}

/* Writes an instruction on [rdi], and ret; returns the instruction's length. */
static uint32_t make(uint8_t *out, const struct quick_opcode *opcode)
{
    uint64_t choice = random_word();
    bool has_word_prefix = choice & 1 << 8, has_lock = opcode->can_lock && choice & 1 << 9;
    uint8_t rex = choice & 1 << 10 ? 0x40 | (choice >> 11 & 0xc) : 0, reg;
    uint32_t at = 0;

    if (has_lock)
        out[at++] = 0xf0;
    if (has_word_prefix)
        out[at++] = 0x66;
    reg = opcode->digits ? random_digit(opcode->digits) : choice >> 16 & 7;
    /* rsp, rbp, rsi, rdi are not the test's; without REX they may be ah, ch, dh, bh */
    if (!opcode->digits && (rex || opcode->bytes[0] == 0x0f || opcode->bytes[0] & 1))
        reg &= rex & 4 ? 1 : 3;
    if (rex)
        out[at++] = rex;
    out[at++] = opcode->bytes[0];
    if (opcode->bytes[0] == 0x0f)
        out[at++] = opcode->bytes[1];
    out[at++] = (uint8_t)(reg << 3 | 7);
    choice = random_word();
    memcpy(out + at, &choice, 4);
    at += opcode->constant == 4 && has_word_prefix && !(rex & 8) ? 2 : opcode->constant;
    out[at] = 0xc3;
    return at;
}

static uint8_t *make_page(void)
{
    uint8_t *page =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(page, MAP_FAILED);
    return page;
}

static void fill_state(struct quick_state *state)
{
    for (unsigned r = 0; r < TBD_REG_COUNT; r++)
        state->gpr[r] = random_word();
    state->rflags = (random_word() & ARITHMETIC) | 0x202;
    state->memory = random_word() & 1 ? random_word() : state->gpr[TBD_RAX];
}

static void compare(const uint8_t *code, uint32_t length, const struct tbd_quick_shape *shape)
{
    struct quick_state expected;
    struct tbd_regs regs = { 0 };
    uint64_t memory;

    fill_state(&expected);
    memcpy(regs.gpr, expected.gpr, sizeof(regs.gpr));
    regs.rflags = expected.rflags;
    memory = expected.memory;
    quick_native(&expected, code);
    {
        uint64_t old =
            shape->form == TBD_QUICK_STORE ? 0 : memory & (UINT64_MAX >> (64 - 8 * shape->size));
        uint64_t found = tbd_quick_run(shape, &regs, old);

        memcpy(&memory, &found, shape->writes ? shape->size : 0);
    }
    if (memory == expected.memory && (regs.rflags & ARITHMETIC) == (expected.rflags & ARITHMETIC) &&
        !memcmp(regs.gpr, expected.gpr, sizeof(regs.gpr)))
        return;
    print_error("after");
    for (uint32_t i = 0; i < length; i++)
        print_error(" %02x", code[i]);
    print_error(": memory %lx, not %lx; flags %lx, not %lx\n", memory, expected.memory,
                regs.rflags & ARITHMETIC, expected.rflags & ARITHMETIC);
    for (unsigned r = 0; r < TBD_REG_COUNT; r++)
        if (regs.gpr[r] != expected.gpr[r])
            print_error("  register %u %lx, not %lx\n", r, regs.gpr[r], expected.gpr[r]);
    fail();
}

static void instructions_of_all_forms_do_what_the_processor_does(void **state)
{
    uint8_t *page = make_page();
    unsigned forms = 0;

    (void)state;
    for (unsigned n = 0; n < OPCODES * 400; n++) {
        uint8_t *code = page + n % 64 * 32;
        uint32_t length = make(code, &opcodes[n % OPCODES]);
        struct tbd_quick_shape shape;
        struct tbd_insn insn;

        assert_true(tbd_decode(&insn, (uint64_t)(uintptr_t)code, code, 15));
        assert_int_equal(insn.length, length);
        shape = tbd_quick_shape_of(&insn, code);
        if (shape.form == TBD_QUICK_NONE) { /* movsxd of other sizes */
            assert_true(opcodes[n % OPCODES].bytes[0] == 0x63);
            continue;
        }
        forms |= 1u << shape.form;
        assert_int_equal(shape.is_locked,
                         code[0] == 0xf0 || (code[insn.modrm_at - 1] & 0xfe) == 0x86);
        for (unsigned i = 0; i < 8; i++)
            compare(code, length, &shape);
    }
    assert_int_equal(forms, (1u << (TBD_QUICK_CMPXCHG + 1)) - 2);
    munmap(page, 4096);
}

static void other_instructions_have_no_shape(void **state)
{
    static const uint8_t others[][10] = {
        { 0x8b, 0xc7 },                   /* mov eax, edi */
        { 0xff, 0x07 },                   /* inc dword [rdi] */
        { 0xf3, 0x0f, 0xb8, 0x07 },       /* popcnt eax, [rdi] */
        { 0x0f, 0xab, 0x07 },             /* bts [rdi], eax: anywhere in memory */
        { 0xc5, 0xfa, 0x6f, 0x07 },       /* vmovdqu xmm0, [rdi] */
        { 0x0f, 0x38, 0xf0, 0x07 },       /* movbe eax, [rdi] */
        { 0xff, 0x37 },                   /* push [rdi] */
        { 0xf7, 0x1f },                   /* neg dword [rdi] */
        { 0x0f, 0xc7, 0x0f },             /* cmpxchg8b [rdi] */
        { 0x8d, 0x07 },                   /* lea eax, [rdi] */
        { 0xf2, 0x0f, 0x38, 0xf1, 0x07 }, /* crc32 eax, [rdi] */
        { 0x90 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        struct tbd_insn insn;

        assert_true(tbd_decode(&insn, 0x1000, others[i], sizeof(others[i])));
        assert_int_equal(tbd_quick_shape_of(&insn, others[i]).form, TBD_QUICK_NONE);
    }
}

static uint32_t decoder_init(void *decoder, int mode, int width)
{
    return ZydisDecoderInit(decoder, (ZydisMachineMode)mode, (ZydisStackWidth)width);
}

static uint32_t decode_full(const void *decoder, const void *bytes, uint64_t length,
                            void *instruction, void *operands)
{
    return ZydisDecoderDecodeFull(decoder, bytes, length, instruction, operands);
}

static int set_up(void **state)
{
    static const struct tbd_decoder_api api = { decoder_init, decode_full, NULL };

    (void)state;
    tbd_patcher_set_decoder(&api);
    tbd_decode_init();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instructions_of_all_forms_do_what_the_processor_does),
        cmocka_unit_test(other_instructions_have_no_shape),
    };

    return cmocka_run_group_tests(tests, set_up, NULL);
}
