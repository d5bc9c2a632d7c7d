// SPDX-License-Identifier: MIT
// Templates, lambdas, loops over containers, algorithms of the library, namespaces.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

volatile int sum;

namespace maths {
template <typename T> T largest(T a, T b)
{
    return a > b ? a : b;
}
template <int N> struct Power {
    static int of(int n) { return n * Power<N - 1>::of(n); }
};
template <> struct Power<0> {
    static int of(int) { return 1; }
};
template <typename... T> int add(T... all)
{
    return (all + ... + 0);
}
} // namespace maths

template <typename F> __attribute__((noinline)) static int apply(F f, int n)
{
    int result = f(n);
    return result + 1;
}

template <typename T> class Stack {
    std::vector<T> all;

public:
    void push(const T &value) { all.push_back(value); }
    T pop()
    {
        T value = all.back();
        all.pop_back();
        return value;
    }
    bool empty() const { return all.empty(); }
};

static int factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1); }

int main()
{
    int base = 10;
    auto add = [base](int n) { return base + n; };
    auto change = [&](int n) {
        base += n;
        return base;
    };
    std::vector<int> values = { 3, 1, 2 };
    Stack<int> stack;

    sum += maths::largest(3, 4) + static_cast<int>(maths::largest(1.5, 0.5));
    sum += maths::Power<3>::of(2);
    sum += maths::add(1, 2, 3);
    sum += apply(add, 1) + apply(change, 2);
    std::sort(values.begin(), values.end(), [](int a, int b) { return a > b; });
    for (int v : values)
        sum += v;
    for (const auto &v : values) { stack.push(v); }
    while (!stack.empty())
        sum += stack.pop();
    std::function<int(int)> f = factorial;
    sum += f(4);
    std::string text = "one";
    text += " two";
    sum += static_cast<int>(text.size());
    std::printf("%d\n", sum);
}
