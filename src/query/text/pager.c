// SPDX-License-Identifier: MIT
/* pager.c - see pager.h */
#include "query/text/pager.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct tbd_pager {
    FILE *stream; /* owned; what callers write to */
    FILE *to;     /* stdout, or the pager's input */
    char *held;   /* owned; whole lines and the last, incomplete one */
    size_t used, capacity;
    unsigned rows, lines;
    bool colours, is_paging;
};

/* ---- colours ---- */

static size_t position_length(const char *line)
{
    size_t digits = strspn(line, "0123456789"), more;

    if (digits == 0 || line[digits] != '+')
        return 0;
    more = strspn(line + digits + 1, "0123456789");
    return more != 0 && line[digits + 1 + more] == ' ' ? digits + 1 + more : 0;
}

/* Colours positions at the start of a line, the current line of source, and names of variables. */
static void put_line(struct tbd_pager *pager, const char *line, size_t bytes)
{
    size_t length;

    if (pager->colours && (length = position_length(line)) != 0 && length <= bytes)
        fprintf(pager->to, "\033[36m%.*s\033[0m%.*s", (int)length, line, (int)(bytes - length),
                line + length);
    else if (pager->colours && bytes > 2 && line[0] == '=' && line[1] == '>')
        fprintf(pager->to, "\033[1;32m%.*s\033[0m\n", (int)(bytes - (line[bytes - 1] == '\n')),
                line);
    else if (pager->colours && bytes > 2 && line[0] == '#' && isdigit((unsigned char)line[1]))
        fprintf(pager->to, "\033[33m%.*s\033[0m%.*s", (int)strcspn(line, " "), line,
                (int)(bytes - strcspn(line, " ")), line + strcspn(line, " "));
    else
        fwrite(line, 1, bytes, pager->to);
}

/* Writes the complete lines; at the end everything. */
static void flush_lines(struct tbd_pager *pager, bool at_end)
{
    size_t done = 0;

    while (done < pager->used) {
        char *end = memchr(pager->held + done, '\n', pager->used - done);
        size_t bytes = end == NULL ? pager->used - done : (size_t)(end + 1 - (pager->held + done));

        if (end == NULL && !at_end)
            break;
        put_line(pager, pager->held + done, bytes);
        done += bytes;
    }
    memmove(pager->held, pager->held + done, pager->used - done);
    pager->used -= done;
    pager->held[pager->used] = '\0';
}

/* ---- the stream ---- */

static void start_paging(struct tbd_pager *pager)
{
    const char *command = getenv("PAGER");
    /* NOLINTNEXTLINE(cert-env33-c): PAGER is a command for the shell, by custom */
    FILE *to = popen(command != NULL && *command != '\0' ? command : "less -FRX", "w");

    pager->is_paging = to != NULL;
    pager->rows = 0;
    if (to != NULL)
        pager->to = to;
}

static bool make_space(struct tbd_pager *pager, size_t bytes)
{
    size_t wanted = pager->capacity == 0 ? 4096 : pager->capacity;
    char *bigger;

    while (wanted - 1 < pager->used + bytes)
        wanted *= 2;
    if (wanted == pager->capacity)
        return true;
    bigger = realloc(pager->held, wanted);
    if (bigger == NULL)
        return false;
    pager->held = bigger;
    pager->capacity = wanted;
    return true;
}

static ssize_t write_pager(void *cookie, const char *text, size_t bytes)
{
    struct tbd_pager *pager = cookie;

    if (!make_space(pager, bytes))
        return 0;
    memcpy(pager->held + pager->used, text, bytes);
    pager->used += bytes;
    pager->held[pager->used] = '\0';
    for (size_t i = 0; i < bytes; i++)
        pager->lines += text[i] == '\n';
    if (pager->rows != 0 && pager->lines >= pager->rows)
        start_paging(pager);
    if (pager->rows == 0)
        flush_lines(pager, false);
    return (ssize_t)bytes;
}

struct tbd_pager *tbd_pager_open(unsigned rows, bool colours)
{
    struct tbd_pager *pager = calloc(1, sizeof(*pager));

    if (pager == NULL)
        return NULL;
    *pager = (struct tbd_pager){ .to = stdout, .rows = rows, .colours = colours };
    pager->stream = fopencookie(pager, "w", (cookie_io_functions_t){ .write = write_pager });
    if (pager->stream == NULL) {
        free(pager);
        return NULL;
    }
    return pager;
}

FILE *tbd_pager_stream(struct tbd_pager *pager)
{
    return pager->stream;
}

void tbd_pager_close(struct tbd_pager *pager)
{
    fclose(pager->stream);
    if (pager->held != NULL)
        flush_lines(pager, true);
    if (pager->is_paging)
        pclose(pager->to);
    else
        fflush(stdout);
    free(pager->held);
    free(pager);
}
