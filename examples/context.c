// SPDX-License-Identifier: MIT
/* context.c - log lines and a lock that carry their calling context in one number
 *
 *     context           prints three log lines, and where the lock was taken; exit status 0
 *
 * Three ways lead to the same message.  Which one was it?
 *
 *     tbd record --mode=context -- context
 *     tbdq context 0x3630b3fdf0c92bb9 --program context      the number in the line
 *
 * Without tbd the numbers are 0. */
#include <inttypes.h>
#include <stdio.h>
#include <tbd/tbd.h>

static unsigned stock = 5;
static uint64_t owner; /* of the lock: the context that took it; 0: free */

__attribute__((noinline)) void log_line(const char *text, unsigned number);
__attribute__((noinline)) void take(unsigned count);
__attribute__((noinline)) void ship(unsigned orders);
__attribute__((noinline)) void build(unsigned machines);
__attribute__((noinline)) void lock(void);
__attribute__((noinline)) void unlock(void);

void log_line(const char *text, unsigned number)
{
    uint64_t context = tbd_context();

    printf("[0x%016" PRIx64 "] %s %u\n", context, text, number);
}

void lock(void)
{
    uint64_t context = tbd_context();

    owner = context;
}

void unlock(void)
{
    owner = 0;
}

void take(unsigned count)
{
    lock();
    if (count > stock)
        log_line("not enough in stock:", stock);
    else
        stock -= count;
    unlock();
}

void ship(unsigned orders)
{
    for (unsigned n = 1; n <= orders; n++)
        take(n);
    __asm__ volatile(""); /* the last call is a call */
}

void build(unsigned machines)
{
    if (machines > 1)
        build(machines - 1);
    take(2 * machines);
    __asm__ volatile("");
}

int main(void)
{
    ship(3);
    build(2);
    take(9);
    lock();
    printf("the lock was taken in 0x%016" PRIx64 "\n", owner);
    unlock();
    return 0;
}
