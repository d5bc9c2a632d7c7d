// SPDX-License-Identifier: MIT
/* last_state.c - see last_state.h
 *
 * All threads stand still, and from here on the stream is that of a recording: it begins at the instruction
 * at which the program dies, as a forked child's begins where fork returned, and ends there, too.  So the
 * organizer makes a trace of it, with one block entry, and whoever reads traces reads it.
 *
 * Memory is a choice (option `memory`), within a limit.  Stacks go first: of each thread from its stack pointer on, and
 * around its thread pointer, which is above the stack in most threads, should the stack pointer have been
 * overwritten.  Then the pages of program files that are not the files' any more (globals), then what these
 * lead to.  A mapping of which pages may be missing is sent as PARTIAL.
 *
 * LAST_STATE-1  Every address is the program's, and may be anything: pages are found in the table of mappings,
 *     and read by functions that survive a fault. (not checked: test_dump.py smashes stack pointers) */
#include "hooks/boot/last_state.h"

#include "base/hash.h"
#include "base/layout.h"
#include "base/linux_abi.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/boot/begin.h"
#include "hooks/boot/free.h"
#include "hooks/boot/image.h"
#include "hooks/boot/runtime.h"
#include "hooks/instructions/branch_functions.h"
#include "hooks/instructions/processor.h"
#include "hooks/instructions/registers.h"
#include "hooks/memory/pagemap.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/probes/late_places.h"
#include "hooks/probes/triggers.h"
#include "hooks/stream/crash_ring.h"
#include "hooks/stream/recording.h"
#include "hooks/threads/free_leave.h"
#include "hooks/threads/free_threads.h"
#include "hooks/threads/window_end.h"
#include "patcher/cut.h"

#define STACK_BYTES     (256u << 10)
#define RED_ZONE_BYTES  128u
#define TLS_BELOW_BYTES (8u << 10)
#define MOST_PAGES      (1u << 14) /* with memory=stacks or reachable */
#define GLOBALS_PART    2u         /* of them: the rest is for what they lead to */
#define MOST_BYTES      (4ull << 30)

/* The pages to be sent, in this order; each is known to tbd_memory.pages from then on. */
static struct sending {
    struct tbd_pagemap map;
    uint64_t *pages; /* MOST_PAGES of them; NULL: pages are sent as they are found */
    uint64_t count, sent;
    uint64_t low, high; /* where mappings are */
    bool has_all;       /* all memory is sent, and there is not too much of it */
    bool has_globals;
} sending;

/* ---- what a mapping is ---- */

static bool is_private(const struct tbd_mapped_region *region)
{
    return !(region->map.map_flags & MAP_SHARED) && region->map.prot & PROT_READ &&
           !(region->map.flags & (TBD_REGION_VDSO | TBD_REGION_VVAR));
}

static bool is_anonymous(const struct tbd_mapped_region *region)
{
    return !(region->map.map_flags & MAP_SHARED) && region->map.inode == 0 &&
           !(region->map.flags & (TBD_REGION_VDSO | TBD_REGION_VVAR));
}

/* A file's, or the rest of a program's variables, which the loader puts after it. */
static bool is_global(size_t index)
{
    const struct tbd_regions *regions = &tbd_memory.regions;
    const struct tbd_mapped_region *region = &regions->table[index];
    const struct tbd_mapped_region *before = index ? region - 1 : NULL;

    if (!is_private(region) || region->map.flags & (TBD_REGION_STACK | TBD_REGION_HEAP))
        return false;
    return region->map.inode != 0 ||
           (before && before->map.inode != 0 && before->map.end == region->map.start &&
            before->map.prot & PROT_WRITE);
}

static void count_page(void *context, uint64_t address)
{
    (void)address;
    ++*(uint64_t *)context;
}

static uint64_t count_pages(bool only_globals)
{
    const struct tbd_regions *regions = &tbd_memory.regions;
    uint64_t count = 0;

    for (size_t i = 0; i < regions->count; i++)
        if (only_globals ? is_global(i) : is_private(&regions->table[i]))
            tbd_pagemap_visit(&sending.map, TBD_PAGES_PRIVATE, regions->table[i].map.start,
                              regions->table[i].map.end, count_page, &count);
    return count;
}

