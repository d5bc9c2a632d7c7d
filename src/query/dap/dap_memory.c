// SPDX-License-Identifier: MIT
/* dap_memory.c - bytes and instructions at addresses */
#include "query/dap/dap_requests.h"

#include "query/output/output.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define READ_MAX   (1u << 20)
#define INSNS_MAX  10000u
#define INSN_BYTES 15u
#define PAGE       4096u
#define FUNCTION_MAX                                                                               \
    (1u << 20) /* bytes from a function's start that are decoded to find an instruction */

/* ---- bytes ---- */

/* How many of the bytes are known, page by page. */
static size_t read_known(struct tbd_dap *dap, uint64_t address, uint8_t *out, size_t bytes)
{
    size_t done = 0;

    while (done < bytes) {
        size_t part = (size_t)(PAGE - (address + done) % PAGE);

        if (part > bytes - done)
            part = bytes - done;
        if (tbd_session_read(&dap->session, tbd_dap_at(dap), address + done, out + done, part) !=
            TBD_OK)
            break;
        done += part;
    }
    return done;
}

static json_t *base64(const uint8_t *bytes, size_t count)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = malloc((count + 2) / 3 * 4 + 1), *at = text;
    json_t *value;

    if (text == NULL)
        return json_string("");
    for (size_t i = 0; i < count; i += 3) {
        uint32_t three = (uint32_t)bytes[i] << 16;

        three |= i + 1 < count ? (uint32_t)bytes[i + 1] << 8 : 0;
        three |= i + 2 < count ? bytes[i + 2] : 0;
        *at++ = digits[three >> 18];
        *at++ = digits[three >> 12 & 63];
        *at++ = i + 1 < count ? digits[three >> 6 & 63] : '=';
        *at++ = i + 2 < count ? digits[three & 63] : '=';
    }
    value = json_stringn(text, (size_t)(at - text));
    free(text);
    return value;
}

void tbd_dap_read_memory(struct tbd_dap *dap, const json_t *arguments)
{
    json_int_t count = tbd_dap_number(arguments, "count", 0);
    size_t wanted = count < 0 ? 0 : count > READ_MAX ? READ_MAX : (size_t)count;
    uint8_t *bytes = malloc(wanted + 1);
    uint64_t address;
    size_t known;
    json_t *body;

    if (bytes == NULL || !tbd_dap_address(tbd_dap_text(arguments, "memoryReference"), &address)) {
        tbd_dap_refuse(dap, "the memory reference is no address");
        free(bytes);
        return;
    }
    address += (uint64_t)tbd_dap_number(arguments, "offset", 0);
    known = read_known(dap, address, bytes, wanted);
    body = json_pack("{s:o}", "address", tbd_output_hex(address));
    if (known != 0)
        json_object_set_new(body, "data", base64(bytes, known));
    if (known < (uint64_t)(count < 0 ? 0 : count))
        json_object_set_new(body, "unreadableBytes", json_integer(count - (json_int_t)known));
    free(bytes);
    tbd_dap_reply(dap, body);
}

/* ---- instructions ---- */

struct code {
    struct tbd_dap *dap;
    uint32_t window;
    struct tbd_source_line last; /* of the instruction before */
};

/* The instruction at `address` as text; 0: none can be read there. */
static uint32_t decode(struct code *code, uint64_t address, uint8_t bytes[INSN_BYTES], char *out,
                       size_t out_bytes)
{
    size_t known = read_known(code->dap, address, bytes, INSN_BYTES);

    if (known == 0)
        known = tbd_symbols_read_file(code->dap->session.symbols, code->window, address, bytes,
                                      INSN_BYTES);
    return known == 0 ? 0
                      : tbd_disas_text(code->dap->session.disas, code->window, bytes, known,
                                       address, out, out_bytes);
}

/* The start of the instruction `count` before the one at `address`: from the function's start on, as no
 * instruction says where the one before it begins; address - count if that is not known. */
