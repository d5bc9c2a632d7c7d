// SPDX-License-Identifier: MIT
// Closures that are called, returned, kept, generic, recursive and changed; operators; a range of its own.
#include <cstdio>
#include <type_traits>
#include <utility>

template <class F> struct Fixed {
    F f;
    template <class... A> auto operator()(A... a) const { return f(*this, a...); }
};
template <class F> Fixed(F) -> Fixed<F>;

struct Range {
    struct At {
        int value;
        int operator*() const { return value; }
        At &operator++() {
            ++value;
            return *this;
        }
        bool operator!=(At other) const { return value != other.value; }
    };
    int from, to;
    At begin() const { return {from}; }
    At end() const { return {to}; }
};

struct Account {
    int money = 10;
    auto payer() {
        return [this](int sum) {
            if (sum > money)
                return false;
            money -= sum;
            return true;
        };
    }
};

template <class F, class G> static auto composed(F f, G g) {
    return [=](auto x) { return g(f(x)); };
}

static auto counter(int step) {
    return [at = 0, step]() mutable { return at += step; };
}

static int applied(int (*f)(int, int), int n) {
    int sum = 0;
    for (int i : Range{0, n})
        sum += f(i, n);
    return sum;
}

template <class... F> static int chained(int x, F &&...f) {
    ((x = f(x)), ...);
    return x;
}

int main() {
    auto twice = [](auto x) { return x * 2; };
    auto more = [&twice](int x) { return twice(x) + 1; };
    auto next = counter(3);
    Account account;
    auto pay = account.payer();
    auto faculty = Fixed{[](auto &self, int n) -> int { return n < 2 ? 1 : n * self(n - 1); }};
    int made = composed(more, twice)(5), total = next() + next();
    for (int i : Range{2, 6})
        total += pay(i) ? i : -i;
    total += applied([](int a, int b) { return a * b; }, 4);
    double half = composed(twice, [](double d) { return d / 4; })(3.0);
    int end = chained(1, more, [&](int x) {
        total++;
        return x + total;
    }, twice);
    std::printf("%d %d %g %d %d %d\n", made, total, half, end, faculty(5), account.money);
    return 0;
}
