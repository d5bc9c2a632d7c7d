// SPDX-License-Identifier: MIT
/* exchange.c - see exchange.h
 *
 * Plain arguments, and the buffers of an iovec or a message header, are replaced by copies; after
 * the call the copies are written back, and the old bytes are taken then.  Some pointers cannot be
 * replaced: a futex, because the word itself is shared, and parts that are not writable.  There the
 * kernel writes in place, and the old bytes are from before the call.
 *
 * EXCHANGE-1  After a call that failed, or whose transfer a bad page may have ended, the result does not
 *     say what was written: what differs was.  So copies begin with the program's bytes where that can
 *     happen. (not checked: test/programs/call_table.c does)
 *
 * Context: APP. */
#include "hooks/calls/exchange.h"

#include "base/layout.h"
#include "base/linux_abi.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/memory/shared.h"
#include "hooks/memory/userfault.h"
#include "hooks/table/sys_table.h"
#include "hooks/threads/page_wait.h"

enum {
    IOVEC_BYTES = 16,
    MSGHDR_BYTES = 56,
    MMSGHDR_BYTES = 64,
    MMSGHDR_MAX = 1024, /* the kernel takes no more */
    MSGHDR_NAME = 0,
    MSGHDR_VECTORS = 16,
    MSGHDR_COUNT = 24,
    MSGHDR_CONTROL = 32,
};
#define LINE_BYTES   64u
#define DIRECT_LEAST 512u /* with blocks smaller than this no file bypasses the page cache */
#define KEPT_BYTES   (1ull << 20) /* of scratch memory; any more that was used is unmapped */

/* A place that the kernel may write, and where its bytes are during the call. */
struct tbd_written_place {
    uint64_t address;
    uint64_t bytes;
    uint8_t *copy; /* is_exchanged: the kernel reads and writes here; else the old bytes */
    bool is_exchanged;
    bool is_filled;    /* the copy began with the program's bytes */
    bool is_length;    /* tells how much was written to another place */
    bool is_userfault; /* others may have to fill pages of it (userfault.h) */
    bool is_done;      /* what was written to it is known */
};

/* ---- scratch memory ---- */

static uint64_t scratch_start(const struct tbd_saved_context *saved)
{
    return TBD_SCRATCH_BASE + saved->index * TBD_SCRATCH_BYTES;
}

/* Unmaps at the next call the memory that calls before it used for large buffers: the message of the
 * last one borrows from that.  What was mapped and not used costs nothing. */
static void trim_scratch(struct tbd_saved_context *saved)
{
    if (saved->scratch_used <= KEPT_BYTES)
        return;
    saved->scratch_used = 0;
    if (saved->scratch_bytes <= KEPT_BYTES)
        return;
    tbd_sys_munmap(scratch_start(saved) + KEPT_BYTES, saved->scratch_bytes - KEPT_BYTES);
    saved->scratch_bytes = KEPT_BYTES;
}

static bool map_scratch(struct tbd_saved_context *saved, uint64_t bytes)
{
    uint64_t start = scratch_start(saved);
    uint64_t there;

    bytes = (bytes + KEPT_BYTES - 1) & ~(KEPT_BYTES - 1);
    trim_scratch(saved);
    there = saved->scratch_bytes;
    if (bytes <= there)
        return true;
    if (bytes > TBD_SCRATCH_BYTES ||
        tbd_sys_mmap(start + there, bytes - there, TBD_PROT_RW, TBD_MAP_MEMORY | MAP_FIXED, -1,
                     0) != (long)(start + there))
        return false;
    tbd_sys_madvise(start + there, bytes - there, MADV_DONTDUMP);
    saved->scratch_bytes = bytes;
    return true;
}

static void *take(struct tbd_exchange *exchange, uint64_t bytes)
{
    uint8_t *at = exchange->at + (-tbd_sys_pointer(exchange->at) & (LINE_BYTES - 1));

    exchange->at = at + bytes;
    return at;
}

static uint64_t alignment_of(uint64_t bytes)
{
    return bytes < DIRECT_LEAST ? LINE_BYTES : TBD_PAGE_SIZE;
}

