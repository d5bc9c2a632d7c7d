// SPDX-License-Identifier: MIT
/* context_dictionary.c - see context_dictionary.h
 *
 * CONTEXT_DICTIONARY-1  A node's parent comes before it: so every walk to the root ends. */
#include "query/contexts/context_dictionary.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/string.h"
#include "query/text/user_cache.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC     0x0a1a0a0d78746374ull /* "tctx\r\n\x1a\n" */
#define BYTES_MAX (1ull << 30)

struct context_file_head {
    uint64_t magic;
    uint64_t checksum; /* tbd_hash64() of what follows the head */
    uint32_t path_count;
    uint32_t path_bytes; /* each ends with a NUL; padded to 8 */
    uint64_t node_count;
};

/* ---- nodes ---- */

static uint64_t hash_of(const struct tbd_context_node *node)
{
    return tbd_hash64_mix(node->offset ^ tbd_hash64_mix((uint64_t)node->parent << 32 | node->file));
}

static bool is_same(const struct tbd_context_node *one, const struct tbd_context_node *other)
{
    return one->parent == other->parent && one->file == other->file && one->offset == other->offset;
}

static uint32_t *slot_of(const struct tbd_context_dictionary *d,
                         const struct tbd_context_node *node)
{
    size_t at = hash_of(node) & (d->hash_size - 1);

    while (d->hash[at] != 0 && !is_same(&d->nodes[d->hash[at] - 1], node))
        at = (at + 1) & (d->hash_size - 1);
    return &d->hash[at];
}

/* At most half of the table is used. */
static bool grow_hash(struct tbd_context_dictionary *d)
{
    size_t size = d->hash_size != 0 ? d->hash_size : 4096;
    uint32_t *bigger;

    while (size < (d->node_count + 1) * 2)
        size *= 2;
    if (size == d->hash_size)
        return true;
    bigger = calloc(size, sizeof(*bigger));
    if (bigger == NULL)
        return false;
    free(d->hash);
    d->hash = bigger;
    d->hash_size = size;
    for (size_t i = 0; i < d->node_count; i++)
        *slot_of(d, &d->nodes[i]) = (uint32_t)i + 1;
    return true;
}

uint32_t tbd_contexts_add(struct tbd_context_dictionary *d, struct tbd_context_node node)
{
    uint32_t *slot;

    if (d->node_count == TBD_CONTEXT_NODES || !grow_hash(d) ||
        !tbd_array_grow(&d->nodes, d->node_count, &d->node_capacity, sizeof(*d->nodes)))
        return 0;
    slot = slot_of(d, &node);
    if (*slot == 0) {
        TBD_INVARIANT("CONTEXT_DICTIONARY-1", node.parent <= d->node_count);
        d->nodes[d->node_count++] = node;
        *slot = (uint32_t)d->node_count;
    }
    return *slot;
}

uint32_t tbd_contexts_file(struct tbd_context_dictionary *d, const char *path)
{
    for (size_t i = 0; i < d->path_count; i++)
        if (strcmp(d->paths[i], path) == 0)
            return (uint32_t)i;
    if (d->path_count == TBD_CONTEXT_FILES)
        return TBD_CONTEXT_FILES;
    if (d->paths == NULL) {
        d->paths = calloc(TBD_CONTEXT_FILES, sizeof(char *));
        d->elf = calloc(TBD_CONTEXT_FILES, sizeof(struct tbd_elf_file *));
        if (d->paths == NULL || d->elf == NULL)
            return TBD_CONTEXT_FILES;
    }
    d->paths[d->path_count] = strdup(path);
    return d->paths[d->path_count] != NULL ? (uint32_t)d->path_count++ : TBD_CONTEXT_FILES;
}

void tbd_contexts_close(struct tbd_context_dictionary *d)
{
    for (size_t i = 0; i < d->path_count; i++) {
        free(d->paths[i]);
        tbd_elf_close(d->elf[i]);
    }
    free(d->paths);
    free(d->elf);
    free(d->nodes);
    free(d->hash);
    free(d->values);
    *d = (struct tbd_context_dictionary){ .nodes = NULL };
}

/* ---- the file ---- */

/* Only hexadecimal digits come into a name. */
static bool path_of(const char *build_id, char *out)
{
    return *build_id != '\0' && build_id[strspn(build_id, "0123456789abcdef")] == '\0' &&
           tbd_user_cache_path("contexts/", build_id, out, TBD_USER_CACHE_PATH);
}

