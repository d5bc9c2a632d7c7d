// SPDX-License-Identifier: MIT
/* search_words.c - words of a condition that mean an event's value or a register, where the program has a
 * variable of the same name
 *
 * `ch == 0` is about rcx, also where a variable ch is in scope. Looked at are the functions and source
 * lines that the condition names. */
#include "query/search/search_private.h"

#include "query/values/dwarf_expr.h"

#include <dwarf.h>
#include <stdio.h>

#define RANGES_MAX 4u /* of a name */

static bool has_variable(const struct tbd_search_run *run, uint32_t window, uint64_t address,
                         const char *name)
{
    const struct tbd_module *module = tbd_symbols_module_at(run->session->symbols, window, address);
    struct tbd_place_of place = { .memory = NULL }, found;
    Dwarf_Die die;

    if (module == NULL)
        return false;
    tbd_place_enter(&place, tbd_dwarf_of(module->file), module->bias, address, 0);
    return tbd_c_find_entry(&place, name, &found, &die) &&
           (dwarf_tag(&die) == DW_TAG_variable || dwarf_tag(&die) == DW_TAG_formal_parameter);
}

static bool is_shadowed(const struct tbd_search_run *run, uint32_t window, const char *word)
{
    for (uint32_t i = 0; i < run->where->name_count; i++) {
        const struct tbd_expr_name *name = &run->where->names[i];

        if (name->kind != TBD_NAME_FUNCTION && name->kind != TBD_NAME_SOURCE)
            continue;
        for (size_t k = 0; k < name->count && k < RANGES_MAX; k++) {
            if (has_variable(run, window, name->ranges[k].start, word))
                return true;
        }
    }
    return false;
}

void tbd_search_note_words(struct tbd_search_run *run, uint32_t window)
{
    struct tbd_session_stats *stats = &run->session->stats;

    for (uint32_t i = 0; i < run->where->word_count && stats->shadowed[0] == '\0'; i++) {
        const char *word = run->where->words[i];

        if (is_shadowed(run, window, word))
            snprintf(stats->shadowed, sizeof(stats->shadowed), "%s", word);
    }
}
