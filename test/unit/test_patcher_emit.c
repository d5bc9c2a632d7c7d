// SPDX-License-Identifier: MIT
// links: tbd_patcher_host tbd_base Zydis::Zydis
/* test_patcher_emit.c - emitted and re-encoded bytes, read back by the decoder library */
#include "base/hash.h"
#include "patcher/emit.h"
#include "patcher/patcher.h"
#include "patcher/translate.h"

#include <Zydis/Zydis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static uint8_t buffer[64];

static struct tbd_emit emitter(uint64_t runs_at)
{
    return (struct tbd_emit){ .at = buffer,
                              .end = buffer + sizeof(buffer),
                              .delta = (int64_t)runs_at - (int64_t)(uintptr_t)buffer };
}

static const char *text_of(const uint8_t *code, uint64_t pc)
{
    static ZydisDisassembledInstruction i;

    if (!ZYAN_SUCCESS(ZydisDisassembleIntel(ZYDIS_MACHINE_MODE_LONG_64, pc, code, 15, &i)))
        return "not an instruction";
    return i.text;
}

static void expect(const struct tbd_emit *e, const char *text)
{
    ZydisDisassembledInstruction i;
    uint64_t pc = (uint64_t)((int64_t)(uintptr_t)buffer + e->delta);

    assert_false(e->overflow);
    assert_true(
        ZYAN_SUCCESS(ZydisDisassembleIntel(ZYDIS_MACHINE_MODE_LONG_64, pc, buffer, 15, &i)));
    assert_string_equal(i.text, text);
    assert_ptr_equal(e->at, buffer + i.info.length);
}

#define EXPECT(at, call, text)                                                                     \
    do {                                                                                           \
        struct tbd_emit e_ = emitter(at);                                                          \
        struct tbd_emit *e = &e_;                                                                  \
        call;                                                                                      \
        expect(e, text);                                                                           \
    } while (0)

static struct tbd_ea ea(unsigned base, unsigned index, unsigned scale, int64_t disp)
{
    return (struct tbd_ea){
        .base = (uint8_t)base, .index = (uint8_t)index, .scale = (uint8_t)scale, .disp = disp
    };
}

static void moves_between_registers_and_the_thread_block(void **state)
{
    (void)state;
    EXPECT(0, tbd_emit_load_gs(e, TBD_RAX, -8), "mov rax, gs:[0xFFFFFFFFFFFFFFF8]");
    EXPECT(0, tbd_emit_load_gs(e, TBD_R12, -8), "mov r12, gs:[0xFFFFFFFFFFFFFFF8]");
    EXPECT(0, tbd_emit_store_gs(e, TBD_R9, -304), "mov gs:[0xFFFFFFFFFFFFFED0], r9");
    EXPECT(0, tbd_emit_store_gs_imm(e, -64, 7), "mov dword ptr gs:[0xFFFFFFFFFFFFFFC0], 0x07");
    EXPECT(0, tbd_emit_mov(e, TBD_RCX, TBD_R11), "mov rcx, r11");
}

static void immediates_take_the_shortest_form_that_holds_them(void **state)
{
    (void)state;
    EXPECT(0, tbd_emit_mov_imm(e, TBD_R9, 5), "mov r9d, 0x05");
    EXPECT(0, tbd_emit_mov_imm(e, TBD_RDX, 0xffffffff), "mov edx, 0xFFFFFFFF");
    EXPECT(0, tbd_emit_mov_imm(e, TBD_RDX, UINT64_MAX), "mov rdx, 0xFFFFFFFFFFFFFFFF");
    EXPECT(0, tbd_emit_mov_imm(e, TBD_R11, 0x123456789a), "mov r11, 0x123456789A");
}

