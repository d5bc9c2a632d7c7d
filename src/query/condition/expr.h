// SPDX-License-Identifier: MIT
/* expr.h - conditions: from text to something that is evaluated once per event
 *
 *   tbd_expr_parse()   text -> typed nodes with their places in the text (no trace needed)
 *   tbd_expr_bind()    names of symbols become addresses, constants are folded
 *   tbd_expr_eval()    the value at an event; tbd_expr_holds(): is it true?
 *
 * Values are unsigned 64-bit integers unless signed() is around them.  Variables of the program
 * have their C types; expr_lower.h works out what a condition that uses them means at one
 * instruction. An evaluation has four outcomes: true, false, unknown (it needs registers, memory or
 * a new value that the caller does not have yet: ask again with more), and bad (there is no value:
 * division by zero, memory that is not mapped; such an event does not match, and it is counted).
 *
 * Parsed expressions do not change except by binding; several threads may evaluate one, each with
 * its own environment.  Nothing here prints. */
#ifndef TBD_QUERY_EXPR_H
#define TBD_QUERY_EXPR_H

#include "query/debuginfo/register_names.h"
#include "query/session/event.h"
#include "query/session/inlined_calls.h"
#include "query/text/query_error.h"

#include <regex.h>

// clang-format off
enum tbd_expr_op {
    TBD_EXPR_NUMBER,
    TBD_EXPR_SYMBOL,     /* &name; a number once bound */
    TBD_EXPR_FIELD,      /* enum tbd_event_field */
    TBD_EXPR_REGISTER,
    TBD_EXPR_MEMORY,     /* mem[left, value]; slot */
    TBD_EXPR_TOUCHES,    /* touches[left, right] */
    TBD_EXPR_FUNCTION,   /* pc is in a function that names[slot] covers */
    TBD_EXPR_MODULE,
    TBD_EXPR_CALLER,     /* as FUNCTION, of the call's address */
    TBD_EXPR_STACK,      /* patterns[slot] */
    TBD_EXPR_NOT, TBD_EXPR_AND, TBD_EXPR_OR,
    TBD_EXPR_EQ, TBD_EXPR_NE, TBD_EXPR_LT, TBD_EXPR_LE, TBD_EXPR_GT, TBD_EXPR_GE,
    TBD_EXPR_ADD, TBD_EXPR_SUB, TBD_EXPR_MUL, TBD_EXPR_DIV, TBD_EXPR_REM,
    TBD_EXPR_BITAND, TBD_EXPR_BITOR, TBD_EXPR_BITXOR, TBD_EXPR_SHL, TBD_EXPR_SHR,
    TBD_EXPR_NEG, TBD_EXPR_BITNOT, TBD_EXPR_SIGNED,
    /* operators of C: lowering replaces them by the others before evaluation (expr_lower.h) */
    TBD_EXPR_VARIABLE,   /* symbols[slot] */
    TBD_EXPR_STRING,     /* symbols[slot]; only as an operand of == and != */
    TBD_EXPR_MEMBER,     /* left.symbols[slot]; value 1: left->symbols[slot] */
    TBD_EXPR_INDEX,      /* left[right] */
    TBD_EXPR_DEREF,      /* *left */
    TBD_EXPR_ADDRESS,    /* &left */
    TBD_EXPR_CAST,       /* (symbols[slot])left */
    TBD_EXPR_SIZEOF,     /* the size of left, or without a left the size of the type symbols[slot] */
    TBD_EXPR_LIKE,       /* left =~ regexes[slot] */
    TBD_EXPR_CHOICE,     /* left ? right.left : right.right */
    TBD_EXPR_SIDES,      /* only there */
    /* made by lowering only */
    TBD_EXPR_EXTEND,     /* the low `value` bits of left, sign-extended */
    TBD_EXPR_FRAME,      /* stack pointer before the call of the function (CFA) */
    TBD_EXPR_NOWHERE,    /* has no value here; value 1: optimized out */
    TBD_EXPR_TO_REAL,    /* integer to double; value 4: by way of a float */
    TBD_EXPR_NARROW,     /* double to float and back: what a float can hold of it */
    TBD_EXPR_TO_INTEGER, /* double to integer, as a cast */
    TBD_EXPR_WIDEN,      /* bytes of a float to double */
    TBD_EXPR_MATCHES,    /* the string at left, of length `right` if there is one, matches regexes[value]; slots
                            from `which` on */
    /* true where left has a value (expr_keep.h) */
    TBD_EXPR_KEEP,       /* as value `which` of the event's record */
    TBD_EXPR_KEEP_TEXT,  /* the same, of a string; lowered: as MATCHES, `value` says which value of the record */
};
// clang-format on

