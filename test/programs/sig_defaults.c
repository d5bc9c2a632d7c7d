// SPDX-License-Identifier: MIT
/* Default actions: a child dies by each signal in turn, in each way; how it died is as without us, with a core dump or
 * without. */
#define _GNU_SOURCE
#include "check.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void die(int how, int signo)
{
    signal(signo, SIG_DFL);
    if (how == 0)
        raise(signo);
    else if (how == 1 && signo == SIGSEGV)
        __asm__ volatile("movb $1, 16");
    else if (how == 1 && signo == SIGILL)
        __asm__ volatile("ud2");
    else if (how == 1 && signo == SIGTRAP)
        __asm__ volatile("int3");
    else if (how == 1 && signo == SIGFPE)
        __asm__ volatile("xor %%ecx, %%ecx; div %%ecx" ::: "eax", "ecx", "edx");
    else if (how == 1 && signo == SIGABRT)
        abort();
    else if (how == 1)
        kill(getpid(), signo);
}

int main(void)
{
    int signals[] = { SIGHUP,  SIGINT,  SIGQUIT, SIGILL,  SIGTRAP, SIGABRT, SIGBUS,  SIGFPE, SIGKILL,
                      SIGSEGV, SIGPIPE, SIGTERM, SIGXCPU, SIGSYS,  SIGCHLD, SIGURG,  SIGRTMIN, SIGRTMAX };
    struct rlimit none = { 0, 0 };

    setrlimit(RLIMIT_CORE, &none); /* the flag says that one would be, where files are not piped away */
    for (int how = 0; how < 2; how++)
        for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
            int status;
            pid_t child;

            fflush(stdout);
            child = fork();
            if (child == 0) {
                die(how, signals[i]);
                _exit(100);
            }
            CHECK(waitpid(child, &status, 0) == child);
            if (WIFEXITED(status))
                printf("%d: exit %d\n", signals[i] < 32 ? signals[i] : 100, WEXITSTATUS(status));
            else
                printf("%d: signal %s, core %d\n", signals[i] < 32 ? signals[i] : 100,
                       WTERMSIG(status) == signals[i] ? "same" : "other", WCOREDUMP(status) != 0);
        }
    return 0;
}
