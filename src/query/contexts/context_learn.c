// SPDX-License-Identifier: MIT
/* context_learn.c - see context_learn.h
 *
 * Each thread has the calls that have not returned, by their stack pointers: a return ends its own call and all further down, a call those
 * whose return address lay where its own does, or further down.  (A function may push more before a later call: then only the return
 * says that the one before is over.)  So longjmp and exceptions need no events.  What a signal's handler calls, and code in no
 * file, is left out: their stacks are not told apart by what an entry says. */
#include "query/contexts/context_learn.h"

#include "base/array.h"
#include "query/search/search.h"
#include "query/session/source/source.h"

#include <stdlib.h>
#include <string.h>

#define NOT_KNOWN UINT32_MAX
#define SITES     65536u /* a power of two */

struct learned_frame {
    uint64_t sp;
    uint32_t node; /* 1 + index, or NOT_KNOWN */
};

struct learned_thread {
    uint32_t tid;
    struct learned_frame *frames; /* owned */
    size_t count, capacity;
};

/* A call that was looked at; the last one in its slot. */
struct learned_site {
    uint64_t from, start; /* its address, that of its module */
    uint32_t file;
    uint64_t offset; /* 0: it is no call of a file */
};

struct learning {
    struct tbd_session *session;
    struct tbd_context_dictionary *dictionary;
    struct learned_thread *threads; /* owned */
    size_t thread_count, thread_capacity;
    struct learned_site *sites; /* owned */
    bool is_short;              /* of memory */
};

static struct learned_thread *thread_of(struct learning *l, uint32_t tid)
{
    for (size_t i = l->thread_count; i-- > 0;)
        if (l->threads[i].tid == tid)
            return &l->threads[i];
    if (!tbd_array_grow(&l->threads, l->thread_count, &l->thread_capacity, sizeof(*l->threads)))
        return NULL;
    l->threads[l->thread_count] = (struct learned_thread){ .tid = tid };
    return &l->threads[l->thread_count++];
}

/* The bytes of a call instruction; 0: it is something else. */
static uint32_t call_bytes(struct learning *l, uint32_t window, uint64_t from)
{
    uint8_t code[TBD_INSN_MAX_BYTES];
    size_t bytes = tbd_symbols_read_file(l->session->symbols, window, from, code, sizeof(code));
    char text[256];
    uint32_t length =
        tbd_disas_text(l->session->disas, window, code, bytes, from, text, sizeof(text));

    return strstr(text, "call") != NULL ? length : 0;
}

static void look_at(struct learning *l, uint32_t window, uint64_t from,
                    const struct tbd_module *module, struct learned_site *site)
{
    uint32_t length = call_bytes(l, window, from);

    *site = (struct learned_site){ .from = from, .start = module->start };
    if (length == 0)
        return;
    site->file = tbd_contexts_file(l->dictionary, module->path);
    if (site->file != TBD_CONTEXT_FILES)
        site->offset = tbd_contexts_offset(module->file, from + length - module->bias);
}

static uint32_t node_of(struct learning *l, const struct tbd_event *event, uint32_t parent)
{
    uint32_t window = tbd_trace_window_of(l->session->trace, event->position.time);
    const struct tbd_module *module =
        tbd_symbols_module_at(l->session->symbols, window, event->from);
    struct learned_site *site = &l->sites[tbd_hash64_mix(event->from) & (SITES - 1)];
    uint32_t node;

    if (module == NULL || parent == NOT_KNOWN)
        return NOT_KNOWN;
    if (site->from != event->from || site->start != module->start)
        look_at(l, window, event->from, module, site);
    if (site->offset == 0)
        return NOT_KNOWN;
    node = tbd_contexts_add(l->dictionary,
                            (struct tbd_context_node){ parent, site->file, site->offset });
    return node != 0 ? node : NOT_KNOWN;
}

