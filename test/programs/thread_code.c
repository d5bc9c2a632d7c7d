// SPDX-License-Identifier: MIT
// libs: pthread dl
/* Many threads that load and unload libraries, make code, run it, change it and free it, all at once, at addresses that
 * others use right afterwards: each gets what its own code computes. */
#define _GNU_SOURCE
#include "check.h"
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, ROUNDS = 12, FUNCTIONS = 8 };

typedef uint32_t (*function)(uint32_t);

static pthread_barrier_t barrier;
static unsigned threads = 50;

/* lea eax, [rdi + value]; ret, after a jump over `gap` bytes, so that there are several blocks */
static size_t emit(unsigned char *at, uint32_t value, unsigned char gap)
{
    unsigned char code[16] = { 0xeb, gap };
    size_t length = 2u + gap;

    memcpy(at, code, 2);
    memset(at + 2, 0xcc, gap);
    at[length] = 0x8d;
    at[length + 1] = 0x87;
    memcpy(at + length + 2, &value, 4);
    at[length + 6] = 0xc3;
    return length + 7;
}

static void run_page(unsigned char *page, const size_t *start, uint32_t first)
{
    for (int turn = 0; turn < 20; turn++)
        for (uint32_t n = 0; n < FUNCTIONS; n++)
            CHECK(((function)(void *)(page + start[n]))(n) == first + n + n);
}

/* Written, made executable, run, written again, and freed. */
static void generate(uint32_t first)
{
    unsigned char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t start[FUNCTIONS];

    CHECK(page != MAP_FAILED);
    for (uint32_t change = 0; change < 2; change++) {
        size_t at = 0;

        CHECK(mprotect(page, PAGE, PROT_READ | PROT_WRITE) == 0);
        for (uint32_t n = 0; n < FUNCTIONS; n++) {
            start[n] = at;
            at += emit(page + at, first + change * 1000 + n, (unsigned char)(n * 3));
        }
        CHECK(mprotect(page, PAGE, PROT_READ | PROT_EXEC) == 0);
        run_page(page, start, first + change * 1000);
    }
    CHECK(munmap(page, PAGE) == 0);
}

/* In memory that stays writable, as some compilers have it. */
static void rewrite(unsigned char *page, uint32_t first)
{
    for (uint32_t n = 0; n < 6; n++) {
        emit(page, first + n, 0);
        CHECK(((function)(void *)page)(7) == first + n + 7);
    }
}

static void load(const char *name)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);

    if (library)
        CHECK(dlclose(library) == 0);
}

static void *work(void *argument)
{
    static const char *const names[] = { "libBrokenLocale.so.1", "libanl.so.1", "libutil.so.1", "libthread_db.so.1" };
    uint32_t own = (uint32_t)(uintptr_t)argument;
    unsigned char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(page != MAP_FAILED);
    pthread_barrier_wait(&barrier);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        generate(own * 100000 + round * 5000);
        rewrite(page, own * 77 + round);
        if ((own + round) % 4 == 0)
            load(names[round % 4]);
    }
    CHECK(munmap(page, PAGE) == 0);
    return argument;
}

int main(int argc, char **argv)
{
    pthread_t *thread;

    if (argc > 1)
        threads = (unsigned)atoi(argv[1]);
    thread = calloc(threads, sizeof(*thread));
    CHECK(thread && pthread_barrier_init(&barrier, NULL, threads) == 0);
    for (unsigned i = 0; i < threads; i++)
        CHECK(pthread_create(&thread[i], NULL, work, (void *)(uintptr_t)(i + 1)) == 0);
    for (unsigned i = 0; i < threads; i++)
        CHECK(pthread_join(thread[i], NULL) == 0);
    printf("%u threads\n", threads);
    return 0;
}
