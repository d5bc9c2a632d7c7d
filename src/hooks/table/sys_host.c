// SPDX-License-Identifier: MIT
/* sys_host.c - tbd_copy_from_program() for ordinary processes: this process is the program
 *
 * The kernel copies, so that a bad pointer is an error and not a fault.  Tests use it; the engine
 * has its own (hooks/memory/safe_copy.c).
 */
#include "hooks/table/program_bytes.h"

#include <sys/uio.h>
#include <unistd.h>

size_t tbd_copy_prefix_from_program(void *dst, uint64_t src, size_t bytes)
{
    struct iovec local = { .iov_base = dst, .iov_len = bytes };
    struct iovec remote = { .iov_base = (void *)(uintptr_t)src, .iov_len = bytes };
    ssize_t copied = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);

    return copied > 0 ? (size_t)copied : 0;
}

bool tbd_copy_from_program(void *dst, uint64_t src, size_t bytes)
{
    return tbd_copy_prefix_from_program(dst, src, bytes) == bytes;
}