enum tbd_event_field {
    TBD_FIELD_ADDR,
    TBD_FIELD_SIZE,
    TBD_FIELD_OLDVAL,
    TBD_FIELD_NEWVAL,
    TBD_FIELD_PC,
    TBD_FIELD_ARG0,
    TBD_FIELD_ARG1,
    TBD_FIELD_ARG2,
    TBD_FIELD_ARG3,
    TBD_FIELD_ARG4,
    TBD_FIELD_ARG5,
    TBD_FIELD_RETVAL,
    TBD_FIELD_SYSCALL,
    TBD_FIELD_TIME,
    TBD_FIELD_OFFSET,
    TBD_FIELD_SP,
    TBD_FIELD_THREAD,
    TBD_FIELD_FROM,
    TBD_FIELD_LINE,
    TBD_FIELD_FRAME,
    TBD_FIELD_PREVIOUS,
    TBD_FIELD_REASON,
    TBD_FIELD_SIGNAL,
    TBD_FIELD_NESTING,
    TBD_FIELD_DURATION,
    TBD_FIELD_RETURNED,
};

struct tbd_expr_node {
    uint8_t op; /* enum tbd_expr_op */
    uint8_t is_signed;
    uint8_t is_boolean;
    uint8_t width;       /* REGISTER: bits */
    uint8_t is_typed;    /* only lowering can say which type it is */
    uint8_t is_real;     /* floating point: values are bits of a double */
    uint8_t is_after;    /* MEMORY: the value after the event's instruction */
    uint8_t level;       /* MEMORY, MATCHES: 1 + reads of memory that its address needs */
    uint32_t which;      /* FIELD, REGISTER: number; NUMBER: enum tbd_literal; others: slot */
    int32_t left, right; /* indices of operands; -1 = none */
    uint64_t value;      /* NUMBER: value; MEMORY: bytes; REGISTER: shift, in bits */
    uint32_t at, length; /* in the text */
};

struct tbd_range64 {
    uint64_t start, end;
};

enum tbd_name_kind {
    TBD_NAME_FUNCTION = 0,
    TBD_NAME_MODULE,
    TBD_NAME_SOURCE, /* "file.c" or "file.c:7" */
    TBD_NAME_FRAME,  /* a function on the stack: its own code, or a copy */
};

/* A name of a function, module or source line, and the addresses it covers once it is bound to a
 * window's modules. */
struct tbd_expr_name {
    char *text;
    enum tbd_name_kind kind;
    struct tbd_range64 *ranges; /* sorted */
    size_t count;
    struct tbd_inlined_copy *copies; /* FRAME: of the inlined function; sorted */
    size_t copy_count;
    uint32_t at, length;
};

/* stack=<...>: outermost first, as written. */
struct tbd_expr_pattern {
    uint32_t count;
    int32_t *items; /* index of a name, or TBD_PATTERN_* */
};
#define TBD_EXPR_MAX_PATTERNS 64u
#define TBD_PATTERN_ONE       (-1) /* `*`: any one frame */
#define TBD_PATTERN_RUN       (-2) /* `**`: any run of frames, also an empty one */

/* value =~ "text" */
struct tbd_expr_regex {
    char *text;
    regex_t compiled; /* from it */
};

#define TBD_USES_VALUE    1u /* newval of a store, oldval of a load */
#define TBD_USES_REGS     2u /* registers other than those that every event of the type knows */
#define TBD_USES_MEMORY   4u
#define TBD_USES_STACK    8u
#define TBD_USES_NAMES    16u
#define TBD_USES_TYPES    32u  /* variables, casts: must be lowered at each place */
#define TBD_USES_FRAME    64u  /* the function's frame */
#define TBD_USES_STATE    128u /* registers that notes do not hold (session/register_notes.h) */
#define TBD_USES_OPERANDS 256u /* arguments or the stack pointer of an entry (TBD_EVENT_BARE) */

#define TBD_EXPR_MAX_LEVELS  8u  /* reads in a chain, each at an address that the last one gave */
#define TBD_EXPR_MATCH_SLOTS 32u /* words of a string that a regular expression sees */

struct tbd_expr {
    struct tbd_expr_node *nodes;
    uint32_t node_count;
    int32_t root;
    struct tbd_expr_name *names;
    uint32_t name_count;
    struct tbd_expr_pattern *patterns;
    uint32_t pattern_count;
    uint32_t memory_count; /* slots of MEMORY nodes */
    uint32_t uses;         /* TBD_USES_* */
    uint32_t registers;    /* TBD_NOTE_*: of TBD_USES_REGS */
    char **symbols;        /* texts of SYMBOL, VARIABLE, ... nodes, by node->which */
    uint8_t *symbol_found; /* 1: lowering has found the variable somewhere */
    uint32_t symbol_count;
    char **words; /* events' own values and registers, as written; of a parsed condition */
    uint32_t word_count;
    struct tbd_expr_regex *regexes;
    uint32_t regex_count;
    uint32_t levels;             /* the largest of all nodes */
    const struct tbd_expr *from; /* lowered: names, patterns and regexes are borrowed from it */
};

/* A value that is named by a word of the condition: in memory, or a number. */
struct tbd_expr_stand_in {
    bool is_number; /* no place in memory, but `number`; of a floating-point value its bits */
    uint64_t number, address;
    uint64_t bytes; /* 1 to 8 */
    bool is_after;  /* as the event's instruction leaves it */
    bool is_real;   /* floating point */
    char type[256]; /* the type that it is cast to; "": no cast */
};

