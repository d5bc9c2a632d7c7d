// SPDX-License-Identifier: MIT
/* target_check.c - is the target of an indirect branch the one that it is expected to be?
 *
 * An indirect branch jumps by a table that has one entry for all targets with the same low 16 bits, so the code that it comes to
 * compares.  Flags stay as the program has them, which rules out cmp.
 *
 *   adox, where the processor has it (ADX): it reads and writes OF alone, and OF is got back from its result
 *   loop, or on Intel's processors, where that is microcode, jrcxz over a jump: rcx is in r10 meanwhile
 *
 * docs/adr/039-what-patching-alone-costs.md has what each costs.  Context: any. */
#include "patcher/translate.h"

#include "base/cpuid.h"

enum {
    FEATURES = 7, /* leaf of cpuid */
    ADX_BIT = 19, /* in ebx */
    JUMP_BYTES = 2,
    MOST_CHECK_BYTES = 64,
};
#define OVERFLOW_FLAG 0x800ull

bool tbd_translate_loop_is_slow, tbd_translate_has_adx;

void tbd_translate_init(void)
{
    static const char intel[] = "GenuineIntel";
    uint32_t r[4], maker[3];

    tbd_cpuid(0, 0, r);
    maker[0] = r[1];
    maker[1] = r[3];
    maker[2] = r[2];
    tbd_translate_loop_is_slow = __builtin_memcmp(maker, intel, sizeof(maker)) == 0;
    if (r[0] < FEATURES)
        return;
    tbd_cpuid(FEATURES, 0, r);
    tbd_translate_has_adx = r[1] >> ADX_BIT & 1;
}

/* out = r11 - address + add */
static void emit_difference(struct tbd_emit *e, unsigned out, uint64_t address, unsigned add)
{
    struct tbd_ea difference = { .base = TBD_R11, .index = TBD_NO_REG, .scale = 1 };

    if (address <= INT32_MAX) {
        difference.disp = (int64_t)(add - address);
    } else {
        tbd_emit_mov_imm(e, out, add - address);
        difference.index = (uint8_t)out;
    }
    tbd_emit_lea(e, out, &difference);
}

uint8_t *tbd_translate_compare(struct tbd_translation *t, uint64_t address)
{
    static const uint8_t loop[] = { 0xe2, 0 }, jrcxz_over_jmp8[] = { 0xe3, 2, 0xeb, 0 };

    tbd_emit_mov(&t->e, TBD_R10, TBD_RCX);
    emit_difference(&t->e, TBD_RCX, address, tbd_translate_loop_is_slow ? 0 : 1);
    if (tbd_translate_loop_is_slow)
        tbd_emit_bytes(&t->e, jrcxz_over_jmp8, sizeof(jrcxz_over_jmp8));
    else
        tbd_emit_bytes(&t->e, loop, sizeof(loop));
    return t->e.at - 1;
}

/* r10 = r11 - start - 2, with OF as the carry of that sum: a multiple of 65,536 (as the table of targets has it) carries unless it
 * is zero, with the program's OF added or not.  That is the lowest bit of r10 then. */
static void emit_adox_difference(struct tbd_emit *e, uint64_t start)
{
    emit_difference(e, TBD_R10, start, 0);
    tbd_emit_adox_gs(e, TBD_R10, TBD_THREAD_GS(minus_two));
}

/* With adox: mov r10, -start ; lea r10, [r11 + r10] ; adox r10, -2 ; jo mismatch ; adox r10, 1.  The last one carries if the
 * program's OF was set: then r10 is -1, else -2. */
void tbd_translate_tag(struct tbd_translation *t, uint64_t start)
{
    static const uint8_t jo[] = { 0x70, 0 };
    uint8_t *disp8;

    t->mismatch = tbd_emit_jmp(&t->e, tbd_emit_pc(&t->e));
    t->tag = tbd_emit_pc(&t->e);
    if (tbd_translate_has_adx) {
        emit_adox_difference(&t->e, start);
        tbd_emit_bytes(&t->e, jo, sizeof(jo));
        disp8 = t->e.at - 1;
        tbd_emit_adox_gs(&t->e, TBD_R10, TBD_THREAD_GS(one));
    } else {
        disp8 = tbd_translate_compare(t, start);
        tbd_emit_mov(&t->e, TBD_RCX, TBD_R10);
    }
    if (!t->e.overflow)
        *disp8 = (uint8_t)(t->mismatch - 1 - (disp8 + 1));
}

void tbd_translate_mismatch(struct tbd_emit *e)
{
    if (tbd_translate_has_adx) {
        tbd_emit_rorx(e, TBD_R10, TBD_R10, 1);
        tbd_emit_adox(e, TBD_R10, TBD_R10); /* OF is set: the highest bit carries */
    } else {
        tbd_emit_mov(e, TBD_RCX, TBD_R10);
    }
}

void tbd_translate_leave_tag(uint64_t start, uint64_t tag, const struct tbd_regs *cpu,
                             struct tbd_regs *state)
{
    uint8_t code[MOST_CHECK_BYTES];
    struct tbd_emit e = { .at = code, .end = code + sizeof(code) };
    uint64_t lent;

    state->rip = cpu->gpr[TBD_R11];
    if (!tbd_translate_has_adx) {
        state->gpr[TBD_RCX] = cpu->gpr[cpu->rip == tag ? TBD_RCX : TBD_R10];
        return;
    }
    emit_adox_difference(&e, start);
    lent = tag + (uint64_t)(e.at - code);
    if (cpu->rip < tag || (cpu->rip >= lent && cpu->rip <= lent + JUMP_BYTES))
        state->rflags =
            (state->rflags & ~OVERFLOW_FLAG) | (cpu->gpr[TBD_R10] & 1 ? OVERFLOW_FLAG : 0);
}

void tbd_translate_foretold(struct tbd_translation *t)
{
    uint8_t *disp8;

    if (!t->foretold)
        return;
    t->compare = tbd_emit_pc(&t->e);
    disp8 = tbd_translate_compare(t, t->foretold);
    tbd_emit_mov(&t->e, TBD_RCX, TBD_R10);
    t->exit[t->exit_count++] =
        (struct tbd_direct_exit){ .rel32 = tbd_emit_jmp(&t->e, tbd_emit_pc(&t->e)),
                                  .target = t->foretold };
    tbd_emit_land8(&t->e, disp8);
    t->compare_end = tbd_emit_pc(&t->e);
    tbd_emit_mov(&t->e, TBD_RCX, TBD_R10);
}
