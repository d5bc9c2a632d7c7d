// SPDX-License-Identifier: MIT
/* context_dictionary.h - stacks of calls that a program is known to have had, and the values that they have (base/calling.h)
 *
 * A tree of return addresses: a node is a call that was made from its parent's function.  It is learned from recordings
 * (context_learn.h), kept in the user's cache by the program's build id, and asked for a value: all its stacks are tried, so the
 * answer does not depend on how a call found its target. */
#ifndef TBD_QUERY_CONTEXT_DICTIONARY_H
#define TBD_QUERY_CONTEXT_DICTIONARY_H

#include "base/calling.h"
#include "query/debuginfo/elf_file.h"
#include "query/contexts/call_graph.h"

#define TBD_CONTEXT_FILES 1024u
#define TBD_CONTEXT_NODES (8u << 20)

struct tbd_context_node {
    uint32_t parent; /* 1 + its index; 0: nothing had been called */
    uint32_t file;
    uint64_t offset; /* of the return address, in the file */
};

struct tbd_context_dictionary {
    struct tbd_context_node *nodes; /* owned */
    size_t node_count, node_capacity;
    char **paths;              /* owned, each owned: of files */
    struct tbd_elf_file **elf; /* owned, each owned; NULL: not open */
    size_t path_count;
    uint32_t *hash; /* owned: 1 + index of nodes */
    size_t hash_size;
    uint64_t *values; /* owned: of 1 + index, [0]: no call; NULL: not asked for yet */
    size_t value_count;
    enum tbd_calling_scheme value_scheme;
};

/* The dictionary of the program with this build id ("1f2e..."); without one it is empty.  TBD_NOMEM. */
TBD_MUST_CHECK enum tbd_status tbd_contexts_open(const char *build_id,
                                                 struct tbd_context_dictionary *out);
/* Replaces the one in the user's cache.  False: it could not be kept. */
bool tbd_contexts_keep(const struct tbd_context_dictionary *dictionary, const char *build_id);
void tbd_contexts_close(struct tbd_context_dictionary *dictionary);

/* The number of a file; TBD_CONTEXT_FILES: there are too many, or no memory. */
uint32_t tbd_contexts_file(struct tbd_context_dictionary *dictionary, const char *path);
/* 1 + the index of a call's node, which is made if it is new; 0: there are too many, or no memory. */
uint32_t tbd_contexts_add(struct tbd_context_dictionary *dictionary, struct tbd_context_node node);

/* All its stacks with the value (of a scheme whose values are 64 bits: one).  TBD_NOMEM. */
TBD_MUST_CHECK enum tbd_status tbd_contexts_find(struct tbd_context_dictionary *dictionary,
                                                 enum tbd_calling_scheme scheme, uint64_t value,
                                                 struct tbd_call_answer *out);

/* Where an address of the file lies in it, and back; 0: nowhere. */
uint64_t tbd_contexts_offset(const struct tbd_elf_file *elf, uint64_t address);
uint64_t tbd_contexts_address(const struct tbd_elf_file *elf, uint64_t offset);

#endif
