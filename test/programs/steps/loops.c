// SPDX-License-Identifier: MIT
/* Loops on one line and on several, several statements on a line, macros, goto, switch tables, computed jumps. */
#include <stdio.h>

#define ADD(x) (total += (x))
#define EACH(i, n) for (int i = 0; i < (n); i++)
#define SWAP(a, b)   \
    do {             \
        int t = (a); \
        (a) = (b);   \
        (b) = t;     \
    } while (0)

volatile int total;
static int table[16];

__attribute__((noinline)) static int one_line(int n)
{
    int s = 0; for (int i = 0; i < n; i++) s += i; total += s;
    while (n > 0) n--;
    do { total++; } while (total % 4);
    return s;
}

__attribute__((noinline)) static int several(int n)
{
    int s = 0;

    for (int i = 0; i < n; i++) {
        if (i == 2)
            continue;
        if (i == 5)
            break;
        s += i;
    }
    while (n > 0) {
        s ^= n;
        n -= 2;
    }
    do {
        s++;
        n++;
    } while (n < 2);
    EACH (i, 3)
        EACH (j, 2)
            ADD(i * j);
    return s;
}

__attribute__((noinline)) static int choose(int n)
{
    switch (n) {
    case 0:
        return 4;
    case 1:
        total++;
        break;
    case 2:
        total += 2;
        /* fall through */
    case 3:
        total += 3;
        break;
    case 4: total += 4; break;
    case 5:
        n += 10;
        break;
    case 6: return 11;
    default:
        total--;
    }
    return n;
}

__attribute__((noinline)) static int jumps(int n)
{
    static void *const places[] = { &&first, &&second, &&end };
    int at = 0;

again:
    goto *places[at];
first:
    total += n;
    at = 1;
    goto again;
second:
    if (--n > 0)
        goto again;
    at = 2;
    goto again;
end:
    return total;
}

__attribute__((noinline)) static void copy(int *to, const int *from, int n)
{
    int rounds = (n + 3) / 4;

    switch (n % 4) {
    case 0: do { *to++ = *from++;
    case 3:      *to++ = *from++;
    case 2:      *to++ = *from++;
    case 1:      *to++ = *from++;
            } while (--rounds > 0);
    }
}

int main(void)
{
    int a = 1, b = 2, c;

    one_line(5); several(7);
    for (int i = 0; i < 8; i++)
        a += choose(i);
    SWAP(a, b); ADD(a); ADD(b);
    c = a > b ? several(3) : one_line(3);
    jumps(3);
    for (int i = 0; i < 16; i++) table[i] = i;
    copy(table, table + 7, 7);
    total += c + table[2],
        a++,
        b--;
    printf("%d\n", total);
    return 0;
}
