// SPDX-License-Identifier: MIT
/* compare.c - see compare.h
 *
 * Equal windows have equal bytes, so memcmp compares them.  Only if they differ are both walked in
 * parallel, to find and describe the first event that differs. */
#include "replay/compare.h"

#include "base/layout.h"
#include "base/vector_layout.h"
#include "format/window/cursor.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct comparison {
    const struct tbd_window *play;
    const struct tbd_window *replay;
    struct tbd_divergence *out;
};

static enum tbd_status differs(const struct comparison *c, uint64_t time, uint32_t offset,
                               const char *format, ...) __attribute__((format(printf, 4, 5)));

static enum tbd_status differs(const struct comparison *c, uint64_t time, uint32_t offset,
                               const char *format, ...)
{
    va_list list;

    if (!c->out)
        return TBD_DIVERGED;
    c->out->position = (struct tbd_position){ time, offset };
    c->out->window = c->play->index;
    c->out->thread = 0;
    c->out->has_place = false;
    va_start(list, format);
    vsnprintf(c->out->what, sizeof(c->out->what), format, list);
    va_end(list);
    return TBD_DIVERGED;
}

/* The first index at which the two differ; `bytes` if they are equal. */
static size_t first_difference(const uint8_t *a, const uint8_t *b, size_t bytes)
{
    size_t at = 0;

    while (at < bytes && a[at] == b[at])
        at++;
    return at;
}

/* ---- events ---- */

static const char *const message_names[TBD_MSG_KIND_COUNT] = {
    [TBD_MSG_SYSCALL] = "system call",
    [TBD_MSG_SPECIAL] = "special instruction",
    [TBD_MSG_SIGNAL] = "signal",
    [TBD_MSG_INTERRUPTED] = "fault",
    [TBD_MSG_THREAD] = "turn of a thread",
    [TBD_MSG_CODE] = "change of code by others",
    [TBD_MSG_MAPPED] = "change of mappings",
    [TBD_MSG_RSEQ] = "restartable sequence",
    [TBD_MSG_CUT] = "cut of a computation",
    [TBD_MSG_TRANSLATED] = "begin of translated code",
    [TBD_MSG_STOPS] = "mark of a window that is not counted",
    [TBD_MSG_CALLING] = "calling context",
    [TBD_MSG_READ] = "load of a special instruction",
    [TBD_MSG_UNLOGGED] = "special instruction that is not logged",
    [TBD_MSG_SHARED] = "set of instructions that access shared memory",
};

static struct tbd_message head_of(const struct tbd_message *message)
{
    struct tbd_message head;

    memcpy(&head, message, sizeof(head));
    return head;
}

static void describe(const struct tbd_cursor *cursor, char *out, size_t size)
{
    uint32_t kind;

    switch (cursor->kind) {
    case TBD_AT_BLOCK: snprintf(out, size, "block 0x%lx", cursor->block->def.start); return;
    case TBD_AT_OP:
        snprintf(out, size, "event %u of kind %u", cursor->op_index, cursor->op->kind);
        return;
    case TBD_AT_MESSAGE:
        kind = head_of(cursor->message).kind;
        snprintf(out, size, "a %s",
                 kind < TBD_MSG_KIND_COUNT && message_names[kind] ? message_names[kind]
                                                                  : "message");
        return;
    case TBD_AT_END: snprintf(out, size, "the end of the window"); return;
    }
}

static enum tbd_status different_kind(const struct comparison *c, const struct tbd_cursor *play,
                                      const struct tbd_cursor *replay)
{
    char expected[64], found[64];

    describe(play, expected, sizeof(expected));
    describe(replay, found, sizeof(found));
    return differs(c, play->time, 0, "%s where play had %s", found, expected);
}

