// SPDX-License-Identifier: MIT
/* log.c - see log.h */
#include "base/log.h"

#include "base/fmt.h"
#include "base/string.h"
#include "base/sys.h"

enum tbd_log_level tbd_log_level = TBD_LOG_WARN;

#define LINE_BYTES 512

static void write_line(char *line, size_t length)
{
    if (length >= LINE_BYTES - 2) {
        memcpy(line + LINE_BYTES - 5, "...", 3);
        length = LINE_BYTES - 2;
    }
    line[length++] = '\n';
    tbd_sys_write(2, line, length);
}

void tbd_say(const char *format, ...)
{
    char line[LINE_BYTES];
    size_t length = tbd_fmt(line, sizeof(line) - 1, "tbd: ");
    va_list list;

    va_start(list, format);
    length += tbd_fmt_list(line + length, sizeof(line) - 1 - length, format, list);
    va_end(list);
    write_line(line, length);
}

void tbd_log(const char *module, const char *format, ...)
{
    char line[LINE_BYTES];
    size_t length = tbd_fmt(line, sizeof(line) - 1, "tbd: %s: ", module);
    va_list list;

    va_start(list, format);
    length += tbd_fmt_list(line + length, sizeof(line) - 1 - length, format, list);
    va_end(list);
    write_line(line, length);
}
