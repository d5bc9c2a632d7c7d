// SPDX-License-Identifier: MIT
/* probe_program.c - expressions over the program's own variables in a script: n->count, buf[i], *p, (struct node *)arg0
 *
 * What begins with a name that the language does not have, a cast to one of the program's types, or has a member
 * or an index, is C: its text goes to tbdq's reader of conditions (query/condition).  It means something else at
 * each place, so a clause with such an expression becomes code once for each of its places; when the script is
 * read, only its syntax is checked.  Nothing is executed here, so text can do no more than be wrong. */
#include "query/places/place_code.h"
#include "query/probe/probe_parse.h"

#include <ctype.h>
#include <string.h>

#define MAX_PREFIXES 64

static bool begins_name(char c)
{
    return isalpha((unsigned char)c) || c == '_';
}

static size_t skip_blanks(const char *text, size_t at)
{
    return at + strspn(text + at, " \t\r\n");
}

static size_t skip_name(const char *text, size_t at)
{
    while (begins_name(text[at]) || isdigit((unsigned char)text[at]) ||
           (text[at] == ':' && text[at + 1] == ':' && begins_name(text[at + 2])))
        at += text[at] == ':' ? 2 : 1;
    return at;
}

/* Behind the bracket that closes the one at `at`; `at` if none does. */
static size_t skip_brackets(const char *text, size_t at)
{
    size_t start = at;
    int depth = 0;

    for (; text[at]; at++) {
        if (text[at] == '(' || text[at] == '[')
            depth++;
        else if ((text[at] == ')' || text[at] == ']') && --depth == 0)
            return at + 1;
    }
    return start;
}

static bool is_postfix(const char *text, size_t at)
{
    return text[at] == '[' || (text[at] == '-' && text[at + 1] == '>') ||
           (text[at] == '.' && begins_name(text[at + 1]));
}

static size_t skip_postfixes(const char *text, size_t at)
{
    for (;;) {
        size_t next = skip_blanks(text, at), end;

        if (!is_postfix(text, next))
            return at;
        if (text[next] == '[') {
            end = skip_brackets(text, next);
        } else {
            end = skip_blanks(text, next + (text[next] == '-' ? 2 : 1));
            end = skip_name(text, end);
        }
        if (end <= next)
            return at;
        at = end;
    }
}

/* "(struct node *)", "(uint32_t)": words, perhaps stars, and then something that a cast can stand before. */
static bool is_cast(const char *text, size_t at, size_t end)
{
    bool has_star = false;
    char next;

    for (size_t i = at + 1; i + 1 < end; i++) {
        if (!isalnum((unsigned char)text[i]) && strchr("_ \t*:<>,", text[i]) == NULL)
            return false;
        has_star |= text[i] == '*';
    }
    if (!begins_name(text[skip_blanks(text, at + 1)]))
        return false;
    next = text[skip_blanks(text, end)];
    return begins_name(next) || isdigit((unsigned char)next) || next == '(' ||
           (has_star && (next == '*' || next == '&'));
}

/* Does a name of the program's stand between two brackets? */
static bool has_program_name(const struct tbd_probe_parser *p, size_t at, size_t end)
{
    while (at < end) {
        size_t after = skip_name(p->text, at);
        struct tbd_probe_parser ahead = *p;

        ahead.at = at;
        if (!begins_name(p->text[at])) {
            at = isdigit((unsigned char)p->text[at]) ? after : at + 1;
        } else if (tbd_parse_is_word(p->text + at, after - at) || tbd_parse_is_type_name(&ahead)) {
            at = after;
        } else {
            return true;
        }
    }
    return false;
}

/* Where an expression of the program ends that begins at `at`; `at`: it is one of the language. */
static size_t expression_end(const struct tbd_probe_parser *p, size_t at)
{
    const char *text = p->text;
    size_t start = at, end;
    bool is_program = false;

    for (int prefixes = 0; prefixes < MAX_PREFIXES; prefixes++) {
        at = skip_blanks(text, at);
        if (text[at] == '*' || (text[at] == '&' && text[at + 1] != '&')) {
            is_program |= text[at] == '&';
            at++;
        } else if (text[at] == '(') {
            end = skip_brackets(text, at);
            if (end == at)
                return start;
            if (!is_cast(text, at, end)) {
                is_program |= is_postfix(text, skip_blanks(text, end)) ||
                              (prefixes && has_program_name(p, at, end));
                return is_program ? skip_postfixes(text, end) : start;
            }
            if (tbd_parse_is_type(p, at)) /* what it stands before is looked at on its own */
                return start;
            is_program = true;
            at = end;
        } else {
            break;
        }
    }
    end = begins_name(text[at]) ? skip_name(text, at)
                                : at + strspn(text + at, "0123456789abcdefxABCDEFX");
    if (end == at)
        return start;
    if (begins_name(text[at]) &&
        (!tbd_parse_is_word(text + at, end - at) || is_postfix(text, skip_blanks(text, end))))
        is_program = true;
    return is_program ? skip_postfixes(text, end) : start;
}

/* Is one of its names arg0 to arg9? */
static bool names_argument(const char *text, size_t at, size_t end)
{
    while (at < end) {
        size_t after = skip_name(text, at);

        if (after == at + 4 && strncmp(text + at, "arg", 3) == 0 &&
            isdigit((unsigned char)text[at + 3]))
            return true;
        at = after > at ? after : at + 1;
    }
    return false;
}

static bool check_syntax(struct tbd_probe_parser *p, size_t end)
{
    struct tbd_expr_source source = {
        .text = p->text, .from = p->at, .to = end, .type = TBD_EVENT_FUNC_ENTER
    };
    struct tbd_expr *expr = NULL;
    bool done = tbd_expr_parse_source(&source, &expr, p->error) == TBD_OK;

    tbd_expr_free(expr);
    return done;
}

static bool compile(struct tbd_probe_parser *p, size_t end, uint32_t d)
{
    const struct tbd_script_place *place = p->place;
    struct tbd_place_code code = { .all = p->script->code,
                                   .count = p->script->code_count,
                                   .capacity = TBD_PROBE_MAX_CODE,
                                   .registers = TBD_PARSE_TEMPORARIES };
    struct tbd_expr *expr =
        tbd_place_expression(place->process, p->text, p->at, end, place->is_entry, p->error);
    bool done = expr && tbd_place_value(place->process, expr, place->address, place->is_entry, d,
                                        &code, p->error) == TBD_OK;

    tbd_expr_free(expr);
    p->script->code_count = code.count;
    return done;
}

bool tbd_parse_is_program(const struct tbd_probe_parser *p)
{
    size_t at = skip_blanks(p->text, p->at);

    return expression_end(p, at) > at;
}

bool tbd_parse_program(struct tbd_probe_parser *p, uint32_t d)
{
    size_t end;

    p->at = skip_blanks(p->text, p->at);
    end = expression_end(p, p->at);
    if (p->text[skip_blanks(p->text, end)] == '(')
        return tbd_parse_wrong(
            p, "str(x), ustack(n) and reg(\"ax\") are; the program's are not called",
            "%.*s is no function of the language", (int)(end - p->at), p->text + p->at);
    p->asks_program = true;
    p->asks_arguments |= names_argument(p->text, p->at, end);
    if (!(p->place ? compile(p, end, d) : check_syntax(p, end)))
        return false;
    p->at = end;
    return true;
}
