// SPDX-License-Identifier: MIT
/* special.c - instructions that the engine executes itself
 *
 * All run in a slot, with the program's registers, so their results are the processor's.  They are
 * special because of what must be recorded: outputs that differ in another run (time stamps, cpuid,
 * random numbers), and stores whose address or length is not known when code is translated
 * (repeated strings are in special_strings.c).
 *
 * Context: APP. */
#include "hooks/instructions/special.h"

#include "base/cpuid.h"
#include "base/fmt.h"
#include "base/log.h"
#include "base/string.h"
#include "hooks/instructions/cpu_limit.h"
#include "hooks/instructions/processor.h"
#include "hooks/memory/effects.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/memory/shared.h"
#include "hooks/memory/userfault.h"
#include "hooks/stream/leaving.h"

#define CANONICAL_HALF (1ull << 47)

#define VENDOR_AMD   0x68747541u /* Auth: cpuid 0, ebx */
#define VENDOR_HYGON 0x6f677948u /* Hygo */

/* AMD's processors do not support sysenter in 64-bit code. */
static bool has_sysenter(void)
{
    uint32_t r[4];

    tbd_cpuid(0, 0, r);
    return r[1] != VENDOR_AMD && r[1] != VENDOR_HYGON;
}

static bool is_sysenter(const uint8_t *bytes, uint32_t length)
{
    return bytes[length - 2] == 0x0f && bytes[length - 1] == 0x34;
}

/* Lets the program go; the reason includes the instruction's bytes, so that one can tell which it
 * is. */
_Noreturn static void perform_unknown(struct tbd_special_run *s)
{
    static char text[96]; /* static: it is printed later */
    uint8_t bytes[15] = { 0 };
    size_t used;

    if (s->insn_bytes < 2 || s->insn_bytes > sizeof(bytes))
        tbd_special_give_up(s, "it runs an instruction that is not supported");
    tbd_copy_from_program(bytes, s->thread->regs.rip, s->insn_bytes);
    if (bytes[s->insn_bytes - 2] == 0xcd && bytes[s->insn_bytes - 1] == 0x80)
        tbd_special_give_up(s, "it makes system calls of 32-bit programs (int 0x80)");
    if (is_sysenter(bytes, s->insn_bytes) && s->slot && !has_sysenter())
        tbd_slot_run(s->thread, s->slot); /* raises SIGILL */
    if (is_sysenter(bytes, s->insn_bytes))
        tbd_special_give_up(s, "it makes system calls of 32-bit programs (sysenter)");
    used = tbd_fmt(text, sizeof(text), "it runs an instruction that is not supported:");
    for (uint32_t i = 0; i < s->insn_bytes && i < sizeof(bytes); i++)
        used += tbd_fmt(text + used, sizeof(text) - used, " %x%x", bytes[i] >> 4, bytes[i] & 15u);
    tbd_special_give_up(s, text);
}

/* ---- outputs in registers ---- */

static void run_register_output(struct tbd_special_run *s)
{
    tbd_slot_run(s->thread, s->slot);
    if (tbd_processor.is_hidden)
        tbd_cpu_limit(s->kind, &s->before, &s->thread->regs);
    tbd_special_finish(s, 0);
}

static void run_wrfsbase(struct tbd_special_run *s)
{
    uint64_t base;

    if (!tbd_processor.has_fsgsbase)
        tbd_special_give_up(s, "it writes the fs base on a system without fsgsbase");
    tbd_slot_run(s->thread, s->slot);
    __asm__ volatile("rdfsbase %0" : "=r"(base));
    s->thread->regs.fs_base = base;
    tbd_special_finish(s, TBD_SPECIAL_F_REPLAYED);
}

/* rdgsbase, wrgsbase: f3 [REX] 0f ae, ModRM of a register.  The instruction accesses the program's
 * gs base, which is in regs; the processor's gs base is the engine's. */
static void run_gsbase(struct tbd_special_run *s)
{
    struct tbd_regs *regs = &s->thread->regs;
    uint8_t bytes[15] = { 0 };
    uint8_t rex, reg;
    uint64_t mask;

    if (s->insn_bytes < 4 || s->insn_bytes > sizeof(bytes) ||
        !tbd_copy_from_program(bytes, regs->rip, s->insn_bytes))
        perform_unknown(s);
    rex = (bytes[s->insn_bytes - 4] & 0xf0) == 0x40 ? bytes[s->insn_bytes - 4] : 0;
    reg = (uint8_t)((bytes[s->insn_bytes - 1] & 7) | (rex & 1) << 3);
    mask = rex & 8 ? UINT64_MAX : UINT32_MAX;
    if (!tbd_processor.has_fsgsbase)
        tbd_slot_run(s->thread, s->slot); /* raises SIGILL */
    if (s->kind == TBD_SPECIAL_RDGSBASE)
        regs->gpr[reg] = regs->gs_base & mask;
    else if (((regs->gpr[reg] & mask) + CANONICAL_HALF) >> 48)
        tbd_slot_run(s->thread, s->slot); /* raises SIGSEGV */
    else
        regs->gs_base = regs->gpr[reg] & mask;
    tbd_special_finish(s, TBD_SPECIAL_F_REPLAYED);
}

