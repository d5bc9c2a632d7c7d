// SPDX-License-Identifier: MIT
// libs: pthread
/* Six races. `races NAME` runs one of them and exits with 1 if it shows; without a name all run, and nothing is said. Two
 * threads do so little that taking turns as usual never shows them (test/e2e/test_chaos.py). */
#include "check.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 400
#define OWNED  20

static atomic_int shown;

static void run_both(void *(*first)(void *), void *(*second)(void *))
{
    static unsigned numbers[2] = { 0, 1 };
    pthread_t threads[2];

    CHECK(pthread_create(&threads[0], NULL, first, &numbers[0]) == 0);
    CHECK(pthread_create(&threads[1], NULL, second, &numbers[1]) == 0);
    for (unsigned i = 0; i < 2; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

/* ---- lost: an update within one block, load, add, store, is not atomic ---- */

static volatile unsigned long counter;

static void *count(void *argument)
{
    for (unsigned i = 0; i < ROUNDS; i++)
        counter++;
    return argument;
}

static void lost(void)
{
    counter = 0;
    run_both(count, count);
    shown = counter != 2ul * ROUNDS;
}

/* ---- check: both find that nobody has it, and take it, with a system call in between ---- */

static volatile int owned[OWNED];
static atomic_int owners;

static void *take(void *argument)
{
    for (unsigned i = 0; i < OWNED; i++) {
        if (owned[i])
            continue;
        syscall(SYS_getppid);
        owned[i] = 1;
        owners++;
    }
    return argument;
}

static void check(void)
{
    memset((void *)owned, 0, sizeof(owned));
    owners = 0;
    run_both(take, take);
    shown = owners != OWNED;
}

/* ---- publish: the flag is set before what it stands for ---- */

static struct {
    volatile int ready, value;
} boxes[ROUNDS];

static void *publish_boxes(void *argument)
{
    static volatile unsigned work;

    for (unsigned i = 0; i < ROUNDS; i++) {
        for (unsigned n = 0; n < 4; n++)
            work = work * 3 + n;
        boxes[i].ready = 1;
        boxes[i].value = 42;
    }
    return argument;
}

static void *read_boxes(void *argument)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        while (!boxes[i].ready)
            sched_yield();
        if (boxes[i].value != 42)
            shown = 1;
    }
    return argument;
}

static void publish(void)
{
    memset(boxes, 0, sizeof(boxes));
    run_both(read_boxes, publish_boxes);
}

/* ---- aba: a stack whose head is the same again, but not what lies below it ---- */

struct node {
    struct node *next;
    atomic_int users;
};

static _Atomic(struct node *) head;
static struct node nodes[3];

static void push(struct node *node)
{
    node->next = head;
    while (!atomic_compare_exchange_strong(&head, &node->next, node))
        ;
}

static struct node *pop(void)
{
    struct node *top = head;

    while (top && !atomic_compare_exchange_strong(&head, &top, top->next))
        ;
    return top;
}

/* Takes two and gives back the first: its owner cannot be the only one of the second if that is on the stack. */
static void *use_stack(void *argument)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct node *a = pop(), *b = pop();

        if ((a && a->users++) || (b && b->users++)) {
            shown = 1;
            return argument;
        }
        if (a) {
            a->users--;
            push(a);
        }
        if (b) {
            b->users--;
            push(b);
        }
    }
    return argument;
}

static void aba(void)
{
    memset(nodes, 0, sizeof(nodes));
    head = NULL;
    for (unsigned i = 0; i < 3; i++)
        push(&nodes[i]);
    run_both(use_stack, use_stack);
}

/* ---- wakeup: the condition is looked at without the lock, so its signal may come before the wait ----
 * A signal that came when the wait was about to time out is not the race: it may have come after that. */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static volatile int is_done, was_signalled;
static struct timespec signalled;

/* From the signal on. */
static long milliseconds_to(const struct timespec *until)
{
    return (until->tv_sec - signalled.tv_sec) * 1000 +
           (until->tv_nsec - signalled.tv_nsec) / 1000000;
}

static void *wait_for_it(void *argument)
{
    struct timespec until;
    int result = 0;

    if (is_done)
        return argument;
    pthread_mutex_lock(&mutex);
    do {
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 100000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        result = pthread_cond_timedwait(&condition, &mutex, &until);
    } while (result == ETIMEDOUT && !was_signalled);
    pthread_mutex_unlock(&mutex);
    if (result == ETIMEDOUT && milliseconds_to(&until) > 50)
        shown = 1;
    return argument;
}

static void *say_it(void *argument)
{
    clock_gettime(CLOCK_REALTIME, &signalled);
    is_done = 1;
    pthread_cond_signal(&condition);
    was_signalled = 1;
    return argument;
}

static void wakeup(void)
{
    is_done = was_signalled = 0;
    run_both(wait_for_it, say_it);
}

/* ---- deadlock: two locks, taken in both orders ---- */

static pthread_mutex_t locks[2] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };
static volatile int wants[2];

static void *lock_both(void *argument)
{
    unsigned me = *(unsigned *)argument, other = 1 - me;

    pthread_mutex_lock(&locks[me]);
    wants[me] = 1;
    while (pthread_mutex_trylock(&locks[other]) != 0) {
        if (wants[other] || shown) { /* which it cannot have: nobody gives way */
            shown = 1;
            pthread_mutex_unlock(&locks[me]);
            return argument;
        }
        sched_yield();
    }
    wants[me] = 0;
    pthread_mutex_unlock(&locks[other]);
    pthread_mutex_unlock(&locks[me]);
    return argument;
}

static void deadlock(void)
{
    wants[0] = wants[1] = 0;
    run_both(lock_both, lock_both);
}

static const struct {
    const char *name;
    void (*run)(void);
} races[] = { { "lost", lost }, { "check", check }, { "publish", publish },
              { "aba", aba },   { "wakeup", wakeup }, { "deadlock", deadlock } };

int main(int argc, char **argv)
{
    for (unsigned i = 0; i < sizeof(races) / sizeof(races[0]); i++) {
        shown = 0;
        if (argc > 1 && strcmp(argv[1], races[i].name) != 0)
            continue;
        races[i].run();
        if (argc > 1)
            return shown;
    }
    return argc > 1 ? 2 : 0;
}
