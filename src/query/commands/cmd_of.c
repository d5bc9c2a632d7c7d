// SPDX-License-Identifier: MIT
/* cmd_of.c - "store 1 of EXPRESSION where ...": the stores to what a C expression denotes
 *
 * The expression is resolved once, in the frame where the search starts, to the bytes that it denotes
 * there.  The question then has a condition on addresses, touches[ADDRESS,BYTES], which can be
 * answered from the summaries of windows.  In the user's condition, oldval and newval are the
 * variable before and after the event, with its type; old.MEMBER and new.MEMBER are its members.
 *
 * CMD_OF-1  A user's condition is parsed as it was written: places in messages are places in the
 *     run's text. (not checked: test_habits.py does) */
#include "query/commands/commands.h"
#include "query/debuginfo/register_names.h"
#include "query/session/source/source_place.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* An expression that has been resolved. */
struct object {
    const struct tbd_command_run *run;
    const struct tbd_question_words *words;
    struct tbd_c_scope scope;
    struct tbd_data data;
};

static enum tbd_exit refuse(const struct object *object, const char *format, const char *why)
{
    struct tbd_query_error error = { .status = TBD_TYPE,
                                     .at = object->words->object,
                                     .length = object->words->of_end - object->words->object };

    snprintf(error.message, sizeof(error.message), "%s%s", format, why);
    return tbd_command_wrong(object->run, &error);
}

/* ---- $NAME, frame.NAME ---- */

static const char *cast_of(const struct tbd_type_view *view)
{
    static const char *const casts[] = {
        [1] = "signed char", [2] = "short", [4] = "int", [8] = "long"
    };

    if (!view->is_signed || view->kind == TBD_TYPE_POINTER || view->kind == TBD_TYPE_FLOAT)
        return NULL;
    return view->bytes < sizeof(casts) / sizeof(casts[0]) ? casts[view->bytes] : NULL;
}

/* A number with its type; false if it is none. */
static bool take_number(const struct tbd_place_of *place, const struct tbd_data *data,
                        struct tbd_expr_stand_in *out)
{
    struct tbd_type_view view = tbd_type_look(&data->type);
    long double real;
    double value;

    *out = (struct tbd_expr_stand_in){ .is_number = true };
    if (view.kind == TBD_TYPE_FLOAT) {
        if (!tbd_data_float(place, data, &real))
            return false;
        value = (double)real;
        memcpy(&out->number, &value, sizeof(value));
        out->is_real = true;
        return true;
    }
    if (view.kind == TBD_TYPE_ARRAY && data->in_memory) {
        out->number = data->address;
        return true;
    }
    if (!tbd_data_scalar(place, data, &out->number))
        return false;
    if (view.kind == TBD_TYPE_POINTER)
        (void)tbd_type_text(&data->type, out->type, sizeof(out->type));
    else if (cast_of(&view) != NULL)
        snprintf(out->type, sizeof(out->type), "%s", cast_of(&view));
    return true;
}

/* The value of text[at, at + length) where one stands now. */
static bool take_here(const struct tbd_command_run *run, const char *text, size_t at, size_t length,
                      struct tbd_expr_stand_in *out, struct tbd_query_error *error)
{
    struct tbd_query_error problem = { 0 };
    struct tbd_source_place place;
    struct tbd_data data;
    bool good;

    if (tbd_source_evaluate(run->session, tbd_session_current(run->session), text, at, at + length,
                            &place, &data, &problem) != TBD_OK)
        return tbd_query_wrong(error, TBD_NAME, at, length, "%s",
                               problem.message[0] != '\0' ? problem.message
                                                          : "nothing is known at this position");
    good = data.is_known && take_number(&place.places[0], &data, out);
    if (!good && !data.is_known)
        (void)tbd_query_wrong(error, TBD_TYPE, at, length, "it has no value here: %s", data.why);
    else if (!good)
        (void)tbd_query_wrong(error, TBD_TYPE, at, length, "this is no single number");
    tbd_source_place_close(&place);
    return good;
}

/* $x: a value that was kept, or a variable of the selected frame, as it is where one stands; frame.x
 * is the latter.  Registers are those of the event. */
static bool find_here(const struct tbd_command_run *run, const char *text, size_t at, size_t length,
                      struct tbd_expr_stand_in *out, struct tbd_query_error *error)
{
    static const char frame[] = "frame.";
    struct tbd_register_name reg;
    struct tbd_data kept;
    char name[64];

    if (text[at] == '$') {
        snprintf(name, sizeof(name), "%.*s", (int)length, text + at);
        if (tbd_register_find(text + at + 1, length - 1, &reg))
            return false;
        if (tbd_user_values_find(&run->session->values, name, &kept))
            return take_here(run, text, at, length, out, error);
        return length > 1 && take_here(run, text, at + 1, length - 1, out, error);
    }
    return length > sizeof(frame) - 1 && strncmp(text + at, frame, sizeof(frame) - 1) == 0 &&
           take_here(run, text, at + sizeof(frame) - 1, length - sizeof(frame) + 1, out, error);
}

/* ---- oldval, newval, old.MEMBER, new.MEMBER ---- */

/* Describes a scalar variable before or after the event; false if it is no scalar. */
static bool take_scalar(const struct tbd_data *data, bool is_after, struct tbd_expr_stand_in *out)
{
    struct tbd_type_view view = tbd_type_look(&data->type);
    bool real = view.kind == TBD_TYPE_FLOAT && (view.bytes == 4 || view.bytes == 8);
    bool whole = view.kind == TBD_TYPE_INTEGER || view.kind == TBD_TYPE_ENUM ||
                 view.kind == TBD_TYPE_POINTER;
    const char *cast = cast_of(&view);

    if (!data->is_known || !data->in_memory || data->bits != 0 || (!real && !whole) ||
        view.bytes < 1 || view.bytes > 8)
        return false;
    *out = (struct tbd_expr_stand_in){
        .address = data->address, .bytes = view.bytes, .is_after = is_after, .is_real = real
    };
    if (view.kind == TBD_TYPE_POINTER)
        (void)tbd_type_text(&data->type, out->type, sizeof(out->type));
    else if (cast != NULL)
        snprintf(out->type, sizeof(out->type), "%s", cast);
    return true;
}

