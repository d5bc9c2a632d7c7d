// SPDX-License-Identifier: MIT
/* probe_expression.c - expressions of a script, which become code as they are read (probe_parse.h) */
#include "query/probe/probe_parse.h"

#include <string.h>

#define MAX_NESTING 64u

struct binary_operator {
    char sign[4];
    int level; /* higher binds more */
    enum tbd_probe_op op;
    bool swaps; /* a > b is b < a */
};

/* A sign comes before the signs that it begins with. */
static const struct binary_operator operators[] = {
    { "||", 1, TBD_PROBE_OPS, false }, { "&&", 2, TBD_PROBE_OPS, false },
    { "==", 6, TBD_PROBE_EQ, false },  { "!=", 6, TBD_PROBE_NE, false },
    { "<<", 8, TBD_PROBE_SHL, false }, { ">>", 8, TBD_PROBE_SHR, false },
    { "<=", 7, TBD_PROBE_LE, false },  { ">=", 7, TBD_PROBE_LE, true },
    { "<", 7, TBD_PROBE_LT, false },   { ">", 7, TBD_PROBE_LT, true },
    { "|", 3, TBD_PROBE_OR, false },   { "^", 4, TBD_PROBE_XOR, false },
    { "&", 5, TBD_PROBE_AND, false },  { "+", 9, TBD_PROBE_ADD, false },
    { "-", 9, TBD_PROBE_SUB, false },  { "*", 10, TBD_PROBE_MUL, false },
    { "/", 10, TBD_PROBE_DIV, false }, { "%", 10, TBD_PROBE_MOD, false },
};

struct named_type {
    char name[12];
    uint32_t width; /* bytes, + 16: signed */
};

static const struct named_type types[] = {
    { "int8", 1 + 16 },  { "uint8", 1 },      { "int16", 2 + 16 }, { "uint16", 2 },
    { "int32", 4 + 16 }, { "uint32", 4 },     { "int64", 8 + 16 }, { "uint64", 8 },
    { "char", 1 + 16 },  { "short", 2 + 16 }, { "int", 4 + 16 },   { "long", 8 + 16 },
    { "int8_t", 17 },    { "uint8_t", 1 },    { "int16_t", 18 },   { "uint16_t", 2 },
    { "int32_t", 20 },   { "uint32_t", 4 },   { "int64_t", 24 },   { "uint64_t", 8 },
    { "size_t", 8 },     { "bool", 1 },
};

static const char register_names[16][4] = { "ax", "cx", "dx",  "bx",  "sp",  "bp",  "si",  "di",
                                            "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15" };

/* A value that is one word: its operation, and what the word means to it. */
struct named_value {
    char name[8];
    enum tbd_probe_op op; /* TBD_PROBE_END: no number, or not a word alone */
    int32_t imm;
};

static const struct named_value values[] = {
    { "retval", TBD_PROBE_REG, 0 },      { "nsecs", TBD_PROBE_NSECS, 0 },
    { "tid", TBD_PROBE_TID, 0 },         { "pid", TBD_PROBE_PID, 0 },
    { "cpu", TBD_PROBE_CPU, 0 },         { "reg", TBD_PROBE_END, 0 },
    { "context", TBD_PROBE_CONTEXT, 0 }, { "comm", TBD_PROBE_END, 0 },
    { "str", TBD_PROBE_END, 0 },         { "ustack", TBD_PROBE_END, 0 },
};

static bool parse_level(struct tbd_probe_parser *p, uint32_t d, int level);

static bool load_number(struct tbd_probe_parser *p, uint32_t d, uint64_t value)
{
    if (!tbd_parse_emit(p, TBD_PROBE_IMM, d, 0, 0, (int32_t)(uint32_t)value))
        return false;
    if ((uint64_t)(int64_t)(int32_t)(uint32_t)value == value)
        return true;
    return tbd_parse_emit(p, TBD_PROBE_IMM_HIGH, d, 0, 0, (int32_t)(uint32_t)(value >> 32));
}

/* ---- words ---- */

static const struct named_value *find_value(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        if (strlen(values[i].name) == length && strncmp(values[i].name, name, length) == 0)
            return &values[i];
    return NULL;
}

/* arg0 to arg9 */
static bool is_argument(const char *name, size_t length)
{
    return length == 4 && strncmp(name, "arg", 3) == 0 && name[3] >= '0' && name[3] <= '9';
}

