// SPDX-License-Identifier: MIT
/* probe_parse.c - reads a script: clauses and statements (probe_script.h) */
#include "query/probe/probe_parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_KEYS 4096u
#define DEFAULT_HIST 512u
#define VARIABLES_AT TBD_PARSE_TEMPORARIES

/* ---- text ---- */

void tbd_parse_skip_blanks(struct tbd_probe_parser *p)
{
    for (;; p->at++) {
        char c = p->text[p->at];

        if (c == '#' || (c == '/' && p->text[p->at + 1] == '/')) {
            p->at += strcspn(p->text + p->at, "\n");
            c = p->text[p->at];
        }
        if (c != ' ' && c != '\t' && c != '\n' && c != '\r')
            return;
    }
}

bool tbd_parse_take(struct tbd_probe_parser *p, const char *sign)
{
    tbd_parse_skip_blanks(p);
    if (strncmp(p->text + p->at, sign, strlen(sign)) != 0)
        return false;
    p->at += strlen(sign);
    return true;
}

bool tbd_parse_wrong(struct tbd_probe_parser *p, const char *hint, const char *format, ...)
{
    va_list list;

    if (p->error->message[0])
        return false;
    va_start(list, format);
    tbd_query_wrong_list(p->error, TBD_SYNTAX, p->at, p->text[p->at] ? 1 : 0, format, list);
    va_end(list);
    strncpy(p->error->hint, hint, sizeof(p->error->hint) - 1);
    return false;
}

