// SPDX-License-Identifier: MIT
/* replay_check TRACE [SAMPLES]: replay in all its forms against what play wrote
 *
 *   raised    every window replayed with TBD_HOOKS_FULL is, byte for byte, what play wrote
 *   loads     with load events added, the other events are the same, and load addresses are
 *   readable registers partial replay to random calls and returns gives the registers that play
 *   recorded there
 *   order     windows one after the other, backward and at random, in a process that keeps what it can of the one before
 *   notes     registers noted while a window runs are those that partial replay finds at the same positions
 *
 * Prints one line per kind and exits 0, or says what differs and exits 1. */
#include "format/pages/pages.h"
#include "format/window/blocks.h"
#include "format/reading/window_read.h"
#include "format/window/cursor.h"
#include "format/window/window_make.h"
#include "replay/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct tbd_trace *trace;
static struct tbd_replayer *replayer;

_Noreturn static void fail(const char *what, uint32_t window,
                           const struct tbd_divergence *divergence, const struct tbd_error *why)
{
    printf("%s: window %u: ", what, window);
    if (why && why->status == TBD_DIVERGED)
        printf("at %lu+%u: %s\n", divergence->position.time, divergence->position.offset,
               divergence->what);
    else
        printf("%s: %s: %s\n", tbd_status_text(why ? why->status : TBD_OK), why ? why->file : "",
               why ? why->detail : "differs");
    exit(1);
}

static struct tbd_window *load(uint32_t index)
{
    struct tbd_error why = { 0 };
    struct tbd_window *window;

    if (tbd_window_load(trace, index, true, &window, &why))
        fail("load", index, NULL, &why);
    return window;
}

static struct tbd_window *replay(const char *what, uint32_t index, uint32_t hooks)
{
    struct tbd_divergence divergence = { 0 };
    struct tbd_error why = { 0 };
    struct tbd_window *window;

    if (tbd_replay_full(replayer, 0, index, hooks, &window, &divergence, &why))
        fail(what, index, &divergence, &why);
    return window;
}

/* Instructions of the cursor's block that ran: a fault may have stopped it. */
static uint64_t ran(const struct tbd_cursor *cursor)
{
    const struct tbd_window *window = cursor->window;
    const uint8_t *message = cursor->record + cursor->block->def.operand_bytes;
    uint64_t instructions = UINT64_MAX;

    if (cursor->entry + 1 < window->entry_count &&
        window->entries[cursor->entry + 1] == (TBD_ENTRY_MESSAGE | TBD_MSG_INTERRUPTED))
        memcpy(&instructions, message + sizeof(struct tbd_message), sizeof(instructions));
    return instructions;
}

static bool next(struct tbd_cursor *cursor)
{
    while (tbd_cursor_next(cursor))
        if (cursor->kind != TBD_AT_OP || cursor->op->insn < ran(cursor))
            return true;
    return false;
}

/* ---- raised windows ---- */

static const char *first_difference(const struct tbd_window *a, const struct tbd_window *b)
{
    if (a->entry_count != b->entry_count || memcmp(a->entries, b->entries, a->entry_count * 4) != 0)
        return "entries";
    if (a->operand_bytes != b->operand_bytes ||
        memcmp(a->operands, b->operands, a->operand_bytes) != 0)
        return "operands";
    if (a->word_count != b->word_count || a->block_summary_count != b->block_summary_count)
        return "number of summaries";
    for (size_t i = 0; i < a->word_count; i++) {
        const struct tbd_word_summary *x = &a->words[i], *y = &b->words[i];

        if (x->word != y->word || x->count != y->count || x->last != y->last ||
            x->previous != y->previous)
            return "words";
    }
    for (size_t i = 0; i < a->block_summary_count; i++) {
        const struct tbd_block_summary *x = &a->block_summaries[i], *y = &b->block_summaries[i];

        if (x->id != y->id || x->count != y->count || x->last != y->last ||
            x->previous != y->previous)
            return "blocks";
        if (x->enters != y->enters || x->last_enter != y->last_enter)
            return "function entries";
    }
    /* it is of the end state, which a window that the program's end or an exec cut
     * off does not have */
    return !a->complete || a->digest == b->digest ? NULL : "digest";
}

