// SPDX-License-Identifier: MIT
/* debugged.c - see debugged.h.  What cannot be read does not count. */
#include "hooks/debugged.h"

#include "base/fmt.h"
#include "base/layout.h"
#include "base/string.h"
#include "base/sys.h"

enum { O_RDONLY_CLOEXEC = 0x80000, PART_BYTES = 4096 };

/* Is there a line that begins with `start`?  What follows there goes to `rest`. */
static bool find_line(const char *path, const char *start, char *rest, size_t rest_bytes)
{
    char text[PART_BYTES + 1];
    size_t used = 0;
    bool found = false;
    int fd = (int)tbd_sys_open(path, O_RDONLY_CLOEXEC, 0);

    while (fd >= 0 && !found) {
        long bytes = tbd_sys_read(fd, text + used, PART_BYTES - used);
        char *line = text;

        if (bytes <= 0)
            break;
        used += (size_t)bytes;
        text[used] = '\0';
        for (char *end = line; *end && !found; end++) {
            if (*end != '\n')
                continue;
            *end = '\0';
            found = tbd_starts_with(line, start);
            if (found)
                tbd_fmt(rest, rest_bytes, "%s", line + strlen(start));
            line = end + 1;
        }
        used = line == text && used == PART_BYTES ? 0 : used - (size_t)(line - text);
        memmove(text, line, used);
    }
    if (fd >= 0)
        tbd_sys_close(fd);
    return found;
}

bool tbd_debugged_by_recorded(void)
{
    char tracer[16];
    char path[40];
    char start[24];
    char rest[8];

    if (!find_line("/proc/thread-self/status", "TracerPid:\t", tracer, sizeof(tracer)) || tracer[0] == '0')
        return false;
    tbd_fmt(path, sizeof(path), "/proc/%s/maps", tracer);
    tbd_fmt(start, sizeof(start), "%lx-", (uint64_t)TBD_ENGINE_BASE);
    return find_line(path, start, rest, sizeof(rest));
}
