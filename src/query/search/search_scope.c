// SPDX-License-Identifier: MIT
/* search_scope.c - the meanings of a condition over variables, by instruction
 *
 * A condition is lowered (expr_lower.h) once per instruction at which an event could match, and
 * kept in a hash table by address.  When modules are mapped or unmapped, other code may lie at an
 * address, so the table starts anew; the lowered conditions stay until the end, because candidates
 * borrow them.
 *
 * The addresses of thread-local variables are found by reading the thread's memory: a meaning found
 * in this way is valid for this thread only. */
#include "query/search/search_private.h"

#include "base/address_table.h"
#include "base/array.h"
#include "format/pages/pages.h"
#include "format/window/window_make.h"
#include "query/condition/expr_lower.h"
#include "query/condition/field_names.h"
#include "query/condition/window_names.h"
#include "query/debuginfo/dwarf_words.h"
#include "query/search/scan_threads.h"
#include "query/session/source/source.h"
#include "query/session/source/window_modules.h"

#include <stdlib.h>
#include <string.h>

struct meaning {
    uint64_t pc;
    uint32_t which;        /* which_of() the two below */
    struct tbd_expr *expr; /* NULL: each thread has its own */
};

struct tbd_scopes {
    struct tbd_session *session;
    const struct tbd_window *window;
    uint64_t modules;               /* the modules for which the table is valid */
    struct tbd_address_table table; /* of struct meaning */
    struct tbd_expr **all;          /* owned */
    size_t all_count;
    struct tbd_position at; /* the current event's */
    bool has_read;          /* memory was read to find an address */
    size_t good;            /* places where the condition had a value */
    struct tbd_query_error problem;
    struct tbd_stack_memory memory;
};

static bool read_then(void *context, uint64_t address, void *out, size_t bytes)
{
    struct tbd_scopes *scopes = context;
    const struct tbd_window *whole;

    scopes->has_read = true;
    return tbd_session_whole(scopes->session, scopes->window, scopes->at.time, &whole) == TBD_OK &&
           tbd_trace_read(scopes->session->trace, whole, scopes->at, address, out, bytes) == TBD_OK;
}

enum tbd_status tbd_scopes_new(struct tbd_session *session, struct tbd_scopes **out)
{
    *out = calloc(1, sizeof(**out));
    if (*out == NULL)
        return TBD_NOMEM;
    (*out)->session = session;
    (*out)->table =
        (struct tbd_address_table){ .element = sizeof(struct meaning), .has_more = true };
    (*out)->memory = (struct tbd_stack_memory){ .read = read_then, .context = *out };
    return TBD_OK;
}

void tbd_scopes_free(struct tbd_scopes *scopes)
{
    if (scopes == NULL)
        return;
    for (size_t i = 0; i < scopes->all_count; i++)
        tbd_expr_free(scopes->all[i]);
    free(scopes->all);
    tbd_address_table_free(&scopes->table);
    free(scopes);
}

void tbd_scopes_set_window(struct tbd_scopes *scopes, const struct tbd_window *window)
{
    const struct tbd_module *modules = NULL;
    size_t count = 0;
    uint64_t hash;

    scopes->window = window;
    if (tbd_symbols_modules(scopes->session->symbols, window->index, &modules, &count) != TBD_OK)
        return;
    hash = tbd_symbols_hash(modules, count);
    if (hash == scopes->modules)
        return;
    scopes->modules = hash;
    tbd_address_table_clear(&scopes->table);
}

static bool keep(struct tbd_scopes *scopes, struct tbd_expr *expr)
{
    if (!tbd_array_double(&scopes->all, scopes->all_count, sizeof(*scopes->all)))
        return false;
    scopes->all[scopes->all_count++] = expr;
    return true;
}

/* ---- a place without a frame ---- */

