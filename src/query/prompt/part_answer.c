// SPDX-License-Identifier: MIT
/* part_answer.c - see part_answer.h
 *
 * PART_ANSWER-1  Nothing is printed, and no position is remembered, before the answer is known not to depend on windows that are not
 *     counted. (not checked: test_native_parts.py compares answers with those of the counted recording) */
#include "query/prompt/part_answer.h"

#include "query/commands/commands.h"
#include "query/prompt/gdb_words.h"
#include "query/session/part_trace.h"
#include "query/session/position_text.h"
#include "query/session/source/source.h"

#include "format/files/file.h"
#include "format/files/trace_dir.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* If the question is about more than one in MOST_PARTS windows, all are counted. */
#define MOST_PARTS 2u
#define WIDER      4u

/* They are about one position, or look for one that is near. */
static const char *const commands[] = {
    "where",
    "regs",
    "mem",
    "bt",
    "frame",
    "up",
    "down",
    "list",
    "print",
    "x",
    "locals",
    "disas",
    "goto",
    "step",
    "next",
    "finish",
    "stepi",
    "nexti",
    "reverse-step",
    "reverse-next",
    "reverse-finish",
    "reverse-stepi",
    "reverse-nexti",
    "mark",
    "ptype",
    "printf",
    "symbol",
    "line",
    "functions",
    "variables",
    "types",
    "set",
    "help",
};

static bool is_listed(const char *word, size_t bytes)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        if (strlen(commands[i]) == bytes && memcmp(commands[i], word, bytes) == 0)
            return true;
    return false;
}

/* ---- the question ---- */

static char *join(size_t count, char *const *words)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    if (out == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%s%s", i == 0 ? "" : " ", words[i]);
    fclose(out);
    return text;
}

static bool is_of_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static size_t word_length(const char *text)
{
    size_t length = 0;

    while (is_of_word(text[length]))
        length++;
    return length;
}

/* Does it speak of times, which are not known: TIME+K or a clock's where goto begins, or the attribute? */
static bool has_times(const char *text)
{
    bool is_start = false, is_goto = strncmp(text, "goto", 4) == 0;

    for (const char *s = text; *s != '\0'; s++) {
        size_t length = s == text || !is_of_word(s[-1]) ? word_length(s) : 0;

        if (length == 4 && memcmp(s, "time", 4) == 0)
            return true;
        if (length == 0)
            continue;
        if (is_start && isdigit((unsigned char)*s))
            return true;
        is_start = is_goto && (s == text || (length == 4 && memcmp(s, "then", 4) == 0));
    }
    return false;
}

/* Adds the windows that the text names. */
static void take_windows(const char *text, struct tbd_counted_part *part)
{
    for (const char *s = strstr(text, "@w"); s != NULL; s = strstr(s + 1, "@w")) {
        unsigned long number =
            tbd_position_in_window(s) != 0 ? strtoul(s + 2, NULL, 10) : ULONG_MAX;

        if (number < part->dropped || number - part->dropped >= part->windows)
            continue;
        number -= part->dropped;
        if (part->to == 0 || number < part->from)
            part->from = (uint32_t)number;
        if (number >= part->to)
            part->to = (uint32_t)number + 1;
    }
}

/* False: the remembered position is a time. */
static bool take_remembered(struct tbd_counted_part *part)
{
    int home = tbd_dir_open(part->path);
    FILE *file = home < 0 ? NULL : tbd_dir_text(home, "position");
    char text[128] = "";
    bool is_good;

    if (file != NULL && fgets(text, sizeof(text), file) == NULL)
        text[0] = '\0';
    if (file != NULL)
        fclose(file);
    if (home >= 0)
        close(home);
    is_good = text[0] == '\0' || tbd_position_in_window(text) != 0;
    if (is_good)
        take_windows(text, part);
    return is_good;
}

/* The windows to begin with: those that --at (NULL: not given) and the question name, else that of the remembered position, else the
 * last one. */
static bool choose(struct tbd_counted_part *part, const char *at, const char *text)
{
    if (at != NULL && isdigit((unsigned char)at[0]))
        return false;
    if (at != NULL)
        take_windows(at, part);
    take_windows(text, part);
    if (at == NULL && part->to == 0 && !take_remembered(part))
        return false;
    if (part->to == 0) {
        part->from = part->windows - 1;
        part->to = part->windows;
    }
    return true;
}

/* False: there are no more. */
static bool widen(struct tbd_counted_part *part)
{
    uint32_t more = (part->to - part->from) * (WIDER - 1);

    if (part->wants_all || (part->wants_before && part->from == 0) ||
        (part->wants_after && part->to == part->windows))
        return false;
    if (part->wants_before)
        part->from -= more < part->from ? more : part->from;
    if (part->wants_after)
        part->to += more < part->windows - part->to ? more : part->windows - part->to;
    part->wants_before = part->wants_after = false;
    return true;
}

static bool is_small(const struct tbd_counted_part *part)
{
    return part->to - part->from <= part->windows / MOST_PARTS;
}

/* ---- the answer ---- */

struct attempt {
    char *text, *messages; /* owned */
    size_t text_bytes, message_bytes;
    int result;
};

static void keep(struct tbd_session *session)
{
    size_t frame = session->unwritten.frame;
    struct tbd_position at = session->unwritten.position;
    bool has_frame = session->unwritten.has_frame;

    if (tbd_session_keep(session) && has_frame)
        tbd_source_select(session, at, frame);
}

