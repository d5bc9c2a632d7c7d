// SPDX-License-Identifier: MIT
/* summaries.c - word and block summaries on disk
 *
 * Entries are sorted by key and coded as varints in groups of TBD_SUMMARY_GROUP; the directory
 * before them has each group's first key, so that one key costs a binary search and at most one
 * group.  Differences keep numbers small: a key to the key before, a window to this window. */
#include "format/summaries/summaries.h"

#include "base/array.h"
#include "base/binary_search.h"
#include "format/files/disk_window.h"

#include <stdlib.h>

#define PAGE_WORDS  512u
#define KEY_NONE    UINT64_MAX
#define ENTRY_BYTES 60u /* six numbers with the key, at most */

/* Writes one entry's numbers in the order they are stored; `out` has ENTRY_BYTES. */
typedef uint8_t *put_entry(uint8_t *out, uint32_t window, const void *entries, size_t i);
typedef uint64_t key_of(const void *entries, size_t i);

static inline void put_group(struct tbd_buffer *out, uint32_t window, const void *entries,
                             size_t first, size_t end, put_entry *put_one, key_of *key)
{
    uint8_t *at = tbd_buffer_reserve(out, (end - first) * ENTRY_BYTES);
    uint64_t last = key(entries, first);

    if (!at)
        return;
    at = put_one(at, window, entries, first);
    for (size_t i = first + 1; i < end; i++) {
        at = tbd_varint_put(at, key(entries, i) - last);
        last = key(entries, i);
        at = put_one(at, window, entries, i);
    }
    out->used = (size_t)(at - out->bytes);
}

static inline void put(struct tbd_buffer *out, enum tbd_record_type type, uint32_t window,
                       const void *entries, size_t count, put_entry *put_one, key_of *key)
{
    struct tbd_disk_summaries head = { .count = count,
                                       .groups =
                                           (count + TBD_SUMMARY_GROUP - 1) / TBD_SUMMARY_GROUP };
    size_t begin = tbd_file_begin_record(out, type);
    size_t directory;
    size_t data;

    tbd_buffer_put(out, &head, sizeof(head));
    directory = out->used;
    if (tbd_buffer_reserve(out, head.groups * sizeof(struct tbd_disk_group)))
        out->used += head.groups * sizeof(struct tbd_disk_group);
    data = out->used;
    for (size_t i = 0; i < count && !out->failed; i += TBD_SUMMARY_GROUP) {
        struct tbd_disk_group group = { .key = key(entries, i), .offset = out->used - data };

        memcpy(out->bytes + directory + i / TBD_SUMMARY_GROUP * sizeof(group), &group,
               sizeof(group));
        put_group(out, window, entries, i,
                  count - i < TBD_SUMMARY_GROUP ? count : i + TBD_SUMMARY_GROUP, put_one, key);
    }
    tbd_file_finish_record(out, begin);
}

static uint64_t word_key(const void *entries, size_t i)
{
    return ((const struct tbd_word_summary *)entries)[i].word / 8;
}

static uint8_t *put_word(uint8_t *out, uint32_t window, const void *entries, size_t i)
{
    const struct tbd_word_summary *word = (const struct tbd_word_summary *)entries + i;

    out = tbd_varint_put(out, word->count);
    out = tbd_varint_put(out, word->last);
    return tbd_varint_put(out, word->previous ? window + 1 - word->previous : 0);
}

static uint64_t block_key(const void *entries, size_t i)
{
    return ((const struct tbd_block_summary *)entries)[i].id;
}

static uint8_t *put_block(uint8_t *out, uint32_t window, const void *entries, size_t i)
{
    const struct tbd_block_summary *block = (const struct tbd_block_summary *)entries + i;

    out = tbd_varint_put(out, block->count);
    out = tbd_varint_put(out, block->last);
    out = tbd_varint_put(out, block->previous ? window + 1 - block->previous : 0);
    out = tbd_varint_put(out, block->enters);
    return block->enters ? tbd_varint_put(out, block->last_enter) : out;
}

void tbd_words_put(struct tbd_buffer *out, uint32_t window, const struct tbd_word_summary *words,
                   size_t count)
{
    put(out, TBD_REC_WORDS, window, words, count, put_word, word_key);
}

void tbd_block_summaries_put(struct tbd_buffer *out, uint32_t window,
                             const struct tbd_block_summary *blocks, size_t count)
{
    put(out, TBD_REC_BLOCK_SUMMARIES, window, blocks, count, put_block, block_key);
}

/* ---- runs: level 1 ---- */

struct key_run {
    uint64_t key;
    uint64_t more; /* consecutive keys after it */
};

