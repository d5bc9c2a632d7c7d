// SPDX-License-Identifier: MIT
/* part_answer.c - see part_answer.h
 *
 * PART_ANSWER-1  Nothing is printed, and no position is remembered, before the answer is known not to depend on windows that are not
 *     counted. (not checked: test_native_end compares answers with those of the counted recording) */
#include "query/prompt/part_answer.h"

#include "query/commands/commands.h"
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

        if (number >= part->windows)
            continue;
        if (part->to == 0 || number < part->from)
            part->from = (uint32_t)number;
        if (number >= part->to)
            part->to = (uint32_t)number + 1;
    }
}

/* False: the remembered position is a time. */
static bool take_remembered(const char *path, struct tbd_counted_part *part)
{
    int home = tbd_dir_open(path);
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

/* The windows to begin with. */
static bool choose(const char *path, const struct tbd_part_asking *asking, const char *text,
                   struct tbd_counted_part *part)
{
    bool has_at = asking->at != NULL;

    if (has_at && isdigit((unsigned char)asking->at[0]))
        return false;
    if (has_at)
        take_windows(asking->at, part);
    take_windows(text, part);
    if (!has_at && part->to == 0 && !take_remembered(path, part))
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
static int attempt(const struct tbd_part_asking *asking, struct tbd_session *session,
                   struct attempt *a)
{
    FILE *errors = stderr, *out = open_memstream(&a->text, &a->text_bytes);
    FILE *messages = open_memstream(&a->messages, &a->message_bytes);
    int result = TBD_EXIT_SYSTEM;

    if (out != NULL && messages != NULL) {
        stderr = messages;
        result = asking->answer(asking->context, session, out);
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

/* One round.  False: the trace in parts has failed, or the answer is not to be had from it. */
static bool ask(const char *path, const struct tbd_part_asking *asking,
                struct tbd_counted_part *part, int *out_result)
{
    struct tbd_session session = *asking->session;
    struct attempt a = { 0 };
    bool is_good = tbd_session_open_part(&session, path, part) == TBD_OK;

    if (is_good) {
        a.result = attempt(asking, &session, &a);
        is_good = a.result != TBD_EXIT_TRACE && a.result != TBD_EXIT_SYSTEM;
    }
    if (is_good && is_settled(part)) {
        keep(&session);
        fwrite(a.text, 1, a.text_bytes, asking->out);
        fflush(asking->out);
        fwrite(a.messages, 1, a.message_bytes, stderr);
        *out_result = a.result;
    }
    tbd_session_close(&session);
    tbd_part_close(part);
    free(a.text);
    free(a.messages);
    return is_good || !is_settled(part);
}

static bool ask_parts(const char *path, const struct tbd_part_asking *asking, const char *text,
                      int *out_result)
{
    struct tbd_counted_part part = { .home = -1 };
    char real[4096];

    if (has_times(text) ||
        tbd_part_is_possible(path, &part.windows, real, sizeof(real)) != TBD_OK ||
        !choose(real, asking, text, &part))
        return false;
    while (is_small(&part) && ask(real, asking, &part, out_result)) {
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
