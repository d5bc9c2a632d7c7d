// SPDX-License-Identifier: MIT
/* seccomp.c - see seccomp.h
 *
 * The kernel is asked whatever it can answer without installing a filter: whether it knows the
 * flags, and whether the thread may set filters at all (the kernel refuses a filter with unreadable
 * instructions last). */
#include "hooks/calls/seccomp.h"

#include "base/linux_abi.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/calls/call_families.h"
#include "hooks/calls/seccomp_bpf.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/table/sys_table.h"
#include "hooks/threads/seccomp_state.h"

#include <asm/unistd.h>
#include <linux/audit.h>

enum {
    MAX_ERRNO = 4095,
    MAX_FILTERS = 2048,
    MAX_INSTRUCTIONS = 1 << 17,
    MAX_PATH_INSTRUCTIONS = 32768, /* of one thread, by the kernel's count */
    FILTER_OVERHEAD = 4,
};
#define NOWHERE 0xffff800000000000ull /* no program has this address */
/* Clocks that the vDSO reads without the kernel: realtime, monotonic, raw, coarse,
 * boottime, TAI. */
#define VDSO_CLOCKS 0x8f3u

static struct sock_filter instructions[MAX_INSTRUCTIONS];
static struct tbd_seccomp_filter filters[MAX_FILTERS];
static uint32_t instruction_count;
static uint32_t filter_count;

static struct tbd_seccomp *own(void)
{
    return &tbd_threads.holder->seccomp;
}

static bool is_active(const struct tbd_seccomp *state)
{
    return state->newest || state->is_strict;
}

/* ---- what the filters say ---- */

/* The strictest action; of equal ones the newest filter's. */
static uint32_t judge(const struct tbd_seccomp *state, const struct seccomp_data *data)
{
    uint32_t strictest = SECCOMP_RET_ALLOW;

    for (const struct tbd_seccomp_filter *filter = state->newest; filter; filter = filter->older) {
        uint32_t says = tbd_bpf_run(filter->program, data);

        if ((int32_t)(says & SECCOMP_RET_ACTION_FULL) <
            (int32_t)(strictest & SECCOMP_RET_ACTION_FULL))
            strictest = says;
    }
    return strictest;
}

static struct seccomp_data data_of(const struct tbd_call *call)
{
    struct seccomp_data data = {
        .nr = (int)call->sys.number,
        .arch = AUDIT_ARCH_X86_64,
        .instruction_pointer = call->thread->regs.rip + call->insn_bytes,
    };

    memcpy(data.args, call->sys.args, sizeof(data.args));
    return data;
}

static bool is_in_vdso(uint64_t address)
{
    const struct tbd_mapped_region *region = tbd_regions_find(&tbd_memory.regions, address);

    return region && (region->map.flags & TBD_REGION_VDSO);
}

bool tbd_seccomp_is_no_call(const struct tbd_call *call)
{
    const struct tbd_sys_row *row = tbd_sys_row(call->sys.number);
    uint32_t clock = (uint32_t)call->sys.args[0];

    if (!row || !(row->flags & TBD_SYS_VDSO) || !is_in_vdso(call->thread->regs.rip))
        return false;
    return row->args[0].set != TBD_SET_CLOCK || (clock < 32 && (VDSO_CLOCKS >> clock & 1));
}

/* ---- other threads ---- */

static bool is_other_thread(const struct tbd_saved_context *saved)
{
    return saved->tid && saved != tbd_threads.holder;
}

static bool has_other_threads(void)
{
    for (uint32_t i = 0; i < tbd_threads.saved_contexts; i++)
        if (is_other_thread(tbd_saved_context_at(i)))
            return true;
    return false;
}

/* ---- the consequences ---- */

static void refuse(struct tbd_call *call, int64_t result)
{
    call->flags |= TBD_SYSCALL_REFUSED;
    call->result = result;
    tbd_call_finish(call);
}

/* The kernel is given the filters, sees the same call once more and ends the program itself. */
_Noreturn static void die(struct tbd_call *call, uint32_t signo)
{
    tbd_signals_die_again(call->thread, signo, call->insns_before);
}

static void die_alone(struct tbd_call *call, uint32_t signo)
{
    if (!has_other_threads())
        die(call, signo);
    tbd_call_policy->thread_killed(call);
}

