// SPDX-License-Identifier: MIT
/* remote_condition.c - see remote_condition.h
 *
 * The code is carried out with expressions in place of numbers.  A conditional jump is carried out both ways; the results become the
 * sides of a choice:
 *
 *   reg 3, const8 7, equal, if_goto L, const8 0, goto M, L: ... M: end      ->  (rdx == 7) ? ... : 0
 *
 * REMOTE_CONDITION-1  Jumps go forward only, so every run of the code ends.  Two sides of each jump could still be exponentially many
 *   runs: all of them together carry out STEPS_MAX instructions at most (not checked: run() has the only place
 *   that counts them). */
#include "query/remote/remote_condition.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS_MAX = 2000, STACK_MAX = 32 };

/* Operations, as gdb numbers them. */
enum operation {
    CODE_ADD = 0x02,
    CODE_SUB,
    CODE_LOG_NOT = 0x0e,
    CODE_BIT_NOT = 0x12,
    CODE_EQUAL,
    CODE_EXT = 0x16,
    CODE_REF8,
    CODE_REF64 = 0x1a,
    CODE_IF_GOTO = 0x20,
    CODE_GOTO,
    CODE_CONST8,
    CODE_CONST64 = 0x25,
    CODE_REG,
    CODE_END,
    CODE_DUP,
    CODE_POP,
    CODE_ZERO_EXT,
    CODE_SWAP,
    CODE_PICK = 0x32,
    CODE_ROT,
    CODES
};

/* Operations on two numbers.  Where one compares or divides signed numbers, both sides are. */
static const struct {
    const char *operator;
    bool is_signed;
} binary[CODES] = {
    [CODE_ADD] = { "+", false }, [CODE_SUB] = { "-", false },    [0x04] = { "*", false },
    [0x05] = { "/", true },      [0x06] = { "/", false },        [0x07] = { "%", true },
    [0x08] = { "%", false },     [0x09] = { "<<", false },       [0x0a] = { ">>", true },
    [0x0b] = { ">>", false },    [0x0f] = { "&", false },        [0x10] = { "|", false },
    [0x11] = { "^", false },     [CODE_EQUAL] = { "==", false }, [0x14] = { "<", true },
    [0x15] = { "<", false },
};

/* Registers by gdb's numbers. */
static const char *const registers[] = { "rax", "rbx", "rcx", "rdx", "rsi", "rdi",
                                         "rbp", "rsp", "r8",  "r9",  "r10", "r11",
                                         "r12", "r13", "r14", "r15", "rip", "rflags" };

enum node_kind {
    NUMBER,
    REGISTER,
    MEMORY,
    BINARY,
    NOT,
    INVERSE,
    SIGN_EXTENDED,
    ZERO_EXTENDED,
    CHOICE
};

struct node {
    enum node_kind kind;
    uint8_t code;      /* BINARY */
    uint64_t value;    /* a number; the register; bytes of memory; bits that are extended */
    unsigned parts[3]; /* numbers of nodes */
};

struct translation {
    const uint8_t *code;
    size_t bytes;
    struct node *nodes; /* owned; number 0 is none */
    unsigned count, capacity;
    unsigned steps;
};

struct stack {
    unsigned nodes[STACK_MAX];
    unsigned count;
};

/* ---- nodes ---- */

/* 0: there are too many. */
static unsigned add(struct translation *t, struct node node)
{
    if (t->count == t->capacity)
        return 0;
    t->nodes[t->count] = node;
    return t->count++;
}

static bool push(struct stack *stack, unsigned node)
{
    if (node == 0 || stack->count == STACK_MAX)
        return false;
    stack->nodes[stack->count++] = node;
    return true;
}

static unsigned pop(struct stack *stack)
{
    return stack->count == 0 ? 0 : stack->nodes[--stack->count];
}

/* ---- what is known now need not be computed at each place ----
 *
 * gdb writes an int of a frame as ((rbp + 16) + sign-extended 0xec), 4 bytes of memory there, sign-extended == 7.  That is
 * mem[rbp - 4, 4] == 7. */

static unsigned add_number(struct translation *t, uint64_t value)
{
    return add(t, (struct node){ .kind = NUMBER, .value = value });
}

