// SPDX-License-Identifier: MIT
/* sys_print.c - a system call as a line of text, from the same rows that say what it writes
 *
 * `openat(AT_FDCWD, "/etc/passwd", O_RDONLY|O_CLOEXEC, 000) = 3`.  It has names for the most common
 * numbers; the others are printed as numbers.  Host only, no state.
 */
#include "hooks/table/sys_ioctl.h"

#include "hooks/table/sys_table.h"

#include <linux/futex.h>
#include <asm/prctl.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <signal.h>
#include <unistd.h>

#define TEXT_MAX 48 /* most characters of a string argument that are shown */

struct name {
    uint32_t mask; /* bits that are compared */
    uint32_t value;
    const char *text;
};

// clang-format off
#define BIT(word) { .mask = (uint32_t)(word), .value = (uint32_t)(word), .text = #word }
#define FIELD(bits, word) { .mask = (uint32_t)(bits), .value = (uint32_t)(word), .text = #word }
#define VALUE(word) { .mask = UINT32_MAX, .value = (uint32_t)(word), .text = #word }
#define END { .mask = 0, .value = 0, .text = NULL }

static const struct name open_names[] = {
    FIELD(O_ACCMODE, O_RDONLY), FIELD(O_ACCMODE, O_WRONLY), FIELD(O_ACCMODE, O_RDWR),
    BIT(O_CREAT), BIT(O_EXCL), BIT(O_NOCTTY), BIT(O_TRUNC), BIT(O_APPEND), BIT(O_NONBLOCK),
    BIT(O_SYNC), BIT(O_DSYNC), BIT(O_DIRECT), { 0100000, 0100000, "O_LARGEFILE" },
    BIT(O_TMPFILE), BIT(O_DIRECTORY), BIT(O_NOFOLLOW), BIT(O_NOATIME), BIT(O_CLOEXEC), BIT(O_PATH), END
};
static const struct name prot_names[] = {
    VALUE(PROT_NONE), BIT(PROT_READ), BIT(PROT_WRITE), BIT(PROT_EXEC), BIT(PROT_GROWSDOWN), END
};
static const struct name map_names[] = {
    FIELD(0xf, MAP_SHARED), FIELD(0xf, MAP_PRIVATE), FIELD(0xf, MAP_SHARED_VALIDATE),
    BIT(MAP_FIXED), BIT(MAP_ANONYMOUS), BIT(MAP_GROWSDOWN), BIT(MAP_DENYWRITE), BIT(MAP_EXECUTABLE),
    BIT(MAP_LOCKED), BIT(MAP_NORESERVE), BIT(MAP_POPULATE), BIT(MAP_NONBLOCK), BIT(MAP_STACK),
    BIT(MAP_HUGETLB), BIT(MAP_FIXED_NOREPLACE), END
};
static const struct name at_names[] = {
    BIT(AT_SYMLINK_NOFOLLOW), BIT(AT_REMOVEDIR), BIT(AT_SYMLINK_FOLLOW), BIT(AT_NO_AUTOMOUNT),
    BIT(AT_EMPTY_PATH), BIT(AT_STATX_FORCE_SYNC), BIT(AT_STATX_DONT_SYNC), END
};
static const struct name whence_names[] = {
    VALUE(SEEK_SET), VALUE(SEEK_CUR), VALUE(SEEK_END), VALUE(SEEK_DATA), VALUE(SEEK_HOLE), END
};
static const struct name clock_names[] = {
    VALUE(CLOCK_REALTIME), VALUE(CLOCK_MONOTONIC), VALUE(CLOCK_PROCESS_CPUTIME_ID),
    VALUE(CLOCK_THREAD_CPUTIME_ID), VALUE(CLOCK_MONOTONIC_RAW), VALUE(CLOCK_REALTIME_COARSE),
    VALUE(CLOCK_MONOTONIC_COARSE), VALUE(CLOCK_BOOTTIME), VALUE(CLOCK_TAI), END
};
static const struct name futex_names[] = {
    FIELD(0x7f, FUTEX_WAIT), FIELD(0x7f, FUTEX_WAKE), FIELD(0x7f, FUTEX_REQUEUE),
    FIELD(0x7f, FUTEX_CMP_REQUEUE), FIELD(0x7f, FUTEX_WAKE_OP), FIELD(0x7f, FUTEX_LOCK_PI),
    FIELD(0x7f, FUTEX_UNLOCK_PI), FIELD(0x7f, FUTEX_TRYLOCK_PI), FIELD(0x7f, FUTEX_WAIT_BITSET),
    FIELD(0x7f, FUTEX_WAKE_BITSET), BIT(FUTEX_PRIVATE_FLAG), BIT(FUTEX_CLOCK_REALTIME), END
};
static const struct name how_names[] = {
    VALUE(SIG_BLOCK), VALUE(SIG_UNBLOCK), VALUE(SIG_SETMASK), END
};
static const struct name fcntl_names[] = {
    VALUE(F_DUPFD), VALUE(F_GETFD), VALUE(F_SETFD), VALUE(F_GETFL), VALUE(F_SETFL), VALUE(F_GETLK),
    VALUE(F_SETLK), VALUE(F_SETLKW), VALUE(F_SETOWN), VALUE(F_GETOWN), VALUE(F_SETSIG), VALUE(F_GETSIG),
    VALUE(F_SETOWN_EX), VALUE(F_GETOWN_EX), VALUE(F_OFD_GETLK), VALUE(F_OFD_SETLK), VALUE(F_OFD_SETLKW),
    VALUE(F_DUPFD_CLOEXEC), VALUE(F_SETPIPE_SZ), VALUE(F_GETPIPE_SZ), VALUE(F_ADD_SEALS),
    VALUE(F_GET_SEALS), END
};
static const struct name advice_names[] = {
    VALUE(MADV_NORMAL), VALUE(MADV_RANDOM), VALUE(MADV_SEQUENTIAL), VALUE(MADV_WILLNEED),
    VALUE(MADV_DONTNEED), VALUE(MADV_FREE), VALUE(MADV_REMOVE), VALUE(MADV_DONTFORK), VALUE(MADV_DOFORK),
    VALUE(MADV_HUGEPAGE), VALUE(MADV_NOHUGEPAGE), VALUE(MADV_DONTDUMP), VALUE(MADV_DODUMP), END
};
static const struct name family_names[] = {
    VALUE(AF_UNSPEC), VALUE(AF_UNIX), VALUE(AF_INET), VALUE(AF_INET6), VALUE(AF_NETLINK),
    VALUE(AF_PACKET), VALUE(AF_VSOCK), END
};
static const struct name socktype_names[] = {
    FIELD(0xf, SOCK_STREAM), FIELD(0xf, SOCK_DGRAM), FIELD(0xf, SOCK_RAW), FIELD(0xf, SOCK_SEQPACKET),
    BIT(SOCK_CLOEXEC), BIT(SOCK_NONBLOCK), END
};
static const struct name clone_names[] = {
    BIT(CLONE_VM), BIT(CLONE_FS), BIT(CLONE_FILES), BIT(CLONE_SIGHAND), BIT(CLONE_PIDFD),
    BIT(CLONE_PTRACE), BIT(CLONE_VFORK), BIT(CLONE_PARENT), BIT(CLONE_THREAD), BIT(CLONE_NEWNS),
    BIT(CLONE_SYSVSEM), BIT(CLONE_SETTLS), BIT(CLONE_PARENT_SETTID), BIT(CLONE_CHILD_CLEARTID),
    BIT(CLONE_CHILD_SETTID), BIT(CLONE_NEWUTS), BIT(CLONE_NEWIPC), BIT(CLONE_NEWUSER),
    BIT(CLONE_NEWPID), BIT(CLONE_NEWNET), BIT(CLONE_IO), FIELD(0xff, SIGCHLD), END
};
static const struct name access_names[] = {
    VALUE(F_OK), BIT(R_OK), BIT(W_OK), BIT(X_OK), END
};
static const struct name prctl_names[] = {
    VALUE(PR_SET_PDEATHSIG), VALUE(PR_GET_PDEATHSIG), VALUE(PR_GET_DUMPABLE), VALUE(PR_SET_DUMPABLE),
    VALUE(PR_SET_NAME), VALUE(PR_GET_NAME), VALUE(PR_GET_SECCOMP), VALUE(PR_SET_SECCOMP),
    VALUE(PR_CAPBSET_READ), VALUE(PR_CAPBSET_DROP), VALUE(PR_SET_TIMERSLACK), VALUE(PR_SET_MM),
    VALUE(PR_SET_CHILD_SUBREAPER), VALUE(PR_SET_NO_NEW_PRIVS), VALUE(PR_SET_THP_DISABLE),
    VALUE(PR_SET_VMA), VALUE(PR_SET_PTRACER), END
};
static const struct name arch_names[] = {
    VALUE(ARCH_SET_GS), VALUE(ARCH_SET_FS), VALUE(ARCH_GET_FS), VALUE(ARCH_GET_GS),
    VALUE(ARCH_GET_CPUID), VALUE(ARCH_SET_CPUID), { UINT32_MAX, 0x3001, "ARCH_CET_STATUS" }, END
};
static const struct name epoll_names[] = {
    VALUE(EPOLL_CTL_ADD), VALUE(EPOLL_CTL_DEL), VALUE(EPOLL_CTL_MOD), END
};
static const struct name resource_names[] = {
    VALUE(RLIMIT_CPU), VALUE(RLIMIT_FSIZE), VALUE(RLIMIT_DATA), VALUE(RLIMIT_STACK), VALUE(RLIMIT_CORE),
    VALUE(RLIMIT_RSS), VALUE(RLIMIT_NPROC), VALUE(RLIMIT_NOFILE), VALUE(RLIMIT_MEMLOCK), VALUE(RLIMIT_AS),
    VALUE(RLIMIT_LOCKS), VALUE(RLIMIT_SIGPENDING), VALUE(RLIMIT_MSGQUEUE), VALUE(RLIMIT_NICE),
    VALUE(RLIMIT_RTPRIO), VALUE(RLIMIT_RTTIME), END
};
static const struct name wait_names[] = {
    BIT(WNOHANG), BIT(WUNTRACED), BIT(WEXITED), BIT(WCONTINUED), BIT(WNOWAIT), END
};
static const struct name msg_names[] = {
    BIT(MSG_OOB), BIT(MSG_PEEK), BIT(MSG_DONTROUTE), BIT(MSG_CTRUNC), BIT(MSG_TRUNC), BIT(MSG_DONTWAIT),
    BIT(MSG_EOR), BIT(MSG_WAITALL), BIT(MSG_ERRQUEUE), BIT(MSG_NOSIGNAL), BIT(MSG_MORE),
    BIT(MSG_WAITFORONE), BIT(MSG_CMSG_CLOEXEC), END
};
// clang-format on

