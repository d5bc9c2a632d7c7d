// SPDX-License-Identifier: MIT
/* shared_insn.c - instructions that access memory which other processes may write (hooks/memory/shared.h)
 *
 * Such memory is read once, into a buffer.  Differences from what the log knows are logged as
 * stores of others, and the instruction runs on the buffer: so it sees exactly what is logged.  Its
 * stores go from the buffer to the real memory: in one access if the processor uses one, and for
 * atomic instructions by compare-and-exchange, repeated if another thread was faster.
 *
 * In a replay process the log's stores of others are made first, then the instruction runs on the
 * memory itself.  Context: APP. */
#include "hooks/instructions/special.h"

#include "base/string.h"
#include "base/sys.h"
#include "hooks/instructions/decoded.h"
#include "hooks/instructions/processor.h"
#include "hooks/instructions/redirect.h"
#include "hooks/instructions/shared_quick.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/memory/shared.h"
#include "hooks/memory/userfault.h"
#include "hooks/stream/leaving.h"
#include "hooks/stream/recording.h"
#include "patcher/forced_specials.h"

#define FLAG_ZF 0x40ull

struct access {
    const struct tbd_access *what;
    struct tbd_sys_range range;
    bool is_shared;
};

struct shared_run {
    struct tbd_special_run *s;
    const struct tbd_insn *insn;
    uint8_t bytes[TBD_INSN_MAX_BYTES];
    struct access access[TBD_INSN_MAX_ACCESSES];
    uint32_t shared_count;
    bool is_userfault; /* an access is to memory that others fill (userfault.h) */
};

/* ---- accesses of the instruction ---- */

static int64_t bit_offset(const struct tbd_access *a, const struct tbd_regs *regs)
{
    uint64_t value = regs->gpr[a->bit_reg];
    int64_t number = a->size == 2 ? (int16_t)value : a->size == 4 ? (int32_t)value : (int64_t)value;

    return (number >> (a->size == 2 ? 4 : a->size == 4 ? 5 : 6)) * a->size;
}

static uint64_t address_of(const struct tbd_access *a, const struct tbd_regs *regs)
{
    uint64_t address = (uint64_t)a->ea.disp;

    if (a->ea.base != TBD_NO_REG)
        address += regs->gpr[a->ea.base];
    if (a->flags & TBD_ACCESS_XLAT)
        address += regs->gpr[TBD_RAX] & 0xff;
    else if (a->ea.index != TBD_NO_REG)
        address += regs->gpr[a->ea.index] * a->ea.scale;
    if (a->flags & TBD_ACCESS_BITS)
        address += (uint64_t)bit_offset(a, regs);
    if (a->ea.addr32)
        address &= 0xffffffff;
    return address + (a->ea.fs ? regs->fs_base : a->ea.gs ? regs->gs_base : 0);
}

static void find_accesses(struct shared_run *run)
{
    const struct tbd_regs *regs = &run->s->thread->regs;

    run->shared_count = 0;
    run->is_userfault = false;
    for (unsigned i = 0; i < run->insn->access_count; i++) {
        struct access *access = &run->access[i];

        access->what = &run->insn->access[i];
        access->range.address = address_of(access->what, regs);
        access->range.bytes = access->what->size;
        access->is_shared =
            tbd_shared_holds(access->range.address, access->range.address + access->range.bytes);
        run->shared_count += access->is_shared;
        run->is_userfault |=
            tbd_userfault_holds(access->range.address, access->range.address + access->range.bytes);
    }
}

static bool is_written(const struct access *access)
{
    return access->what->flags & TBD_ACCESS_WRITE;
}

static void mark_reads(const struct shared_run *run)
{
    for (unsigned i = 0; i < run->insn->access_count; i++)
        tbd_pages_mark_read(&tbd_memory.pages, run->access[i].range.address,
                            run->access[i].range.address + run->access[i].range.bytes);
}

