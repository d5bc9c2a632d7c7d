// SPDX-License-Identifier: MIT
/* forks.c - `forks N`: N children, one after the other, each with something to write to and a
 * status of its own */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES (1u << 20)

int main(int argc, char **argv)
{
    uint64_t forks = argc == 2 ? strtoull(argv[1], NULL, 10) : 0;
    unsigned char *memory = malloc(BYTES);
    unsigned sum = 0;

    if (!memory)
        return 1;
    memset(memory, 7, BYTES);
    for (uint64_t i = 0; i < forks; i++) {
        pid_t child = fork();
        int status;

        if (child < 0)
            return 1;
        if (!child) {
            memset(memory, (int)i, BYTES / 16);
            _exit(memory[BYTES / 32] & 63);
        }
        if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
            return 1;
        sum += (unsigned)WEXITSTATUS(status);
    }
    printf("%u\n", sum);
    return 0;
}
