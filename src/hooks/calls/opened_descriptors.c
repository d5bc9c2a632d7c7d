// SPDX-License-Identifier: MIT
/* opened_descriptors.c - see opened_descriptors.h
 *
 * It costs one system call for each that opens, four for each that connects, and three at the start. */
#include "hooks/calls/opened_descriptors.h"

#include "base/linux_abi.h"
#include "base/sys.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/stream/recording.h"
#include "hooks/table/syscalls.h"

#include <linux/stat.h> /* struct statx */

/* The kernel's device number, as fstat(2) gives it. */
static uint64_t device_of(const struct statx *status)
{
    uint64_t major = status->stx_dev_major, minor = status->stx_dev_minor;

    return (minor & 0xff) | (major & 0xfff) << 8 | (minor & ~0xffull) << 12 |
           (major & ~0xfffull) << 32;
}

static bool ask_file(struct tbd_msg_opened *what)
{
    struct statx status;

    if (tbd_sys_failed(tbd_sys6(__NR_statx, what->descriptor, tbd_sys_pointer(""), AT_EMPTY_PATH,
                                STATX_TYPE | STATX_INO | STATX_SIZE, tbd_sys_pointer(&status), 0)))
        return false;
    what->device = device_of(&status);
    what->inode = status.stx_ino;
    what->size = status.stx_size;
    what->mode = status.stx_mode;
    return true;
}

/* The length of the address, which may be cut; 0: there is none. */
static uint16_t ask_address(long number, uint64_t descriptor, uint8_t *address)
{
    uint32_t bytes = TBD_OPENED_ADDRESS_MAX;

    if (tbd_sys_failed(
            tbd_sys3(number, descriptor, tbd_sys_pointer(address), tbd_sys_pointer(&bytes))))
        return 0;
    return (uint16_t)(bytes < TBD_OPENED_ADDRESS_MAX ? bytes : TBD_OPENED_ADDRESS_MAX);
}

static uint32_t ask_option(uint64_t descriptor, uint64_t option)
{
    struct {
        uint32_t pid, uid, gid; /* struct ucred; SO_TYPE gives one number */
    } value = { 0 };
    uint32_t bytes = sizeof(value);

    if (tbd_sys_failed(tbd_sys6(__NR_getsockopt, descriptor, SOL_SOCKET, option,
                                tbd_sys_pointer(&value), tbd_sys_pointer(&bytes), 0)))
        return 0;
    return value.pid;
}

static bool accepts(uint64_t number)
{
    return number == __NR_accept || number == __NR_accept4;
}

/* A connection that is not made yet has no peer for the kernel: the call's argument says it. */
static void send_socket(const struct tbd_call *call, struct tbd_msg_opened *what)
{
    uint8_t addresses[2 * TBD_OPENED_ADDRESS_MAX];
    struct tbd_part parts[2] = { { what, sizeof(*what) }, { addresses, 0 } };
    uint8_t *peer;

    what->socket_type = (uint16_t)ask_option(what->descriptor, SO_TYPE);
    if (what->socket_type != SOCK_STREAM && what->socket_type != SOCK_SEQPACKET)
        return;
    what->local_bytes = ask_address(__NR_getsockname, what->descriptor, addresses);
    peer = addresses + what->local_bytes;
    what->peer_bytes = ask_address(__NR_getpeername, what->descriptor, peer);
    if (what->peer_bytes == 0 && call->sys.number == __NR_connect &&
        call->sys.args[2] <= TBD_OPENED_ADDRESS_MAX &&
        tbd_copy_from_program(peer, call->sys.args[1], call->sys.args[2]))
        what->peer_bytes = (uint16_t)call->sys.args[2];
    if (accepts(call->sys.number))
        what->peer = ask_option(what->descriptor, SO_PEERCRED);
    parts[1].bytes = (size_t)what->local_bytes + what->peer_bytes;
    tbd_ring_send(&tbd_recording.ring, call->thread, TBD_MSG_OPENED, parts, 2);
}

void tbd_opened_send_inherited(const struct tbd_call *call)
{
    struct tbd_msg_opened what = { .descriptor = 0 };
    struct tbd_part part = { &what, sizeof(what) };
    static bool is_sent; /* children of fork have their parent's trace for it */

    if (is_sent || !tbd_recording.is_on || tbd_recording.ring.discard)
        return;
    is_sent = true;
    for (uint32_t i = STDIN_FILENO; i <= STDERR_FILENO; i++) {
        what = (struct tbd_msg_opened){ .descriptor = i };
        if (ask_file(&what) && (what.mode & S_IFMT) == S_IFIFO)
            tbd_ring_send(&tbd_recording.ring, call->thread, TBD_MSG_OPENED, &part, 1);
    }
}

void tbd_opened_send(const struct tbd_call *call)
{
    bool connects = call->sys.number == __NR_connect;
    struct tbd_msg_opened what = { .descriptor = connects ? (uint32_t)call->sys.args[0]
                                                          : (uint32_t)call->result };
    struct tbd_part part = { &what, sizeof(what) };
    uint32_t type;

    if (!tbd_recording.is_on || tbd_recording.ring.discard ||
        (call->result < 0 && !(connects && call->result == -EINPROGRESS)) || !ask_file(&what))
        return;
    type = what.mode & S_IFMT;
    if (type == S_IFSOCK)
        send_socket(call, &what);
    else if (type == S_IFREG || type == S_IFIFO)
        tbd_ring_send(&tbd_recording.ring, call->thread, TBD_MSG_OPENED, &part, 1);
}
