// SPDX-License-Identifier: MIT
/* jump_inline.c - see jump_inline.h
 *
 *   dx = 64 * shard; one handler more inside; if the session is the one this was made for: all uses; one less inside
 *
 * An entry of a map without a key is at a constant place; its values begin as zeros, so that it only has to be
 * marked.  Registers of the consumer's code are words of the frame. */
#include "hooks/probes/jump_inline.h"

#include "base/string.h"

#define SHARD_SHIFT 6u
#define SIGNED      16u
#define RIP         16
#define RSP         4

_Static_assert(sizeof(tbd_probe_session.shard[0]) == 1u << SHARD_SHIFT, "dx is an offset there");
_Static_assert(sizeof(((struct tbd_probe_shared *)NULL)->shard[0]) == 1u << SHARD_SHIFT,
               "there too");
_Static_assert(TBD_PROBE_SHARDS == 4, "and $3");

/* ---- what can be written ---- */

static bool is_plain_map(const struct tbd_probe_map *map)
{
    return !map->key_bytes && (map->kind == TBD_PROBE_COUNT || map->kind == TBD_PROBE_SUM ||
                               map->kind == TBD_PROBE_AVG);
}

static bool can_instruction(const struct tbd_probe_session *session,
                            const struct tbd_probe_insn *insn)
{
    switch ((enum tbd_probe_op)insn->op) {
    case TBD_PROBE_REG: return insn->imm <= RIP;
    case TBD_PROBE_PUT: return is_plain_map(&session->maps[insn->imm]);
    case TBD_PROBE_END:
    case TBD_PROBE_IMM:
    case TBD_PROBE_IMM_HIGH:
    case TBD_PROBE_ADD:
    case TBD_PROBE_SUB:
    case TBD_PROBE_MUL:
    case TBD_PROBE_AND:
    case TBD_PROBE_OR:
    case TBD_PROBE_XOR:
    case TBD_PROBE_SHL:
    case TBD_PROBE_SHR:
    case TBD_PROBE_SAR:
    case TBD_PROBE_EQ:
    case TBD_PROBE_NE:
    case TBD_PROBE_LT:
    case TBD_PROBE_LE:
    case TBD_PROBE_BELOW:
    case TBD_PROBE_BELOW_EQ:
    case TBD_PROBE_NOT:
    case TBD_PROBE_INVERT:
    case TBD_PROBE_NEGATE:
    case TBD_PROBE_EXTEND:
    case TBD_PROBE_SKIP:
    case TBD_PROBE_SKIP_ZERO: return true;
    default: return false;
    }
}

#define MAX_INSNS 64u /* of one use */

bool tbd_inline_can(const struct tbd_probe_session *session, const struct tbd_probe *probe)
{
    unsigned uses = 0;

    for (uint32_t use = probe->uses; use; use = session->uses[use - 1].next) {
        const struct tbd_probe_insn *insn = &session->code[session->uses[use - 1].code];
        unsigned count = 0;

        for (; insn->op != TBD_PROBE_END; insn++)
            if (++count > MAX_INSNS || !can_instruction(session, insn))
                return false;
        if (++uses > TBD_JUMP_MAX_USES)
            return false;
    }
    return true;
}

/* ---- instructions ---- */

static struct tbd_ea word(int disp)
{
    return (struct tbd_ea){ .base = TBD_RSP, .index = TBD_NO_REG, .scale = 1, .disp = disp };
}

static void get(struct tbd_emit *e, unsigned reg, unsigned own)
{
    struct tbd_ea ea = word(TBD_JUMP_WORDS + 8 * (int)own);

    tbd_emit_load(e, reg, &ea, 8);
}

static void set(struct tbd_emit *e, unsigned own)
{
    struct tbd_ea ea = word(TBD_JUMP_WORDS + 8 * (int)own);

    tbd_emit_store(e, TBD_RAX, &ea, 8);
}

