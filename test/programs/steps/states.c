// SPDX-License-Identifier: MIT
// goto in all directions: a machine of states, computed gotos, a switch that is entered in the middle of a loop, cleanup by goto.
#include <stdio.h>
#include <stdlib.h>

static int words(const char *text) {
    int count = 0;
outside:
    if (!*text)
        return count;
    if (*text++ == ' ')
        goto outside;
    count++;
inside:
    switch (*text) {
    case 0: return count;
    case ' ': text++; goto outside;
    case '"': text++; goto quoted;
    }
    text++;
    goto inside;
quoted:
    while (*text && *text != '"')
        text++;
    if (*text)
        text++;
    goto inside;
}

static int run(const unsigned char *code) {
    static const void *const what[] = {&&stop, &&add, &&twice, &&swap, &&loop};
    int a = 1, b = 2, rounds = 0;
#define NEXT goto *what[*code++]
    NEXT;
add:
    a += b;
    NEXT;
twice:
    b *= 2;
    NEXT;
swap : {
    int c = a;
    a = b;
    b = c;
}
    NEXT;
loop:
    if (++rounds < 3)
        code -= *code;
    code++;
    NEXT;
stop:
    return a * 100 + b;
}

static void copied(char *to, const char *from, int count) {
    int rounds = (count + 3) / 4;
    switch (count % 4) {
    case 0: do { *to++ = *from++;
    case 3: *to++ = *from++;
    case 2: *to++ = *from++;
    case 1: *to++ = *from++;
            } while (--rounds > 0);
    }
}

static int made(int fails) {
    char *one = NULL, *two = NULL;
    int result = -1;
    one = malloc(8);
    if (fails == 1)
        goto out;
    two = malloc(8);
    if (fails == 2)
        goto free_two;
    result = (one != two) + fails;
free_two:
    free(two);
out:
    free(one);
    return result;
}

static int level(unsigned n) {
    switch (n) {
    case 0 ... 3: n += 1; /* falls through */
    case 7: return (int)n * 2;
    case 4: return -4;
    case 100: n = 7; break;
    case 5:
    case 6:
        if (n & 1)
            break;
        return 60;
    default: return level(n - 5);
    }
    return (int)n;
}

int main(void) {
    static const unsigned char code[] = {1, 2, 3, 4, 4, 1, 0};
    char copy[12] = "";
    int total = 0;
    copied(copy, "0123456789", 10);
    for (int i = 0; i < 4; i++)
        total += made(i);
    for (unsigned i = 0; i < 12; i += 1 + i / 4)
        total += level(i);
    printf("%d %d %s %d\n", words("a bc \"d e\"f  g"), run(code), copy, total);
    return 0;
}
