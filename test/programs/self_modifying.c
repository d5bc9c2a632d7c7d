// SPDX-License-Identifier: MIT
// missing: writable memory
/* Code on a page that is writable and executable changes between calls and ahead of itself. */
#include "check.h"
#include <sys/mman.h>

int main(void)
{
    unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned sum = 0;
    uint32_t value;

    if (page == MAP_FAILED) {
        puts("no writable code here");
        return 0;
    }
    for (uint32_t i = 0; i < 100; i++) {
        value = i * 7;
        page[0] = 0xb8;
        memcpy(page + 1, &value, 4);
        page[5] = 0xc3;
        sum += ((unsigned (*)(void))(uintptr_t)page)();
    }
    CHECK(sum == 7 * 99 * 50);
    printf("%u\n", sum);
    return 0;
}
