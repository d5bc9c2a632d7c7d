// SPDX-License-Identifier: MIT
/* row_condition.c - see row_condition.h
 *
 * Most rows are decided by their own values; registers and frames are asked for only when the
 * condition is not decided without them. */
#include "query/search/row_condition.h"

#include "format/reading/window_read.h"
#include "format/window/window_make.h"
#include "query/condition/window_names.h"
#include "query/search/search_private.h"

#include <stdlib.h>

#define FRAMES_MAX 256u

struct tbd_row_condition {
    struct tbd_session *session;
    struct tbd_expr *expr;             /* owned */
    struct tbd_scopes *scopes;         /* owned; NULL: the condition means the same everywhere */
    struct tbd_window *window;         /* owned: summaries of the last row's window; NULL: none */
    struct tbd_position memory;        /* when it is read */
    struct tbd_reg_state state;        /* of the last row that needed registers */
    struct tbd_inlined_calls *inlined; /* owned */
    bool has_names; /* of functions and the like, which mean something else in each window */
    bool had_rows;
};

static enum tbd_value_state read_then(void *context, uint64_t address, uint64_t bytes,
                                      uint64_t *out)
{
    const struct tbd_row_condition *condition = context;

    *out = 0;
    return tbd_session_read(condition->session, condition->memory, address, out, (size_t)bytes) ==
                   TBD_OK
               ? TBD_VALUE_OK
               : TBD_VALUE_BAD;
}

/* A part of a condition has the names of the whole one, but perhaps no use for them. */
static bool uses_names(const struct tbd_expr *expr, int32_t index)
{
    const struct tbd_expr_node *node;

    if (index < 0)
        return false;
    node = &expr->nodes[index];
    return node->op == TBD_EXPR_FUNCTION || node->op == TBD_EXPR_MODULE ||
           node->op == TBD_EXPR_CALLER || node->op == TBD_EXPR_STACK ||
           uses_names(expr, node->left) || uses_names(expr, node->right);
}

static enum tbd_status bind_symbols(struct tbd_row_condition *condition,
                                    struct tbd_query_error *error)
{
    uint32_t last = tbd_trace_window_count(condition->session->trace) - 1;
    struct tbd_window_names context = { condition->session, 0, TBD_EVENT_CALL };
    struct tbd_expr_names names = tbd_window_names_of(&context);
    enum tbd_status status = tbd_expr_bind_symbols(condition->expr, &names, error);

    context.window = last;
    if (status == TBD_NAME)
        status = tbd_expr_bind_symbols(condition->expr, &names, error);
    if (status == TBD_OK && condition->has_names)
        status = tbd_expr_bind_names(condition->expr, &names, true, error);
    return status;
}

enum tbd_status tbd_row_condition_new(struct tbd_session *session, struct tbd_expr *expr,
                                      struct tbd_row_condition **out, struct tbd_query_error *error)
{
    enum tbd_status status = TBD_OK;

    *out = NULL;
    if (expr == NULL)
        return TBD_OK;
    *out = calloc(1, sizeof(**out));
    if (*out == NULL) {
        tbd_expr_free(expr);
        return TBD_NOMEM;
    }
    (*out)->session = session;
    (*out)->expr = expr;
    (*out)->has_names = uses_names(expr, expr->root);
    if (tbd_trace_window_count(session->trace) != 0)
        status = bind_symbols(*out, error);
    if (status == TBD_OK && (expr->uses & TBD_USES_TYPES) != 0)
        status = tbd_scopes_new(session, &(*out)->scopes);
    if (status == TBD_OK && (expr->uses & TBD_USES_STACK) != 0)
        status = tbd_inlined_calls_new(session, &(*out)->inlined);
    if (status != TBD_OK) {
        tbd_row_condition_free(*out);
        *out = NULL;
    }
    return status;
}