bool tbd_parse_is_word(const char *name, size_t length)
{
    return is_argument(name, length) || find_value(name, length) != NULL;
}

static int register_number(const char *name)
{
    for (int r = 0; r < 16; r++)
        if (strcmp(register_names[r], name) == 0 ||
            (name[0] == 'r' && strcmp(register_names[r], name + 1) == 0))
            return r;
    return strcmp(name, "ip") == 0 || strcmp(name, "rip") == 0 ? 16
           : strcmp(name, "flags") == 0                        ? 17
                                                               : -1;
}

/* reg("ax") */
static bool parse_register(struct tbd_probe_parser *p, uint32_t d)
{
    char name[TBD_SCRIPT_NAME_BYTES];
    int which;

    if (!tbd_parse_expect(p, "(") || !tbd_parse_expect(p, "\""))
        return false;
    if (!tbd_parse_name(p, name, sizeof(name)) || (which = register_number(name)) < 0)
        return tbd_parse_wrong(p, "ax, bx, ... r15, sp, ip, flags", "no such register");
    return tbd_parse_expect(p, "\"") && tbd_parse_expect(p, ")") &&
           tbd_parse_emit(p, TBD_PROBE_REG, d, 0, 0, which);
}

static bool parse_argument(struct tbd_probe_parser *p, const char *name, uint32_t d)
{
    static const uint8_t argument_registers[] = { 7, 6, 2, 1, 8, 9 };
    unsigned which = (unsigned)(name[3] - '0');

    if (which < sizeof(argument_registers))
        return tbd_parse_emit(p, TBD_PROBE_REG, d, 0, 0, argument_registers[which]);
    /* on the stack, at a function's entry */
    return tbd_parse_emit(p, TBD_PROBE_REG, d, 0, 0, 4) &&
           tbd_parse_emit(p, TBD_PROBE_LOAD, d, d, 8, 8 + 8 * ((int64_t)which - 6));
}

static bool parse_word(struct tbd_probe_parser *p, const char *name, uint32_t d)
{
    const struct named_value *value = find_value(name, strlen(name));

    if (is_argument(name, strlen(name))) {
        p->asks_arguments = true;
        return parse_argument(p, name, d);
    }
    if (value && value->op == TBD_PROBE_CONTEXT)
        p->script->walks_stacks = true;
    if (value && value->op != TBD_PROBE_END)
        return tbd_parse_emit(p, value->op, d, 0, 0, value->imm);
    if (strcmp(name, "reg") == 0)
        return parse_register(p, d);
    p->at -= strlen(name);
    if (value)
        return tbd_parse_wrong(p, "it can be a key of a map, or an argument of printf",
                               "%s is not a number", name);
    return tbd_parse_wrong(
        p, "arg0 .. arg9, retval, nsecs, tid, pid, cpu, context, reg(\"ax\"), numbers",
        "%s is not known", name);
}

/* ---- types ---- */

static uint32_t width_of(const char *name)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (strcmp(types[i].name, name) == 0)
            return types[i].width;
    return 0;
}

/* "(int32 *)" or "(uint8)" at the current place; otherwise the place stays. */
static bool take_type(struct tbd_probe_parser *p, uint32_t *out_width, bool *out_pointer)
{
    size_t start = p->at;
    char name[TBD_SCRIPT_NAME_BYTES];

    if (tbd_parse_take(p, "(") && tbd_parse_name(p, name, sizeof(name))) {
        bool is_unsigned = strcmp(name, "unsigned") == 0;

        if (is_unsigned && !tbd_parse_name(p, name, sizeof(name)))
            strcpy(name, "int");
        *out_width = width_of(name);
        if (is_unsigned)
            *out_width &= 15;
        *out_pointer = tbd_parse_take(p, "*");
        if (*out_width && tbd_parse_take(p, ")"))
            return true;
    }
    p->at = start;
    return false;
}

bool tbd_parse_is_type(const struct tbd_probe_parser *p, size_t at)
{
    struct tbd_probe_parser ahead = *p;
    uint32_t width;
    bool is_pointer;

    ahead.at = at;
    return take_type(&ahead, &width, &is_pointer);
}

bool tbd_parse_is_type_name(const struct tbd_probe_parser *p)
{
    struct tbd_probe_parser ahead = *p;
    char name[TBD_SCRIPT_NAME_BYTES];

    return tbd_parse_name(&ahead, name, sizeof(name)) &&
           (width_of(name) || strcmp(name, "unsigned") == 0);
}

