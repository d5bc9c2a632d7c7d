// SPDX-License-Identifier: MIT
/* cut.c - cuts a block: its instructions, its definition, its record
 *
 * To find addresses that differ by a constant from a recorded one, every register's value is
 * followed as (root, constant): a root is the value a register had at some point in the block.
 *
 * CUT-1  Two addresses with the same roots of base and index and the same scale differ by a
 *     constant. (not checked: test_patcher_random compares registers, flags and records with the
 *     processor's)
 */
#include "patcher/cut.h"

#include "base/hash.h"
#include "base/binary_search.h"
#include "patcher/asked_loads.h"
#include "patcher/asked_places.h"
#include "patcher/forced_specials.h"

struct root_value {
    uint32_t root;
    int64_t add;
};

/* A u64 in the record, in terms of roots. */
struct recorded {
    struct tbd_address address;
    uint32_t at;
};

#define MAX_RECORDED    96
#define NOTES_MAX_BYTES 2048u /* of a block; the rest of the record is for its events */

struct layout {
    struct tbd_cut *cut;
    const struct tbd_codegen_config *config;
    struct root_value reg[TBD_REG_COUNT];
    struct recorded recorded[MAX_RECORDED];
    uint32_t recorded_count;
    uint32_t next_root;
    uint32_t bytes;
    uint32_t ops;
    struct tbd_touch_plan touch;
};

/* ---- where it ends ---- */

static uint8_t end_of_kind(uint8_t kind)
{
    static const uint8_t ends[] = {
        [TBD_INSN_JUMP] = TBD_END_JUMP,
        [TBD_INSN_BRANCH] = TBD_END_BRANCH,
        [TBD_INSN_BRANCH_RCX] = TBD_END_BRANCH,
        [TBD_INSN_CALL] = TBD_END_CALL,
        [TBD_INSN_CALL_INDIRECT] = TBD_END_CALL_INDIRECT,
        [TBD_INSN_JUMP_INDIRECT] = TBD_END_JUMP_INDIRECT,
        [TBD_INSN_RETURN] = TBD_END_RETURN,
        [TBD_INSN_SYSCALL] = TBD_END_SYSCALL,
        [TBD_INSN_SPECIAL] = TBD_END_SPECIAL,
        [TBD_INSN_BAD] = TBD_END_FAULT,
    };

    return ends[kind];
}

/* Special only because its accesses have no fixed address or size: plain if nothing is reported. */
static bool is_plain_without_hooks(const struct tbd_insn *insn)
{
    return insn->kind == TBD_INSN_SPECIAL && !insn->gs &&
           (insn->special == TBD_SPECIAL_REP_STORE || insn->special == TBD_SPECIAL_MASKED_STORE ||
            insn->special == TBD_SPECIAL_LOADS);
}

/* Special only because its result differs in another run: plain if nobody asks for that. */
static bool is_plain_in_free_run(const struct tbd_insn *insn)
{
    return insn->kind == TBD_INSN_SPECIAL &&
           (tbd_specials_have(TBD_SPECIALS_OF_THE_RUN, insn->special) ||
            insn->special == TBD_SPECIAL_RDFSBASE);
}

static bool stores(const struct tbd_insn *insn)
{
    for (unsigned a = 0; a < insn->access_count; a++)
        if (insn->access[a].flags & TBD_ACCESS_WRITE)
            return true;
    return false;
}

/* Can the engine execute this kind because of the memory it accesses
 * (patcher/forced_specials.h)? */
static bool may_be_forced(uint8_t kind)
{
    return kind == TBD_INSN_PLAIN || kind == TBD_INSN_CALL || kind == TBD_INSN_CALL_INDIRECT ||
           kind == TBD_INSN_JUMP_INDIRECT || kind == TBD_INSN_RETURN;
}

static bool decode(const struct tbd_cut *cut, struct tbd_insn *insn, uint64_t pc,
                   const uint8_t *code, uint64_t limit)
{
    return cut->is_of_cache ? tbd_decode_known(insn, pc, code, limit)
                            : tbd_decode(insn, pc, code, limit);
}

