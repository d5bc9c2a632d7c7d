// SPDX-License-Identifier: MIT
/* spawn.c - see spawn.h
 *
 *   program -clone-> middle -clone-> organizer       middle exits at once and is reaped here;
 *                                                    the organizer becomes init's child, or, if that is
 *                                                    the program itself, a hidden one (organizer_children.h)
 *
 * Until execve, the two processes share the program's memory (copying its page tables twice takes a
 * millisecond).  They run only code of this file, on stacks of their own and with all signals
 * blocked.  Middle waits for the execve; the program runs only after it has reaped middle.  The
 * organizer's descriptors: the stream as 3, under native play the one that follows written pages as 4, the program's
 * stderr (for one line if it fails before it is ready), nothing else. */
#include "hooks/boot/spawn.h"

#include "base/fmt.h"
#include "base/linux_abi.h"
#include "base/log.h"
#include "base/string.h"
#include "base/sys.h"
#include "format/stream/part_name.h"
#include "hooks/boot/mode.h"
#include "hooks/boot/runtime.h"
#include "hooks/memory/written_pages.h"
#include "hooks/stream/recording.h"

enum {
    STREAM_FD = 3,
    MAX_VARIABLES = 4096,
    READY_MS = 10000,
    TRIGGERS_MS = 60000, /* it looks for names and lines */
    STEP_MS = 50,
    STACK_BYTES = 32768,
};

static long middle;

/* The organizer must not be traced itself, and the program's malloc() tunables are not meant for
 * it.  Its tables are large and accessed at random: large pages save page faults, which are
 * expensive in a virtual machine (glibc 2.35 on, "Memory Allocation Tunables"; others ignore
 * it). */
static void copy_environment(char **envp, char **out)
{
    static char large_pages[] = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1";
    size_t count = 0;

    for (; *envp && count < MAX_VARIABLES - 2; envp++)
        if (!tbd_starts_with(*envp, "LD_PRELOAD=") && !tbd_starts_with(*envp, "TBD_OPTIONS=") &&
            !tbd_starts_with(*envp, "GLIBC_TUNABLES="))
            out[count++] = *envp;
    out[count++] = large_pages;
    out[count] = NULL;
}

static const char *organizer_path(char *buffer, size_t bytes)
{
    if (tbd_runtime.options.organizer[0])
        return tbd_runtime.options.organizer;
    tbd_fmt(buffer, bytes, "%stbd-organizer", tbd_runtime.lib_dir);
    return buffer;
}

/* Resets both because execve keeps ignored signals and the mask. */
static void reset_signals(void)
{
    uint64_t none = 0;
    uint64_t action[4] = { 0 };

    for (uint64_t signo = 1; signo < 65; signo++)
        tbd_sys4(__NR_rt_sigaction, signo, tbd_sys_pointer(action), 0, 8);
    tbd_sys4(__NR_rt_sigprocmask, SIG_SETMASK, tbd_sys_pointer(&none), 0, 8);
}

/* The program's limits are not meant for the organizer. */
static void raise_limits(void)
{
    static const uint8_t raised[] = { RLIMIT_NOFILE, RLIMIT_CPU,   RLIMIT_FSIZE, RLIMIT_AS,
                                      RLIMIT_DATA,   RLIMIT_NPROC, RLIMIT_RTTIME };
    uint64_t limit[2];

    for (size_t i = 0; i < sizeof(raised); i++) {
        if (tbd_sys_failed(tbd_sys4(__NR_prlimit64, 0, raised[i], 0, tbd_sys_pointer(limit))))
            continue;
        limit[0] = limit[1];
        tbd_sys4(__NR_prlimit64, 0, raised[i], tbd_sys_pointer(limit), 0);
    }
}

