// SPDX-License-Identifier: MIT
/* probe_show.c - see probe_show.h */
#include "query/probe/probe_show.h"

#include "base/safe_stream.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 512u
#define BAR_WIDTH  40u

/* ---- one value ---- */

static size_t text_length(const uint8_t *text, size_t bytes)
{
    return strnlen((const char *)text, bytes);
}

static uint64_t word_at(const uint8_t *bytes)
{
    uint64_t word;

    memcpy(&word, bytes, sizeof(word));
    return word;
}

static void show_stack(struct tbd_probe_output *output, const uint8_t *frames, uint32_t bytes)
{
    char name[NAME_BYTES];

    fputc('\n', output->out);
    for (uint32_t at = 0; at < bytes && word_at(frames + at); at += 8) {
        tbd_process_name(output->process, word_at(frames + at), name, sizeof(name));
        fprintf(output->out, "    %s\n", tbd_shown(name));
    }
}

static void copy_text(char *out, const uint8_t *text, size_t bytes)
{
    size_t length = text_length(text, bytes < NAME_BYTES - 1 ? bytes : NAME_BYTES - 1);

    memcpy(out, text, length);
    out[length] = '\0';
}

static void show_part(struct tbd_probe_output *output, const struct tbd_script_part *part,
                      const uint8_t *value)
{
    char text[NAME_BYTES];

    switch ((enum tbd_part_kind)part->kind) {
    case TBD_PART_STACK: show_stack(output, value, part->bytes); break;
    case TBD_PART_TEXT:
    case TBD_PART_COMM:
        copy_text(text, value, part->bytes);
        fputs(tbd_shown(text), output->out);
        break;
    case TBD_PART_NUMBER:
    default: fprintf(output->out, "%" PRId64, (int64_t)word_at(value)); break;
    }
}

static json_t *json_stack(struct tbd_probe_output *output, const uint8_t *frames, uint32_t bytes)
{
    json_t *list = json_array();
    char name[NAME_BYTES];

    for (uint32_t at = 0; at < bytes && word_at(frames + at); at += 8) {
        tbd_process_name(output->process, word_at(frames + at), name, sizeof(name));
        json_array_append_new(list, json_string(tbd_shown(name)));
    }
    return list;
}

static json_t *json_part(struct tbd_probe_output *output, const struct tbd_script_part *part,
                         const uint8_t *value)
{
    char text[NAME_BYTES];

    switch ((enum tbd_part_kind)part->kind) {
    case TBD_PART_STACK: return json_stack(output, value, part->bytes);
    case TBD_PART_TEXT:
    case TBD_PART_COMM: copy_text(text, value, part->bytes); return json_string(tbd_shown(text));
    case TBD_PART_NUMBER:
    default: return json_integer((json_int_t)word_at(value));
    }
}

static uint32_t part_bytes(const struct tbd_script_part *part)
{
    return (part->bytes + 7) & ~7u;
}

static void print_json(struct tbd_probe_output *output, json_t *object)
{
    json_dumpf(object, output->out, JSON_COMPACT | JSON_PRESERVE_ORDER);
    fputc('\n', output->out);
    json_decref(object);
}

/* ---- printf ---- */

/* One conversion: its flags and width are the script's, checked when it was read. */
static const char *show_conversion(struct tbd_probe_output *output, const char *at,
                                   const struct tbd_script_part *part, const uint8_t *value)
{
    size_t flags = strspn(at + 1, "-+ #0123456789.");
    size_t sizes = strspn(at + 1 + flags, "lh");
    char conversion = at[1 + flags + sizes], format[48];

    if (part->kind != TBD_PART_NUMBER || flags > 24) {
        show_part(output, part, value);
    } else if (conversion == 'c') {
        char text[2] = { (char)word_at(value), '\0' };

        fputs(tbd_shown(text), output->out);
    } else {
        snprintf(format, sizeof(format), "%%%s%.*sll%c", conversion == 'p' ? "#" : "", (int)flags,
                 at + 1, conversion == 'p' ? 'x' : conversion);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        fprintf(output->out, format, (unsigned long long)word_at(value));
#pragma GCC diagnostic pop
    }
    return at + 1 + flags + sizes + 1;
}

static void show_format(struct tbd_probe_output *output, const struct tbd_script_print *print,
                        const uint8_t *fields)
{
    uint32_t part = 0;

    for (const char *at = print->format; *at;) {
        size_t plain = strcspn(at, "%");

        fwrite(at, 1, plain, output->out);
        at += plain;
        if (!*at)
            break;
        if (at[1] == '%' || part == print->part_count) {
            fputc('%', output->out);
            at += 1 + (at[1] == '%');
            continue;
        }
        at = show_conversion(output, at, &print->parts[part], fields);
        fields += part_bytes(&print->parts[part++]);
    }
}