/* A register of the program as it was at the place. */
static void get_program(const struct tbd_probe *probe, struct tbd_emit *e, int32_t which)
{
    static const uint8_t saved[3] = { TBD_JUMP_RAX, TBD_JUMP_RCX, TBD_JUMP_RDX };
    struct tbd_ea ea = word(which <= TBD_RDX ? saved[which] : TBD_JUMP_FRAME);

    if (which == RIP)
        tbd_emit_mov_imm(e, TBD_RAX, probe->step.pc);
    else if (which == RSP)
        tbd_emit_lea(e, TBD_RAX, &ea);
    else if (which <= TBD_RDX)
        tbd_emit_load(e, TBD_RAX, &ea, 8);
    else
        tbd_emit_mov(e, TBD_RAX, (unsigned)which);
}

/* rax = rax op rcx */
static void write_operation(struct tbd_emit *e, enum tbd_probe_op op)
{
    switch ((int)op) {
    case TBD_PROBE_ADD: tbd_emit_bytes(e, "\x48\x01\xc8", 3); break;
    case TBD_PROBE_SUB: tbd_emit_bytes(e, "\x48\x29\xc8", 3); break;
    case TBD_PROBE_MUL: tbd_emit_bytes(e, "\x48\x0f\xaf\xc1", 4); break;
    case TBD_PROBE_AND: tbd_emit_bytes(e, "\x48\x21\xc8", 3); break;
    case TBD_PROBE_OR: tbd_emit_bytes(e, "\x48\x09\xc8", 3); break;
    case TBD_PROBE_XOR: tbd_emit_bytes(e, "\x48\x31\xc8", 3); break;
    case TBD_PROBE_SHL: tbd_emit_bytes(e, "\x48\xd3\xe0", 3); break;
    case TBD_PROBE_SHR: tbd_emit_bytes(e, "\x48\xd3\xe8", 3); break;
    case TBD_PROBE_SAR: tbd_emit_bytes(e, "\x48\xd3\xf8", 3); break;
    case TBD_PROBE_INVERT: tbd_emit_bytes(e, "\x48\xf7\xd0", 3); break;
    default: tbd_emit_bytes(e, "\x48\xf7\xd8", 3); break; /* NEGATE */
    }
}

/* The low bits of setcc's opcode; 16: none. */
static unsigned condition_of(enum tbd_probe_op op)
{
    switch ((int)op) {
    case TBD_PROBE_EQ:
    case TBD_PROBE_NOT: return 0x4;
    case TBD_PROBE_NE: return 0x5;
    case TBD_PROBE_LT: return 0xc;
    case TBD_PROBE_LE: return 0xe;
    case TBD_PROBE_BELOW: return 0x2;
    case TBD_PROBE_BELOW_EQ: return 0x6;
    default: return 16;
    }
}

static void write_comparison(struct tbd_emit *e, const struct tbd_probe_insn *insn)
{
    if (insn->op == TBD_PROBE_NOT)
        tbd_emit_bytes(e, "\x48\x85\xc0", 3); /* test %rax, %rax */
    else
        tbd_emit_bytes(e, "\x48\x39\xc8", 3); /* cmp %rcx, %rax */
    tbd_emit_u8(e, 0x0f);
    tbd_emit_u8(e, 0x90u | condition_of((enum tbd_probe_op)insn->op));
    tbd_emit_u8(e, 0xc0);                 /* setcc %al */
    tbd_emit_bytes(e, "\x0f\xb6\xc0", 3); /* movzbl %al, %eax */
}

static void write_extension(struct tbd_emit *e, unsigned how)
{
    switch (how) {
    case 1: tbd_emit_bytes(e, "\x0f\xb6\xc0", 3); break;
    case 2: tbd_emit_bytes(e, "\x0f\xb7\xc0", 3); break;
    case 4: tbd_emit_bytes(e, "\x89\xc0", 2); break;
    case SIGNED | 1: tbd_emit_bytes(e, "\x48\x0f\xbe\xc0", 4); break;
    case SIGNED | 2: tbd_emit_bytes(e, "\x48\x0f\xbf\xc0", 4); break;
    default: tbd_emit_bytes(e, "\x48\x98", 2); break; /* SIGNED | 4 */
    }
}

