// SPDX-License-Identifier: MIT
/* sys_ioctl.c - effects of ioctl by command: rows of ioctls.def, commands with a capacity in their
 * argument, else by encoding
 *
 * A command encodes direction (bits 30-31), size (16-29), type (8-15) and number (0-7); older
 * commands do not.  The size says nothing about pointers inside the argument, so a command known by
 * its encoding alone is not described.  Contexts: any.
 */
#include "hooks/table/sys_ioctl.h"

#include "base/linux_abi.h"
#include "hooks/table/sys_table.h"

#include "hooks/table/program_bytes.h"

struct ioctl_row {
    uint32_t command;
    uint32_t bytes;
    const char *name;
};

static const struct ioctl_row rows[] = {
#define X(number, word, size) { .command = (number), .bytes = (size), .name = #word },
#include "hooks/table/ioctls.def"
#undef X
};

static const struct ioctl_row *find_row(uint32_t command)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].command == command)
            return &rows[i];
    }
    return NULL;
}

const char *tbd_sys_ioctl_name(uint32_t command)
{
    const struct ioctl_row *row = find_row(command);

    return row ? row->name : NULL;
}

/* ---- commands whose argument states its capacity ---- */

/* struct ifconf: int length (in: capacity, out: used), pointer at 8. */
static void emit_ifconf(struct tbd_sys_sink *sink, uint64_t argument)
{
    uint32_t bytes = tbd_sys_u32(argument);

    tbd_sys_emit_success(sink, argument, 4);
    tbd_sys_emit_success(sink, tbd_sys_u64(argument + 8), bytes & 0x80000000u ? 0 : bytes);
}

/* struct fiemap: 32 bytes, mapped extents at 20, capacity in extents at 24; 56 bytes each. */
static void emit_fiemap(struct tbd_sys_sink *sink, uint64_t argument)
{
    uint64_t capacity = 32 + 56 * (uint64_t)tbd_sys_u32(argument + 24);
    uint64_t written = 32;

    if (sink->after && tbd_sys_succeeded(sink) && capacity > 32)
        written += 56 * (uint64_t)tbd_sys_u32(argument + 20);
    tbd_sys_emit(sink, argument, capacity, written); /* the header after failures too */
}

/* struct file_dedupe_range: 24 bytes, count (uint16_t) at 16; 32 bytes each. */
static void emit_dedupe(struct tbd_sys_sink *sink, uint64_t argument)
{
    tbd_sys_emit_success(sink, argument, 24 + 32 * (uint64_t)(tbd_sys_u32(argument + 16) & 0xffff));
}

/* struct sg_io_hdr: direction at 4, capacity of sense at 9, of data at 12, data at 16, sense at
 * 32. */
static void emit_sg_io(struct tbd_sys_sink *sink, uint64_t argument)
{
    const uint32_t reads = 0xfffffffd; /* SG_DXFER_FROM_DEV, -4 is both ways */
    uint32_t direction = tbd_sys_u32(argument + 4);
    uint32_t sense = tbd_sys_u32(argument + 8) >> 8 & 0xff;

    tbd_sys_emit_success(sink, argument, 88);
    if (direction == reads || direction == reads - 1)
        tbd_sys_emit_success(sink, tbd_sys_u64(argument + 16), tbd_sys_u32(argument + 12));
    tbd_sys_emit_success(sink, tbd_sys_u64(argument + 32), sense);
}

/* ---- the rest ---- */

static void emit_by_encoding(struct tbd_sys_sink *sink, uint32_t command, uint64_t argument)
{
    const uint32_t reads = 0x80000000u;

    tbd_sys_not_described(sink);
    if (command & reads)
        tbd_sys_emit_always(sink, argument, command >> 16 & 0x3fff);
}

#define SG_IO 0x2285u /* scsi/sg.h, which is not the kernel's */

void tbd_effect_ioctl(struct tbd_sys_sink *sink, const uint64_t *args)
{
    uint32_t command = (uint32_t)args[1];
    const struct ioctl_row *row = find_row(command);

    if (command == SIOCGIFCONF)
        emit_ifconf(sink, args[2]);
    else if (command == FS_IOC_FIEMAP)
        emit_fiemap(sink, args[2]);
    else if (command == FIDEDUPERANGE)
        emit_dedupe(sink, args[2]);
    else if (command == SG_IO)
        emit_sg_io(sink, args[2]);
    else if (row)
        tbd_sys_emit_success(sink, args[2], row->bytes);
    else
        emit_by_encoding(sink, command, args[2]);
    /* A command that waits does not write.  One that does both would write at a time that is not
     * known. */
    if (sink->count)
        tbd_sys_cannot_wait(sink);
}