static void watch_stores(const struct shared_run *run, const struct access *but)
{
    for (unsigned i = 0; i < run->insn->access_count; i++)
        if (is_written(&run->access[i]) && &run->access[i] != but)
            tbd_effects_watch(run->s->effects, &run->access[i].range, 1);
}

static void add_stores(const struct shared_run *run, const struct access *but)
{
    for (unsigned i = 0; i < run->insn->access_count; i++)
        if (is_written(&run->access[i]) && &run->access[i] != but)
            tbd_effects_written(run->s->effects, &run->access[i].range, 1);
}

/* Runs the instruction on the memory itself. */
static void run_plainly(const struct shared_run *run)
{
    watch_stores(run, NULL);
    tbd_slot_run(run->s->thread, run->s->slot);
    add_stores(run, NULL);
}

/* Are all operands mapped?  If not, the instruction runs on the memory itself, and faults. */
static bool is_there(const struct shared_run *run)
{
    for (unsigned i = 0; i < run->insn->access_count; i++) {
        const struct access *access = &run->access[i];
        uint8_t ends[2];

        if ((is_written(access) && !tbd_shared_is_writable(&access->range)) ||
            !tbd_copy_from_program(&ends[0], access->range.address, 1) ||
            !tbd_copy_from_program(&ends[1], access->range.address + access->range.bytes - 1, 1))
            return false;
    }
    return true;
}

static void note_not_followed(const struct shared_run *run)
{
    static bool said;

    if (said || !is_there(run))
        return;
    said = true;
    tbd_recording_note(
        1,
        "the instruction at 0x%lx uses memory that other processes may write in a way that is not followed",
        run->insn->pc);
}

/* ---- pages that others fill ---- */

static bool misses_page(const struct shared_run *run, uint64_t *address, bool *is_write)
{
    for (unsigned i = 0; run->is_userfault && i < run->insn->access_count; i++) {
        *is_write = is_written(&run->access[i]);
        if (tbd_userfault_misses(&run->access[i].range, *is_write, address))
            return true;
    }
    return false;
}

static void adopt_pages(const struct shared_run *run)
{
    for (unsigned i = 0; run->is_userfault && i < run->insn->access_count; i++)
        tbd_userfault_adopt(run->s->effects, &run->access[i].range, &run->s->others);
}

/* Called before any part is executed.  True: a page is missing, so the block was left. */
static bool leaves_for_page(const struct shared_run *run)
{
    uint64_t address;
    bool is_write;

    if (!misses_page(run, &address, &is_write))
        return false;
    tbd_special_leave_block(run->s, address, is_write);
    return true;
}

/* ---- on a buffer ---- */

static bool has_prefix(const struct shared_run *run, uint8_t prefix)
{
    for (uint32_t i = 0; i < run->insn->length && i < 4; i++)
        if (run->bytes[i] == prefix)
            return true;
    return false;
}

/* A lock prefix, or xchg with memory. */
static bool is_atomic(const struct shared_run *run)
{
    uint32_t at = run->insn->modrm_at;
    bool is_one_byte = at == 1 || (at > 1 && run->bytes[at - 2] != 0x0f);
    bool is_exchange =
        at && is_one_byte && run->insn->prefix_bytes <= 1 && (run->bytes[at - 1] & 0xfe) == 0x86;

    return is_exchange || (run->insn->prefix_bytes <= 1 && has_prefix(run, 0xf0));
}

struct on_buffer {
    const struct access *access;
    struct tbd_redirected redirected;
    uint8_t old[TBD_REDIRECT_MAX_BYTES];  /* the contents that the log knows */
    uint8_t read[TBD_REDIRECT_MAX_BYTES]; /* the contents that the instruction saw */
};

static bool prepare(const struct shared_run *run, struct on_buffer *b)
{
    const struct tbd_sys_range *range = &b->access->range;

    if (range->bytes > TBD_REDIRECT_MAX_BYTES)
        return false;
    if (!tbd_redirect(run->insn, run->bytes, range->address, &b->redirected))
        return false;
    if (is_written(b->access) && !tbd_shared_is_writable(range))
        return false;
    return tbd_shared_read(b->old, range->address, range->bytes) == range->bytes;
}

