// SPDX-License-Identifier: MIT
/* part_name.h - what the names of the option `parts` mean: [MODULE:]FUNCTION(), a source file, or else a module
 *
 * Modules are known to the engine when they are mapped; the others are looked for in symbols and debug information
 * (query/triggers/part_request.h).  Any context. */
#ifndef TBD_FORMAT_PART_NAME_H
#define TBD_FORMAT_PART_NAME_H

#include <stdbool.h>
#include <stddef.h>

enum tbd_code_part { TBD_PART_MODULE, TBD_PART_FUNCTION, TBD_PART_SOURCE };

/* Up to one of these two, or the end: of a name " ;", of a part with its size ";;". */
static inline size_t tbd_part_length(const char *text, const char *ends)
{
    size_t length = 0;

    while (text[length] && text[length] != ends[0] && text[length] != ends[1])
        length++;
    return length;
}

/* Does `name` end with `end`? */
static inline bool tbd_part_ends(const char *name, size_t length, const char *end)
{
    size_t bytes = __builtin_strlen(end);

    return length > bytes && __builtin_memcmp(name + length - bytes, end, bytes) == 0;
}

static inline enum tbd_code_part tbd_code_part_of(const char *name, size_t length)
{
    static const char ends[][6] = { ".c", ".cc",  ".cpp", ".cxx", ".c++", ".C",   ".s",
                                    ".S", ".asm", ".rs",  ".go",  ".f",   ".f90", ".d",
                                    ".m", ".mm",  ".pas", ".ada", ".adb", ".zig", ".nim" };

    if (tbd_part_ends(name, length, "()"))
        return TBD_PART_FUNCTION;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        if (tbd_part_ends(name, length, ends[i]))
            return TBD_PART_SOURCE;
    return TBD_PART_MODULE;
}

#endif