/* A copy has the same offset in its page, or its cache line, as the program's buffer: reads past
 * the page cache need aligned memory (open(2), O_DIRECT). */
static void *take_alike(struct tbd_exchange *exchange, const struct tbd_sys_range *range)
{
    uint64_t mask = alignment_of(range->bytes) - 1;
    uint8_t *at = exchange->at + ((range->address - tbd_sys_pointer(exchange->at)) & mask);

    exchange->at = at + range->bytes;
    return at;
}

/* ---- replaced pointers ---- */

/* The pages of a file's mapping end where the file does. */
static bool has_pages(const struct tbd_msg_region *map, uint64_t end)
{
    uint8_t last;

    return !map->inode ||
           tbd_copy_from_program(&last, (end < map->end ? end : map->end) - 1, sizeof(last));
}

static bool is_writable(uint64_t start, uint64_t bytes)
{
    uint64_t at = start;

    while (at < start + bytes) {
        const struct tbd_mapped_region *region = tbd_regions_find(&tbd_memory.regions, at);

        if (!region || !(region->map.prot & PROT_WRITE) || !has_pages(&region->map, start + bytes))
            return false;
        at = region->map.end;
    }
    return true;
}

static struct tbd_written_place *find_place(struct tbd_exchange *exchange, uint64_t address)
{
    for (size_t i = 0; i < exchange->count; i++)
        if (exchange->places[i].address == address && !exchange->places[i].is_exchanged)
            return &exchange->places[i];
    return NULL;
}

static bool fill(struct tbd_written_place *place)
{
    place->is_filled = tbd_copy_from_program(place->copy, place->address, place->bytes);
    return place->is_filled;
}

enum use { WRITTEN, READ_TOO };

/* Where the kernel finds the bytes that the program has at `address`: in the copy, if there is one.
 * (A page of a large buffer costs nothing until it is touched, so only the bytes that the kernel
 * reads are copied.) */
static uint64_t replace(struct tbd_exchange *exchange, uint64_t address, enum use use)
{
    struct tbd_written_place *place = find_place(exchange, address);

    if (!place || !is_writable(place->address, place->bytes) ||
        (place->is_userfault && !tbd_userfault_is_for_kernel()) ||
        (use == READ_TOO && !fill(place)))
        return address;
    place->is_exchanged = true;
    return tbd_sys_pointer(place->copy);
}

static uint64_t replace_iovec(struct tbd_exchange *exchange, uint64_t array, uint64_t count)
{
    uint64_t *copy;

    if (count > UIO_MAXIOV ||
        count * IOVEC_BYTES + LINE_BYTES > (uint64_t)(exchange->end - exchange->at))
        return array;
    copy = take(exchange, count * IOVEC_BYTES);
    if (!tbd_copy_from_program(copy, array, count * IOVEC_BYTES))
        return array;
    for (uint64_t i = 0; i < count; i++)
        if (copy[2 * i + 1])
            copy[2 * i] = replace(exchange, copy[2 * i], WRITTEN);
    return tbd_sys_pointer(copy);
}

static uint64_t field(const uint8_t *header, size_t at)
{
    uint64_t value;

    memcpy(&value, header + at, sizeof(value));
    return value;
}

static void set_field(uint8_t *header, size_t at, uint64_t value)
{
    memcpy(header + at, &value, sizeof(value));
}

/* The copy of a header at `address`, of which the kernel writes lengths and flags, is `header`. */
static void replace_fields(struct tbd_exchange *exchange, uint64_t address, uint8_t *header,
                           size_t bytes)
{
    for (size_t i = 0; i < exchange->count; i++) {
        struct tbd_written_place *place = &exchange->places[i];

        if (place->address - address >= bytes || place->bytes > bytes)
            continue;
        place->copy = header + (place->address - address);
        place->is_exchanged = true;
        place->is_filled = true;
        place->is_length = true;
    }
    set_field(header, MSGHDR_NAME, replace(exchange, field(header, MSGHDR_NAME), WRITTEN));
    set_field(header, MSGHDR_CONTROL, replace(exchange, field(header, MSGHDR_CONTROL), WRITTEN));
    set_field(header, MSGHDR_VECTORS,
              replace_iovec(exchange, field(header, MSGHDR_VECTORS), field(header, MSGHDR_COUNT)));
}

