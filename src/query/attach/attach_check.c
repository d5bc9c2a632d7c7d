// SPDX-License-Identifier: MIT
/* attach_check.c - see attach_check.h */
#include "query/attach/attach_check.h"

#include "base/layout.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_SEGMENTS 64u

/* ---- /proc/PID/status ---- */

struct process_facts {
    unsigned uid[3]; /* real, effective, saved */
    int tracer;
    int seccomp;
    char state;
};

static bool read_facts(pid_t pid, struct process_facts *out)
{
    char path[64], line[512];
    FILE *status;

    *out = (struct process_facts){ 0 };
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    status = fopen(path, "re");
    if (!status)
        return false;
    while (fgets(line, sizeof(line), status)) {
        sscanf(line, "Uid: %u %u %u", &out->uid[0], &out->uid[1], &out->uid[2]);
        sscanf(line, "TracerPid: %d", &out->tracer);
        sscanf(line, "Seccomp: %d", &out->seccomp);
        sscanf(line, "State: %c", &out->state);
    }
    fclose(status);
    return true;
}

static bool refuse(struct tbd_query_error *error, pid_t pid, const char *what, const char *hint)
{
    tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "process %d %s", (int)pid, what);
    snprintf(error->hint, sizeof(error->hint), "%s", hint);
    return false;
}

static bool check_facts(pid_t pid, const struct process_facts *facts, struct tbd_query_error *error)
{
    bool is_root = geteuid() == 0;

    if (facts->state == 'Z' || facts->state == 'X')
        return refuse(error, pid, "has ended", "");
    if (facts->state == 'T')
        return refuse(error, pid, "is stopped", "continue it (SIGCONT) first");
    if (facts->tracer)
        return refuse(error, pid, "has a debugger already",
                      "only one can be attached: end that one");
    if (!is_root && (facts->uid[0] != geteuid() || facts->uid[1] != geteuid()))
        return refuse(error, pid, "belongs to another user", "root may attach to it");
    if (facts->uid[0] != facts->uid[1] || facts->uid[1] != facts->uid[2])
        return refuse(error, pid, "runs with two users' rights (set-uid)",
                      "start it under `tbd arm` as the user that it becomes");
    if (facts->seccomp)
        return refuse(error, pid, "has limited its own system calls (seccomp)",
                      "what tbd needs may end it: start it under `tbd arm`");
    return true;
}

/* ---- the program's file ---- */

/* Dynamically linked, 64 bits. */
static bool check_program(pid_t pid, struct tbd_query_error *error)
{
    Elf64_Phdr segments[MAX_SEGMENTS];
    Elf64_Ehdr header = { 0 };
    bool is_dynamic = false;
    char path[64];
    size_t count;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "process %d: its program: %s", (int)pid,
                               strerror(errno));
    if (pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_machine != EM_X86_64) {
        close(fd);
        return refuse(error, pid, "is no 64-bit x86 program", "tbd knows only these");
    }
    count = header.e_phnum < MAX_SEGMENTS ? header.e_phnum : MAX_SEGMENTS;
    if (header.e_phentsize == sizeof(segments[0]) &&
        pread(fd, segments, count * sizeof(segments[0]), (off_t)header.e_phoff) ==
            (ssize_t)(count * sizeof(segments[0])))
        for (size_t i = 0; i < count; i++)
            is_dynamic |= segments[i].p_type == PT_INTERP;
    close(fd);
    return is_dynamic || refuse(error, pid, "is statically linked",
                                "its signal masks cannot be watched, so a probe might end it");
}

/* ---- its memory ---- */

static const struct tbd_attach_range everywhere = { 0, UINT64_MAX };

/* The engine's pages are those of the library's file, mapped once more (hooks/boot/loader.c); the kernel puts libraries above it. */
static const struct tbd_attach_range above_engine = { TBD_ENGINE_END, UINT64_MAX };

/* From the first to the last of the mappings that touch `within` and whose line has `name` in it. */
static bool find_mappings(pid_t pid, const struct tbd_attach_range *within, const char *name,
                          struct tbd_attach_range *out)
{
    struct tbd_attach_range now;
    bool found = false;
    char path[64], line[512];
    FILE *maps;

    *out = (struct tbd_attach_range){ 0, 0 };
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    maps = fopen(path, "re");
    while (maps && fgets(line, sizeof(line), maps)) {
        if (sscanf(line, "%" SCNx64 "-%" SCNx64, &now.start, &now.end) != 2 ||
            now.start >= within->end || within->start >= now.end || !strstr(line, name))
            continue;
        if (!found)
            out->start = now.start;
        out->end = now.end;
        found = true;
    }
    if (maps)
        fclose(maps);
    return found;
}

bool tbd_attach_find_vdso(pid_t pid, struct tbd_attach_range *out)
{
    return find_mappings(pid, &everywhere, "[vdso]", out);
}

bool tbd_attach_find_library(pid_t pid, struct tbd_attach_range *out)
{
    return find_mappings(pid, &above_engine, "/libtbd.so", out);
}

bool tbd_attach_has_engine(pid_t pid)
{
    const struct tbd_attach_range engine = { TBD_ENGINE_BASE, TBD_STREAM_BASE };
    struct tbd_attach_range there;

    return find_mappings(pid, &engine, "", &there);
}

