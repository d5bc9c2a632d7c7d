// SPDX-License-Identifier: MIT
/* page_file.c - see page_file.h
 *
 * The style and the modules are put where the page names them, and the answers that the page would ask for (view.json)
 * into an element that its ask.js looks at first.
 *
 * PAGE-FILE-1  Modules are joined in the order of page_assets.def, without their lines that begin with "import", and without
 *     "export": so no name is on the top level of two of them. (not checked: the browser that opens the file does, in
 *     test_page.py)
 * PAGE-FILE-2  No recorded text ends the element that it is in: every "<" of the answers is written as an escape. */
#include "query/page/page_file.h"

#include "query/page/page_answer.h"
#include "query/page/page_assets.h"
#include "query/output/output.h"

#include <stdlib.h>
#include <string.h>

#define SUMS_PIXELS 1000u

/* ---- what the page asks ---- */

static json_t *answer_to(struct tbd_session *session, const struct tbd_page_place *place,
                         struct tbd_page_question question)
{
    question.has_at = true;
    question.place = *place;
    question.rows = TBD_PAGE_ROWS;
    return tbd_page_answer(session, &question);
}

/* The answer of each line, under the line. */
static void put_line(struct tbd_session *session, const struct tbd_page_place *place,
                     const char *line, json_t *lines)
{
    struct tbd_page_question question = { .lines = { (char *)(uintptr_t)line }, .line_count = 1 };
    json_t *answer = answer_to(session, place, question);

    json_object_set(lines, line, json_array_get(json_object_get(answer, "answers"), 0));
    json_decref(answer);
}

/* The same for a question whose answer is shown; `asked` has them in order. */
static void put_asked(struct tbd_session *session, const struct tbd_page_place *place,
                      const char *line, json_t *recorded)
{
    put_line(session, place, line, json_object_get(recorded, "lines"));
    json_array_append_new(json_object_get(recorded, "asked"), tbd_output_text(line));
}

static json_t *record(struct tbd_session *session, const struct tbd_page_place *place, size_t count,
                      char *const *asked)
{
    const struct tbd_page_asset *view = tbd_page_asset_called("view.json");
    json_t *groups =
        json_loadb((const char *)view->bytes, (size_t)(view->end - view->bytes), 0, NULL);
    json_t *recorded = json_object(), *lines = json_object(), *group, *value;
    struct tbd_page_question sums = { .kind = TBD_PAGE_SUMS,
                                      .pixels = SUMS_PIXELS,
                                      .has_span = true,
                                      .until = session->info->blocks };
    const char *name;
    size_t i;

    json_object_set(recorded, "lines", lines);
    json_object_set_new(recorded, "asked", json_array());
    json_object_foreach(groups, name, group)
    {
        if (strcmp(name, "dump") == 0 && !session->info->is_dump)
            continue;
        json_array_foreach(group, i, value)
            put_line(session, place, json_string_value(value), lines);
    }
    for (i = 0; i < count; i++)
        put_asked(session, place, asked[i], recorded);
    json_object_set_new(
        recorded, "begin",
        answer_to(session, place, (struct tbd_page_question){ .kind = TBD_PAGE_BEGINS }));
    json_object_set_new(recorded, "sums", answer_to(session, place, sums));
    json_object_set(recorded, "view", groups);
    json_decref(groups);
    json_decref(lines);
    return recorded;
}

/* ---- the file ---- */

/* Keeps PAGE-FILE-2. */
static void write_recorded(const json_t *recorded, FILE *out)
{
    char *text = json_dumps(recorded, JSON_COMPACT | JSON_ENSURE_ASCII);

    for (const char *at = text; at != NULL && *at != '\0'; at++) {
        if (*at == '<')
            fputs("\\u003c", out);
        else
            fputc(*at, out);
    }
    free(text);
}

static const char *line_end(const char *line, const char *end)
{
    const char *newline = memchr(line, '\n', (size_t)(end - line));

    return newline == NULL ? end : newline + 1;
}

static bool begins(const char *line, const char *end, const char *word)
{
    size_t length = strlen(word);

    return (size_t)(end - line) >= length && memcmp(line, word, length) == 0;
}

/* Keeps PAGE-FILE-1. */
static void write_module(const struct tbd_page_asset *asset, FILE *out)
{
    const char *end = (const char *)asset->end, *next;

    for (const char *line = (const char *)asset->bytes; line < end; line = next) {
        next = line_end(line, end);
        if (begins(line, next, "import "))
            continue;
        if (begins(line, next, "export "))
            line += strlen("export ");
        fwrite(line, 1, (size_t)(next - line), out);
    }
}

static void write_modules(FILE *out)
{
    const struct tbd_page_asset *asset;

    fputs("<script type=\"module\">\n", out);
    for (size_t i = 0; (asset = tbd_page_asset(i)) != NULL; i++)
        if (strncmp(asset->type, "text/javascript", 15) == 0)
            write_module(asset, out);
    fputs("</script>\n", out);
}

static void write_style(FILE *out)
{
    const struct tbd_page_asset *style = tbd_page_asset_called("style.css");

    fputs("<style>\n", out);
    fwrite(style->bytes, 1, (size_t)(style->end - style->bytes), out);
    fputs("</style>\n", out);
}

enum tbd_status tbd_page_write(struct tbd_session *session, const struct tbd_page_place *place,
                               size_t count, char *const *lines, FILE *out)
{
    const struct tbd_page_asset *index = tbd_page_asset_called("index.html");
    const char *end = (const char *)index->end, *next;
    json_t *recorded = record(session, place, count, lines);

    for (const char *line = (const char *)index->bytes; line < end; line = next) {
        next = line_end(line, end);
        if (begins(line, next, "<link rel=\"stylesheet\"")) {
            write_style(out);
        } else if (begins(line, next, "<script ")) {
            fputs("<script type=\"application/json\" id=\"recorded\">", out);
            write_recorded(recorded, out);
            fputs("</script>\n", out);
            write_modules(out);
        } else if (!begins(line, next, "<link rel=\"modulepreload\"")) {
            fwrite(line, 1, (size_t)(next - line), out);
        }
    }
    json_decref(recorded);
    return ferror(out) == 0 ? TBD_OK : TBD_SYSTEM;
}