/* Native play borrows it from the organizer (written_pages.h): where Yama restricts ptrace, that needs a word. */
static void hold_written(void)
{
    int written = tbd_written_descriptor();
    uint64_t first = TBD_WRITTEN_HELD;

    if (written >= 0) {
        tbd_sys3(__NR_dup3, (uint64_t)(unsigned)written, TBD_WRITTEN_HELD, 0);
        tbd_sys3(__NR_prctl, PR_SET_PTRACER, tbd_recording.pid, 0);
        first++;
    }
    tbd_sys3(__NR_close_range, first, UINT32_MAX, 0);
}

/* The program may have been started without standard streams: then the stream file is one of them. */
static void arrange_descriptors(int fd)
{
    if (fd == STREAM_FD) {
        tbd_sys3(__NR_fcntl, STREAM_FD, F_SETFD, 0);
    } else {
        tbd_sys3(__NR_dup3, (uint64_t)(unsigned)fd, STREAM_FD, 0);
        tbd_sys_close(fd);
    }
    hold_written();
    tbd_sys_close(0);
    tbd_sys_close(1);
    tbd_sys_open("/dev/null", 2, 0);
    tbd_sys_open("/dev/null", 2, 0);
    if (tbd_log_kept) /* stderr may be anything in a process that is taken over */
        tbd_sys_close(2);
    if (tbd_sys_failed(tbd_sys3(__NR_fcntl, 2, F_GETFD, 0)))
        tbd_sys_open("/dev/null", 2, 0);
}

/* Adds eight arguments. */
static void add_limits(const char **argv, char numbers[4][24])
{
    const struct tbd_options *options = &tbd_runtime.options;
    bool is_time = options->keep & TBD_KEEP_SECONDS;
    const uint64_t values[4] = { options->budget, options->level3, options->level2,
                                 options->keep & ~TBD_KEEP_SECONDS };
    const char *const names[4] = { "--budget", "--level3", "--level2",
                                   is_time ? "--keep-seconds" : "--keep-bytes" };

    for (unsigned i = 0; i < 4; i++) {
        tbd_fmt(numbers[i], sizeof(numbers[i]), "%lu", values[i]);
        argv[2 * i] = names[i];
        argv[2 * i + 1] = numbers[i];
    }
}

static void say_no_start(const char *path, long error)
{
    const char *why = error == -ENOENT   ? ": it is not there, or not in this root folder (chroot)"
                      : error == -EACCES ? ": no permission"
                      : error == -ENOMEM ? ": memory is limited"
                                         : "";

    if (error == -EAGAIN) {
        tbd_say("cannot start the organizer: the number of processes is limited");
        tbd_say("hint: process %u runs untraced; ulimit -u unlimited", tbd_recording.pid);
        return;
    }
    tbd_say("cannot start the organizer: %s%s", path, why);
    tbd_say("hint: process %u runs untraced; tbd-organizer must be beside libtbd.so",
            tbd_recording.pid);
}

static void give_up(const char *path, long error)
{
    struct tbd_stream_head *head = tbd_recording.ring.head;

    say_no_start(path, error);
    __atomic_store_n(&head->organizer_state, TBD_ORGANIZER_FAILED, __ATOMIC_RELEASE);
    tbd_sys_futex_wake(&head->organizer_state);
}

static char own_name[16];

/* The first thread's: another one may start the organizer of a process that is taken over. */
static void read_name(char *out, size_t bytes)
{
    long fd = -1, length = -1;

    if (tbd_sys_gettid() == tbd_sys_getpid())
        tbd_sys3(__NR_prctl, PR_GET_NAME, tbd_sys_pointer(out), 0);
    else
        fd = tbd_sys_open("/proc/self/comm", 0, 0);
    if (fd >= 0) {
        length = tbd_sys_read((int)fd, out, bytes - 1);
        tbd_sys_close((int)fd);
    }
    if (length > 0)
        out[length - 1] = '\0'; /* in place of the line's end */
}

/* "--program=gzip": the program's own name for itself, which the kernel cuts at 15 characters, or else its executable's.  Not by
 * its number: /proc may be of another pid namespace. */
