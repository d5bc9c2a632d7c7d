// SPDX-License-Identifier: MIT
/* identities.c - see identities.h */
#include "query/channels/identities.h"

#include "base/array.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static void put(struct tbd_identity *identity, const void *bytes, size_t count)
{
    if (count > sizeof(identity->name) - identity->bytes)
        count = sizeof(identity->name) - identity->bytes;
    memcpy(identity->name + identity->bytes, bytes, count);
    identity->bytes += count;
}

/* An address of the Internet as (IPv6 address, port): a socket for both kinds names IPv4 ones so. */
static bool put_internet(struct tbd_identity *identity, const uint8_t *address, size_t bytes)
{
    static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
    struct sockaddr_in6 six;
    struct sockaddr_in four;
    sa_family_t family;

    if (bytes < sizeof(family))
        return false;
    memcpy(&family, address, sizeof(family));
    if (family == AF_INET && bytes >= sizeof(four)) {
        memcpy(&four, address, sizeof(four));
        put(identity, mapped, sizeof(mapped));
        put(identity, &four.sin_addr, sizeof(four.sin_addr));
        put(identity, &four.sin_port, sizeof(four.sin_port));
        return true;
    }
    if (family != AF_INET6 || bytes < sizeof(six))
        return false;
    memcpy(&six, address, sizeof(six));
    put(identity, &six.sin6_addr, sizeof(six.sin6_addr));
    put(identity, &six.sin6_port, sizeof(six.sin6_port));
    return true;
}

/* The client's address and the server's; of a Unix socket the client's process and the server's address. */
static void put_connection(struct tbd_identity *identity, const struct tbd_opened *opened,
                           bool accepts, uint32_t pid)
{
    const uint8_t *server = accepts ? opened->local : opened->peer;
    const uint8_t *client = accepts ? opened->peer : opened->local;
    uint16_t server_bytes = accepts ? opened->what.local_bytes : opened->what.peer_bytes;
    uint16_t client_bytes = accepts ? opened->what.peer_bytes : opened->what.local_bytes;
    uint32_t maker = accepts ? opened->what.peer : pid;

    if (put_internet(identity, client, client_bytes) &&
        put_internet(identity, server, server_bytes))
        return;
    identity->bytes = 0;
    put(identity, &maker, sizeof(maker));
    put(identity, server, server_bytes);
}

static struct tbd_identity name_of(const struct tbd_opened *opened, enum tbd_identity_side side,
                                   uint32_t pid)
{
    struct tbd_identity identity = { .bytes = 0 };

    uint32_t type = opened->what.mode & S_IFMT;

    if (side == TBD_IDENTITY_ONE) {
        put(&identity, &opened->what.device, sizeof(opened->what.device));
        put(&identity, &opened->what.inode, sizeof(opened->what.inode));
        put(&identity, &type, sizeof(type));
    } else {
        put_connection(&identity, opened, side == TBD_IDENTITY_ACCEPTS, pid);
    }
    put(&identity, &opened->what.socket_type, sizeof(opened->what.socket_type));
    return identity;
}

static struct tbd_identity *find(struct tbd_identities *all, const struct tbd_identity *name)
{
    for (size_t i = 0; i < all->count; i++) {
        if (all->items[i].bytes == name->bytes &&
            memcmp(all->items[i].name, name->name, name->bytes) == 0)
            return &all->items[i];
    }
    if (!tbd_array_grow(&all->items, all->count, &all->capacity, sizeof(*all->items)))
        return NULL;
    all->items[all->count] = *name;
    return &all->items[all->count++];
}

uint32_t *tbd_identities_find(struct tbd_identities *all, const struct tbd_opened *opened,
                              enum tbd_identity_side side, uint32_t pid)
{
    struct tbd_identity name = name_of(opened, side, pid);
    struct tbd_identity *identity = find(all, &name);
    size_t index = 0;

    if (identity == NULL)
        return NULL;
    if (side == TBD_IDENTITY_CONNECTS)
        index = identity->made++;
    else if (side == TBD_IDENTITY_ACCEPTS)
        index = identity->accepted++;
    if (index >= identity->count) {
        if (!tbd_array_grow(&identity->numbers, identity->count, &identity->capacity,
                            sizeof(*identity->numbers)))
            return NULL;
        identity->numbers[identity->count++] = 0;
    }
    return &identity->numbers[index];
}

void tbd_identities_free(struct tbd_identities *all)
{
    for (size_t i = 0; i < all->count; i++)
        free(all->items[i].numbers);
    free(all->items);
    *all = (struct tbd_identities){ .items = NULL };
}
