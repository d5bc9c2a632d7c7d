// SPDX-License-Identifier: MIT
/* caller_rule.c - see caller_rule.h
 *
 *     .eh_frame_hdr   sorted: where each function begins, and its FDE
 *     FDE             the function's range, and instructions that change the rule on the way to pc
 *     CIE             of many FDEs: encodings, factors, and the rule at a function's entry
 *
 * The table is hostile: each loop is bounded by its bytes, or by the bits of a number. */
#include "base/caller_rule.h"

#include "base/string.h"

#define WINDOW_BYTES   64u
#define MAX_ENTRY      65536u /* bytes of a CIE or FDE */
#define MAX_FUNCTIONS  (1u << 22)
#define MAX_REMEMBERED 4u
#define RETURN_COLUMN  16u

#define POINTER_RELATIVE_4 0x1bu /* DW_EH_PE_pcrel | DW_EH_PE_sdata4 */
#define COUNT_4            0x03u /* DW_EH_PE_udata4 */
#define SORTED_4           0x3bu /* DW_EH_PE_datarel | DW_EH_PE_sdata4 */

/* Bytes of the table from `at` on; `is_wrong` once something was not there. */
struct table_bytes {
    const struct tbd_table_reader *reader;
    uint64_t at;
    uint64_t end;
    uint64_t window_at;
    uint32_t window_count;
    bool is_wrong;
    uint8_t window[WINDOW_BYTES];
};

/* ---- numbers ---- */

static void begin_bytes(struct table_bytes *bytes, const struct tbd_table_reader *reader,
                        uint64_t at, uint64_t end)
{
    bytes->reader = reader;
    bytes->at = at;
    bytes->end = end;
    bytes->window_count = 0;
    bytes->is_wrong = end < at;
}

static bool load_window(struct table_bytes *bytes)
{
    uint64_t left = bytes->end - bytes->at;
    uint32_t count = left < WINDOW_BYTES ? (uint32_t)left : WINDOW_BYTES;

    bytes->window_at = bytes->at;
    bytes->window_count = 0;
    if (!count || !bytes->reader->read(bytes->reader->context, bytes->at, bytes->window, count))
        return false;
    bytes->window_count = count;
    return true;
}

static uint8_t take_byte(struct table_bytes *bytes)
{
    if (bytes->is_wrong)
        return 0;
    if (bytes->at - bytes->window_at >= bytes->window_count && !load_window(bytes)) {
        bytes->is_wrong = true;
        return 0;
    }
    return bytes->window[bytes->at++ - bytes->window_at];
}

static uint64_t take_fixed(struct table_bytes *bytes, unsigned count)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < count; i++)
        value |= (uint64_t)take_byte(bytes) << (8 * i);
    return value;
}

/* LEB128.  What does not fit into 63 bits is wrong. */
static uint64_t take_bits(struct table_bytes *bytes, unsigned *out_shift, uint8_t *out_last)
{
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;

    do {
        byte = take_byte(bytes);
        bytes->is_wrong |= shift > 56;
        if (bytes->is_wrong)
            return 0;
        value |= (uint64_t)(byte & 127) << shift;
        shift += 7;
    } while (byte & 128);
    *out_shift = shift;
    *out_last = byte;
    return value;
}

static uint64_t take_unsigned(struct table_bytes *bytes)
{
    unsigned shift;
    uint8_t last;

    return take_bits(bytes, &shift, &last);
}

static int64_t take_signed(struct table_bytes *bytes)
{
    unsigned shift = 0;
    uint8_t last = 0;
    uint64_t value = take_bits(bytes, &shift, &last);

    return last & 64 ? (int64_t)(value | UINT64_MAX << shift) : (int64_t)value;
}

static void pass(struct table_bytes *bytes, uint64_t count)
{
    bytes->is_wrong |= count > bytes->end - bytes->at;
    if (!bytes->is_wrong)
        bytes->at += count;
}

/* How many bytes a pointer of the encoding has; 0: not supported. */
static unsigned pointer_bytes(uint8_t encoding)
{
    static const uint8_t sizes[16] = {
        [0x0] = 8, [0x2] = 2, [0x3] = 4, [0x4] = 8, [0xa] = 2, [0xb] = 4, [0xc] = 8,
    };

    return sizes[encoding & 15];
}

