// SPDX-License-Identifier: MIT
/* boot.c - take-over: from libtbd.so's constructor to the first translated block
 *
 * Order: options; check of the machine; thread area, known-page map, regions; stream and organizer,
 * whose start takes longest; decoder and patcher meanwhile; rseq is taken from the kernel, the vDSO disabled; signals;
 * the initial image; run.  Nothing of the program is changed before the organizer is ready, so
 * every failure before that simply returns.  Runs on a stack of its own (entry_x86_64.S).  Context:
 * BOOT. */

#include "base/cpuid.h"
#include "base/layout.h"
#include "base/linux_abi.h"
#include "base/log.h"
#include "base/string.h"
#include "base/sys_clock.h"
#include "base/sys.h"
#include "format/probe/boot.h"
#include "hooks/boot/begin.h"
#include "hooks/boot/child.h"
#include "hooks/boot/free.h"
#include "hooks/boot/mode.h"
#include "hooks/boot/image.h"
#include "hooks/boot/last_state.h"
#include "hooks/boot/play.h"
#include "hooks/boot/runtime.h"
#include "hooks/boot/take_threads.h"
#include "hooks/boot/vdso.h"
#include "hooks/calls/call_families.h"
#include "hooks/calls/debugged.h"
#include "hooks/calls/exec_environment.h"
#include "hooks/calls/free_calls.h"
#include "hooks/calls/organizer_children.h"
#include "hooks/calls/program_limits.h"
#include "hooks/instructions/processor.h"
#include "hooks/instructions/slot.h"
#include "hooks/instructions/branch_functions.h"
#include "hooks/memory/branches.h"
#include "hooks/memory/calling_memory.h"
#include "hooks/memory/marked_pages.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/shared.h"
#include "hooks/own/own.h"
#include "hooks/own/own_cut.h"
#include "hooks/own/own_known.h"
#include "hooks/probes/triggers.h"
#include "hooks/probes/arm.h"
#include "hooks/stream/crash_ring.h"
#include "hooks/stream/recording.h"
#include "hooks/threads/detach.h"
#include "hooks/threads/free_leave.h"
#include "hooks/threads/free_threads.h"
#include "patcher/patcher.h"

#include <elf.h>

#define RSEQ_SIGNATURE 0x53053053u /* of the C library */
#ifndef AT_RSEQ_FEATURE_SIZE
#define AT_RSEQ_FEATURE_SIZE 27
#endif

struct tbd_runtime tbd_runtime;

bool tbd_boot(const struct tbd_boot *boot);

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

static bool check_machine(void)
{
    uint64_t limit = tbd_runtime.options.cpu == TBD_CPU_V3_TEST ? TBD_VECTOR_V3 : UINT64_MAX;

    tbd_processor.is_hidden = tbd_runtime.options.cpu != TBD_CPU_OWN;
    if (!has_bmi2() || !tbd_vector_init(&tbd_processor.vector, limit)) {
        tbd_say("this processor lacks BMI2 or XSAVE: the program runs untraced");
        tbd_say("hint: x86-64-v3 (2013 and later) is needed");
        return false;
    }
    return true;
}

/* ---- segment bases ---- */

static uint64_t get_base(uint64_t which)
{
    uint64_t base = 0;

    tbd_sys3(__NR_arch_prctl, which, tbd_sys_pointer(&base), 0);
    return base;
}

/* ---- modes ---- */

/* Where the engine goes on in a mode with these turns. */
struct ways_in {
    struct tbd_mode_parts parts;
    struct tbd_signal_exits signals;
    void (*begin_thread)(struct tbd_thread *thread);
    void (*alone)(struct tbd_thread *thread);
    bool (*record_child)(struct tbd_thread *thread);
    void (*run)(struct tbd_thread *thread); /* does not return */
    void (*thread_killed)(struct tbd_call *call);
    bool reads_clock; /* the vDSO's functions run as they are */
};

static const struct ways_in play = {
    .parts = { .callbacks = &tbd_play_callbacks, .leaving = &tbd_leaving_play },
    .signals = { .after_fault = tbd_play_after_fault,
                 .hides_child = tbd_organizer_children_sent_sigsafe },
    .begin_thread = tbd_play_begin_thread,
    .alone = tbd_threads_after_fork,
    .record_child = tbd_child_record,
    .run = tbd_patcher_run,
    .thread_killed = tbd_call_thread_killed,
};

static const struct tbd_own_ways own_ways = { .settle = tbd_play_settle,
                                              .after_fault = tbd_play_after_fault };

