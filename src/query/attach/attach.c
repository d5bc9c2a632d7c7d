// SPDX-License-Identifier: MIT
/* attach.c - see attach.h */
#include "query/attach/attach.h"

#include "base/layout.h"
#include "format/probe/boot.h"
#include "query/attach/attach_check.h"
#include "query/attach/engine_image.h"
#include "query/attach/old_engine.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SCRATCH_BYTES (64u << 10)
#define AUXV_BYTES    1024u

/* What the boot function reads, and the int3 to which it returns. */
struct scratch {
    uint8_t trap[16];
    struct tbd_boot_regs registers;
    struct tbd_boot boot;
    uint64_t argv[1];
    uint64_t envp[2];
    uint8_t auxv[AUXV_BYTES]; /* right after envp */
    char options[64];
};

static void read_auxv(pid_t pid, uint8_t *out)
{
    char path[64];
    int fd;

    memset(out, 0, AUXV_BYTES);
    snprintf(path, sizeof(path), "/proc/%d/auxv", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (read(fd, out, AUXV_BYTES - 16) < 0)
        memset(out, 0, AUXV_BYTES);
    close(fd);
}

static bool call_boot(struct tbd_remote *remote, uint64_t function, uint64_t at)
{
    struct scratch scratch = { .trap = { 0xcc }, .options = "TBD_OPTIONS=mode=armed" };
    uint64_t result = 0;

    scratch.boot.regs = (const struct tbd_boot_regs *)(at + offsetof(struct scratch, registers));
    scratch.boot.argv = (char **)(at + offsetof(struct scratch, argv));
    scratch.boot.envp = (char **)(at + offsetof(struct scratch, envp));
    scratch.boot.library = TBD_ENGINE_BASE;
    scratch.envp[0] = at + offsetof(struct scratch, options);
    read_auxv(remote->pid, scratch.auxv);
    return tbd_remote_write(remote, at, &scratch, sizeof(scratch)) &&
           tbd_remote_call(remote, function, at + offsetof(struct scratch, boot),
                           at + SCRATCH_BYTES, at, &result) &&
           (result & 0xff);
}

static bool arm(struct tbd_remote *remote, const struct tbd_engine_file *file,
                struct tbd_query_error *error)
{
    struct tbd_held before = { 0 };
    bool done = tbd_old_engine_remove(remote, &before, error);
    long result, at;

    tbd_held_free(&before);
    if (!done)
        return false;
    at = tbd_remote_map(remote, 0, SCRATCH_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, 0);
    result = at < 0 ? at : tbd_engine_map(remote, file);
    done = result >= 0 && call_boot(remote, tbd_engine_boot_function(file), (uint64_t)at);
    if (at > 0)
        tbd_remote_unmap(remote, (uint64_t)at, SCRATCH_BYTES);
    if (done)
        return true;
    tbd_remote_unmap(remote, TBD_ENGINE_BASE, TBD_ENGINE_END - TBD_ENGINE_BASE);
    if (result < 0)
        return tbd_query_wrong(error, TBD_SYSTEM, 0, 0,
                               "process %d: the engine cannot be mapped: %s", (int)remote->pid,
                               strerror((int)-result));
    return tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "process %d: its keeper does not start",
                           (int)remote->pid);
}

bool tbd_attach_arm(pid_t pid, struct tbd_query_error *error)
{
    struct tbd_engine_file file;
    struct tbd_remote remote;
    sigset_t all, before;
    bool done = false;

    if (!tbd_attach_check(pid, error) ||
        (tbd_attach_has_engine(pid) && !tbd_old_engine_await_alone(pid, error)) ||
        !tbd_engine_open(&file, error))
        return false;
    sigfillset(&all); /* half-way the process would be lost */
    sigprocmask(SIG_BLOCK, &all, &before);
    if (!tbd_engine_boot_function(&file)) {
        tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "tbd-replay is of another build");
    } else if (tbd_old_engine_borrow(&remote, pid, error)) {
        done = arm(&remote, &file, error);
        tbd_remote_let_go(&remote);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    tbd_engine_close(&file);
    return done;
}

/* ---- may we? ---- */

/* The kernel lets a thread go that was seized, and never stopped, when who has seized it ends. */
static _Noreturn void try_to_seize(pid_t pid)
{
    long result = syscall(SYS_ptrace, (long)PTRACE_SEIZE, (long)pid, 0L, 0L);

    _exit(result != 0 && errno == EPERM);
}

bool tbd_attach_is_forbidden(pid_t pid)
{
    int how = 0;
    pid_t child = fork();

    if (child == 0)
        try_to_seize(pid);
    while (child > 0 && waitpid(child, &how, 0) < 0 && errno == EINTR)
        ;
    return child > 0 && WIFEXITED(how) && WEXITSTATUS(how) != 0;
}

bool tbd_attach_name_tracer(pid_t pid, pid_t tracer, struct tbd_query_error *error)
{
    const uint64_t arguments[6] = { PR_SET_PTRACER, (uint64_t)tracer };
    struct tbd_remote remote;
    sigset_t all, before;
    bool done;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    done = tbd_remote_borrow(&remote, pid, 0, error);
    if (done) {
        tbd_remote_call_system(&remote, SYS_prctl, arguments);
        tbd_remote_let_go(&remote);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return done;
}
