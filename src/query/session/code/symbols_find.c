// SPDX-License-Identifier: MIT
/* symbols_find.c - the addresses that a name means in the modules of a window (symbols.h)
 *
 * A name may be written as in the file, as a pattern, or as people write C++ names: with or without
 * namespaces, template arguments and parameters.
 *
 * SYMBOLS_FIND-1  Of several symbols at one address there is one answer. (not checked: test_symbols
 *     does)
 * SYMBOLS_FIND-2  The last answer is kept: it belongs to the window of the view. */
#include "query/session/code/symbols_private.h"

#include "base/assert.h"
#include "base/array.h"
#include "base/layout.h"
#include "query/text/demangle.h"
#include "format/pages/pages.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- matches ---- */

/* libc.so.6, libc and libc.so all name the module "libc.so.6". */
static bool is_module_called(const struct tbd_module *module, const char *name, size_t length)
{
    const char *so = strstr(module->name, ".so");

    if (strncmp(module->name, name, length) != 0)
        return false;
    return module->name[length] == 0 ||
           (so && (module->name + length == so || module->name + length == so + 3));
}

struct match {
    struct tbd_symbol symbol;
    size_t number; /* in the order of finding */
};

struct search {
    struct tbd_symbols *symbols;
    uint32_t window;
    struct match *matches; /* owned */
    size_t count, capacity;
};

static void add_match(struct search *search, struct tbd_symbol symbol)
{
    if (!tbd_array_grow(&search->matches, search->count, &search->capacity,
                        sizeof(*search->matches)))
        return;
    search->matches[search->count] = (struct match){ symbol, search->count };
    search->count++;
}

static bool read_word(struct search *search, uint32_t window, uint64_t address, uint64_t *out)
{
    uint8_t page[TBD_PAGE_SIZE];
    uint64_t at = address % TBD_PAGE_SIZE;

    if (at > TBD_PAGE_SIZE - sizeof(*out) ||
        tbd_trace_page_at_start(search->symbols->trace, window, address - at, page) != TBD_OK)
        return false;
    memcpy(out, page + at, sizeof(*out));
    return true;
}

/* The function that the slot at `place` leads to at the start of `window`; false if it is not
 * bound yet. */
static bool take_target(struct search *search, uint32_t window, uint64_t place, const char *name)
{
    const struct tbd_module *target;
    const struct tbd_elf_symbol *symbol;
    struct tbd_symbol found;
    uint64_t address;

    if (!read_word(search, window, place, &address) ||
        (target = tbd_symbols_view_find(&search->symbols->view, address)) == NULL)
        return false;
    symbol = tbd_elf_symbol_at(target->file, address - target->bias);
    if (!symbol || symbol->is_stub || symbol->is_resolver || !symbol->is_function ||
        target->bias + symbol->start != address)
        return false;
    found = tbd_symbols_make(target, symbol);
    found.name = name;
    add_match(search, found);
    return true;
}

/* With lazy binding a slot may be filled after the window's start: the last window has it. */
static bool follow_slot(struct search *search, uint64_t place, const char *name)
{
    uint32_t windows = search->symbols->trace ? tbd_trace_window_count(search->symbols->trace) : 0;

    return windows && (take_target(search, search->window, place, name) ||
                       take_target(search, windows - 1, place, name));
}

/* An indirect function is never called itself: the resolver runs once and returns the function to
 * call. False if no slot holds it. */
static bool take_targets(struct search *search, const struct tbd_module *owner,
                         const struct tbd_elf_symbol *resolver)
{
    const struct symbols_view *view = &search->symbols->view;
    bool any = false;

    for (size_t i = 0; i < view->count; i++) {
        const struct tbd_module *module = &view->modules[i];
        const struct tbd_elf_symbols *symbols = tbd_elf_symbols(module->file);

        for (size_t k = 0; k < symbols->slot_count; k++) {
            const struct tbd_elf_slot *slot = &symbols->slots[k];

            if (slot->name ? strcmp(slot->name, resolver->name) == 0
                           : module == owner && slot->resolver == resolver->start)
                any |= follow_slot(search, module->bias + slot->address, resolver->name);
        }
    }
    return any;
}

static void take_match(struct search *search, const struct tbd_module *module,
                       const struct tbd_elf_symbol *symbol)
{
    if (!symbol->is_resolver || !take_targets(search, module, symbol))
        add_match(search, tbd_symbols_make(module, symbol));
}