static bool record_own_child(struct tbd_thread *thread)
{
    if (tbd_own_is_translated())
        return tbd_child_record(thread);
    if (tbd_own_prepare_child() && tbd_child_record(thread)) {
        tbd_own_begin_child();
        return true;
    }
    tbd_own_leave_child();
    return false;
}

static const struct ways_in own_code = {
    .parts = { .callbacks = &tbd_play_callbacks, .leaving = &tbd_leaving_own },
    .signals = { .stops = tbd_own_stops_sigsafe,
                 .has_own = tbd_own_has_sigsafe,
                 .queued = tbd_cut_soon_sigsafe,
                 .pauses = tbd_cut_pause,
                 .dies = tbd_own_dies,
                 .after_fault = tbd_own_stopped,
                 .hides_child = tbd_organizer_children_sent_sigsafe },
    .begin_thread = tbd_own_begin_thread,
    .alone = tbd_threads_after_fork,
    .record_child = record_own_child,
    .run = tbd_own_run,
    .thread_killed = tbd_call_thread_killed,
};

static const struct ways_in free_run = {
    .parts = { .callbacks = &tbd_free_callbacks, .leaving = &tbd_leaving_free },
    .signals = { .after_fault = tbd_free_after_fault,
                 .hides_child = tbd_free_hides_child,
                 .dies = tbd_last_state_send,
                 .asked = tbd_last_state_ask_sigsafe,
                 .delivers = tbd_free_delivers,
                 .dumped = tbd_free_let_others_go },
    .begin_thread = tbd_free_begin_thread,
    .alone = tbd_free_after_fork,
    .record_child = tbd_free_record_child,
    .run = tbd_patcher_run,
    .thread_killed = tbd_free_thread_killed,
    .reads_clock = true,
};

static const struct ways_in *ways_of(enum tbd_mode_kind kind)
{
    const struct tbd_mode *mode = tbd_mode_row(kind);

    if (mode->code == TBD_CODE_OWN)
        return &own_code;
    return mode->turns == TBD_TURNS_ALL ? &free_run : &play;
}

static const struct ways_in *entered;

static const struct ways_in *ways_in(void)
{
    return entered;
}

/* ---- memory of the engine ---- */

/* Kept out of core dumps: these belong to the program, and the engine's mappings are gigabytes of
 * holes. */
static bool map_fixed(uint64_t address, uint64_t bytes)
{
    if (tbd_sys_mmap(address, bytes, TBD_PROT_RW, TBD_MAP_MEMORY | MAP_FIXED_NOREPLACE, -1, 0) !=
        (long)address)
        return false;
    tbd_sys_madvise(address, bytes, MADV_DONTDUMP);
    return true;
}

/* Thread block, touch map, engine and signal stack of the first thread. */
static struct tbd_thread *map_thread(void)
{
    uint64_t gs = TBD_THREADS_BASE + TBD_THREAD_GS_OFFSET;
    uint64_t block = gs - sizeof(struct tbd_thread);
    uint64_t first = block & ~(TBD_PAGE_SIZE - 1);
    struct tbd_thread *thread = (struct tbd_thread *)block;

    if (!map_fixed(first, gs + TBD_TOUCH_BYTES - first) ||
        !map_fixed(TBD_STACKS_BASE, TBD_STACK_SLOT_BYTES))
        return NULL;
    tbd_processor.gs_base = gs;
    thread->self = block;
    thread->mark = TBD_THREAD_MARK;
    thread->tid = (uint32_t)tbd_sys_gettid();
    thread->engine_stack = TBD_STACKS_BASE + TBD_STACK_SLOT_BYTES / 2;
    tbd_threads_init(thread, tbd_runtime.options.quantum,
                     tbd_mode()->turns == TBD_TURNS_LOCK ? tbd_runtime.options.chaos : 0,
                     ways_in()->begin_thread);
    return thread;
}

static bool map_page_maps(void)
{
    struct tbd_arena known;

    if (!tbd_arena_init(&known, TBD_KNOWN_BYTES))
        return false;
    tbd_memory.pages.known = known.start;
    tbd_memory.pages.touch = (uint8_t *)tbd_processor.gs_base;
    tbd_memory.pages.next_marked = tbd_marked_next;
    tbd_memory.pages.omits_stores = tbd_mode()->omits_records;
    return true;
}

/* ---- kernel features that would bypass the recording ---- */

static bool unregister_rseq(uint64_t area, uint32_t bytes)
{
    return tbd_sys4(__NR_rseq, area, bytes, RSEQ_FLAG_UNREGISTER, RSEQ_SIGNATURE) == 0;
}

