// SPDX-License-Identifier: MIT
/* sys_file.c - effects of calls on files and mounts that no rule of the table states
 *
 * Each function gives the sink every place that the kernel may write, and how much of it was
 * written according to the result.  Offsets are those of the kernel's structures on x86-64.
 * Contexts: any.
 */
#include "hooks/table/sys_table.h"

#include "base/linux_abi.h"
#include "hooks/table/program_bytes.h"

/* ---- fcntl ---- */

void tbd_effect_fcntl(struct tbd_sys_sink *sink, const uint64_t *args)
{
    switch ((uint32_t)args[1]) {
    case F_GETLK:
    case F_OFD_GETLK: tbd_sys_emit_success(sink, args[2], 32); break;
    case F_GETOWN_EX:
    case F_GETOWNER_UIDS:
    case F_GET_RW_HINT:
    case F_GET_FILE_RW_HINT:
    case F_GETDELEG: tbd_sys_emit_success(sink, args[2], 8); break;
    default: break; /* all other commands take or return numbers */
    }
}

/* ---- names, mounts, attributes ---- */

#define HANDLE_MAX 128 /* MAX_HANDLE_SZ of the kernel */

/* struct file_handle: uint32_t handle_bytes (in: capacity, out: length), int type, bytes. */
void tbd_effect_name_to_handle_at(struct tbd_sys_sink *sink, const uint64_t *args)
{
    uint32_t bytes = tbd_sys_u32(args[2]);
    bool told = tbd_sys_succeeded(sink) || sink->result == -EOVERFLOW;
    uint64_t id_bytes = args[4] & AT_HANDLE_MNT_ID_UNIQUE ? 8 : 4;

    if (bytes > HANDLE_MAX)
        bytes = HANDLE_MAX;
    tbd_sys_emit(sink, args[2], 8 + (uint64_t)bytes,
                 tbd_sys_succeeded(sink) ? 8 + (uint64_t)bytes : (told ? 8 : 0));
    tbd_sys_emit(sink, args[3], id_bytes, told ? id_bytes : 0);
}

/* sysfs(2, index, name): only the kernel knows the name's length. */
void tbd_effect_sysfs(struct tbd_sys_sink *sink, const uint64_t *args)
{
    char name[64];
    uint64_t bytes = 0;

    if ((uint32_t)args[0] != 2)
        return;
    while (bytes < sizeof(name) && tbd_copy_from_program(&name[bytes], args[2] + bytes, 1)) {
        if (name[bytes++] == '\0')
            break;
    }
    tbd_sys_emit(sink, args[2], sizeof(name), tbd_sys_succeeded(sink) ? bytes : 0);
}

/* struct statmount begins with its own length; names follow it in the same buffer. */
void tbd_effect_statmount(struct tbd_sys_sink *sink, const uint64_t *args)
{
    tbd_sys_emit(sink, args[1], args[2], tbd_sys_succeeded(sink) ? tbd_sys_u32(args[1]) : 0);
}

/* struct xattr_args: uint64_t value, uint32_t size, uint32_t flags. */
void tbd_effect_getxattrat(struct tbd_sys_sink *sink, const uint64_t *args)
{
    tbd_sys_emit_result(sink, tbd_sys_u64(args[4]), tbd_sys_u32(args[4] + 8), 1);
}

/* ---- pipes ---- */

/* At the reading end of a pipe; at the other one the kernel reads, so these buffers are never
 * exchanged for others (hooks/calls/exchange.c). */
void tbd_effect_vmsplice(struct tbd_sys_sink *sink, const uint64_t *args)
{
    tbd_sys_emit_iovec(sink, args[1], args[2], sink->result > 0 ? (uint64_t)sink->result : 0);
}

/* ---- quotas ---- */

/* What the command in the upper 24 bits writes. */
static uint64_t quota_bytes(uint32_t command)
{
    switch (command >> 8) {
    case Q_GETFMT: return 4;
    case Q_GETINFO: return sizeof(struct if_dqinfo);
    case Q_GETQUOTA: return sizeof(struct if_dqblk);
    case Q_GETNEXTQUOTA: return sizeof(struct if_nextdqblk);
    case Q_XGETQUOTA:
    case Q_XGETNEXTQUOTA: return sizeof(struct fs_disk_quota);
    case Q_XGETQSTAT: return sizeof(struct fs_quota_stat);
    case Q_XGETQSTATV: return sizeof(struct fs_quota_statv);
    default: return 0;
    }
}

void tbd_effect_quotactl(struct tbd_sys_sink *sink, const uint64_t *args)
{
    tbd_sys_emit_success(sink, args[3], quota_bytes((uint32_t)args[0]));
}

void tbd_effect_quotactl_fd(struct tbd_sys_sink *sink, const uint64_t *args)
{
    tbd_sys_emit_success(sink, args[3], quota_bytes((uint32_t)args[1]));
}