struct run_list {
    struct key_run *runs; /* owned */
    size_t count, capacity;
    bool failed;
};

static void run_add(struct run_list *list, uint64_t key)
{
    struct key_run *last = list->count ? &list->runs[list->count - 1] : NULL;

    if (last && key == last->key + last->more + 1) {
        last->more++;
        return;
    }
    if (!tbd_array_grow(&list->runs, list->count, &list->capacity, sizeof(*last)))
        list->failed = true;
    else
        list->runs[list->count++] = (struct key_run){ key, 0 };
}

static uint64_t run_key(const void *entries, size_t i)
{
    return ((const struct key_run *)entries)[i].key;
}

static uint8_t *put_run(uint8_t *out, uint32_t window, const void *entries, size_t i)
{
    (void)window;
    return tbd_varint_put(out, ((const struct key_run *)entries)[i].more);
}

static void put_runs(struct tbd_buffer *out, enum tbd_record_type type, struct run_list *list)
{
    out->failed |= list->failed;
    put(out, type, 0, list->runs, list->count, put_run, run_key);
    free(list->runs);
}

static void run_add_page(struct run_list *list, uint64_t page)
{
    run_add(list, page / 8);
    if (!list->failed)
        list->runs[list->count - 1].more += PAGE_WORDS - 1;
}

void tbd_word_bits_put(struct tbd_buffer *out, const struct tbd_word_summary *words, size_t count,
                       const uint64_t *pages, size_t page_count)
{
    struct run_list list = { 0 };
    size_t page = 0;

    for (size_t i = 0; i < count && !list.failed; i++) {
        while (page < page_count && pages[page] <= words[i].word && !list.failed)
            run_add_page(&list, pages[page++]);
        if (!page || words[i].word - pages[page - 1] >= PAGE_WORDS * 8)
            run_add(&list, words[i].word / 8);
    }
    while (page < page_count && !list.failed)
        run_add_page(&list, pages[page++]);
    put_runs(out, TBD_REC_WORD_BITS, &list);
}

void tbd_block_bits_put(struct tbd_buffer *out, const struct tbd_block_summary *blocks,
                        size_t count, bool called)
{
    struct run_list list = { 0 };

    for (size_t i = 0; i < count && !list.failed; i++)
        if (!called || blocks[i].enters)
            run_add(&list, blocks[i].id);
    put_runs(out, called ? TBD_REC_CALLED_BITS : TBD_REC_BLOCK_BITS, &list);
}

/* ---- reading ---- */

struct groups {
    uint64_t count;
    uint64_t groups;
    const uint8_t *directory;
    const uint8_t *data;
    const uint8_t *end;
};

static bool open_groups(const struct tbd_record_view *record, struct groups *out)
{
    struct tbd_disk_summaries head;

    *out = (struct groups){ 0 };
    if (!record->payload)
        return true;
    if (record->bytes < sizeof(head))
        return false;
    memcpy(&head, record->payload, sizeof(head));
    out->count = head.count;
    out->groups = head.groups;
    out->directory = record->payload + sizeof(head);
    out->end = record->payload + record->bytes;
    /* an entry has at least 2 bytes */
    if (head.count > record->bytes / 2 ||
        head.groups != (head.count + TBD_SUMMARY_GROUP - 1) / TBD_SUMMARY_GROUP ||
        head.groups > (record->bytes - sizeof(head)) / sizeof(struct tbd_disk_group))
        return false;
    out->data = out->directory + head.groups * sizeof(struct tbd_disk_group);
    return true;
}

static struct tbd_disk_group group_at(const struct groups *g, uint64_t i)
{
    struct tbd_disk_group group;

    memcpy(&group, g->directory + i * sizeof(group), sizeof(group));
    return group;
}

/* A reader on the group's entries; `*key` is the first one's. */
static bool open_group(const struct groups *g, uint64_t i, struct tbd_reader *out, uint64_t *key)
{
    struct tbd_disk_group group = group_at(g, i);

    if (group.offset > (uint64_t)(g->end - g->data))
        return false;
    *out = (struct tbd_reader){ g->data + group.offset, g->end, false };
    *key = group.key;
    return true;
}

static uint64_t group_entries(const struct groups *g, uint64_t i)
{
    return i + 1 < g->groups ? TBD_SUMMARY_GROUP : g->count - i * TBD_SUMMARY_GROUP;
}

static uint32_t previous_window(struct tbd_reader *in, uint32_t window)
{
    uint64_t back = tbd_reader_varint(in);

    if (back > window) {
        in->failed = true;
        return 0;
    }
    return back ? window + 1 - (uint32_t)back : 0;
}

