// SPDX-License-Identifier: MIT
/* dwarf_alt.c - see dwarf_alt.h
 *
 * DWARF_ALT-1  A file is used only if its build id is the one that the link names. (not checked: it
 *     is what decoding checks of its input) */
#include "query/debuginfo/dwarf_alt.h"

#include "query/debuginfo/debug_cache.h"
#include "query/text/other_places.h"

#include <elfutils/libdwelf.h>
#include <stdio.h>
#include <string.h>

#define PATH_BYTES   4096
#define ID_BYTES_MIN 2u
#define ID_BYTES_MAX 64u

static bool open_by_id(const uint8_t *id, size_t bytes, struct tbd_elf_one *out)
{
    char text[2 * ID_BYTES_MAX + 1], path[PATH_BYTES];

    for (size_t i = 0; i < bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", id[i]);
    for (size_t i = 0; tbd_places_debug(i, text, path, sizeof(path)); i++)
        if (tbd_elf_one_open(path, id, bytes, out))
            return true;
    snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%.2s/%s.debug", text, text + 2);
    return tbd_elf_one_open(path, id, bytes, out);
}

/* A relative name starts at the folder of the file with the link. */
static bool open_by_name(const char *of, const char *name, const uint8_t *id, size_t bytes,
                         struct tbd_elf_one *out)
{
    const char *slash = strrchr(of, '/');
    char path[PATH_BYTES];
    int length;

    if (name[0] == '/')
        return tbd_elf_one_open(name, id, bytes, out);
    length = snprintf(path, sizeof(path), "%.*s/%s", slash == NULL ? 1 : (int)(slash - of),
                      slash == NULL ? "." : of, name);
    return length > 0 && (size_t)length < sizeof(path) && tbd_elf_one_open(path, id, bytes, out);
}

void tbd_dwarf_alt_open(const struct tbd_elf_file *file, Dwarf *dwarf, struct tbd_dwarf_alt *out)
{
    const char *name, *of = file->debug_path != NULL ? file->debug_path
                            : file->origin != NULL   ? file->origin
                                                     : file->path;
    const void *id;
    ssize_t bytes = dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &id);

    uint64_t unpacked;

    *out = (struct tbd_dwarf_alt){ .one = { .fd = -1 } };
    if (bytes < (ssize_t)ID_BYTES_MIN || bytes > (ssize_t)ID_BYTES_MAX ||
        (!open_by_id(id, (size_t)bytes, &out->one) &&
         !open_by_name(of, name, id, (size_t)bytes, &out->one)) ||
        !tbd_elf_one_can_unpack(&out->one, &unpacked))
        return;
    out->dwarf = dwarf_begin_elf(out->one.elf, DWARF_C_READ, NULL);
    if (out->dwarf != NULL)
        dwarf_setalt(dwarf, out->dwarf);
}

void tbd_dwarf_alt_close(struct tbd_dwarf_alt *alt)
{
    if (alt->dwarf != NULL)
        dwarf_end(alt->dwarf);
    tbd_elf_one_close(&alt->one);
}