/* cx = the entry in this shard, whose state becomes VALID; the value is added. */
static void write_put(const struct tbd_probe_session *session, const struct tbd_probe_insn *insn,
                      struct tbd_emit *e)
{
    const struct tbd_probe_map *map = &session->maps[insn->imm];
    uint64_t first = (uint64_t)(uintptr_t)session->shared + session->map_at[insn->imm];

    tbd_emit_mov(e, TBD_RAX, TBD_RDX);
    tbd_emit_bytes(e, "\x48\xc1\xe8\x06\x48\x69\xc0", 7); /* shr $6, %rax; imul $.., %rax, %rax */
    tbd_emit_u32(e, (uint32_t)tbd_probe_shard_bytes(map));
    tbd_emit_mov_imm(e, TBD_RCX, first);
    tbd_emit_bytes(e, "\x48\x01\xc1\x48\xc7\x01", 6); /* add %rax, %rcx; movq $2, (%rcx) */
    tbd_emit_u32(e, TBD_PROBE_VALID);
    if (map->kind != TBD_PROBE_SUM)
        tbd_emit_bytes(e, "\xf0\x48\xff\x41\x08", 5); /* lock incq 8(%rcx) */
    if (map->kind == TBD_PROBE_COUNT)
        return;
    get(e, TBD_RAX, insn->a);
    tbd_emit_bytes(e, "\xf0\x48\x01\x41", 4); /* lock add %rax, ..(%rcx) */
    tbd_emit_u8(e, map->kind == TBD_PROBE_SUM ? 8 : 16);
}

static void write_instruction(const struct tbd_probe_session *session,
                              const struct tbd_probe *probe, const struct tbd_probe_insn *insn,
                              struct tbd_emit *e)
{
    switch ((enum tbd_probe_op)insn->op) {
    case TBD_PROBE_PUT: write_put(session, insn, e); return;
    case TBD_PROBE_IMM: tbd_emit_mov_imm(e, TBD_RAX, (uint64_t)(int64_t)insn->imm); break;
    case TBD_PROBE_IMM_HIGH: /* shl $32, %rcx; mov %eax, %eax; or %rcx, %rax */
        get(e, TBD_RAX, insn->d);
        tbd_emit_mov_imm(e, TBD_RCX, (uint32_t)insn->imm);
        tbd_emit_bytes(e, "\x48\xc1\xe1\x20\x89\xc0\x48\x09\xc8", 9);
        break;
    case TBD_PROBE_REG: get_program(probe, e, insn->imm); break;
    case TBD_PROBE_EXTEND:
        get(e, TBD_RAX, insn->a);
        write_extension(e, insn->b);
        break;
    default:
        get(e, TBD_RAX, insn->a);
        get(e, TBD_RCX, insn->b);
        if (condition_of((enum tbd_probe_op)insn->op) < 16)
            write_comparison(e, insn);
        else
            write_operation(e, (enum tbd_probe_op)insn->op);
        break;
    }
    set(e, insn->d);
}

/* ---- a use ---- */

struct skips {
    uint8_t *from[MAX_INSNS]; /* displacements */
    uint32_t to[MAX_INSNS];   /* instructions */
    uint32_t count;
};

static void write_skip(const struct tbd_probe_insn *insn, uint32_t index, struct skips *skips,
                       struct tbd_emit *e)
{
    if (insn->op == TBD_PROBE_SKIP_ZERO) {
        get(e, TBD_RAX, insn->a);
        tbd_emit_bytes(e, "\x48\x85\xc0\x0f\x84", 5); /* test %rax, %rax; jz */
    } else {
        tbd_emit_u8(e, 0xe9);
    }
    skips->from[skips->count] = e->at;
    skips->to[skips->count++] = index + 1 + (uint32_t)insn->imm;
    tbd_emit_u32(e, 0);
}

static void land(struct skips *skips, uint32_t index, const struct tbd_emit *e)
{
    for (uint32_t i = 0; i < skips->count && !e->overflow; i++)
        if (skips->to[i] == index) {
            int32_t d = (int32_t)(e->at - (skips->from[i] + 4));

            memcpy(skips->from[i], &d, sizeof(d));
        }
}

