// SPDX-License-Identifier: MIT
// options: window=200
/* Memory whose addresses are a multiple of 8 TiB apart, which shares marks of what was touched: each page keeps what was written
 * to it, also where the other one was written, read, protected or taken away in the same window. */
#define _GNU_SOURCE
#include "check.h"
#include <sys/mman.h>

#define PAGE 4096ul
#define PAGES 8u
#define APART 0x80000000000ul

static unsigned char *const base = (unsigned char *)0x100000000000ul;

static unsigned char *at(unsigned place, unsigned page)
{
    return base + place * APART + page * PAGE;
}

static void map(unsigned place)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;

    CHECK(mmap(at(place, 0), PAGES * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0) == at(place, 0));
}

/* Some windows later. */
static void check(unsigned place, unsigned page, unsigned char value)
{
    const volatile unsigned char *byte = at(place, page);

    for (unsigned i = 0; i < PAGE; i += 8)
        CHECK(byte[i] == value);
}

static void put(unsigned place, unsigned page, unsigned char value)
{
    memset(at(place, page), value, PAGE);
}

static void apart(void)
{
    for (unsigned page = 0; page < PAGES; page++) {
        put(0, page, (unsigned char)(10 + page));
        put(1, page, (unsigned char)(50 + page));
        put(3, page, (unsigned char)(90 + page));
    }
    for (unsigned page = 0; page < PAGES; page++) {
        check(0, page, (unsigned char)(10 + page));
        check(1, page, (unsigned char)(50 + page));
        check(3, page, (unsigned char)(90 + page));
    }
}

static void changed(void)
{
    put(0, 1, 1);
    put(1, 1, 2);
    CHECK(mprotect(at(0, 0), PAGES * PAGE, PROT_NONE) == 0);
    check(1, 1, 2);
    put(1, 2, 3);
    CHECK(mprotect(at(0, 0), PAGES * PAGE, PROT_READ | PROT_WRITE) == 0);
    check(0, 1, 1);
    put(3, 2, 4);
    put(0, 2, 5);
    CHECK(munmap(at(0, 0), PAGES * PAGE) == 0);
    map(0);
    check(0, 2, 0);
    check(1, 2, 3);
    check(3, 2, 4);
    put(1, 3, 6);
    CHECK(madvise(at(0, 0), PAGES * PAGE, MADV_DONTNEED) == 0);
    put(0, 3, 7);
    check(1, 3, 6);
    check(0, 3, 7);
}

/* Far more than is ever used. */
static void reserved(void)
{
    unsigned char *all = mmap(NULL, APART / 8, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    unsigned char *inside = all + APART / 16;

    CHECK(all != MAP_FAILED);
    CHECK(mprotect(inside, PAGES * PAGE, PROT_READ | PROT_WRITE) == 0);
    for (unsigned i = 0; i < PAGES * PAGE; i++)
        inside[i] = (unsigned char)(i / PAGE);
    for (unsigned i = 0; i < PAGES * PAGE; i += 32)
        CHECK(inside[i] == i / PAGE);
    CHECK(munmap(all, APART / 8) == 0);
}

int main(void)
{
    map(0);
    map(1);
    map(3);
    apart();
    changed();
    reserved();
    puts("ok");
    return 0;
}
