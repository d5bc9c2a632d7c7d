// SPDX-License-Identifier: MIT
// options: window=20000
/* Tens of thousands of mappings, of which many are made anew, protected and unmapped; and reservations of terabytes, of
 * which few pages are used. */
#define _GNU_SOURCE
#include "check.h"
#include <sys/mman.h>

#define PAGE         4096u
#define COUNT        12000u
#define RESERVATIONS 200u
#define RESERVED     (512ull << 30)

static unsigned char *base;

/* Every other page, so that none joins the next. */
static unsigned char *place(uint64_t i)
{
    return base + i * 2 * PAGE;
}

static void map_page(uint64_t i, int flags)
{
    CHECK(mmap(place(i), PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | flags, -1, 0) == place(i));
}

static void make_many(void)
{
    base = mmap(NULL, 2ull * COUNT * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(base != MAP_FAILED);
    for (uint64_t i = 0; i < COUNT; i++)
        map_page(i, 0);
    for (uint64_t i = 0; i < COUNT; i += 3)
        *place(i) = (unsigned char)i;
}

static void change_many(void)
{
    uint64_t state = 7;

    for (unsigned n = 0; n < 3000; n++) {
        uint64_t i = check_random(&state) % COUNT;

        if (n % 3 == 0) {
            map_page(i, 0);
            CHECK(*place(i) == 0);
        } else if (n % 3 == 1) {
            CHECK(munmap(place(i), PAGE) == 0);
            map_page(i, MAP_NORESERVE);
        } else {
            CHECK(mprotect(place(i), PAGE, PROT_READ) == 0 && mprotect(place(i), PAGE, PROT_READ | PROT_WRITE) == 0);
        }
        *place(i) = (unsigned char)(*place(i) + n);
    }
}

static uint64_t sum_many(void)
{
    uint64_t sum = 0;

    for (uint64_t i = 0; i < COUNT; i++)
        sum = sum * 31 + *place(i);
    return sum;
}

/* As a garbage collector does: an address range now, memory later. */
static void reserve(void)
{
    unsigned char *at[RESERVATIONS];
    unsigned got = 0;

    while (got < RESERVATIONS) {
        at[got] = mmap(NULL, RESERVED, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at[got] == MAP_FAILED)
            break;
        got++;
    }
    for (unsigned i = 0; i < got; i += 40) {
        unsigned char *middle = at[i] + RESERVED / 2 + i * 100 * PAGE;

        CHECK(mprotect(middle, 3 * PAGE, PROT_READ | PROT_WRITE) == 0);
        middle[PAGE] = (unsigned char)i;
        CHECK(middle[0] == 0 && middle[PAGE] == (unsigned char)i && middle[3 * PAGE - 1] == 0);
        CHECK(munmap(middle, PAGE) == 0);
    }
    printf("%u reservations\n", got);
    for (unsigned i = 0; i < got; i++)
        CHECK(munmap(at[i], RESERVED) == 0);
}

static unsigned char *reserve_readable(void)
{
    return mmap(NULL, RESERVED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

/* Readable at once, and hardly used; the kernel may use huge pages. */
static void use_little(void)
{
    unsigned char *at = reserve_readable();

    if (at == MAP_FAILED)
        return;
    (void)madvise(at, RESERVED, MADV_HUGEPAGE); /* fine where there are none */
    for (uint64_t i = 0; i < 64; i++)
        at[i * (RESERVED / 64) + i] = (unsigned char)i;
    CHECK(madvise(at, RESERVED / 2, MADV_DONTNEED) == 0);
    for (uint64_t i = 0; i < 64; i++)
        CHECK(at[i * (RESERVED / 64) + i] == (i < 32 ? 0 : i));
    CHECK(munmap(at, RESERVED) == 0);
}

/* Many of them: their pages share marks (8 TiB apart), and every window's end meets them all. */
static void use_little_of_many(void)
{
    unsigned char *at[RESERVATIONS / 2];
    unsigned got = 0;
    uint64_t sum = 0;

    while (got < RESERVATIONS / 2 && (at[got] = reserve_readable()) != MAP_FAILED)
        got++;
    for (unsigned i = 0; i < got; i++)
        at[i][i * 5 * PAGE] = at[i][RESERVED / 2 + i * 7000] = (unsigned char)(i + 1);
    for (unsigned i = 0; i < got * 1000; i++)
        sum = sum * 31 + at[i % got][i % got * 5 * PAGE];
    printf("%u in use, %llx\n", got, (unsigned long long)sum);
    for (unsigned i = 0; i < got; i++) {
        CHECK(at[i][RESERVED / 2 + i * 7000] == (unsigned char)(i + 1));
        CHECK(munmap(at[i], RESERVED) == 0);
    }
}

/* Half of all addresses at once, of which a page is used here and there; several pages of it share marks, windows later, too. */
static void use_all_of_it(int prot, uint64_t bytes)
{
    unsigned char *at = mmap(NULL, bytes, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (at == MAP_FAILED) {
        puts("no room");
        return;
    }
    CHECK(mprotect(at + bytes / 2, 2 * PAGE, PROT_READ | PROT_WRITE) == 0);
    at[bytes / 2 + PAGE] = 7;
    CHECK(mmap(at + bytes / 4, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at + bytes / 4);
    for (unsigned i = 0; i < 30000; i++)
        at[bytes / 4 + i % 5]++;
    printf("%llu TiB: %d %d\n", (unsigned long long)(bytes >> 40), at[bytes / 2 + PAGE], at[bytes / 4]);
    CHECK(munmap(at, bytes) == 0);
}

int main(void)
{
    make_many();
    change_many();
    reserve();
    use_little();
    use_little_of_many();
    CHECK(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) != MAP_FAILED); /* it parts no gap */
    use_all_of_it(PROT_NONE, 64ull << 40);
    use_all_of_it(PROT_READ | PROT_WRITE, 10ull << 40);
    use_all_of_it(PROT_READ | PROT_WRITE, 64ull << 40);
    printf("%llx\n", (unsigned long long)sum_many());
    return 0;
}
