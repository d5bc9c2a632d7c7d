// SPDX-License-Identifier: MIT
/* gdb_registers.c - preloaded into gdb: writes of vector registers work on processors with larger register sets, too
 *
 * gdb 13 writes as many bytes of the XSAVE image as it knows components.  Linux refuses an image that is not whole
 * (xstateregs_set() in arch/x86/kernel/fpu/regset.c), so on a processor with AMX every write fails with "Bad address":
 * that of a single register, and each `record goto`.  Here the rest of the image is taken from the process. */
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static long set_vectors(pid_t pid, void *kind, const struct iovec *given)
{
    static unsigned char image[1 << 16];
    struct iovec whole = { image, sizeof(image) };

    if (syscall(SYS_ptrace, PTRACE_GETREGSET, pid, kind, &whole) != 0)
        return -1;
    if (given->iov_len < whole.iov_len)
        memcpy(image, given->iov_base, given->iov_len);
    return syscall(SYS_ptrace, PTRACE_SETREGSET, pid, kind,
                   given->iov_len < whole.iov_len ? &whole : given);
}

/* As in the C library: words that are asked for are the result, and not stored. */
long ptrace(enum __ptrace_request request, ...)
{
    int peeks =
        request == PTRACE_PEEKTEXT || request == PTRACE_PEEKDATA || request == PTRACE_PEEKUSER;
    long word, result;
    void *address, *data;
    va_list args;
    pid_t pid;

    va_start(args, request);
    pid = va_arg(args, pid_t);
    address = va_arg(args, void *);
    data = va_arg(args, void *);
    va_end(args);
    if (request == PTRACE_SETREGSET && (uintptr_t)address == NT_X86_XSTATE)
        return set_vectors(pid, address, data);
    result = syscall(SYS_ptrace, request, pid, address, peeks ? &word : data);
    if (!peeks || result < 0)
        return result;
    errno = 0;
    return word;
}
