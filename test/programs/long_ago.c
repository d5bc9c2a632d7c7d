// SPDX-License-Identifier: MIT
// libs: dl
/* What was made long ago and is used at the end: variables, memory that mremap has moved, a library, a signal handler,
 * a thread that waits all the time.  In between, memory changes everywhere; the rounds are the argument. */
#define _GNU_SOURCE
#include "check.h"
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#define MEMORY  (1u << 20)
#define NUMBERS 131072u

char text_of_long_ago[64];
unsigned numbers_of_long_ago[4096];
double *moved_long_ago, *kept_long_ago;
volatile sig_atomic_t signals_seen;
static int pipes[2];
static uint64_t from_threads;

static void on_signal(int number)
{
    (void)number;
    signals_seen++;
}

static void *waits(void *unused)
{
    char byte;

    CHECK(read(pipes[0], &byte, 1) == 1);
    from_threads += (unsigned char)byte;
    return unused;
}

static void *adds(void *number)
{
    from_threads += (uintptr_t)number;
    return NULL;
}

__attribute__((noinline)) void churn(uint8_t *memory, uint64_t *seed)
{
    for (size_t i = 0; i < MEMORY; i += 64) {
        memory[i] = (uint8_t)check_random(seed);
        memory[i + 1] += memory[*seed % MEMORY];
    }
}

static void move_numbers(void)
{
    double *old = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *there = mmap(NULL, 4 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(old != MAP_FAILED && there != MAP_FAILED);
    for (unsigned i = 0; i < NUMBERS; i++)
        old[i] = i * 0.5;
    moved_long_ago = mremap(old, 1 << 20, 4 << 20, MREMAP_MAYMOVE | MREMAP_FIXED, there);
    CHECK(moved_long_ago == there);
    kept_long_ago = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(kept_long_ago != MAP_FAILED);
    kept_long_ago[100] = 3.25;
}

__attribute__((noinline)) double remember(double (*power)(double, double))
{
    double sum = 0;

    for (unsigned i = 0; i < NUMBERS; i += 1000)
        sum += moved_long_ago[i] + moved_long_ago[3 * NUMBERS];
    return power(sum, 2) + kept_long_ago[100] + kept_long_ago[5000] + numbers_of_long_ago[4000] + strlen(text_of_long_ago);
}

int main(int argc, char **argv)
{
    unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 60;
    uint8_t *memory = calloc(1, MEMORY);
    void *library = dlopen("libm.so.6", RTLD_NOW), *gone;
    double (*power)(double, double);
    pthread_t waiting, adding;
    uint64_t seed = 7;

    CHECK(memory && library && !pipe(pipes) && !pthread_create(&waiting, NULL, waits, NULL));
    power = (double (*)(double, double))dlsym(library, "pow");
    CHECK(power && signal(SIGUSR1, on_signal) != SIG_ERR);
    strcpy(text_of_long_ago, "set long ago");
    for (unsigned i = 0; i < 4096; i++)
        numbers_of_long_ago[i] = i * 3;
    move_numbers();
    gone = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(gone != MAP_FAILED && memset(gone, 1, MEMORY) && !munmap(gone, MEMORY));
    for (unsigned i = 0; i < rounds; i++) {
        churn(memory, &seed);
        if (i % 10)
            continue;
        CHECK(!pthread_create(&adding, NULL, adds, (void *)(uintptr_t)i) && !pthread_join(adding, NULL));
        CHECK(!raise(SIGUSR1));
    }
    CHECK(write(pipes[1], "x", 1) == 1 && !pthread_join(waiting, NULL));
    printf("%g %llu %d %016llx\n", remember(power), (unsigned long long)from_threads, (int)signals_seen,
           (unsigned long long)check_hash(memory, MEMORY));
    return 0;
}
