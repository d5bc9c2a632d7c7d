// SPDX-License-Identifier: MIT
/* lines.c - counts lines, words and characters of standard input, through read(2) with a small buffer
 *
 *     lines < FILE
 *
 * Everything it knows came in through system calls.  Which read brought the line that it miscounted?
 *
 *     tbdq 'goto first forward syscall 3 where syscall==read'           the third read
 *     tbdq 'goto last backward syscall 1 where syscall==read and retval>0'
 *     tbdq 'goto last backward store 1 where addr==&lines'              the last time it was counted
 */
#include <stdio.h>
#include <unistd.h>

unsigned long lines, words, characters;

static void count(const char *text, long bytes)
{
    static int in_word;

    for (long i = 0; i < bytes; i++) {
        int is_space = text[i] == ' ' || text[i] == '\n' || text[i] == '\t';

        lines += text[i] == '\n';
        words += !is_space && !in_word;
        in_word = !is_space;
        characters++;
    }
}

int main(void)
{
    char buffer[512];
    long bytes;

    while ((bytes = read(STDIN_FILENO, buffer, sizeof(buffer))) > 0)
        count(buffer, bytes);
    printf("%lu %lu %lu\n", lines, words, characters);
    return bytes < 0 ? 1 : 0;
}
