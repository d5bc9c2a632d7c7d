// SPDX-License-Identifier: MIT
/* sys_process.c - effects of calls on processes, threads and memory that no rule of the table states
 *
 * Commands and structure sizes are those of the kernel's own interface on x86-64.  Contexts: any.
 */
#include "hooks/table/sys_table.h"

#include "base/linux_abi.h"
#include "base/sys.h"
#include "hooks/table/program_bytes.h"

/* ---- prctl, arch_prctl ---- */

enum { PR_HIGHEST = 81 }; /* options up to this one are known (Linux 6.18) */

void tbd_effect_prctl(struct tbd_sys_sink *sink, const uint64_t *args)
{
    uint32_t option = (uint32_t)args[0];

    switch (option) {
    case PR_GET_PDEATHSIG:
    case PR_GET_UNALIGN:
    case PR_GET_FPEMU:
    case PR_GET_FPEXC:
    case PR_GET_ENDIAN:
    case PR_GET_TSC:
    case PR_GET_CHILD_SUBREAPER: tbd_sys_emit_success(sink, args[1], 4); break;
    case PR_GET_NAME: tbd_sys_emit_success(sink, args[1], 16); break;
    case PR_GET_TID_ADDRESS: tbd_sys_emit_success(sink, args[1], 8); break;
    case PR_GET_AUXV: tbd_sys_emit_result(sink, args[1], args[2], 1); break;
    case PR_SET_MM:
        if (args[1] == PR_SET_MM_MAP_SIZE)
            tbd_sys_emit_success(sink, args[2], 4);
        break;
    case PR_SCHED_CORE:
        if (args[1] == PR_SCHED_CORE_GET)
            tbd_sys_emit_success(sink, args[4], 8);
        break;
    case PR_SET_VMA:
    case PR_SET_PTRACER: break;
    default:
        if (option > PR_HIGHEST)
            tbd_sys_not_described(sink);
        break; /* numbers only */
    }
}

void tbd_effect_arch_prctl(struct tbd_sys_sink *sink, const uint64_t *args)
{
    switch ((uint32_t)args[0]) {
    case ARCH_GET_FS:
    case ARCH_GET_GS:
    case ARCH_GET_XCOMP_SUPP:
    case ARCH_GET_XCOMP_PERM:
    case ARCH_GET_XCOMP_GUEST_PERM:
    case ARCH_GET_UNTAG_MASK:
    case ARCH_GET_MAX_TAG_BITS:
    case ARCH_SHSTK_STATUS: tbd_sys_emit_success(sink, args[1], 8); break;
    default: break;
    }
}

/* ---- futex ---- */

static bool is_futex_wait(uint32_t command)
{
    return command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET ||
           command == FUTEX_WAIT_REQUEUE_PI || command == FUTEX_LOCK_PI ||
           command == FUTEX_LOCK_PI2;
}

/* Few operations write the word itself, and they do so after failures, too (FUTEX_WAITERS stays
 * set). */
void tbd_effect_futex(struct tbd_sys_sink *sink, const uint64_t *args)
{
    if (!is_futex_wait(tbd_sys_futex_command(args[1])))
        tbd_sys_cannot_wait(sink);
    switch (tbd_sys_futex_command(args[1])) {
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2:
    case FUTEX_TRYLOCK_PI:
    case FUTEX_UNLOCK_PI: tbd_sys_emit_always(sink, args[0], 4); break;
    case FUTEX_WAKE_OP:
    case FUTEX_CMP_REQUEUE_PI:
    case FUTEX_WAIT_REQUEUE_PI: tbd_sys_emit_always(sink, args[4], 4); break;
    default: break;
    }
}

/* ---- new processes ---- */

/* CLONE_CHILD_SETTID writes in the child, so the write is visible here if memory is shared. */
static bool sets_child_here(uint64_t flags)
{
    return (flags & CLONE_CHILD_SETTID) && (flags & CLONE_VM);
}

void tbd_effect_clone(struct tbd_sys_sink *sink, const uint64_t *args)
{
    if (args[0] & (CLONE_PIDFD | CLONE_PARENT_SETTID))
        tbd_sys_emit_always(sink, args[2], 4);
    if (sets_child_here(args[0]))
        tbd_sys_emit_success(sink, args[3], 4);
}

/* struct clone_args: uint64_t flags, pidfd, child_tid, parent_tid, ... */
void tbd_effect_clone3(struct tbd_sys_sink *sink, const uint64_t *args)
{
    uint64_t c[4];

    if (!tbd_copy_from_program(c, args[0], sizeof(c)))
        return;
    if (c[0] & CLONE_PIDFD)
        tbd_sys_emit_always(sink, c[1], 4);
    if (c[0] & CLONE_PARENT_SETTID)
        tbd_sys_emit_always(sink, c[3], 4);
    if (sets_child_here(c[0]))
        tbd_sys_emit_success(sink, c[2], 4);
}

/* ---- ptrace: by request; `data` is the fourth argument ---- */

/* struct iovec { buffer, capacity }: the kernel replaces the capacity by the length. */
static void emit_regset(struct tbd_sys_sink *sink, uint64_t vector)
{
    uint64_t bytes = tbd_sys_u64(vector + 8);

    tbd_sys_emit_success(sink, vector + 8, 8);
    tbd_sys_emit_success(sink, tbd_sys_u64(vector), bytes);
}

