// SPDX-License-Identifier: MIT
/* dap_record.c - see dap_record.h
 *
 * `tbd record` of the same installation becomes the program, with an empty standard input. */
#include "query/dap/dap_record.h"

#include "query/output/output.h"
#include "query/text/user_interrupt.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS_MAX 4096u

extern char **environ;

/* A list of strings that grows; `is_full`: one was left out. */
struct words {
    char *all[WORDS_MAX + 1]; /* owned; ends with NULL */
    size_t count;
    bool is_full;
};

static void add_word(struct words *words, const char *text)
{
    char *copy = words->count == WORDS_MAX ? NULL : strdup(text);

    words->is_full |= copy == NULL;
    if (copy != NULL)
        words->all[words->count++] = copy;
}

static void add_words(struct words *words, const json_t *list)
{
    const json_t *word;
    size_t i;

    json_array_foreach(list, i, word) if (json_is_string(word))
        add_word(words, json_string_value(word));
}

static void free_words(struct words *words)
{
    if (words == NULL)
        return;
    for (size_t i = 0; i < words->count; i++)
        free(words->all[i]);
    free(words);
}

/* `tbd` beside this program. */
static bool find_tbd(char out[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", out, PATH_MAX - 1);
    char *slash;

    if (length <= 0)
        return false;
    out[length] = '\0';
    slash = strrchr(out, '/');
    if (slash == NULL || slash + 5 > out + PATH_MAX)
        return false;
    strcpy(slash + 1, "tbd");
    return access(out, X_OK) == 0;
}

/* NULL without memory. */
static struct words *command_of(const json_t *arguments, const char *tbd)
{
    struct words *words = calloc(1, sizeof(*words));
    const json_t *directory = json_object_get(arguments, "cwd");

    if (words == NULL)
        return NULL;
    if (json_is_string(directory)) {
        add_word(words, "/usr/bin/env");
        add_word(words, "-C");
        add_word(words, json_string_value(directory));
    }
    add_word(words, tbd);
    add_word(words, "record");
    add_words(words, json_object_get(arguments, "recordOptions"));
    add_word(words, "--");
    add_word(words, tbd_dap_text(arguments, "program"));
    add_words(words, json_object_get(arguments, "args"));
    return words;
}

static bool is_set(const json_t *env, const char *variable)
{
    char name[256];

    snprintf(name, sizeof(name), "%.*s", (int)strcspn(variable, "="), variable);
    return json_object_get(env, name) != NULL;
}

/* This process's environment with the client's changes; null removes a variable. */
static struct words *environment_of(const json_t *arguments)
{
    json_t *env = json_object_get(arguments, "env");
    struct words *words = calloc(1, sizeof(*words));
    const char *name;
    json_t *value;
    char *text;

    if (words == NULL)
        return NULL;
    for (char **at = environ; *at != NULL; at++)
        if (!is_set(env, *at))
            add_word(words, *at);
    json_object_foreach(env, name, value)
    {
        if (json_is_string(value) &&
            asprintf(&text, "%s=%s", name, json_string_value(value)) >= 0) {
            add_word(words, text);
            free(text);
        }
    }
    return words;
}

/* ---- while it runs ---- */

struct child {
    pid_t pid;
    int out[2], err[2]; /* pipes: [0] is read here; -1: closed */
    int status;
};

/* Passes on what there is; closes a pipe at its end. */
static void pass_on(struct tbd_dap *dap, int *fd, const char *category)
{
    char text[4097];
    ssize_t got = *fd < 0 ? 0 : read(*fd, text, sizeof(text) - 1);

    if (got > 0) {
        text[got] = '\0';
        tbd_dap_print(dap, category, text);
    } else if (*fd >= 0 && (got == 0 || (errno != EAGAIN && errno != EINTR))) {
        close(*fd);
        *fd = -1;
    }
}

/* Until the program has ended; what it has printed by then is passed on. */
static void follow(struct tbd_dap *dap, struct child *child)
{
    bool has_ended = false, was_told = false;
    int ready;

    do {
        struct pollfd wanted[] = { { .fd = child->out[0], .events = POLLIN },
                                   { .fd = child->err[0], .events = POLLIN } };

        ready = poll(wanted, 2, has_ended ? 0 : 50);
        if (ready > 0 && wanted[0].revents != 0)
            pass_on(dap, &child->out[0], "stdout");
        if (ready > 0 && wanted[1].revents != 0)
            pass_on(dap, &child->err[0], "stderr");
        if (!has_ended && tbd_is_interrupted() && !was_told) {
            kill(child->pid, SIGTERM);
            was_told = true;
            tbd_interrupt_clear(); /* the second one is sent with force */
        } else if (!has_ended && tbd_is_interrupted()) {
            kill(child->pid, SIGKILL);
        }
        if (!has_ended)
            has_ended = waitpid(child->pid, &child->status, WNOHANG) == child->pid;
    } while (!has_ended || ready > 0);
}

static bool open_pipe(int out[2])
{
    if (pipe2(out, O_CLOEXEC) != 0)
        return false;
    return fcntl(out[0], F_SETFL, O_NONBLOCK) == 0;
}

static void close_pipe(int fds[2])
{
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

static bool start(struct child *child, const struct words *command, const struct words *environment)
{
    posix_spawn_file_actions_t actions;
    bool good;

    if (posix_spawn_file_actions_init(&actions) != 0)
        return false;
    good = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0) == 0 &&
           posix_spawn_file_actions_adddup2(&actions, child->out[1], 1) == 0 &&
           posix_spawn_file_actions_adddup2(&actions, child->err[1], 2) == 0 &&
           posix_spawn(&child->pid, command->all[0], &actions, NULL, command->all,
                       environment->all) == 0;
    posix_spawn_file_actions_destroy(&actions);
    return good;
}

/* The folder in which `tbd record` makes the trace's folder. */
static bool find_root(const json_t *arguments, char out[PATH_MAX])
{
    const json_t *option;
    const char *given = NULL;
    size_t i;

    json_array_foreach(json_object_get(arguments, "recordOptions"), i,
                       option) if (json_is_string(option) &&
                                   strncmp(json_string_value(option), "--dir=", 6) == 0) given =
        json_string_value(option) + 6;
    if (given == NULL)
        return tbd_trace_root(out, PATH_MAX) == TBD_OK;
    snprintf(out, PATH_MAX, "%s", given);
    return true;
}

/* When the trace at `path` was begun, if it is one of process `pid`; 0: it is not. */
static uint64_t start_of(const char *path, pid_t pid)
{
    struct tbd_trace *trace;
    struct tbd_error why;
    uint64_t start = 0;

    if (tbd_trace_open_summary(path, &trace, &why) != TBD_OK)
        return 0;
    if (tbd_trace_info(trace)->pid == (uint32_t)pid)
        start = tbd_trace_info(trace)->realtime_ns;
    tbd_trace_close(trace);
    return start;
}

/* The path of the child's trace: of the last process that had its number.  NULL: there is none. */
static char *find_trace(const struct child *child, const json_t *arguments)
{
    char root[PATH_MAX], path[PATH_MAX + NAME_MAX + 2];
    uint64_t best = 0, start;
    char *found = NULL;
    struct dirent *entry;
    DIR *folder = find_root(arguments, root) ? opendir(root) : NULL;

    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] == '.' || strchr(entry->d_name, '-') == NULL)
            continue;
        snprintf(path, sizeof(path), "%s/%s", root, entry->d_name);
        start = start_of(path, child->pid);
        if (start <= best)
            continue;
        best = start;
        free(found);
        found = strdup(path);
    }
    if (folder != NULL)
        closedir(folder);
    return found;
}

char *tbd_dap_record(struct tbd_dap *dap, const json_t *arguments)
{
    struct child child = { .out = { -1, -1 }, .err = { -1, -1 } };
    struct words *command = NULL, *environment = NULL;
    char tbd[PATH_MAX], *name = NULL;

    if (find_tbd(tbd)) {
        command = command_of(arguments, tbd);
        environment = environment_of(arguments);
    }
    if (command == NULL || environment == NULL || command->is_full || environment->is_full)
        tbd_dap_refuse(dap, "the program's command line is too long, or there is no `tbd` beside "
                            "tbdq");
    else if (!open_pipe(child.out) || !open_pipe(child.err) || !start(&child, command, environment))
        tbd_dap_refuse(dap, "%s cannot be started: %s", tbd, strerror(errno));
    else {
        close(child.out[1]);
        close(child.err[1]);
        child.out[1] = child.err[1] = -1;
        follow(dap, &child);
        name = find_trace(&child, arguments);
        if (name == NULL)
            tbd_dap_refuse(dap, "%s left no trace", tbd_dap_text(arguments, "program"));
    }
    close_pipe(child.out);
    close_pipe(child.err);
    free_words(command);
    free_words(environment);
    return name;
}
