// SPDX-License-Identifier: MIT
/* remote_registers.c - see remote_registers.h
 *
 * Offsets in the XSAVE image are those of the Intel SDM, volume 1, 13.4. */
#include "query/remote/remote_registers.h"

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
    YMM_HIGH_AT = 576, /* its place in the standard format, on every processor */
    AVX_BYTES = 832,
    XCR0_AVX = 4
};

enum source { GPR, RIP, RFLAGS, SEGMENT, ST, X87, X87_TAGS, XMM, MXCSR, NO_CALL, BASE, YMM_HIGH };

/* Consecutive registers of one kind. */
struct rows {
    const char *feature; /* NULL: that of the row before */
    const char *type;
    enum source source;
    uint16_t bits;
    uint8_t count;
    struct {
        const char *name; /* has a %u if there are many */
        uint32_t at;      /* number, value, or offset, as the source wants it */
    } each[16];
};

// clang-format off
static const struct rows table[] = {
    { "org.gnu.gdb.i386.core", "int64", GPR, 64, 6,
      { { "rax", TBD_RAX }, { "rbx", TBD_RBX }, { "rcx", TBD_RCX }, { "rdx", TBD_RDX }, { "rsi", TBD_RSI }, { "rdi", TBD_RDI } } },
    { NULL, "data_ptr", GPR, 64, 2, { { "rbp", TBD_RBP }, { "rsp", TBD_RSP } } },
    { NULL, "int64", GPR, 64, 8,
      { { "r8", TBD_R8 }, { "r9", TBD_R9 }, { "r10", TBD_R10 }, { "r11", TBD_R11 },
        { "r12", TBD_R12 }, { "r13", TBD_R13 }, { "r14", TBD_R14 }, { "r15", TBD_R15 } } },
    { NULL, "code_ptr", RIP, 64, 1, { { "rip", 0 } } },
    { NULL, "i386_eflags", RFLAGS, 32, 1, { { "eflags", 0 } } },
    { NULL, "int32", SEGMENT, 32, 6,
      { { "cs", 0x33 }, { "ss", 0x2b }, { "ds", 0 }, { "es", 0 }, { "fs", 0 }, { "gs", 0 } } },
    { NULL, "i387_ext", ST, 80, 8, { { "st%u", 0 } } },
    { NULL, "int", X87, 32, 2, { { "fctrl", FCW_AT }, { "fstat", FSW_AT } } },
    { NULL, "int", X87_TAGS, 32, 1, { { "ftag", 0 } } },
    { NULL, "int", X87, 32, 5,
      { { "fiseg", FIP_AT + 4 }, { "fioff", FIP_AT }, { "foseg", FDP_AT + 4 }, { "fooff", FDP_AT }, { "fop", FOP_AT } } },
    { "org.gnu.gdb.i386.sse", "vec128", XMM, 128, 16, { { "xmm%u", XMM_AT } } },
    { NULL, "i386_mxcsr", MXCSR, 32, 1, { { "mxcsr", 0 } } },
    { "org.gnu.gdb.i386.linux", "int", NO_CALL, 64, 1, { { "orig_rax", 0 } } },
    { "org.gnu.gdb.i386.segments", "int", BASE, 64, 2,
      { { "fs_base", offsetof(struct tbd_regs, fs_base) }, { "gs_base", offsetof(struct tbd_regs, gs_base) } } },
    { "org.gnu.gdb.i386.avx", "uint128", YMM_HIGH, 128, 16, { { "ymm%uh", YMM_HIGH_AT } } },
};

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
      "<vector id=\"v4f\" type=\"ieee_single\" count=\"4\"/><vector id=\"v2d\" type=\"ieee_double\" count=\"2\"/>"
      "<vector id=\"v16i8\" type=\"int8\" count=\"16\"/><vector id=\"v8i16\" type=\"int16\" count=\"8\"/>"
      "<vector id=\"v4i32\" type=\"int32\" count=\"4\"/><vector id=\"v2i64\" type=\"int64\" count=\"2\"/>"
      "<union id=\"vec128\"><field name=\"v4_float\" type=\"v4f\"/><field name=\"v2_double\" type=\"v2d\"/>"
      "<field name=\"v16_int8\" type=\"v16i8\"/><field name=\"v8_int16\" type=\"v8i16\"/><field name=\"v4_int32\" type=\"v4i32\"/>"
      "<field name=\"v2_int64\" type=\"v2i64\"/><field name=\"uint128\" type=\"uint128\"/></union>"
      "<flags id=\"i386_mxcsr\" size=\"4\">"
      "<field name=\"IE\" start=\"0\" end=\"0\"/><field name=\"DE\" start=\"1\" end=\"1\"/><field name=\"ZE\" start=\"2\" end=\"2\"/>"
      "<field name=\"OE\" start=\"3\" end=\"3\"/><field name=\"UE\" start=\"4\" end=\"4\"/><field name=\"PE\" start=\"5\" end=\"5\"/>"
      "<field name=\"DAZ\" start=\"6\" end=\"6\"/><field name=\"IM\" start=\"7\" end=\"7\"/><field name=\"DM\" start=\"8\" end=\"8\"/>"
      "<field name=\"ZM\" start=\"9\" end=\"9\"/><field name=\"OM\" start=\"10\" end=\"10\"/><field name=\"UM\" start=\"11\" end=\"11\"/>"
      "<field name=\"PM\" start=\"12\" end=\"12\"/><field name=\"FZ\" start=\"15\" end=\"15\"/></flags>" },
};
// clang-format on

#define ROWS (sizeof(table) / sizeof(table[0]))

static bool has_avx(const struct tbd_trace_info *info)
{
    return (info->xcr0 & XCR0_AVX) != 0 && info->xsave_bytes >= AVX_BYTES;
}

static bool is_left_out(const struct tbd_trace_info *info, const struct rows *rows)
{
    return rows->source == YMM_HIGH && !has_avx(info);
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
            fprintf(out, "%u%s", i, mark + 2);
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
    for (size_t i = 0; i < ROWS && !is_left_out(info, &table[i]); i++) {
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

static void put_value(const struct rows *rows, unsigned i, const struct tbd_reg_state *state,
                      struct tbd_reply *reply)
{
    const uint8_t *image = state->xsave;
    uint64_t value = 0;
    uint32_t at = rows->each[i].at;

    switch (rows->source) {
    case ST: tbd_reply_hex(reply, image + ST_AT + (size_t)(i * ST_STRIDE), X87_BYTES); return;
    case XMM:
    case YMM_HIGH:
        tbd_reply_hex(reply, image + rows->each[0].at + (size_t)(i * XMM_BYTES), XMM_BYTES);
        return;
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
    for (size_t i = 0; i < ROWS && !is_left_out(info, &table[i]); i++)
        for (unsigned k = 0; k < table[i].count; k++)
            put_value(&table[i], k, state, reply);
}

bool tbd_remote_register(const struct tbd_trace_info *info, const struct tbd_reg_state *state,
                         uint64_t number, struct tbd_reply *reply)
{
    for (size_t i = 0; i < ROWS && !is_left_out(info, &table[i]); i++) {
        if (number < table[i].count) {
            put_value(&table[i], (unsigned)number, state, reply);
            return true;
        }
        number -= table[i].count;
    }
    return false;
}
