// SPDX-License-Identifier: MIT
/* crash_file.c - reads and checks the file `crash` (crash_file.h) */
#include "format/files/crash_file.h"

#include "base/hash.h"
#include "format/files/file.h"
#include "format/files/trace_dir.h"
#include "format/stream/condensed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* All rings of the largest size, and what describes them. */
#define MAX_BYTES ((uint64_t)20 << 30)

static enum tbd_status corrupt(struct tbd_error *why, const char *path, uint64_t offset,
                               const char *what)
{
    return tbd_error_set(why, TBD_CORRUPT, path, offset, "%s: %s", TBD_CRASH_FILE, what);
}

/* ---- the whole file ---- */

/* How long a file with this head is.  The counts are below 2^32 and the sizes small: no sum overflows but for
 * entries, which are bounded. */
static uint64_t bytes_before_entries(const struct tbd_crash_head *head)
{
    return sizeof(*head) + (uint64_t)head->module_count * sizeof(struct tbd_crash_module) +
           (uint64_t)head->block_count * sizeof(struct tbd_crash_block) +
           (uint64_t)head->thread_count * sizeof(struct tbd_crash_thread) +
           ((uint64_t)head->first_count + head->last_count) * sizeof(struct tbd_crash_when) +
           (uint64_t)head->part_count * sizeof(struct tbd_crash_kept_part) +
           (uint64_t)head->kept_count * sizeof(struct tbd_crash_kept) +
           (uint64_t)head->value_count * sizeof(struct tbd_crash_file_value) +
           (uint64_t)head->chunk_count * sizeof(struct tbd_crash_chunk) +
           (uint64_t)head->id_count * sizeof(uint32_t);
}

static bool is_as_long(const struct tbd_crash_head *head, uint64_t bytes)
{
    return head->entry_count <= MAX_BYTES && head->code_bytes <= MAX_BYTES &&
           head->older_bytes <= MAX_BYTES &&
           bytes_before_entries(head) + head->entry_count * sizeof(uint32_t) + head->code_bytes +
                   head->older_bytes ==
               bytes;
}

/* Nothing is read, and no memory taken, for a file that is no dump or not as long as its head says. */
static enum tbd_status check_head(FILE *file, const char *path, uint64_t *bytes,
                                  struct tbd_error *why)
{
    struct tbd_crash_head head;
    struct stat info;

    if (fstat(fileno(file), &info) != 0)
        return tbd_error_set(why, TBD_IO, path, 0, "%s: %s", TBD_CRASH_FILE, strerror(errno));
    if (fread(&head, sizeof(head), 1, file) != 1 || head.magic != TBD_CRASH_MAGIC)
        return corrupt(why, path, 0, "not a crash dump");
    if (head.major != TBD_CRASH_MAJOR)
        return corrupt(why, path, 8, "of another version");
    *bytes = (uint64_t)info.st_size;
    if (*bytes > MAX_BYTES || !is_as_long(&head, *bytes))
        return corrupt(why, path, 24, "its parts are not as long as it says");
    rewind(file);
    return TBD_OK;
}

static enum tbd_status read_all(FILE *file, const char *path, struct tbd_crash_dump *dump,
                                struct tbd_error *why)
{
    uint64_t bytes;
    enum tbd_status status = check_head(file, path, &bytes, why);

    if (status)
        return status;
    dump->data = malloc(bytes);
    if (!dump->data)
        return tbd_error_set(why, TBD_NOMEM, path, 0, "%s: %s", TBD_CRASH_FILE,
                             tbd_status_text(TBD_NOMEM));
    dump->bytes = fread(dump->data, 1, bytes, file);
    if (ferror(file))
        return tbd_error_set(why, TBD_IO, path, 0, "%s: %s", TBD_CRASH_FILE, strerror(errno));
    return dump->bytes == bytes ? TBD_OK
                                : corrupt(why, path, dump->bytes, "cut short while it was read");
}

