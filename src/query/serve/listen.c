// SPDX-License-Identifier: MIT
/* listen.c - see listen.h */
#include "query/serve/listen.h"

#include "base/safe_stream.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static enum tbd_exit wrong(const struct tbd_listening *how, const char *message)
{
    fprintf(stderr, "tbdq: %s\nhint: `tbdq help %s`\n", message, how->command);
    return TBD_EXIT_USAGE;
}

static enum tbd_exit system_says(const char *what)
{
    fprintf(stderr, "tbdq: %s: %s\n", tbd_shown(what), strerror(errno));
    return TBD_EXIT_SYSTEM;
}

/* One client after another, until a signal ends it. */
static enum tbd_exit serve_all(const struct tbd_listening *how, int listener)
{
    enum tbd_exit result = TBD_EXIT_FOUND;

    while (result == TBD_EXIT_FOUND) {
        int one = 1, client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

        if (client < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (client < 0)
            return system_says("no client can be accepted");
        (void)setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        result = how->serve(how->context, client, client);
        close(client);
    }
    return result;
}

static enum tbd_exit listen_at_path(const struct tbd_listening *how)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int listener;
    mode_t before;
    enum tbd_exit result;

    if (strlen(how->where) >= sizeof(address.sun_path))
        return wrong(how, "the path of a Unix socket has at most 107 bytes");
    strcpy(address.sun_path, how->where);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    before = umask(0177); /* only this user may connect */
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(listener, 4) != 0) {
        umask(before);
        result = system_says(how->where);
    } else {
        umask(before);
        fprintf(stderr, "listening: %s%s\n", how->invitation, tbd_shown(how->where));
        result = serve_all(how, listener);
        unlink(how->where);
    }
    if (listener >= 0)
        close(listener);
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

static enum tbd_exit listen_at_port(const struct tbd_listening *how, uint16_t port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(port),
                                   .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t bytes = sizeof(address);
    int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0 ||
        bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(listener, 4) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &bytes) != 0) {
        if (listener >= 0)
            close(listener);
        return system_says("no client can be awaited there");
    }
    fprintf(stderr, "listening: %slocalhost:%u\n", how->invitation, ntohs(address.sin_port));
    return serve_all(how, listener);
}

enum tbd_exit tbd_listen(const struct tbd_listening *how)
{
    uint16_t port;

    signal(SIGPIPE, SIG_IGN); /* a client may go at any time */
    if (strcmp(how->where, "stdio") == 0)
        return how->serve(how->context, STDIN_FILENO, STDOUT_FILENO);
    if (strchr(how->where, '/') != NULL)
        return listen_at_path(how);
    if (read_port(how->where, &port))
        return listen_at_port(how, port);
    return wrong(how, "a server listens on this machine alone: :PORT, localhost:PORT, or the path "
                      "of a Unix socket");
}
