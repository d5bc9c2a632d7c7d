// SPDX-License-Identifier: MIT
/* past.c - the simulation of a thread's last instructions (past.h)
 *
 * Where a signal came between two of them, where code is not known, or where the ring does not say how many of a block's
 * instructions ran, anything may have happened: the simulation is told so. */
#include "query/past/past.h"

#include "hooks/table/syscalls.h"
#include "format/files/file.h"
#include "query/past/past_pages.h"
#include "query/past/past_paths.h"
#include "query/past/past_values.h"

#include <Zydis/Zydis.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { LEGACY_XMM = 160, XSTATE_BV = 512, XCOMP_BV = 520, YMM_HIGH = 576, XSAVE_LEAST = 832 };

/* ---- the end ---- */

/* NULL in *out: nothing said at its end what the thread held. */
static enum tbd_status final_registers(struct tbd_past *past, struct tbd_reg_state **out)
{
    struct tbd_session *session = past->session;
    uint32_t before = session->thread;
    enum tbd_status status;

    *out = NULL;
    if (session->info->has_rings_only)
        return TBD_OK;
    *out = calloc(1, sizeof(**out));
    if (*out == NULL)
        return TBD_NOMEM;
    session->thread = past->thread->tid;
    status = tbd_session_regs(session, (struct tbd_position){ 0 }, *out);
    session->thread = before;
    return status;
}

static void know_lane(struct tbd_past *past, unsigned reg, unsigned lane, const uint8_t *from)
{
    uint64_t value;

    memcpy(&value, from, sizeof(value));
    tbd_simulation_know(past->sim, TBD_PLACE_VECTOR + 8 * reg + lane, tbd_bits_of(value));
}

/* The image has the standard form; what its bitmap leaves out is 0 (SDM vol. 1, 13.4). */
static void know_vectors(struct tbd_past *past, const struct tbd_reg_state *state)
{
    static const uint8_t zeros[16];
    bool is_whole = state->regs.xsave_bytes >= XSAVE_LEAST;
    uint64_t has = 2, compacted = 0;

    if (state->regs.xsave_bytes < XSTATE_BV)
        return;
    if (is_whole) {
        memcpy(&has, state->xsave + XSTATE_BV, sizeof(has));
        memcpy(&compacted, state->xsave + XCOMP_BV, sizeof(compacted));
    }
    for (unsigned i = 0; i < 32; i++)
        know_lane(past, i / 2, i % 2, has & 2 ? state->xsave + LEGACY_XMM + 8 * (size_t)i : zeros);
    for (unsigned i = 0; is_whole && compacted >> 63 == 0 && i < 32; i++)
        know_lane(past, i / 2, 2 + i % 2,
                  has & 4 ? state->xsave + YMM_HIGH + 8 * (size_t)i : zeros);
}

static void know_registers(struct tbd_past *past, const struct tbd_reg_state *state)
{
    const struct tbd_regs *regs = &state->regs;

    for (unsigned i = 0; i < TBD_REG_COUNT; i++)
        tbd_simulation_know(past->sim, i, tbd_bits_of(regs->gpr[i]));
    tbd_simulation_know(
        past->sim, TBD_PLACE_FLAGS,
        (struct tbd_bits){ regs->rflags & TBD_STATUS_FLAGS, (uint64_t)TBD_STATUS_FLAGS });
    tbd_simulation_know(past->sim, TBD_PLACE_DF, tbd_bits_of(regs->rflags >> 10 & 1));
    tbd_simulation_know(past->sim, TBD_PLACE_FS, tbd_bits_of(regs->fs_base));
    tbd_simulation_know(past->sim, TBD_PLACE_GS, tbd_bits_of(regs->gs_base));
    know_vectors(past, state);
    tbd_simulation_ends_at(past->sim, regs->rip);
}

/* ---- the last block ---- */

/* Did the thread stop at an instruction that it could not run? */
static bool is_fault(const struct tbd_past *past)
{
    const struct tbd_crash_head *head = past->ring->dump.head;
    siginfo_t info;

    memcpy(&info, head->siginfo, sizeof(info));
    return past->thread->is_dying && info.si_code > 0 &&
           (head->signo == SIGSEGV || head->signo == SIGBUS || head->signo == SIGFPE ||
            head->signo == SIGILL);
}

/* May the block be entered again at `rip` after its end, with no entry in the ring for that yet? */
static bool may_lead_back(const struct tbd_rings_block *block, uint64_t rip)
{
    return rip != block->after && tbd_rings_can_follow(block, rip);
}

