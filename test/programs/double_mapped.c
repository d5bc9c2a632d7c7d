// SPDX-License-Identifier: MIT
/* Code written through one mapping and run through another of the same memory: memfd and shared
 * anonymous memory, in one page and across two, one version in the place of another. */
#define _GNU_SOURCE
#include "check.h"
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u

struct place {
    unsigned char *write;
    unsigned char *run;
};

static struct place double_map(size_t bytes)
{
    int fd = memfd_create("code", MFD_CLOEXEC);
    struct place place;

    CHECK(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
    place.write = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    place.run = mmap(NULL, bytes, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
    CHECK(place.write != MAP_FAILED && place.run != MAP_FAILED && close(fd) == 0);
    return place;
}

/* mov $value, %eax; ret */
static void write_return(unsigned char *at, uint32_t value)
{
    at[0] = 0xb8;
    memcpy(at + 1, &value, 4);
    at[5] = 0xc3;
}

static unsigned call(const unsigned char *code)
{
    return ((unsigned (*)(void))(uintptr_t)code)();
}

static unsigned one_place(const struct place *place, size_t at)
{
    unsigned sum = 0;

    for (uint32_t i = 0; i < 50; i++) {
        write_return(place->write + at, i * 3);
        sum += call(place->run + at);
        sum += call(place->run + at);
        CHECK(place->run[at + 1] == (unsigned char)(i * 3));
    }
    CHECK(sum == 3 * 49 * 50);
    return sum;
}

/* A function that grows: the old ones stay as they are, each calls the one before. */
static unsigned more_and_more(const struct place *place)
{
    unsigned sum = 0;

    write_return(place->write, 1);
    for (uint32_t i = 1; i < 100; i++) {
        unsigned char *at = place->write + 16 * i;
        int32_t back = -16 - 5;

        at[0] = 0xe8; /* call the one before; inc %eax; ret */
        memcpy(at + 1, &back, 4);
        memcpy(at + 5, "\xff\xc0\xc3", 3);
        sum += call(place->run + 16 * i);
    }
    CHECK(sum == 99 * 102 / 2);
    return sum;
}

int main(void)
{
    struct place place = double_map(4 * PAGE);

    printf("%u\n", one_place(&place, 0));
    printf("%u\n", one_place(&place, 2 * PAGE - 3));
    printf("%u\n", one_place(&place, 64));
    printf("%u\n", more_and_more(&place));
    return 0;
}
