// SPDX-License-Identifier: MIT
/* probe_code.c - see probe_code.h
 *
 * PROBE_CODE-1  An index into the key, the record or the code is below its bound: keys and records are
 *     checked when they grow, code when it arrives. */
#include "hooks/probes/probe_code.h"

#include "base/assert.h"
#include "base/linux_abi.h"
#include "base/string.h"
#include "base/sys.h"
#include "base/sys_clock.h"
#include "hooks/probes/probe_maps.h"
#include "hooks/probes/probe_real.h"
#include "hooks/probes/probe_records.h"
#include "hooks/probes/stack_walk.h"
#include "patcher/native_step.h"

#define SIGNED        16u
#define COMM_BYTES    16u
#define PAGE          4096ull
#define WRITTEN_BYTES 320u
#define NEAR_STACK    16384u
#define NEAR_BYTES    512u /* more than is looked at in one place of a stack */

struct running {
    struct tbd_probe_session *session;
    struct tbd_probe_hit *hit;
    uint64_t reg[TBD_PROBE_REGISTERS];
    uint32_t key_bytes;
    uint32_t record_bytes;
    _Alignas(8) uint8_t key[TBD_PROBE_KEY_BYTES];
    _Alignas(8) uint8_t record[TBD_PROBE_RECORD_MAX];
};

/* ---- the program's memory ---- */

static uint32_t pid_of(struct tbd_probe_hit *hit)
{
    if (!hit->pid)
        hit->pid = (uint32_t)tbd_sys_getpid();
    return hit->pid;
}

/* How many bytes could be read: the kernel stops where nothing is mapped. */
static size_t read_program(struct tbd_probe_hit *hit, uint64_t address, void *out, size_t bytes)
{
    struct {
        uint64_t base, length;
    } to = { tbd_sys_pointer(out), bytes }, from = { address, bytes };
    long got;

    if (hit->read)
        return hit->read(out, address, bytes) ? bytes : 0;
    got = tbd_sys6(__NR_process_vm_readv, pid_of(hit), tbd_sys_pointer(&to), 1,
                   tbd_sys_pointer(&from), 1, 0);

    return got > 0 ? (size_t)got : 0;
}

/* A text ends at its zero, or after `bytes`; what follows is filled with zeros.  The page after the
 * text's may not be mapped. */
static bool read_text(struct tbd_probe_hit *hit, uint64_t address, uint8_t *out, uint32_t bytes)
{
    size_t in_page = 4096 - (address & 4095);
    size_t got = read_program(hit, address, out, in_page < bytes ? in_page : bytes);
    size_t end = 0;

    if (!got)
        return false;
    while (end < got && out[end])
        end++;
    if (end == got && got < bytes)
        got += read_program(hit, address + got, out + got, bytes - got);
    while (end < got && out[end])
        end++;
    memset(out + end, 0, bytes - end);
    return true;
}

static uint64_t widen(uint64_t value, unsigned how)
{
    unsigned shift = 64 - 8 * (how & 15);

    if (how & SIGNED)
        return (uint64_t)((int64_t)(value << shift) >> shift);
    return value << shift >> shift;
}

/* ---- the program's calls ---- */

/* Bytes of the page where the program's stack ends, which need no system call: what has brought the thread here, a
 * signal's frame or the code of a jump, has been written less than WRITTEN_BYTES below rsp, in the same page, and this
 * function's frame lies on the same stack.  0: the kernel has to read them. */
static size_t read_near(const struct tbd_probe_hit *hit, uint64_t address, void *out, size_t bytes)
{
    uint64_t rsp = hit->context[tbd_native_place(4)], own = tbd_sys_pointer(&rsp);
    uint64_t page = rsp & ~(PAGE - 1), left = page + PAGE - address;

    if (rsp - WRITTEN_BYTES < page || address < rsp - WRITTEN_BYTES || address >= page + PAGE ||
        own >= rsp || rsp - own > NEAR_STACK || (left < bytes && left < NEAR_BYTES))
        return 0;
    if (left < bytes)
        bytes = left;
    memcpy(out, (const void *)(uintptr_t)address, bytes);
    return bytes;
}