static bool is_number(const struct translation *t, unsigned node, uint64_t *out)
{
    *out = t->nodes[node].value;
    return t->nodes[node].kind == NUMBER;
}

static uint64_t extend_number(enum node_kind kind, uint64_t value, uint64_t bits)
{
    uint64_t upper = 64 - bits;

    return kind == SIGN_EXTENDED ? (uint64_t)((int64_t)(value << upper) >> upper)
                                 : value << upper >> upper;
}

static unsigned add_extended(struct translation *t, enum node_kind kind, unsigned part,
                             uint64_t bits)
{
    const struct node *inner = &t->nodes[part];

    if (inner->kind == NUMBER)
        return add_number(t, extend_number(kind, inner->value, bits));
    if (kind == ZERO_EXTENDED && inner->kind == MEMORY && 8 * inner->value <= bits)
        return part;
    return add(t, (struct node){ .kind = kind, .value = bits, .parts = { part } });
}

static unsigned add_binary(struct translation *t, uint8_t code, unsigned left, unsigned right)
{
    return add(t, (struct node){ .kind = BINARY, .code = code, .parts = { left, right } });
}

/* left + a number: numbers are added up. */
static unsigned add_sum(struct translation *t, unsigned left, uint64_t number)
{
    uint64_t other;

    if (is_number(t, left, &other))
        return add_number(t, other + number);
    if (t->nodes[left].kind == BINARY && t->nodes[left].code == CODE_ADD &&
        is_number(t, t->nodes[left].parts[1], &other))
        return add_sum(t, t->nodes[left].parts[0], other + number);
    return number == 0 ? left : add_binary(t, CODE_ADD, left, add_number(t, number));
}

/* A number that the sign-extended value can have: then it is compared as it is without its sign. */
static unsigned add_equal(struct translation *t, unsigned left, unsigned right)
{
    const struct node *inner = &t->nodes[left];
    uint64_t number;

    if (inner->kind == SIGN_EXTENDED && is_number(t, right, &number) &&
        extend_number(SIGN_EXTENDED, number, inner->value) == number) {
        number = extend_number(ZERO_EXTENDED, number, inner->value);
        left = add_extended(t, ZERO_EXTENDED, inner->parts[0], inner->value);
        right = add_number(t, number);
    }
    return left == 0 || right == 0 ? 0 : add_binary(t, CODE_EQUAL, left, right);
}

static bool push_with_one(struct translation *t, struct stack *stack, enum node_kind kind,
                          uint64_t value)
{
    unsigned part = pop(stack);

    if (part != 0 && (kind == SIGN_EXTENDED || kind == ZERO_EXTENDED))
        return push(stack, add_extended(t, kind, part, value));
    return part != 0 &&
           push(stack, add(t, (struct node){ .kind = kind, .value = value, .parts = { part } }));
}

static bool push_binary(struct translation *t, struct stack *stack, uint8_t code)
{
    unsigned right = pop(stack), left = pop(stack);
    uint64_t number;

    if (left == 0 || right == 0)
        return false;
    if (code == CODE_ADD && is_number(t, right, &number))
        return push(stack, add_sum(t, left, number));
    if (code == CODE_SUB && is_number(t, right, &number))
        return push(stack, add_sum(t, left, 0 - number));
    if (code == CODE_EQUAL)
        return push(stack, add_equal(t, left, right));
    return push(stack, add_binary(t, code, left, right));
}

/* ---- the machine ---- */

/* The operand of the instruction at `at`: the most significant byte comes first. */
static bool operand(const struct translation *t, size_t at, size_t bytes, uint64_t *out)
{
    if (bytes >= t->bytes - at)
        return false;
    *out = 0;
    for (size_t i = 1; i <= bytes; i++)
        *out = *out << 8 | t->code[at + i];
    return true;
}

static size_t operand_bytes(uint8_t code)
{
    switch (code) {
    case CODE_EXT:
    case CODE_ZERO_EXT:
    case CODE_PICK: return 1;
    case CODE_IF_GOTO:
    case CODE_GOTO:
    case CODE_REG: return 2;
    default: return code >= CODE_CONST8 && code <= CODE_CONST64 ? 1u << (code - CODE_CONST8) : 0;
    }
}

