// SPDX-License-Identifier: MIT
/* search_tails.c - see search_tails.h */
#include "query/search/search_tails.h"

#include <stdlib.h>
#include <string.h>

/* From one block to a place that its last instruction names, or that comes after it. */
struct jump {
    uint64_t from, to;
};

struct tails_finding {
    struct tbd_session *session;
    uint32_t window;
    struct tbd_tails *tails;
    struct jump *jumps; /* owned */
    size_t count;
    bool is_lost; /* too many functions, or code without a name */
};

/* ---- jumps ---- */

static bool is_prefix(uint8_t byte)
{
    return byte == 0xf2 || byte == 0x2e || byte == 0x3e || byte == 0x67;
}

/* jmp and jcc are followed by four bytes, their short forms, loop and jrcxz by one. */
static bool jump_target(const struct tbd_block *block, uint64_t *out)
{
    const uint8_t *code = block->code, *end = code + block->def.code_bytes;
    const uint8_t *at = code + block->def.last_insn;
    int32_t wide;
    int8_t narrow;

    while (at < end && is_prefix(*at))
        at++;
    if (end - at >= 5 && (*at == 0xe9 || (*at == 0x0f && (at[1] & 0xf0) == 0x80))) {
        memcpy(&wide, end - sizeof(wide), sizeof(wide));
        *out = block->def.start + block->def.code_bytes + (uint64_t)(int64_t)wide;
        return true;
    }
    if (end - at != 2)
        return false;
    memcpy(&narrow, end - sizeof(narrow), sizeof(narrow));
    *out = block->def.start + block->def.code_bytes + (uint64_t)(int64_t)narrow;
    return true;
}

static void add_jump(struct tails_finding *f, uint64_t from, uint64_t to)
{
    f->jumps[f->count++] = (struct jump){ from, to };
}

static void add_jumps_of(struct tails_finding *f, const struct tbd_block *block)
{
    uint64_t start = block->def.start, target;

    if ((block->def.end == TBD_END_JUMP || block->def.end == TBD_END_BRANCH) &&
        jump_target(block, &target))
        add_jump(f, start, target);
    if (block->def.end == TBD_END_LIMIT || block->def.end == TBD_END_BRANCH)
        add_jump(f, start, start + block->def.code_bytes);
}

static bool list_jumps(struct tails_finding *f)
{
    const struct tbd_trace *trace = f->session->trace;
    uint32_t blocks = tbd_trace_block_count(trace);

    f->jumps = calloc(2 * (size_t)blocks + 1, sizeof(*f->jumps));
    for (uint32_t id = 1; f->jumps != NULL && id <= blocks; id++) {
        const struct tbd_block *block = tbd_trace_block(trace, id);

        if (block != NULL)
            add_jumps_of(f, block);
    }
    return f->jumps != NULL;
}

/* ---- functions ---- */

static bool is_in(const struct tbd_tails *tails, uint32_t count, uint64_t pc)
{
    for (uint32_t i = 0; i < count; i++) {
        if (pc >= tails->ranges[i].start && pc < tails->ranges[i].end)
            return true;
    }
    return false;
}

static void add_range(struct tails_finding *f, struct tbd_range64 range)
{
    if (f->tails->count == TBD_TAILS_MOST)
        f->is_lost = true;
    else
        f->tails->ranges[f->tails->count++] = range;
}

static void add_function_at(struct tails_finding *f, uint64_t pc)
{
    struct tbd_symbol symbol;

    if (!tbd_symbols_at(f->session->symbols, f->window, pc, &symbol) || symbol.name == NULL)
        f->is_lost = true;
    else
        add_range(f, (struct tbd_range64){ symbol.start, symbol.end });
}

/* Those to which the functions lead, and so on. */
static void follow(struct tails_finding *f)
{
    const struct tbd_tails *tails = f->tails;
    uint32_t before = 0;

    while (before != tails->count && !f->is_lost) {
        before = tails->count;
        for (size_t i = 0; i < f->count && !f->is_lost; i++) {
            if (is_in(tails, before, f->jumps[i].from) &&
                !is_in(tails, tails->count, f->jumps[i].to))
                add_function_at(f, f->jumps[i].to);
        }
    }
}

/* Those that lead to the functions, and so on. */
static void follow_back(struct tails_finding *f)
{
    const struct tbd_tails *tails = f->tails;
    uint32_t before = 0;

    while (before != tails->count && !f->is_lost) {
        before = tails->count;
        for (size_t i = 0; i < f->count && !f->is_lost; i++) {
            if (is_in(tails, before, f->jumps[i].to) &&
                !is_in(tails, tails->count, f->jumps[i].from))
                add_function_at(f, f->jumps[i].from);
        }
    }
}

enum tbd_status tbd_tails_find(struct tbd_session *session, uint32_t window,
                               const struct tbd_expr_name *name, struct tbd_tails *out)
{
    struct tails_finding f = { .session = session, .window = window, .tails = out };
    bool has_memory = list_jumps(&f);

    *out = (struct tbd_tails){ 0 };
    for (size_t i = 0; i < name->count && has_memory; i++)
        add_range(&f, name->ranges[i]);
    if (has_memory)
        follow(&f);
    out->returning = out->count;
    if (has_memory && out->returning != name->count)
        follow_back(&f);
    if (f.is_lost)
        *out = (struct tbd_tails){ 0 };
    free(f.jumps);
    return has_memory ? TBD_OK : TBD_NOMEM;
}

bool tbd_tails_return(const struct tbd_tails *tails, uint64_t pc)
{
    return is_in(tails, tails->returning, pc);
}

bool tbd_tails_begin(const struct tbd_tails *tails, uint64_t pc)
{
    for (uint32_t i = 0; i < tails->count; i++) {
        if (tails->ranges[i].start == pc)
            return true;
    }
    return false;
}
