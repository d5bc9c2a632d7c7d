// SPDX-License-Identifier: MIT
/* place_code.c - see place_code.h
 *
 * An expression's value goes into a register; its operands use those after it.  `and`, `or` and `?:` skip what
 * does not matter, so that a pointer can be looked at before it is followed. */
#include "query/places/place_code.h"

#include "query/condition/expr_lower.h"
#include "query/debuginfo/dwarf_machine.h"
#include "query/values/module_names.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIGNED 16u

struct compiling {
    struct tbd_place_code *code;
    const struct tbd_expr *expr;
    Dwarf_Frame *frame; /* of the place; NULL: not known */
    const char *why;    /* it cannot be compiled; NULL: all is well */
};

/* ---- the process as a place of names ---- */

static bool no_memory(void *context, uint64_t address, void *out, size_t bytes)
{
    (void)context, (void)address, (void)out, (void)bytes;
    return false;
}

static bool symbol_address(void *context, const char *name, uint64_t *out)
{
    struct tbd_probe_process *process = context;

    for (size_t i = 0; i < process->module_count; i++) {
        struct tbd_elf_file *file = tbd_process_file(process, &process->modules[i]);
        const struct tbd_elf_symbols *symbols = file != NULL ? tbd_elf_symbols(file) : NULL;

        for (size_t k = 0; symbols != NULL && k < symbols->count; k++) {
            if (strcmp(symbols->all[k].name, name) != 0 || symbols->all[k].is_stub)
                continue;
            *out = process->modules[i].bias + symbols->all[k].start;
            return true;
        }
    }
    return false;
}

/* A place of another module's names, too; triggers read no thread-local variables. */
static bool name_module(void *context, size_t index, struct tbd_name_module *out)
{
    struct tbd_probe_process *process = context;
    struct tbd_elf_file *file;

    if (index >= process->module_count)
        return false;
    file = tbd_process_file(process, &process->modules[index]);
    *out = (struct tbd_name_module){ .dwarf = file != NULL ? tbd_dwarf_of(file) : NULL,
                                     .bias = process->modules[index].bias };
    return true;
}

static bool find_variable(void *context, const char *name, bool of_program, struct tbd_data *out)
{
    return tbd_modules_variable(context, name, of_program, out);
}

static bool find_type(void *context, const char *name, struct tbd_type *out)
{
    return tbd_modules_type(context, name, out);
}

/* ---- instructions ---- */

static bool fail(struct compiling *c, const char *why)
{
    if (c->why == NULL)
        c->why = why;
    return false;
}

static bool emit(struct compiling *c, enum tbd_probe_op op, uint32_t d, uint32_t a, uint32_t b,
                 int64_t imm)
{
    if (c->code->count == c->code->capacity || d >= c->code->registers || a >= c->code->registers ||
        b > 31 || imm > INT32_MAX || imm < INT32_MIN)
        return fail(c, "this is too long");
    c->code->all[c->code->count++] = (struct tbd_probe_insn){
        .op = (uint8_t)op, .d = (uint8_t)d, .a = (uint8_t)a, .b = (uint8_t)b, .imm = (int32_t)imm
    };
    return true;
}

/* The skip at `from` leads to what comes next. */
static void land(struct compiling *c, uint32_t from)
{
    c->code->all[from].imm = (int32_t)(c->code->count - from - 1);
}

static bool emit_number(struct compiling *c, uint64_t value, uint32_t d)
{
    if (!emit(c, TBD_PROBE_IMM, d, 0, 0, (int32_t)(uint32_t)value))
        return false;
    return (uint64_t)(int64_t)(int32_t)(uint32_t)value == value ||
           emit(c, TBD_PROBE_IMM_HIGH, d, 0, 0, (int32_t)(uint32_t)(value >> 32));
}

static bool emit_with_number(struct compiling *c, enum tbd_probe_op op, uint32_t d, uint64_t number)
{
    return emit_number(c, number, d + 1) && emit(c, op, d, d, d + 1, 0);
}

/* d = its low `bits` bits. */
static bool emit_low(struct compiling *c, uint32_t d, uint64_t bits, bool is_signed)
{
    if (bits >= 64)
        return true;
    if (bits == 8 || bits == 16 || bits == 32)
        return emit(c, TBD_PROBE_EXTEND, d, d, (uint32_t)bits / 8 + (is_signed ? SIGNED : 0), 0);
    return emit_with_number(c, TBD_PROBE_SHL, d, 64 - bits) &&
           emit_with_number(c, is_signed ? TBD_PROBE_SAR : TBD_PROBE_SHR, d, 64 - bits);
}

