// SPDX-License-Identifier: MIT
// links: tbd_organizer tbd_format tbd_base
// sources: stream_maker.c
/* A small trace, each of its files cut off at every length (big ones: at many) and with bits
 * flipped: damage is reported, what loads is what was written, and damage to one file affects only
 * windows that need it. */
#include "format/pages/pages.h"
#include "format/reading/window_read.h"
#include "format/window/window_make.h"

#include "folder.h"
#include "format/files/file.h"
#include "organizer/organize.h"
#include "stream_maker.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define WINDOWS 3u

static const char *const names[] = { "header",
                                     "index",
                                     "blocks",
                                     "image",
                                     "windows/0/000.toc",
                                     "windows/0/000.trace",
                                     "windows/0/000.blocks",
                                     "windows/0/001.toc",
                                     "windows/0/001.trace",
                                     "windows/0/001.blocks",
                                     "keys/0000000000000000-00000000" };
enum { HEADER, INDEX, BLOCKS, IMAGE, TOC_0, TRACE_0, ENTRIES_0, TOC_1, TRACE_1, ENTRIES_1, KEYS };
#define NAMES (sizeof(names) / sizeof(names[0]))

static char root[FOLDER_BYTES];
static struct tbd_window *good[WINDOWS]; /* keep their own memory and a reference on the blocks */

struct content {
    uint8_t *bytes;
    size_t size;
};

static void path_of(size_t file, char *out, size_t bytes)
{
    snprintf(out, bytes, "%s/latest/%s", root, names[file]);
}

static struct content read_file(size_t file)
{
    struct content content = { .bytes = malloc(1 << 20) };
    char path[160];
    FILE *in;

    path_of(file, path, sizeof(path));
    in = fopen(path, "rb");
    assert_non_null(in);
    assert_non_null(content.bytes);
    content.size = fread(content.bytes, 1, 1 << 20, in);
    fclose(in);
    return content;
}

/* Truncated last, not first: some file systems wait for the disk when a file is truncated to 0. */
static void write_file(size_t file, const uint8_t *bytes, size_t size)
{
    char path[160];
    int fd;

    path_of(file, path, sizeof(path));
    fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(tbd_write_all(fd, bytes, size), TBD_OK);
    assert_int_equal(ftruncate(fd, (off_t)size), 0);
    close(fd);
}

static struct tbd_trace *open_trace(struct tbd_error *why)
{
    struct tbd_trace *trace;
    char path[128];

    memset(why, 0, sizeof(*why));
    snprintf(path, sizeof(path), "%s/latest", root);
    return tbd_trace_open(path, &trace, why) ? NULL : trace;
}

static int make_trace(void **state)
{
    struct tbd_organize_options options = { .root = root, .program = "small", .threads = 1 };
    struct tbd_error why;
    struct tbd_trace *trace;
    static struct sim s;
    struct maker m;

    (void)state;
    if (!folder_make(root, "damage"))
        return -1;
    maker_open(&m, 0);
    m.alone = true;
    sim_run(&s, &m, 8, WINDOWS * 8, 8);
    options.stream_fd = m.fd;
    if (tbd_organize(&options, &why))
        return -1;
    maker_close(&m);
    sim_free(&s);
    trace = open_trace(&why);
    for (uint32_t w = 0; trace && w < WINDOWS; w++)
        if (tbd_window_load(trace, w, true, &good[w], &why))
            return -1;
    tbd_trace_close(trace);
    return trace ? 0 : -1;
}

static int remove_trace(void **state)
{
    (void)state;
    for (uint32_t w = 0; w < WINDOWS; w++)
        tbd_window_free(good[w]);
    return folder_remove(root) ? 0 : -1;
}

static void check_error(const struct tbd_error *why, size_t file, size_t size)
{
    if (!strstr(why->file, names[file]))
        print_message("%s is damaged, but the error is about %s: %s\n", names[file], why->file,
                      why->detail);
    assert_non_null(strstr(why->file, names[file]));
    assert_true(why->detail[0]);
    assert_int_not_equal(why->status, TBD_OK);
    assert_true(why->offset <= size);
}

static void check_same(const struct tbd_window *window, const struct tbd_window *expected)
{
    assert_int_equal(window->blocks, expected->blocks);
    assert_memory_equal(&window->regs, &expected->regs, sizeof(window->regs));
    assert_memory_equal(&window->end_regs, &expected->end_regs, sizeof(window->end_regs));
    assert_int_equal(window->digest, expected->digest);
    if (window->complete)
        assert_int_equal(window->digest, tbd_window_digest(window));
    assert_int_equal(window->entry_count, expected->entry_count);
    assert_memory_equal(window->entries, expected->entries, window->entry_count * 4);
    assert_int_equal(window->operand_bytes, expected->operand_bytes);
    assert_memory_equal(window->operands, expected->operands, window->operand_bytes);
    assert_int_equal(window->word_count, expected->word_count);
    for (size_t i = 0; i < window->word_count; i++) {
        assert_int_equal(window->words[i].word, expected->words[i].word);
        assert_int_equal(window->words[i].last, expected->words[i].last);
    }
    assert_int_equal(window->first_count, expected->first_count);
    for (size_t i = 0; i < window->first_count; i++)
        assert_memory_equal(window->first[i].bytes, expected->first[i].bytes, 4096);
}

