// SPDX-License-Identifier: MIT
/* dap_link.c - see dap_link.h */
#include "query/dap/dap_link.h"

#include "query/dap/dap_mend.h"
#include "query/text/user_interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void interrupt(void)
{
    atomic_store_explicit(&tbd_interrupt_noted, true, memory_order_relaxed);
}

static const char *command_of(const json_t *request)
{
    const char *command = json_string_value(json_object_get(request, "command"));

    return command == NULL ? "" : command;
}

static json_int_t seq_of(const json_t *request)
{
    return json_integer_value(json_object_get(request, "seq"));
}

/* ---- the reader ---- */

/* `cancel` names the request by its number; without one it means the progress that is shown. */
static void cancel(struct tbd_dap_link *link, const json_t *request)
{
    const json_t *arguments = json_object_get(request, "arguments");
    const json_t *id = json_object_get(arguments, "requestId");

    if (link->running != 0 && (id == NULL || json_integer_value(id) == link->running))
        interrupt();
    for (size_t i = 0; id != NULL && i < link->count; i++) {
        struct tbd_dap_waiting *waiting = &link->queue[(link->first + i) % TBD_DAP_QUEUE];

        if (waiting->request != NULL && seq_of(waiting->request) == json_integer_value(id))
            waiting->is_cancelled = true;
    }
}

static void put(struct tbd_dap_link *link, const struct tbd_dap_waiting *waiting)
{
    const char *command = waiting->request == NULL ? "" : command_of(waiting->request);

    pthread_mutex_lock(&link->lock);
    while (link->count == TBD_DAP_QUEUE && !link->has_ended)
        pthread_cond_wait(&link->changed, &link->lock);
    if (strcmp(command, "cancel") == 0)
        cancel(link, waiting->request);
    if (link->running != 0 &&
        (strcmp(command, "disconnect") == 0 || strcmp(command, "terminate") == 0 ||
         (strcmp(command, "pause") == 0 && link->may_be_stopped)))
        interrupt();
    if (link->has_ended) {
        json_decref(waiting->request);
    } else {
        link->queue[(link->first + link->count++) % TBD_DAP_QUEUE] = *waiting;
        pthread_cond_broadcast(&link->changed);
    }
    pthread_mutex_unlock(&link->lock);
}

static json_t *load(const char *text, size_t bytes)
{
    json_t *value = json_loadb(text, bytes, 0, NULL);
    char *mended;

    if (value != NULL)
        return value;
    mended = tbd_dap_mend(text, bytes, &bytes);
    if (mended != NULL)
        value = json_loadb(mended, bytes, 0, NULL);
    free(mended);
    return value;
}

static void put_message(struct tbd_dap_link *link, const char *text, size_t bytes)
{
    struct tbd_dap_waiting waiting = { .request = load(text, bytes),
                                       .why = "a message was no JSON object" };
    const char *type = json_string_value(json_object_get(waiting.request, "type"));

    if (waiting.request != NULL &&
        (type == NULL || strcmp(type, "request") != 0 || *command_of(waiting.request) == '\0' ||
         !json_is_integer(json_object_get(waiting.request, "seq")))) {
        json_decref(waiting.request);
        waiting.request = NULL;
        waiting.why = "a message was no request: it has a seq, the type \"request\" and a command";
    }
    put(link, &waiting);
}

/* Waits until there is something to read; false: the link is closed. */
static bool await_bytes(struct tbd_dap_link *link)
{
    struct pollfd wanted[] = { { .fd = link->in, .events = POLLIN },
                               { .fd = link->wake[0], .events = POLLIN } };

    while (poll(wanted, 2, -1) < 0)
        if (errno != EINTR)
            return false;
    return wanted[1].revents == 0;
}

/* Bytes that are no message are complained of once, however many there are. */
static void take_messages(struct tbd_dap_link *link, struct tbd_dap_bytes *bytes, bool *io_garbage)
{
    const char *text = NULL;
    size_t count = 0;
    enum tbd_dap_found found;

    while ((found = tbd_dap_bytes_next(bytes, &text, &count)) != TBD_DAP_NOTHING) {
        struct tbd_dap_waiting waiting = { .why = "bytes that are no message were skipped" };

        if (found == TBD_DAP_MESSAGE)
            put_message(link, text, count);
        if (found == TBD_DAP_TOO_LONG)
            waiting.why = "a message of more than 4 MiB was skipped";
        if (found == TBD_DAP_TOO_LONG || (found == TBD_DAP_GARBAGE && !*io_garbage))
            put(link, &waiting);
        *io_garbage = found == TBD_DAP_GARBAGE;
    }
}