/* As an absolute number, or relative to where it lies. */
static uint64_t take_pointer(struct table_bytes *bytes, uint8_t encoding)
{
    uint64_t from = (encoding & 0x70) == 0x10 ? bytes->at : 0;
    unsigned count = pointer_bytes(encoding);
    unsigned shift = 64 - 8 * count;
    uint64_t value;

    bytes->is_wrong |= !count || ((encoding & 0x70) && !from) || encoding & 0x80;
    if (bytes->is_wrong)
        return 0;
    value = take_fixed(bytes, count);
    if (encoding & 8)
        value = (uint64_t)((int64_t)(value << shift) >> shift);
    return from + value;
}

/* ---- the function of an address ---- */

struct table_pair {
    int32_t function, entry; /* both relative to the table */
};

static bool read_pair(const struct tbd_table_reader *reader, uint64_t table, uint32_t index,
                      struct table_pair *out)
{
    return reader->read(reader->context, table + 12 + 8ull * index, out, sizeof(*out));
}

/* The FDE of the last function that begins at or before pc; 0: none. */
static uint64_t find_entry(const struct tbd_table_reader *reader, uint64_t table, uint64_t pc)
{
    struct table_pair pair = { 0 };
    uint32_t low = 0, high;
    uint8_t head[12];

    if (!reader->read(reader->context, table, head, sizeof(head)) || head[0] != 1 ||
        head[1] != POINTER_RELATIVE_4 || head[2] != COUNT_4 || head[3] != SORTED_4)
        return 0;
    memcpy(&high, head + 8, sizeof(high));
    if (high > MAX_FUNCTIONS)
        return 0;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (!read_pair(reader, table, middle, &pair))
            return 0;
        if (table + (uint64_t)(int64_t)pair.function <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low || !read_pair(reader, table, low - 1, &pair))
        return 0;
    return table + (uint64_t)(int64_t)pair.entry;
}

/* ---- CIE and FDE ---- */

struct function_entry {
    struct table_bytes rules; /* of the FDE: its instructions */
    struct table_bytes first; /* of the CIE */
    uint64_t start, end;      /* of the function */
    uint64_t code_factor;
    int64_t data_factor;
    uint8_t encoding;
    bool is_signal;
    bool has_length; /* augmentation data begin with their length */
};

/* After the length and the CIE pointer, whose place is *out_id_at. */
static bool open_entry(struct table_bytes *bytes, const struct tbd_table_reader *reader,
                       uint64_t at, uint64_t *out_id_at, uint32_t *out_id)
{
    uint32_t length;

    begin_bytes(bytes, reader, at, at + 8);
    length = (uint32_t)take_fixed(bytes, 4);
    *out_id_at = bytes->at;
    *out_id = (uint32_t)take_fixed(bytes, 4);
    bytes->end = at + 4 + length;
    bytes->is_wrong |= length < 4 || length > MAX_ENTRY;
    return !bytes->is_wrong;
}

/* The data that the letters after z announce. */
static void take_augmentation(struct function_entry *entry, const char *letters, uint64_t end)
{
    struct table_bytes *bytes = &entry->first;

    for (; *letters; letters++) {
        switch (*letters) {
        case 'R': entry->encoding = take_byte(bytes); break;
        case 'L': take_byte(bytes); break;
        case 'S': entry->is_signal = true; break;
        case 'P': pass(bytes, pointer_bytes(take_byte(bytes) & 15)); break;
        case 'B': break;
        default: bytes->is_wrong = true; return;
        }
    }
    bytes->is_wrong |= bytes->at > end;
    if (!bytes->is_wrong)
        bytes->at = end;
}

