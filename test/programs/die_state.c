// SPDX-License-Identifier: MIT
// libs: pthread
// signal: 11
/* Dies with variables of all kinds, on a heap that pointers lead to, while another thread waits; the argument
 * says how: by a store through NULL, or ... */
#include "check.h"
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

struct node {
    struct node *next;
    int key;
    char name[12];
};

static struct node *list;
static volatile int total = 77;
static volatile int untouched[4096];
static volatile int other_is_ready;
static pthread_barrier_t barrier;

static void *waits(void *argument)
{
    volatile int mine = 31;

    other_is_ready = mine;
    for (;;)
        pause();
    return argument;
}

static struct node *grow(struct node *next, int key, const char *name)
{
    struct node *node = calloc(1, sizeof(*node));

    node->next = next;
    node->key = key;
    strcpy(node->name, name);
    return node;
}

__attribute__((noinline)) static void store(volatile int *where, int depth)
{
    volatile double ratio = 0.25 * depth;

    if (depth < 3)
        store(where, depth + 1);
    *where = (int)ratio + untouched[depth];
}

static void in_handler(int signo)
{
    store(NULL, signo - SIGUSR1);
}

static void *both(void *argument)
{
    pthread_barrier_wait(&barrier);
    store(argument, 2);
    return NULL;
}

static void with_stack_pointer(unsigned long sp)
{
    __asm__ volatile("mov %0, %%rsp\n\tmovl $0, 0" : : "r"(sp) : "memory");
}

static volatile unsigned long nowhere = 0x123450;

static void die(const char *how)
{
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "jump") == 0)
        ((void (*)(void))nowhere)();
    if (strcmp(how, "unmapped") == 0)
        with_stack_pointer(nowhere);
    if (strcmp(how, "smashed") == 0)
        with_stack_pointer((unsigned long)&list + 1);
    if (strcmp(how, "noncanonical") == 0)
        with_stack_pointer(0x8000000000000000ul);
    if (strcmp(how, "handler") == 0) {
        signal(SIGUSR1, in_handler);
        raise(SIGUSR1);
    }
    if (strcmp(how, "kill") == 0)
        kill(getpid(), SIGTERM);
    if (strcmp(how, "exit") == 0)
        _exit(3);
    for (int i = 0; strcmp(how, "later") == 0 && i < 300; i++)
        usleep(10000);
    store(NULL, 0);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    pthread_t thread;

    list = grow(grow(grow(NULL, 30, "last"), 20, "middle"), 10, "first");
    puts("dying");
    fflush(stdout);
    if (strcmp(how, "two") == 0) {
        pthread_barrier_init(&barrier, NULL, 2);
        CHECK(!pthread_create(&thread, NULL, both, NULL));
        both(NULL);
    }
    CHECK(!pthread_create(&thread, NULL, waits, NULL));
    while (!other_is_ready)
        usleep(100);
    usleep(20000);
    die(how);
    return total;
}