static uint32_t small(struct tbd_reader *in)
{
    uint64_t value = tbd_reader_varint(in);

    if (value > UINT32_MAX)
        in->failed = true;
    return (uint32_t)value;
}

static struct tbd_word_summary get_word(struct tbd_reader *in, uint32_t window, uint64_t key)
{
    struct tbd_word_summary word = { .word = key * 8 };

    word.count = small(in);
    word.last = small(in);
    word.previous = previous_window(in, window);
    return word;
}

static struct tbd_block_summary get_block(struct tbd_reader *in, uint32_t window, uint64_t key)
{
    struct tbd_block_summary block = { .id = (uint32_t)key };

    block.count = small(in);
    block.last = small(in);
    block.previous = previous_window(in, window);
    block.enters = small(in);
    if (block.enters)
        block.last_enter = small(in);
    return block;
}

/* Keys ascend strictly and stay below `limit`. */
static bool next_key(struct tbd_reader *in, uint64_t *key, uint64_t limit)
{
    uint64_t step = tbd_reader_varint(in);

    if (in->failed || !step || step >= limit || *key + step >= limit)
        return false;
    *key += step;
    return true;
}

#define WORD_KEYS  ((uint64_t)1 << 61)
#define BLOCK_KEYS ((uint64_t)1 << 30)
/* Runs take few bytes and unpack to many: a forged record is refused. */
#define RUN_KEYS_MAX ((size_t)1 << 28)

enum tbd_status tbd_summaries_count(const struct tbd_record_view *record, size_t *out)
{
    struct groups g;

    if (!open_groups(record, &g))
        return TBD_CORRUPT;
    *out = g.count;
    return TBD_OK;
}

/* Reads all entries of all groups into `words` or `blocks`, whichever is given. */
static enum tbd_status get_all(const struct tbd_record_view *record, uint32_t window,
                               uint64_t limit, struct tbd_word_summary *words,
                               struct tbd_block_summary *blocks)
{
    uint64_t done = 0;
    uint64_t last = KEY_NONE;
    struct groups g;

    if (!open_groups(record, &g))
        return TBD_CORRUPT;
    for (uint64_t i = 0; i < g.groups; i++) {
        uint64_t entries = group_entries(&g, i);
        struct tbd_reader in;
        uint64_t key;

        if (!open_group(&g, i, &in, &key) || key >= limit || (last != KEY_NONE && key <= last))
            return TBD_CORRUPT;
        for (uint64_t k = 0; k < entries; k++, done++) {
            if (k && !next_key(&in, &key, limit))
                return TBD_CORRUPT;
            if (words)
                words[done] = get_word(&in, window, key);
            else
                blocks[done] = get_block(&in, window, key);
            if (in.failed)
                return TBD_CORRUPT;
        }
        last = key;
    }
    return TBD_OK;
}

enum tbd_status tbd_words_get(const struct tbd_record_view *record, uint32_t window,
                              struct tbd_word_summary *out)
{
    return get_all(record, window, WORD_KEYS, out, NULL);
}

enum tbd_status tbd_block_summaries_get(const struct tbd_record_view *record, uint32_t window,
                                        struct tbd_block_summary *out)
{
    return get_all(record, window, BLOCK_KEYS, NULL, out);
}

/* Leaves the reader after the key of the entry with `wanted`. */
static enum tbd_status find(const struct tbd_record_view *record, uint32_t window, uint64_t wanted,
                            uint64_t limit, struct tbd_word_summary *word,
                            struct tbd_block_summary *block)
{
    uint64_t upto;
    uint64_t key;
    struct groups g;
    struct tbd_reader in;

    if (!open_groups(record, &g))
        return TBD_CORRUPT;
    upto = TBD_COUNT_BEFORE(i, g.groups, group_at(&g, i).key <= wanted);
    if (!upto)
        return TBD_NOTFOUND;
    if (!open_group(&g, upto - 1, &in, &key))
        return TBD_CORRUPT;
    for (uint64_t k = 0; k < group_entries(&g, upto - 1); k++) {
        if (k && !next_key(&in, &key, limit))
            return TBD_CORRUPT;
        if (key > wanted)
            return TBD_NOTFOUND;
        if (word)
            *word = get_word(&in, window, key);
        else
            *block = get_block(&in, window, key);
        if (in.failed)
            return TBD_CORRUPT;
        if (key == wanted)
            return TBD_OK;
    }
    return TBD_NOTFOUND;
}

enum tbd_status tbd_words_find(const struct tbd_record_view *record, uint32_t window, uint64_t word,
                               struct tbd_word_summary *out)
{
    return find(record, window, word / 8, WORD_KEYS, out, NULL);
}

