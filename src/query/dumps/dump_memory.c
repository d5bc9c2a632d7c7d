// SPDX-License-Identifier: MIT
/* dump_memory.c - mem and x at a position before a dump's end (dump_values.h)
 *
 * How well a stretch of memory is known is that of the byte which is known least. */
#include "query/dumps/dump_values.h"

#include "query/dumps/dump_values_private.h"
#include "query/output/output.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MEM_MAX = 16 << 20, LINE = 16 };

/* ---- mem ---- */

/* A stretch of memory, and how well each byte is known. */
struct known_bytes {
    uint8_t *bytes, *known, *exact; /* owned, in one piece */
    size_t count;
};

static enum tbd_certainty certainty_of(const struct known_bytes *all, size_t from, size_t to)
{
    enum tbd_certainty least = TBD_EXACT;

    for (size_t i = from; i < to; i++) {
        if (all->known[i] != 0xff)
            return TBD_UNKNOWN;
        if (all->exact[i] != 0xff)
            least = TBD_INFERRED;
    }
    return least;
}

static void print_byte(FILE *out, const struct known_bytes *all, size_t i)
{
    if (all->known[i] == 0xff)
        fprintf(out, " %02x", all->bytes[i]);
    else
        fputs(" ??", out);
}

static void print_memory_line(FILE *out, uint64_t address, const struct known_bytes *all,
                              size_t from)
{
    size_t to = all->count - from < LINE ? all->count : from + LINE;
    enum tbd_certainty certainty = certainty_of(all, from, to);

    fprintf(out, "0x%012" PRIx64 " ", address + from);
    for (size_t i = from; i < from + LINE; i++) {
        if (i == from + LINE / 2)
            fputc(' ', out);
        if (i < to)
            print_byte(out, all, i);
        else
            fputs("   ", out);
    }
    fputs("  ", out);
    for (size_t i = from; i < to; i++)
        fputc(all->known[i] == 0xff && isprint(all->bytes[i]) ? all->bytes[i] : '.', out);
    fprintf(out, "%s%s\n", certainty == TBD_EXACT ? "" : "  ",
            certainty == TBD_EXACT ? "" : tbd_certainty_text(certainty));
}

/* "00ff??": two characters a byte. */
static void hex_text(const struct known_bytes *all, char *text)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->known[i] == 0xff)
            snprintf(text + 2 * i, 3, "%02x", all->bytes[i]);
        else
            snprintf(text + 2 * i, 3, "??");
}

/* One letter a byte: e, i or u. */
static void certainty_letters(const struct known_bytes *all, char *text)
{
    for (size_t i = 0; i < all->count; i++)
        text[i] = *tbd_certainty_text(certainty_of(all, i, i + 1));
    text[all->count] = '\0';
}

static enum tbd_exit print_memory_json(const struct tbd_dump_values *values, uint64_t address,
                                       const struct known_bytes *all)
{
    char *text = calloc(all->count + 1, 2);
    json_t *object = json_object();

    if (text == NULL) {
        json_decref(object);
        return tbd_command_no_memory();
    }
    tbd_dump_values_put_position(values, object);
    json_object_set_new(object, "addr", tbd_output_hex(address));
    json_object_set_new(object, "size", json_integer((json_int_t)all->count));
    hex_text(all, text);
    json_object_set_new(object, "bytes", json_string(text));
    certainty_letters(all, text);
    json_object_set_new(object, "bytes_certainty", json_string(text));
    tbd_dump_values_put_certainty(object, certainty_of(all, 0, all->count));
    tbd_output_line(object, values->dump.run->out);
    free(text);
    return TBD_EXIT_FOUND;
}

static enum tbd_exit print_memory(struct tbd_dump_values *values, uint64_t address, size_t count)
{
    const struct tbd_command_run *run = values->dump.run;
    struct known_bytes all = { .bytes = calloc(count, 3), .count = count };
    enum tbd_exit result = TBD_EXIT_FOUND;