static size_t read_for_walk(void *context, uint64_t address, void *out, size_t bytes)
{
    size_t got = read_near(context, address, out, bytes);

    return got ? got : read_program(context, address, out, bytes);
}

static struct tbd_walk_start walk_from(struct tbd_probe_hit *hit)
{
    return (struct tbd_walk_start){ hit->context, hit->pc, read_for_walk, hit };
}

static void read_stack(struct tbd_probe_hit *hit, uint64_t *out, uint32_t frames)
{
    struct tbd_walk_start start = walk_from(hit);

    tbd_walk_stack(&start, out, frames);
}

static bool read_context(struct tbd_probe_hit *hit, uint64_t *out)
{
    struct tbd_walk_start start = walk_from(hit);

    return tbd_walk_context(&start, out);
}

static uint64_t tid_of(struct tbd_probe_hit *hit)
{
    if (!hit->tid)
        hit->tid = (uint32_t)tbd_sys_gettid();
    return hit->tid;
}

static uint64_t processor_now(void)
{
    uint32_t cpu = 0;

    tbd_sys3(__NR_getcpu, tbd_sys_pointer(&cpu), 0, 0);
    return cpu;
}

/* ---- keys and records ---- */

static uint8_t *grow_key(struct running *r, uint32_t bytes)
{
    uint8_t *at = r->key + r->key_bytes;

    if (bytes > sizeof(r->key) - r->key_bytes)
        return NULL;
    r->key_bytes += bytes;
    return at;
}

static uint8_t *grow_record(struct running *r, uint32_t bytes)
{
    uint8_t *at = r->record + r->record_bytes;

    if (!r->record_bytes || bytes > sizeof(r->record) - r->record_bytes)
        return NULL;
    r->record_bytes += bytes;
    return at;
}

static void begin_record(struct running *r, uint32_t id)
{
    const struct tbd_probe_record head = { .id = id };

    memcpy(r->record, &head, sizeof(head));
    r->record_bytes = sizeof(head);
}

static void send_record(struct running *r)
{
    struct tbd_probe_record *record = (struct tbd_probe_record *)(void *)r->record;

    record->bytes = r->record_bytes;
    r->record_bytes = 0;
    tbd_probe_send(r->session, (uint32_t)tid_of(r->hit), record);
}

/* The value, text, name or stack that an instruction appends. */
static bool append(struct running *r, const struct tbd_probe_insn *insn, uint8_t *to)
{
    if (!to)
        return false;
    switch (insn->op) {
    case TBD_PROBE_KEY_TEXT:
    case TBD_PROBE_FIELD_TEXT: return read_text(r->hit, r->reg[insn->a], to, (uint32_t)insn->imm);
    case TBD_PROBE_KEY_COMM:
    case TBD_PROBE_FIELD_COMM:
        memset(to, 0, COMM_BYTES);
        tbd_sys3(__NR_prctl, PR_GET_NAME, tbd_sys_pointer(to), 0);
        return true;
    case TBD_PROBE_KEY_STACK:
    case TBD_PROBE_FIELD_STACK:
        read_stack(r->hit, (uint64_t *)(void *)to, (uint32_t)insn->imm);
        return true;
    default: memcpy(to, &r->reg[insn->a], 8); return true;
    }
}

static uint32_t appended_bytes(const struct tbd_probe_insn *insn)
{
    switch (insn->op) {
    case TBD_PROBE_KEY_TEXT:
    case TBD_PROBE_FIELD_TEXT: return (uint32_t)insn->imm;
    case TBD_PROBE_KEY_COMM:
    case TBD_PROBE_FIELD_COMM: return COMM_BYTES;
    case TBD_PROBE_KEY_STACK:
    case TBD_PROBE_FIELD_STACK: return (uint32_t)insn->imm * 8;
    default: return 8;
    }
}

