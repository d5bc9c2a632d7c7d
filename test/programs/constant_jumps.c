// SPDX-License-Identifier: MIT
// flags: -no-pie
// libs: pthread
/* Jumps and calls through memory that is read only most of the time, as import stubs have it.  It is made writable and changed,
 * dropped, mapped over, moved away and changed by another thread: each jump goes where the memory says by then. */
#define _GNU_SOURCE
#include "check.h"
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, ROUNDS = 200 };

static uint64_t as_built(uint64_t n)
{
    return n + 1;
}

static uint64_t first(uint64_t n)
{
    return n + 2;
}

static uint64_t second(uint64_t n)
{
    return n + 3;
}

typedef uint64_t (*function)(uint64_t n);

/* A page of the program's file, without relocations: dropped, it leads to `as_built` again. */
__attribute__((aligned(PAGE), used)) function constant_slot[PAGE / sizeof(function)] = { as_built };

uint64_t jump_through(uint64_t n);
uint64_t call_through(uint64_t n);
__asm__(".text\n"
        "jump_through: jmp *constant_slot(%rip)\n"
        "call_through: sub $8, %rsp\n"
        "call *constant_slot(%rip)\n"
        "add $8, %rsp\n"
        "ret\n");

static uint64_t both(void)
{
    uint64_t sum = 0;

    for (uint64_t n = 0; n < ROUNDS; n++)
        sum += jump_through(n) + call_through(n);
    return sum - ROUNDS * (ROUNDS - 1);
}

static void protect(int prot)
{
    CHECK(mprotect(constant_slot, PAGE, prot) == 0);
}

static void *change(void *to)
{
    protect(PROT_READ | PROT_WRITE);
    constant_slot[0] = (function)to;
    protect(PROT_READ);
    return NULL;
}

static void change_in_thread(function to)
{
    pthread_t thread;

    CHECK(pthread_create(&thread, NULL, change, (void *)to) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

/* A page that leads to `second`, in the place of the slot's. */
static void map_over(void)
{
    function *page =
        mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(page != MAP_FAILED);
    page[0] = second;
    CHECK(mprotect(page, PAGE, PROT_READ) == 0);
    CHECK(mremap(page, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, constant_slot) == constant_slot);
}

int main(void)
{
    protect(PROT_READ);
    CHECK(both() == 2 * ROUNDS * 1);
    change((void *)first);
    CHECK(both() == 2 * ROUNDS * 2);
    CHECK(madvise(constant_slot, PAGE, MADV_DONTNEED) == 0);
    CHECK(both() == 2 * ROUNDS * 1);
    change_in_thread(second);
    CHECK(both() == 2 * ROUNDS * 3);
    change_in_thread(first);
    CHECK(both() == 2 * ROUNDS * 2);
    map_over();
    CHECK(both() == 2 * ROUNDS * 3);
    CHECK(mmap(constant_slot, PAGE, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == constant_slot);
    for (unsigned n = 0; n < 20; n++) { /* writable */
        constant_slot[0] = n % 2 ? first : second;
        CHECK(both() == 2 * ROUNDS * (n % 2 ? 2 : 3));
    }
    return 0;
}
