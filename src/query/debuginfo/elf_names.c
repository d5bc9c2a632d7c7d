// SPDX-License-Identifier: MIT
/* elf_names.c - the symbols of one ELF file by name, mangled and readable (elf_file.h)
 *
 * Sorting and demangling hundreds of thousands of names takes longer than most answers.  Both are
 * done at the first question that needs them, and kept for the next one (name_cache.h).
 *
 * ELF_NAMES-1  Tables from the cache are used only when they fit the file's symbols: the same number,
 *     no index or offset past the end. */
#include "query/debuginfo/elf_file.h"

#include "base/assert.h"
#include "base/binary_search.h"
#include "base/processors.h"
#include "query/text/demangle.h"
#include "query/debuginfo/name_cache.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORTH_SYMBOLS 8192u
#define WORKERS_MAX   8u
#define AS_IT_IS      UINT32_MAX /* the readable name is the name */

struct tbd_elf_names {
    struct tbd_name_table order_table;    /* owned; of the cache, or empty */
    uint32_t *order_made;                 /* owned; NULL if it is of the cache */
    const uint32_t *order;                /* NULL: not asked for yet */
    struct tbd_name_table readable_table; /* owned */
    char *readable_made;                  /* owned */
    bool is_readable;
};

static struct tbd_elf_names *names_of(struct tbd_elf_file *file)
{
    (void)tbd_elf_symbols(file);
    if (file->by_name == NULL)
        file->by_name = calloc(1, sizeof(*file->by_name));
    return file->by_name;
}

void tbd_elf_free_names(struct tbd_elf_file *file)
{
    struct tbd_elf_names *names = file->by_name;

    if (names == NULL)
        return;
    tbd_name_table_free(&names->order_table);
    tbd_name_table_free(&names->readable_table);
    free(names->order_made);
    free(names->readable_made);
    free(names);
}

/* ---- in order ---- */

static int compare_names(const void *left, const void *right, void *context)
{
    const struct tbd_elf_symbol *all = context;
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    int order = strcmp(all[a].name, all[b].name);

    return order != 0 ? order : (a > b) - (a < b);
}

/* Keeps ELF_NAMES-1. */
static bool take_order(struct tbd_elf_names *names, size_t count)
{
    const uint32_t *order = (const uint32_t *)(const void *)names->order_table.bytes;

    if (names->order_table.count != count * sizeof(*order))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (order[i] >= count)
            return false;
    }
    names->order = order;
    return true;
}

static bool names_ascend(const struct tbd_elf_symbol *all, const uint32_t *order, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (order[i] >= count || strcmp(all[order[i - 1]].name, all[order[i]].name) > 0)
            return false;
    return true;
}

static void make_order(struct tbd_elf_file *file, struct tbd_elf_names *names)
{
    size_t count = file->symbols.count;
    struct iovec part;

    names->order_made = malloc(count * sizeof(*names->order_made));
    if (names->order_made == NULL)
        return;
    for (size_t i = 0; i < count; i++)
        names->order_made[i] = (uint32_t)i;
    qsort_r(names->order_made, count, sizeof(*names->order_made), compare_names, file->symbols.all);
    names->order = names->order_made;
    part = (struct iovec){ .iov_base = names->order_made, .iov_len = count * sizeof(uint32_t) };
    TBD_INVARIANT("ELF_NAMES-1", names_ascend(file->symbols.all, names->order, count));
    if (count >= WORTH_SYMBOLS)
        tbd_name_cache_put(file, "order", &part, 1);
}

const uint32_t *tbd_elf_by_name(struct tbd_elf_file *file)
{
    struct tbd_elf_names *names = names_of(file);

    if (names == NULL || names->order != NULL || file->symbols.count == 0)
        return names == NULL ? NULL : names->order;
    if (file->symbols.count >= WORTH_SYMBOLS &&
        tbd_name_cache_get(file, "order", &names->order_table)) {
        if (take_order(names, file->symbols.count))
            return names->order;
        tbd_name_table_free(&names->order_table);
    }
    make_order(file, names);
    return names->order;
}

size_t tbd_elf_lower_bound(struct tbd_elf_file *file, const char *name)
{
    const uint32_t *by_name = tbd_elf_by_name(file);
    const struct tbd_elf_symbol *all = file->symbols.all;

    if (by_name == NULL)
        return file->symbols.count;
    return TBD_COUNT_BEFORE(i, file->symbols.count, strcmp(all[by_name[i]].name, name) < 0);
}

const struct tbd_elf_symbol *tbd_elf_whole(struct tbd_elf_file *file,
                                           const struct tbd_elf_symbol *part)
{
    size_t length = tbd_elf_whole_length(part->name);
    const uint32_t *by_name = tbd_elf_by_name(file);
    char *name = strndup(part->name, length);
    const struct tbd_elf_symbol *whole = NULL;
    size_t at = name == NULL ? file->symbols.count : tbd_elf_lower_bound(file, name);

    if (by_name != NULL && at < file->symbols.count &&
        strcmp(file->symbols.all[by_name[at]].name, name) == 0)
        whole = &file->symbols.all[by_name[at]];
    free(name);
    return whole;
}

/* ---- one readable name ---- */

/* The readable form of a mangled name, which the caller frees; NULL if there is none. */
static char *readable_of(const char *name)
{
    const char *suffix = strchr(name, '@'); /* import stubs: NAME@plt */
    char *mangled, *text, *both = NULL;

    if (!tbd_is_mangled(name))
        return NULL;
    if (suffix == NULL)
        return tbd_demangle(name);
    mangled = strndup(name, (size_t)(suffix - name));
    text = mangled == NULL ? NULL : tbd_demangle(mangled);
    if (text != NULL && asprintf(&both, "%s%s", text, suffix) < 0)
        both = NULL;
    free(mangled);
    free(text);
    return both;
}

