// SPDX-License-Identifier: MIT
/* remote_registers.c - see remote_registers.h
 *
 * Offsets in the XSAVE image are those of the Intel SDM, volume 1, 13.4. */
#include "query/remote/remote_registers.h"

#include "base/vector_layout.h"
#include "format/trace/trace.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    X87_BYTES = 10,
    XMM_BYTES = 16,
    FCW_AT = 0,
    FSW_AT = 2,
    FTW_AT = 4, /* a bit a register: not empty */
    FOP_AT = 6,
    FIP_AT = 8,
    FDP_AT = 16,
    MXCSR_AT = 24,
    ST_AT = 32,
    ST_STRIDE = 16,
    XMM_AT = 160,
    IN_USE_AT = 512, /* the components that are not as after a reset */
};

/* VECTOR: in component `part` of the image, whose place depends on the processor that recorded. */
enum source { GPR, RIP, RFLAGS, SEGMENT, ST, X87, X87_TAGS, XMM, MXCSR, NO_CALL, BASE, VECTOR };

/* Consecutive registers of one kind. */
struct rows {
    const char *feature; /* NULL: that of the row before */
    const char *type;
    enum source source;
    uint16_t bits;
    uint8_t count;
    struct {
        uint8_t part, stride; /* VECTOR: component, bytes from one register to the next */
        uint8_t first;        /* number of the first in the name */
    } vector;
    struct {
        const char *name; /* has a %u if there are many */
        uint32_t at;      /* number, value, or offset, as the source wants it */
    } each[16];
};

// clang-format off
static const struct rows table[] = {
    { "org.gnu.gdb.i386.core", "int64", GPR, 64, 6, { 0 },
      { { "rax", TBD_RAX }, { "rbx", TBD_RBX }, { "rcx", TBD_RCX }, { "rdx", TBD_RDX }, { "rsi", TBD_RSI }, { "rdi", TBD_RDI } } },
    { NULL, "data_ptr", GPR, 64, 2, { 0 }, { { "rbp", TBD_RBP }, { "rsp", TBD_RSP } } },
    { NULL, "int64", GPR, 64, 8, { 0 },
      { { "r8", TBD_R8 }, { "r9", TBD_R9 }, { "r10", TBD_R10 }, { "r11", TBD_R11 },
        { "r12", TBD_R12 }, { "r13", TBD_R13 }, { "r14", TBD_R14 }, { "r15", TBD_R15 } } },
    { NULL, "code_ptr", RIP, 64, 1, { 0 }, { { "rip", 0 } } },
    { NULL, "i386_eflags", RFLAGS, 32, 1, { 0 }, { { "eflags", 0 } } },
    { NULL, "int32", SEGMENT, 32, 6, { 0 },
      { { "cs", 0x33 }, { "ss", 0x2b }, { "ds", 0 }, { "es", 0 }, { "fs", 0 }, { "gs", 0 } } },
    { NULL, "i387_ext", ST, 80, 8, { 0 }, { { "st%u", 0 } } },
    { NULL, "int", X87, 32, 2, { 0 }, { { "fctrl", FCW_AT }, { "fstat", FSW_AT } } },
    { NULL, "int", X87_TAGS, 32, 1, { 0 }, { { "ftag", 0 } } },
    { NULL, "int", X87, 32, 5, { 0 },
      { { "fiseg", FIP_AT + 4 }, { "fioff", FIP_AT }, { "foseg", FDP_AT + 4 }, { "fooff", FDP_AT }, { "fop", FOP_AT } } },
    { "org.gnu.gdb.i386.sse", "vec128", XMM, 128, 16, { 0 }, { { "xmm%u", XMM_AT } } },
    { NULL, "i386_mxcsr", MXCSR, 32, 1, { 0 }, { { "mxcsr", 0 } } },
    { "org.gnu.gdb.i386.linux", "int", NO_CALL, 64, 1, { 0 }, { { "orig_rax", 0 } } },
    { "org.gnu.gdb.i386.segments", "int", BASE, 64, 2, { 0 },
      { { "fs_base", offsetof(struct tbd_regs, fs_base) }, { "gs_base", offsetof(struct tbd_regs, gs_base) } } },
    { "org.gnu.gdb.i386.avx", "uint128", VECTOR, 128, 16, { TBD_VECTOR_YMM, 16, 0 }, { { "ymm%uh", 0 } } },
    { "org.gnu.gdb.i386.avx512", "vec128", VECTOR, 128, 16, { TBD_VECTOR_HIGH, 64, 16 }, { { "xmm%u", 0 } } },
    { NULL, "uint128", VECTOR, 128, 16, { TBD_VECTOR_HIGH, 64, 16 }, { { "ymm%uh", 16 } } },
    { NULL, "uint64", VECTOR, 64, 8, { TBD_VECTOR_MASKS, 8, 0 }, { { "k%u", 0 } } },
    { NULL, "v2ui128", VECTOR, 256, 16, { TBD_VECTOR_ZMM, 32, 0 }, { { "zmm%uh", 0 } } },
    { NULL, "v2ui128", VECTOR, 256, 16, { TBD_VECTOR_HIGH, 64, 16 }, { { "zmm%uh", 32 } } },
};

