// SPDX-License-Identifier: MIT
/* remote_commands.c - see remote_commands.h
 *
 * A server listens on the loopback interface, on a Unix socket that only this user can reach, or serves the one client at
 * its standard input and output. */
#include "query/remote/remote_commands.h"

#include "query/remote/remote_server.h"

#include "base/safe_stream.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
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

static enum tbd_exit serve(struct tbd_session *session, int in, int out)
{
    struct tbd_command_run run = { .session = session, .text = "", .out = stderr };
    enum tbd_status status = tbd_remote_serve(session, in, out);

    return status == TBD_OK ? TBD_EXIT_FOUND : tbd_command_fail(&run, status);
}

/* ---- sockets ---- */

/* One client after another, until a signal ends it. */
static enum tbd_exit serve_all(struct tbd_session *session, int listener)
{
    enum tbd_exit result = TBD_EXIT_FOUND;

    while (result == TBD_EXIT_FOUND) {
        int one = 1, client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

        if (client < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (client < 0)
            return system_says("no client can be accepted");
        (void)setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        result = serve(session, client, client);
        close(client);
    }
    return result;
}

static enum tbd_exit listen_at_path(struct tbd_session *session, const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    mode_t before = umask(0177); /* only this user may connect */
    enum tbd_exit result;

    if (strlen(path) >= sizeof(address.sun_path)) {
        umask(before);
        return wrong("the path of a Unix socket has at most 107 bytes");
    }
    strcpy(address.sun_path, path);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(listener, 4) != 0) {
        umask(before);
        return system_says(path);
    }
    umask(before);
    fprintf(stderr, "listening: (gdb) target remote %s\n", tbd_shown(path));
    result = serve_all(session, listener);
    unlink(path);
    return result;
}

/* "[HOST]:PORT"; the host is this machine.  False: it is something else. */
static bool read_port(const char *text, uint16_t *out)
{
    static const char *const hosts[] = { "", "localhost", "127.0.0.1" };
    const char *colon = strrchr(text, ':');
    char *end;
    unsigned long port = colon == NULL ? 0 : strtoul(colon + 1, &end, 10);

    if (colon == NULL || colon[1] < '0' || colon[1] > '9' || *end != '\0' || port > UINT16_MAX)
        return false;
    *out = (uint16_t)port;
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
        if (strlen(hosts[i]) == (size_t)(colon - text) &&
            strncmp(hosts[i], text, (size_t)(colon - text)) == 0)
            return true;
    return false;
}

static enum tbd_exit listen_at_port(struct tbd_session *session, uint16_t port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(port),
                                   .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t bytes = sizeof(address);
    int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0 ||
        bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(listener, 4) != 0 || getsockname(listener, (struct sockaddr *)&address, &bytes) != 0)
        return system_says("no client can be awaited there");
    fprintf(stderr, "listening: (gdb) target remote localhost:%u\n", ntohs(address.sin_port));
    return serve_all(session, listener);
}

/* serve --gdb [stdio|[HOST]:PORT|PATH] */
static enum tbd_exit run_serve(struct tbd_session *session, size_t count, char *const *words)
{
    const char *where = count == 3 ? words[2] : "stdio";
    uint16_t port;

    if (count < 2 || count > 3 || strcmp(words[1], "--gdb") != 0)
        return wrong("expected --gdb, and stdio, :PORT or the path of a socket");
    signal(SIGPIPE, SIG_IGN); /* a client may go at any time */
    if (strcmp(where, "stdio") == 0)
        return serve(session, STDIN_FILENO, STDOUT_FILENO);
    if (strchr(where, '/') != NULL)
        return listen_at_path(session, where);
    if (read_port(where, &port))
        return listen_at_port(session, port);
    return wrong(
        "a server listens on this machine alone: :PORT, localhost:PORT, or the path of a Unix socket");
}

/* ---- gdb ---- */

/* What gdb's shell starts; the names come through the environment, so nothing in them needs quotes. */
static const char connect_it[] = "target remote | exec \"$TBD_GDB_TBDQ\" -t \"$TBD_GDB_TRACE\" "
                                 "${TBD_GDB_AT:+--at \"$TBD_GDB_AT\"} serve --gdb";

static enum tbd_exit run_gdb(struct tbd_session *session, size_t count, char *const *words)
{
    static const char *const first[] = { "gdb", "-q",      "-iex", "set sysroot target:",
                                         "-ex", connect_it };
    enum { FIRST = sizeof(first) / sizeof(first[0]) };

    char trace[PATH_MAX], program[PATH_MAX], at[64] = "";
    const char **argv = calloc(FIRST + count, sizeof(*argv));
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);

    if (argv == NULL)
        return tbd_command_no_memory();
    if (length < 0 || realpath(session->info->path, trace) == NULL) {
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
