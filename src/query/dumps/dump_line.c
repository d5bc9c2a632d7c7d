// SPDX-License-Identifier: MIT
/* dump_line.c - see dump_line.h */
#include "query/dumps/dump_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool tbd_dump_line_read(const char *text, bool needs_line, struct tbd_dump_line *out)
{
    const char *colon = strrchr(text, ':');
    char *end;

    snprintf(out->file, sizeof(out->file), "%s", text);
    out->line = 0;
    if (colon == NULL)
        return !needs_line;
    out->line = (uint32_t)strtoul(colon + 1, &end, 10);
    if (*end != '\0' || out->line == 0)
        return false;
    out->file[colon - text] = '\0';
    return true;
}

/* A path, or the end of one. */
static bool is_file(const char *path, const char *name)
{
    size_t length = strlen(path), end = strlen(name);

    return end <= length && strcmp(path + length - end, name) == 0 &&
           (end == length || path[length - end - 1] == '/');
}

bool tbd_dump_is_line(const struct tbd_rings_place *names, const struct tbd_dump_line *wanted)
{
    const struct tbd_source_line *line = &names->line;

    return names->begins_line && (wanted->line == 0 || line->line == wanted->line) &&
           is_file(line->file, wanted->file);
}
