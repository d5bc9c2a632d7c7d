// SPDX-License-Identifier: MIT
/* event_lines.c - see event_lines.h */
#include "query/output/event_lines.h"

#include "base/address_table.h"
#include "base/safe_stream.h"
#include "query/output/call_shape.h"
#include "query/output/put_text.h"
#include "query/session/position_text.h"

#include <stdlib.h>

/* What is said of an instruction, in windows where the same modules are mapped; as long as it is this block's. */
struct kept_place {
    uint64_t pc;
    uint32_t mapped;
    uint32_t block, offset;
    char *text; /* owned: after the thread, to the end of the line; NULL: not made yet */
    size_t length;
    char *function; /* owned */
};

struct tbd_event_lines {
    struct tbd_session *session;
    struct tbd_address_table places; /* of struct kept_place */
    struct tbd_time_mapped here;
    struct tbd_buffer line; /* of the event */
    bool has_threads;
};

/* ---- places ---- */

static void forget(struct kept_place *place)
{
    free(place->text);
    free(place->function);
    place->text = place->function = NULL;
}

static char *text_of(const json_t *object)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);

    if (out == NULL)
        return NULL;
    tbd_output_print_place(object, out);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

static void make(struct tbd_event_lines *lines, const struct tbd_event *event,
                 struct kept_place *place)
{
    json_t *object = tbd_output_event(lines->session, event);
    const char *function = json_string_value(json_object_get(object, "function"));

    place->block = event->block;
    place->offset = event->position.offset;
    place->text = text_of(object);
    place->length = place->text == NULL ? 0 : strlen(place->text);
    place->function = tbd_shown_copy(function == NULL ? "" : function);
    if (place->text == NULL || place->function == NULL)
        forget(place);
    json_decref(object);
}

/* NULL without memory. */
static const struct kept_place *place_of(struct tbd_event_lines *lines,
                                         const struct tbd_event *event)
{
    struct kept_place *place = tbd_address_table_add(&lines->places, event->pc, lines->here.mapped);

    if (place == NULL)
        return NULL;
    if (place->text != NULL &&
        (place->block != event->block || place->offset != event->position.offset))
        forget(place);
    if (place->text == NULL)
        make(lines, event, place);
    return place->text == NULL ? NULL : place;
}

/* ---- what an event has of its own ---- */

static void put_number(struct tbd_buffer *line, const char *name, uint64_t value)
{
    tbd_buffer_text(line, name);
    tbd_buffer_hex(line, value);
}

static void put_enter(const struct tbd_event *event, const char *function, struct tbd_buffer *line)
{
    if ((event->flags & TBD_EVENT_BARE) != 0)
        return;
    tbd_buffer_text(line, "     ");
    tbd_buffer_text(line, function);
    for (unsigned i = 0; i < 6; i++)
        put_number(line, i == 0 ? " (" : ", ", event->args[i]);
    put_number(line, ")  from ", event->from);
    put_number(line, "  sp ", event->sp);
    tbd_buffer_byte(line, '\n');
}

static void put_exit(const struct tbd_event *event, const char *function, struct tbd_buffer *line)
{
    (void)function;
    put_number(line, "     retval ", event->retval);
    put_number(line, "  sp ", event->sp);
    tbd_buffer_byte(line, '\n');
}

static void put_nothing(const struct tbd_event *event, const char *function,
                        struct tbd_buffer *line)
{
    (void)event;
    (void)function;
    (void)line;
}

static void (*const own[TBD_EVENT_TYPE_COUNT])(const struct tbd_event *event, const char *function,
                                               struct tbd_buffer *line) = {
    [TBD_EVENT_FUNC_ENTER] = put_enter,
    [TBD_EVENT_FUNC_EXIT] = put_exit,
    [TBD_EVENT_BLOCK_ENTRY] = put_nothing,
    [TBD_EVENT_LINE] = put_nothing,
};

/* ---- lines ---- */

struct tbd_event_lines *tbd_event_lines_new(struct tbd_session *session)
{
    struct tbd_event_lines *lines = calloc(1, sizeof(*lines));

    if (lines == NULL)
        return NULL;
    lines->session = session;
    lines->places =
        (struct tbd_address_table){ .element = sizeof(struct kept_place), .has_more = true };
    lines->has_threads = session->trace != NULL && tbd_trace_thread_count(session->trace) > 1;
    return lines;
}

void tbd_event_lines_free(struct tbd_event_lines *lines)
{
    struct kept_place *all;

    if (lines == NULL)
        return;
    all = lines->places.entries;
    for (size_t i = 0; all != NULL && i <= lines->places.mask; i++)
        forget(&all[i]);
    tbd_address_table_free(&lines->places);
    tbd_buffer_free(&lines->line);
    free(lines);
}

/* An event without its block is at an instruction that only its window tells. */
static bool is_simple(struct tbd_event_lines *lines, const struct tbd_event *event)
{
    const struct tbd_session *session = lines->session;

    return session->trace != NULL && !session->json && !session->shows_wall && event->block != 0 &&
           event->type < TBD_EVENT_TYPE_COUNT && own[event->type] != NULL &&
           (event->flags & TBD_EVENT_RESUMED) == 0 &&
           tbd_time_mapped_find(session, event->position.time, &lines->here) &&
           tbd_position_has_time(session, event->position.time);
}

static void put_head(const struct tbd_event_lines *lines, const struct tbd_event *event,
                     struct tbd_buffer *line)
{
    tbd_buffer_unsigned(line, event->position.time);
    tbd_buffer_byte(line, '+');
    tbd_buffer_unsigned(line, event->position.offset);
    tbd_buffer_text(line, "  ");
    tbd_buffer_text(line, tbd_event_type_name(event->type));
    tbd_buffer_text(line, "  ");
    if (!lines->has_threads)
        return;
    tbd_buffer_text(line, "thread ");
    tbd_buffer_unsigned(line, event->thread);
    tbd_buffer_text(line, "  ");
}

bool tbd_event_lines_print(struct tbd_event_lines *lines, const struct tbd_event *event, FILE *out)
{
    const struct kept_place *place;

    if (lines == NULL || !is_simple(lines, event) || (place = place_of(lines, event)) == NULL)
        return false;
    lines->line.used = 0;
    put_head(lines, event, &lines->line);
    tbd_buffer_put(&lines->line, place->text, place->length);
    own[event->type](event, place->function, &lines->line);
    if (lines->line.failed) {
        tbd_buffer_free(&lines->line);
        return false;
    }
    fwrite(lines->line.bytes, 1, lines->line.used, out);
    return true;
}