static void name_program(char *out, size_t bytes)
{
    static const char option[] = "--program=";
    char *name = out + sizeof(option) - 1;
    const char *own = own_name;
    long length = -1;

    tbd_fmt(out, bytes, "%s", option);
    if (strlen(own) == sizeof(own_name) - 1)
        length = tbd_sys3(__NR_readlink, tbd_sys_pointer("/proc/thread-self/exe"),
                          tbd_sys_pointer(name), bytes - sizeof(option));
    if (length > 0)
        name[length] = '\0';
    else
        tbd_fmt(out, bytes, "%s%s", option, own[0] ? own : "program");
}

/* Are there functions or source files among the parts, which the engine cannot find by itself? */
static bool has_named_code(const char *parts)
{
    while (*parts) {
        size_t length = tbd_part_length(parts, ";;");

        if (tbd_code_part_of(parts, tbd_part_length(parts, " ;")) != TBD_PART_MODULE)
            return true;
        parts += length + (parts[length] == ';');
    }
    return false;
}

_Noreturn static void become_organizer(int fd, char **envp)
{
    char buffer[TBD_OPTION_TEXT_BYTES + 16];
    char pid[16], program[TBD_OPTION_TEXT_BYTES];
    const char *path = organizer_path(buffer, sizeof(buffer));
    char numbers[4][24];
    unsigned last = 14;
    const char *argv[32] = { "tbd-organizer", "--stream-fd", "3", "--pid", pid, program };
    static char *environment[MAX_VARIABLES];
    struct tbd_stream_head *head = tbd_recording.ring.head;
    long result;

    tbd_fmt(pid, sizeof(pid), "%u", tbd_recording.pid);
    name_program(program, sizeof(program));
    add_limits(argv + 6, numbers);
    if (tbd_runtime.options.dir[0]) {
        argv[last++] = "--dir";
        argv[last++] = tbd_runtime.options.dir;
    }
    if (tbd_mode()->events == TBD_EVENTS_RINGS)
        argv[last++] = "--crash";
    if (tbd_mode()->events == TBD_EVENTS_RINGS && tbd_runtime.options.facts[0]) {
        argv[last++] = "--facts";
        argv[last++] = tbd_runtime.options.facts;
    }
    if (tbd_mode()->events == TBD_EVENTS_RINGS && tbd_runtime.has_placed)
        argv[last++] = "--placed";
    if (tbd_mode()->events == TBD_EVENTS_RINGS && tbd_runtime.options.trigger[0]) {
        argv[last++] = "--triggers";
        argv[last++] = tbd_runtime.options.trigger;
    }
    if (tbd_mode()->events == TBD_EVENTS_RINGS && has_named_code(tbd_runtime.options.parts)) {
        argv[last++] = "--parts";
        argv[last++] = tbd_runtime.options.parts;
    }
    if (tbd_runtime.options.lean != TBD_LEAN_AUTO)
        argv[last++] =
            tbd_runtime.options.lean == TBD_LEAN_ALWAYS ? "--lean=always" : "--lean=never";
    if (tbd_mode()->omits_records && tbd_runtime.options.aftercount)
        argv[last++] = "--aftercount";
    if (tbd_runtime.options.save != TBD_SAVE_ALWAYS)
        argv[last++] = tbd_runtime.options.save == TBD_SAVE_EXIT      ? "--save-on=exit"
                       : tbd_runtime.options.save == TBD_SAVE_FAILURE ? "--save-on=failure"
                                                                      : "--save-on=signal";
    copy_environment(envp, environment);
    __atomic_store_n(&head->organizer_lock, (uint32_t)tbd_sys_getpid(), __ATOMIC_RELEASE);
    raise_limits();
    reset_signals();
    tbd_sys3(__NR_prctl, PR_SET_TSC, PR_TSC_ENABLE, 0); /* it would be inherited */
    arrange_descriptors(fd);
    result = tbd_sys3(__NR_execve, tbd_sys_pointer(path), tbd_sys_pointer(argv),
                      tbd_sys_pointer(environment));
    give_up(path, result);
    tbd_sys_exit_group(127);
}

