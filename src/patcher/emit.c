// SPDX-License-Identifier: MIT
/* emit.c - bytes: one function per instruction shape the translator uses
 *
 * The general form is `modrm_memory`: opcode, register, address.  It picks the shortest
 * displacement, and a SIB byte if the base register demands one. */
#include "patcher/emit.h"

enum {
    REX = 0x40,
    REX_W = 0x48,
};

void tbd_emit_bytes(struct tbd_emit *e, const void *bytes, size_t count)
{
    if (e->overflow || (size_t)(e->end - e->at) < count) {
        e->overflow = true;
        return;
    }
    __builtin_memcpy(e->at, bytes, count);
    e->at += count;
}

void tbd_emit_u8(struct tbd_emit *e, unsigned byte)
{
    uint8_t b = (uint8_t)byte;

    tbd_emit_bytes(e, &b, 1);
}

void tbd_emit_u32(struct tbd_emit *e, uint32_t value)
{
    tbd_emit_bytes(e, &value, 4);
}

void tbd_emit_u64(struct tbd_emit *e, uint64_t value)
{
    tbd_emit_bytes(e, &value, 8);
}

static bool fits32(int64_t v)
{
    return v == (int32_t)v;
}

bool tbd_emit_reaches_rip(const struct tbd_emit *e, uint64_t address)
{
    int64_t distance = (int64_t)(address - tbd_emit_pc(e));

    return fits32(distance - 64) && fits32(distance + 64);
}

bool tbd_emit_reaches(const struct tbd_emit *e, uint64_t address)
{
    return fits32((int64_t)address) || tbd_emit_reaches_rip(e, address);
}

/* ---- the general form ---- */

struct form {
    uint8_t prefix; /* 0x66 or 0 */
    uint8_t rex;    /* REX_W, REX (forced), or 0 */
    uint8_t escape; /* 0x0f or 0 */
    uint8_t opcode;
    uint8_t trailing; /* immediate bytes that follow */
};

static void absolute_memory(struct tbd_emit *e, unsigned reg, int64_t address, unsigned trailing)
{
    if (fits32(address)) {
        tbd_emit_u8(e, (reg & 7) << 3 | 4);
        tbd_emit_u8(e, 0x25);
        tbd_emit_u32(e, (uint32_t)address);
        return;
    }
    tbd_emit_u8(e, (reg & 7) << 3 | 5);
    tbd_emit_u32(e, (uint32_t)((uint64_t)address - (tbd_emit_pc(e) + 4 + trailing)));
}

static void sib_without_base(struct tbd_emit *e, unsigned reg, const struct tbd_ea *ea)
{
    tbd_emit_u8(e, (reg & 7) << 3 | 4);
    tbd_emit_u8(e, (unsigned)__builtin_ctz(ea->scale) << 6 | (ea->index & 7u) << 3 | 5);
    tbd_emit_u32(e, (uint32_t)ea->disp);
}

static void based_memory(struct tbd_emit *e, unsigned reg, const struct tbd_ea *ea)
{
    bool needs_disp = ea->disp != 0 || (ea->base & 7) == 5;
    bool short_disp = ea->disp == (int8_t)ea->disp;
    unsigned mod = !needs_disp ? 0 : short_disp ? 1 : 2;
    bool needs_sib = ea->index != TBD_NO_REG || (ea->base & 7) == 4;

    tbd_emit_u8(e, mod << 6 | (reg & 7) << 3 | (needs_sib ? 4u : ea->base & 7u));
    if (needs_sib) {
        unsigned index = ea->index == TBD_NO_REG ? 4u : ea->index & 7u;

        tbd_emit_u8(e, (unsigned)__builtin_ctz(ea->scale) << 6 | index << 3 | (ea->base & 7u));
    }
    if (mod == 1)
        tbd_emit_u8(e, (uint8_t)ea->disp);
    else if (mod == 2)
        tbd_emit_u32(e, (uint32_t)ea->disp);
}

/* Emits the bytes before ModRM. */
static void put_opcode(struct tbd_emit *e, const struct form *f, unsigned rex)
{
    if (f->prefix)
        tbd_emit_u8(e, f->prefix);
    if (rex)
        tbd_emit_u8(e, rex | REX);
    if (f->escape)
        tbd_emit_u8(e, f->escape);
    tbd_emit_u8(e, f->opcode);
}