/* ---- arithmetic ---- */

/* False: there is no such quotient. */
static bool divide(enum tbd_probe_op op, int64_t a, int64_t b, uint64_t *out)
{
    if (!b)
        return false;
    if (b == -1)
        *out = op == TBD_PROBE_DIV ? 0 - (uint64_t)a : 0;
    else
        *out = (uint64_t)(op == TBD_PROBE_DIV ? a / b : a % b);
    return true;
}

static uint64_t compute(enum tbd_probe_op op, uint64_t a, uint64_t b)
{
    switch ((int)op) {
    case TBD_PROBE_ADD: return a + b;
    case TBD_PROBE_SUB: return a - b;
    case TBD_PROBE_MUL: return a * b;
    case TBD_PROBE_AND: return a & b;
    case TBD_PROBE_OR: return a | b;
    case TBD_PROBE_XOR: return a ^ b;
    case TBD_PROBE_SHL: return a << (b & 63);
    case TBD_PROBE_SHR: return a >> (b & 63);
    case TBD_PROBE_SAR: return (uint64_t)((int64_t)a >> (b & 63));
    case TBD_PROBE_EQ: return a == b;
    case TBD_PROBE_NE: return a != b;
    case TBD_PROBE_LT: return (int64_t)a < (int64_t)b;
    case TBD_PROBE_LE: return (int64_t)a <= (int64_t)b;
    case TBD_PROBE_BELOW: return a < b;
    case TBD_PROBE_BELOW_EQ: return a <= b;
    case TBD_PROBE_NOT: return !a;
    case TBD_PROBE_INVERT: return ~a;
    default: return 0 - a; /* NEGATE */
    }
}

static uint64_t register_of(const struct tbd_probe_hit *hit, int32_t which)
{
    if (which == 16)
        return hit->pc;
    return hit->context[which == 17 ? TBD_NATIVE_RFLAGS : tbd_native_place((uint32_t)which)];
}

static uint64_t read_fact(struct running *r, enum tbd_probe_op op)
{
    switch ((int)op) {
    case TBD_PROBE_NSECS: return tbd_sys_clock_ns();
    case TBD_PROBE_TID: return tid_of(r->hit);
    case TBD_PROBE_PID: return pid_of(r->hit);
    default: return processor_now();
    }
}

static void put(struct running *r, const struct tbd_probe_insn *insn)
{
    const struct tbd_probe_map *map = &r->session->maps[insn->imm];

    memset(r->key + r->key_bytes, 0, sizeof(r->key) - r->key_bytes);
    if (r->key_bytes == map->key_bytes)
        tbd_probe_put(r->session, (uint32_t)insn->imm, r->hit->shard, (uint64_t *)(void *)r->key,
                      (int64_t)r->reg[insn->a]);
    r->key_bytes = 0;
}