static bool move(struct stack *stack, uint8_t code, uint64_t value)
{
    unsigned *top = stack->nodes + stack->count, node;

    switch (code) {
    case CODE_DUP: return stack->count != 0 && push(stack, top[-1]);
    case CODE_POP: return pop(stack) != 0;
    case CODE_PICK: return value < stack->count && push(stack, top[-1 - (int)value]);
    case CODE_SWAP:
        if (stack->count < 2)
            return false;
        node = top[-1];
        top[-1] = top[-2];
        top[-2] = node;
        return true;
    default: /* ROT: a b c -> c a b */
        if (stack->count < 3)
            return false;
        node = top[-1];
        top[-1] = top[-2];
        top[-2] = top[-3];
        top[-3] = node;
        return true;
    }
}

/* Every instruction but jumps and the end. */
static bool carry_out(struct translation *t, struct stack *stack, uint8_t code, uint64_t value)
{
    if (code < CODES && binary[code].operator!= NULL)
        return push_binary(t, stack, code);
    if (code >= CODE_REF8 && code <= CODE_REF64)
        return push_with_one(t, stack, MEMORY, 1u << (code - CODE_REF8));
    if (code >= CODE_CONST8 && code <= CODE_CONST64)
        return push(stack, add_number(t, value));
    switch (code) {
    case CODE_LOG_NOT: return push_with_one(t, stack, NOT, 0);
    case CODE_BIT_NOT: return push_with_one(t, stack, INVERSE, 0);
    case CODE_EXT:
    case CODE_ZERO_EXT:
        return value != 0 && value <= 64 &&
               push_with_one(t, stack, code == CODE_EXT ? SIGN_EXTENDED : ZERO_EXTENDED, value);
    case CODE_REG:
        return value < sizeof(registers) / sizeof(registers[0]) &&
               push(stack, add(t, (struct node){ .kind = REGISTER, .value = value }));
    case CODE_DUP:
    case CODE_POP:
    case CODE_SWAP:
    case CODE_PICK:
    case CODE_ROT: return move(stack, code, value);
    default: return false;
    }
}

/* The number on top of the stack at the end of the run from `at` on; 0: there is none. */
static unsigned run(struct translation *t, size_t at, struct stack stack)
{
    while (at < t->bytes && t->steps++ < STEPS_MAX) {
        uint8_t code = t->code[at];
        size_t next = at + 1 + operand_bytes(code);
        uint64_t value = 0;

        if (code == CODE_END)
            return pop(&stack);
        if (!operand(t, at, operand_bytes(code), &value))
            return 0;
        if (code == CODE_IF_GOTO || code == CODE_GOTO) {
            unsigned condition = code == CODE_GOTO ? 0 : pop(&stack), held, otherwise;

            if (value < next || (code == CODE_IF_GOTO && condition == 0))
                return 0;
            at = (size_t)value;
            if (code == CODE_GOTO)
                continue;
            held = run(t, at, stack);
            otherwise = held == 0 ? 0 : run(t, next, stack);
            return otherwise == 0
                       ? 0
                       : add(t, (struct node){ .kind = CHOICE,
                                               .parts = { condition, held, otherwise } });
        }
        if (!carry_out(t, &stack, code, value))
            return 0;
        at = next;
    }
    return 0;
}

/* ---- text ---- */

struct text {
    char *bytes; /* TBD_REMOTE_CONDITION_BYTES of them */
    size_t used;
    bool is_full;
};

static void put(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct text *text, const char *format, ...)
{
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(text->bytes + text->used, TBD_REMOTE_CONDITION_BYTES - text->used, format,
                       arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= TBD_REMOTE_CONDITION_BYTES - text->used)
        text->is_full = true;
    else
        text->used += (size_t)length;
}

static void print(const struct translation *t, unsigned number, struct text *text);
static void print_truth(const struct translation *t, unsigned number, struct text *text);

/* In tbdq's language what compares is true or false, and no number. */
static bool compares(const struct node *node)
{
    const char *operator= node->kind == BINARY ? binary[node->code].operator: "";

    return node->kind == NOT || strcmp(operator, "==") == 0 || strcmp(operator, "<") == 0;
}