/* Decodes into cut->insn; returns how the block ends.  *out_looked: one past the last byte that
 * mattered. */
static uint8_t decode_all(struct tbd_cut *cut, uint64_t pc, uint64_t available, bool changes,
                          const struct tbd_codegen_config *config, uint64_t *out_looked)
{
    const uint8_t *code = (const uint8_t *)(uintptr_t)pc;
    uint64_t at = 0;

    for (cut->count = 0; cut->count < config->max_insns; cut->count++) {
        struct tbd_insn *insn = &cut->insn[cut->count];
        bool decodes = at < available && decode(cut, insn, pc + at, code + at, available - at);

        if (at && config->is_free &&
            (tbd_asked_places_has(pc + at) || (decodes && tbd_asked_loads_of(insn))))
            return TBD_END_LIMIT;
        *out_looked =
            at + (available - at < TBD_INSN_MAX_BYTES ? available - at : TBD_INSN_MAX_BYTES);
        if (!decodes || insn->kind == TBD_INSN_BAD)
            return cut->count ? TBD_END_LIMIT : TBD_END_FAULT;
        if ((config->is_free || config->hook_set == TBD_HOOKS_NONE) && is_plain_without_hooks(insn))
            insn->kind = TBD_INSN_PLAIN;
        if (config->is_free && is_plain_in_free_run(insn))
            insn->kind = TBD_INSN_PLAIN;
        if (may_be_forced(insn->kind) && tbd_forced_specials_has(pc + at)) {
            insn->transfer = insn->kind;
            insn->kind = TBD_INSN_SPECIAL;
            insn->special = TBD_SPECIAL_SHARED;
        }
        at += insn->length;
        cut->def.code_bytes = (uint32_t)at;
        if (end_of_kind(insn->kind)) {
            cut->count++;
            *out_looked = at;
            return end_of_kind(insn->kind);
        }
        *out_looked = at;
        if (changes && stores(insn)) {
            cut->count++;
            break;
        }
    }
    return TBD_END_LIMIT;
}

/* ---- values ---- */

static struct root_value fresh(struct layout *l)
{
    return (struct root_value){ .root = ++l->next_root };
}

/* and rsp, -16 */
static bool aligns_stack(const struct tbd_insn *insn)
{
    uint32_t immediate_bytes = insn->opcode == 0x83 ? 1 : insn->opcode == 0x81 ? 4 : 0;

    return immediate_bytes && insn->prefix_bytes == 1 && insn->field[TBD_FIELD_RM] == TBD_RSP &&
           (insn->bytes[insn->modrm_at] & 0x38) == 0x20 &&
           insn->bytes[insn->length - immediate_bytes] % 8 == 0;
}

/* rsp counts as a multiple of 8 until a block gives it a value that may not be one. */
static void follow_stack(struct layout *l, const struct tbd_insn *insn)
{
    if (!(insn->writes & TBD_BIT(TBD_RSP)))
        return;
    if (aligns_stack(insn))
        l->touch.odd_stack = l->config->odd_stack;
    else if (insn->copy_dst == TBD_RSP)
        l->touch.odd_stack |= insn->copy_src != TBD_RSP || insn->copy_add % 8 != 0;
    else
        l->touch.odd_stack |= !insn->stack_add || insn->stack_add % 8 != 0;
}

static void apply_insn(struct layout *l, const struct tbd_insn *insn)
{
    struct root_value copy = { 0 };
    uint8_t dst = insn->copy_dst;

    if (dst != TBD_NO_REG) {
        copy = l->reg[insn->copy_src];
        copy.add += insn->copy_add;
    }
    for (unsigned r = 0; r < TBD_REG_COUNT; r++) {
        if (!(insn->writes & TBD_BIT(r)))
            continue;
        if (r == dst)
            l->reg[r] = copy;
        else if (r == TBD_RSP && insn->stack_add)
            l->reg[r].add += insn->stack_add;
        else
            l->reg[r] = fresh(l);
    }
}

