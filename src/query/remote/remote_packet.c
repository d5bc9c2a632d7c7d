// SPDX-License-Identifier: MIT
/* remote_packet.c - see remote_packet.h */
#include "query/remote/remote_packet.h"

#include "format/files/trace_dir.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { INTERRUPT = 3, ESCAPE = '}', ESCAPED_BY = 0x20 };

static const char digits[] = "0123456789abcdef";

void tbd_remote_link_init(struct tbd_remote_link *link, int in, int out)
{
    link->in = in;
    link->out = out;
    link->is_unacknowledged = false;
    link->at = link->end = 0;
    link->sent_bytes = 0;
}

/* ---- bytes ---- */

/* False: the client has gone. */
static bool fill(struct tbd_remote_link *link)
{
    ssize_t got;

    do
        got = read(link->in, link->buffer, sizeof(link->buffer));
    while (got < 0 && errno == EINTR);
    link->at = 0;
    link->end = got > 0 ? (size_t)got : 0;
    return got > 0;
}

/* -1: the client has gone. */
static int next_byte(struct tbd_remote_link *link)
{
    if (link->at == link->end && !fill(link))
        return -1;
    return link->buffer[link->at++];
}

static bool write_bytes(const struct tbd_remote_link *link, const char *data, size_t bytes)
{
    return tbd_write_all(link->out, data, bytes) == TBD_OK;
}

bool tbd_packet_is_interrupted(struct tbd_remote_link *link)
{
    struct pollfd ready = { .fd = link->in, .events = POLLIN };

    if (link->at == link->end && (poll(&ready, 1, 0) <= 0 || !fill(link)))
        return (ready.revents & (POLLIN | POLLHUP)) != 0;
    if (link->buffer[link->at] != INTERRUPT)
        return false;
    link->at++;
    return true;
}

/* ---- frames ---- */

