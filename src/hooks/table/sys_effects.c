// SPDX-License-Identifier: MIT
/* sys_effects.c - the rules of the table: which bytes a call may write, and which it wrote
 *
 * One walk over the row's arguments serves both questions: it gives for each place the capacity
 * and, for a given result, the bytes written (struct tbd_sys_sink); the sink keeps one of the two.
 *
 * Invariants
 * SYS_EFFECTS-1  Every did-range lies inside one may-range: tbd_sys_emit() cuts it there. (not
 *     checked: test_syscalls does)
 * SYS_EFFECTS-2  Lengths that a call overwrites (addrlen, msg_controllen, ...) give the capacity
 *     only before the call; after it the capacity comes from the may-ranges.  (not checked:
 *     test_syscalls does)
 * SYS_EFFECTS-3  If any part may have been written (-EFAULT half-way, a place that moved because
 *     the call overwrote its own iovec array), the answer is all of the may-ranges: too much, never
 *     too little.  (not checked: test_syscalls does)
 * SYS_EFFECTS-4  Nothing here trusts an argument: counts are bounded by the kernel's own limits.
 *     (not checked: test_syscalls does)
 *
 * Contexts: any.
 */
#include "hooks/table/sys_table.h"

#include "base/layout.h"
#include "base/linux_abi.h"
#include "hooks/table/program_bytes.h"

/* The most that the kernel transfers in one call (MAX_RW_COUNT). */
#define TRANSFER_MAX 0x7ffff000ull
#define FD_SET_MAX   (1u << 20)

struct io_vector {
    uint64_t base;
    uint64_t bytes;
};

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint32_t tbd_sys_u32(uint64_t address)
{
    uint32_t value = 0;

    return tbd_copy_from_program(&value, address, sizeof(value)) ? value : 0;
}

uint64_t tbd_sys_u64(uint64_t address)
{
    uint64_t value = 0;

    return tbd_copy_from_program(&value, address, sizeof(value)) ? value : 0;
}

static void store_range(struct tbd_sys_sink *sink, uint64_t address, uint64_t bytes)
{
    if (bytes && sink->count < sink->max)
        sink->out[sink->count++] = (struct tbd_sys_range){ address, bytes };
}

/* The longest may-range that starts at `address`; 0 bytes if there is none. */
static uint64_t capacity_at(const struct tbd_sys_sink *sink, uint64_t address)
{
    uint64_t capacity = 0;

    for (size_t i = 0; i < sink->may_count; i++) {
        if (sink->may[i].address == address && sink->may[i].bytes > capacity)
            capacity = sink->may[i].bytes;
    }
    return capacity;
}

void tbd_sys_emit(struct tbd_sys_sink *sink, uint64_t address, uint64_t capacity, uint64_t written)
{
    if (address == 0 || address >= TBD_USER_END)
        return;
    if (!sink->after) {
        store_range(sink, address,
                    smaller(smaller(capacity, TRANSFER_MAX), TBD_USER_END - address));
        return;
    }
    if (written == 0)
        return;
    capacity = capacity_at(sink, address);
    if (capacity == 0)
        sink->lost = true;
    store_range(sink, address, smaller(written, capacity)); /* SYS_EFFECTS-1 */
}

void tbd_sys_emit_success(struct tbd_sys_sink *sink, uint64_t address, uint64_t bytes)
{
    tbd_sys_emit(sink, address, bytes, tbd_sys_succeeded(sink) ? bytes : 0);
}

void tbd_sys_emit_always(struct tbd_sys_sink *sink, uint64_t address, uint64_t bytes)
{
    tbd_sys_emit(sink, address, bytes, bytes);
}

/* a times b, at most TRANSFER_MAX. */
static uint64_t product(uint64_t a, uint64_t b)
{
    uint64_t value;

    return __builtin_mul_overflow(a, b, &value) ? TRANSFER_MAX : smaller(value, TRANSFER_MAX);
}

void tbd_sys_emit_result(struct tbd_sys_sink *sink, uint64_t address, uint64_t capacity,
                         uint64_t unit)
{
    uint64_t written = sink->result > 0 ? product((uint64_t)sink->result, unit) : 0;

    /* A result above the capacity is the full length of data that did not fit (MSG_TRUNC,
     * keyctl). */
    tbd_sys_emit(sink, address, capacity, written);
}

void tbd_sys_emit_iovec(struct tbd_sys_sink *sink, uint64_t array, uint64_t count, uint64_t total)
{
    struct io_vector v;

    for (uint64_t i = 0; i < count && i < UIO_MAXIOV; i++) {
        if (sink->after && total == 0)
            return;
        if (!tbd_copy_from_program(&v, array + i * sizeof(v), sizeof(v)))
            return;
        tbd_sys_emit(sink, v.base, v.bytes, smaller(v.bytes, total));
        total -= smaller(v.bytes, total);
    }
}

void tbd_sys_not_described(struct tbd_sys_sink *sink)
{
    sink->described = false;
}

void tbd_sys_cannot_wait(struct tbd_sys_sink *sink)
{
    sink->cannot_wait = true;
}

/* ---- the rules ---- */

/* Argument `length` as the kernel reads it. */
static uint64_t length_of(const struct tbd_sys_arg *arg, const uint64_t *args)
{
    uint64_t value = args[arg->length];

    if (arg->width == TBD_WIDTH_U32)
        return (uint32_t)value;
    if (arg->width == TBD_WIDTH_I32)
        return (int32_t)value > 0 ? (uint32_t)value : 0;
    return value;
}

