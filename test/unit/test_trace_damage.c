// SPDX-License-Identifier: MIT
// links: tbd_organizer tbd_format tbd_base
// sources: stream_maker.c
/* A small trace, each of its files cut off at every length (big ones: at many) and with bits
 * flipped: what is wrong is said with file and offset, and what loads is what was written. */
#include "format/trace.h"

#include "format/file.h"
#include "format/window.h"
#include "organizer/organize.h"
#include "stream_maker.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define WINDOWS 2u

static const char *const names[] = { "header", "index", "blocks", "image", "windows/0/000.toc",
                                     "windows/0/000.trace", "windows/0/000.blocks",
                                     "windows/0/001.toc" };
#define NAMES (sizeof(names) / sizeof(names[0]))

static char root[64];
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

static void write_file(size_t file, const uint8_t *bytes, size_t size)
{
    char path[160];
    int fd;

    path_of(file, path, sizeof(path));
    fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(tbd_write_all(fd, bytes, size), TBD_OK);
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
    snprintf(root, sizeof(root), "/tmp/tbd-test-damage-XXXXXX");
    if (!mkdtemp(root))
        return -1;
    maker_open(&m, 0);
    m.alone = true;
    sim_start(&s, &m, 8);
    for (int i = 0; i < 16; i++) {
        sim_step(&s);
        if (i % 8 == 7)
            sim_end_window(&s);
    }
    sim_end(&s);
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
    char command[128];

    (void)state;
    for (uint32_t w = 0; w < WINDOWS; w++)
        tbd_window_free(good[w]);
    snprintf(command, sizeof(command), "rm -rf '%s'", root);
    return system(command) ? -1 : 0;
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

/* Opens and loads everything; `size` is the damaged file's.  Returns what loaded. */
static unsigned use(size_t file, size_t size)
{
    struct tbd_error why;
    struct tbd_trace *trace = open_trace(&why);
    unsigned loaded = 0;

    if (!trace) {
        check_error(&why, file, size);
        return 0;
    }
    for (uint32_t w = 0; w < tbd_trace_window_count(trace); w++) {
        struct tbd_window *window;

        memset(&why, 0, sizeof(why));
        if (tbd_window_load(trace, w, true, &window, &why)) {
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

static void files_cut_off_at_any_length_are_told(void **state)
{
    (void)state;
    for (size_t file = 0; file < NAMES; file++) {
        struct content content = read_file(file);

        for (size_t size = 0; size < content.size; size += size < 700 ? 1 : 97) {
            unsigned loaded;

            write_file(file, content.bytes, size);
            loaded = use(file, size);
            /* the image is read only when asked for */
            if (file != 3)
                assert_true(loaded < WINDOWS || size + 8 > content.size || file == 1);
        }
        write_file(file, content.bytes, content.size);
        assert_int_equal(use(file, content.size), WINDOWS);
        free(content.bytes);
    }
}

static void flipped_bits_are_told_or_do_not_matter(void **state)
{
    uint64_t seed = 4242;

    (void)state;
    for (size_t file = 0; file < NAMES; file++) {
        struct content content = read_file(file);

        for (int i = 0; i < 300; i++) {
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

static void another_version_is_refused_by_name(void **state)
{
    struct content content = read_file(0);
    struct tbd_error why;

    (void)state;
    content.bytes[12]++;
    write_file(0, content.bytes, content.size);
    assert_null(open_trace(&why));
    assert_int_equal(why.status, TBD_UNSUPPORTED);
    content.bytes[12]--;
    content.bytes[0] = 'X';
    write_file(0, content.bytes, content.size);
    assert_null(open_trace(&why));
    assert_int_equal(why.status, TBD_BADMAGIC);
    content.bytes[0] = 'T';
    write_file(0, content.bytes, content.size);
    free(content.bytes);
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
        assert_true(use(file, content.size) < WINDOWS || file == 3);
        assert_int_equal(rename(aside, path), 0);
        free(content.bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_cut_off_at_any_length_are_told),
        cmocka_unit_test(flipped_bits_are_told_or_do_not_matter),
        cmocka_unit_test(another_version_is_refused_by_name),
        cmocka_unit_test(missing_files_are_named),
    };

    return cmocka_run_group_tests(tests, make_trace, remove_trace);
}
