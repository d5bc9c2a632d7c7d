// SPDX-License-Identifier: MIT
/* position_text.c - see position_text.h */
#include "query/session/position_text.h"

#include "query/session/part_trace.h"

#include "format/files/file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has_digit(const char *text)
{
    return *text >= '0' && *text <= '9';
}

bool tbd_position_has_time(const struct tbd_session *session, uint64_t time)
{
    const struct tbd_counted_part *part = session->part;

    return part == NULL || (part->from == 0 && time < part->end);
}

/* ---- writing ---- */

static void put(const struct tbd_session *session, uint64_t time, struct tbd_position_text *out)
{
    uint32_t index = tbd_position_has_time(session, time)
                         ? UINT32_MAX
                         : tbd_trace_window_of(session->trace, time);
    const struct tbd_window_summary *window =
        index == UINT32_MAX ? NULL : tbd_trace_window(session->trace, index);

    if (window == NULL)
        snprintf(out->text, sizeof(out->text), "%" PRIu64, time);
    else
        snprintf(out->text, sizeof(out->text), "@w%" PRIu32 "+%" PRIu64, window->number,
                 time - window->first_time);
}

struct tbd_position_text tbd_time_text(const struct tbd_session *session, uint64_t time)
{
    struct tbd_position_text out;

    put(session, time, &out);
    return out;
}

struct tbd_position_text tbd_position_text(const struct tbd_session *session,
                                           struct tbd_position position)
{
    struct tbd_position_text out;
    size_t used;

    put(session, position.time, &out);
    used = strlen(out.text);
    snprintf(out.text + used, sizeof(out.text) - used, "+%" PRIu32, position.offset);
    return out;
}

/* ---- reading ---- */

static size_t number_length(const char *text)
{
    return strspn(text, "0123456789");
}

size_t tbd_position_in_window(const char *text)
{
    size_t length = 2;

    if (text[0] != '@' || text[1] != 'w' || !has_digit(text + 2))
        return 0;
    length += number_length(text + length);
    for (unsigned i = 0; i < 2 && text[length] == '+' && has_digit(text + length + 1); i++)
        length += 1 + number_length(text + length + 1);
    return length;
}

static enum tbd_status refuse(struct tbd_session *session, const char *text, const char *what)
{
    return tbd_error_set(&session->why, TBD_NOTIME, "", 0, "%.*s: %s",
                         (int)tbd_position_in_window(text), text, what);
}

/* Reads "+NUMBER", if there is one. */
static bool read_more(const char **io, uint64_t most, uint64_t *out)
{
    char *end;

    *out = 0;
    if (**io != '+' || !has_digit(*io + 1))
        return true;
    errno = 0;
    *out = strtoull(*io + 1, &end, 10);
    *io = end;
    return errno == 0 && *out <= most;
}

enum tbd_status tbd_position_read(struct tbd_session *session, const char *text,
                                  struct tbd_position *out)
{
    const struct tbd_window_summary *first = tbd_trace_window(session->trace, 0), *window;
    const char *at = text + 2;
    uint64_t number, blocks, offset;
    uint32_t index;
    char *end;

    errno = 0;
    number = strtoull(at, &end, 10);
    at = end;
    if (errno != 0 || number >= UINT32_MAX || !read_more(&at, UINT64_MAX, &blocks) ||
        !read_more(&at, UINT32_MAX, &offset))
        return refuse(session, text,
                      "a position in a window is @wWINDOW+BLOCKS or @wWINDOW+BLOCKS+K");
    if (first != NULL && number < first->number)
        return refuse(session, text, "the window was dropped (budget or keep)");
    index = tbd_trace_window_with(session->trace, (uint32_t)number);
    window = index == UINT32_MAX ? NULL : tbd_trace_window(session->trace, index);
    if (window == NULL)
        return refuse(session, text, "the trace has no such window");
    if (window->number != number)
        return refuse(session, text, "the window was merged with others");
    if (tbd_part_has(session->part, index) && blocks >= window->blocks)
        return refuse(session, text, "the window has fewer block entries");
    *out = (struct tbd_position){ .time = window->first_time + blocks, .offset = (uint32_t)offset };
    return TBD_OK;
}

size_t tbd_position_take(struct tbd_session *session, const char *text, struct tbd_position *out)
{
    size_t length = tbd_position_in_window(text);
    int end = 0;

    if (length != 0)
        return tbd_position_read(session, text, out) == TBD_OK ? length : 0;
    if (sscanf(text, "%" SCNu64 "+%" SCNu32 "%n", &out->time, &out->offset, &end) != 2)
        return 0;
    return (size_t)end;
}