/* Words whose meaning only the caller knows: `oldval` in a question about one variable. */
struct tbd_expr_words {
    /* False: the word text[at, at + length) has no such meaning, or *error is filled. */
    bool (*find)(void *context, const char *text, size_t at, size_t length,
                 struct tbd_expr_stand_in *out, struct tbd_query_error *error);
    void *context;
};

/* A condition as someone wrote it: text[from, to), on events of `type`. */
struct tbd_expr_source {
    const char *text;
    size_t from, to;
    enum tbd_event_type type;
    const struct tbd_expr_words *words; /* NULL: none */
};

/* On failure *error says where in `text`, and *out is NULL. The caller owns *out:
 * tbd_expr_free(). */
TBD_MUST_CHECK enum tbd_status tbd_expr_parse_source(const struct tbd_expr_source *source,
                                                     struct tbd_expr **out,
                                                     struct tbd_query_error *error);
/* Parses all of text[from..), where no word has a meaning of the caller's. */
TBD_MUST_CHECK enum tbd_status tbd_expr_parse(const char *text, size_t from,
                                              enum tbd_event_type type, struct tbd_expr **out,
                                              struct tbd_query_error *error);
void tbd_expr_free(struct tbd_expr *expr); /* NULL is fine */

/* Looks names up. `address` gives the address of a symbol; `ranges` gives all addresses that a
 * function or module name covers, allocated with malloc and sorted (count 0 = no such name). */
struct tbd_expr_names {
    bool (*address)(void *context, const char *name, uint64_t *out);
    bool (*ranges)(void *context, const char *name, enum tbd_name_kind kind,
                   struct tbd_range64 **out, size_t *out_count);
    /* Puts into the message and the hint why a function has no ranges, if more can be said than that it is not there:
     * it is inlined, or a virtual function that classes derived from its own have.  May be NULL. */
    void (*explain)(void *context, const char *name, struct tbd_query_error *error);
    /* The copies of an inlined function, allocated with malloc and sorted; may be NULL. */
    bool (*copies)(void *context, const char *name, struct tbd_inlined_copy **out, size_t *count);
    void *context;
};
/* Replaces symbols by addresses and folds constants. An unknown symbol gives TBD_NAME and fills
 * *error. */
TBD_MUST_CHECK enum tbd_status tbd_expr_bind_symbols(struct tbd_expr *expr,
                                                     const struct tbd_expr_names *names,
                                                     struct tbd_query_error *error);
/* (Re)binds names of functions and modules.  With `must_exist` an unknown name is an error. */
TBD_MUST_CHECK enum tbd_status tbd_expr_bind_names(struct tbd_expr *expr,
                                                   const struct tbd_expr_names *names,
                                                   bool must_exist, struct tbd_query_error *error);

enum tbd_value_state { TBD_VALUE_OK = 0, TBD_VALUE_UNKNOWN, TBD_VALUE_BAD };
struct tbd_value {
    uint64_t v;
    enum tbd_value_state state;
};

struct tbd_kept;

/* What is known at one event; all pointers may be NULL (= not known yet). */
struct tbd_expr_env {
    const struct tbd_event *event;
    const struct tbd_regs *regs;
    const uint8_t *vector;          /* low 16 bytes of each of the 16 vector registers */
    const struct tbd_value *memory; /* by slot; UNKNOWN if not read yet */
    /* Reads memory as of the event immediately, when a slot has no value. */
    enum tbd_value_state (*read)(void *context, uint64_t address, uint64_t bytes, uint64_t *out);
    void *read_context;
    const struct tbd_inlined_call *frames; /* innermost first */
    size_t frame_count;
    uint64_t frame;             /* TBD_EXPR_FRAME; 0: not known */
    const uint64_t *stack_bits; /* instead of frames: bit i = patterns[i] matches */
    struct tbd_bad_events bad; /* only ever increased, but for what the result does not depend on */
    struct tbd_kept *kept;     /* receives kept values */
};

struct tbd_value tbd_expr_eval(const struct tbd_expr *expr, int32_t node, struct tbd_expr_env *env);
/* The same if all that matters is whether a condition is true: false and bad are alike.  It may be
 * decided with less. */
struct tbd_value tbd_expr_holds(const struct tbd_expr *expr, int32_t node,
                                struct tbd_expr_env *env);
bool tbd_expr_in_ranges(const struct tbd_expr_name *name, uint64_t address);
bool tbd_expr_stack_matches(const struct tbd_expr *expr, const struct tbd_expr_pattern *pattern,
                            const struct tbd_inlined_call *frames, size_t count);

/* Calls `each` for A, B and C of "A and B and C". */
void tbd_expr_conjuncts(const struct tbd_expr *expr, int32_t node,
                        void (*each)(void *context, const struct tbd_expr *expr, int32_t node),
                        void *context);
/* Is `node`, after binding, `field == CONSTANT` or `CONSTANT == field`? */
bool tbd_expr_is_field_equals(const struct tbd_expr *expr, int32_t node, enum tbd_event_field field,
                              uint64_t *out);

#endif