/* Types of a feature, and of another that has them again: features do not see each other's. */
#define VECTORS \
      "<vector id=\"v4f\" type=\"ieee_single\" count=\"4\"/><vector id=\"v2d\" type=\"ieee_double\" count=\"2\"/>" \
      "<vector id=\"v16i8\" type=\"int8\" count=\"16\"/><vector id=\"v8i16\" type=\"int16\" count=\"8\"/>" \
      "<vector id=\"v4i32\" type=\"int32\" count=\"4\"/><vector id=\"v2i64\" type=\"int64\" count=\"2\"/>" \
      "<union id=\"vec128\"><field name=\"v4_float\" type=\"v4f\"/><field name=\"v2_double\" type=\"v2d\"/>" \
      "<field name=\"v16_int8\" type=\"v16i8\"/><field name=\"v8_int16\" type=\"v8i16\"/><field name=\"v4_int32\" type=\"v4i32\"/>" \
      "<field name=\"v2_int64\" type=\"v2i64\"/><field name=\"uint128\" type=\"uint128\"/></union>"

/* Types that a feature's registers have, and that the protocol does not predefine. */
static const struct {
    const char *feature, *types;
} types[] = {
    { "org.gnu.gdb.i386.core",
      "<flags id=\"i386_eflags\" size=\"4\">"
      "<field name=\"CF\" start=\"0\" end=\"0\"/><field name=\"\" start=\"1\" end=\"1\"/><field name=\"PF\" start=\"2\" end=\"2\"/>"
      "<field name=\"AF\" start=\"4\" end=\"4\"/><field name=\"ZF\" start=\"6\" end=\"6\"/><field name=\"SF\" start=\"7\" end=\"7\"/>"
      "<field name=\"TF\" start=\"8\" end=\"8\"/><field name=\"IF\" start=\"9\" end=\"9\"/><field name=\"DF\" start=\"10\" end=\"10\"/>"
      "<field name=\"OF\" start=\"11\" end=\"11\"/><field name=\"NT\" start=\"14\" end=\"14\"/><field name=\"RF\" start=\"16\" end=\"16\"/>"
      "<field name=\"VM\" start=\"17\" end=\"17\"/><field name=\"AC\" start=\"18\" end=\"18\"/><field name=\"VIF\" start=\"19\" end=\"19\"/>"
      "<field name=\"VIP\" start=\"20\" end=\"20\"/><field name=\"ID\" start=\"21\" end=\"21\"/></flags>" },
    { "org.gnu.gdb.i386.sse",
      VECTORS
      "<flags id=\"i386_mxcsr\" size=\"4\">"
      "<field name=\"IE\" start=\"0\" end=\"0\"/><field name=\"DE\" start=\"1\" end=\"1\"/><field name=\"ZE\" start=\"2\" end=\"2\"/>"
      "<field name=\"OE\" start=\"3\" end=\"3\"/><field name=\"UE\" start=\"4\" end=\"4\"/><field name=\"PE\" start=\"5\" end=\"5\"/>"
      "<field name=\"DAZ\" start=\"6\" end=\"6\"/><field name=\"IM\" start=\"7\" end=\"7\"/><field name=\"DM\" start=\"8\" end=\"8\"/>"
      "<field name=\"ZM\" start=\"9\" end=\"9\"/><field name=\"OM\" start=\"10\" end=\"10\"/><field name=\"UM\" start=\"11\" end=\"11\"/>"
      "<field name=\"PM\" start=\"12\" end=\"12\"/><field name=\"FZ\" start=\"15\" end=\"15\"/></flags>" },
    { "org.gnu.gdb.i386.avx512", VECTORS "<vector id=\"v2ui128\" type=\"uint128\" count=\"2\"/>" },
};
// clang-format on

#define ROWS (sizeof(table) / sizeof(table[0]))

/* Does this trace not have them?  AVX-512 has three components, and gdb knows all of its registers or none. */
static bool is_left_out(const struct tbd_trace_info *info, const struct rows *rows)
{
    uint64_t wanted = rows->vector.part == TBD_VECTOR_YMM
                          ? 1ull << TBD_VECTOR_YMM
                          : 1ull << TBD_VECTOR_YMM | TBD_VECTOR_AVX512;
    struct tbd_vector_layout layout;

    return rows->source == VECTOR &&
           ((info->xcr0 & wanted) != wanted ||
            !tbd_vector_layout_find(info->xcr0, info->xsave_bytes, &layout));
}