/* Registers begin as zeros; those that are written before anything can skip need not. */
static void write_zeros(const struct tbd_probe_insn *code, struct tbd_emit *e)
{
    uint32_t written = 0, zeros = 0;
    bool skips = false;

    for (const struct tbd_probe_insn *i = code; i->op != TBD_PROBE_END; i++) {
        bool reads = i->op != TBD_PROBE_IMM && i->op != TBD_PROBE_REG && i->op != TBD_PROBE_SKIP;

        if (reads)
            zeros |= (1u << i->a | 1u << (i->b & 15) | 1u << i->d) & ~written;
        skips |= i->op == TBD_PROBE_SKIP || i->op == TBD_PROBE_SKIP_ZERO;
        if (!skips && i->op != TBD_PROBE_PUT)
            written |= 1u << i->d;
    }
    if (zeros)
        tbd_emit_mov_imm(e, TBD_RAX, 0);
    for (unsigned r = 0; zeros && r < TBD_PROBE_REGISTERS; r++)
        if (zeros & 1u << r)
            set(e, r);
}

static void write_use(const struct tbd_probe_session *session, const struct tbd_probe *probe,
                      const struct tbd_probe_insn *code, struct tbd_emit *e)
{
    struct skips skips;

    skips.count = 0;
    tbd_emit_mov_imm(e, TBD_RCX, (uint64_t)(uintptr_t)&session->shared->shard[0].hits);
    tbd_emit_bytes(e, "\xf0\x48\xff\x04\x11", 5); /* lock incq (%rcx,%rdx) */
    write_zeros(code, e);
    for (uint32_t i = 0;; i++) {
        const struct tbd_probe_insn *insn = &code[i];

        land(&skips, i, e);
        if (insn->op == TBD_PROBE_END)
            return;
        if (insn->op == TBD_PROBE_SKIP || insn->op == TBD_PROBE_SKIP_ZERO)
            write_skip(insn, i, &skips, e);
        else
            write_instruction(session, probe, insn, e);
    }
}

static void write_inside(const struct tbd_probe_session *session, const char *lock,
                         struct tbd_emit *e)
{
    tbd_emit_mov_imm(e, TBD_RCX, (uint64_t)(uintptr_t)&session->shard[0].inside);
    tbd_emit_bytes(e, lock, 5);
}

void tbd_inline_write(const struct tbd_probe_session *session, const struct tbd_probe *probe,
                      struct tbd_emit *e)
{
    uint8_t *other;
    int32_t d;

    tbd_emit_mov(e, TBD_RDX, TBD_RSP);
    tbd_emit_mov(e, TBD_RCX, TBD_RSP);
    /* shr $16, %rdx; shr $23, %rcx; xor %ecx, %edx; and $3, %edx; shl $6, %edx */
    tbd_emit_bytes(e, "\x48\xc1\xea\x10\x48\xc1\xe9\x17\x31\xca\x83\xe2\x03\xc1\xe2\x06", 16);
    write_inside(session, "\xf0\x48\xff\x04\x11", e); /* lock incq (%rcx,%rdx) */
    tbd_emit_mov_imm(e, TBD_RAX, (uint64_t)(uintptr_t)&session->active);
    tbd_emit_bytes(e, "\x81\x38", 2); /* cmpl $number, (%rax); jne */
    tbd_emit_u32(e, session->number);
    tbd_emit_bytes(e, "\x0f\x85", 2);
    other = e->at;
    tbd_emit_u32(e, 0);
    for (uint32_t use = probe->uses; use; use = session->uses[use - 1].next)
        write_use(session, probe, &session->code[session->uses[use - 1].code], e);
    d = (int32_t)(e->at - (other + 4));
    if (!e->overflow)
        memcpy(other, &d, sizeof(d));
    write_inside(session, "\xf0\x48\xff\x0c\x11", e); /* lock decq (%rcx,%rdx) */
}
