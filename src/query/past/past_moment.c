// SPDX-License-Identifier: MIT
/* past_moment.c - registers and memory at one position of the past, and a session that is there (past.h) */
#include "query/past/past.h"

#include "base/vector_layout.h"
#include "base/binary_search.h"

#include <stdlib.h>
#include <string.h>

bool tbd_past_go(struct tbd_past *past, uint64_t step, uint32_t insn)
{
    uint64_t index = step - past->first_step;

    if (step < past->first_step || step >= past->thread->count ||
        insn > past->thread->walked.steps[step].insns)
        return false;
    if (insn > past->first_insn[index + 1] - past->first_insn[index]) /* it did not run */
        insn = past->first_insn[index + 1] - past->first_insn[index];
    past->step = step;
    past->insn = insn;
    past->at = past->first_insn[index] + insn;
    return true;
}

struct tbd_simulated tbd_past_place(const struct tbd_past *past, unsigned place)
{
    return tbd_simulation_place(past->sim, past->at, place);
}

uint64_t tbd_past_pc(const struct tbd_past *past)
{
    const struct tbd_rings_block *block =
        &past->ring->blocks[past->thread->walked.steps[past->step].block];

    return past->insn < block->insn_count ? block->insns[past->insn].pc : block->after;
}

void tbd_past_where(const struct tbd_past *past, size_t sim_step, uint64_t *out_step,
                    uint32_t *out_insn)
{
    size_t begun = TBD_COUNT_BEFORE(i, past->thread->count - past->first_step,
                                    past->first_insn[i] <= sim_step);
    size_t low = begun == 0 ? 0 : begun - 1; /* the last one that begins at it, or before */

    *out_step = past->first_step + low;
    *out_insn = (uint32_t)(sim_step - past->first_insn[low]);
}

static struct tbd_simulated word_at(struct tbd_past *past, uint64_t address)
{
    enum tbd_status status = past->moment == NULL
                                 ? tbd_sim_moment_new(past->sim, past->at, &past->moment)
                                 : tbd_sim_moment_move(past->moment, past->at);

    if (status != TBD_OK) {
        tbd_sim_moment_free(past->moment);
        past->moment = NULL;
        return (struct tbd_simulated){ .why = 0 };
    }
    return tbd_sim_moment_memory(past->moment, address);
}

void tbd_past_bytes(struct tbd_past *past, uint64_t address, size_t count, uint8_t *bytes,
                    uint8_t *known, uint8_t *exact)
{
    for (size_t i = 0; i < count;) {
        uint64_t at = (address + i) & ~7ull;
        struct tbd_simulated word = word_at(past, at);

        if (past->used_why == 0 && (word.bits.known & ~word.exact) != 0)
            past->used_why = word.why;

        for (unsigned k = (unsigned)(address + i - at); k < 8 && i < count; k++, i++) {
            bytes[i] = (uint8_t)(word.bits.value >> 8 * k);
            known[i] = (uint8_t)(word.bits.known >> 8 * k);
            exact[i] = (uint8_t)(word.exact >> 8 * k);
        }
    }
}

enum tbd_certainty tbd_past_certainty(struct tbd_simulated value, uint64_t bits)
{
    if ((bits & ~value.bits.known) != 0)
        return TBD_UNKNOWN;
    return (bits & ~value.exact) != 0 ? TBD_INFERRED : TBD_EXACT;
}

const char *tbd_certainty_text(enum tbd_certainty certainty)
{
    static const char *const texts[] = {
        [TBD_UNKNOWN] = "unknown", [TBD_INFERRED] = "inferred", [TBD_EXACT] = "exact"
    };

    return texts[certainty];
}

/* ---- the session ---- */

static bool is_known(const struct tbd_past *past, struct tbd_simulated value, uint64_t bits)
{
    return tbd_past_certainty(value, bits) >= (past->exact_only ? TBD_EXACT : TBD_INFERRED);
}

static uint64_t take(const struct tbd_past *past, unsigned place, uint64_t bits, bool *out_known)
{
    struct tbd_simulated value = tbd_past_place(past, place);

    *out_known = is_known(past, value, bits);
    return *out_known ? value.bits.value : 0;
}

/* All of xmm0 to 15, or none. */
static void take_vectors(const struct tbd_past *past, struct tbd_reg_state *out)
{
    bool known = true;

    for (unsigned i = 0; known && i < 32; i++) {
        uint64_t lane = take(past, TBD_PLACE_VECTOR + 8 * (i / 2) + i % 2, UINT64_MAX, &known);

        memcpy(out->xsave + TBD_VECTOR_XMM + 8 * (size_t)i, &lane, sizeof(lane));
    }
    out->regs.xsave_bytes = known ? 512 : 0;
}

static enum tbd_status past_regs(void *context, struct tbd_reg_state *out)
{
    const struct tbd_past *past = context;
    bool known;

    memset(out, 0, sizeof(*out));
    out->regs.thread = past->thread->tid;
    out->regs.rip = tbd_past_pc(past);
    for (unsigned i = 0; i < TBD_REG_COUNT; i++) {
        out->regs.gpr[i] = take(past, i, UINT64_MAX, &known);
        out->unknown |= known ? 0 : 1u << i;
    }
    out->regs.rflags = take(past, TBD_PLACE_FLAGS, TBD_STATUS_FLAGS, &known) | 0x202;
    out->regs.fs_base = take(past, TBD_PLACE_FS, UINT64_MAX, &known);
    out->regs.gs_base = take(past, TBD_PLACE_GS, UINT64_MAX, &known);
    take_vectors(past, out);
    return TBD_OK;
}

static bool past_read(void *context, uint64_t address, void *out, size_t bytes)
{
    struct tbd_past *past = context;
    uint8_t *at = out, known[256], exact[256];

    for (size_t i = 0; i < bytes;) {
        size_t part = bytes - i < sizeof(known) ? bytes - i : sizeof(known);

        tbd_past_bytes(past, address + i, part, at + i, known, exact);
        for (size_t k = 0; k < part; k++)
            if ((past->exact_only ? exact[k] : known[k]) != 0xff)
                return false;
        i += part;
    }
    return true;
}

void tbd_past_enter(struct tbd_past *past, bool exact_only)
{
    past->exact_only = exact_only;
    past->used_why = 0;
    past->hook = (struct tbd_session_past){ .context = past, .regs = past_regs, .read = past_read };
    past->session->past = &past->hook;
    past->has_entered = true;
}

void tbd_past_enter_row(struct tbd_past *past, bool exact_only)
{
    tbd_past_enter(past, exact_only);
    past->hook.is_row = true;
}

void tbd_past_leave(struct tbd_past *past)
{
    if (past->has_entered)
        past->session->past = NULL;
    past->has_entered = false;
}
