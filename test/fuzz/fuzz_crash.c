// SPDX-License-Identifier: MIT
// links: tbd_query_rings tbd_format tbd_base
/* fuzz_crash.c - forged crash dumps
 *
 * Bit 0 of the first byte: the checksum stays as it was; the other bits: by how often 8 bytes the file is cut.
 * Then patches of (offset 2 bytes, length 1 byte, bytes) of a small good file.  Oracles: no crash; an error
 * says in one line what is wrong; in what opens, everything that is counted lies in the file and leads to
 * something that does; what rings are expanded to lies in them, too. */
#include "base/hash.h"
#include "format/files/crash_file.h"
#include "format/files/trace_dir.h"
#include "format/stream/condensed.h"
#include "query/rings/dump_rings.h"

#include "folder.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    MODULES = 2,
    BLOCKS = 6,
    THREADS = 3,
    WHEN = 5,
    PARTS = 2,
    KEPT = 7,
    VALUES = 3,
    CHUNKS = 2,
    CHUNK_IDS = 40,
    CHUNK_BYTES = 48,
    ENTRIES = 24,
    CODE = 64
};

struct file {
    struct tbd_crash_head head;
    struct tbd_crash_module modules[MODULES];
    struct tbd_crash_block blocks[BLOCKS];
    struct tbd_crash_thread threads[THREADS];
    struct tbd_crash_when when[WHEN]; /* 3 first, 2 last */
    struct tbd_crash_kept_part parts[PARTS];
    struct tbd_crash_kept kept[KEPT];
    struct tbd_crash_file_value values[VALUES];
    struct tbd_crash_chunk chunks[CHUNKS];
    uint32_t ids[BLOCKS];
    uint32_t entries[ENTRIES];
    uint8_t code[CODE];
    uint8_t older[CHUNKS][CHUNK_BYTES];
};

static char folder[FOLDER_BYTES];
static int dir;

static void check(bool fine)
{
    if (!fine)
        abort();
}

/* Eight bytes for each block: calls, a return, a jump anywhere, a branch, a return from a signal, nops alone. */
static const uint8_t code[CODE] = {
    0x90, 0x90, 0x90, 0xe8, 0x08, 0x00, 0x00, 0x00, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3,
    0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xe0, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x75, 0xf6,
    0x90, 0xb8, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0,
};

static void seal(struct file *file, size_t bytes)
{
    if (bytes < sizeof(file->head))
        return;
    file->head.checksum = 0;
    file->head.checksum = tbd_hash64(&file->head, sizeof(file->head)) ^
                          tbd_hash64(file->modules, bytes - sizeof(file->head));
}

/* Two chunks of the second thread. */
static void make_chunks(struct file *file)
{
    static struct tbd_condenser tables;
    static uint8_t bits[TBD_CHUNK_BYTES];
    uint32_t ids[CHUNK_IDS];

    for (unsigned i = 0; i < CHUNKS; i++) {
        uint64_t bytes;

        for (unsigned k = 0; k < CHUNK_IDS; k++)
            ids[k] = 1 + (k * k + i) % BLOCKS;
        bytes = tbd_condense(&tables, ids, CHUNK_IDS, 4, bits);
        check(bytes <= CHUNK_BYTES);
        memcpy(file->older[i], bits, bytes);
        file->chunks[i] = (struct tbd_crash_chunk){ .offset = (uint64_t)i * CHUNK_BYTES,
                                                    .bytes = (uint32_t)bytes,
                                                    .count = CHUNK_IDS,
                                                    .thread = 1,
                                                    .id_bits = 4 };
    }
    for (unsigned i = 0; i < BLOCKS; i++)
        file->ids[i] = BLOCKS - 1 - i;
    file->threads[1].older = (uint64_t)CHUNKS * CHUNK_IDS;
    file->head.chunk_count = CHUNKS;
    file->head.id_count = BLOCKS;
    file->head.older_bytes = sizeof(file->older);
}

