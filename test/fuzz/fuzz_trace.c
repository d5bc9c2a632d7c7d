// SPDX-License-Identifier: MIT
// links: tbd_organizer tbd_format tbd_base PkgConfig::XXHASH
// sources: ../unit/stream_maker.c
// iterations: 1000
/* fuzz_trace.c - damaged and forged trace directories
 *
 * The input patches a small good trace: byte 0 chooses the file, byte 1 whether checksums are made
 * good again (so that the code after these checks is reached), byte 2 whether the file is cut off;
 * then patches of (offset 2 bytes, length 1 byte, bytes).  Oracles: no crash; an error has a file
 * and a text; a window that loads can be walked to its end, with as many blocks as it says, and
 * what is picked of its files is what is picked of it; with honest checksums, what loads is what
 * was written. */
#include "format/coding/pick.h"
#include "format/pages/pages.h"
#include "format/reading/window_read.h"
#include "format/window/cursor.h"
#include "seal.h"
#include "small_trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define WINDOWS 2u

static const char *const names[] = { "header",
                                     "index",
                                     "blocks",
                                     "image",
                                     "windows/0/000.toc",
                                     "windows/0/000.trace",
                                     "windows/0/000.blocks" };
#define NAMES (sizeof(names) / sizeof(names[0]))

static char root[FOLDER_BYTES], path[80];
static char *good[NAMES];
static size_t good_size[NAMES];
static uint64_t good_digest[WINDOWS];

static void read_good(size_t file)
{
    char name[160];
    FILE *in;

    snprintf(name, sizeof(name), "%s/%s", path, names[file]);
    in = fopen(name, "rb");
    good[file] = malloc(1 << 20);
    check(in && good[file]);
    good_size[file] = fread(good[file], 1, 1 << 20, in);
    check(good_size[file] > 0 && good_size[file] < 65536);
    fclose(in);
}

static uint64_t digest_of(const struct tbd_window *window)
{
    XXH3_state_t *state = XXH3_createState();
    uint64_t digest;

    check(state);
    XXH3_64bits_reset(state);
    XXH3_64bits_update(state, &window->regs, sizeof(window->regs));
    XXH3_64bits_update(state, &window->digest, sizeof(window->digest));
    XXH3_64bits_update(state, window->entries, window->entry_count * 4);
    XXH3_64bits_update(state, window->operands, window->operand_bytes);
    for (size_t i = 0; i < window->first_count; i++)
        XXH3_64bits_update(state, window->first[i].bytes, 4096);
    for (size_t i = 0; i < window->word_count; i++)
        XXH3_64bits_update(state, &window->words[i].word, 8);
    digest = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return digest;
}

static void clean_up(void)
{
    remove_small(root);
    for (size_t i = 0; i < NAMES; i++)
        free(good[i]);
}

static void use(bool honest);

static void set_up(void)
{
    record_small(root, 99, 2, 20, (struct tbd_age_limits){ 0 });
    snprintf(path, sizeof(path), "%s/latest", root);
    for (size_t i = 0; i < NAMES; i++)
        read_good(i);
    atexit(clean_up);
    use(true);
    check(good_digest[0] && good_digest[1]);
}

/* ---- using a trace ---- */

static void walk(struct tbd_trace *trace, const struct tbd_window *window)
{
    struct tbd_position pos = { window->first_time, 0 };
    uint64_t blocks = 0;
    struct tbd_cursor c;
    uint8_t bytes[64];

    for (tbd_cursor_first(window, &c); c.kind != TBD_AT_END; tbd_cursor_next(&c)) {
        blocks += c.kind == TBD_AT_BLOCK;
        if (c.kind == TBD_AT_OP && c.op->kind == TBD_OP_STORE)
            pos = (struct tbd_position){ c.time, c.op->insn };
    }
    check(blocks == window->blocks);
    for (uint64_t page = 0; page < SIM_PAGES; page += 5) {
        enum tbd_status status =
            tbd_trace_read(trace, window, pos, SIM_BASE + page * 4096 + 4070, bytes, sizeof(bytes));

        check(status != TBD_SYNTAX);
    }
}

