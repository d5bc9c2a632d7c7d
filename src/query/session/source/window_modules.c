// SPDX-License-Identifier: MIT
/* window_modules.c - see window_modules.h */
#include "query/session/source/window_modules.h"

#include "query/debuginfo/dwarf_file.h"

#include <string.h>

static bool has_interpreter(const struct tbd_elf_file *file)
{
    size_t count = 0;

    if (elf_getphdrnum(file->main.elf, &count) != 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr segment;

        if (gelf_getphdr(file->main.elf, (int)i, &segment) != NULL && segment.p_type == PT_INTERP)
            return true;
    }
    return false;
}

/* Some libraries can be run, and so have an interpreter. */
bool tbd_module_is_program(const struct tbd_module *module)
{
    return has_interpreter(module->file) && strstr(module->name, ".so") == NULL;
}

static bool module_at(void *context, size_t index, struct tbd_name_module *out)
{
    struct tbd_window_modules *of = context;
    const struct tbd_module *modules;
    size_t count;

    if (tbd_symbols_modules(of->symbols, of->window, &modules, &count) != TBD_OK || index >= count)
        return false;
    *out = (struct tbd_name_module){ .dwarf = tbd_dwarf_of(modules[index].file),
                                     .bias = modules[index].bias,
                                     .is_main_program = tbd_module_is_program(&modules[index]) };
    return true;
}

static bool symbol_address(void *context, const char *name, uint64_t *out)
{
    struct tbd_window_modules *of = context;
    struct tbd_symbol symbol;

    if (tbd_symbols_find(of->symbols, of->window, name, &symbol, 1) == 0)
        return false;
    *out = symbol.start;
    return true;
}

struct tbd_name_modules tbd_window_modules_of(struct tbd_window_modules *modules,
                                              const struct tbd_place_of *place)
{
    return (struct tbd_name_modules){
        .at = module_at, .symbol = symbol_address, .context = modules, .place = place
    };
}
