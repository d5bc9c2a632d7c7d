// SPDX-License-Identifier: MIT
/* keys_read.c - asking the index over windows (keys.h)
 *
 * Files are hostile: head and directory are checked when a segment is opened, a group when it is
 * read. A group that is damaged answers with all windows. */
#include "format/summaries/keys.h"

#include "base/array.h"
#include "base/binary_search.h"
#include "format/files/file.h"
#include "format/summaries/keys_private.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <xxhash.h>

/* ---- groups of a segment ---- */

struct group {
    struct tbd_reader in;
    uint64_t key;  /* of the entry that is read next */
    uint64_t mask; /* of the one before */
    size_t left;
};

static bool open_group(const struct tbd_keys *keys, size_t index, struct group *out)
{
    const struct tbd_disk_key_group *group = &keys->directory[index];
    size_t end = index + 1 < keys->groups ? group[1].offset : keys->data_bytes;
    const uint8_t *at = keys->data + group->offset;

    if ((uint32_t)XXH3_64bits(at, end - group->offset) != group->checksum)
        return false;
    *out = (struct group){
        .in = { at, keys->data + end, false },
        .key = group->key,
        .left = index + 1 < keys->groups ? TBD_KEY_GROUP
                                         : keys->count - (keys->groups - 1) * TBD_KEY_GROUP,
    };
    return true;
}

static uint64_t read_mask(const struct tbd_keys *keys, struct group *group)
{
    const uint8_t *token = tbd_reader_take(&group->in, 1);
    uint64_t lowest = token ? (uint64_t)1 << (*token & 63) : 0;
    uint64_t mask = lowest;

    if (!token)
        return 0;
    if (*token >> 6 == TBD_KEY_SAME)
        mask = group->mask;
    else if (*token >> 6 == TBD_KEY_ON)
        mask = ~(lowest - 1);
    else if (*token >> 6 == TBD_KEY_MORE)
        mask = lowest | (tbd_reader_varint(&group->in) << (*token & 63)) << 1;
    return mask & tbd_keys_all(keys);
}

/* The group's next entry.  False after the last one, or if the group is damaged (in.failed). */
static bool next_entry(const struct tbd_keys *keys, struct group *group, uint64_t *key)
{
    if (!group->left)
        return false;
    group->mask = read_mask(keys, group);
    *key = group->key;
    if (--group->left)
        group->key += tbd_reader_varint(&group->in);
    if (group->in.failed || (group->left && group->key <= *key))
        group->in.failed = true;
    return !group->in.failed;
}

/* The last group whose first key is not above `key`; 0 if none is. */
static size_t group_of(const struct tbd_keys *keys, uint64_t key)
{
    size_t upto = TBD_COUNT_BEFORE(i, keys->groups, keys->directory[i].key <= key);

    return upto ? upto - 1 : 0;
}

/* ---- questions ---- */

/* First of the ascending `numbers` that is not below `value`. */
static size_t lower_bound(const uint64_t *numbers, size_t count, uint64_t value)
{
    return TBD_COUNT_BEFORE(i, count, numbers[i] < value);
}

uint64_t tbd_keys_range(const struct tbd_keys *keys, uint64_t first, uint64_t last)
{
    uint64_t all = tbd_keys_all(keys);
    uint64_t mask = 0;
    struct group group;
    uint64_t key;

    if (keys->own) {
        size_t at = lower_bound(keys->own, keys->count, first);

        return at < keys->count && keys->own[at] <= last ? all : 0;
    }
    for (size_t i = group_of(keys, first);
         i < keys->groups && keys->directory[i].key <= last && mask != all; i++) {
        if (!open_group(keys, i, &group))
            return all;
        while (next_entry(keys, &group, &key) && key <= last)
            mask |= key >= first ? group.mask : 0;
        if (group.in.failed)
            return all;
    }
    return mask;
}

