// SPDX-License-Identifier: MIT
// links: tbd_query_page tbd_query tbd_organizer tbd_format tbd_base PkgConfig::JANSSON PkgConfig::XXHASH
// sources: ../unit/stream_maker.c
// iterations: 600
/* fuzz_browser.c - requests to the page's server, over a small trace: the whole server, from its sockets to the session's answers
 *
 * Each line is one request on a connection of its own.  Its first letter says what the rest is: a, c, d the body of a POST to ask,
 * cancel, dial; g a path below the token; h a Host and o an Origin; r all that is sent, with | for the end of a line and $ for the token.
 * (fuzz_page.c has what one request means.)
 *
 * Oracle: every request that is whole has one whole answer, with the headers that keep the page to itself, and a status that belongs to
 * it; an answer to a question is JSON.  A Host or Origin that is not the page's own is refused.  However odd the requests were, a
 * question then has the answer that it had at first. */
#include "query/page/http_library.h"
#include "query/page/page_server.h"
#include "small_trace.h"

#include <errno.h>
#include <jansson.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUESTS_MOST 16u
#define PLAIN         "{\"lines\":[\"where\"],\"at\":[20,0]}"

static struct {
    char root[FOLDER_BYTES];
    struct tbd_session session;
    pthread_t thread;
    unsigned port;
    char token[64];
    char *first; /* the answer to PLAIN */
    bool is_there;
} server;

struct answer {
    unsigned status; /* 0: none */
    char *text;      /* owned: all of it */
    const char *body;
    size_t bytes; /* of the body */
};

/* ---- the server ---- */

static void *serve(void *out)
{
    const struct tbd_page_place start = { .at = { .time = 10 } };

    check(tbd_page_serve(&server.session, 0, &start, out) == TBD_OK);
    return NULL;
}

static void stop(void)
{
    (void)raise(SIGINT);
    pthread_join(server.thread, NULL);
    tbd_session_close(&server.session);
    free(server.first);
    remove_small(server.root);
}

static void start(void)
{
    char path[80], line[200];
    int ends[2];
    FILE *in, *out;

    record_small(server.root, 11, 3, 200, (struct tbd_age_limits){ 0 });
    snprintf(path, sizeof(path), "%s/fuzz-1", server.root);
    setenv("XDG_CACHE_HOME", server.root, 1);
    server.session = (struct tbd_session){ .workers = 1, .is_private = true };
    check(tbd_session_open(&server.session, path) == TBD_OK && pipe(ends) == 0);
    in = fdopen(ends[0], "r");
    out = fdopen(ends[1], "w");
    check(in != NULL && out != NULL && pthread_create(&server.thread, NULL, serve, out) == 0);
    check(fgets(line, sizeof(line), in) != NULL &&
          sscanf(line, "http://127.0.0.1:%u/%40[0-9a-f]/", &server.port, server.token) == 2);
    atexit(stop);
}

/* ---- one connection ---- */

static int dial(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)server.port),
                                   .sin_addr = { htonl(INADDR_LOOPBACK) } };
    struct timeval patience = { .tv_sec = 60 };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    check(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0 &&
          connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    return fd;
}

/* The server may close before it has read all. */
static void send_all(int fd, const char *data, size_t bytes)
{
    while (bytes != 0) {
        ssize_t done = send(fd, data, bytes, MSG_NOSIGNAL);

        if (done <= 0)
            return;
        data += done;
        bytes -= (size_t)done;
    }
}

static char *read_all(int fd, size_t *out_bytes)
{
    char piece[4096], *text = NULL;
    FILE *all = open_memstream(&text, out_bytes);
    ssize_t got;

    check(all != NULL);
    while ((got = recv(fd, piece, sizeof(piece), 0)) > 0 || (got < 0 && errno == EINTR))
        if (got > 0)
            fwrite(piece, 1, (size_t)got, all);
    check(fclose(all) == 0);
    return text;
}

static void check_headers(const struct answer *answer)
{
    static const char *const wanted[] = { "Content-Security-Policy: default-src 'self';",
                                          "X-Content-Type-Options: nosniff",
                                          "Referrer-Policy: no-referrer", "Cache-Control: no-store",
                                          "Content-Type: " };

    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        const char *found = strstr(answer->text, wanted[i]);

        check(found != NULL && found < answer->body);
    }
    check(strstr(answer->text, "Access-Control-Allow-Origin") == NULL);
}

/* Sends a whole request; the answer is whole, too. */
static struct answer exchange(const char *request, size_t bytes)
{
    struct answer answer = { 0 };
    size_t length, all;
    const char *found;
    int fd = dial();

    send_all(fd, request, bytes);
    answer.text = read_all(fd, &all);
    close(fd);
    check(sscanf(answer.text, "HTTP/1.1 %u ", &answer.status) == 1);
    answer.body = strstr(answer.text, "\r\n\r\n");
    check(answer.body != NULL);
    answer.body += 4;
    answer.bytes = all - (size_t)(answer.body - answer.text);
    found = strstr(answer.text, "Content-Length: ");
    length = found == NULL ? SIZE_MAX : strtoul(found + strlen("Content-Length: "), NULL, 10);
    check(length == answer.bytes);
    return answer;
}

struct request {
    const char *method, *name; /* NAME below the token */
    const char *host, *origin; /* NULL: the page's own, and none */
    const char *body;
    size_t bytes;
};

