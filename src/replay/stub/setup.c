// SPDX-License-Identifier: MIT
/* setup.c - set-up of a replay process: thread area, decoder, patcher, stream, signal stack
 *
 * All are at the same addresses as in play (base/layout.h). */
#include "base/linux.h"
#include "base/sys.h"
#include "hooks/boot/mode.h"
#include "hooks/instructions/processor.h"
#include "hooks/instructions/slot.h"
#include "hooks/instructions/special.h"
#include "hooks/memory/program_memory.h"
#include "hooks/stream/leaving.h"
#include "hooks/stream/recording.h"
#include "patcher/patcher.h"
#include "replay/stub/logged_events.h"
#include "replay/stub/memory.h"

#define STREAM_CHUNKS 4
#define STREAM_AREAS  3 /* one being filled, one being read, one spare */
#define AREA_BYTES    (1ull << 30)
#define STREAM_BLOCKS (1u << 20)
#define STREAM_HEAP   (1ull << 30)

static bool map_fixed(uint64_t address, uint64_t bytes)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;

    return tbd_sys_mmap(address, bytes, PROT_READ | PROT_WRITE, flags, -1, 0) == (long)address;
}

static bool map_thread(void)
{
    uint64_t gs = TBD_THREADS_BASE + TBD_THREAD_GS_OFFSET;
    uint64_t block = gs - sizeof(struct tbd_thread);
    uint64_t first = block & ~(TBD_PAGE_SIZE - 1);
    struct tbd_thread *thread = (struct tbd_thread *)block;

    if (!map_fixed(first, gs + TBD_TOUCH_BYTES - first) ||
        !map_fixed(TBD_STACKS_BASE, TBD_STACK_SLOT_BYTES) || !tbd_regions_init(&tbd_memory.regions))
        return false;
    thread->self = block;
    thread->mark = TBD_THREAD_MARK;
    thread->engine_stack = TBD_STACKS_BASE + TBD_STACK_SLOT_BYTES / 2;
    tbd_processor.gs_base = gs;
    tbd_memory.pages.touch = (uint8_t *)gs;
    tbd_set_gs_base(gs);
    return true;
}

/* ---- callbacks ---- */

static uint32_t define(const struct tbd_block_def *def, const struct tbd_op *ops,
                       const uint8_t *code)
{
    if (tbd_stub.hook_set == TBD_HOOKS_PARTIAL)
        return 1; /* the id is not used */
    return tbd_ring_define(&tbd_recording.ring, def, ops, code);
}

static uint64_t executable(struct tbd_app_pc pc, uint64_t want, bool *out_changes)
{
    return tbd_memory_executable(pc.v, want, out_changes);
}

/* There is no program to let go: the replay has ended, or differs. */
static void detach(struct tbd_thread *thread, const char *why, uint64_t offset)
{
    (void)thread;
    (void)offset;
    tbd_stub_detached(why);
}

static const struct tbd_leaving leaving = { .detach = detach };

const struct tbd_patcher_callbacks tbd_stub_callbacks = {
    .define = define,
    .executable = executable,
    .reserve_area = tbd_stub_reserve_area,
    .syscall = tbd_stub_syscall,
    .special = tbd_stub_special,
    .boundary = tbd_stub_boundary,
    .asked = tbd_stub_asked,
    .bad_code = tbd_stub_bad_code,
    .bad_target = tbd_stub_bad_target,
    .forgetting = tbd_x87_settle,
    .with_vector_state = tbd_processor_decode,
};

/* ---- */

static const struct tbd_mode_parts parts = { .callbacks = &tbd_stub_callbacks,
                                             .leaving = &leaving,
                                             .next_others = tbd_stub_next_others };

static bool create_stream(void)
{
    struct tbd_ring_config config = { .chunks = STREAM_CHUNKS,
                                      .def_capacity = STREAM_BLOCKS,
                                      .heap_capacity = STREAM_HEAP,
                                      .areas = STREAM_AREAS,
                                      .area_bytes = AREA_BYTES,
                                      .pid = (uint32_t)tbd_sys_getpid() };

    return tbd_ring_create(&tbd_recording.ring, TBD_PLAN_STREAM_FD, &config) == TBD_OK &&
           tbd_ring_guard(&tbd_recording.ring) && tbd_stub_map_unread(&tbd_recording.ring);
}

const char *tbd_stub_set_up(struct tbd_plan_head *plan)
{
    struct tbd_codegen_config config = { .hook_set = TBD_HOOKS_PARTIAL,
                                         .max_insns = TBD_BLOCK_MAX_INSNS,
                                         .link = true };
    const char *why;

    tbd_stub.plan = plan;
    tbd_processor.has_fsgsbase = plan->has_fsgsbase;
    if (!tbd_vector_init(&tbd_processor.vector,
                         plan->cpu == TBD_PLAN_CPU_V3 ? TBD_VECTOR_V3 : UINT64_MAX))
        return "this processor has no XSAVE";
    if (!map_thread() || !create_stream())
        return "no memory for the replay process";
    if (!tbd_stub_catch_faults())
        return "signal handlers cannot be installed";
    tbd_mode_enter(TBD_MODE_REPLAY, TBD_HOOKS_NONE, &parts); /* each window sets its hooks */
    why = tbd_mode_start_code(&config, false);
    if (why)
        return why;
    /* Here, while the kernel may still be asked: nearly all of it is written, even for a short window. */
    tbd_patcher_populate();
    tbd_patcher_populate_thread(tbd_thread_now());
    tbd_stub.hook_set = 0; /* each window sets its code */
    return NULL;
}
