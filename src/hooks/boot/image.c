// SPDX-License-Identifier: MIT
/* image.c - the initial image: what the trace must know before the first block
 *
 * START, one REGION for each mapping, the contents of every page that differs from its file and
 * from zero (TBD_PAGE_IMAGE), the registers.  Context: BOOT, on the engine's stack, so that the
 * program's stack does not change.  A forked child sends the same on its copy of the engine stack,
 * in context FORK_CHILD. */
#include "hooks/boot/image.h"

#include "base/linux_abi.h"

#include "base/string.h"
#include "base/sys.h"
#include "hooks/boot/runtime.h"
#include "hooks/instructions/processor.h"
#include "hooks/instructions/registers.h"
#include "hooks/memory/code_areas.h"
#include "hooks/memory/pagemap.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/unlinked_files.h"
#include "hooks/stream/recording.h"
#include "hooks/threads/threads.h"

enum { TEXT_BYTES = 65536 };

static uint64_t realtime_ns(void)
{
    int64_t now[2] = { 0, 0 };

    tbd_sys3(__NR_clock_gettime, CLOCK_REALTIME, tbd_sys_pointer(now), 0);
    tbd_recording.realtime_ns = (uint64_t)now[0] * 1000000000ull + (uint64_t)now[1];
    return tbd_recording.realtime_ns;
}

struct start_text {
    char bytes[TEXT_BYTES];
    size_t used;
};

/* Long argument lists are cut: the last arguments are left out. */
static bool append(struct start_text *text, const char *string)
{
    size_t length = strlen(string) + 1;

    if (length > TEXT_BYTES - text->used)
        return false;
    memcpy(text->bytes + text->used, string, length);
    text->used += length;
    return true;
}

static void append_path(struct start_text *text, long number, const char *link)
{
    char path[4096];
    long length =
        link ? tbd_sys3(number, tbd_sys_pointer(link), tbd_sys_pointer(path), sizeof(path) - 1)
             : tbd_sys3(number, tbd_sys_pointer(path), sizeof(path) - 1, 0);

    path[tbd_sys_failed(length) ? 0 : length] = '\0';
    append(text, path);
}

/* The executable's path and the arguments: they stay the same in forked children. */
static struct start_text program;
static uint32_t argument_count;

static void note_program(uint64_t argc, char **argv)
{
    append_path(&program, __NR_readlink, "/proc/thread-self/exe");
    for (uint64_t i = 0; i < argc && program.used < TEXT_BYTES - 8192 && append(&program, argv[i]);
         i++)
        argument_count++;
}

void tbd_image_send_start(uint32_t parent_pid, uint32_t flags)
{
    struct tbd_msg_start start = {
        .pid = tbd_recording.pid,
        .tid = tbd_thread_now()->tid,
        .parent_pid = parent_pid,
        .xsave_bytes = tbd_processor.vector.image.bytes,
        .xcr0 = tbd_processor.vector.image.mask,
        .hook_set = tbd_recording.hooks,
        .engine_start = TBD_ENGINE_BASE,
        .realtime_ns = realtime_ns(),
        .brk_start = tbd_memory.brk_start,
        .brk_end = tbd_memory.brk_end,
        .argc = argument_count,
        .max_insns = (uint16_t)tbd_runtime.options.max_insns,
        .flags = (uint16_t)flags,
    };
    size_t fixed = program.used;
    struct tbd_part parts[2] = { { &start, sizeof(start) }, { program.bytes, 0 } };

    append_path(&program, __NR_getcwd, NULL);
    parts[1].bytes = program.used;
    tbd_ring_send(&tbd_recording.ring, tbd_thread_now(), TBD_MSG_START, parts, 2);
    program.used = fixed;
    if (tbd_threads.chaos.is_on)
        tbd_recording_note(0, "chaos: seed %lu", tbd_runtime.options.chaos);
}

static bool is_anonymous(const struct tbd_mapped_region *region)
{
    return region->map.inode == 0 && !(region->map.map_flags & MAP_SHARED) &&
           !(region->map.flags & (TBD_REGION_VDSO | TBD_REGION_VVAR));
}

static void send_region(const struct tbd_mapped_region *region)
{
    struct tbd_msg_region map = region->map;
    struct tbd_part parts[2] = { { &map, sizeof(map) },
                                 { region->path, strlen(region->path) + 1 } };

    if (is_anonymous(region))
        map.flags |= TBD_REGION_ANON_ZERO;
    tbd_ring_send(&tbd_recording.ring, tbd_thread_now(), TBD_MSG_REGION, parts, 2);
}

static void send_image_page(void *context, uint64_t address)
{
    (void)context;
    if (tbd_window_send_page(&tbd_recording.ring, tbd_thread_now(), address, TBD_PAGE_IMAGE))
        tbd_pages_set_known(&tbd_memory.pages, address, address + TBD_PAGE_SIZE, true);
}

/* The stack's region begins below its mapped pages; the kernel's page map says which pages
 * exist. */
static void send_pages(const struct tbd_pagemap *map, const struct tbd_mapped_region *region)
{
    if (!(region->map.prot & PROT_READ) || (region->map.flags & TBD_REGION_VVAR))
        return;
    if (is_anonymous(region))
        tbd_pages_set_known(&tbd_memory.pages, region->map.start, region->map.end, true);
    tbd_pagemap_visit(map, TBD_PAGES_PRIVATE, region->map.start, region->map.end, send_image_page,
                      NULL);
}

/* The page map does not tell which pages of the vDSO must be sent (they have no file): sends
 * all. */
static void send_vdso(const struct tbd_mapped_region *region)
{
    for (uint64_t at = region->map.start; at < region->map.end; at += TBD_PAGE_SIZE)
        send_image_page(NULL, at);
}

static void send_memory(void)
{
    const struct tbd_regions *regions = &tbd_memory.regions;
    struct tbd_pagemap map;

    for (size_t i = 0; i < regions->count; i++)
        send_region(&regions->table[i]);
    tbd_code_areas_send(); /* a child has its parent's; at boot there are none */
    tbd_pagemap_open(&map);
    for (size_t i = 0; i < regions->count; i++) {
        if (regions->table[i].map.flags & TBD_REGION_VDSO)
            send_vdso(&regions->table[i]);
        else
            send_pages(&map, &regions->table[i]);
    }
    tbd_pagemap_close(&map);
    tbd_written_files_send(tbd_thread_now(), 0, TBD_USER_END);
    tbd_unlinked_files_send_mapped(tbd_thread_now());
    tbd_registers_send(&tbd_recording.ring, tbd_thread_now(), &tbd_processor.vector);
}

void tbd_image_send(uint64_t argc, char **argv)
{
    note_program(argc, argv);
    if (!tbd_recording.is_on)
        return;
    tbd_image_send_start((uint32_t)tbd_sys3(__NR_getppid, 0, 0, 0), 0);
    send_memory();
}

void tbd_image_send_child(uint32_t parent_pid)
{
    tbd_image_send_start(parent_pid, TBD_START_FORKED);
    send_memory();
}
