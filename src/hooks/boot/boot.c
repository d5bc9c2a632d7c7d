// SPDX-License-Identifier: MIT
/* boot.c - take-over: from libtbd.so's constructor to the first translated block
 *
 * Order: options; what the machine must have; thread area, known-page map, regions; stream and organizer,
 * which takes longest; decoder and patcher meanwhile; rseq and vDSO out of the way; signals; the
 * initial image; run.
 * Until the organizer is ready nothing of the program has been changed, so every failure before is
 * a plain return.  Runs on a stack of its own (entry_x86_64.S).  Context: BOOT. */
#include "hooks/boot/boot.h"

#include "base/layout.h"
#include "base/linux_abi.h"
#include "base/log.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/boot/begin.h"
#include "hooks/calls/debugged.h"
#include "hooks/boot/decoder.h"
#include "hooks/calls/exec_environment.h"
#include "hooks/boot/runtime.h"
#include "hooks/memory/shared.h"
#include "hooks/instructions/slot.h"
#include "hooks/boot/vdso.h"

#include <elf.h>

enum {
    RSEQ_BYTES = 32,
    RSEQ_CPU_ID_AT = offsetof(struct rseq, cpu_id),
};
#define RSEQ_SIGNATURE 0x53053053u

struct tbd_runtime tbd_runtime;

void tbd_boot(const struct tbd_boot *boot);

/* ---- facts ---- */

static const char *find_variable(char **envp, const char *name)
{
    for (; *envp; envp++) {
        size_t i = 0;

        while (name[i] && (*envp)[i] == name[i])
            i++;
        if (!name[i] && (*envp)[i] == '=')
            return *envp + i + 1;
    }
    return NULL;
}

static uint64_t find_auxiliary(char **envp, uint64_t type)
{
    const Elf64_auxv_t *entry;

    while (*envp)
        envp++;
    for (entry = (const Elf64_auxv_t *)(envp + 1); entry->a_type != AT_NULL; entry++)
        if (entry->a_type == type)
            return entry->a_un.a_val;
    return 0;
}

static bool has_bmi2(void)
{
    uint32_t r[4];

    tbd_cpuid(0, 0, r);
    if (r[0] < 13)
        return false;
    tbd_cpuid(7, 0, r);
    return r[1] >> 8 & 1;
}

static bool check_machine(const struct tbd_boot *boot)
{
    tbd_runtime.has_fsgsbase = find_auxiliary(boot->envp, AT_HWCAP2) & HWCAP2_FSGSBASE;
    if (!has_bmi2() || !tbd_vector_init(&tbd_runtime.vector)) {
        tbd_say("this processor lacks BMI2 or XSAVE: the program runs untraced");
        tbd_say("hint: x86-64-v3 (2013 and later) is needed");
        return false;
    }
    return true;
}

/* ---- segment bases ---- */

void tbd_set_gs_base(uint64_t base)
{
    if (tbd_runtime.has_fsgsbase)
        __asm__ volatile("wrgsbase %0" : : "r"(base));
    else
        tbd_sys3(__NR_arch_prctl, ARCH_SET_GS, base, 0);
}

void tbd_set_fs_base(uint64_t base)
{
    if (tbd_runtime.has_fsgsbase)
        __asm__ volatile("wrfsbase %0" : : "r"(base));
    else
        tbd_sys3(__NR_arch_prctl, ARCH_SET_FS, base, 0);
}

static uint64_t get_base(uint64_t which)
{
    uint64_t base = 0;

    tbd_sys3(__NR_arch_prctl, which, tbd_sys_pointer(&base), 0);
    return base;
}

/* ---- memory of the engine ---- */

/* Not in core dumps: they are the program's, and these are gigabytes of holes. */
static bool map_fixed(uint64_t address, uint64_t bytes)
{
    if (tbd_sys_mmap(address, bytes, TBD_PROT_RW, TBD_MAP_MEMORY | MAP_FIXED_NOREPLACE, -1, 0) !=
        (long)address)
        return false;
    tbd_sys_madvise(address, bytes, MADV_DONTDUMP);
    return true;
}

/* Thread block, touch map, engine and signal stack of the first thread. */
static bool map_thread(void)
{
    uint64_t gs = TBD_THREADS_BASE + TBD_THREAD_GS_OFFSET;
    uint64_t block = gs - sizeof(struct tbd_thread);
    uint64_t first = block & ~(TBD_PAGE_SIZE - 1);

    if (!map_fixed(first, gs + TBD_TOUCH_BYTES - first) ||
        !map_fixed(TBD_STACKS_BASE, TBD_STACK_SLOT_BYTES))
        return false;
    tbd_runtime.thread = (struct tbd_thread *)block;
    tbd_runtime.gs_base = gs;
    tbd_runtime.thread->self = block;
    tbd_runtime.thread->mark = TBD_THREAD_MARK;
    tbd_runtime.thread->tid = (uint32_t)tbd_sys_gettid();
    tbd_runtime.thread->engine_stack = TBD_STACKS_BASE + TBD_STACK_SLOT_BYTES / 2;
    tbd_threads_init(tbd_runtime.thread);
    return true;
}