static void make_good(struct file *file)
{
    memset(file, 0, sizeof(*file));
    file->head = (struct tbd_crash_head){ .magic = TBD_CRASH_MAGIC,
                                          .major = TBD_CRASH_MAJOR,
                                          .pid = 42,
                                          .module_count = MODULES,
                                          .block_count = BLOCKS,
                                          .thread_count = THREADS,
                                          .signo = 11,
                                          .entry_count = ENTRIES,
                                          .code_bytes = CODE,
                                          .first_count = 3,
                                          .last_count = WHEN - 3,
                                          .part_count = PARTS,
                                          .kept_count = KEPT,
                                          .value_count = VALUES,
                                          .tid = 42 };
    for (unsigned i = 0; i < MODULES; i++)
        file->modules[i] =
            (struct tbd_crash_module){ .start = 0x1000, .end = 0x9000, .path = "/app" };
    for (unsigned i = 0; i < BLOCKS; i++)
        file->blocks[i] = (struct tbd_crash_block){ 0x1000 + i * 16, 8, i % MODULES, i * 8, 0 };
    memcpy(file->code, code, sizeof(code));
    file->blocks[0].module = TBD_NO_MODULE;
    file->blocks[0].code_offset = TBD_NO_CODE;
    for (unsigned i = 0; i < THREADS; i++)
        file->threads[i] = (struct tbd_crash_thread){ 42 + i, 0, ENTRIES / THREADS, 0, i * 9 };
    for (unsigned i = 0; i < ENTRIES; i++)
        file->entries[i] = i % BLOCKS;
    for (unsigned i = 0; i < WHEN; i++)
        file->when[i] = (struct tbd_crash_when){ .time_us = i, .block = BLOCKS - 1 - i };
    for (unsigned i = 0; i < PARTS; i++)
        file->parts[i] = (struct tbd_crash_kept_part){ .name = "part" };
    for (unsigned i = 0; i < KEPT; i++)
        file->kept[i] = (struct tbd_crash_kept){ i, i % BLOCKS, 42, i % PARTS, 0 };
    for (unsigned i = 0; i < VALUES; i++)
        file->values[i] =
            (struct tbd_crash_file_value){ .entry = i + 1, .kind = i + 1 }; /* one of each kind */
    make_chunks(file);
    seal(file, sizeof(*file));
}

static void patch(struct file *file, const uint8_t *data, size_t size)
{
    uint8_t *bytes = (uint8_t *)file;

    for (size_t at = 0; at + 3 <= size;) {
        size_t offset = (data[at] | (size_t)data[at + 1] << 8) % sizeof(*file);
        size_t n = data[at + 2] % 9;

        at += 3;
        for (size_t i = 0; i < n && at < size && offset + i < sizeof(*file); i++)
            bytes[offset + i] = data[at++];
    }
}

/* Does [at, at + bytes) lie in the file? */
static bool is_inside(const struct tbd_crash_dump *dump, const void *at, uint64_t bytes)
{
    uint64_t offset = (uint64_t)((const uint8_t *)at - dump->data);

    return offset <= dump->bytes && bytes <= dump->bytes - offset;
}

static void check_entries(const struct tbd_crash_dump *dump, const uint32_t *entries,
                          uint64_t count)
{
    check(is_inside(dump, entries, count * sizeof(*entries)));
    for (uint64_t i = 0; i < count; i++) {
        check(entries[i] < dump->head->block_count);
        check(is_inside(dump, &dump->blocks[entries[i]], sizeof(struct tbd_crash_block)));
    }
}

static void check_dump(const struct tbd_crash_dump *dump)
{
    const uint32_t *entries = dump->entries;

    for (uint32_t i = 0; i < dump->head->module_count; i++) {
        check(is_inside(dump, &dump->modules[i], sizeof(dump->modules[i])));
        check(strnlen(dump->modules[i].path, TBD_CRASH_PATH_BYTES) < TBD_CRASH_PATH_BYTES);
    }
    for (uint32_t i = 0; i < dump->head->block_count; i++)
        check(dump->blocks[i].module == TBD_NO_MODULE ||
              dump->blocks[i].module < dump->head->module_count);
    for (uint32_t i = 0; i < dump->head->block_count; i++)
        check(
            dump->blocks[i].code_offset == TBD_NO_CODE ||
            is_inside(dump, dump->code + dump->blocks[i].code_offset, dump->blocks[i].code_bytes));
    for (uint64_t i = 0; i < (uint64_t)dump->head->first_count + dump->head->last_count; i++) {
        check(is_inside(dump, &dump->first[i], sizeof(dump->first[i])));
        check(dump->first[i].block < dump->head->block_count);
    }
    for (uint32_t i = 0; i < dump->head->part_count; i++)
        check(is_inside(dump, &dump->parts[i], sizeof(dump->parts[i])) &&
              strnlen(dump->parts[i].name, TBD_CRASH_PART_NAME) < TBD_CRASH_PART_NAME);
    for (uint32_t i = 0; i < dump->head->kept_count; i++)
        check(is_inside(dump, &dump->kept[i], sizeof(dump->kept[i])) &&
              dump->kept[i].block < dump->head->block_count &&
              dump->kept[i].part < dump->head->part_count);
    for (uint32_t i = 0; i < dump->head->thread_count; i++) {
        check(is_inside(dump, &dump->threads[i], sizeof(dump->threads[i])));
        check_entries(dump, entries, dump->threads[i].count);
        entries += dump->threads[i].count;
    }
}

