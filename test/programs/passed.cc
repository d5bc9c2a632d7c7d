// SPDX-License-Identifier: MIT
// flags: -O0 -g3
/* Parameters in each way that the calling convention has, in code that stores them in its frame only after its first
 * instruction: test/e2e/test_source.py asks for them there. */
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#define CHECK(condition)                                              \
    do {                                                              \
        if (!(condition)) {                                           \
            printf("%d: failed: %s\n", __LINE__, #condition);         \
            exit(99);                                                 \
        }                                                             \
    } while (0)

struct Large { long a[4]; };
struct Small { long a, b; };
struct Base { virtual ~Base() = default; int base = 40; };
struct Derived : Base { int own = 2; };
struct Holder { int number; std::string text; };
struct Plain { Plain() = default; Plain(const Plain &) = default; long a = 1, b = 2, c = 3; };

static int by_string(std::string text, int n) { return (int)text.size() + n; }
static std::unique_ptr<int> made(int key) { return std::make_unique<int>(key); }
static std::vector<int> many(std::vector<int> v, int extra) { v.push_back(extra); return v; }
static long by_large(Large large, int n) { return large.a[0] + n; }
static int by_small(Small small, int n) { return (int)small.a + n; }
static Small two(int n) { return { n, n }; }
static int real(double x, float y, int n, const std::string &text) { return (int)(x * y) + n + (int)text.size(); }
static int by_virtual(Derived d, int n) { return d.base + d.own + n; }
static int by_holder(Holder h, int n) { return h.number + n; }
static long by_plain(Plain p, int n) { return p.a + n; }
static int eight(int a, int b, int c, int d, int e, int f, int g, int h) { return a + b + c + d + e + f + g * h; }

int main()
{
    CHECK(by_string("hello", 5) == 10);
    CHECK(*made(6) == 6);
    CHECK(many({ 1, 2 }, 7)[2] == 7);
    CHECK(by_large({ { 1, 2, 3, 4 } }, 8) == 9);
    CHECK(by_small({ 3, 4 }, 11) == 14);
    CHECK(two(9).b == 9);
    CHECK(real(2.5, 2.0f, 10, "tt") == 17);
    CHECK(by_virtual(Derived(), 12) == 54);
    CHECK(by_holder({ 13, "thirteen" }, 14) == 27);
    CHECK(by_plain(Plain(), 15) == 16);
    CHECK(eight(1, 2, 3, 4, 5, 6, 7, 8) == 77);
    puts("passed");
    return 0;
}
