// SPDX-License-Identifier: MIT
/* expr_eval.c - evaluates a condition at an event
 *
 * Evaluation walks the node array; operands have smaller indices, so it ends.  A bad operand makes
 * an operator bad, whatever is known of the other one; expr_logic.c has `and` and `or`. */
#include "query/condition/expr_keep.h"
#include "query/condition/expr_logic.h"
#include "base/binary_search.h"
#include "query/session/callers.h"
#include "query/text/lexer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TWO_TO_63 9223372036854775808.0

static struct tbd_value known(uint64_t v)
{
    return (struct tbd_value){ .v = v, .state = TBD_VALUE_OK };
}

static struct tbd_value unknown(void)
{
    return (struct tbd_value){ .state = TBD_VALUE_UNKNOWN };
}

static struct tbd_value bad(uint64_t *counter)
{
    ++*counter;
    return (struct tbd_value){ .state = TBD_VALUE_BAD };
}

bool tbd_expr_in_ranges(const struct tbd_expr_name *name, uint64_t address)
{
    size_t i = TBD_COUNT_BEFORE(k, name->count, name->ranges[k].end <= address);

    return i < name->count && name->ranges[i].start <= address;
}

static bool is_copy_of(const struct tbd_expr_name *name, struct tbd_inlined_copy copy)
{
    size_t i =
        TBD_COUNT_BEFORE(k, name->copy_count, tbd_inlined_copy_compare(name->copies[k], copy) < 0);

    return i < name->copy_count && tbd_inlined_copy_compare(name->copies[i], copy) == 0;
}

static bool is_call_of(const struct tbd_expr_name *name, const struct tbd_inlined_call *call)
{
    return call->copy.entry != 0 ? is_copy_of(name, call->copy)
                                 : tbd_expr_in_ranges(name, call->pc);
}

/* Matches items[0..n) with frames, both outermost first; frames are stored innermost first.  The
 * usual wildcard match: on a mismatch, the last `**` swallows one more frame. */
bool tbd_expr_stack_matches(const struct tbd_expr *expr, const struct tbd_expr_pattern *pattern,
                            const struct tbd_inlined_call *frames, size_t count)
{
    size_t item = 0;
    size_t frame = 0;
    size_t run_item = SIZE_MAX;
    size_t run_frame = 0;

    while (frame < count) {
        int32_t wanted = item < pattern->count ? pattern->items[item] : -3;
        const struct tbd_inlined_call *call = &frames[count - 1 - frame];

        if (wanted == TBD_PATTERN_RUN) {
            run_item = item++;
            run_frame = frame;
        } else if (wanted == TBD_PATTERN_ONE ||
                   (wanted >= 0 && is_call_of(&expr->names[wanted], call))) {
            item++;
            frame++;
        } else if (run_item != SIZE_MAX) {
            item = run_item + 1;
            frame = ++run_frame;
        } else {
            return false;
        }
    }
    while (item < pattern->count && pattern->items[item] == TBD_PATTERN_RUN)
        item++;
    return item == pattern->count;
}

static struct tbd_value eval_vector(const struct tbd_expr_node *node,
                                    const struct tbd_expr_env *env)
{
    uint64_t v = 0;

    if (env->vector == NULL)
        return unknown();
    memcpy(&v, env->vector + (node->which - TBD_REGISTER_XMM0) * 16 + node->value / 8,
           node->width / 8);
    return known(v);
}

static struct tbd_value eval_register(const struct tbd_expr_node *node,
                                      const struct tbd_expr_env *env)
{
    uint64_t v;

    if (node->which >= TBD_REGISTER_XMM0)
        return eval_vector(node, env);
    if (node->which == TBD_REGISTER_RIP)
        v = env->event->pc;
    else if (node->which < TBD_REG_COUNT && tbd_event_register(env->event, node->which, &v))
        (void)v;
    else if (env->regs == NULL)
        return unknown();
    else if (node->which < TBD_REG_COUNT)
        v = env->regs->gpr[node->which];
    else if (node->which == TBD_REGISTER_RFLAGS)
        v = env->regs->rflags;
    else
        v = node->which == TBD_REGISTER_FS_BASE ? env->regs->fs_base : env->regs->gs_base;
    v >>= node->value;
    return known(node->width == 64 ? v : v & ((1ull << node->width) - 1));
}

