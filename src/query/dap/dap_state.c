// SPDX-License-Identifier: MIT
/* dap_state.c - where the program stands: threads, frames, scopes, modules, the signal that stopped it */
#include "query/dap/dap_requests.h"

#include "query/output/output.h"
#include "query/session/signal_info.h"
#include "query/session/thread_names.h"

#include "base/array.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES_AT_ONCE 20000u

/* ---- where it stands ---- */

void tbd_dap_select(struct tbd_dap *dap, uint32_t thread)
{
    struct tbd_place place;

    if (thread == 0)
        thread = dap->thread;
    dap->session.thread = 0;
    if (tbd_session_place(&dap->session, tbd_dap_at(dap), &place) == TBD_OK &&
        place.thread != thread)
        dap->session.thread = thread;
    dap->session.unwritten.thread = dap->session.thread; /* what commands take */
}

void tbd_dap_moved(struct tbd_dap *dap)
{
    struct tbd_session *session = &dap->session;
    struct tbd_place place;

    dap->thread = session->unwritten.thread;
    if (dap->thread == 0 && tbd_session_place(session, tbd_dap_at(dap), &place) == TBD_OK)
        dap->thread = place.thread;
    dap->hidden = 0;
    dap->frame_count = 0;
    tbd_dap_forget_values(dap);
    tbd_dap_select(dap, 0);
}

void tbd_dap_stopped(struct tbd_dap *dap, const char *reason, const char *description,
                     const struct tbd_dap_point *point)
{
    json_t *body = json_pack("{s:s, s:I, s:b}", "reason", reason, "threadId",
                             (json_int_t)dap->thread, "allThreadsStopped", true);

    if (description != NULL)
        json_object_set_new(body, "description", tbd_output_text(description));
    if (point != NULL && point->kind != TBD_DAP_SIGNAL)
        json_object_set_new(body, "hitBreakpointIds", json_pack("[i]", point->id));
    tbd_dap_event(dap, "stopped", body);
    tbd_dap_event(dap, "tbdPosition",
                  json_pack("{s:I, s:I, s:I}", "time", (json_int_t)tbd_dap_at(dap).time, "offset",
                            (json_int_t)tbd_dap_at(dap).offset, "blocks",
                            (json_int_t)dap->session.info->blocks));
}

/* ---- threads ---- */

void tbd_dap_threads(struct tbd_dap *dap, const json_t *arguments)
{
    struct tbd_trace *trace = dap->session.trace;
    json_t *threads = json_array();

    (void)arguments;
    for (uint32_t i = 0; i < tbd_trace_thread_count(trace); i++) {
        const struct tbd_thread_info *thread = tbd_trace_thread(trace, i);
        char name[TBD_THREAD_NAME_BYTES];

        if (!tbd_thread_lives_at(thread, tbd_dap_at(dap).time))
            continue;
        tbd_thread_name(&dap->session, thread, name);
        json_array_append_new(threads, json_pack("{s:I, s:o}", "id", (json_int_t)thread->tid,
                                                 "name", tbd_output_text(name)));
    }
    tbd_dap_reply(dap, json_pack("{s:o}", "threads", threads));
}

static bool lives(const struct tbd_dap *dap, json_int_t tid)
{
    const struct tbd_thread_info *thread =
        tid <= 0 || tid > UINT32_MAX
            ? NULL
            : tbd_trace_thread_of(dap->session.trace, (uint32_t)tid, tbd_dap_at(dap).time);

    return thread != NULL && tbd_thread_lives_at(thread, tbd_dap_at(dap).time);
}

/* ---- frames ---- */

/* The frame's id; 0 without memory. */
static json_int_t frame_id(struct tbd_dap *dap, uint32_t thread, size_t number)
{
    for (size_t i = 0; i < dap->frame_count; i++)
        if (dap->frames[i].thread == thread && dap->frames[i].number == number)
            return (json_int_t)i + 1;
    if (!tbd_array_grow(&dap->frames, dap->frame_count, &dap->frame_capacity, sizeof(*dap->frames)))
        return 0;
    dap->frames[dap->frame_count++] = (struct tbd_dap_frame){ thread, number };
    return (json_int_t)dap->frame_count;
}

bool tbd_dap_frame_of(struct tbd_dap *dap, json_int_t id, struct tbd_dap_frame *out)
{
    *out = (struct tbd_dap_frame){ dap->thread, dap->hidden };
    if (id == 0)
        return true;
    if (id < 1 || (uint64_t)id > dap->frame_count) {
        tbd_dap_refuse(dap, "there is no frame %lld: the program stands somewhere else now",
                       (long long)id);
        return false;
    }
    *out = dap->frames[id - 1];
    return true;
}

