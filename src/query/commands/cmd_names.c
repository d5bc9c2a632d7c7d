// SPDX-License-Identifier: MIT
/* cmd_names.c - functions, variables, types: what the modules have under names that fit a pattern
 *
 * From the debug information, and of functions and variables also the symbols at addresses that it does not know. */
#include "query/commands/commands.h"
#include "query/commands/rows.h"
#include "query/debuginfo/dwarf_listed.h"
#include "query/debuginfo/dwarf_type.h"
#include "query/output/output.h"
#include "query/text/shortage.h"

#include "base/array.h"
#include "base/binary_search.h"

#include <dwarf.h>
#include <inttypes.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#define TYPE_BYTES 512u

struct listed_name {
    char *name, *text; /* owned; `text`: as it is declared, a variable's type; NULL: not known */
    struct tbd_source_line source; /* line 0: not known */
    uint64_t address;              /* 0: none */
    uint64_t bytes;                /* of a type; 0: not known */
    uint32_t module;
    bool is_inlined; /* a function without code of its own */
};

struct naming {
    struct tbd_command_run *run;
    enum tbd_listed_kind kind;
    regex_t pattern;
    bool has_pattern, no_memory;
    const struct tbd_module *modules; /* borrowed */
    uint32_t module;                  /* being looked at */
    struct listed_name *all;          /* owned */
    size_t count, capacity;
    uint64_t *known; /* owned: addresses in the module's file that the debug information has */
    size_t known_count, known_capacity;
};

static bool is_wanted(const struct naming *n, const char *name)
{
    return !n->has_pattern || regexec(&n->pattern, name, 0, NULL, 0) == 0;
}

/* Takes `text`. */
static struct listed_name *add_name(struct naming *n, const char *name, char *text)
{
    struct listed_name *one;

    if (!tbd_array_grow(&n->all, n->count, &n->capacity, sizeof(*n->all))) {
        free(text);
        n->no_memory = true;
        return NULL;
    }
    one = &n->all[n->count++];
    *one = (struct listed_name){ .name = strdup(name), .text = text, .module = n->module };
    n->no_memory |= one->name == NULL;
    return one;
}

/* ---- as the source declares it ---- */

/* Nothing but the name is known of a function that an assembler has made. */
static bool has_type(const struct tbd_listed *one)
{
    Dwarf_Die type;

    return !tbd_die_reference(&one->die, DW_AT_type, &type) ||
           dwarf_tag(&type) != DW_TAG_unspecified_type;
}

/* "int insert(struct list *, int)"; a clone's parameters are those of the function that it was made from. */
static void put_function(const struct tbd_listed *one, FILE *out)
{
    struct tbd_type type = tbd_type_of(&one->die);
    Dwarf_Die origin;
    char text[TYPE_BYTES];

    fprintf(out, "%s%s %s(", tbd_die_flag(&one->die, DW_AT_external) ? "" : "static ",
            tbd_type_text(&type, text, sizeof(text)), one->name);
    if (!tbd_type_print_parameters(&one->die, out) &&
        tbd_die_reference(&one->die, DW_AT_abstract_origin, &origin))
        (void)tbd_type_print_parameters(&origin, out);
    fputc(')', out);
}

static void put_type(const struct tbd_listed *one, FILE *out)
{
    Dwarf_Die die = one->die;
    bool is_typedef = dwarf_tag(&die) == DW_TAG_typedef;
    struct tbd_type type = is_typedef ? tbd_type_of(&one->die) : tbd_type_from(&one->die);
    char text[TYPE_BYTES];

    tbd_type_text(&type, text, sizeof(text));
    if (is_typedef)
        fprintf(out, "typedef %s %s", text, one->name);
    else
        fputs(text, out);
}

/* The caller frees it; NULL without memory, which is noted. */
static char *declared_text(const struct tbd_listed *one, enum tbd_listed_kind kind)
{
    struct tbd_type type;
    char *text = NULL, of_variable[TYPE_BYTES];
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    if (out == NULL) {
        tbd_shortage_note();
        return NULL;
    }
    switch (kind) {
    case TBD_LISTED_FUNCTION:
        if (has_type(one))
            put_function(one, out);
        else
            fputs(one->name, out);
        break;
    case TBD_LISTED_TYPE: put_type(one, out); break;
    case TBD_LISTED_VARIABLE:
        type = tbd_type_of(&one->die);
        fputs(tbd_type_text(&type, of_variable, sizeof(of_variable)), out);
        break;
    }
    fclose(out);
    return text;
}

