// SPDX-License-Identifier: MIT
/* complete.c - see complete.h
 *
 * What stands before the word at the cursor decides: the command, the place in `goto`, an expression
 * whose members are wanted.  Otherwise the word is completed by names that can stand anywhere. */
#include "query/prompt/complete_names.h"

#include "query/commands/bookmarks.h"
#include "hooks/table/syscalls.h"
#include "base/array.h"
#include "base/escape.h"
#include "query/condition/field_names.h"

#include <ctype.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define SYSCALLS_MAX 1024 /* numbers that may have a name */

void tbd_completer_add(struct tbd_completer *c, const char *word)
{
    struct tbd_completions *out = c->out;

    if (!tbd_escape_is_plain(TBD_ESCAPE_FIELD, word, strlen(word)))
        return; /* it holds control characters, which the terminal obeys or does not show */
    if (out->count >= TBD_COMPLETIONS_MAX || strncmp(word, c->word, strlen(c->word)) != 0 ||
        !tbd_array_grow(&out->words, out->count, &out->capacity, sizeof(*out->words)))
        return;
    out->words[out->count] = strdup(word);
    out->count += out->words[out->count] != NULL;
}

static void add_all(struct tbd_completer *c, const char *const *words)
{
    for (; *words != NULL; words++)
        tbd_completer_add(c, *words);
}

static int compare_words(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static void tidy(struct tbd_completions *out)
{
    size_t used = 0;

    if (out->count == 0)
        return;
    qsort(out->words, out->count, sizeof(*out->words), compare_words);
    for (size_t i = 0; i < out->count; i++) {
        if (used != 0 && strcmp(out->words[used - 1], out->words[i]) == 0)
            free(out->words[i]);
        else
            out->words[used++] = out->words[i];
    }
    out->count = used;
}

/* ---- words of the language ---- */

static void add_commands(struct tbd_completer *c)
{
    for (const struct tbd_command *command = tbd_commands; command->name != NULL; command++)
        tbd_completer_add(c, command->name);
    tbd_completer_add(c, "help");
}

static void add_types(struct tbd_completer *c)
{
    for (unsigned i = TBD_EVENT_FUNC_ENTER; i < TBD_EVENT_TYPE_COUNT; i++)
        tbd_completer_add(c, tbd_event_type_name((enum tbd_event_type)i));
}

static void add_fields(struct tbd_completer *c)
{
    static const char *const words[] = { "and", "or", "not", "func", "module", "stack", NULL };

    for (const struct tbd_field_name *row = tbd_field_names; row->name != NULL; row++)
        tbd_completer_add(c, row->name);
    add_all(c, words);
}

/* ---- the line ---- */

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == ':' || c == '$' || c == '@';
}

/* Where the word before the cursor begins.  A command's name, the first word, may have hyphens: the end of
 * `reverse-finish` is no command of its own. */
static size_t word_start(const char *line, size_t length)
{
    size_t from = length, first = strspn(line, " ");

    while (from > 0 && is_word(line[from - 1]))
        from--;
    for (size_t at = first; at < length && (is_word(line[at]) || line[at] == '-'); at++) {
        if (at + 1 == length)
            return first;
    }
    return from;
}

/* Words before the one that is completed; the first of them in `first`. */
static size_t words_before(const struct tbd_completer *c, char *first)
{
    size_t count = 0, at = 0, length;

    while (at < c->out->from) {
        while (at < c->out->from && c->line[at] == ' ')
            at++;
        length = strcspn(c->line + at, " ");
        if (at + length > c->out->from)
            length = c->out->from - at;
        if (length != 0 && count++ == 0 && length < TBD_COMPLETER_WORD) {
            memcpy(first, c->line + at, length);
            first[length] = '\0';
        }
        at += length;
    }
    return count;
}

static bool has_word(const struct tbd_completer *c, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = c->line; (at = strstr(at, word)) != NULL && at < c->line + c->out->from;
         at++) {
        if ((at == c->line || at[-1] == ' ') && at[length] == ' ')
            return true;
    }
    return false;
}

/* What commands take besides names of the program.  A row is about the words after `after`; NULL:
 * the first word. */
static const struct {
    const char *command, *after;
    const char *words[16];
} arguments[] = {
    { "set", NULL, { "print" } },
    { "set", "print", { "pretty", "object", "static-members" } },
    { "info",
      NULL,
      { "args", "breakpoints", "frame", "functions", "line", "locals", "registers", "sharedlibrary",
        "symbol", "threads", "types", "variables" } },
    { "bt", NULL, { "full", "thread", "threads" } },
    { "thread", NULL, { "apply" } },
    { "where", NULL, { "thread" } },
    { "regs", NULL, { "thread" } },
    { "count", "by", { "func", "outer", "line", "thread", "value" } },
    { "verify", NULL, { "-j", "--quick" } },
    { "lower", NULL, { "all" } },
    { "raise", NULL, { "all" } },
    { "merge", NULL, { "all" } },
    { "help", NULL, { "context", "scripts", "gdb" } },
};

