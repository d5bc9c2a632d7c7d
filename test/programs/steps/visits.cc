// SPDX-License-Identifier: MIT
// Templates that call themselves: variants that are visited, folds, constexpr branches, optional values, views of text.
#include <array>
#include <cstdio>
#include <optional>
#include <string_view>
#include <tuple>
#include <variant>

template <class... F> struct Overloaded : F... {
    using F::operator()...;
};
template <class... F> Overloaded(F...) -> Overloaded<F...>;

using Value = std::variant<int, double, std::string_view>;

static std::optional<Value> parsed(std::string_view text) {
    if (text.empty())
        return std::nullopt;
    int number = 0;
    for (char c : text) {
        if (c == '.')
            return Value(number + 0.5);
        if (c < '0' || c > '9')
            return text;
        number = number * 10 + (c - '0');
    }
    return number;
}

static int weight(const Value &value) {
    return std::visit(Overloaded{[](int n) { return n; },
                                 [](double d) {
                                     int whole = (int)d;
                                     return whole * 10;
                                 },
                                 [](std::string_view s) { return (int)s.size() * 100; }},
                      value);
}

template <class T> static int digits(T value) {
    if constexpr (sizeof(T) > 4) {
        int n = 0;
        for (; value; value /= 10)
            n++;
        return n;
    } else
        return value < 10 ? 1 : 1 + digits<T>(value / 10);
}

template <class... T> static int all_digits(T... values) { return (digits(values) + ... + 0); }

template <std::size_t N> struct Ring {
    void push(int v) {
        data[at++ % N] = v;
        if (at == 2 * N) at -= N;
    }
    int sum() const {
        int s = 0;
        for (auto v : data) s += v;
        return s;
    }
    std::array<int, N> data{};
    std::size_t at = 0;
};

int main() {
    int sum = 0;
    for (std::string_view text : {"12", "3.5", "word", ""})
        if (auto value = parsed(text))
            sum += weight(*value);
    Ring<3> ring;
    for (int i = 1; i < 6; i++)
        ring.push(i * i);
    auto [a, b] = std::tuple(all_digits(5, 123, 4567L), ring.sum());
    std::printf("%d %d %d\n", sum, a, b);
    return 0;
}
