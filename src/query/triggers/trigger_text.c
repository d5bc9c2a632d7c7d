// SPDX-License-Identifier: MIT
/* trigger_text.c - see trigger_text.h */
#include "query/triggers/trigger_text.h"

#include "query/session/signal_info.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    const char *text;
    size_t at, end; /* of the wish */
    struct tbd_query_error *error;
};

static bool wrong(struct reader *r, size_t at, const char *hint, const char *message)
{
    tbd_query_wrong(r->error, TBD_SYNTAX, at, r->end - at, "%s", message);
    snprintf(r->error->hint, sizeof(r->error->hint), "%s", hint);
    return false;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

static void skip_blanks(struct reader *r)
{
    while (r->at < r->end && is_blank(r->text[r->at]))
        r->at++;
}

/* Takes the word, if it comes next as one of its own. */
static bool take_word(struct reader *r, const char *word)
{
    size_t length = strlen(word);

    skip_blanks(r);
    if (r->end - r->at < length || strncmp(r->text + r->at, word, length) != 0 ||
        (r->at + length < r->end && !is_blank(r->text[r->at + length])))
        return false;
    r->at += length;
    return true;
}

/* The end of the wish: a semicolon outside quotes. */
static size_t end_of(const char *text, size_t at)
{
    bool quoted = false;

    for (; text[at] && (quoted || text[at] != ';'); at++) {
        if (quoted && text[at] == '\\' && text[at + 1])
            at++;
        else if (text[at] == '"')
            quoted = !quoted;
    }
    return at;
}

static bool take_number(struct reader *r, uint64_t *out)
{
    char *end;

    skip_blanks(r);
    if (r->at == r->end || !isdigit((unsigned char)r->text[r->at]))
        return false;
    *out = strtoull(r->text + r->at, &end, 0);
    r->at = (size_t)(end - r->text);
    return r->at <= r->end;
}

/* ---- parts ---- */

static bool read_signal(struct reader *r, struct tbd_trigger_wish *out)
{
    size_t at, length;
    uint64_t number = 0;

    skip_blanks(r);
    at = r->at;
    if (!take_number(r, &number)) {
        while (r->at < r->end && !is_blank(r->text[r->at]))
            r->at++;
        length = r->at - at;
        for (uint64_t signo = 1; signo < 65 && !number; signo++) {
            char buffer[32];
            const char *name = tbd_signal_name(signo, buffer, sizeof(buffer));
            const char *brief = strncmp(name, "SIG", 3) == 0 ? name + 3 : name;

            if ((strlen(name) == length && strncmp(r->text + at, name, length) == 0) ||
                (strlen(brief) == length && strncmp(r->text + at, brief, length) == 0))
                number = signo;
        }
    }
    if (number < 1 || number > 64)
        return wrong(r, at, "signal USR1, signal SIGHUP, signal 34", "there is no such signal");
    out->signals = 1ull << (number - 1);
    return true;
}

static bool copy_name(struct reader *r, size_t from, size_t to, char *out)
{
    if (to == from || to - from >= TBD_WHERE_BYTES)
        return wrong(r, from, "main, libc!free, work.c:12, 0x401136", "a place is missing here");
    memcpy(out, r->text + from, to - from);
    out[to - from] = '\0';
    return true;
}

static size_t last_of(const struct reader *r, size_t from, size_t to, char c)
{
    while (to > from && r->text[to - 1] != c)
        to--;
    return to > from ? to - 1 : to;
}

static bool is_number(const struct reader *r, size_t from, size_t to)
{
    size_t at = from;

    while (at < to && isdigit((unsigned char)r->text[at]))
        at++;
    return at == to && from < to;
}

/* FUNCTION+OFFSET: returns where the function's name ends. */
static size_t read_offset(const struct reader *r, size_t at, size_t end, uint64_t *out)
{
    size_t plus = last_of(r, at, end, '+');
    char *after;
    uint64_t offset;

    if (plus <= at || plus + 1 >= end || r->text[plus] != '+' ||
        !isdigit((unsigned char)r->text[plus + 1]))
        return end;
    offset = strtoull(r->text + plus + 1, &after, 0);
    if (after != r->text + end)
        return end;
    *out = offset;
    return plus;
}

static bool read_place(struct reader *r, size_t end, struct tbd_trigger_wish *out)
{
    struct tbd_where *where = &out->where;
    size_t at = r->at, colon = last_of(r, at, end, ':'), mark = last_of(r, at, end, '!');

    *where = (struct tbd_where){ .kind = TBD_WHERE_ENTRY, .at = at, .length = end - at };
    r->at = end;
    if (end - at > 2 && strncmp(r->text + at, "0x", 2) == 0) {
        where->kind = TBD_WHERE_ADDRESS;
        where->number = strtoull(r->text + at, NULL, 16);
        return true;
    }
    if (r->text[colon] == ':' && colon > at && is_number(r, colon + 1, end)) {
        where->kind = TBD_WHERE_LINE;
        where->number = strtoull(r->text + colon + 1, NULL, 10);
        return copy_name(r, at, colon, where->name);
    }
    out->has_module = mark < end && r->text[mark] == '!';
    end = read_offset(r, out->has_module ? mark : at, end, &where->number);
    if (out->has_module)
        return copy_name(r, at, mark, where->module) && copy_name(r, mark + 1, end, where->name);
    strcpy(where->module, "*");
    return copy_name(r, at, end, where->name);
}

static void skip_word(struct reader *r)
{
    while (r->at < r->end && !is_blank(r->text[r->at]))
        r->at++;
}

/* Where the place ends: before " if ", " times ", " with " and " records ". */
static size_t end_of_place(struct reader *r)
{
    struct reader probe = *r;
    size_t end = r->at;

    while (probe.at < r->end) {
        if (take_word(&probe, "if") || take_word(&probe, "times") || take_word(&probe, "with") ||
            take_word(&probe, "records"))
            return end;
        skip_word(&probe);
        end = probe.at;
        skip_blanks(&probe);
    }
    return end;
}

/* Words up to an `if`; none: both are where they would begin. */
static void take_words(struct reader *r, size_t *out_start, size_t *out_end)
{
    struct reader probe = *r;

    skip_blanks(&probe);
    *out_start = *out_end = probe.at;
    while (probe.at < r->end && !take_word(&probe, "if")) {
        skip_word(&probe);
        *out_end = r->at = probe.at;
        skip_blanks(&probe);
    }
}

/* PART PART ... */
static bool read_parts(struct reader *r, struct tbd_trigger_wish *out)
{
    take_words(r, &out->parts, &out->parts_end);
    return out->parts_end > out->parts ||
           wrong(r, r->at, "with libz.so.1 rings", "names of parts are missing");
}

/* [EXPRESSION] */
static void read_value(struct reader *r, struct tbd_trigger_wish *out)
{
    out->records = true;
    take_words(r, &out->value, &out->value_end);
}

/* loads of RANGE: a function may be called loads, too. */
static bool take_loads(struct reader *r)
{
    struct reader probe = *r;

    if (!take_word(&probe, "loads") || !take_word(&probe, "of"))
        return false;
    r->at = probe.at;
    return true;
}

static bool read_range(struct reader *r, struct tbd_trigger_wish *out)
{
    out->records = true;
    out->times = 1;
    take_words(r, &out->range, &out->range_end);
    skip_blanks(r);
    return (out->range_end > out->range && r->at == r->end) ||
           wrong(r, r->at, "loads of 0x4c000-0x4d000, loads of settings, loads of heap",
                 "memory, and nothing after it, is expected");
}

static bool read_wish(struct reader *r, struct tbd_trigger_wish *out)
{
    uint64_t times = 1;

    skip_blanks(r);
    *out = (struct tbd_trigger_wish){ .at = r->at, .end = r->end, .condition = r->end };
    if (take_loads(r))
        return read_range(r, out);
    if (!(take_word(r, "signal") ? read_signal(r, out) : read_place(r, end_of_place(r), out)))
        return false;
    if (!out->signals && take_word(r, "records"))
        read_value(r, out);
    else if (take_word(r, "times") &&
             (!take_number(r, &times) || times < 1 || times > TBD_TRIGGER_TIMES))
        return wrong(r, r->at, "times 3", "a number from 1 to 1000 is expected");
    out->times = (uint32_t)times;
    if (!out->records && take_word(r, "with") && !read_parts(r, out))
        return false;
    if (!out->signals && take_word(r, "if")) {
        skip_blanks(r);
        out->condition = r->at;
        if (r->at == r->end)
            return wrong(r, r->at, "work.c:12 if count > 3", "a condition is missing");
        r->at = r->end;
    }
    skip_blanks(r);
    return r->at == r->end ||
           wrong(r, r->at,
                 "PLACE [times N] [with PART ...] [if CONDITION]; PLACE records [EXPRESSION] [if "
                 "CONDITION]; loads of RANGE; signal NAME [times N] [with PART ...]",
                 "this is not understood");
}

bool tbd_trigger_read(const char *text, struct tbd_trigger_wishes *out,
                      struct tbd_query_error *error)
{
    struct reader r = { .text = text, .error = error };

    out->count = 0;
    for (;;) {
        r.end = end_of(text, r.at);
        skip_blanks(&r);
        if (r.at < r.end) {
            if (out->count == TBD_TRIGGER_MAX)
                return wrong(&r, r.at, "", "there are too many triggers: 32 at most");
            if (!read_wish(&r, &out->all[out->count]))
                return false;
            out->count++;
        }
        if (!text[r.end])
            return true;
        r.at = r.end + 1;
    }
}
