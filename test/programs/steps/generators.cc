// SPDX-License-Identifier: MIT
// Coroutines: a generator, one that takes from another, and one that is given up in the middle.
#include <coroutine>
#include <cstdio>
#include <utility>

struct Numbers {
    struct promise_type {
        int value = 0;
        Numbers get_return_object() { return Numbers(std::coroutine_handle<promise_type>::from_promise(*this)); }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(int v) {
            value = v;
            return {};
        }
        void return_void() {}
        void unhandled_exception() {}
    };
    explicit Numbers(std::coroutine_handle<promise_type> h) : handle(h) {}
    Numbers(Numbers &&other) : handle(std::exchange(other.handle, nullptr)) {}
    ~Numbers() {
        if (handle) handle.destroy();
    }
    bool next() {
        handle.resume();
        return !handle.done();
    }
    int value() const { return handle.promise().value; }
    std::coroutine_handle<promise_type> handle;
};

struct Guard {
    int *left;
    ~Guard() { ++*left; }
};

static int left;

static Numbers range(int from, int to) {
    Guard guard{&left};
    for (int i = from; i < to; i++)
        co_yield i;
}

static Numbers squares(Numbers source) {
    while (source.next()) {
        int v = source.value();
        co_yield v *v;
    }
}

static Numbers fibonacci() {
    int a = 0, b = 1;
    for (;;) {
        co_yield a;
        a = std::exchange(b, a + b);
    }
}

static int sum(Numbers numbers, int most) {
    int found = 0;
    while (most-- > 0 && numbers.next())
        found += numbers.value();
    return found;
}

int main() {
    int a = sum(range(1, 5), 10);
    int b = sum(squares(range(2, 6)), 10);
    int c = sum(fibonacci(), 8);
    int d = sum(squares(range(0, 100)), 3);
    std::printf("%d %d %d %d %d\n", a, b, c, d, left);
    return 0;
}