static bool is_complete(size_t index)
{
    const struct tbd_mapped_region *region = &tbd_memory.regions.table[index];

    if (region->map.flags & (TBD_REGION_VDSO | TBD_REGION_VVAR))
        return true;
    return is_private(region) && (sending.has_all || (sending.has_globals && is_global(index)));
}

static void send_region(size_t index)
{
    const struct tbd_mapped_region *region = &tbd_memory.regions.table[index];
    struct tbd_msg_region map = region->map;
    struct tbd_part parts[2] = { { &map, sizeof(map) },
                                 { region->path, strlen(region->path) + 1 } };

    if (!is_complete(index))
        map.flags |= TBD_REGION_PARTIAL;
    else if (is_anonymous(region))
        map.flags |= TBD_REGION_ANON_ZERO;
    tbd_ring_send(&tbd_recording.ring, tbd_thread_now(), TBD_MSG_REGION, parts, 2);
}

/* ---- pages ---- */

static void send_page(uint64_t address)
{
    (void)tbd_window_send_page(&tbd_recording.ring, tbd_thread_now(), address, TBD_PAGE_IMAGE);
}

/* Once each, as long as there is space. */
static void take_page(void *context, uint64_t address)
{
    (void)context;
    if (tbd_pages_is_known(&tbd_memory.pages, address))
        return;
    if (sending.pages) {
        if (sending.count == MOST_PAGES)
            return;
        sending.pages[sending.count++] = address;
    }
    tbd_pages_set_known(&tbd_memory.pages, address, address + TBD_PAGE_SIZE, true);
    send_page(address);
}

/* The part of [start, end) that is in one mapping with `address`. */
static void take_around(uint64_t address, uint64_t start, uint64_t end)
{
    const struct tbd_mapped_region *region = tbd_regions_find(&tbd_memory.regions, address);

    if (!region || !is_private(region))
        return;
    start &= ~(TBD_PAGE_SIZE - 1);
    tbd_pagemap_visit(&sending.map, TBD_PAGES_PRIVATE,
                      start > region->map.start ? start : region->map.start,
                      end < region->map.end ? end : region->map.end, take_page, NULL);
}

/* Without a good stack pointer the stack's upper end has what called what. */
static void take_stack(const struct tbd_regs *regs)
{
    uint64_t sp = regs->gpr[TBD_RSP], tls = regs->fs_base;

    take_around(sp, sp < RED_ZONE_BYTES ? 0 : sp - RED_ZONE_BYTES, sp + STACK_BYTES);
    if (tls >= STACK_BYTES)
        take_around(
            tls, tls - (tbd_regions_find(&tbd_memory.regions, sp) ? TLS_BELOW_BYTES : STACK_BYTES),
            tls + TBD_PAGE_SIZE);
}

static void take_main_stack(void)
{
    const struct tbd_regions *regions = &tbd_memory.regions;

    for (size_t i = 0; i < regions->count; i++)
        if (regions->table[i].map.flags & TBD_REGION_STACK)
            take_around(regions->table[i].map.end - 1, regions->table[i].map.end - STACK_BYTES,
                        regions->table[i].map.end);
}

static void take_stacks(const struct tbd_thread *thread)
{
    take_stack(&thread->regs);
    for (uint32_t i = 0; i < tbd_threads.saved_contexts; i++)
        if (tbd_saved_context_at(i)->tid && tbd_saved_context_at(i)->turn)
            take_stack(&tbd_saved_context_at(i)->regs);
    take_main_stack();
}

static void take_regions(bool only_globals)
{
    const struct tbd_regions *regions = &tbd_memory.regions;

    for (size_t i = 0; i < regions->count; i++)
        if (only_globals ? is_global(i) : is_private(&regions->table[i]))
            tbd_pagemap_visit(&sending.map, TBD_PAGES_PRIVATE, regions->table[i].map.start,
                              regions->table[i].map.end, take_page, NULL);
}

