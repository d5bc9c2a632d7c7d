// SPDX-License-Identifier: MIT
/* stack_walk.c - see stack_walk.h
 *
 *     address --kept?--> rule, number of the call --registers, stack--> the caller's pc, rsp, rbp
 *        no: code_files.h, base/caller_rule.h, some ten reads by the kernel
 *
 * STACK_WALK-1  Each step goes up: the caller's rsp is above the function's, but out of a signal frame.  A walk takes
 *     at most TBD_WALK_CALLS steps.
 * STACK_WALK-2  What is kept at an address was found among the files that are there now: it has the number of their
 *     look. (not checked: find_known() compares) */
#include "hooks/probes/stack_walk.h"

#include "base/assert.h"
#include "base/caller_rule.h"
#include "base/calling.h"
#include "base/hash.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/probes/code_files.h"
#include "hooks/probes/probe_make.h"
#include "hooks/probes/probe_session.h"
#include "patcher/native_step.h"

#define KEPT_PLACES 4096u /* a power of two */
#define PIECE_WORDS 128u
#define RED_ZONE    128u /* below rsp: at a ret, the saved rbp may still be there */
#define BELOW_BYTES 64u  /* of a frame: what its function has saved */
#define RSP         4u   /* in the order of the stream */

/* ---- what is known about an address ---- */

struct known_caller {
    struct tbd_caller_rule rule;
    uint32_t look;   /* of the files */
    uint64_t number; /* of the call that returns to the byte after this address */
};

/* `sequence` is odd while somebody writes. */
struct kept_caller {
    uint32_t sequence;
    uint64_t address;
    struct known_caller known;
};

static struct kept_caller *kept;

bool tbd_walk_begin(void)
{
    kept = tbd_probe_memory(KEPT_PLACES * sizeof(*kept));
    return kept != NULL;
}

static struct kept_caller *place_of(uint64_t address)
{
    return &kept[tbd_hash64_mix(address) & (KEPT_PLACES - 1)];
}

static bool find_kept(uint64_t address, uint32_t look, struct known_caller *out)
{
    const struct kept_caller *place = place_of(address);
    uint32_t sequence = __atomic_load_n(&place->sequence, __ATOMIC_ACQUIRE);
    bool is_same = place->address == address && place->known.look == look;

    *out = place->known;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return is_same && !(sequence & 1) &&
           __atomic_load_n(&place->sequence, __ATOMIC_RELAXED) == sequence;
}

