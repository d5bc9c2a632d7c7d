// SPDX-License-Identifier: MIT
/* shared.c - `shared N`: N loads and stores of memory that is shared with another process */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS 512u

int main(int argc, char **argv)
{
    uint64_t count = argc == 2 ? strtoull(argv[1], NULL, 10) / 2 : 0;
    volatile uint64_t *words = mmap(NULL, WORDS * sizeof(*words), PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint64_t sum = 0;
    int pipe_fds[2];
    char byte;
    pid_t other;

    if (words == MAP_FAILED || pipe(pipe_fds))
        return 1;
    other = fork(); /* has it mapped until we close the pipe */
    if (other < 0)
        return 1;
    if (!other) {
        close(pipe_fds[1]);
        _exit(read(pipe_fds[0], &byte, 1) ? 1 : 0);
    }
    for (uint64_t i = 0; i < count; i++) {
        words[i % WORDS] = i * i;
        sum += words[(i + WORDS / 2) % WORDS];
    }
    close(pipe_fds[1]);
    close(pipe_fds[0]);
    waitpid(other, NULL, 0);
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