/* ---- what pointers lead to ---- */

static void follow(uint64_t value)
{
    const struct tbd_mapped_region *region;

    value &= ~(TBD_PAGE_SIZE - 1);
    if (value < sending.low || value >= sending.high ||
        tbd_pages_is_known(&tbd_memory.pages, value))
        return;
    region = tbd_regions_find(&tbd_memory.regions, value);
    if (region && is_private(region) && region->map.inode == 0)
        tbd_pagemap_visit(&sending.map, TBD_PAGES_PRIVATE, value, value + TBD_PAGE_SIZE, take_page,
                          NULL);
}

static void follow_regs(const struct tbd_regs *regs)
{
    for (unsigned i = 0; i < TBD_REG_COUNT; i++)
        follow(regs->gpr[i]);
}

/* Pages that are found go to the end of the table, and are looked at in their turn. */
static void take_reachable(const struct tbd_thread *thread)
{
    static uint64_t words[TBD_PAGE_SIZE / sizeof(uint64_t)];

    follow_regs(&thread->regs);
    for (uint32_t i = 0; i < tbd_threads.saved_contexts; i++)
        if (tbd_saved_context_at(i)->tid)
            follow_regs(&tbd_saved_context_at(i)->regs);
    for (uint64_t i = 0; i < sending.count && sending.count < MOST_PAGES; i++) {
        if (!tbd_load_from_program(words, sending.pages[i], sizeof(words)))
            continue;
        for (size_t k = 0; k < sizeof(words) / sizeof(words[0]); k++)
            follow(words[k]);
    }
}

/* ---- memory ---- */

static void send_vdso(const struct tbd_mapped_region *region)
{
    for (uint64_t at = region->map.start; at < region->map.end; at += TBD_PAGE_SIZE)
        send_page(at);
}

static void send_regions(void)
{
    const struct tbd_regions *regions = &tbd_memory.regions;

    for (size_t i = 0; i < regions->count; i++)
        send_region(i);
    for (size_t i = 0; i < regions->count; i++)
        if (regions->table[i].map.flags & TBD_REGION_VDSO)
            send_vdso(&regions->table[i]);
}

