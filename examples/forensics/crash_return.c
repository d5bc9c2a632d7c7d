// SPDX-License-Identifier: MIT
/* crash_return.c - a function overwrites its caller's return address, and the program goes on nowhere
 *
 * Nothing is left on the stack that says who it was: a core file has an instruction pointer and a stack full of
 * 'x'.  `tbdq path` has the lines that ran last. */
#include <stdio.h>
#include <string.h>

static void pad(char *field, int bytes)
{ /* cause: the next lines */
#ifdef FIXED
    bytes = 8;
#endif
    memset(field, 'x', bytes);
}

static void print_field(const char *text, int width)
{
    char field[8] = "";

    strncpy(field, text, sizeof(field) - 1);
    pad(field, width);
    printf("%.8s\n", field);
}

int main(void)
{
    for (int width = 8; width <= 64; width += 56)
        print_field("name", width);
    return 0;
}