const char *tbd_elf_symbol_name(struct tbd_elf_file *file, const struct tbd_elf_symbol *symbol)
{
    struct tbd_elf_symbol *own = &file->symbols.all[symbol - file->symbols.all];
    char *text;

    if (own->readable != NULL)
        return own->readable;
    text = readable_of(own->name);
    own->readable = text == NULL ? NULL : tbd_names_add(&file->names, text, strlen(text), "");
    if (own->readable == NULL)
        own->readable = own->name;
    free(text);
    return own->readable;
}

/* ---- all of them ---- */

struct slice {
    const struct tbd_elf_symbol *all;
    char **texts; /* results */
    size_t from, to;
    pthread_t thread;
};

static void *demangle_slice(void *argument)
{
    struct slice *slice = argument;

    for (size_t i = slice->from; i < slice->to; i++)
        slice->texts[i] = readable_of(slice->all[i].name);
    return NULL;
}

static void demangle_all(const struct tbd_elf_symbols *symbols, char **texts)
{
    struct slice slices[WORKERS_MAX];
    size_t count = tbd_processors();

    if (count > WORKERS_MAX)
        count = WORKERS_MAX;
    for (size_t i = 0; i < count; i++) {
        slices[i] = (struct slice){ .all = symbols->all,
                                    .texts = texts,
                                    .from = symbols->count * i / count,
                                    .to = symbols->count * (i + 1) / count };
        if (i == 0 || pthread_create(&slices[i].thread, NULL, demangle_slice, &slices[i]) != 0)
            slices[i].all = NULL; /* this thread does it, below */
    }
    for (size_t i = 0; i < count; i++) {
        if (slices[i].all != NULL) {
            pthread_join(slices[i].thread, NULL);
            continue;
        }
        slices[i].all = symbols->all;
        demangle_slice(&slices[i]);
    }
}

/* Takes the names from a table: their number, the offset of each one's text, the texts.  Keeps
 * ELF_NAMES-1. */
static bool take_readable(struct tbd_elf_symbols *symbols, const uint8_t *bytes, size_t count)
{
    const uint32_t *offsets = (const uint32_t *)(const void *)(bytes + sizeof(uint64_t));
    size_t head = sizeof(uint64_t) + symbols->count * sizeof(*offsets);
    const char *texts = (const char *)bytes + head;
    uint64_t number;

    if (count < head)
        return false;
    memcpy(&number, bytes, sizeof(number));
    if (number != symbols->count || (count != head && texts[count - head - 1] != '\0'))
        return false;
    for (size_t i = 0; i < symbols->count; i++) {
        if (offsets[i] != AS_IT_IS && offsets[i] >= count - head)
            return false;
    }
    for (size_t i = 0; i < symbols->count; i++)
        symbols->all[i].readable =
            offsets[i] == AS_IT_IS ? symbols->all[i].name : texts + offsets[i];
    return true;
}

static char *lay_out(char *const *texts, size_t symbols, size_t *out_bytes)
{
    size_t head = sizeof(uint64_t) + symbols * sizeof(uint32_t), at = 0;
    uint64_t number = symbols;
    uint32_t *offsets;
    char *bytes;

    *out_bytes = head;
    for (size_t i = 0; i < symbols; i++)
        *out_bytes += texts[i] == NULL ? 0 : strlen(texts[i]) + 1;
    bytes = *out_bytes - head >= AS_IT_IS ? NULL : malloc(*out_bytes);
    if (bytes == NULL)
        return NULL;
    memcpy(bytes, &number, sizeof(number));
    offsets = (uint32_t *)(void *)(bytes + sizeof(number));
    for (size_t i = 0; i < symbols; i++) {
        size_t length = texts[i] == NULL ? 0 : strlen(texts[i]) + 1;

        offsets[i] = texts[i] == NULL ? AS_IT_IS : (uint32_t)at;
        if (texts[i] != NULL)
            memcpy(bytes + head + at, texts[i], length);
        at += length;
    }
    return bytes;
}

static void make_readable(struct tbd_elf_file *file, struct tbd_elf_names *names)
{
    struct tbd_elf_symbols *symbols = &file->symbols;
    char **texts = calloc(symbols->count + 1, sizeof(*texts));
    struct iovec part = { 0 };

    if (texts == NULL)
        return;
    demangle_all(symbols, texts);
    names->readable_made = lay_out(texts, symbols->count, &part.iov_len);
    for (size_t i = 0; i < symbols->count; i++)
        free(texts[i]);
    free(texts);
    if (names->readable_made == NULL ||
        !take_readable(symbols, (const uint8_t *)names->readable_made, part.iov_len))
        return;
    part.iov_base = names->readable_made;
    tbd_name_cache_put(file, "readable", &part, 1);
}

void tbd_elf_read_names(struct tbd_elf_file *file)
{
    struct tbd_elf_names *names = names_of(file);

    /* A few are demangled one by one, as they are asked for. */
    if (names == NULL || names->is_readable || file->symbols.count < WORTH_SYMBOLS)
        return;
    names->is_readable = true;
    if (tbd_name_cache_get(file, "readable", &names->readable_table)) {
        if (take_readable(&file->symbols, names->readable_table.bytes, names->readable_table.count))
            return;
        tbd_name_table_free(&names->readable_table);
    }
    make_readable(file, names);
}
