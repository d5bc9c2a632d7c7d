// SPDX-License-Identifier: MIT
// links: tbd_organizer tbd_format tbd_base PkgConfig::XXHASH
// sources: ../unit/stream_maker.c
// iterations: 3000
/* fuzz_cache.c - forged files of what questions left: events of lowered windows, an answer
 *
 * The input patches one of them (byte 0 chooses it; then offset 2 bytes, length 1 byte, bytes), and
 * all checksums are made good again.  Oracles: no crash, and what can be loaded can be walked to
 * its end; an answer is given to its own question only. */
#include "format/files/trace_dir.h"
#include "format/merging/answer.h"
#include "format/merging/change.h"
#include "format/merging/replayed_events.h"
#include "format/reading/window_read.h"
#include "format/window/cursor.h"
#include "seal.h"
#include "small_trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define QUESTION "count store by func"
enum { RAISED_2, RAISED_1, ANSWER, FILES };

static char root[FOLDER_BYTES], path[80], names[FILES][64];
static struct tbd_dir folder; /* root */
static struct tbd_buffer good[FILES];
static struct tbd_trace *trace;

static void clean_up(void)
{
    tbd_trace_close(trace);
    remove_small(root);
    for (size_t i = 0; i < FILES; i++)
        tbd_buffer_free(&good[i]);
}

static void lower(uint32_t window, enum tbd_level level)
{
    struct tbd_change change;
    struct tbd_writer *writer;
    struct tbd_trace *whole;

    check(!tbd_writer_open(path, &writer, NULL));
    check(!tbd_trace_open(path, &whole, NULL));
    check(!tbd_change_lower(whole, writer, window, level, &change, NULL));
    check(!tbd_change_commit(writer, &change));
    tbd_change_free(&change);
    tbd_trace_close(whole);
    tbd_writer_free(writer);
}

/* Events of windows 0 and 1 as they were before these lost them. */
static void make_raised(void)
{
    struct tbd_window *windows[2];
    struct tbd_trace *whole;

    check(!tbd_trace_open(path, &whole, NULL));
    for (uint32_t i = 0; i < 2; i++) {
        check(!tbd_window_load(whole, i, true, &windows[i], NULL));
        lower(i, i == RAISED_2 ? TBD_LEVEL_COUNTS : TBD_LEVEL_BITS);
    }
    check(!tbd_trace_open(path, &trace, NULL));
    for (uint32_t i = 0; i < 2; i++) {
        tbd_raised_name(trace, i, names[i], sizeof(names[i]));
        tbd_raised_put(trace, windows[i], &good[i]);
        tbd_window_free(windows[i]);
    }
    tbd_trace_close(whole);
}

static void make_answer(void)
{
    char text[400];
    struct tbd_answer answer = { .question = QUESTION, .text = text, .bytes = sizeof(text) };

    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)('a' + i * i % 26);
    tbd_answer_name(QUESTION, names[ANSWER], sizeof(names[ANSWER]));
    tbd_answer_put(trace, &answer, &good[ANSWER]);
}

/* True: it was loaded. */
static bool use(size_t file)
{
    struct tbd_answer answer = { .question = QUESTION };
    struct tbd_window *window;
    struct tbd_cursor cursor;

    if (file == ANSWER) {
        if (tbd_answer_load(trace, folder, &answer, NULL))
            return false;
        check(strlen(answer.text) <= answer.bytes);
        free((void *)(uintptr_t)answer.text);
        return true;
    }
    if (tbd_raised_load(trace, (uint32_t)file, folder, names[file], &window, NULL))
        return false;
    if (tbd_cursor_seek(window, window->first_time, &cursor))
        while (cursor.kind != TBD_AT_END)
            tbd_cursor_next(&cursor);
    tbd_window_free(window);
    return true;
}

static void set_up(void)
{
    record_small(root, 17, 3, 30, (struct tbd_age_limits){ 0 });
    snprintf(path, sizeof(path), "%s/fuzz-1", root);
    folder = (struct tbd_dir){ .fd = tbd_dir_open(root), .path = root };
    make_raised();
    make_answer();
    for (size_t i = 0; i < FILES; i++) {
        write_whole(root, names[i], good[i].bytes, good[i].used);
        check(use(i));
    }
    atexit(clean_up);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes;
    size_t file;

    if (!root[0])
        set_up();
    if (size < 2)
        return 0;
    file = data[0] % FILES;
    bytes = patched_copy(&good[file], data + 1, size - 1);
    write_whole(root, names[file], bytes, good[file].used);
    (void)use(file);
    free(bytes);
    return 0;
}
