// SPDX-License-Identifier: MIT
/* command_line.c - see command_line.h */
#include "query/prompt/command_line.h"

#include "query/dumps/dump_commands.h"
#include "query/prompt/answers.h"
#include "query/commands/bookmarks.h"
#include "query/prompt/gdb_words.h"
#include "query/output/shard.h"
#include "query/prompt/script.h"
#include "query/text/shortage.h"

#include "base/safe_stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Command and arguments as one line, from which questions are parsed; errors point into it. */
static char *join(size_t count, char *const *words)
{
    size_t bytes = 1;
    char *text, *at;

    for (size_t i = 0; i < count; i++)
        bytes += strlen(words[i]) + 1;
    text = at = calloc(bytes, 1);
    for (size_t i = 0; text != NULL && i < count; i++) {
        at = stpcpy(at, words[i]);
        if (i + 1 < count)
            *at++ = ' ';
    }
    return text;
}

size_t tbd_line_split(char *line, char **out, size_t max)
{
    char *rest = NULL;
    size_t count = 0;

    for (char *word = strtok_r(line, " \t\n", &rest); word != NULL && count < max;
         word = strtok_r(NULL, " \t\n", &rest))
        out[count++] = word;
    return count;
}

void tbd_line_list(FILE *out)
{
    size_t width = strlen("help");

    for (const struct tbd_command *command = tbd_commands; command->name != NULL; command++)
        width = strlen(command->name) > width ? strlen(command->name) : width;
    for (const struct tbd_command *command = tbd_commands; command->name != NULL; command++)
        fprintf(out, "  %-*s  %s\n", (int)width, command->name, command->summary);
    fprintf(out, "  %-*s  %s\n", (int)width, "help",
            "help COMMAND or COMMAND --help, help context for conditions, help scripts, help gdb");
}

enum tbd_exit tbd_line_help(const char *name, FILE *out)
{
    const struct tbd_command *command = name == NULL ? NULL : tbd_command_find(name);

    if (name == NULL || strcmp(name, "help") == 0) {
        tbd_line_list(out);
        return TBD_EXIT_FOUND;
    }
    if (strcmp(name, "context") == 0) { /* a command, too */
        tbd_command_help_context(out);
        fputc('\n', out);
    }
    if (strcmp(name, "scripts") == 0) {
        tbd_script_help(out);
        return TBD_EXIT_FOUND;
    }
    if (command == NULL)
        return tbd_line_unknown(name);
    fprintf(out, "tbdq %s%s%s\n\n%s.\n", command->name, *command->synopsis == '\0' ? "" : " ",
            command->synopsis, command->summary);
    if (*command->help != '\0')
        fprintf(out, "%s\n", command->help);
    fprintf(out, "\nexample: %s\n", command->example);
    if (strcmp(name, "gdb") == 0) {
        fputc('\n', out);
        tbd_gdb_help(out);
    }
    return TBD_EXIT_FOUND;
}

/* How many letters must be inserted, deleted, changed or swapped with a neighbour to make one short
 * word from the other. */
static size_t distance(const char *a, const char *b)
{
    enum { MOST = 24 };
    size_t rows[3][MOST + 1], m = strlen(a), n = strlen(b);

    if (m > MOST || n > MOST)
        return MOST;
    for (size_t j = 0; j <= n; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= m; i++) {
        size_t *now = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];

        now[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t best = last[j - 1] + (a[i - 1] != b[j - 1]);

            best = last[j] + 1 < best ? last[j] + 1 : best;
            best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
    }
    return rows[m % 3][n];
}

bool tbd_line_is_known(const char *line)
{
    char name[32];

    snprintf(name, sizeof(name), "%.*s", (int)strcspn(line, " \t\n/"), line);
    return tbd_command_find(name) != NULL || tbd_gdb_knows(line);
}

enum tbd_exit tbd_line_unknown(const char *name)
{
    const char *nearest = NULL, *hint = tbd_gdb_hint(name);
    size_t best = 3; /* a word at a larger distance is no help */

    for (const struct tbd_command *command = tbd_commands; command->name != NULL; command++) {
        size_t found = distance(name, command->name);

        if (found < best && found < strlen(command->name)) {
            best = found;
            nearest = command->name;
        }
    }
    fprintf(stderr, "tbdq: there is no command '%s'\n", name);
    if (hint != NULL)
        fprintf(stderr, "hint: %s\n", hint);
    else if (nearest != NULL)
        fprintf(stderr, "hint: `%s` is one; `help` lists all\n", nearest);
    else
        fprintf(stderr, "hint: `tbdq help` lists all\n");
    return TBD_EXIT_USAGE;
}

/* ---- running ---- */

/* What has been printed may lack something; a command that has failed has said so itself. */
static enum tbd_exit tell_shortage(enum tbd_exit result)
{
    if (!tbd_shortage_seen() || result > TBD_EXIT_NOT_FOUND)
        return result;
    fprintf(stderr, "tbdq: %s: the answer may lack something\n", tbd_status_text(TBD_NOMEM));
    return TBD_EXIT_SYSTEM;
}

static enum tbd_exit refuse_for_dump(const struct tbd_command *command)
{
    fprintf(stderr,
            "tbdq: %s: a crash dump has only the state at its end, and what ran last: see `path`\n"
            "hint: `tbd record` keeps the whole run\n",
            command->name);
    return TBD_EXIT_TRACE;
}

static enum tbd_exit refuse_to_write(const struct tbd_command *command)
{
    fprintf(stderr,
            "tbdq: %s: it would change a trace or write a file, which is refused here\n"
            "hint: the shell command `tbdq %s` does it\n",
            command->name, command->name);
    return TBD_EXIT_USAGE;
}