static int digit_value(int digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

/* What follows '$'.  1: a whole packet, 0: a broken one, -1: the client has gone. */
static int read_frame(struct tbd_remote_link *link, char *out, size_t *out_bytes)
{
    uint8_t sum = 0;
    size_t bytes = 0;
    int high, low, c;

    while ((c = next_byte(link)) != '#') {
        if (c < 0)
            return -1;
        if (c == '$') { /* the last one was cut off */
            bytes = 0;
            sum = 0;
            continue;
        }
        sum = (uint8_t)(sum + (unsigned)c);
        if (bytes <= TBD_PACKET_BYTES)
            out[bytes++] = (char)c;
    }
    high = next_byte(link);
    low = high < 0 ? -1 : next_byte(link);
    if (low < 0)
        return -1;
    if (bytes > TBD_PACKET_BYTES || digit_value(high) < 0 || digit_value(low) < 0 ||
        (!link->is_unacknowledged && (digit_value(high) << 4 | digit_value(low)) != sum))
        return 0;
    out[bytes] = '\0';
    *out_bytes = bytes;
    return 1;
}

/* An answer that ends the waiting; what it says of the last packet is carried out. */
static bool take_other(struct tbd_remote_link *link, int c)
{
    if (c == '-' && !link->is_unacknowledged && link->sent_bytes != 0)
        return write_bytes(link, link->sent, link->sent_bytes);
    return true;
}

enum tbd_packet_event tbd_packet_receive(struct tbd_remote_link *link,
                                         char out[TBD_PACKET_BYTES + 1], size_t *out_bytes)
{
    for (;;) {
        int c = next_byte(link), got;

        if (c < 0 || (c != '$' && !take_other(link, c)))
            return TBD_PACKET_END;
        if (c == INTERRUPT)
            return TBD_PACKET_INTERRUPT;
        if (c != '$')
            continue;
        got = read_frame(link, out, out_bytes);
        if (got < 0 || (!link->is_unacknowledged && !write_bytes(link, got ? "+" : "-", 1)))
            return TBD_PACKET_END;
        if (got)
            return TBD_PACKET_DATA;
    }
}

bool tbd_packet_send(struct tbd_remote_link *link, const char *data, size_t bytes)
{
    uint8_t sum = 0;
    size_t used = 0;

    link->sent[used++] = '$';
    for (size_t i = 0; i < bytes; i++) {
        sum = (uint8_t)(sum + (uint8_t)data[i]);
        link->sent[used++] = data[i];
    }
    link->sent[used++] = '#';
    link->sent[used++] = digits[sum >> 4];
    link->sent[used++] = digits[sum & 15];
    link->sent_bytes = used;
    return write_bytes(link, link->sent, used);
}

/* ---- what packets consist of ---- */

void tbd_reply_text(struct tbd_reply *reply, const char *text)
{
    size_t bytes = strlen(text), space = TBD_PACKET_BYTES - reply->bytes;

    reply->is_full |= bytes > space;
    if (bytes > space)
        bytes = space;
    memcpy(reply->text + reply->bytes, text, bytes);
    reply->bytes += bytes;
    reply->text[reply->bytes] = '\0';
}

void tbd_reply_format(struct tbd_reply *reply, const char *format, ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    tbd_reply_text(reply, text);
}

void tbd_reply_hex(struct tbd_reply *reply, const void *data, size_t bytes)
{
    const uint8_t *from = data;
    size_t fit = (TBD_PACKET_BYTES - reply->bytes) / 2;

    reply->is_full |= bytes > fit;
    for (size_t i = 0; i < bytes && i < fit; i++) {
        reply->text[reply->bytes++] = digits[from[i] >> 4];
        reply->text[reply->bytes++] = digits[from[i] & 15];
    }
    reply->text[reply->bytes] = '\0';
}

size_t tbd_reply_space(char byte)
{
    return byte == '#' || byte == '$' || byte == ESCAPE || byte == '*' ? 2 : 1;
}

size_t tbd_reply_binary(struct tbd_reply *reply, const void *data, size_t bytes)
{
    const char *from = data;

    for (size_t i = 0; i < bytes; i++) {
        size_t wanted = tbd_reply_space(from[i]);

        if (TBD_PACKET_BYTES - reply->bytes < wanted)
            return i;
        if (wanted == 2)
            reply->text[reply->bytes++] = ESCAPE;
        reply->text[reply->bytes++] = wanted == 2 ? (char)(from[i] ^ ESCAPED_BY) : from[i];
    }
    reply->text[reply->bytes] = '\0';
    return bytes;
}

bool tbd_remote_number(const char **io, uint64_t *out)
{
    const char *at = *io;

    *out = 0;
    for (; digit_value(*at) >= 0; at++) {
        if (*out >> 60 != 0)
            return false;
        *out = *out << 4 | (unsigned)digit_value(*at);
    }
    if (at == *io)
        return false;
    *io = at;
    return true;
}

bool tbd_remote_skip(const char **io, const char *what)
{
    size_t bytes = strlen(what);

    if (strncmp(*io, what, bytes) != 0)
        return false;
    *io += bytes;
    return true;
}

size_t tbd_remote_bytes(const char **io, char *out, size_t max)
{
    size_t used = 0;

    while (digit_value((*io)[0]) >= 0 && digit_value((*io)[1]) >= 0) {
        if (used + 1 < max)
            out[used++] = (char)(digit_value((*io)[0]) << 4 | digit_value((*io)[1]));
        *io += 2;
    }
    out[used] = '\0';
    return used;
}

bool tbd_remote_hex(const char **io, void *out, size_t bytes)
{
    uint8_t *at = out;

    for (size_t i = 0; i < bytes; i++, *io += 2) {
        if (digit_value((*io)[0]) < 0 || digit_value((*io)[1]) < 0)
            return false;
        at[i] = (uint8_t)(digit_value((*io)[0]) << 4 | digit_value((*io)[1]));
    }
    return true;
}
