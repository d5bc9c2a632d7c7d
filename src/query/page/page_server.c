// SPDX-License-Identifier: MIT
/* page_server.c - see page_server.h
 *
 * libmicrohttpd has a thread for each connection.  It checks who asks, sends files, and hands questions to the thread that
 * uses the session (page_queue.h), which is the one that called tbd_page_serve().
 *
 *   GET  /TOKEN/          the page          POST /TOKEN/ask     a question (page_request.h)
 *   GET  /TOKEN/NAME      its files         POST /TOKEN/cancel  the id of a question
 *   GET  /TOKEN/progress  what is done      POST /TOKEN/dial    {"record": N}, for the process that left a dump
 *   GET  /TOKEN/dial      its setting
 *
 * PAGE-SERVER-1  Without the token, with a Host that is not this machine, or with another page's Origin, nothing is told
 *     but that it is refused. */
#include "query/page/page_server.h"

#include "query/page/http_library.h"
#include "query/page/page_answer.h"
#include "query/page/page_assets.h"
#include "query/page/page_queue.h"
#include "query/text/user_interrupt.h"
#include "query/triggers/record_dial.h"

#include "format/stream/crash_values.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS   64u
#define IDLE_SECONDS  60u
#define DIAL_MS       4000   /* to answer: a program that waits in a call answers at once */
#define REQUEST_BYTES 32768u /* of the line and the headers of a request */

struct page_server {
    struct tbd_page_queue *queue;
    char token[TBD_PAGE_TOKEN_BYTES];
    struct tbd_dialled dialled; /* the process that left the dump; pid 0: it is a recording */
};

/* The body of a request, while it comes. */
struct page_body {
    size_t used;
    bool is_too_long;
    char bytes[TBD_PAGE_BODY_BYTES];
};

/* ---- replies ---- */

static enum MHD_Result send_it(struct MHD_Connection *connection, unsigned status, const char *type,
                               struct MHD_Response *response)
{
    static const char *const headers[][2] = {
        /* Nothing from elsewhere, nothing inline, in no frame. */
        { "Content-Security-Policy",
          "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
          "frame-ancestors 'none'; object-src 'none'" },
        { "X-Content-Type-Options", "nosniff" },
        { "Referrer-Policy", "no-referrer" },
        { "Cross-Origin-Resource-Policy", "same-origin" },
        { "Cross-Origin-Opener-Policy", "same-origin" },
        { "Cache-Control", "no-store" },
    };
    enum MHD_Result result;

    if (response == NULL)
        return MHD_NO;
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
        (void)tbd_http()->add_response_header(response, headers[i][0], headers[i][1]);
    (void)tbd_http()->add_response_header(response, "Content-Type", type);
    result = tbd_http()->queue_response(connection, status, response);
    tbd_http()->destroy_response(response);
    return result;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status, const char *why)
{
    return send_it(connection, status, "text/plain; charset=utf-8",
                   tbd_http()->create_response_from_buffer(strlen(why), (void *)(uintptr_t)why,
                                                           MHD_RESPMEM_MUST_COPY));
}

/* Takes `text`. */
static enum MHD_Result send_text(struct MHD_Connection *connection, char *text)
{
    if (text == NULL)
        return refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "There is no answer.\n");
    return send_it(
        connection, MHD_HTTP_OK, "application/json",
        tbd_http()->create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE));
}

static enum MHD_Result send_file(struct MHD_Connection *connection, const char *name)
{
    const struct tbd_page_asset *asset = tbd_page_asset_called(*name == '\0' ? "index.html" : name);

    if (asset == NULL)
        return refuse(connection, MHD_HTTP_NOT_FOUND, "There is no such page.\n");
    return send_it(connection, MHD_HTTP_OK, asset->type,
                   tbd_http()->create_response_from_buffer((size_t)(asset->end - asset->bytes),
                                                           (void *)(uintptr_t)asset->bytes,
                                                           MHD_RESPMEM_PERSISTENT));
}

/* ---- requests ---- */

static int socket_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        tbd_http()->get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    return info == NULL ? -1 : info->connect_fd;
}