/* `count` headers, each of `bytes` bytes. */
static uint64_t replace_messages(struct tbd_exchange *exchange, uint64_t address, uint64_t count,
                                 size_t bytes)
{
    uint64_t used = count < MMSGHDR_MAX ? count : MMSGHDR_MAX;
    uint8_t *headers = take(exchange, used * bytes);

    if (!tbd_copy_from_program(headers, address, used * bytes) ||
        !is_writable(address, used * bytes))
        return address;
    for (uint64_t i = 0; i < used; i++)
        replace_fields(exchange, address + i * bytes, headers + i * bytes, bytes);
    return tbd_sys_pointer(headers);
}

/* A negative length is refused after the data has been received (recvfrom). */
static void mark_length(struct tbd_exchange *exchange, uint64_t address)
{
    struct tbd_written_place *place = find_place(exchange, address);

    if (place)
        place->is_length = true;
    exchange->is_uncertain |= (tbd_sys_u32(address) & 0x80000000u) != 0;
}

static void replace_argument(struct tbd_exchange *exchange, unsigned index,
                             const struct tbd_sys_arg *arg)
{
    uint64_t *value = &exchange->sys.args[index];

    if (arg->effect == TBD_EFFECT_LENGTH)
        mark_length(exchange, exchange->sys.args[arg->length]); /* that argument comes later */
    switch ((enum tbd_sys_effect)arg->effect) {
    case TBD_EFFECT_RESULT:
    case TBD_EFFECT_LENGTH: *value = replace(exchange, *value, WRITTEN); break;
    case TBD_EFFECT_FIXED:
    case TBD_EFFECT_ARRAY:
    case TBD_EFFECT_FD_SET: *value = replace(exchange, *value, READ_TOO); break;
    case TBD_EFFECT_IOVEC:
        *value = replace_iovec(exchange, *value, exchange->sys.args[arg->length]);
        break;
    case TBD_EFFECT_OTHER:
        if (arg->unit == TBD_OTHER_recvmsg)
            *value = replace_messages(exchange, *value, 1, MSGHDR_BYTES);
        else if (arg->unit == TBD_OTHER_recvmmsg)
            *value =
                replace_messages(exchange, *value, (uint32_t)exchange->sys.args[2], MMSGHDR_BYTES);
        else if (arg->unit == TBD_OTHER_msgrcv)
            *value = replace(exchange, *value, WRITTEN);
        break;
    case TBD_EFFECT_NONE: break;
    }
}

static void replace_arguments(struct tbd_exchange *exchange)
{
    const struct tbd_sys_row *row = tbd_sys_row(exchange->sys.number);

    for (unsigned i = 0; row && i < 6 && row->args[i].show != TBD_SHOW_NONE; i++)
        if (exchange->sys.args[i])
            replace_argument(exchange, i, &row->args[i]);
}

/* ---- before ---- */

static bool is_userfault(const struct tbd_sys_range *range)
{
    uint64_t missing;

    return tbd_userfault_misses(range, true, &missing);
}

static void lay_out_places(struct tbd_exchange *exchange)
{
    for (size_t i = 0; i < exchange->count; i++) {
        struct tbd_sys_range range = exchange->may[i];

        exchange->places[i] = (struct tbd_written_place){ .address = range.address,
                                                          .bytes = range.bytes,
                                                          .copy = take_alike(exchange, &range),
                                                          .is_userfault = is_userfault(&range) };
    }
}

/* With MSG_TRUNC a stream's bytes are counted, and not written (tcp(7)). */
static bool counts_only(const struct tbd_sys_call *sys)
{
    switch (sys->number) {
    case __NR_recvfrom: return sys->args[3] & MSG_TRUNC;
    case __NR_recvmsg: return sys->args[2] & MSG_TRUNC;
    case __NR_recvmmsg: return sys->args[3] & MSG_TRUNC;
    default: return false;
    }
}

