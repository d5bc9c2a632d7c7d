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

bool tbd_native_write(int memory, uint64_t address, uint8_t byte)
{
    return tbd_sys4(__NR_pwrite64, (uint64_t)(unsigned)memory, tbd_sys_pointer(&byte), 1,
                    address) == 1;
}