static bool emit_node(struct compiling *c, int32_t index, uint32_t d);

static bool emit_truth(struct compiling *c, int32_t index, uint32_t d)
{
    return emit_node(c, index, d) && emit(c, TBD_PROBE_NOT, d, d, 0, 0) &&
           emit(c, TBD_PROBE_NOT, d, d, 0, 0);
}

/* ---- operands ---- */

static bool emit_register(struct compiling *c, const struct tbd_expr_node *node, uint32_t d)
{
    uint32_t which = node->which, xmm = which - TBD_REGISTER_XMM0;
    uint64_t shift = node->value;

    if (c->code->has_vectors && which >= TBD_REGISTER_XMM0 && xmm < TBD_PROBE_VECTORS) {
        if (!emit(c, TBD_PROBE_VECTOR, d, 0, shift / 64 & 1, xmm))
            return false;
        shift %= 64;
    } else if (which > TBD_REGISTER_RFLAGS) {
        return fail(c, c->code->has_vectors
                           ? "segment bases and vector registers above xmm15 cannot be asked there"
                           : "segment bases and vector registers cannot be asked there");
    } else if (!emit(c, TBD_PROBE_REG, d, 0, 0, which)) {
        return false;
    }
    if (shift != 0 && !emit_with_number(c, TBD_PROBE_SHR, d, shift))
        return false;
    return node->width == 0 || emit_low(c, d, node->width, false);
}

/* CFA: a register and a number, as compilers have it. */
static bool emit_frame(struct compiling *c, uint32_t d)
{
    Dwarf_Op *ops = NULL;
    size_t count = 0;
    uint64_t number, offset;
    uint8_t reg;

    if (c->frame == NULL || dwarf_frame_cfa(c->frame, &ops, &count) != 0 || count != 1)
        return fail(c, "the function's frame is not known there");
    if (ops[0].atom == DW_OP_bregx) {
        number = ops[0].number;
        offset = ops[0].number2;
    } else if (ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31) {
        number = (uint64_t)(ops[0].atom - DW_OP_breg0);
        offset = ops[0].number;
    } else {
        return fail(c, "the function's frame is not known there");
    }
    reg = tbd_machine_general(number);
    if (reg == 0)
        return fail(c, "the function's frame is not known there");
    return emit(c, TBD_PROBE_REG, d, 0, 0, reg - 1) &&
           emit_with_number(c, TBD_PROBE_ADD, d, offset);
}

static bool emit_field(struct compiling *c, const struct tbd_expr_node *node, uint32_t d)
{
    static const uint8_t arguments[] = { TBD_RDI, TBD_RSI, TBD_RDX, TBD_RCX, TBD_R8, TBD_R9 };

    switch (node->which) {
    case TBD_FIELD_PC: return emit(c, TBD_PROBE_REG, d, 0, 0, TBD_REGISTER_RIP);
    case TBD_FIELD_SP: return emit(c, TBD_PROBE_REG, d, 0, 0, TBD_RSP);
    case TBD_FIELD_THREAD: return emit(c, TBD_PROBE_TID, d, 0, 0, 0);
    case TBD_FIELD_FRAME: return emit_frame(c, d);
    case TBD_FIELD_ARG0:
    case TBD_FIELD_ARG1:
    case TBD_FIELD_ARG2:
    case TBD_FIELD_ARG3:
    case TBD_FIELD_ARG4:
    case TBD_FIELD_ARG5:
        return emit(c, TBD_PROBE_REG, d, 0, 0, arguments[node->which - TBD_FIELD_ARG0]);
    default:
        return fail(c, "only a recording knows that: registers, variables, arg0 to arg5, thread");
    }
}

/* d = `bytes` bytes at the address in d; 3, 5, 6 and 7 (of a text) are several reads. */
static bool emit_load(struct compiling *c, uint64_t bytes, uint32_t d)
{
    uint32_t step;

    if (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8)
        return emit(c, TBD_PROBE_LOAD, d, d, (uint32_t)bytes, 0);
    if (bytes == 0 || bytes > 8)
        return fail(c, "8 bytes are read at once at most");
    if (!emit_number(c, 0, d + 1))
        return false;
    for (uint32_t at = 0; at < bytes; at += step) {
        step = bytes - at >= 4 ? 4 : bytes - at >= 2 ? 2 : 1;
        if (!emit(c, TBD_PROBE_LOAD, d + 2, d, step, at) ||
            !emit_with_number(c, TBD_PROBE_SHL, d + 2, 8ull * at) ||
            !emit(c, TBD_PROBE_OR, d + 1, d + 1, d + 2, 0))
            return false;
    }
    return emit(c, TBD_PROBE_OR, d, d + 1, d + 1, 0);
}