/* How many of the last block's instructions ran as a whole; UINT32_MAX: that is not certain. */
static uint32_t count_last(const struct tbd_past *past, const struct tbd_rings_block *block,
                           uint64_t rip)
{
    if (rip == block->after)
        return block->insn_count;
    for (uint32_t i = 0; i < block->insn_count; i++)
        if (block->insns[i].pc == rip)
            return is_fault(past) || past->begins_last || !may_lead_back(block, rip) ? i
                                                                                     : UINT32_MAX;
    return UINT32_MAX;
}

/* ---- the steps ---- */

static enum tbd_status interrupt(struct tbd_past *past)
{
    past->is_resumed = true;
    return tbd_simulation_break(past->sim, tbd_simulation_counts(past->sim).steps);
}

static enum tbd_status add_insn(struct tbd_past *past, uint32_t block, uint32_t insn)
{
    const struct tbd_rings_insn *at = &past->ring->blocks[block].insns[insn];
    const uint8_t *code = tbd_rings_code(past->ring, block, insn);
    enum tbd_status status =
        code == NULL ? TBD_CORRUPT : tbd_simulation_add(past->sim, at->pc, code, at->length);

    return status == TBD_CORRUPT ? interrupt(past) : status;
}

/* Can control go to `next` after the last instruction that was added? */
static bool leads_to(const struct tbd_past *past, uint64_t next)
{
    size_t count = tbd_simulation_counts(past->sim).steps;
    const struct tbd_sim_insn *last = count == 0 ? NULL : tbd_simulation_insn(past->sim, count - 1);

    return last == NULL || tbd_insn_leads_to(last, next);
}

static uint64_t start_of(const struct tbd_past *past, uint64_t step)
{
    return past->ring->dump.blocks[past->thread->walked.steps[step].block].start;
}

/* A repeated instruction that faults has done a part of its work: it counts, although it will run again. */
static bool repeats(const struct tbd_past *past, uint32_t block, uint32_t insn)
{
    const uint8_t *code = tbd_rings_code(past->ring, block, insn);
    struct tbd_sim_insn *made = NULL;
    bool result =
        code != NULL &&
        tbd_insn_make(0, code, past->ring->blocks[block].insns[insn].length, &made) == TBD_OK &&
        (made->repeats || made->kind != TBD_INSN_PLAIN);

    tbd_insn_free(made);
    return result;
}

static enum tbd_status add_insns(struct tbd_past *past, uint32_t block, uint32_t count)
{
    enum tbd_status status = TBD_OK;

    for (uint32_t i = 0; status == TBD_OK && i < count; i++)
        status = add_insn(past, block, i);
    return status;
}

/* The last block of a thread of which nothing says where in it it was at its end: what it held before each instruction that it got to. */
static enum tbd_status add_unended(struct tbd_past *past, uint64_t step)
{
    const struct tbd_rings_step *at = &past->thread->walked.steps[step];

    past->ends_inside = true;
    return add_insns(past, at->block, at->insns);
}

/* The last block of the thread, which ends at `rip`. */
static enum tbd_status add_last(struct tbd_past *past, uint64_t step, uint64_t rip)
{
    uint32_t block = past->thread->walked.steps[step].block;
    const struct tbd_rings_block *code = &past->ring->blocks[block];
    uint32_t count = code->end == TBD_RINGS_FAULTS ? 0 : count_last(past, code, rip);
    size_t first = tbd_simulation_counts(past->sim).steps;
    enum tbd_status status;

    past->ends_inside = count == UINT32_MAX;
    if (past->ends_inside)
        count = past->thread->walked.steps[step].insns;
    else if (count < code->insn_count && repeats(past, block, count))
        count++;
    status = add_insns(past, block, count);
    if (status == TBD_OK && past->ends_inside)
        status = tbd_simulation_break(past->sim, first);
    else if (status == TBD_OK && rip == code->after)
        status = tbd_past_know_call(past, step);
    return status;
}

/* Is it the rt_sigreturn of a handler that returned to where its signal had come? */
static bool comes_back(const struct tbd_past *past, const struct tbd_rings_step *step,
                       uint32_t insn)
{
    return (step->flags & TBD_RINGS_CAME_BACK) != 0 &&
           (step->flags & (TBD_RINGS_CUT | TBD_RINGS_UNCERTAIN)) == 0 &&
           insn + 1 == past->ring->blocks[step->block].insn_count;
}

/* The address of the instruction that would have come after those that ran. */
static uint64_t pc_after(const struct tbd_past *past, const struct tbd_rings_step *step)
{
    const struct tbd_rings_block *block = &past->ring->blocks[step->block];

    return step->insns < block->insn_count ? block->insns[step->insns].pc : block->after;
}

