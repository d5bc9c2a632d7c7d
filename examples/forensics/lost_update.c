// SPDX-License-Identifier: MIT
/* lost_update.c - two tellers, one account, and a deposit that vanishes
 *
 * lost_update.tbdq finds the store that took a deposit back, and the other teller's store that it
 * overwrote. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

static int balance;
#ifdef FIXED
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#endif

static void deposit(int teller, int amount)
{
    int seen;

#ifdef FIXED
    pthread_mutex_lock(&lock);
#endif
    seen = balance;
    if (teller != 0)
        sched_yield(); /* another teller may run here */
    balance = seen + amount;
#ifdef FIXED
    pthread_mutex_unlock(&lock);
#endif
}

static void *work(void *teller)
{
    for (int i = 0; i < 50; i++)
        deposit((int)(long)teller, 10);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];

    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, (void *)(i + 1));
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("balance %d of 1000\n", balance);
    return balance != 1000;
}