/* Calls take() with each symbol whose name begins with NAME and `mark`; `rest`: its name from the mark on. */
static void find_named_after(const struct tbd_module *module, const char *name, const char *mark,
                             void (*take)(struct search *search, const struct tbd_module *module,
                                          const struct tbd_elf_symbol *symbol, const char *rest),
                             struct search *search)
{
    const struct tbd_elf_symbols *symbols = tbd_elf_symbols(module->file);
    const uint32_t *by_name = tbd_elf_by_name(module->file);
    size_t length = strlen(name);
    char first[256];

    if (by_name == NULL ||
        (size_t)snprintf(first, sizeof(first), "%s%s", name, mark) >= sizeof(first))
        return;
    for (size_t i = tbd_elf_lower_bound(module->file, first); i < symbols->count; i++) {
        const struct tbd_elf_symbol *symbol = &symbols->all[by_name[i]];

        if (strncmp(symbol->name, first, strlen(first)) != 0)
            break;
        take(search, module, symbol, symbol->name + length);
    }
}

static void take_part(struct search *search, const struct tbd_module *module,
                      const struct tbd_elf_symbol *symbol, const char *rest)
{
    if (symbol->is_part && symbol->name + tbd_elf_whole_length(symbol->name) == rest)
        add_match(search, tbd_symbols_make(module, symbol));
}

/* NAME.cold: parts of the function. */
static void find_parts(const struct tbd_module *module, const char *name, struct search *search)
{
    find_named_after(module, name, ".cold", take_part, search);
}

/* "NAME.constprop.0.isra.1": is the text after NAME that of copies of a whole function, which optimization has made for some callers? */
static bool marks_clone(const char *mark)
{
    static const char *const marks[] = { ".constprop.", ".isra.", ".lto_priv." };
    const char *at = mark;

    while (*at == '.') {
        size_t length = 0;

        for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]) && length == 0; i++)
            length = strncmp(at, marks[i], strlen(marks[i])) == 0 ? strlen(marks[i]) : 0;
        if (length == 0 || at[length] < '0' || at[length] > '9')
            return false;
        at += length + strspn(at + length, "0123456789");
    }
    return at != mark && *at == '\0';
}

static void take_clone(struct search *search, const struct tbd_module *module,
                       const struct tbd_elf_symbol *symbol, const char *rest)
{
    if (!symbol->is_function || !marks_clone(rest))
        return;
    take_match(search, module, symbol);
    find_parts(module, symbol->name, search);
}

static void find_in(const struct tbd_module *module, const char *name, bool is_pattern,
                    struct search *search)
{
    size_t before = search->count;
    const struct tbd_elf_symbols *symbols = tbd_elf_symbols(module->file);

    const uint32_t *by_name = tbd_elf_by_name(module->file);

    for (size_t i = is_pattern ? 0 : tbd_elf_lower_bound(module->file, name);
         by_name != NULL && i < symbols->count; i++) {
        const struct tbd_elf_symbol *symbol = &symbols->all[by_name[i]];

        if (is_pattern ? fnmatch(name, symbol->name, 0) == 0 : strcmp(name, symbol->name) == 0)
            take_match(search, module, symbol);
        else if (!is_pattern)
            break;
    }
    if (!is_pattern && search->count != before)
        find_parts(module, name, search);
    if (!is_pattern)
        find_named_after(module, name, ".", take_clone, search);
}

enum how { BY_PATTERN, BY_NAME, BY_OVERLOAD };

/* Data is called by its whole name: `in` is not std::ios_base::in, which an expression would have to say. */
static bool is_data_called(const char *readable, const char *name)
{
    static const char unnamed[] = "(anonymous namespace)::";

    while (strncmp(readable, unnamed, sizeof(unnamed) - 1) == 0)
        readable += sizeof(unnamed) - 1;
    return strcmp(readable, name) == 0;
}

static bool is_called(const struct tbd_module *module, const struct tbd_elf_symbol *symbol,
                      const char *name, enum how how)
{
    char *whole;
    bool is;

    if (how == BY_PATTERN)
        return fnmatch(name, tbd_elf_symbol_name(module->file, symbol), 0) == 0;
    if (!tbd_may_be_called(symbol->name, name))
        return false;
    if (how == BY_NAME && !symbol->is_function)
        return is_data_called(tbd_elf_symbol_name(module->file, symbol), name);
    if (how == BY_NAME)
        return tbd_is_name_for(tbd_elf_symbol_name(module->file, symbol), name);
    whole = tbd_demangle_whole(symbol->name);
    is = whole != NULL && tbd_is_overload(whole, name);
    free(whole);
    return is;
}

