// SPDX-License-Identifier: MIT
// links: tbd_format tbd_base
/* fuzz_condensed.c - forged memory of condensed laps, which a program can scribble over
 *
 * Patches of (offset 2 bytes, length 1 byte, bytes) of a ring's memory that has four chunks: its head, then its bytes.  Oracles: no
 * crash; the file that is written opens; the ring's own entry is its last one; and it has no more entries than chunks can have. */
#include "format/files/crash_file.h"
#include "format/files/trace_dir.h"

#include "folder.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PAGE = 4096, DEFS = 8, USED = 4096, IDS = 700 };
#define STRIDE (TBD_CRASH_RING_BYTES + (uint64_t)PAGE)
#define BYTES  ((uint64_t)TBD_CONDENSED_LEAST)

static char folder[FOLDER_BYTES];
static int dir;
static uint8_t *memory, *condensed;
static uint8_t good[sizeof(struct tbd_condensed) + USED];
static size_t memory_bytes;

static void check(bool fine)
{
    if (!fine)
        abort();
}

static void clean(void)
{
    close(dir);
    (void)folder_remove(folder);
    free(memory);
}

static void make_good(void)
{
    static struct tbd_condenser tables;
    static uint8_t bits[TBD_CHUNK_BYTES];
    uint32_t ids[IDS], at = 0;
    struct tbd_condensed head = { .lap = 5 };

    for (uint32_t lap = 1; lap <= 4; lap++) {
        struct tbd_condensed_chunk chunk = {
            .number = lap, .previous = head.newest, .lap = lap, .count = IDS, .id_bits = 4
        };
        uint64_t taken;

        for (uint32_t i = 0; i < IDS; i++)
            ids[i] = 1 + (i * lap / 3 + i / 50) % DEFS;
        taken = tbd_condense(&tables, ids, IDS, 4, bits);
        chunk.bytes = (uint32_t)(sizeof(chunk) + taken + 7) & ~7u;
        check(at + chunk.bytes + 8 <= USED);
        memcpy(good + sizeof(head) + at, &chunk, sizeof(chunk));
        memcpy(good + sizeof(head) + at + sizeof(chunk), bits, taken);
        head.newest = at + 1;
        at += chunk.bytes;
    }
    memcpy(good, &head, sizeof(head));
}

static void begin(void)
{
    uint64_t beside = TBD_CONDENSED_RINGS * (BYTES + TBD_CONDENSED_MORE), areas_at = PAGE * 4ull;
    uint32_t areas = TBD_CRASH_TABLES + (uint32_t)(beside / TBD_CRASH_RING_BYTES + 1);
    struct tbd_stream_head head = { .magic = TBD_STREAM_MAGIC,
                                    .version = TBD_STREAM_VERSION,
                                    .defs_offset = PAGE * 2ull,
                                    .areas_offset = areas_at,
                                    .area_bytes = TBD_CRASH_RING_BYTES,
                                    .area_count = areas,
                                    .def_capacity = DEFS,
                                    .def_count = DEFS };
    struct tbd_crash *crash;

    memory_bytes = areas_at + areas * STRIDE;
    memory = calloc(1, memory_bytes);
    check(memory && folder_make(folder, "fuzz-condensed"));
    dir = tbd_dir_open(folder);
    check(dir >= 0);
    memcpy(memory, &head, sizeof(head));
    crash = (struct tbd_crash *)(memory + areas_at);
    crash->thread_count = 1;
    crash->ring_bytes = TBD_CRASH_RING_BYTES;
    crash->condensed_bytes = BYTES;
    *(uint32_t *)(memory + areas_at + STRIDE) = DEFS;
    condensed = memory + areas_at + TBD_CRASH_TABLES * STRIDE;
    make_good();
    atexit(clean);
}

static void patch(uint8_t *forged, const uint8_t *data, size_t size)
{
    while (size > 3) {
        size_t at = (size_t)(data[0] | data[1] << 8) % sizeof(good), bytes = data[2];

        data += 3;
        size -= 3;
        bytes = bytes < size ? bytes : size;
        bytes = bytes < sizeof(good) - at ? bytes : sizeof(good) - at;
        memcpy(forged + at, data, bytes);
        data += bytes;
        size -= bytes;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t forged[sizeof(good)];
    struct tbd_crash_dump dump;
    struct tbd_error why;
    uint64_t count;

    if (!memory)
        begin();
    memcpy(forged, good, sizeof(good));
    patch(forged, data, size);
    memcpy(condensed, forged, sizeof(struct tbd_condensed));
    memcpy(condensed + TBD_CHUNKS_AT, forged + sizeof(struct tbd_condensed), USED);
    check(!tbd_crash_write(dir, memory, memory_bytes, 42));
    check(!tbd_crash_open(folder, &dump, &why));
    count = dump.head->entry_count;
    check(count >= 1 && count <= 1 + USED / sizeof(struct tbd_condensed_chunk) * TBD_CONDENSED_IDS);
    check(size > 3 || count == 4 * IDS + 1);
    check(dump.threads[0].count == count && dump.entries[count - 1] < dump.head->block_count);
    tbd_crash_close(&dump);
    return 0;
}