bool tbd_attach_has_stream(pid_t pid)
{
    struct tbd_attach_range there;

    return find_mappings(pid, &everywhere, "/memfd:tbd-stream", &there);
}

void tbd_attach_read_thread(pid_t pid, pid_t tid, struct tbd_attach_thread *out)
{
    char path[96], line[512];
    FILE *status;

    *out = (struct tbd_attach_thread){ .state = 'X' };
    snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
    status = fopen(path, "re");
    while (status && fgets(line, sizeof(line), status)) {
        sscanf(line, "State: %c", &out->state);
        sscanf(line, "SigPnd: %" SCNx64, &out->pending);
        sscanf(line, "ShdPnd: %" SCNx64, &out->shared_pending);
        sscanf(line, "SigBlk: %" SCNx64, &out->blocked);
        sscanf(line, "SigCgt: %" SCNx64, &out->caught);
    }
    if (status)
        fclose(status);
}

uint64_t tbd_attach_waits_in(pid_t pid, pid_t tid)
{
    static const struct {
        const char *begins;
        uint64_t number;
    } places[] = {
        { "futex_", SYS_futex },
        { "__futex_", SYS_futex },
        { "hrtimer_nanosleep", SYS_nanosleep },
        { "do_nanosleep", SYS_nanosleep },
        { "poll_schedule_timeout", SYS_poll },
        { "do_poll", SYS_poll },
        { "do_sys_poll", SYS_poll },
    };
    char path[64], name[64] = "";
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/wchan", (int)pid, (int)tid);
    file = fopen(path, "re");
    if (file && !fgets(name, sizeof(name), file))
        name[0] = '\0';
    if (file)
        fclose(file);
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        if (strncmp(name, places[i].begins, strlen(places[i].begins)) == 0)
            return places[i].number;
    return 0;
}

static bool read_program(const char *name, char *out, size_t bytes)
{
    char path[64];
    ssize_t length;

    snprintf(path, sizeof(path), "/proc/%.16s/exe", name);
    length = readlink(path, out, bytes - 1);
    out[length > 0 ? length : 0] = '\0';
    return length > 0;
}

bool tbd_attach_shares_memory(pid_t pid)
{
    char own[PATH_MAX], other[PATH_MAX], name[16];
    struct dirent *entry;
    bool shares = false;
    DIR *all = opendir("/proc");

    snprintf(name, sizeof(name), "%d", (int)pid);
    if (!read_program(name, own, sizeof(own)))
        own[0] = '\0';
    while (all && !shares && (entry = readdir(all)) != NULL) {
        pid_t candidate = (pid_t)strtol(entry->d_name, NULL, 10);

        shares = candidate > 0 && candidate != pid &&
                 read_program(entry->d_name, other, sizeof(other)) && strcmp(own, other) == 0 &&
                 syscall(SYS_kcmp, pid, candidate, KCMP_VM, 0, 0) == 0;
    }
    if (all)
        closedir(all);
    return shares;
}

/* One that was armed, or taken over and let go, has no stream. */
static bool check_memory(pid_t pid, struct tbd_query_error *error)
{
    const struct tbd_attach_range busy = { TBD_STREAM_BASE, TBD_PLAN_BASE },
                                  any = { 0, UINT64_MAX };
    struct tbd_attach_range there;

    if (find_mappings(pid, &busy, "", &there))
        return refuse(error, pid, "has something where the engine would be",
                      "it is recorded, or runs under `tbd crash`: tbd stop ends that");
    if (!find_mappings(pid, &any, "", &there))
        return refuse(error, pid, "has ended", "");
    return tbd_attach_find_vdso(pid, &there) ||
           refuse(error, pid, "has no vDSO", "tbd makes system calls from there");
}

bool tbd_attach_check(pid_t pid, struct tbd_query_error *error)
{
    struct process_facts facts;

    if (!read_facts(pid, &facts))
        return tbd_query_wrong(error, TBD_NOTFOUND, 0, 0, "there is no process %d", (int)pid);
    return check_facts(pid, &facts, error) && check_program(pid, error) && check_memory(pid, error);
}

/* ---- ptrace says no ---- */

static int yama_scope(void)
{
    FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
    int scope = 0;

    if (file && fscanf(file, "%d", &scope) != 1)
        scope = 0;
    if (file)
        fclose(file);
    return scope;
}

/* Our own system calls are limited, as in most containers. */
static bool is_limited(void)
{
    struct process_facts own;

    return read_facts(getpid(), &own) && own.seccomp;
}

static const char *hint_for_refused(void)
{
    int scope = yama_scope();

    if (scope >= 2)
        return "kernel.yama.ptrace_scope allows it to root at most: `tbd probe` of a program under "
               "`tbd arm` needs no ptrace";
    if (scope == 1)
        return "kernel.yama.ptrace_scope is 1: be root, or start it by `tbd arm`";
    if (is_limited())
        return "a seccomp filter, as containers have, may forbid ptrace (--cap-add=SYS_PTRACE allows "
               "it): start it by `tbd arm`";
    return "it may forbid that (prctl PR_SET_DUMPABLE), or have more rights than you";
}

bool tbd_attach_refused(pid_t pid, int number, struct tbd_query_error *error)
{
    tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "cannot attach to process %d: %s", (int)pid,
                    strerror(number));
    if (number == EPERM)
        snprintf(error->hint, sizeof(error->hint), "%s", hint_for_refused());
    return false;
}