static void addresses_get_the_bytes_their_base_demands(void **state)
{
    struct tbd_ea a;

    (void)state;
    a = ea(TBD_RSP, TBD_NO_REG, 1, 0);
    EXPECT(0, tbd_emit_lea(e, TBD_RAX, &a), "lea rax, [rsp]");
    a = ea(TBD_R12, TBD_NO_REG, 1, 8);
    EXPECT(0, tbd_emit_lea(e, TBD_R8, &a), "lea r8, [r12+0x08]");
    a = ea(TBD_R13, TBD_NO_REG, 1, 0);
    EXPECT(0, tbd_emit_lea(e, TBD_RAX, &a), "lea rax, [r13]");
    a = ea(TBD_RBP, TBD_R15, 8, 0);
    EXPECT(0, tbd_emit_lea(e, TBD_RAX, &a), "lea rax, [rbp+r15*8]");
    a = ea(TBD_NO_REG, TBD_R9, 4, 0x1000);
    EXPECT(0, tbd_emit_lea(e, TBD_RBX, &a), "lea rbx, [r9*4+0x1000]");
    a = ea(TBD_RBX, TBD_RCX, 2, -0x12345);
    EXPECT(0, tbd_emit_load(e, TBD_RSI, &a, 4), "mov esi, [rbx+rcx*2-0x12345]");
}

static void absolute_addresses_are_short_or_relative(void **state)
{
    struct tbd_ea a = ea(TBD_NO_REG, TBD_NO_REG, 1, 0x1000);

    (void)state;
    EXPECT(0x700000000000, tbd_emit_load(e, TBD_RAX, &a, 8), "mov rax, [0x0000000000001000]");
    a.disp = 0x700000001234;
    EXPECT(0x700000000000, tbd_emit_load(e, TBD_RAX, &a, 8), "mov rax, [0x0000700000001234]");
    EXPECT(0x700000000000, tbd_emit_store(e, TBD_RSI, &a, 1), "mov [0x0000700000001234], sil");
}

static void widths_of_loads_and_stores(void **state)
{
    struct tbd_ea a = ea(TBD_R14, TBD_NO_REG, 1, 300);

    (void)state;
    EXPECT(0, tbd_emit_load(e, TBD_RDI, &a, 1), "movzx edi, byte ptr [r14+0x12C]");
    EXPECT(0, tbd_emit_load(e, TBD_RDI, &a, 2), "movzx edi, word ptr [r14+0x12C]");
    EXPECT(0, tbd_emit_store(e, TBD_RDI, &a, 1), "mov [r14+0x12C], dil");
    EXPECT(0, tbd_emit_store(e, TBD_R8, &a, 2), "mov [r14+0x12C], r8w");
    EXPECT(0, tbd_emit_store(e, TBD_R8, &a, 8), "mov [r14+0x12C], r8");
}

static void the_touch_map_is_marked_by_32_bit_arithmetic(void **state)
{
    (void)state;
    EXPECT(0, tbd_emit_rorx(e, TBD_R9, TBD_RBX, 12), "rorx r9, rbx, 0x0C");
    EXPECT(0, tbd_emit_rorx(e, TBD_RAX, TBD_R12, 12), "rorx rax, r12, 0x0C");
    EXPECT(0, tbd_emit_mark(e, TBD_R9, 1), "mov byte ptr gs:[r9d+r9d*1+0x01], 0x01");
    EXPECT(0, tbd_emit_mark(e, TBD_RBP, 0), "mov byte ptr gs:[ebp+ebp*1], 0x01");
    EXPECT(0, tbd_emit_mark_at(e, 0x80001234), "mov byte ptr gs:[0x0000000080001234], 0x01");
    EXPECT(0, tbd_emit_sarx(e, TBD_R8, TBD_RSI, TBD_R10), "sarx r8, rsi, r10");
    EXPECT(0, tbd_emit_store_imm32(e, TBD_R15, 77), "mov dword ptr [r15], 0x4D");
}

static void a_patchable_jump_does_not_straddle_a_line(void **state)
{
    (void)state;
    for (uint64_t at = 0x1000; at < 0x1040; at++) {
        struct tbd_emit e = emitter(at);
        uint64_t rel32 = (uint64_t)(tbd_emit_jmp(&e, 0x2000) - buffer) + at;

        assert_int_equal(rel32 / 64, (rel32 + 3) / 64);
        e = emitter(at);
        rel32 = (uint64_t)(tbd_emit_jcc(&e, 5, 0x2000) - buffer) + at;
        assert_int_equal(rel32 / 64, (rel32 + 3) / 64);
    }
}

