// SPDX-License-Identifier: MIT
/* probe_where.c - reads the places of a script's clauses: uprobe:MODULE:FUNCTION, line:FILE:NUMBER ... (probe_parse.h) */
#include "query/probe/probe_parse.h"

#include <stdlib.h>
#include <string.h>

#define NS_PER_SECOND 1000000000ull

/* Up to a colon, a comma, a blank or the clause's body. */
static bool place_word(struct tbd_probe_parser *p, char *out, size_t bytes, const char *what)
{
    size_t length = strcspn(p->text + p->at, ": \t\r\n,{");

    if (!length || length >= bytes)
        return tbd_parse_wrong(p, "uprobe:MODULE:FUNCTION, line:FILE:NUMBER", "%s is missing",
                               what);
    memcpy(out, p->text + p->at, length);
    out[length] = '\0';
    p->at += length;
    return true;
}

static bool place_number(struct tbd_probe_parser *p, uint64_t *out)
{
    return tbd_parse_number(p, out) || tbd_parse_wrong(p, "", "a number is missing");
}

static bool parse_interval(struct tbd_probe_parser *p, struct tbd_where *where)
{
    bool is_ms = tbd_parse_take(p, ":ms:");

    if (!is_ms && !tbd_parse_take(p, ":s:"))
        return tbd_parse_wrong(p, "interval:s:1, interval:ms:100", "the unit is missing");
    if (!place_number(p, &where->number))
        return false;
    if (!where->number || where->number > 1000000)
        return tbd_parse_wrong(p, "", "an interval is 1 to 1000000 long");
    where->number *= is_ms ? NS_PER_SECOND / 1000 : NS_PER_SECOND;
    return true;
}

static bool is_range(struct tbd_probe_parser *p, const struct tbd_where *where)
{
    return where->limit > where->number || tbd_parse_wrong(p, "", "this range is empty");
}

/* The end of a range: FUNCTION+TO, +TO or TO.  uprobe with a range is insn. */
static bool parse_end(struct tbd_probe_parser *p, struct tbd_where *where, const char *text)
{
    const char *plus = strrchr(text, '+');
    size_t length = plus ? (size_t)(plus - text) : 0;
    char *end;

    if (length && (length != strlen(where->name) || memcmp(text, where->name, length) != 0))
        return tbd_parse_wrong(p, "insn:MODULE:FUNCTION+4..FUNCTION+32",
                               "a range ends in the function where it begins");
    text = plus ? plus + 1 : text;
    where->limit = strtoull(text, &end, 0);
    if (end == text || *end || where->kind == TBD_WHERE_RETURNS)
        return tbd_parse_wrong(p, "insn:MODULE:FUNCTION+4..+32", "this is no range");
    where->kind = TBD_WHERE_ALL;
    return is_range(p, where);
}

static bool parse_function(struct tbd_probe_parser *p, struct tbd_where *where)
{
    char *plus, *dots;

    if (!tbd_parse_expect(p, ":") ||
        !place_word(p, where->module, sizeof(where->module), "the module") ||
        !tbd_parse_expect(p, ":"))
        return false;
    for (;;) { /* C++ names have colons */
        size_t used = strlen(where->name);

        if (!place_word(p, where->name + used, sizeof(where->name) - used, "the function"))
            return false;
        used = strlen(where->name);
        if (strncmp(p->text + p->at, "::", 2) != 0 || used + 2 >= sizeof(where->name))
            break;
        strcpy(where->name + used, "::");
        p->at += 2;
    }
    dots = strstr(where->name, "..");
    if (dots)
        *dots = '\0';
    plus = strrchr(where->name, '+');
    if (plus && plus != where->name) {
        where->number = strtoull(plus + 1, NULL, 0);
        *plus = '\0';
    }
    return !dots || parse_end(p, where, dots + 2);
}

/* range:MODULE:FROM-TO */
static bool parse_range(struct tbd_probe_parser *p, struct tbd_where *where)
{
    if (!tbd_parse_expect(p, ":") ||
        !place_word(p, where->module, sizeof(where->module), "the module") ||
        !tbd_parse_expect(p, ":") || !place_number(p, &where->number) ||
        !tbd_parse_expect(p, "-") || !place_number(p, &where->limit))
        return false;
    return is_range(p, where);
}

static bool parse_line(struct tbd_probe_parser *p, struct tbd_where *where)
{
    return tbd_parse_expect(p, ":") &&
           place_word(p, where->name, sizeof(where->name), "the source file") &&
           tbd_parse_expect(p, ":") && place_number(p, &where->number);
}

bool tbd_parse_where(struct tbd_probe_parser *p, struct tbd_where *where)
{
    char kind[TBD_SCRIPT_NAME_BYTES];

    tbd_parse_skip_blanks(p);
    where->at = p->at;
    if (!tbd_parse_name(p, kind, sizeof(kind)))
        return tbd_parse_wrong(p, "uprobe:MODULE:FUNCTION { ... }", "a clause is missing");
    if (strcmp(kind, "begin") == 0 || strcmp(kind, "BEGIN") == 0) {
        where->kind = TBD_WHERE_BEGIN;
        return true;
    }
    if (strcmp(kind, "end") == 0 || strcmp(kind, "END") == 0) {
        where->kind = TBD_WHERE_END;
        return true;
    }
    if (strcmp(kind, "interval") == 0) {
        where->kind = TBD_WHERE_INTERVAL;
        return parse_interval(p, where);
    }
    if (strcmp(kind, "line") == 0) {
        where->kind = TBD_WHERE_LINE;
        return parse_line(p, where);
    }
    if (strcmp(kind, "range") == 0) {
        where->kind = TBD_WHERE_RANGE;
        return parse_range(p, where);
    }
    if (strcmp(kind, "address") == 0) {
        where->kind = TBD_WHERE_ADDRESS;
        return tbd_parse_expect(p, ":") && place_number(p, &where->number);
    }
    where->kind = strcmp(kind, "uprobe") == 0 || strcmp(kind, "u") == 0       ? TBD_WHERE_ENTRY
                  : strcmp(kind, "uretprobe") == 0 || strcmp(kind, "ur") == 0 ? TBD_WHERE_RETURNS
                                                                              : TBD_WHERE_ALL;
    if (where->kind == TBD_WHERE_ALL && strcmp(kind, "insn") != 0) {
        p->at = where->at;
        return tbd_parse_wrong(
            p, "uprobe, uretprobe, insn, range, line, address, begin, end, interval",
            "there are no probes of this kind: %s", kind);
    }
    return parse_function(p, where);
}