/* The first one that ends the session is the one that begins. */
static void show_trigger(struct tbd_probe_output *output, const struct tbd_script_print *print,
                         const struct tbd_probe_record *record, const uint8_t *fields)
{
    static const char *const names[] = { "", "stop", "record", "dump" };
    char place[256];
    uint64_t facts[2]; /* thread, instruction */

    if (print->trigger != TBD_TRIGGER_STOP && output->trigger)
        return;
    if (print->trigger == TBD_TRIGGER_STOP)
        output->stops++;
    else
        output->trigger = print;
    memcpy(facts, fields, sizeof(facts));
    tbd_process_name(output->process, facts[1], place, sizeof(place));
    if (output->json)
        print_json(output, json_pack("{s:s, s:I, s:s, s:I, s:s}", "type", "trigger", "sequence",
                                     (json_int_t)record->sequence, "trigger", names[print->trigger],
                                     "thread", (json_int_t)facts[0], "place", place));
    else
        fprintf(output->out, "%s: thread %" PRIu64 " at %s%s\n", names[print->trigger], facts[0],
                tbd_shown(place),
                print->trigger == TBD_TRIGGER_STOP ? "; kill -CONT lets the process go on" : "");
}

void tbd_show_record(struct tbd_probe_output *output, const struct tbd_probe_record *record,
                     const uint8_t *fields, uint32_t bytes)
{
    const struct tbd_script_print *print;
    uint32_t needed = 0;
    json_t *values;

    if (!record->id || record->id > output->script->print_count)
        return;
    print = &output->script->prints[record->id - 1];
    for (uint32_t i = 0; i < print->part_count; i++)
        needed += part_bytes(&print->parts[i]);
    if (needed != bytes)
        return;
    if (print->trigger) {
        show_trigger(output, print, record, fields);
        return;
    }
    if (!output->json) {
        show_format(output, print, fields);
        return;
    }
    values = json_array();
    for (uint32_t i = 0; i < print->part_count; i++) {
        json_array_append_new(values, json_part(output, &print->parts[i], fields));
        fields += part_bytes(&print->parts[i]);
    }
    print_json(output,
               json_pack("{s:s, s:I, s:s, s:o}", "type", "printf", "sequence",
                         (json_int_t)record->sequence, "format", print->format, "values", values));
}

void tbd_show_text(struct tbd_probe_output *output, const struct tbd_script_print *print)
{
    if (output->json)
        print_json(output, json_pack("{s:s, s:s, s:[]}", "type", "printf", "format", print->format,
                                     "values"));
    else
        show_format(output, print, NULL);
}

/* ---- maps ---- */

struct shown_entry {
    const uint8_t *key;
    uint64_t *values; /* owned; the sum over all copies */
};

static uint8_t *entry_at(struct tbd_probe_output *output, uint32_t map, uint32_t shard,
                         uint32_t index)
{
    const struct tbd_probe_map *m = &output->script->maps[map];

    return (uint8_t *)output->shared + tbd_probe_map_at(output->script->maps, map) +
           shard * tbd_probe_shard_bytes(m) + index * tbd_probe_entry_bytes(m);
}

static uint64_t load(const uint8_t *at)
{
    return __atomic_load_n((const uint64_t *)(const void *)at, __ATOMIC_ACQUIRE);
}

static uint64_t merge(const struct tbd_probe_map *map, uint32_t word, uint64_t a, uint64_t b)
{
    bool is_min = map->kind == TBD_PROBE_MIN || (map->kind == TBD_PROBE_STATS && word == 2);
    bool is_max = map->kind == TBD_PROBE_MAX || (map->kind == TBD_PROBE_STATS && word == 3);

    if (is_min)
        return (int64_t)a < (int64_t)b ? a : b;
    if (is_max)
        return (int64_t)a > (int64_t)b ? a : b;
    return a + b;
}

static struct shown_entry *find_entry(struct shown_entry *entries, size_t count, const uint8_t *key,
                                      size_t bytes)
{
    for (size_t i = 0; i < count; i++)
        if (memcmp(entries[i].key, key, bytes) == 0)
            return &entries[i];
    return NULL;
}

