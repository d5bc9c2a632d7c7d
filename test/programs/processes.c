// SPDX-License-Identifier: MIT
/* Forked processes, by mode: work (in parent and child), nested, loop (50), exec, raw (the system call itself, then
 * exec), popen, daemon (forks twice), signals (timers, SIGCHLD and signals to new children); without a mode, all. */
#define _GNU_SOURCE
#include "child.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char memory[64 * 4096];
static volatile int value = 5;

__attribute__((noinline)) static unsigned work(unsigned seed)
{
    unsigned sum = seed;

    for (unsigned i = 0; i < sizeof(memory); i += 61) {
        memory[i] = (char)(memory[i] + (int)seed);
        sum = sum * 31 + (unsigned char)memory[i];
    }
    return sum;
}

/* Each finds the memory as it was at the fork, and changes its own. */
static void mode_work(void)
{
    unsigned before = work(3);
    pid_t child = new_process();
    unsigned after = work(child ? 5 : 7);

    printf("%s: %u %u\n", child ? "parent" : "child", before, after);
    if (child == 0) {
        value = 9;
        fflush(stdout);
        _exit(3);
    }
    wait_for(child, 3);
    CHECK(value == 5);
}

static int open_descriptors(void)
{
    int count = 0;

    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void nest(int depth)
{
    pid_t child;

    value++;
    work((unsigned)value);
    if (depth == 0)
        return;
    child = new_process();
    if (child == 0) {
        nest(depth - 1);
        printf("depth %d value %d %u, %d descriptors\n", depth, value, work(1), open_descriptors());
        exit(depth);
    }
    wait_for(child, depth);
}

static void mode_nested(void)
{
    nest(3);
    CHECK(value == 6);
    value = 5;
}

static void mode_loop(void)
{
    for (int i = 0; i < 50; i++) {
        pid_t child = new_process();

        if (child == 0)
            _exit((int)(work((unsigned)i) & 63));
        wait_for(child, (int)(work((unsigned)i) & 63));
    }
}

static void mode_exec(void)
{
    pid_t child = new_process();

    if (child == 0) {
        CHECK(execl("/no/such/program", "x", (char *)NULL) == -1);
        execl("/bin/echo", "echo", "executed", (char *)NULL);
        _exit(127);
    }
    wait_for(child, 0);
}

static void mode_raw(void)
{
    pid_t child;

    fflush(stdout);
    child = (pid_t)syscall(SYS_fork);
    if (child == 0) {
        execl("/bin/echo", "echo", "executed", (char *)NULL);
        _exit(127);
    }
    wait_for(child, 0);
}

static void mode_popen(void)
{
    char text[64] = "";
    FILE *pipe;

    fflush(stdout);
    pipe = popen("echo one; echo two | tr a-z A-Z", "r");
    CHECK(pipe);
    while (fgets(text, sizeof(text), pipe))
        printf("popen: %s", text);
    CHECK(pclose(pipe) == 0);
}

static void mode_daemon(void)
{
    int pipes[2];
    char text[8];
    pid_t child;

    CHECK(pipe(pipes) == 0);
    child = new_process();
    if (child == 0) {
        CHECK(setsid() == getpid() && chdir("/") == 0);
        if (new_process())
            _exit(0);
        for (int i = 0; i < 100 && getppid() == getsid(0); i++)
            usleep(10000);
        CHECK(write(pipes[1], "daemon", 6) == 6);
        _exit(4);
    }
    wait_for(child, 0);
    close(pipes[1]);
    CHECK(read(pipes[0], text, sizeof(text)) == 6 && memcmp(text, "daemon", 6) == 0);
    CHECK(read(pipes[0], text, sizeof(text)) == 0);
    close(pipes[0]);
}

static volatile sig_atomic_t alarms, deaths, hellos;

static void count(int signo)
{
    if (signo == SIGALRM)
        alarms++;
    else if (signo == SIGCHLD)
        deaths++;
    else
        hellos++;
}

/* Timers are not inherited; a signal for a child comes to the child, once. */
static void signals_child(void)
{
    sigset_t none;

    sigemptyset(&none);
    alarms = 0;
    while (!hellos)
        sigsuspend(&none);
    work(2);
    _exit(hellos == 1 && alarms == 0 ? 11 : 12);
}

static void mode_signals(void)
{
    struct itimerval timer = { { 0, 700 }, { 0, 700 } };
    struct itimerval off = { { 0, 0 }, { 0, 0 } };
    struct sigaction action = { .sa_handler = count, .sa_flags = SA_RESTART };
    sigset_t usr1;

    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    CHECK(sigaction(SIGALRM, &action, NULL) == 0 && sigaction(SIGCHLD, &action, NULL) == 0);
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0 && sigprocmask(SIG_BLOCK, &usr1, NULL) == 0);
    setitimer(ITIMER_REAL, &timer, NULL);
    for (int i = 0; i < 20; i++) {
        pid_t child = new_process();

        if (child == 0)
            signals_child();
        CHECK(kill(child, SIGUSR1) == 0);
        wait_for(child, 11);
    }
    while (alarms < 3)
        work(1);
    setitimer(ITIMER_REAL, &off, NULL);
    CHECK(hellos == 0 && deaths >= 1);
}

static const struct {
    const char *name;
    void (*run)(void);
} modes[] = {
    { "work", mode_work },   { "nested", mode_nested }, { "loop", mode_loop },     { "exec", mode_exec },
    { "raw", mode_raw },     { "popen", mode_popen },   { "daemon", mode_daemon }, { "signals", mode_signals },
};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
        if (argc < 2 || strcmp(argv[1], modes[i].name) == 0)
            modes[i].run();
    puts("processes ok");
    return 0;
}
