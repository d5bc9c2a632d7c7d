// SPDX-License-Identifier: MIT
/* lock_order.c - two tellers, two accounts, and a deadlock
 *
 * Each teller locks the account that money is taken from, then the one that it goes to.  lock_order.tbdq finds
 * which lock the first teller waits for, who has it, and that the second one waits for a lock of the first. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#define TRIES 20000
#define PAUSE 2000

static pthread_mutex_t locks[2] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };
static int owner[2] = { -1, -1 }; /* of the locks: a teller */
static int money[2] = { 500, 500 };
static volatile int is_at_work[2];
static int gave_up = -1;

/* The example must end, so it does not wait for ever once both have a lock.  Before that the other one lets go in the end, however long it
 * does not run on a busy machine. */
static int take(int teller, int lock)
{
    for (int i = 0; i < TRIES; i += is_at_work[0] && is_at_work[1]) {
        if (pthread_mutex_trylock(&locks[lock]) == 0) {
            owner[lock] = teller;
            return 1;
        }
        sched_yield();
    }
    gave_up = teller;
    return 0;
}

static void release(int lock)
{
    owner[lock] = -1;
    pthread_mutex_unlock(&locks[lock]);
}

static void transfer(int teller, int from, int to)
{
    int first = from, second = to;

#ifdef FIXED
    if (first > second) {
        first = to;
        second = from;
    }
#endif
    if (!take(teller, first))
        return;
    is_at_work[teller] = 1;
    for (int i = 0; i < PAUSE && !is_at_work[1 - teller]; i++)
        sched_yield(); /* another teller may run here */
    if (take(teller, second)) {
        money[from] -= 10;
        money[to] += 10;
        release(second);
    }
    release(first);
}

static void *work(void *argument)
{
    int teller = (int)(long)argument;

    transfer(teller, teller, 1 - teller);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];

    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%s\n", gave_up < 0 ? "both moved their money" : "a teller gave up");
    return gave_up >= 0;
}