static enum MHD_Result ask(struct page_server *server, struct MHD_Connection *connection,
                           const struct page_body *body)
{
    struct tbd_page_question question;
    const char *why;
    char *answer;

    if (!tbd_page_question_read(body->bytes, body->used, &question, &why))
        return refuse(connection, MHD_HTTP_BAD_REQUEST, why);
    answer = tbd_page_queue_ask(server->queue, &question, socket_of(connection));
    tbd_page_question_free(&question);
    return send_text(connection, answer);
}

static enum MHD_Result cancel(struct page_server *server, struct MHD_Connection *connection,
                              const struct page_body *body)
{
    char id[TBD_PAGE_ID_BYTES] = "";

    if (body->used == 0 || body->used >= sizeof(id))
        return refuse(connection, MHD_HTTP_BAD_REQUEST, "It is not the id of a question.\n");
    memcpy(id, body->bytes, body->used);
    tbd_page_queue_cancel(server->queue, id);
    return send_text(connection, strdup("{}"));
}

static enum MHD_Result tell_progress(struct page_server *server, struct MHD_Connection *connection)
{
    json_t *progress = tbd_page_queue_progress(server->queue);
    char *text = json_dumps(progress, JSON_COMPACT);

    json_decref(progress);
    return send_text(connection, text);
}

/* ---- the dial ---- */

static enum MHD_Result refuse_dial(struct MHD_Connection *connection,
                                   const struct tbd_query_error *error)
{
    return refuse(connection,
                  error->status == TBD_NOTFOUND ? MHD_HTTP_NOT_FOUND : MHD_HTTP_CONFLICT,
                  error->message);
}

/* What the process that left the dump records now: {"record": 5, "most": 9}; {"record": null}: it does not go on. */
static enum MHD_Result tell_dial(const struct page_server *server,
                                 struct MHD_Connection *connection)
{
    struct tbd_query_error error = { .status = TBD_OK };
    uint32_t record = 0;
    char text[64];

    if (!tbd_record_dial_read(&server->dialled, &record, &error))
        return send_text(connection, strdup("{\"record\":null}"));
    snprintf(text, sizeof(text), "{\"record\":%u,\"most\":%u}", record, TBD_RECORD_MOST);
    return send_text(connection, strdup(text));
}

static enum MHD_Result dial(const struct page_server *server, struct MHD_Connection *connection,
                            const struct page_body *body)
{
    struct tbd_query_error error = { .status = TBD_OK };
    uint32_t record;

    if (!tbd_page_dial_read(body->bytes, body->used, &record))
        return refuse(connection, MHD_HTTP_BAD_REQUEST, "It must have record, from 0 to 9.\n");
    if (!tbd_record_dial_turn(&server->dialled, record, DIAL_MS, &error))
        return refuse_dial(connection, &error);
    return tell_dial(server, connection);
}

/* Why the request is refused, or NULL: keeps PAGE-SERVER-1. */
static const char *check(const struct page_server *server, struct MHD_Connection *connection,
                         const char *url, const char **path)
{
    const char *host = tbd_http()->lookup_connection_value(connection, MHD_HEADER_KIND, "Host");
    const char *origin = tbd_http()->lookup_connection_value(connection, MHD_HEADER_KIND, "Origin");

    *path = tbd_page_path(url, server->token);
    if (!tbd_page_is_host(host) || !tbd_page_is_origin(origin, host) || *path == NULL)
        return "Refused: use the address that tbdq view has printed.\n";
    return NULL;
}

static enum MHD_Result carry_out(struct page_server *server, struct MHD_Connection *connection,
                                 const char *path, const char *method, const struct page_body *body)
{
    bool is_post = strcmp(method, MHD_HTTP_METHOD_POST) == 0;

    if (body->is_too_long)
        return refuse(connection, MHD_HTTP_CONTENT_TOO_LARGE, "The question is too long.\n");
    if (is_post && strcmp(path, "ask") == 0)
        return ask(server, connection, body);
    if (is_post && strcmp(path, "cancel") == 0)
        return cancel(server, connection, body);
    if (strcmp(path, "dial") == 0 && server->dialled.pid == 0)
        return refuse(connection, MHD_HTTP_NOT_FOUND, "It is not about a crash dump.\n");
    if (is_post && strcmp(path, "dial") == 0)
        return dial(server, connection, body);
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0)
        return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "It takes GET, or POST.\n");
    if (strcmp(path, "progress") == 0)
        return tell_progress(server, connection);
    if (strcmp(path, "dial") == 0)
        return tell_dial(server, connection);
    return send_file(connection, path);
}

