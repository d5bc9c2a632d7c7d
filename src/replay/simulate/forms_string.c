// SPDX-License-Identifier: MIT
/* forms_string.c - see forms.h
 *
 * A repeated instruction is one step: its registers move by all elements at once.  If it was interrupted, the step
 * after it is the same instruction again; then nothing of this holds (TBD_INSN_HAVOC in its place, see simulate.c). */
#include "replay/simulate/forms.h"

#include "replay/simulate/bits.h"

enum { RCX = 1, RSI = 6, RDI = 7 };

/* How far an address moves for one element: its size, or back by it if the direction flag is set. */
static uint8_t step_of(struct tbd_build *b, unsigned bytes)
{
    uint8_t d = tbd_build_slot(b);

    tbd_build_op(b, (struct tbd_insn_op){ .code = TBD_OP_SELECT,
                                          .d = d,
                                          .a = tbd_build_constant(b, (uint64_t)0 - bytes),
                                          .b = tbd_build_constant(b, bytes),
                                          .c = tbd_build_read_place(b, TBD_PLACE_DF) });
    return d;
}

static bool is_plain(const struct tbd_build *b)
{
    return b->insn.address_width == 64 && !(b->insn.attributes & ZYDIS_ATTRIB_HAS_SEGMENT) &&
           b->insn.meta.category == ZYDIS_CATEGORY_STRINGOP;
}

static bool repeats(const struct tbd_build *b)
{
    return (b->insn.attributes & ZYDIS_ATTRIB_HAS_REP) != 0;
}

static bool has_other_prefix(const struct tbd_build *b)
{
    return (b->insn.attributes & (ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE)) != 0;
}

/* Moves a register by one element, or by rcx of them. */
static uint8_t moves_by(struct tbd_build *b, unsigned bytes)
{
    uint8_t step = step_of(b, bytes);

    if (!repeats(b))
        return step;
    return tbd_build_binary(b, TBD_OP_MUL, 64, tbd_build_read_place(b, RCX), step);
}

static void move_register(struct tbd_build *b, unsigned place, uint8_t by)
{
    tbd_build_write_place(b, place,
                          tbd_build_binary(b, TBD_OP_ADD, 64, tbd_build_read_place(b, place), by));
}

/* Only upward: with the direction flag set the lowest element is the last one. */
static void store_range(struct tbd_build *b, unsigned bytes, uint8_t value)
{
    uint8_t count = tbd_build_read_place(b, RCX), at = tbd_build_read_place(b, RDI);
    uint8_t before = tbd_build_binary(b, TBD_OP_SUB, 64, count, tbd_build_constant(b, 1));
    uint8_t span = tbd_build_binary(b, TBD_OP_MUL, 64, before, tbd_build_constant(b, bytes));
    uint8_t back = tbd_build_binary(b, TBD_OP_SUB, 64, at, span), lowest = tbd_build_slot(b);

    tbd_build_op(b, (struct tbd_insn_op){ .code = TBD_OP_SELECT,
                                          .d = lowest,
                                          .a = back,
                                          .b = at,
                                          .c = tbd_build_read_place(b, TBD_PLACE_DF) });
    tbd_build_store(b, lowest, 0, bytes, value);
    b->memory[b->out.memory_count - 1].range = true;
    b->memory[b->out.memory_count - 1].count = count;
    b->out.repeats = true;
    tbd_build_write_place(b, RCX, tbd_build_constant(b, 0));
}

static void store_element(struct tbd_build *b, unsigned bytes, uint8_t value)
{
    if (repeats(b))
        store_range(b, bytes, value);
    else
        tbd_build_store(b, tbd_build_read_place(b, RDI), 0, bytes, value);
}

FORM(string_store)
{
    unsigned bytes = b->insn.operand_width / 8u;
    uint8_t rax;

    (void)operation;
    (void)aux;
    if (!is_plain(b) || has_other_prefix(b))
        return false;
    rax = tbd_build_read_place(b, 0);
    store_element(b, bytes, bytes == 8 ? rax : tbd_build_field(b, rax, 0, 8 * bytes));
    move_register(b, RDI, moves_by(b, bytes));
    return true;
}

FORM(string_move)
{
    unsigned bytes = b->insn.operand_width / 8u;
    uint8_t by;

    (void)operation;
    (void)aux;
    if (!is_plain(b) || has_other_prefix(b))
        return false;
    store_element(b, bytes,
                  repeats(b) ? tbd_build_slot(b)
                             : tbd_build_load(b, tbd_build_read_place(b, RSI), 0, bytes));
    by = moves_by(b, bytes);
    move_register(b, RSI, by);
    move_register(b, RDI, by);
    return true;
}

FORM(string_load)
{
    static const ZydisRegister to[4] = { ZYDIS_REGISTER_AL, ZYDIS_REGISTER_AX, ZYDIS_REGISTER_EAX,
                                         ZYDIS_REGISTER_RAX };
    unsigned bytes = b->insn.operand_width / 8u;

    (void)operation;
    (void)aux;
    if (!is_plain(b) || has_other_prefix(b) || repeats(b))
        return false;
    tbd_build_write_register(b, to[bytes == 8 ? 3 : bytes / 2],
                             tbd_build_load(b, tbd_build_read_place(b, RSI), 0, bytes));
    move_register(b, RSI, moves_by(b, bytes));
    return true;
}

/* Flags of x - y, as cmp has them. */
static void compare(struct tbd_build *b, unsigned width, uint8_t x, uint8_t y)
{
    uint8_t difference = tbd_build_binary(b, TBD_OP_SUB, width, x, y);

    tbd_build_op(b, (struct tbd_insn_op){ .code = TBD_OP_SUBFLAGS,
                                          .width = (uint8_t)width,
                                          .d = tbd_build_flags(b, 0),
                                          .a = x,
                                          .b = y,
                                          .c = difference,
                                          .mask = TBD_STATUS_FLAGS });
}

/* How far addresses moved while elements were compared: by as many of them as rcx is less; what they were is not described,
 * nor are the flags. */
static uint8_t compared_by(struct tbd_build *b, unsigned bytes)
{
    uint8_t step = step_of(b, bytes), left = tbd_build_slot(b), count;

    count = tbd_build_binary(b, TBD_OP_SUB, 64, tbd_build_read_place(b, RCX), left);
    tbd_build_write_place(b, RCX, left);
    tbd_build_flags(b, 0);
    b->out.repeats = true;
    return tbd_build_binary(b, TBD_OP_MUL, 64, count, step);
}

/* aux: 1 for scas, of rax, 0 for cmps, of memory at rsi. */
FORM(string_compare)
{
    unsigned bytes = b->insn.operand_width / 8u;
    uint8_t x, y, by;

    (void)operation;
    if (b->insn.meta.category != ZYDIS_CATEGORY_STRINGOP || !is_plain(b) || repeats(b))
        return false;
    if (has_other_prefix(b)) {
        by = compared_by(b, bytes);
    } else {
        x = aux ? tbd_build_field(b, tbd_build_read_place(b, 0), 0, 8 * bytes)
                : tbd_build_load(b, tbd_build_read_place(b, RSI), 0, bytes);
        y = tbd_build_load(b, tbd_build_read_place(b, RDI), 0, bytes);
        compare(b, 8 * bytes, x, y);
        by = step_of(b, bytes);
    }
    if (!aux)
        move_register(b, RSI, by);
    move_register(b, RDI, by);
    return true;
}
