// SPDX-License-Identifier: MIT
/* diff_show.c - see diff_show.h: an object is made first, and text is made from it */
#include "query/diff/diff_show.h"

#include "base/safe_stream.h"
#include "query/commands/rows.h"
#include "query/output/output_call.h"
#include "query/session/source/source.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_COUNTS 12u
#define SHOWN_ROWS   10u /* at each end of the chain */
#define FRAMES_MAX   12u

/* ---- objects ---- */

/* The end of a side's thread: there is no step. */
static json_t *end_of(struct tbd_diff_side *side, uint32_t stream)
{
    const struct tbd_thread_info *thread = tbd_trace_thread(side->session.trace, stream / 2);
    json_t *object = json_object();
    char text[64] = { 0 };

    json_object_set_new(object, "ends", json_true());
    if (!thread->has_ended || thread->tid == side->session.info->main_thread)
        json_object_set_new(
            object, "end",
            tbd_output_text(tbd_command_end_text(side->session.info, text, sizeof(text))));
    return object;
}

/* Where a step is a line, its block may begin with another one. */
static json_t *step_of(struct tbd_diff_side *side, const struct tbd_diff_step *step)
{
    struct tbd_session *session = &side->session;
    struct tbd_position at = { .time = step->time };
    uint32_t window = tbd_trace_window_of(session->trace, step->time);
    struct tbd_block_insn insn;

    for (uint32_t i = 0; side->codes[step->id].key == 0 && i < TBD_BLOCK_MAX_INSNS &&
                         tbd_disas_insn(session->disas, step->id, i, &insn) && insn.length != 0;
         i++) {
        if (tbd_diff_place_key(side, window, insn.pc) != step->key)
            continue;
        at.offset = i;
        break;
    }
    return tbd_diff_instruction(side, at);
}

static json_t *joined(const char *name, const json_t *values)
{
    char text[512];
    size_t used = (size_t)snprintf(text, sizeof(text), "%s(", name), index;
    json_t *value;

    json_array_foreach(values, index, value)
    {
        if (used < sizeof(text))
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
                                     index == 0 ? "" : ", ", json_string_value(value));
    }
    if (used < sizeof(text))
        snprintf(text + used, sizeof(text) - used, ")");
    return tbd_output_text(text);
}

/* The stack around a branch, from the inside out. */
struct calls_around {
    struct tbd_diff_side *side;
    struct tbd_call_shapes *shapes; /* owned; NULL: no memory */
    struct tbd_position at;         /* the calls that are left began before it */
};

/* The entry of the function whose frame has this stack address.  An outer frame's is before those inside it. */
static bool find_entry(struct calls_around *around, const struct tbd_symbol *symbol, uint64_t cfa,
                       struct tbd_event *out)
{
    struct tbd_command_run run = { .session = &around->side->session,
                                   .quiet = true,
                                   .silent = true };
    struct tbd_question question = tbd_question_before(around->at, TBD_EVENT_FUNC_ENTER);

    tbd_question_where_field(&question, TBD_FIELD_SP, TBD_EXPR_EQ, cfa - 8);
    if (!symbol->is_part)
        tbd_question_where_field(&question, TBD_FIELD_PC, TBD_EXPR_EQ, symbol->start);
    if (tbd_command_find_event(&run, &question, out) != TBD_OK)
        return false;
    around->at = out->position;
    return true;
}

/* "f(n=3)": with the arguments with which it was entered. */
static json_t *call_of(struct calls_around *around, const struct tbd_symbol *symbol,
                       const struct tbd_frame *frame)
{
    const struct tbd_call_shape *shape =
        around->shapes == NULL
            ? NULL
            : tbd_call_shapes_at(around->shapes, around->at.time, frame->call_pc);
    json_t *object = json_object();
    struct tbd_call_entry entry;
    struct tbd_event enter;
    json_t *out;

    if (shape != NULL && shape->count != 0 && find_entry(around, symbol, frame->cfa, &enter)) {
        entry = tbd_call_entry_of(&enter);
        tbd_output_parameters(around->shapes, &entry, NULL, object);
    }
    out = joined(symbol->name, json_object_get(object, "values"));
    json_decref(object);
    return out;
}

/* The calls around the branch, innermost first. */
static json_t *stack_of(struct tbd_diff_side *side, struct tbd_position at)
{
    struct calls_around around = { .side = side, .at = at };
    json_t *calls = json_array();
    struct tbd_source_stack stack;

    if (tbd_source_stack(&side->session, at, &stack) != TBD_OK)
        return calls;
    around.shapes = tbd_call_shapes_new(&side->session);
    for (size_t i = 0; i < stack.count && i < FRAMES_MAX; i++) {
        const struct tbd_source_frame *call = &stack.calls[i];
        const struct tbd_frame *frame = &stack.frames[call->stack];
        struct tbd_symbol symbol;
        bool is_known =
            tbd_symbols_at(side->session.symbols, stack.window, frame->call_pc, &symbol) &&
            symbol.name != NULL;

        if (call->name != NULL)
            json_array_append_new(calls, json_sprintf("%s [inlined]", call->name));
        else if (is_known && !tbd_diff_is_ignored(side->rules, symbol.module))
            json_array_append_new(calls, call_of(&around, &symbol, frame));
        else if (is_known)
            json_array_append_new(calls, json_sprintf("%s", symbol.name));
    }
    tbd_call_shapes_free(around.shapes);
    tbd_source_stack_free(&stack);
    return calls;
}

