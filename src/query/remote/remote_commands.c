// SPDX-License-Identifier: MIT
/* remote_commands.c - see remote_commands.h */
#include "query/remote/remote_commands.h"

#include "query/remote/remote_server.h"

#include "query/serve/listen.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum tbd_exit wrong(const char *message)
{
    fprintf(stderr, "tbdq: %s\nhint: `tbdq help serve`\n", message);
    return TBD_EXIT_USAGE;
}

static enum tbd_exit system_says(const char *what)
{
    fprintf(stderr, "tbdq: %s: %s\n", what, strerror(errno));
    return TBD_EXIT_SYSTEM;
}

static enum tbd_exit serve(void *context, int in, int out)
{
    struct tbd_session *session = context;
    struct tbd_command_run run = { .session = session, .text = "", .out = stderr };
    enum tbd_status status = tbd_remote_serve(session, in, out);

    return status == TBD_OK ? TBD_EXIT_FOUND : tbd_command_fail(&run, status);
}

/* serve --gdb [stdio|[HOST]:PORT|PATH] */
static enum tbd_exit run_serve(struct tbd_session *session, size_t count, char *const *words)
{
    struct tbd_listening listening = { .where = count == 3 ? words[2] : "stdio",
                                       .command = "serve",
                                       .invitation = "(gdb) target remote ",
                                       .serve = serve,
                                       .context = session };

    if (count < 2 || count > 3 || strcmp(words[1], "--gdb") != 0)
        return wrong("expected --gdb, and stdio, :PORT or the path of a socket");
    return tbd_listen(&listening);
}

/* ---- gdb ---- */

extern const char tbd_gdb_commands[]; /* gdb_commands.py */

/* Our standard error, for what gdb's shell starts.  gdb would make it a pipe, and look into this before each byte that it reads
 * from us: a million system calls in a start. */
#define MESSAGES 9

/* What gdb's shell starts; the names come through the environment, so nothing in them needs quotes. */
static const char connect_it[] = "target remote | exec \"$TBD_GDB_TBDQ\" -t \"$TBD_GDB_TRACE\" "
                                 "${TBD_GDB_AT:+--at \"$TBD_GDB_AT\"} serve --gdb 2>&9";
_Static_assert(MESSAGES == 9, "the shell's line names it");

static enum tbd_exit run_gdb(struct tbd_session *session, size_t count, char *const *words)
{
    /* gdb sends a packet again that is not answered in time, and takes the first answer for the second's; tbdq on a
     * busy machine needs longer than its 2 s to begin. */
    static const char *const first[] = {
        "gdb",  "-q",
        "-iex", "set sysroot target:",
        "-iex", "set remotetimeout 120",
        "-iex", "python import os; exec(os.environ.pop('TBD_GDB_COMMANDS'), globals())",
        "-ex",  connect_it
    };
    enum { FIRST = sizeof(first) / sizeof(first[0]) };

    char trace[PATH_MAX], program[PATH_MAX], at[64] = "";
    const char **argv = calloc(FIRST + count, sizeof(*argv));
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);

    if (argv == NULL)
        return tbd_command_no_memory();
    if (length < 0 || realpath(session->info->path, trace) == NULL ||
        dup2(STDERR_FILENO, MESSAGES) < 0) {
        free(argv);
        return system_says("the trace cannot be given to gdb");
    }
    program[length] = '\0';
    if (session->has_at)
        snprintf(at, sizeof(at), "%" PRIu64 "+%" PRIu32, session->at.time, session->at.offset);
    memcpy(argv, first, sizeof(first));
    for (size_t i = 1; i < count; i++)
        argv[FIRST + i - 1] = words[i];
    setenv("TBD_GDB_TBDQ", program, 1);
    setenv("TBD_GDB_TRACE", trace, 1);
    setenv("TBD_GDB_AT", at, 1);
    setenv("TBD_GDB_COMMANDS", tbd_gdb_commands, 1);
    execvp(argv[0], (char *const *)(uintptr_t)argv);
    free(argv);
    return system_says("gdb cannot be started");
}

bool tbd_remote_command(struct tbd_session *session, size_t count, char *const *words,
                        enum tbd_exit *out)
{
    static const struct {
        const char *name;
        enum tbd_exit (*run)(struct tbd_session *session, size_t count, char *const *words);
    } commands[] = { { "serve", run_serve }, { "gdb", run_gdb } };

    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        if (count != 0 && strcmp(words[0], commands[i].name) == 0) {
            *out = session->info->is_dump
                       ? wrong("a crash dump has one moment only: gdb cannot move in it")
                       : commands[i].run(session, count, words);
            return true;
        }
    return false;
}