void tbd_seccomp_trap(struct tbd_call *call, int32_t code, uint32_t reason)
{
    struct seccomp_data data = data_of(call);
    struct tbd_queued_signal queued = { .signo = SIGSYS, .insn = TBD_SIGNAL_NOT_IN_BLOCK };
    struct {
        int32_t signo, error, code, pad;
        uint64_t address;
        int32_t number;
        uint32_t arch;
    } info = { SIGSYS, (int32_t)reason, code, 0, data.instruction_pointer, data.nr, data.arch };

    if (!tbd_signals_has_handler(SIGSYS))
        die(call, SIGSYS);
    tbd_signals_block_all(); /* until the handler's mask is set */
    if (__atomic_load_n(&tbd_signals_now()->pending, __ATOMIC_ACQUIRE)) {
        refuse(call, TBD_CALL_INTERRUPTED); /* the queued signal first; the call is made again */
        return;
    }
    memcpy(queued.info, &info, sizeof(info));
    refuse(call, (int64_t)call->sys.number);
    tbd_signals_raise(call->thread, &queued);
}

static void punish(struct tbd_call *call, uint32_t verdict)
{
    uint32_t reason = verdict & SECCOMP_RET_DATA;

    switch (verdict & SECCOMP_RET_ACTION_FULL) {
    case SECCOMP_RET_ERRNO:
        refuse(call, -(int64_t)(reason < MAX_ERRNO ? reason : MAX_ERRNO));
        break;
    case SECCOMP_RET_TRAP: tbd_seccomp_trap(call, SYS_SECCOMP, reason); break;
    case SECCOMP_RET_TRACE: /* nobody traces it, */
    case SECCOMP_RET_USER_NOTIF: /* and nobody listens */ refuse(call, -ENOSYS); break;
    case SECCOMP_RET_KILL_THREAD: die_alone(call, SIGSYS); break;
    default: die(call, SIGSYS);
    }
}