/* ---- transactions ---- */

#define CPUID_RTM (1u << 11) /* leaf 7, ebx */

static bool has_transactions(struct tbd_special_run *s)
{
    uint32_t r[4];

    if (tbd_next_others)
        return tbd_next_others(s->effects, &s->others); /* as in play */
    tbd_cpuid(7, 0, r);
    return r[1] & CPUID_RTM;
}

/* A processor may abort any transaction, for any reason.  Here all are aborted, with a status
 * that does not suggest another try.  The instruction ends with the distance to the code for an
 * abort. */
static void run_xbegin(struct tbd_special_run *s)
{
    struct tbd_regs *regs = &s->thread->regs;
    int32_t distance;

    if (!has_transactions(s))
        tbd_slot_run(s->thread, s->slot); /* raises SIGILL */
    if (!tbd_copy_from_program(&distance, regs->rip + s->insn_bytes - sizeof(distance),
                               sizeof(distance)))
        perform_unknown(s);
    regs->gpr[TBD_RAX] = 0;
    regs->rip += (uint64_t)(int64_t)distance;
    tbd_special_finish(s, TBD_SPECIAL_F_REPLAYED);
}

/* ---- outputs in memory ---- */

/* Takes changed bytes as written; a store of equal bytes is not noticed. */
static void run_and_compare(struct tbd_special_run *s, uint32_t flags)
{
    uint64_t address = tbd_slot_operand(s->thread, s->slot);

    tbd_slot_run(s->thread, s->slot);
    if (s->kind == TBD_SPECIAL_OTHER_STORE)
        tbd_x87_correct_environment(s->thread->regs.rip, s->insn_bytes, address);
    tbd_effects_compare(s->effects);
    tbd_special_finish(s, flags);
}

bool tbd_special_logs_stores;

/* x87 environments (OTHER_STORE) contain the address of the last instruction.  Some processors do
 * not let it be set, so there it differs in replay. */
static bool can_be_replayed(const struct tbd_special_run *s, const struct tbd_sys_range *ranges,
                            size_t count)
{
    if (s->kind != TBD_SPECIAL_OTHER_STORE)
        return true;
    for (size_t i = 0; i < count; i++)
        if (tbd_shared_holds(ranges[i].address, ranges[i].address + ranges[i].bytes))
            return false;
    return tbd_x87_is_exact();
}

static void run_elements(struct tbd_special_run *s)
{
    struct tbd_sys_range ranges[TBD_SLOT_MAX_RANGES];
    size_t count;
    enum tbd_slot_stores known = tbd_slot_stores(s->thread, s->slot, ranges, &count);
    uint32_t flags = tbd_special_logs_stores             ? TBD_SPECIAL_F_STOP
                     : can_be_replayed(s, ranges, count) ? TBD_SPECIAL_F_REPLAYED
                                                         : 0;

    if (tbd_slot_tile(s->slot) != TBD_SLOT_NO_TILE) {
        tbd_tile_store(s, tbd_special_logs_stores ? TBD_SPECIAL_F_STOP : TBD_SPECIAL_F_REPLAYED);
        return;
    }
    if (tbd_special_leaves(s, ranges, count, true))
        return;
    switch (known) {
    case TBD_SLOT_EXACTLY:
        if (!tbd_shared_store(s, ranges, count, true)) {
            tbd_effects_watch(s->effects, ranges, count);
            tbd_slot_run(s->thread, s->slot);
            tbd_effects_written(s->effects, ranges, count);
        }
        tbd_special_finish(s, flags);
        return;
    case TBD_SLOT_UP_TO:
        if (tbd_shared_store(s, ranges, count, false)) {
            tbd_special_finish(s, flags);
            return;
        }
        tbd_effects_watch(s->effects, ranges, count);
        break;
    case TBD_SLOT_UNKNOWN: tbd_effects_watch_all(s->effects); break;
    }
    run_and_compare(s, flags);
}