/* For a thread that was created in this window its first registers tell. */
static uint64_t fs_base_of(const struct tbd_window *window, uint32_t thread)
{
    const struct tbd_regs *regs = tbd_scan_thread_regs(window, thread);
    struct tbd_regs first;

    for (size_t i = 0; regs == NULL && i < window->log_count; i++) {
        const struct tbd_message *message = window->log[i].message;
        struct tbd_msg_thread start;

        if (tbd_message_kind(message) != TBD_MSG_THREAD)
            continue;
        start = tbd_thread_message(message);
        if (start.event != TBD_THREAD_START || start.thread != thread)
            continue;
        memcpy(&first, (const uint8_t *)message + sizeof(*message) + sizeof(start), sizeof(first));
        return first.fs_base;
    }
    return regs == NULL ? 0 : regs->fs_base;
}

static void make_place(struct tbd_scopes *scopes, const struct tbd_event *event,
                       struct tbd_place_of *out)
{
    const struct tbd_module *module =
        tbd_symbols_module_at(scopes->session->symbols, scopes->window->index, event->pc);

    *out = (struct tbd_place_of){ .memory = &scopes->memory,
                                  .fs_base = fs_base_of(scopes->window, event->thread) };
    if (module == NULL)
        return;
    out->is_main_program = tbd_module_is_program(module);
    tbd_place_enter(out, tbd_dwarf_of(module->file), module->bias, event->pc, 0);
}

static bool find_variable(void *context, const char *name, bool of_program, struct tbd_data *out)
{
    return tbd_modules_variable(context, name, of_program, out);
}

static bool find_type(void *context, const char *name, struct tbd_type *out)
{
    return tbd_modules_type(context, name, out);
}

/* ---- lowering ---- */

static bool is_at_entry(const struct tbd_event *event)
{
    return event->type == TBD_EVENT_FUNC_ENTER || event->type == TBD_EVENT_CALL;
}

static struct tbd_expr *lower_at(struct tbd_scopes *scopes, struct tbd_expr *where,
                                 const struct tbd_event *event)
{
    struct tbd_place_of place;
    struct tbd_window_modules window = { scopes->session->symbols, scopes->window->index };
    struct tbd_name_modules names;
    struct tbd_c_scope scope = {
        .place = &place, .variable = find_variable, .type = find_type, .context = &names
    };
    struct tbd_lower lower = { .scope = &scope, .type = event->type };
    struct tbd_query_error problem;
    struct tbd_source_line line;
    struct tbd_expr *expr;

    scopes->at = event->position;
    scopes->has_read = false;
    make_place(scopes, event, &place);
    names = tbd_window_modules_of(&window, &place);
    lower.is_entry = is_at_entry(event);
    if (tbd_source_line_at(scopes->session, scopes->window->index, event->pc, &line))
        lower.line = line.line;
    if (tbd_expr_lower(where, &lower, &expr, &problem) != TBD_OK)
        return NULL;
    if (!keep(scopes, expr)) {
        tbd_expr_free(expr);
        return NULL;
    }
    scopes->good += problem.status == TBD_OK || problem.status == TBD_UNMAPPED;
    /* A wrong type is a better message than a name that is not in scope. */
    if (problem.status != TBD_OK && problem.status != TBD_UNMAPPED &&
        (scopes->problem.status == TBD_OK ||
         (scopes->problem.status == TBD_NAME && problem.status == TBD_TYPE)))
        scopes->problem = problem;
    return expr;
}

/* Meanings at a function's entry are others; thread 0 stands for all. */
static uint32_t which_of(uint32_t thread, bool is_entry)
{
    return thread << 1 | is_entry;
}

static bool put(struct tbd_scopes *scopes, uint64_t pc, uint32_t which, struct tbd_expr *expr)
{
    struct meaning *meaning = tbd_address_table_add(&scopes->table, pc, which);

    if (meaning != NULL)
        meaning->expr = expr;
    return meaning != NULL;
}