bool tbd_dap_open_place(struct tbd_dap *dap, const struct tbd_dap_frame *frame,
                        struct tbd_source_place *out)
{
    enum tbd_status status;

    tbd_dap_select(dap, frame->thread);
    status = tbd_source_place_open(&dap->session, tbd_dap_at(dap), frame->number, out);
    if (status != TBD_OK) {
        tbd_dap_select(dap, 0);
        tbd_dap_refuse_status(dap, status);
    }
    return status == TBD_OK;
}

void tbd_dap_close_place(struct tbd_dap *dap, struct tbd_source_place *place)
{
    tbd_source_place_close(place);
    tbd_dap_select(dap, 0);
}

static json_t *hex(uint64_t value)
{
    return tbd_output_hex(value);
}

static json_t *frame_name(struct tbd_dap *dap, const struct tbd_source_stack *stack,
                          const struct tbd_source_frame *call)
{
    const struct tbd_frame *frame = &stack->frames[call->stack];
    struct tbd_symbol symbol;
    char name[512];

    if (call->name != NULL)
        return tbd_output_text(call->name);
    if (tbd_symbols_at(dap->session.symbols, stack->window, frame->call_pc, &symbol) &&
        symbol.name != NULL)
        return tbd_output_text(symbol.name);
    return tbd_output_text(tbd_symbols_format(dap->session.symbols, stack->window, frame->call_pc,
                                              name, sizeof(name)));
}

static json_t *frame_object(struct tbd_dap *dap, const struct tbd_source_stack *stack,
                            uint32_t thread, size_t number)
{
    const struct tbd_source_frame *call = &stack->calls[number];
    const struct tbd_frame *frame = &stack->frames[call->stack];
    const struct tbd_module *module =
        tbd_symbols_module_at(dap->session.symbols, stack->window, frame->call_pc);
    json_t *object =
        json_pack("{s:I, s:o, s:I, s:i, s:o}", "id", frame_id(dap, thread, number), "name",
                  frame_name(dap, stack, call), "line",
                  (json_int_t)call->source.line - (dap->client.lines_from_0 && call->source.line),
                  "column", dap->client.columns_from_0 || call->source.line == 0 ? 0 : 1,
                  "instructionPointerReference", hex(frame->pc));

    if (call->source.line != 0)
        json_object_set_new(object, "source", tbd_dap_source(dap, call->source.file));
    else
        json_object_set_new(object, "presentationHint", json_string("subtle"));
    if (module != NULL)
        json_object_set_new(object, "moduleId", tbd_output_text(module->path));
    return object;
}

void tbd_dap_stack_trace(struct tbd_dap *dap, const json_t *arguments)
{
    json_int_t tid = tbd_dap_number(arguments, "threadId", 0);
    json_int_t first = tbd_dap_number(arguments, "startFrame", 0);
    json_int_t levels = tbd_dap_number(arguments, "levels", 0);
    struct tbd_source_stack stack;
    enum tbd_status status;
    json_t *frames;
    size_t from, end;

    if (!lives(dap, tid)) {
        tbd_dap_refuse(dap, "no thread %lld lives here", (long long)tid);
        return;
    }
    tbd_dap_select(dap, (uint32_t)tid);
    status = tbd_source_stack(&dap->session, tbd_dap_at(dap), &stack);
    if (status != TBD_OK) {
        tbd_dap_refuse_status(dap, status);
        return;
    }
    from = (uint32_t)tid == dap->thread && dap->hidden < stack.count ? dap->hidden : 0;
    frames = json_array();
    end = levels > 0 && (uint64_t)levels < FRAMES_AT_ONCE ? (size_t)levels : FRAMES_AT_ONCE;
    for (size_t i = 0; i < end && first >= 0 && (uint64_t)first < stack.count - from - i; i++)
        json_array_append_new(frames,
                              frame_object(dap, &stack, (uint32_t)tid, from + (size_t)first + i));
    tbd_dap_reply(dap, json_pack("{s:o, s:I}", "stackFrames", frames, "totalFrames",
                                 (json_int_t)(stack.count - from)));
    tbd_source_stack_free(&stack);
}

/* ---- the signal ---- */