/* Which components are stored depends on history, so replay takes the bytes from the log. */
static void run_xsave(struct tbd_special_run *s)
{
    const struct tbd_regs *regs = &s->thread->regs;
    struct tbd_sys_range ranges[TBD_SLOT_MAX_RANGES];
    size_t count;

    if (tbd_slot_stores(s->thread, s->slot, ranges, &count) == TBD_SLOT_UNKNOWN || !count)
        tbd_special_give_up(s, "it stores its vector state in a way that is not known");
    ranges[0].bytes = tbd_vector_xsave_bytes(
        &tbd_processor.vector, regs->gpr[TBD_RDX] << 32 | (uint32_t)regs->gpr[TBD_RAX]);
    if (tbd_special_leaves(s, ranges, 1, true))
        return;
    if (tbd_shared_store(s, ranges, 1, false)) {
        tbd_special_finish(s, 0);
        return;
    }
    tbd_effects_watch(s->effects, ranges, 1);
    run_and_compare(s, 0);
}

/* ---- loads ---- */

/* Leaves the block if an element's page is missing (userfaultfd). */
static bool gather_leaves(struct tbd_special_run *s)
{
    struct tbd_sys_range ranges[TBD_SLOT_MAX_RANGES];
    struct tbd_slot_elements elements;

    if (!tbd_userfault_count)
        return false;
    tbd_slot_elements(s->thread, s->slot, &elements);
    for (size_t i = 0; i < elements.count; i++)
        ranges[i] = (struct tbd_sys_range){ elements.address[i], elements.bytes };
    return tbd_special_leaves(s, ranges, elements.count, false);
}

static void run_loads(struct tbd_special_run *s)
{
    if (tbd_slot_string_loads(s->slot).bytes) {
        tbd_special_string_loads(s);
    } else if (tbd_slot_tile(s->slot) != TBD_SLOT_NO_TILE) {
        tbd_tile_load(s);
    } else if (!gather_leaves(s)) {
        tbd_shared_gather(s);
        tbd_special_finish(s, TBD_SPECIAL_F_REPLAYED);
    }
}

/* ---- all ---- */

static void perform(struct tbd_special_run *s)
{
    switch (s->kind) {
    case TBD_SPECIAL_RDTSC:
    case TBD_SPECIAL_RDTSCP:
    case TBD_SPECIAL_CPUID:
    case TBD_SPECIAL_RDRAND:
    case TBD_SPECIAL_RDSEED:
    case TBD_SPECIAL_RDPID:
    case TBD_SPECIAL_XGETBV:
    case TBD_SPECIAL_RDFSBASE: run_register_output(s); break;
    case TBD_SPECIAL_WRFSBASE: run_wrfsbase(s); break;
    case TBD_SPECIAL_XSAVE:
        tbd_x87_settle();
        run_xsave(s);
        break;
    case TBD_SPECIAL_REP_STORE: tbd_special_string_stores(s); break;
    case TBD_SPECIAL_LOADS: run_loads(s); break;
    case TBD_SPECIAL_OTHER_STORE:
        tbd_x87_settle();
        run_elements(s);
        break;
    case TBD_SPECIAL_MASKED_STORE: run_elements(s); break;
    case TBD_SPECIAL_SHARED:
    case TBD_SPECIAL_APART:
    case TBD_SPECIAL_STATE:
    case TBD_SPECIAL_SEGMENT: tbd_shared_perform(s); break;
    case TBD_SPECIAL_XBEGIN: run_xbegin(s); break;
    case TBD_SPECIAL_RDGSBASE:
    case TBD_SPECIAL_WRGSBASE: run_gsbase(s); break;
    case TBD_SPECIAL_OTHER:
    default: perform_unknown(s);
    }
}

struct tbd_page_wait tbd_special_perform(struct tbd_thread *thread, enum tbd_special kind,
                                         uint32_t insn_bytes)
{
    struct tbd_special_run s = { .thread = thread,
                                 .kind = kind,
                                 .insn_bytes = insn_bytes,
                                 .effects = tbd_effects_get(),
                                 .before = thread->regs };

    if (insn_bytes == 0)
        tbd_detach(thread, "no free addresses for its code within reach", TBD_END_WHOLE);
    s.slot = tbd_slot_get(thread, insn_bytes);
    if (kind == TBD_SPECIAL_OTHER)
        perform_unknown(&s);
    if (!s.effects || !s.slot)
        tbd_special_give_up(&s, "an instruction cannot be executed apart from its place");
    if (tbd_slot_uses_gs(s.slot) && !tbd_processor.has_fsgsbase)
        tbd_special_give_up(&s, "it uses the gs register in a way that needs fsgsbase");
    tbd_effects_clear(s.effects);
    perform(&s);
    return s.wait;
}
