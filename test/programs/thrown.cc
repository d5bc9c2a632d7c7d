// SPDX-License-Identifier: MIT
// flags: -O0 -fno-pie -no-pie
/* Exceptions over frames: through several, with and without objects to destroy, caught in the middle, thrown again, passed on, and out of a
 * call to the same place again.  Each function counts its entries and its returns. */
#include <cstdio>
#include <stdexcept>
#include <string>

extern "C" {
volatile int entered[6], returned[6], sum, destroyed;

struct Guard {
    ~Guard() { destroyed++; }
};

__attribute__((noinline)) int leaf(int n)
{
    entered[0]++;
    if (n % 4 == 1)
        throw n;
    if (n % 4 == 2)
        throw std::runtime_error("two");
    if (n % 4 == 3)
        throw std::string("three");
    returned[0]++;
    return n + 100;
}

__attribute__((noinline)) int plain(int depth, int n)
{
    int result;

    entered[1]++;
    result = depth == 0 ? leaf(n) : plain(depth - 1, n) + 1;
    returned[1]++;
    return result;
}

__attribute__((noinline)) int guarded(int n)
{
    Guard guard;
    int result;

    entered[2]++;
    result = plain(2, n);
    returned[2]++;
    return result;
}

__attribute__((noinline)) int catcher(int n)
{
    int result = 0;

    entered[3]++;
    try {
        result = guarded(n);
    } catch (int value) {
        result = value * 2;
    } catch (const std::runtime_error &) {
        throw; // on to main()
    }
    returned[3]++;
    return result;
}

__attribute__((noinline)) int changes(int n)
{
    int result;

    entered[4]++;
    try {
        result = catcher(n);
    } catch (const std::string &) {
        throw 7;
    }
    returned[4]++;
    return result;
}

__attribute__((noinline)) int sibling(int n)
{
    entered[5]++;
    returned[5]++;
    return -n;
}

int (*volatile chosen[])(int) = { changes, sibling };
}

int main()
{
    for (int n = 0; n < 12; n++) {
        for (int k = 0; k < 2; k++) {
            try {
                sum += chosen[k](n);
            } catch (int value) {
                sum += value;
            } catch (const std::exception &) {
                sum += sibling(n) + sibling(n + 1);
            }
        }
    }
    for (int i = 0; i < 6; i++)
        std::printf("%d %d\n", entered[i], returned[i]);
    std::printf("%d %d\n", sum, destroyed);
    return 0;
}
