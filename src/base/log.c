// SPDX-License-Identifier: MIT
/* log.c - see log.h */
#include "base/log.h"

#include "base/escape.h"
#include "base/fmt.h"
#include "base/string.h"
#include "base/sys.h"

enum tbd_log_level tbd_log_level = TBD_LOG_WARN;
bool tbd_log_silent;
char *tbd_log_kept;
size_t tbd_log_kept_bytes;

#define LINE_BYTES 512

/* Cut at the end of the space, which ends with a NUL. */
static void keep(const char *line, size_t length)
{
    size_t used = strlen(tbd_log_kept), space = tbd_log_kept_bytes - used - 1;

    length = length < space ? length : space;
    memcpy(tbd_log_kept + used, line, length);
    tbd_log_kept[used + length] = '\0';
}

/* Names in the message may come from an untrusted source. */
static void write_line(const char *text, size_t text_length)
{
    char line[LINE_BYTES];
    size_t capacity = LINE_BYTES - strlen("...\n");
    bool is_cut = tbd_escape(TBD_ESCAPE_FIELD, text, text_length, line, capacity) >= capacity ||
                  text_length >= LINE_BYTES - 2;
    size_t length = strlen(line);

    if (tbd_log_silent)
        return;
    if (is_cut) {
        /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): what is written has a length */
        memcpy(line + length, "...", 3);
        length += 3;
    }
    line[length++] = '\n';
    if (tbd_log_kept)
        keep(line, length);
    else
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
