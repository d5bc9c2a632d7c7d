// SPDX-License-Identifier: MIT
/* crash_callback.c - a call through a pointer that something else has cleared
 *
 * The stack has main and deliver.  Who cleared the entry of the table has returned long ago: `tbdq path` has it, with the line. */
#include <stdio.h>

#define DEVICES 4

typedef void handler(int value);

static handler *handlers[DEVICES];
static int idle[DEVICES];

static void print_value(int value)
{
    printf("%d\n", value);
}

static void close_device(int device)
{ /* cause: the next line */
    handlers[device] = NULL;
    idle[device] = 0;
}

/* Devices that nothing was sent to for a while. */
static void clean_up(void)
{
    for (int i = 0; i < DEVICES; i++) {
        if (++idle[i] == 6)
            close_device(i);
    }
}

static void deliver(int device, int value)
{
#ifdef FIXED
    if (handlers[device] == NULL)
        handlers[device] = print_value;
#endif
    handlers[device](value);
    idle[device] = 0;
}

int main(void)
{
    for (int i = 0; i < DEVICES; i++)
        handlers[i] = print_value;
    for (int now = 0; now < 8; now++) {
        clean_up();
        deliver(now == 7 ? 2 : now % 2, now);
    }
    return 0;
}
