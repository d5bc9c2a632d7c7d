// SPDX-License-Identifier: MIT
/* function_variables.c - see function_variables.h */
#include "query/values/function_variables.h"

#include <dwarf.h>
#include <string.h>

struct block_walk {
    enum tbd_function_variables which;
    void (*each)(void *context, const Dwarf_Die *variable, const char *name);
    void *context;
    size_t count;
};

static bool is_wanted(const struct block_walk *walk, Dwarf_Die *die)
{
    int tag = dwarf_tag(die);
    unsigned kind = tag == DW_TAG_formal_parameter ? TBD_FUNCTION_PARAMETERS
                    : tag == DW_TAG_variable       ? TBD_FUNCTION_LOCALS
                                                   : 0;

    return (kind & walk->which) != 0 && tbd_die_name(die) != NULL &&
           !tbd_die_flag(die, DW_AT_declaration);
}

static void take(struct block_walk *walk, Dwarf_Die *die)
{
    walk->each(walk->context, die, tbd_die_name(die));
    walk->count++;
}

/* The variables of one block. */
static void walk_block(struct block_walk *walk, const Dwarf_Die *block)
{
    Dwarf_Die die;

    for (bool more = tbd_die_child(block, &die); more; more = tbd_die_next(&die, &die))
        if (is_wanted(walk, &die))
            take(walk, &die);
}

static bool has_variable(const Dwarf_Die *block, const char *name)
{
    Dwarf_Die die;

    for (bool more = tbd_die_child(block, &die); more; more = tbd_die_next(&die, &die)) {
        const char *other = tbd_die_name(&die);

        if (other != NULL && strcmp(other, name) == 0)
            return true;
    }
    return false;
}

/* A variable that the compiler removed completely is only in the function's abstract instance. */
static void walk_removed(struct block_walk *walk, const Dwarf_Die *block)
{
    Dwarf_Die origin, die;

    if (!tbd_die_reference(block, DW_AT_abstract_origin, &origin))
        return;
    for (bool more = tbd_die_child(&origin, &die); more; more = tbd_die_next(&die, &die))
        if (is_wanted(walk, &die) && !has_variable(block, tbd_die_name(&die)))
            take(walk, &die);
}

size_t tbd_function_variables(const struct tbd_place_of *place, enum tbd_function_variables which,
                              void (*each)(void *context, const Dwarf_Die *variable,
                                           const char *name),
                              void *context)
{
    struct block_walk walk = { .which = which, .each = each, .context = context };

    for (size_t i = place->first; i < place->end && i < place->scopes.count; i++) {
        walk_block(&walk, &place->scopes.dies[i]);
        walk_removed(&walk, &place->scopes.dies[i]);
    }
    return walk.count;
}
