// SPDX-License-Identifier: MIT
/* tbd-organizer.c - the organizer process: started by the engine, ends after the program
 *
 *   tbd-organizer --stream-fd N --pid PID [--dir DIR] [--threads N] [--discard] [--budget BYTES]
 *                 [--level3 WINDOWS] [--level2 WINDOWS] [--keep-bytes BYTES] [--keep-seconds
 *                 SECONDS] [--lean=auto|always|never] [--aftercount] [--crash] [--facts NAMES]
 *                 [--triggers TEXT] [--parts TEXT] [--placed]
 *   tbd-organizer --count=TRACE
 *
 * With --aftercount, it becomes the second one after the program's end: it counts the trace's windows, on idle processors.
 *
 * It does not use the terminal: signals from there are ignored, stdin and stdout are /dev/null, and
 * stderr too once the trace directory exists; until then it may print one line about an error.  If
 * it dies, the kernel tells the program through the robust futex in the stream's head. */
#include "base/clock.h"
#include "base/safe_stream.h"
#include "format/stream/stream.h"
#include "organizer/save_on.h"
#include "organizer/collect.h"
#include "organizer/organize.h"
#include "replay/count_later.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/futex.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { EXIT_USAGE = 2, EXIT_TRACE = 3, EXIT_SYSTEM = 4 };

static void to_null(int fd)
{
    int null = open("/dev/null", O_RDWR);

    if (null >= 0 && null != fd) {
        dup2(null, fd);
        close(null);
    }
}

/* Each window needs the same tens of megabytes.  Memory that went back to the kernel in between would
 * cost a page fault and a cleared page again (15% of the time on gzip), so it is kept.  Before the program
 * runs it waits for us: until then large blocks come from the kernel, which has cleared them. */
static void keep_memory(void)
{
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 512 << 20);
}

static void ready(void *context, const char *path)
{
    char **trace = context;

    *trace = strdup(path);
    to_null(STDERR_FILENO);
    keep_memory();
}