static void modrm_memory(struct tbd_emit *e, const struct form *f, unsigned reg,
                         const struct tbd_ea *ea)
{
    unsigned rex = f->rex | (reg >> 3) << 2;

    if (ea->index != TBD_NO_REG)
        rex |= (unsigned)(ea->index >> 3) << 1;
    if (ea->base != TBD_NO_REG)
        rex |= (unsigned)(ea->base >> 3);
    if (ea->fs)
        tbd_emit_u8(e, 0x64);
    if (ea->addr32)
        tbd_emit_u8(e, 0x67);
    put_opcode(e, f, rex);
    if (ea->base != TBD_NO_REG)
        based_memory(e, reg, ea);
    else if (ea->index != TBD_NO_REG)
        sib_without_base(e, reg, ea);
    else
        absolute_memory(e, reg, ea->disp, f->trailing);
}

static void modrm_register(struct tbd_emit *e, const struct form *f, unsigned reg, unsigned rm)
{
    unsigned rex = f->rex | (reg >> 3) << 2 | rm >> 3;

    put_opcode(e, f, rex);
    tbd_emit_u8(e, 0xc0 | (reg & 7) << 3 | (rm & 7));
}

/* ---- thread block ---- */

static const uint8_t adox[] = { 0x0f, 0x38, 0xf6 };

static void gs_memory(struct tbd_emit *e, unsigned opcode, unsigned reg, int32_t disp)
{
    tbd_emit_u8(e, 0x65);
    tbd_emit_u8(e, REX_W | (reg >> 3) << 2);
    tbd_emit_u8(e, opcode);
    tbd_emit_u8(e, (reg & 7) << 3 | 4);
    tbd_emit_u8(e, 0x25);
    tbd_emit_u32(e, (uint32_t)disp);
}

void tbd_emit_load_gs(struct tbd_emit *e, unsigned dst, int32_t disp)
{
    gs_memory(e, 0x8b, dst, disp);
}

void tbd_emit_store_gs(struct tbd_emit *e, unsigned src, int32_t disp)
{
    gs_memory(e, 0x89, src, disp);
}

void tbd_emit_adox_gs(struct tbd_emit *e, unsigned dst, int32_t disp)
{
    tbd_emit_u8(e, 0x65);
    tbd_emit_u8(e, 0xf3);
    tbd_emit_u8(e, REX_W | (dst >> 3) << 2);
    tbd_emit_bytes(e, adox, sizeof(adox));
    tbd_emit_u8(e, (dst & 7) << 3 | 4);
    tbd_emit_u8(e, 0x25);
    tbd_emit_u32(e, (uint32_t)disp);
}

void tbd_emit_adox(struct tbd_emit *e, unsigned dst, unsigned src)
{
    tbd_emit_u8(e, 0xf3);
    tbd_emit_u8(e, REX_W | (dst >> 3) << 2 | src >> 3);
    tbd_emit_bytes(e, adox, sizeof(adox));
    tbd_emit_u8(e, 0xc0 | (dst & 7) << 3 | (src & 7));
}

void tbd_emit_store_gs_imm(struct tbd_emit *e, int32_t disp, uint32_t imm)
{
    static const uint8_t head[] = { 0x65, 0xc7, 0x04, 0x25 };

    tbd_emit_bytes(e, head, sizeof(head));
    tbd_emit_u32(e, (uint32_t)disp);
    tbd_emit_u32(e, imm);
}

/* ---- moves ---- */

void tbd_emit_mov_imm(struct tbd_emit *e, unsigned dst, uint64_t imm)
{
    if (imm <= UINT32_MAX) {
        if (dst >> 3)
            tbd_emit_u8(e, REX | 1);
        tbd_emit_u8(e, 0xb8 | (dst & 7));
        tbd_emit_u32(e, (uint32_t)imm);
        return;
    }
    tbd_emit_u8(e, REX_W | dst >> 3);
    if (fits32((int64_t)imm)) {
        tbd_emit_u8(e, 0xc7);
        tbd_emit_u8(e, 0xc0 | (dst & 7));
        tbd_emit_u32(e, (uint32_t)imm);
        return;
    }
    tbd_emit_u8(e, 0xb8 | (dst & 7));
    tbd_emit_u64(e, imm);
}

void tbd_emit_mov(struct tbd_emit *e, unsigned dst, unsigned src)
{
    modrm_register(e, &(struct form){ .rex = REX_W, .opcode = 0x8b }, dst, src);
}

