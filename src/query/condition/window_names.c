// SPDX-License-Identifier: MIT
/* window_names.c - see window_names.h */
#include "query/condition/window_names.h"

#include "query/debuginfo/dwarf_file.h"
#include "query/debuginfo/dwarf_virtual.h"
#include "query/session/code/inlined.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUESS 64

/* All symbols called `name`; the array is the caller's. */
static struct tbd_symbol *find_all(const struct tbd_window_names *names, const char *name,
                                   size_t *out)
{
    size_t capacity = GUESS;
    struct tbd_symbol *found = NULL;
    size_t count = 0;

    for (;;) {
        struct tbd_symbol *bigger = realloc(found, capacity * sizeof(*bigger));

        if (bigger == NULL)
            break;
        found = bigger;
        count = tbd_symbols_find(names->session->symbols, names->window, name, found, capacity);
        if (count <= capacity) {
            *out = count;
            return found;
        }
        capacity = count;
    }
    free(found);
    *out = 0;
    return NULL;
}

static bool address_of(void *context, const char *name, uint64_t *out)
{
    const struct tbd_window_names *names = context;
    struct tbd_symbol found[1];

    if (tbd_symbols_find(names->session->symbols, names->window, name, found, 1) == 0)
        return false;
    *out = found[0].start;
    return true;
}

static int compare_ranges(const void *left, const void *right)
{
    const struct tbd_range64 *a = left;
    const struct tbd_range64 *b = right;

    return a->start < b->start ? -1 : a->start > b->start;
}

static size_t function_ranges(const struct tbd_symbol *found, size_t count, struct tbd_range64 *out)
{
    size_t used = 0;

    for (size_t i = 0; i < count; i++) {
        if (found[i].is_function || found[i].is_stub)
            out[used++] = (struct tbd_range64){ found[i].start, found[i].end > found[i].start
                                                                    ? found[i].end
                                                                    : found[i].start + 1 };
    }
    return used;
}

/* Sorts the ranges and joins those that overlap, as a binary search needs. */
static size_t tidy_ranges(struct tbd_range64 *ranges, size_t count)
{
    size_t used = 0;

    if (count == 0)
        return 0;
    qsort(ranges, count, sizeof(*ranges), compare_ranges);
    for (size_t i = 1; i < count; i++) {
        if (ranges[i].start < ranges[used].end) {
            if (ranges[i].end > ranges[used].end)
                ranges[used].end = ranges[i].end;
        } else {
            ranges[++used] = ranges[i];
        }
    }
    return used + 1;
}

static bool is_plain(const char *name)
{
    return strpbrk(name, "*?[!") == NULL;
}

/* Adds the code of the copies of an inlined function; false without memory. */
static bool add_inlined(const struct tbd_window_names *names, const char *name,
                        struct tbd_range64 **out, size_t *count)
{
    struct tbd_dwarf_inlined *all;
    struct tbd_range64 *bigger;
    size_t copies = 0, used = *count;

    if (names->type == TBD_EVENT_FUNC_ENTER || names->type == TBD_EVENT_FUNC_EXIT ||
        !is_plain(name))
        return true;
    all = tbd_inlined_find(names->session->symbols, names->window, name, &copies);
    bigger =
        copies == 0 ? *out : realloc(*out, (used + copies * TBD_INLINED_RANGES) * sizeof(**out));
    for (size_t i = 0; bigger != NULL && i < copies; i++) {
        for (size_t k = 0; k < all[i].range_count; k++)
            bigger[used++] = (struct tbd_range64){ all[i].ranges[k].start, all[i].ranges[k].end };
    }
    free(all);
    if (bigger == NULL)
        return false;
    *out = bigger;
    *count = used;
    return true;
}

static void explain_inlined(const char *name, const char *places, struct tbd_query_error *error)
{
    if (places[0] == '\0') {
        snprintf(error->message, sizeof(error->message),
                 "'%.60s' is inlined wherever it is called, and no instruction of it is left",
                 name);
        snprintf(error->hint, sizeof(error->hint),
                 "its callers' code does without it; a build with less optimization has it");
        return;
    }
    snprintf(error->message, sizeof(error->message),
             "'%.60s' is inlined wherever it is called, so it has no entry and no exit", name);
    snprintf(error->hint, sizeof(error->hint), "it is called at %.160s", places);
}