static bool is_due(const struct tbd_sys_sink *sink, const struct tbd_sys_arg *arg)
{
    switch ((enum tbd_sys_when)arg->when) {
    case TBD_WHEN_SUCCESS: return sink->result >= 0;
    case TBD_WHEN_POSITIVE: return sink->result > 0;
    case TBD_WHEN_EINTR: return sink->result == -EINTR;
    case TBD_WHEN_RESULT_OR_EINTR: return sink->result >= 0 || sink->result == -EINTR;
    case TBD_WHEN_ALWAYS: return true;
    }
    return true;
}

static void emit_block(struct tbd_sys_sink *sink, const struct tbd_sys_arg *arg, uint64_t address,
                       uint64_t bytes)
{
    tbd_sys_emit(sink, address, bytes, is_due(sink, arg) ? bytes : 0);
}

/* *length is the capacity before the call, and the real length after it. */
static void emit_length(struct tbd_sys_sink *sink, const struct tbd_sys_arg *arg, uint64_t address,
                        uint64_t length)
{
    uint32_t bytes = tbd_sys_u32(length);

    emit_block(sink, arg, address, bytes & 0x80000000u ? 0 : bytes);
}

static uint64_t fd_set_bytes(uint64_t descriptors)
{
    return (smaller(descriptors, FD_SET_MAX) + 63) / 64 * 8;
}

static void emit_other(struct tbd_sys_sink *sink, unsigned which, const uint64_t *args)
{
    switch ((enum tbd_sys_other)which) {
#define X(name)                                                                                    \
    case TBD_OTHER_##name: tbd_effect_##name(sink, args); break;
        TBD_SYS_OTHERS(X)
#undef X
    case TBD_OTHER_COUNT: break;
    }
}

static void emit_argument(struct tbd_sys_sink *sink, const struct tbd_sys_arg *arg, unsigned index)
{
    const uint64_t *args = sink->call->args;
    uint64_t address = args[index];
    uint64_t length = length_of(arg, args);
    uint64_t result = sink->result > 0 ? (uint64_t)sink->result : 0;

    switch ((enum tbd_sys_effect)arg->effect) {
    case TBD_EFFECT_NONE: break;
    case TBD_EFFECT_FIXED: emit_block(sink, arg, address, arg->unit); break;
    case TBD_EFFECT_ARRAY: emit_block(sink, arg, address, product(length, arg->unit)); break;
    case TBD_EFFECT_RESULT:
        tbd_sys_emit_result(sink, address, product(length, arg->unit), arg->unit);
        break;
    case TBD_EFFECT_LENGTH: emit_length(sink, arg, address, args[arg->length]); break;
    case TBD_EFFECT_FD_SET: emit_block(sink, arg, address, fd_set_bytes(length)); break;
    case TBD_EFFECT_IOVEC: tbd_sys_emit_iovec(sink, address, length, result); break;
    case TBD_EFFECT_OTHER: emit_other(sink, arg->unit, args); break;
    }
}

/* False if there is no row. */
static bool walk(struct tbd_sys_sink *sink)
{
    const struct tbd_sys_row *row = tbd_sys_row(sink->call->number);

    if (!row)
        return false;
    for (unsigned i = 0; i < 6 && row->args[i].show != TBD_SHOW_NONE; i++) {
        if (row->args[i].effect != TBD_EFFECT_NONE)
            emit_argument(sink, &row->args[i], i);
    }
    return true;
}

bool tbd_syscall_is_described(const struct tbd_sys_call *call)
{
    struct tbd_sys_sink sink = { .call = call, .described = true };

    return walk(&sink) && sink.described && tbd_syscall_mode(call->number) != TBD_SYS_UNKNOWN;
}

bool tbd_syscall_may_wait(const struct tbd_sys_call *call)
{
    struct tbd_sys_range one;
    struct tbd_sys_sink sink = { .call = call, .out = &one, .max = 1 };
    const struct tbd_sys_row *row = tbd_sys_row(call->number);

    if (!row || !(row->flags & TBD_SYS_BLOCKS))
        return false;
    for (unsigned i = 0; i < 6; i++)
        if (row->args[i].effect == TBD_EFFECT_OTHER)
            emit_other(&sink, row->args[i].unit, call->args);
    return !sink.cannot_wait;
}

size_t tbd_syscall_may_write(const struct tbd_sys_call *call, struct tbd_sys_range *out, size_t max)
{
    struct tbd_sys_sink sink = { .call = call, .out = out, .max = max };

    walk(&sink);
    return sink.count;
}

static size_t copy_all(const struct tbd_sys_range *may, size_t may_count, struct tbd_sys_range *out,
                       size_t max)
{
    size_t count = may_count < max ? may_count : max;

    for (size_t i = 0; i < count; i++)
        out[i] = may[i];
    return count;
}

size_t tbd_syscall_did_write(const struct tbd_sys_call *call, int64_t result,
                             const struct tbd_sys_range *may, size_t may_count,
                             struct tbd_sys_range *out, size_t max)
{
    struct tbd_sys_sink sink = { .call = call,
                                 .after = true,
                                 .result = result,
                                 .may = may,
                                 .may_count = may_count,
                                 .out = out,
                                 .max = max };

    if (result == -EFAULT)
        return copy_all(may, may_count, out, max); /* SYS_EFFECTS-3 */
    walk(&sink);
    if (sink.lost)
        return copy_all(may, may_count, out, max); /* SYS_EFFECTS-3 */
    return sink.count;
}
