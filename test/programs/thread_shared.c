// SPDX-License-Identifier: MIT
// libs: pthread
/* Threads of two processes at the same memory: counters under a robust mutex that both use, a thread that ends with
 * it, semaphores from one to the other, data read from a pipe into shared memory. */
#include "check.h"
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 40

static struct {
    pthread_mutex_t mutex;
    sem_t to_child, to_parent;
    unsigned counter, deaths;
    char text[64];
} *shared;

static int ends[2];

static void lock(void)
{
    int error = pthread_mutex_lock(&shared->mutex);

    CHECK(error == 0 || error == EOWNERDEAD);
    if (error) {
        CHECK(pthread_mutex_consistent(&shared->mutex) == 0);
        shared->deaths++;
    }
}

static void *count(void *argument)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        lock();
        shared->counter++;
        CHECK(pthread_mutex_unlock(&shared->mutex) == 0);
    }
    return argument;
}

static void *die(void *argument)
{
    lock();
    shared->counter++;
    return argument;
}

static void *answer(void *argument)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        sem_t *mine = argument ? &shared->to_child : &shared->to_parent;

        while (sem_wait(mine) != 0)
            ;
        shared->text[i % 16] = (char)('a' + i % 16 + (argument ? 0 : 16));
        sem_post(argument ? &shared->to_parent : &shared->to_child);
    }
    return NULL;
}

static void run(int is_child)
{
    void *(*const functions[4])(void *) = { count, die, answer, count };
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, functions[i], is_child ? shared : NULL) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

static void *read_into(void *argument)
{
    CHECK(read(ends[0], shared->text + 20, 10) == 10);
    return argument;
}

static void make(void)
{
    pthread_mutexattr_t attributes;

    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED && pipe(ends) == 0);
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    CHECK(pthread_mutex_init(&shared->mutex, &attributes) == 0);
    CHECK(sem_init(&shared->to_child, 1, 1) == 0 && sem_init(&shared->to_parent, 1, 0) == 0);
}

int main(void)
{
    pthread_t reader;
    int status;
    pid_t pid;

    make();
    CHECK(pthread_create(&reader, NULL, read_into, NULL) == 0);
    pid = fork();
    if (pid == 0) {
        run(1);
        CHECK(write(ends[1], "from there", 10) == 10);
        _exit(0);
    }
    run(0);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    CHECK(pthread_join(reader, NULL) == 0 && !memcmp(shared->text + 20, "from there", 10));
    lock();
    CHECK(shared->counter == 4 * ROUNDS + 2 && shared->deaths == 2);
    printf("%u %u\n", shared->counter, shared->deaths);
    return 0;
}