int64_t tbd_spawn_clone(uint64_t flags, uint64_t stack, void (*run)(void *), void *context);

struct errand {
    int fd;
    char **envp;
};

/* No exit signal; a debugger of the program does not see it. */
static long start_silently(uint64_t flags, uint8_t *stack, void (*run)(void *), void *context)
{
    return tbd_spawn_clone(flags | CLONE_VM | CLONE_UNTRACED, tbd_sys_pointer(stack + STACK_BYTES),
                           run, context);
}

static void run_organizer(void *context)
{
    const struct errand *errand = context;

    become_organizer(errand->fd, errand->envp);
}

static void run_middle(void *context)
{
    static _Alignas(16) uint8_t stack[STACK_BYTES];
    long result;

    tbd_sys3(__NR_setsid, 0, 0, 0);
    result = start_silently(CLONE_VFORK, stack, run_organizer, context);
    if (tbd_sys_failed(result))
        give_up("tbd-organizer", result);
    tbd_sys_exit_group(0);
}

/* Until the organizer sets up its robust futex, the word holds the process id stored by
 * become_organizer(). */
static bool has_died(const struct tbd_stream_head *head)
{
    uint32_t lock = __atomic_load_n(&head->organizer_lock, __ATOMIC_ACQUIRE);

    return (lock & 0x40000000u) ||
           (lock && tbd_sys3(__NR_kill, lock & FUTEX_TID_MASK, 0, 0) == -ESRCH);
}

static bool wait_until_ready(void)
{
    struct tbd_stream_head *head = tbd_recording.ring.head;

    int most = tbd_runtime.options.trigger[0] || has_named_code(tbd_runtime.options.parts)
                   ? TRIGGERS_MS
                   : READY_MS;

    for (int waited = 0; waited < most; waited += STEP_MS) {
        uint32_t state = __atomic_load_n(&head->organizer_state, __ATOMIC_ACQUIRE);

        if (state == TBD_ORGANIZER_READY)
            return true;
        if (state != TBD_ORGANIZER_STARTING)
            return false;
        if (has_died(head))
            return false;
        tbd_sys_futex_wait(&head->organizer_state, state, STEP_MS);
    }
    return false;
}

static void say_it_does_not_start(void)
{
    /* An organizer that failed has printed the reason itself, if it may. */
    if (!tbd_log_kept && __atomic_load_n(&tbd_recording.ring.head->organizer_state,
                                         __ATOMIC_ACQUIRE) == TBD_ORGANIZER_FAILED)
        return;
    tbd_say(tbd_log_kept
                ? "the organizer does not start: the traces' folder may not be writable there"
                : "the organizer does not start");
    tbd_say("hint: the program runs untraced; tbd-organizer must be beside libtbd.so");
}

/* tbd_spawn_finish() reaps `middle`; the program does not run before that. */
bool tbd_spawn_begin(int fd, char **envp)
{
    static _Alignas(16) uint8_t stack[STACK_BYTES];
    static struct errand errand;
    uint64_t all = UINT64_MAX;
    uint64_t before = 0;

    errand = (struct errand){ fd, envp };
    read_name(own_name, sizeof(own_name));
    tbd_sys4(__NR_rt_sigprocmask, SIG_SETMASK, tbd_sys_pointer(&all), tbd_sys_pointer(&before), 8);
    middle = start_silently(0, stack, run_middle, &errand);
    tbd_sys4(__NR_rt_sigprocmask, SIG_SETMASK, tbd_sys_pointer(&before), 0, 8);
    if (!tbd_sys_failed(middle))
        return true;
    say_no_start("tbd-organizer", middle);
    return false;
}

bool tbd_spawn_finish(void)
{
    while (tbd_sys4(__NR_wait4, (uint64_t)middle, 0, __WALL, 0) == -EINTR)
        ;
    if (wait_until_ready())
        return true;
    say_it_does_not_start();
    return false;
}