static bool emit_memory(struct compiling *c, const struct tbd_expr_node *node, uint32_t d)
{
    return emit_node(c, node->left, d) && emit_load(c, node->value, d);
}

/* ---- operators ---- */

static bool emit_and(struct compiling *c, const struct tbd_expr_node *node, uint32_t d)
{
    uint32_t skip;

    if (!emit_truth(c, node->left, d))
        return false;
    skip = c->code->count;
    if (!emit(c, TBD_PROBE_SKIP_ZERO, 0, d, 0, 0) || !emit_truth(c, node->right, d))
        return false;
    land(c, skip);
    return true;
}

/* not (not left and not right) */
static bool emit_or(struct compiling *c, const struct tbd_expr_node *node, uint32_t d)
{
    uint32_t skip;

    if (!emit_node(c, node->left, d) || !emit(c, TBD_PROBE_NOT, d, d, 0, 0))
        return false;
    skip = c->code->count;
    if (!emit(c, TBD_PROBE_SKIP_ZERO, 0, d, 0, 0) || !emit_node(c, node->right, d) ||
        !emit(c, TBD_PROBE_NOT, d, d, 0, 0))
        return false;
    land(c, skip);
    return emit(c, TBD_PROBE_NOT, d, d, 0, 0);
}

static bool emit_choice(struct compiling *c, const struct tbd_expr_node *node, uint32_t d)
{
    const struct tbd_expr_node *sides = &c->expr->nodes[node->right];
    uint32_t otherwise, end;

    if (!emit_node(c, node->left, d))
        return false;
    otherwise = c->code->count;
    if (!emit(c, TBD_PROBE_SKIP_ZERO, 0, d, 0, 0) || !emit_node(c, sides->left, d))
        return false;
    end = c->code->count;
    if (!emit(c, TBD_PROBE_SKIP, 0, 0, 0, 0))
        return false;
    land(c, otherwise);
    if (!emit_node(c, sides->right, d))
        return false;
    land(c, end);
    return true;
}

static enum tbd_probe_op binary_of(const struct tbd_expr_node *node)
{
    switch ((enum tbd_expr_op)node->op) {
    case TBD_EXPR_EQ: return TBD_PROBE_EQ;
    case TBD_EXPR_NE: return TBD_PROBE_NE;
    case TBD_EXPR_LT:
    case TBD_EXPR_GT: return node->is_signed ? TBD_PROBE_LT : TBD_PROBE_BELOW;
    case TBD_EXPR_LE:
    case TBD_EXPR_GE: return node->is_signed ? TBD_PROBE_LE : TBD_PROBE_BELOW_EQ;
    case TBD_EXPR_ADD: return TBD_PROBE_ADD;
    case TBD_EXPR_SUB: return TBD_PROBE_SUB;
    case TBD_EXPR_MUL: return TBD_PROBE_MUL;
    case TBD_EXPR_DIV: return node->is_signed ? TBD_PROBE_DIV : TBD_PROBE_OPS;
    case TBD_EXPR_REM: return node->is_signed ? TBD_PROBE_MOD : TBD_PROBE_OPS;
    case TBD_EXPR_BITAND: return TBD_PROBE_AND;
    case TBD_EXPR_BITOR: return TBD_PROBE_OR;
    case TBD_EXPR_BITXOR: return TBD_PROBE_XOR;
    case TBD_EXPR_SHL: return TBD_PROBE_SHL;
    case TBD_EXPR_SHR: return node->is_signed ? TBD_PROBE_SAR : TBD_PROBE_SHR;
    default: return TBD_PROBE_OPS;
    }
}

static bool is_unsigned_division(const struct tbd_expr_node *node)
{
    return (node->op == TBD_EXPR_DIV || node->op == TBD_EXPR_REM) && !node->is_signed;
}

