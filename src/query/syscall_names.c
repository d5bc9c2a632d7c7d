// SPDX-License-Identifier: MIT
/* syscall_names.c - the table behind syscall_names.h; rows are generated from asm/unistd_64.h */
#include "query/syscall_names.h"

#include <string.h>

static const char *const names[] = {
#define X(number, name) [number] = #name,
#include "syscall_names.def"
#undef X
};

#define NAME_COUNT (sizeof(names) / sizeof(names[0]))

const char *tbd_syscall_number_name(uint64_t number)
{
    return number < NAME_COUNT ? names[number] : NULL;
}

int64_t tbd_syscall_name_number(const char *name, size_t bytes)
{
    for (size_t i = 0; i < NAME_COUNT; i++) {
        if (names[i] != NULL && strlen(names[i]) == bytes && memcmp(names[i], name, bytes) == 0)
            return (int64_t)i;
    }
    return -1;
}
