// SPDX-License-Identifier: MIT
/* search_judge.c - one event: does it match, and what is needed to decide that?
 *
 * Conditions over variables mean something different at each instruction (search_scope.c). One walk
 * asks for the memory that they need, and the next walk has the answers (probes.h). */
#include "query/search/search_private.h"
#include "query/condition/expr_needs.h"

#include "base/array.h"

static enum tbd_verdict verdict_of(struct tbd_value value)
{
    if (value.state == TBD_VALUE_UNKNOWN)
        return TBD_VERDICT_OPEN;
    return value.state == TBD_VALUE_OK && value.v != 0 ? TBD_VERDICT_MATCH : TBD_VERDICT_MISS;
}

enum tbd_verdict tbd_search_judge(struct tbd_search_run *run, const struct tbd_event *event)
{
    if (run->where == NULL)
        return TBD_VERDICT_MATCH;
    run->env.event = event;
    if (run->kept != NULL)
        tbd_kept_reset(run->kept);
    return verdict_of(tbd_expr_holds(run->here, run->here->root, &run->env));
}

enum tbd_verdict tbd_search_judge_last(struct tbd_search_run *run, const struct tbd_event *event)
{
    enum tbd_verdict verdict = TBD_VERDICT_OPEN;

    if (run->kept != NULL) {
        run->kept->is_final = true;
        verdict = tbd_search_judge(run, event);
        run->kept->is_final = false;
    }
    return verdict == TBD_VERDICT_OPEN ? TBD_VERDICT_MISS : verdict;
}

/* Finds the condition's meaning here; false if there is no memory. */
static bool find_meaning(struct tbd_search_run *run, const struct tbd_event *event)
{
    run->here = tbd_scopes_get(run->scopes, run->where, event);
    if (run->here == NULL || !tbd_array_reserve(&run->memory, run->here->memory_count,
                                                &run->memory_capacity, sizeof(*run->memory))) {
        run->here = run->where;
        run->status = TBD_NOMEM;
        return false;
    }
    run->all_uses |= run->here->uses;
    run->again |= !run->has_callers && tbd_search_needs_callers(run);
    if (run->here->levels > run->levels)
        run->levels = run->here->levels;
    return true;
}

static uint64_t frame_of(const struct tbd_callers *callers)
{
    return callers->count == 0 ? 0 : callers->frames[callers->count - 1].slot + 8;
}

/* The registers that the condition needs here, if there are notes. */
static void take_note(struct tbd_search_run *run, const struct tbd_event *event)
{
    const struct tbd_noted *noted;

    if (run->notes.window == NULL || (run->here->uses & TBD_USES_REGS) == 0)
        return;
    noted = tbd_notes_at(&run->notes, event);
    run->noted++;
    run->unnoted += noted == NULL;
    run->env.regs = noted == NULL ? NULL : &noted->regs;
    run->env.vector = noted == NULL ? NULL : noted->vector;
}

static void take_frames(struct tbd_search_run *run, const struct tbd_event *event)
{
    size_t count;
    const uint64_t *pcs = tbd_callers_pcs(&run->callers, event->pc, &count);

    run->env.frames = NULL;
    tbd_inlined_calls_set_window(run->inlined, run->window->index);
    if (pcs != NULL)
        run->env.frames = tbd_inlined_calls_of(
            run->inlined, pcs, count, tbd_event_is_of_function(event->type), &run->env.frame_count);
    if (run->env.frames == NULL)
        run->status = TBD_NOMEM;
}

static enum tbd_verdict judge_first(struct tbd_search_run *run, const struct tbd_event *event)
{
    enum tbd_verdict verdict;

    if ((run->uses & TBD_USES_STACK) != 0)
        take_frames(run, event);
    run->env.frame = frame_of(&run->callers);
    run->env.regs = NULL;
    run->env.vector = NULL;
    run->here = run->where;
    if (run->where == NULL)
        return TBD_VERDICT_MATCH;
    verdict = tbd_search_judge(run, event);
    if (verdict != TBD_VERDICT_OPEN)
        return verdict;
    if (run->scopes != NULL && !find_meaning(run, event))
        return TBD_VERDICT_MISS;
    if (run->scopes == NULL && run->notes.window == NULL)
        return verdict;
    take_note(run, event);
    return tbd_search_judge(run, event);
}

/* ---- memory: one walk asks, the next has the answers ---- */

bool tbd_search_asks(const struct tbd_search_run *run, enum tbd_verdict verdict)
{
    return verdict == TBD_VERDICT_OPEN || (verdict == TBD_VERDICT_MATCH && run->wants_values);
}

static bool wants_value(const struct tbd_search_run *run, const struct tbd_event *event)
{
    return ((run->uses & TBD_USES_VALUE) != 0 || run->wants_values) && event->size != 0 &&
           event->fresh == NULL;
}

