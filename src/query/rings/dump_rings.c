// SPDX-License-Identifier: MIT
/* dump_rings.c - see dump_rings.h: a dump opened, and the code of its blocks
 *
 * DUMP_RINGS-1  A block has at least one instruction, and all of them lie in its code, one after the other. */
#include "query/rings/dump_rings.h"

#include "base/assert.h"
#include "base/open_file.h"
#include "format/files/file.h"
#include "format/files/trace_dir.h"
#include "format/trace/trace.h"

#include <Zydis/Zydis.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- open ---- */

static bool is_newer(const struct timespec *one, const struct timespec *other)
{
    return one->tv_sec > other->tv_sec ||
           (one->tv_sec == other->tv_sec && one->tv_nsec > other->tv_nsec);
}

/* The folder in the trace root whose dump is the newest; "" if there is none. */
static enum tbd_status find_newest(char *out, size_t bytes)
{
    char root[4096], name[320];
    enum tbd_status status = tbd_trace_root(root, sizeof(root));
    int fd = status == TBD_OK ? tbd_dir_open(root) : -1;
    DIR *entries = fd < 0 ? NULL : tbd_dir_list(fd, ".");
    struct timespec newest = { 0 };
    struct dirent *entry;
    struct stat info;

    *out = '\0';
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        snprintf(name, sizeof(name), "%s/" TBD_CRASH_FILE, entry->d_name);
        if (entry->d_name[0] == '.' || !tbd_stat_below(fd, name, &info) ||
            info.st_uid != geteuid() || is_newer(&newest, &info.st_mtim))
            continue;
        newest = info.st_mtim;
        snprintf(out, bytes, "%s/%s", root, entry->d_name);
    }
    if (entries != NULL)
        closedir(entries);
    if (fd >= 0)
        close(fd);
    return status;
}

/* Like a thread that has entered each block once. */
static bool make_when(const struct tbd_crash_when *when, uint32_t count,
                      struct tbd_rings_thread *out)
{
    uint32_t *entries = calloc(count + 1u, sizeof(*entries));

    for (uint32_t i = 0; entries != NULL && i < count; i++)
        entries[i] = when[i].block;
    *out = (struct tbd_rings_thread){ .entries = entries,
                                      .count = count,
                                      .newest = { .entries = entries, .count = count },
                                      .when = when };
    return entries != NULL;
}

static bool is_part(const struct tbd_rings *ring, uint32_t part, const char *wanted)
{
    return wanted == NULL || strcmp(ring->dump.parts[part].name, wanted) == 0;
}

static bool has_part(const struct tbd_rings *ring, const char *wanted)
{
    for (uint32_t i = 0; i < ring->dump.head->part_count; i++)
        if (is_part(ring, i, wanted))
            return true;
    return false;
}

enum tbd_status tbd_rings_keep(struct tbd_rings *ring, const char *part)
{
    uint32_t most = ring->dump.head->kept_count, count = 0;

    if (!has_part(ring, part))
        return TBD_NOTFOUND;
    ring->kept_when = calloc(most + 1u, sizeof(*ring->kept_when));
    ring->kept_rows = calloc(most + 1u, sizeof(const struct tbd_crash_kept *));
    if (ring->kept_when == NULL || ring->kept_rows == NULL)
        return TBD_NOMEM;
    for (uint32_t i = 0; i < most; i++) {
        const struct tbd_crash_kept *row = &ring->dump.kept[i];

        if (!is_part(ring, row->part, part))
            continue;
        ring->kept_rows[count] = row;
        ring->kept_when[count++] =
            (struct tbd_crash_when){ .time_us = row->time_us, .block = row->block };
    }
    return make_when(ring->kept_when, count, &ring->kept) ? TBD_OK : TBD_NOMEM;
}

static void free_thread(struct tbd_rings_thread *thread)
{
    tbd_rings_free_steps(&thread->walked);
    tbd_rings_free_steps(&thread->newest.walked);
    free(thread->reached);
}