bool tbd_parse_expect(struct tbd_probe_parser *p, const char *sign)
{
    return tbd_parse_take(p, sign) || tbd_parse_wrong(p, "", "%s is missing here", sign);
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool tbd_parse_name(struct tbd_probe_parser *p, char *out, size_t bytes)
{
    size_t length = 0;

    tbd_parse_skip_blanks(p);
    if (!is_letter(p->text[p->at]))
        return false;
    while (is_letter(p->text[p->at + length]) || is_digit(p->text[p->at + length]))
        length++;
    if (length >= bytes)
        return tbd_parse_wrong(p, "", "this name is too long");
    memcpy(out, p->text + p->at, length);
    out[length] = '\0';
    p->at += length;
    return true;
}

bool tbd_parse_number(struct tbd_probe_parser *p, uint64_t *out)
{
    char *end;

    if (!is_digit(p->text[p->at]))
        return false;
    errno = 0;
    *out = strtoull(p->text + p->at, &end, 0);
    if (errno)
        return tbd_parse_wrong(p, "", "this number is too large");
    p->at = (size_t)(end - p->text);
    return true;
}

/* ---- code ---- */

bool tbd_parse_emit(struct tbd_probe_parser *p, enum tbd_probe_op op, uint32_t d, uint32_t a,
                    uint32_t b, int64_t imm)
{
    struct tbd_probe_script *script = p->script;

    if (script->code_count == TBD_PROBE_MAX_CODE)
        return tbd_parse_wrong(p, "", "the script is too long");
    script->code[script->code_count++] =
        (struct tbd_probe_insn){ (uint8_t)op, (uint8_t)d, (uint8_t)a, (uint8_t)b, (int32_t)imm };
    return true;
}

uint32_t tbd_parse_variable(struct tbd_probe_parser *p, const char *name, bool may_be_new)
{
    for (uint32_t i = 0; i < p->variable_count; i++)
        if (strcmp(p->variables[i], name) == 0)
            return VARIABLES_AT + i;
    if (!may_be_new)
        tbd_parse_wrong(p, "$name = VALUE; comes first", "$%s has no value yet", name);
    else if (p->variable_count == TBD_PARSE_VARIABLES)
        tbd_parse_wrong(p, "", "a clause has at most %u variables", TBD_PARSE_VARIABLES);
    else {
        strcpy(p->variables[p->variable_count++], name);
        return VARIABLES_AT + p->variable_count - 1;
    }
    return TBD_PROBE_REGISTERS;
}

/* ---- maps ---- */

struct map_function {
    char name[8];
    uint32_t kind; /* enum tbd_probe_map_kind */
    bool has_value;
};

static const struct map_function map_functions[] = {
    { "count", TBD_PROBE_COUNT, false }, { "sum", TBD_PROBE_SUM, true },
    { "avg", TBD_PROBE_AVG, true },      { "min", TBD_PROBE_MIN, true },
    { "max", TBD_PROBE_MAX, true },      { "stats", TBD_PROBE_STATS, true },
    { "hist", TBD_PROBE_HIST, true },    { "lhist", TBD_PROBE_LHIST, true },
};

static const struct map_function *find_function(const char *name)
{
    for (size_t i = 0; i < sizeof(map_functions) / sizeof(map_functions[0]); i++)
        if (strcmp(map_functions[i].name, name) == 0)
            return &map_functions[i];
    return NULL;
}

/* TBD_PROBE_MAX_MAPS: there is none of this name. */
static uint32_t find_map(const struct tbd_probe_script *script, const char *name)
{
    for (uint32_t i = 0; i < script->map_count; i++)
        if (strcmp(script->map_names[i].name, name) == 0)
            return i;
    return TBD_PROBE_MAX_MAPS;
}

static bool map_name(struct tbd_probe_parser *p, char *out, size_t bytes)
{
    out[0] = '\0';
    return !is_letter(p->text[p->at]) || tbd_parse_name(p, out, bytes);
}

static uint32_t round_up(const struct tbd_script_part *part)
{
    return (part->bytes + 7) & ~7u;
}

static bool append_part(struct tbd_probe_parser *p, const struct tbd_script_part *part, uint32_t d,
                        bool is_key)
{
    static const enum tbd_probe_op keys[] = { TBD_PROBE_KEY, TBD_PROBE_KEY_TEXT, TBD_PROBE_KEY_COMM,
                                              TBD_PROBE_KEY_STACK };
    static const enum tbd_probe_op fields[] = { TBD_PROBE_FIELD, TBD_PROBE_FIELD_TEXT,
                                                TBD_PROBE_FIELD_COMM, TBD_PROBE_FIELD_STACK };
    uint32_t which = part->kind - TBD_PART_NUMBER;
    uint32_t imm = part->kind == TBD_PART_STACK ? part->bytes / 8 : part->bytes;

    return tbd_parse_emit(p, is_key ? keys[which] : fields[which], 0, d, 0, imm);
}

/* [key, key]; appends the keys, and describes them in *out. */
static bool parse_keys(struct tbd_probe_parser *p, struct tbd_script_map *out, uint32_t *key_bytes)
{
    *key_bytes = 0;
    if (!tbd_parse_take(p, "["))
        return true;
    do {
        struct tbd_script_part *part = &out->parts[out->part_count];

        if (out->part_count == TBD_SCRIPT_MAX_PARTS)
            return tbd_parse_wrong(p, "", "too many keys");
        if (!tbd_parse_value(p, 0, part) || !append_part(p, part, 0, true))
            return false;
        *key_bytes += round_up(part);
        out->part_count++;
    } while (tbd_parse_take(p, ","));
    if (*key_bytes > TBD_PROBE_KEY_BYTES)
        return tbd_parse_wrong(p, "shorter texts: str(x, 32); fewer frames: ustack(8)",
                               "the key takes %u bytes, %u are possible", *key_bytes,
                               TBD_PROBE_KEY_BYTES);
    return tbd_parse_expect(p, "]");
}

static bool parse_constant(struct tbd_probe_parser *p, int64_t *out)
{
    bool is_negative = tbd_parse_take(p, "-");
    uint64_t value;

    tbd_parse_skip_blanks(p);
    if (!tbd_parse_number(p, &value))
        return tbd_parse_wrong(p, "lhist(VALUE, LOW, HIGH, STEP)", "a number is missing");
    *out = is_negative ? -(int64_t)value : (int64_t)value;
    return true;
}

/* lhist(value, low, high, step) */
static bool parse_steps(struct tbd_probe_parser *p, struct tbd_probe_map *map)
{
    int64_t high, width;

    if (!tbd_parse_expect(p, ",") || !parse_constant(p, &map->low) || !tbd_parse_expect(p, ",") ||
        !parse_constant(p, &high) || !tbd_parse_expect(p, ",") || !parse_constant(p, &width))
        return false;
    if (width <= 0 || high <= map->low || (high - map->low) / width >= TBD_PROBE_LHIST_STEPS)
        return tbd_parse_wrong(p, "", "lhist has 1 to %u steps", TBD_PROBE_LHIST_STEPS);
    map->width = (uint64_t)width;
    map->steps = (uint32_t)((high - map->low + width - 1) / width);
    return true;
}

static bool same_parts(const struct tbd_script_map *a, const struct tbd_script_map *b)
{
    return a->part_count == b->part_count &&
           memcmp(a->parts, b->parts, a->part_count * sizeof(a->parts[0])) == 0;
}

static bool note_map(struct tbd_probe_parser *p, const struct tbd_script_map *named,
                     const struct tbd_probe_map *map, uint32_t *out)
{
    struct tbd_probe_script *script = p->script;

    *out = find_map(script, named->name);
    if (*out < TBD_PROBE_MAX_MAPS) {
        if (memcmp(&script->maps[*out], map, sizeof(*map)) == 0 &&
            same_parts(&script->map_names[*out], named))
            return true;
        return tbd_parse_wrong(p, "a map has one function, and keys of the same kinds",
                               "@%s is used in another way above", named->name);
    }
    if (script->map_count == TBD_PROBE_MAX_MAPS)
        return tbd_parse_wrong(p, "", "a script has at most %u maps", TBD_PROBE_MAX_MAPS);
    *out = script->map_count++;
    script->map_names[*out] = *named;
    script->maps[*out] = *map;
    return true;
}

/* = function(value ... ; the value is in register 0. */
static const struct map_function *parse_function_of_map(struct tbd_probe_parser *p)
{
    const struct map_function *function;
    char name[TBD_SCRIPT_NAME_BYTES] = "";
    size_t start;

    if (!tbd_parse_expect(p, "="))
        return NULL;
    tbd_parse_skip_blanks(p);
    start = p->at;
    function = tbd_parse_name(p, name, sizeof(name)) ? find_function(name) : NULL;
    if (!function) {
        p->at = start;
        tbd_parse_wrong(p,
                        "count() sum(x) avg(x) min(x) max(x) stats(x) hist(x) "
                        "lhist(x, low, high, step)",
                        "a map is filled by a function%s%s", name[0] ? ", which is not " : "",
                        name);
        return NULL;
    }
    if (!tbd_parse_expect(p, "(") || (function->has_value && !tbd_parse_expression(p, 0)))
        return NULL;
    return function;
}

/* @name[keys] = function(value); @name[keys]++ counts */
static bool parse_map(struct tbd_probe_parser *p)
{
    struct tbd_script_map named = { .part_count = 0 };
    struct tbd_probe_map map = { .capacity = 1, .kind = TBD_PROBE_COUNT };
    size_t start = p->at - 1, end; /* of the @ */
    uint32_t index;

    if (!map_name(p, named.name, sizeof(named.name)) || !parse_keys(p, &named, &map.key_bytes))
        return false;
    if (!tbd_parse_take(p, "++")) {
        const struct map_function *function = parse_function_of_map(p);

        if (!function)
            return false;
        map.kind = function->kind;
        if ((map.kind == TBD_PROBE_LHIST && !parse_steps(p, &map)) || !tbd_parse_expect(p, ")"))
            return false;
    }
    if (map.key_bytes)
        map.capacity = map.kind >= TBD_PROBE_HIST ? DEFAULT_HIST : DEFAULT_KEYS;
    end = p->at;
    p->at = start; /* if it is wrong */
    if (!note_map(p, &named, &map, &index))
        return false;
    p->at = end;
    return tbd_parse_emit(p, TBD_PROBE_PUT, 0, 0, 0, index);
}

/* ---- printf ---- */

static char unescape(char c)
{
    return c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
}

/* The text between quotes; the caller frees it. */
static char *parse_string(struct tbd_probe_parser *p)
{
    size_t length = 0;
    char *out;

    if (!tbd_parse_expect(p, "\""))
        return NULL;
    out = malloc(strlen(p->text + p->at) + 1);
    for (; out && p->text[p->at] && p->text[p->at] != '"'; p->at++) {
        if (p->text[p->at] == '\\' && p->text[p->at + 1])
            out[length++] = unescape(p->text[++p->at]);
        else
            out[length++] = p->text[p->at];
    }
    if (out)
        out[length] = '\0';
    if (out && tbd_parse_expect(p, "\""))
        return out;
    free(out);
    return NULL;
}

/* The kind of the next conversion in a format, and where it ends; 0: none follows. */
static char next_conversion(const char **format)
{
    for (; **format; (*format)++) {
        if (**format != '%')
            continue;
        if (*++*format == '%')
            continue;
        *format += strspn(*format, "-+ #0123456789.lh");
        return **format;
    }
    return '\0';
}

static bool agrees(char conversion, const struct tbd_script_part *part)
{
    if (part->kind == TBD_PART_NUMBER)
        return strchr("diuxXoc", conversion) || conversion == 'p';
    return conversion == 's';
}

static bool check_format(struct tbd_probe_parser *p, const struct tbd_script_print *print)
{
    const char *format = print->format;
    uint32_t count = 0;
    char conversion;

    while ((conversion = next_conversion(&format)) != '\0') {
        if (count == print->part_count)
            return tbd_parse_wrong(p, "", "printf has fewer arguments than its format");
        if (!agrees(conversion, &print->parts[count]))
            return tbd_parse_wrong(p, "%d %u %x %p of numbers, %s of str(), comm, ustack",
                                   "%%%c does not fit argument %u of printf", conversion,
                                   count + 1);
        count++;
        format++;
    }
    return count == print->part_count ||
           tbd_parse_wrong(p, "", "printf has more arguments than its format");
}

static bool may_print_more(struct tbd_probe_parser *p)
{
    return p->print < TBD_SCRIPT_MAX_PRINTS ||
           tbd_parse_wrong(p, "", "a script has at most %u printf", TBD_SCRIPT_MAX_PRINTS);
}

/* A record with the number of the printf, and the values; `is_action`: without values. */
static bool parse_print(struct tbd_probe_parser *p, bool is_action, struct tbd_script_print *print)
{
    uint32_t bytes = sizeof(struct tbd_probe_record);

    if (!tbd_parse_expect(p, "(") || !(print->format = parse_string(p)))
        return false;
    if (!is_action && !tbd_parse_emit(p, TBD_PROBE_RECORD, 0, 0, 0, p->print + 1))
        return false;
    while (tbd_parse_take(p, ",")) {
        struct tbd_script_part *part = &print->parts[print->part_count];

        if (is_action || print->part_count == TBD_SCRIPT_MAX_PARTS)
            return tbd_parse_wrong(p, "", "too many arguments");
        if (!tbd_parse_value(p, 0, part) || !append_part(p, part, 0, false))
            return false;
        print->part_count++;
        bytes += round_up(part);
    }
    if (bytes > TBD_PROBE_RECORD_MAX)
        return tbd_parse_wrong(p, "", "these arguments take too many bytes");
    return check_format(p, print) && tbd_parse_expect(p, ")") &&
           (is_action || tbd_parse_emit(p, TBD_PROBE_SEND, 0, 0, 0, 0));
}

/* printf("...", value, ...).  A clause that is read again has its own already. */
static bool parse_printf(struct tbd_probe_parser *p, bool is_action, uint32_t *out)
{
    struct tbd_probe_script *script = p->script;
    struct tbd_script_print print = { 0 };
    bool done;

    if (!may_print_more(p))
        return false;
    done = parse_print(p, is_action, &print);
    *out = p->print++;
    if (p->place || !done) {
        free(print.format);
        return done;
    }
    script->prints[script->print_count++] = print;
    return true;
}

/* ---- triggers ---- */

#define MAX_SECONDS 86400u

/* stop(), record(SECONDS), dump(): a record that says so, then the process stops or the session ends. */
static bool parse_trigger(struct tbd_probe_parser *p, uint32_t kind)
{
    struct tbd_probe_script *script = p->script;
    struct tbd_script_print print = { .trigger = kind,
                                      .parts = { { TBD_PART_NUMBER, 8 }, { TBD_PART_NUMBER, 8 } },
                                      .part_count = 2 };
    uint64_t seconds = 0;

    if (!may_print_more(p))
        return false;
    if (!tbd_parse_expect(p, "("))
        return false;
    tbd_parse_skip_blanks(p);
    if (kind == TBD_TRIGGER_RECORD &&
        (!tbd_parse_number(p, &seconds) || !seconds || seconds > MAX_SECONDS))
        return tbd_parse_wrong(p, "record(5): the next five seconds",
                               "record takes 1 to %u seconds", MAX_SECONDS);
    if (!tbd_parse_expect(p, ")"))
        return false;
    print.seconds = (uint32_t)seconds;
    p->print++;
    if (!p->place)
        script->prints[script->print_count++] = print;
    return tbd_parse_emit(p, TBD_PROBE_RECORD, 0, 0, 0, p->print) &&
           tbd_parse_emit(p, TBD_PROBE_TID, 0, 0, 0, 0) &&
           tbd_parse_emit(p, TBD_PROBE_FIELD, 0, 0, 0, 8) &&
           tbd_parse_emit(p, TBD_PROBE_REG, 0, 0, 0, 16) &&
           tbd_parse_emit(p, TBD_PROBE_FIELD, 0, 0, 0, 8) &&
           tbd_parse_emit(p, TBD_PROBE_SEND, 0, 0, 0, 0) &&
           tbd_parse_emit(p, kind == TBD_TRIGGER_STOP ? TBD_PROBE_PAUSE : TBD_PROBE_EXIT, 0, 0, 0,
                          0);
}

/* ---- statements ---- */

static bool parse_assignment(struct tbd_probe_parser *p)
{
    char name[TBD_SCRIPT_NAME_BYTES];
    uint32_t variable;

    if (!tbd_parse_name(p, name, sizeof(name)))
        return tbd_parse_wrong(p, "", "a name is missing after $");
    if (!tbd_parse_expect(p, "=") || !tbd_parse_expression(p, 0))
        return false;
    variable = tbd_parse_variable(p, name, true);
    return variable < TBD_PROBE_REGISTERS && tbd_parse_emit(p, TBD_PROBE_IMM, variable, 0, 0, 0) &&
           tbd_parse_emit(p, TBD_PROBE_ADD, variable, variable, 0, 0);
}

static bool parse_statement(struct tbd_probe_parser *p)
{
    char name[TBD_SCRIPT_NAME_BYTES];
    uint32_t print;

    if (tbd_parse_take(p, "@"))
        return parse_map(p);
    if (tbd_parse_take(p, "$"))
        return parse_assignment(p);
    if (tbd_parse_name(p, name, sizeof(name))) {
        if (strcmp(name, "printf") == 0)
            return parse_printf(p, false, &print);
        if (strcmp(name, "exit") == 0)
            return tbd_parse_expect(p, "(") && tbd_parse_expect(p, ")") &&
                   tbd_parse_emit(p, TBD_PROBE_EXIT, 0, 0, 0, 0);
        if (strcmp(name, "stop") == 0)
            return parse_trigger(p, TBD_TRIGGER_STOP);
        if (strcmp(name, "record") == 0)
            return parse_trigger(p, TBD_TRIGGER_RECORD);
        if (strcmp(name, "dump") == 0)
            return parse_trigger(p, TBD_TRIGGER_DUMP);
        p->at -= strlen(name);
    }
    return tbd_parse_wrong(
        p,
        "@[KEY] = count(); $x = VALUE; printf(\"...\", VALUE); exit(); stop(); record(5); dump()",
        "a statement is missing");
}

static bool add_action(struct tbd_probe_parser *p, uint32_t kind, uint32_t what)
{
    struct tbd_probe_script *script = p->script;

    if (script->action_count == TBD_SCRIPT_MAX_ACTIONS)
        return tbd_parse_wrong(p, "", "the script is too long");
    script->actions[script->action_count++] = (struct tbd_script_action){ kind, what };
    return true;
}

/* print(@name), clear(@name): maps of clauses before. */
static bool parse_map_action(struct tbd_probe_parser *p, uint32_t kind)
{
    char name[TBD_SCRIPT_NAME_BYTES];
    uint32_t map;

    if (!tbd_parse_expect(p, "(") || !tbd_parse_expect(p, "@") || !map_name(p, name, sizeof(name)))
        return false;
    map = find_map(p->script, name);
    if (map == TBD_PROBE_MAX_MAPS)
        return tbd_parse_wrong(p, "a clause before this one fills it", "there is no map @%s", name);
    return tbd_parse_expect(p, ")") && add_action(p, kind, map);
}

/* What begin, end and interval can do. */
static bool parse_action(struct tbd_probe_parser *p)
{
    char name[TBD_SCRIPT_NAME_BYTES] = "";
    uint32_t print;

    if (tbd_parse_name(p, name, sizeof(name))) {
        if (strcmp(name, "printf") == 0)
            return parse_printf(p, true, &print) && add_action(p, TBD_ACTION_PRINTF, print);
        if (strcmp(name, "print") == 0)
            return parse_map_action(p, TBD_ACTION_PRINT);
        if (strcmp(name, "clear") == 0)
            return parse_map_action(p, TBD_ACTION_CLEAR);
        if (strcmp(name, "exit") == 0)
            return tbd_parse_expect(p, "(") && tbd_parse_expect(p, ")") &&
                   add_action(p, TBD_ACTION_EXIT, 0);
        p->at -= strlen(name);
    }
    return tbd_parse_wrong(p, "printf(\"...\"), print(@x), clear(@x), exit()",
                           "this is not possible in begin, end and interval");
}

/* ---- clauses ---- */

static bool is_own(const struct tbd_where *where)
{
    return where->kind <= TBD_WHERE_INTERVAL;
}

static bool parse_places(struct tbd_probe_parser *p, uint32_t first)
{
    struct tbd_probe_script *script = p->script;

    do {
        struct tbd_where *where;

        if (script->where_count == TBD_SCRIPT_MAX_CLAUSES)
            return tbd_parse_wrong(p, "", "a script has at most %u places", TBD_SCRIPT_MAX_CLAUSES);
        where = &script->where[script->where_count].place;
        if (!tbd_parse_where(p, where))
            return false;
        where->length = p->at - where->at;
        script->where_count++;
        if (is_own(where) != is_own(&script->where[first].place))
            return tbd_parse_wrong(p, "write two clauses", "begin, end and interval stand alone");
    } while (tbd_parse_take(p, ","));
    return true;
}

/* /condition/: if it is not met, the clause's code goes on at its end, which *out_skip will lead to. */
static bool parse_condition(struct tbd_probe_parser *p, uint32_t *out_skip)
{
    *out_skip = TBD_PROBE_MAX_CODE;
    tbd_parse_skip_blanks(p);
    if (p->text[p->at] != '/')
        return true;
    p->at++;
    p->in_condition = true;
    if (!tbd_parse_expression(p, 0) || !tbd_parse_expect(p, "/"))
        return false;
    p->in_condition = false;
    *out_skip = p->script->code_count;
    return tbd_parse_emit(p, TBD_PROBE_SKIP_ZERO, 0, 0, 0, 0);
}

static bool parse_body(struct tbd_probe_parser *p, bool own)
{
    if (!tbd_parse_expect(p, "{"))
        return false;
    while (!tbd_parse_take(p, "}")) {
        if (!(own ? parse_action(p) : parse_statement(p)))
            return false;
        if (!tbd_parse_take(p, ";")) {
            tbd_parse_skip_blanks(p);
            if (p->text[p->at] != '}')
                return tbd_parse_wrong(p, "", "; or } is missing here");
        }
    }
    return true;
}

/* What a clause does: its condition and its statements. */
static bool parse_rest(struct tbd_probe_parser *p, bool own)
{
    struct tbd_probe_script *script = p->script;
    uint32_t skip = TBD_PROBE_MAX_CODE;

    if ((!own && !parse_condition(p, &skip)) || !parse_body(p, own))
        return false;
    if (skip < TBD_PROBE_MAX_CODE)
        script->code[skip].imm = (int32_t)(script->code_count - skip - 1);
    return own || tbd_parse_emit(p, TBD_PROBE_END, 0, 0, 0, 0);
}

static bool parse_clause(struct tbd_probe_parser *p)
{
    struct tbd_probe_script *script = p->script;
    uint32_t first = script->where_count, action = script->action_count;
    struct tbd_script_where clause = { .code = script->code_count,
                                       .first_action = action,
                                       .first_print = script->print_count };

    p->variable_count = p->parentheses = 0;
    p->asks_program = p->asks_arguments = false;
    if (!parse_places(p, first))
        return false;
    clause.body = p->at;
    if (!parse_rest(p, is_own(&script->where[first].place)))
        return false;
    if (p->asks_program) { /* its code comes with its places */
        script->code_count = clause.code;
        if (!tbd_parse_emit(p, TBD_PROBE_END, 0, 0, 0, 0))
            return false;
    }
    clause.asks_program = p->asks_program;
    clause.asks_arguments = p->asks_arguments;
    clause.action_count = script->action_count - action;
    for (uint32_t i = first; i < script->where_count; i++) {
        clause.place = script->where[i].place;
        script->where[i] = clause;
    }
    return true;
}

/* The code from `first` on, if the same stands between `from` and it. */
static uint32_t same_code(const struct tbd_probe_script *script, uint32_t from, uint32_t first)
{
    uint32_t count = script->code_count - first;

    for (uint32_t at = from; at + count <= first; at++) {
        if (memcmp(&script->code[at], &script->code[first], count * sizeof(script->code[0])) == 0)
            return at;
        while (script->code[at].op != TBD_PROBE_END)
            at++;
    }
    return first;
}

bool tbd_script_compile(struct tbd_probe_script *script, uint32_t index,
                        const struct tbd_script_place *place, uint32_t *out_code,
                        struct tbd_query_error *error)
{
    struct tbd_script_where *where = &script->where[index];
    struct tbd_probe_parser p = { .text = script->text,
                                  .at = where->body,
                                  .script = script,
                                  .error = error,
                                  .place = place,
                                  .print = where->first_print };
    uint32_t first = script->code_count;

    if (!parse_rest(&p, false)) {
        script->code_count = first;
        return false;
    }
    if (!where->is_made) {
        where->is_made = true;
        where->code = first;
    }
    *out_code = same_code(script, where->code, first);
    if (*out_code != first)
        script->code_count = first;
    return true;
}

struct tbd_probe_script *tbd_script_parse(const char *text, struct tbd_query_error *error)
{
    struct tbd_probe_parser p = { .text = text, .error = error };

    p.script = calloc(1, sizeof(*p.script));
    if (!p.script) {
        tbd_query_wrong(error, TBD_NOMEM, 0, 0, "no memory");
        return NULL;
    }
    p.script->text = text;
    do {
        if (!parse_clause(&p)) {
            tbd_script_free(p.script);
            return NULL;
        }
        tbd_parse_skip_blanks(&p);
    } while (text[p.at]);
    return p.script;
}

void tbd_script_free(struct tbd_probe_script *script)
{
    for (uint32_t i = 0; script && i < script->print_count; i++)
        free(script->prints[i].format);
    free(script);
}