/* ---- a module ---- */

static bool take_listed(void *context, const struct tbd_listed *one)
{
    struct naming *n = context;
    const struct tbd_module *module = &n->modules[n->module];
    struct listed_name *name;
    struct tbd_type type;

    if (one->has_address) {
        n->no_memory |=
            !tbd_array_grow(&n->known, n->known_count, &n->known_capacity, sizeof(*n->known));
        if (n->no_memory)
            return false;
        n->known[n->known_count++] = one->address;
    }
    if (!is_wanted(n, one->name))
        return true;
    name = add_name(n, one->name, declared_text(one, n->kind));
    if (name == NULL)
        return false;
    name->source = tbd_dwarf_declared_at(tbd_dwarf_of(module->file), &one->die);
    name->address = one->has_address ? module->bias + one->address : 0;
    name->is_inlined = n->kind == TBD_LISTED_FUNCTION && !one->has_address;
    if (n->kind == TBD_LISTED_TYPE) {
        type = tbd_type_from(&one->die);
        name->bytes = tbd_type_look(&type).bytes;
    }
    return !n->no_memory;
}

static bool is_known(const struct naming *n, uint64_t address)
{
    size_t at = TBD_COUNT_BEFORE(i, n->known_count, n->known[i] < address);

    return at < n->known_count && n->known[at] == address;
}

/* Symbols that the debug information does not have. */
static void take_symbols(struct naming *n, const struct tbd_module *module)
{
    const struct tbd_elf_symbols *symbols = tbd_elf_symbols(module->file);

    if (n->known_count != 0)
        qsort(n->known, n->known_count, sizeof(*n->known), tbd_compare_words);
    tbd_elf_read_names(module->file);
    for (size_t i = 0; i < symbols->count && !n->no_memory; i++) {
        const struct tbd_elf_symbol *symbol = &symbols->all[i];
        bool is_function = symbol->is_function || symbol->is_stub;
        struct listed_name *name;
        const char *shown;

        if (symbol->is_made_up || symbol->is_part ||
            is_function != (n->kind == TBD_LISTED_FUNCTION) ||
            (!is_function && symbol->end == symbol->start) || is_known(n, symbol->start))
            continue;
        shown = tbd_elf_symbol_name(module->file, symbol);
        name = is_wanted(n, shown) ? add_name(n, shown, NULL) : NULL;
        if (name != NULL)
            name->address = module->bias + symbol->start;
    }
}

static void take_module(struct naming *n)
{
    const struct tbd_module *module = &n->modules[n->module];
    struct tbd_dwarf *dwarf = tbd_dwarf_of(module->file);

    n->known_count = 0;
    if (dwarf != NULL)
        tbd_dwarf_list(dwarf, n->kind, take_listed, n);
    if (n->kind != TBD_LISTED_TYPE)
        take_symbols(n, module);
}

/* ---- output ---- */

/* NULL comes after all texts: what has no source is last. */
static int compare_texts(const char *a, const char *b)
{
    if (a == NULL || b == NULL)
        return (a == NULL) - (b == NULL);
    return strcmp(a, b);
}

/* By module, file, line and name; functions with code first, so that only_inlined() sees them together. */
static int compare_names(const void *left, const void *right)
{
    const struct listed_name *a = left, *b = right;
    int order = (a->module > b->module) - (a->module < b->module);

    order = order != 0 ? order : compare_texts(a->source.file, b->source.file);
    order =
        order != 0 ? order : (a->source.line > b->source.line) - (a->source.line < b->source.line);
    order = order != 0 ? order : compare_texts(a->name, b->name);
    order = order != 0 ? order : compare_texts(a->text, b->text);
    order = order != 0 ? order : a->is_inlined - b->is_inlined;
    return order != 0 ? order : (a->address > b->address) - (a->address < b->address);
}

/* A type that several units have; what is inlined, of a function that has code, too. */
static bool is_repeated(const struct listed_name *one, const struct listed_name *before)
{
    return one->module == before->module && one->source.line == before->source.line &&
           compare_texts(one->source.file, before->source.file) == 0 &&
           compare_texts(one->name, before->name) == 0 &&
           compare_texts(one->text, before->text) == 0 &&
           (one->address == before->address || one->is_inlined);
}

