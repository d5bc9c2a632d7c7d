// SPDX-License-Identifier: MIT
/* keys.c - making segments of the index over windows
 *
 * A segment's keys are taken a *span* at a time: the SPAN_KEYS numbers from the least remaining key
 * on.  Each window adds its keys in the span.  Programs write to neighbouring words, in one window
 * as in the next, so most spans are dense.
 *
 * A group of TBD_KEY_GROUP keys is coded as: for each key a varint, the difference to the key
 * before (the first key of a group is in the directory), then its mask:
 *
 *   byte    bits 0-5: lowest window s; bits 6-7: how to go on
 *           0  only that window             1  all windows from s on
 *           2  a varint: the mask's bits above s
 *           3  the same mask as the key before in this group */
#include "format/summaries/keys.h"

#include "base/assert.h"
#include "format/files/file.h"
#include "format/summaries/keys_private.h"
#include "format/files/numbers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

/* A segment is cut short when its windows have very many keys: they wait in memory, and the program at its end until they are
 * written (28 windows of bzip2: 17 ms). */
#define SEGMENT_BYTES ((size_t)1 << 20)
#define WORDS_AT_ONCE 256u

/* ---- the keys of one window ---- */

struct sequence {
    struct tbd_buffer *out;
    uint64_t last;
};

static void put_key(struct sequence *sequence, uint64_t key)
{
    tbd_buffer_varint(sequence->out, key - sequence->last);
    sequence->last = key;
}

/* `keys`, in any order, are from malloc; NULL: there was no memory. */
static void put_sorted(struct sequence *sequence, uint64_t *keys, size_t count)
{
    if (!keys) {
        sequence->out->failed = true;
        return;
    }
    count = tbd_numbers_sort_unique(keys, count);
    for (size_t i = 0; i < count; i++)
        put_key(sequence, keys[i]);
    free(keys);
}

/* The key of a message; false if it has none. */
static bool key_of_message(const struct tbd_window *window, const struct tbd_message *message,
                           uint64_t *out)
{
    const uint8_t *payload = (const uint8_t *)message + sizeof(*message);
    struct tbd_msg_syscall call;
    struct tbd_msg_signal signal;
    struct tbd_msg_thread thread;
    struct tbd_message head;

    memcpy(&head, message, sizeof(head));
    switch (head.kind) {
    case TBD_MSG_SYSCALL:
        memcpy(&call, payload, sizeof(call));
        *out = tbd_key(TBD_KEY_SYSCALL, call.number);
        return true;
    case TBD_MSG_SIGNAL:
        memcpy(&signal, payload, sizeof(signal));
        *out = tbd_key(TBD_KEY_SIGNAL, signal.signo);
        return true;
    case TBD_MSG_THREAD:
        memcpy(&thread, payload, sizeof(thread));
        *out = tbd_key(TBD_KEY_CARRIED, 0);
        return thread.event == TBD_THREAD_SWITCH && thread.block_time < window->first_time;
    default: return false;
    }
}

/* System calls and signals. */
static void put_messages(struct sequence *sequence, const struct tbd_window *window)
{
    uint64_t *keys = malloc((window->log_count + 1) * sizeof(*keys));
    size_t count = 0;

    for (size_t i = 0; keys && i < window->log_count; i++)
        count += key_of_message(window, window->log[i].message, &keys[count]);
    put_sorted(sequence, keys, count);
}

/* The addresses where the program's threads go on after the window. */
static void put_targets(struct sequence *sequence, const struct tbd_window *window)
{
    uint64_t *keys = malloc((window->end_thread_count + 1) * sizeof(*keys));
    size_t count = 0;

    if (keys && window->complete)
        keys[count++] = tbd_key(TBD_KEY_TARGET, window->end_regs.rip);
    for (size_t i = 0; keys && window->complete && i < window->end_thread_count; i++)
        keys[count++] = tbd_key(TBD_KEY_TARGET, window->end_threads[i].regs.rip);
    put_sorted(sequence, keys, count);
}

/* A key has 58 bits of a number.  Addresses with more come from a stream that was written over; by
 * their low bits they are in another order. */
static void put_impossible_words(struct sequence *sequence, const struct tbd_window *window)
{
    uint64_t *keys = malloc(window->word_count * sizeof(*keys));

    for (size_t i = 0; keys && i < window->word_count; i++)
        keys[i] = tbd_key(TBD_KEY_WORD, window->words[i].word / 8);
    put_sorted(sequence, keys, window->word_count);
}