static const struct name *const sets[TBD_SET_COUNT] = {
    [TBD_SET_OPEN] = open_names,      [TBD_SET_PROT] = prot_names,
    [TBD_SET_MAP] = map_names,        [TBD_SET_AT] = at_names,
    [TBD_SET_WHENCE] = whence_names,  [TBD_SET_CLOCK] = clock_names,
    [TBD_SET_FUTEX] = futex_names,    [TBD_SET_HOW] = how_names,
    [TBD_SET_FCNTL] = fcntl_names,    [TBD_SET_ADVICE] = advice_names,
    [TBD_SET_FAMILY] = family_names,  [TBD_SET_SOCKTYPE] = socktype_names,
    [TBD_SET_CLONE] = clone_names,    [TBD_SET_ACCESS] = access_names,
    [TBD_SET_PRCTL] = prctl_names,    [TBD_SET_ARCH] = arch_names,
    [TBD_SET_EPOLL_OP] = epoll_names, [TBD_SET_RESOURCE] = resource_names,
    [TBD_SET_WAIT] = wait_names,      [TBD_SET_MSG] = msg_names,
};

/* ---- the line ---- */

struct line {
    char *text;
    size_t size;
    size_t length; /* of the whole line, including characters that did not fit */
    tbd_syscall_reader reader;
    void *context;
};