/* For bt and its kind, the buffer has only the word with the bit: reduces the bit's number to its
 * position in that word. */
static void run_redirected(const struct shared_run *run, const struct on_buffer *b)
{
    struct tbd_regs *regs = &run->s->thread->regs;
    const struct tbd_access *what = b->access->what;
    uint64_t number = what->flags & TBD_ACCESS_BITS ? regs->gpr[what->bit_reg] : 0;

    if (what->flags & TBD_ACCESS_BITS)
        regs->gpr[what->bit_reg] &= what->size * 8u - 1;
    tbd_redirect_run(run->s->thread, &b->redirected);
    if (what->flags & TBD_ACCESS_BITS)
        regs->gpr[what->bit_reg] = number;
}

/* Repeats an atomic instruction until no other thread interferes.  False: the memory was
 * unmapped. */
static bool execute(const struct shared_run *run, const struct on_buffer *b, uint8_t *read)
{
    const struct tbd_sys_range *range = &b->access->range;
    bool atomic = is_atomic(run);

    for (;;) {
        run->s->thread->regs = run->s->before;
        if (!tbd_load_from_program(read, range->address, range->bytes))
            return false;
        memcpy(b->redirected.buffer, read, range->bytes);
        run_redirected(run, b);
        if (!is_written(b->access))
            return true;
        if (!atomic)
            return tbd_store_to_program(range->address, b->redirected.buffer, range->bytes);
        if (tbd_shared_exchange(range->address, read, b->redirected.buffer, range->bytes))
            return true;
    }
}

/* Runs an instruction whose only access to such memory is not a push or pop. */
static bool run_on_buffer(const struct shared_run *run, const struct access *access)
{
    struct tbd_special_run *s = run->s;
    struct on_buffer b; /* prepare() and execute() set the rest */
    bool reads = access->what->flags & TBD_ACCESS_READ;

    b.access = access;
    if (!prepare(run, &b))
        return false;
    watch_stores(run, access);
    if (!execute(run, &b, b.read))
        return false;
    if (reads)
        tbd_shared_add_others(s->effects, access->range.address, b.read, access->range.bytes,
                              &s->others);
    if (is_written(access))
        tbd_effects_add_known(s->effects, access->range.address, reads ? b.read : b.old,
                              b.redirected.buffer, access->range.bytes);
    add_stores(run, access);
    return true;
}

/* xlat loads the byte into al. */
static bool run_xlat(const struct shared_run *run, const struct access *access)
{
    struct tbd_special_run *s = run->s;
    uint8_t byte;

    if (!tbd_shared_load(s->effects, &byte, access->range.address, 1, &s->others))
        return false;
    s->thread->regs.gpr[TBD_RAX] = (s->thread->regs.gpr[TBD_RAX] & ~0xffull) | byte;
    return true;
}

/* ---- strings ---- */

static bool is_string(const struct shared_run *run)
{
    uint8_t opcode = run->insn->opcode;

    return !run->insn->modrm_at && run->insn->prefix_bytes <= 1 && run->insn->access_count &&
           ((opcode >= 0xa4 && opcode <= 0xa7) || (opcode >= 0xaa && opcode <= 0xaf));
}

/* Adds `step` to the pointer `from`; as in the processor, the address-size prefix cuts it to 32
 * bits. */
static uint64_t moved(const struct shared_run *run, uint64_t from, uint64_t step)
{
    return has_prefix(run, 0x67) ? (uint32_t)(from + step) : from + step;
}

/* Runs one element, with buffers instead of its operands.  False: the memory is not mapped, or a
 * page is missing (is_left). */
