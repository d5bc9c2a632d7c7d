// SPDX-License-Identifier: MIT
/* thread_jumps.c - a function that is entered by a jump, with a buffer just above its return address, while another thread waits */
#include <pthread.h>
#include <stdio.h>

enum { ROUNDS = 100 };

long taken(long round, const char *text, const long *buffer);
long hand_on(long round, const char *text);

/* Its third parameter is where a handler has its signal's context. */
__asm__("        .text\n"
        "        .globl  hand_on\n"
        "        .type   hand_on, @function\n"
        "hand_on:\n"
        "        leaq    8(%rsp), %rdx\n"
        "        jmp     taken\n"
        "        .size   hand_on, . - hand_on\n");

__attribute__((noinline)) long taken(long round, const char *text, const long *buffer)
{
    return round + text[0] + (buffer != NULL);
}

static pthread_barrier_t met;

static void *wait_here(void *unused)
{
    pthread_barrier_wait(&met);
    return unused;
}

int main(void)
{
    pthread_t other;
    long sum = 0;

    pthread_barrier_init(&met, NULL, 2);
    if (pthread_create(&other, NULL, wait_here, NULL) != 0)
        return 1;
    for (long round = 0; round < ROUNDS; round++)
        sum += hand_on(round, "a");
    pthread_barrier_wait(&met);
    pthread_join(other, NULL);
    printf("%ld\n", sum);
    return 0;
}