static void emit_peeked_signals(struct tbd_sys_sink *sink, uint64_t request, uint64_t data)
{
    /* struct ptrace_peeksiginfo_args: uint64_t off, uint32_t flags, int32_t nr */
    uint32_t count = tbd_sys_u32(request + 12);

    tbd_sys_emit_result(sink, data, count & 0x80000000u ? 0 : count * (uint64_t)SI_MAX_SIZE,
                        SI_MAX_SIZE);
}

void tbd_effect_ptrace(struct tbd_sys_sink *sink, const uint64_t *args)
{
    uint64_t data = args[3];

    switch (args[0]) {
    case PTRACE_PEEKTEXT:
    case PTRACE_PEEKDATA:
    case PTRACE_PEEKUSR:
    case PTRACE_GETEVENTMSG: tbd_sys_emit_success(sink, data, 8); break;
    case PTRACE_GETREGS: tbd_sys_emit_success(sink, data, 216); break;
    case PTRACE_GETFPREGS: tbd_sys_emit_success(sink, data, 512); break;
    case PTRACE_GET_THREAD_AREA: tbd_sys_emit_success(sink, data, 16); break;
    case PTRACE_GETSIGINFO: tbd_sys_emit_success(sink, data, SI_MAX_SIZE); break;
    case PTRACE_GETREGSET: emit_regset(sink, data); break;
    case PTRACE_SETREGSET: tbd_sys_emit_success(sink, data + 8, 8); break;
    case PTRACE_ARCH_PRCTL: tbd_effect_arch_prctl(sink, (uint64_t[2]){ data, args[2] }); break;
    case PTRACE_PEEKSIGINFO: emit_peeked_signals(sink, args[2], data); break;
    case PTRACE_SECCOMP_GET_FILTER: tbd_sys_emit_result(sink, data, 8 * BPF_MAXINSNS, 8); break;
    case PTRACE_GETSIGMASK:
    case PTRACE_SECCOMP_GET_METADATA:
    case PTRACE_GET_SYSCALL_INFO:
    case PTRACE_GET_RSEQ_CONFIGURATION:
    case PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG: tbd_sys_emit_success(sink, data, args[2]); break;
    default: break;
    }
}

/* ---- memory of other processes, when the other process is this one ---- */

void tbd_effect_process_vm_writev(struct tbd_sys_sink *sink, const uint64_t *args)
{
    uint64_t bytes = sink->result > 0 ? (uint64_t)sink->result : 0;

    if ((int32_t)args[0] == tbd_sys_getpid())
        tbd_sys_emit_iovec(sink, args[3], args[4], bytes);
}

/* ---- facts about memory ---- */

void tbd_effect_mincore(struct tbd_sys_sink *sink, const uint64_t *args)
{
    tbd_sys_emit_success(sink, args[2], args[1] / 4096 + (args[1] % 4096 != 0));
}

/* A bit per node, in whole words; the kernel does not write the last bit. */
void tbd_effect_get_mempolicy(struct tbd_sys_sink *sink, const uint64_t *args)
{
    const uint64_t nodes_max = 1u << 16;
    uint64_t nodes = args[2] < nodes_max ? args[2] : nodes_max;

    if (nodes)
        tbd_sys_emit_success(sink, args[1], (nodes - 1 + 63) / 64 * 8);
}

/* ---- rights and policies ---- */

/* The header's version says how long the data is. */
void tbd_effect_capget(struct tbd_sys_sink *sink, const uint64_t *args)
{
    tbd_sys_emit_success(sink, args[1],
                         tbd_sys_u32(args[0]) == _LINUX_CAPABILITY_VERSION_1 ? 12 : 24);
}

void tbd_effect_seccomp(struct tbd_sys_sink *sink, const uint64_t *args)
{
    if ((uint32_t)args[0] == SECCOMP_GET_NOTIF_SIZES)
        tbd_sys_emit_success(sink, args[2], 6);
}

/* The third argument points to the capacity, which the kernel replaces by the length, after -E2BIG,
 * too. */
void tbd_effect_lsm_get_self_attr(struct tbd_sys_sink *sink, const uint64_t *args)
{
    tbd_sys_emit_success(sink, args[1], tbd_sys_u32(args[2]));
}

void tbd_effect_lsm_list_modules(struct tbd_sys_sink *sink, const uint64_t *args)
{
    tbd_sys_emit_result(sink, args[0], tbd_sys_u32(args[1]), 8);
}

/* After -E2BIG, the structure's first word is the size that the kernel supports. */
void tbd_effect_sched_setattr(struct tbd_sys_sink *sink, const uint64_t *args)
{
    tbd_sys_emit(sink, args[1], 4, sink->result == -E2BIG ? 4 : 0);
}

/* Other commands return a number, and do not write to a buffer. */
void tbd_effect_syslog(struct tbd_sys_sink *sink, const uint64_t *args)
{
    enum { READ = 2, READ_ALL = 3, READ_CLEAR = 4 };
    uint32_t command = (uint32_t)args[0];

    if (command >= READ && command <= READ_CLEAR)
        tbd_sys_emit_result(sink, args[1], (int32_t)args[2] > 0 ? (uint32_t)args[2] : 0, 1);
}

/* After -E2BIG, the structure's second word is the size that the kernel supports. */
void tbd_effect_perf_event_open(struct tbd_sys_sink *sink, const uint64_t *args)
{
    tbd_sys_emit(sink, args[0] + 4, 4, sink->result == -E2BIG ? 4 : 0);
}