static void take_body(struct page_body *body, const char *data, size_t *io_bytes)
{
    if (*io_bytes > sizeof(body->bytes) - body->used) {
        body->is_too_long = true;
    } else {
        memcpy(body->bytes + body->used, data, *io_bytes);
        body->used += *io_bytes;
    }
    *io_bytes = 0;
}

/* Called once with the headers, for each part of the body, and at the end. */
static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *data,
                              size_t *io_bytes, void **request)
{
    struct page_server *server = context;
    const char *path, *refused = check(server, connection, url, &path);

    (void)version;
    if (refused != NULL)
        return refuse(connection, MHD_HTTP_FORBIDDEN, refused);
    if (*request == NULL) {
        *request = calloc(1, sizeof(struct page_body));
        return *request == NULL ? MHD_NO : MHD_YES;
    }
    if (*io_bytes != 0) {
        take_body(*request, data, io_bytes);
        return MHD_YES;
    }
    return carry_out(server, connection, path, method, *request);
}

static void forget(void *context, struct MHD_Connection *connection, void **request,
                   enum MHD_RequestTerminationCode code)
{
    (void)context;
    (void)connection;
    (void)code;
    free(*request);
    *request = NULL;
}

/* ---- the server ---- */

static int listen_at(uint16_t port, uint16_t *out_port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(port),
                                   .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t bytes = sizeof(address);
    int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (listener >= 0 && setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0 &&
        bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0 &&
        listen(listener, (int)CONNECTIONS) == 0 &&
        getsockname(listener, (struct sockaddr *)&address, &bytes) == 0) {
        *out_port = ntohs(address.sin_port);
        return listener;
    }
    if (listener >= 0)
        close(listener);
    return -1;
}

static bool make_token(char *out)
{
    unsigned char random[(TBD_PAGE_TOKEN_BYTES - 1) / 2];

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return false;
    for (size_t i = 0; i < sizeof(random); i++)
        snprintf(out + 2 * i, 3, "%02x", random[i]);
    return true;
}

/* Answers until a signal comes. */
static void answer_all(struct page_server *server, struct tbd_session *session,
                       const struct tbd_page_place *start)
{
    const struct tbd_page_question *asked;

    while ((asked = tbd_page_queue_next(server->queue)) != NULL) {
        struct tbd_page_question question = *asked;
        json_t *answer;

        if (!question.has_at)
            question.place = *start;
        answer = tbd_page_answer(session, &question);
        tbd_page_queue_done(server->queue,
                            json_dumps(answer, JSON_COMPACT | JSON_REAL_PRECISION(6)));
        json_decref(answer);
    }
}

static struct MHD_Daemon *start_daemon(struct page_server *server, int listener)
{
    return tbd_http()->start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL, 0, NULL,
        NULL, handle, server, MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_NOTIFY_COMPLETED,
        forget, NULL, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
        IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_BYTES, MHD_OPTION_END);
}

enum tbd_status tbd_page_serve(struct tbd_session *session, uint16_t port,
                               const struct tbd_page_place *start, FILE *out)
{
    struct page_server server = { .dialled = { .program = session->info->program } };
    struct MHD_Daemon *daemon = NULL;
    int listener = listen_at(port, &port);

    if (listener < 0)
        return TBD_SYSTEM;
    if (session->info->is_dump)
        server.dialled.pid = (pid_t)session->info->pid;
    signal(SIGPIPE, SIG_IGN); /* a client may go at any time */
    tbd_interrupt_catch();
    if (make_token(server.token))
        server.queue = tbd_page_queue_new();
    if (server.queue != NULL)
        daemon = start_daemon(&server, listener);
    if (daemon == NULL) {
        close(listener);
        tbd_page_queue_free(server.queue);
        return TBD_SYSTEM;
    }
    fprintf(out, "http://127.0.0.1:%u/%s/\n", port, server.token);
    fflush(
        NULL); /* `out`, and the stream that it leads to: who waits for the address reads a pipe */
    answer_all(&server, session, start);
    tbd_page_queue_end(server.queue);
    tbd_http()->stop_daemon(daemon); /* closes the listener */
    tbd_page_queue_free(server.queue);
    return TBD_OK;
}