/* Can the call stop at a page that is not writable, or not write what it counts? */
static bool is_uncertain(const struct tbd_exchange *exchange)
{
    for (size_t i = 0; i < exchange->count; i++)
        if (!exchange->places[i].is_exchanged &&
            !is_writable(exchange->places[i].address, exchange->places[i].bytes))
            return true;
    return exchange->is_uncertain || counts_only(&exchange->sys);
}

/* Others may have written shared memory while the call waited: its old bytes are those of the log by now. */
static void renew_shared(const struct tbd_written_place *place)
{
    for (uint64_t done = 0, part; done < place->bytes; done += part) {
        uint64_t at = place->address + done;

        part = TBD_PAGE_SIZE - at % TBD_PAGE_SIZE;
        part = part < place->bytes - done ? part : place->bytes - done;
        if (tbd_shared_holds(at, at + part))
            (void)tbd_shared_read(place->copy + done, at, part);
    }
}

static size_t read_old(const struct tbd_written_place *place)
{
    return tbd_shared_holds(place->address, place->address + place->bytes)
               ? tbd_shared_read(place->copy, place->address, place->bytes)
               : tbd_copy_prefix_from_program(place->copy, place->address, place->bytes);
}

/* Saves the old bytes of places that could not be replaced, as far as they are readable.  A look at
 * an unreadable page costs a fault, and vectors have a thousand places: one look a page is enough. */
static void save_places(struct tbd_exchange *exchange)
{
    uint64_t unreadable = UINT64_MAX;

    for (size_t i = 0; i < exchange->count; i++) {
        struct tbd_written_place *place = &exchange->places[i];
        uint64_t page = place->address / TBD_PAGE_SIZE;

        if (!place->is_exchanged) {
            place->bytes = page == unreadable ? 0 : read_old(place);
            unreadable = place->bytes ? unreadable : page;
        } else if (exchange->is_uncertain && !place->is_filled)
            fill(place);
    }
}

static bool is_plain(const struct tbd_sys_row *row)
{
    for (unsigned i = 0; i < 6; i++)
        if (row->args[i].effect == TBD_EFFECT_IOVEC || row->args[i].effect == TBD_EFFECT_OTHER)
            return false;
    return true;
}

/* Arguments that share bytes cannot have a copy each. */
static bool share_bytes(const struct tbd_sys_call *sys, const struct tbd_sys_range *may,
                        size_t count)
{
    const struct tbd_sys_row *row = tbd_sys_row(sys->number);

    if (!row || !is_plain(row))
        return false;
    for (unsigned i = 0; i < 6; i++)
        for (unsigned j = 0; j < i; j++)
            if (row->args[i].effect && row->args[j].effect && sys->args[i] &&
                sys->args[i] == sys->args[j])
                return true;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (may[i].address < may[j].address + may[j].bytes &&
                may[j].address < may[i].address + may[i].bytes)
                return true;
    return false;
}

static uint64_t scratch_needed(const struct tbd_sys_range *may, size_t count)
{
    /* each vector of a message names a place, or is empty */
    uint64_t bytes =
        2 * (UIO_MAXIOV * IOVEC_BYTES + LINE_BYTES) + MMSGHDR_MAX * (MMSGHDR_BYTES + LINE_BYTES);

    bytes += count * (IOVEC_BYTES + LINE_BYTES);
    bytes += count * (sizeof(struct tbd_written_place) + 2 * sizeof(*may)) + 3 * LINE_BYTES;
    for (size_t i = 0; i < count; i++)
        bytes += may[i].bytes + alignment_of(may[i].bytes);
    return bytes;
}

