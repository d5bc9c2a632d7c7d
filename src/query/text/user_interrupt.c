// SPDX-License-Identifier: MIT
/* user_interrupt.c - see user_interrupt.h */
#include "query/text/user_interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

atomic_bool tbd_interrupt_noted;

static int descriptor = -1;

void tbd_interrupt_note(void)
{
    uint64_t one = 1;

    atomic_store(&tbd_interrupt_noted, true);
    (void)!write(descriptor, &one, sizeof(one));
}

static void note(int signal)
{
    int error = errno;

    (void)signal;
    tbd_interrupt_note();
    errno = error;
}

void tbd_interrupt_catch(void)
{
    struct sigaction action = { .sa_handler = note, .sa_flags = SA_RESTART };

    if (descriptor >= 0)
        return;
    descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (descriptor >= 0)
        (void)sigaction(SIGINT, &action, NULL);
}

int tbd_interrupt_descriptor(void)
{
    return descriptor;
}

void tbd_interrupt_clear(void)
{
    uint64_t count;

    if (descriptor >= 0)
        (void)!read(descriptor, &count, sizeof(count));
    atomic_store(&tbd_interrupt_noted, false);
}
