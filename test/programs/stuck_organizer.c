// SPDX-License-Identifier: MIT
// stdin: work end
// exit: 3
/* Does what it is told, word by word: a test stops its organizer meanwhile.  "work" fills many chunks. */
#include "check.h"

static volatile unsigned table[1 << 14];

static void work(void)
{
    for (unsigned i = 0; i < 5000000; i++)
        table[i % (1 << 14)] += i;
}

int main(void)
{
    char word[16];

    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("ready\n");
    while (scanf("%15s", word) == 1 && strcmp(word, "end") != 0) {
        work();
        printf("worked\n");
    }
    printf("ended\n");
    return 3;
}
