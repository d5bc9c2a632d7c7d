// SPDX-License-Identifier: MIT
/* socket_names.c - the addresses of a connected socket as text (descriptors_private.h)
 *
 * They come from the trace: their lengths are what is there, which may be less than their family needs. */
#include "query/channels/descriptors_private.h"

#include "base/array.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define ADDRESS_TEXT 160u

/* A name that begins with NUL is one of the abstract namespace: "@name". */
static void put_unix(const uint8_t *address, size_t bytes, char *out)
{
    size_t from = offsetof(struct sockaddr_un, sun_path), used = 0;

    for (size_t i = from; i < bytes && used < ADDRESS_TEXT - 1; i++) {
        if (address[i] == 0 && i != from)
            break;
        out[used++] = address[i] == 0 ? '@' : (char)address[i];
    }
    out[used] = '\0';
}

static void put_internet(int family, const void *host, uint16_t port, char *out)
{
    char text[INET6_ADDRSTRLEN] = "";

    (void)inet_ntop(family, host, text, sizeof(text));
    snprintf(out, ADDRESS_TEXT, family == AF_INET6 ? "[%s]:%u" : "%s:%u", text, ntohs(port));
}

static void put_address(const uint8_t *address, size_t bytes, char *out)
{
    struct sockaddr_in6 six;
    struct sockaddr_in four;
    sa_family_t family = AF_UNSPEC;

    *out = '\0';
    if (bytes >= sizeof(family))
        memcpy(&family, address, sizeof(family));
    if (family == AF_UNIX) {
        put_unix(address, bytes, out);
    } else if (family == AF_INET && bytes >= sizeof(four)) {
        memcpy(&four, address, sizeof(four));
        put_internet(family, &four.sin_addr, four.sin_port, out);
    } else if (family == AF_INET6 && bytes >= sizeof(six)) {
        memcpy(&six, address, sizeof(six));
        put_internet(family, &six.sin6_addr, six.sin6_port, out);
    }
}

uint32_t tbd_fd_socket_name(struct tbd_log_reading *in, const struct tbd_opened *opened)
{
    struct tbd_descriptors *all = in->all;
    char local[ADDRESS_TEXT], peer[ADDRESS_TEXT], name[2 * ADDRESS_TEXT + 8];
    uint32_t at = (uint32_t)all->name_bytes;
    size_t bytes;

    put_address(opened->local, opened->what.local_bytes, local);
    put_address(opened->peer, opened->what.peer_bytes, peer);
    if (*local == '\0' && *peer == '\0')
        return 0;
    bytes = (size_t)snprintf(name, sizeof(name), "%s%s%s", local, *local == '\0' ? "-> " : " -> ",
                             peer) +
            1;
    if (all->name_bytes + bytes > UINT32_MAX ||
        !tbd_array_reserve(&all->names, all->name_bytes + bytes, &all->name_capacity, 1)) {
        in->failed = true;
        return 0;
    }
    memcpy(all->names + all->name_bytes, name, bytes);
    all->name_bytes += bytes;
    return at;
}
