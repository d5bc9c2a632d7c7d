// SPDX-License-Identifier: MIT
/* Signal handlers: from a call, from a fault that the handler mends, nested. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

volatile int count, sum;
static char *volatile page;

__attribute__((noinline)) static int work(int n)
{
    sum += n;
    return sum;
}

static void second(int number)
{
    count += number;
    work(count);
}

static void first(int number)
{
    count++;
    raise(SIGUSR2);
    work(number);
}

static void mend(int number, siginfo_t *info, void *context)
{
    (void)info, (void)context;
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
    work(number);
}

__attribute__((noinline)) static int touches(int n)
{
    page[n] = (char)n;
    return page[n] + n;
}

__attribute__((noinline)) static void raises(void)
{
    raise(SIGUSR1);
    sum++;
}

int main(void)
{
    struct sigaction action;

    memset(&action, 0, sizeof(action));
    action.sa_sigaction = mend;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, NULL);
    signal(SIGUSR1, first);
    signal(SIGUSR2, second);
    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 3; i++) {
        raises();
        work(i);
        sum += touches(i);
        mprotect(page, 4096, PROT_NONE);
    }
    printf("%d %d\n", count, sum);
    return 0;
}