static enum tbd_status add_step(struct tbd_past *past, uint64_t step)
{
    const struct tbd_rings_step *at = &past->thread->walked.steps[step];
    size_t first = tbd_simulation_counts(past->sim).steps;
    enum tbd_status status = TBD_OK;

    for (uint32_t i = 0; status == TBD_OK && i < at->insns; i++)
        status =
            comes_back(past, at, i)
                ? tbd_simulation_add_return(past->sim, past->ring->blocks[at->block].insns[i].pc,
                                            start_of(past, step + 1))
                : add_insn(past, at->block, i);
    if (status == TBD_OK && (at->flags & TBD_RINGS_UNCERTAIN) != 0) {
        status =
            tbd_past_pages_note_call(past->pages, tbd_simulation_counts(past->sim).steps, NULL);
        return status == TBD_OK ? tbd_simulation_break(past->sim, first) : status;
    }
    if (status == TBD_OK && (at->flags & TBD_RINGS_CUT) == 0)
        status = tbd_past_know_call(past, step);
    if (status == TBD_OK && (at->flags & TBD_RINGS_CUT) != 0)
        status = tbd_simulation_interrupted(past->sim, pc_after(past, at));
    if (status == TBD_OK &&
        ((at->flags & TBD_RINGS_CUT) != 0 ||
         (past->thread->walked.steps[step + 1].flags & TBD_RINGS_HANDLER) != 0 ||
         !leads_to(past, start_of(past, step + 1))))
        status = interrupt(past);
    return status;
}

/* What all paths to there have computed, if the function's beginning has not been simulated. */
static enum tbd_status suppose(struct tbd_past *past, uint64_t pc)
{
    enum tbd_status status = TBD_OK;
    struct tbd_paths paths;

    if (!past->is_resumed || past->resumed_count == TBD_PAST_RESUMED)
        return TBD_OK;
    past->is_resumed = false;
    past->resumed[past->resumed_count++] =
        (struct tbd_past_resumed){ tbd_simulation_counts(past->sim).steps, pc };
    if (!tbd_paths_to(past->session, past->pages, pc, &paths))
        return TBD_OK;
    for (unsigned r = 0; status == TBD_OK && r < TBD_PATHS_REGISTERS; r++)
        status = tbd_simulation_suppose(past->sim, r, paths.value[r]);
    return status;
}

/* Follows calls and returns at the ends of blocks. */
static void note_depth(struct tbd_past *past)
{
    size_t count = tbd_simulation_counts(past->sim).steps;
    const struct tbd_sim_insn *last = count == 0 ? NULL : tbd_simulation_insn(past->sim, count - 1);

    if (last == NULL)
        return;
    if (last->mnemonic == ZYDIS_MNEMONIC_CALL)
        past->depth++;
    if (last->mnemonic == ZYDIS_MNEMONIC_RET && past->depth == 0)
        past->is_resumed = true;
    else if (last->mnemonic == ZYDIS_MNEMONIC_RET)
        past->depth--;
}

/* `end`: NULL if it is not known. */
static enum tbd_status add_all(struct tbd_past *past, const struct tbd_reg_state *end)
{
    uint64_t count = past->thread->count;
    enum tbd_status status = TBD_OK;

    past->first_insn = calloc(count - past->first_step + 1, sizeof(*past->first_insn));
    if (past->first_insn == NULL)
        return TBD_NOMEM;
    past->is_resumed = true;
    for (uint64_t step = past->first_step; status == TBD_OK && step < count; step++) {
        past->first_insn[step - past->first_step] =
            (uint32_t)tbd_simulation_counts(past->sim).steps;
        status = tbd_past_know_registers(past, step);
        if (status == TBD_OK)
            status = suppose(past, start_of(past, step));
        if (status != TBD_OK)
            break;
        status = step + 1 < count ? add_step(past, step)
                 : end == NULL    ? add_unended(past, step)
                                  : add_last(past, step, end->regs.rip);
        note_depth(past);
    }
    past->first_insn[count - past->first_step] = (uint32_t)tbd_simulation_counts(past->sim).steps;
    return status;
}

/* ---- new ---- */

uint64_t tbd_past_insns_from(const struct tbd_rings_thread *thread, uint64_t step)
{
    uint64_t insns = 0;

    for (; step < thread->count && insns < TBD_PAST_MOST; step++)
        insns += thread->walked.steps[step].insns;
    return insns;
}

