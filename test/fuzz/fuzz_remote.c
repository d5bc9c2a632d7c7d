// SPDX-License-Identifier: MIT
// links: tbd_query
// iterations: 4000
/* fuzz_remote.c - bytes from a client of gdb's remote protocol
 *
 * Oracle: a packet has at most its greatest length and ends with a NUL; what was received and is sent again is
 * received as the same packet; numbers and bytes in it are read within it.  A packet that is taken for the code of a condition gives a
 * condition that can be read, or none. */
#include "query/remote/remote_condition.h"
#include "query/remote/remote_packet.h"

#include "query/condition/question.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good)
        abort();
}

static int file_of(const void *data, size_t size)
{
    int fd = memfd_create("packets", MFD_CLOEXEC);

    check(fd >= 0 && write(fd, data, size) == (ssize_t)size && lseek(fd, 0, SEEK_SET) == 0);
    return fd;
}

/* Reads it as the packets' words are read: nothing leaves the packet. */
static void parse(const char *packet, size_t bytes)
{
    const char *end = packet + strlen(packet), *at = packet;
    char text[64];
    uint64_t number;

    check(end <= packet + bytes);
    while (at < end) {
        const char *before = at;

        if (!tbd_remote_number(&at, &number))
            number = 0;
        check(tbd_remote_bytes(&at, text, sizeof(text)) < sizeof(text));
        if (tbd_remote_skip(&at, ":"))
            check(at > before);
        check(at >= before && at <= end);
        at += at == before;
    }
}

/* The payload of a packet that was received has no # and $ but escaped ones. */
static void send_again(const char *packet, size_t bytes)
{
    static struct tbd_remote_link link;
    static char again[TBD_PACKET_BYTES + 1];
    size_t count;
    int fd = memfd_create("answers", MFD_CLOEXEC);

    check(fd >= 0);
    tbd_remote_link_init(&link, fd, fd);
    link.is_unacknowledged = true;
    check(tbd_packet_send(&link, packet, bytes) && lseek(fd, 0, SEEK_SET) == 0);
    check(tbd_packet_receive(&link, again, &count) == TBD_PACKET_DATA);
    check(count == bytes && memcmp(again, packet, bytes) == 0);
    close(fd);
}

static void translate(const char *packet, size_t bytes)
{
    static char text[TBD_REMOTE_CONDITION_BYTES + 16];
    char *condition = tbd_remote_condition((const uint8_t *)packet, bytes);
    struct tbd_question question = { 0 };
    struct tbd_query_error error = { 0 };

    if (condition == NULL)
        return;
    check(strlen(condition) < TBD_REMOTE_CONDITION_BYTES);
    snprintf(text, sizeof(text), "state where %s", condition);
    /* A condition that is nested too deeply is refused where it is asked. */
    if (tbd_question_parse_all(text, 0, &question, &error) != TBD_OK)
        check(error.message[0] != '\0');
    tbd_question_free(&question);
    free(condition);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct tbd_remote_link link;
    static char packet[TBD_PACKET_BYTES + 1];
    enum tbd_packet_event event;
    size_t bytes;
    int in, out;

    in = file_of(data, size);
    out = memfd_create("acknowledged", MFD_CLOEXEC);
    check(out >= 0);
    tbd_remote_link_init(&link, in, out);
    while ((event = tbd_packet_receive(&link, packet, &bytes)) != TBD_PACKET_END) {
        if (event != TBD_PACKET_DATA)
            continue;
        check(bytes <= TBD_PACKET_BYTES && packet[bytes] == '\0');
        parse(packet, bytes);
        translate(packet, bytes);
        if (memchr(packet, '#', bytes) == NULL && memchr(packet, '$', bytes) == NULL &&
            memchr(packet, '}', bytes) == NULL && memchr(packet, 3, bytes) == NULL)
            send_again(packet, bytes);
    }
    close(in);
    close(out);
    return 0;
}