/* If another thread writes there, nothing is kept. */
static void keep(uint64_t address, const struct known_caller *known)
{
    struct kept_caller *place = place_of(address);
    uint32_t sequence = __atomic_load_n(&place->sequence, __ATOMIC_RELAXED);

    if (sequence & 1 || !__atomic_compare_exchange_n(&place->sequence, &sequence, sequence + 1,
                                                     false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return;
    __atomic_thread_fence(__ATOMIC_RELEASE);
    place->address = address;
    place->known = *known;
    __atomic_store_n(&place->sequence, sequence + 2, __ATOMIC_RELEASE);
}

static bool read_table(void *context, uint64_t address, void *out, size_t bytes)
{
    struct tbd_walk_start *start = context;

    return start->read(start->context, address, out, bytes) == bytes;
}

/* Keeps STACK_WALK-2. */
static bool find_known(struct tbd_walk_start *start, uint64_t address, struct known_caller *out)
{
    const struct tbd_table_reader reader = { read_table, start };
    struct tbd_code_file file;
    uint32_t look;

    if (!tbd_code_file_of(address, &file, &look))
        return false;
    if (find_kept(address, look, out))
        return true;
    *out = (struct known_caller){ .look = look,
                                  .number = tbd_calling_number(
                                      file.module, address + 1 - file.start + file.file_offset) };
    if (file.table)
        out->rule = tbd_caller_rule_find(&reader, file.table, address);
    keep(address, out);
    return true;
}

/* ---- frames ---- */

#define MARK         7u /* of the words that are reserved in a signal frame: which signal it is for */
#define SIGNAL_WORDS (offsetof(struct tbd_ucontext, mask) / 8)
#define SIGNALS      64u

/* A piece of the stack, read by one system call: frames that follow each other are mostly in the same. */
struct stack_piece {
    uint64_t start;
    size_t bytes;
    uint64_t words[PIECE_WORDS];
};

struct call_walk {
    struct tbd_walk_start *start;
    const uint64_t *registers; /* of the innermost function; NULL further out */
    uint64_t pc, rsp;
    uint64_t saved[TBD_SAVED_COUNT]; /* registers, as far as they are known */
    bool has_saved[TBD_SAVED_COUNT];
    uint64_t number;   /* of the handler's call, after a signal frame */
    bool has_number;   /* it is known which signal that was */
    bool is_exact;     /* pc has not run; else it is a return address */
    bool is_outermost; /* the step before this one has found no caller */
    struct stack_piece piece;
};

static bool read_words(struct call_walk *walk, uint64_t address, uint64_t *out, unsigned count)
{
    struct stack_piece *piece = &walk->piece;
    uint64_t bytes = count * sizeof(*out), low = walk->rsp - RED_ZONE;

    if (address < low)
        return false;
    if (address < piece->start || address - piece->start > piece->bytes ||
        piece->bytes - (address - piece->start) < bytes) {
        piece->start = address - low < BELOW_BYTES ? low : address - BELOW_BYTES;
        piece->bytes = walk->start->read(walk->start->context, piece->start, piece->words,
                                         sizeof(piece->words));
    }
    if (address < piece->start || piece->bytes < bytes ||
        address - piece->start > piece->bytes - bytes)
        return false;
    memcpy(out, (const uint8_t *)piece->words + (address - piece->start), bytes);
    return true;
}

static const uint8_t saved_registers[TBD_SAVED_COUNT] = { 5, 3 }; /* rbp, rbx */

/* All registers are known here. */
static void take_registers(struct call_walk *walk, const uint64_t *registers)
{
    walk->rsp = registers[tbd_native_place(RSP)];
    for (unsigned i = 0; i < TBD_SAVED_COUNT; i++) {
        walk->saved[i] = registers[tbd_native_place(saved_registers[i])];
        walk->has_saved[i] = true;
    }
    walk->is_exact = true;
}

static void begin(struct call_walk *walk, struct tbd_walk_start *start)
{
    walk->start = start;
    walk->registers = start->registers;
    walk->pc = start->pc;
    walk->is_outermost = false;
    walk->piece.start = walk->piece.bytes = 0;
    take_registers(walk, start->registers);
}

/* DWARF numbers: rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15. */
static bool value_of(const struct call_walk *walk, unsigned reg, uint64_t *out)
{
    static const uint8_t order[16] = { 0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15 };
    unsigned saved = reg == TBD_CALLER_RBP ? TBD_SAVED_RBP : TBD_SAVED_RBX;

    if (reg == TBD_CALLER_RSP)
        *out = walk->rsp;
    else if (walk->registers)
        *out = walk->registers[tbd_native_place(order[reg & 15])];
    else if ((reg == TBD_CALLER_RBP || reg == TBD_CALLER_RBX) && walk->has_saved[saved])
        *out = walk->saved[saved];
    else
        return false;
    return true;
}

static bool frame_of(struct call_walk *walk, const struct tbd_caller_rule *rule, uint64_t *out)
{
    if (!value_of(walk, rule->reg, out))
        return false;
    *out += (uint64_t)(int64_t)rule->frame_offset;
    return rule->kind == TBD_CALLER_PLAIN || read_words(walk, *out, out, 1);
}

/* A frame pointer lies in the frame.  One that does not has got its caller's value back already: at the end of functions
 * with aligned frames, gcc's tables still say where registers were saved. */
static bool is_frame_pointer(uint64_t rbp, const struct call_walk *walk, uint64_t frame)
{
    return rbp >= walk->rsp - RED_ZONE && rbp < frame;
}

/* `rbp`: the function's, if it is known. */
static bool step_saved(struct call_walk *walk, const struct tbd_caller_rule *rule, unsigned i,
                       uint64_t frame, const uint64_t *rbp)
{
    uint64_t offset = (uint64_t)(int64_t)rule->offset[i];

    switch ((enum tbd_caller_place)rule->place[i]) {
    case TBD_PLACE_AT_FRAME:
        walk->has_saved[i] = true;
        return read_words(walk, frame + offset, &walk->saved[i], 1);
    case TBD_PLACE_AT_RBP:
        if (!rbp)
            return false;
        if (!is_frame_pointer(*rbp, walk, frame))
            return true;
        walk->has_saved[i] = true;
        return read_words(walk, *rbp + offset, &walk->saved[i], 1);
    case TBD_PLACE_LOST: walk->has_saved[i] = false; return true;
    case TBD_PLACE_KEPT:
    default: return true;
    }
}

static bool step_call(struct call_walk *walk, const struct tbd_caller_rule *rule)
{
    const uint64_t rbp = walk->saved[TBD_SAVED_RBP];
    bool has_rbp = walk->has_saved[TBD_SAVED_RBP];
    uint64_t frame, back;

    if (!frame_of(walk, rule, &frame) || frame <= walk->rsp ||
        !read_words(walk, frame - 8, &back, 1))
        return false;
    for (unsigned i = 0; i < TBD_SAVED_COUNT; i++)
        if (!step_saved(walk, rule, i, frame, has_rbp ? &rbp : NULL))
            return false;
    walk->pc = back;
    walk->rsp = frame;
    walk->registers = NULL;
    walk->is_exact = false;
    return true;
}

/* The mark belongs to one frame and one session. */
static uint64_t signal_mark(uint64_t context)
{
    return tbd_hash64_mix(context ^ (uint64_t)tbd_probe_session.number << 48);
}

void tbd_walk_note_signal(int signal, struct tbd_ucontext *context)
{
    context->reserved[MARK] = signal_mark(tbd_sys_pointer(context)) ^ (uint64_t)signal;
}

/* The handler returns to the code that asks the kernel to go on: its stack begins with the registers. */
static bool step_signal(struct call_walk *walk)
{
    uint64_t words[SIGNAL_WORDS];
    uint64_t signal;

    if (!read_words(walk, walk->rsp, words, SIGNAL_WORDS))
        return false;
    signal = words[offsetof(struct tbd_ucontext, reserved) / 8 + MARK] ^ signal_mark(walk->rsp);
    walk->has_number = signal && signal <= SIGNALS;
    walk->number = tbd_calling_number(tbd_calling_module(TBD_CALLING_SIGNAL), signal);
    walk->pc = words[offsetof(struct tbd_ucontext, rip) / 8];
    walk->registers = NULL;
    take_registers(walk, words + offsetof(struct tbd_ucontext, gregs) / 8);
    return true;
}

/* To the caller.  False: there is none, or it is not known. */
static bool step_out(struct call_walk *walk)
{
    struct known_caller known;

    if (!find_known(walk->start, walk->is_exact ? walk->pc : walk->pc - 1, &known))
        return false;
    switch ((enum tbd_caller_kind)known.rule.kind) {
    case TBD_CALLER_PLAIN:
    case TBD_CALLER_POINTED: return step_call(walk, &known.rule);
    case TBD_CALLER_SIGNAL: return step_signal(walk);
    case TBD_CALLER_OUTERMOST: walk->is_outermost = true; return false;
    case TBD_CALLER_UNKNOWN:
    default: return false;
    }
}

/* By the frame pointer. */
static bool guess_out(struct call_walk *walk)
{
    uint64_t rbp = walk->saved[TBD_SAVED_RBP];
    uint64_t frame[2];

    if (walk->is_outermost || !walk->has_saved[TBD_SAVED_RBP] || rbp < walk->rsp || rbp & 7 ||
        !read_words(walk, rbp, frame, 2) || !frame[1])
        return false;
    walk->rsp = rbp + 16;
    walk->saved[TBD_SAVED_RBP] = frame[0];
    walk->has_saved[TBD_SAVED_RBX] = false;
    walk->pc = frame[1];
    walk->registers = NULL;
    walk->is_exact = false;
    return true;
}

void tbd_walk_stack(struct tbd_walk_start *start, uint64_t *out, uint32_t frames)
{
    struct call_walk walk;
    uint32_t count = 0;

    memset(out, 0, frames * sizeof(*out));
    begin(&walk, start);
    if (frames)
        out[count++] = walk.pc;
    while (count < frames && (step_out(&walk) || guess_out(&walk)) && walk.pc)
        out[count++] = walk.pc;
}

/* ---- the context value ---- */

/* Like step_out(); *out: what the order scheme takes of its number.  A handler's return is no call: its signal is. */
static bool step_counted(struct call_walk *walk, uint32_t *out, bool *out_counts)
{
    struct known_caller known;
    bool was_exact;

    if (!step_out(walk))
        return false;
    was_exact = walk->is_exact;
    *out_counts = was_exact;
    if (was_exact) {
        *out = (uint32_t)walk->number;
        return walk->has_number;
    }
    if (!find_known(walk->start, walk->pc - 1, &known))
        return false;
    *out = (uint32_t)known.number;
    *out_counts = known.rule.kind != TBD_CALLER_SIGNAL;
    return true;
}

bool tbd_walk_context(struct tbd_walk_start *start, uint64_t *out)
{
    uint32_t number[TBD_WALK_CALLS]; /* their lower halves */
    struct call_walk walk;
    uint32_t count = 0;
    uint64_t value = 0;
    bool counts;

    begin(&walk, start);
    for (uint32_t steps = 0; steps < TBD_WALK_CALLS && step_counted(&walk, &number[count], &counts);
         steps++)
        count += counts;
    if (!walk.is_outermost)
        return false;
    TBD_INVARIANT("STACK_WALK-1", count <= TBD_WALK_CALLS);
    while (count)
        value = tbd_calling_enter(TBD_CALLING_ORDER, value, number[--count]);
    *out = value;
    return true;
}
