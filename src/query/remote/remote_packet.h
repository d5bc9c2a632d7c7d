// SPDX-License-Identifier: MIT
/* remote_packet.h - packets of gdb's remote serial protocol (GDB manual, appendix E) over two descriptors
 *
 * A packet is $DATA#CHECKSUM.  Both sides acknowledge each with + or ask for it again with -, until the
 * client asks for no more acknowledgements.  A lone byte 3 interrupts.
 *
 * The client is not trusted: whatever it sends, a packet is well-formed here and at most
 * TBD_PACKET_BYTES long, or it is dropped.  One thread uses a link.  Nothing here prints. */
#ifndef TBD_QUERY_REMOTE_PACKET_H
#define TBD_QUERY_REMOTE_PACKET_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest packet, without frame: what is told to the client as PacketSize.  gdb reads files in pieces of this size. */
#define TBD_PACKET_BYTES 0x4000u

struct tbd_remote_link {
    int in, out;
    bool is_unacknowledged; /* no + and - are sent or awaited */
    uint8_t buffer[4096];   /* received, not yet used: [at, end) */
    size_t at, end;
    char sent[2 * TBD_PACKET_BYTES +
              8]; /* the last packet, with its frame, in case it is asked for again */
    size_t sent_bytes;
};

enum tbd_packet_event { TBD_PACKET_DATA, TBD_PACKET_INTERRUPT, TBD_PACKET_END };

void tbd_remote_link_init(struct tbd_remote_link *link, int in, int out);
/* Waits for a packet: its data are in `out`, then a NUL, which data may contain, too.  A packet that is too
 * long or has a wrong checksum is dropped.  END: the client has gone. */
enum tbd_packet_event tbd_packet_receive(struct tbd_remote_link *link,
                                         char out[TBD_PACKET_BYTES + 1], size_t *out_bytes);
/* False: the client has gone. */
TBD_MUST_CHECK bool tbd_packet_send(struct tbd_remote_link *link, const char *data, size_t bytes);
/* Has an interrupt come, or has the client gone?  Does not wait. */
bool tbd_packet_is_interrupted(struct tbd_remote_link *link);

/* ---- what packets consist of ---- */

/* Text in the making; what does not fit is left out, and is_full then. */
struct tbd_reply {
    char text[TBD_PACKET_BYTES + 1];
    size_t bytes;
    bool is_full;
};
void tbd_reply_text(struct tbd_reply *reply, const char *text);
void tbd_reply_format(struct tbd_reply *reply, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void tbd_reply_hex(struct tbd_reply *reply, const void *data, size_t bytes);
/* Escaped as binary data; returns how many of the bytes fit. */
size_t tbd_reply_binary(struct tbd_reply *reply, const void *data, size_t bytes);
/* How much space a byte of binary data takes. */
size_t tbd_reply_space(char byte);

/* Reads a hexadecimal number at *io and goes on after it; false: there is none, or it is too large. */
TBD_MUST_CHECK bool tbd_remote_number(const char **io, uint64_t *out);
/* Skips `what` at *io; false: something else is there. */
TBD_MUST_CHECK bool tbd_remote_skip(const char **io, const char *what);
/* Hexadecimal digits as bytes, up to max - 1 and a NUL; goes on after them. */
size_t tbd_remote_bytes(const char **io, char *out, size_t max);
/* Reads this many bytes, two digits each; false: there are fewer. */
TBD_MUST_CHECK bool tbd_remote_hex(const char **io, void *out, size_t bytes);

#endif
