// SPDX-License-Identifier: MIT
/* A table among the program's code, as cryptographic libraries have it (libcrypto, 150 KB): some of its bytes look like
 * instructions that must be recorded.  The program reads what the compiler has put there, and the processor's counter is
 * read by code just after it. */
#include "check.h"

#define NUMBERS 65536
#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

__asm__(".text\n"
        ".balign 64\n"
        "table:\n"
        ".set state, 12345\n"
        ".rept " TEXT(NUMBERS) "\n"
        ".set state, (state * 1103515245 + 12345) & 0x7fffffff\n"
        ".short (state >> 12) & 0xffff\n"
        ".endr\n"
        ".skip 16, 0x90\n"
        "count_time:\n"
        "    rdtsc\n"
        "    shl $32, %rdx\n"
        "    or %rdx, %rax\n"
        "    ret\n");

extern const uint16_t table[NUMBERS];
uint64_t count_time(void);

int main(void)
{
    uint64_t state = 12345, before = count_time();

    for (size_t i = 0; i < NUMBERS; i++) {
        state = (state * 1103515245 + 12345) & 0x7fffffff;
        CHECK(table[i] == (state >> 12 & 0xffff));
    }
    CHECK(count_time() > before);
    printf("table of %zu bytes, %016lx\n", sizeof(table), check_hash(table, sizeof(table)));
    return 0;
}
