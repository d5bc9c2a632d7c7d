// SPDX-License-Identifier: MIT
// A function of which optimization makes a copy for callers that pass the same number.
#include <stdio.h>

__attribute__((noinline)) static int level(int depth, int wanted) {
    if (depth == wanted)
        return depth;
    printf("%d\n", depth);
    return level(depth + 1, wanted) + 1;
}

int main(void) {
    int sum = 0;
    for (int i = 0; i < 4; i++)
        sum += level(0, i);
    printf("%d\n", sum);
    return 0;
}