/* TBD_PROBE_REAL_OPS: there is no such operator. */
static enum tbd_probe_real_op real_of(const struct tbd_expr_node *node)
{
    switch ((enum tbd_expr_op)node->op) {
    case TBD_EXPR_ADD: return TBD_PROBE_REAL_ADD;
    case TBD_EXPR_SUB: return TBD_PROBE_REAL_SUB;
    case TBD_EXPR_MUL: return TBD_PROBE_REAL_MUL;
    case TBD_EXPR_DIV: return TBD_PROBE_REAL_DIV;
    case TBD_EXPR_EQ: return TBD_PROBE_REAL_EQ;
    case TBD_EXPR_NE: return TBD_PROBE_REAL_NE;
    case TBD_EXPR_LT:
    case TBD_EXPR_GT: return TBD_PROBE_REAL_LT;
    case TBD_EXPR_LE:
    case TBD_EXPR_GE: return TBD_PROBE_REAL_LE;
    default: return TBD_PROBE_REAL_OPS;
    }
}

/* Both operands are doubles. */
static bool emit_real(struct compiling *c, const struct tbd_expr_node *node, uint32_t d)
{
    bool is_turned = node->op == TBD_EXPR_GT || node->op == TBD_EXPR_GE;
    enum tbd_probe_real_op op = real_of(node);

    if (op == TBD_PROBE_REAL_OPS)
        return fail(c, "this cannot be asked in a running program");
    return emit_node(c, node->left, d) && emit_node(c, node->right, d + 1) &&
           emit(c, TBD_PROBE_REAL, d, is_turned ? d + 1 : d, is_turned ? d : d + 1, op);
}

static bool emit_binary(struct compiling *c, const struct tbd_expr_node *node, uint32_t d)
{
    bool is_turned = node->op == TBD_EXPR_GT || node->op == TBD_EXPR_GE;
    enum tbd_probe_op op = binary_of(node);

    if (node->is_real)
        return emit_real(c, node, d);
    if (is_unsigned_division(node))
        return fail(c, "only signed numbers can be divided there: signed(A) / signed(B)");
    if (op == TBD_PROBE_OPS)
        return fail(c, "this cannot be asked in a running program");
    return emit_node(c, node->left, d) && emit_node(c, node->right, d + 1) &&
           emit(c, op, d, is_turned ? d + 1 : d, is_turned ? d : d + 1, 0);
}

static bool emit_unary(struct compiling *c, const struct tbd_expr_node *node, uint32_t d,
                       enum tbd_probe_op op)
{
    return emit_node(c, node->left, d) && emit(c, op, d, d, 0, 0);
}

static bool emit_negative(struct compiling *c, const struct tbd_expr_node *node, uint32_t d)
{
    if (!node->is_real)
        return emit_unary(c, node, d, TBD_PROBE_NEGATE);
    return emit_node(c, node->left, d) && emit_with_number(c, TBD_PROBE_XOR, d, 1ull << 63);
}

static bool emit_to_real(struct compiling *c, const struct tbd_expr_node *node, uint32_t d,
                         enum tbd_probe_real_kind kind)
{
    return emit_node(c, node->left, d) && emit(c, TBD_PROBE_TO_REAL, d, d, 0, kind);
}

static bool emit_node(struct compiling *c, int32_t index, uint32_t d)
{
    const struct tbd_expr_node *node = &c->expr->nodes[index];

    switch ((enum tbd_expr_op)node->op) {
    case TBD_EXPR_NUMBER: return emit_number(c, node->value, d);
    case TBD_EXPR_REGISTER: return emit_register(c, node, d);
    case TBD_EXPR_FIELD: return emit_field(c, node, d);
    case TBD_EXPR_FRAME: return emit_frame(c, d);
    case TBD_EXPR_MEMORY: return emit_memory(c, node, d);
    case TBD_EXPR_NOT: return emit_unary(c, node, d, TBD_PROBE_NOT);
    case TBD_EXPR_NEG: return emit_negative(c, node, d);
    case TBD_EXPR_TO_REAL:
        return emit_to_real(c, node, d,
                            node->is_signed ? TBD_PROBE_REAL_SIGNED : TBD_PROBE_REAL_UNSIGNED);
    case TBD_EXPR_WIDEN: return emit_to_real(c, node, d, TBD_PROBE_REAL_FLOAT);
    case TBD_EXPR_NARROW: return emit_node(c, node->left, d); /* documented: with doubles */
    case TBD_EXPR_BITNOT: return emit_unary(c, node, d, TBD_PROBE_INVERT);
    case TBD_EXPR_SIGNED: return emit_node(c, node->left, d);
    case TBD_EXPR_EXTEND:
        return emit_node(c, node->left, d) && emit_low(c, d, node->value, node->is_signed);
    case TBD_EXPR_AND: return emit_and(c, node, d);
    case TBD_EXPR_OR: return emit_or(c, node, d);
    case TBD_EXPR_CHOICE: return emit_choice(c, node, d);
    case TBD_EXPR_NOWHERE: /* a value that cannot be read */
        return emit_number(c, 0, d) && emit(c, TBD_PROBE_LOAD, d, d, 8, 0);
    default: return emit_binary(c, node, d);
    }
}

