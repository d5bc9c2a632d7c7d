// SPDX-License-Identifier: MIT
/* jump_settle.c - see jump_settle.h
 *
 *   code:  | way in | body ............ check | way out | copies of the program's instructions | tail |
 *            back     deferred                  ahead     the same registers, another address   ahead
 *
 * The body may have called the engine's functions: then the frame is found by its mark, which is taken away before the
 * frame is.  Signals do not interrupt these functions, so no frame is left there by a longjmp. */
#include "hooks/probes/jump_settle.h"

#include "base/layout.h"
#include "base/linux_abi.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/probes/near_memory.h"
#include "hooks/probes/trap.h"

#define ENGINE_BYTES   (64ull << 20)
#define SEARCHED_WORDS 512u /* more than the engine's functions use of the stack */
#define ARITHMETIC     0x8d5ull
#define OVERFLOW       0x800ull

#pragma GCC visibility push(hidden) /* addresses without a table: mode.h */
extern const uint8_t tbd_jump_undeferred[], tbd_jump_undeferred_end[];
extern const uint8_t tbd_handlers_ready[], tbd_handlers_jump[];
#pragma GCC visibility pop

static uint64_t word_at(uint64_t address)
{
    return *(const uint64_t *)(uintptr_t)address;
}

static uint64_t *reg(struct tbd_ucontext *context, uint32_t which)
{
    return &context->gregs[tbd_native_place(which)];
}

/* As it was at the place. */
static void go_back(const struct tbd_jump_code *code, struct tbd_ucontext *context, bool has_frame,
                    bool has_flags)
{
    uint64_t frame = *reg(context, TBD_RSP);

    if (has_flags)
        *reg(context, TBD_RAX) = word_at(frame + TBD_JUMP_RAX);
    if (has_frame)
        *reg(context, TBD_RSP) = frame + TBD_JUMP_FRAME;
    context->rip = code->jump->probe->step.pc;
}

/* As it is after the place's instruction. */
static void go_ahead(const struct tbd_jump_code *code, struct tbd_ucontext *context, uint64_t frame)
{
    uint64_t flags = word_at(frame + TBD_JUMP_FLAGS);

    *reg(context, TBD_RAX) = word_at(frame + TBD_JUMP_RAX);
    *reg(context, TBD_RCX) = word_at(frame + TBD_JUMP_RCX);
    *reg(context, TBD_RDX) = word_at(frame + TBD_JUMP_RDX);
    *reg(context, TBD_RSP) = frame + TBD_JUMP_FRAME;
    context->rflags &= ~ARITHMETIC;
    context->rflags |= (flags >> 8 & ARITHMETIC & 0xff) | (flags & 1 ? OVERFLOW : 0);
    tbd_trap_run_instruction(&code->jump->probe->step, context);
}

/* Registers that tbd_jump_deferred has saved. */
static void get_deferred(struct tbd_ucontext *context, uint64_t at)
{
    *reg(context, TBD_RDI) = word_at(at);
    *reg(context, TBD_RSI) = word_at(at + 8);
    *reg(context, TBD_R10) = word_at(at + 16);
    *reg(context, TBD_R11) = word_at(at + 24);
}

static void defer(struct tbd_ucontext *context, uint64_t frame)
{
    *(uint64_t *)(uintptr_t)(frame + TBD_JUMP_MASK) = context->mask;
    *(uint32_t *)(uintptr_t)(frame + TBD_JUMP_STATE) = 1;
    context->mask = UINT64_MAX;
}

/* `return_address` leads into the code's tail. */
static enum tbd_settled settle_deferred(struct tbd_ucontext *context, uint64_t return_address,
                                        uint64_t frame)
{
    void *code = NULL;

    if (!tbd_near_find(return_address, &code) || !code)
        return TBD_SETTLED_ELSEWHERE;
    go_ahead(code, context, frame);
    return TBD_SETTLED_THERE;
}

/* A second signal comes before the first instruction of the first one's handler (handlers_x86_64.S). */
static bool settle_handler(struct tbd_ucontext *context, uint64_t rsp)
{
    if (context->rip == tbd_sys_pointer(tbd_handlers_jump)) {
        context->rip = *reg(context, TBD_RAX);
        return true;
    }
    if (context->rip < tbd_sys_pointer(tbd_handlers_ready) ||
        context->rip > tbd_sys_pointer(tbd_handlers_jump))
        return false;
    *reg(context, TBD_RDI) = word_at(rsp);
    *reg(context, TBD_RSI) = word_at(rsp + 8);
    *reg(context, TBD_RDX) = word_at(rsp + 16);
    context->rip = word_at(rsp + 32);
    *reg(context, TBD_RSP) = rsp + 40;
    return true;
}

