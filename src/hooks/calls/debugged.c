// SPDX-License-Identifier: MIT
/* debugged.c - see debugged.h.  Files that cannot be read do not count.
 *
 * A recorded process is asked by a signal that its engine always handles (signals.h,
 * TBD_LET_GO_VALUE).  It has gone when its stream is unmapped. */
#include "hooks/calls/debugged.h"

#include "base/fmt.h"
#include "base/layout.h"
#include "base/linux_abi.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/memory/proc.h"
#include "hooks/stream/recording.h"
#include "hooks/threads/signals.h"

enum { PATIENCE_MS = 2000 };

struct wanted {
    const char *start; /* of the line */
    char *rest;        /* the text after `start` in that line */
    size_t rest_bytes;
    bool found;
};

static bool is_wanted(void *context, char *line)
{
    struct wanted *wanted = context;

    wanted->found = tbd_starts_with(line, wanted->start);
    if (wanted->found)
        tbd_fmt(wanted->rest, wanted->rest_bytes, "%s", line + strlen(wanted->start));
    return !wanted->found;
}

/* Is there a line that begins with `start`?  The text after `start` goes to `rest`. */
static bool find_line(const char *path, const char *start, char *rest, size_t rest_bytes)
{
    struct wanted wanted = { .start = start, .rest = rest, .rest_bytes = rest_bytes };

    tbd_proc_lines(path, is_wanted, &wanted);
    return wanted.found;
}

bool tbd_debugged_by_recorded(void)
{
    char tracer[16];
    char path[40];
    char start[24];
    char rest[8];

    if (!find_line("/proc/thread-self/status", "TracerPid:\t", tracer, sizeof(tracer)) ||
        tracer[0] == '0')
        return false;
    tbd_fmt(path, sizeof(path), "/proc/%s/maps", tracer);
    tbd_fmt(start, sizeof(start), "%lx-", (uint64_t)TBD_ENGINE_BASE);
    return find_line(path, start, rest, sizeof(rest));
}

static bool has_stream(uint32_t tid)
{
    char path[40];
    char start[24];
    char rest[8];

    tbd_fmt(path, sizeof(path), "/proc/%u/maps", tid);
    tbd_fmt(start, sizeof(start), "%lx-", (uint64_t)TBD_STREAM_BASE);
    return find_line(path, start, rest, sizeof(rest));
}

/* A child of vfork has its parent's memory, but not its handlers. */
static bool catches_trap(const char *status)
{
    char set[20];
    char digit = find_line(status, "SigCgt:\t", set, sizeof(set)) ? set[14] : '0';

    return digit >= 'a' ? (digit - 'a' + 10) & 1 : digit & 1; /* bit 4: SIGTRAP */
}

static bool ask(uint32_t tid)
{
    siginfo_t info = { .si_signo = SIGTRAP, .si_code = SI_QUEUE };
    char status[40];
    char group[16];
    uint64_t pid;

    tbd_fmt(status, sizeof(status), "/proc/%u/status", tid);
    if (!find_line(status, "Tgid:\t", group, sizeof(group)))
        return false;
    tbd_proc_decimal(group, &pid);
    if (pid == tbd_recording.pid || !catches_trap(status))
        return false;
    info.si_ptr = (void *)TBD_LET_GO_VALUE;
    return !tbd_sys_failed(
        tbd_sys4(__NR_rt_tgsigqueueinfo, pid, tid, SIGTRAP, tbd_sys_pointer(&info)));
}

void tbd_debugged_release(uint32_t tid)
{
    if (!has_stream(tid) || !ask(tid))
        return;
    for (int i = 0; i < PATIENCE_MS && has_stream(tid); i++)
        tbd_sys_pause_ms(1);
    tbd_sys_pause_ms(1); /* its last steps */
    tbd_recording_note(0, "process %u goes on natively: this program debugs it", tid);
}
