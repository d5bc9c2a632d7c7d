// SPDX-License-Identifier: MIT
/* script.c - see script.h
 *
 * A line is expanded (${NAME}, @bookmark), then carried out.  The output of a command is kept until
 * the next one, for `expect`.
 *
 * SCRIPT-1  Every `if` block inside a branch that is not taken is `skipped`, too; only if, else and
 *     end are looked at there. */
#include "query/prompt/script.h"

#include "base/assert.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX     64
#define VARIABLES_MAX 256

struct variable {
    char *name, *value; /* owned */
};

struct script {
    struct tbd_session *session;
    const struct tbd_line_options *options;
    struct variable variables[VARIABLES_MAX];
    size_t variable_count;
    char *answer;            /* of the last command; owned */
    bool found;              /* did it find something? */
    bool has_failed_trace;   /* is its answer incomplete, or could the trace not answer? */
    bool taken[DEPTH_MAX];   /* by `if` block: a branch of it was or is taken */
    bool skipped[DEPTH_MAX]; /* by `if` block: the current branch is not taken */
    int depth;
};

static const char *value_of(const struct script *script, const char *name, size_t bytes)
{
    for (size_t i = 0; i < script->variable_count; i++) {
        if (strlen(script->variables[i].name) == bytes &&
            memcmp(script->variables[i].name, name, bytes) == 0)
            return script->variables[i].value;
    }
    return NULL;
}

/* Takes `value`. */
static bool set(struct script *script, const char *name, char *value)
{
    size_t at = 0;

    while (at < script->variable_count && strcmp(script->variables[at].name, name) != 0)
        at++;
    if (value == NULL || at == VARIABLES_MAX) {
        free(value);
        return false;
    }
    if (at == script->variable_count) {
        script->variables[at].name = strdup(name);
        script->variables[at].value = NULL;
        script->variable_count++;
    }
    free(script->variables[at].value);
    script->variables[at].value = value;
    return script->variables[at].name != NULL;
}

/* The line with each ${NAME} replaced; NULL with a message if a variable has no value. */
static char *expand(const struct script *script, const char *line)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    bool good = out != NULL;

    for (const char *s = line; good && *s != '\0' && *s != '\n'; s++) {
        size_t length = s[0] == '$' && s[1] == '{' ? strcspn(s + 2, "}\n") : 0;
        const char *value;

        if (length == 0 || s[2 + length] != '}') {
            fputc(*s, out);
            continue;
        }
        value = value_of(script, s + 2, length);
        good = value != NULL;
        if (good)
            fputs(value, out);
        else
            fprintf(stderr, "tbdq: there is no variable '%.*s'\nhint: let %.*s = EXPRESSION\n",
                    (int)length, s + 2, (int)length, s + 2);
        s += length + 2;
    }
    if (out != NULL)
        fclose(out);
    if (good)
        return text;
    free(text);
    return NULL;
}

/* ---- statements; each returns false if the script ends here ---- */

/* let NAME = EXPRESSION */
static bool run_let(struct script *script, char *rest)
{
    size_t length = strcspn(rest, " =");
    char *equals = strchr(rest, '=');
    char *value = NULL;
    bool truth;

    if (length == 0 || equals == NULL || (size_t)(equals - rest) < length ||
        strspn(rest + length, " ") + length != (size_t)(equals - rest)) {
        fprintf(stderr, "tbdq: expected: let NAME = EXPRESSION\n");
        return false;
    }
    rest[length] = '\0';
    if (tbd_command_evaluate(script->session, equals + 1, &truth, &value) != TBD_EXIT_FOUND) {
        free(value);
        return false;
    }
    return set(script, rest, value);
}

/* expect TEXT, perhaps in quotes */
static bool run_expect(const struct script *script, char *rest)
{
    size_t length = strlen(rest);

    if (length >= 2 && rest[0] == '"' && rest[length - 1] == '"') {
        rest[length - 1] = '\0';
        rest++;
    }
    if (script->answer != NULL && strstr(script->answer, rest) != NULL)
        return true;
    fprintf(stderr, "tbdq: expected \"%s\" in the answer:\n%s", rest,
            script->answer == NULL ? "" : script->answer);
    return false;
}

static bool run_if(struct script *script, const char *rest)
{
    bool truth = false;

    if (script->depth + 1 == DEPTH_MAX) {
        fprintf(stderr, "tbdq: too many ifs inside each other\n");
        return false;
    }
    if (strcmp(rest, "found") == 0)
        truth = script->found;
    else if (strcmp(rest, "not found") == 0)
        truth = !script->found;
    else if (tbd_command_evaluate(script->session, rest, &truth, NULL) != TBD_EXIT_FOUND)
        return false;
    script->depth++;
    script->taken[script->depth] = truth;
    script->skipped[script->depth] = !truth;
    return true;
}