static bool run_element(struct shared_run *run)
{
    struct tbd_special_run *s = run->s;
    struct tbd_regs *regs = &s->thread->regs;
    uint64_t buffer[TBD_INSN_MAX_ACCESSES] = { 0 };
    uint64_t real[TBD_INSN_MAX_ACCESSES];
    uint8_t old[8];
    uint64_t missing;
    bool is_write;

    find_accesses(run);
    s->is_left = misses_page(run, &missing, &is_write);
    if (s->is_left)
        return false;
    adopt_pages(run);
    for (unsigned i = 0; i < run->insn->access_count; i++) {
        const struct access *access = &run->access[i];

        if ((is_written(access) && !tbd_shared_is_writable(&access->range)) ||
            !tbd_shared_load(s->effects, &buffer[i], access->range.address, access->range.bytes,
                             &s->others))
            return false;
        if (access->is_shared)
            tbd_shared_logged(access->range.address, &buffer[i], access->range.bytes);
    }
    for (unsigned i = 0; i < run->insn->access_count; i++) {
        real[i] = regs->gpr[run->access[i].what->ea.base];
        regs->gpr[run->access[i].what->ea.base] = tbd_sys_pointer(&buffer[i]);
    }
    memcpy(old, &buffer[run->insn->access_count - 1], sizeof(old));
    tbd_slot_run_element(s->thread, s->slot);
    for (unsigned i = 0; i < run->insn->access_count; i++) {
        const struct access *access = &run->access[i];

        regs->gpr[access->what->ea.base] =
            moved(run, real[i], regs->gpr[access->what->ea.base] - tbd_sys_pointer(&buffer[i]));
        if (!is_written(access))
            continue;
        tbd_store_to_program(access->range.address, &buffer[i], access->range.bytes);
        tbd_effects_add_known(s->effects, access->range.address, old, &buffer[i],
                              access->range.bytes);
    }
    mark_reads(run);
    return true;
}

/* Runs the elements of rep cmps, scas, lods one by one, until the condition of the prefix ends
 * it. */
static bool run_string(struct shared_run *run)
{
    struct tbd_regs *regs = &run->s->thread->regs;
    bool repeats = has_prefix(run, 0xf3) || has_prefix(run, 0xf2);
    bool compares = (run->insn->opcode & 0xfe) == 0xa6 || (run->insn->opcode & 0xfe) == 0xae;
    uint64_t left = moved(run, regs->gpr[TBD_RCX], 0);
    bool found = true;

    if (!repeats)
        return run_element(run);
    if (!left)
        return false;
    while (left && found) {
        regs->gpr[TBD_RCX] = 1;
        found = run_element(run);
        if (!found) { /* it will fault natively, or continue later */
            regs->gpr[TBD_RCX] = left;
            return run->s->is_left;
        }
        left--;
        if (compares)
            found = !(regs->rflags & FLAG_ZF) == has_prefix(run, 0xf2);
    }
    regs->gpr[TBD_RCX] = left;
    return true;
}

/* ---- calls, jumps, returns ---- */

static bool is_transfer(const struct shared_run *run)
{
    /* string loads are also run here */
    return run->insn->kind != TBD_INSN_PLAIN && run->insn->kind != TBD_INSN_SPECIAL;
}

static bool load_target(const struct shared_run *run, const struct tbd_sys_range *range,
                        uint64_t *target)
{
    return range->bytes == sizeof(*target) &&
           tbd_shared_load(run->s->effects, target, range->address, sizeof(*target),
                           &run->s->others);
}

static bool push(const struct shared_run *run, uint64_t value)
{
    struct tbd_special_run *s = run->s;
    struct tbd_sys_range to = { s->thread->regs.gpr[TBD_RSP] - sizeof(value), sizeof(value) };
    uint64_t old;

    if (!tbd_shared_is_writable(&to) ||
        tbd_shared_read(&old, to.address, sizeof(old)) != sizeof(old) ||
        !tbd_store_to_program(to.address, (const uint8_t *)&value, sizeof(value)))
        return false;
    tbd_effects_add_known(s->effects, to.address, (const uint8_t *)&old, (const uint8_t *)&value,
                          sizeof(value));
    tbd_pages_mark_written(&tbd_memory.pages, to.address, to.address + sizeof(value));
    s->thread->regs.gpr[TBD_RSP] = to.address;
    return true;
}