__attribute__((format(printf, 2, 3))) static void add(struct line *line, const char *format, ...)
{
    size_t capacity = line->length < line->size ? line->size - line->length : 0;
    va_list list;
    int bytes;

    va_start(list, format);
    bytes = vsnprintf(capacity ? line->text + line->length : NULL, capacity, format, list);
    va_end(list);
    if (bytes > 0)
        line->length += (size_t)bytes;
}

/* Names joined by '|', then the bits that have none. */
static void add_flags(struct line *line, const struct name *names, uint32_t value)
{
    uint32_t seen = 0;
    const char *bar = "";

    for (const struct name *n = names; n->text; n++) {
        if ((value & n->mask) != n->value || (n->value == 0 && n->mask == UINT32_MAX && value))
            continue;
        add(line, "%s%s", bar, n->text);
        seen |= n->mask == UINT32_MAX ? value : n->mask;
        bar = "|";
    }
    if (value & ~seen || *bar == '\0')
        add(line, "%s%#" PRIx32, bar, value & ~seen);
}

static void add_ioctl(struct line *line, uint32_t command)
{
    const char *name = tbd_sys_ioctl_name(command);

    if (name)
        add(line, "%s", name);
    else
        add(line, "%#" PRIx32, command);
}

static void add_character(struct line *line, unsigned char c)
{
    if (c == '\n')
        add(line, "\\n");
    else if (c == '\t')
        add(line, "\\t");
    else if (c == '"' || c == '\\')
        add(line, "\\%c", c);
    else if (c < 0x20 || c >= 0x7f)
        add(line, "\\x%02x", c);
    else
        add(line, "%c", c);
}