/* Memory that was written before the first step is not known: so the farther from the end, the more is simulated before. */
static uint64_t margin_of(const struct tbd_rings_thread *thread, uint64_t step, uint64_t before)
{
    uint64_t after = tbd_past_insns_from(thread, step);

    return before > after / 2 ? before : after / 2;
}

uint64_t tbd_past_step_before(const struct tbd_rings_thread *thread, uint64_t step, uint64_t insns)
{
    while (step > 0 && insns > 0) {
        uint32_t here = thread->walked.steps[--step].insns;

        insns = here < insns ? insns - here : 0;
    }
    return step;
}

static bool call_writes(void *arg, uint64_t number, const uint64_t args[6], unsigned known,
                        struct tbd_sim_range out[6], size_t *out_count)
{
    struct tbd_sys_call call = { .number = number };
    struct tbd_sys_range ranges[6];

    (void)arg;
    memcpy(call.args, args, sizeof(call.args));
    if (!tbd_syscall_bounds(&call, known, ranges, out_count))
        return false;
    for (size_t i = 0; i < *out_count; i++)
        out[i] = (struct tbd_sim_range){ ranges[i].address, ranges[i].bytes };
    return true;
}

static bool is_too_far(const struct tbd_rings_thread *thread, uint64_t first)
{
    uint64_t insns = 0;

    for (uint64_t step = first; step < thread->count && insns <= TBD_PAST_MOST; step++)
        insns += thread->walked.steps[step].insns;
    return insns > TBD_PAST_MOST;
}

static void set_focus(struct tbd_past *past)
{
    size_t steps = tbd_simulation_counts(past->sim).steps;
    struct tbd_past_focus focus = past->focus;

    if (focus.to < focus.from && focus.to < steps)
        tbd_simulation_focus(past->sim, focus.from < steps ? steps - focus.from : 0,
                             steps - focus.to);
}

static enum tbd_status simulate(struct tbd_past *past)
{
    struct tbd_simulation_source source = { .final = tbd_past_pages_final,
                                            .constant = tbd_past_pages_constant,
                                            .fixed_since = tbd_past_pages_fixed_since,
                                            .call_writes = call_writes,
                                            .is_theirs = tbd_past_pages_is_theirs,
                                            .others = past->ring->dump.head->thread_count > 1 };
    struct tbd_past_pages_of of = { .ring = past->ring,
                                    .others = past->others,
                                    .own = (uint32_t)(past->thread - past->ring->threads) };
    struct tbd_reg_state *end = NULL;
    enum tbd_status status;

    past->pages = tbd_past_pages_new(past->session, &of);
    source.arg = past->pages;
    status = past->pages == NULL ? TBD_NOMEM : final_registers(past, &end);
    if (status == TBD_OK)
        status = tbd_simulation_new(&source, &past->sim);
    if (status == TBD_OK)
        status = add_all(past, end);
    if (status == TBD_OK) {
        if (end != NULL)
            know_registers(past, end);
        set_focus(past);
        status = tbd_simulation_run(past->sim, true);
    }
    free(end);
    return status;
}

enum tbd_status tbd_past_too_far(struct tbd_session *session)
{
    return tbd_error_set(&session->why, TBD_NOTKEPT, "", 0,
                         "values are computed for the last %u instructions only", TBD_PAST_MOST);
}

enum tbd_status tbd_past_new(struct tbd_session *session, struct tbd_rings *ring,
                             struct tbd_rings_thread *thread, const struct tbd_past_reach *reach,
                             struct tbd_past **out)
{
    struct tbd_past *past = calloc(1, sizeof(*past));
    enum tbd_status status;

    *out = NULL;
    if (past == NULL || tbd_rings_steps(ring, thread) == NULL) {
        free(past);
        return TBD_NOMEM;
    }
    past->session = session;
    past->ring = ring;
    past->thread = thread;
    past->focus = reach->focus;
    past->others = reach->others;
    past->begins_last = reach->begins_last;
    past->first_step =
        tbd_past_step_before(thread, reach->step, margin_of(thread, reach->step, reach->before));
    status = thread->after != 0 || is_too_far(thread, past->first_step) ? tbd_past_too_far(session)
                                                                        : simulate(past);
    if (status == TBD_OK)
        *out = past;
    else
        tbd_past_free(past);
    return status;
}

void tbd_past_free(struct tbd_past *past)
{
    if (past == NULL)
        return;
    tbd_past_leave(past);
    tbd_sim_moment_free(past->moment);
    tbd_simulation_free(past->sim);
    tbd_past_pages_free(past->pages);
    free(past->first_insn);
    free(past);
}
