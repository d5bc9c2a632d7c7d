// SPDX-License-Identifier: MIT
/* process.c - starts, feeds and watches a replay process
 *
 * PROCESS-1  The driver relies on no memory shared with the process: it writes it, or copies it
 *     once and checks the copy.  Only the process itself relies on whose turn it is.  (not checked:
 *     processes that write over it do, test_hostile.py)
 * PROCESS-2  Callers never hang, whatever the process does: watch.h. (not checked: processes that
 *     write over it do, test_hostile.py)
 * PROCESS-3  Text from the process is escaped before it is shown (base/escape.h).  (not checked: it
 *     is what decoding checks of its input) */
#include "replay/process.h"

#include "base/copy_once.h"
#include "base/escape.h"
#include "base/linux.h"
#include "replay/launch.h"
#include "replay/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SLICE_MS      100
#define GROW_BYTES    (4ull << 20)
#define MOST_REQUESTS (1ull << 24) /* in one plan: 64 GiB of pages */

enum tbd_status tbd_process_error(struct tbd_error *why, enum tbd_status status, const char *format,
                                  ...)
{
    va_list list;

    if (!why)
        return status;
    why->status = status;
    why->offset = 0;
    snprintf(why->file, sizeof(why->file), "replay process");
    va_start(list, format);
    vsnprintf(why->detail, sizeof(why->detail), format, list);
    va_end(list);
    return status;
}

/* ---- the executable ---- */

/* $TBD_REPLAY, or tbd-replay beside the running program. */
static bool find_executable(char *out, size_t size)
{
    const char *set = getenv("TBD_REPLAY");
    ssize_t length;
    char *slash;

    if (set && *set)
        return snprintf(out, size, "%s", set) < (int)size;
    length = readlink("/proc/self/exe", out, size - 1);
    if (length <= 0)
        return false;
    out[length] = 0;
    slash = strrchr(out, '/');
    if (!slash || (size_t)(slash - out) + sizeof("/tbd-replay") > size)
        return false;
    snprintf(slash, size - (size_t)(slash - out), "/tbd-replay");
    return true;
}

static int isolation; /* enum tbd_isolation */

enum tbd_isolation tbd_process_isolation(void)
{
    return (enum tbd_isolation)__atomic_load_n(&isolation, __ATOMIC_RELAXED);
}

static int spawn(struct tbd_process *process, const char *path)
{
    struct tbd_launch spawn = { .path = path,
                                .plan_fd = process->plan_fd,
                                .stream_fd = process->stream_fd };
    int error, life[2];

    if (pipe2(life, O_CLOEXEC))
        return errno;
    spawn.life_fd = life[0];
    error = tbd_launch(&spawn);
    close(life[0]);
    process->life_fd = life[1];
    if (error)
        return error;
    process->pid = spawn.pid;
    __atomic_store_n(&isolation, spawn.is_apart ? TBD_ISOLATION_FULL : TBD_ISOLATION_CALLS,
                     __ATOMIC_RELAXED);
    return 0;
}

/* ---- the plan's memory ---- */

/* TBD_REPLAY_CPU=v3 is for tests: a replay as on a processor without AVX-512. */
static uint32_t wanted_cpu(void)
{
    const char *set = getenv("TBD_REPLAY_CPU");

    return set && strcmp(set, "v3") == 0 ? TBD_PLAN_CPU_V3 : TBD_PLAN_CPU_OWN;
}

static enum tbd_status no_plan(struct tbd_error *why)
{
    return tbd_process_error(why, TBD_NOMEM, "plan: %s", strerror(errno));
}