bool tbd_exchange_prepare(const struct tbd_call *call, struct tbd_exchange *exchange)
{
    struct tbd_sys_range may[TBD_SYS_MAX_RANGES];
    size_t count = tbd_syscall_may_write(&call->sys, may, TBD_SYS_MAX_RANGES);
    struct tbd_saved_context *saved = tbd_threads.holder;

    if (count == TBD_SYS_MAX_RANGES || share_bytes(&call->sys, may, count) ||
        !map_scratch(saved, scratch_needed(may, count)))
        return false;
    *exchange = (struct tbd_exchange){
        .saved = saved,
        .sys = call->sys,
        .count = count,
        .at = (uint8_t *)scratch_start(saved),
        .end = (uint8_t *)scratch_start(saved) + saved->scratch_bytes,
    };
    exchange->may = take(exchange, count * sizeof(*may));
    exchange->did = take(exchange, count * sizeof(*may));
    exchange->places = take(exchange, count * sizeof(*exchange->places));
    memcpy(exchange->may, may, count * sizeof(*may));
    lay_out_places(exchange);
    replace_arguments(exchange);
    exchange->is_uncertain = is_uncertain(exchange);
    save_places(exchange);
    return true;
}

/* ---- after ---- */

/* Vectors may name the same memory again and again: what was written comes in the order of the
 * places. */
static const struct tbd_written_place *next_place(const struct tbd_exchange *exchange,
                                                  const struct tbd_sys_range *range)
{
    for (size_t i = 0; i < exchange->count; i++) {
        struct tbd_written_place *place = &exchange->places[i];

        if (place->address != range->address || exchange->may[i].bytes < range->bytes ||
            place->is_done)
            continue;
        place->is_done = true;
        return place;
    }
    return NULL;
}

/* The lengths that the kernel has set tell the table how much of the other places was written: they
 * are copied first. */
static void copy_lengths(const struct tbd_exchange *exchange, struct tbd_call *call,
                         bool is_recorded)
{
    for (size_t i = 0; i < exchange->count; i++) {
        const struct tbd_written_place *place = &exchange->places[i];

        if (!place->is_exchanged || !place->is_length)
            continue;
        if (is_recorded)
            tbd_effects_watch(call->effects, &exchange->may[i], 1);
        tbd_copy_to_program(place->address, place->copy, place->bytes);
    }
}

static size_t find_written(const struct tbd_exchange *exchange, const struct tbd_call *call)
{
    return tbd_syscall_did_write(&call->sys, call->result, exchange->may, exchange->count,
                                 exchange->did, exchange->count);
}

/* The old bytes of shared memory are those of the log by now, whoever wrote them. */
static void record_in_place(struct tbd_call *call, const struct tbd_written_place *place,
                            uint64_t bytes)
{
    struct tbd_sys_range range = { place->address, bytes < place->bytes ? bytes : place->bytes };

    if (!tbd_shared_holds(range.address, range.address + range.bytes)) {
        tbd_effects_add(call->effects, range.address, place->copy, range.bytes);
        return;
    }
    tbd_effects_watch(call->effects, &range, 1);
    tbd_effects_written(call->effects, &range, 1);
}

/* First records the bytes with which others filled its pages. */
static void adopt(struct tbd_call *call, const struct tbd_sys_range *range)
{
    uint32_t others = 0;

    tbd_userfault_adopt(call->effects, range, &others);
}

static void copy_back(const struct tbd_written_place *place, const struct tbd_sys_range *range,
                      struct tbd_call *call)
{
    adopt(call, range);
    tbd_effects_watch(call->effects, range, 1);
    tbd_copy_to_program(range->address, place->copy, range->bytes);
}

/* From the first byte that the kernel has changed in the copy to the last; nothing if none has. */
static struct tbd_sys_range changed_part(const struct tbd_written_place *place)
{
    uint8_t now[256];
    uint64_t first = place->bytes, last = 0;

    for (uint64_t done = 0, part; done < place->bytes; done += part) {
        part = place->bytes - done < sizeof(now) ? place->bytes - done : sizeof(now);
        if (!tbd_copy_from_program(now, place->address + done, part))
            break;
        for (uint64_t i = 0; i < part; i++)
            if (now[i] != place->copy[done + i]) {
                first = first < done + i ? first : done + i;
                last = done + i + 1;
            }
    }
    return (struct tbd_sys_range){ place->address + first, last > first ? last - first : 0 };
}

