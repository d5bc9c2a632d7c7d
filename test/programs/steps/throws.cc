// SPDX-License-Identifier: MIT
// Exceptions: through frames with and without objects, caught, thrown again, in constructors, functions that never throw.
#include <cstdio>

volatile int sum, destroyed;

struct Guard {
    int n;
    explicit Guard(int m) : n(m)
    {
        if (m == 9)
            throw 9;
    }
    ~Guard() { destroyed += n; }
};

__attribute__((noinline)) static int leaf(int n)
{
    if (n == 1)
        throw 5;
    if (n == 2)
        throw "text";
    return n + 1;
}

__attribute__((noinline)) static int plain(int n)
{
    return leaf(n) + 1;
}

__attribute__((noinline)) static int guarded(int n)
{
    Guard g(n);
    int result = plain(n);

    sum += result;
    return result;
}

__attribute__((noinline)) static int again(int n)
{
    try {
        return guarded(n);
    } catch (const char *) {
        sum += 100;
        throw;
    }
}

__attribute__((noinline)) static int catcher(int n)
{
    try {
        return again(n);
    } catch (int value) {
        sum += value;
    } catch (...) {
        sum -= 1;
    }
    return sum;
}

__attribute__((noinline)) static int makes()
{
    try { Guard a(1), b(9); } catch (int) { sum++; }
    return destroyed;
}

int main()
{
    for (int n = 0; n < 3; n++)
        sum += catcher(n);
    sum += makes();
    std::printf("%d %d\n", sum, destroyed);
}
