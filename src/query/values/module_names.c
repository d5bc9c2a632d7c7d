// SPDX-License-Identifier: MIT
/* module_names.c - see module_names.h */
#include "query/values/module_names.h"

#include "query/values/dwarf_expr.h"

bool tbd_modules_variable(const struct tbd_name_modules *modules, const char *name, bool of_program,
                          struct tbd_data *out)
{
    struct tbd_type unknown = tbd_type_made(0, 0);
    struct tbd_name_module module;
    uint64_t address;

    for (size_t i = 0; modules->at(modules->context, i, &module); i++) {
        struct tbd_place_of place = *modules->place;

        if (of_program && !module.is_main_program)
            continue;
        place.is_main_program = module.is_main_program;
        if (module.dwarf != NULL && module.dwarf != place.dwarf &&
            tbd_c_find_global(module.dwarf, module.bias, &place, name, out))
            return true;
    }
    if (of_program || !modules->symbol(modules->context, name, &address))
        return false;
    tbd_data_at(address, &unknown, out);
    return true;
}

bool tbd_modules_type(const struct tbd_name_modules *modules, const char *name,
                      struct tbd_type *out)
{
    struct tbd_name_module module;

    for (size_t i = 0; modules->at(modules->context, i, &module); i++) {
        if (module.dwarf != NULL && module.dwarf != modules->place->dwarf &&
            tbd_type_find(module.dwarf, NULL, name, out))
            return true;
    }
    return false;
}