void tbd_emit_lea(struct tbd_emit *e, unsigned dst, const struct tbd_ea *ea)
{
    struct tbd_ea plain = *ea;

    plain.fs = false;
    modrm_memory(e, &(struct form){ .rex = REX_W, .opcode = 0x8d }, dst, &plain);
}

void tbd_emit_load(struct tbd_emit *e, unsigned dst, const struct tbd_ea *ea, unsigned size)
{
    static const struct form forms[] = {
        [1] = { .escape = 0x0f, .opcode = 0xb6 },
        [2] = { .escape = 0x0f, .opcode = 0xb7 },
        [4] = { .opcode = 0x8b },
        [8] = { .rex = REX_W, .opcode = 0x8b },
    };

    modrm_memory(e, &forms[size], dst, ea);
}

void tbd_emit_store(struct tbd_emit *e, unsigned src, const struct tbd_ea *ea, unsigned size)
{
    struct form f = { .opcode = size == 1 ? 0x88 : 0x89 };

    if (size == 2)
        f.prefix = 0x66;
    if (size == 8)
        f.rex = REX_W;
    if (size == 1 && src >= 4)
        f.rex = REX;
    modrm_memory(e, &f, src, ea);
}

void tbd_emit_store_vector(struct tbd_emit *e, unsigned src, const struct tbd_ea *ea)
{
    modrm_memory(e, &(struct form){ .escape = 0x0f, .opcode = 0x11 }, src, ea);
}

void tbd_emit_movsx(struct tbd_emit *e, unsigned dst, unsigned src, unsigned size)
{
    struct form f = { .rex = REX_W, .opcode = 0x63 };

    if (size == 2)
        f = (struct form){ .rex = REX_W, .escape = 0x0f, .opcode = 0xbf };
    modrm_register(e, &f, dst, src);
}

void tbd_emit_movzx_al(struct tbd_emit *e, unsigned dst)
{
    modrm_register(e, &(struct form){ .escape = 0x0f, .opcode = 0xb6 }, dst, TBD_RAX);
}

void tbd_emit_store_imm32(struct tbd_emit *e, unsigned base, uint32_t imm)
{
    if (base >> 3)
        tbd_emit_u8(e, REX | 1);
    tbd_emit_u8(e, 0xc7);
    tbd_emit_u8(e, base & 7);
    tbd_emit_u32(e, imm);
}

void tbd_emit_store_imm64(struct tbd_emit *e, unsigned base, uint32_t imm)
{
    tbd_emit_u8(e, (uint8_t)(REX | 8 | base >> 3));
    tbd_emit_u8(e, 0xc7);
    tbd_emit_u8(e, base & 7);
    tbd_emit_u32(e, imm);
}

/* ---- shifts without flags ---- */

static void vex3(struct tbd_emit *e, unsigned map, unsigned pp, unsigned reg, unsigned vvvv,
                 unsigned rm)
{
    tbd_emit_u8(e, 0xc4);
    tbd_emit_u8(e, (~reg & 8) << 4 | 0x40 | (~rm & 8) << 2 | map);
    tbd_emit_u8(e, 0x80 | (~vvvv & 15) << 3 | pp);
}

void tbd_emit_rorx(struct tbd_emit *e, unsigned dst, unsigned src, unsigned count)
{
    vex3(e, 3, 3, dst, 0, src);
    tbd_emit_u8(e, 0xf0);
    tbd_emit_u8(e, 0xc0 | (dst & 7) << 3 | (src & 7));
    tbd_emit_u8(e, count);
}

void tbd_emit_sarx(struct tbd_emit *e, unsigned dst, unsigned src, unsigned count_reg)
{
    vex3(e, 2, 2, dst, count_reg, src);
    tbd_emit_u8(e, 0xf7);
    tbd_emit_u8(e, 0xc0 | (dst & 7) << 3 | (src & 7));
}

static void bits(struct tbd_emit *e, unsigned pp, unsigned dst, unsigned src, unsigned mask)
{
    vex3(e, 2, pp, dst, src, mask);
    tbd_emit_u8(e, 0xf5);
    tbd_emit_u8(e, 0xc0 | (dst & 7) << 3 | (mask & 7));
}

