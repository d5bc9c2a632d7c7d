// SPDX-License-Identifier: MIT
/* pack_extras.c - see pack_extras.h
 *
 * Separate debug files are those that questions find here; where DEBUGINFOD_URLS is set and libdebuginfod is
 * installed, it is asked for those that are missing. */
#include "query/packs/pack_extras.h"

#include "base/array.h"
#include "base/open_file.h"
#include "query/debuginfo/dwarf_alt.h"
#include "query/debuginfo/dwarf_file.h"
#include "query/debuginfo/dwarf_sources.h"
#include "query/text/other_places.h"

#include <dlfcn.h>
#include <elfutils/libdwelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME_BYTES 4400u

/* ---- all modules ---- */

struct module_list {
    struct tbd_elf_file **files; /* owned array */
    size_t count, capacity;
};

static bool add_file(struct module_list *list, struct tbd_elf_file *file)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->files[i] == file)
            return true;
    if (!tbd_array_grow(&list->files, list->count, &list->capacity, sizeof(struct tbd_elf_file *)))
        return false;
    list->files[list->count++] = file;
    return true;
}

/* The modules of all windows. */
static bool read_modules(struct tbd_session *session, struct module_list *list)
{
    uint32_t windows = tbd_trace_window_count(session->trace);
    size_t changes = SIZE_MAX;

    for (uint32_t i = 0; i < windows; i++) {
        const struct tbd_module *modules;
        size_t count, now = tbd_trace_mapping_changes(session->trace, i + 1);

        if (now == changes)
            continue;
        changes = now;
        if (tbd_symbols_modules(session->symbols, i, &modules, &count) != TBD_OK)
            continue;
        for (size_t k = 0; k < count; k++)
            if (!add_file(list, modules[k].file))
                return false;
    }
    return true;
}

/* ---- debug files ---- */

/* libdebuginfod's, which need not be installed. */
struct debuginfod {
    void *library, *client;
    void *(*begin)(void);
    int (*find)(void *client, const unsigned char *id, int id_bytes, char **path);
    void (*end)(void *client);
};

static bool open_debuginfod(struct debuginfod *out)
{
    const char *urls = getenv("DEBUGINFOD_URLS");

    *out = (struct debuginfod){ .library = NULL };
    if (urls == NULL || *urls == '\0')
        return false;
    out->library = dlopen("libdebuginfod.so.1", RTLD_NOW);
    if (out->library == NULL)
        return false;
    *(void **)&out->begin = dlsym(out->library, "debuginfod_begin");
    *(void **)&out->find = dlsym(out->library, "debuginfod_find_debuginfo");
    *(void **)&out->end = dlsym(out->library, "debuginfod_end");
    out->client = out->begin == NULL || out->find == NULL || out->end == NULL ? NULL : out->begin();
    return out->client != NULL;
}

static void close_debuginfod(struct debuginfod *debuginfod)
{
    if (debuginfod->client != NULL)
        debuginfod->end(debuginfod->client);
    if (debuginfod->library != NULL)
        dlclose(debuginfod->library);
}

static bool put_file(const struct tbd_pack_sink *sink, const char *build_id, int fd)
{
    char name[2 * TBD_ELF_BUILD_ID_BYTES + 32];

    snprintf(name, sizeof(name), "debug/%s.debug", build_id);
    return sink->each(sink->context, name, fd);
}

/* The file that several debug files share. */
static bool put_alt(const struct tbd_pack_sink *sink, const struct tbd_elf_file *file, Elf *elf)
{
    Dwarf *dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
    struct tbd_dwarf_alt alt = { .one = { .fd = -1 } };
    char text[2 * TBD_ELF_BUILD_ID_BYTES + 1];
    const char *name;
    const void *id;
    ssize_t bytes;
    bool is_good = true;

    if (dwarf == NULL)
        return true;
    tbd_dwarf_alt_open(file, dwarf, &alt);
    bytes = alt.one.fd < 0 ? 0 : dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &id);
    if (bytes > 0 && bytes <= (ssize_t)TBD_ELF_BUILD_ID_BYTES) {
        for (ssize_t i = 0; i < bytes; i++)
            snprintf(text + 2 * i, 3, "%02x", ((const uint8_t *)id)[i]);
        is_good = put_file(sink, text, alt.one.fd);
    }
    dwarf_end(dwarf);
    tbd_dwarf_alt_close(&alt);
    return is_good;
}