/* Is it inlined?  Then it says so. */
static bool is_inlined(const struct tbd_window_names *names, const char *name,
                       struct tbd_query_error *error)
{
    struct tbd_symbols *symbols = names->session->symbols;
    struct tbd_dwarf_inlined *all;
    char places[160] = "";
    size_t count = 0;

    all = tbd_inlined_find(symbols, names->window, name, &count);
    if (count != 0)
        tbd_inlined_places(all, count, places, sizeof(places));
    free(all);
    if (count == 0 && !tbd_inlined_away(symbols, names->window, name))
        return false;
    explain_inlined(name, places, error);
    return true;
}

/* Names with commas between, as many as fit. */
struct overrider_names {
    char text[160];
    bool is_cut;
};

static void add_overrider(void *context, const char *name)
{
    struct overrider_names *found = context;
    size_t used = strlen(found->text), length = strlen(name);
    const char *at = strstr(found->text, name);

    if (at != NULL && (at == found->text || at[-1] == ' ') &&
        (at[length] == ',' || at[length] == '\0'))
        return;
    if (found->is_cut || used + length + sizeof(", ") > sizeof(found->text)) {
        found->is_cut = true;
        return;
    }
    snprintf(found->text + used, sizeof(found->text) - used, "%s%s", used == 0 ? "" : ", ", name);
}

/* Is it a virtual function without code, as a pure one mostly is?  Then it says so. */
static bool is_without_code(const struct tbd_window_names *names, const char *name,
                            struct tbd_query_error *error)
{
    const struct tbd_module *modules = NULL;
    struct overrider_names found = { .text = "" };
    bool is_virtual = false;
    size_t count = 0;

    if (tbd_symbols_modules(names->session->symbols, names->window, &modules, &count) != TBD_OK)
        return false;
    for (size_t i = 0; i < count; i++) {
        struct tbd_dwarf *dwarf = tbd_dwarf_of(modules[i].file);

        if (dwarf != NULL)
            is_virtual |= tbd_dwarf_overriders(dwarf, name, add_overrider, &found);
    }
    if (!is_virtual)
        return false;
    snprintf(error->message, sizeof(error->message),
             "'%.100s' is a virtual function without code of its own", name);
    snprintf(error->hint, sizeof(error->hint), "%s%s%s",
             found.text[0] == '\0' ? "nothing overrides it" : "it is overridden by ", found.text,
             found.is_cut ? ", ..." : "");
    return true;
}

/* What to say about a name that no function has. */
static void explain(void *context, const char *name, struct tbd_query_error *error)
{
    const struct tbd_window_names *names = context;

    if (is_plain(name) && !is_inlined(names, name, error))
        (void)is_without_code(names, name, error);
}

static int compare_copies(const void *left, const void *right)
{
    const struct tbd_inlined_copy *a = left, *b = right;

    return tbd_inlined_copy_compare(*a, *b);
}

static bool copies_of(void *context, const char *name, struct tbd_inlined_copy **out,
                      size_t *out_count)
{
    const struct tbd_window_names *names = context;
    struct tbd_dwarf_inlined *all = NULL;
    size_t count = 0;

    if (is_plain(name))
        all = tbd_inlined_find(names->session->symbols, names->window, name, &count);
    *out = calloc(count + 1, sizeof(**out));
    *out_count = *out == NULL ? 0 : count;
    for (size_t i = 0; i < *out_count; i++)
        (*out)[i] = (struct tbd_inlined_copy){ all[i].entry, all[i].id };
    free(all);
    if (*out != NULL)
        qsort(*out, count, sizeof(**out), compare_copies);
    return *out != NULL;
}

static bool find_functions(const struct tbd_window_names *names, const char *name, bool with_copies,
                           struct tbd_range64 **out, size_t *out_count)
{
    size_t count;
    struct tbd_symbol *found = find_all(names, name, &count);

