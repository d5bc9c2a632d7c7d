// SPDX-License-Identifier: MIT
// Twenty functions within each other, none of which has code of its own.
#include <stdio.h>

static volatile int touched;

#define LAYER(n, m) \
    static inline __attribute__((always_inline)) int layer##n(int x) { \
        touched += n; \
        int deeper = layer##m(x + touched); \
        touched -= n; \
        return deeper * 2 + n; \
    }

static inline __attribute__((always_inline)) int layer0(int x) {
    touched++;
    x ^= touched;
    return x;
}
LAYER(1, 0)
LAYER(2, 1)
LAYER(3, 2)
LAYER(4, 3)
LAYER(5, 4)
LAYER(6, 5)
LAYER(7, 6)
LAYER(8, 7)
LAYER(9, 8)
LAYER(10, 9)
LAYER(11, 10)
LAYER(12, 11)
LAYER(13, 12)
LAYER(14, 13)
LAYER(15, 14)
LAYER(16, 15)
LAYER(17, 16)
LAYER(18, 17)
LAYER(19, 18)

int main(void) {
    int sum = 0;
    for (int i = 0; i < 3; i++)
        sum += layer19(i);
    printf("%d\n", sum);
    return 0;
}
