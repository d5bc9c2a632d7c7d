// SPDX-License-Identifier: MIT
/* asked_code.c - the code at an asked place that has a state (asked_places.h): it asks only in this state
 *
 * A loop comes by millions of times, nearly always with another counter.  Registers that the block itself
 * writes are compared first, then a word of memory, then all other registers.  Only lea and jrcxz look at the
 * differences: the flags are the program's.  r10 and r11 are free at a block's entry, rcx is in its slot meanwhile.
 *
 *     mov r11, state ; mov rcx, [r11 + minus] ; lea rcx, [rcx + reg] ; jrcxz next ; jmp differs */
#include "base/string.h"
#include "patcher/asked_places.h"
#include "patcher/translate.h"

#include <stddef.h>

#define MOST_EXITS (TBD_REG_COUNT + 1)

struct question {
    struct tbd_translation *t;
    uint8_t *exits[MOST_EXITS]; /* rel32 of jumps to where it differs */
    size_t exit_count;
    uint16_t done;
};

static struct tbd_ea at(unsigned base, size_t disp)
{
    return (struct tbd_ea){
        .disp = (int64_t)disp, .base = (uint8_t)base, .index = TBD_NO_REG, .scale = 1
    };
}

/* rcx has what must be 0. */
static void go_on_if_zero(struct question *q)
{
    static const uint8_t jrcxz_over_jmp32[] = { 0xe3, 0x00 };
    struct tbd_emit *e = &q->t->e;
    uint8_t *disp8;

    tbd_emit_bytes(e, jrcxz_over_jmp32, sizeof(jrcxz_over_jmp32));
    disp8 = e->at - 1;
    q->exits[q->exit_count++] = tbd_emit_jmp(e, tbd_emit_pc(e));
    tbd_emit_land8(e, disp8);
}

static void compare_register(struct question *q, unsigned r)
{
    struct tbd_emit *e = &q->t->e;
    bool is_own = q->t->place.own & TBD_BIT(r);
    struct tbd_ea minus =
        at(TBD_R11, offsetof(struct tbd_asked_state, minus_gpr) + r * sizeof(uint64_t));
    struct tbd_ea sum = { .base = (uint8_t)(is_own ? r : TBD_R10), .index = TBD_RCX, .scale = 1 };

    if (q->done & TBD_BIT(r))
        return;
    q->done |= (uint16_t)TBD_BIT(r);
    if (!is_own)
        tbd_emit_load_gs(e, TBD_R10, TBD_THREAD_GS_GPR(r));
    tbd_emit_load(e, TBD_RCX, &minus, 8);
    tbd_emit_lea(e, TBD_RCX, &sum);
    go_on_if_zero(q);
}

static void compare_word(struct question *q)
{
    struct tbd_emit *e = &q->t->e;
    struct tbd_ea word = at(TBD_R11, offsetof(struct tbd_asked_state, word));
    struct tbd_ea minus = at(TBD_R11, offsetof(struct tbd_asked_state, minus_value));
    struct tbd_ea there = at(TBD_RCX, 0);
    struct tbd_ea sum = { .base = TBD_R10, .index = TBD_RCX, .scale = 1 };

    tbd_emit_load(e, TBD_RCX, &word, 8);
    tbd_emit_load(e, TBD_R10, &there, 8);
    tbd_emit_load(e, TBD_RCX, &minus, 8);
    tbd_emit_lea(e, TBD_RCX, &sum);
    go_on_if_zero(q);
}

/* Registers that the block writes change between two arrivals. */
static uint16_t written(const struct tbd_cut *cut)
{
    uint16_t registers = 0;

    for (uint32_t i = 0; i < cut->count; i++)
        registers |= cut->insn[i].writes;
    return registers;
}

static void patch_exits(const struct question *q)
{
    uint8_t *here = q->t->e.at;

    for (size_t i = 0; i < q->exit_count && !q->t->e.overflow; i++) {
        int32_t disp = (int32_t)(here - (q->exits[i] + 4));

        memcpy(q->exits[i], &disp, sizeof(disp));
    }
}

void tbd_translate_question(struct tbd_translation *t, uint64_t asks)
{
    struct question q = { .t = t };
    uint16_t first = written(t->cut);

    tbd_place_spill(t, TBD_RCX);
    tbd_emit_mov_imm(&t->e, TBD_R11, (uint64_t)(uintptr_t)tbd_asked_places_state());
    for (unsigned r = 0; r < TBD_REG_COUNT; r++)
        if (first & TBD_BIT(r))
            compare_register(&q, r);
    compare_word(&q);
    for (unsigned r = 0; r < TBD_REG_COUNT; r++)
        compare_register(&q, r);
    tbd_emit_jmp(&t->e, asks);
    patch_exits(&q);
    tbd_place_need(t, TBD_RCX, 0);
}