static void check_raised(uint32_t index)
{
    struct tbd_window *play = load(index), *raised = replay("raised", index, TBD_HOOKS_FULL);

    const char *what = first_difference(play, raised);

    if (what) {
        printf("%s differ\n", what);
        fail("raised", index, NULL, NULL);
    }
    tbd_window_free(play);
    tbd_window_free(raised);
}

/* ---- loads ---- */

static bool is_load(const struct tbd_cursor *cursor)
{
    return (cursor->kind == TBD_AT_OP && cursor->op->kind == TBD_OP_LOAD) ||
           (cursor->kind == TBD_AT_MESSAGE && tbd_message_kind(cursor->message) == TBD_MSG_READ);
}

static bool skip_loads(struct tbd_cursor *cursor, uint64_t *loads)
{
    while (is_load(cursor)) {
        *loads += 1;
        next(cursor);
    }
    return cursor->kind != TBD_AT_END;
}

static bool is_same_event(const struct tbd_cursor *a, const struct tbd_cursor *b)
{
    if (a->kind != b->kind || a->time != b->time || a->id != b->id)
        return false;
    if (a->kind != TBD_AT_OP)
        return true;
    return a->op->kind == b->op->kind && a->op->insn == b->op->insn &&
           tbd_cursor_address(a) == tbd_cursor_address(b) && a->op->size == b->op->size &&
           !memcmp(a->record + a->op->data, b->record + b->op->data, a->op->size);
}

static uint64_t check_loads(uint32_t index)
{
    struct tbd_window *play = load(index);
    struct tbd_window *with = replay("loads", index, TBD_HOOKS_FULL | TBD_HOOK_LOADS);
    struct tbd_cursor a, b;
    uint64_t loads = 0;

    tbd_cursor_first(play, &a);
    tbd_cursor_first(with, &b);
    while (skip_loads(&b, &loads) && a.kind != TBD_AT_END) {
        if (!is_same_event(&a, &b)) {
            printf("at %lu\n", a.time);
            fail("loads", index, NULL, NULL);
        }
        next(&a);
        next(&b);
    }
    if (a.kind != TBD_AT_END || b.kind != TBD_AT_END || !with->has_loads)
        fail("loads", index, NULL, NULL);
    tbd_window_free(play);
    tbd_window_free(with);
    return loads;
}

/* ---- registers ---- */

struct sample {
    struct tbd_position position;
    uint64_t values[7];
    uint64_t pc;
    enum tbd_op_kind kind;
};

static uint64_t pc_of(const struct tbd_cursor *cursor)
{
    const struct tbd_block_def *def = &cursor->block->def;

    /* calls and returns end their block */
    return def->start + def->last_insn;
}

/* Reservoir sampling of calls and returns, in order of time. */
static size_t pick(const struct tbd_window *window, struct sample *samples, size_t most)
{
    struct tbd_cursor cursor;
    size_t count = 0;
    uint64_t events = 0, step;

    tbd_cursor_first(window, &cursor);
    do
        events += cursor.kind == TBD_AT_OP && cursor.op->kind != TBD_OP_STORE;
    while (next(&cursor));
    step = events / most + 1;
    events = (uint64_t)rand() % step;
    tbd_cursor_first(window, &cursor);
    do {
        struct sample *out = &samples[count];

        if (cursor.kind != TBD_AT_OP || cursor.op->kind == TBD_OP_STORE || ++events % step)
            continue;
        out->position = (struct tbd_position){ cursor.time, cursor.op->insn };
        out->kind = cursor.op->kind;
        out->pc = pc_of(&cursor);
        memcpy(out->values, cursor.record + cursor.op->data, out->kind == TBD_OP_CALL ? 56 : 16);
        count++;
    } while (count < most && next(&cursor));
    return count;
}

