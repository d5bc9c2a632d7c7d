// SPDX-License-Identifier: MIT
/* remote_copy_calls.c - the system calls that a copy's code makes
 *
 * Memory of its own, output, the time and identities: what functions of libc need to work.  All that would reach the world
 * outside fails with ENOSYS; waiting for another thread, and ending, end the run. */
#include "query/remote/remote_copy_private.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

enum {
    TEXT_MOST = 65536,
    VECTORS_MOST = 64,
    SIGNALS_MOST = 64,
    RANDOM_MOST = 256,
    COMMAND_MASK = 0x7f
};

struct copy_call {
    struct tbd_copy *copy;
    uint64_t arguments[6];
    int signal; /* that ends the run; 0: none */
};

/* ---- output ---- */

static long print(struct copy_call *call, uint64_t address, uint64_t bytes)
{
    const struct tbd_copy_owner *owner = call->copy->owner;
    char text[512];

    if (bytes > TEXT_MOST)
        bytes = TEXT_MOST;
    for (uint64_t done = 0; done < bytes;) {
        size_t part = bytes - done < sizeof(text) ? (size_t)(bytes - done) : sizeof(text);

        if (!tbd_copy_read(call->copy, address + done, text, part))
            return done == 0 ? -EFAULT : (long)done;
        owner->print(owner->context, text, part);
        done += part;
    }
    return (long)bytes;
}

static bool is_output(uint64_t fd)
{
    return fd == 1 || fd == 2;
}

static long do_write(struct copy_call *call)
{
    return is_output(call->arguments[0]) ? print(call, call->arguments[1], call->arguments[2])
                                         : -EBADF;
}

static long do_writev(struct copy_call *call)
{
    struct iovec vectors[VECTORS_MOST];
    uint64_t count = call->arguments[2];
    long sum = 0;

    if (!is_output(call->arguments[0]))
        return -EBADF;
    if (count > VECTORS_MOST)
        return -EINVAL;
    if (!tbd_copy_read(call->copy, call->arguments[1], vectors, count * sizeof(*vectors)))
        return -EFAULT;
    for (uint64_t i = 0; i < count; i++) {
        long got = print(call, (uint64_t)(uintptr_t)vectors[i].iov_base, vectors[i].iov_len);

        if (got < 0)
            return sum != 0 ? sum : got;
        sum += got;
    }
    return sum;
}

/* ---- memory ---- */

static long make(struct copy_call *call, long number)
{
    return tbd_copy_call(call->copy, number, call->arguments);
}

static long do_mmap(struct copy_call *call)
{
    if ((call->arguments[3] & MAP_ANONYMOUS) == 0)
        return -ENOSYS;
    if ((call->arguments[3] & MAP_FIXED) != 0 &&
        !tbd_copy_take(call->copy, call->arguments[0], call->arguments[1]))
        return -ENOMEM;
    call->arguments[3] &= ~(uint64_t)MAP_SHARED;
    call->arguments[3] |= MAP_PRIVATE;
    return make(call, SYS_mmap);
}

static long change_memory(struct copy_call *call, long number)
{
    return tbd_copy_take(call->copy, call->arguments[0], call->arguments[1]) ? make(call, number)
                                                                             : -ENOMEM;
}

static long do_munmap(struct copy_call *call)
{
    return change_memory(call, SYS_munmap);
}

static long do_mprotect(struct copy_call *call)
{
    return change_memory(call, SYS_mprotect);
}

static long do_mremap(struct copy_call *call)
{
    return change_memory(call, SYS_mremap);
}

/* The heap does not grow: libc maps memory instead. */
static long do_brk(struct copy_call *call)
{
    (void)call;
    return 0;
}

/* ---- time, identity ---- */

static long give(struct copy_call *call, uint64_t address, const void *bytes, size_t count)
{
    return address == 0 || tbd_copy_write(call->copy, address, bytes, count) ? 0 : -EFAULT;
}

static long do_clock_gettime(struct copy_call *call)
{
    struct timespec now;

    if (clock_gettime((clockid_t)call->arguments[0], &now) != 0)
        return -errno;
    return give(call, call->arguments[1], &now, sizeof(now));
}

