// SPDX-License-Identifier: MIT
// links: tbd_format tbd_base
/* The index over windows: answers of random segments against the sets they were made from; damage
 * never loses a window. */
#include "format/summaries/keys.h"

#include "folder.h"
#include "format/files/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <unistd.h>

#include <cmocka.h>

#define KEYS 3000u
#define ID   77u

static uint64_t seed = 1;
static uint64_t keys[KEYS];
static uint64_t masks[KEYS]; /* in which windows keys[i] is */

static uint64_t next_random(void)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return seed >> 33;
}

/* Runs of neighbours with the same mask, and single keys, as in real programs. */
static void make_keys(uint64_t all)
{
    uint64_t key = tbd_key(TBD_KEY_WORD, 1000);

    for (size_t i = 0; i < KEYS; i++) {
        uint64_t mask = next_random() << 33 ^ next_random();

        key += next_random() % 8 ? 1 : 1 + next_random() % 100000;
        if (i == KEYS / 2)
            key = tbd_key(TBD_KEY_BLOCK, 1);
        keys[i] = key;
        if (i && next_random() % 4)
            masks[i] = masks[i - 1];
        else if (next_random() % 2)
            masks[i] = (uint64_t)1 << next_random() % 64 & all;
        else
            masks[i] = next_random() % 2 ? mask & all : ~0ull << next_random() % 64 & all;
        if (!masks[i])
            masks[i] = 1;
    }
}

static void make_segment(struct tbd_key_segment *segment, uint32_t windows)
{
    *segment = (struct tbd_key_segment){ 0 };
    for (uint32_t w = 0; w < windows; w++) {
        struct tbd_buffer coded = { 0 };
        uint64_t last = 0;

        for (size_t i = 0; i < KEYS; i++) {
            if (!(masks[i] >> w & 1))
                continue;
            tbd_buffer_varint(&coded, keys[i] - last);
            last = keys[i];
        }
        assert_true(tbd_key_segment_add(segment, 5 + w, 100 * (uint64_t)w, 100, &coded));
    }
}

static void write_segment(const char *path, const struct tbd_buffer *file)
{
    char name[128];
    int fd;

    snprintf(name, sizeof(name), "%s/keys/0000000000000000-00000005", path);
    fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(tbd_write_all(fd, file->bytes, file->used), TBD_OK);
    close(fd);
}

static void make_folder(char *path)
{
    char name[128];

    assert_true(folder_make(path, "keys"));
    snprintf(name, sizeof(name), "%s/keys", path);
    assert_int_equal(mkdir(name, 0700), 0);
}

static uint64_t expected_range(uint64_t first, uint64_t last)
{
    uint64_t mask = 0;

    for (size_t i = 0; i < KEYS; i++)
        mask |= keys[i] >= first && keys[i] <= last ? masks[i] : 0;
    return mask;
}

static void check_answers(const struct tbd_keys *asked)
{
    for (int i = 0; i < 3000; i++) {
        size_t at = next_random() % KEYS;
        uint64_t first = keys[at] - next_random() % 3;
        uint64_t last = first + next_random() % (i % 3 ? 3 : 3000);

        assert_int_equal(tbd_keys_range(asked, first, last), expected_range(first, last));
    }
    assert_int_equal(tbd_keys_range(asked, 0, keys[0] - 1), 0);
    assert_int_equal(tbd_keys_range(asked, keys[KEYS - 1] + 1, UINT64_MAX), 0);
    for (int i = 0; i < 200; i++) {
        uint64_t wanted[64];
        uint64_t mask = 0;
        size_t at = next_random() % (KEYS - 64 * 40);

        for (size_t k = 0; k < 64; k++) {
            at += 1 + next_random() % 39;
            wanted[k] = keys[at] - 1 + next_random() % 2;
            if (k && wanted[k] <= wanted[k - 1])
                wanted[k] = wanted[k - 1] + 1;
            mask |= expected_range(wanted[k], wanted[k]);
        }
        assert_int_equal(tbd_keys_any(asked, wanted, 64), mask);
    }
}

static void segments_answer_what_they_were_made_of(void **state)
{
    static const uint32_t sizes[] = { 1, 2, 31, 63, 64 };
    char path[FOLDER_BYTES];

    (void)state;
    make_folder(path);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct tbd_key_segment segment;
        struct tbd_buffer file = { 0 };
        struct tbd_key_files files = { 0 };
        struct tbd_dir dir = { .fd = tbd_dir_open(path), .path = path };
        const struct tbd_keys *asked;
        uint64_t blocks;

        make_keys(sizes[i] == 64 ? ~0ull : ((uint64_t)1 << sizes[i]) - 1);
        make_segment(&segment, sizes[i]);
        tbd_key_segment_encode(&segment, ID, &file);
        assert_false(file.failed);
        write_segment(path, &file);
        tbd_key_files_list(&files, dir.fd);
        assert_int_equal(files.count, 1);
        asked = tbd_key_files_get(&files, 0, dir, ID);
        assert_non_null(asked);
        check_answers(asked);
        assert_int_equal(tbd_keys_windows(asked, 0, 100, &blocks), 1);
        assert_int_equal(blocks, 100);
        assert_int_equal(tbd_keys_windows(asked, 0, 100 * (uint64_t)sizes[i], &blocks),
                         tbd_keys_all(asked));
        assert_int_equal(tbd_keys_windows(asked, 50, 20, &blocks), 0);
        tbd_key_files_free(&files);
        close(dir.fd);
        tbd_key_segment_clear(&segment);
        tbd_buffer_free(&file);
    }
    assert_true(folder_remove(path));
}

