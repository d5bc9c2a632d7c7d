// SPDX-License-Identifier: MIT
/* boot_memory.h - memory in a process that is taken over: what the engine's boot function reads, and its answers
 *
 *     BASE            an int3, to which the function returns; a stack
 *     + 64 KiB        struct tbd_boot (format/probe/boot.h), struct tbd_takeover
 *     + 128 KiB       arguments, environment, auxiliary vector
 *     + 4 MiB         struct tbd_takeover_thread, one for each thread
 *     + 16 MiB        their vector state
 *
 * It lies where only a replay has something, so the engine does not take it for the program's. */
#ifndef TBD_QUERY_BOOT_MEMORY_H
#define TBD_QUERY_BOOT_MEMORY_H

#include "format/probe/takeover.h"
#include "query/attach/remote_thread.h"

struct tbd_boot_memory {
    uint64_t argc, argv, envp;    /* addresses there */
    struct tbd_takeover takeover; /* as last written or read */
};

/* 0, or -errno.  The engine gets the process' own arguments and environment, and `options` as TBD_OPTIONS. */
long tbd_boot_memory_make(struct tbd_boot_memory *memory, struct tbd_remote *remote,
                          const char *options);
void tbd_boot_memory_free(struct tbd_remote *remote);
/* For the calls that follow: struct tbd_takeover's. */
static inline void tbd_boot_memory_limit(struct tbd_boot_memory *memory, uint64_t until_ns)
{
    memory->takeover.until_ns = until_ns;
}
/* The boot function's answer, which is read back. */
bool tbd_boot_memory_call(struct tbd_boot_memory *memory, struct tbd_remote *remote,
                          uint64_t function, enum tbd_takeover_phase phase);
static inline const struct tbd_takeover *
tbd_boot_memory_answer(const struct tbd_boot_memory *memory)
{
    return &memory->takeover;
}
bool tbd_boot_memory_put_threads(struct tbd_boot_memory *memory, struct tbd_remote *remote,
                                 const struct tbd_takeover_thread *threads, size_t count);
/* TBD_TAKEOVER_VECTORS bytes of thread number `index`. */
bool tbd_boot_memory_put_vectors(struct tbd_boot_memory *memory, struct tbd_remote *remote,
                                 size_t index, const void *vectors);
bool tbd_boot_memory_get_threads(struct tbd_remote *remote, struct tbd_takeover_thread *threads,
                                 size_t count);

#endif
