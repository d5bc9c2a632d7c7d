// SPDX-License-Identifier: MIT
// libs: pthread
/* Threads that hand work to each other, by a lock and a condition, through pipes ("pipes") or without any system call ("spins"), and write down themselves in
 * which order they had it: `turns`.  With "crash" it prints that order and dies, with "waits" it waits then. */
#include "check.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREADS 3
#define TURNS   40

static unsigned turns[TURNS]; /* thread ids; only who has the work writes */
static unsigned done;
static __thread unsigned own;
static unsigned seed = 18;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t given = PTHREAD_COND_INITIALIZER;
static int owner;
static volatile int holder;
static int ends[THREADS][2];

/* Whom the work goes to next: not always the next one. */
__attribute__((noinline)) static int take_turn(int me)
{
    turns[done++] = own;
    seed = seed * 1103515245 + 12345;
    return (me + 1 + (int)(seed >> 16) % (THREADS - 1)) % THREADS;
}

static void *by_lock(void *number)
{
    int me = (int)(long)number;

    own = (unsigned)syscall(SYS_gettid);
    pthread_mutex_lock(&lock);
    while (done < TURNS) {
        if (owner == me)
            owner = take_turn(me);
        pthread_cond_broadcast(&given);
        while (owner != me && done < TURNS)
            pthread_cond_wait(&given, &lock);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *by_pipes(void *number)
{
    int me = (int)(long)number, to;
    char byte;

    own = (unsigned)syscall(SYS_gettid);
    while (read(ends[me][0], &byte, 1) == 1) {
        if (done == TURNS) {
            for (to = 0; to < THREADS; to++)
                close(ends[to][1]);
            break;
        }
        to = take_turn(me);
        CHECK(write(ends[to][1], "w", 1) == 1);
    }
    return NULL;
}

static void *by_spinning(void *number)
{
    int me = (int)(long)number;

    own = (unsigned)syscall(SYS_gettid);
    for (;;) {
        while (__atomic_load_n(&holder, __ATOMIC_ACQUIRE) != me)
            if (__atomic_load_n(&holder, __ATOMIC_ACQUIRE) == THREADS)
                return NULL;
        int next = take_turn(me);
        __atomic_store_n(&holder, done < TURNS ? next : THREADS, __ATOMIC_RELEASE);
    }
}

int main(int argc, char **argv)
{
    int pipes = argc > 1 && strcmp(argv[1], "pipes") == 0;
    int spins = argc > 1 && strcmp(argv[1], "spins") == 0;
    void *(*work)(void *) = pipes ? by_pipes : spins ? by_spinning : by_lock;
    pthread_t threads[THREADS];

    for (long i = 0; i < THREADS; i++)
        CHECK(pipe(ends[i]) == 0);
    for (long i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    if (pipes)
        CHECK(write(ends[0][1], "w", 1) == 1);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK(done == TURNS);
    for (unsigned i = 0; argc > 2 && i < TURNS; i++)
        printf("%u ", turns[i]);
    fflush(stdout);
    if (argc > 2 && strcmp(argv[2], "waits") == 0)
        pause();
    if (argc > 2)
        abort();
    printf("%u turns\n", done);
    return 0;
}