/* Must this window load, whatever is wrong with `file`? */
static bool is_untouched(size_t file, uint32_t window)
{
    switch (file) {
    case TOC_0:
    case TRACE_0:
    case ENTRIES_0: return window != 0;
    case TOC_1:
    case TRACE_1:
    case ENTRIES_1: return window != 1;
    case BLOCKS: return false; /* all windows have the same few blocks */
    default: return true;
    }
}

/* Opens and loads everything; `size` is the damaged file's.  Returns what loaded. */
static unsigned use(size_t file, size_t size)
{
    struct tbd_error why;
    struct tbd_trace *trace = open_trace(&why);
    unsigned loaded = 0;

    assert_true(trace || file == HEADER);
    if (!trace) {
        check_error(&why, file, size);
        return 0;
    }
    assert_int_equal(tbd_trace_window_count(trace), WINDOWS);
    for (uint32_t w = 0; w < WINDOWS; w++) {
        struct tbd_window *window;

        memset(&why, 0, sizeof(why));
        if (tbd_window_load(trace, w, true, &window, &why)) {
            assert_false(is_untouched(file, w));
            if (tbd_trace_info(trace)->damage_count)
                assert_non_null(strstr(tbd_trace_damage(trace, 0), names[file]));
            else
                check_error(&why, file, size);
            continue;
        }
        check_same(window, good[w]);
        tbd_window_free(window);
        loaded++;
    }
    tbd_trace_close(trace);
    return loaded;
}

/* Unless TBD_LONG is set some lengths only, of which the beginning has most. */
static size_t next_length(size_t size)
{
    if (getenv("TBD_LONG"))
        return size + (size < 700 ? 3 : 97);
    return size + (size < 200 ? 3 : size < 700 ? 11 : 193);
}

static void files_cut_off_at_any_length_are_told(void **state)
{
    (void)state;
    for (size_t file = 0; file < NAMES; file++) {
        struct content content = read_file(file);

        for (size_t size = 0; size < content.size; size = next_length(size)) {
            unsigned loaded;

            write_file(file, content.bytes, size);
            loaded = use(file, size);
            /* the image and the keys are read only when needed; header and index are restored */
            if (file >= TOC_0 && file <= ENTRIES_1)
                assert_true(loaded == WINDOWS - 1 || size + 8 > content.size);
        }
        write_file(file, content.bytes, content.size);
        assert_int_equal(use(file, content.size), WINDOWS);
        free(content.bytes);
    }
}

/* Offsets between the records of a file, and its end. */
static size_t next_record(const struct content *content, size_t at)
{
    struct tbd_record head;

    memcpy(&head, content->bytes + at, sizeof(head));
    return at + sizeof(head) + ((head.bytes + 7) & ~7ull);
}

/* The rest of the index is good; the header has the full length. */
static void an_index_cut_off_between_records_is_told(void **state)
{
    struct content index = read_file(INDEX);
    unsigned cuts = 0;

    (void)state;
    for (size_t at = 64; at < index.size; at = next_record(&index, at)) {
        struct tbd_error why;
        struct tbd_trace *trace;

        write_file(INDEX, index.bytes, at);
        trace = open_trace(&why);
        assert_non_null(trace);
        assert_int_equal(tbd_trace_info(trace)->damage_count > 0, true);
        assert_non_null(strstr(tbd_trace_damage(trace, 0), "index"));
        assert_null(strstr(tbd_trace_info(trace)->end_text, "organizer died"));
        tbd_trace_close(trace);
        assert_int_equal(use(INDEX, at), WINDOWS); /* their TOCs restore them */
        cuts++;
    }
    assert_true(cuts > WINDOWS);
    write_file(INDEX, index.bytes, index.size);
    free(index.bytes);
}

/* A dead organizer has written no CLOSED record, and its index has no end. */
static void a_dead_organizer_is_no_damage(void **state)
{
    struct content index = read_file(INDEX), header = read_file(HEADER);
    size_t end = 64, closed = 64;
    struct tbd_error why;
    struct tbd_trace *trace;

    (void)state;
    while (next_record(&index, end) < index.size)
        end = next_record(&index, end);
    while (next_record(&header, closed) < header.size)
        closed = next_record(&header, closed);
    write_file(INDEX, index.bytes, end);
    write_file(HEADER, header.bytes, closed);
    trace = open_trace(&why);
    assert_non_null(trace);
    assert_int_equal(tbd_trace_info(trace)->damage_count, 0);
    assert_string_equal(tbd_trace_info(trace)->end_text, "the organizer died");
    assert_int_equal(tbd_trace_window_count(trace), WINDOWS);
    tbd_trace_close(trace);
    write_file(INDEX, index.bytes, index.size);
    write_file(HEADER, header.bytes, header.size);
    free(index.bytes);
    free(header.bytes);
}