/* Messages go to standard error as soon as the answer counts. */
static int attempt(int (*answer)(void *context, struct tbd_session *session, FILE *out),
                   void *context, struct tbd_session *session, struct attempt *a)
{
    FILE *errors = stderr, *out = open_memstream(&a->text, &a->text_bytes);
    FILE *messages = open_memstream(&a->messages, &a->message_bytes);
    int result = TBD_EXIT_SYSTEM;

    if (out != NULL && messages != NULL) {
        stderr = messages;
        result = answer(context, session, out);
        stderr = errors;
    }
    if (out != NULL)
        fclose(out);
    if (messages != NULL)
        fclose(messages);
    return result;
}

static bool is_settled(const struct tbd_counted_part *part)
{
    return !part->wants_before && !part->wants_after && !part->wants_all;
}

static void print_attempt(const struct attempt *a, FILE *out)
{
    fwrite(a->text, 1, a->text_bytes, out);
    fflush(out);
    fwrite(a->messages, 1, a->message_bytes, stderr);
}

static void free_attempt(struct attempt *a)
{
    free(a->text);
    free(a->messages);
}

/* The trace in parts has failed, which says nothing about the recording. */
static bool has_failed(int result)
{
    return result == TBD_EXIT_TRACE || result == TBD_EXIT_SYSTEM;
}

/* ---- one question ---- */

/* One round.  False: all windows have to be counted. */
static bool ask(const struct tbd_part_asking *asking, struct tbd_counted_part *part,
                int *out_result)
{
    struct tbd_session session = *asking->session;
    struct attempt a = { 0 };
    bool is_good = tbd_session_open_part(&session, part) == TBD_OK;

    if (is_good) {
        a.result = attempt(asking->answer, asking->context, &session, &a);
        is_good = !has_failed(a.result);
    }
    if (is_good && is_settled(part)) {
        keep(&session);
        print_attempt(&a, asking->out);
        *out_result = a.result;
    }
    tbd_session_close(&session);
    tbd_part_close(part);
    free_attempt(&a);
    return is_good || !is_settled(part);
}

static bool ask_parts(const char *path, const struct tbd_part_asking *asking, const char *text,
                      int *out_result)
{
    struct tbd_counted_part part;

    if (has_times(text) || !tbd_part_find(&part, path) || !choose(&part, asking->at, text))
        return false;
    while (is_small(&part) && ask(asking, &part, out_result)) {
        if (is_settled(&part))
            return true;
        if (!widen(&part))
            return false;
    }
    return false;
}

bool tbd_part_ask(const char *path, const struct tbd_part_asking *asking, int *out_result)
{
    char *text = join(asking->count, asking->words);
    bool is_answered = text != NULL && is_listed(text, strcspn(text, " /")) &&
                       ask_parts(path, asking, text, out_result);

    free(text);
    return is_answered;
}

/* ---- one question after the other ---- */

bool tbd_part_start(struct tbd_session *session, struct tbd_counted_part *part, const char *path,
                    const char *at)
{
    return tbd_part_find(part, path) && choose(part, at, "") && is_small(part) &&
           tbd_session_open_part(session, part) == TBD_OK;
}

/* As a command of ours; the caller frees it. */
static char *ours(const char *line)
{
    char *translated = tbd_gdb_translate(line);

    return translated != NULL ? translated : strdup(line);
}

static bool is_of_parts(const char *line)
{
    char *text = ours(line);
    bool is_one = text != NULL && !has_times(text) &&
                  (is_listed(text, strcspn(text, " /")) || !tbd_line_is_known(line));

    free(text);
    return is_one;
}

/* The same session, with more windows; with all of them if that is not possible. */
static enum tbd_status go_on_with_more(struct tbd_session *session, bool may_be_parts)
{
    struct tbd_counted_part *part = session->part, wider = *part;
    enum tbd_status status = TBD_NOTFOUND;

    if (may_be_parts && widen(&wider) && is_small(&wider))
        status = tbd_session_widen(session, &wider);
    if (status != TBD_OK && session->part == part)
        status = tbd_session_widen(session, NULL);
    if (status != TBD_OK)
        return status;
    tbd_part_close(part);
    if (session->part != NULL) {
        *part = wider;
        session->part = part;
    }
    return TBD_OK;
}

struct typed_line {
    const struct tbd_line_options *options;
    const char *text;
};

static int answer_line(void *context, struct tbd_session *session, FILE *out)
{
    const struct typed_line *line = context;
    struct tbd_line_options options = *line->options;

    options.out = out;
    return (int)tbd_line_run(session, &options, line->text);
}

/* False: it has to be asked again; the session is as it was. */
static bool try_line(struct tbd_session *session, struct typed_line *line,
                     enum tbd_exit *out_result)
{
    struct tbd_counted_part *part = session->part;
    struct tbd_session before = *session;
    struct attempt a = { 0 };
    bool is_good;

    part->wants_before = part->wants_after = part->wants_all = false;
    a.result = attempt(answer_line, line, session, &a);
    is_good = is_settled(part) && !has_failed(a.result);
    if (is_good) {
        keep(session);
        session->is_private = true;
        print_attempt(&a, line->options->out);
        *out_result = (enum tbd_exit)a.result;
    } else {
        session->at = before.at;
        session->unwritten = before.unwritten;
        session->thread = before.thread;
    }
    free_attempt(&a);
    return is_good;
}

enum tbd_exit tbd_part_line(struct tbd_session *session, const struct tbd_line_options *options,
                            const char *text)
{
    struct typed_line line = { options, text };
    enum tbd_exit result;

    while (session->part != NULL) {
        bool may_be_parts = is_of_parts(text);
        enum tbd_status status;

        if (may_be_parts && try_line(session, &line, &result))
            return result;
        status = go_on_with_more(session, may_be_parts && !is_settled(session->part));
        if (status != TBD_OK)
            return tbd_command_fail(&(struct tbd_command_run){ .session = session }, status);
    }
    return tbd_line_run(session, options, text);
}
