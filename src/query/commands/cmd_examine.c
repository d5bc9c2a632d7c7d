// SPDX-License-Identifier: MIT
/* cmd_examine.c - x: memory as numbers, characters, addresses, strings, instructions, in gdb's format
 *
 * Each line begins with the address and the symbol there; how many values stand on one depends on
 * their size, as in gdb. */
#include "query/commands/commands.h"
#include "query/output/output.h"
#include "query/session/position_text.h"
#include "query/session/source/source_place.h"

#include "base/safe_stream.h"
#include "query/text/print_text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_MAX  65536ul
#define INSN_BYTES 15u /* the longest instruction */

struct examine {
    struct tbd_command_run *run;
    struct tbd_position position;
    uint32_t window;
    unsigned long count;
    char format;
    unsigned bytes;
    uint64_t address;
};

static bool is_of(char c, const char *letters)
{
    return c != '\0' && strchr(letters, c) != NULL;
}

/* "/4gx": sizes and formats in any order; what is not said is as it was. */
static bool read_units(const char *text, struct examine *out)
{
    const char *unit;
    bool has_size = false;

    if (isdigit((unsigned char)*text))
        out->count = strtoul(text, (char **)(uintptr_t)&text, 10);
    for (; *text != '\0'; text++) {
        unit = strchr("b1h2w4g8", *text);
        if (is_of(*text, "bhwg")) {
            out->bytes = (unsigned)(unit[1] - '0');
            has_size = true;
        } else if (is_of(*text, "xzduotcafsi")) {
            out->format = *text;
        } else {
            return false;
        }
    }
    if (!has_size && (out->format == 'c' || out->format == 's'))
        out->bytes = 1;
    else if (!has_size && (out->format == 'a' || (out->format == 'f' && out->bytes < 4)))
        out->bytes = 8;
    return out->count != 0 && out->count <= COUNT_MAX;
}

/* ---- one value ---- */

static bool read_memory(const struct examine *x, uint64_t address, void *out, size_t bytes)
{
    return tbd_session_read(x->run->session, x->position, address, out, bytes) == TBD_OK;
}

/* " <table+8>", if the address has a symbol. */
static void print_symbol(const struct examine *x, uint64_t address)
{
    struct tbd_symbol symbol;

    if (!tbd_symbols_at(x->run->session->symbols, x->window, address, &symbol) ||
        symbol.name == NULL || symbol.is_made_up)
        return;
    fprintf(x->run->out, " <%s", tbd_shown(symbol.name));
    if (address != symbol.start)
        fprintf(x->run->out, "+%" PRIu64, address - symbol.start);
    fputc('>', x->run->out);
}

static void print_label(const struct examine *x, uint64_t address)
{
    fprintf(x->run->out, "0x%" PRIx64, address);
    print_symbol(x, address);
    fputc(':', x->run->out);
}

static void print_binary(FILE *out, uint64_t value, unsigned bytes)
{
    for (unsigned bit = bytes * 8; bit-- > 0;)
        fputc('0' + (int)(value >> bit & 1), out);
}

static void print_float(FILE *out, uint64_t value, unsigned bytes)
{
    double real;
    float small;

    memcpy(&real, &value, sizeof(real));
    memcpy(&small, &value, sizeof(small));
    if (bytes == 8)
        fprintf(out, "%.17g", real);
    else
        fprintf(out, "%.9g", (double)small);
}

static void print_char(FILE *out, int64_t value)
{
    fprintf(out, "%" PRId64 " '", value);
    tbd_text_print_char(out, (uint8_t)value, '\'');
    fputc('\'', out);
}