static enum tbd_status compare_op(const struct comparison *c, const struct tbd_cursor *play,
                                  const struct tbd_cursor *replay)
{
    const struct tbd_op *op = play->op;
    uint64_t expected = tbd_cursor_address(play), found = tbd_cursor_address(replay);
    uint32_t bytes = op->kind == TBD_OP_STORE  ? op->size
                     : op->kind == TBD_OP_CALL ? 56
                     : op->kind == TBD_OP_RET  ? 16
                                               : 0;
    size_t at;

    if (op->kind != replay->op->kind || op->insn != replay->op->insn)
        return different_kind(c, play, replay);
    if (expected != found)
        return differs(c, play->time, op->insn, "a store to 0x%lx where play had one to 0x%lx",
                       found, expected);
    at = first_difference(play->record + op->data, replay->record + replay->op->data, bytes);
    if (at == bytes)
        return TBD_OK;
    if (op->kind == TBD_OP_STORE)
        return differs(c, play->time, op->insn,
                       "the byte at 0x%lx is 0x%x before the store, in play it was 0x%x",
                       found + at, replay->record[replay->op->data + at],
                       play->record[op->data + at]);
    return differs(c, play->time, op->insn, "word %zu of a %s's operands differs", at / 8,
                   op->kind == TBD_OP_CALL ? "call" : "return");
}

/* A message follows the last instruction of its block. */
static uint32_t last_instruction(const struct tbd_cursor *cursor)
{
    return cursor->id && cursor->block->def.insn_count ? cursor->block->def.insn_count - 1u : 0;
}

static enum tbd_status compare_message(const struct comparison *c, const struct tbd_cursor *play,
                                       const struct tbd_cursor *replay)
{
    struct tbd_message expected = head_of(play->message), found = head_of(replay->message);
    size_t at;

    if (expected.kind != found.kind)
        return different_kind(c, play, replay);
    if (expected.bytes != found.bytes)
        return differs(c, play->time, last_instruction(play), "a %s of %u bytes, in play it had %u",
                       message_names[found.kind] ? message_names[found.kind] : "message",
                       found.bytes, expected.bytes);
    at = first_difference((const uint8_t *)(play->message + 1),
                          (const uint8_t *)(replay->message + 1), found.bytes);
    if (at == found.bytes)
        return TBD_OK;
    return differs(c, play->time, last_instruction(play), "byte %zu of a %s differs", at,
                   message_names[found.kind] ? message_names[found.kind] : "message");
}

static enum tbd_status compare_event(const struct comparison *c, const struct tbd_cursor *play,
                                     const struct tbd_cursor *replay)
{
    if (play->kind != replay->kind)
        return different_kind(c, play, replay);
    switch (play->kind) {
    case TBD_AT_BLOCK: return play->id == replay->id ? TBD_OK : different_kind(c, play, replay);
    case TBD_AT_OP: return compare_op(c, play, replay);
    case TBD_AT_MESSAGE: return compare_message(c, play, replay);
    case TBD_AT_END: break;
    }
    return TBD_OK;
}

static bool are_same_events(const struct tbd_window *play, const struct tbd_window *replay)
{
    return play->entry_count == replay->entry_count &&
           play->operand_bytes == replay->operand_bytes &&
           !memcmp(play->entries, replay->entries, play->entry_count * sizeof(uint32_t)) &&
           !memcmp(play->operands, replay->operands, play->operand_bytes);
}

static enum tbd_status compare_events(const struct comparison *c)
{
    struct tbd_cursor play, replay;
    enum tbd_status status = TBD_OK;

    if (!c->play->has_events || !c->replay->has_events || are_same_events(c->play, c->replay))
        return TBD_OK;
    tbd_cursor_first(c->play, &play);
    tbd_cursor_first(c->replay, &replay);
    while (status == TBD_OK && (play.kind != TBD_AT_END || replay.kind != TBD_AT_END)) {
        status = compare_event(c, &play, &replay);
        if (status != TBD_OK && c->out)
            c->out->thread = play.thread;
        tbd_cursor_next(&play);
        tbd_cursor_next(&replay);
    }
    return status;
}

/* ---- log ---- */

static enum tbd_status compare_log(const struct comparison *c)
{
    size_t count =
        c->play->log_count < c->replay->log_count ? c->play->log_count : c->replay->log_count;

    for (size_t i = 0; i < count; i++) {
        const struct tbd_log_entry *play = &c->play->log[i], *replay = &c->replay->log[i];
        struct tbd_message expected = head_of(play->message), found = head_of(replay->message);

        if (play->time != replay->time || expected.kind != found.kind ||
            expected.bytes != found.bytes ||
            memcmp(play->message, replay->message, sizeof(found) + found.bytes) != 0)
            return differs(c, c->play->first_time + play->time, 0, "logged message %zu differs", i);
    }
    if (c->play->log_count != c->replay->log_count)
        return differs(c, c->play->first_time + c->play->blocks, 0,
                       "%zu logged messages, in play there were %zu", c->replay->log_count,
                       c->play->log_count);
    return TBD_OK;
}