struct tbd_expr *tbd_scopes_get(struct tbd_scopes *scopes, struct tbd_expr *where,
                                const struct tbd_event *event)
{
    bool is_entry = is_at_entry(event);
    const struct meaning *found =
        tbd_address_table_find(&scopes->table, event->pc, which_of(0, is_entry));
    struct tbd_expr *expr;

    if (found != NULL && found->expr == NULL)
        found =
            tbd_address_table_find(&scopes->table, event->pc, which_of(event->thread, is_entry));
    if (found != NULL)
        return found->expr;
    expr = lower_at(scopes, where, event);
    if (expr == NULL)
        return NULL;
    if (scopes->has_read && (!put(scopes, event->pc, which_of(0, is_entry), NULL) ||
                             !put(scopes, event->pc, which_of(event->thread, is_entry), expr)))
        return NULL;
    if (!scopes->has_read && !put(scopes, event->pc, which_of(0, is_entry), expr))
        return NULL;
    return expr;
}

bool tbd_scopes_have_meaning(const struct tbd_scopes *scopes, struct tbd_query_error *problem)
{
    *problem = scopes->problem;
    return scopes->good != 0;
}

/* ---- windows in which other modules are mapped ---- */

#define MAPPINGS_MOST 64u

struct search_mappings {
    struct tbd_session *session;
    uint32_t next, window; /* the one to look at next, and the one that was found */
    size_t changes, count; /* of modules before it; how many were found */
    bool are_many;         /* there are more than are looked at */
};

/* The first window is one. */
static bool next_mapping(struct search_mappings *all)
{
    struct tbd_trace *trace = all->session->trace;

    while (all->next < tbd_trace_window_count(trace)) {
        size_t now = tbd_trace_mapping_changes(trace, all->next);

        all->window = all->next++;
        if (all->count != 0 && now == all->changes)
            continue;
        all->changes = now;
        all->are_many = ++all->count > MAPPINGS_MOST;
        return !all->are_many;
    }
    return false;
}

/* ---- names that nothing has ---- */

static bool may_be_somewhere(struct tbd_session *session, uint32_t window, const char *name)
{
    const struct tbd_module *modules = NULL;
    struct tbd_symbol symbol;
    size_t count = 0;

    if (tbd_symbols_modules(session->symbols, window, &modules, &count) != TBD_OK)
        return true;
    for (size_t i = 0; i < count; i++) {
        struct tbd_dwarf *dwarf = tbd_dwarf_of(modules[i].file);

        if (dwarf != NULL && tbd_dwarf_may_say(dwarf, name))
            return true;
    }
    return tbd_symbols_find(session->symbols, window, name, &symbol, 1) != 0;
}

/* No variable of any function, no member, nothing in any module is called so, at any time. */
static bool is_nowhere(struct tbd_search_run *run, const char *name)
{
    struct search_mappings all = { .session = run->session };

    while (next_mapping(&all)) {
        if (may_be_somewhere(run->session, all.window, name))
            return false;
    }
    return !all.are_many;
}

static enum tbd_status check_words(struct tbd_search_run *run)
{
    const struct tbd_expr *where = run->where;

    for (uint32_t i = 0; i < where->node_count; i++) {
        const struct tbd_expr_node *node = &where->nodes[i];
        const char *name;

        if (node->op != TBD_EXPR_VARIABLE || !is_nowhere(run, where->symbols[node->which]))
            continue;
        name = where->symbols[node->which];
        (void)tbd_query_wrong(run->search->error, TBD_NAME, node->at, node->length,
                              TBD_LOWER_NO_VARIABLE, name, tbd_field_meant(name));
        return TBD_NAME;
    }
    return TBD_OK;
}

/* ---- names that mean nothing at any place of a function or line ---- */

#define PLACES_MOST 4096u /* that are tried */