/* Mask of the windows that have a wanted key in one group; `*at` moves past those keys. */
static uint64_t any_in_group(const struct tbd_keys *keys, size_t index, const uint64_t *wanted,
                             size_t count, size_t *at)
{
    uint64_t end = index + 1 < keys->groups ? keys->directory[index + 1].key : UINT64_MAX;
    uint64_t mask = 0;
    struct group group;
    uint64_t key;

    if (!open_group(keys, index, &group))
        return tbd_keys_all(keys);
    while (*at < count && wanted[*at] < end && next_entry(keys, &group, &key)) {
        while (*at < count && wanted[*at] < key)
            ++*at;
        if (*at < count && wanted[*at] == key)
            mask |= group.mask;
    }
    while (*at < count && wanted[*at] < end)
        ++*at;
    return group.in.failed ? tbd_keys_all(keys) : mask;
}

uint64_t tbd_keys_any(const struct tbd_keys *keys, const uint64_t *wanted, size_t count)
{
    uint64_t all = tbd_keys_all(keys);
    uint64_t mask = 0;
    size_t at = 0;

    if (keys->own) {
        for (size_t i = 0; i < keys->count && at < count; i++) {
            at += lower_bound(wanted + at, count - at, keys->own[i]);
            if (at < count && wanted[at] == keys->own[i])
                return all;
        }
        return 0;
    }
    while (keys->groups && at < count && mask != all) {
        size_t before = at;

        mask |= any_in_group(keys, group_of(keys, wanted[at]), wanted, count, &at);
        at += at == before; /* the key is below the first one of all groups */
    }
    return mask;
}

uint64_t tbd_keys_windows(const struct tbd_keys *keys, uint64_t first_time, uint64_t blocks,
                          uint64_t *out_blocks)
{
    uint64_t mask = 0;

    *out_blocks = 0;
    for (size_t i = lower_bound(keys->times, keys->windows, first_time);
         i < keys->windows && keys->times[i + 1] - first_time <= blocks; i++) {
        mask |= (uint64_t)1 << i;
        *out_blocks += keys->times[i + 1] - keys->times[i];
    }
    return mask;
}

void tbd_keys_free(struct tbd_keys *keys)
{
    if (keys->file)
        munmap(keys->file, keys->file_bytes);
    free(keys->own);
    *keys = (struct tbd_keys){ 0 };
}

/* ---- opening a segment ---- */

static bool read_span(struct tbd_file *file, struct tbd_keys *keys)
{
    struct tbd_disk_key_span span;
    struct tbd_record_view record;

    if (tbd_file_next(file, &record, NULL) || record.type != TBD_REC_KEY_SPAN ||
        record.bytes < sizeof(span))
        return false;
    memcpy(&span, record.payload, sizeof(span));
    if (!span.windows || span.windows > TBD_KEY_WINDOWS ||
        record.bytes < sizeof(span) + (span.windows + 1) * sizeof(keys->times[0]))
        return false;
    memcpy(keys->times, record.payload + sizeof(span), (span.windows + 1) * sizeof(keys->times[0]));
    for (uint32_t i = 0; i < span.windows; i++)
        if (keys->times[i] > keys->times[i + 1])
            return false;
    keys->windows = span.windows;
    keys->count = span.count;
    keys->data_bytes = span.bytes;
    return true;
}

static bool read_directory(struct tbd_file *file, struct tbd_keys *keys)
{
    struct tbd_record_view record;

    if (tbd_file_next(file, &record, NULL) || record.type != TBD_REC_KEY_DIRECTORY)
        return false;
    keys->directory = (const void *)record.payload;
    keys->groups = record.bytes / sizeof(*keys->directory);
    keys->data = file->bytes + file->next;
    if (keys->data_bytes > file->size - file->next || keys->count > keys->data_bytes ||
        keys->groups != (keys->count + TBD_KEY_GROUP - 1) / TBD_KEY_GROUP)
        return false;
    for (size_t i = 0; i < keys->groups; i++)
        if (keys->directory[i].offset > keys->data_bytes ||
            (i && (keys->directory[i].offset < keys->directory[i - 1].offset ||
                   keys->directory[i].key <= keys->directory[i - 1].key)))
            return false;
    return true;
}

