// SPDX-License-Identifier: MIT
/* cmd_state.c - where, regs, mem, disas: the state at the current position */
#include "query/commands/commands.h"
#include "base/vector_layout.h"
#include "query/commands/functions.h"
#include "query/debuginfo/register_names.h"
#include "query/output/output.h"
#include "query/session/position_text.h"
#include "query/commands/rows.h"

#include "base/safe_stream.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MEM_MAX (16u << 20)

/* Keys that every answer about a position begins with. */
static json_t *position_object(const struct tbd_session *session, struct tbd_position position,
                               uint32_t thread)
{
    json_t *object = json_object();

    json_object_set_new(object, "time", tbd_output_time(session, position.time));
    json_object_set_new(object, "offset", json_integer((json_int_t)position.offset));
    json_object_set_new(object, "thread", json_integer((json_int_t)thread));
    return object;
}

/* The place of a thread that does not have control. */
static enum tbd_status place_of_thread(struct tbd_session *session, struct tbd_event *event)
{
    struct tbd_reg_state *state = calloc(1, sizeof(*state));
    enum tbd_status status =
        state == NULL ? TBD_NOMEM : tbd_session_regs(session, event->position, state);

    if (status == TBD_OK) {
        event->pc = state->regs.rip;
        event->thread = state->regs.thread;
    }
    free(state);
    return status;
}

enum tbd_exit tbd_command_where(struct tbd_command_run *run)
{
    struct tbd_event event = { .type = TBD_EVENT_POSITION };
    struct tbd_place place;
    enum tbd_status status;
    json_t *object;

    event.position = tbd_session_current(run->session);
    if (!tbd_command_take_thread(run) && run->argc != 0)
        return tbd_command_usage(run, "where takes no arguments but a thread");
    status = tbd_session_place(run->session, event.position, &place);
    event.pc = place.pc;
    event.thread = place.thread;
    if (status == TBD_OK && run->session->thread != 0 && run->session->thread != place.thread)
        status = place_of_thread(run->session, &event);
    if (status != TBD_OK)
        return tbd_command_fail(run, status);
    if (event.thread == place.thread)
        tbd_command_take_end(run->session, &event);
    object = tbd_output_event(run->session, &event);
    tbd_output_print_event(run->session, object, run->out);
    json_decref(object);
    return TBD_EXIT_FOUND;
}

/* ---- regs ---- */

/* xmm0-15 lie at 160 of the legacy area (SDM vol. 1, 13.4.1), lowest byte first. */
static void vector_text(const struct tbd_reg_state *state, unsigned number, char *out, size_t bytes)
{
    const uint8_t *lowest = state->xsave + TBD_VECTOR_XMM + (size_t)16 * number;
    size_t used = (size_t)snprintf(out, bytes, "0x");

    for (int i = 15; i >= 0; i--)
        used += (size_t)snprintf(out + used, bytes - used, "%02x", lowest[i]);
}

static void print_regs_json(const struct tbd_session *session, const struct tbd_reg_state *state,
                            FILE *out)
{
    json_t *object = position_object(session, state->position, state->regs.thread);
    char name[8];
    char text[40];

    for (uint32_t i = 0; i <= TBD_REGISTER_GS_BASE; i++)
        json_object_set_new(object, tbd_register_text(i),
                            tbd_output_hex(tbd_register_value(&state->regs, i)));
    for (unsigned i = 0; i < 16 && state->regs.xsave_bytes >= 512; i++) {
        snprintf(name, sizeof(name), "xmm%u", i);
        vector_text(state, i, text, sizeof(text));
        json_object_set_new(object, name, json_string(text));
    }
    tbd_output_line(object, out);
}

static void print_regs_text(const struct tbd_reg_state *state, FILE *out)
{
    char text[40];

    for (uint32_t i = 0; i <= TBD_REGISTER_GS_BASE; i++)
        fprintf(out, "%-7s 0x%016" PRIx64 "%s", tbd_register_text(i),
                tbd_register_value(&state->regs, i), i % 2 == 1 ? "\n" : "   ");
    for (unsigned i = 0; i < 16 && state->regs.xsave_bytes >= 512; i++) {
        vector_text(state, i, text, sizeof(text));
        fprintf(out, "xmm%-4u %s%s", i, text, i % 2 == 1 ? "\n" : "   ");
    }
}

enum tbd_exit tbd_command_regs(struct tbd_command_run *run)
{
    struct tbd_position position = tbd_session_current(run->session);
    struct tbd_reg_state *state;
    enum tbd_status status;