bool tbd_seccomp_refuses(struct tbd_call *call)
{
    const struct tbd_seccomp *state = own();
    struct seccomp_data data;
    uint32_t verdict;

    if (!is_active(state) || tbd_seccomp_is_no_call(call))
        return false;
    if (state->is_strict) {
        if (tbd_syscall_flags(call->sys.number) & TBD_SYS_STRICT)
            return false;
        die_alone(call, SIGKILL);
        return true;
    }
    data = data_of(call);
    verdict = judge(state, &data);
    if ((verdict & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ALLOW ||
        (verdict & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_LOG)
        return false;
    punish(call, verdict);
    return true;
}

/* ---- setting them ---- */

struct filter_request {
    uint64_t flags;
    uint64_t address; /* of its struct sock_fprog */
    bool by_prctl;
};

static void finish(struct tbd_call *call, int64_t result)
{
    call->result = result;
    tbd_call_finish(call);
}

/* Returns the error of the checks that the kernel makes before it reads the instructions; EFAULT:
 * it has no objection. */
static int64_t ask(const struct filter_request *request, const struct sock_fprog *fprog)
{
    if (own()->newest)
        tbd_seccomp_give_up_privileges(); /* this thread may have got its filters from another one */
    return tbd_seccomp_set_natively(request->flags, request->by_prctl, fprog);
}

static bool has_given_up_privileges(void)
{
    return tbd_sys6(__NR_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0, 0) == 1;
}

static uint32_t path_instructions(const struct tbd_seccomp_filter *newest)
{
    uint32_t count = 0;

    for (const struct tbd_seccomp_filter *filter = newest; filter; filter = filter->older)
        count += filter->count + FILTER_OVERHEAD;
    return count;
}

static bool is_ancestor(const struct tbd_seccomp_filter *old,
                        const struct tbd_seccomp_filter *newest)
{
    const struct tbd_seccomp_filter *filter = newest;

    if (!old)
        return true;
    while (filter && filter != old)
        filter = filter->older;
    return filter;
}

/* Returns a thread that has filters which this thread lacks, or 0. */
static uint32_t find_unrelated(void)
{
    for (uint32_t i = 0; i < tbd_threads.saved_contexts; i++) {
        const struct tbd_saved_context *saved = tbd_saved_context_at(i);

        if (is_other_thread(saved) &&
            (saved->seccomp.is_strict || !is_ancestor(saved->seccomp.newest, own()->newest)))
            return saved->tid;
    }
    return 0;
}

static void share_with_all(void)
{
    for (uint32_t i = 0; i < tbd_threads.saved_contexts; i++)
        if (is_other_thread(tbd_saved_context_at(i)))
            tbd_saved_context_at(i)->seccomp = *own();
}

/* False: the program cannot be read. */
static bool read_program(const struct sock_fprog *fprog)
{
    return tbd_copy_from_program(&instructions[instruction_count], tbd_sys_pointer(fprog->filter),
                                 fprog->len * sizeof(struct sock_filter));
}

/* Keeps the filter; its instructions have been read. */
static void keep_filter(const struct filter_request *request, uint32_t count)
{
    const uint64_t own_flags = SECCOMP_FILTER_FLAG_LOG | SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    struct tbd_seccomp_filter *filter = &filters[filter_count++];

    *filter = (struct tbd_seccomp_filter){ .older = own()->newest,
                                           .program = &instructions[instruction_count],
                                           .count = count,
                                           .flags = (uint32_t)(request->flags & own_flags),
                                           .by_prctl = request->by_prctl };
    instruction_count += count;
    own()->newest = filter;
}

/* Reads the filter's instructions to the end of `instructions`. */
static int64_t check_program(const struct sock_fprog *fprog)
{
    if (!read_program(fprog))
        return -EFAULT;
    return tbd_bpf_is_valid(&instructions[instruction_count], fprog->len) ? 0 : -EINVAL;
}

/* The program has been read. */
static int64_t add_filter(const struct filter_request *request, const struct sock_fprog *fprog)
{
    bool for_all = request->flags & SECCOMP_FILTER_FLAG_TSYNC;
    uint32_t unrelated = for_all ? find_unrelated() : 0;

    if (fprog->len + path_instructions(own()->newest) > MAX_PATH_INSTRUCTIONS)
        return -ENOMEM;
    if (unrelated)
        return request->flags & SECCOMP_FILTER_FLAG_TSYNC_ESRCH ? -ESRCH : (int64_t)unrelated;
    keep_filter(request, fprog->len);
    if (for_all)
        share_with_all();
    return 0;
}

static void set_filter(struct tbd_call *call, const struct filter_request *request)
{
    struct sock_fprog fprog = { 0 };
    bool is_readable = tbd_copy_from_program(&fprog, request->address, sizeof(fprog));
    const struct sock_fprog unreadable = { fprog.len, (struct sock_filter *)NOWHERE };
    int64_t answer = ask(request, is_readable ? &unreadable : (const struct sock_fprog *)NOWHERE);

    if (answer != -EFAULT || !is_readable || !fprog.filter) {
        finish(call, answer == -EFAULT && is_readable ? -EINVAL : answer);
        return;
    }
    if (filter_count == MAX_FILTERS || instruction_count + BPF_MAXINSNS > MAX_INSTRUCTIONS)
        tbd_call_detach(call, "it has too many filters for system calls (seccomp)");
    answer = check_program(&fprog);
    if (answer) {
        finish(call, answer);
        return;
    }
    if (request->flags & SECCOMP_FILTER_FLAG_NEW_LISTENER)
        tbd_call_detach(call, "another process answers its system calls (seccomp)");
    if (!has_given_up_privileges())
        tbd_call_detach(call, "it restricts its system calls with privileges (seccomp)");
    finish(call, add_filter(request, &fprog));
}

/* Has this thread a mode in the kernel already, which cannot be changed? */
static bool is_confined(void)
{
    return own()->newest ||
           tbd_sys6(__NR_prctl, PR_GET_SECCOMP, 0, 0, 0, 0, 0) != SECCOMP_MODE_DISABLED;
}

static void set_strict(struct tbd_call *call)
{
    if (is_confined()) {
        finish(call, -EINVAL);
        return;
    }
    own()->is_strict = true;
    finish(call, 0);
}

bool tbd_seccomp_answers_prctl(struct tbd_call *call)
{
    const uint64_t *args = call->sys.args;

    switch ((uint32_t)args[0]) {
    case PR_SET_SECCOMP:
        if (args[1] == SECCOMP_MODE_STRICT)
            set_strict(call);
        else if (args[1] == SECCOMP_MODE_FILTER)
            set_filter(call, &(struct filter_request){ 0, args[2], true });
        else
            return false;
        return true;
    case PR_GET_SECCOMP:
        if (!own()->newest)
            return false;
        finish(call, SECCOMP_MODE_FILTER);
        return true;
    case PR_GET_NO_NEW_PRIVS:
        if (own()->newest)
            tbd_seccomp_give_up_privileges(); /* as the thread that shared its filters had done */
        return false;
    default: return false;
    }
}

/* True: the call is done. */
static bool answer_seccomp(struct tbd_call *call)
{
    const uint64_t *args = call->sys.args;

    switch ((uint32_t)args[0]) {
    case SECCOMP_SET_MODE_STRICT:
        if ((uint32_t)args[1] || args[2])
            return false; /* the kernel returns the error */
        set_strict(call);
        return true;
    case SECCOMP_SET_MODE_FILTER:
        set_filter(call, &(struct filter_request){ (uint32_t)args[1], args[2], false });
        return true;
    default: return false;
    }
}

void tbd_call_seccomp(struct tbd_call *call)
{
    if (!answer_seccomp(call))
        tbd_call_plain(call);
}

/* ---- a new program ---- */

/* System calls that are made when this library is loaded, by the engine and by the organizer. */
// clang-format off
static const uint16_t needed[] = {
    __NR_access, __NR_arch_prctl, __NR_brk, __NR_clock_gettime, __NR_clock_nanosleep, __NR_clone,
    __NR_clone3, __NR_close, __NR_close_range, __NR_copy_file_range, __NR_dup3, __NR_execve, __NR_exit,
    __NR_exit_group, __NR_fcntl, __NR_flock, __NR_fstat, __NR_ftruncate, __NR_futex,
    __NR_get_robust_list, __NR_getcwd, __NR_getdents64, __NR_geteuid, __NR_getpid, __NR_getppid,
    __NR_getrandom, __NR_gettid, __NR_ioctl, __NR_kill, __NR_linkat, __NR_lseek, __NR_madvise,
    __NR_memfd_create, __NR_mkdirat, __NR_mmap, __NR_mprotect, __NR_munmap, __NR_newfstatat, __NR_open,
    __NR_openat, __NR_poll, __NR_prctl, __NR_pread64, __NR_prlimit64, __NR_pwrite64, __NR_read,
    __NR_readlink, __NR_renameat, __NR_rseq, __NR_rt_sigaction, __NR_rt_sigprocmask, __NR_rt_sigreturn,
    __NR_rt_tgsigqueueinfo, __NR_sched_getaffinity, __NR_sched_yield, __NR_set_robust_list,
    __NR_set_tid_address, __NR_setsid, __NR_sigaltstack, __NR_sysinfo, __NR_tgkill, __NR_unlinkat,
    __NR_wait4, __NR_write,
};
// clang-format on

bool tbd_seccomp_lets_record(const struct tbd_seccomp *state)
{
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
        struct seccomp_data data = { .nr = needed[i], .arch = AUDIT_ARCH_X86_64 };
        uint32_t action = judge(state, &data) & SECCOMP_RET_ACTION_FULL;

        if (action != SECCOMP_RET_ALLOW && action != SECCOMP_RET_LOG)
            return false;
    }
    return !state->is_strict;
}

#define MAX_VARIABLES 4096u
#define PRELOAD_BYTES 4096u
#define LIBRARY       "libtbd.so"

static const char preload_name[] = "LD_PRELOAD=";

static bool read_preload(char *text, uint64_t variable)
{
    size_t bytes = tbd_copy_prefix_from_program(text, variable, PRELOAD_BYTES - 1);

    text[bytes] = 0;
    return bytes >= sizeof(preload_name) - 1 &&
           !memcmp(text, preload_name, sizeof(preload_name) - 1);
}

static bool is_separator(char c)
{
    return c == ':' || c == ' ' || c == 0;
}

static bool ends_like_library(const char *name, size_t bytes)
{
    const size_t own_bytes = sizeof(LIBRARY) - 1;

    return bytes >= own_bytes && !memcmp(name + bytes - own_bytes, LIBRARY, own_bytes);
}

/* Removes this library from the list; the program's other entries stay. */
static void remove_library(char *text)
{
    char *to = text + sizeof(preload_name) - 1;
    const char *from = to;

    while (*from) {
        size_t bytes = 0;

        while (!is_separator(from[bytes]))
            bytes++;
        bytes += from[bytes] != 0;
        if (!ends_like_library(from, bytes - (bytes && is_separator(from[bytes - 1])))) {
            memmove(to, from, bytes);
            to += bytes;
        }
        from += bytes;
    }
    *to = 0;
}

uint64_t tbd_seccomp_environment(uint64_t envp)
{
    static uint64_t kept[MAX_VARIABLES + 1];
    static char preload[PRELOAD_BYTES];
    char text[PRELOAD_BYTES];
    size_t count = 0;

    for (; count < MAX_VARIABLES; envp += sizeof(*kept), count++) {
        if (!tbd_copy_from_program(&kept[count], envp, sizeof(*kept)))
            return 0;
        if (!kept[count])
            return tbd_sys_pointer(kept);
        if (read_preload(text, kept[count])) {
            remove_library(text);
            memcpy(preload, text, sizeof(text));
            kept[count] = tbd_sys_pointer(preload);
        }
    }
    return 0;
}
