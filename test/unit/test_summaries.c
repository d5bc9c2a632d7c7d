// SPDX-License-Identifier: MIT
// links: tbd_format tbd_base
/* Summaries of words and blocks, and the runs of level 1: every key that was put is found, with
 * what was put, and no other. */
#include "format/summaries/summaries.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KEYS_MOST 2000u
#define WINDOW    40u

static uint64_t seed;

static uint64_t random_below(uint64_t limit)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (seed >> 33) % limit;
}

/* Words and blocks with the same keys, the first of them `first`: runs of neighbours, and gaps of
 * one key and of many. */
struct sample {
    struct tbd_word_summary words[KEYS_MOST];
    struct tbd_block_summary blocks[KEYS_MOST];
    size_t count;
};

static void make(struct sample *sample, uint32_t first, size_t count)
{
    uint32_t key = first;

    memset(sample, 0, sizeof(*sample));
    for (size_t i = 0; i < count;
         i++, key += 1 + (uint32_t)(random_below(3) ? 0 : random_below(4))) {
        uint32_t previous = (uint32_t)random_below(WINDOW + 1);
        uint32_t enters = (uint32_t)random_below(3);

        sample->words[i] = (struct tbd_word_summary){
            .word = key * 8ull, .count = (uint32_t)i + 1, .last = key + 7, .previous = previous
        };
        sample->blocks[i] = (struct tbd_block_summary){ .id = key,
                                                        .count = (uint32_t)i + 3,
                                                        .last = key + 9,
                                                        .previous = previous,
                                                        .enters = enters,
                                                        .last_enter = enters ? key + 5 : 0 };
    }
    sample->count = count;
}

static struct tbd_record_view record_of(const struct tbd_buffer *out)
{
    struct tbd_record head;

    assert_false(out->failed);
    memcpy(&head, out->bytes, sizeof(head));
    return (struct tbd_record_view){ .type = head.type,
                                     .bytes = head.bytes,
                                     .payload = out->bytes + sizeof(head) };
}

static bool has(const struct sample *sample, uint32_t key, size_t *out)
{
    for (*out = 0; *out < sample->count; ++*out)
        if (sample->blocks[*out].id == key)
            return true;
    return false;
}

static void assert_same_word(const struct tbd_word_summary *found,
                             const struct tbd_word_summary *wanted)
{
    assert_int_equal(found->word, wanted->word);
    assert_int_equal(found->count, wanted->count);
    assert_int_equal(found->last, wanted->last);
    assert_int_equal(found->previous, wanted->previous);
}

static void check_words(const struct sample *sample)
{
    static struct tbd_word_summary all[KEYS_MOST];
    struct tbd_buffer out = { 0 };
    struct tbd_record_view record;
    struct tbd_word_summary found;
    uint32_t end = sample->blocks[sample->count - 1].id + 3;
    size_t count, at;

    tbd_words_put(&out, WINDOW, sample->words, sample->count);
    record = record_of(&out);
    assert_int_equal(tbd_summaries_count(&record, &count), TBD_OK);
    assert_int_equal(count, sample->count);
    assert_int_equal(tbd_words_get(&record, WINDOW, all), TBD_OK);
    for (size_t i = 0; i < count; i++)
        assert_same_word(&all[i], &sample->words[i]);
    for (uint32_t key = sample->blocks[0].id - 2; key < end; key++)
        if (has(sample, key, &at)) {
            assert_int_equal(tbd_words_find(&record, WINDOW, key * 8ull, &found), TBD_OK);
            assert_same_word(&found, &sample->words[at]);
        } else {
            assert_int_equal(tbd_words_find(&record, WINDOW, key * 8ull, &found), TBD_NOTFOUND);
        }
    tbd_buffer_free(&out);
}

static void check_blocks(const struct sample *sample)
{
    static struct tbd_block_summary all[KEYS_MOST];
    struct tbd_buffer out = { 0 };
    struct tbd_record_view record;
    struct tbd_block_summary found;
    uint32_t end = sample->blocks[sample->count - 1].id + 3;
    size_t at;

    tbd_block_summaries_put(&out, WINDOW, sample->blocks, sample->count);
    record = record_of(&out);
    assert_int_equal(tbd_block_summaries_get(&record, WINDOW, all), TBD_OK);
    assert_memory_equal(all, sample->blocks, sample->count * sizeof(all[0]));
    for (uint32_t key = sample->blocks[0].id - 2; key < end; key++)
        if (has(sample, key, &at)) {
            assert_int_equal(tbd_block_summaries_find(&record, WINDOW, key, &found), TBD_OK);
            assert_memory_equal(&found, &sample->blocks[at], sizeof(found));
        } else {
            assert_int_equal(tbd_block_summaries_find(&record, WINDOW, key, &found), TBD_NOTFOUND);
        }
    tbd_buffer_free(&out);
}

