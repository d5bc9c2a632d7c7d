// SPDX-License-Identifier: MIT
/* patience.c - see patience.h
 *
 * A busy organizer may need minutes for its last windows, and a slow disk as well: so it is looked
 * up in /proc whether it is stopped, or uses no processor time.  Moments are counted, not seconds: a
 * process that is itself stopped meanwhile, or a computer that sleeps, loses no patience. */
#include "hooks/stream/patience.h"

#include "base/fmt.h"
#include "base/linux_abi.h"
#include "base/log.h"
#include "base/string.h"
#include "base/sys.h"

enum {
    WAIT_MS = 50,
    STOPPED_WAITS = 5000 / WAIT_MS,
    HANGS_WAITS = 20000 / WAIT_MS,
};

/* /proc/PID/stat: "PID (NAME) STATE ..."; times of processor use are 11 and 12 fields further. */
struct activity {
    bool is_known;
    bool is_stopped;
    uint64_t worked;
};

/* In a pid namespace without a /proc of its own, a number there is that of another process
 * (pid_namespaces(7)). */
static bool is_proc_ours(void)
{
    char text[24] = "", pid[24];
    long length = tbd_sys3(__NR_readlink, tbd_sys_pointer("/proc/self"), tbd_sys_pointer(text),
                           sizeof(text) - 1);

    text[length > 0 ? length : 0] = '\0';
    tbd_fmt(pid, sizeof(pid), "%u", (uint32_t)tbd_sys_getpid());
    return strcmp(text, pid) == 0;
}

static struct activity look_at(uint32_t pid)
{
    struct activity found = { 0 };
    char text[512];
    const char *at = text;
    long fd, got;

    if (!is_proc_ours())
        return found;
    tbd_fmt(text, sizeof(text), "/proc/%u/stat", pid);
    fd = tbd_sys_open(text, O_RDONLY | O_CLOEXEC, 0);
    if (tbd_sys_failed(fd))
        return found;
    got = tbd_sys_read((int)fd, text, sizeof(text) - 1);
    tbd_sys_close((int)fd);
    text[got > 0 ? got : 0] = '\0';
    for (const char *s = text; *s; s++)
        if (*s == ')')
            at = s;
    if (at[0] != ')' || at[1] != ' ')
        return found;
    at += 2;
    found = (struct activity){ .is_known = true, .is_stopped = *at == 'T' || *at == 't' };
    for (int field = 0; *at && field < 13; at++) {
        field += *at == ' ';
        if (field >= 11 && *at >= '0' && *at <= '9')
            found.worked = found.worked * 10 + (uint64_t)(*at - '0');
    }
    return found;
}

static void say(struct tbd_patience *patience, uint32_t pid, const char *what)
{
    patience->has_said = true;
    if (tbd_log_level < TBD_LOG_WARN)
        return;
    tbd_say("the program waits for process %u, which writes its trace and %s", pid, what);
    tbd_say(
        "hint: `kill -CONT %u` lets it go on; after `kill -KILL %u` the program goes on untraced",
        pid, pid);
}

void tbd_patience_wait(struct tbd_patience *patience, uint32_t *word, uint32_t value,
                       uint32_t organizer)
{
    uint32_t pid = organizer & FUTEX_TID_MASK;
    struct activity now;

    if (tbd_sys_futex_wait(word, value, WAIT_MS) != -ETIMEDOUT) {
        patience->waits = 0;
        return;
    }
    if (!pid || patience->has_said || ++patience->waits % STOPPED_WAITS != 0)
        return;
    now = look_at(pid);
    if (now.is_stopped) {
        say(patience, pid, "is stopped");
    } else if (now.is_known && now.worked != patience->worked) {
        patience->worked = now.worked;
        patience->waits = 0;
    } else if (patience->waits >= HANGS_WAITS) {
        say(patience, pid, "has done nothing for 20 seconds");
    }
}