static void free_when(struct tbd_rings_thread *table)
{
    free((void *)(uintptr_t)table->entries);
    tbd_rings_free_steps(&table->walked);
}

static bool make_tables(struct tbd_rings *ring)
{
    const struct tbd_crash_head *head = ring->dump.head;
    const uint32_t *entries = ring->dump.entries;

    ring->files = calloc(head->module_count + 1u, sizeof(struct tbd_elf_file *));
    ring->tried = calloc(head->module_count + 1u, sizeof(*ring->tried));
    ring->blocks = calloc(head->block_count + 1u, sizeof(*ring->blocks));
    ring->threads = calloc(head->thread_count + 1u, sizeof(*ring->threads));
    if (ring->files == NULL || ring->tried == NULL || ring->blocks == NULL || ring->threads == NULL)
        return false;
    for (uint32_t i = 0; i < head->thread_count; i++) {
        const struct tbd_crash_thread *thread = &ring->dump.threads[i];

        ring->threads[i] =
            (struct tbd_rings_thread){ .tid = thread->tid,
                                       .has_older = (thread->flags & TBD_CRASH_HAS_OLDER) != 0,
                                       .is_asked =
                                           thread->tid == (head->tid ? head->tid : head->pid),
                                       .is_dying = head->tid != 0 && thread->tid == head->tid,
                                       .entries = entries,
                                       .count = thread->count,
                                       .newest = { .entries = entries, .count = thread->count },
                                       .older = thread->older };
        entries += thread->count;
    }
    return make_when(ring->dump.first, head->first_count, &ring->first) &&
           make_when(ring->dump.last, head->last_count, &ring->last);
}

enum tbd_status tbd_rings_open(const char *path, struct tbd_rings *out, struct tbd_error *why)
{
    enum tbd_status status = TBD_OK;
    char newest[4500];

    *out = (struct tbd_rings){ .files = NULL };
    if (path == NULL) {
        status = find_newest(newest, sizeof(newest));
        if (status == TBD_OK && *newest == '\0')
            status = tbd_error_set(why, TBD_NOTRACE, "", 0, "the trace root has no crash dump");
        path = newest;
    }
    if (status == TBD_OK)
        status = tbd_crash_open(path, &out->dump, why);
    if (status != TBD_OK)
        return status;
    out->path = strdup(path);
    return out->path != NULL && make_tables(out) ? TBD_OK : TBD_NOMEM;
}

void tbd_rings_close(struct tbd_rings *ring)
{
    for (uint32_t i = 0; ring->files != NULL && i < ring->dump.head->module_count; i++)
        tbd_elf_close(ring->files[i]);
    for (uint32_t i = 0; ring->blocks != NULL && i < ring->dump.head->block_count; i++)
        free(ring->blocks[i].insns);
    for (uint32_t i = 0; ring->threads != NULL && i < ring->dump.head->thread_count; i++)
        free_thread(&ring->threads[i]);
    free_when(&ring->first);
    free_when(&ring->last);
    free_when(&ring->kept);
    free(ring->kept_when);
    free(ring->kept_rows);
    free(ring->path);
    free(ring->files);
    free(ring->tried);
    free(ring->blocks);
    free(ring->threads);
    free(ring->places);
    tbd_crash_close(&ring->dump);
    *ring = (struct tbd_rings){ .files = NULL };
}

/* ---- code ---- */

/* mov $15, %eax or %rax, right before the system call: as every C library has it. */
static bool is_sigreturn(const uint8_t *code, size_t bytes)
{
    static const uint8_t short_form[] = { 0xb8, 15, 0, 0, 0, 0x0f, 0x05 };
    static const uint8_t long_form[] = { 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05 };

    return (bytes >= sizeof(short_form) &&
            memcmp(code + bytes - sizeof(short_form), short_form, sizeof(short_form)) == 0) ||
           (bytes >= sizeof(long_form) &&
            memcmp(code + bytes - sizeof(long_form), long_form, sizeof(long_form)) == 0);
}

