// SPDX-License-Identifier: MIT
/* Three threads, of which each calls outer() twice, with arguments of its own. */
#include <pthread.h>
#include <stdio.h>

static int results[3];
static pthread_barrier_t barrier;

__attribute__((noinline)) static int inner(int value)
{
    value += 3;
    return value * 2;
}

__attribute__((noinline)) static int outer(int id, int rounds)
{
    int sum = id;

    for (int i = 0; i < rounds; i++) {
        sum += inner(i + id);
        if (sum % 2)
            sum++;
    }
    return sum;
}

static void *work(void *argument)
{
    int id = *(int *)argument;
    int sum;

    pthread_barrier_wait(&barrier);
    sum = outer(id, 3);
    sum += outer(id + 10, 2);
    results[id] = sum;
    return NULL;
}

int main(void)
{
    static int ids[3] = { 0, 1, 2 };
    pthread_t threads[3];

    pthread_barrier_init(&barrier, NULL, 3);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, &ids[i]);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("%d %d %d\n", results[0], results[1], results[2]);
    return 0;
}