    if (found == NULL)
        return false;
    *out = calloc(count + 1, sizeof(**out));
    count = *out == NULL ? 0 : function_ranges(found, count, *out);
    free(found);
    if (*out == NULL || (with_copies && !add_inlined(names, name, out, &count)))
        return false;
    *out_count = tidy_ranges(*out, count);
    return true;
}

/* "libc" also means libc.so.6. */
static bool is_module_name(const char *pattern, const char *name)
{
    size_t bytes = strlen(pattern);

    if (fnmatch(pattern, name, 0) == 0)
        return true;
    return strncmp(pattern, name, bytes) == 0 && (name[bytes] == '.' || name[bytes] == '-');
}

static bool find_modules(const struct tbd_window_names *names, const char *name,
                         struct tbd_range64 **out, size_t *out_count)
{
    const struct tbd_module *modules = NULL;
    size_t count = 0;
    size_t used = 0;

    if (tbd_symbols_modules(names->session->symbols, names->window, &modules, &count) != TBD_OK)
        count = 0;
    *out = calloc(count + 1, sizeof(**out));
    if (*out == NULL)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (is_module_name(name, modules[i].name))
            (*out)[used++] = (struct tbd_range64){ modules[i].start, modules[i].end };
    }
    *out_count = tidy_ranges(*out, used);
    return true;
}

#define LINE_RANGES 4096u

/* "list.c:7" -> "list.c" and line 7; line 0 if the text has no line. */
static uint32_t split_source(const char *name, char *file, size_t bytes)
{
    const char *colon = strrchr(name, ':');

    snprintf(file, bytes, "%.*s", colon == NULL ? (int)strlen(name) : (int)(colon - name), name);
    return colon == NULL ? 0 : (uint32_t)strtoul(colon + 1, NULL, 10);
}

static bool add_module_lines(const struct tbd_module *module, const char *file, uint32_t line,
                             struct tbd_range64 **out, size_t *used)
{
    struct tbd_dwarf *dwarf = tbd_dwarf_of(module->file);
    struct tbd_elf_range ranges[LINE_RANGES];
    size_t count =
        dwarf == NULL ? 0 : tbd_dwarf_line_ranges(dwarf, file, line, ranges, LINE_RANGES);
    struct tbd_range64 *bigger;

    if (count > LINE_RANGES)
        count = LINE_RANGES;
    bigger = realloc(*out, (*used + count + 1) * sizeof(**out));
    if (bigger == NULL)
        return false;
    *out = bigger;
    for (size_t i = 0; i < count; i++)
        bigger[(*used)++] =
            (struct tbd_range64){ module->bias + ranges[i].start, module->bias + ranges[i].end };
    return true;
}

static bool find_lines(const struct tbd_window_names *names, const char *name,
                       struct tbd_range64 **out, size_t *out_count)
{
    const struct tbd_module *modules = NULL;
    size_t count = 0, used = 0;
    char file[256];
    uint32_t line = split_source(name, file, sizeof(file));

    if (tbd_symbols_modules(names->session->symbols, names->window, &modules, &count) != TBD_OK)
        count = 0;
    *out = calloc(1, sizeof(**out));
    for (size_t i = 0; *out != NULL && i < count; i++) {
        if (!add_module_lines(&modules[i], file, line, out, &used)) {
            free(*out);
            *out = NULL;
        }
    }
    if (*out == NULL)
        return false;
    *out_count = tidy_ranges(*out, used);
    return true;
}

static bool ranges_of(void *context, const char *name, enum tbd_name_kind kind,
                      struct tbd_range64 **out, size_t *out_count)
{
    const struct tbd_window_names *names = context;

    *out = NULL;
    *out_count = 0;
    if (kind == TBD_NAME_SOURCE)
        return find_lines(names, name, out, out_count);
    if (kind == TBD_NAME_MODULE)
        return find_modules(names, name, out, out_count);
    return find_functions(names, name, kind == TBD_NAME_FUNCTION, out, out_count);
}

struct tbd_expr_names tbd_window_names_of(struct tbd_window_names *context)
{
    return (struct tbd_expr_names){ .address = address_of,
                                    .ranges = ranges_of,
                                    .explain = explain,
                                    .copies = copies_of,
                                    .context = context };
}
