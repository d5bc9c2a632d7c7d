// SPDX-License-Identifier: MIT
/* arm.c - see arm.h
 *
 *   program -clone-> middle -clone-> keeper      middle exits at once and is reaped here; the keeper becomes
 *                                                init's child
 *
 * The keeper shares the program's memory and its table of signal handlers, and nothing else: no descriptor,
 * no folder, no thread group.  So it does not count as a thread (the program may end its first one, or
 * change its namespaces), the program cannot wait for it, and keeps no file open by it.  Middle has closed its
 * descriptors before the program goes on.
 *
 * The program names the keeper to Yama, which else lets only ancestors attach to a process (keeper_run.h). */
#include "hooks/probes/arm.h"

#include "base/linux_abi.h"
#include "base/log.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/probes/keeper.h"

enum { MIDDLE_BYTES = 32768, KEEPER_BYTES = 131072 };

int64_t tbd_spawn_clone(uint64_t flags, uint64_t stack, void (*run)(void *), void *context);

struct arming {
    uint32_t pid;
    long keeper; /* its process, as middle has made it */
    long wrong;  /* -errno of what failed in middle */
};

static long start(uint8_t *stack, uint64_t bytes, void (*run)(void *), void *context)
{
    return tbd_spawn_clone(CLONE_VM | CLONE_SIGHAND | CLONE_UNTRACED,
                           tbd_sys_pointer(stack + bytes), run, context);
}

static void run_keeper(void *context)
{
    (void)context;
    tbd_keeper_run();
}

static void run_middle(void *context)
{
    static _Alignas(16) uint8_t stack[KEEPER_BYTES];
    struct arming *arming = context;

    tbd_sys3(__NR_setsid, 0, 0, 0);
    tbd_sys3(__NR_close_range, 0, UINT32_MAX, 0);
    tbd_sys3(__NR_chdir, tbd_sys_pointer("/"), 0, 0);
    arming->wrong = tbd_keeper_prepare(arming->pid);
    if (!arming->wrong) {
        arming->keeper = start(stack, sizeof(stack), run_keeper, NULL);
        arming->wrong = arming->keeper < 0 ? arming->keeper : 0;
    }
    tbd_sys_exit_group(0);
}

/* "yes" becomes "no". */
static void shorten(char *yes)
{
    yes[0] = 'n';
    yes[1] = 'o';
    memmove(yes + 2, yes + 3, strlen(yes + 3) + 1);
}

/* A program that this one executes has no consumer to wait for. */
static void forget_wait(char **envp)
{
    static const char name[] = "TBD_OPTIONS=", wait[] = "wait=yes";

    for (; *envp; envp++) {
        if (!tbd_starts_with(*envp, name))
            continue;
        for (char *at = *envp; *at; at++)
            if (tbd_starts_with(at, wait))
                shorten(at + sizeof(wait) - 1 - 3);
    }
}

bool tbd_arm(bool waits, char **envp)
{
    static _Alignas(16) uint8_t stack[MIDDLE_BYTES];
    struct arming arming = { .pid = (uint32_t)tbd_sys_getpid() };
    uint64_t all = UINT64_MAX, before = 0;
    long middle;

    tbd_sys4(__NR_rt_sigprocmask, SIG_SETMASK, tbd_sys_pointer(&all), tbd_sys_pointer(&before), 8);
    middle = start(stack, sizeof(stack), run_middle, &arming);
    while (middle > 0 && tbd_sys4(__NR_wait4, (uint64_t)middle, 0, __WALL, 0) == -EINTR)
        ;
    tbd_sys4(__NR_rt_sigprocmask, SIG_SETMASK, tbd_sys_pointer(&before), 0, 8);
    if (middle < 0)
        arming.wrong = middle;
    if (arming.wrong) {
        tbd_say("process %u is not armed: error %d", arming.pid, (int)-arming.wrong);
        tbd_say(
            "hint: it runs without; /proc must be mounted, and a process and a socket be allowed");
    }
    if (!arming.wrong) /* in vain where there is no Yama */
        tbd_sys3(__NR_prctl, PR_SET_PTRACER, (uint64_t)arming.keeper, 0);
    if (waits)
        forget_wait(envp);
    if (!arming.wrong && waits)
        tbd_keeper_await();
    else if (!arming.wrong)
        tbd_keeper_await_follower();
    return !arming.wrong;
}
