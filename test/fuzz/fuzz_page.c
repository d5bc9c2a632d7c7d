// SPDX-License-Identifier: MIT
// links: tbd_query_page
/* fuzz_page.c - what browsers send to the page's server: the first byte chooses a body, a Host and an Origin, or a path
 *
 * Oracles: a question that is read keeps its bounds, is read again as the same, and has no control character in a line;
 * what is refused has a reason.  A Host that is accepted is a name of this machine by a second, plain test, and an Origin is
 * the one made of it.  A path is accepted exactly if it begins with the token. */
#include "query/page/page_request.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char token[TBD_PAGE_TOKEN_BYTES] = "0123456789abcdef0123456789abcdef";

static void check(bool good)
{
    if (!good)
        abort();
}

static void check_lines(const struct tbd_page_question *question)
{
    check(question->line_count <= TBD_PAGE_LINES);
    for (size_t i = 0; i < question->line_count; i++) {
        check(strlen(question->lines[i]) < TBD_PAGE_LINE_BYTES);
        for (const char *at = question->lines[i]; *at != '\0'; at++)
            check((unsigned char)*at >= ' ' && *at != 0x7f);
    }
}

static void check_question(const struct tbd_page_question *question)
{
    check_lines(question);
    check(question->kind != TBD_PAGE_ASKS || question->line_count != 0);
    check(question->kind != TBD_PAGE_COMPLETES || question->line_count == 1);
    check(question->kind != TBD_PAGE_SUMS ||
          (question->pixels != 0 && question->pixels <= TBD_PAGE_PIXELS && question->has_span));
    check(question->rows != 0 && question->rows <= TBD_PAGE_ROWS);
    check(!question->has_span || question->since < question->until);
    check(memchr(question->id, '\0', sizeof(question->id)) != NULL);
}

static void try_body(const char *text, size_t size)
{
    struct tbd_page_question question, again;
    const char *why = NULL;

    if (!tbd_page_question_read(text, size, &question, &why)) {
        check(why != NULL && *why != '\0');
        return;
    }
    check_question(&question);
    check(tbd_page_question_read(text, size, &again, &why));
    check(again.kind == question.kind && again.line_count == question.line_count &&
          again.rows == question.rows && again.place.frame == question.place.frame);
    tbd_page_question_free(&question);
    tbd_page_question_free(&again);
}

static bool is_own_name(const char *host)
{
    const char *colon = strrchr(host, ':');
    size_t length = colon == NULL || *host == '[' ? strlen(host) : (size_t)(colon - host);

    if (*host == '[')
        return strncmp(host, "[::1]", 5) == 0 && (host[5] == '\0' || host[5] == ':');
    return (length == 9 &&
            (memcmp(host, "127.0.0.1", 9) == 0 || memcmp(host, "localhost", 9) == 0));
}

static void try_host(const char *text)
{
    char origin[8200];

    snprintf(origin, sizeof(origin), "http://%s", text);
    check(!tbd_page_is_host(text) || is_own_name(text));
    check(tbd_page_is_origin(NULL, text) && tbd_page_is_origin(origin, text));
    check(!tbd_page_is_origin(text, "localhost:1") || strcmp(text, "http://localhost:1") == 0);
}

static void try_path(const char *text)
{
    bool begins = text[0] == '/' && strncmp(text + 1, token, sizeof(token) - 1) == 0 &&
                  text[sizeof(token)] == '/';
    const char *path = tbd_page_path(text, token);

    check((path != NULL) == begins);
    check(path == NULL || path == text + sizeof(token) + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = size == 0 ? NULL : malloc(size);

    if (text == NULL)
        return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    switch (data[0] % 3) {
    case 0: try_body(text, size - 1); break;
    case 1: try_host(text); break;
    default: try_path(text); break;
    }
    free(text);
    return 0;
}