static bool map_page_maps(void)
{
    struct tbd_arena known;
    struct tbd_arena tls;

    if (!tbd_arena_init(&known, TBD_KNOWN_BYTES) || !tbd_arena_init(&tls, 2 * TBD_PAGE_SIZE))
        return false;
    tbd_runtime.pages.known = known.start;
    tbd_runtime.pages.touch = (uint8_t *)tbd_runtime.gs_base;
    if (tbd_runtime.has_fsgsbase)
        tbd_runtime.decoder_tls = (uint64_t)(uintptr_t)tls.start + TBD_PAGE_SIZE;
    return true;
}

/* ---- what the kernel does behind the program's back ---- */

static void unregister_rseq(const struct tbd_boot *boot)
{
    long result;

    if (!boot->rseq || !boot->rseq_bytes)
        return;
    result = tbd_sys4(__NR_rseq, boot->rseq, RSEQ_BYTES, RSEQ_FLAG_UNREGISTER, RSEQ_SIGNATURE);
    if (tbd_sys_failed(result))
        result =
            tbd_sys4(__NR_rseq, boot->rseq, boot->rseq_bytes, RSEQ_FLAG_UNREGISTER, RSEQ_SIGNATURE);
    if (!tbd_sys_failed(result))
        *(int32_t *)(boot->rseq + RSEQ_CPU_ID_AT) = RSEQ_CPU_ID_REGISTRATION_FAILED;
}

static void patch_vdso(void)
{
    for (size_t i = 0; i < tbd_runtime.regions.count; i++) {
        const struct tbd_msg_region *map = &tbd_runtime.regions.table[i].map;

        if ((map->flags & TBD_REGION_VDSO) && !tbd_vdso_patch(map->start, map->end))
            tbd_say("cannot patch the vDSO: times read by the program are not recorded");
    }
}

/* ---- start ---- */

static void set_registers(const struct tbd_boot *boot)
{
    struct tbd_regs *regs = &tbd_runtime.thread->regs;

    *regs = (struct tbd_regs){ .rip = boot->regs->rip,
                               .rflags = 0x202,
                               .fs_base = get_base(ARCH_GET_FS),
                               .gs_base = get_base(ARCH_GET_GS) };
    regs->gpr[TBD_RBX] = boot->regs->rbx;
    regs->gpr[TBD_RBP] = boot->regs->rbp;
    regs->gpr[TBD_RSP] = boot->regs->rsp;
    regs->gpr[TBD_R12] = boot->regs->r12;
    regs->gpr[TBD_R13] = boot->regs->r13;
    regs->gpr[TBD_R14] = boot->regs->r14;
    regs->gpr[TBD_R15] = boot->regs->r15;
    regs->thread = tbd_runtime.thread->tid;
}

static bool start_patcher(void)
{
    struct tbd_decoder_api api;
    struct tbd_codegen_config config = tbd_begin_codegen();
    const char *wrong = tbd_decoder_load(&api);

    if (wrong) {
        tbd_say("%s: the program runs untraced", wrong);
        return false;
    }
    tbd_patcher_set_decoder(&api);
    tbd_slot_set_decoder(&api);
    if (tbd_patcher_init(tbd_runtime_callbacks(), &config))
        return true;
    tbd_say("cannot reserve memory for translated code: the program runs untraced");
    return false;
}

static bool parse_options(const struct tbd_boot *boot)
{
    char why[128];

    if (!tbd_options_parse(&tbd_runtime.options, find_variable(boot->envp, "TBD_OPTIONS"), why,
                           sizeof(why))) {
        tbd_say("%s: the program runs untraced", why);
        tbd_say("hint: tbd record --help lists the options");
        return false;
    }
    tbd_log_level = (enum tbd_log_level)tbd_runtime.options.log;
    return true;
}

static bool prepare(const struct tbd_boot *boot)
{
    if (!parse_options(boot) || !check_machine(boot))
        return false;
    if (tbd_debugged_by_recorded()) {
        tbd_say("process %u is watched by a recorded debugger: it runs untraced",
                (uint32_t)tbd_sys_getpid());
        return false;
    }
    tbd_runtime.pid = (uint32_t)tbd_sys_getpid();
    if (!map_thread() || !map_page_maps() || !tbd_regions_init(&tbd_runtime.regions) ||
        !tbd_begin_mappings(boot->library)) {
        tbd_say("cannot reserve the engine's address space: the program runs untraced");
        tbd_say("hint: memory is limited (ulimit -v, vm.overcommit_memory=2)");
        return false;
    }
    if (!tbd_begin_environment(boot->envp) || !tbd_begin_stream())
        return false;
    if (start_patcher())
        return tbd_begin_recording();
    tbd_begin_nothing();
    return false;
}

void tbd_boot(const struct tbd_boot *boot)
{
    bool is_ready = prepare(boot);
    struct tbd_thread *thread;

    tbd_exec_environment_hide(boot->envp);
    if (!is_ready)
        return;
    thread = tbd_runtime.thread;
    unregister_rseq(boot);
    patch_vdso();
    set_registers(boot);
    tbd_signals_init(thread);
    tbd_runtime.window_due =
        tbd_runtime.options.hooks ? tbd_runtime.options.window : TBD_TIME_NEVER;
    tbd_ring_start(&tbd_runtime.ring, thread, 0, tbd_runtime.window_due);
    tbd_shared_take_over();
    tbd_image_send(boot->argc, boot->argv);
    tbd_set_gs_base(tbd_runtime.gs_base);
    tbd_runtime.taken_over = true;
    TBD_LOG(TBD_LOG_INFO, "boot", "taken over pid %u at %p", tbd_runtime.pid,
            (void *)thread->regs.rip);
    tbd_patcher_run(thread);
}
