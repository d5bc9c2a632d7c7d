// SPDX-License-Identifier: MIT
/* page_command.c - see page_command.h */
#include "query/page/page_command.h"

#include "query/page/http_library.h"
#include "query/page/page_file.h"
#include "query/page/page_server.h"
#include "query/session/source/source.h"

#include "base/safe_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct page_options {
    uint16_t port;
    const char *file; /* NULL: serve */
    size_t count;
    char *const *lines; /* questions whose answers go into the file */
};

static bool read_port(const char *text, uint16_t *out)
{
    char *end;
    unsigned long port = strtoul(text, &end, 10);

    *out = (uint16_t)port;
    return *text >= '0' && *text <= '9' && *end == '\0' && port <= UINT16_MAX;
}

static bool read_options(size_t count, char *const *words, struct page_options *out)
{
    size_t i = 1;

    for (; i + 1 < count; i += 2) {
        if (strcmp(words[i], "--out") == 0)
            out->file = words[i + 1];
        else if (strcmp(words[i], "--port") != 0 || !read_port(words[i + 1], &out->port))
            break;
    }
    out->lines = words + i;
    out->count = count - i;
    return out->count == 0 || (out->file != NULL && words[i][0] != '-');
}

static enum tbd_exit system_says(const char *what)
{
    fprintf(stderr, "tbdq: %s: %s\n", tbd_shown(what), strerror(errno));
    return TBD_EXIT_SYSTEM;
}

/* The current position, thread and frame. */
static struct tbd_page_place current_place(struct tbd_session *session)
{
    struct tbd_session_before before = tbd_session_before(session);
    struct tbd_page_place place = { .at = tbd_session_current(session) };

    if (before.back != 0)
        return (struct tbd_page_place){ .at.offset = before.insn,
                                        .back = before.back,
                                        .thread = before.thread };
    place.thread = session->thread;
    place.frame = tbd_source_selected(session, place.at);
    return place;
}

static enum tbd_exit write_file(struct tbd_session *session, const struct page_options *options)
{
    struct tbd_page_place place = current_place(session);
    FILE *file = fopen(options->file, "we");
    enum tbd_status status;

    if (file == NULL)
        return system_says(options->file);
    status = tbd_page_write(session, &place, options->count, options->lines, file);
    if (fclose(file) != 0 || status != TBD_OK)
        return system_says(options->file);
    return TBD_EXIT_FOUND;
}

static enum tbd_exit serve(struct tbd_session *session, uint16_t port, FILE *out)
{
    struct tbd_page_place start = current_place(session);

    if (!tbd_http_load()) {
        fprintf(stderr, "tbdq: cannot load " TBD_HTTP_LIBRARY
                        ", which serves the page\nhint: install it (Debian: libmicrohttpd12), "
                        "or write a page into a file: `tbdq view --out FILE`\n");
        return TBD_EXIT_USAGE;
    }
    if (tbd_page_serve(session, port, &start, out) == TBD_OK)
        return TBD_EXIT_FOUND;
    return system_says("the page cannot be served");
}

bool tbd_page_command(struct tbd_session *session, size_t count, char *const *words, FILE *out,
                      enum tbd_exit *result)
{
    struct page_options options = { .port = 0 };

    if (count == 0 || strcmp(words[0], "view") != 0)
        return false;
    if (!read_options(count, words, &options)) {
        fprintf(stderr,
                "tbdq: expected --port N, or --out FILE and questions\nhint: `tbdq help view`\n");
        *result = TBD_EXIT_USAGE;
        return true;
    }
    session->shows_wall = session->json = true;
    if (options.file != NULL) {
        *result = write_file(session, &options);
    } else {
        *result = serve(session, options.port, out);
    }
    return true;
}