static bool is_plain(const struct tbd_access *a)
{
    return !a->ea.fs && !a->ea.gs && !a->ea.addr32 &&
           !(a->flags & (TBD_ACCESS_XLAT | TBD_ACCESS_BITS));
}

static bool is_constant(const struct tbd_access *a)
{
    return is_plain(a) && a->ea.base == TBD_NO_REG && a->ea.index == TBD_NO_REG;
}

static struct tbd_address address_of(const struct layout *l, const struct tbd_access *a)
{
    struct tbd_address address = { .scale = 1, .add = a->ea.disp };

    if (a->ea.base != TBD_NO_REG) {
        address.base_root = l->reg[a->ea.base].root;
        address.add += l->reg[a->ea.base].add;
    }
    if (a->ea.index != TBD_NO_REG) {
        address.index_root = l->reg[a->ea.index].root;
        address.scale = a->ea.scale;
        address.add += l->reg[a->ea.index].add * a->ea.scale;
    }
    return address;
}

static const struct recorded *find_recorded(const struct layout *l,
                                            const struct tbd_address *address)
{
    for (uint32_t n = 0; n < l->recorded_count; n++)
        if (tbd_address_same_roots(&l->recorded[n].address, address))
            return &l->recorded[n];
    return NULL;
}

static void remember(struct layout *l, const struct tbd_address *address, uint32_t at)
{
    if (l->recorded_count < MAX_RECORDED)
        l->recorded[l->recorded_count++] = (struct recorded){ .address = *address, .at = at };
}

/* ---- ops ---- */

static struct tbd_op *add_op(struct layout *l, unsigned kind, uint32_t insn, uint8_t access)
{
    struct tbd_op *op = &l->cut->op[l->ops];

    *op = (struct tbd_op){ .kind = (uint8_t)kind, .insn = (uint16_t)insn, .base = TBD_BASE_NONE };
    l->cut->op_more[l->ops] = (struct tbd_cut_op){ .address_at = TBD_BASE_NONE, .access = access };
    l->ops++;
    return op;
}

/* Address of an access: a constant, a recorded value plus a constant, or a new value in the
 * record. */
static void place_address(struct layout *l, struct tbd_op *op, const struct tbd_access *a)
{
    struct tbd_address address = address_of(l, a);
    const struct recorded *known = is_plain(a) ? find_recorded(l, &address) : NULL;

    if (is_constant(a)) {
        op->add = a->ea.disp;
        return;
    }
    if (known) {
        op->base = known->at;
        op->add = address.add - known->address.add;
        return;
    }
    op->base = l->bytes;
    l->cut->op_more[op - l->cut->op].address_at = l->bytes;
    if (is_plain(a) && a->ea.index == TBD_NO_REG) {
        l->cut->op_more[op - l->cut->op].base_only = true;
        op->add = a->ea.disp;
        address.add -= a->ea.disp;
    }
    if (is_plain(a))
        remember(l, &address, l->bytes);
    l->bytes += 8;
}

static void add_store(struct layout *l, uint32_t insn, uint8_t access)
{
    const struct tbd_access *a = &l->cut->insn[insn].access[access];
    struct tbd_op *op = add_op(l, TBD_OP_STORE, insn, access);

    op->size = a->size;
    op->flags = (a->flags & TBD_ACCESS_READ) ? TBD_OPF_RMW : 0;
    place_address(l, op, a);
    op->data = l->bytes;
    l->bytes += a->size;
}

static void add_load(struct layout *l, uint32_t insn, uint8_t access)
{
    const struct tbd_access *a = &l->cut->insn[insn].access[access];
    struct tbd_op *op = add_op(l, TBD_OP_LOAD, insn, access);

    op->size = a->size;
    op->flags = (a->flags & TBD_ACCESS_WRITE) ? TBD_OPF_RMW : 0;
    place_address(l, op, a);
}

