// SPDX-License-Identifier: MIT
/* engine_image.h - the engine's file, and the engine in another process: mapped by system calls that one of its threads makes
 *
 * The file is tbd-replay, beside this program. */
#ifndef TBD_QUERY_ENGINE_IMAGE_H
#define TBD_QUERY_ENGINE_IMAGE_H

#include "query/attach/remote_thread.h"

#include <elf.h>

struct tbd_engine_file {
    uint8_t *bytes; /* mapped */
    size_t count;
    const Elf64_Ehdr *header;
    const Elf64_Phdr *segments;
};

/* A file of ours beside this program, or in ../lib beside it. */
bool tbd_engine_find_beside(const char *name, char *out, size_t bytes);

bool tbd_engine_open(struct tbd_engine_file *out, struct tbd_query_error *error);
void tbd_engine_close(struct tbd_engine_file *file);
/* 0: there is none. */
uint64_t tbd_engine_boot_function(const struct tbd_engine_file *file);

/* Private memory; the address, or -errno. */
long tbd_remote_map(struct tbd_remote *remote, uint64_t at, uint64_t bytes, int prot, int flags);
long tbd_remote_unmap(struct tbd_remote *remote, uint64_t at, uint64_t bytes);
/* 0, or -errno. */
long tbd_engine_map(struct tbd_remote *remote, const struct tbd_engine_file *file);

#endif