static struct tbd_value eval_oldval(const struct tbd_event *event)
{
    if (event->type == TBD_EVENT_STORE && event->old != NULL)
        return known(tbd_event_bytes_value(event->old, event->size));
    if (event->type == TBD_EVENT_LOAD && (event->flags & TBD_EVENT_HAS_VALUE) != 0)
        return known(event->value);
    return unknown();
}

static struct tbd_value eval_newval(const struct tbd_event *event)
{
    if ((event->flags & TBD_EVENT_HAS_VALUE) != 0)
        return known(event->value);
    if (event->fresh != NULL)
        return known(tbd_event_bytes_value(event->fresh, event->size));
    return unknown();
}

static struct tbd_value eval_sp(const struct tbd_expr_env *env)
{
    if ((env->event->flags & TBD_EVENT_HAS_SP) != 0)
        return known(env->event->sp);
    return env->regs != NULL ? known(env->regs->gpr[TBD_RSP]) : unknown();
}

/* What an event of this kind need not have. */
static struct tbd_value if_any(bool has_it, uint64_t value)
{
    return has_it ? known(value) : (struct tbd_value){ .state = TBD_VALUE_BAD };
}

/* A value that a call has only if it returned. */
static struct tbd_value at_end(const struct tbd_event *event, uint64_t value)
{
    return if_any(event->type != TBD_EVENT_CALL || (event->flags & TBD_EVENT_RETURNED) != 0, value);
}

/* Among signals, only a fault has one. */
static struct tbd_value eval_addr(const struct tbd_event *event)
{
    return if_any(event->type != TBD_EVENT_SIGNAL || (event->flags & TBD_EVENT_HAS_ADDR) != 0,
                  event->addr);
}

static struct tbd_value eval_field(const struct tbd_expr_node *node, const struct tbd_expr_env *env)
{
    const struct tbd_event *event = env->event;
    enum tbd_event_field field = (enum tbd_event_field)node->which;

    switch (field) {
    case TBD_FIELD_ADDR: return eval_addr(event);
    case TBD_FIELD_SIZE: return known(event->size);
    case TBD_FIELD_OLDVAL: return eval_oldval(event);
    case TBD_FIELD_NEWVAL: return eval_newval(event);
    case TBD_FIELD_PC: return known(event->pc);
    case TBD_FIELD_FROM: return known(event->from);
    case TBD_FIELD_RETVAL: return at_end(event, event->retval);
    case TBD_FIELD_NESTING: return if_any(event->number != TBD_CALLERS_UNKNOWN, event->number);
    case TBD_FIELD_DURATION: return at_end(event, event->began - event->position.time);
    case TBD_FIELD_RETURNED: return known((event->flags & TBD_EVENT_RETURNED) != 0);
    case TBD_FIELD_SYSCALL:
    case TBD_FIELD_SIGNAL: return known(event->number);
    case TBD_FIELD_TIME: return known(event->position.time);
    case TBD_FIELD_OFFSET: return known(event->position.offset);
    case TBD_FIELD_SP: return eval_sp(env);
    case TBD_FIELD_THREAD: return known(event->thread);
    case TBD_FIELD_LINE: return unknown(); /* lowering replaces it */
    case TBD_FIELD_FRAME: return env->frame != 0 ? known(env->frame) : unknown();
    case TBD_FIELD_PREVIOUS: return known(event->previous);
    case TBD_FIELD_REASON: return known(event->reason);
    case TBD_FIELD_ARG0:
    case TBD_FIELD_ARG1:
    case TBD_FIELD_ARG2:
    case TBD_FIELD_ARG3:
    case TBD_FIELD_ARG4:
    case TBD_FIELD_ARG5:
        if ((event->flags & TBD_EVENT_BARE) != 0)
            return unknown();
        return known(event->args[field - TBD_FIELD_ARG0]);
    }
    return unknown();
}