/* Where the register of row and number is in an image.  0: not there. */
static uint32_t vector_at(const struct tbd_trace_info *info, const struct rows *rows, unsigned i)
{
    struct tbd_vector_layout layout;

    if (!tbd_vector_layout_find(info->xcr0, info->xsave_bytes, &layout))
        return 0;
    return layout.offset[rows->vector.part] + rows->each[0].at + i * rows->vector.stride;
}

/* ---- description ---- */

static void describe(const struct rows *rows, FILE *out)
{
    for (unsigned i = 0; i < rows->count; i++) {
        bool is_one_name = strchr(rows->each[0].name, '%') != NULL;
        const char *name = rows->each[is_one_name ? 0 : i].name;
        const char *mark = strchr(name, '%');

        fprintf(out, "<reg name=\"%.*s", mark == NULL ? (int)strlen(name) : (int)(mark - name),
                name);
        if (mark != NULL)
            fprintf(out, "%u%s", i + rows->vector.first, mark + 2);
        fprintf(out, "\" bitsize=\"%u\" type=\"%s\"/>", rows->bits, rows->type);
    }
}

char *tbd_remote_description(const struct tbd_trace_info *info)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    if (out == NULL)
        return NULL;
    fprintf(out, "<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\"><target>"
                 "<architecture>i386:x86-64</architecture><osabi>GNU/Linux</osabi>");
    for (size_t i = 0; i < ROWS; i++) {
        if (is_left_out(info, &table[i]))
            continue;
        if (table[i].feature != NULL)
            fprintf(out, "%s<feature name=\"%s\">", i == 0 ? "" : "</feature>", table[i].feature);
        for (size_t t = 0; table[i].feature != NULL && t < sizeof(types) / sizeof(types[0]); t++) {
            if (strcmp(types[t].feature, table[i].feature) == 0)
                fprintf(out, "%s", types[t].types);
        }
        describe(&table[i], out);
    }
    fprintf(out, "</feature></target>");
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

/* ---- values ---- */

/* The tags of the x87 registers in the form of fnstenv: 0 valid, 1 zero, 2 special, 3 empty, for each
 * physical register; the image has a bit for each, and the registers from the top on. */
static uint32_t full_tags(const uint8_t *image)
{
    unsigned top = image[FSW_AT + 1] >> 3 & 7;
    uint32_t tags = 0;

    for (unsigned physical = 0; physical < 8; physical++) {
        const uint8_t *st = image + ST_AT + (size_t)(((physical + 8 - top) & 7) * ST_STRIDE);
        unsigned exponent = (st[8] | (unsigned)st[9] << 8) & 0x7fff;
        uint64_t mantissa;
        uint32_t tag = 0;

        memcpy(&mantissa, st, sizeof(mantissa));
        if ((image[FTW_AT] >> physical & 1) == 0)
            tag = 3;
        else if (exponent == 0 && mantissa == 0)
            tag = 1;
        else if (exponent == 0x7fff || exponent == 0 || mantissa >> 63 == 0)
            tag = 2;
        tags |= tag << (2 * physical);
    }
    return tags;
}

static uint32_t x87_field(const uint8_t *image, uint32_t at)
{
    uint32_t value = 0;

    memcpy(&value, image + at, at == FIP_AT || at == FDP_AT ? 4 : 2);
    return at == FOP_AT ? value & 0x7ff : value;
}

/* A vector register; components that are as after a reset are zero. */
static void put_vector(const struct tbd_trace_info *info, const struct rows *rows, unsigned i,
                       const struct tbd_reg_state *state, struct tbd_reply *reply)
{
    static const uint8_t zero[64];
    uint32_t at = vector_at(info, rows, i);
    uint64_t in_use;

    memcpy(&in_use, state->xsave + IN_USE_AT, sizeof(in_use));
    tbd_reply_hex(reply,
                  at == 0 || at + rows->bits / 8 > sizeof(state->xsave) ||
                          (in_use >> rows->vector.part & 1) == 0
                      ? zero
                      : state->xsave + at,
                  rows->bits / 8);
}

