// SPDX-License-Identifier: MIT
// Pointers to classes that derive from each other, by one way, by several, and by virtual ones.
#include <array>
#include <cstdio>
#include <memory>

struct First {
    int first = 1;
    virtual ~First() = default;
};
struct Second {
    int second = 2;
    virtual ~Second() = default;
};
struct Plain {
    int plain = 3;
};
struct All : First, Second, Plain {
    int all = 4;
};
struct Left : virtual First {
    int left = 5;
};
struct Right : virtual First, Second {
    int right = 6;
};
struct Both : Left, Right {
    int both = 7;
};
typedef const All constant;
struct References {
    First &reference;
    Plain &plain;
};

static All object;
static Both virtual_object;
First *first = &object;
Second *second = &object;
All *all = &object, *nothing;
Both *both = &virtual_object;
constant *fixed = &object;
References referring{ object, object };
std::array<int, 3> numbers{ 7, 8, 9 };
std::shared_ptr<First> shared = std::make_shared<Both>();

static void __attribute__((noinline)) stop(void)
{
    asm volatile("" ::: "memory");
}

int main()
{
    stop();
    printf("%d\n", first->first + second->second + all->all + both->both + fixed->all + referring.plain.plain +
                       referring.reference.first + numbers[1] + shared->first + (nothing != nullptr));
    return 0;
}