static void check_steps(struct tbd_rings *rings, const struct tbd_rings_thread *thread)
{
    for (uint64_t i = 0; i < thread->count; i++) {
        const struct tbd_rings_step *step = &thread->walked.steps[i];
        const struct tbd_rings_block *block = tbd_rings_block(rings, step->block);

        check(step->insns <= block->insn_count);
        for (uint32_t k = 0; k < block->insn_count; k++) {
            const uint8_t *at = tbd_rings_code(rings, step->block, k);

            check(at == NULL || is_inside(&rings->dump, at, block->insns[k].length));
            check(tbd_rings_place(rings, step->block, k) != NULL);
        }
    }
}

static void check_calls(struct tbd_rings *rings, struct tbd_rings_thread *thread)
{
    struct tbd_rings_call *calls;
    struct tbd_rings_stack stack;
    size_t count;

    check(!tbd_rings_calls(rings, thread, &calls, &count));
    for (size_t i = 0; i < count; i++) {
        check(calls[i].from < thread->count && thread->walked.steps[calls[i].from].insns != 0);
        check(calls[i].until == UINT64_MAX ||
              (calls[i].until > calls[i].from && calls[i].until < thread->count));
    }
    free(calls);
    for (uint64_t at = 0; at < thread->count; at++) {
        check(!tbd_rings_stack(rings, thread, at, NULL, 0, &stack));
        check(stack.count >= 1 && stack.count <= 2 * thread->count + 2);
        free(stack.frames);
    }
}

/* Older entries lie in the dump, too, or are said to be damaged. */
static void check_older(struct tbd_rings *rings, struct tbd_rings_thread *thread)
{
    uint64_t all = thread->older + thread->count;

    for (uint64_t back = 1; back <= all && all < 4096; back += 1 + all / 7) {
        enum tbd_status status = tbd_rings_reach(rings, thread, back);

        if (status == TBD_CORRUPT)
            continue;
        check(!status && tbd_rings_has(thread, back));
        check(tbd_rings_steps(rings, thread) != NULL);
        check_steps(rings, thread);
    }
    check(tbd_rings_reach(rings, thread, all + 1) == TBD_NOTFOUND);
}

/* What opens can be expanded. */
static void check_rings(void)
{
    struct tbd_rings rings;

    check(!tbd_rings_open(folder, &rings, NULL));
    for (uint32_t i = 0; i < rings.dump.head->thread_count; i++) {
        check(tbd_rings_steps(&rings, &rings.threads[i]) != NULL);
        check_steps(&rings, &rings.threads[i]);
        check_calls(&rings, &rings.threads[i]);
        check_older(&rings, &rings.threads[i]);
    }
    check(tbd_rings_steps(&rings, &rings.first) != NULL);
    check(tbd_rings_steps(&rings, &rings.last) != NULL);
    if (rings.dump.head->part_count) {
        check(!tbd_rings_keep(&rings, NULL));
        check(tbd_rings_steps(&rings, &rings.kept) != NULL);
        check_steps(&rings, &rings.kept);
    }
    check_steps(&rings, &rings.first);
    check_steps(&rings, &rings.last);
    tbd_rings_close(&rings);
}

static void clean_up(void)
{
    close(dir);
    if (!folder_remove(folder))
        perror(folder);
}

static void set_up(void)
{
    struct tbd_crash_dump dump;
    struct file good;

    check(folder_make(folder, "fuzz"));
    dir = tbd_dir_open(folder);
    check(dir >= 0);
    atexit(clean_up);
    make_good(&good);
    check(!tbd_dir_write(dir, TBD_CRASH_FILE, &good, sizeof(good)));
    check(!tbd_crash_open(folder, &dump, NULL)); /* or every input would be refused */
    check_dump(&dump);
    tbd_crash_close(&dump);
    check_rings();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tbd_error why = { 0 };
    struct tbd_crash_dump dump;
    struct file file;
    size_t bytes;

    if (!folder[0])
        set_up();
    if (size < 1)
        return 0;
    make_good(&file);
    patch(&file, data + 1, size - 1);
    bytes = sizeof(file) - (data[0] >> 1) * 8u;
    if (!(data[0] & 1))
        seal(&file, bytes);
    check(!tbd_dir_write(dir, TBD_CRASH_FILE, &file, bytes));
    if (tbd_crash_open(folder, &dump, &why)) {
        check(why.detail[0] && !strchr(why.detail, '\n'));
        check(dump.data == NULL);
        return 0;
    }
    check_dump(&dump);
    tbd_crash_close(&dump);
    check_rings();
    return 0;
}