static bool take_event(void *context, const struct tbd_event *event)
{
    struct learning *l = context;
    struct learned_thread *thread = thread_of(l, event->thread);
    uint32_t parent = 0;

    if ((event->flags & TBD_EVENT_BY_JUMP) != 0) /* it leaves no return address */
        return true;
    while (thread != NULL && thread->count != 0 &&
           thread->frames[thread->count - 1].sp <= event->sp)
        thread->count--;
    if (thread != NULL && event->type == TBD_EVENT_FUNC_EXIT)
        return true;
    if (thread == NULL || !tbd_array_grow(&thread->frames, thread->count, &thread->capacity,
                                          sizeof(*thread->frames))) {
        l->is_short = true;
        return false;
    }
    if (thread->count != 0)
        parent = thread->frames[thread->count - 1].node;
    thread->frames[thread->count++] =
        (struct learned_frame){ event->sp, node_of(l, event, parent) };
    return true;
}

enum tbd_status tbd_contexts_learn(struct tbd_session *session,
                                   struct tbd_context_dictionary *dictionary)
{
    struct learning l = { .session = session,
                          .dictionary = dictionary,
                          .sites = calloc(SITES, sizeof(struct learned_site)) };
    struct tbd_question question = tbd_question_all(TBD_EVENT_FUNC_ENTER);
    struct tbd_query_error error = { .status = TBD_OK };
    struct tbd_search search = { .session = session,
                                 .question = &question,
                                 .error = &error,
                                 .each = take_event,
                                 .each_context = &l };
    struct tbd_event last;
    uint64_t found;
    enum tbd_status status = l.sites == NULL ? TBD_NOMEM : TBD_OK;

    question.count = TBD_QUESTION_ALL;
    question.every_return = question.only_calls = true;
    if (status == TBD_OK)
        status = tbd_search_run(&search, &last, &found);
    tbd_question_free(&question);
    for (size_t i = 0; i < l.thread_count; i++)
        free(l.threads[i].frames);
    free(l.threads);
    free(l.sites);
    if (l.is_short)
        return TBD_NOMEM;
    return status == TBD_NOTFOUND ? TBD_OK : status;
}

/* ---- a dump ---- */

/* A frame above the innermost one stands at a return address; one that a signal stopped does not. */
static bool learn_frame(struct tbd_session *session, struct tbd_context_dictionary *dictionary,
                        const struct tbd_frame *frame, uint32_t *node)
{
    const struct tbd_module *module = tbd_symbols_module_at(session->symbols, 0, frame->pc);
    uint64_t offset = module != NULL && module->file != NULL && frame->call_pc != frame->pc
                          ? tbd_contexts_offset(module->file, frame->pc - module->bias)
                          : 0;
    uint32_t file = offset != 0 ? tbd_contexts_file(dictionary, module->path) : TBD_CONTEXT_FILES;

    *node = file != TBD_CONTEXT_FILES
                ? tbd_contexts_add(dictionary, (struct tbd_context_node){ *node, file, offset })
                : 0;
    return *node != 0;
}

enum tbd_status tbd_contexts_learn_dump(struct tbd_session *session,
                                        struct tbd_context_dictionary *dictionary)
{
    enum tbd_status status = TBD_OK;
    uint32_t before = session->thread;

    for (uint32_t i = 0; i < tbd_trace_thread_count(session->trace) && status != TBD_NOMEM; i++) {
        struct tbd_source_stack stack;
        uint32_t node = 0;

        session->thread = tbd_trace_thread(session->trace, i)->tid;
        status = tbd_source_stack(session, (struct tbd_position){ 0 }, &stack);
        if (status != TBD_OK)
            continue; /* it has no registers */
        for (size_t at = stack.frame_count; at-- > 1;)
            if (!learn_frame(session, dictionary, &stack.frames[at], &node))
                break;
        tbd_source_stack_free(&stack);
    }
    session->thread = before;
    return status == TBD_NOMEM ? status : TBD_OK;
}