static bool is_after(const struct tbd_completer *c, const char *word, size_t before)
{
    size_t end = c->out->from, length;

    if (word == NULL)
        return before == 1;
    while (end > 0 && c->line[end - 1] == ' ')
        end--;
    length = strlen(word);
    return end > length && c->line[end - length - 1] == ' ' &&
           memcmp(c->line + end - length, word, length) == 0;
}

/* True: nothing else can stand there. */
static bool complete_by_table(struct tbd_completer *c, const char *command, size_t before)
{
    bool found = false;

    for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++) {
        if (strcmp(arguments[i].command, command) != 0 || !is_after(c, arguments[i].after, before))
            continue;
        add_all(c, arguments[i].words);
        found = true;
    }
    return found;
}

/* What a condition compares a system call or signal with. */
static bool complete_value(struct tbd_completer *c)
{
    size_t at = c->out->from;

    at -= at > 0 && c->line[at - 1] == '"'; /* names may be quoted */
    if (tbd_field_is_compared(c->line, at, "syscall")) {
        for (uint64_t number = 0; number < SYSCALLS_MAX; number++) {
            const char *name = tbd_syscall_name(number);

            if (name != NULL)
                tbd_completer_add(c, name);
        }
        return true;
    }
    if (!tbd_field_is_compared(c->line, at, "signal"))
        return false;
    for (int number = 1; number < SIGRTMIN; number++) {
        const char *name = sigabbrev_np(number);
        char text[32];

        if (name != NULL && snprintf(text, sizeof(text), "SIG%s", name) > 0)
            tbd_completer_add(c, text);
    }
    return true;
}

static void add_bookmark(void *context, const char *name)
{
    char text[TBD_COMPLETER_WORD];

    if (snprintf(text, sizeof(text), "@%s", name) < (int)sizeof(text))
        tbd_completer_add(context, text);
}

static void complete_goto(struct tbd_completer *c, size_t before)
{
    static const char *const from[] = { "current", "first", "last", NULL };
    static const char *const directions[] = { "forward", "backward", NULL };
    static const char *const tails[] = { "where", "of", NULL };

    if (before == 1)
        add_all(c, from);
    else if (before == 2)
        add_all(c, directions);
    else if (before == 3)
        add_types(c);
    else if (before >= 5 && !has_word(c, "where"))
        add_all(c, tails);
}

/* Is a place FILE:LINE there? */
static bool takes_files(const struct tbd_completer *c, const char *command)
{
    static const char *const places[] = { "list", "lines", "line" };

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        if (strcmp(command, places[i]) == 0)
            return true;
    }
    return strcmp(command, "info") == 0 && has_word(c, "line");
}

static void complete_argument(struct tbd_completer *c, const char *command, size_t before)
{
    bool is_search = strcmp(command, "goto") == 0;
    bool is_all = strcmp(command, "all") == 0 || strcmp(command, "count") == 0;
    bool in_condition = has_word(c, "where"), is_file;

    if (c->word[0] == '@' && c->session != NULL) {
        tbd_bookmarks_each(c->session, add_bookmark, c);
        return;
    }
    if (strcmp(command, "help") == 0)
        add_commands(c);
    if (complete_by_table(c, command, before) || (in_condition && complete_value(c)))
        return;
    if (!in_condition && !has_word(c, "of")) {
        if (is_search)
            complete_goto(c, before);
        if (is_all && before == 1)
            add_types(c);
        if (is_search || is_all)
            return;
    }
    is_file = c->out->from >= 5 && strncmp(c->line + c->out->from - 5, "src=<", 5) == 0;
    if (c->session == NULL)
        return;
    if (is_file || takes_files(c, command))
        tbd_completer_files(c);
    if (is_file)
        return;
    tbd_completer_source_names(c);
    if (tbd_completer_member_of(c) != 0)
        return;
    if (in_condition)
        add_fields(c);
    tbd_completer_symbols(c);
}

void tbd_complete(struct tbd_session *session, const char *line, size_t length,
                  struct tbd_completions *out)
{
    struct tbd_completer c = { .session = session, .line = line, .length = length, .out = out };
    char first[TBD_COMPLETER_WORD] = "";
    size_t before;

    *out = (struct tbd_completions){ .from = word_start(line, length) };
    if (length - out->from >= TBD_COMPLETER_WORD)
        return;
    memcpy(c.word, line + out->from, length - out->from);
    before = words_before(&c, first);
    if (before == 0)
        add_commands(&c);
    else
        complete_argument(&c, first, before);
    tidy(out);
}

void tbd_completions_free(struct tbd_completions *completions)
{
    for (size_t i = 0; i < completions->count; i++)
        free(completions->words[i]);
    free(completions->words);
    *completions = (struct tbd_completions){ .words = NULL };
}