static bool add_entry(const struct tbd_probe_map *map, struct shown_entry *entries, size_t *count,
                      const uint8_t *entry)
{
    const uint8_t *key = entry + 8, *values = key + map->key_bytes;
    struct shown_entry *found = find_entry(entries, *count, key, map->key_bytes);
    uint32_t words = tbd_probe_value_words(map);

    if (!found) {
        found = &entries[(*count)++];
        *found = (struct shown_entry){ key, calloc(words, sizeof(uint64_t)) };
        for (uint32_t i = 0; found->values && i < words; i++)
            found->values[i] = load(values + i * 8ull);
        return found->values != NULL;
    }
    for (uint32_t i = 0; i < words; i++)
        found->values[i] = merge(map, i, found->values[i], load(values + i * 8ull));
    return true;
}

static _Thread_local const struct tbd_probe_map *sorted_map;

static uint64_t weight(const struct shown_entry *entry)
{
    uint64_t sum = 0;

    if (sorted_map->kind < TBD_PROBE_HIST)
        return entry->values[0];
    for (uint32_t i = 0; i < tbd_probe_value_words(sorted_map); i++)
        sum += entry->values[i];
    return sum;
}

/* The largest last, as bpftrace does. */
static int compare(const void *a, const void *b)
{
    uint64_t x = weight(a), y = weight(b);

    if (x != y)
        return x < y ? -1 : 1;
    return memcmp(((const struct shown_entry *)a)->key, ((const struct shown_entry *)b)->key,
                  sorted_map->key_bytes);
}

static size_t collect(struct tbd_probe_output *output, uint32_t map, struct shown_entry **out)
{
    const struct tbd_probe_map *m = &output->script->maps[map];
    size_t count = 0;

    *out = calloc((size_t)m->capacity * TBD_PROBE_SHARDS, sizeof(**out));
    for (uint32_t shard = 0; *out && shard < TBD_PROBE_SHARDS; shard++)
        for (uint32_t i = 0; i < m->capacity; i++) {
            const uint8_t *entry = entry_at(output, map, shard, i);

            if (load(entry) == TBD_PROBE_VALID && !add_entry(m, *out, &count, entry))
                return 0;
        }
    sorted_map = m;
    if (count)
        qsort(*out, count, sizeof(**out), compare);
    return count;
}

static void range_name(const struct tbd_probe_map *map, uint32_t bucket, char *out, size_t bytes)
{
    if (map->kind == TBD_PROBE_LHIST) {
        int64_t low = map->low + (int64_t)((uint64_t)(bucket - 1) * map->width);

        if (!bucket)
            snprintf(out, bytes, "(..., %" PRId64 ")", map->low);
        else if (bucket > map->steps)
            snprintf(out, bytes, "[%" PRId64 ", ...)", low);
        else
            snprintf(out, bytes, "[%" PRId64 ", %" PRId64 ")", low, low + (int64_t)map->width);
    } else if (bucket < 2) {
        snprintf(out, bytes, bucket ? "[0]" : "(..., 0)");
    } else {
        uint64_t low = 1ull << (bucket - 2);

        snprintf(out, bytes, "[%" PRIu64 ", %" PRIu64 ")", low, low * 2);
    }
}

static void show_buckets(struct tbd_probe_output *output, const struct tbd_probe_map *map,
                         const uint64_t *values)
{
    uint32_t count = tbd_probe_value_words(map), first = count, last = 0;
    uint64_t most = 1;

    for (uint32_t i = 0; i < count; i++)
        if (values[i]) {
            first = i < first ? i : first;
            last = i;
            most = values[i] > most ? values[i] : most;
        }
    fputc('\n', output->out);
    for (uint32_t i = first; i <= last && i < count; i++) {
        char range[64], bar[BAR_WIDTH + 1];
        size_t width = (size_t)((double)values[i] / (double)most * BAR_WIDTH);

        range_name(map, i, range, sizeof(range));
        memset(bar, '@', width);
        bar[width] = '\0';
        fprintf(output->out, "%-24s %10" PRIu64 " |%-*s|\n", range, values[i], (int)BAR_WIDTH, bar);
    }
}

static double average(const uint64_t *values)
{
    return values[0] ? (double)(int64_t)values[1] / (double)values[0] : 0;
}

static void show_values(struct tbd_probe_output *output, const struct tbd_probe_map *map,
                        const uint64_t *values)
{
    switch ((enum tbd_probe_map_kind)map->kind) {
    case TBD_PROBE_AVG: fprintf(output->out, "%.1f\n", average(values)); break;
    case TBD_PROBE_STATS:
        fprintf(output->out,
                "count %" PRIu64 ", average %.1f, total %" PRId64 ", min %" PRId64 ", max %" PRId64
                "\n",
                values[0], average(values), (int64_t)values[1], (int64_t)values[2],
                (int64_t)values[3]);
        break;
    case TBD_PROBE_HIST:
    case TBD_PROBE_LHIST: show_buckets(output, map, values); break;
    case TBD_PROBE_COUNT:
    case TBD_PROBE_SUM:
    case TBD_PROBE_MIN:
    case TBD_PROBE_MAX:
    case TBD_PROBE_KINDS:
    default: fprintf(output->out, "%" PRId64 "\n", (int64_t)values[0]); break;
    }
}