/* ---- conditions ---- */

struct tbd_expr *tbd_place_expression(struct tbd_probe_process *process, const char *text,
                                      size_t from, size_t to, bool is_entry,
                                      struct tbd_query_error *error)
{
    struct tbd_expr_source source = { .text = text,
                                      .from = from,
                                      .to = to,
                                      .type = is_entry ? TBD_EVENT_FUNC_ENTER : TBD_EVENT_LINE };
    struct tbd_expr_names names = { .address = symbol_address, .context = process };
    struct tbd_expr *expr = NULL;

    if (tbd_expr_parse_source(&source, &expr, error) != TBD_OK)
        return NULL;
    if (tbd_expr_bind_symbols(expr, &names, error) == TBD_OK && expr->name_count == 0 &&
        expr->pattern_count == 0 && expr->regex_count == 0)
        return expr;
    tbd_query_wrong(error, TBD_TYPE, from, to - from,
                    "functions, stacks and patterns cannot be asked in a running program");
    tbd_expr_free(expr);
    return NULL;
}

static enum tbd_status compile(struct compiling *c, uint32_t d, struct tbd_query_error *error)
{
    uint32_t before = c->code->count;

    if (emit_node(c, c->expr->root, d))
        return TBD_OK;
    c->code->count = before;
    tbd_query_wrong(error, TBD_TYPE, 0, 0, "%s", c->why);
    return TBD_TYPE;
}

enum tbd_status tbd_place_value(struct tbd_probe_process *process, struct tbd_expr *expr,
                                uint64_t address, bool is_entry, uint32_t d,
                                struct tbd_place_code *out, struct tbd_query_error *error)
{
    struct tbd_process_module *module = tbd_process_module_at(process, address);
    struct tbd_elf_file *file = module != NULL ? tbd_process_file(process, module) : NULL;
    static const struct tbd_stack_memory none = { .read = no_memory };
    struct tbd_place_of place = { .memory = &none };
    struct tbd_name_modules names = {
        .at = name_module, .symbol = symbol_address, .context = process, .place = &place
    };
    struct tbd_c_scope scope = {
        .place = &place, .variable = find_variable, .type = find_type, .context = &names
    };
    struct tbd_lower lower = {
        .scope = &scope, .type = TBD_EVENT_LINE, .is_entry = is_entry, .is_value = true
    };
    struct tbd_query_error problem;
    struct compiling c = { .code = out };
    struct tbd_source_line line;
    struct tbd_expr *lowered;
    enum tbd_status status;

    if (file != NULL)
        tbd_place_enter(&place, tbd_dwarf_of(file), module->bias, address, 0);
    if (is_entry)
        lower.type = TBD_EVENT_FUNC_ENTER;
    if (place.dwarf != NULL && tbd_dwarf_line_at(place.dwarf, place.address, &line))
        lower.line = line.line;
    status = tbd_expr_lower(expr, &lower, &lowered, &problem);
    if (status != TBD_OK)
        return status;
    if (problem.status != TBD_OK) {
        *error = problem;
        tbd_expr_free(lowered);
        return problem.status;
    }
    if (lowered->nodes[lowered->root].op == TBD_EXPR_NOWHERE) {
        tbd_expr_free(lowered);
        tbd_query_wrong(error, TBD_TYPE, 0, 0, "floating-point numbers cannot be asked there");
        return TBD_TYPE;
    }
    c.expr = lowered;
    c.frame = file != NULL ? tbd_elf_frame(file, place.address) : NULL;
    status = compile(&c, d, error);
    free(c.frame);
    tbd_expr_free(lowered);
    return status;
}

enum tbd_status tbd_place_condition(struct tbd_probe_process *process, struct tbd_expr *condition,
                                    uint64_t address, bool is_entry, struct tbd_place_code *out,
                                    struct tbd_query_error *error)
{
    struct compiling c = { .code = out };
    uint32_t before = out->count;
    enum tbd_status status = tbd_place_value(process, condition, address, is_entry, 0, out, error);

    if (status != TBD_OK || emit(&c, TBD_PROBE_END, 0, 0, 0, 0))
        return status;
    out->count = before;
    tbd_query_wrong(error, TBD_TYPE, 0, 0, "%s", c.why);
    return TBD_TYPE;
}
