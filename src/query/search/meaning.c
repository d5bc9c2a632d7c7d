// SPDX-License-Identifier: MIT
/* meaning.c - see meaning.h */
#include "query/search/meaning.h"
#include "query/condition/expr_needs.h"

#include "query/condition/window_names.h"
#include "query/search/search_private.h"

#include <stdlib.h>

struct tbd_meaning {
    struct tbd_session *session;
    struct tbd_event event;
    struct tbd_expr *where;    /* owned */
    struct tbd_scopes *scopes; /* owned; NULL: the condition means the same everywhere */
    struct tbd_expr *here;     /* borrowed from `where` or `scopes` */
    struct tbd_reg_state state;
    uint64_t frame;
    struct tbd_position memory; /* when it is read */
};

static enum tbd_value_state read_then(void *context, uint64_t address, uint64_t bytes,
                                      uint64_t *out)
{
    const struct tbd_meaning *meaning = context;

    *out = 0;
    return tbd_session_read(meaning->session, meaning->memory, address, out, (size_t)bytes) ==
                   TBD_OK
               ? TBD_VALUE_OK
               : TBD_VALUE_BAD;
}

static struct tbd_expr_env environment(struct tbd_meaning *meaning)
{
    return (struct tbd_expr_env){ .event = &meaning->event,
                                  .regs = &meaning->state.regs,
                                  .frame = meaning->frame,
                                  .read = read_then,
                                  .read_context = meaning };
}

static enum tbd_status lower(struct tbd_meaning *meaning, uint32_t index)
{
    const struct tbd_window *window;
    enum tbd_status status;

    meaning->here = meaning->where;
    if ((meaning->where->uses & TBD_USES_TYPES) == 0)
        return TBD_OK;
    status = tbd_session_slice_at(meaning->session, index, meaning->event.position.time, &window);
    if (status == TBD_OK)
        status = tbd_scopes_new(meaning->session, &meaning->scopes);
    if (status != TBD_OK)
        return status;
    tbd_scopes_set_window(meaning->scopes, window);
    meaning->here = tbd_scopes_get(meaning->scopes, meaning->where, &meaning->event);
    return meaning->here == NULL ? TBD_NOMEM : TBD_OK;
}

static enum tbd_status bind(struct tbd_meaning *meaning, const char *text, uint32_t index)
{
    struct tbd_window_names context = { meaning->session, index, meaning->event.type };
    struct tbd_expr_names names = tbd_window_names_of(&context);
    struct tbd_query_error error;
    enum tbd_status status = tbd_expr_parse(text, 0, meaning->event.type, &meaning->where, &error);

    if (status == TBD_OK)
        status = tbd_expr_bind_symbols(meaning->where, &names, &error);
    if (status == TBD_OK)
        status = tbd_expr_bind_names(meaning->where, &names, false, &error);
    return status;
}

enum tbd_status tbd_meaning_open(struct tbd_session *session, const char *text,
                                 const struct tbd_event *event, struct tbd_meaning **out)
{
    struct tbd_meaning *meaning = calloc(1, sizeof(*meaning));
    struct tbd_frame frames[2];
    size_t count = 0;
    uint32_t index;
    enum tbd_status status;

    *out = NULL;
    if (meaning == NULL)
        return TBD_NOMEM;
    meaning->session = session;
    meaning->event = *event;
    meaning->memory = event->position;
    status = tbd_session_window_at(session, event->position, &index);
    if (status == TBD_OK)
        status = bind(meaning, text, index);
    if (status == TBD_OK)
        status = lower(meaning, index);
    if (status == TBD_OK)
        status = tbd_session_regs(session, event->position, &meaning->state);
    if (status == TBD_OK)
        status = tbd_session_stack(session, event->position, frames, 2, &count);
    if (status != TBD_OK) {
        tbd_meaning_close(meaning);
        return status;
    }
    meaning->frame = count == 0 ? 0 : frames[0].cfa;
    *out = meaning;
    return TBD_OK;
}

void tbd_meaning_close(struct tbd_meaning *meaning)
{
    if (meaning == NULL)
        return;
    tbd_scopes_free(meaning->scopes);
    tbd_expr_free(meaning->where);
    free(meaning);
}

bool tbd_meaning_is_local(const struct tbd_meaning *meaning)
{
    return (meaning->here->uses & (TBD_USES_FRAME | TBD_USES_REGS)) != 0;
}

uint64_t tbd_meaning_frame(const struct tbd_meaning *meaning)
{
    return meaning->frame;
}

size_t tbd_meaning_reads(struct tbd_meaning *meaning, struct tbd_range64 *out, size_t max)
{
    struct tbd_expr_env env = environment(meaning);
    size_t count = 0;

    meaning->memory = meaning->event.position;
    for (uint32_t i = 0; i < meaning->here->node_count && count < max; i++) {
        const struct tbd_expr_node *node = &meaning->here->nodes[i];
        uint64_t bytes = node->op == TBD_EXPR_MEMORY ? node->value : TBD_EXPR_MATCH_SLOTS * 8;
        struct tbd_value address;

        if (!tbd_expr_reads_memory(node))
            continue;
        address = tbd_expr_eval(meaning->here, node->left, &env);
        if (address.state == TBD_VALUE_OK)
            out[count++] = (struct tbd_range64){ address.v, address.v + bytes };
    }
    return count;
}

bool tbd_meaning_value(struct tbd_meaning *meaning, struct tbd_position position, bool *out)
{
    struct tbd_expr_env env = environment(meaning);
    struct tbd_value value;

    meaning->memory = position;
    value = tbd_expr_eval(meaning->here, meaning->here->root, &env);
    *out = value.v != 0;
    return value.state == TBD_VALUE_OK;
}
