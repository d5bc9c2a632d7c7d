// SPDX-License-Identifier: MIT
/* process.c - starts, feeds and watches a replay process
 *
 * PROCESS-1  Between tbd_process_go() and the next PAGE, DONE or DEAD the plan is not touched here,
 *     but for its turn and heartbeat words.
 * PROCESS-2  A process that makes no progress for WATCHDOG_MS is killed: callers never hang. */
#include "replay/process.h"

#include "base/clock.h"
#include "base/linux.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <spawn.h>
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

#define WATCHDOG_MS 30000
#define SLICE_MS    100
#define GROW_BYTES  (4ull << 20)

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

/* The child gets descriptors 0-2, the plan and the stream, nothing else: ours are close-on-exec.
 * They are moved up first so that dup2 cannot overwrite one that is still needed. */
static int spawn(struct tbd_process *process, const char *path)
{
    int plan = fcntl(process->plan_fd, F_DUPFD_CLOEXEC, 10);
    int stream = fcntl(process->stream_fd, F_DUPFD_CLOEXEC, 10);
    char name[] = "tbd-replay";
    char *argv[] = { name, NULL }, *envp[] = { NULL };
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t blocked;
    int error;

    sigemptyset(&blocked);
    sigaddset(&blocked, SIGINT); /* Ctrl-C is for tbdq, and the process ends with it */
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &blocked);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawn_file_actions_adddup2(&actions, plan, TBD_PLAN_FD);
    posix_spawn_file_actions_adddup2(&actions, stream, TBD_PLAN_STREAM_FD);
    error = posix_spawn(&process->pid, path, &actions, &attributes, argv, envp);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    close(plan);
    close(stream);
    return error;
}

/* ---- the plan's memory ---- */

static enum tbd_status make_plan(struct tbd_process *process, struct tbd_error *why)
{
    process->plan_fd = memfd_create("tbd-plan", MFD_CLOEXEC);
    process->stream_fd = memfd_create("tbd-replay-stream", MFD_CLOEXEC);
    if (process->plan_fd < 0 || process->stream_fd < 0)
        return tbd_process_error(why, TBD_SYSTEM, "memfd_create: %s", strerror(errno));
    process->plan_bytes = GROW_BYTES;
    if (ftruncate(process->plan_fd, (off_t)process->plan_bytes))
        return tbd_process_error(why, TBD_NOMEM, "plan: %s", strerror(errno));
    process->plan = mmap(NULL, TBD_PLAN_MAX_BYTES, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_NORESERVE, process->plan_fd, 0);
    if (process->plan == MAP_FAILED) {
        process->plan = NULL;
        return tbd_process_error(why, TBD_NOMEM, "plan: %s", strerror(errno));
    }
    process->plan->magic = TBD_PLAN_MAGIC;
    process->plan->version = TBD_PLAN_VERSION;
    process->plan->file_bytes = process->plan_bytes;
    process->plan->driver_pid = (uint32_t)getpid();
    process->plan->has_fsgsbase = (getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE) != 0;
    return TBD_OK;
}

void tbd_process_plan_clear(struct tbd_process *process)
{
    process->plan_at = (sizeof(struct tbd_plan_head) + 63) & ~63ull;
}

uint64_t tbd_process_plan_alloc(struct tbd_process *process, uint64_t bytes)
{
    uint64_t offset = process->plan_at, end = (offset + bytes + 63) & ~63ull;

    if (bytes > TBD_PLAN_MAX_BYTES || end > TBD_PLAN_MAX_BYTES)
        return 0;
    if (end > process->plan_bytes) {
        uint64_t grown = (end + end / 4 + GROW_BYTES) & ~(GROW_BYTES - 1);

        grown = grown < TBD_PLAN_MAX_BYTES ? grown : TBD_PLAN_MAX_BYTES;
        if (ftruncate(process->plan_fd, (off_t)grown))
            return 0;
        process->plan_bytes = grown;
        process->plan->file_bytes = grown;
    }
    process->plan_at = end;
    return offset;
}

