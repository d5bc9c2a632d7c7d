// SPDX-License-Identifier: MIT
/* native_patch.c - see native_patch.h */
#include "patcher/native_patch.h"

#include "base/linux_abi.h"
#include "base/sys.h"

long tbd_native_open(void)
{
    return tbd_sys_open("/proc/self/mem", O_RDWR | O_CLOEXEC, 0);
}

size_t tbd_native_read(int memory, uint64_t address, void *out, size_t bytes)
{
    long got = tbd_sys_pread(memory, out, bytes, address);

    return got > 0 ? (size_t)got : 0;
}

bool tbd_native_write_bytes(int memory, uint64_t address, const uint8_t *bytes, size_t count)
{
    return tbd_sys4(__NR_pwrite64, (uint64_t)(unsigned)memory, tbd_sys_pointer(bytes), count,
                    address) == (long)count;
}

bool tbd_native_write(int memory, uint64_t address, uint8_t byte)
{
    return tbd_native_write_bytes(memory, address, &byte, 1);
}

bool tbd_native_sync_prepare(void)
{
    return tbd_sys3(__NR_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) ==
           0;
}

bool tbd_native_sync(void)
{
    return tbd_sys3(__NR_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) == 0;
}