static void print_binary(const struct translation *t, const struct node *node, struct text *text)
{
    const char *before = binary[node->code].is_signed ? "signed(" : "(";

    put(text, "(%s", before);
    print(t, node->parts[0], text);
    put(text, ") %s %s", binary[node->code].operator, before);
    print(t, node->parts[1], text);
    put(text, "))");
}

/* One operand between two texts. */
static void print_around(const struct translation *t, const struct node *node, struct text *text,
                         const char *before, const char *after)
{
    put(text, "%s", before);
    print(t, node->parts[0], text);
    put(text, "%s", after);
}

/* A number. */
static void print(const struct translation *t, unsigned number, struct text *text)
{
    const struct node *node = &t->nodes[number];
    char after[64];

    if (text->is_full)
        return;
    if (compares(node)) {
        put(text, "(");
        print_truth(t, number, text);
        put(text, " ? 1 : 0)");
        return;
    }
    switch (node->kind) {
    case NUMBER: put(text, "%#" PRIx64, node->value); break;
    case REGISTER: put(text, "%s", registers[node->value]); break;
    case MEMORY:
        snprintf(after, sizeof(after), ", %" PRIu64 "]", node->value);
        print_around(t, node, text, "mem[", after);
        break;
    case NOT:
    case BINARY: print_binary(t, node, text); break;
    case INVERSE: print_around(t, node, text, "(~(", "))"); break;
    case SIGN_EXTENDED:
        snprintf(after, sizeof(after), ") << %" PRIu64 ") >> %" PRIu64 ")", 64 - node->value,
                 64 - node->value);
        print_around(t, node, text, "(signed((", after);
        break;
    case ZERO_EXTENDED:
        snprintf(after, sizeof(after), ") & %#" PRIx64 ")", UINT64_MAX >> (64 - node->value));
        print_around(t, node, text, "((", after);
        break;
    case CHOICE:
        put(text, "(");
        print_truth(t, node->parts[0], text);
        put(text, " ? ");
        print(t, node->parts[1], text);
        put(text, " : ");
        print(t, node->parts[2], text);
        put(text, ")");
        break;
    }
}

/* (condition and first) or (not condition and second); `&&` of C is condition ? first : 0, and `||` is condition ? 1 : second. */
static void print_choice_truth(const struct translation *t, const struct node *node,
                               struct text *text)
{
    uint64_t first, second;
    bool is_or = is_number(t, node->parts[1], &first) && first != 0;
    bool is_and = is_number(t, node->parts[2], &second) && second == 0;

    put(text, is_or || is_and ? "(" : "((");
    print_truth(t, node->parts[0], text);
    if (is_or || is_and) {
        put(text, is_or ? " or " : " and ");
        print_truth(t, node->parts[is_or ? 2 : 1], text);
        put(text, ")");
        return;
    }
    put(text, " and ");
    print_truth(t, node->parts[1], text);
    put(text, ") or (not ");
    print_truth(t, node->parts[0], text);
    put(text, " and ");
    print_truth(t, node->parts[2], text);
    put(text, "))");
}

/* True or false. */
static void print_truth(const struct translation *t, unsigned number, struct text *text)
{
    const struct node *node = &t->nodes[number];

    if (text->is_full)
        return;
    if (node->kind == NOT) {
        put(text, "(not ");
        print_truth(t, node->parts[0], text);
        put(text, ")");
    } else if (compares(node)) {
        print_binary(t, node, text);
    } else if (node->kind == CHOICE) {
        print_choice_truth(t, node, text);
    } else {
        put(text, "(");
        print(t, number, text);
        put(text, " != 0)");
    }
}

char *tbd_remote_condition(const uint8_t *code, size_t bytes)
{
    struct translation t = { .code = code, .bytes = bytes, .count = 1, .capacity = STEPS_MAX };
    struct text text = { .bytes = malloc(TBD_REMOTE_CONDITION_BYTES) };
    unsigned result = 0;

    t.nodes = calloc(t.capacity, sizeof(*t.nodes));
    if (t.nodes != NULL && text.bytes != NULL)
        result = run(&t, 0, (struct stack){ .count = 0 });
    if (result != 0)
        print_truth(&t, result, &text);
    free(t.nodes);
    if (result != 0 && !text.is_full)
        return text.bytes;
    free(text.bytes);
    return NULL;
}
