// SPDX-License-Identifier: MIT
/* cmd_break.c - break, watch, continue and their likes, with gdb's meaning
 *
 * A breakpoint is a question (session/breakpoints.h); `continue` asks all of them and goes to the nearest
 * answer.  Where none is left it goes to the end of the recording, as gdb does.  A watched expression is
 * resolved to bytes of memory when it is given. */
#include "query/commands/break_place.h"
#include "query/commands/functions.h"

#include "query/output/output.h"
#include "query/session/source/source_place.h"

#include "base/safe_stream.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- what a user wrote ---- */

struct wish {
    const char *place; /* [place, place_end): where, or what is watched */
    const char *place_end;
    const char *condition; /* up to the text's end; NULL: none */
    uint32_t thread;       /* in this thread only; 0: in any */
};

static const char *skip_blanks(const char *text)
{
    return text + strspn(text, " \t");
}

static const char *before_blanks(const char *from, const char *end)
{
    while (end > from && isblank((unsigned char)end[-1]))
        end--;
    return end;
}

/* Takes "thread N" from the end of the place. */
static void take_thread(const struct tbd_command_run *run, struct wish *wish)
{
    static const char word[] = "thread";
    const char *number = wish->place_end, *before;
    char text[16];

    while (number > wish->place && isdigit((unsigned char)number[-1]))
        number--;
    before = before_blanks(wish->place, number);
    if (before == number || (size_t)(wish->place_end - number) >= sizeof(text) ||
        (size_t)(before - wish->place) <= strlen(word) ||
        memcmp(before - strlen(word), word, strlen(word)) != 0 ||
        !isblank((unsigned char)before[-1 - (ptrdiff_t)strlen(word)]))
        return;
    snprintf(text, sizeof(text), "%.*s", (int)(wish->place_end - number), number);
    if (tbd_command_find_thread(run->session, text, &wish->thread))
        wish->place_end = before_blanks(wish->place, before - strlen(word));
}

/* "PLACE [thread N] [if CONDITION]"; false: there is no place. */
static bool read_wish(const struct tbd_command_run *run, struct wish *out)
{
    const char *text = run->text + run->arguments, *found = strstr(text, " if ");

    *out = (struct wish){ .place = text, .place_end = found != NULL ? found : strchr(text, '\0') };
    out->condition = found != NULL ? skip_blanks(found + strlen(" if ")) : NULL;
    out->place_end = before_blanks(out->place, out->place_end);
    take_thread(run, out);
    return out->place_end > out->place && (out->condition == NULL || *out->condition != '\0');
}

static bool is_number(const char *text, const char *end)
{
    const char *at = text;

    while (at < end && isdigit((unsigned char)*at))
        at++;
    return at == end && at > text;
}

/* NULL after a message. */
static char *place_question(const struct tbd_command_run *run, const struct wish *wish,
                            enum tbd_exit *out_result)
{
    const char *why;
    char *question =
        tbd_break_place(run->session, wish->place, (size_t)(wish->place_end - wish->place), &why);

    if (question == NULL)
        *out_result = why == NULL ? tbd_command_no_memory() : tbd_command_usage(run, why);
    return question;
}

/* ---- setting ---- */

/* The question of a breakpoint from a position on; errors are said to be in `run`. */
static enum tbd_exit read_question(struct tbd_command_run *run, struct tbd_position from,
                                   bool backward, struct tbd_question *out)
{
    enum tbd_exit result = tbd_command_read_all(run, 0, strlen(run->text), out);

    if (result != TBD_EXIT_FOUND)
        return result;
    out->from = TBD_FROM_POSITION;
    out->position = from;
    out->backward = backward;
    out->count = 1;
    return TBD_EXIT_FOUND;
}

static struct tbd_command_run run_of(const struct tbd_command_run *run, const char *question)
{
    struct tbd_command_run own = *run;

    own.text = question;
    own.arguments = 0;
    own.argc = 0;
    own.silent = true;
    return own;
}

/* The nearest event of one question; TBD_EXIT_NOT_FOUND: none. */
static enum tbd_exit find_one(const struct tbd_command_run *run, const char *text,
                              struct tbd_position from, bool backward, struct tbd_event *out)
{
    struct tbd_command_run own = run_of(run, text);
    struct tbd_question question;
    uint64_t found;
    enum tbd_exit result = read_question(&own, from, backward, &question);