static void show_entry(struct tbd_probe_output *output, uint32_t map,
                       const struct shown_entry *entry)
{
    const struct tbd_script_map *named = &output->script->map_names[map];
    const uint8_t *key = entry->key;

    fprintf(output->out, "@%s", named->name);
    for (uint32_t i = 0; i < named->part_count; i++) {
        fputs(i ? ", " : "[", output->out);
        show_part(output, &named->parts[i], key);
        key += part_bytes(&named->parts[i]);
    }
    fputs(named->part_count ? "]: " : ": ", output->out);
    show_values(output, &output->script->maps[map], entry->values);
}

static json_t *json_values(const struct tbd_probe_map *map, const uint64_t *values)
{
    json_t *buckets;

    switch ((enum tbd_probe_map_kind)map->kind) {
    case TBD_PROBE_AVG:
        return json_pack("{s:I, s:I}", "count", (json_int_t)values[0], "total",
                         (json_int_t)values[1]);
    case TBD_PROBE_STATS:
        return json_pack("{s:I, s:I, s:I, s:I}", "count", (json_int_t)values[0], "total",
                         (json_int_t)values[1], "min", (json_int_t)values[2], "max",
                         (json_int_t)values[3]);
    case TBD_PROBE_HIST:
    case TBD_PROBE_LHIST:
        buckets = json_object();
        for (uint32_t i = 0; i < tbd_probe_value_words(map); i++) {
            char range[64];

            range_name(map, i, range, sizeof(range));
            if (values[i])
                json_object_set_new(buckets, range, json_integer((json_int_t)values[i]));
        }
        return buckets;
    case TBD_PROBE_COUNT:
    case TBD_PROBE_SUM:
    case TBD_PROBE_MIN:
    case TBD_PROBE_MAX:
    case TBD_PROBE_KINDS:
    default: return json_integer((json_int_t)values[0]);
    }
}

static void json_entry(struct tbd_probe_output *output, uint32_t map,
                       const struct shown_entry *entry)
{
    const struct tbd_script_map *named = &output->script->map_names[map];
    const uint8_t *bytes = entry->key;
    json_t *key = json_array();

    for (uint32_t i = 0; i < named->part_count; i++) {
        json_array_append_new(key, json_part(output, &named->parts[i], bytes));
        bytes += part_bytes(&named->parts[i]);
    }
    print_json(output,
               json_pack("{s:s, s:s, s:o, s:o}", "type", "map", "name", named->name, "key", key,
                         "value", json_values(&output->script->maps[map], entry->values)));
}

void tbd_show_map(struct tbd_probe_output *output, uint32_t map)
{
    struct shown_entry *entries;
    size_t count = collect(output, map, &entries);

    for (size_t i = 0; i < count; i++) {
        if (output->json)
            json_entry(output, map, &entries[i]);
        else
            show_entry(output, map, &entries[i]);
        free(entries[i].values);
    }
    free(entries);
}

/* Keys stay; a value that a thread changes at this moment is either cleared or counted. */
void tbd_clear_map(struct tbd_probe_output *output, uint32_t map)
{
    const struct tbd_probe_map *m = &output->script->maps[map];

    for (uint32_t shard = 0; shard < TBD_PROBE_SHARDS; shard++)
        for (uint32_t i = 0; i < m->capacity; i++) {
            uint8_t *entry = entry_at(output, map, shard, i);
            uint64_t *values = (uint64_t *)(void *)(entry + 8 + m->key_bytes);

            if (load(entry) != TBD_PROBE_VALID)
                continue;
            for (uint32_t word = 0; word < tbd_probe_value_words(m); word++) {
                bool is_min = m->kind == TBD_PROBE_MIN || (m->kind == TBD_PROBE_STATS && word == 2);
                bool is_max = m->kind == TBD_PROBE_MAX || (m->kind == TBD_PROBE_STATS && word == 3);

                __atomic_store_n(&values[word],
                                 is_min   ? (uint64_t)INT64_MAX
                                 : is_max ? (uint64_t)INT64_MIN
                                          : 0,
                                 __ATOMIC_RELAXED);
            }
        }
}