static uint64_t sum_of(const struct tbd_crash_dump *dump)
{
    struct tbd_crash_head head = *dump->head;

    head.checksum = 0;
    return tbd_hash64(&head, sizeof(head)) ^
           tbd_hash64(dump->data + sizeof(head), dump->bytes - sizeof(head));
}

/* ---- its parts ---- */

/* Again: the file may have changed since its head was looked at. */
static bool place_parts(struct tbd_crash_dump *dump)
{
    const struct tbd_crash_head *head = dump->head;
    uint64_t modules = sizeof(*head);
    uint64_t blocks = modules + (uint64_t)head->module_count * sizeof(struct tbd_crash_module);
    uint64_t threads = blocks + (uint64_t)head->block_count * sizeof(struct tbd_crash_block);
    uint64_t tables = threads + (uint64_t)head->thread_count * sizeof(struct tbd_crash_thread);
    uint64_t entries = bytes_before_entries(head);

    if (!is_as_long(head, dump->bytes))
        return false;
    dump->modules = (const struct tbd_crash_module *)(dump->data + modules);
    dump->blocks = (const struct tbd_crash_block *)(dump->data + blocks);
    dump->threads = (const struct tbd_crash_thread *)(dump->data + threads);
    dump->first = (const struct tbd_crash_when *)(dump->data + tables);
    dump->last = dump->first + head->first_count;
    dump->parts = (const struct tbd_crash_kept_part *)(dump->last + head->last_count);
    dump->kept = (const struct tbd_crash_kept *)(dump->parts + head->part_count);
    dump->values = (const struct tbd_crash_file_value *)(dump->kept + head->kept_count);
    dump->chunks = (const struct tbd_crash_chunk *)(dump->values + head->value_count);
    dump->ids = (const uint32_t *)(dump->chunks + head->chunk_count);
    dump->entries = (const uint32_t *)(dump->data + entries);
    dump->code = dump->data + entries + head->entry_count * 4;
    dump->older = dump->code + head->code_bytes;
    return true;
}

static bool has_wrong_code(const struct tbd_crash_dump *dump, const struct tbd_crash_block *block)
{
    uint64_t bytes = dump->head->code_bytes;

    return block->code_offset != TBD_NO_CODE &&
           (block->code_offset > bytes || block->code_bytes > bytes - block->code_offset);
}

static const char *wrong_kept(const struct tbd_crash_dump *dump)
{
    const struct tbd_crash_head *head = dump->head;

    for (uint32_t i = 0; i < head->part_count; i++)
        if (!memchr(dump->parts[i].name, 0, sizeof(dump->parts[i].name)))
            return "a name does not end";
    for (uint32_t i = 0; i < head->kept_count; i++)
        if (dump->kept[i].block >= head->block_count || dump->kept[i].part >= head->part_count)
            return "a part's row of no block, or of no part";
    return NULL;
}

static const char *wrong_values(const struct tbd_crash_dump *dump)
{
    for (uint32_t i = 0; i < dump->head->value_count; i++) {
        const struct tbd_crash_file_value *value = &dump->values[i];

        if (value->thread >= dump->head->thread_count ||
            value->entry > dump->threads[value->thread].count)
            return "values of no entry";
        if (i > 0 && (value->thread < value[-1].thread ||
                      (value->thread == value[-1].thread && value->entry < value[-1].entry)))
            return "values that are out of order";
        if (!tbd_crash_is_value(value))
            return "values with impossible lengths";
    }
    return NULL;
}

static bool is_chunk(const struct tbd_crash_dump *dump, const struct tbd_crash_chunk *chunk)
{
    uint64_t bytes = dump->head->older_bytes;

    return chunk->offset <= bytes && chunk->bytes <= bytes - chunk->offset && chunk->count != 0 &&
           chunk->count <= TBD_CONDENSED_IDS && chunk->id_bits != 0 && chunk->id_bits <= 32;
}

