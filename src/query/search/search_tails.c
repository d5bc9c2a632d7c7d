// SPDX-License-Identifier: MIT
/* search_tails.c - see search_tails.h */
#include "query/search/search_tails.h"

#include "base/binary_search.h"

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

bool tbd_tails_target(const struct tbd_block *block, uint64_t *out)
{
    return (block->def.end == TBD_END_JUMP || block->def.end == TBD_END_BRANCH) &&
           jump_target(block, out);
}

static void add_jumps_of(struct tails_finding *f, const struct tbd_block *block)
{
    uint64_t start = block->def.start, target;

    if (tbd_tails_target(block, &target))
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

static const struct tbd_tail *tail_at(const struct tbd_tails *tails, uint64_t pc)
{
    size_t i = TBD_COUNT_BEFORE(k, tails->count, tails->all[k].code.end <= pc);

    return i < tails->count && tails->all[i].code.start <= pc ? &tails->all[i] : NULL;
}

static void add_tail(struct tails_finding *f, struct tbd_range64 code, bool returns)
{
    struct tbd_tails *tails = f->tails;
    size_t i = TBD_COUNT_BEFORE(k, tails->count, tails->all[k].code.end <= code.start);

    if (tails->count == TBD_TAILS_MOST || code.start >= code.end) {
        f->is_lost = true;
        return;
    }
    memmove(&tails->all[i + 1], &tails->all[i], (tails->count - i) * sizeof(tails->all[0]));
    tails->all[i] = (struct tbd_tail){ code, returns };
    tails->count++;
}

static void add_function_at(struct tails_finding *f, uint64_t pc, bool returns)
{
    struct tbd_symbol symbol;

    if (!tbd_symbols_at(f->session->symbols, f->window, pc, &symbol) || symbol.name == NULL)
        f->is_lost = true;
    else
        add_tail(f, (struct tbd_range64){ symbol.start, symbol.end }, returns);
}

/* Those to which the functions lead, and so on; or, with `back`, those that lead to them. */
static void follow(struct tails_finding *f, bool back)
{
    uint32_t before = 0;

    while (before != f->tails->count && !f->is_lost) {
        before = f->tails->count;
        for (size_t i = 0; i < f->count && !f->is_lost; i++) {
            uint64_t near = back ? f->jumps[i].to : f->jumps[i].from;
            uint64_t far = back ? f->jumps[i].from : f->jumps[i].to;

            if (tail_at(f->tails, near) != NULL && tail_at(f->tails, far) == NULL)
                add_function_at(f, far, !back);
        }
    }
}

enum tbd_status tbd_tails_find(struct tbd_session *session, uint32_t window,
                               const struct tbd_expr_name *name, const uint64_t *seen,
                               size_t seen_count, struct tbd_tails *out)
{
    struct tails_finding f = { .session = session, .window = window, .tails = out };
    bool has_memory = list_jumps(&f);

    *out = (struct tbd_tails){ 0 };
    for (size_t i = 0; i < name->count && has_memory; i++)
        add_tail(&f, name->ranges[i], true);
    for (size_t i = 0; i < seen_count && has_memory && !f.is_lost; i++) {
        if (tail_at(out, seen[i]) == NULL)
            add_function_at(&f, seen[i], true);
    }
    if (has_memory) {
        follow(&f, false);
        follow(&f, true);
    }
    if (f.is_lost)
        *out = (struct tbd_tails){ 0 };
    else
        out->others = out->count - (uint32_t)name->count;
    free(f.jumps);
    return has_memory ? TBD_OK : TBD_NOMEM;
}

bool tbd_tails_return(const struct tbd_tails *tails, uint64_t pc)
{
    const struct tbd_tail *tail = tail_at(tails, pc);

    return tail != NULL && tail->returns;
}

bool tbd_tails_begin(const struct tbd_tails *tails, uint64_t pc)
{
    const struct tbd_tail *tail = tail_at(tails, pc);

    return tail != NULL && tail->code.start == pc;
}

/* ---- import stubs ---- */

/* "strlen@plt" of "strlen", and of "libc!strlen". */
static bool is_stub_name(const char *stub, const char *name)
{
    const char *mark = strrchr(name, '!'), *plain = mark == NULL ? name : mark + 1;
    size_t bytes = strlen(plain);

    return strncmp(stub, plain, bytes) == 0 && strcmp(stub + bytes, "@plt") == 0;
}

bool tbd_tails_is_stub(struct tbd_session *session, uint32_t window,
                       const struct tbd_expr_name *name, const struct tbd_block *block)
{
    struct tbd_symbol symbol;
    bool jumps = false;

    if (block->def.end != TBD_END_JUMP_INDIRECT)
        return false;
    for (unsigned i = 0; i < block->def.op_count; i++)
        jumps |= block->ops[i].kind == TBD_OP_CALL;
    return jumps && tbd_symbols_at(session->symbols, window, block->def.start, &symbol) &&
           symbol.is_stub && symbol.name != NULL && symbol.start == block->def.start &&
           is_stub_name(symbol.name, name->text);
}
