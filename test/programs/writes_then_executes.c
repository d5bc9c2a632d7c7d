// SPDX-License-Identifier: MIT
/* writes_then_executes.c - writes much memory, which no recording can make small, and executes a program that ends at once */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define WORDS (6u << 20)

int main(int argc, char **argv)
{
    uint64_t *words = malloc(WORDS * sizeof(*words));
    uint64_t state = 88172645463325252u;

    if (!words)
        return 1;
    for (uint32_t i = 0; i < WORDS; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        words[i] = state;
    }
    printf("%llx\n", (unsigned long long)words[WORDS - 1]);
    fflush(stdout);
    if (argc > 1)
        execv(argv[1], argv + 1);
    return argc > 1 ? 2 : 0;
}
