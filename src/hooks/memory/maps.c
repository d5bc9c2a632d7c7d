// SPDX-License-Identifier: MIT
/* maps.c - see maps.h; the format is that of proc_pid_maps(5). */
#include "hooks/memory/maps.h"

#include "base/linux.h"
#include "base/string.h"
#include "hooks/memory/proc.h"
#include "hooks/memory/regions.h"

static uint32_t special_flags(const char *path)
{
    if (strcmp(path, "[stack]") == 0)
        return TBD_REGION_STACK;
    if (strcmp(path, "[heap]") == 0)
        return TBD_REGION_HEAP;
    if (strcmp(path, "[vdso]") == 0)
        return TBD_REGION_VDSO;
    if (strcmp(path, "[vvar]") == 0 || strcmp(path, "[vvar_vclock]") == 0 ||
        strcmp(path, "[vsyscall]") == 0)
        return TBD_REGION_VVAR;
    return 0;
}

/* The kernel writes a newline in a path as "\012"; it escapes no other character (seq_file.c,
 * mangle_path()). */
static char *take_path(char *path)
{
    char *out = path;

    for (char *in = path; *in != '\0'; out++) {
        bool is_newline = tbd_starts_with(in, "\\012");

        *out = is_newline ? '\n' : *in;
        in += is_newline ? 4 : 1;
    }
    *out = '\0';
    return path;
}

/* start-end rwxp offset major:minor inode      path */
static const char *parse_line(char *text, struct tbd_msg_region *map)
{
    const char *line = text;

    uint64_t major;
    uint64_t minor;

    *map = (struct tbd_msg_region){ 0 };
    line = tbd_proc_hexadecimal(line, &map->start);
    line = tbd_proc_hexadecimal(line + (*line == '-'), &map->end);
    if (strlen(line) < 6)
        return NULL;
    map->prot = tbd_region_prot((line[1] == 'r' ? 1u : 0) | (line[2] == 'w' ? 2u : 0) |
                                (line[3] == 'x' ? 4u : 0));
    map->map_flags = line[4] == 's' ? MAP_SHARED : MAP_PRIVATE;
    line = tbd_proc_hexadecimal(line + 6, &map->file_offset);
    line = tbd_proc_hexadecimal(line + (*line == ' '), &major);
    line = tbd_proc_hexadecimal(line + (*line == ':'), &minor);
    line = tbd_proc_decimal(line + (*line == ' '), &map->inode);
    map->device = (uint32_t)((minor & 0xff) | major << 8 | (minor & ~0xffull) << 12);
    while (*line == ' ')
        line++;
    map->flags = special_flags(line);
    return take_path(text + (line - text));
}

struct visit {
    tbd_maps_visitor visit;
    void *context; /* its own */
};

static bool visit_line(void *context, char *line)
{
    const struct visit *visit = context;
    struct tbd_msg_region map;
    const char *path = parse_line(line, &map);

    return !path || visit->visit(visit->context, &map, path);
}

bool tbd_maps_read(tbd_maps_visitor visit, void *context)
{
    struct visit each = { visit, context };

    return tbd_proc_lines("/proc/thread-self/maps", visit_line, &each);
}