static void print_unit(const struct examine *x, uint64_t value)
{
    int64_t wide = (int64_t)tbd_data_extend(value, x->bytes * 8, true);
    FILE *out = x->run->out;

    switch (x->format) {
    case 'd': fprintf(out, "%" PRId64, wide); break;
    case 'u': fprintf(out, "%" PRIu64, value); break;
    case 'o': fprintf(out, value == 0 ? "0" : "0%" PRIo64, value); break;
    case 't': print_binary(out, value, x->bytes); break;
    case 'c': print_char(out, wide); break;
    case 'a':
        fprintf(out, "0x%" PRIx64, (uint64_t)wide);
        print_symbol(x, (uint64_t)wide);
        break;
    case 'f':
        if (x->bytes >= 4)
            print_float(out, value, x->bytes);
        else
            fprintf(out, "%" PRId64, wide);
        break;
    default: fprintf(out, "0x%0*" PRIx64, (int)x->bytes * 2, value); break;
    }
}

/* ---- all ---- */

static enum tbd_exit unknown(const struct examine *x, uint64_t address)
{
    fflush(x->run->out);
    fprintf(stderr, "tbdq: memory at 0x%" PRIx64 " is not known at %s\n", address,
            tbd_position_text(x->run->session, x->position).text);
    return TBD_EXIT_NOT_FOUND;
}

static void put_json(const struct examine *x, uint64_t address, size_t bytes, json_t *value)
{
    json_t *object = json_object();

    json_object_set_new(object, "addr", tbd_output_hex(address));
    json_object_set_new(object, "size", json_integer((json_int_t)bytes));
    json_object_set_new(object, "value", value);
    tbd_output_line(object, x->run->out);
}

static unsigned per_line(const struct examine *x)
{
    return x->bytes == 8 ? 2 : x->bytes == 4 ? 4 : 8;
}

static enum tbd_exit examine_units(struct examine *x)
{
    FILE *out = x->run->out;
    enum tbd_exit result = TBD_EXIT_FOUND;
    uint64_t value;

    for (unsigned long i = 0; i < x->count && result == TBD_EXIT_FOUND; i++) {
        bool begins = i % per_line(x) == 0;

        value = 0;
        if (!read_memory(x, x->address, &value, x->bytes)) {
            if (!begins && !x->run->session->json)
                fputc('\n', out);
            return unknown(x, x->address);
        }
        if (x->run->session->json) {
            put_json(x, x->address, x->bytes, tbd_output_hex(value));
        } else {
            if (begins)
                print_label(x, x->address);
            fputc('\t', out);
            print_unit(x, value);
            if (i + 1 == x->count || (i + 1) % per_line(x) == 0)
                fputc('\n', out);
        }
        x->address += x->bytes;
    }
    return result;
}

static enum tbd_exit examine_strings(struct examine *x)
{
    uint8_t text[TBD_TEXT_SHOWN + 1];
    FILE *out = x->run->out;

    for (unsigned long i = 0; i < x->count; i++) {
        uint64_t start = x->address;
        size_t count = 0;

        while (count < TBD_TEXT_SHOWN && read_memory(x, start + count, &text[count], 1) &&
               text[count] != 0)
            count++;
        if (count == 0 && !read_memory(x, start, text, 1))
            return unknown(x, start);
        text[count] = '\0';
        x->address += count + (count < TBD_TEXT_SHOWN);
        if (x->run->session->json) {
            put_json(x, start, x->bytes, tbd_output_text((char *)text));
            continue;
        }
        print_label(x, start);
        fputc('\t', out);
        tbd_text_print(out, text, count, count == TBD_TEXT_SHOWN);
        fputc('\n', out);
    }
    return TBD_EXIT_FOUND;
}

/* The instruction that the selected frame is at; false: there is none. */
static bool selected_pc(const struct examine *x, uint64_t *out)
{
    static const char pc[] = "$pc";
    struct tbd_query_error error = { .status = TBD_OK };
    struct tbd_source_place place;
    struct tbd_data data;
    bool is_known;

    if (tbd_source_evaluate(x->run->session, x->position, pc, 0, strlen(pc), &place, &data,
                            &error) != TBD_OK)
        return false;
    is_known = tbd_data_scalar(&place.places[0], &data, out);
    tbd_source_place_close(&place);
    return is_known;
}