static void remember_register(struct layout *l, unsigned reg, uint32_t at)
{
    struct tbd_address value = { .base_root = l->reg[reg].root,
                                 .scale = 1,
                                 .add = l->reg[reg].add };

    if (!find_recorded(l, &value))
        remember(l, &value, at);
}

/* Import stubs: `jmp *[rip + x]` and `jmp *%r11`. */
static bool is_tail_call(const struct tbd_insn *insn, uint8_t kind)
{
    return kind == TBD_INSN_JUMP_INDIRECT &&
           (insn->rip_relative || insn->field[TBD_FIELD_RM] == TBD_R11);
}

static void add_call(struct layout *l, uint32_t insn, bool tail)
{
    static const uint8_t recorded[] = {
        TBD_RSP, TBD_RDI, TBD_RSI, TBD_RDX, TBD_RCX, TBD_R8, TBD_R9
    };
    struct tbd_op *op = add_op(l, TBD_OP_CALL, insn, 0);

    op->data = l->bytes;
    op->flags = tail ? TBD_OPF_TAIL : 0;
    for (unsigned n = 0; n < sizeof(recorded); n++) {
        remember_register(l, recorded[n], l->bytes);
        l->bytes += 8;
    }
}

static void add_return(struct layout *l, uint32_t insn)
{
    struct tbd_op *op = add_op(l, TBD_OP_RET, insn, 0);

    op->data = l->bytes;
    l->bytes += 16;
}

static void add_transfer(struct layout *l, uint32_t n, uint8_t kind)
{
    bool is_call = kind == TBD_INSN_CALL || kind == TBD_INSN_CALL_INDIRECT;

    if (!(l->config->hook_set & TBD_HOOK_CALLS))
        return;
    if (is_call || is_tail_call(&l->cut->insn[n], kind))
        add_call(l, n, !is_call);
    if (kind == TBD_INSN_RETURN)
        add_return(l, n);
}

/* Registers asked for at `pc`; 0 = none. */
static uint64_t noted_at(const struct tbd_codegen_config *config, uint64_t pc)
{
    size_t at = TBD_COUNT_BEFORE(i, config->note_count, config->notes[i].pc < pc);

    return at < config->note_count && config->notes[at].pc == pc ? config->notes[at].registers : 0;
}

/* A register that does not fit into the record is not noted. */
static void add_note(struct layout *l, uint32_t insn)
{
    uint64_t registers = noted_at(l->config, l->cut->insn[insn].pc);
    uint32_t bytes = tbd_note_bytes(registers);
    struct tbd_op *op;

    if (!registers || l->bytes + bytes > NOTES_MAX_BYTES)
        return;
    op = add_op(l, TBD_OP_NOTE, insn, 0);
    op->add = (int64_t)registers;
    op->size = bytes;
    op->data = l->bytes;
    l->bytes += bytes;
}

/* Order within an instruction: the note, loads, the call or return, stores.  For instructions that
 * the engine executes, the engine reports the accesses. */
static void lay_out_insn(struct layout *l, uint32_t n)
{
    const struct tbd_insn *insn = &l->cut->insn[n];
    uint32_t set = l->config->hook_set;

    if (set & TBD_HOOK_NOTES)
        add_note(l, n);
    if (insn->kind == TBD_INSN_SPECIAL) {
        add_transfer(l, n, insn->special == TBD_SPECIAL_SHARED ? insn->transfer : TBD_INSN_PLAIN);
        return;
    }
    for (uint8_t a = 0; (set & TBD_HOOK_LOADS) && a < insn->access_count; a++)
        if (insn->access[a].flags & TBD_ACCESS_READ)
            add_load(l, n, a);
    add_transfer(l, n, insn->kind);
    for (uint8_t a = 0; (set & TBD_HOOK_STORES) && a < insn->access_count; a++)
        if (insn->access[a].flags & TBD_ACCESS_WRITE)
            add_store(l, n, a);
}

