// SPDX-License-Identifier: MIT
// options: window=500
/* Memory emptied by madvise(MADV_DONTNEED) and used again, over many windows: what it held before is gone. */
#define _DEFAULT_SOURCE
#include "check.h"
#include <sys/mman.h>

#define PART 28672

int main(void)
{
    char *memory = mmap(NULL, 7 * PART, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(memory != MAP_FAILED);
    for (unsigned i = 0; i < 300; i++) {
        char *part = memory + i % 7 * PART;

        CHECK(part[100] == 0 && part[200] == 0);
        memset(part + 100, '+', 3000);
        CHECK(madvise(part, PART, MADV_DONTNEED) == 0);
        for (volatile unsigned pause = 0; pause < 300; pause++)
            ;
        if (i % 3 == 0)
            part[300] = 1;
        CHECK(part[128] == 0);
    }
    puts("emptied");
    return 0;
}
