// SPDX-License-Identifier: MIT
/* redirected.c - see redirected.h */
#include "query/prompt/redirected.h"

#include "query/session/source/source_place.h"

#include "base/safe_stream.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME_BYTES 256
#define PATH_BYTES 4096

/* ---- what the words mean ---- */

static bool is_program(const char *name)
{
    const char *path = getenv("PATH");
    char whole[PATH_BYTES];

    if (strchr(name, '/') != NULL)
        return access(name, X_OK) == 0;
    for (; path != NULL && *path != '\0'; path += strcspn(path, ":"), path += *path == ':') {
        int length = (int)strcspn(path, ":");

        if (snprintf(whole, sizeof(whole), "%.*s/%s", length, path, name) < PATH_BYTES &&
            access(whole, X_OK) == 0)
            return true;
    }
    return false;
}

/* Does the name mean something where one stands? */
static bool has_meaning(struct tbd_session *session, const char *name)
{
    struct tbd_query_error error = { .status = TBD_OK };
    struct tbd_source_place place;
    struct tbd_data data;

    if (tbd_source_evaluate(session, tbd_session_current(session), name, 0, strlen(name), &place,
                            &data, &error) != TBD_OK)
        return false;
    tbd_source_place_close(&place);
    return true;
}

/* The first word, up to a character that no name has. */
static bool take_name(const char *text, const char *ends, char *out)
{
    size_t length = strcspn(text, ends);

    if (length == 0 || length >= NAME_BYTES)
        return false;
    memcpy(out, text, length);
    out[length] = '\0';
    return true;
}

/* Has the question an expression, in which > compares? */
static bool has_expression(const char *line, size_t length)
{
    char name[NAME_BYTES];
    const struct tbd_command *command;
    char *text = strndup(line, length);
    bool has;

    if (text == NULL || !take_name(text, " \t/", name)) {
        free(text);
        return true;
    }
    command = tbd_command_find(name);
    has = strstr(text, " where ") != NULL || strstr(text, " if ") != NULL ||
          strstr(text, " of ") != NULL ||
          (command != NULL && strstr(command->synopsis, "EXPRESSION") != NULL) ||
          strcmp(name, "p") == 0;
    free(text);
    return has;
}

static bool is_filter(const char *name)
{
    static const char *const filters[] = { "cat", "head", "less", "more", "sort",
                                           "tac", "tail", "uniq", "wc" };

    for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++) {
        if (strcmp(name, filters[i]) == 0)
            return true;
    }
    return false;
}

/* `line[0, length)` is the question before. */
static bool is_shell_command(struct tbd_session *session, const char *line, size_t length,
                             const char *text)
{
    char name[NAME_BYTES];
    const char *next;

    if (!take_name(text, " \t|&;<>()", name) || isdigit((unsigned char)*name) ||
        !is_program(name) || has_meaning(session, name))
        return false;
    next = text + strlen(name) + strspn(text + strlen(name), " \t");
    return !has_expression(line, length) || is_filter(name) || isalnum((unsigned char)*next) ||
           (*next != '\0' && strchr("-'\"/.", *next) != NULL);
}

static bool is_file(const char *line, size_t length, const char *text)
{
    if (*text == '\0' || isdigit((unsigned char)*text) || strpbrk(text, " \t") != NULL ||
        *text == '=')
        return false;
    return !has_expression(line, length) || *text == '/' || strncmp(text, "./", 2) == 0 ||
           strncmp(text, "../", 3) == 0 || strncmp(text, "~/", 2) == 0;
}

/* ---- the line ---- */

/* The end of what stands between quotes or brackets at `at`. */
static const char *skip_quoted(const char *at)
{
    const char *end = strchr(at + 1, *at);

    return end == NULL ? at + strlen(at) - 1 : end;
}

static bool take(struct tbd_redirect *out, enum tbd_redirect_kind kind, const char *line,
                 size_t length, const char *target)
{
    while (length > 0 && isspace((unsigned char)line[length - 1]))
        length--;
    out->kind = kind;
    out->line = strndup(line, length);
    out->target = target == NULL ? NULL : strdup(target);
    return out->line != NULL && (target == NULL || out->target != NULL);
}