static void past_the_end_is_sticky_and_writes_nothing(void **state)
{
    struct tbd_emit e = { .at = buffer, .end = buffer + 3 };

    (void)state;
    memset(buffer, 0xcc, sizeof(buffer));
    tbd_emit_u32(&e, 1);
    assert_true(e.overflow);
    tbd_emit_u8(&e, 1);
    assert_int_equal(buffer[0], 0xcc);
    assert_ptr_equal(e.at, buffer);
}

/* ---- re-encoding ---- */

static uint64_t seed = 7;

static unsigned below(unsigned n)
{
    seed = tbd_hash64_mix(seed + 0x9e3779b97f4a7c15ull);
    return (unsigned)(seed >> 20) % n;
}

static void random_bytes(uint8_t *out)
{
    unsigned at = 0;

    for (unsigned n = 0; n < 24; n++)
        out[n] = (uint8_t)below(256);
    switch (below(4)) {
    case 0:
        out[at++] = 0xc4;
        out[at] = (uint8_t)((out[at] & 0xe0) | (1 + below(3)));
        break;
    case 1:
        out[at++] = 0x62;
        out[at] = (uint8_t)((out[at] & 0xf0) | (1 + below(3)));
        out[at + 1] |= 4;
        break;
    default:
        out[at++] = (uint8_t)(0x41 + below(15));
        if (below(2))
            out[at] = 0x0f;
        break;
    }
}

/* r14 -> r8 + a, r15 -> r8 + b in a disassembled text */
static void substitute_text(char *text, unsigned a, unsigned b)
{
    char out[128];
    char *to = out;

    for (const char *from = text; *from;) {
        if (from[0] == 'r' && from[1] == '1' && (from[2] == '4' || from[2] == '5')) {
            to += sprintf(to, "r%u", 8 + (from[2] == '4' ? a : b));
            from += 3;
        } else {
            *to++ = *from++;
        }
    }
    *to = 0;
    strcpy(text, out);
}

static bool names_r14_or_r15(const struct tbd_insn *insn)
{
    for (unsigned f = 0; f < TBD_FIELD_COUNT; f++)
        if (insn->field[f] == TBD_R14 || insn->field[f] == TBD_R15)
            return true;
    return false;
}

static void substitutes_replace_r14_and_r15_wherever_they_are_named(void **state)
{
    unsigned tried = 0;

    (void)state;
    while (tried < 20000) {
        uint8_t bytes[24];
        struct tbd_insn insn;
        struct tbd_translation t = { .place = { .sub = { (uint8_t)(8 + below(2)),
                                                         (uint8_t)(10 + below(2)) } } };
        char expected[128];

        random_bytes(bytes);
        if (!tbd_decode(&insn, 0x1000, bytes, 15) || insn.kind != TBD_INSN_PLAIN ||
            !names_r14_or_r15(&insn) || insn.rip_relative || insn.gs)
            continue;
        snprintf(expected, sizeof(expected), "%s", text_of(bytes, 0x1000));
        substitute_text(expected, t.place.sub[0] - 8u, t.place.sub[1] - 8u);
        t.e = emitter(0x1000);
        tbd_reencode(&t, &insn, TBD_NO_REG);
        if (strcmp(text_of(buffer, 0x1000), expected) != 0)
            print_error("was %s\n", text_of(bytes, 0x1000));
        assert_string_equal(text_of(buffer, 0x1000), expected);
        tried++;
    }
}