/* EXCHANGE-1 */
static void complete_by_comparison(const struct tbd_exchange *exchange, struct tbd_call *call)
{
    for (size_t i = 0; i < exchange->count; i++) {
        const struct tbd_written_place *place = &exchange->places[i];
        struct tbd_written_place part = *place;
        struct tbd_sys_range changed;

        if (!place->is_exchanged) {
            renew_shared(place);
            tbd_effects_add_changed(call->effects, place->address, place->copy, place->bytes);
        }
        if (!place->is_exchanged || !place->is_filled)
            continue;
        changed = changed_part(place);
        part.copy += changed.bytes ? changed.address - place->address : 0;
        if (changed.bytes)
            copy_back(&part, &changed, call);
        tbd_effects_written(call->effects, &changed, 1);
    }
}

static void complete_by_result(const struct tbd_exchange *exchange, struct tbd_call *call)
{
    size_t count;

    copy_lengths(exchange, call, true);
    count = find_written(exchange, call);
    for (size_t i = 0; i < count; i++) {
        const struct tbd_sys_range *range = &exchange->did[i];
        const struct tbd_written_place *place = next_place(exchange, range);

        if (place && !place->is_exchanged)
            record_in_place(call, place, range->bytes);
        if (!place || !place->is_exchanged)
            continue;
        if (!place->is_length)
            copy_back(place, range, call);
        tbd_effects_written(call->effects, range, 1);
    }
}

/* A page at each end of every place, and what the result counts. */
static void note_used(const struct tbd_exchange *exchange, int64_t result)
{
    uint64_t most = exchange->saved->scratch_bytes;
    uint64_t used = exchange->count * 2 * TBD_PAGE_SIZE + (result > 0 ? (uint64_t)result : 0);

    exchange->saved->scratch_used += exchange->is_uncertain || used > most ? most : used;
}

void tbd_exchange_complete(const struct tbd_exchange *exchange, struct tbd_call *call)
{
    note_used(exchange, call->result);
    if (tbd_sys_failed(call->result) || exchange->is_uncertain)
        complete_by_comparison(exchange, call);
    else
        complete_by_result(exchange, call);
}

void tbd_exchange_complete_natively(const struct tbd_exchange *exchange, struct tbd_call *call)
{
    bool is_certain = !tbd_sys_failed(call->result) && !exchange->is_uncertain;
    size_t count;

    if (is_certain)
        copy_lengths(exchange, call, false);
    count = is_certain ? find_written(exchange, call) : 0;
    for (size_t i = 0; i < count; i++) {
        const struct tbd_written_place *place = next_place(exchange, &exchange->did[i]);

        if (place && place->is_exchanged && !place->is_length)
            tbd_copy_to_program(place->address, place->copy, exchange->did[i].bytes);
    }
    for (size_t i = 0; !is_certain && i < exchange->count; i++)
        if (exchange->places[i].is_exchanged && exchange->places[i].is_filled)
            tbd_copy_to_program(exchange->places[i].address, exchange->places[i].copy,
                                exchange->places[i].bytes);
}

bool tbd_exchange_is_whole(const struct tbd_exchange *exchange)
{
    for (size_t i = 0; i < exchange->count; i++)
        if (!exchange->places[i].is_exchanged)
            return false;
    return !exchange->is_uncertain;
}

/* As many as a call that returns a length can have written. */
void tbd_exchange_fill(const struct tbd_exchange *exchange, const struct tbd_call *call)
{
    for (size_t i = 0; call->result >= 0 && i < exchange->count; i++) {
        const struct tbd_written_place *place = &exchange->places[i];
        uint64_t most = call->result ? (uint64_t)call->result : TBD_PAGE_SIZE;

        if (place->is_userfault && place->is_exchanged)
            tbd_page_fill(exchange->saved, place->address,
                          place->bytes < most ? place->bytes : most);
    }
}
