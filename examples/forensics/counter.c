// SPDX-License-Identifier: MIT
/* counter.c - two threads serve 400 customers each, and count them together: an update that is not atomic
 *
 * Neither running nor recording it shows the bug; `tbd record --chaos` does, for about every second seed
 * (docs/TUTORIAL.md, 10). */
#include <pthread.h>
#include <stdio.h>

static int served;
#ifdef FIXED
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#endif

static void *serve(void *unused)
{
    for (int i = 0; i < 400; i++) {
#ifdef FIXED
        pthread_mutex_lock(&lock);
#endif
        served++;
#ifdef FIXED
        pthread_mutex_unlock(&lock);
#endif
    }
    return unused;
}

int main(void)
{
    pthread_t threads[2];

    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, serve, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%d of 800 served\n", served);
    return served != 800;
}
