// SPDX-License-Identifier: MIT
/* tbd-organizer.c - the organizer process: started by the engine, ends after the program
 *
 *   tbd-organizer --stream-fd N --pid PID [--dir DIR] [--threads N] [--discard] [--budget BYTES]
 *                 [--level3 WINDOWS] [--level2 WINDOWS] [--keep-bytes BYTES] [--keep-seconds
 *                 SECONDS] [--lean=auto|always|never] [--aftercount] [--crash] [--facts NAMES]
 *                 [--triggers TEXT] [--parts TEXT] [--placed]
 *   tbd-organizer --count=TRACE
 *   tbd-organizer --count=TRACE --live
 *
 * With --aftercount, it becomes the second one after the program's end: it counts the trace's windows, on idle processors.  It starts the
 * third one, which does so while the program runs, when it has run for some time.
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
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_USAGE = 2, EXIT_TRACE = 3, EXIT_SYSTEM = 4, EXIT_BUSY = 5 };

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

static void start_count_live(const char *path);

struct organizing {
    char *trace; /* owned; NULL: it does not exist yet */
    bool counts_live;
};

static void ready(void *context, const char *path)
{
    struct organizing *organizing = context;

    organizing->trace = strdup(path);
    to_null(STDERR_FILENO);
    keep_memory();
    if (organizing->trace && organizing->counts_live)
        start_count_live(organizing->trace);
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
    bool is_live;      /* it may still be recorded */
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
        { "live", no_argument, NULL, 'L' },
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
        case 'L': after->is_live = true; break;
        case 'S':
            if (!tbd_save_on_read(optarg, &after->save))
                return usage();
            break;
        default: return usage();
        }
    }
    return (out->stream_fd < 0 && !after->count) || optind != argc ? usage() : 0;
}

/* ---- counting, during the program's run and after it ---- */

/* A look at intervals of this length: if it got less than this part of a processor, others need the machine, and it ends. */
#define IDLE_SECONDS 5u
#define IDLE_PART    50u
/* It ends after this time in any case. */
#define COUNT_SECONDS (30u * 60)
/* Bytes of the disk that stay free. */
#define DISK_LEFT (256ull << 20)
/* ioprio_set(2) */
#define IOPRIO_IDLE (3 << 13)

/* One thread counts.  The main thread keeps its priority, and makes the threads that help who waits: priority that was given up is not given
 * back.  */
struct counter {
    struct tbd_count_later how;
    const char *path;
    enum tbd_status status;
    bool is_live;                      /* nobody knows how much there will be to do */
    bool was_live;                     /* what it has done would be lost */
    uint64_t begin_ns, at_ns, used_ns; /* begin; the last look, and the processor time until then */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t change;
    bool is_over, has_started;
    void *(*run)(void *); /* the thread that is to be made; NULL: none */
    void *argument;
    pthread_t *out;
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
    struct counter *c = context;
    uint64_t now = tbd_clock_ns(), used = used_ns(), passed = now - c->at_ns;

    if (is_hurried() || c->is_live)
        return true;
    if (now - c->begin_ns > COUNT_SECONDS * 1000000000ull)
        return false;
    if (passed < IDLE_SECONDS * 1000000000ull || c->was_live)
        return true;
    if (used - c->used_ns < passed / IDLE_PART)
        return false;
    c->at_ns = now;
    c->used_ns = used;
    return true;
}

/* Where the kernel shares processors out among sessions (sched(7), autogroup), idle threads give way to those of their own session
 * only: this says how much of a processor the session gets.  The second write of two within a tenth of a second may be refused. */
static void set_session_nice(const char *nice)
{
    const struct timespec pause = { .tv_nsec = 120000000 };
    int fd = getsid(0) == getpid() ? open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC) : -1;

    if (fd < 0)
        return;
    for (unsigned i = 0; i < 5 && write(fd, nice, strlen(nice)) < 0 && errno == EAGAIN; i++)
        (void)nanosleep(&pause, NULL);
    close(fd);
}

static void program_ended(void *context)
{
    struct counter *c = context;

    if (!is_hurried())
        set_session_nice("0");
    c->is_live = false;
    c->was_live = true;
    c->begin_ns = c->at_ns = tbd_clock_ns();
    c->used_ns = used_ns();
}

/* Everything else goes first, and stays if memory is short. */
static void be_modest(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd >= 0) {
        (void)!write(fd, "1000", 4);
        close(fd);
    }
    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), 19);
    (void)syscall(SYS_ioprio_set, 1, 0, IOPRIO_IDLE);
}

/* The calling thread, and the processes that it makes. */
static void be_idle(void)
{
    struct sched_param none = { 0 };

    if (!is_hurried())
        (void)sched_setscheduler(0, SCHED_IDLE, &none);
}