static const char *wrong_chunks(const struct tbd_crash_dump *dump)
{
    const struct tbd_crash_head *head = dump->head;
    uint32_t next = 0;

    for (uint32_t i = 0; i < head->id_count; i++)
        if (dump->ids[i] >= head->block_count && dump->ids[i] != UINT32_MAX)
            return "an id of no block";
    for (uint32_t i = 0; i < head->thread_count; i++) {
        uint64_t older = 0;

        for (; next < head->chunk_count && dump->chunks[next].thread == i; next++) {
            if (!is_chunk(dump, &dump->chunks[next]))
                return "condensed entries that cannot be";
            older += dump->chunks[next].count;
        }
        if (older != dump->threads[i].older)
            return "a thread with other condensed entries than it says";
    }
    return next < head->chunk_count ? "condensed entries of no thread" : NULL;
}

static const char *wrong_part(const struct tbd_crash_dump *dump)
{
    const char *wrong = wrong_chunks(dump);
    const struct tbd_crash_head *head = dump->head;
    uint64_t left = head->entry_count;

    if (!wrong)
        wrong = wrong_values(dump);
    if (wrong)
        return wrong;
    for (uint32_t i = 0; i < head->module_count; i++)
        if (!memchr(dump->modules[i].path, 0, sizeof(dump->modules[i].path)))
            return "a path does not end";
    for (uint32_t i = 0; i < head->block_count; i++)
        if (dump->blocks[i].module != TBD_NO_MODULE && dump->blocks[i].module >= head->module_count)
            return "a block of no module";
    for (uint32_t i = 0; i < head->block_count; i++)
        if (has_wrong_code(dump, &dump->blocks[i]))
            return "a block with code that is not there";
    for (uint32_t i = 0; i < head->thread_count; i++) {
        if (dump->threads[i].count > left)
            return "threads with more entries than there are";
        left -= dump->threads[i].count;
    }
    if (left)
        return "entries of no thread";
    for (uint64_t i = 0; i < head->entry_count; i++)
        if (dump->entries[i] >= head->block_count)
            return "an entry of no block";
    for (uint64_t i = 0; i < (uint64_t)head->first_count + head->last_count; i++)
        if (dump->first[i].block >= head->block_count)
            return "a table's row of no block";
    return wrong_kept(dump);
}

static enum tbd_status check(struct tbd_crash_dump *dump, const char *path, struct tbd_error *why)
{
    const char *wrong;

    dump->head = (const struct tbd_crash_head *)dump->data;
    if (dump->bytes < sizeof(*dump->head) || dump->head->magic != TBD_CRASH_MAGIC)
        return corrupt(why, path, 0, "not a crash dump");
    if (dump->head->major != TBD_CRASH_MAJOR)
        return corrupt(why, path, 8, "of another version");
    if (!place_parts(dump))
        return corrupt(why, path, 24, "its parts are not as long as it says");
    if (sum_of(dump) != dump->head->checksum)
        return corrupt(why, path, 16, "damaged");
    wrong = wrong_part(dump);
    return wrong ? corrupt(why, path, sizeof(*dump->head), wrong) : TBD_OK;
}

enum tbd_status tbd_crash_open(const char *path, struct tbd_crash_dump *out, struct tbd_error *why)
{
    int dir = tbd_dir_open(path);
    FILE *file = dir < 0 ? NULL : tbd_dir_text(dir, TBD_CRASH_FILE);
    enum tbd_status status;

    *out = (struct tbd_crash_dump){ .data = NULL };
    if (dir >= 0)
        close(dir);
    if (!file)
        return tbd_error_set(why, TBD_NOTRACE, path, 0, "not a crash dump: it has no file %s",
                             TBD_CRASH_FILE);
    status = read_all(file, path, out, why);
    fclose(file);
    if (!status)
        status = check(out, path, why);
    if (status)
        tbd_crash_close(out);
    return status;
}

void tbd_crash_close(struct tbd_crash_dump *dump)
{
    free(dump->data);
    *dump = (struct tbd_crash_dump){ .data = NULL };
}
