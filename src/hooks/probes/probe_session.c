// SPDX-License-Identifier: MIT
/* probe_session.c - see probe_session.h: checks what a consumer has sent */
#include "hooks/probes/probe_session.h"

struct tbd_probe_session tbd_probe_session;

static bool is_width(unsigned b, unsigned largest)
{
    unsigned bytes = b & 15;

    return (b & ~31u) == 0 && (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) &&
           bytes <= largest;
}

static bool is_text(int32_t bytes)
{
    return bytes > 0 && bytes <= (int32_t)TBD_PROBE_TEXT_BYTES && bytes % 8 == 0;
}

static bool is_right(const struct tbd_probe_insn *insn, uint32_t left, uint32_t map_count)
{
    if (insn->d >= TBD_PROBE_REGISTERS || insn->a >= TBD_PROBE_REGISTERS)
        return false;
    switch (insn->op) {
    case TBD_PROBE_LOAD: return is_width(insn->b, 8);
    case TBD_PROBE_EXTEND: return is_width(insn->b, 4);
    case TBD_PROBE_REG: return insn->imm >= 0 && insn->imm <= 17;
    case TBD_PROBE_SKIP:
    case TBD_PROBE_SKIP_ZERO: return insn->imm >= 0 && (uint32_t)insn->imm < left;
    case TBD_PROBE_PUT: return insn->imm >= 0 && (uint32_t)insn->imm < map_count;
    case TBD_PROBE_KEY_TEXT:
    case TBD_PROBE_FIELD_TEXT: return is_text(insn->imm);
    case TBD_PROBE_KEY_STACK:
    case TBD_PROBE_FIELD_STACK: return insn->imm > 0 && insn->imm <= (int32_t)TBD_PROBE_FRAMES;
    case TBD_PROBE_RECORD: return insn->imm > 0;
    case TBD_PROBE_REAL:
        return insn->imm >= 0 && insn->imm < TBD_PROBE_REAL_OPS && insn->b < TBD_PROBE_REGISTERS;
    case TBD_PROBE_TO_REAL: return insn->imm >= 0 && insn->imm < TBD_PROBE_REAL_KINDS;
    case TBD_PROBE_VECTOR: return insn->imm >= 0 && insn->imm < TBD_PROBE_VECTORS && insn->b < 2;
    default: break;
    }
    return insn->op >= TBD_PROBE_END && insn->op < TBD_PROBE_OPS && insn->b < TBD_PROBE_REGISTERS;
}

uint32_t tbd_probe_check_code(const struct tbd_probe_insn *code, uint32_t count,
                              const struct tbd_probe_map *maps, uint32_t map_count)
{
    (void)maps;
    if (!count || code[count - 1].op != TBD_PROBE_END)
        return 0;
    for (uint32_t i = 0; i < count; i++)
        if (!is_right(&code[i], count - 1 - i, map_count))
            return i;
    return count;
}

static bool is_right_map(const struct tbd_probe_map *map)
{
    bool is_power = map->capacity && !(map->capacity & (map->capacity - 1));

    if (!map->kind || map->kind >= TBD_PROBE_KINDS || map->key_bytes > TBD_PROBE_KEY_BYTES ||
        map->key_bytes % 8 || !is_power || map->capacity > 1u << 16)
        return false;
    return map->kind != TBD_PROBE_LHIST ||
           (map->steps && map->steps <= TBD_PROBE_LHIST_STEPS && map->width);
}

bool tbd_probe_check_maps(const struct tbd_probe_map *maps, uint32_t count)
{
    if (count > TBD_PROBE_MAX_MAPS)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (!is_right_map(&maps[i]))
            return false;
    return true;
}