/* Finds the member ".a.b" of the object. */
static bool take_member(const struct object *object, const char *path, size_t length,
                        struct tbd_data *out, struct tbd_query_error *error)
{
    const struct tbd_question_words *words = object->words;
    char *text;
    bool good;

    if (asprintf(&text, "(%.*s)%.*s", (int)(words->of_end - words->object),
                 words->text + words->object, (int)length, path) < 0)
        return tbd_query_wrong(error, TBD_NOMEM, 0, 0, "out of memory");
    good = tbd_c_evaluate(&object->scope, text, 0, strlen(text), out, error) == TBD_OK;
    free(text);
    return good;
}

/* Finds old.x or new.a.b, which is the text[at, at + length). */
static bool find_member(const struct object *object, size_t at, size_t length,
                        struct tbd_expr_stand_in *out, struct tbd_query_error *error)
{
    const char *word = object->words->text + at;
    struct tbd_query_error problem = { 0 };
    struct tbd_data data;

    if (!take_member(object, word + 3, length - 3, &data, &problem))
        return tbd_query_wrong(error, TBD_TYPE, at, length, "%s", problem.message);
    if (!take_scalar(&data, word[0] == 'n', out))
        return tbd_query_wrong(error, TBD_TYPE, at, length, "this member has no single value");
    return true;
}

/* "thread==2": the second thread, unless one has this id. */
static bool find_thread(const struct tbd_command_run *run, const char *word,
                        struct tbd_expr_stand_in *out)
{
    unsigned long number = strtoul(word, NULL, 0);

    if (number > UINT32_MAX)
        return false;
    *out = (struct tbd_expr_stand_in){
        .is_number = true, .number = tbd_session_thread_called(run->session, (uint32_t)number)
    };
    return out->number != number;
}

static bool find_word(void *context, const char *text, size_t at, size_t length,
                      struct tbd_expr_stand_in *out, struct tbd_query_error *error)
{
    const struct object *object = context;
    const char *word = text + at;

    if (word[0] >= '0' && word[0] <= '9')
        return find_thread(object->run, word, out);
    if (word[0] == '$' || word[0] == 'f')
        return find_here(object->run, text, at, length, out, error);
    if (object->words->of_end == 0)
        return false;
    if (length == 6 && (memcmp(word, "oldval", 6) == 0 || memcmp(word, "newval", 6) == 0))
        return take_scalar(&object->data, word[0] == 'n', out);
    if (length > 4 && (memcmp(word, "old.", 4) == 0 || memcmp(word, "new.", 4) == 0))
        return find_member(object, at, length, out, error);
    return false;
}

/* ---- the question ---- */

static enum tbd_exit take_condition(const struct tbd_command_run *run,
                                    struct tbd_question *question,
                                    const struct tbd_question_words *words,
                                    const struct tbd_expr_words *own)
{
    struct tbd_query_error error = { 0 };

    return tbd_question_take_where(question, words, own, &error) == TBD_OK
               ? TBD_EXIT_FOUND
               : tbd_command_wrong(run, &error);
}

static enum tbd_exit take_object(struct object *object, struct tbd_question *question)
{
    struct tbd_expr_words own = { find_word, object };
    const struct tbd_data *data = &object->data;
    uint64_t bytes = data->bits != 0 ? (data->bit_offset + data->bits + 7) / 8
                                     : tbd_type_look(&data->type).bytes;

    if (!data->is_known)
        return refuse(object, "it has no place in memory there: ", data->why);
    if (!data->in_memory)
        return refuse(object,
                      "it has no place in memory there: ", "it is in a register, or a result");
    if (bytes == 0)
        return refuse(object, "it has no place in memory there: ", "its size is not known");
    tbd_question_where(question, tbd_expr_touches(data->address, bytes));
    return take_condition(object->run, question, object->words, &own);
}

/* The position at which the expression is evaluated; a window may have to be replayed for it. */
static struct tbd_position place_of(struct tbd_session *session,
                                    const struct tbd_question *question)
{
    return question->count == TBD_QUESTION_ALL ? tbd_session_current(session)
                                               : tbd_command_start(session, question);
}

static void take_span(const struct tbd_session *session, struct tbd_question *question)
{
    if (!question->is_search)
        return;
    if (session->span.has_since)
        question->since = session->span.since;
    question->has_until = session->span.has_until;
    question->until = session->span.until;
}

enum tbd_exit tbd_command_take_words(struct tbd_command_run *run,
                                     const struct tbd_question_words *words,
                                     struct tbd_question *question)
{
    struct object object = { .run = run, .words = words };
    struct tbd_expr_words own = { find_word, &object };
    struct tbd_source_place place;
    enum tbd_exit result;

    take_span(run->session, question);
    if (words->of_end == 0)
        return take_condition(run, question, words, &own);
    if (question->type != TBD_EVENT_STORE && question->type != TBD_EVENT_LOAD)
        return refuse(&object, "only a store or a load is one of a variable", "");
    result = tbd_command_value_of(run, place_of(run->session, question), words->object,
                                  words->of_end, &place, &object.data);
    if (result != TBD_EXIT_FOUND)
        return result;
    object.scope = tbd_source_scope(&place);
    result = take_object(&object, question);
    tbd_source_place_close(&place);
    return result;
}