/* Returns how many of `bytes` bytes could be read: first to the end of the page, then the next
 * page, which may not be mapped. */
static size_t read_text(const struct line *line, uint64_t address, char *out, size_t bytes)
{
    size_t here = 4096 - (size_t)(address & 4095);

    if (here >= bytes)
        return line->reader(line->context, address, out, bytes) ? bytes : 0;
    if (!line->reader(line->context, address, out, here))
        return 0;
    return line->reader(line->context, address + here, out + here, bytes - here) ? bytes : here;
}

/* Adds up to `bytes` bytes; a string ends at its NUL. */
static void add_text(struct line *line, uint64_t address, uint64_t bytes, bool is_string)
{
    char text[TEXT_MAX];
    size_t wanted = bytes < TEXT_MAX ? (size_t)bytes : TEXT_MAX, got = 0;

    if (line->reader && wanted)
        got = read_text(line, address, text, wanted);
    if (got == 0 && wanted) {
        add(line, "%#" PRIx64, address);
        return;
    }
    if (is_string)
        got = strnlen(text, got);
    add(line, "\"");
    for (size_t i = 0; i < got; i++)
        add_character(line, (unsigned char)text[i]);
    add(line, "\"%s", got == TEXT_MAX && bytes > TEXT_MAX ? "..." : "");
}

static void add_pointer(struct line *line, uint64_t value)
{
    if (value)
        add(line, "%#" PRIx64, value);
    else
        add(line, "NULL");
}

static void add_signal(struct line *line, int signo)
{
    const char *name = signo > 0 ? sigabbrev_np(signo) : NULL;

    if (name)
        add(line, "SIG%s", name);
    else
        add(line, "%d", signo);
}