enum tbd_status tbd_block_summaries_find(const struct tbd_record_view *record, uint32_t window,
                                         uint32_t id, struct tbd_block_summary *out)
{
    return find(record, window, id, BLOCK_KEYS, NULL, out);
}

/* ---- reading runs ---- */

/* A reader of a record's runs, in order. */
struct run_reader {
    struct groups groups;
    struct tbd_reader in;
    uint64_t group, left; /* the next group; runs left in this one */
    uint64_t limit;
    uint64_t next; /* first key that the next run may begin with */
    struct key_run run;
    bool failed;
};

static bool runs_open(const struct tbd_record_view *record, uint64_t limit, struct run_reader *out)
{
    *out = (struct run_reader){ .limit = limit };
    out->failed = !open_groups(record, &out->groups);
    return !out->failed;
}

static bool runs_step(struct run_reader *r, uint64_t *key)
{
    if (r->left--) {
        *key = r->run.key;
        return next_key(&r->in, key, r->limit);
    }
    r->left = group_entries(&r->groups, r->group) - 1;
    return open_group(&r->groups, r->group++, &r->in, key);
}

/* Moves to the next run.  False at the end, or if the record is impossible (`failed`). */
static bool runs_next(struct run_reader *r)
{
    uint64_t key;

    if (r->failed || (!r->left && r->group == r->groups.groups))
        return false;
    r->failed = !runs_step(r, &key);
    if (r->failed)
        return false;
    r->run = (struct key_run){ key, tbd_reader_varint(&r->in) };
    r->failed = r->in.failed || key < r->next || key >= r->limit || r->run.more >= r->limit - key;
    r->next = key + r->run.more + 1;
    return !r->failed;
}

enum tbd_status tbd_bits_count(const struct tbd_record_view *record, size_t *out)
{
    struct run_reader r;

    *out = 0;
    for (runs_open(record, WORD_KEYS, &r); runs_next(&r);)
        if (__builtin_add_overflow(*out, r.run.more + 1, out) || *out > RUN_KEYS_MAX)
            return TBD_CORRUPT;
    return r.failed ? TBD_CORRUPT : TBD_OK;
}

enum tbd_status tbd_word_bits_get(const struct tbd_record_view *record,
                                  struct tbd_word_summary *out)
{
    struct run_reader r;

    for (runs_open(record, WORD_KEYS, &r); runs_next(&r);)
        for (uint64_t i = 0; i <= r.run.more; i++)
            *out++ = (struct tbd_word_summary){ .word = (r.run.key + i) * 8, .count = 1 };
    return r.failed ? TBD_CORRUPT : TBD_OK;
}

enum tbd_status tbd_block_bits_get(const struct tbd_record_view *record,
                                   const struct tbd_record_view *called,
                                   struct tbd_block_summary *out)
{
    struct run_reader r, c;
    bool has_called;

    runs_open(called, BLOCK_KEYS, &c);
    has_called = runs_next(&c);
    for (runs_open(record, BLOCK_KEYS, &r); runs_next(&r);)
        for (uint64_t id = r.run.key; id <= r.run.key + r.run.more; id++) {
            while (has_called && c.run.key + c.run.more < id)
                has_called = runs_next(&c);
            *out++ = (struct tbd_block_summary){ .id = (uint32_t)id,
                                                 .count = 1,
                                                 .enters = has_called && c.run.key <= id };
        }
    return r.failed || c.failed ? TBD_CORRUPT : TBD_OK;
}

static enum tbd_status find_bit(const struct tbd_record_view *record, uint64_t wanted,
                                uint64_t limit)
{
    struct run_reader r;
    uint64_t upto;

    if (!runs_open(record, limit, &r))
        return TBD_CORRUPT;
    upto = TBD_COUNT_BEFORE(i, r.groups.groups, group_at(&r.groups, i).key <= wanted);
    if (!upto)
        return TBD_NOTFOUND;
    r.group = upto - 1;
    r.groups.groups = upto;
    r.groups.count =
        upto * TBD_SUMMARY_GROUP < r.groups.count ? upto * TBD_SUMMARY_GROUP : r.groups.count;
    while (runs_next(&r) && r.run.key <= wanted)
        if (wanted - r.run.key <= r.run.more)
            return TBD_OK;
    return r.failed ? TBD_CORRUPT : TBD_NOTFOUND;
}

enum tbd_status tbd_word_bits_find(const struct tbd_record_view *record, uint64_t word)
{
    return find_bit(record, word / 8, WORD_KEYS);
}

enum tbd_status tbd_block_bits_find(const struct tbd_record_view *record, uint32_t id)
{
    return find_bit(record, id, BLOCK_KEYS);
}
