// SPDX-License-Identifier: MIT
// libs: pthread
/* Threads that never wait in the kernel: spin locks, atomic flags, plain variables; with sched_yield and without.
 * They end only if the one they wait for gets its turn. */
#include "check.h"
#include <pthread.h>
#include <sched.h>

static pthread_spinlock_t spin;
static volatile unsigned flag;
static unsigned ping, counter;

static void *count(void *argument)
{
    for (unsigned i = 0; i < 1000; i++) {
        pthread_spin_lock(&spin);
        counter++;
        pthread_spin_unlock(&spin);
    }
    return argument;
}

static void *follow(void *argument)
{
    for (unsigned i = 0; i < 10; i++) {
        while (__atomic_load_n(&ping, __ATOMIC_ACQUIRE) != 2 * i + 1)
            ;
        __atomic_store_n(&ping, 2 * i + 2, __ATOMIC_RELEASE);
    }
    return argument;
}

static void lead(void)
{
    for (unsigned i = 0; i < 10; i++) {
        __atomic_store_n(&ping, 2 * i + 1, __ATOMIC_RELEASE);
        while (__atomic_load_n(&ping, __ATOMIC_ACQUIRE) != 2 * i + 2)
            ;
    }
}

static void *raise_flag(void *argument)
{
    flag = 1;
    while (flag == 1)
        sched_yield();
    return argument;
}

int main(void)
{
    pthread_t threads[4];

    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, count, NULL);
    pthread_create(&threads[3], NULL, follow, NULL);
    lead();
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    CHECK(counter == 3000);
    pthread_create(&threads[0], NULL, raise_flag, NULL);
    while (!flag)
        ;
    flag = 2;
    pthread_join(threads[0], NULL);
    puts("spun");
    return 0;
}