/* ---- life and death ---- */

void tbd_process_stop(struct tbd_process *process)
{
    if (process->pid > 0) {
        kill(process->pid, SIGKILL);
        while (waitpid(process->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    if (process->plan)
        munmap(process->plan, TBD_PLAN_MAX_BYTES);
    if (process->plan_fd > 0)
        close(process->plan_fd);
    if (process->stream_fd > 0)
        close(process->stream_fd);
    memset(process, 0, sizeof(*process));
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
    process->plan->turn = TBD_TURN_RUN;
    error = spawn(process, path);
    if (error) {
        process->pid = 0;
        return tbd_process_error(why, TBD_NOREPLAY, "%s: %s", path, strerror(error));
    }
    if (tbd_process_wait(process, why) != TBD_PROCESS_DONE)
        return TBD_STUBDIED;
    if (process->plan->outcome != TBD_OUTCOME_COMPLETE)
        return tbd_process_error(why, TBD_NOREPLAY, "%.200s", process->plan->what);
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

/* Has it ended?  Then says how, and there is no process any more. */
static bool has_died(struct tbd_process *process, struct tbd_error *why)
{
    int status;
    pid_t pid = waitpid(process->pid, &status, WNOHANG);

    if (pid == 0 || (pid < 0 && errno == EINTR))
        return false;
    process->pid = 0;
    if (pid < 0)
        tbd_process_error(why, TBD_STUBDIED, "it is gone");
    else if (WIFSIGNALED(status))
        tbd_process_error(why, TBD_STUBDIED, "killed by signal %d", WTERMSIG(status));
    else
        tbd_process_error(why, TBD_STUBDIED, "it ended with status %d", WEXITSTATUS(status));
    return true;
}

/* ---- turns ---- */

void tbd_process_go(struct tbd_process *process)
{
    __atomic_store_n(&process->plan->turn, TBD_TURN_RUN, __ATOMIC_RELEASE);
    syscall(SYS_futex, &process->plan->turn, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static uint64_t now_ms(void)
{
    return tbd_clock_ns() / 1000000;
}

/* Sleeps until the turn passes, a chunk is published, or SLICE_MS are over.  Kernels before 5.16
 * cannot wait for two words: then the sleep is short. */
static void sleep_for_news(const struct tbd_process *process)
{
    // clang-format off
    struct futex_waitv words[2] = {
        { .val = TBD_TURN_RUN, .uaddr = (uintptr_t)&process->plan->turn, .flags = FUTEX_32 },
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
        syscall(SYS_futex, &process->plan->turn, FUTEX_WAIT, TBD_TURN_RUN, &shortly, NULL, 0);
}

static bool has_news(const struct tbd_process *process)
{
    return process->published &&
           __atomic_load_n(process->published, __ATOMIC_ACQUIRE) != process->seen_published;
}

enum tbd_process_event tbd_process_wait(struct tbd_process *process, struct tbd_error *why)
{
    uint64_t deadline = now_ms() + WATCHDOG_MS;
    uint32_t heartbeat = process->plan->heartbeat;

    for (;;) {
        uint32_t turn = __atomic_load_n(&process->plan->turn, __ATOMIC_ACQUIRE);

        if (turn == TBD_TURN_DONE)
            return TBD_PROCESS_DONE;
        if (turn == TBD_TURN_PAGE)
            return TBD_PROCESS_PAGE;
        if (has_news(process))
            return TBD_PROCESS_STREAM;
        if (has_died(process, why))
            return TBD_PROCESS_DEAD;
        if (process->plan->heartbeat != heartbeat) {
            heartbeat = process->plan->heartbeat;
            deadline = now_ms() + WATCHDOG_MS;
        }
        if (now_ms() > deadline) {
            tbd_process_error(why, TBD_STUBDIED, "no progress for %d seconds", WATCHDOG_MS / 1000);
            return TBD_PROCESS_DEAD;
        }
        sleep_for_news(process);
    }
}