/* A program that asks the C library before its first sequence has another way then.  The variable cannot be written since
 * the library is linked. */
static void say_not_registered(uint64_t size_at)
{
    uint64_t page = size_at & ~(TBD_PAGE_SIZE - 1ull);
    bool is_writable =
        tbd_regions_allow(&tbd_memory.regions, size_at, size_at + sizeof(uint32_t), PROT_WRITE);

    if (!is_writable && tbd_sys_mprotect(page, TBD_PAGE_SIZE, PROT_READ | PROT_WRITE) != 0)
        return;
    *(volatile uint32_t *)size_at = 0;
    if (!is_writable)
        tbd_sys_mprotect(page, TBD_PAGE_SIZE, PROT_READ);
}

/* The C library's size is what it uses; it registers at least the original size. */
static void take_over_rseq(const struct tbd_boot *boot)
{
    struct tbd_rseq *own = &tbd_threads.holder->rseq;
    uint32_t bytes = TBD_RSEQ_ORIGINAL_BYTES;

    if (!boot->rseq || !boot->rseq_bytes)
        bytes = 0;
    else if (!unregister_rseq(boot->rseq, bytes))
        bytes = unregister_rseq(boot->rseq, boot->rseq_bytes) ? boot->rseq_bytes : 0;
    if (bytes)
        *own = (struct tbd_rseq){ .area = boot->rseq, .bytes = bytes, .signature = RSEQ_SIGNATURE };
    tbd_rseq_take_over(own, find_auxiliary(boot->envp, AT_RSEQ_FEATURE_SIZE));
    if (own->kept && boot->rseq_size)
        say_not_registered(boot->rseq_size);
}

static void patch_vdso(bool runs)
{
    for (size_t i = 0; i < tbd_memory.regions.count; i++) {
        const struct tbd_msg_region *map = &tbd_memory.regions.table[i].map;

        if ((map->flags & TBD_REGION_VDSO) && !tbd_vdso_patch(map->start, map->end, runs))
            tbd_say("cannot patch the vDSO: times read by the program are not recorded");
    }
}

/* ---- start ---- */

static void set_registers(struct tbd_thread *thread, const struct tbd_boot *boot)
{
    struct tbd_regs *regs = &thread->regs;

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
    regs->thread = thread->tid;
}

static bool start_code(const struct tbd_thread *thread, bool is_copied)
{
    struct tbd_codegen_config config = tbd_begin_codegen();
    const char *wrong = tbd_mode_start_code(&config, is_copied);

    if (wrong)
        tbd_say("%s: the program runs untraced", wrong);
    if (!wrong && tbd_mode()->code == TBD_CODE_TRANSLATED) {
        tbd_patcher_populate();
        tbd_patcher_populate_thread(thread);
    }
    return !wrong;
}

/* What cannot be recorded natively is recorded translated; who has asked for native play is told. */
static enum tbd_mode_kind possible(enum tbd_mode_kind kind)
{
    const char *why = kind == TBD_MODE_NATIVE ? tbd_own_check() : NULL;

    if (!why)
        return kind;
    if (tbd_runtime.options.mode == TBD_MODE_NATIVE)
        tbd_say("%s: the program runs translated", why);
    else
        TBD_LOG(TBD_LOG_INFO, "boot", "%s: the program runs translated", why);
    return TBD_MODE_LATER;
}

/* As base/processors.h says. */
static uint64_t assumed_processors(char **envp)
{
    const char *text = find_variable(envp, "TBD_PROCESSORS");
    uint64_t number = 0;

    for (; text && *text >= '0' && *text <= '9' && number < UINT16_MAX; text++)
        number = number * 10 + (uint64_t)(*text - '0');
    return number;
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
    /* its threads are taken at any instruction, which only translated code can go on from */
    if (boot->takeover && tbd_runtime.options.mode == TBD_MODE_AUTO)
        tbd_runtime.options.mode = TBD_MODE_TRACED;
    tbd_runtime.options.processors = assumed_processors(boot->envp);
    tbd_log_level = (enum tbd_log_level)tbd_runtime.options.log;
    return true;
}

static void enter_mode(void)
{
    enum tbd_mode_kind kind;

    tbd_recording.window = tbd_runtime.options.window;
    kind = tbd_mode_of(&tbd_runtime.options);
    kind = possible(kind);
    entered = ways_of(kind);
    tbd_mode_enter(kind, tbd_runtime.options.hooks, &entered->parts);
    if (tbd_mode()->turns == TBD_TURNS_ALL)
        tbd_free_start();
}