static void send_memory(const struct tbd_thread *thread)
{
    const struct tbd_regions *regions = &tbd_memory.regions;
    uint64_t memory = tbd_runtime.options.memory;
    long table = tbd_sys_mmap(0, MOST_PAGES * sizeof(uint64_t), TBD_PROT_RW,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    tbd_sys_madvise(tbd_sys_pointer(tbd_memory.pages.known), TBD_KNOWN_BYTES, MADV_DONTNEED);
    tbd_pagemap_open(&sending.map);
    sending.low = regions->count ? regions->table[0].map.start : 0;
    sending.high = regions->count ? regions->table[regions->count - 1].map.end : 0;
    sending.has_all = memory == TBD_MEMORY_ALL && count_pages(false) < MOST_BYTES / TBD_PAGE_SIZE;
    sending.has_globals = count_pages(true) < MOST_PAGES / GLOBALS_PART;
    send_regions();
    if (!sending.has_all && !tbd_sys_failed(table))
        sending.pages = (uint64_t *)table;
    take_stacks(thread);
    if (sending.has_all) {
        take_regions(false);
    } else {
        if (sending.has_globals)
            take_regions(true);
        if (memory != TBD_MEMORY_STACKS && sending.pages)
            take_reachable(thread);
    }
    tbd_pagemap_close(&sending.map);
    if (!tbd_sys_failed(table))
        tbd_sys_munmap((uint64_t)table, MOST_PAGES * sizeof(uint64_t));
}

/* ---- threads, and the one block ---- */

static void send_threads(struct tbd_thread *thread)
{
    const struct tbd_saved_context *own = tbd_context_now();

    for (uint32_t i = 0; i < tbd_threads.saved_contexts; i++) {
        struct tbd_saved_context *saved = tbd_saved_context_at(i);
        struct tbd_msg_thread message = { .event = TBD_THREAD_START,
                                          .thread = saved->tid,
                                          .from = thread->tid,
                                          .block_time = TBD_NO_BLOCK_TIME };
        struct tbd_part parts[3] = { { &message, sizeof(message) },
                                     { &saved->regs, sizeof(saved->regs) },
                                     { saved->image, saved->image_bytes } };

        if (saved == own || !saved->tid || !saved->turn)
            continue;
        saved->regs.thread = saved->tid;
        saved->regs.xsave_bytes = saved->image_bytes;
        tbd_ring_send(&tbd_recording.ring, thread, TBD_MSG_THREAD, parts, 3);
    }
}

static void send_calling(struct tbd_thread *thread, const struct tbd_saved_context *saved)
{
    struct tbd_msg_calling message = { .value = tbd_free_block_of(saved)->calling_value,
                                       .thread = saved->tid,
                                       .scheme = (uint32_t)tbd_runtime.options.scheme };
    struct tbd_part part = { &message, sizeof(message) };

    tbd_ring_send(&tbd_recording.ring, thread, TBD_MSG_CALLING, &part, 1);
}

static void send_callings(struct tbd_thread *thread)
{
    const struct tbd_saved_context *own = tbd_context_now();

    for (uint32_t i = 0; tbd_runtime.options.contexts && i < tbd_threads.saved_contexts; i++) {
        const struct tbd_saved_context *saved = tbd_saved_context_at(i);

        if (saved->tid && (saved == own || saved->turn))
            send_calling(thread, saved);
    }
}

struct cutting {
    struct tbd_cut *cut;
    struct tbd_codegen_config config;
    uint64_t pc;
};

static void cut_with_vectors(void *context)
{
    const struct cutting *cutting = context;

    tbd_cut_block(cutting->cut, &tbd_free_callbacks, &cutting->config, cutting->pc);
}

/* A block of one instruction, or of none if there is no code. */
static void enter_block(struct tbd_thread *thread)
{
    static struct tbd_cut cut;
    struct cutting cutting = { &cut, tbd_begin_codegen(), thread->regs.rip };
    uint32_t id;

    cutting.config.max_insns = 1;
    cutting.config.hook_set = TBD_HOOK_BLOCKS;
    tbd_processor_decode(cut_with_vectors, &cutting);
    cut.def.op_count = 0;
    cut.def.operand_bytes = 0;
    id = tbd_ring_define(&tbd_recording.ring, &cut.def, NULL,
                         (const uint8_t *)(uintptr_t)cut.def.start);
    if (tbd_recording.ring.full)
        return;
    tbd_ring_turn(&tbd_recording.ring, thread, 0); /* there is space for an entry */
    __atomic_store_n((uint32_t *)thread->entry_next, id, __ATOMIC_RELEASE);
    thread->entry_next += sizeof(id);
}

static void send_state(struct tbd_thread *thread)
{
    /* not DONE any more, as after the dump before */
    __atomic_store_n(&tbd_recording.ring.head->organizer_state, TBD_ORGANIZER_READY,
                     __ATOMIC_RELEASE);
    tbd_recording.hooks = TBD_HOOK_BLOCKS;
    tbd_recording.window_due = TBD_TIME_NEVER;
    tbd_recording.ring.discard = false;
    tbd_recording.is_on = true;
    tbd_ring_start(&tbd_recording.ring, thread, 0, TBD_TIME_NEVER);
    tbd_image_send_start((uint32_t)tbd_sys3(__NR_getppid, 0, 0, 0), TBD_START_DUMP);
    send_memory(thread);
    tbd_registers_send(&tbd_recording.ring, thread, &tbd_processor.vector);
    send_threads(thread);
    send_callings(thread);
    enter_block(thread);
}

bool tbd_last_state_send(struct tbd_thread *thread)
{
    if (!tbd_crash_is_on())
        return false;
    tbd_late_places_say_missing();
    tbd_free_stop_others(thread);
    tbd_signals_block_all();
    send_state(thread);
    return true;
}

/* ---- a dump of a program that goes on ---- */

static uint32_t is_asked, is_to_change;

void tbd_last_state_ask_sigsafe(uint64_t what)
{
    __atomic_store_n(what == TBD_CRASH_SET ? &is_to_change : &is_asked, 1, __ATOMIC_RELEASE);
}

bool tbd_last_state_is_asked(void)
{
    return __atomic_load_n(&is_asked, __ATOMIC_RELAXED) ||
           __atomic_load_n(&is_to_change, __ATOMIC_RELAXED);
}

/* The stream is again what it was: nobody takes anything from it, and the thread's next entry goes to its ring. */
static void end_sending(struct tbd_thread *thread, uint64_t entry_next, uint64_t operand_next)
{
    tbd_recording.is_on = false;
    tbd_recording.ring.discard = true;
    tbd_recording.hooks = TBD_HOOKS_NONE;
    thread->entry_next = entry_next;
    thread->operand_next = operand_next;
    __atomic_store_n(&tbd_recording.ring.head->engine_state, TBD_ENGINE_RUNNING, __ATOMIC_RELEASE);
    tbd_crash_resumes();
}

/* Others are at a boundary, or gone, while `work` is done. */
static void while_others_wait(struct tbd_thread *thread,
                              void (*work)(struct tbd_thread *thread, const char *why),
                              const char *why)
{
    uint64_t mask = tbd_signals_block_all();

    tbd_free_pause_others(thread);
    work(thread, why);
    tbd_free_resume_others();
    tbd_signals_set_kernel_mask(mask);
}

static void dump(struct tbd_thread *thread, const char *why)
{
    uint64_t entry_next = thread->entry_next, operand_next = thread->operand_next;

    tbd_crash_goes_on(true);
    send_state(thread);
    tbd_window_send_last(TBD_ENDED_DETACHED, 0, 0, why);
    tbd_recording_wait_done();
    end_sending(thread, entry_next, operand_next);
}

void tbd_last_state_take(struct tbd_thread *thread, const char *why)
{
    if (tbd_crash_is_on())
        while_others_wait(thread, dump, why);
}

static void change(struct tbd_thread *thread, const char *why)
{
    (void)why;
    (void)tbd_triggers_take(thread, NULL, 0); /* the asker reads the answer */
}

/* Somebody else's request may come first, and is answered, too. */
static void look(struct tbd_thread *thread)
{
    tbd_free_unlock(thread);
    tbd_late_places_wait();
    tbd_free_lock(thread);
    while (tbd_free_is_pausing())
        tbd_free_pause(thread);
    if (tbd_triggers_are_due())
        while_others_wait(thread, change, "");
}

void tbd_last_state_look(struct tbd_thread *thread)
{
    tbd_late_places_ask();
    while (!tbd_leaving_why() && !tbd_late_places_are_over())
        look(thread);
}

void tbd_last_state_if_asked(struct tbd_thread *thread)
{
    if (!tbd_crash_is_on())
        return;
    if (__atomic_exchange_n(&is_to_change, 0, __ATOMIC_ACQUIRE))
        while_others_wait(thread, change, "");
    if (!__atomic_exchange_n(&is_asked, 0, __ATOMIC_ACQUIRE))
        return;
    tbd_crash_note_asked();
    tbd_last_state_take(thread, "a dump was asked for; the program went on");
    tbd_crash_note_answered();
}

/* The kernel keeps 8 bits of the status. */
static bool is_wanted(uint32_t status)
{
    uint64_t dump = tbd_runtime.options.dump;

    return dump == TBD_DUMP_EXIT || (dump == TBD_DUMP_FAIL && (status & 0xff) != 0);
}

void tbd_last_state_at_exit(struct tbd_thread *thread, uint32_t status)
{
    tbd_branch_functions_say_missing();
    tbd_late_places_say_missing();
    if (!tbd_crash_is_on() || !is_wanted(status))
        return;
    tbd_crash_dies(thread, 0, NULL);
    if (!tbd_last_state_send(thread))
        return;
    tbd_window_send_last(TBD_ENDED_EXIT, status, 0, "");
    tbd_recording_wait_done();
}