    if (result != TBD_EXIT_FOUND)
        return result;
    result = tbd_command_search(&own, &question, out, &found);
    tbd_question_free(&question);
    return result;
}

static void print_set(const struct tbd_command_run *run, const struct tbd_breakpoint *one)
{
    json_t *object;

    if (!run->session->json) {
        fprintf(run->out, "%u: %s\n", one->number, tbd_shown(one->shown));
        return;
    }
    object = json_object();
    json_object_set_new(object, "number", json_integer(one->number));
    json_object_set_new(object, "what", tbd_output_text(one->shown));
    json_object_set_new(object, "stops", json_integer((json_int_t)one->stops));
    tbd_output_line(object, run->out);
}

/* Keeps a question if it means something: after the end of the recording it has no answer, but its
 * names are looked up. */
static enum tbd_exit keep(struct tbd_command_run *run, const char *question, bool is_temporary)
{
    struct tbd_breakpoint *made;
    struct tbd_event event;
    enum tbd_exit result = find_one(run, question, tbd_session_last(run->session), false, &event);

    if (result != TBD_EXIT_FOUND && result != TBD_EXIT_NOT_FOUND)
        return result;
    made = tbd_breakpoints_add(&run->session->breakpoints, run->text, question, is_temporary);
    if (made == NULL)
        return tbd_command_no_memory();
    print_set(run, made);
    return TBD_EXIT_FOUND;
}

/* Takes `question`. */
static enum tbd_exit keep_with(struct tbd_command_run *run, char *question, const struct wish *wish,
                               bool is_temporary)
{
    const char *condition = wish->condition == NULL ? "1" : wish->condition;
    char *whole = NULL;
    enum tbd_exit result;
    int length;

    if (wish->thread != 0)
        length = asprintf(&whole, "%s and thread == %" PRIu32 " and (%s)", question, wish->thread,
                          condition);
    else if (wish->condition != NULL)
        length = asprintf(&whole, "%s and (%s)", question, condition);
    else
        length = asprintf(&whole, "%s", question);
    result = length < 0 ? tbd_command_no_memory() : keep(run, whole, is_temporary);
    if (length >= 0)
        free(whole);
    free(question);
    return result;
}

static enum tbd_exit set_breakpoint(struct tbd_command_run *run, bool is_temporary)
{
    enum tbd_exit result;
    struct wish wish;
    char *question, *place;

    if (!read_wish(run, &wish))
        return tbd_command_usage(run, "expected a function, FILE:LINE, or a line's number");
    question = place_question(run, &wish, &result);
    if (question == NULL)
        return result;
    result = keep_with(run, question, &wish, is_temporary);
    place = result == TBD_EXIT_FOUND ? strndup(wish.place, (size_t)(wish.place_end - wish.place))
                                     : NULL;
    if (place != NULL)
        tbd_functions_tell(run->session, place);
    free(place);
    return result;
}

enum tbd_exit tbd_command_break(struct tbd_command_run *run)
{
    return set_breakpoint(run, false);
}

enum tbd_exit tbd_command_tbreak(struct tbd_command_run *run)
{
    return set_breakpoint(run, true);
}

/* ---- watching ---- */

/* The bytes that an expression denotes now; says why it has none. */
static enum tbd_exit find_bytes(struct tbd_command_run *run, const struct wish *wish,
                                uint64_t *out_address, uint64_t *out_bytes)
{
    struct tbd_source_place place;
    struct tbd_data data;
    enum tbd_exit result = tbd_command_value_of(
        run, tbd_session_current(run->session), (size_t)(wish->place - run->text),
        (size_t)(wish->place_end - run->text), &place, &data);

    if (result != TBD_EXIT_FOUND)
        return result;
    *out_address = data.address;
    *out_bytes =
        data.bits != 0 ? (data.bit_offset + data.bits + 7) / 8 : tbd_type_look(&data.type).bytes;
    if (!data.is_known || !data.in_memory || *out_bytes == 0)
        result = tbd_command_usage(run, "it has no place in memory here: a register or a result "
                                        "cannot be watched (`history` has a variable's values)");
    tbd_source_place_close(&place);
    return result;
}