static void operands_relative_to_gs_are_in_a_register(void **state)
{
    static const struct {
        uint8_t bytes[15];
        const char *text;
    } cases[] = {
        { { 0x65, 0x48, 0x8b, 0x04, 0x25, 0x28 }, "mov rax, [rsi]" },
        { { 0x65, 0x67, 0x4d, 0x01, 0x7c, 0x98, 0x10 }, "add [rsi], r10" },
        { { 0x48, 0x65, 0x66, 0x81, 0xb8, 0, 1, 0, 0, 0x34, 0x12 }, "cmp word ptr [rsi], 0x1234" },
        { { 0x65, 0x8a, 0x05, 1, 0, 0, 0 }, "mov al, [rsi]" },
        { { 0x65, 0x48, 0xa3, 8 }, "mov [rsi], rax" },
        { { 0x65, 0xa0, 8 }, "mov al, [rsi]" },
        { { 0x65, 0xd7 }, "mov al, [rsi]" },
        { { 0x65, 0xc4, 0x81, 0x7a, 0x6f, 0x0c, 0x31 }, "vmovdqu xmm1, [rsi]" },
        { { 0x65, 0x62, 0xd1, 0x7e, 0x48, 0x7f, 0x48, 0x01 }, "vmovdqu32 zmmword ptr [rsi], zmm1" },
    };

    (void)state;
    for (unsigned n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
        struct tbd_translation t = { .place = { .sub = { 9, 10 } } };
        struct tbd_insn insn;

        assert_true(tbd_decode(&insn, 0x1000, cases[n].bytes, 15));
        assert_true(insn.gs && insn.kind == TBD_INSN_PLAIN);
        t.e = emitter(0x1000);
        tbd_reencode(&t, &insn, TBD_RSI);
        assert_string_equal(text_of(buffer, 0x1000), cases[n].text);
    }
}

/* The engine executes operands relative to gs whose address cannot be put into a register. */
static void other_uses_of_gs_are_not_translated(void **state)
{
    static const struct {
        uint8_t bytes[15];
        uint8_t special;
    } cases[] = {
        { { 0x65, 0xa4 }, TBD_SPECIAL_APART },                   /* movsb */
        { { 0xf3, 0x65, 0xa5 }, TBD_SPECIAL_REP_STORE },         /* rep movsd */
        { { 0xf3, 0x65, 0xac }, TBD_SPECIAL_LOADS },             /* rep lodsb */
        { { 0x65, 0x0f, 0xae, 0x00 }, TBD_SPECIAL_OTHER_STORE }, /* fxsave gs:[rax] */
        { { 0x65, 0x0f, 0xae, 0x20 }, TBD_SPECIAL_XSAVE },       /* xsave gs:[rax] */
        { { 0x65, 0xdd, 0x00 }, TBD_SPECIAL_APART },             /* fld gs:[rax] */
        { { 0x65, 0x48, 0x0f, 0xc7, 0x0c, 0x3e },
          TBD_SPECIAL_APART }, /* cmpxchg16b gs:[rsi + rdi] */
        { { 0x65, 0xc4, 0xe2, 0x7d, 0x2e, 0x08 },
          TBD_SPECIAL_MASKED_STORE }, /* vmaskmovps gs:[rax], ymm0, ymm1 */
        { { 0x65, 0xc4, 0xe2, 0x75, 0x90, 0x04, 0x20 }, TBD_SPECIAL_LOADS }, /* a gather */
        { { 0x8e, 0xe8 }, TBD_SPECIAL_SEGMENT },                             /* mov gs, eax */
        { { 0x0f, 0xa9 }, TBD_SPECIAL_SEGMENT },                             /* pop gs */
        { { 0x8c, 0xe8 }, TBD_SPECIAL_STATE },                               /* mov eax, gs */
        { { 0x0f, 0xa0 }, TBD_SPECIAL_STATE },                               /* push fs */
        { { 0x0f, 0x03, 0xc0 }, TBD_SPECIAL_STATE },                         /* lsl eax, eax */
        { { 0xc7, 0xf8, 1, 0, 0, 0 }, TBD_SPECIAL_XBEGIN },
    };

    (void)state;
    for (unsigned n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
        struct tbd_insn insn;

        assert_true(tbd_decode(&insn, 0x1000, cases[n].bytes, 15));
        assert_int_equal(insn.kind, TBD_INSN_SPECIAL);
        assert_int_equal(insn.special, cases[n].special);
    }
}