/* One entry on this thread's robust list: the stream's organizer_lock. */
static bool hold_lock(int fd)
{
    static struct robust_list_head list;
    static struct robust_list entry;
    struct tbd_stream_head *head =
        mmap(NULL, sizeof(*head), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (head == MAP_FAILED)
        return false;
    entry.next = &list.list;
    list.list.next = &entry;
    list.futex_offset = (char *)&head->organizer_lock - (char *)&entry;
    __atomic_store_n(&head->organizer_lock, (uint32_t)gettid(), __ATOMIC_RELEASE);
    return !syscall(SYS_set_robust_list, &list, sizeof(list));
}

static void ignore_signals(void)
{
    static const int signals[] = { SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGPIPE, SIGTSTP,
                                   SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2, SIGXFSZ };

    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        signal(signals[i], SIG_IGN);
}

/* Numbers come from the engine, or from a user who starts the organizer by hand. */
static long number(const char *text, const char *option)
{
    char *end;
    long value = strtol(text, &end, 10);

    if (!*text || *end || value < 0) {
        fprintf(stderr, "tbd: %s: %s: expected a number\n", option, text);
        exit(EXIT_USAGE);
    }
    return value;
}

static enum tbd_organize_lean lean(const char *text)
{
    if (strcmp(text, "auto") == 0)
        return TBD_ORGANIZE_LEAN_AUTO;
    if (strcmp(text, "always") == 0)
        return TBD_ORGANIZE_LEAN_ALWAYS;
    if (strcmp(text, "never") == 0)
        return TBD_ORGANIZE_LEAN_NEVER;
    fprintf(stderr, "tbd: --lean: %s: expected auto, always or never\n", text);
    exit(EXIT_USAGE);
}

/* What becomes of the trace's windows if they were recorded uncounted. */
struct after {
    bool is_wanted;
    const char *count; /* the trace: nothing else is to be done */
    enum tbd_save_on save;
};

static int usage(void)
{
    fprintf(stderr, "tbd: tbd-organizer is started by the tracer itself\n"
                    "hint: tbd record -- PROGRAM ARGUMENTS\n");
    return EXIT_USAGE;
}

static char *absolute(const char *path)
{
    char cwd[4096];
    char *full;

    if (*path == '/' || !getcwd(cwd, sizeof(cwd)))
        return strdup(path);
    return asprintf(&full, "%s/%s", cwd, path) < 0 ? NULL : full;
}

static int parse(int argc, char **argv, struct tbd_organize_options *out, struct after *after)
{
    // clang-format off
    static const struct option options[] = {
        { "stream-fd", required_argument, NULL, 's' }, { "pid", required_argument, NULL, 'p' },
        { "dir", required_argument, NULL, 'd' },       { "program", required_argument, NULL, 'n' },
        { "threads", required_argument, NULL, 't' },   { "discard", no_argument, NULL, 'x' },
        { "budget", required_argument, NULL, 'b' },    { "level3", required_argument, NULL, '3' },
        { "level2", required_argument, NULL, '2' },    { "keep-bytes", required_argument, NULL, 'k' },
        { "keep-seconds", required_argument, NULL, 'K' },
        { "lean", required_argument, NULL, 'l' },
        { "crash", no_argument, NULL, 'r' },          { "facts", required_argument, NULL, 'f' },
        { "triggers", required_argument, NULL, 'g' },
        { "parts", required_argument, NULL, 'P' },
        { "placed", no_argument, NULL, 'D' },
        { "aftercount", no_argument, NULL, 'a' },      { "count", required_argument, NULL, 'c' },
        { "save-on", required_argument, NULL, 'S' },
        { 0 },
    };
    // clang-format on
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (c) {
        case 's': out->stream_fd = (int)number(optarg, "--stream-fd"); break;
        case 'p': out->pid = (pid_t)number(optarg, "--pid"); break;
        case 'd': out->root = absolute(optarg); break;
        case 'n': out->program = optarg; break;
        case 't': out->threads = (unsigned)number(optarg, "--threads"); break;
        case 'x': out->discard = true; break;
        case 'b': out->age.budget = (uint64_t)number(optarg, "--budget"); break;
        case '3': out->age.level3 = (uint32_t)number(optarg, "--level3"); break;
        case '2': out->age.level2 = (uint32_t)number(optarg, "--level2"); break;
        case 'k': out->age.keep_bytes = (uint64_t)number(optarg, "--keep-bytes"); break;
        case 'K': out->age.keep_seconds = (uint64_t)number(optarg, "--keep-seconds"); break;
        case 'l': out->lean = lean(optarg); break;
        case 'r': out->keeps_rings = true; break;
        case 'f': out->facts = optarg; break;
        case 'g': out->triggers = optarg; break;
        case 'P': out->parts = optarg; break;
        case 'D': out->is_placed = true; break;
        case 'a': after->is_wanted = true; break;
        case 'c': after->count = optarg; break;
        case 'S':
            if (!tbd_save_on_read(optarg, &after->save))
                return usage();
            break;
        default: return usage();
        }
    }
    return (out->stream_fd < 0 && !after->count) || optind != argc ? usage() : 0;
}

/* ---- counting, after the program's end ---- */

/* A look at intervals of this length: if it got less than this part of a processor, others need the machine, and it ends. */
#define IDLE_SECONDS 5u
#define IDLE_PART    50u
/* It ends after this time in any case. */
#define COUNT_SECONDS (30u * 60)
/* Bytes of the disk that stay free. */
#define DISK_LEFT (256ull << 20)
/* ioprio_set(2) */
#define IOPRIO_IDLE (3 << 13)

struct idle {
    uint64_t begin_ns, at_ns, used_ns; /* begin; the last look, and the processor time until then */
};