/* Bytes that the event itself holds: the old and the new bytes of a store. */
static bool told_by_event(const struct tbd_expr_node *node, const struct tbd_event *event,
                          uint64_t address, uint64_t *out)
{
    const uint8_t *bytes = node->is_after ? event->fresh : event->old;

    if (event->type != TBD_EVENT_STORE || address - event->addr >= event->size ||
        node->value > event->size - (address - event->addr))
        return false;
    if (bytes != NULL)
        *out = tbd_event_bytes_value(bytes + (address - event->addr), node->value);
    else if (node->is_after && (event->flags & TBD_EVENT_HAS_VALUE) != 0 && address == event->addr)
        *out = node->value == 8 ? event->value : event->value & ((1ull << node->value * 8) - 1);
    else
        return false;
    return true;
}

static struct tbd_value eval_memory(const struct tbd_expr *expr, const struct tbd_expr_node *node,
                                    struct tbd_expr_env *env)
{
    struct tbd_value address;
    enum tbd_value_state state;
    uint64_t v = 0;

    if (env->memory != NULL && env->memory[node->which].state == TBD_VALUE_OK)
        return env->memory[node->which];
    if (env->memory != NULL && env->memory[node->which].state == TBD_VALUE_BAD)
        return bad(&env->bad.unmapped);
    address = tbd_expr_eval(expr, node->left, env);
    if (address.state != TBD_VALUE_OK)
        return address;
    if (told_by_event(node, env->event, address.v, &v))
        return known(v);
    state = env->read == NULL || node->is_after
                ? TBD_VALUE_UNKNOWN
                : env->read(env->read_context, address.v, node->value, &v);
    if (state == TBD_VALUE_BAD)
        return bad(&env->bad.unmapped);
    return state == TBD_VALUE_OK ? known(v) : unknown();
}

static struct tbd_value eval_choice(const struct tbd_expr *expr, const struct tbd_expr_node *node,
                                    struct tbd_expr_env *env)
{
    struct tbd_value truth = tbd_expr_eval(expr, node->left, env);
    const struct tbd_expr_node *sides = &expr->nodes[node->right];

    if (truth.state != TBD_VALUE_OK)
        return truth;
    return tbd_expr_eval(expr, truth.v != 0 ? sides->left : sides->right, env);
}

static struct tbd_value divide(const struct tbd_expr_node *node, uint64_t a, uint64_t b,
                               struct tbd_expr_env *env)
{
    bool rest = node->op == TBD_EXPR_REM;

    if (b == 0)
        return bad(&env->bad.divisions);
    if (!node->is_signed)
        return known(rest ? a % b : a / b);
    if (b == UINT64_MAX) /* INT64_MIN / -1 overflows in C */
        return known(rest ? 0 : 0 - a);
    return known(rest ? (uint64_t)((int64_t)a % (int64_t)b) : (uint64_t)((int64_t)a / (int64_t)b));
}