/* The registers were recorded before the block was left (patcher/cut.c).  False: the memory is not
 * mapped. */
static bool run_transfer(const struct shared_run *run)
{
    const struct tbd_insn *insn = run->insn;
    struct tbd_regs *regs = &run->s->thread->regs;
    uint64_t target = insn->target;

    if (insn->kind == TBD_INSN_RETURN) {
        struct tbd_sys_range top = { regs->gpr[TBD_RSP], sizeof(target) };

        if (!load_target(run, &top, &target))
            return false;
        regs->gpr[TBD_RSP] += sizeof(target) + insn->pop_bytes;
    } else if (insn->field[TBD_FIELD_RM] != TBD_NO_REG) {
        target = regs->gpr[insn->field[TBD_FIELD_RM]];
    } else if (insn->kind != TBD_INSN_CALL && !load_target(run, &run->access[0].range, &target)) {
        return false;
    }
    if ((insn->kind == TBD_INSN_CALL || insn->kind == TBD_INSN_CALL_INDIRECT) &&
        !push(run, insn->pc + insn->length))
        return false;
    regs->rip = target - run->s->insn_bytes; /* tbd_special_finish() adds the length */
    return true;
}

static void perform_transfer(const struct shared_run *run)
{
    struct tbd_forced_special *forced = tbd_forced_specials_find(run->insn->pc);

    if (forced) {
        forced->runs++;
        forced->hits += run->shared_count != 0 || run->is_userfault;
    }
    if (tbd_next_others)
        tbd_next_others(run->s->effects, &run->s->others);
    adopt_pages(run);
    if (run_transfer(run))
        return;
    tbd_detach(run->s->thread, "it calls or returns through memory that is not mapped",
               tbd_slot_last_insn(run->s->thread));
}

/* ---- segment registers ---- */

#define SELECTOR_LOCAL 4u /* selects the table that the program can fill (modify_ldt) */

/* The selectors stay in the processor.  The new gs base was saved when the engine's was
 * restored. */
static void take_bases(struct tbd_thread *thread)
{
    uint32_t ds, es, fs, gs;

    __asm__ volatile("mov %%ds, %0; mov %%es, %1; mov %%fs, %2; mov %%gs, %3"
                     : "=r"(ds), "=r"(es), "=r"(fs), "=r"(gs));
    if (tbd_processor.has_fsgsbase)
        __asm__ volatile("rdfsbase %0" : "=r"(thread->regs.fs_base));
    if (!tbd_processor.has_fsgsbase || ((ds | es | fs | gs) & SELECTOR_LOCAL))
        tbd_leave_soon("it loads segments that it has defined itself (modify_ldt)");
}

/* ---- x87 ---- */

static bool is_x87(const struct shared_run *run)
{
    uint32_t at = run->insn->modrm_at;

    return at && run->insn->prefix_bytes <= 1 && (run->bytes[at - 1] & 0xf8) == 0xd8 &&
           (at < 2 || run->bytes[at - 2] != 0x0f);
}

/* Sets the x87 instruction pointer now, because the slot may be reused soon.  The processor stores
 * operand addresses without the segment's base. */
static void settle_x87(const struct shared_run *run)
{
    const struct tbd_regs *regs = &run->s->thread->regs;
    const struct access *operand = &run->access[0];

    if (!run->insn->access_count)
        tbd_x87_settle();
    else
        tbd_x87_settle_operand(operand->range.address - (operand->what->ea.fs   ? regs->fs_base
                                                         : operand->what->ea.gs ? regs->gs_base
                                                                                : 0));
}

/* ---- loads as events ---- */

#define FLAG_DF 0x400ull

/* All elements that the instruction has read through this operand: from where its register was to where
 * it is now. */
