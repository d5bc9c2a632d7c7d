// SPDX-License-Identifier: MIT
/* name_cache.h - tables made from a module's names, kept for the next question
 *
 * In the user's cache (user_cache.h), named by the module's build id and by a digest of its section
 * headers and those of its debug file, so that another file with the same build id does not find
 * them.  A checksum protects a table; the reader still validates its contents. */
#ifndef TBD_QUERY_NAME_CACHE_H
#define TBD_QUERY_NAME_CACHE_H

#include "query/debuginfo/elf_file.h"

#include <sys/uio.h>

struct tbd_name_table {
    const uint8_t *bytes; /* borrowed from `map`; aligned to 8 */
    size_t count;
    void *map; /* owned */
    size_t map_bytes;
};

/* The table `kind` of the module; false: there is none. */
bool tbd_name_cache_get(struct tbd_elf_file *file, const char *kind, struct tbd_name_table *out);
/* Keeps a table of `count` parts, one after the other. */
void tbd_name_cache_put(struct tbd_elf_file *file, const char *kind, const struct iovec *parts,
                        size_t count);
void tbd_name_table_free(struct tbd_name_table *table);

#endif
