// SPDX-License-Identifier: MIT
/* complete_names.c - see complete_names.h */
#include "query/prompt/complete_names.h"

#include "query/debuginfo/dwarf_inlined.h"
#include "query/debuginfo/elf_file.h"
#include "query/session/source/source_place.h"
#include "query/text/demangle.h"

#include <ctype.h>
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

/* Adds names as the file has them, but no import stubs, parts of functions or made-up names. */
static void add_plain_names(struct tbd_completer *c, struct tbd_elf_file *file)
{
    const struct tbd_elf_symbols *symbols = tbd_elf_symbols(file);
    const uint32_t *by_name = tbd_elf_by_name(file);

    for (size_t at = tbd_elf_lower_bound(file, c->word); at < symbols->count; at++) {
        const struct tbd_elf_symbol *symbol = &symbols->all[by_name[at]];

        if (strncmp(symbol->name, c->word, strlen(c->word)) != 0 ||
            c->out->count >= TBD_COMPLETIONS_MAX)
            break;
        if (strpbrk(symbol->name, "@.") == NULL && !symbol->is_made_up)
            tbd_completer_add(c, symbol->name);
    }
}

/* Adds "ns::thing", or "thing" if the word does not begin with the namespace. */
static void add_readable_name(struct tbd_completer *c, const char *name)
{
    if (strpbrk(name, "<(@. ") != NULL)
        return;
    while (strncmp(name, c->word, strlen(c->word)) != 0) {
        name = strstr(name, "::");
        if (name == NULL)
            return;
        name += 2;
    }
    tbd_completer_add(c, name);
}

static void add_readable_names(struct tbd_completer *c, struct tbd_elf_file *file)
{
    const struct tbd_elf_symbols *symbols = tbd_elf_symbols(file);
    const uint32_t *by_name = tbd_elf_by_name(file);

    for (size_t at = tbd_elf_lower_bound(file, "_Z"); at < symbols->count; at++) {
        const struct tbd_elf_symbol *symbol = &symbols->all[by_name[at]];

        if (!tbd_is_mangled(symbol->name) || c->out->count >= TBD_COMPLETIONS_MAX)
            break;
        /* At the first mangled name all of the file's are demangled together. */
        tbd_elf_read_names(file);
        add_readable_name(c, tbd_elf_symbol_name(file, symbol));
    }
}

static void add_inlined_name(void *context, const char *name)
{
    if (strpbrk(name, "<(@. ") == NULL)
        tbd_completer_add(context, name);
}

void tbd_completer_symbols(struct tbd_completer *c)
{
    const struct tbd_module *modules;
    size_t count = 0;
    uint32_t window = tbd_session_current_window(c->session);

    /* A list of all names would be no help. */
    if (*c->word == '\0' ||
        tbd_symbols_modules(c->session->symbols, window, &modules, &count) != TBD_OK)
        return;
    for (size_t i = 0; i < count; i++) {
        add_plain_names(c, modules[i].file);
        add_readable_names(c, modules[i].file);
        if (strstr(modules[i].name, ".so") == NULL) /* libraries have too many */
            tbd_dwarf_inlined_names(tbd_dwarf_of(modules[i].file), add_inlined_name, c);
    }
}

static void add_variables(struct tbd_completer *c, const Dwarf_Die *scope)
{
    Dwarf_Die die;

    for (bool more = tbd_die_child(scope, &die); more; more = tbd_die_next(&die, &die)) {
        const char *name = tbd_die_name(&die);
        int tag = dwarf_tag(&die);

        if ((tag == DW_TAG_variable || tag == DW_TAG_formal_parameter) && name != NULL)
            tbd_completer_add(c, name);
    }
}

static void add_members(struct tbd_completer *c, const struct tbd_place_of *place,
                        struct tbd_type type)
{
    struct tbd_type_view view = tbd_type_look(&type);
    struct tbd_member member;
    Dwarf_Die of, at;

    if ((view.kind == TBD_TYPE_POINTER || view.kind == TBD_TYPE_REFERENCE) &&
        tbd_type_target(&type, &type))
        view = tbd_type_look(&type);
    if (view.kind != TBD_TYPE_STRUCT)
        return;
    of = tbd_type_complete(place->dwarf, &view.die);
    for (bool first = true; tbd_type_next_member(&of, first, &at, &member); first = false) {
        if (member.is_base)
            add_members(c, place, member.type);
        else if (member.name != NULL)
            tbd_completer_add(c, member.name);
    }
}

/* Where the expression that ends at `end` begins: names, brackets, arrows. */
static size_t expression_start(const char *line, size_t end)
{
    int depth = 0;

    while (end > 0) {
        char before = line[end - 1];

        if (before == ']' || before == ')')
            depth++;
        else if (before == '[' || before == '(')
            depth--;
        if (depth < 0 ||
            (depth == 0 && !isalnum((unsigned char)before) && strchr("_.[]()>-:", before) == NULL))
            break;
        /* `a > b` is no arrow */
        if (depth == 0 && before == '>' && (end < 2 || line[end - 2] != '-'))
            break;
        if (depth == 0 && before == '-' && line[end] != '>')
            break;
        end--;
    }
    return end;
}

/* The end of the expression before "." or "->"; 0 if no member is wanted. */
size_t tbd_completer_member_of(const struct tbd_completer *c)
{
    size_t at = c->out->from;

    if (at > 1 && c->line[at - 1] == '.')
        return at - 1;
    return at > 2 && c->line[at - 1] == '>' && c->line[at - 2] == '-' ? at - 2 : 0;
}

void tbd_completer_source_names(struct tbd_completer *c)
{
    struct tbd_source_place *place = calloc(1, sizeof(*place));
    size_t end = tbd_completer_member_of(c);
    const struct tbd_place_of *at;
    struct tbd_query_error error;
    struct tbd_c_scope scope;
    struct tbd_data data;

    if (place == NULL)
        return;
    if (tbd_source_place_glance(c->session, tbd_session_current(c->session), place) ||
        tbd_source_place_open(c->session, tbd_session_current(c->session), SIZE_MAX, place) ==
            TBD_OK) {
        at = &place->places[0];
        scope = tbd_source_scope(place);
        for (size_t i = at->first; end == 0 && i < at->end && i < at->scopes.count; i++)
            add_variables(c, &at->scopes.dies[i]);
        if (end != 0 && tbd_c_evaluate(&scope, c->line, expression_start(c->line, end), end, &data,
                                       &error) == TBD_OK)
            add_members(c, at, data.type);
        tbd_source_place_close(place);
    }
    free(place);
}

/* Adds the source files of modules whose file has debug information itself. */
void tbd_completer_files(struct tbd_completer *c)
{
    const struct tbd_module *modules;
    size_t count = 0;
    uint32_t window = tbd_session_current_window(c->session);

    if (tbd_symbols_modules(c->session->symbols, window, &modules, &count) != TBD_OK)
        return;
    for (size_t i = 0; i < count; i++) {
        struct tbd_dwarf *dwarf =
            modules[i].file->debug.elf == NULL ? tbd_dwarf_of(modules[i].file) : NULL;
        Dwarf_Die unit;

        for (size_t u = 0; dwarf != NULL && u < tbd_dwarf_unit_count(dwarf); u++) {
            const char *path = tbd_dwarf_unit(dwarf, u, &unit) ? tbd_die_name(&unit) : NULL;
            const char *slash = path == NULL ? NULL : strrchr(path, '/');

            if (path != NULL)
                tbd_completer_add(c, slash == NULL ? path : slash + 1);
        }
    }
}