/* A file below keys/. */
struct tbd_key_file {
    uint64_t first_time; /* by its name */
    uint32_t window;
    bool tried;
    struct tbd_keys *keys; /* owned; NULL until asked for, or damaged */
};

static struct tbd_keys *open_keys(const struct tbd_key_file *which, struct tbd_dir dir,
                                  uint64_t trace_id)
{
    struct tbd_keys *keys = calloc(1, sizeof(*keys));
    struct tbd_file file;
    char name[64];

    snprintf(name, sizeof(name), "keys/%016" PRIx64 "-%08" PRIx32, which->first_time,
             which->window);
    if (!keys || tbd_file_open(dir, name, TBD_FILE_KEYS, trace_id, &file, NULL)) {
        free(keys);
        return NULL;
    }
    keys->file = (void *)(uintptr_t)file.bytes;
    keys->file_bytes = file.size;
    if (read_span(&file, keys) && read_directory(&file, keys) &&
        keys->times[0] == which->first_time)
        return keys;
    tbd_keys_free(keys);
    free(keys);
    return NULL;
}

/* ---- all segments of a trace ---- */

static int compare_files(const void *left, const void *right)
{
    const struct tbd_key_file *a = left;
    const struct tbd_key_file *b = right;

    if (a->first_time != b->first_time)
        return a->first_time < b->first_time ? -1 : 1;
    return a->window < b->window ? -1 : a->window > b->window;
}

static void list_file(struct tbd_key_files *files, const char *name)
{
    struct tbd_key_file file = { 0 };
    int end = 0;

    if (sscanf(name, "%16" SCNx64 "-%8" SCNx32 "%n", &file.first_time, &file.window, &end) != 2 ||
        end != 25 || name[end])
        return;
    if (tbd_array_grow(&files->files, files->count, &files->capacity, sizeof(file)))
        files->files[files->count++] = file;
}

void tbd_key_files_list(struct tbd_key_files *files, int dir)
{
    struct dirent *entry;
    DIR *list;

    if (files->is_listed)
        return;
    files->is_listed = true;
    list = tbd_dir_list(dir, "keys");
    while (list && (entry = readdir(list)))
        list_file(files, entry->d_name);
    if (list)
        closedir(list);
    if (files->count)
        qsort(files->files, files->count, sizeof(*files->files), compare_files);
}

uint32_t tbd_key_files_window(const struct tbd_key_files *files, size_t index)
{
    return files->files[index].window;
}

size_t tbd_key_files_from(const struct tbd_key_files *files, uint64_t time)
{
    size_t upto = TBD_COUNT_BEFORE(i, files->count, files->files[i].first_time <= time);

    /* a segment that begins at `time` may have only empty windows: then the one before matters */
    while (upto && files->files[upto - 1].first_time == time)
        upto--;
    return upto ? upto - 1 : 0;
}

bool tbd_key_files_begins_before(const struct tbd_key_files *files, size_t index, uint64_t time)
{
    return index < files->count && files->files[index].first_time < time;
}

const struct tbd_keys *tbd_key_files_get(struct tbd_key_files *files, size_t index,
                                         struct tbd_dir dir, uint64_t trace_id)
{
    struct tbd_key_file *file = index < files->count ? &files->files[index] : NULL;

    if (!file)
        return NULL;
    if (!file->tried)
        file->keys = open_keys(file, dir, trace_id);
    file->tried = true;
    return file->keys;
}

void tbd_key_files_free(struct tbd_key_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        if (files->files[i].keys)
            tbd_keys_free(files->files[i].keys);
        free(files->files[i].keys);
    }
    free(files->files);
    *files = (struct tbd_key_files){ 0 };
}