/* One instruction that is neither a skip nor the end.  False: a value is unknown. */
static bool execute(struct running *r, const struct tbd_probe_insn *insn)
{
    uint64_t *d = &r->reg[insn->d];
    uint64_t a = r->reg[insn->a];

    switch ((enum tbd_probe_op)insn->op) {
    case TBD_PROBE_IMM: *d = (uint64_t)(int64_t)insn->imm; return true;
    case TBD_PROBE_IMM_HIGH: *d = (uint32_t)*d | (uint64_t)(uint32_t)insn->imm << 32; return true;
    case TBD_PROBE_REG: *d = register_of(r->hit, insn->imm); return true;
    case TBD_PROBE_LOAD: {
        uint64_t value = 0;
        size_t bytes = insn->b & 15;

        if (read_program(r->hit, a + (uint64_t)(int64_t)insn->imm, &value, bytes) != bytes)
            return false;
        *d = widen(value, insn->b);
        return true;
    }
    case TBD_PROBE_DIV:
    case TBD_PROBE_MOD:
        return divide((enum tbd_probe_op)insn->op, (int64_t)a, (int64_t)r->reg[insn->b], d);
    case TBD_PROBE_EXTEND: *d = widen(a, insn->b); return true;
    case TBD_PROBE_NSECS:
    case TBD_PROBE_TID:
    case TBD_PROBE_PID:
    case TBD_PROBE_CPU: *d = read_fact(r, (enum tbd_probe_op)insn->op); return true;
    case TBD_PROBE_KEY:
    case TBD_PROBE_KEY_TEXT:
    case TBD_PROBE_KEY_COMM:
    case TBD_PROBE_KEY_STACK: return append(r, insn, grow_key(r, appended_bytes(insn)));
    case TBD_PROBE_PUT: put(r, insn); return true;
    case TBD_PROBE_RECORD: begin_record(r, (uint32_t)insn->imm); return true;
    case TBD_PROBE_FIELD:
    case TBD_PROBE_FIELD_TEXT:
    case TBD_PROBE_FIELD_COMM:
    case TBD_PROBE_FIELD_STACK: return append(r, insn, grow_record(r, appended_bytes(insn)));
    case TBD_PROBE_SEND: send_record(r); return true;
    case TBD_PROBE_EXIT:
        __atomic_store_n(&r->session->shared->wants_end, 1, __ATOMIC_RELEASE);
        return true;
    case TBD_PROBE_REAL: *d = tbd_probe_real((uint32_t)insn->imm, a, r->reg[insn->b]); return true;
    case TBD_PROBE_TO_REAL: *d = tbd_probe_to_real((uint32_t)insn->imm, a); return true;
    case TBD_PROBE_VECTOR: *d = tbd_probe_vector((uint32_t)insn->imm, insn->b); return true;
    case TBD_PROBE_PAUSE:
        if (!__atomic_load_n(&r->session->shared->wants_end, __ATOMIC_ACQUIRE))
            tbd_sys3(__NR_tgkill, pid_of(r->hit), tid_of(r->hit), SIGSTOP);
        return true;
    case TBD_PROBE_CONTEXT: return read_context(r->hit, d);
    case TBD_PROBE_AWAIT: tbd_probe_await(r->session); return true;
    default: *d = compute((enum tbd_probe_op)insn->op, a, r->reg[insn->b]); return true;
    }
}

static bool run(struct running *r, const struct tbd_probe_insn *code, uint32_t count,
                uint32_t first)
{
    r->key_bytes = r->record_bytes = 0;
    memset(r->reg, 0, sizeof(r->reg));
    for (uint32_t at = first;; at++) {
        const struct tbd_probe_insn *insn = &code[at];

        TBD_INVARIANT("PROBE_CODE-1", at < count);
        if (insn->op == TBD_PROBE_END)
            return true;
        if (insn->op == TBD_PROBE_SKIP || (insn->op == TBD_PROBE_SKIP_ZERO && !r->reg[insn->a]))
            at += (uint32_t)insn->imm;
        else if (insn->op != TBD_PROBE_SKIP_ZERO && !execute(r, insn))
            return false;
    }
}

bool tbd_probe_run_code(struct tbd_probe_session *session, uint32_t code, struct tbd_probe_hit *hit)
{
    struct running r;

    r.session = session;
    r.hit = hit;
    return run(&r, session->code, session->code_count, code);
}

bool tbd_probe_value(const struct tbd_probe_insn *code, uint32_t count, uint32_t at,
                     struct tbd_probe_hit *hit, uint64_t *out)
{
    struct running r;
    bool is_known;

    r.session = NULL;
    r.hit = hit;
    is_known = run(&r, code, count, at);
    *out = r.reg[0];
    return is_known;
}