/* Nearly all keys are words: as many as fit at once. */
static void put_words(struct sequence *sequence, const struct tbd_window *window)
{
    size_t count = window->word_count;

    if (count && window->words[count - 1].word / 8 >> TBD_KEY_BITS) {
        put_impossible_words(sequence, window);
        return;
    }
    for (size_t i = 0; i < count;) {
        size_t end = count - i < WORDS_AT_ONCE ? count : i + WORDS_AT_ONCE;
        uint8_t *at = tbd_buffer_reserve(sequence->out, WORDS_AT_ONCE * 10);
        uint64_t last = sequence->last;

        if (!at)
            return;
        for (; i < end; i++) {
            uint64_t key = tbd_key(TBD_KEY_WORD, window->words[i].word / 8);

            at = tbd_varint_put(at, key - last);
            last = key;
        }
        sequence->last = last;
        sequence->out->used = (size_t)(at - sequence->out->bytes);
    }
}

void tbd_keys_collect(const struct tbd_window *window, struct tbd_buffer *out)
{
    struct sequence sequence = { .out = out };
    bool has_all = window->all_words; /* else its lists say the same */
    size_t blocks = has_all ? 0 : window->block_summary_count;

    put_words(&sequence, window);
    for (size_t i = 0; i < blocks; i++)
        put_key(&sequence, tbd_key(TBD_KEY_BLOCK, window->block_summaries[i].id));
    /* without counts, only the entry itself is known */
    for (size_t i = 0; i < blocks; i++)
        if (window->block_summaries[i].enters || !window->block_summaries[i].count)
            put_key(&sequence, tbd_key(TBD_KEY_ENTER, window->block_summaries[i].id));
    put_targets(&sequence, window);
    for (size_t i = 0; i < window->read_page_count; i++)
        put_key(&sequence, tbd_key(TBD_KEY_READ_PAGE, window->read_pages[i] / 4096));
    put_messages(&sequence, window);
    for (size_t i = 0; i < window->all_words_count; i++)
        put_key(&sequence, tbd_key(TBD_KEY_ALL_WORDS, window->all_words[i] / 4096));
    if (has_all)
        put_key(&sequence, tbd_key(TBD_KEY_ALL_BLOCKS, 0));
}

/* ---- segments ---- */

bool tbd_key_segment_is_full(const struct tbd_key_segment *segment)
{
    return segment->windows == TBD_KEY_WINDOWS || segment->bytes > SEGMENT_BYTES;
}

bool tbd_key_segment_add(struct tbd_key_segment *segment, uint32_t window, uint64_t first_time,
                         uint64_t blocks, struct tbd_buffer *keys)
{
    uint32_t n = segment->windows;

    if (tbd_key_segment_is_full(segment) || keys->failed ||
        (n && (window != segment->first_window + n || segment->times[n] != first_time)))
        return false;
    if (!n)
        segment->first_window = window;
    segment->times[n] = first_time;
    segment->times[n + 1] = first_time + blocks;
    segment->keys[n] = *keys;
    segment->bytes += keys->used;
    segment->windows++;
    *keys = (struct tbd_buffer){ 0 };
    return true;
}

void tbd_key_segment_clear(struct tbd_key_segment *segment)
{
    for (uint32_t i = 0; i < segment->windows; i++)
        tbd_buffer_free(&segment->keys[i]);
    *segment = (struct tbd_key_segment){ 0 };
}

void tbd_key_segment_name(const struct tbd_key_segment *segment, char *out, size_t bytes)
{
    snprintf(out, bytes, "keys/%016" PRIx64 "-%08" PRIx32, segment->times[0],
             segment->first_window);
}

/* ---- the windows' keys in one order ---- */

#define SPAN_KEYS 2048u
#define NONE      UINT64_MAX /* no key: kinds are small (tbd_key()) */

struct merge {
    uint64_t next[TBD_KEY_WINDOWS]; /* each window's first key after the spans so far; or NONE */
    struct tbd_reader in[TBD_KEY_WINDOWS];
    uint32_t windows;
    uint64_t least;                   /* of `next` */
    uint64_t first;                   /* the span's first number */
    uint32_t word;                    /* of `present`: earlier words are done */
    uint64_t present[SPAN_KEYS / 64]; /* numbers with a mask */
    uint64_t masks[SPAN_KEYS];
};

/* The key after `key`; NONE after the last. */
static uint64_t key_after(struct tbd_reader *in, uint64_t key)
{
    return in->at < in->end ? key + tbd_reader_varint(in) : NONE;
}

static void merge_begin(struct merge *m, const struct tbd_key_segment *segment)
{
    *m = (struct merge){ .windows = segment->windows, .least = NONE, .word = SPAN_KEYS / 64 };
    for (uint32_t i = 0; i < segment->windows; i++) {
        const struct tbd_buffer *keys = &segment->keys[i];

        m->in[i] = (struct tbd_reader){ keys->bytes, keys->bytes + keys->used, false };
        m->next[i] = key_after(&m->in[i], 0);
        m->least = m->next[i] < m->least ? m->next[i] : m->least;
    }
}