static void add_touches(struct layout *l, uint32_t n)
{
    const struct tbd_insn *insn = &l->cut->insn[n];

    if (insn->kind == TBD_INSN_SPECIAL)
        return;
    for (uint8_t a = 0; a < insn->access_count; a++) {
        struct tbd_address address = address_of(l, &insn->access[a]);

        tbd_touch_add(&l->touch, &insn->access[a], n, a, &address, is_plain(&insn->access[a]));
    }
}

/* Only the entry is reported, or nothing. */
static void lay_out_nothing(struct tbd_cut *cut)
{
    __builtin_memset(cut->touch, 0, cut->count * sizeof(cut->touch[0]));
    __builtin_memset(cut->first_op, 0, (cut->count + 1) * sizeof(cut->first_op[0]));
    __builtin_memset(cut->record_before, 0, (cut->count + 1) * sizeof(cut->record_before[0]));
    cut->def.op_count = 0;
    cut->def.operand_bytes = 0;
}

static void lay_out(struct tbd_cut *cut, const struct tbd_codegen_config *config)
{
    struct layout l;

    l.cut = cut;
    l.config = config;
    l.recorded_count = l.next_root = l.bytes = l.ops = l.touch.count = 0;
    l.touch.odd_stack = config->odd_stack;
    for (unsigned r = 0; r < TBD_REG_COUNT; r++)
        l.reg[r] = fresh(&l);
    for (uint32_t n = 0; n < cut->count; n++) {
        cut->first_op[n] = (uint16_t)l.ops;
        cut->record_before[n] = l.bytes;
        lay_out_insn(&l, n);
        __builtin_memset(cut->touch[n], 0, sizeof(cut->touch[n]));
        if (config->hook_set & TBD_HOOK_TOUCH)
            add_touches(&l, n);
        follow_stack(&l, &cut->insn[n]);
        apply_insn(&l, &cut->insn[n]);
    }
    tbd_touch_finish(&l.touch, cut->touch);
    cut->first_op[cut->count] = (uint16_t)l.ops;
    cut->record_before[cut->count] = l.bytes;
    cut->def.op_count = (uint16_t)l.ops;
    cut->def.operand_bytes = l.bytes;
}

_Static_assert(TBD_BLOCK_MAX_INSNS *(8 + 8 + 64) + 72 + NOTES_MAX_BYTES <= TBD_RECORD_MAX_BYTES,
               "an address of a load, a store of 64 bytes at each instruction, a call, and notes");

/* The definition has the ops that a replay reports; the code that is made reports none. */
static void omit_records(struct tbd_cut *cut)
{
    __builtin_memset(cut->first_op, 0, sizeof(cut->first_op));
    __builtin_memset(cut->record_before, 0, sizeof(cut->record_before));
}

void tbd_cut_block(struct tbd_cut *cut, const struct tbd_patcher_callbacks *callbacks,
                   const struct tbd_codegen_config *config, uint64_t pc)
{
    uint64_t want = (uint64_t)config->max_insns * TBD_INSN_MAX_BYTES;
    bool changes = false;
    uint64_t available = callbacks->executable((struct tbd_app_pc){ pc }, want, &changes);
    uint64_t looked = 0;

    cut->def = (struct tbd_block_def){ .start = pc };
    cut->def.end =
        decode_all(cut, pc, available < want ? available : want, changes, config, &looked);
    cut->check_bytes = changes ? (uint32_t)looked : 0;
    cut->def.insn_count = (uint16_t)cut->count;
    if (cut->count)
        cut->def.last_insn = (uint16_t)(cut->insn[cut->count - 1].pc - pc);
    if (config->hook_set || !config->is_free) /* else no id is asked for */
        cut->def.code_hash = tbd_hash64((const void *)(uintptr_t)pc, cut->def.code_bytes);
    if (config->hook_set & ~(uint32_t)TBD_HOOK_BLOCKS)
        lay_out(cut, config);
    else
        lay_out_nothing(cut);
    if (config->omits_records)
        omit_records(cut);
}

void tbd_cut_shorten(struct tbd_cut *cut, uint32_t insns)
{
    if (insns >= cut->count)
        return;
    cut->count = insns;
    cut->def.end = TBD_END_LIMIT;
}