/* As much of an instruction as is known there; 0: nothing. */
static size_t read_code(const struct examine *x, uint8_t code[INSN_BYTES])
{
    size_t bytes = INSN_BYTES;

    while (bytes != 0 && !read_memory(x, x->address, code, bytes))
        bytes--;
    return bytes;
}

static enum tbd_exit examine_insns(struct examine *x)
{
    struct tbd_session *session = x->run->session;
    uint64_t pc;
    bool has_pc = selected_pc(x, &pc);

    for (unsigned long i = 0; i < x->count; i++) {
        uint8_t code[INSN_BYTES];
        char text[256];
        size_t bytes = read_code(x, code);
        uint32_t length = bytes == 0 ? 0
                                     : tbd_disas_text(session->disas, x->window, code, bytes,
                                                      x->address, text, sizeof(text));

        if (bytes == 0)
            return unknown(x, x->address);
        length += length == 0;
        if (session->json) {
            put_json(x, x->address, length, tbd_output_text(text));
        } else {
            fputs(has_pc && x->address == pc ? "=> " : "   ", x->run->out);
            print_label(x, x->address);
            fprintf(x->run->out, "\t%s\n", tbd_shown(text));
        }
        x->address += length;
    }
    return TBD_EXIT_FOUND;
}

static enum tbd_exit examine_all(struct examine *x)
{
    switch (x->format) {
    case 's': return examine_strings(x);
    case 'i': return examine_insns(x);
    default: return examine_units(x);
    }
}

enum tbd_exit tbd_command_address(struct tbd_command_run *run, struct tbd_position position,
                                  size_t from, size_t to, uint64_t *out)
{
    struct tbd_source_place place;
    struct tbd_type_view view;
    struct tbd_data data;
    enum tbd_exit result = tbd_command_value_of(run, position, from, to, &place, &data);

    if (result != TBD_EXIT_FOUND)
        return result;
    view = tbd_type_look(&data.type);
    if (data.is_known && data.in_memory &&
        (view.kind == TBD_TYPE_ARRAY || view.kind == TBD_TYPE_FUNCTION ||
         view.kind == TBD_TYPE_STRUCT || view.kind == TBD_TYPE_VOID))
        *out = data.address;
    else if (!tbd_data_scalar(&place.places[0], &data, out))
        result = TBD_EXIT_NOT_FOUND;
    if (result != TBD_EXIT_FOUND)
        fprintf(stderr, "tbdq: this is no address%s%s\n", data.is_known ? "" : ": ",
                data.is_known ? "" : tbd_shown(data.why));
    tbd_source_place_close(&place);
    return result;
}

enum tbd_exit tbd_command_examine(struct tbd_command_run *run)
{
    struct tbd_session *session = run->session;
    struct examine x = { .run = run, .count = 1, .format = 'x', .bytes = 4 };
    bool has_units = run->argc != 0 && run->argv[0][0] == '/';
    size_t from = run->arguments;
    enum tbd_exit result = TBD_EXIT_FOUND;

    if (session->examined.format != 0) {
        x.count = run->argc == 0 ? session->examined.count : 1;
        x.format = session->examined.format;
        x.bytes = session->examined.bytes;
    }
    if (has_units && !read_units(run->argv[0] + 1, &x))
        return tbd_command_usage(run, "x takes /COUNT, a format of xzduotcafsi and a size of bhwg");
    if (has_units)
        from += strlen(run->argv[0]);
    x.position = tbd_session_current(session);
    x.window = tbd_trace_window_of(session->trace, x.position.time);
    x.address = session->examined.next;
    if (run->argc > has_units)
        result = tbd_command_address(run, x.position, from, strlen(run->text), &x.address);
    else if (session->examined.format == 0 && (x.format != 'i' || !selected_pc(&x, &x.address)))
        return tbd_command_usage(run, "x takes an address");
    if (result == TBD_EXIT_FOUND)
        result = examine_all(&x);
    session->examined.next = x.address;
    session->examined.count = x.count;
    session->examined.format = x.format;
    session->examined.bytes = x.bytes;
    return result;
}