static bool run_else_or_end(struct script *script, bool is_end)
{
    if (script->depth == 0) {
        fprintf(stderr, "tbdq: there is no if that this belongs to\n");
        return false;
    }
    script->skipped[script->depth] = script->taken[script->depth];
    script->depth -= is_end;
    return true;
}

/* Runs a command and keeps its answer; "- COMMAND" may find nothing. */
static bool run_command(struct script *script, const char *line)
{
    struct tbd_line_options options = *script->options;
    bool may_fail = *line == '-';
    size_t bytes = 0;
    enum tbd_exit result;

    free(script->answer);
    script->answer = NULL;
    options.out = open_memstream(&script->answer, &bytes);
    if (options.out == NULL)
        return false;
    result = tbd_line_run(script->session, &options, line + may_fail);
    fclose(options.out);
    fwrite(script->answer, 1, bytes, script->options->out);
    script->found = result == TBD_EXIT_FOUND;
    script->has_failed_trace = result == TBD_EXIT_TRACE;
    return script->found || (may_fail && result == TBD_EXIT_NOT_FOUND);
}

/* The rest of the line after the word; NULL if the line begins with another word. */
static char *after_word(char *line, const char *word)
{
    size_t length = strlen(word);

    if (strncmp(line, word, length) != 0 || (line[length] != '\0' && line[length] != ' '))
        return NULL;
    line += length;
    return line + strspn(line, " ");
}

static bool run_statement(struct script *script, char *line)
{
    char *rest;

    if ((rest = after_word(line, "let")) != NULL)
        return run_let(script, rest);
    if ((rest = after_word(line, "expect")) != NULL)
        return run_expect(script, rest);
    if ((rest = after_word(line, "echo")) != NULL)
        return fprintf(script->options->out, "%s\n", rest) > 0;
    if ((rest = after_word(line, "if")) != NULL)
        return run_if(script, rest);
    return run_command(script, line);
}

/* Keeps SCRIPT-1. */
static bool run_line(struct script *script, const char *line)
{
    bool is_end = strcmp(line, "end") == 0;
    bool skips = script->depth != 0 && script->skipped[script->depth];
    bool good;
    char *text;

    if (is_end || strcmp(line, "else") == 0)
        return run_else_or_end(script, is_end);
    if (skips && strncmp(line, "if ", 3) == 0 && script->depth + 1 < DEPTH_MAX) {
        script->depth++;
        script->taken[script->depth] = script->skipped[script->depth] = true;
    }
    TBD_INVARIANT("SCRIPT-1", !skips || script->skipped[script->depth]);
    if (skips || *line == '\0' || *line == '#')
        return true;
    text = expand(script, line);
    good = text != NULL && run_statement(script, text);
    free(text);
    return good;
}

enum tbd_exit tbd_script_run(struct tbd_session *session, const struct tbd_line_options *options,
                             FILE *file, const char *name)
{
    struct script script = { .session = session, .options = options };
    char *line = NULL;
    size_t capacity = 0;
    unsigned number = 0;
    bool good = true;

    while (good && getline(&line, &capacity, file) >= 0) {
        char *start = line + strspn(line, " \t");
        size_t length = strcspn(start, "\r\n");

        while (length != 0 && isspace((unsigned char)start[length - 1]))
            length--;
        start[length] = '\0';
        number++;
        good = run_line(&script, start);
        fflush(options->out);
        if (!good)
            fprintf(stderr, "tbdq: %s:%u: failed: %s\n", name, number, start);
    }
    if (good && script.depth != 0) {
        fprintf(stderr, "tbdq: %s: an if has no end\n", name);
        good = false;
    }
    for (size_t i = 0; i < script.variable_count; i++) {
        free(script.variables[i].name);
        free(script.variables[i].value);
    }
    free(script.answer);
    free(line);
    if (!good && script.has_failed_trace)
        return TBD_EXIT_TRACE;
    return good ? TBD_EXIT_FOUND : TBD_EXIT_NOT_FOUND;
}

void tbd_script_help(FILE *out)
{
    fprintf(
        out,
        "tbdq -f FILE carries out the commands in a file, one on a line.  Without -f FILE and\n"
        "without a command it reads them from standard input, if that is no terminal.\n\n"
        "  # ...               a comment\n"
        "  let NAME = EXPR     a variable, from a C expression at the current position;\n"
        "                      ${NAME} in any line is its value\n"
        "  assert EXPR         fails unless the C expression is true at the current position\n"
        "  expect TEXT         fails unless the last answer contains the text\n"
        "  if EXPR ... else ... end\n"
        "  if found, if not found   did the last command find something?\n"
        "  - COMMAND           may find nothing; any other command that does fails\n"
        "  mark NAME           a bookmark: @NAME is this position in any command\n"
        "  echo TEXT\n\n"
        "The first line that fails ends the script: it is printed, and the exit status is 1, or 3\n"
        "if its answer may be incomplete, because windows of the trace had to be left out.\n");
}