static uint64_t used_ns(void)
{
    struct timespec used;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

/* For tests, which wait for it on machines that are busy. */
static bool is_hurried(void)
{
    return getenv("TBD_COUNT_HURRIED") != NULL;
}

/* A process of the idle class gets hardly any time when others want it. */
static bool goes_on(void *context)
{
    struct idle *idle = context;
    uint64_t now = tbd_clock_ns(), used = used_ns(), passed = now - idle->at_ns;

    if (is_hurried())
        return true;
    if (now - idle->begin_ns > COUNT_SECONDS * 1000000000ull)
        return false;
    if (passed < IDLE_SECONDS * 1000000000ull)
        return true;
    if (used - idle->used_ns < passed / IDLE_PART)
        return false;
    idle->at_ns = now;
    idle->used_ns = used;
    return true;
}

/* Everything else goes first, and stays if memory is short. */
static void be_modest(void)
{
    struct sched_param none = { 0 };
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd >= 0) {
        (void)!write(fd, "1000", 4);
        close(fd);
    }
    (void)setpriority(PRIO_PROCESS, 0, 19);
    (void)sched_setscheduler(0, SCHED_IDLE, &none);
    (void)syscall(SYS_ioprio_set, 1, 0, IOPRIO_IDLE);
}

static int count(const char *path)
{
    struct idle idle = { .begin_ns = tbd_clock_ns(), .at_ns = tbd_clock_ns() };
    struct tbd_count_later how = { .disk_left = DISK_LEFT, .goes_on = goes_on, .context = &idle };
    struct tbd_error why = { 0 };
    enum tbd_status status;

    if (!is_hurried())
        be_modest();
    status = tbd_count_traces(path, &how, &why);
    return status == TBD_OK || status == TBD_BUSY || status == TBD_INTERRUPTED ? 0 : EXIT_TRACE;
}

/* In a new process image: this one has much memory.  The kernel's name for the process stays, by its path: a program that is the
 * parent of orphans does not see it (hooks/calls/organizer_children.h). */
static void become_counter(const char *path)
{
    static char name[] = "tbd-counter";
    char self[4096], *option, *argv[] = { name, NULL, NULL };
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (length < 0 || asprintf(&option, "--count=%s", path) < 0)
        return;
    self[length] = 0;
    argv[1] = option;
    (void)close_range(STDERR_FILENO + 1, UINT32_MAX, 0); /* the stream's memory, above all */
    if (*path == '/')
        (void)!chdir("/");
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    execv(self, argv);
}

int main(int argc, char **argv)
{
    char *trace = NULL;
    struct tbd_organize_options options = {
        .stream_fd = -1, .lean = TBD_ORGANIZE_LEAN_AUTO, .ready = ready, .context = &trace
    };
    struct after after = { 0 };
    struct tbd_error why = { 0 };
    enum tbd_status status;
    int bad;

    tbd_safe_messages();
    bad = parse(argc, argv, &options, &after);

    if (bad)
        return bad;
    if (after.count)
        return count(after.count);
    ignore_signals();
    to_null(STDIN_FILENO);
    to_null(STDOUT_FILENO);
    if (!hold_lock(options.stream_fd)) {
        fprintf(stderr, "tbd: stream: descriptor %d: %s\n", options.stream_fd, strerror(errno));
        return EXIT_SYSTEM;
    }
    status = options.keeps_rings ? tbd_collect(&options, &why) : tbd_organize(&options, &why);
    if (!status && trace && tbd_save_on_end(trace, after.save))
        return 0;
    if (!status && after.is_wanted && trace && !options.age.level2 && !options.age.level3)
        become_counter(trace);
    if (!status)
        return 0;
    fprintf(
        stderr,
        "tbd: cannot write a trace: %s%s%s\n"
        "tbd: hint: the program goes on untraced; TBD_DIR=PATH names another folder for traces\n",
        tbd_shown(why.file), why.file[0] ? ": " : "",
        tbd_shown(why.detail[0] ? why.detail : tbd_status_text(status)));
    return status == TBD_CORRUPT ? EXIT_TRACE : EXIT_SYSTEM;
}
