// SPDX-License-Identifier: MIT
/* proc.c - see proc.h
 *
 * Reads until the end of the file: each read ends at the end of a line, but may not return all
 * lines. */
#include "hooks/memory/proc.h"

#include "base/fmt.h"
#include "base/linux_abi.h"
#include "base/string.h"
#include "base/sys.h"

enum { BUFFER_BYTES = 8192 };

/* Visits the complete lines in buffer[0..length).  Returns their length in bytes, or -1: stop. */
static long visit_lines(char *buffer, size_t length, tbd_proc_visitor visit, void *context)
{
    size_t start = 0;

    for (size_t i = 0; i < length; i++) {
        if (buffer[i] != '\n')
            continue;
        buffer[i] = '\0';
        if (!visit(context, buffer + start))
            return -1;
        start = i + 1;
    }
    return (long)start;
}

bool tbd_proc_lines(const char *path, tbd_proc_visitor visit, void *context)
{
    char buffer[BUFFER_BYTES];
    size_t filled = 0;
    long fd = tbd_sys_open(path, O_RDONLY | O_CLOEXEC, 0);
    long got;

    if (tbd_sys_failed(fd))
        return false;
    while ((got = tbd_sys_read((int)fd, buffer + filled, sizeof(buffer) - filled)) > 0) {
        long used;

        filled += (size_t)got;
        used = visit_lines(buffer, filled, visit, context);
        if (used < 0)
            break;
        if (!used && filled == sizeof(buffer))
            used = (long)filled;
        memmove(buffer, buffer + used, filled - (size_t)used);
        filled -= (size_t)used;
    }
    tbd_sys_close((int)fd);
    return got >= 0;
}

long tbd_proc_read(const char *path, char *text, size_t bytes)
{
    long fd = tbd_sys_open(path, O_RDONLY | O_CLOEXEC, 0);
    long got;

    text[0] = '\0';
    if (tbd_sys_failed(fd))
        return fd;
    got = tbd_sys_read((int)fd, text, bytes - 1);
    tbd_sys_close((int)fd);
    text[got > 0 ? got : 0] = '\0';
    return got;
}

size_t tbd_proc_path(int fd, char *path, size_t bytes)
{
    char link[40];
    long got;

    tbd_fmt(link, sizeof(link), "/proc/thread-self/fd/%u", (unsigned)fd);
    got = tbd_sys3(__NR_readlink, tbd_sys_pointer(link), tbd_sys_pointer(path), bytes - 1);
    path[got > 0 ? got : 0] = '\0';
    return got > 0 ? (size_t)got : 0;
}

const char *tbd_proc_hexadecimal(const char *text, uint64_t *out)
{
    uint64_t value = 0;

    for (;; text++) {
        char c = *text;

        if (c >= '0' && c <= '9')
            value = value << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value << 4 | (uint64_t)(c - 'a' + 10);
        else
            break;
    }
    *out = value;
    return text;
}

const char *tbd_proc_decimal(const char *text, uint64_t *out)
{
    uint64_t value = 0;

    for (; *text >= '0' && *text <= '9'; text++)
        value = value * 10 + (uint64_t)(*text - '0');
    *out = value;
    return text;
}
