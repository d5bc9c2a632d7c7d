// SPDX-License-Identifier: MIT
/* Code written at run time, made executable, run, changed, run again. */
#include "check.h"
#include <sys/mman.h>

/* mov $value, %eax; ret */
static void write_code(unsigned char *at, uint32_t value)
{
    at[0] = 0xb8;
    memcpy(at + 1, &value, 4);
    at[5] = 0xc3;
}

int main(void)
{
    unsigned char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned sum = 0;

    CHECK(page != MAP_FAILED);
    for (uint32_t i = 0; i < 100; i++) {
        CHECK(mprotect(page, 8192, PROT_READ | PROT_WRITE) == 0);
        write_code(page, i * 3);
        write_code(page + 4093, i * 5); /* crosses into the second page */
        CHECK(mprotect(page, 8192, PROT_READ | PROT_EXEC) == 0);
        sum += ((unsigned (*)(void))(uintptr_t)page)();
        sum += ((unsigned (*)(void))(uintptr_t)(page + 4093))();
    }
    CHECK(sum == 8 * 99 * 50);
    printf("%u\n", sum);
    return 0;
}