struct trying {
    struct tbd_search_run *run;
    struct tbd_scopes *scopes; /* owned */
    const struct tbd_expr
        *where;   /* the condition; every event is in a function, or a line, of ... */
    int32_t name; /* ... this name; -1: there is none */
    size_t places;
    bool is_open; /* some place has a meaning, or this cannot be known */
};

/* One without a value makes the condition one without a value. */
static bool is_strict(const struct tbd_expr *where)
{
    for (uint32_t i = 0; i < where->node_count; i++) {
        switch (where->nodes[i].op) {
        case TBD_EXPR_NOT:
        case TBD_EXPR_OR:
        case TBD_EXPR_CHOICE:
        case TBD_EXPR_KEEP:
        case TBD_EXPR_KEEP_TEXT: return false;
        default: break;
        }
    }
    return true;
}

static void take_name(void *context, const struct tbd_expr *expr, int32_t index)
{
    struct trying *t = context;

    if (expr->nodes[index].op == TBD_EXPR_FUNCTION)
        t->name = (int32_t)expr->nodes[index].which;
}

static void try_at(struct trying *t, uint64_t pc)
{
    struct tbd_event event = { .type = t->run->question->type, .pc = pc };
    bool is_made =
        ++t->places <= PLACES_MOST && tbd_scopes_get(t->scopes, t->run->where, &event) != NULL;

    t->is_open |= !is_made || t->scopes->has_read || t->scopes->good != 0;
}

/* All places of the name, which is bound. */
static void try_ranges(struct trying *t)
{
    const struct tbd_expr_name *name = &t->where->names[t->name];
    bool is_entry =
        t->run->question->type == TBD_EVENT_FUNC_ENTER && name->kind == TBD_NAME_FUNCTION;

    t->is_open |= name->copy_count != 0;
    for (size_t i = 0; i < name->count && !t->is_open; i++) {
        uint64_t end = is_entry ? name->ranges[i].start + 1 : name->ranges[i].end;

        for (uint64_t pc = name->ranges[i].start; pc < end && !t->is_open; pc++)
            try_at(t, pc);
    }
}

static void try_window(struct trying *t, uint32_t index)
{
    struct tbd_window_names context = { t->run->session, index, t->run->question->type };
    struct tbd_expr_names names = tbd_window_names_of(&context);
    struct tbd_window window = { .index = index };
    struct tbd_query_error error;

    if (tbd_expr_bind_names(t->run->where, &names, false, &error) != TBD_OK) {
        t->is_open = true;
        return;
    }
    tbd_scopes_set_window(t->scopes, &window);
    try_ranges(t);
    t->scopes->window = NULL;
}

static void try_windows(struct trying *t)
{
    struct search_mappings all = { .session = t->run->session };

    while (!t->is_open && next_mapping(&all))
        try_window(t, all.window);
    t->is_open |= all.are_many;
}

static bool read_nothing(void *context, uint64_t address, void *out, size_t bytes)
{
    struct tbd_scopes *scopes = context;

    (void)address;
    (void)out;
    (void)bytes;
    scopes->has_read = true;
    return false;
}

enum tbd_status tbd_search_check_variables(struct tbd_search_run *run)
{
    struct trying t = { .run = run, .where = run->where, .name = -1 };
    struct tbd_query_error problem;
    enum tbd_status status;

    if ((run->uses & TBD_USES_TYPES) == 0 || !is_strict(run->where))
        return TBD_OK;
    status = check_words(run);
    if (status != TBD_OK)
        return status;
    tbd_expr_conjuncts(run->where, run->where->root, take_name, &t);
    if (t.name < 0)
        return TBD_OK;
    status = tbd_scopes_new(run->session, &t.scopes);
    if (status != TBD_OK)
        return status;
    t.scopes->memory.read = read_nothing;
    try_windows(&t);
    if (!t.is_open && !tbd_scopes_have_meaning(t.scopes, &problem) && problem.status != TBD_OK) {
        *run->search->error = problem;
        status = problem.status;
    }
    tbd_scopes_free(t.scopes);
    return status;
}