static bool read_common(struct function_entry *entry, const struct tbd_table_reader *reader,
                        uint64_t at)
{
    struct table_bytes *bytes = &entry->first;
    char letters[8];
    uint64_t id_at, column;
    uint32_t id, count = 0;
    uint8_t version;

    if (!open_entry(bytes, reader, at, &id_at, &id) || id)
        return false;
    version = take_byte(bytes);
    do {
        letters[count] = (char)take_byte(bytes);
    } while (letters[count++] && count < sizeof(letters));
    if ((version != 1 && version != 3) || letters[count - 1])
        return false;
    entry->code_factor = take_unsigned(bytes);
    entry->data_factor = take_signed(bytes);
    column = version == 1 ? take_byte(bytes) : take_unsigned(bytes);
    entry->has_length = letters[0] == 'z';
    if (entry->has_length) {
        uint64_t length = take_unsigned(bytes);

        take_augmentation(entry, letters + 1, bytes->at + length);
    }
    return !bytes->is_wrong && column == RETURN_COLUMN && (entry->has_length || !letters[0]);
}

static bool read_entry(struct function_entry *entry, const struct tbd_table_reader *reader,
                       uint64_t at)
{
    struct table_bytes *bytes = &entry->rules;
    uint64_t id_at;
    uint32_t id;

    if (!open_entry(bytes, reader, at, &id_at, &id) || !id ||
        !read_common(entry, reader, id_at - id))
        return false;
    entry->start = take_pointer(bytes, entry->encoding);
    entry->end = entry->start + take_pointer(bytes, entry->encoding & 15);
    if (entry->has_length)
        pass(bytes, take_unsigned(bytes));
    return !bytes->is_wrong;
}

/* ---- the rule ---- */

/* Where a register of the caller is. */
enum saved_kind { SAVED_KEPT, SAVED_AT_FRAME, SAVED_AT_RBP, SAVED_LOST, SAVED_NEVER };

struct saved_place {
    enum saved_kind kind;
    int64_t offset;
};

struct frame_row {
    enum tbd_caller_kind kind; /* PLAIN, POINTED, UNKNOWN */
    uint64_t reg;
    int64_t offset;
    struct saved_place saved[TBD_SAVED_COUNT];
    struct saved_place back; /* the return address */
};

struct rule_machine {
    struct function_entry entry;
    struct frame_row row;
    struct frame_row first; /* after the CIE's instructions */
    struct frame_row remembered[MAX_REMEMBERED];
    uint32_t remembered_count;
    uint64_t pc;
    uint64_t location;
};

static int64_t factored(const struct rule_machine *m, uint64_t count)
{
    return (int64_t)(count * (uint64_t)m->entry.data_factor);
}

/* NULL: the column does not matter. */
static struct saved_place *place_in(struct frame_row *row, uint64_t column)
{
    switch (column) {
    case TBD_CALLER_RBP: return &row->saved[TBD_SAVED_RBP];
    case TBD_CALLER_RBX: return &row->saved[TBD_SAVED_RBX];
    case RETURN_COLUMN: return &row->back;
    default: return NULL;
    }
}

static void set_saved(struct rule_machine *m, uint64_t column, enum saved_kind kind, int64_t offset)
{
    struct saved_place *place = place_in(&m->row, column);

    if (place)
        *place = (struct saved_place){ kind, offset };
}

static void restore_saved(struct rule_machine *m, uint64_t column)
{
    struct saved_place *place = place_in(&m->row, column);

    if (place)
        *place = *place_in(&m->first, column);
}

/* To the end of an expression that began at `end` - its length. */
static void end_expression(struct table_bytes *bytes, uint64_t end)
{
    bytes->is_wrong |= end > bytes->end || bytes->at > end;
    if (!bytes->is_wrong)
        bytes->at = end;
}

/* breg16 0; lit15; and; litN; ge; lit3; shl; plus: 8 more from byte N of 16 on, where a stub has pushed. */
static bool take_stub_pattern(struct table_bytes *bytes, uint64_t pc, int64_t *out_pushed)
{
    static const uint8_t pattern[] = { 0x80, 0x00, 0x3f, 0x1a, 0x30, 0x2a, 0x33, 0x24, 0x22 };
    unsigned pushed_at = 16;

    for (size_t i = 0; i < sizeof(pattern); i++) {
        unsigned byte = take_byte(bytes);

        if (pattern[i] == 0x30 && (byte & 0xf0) == 0x30)
            pushed_at = byte & 15;
        else if (byte != pattern[i])
            return false;
    }
    *out_pushed = (pc & 15) >= pushed_at ? 8 : 0;
    return true;
}