static void *count(void *argument)
{
    struct counter *c = argument;
    struct tbd_error why = { 0 };

    if (!is_hurried())
        be_modest();
    c->status = c->is_live ? tbd_count_while_recorded(c->path, &c->how, &why) : TBD_OK;
    if (!c->status && !c->is_live) /* stores, calls and returns, after native play; other traces */
        c->status = tbd_count_traces(c->path, &c->how, &why);
    pthread_mutex_lock(&c->lock);
    c->is_over = true;
    pthread_cond_broadcast(&c->change);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* Has the main thread make a thread. */
static bool start_helper(void *context, pthread_t *out, void *(*run)(void *), void *argument)
{
    struct counter *c = context;
    bool has_started;

    pthread_mutex_lock(&c->lock);
    c->run = run;
    c->argument = argument;
    c->out = out;
    pthread_cond_broadcast(&c->change);
    while (c->run)
        pthread_cond_wait(&c->change, &c->lock);
    has_started = c->has_started;
    pthread_mutex_unlock(&c->lock);
    return has_started;
}

static void start_helpers(struct counter *c)
{
    pthread_mutex_lock(&c->lock);
    while (!c->is_over) {
        if (c->run) {
            c->has_started = !pthread_create(c->out, NULL, c->run, c->argument);
            c->run = NULL;
            pthread_cond_broadcast(&c->change);
        }
        pthread_cond_wait(&c->change, &c->lock);
    }
    pthread_mutex_unlock(&c->lock);
}

static int count_trace(const char *path, bool is_live)
{
    struct counter c = { .how = { .disk_left = DISK_LEFT,
                                  .goes_on = goes_on,
                                  .start = start_helper,
                                  .be_idle = be_idle,
                                  .ended = program_ended,
                                  .context = &c },
                         .path = path,
                         .is_live = is_live,
                         .begin_ns = tbd_clock_ns(),
                         .at_ns = tbd_clock_ns(),
                         .lock = PTHREAD_MUTEX_INITIALIZER,
                         .change = PTHREAD_COND_INITIALIZER };
    pthread_t thread;

    if (pthread_create(&thread, NULL, count, &c))
        return EXIT_SYSTEM;
    start_helpers(&c);
    pthread_join(thread, NULL);
    if (is_live && c.status == TBD_BUSY)
        return EXIT_BUSY;
    return c.status == TBD_OK || c.status == TBD_BUSY || c.status == TBD_INTERRUPTED ? 0
                                                                                     : EXIT_TRACE;
}

/* The arguments of the counter.  The kernel's name for the process stays, by its path: a program that is the parent of orphans does
 * not see it (hooks/calls/organizer_children.h). */
static bool name_counter(const char *path, char self[4096], char *argv[4])
{
    static char name[] = "tbd-counter";
    ssize_t length = readlink("/proc/self/exe", self, 4095);
    char *option;

    if (length < 0 || asprintf(&option, "--count=%s", path) < 0)
        return false;
    self[length] = 0;
    argv[0] = name;
    argv[1] = option;
    return true;
}

/* Nothing of the organizer stays: the stream's memory, above all. */
static void leave_organizer(const char *path)
{
    (void)close_range(STDERR_FILENO + 1, UINT32_MAX, 0);
    if (*path == '/')
        (void)!chdir("/");
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
}

/* The program is of another session: what counts beside it has one of its own, which gets hardly anything of a processor that both want. */
static void leave_organizer_session(const char *path)
{
    leave_organizer(path);
    if (setsid() >= 0 && !is_hurried())
        set_session_nice("19");
}

/* In a new process image: this one has much memory. */
static void become_counter(const char *path)
{
    char self[4096], *argv[4] = { NULL };

    if (!name_counter(path, self, argv))
        return;
    leave_organizer(path);
    execv(self, argv);
}

/* ---- while the program runs ---- */

/* Programs that are over sooner are counted then. */
#define LIVE_AFTER_SECONDS 2u
/* One process at a time counts so. */
#define LIVE_AGAIN_SECONDS 5u
/* A program that may not have many processes finds that it has fewer. */
#define LIVE_PROCESSES 1024u

static bool may_count_live(const struct tbd_organize_options *options, const struct after *after)
{
    struct rlimit most;

    return after->is_wanted && after->save == TBD_SAVE_ON_ANY && !options->discard &&
           !options->keeps_rings && !options->age.level2 && !options->age.level3 &&
           (getrlimit(RLIMIT_NPROC, &most) || most.rlim_cur >= LIVE_PROCESSES);
}

/* A thread; ends with the process. */
static void *count_live(void *argument)
{
    static char live[] = "--live";
    const char *path = argument;
    char self[4096], *argv[4] = { NULL };
    int status = 0;
    pid_t pid;

    if (!name_counter(path, self, argv))
        return NULL;
    argv[2] = live;
    sleep(is_hurried() ? 0 : LIVE_AFTER_SECONDS);
    while (posix_spawn(&pid, self, NULL, NULL, argv, environ) == 0 &&
           waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_BUSY)
        sleep(LIVE_AGAIN_SECONDS);
    return NULL;
}

static void start_count_live(const char *path)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, count_live, (void *)(uintptr_t)path) == 0)
        (void)pthread_detach(thread);
}

int main(int argc, char **argv)
{
    struct organizing organizing = { 0 };
    struct tbd_organize_options options = {
        .stream_fd = -1, .lean = TBD_ORGANIZE_LEAN_AUTO, .ready = ready, .context = &organizing
    };
    struct after after = { 0 };
    struct tbd_error why = { 0 };
    enum tbd_status status;
    int bad;

    tbd_safe_messages();
    bad = parse(argc, argv, &options, &after);

    if (bad)
        return bad;
    if (after.count) {
        if (after.is_live)
            leave_organizer_session(after.count);
        return count_trace(after.count, after.is_live);
    }
    organizing.counts_live = may_count_live(&options, &after);
    ignore_signals();
    to_null(STDIN_FILENO);
    to_null(STDOUT_FILENO);
    if (!hold_lock(options.stream_fd)) {
        fprintf(stderr, "tbd: stream: descriptor %d: %s\n", options.stream_fd, strerror(errno));
        return EXIT_SYSTEM;
    }
    status = options.keeps_rings ? tbd_collect(&options, &why) : tbd_organize(&options, &why);
    if (!status && organizing.trace && tbd_save_on_end(organizing.trace, after.save))
        return 0;
    if (!status && after.is_wanted && organizing.trace && !options.age.level2 &&
        !options.age.level3)
        become_counter(organizing.trace);
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
