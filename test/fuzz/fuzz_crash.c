// SPDX-License-Identifier: MIT
// links: tbd_format tbd_base
/* fuzz_crash.c - forged crash dumps
 *
 * Bit 0 of the first byte: the checksum stays as it was; the other bits: by how often 8 bytes the file is cut.
 * Then patches of (offset 2 bytes, length 1 byte, bytes) of a small good file.  Oracles: no crash; an error
 * says in one line what is wrong; in what opens, everything that is counted lies in the file and leads to
 * something that does. */
#include "base/hash.h"
#include "format/files/crash_file.h"
#include "format/files/trace_dir.h"

#include "folder.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MODULES = 2, BLOCKS = 6, THREADS = 3, ENTRIES = 24, CODE = 64 };

struct file {
    struct tbd_crash_head head;
    struct tbd_crash_module modules[MODULES];
    struct tbd_crash_block blocks[BLOCKS];
    struct tbd_crash_thread threads[THREADS];
    uint32_t entries[ENTRIES];
    uint8_t code[CODE];
};

static char folder[FOLDER_BYTES];
static int dir;

static void check(bool fine)
{
    if (!fine)
        abort();
}

static void seal(struct file *file, size_t bytes)
{
    if (bytes < sizeof(file->head))
        return;
    file->head.checksum = 0;
    file->head.checksum = tbd_hash64(&file->head, sizeof(file->head)) ^
                          tbd_hash64(file->modules, bytes - sizeof(file->head));
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
                                          .tid = 42 };
    for (unsigned i = 0; i < MODULES; i++)
        file->modules[i] =
            (struct tbd_crash_module){ .start = 0x1000, .end = 0x9000, .path = "/app" };
    for (unsigned i = 0; i < BLOCKS; i++)
        file->blocks[i] = (struct tbd_crash_block){ 0x1000 + i * 16, 8, i % MODULES, i * 8, 0 };
    file->blocks[0].module = TBD_NO_MODULE;
    file->blocks[0].code_offset = TBD_NO_CODE;
    for (unsigned i = 0; i < THREADS; i++)
        file->threads[i] = (struct tbd_crash_thread){ 42 + i, 0, ENTRIES / THREADS };
    for (unsigned i = 0; i < ENTRIES; i++)
        file->entries[i] = i % BLOCKS;
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
    for (uint32_t i = 0; i < dump->head->thread_count; i++) {
        check(is_inside(dump, &dump->threads[i], sizeof(dump->threads[i])));
        check_entries(dump, entries, dump->threads[i].count);
        entries += dump->threads[i].count;
    }
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
    return 0;
}