void tbd_dap_exception_info(struct tbd_dap *dap, const json_t *arguments)
{
    struct tbd_event event = { .type = TBD_EVENT_POSITION, .position = tbd_dap_at(dap) };
    char name[32], text[256];
    json_t *details;

    (void)arguments;
    if (tbd_position_compare(tbd_dap_at(dap), tbd_session_last(&dap->session)) != 0 ||
        !tbd_signal_take_fatal(&event, dap->session.info)) {
        struct tbd_nearest nearest = { .session = &dap->session, .from = tbd_dap_at(dap) };
        struct tbd_nearest_wish wish = { .question = "signal", .with_own = true };
        bool is_nearest;

        if (tbd_nearest_look(&nearest, &wish, &is_nearest) != TBD_OK || !is_nearest ||
            tbd_position_compare(nearest.event.position, tbd_dap_at(dap)) != 0) {
            tbd_dap_refuse(dap, "no signal arrives here");
            return;
        }
        event = nearest.event;
    }
    (void)tbd_signal_name(event.number, name, sizeof(name));
    snprintf(text, sizeof(text), "%s%s%s", tbd_signal_name(event.number, name, sizeof(name)),
             (event.flags & TBD_EVENT_HAS_CODE) != 0 ? ", " : "",
             (event.flags & TBD_EVENT_HAS_CODE) == 0 ||
                     tbd_signal_code_name(event.number, event.code) == NULL
                 ? ""
                 : tbd_signal_code_name(event.number, event.code));
    if ((event.flags & TBD_EVENT_HAS_ADDR) != 0)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), " at %#" PRIx64, event.addr);
    details = json_pack("{s:s, s:s}", "message", text, "typeName", name);
    tbd_dap_reply(dap, json_pack("{s:s, s:s, s:s, s:o}", "exceptionId", name, "description", text,
                                 "breakMode",
                                 (event.flags & TBD_EVENT_FATAL) != 0 ? "unhandled" : "always",
                                 "details", details));
}

/* ---- modules ---- */

void tbd_dap_modules(struct tbd_dap *dap, const json_t *arguments)
{
    json_int_t first = tbd_dap_number(arguments, "startModule", 0);
    json_int_t count = tbd_dap_number(arguments, "moduleCount", 0);
    uint32_t window = tbd_trace_window_of(dap->session.trace, tbd_dap_at(dap).time);
    const struct tbd_module *modules;
    size_t total = 0;
    json_t *list;
    enum tbd_status status = tbd_symbols_modules(dap->session.symbols, window, &modules, &total);

    if (status != TBD_OK) {
        tbd_dap_refuse_status(dap, status);
        return;
    }
    list = json_array();
    for (size_t i = first < 0 ? total : (size_t)first; i < total; i++) {
        bool has_lines = tbd_dwarf_of(modules[i].file) != NULL;
        char range[64];

        if (count > 0 && json_array_size(list) == (size_t)count)
            break;
        snprintf(range, sizeof(range), "0x%" PRIx64 "-%#" PRIx64, modules[i].start, modules[i].end);
        json_array_append_new(list, json_pack("{s:o, s:o, s:o, s:s, s:s, s:o}", "id",
                                              tbd_output_text(modules[i].path), "name",
                                              tbd_output_text(modules[i].name), "path",
                                              tbd_output_text(modules[i].path), "addressRange",
                                              range, "symbolStatus",
                                              has_lines ? "Debug information" : "Symbols only",
                                              "version", tbd_output_text(modules[i].build_id)));
    }
    tbd_dap_reply(dap, json_pack("{s:o, s:I}", "modules", list, "totalModules", (json_int_t)total));
}

/* ---- scopes ---- */

/* The scope's reference; 0 without memory. */
static json_int_t handle(struct tbd_dap *dap, enum tbd_dap_handle_kind kind,
                         const struct tbd_dap_frame *frame)
{
    if (!tbd_array_grow(&dap->handles, dap->handle_count, &dap->handle_capacity,
                        sizeof(*dap->handles)))
        return 0;
    dap->handles[dap->handle_count++] = (struct tbd_dap_handle){ .kind = kind, .frame = *frame };
    return (json_int_t)dap->handle_count;
}

void tbd_dap_scopes(struct tbd_dap *dap, const json_t *arguments)
{
    static const struct {
        const char *name, *hint;
        enum tbd_dap_handle_kind kind;
        bool is_expensive;
    } all[] = { { "Arguments", "arguments", TBD_DAP_ARGUMENTS, false },
                { "Locals", "locals", TBD_DAP_LOCALS, false },
                { "Globals of the file", "globals", TBD_DAP_GLOBALS, true },
                { "Registers", "registers", TBD_DAP_REGISTERS, true },
                { "Vector registers", "registers", TBD_DAP_VECTORS, true } };
    json_t *scopes = json_array();
    struct tbd_dap_frame frame;

    if (!tbd_dap_frame_of(dap, tbd_dap_number(arguments, "frameId", 0), &frame)) {
        json_decref(scopes);
        return;
    }
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        json_array_append_new(
            scopes, json_pack("{s:s, s:s, s:I, s:b}", "name", all[i].name, "presentationHint",
                              all[i].hint, "variablesReference", handle(dap, all[i].kind, &frame),
                              "expensive", all[i].is_expensive));
    tbd_dap_reply(dap, json_pack("{s:o}", "scopes", scopes));
}