static enum tbd_rings_end end_of(const ZydisDecodedInstruction *insn, bool is_direct)
{
    switch (insn->meta.category) {
    case ZYDIS_CATEGORY_CALL: return is_direct ? TBD_RINGS_CALLS : TBD_RINGS_CALLS_ANYWHERE;
    case ZYDIS_CATEGORY_UNCOND_BR: return is_direct ? TBD_RINGS_JUMPS : TBD_RINGS_JUMPS_ANYWHERE;
    case ZYDIS_CATEGORY_COND_BR: return is_direct ? TBD_RINGS_BRANCHES : TBD_RINGS_UNKNOWN;
    case ZYDIS_CATEGORY_RET: return TBD_RINGS_RETURNS;
    default: return TBD_RINGS_GOES_ON;
    }
}

static void take_end(struct tbd_rings_block *block, const ZydisDecodedInstruction *insn,
                     const ZydisDecodedOperand *operands)
{
    uint64_t pc = block->insns[block->insn_count - 1].pc;
    bool is_direct = insn->operand_count_visible > 0 &&
                     operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
                     operands[0].imm.is_relative &&
                     ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(insn, &operands[0], pc, &block->target));

    block->end = end_of(insn, is_direct);
}

/* Keeps DUMP_RINGS-1. */
static bool decode(struct tbd_rings_block *block, const struct tbd_crash_block *from,
                   const uint8_t *code)
{
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    ZydisDecodedInstruction insn;
    ZydisDecoder decoder;
    uint32_t at = 0;

    if (!ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
        return false;
    block->insn_count = 0;
    while (at < from->code_bytes && block->insn_count < TBD_BLOCK_MAX_INSNS) {
        if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code + at, from->code_bytes - at, &insn,
                                                 operands)))
            return false;
        block->insns[block->insn_count++] =
            (struct tbd_rings_insn){ from->start + at, 0, insn.length, true };
        at += insn.length;
    }
    if (at != from->code_bytes || block->insn_count == 0)
        return false;
    take_end(block, &insn, operands);
    if (block->end == TBD_RINGS_GOES_ON && is_sigreturn(code, from->code_bytes))
        block->end = TBD_RINGS_SIGRETURN;
    return true;
}

const struct tbd_rings_block *tbd_rings_block(struct tbd_rings *ring, uint32_t index)
{
    const struct tbd_crash_block *from = &ring->dump.blocks[index];
    struct tbd_rings_block *block = &ring->blocks[index];

    if (block->insns != NULL)
        return block;
    block->insns = calloc(TBD_BLOCK_MAX_INSNS, sizeof(*block->insns));
    if (block->insns == NULL)
        return NULL;
    block->after = from->start + from->code_bytes;
    if (from->code_offset == TBD_NO_CODE ||
        !decode(block, from, ring->dump.code + from->code_offset)) {
        block->insns[0] = (struct tbd_rings_insn){ .pc = from->start };
        block->insn_count = 1;
        block->end = from->code_bytes == 0 ? TBD_RINGS_FAULTS : TBD_RINGS_UNKNOWN;
    }
    TBD_INVARIANT("DUMP_RINGS-1",
                  block->insn_count >= 1 && block->insn_count <= TBD_BLOCK_MAX_INSNS);
    return block;
}

const uint8_t *tbd_rings_code(const struct tbd_rings *ring, uint32_t block, uint32_t insn)
{
    const struct tbd_crash_block *from = &ring->dump.blocks[block];
    const struct tbd_rings_insn *at = &ring->blocks[block].insns[insn];

    return at->offset_is_known ? ring->dump.code + from->code_offset + (at->pc - from->start)
                               : NULL;
}