/* What is to blame, as far as source lines tell: of two builds, the line that calculates differently. */
static json_t *blamed(struct tbd_diff_side *side, const struct tbd_diff_found *found)
{
    const struct tbd_diff_cause *cause = found->cause;
    json_t *object = NULL, *source;

    if (cause->rows != NULL && cause->origin == TBD_DIFF_CODE && cause->has_at[side->number])
        object = tbd_diff_instruction(side, cause->at[side->number]);
    else if (found->branch->how == TBD_DIFF_PARTS_IN_CODE && found->point->has_step[side->number])
        object = step_of(side, &found->point->step[side->number]);
    else if (found->branch->how != TBD_DIFF_PARTS_NOWHERE)
        object = tbd_diff_instruction(side, found->branch->at[side->number]);
    source = json_incref(json_object_get(object, "source"));
    json_decref(object);
    return source == NULL ? json_null() : source;
}

static void put_side(struct tbd_diff_side *side, const struct tbd_diff_found *found, json_t *object)
{
    const struct tbd_diff_point *point = found->point;
    unsigned number = side->number;
    json_t *half = json_object();

    if (found->branch->how != TBD_DIFF_PARTS_NOWHERE) {
        json_object_set_new(half, "branch", tbd_diff_instruction(side, found->branch->at[number]));
        json_object_set_new(half, "stack", stack_of(side, found->branch->at[number]));
    }
    if (found->branch->how != TBD_DIFF_PARTS_IN_OUTPUT)
        json_object_set_new(half, "next",
                            point->has_step[number] ? step_of(side, &point->step[number])
                                                    : end_of(side, found->stream));
    json_object_set_new(object, number == 0 ? "a" : "b", half);
}

static const char *how_text(enum tbd_diff_parting how)
{
    switch (how) {
    case TBD_DIFF_PARTS_AT_BRANCH: return "branch";
    case TBD_DIFF_PARTS_IN_CODE: return "code";
    case TBD_DIFF_PARTS_AT_FAULT: return "fault";
    case TBD_DIFF_PARTS_IN_OUTPUT: return "output";
    default: return "start";
    }
}

static json_t *object_of(struct tbd_diff_side sides[2], const struct tbd_diff_found *found)
{
    const struct tbd_diff_cause *cause = found->cause;
    json_t *object = json_object();

    json_object_set_new(object, "type", json_string("difference"));
    json_object_set_new(object, "thread", json_integer(found->stream / 2 + 1));
    json_object_set_new(object, "in_handlers", json_boolean(found->stream % 2 != 0));
    if (found->branch->how == TBD_DIFF_PARTS_IN_OUTPUT)
        json_object_set_new(object, "byte", json_integer((json_int_t)found->branch->byte));
    else
        json_object_set_new(object, "steps", json_integer((json_int_t)found->point->number));
    json_object_set_new(object, "how", json_string(how_text(found->branch->how)));
    put_side(&sides[0], found, object);
    put_side(&sides[1], found, object);
    if (cause->rows != NULL) {
        json_t *blame = blamed(&sides[1], found);

        json_object_set_new(object, "blame",
                            json_is_null(blame) ? blamed(&sides[0], found) : blame);
        json_object_set_new(object, "origin", json_string(tbd_diff_origin_name(cause->origin)));
        json_object_set_new(object, "cause", tbd_output_text(cause->text));
        json_object_set(object, "why", cause->rows);
    }
    return object;
}

/* ---- text ---- */

static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text == NULL ? "" : text;
}

static void print_place(FILE *out, const char *label, const json_t *place)
{
    if (json_is_true(json_object_get(place, "ends"))) {
        fprintf(out, "  %s  the thread ends  %s\n", label, tbd_shown(text_at(place, "end")));
        return;
    }
    fprintf(out, "  %s  %-14s  ", label, text_at(place, "position"));
    fprintf(out, "%-18s  ", tbd_shown(text_at(place, "source")));
    fprintf(out, "%-28s  ", tbd_shown(text_at(place, "function")));
    fprintf(out, "%s\n", tbd_shown(text_at(place, "code")));
}

