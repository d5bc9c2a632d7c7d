// SPDX-License-Identifier: MIT
// links: tbd_organizer tbd_format tbd_base PkgConfig::XXHASH
// sources: ../unit/stream_maker.c
// iterations: 500
/* fuzz_aged.c - forged traces whose windows were lowered and merged
 *
 * The input patches a file of such a trace (byte 0 chooses it; then offset 2 bytes, length 1
 * byte, bytes), and all checksums are made good again.  Oracles: no crash, and an end to
 * everything that is done with what can be opened: loading, memory, summaries, merging what is
 * left, an index written anew. */
#include "format/merging/change.h"
#include "format/merging/index_write.h"
#include "format/merging/merge.h"
#include "format/window/window.h"
#include "format/pages/pages.h"
#include "format/reading/window_read.h"
#include "seal.h"
#include "small_trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define WINDOWS_MOST 16u

static const char *const names[] = { "index", "windows/0/000-3.toc", "windows/0/003.toc",
                                     "windows/0/004.toc", "image" };
#define NAMES (sizeof(names) / sizeof(names[0]))

static char root[FOLDER_BYTES], path[80];
static struct tbd_buffer good[NAMES];

static void read_file(size_t file)
{
    struct tbd_dir dir = { .fd = tbd_dir_open(path), .path = path };
    struct tbd_file mapped;

    check(!tbd_file_map(dir, names[file], &mapped, NULL));
    close(dir.fd);
    tbd_buffer_put(&good[file], mapped.bytes, mapped.size);
    tbd_file_close(&mapped);
}

static void merge_first(void)
{
    struct tbd_change change;
    struct tbd_writer *writer;
    struct tbd_trace *trace;

    check(!tbd_writer_open(path, &writer, NULL));
    check(!tbd_trace_open(path, &trace, NULL));
    check(!tbd_change_merge(trace, writer, 0, 3, TBD_LEVEL_COUNTS, 0, &change, NULL));
    check(!tbd_change_commit(writer, &change));
    tbd_change_free(&change);
    tbd_trace_close(trace);
    tbd_writer_free(writer);
}

static void clean_up(void)
{
    remove_small(root);
    for (size_t i = 0; i < NAMES; i++)
        tbd_buffer_free(&good[i]);
}

static void set_up(void)
{
    record_small(root, 99, 6, 20, (struct tbd_age_limits){ .level3 = 1, .level2 = 1 });
    snprintf(path, sizeof(path), "%s/fuzz-1", root);
    merge_first();
    for (size_t i = 0; i < NAMES; i++)
        read_file(i);
    atexit(clean_up);
}

static void use_window(struct tbd_trace *trace, uint32_t index)
{
    struct tbd_word_summary word;
    struct tbd_window *window;
    uint8_t page[4096];

    if (!tbd_window_load(trace, index, false, &window, NULL)) {
        for (size_t i = 0; i < window->word_count && i < 8; i++)
            check(tbd_trace_find_word(trace, index, window->words[i].word, &word) == TBD_OK);
        tbd_window_free(window);
    }
    for (uint64_t at = 0; at < SIM_PAGES; at += 3)
        check(tbd_trace_page_at_start(trace, index, SIM_BASE + at * 4096, page) != TBD_SYNTAX);
}

static void use(void)
{
    struct tbd_disk_shift shifts[WINDOWS_MOST];
    struct tbd_buffer out = { 0 };
    struct tbd_trace *trace;
    struct tbd_window *merged;
    uint32_t count;

    if (tbd_trace_open(path, &trace, NULL))
        return;
    count = tbd_trace_window_count(trace);
    count = count < WINDOWS_MOST ? count : WINDOWS_MOST;
    for (uint32_t i = 0; i < count; i++)
        use_window(trace, i);
    if (count && !tbd_merge_windows(trace, 0, count, TBD_LEVEL_COUNTS, &merged, shifts, NULL))
        tbd_window_free(merged);
    if (count)
        check(tbd_index_put(trace, count / 2, &out) != TBD_SYNTAX);
    tbd_buffer_free(&out);
    tbd_trace_close(trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes;
    size_t file;

    if (!root[0])
        set_up();
    if (size < 2)
        return 0;
    file = data[0] % NAMES;
    bytes = patched_copy(&good[file], data + 1, size - 1);
    write_whole(path, names[file], bytes, good[file].used);
    use();
    write_whole(path, names[file], good[file].bytes, good[file].used);
    free(bytes);
    return 0;
}