static void rip_relative_operands_keep_their_target(void **state)
{
    static const uint8_t cmp_rip_imm[] = { 0x81, 0x3d, 0x10, 0, 0, 0, 0x78, 0x56, 0x34, 0x12 };
    struct tbd_translation t = { .place = { .sub = { TBD_NO_REG, TBD_NO_REG } } };
    struct tbd_insn insn;

    (void)state;
    assert_true(tbd_decode(&insn, 0x400000, cmp_rip_imm, sizeof(cmp_rip_imm)));
    t.e = emitter(0x500000);
    tbd_reencode(&t, &insn, TBD_NO_REG);
    assert_string_equal(text_of(buffer, 0x500000),
                        "cmp dword ptr [0x000000000040001A], 0x12345678");
    t.e = emitter(0x7f0000000000);
    tbd_reencode(&t, &insn, TBD_RSI);
    assert_string_equal(text_of(buffer, 0x7f0000000000), "cmp dword ptr [rsi], 0x12345678");
}

/* Few different beginnings, so that most have been seen before; jumps, calls and operands relative to rip, with
 * prefixes, among them. */
static void bytes_seen_before(uint8_t *out)
{
    static const uint8_t beginnings[][4] = {
        { 0xe8 },          { 0xe9 },
        { 0xeb },          { 0x75 },
        { 0x0f, 0x84 },    { 0x66, 0xe9 },
        { 0x66, 0xe8 },    { 0x66, 0x0f, 0x85 },
        { 0x2e, 0x74 },    { 0xe3 },
        { 0x67, 0xe3 },    { 0xe2 },
        { 0xc7, 0xf8 },    { 0x48, 0x8b, 0x05 },
        { 0x8b, 0x0d },    { 0x65, 0x48, 0x8b, 0x05 },
        { 0x64, 0x8b, 5 }, { 0x67, 0x8b, 0x05 },
        { 0xff, 0x35 },    { 0x66, 0x0f, 0x6f, 0x05 },
        { 0xff, 0x25 },    { 0x81, 0x3d },
        { 0x8f, 0x05 },    { 0x0f, 0x1f, 0x05 },
        { 0x48, 0x63 },    { 0x48, 0xc7, 0x45 },
        { 0xc2 },          { 0x41, 0x80, 0x7c, 0x24 },
    };
    unsigned kind = below(3 * sizeof(beginnings) / sizeof(beginnings[0]));

    for (unsigned n = 0; n < 24; n++)
        out[n] = (uint8_t)(below(4) ? below(4) : below(256));
    if (kind < sizeof(beginnings) / sizeof(beginnings[0])) {
        memcpy(out, beginnings[kind], 4);
        return;
    }
    out[0] = (uint8_t)(0x40 + kind);
    out[1] = (uint8_t)(below(2) ? 0x88 + below(4) : below(256));
}

static void instructions_seen_before_are_those_that_the_library_finds(void **state)
{
    unsigned known = 0;

    (void)state;
    for (unsigned n = 0; n < 400000; n++) {
        uint64_t pc = ((uint64_t)below(1 << 20) << 24) + below(1 << 20);
        size_t limit = below(16) ? 24 : 1 + below(23);
        struct tbd_insn found, same;
        uint8_t bytes[24];
        bool good;

        bytes_seen_before(bytes);
        memset(&found, 0, sizeof(found));
        memset(&same, 0, sizeof(same));
        good = tbd_decode(&found, pc, bytes, limit);
        assert_int_equal(tbd_decode_known(&same, pc, bytes, limit), good);
        if (good)
            assert_memory_equal(&found, &same, sizeof(found));
        known += good;
    }
    assert_true(known > 200000);
}

static void expect_slot(const uint8_t *bytes, const char *text)
{
    struct tbd_translation t = { .place = { .sub = { TBD_NO_REG, TBD_NO_REG } } };
    struct tbd_insn insn;

    assert_true(tbd_decode(&insn, 0x1000, bytes, 15));
    t.e = emitter(0x1000);
    tbd_reencode_slot(&t, &insn);
    expect(&t.e, text);
}

