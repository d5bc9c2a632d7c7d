// SPDX-License-Identifier: MIT
// Functions in functions that use their frames, on the stack's trampolines, too; memory of alloca; constructors and destructors.
#include <alloca.h>
#include <stdio.h>
#include <string.h>

static int began;

__attribute__((constructor)) static void begins(void) { began = 7; }

static void is_over(int *what) { began += *what; }

static int each(const int *all, int n, int (*f)(int)) {
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += f(all[i]);
    return sum;
}

static int scaled(const int *all, int n, int by) {
    int calls = 0;
    int times(int x) {
        calls++;
        return x * by;
    }
    int direct = times(2);
    int through = each(all, n, times);
    return direct + through + calls;
}

static int depth(int n) {
    int most = 0;
    void down(int at) {
        if (at > most)
            most = at;
        if (at < n)
            down(at + 1);
    }
    down(0);
    return most;
}

static int letters(const char *text) {
    size_t n = strlen(text);
    char *own = alloca(n + 1);
    int sum = 0;
    for (size_t i = 0; i <= n; i++)
        own[i] = text[n - i - (i != n)];
    for (size_t i = 0; i < n; i++) {
        char pairs[i + 1];
        pairs[i] = own[i];
        sum += pairs[i] - 'a';
    }
    return sum;
}

static int guarded(int n) {
    __attribute__((cleanup(is_over))) int left = n;
    if (n > 2)
        return left++;
    {
        __attribute__((cleanup(is_over))) int inner = 10;
        left += inner;
    }
    return left;
}

int main(void) {
    static const int all[] = {4, 1, 7};
    int a = scaled(all, 3, 3), b = depth(4), c = letters("hello"), d = guarded(1) + guarded(5);
    int e = ({
        int most = a > b ? a : b;
        most + 1;
    });
    printf("%d %d %d %d %d %d\n", a, b, c, d, e, began);
    return 0;
}