/* Tells hooks/calls how this process is recorded: the calls and new programs depend on it. */
static void tell_calls(void)
{
    static struct tbd_inherited inherited;
    static struct tbd_call_policy policy;
    const struct tbd_options *options = &tbd_runtime.options;

    inherited = (struct tbd_inherited){ .environment = tbd_runtime.environment,
                                        .dir = options->dir,
                                        .lib_dir = tbd_runtime.lib_dir,
                                        .children = options->children };
    policy = (struct tbd_call_policy){ .alone = ways_in()->alone,
                                       .record_child = ways_in()->record_child,
                                       .run = ways_in()->run,
                                       .thread_killed = ways_in()->thread_killed,
                                       .ends = tbd_last_state_at_exit,
                                       .children = options->children,
                                       .threads = options->threads &&
                                                  tbd_mode()->turns != TBD_TURNS_ALONE };
    tbd_exec_environment_init(&inherited);
    tbd_call_policy = &policy;
    tbd_organizer_children_init(options->organizer);
}

/* For mode=context. */
static bool begin_contexts(void)
{
    const struct tbd_options *options = &tbd_runtime.options;

    if (options->branches[0] &&
        !tbd_branch_functions_init(options->branches, (enum tbd_branch_scheme)options->tally)) {
        tbd_say(
            "option 'branches' in TBD_OPTIONS needs FILE:START-END;...: the program runs untraced");
        tbd_say("hint: tbd record --branches=NAME finds them");
        return false;
    }
    if (tbd_calling_memory_init((enum tbd_calling_scheme)options->scheme) &&
        (!options->branches[0] || tbd_branches_init()))
        return true;
    tbd_begin_say_no_memory();
    return false;
}

/* Returns the first thread's block; NULL: the program runs untraced. */
static struct tbd_thread *prepare(const struct tbd_boot *boot)
{
    struct tbd_thread *thread;

    tbd_processor.has_fsgsbase = find_auxiliary(boot->envp, AT_HWCAP2) & HWCAP2_FSGSBASE;
    enter_mode();
    if (!check_machine())
        return NULL;
    if (tbd_debugged_by_recorded()) {
        tbd_say("process %u is watched by a recorded debugger: it runs untraced",
                (uint32_t)tbd_sys_getpid());
        return NULL;
    }
    tbd_recording.pid = (uint32_t)tbd_sys_getpid();
    tbd_program_limits_begin();
    thread = map_thread();
    if (!thread || !map_page_maps() || !tbd_regions_init(&tbd_memory.regions)) {
        tbd_begin_say_no_memory();
        return NULL;
    }
    if (!tbd_begin_mappings(boot->library)) {
        tbd_begin_say_no_proc();
        return NULL;
    }
    if (!tbd_begin_environment(boot->envp))
        return NULL;
    tbd_own_known_begin(tbd_runtime.options.dir, tbd_runtime.environment);
    tell_calls();
    if (!tbd_begin_stream())
        return NULL;
    if (tbd_runtime.options.contexts && !begin_contexts())
        return NULL;
    if (start_code(thread, boot->is_copied || boot->takeover))
        return tbd_begin_recording() ? thread : NULL;
    tbd_begin_nothing();
    return NULL;
}

/* ---- a process that runs already ---- */

/* What the engine says goes to who takes the process over: its stderr may be anything. */
static void keep_messages(struct tbd_takeover *takeover)
{
    tbd_log_silent = false;
    takeover->why[0] = '\0';
    tbd_log_kept = takeover->why;
    tbd_log_kept_bytes = sizeof(takeover->why);
}

static void end_messages(void)
{
    tbd_log_silent = true;
    tbd_log_kept = NULL;
}

/* All other threads run. */
static bool take_prepare(const struct tbd_boot *boot)
{
    struct tbd_rseq none = { 0 };
    bool done;

    keep_messages(boot->takeover);
    memcpy(tbd_runtime.lib_dir, boot->takeover->lib_dir, sizeof(tbd_runtime.lib_dir) - 1);
    tbd_rseq_take_over(&none, find_auxiliary(boot->envp, AT_RSEQ_FEATURE_SIZE));
    done = parse_options(boot) && prepare(boot);
    end_messages();
    return done;
}

/* Those of the command line, which the collector has posted. */
static void take_triggers(struct tbd_thread *thread)
{
    char why[64];

    if (!tbd_crash_is_on() || tbd_triggers_take(thread, why, sizeof(why)))
        return;
    tbd_say("%s: there are no triggers, and no functions as parts", why);
    tbd_say("hint: tbd set %u trigger=WHAT sets others while it runs", tbd_recording.pid);
}