static double as_real(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static struct tbd_value known_real(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return known(bits);
}

static struct tbd_value combine_reals(enum tbd_expr_op op, double a, double b)
{
    switch (op) {
    case TBD_EXPR_EQ: return known(a == b);
    case TBD_EXPR_NE: return known(a != b);
    case TBD_EXPR_LT: return known(a < b);
    case TBD_EXPR_LE: return known(a <= b);
    case TBD_EXPR_GT: return known(a > b);
    case TBD_EXPR_GE: return known(a >= b);
    case TBD_EXPR_ADD: return known_real(a + b);
    case TBD_EXPR_SUB: return known_real(a - b);
    case TBD_EXPR_MUL: return known_real(a * b);
    case TBD_EXPR_DIV: return known_real(a / b);
    default: return unknown();
    }
}

static struct tbd_value widen(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float value;

    memcpy(&value, &low, sizeof(value));
    return known_real((double)value);
}

static struct tbd_value to_real(const struct tbd_expr_node *node, uint64_t v)
{
    if (node->value == 4)
        return known_real(node->is_signed ? (float)(int64_t)v : (float)v);
    return known_real(node->is_signed ? (double)(int64_t)v : (double)v);
}

/* What no integer holds becomes what the processor makes of it. */
static struct tbd_value to_integer(double value)
{
    if (value >= TWO_TO_63 && value < 2 * TWO_TO_63)
        return known((uint64_t)value);
    if (value >= -TWO_TO_63 && value < TWO_TO_63)
        return known((uint64_t)(int64_t)value);
    return known(1ull << 63);
}

static uint64_t extend(const struct tbd_expr_node *node, uint64_t v)
{
    unsigned unused = 64 - (unsigned)node->value;

    v <<= unused;
    return node->is_signed ? (uint64_t)((int64_t)v >> unused) : v >> unused;
}

static uint64_t shift_right(const struct tbd_expr_node *node, uint64_t a, uint64_t by)
{
    if (node->is_signed)
        return (uint64_t)((int64_t)a >> (by < 63 ? by : 63));
    return by < 64 ? a >> by : 0;
}

static bool is_less(const struct tbd_expr_node *node, uint64_t a, uint64_t b)
{
    return node->is_signed ? (int64_t)a < (int64_t)b : a < b;
}

static struct tbd_value combine(const struct tbd_expr_node *node, uint64_t a, uint64_t b,
                                struct tbd_expr_env *env)
{
    switch ((enum tbd_expr_op)node->op) {
    case TBD_EXPR_EQ: return known(a == b);
    case TBD_EXPR_NE: return known(a != b);
    case TBD_EXPR_LT: return known(is_less(node, a, b));
    case TBD_EXPR_LE: return known(!is_less(node, b, a));
    case TBD_EXPR_GT: return known(is_less(node, b, a));
    case TBD_EXPR_GE: return known(!is_less(node, a, b));
    case TBD_EXPR_ADD: return known(a + b);
    case TBD_EXPR_SUB: return known(a - b);
    case TBD_EXPR_MUL: return known(a * b);
    case TBD_EXPR_DIV:
    case TBD_EXPR_REM: return divide(node, a, b, env);
    case TBD_EXPR_BITAND: return known(a & b);
    case TBD_EXPR_BITOR: return known(a | b);
    case TBD_EXPR_BITXOR: return known(a ^ b);
    case TBD_EXPR_SHL: return known(b < 64 ? a << b : 0);
    case TBD_EXPR_SHR: return known(shift_right(node, a, b));
    case TBD_EXPR_TOUCHES:
        /* [addr, addr+size) and [a, a+b) overlap, also if one of them wraps around */
        return known(b != 0 &&
                     (env->event->addr - a < b || a - env->event->addr < env->event->size));
    default: return unknown();
    }
}

static struct tbd_value eval_binary(const struct tbd_expr *expr, const struct tbd_expr_node *node,
                                    struct tbd_expr_env *env)
{
    struct tbd_value left = tbd_expr_eval(expr, node->left, env);
    struct tbd_value right;

    if (left.state == TBD_VALUE_BAD)
        return left;
    right = tbd_expr_eval(expr, node->right, env);
    if (right.state == TBD_VALUE_BAD || left.state == TBD_VALUE_OK)
        left.state = right.state;
    if (left.state != TBD_VALUE_OK)
        return left;
    return node->is_real
               ? combine_reals((enum tbd_expr_op)node->op, as_real(left.v), as_real(right.v))
               : combine(node, left.v, right.v, env);
}

static struct tbd_value eval_unary(const struct tbd_expr *expr, const struct tbd_expr_node *node,
                                   struct tbd_expr_env *env)
{
    struct tbd_value value = tbd_expr_eval(expr, node->left, env);

    if (value.state != TBD_VALUE_OK)
        return value;
    switch ((enum tbd_expr_op)node->op) {
    case TBD_EXPR_NOT: return known(value.v == 0);
    case TBD_EXPR_NEG: return node->is_real ? known_real(-as_real(value.v)) : known(0 - value.v);
    case TBD_EXPR_BITNOT: return known(~value.v);
    case TBD_EXPR_EXTEND: return known(extend(node, value.v));
    case TBD_EXPR_WIDEN: return widen(value.v);
    case TBD_EXPR_TO_REAL: return to_real(node, value.v);
    case TBD_EXPR_NARROW: return known_real((double)(float)as_real(value.v));
    case TBD_EXPR_TO_INTEGER: return to_integer(as_real(value.v));
    default: return value;
    }
}

/* The string's words are in slots, or are read one by one. */
static struct tbd_value match_word(const struct tbd_expr_node *node, uint32_t i, uint64_t address,
                                   struct tbd_expr_env *env)
{
    struct tbd_value word = { .state = TBD_VALUE_UNKNOWN };

    if (env->memory != NULL)
        word = env->memory[node->which + i];
    if (word.state == TBD_VALUE_UNKNOWN && env->read != NULL)
        word.state = env->read(env->read_context, address + i * 8, 8, &word.v);
    return word;
}

/* The string up to a NUL, or `length` bytes of it; a string longer than its slots is cut. */
static struct tbd_value read_text(const struct tbd_expr_node *node, uint64_t address,
                                  uint64_t length, struct tbd_expr_env *env, char *text)
{
    for (uint32_t i = 0; i < TBD_EXPR_MATCH_SLOTS && (uint64_t)i * 8 < length; i++) {
        struct tbd_value word = match_word(node, i, address, env);

        if (word.state == TBD_VALUE_BAD)
            return bad(&env->bad.unmapped);
        if (word.state == TBD_VALUE_UNKNOWN)
            return unknown();
        memcpy(text + (size_t)i * 8, &word.v, 8);
        if (memchr(text + (size_t)i * 8, '\0', 8) != NULL)
            break;
    }
    if (length < TBD_EXPR_MATCH_SLOTS * 8)
        text[length] = '\0';
    return known(1);
}

static struct tbd_value eval_matches(const struct tbd_expr *expr, const struct tbd_expr_node *node,
                                     struct tbd_expr_env *env)
{
    struct tbd_value address = tbd_expr_eval(expr, node->left, env);
    struct tbd_value length = known(UINT64_MAX), state;
    char text[TBD_EXPR_MATCH_SLOTS * 8 + 1] = "";

    if (address.state != TBD_VALUE_OK)
        return address;
    if (node->right >= 0)
        length = tbd_expr_eval(expr, node->right, env);
    if (length.state != TBD_VALUE_OK)
        return length;
    state = read_text(node, address.v, length.v, env, text);
    if (state.state != TBD_VALUE_OK)
        return state;
    return known(regexec(&expr->regexes[node->value].compiled, text, 0, NULL, 0) == 0);
}

/* Kept values do not count as bad evaluations. */
static struct tbd_value eval_keep(const struct tbd_expr *expr, const struct tbd_expr_node *node,
                                  struct tbd_expr_env *env)
{
    struct tbd_bad_events before = env->bad;
    struct tbd_value value = tbd_expr_eval(expr, node->left, env);

    env->bad = before;
    return tbd_kept_take(env->kept, node, value);
}

static struct tbd_value eval_keep_text(const struct tbd_expr *expr,
                                       const struct tbd_expr_node *node, struct tbd_expr_env *env)
{
    struct tbd_expr_node plain = { .which = (uint32_t)node->value, .left = -1, .right = -1 };
    struct tbd_bad_events before = env->bad;
    struct tbd_value address = tbd_expr_eval(expr, node->left, env);
    struct tbd_value length = known(UINT64_MAX), state = address;
    char text[TBD_EXPR_MATCH_SLOTS * 8 + 1] = "";

    if (node->right >= 0 && address.state == TBD_VALUE_OK)
        state = length = tbd_expr_eval(expr, node->right, env);
    if (state.state == TBD_VALUE_OK)
        state = read_text(node, address.v, length.v, env, text);
    env->bad = before;
    if (state.state != TBD_VALUE_OK && (state.state != TBD_VALUE_BAD || text[0] == '\0'))
        return tbd_kept_take(env->kept, &plain, state);
    if (length.v > strlen(text))
        length.v = strlen(text);
    return tbd_kept_take_text(env->kept, node, address, text, (size_t)length.v);
}

static struct tbd_value eval_nowhere(const struct tbd_expr_node *node, struct tbd_expr_env *env)
{
    env->bad.optimized += node->value;
    return (struct tbd_value){ .state = TBD_VALUE_BAD };
}

static struct tbd_value eval_stack(const struct tbd_expr *expr, const struct tbd_expr_node *node,
                                   const struct tbd_expr_env *env)
{
    if (env->stack_bits != NULL)
        return known(*env->stack_bits >> node->which & 1);
    if (env->frames == NULL)
        return unknown();
    return known(
        tbd_expr_stack_matches(expr, &expr->patterns[node->which], env->frames, env->frame_count));
}

struct tbd_value tbd_expr_eval(const struct tbd_expr *expr, int32_t index, struct tbd_expr_env *env)
{
    const struct tbd_expr_node *node = &expr->nodes[index];

    if (node->is_typed) /* the typed operators could give another result than the lowered ones */
        return node->op == TBD_EXPR_AND || node->op == TBD_EXPR_OR
                   ? tbd_logic_value(expr, node, env)
               : node->op == TBD_EXPR_NOT ? eval_unary(expr, node, env)
                                          : unknown();
    switch ((enum tbd_expr_op)node->op) {
    case TBD_EXPR_NUMBER: return known(node->value);
    case TBD_EXPR_SYMBOL: /* not bound: binding failed before */ return unknown();
    case TBD_EXPR_FIELD: return eval_field(node, env);
    case TBD_EXPR_REGISTER: return eval_register(node, env);
    case TBD_EXPR_MEMORY: return eval_memory(expr, node, env);
    case TBD_EXPR_FUNCTION:
    case TBD_EXPR_MODULE:
        return known(tbd_expr_in_ranges(&expr->names[node->which], env->event->pc));
    case TBD_EXPR_CALLER:
        return known(tbd_expr_in_ranges(&expr->names[node->which], env->event->from));
    case TBD_EXPR_STACK: return eval_stack(expr, node, env);
    case TBD_EXPR_AND:
    case TBD_EXPR_OR: return tbd_logic_value(expr, node, env);
    case TBD_EXPR_NOT:
    case TBD_EXPR_NEG:
    case TBD_EXPR_BITNOT:
    case TBD_EXPR_SIGNED:
    case TBD_EXPR_EXTEND:
    case TBD_EXPR_WIDEN:
    case TBD_EXPR_TO_REAL:
    case TBD_EXPR_NARROW:
    case TBD_EXPR_TO_INTEGER: return eval_unary(expr, node, env);
    case TBD_EXPR_FRAME: return env->frame != 0 ? known(env->frame) : unknown();
    case TBD_EXPR_NOWHERE: return eval_nowhere(node, env);
    case TBD_EXPR_MATCHES: return eval_matches(expr, node, env);
    case TBD_EXPR_KEEP: return eval_keep(expr, node, env);
    case TBD_EXPR_KEEP_TEXT: return eval_keep_text(expr, node, env);
    case TBD_EXPR_CHOICE: return eval_choice(expr, node, env);
    case TBD_EXPR_VARIABLE:
    case TBD_EXPR_STRING:
    case TBD_EXPR_MEMBER:
    case TBD_EXPR_INDEX:
    case TBD_EXPR_DEREF:
    case TBD_EXPR_ADDRESS:
    case TBD_EXPR_CAST:
    case TBD_EXPR_SIZEOF:
    case TBD_EXPR_SIDES:
    case TBD_EXPR_LIKE: /* their meaning depends on the place */ return unknown();
    default: return eval_binary(expr, node, env);
    }
}