static void print_values(FILE *out, const json_t *why)
{
    size_t index, count = json_array_size(why);
    json_t *row;

    json_array_foreach(why, index, row)
    {
        const json_t *a = json_object_get(row, "a"), *b = json_object_get(row, "b");

        if (index == SHOWN_ROWS && count > 2 * SHOWN_ROWS)
            fprintf(out, "     ... %zu steps ...\n", count - 2 * SHOWN_ROWS);
        if (index >= SHOWN_ROWS && index + SHOWN_ROWS < count)
            continue;
        fprintf(out, "     %s", text_at(a, "what"));
        if (json_object_get(a, "value") != NULL)
            fprintf(out, ": %s in A", text_at(a, "value"));
        if (json_object_get(b, "value") != NULL)
            fprintf(out, ", %s in B", text_at(b, "value"));
        fputc('\n', out);
        if (json_object_get(a, "position") != NULL)
            print_place(out, "     A", a);
        if (json_object_get(b, "position") != NULL)
            print_place(out, "     B", b);
    }
}

/* The stacks, if anything in them differs; else one of them. */
static void print_stacks(FILE *out, const json_t *a, const json_t *b)
{
    bool is_equal = json_equal(a, b) != 0;
    size_t index;
    json_t *call;

    json_array_foreach(a, index, call)
    {
        const char *other = json_string_value(json_array_get(b, index));

        fprintf(out, "     #%zu %s", index, tbd_shown(json_string_value(call)));
        if (!is_equal && other != NULL && strcmp(other, json_string_value(call)) != 0)
            fprintf(out, "   in B: %s", tbd_shown(other));
        fputc('\n', out);
    }
}

static void print_text(FILE *out, const json_t *object)
{
    const json_t *a = json_object_get(object, "a"), *b = json_object_get(object, "b");
    const char *how = text_at(object, "how");

    if (strcmp(how, "output") == 0) {
        fprintf(out,
                "thread %lld: all steps are equal\nthey give out other bytes, from number %lld of "
                "the call\n",
                json_integer_value(json_object_get(object, "thread")),
                json_integer_value(json_object_get(object, "byte")));
    } else {
        fprintf(out, "thread %lld%s: %lld equal steps\n",
                json_integer_value(json_object_get(object, "thread")),
                json_is_true(json_object_get(object, "in_handlers")) ? ", in its signal handlers"
                                                                     : "",
                json_integer_value(json_object_get(object, "steps")));
    }
    if (json_object_get(a, "branch") != NULL) {
        fprintf(out, "%s",
                strcmp(how, "output") == 0   ? ""
                : strcmp(how, "branch") == 0 ? "they part at the branch\n"
                : strcmp(how, "fault") == 0  ? "one of them dies at the instruction\n"
                                             : "other code follows after\n");
        print_place(out, "A", json_object_get(a, "branch"));
        print_place(out, "B", json_object_get(b, "branch"));
        print_stacks(out, json_object_get(a, "stack"), json_object_get(b, "stack"));
    }
    if (strcmp(how, "output") != 0) {
        fprintf(out, "and go on at\n");
        print_place(out, "A", json_object_get(a, "next"));
        print_place(out, "B", json_object_get(b, "next"));
    }
    if (json_object_get(object, "origin") == NULL)
        return;
    fprintf(out, "back to where they agree\n");
    print_values(out, json_object_get(object, "why"));
    fprintf(out, "origin: %s: ", text_at(object, "origin"));
    fprintf(out, "%s", tbd_shown(text_at(object, "cause")));
    fprintf(out, "  %s\n", tbd_shown(text_at(object, "blame")));
}

void tbd_diff_show(struct tbd_command_run *run, struct tbd_diff_side sides[2],
                   const struct tbd_diff_found *found)
{
    json_t *object = object_of(sides, found);

    if (run->session->json) {
        tbd_output_line(object, run->out);
        return;
    }
    print_text(run->out, object);
    json_decref(object);
}

void tbd_diff_show_counts(struct tbd_command_run *run, const struct tbd_diff_counts *counts,
                          const char *of)
{
    if (!run->session->json && counts->count != 0)
        fprintf(run->out, "%ss that ran more often on one side\n", of);
    for (size_t i = 0; i < counts->count; i++) {
        const struct tbd_diff_count *row = &counts->all[i];

        if (run->session->json) {
            tbd_output_line(json_pack("{s:s, s:s, s:o, s:I, s:I}", "type", "count", "of", of,
                                      "name", tbd_output_text(row->name), "a",
                                      (json_int_t)row->counts[0], "b", (json_int_t)row->counts[1]),
                            run->out);
        } else if (i == SHOWN_COUNTS) {
            fprintf(run->out, "     ... %zu more\n", counts->count - i);
            break;
        } else {
            fprintf(run->out, "  %12" PRIu64 "  %12" PRIu64 "  %s\n", row->counts[0],
                    row->counts[1], tbd_shown(row->name));
        }
    }
}