static bool is_as_recorded(const struct sample *sample, const struct tbd_regs *regs)
{
    static const uint8_t order[7] = { TBD_RSP, TBD_RDI, TBD_RSI, TBD_RDX, TBD_RCX, TBD_R8, TBD_R9 };

    if (regs->rip != sample->pc)
        return false;
    if (sample->kind == TBD_OP_RET)
        return regs->gpr[TBD_RSP] == sample->values[0] && regs->gpr[TBD_RAX] == sample->values[1];
    for (unsigned i = 0; i < 7; i++)
        if (regs->gpr[order[i]] != sample->values[i])
            return false;
    return true;
}

static size_t check_registers(uint32_t index, size_t most)
{
    struct sample *samples = calloc(most, sizeof(*samples));
    struct tbd_reg_state *states = calloc(most, sizeof(*states));
    struct tbd_window *window = load(index);
    struct tbd_divergence divergence = { 0 };
    struct tbd_error why = { 0 };
    size_t count = pick(window, samples, most);

    for (size_t i = 0; i < count; i++)
        states[i].position = samples[i].position;
    if (count && tbd_replay_regs(replayer, 0, index, NULL, states, count, &divergence, &why))
        fail("registers", index, &divergence, &why);
    for (size_t i = 0; i < count; i++)
        if (!is_as_recorded(&samples[i], &states[i].regs)) {
            printf("at %lu+%u: rip %lx, expected %lx; rsp %lx, expected %lx\n",
                   samples[i].position.time, samples[i].position.offset, states[i].regs.rip,
                   samples[i].pc, states[i].regs.gpr[TBD_RSP], samples[i].values[0]);
            fail("registers", index, NULL, NULL);
        }
    tbd_window_free(window);
    free(samples);
    free(states);
    return count;
}

/* ---- notes ---- */

#define SITES     500u
#define XSAVE_XMM 160u /* in an xsave image */
#define XSAVE_BV  512u

static int compare_sites(const void *a, const void *b)
{
    const struct tbd_note_site *x = a, *y = b;

    return x->pc < y->pc ? -1 : x->pc > y->pc;
}

/* First and last instructions of blocks that were entered, some registers each; by pc. */
static size_t choose_sites(const struct tbd_window *window, struct tbd_note_site *out)
{
    size_t count = 0, kept = 0;

    while (count < SITES && window->block_summary_count) {
        size_t at = (size_t)rand() % window->block_summary_count;
        const struct tbd_block *block =
            tbd_block_table_get(window->blocks_by_id, window->block_summaries[at].id);
        uint64_t registers = (uint32_t)rand() << 16 ^ (uint32_t)rand();

        if (rand() & 1)
            registers |= TBD_NOTE_TOP;
        out[count++] = (struct tbd_note_site){
            .pc = block->def.start + (rand() & 1 ? block->def.last_insn : 0), .registers = registers
        };
    }
    qsort(out, count, sizeof(*out), compare_sites);
    for (size_t i = 0; i < count; i++)
        if (!kept || out[kept - 1].pc != out[i].pc)
            out[kept++] = out[i];
    return kept;
}

static bool is_noted(const struct tbd_window *window, const struct tbd_cursor *note,
                     const struct tbd_reg_state *state)
{
    const uint8_t *at = note->record + note->op->data;
    uint64_t in_use, top;

    memcpy(&in_use, state->xsave + XSAVE_BV, sizeof(in_use));
    for (unsigned r = 0; r < TBD_REG_COUNT; r++) {
        if (!(note->op->add >> r & 1))
            continue;
        if (memcmp(at, &state->regs.gpr[r], 8) != 0)
            return false;
        at += 8;
    }
    for (unsigned n = 0; n < 16; n++) {
        static const uint8_t zero[16];
        const uint8_t *is = in_use & 2 ? state->xsave + XSAVE_XMM + (size_t)n * 16 : zero;

        if (!(note->op->add >> (16 + n) & 1))
            continue;
        if (memcmp(at, is, 16) != 0)
            return false;
        at += 16;
    }
    return (note->op->add & (int64_t)TBD_NOTE_TOP) == 0 ||
           tbd_trace_read(trace, window, state->position, state->regs.gpr[TBD_RSP], &top,
                          sizeof(top)) != TBD_OK ||
           memcmp(at, &top, sizeof(top)) == 0;
}