static void add_set(struct line *line, const struct tbd_sys_arg *arg, uint32_t value)
{
    if (arg->set == TBD_SET_IOCTL)
        add_ioctl(line, value);
    else if (arg->set < TBD_SET_COUNT && sets[arg->set])
        add_flags(line, sets[arg->set], value);
    else
        add(line, "%#" PRIx32, value);
}

/* Shows the bytes that a call wrote as text if the result is their number. */
static void add_output(struct line *line, const struct tbd_sys_arg *arg, uint64_t value,
                       int64_t result)
{
    if (arg->effect == TBD_EFFECT_RESULT && arg->unit == 1 && result > 0 && line->reader)
        add_text(line, value, (uint64_t)result, false);
    else
        add_pointer(line, value);
}

static void add_argument(struct line *line, const struct tbd_sys_arg *arg, const uint64_t *args,
                         unsigned index, int64_t result)
{
    uint64_t value = args[index];

    switch ((enum tbd_sys_show)arg->show) {
    case TBD_SHOW_NONE: break;
    case TBD_SHOW_FD:
    case TBD_SHOW_INT: add(line, "%" PRId32, (int32_t)value); break;
    case TBD_SHOW_UINT: add(line, "%" PRIu32, (uint32_t)value); break;
    case TBD_SHOW_LONG: add(line, "%" PRId64, (int64_t)value); break;
    case TBD_SHOW_ULONG: add(line, "%" PRIu64, value); break;
    case TBD_SHOW_HEX: add(line, "%#" PRIx64, value); break;
    case TBD_SHOW_IOVEC:
    case TBD_SHOW_MASK:
    case TBD_SHOW_MASK_IN:
    case TBD_SHOW_PTR: add_pointer(line, value); break;
    case TBD_SHOW_STR:
        value ? add_text(line, value, UINT64_MAX, true) : add_pointer(line, value);
        break;
    case TBD_SHOW_DATA: add_text(line, value, args[arg->length], false); break;
    case TBD_SHOW_OUT: add_output(line, arg, value, result); break;
    case TBD_SHOW_MODE: add(line, "%#03" PRIo32, (uint32_t)value); break;
    case TBD_SHOW_SIGNAL: add_signal(line, (int)value); break;
    case TBD_SHOW_ATFD:
        (int)value == AT_FDCWD ? add(line, "AT_FDCWD") : add(line, "%" PRId32, (int32_t)value);
        break;
    case TBD_SHOW_FLAGS: add_set(line, arg, (uint32_t)value); break;
    }
}

static bool returns_address(const char *name)
{
    return strcmp(name, "mmap") == 0 || strcmp(name, "brk") == 0 || strcmp(name, "mremap") == 0 ||
           strcmp(name, "shmat") == 0;
}

static void add_result(struct line *line, const char *name, int64_t result)
{
    if (result < 0 && result > -4096 && strerrorname_np((int)-result))
        add(line, ") = -1 %s (%s)", strerrorname_np((int)-result), strerrordesc_np((int)-result));
    else if (returns_address(name))
        add(line, ") = %#" PRIx64, (uint64_t)result);
    else
        add(line, ") = %" PRId64, result);
}

size_t tbd_syscall_print(const struct tbd_sys_call *call, int64_t result, tbd_syscall_reader reader,
                         void *context, char *buffer, size_t size)
{
    static const struct tbd_sys_row unknown = { .name = "syscall",
                                                .args = { [0 ... 5] = { .show = TBD_SHOW_HEX } } };
    struct line line = { .text = buffer, .size = size, .reader = reader, .context = context };
    const struct tbd_sys_row *row = tbd_sys_row(call->number);

    if (row)
        add(&line, "%s(", row->name);
    else
        add(&line, "syscall_%" PRIu64 "(", call->number);
    row = row ? row : &unknown;
    for (unsigned i = 0; i < 6 && row->args[i].show != TBD_SHOW_NONE; i++) {
        add(&line, "%s", i ? ", " : "");
        add_argument(&line, &row->args[i], call->args, i, result);
    }
    add_result(&line, row->name, result);
    return line.length;
}