    if (!tbd_command_take_thread(run) && run->argc != 0)
        return tbd_command_usage(run, "regs takes no arguments but a thread");
    state = calloc(1, sizeof(*state));
    if (state == NULL)
        return tbd_command_fail(run, TBD_NOMEM);
    status = tbd_session_regs(run->session, position, state);
    if (status == TBD_OK && run->session->json)
        print_regs_json(run->session, state, run->out);
    else if (status == TBD_OK)
        print_regs_text(state, run->out);
    free(state);
    return status == TBD_OK ? TBD_EXIT_FOUND : tbd_command_fail(run, status);
}

/* ---- mem ---- */

static void print_hex_line(uint64_t address, const uint8_t *bytes, size_t count, FILE *out)
{
    fprintf(out, "0x%012" PRIx64 " ", address);
    for (size_t i = 0; i < 16; i++) {
        if (i < count)
            fprintf(out, "%s%02x", i == 8 ? "  " : " ", bytes[i]);
        else
            fprintf(out, "%s", i == 8 ? "    " : "   ");
    }
    fprintf(out, "  ");
    for (size_t i = 0; i < count; i++)
        fputc(isprint(bytes[i]) ? bytes[i] : '.', out);
    fputc('\n', out);
}

static enum tbd_exit print_memory_json(const struct tbd_command_run *run,
                                       struct tbd_position position, uint64_t address,
                                       const uint8_t *bytes, size_t count)
{
    json_t *object = position_object(run->session, position, 0);
    char *text = malloc(2 * count + 1);

    if (text == NULL) {
        json_decref(object);
        return tbd_command_no_memory();
    }
    for (size_t i = 0; i < count; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    text[2 * count] = '\0';
    json_object_del(object, "thread");
    json_object_set_new(object, "addr", tbd_output_hex(address));
    json_object_set_new(object, "size", json_integer((json_int_t)count));
    json_object_set_new(object, "bytes", json_string(text));
    tbd_output_line(object, run->out);
    free(text);
    return TBD_EXIT_FOUND;
}

static enum tbd_exit print_memory(struct tbd_command_run *run, struct tbd_position position,
                                  uint64_t address, size_t count)
{
    uint8_t *bytes = malloc(count);
    enum tbd_status status =
        bytes == NULL ? TBD_NOMEM : tbd_session_read(run->session, position, address, bytes, count);
    enum tbd_exit result = TBD_EXIT_FOUND;

    if (status == TBD_UNMAPPED || status == TBD_NOTKEPT) {
        fprintf(stderr, "tbdq: 0x%" PRIx64 ", %zu bytes at %s: %s\n", address, count,
                tbd_position_text(run->session, position).text, tbd_status_text(status));
        result = TBD_EXIT_NOT_FOUND;
    } else if (status != TBD_OK) {
        result = tbd_command_fail(run, status);
    } else if (run->session->json) {
        result = print_memory_json(run, position, address, bytes, count);
    } else {
        for (size_t i = 0; i < count; i += 16)
            print_hex_line(address + i, bytes + i, count - i < 16 ? count - i : 16, run->out);
    }
    free(bytes);
    return result;
}

enum tbd_exit tbd_command_mem(struct tbd_command_run *run)
{
    struct tbd_position position = tbd_session_current(run->session);
    uint64_t address;
    uint64_t bytes;
    enum tbd_exit result;

    if (run->argc != 2)
        return tbd_command_usage(run, "mem takes an address and a length");
    result = tbd_command_value(run, 0, position, &address);
    if (result == TBD_EXIT_FOUND)
        result = tbd_command_value(run, 1, position, &bytes);
    if (result != TBD_EXIT_FOUND)
        return result;
    if (bytes == 0 || bytes > MEM_MAX)
        return tbd_command_usage(run, "the length is from 1 to 16 MiB");
    return print_memory(run, position, address, (size_t)bytes);
}

/* ---- disas ---- */

/* At most insn->length bytes are looked at; returns how many the instruction has, 0 if it does not decode.  `position`
 * NULL: it was not necessarily executed. */
static uint32_t print_insn(const struct tbd_command_run *run, const struct tbd_position *position,
                           uint32_t window, const struct tbd_block_insn *insn)
{
    char text[256];
    char name[256];
    uint32_t length = tbd_disas_text(run->session->disas, window, insn->bytes, insn->length,
                                     insn->pc, text, sizeof(text));
    json_t *object;

    if (!run->session->json) {
        tbd_symbols_format(run->session->symbols, window, insn->pc, name, sizeof(name));
        if (position != NULL)
            fprintf(run->out, "%s+%-3" PRIu32 " ", tbd_time_text(run->session, position->time).text,
                    position->offset);
        fprintf(run->out, "0x%012" PRIx64 "  %-40s %s\n", insn->pc, tbd_shown(name),
                tbd_shown(text));
        return length;
    }
    object = position != NULL ? position_object(run->session, *position, 0) : json_object();
    json_object_del(object, "thread");
    json_object_set_new(object, "pc", tbd_output_hex(insn->pc));
    tbd_output_symbol(run->session, window, insn->pc, object);
    json_object_set_new(object, "text", tbd_output_text(text));
    tbd_output_line(object, run->out);
    return length;
}

/* Instructions as executed, block by block. */
static enum tbd_status disassemble(struct tbd_command_run *run, struct tbd_position position,
                                   uint64_t count)
{
    while (count > 0) {
        struct tbd_place place;
        struct tbd_block_insn insn;
        enum tbd_status status = tbd_session_place(run->session, position, &place);

        if (status != TBD_OK)
            return status;
        for (; count > 0 && position.offset < place.insns &&
               tbd_disas_insn(run->session->disas, place.id, position.offset, &insn) &&
               insn.length != 0;
             count--, position.offset++)
            (void)print_insn(run, &position, place.window, &insn);
        if (position.time + 1 >= run->session->info->blocks)
            break;
        position = (struct tbd_position){ .time = position.time + 1 };
    }
    return TBD_OK;
}

/* The dump of a program that was killed has no memory: its code is the file's. */
static enum tbd_status read_code(struct tbd_command_run *run, struct tbd_position position,
                                 uint64_t address, uint8_t *out, size_t bytes)
{
    struct tbd_session *session = run->session;

    if (session->info->has_rings_only &&
        tbd_symbols_read_file(session->symbols, 0, address, out, bytes) == bytes)
        return TBD_OK;
    return tbd_session_read(session, position, address, out, bytes);
}

/* All of a function, from memory as it is at the position. */
static enum tbd_exit disassemble_function(struct tbd_command_run *run, struct tbd_position position,
                                          const struct tbd_symbol *symbol)
{
    uint32_t window = tbd_trace_window_of(run->session->trace, position.time);
    size_t bytes = symbol->end - symbol->start, length;
    uint8_t *code = malloc(bytes);
    enum tbd_status status =
        code == NULL ? TBD_NOMEM : read_code(run, position, symbol->start, code, bytes);

    for (size_t at = 0; status == TBD_OK && at < bytes; at += length) {
        struct tbd_block_insn insn = { .pc = symbol->start + at,
                                       .bytes = code + at,
                                       .length = (uint32_t)(bytes - at) };

        length = print_insn(run, NULL, window, &insn);
        length += length == 0;
    }
    free(code);
    return status == TBD_OK ? TBD_EXIT_FOUND : tbd_command_fail(run, status);
}

#define FUNCTION_MAX (1u << 20) /* bytes */

/* Is the argument a function's name? */
static bool find_function(struct tbd_command_run *run, struct tbd_position position,
                          struct tbd_symbol *out)
{
    uint32_t window = tbd_trace_window_of(run->session->trace, position.time);

    return run->argc == 1 &&
           tbd_symbols_find(run->session->symbols, window, run->argv[0], out, 1) > 0 &&
           out->is_function && out->end > out->start && out->end - out->start <= FUNCTION_MAX;
}

enum tbd_exit tbd_command_disas(struct tbd_command_run *run)
{
    struct tbd_symbol symbol;
    struct tbd_position position = tbd_session_current(run->session);
    uint64_t count = 10;
    enum tbd_exit result = TBD_EXIT_FOUND;
    enum tbd_status status;

    if (run->argc > 1)
        return tbd_command_usage(run, "disas takes a function, or a number of instructions");
    if (find_function(run, position, &symbol)) {
        tbd_functions_tell(run->session, run->argv[0]);
        return disassemble_function(run, position, &symbol);
    }
    if (run->argc == 1)
        result = tbd_command_value(run, 0, position, &count);
    if (result != TBD_EXIT_FOUND)
        return result;
    status = disassemble(run, position, count);
    return status == TBD_OK ? TBD_EXIT_FOUND : tbd_command_fail(run, status);
}