/* What compilers and linkers write: *(breg + offset), and the code of the procedure linkage table. */
static void take_frame_expression(struct rule_machine *m, struct table_bytes *bytes)
{
    uint64_t length = take_unsigned(bytes), end = bytes->at + length;
    unsigned reg = take_byte(bytes) - 0x70u; /* DW_OP_breg0 */
    int64_t offset = take_signed(bytes), pushed = 0;

    if (bytes->is_wrong || bytes->at >= end) {
        bytes->is_wrong = true;
        return;
    }
    m->row.reg = reg;
    m->row.offset = offset;
    m->row.kind = TBD_CALLER_UNKNOWN;
    if (end - bytes->at == 1) {
        m->row.kind = take_byte(bytes) == 0x06 ? TBD_CALLER_POINTED : TBD_CALLER_UNKNOWN;
    } else if (take_stub_pattern(bytes, m->pc, &pushed) && bytes->at == end) {
        m->row.kind = TBD_CALLER_PLAIN;
        m->row.offset += pushed;
    }
    end_expression(bytes, end);
}

/* A register at [rbp + offset]; any other expression is not understood. */
static void take_expression(struct rule_machine *m, struct table_bytes *bytes)
{
    uint64_t column = take_unsigned(bytes);
    uint64_t length = take_unsigned(bytes), end = bytes->at + length;
    bool is_rbp = length && take_byte(bytes) == 0x70 + TBD_CALLER_RBP;
    int64_t offset = is_rbp ? take_signed(bytes) : 0;

    if (is_rbp && bytes->at == end)
        set_saved(m, column, SAVED_AT_RBP, offset);
    else
        set_saved(m, column, SAVED_LOST, 0);
    end_expression(bytes, end);
}

static void remember(struct rule_machine *m, struct table_bytes *bytes)
{
    if (m->remembered_count == MAX_REMEMBERED)
        bytes->is_wrong = true;
    else
        m->remembered[m->remembered_count++] = m->row;
}

static void recall(struct rule_machine *m, struct table_bytes *bytes)
{
    if (m->remembered_count)
        m->row = m->remembered[--m->remembered_count];
    else
        bytes->is_wrong = true;
}

static void define_frame(struct rule_machine *m, uint64_t reg, int64_t offset)
{
    m->row.kind = TBD_CALLER_PLAIN;
    m->row.reg = reg;
    m->row.offset = offset;
}

/* An instruction whose first byte is below 0x40 (DW_CFA_*). */
static void step_low(struct rule_machine *m, struct table_bytes *bytes, uint8_t op)
{
    uint64_t column;

    switch (op) {
    case 0x00: break; /* nop */
    case 0x02: m->location += take_fixed(bytes, 1) * m->entry.code_factor; break;
    case 0x03: m->location += take_fixed(bytes, 2) * m->entry.code_factor; break;
    case 0x04: m->location += take_fixed(bytes, 4) * m->entry.code_factor; break;
    case 0x05: /* offset_extended */
        column = take_unsigned(bytes);
        set_saved(m, column, SAVED_AT_FRAME, factored(m, take_unsigned(bytes)));
        break;
    case 0x06: restore_saved(m, take_unsigned(bytes)); break;
    case 0x07: set_saved(m, take_unsigned(bytes), SAVED_NEVER, 0); break; /* undefined */
    case 0x08: set_saved(m, take_unsigned(bytes), SAVED_KEPT, 0); break;  /* same_value */
    case 0x09:                                                            /* register */
        column = take_unsigned(bytes);
        take_unsigned(bytes);
        set_saved(m, column, SAVED_LOST, 0);
        break;
    case 0x0a: remember(m, bytes); break;
    case 0x0b: recall(m, bytes); break;
    case 0x0c: /* def_cfa */
        column = take_unsigned(bytes);
        define_frame(m, column, (int64_t)take_unsigned(bytes));
        break;
    case 0x0d: m->row.reg = take_unsigned(bytes); break;
    case 0x0e: m->row.offset = (int64_t)take_unsigned(bytes); break;
    case 0x0f: take_frame_expression(m, bytes); break;
    case 0x10: take_expression(m, bytes); break;
    case 0x11: /* offset_extended_sf */
        column = take_unsigned(bytes);
        set_saved(m, column, SAVED_AT_FRAME, factored(m, (uint64_t)take_signed(bytes)));
        break;
    case 0x12: /* def_cfa_sf */
        column = take_unsigned(bytes);
        define_frame(m, column, factored(m, (uint64_t)take_signed(bytes)));
        break;
    case 0x13: m->row.offset = factored(m, (uint64_t)take_signed(bytes)); break;
    case 0x14: /* val_offset */
    case 0x15:
        column = take_unsigned(bytes);
        take_unsigned(bytes);
        set_saved(m, column, SAVED_LOST, 0);
        break;
    case 0x16: /* val_expression */
        column = take_unsigned(bytes);
        pass(bytes, take_unsigned(bytes));
        set_saved(m, column, SAVED_LOST, 0);
        break;
    case 0x2e: take_unsigned(bytes); break; /* GNU_args_size */
    default: bytes->is_wrong = true; break;
    }
}