static enum tbd_status make_files(struct tbd_process *process, struct tbd_error *why)
{
    process->plan_fd = memfd_create("tbd-plan", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    process->stream_fd = memfd_create("tbd-replay-stream", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (process->plan_fd < 0 || process->stream_fd < 0)
        return tbd_process_error(why, TBD_SYSTEM, "memfd_create: %s", strerror(errno));
    process->shared_bytes = TBD_PLAN_BULK + GROW_BYTES; /* hardly any of it is allocated */
    if (ftruncate(process->plan_fd, (off_t)process->shared_bytes) ||
        fcntl(process->plan_fd, F_ADD_SEALS, F_SEAL_SHRINK))
        return no_plan(why);
    return TBD_OK;
}

static void *map(size_t bytes, int flags, int fd)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, fd, 0);

    return at == MAP_FAILED ? NULL : at;
}

static enum tbd_status make_plan(struct tbd_process *process, struct tbd_error *why)
{
    enum tbd_status status = make_files(process, why);

    if (status != TBD_OK)
        return status;
    process->plan = map(TBD_PLAN_BULK, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    process->shared = map(TBD_PLAN_MAX_BYTES, MAP_SHARED, process->plan_fd);
    if (!process->plan || !process->shared)
        return no_plan(why);
    process->plan->magic = TBD_PLAN_MAGIC;
    process->plan->version = TBD_PLAN_VERSION;
    process->plan->turn = TBD_TURN_RUN;
    process->plan->cpu = wanted_cpu();
    process->plan->has_fsgsbase = (getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE) != 0;
    memcpy(process->shared, process->plan, sizeof(*process->plan));
    return TBD_OK;
}

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + 63) & ~63ull;
}

void tbd_process_plan_clear(struct tbd_process *process)
{
    process->plan_at = aligned(sizeof(struct tbd_plan_head));
    process->bulk_at = TBD_PLAN_BULK;
}

uint64_t tbd_process_plan_alloc(struct tbd_process *process, uint64_t bytes)
{
    uint64_t offset = process->plan_at;

    if (bytes > TBD_PLAN_BULK || aligned(offset + bytes) > TBD_PLAN_BULK)
        return 0;
    process->plan_at = aligned(offset + bytes);
    return offset;
}

uint64_t tbd_process_plan_reserve(struct tbd_process *process, uint64_t bytes)
{
    uint64_t offset = process->bulk_at, end = aligned(offset + bytes);

    if (bytes > TBD_PLAN_MAX_BYTES || end > TBD_PLAN_MAX_BYTES)
        return 0;
    if (end > process->shared_bytes) {
        uint64_t grown =
            (end + (end - TBD_PLAN_BULK) / 4 + GROW_BYTES) & ~(uint64_t)(GROW_BYTES - 1);

        grown = grown < TBD_PLAN_MAX_BYTES ? grown : TBD_PLAN_MAX_BYTES;
        if (ftruncate(process->plan_fd, (off_t)grown))
            return 0;
        process->shared_bytes = grown;
    }
    process->bulk_at = end;
    return offset;
}

void tbd_process_plan_write(struct tbd_process *process, uint64_t offset, const void *from,
                            uint64_t bytes)
{
    if (bytes)
        memcpy((char *)process->shared + offset, from, bytes);
}

uint64_t tbd_process_plan_put(struct tbd_process *process, const void *from, uint64_t bytes)
{
    uint64_t offset = tbd_process_plan_reserve(process, bytes);

    if (offset)
        tbd_process_plan_write(process, offset, from, bytes);
    return offset;
}

bool tbd_process_plan_read(const struct tbd_process *process, uint64_t offset, void *out,
                           uint64_t bytes)
{
    if (offset > process->shared_bytes || bytes > process->shared_bytes - offset)
        return false;
    tbd_copy_once(out, (const char *)process->shared + offset, bytes);
    return true;
}

/* ---- start and end ---- */

static void close_fd(int fd)
{
    if (fd > 0)
        close(fd);
}

