// SPDX-License-Identifier: MIT
// links: tbd_query tbd_organizer tbd_format tbd_base PkgConfig::JANSSON PkgConfig::XXHASH
// sources: ../unit/stream_maker.c
// iterations: 400
/* fuzz_served.c - clients of gdb's remote protocol and of the Debug Adapter Protocol, over a small trace
 *
 * The first byte chooses the protocol.  Each line that follows is the data of a packet, or the body of a message, and is
 * framed here, so that mistakes are in what is asked (fuzz_remote.c and fuzz_dap.c have those of frames).
 *
 * Oracle: the server comes to an end, with a good status.  Each answer is a whole packet with a good checksum, at most as
 * long as was told; or a whole message, an object with the next number.  There are no more answers than requests. */
#include "query/dap/dap_server.h"
#include "query/remote/remote_packet.h"
#include "query/remote/remote_server.h"
#include "small_trace.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUESTS_MOST 64u

static char root[FOLDER_BYTES], path[80];

static void make_trace(void)
{
    record_small(root, 11, 3, 200, (struct tbd_age_limits){ 0 });
    snprintf(path, sizeof(path), "%s/fuzz-1", root);
    setenv("TBD_DIR", root, 1);
    setenv("XDG_CACHE_HOME", root, 1);
}

static void remove_trace(void)
{
    remove_small(root);
}

static int memory_file(const char *name)
{
    int fd = memfd_create(name, MFD_CLOEXEC);

    check(fd >= 0);
    return fd;
}

/* What was written, with a NUL at its end; the caller frees it. */
static char *content_of(int fd, size_t *out_bytes)
{
    off_t end = lseek(fd, 0, SEEK_END);
    char *text = malloc((size_t)end + 1);

    check(text != NULL && pread(fd, text, (size_t)end, 0) == end);
    text[end] = '\0';
    *out_bytes = (size_t)end;
    return text;
}

static void put_packet(FILE *out, const char *line, size_t bytes)
{
    uint8_t sum = 0;

    for (size_t i = 0; i < bytes; i++)
        sum = (uint8_t)(sum + (uint8_t)line[i]);
    fprintf(out, "$");
    fwrite(line, 1, bytes, out);
    fprintf(out, "#%02x", sum);
}

static void put_message(FILE *out, const char *line, size_t bytes)
{
    fprintf(out, "Content-Length: %zu\r\n\r\n", bytes);
    fwrite(line, 1, bytes, out);
}

/* What a client sends, from its start on; *out_count: how many requests. */
static int framed(const char *data, size_t size,
                  void (*put)(FILE *out, const char *line, size_t bytes), size_t *out_count)
{
    int fd = memory_file("sent");
    FILE *out = fdopen(dup(fd), "w");
    const char *end = data + size;

    check(out != NULL);
    for (*out_count = 0; data < end && *out_count < REQUESTS_MOST; ++*out_count) {
        const char *stop = memchr(data, '\n', (size_t)(end - data));

        if (stop == NULL)
            stop = end;
        put(out, data, (size_t)(stop - data));
        data = stop + 1;
    }
    check(fclose(out) == 0 && lseek(fd, 0, SEEK_SET) == 0);
    return fd;
}

/* ---- gdb's ---- */

static int digit(char c)
{
    const char *digits = "0123456789abcdef", *found = strchr(digits, c);

    check(c != '\0' && found != NULL);
    return (int)(found - digits);
}

/* How many packets there are that end a request: lines for the console (O and digits) come before one. */
static size_t check_packets(const char *text, size_t bytes)
{
    const char *at = text, *end = text + bytes;
    size_t count = 0;

    while (at < end) {
        const char *stop;
        uint8_t sum = 0;

        if (*at == '+' || *at == '-') {
            at++;
            continue;
        }
        check(*at == '$');
        stop = memchr(at, '#', (size_t)(end - at));
        check(stop != NULL && end - stop >= 3 && stop - at <= TBD_PACKET_BYTES + 1);
        count += at[1] != 'O' || at[2] == 'K';
        for (at++; at < stop; at++) {
            check(*at != '$');
            sum = (uint8_t)(sum + (uint8_t)*at);
        }
        check(digit(stop[1]) * 16 + digit(stop[2]) == sum);
        at = stop + 3;
    }
    return count;
}

static void serve_gdb(const char *data, size_t size)
{
    struct tbd_session session = { .workers = 1, .is_private = true };
    size_t bytes, requests;
    int in = framed(data, size, put_packet, &requests), out = memory_file("answers");
    char *text;

    check(tbd_session_open(&session, path) == TBD_OK);
    check(tbd_remote_serve(&session, in, out) == TBD_OK);
    tbd_session_close(&session);
    text = content_of(out, &bytes);
    check(check_packets(text, bytes) <= requests);
    free(text);
    close(in);
    close(out);
}

/* ---- the Debug Adapter Protocol ---- */

/* True for a response, false for an event. */
static bool check_message(const json_t *message, json_int_t number)
{
    const char *type = json_string_value(json_object_get(message, "type"));

    check(type != NULL && json_integer_value(json_object_get(message, "seq")) == number);
    if (strcmp(type, "response") == 0) {
        check(json_is_boolean(json_object_get(message, "success")) &&
              json_is_integer(json_object_get(message, "request_seq")));
        return true;
    }
    check(strcmp(type, "event") == 0 && json_is_string(json_object_get(message, "event")));
    return false;
}

static size_t check_messages(const char *text, size_t bytes)
{
    const char *at = text, *end = text + bytes;
    json_int_t number = 0;
    size_t count = 0;

    while (at < end) {
        unsigned long length;
        char *after;
        json_t *message;

        check(strncmp(at, "Content-Length: ", 16) == 0);
        length = strtoul(at + 16, &after, 10);
        check(strncmp(after, "\r\n\r\n", 4) == 0 && length <= (size_t)(end - after - 4));
        message = json_loadb(after + 4, length, 0, NULL);
        check(json_is_object(message));
        count += check_message(message, ++number);
        json_decref(message);
        at = after + 4 + length;
    }
    return count;
}

static void serve_dap(const char *data, size_t size)
{
    size_t bytes, requests;
    int in = framed(data, size, put_message, &requests), out = memory_file("answers");
    char *text;

    check(tbd_dap_serve(path, 1, in, out) == TBD_EXIT_FOUND);
    text = content_of(out, &bytes);
    check(check_messages(text, bytes) <= requests);
    free(text);
    close(in);
    close(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (root[0] == '\0') {
        make_trace();
        atexit(remove_trace);
    }
    if (size == 0)
        return 0;
    if (data[0] == 'g')
        serve_gdb((const char *)data + 1, size - 1);
    else
        serve_dap((const char *)data + 1, size - 1);
    return 0;
}