static long do_gettimeofday(struct copy_call *call)
{
    struct timespec now;
    int64_t out[2];

    clock_gettime(CLOCK_REALTIME, &now);
    out[0] = now.tv_sec;
    out[1] = now.tv_nsec / 1000;
    return give(call, call->arguments[0], out, sizeof(out));
}

static long do_time(struct copy_call *call)
{
    int64_t now = time(NULL);
    long status = give(call, call->arguments[0], &now, sizeof(now));

    return status != 0 ? status : now;
}

static long do_getrandom(struct copy_call *call)
{
    uint8_t bytes[RANDOM_MOST];
    size_t count = call->arguments[1] < sizeof(bytes) ? (size_t)call->arguments[1] : sizeof(bytes);
    long status;

    if (getrandom(bytes, count, 0) != (ssize_t)count)
        return -EAGAIN;
    status = give(call, call->arguments[0], bytes, count);
    return status != 0 ? status : (long)count;
}

static long do_getpid(struct copy_call *call)
{
    return call->copy->owner->session->info->pid;
}

static long do_gettid(struct copy_call *call)
{
    return call->copy->owner->thread;
}

/* ---- what ends the run ---- */

static long do_exit(struct copy_call *call)
{
    call->signal = SIGKILL;
    return 0;
}

static long do_futex(struct copy_call *call)
{
    uint64_t command = call->arguments[1] & COMMAND_MASK;

    if (command == FUTEX_WAKE || command == FUTEX_WAKE_BITSET || command == FUTEX_REQUEUE ||
        command == FUTEX_CMP_REQUEUE || command == FUTEX_WAKE_OP)
        return 0;
    return do_exit(call);
}

/* To itself, as by abort(). */
static long send(struct copy_call *call, uint64_t target, uint64_t number)
{
    const struct tbd_copy_owner *owner = call->copy->owner;

    if (target != owner->thread && target != owner->session->info->pid)
        return -ESRCH;
    if (number >= SIGNALS_MOST)
        return -EINVAL;
    call->signal = (int)number;
    return 0;
}

static long do_tgkill(struct copy_call *call)
{
    return send(call, call->arguments[1], call->arguments[2]);
}

static long do_kill(struct copy_call *call)
{
    return send(call, call->arguments[0], call->arguments[1]);
}

static long do_nothing(struct copy_call *call)
{
    (void)call;
    return 0;
}

static const struct {
    long number;
    long (*carry_out)(struct copy_call *call);
} calls[] = {
    { SYS_write, do_write },
    { SYS_writev, do_writev },
    { SYS_mmap, do_mmap },
    { SYS_munmap, do_munmap },
    { SYS_mprotect, do_mprotect },
    { SYS_mremap, do_mremap },
    { SYS_brk, do_brk },
    { SYS_madvise, do_nothing },
    { SYS_clock_gettime, do_clock_gettime },
    { SYS_gettimeofday, do_gettimeofday },
    { SYS_time, do_time },
    { SYS_getrandom, do_getrandom },
    { SYS_getpid, do_getpid },
    { SYS_gettid, do_gettid },
    { SYS_futex, do_futex },
    { SYS_tgkill, do_tgkill },
    { SYS_tkill, do_kill },
    { SYS_kill, do_kill },
    { SYS_exit, do_exit },
    { SYS_exit_group, do_exit },
    { SYS_rt_sigprocmask, do_nothing },
    { SYS_sched_yield, do_nothing },
};

int tbd_copy_carry_out(struct tbd_copy *copy)
{
    const struct user_regs_struct *regs = &copy->regs;
    struct copy_call call = { .copy = copy,
                              .arguments = { regs->rdi, regs->rsi, regs->rdx, regs->r10, regs->r8,
                                             regs->r9 } };
    long result = -ENOSYS;

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        if ((long)regs->orig_rax == calls[i].number)
            result = calls[i].carry_out(&call);
    copy->regs.rax = (unsigned long long)result;
    return call.signal;
}