/* The next span.  False when no window has more keys. */
static bool merge_span(struct merge *m)
{
    uint64_t first = m->least, least = NONE;

    if (first == NONE)
        return false;
    for (uint32_t i = 0; i < m->windows; i++) {
        uint64_t key = m->next[i];

        for (; key - first < SPAN_KEYS; key = key_after(&m->in[i], key)) {
            uint64_t at = key - first;

            m->masks[at] |= (uint64_t)1 << i;
            m->present[at / 64] |= (uint64_t)1 << at % 64;
        }
        m->next[i] = key;
        least = key < least ? key : least;
    }
    m->first = first;
    m->least = least;
    m->word = 0;
    return true;
}

/* The least key and the windows that have it; false when there are no more. */
static bool merge_next(struct merge *m, uint64_t *key, uint64_t *mask)
{
    uint32_t at;

    while (m->word == SPAN_KEYS / 64 || !m->present[m->word])
        if (m->word < SPAN_KEYS / 64)
            m->word++;
        else if (!merge_span(m))
            return false;
    at = m->word * 64 + (uint32_t)__builtin_ctzll(m->present[m->word]);
    m->present[m->word] &= m->present[m->word] - 1;
    *key = m->first + at;
    *mask = m->masks[at];
    m->masks[at] = 0;
    return true;
}

/* ---- coding ---- */

struct coder {
    struct tbd_buffer directory, data;
    uint64_t count, last, last_mask, all;
    size_t group_begin;
};

static void put_mask(struct coder *coder, uint64_t mask)
{
    unsigned lowest = (unsigned)__builtin_ctzll(mask);
    uint64_t above = lowest == 63 ? 0 : mask >> (lowest + 1);
    uint8_t token = (uint8_t)(lowest | TBD_KEY_MORE << 6);

    if (mask == coder->last_mask)
        token = TBD_KEY_SAME << 6;
    else if (!above)
        token = (uint8_t)(lowest | TBD_KEY_ALONE << 6);
    else if (mask == (coder->all & ~0ull << lowest))
        token = (uint8_t)(lowest | TBD_KEY_ON << 6);
    tbd_buffer_byte(&coder->data, token);
    if (token >> 6 == TBD_KEY_MORE)
        tbd_buffer_varint(&coder->data, above);
    coder->last_mask = mask;
}

static void finish_group(struct coder *coder)
{
    struct tbd_disk_key_group *group;

    if (!coder->count || coder->data.failed || coder->directory.failed)
        return;
    group = (void *)(coder->directory.bytes + coder->directory.used - sizeof(*group));
    group->checksum = (uint32_t)XXH3_64bits(coder->data.bytes + coder->group_begin,
                                            coder->data.used - coder->group_begin);
}

static void begin_group(struct coder *coder, uint64_t key)
{
    struct tbd_disk_key_group group = { .key = key, .offset = (uint32_t)coder->data.used };

    finish_group(coder);
    if (coder->data.used > UINT32_MAX)
        coder->data.failed = true;
    tbd_buffer_put(&coder->directory, &group, sizeof(group));
    coder->group_begin = coder->data.used;
    coder->last_mask = 0;
}

static void code_all(struct coder *coder, struct merge *m)
{
    uint64_t key, mask;

    while (merge_next(m, &key, &mask)) {
        if (coder->count % TBD_KEY_GROUP == 0)
            begin_group(coder, key);
        else
            tbd_buffer_varint(&coder->data, key - coder->last);
        TBD_INVARIANT("KEYS-1", coder->count == 0 || key > coder->last);
        TBD_INVARIANT("KEYS-2", (mask & ~coder->all) == 0 && mask != 0);
        put_mask(coder, mask);
        coder->last = key;
        coder->count++;
    }
    finish_group(coder);
}

void tbd_key_segment_encode(struct tbd_key_segment *segment, uint64_t trace_id,
                            struct tbd_buffer *out)
{
    struct tbd_disk_key_span span = { .windows = segment->windows };
    struct coder coder = { .all = segment->windows == 64 ? ~0ull
                                                         : ((uint64_t)1 << segment->windows) - 1 };
    struct merge m;
    size_t begin;

    merge_begin(&m, segment);
    code_all(&coder, &m);
    span.count = coder.count;
    span.bytes = coder.data.used;
    tbd_file_put_header(out, TBD_FILE_KEYS, segment->first_window, trace_id);
    begin = tbd_file_begin_record(out, TBD_REC_KEY_SPAN);
    tbd_buffer_put(out, &span, sizeof(span));
    tbd_buffer_put(out, segment->times, (segment->windows + 1) * sizeof(*segment->times));
    tbd_file_finish_record(out, begin);
    tbd_file_put_record(out, TBD_REC_KEY_DIRECTORY, coder.directory.bytes, coder.directory.used);
    tbd_buffer_put(out, coder.data.bytes, coder.data.used);
    out->failed |= coder.data.failed || coder.directory.failed;
    tbd_buffer_free(&coder.directory);
    tbd_buffer_free(&coder.data);
}
