// SPDX-License-Identifier: MIT
/* Values that need more than plain C types, at moments where test_cxx_values.py compares them with gdb's: lambdas, methods of
 * local classes, types of the C++ library, numbers of 16 bytes, complex ones, arrays whose length is computed. */
// flags: -O0 -std=gnu++17 -Wno-pedantic -Wno-vla
#include <bitset>
#include <complex>
#include <cstdio>
#include <filesystem>
#include <forward_list>
#include <string>
#include <tuple>

namespace
{
struct Shape {
    virtual ~Shape() {}
    virtual double area(double scale) const { return scale; }
    static int count;
    int id = 5;
};
int Shape::count = 3;
struct Circle : Shape {
    double r = 2;
    double area(double scale) const override { return scale * r * r; }
};
struct Empty {
};
} // namespace

__attribute__((noinline)) static int stop(int n)
{
    return n;
}

static int closures()
{
    struct Local {
        int base;
        int add(int n)
        {
            int sum = base + n;
            return stop(sum);
        }
        static int only(int k)
        {
            long twice = 2L * k;
            return stop((int)twice);
        }
    } local = { 10 };
    int captured = 7;
    auto lambda = [&captured, local](int a, double b) {
        int inner = captured + a;
        return stop(inner + (int)b + local.base);
    };
    auto nested = [&](char c) {
        auto within = [=](int d) { return stop(c + d + captured); };
        return within(3);
    };
    return lambda(1, 2.5) + local.add(4) + Local::only(8) + nested('a');
}

static int values(int n)
{
    __int128 big = ((__int128)1 << 100) + 5, negative = -big, small = -3;
    unsigned __int128 huge = (unsigned __int128)1 << 127;
    std::complex<double> z(1.5, -2);
    std::complex<float> zf(1, 2.25f);
    double _Complex zc = 3.0;
    Circle circle;
    Shape *shape = &circle;
    std::tuple<int, std::string, double> three(1, "two", 3.5);
    std::tuple<> none;
    std::tuple<Empty, int> with_empty(Empty(), 8);
    std::tuple<std::tuple<char, bool>, long> inside({ 'x', true }, -1L);
    std::bitset<70> bits(0x1234567890abcdefULL);
    std::bitset<5> few(5);
    std::bitset<9> zero;
    std::wstring wide = L"wide \u00e4 \u20ac \U0001f600";
    std::u16string sixteen = u"sixteen \U0001f600!";
    std::u32string thirtytwo = U"thirtytwo";
    std::wstring quoted = L"a\"b\\c\n", no_text;
    std::filesystem::path path = "/usr/lib/x.so";
    std::forward_list<int> list = { 1, 2, 3 }, empty_list;
    std::forward_list<std::string> names = { "one", "two" };
    int vla[n];
    long wider[n + 1];

    for (int i = 0; i < n; i++)
        wider[i] = vla[i] = i * i;
    wider[n] = -1;
    return stop((int)(big >> 98) + (int)huge + (int)(negative >> 98) + (int)small + (int)z.real() + (int)zf.imag() +
                (int)__real__ zc + shape->id + std::get<0>(three) + std::get<1>(with_empty) + (int)bits.count() +
                (int)few.count() + (int)zero.count() + (int)(wide + quoted + no_text).size() + (int)sixteen.size() +
                (int)thirtytwo.size() + (int)path.native().size() + list.front() + empty_list.empty() +
                (int)names.front().size() + vla[n - 1] + (int)wider[n] + (int)sizeof(none) + Shape::count + std::get<1>(inside) +
                (int)shape->area(1.5));
}

int main()
{
    int first = closures(), second = values(4);

    std::printf("%d %d\n", first, second);
    return 0;
}