static uint8_t *read_file(const char *build_id, size_t *out_bytes)
{
    char path[TBD_USER_CACHE_PATH];
    int fd = path_of(build_id, path) ? tbd_user_cache_open(path) : -1;
    uint8_t *data = NULL;
    struct stat info;
    ssize_t got;

    *out_bytes = 0;
    if (fd < 0)
        return NULL;
    if (fstat(fd, &info) == 0 && info.st_size > 0 && (uint64_t)info.st_size <= BYTES_MAX)
        data = malloc((size_t)info.st_size);
    while (data != NULL && *out_bytes < (size_t)info.st_size &&
           (got = read(fd, data + *out_bytes, (size_t)info.st_size - *out_bytes)) > 0)
        *out_bytes += (size_t)got;
    close(fd);
    return data;
}

static bool take_paths(struct tbd_context_dictionary *d, const struct context_file_head *head,
                       const char *paths)
{
    size_t at = 0;

    for (uint32_t i = 0; i < head->path_count; i++) {
        size_t length = strnlen(paths + at, head->path_bytes - at);

        if (at + length >= head->path_bytes || tbd_contexts_file(d, paths + at) != i)
            return false;
        at += length + 1;
    }
    return true;
}

static bool take_nodes(struct tbd_context_dictionary *d, const struct context_file_head *head,
                       const struct tbd_context_node *nodes)
{
    for (uint64_t i = 0; i < head->node_count; i++) {
        struct tbd_context_node node;

        memcpy(&node, &nodes[i], sizeof(node));
        if (node.parent > i || node.file >= head->path_count || tbd_contexts_add(d, node) != i + 1)
            return false;
    }
    return true;
}

/* Anything that is wrong makes it no dictionary. */
static bool take_file(struct tbd_context_dictionary *d, const uint8_t *data, size_t bytes)
{
    struct context_file_head head;

    if (bytes < sizeof(head))
        return false;
    memcpy(&head, data, sizeof(head));
    if (head.magic != MAGIC || head.path_bytes % 8 != 0 || head.node_count > TBD_CONTEXT_NODES ||
        head.path_count > TBD_CONTEXT_FILES ||
        sizeof(head) + head.path_bytes + head.node_count * sizeof(*d->nodes) != bytes ||
        head.checksum != tbd_hash64(data + sizeof(head), bytes - sizeof(head)))
        return false;
    return take_paths(d, &head, (const char *)data + sizeof(head)) &&
           take_nodes(d, &head,
                      (const struct tbd_context_node *)(const void *)(data + sizeof(head) +
                                                                      head.path_bytes));
}

enum tbd_status tbd_contexts_open(const char *build_id, struct tbd_context_dictionary *out)
{
    size_t bytes;
    uint8_t *data = read_file(build_id, &bytes);

    *out = (struct tbd_context_dictionary){ .nodes = NULL };
    if (data != NULL && !take_file(out, data, bytes))
        tbd_contexts_close(out);
    free(data);
    return TBD_OK;
}

struct context_bytes {
    const uint8_t *data;
    size_t count;
};

static bool write_all(void *context, int fd)
{
    struct context_bytes *bytes = context;

    while (bytes->count != 0) {
        ssize_t done = write(fd, bytes->data, bytes->count);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        bytes->data += done;
        bytes->count -= (size_t)done;
    }
    return true;
}

bool tbd_contexts_keep(const struct tbd_context_dictionary *d, const char *build_id)
{
    struct context_file_head head = { .magic = MAGIC,
                                      .path_count = (uint32_t)d->path_count,
                                      .node_count = d->node_count };
    size_t nodes = d->node_count * sizeof(*d->nodes), at = sizeof(head), bytes;
    char path[TBD_USER_CACHE_PATH];
    struct context_bytes content;
    uint8_t *data;
    bool is_kept;

    for (size_t i = 0; i < d->path_count; i++)
        head.path_bytes += (uint32_t)strlen(d->paths[i]) + 1;
    head.path_bytes = (head.path_bytes + 7) & ~7u;
    bytes = sizeof(head) + head.path_bytes + nodes;
    data = path_of(build_id, path) ? calloc(1, bytes) : NULL;
    if (data == NULL)
        return false;
    for (size_t i = 0; i < d->path_count; at += strlen(d->paths[i++]) + 1)
        memcpy(data + at, d->paths[i], strlen(d->paths[i]));
    if (nodes != 0)
        memcpy(data + sizeof(head) + head.path_bytes, d->nodes, nodes);
    head.checksum = tbd_hash64(data + sizeof(head), bytes - sizeof(head));
    memcpy(data, &head, sizeof(head));
    content = (struct context_bytes){ data, bytes };
    is_kept = tbd_user_cache_make(path, bytes, write_all, &content);
    free(data);
    return is_kept;
}