static struct answer ask(const struct request *request)
{
    char own[32], *text = NULL;
    struct answer answer;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    check(out != NULL);
    snprintf(own, sizeof(own), "127.0.0.1:%u", server.port);
    fprintf(out, "%s /%s/%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n", request->method,
            server.token, request->name, request->host == NULL ? own : request->host);
    if (request->origin != NULL)
        fprintf(out, "Origin: %s\r\n", request->origin);
    fprintf(out, "Content-Length: %zu\r\n\r\n", request->bytes);
    fwrite(request->body, 1, request->bytes, out);
    check(fclose(out) == 0);
    answer = exchange(text, bytes);
    free(text);
    return answer;
}

/* ---- what the lines ask ---- */

static bool is_one_of(unsigned status, const unsigned *allowed, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (allowed[i] == status)
            return true;
    return false;
}

static void post(const char *name, const char *body, size_t bytes)
{
    static const unsigned allowed[] = { 200, 400, 404, 413 };
    struct request request = { .method = "POST", .name = name, .body = body, .bytes = bytes };
    struct answer answer = ask(&request);

    check_headers(&answer);
    check(is_one_of(answer.status, allowed, sizeof(allowed) / sizeof(allowed[0])));
    if (answer.status == 200) {
        json_t *value = json_loadb(answer.body, answer.bytes, 0, NULL);

        check(json_is_object(value));
        json_decref(value);
    }
    free(answer.text);
}

/* A text that can be a part of a request line or of a header; the caller frees it. */
static char *printable(const char *data, size_t bytes)
{
    char *text = strndup(data, bytes);

    check(text != NULL);
    for (char *at = text; *at != '\0'; at++)
        if (*at <= ' ' || *at == 0x7f)
            *at = '_';
    return text;
}

static void get(const char *data, size_t bytes)
{
    static const unsigned allowed[] = { 200, 400, 403, 404 };
    char *name = printable(data, bytes);
    struct request request = { .method = "GET", .name = name, .body = "" };
    struct answer answer = ask(&request);

    check(is_one_of(answer.status, allowed, sizeof(allowed) / sizeof(allowed[0])));
    if (answer.status != 400) /* said by libmicrohttpd itself */
        check_headers(&answer);
    free(answer.text);
    free(name);
}

/* Another page, or another name of this machine, gets nothing. */
static void as_another(bool is_host, const char *data, size_t bytes)
{
    static const char *const own[] = { "127.0.0.1",        "localhost",        "[::1]",
                                       "http://127.0.0.1", "http://localhost", "http://[::1]" };
    char *text = printable(data, bytes);
    struct request request = {
        .method = "POST", .name = "ask", .body = PLAIN, .bytes = strlen(PLAIN)
    };
    struct answer answer;
    bool is_own = false;

    *(is_host ? &request.host : &request.origin) = text;
    for (size_t i = is_host ? 0 : 3; i < (is_host ? 3u : 6u); i++)
        is_own |= strncmp(text, own[i], strlen(own[i])) == 0;
    answer = ask(&request);
    check(answer.status == 403 || answer.status == 400 || (answer.status == 200 && is_own));
    check(answer.status == 200 || strstr(answer.body, "\"time\"") == NULL);
    free(answer.text);
    free(text);
}

/* Anything: the server may answer, or not. */
static void send_raw(const char *data, size_t bytes)
{
    char *text = NULL;
    size_t used, got;
    FILE *out = open_memstream(&text, &used);
    int fd = dial();

    check(out != NULL);
    for (size_t i = 0; i < bytes; i++) {
        if (data[i] == '|')
            fputs("\r\n", out);
        else if (data[i] == '$')
            fputs(server.token, out);
        else
            fputc(data[i], out);
    }
    check(fclose(out) == 0);
    send_all(fd, text, used);
    shutdown(fd, SHUT_WR);
    free(text);
    text = read_all(fd, &got);
    check(got == 0 || strncmp(text, "HTTP/1.", 7) == 0);
    check(memchr(data, '$', bytes) != NULL || strstr(text, " 200 ") == NULL);
    free(text);
    close(fd);
}

static void send_line(const char *line, size_t bytes)
{
    const char *rest = line + 1;

    if (bytes-- == 0)
        return;
    switch (*line) {
    case 'a': post("ask", rest, bytes); break;
    case 'c': post("cancel", rest, bytes); break;
    case 'd': post("dial", rest, bytes); break;
    case 'g': get(rest, bytes); break;
    case 'h':
    case 'o': as_another(*line == 'h', rest, bytes); break;
    default: send_raw(rest, bytes); break;
    }
}

static void check_plain(void)
{
    struct request request = {
        .method = "POST", .name = "ask", .body = PLAIN, .bytes = strlen(PLAIN)
    };
    struct answer answer = ask(&request);

    check(answer.status == 200 && strstr(answer.body, "\"time\":20") != NULL);
    if (server.first == NULL)
        server.first = strndup(answer.body, answer.bytes);
    check(server.first != NULL && strlen(server.first) == answer.bytes &&
          memcmp(server.first, answer.body, answer.bytes) == 0);
    free(answer.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *line = (const char *)data, *end = line + size;

    if (server.root[0] == '\0') {
        server.is_there = tbd_http_load();
        if (server.is_there)
            start();
        else
            server.root[0] = '-';
    }
    if (!server.is_there)
        return 0;
    for (size_t i = 0; line < end && i < REQUESTS_MOST; i++) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));

        if (stop == NULL)
            stop = end;
        send_line(line, (size_t)(stop - line));
        line = stop + 1;
    }
    check_plain();
    return 0;
}
