// SPDX-License-Identifier: MIT
/* branch_functions.c - see branch_functions.h */
#include "hooks/instructions/branch_functions.h"

#include "base/calling.h"
#include "base/log.h"
#include "base/string.h"
#include "hooks/instructions/processor.h"
#include "hooks/memory/program_memory.h"
#include "patcher/decode.h"

#define MOST       32u
#define NAME_BYTES 64u
#define MOST_BYTES (1u << 20) /* of a function's code */

struct chosen {
    char file[NAME_BYTES];
    struct tbd_branch_function function;
    bool has_come, is_read, is_refused;
};

static struct chosen chosen[MOST];
static uint32_t chosen_count;
static enum tbd_branch_scheme used;

/* ---- the option's text ---- */

static bool take_hex(const char **text, uint64_t *out)
{
    const char *at = *text;

    for (*out = 0; (*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'f'); at++) {
        if (*out >> 60)
            return false;
        *out = *out * 16 + (uint64_t)(*at <= '9' ? *at - '0' : *at - 'a' + 10);
    }
    if (at == *text)
        return false;
    *text = at;
    return true;
}

/* FILE:START-END; the file's name may have colons. */
static bool take_one(const char *text, size_t length)
{
    struct chosen *c = &chosen[chosen_count];
    size_t name = length;
    const char *at;

    while (name && text[name - 1] != ':')
        name--;
    if (name < 2 || name > NAME_BYTES || chosen_count == MOST)
        return false;
    memcpy(c->file, text, name - 1);
    at = text + name;
    if (!take_hex(&at, &c->function.start) || *at++ != '-' || !take_hex(&at, &c->function.end) ||
        at != text + length || c->function.end <= c->function.start ||
        c->function.end - c->function.start > MOST_BYTES)
        return false;
    c->function.module = tbd_calling_module(c->file);
    chosen_count++;
    return true;
}

bool tbd_branch_functions_init(const char *text, enum tbd_branch_scheme scheme)
{
    used = scheme;
    while (*text) {
        const char *end = text;

        while (*end && *end != ';')
            end++;
        if (!take_one(text, (size_t)(end - text)))
            return false;
        text = *end ? end + 1 : end;
    }
    return chosen_count;
}

/* ---- a function's code ---- */

struct branch_reading {
    struct chosen *chosen;
    uint64_t bias, end; /* of the mapping */
    bool is_full, is_odd;
};

static void take_insn(struct branch_reading *r, const struct tbd_insn *insn)
{
    struct tbd_branch_function *f = &r->chosen->function;
    bool is_start = insn->target == r->bias + f->start;

    if (is_start && (insn->kind == TBD_INSN_JUMP || insn->kind == TBD_INSN_BRANCH))
        f->begins_again = true;
    r->is_odd |= is_start && insn->kind == TBD_INSN_BRANCH_RCX;
    if (insn->kind != TBD_INSN_BRANCH)
        return;
    r->is_full |= f->count == TBD_BRANCH_MAX;
    if (!r->is_full)
        f->at[f->count++] = (uint32_t)(insn->pc - r->bias - f->start);
}

static void read_code(void *context)
{
    struct branch_reading *r = context;
    uint64_t at = r->bias + r->chosen->function.start;
    uint64_t end = r->bias + r->chosen->function.end;

    if (end > r->end)
        end = r->end;
    while (at < end) {
        struct tbd_insn insn;
        bool good = tbd_decode(&insn, at, (const uint8_t *)at, end - at);

        if (good)
            take_insn(r, &insn);
        at += good ? insn.length : 1;
    }
}

static void read_function(struct chosen *c, uint64_t bias, uint64_t mapping_end)
{
    struct branch_reading r = { .chosen = c, .bias = bias, .end = mapping_end };

    c->is_read = true;
    tbd_processor_decode(read_code, &r);
    c->is_refused = r.is_full || r.is_odd || !c->function.count;
    if (c->is_refused)
        tbd_say("no branches of the function at 0x%lx of %s are counted: %s", c->function.start,
                c->file,
                r.is_full  ? "it has more than 64"
                : r.is_odd ? "jrcxz or loop leads to its first instruction"
                           : "it has none");
}

static const char *last_part(const char *path)
{
    const char *last = path;

    for (; *path; path++)
        if (*path == '/')
            last = path + 1;
    return last;
}

struct tbd_branches_at tbd_branch_functions_at(uint64_t pc)
{
    const struct tbd_mapped_region *region =
        chosen_count ? tbd_regions_find(&tbd_memory.regions, pc) : NULL;
    uint64_t offset, bias;

    if (!region || !region->path[0])
        return (struct tbd_branches_at){ .function = NULL };
    bias = region->map.start - region->map.file_offset;
    offset = pc - bias;
    for (uint32_t i = 0; i < chosen_count; i++) {
        struct chosen *c = &chosen[i];

        if (strcmp(last_part(region->path), c->file) != 0)
            continue;
        c->has_come = true;
        if (offset < c->function.start || offset >= c->function.end)
            continue;
        if (!c->is_read)
            read_function(c, bias, region->map.end);
        return (struct tbd_branches_at){ .function = c->is_refused ? NULL : &c->function,
                                         .bias = bias,
                                         .scheme = used };
    }
    return (struct tbd_branches_at){ .function = NULL };
}

void tbd_branch_functions_say_missing(void)
{
    for (uint32_t i = 0; i < chosen_count; i++)
        if (!chosen[i].has_come)
            tbd_say("no code of %s ran: no branches of the function at 0x%lx were counted",
                    chosen[i].file, chosen[i].function.start);
}
