// SPDX-License-Identifier: MIT
/* remote_pools.c - memory that lldb asks for: its compiled expressions and their values
 *
 * lldb keeps such memory for the whole session.  So it outlives copies of the state: it lies here, at addresses where a traced
 * program has nothing, and every copy gets it. */
#include "query/remote/remote_private.h"

#include "base/layout.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Within the engine's range, beside the page of remote_copy.c. */
#define POOLS_AT   (TBD_ENGINE_BASE + (3ull << 40) + (1ull << 30))
#define POOLS_MOST (64ull << 20) /* bytes, over the whole session */
#define PAGE       4096u

/* "SIZE,PERMISSIONS" */
void tbd_answer_allocate(struct tbd_remote_server *server, const char *text)
{
    struct tbd_remote_pool *pool = &server->pools[server->pool_count];
    struct tbd_copy *copy = server->calls.copy;
    uint64_t bytes;

    if (!tbd_remote_number(&text, &bytes) || bytes == 0 || bytes > POOLS_MOST ||
        server->pool_count == TBD_REMOTE_POOLS) {
        tbd_remote_refuse(server);
        return;
    }
    bytes = (bytes + PAGE - 1) & ~(uint64_t)(PAGE - 1);
    *pool = (struct tbd_remote_pool){ .address = POOLS_AT + server->pool_bytes,
                                      .bytes = (size_t)bytes };
    if (server->pool_bytes + bytes <= POOLS_MOST)
        pool->data = calloc(1, pool->bytes);
    if (pool->data == NULL ||
        (server->calls.is_active && !tbd_copy_map(copy, pool->address, pool->bytes))) {
        free(pool->data);
        tbd_remote_refuse(server);
        return;
    }
    server->pool_count++;
    server->pool_bytes += bytes;
    tbd_reply_format(&server->reply, "%" PRIx64, pool->address);
}

void tbd_answer_release(struct tbd_remote_server *server, const char *text)
{
    uint64_t address;

    if (!tbd_remote_number(&text, &address))
        address = 0;
    for (size_t i = 0; i < server->pool_count; i++)
        if (server->pools[i].address == address) {
            free(server->pools[i].data);
            server->pools[i] = server->pools[--server->pool_count];
            tbd_remote_agree(server);
            return;
        }
    tbd_remote_refuse(server);
}

uint8_t *tbd_remote_in_pool(struct tbd_remote_server *server, uint64_t address, size_t bytes)
{
    for (size_t i = 0; i < server->pool_count; i++) {
        const struct tbd_remote_pool *pool = &server->pools[i];

        if (address >= pool->address && address - pool->address <= pool->bytes &&
            bytes <= pool->bytes - (size_t)(address - pool->address))
            return pool->data + (address - pool->address);
    }
    return NULL;
}

bool tbd_remote_pools_give(struct tbd_remote_server *server, struct tbd_copy *copy)
{
    for (size_t i = 0; i < server->pool_count; i++) {
        const struct tbd_remote_pool *pool = &server->pools[i];

        if (!tbd_copy_map(copy, pool->address, pool->bytes) ||
            !tbd_copy_write(copy, pool->address, pool->data, pool->bytes))
            return false;
    }
    return true;
}

void tbd_remote_pools_take(struct tbd_remote_server *server, struct tbd_copy *copy)
{
    for (size_t i = 0; i < server->pool_count; i++)
        (void)!tbd_copy_read(copy, server->pools[i].address, server->pools[i].data,
                             server->pools[i].bytes);
}

void tbd_remote_pools_free(struct tbd_remote_server *server)
{
    while (server->pool_count != 0)
        free(server->pools[--server->pool_count].data);
}