static const struct {
    const char *what; /* the key of the name */
    const char *columns[6];
} kinds[] = {
    [TBD_LISTED_FUNCTION] = { "function", { "address", "module", "declaration", "source" } },
    [TBD_LISTED_VARIABLE] = { "variable", { "address", "module", "variable", "type", "source" } },
    [TBD_LISTED_TYPE] = { "name", { "module", "bytes", "declaration", "source" } },
};

static json_t *row_of(const struct naming *n, const struct listed_name *one)
{
    json_t *row = json_object();
    const char *text = one->text == NULL ? one->name : one->text;
    bool is_variable = n->kind == TBD_LISTED_VARIABLE;

    if (one->address != 0)
        json_object_set_new(row, "address", tbd_output_hex(one->address));
    json_object_set_new(row, "module", tbd_output_text(n->modules[one->module].name));
    json_object_set_new(row, kinds[n->kind].what, tbd_output_text(one->name));
    if (one->text != NULL || !is_variable)
        json_object_set_new(row, is_variable ? "type" : "declaration", tbd_output_text(text));
    if (n->kind == TBD_LISTED_FUNCTION)
        json_object_set_new(row, "inlined", json_boolean(one->is_inlined));
    if (one->bytes != 0)
        json_object_set_new(row, "bytes", json_integer((json_int_t)one->bytes));
    tbd_output_source(&one->source, row);
    if (one->source.line != 0)
        tbd_output_source_cell(one->source.file, one->source.line, row);
    return row;
}

static enum tbd_exit print_names(struct naming *n)
{
    struct tbd_rows rows;
    enum tbd_exit result;

    if (n->count != 0)
        qsort(n->all, n->count, sizeof(*n->all), compare_names);
    tbd_rows_start(&rows, n->run, kinds[n->kind].columns);
    for (size_t i = 0; i < n->count; i++) {
        json_t *row;

        if (i != 0 && is_repeated(&n->all[i], &n->all[i - 1]))
            continue;
        row = row_of(n, &n->all[i]);
        if (n->all[i].is_inlined && !n->run->session->json)
            json_object_set_new(row, "address", json_string("(inlined)"));
        tbd_rows_add(&rows, row);
    }
    result = tbd_rows_end(&rows);
    return n->no_memory ? tbd_command_no_memory() : result;
}

/* ---- the commands ---- */

/* The rest of the line, as gdb takes it: blanks belong to the pattern. */
static enum tbd_exit take_pattern(struct naming *n)
{
    const char *text = n->run->text + n->run->arguments;
    char why[128];
    int wrong;

    if (n->run->argc == 0)
        return TBD_EXIT_FOUND;
    wrong = regcomp(&n->pattern, text, REG_NOSUB);
    n->has_pattern = wrong == 0;
    if (wrong == 0)
        return TBD_EXIT_FOUND;
    regerror(wrong, &n->pattern, why, sizeof(why));
    return tbd_command_usage(n->run, why);
}

static enum tbd_exit list_names(struct tbd_command_run *run, enum tbd_listed_kind kind)
{
    struct naming n = { .run = run, .kind = kind };
    uint32_t window = tbd_session_current_window(run->session);
    enum tbd_exit result = take_pattern(&n);
    enum tbd_status status;
    size_t count = 0;

    if (result != TBD_EXIT_FOUND)
        return result;
    status = tbd_symbols_modules(run->session->symbols, window, &n.modules, &count);
    for (; status == TBD_OK && n.module < count && !n.no_memory; n.module++)
        take_module(&n);
    result = status == TBD_OK ? print_names(&n) : tbd_command_fail(run, status);
    for (size_t i = 0; i < n.count; i++) {
        free(n.all[i].name);
        free(n.all[i].text);
    }
    free(n.all);
    free(n.known);
    if (n.has_pattern)
        regfree(&n.pattern);
    return result;
}

enum tbd_exit tbd_command_functions(struct tbd_command_run *run)
{
    return list_names(run, TBD_LISTED_FUNCTION);
}

enum tbd_exit tbd_command_variables(struct tbd_command_run *run)
{
    return list_names(run, TBD_LISTED_VARIABLE);
}

enum tbd_exit tbd_command_types(struct tbd_command_run *run)
{
    return list_names(run, TBD_LISTED_TYPE);
}