static void *read_all(void *context)
{
    struct tbd_dap_link *link = context;
    struct tbd_dap_bytes bytes = { 0 };
    bool is_garbage = false;
    char piece[65536];
    ssize_t got;

    while (await_bytes(link)) {
        got = read(link->in, piece, sizeof(piece));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0 || !tbd_dap_bytes_add(&bytes, piece, (size_t)got))
            break;
        take_messages(link, &bytes, &is_garbage);
    }
    tbd_dap_bytes_free(&bytes);
    pthread_mutex_lock(&link->lock);
    link->has_ended = true;
    if (link->running != 0)
        interrupt();
    pthread_cond_broadcast(&link->changed);
    pthread_mutex_unlock(&link->lock);
    return NULL;
}

/* ---- the other thread ---- */

bool tbd_dap_link_open(struct tbd_dap_link *link, int in, int out)
{
    *link = (struct tbd_dap_link){ .in = in, .out = out };
    if (pipe2(link->wake, O_CLOEXEC) != 0)
        return false;
    pthread_mutex_init(&link->lock, NULL);
    pthread_cond_init(&link->changed, NULL);
    if (pthread_create(&link->reader, NULL, read_all, link) == 0)
        return true;
    close(link->wake[0]);
    close(link->wake[1]);
    return false;
}

void tbd_dap_link_close(struct tbd_dap_link *link)
{
    (void)!write(link->wake[1], "", 1);
    pthread_mutex_lock(&link->lock);
    link->has_ended = true;
    pthread_cond_broadcast(&link->changed);
    pthread_mutex_unlock(&link->lock);
    pthread_join(link->reader, NULL);
    for (; link->count != 0; link->count--)
        json_decref(link->queue[link->first++ % TBD_DAP_QUEUE].request);
    close(link->wake[0]);
    close(link->wake[1]);
    pthread_cond_destroy(&link->changed);
    pthread_mutex_destroy(&link->lock);
}

bool tbd_dap_link_receive(struct tbd_dap_link *link, struct tbd_dap_waiting *out)
{
    bool has_one;

    pthread_mutex_lock(&link->lock);
    link->running = 0;
    link->may_be_stopped = false;
    while (link->count == 0 && !link->has_ended)
        pthread_cond_wait(&link->changed, &link->lock);
    has_one = link->count != 0 && !link->is_broken;
    if (has_one) {
        *out = link->queue[link->first];
        link->first = (link->first + 1) % TBD_DAP_QUEUE;
        link->count--;
        link->running = out->request == NULL ? 0 : seq_of(out->request);
        pthread_cond_broadcast(&link->changed);
    }
    tbd_interrupt_clear(); /* one that came too late */
    pthread_mutex_unlock(&link->lock);
    return has_one;
}

void tbd_dap_link_moves(struct tbd_dap_link *link)
{
    pthread_mutex_lock(&link->lock);
    link->may_be_stopped = true;
    pthread_mutex_unlock(&link->lock);
}

static bool write_all(int fd, const char *data, size_t bytes)
{
    while (bytes != 0) {
        ssize_t done = write(fd, data, bytes);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        data += done;
        bytes -= (size_t)done;
    }
    return true;
}

void tbd_dap_link_send(struct tbd_dap_link *link, json_t *message)
{
    char header[64];
    char *text;

    json_object_set_new(message, "seq", json_integer(++link->sent));
    text = json_dumps(message, JSON_COMPACT);
    json_decref(message);
    if (text == NULL) /* there is no memory: the client cannot go on without its answer */
        link->is_broken = true;
    if (!link->is_broken) {
        int used = snprintf(header, sizeof(header), "Content-Length: %zu\r\n\r\n", strlen(text));

        link->is_broken = !write_all(link->out, header, (size_t)used) ||
                          !write_all(link->out, text, strlen(text));
    }
    free(text);
}