/* The sign of a redirection that `at` is; *target is what follows. */
static enum tbd_redirect_kind kind_at(struct tbd_session *session, const char *line, const char *at,
                                      const char **target)
{
    bool is_double = at[1] == at[0];

    *target = at + 1 + is_double;
    *target += strspn(*target, " \t");
    if (at == line || !isspace((unsigned char)at[-1]))
        return TBD_REDIRECT_NONE;
    if (*at == '|')
        return !is_double && is_shell_command(session, line, (size_t)(at - line), *target)
                   ? TBD_REDIRECT_PIPE
                   : TBD_REDIRECT_NONE;
    if (!is_file(line, (size_t)(at - line), *target))
        return TBD_REDIRECT_NONE;
    return is_double ? TBD_REDIRECT_ADD : TBD_REDIRECT_FILE;
}

/* "pipe COMMAND | SHELL" or "| COMMAND | SHELL"; the command, or NULL. */
static const char *after_pipe(const char *line)
{
    if (*line == '|')
        return line + 1 + strspn(line + 1, " \t");
    if (strncmp(line, "pipe", 4) == 0 && isspace((unsigned char)line[4]))
        return line + 4 + strspn(line + 4, " \t");
    return NULL;
}

bool tbd_redirect_read(struct tbd_session *session, const char *line, struct tbd_redirect *out)
{
    const char *piped = after_pipe(line), *target, *bar;
    enum tbd_redirect_kind kind;
    int depth = 0;

    *out = (struct tbd_redirect){ .kind = TBD_REDIRECT_NONE };
    bar = piped == NULL ? NULL : strchr(piped, '|');
    if (bar != NULL)
        return take(out, TBD_REDIRECT_PIPE, piped, (size_t)(bar - piped),
                    bar + 1 + strspn(bar + 1, " \t"));
    for (const char *at = line; *at != '\0'; at++) {
        if (*at == '"' || *at == '\'')
            at = skip_quoted(at);
        depth += (*at == '(' || *at == '[') - (*at == ')' || *at == ']');
        if (depth > 0 || (*at != '|' && *at != '>'))
            continue;
        kind = kind_at(session, line, at, &target);
        if (kind != TBD_REDIRECT_NONE)
            return take(out, kind, line, (size_t)(at - line), target);
        at += at[1] == at[0];
    }
    return take(out, TBD_REDIRECT_NONE, line, strlen(line), NULL);
}

void tbd_redirect_free(struct tbd_redirect *redirect)
{
    free(redirect->line);
    free(redirect->target);
}

/* A shell command ends when its reader does, as it would in a shell: we ignore SIGPIPE. */
static FILE *open_pipe(const char *command)
{
    FILE *file;

    signal(SIGPIPE, SIG_DFL);
    fflush(stdout);
    /* NOLINTNEXTLINE(cert-env33-c): what is after | is a command for the shell */
    file = popen(command, "w");
    signal(SIGPIPE, SIG_IGN);
    return file;
}

FILE *tbd_redirect_open(const struct tbd_redirect *redirect)
{
    const char *home = getenv("HOME"), *target = redirect->target;
    char path[PATH_BYTES];
    FILE *file;

    if (redirect->kind == TBD_REDIRECT_PIPE) {
        file = open_pipe(target);
    } else {
        if (target[0] == '~' && target[1] == '/' && home != NULL)
            snprintf(path, sizeof(path), "%s%s", home, target + 1);
        else
            snprintf(path, sizeof(path), "%s", target);
        file = fopen(path, redirect->kind == TBD_REDIRECT_ADD ? "ae" : "we");
    }
    if (file == NULL)
        fprintf(stderr, "tbdq: %s: %s\n", tbd_shown(target), strerror(errno));
    return file;
}

void tbd_redirect_close(const struct tbd_redirect *redirect, FILE *file)
{
    if (redirect->kind == TBD_REDIRECT_PIPE)
        (void)pclose(file);
    else if (fclose(file) != 0)
        fprintf(stderr, "tbdq: %s: %s\n", tbd_shown(redirect->target), strerror(errno));
}