static uint64_t go_back(struct code *code, uint64_t address, uint64_t count)
{
    uint64_t *starts = calloc(count, sizeof(*starts));
    uint8_t bytes[INSN_BYTES];
    struct tbd_symbol symbol;
    uint64_t at = 0, seen = 0;
    char text[128];

    if (starts != NULL &&
        tbd_symbols_at(code->dap->session.symbols, code->window, address - 1, &symbol) &&
        symbol.name != NULL && address - symbol.start < FUNCTION_MAX)
        at = symbol.start;
    while (at != 0 && at < address) {
        uint32_t length = decode(code, at, bytes, text, sizeof(text));

        starts[seen++ % count] = at;
        at += length == 0 ? 1 : length;
    }
    if (at == address && seen >= count)
        at = starts[seen % count];
    else if (at == address && seen != 0)
        at = starts[0] - (count - seen);
    else
        at = address - count;
    free(starts);
    return at;
}

static void add_place(struct code *code, uint64_t address, json_t *object)
{
    struct tbd_source_line line;
    struct tbd_symbol symbol;

    if (tbd_symbols_at(code->dap->session.symbols, code->window, address, &symbol) &&
        symbol.name != NULL && symbol.start == address)
        json_object_set_new(object, "symbol", tbd_output_text(symbol.name));
    if (!tbd_source_line_at(&code->dap->session, code->window, address, &line))
        return;
    if (code->last.file == NULL || strcmp(code->last.file, line.file) != 0)
        json_object_set_new(object, "location", tbd_dap_source(code->dap, line.file));
    json_object_set_new(object, "line",
                        json_integer((json_int_t)line.line - code->dap->client.lines_from_0));
    code->last = line;
}

/* One instruction; what cannot be read is invalid, and a byte long. */
static uint64_t add_instruction(struct code *code, uint64_t address, json_t *list)
{
    uint8_t bytes[INSN_BYTES];
    char text[256], digits[3 * INSN_BYTES + 1] = "";
    uint32_t length = decode(code, address, bytes, text, sizeof(text));
    json_t *object = json_pack("{s:o, s:o}", "address", tbd_output_hex(address), "instruction",
                               tbd_output_text(length == 0 ? "??" : text));

    for (uint32_t i = 0; i < length; i++)
        snprintf(digits + 3 * i, 4, "%02x ", bytes[i]);
    if (length != 0) {
        digits[3 * length - 1] = '\0';
        json_object_set_new(object, "instructionBytes", json_string(digits));
        add_place(code, address, object);
    } else {
        json_object_set_new(object, "presentationHint", json_string("invalid"));
    }
    json_array_append_new(list, object);
    return address + (length == 0 ? 1 : length);
}

void tbd_dap_disassemble(struct tbd_dap *dap, const json_t *arguments)
{
    struct code code = { .dap = dap,
                         .window = tbd_trace_window_of(dap->session.trace, tbd_dap_at(dap).time) };
    json_int_t count = tbd_dap_number(arguments, "instructionCount", 0);
    json_int_t before = tbd_dap_number(arguments, "instructionOffset", 0);
    uint8_t bytes[INSN_BYTES];
    uint64_t address;
    json_t *list;
    char text[128];

    if (!tbd_dap_address(tbd_dap_text(arguments, "memoryReference"), &address) || count < 0 ||
        count > INSNS_MAX || before < -(json_int_t)INSNS_MAX || before > INSNS_MAX) {
        tbd_dap_refuse(dap, "disassemble takes an address and at most %u instructions", INSNS_MAX);
        return;
    }
    address += (uint64_t)tbd_dap_number(arguments, "offset", 0);
    if (before < 0)
        address = go_back(&code, address, (uint64_t)-before);
    for (; before > 0; before--) {
        uint32_t length = decode(&code, address, bytes, text, sizeof(text));

        address += length == 0 ? 1 : length;
    }
    list = json_array();
    for (; count > 0; count--)
        address = add_instruction(&code, address, list);
    tbd_dap_reply(dap, json_pack("{s:o}", "instructions", list));
}