static void flipped_bits_are_told_or_do_not_matter(void **state)
{
    uint64_t seed = 4242;
    int flips = getenv("TBD_LONG") ? 200 : 80;

    (void)state;
    for (size_t file = 0; file < NAMES; file++) {
        struct content content = read_file(file);

        for (int i = 0; i < flips; i++) {
            size_t at;

            seed = seed * 6364136223846793005ull + 1442695040888963407ull;
            at = (size_t)(seed >> 33) % content.size;
            content.bytes[at] ^= (uint8_t)(1u << (seed >> 20 & 7));
            write_file(file, content.bytes, content.size);
            use(file, content.size);
            content.bytes[at] ^= (uint8_t)(1u << (seed >> 20 & 7));
        }
        write_file(file, content.bytes, content.size);
        free(content.bytes);
    }
}

/* Changed in all files: in one it would be damage. */
static void another_version_is_refused_by_name(void **state)
{
    struct content header = read_file(HEADER);
    struct content index = read_file(INDEX);
    struct tbd_error why;

    (void)state;
    header.bytes[12]++;
    index.bytes[12]++;
    write_file(HEADER, header.bytes, header.size);
    write_file(INDEX, index.bytes, index.size);
    assert_null(open_trace(&why));
    assert_int_equal(why.status, TBD_UNSUPPORTED);
    header.bytes[12]--;
    index.bytes[12]--;
    header.bytes[0] = index.bytes[0] = 'X';
    write_file(HEADER, header.bytes, header.size);
    write_file(INDEX, index.bytes, index.size);
    assert_null(open_trace(&why));
    assert_int_equal(why.status, TBD_BADMAGIC);
    header.bytes[0] = index.bytes[0] = 'T';
    write_file(HEADER, header.bytes, header.size);
    write_file(INDEX, index.bytes, index.size);
    free(header.bytes);
    free(index.bytes);
}

/* A window whose index record and TOC are damaged: the others keep their times, and memory that it
 * may have modified is unknown after it. */
static void a_lost_window_is_not_made_up(void **state)
{
    struct content index = read_file(INDEX);
    struct content toc = read_file(TOC_1);
    struct tbd_trace *trace;
    struct tbd_window *window;
    struct tbd_error why;
    uint8_t page[4096];
    unsigned lost = 0, unknown = 0;

    (void)state;
    write_file(TOC_1, toc.bytes, 100);
    for (size_t at = 64; at < index.size; at += 8) {
        index.bytes[at] ^= 1;
        write_file(INDEX, index.bytes, index.size);
        index.bytes[at] ^= 1;
        trace = open_trace(&why);
        assert_non_null(trace);
        assert_int_equal(tbd_trace_window_count(trace), WINDOWS);
        assert_int_equal(tbd_trace_window(trace, 2)->first_time, good[2]->first_time);
        assert_int_not_equal(tbd_window_load(trace, 1, false, &window, &why), TBD_OK);
        lost += tbd_trace_window(trace, 1)->is_lost;
        if (tbd_trace_window(trace, 1)->is_lost)
            for (size_t i = 0; i < good[1]->dirty_count; i++)
                unknown +=
                    tbd_trace_page_at_start(trace, 2, good[1]->dirty[i].address, page) != TBD_OK;
        tbd_trace_close(trace);
    }
    assert_in_range(lost, 5, index.size / 8);
    assert_true(unknown >= lost);
    write_file(INDEX, index.bytes, index.size);
    write_file(TOC_1, toc.bytes, toc.size);
    free(index.bytes);
    free(toc.bytes);
}

/* Makes the folder old, so that a missing header does not look like one that is just being
 * written. */
static void make_old(void)
{
    static const struct timespec times[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
    char path[128];

    snprintf(path, sizeof(path), "%s/latest", root);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void missing_files_are_named(void **state)
{
    (void)state;
    for (size_t file = 0; file < NAMES; file++) {
        struct content content = read_file(file);
        char path[160], aside[168];

        path_of(file, path, sizeof(path));
        snprintf(aside, sizeof(aside), "%s.aside", path);
        assert_int_equal(rename(path, aside), 0);
        make_old();
        if (file != INDEX && file != BLOCKS)
            assert_true(use(file, content.size) < WINDOWS || file == IMAGE || file == KEYS);
        assert_int_equal(rename(aside, path), 0);
        free(content.bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_cut_off_at_any_length_are_told),
        cmocka_unit_test(an_index_cut_off_between_records_is_told),
        cmocka_unit_test(a_dead_organizer_is_no_damage),
        cmocka_unit_test(flipped_bits_are_told_or_do_not_matter),
        cmocka_unit_test(another_version_is_refused_by_name),
        cmocka_unit_test(a_lost_window_is_not_made_up),
        cmocka_unit_test(missing_files_are_named),
    };

    return cmocka_run_group_tests(tests, make_trace, remove_trace);
}