static enum tbd_exit watch(struct tbd_command_run *run, enum tbd_watch_kind what)
{
    uint64_t address, bytes;
    struct wish wish;
    enum tbd_exit result;
    char text[TBD_WATCH_BYTES], *question;

    if (!read_wish(run, &wish))
        return tbd_command_usage(run, "expected an expression, such as list->head");
    result = find_bytes(run, &wish, &address, &bytes);
    if (result != TBD_EXIT_FOUND)
        return result;
    tbd_watch_question(what, address, bytes, text);
    question = strdup(text);
    return question == NULL ? tbd_command_no_memory() : keep_with(run, question, &wish, false);
}

enum tbd_exit tbd_command_watch(struct tbd_command_run *run)
{
    return watch(run, TBD_WATCH_CHANGE);
}

enum tbd_exit tbd_command_rwatch(struct tbd_command_run *run)
{
    return watch(run, TBD_WATCH_LOAD);
}

/* ---- the list ---- */

enum tbd_exit tbd_command_breakpoints(struct tbd_command_run *run)
{
    const struct tbd_breakpoints *list = &run->session->breakpoints;

    if (run->argc != 0)
        return tbd_command_usage(run, "breakpoints takes no arguments");
    for (size_t i = 0; i < list->count; i++)
        print_set(run, &list->all[i]);
    if (list->count == 0 && !run->session->json)
        fprintf(run->out, "there are none: break PLACE, watch EXPR\n");
    return TBD_EXIT_FOUND; /* a list is an answer, also an empty one */
}

enum tbd_exit tbd_command_delete(struct tbd_command_run *run)
{
    if (run->argc == 0)
        tbd_breakpoints_clear(&run->session->breakpoints);
    for (unsigned i = 0; i < run->argc; i++) {
        const char *word = run->argv[i];

        if (!is_number(word, strchr(word, '\0')) ||
            !tbd_breakpoints_remove(&run->session->breakpoints, (unsigned)strtoul(word, NULL, 10)))
            return tbd_command_usage(run, "there is no such breakpoint: `breakpoints` lists them");
    }
    return TBD_EXIT_FOUND;
}

/* ---- going on ---- */

static bool is_nearer(struct tbd_position a, struct tbd_position b, bool backward)
{
    int order = tbd_position_compare(a, b);

    return backward ? order > 0 : order < 0;
}

/* The nearest event of all breakpoints; TBD_EXIT_NOT_FOUND: none is left. */
static enum tbd_exit find_nearest(struct tbd_command_run *run, struct tbd_position from,
                                  bool backward, struct tbd_event *out, unsigned *out_number)
{
    const struct tbd_breakpoints *list = &run->session->breakpoints;
    enum tbd_exit result = TBD_EXIT_NOT_FOUND;

    for (size_t i = 0; i < list->count; i++) {
        struct tbd_event event = { 0 };
        enum tbd_exit one = find_one(run, list->all[i].question, from, backward, &event);

        if (one != TBD_EXIT_FOUND && one != TBD_EXIT_NOT_FOUND)
            return one;
        if (one == TBD_EXIT_FOUND &&
            (result == TBD_EXIT_NOT_FOUND || is_nearer(event.position, out->position, backward))) {
            *out = event;
            *out_number = list->all[i].number;
            result = TBD_EXIT_FOUND;
        }
    }
    return result;
}

static void count_stop(struct tbd_breakpoints *list, unsigned number)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->all[i].number != number)
            continue;
        list->all[i].stops++;
        if (list->all[i].is_temporary)
            (void)tbd_breakpoints_remove(list, number);
        return;
    }
}

static enum tbd_exit go_to_end(struct tbd_command_run *run, bool backward)
{
    struct tbd_position end =
        backward ? tbd_session_first(run->session) : tbd_session_last(run->session);
    enum tbd_exit result = tbd_command_go(run, end);

    if (result == TBD_EXIT_FOUND && !run->session->json)
        fprintf(run->out, "no breakpoint is reached: here the recording %s\n",
                backward ? "begins" : "ends");
    return result == TBD_EXIT_FOUND ? TBD_EXIT_NOT_FOUND : result;
}