/* How many words a node of this level reads; *out is the address, if it is known. */
static uint32_t words_of(struct tbd_search_run *run, const struct tbd_expr_node *node,
                         uint32_t level, uint64_t *out)
{
    struct tbd_bad_events before = run->env.bad;
    struct tbd_value address;

    if (node->level != level || !tbd_expr_reads_memory(node) ||
        run->memory[node->which].state == TBD_VALUE_OK)
        return 0;
    address = tbd_expr_eval(run->here, node->left, &run->env);
    run->env.bad = before;
    *out = address.v;
    if (address.state != TBD_VALUE_OK)
        return 0;
    return node->op == TBD_EXPR_MEMORY ? 1 : TBD_EXPR_MATCH_SLOTS;
}

static void ask_bytes(struct tbd_search_run *run, struct tbd_position at, uint64_t address,
                      uint32_t bytes, uint32_t walk, bool is_after)
{
    if (tbd_search_has_stores(run, address, bytes))
        (void)tbd_probes_add(run->probes[walk], at, address, bytes, is_after);
    else
        run->again = true;
}

/* Asks for the memory that the nodes of level `walk + 1` read. */
static void ask_memory(struct tbd_search_run *run, const struct tbd_event *event, uint32_t walk)
{
    const struct tbd_expr *expr = run->here;
    uint64_t address = 0;

    for (uint32_t i = 0; run->where != NULL && i < expr->node_count; i++) {
        const struct tbd_expr_node *node = &expr->nodes[i];
        uint32_t words = words_of(run, node, walk + 1, &address);
        uint32_t bytes = node->op == TBD_EXPR_MEMORY ? (uint32_t)node->value : 8;

        for (uint32_t w = 0; w < words; w++)
            ask_bytes(run, event->position, address + w * 8, bytes, walk, node->is_after);
        run->asked |= words != 0;
    }
}

static void ask_value(struct tbd_search_run *run, const struct tbd_event *event)
{
    if (!wants_value(run, event))
        return;
    ask_bytes(run, event->position, event->addr, event->size < 8 ? (uint32_t)event->size : 8, 0,
              event->type == TBD_EVENT_STORE);
    run->asked = true;
}

static void take_memory(struct tbd_search_run *run, uint32_t walk)
{
    const struct tbd_expr *expr = run->here;
    uint64_t address;

    for (uint32_t i = 0; run->where != NULL && i < expr->node_count; i++) {
        const struct tbd_expr_node *node = &expr->nodes[i];
        uint32_t words = words_of(run, node, walk + 1, &address);

        for (uint32_t w = 0; w < words; w++) {
            struct tbd_value *value = &run->memory[node->which + w];

            value->state = tbd_probes_answer(run->probes[walk], run->next_probe[walk]++, &value->v)
                               ? TBD_VALUE_OK
                               : TBD_VALUE_BAD;
        }
    }
}

static void take_value(struct tbd_search_run *run, struct tbd_event *event)
{
    if (wants_value(run, event) &&
        tbd_probes_answer(run->probes[0], run->next_probe[0]++, &event->value))
        event->flags |= TBD_EVENT_HAS_VALUE;
}

enum tbd_verdict tbd_search_judge_answered(struct tbd_search_run *run, struct tbd_event *event)
{
    enum tbd_verdict verdict = judge_first(run, event);

    for (uint32_t i = 0; run->where != NULL && i < run->here->memory_count; i++)
        run->memory[i].state = TBD_VALUE_UNKNOWN;
    run->env.memory = run->where != NULL && run->here->memory_count != 0 ? run->memory : NULL;
    for (uint32_t walk = 0; walk < run->answered && tbd_search_asks(run, verdict); walk++) {
        if (walk == 0)
            take_value(run, event);
        if (verdict == TBD_VERDICT_MATCH)
            break;
        take_memory(run, walk);
        verdict = tbd_search_judge(run, event);
    }
    return verdict;
}

/* The registers that notes could supply. */
static void ask_registers(struct tbd_search_run *run, const struct tbd_event *event)
{
    if (run->where == NULL || (run->here->uses & TBD_USES_REGS) == 0)
        return;
    run->missed++;
    if (run->notes.window == NULL &&
        !tbd_note_sites_add(&run->sites, event->pc, run->here->registers))
        run->status = TBD_NOMEM;
}

void tbd_search_ask(struct tbd_search_run *run, const struct tbd_event *event,
                    enum tbd_verdict verdict)
{
    uint32_t walk = run->answered;

    if (walk == 0)
        ask_value(run, event);
    if (walk == 0 && verdict == TBD_VERDICT_OPEN)
        ask_registers(run, event);
    if (verdict == TBD_VERDICT_OPEN)
        ask_memory(run, event, walk);
}