/* All stand still for longer than they may: nothing that the program has is changed yet. */
static bool is_late(struct tbd_takeover *takeover)
{
    takeover->is_late |= tbd_sys_clock_ns() > takeover->until_ns;
    return takeover->is_late;
}

static bool take_free(struct tbd_thread *thread, const struct tbd_boot *boot)
{
    tbd_crash_give_ring(thread, 0, boot->takeover->threads[0].regs.thread);
    take_triggers(thread);
    tbd_shared_take_over();
    tbd_image_send(boot->argc, boot->argv);
    if (!tbd_take_threads_free(thread, boot->takeover) || is_late(boot->takeover))
        return false;
    tbd_signals_take(&ways_in()->signals);
    return true;
}

static bool take_in_turn(struct tbd_thread *thread, const struct tbd_boot *boot)
{
    if (is_late(boot->takeover))
        return false;
    patch_vdso(true);
    if (!tbd_take_threads_prepare(thread, boot->takeover))
        return false;
    tbd_signals_take(&ways_in()->signals);
    tbd_signals_block_all(); /* but for the five: reading memory may fault */
    tbd_shared_take_over();
    tbd_image_send(boot->argc, boot->argv);
    tbd_take_threads_in_turn(thread, boot->takeover);
    tbd_detach_undoes(tbd_vdso_undo);
    return true;
}

/* All other threads are stopped. */
static bool take(const struct tbd_boot *boot)
{
    struct tbd_thread *thread =
        (struct tbd_thread *)(tbd_processor.gs_base - sizeof(struct tbd_thread));
    bool done;

    tbd_set_gs_base(tbd_processor.gs_base);
    keep_messages(boot->takeover);
    done = tbd_begin_mappings(0);
    tbd_recording.window_due = tbd_recording_has_blocks() ? tbd_recording.window : TBD_TIME_NEVER;
    tbd_ring_start(&tbd_recording.ring, thread, 0, tbd_recording.window_due);
    if (done)
        done = tbd_threads.is_free ? take_free(thread, boot) : take_in_turn(thread, boot);
    if (!done)
        tbd_begin_nothing();
    end_messages();
    return done;
}

static bool give_up(const struct tbd_boot *boot)
{
    keep_messages(boot->takeover);
    tbd_set_gs_base(tbd_processor.gs_base);
    tbd_begin_nothing();
    end_messages();
    return true;
}

static bool take_phase(const struct tbd_boot *boot)
{
    static bool (*const phases[])(const struct tbd_boot *boot) = {
        [TBD_TAKEOVER_PREPARE] = take_prepare,
        [TBD_TAKEOVER_TAKE] = take,
        [TBD_TAKEOVER_GIVE_UP] = give_up,
    };

    return phases[boot->takeover->phase](boot);
}

bool tbd_boot(const struct tbd_boot *boot)
{
    struct tbd_thread *thread = NULL;

    if (boot->takeover)
        return take_phase(boot);
    if (parse_options(boot)) {
        if (tbd_runtime.options.mode == TBD_MODE_ARMED)
            return tbd_arm(tbd_runtime.options.wait, boot->envp);
        thread = prepare(boot);
        if (!thread)
            tbd_program_limits_give_back();
    }
    tbd_exec_environment_hide(boot->envp);
    if (!thread)
        return false;
    take_over_rseq(boot);
    if (!ways_in()->reads_clock)
        patch_vdso(false);
    set_registers(thread, boot);
    tbd_set_gs_base(tbd_processor.gs_base);
    tbd_signals_init(thread, &ways_in()->signals);
    tbd_recording.window_due = tbd_recording_has_blocks() ? tbd_recording.window : TBD_TIME_NEVER;
    tbd_ring_start(&tbd_recording.ring, thread, 0, tbd_recording.window_due);
    tbd_crash_give_ring(thread, 0, thread->tid);
    take_triggers(thread);
    tbd_calling_begin_thread(thread);
    tbd_shared_take_over();
    tbd_image_send(boot->argc, boot->argv);
    TBD_LOG(TBD_LOG_INFO, "boot", "taken over pid %u at %p", tbd_recording.pid,
            (void *)thread->regs.rip);
    if (tbd_mode()->code == TBD_CODE_OWN)
        tbd_own_begin(tbd_runtime.options.cut * 1000, &own_ways);
    tbd_detach_undoes(tbd_vdso_undo);
    ways_in()->run(thread);
    __builtin_unreachable();
}