void tbd_emit_pext(struct tbd_emit *e, unsigned dst, unsigned src, unsigned mask)
{
    bits(e, 2, dst, src, mask);
}

void tbd_emit_pdep(struct tbd_emit *e, unsigned dst, unsigned src, unsigned mask)
{
    bits(e, 3, dst, src, mask);
}

void tbd_emit_mulx(struct tbd_emit *e, unsigned high, unsigned low, unsigned src)
{
    vex3(e, 2, 3, high, low, src);
    tbd_emit_u8(e, 0xf6);
    tbd_emit_u8(e, 0xc0 | (high & 7) << 3 | (src & 7));
}

void tbd_emit_not(struct tbd_emit *e, unsigned reg)
{
    modrm_register(e, &(struct form){ .rex = REX_W, .opcode = 0xf7 }, 2, reg);
}

/* ---- touch map ---- */

/* [cell + cell * 1]: no 32-bit displacement, unlike [cell * 2]. */
void tbd_emit_mark(struct tbd_emit *e, unsigned cell, unsigned which)
{
    struct tbd_ea ea = {
        .disp = which, .base = (uint8_t)cell, .index = (uint8_t)cell, .scale = 1, .addr32 = true
    };

    tbd_emit_u8(e, 0x65);
    modrm_memory(e, &(struct form){ .opcode = 0xc6, .trailing = 1 }, 0, &ea);
    tbd_emit_u8(e, 1);
}

void tbd_emit_mark_at(struct tbd_emit *e, uint32_t offset)
{
    static const uint8_t head[] = { 0x65, 0x67, 0xc6, 0x04, 0x25 };

    tbd_emit_bytes(e, head, sizeof(head));
    tbd_emit_u32(e, offset);
    tbd_emit_u8(e, 1);
}

/* ---- stack ---- */

void tbd_emit_push(struct tbd_emit *e, unsigned reg)
{
    if (reg >> 3)
        tbd_emit_u8(e, REX | 1);
    tbd_emit_u8(e, 0x50 | (reg & 7));
}

void tbd_emit_push_imm(struct tbd_emit *e, int32_t imm)
{
    tbd_emit_u8(e, 0x68);
    tbd_emit_u32(e, (uint32_t)imm);
}

void tbd_emit_pop(struct tbd_emit *e, unsigned reg)
{
    if (reg >> 3)
        tbd_emit_u8(e, REX | 1);
    tbd_emit_u8(e, 0x58 | (reg & 7));
}

/* ---- jumps ---- */

static uint8_t *rel32(struct tbd_emit *e, uint64_t target)
{
    uint8_t *at = e->at;

    tbd_emit_u32(e, (uint32_t)(target - (tbd_emit_pc(e) + 4)));
    return at;
}

void tbd_emit_nop(struct tbd_emit *e, unsigned count)
{
    static const uint8_t nops[][TBD_EMIT_NOP_MOST] = { { 0x90 },
                                                       { 0x66, 0x90 },
                                                       { 0x0f, 0x1f, 0x00 } };

    if (count)
        tbd_emit_bytes(e, nops[count - 1], count);
}

/* A nop goes before it if the displacement would straddle a line. */
static void keep_in_line(struct tbd_emit *e, unsigned opcode_bytes)
{
    unsigned at = (tbd_emit_pc(e) + opcode_bytes) & 63;

    if (at > 60)
        tbd_emit_nop(e, 64 - at);
}

uint8_t *tbd_emit_jmp(struct tbd_emit *e, uint64_t target)
{
    keep_in_line(e, 1);
    tbd_emit_u8(e, 0xe9);
    return rel32(e, target);
}

uint8_t *tbd_emit_jcc(struct tbd_emit *e, unsigned condition, uint64_t target)
{
    keep_in_line(e, TBD_JCC_OPCODE_BYTES);
    tbd_emit_u8(e, 0x0f);
    tbd_emit_u8(e, 0x80 | condition);
    return rel32(e, target);
}

void tbd_emit_land8(const struct tbd_emit *e, uint8_t *disp8)
{
    if (!e->overflow)
        *disp8 = (uint8_t)(e->at - (disp8 + 1));
}

void tbd_emit_jmp_far(struct tbd_emit *e, uint64_t target)
{
    static const uint8_t head[] = { 0xff, 0x25, 0, 0, 0, 0 };

    tbd_emit_bytes(e, head, sizeof(head));
    tbd_emit_u64(e, target);
}