/* Mangled names whose readable form is `name`, or, of functions, ends with it. */
static void find_readable(const struct tbd_module *module, const char *name, enum how how,
                          struct search *search)
{
    const struct tbd_elf_symbols *symbols = tbd_elf_symbols(module->file);
    const uint32_t *by_name = tbd_elf_by_name(module->file);

    if (how == BY_PATTERN)
        tbd_elf_read_names(module->file);
    for (size_t i = tbd_elf_lower_bound(module->file, "_Z"); by_name != NULL && i < symbols->count;
         i++) {
        const struct tbd_elf_symbol *symbol = &symbols->all[by_name[i]];

        if (!tbd_is_mangled(symbol->name))
            break;
        if (is_called(module, symbol, name, how))
            take_match(search, module, symbol);
    }
}

static int order_of(const struct tbd_symbol *symbol)
{
    if (symbol->is_stub || symbol->is_part)
        return symbol->is_part ? 3 : 2;
    return !symbol->is_function;
}

static int compare_found(const void *left, const void *right)
{
    const struct tbd_symbol *a = left, *b = right;

    if (order_of(a) != order_of(b))
        return order_of(a) - order_of(b);
    return (a->start > b->start) - (a->start < b->start);
}

static int compare_matches(const void *left, const void *right)
{
    const struct match *a = left, *b = right;

    if (a->symbol.start != b->symbol.start)
        return a->symbol.start < b->symbol.start ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

static void find_in_view(const struct symbols_view *view, const char *name, struct search *search)
{
    static const enum how orders[][2] = { { BY_PATTERN, BY_OVERLOAD }, { BY_NAME, BY_OVERLOAD } };
    const char *mark = strchr(name, '!');
    size_t length = mark ? (size_t)(mark - name) : 0;
    const char *symbol = mark ? mark + 1 : name;
    bool is_pattern = strpbrk(symbol, "*?[") != NULL;

    for (size_t i = 0; i < view->count; i++)
        if (!mark || is_module_called(&view->modules[i], name, length))
            find_in(&view->modules[i], symbol, is_pattern, search);
    if (search->count != 0 && !is_pattern)
        return;
    /* "copy(char*)" may itself be the symbol's name. */
    for (size_t way = 0; way < 2 && (way == 0 || search->count == 0); way++)
        for (size_t i = 0; i < view->count; i++)
            if (!mark || is_module_called(&view->modules[i], name, length))
                find_readable(&view->modules[i], symbol, orders[!is_pattern][way], search);
}

/* Aliases have the same start; the first one found stays. */
static void keep_answer(struct tbd_symbols *symbols, const char *name, struct search *search)
{
    struct symbols_answer *last = &symbols->last;

    free(last->name);
    free(last->found);
    *last = (struct symbols_answer){ .name = strdup(name),
                                     .window = symbols->view.window,
                                     .deep = symbols->view.deep };
    last->found = malloc((search->count + 1) * sizeof(*last->found));
    if (last->found != NULL && search->count != 0) {
        qsort(search->matches, search->count, sizeof(*search->matches), compare_matches);
        for (size_t i = 0; i < search->count; i++) {
            if (i == 0 || search->matches[i].symbol.start != search->matches[i - 1].symbol.start)
                last->found[last->count++] = search->matches[i].symbol;
        }
        qsort(last->found, last->count, sizeof(*last->found), compare_found);
    }
    free(search->matches);
}

size_t tbd_symbols_find(struct tbd_symbols *symbols, uint32_t window, const char *name,
                        struct tbd_symbol *out, size_t max)
{
    struct search search = { .symbols = symbols, .window = window };
    const struct symbols_answer *last = &symbols->last;

    if (tbd_symbols_view_at(symbols, window) != TBD_OK)
        return 0;
    if (last->name == NULL || last->window != symbols->view.window ||
        last->deep != symbols->view.deep || strcmp(last->name, name) != 0) {
        find_in_view(&symbols->view, name, &search);
        if (search.count == 0 && tbd_symbols_view_deepen(symbols, window))
            find_in_view(&symbols->view, name, &search);
        keep_answer(symbols, name, &search);
    }
    TBD_INVARIANT("SYMBOLS_FIND-2", last->name == NULL || last->window == symbols->view.window);
    if (last->count != 0 && max != 0)
        memcpy(out, last->found, (last->count < max ? last->count : max) * sizeof(*out));
    return last->count;
}