static bool put_debug(struct tbd_elf_file *file, const struct debuginfod *debuginfod,
                      const struct tbd_pack_sink *sink)
{
    Elf *elf = file->build_id_bytes == 0 ? NULL : tbd_elf_debug(file);
    char *path = NULL;
    bool is_good = true;
    int fd;

    if (elf != NULL)
        return put_file(sink, file->build_id_text, file->debug.fd) && put_alt(sink, file, elf);
    if (tbd_dwarf_of(file) != NULL)
        return put_alt(sink, file, file->main.elf);
    if (debuginfod->client == NULL || file->build_id_bytes == 0)
        return true;
    fd = debuginfod->find(debuginfod->client, file->build_id, (int)file->build_id_bytes, &path);
    if (fd >= 0) {
        is_good = put_file(sink, file->build_id_text, fd);
        close(fd);
    }
    free(path);
    return is_good;
}

bool tbd_pack_debug_files(struct tbd_session *session, const struct tbd_pack_sink *sink)
{
    struct module_list list = { .files = NULL };
    struct debuginfod debuginfod;
    bool is_good = read_modules(session, &list);

    (void)open_debuginfod(&debuginfod);
    for (size_t i = 0; i < list.count && is_good; i++)
        is_good = put_debug(list.files[i], &debuginfod, sink);
    close_debuginfod(&debuginfod);
    free(list.files);
    return is_good;
}

/* ---- sources ---- */

struct path_list {
    char **paths; /* owned, each too */
    size_t count, capacity;
    bool no_memory;
};

static bool add_path(void *context, const char *path)
{
    struct path_list *list = context;
    char plain[NAME_BYTES], *copy;

    if (!tbd_places_plain(path, plain, sizeof(plain)))
        return true;
    copy = strdup(plain);
    if (copy == NULL ||
        !tbd_array_grow(&list->paths, list->count, &list->capacity, sizeof(char *))) {
        free(copy);
        list->no_memory = true;
        return false;
    }
    list->paths[list->count++] = copy;
    return true;
}

static int compare_paths(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static bool put_source(const struct tbd_pack_sink *sink, const char *path)
{
    int fd = tbd_open_named(path);
    char name[NAME_BYTES];
    bool is_good = true;

    if (fd < 0)
        return true;
    snprintf(name, sizeof(name), "sources%s", path);
    is_good = sink->each(sink->context, name, fd);
    close(fd);
    return is_good;
}

bool tbd_pack_sources(struct tbd_session *session, const struct tbd_pack_sink *sink)
{
    struct module_list modules = { .files = NULL };
    struct path_list list = { .paths = NULL };
    bool is_good = read_modules(session, &modules);

    for (size_t i = 0; i < modules.count && is_good; i++) {
        struct tbd_dwarf *dwarf = tbd_dwarf_of(modules.files[i]);

        if (dwarf != NULL)
            tbd_dwarf_sources(dwarf, add_path, &list);
        is_good = !list.no_memory;
    }
    if (list.count != 0)
        qsort(list.paths, list.count, sizeof(char *), compare_paths);
    for (size_t i = 0; i < list.count && is_good; i++)
        if (i == 0 || strcmp(list.paths[i], list.paths[i - 1]) != 0)
            is_good = put_source(sink, list.paths[i]);
    for (size_t i = 0; i < list.count; i++)
        free(list.paths[i]);
    free(list.paths);
    free(modules.files);
    return is_good;
}
