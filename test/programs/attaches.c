// SPDX-License-Identifier: MIT
/* A recorded program attaches to its recorded children (PTRACE_ATTACH, PTRACE_SEIZE): they show their own registers and
 * code, in a loop and in a system call, and go on as if nobody had watched. */
// missing: goes on natively
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int *shared_flag(void)
{
    static volatile int flag;

    return &flag;
}

extern const char loop_begin[], loop_end[];

/* All registers that an engine might use hold something known. */
static void spin(void)
{
    __asm__ volatile("mov $0x1111, %%r8; mov $0x2222, %%r9; mov $0x3333, %%r10; mov $0x4444, %%r11; mov $0x5555, %%r14\n\t"
                     "mov $0x6666, %%r15; mov $0x7777, %%rbx\n"
                     ".globl loop_begin, loop_end\n"
                     "loop_begin: cmpl $0, (%0); je loop_begin\n"
                     "loop_end:"
                     :
                     : "r"(shared_flag())
                     : "r8", "r9", "r10", "r11", "r14", "r15", "rbx", "cc", "memory");
}

static int is_allowed(long result)
{
    return result == 0 || errno != EPERM;
}

static void stop(pid_t child, int seizes)
{
    int status;

    if (!is_allowed(ptrace(seizes ? PTRACE_SEIZE : PTRACE_ATTACH, child, NULL, NULL))) {
        kill(child, SIGKILL);
        puts("ptrace is not allowed here");
        exit(77);
    }
    if (seizes)
        CHECK(ptrace(PTRACE_INTERRUPT, child, NULL, NULL) == 0);
    CHECK(waitpid(child, &status, __WALL) == child && WIFSTOPPED(status));
}

static int finish(pid_t child)
{
    int status;

    CHECK(ptrace(PTRACE_DETACH, child, NULL, NULL) == 0);
    CHECK(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int is_in_loop(const struct user_regs_struct *regs)
{
    return regs->rip >= (uintptr_t)loop_begin && regs->rip < (uintptr_t)loop_end && regs->r8 == 0x1111 && regs->r9 == 0x2222 &&
           regs->r10 == 0x3333 && regs->r11 == 0x4444 && regs->r14 == 0x5555 && regs->r15 == 0x6666 && regs->rbx == 0x7777;
}

static int is_in_call(const struct user_regs_struct *regs)
{
    return regs->orig_rax == SYS_pause && regs->rip > (uintptr_t)pause && regs->rip < (uintptr_t)pause + 100;
}

/* Leaves the child stopped.  It may not have got there when it is looked at first. */
static void stop_in(pid_t child, int seizes, int (*is_there)(const struct user_regs_struct *regs))
{
    for (int i = 0; i < 500; i++) {
        struct user_regs_struct regs;

        stop(child, seizes);
        CHECK(ptrace(PTRACE_GETREGS, child, NULL, &regs) == 0);
        if (is_there(&regs))
            return;
        CHECK(ptrace(PTRACE_DETACH, child, NULL, NULL) == 0);
        usleep(5000);
    }
    CHECK(!"it is somewhere else");
}

static void in_loop(int seizes)
{
    pid_t child = fork();

    if (child == 0) {
        spin();
        _exit(5);
    }
    stop_in(child, seizes, is_in_loop);
    CHECK(ptrace(PTRACE_POKEDATA, child, shared_flag(), 1L) == 0);
    printf("in a loop: %d\n", finish(child));
    fflush(stdout);
}

static void on_signal(int signo)
{
    (void)signo;
}

static void in_call(int seizes)
{
    pid_t child;

    signal(SIGUSR1, on_signal);
    child = fork();
    if (child == 0) {
        CHECK(pause() == -1 && errno == EINTR);
        _exit(6);
    }
    stop_in(child, seizes, is_in_call);
    CHECK(kill(child, SIGUSR1) == 0);
    printf("in a call: %d\n", finish(child));
    fflush(stdout);
}

int main(void)
{
    for (int seizes = 0; seizes < 2; seizes++) {
        in_loop(seizes);
        in_call(seizes);
    }
    return 0;
}