/* No program has the second address, but a stream that was written over may.  Its key is less. */
static void words_at_impossible_addresses_have_keys_in_order(void **state)
{
    const struct tbd_word_summary words[] = { { .word = 80 }, { .word = ((uint64_t)1 << 62) + 8 } };
    const struct tbd_window window = { .words = words, .word_count = 2 };
    struct tbd_key_segment segment = { 0 };
    struct tbd_buffer coded = { 0 };
    struct tbd_reader in;
    uint64_t first, second;

    (void)state;
    tbd_keys_collect(&window, &coded);
    assert_false(coded.failed);
    in = (struct tbd_reader){ coded.bytes, coded.bytes + coded.used, false };
    first = tbd_reader_varint(&in);
    second = first + tbd_reader_varint(&in);
    assert_true(first == tbd_key(TBD_KEY_WORD, words[1].word / 8));
    assert_true(second == tbd_key(TBD_KEY_WORD, words[0].word / 8));
    assert_true(in.at == in.end);
    assert_true(tbd_key_segment_add(&segment, 0, 0, 1, &coded));
    tbd_key_segment_clear(&segment);
}

static void windows_that_do_not_follow_are_refused(void **state)
{
    struct tbd_key_segment segment = { 0 };
    struct tbd_buffer none = { 0 };

    (void)state;
    assert_true(tbd_key_segment_add(&segment, 3, 10, 5, &none));
    assert_false(tbd_key_segment_add(&segment, 5, 15, 5, &none));
    assert_false(tbd_key_segment_add(&segment, 4, 16, 5, &none));
    for (uint32_t w = 4; w < 3 + TBD_KEY_WINDOWS; w++)
        assert_true(tbd_key_segment_add(&segment, w, 10 + 5 * (uint64_t)(w - 3), 5, &none));
    assert_true(tbd_key_segment_is_full(&segment));
    assert_false(tbd_key_segment_add(&segment, 3 + TBD_KEY_WINDOWS, 330, 5, &none));
    tbd_key_segment_clear(&segment);
}

/* Is the key among those collected from the window? */
static bool is_collected(const struct tbd_window *window, uint64_t wanted)
{
    struct tbd_buffer out = { 0 };
    struct tbd_reader in;
    uint64_t key = 0;
    bool found = false;

    tbd_keys_collect(window, &out);
    in = (struct tbd_reader){ out.bytes, out.bytes + out.used, false };
    while (in.at < in.end && !found) {
        key += tbd_reader_varint(&in);
        found = key == wanted;
    }
    assert_false(in.failed || out.failed);
    tbd_buffer_free(&out);
    return found;
}

static void blocks_have_keys_for_entries_and_calls(void **state)
{
    static const struct {
        struct tbd_block_summary block;
        bool may_be_called;
    } rows[] = {
        { { .id = 3, .count = 2, .enters = 0 }, false },
        { { .id = 4, .count = 2, .enters = 1 }, true },
        { { .id = 9, .count = 2, .enters = 2 }, true },
        { { .id = 12, .count = 0, .enters = 0 }, true }, /* not counted */
    };
    struct tbd_block_summary blocks[4];
    struct tbd_window window = { .block_summaries = blocks, .block_summary_count = 4 };

    (void)state;
    for (size_t i = 0; i < 4; i++)
        blocks[i] = rows[i].block;
    for (size_t i = 0; i < 4; i++) {
        assert_true(is_collected(&window, tbd_key(TBD_KEY_BLOCK, blocks[i].id)));
        assert_int_equal(is_collected(&window, tbd_key(TBD_KEY_ENTER, blocks[i].id)),
                         rows[i].may_be_called);
    }
    assert_false(is_collected(&window, tbd_key(TBD_KEY_BLOCK, 5)));
    assert_false(is_collected(&window, tbd_key(TBD_KEY_ENTER, 5)));
}

/* A damaged file is refused, or its answers include every window that has the key. */
static void damage_leaves_no_window_out(void **state)
{
    struct tbd_key_segment segment;
    struct tbd_buffer file = { 0 };
    char path[FOLDER_BYTES];
    unsigned refused = 0;

    (void)state;
    make_folder(path);
    make_keys(~0ull);
    make_segment(&segment, 64);
    tbd_key_segment_encode(&segment, ID, &file);
    for (int i = 0; i < 600; i++) {
        size_t whole = file.used;
        size_t at = next_random() % whole;
        uint8_t bit = (uint8_t)(1u << next_random() % 8);
        struct tbd_key_files files = { 0 };
        struct tbd_dir dir = { .fd = tbd_dir_open(path), .path = path };
        const struct tbd_keys *asked;

        if (i % 3)
            file.bytes[at] ^= bit;
        else
            file.used = at;
        write_segment(path, &file);
        tbd_key_files_list(&files, dir.fd);
        asked = tbd_key_files_get(&files, 0, dir, ID);
        refused += !asked;
        for (int k = 0; asked && k < 200; k++) {
            size_t key = next_random() % KEYS;

            assert_int_equal(tbd_keys_range(asked, keys[key], keys[key]) & masks[key], masks[key]);
            assert_int_equal(tbd_keys_any(asked, &keys[key], 1) & masks[key], masks[key]);
        }
        tbd_key_files_free(&files);
        close(dir.fd);
        file.used = whole;
        if (i % 3)
            file.bytes[at] ^= bit;
    }
    assert_in_range(refused, 100, 599);
    tbd_key_segment_clear(&segment);
    tbd_buffer_free(&file);
    assert_true(folder_remove(path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_answer_what_they_were_made_of),
        cmocka_unit_test(words_at_impossible_addresses_have_keys_in_order),
        cmocka_unit_test(windows_that_do_not_follow_are_refused),
        cmocka_unit_test(blocks_have_keys_for_entries_and_calls),
        cmocka_unit_test(damage_leaves_no_window_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