static void put_value(const struct tbd_trace_info *info, const struct rows *rows, unsigned i,
                      const struct tbd_reg_state *state, struct tbd_reply *reply)
{
    const uint8_t *image = state->xsave;
    uint64_t value = 0;
    uint32_t at = rows->each[i].at;

    switch (rows->source) {
    case ST: tbd_reply_hex(reply, image + ST_AT + (size_t)(i * ST_STRIDE), X87_BYTES); return;
    case XMM: tbd_reply_hex(reply, image + XMM_AT + (size_t)(i * XMM_BYTES), XMM_BYTES); return;
    case VECTOR: put_vector(info, rows, i, state, reply); return;
    case GPR: value = state->regs.gpr[at]; break;
    case RIP: value = state->regs.rip; break;
    case RFLAGS: value = state->regs.rflags; break;
    case SEGMENT: value = at; break;
    case X87: value = x87_field(image, at); break;
    case X87_TAGS: value = full_tags(image); break;
    case MXCSR: memcpy(&value, image + MXCSR_AT, 4); break;
    case NO_CALL: /* the program is not in a system call that the kernel would restart */
        value = UINT64_MAX;
        break;
    case BASE: memcpy(&value, (const uint8_t *)&state->regs + at, sizeof(value)); break;
    }
    tbd_reply_hex(reply, &value, rows->bits / 8);
}

void tbd_remote_registers(const struct tbd_trace_info *info, const struct tbd_reg_state *state,
                          struct tbd_reply *reply)
{
    for (size_t i = 0; i < ROWS; i++)
        for (unsigned k = 0; k < table[i].count && !is_left_out(info, &table[i]); k++)
            put_value(info, &table[i], k, state, reply);
}

/* The row of register `number`, whose place in it is *out_place; NULL: there is none. */
static const struct rows *find_row(const struct tbd_trace_info *info, uint64_t number,
                                   unsigned *out_place)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (is_left_out(info, &table[i]))
            continue;
        if (number < table[i].count) {
            *out_place = (unsigned)number;
            return &table[i];
        }
        number -= table[i].count;
    }
    return NULL;
}

bool tbd_remote_register(const struct tbd_trace_info *info, const struct tbd_reg_state *state,
                         uint64_t number, struct tbd_reply *reply)
{
    unsigned place;
    const struct rows *rows = find_row(info, number, &place);

    if (rows != NULL)
        put_value(info, rows, place, state, reply);
    return rows != NULL;
}

/* ---- the same the other way ---- */

/* Bytes of the x87 state and of segments are not taken: calls do not set them. */
static void take_value(const struct tbd_trace_info *info, const struct rows *rows, unsigned i,
                       const uint8_t *bytes, struct tbd_reg_state *state)
{
    uint32_t at = rows->source == VECTOR ? vector_at(info, rows, i) : rows->each[i].at;
    uint64_t in_use, value = 0;

    if (rows->bits <= 64)
        memcpy(&value, bytes, rows->bits / 8);
    switch (rows->source) {
    case GPR: state->regs.gpr[at] = value; break;
    case RIP: state->regs.rip = value; break;
    case RFLAGS: state->regs.rflags = value; break;
    case BASE: memcpy((uint8_t *)&state->regs + at, &value, sizeof(value)); break;
    case MXCSR: memcpy(state->xsave + MXCSR_AT, &value, 4); break;
    case ST: memcpy(state->xsave + ST_AT + (size_t)(i * ST_STRIDE), bytes, X87_BYTES); break;
    case XMM: memcpy(state->xsave + XMM_AT + (size_t)(i * XMM_BYTES), bytes, XMM_BYTES); break;
    case VECTOR:
        if (at == 0 || at + rows->bits / 8 > sizeof(state->xsave))
            break;
        memcpy(state->xsave + at, bytes, rows->bits / 8);
        memcpy(&in_use, state->xsave + IN_USE_AT, sizeof(in_use));
        in_use |= 1ull << rows->vector.part;
        memcpy(state->xsave + IN_USE_AT, &in_use, sizeof(in_use));
        break;
    case SEGMENT:
    case X87:
    case X87_TAGS:
    case NO_CALL: break;
    }
}

bool tbd_remote_take_register(const struct tbd_trace_info *info, const char *text, uint64_t number,
                              struct tbd_reg_state *state)
{
    unsigned place;
    const struct rows *rows = find_row(info, number, &place);
    uint8_t bytes[64];

    if (rows == NULL || !tbd_remote_hex(&text, bytes, rows->bits / 8) || *text != '\0')
        return false;
    take_value(info, rows, place, bytes, state);
    return true;
}

bool tbd_remote_take_registers(const struct tbd_trace_info *info, const char *text,
                               struct tbd_reg_state *state)
{
    uint8_t bytes[64];

    for (size_t i = 0; i < ROWS; i++)
        for (unsigned k = 0; k < table[i].count && !is_left_out(info, &table[i]); k++) {
            if (!tbd_remote_hex(&text, bytes, table[i].bits / 8))
                return false;
            take_value(info, &table[i], k, bytes, state);
        }
    return *text == '\0';
}