#define BLOCKS 64u

static struct tbd_picker *make_picker(void)
{
    static uint8_t blocks[BLOCKS];
    struct tbd_pick pick = { .blocks = blocks, .block_count = BLOCKS, .range_count = 1 };

    for (uint32_t id = 0; id < BLOCKS; id += 7)
        blocks[id] = id % 2 ? TBD_PICK_OPS : TBD_PICK_ENTERED;
    pick.ranges[0] = (struct tbd_pick_range){ SIM_BASE + 4096, SIM_BASE + 4 * 4096 };
    return tbd_picker_new(&pick);
}

static void compare(const struct tbd_window *a, const struct tbd_window *b)
{
    struct tbd_cursor x, y;

    check(a->entry_count == b->entry_count);
    tbd_cursor_first(a, &x);
    tbd_cursor_first(b, &y);
    for (; x.kind != TBD_AT_END; tbd_cursor_next(&x), tbd_cursor_next(&y)) {
        check(x.kind == y.kind && x.time == y.time && x.id == y.id && x.op == y.op);
        check(x.kind != TBD_AT_OP || !memcmp(x.record, y.record, x.block->def.operand_bytes));
    }
    check(y.kind == TBD_AT_END);
}

/* Picks from the window's files, and compares with events picked from `whole`, if that is not
 * NULL. */
static void pick(struct tbd_trace *trace, uint32_t index, const struct tbd_window *whole)
{
    struct tbd_picker *picker = make_picker();
    struct tbd_window *raw = NULL, *coded;
    struct tbd_error why = { 0 };
    enum tbd_status status;

    check(picker);
    status = tbd_window_load_picked(trace, index, picker, &coded, &why);
    check(!status || (why.file[0] && why.detail[0]));
    if (whole) {
        check(!status && !tbd_picker_pick(picker, whole, &raw));
        compare(raw, coded);
    }
    tbd_window_free(raw);
    if (!status)
        tbd_window_free(coded);
    tbd_picker_free(picker);
}

static void use(bool honest)
{
    struct tbd_error why = { 0 };
    struct tbd_trace *trace;
    const struct tbd_region *regions;
    size_t count;

    if (tbd_trace_open(path, &trace, &why)) {
        check(why.file[0] && why.detail[0]);
        return;
    }
    for (uint32_t w = 0; w < tbd_trace_window_count(trace) && w < WINDOWS; w++) {
        struct tbd_window *window;

        memset(&why, 0, sizeof(why));
        if (tbd_window_load(trace, w, true, &window, &why)) {
            check(why.file[0] && why.detail[0]);
            pick(trace, w, NULL);
            continue;
        }
        if (!good_digest[w])
            good_digest[w] = digest_of(window);
        if (honest)
            check(digest_of(window) == good_digest[w]);
        walk(trace, window);
        pick(trace, w, window);
        tbd_window_free(window);
        check(!tbd_trace_regions(trace, w, &regions, &count, &why));
    }
    tbd_trace_close(trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t bytes[65536];
    size_t file, length;
    bool honest;

    if (!root[0])
        set_up();
    if (size < 3)
        return 0;
    file = data[0] % NAMES;
    honest = data[1] % 4 == 0;
    length = data[2] >= 0xe0 ? good_size[file] * (data[2] & 0x1f) / 32 : good_size[file];
    memcpy(bytes, good[file], good_size[file]);
    for (size_t at = 3; at + 4 <= size;) {
        size_t offset = (data[at] | (size_t)data[at + 1] << 8) % good_size[file];
        size_t n = data[at + 2] % 9;

        at += 3;
        for (size_t i = 0; i < n && at < size && offset + i < good_size[file]; i++)
            bytes[offset + i] = data[at++];
    }
    if (!honest && file < 5 && length >= sizeof(struct tbd_file_header))
        seal_records(bytes, length);
    else if (!honest)
        seal_packed(bytes, length);
    write_whole(path, names[file], bytes, length);
    use(honest);
    write_whole(path, names[file], good[file], good_size[file]);
    return 0;
}