    if (all.bytes == NULL)
        return tbd_command_no_memory();
    all.known = all.bytes + count;
    all.exact = all.known + count;
    tbd_past_bytes(values->past, address, count, all.bytes, all.known, all.exact);
    if (run->session->json)
        result = print_memory_json(values, address, &all);
    for (size_t i = 0; !run->session->json && i < count; i += LINE)
        print_memory_line(run->out, address, &all, i);
    free(all.bytes);
    return result;
}

enum tbd_exit tbd_dump_run_mem(struct tbd_command_run *run)
{
    struct tbd_dump_values values;
    uint64_t address = 0, count = 0;
    enum tbd_exit result = tbd_dump_values_open(run, &values);

    if (result == TBD_EXIT_FOUND && run->argc != 2)
        result = tbd_command_usage(run, "mem takes an address and a length");
    if (result == TBD_EXIT_FOUND) {
        tbd_past_enter(values.past, false);
        result = tbd_command_value(run, 0, (struct tbd_position){ 0 }, &address);
        if (result == TBD_EXIT_FOUND)
            result = tbd_command_value(run, 1, (struct tbd_position){ 0 }, &count);
        tbd_past_leave(values.past);
    }
    if (result == TBD_EXIT_FOUND && (count == 0 || count > MEM_MAX))
        result = tbd_command_usage(run, "the length is from 1 to 16 MiB");
    if (result == TBD_EXIT_FOUND)
        result = print_memory(&values, address, (size_t)count);
    tbd_dump_values_close(&values);
    return result;
}

/* ---- x ---- */

/* Notes how well the memory is known that each answer shows; returns the least. */
static enum tbd_certainty examined_certainty(struct tbd_dump_values *values, json_t *answers)
{
    enum tbd_certainty least = TBD_EXACT;
    size_t index;
    json_t *answer;

    json_array_foreach(answers, index, answer)
    {
        const char *text = json_string_value(json_object_get(answer, "addr"));
        uint64_t address = strtoull(text != NULL ? text : "0", NULL, 16);
        size_t count = (size_t)json_integer_value(json_object_get(answer, "size"));
        struct known_bytes all = { .bytes = calloc(count + 1, 3), .count = count };
        enum tbd_certainty certainty = TBD_INFERRED;

        if (all.bytes != NULL) {
            all.known = all.bytes + count;
            all.exact = all.known + count;
            tbd_past_bytes(values->past, address, count, all.bytes, all.known, all.exact);
            certainty = certainty_of(&all, 0, count);
        }
        free(all.bytes);
        tbd_dump_values_put_certainty(answer, certainty);
        least = certainty < least ? certainty : least;
    }
    return least;
}

static enum tbd_exit print_examined(struct tbd_dump_values *values, json_t *answers,
                                    enum tbd_certainty certainty)
{
    struct tbd_command_run *run = values->dump.run;
    enum tbd_exit result = TBD_EXIT_FOUND;
    size_t index;
    json_t *answer;

    if (run->session->json) {
        json_array_foreach(answers, index, answer)
        {
            tbd_dump_values_put_position(values, answer);
            tbd_output_line(json_incref(answer), run->out);
        }
        return result;
    }
    tbd_past_enter(values->past, false);
    result = tbd_command_examine(run);
    tbd_past_leave(values->past);
    if (certainty != TBD_EXACT)
        fprintf(run->out, "(%s)\n", tbd_certainty_text(certainty));
    return result;
}

enum tbd_exit tbd_dump_run_examine(struct tbd_command_run *run)
{
    uint64_t next = run->session->examined.next;
    struct tbd_dump_values values;
    enum tbd_exit result = tbd_dump_values_open(run, &values);
    json_t *answers = NULL;

    if (result == TBD_EXIT_FOUND)
        answers = tbd_dump_answers_of(&values, tbd_command_examine, false, &result);
    if (result == TBD_EXIT_FOUND) {
        run->session->examined.next = next;
        result = print_examined(&values, answers, examined_certainty(&values, answers));
    }
    json_decref(answers);
    tbd_dump_values_close(&values);
    return result;
}