/* ---- operands ---- */

static bool parse_unary(struct tbd_probe_parser *p, uint32_t d);

/* *(int32 *)address; without a type eight bytes */
static bool parse_pointed_to(struct tbd_probe_parser *p, uint32_t d)
{
    uint32_t width = 8;
    bool is_pointer = true;

    if (take_type(p, &width, &is_pointer) && !is_pointer)
        return tbd_parse_wrong(p, "*(int32 *)ADDRESS", "only a pointer leads to a value");
    return parse_unary(p, d) && tbd_parse_emit(p, TBD_PROBE_LOAD, d, d, width, 0);
}

static bool parse_cast_or_group(struct tbd_probe_parser *p, uint32_t d)
{
    uint32_t width;
    bool is_pointer;

    if (take_type(p, &width, &is_pointer)) {
        if (!parse_unary(p, d))
            return false;
        return is_pointer || (width & 15) == 8 ||
               tbd_parse_emit(p, TBD_PROBE_EXTEND, d, d, width, 0);
    }
    p->parentheses++;
    if (!tbd_parse_expect(p, "(") || !tbd_parse_expression(p, d) || !tbd_parse_expect(p, ")"))
        return false;
    p->parentheses--;
    return true;
}

static bool parse_operand(struct tbd_probe_parser *p, uint32_t d)
{
    char name[TBD_SCRIPT_NAME_BYTES];
    uint64_t number;
    uint32_t variable;

    tbd_parse_skip_blanks(p);
    if (p->text[p->at] == '(')
        return parse_cast_or_group(p, d);
    if (tbd_parse_number(p, &number))
        return load_number(p, d, number);
    if (tbd_parse_take(p, "$")) {
        if (!tbd_parse_name(p, name, sizeof(name)))
            return tbd_parse_wrong(p, "", "a name is missing after $");
        variable = tbd_parse_variable(p, name, false);
        return variable < TBD_PROBE_REGISTERS && load_number(p, d, 0) &&
               tbd_parse_emit(p, TBD_PROBE_ADD, d, d, variable, 0);
    }
    if (tbd_parse_name(p, name, sizeof(name)))
        return parse_word(p, name, d);
    if (p->text[p->at] == '@')
        return tbd_parse_wrong(p, "$name = VALUE keeps a number until the clause ends",
                               "a map is no value: what it holds is shown, not read");
    return tbd_parse_wrong(p, "arg0, retval, a number, $name, (...)", "a value is missing");
}

static bool parse_unary(struct tbd_probe_parser *p, uint32_t d)
{
    bool done;

    if (p->nesting >= MAX_NESTING)
        return tbd_parse_wrong(p, "", "too deeply nested");
    p->nesting++;
    if (tbd_parse_is_program(p))
        done = tbd_parse_program(p, d);
    else if (tbd_parse_take(p, "!"))
        done = parse_unary(p, d) && tbd_parse_emit(p, TBD_PROBE_NOT, d, d, 0, 0);
    else if (tbd_parse_take(p, "~"))
        done = parse_unary(p, d) && tbd_parse_emit(p, TBD_PROBE_INVERT, d, d, 0, 0);
    else if (tbd_parse_take(p, "-"))
        done = parse_unary(p, d) && tbd_parse_emit(p, TBD_PROBE_NEGATE, d, d, 0, 0);
    else if (tbd_parse_take(p, "*"))
        done = parse_pointed_to(p, d);
    else
        done = parse_operand(p, d);
    p->nesting--;
    return done;
}

/* ---- operators ---- */

static const struct binary_operator *next_operator(struct tbd_probe_parser *p)
{
    tbd_parse_skip_blanks(p);
    for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
        const struct binary_operator *o = &operators[i];

        if (strncmp(p->text + p->at, o->sign, strlen(o->sign)) != 0)
            continue;
        if (o->sign[0] == '/' && p->in_condition && !p->parentheses)
            return NULL;
        return o;
    }
    return NULL;
}

