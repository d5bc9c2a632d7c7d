// SPDX-License-Identifier: MIT
/* debugged.c - see debugged.h.  Files that cannot be read do not count. */
#include "hooks/calls/debugged.h"

#include "base/fmt.h"
#include "base/layout.h"
#include "base/string.h"
#include "hooks/memory/proc.h"

struct wanted {
    const char *start; /* of the line */
    char *rest;        /* the text after `start` in that line */
    size_t rest_bytes;
    bool found;
};

static bool is_wanted(void *context, char *line)
{
    struct wanted *wanted = context;

    wanted->found = tbd_starts_with(line, wanted->start);
    if (wanted->found)
        tbd_fmt(wanted->rest, wanted->rest_bytes, "%s", line + strlen(wanted->start));
    return !wanted->found;
}

/* Is there a line that begins with `start`?  The text after `start` goes to `rest`. */
static bool find_line(const char *path, const char *start, char *rest, size_t rest_bytes)
{
    struct wanted wanted = { .start = start, .rest = rest, .rest_bytes = rest_bytes };

    tbd_proc_lines(path, is_wanted, &wanted);
    return wanted.found;
}

bool tbd_debugged_by_recorded(void)
{
    char tracer[16];
    char path[40];
    char start[24];
    char rest[8];

    if (!find_line("/proc/thread-self/status", "TracerPid:\t", tracer, sizeof(tracer)) ||
        tracer[0] == '0')
        return false;
    tbd_fmt(path, sizeof(path), "/proc/%s/maps", tracer);
    tbd_fmt(start, sizeof(start), "%lx-", (uint64_t)TBD_ENGINE_BASE);
    return find_line(path, start, rest, sizeof(rest));
}