static struct tbd_sys_range elements_read(const struct shared_run *run, const struct access *access)
{
    uint8_t reg = access->what->ea.base;
    uint64_t from = run->s->before.gpr[reg], to = run->s->thread->regs.gpr[reg];
    bool backward = run->s->before.rflags & FLAG_DF;
    uint64_t bytes = backward ? moved(run, from, 0 - to) : moved(run, to, 0 - from);

    return (struct tbd_sys_range){
        backward ? access->range.address + access->range.bytes - bytes : access->range.address,
        bytes,
    };
}

/* In a replay, where the instruction has just run from its first element on. */
static void tell_reads(const struct shared_run *run)
{
    for (unsigned i = 0; i < run->insn->access_count; i++) {
        const struct access *access = &run->access[i];
        struct tbd_sys_range range = access->range;

        if (!(access->what->flags & TBD_ACCESS_READ))
            continue;
        if (is_string(run))
            range = elements_read(run, access);
        tbd_special_tell_read(run->s, &range);
    }
}

/* ---- all ---- */

static const struct access *operand_in_shared(const struct shared_run *run)
{
    const struct access *found = NULL;

    for (unsigned i = 0; i < run->insn->access_count; i++)
        if (run->access[i].is_shared)
            found = &run->access[i];
    return run->shared_count == 1 ? found : NULL;
}

static void run_in_play(struct shared_run *run)
{
    struct tbd_forced_special *forced = tbd_forced_specials_find(run->insn->pc);
    const struct access *operand = operand_in_shared(run);
    bool done;

    if (forced) {
        forced->runs++;
        forced->hits += run->shared_count != 0 || run->is_userfault;
    }
    if (!run->shared_count && !(run->is_userfault && is_string(run))) {
        adopt_pages(run);
        run_plainly(run);
        return;
    }
    if (!is_string(run))
        adopt_pages(run);
    if (is_string(run))
        done = run_string(run);
    else if (operand && (operand->what->flags & TBD_ACCESS_XLAT))
        done = run_xlat(run, operand);
    else
        done = operand && run_on_buffer(run, operand);
    if (done)
        return;
    note_not_followed(run);
    run_plainly(run);
}

/* In a replay.  If play executed only some elements of a repeated instruction before it waited for
 * a page, runs the same number. */
static void run_as_logged(const struct shared_run *run, const struct tbd_msg_special *logged)
{
    struct tbd_regs *regs = &run->s->thread->regs;
    uint64_t rest = 0;

    run->s->is_left = logged && (logged->flags & TBD_SPECIAL_F_LEFT);
    if (run->s->is_left && logged->gpr[TBD_RCX] < regs->gpr[TBD_RCX])
        rest = logged->gpr[TBD_RCX];
    regs->gpr[TBD_RCX] -= rest;
    run_plainly(run);
    regs->gpr[TBD_RCX] += rest;
}

void tbd_shared_perform(struct tbd_special_run *s)
{
    struct shared_run run; /* find_accesses() sets the rest */

    run.s = s;
    run.insn = tbd_decoded(s->thread->regs.rip, run.bytes, s->insn_bytes);
    if (!run.insn)
        tbd_detach(s->thread, "an instruction cannot be decoded again",
                   tbd_slot_last_insn(s->thread));
    find_accesses(&run);
    if (leaves_for_page(&run))
        return;
    if (is_transfer(&run)) {
        perform_transfer(&run);
    } else if (tbd_next_others) {
        run_as_logged(&run, tbd_next_others(s->effects, &s->others));
    } else {
        run_in_play(&run);
    }
    mark_reads(&run);
    tell_reads(&run);
    if (is_x87(&run))
        settle_x87(&run);
    if (s->kind == TBD_SPECIAL_SEGMENT)
        take_bases(s->thread);
    if (s->is_left)
        tbd_special_send(s, TBD_SPECIAL_F_REPLAYED | TBD_SPECIAL_F_LEFT);
    else
        tbd_special_finish(s, s->kind != TBD_SPECIAL_STATE ? TBD_SPECIAL_F_REPLAYED
                              : tbd_special_logs_stores    ? TBD_SPECIAL_F_STOP
                                                           : 0);
}