/* a && b: what follows is left out when the left side decides.  The result is 0 or 1. */
static bool parse_logical(struct tbd_probe_parser *p, uint32_t d, const struct binary_operator *o)
{
    struct tbd_probe_script *script = p->script;
    uint32_t skip;

    if (!tbd_parse_emit(p, TBD_PROBE_NOT, d, d, 0, 0))
        return false;
    if (o->level == 2 && !tbd_parse_emit(p, TBD_PROBE_NOT, d, d, 0, 0))
        return false;
    skip = script->code_count;
    if (!tbd_parse_emit(p, TBD_PROBE_SKIP_ZERO, 0, d, 0, 0) || !parse_level(p, d, o->level + 1) ||
        !tbd_parse_emit(p, TBD_PROBE_NOT, d, d, 0, 0))
        return false;
    if (o->level == 2 && !tbd_parse_emit(p, TBD_PROBE_NOT, d, d, 0, 0))
        return false;
    script->code[skip].imm = (int32_t)(script->code_count - skip - 1);
    return o->level == 2 || tbd_parse_emit(p, TBD_PROBE_NOT, d, d, 0, 0);
}

static bool parse_level(struct tbd_probe_parser *p, uint32_t d, int level)
{
    const struct binary_operator *o;

    if (d >= TBD_PARSE_TEMPORARIES)
        return tbd_parse_wrong(p, "use a variable: $x = ...;", "this expression is too long");
    if (!parse_unary(p, d))
        return false;
    for (o = next_operator(p); o && o->level >= level; o = next_operator(p)) {
        p->at += strlen(o->sign);
        if (o->op == TBD_PROBE_OPS) {
            if (!parse_logical(p, d, o))
                return false;
            continue;
        }
        if (!parse_level(p, d + 1, o->level + 1) ||
            !tbd_parse_emit(p, o->op, d, o->swaps ? d + 1 : d, o->swaps ? d : d + 1, 0))
            return false;
    }
    return true;
}

bool tbd_parse_expression(struct tbd_probe_parser *p, uint32_t d)
{
    bool done;

    if (p->nesting >= MAX_NESTING)
        return tbd_parse_wrong(p, "", "too deeply nested");
    p->nesting++;
    done = parse_level(p, d, 1);
    p->nesting--;
    return done;
}

/* ---- values that are no numbers ---- */

/* str(address), str(address, bytes) */
static bool parse_text(struct tbd_probe_parser *p, uint32_t d, struct tbd_script_part *out)
{
    uint64_t bytes = 64;

    if (!tbd_parse_expect(p, "(") || !tbd_parse_expression(p, d))
        return false;
    if (tbd_parse_take(p, ",")) {
        tbd_parse_skip_blanks(p);
        if (!tbd_parse_number(p, &bytes) || !bytes || bytes > TBD_PROBE_TEXT_BYTES)
            return tbd_parse_wrong(p, "", "a text has 1 to %u bytes", TBD_PROBE_TEXT_BYTES);
    }
    *out = (struct tbd_script_part){ TBD_PART_TEXT, (uint32_t)((bytes + 7) & ~7ull) };
    return tbd_parse_expect(p, ")");
}

/* ustack, ustack(frames) */
static bool parse_stack(struct tbd_probe_parser *p, struct tbd_script_part *out)
{
    uint64_t frames = TBD_PROBE_FRAMES;

    p->script->walks_stacks = true;
    if (tbd_parse_take(p, "(")) {
        tbd_parse_skip_blanks(p);
        if (!tbd_parse_number(p, &frames) || !frames || frames > TBD_PROBE_FRAMES)
            return tbd_parse_wrong(p, "", "a stack has 1 to %u frames", TBD_PROBE_FRAMES);
        if (!tbd_parse_expect(p, ")"))
            return false;
    }
    *out = (struct tbd_script_part){ TBD_PART_STACK, (uint32_t)frames * 8 };
    return true;
}

bool tbd_parse_value(struct tbd_probe_parser *p, uint32_t d, struct tbd_script_part *out)
{
    char name[TBD_SCRIPT_NAME_BYTES];
    size_t start;

    tbd_parse_skip_blanks(p);
    start = p->at;
    if (tbd_parse_name(p, name, sizeof(name))) {
        if (strcmp(name, "str") == 0)
            return parse_text(p, d, out);
        if (strcmp(name, "ustack") == 0)
            return parse_stack(p, out);
        if (strcmp(name, "comm") == 0) {
            *out = (struct tbd_script_part){ TBD_PART_COMM, 16 };
            return true;
        }
    }
    p->at = start;
    *out = (struct tbd_script_part){ TBD_PART_NUMBER, 8 };
    return tbd_parse_expression(p, d);
}