/* Above rsp; the stack may end there. */
static uint64_t find_frame(uint64_t rsp)
{
    uint64_t words[SEARCHED_WORDS];
    struct {
        uint64_t base, length;
    } to = { tbd_sys_pointer(words), sizeof(words) }, from = { rsp & ~7ull, sizeof(words) };
    long got = tbd_sys6(__NR_process_vm_readv, (uint64_t)tbd_sys_getpid(), tbd_sys_pointer(&to), 1,
                        tbd_sys_pointer(&from), 1, 0);

    for (long i = 0; i < got / 8; i++)
        if (words[i] == from.base + 8ull * (uint64_t)i - TBD_JUMP_MAGIC + TBD_JUMP_MAGIC_ADD)
            return from.base + 8ull * (uint64_t)i - TBD_JUMP_MAGIC;
    return 0;
}

static enum tbd_settled settle_in_engine(struct tbd_ucontext *context, bool is_fault)
{
    uint64_t rsp = *reg(context, TBD_RSP), frame;

    if (context->rip >= tbd_sys_pointer(tbd_jump_undeferred) &&
        context->rip < tbd_sys_pointer(tbd_jump_undeferred_end)) {
        get_deferred(context, rsp);
        return settle_deferred(context, word_at(rsp + 40), rsp + 48);
    }
    if (context->rip == tbd_sys_pointer(tbd_jump_undeferred_end))
        return settle_deferred(context, word_at(rsp), rsp + 8);
    if (settle_handler(context, rsp))
        return TBD_SETTLED_THERE;
    frame = is_fault ? 0 : find_frame(rsp);
    if (!frame)
        return TBD_SETTLED_ELSEWHERE;
    defer(context, frame);
    return TBD_SETTLED_DEFERRED;
}

/* An entry is one instruction, jmp *d(%rip), before which nothing has changed. */
static const struct tbd_jump_code *code_of_entry(uint64_t entry)
{
    const uint8_t *at = (const uint8_t *)(uintptr_t)entry;
    void *code = NULL;
    int32_t d;

    if (at[0] != 0xff || at[1] != 0x25)
        return NULL;
    memcpy(&d, at + 2, sizeof(d));
    tbd_near_find(word_at(entry + 6 + (uint64_t)(int64_t)d), &code);
    return code;
}

/* Before the copy of the place's own instruction the hit is counted: then that one is carried out, unless it is what has raised the
 * signal. */
static enum tbd_settled settle_in_code(const struct tbd_jump_code *code,
                                       struct tbd_ucontext *context, bool is_fault)
{
    uint64_t at = context->rip - code->start;

    if (at < code->body) {
        go_back(code, context, at > 0, at > code->flags_read);
        return TBD_SETTLED_THERE;
    }
    if (at <= code->check && !is_fault) {
        defer(context, *reg(context, TBD_RSP));
        return TBD_SETTLED_DEFERRED;
    }
    if ((at > code->check && at < code->left) || at >= code->tail) {
        go_ahead(code, context, *reg(context, TBD_RSP));
        return TBD_SETTLED_THERE;
    }
    if (at == code->left && !is_fault) {
        tbd_trap_run_instruction(&code->jump->probe->step, context);
        return TBD_SETTLED_THERE;
    }
    for (uint32_t i = 0; i < code->piece_count; i++)
        if (code->piece[i].at == at) {
            context->rip = code->piece[i].pc;
            return TBD_SETTLED_THERE;
        }
    return TBD_SETTLED_ELSEWHERE;
}

/* The thread's own instruction has raised it. */
static bool is_fault_of_thread(int signal, const uint8_t *info)
{
    int32_t code;

    memcpy(&code, info + 8, sizeof(code));
    return code > 0 &&
           (signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL);
}

enum tbd_settled tbd_jump_settle(int signal, const uint8_t *info, struct tbd_ucontext *context)
{
    const struct tbd_jump_code *code;
    bool is_fault = is_fault_of_thread(signal, info);
    void *owner = NULL;

    if (context->rip - TBD_ENGINE_BASE < ENGINE_BYTES)
        return settle_in_engine(context, is_fault);
    if (!tbd_near_find(context->rip, &owner))
        return TBD_SETTLED_ELSEWHERE;
    code = owner ? owner : code_of_entry(context->rip);
    if (!code)
        return TBD_SETTLED_ELSEWHERE;
    if (!owner) {
        context->rip = code->jump->probe->step.pc;
        return TBD_SETTLED_THERE;
    }
    return settle_in_code(code, context, is_fault);
}