static void print_stop(struct tbd_command_run *run, const struct tbd_event *event, unsigned number)
{
    json_t *object = tbd_output_event(run->session, event);

    json_object_set_new(object, "breakpoint", json_integer(number));
    if (!run->session->json)
        fprintf(run->out, "breakpoint %u: ", number);
    tbd_output_print_event(run->session, object, run->out);
    json_decref(object);
}

static enum tbd_exit go_on(struct tbd_command_run *run, bool backward)
{
    uint64_t count = 1;
    char *end = NULL;
    struct tbd_event event = { 0 };
    unsigned number = 0;
    enum tbd_exit result;

    if (run->argc != 0)
        count = strtoull(run->argv[0], &end, 0);
    if (run->argc > 1 || count == 0 || (end != NULL && *end != '\0'))
        return tbd_command_usage(run, "expected a count of at least 1");
    for (; count != 0; count--) {
        result = find_nearest(run, tbd_session_current(run->session), backward, &event, &number);
        if (result == TBD_EXIT_NOT_FOUND)
            return go_to_end(run, backward);
        if (result != TBD_EXIT_FOUND)
            return result;
        tbd_command_move_to(run, &event);
        count_stop(&run->session->breakpoints, number);
    }
    print_stop(run, &event, number);
    return TBD_EXIT_FOUND;
}

enum tbd_exit tbd_command_continue(struct tbd_command_run *run)
{
    return go_on(run, false);
}

enum tbd_exit tbd_command_reverse_continue(struct tbd_command_run *run)
{
    return go_on(run, true);
}

/* ---- until PLACE, goto PLACE ---- */

/* Is the place reached here?  A search does not look at where it starts: it starts just before. */
static enum tbd_exit find_here(const struct tbd_command_run *run, const char *text,
                               struct tbd_position here, struct tbd_event *out)
{
    struct tbd_position from = { here.time, here.offset - 1 };
    enum tbd_exit result;

    if (here.offset == 0)
        from = (struct tbd_position){ here.time - 1, TBD_BLOCK_MAX_INSNS };
    if (here.offset == 0 && here.time == 0)
        return TBD_EXIT_NOT_FOUND;
    result = find_one(run, text, from, false, out);
    if (result == TBD_EXIT_FOUND && tbd_position_compare(out->position, here) != 0)
        return TBD_EXIT_NOT_FOUND;
    return result;
}

/* The next time that the place is reached; else the last one before, else this one. */
static enum tbd_exit find_around(const struct tbd_command_run *run, const char *text,
                                 struct tbd_event *out)
{
    struct tbd_position here = tbd_session_current(run->session);
    enum tbd_exit result = find_one(run, text, here, false, out);

    if (result != TBD_EXIT_NOT_FOUND)
        return result;
    result = find_one(run, text, here, true, out);
    if (result == TBD_EXIT_FOUND)
        fprintf(stderr, "tbdq: note: it is before the position where you were\n");
    if (result != TBD_EXIT_NOT_FOUND)
        return result;
    result = find_here(run, text, here, out);
    if (result == TBD_EXIT_FOUND)
        fprintf(stderr, "tbdq: note: it is reached only once: you are there\n");
    return result;
}

enum tbd_exit tbd_command_go_to_place(struct tbd_command_run *run, bool also_before)
{
    struct tbd_event event = { 0 };
    enum tbd_exit result;
    struct wish wish;
    char *text;

    if (!read_wish(run, &wish))
        return tbd_command_usage(run, "expected a function, FILE:LINE, or a line's number");
    text = place_question(run, &wish, &result);
    if (text == NULL)
        return result;
    result = also_before ? find_around(run, text, &event)
                         : find_one(run, text, tbd_session_current(run->session), false, &event);
    if (result == TBD_EXIT_FOUND) {
        json_t *object = tbd_output_event(run->session, &event);

        tbd_command_move_to(run, &event);
        tbd_output_print_event(run->session, object, run->out);
        json_decref(object);
    } else if (result == TBD_EXIT_NOT_FOUND && !run->session->json) {
        fprintf(run->out, "not found %sthe current position: %s\n",
                also_before ? "before or after " : "after ", tbd_shown(text));
    }
    free(text);
    return result;
}
