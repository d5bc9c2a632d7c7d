// SPDX-License-Identifier: MIT
// flags: -O0 -g
/* Sends itself each signal that can be caught, in turn, and returns from its handler (test_debugger.py).  Debuggers have SIGINT and
 * SIGTRAP for themselves, and gdb does not know SIGSTKFLT. */
#include "check.h"

#include <signal.h>

static volatile int wanted, caught;

static void handle(int number)
{
    if (number == wanted)
        caught++;
}

static void send(int number)
{
    struct sigaction action = { .sa_handler = handle };

    if (number == SIGINT || number == SIGTRAP || number == SIGSTKFLT ||
        sigaction(number, &action, NULL) != 0)
        return; /* SIGKILL, SIGSTOP, and those of the C library */
    wanted = number;
    raise(number);
    sigaction(number, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
}

int main(void)
{
    for (int number = 1; number <= SIGRTMAX; number++)
        send(number);
    printf("%d signals\n", caught);
    return caught == SIGRTMAX - 7 ? 0 : 1;
}