static size_t check_notes(uint32_t index, size_t most)
{
    static struct tbd_note_site sites[SITES];
    struct tbd_window *window = load(index), *noted;
    struct tbd_reg_state *states;
    struct tbd_cursor *notes, cursor;
    struct tbd_divergence divergence = { 0 };
    struct tbd_error why = { 0 };
    size_t site_count = choose_sites(window, sites), count = 0, all = 0, step;

    if (!window->complete) {
        tbd_window_free(window);
        return 0;
    }
    states = calloc(most, sizeof(*states));
    notes = calloc(most, sizeof(*notes));
    if (tbd_replay_notes(replayer, 0, window, sites, site_count, &noted, &divergence, &why))
        fail("notes", index, &divergence, &why);
    tbd_cursor_first(noted, &cursor);
    do
        all += cursor.kind == TBD_AT_OP;
    while (next(&cursor));
    step = all / most + 1;
    all = (size_t)rand() % step;
    tbd_cursor_first(noted, &cursor);
    do
        if (cursor.kind == TBD_AT_OP && ++all % step == 0 && count < most) {
            states[count].position = (struct tbd_position){ cursor.time, cursor.op->insn };
            notes[count++] = cursor;
        }
    while (next(&cursor));
    if (count && tbd_replay_regs(replayer, 0, index, NULL, states, count, &divergence, &why))
        fail("notes", index, &divergence, &why);
    for (size_t i = 0; i < count; i++)
        if (!is_noted(window, &notes[i], &states[i])) {
            printf("at %lu+%u: other registers than partial replay finds\n",
                   states[i].position.time, states[i].position.offset);
            fail("notes", index, NULL, NULL);
        }
    tbd_window_free(noted);
    tbd_window_free(window);
    free(states);
    free(notes);
    return count;
}

/* ---- one process, windows in any order ---- */

static void verify(uint32_t index)
{
    struct tbd_divergence divergence = { 0 };
    struct tbd_error why = { 0 };

    enum tbd_verify how = rand() % 2 ? TBD_VERIFY_ALL : TBD_VERIFY_QUICK;

    if (tbd_replay_verify(replayer, 0, index, how, &divergence, &why))
        fail("order", index, &divergence, &why);
}

static void check_order(uint32_t count, uint32_t most)
{
    most = most < count ? most : count;
    for (uint32_t i = 0; i < most; i++)
        verify(i);
    for (uint32_t i = most; i--;)
        verify(i);
    for (uint32_t i = 0; i < most; i++)
        verify((uint32_t)rand() % count);
}

int main(int argc, char **argv)
{
    struct tbd_error why = { 0 };
    uint64_t loads = 0;
    size_t noted = 0;
    size_t positions = 0, most = argc > 2 ? strtoul(argv[2], NULL, 10) : 50;
    uint32_t count;

    if (argc < 2) {
        fprintf(stderr, "usage: replay_check TRACE [SAMPLES]\n");
        return 2;
    }
    if (tbd_trace_open(argv[1], &trace, &why) || tbd_replayer_new(trace, 1, &replayer, &why)) {
        printf("%s: %s: %s\n", tbd_status_text(why.status), why.file, why.detail);
        return 1;
    }
    count = tbd_trace_window_count(trace);
    for (uint32_t i = 0; i < count; i++) { /* the warm process changes its hook set each time */
        check_raised(i);
        positions += check_registers(i, most ? most : 1);
        loads += check_loads(i);
        noted += check_notes(i, most ? most : 1);
    }
    check_order(count, 60);
    printf("%u windows, %lu loads, %zu positions, %zu notes: all as recorded\n", count, loads,
           positions, noted);
    tbd_replayer_free(replayer);
    tbd_trace_close(trace);
    return 0;
}