void tbd_process_stop(struct tbd_process *process)
{
    if (process->pid > 0) {
        kill(process->pid, SIGKILL);
        while (waitpid(process->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    if (process->plan)
        munmap(process->plan, TBD_PLAN_BULK);
    if (process->shared)
        munmap(process->shared, TBD_PLAN_MAX_BYTES);
    close_fd(process->plan_fd);
    close_fd(process->stream_fd);
    close_fd(process->life_fd);
    memset(process, 0, sizeof(*process));
}

/* Ends a process whose messages cannot be trusted. */
static enum tbd_status misbehaves(struct tbd_error *why, const char *how)
{
    return tbd_process_error(why, TBD_STUBDIED, "it misbehaves: %s", how);
}

/* Removes characters that are harmful to a terminal. */
static void make_printable(char *text, size_t size)
{
    char copy[sizeof(((struct tbd_plan_report *)NULL)->what)];

    text[size - 1] = 0;
    memcpy(copy, text, size);
    tbd_escape(TBD_ESCAPE_FIELD, copy, strlen(copy), text, size);
}

static enum tbd_status take_report(struct tbd_process *process, struct tbd_error *why)
{
    struct tbd_plan_report *report = &process->report;

    tbd_copy_once(report, &process->shared->report, sizeof(*report));
    make_printable(report->what, sizeof(report->what));
    if (report->area_count > TBD_PLAN_AREAS)
        return misbehaves(why, "more patch areas than there can be");
    if (report->time > process->plan->blocks && !process->plan->counts_stops)
        return misbehaves(why, "a time after the window's end");
    return TBD_OK;
}

static enum tbd_status start(struct tbd_process *process, struct tbd_error *why)
{
    char path[PATH_MAX];
    enum tbd_status status;
    int error;

    if (!find_executable(path, sizeof(path)))
        return tbd_process_error(why, TBD_NOREPLAY, "tbd-replay not found: set TBD_REPLAY");
    status = make_plan(process, why);
    if (status != TBD_OK)
        return status;
    error = spawn(process, path);
    if (error)
        return tbd_process_error(why, TBD_NOREPLAY, "%s: %s", path, strerror(error));
    tbd_watch_begin(&process->watch, process->pid, 0);
    if (tbd_process_wait(process, why) != TBD_PROCESS_DONE)
        return TBD_STUBDIED;
    if (process->report.outcome != TBD_OUTCOME_COMPLETE)
        return tbd_process_error(why, TBD_NOREPLAY, "%.200s", process->report.what);
    return TBD_OK;
}

enum tbd_status tbd_process_start(struct tbd_process *process, struct tbd_error *why)
{
    enum tbd_status status;

    memset(process, 0, sizeof(*process));
    status = start(process, why);
    if (status != TBD_OK)
        tbd_process_stop(process);
    return status;
}

/* Has the process ended?  Then `why` says how, and it is removed. */
static bool has_died(struct tbd_process *process, struct tbd_error *why)
{
    int status;
    pid_t pid = waitpid(process->pid, &status, WNOHANG);

    if (pid == 0 || (pid < 0 && errno == EINTR))
        return false;
    process->pid = 0;
    if (pid < 0)
        tbd_process_error(why, TBD_STUBDIED, "it is gone");
    else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
        misbehaves(why, "a system call that it may not make");
    else if (WIFSIGNALED(status))
        tbd_process_error(why, TBD_STUBDIED, "killed by signal %d", WTERMSIG(status));
    else
        tbd_process_error(why, TBD_STUBDIED, "it ended with status %d", WEXITSTATUS(status));
    return true;
}

/* ---- turns ---- */

static void pass_turn(struct tbd_process *process)
{
    uint32_t *turn = &process->shared->turn;

    __atomic_store_n(turn, TBD_TURN_RUN, __ATOMIC_RELEASE);
    syscall(SYS_futex, turn, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Copies the driver's part of the head, and the tables, to the shared memory. */
static void copy_plan(const struct tbd_process *process)
{
    size_t from = offsetof(struct tbd_plan_head, first_time);
    size_t to = offsetof(struct tbd_plan_head, page);
    size_t tables = aligned(sizeof(struct tbd_plan_head));

    memcpy((char *)process->shared + from, (const char *)process->plan + from, to - from);
    memcpy((char *)process->shared + tables, (const char *)process->plan + tables,
           process->plan_at - tables);
}

void tbd_process_go(struct tbd_process *process)
{
    copy_plan(process);
    process->requests = 0;
    tbd_watch_begin(&process->watch, process->pid, process->plan->until);
    pass_turn(process);
}

/* Sleeps until the turn changes, a chunk is published, or SLICE_MS have passed.  Kernels before
 * 5.16 cannot wait for two words, so there it sleeps a short time. */
static void sleep_until_event(const struct tbd_process *process)
{
    // clang-format off
    struct futex_waitv words[2] = {
        { .val = TBD_TURN_RUN, .uaddr = (uintptr_t)&process->shared->turn, .flags = FUTEX_32 },
        { .val = process->seen_published, .uaddr = (uintptr_t)process->published,
          .flags = FUTEX_32 },
    };
    // clang-format on
    struct timespec until, shortly = { .tv_nsec = 200000 };
    unsigned count = process->published ? 2 : 1;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += SLICE_MS * 1000000l;
    if (until.tv_nsec >= 1000000000l) {
        until.tv_nsec -= 1000000000l;
        until.tv_sec++;
    }
    if (syscall(SYS_futex_waitv, words, count, 0, &until, CLOCK_MONOTONIC) < 0 && errno == ENOSYS)
        syscall(SYS_futex, &process->shared->turn, FUTEX_WAIT, TBD_TURN_RUN, &shortly, NULL, 0);
}

static bool has_new_chunk(const struct tbd_process *process)
{
    return process->published &&
           __atomic_load_n(process->published, __ATOMIC_ACQUIRE) != process->seen_published;
}

/* Has an event occurred that ends the wait?  *out says which. */
static bool is_over(struct tbd_process *process, enum tbd_process_event *out, struct tbd_error *why)
{
    uint32_t turn = __atomic_load_n(&process->shared->turn, __ATOMIC_ACQUIRE);
    bool found = true;

    if (turn == TBD_TURN_DONE && take_report(process, why) == TBD_OK)
        *out = TBD_PROCESS_DONE;
    else if (turn == TBD_TURN_DONE)
        *out = TBD_PROCESS_DEAD;
    else if (turn == TBD_TURN_PAGE)
        *out = TBD_PROCESS_PAGE;
    else if (turn != TBD_TURN_RUN)
        found = misbehaves(why, "it takes a turn that it cannot have") != TBD_OK;
    else if (has_new_chunk(process))
        *out = TBD_PROCESS_STREAM;
    else
        found = has_died(process, why);
    return found;
}

enum tbd_process_event tbd_process_wait(struct tbd_process *process, struct tbd_error *why)
{
    enum tbd_process_event event = TBD_PROCESS_DEAD;

    while (tbd_watch_check(&process->watch, why) == TBD_OK && !is_over(process, &event, why))
        sleep_until_event(process);
    return event;
}

bool tbd_process_wanted(struct tbd_process *process, struct tbd_page_wanted *out,
                        struct tbd_error *why)
{
    const struct tbd_plan_request *page = &process->shared->page;

    out->address = tbd_read_once_u64(&page->address);
    out->order = tbd_read_once_u64(&page->order);
    if (out->address % TBD_PAGE_SIZE || out->address >= TBD_USER_END)
        misbehaves(why, "it asks for a page that cannot be");
    else if (++process->requests > MOST_REQUESTS)
        misbehaves(why, "it asks for pages without end");
    else
        return true;
    return false;
}

void tbd_process_answer(struct tbd_process *process, enum tbd_page_answer answer,
                        const uint8_t *contents)
{
    struct tbd_plan_request *page = &process->shared->page;

    if (contents)
        memcpy(page->contents, contents, TBD_PAGE_SIZE);
    page->answer = answer;
    pass_turn(process);
}
