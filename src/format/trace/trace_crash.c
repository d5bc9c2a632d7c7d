// SPDX-License-Identifier: MIT
/* trace_crash.c - code and mapped files of a dump that has rings only, from its file `crash` (trace.h)
 *
 * The files are those that ran: of two at the same addresses, one after the other, the later one is mapped.  Nothing says which data
 * was mapped.
 *
 * TRACE_CRASH-1  Each path has an inode number of its own, which is none of a file system's: two files at the same addresses are two
 *     mappings. (not checked: it is how they are numbered) */
#include "format/trace/trace_private.h"

#include "base/hash.h"
#include "format/window/blocks.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static uint64_t inode_of(const struct tbd_crash_module *modules, uint32_t index)
{
    uint32_t first = 0;

    while (strcmp(modules[first].path, modules[index].path) != 0)
        first++;
    return first + 1;
}

static enum tbd_status map_module(struct tbd_trace *trace, uint32_t index)
{
    const struct tbd_crash_module *module = &trace->crash_modules[index];
    struct tbd_mapping_event event = {
        .region = { .start = module->start,
                    .end = module->end,
                    .file_offset = module->file_offset,
                    .inode = inode_of(trace->crash_modules, index),
                    .prot = PROT_READ | PROT_EXEC,
                    .map_flags = MAP_PRIVATE,
                    .path = module->path },
    };

    return module->end > module->start ? tbd_mappings_add(&trace->mappings, &event) : TBD_OK;
}

/* Its start and code: what names are compared with. */
static enum tbd_status put_block(struct tbd_trace *trace, const struct tbd_crash_dump *dump,
                                 uint32_t index)
{
    const struct tbd_crash_block *block = &dump->blocks[index];
    struct tbd_block_def def = { .start = block->start,
                                 .code_bytes = block->code_bytes,
                                 .insn_count = 1 };
    const uint8_t *code;

    if (block->code_offset == TBD_NO_CODE || block->code_bytes == 0 ||
        block->code_bytes > TBD_BLOCK_MAX_INSNS * 15)
        return TBD_OK;
    code = dump->code + block->code_offset;
    def.code_hash = tbd_hash64(code, block->code_bytes);
    return tbd_block_table_put(trace->blocks, index + 1, &def, NULL, code);
}

enum tbd_status tbd_trace_take_crash(struct tbd_trace *trace, const struct tbd_crash_dump *dump)
{
    uint32_t count = dump->head->module_count;
    enum tbd_status status = TBD_OK;

    if (!trace->info.has_rings_only || trace->crash_modules)
        return TBD_OK;
    trace->crash_modules = calloc(count + 1, sizeof(*trace->crash_modules));
    if (!trace->crash_modules)
        return TBD_NOMEM;
    if (count)
        memcpy(trace->crash_modules, dump->modules, count * sizeof(*trace->crash_modules));
    for (uint32_t i = 0; status == TBD_OK && i < count; i++)
        status = map_module(trace, i);
    for (uint32_t i = 0; status == TBD_OK && i < dump->head->block_count; i++)
        status = put_block(trace, dump, i);
    return status;
}