static void step(struct rule_machine *m, struct table_bytes *bytes)
{
    uint8_t op = take_byte(bytes);

    switch (op >> 6) {
    case 0: step_low(m, bytes, op); break;
    case 1: m->location += (op & 63u) * m->entry.code_factor; break;
    case 2: set_saved(m, op & 63u, SAVED_AT_FRAME, factored(m, take_unsigned(bytes))); break;
    default: restore_saved(m, op & 63u); break;
    }
}

/* The row at pc: what comes after it in the function is left out. */
static bool find_row(struct rule_machine *m)
{
    while (m->entry.first.at < m->entry.first.end && !m->entry.first.is_wrong)
        step(m, &m->entry.first);
    m->first = m->row;
    m->location = m->entry.start;
    while (m->entry.rules.at < m->entry.rules.end && !m->entry.rules.is_wrong &&
           m->location <= m->pc)
        step(m, &m->entry.rules);
    return !m->entry.first.is_wrong && !m->entry.rules.is_wrong;
}

static bool is_short(int64_t offset)
{
    return offset == (int32_t)offset;
}

static struct tbd_caller_rule rule_of(const struct frame_row *row)
{
    static const uint8_t places[] = {
        [SAVED_KEPT] = TBD_PLACE_KEPT,     [SAVED_AT_FRAME] = TBD_PLACE_AT_FRAME,
        [SAVED_AT_RBP] = TBD_PLACE_AT_RBP, [SAVED_LOST] = TBD_PLACE_LOST,
        [SAVED_NEVER] = TBD_PLACE_LOST,
    };
    struct tbd_caller_rule rule = { .kind = TBD_CALLER_UNKNOWN };

    if (row->back.kind == SAVED_NEVER)
        rule.kind = TBD_CALLER_OUTERMOST;
    if (row->back.kind != SAVED_AT_FRAME || row->back.offset != -8 || row->reg >= 16 ||
        !is_short(row->offset))
        return rule;
    rule.kind = (uint8_t)row->kind;
    rule.reg = (uint8_t)row->reg;
    rule.frame_offset = (int32_t)row->offset;
    for (unsigned i = 0; i < TBD_SAVED_COUNT; i++) {
        const struct saved_place *saved = &row->saved[i];

        rule.place[i] = is_short(saved->offset) ? places[saved->kind] : TBD_PLACE_LOST;
        rule.offset[i] = (int32_t)saved->offset;
    }
    return rule;
}

struct tbd_caller_rule tbd_caller_rule_find(const struct tbd_table_reader *reader, uint64_t table,
                                            uint64_t pc)
{
    const struct tbd_caller_rule unknown = { .kind = TBD_CALLER_UNKNOWN };
    uint64_t at = find_entry(reader, table, pc);
    struct rule_machine m;

    memset(&m, 0, sizeof(m));
    m.pc = pc;
    if (!at || !read_entry(&m.entry, reader, at) || pc < m.entry.start || pc >= m.entry.end)
        return unknown;
    if (m.entry.is_signal)
        return (struct tbd_caller_rule){ .kind = TBD_CALLER_SIGNAL };
    return find_row(&m) ? rule_of(&m.row) : unknown;
}
