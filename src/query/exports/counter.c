// SPDX-License-Identifier: MIT
/* counter.c - see counter.h */
#include "query/exports/counter.h"

#include <string.h>

static bool is_number(const struct tbd_type_view *view)
{
    return view->kind == TBD_TYPE_INTEGER || view->kind == TBD_TYPE_ENUM ||
           view->kind == TBD_TYPE_POINTER || view->kind == TBD_TYPE_FLOAT;
}

enum tbd_exit tbd_counter_open(struct tbd_command_run *run, const char *text,
                               struct tbd_counter *out)
{
    struct tbd_command_run own = *run;
    struct tbd_query_error error = { .status = TBD_TYPE, .length = strlen(text) };
    struct tbd_type_view view;
    enum tbd_exit result;

    own.text = text;
    own.arguments = 0;
    *out = (struct tbd_counter){ .run = run, .text = text };
    result = tbd_command_value_of(&own, tbd_session_current(run->session), 0, strlen(text),
                                  &out->place, &out->data);
    if (result != TBD_EXIT_FOUND)
        return result;
    view = tbd_type_look(&out->data.type);
    out->is_real = view.kind == TBD_TYPE_FLOAT;
    out->bytes = out->data.bits != 0 ? (out->data.bit_offset + out->data.bits + 7) / 8
                                     : (uint32_t)view.bytes;
    if (!out->data.is_known || !out->data.in_memory)
        snprintf(error.message, sizeof(error.message), "it has no place in memory here");
    else if (!is_number(&view) || out->bytes == 0 || out->bytes > sizeof(out->now))
        snprintf(error.message, sizeof(error.message), "a counter is a number of up to 8 bytes");
    if (error.message[0] == '\0')
        return TBD_EXIT_FOUND;
    tbd_source_place_close(&out->place);
    return tbd_command_wrong(&own, &error);
}

void tbd_counter_close(struct tbd_counter *counter)
{
    tbd_source_place_close(&counter->place);
}

/* The bytes of `now` as a number. */
static bool value_of(const struct tbd_counter *counter, uint64_t time,
                     struct tbd_counter_value *out)
{
    const struct tbd_place_of *place = &counter->place.places[0];
    struct tbd_data data = counter->data;
    long double real = 0;
    uint64_t number = 0;
    bool is_good;

    data.in_memory = false;
    data.byte_count = counter->bytes;
    memcpy(data.bytes, counter->now, counter->bytes);
    is_good = counter->is_real ? tbd_data_float(place, &data, &real)
                               : tbd_data_scalar(place, &data, &number);
    *out = (struct tbd_counter_value){
        .time = time, .is_real = counter->is_real, .number = (int64_t)number, .real = (double)real
    };
    return is_good;
}

struct counter_reading {
    struct tbd_counter *counter;
    bool (*each)(void *context, const struct tbd_counter_value *value);
    void *context;
};

/* These are the bytes from this time on. */
static bool take(struct counter_reading *reading, uint64_t time, const uint8_t *bytes)
{
    struct tbd_counter *counter = reading->counter;
    struct tbd_counter_value value;

    if (counter->has_now && memcmp(bytes, counter->now, counter->bytes) == 0)
        return true;
    memcpy(counter->now, bytes, counter->bytes);
    counter->has_now = true;
    return !value_of(counter, time, &value) || reading->each(reading->context, &value);
}

static bool take_store(void *context, const struct tbd_event *event)
{
    struct counter_reading *reading = context;
    const struct tbd_counter *counter = reading->counter;
    struct tbd_position after = { event->position.time, event->position.offset + 1 };
    uint8_t bytes[sizeof(counter->now)];

    if (event->addr == counter->data.address && event->size == counter->bytes &&
        event->fresh == NULL && (event->flags & TBD_EVENT_HAS_VALUE) != 0)
        memcpy(bytes, &event->value, counter->bytes);
    else if (tbd_session_read(counter->run->session, after, counter->data.address, bytes,
                              counter->bytes) != TBD_OK)
        return true;
    return take(reading, event->position.time, bytes);
}

enum tbd_exit tbd_counter_each(struct tbd_counter *counter,
                               bool (*each)(void *context, const struct tbd_counter_value *value),
                               void *context)
{
    struct counter_reading reading = { .counter = counter, .each = each, .context = context };
    struct tbd_session *session = counter->run->session;
    struct tbd_question question = tbd_question_all(TBD_EVENT_STORE);
    struct tbd_position first = tbd_session_first(session);
    uint8_t bytes[sizeof(counter->now)];

    counter->has_now = false;
    if (tbd_session_read(session, first, counter->data.address, bytes, counter->bytes) == TBD_OK &&
        !take(&reading, first.time, bytes)) {
        tbd_question_free(&question);
        return TBD_EXIT_FOUND;
    }
    tbd_question_where(&question, tbd_expr_touches(counter->data.address, counter->bytes));
    return tbd_command_each(counter->run, &question, take_store, &reading);
}