/* `text` begins with the command's name. */
static enum tbd_exit run_text(struct tbd_session *session, const struct tbd_line_options *options,
                              const char *text, size_t count, char *const *words)
{
    const struct tbd_command *command = tbd_command_find(words[0]);
    size_t name = strlen(words[0]);
    struct tbd_command_run run = { .session = session,
                                   .trace = session->trace == NULL ? NULL : session->info->path,
                                   .text = text,
                                   .arguments = name + strspn(text + name, " \t\n"),
                                   .argc = (unsigned)count - 1,
                                   .argv = words + 1,
                                   .out = options->out,
                                   .quiet = options->quiet,
                                   .explain = options->explain,
                                   .numbers = options->numbers };
    enum tbd_exit result;

    if (strcmp(words[0], "help") == 0)
        return tbd_line_help(count > 1 ? words[1] : NULL, options->out);
    if (count == 2 && strcmp(words[1], "--help") == 0)
        return tbd_line_help(words[0], options->out);
    if (command == NULL)
        return tbd_line_unknown(words[0]);
    if (command->run == NULL)
        return tbd_command_usage(&run, "it is a command of the shell, not of the prompt");
    if (options->reads && command->writes)
        return refuse_to_write(command);
    if (tbd_shard_is_on(session) && !tbd_command_takes_shards(command))
        return tbd_command_usage(&run,
                                 "--shard is for goto, all, stores, lines, syscalls, signals, "
                                 "count, calls, log, history and heap");
    if (session->trace != NULL && session->info->is_dump) {
        const struct tbd_dump_command *of_ring = tbd_dump_command_find(&run, words[0]);
        enum tbd_status status = tbd_dump_begin(session);

        if (status != TBD_OK)
            return tbd_command_fail(&run, status);
        if (of_ring != NULL)
            return of_ring->run(&run);
        if (!tbd_command_is_of_dumps(command))
            return refuse_for_dump(command);
    }
    session->stats = (struct tbd_session_stats){ 0 };
    tbd_left_out_clear(&session->left_out);
    result = tell_shortage(tbd_command_tell_left_out(&run, tbd_answers_run(&run, command)));
    if (run.names_thread)
        session->thread = run.thread_before;
    return result;
}

/* Runs a line of gdb's after its translation. */
static enum tbd_exit run_ours(struct tbd_session *session, const struct tbd_line_options *options,
                              const char *line)
{
    char *words[TBD_LINE_MAX_WORDS + 1] = { NULL }, *copy = strdup(line);
    size_t count = copy == NULL ? 0 : tbd_line_split(copy, words, TBD_LINE_MAX_WORDS);
    enum tbd_exit result =
        count == 0 ? tbd_command_no_memory() : run_text(session, options, line, count, words);

    free(copy);
    return result;
}

static enum tbd_exit run_any(struct tbd_session *session, const struct tbd_line_options *options,
                             const char *text, size_t count, char *const *words)
{
    char *ours = tbd_gdb_translate(text);
    enum tbd_exit result = ours != NULL ? run_ours(session, options, ours)
                                        : run_text(session, options, text, count, words);

    free(ours);
    return result;
}

static enum tbd_exit fail(struct tbd_session *session, enum tbd_status status)
{
    struct tbd_command_run run = { .session = session };

    return status == TBD_NOMEM ? tbd_command_no_memory() : tbd_command_fail(&run, status);
}

enum tbd_exit tbd_words_run(struct tbd_session *session, const struct tbd_line_options *options,
                            size_t count, char *const *words)
{
    char **expanded = calloc(count + 1, sizeof(*expanded));
    enum tbd_status status = expanded == NULL ? TBD_NOMEM : TBD_OK;
    char *text = NULL;
    enum tbd_exit result;
    size_t good = 0;

    for (; status == TBD_OK && good < count; good += status == TBD_OK)
        status = tbd_bookmarks_expand(session, words[good], &expanded[good]);
    if (status == TBD_OK && (text = join(count, expanded)) == NULL)
        status = TBD_NOMEM;
    result =
        status != TBD_OK ? fail(session, status) : run_any(session, options, text, count, expanded);
    for (size_t i = 0; i < good; i++)
        free(expanded[i]);
    free(expanded);
    free(text);
    return result;
}

/* The line without blanks at its ends. */
static char *copy_trimmed(const char *line)
{
    size_t length;

    line += strspn(line, " \t\n");
    length = strlen(line);
    while (length > 0 && strchr(" \t\n", line[length - 1]) != NULL)
        length--;
    return strndup(line, length);
}

enum tbd_exit tbd_line_run(struct tbd_session *session, const struct tbd_line_options *options,
                           const char *line)
{
    char *words[TBD_LINE_MAX_WORDS + 1] = { NULL };
    char *trimmed = copy_trimmed(line);
    char *text = NULL;
    enum tbd_status status =
        trimmed == NULL ? TBD_NOMEM : tbd_bookmarks_expand(session, trimmed, &text);
    char *copy = text == NULL ? NULL : strdup(text);
    enum tbd_exit result = status != TBD_OK ? fail(session, status)
                           : copy == NULL   ? tbd_command_no_memory()
                                            : TBD_EXIT_FOUND;
    size_t count = copy == NULL ? 0 : tbd_line_split(copy, words, TBD_LINE_MAX_WORDS);

    if (count != 0)
        result = run_any(session, options, text, count, words);
    free(copy);
    free(text);
    free(trimmed);
    return result;
}