void tbd_row_condition_free(struct tbd_row_condition *condition)
{
    if (condition == NULL)
        return;
    tbd_scopes_free(condition->scopes);
    tbd_inlined_calls_free(condition->inlined);
    tbd_window_free(condition->window);
    tbd_expr_free(condition->expr);
    free(condition);
}

/* Names mean what they mean in the row's window. */
static bool enter_window(struct tbd_row_condition *condition, const struct tbd_event *row)
{
    struct tbd_session *session = condition->session;
    uint32_t index = tbd_trace_window_of(session->trace, row->position.time);
    struct tbd_window_names context = { session, index, TBD_EVENT_CALL };
    struct tbd_expr_names names = tbd_window_names_of(&context);
    struct tbd_query_error error;

    if (index == UINT32_MAX)
        return false;
    if (condition->window != NULL && condition->window->index == index)
        return true;
    tbd_window_free(condition->window);
    condition->window = NULL;
    if (tbd_window_load_summaries(session->trace, index, &condition->window, &session->why) !=
        TBD_OK)
        return false;
    if (condition->scopes != NULL)
        tbd_scopes_set_window(condition->scopes, condition->window);
    return !condition->has_names ||
           tbd_expr_bind_names(condition->expr, &names, false, &error) == TBD_OK;
}

/* The stack as of the row's position; without it the condition stays undecided. */
static void take_frames(struct tbd_row_condition *condition, struct tbd_expr_env *env)
{
    struct tbd_frame frames[FRAMES_MAX];
    uint64_t pcs[FRAMES_MAX];
    size_t count;

    if (tbd_session_stack(condition->session, env->event->position, frames, FRAMES_MAX, &count) !=
        TBD_OK)
        return;
    for (size_t i = 0; i < count; i++)
        pcs[i] = frames[i].call_pc;
    tbd_inlined_calls_set_window(condition->inlined, condition->window->index);
    env->frames =
        tbd_inlined_calls_of(condition->inlined, pcs, count,
                             tbd_event_is_of_function(env->event->type), &env->frame_count);
}

/* With registers and frames as of the row's position. */
static struct tbd_value evaluate_all(struct tbd_row_condition *condition,
                                     const struct tbd_expr *here, struct tbd_expr_env *env)
{
    struct tbd_session *session = condition->session;
    struct tbd_value unknown = { .state = TBD_VALUE_UNKNOWN };

    if ((here->uses & (TBD_USES_REGS | TBD_USES_STACK)) == 0)
        return unknown;
    if (tbd_session_regs(session, env->event->position, &condition->state) != TBD_OK)
        return unknown;
    env->regs = &condition->state.regs;
    env->vector = tbd_search_vector(&condition->state);
    if ((here->uses & TBD_USES_STACK) != 0)
        take_frames(condition, env);
    return tbd_expr_holds(here, here->root, env);
}

bool tbd_row_condition_holds(struct tbd_row_condition *condition, const struct tbd_event *row)
{
    struct tbd_expr_env env = {
        .event = row, .frame = row->sp + 8, .read = read_then, .read_context = condition
    };
    const struct tbd_expr *here = NULL;
    struct tbd_value value;

    if (condition == NULL)
        return true;
    if (!enter_window(condition, row))
        return false;
    condition->had_rows = true;
    condition->memory = row->position;
    here = condition->expr;
    if (condition->scopes != NULL)
        here = tbd_scopes_get(condition->scopes, condition->expr, row);
    if (here == NULL)
        return false;
    value = tbd_expr_holds(here, here->root, &env);
    if (value.state == TBD_VALUE_UNKNOWN)
        value = evaluate_all(condition, here, &env);
    tbd_bad_events_add(&condition->session->stats.bad, &env.bad);
    return value.state == TBD_VALUE_OK && value.v != 0;
}

bool tbd_row_condition_is_empty(const struct tbd_row_condition *condition,
                                struct tbd_query_error *problem)
{
    return condition != NULL && condition->had_rows && condition->scopes != NULL &&
           !tbd_scopes_have_meaning(condition->scopes, problem) && problem->status != TBD_OK;
}