/* ---- stacks ---- */

uint64_t tbd_contexts_offset(const struct tbd_elf_file *elf, uint64_t address)
{
    for (size_t i = 0; i < elf->segment_count; i++)
        if (address > elf->segments[i].p_vaddr &&
            address - elf->segments[i].p_vaddr <= elf->segments[i].p_filesz)
            return address - elf->segments[i].p_vaddr + elf->segments[i].p_offset;
    return 0;
}

uint64_t tbd_contexts_address(const struct tbd_elf_file *elf, uint64_t offset)
{
    for (size_t i = 0; i < elf->segment_count; i++)
        if ((elf->segments[i].p_flags & PF_X) != 0 && offset > elf->segments[i].p_offset &&
            offset - elf->segments[i].p_offset <= elf->segments[i].p_filesz)
            return offset - elf->segments[i].p_offset + elf->segments[i].p_vaddr;
    return 0;
}

static struct tbd_call_frame frame_of(struct tbd_context_dictionary *d,
                                      const struct tbd_context_node *node)
{
    struct tbd_call_frame frame = { .module = tbd_base_name(d->paths[node->file]), .function = "" };
    const struct tbd_elf_symbol *symbol;

    if (d->elf[node->file] == NULL &&
        tbd_elf_open(d->paths[node->file], &d->elf[node->file]) != TBD_OK)
        d->elf[node->file] = NULL;
    frame.file = d->elf[node->file];
    frame.address = frame.offset = node->offset;
    if (frame.file == NULL)
        return frame;
    frame.address = tbd_contexts_address(frame.file, node->offset);
    symbol = tbd_elf_symbol_at(frame.file, frame.address - 1);
    if (symbol != NULL) {
        frame.function = tbd_elf_symbol_name(frame.file, symbol);
        frame.offset = frame.address - symbol->start;
    }
    return frame;
}

static bool add_stack(struct tbd_context_dictionary *d, size_t index, struct tbd_call_answer *out)
{
    struct tbd_call_stack *stack = &out->stacks[out->count];
    size_t depth = 0;

    for (size_t at = index + 1; at != 0; at = d->nodes[at - 1].parent)
        depth++;
    *stack = (struct tbd_call_stack){ .frames = calloc(depth, sizeof(*stack->frames)),
                                      .from_start = true };
    if (stack->frames == NULL)
        return false;
    out->count++;
    for (size_t at = index + 1; at != 0; at = d->nodes[at - 1].parent)
        stack->frames[stack->count++] = frame_of(d, &d->nodes[at - 1]);
    return true;
}

/* All stacks' values in the scheme. */
static bool make_values(struct tbd_context_dictionary *d, enum tbd_calling_scheme scheme)
{
    uint64_t *files = calloc(d->path_count + 1, sizeof(*files));

    free(d->values);
    d->values = calloc(d->node_count + 1, sizeof(*d->values));
    d->value_count = d->node_count;
    d->value_scheme = scheme;
    for (size_t i = 0; files != NULL && i < d->path_count; i++)
        files[i] = tbd_calling_module(d->paths[i]);
    for (size_t i = 0; files != NULL && d->values != NULL && i < d->node_count; i++) {
        const struct tbd_context_node *node = &d->nodes[i];

        d->values[i + 1] = tbd_calling_enter(scheme, d->values[node->parent],
                                             tbd_calling_number(files[node->file], node->offset));
    }
    free(files);
    return files != NULL && d->values != NULL;
}

enum tbd_status tbd_contexts_find(struct tbd_context_dictionary *d, enum tbd_calling_scheme scheme,
                                  uint64_t value, struct tbd_call_answer *out)
{
    bool is_fine = true;

    *out = (struct tbd_call_answer){ .tried = d->node_count, .is_complete = true };
    if (d->values == NULL || d->value_scheme != scheme || d->value_count != d->node_count)
        is_fine = make_values(d, scheme);
    for (size_t i = 0; is_fine && i < d->node_count; i++)
        if (d->values[i + 1] == value && out->count < TBD_CALL_GRAPH_STACKS)
            is_fine = add_stack(d, i, out);
    if (is_fine)
        return TBD_OK;
    tbd_call_answer_free(out);
    return TBD_NOMEM;
}
