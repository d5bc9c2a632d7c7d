// SPDX-License-Identifier: MIT
/* asked_loads.c - see asked_loads.h
 *
 *     lea r10, [operand] ; mov gs:[rcx slot], rcx
 *     for each range:   mov r11, -first ; lea rcx, [r10 + r11] ; rorx rcx, rcx, bits ; jecxz hit
 *     jmp over
 *     hit:   mov gs:[asked_address], r10 ; mov r11, bytes ; mov gs:[asked_bytes], r11 ; mov rcx, gs:[rcx slot] ; exit
 *     over:  mov rcx, gs:[rcx slot]
 *
 * `first` is the lowest address at which a load of that size touches the range, 2^bits what it has from there on, or more.  jecxz
 * looks at 32 bits of the distance, from that bit on: those above are of addresses that are nearly never loaded from.
 *
 * ASKED_LOADS-1  Flags and registers are the program's after it. (not checked: test_load_ranges.py runs programs with it) */
#include "patcher/asked_loads.h"

#include "patcher/lower.h"

static struct tbd_asked_range ranges[TBD_ASKED_LOADS];
static size_t range_count;

void tbd_asked_loads_set(const struct tbd_asked_range *given, size_t count)
{
    range_count = count < TBD_ASKED_LOADS ? count : TBD_ASKED_LOADS;
    for (size_t i = 0; i < range_count; i++)
        ranges[i] = given[i];
}

bool tbd_asked_loads_are(void)
{
    return range_count;
}

static bool is_asked(const struct tbd_access *a)
{
    return a->flags & TBD_ACCESS_READ && !(a->flags & (TBD_ACCESS_XLAT | TBD_ACCESS_BITS)) &&
           a->size && !a->ea.gs && !a->ea.addr32;
}

const struct tbd_access *tbd_asked_loads_of(const struct tbd_insn *insn)
{
    bool may_load = insn->kind == TBD_INSN_PLAIN || insn->kind == TBD_INSN_CALL_INDIRECT ||
                    insn->kind == TBD_INSN_JUMP_INDIRECT;

    if (!range_count || !may_load || insn->stack_add)
        return NULL;
    for (unsigned i = 0; i < insn->access_count; i++)
        if (is_asked(&insn->access[i]))
            return &insn->access[i];
    return NULL;
}

/* ---- code ---- */

struct load_code {
    struct tbd_translation *t;
    uint8_t
        *hits[TBD_ASKED_LOADS]; /* the displacements, of 8 bits, of jumps to where it is asked */
    size_t hit_count;
};

/* The register that has it; between blocks some are in their slots. */
static uint8_t in_register(struct tbd_translation *t, unsigned r, unsigned scratch)
{
    if (r == TBD_NO_REG || t->place.own & TBD_BIT(r))
        return (uint8_t)r;
    tbd_emit_load_gs(&t->e, scratch, TBD_THREAD_GS_GPR(r));
    return (uint8_t)scratch;
}

static void add_fs_base(struct tbd_emit *e)
{
    struct tbd_ea sum = { .base = TBD_R10, .index = TBD_R11, .scale = 1 };

    tbd_emit_load_gs(e, TBD_R11, TBD_THREAD_GS(regs) + (int32_t)offsetof(struct tbd_regs, fs_base));
    tbd_emit_lea(e, TBD_R10, &sum);
}

/* r10 = the operand's address */
static void compute_address(struct tbd_translation *t, const struct tbd_ea *operand)
{
    struct tbd_ea ea = *operand;

    if (ea.base == TBD_NO_REG && ea.index == TBD_NO_REG) {
        tbd_emit_mov_imm(&t->e, TBD_R10, (uint64_t)ea.disp);
    } else {
        ea.base = in_register(t, ea.base, TBD_R10);
        ea.index = in_register(t, ea.index, TBD_R11);
        ea.fs = false;
        tbd_emit_lea(&t->e, TBD_R10, &ea);
    }
    if (operand->fs)
        add_fs_base(&t->e);
}

static unsigned bits_for(uint64_t bytes)
{
    unsigned bits = 0;

    while (bytes > 1ull << bits)
        bits++;
    return bits;
}

static void emit_short(struct tbd_emit *e, const uint8_t *bytes, size_t count, uint8_t **out_disp)
{
    tbd_emit_bytes(e, bytes, count);
    *out_disp = e->at - 1;
}

static void compare(struct load_code *a, const struct tbd_asked_range *range, unsigned size)
{
    static const uint8_t jecxz[] = { 0x67, 0xe3, 0 };
    struct tbd_ea distance = { .base = TBD_R10, .index = TBD_R11, .scale = 1 };
    struct tbd_emit *e = &a->t->e;
    uint64_t first = range->from - (size - 1);

    tbd_emit_mov_imm(e, TBD_R11, 0 - first);
    tbd_emit_lea(e, TBD_RCX, &distance);
    tbd_emit_rorx(e, TBD_RCX, TBD_RCX, bits_for(range->to - first));
    emit_short(e, jecxz, sizeof(jecxz), &a->hits[a->hit_count++]);
}

/* rcx is in its slot, r10 has the address. */
static void leave_asked(struct tbd_translation *t, unsigned size)
{
    struct tbd_reg_places between = t->place;

    tbd_emit_store_gs(&t->e, TBD_R10, TBD_THREAD_GS(asked_address));
    tbd_emit_mov_imm(&t->e, TBD_R11, size);
    tbd_emit_store_gs(&t->e, TBD_R11, TBD_THREAD_GS(asked_bytes));
    tbd_place_need(t, TBD_RCX, 0);
    tbd_lower_leave(t, TBD_EXIT_ASKED);
    t->place = between;
    tbd_place_note(t);
}

void tbd_translate_asked_load(struct tbd_translation *t, const struct tbd_access *access)
{
    static const uint8_t jmp8[] = { 0xeb, 0 };
    struct load_code a = { .t = t };
    uint8_t *over;

    compute_address(t, &access->ea);
    tbd_place_spill(t, TBD_RCX);
    for (size_t i = 0; i < range_count; i++)
        compare(&a, &ranges[i], access->size);
    emit_short(&t->e, jmp8, sizeof(jmp8), &over);
    for (size_t i = 0; i < a.hit_count; i++)
        tbd_emit_land8(&t->e, a.hits[i]);
    leave_asked(t, access->size);
    tbd_emit_land8(&t->e, over);
    tbd_place_need(t, TBD_RCX, 0);
    t->answered = tbd_emit_pc(&t->e);
    tbd_place_note(t);
}