static void check_word_bits(const struct sample *sample)
{
    static struct tbd_word_summary all[KEYS_MOST];
    struct tbd_buffer out = { 0 };
    struct tbd_record_view record;
    uint32_t end = sample->blocks[sample->count - 1].id + 3;
    size_t count, at;

    tbd_word_bits_put(&out, sample->words, sample->count, NULL, 0);
    record = record_of(&out);
    assert_int_equal(tbd_bits_count(&record, &count), TBD_OK);
    assert_int_equal(count, sample->count);
    assert_int_equal(tbd_word_bits_get(&record, all), TBD_OK);
    for (size_t i = 0; i < count; i++)
        assert_true(all[i].word == sample->words[i].word && all[i].count == 1);
    for (uint32_t key = sample->blocks[0].id - 2; key < end; key++)
        assert_int_equal(tbd_word_bits_find(&record, key * 8ull),
                         has(sample, key, &at) ? TBD_OK : TBD_NOTFOUND);
    tbd_buffer_free(&out);
}

static void check_block_bits(const struct sample *sample)
{
    static struct tbd_block_summary all[KEYS_MOST];
    struct tbd_buffer out = { 0 }, entered = { 0 };
    struct tbd_record_view record, called;
    uint32_t end = sample->blocks[sample->count - 1].id + 3;
    size_t at;

    tbd_block_bits_put(&out, sample->blocks, sample->count, false);
    tbd_block_bits_put(&entered, sample->blocks, sample->count, true);
    record = record_of(&out);
    called = record_of(&entered);
    assert_int_equal(tbd_block_bits_get(&record, &called, all), TBD_OK);
    for (size_t i = 0; i < sample->count; i++) {
        assert_true(all[i].id == sample->blocks[i].id && all[i].count == 1);
        assert_int_equal(all[i].enters, sample->blocks[i].enters != 0);
    }
    for (uint32_t key = sample->blocks[0].id - 2; key < end; key++)
        assert_int_equal(tbd_block_bits_find(&record, key),
                         has(sample, key, &at) ? TBD_OK : TBD_NOTFOUND);
    tbd_buffer_free(&out);
    tbd_buffer_free(&entered);
}

static void every_key_is_found_and_no_other(void **state)
{
    static const size_t counts[] = { 1, 2, 31, 63, 64, 65, 128, 129, 500, KEYS_MOST };
    static struct sample sample;

    (void)state;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        seed = i;
        make(&sample, 2 + (uint32_t)random_below(1000), counts[i]);
        check_words(&sample);
        check_blocks(&sample);
        check_word_bits(&sample);
        check_block_bits(&sample);
    }
}

/* Pages 1 and 2 are neighbours; words lie before, between, in and after pages. */
static void all_words_of_pages_are_put_with_single_ones(void **state)
{
    static const uint64_t pages[] = { 0x1000, 0x2000, 0x5000 };
    static const struct tbd_word_summary words[] = { { .word = 0xff0 },  { .word = 0x1000 },
                                                     { .word = 0x2ff8 }, { .word = 0x3000 },
                                                     { .word = 0x4ff8 }, { .word = 0x5008 },
                                                     { .word = 0x7000 } };
    struct tbd_buffer out = { 0 };
    struct tbd_record_view record;
    size_t count;

    (void)state;
    tbd_word_bits_put(&out, words, 7, pages, 3);
    record = record_of(&out);
    assert_int_equal(tbd_bits_count(&record, &count), TBD_OK);
    assert_int_equal(count, 3 * 512 + 4);
    for (uint64_t word = 0; word < 0x8000; word += 8) {
        bool is_there = (word >= 0x1000 && word < 0x3000) || word >> 12 == 5 || word == 0xff0 ||
                        word == 0x3000 || word == 0x4ff8 || word == 0x7000;

        assert_int_equal(tbd_word_bits_find(&record, word), is_there ? TBD_OK : TBD_NOTFOUND);
    }
    tbd_buffer_free(&out);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_is_found_and_no_other),
        cmocka_unit_test(all_words_of_pages_are_put_with_single_ones),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
