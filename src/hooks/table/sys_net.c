// SPDX-License-Identifier: MIT
/* sys_net.c - effects of calls with message headers, and of System V messages
 *
 *     struct msghdr    0 name, 8 namelen (int), 16 iov, 24 iovlen, 32 control, 40 controllen, 48 flags
 *     struct mmsghdr   a msghdr, 56 len (uint32_t), padded to 64
 *
 * The kernel writes the name, its length, the data, the control area, its length and the flags; the
 * pointers stay.  Contexts: any.
 */
#include "hooks/table/sys_table.h"

#include "base/linux_abi.h"
#include "hooks/table/program_bytes.h"

#define SOCKADDR_MAX 128
#define MMSG_BYTES   64
#define MMSG_MAX     1024

struct message_header {
    uint64_t name;
    uint32_t name_bytes;
    uint32_t padding;
    uint64_t vectors;
    uint64_t vector_count;
    uint64_t control;
    uint64_t control_bytes;
    uint32_t flags;
    uint32_t padding2;
};
_Static_assert(sizeof(struct message_header) == 56, "struct msghdr of the kernel");

/* A message header at `address`, with `bytes` bytes of received data; negative: none.  False: there is
 * no header. */
static bool emit_message(struct tbd_sys_sink *sink, uint64_t address, int64_t bytes)
{
    struct message_header h;
    bool arrived = bytes >= 0;
    uint64_t name_bytes;

    if (!tbd_copy_from_program(&h, address, sizeof(h)))
        return false;
    name_bytes = h.name_bytes < SOCKADDR_MAX ? h.name_bytes : SOCKADDR_MAX;
    tbd_sys_emit(sink, h.name, name_bytes, arrived ? name_bytes : 0);
    tbd_sys_emit(sink, h.control, h.control_bytes, arrived ? h.control_bytes : 0);
    tbd_sys_emit(sink, address + 8, 4, arrived && h.name ? 4 : 0);
    tbd_sys_emit(sink, address + 40, 12, arrived ? 12 : 0); /* controllen and flags */
    tbd_sys_emit_iovec(sink, h.vectors, h.vector_count, arrived ? (uint64_t)bytes : 0);
    return true;
}

void tbd_effect_recvmsg(struct tbd_sys_sink *sink, const uint64_t *args)
{
    emit_message(sink, args[1], sink->result);
}

void tbd_effect_recvmmsg(struct tbd_sys_sink *sink, const uint64_t *args)
{
    uint32_t count = (uint32_t)args[2];

    for (uint32_t i = 0; i < count && i < MMSG_MAX; i++) {
        uint64_t header = args[1] + (uint64_t)i * MMSG_BYTES;
        bool arrived = (int64_t)i < sink->result;

        if (!emit_message(sink, header, arrived ? (int64_t)tbd_sys_u32(header + 56) : -1))
            return; /* the kernel stops there too */
        tbd_sys_emit(sink, header + 56, 4, arrived ? 4 : 0);
    }
}

void tbd_effect_sendmmsg(struct tbd_sys_sink *sink, const uint64_t *args)
{
    uint32_t count = (uint32_t)args[2];

    for (uint32_t i = 0; i < count && i < MMSG_MAX; i++)
        tbd_sys_emit(sink, args[1] + (uint64_t)i * MMSG_BYTES + 56, 4,
                     (int64_t)i < sink->result ? 4 : 0);
}

/* ---- options ---- */

/* The counters that a table of netfilter had are written where the new table says: struct ipt_replace,
 * struct arpt_replace, struct ebt_replace have their number and address at these offsets. */
#define COUNTER_BYTES 16u
#define COUNTERS_MAX  (1u << 20)

static void emit_counters(struct tbd_sys_sink *sink, uint64_t number, uint64_t address)
{
    uint32_t count = tbd_sys_u32(number);

    tbd_sys_emit_success(sink, tbd_sys_u64(address),
                         (count < COUNTERS_MAX ? count : 0) * (uint64_t)COUNTER_BYTES);
}

void tbd_effect_setsockopt(struct tbd_sys_sink *sink, const uint64_t *args)
{
    enum { TABLES = 64, ARP_TABLES = 96, BRIDGE_TABLES = 128 };
    uint32_t level = (uint32_t)args[1];

    if (level != SOL_IP && level != SOL_IPV6)
        return;
    switch ((uint32_t)args[2]) {
    case TABLES: emit_counters(sink, args[3] + 84, args[3] + 88); break;
    case ARP_TABLES: emit_counters(sink, args[3] + 68, args[3] + 72); break;
    case BRIDGE_TABLES: emit_counters(sink, args[3] + 96, args[3] + 104); break;
    default: break;
    }
}

/* Capacity and length are in bytes, but for a filter in instructions. */
void tbd_effect_getsockopt(struct tbd_sys_sink *sink, const uint64_t *args)
{
    bool is_filter = (uint32_t)args[1] == SOL_SOCKET && (uint32_t)args[2] == SO_GET_FILTER;
    uint32_t length = tbd_sys_u32(args[4]);

    tbd_sys_emit_success(sink, args[3],
                         length & 0x80000000u ? 0 : length * (is_filter ? 8ull : 1ull));
}

/* msgrcv: a long for the type, then `result` bytes. */
void tbd_effect_msgrcv(struct tbd_sys_sink *sink, const uint64_t *args)
{
    uint64_t capacity = args[2] < UINT32_MAX ? args[2] : UINT32_MAX;

    tbd_sys_emit(sink, args[1], 8 + capacity, sink->result >= 0 ? 8 + (uint64_t)sink->result : 0);
}
