// SPDX-License-Identifier: MIT
/* remote_files.c - vFile: files out of the trace */
#include "query/remote/remote_private.h"

#include "query/remote/remote_objects.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096u

/* ---- files ---- */

enum { FILE_ENOENT = 2, FILE_EBADF = 9, FILE_EINVAL = 22, FILE_EUNKNOWN = 9999 }; /* gdb's */

static void fail_file(struct tbd_remote_server *server, unsigned error)
{
    tbd_reply_format(&server->reply, "F-1,%x", error);
}

void tbd_answer_open_file(struct tbd_remote_server *server, const char *text)
{
    char path[PATH_MAX];
    uint64_t flags;
    int slot = 0;

    (void)tbd_remote_bytes(&text, path, sizeof(path));
    if (!tbd_remote_skip(&text, ",") || !tbd_remote_number(&text, &flags) || flags != 0) {
        fail_file(server, FILE_EINVAL);
        return;
    }
    while (slot < TBD_REMOTE_FILES && server->files[slot] >= 0)
        slot++;
    if (slot < TBD_REMOTE_FILES)
        server->files[slot] = tbd_remote_open(&server->motion, path);
    if (slot == TBD_REMOTE_FILES || server->files[slot] < 0)
        fail_file(server, slot == TBD_REMOTE_FILES ? FILE_EUNKNOWN : FILE_ENOENT);
    else
        tbd_reply_format(&server->reply, "F%x", (unsigned)slot);
}

/* The slot that the packet names. */
static bool read_slot(struct tbd_remote_server *server, const char **io, int **out)
{
    uint64_t slot;

    if (!tbd_remote_number(io, &slot) || slot >= TBD_REMOTE_FILES || server->files[slot] < 0)
        return false;
    *out = &server->files[slot];
    return true;
}

void tbd_answer_close_file(struct tbd_remote_server *server, const char *text)
{
    int *slot;

    if (!read_slot(server, &text, &slot)) {
        fail_file(server, FILE_EBADF);
        return;
    }
    close(*slot);
    *slot = -1;
    tbd_reply_text(&server->reply, "F0");
}

/* "F COUNT;DATA": the count comes first, and bytes that are escaped take twice their space. */
static void tell_data(struct tbd_remote_server *server, const char *data, size_t bytes)
{
    size_t most = TBD_PACKET_BYTES - sizeof("F00000000;"), used = 0, count = 0;

    while (count < bytes && (used += tbd_reply_space(data[count])) <= most)
        count++;
    tbd_reply_format(&server->reply, "F%zx;", count);
    (void)tbd_reply_binary(&server->reply, data, count);
}

void tbd_answer_read_file(struct tbd_remote_server *server, const char *text)
{
    uint64_t bytes, offset;
    char *data;
    ssize_t got;
    int *slot;

    if (!read_slot(server, &text, &slot) || !tbd_remote_skip(&text, ",") ||
        !tbd_remote_number(&text, &bytes) || !tbd_remote_skip(&text, ",") ||
        !tbd_remote_number(&text, &offset) || offset > INT64_MAX) {
        fail_file(server, FILE_EBADF);
        return;
    }
    data = malloc(TBD_PACKET_BYTES);
    got = data == NULL
              ? -1
              : pread(*slot, data, bytes < TBD_PACKET_BYTES ? (size_t)bytes : TBD_PACKET_BYTES,
                      (off_t)offset);
    if (got < 0)
        fail_file(server, FILE_EUNKNOWN);
    else
        tell_data(server, data, (size_t)got);
    free(data);
}

static size_t put_number(uint8_t *out, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        out[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
    return bytes;
}

/* As the File-I/O extension lays it out: big-endian. */
void tbd_answer_stat_file(struct tbd_remote_server *server, const char *text)
{
    uint8_t out[64] = { 0 };
    size_t used = 0;
    struct stat info;
    int *slot;

    if (!read_slot(server, &text, &slot) || fstat(*slot, &info) != 0) {
        fail_file(server, FILE_EBADF);
        return;
    }
    used += put_number(out + used, 0, 8); /* device, inode */
    used += put_number(out + used, S_IFREG | 0400, 4);
    used += put_number(out + used, 1, 4);
    used += put_number(out + used, 0, 12); /* owner, group, device */
    used += put_number(out + used, (uint64_t)info.st_size, 8);
    used += put_number(out + used, PAGE, 8);
    used += put_number(out + used, (uint64_t)info.st_blocks, 8);
    tbd_reply_text(&server->reply, "F40;");
    (void)tbd_reply_binary(&server->reply, out, sizeof(out));
}

void tbd_answer_set_file_system(struct tbd_remote_server *server, const char *text)
{
    (void)text;
    tbd_reply_text(&server->reply, "F0");
}

void tbd_answer_read_link(struct tbd_remote_server *server, const char *text)
{
    (void)text;
    fail_file(server, FILE_EINVAL);
}