static void r14_and_r15_can_be_memory_operands(void **state)
{
    static const uint8_t push_r14[15] = { 0x41, 0x56 };
    static const uint8_t pop_r15[15] = { 0x41, 0x5f };
    static const uint8_t mov_rbx_r14[15] = { 0x49, 0x8b, 0xde };
    static const uint8_t mov_r15_rax[15] = { 0x49, 0x89, 0xc7 };
    static const uint8_t add_r15b_spl_with_x[15] = { 0x43, 0x00, 0xe7 };
    static const uint8_t cmp_r14w_imm[15] = { 0x66, 0x41, 0x81, 0xfe, 0x34, 0x12 };

    (void)state;
    expect_slot(push_r14, "push gs:[0xFFFFFFFFFFFFFF30]");
    expect_slot(pop_r15, "pop gs:[0xFFFFFFFFFFFFFF38]");
    expect_slot(mov_rbx_r14, "mov rbx, gs:[0xFFFFFFFFFFFFFF30]");
    expect_slot(mov_r15_rax, "mov gs:[0xFFFFFFFFFFFFFF38], rax");
    expect_slot(add_r15b_spl_with_x, "add gs:[0xFFFFFFFFFFFFFF38], spl");
    expect_slot(cmp_r14w_imm, "cmp word ptr gs:[0xFFFFFFFFFFFFFF30], 0x1234");
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

/* Random bytes have many instructions that no program has. */
static void what_no_program_has_is_odd(void **state)
{
    static const struct {
        uint8_t bytes[15];
        bool is_odd;
    } cases[] = {
        { { 0x06 }, true },        /* invalid */
        { { 0xec }, true },        /* in al, dx */
        { { 0x0f, 0x30 }, true },  /* wrmsr */
        { { 0xcf }, true },        /* iret */
        { { 0xcd, 0x21 }, true },  /* int 0x21 */
        { { 0x00, 0x00 }, true },  /* add [rax], al: zeros */
        { { 0x00, 0xc8 }, false }, /* add al, cl */
        { { 0x0f, 0xa2 }, false }, /* cpuid */
        { { 0xf4 }, false },       /* hlt, ud2, ud1, int3: what does not return ends with them */
        { { 0x0f, 0x0b }, false }, { { 0x67, 0x0f, 0xb9, 0x40, 0x02 }, false },
        { { 0xcc }, false },       { { 0xf3, 0x48, 0x0f, 0xae, 0xe8 }, false }, /* incsspq rax */
        { { 0x8e, 0xc0 }, false },                                              /* mov es, eax */
        { { 0xc3 }, false },
    };

    (void)state;
    for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
        uint32_t length = 0;

        assert_int_equal(tbd_decode_is_odd(cases[n].bytes, 15, &length), cases[n].is_odd);
        assert_true(length != 0);
    }
}

int main(void)
{
    static const struct tbd_decoder_api api = { decoder_init, decode_full, NULL };
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_no_program_has_is_odd),
        cmocka_unit_test(moves_between_registers_and_the_thread_block),
        cmocka_unit_test(immediates_take_the_shortest_form_that_holds_them),
        cmocka_unit_test(addresses_get_the_bytes_their_base_demands),
        cmocka_unit_test(absolute_addresses_are_short_or_relative),
        cmocka_unit_test(widths_of_loads_and_stores),
        cmocka_unit_test(the_touch_map_is_marked_by_32_bit_arithmetic),
        cmocka_unit_test(a_patchable_jump_does_not_straddle_a_line),
        cmocka_unit_test(past_the_end_is_sticky_and_writes_nothing),
        cmocka_unit_test(substitutes_replace_r14_and_r15_wherever_they_are_named),
        cmocka_unit_test(operands_relative_to_gs_are_in_a_register),
        cmocka_unit_test(other_uses_of_gs_are_not_translated),
        cmocka_unit_test(rip_relative_operands_keep_their_target),
        cmocka_unit_test(instructions_seen_before_are_those_that_the_library_finds),
        cmocka_unit_test(r14_and_r15_can_be_memory_operands),
    };

    tbd_patcher_set_decoder(&api);
    tbd_decode_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