/* ---- end state ---- */

static const char *const reg_names[TBD_REG_COUNT] = {
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
    "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15",
};

/* A thread's end state, in play and in replay. */
struct end_state {
    const struct tbd_regs *play_regs, *replay_regs;
    const uint8_t *play_xsave, *replay_xsave;
};

static enum tbd_status differs_at_end(const struct comparison *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static enum tbd_status differs_at_end(const struct comparison *c, const char *format, ...)
{
    char what[200];
    va_list list;

    va_start(list, format);
    vsnprintf(what, sizeof(what), format, list);
    va_end(list);
    return differs(c, c->play->first_time + c->play->blocks, 0, "%s", what);
}

static enum tbd_status compare_value(const struct comparison *c, const char *name, uint64_t play,
                                     uint64_t replay)
{
    if (play == replay)
        return TBD_OK;
    return differs_at_end(c, "%s is 0x%lx at the window's end, in play it was 0x%lx", name, replay,
                          play);
}

static enum tbd_status compare_registers(const struct comparison *c, const struct end_state *state)
{
    const struct tbd_regs *play = state->play_regs, *replay = state->replay_regs;
    enum tbd_status status = TBD_OK;

    for (unsigned r = 0; r < TBD_REG_COUNT && status == TBD_OK; r++)
        status = compare_value(c, reg_names[r], play->gpr[r], replay->gpr[r]);
    if (status == TBD_OK)
        status = compare_value(c, "rip", play->rip, replay->rip);
    if (status == TBD_OK)
        status = compare_value(c, "rflags", play->rflags, replay->rflags);
    if (status == TBD_OK)
        status = compare_value(c, "fs_base", play->fs_base, replay->fs_base);
    if (status == TBD_OK)
        status = compare_value(c, "gs_base", play->gs_base, replay->gs_base);
    return status;
}

/* Some virtual machines keep the lower half only of the address of the last x87 instruction, and of
 * its operand, once another thread has run.  Play and replay are switched at moments of their own,
 * so either may have lost what the other has.  Instructions that store these are logged. */
static bool is_half_of_the_other(const uint8_t *a, const uint8_t *b)
{
    uint64_t one, other;

    memcpy(&one, a, sizeof(one));
    memcpy(&other, b, sizeof(other));
    return (uint32_t)one == (uint32_t)other && (one <= UINT32_MAX || other <= UINT32_MAX);
}

/* The first byte from `at` on that differs, but for halves that are lost; `bytes`: none does. */
static size_t first_vector_difference(const struct end_state *state, size_t at, size_t bytes)
{
    const uint8_t *play = state->play_xsave, *replay = state->replay_xsave;
    size_t field;

    at += first_difference(play + at, replay + at, bytes - at);
    field = at & ~(sizeof(uint64_t) - 1);
    if (field != TBD_VECTOR_X87_RIP && field != TBD_VECTOR_X87_OPERAND)
        return at;
    if (bytes < TBD_VECTOR_LEGACY || !is_half_of_the_other(play + field, replay + field))
        return at;
    return first_vector_difference(state, field + sizeof(uint64_t), bytes);
}

static enum tbd_status compare_vectors(const struct comparison *c, const struct end_state *state)
{
    size_t bytes = state->play_regs->xsave_bytes, at;

    if (bytes != state->replay_regs->xsave_bytes)
        return differs_at_end(c, "the vector state has another size");
    at = first_vector_difference(state, 0, bytes);
    if (at == bytes)
        return TBD_OK;
    return differs_at_end(
        c, "byte %zu of the vector state is 0x%x at the window's end, in play it was 0x%x", at,
        state->replay_xsave[at], state->play_xsave[at]);
}

static enum tbd_status compare_state(const struct comparison *c, const struct end_state *state)
{
    enum tbd_status status = compare_registers(c, state);

    if (status == TBD_OK)
        status = compare_vectors(c, state);
    if (status != TBD_OK && c->out)
        c->out->thread = state->play_regs->thread;
    return status;
}

/* Compares the waiting threads; both lists are sorted by tid. */
static enum tbd_status compare_threads(const struct comparison *c)
{
    const struct tbd_window *play = c->play, *replay = c->replay;
    enum tbd_status status = TBD_OK;

    if (play->end_regs.thread != replay->end_regs.thread)
        return differs_at_end(c, "thread %u has control at the window's end, in play it was %u",
                              replay->end_regs.thread, play->end_regs.thread);
    if (play->end_thread_count != replay->end_thread_count)
        return differs_at_end(c, "%zu threads wait at the window's end, in play it were %zu",
                              replay->end_thread_count, play->end_thread_count);
    for (size_t i = 0; i < play->end_thread_count && status == TBD_OK; i++) {
        const struct tbd_thread_state *expected = &play->end_threads[i];
        const struct tbd_thread_state *found = &replay->end_threads[i];
        struct end_state state = { &expected->regs, &found->regs, expected->xsave, found->xsave };

        if (expected->regs.thread != found->regs.thread)
            return differs_at_end(c, "thread %u waits at the window's end, in play it was %u",
                                  found->regs.thread, expected->regs.thread);
        status = compare_state(c, &state);
    }
    return status;
}

static enum tbd_status compare_end(const struct comparison *c)
{
    const struct tbd_window *play = c->play, *replay = c->replay;
    struct end_state running = { &play->end_regs, &replay->end_regs, play->end_xsave,
                                 replay->end_xsave };
    enum tbd_status status = compare_threads(c);

    return status == TBD_OK ? compare_state(c, &running) : status;
}

static enum tbd_status compare_page(const struct comparison *c,
                                    const struct tbd_page_contents *play,
                                    const struct tbd_page_contents *replay)
{
    size_t at;

    if (play->address < replay->address)
        return differs(c, c->play->first_time + c->play->blocks, 0,
                       "page 0x%lx was not modified, in play it was", play->address);
    if (play->address > replay->address)
        return differs(c, c->play->first_time + c->play->blocks, 0,
                       "page 0x%lx was modified, in play it was not", replay->address);
    at = first_difference(play->bytes, replay->bytes, TBD_PAGE_SIZE);
    if (at == TBD_PAGE_SIZE)
        return TBD_OK;
    return differs(c, c->play->first_time + c->play->blocks, 0,
                   "the byte at 0x%lx is 0x%x at the window's end, in play it was 0x%x",
                   play->address + at, replay->bytes[at], play->bytes[at]);
}

static enum tbd_status compare_pages(const struct comparison *c)
{
    static const struct tbd_page_contents none = { .address = UINT64_MAX };
    size_t most = c->play->dirty_count > c->replay->dirty_count ? c->play->dirty_count
                                                                : c->replay->dirty_count;
    enum tbd_status status = TBD_OK;

    for (size_t i = 0; i < most && status == TBD_OK; i++)
        status = compare_page(c, i < c->play->dirty_count ? &c->play->dirty[i] : &none,
                              i < c->replay->dirty_count ? &c->replay->dirty[i] : &none);
    return status;
}

enum tbd_status tbd_compare_windows(const struct tbd_window *play, const struct tbd_window *replay,
                                    struct tbd_divergence *divergence)
{
    struct comparison c = { play, replay, divergence };
    enum tbd_status status = compare_events(&c);

    if (status == TBD_OK && play->blocks != replay->blocks)
        status = differs(&c, play->first_time + replay->blocks, 0,
                         "%lu block entries, in play there were %lu", replay->blocks, play->blocks);
    if (status == TBD_OK)
        status = compare_log(&c);
    if (status != TBD_OK || !play->complete)
        return status;
    if (!replay->complete)
        return differs(&c, play->first_time + play->blocks, 0, "the window has no end");
    status = compare_end(&c);
    return status == TBD_OK ? compare_pages(&c) : status;
}

enum tbd_status tbd_compare_ends(const struct tbd_window *play, const struct tbd_window *replay,
                                 struct tbd_divergence *divergence)
{
    struct comparison c = { play, replay, divergence };
    enum tbd_status status;

    if (!play->complete)
        return TBD_OK;
    status = compare_end(&c);
    return status == TBD_OK ? compare_pages(&c) : status;
}
