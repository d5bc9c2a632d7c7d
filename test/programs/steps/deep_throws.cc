// SPDX-License-Identifier: MIT
// Exceptions through five frames with objects to destroy, thrown again, caught by base, and one from a constructor.
#include <cstdio>
#include <stdexcept>
#include <string>

struct Noted {
    explicit Noted(int n) : n(n) { alive += n; }
    ~Noted() { alive -= n; }
    int n;
    static int alive;
};
int Noted::alive;

struct Failure : std::runtime_error {
    Failure(int code, const char *why) : std::runtime_error(why), code(code) {}
    int code;
};

struct Opened {
    explicit Opened(int n) : first(1), n(n) {
        if (n < 0)
            throw Failure(n, "negative");
    }
    Noted first;
    int n;
};

static int fifth(int n) {
    Noted noted(5);
    if (n == 3)
        throw Failure(n, "three");
    if (n == 4)
        throw n;
    if (n == 5) {
        Opened opened(-n);
        return opened.n;
    }
    return n * 2;
}

static int fourth(int n) {
    Noted noted(4);
    return fifth(n) + 1;
}

static int third(int n) {
    try {
        Noted noted(3);
        return fourth(n);
    } catch (const Failure &failure) {
        if (failure.code > 0)
            throw;
        return failure.code;
    }
}

static int second(int n) noexcept(false) {
    Noted noted(2);
    int found = third(n);
    return found + noted.n;
}

static int first(int n) {
    try {
        return second(n);
    } catch (const std::exception &e) {
        return (int)std::string(e.what()).size();
    } catch (int code) {
        try {
            if (code == 4)
                throw std::logic_error("inner");
        } catch (std::logic_error &) {
            return -code;
        }
    }
    return 0;
}

int main() {
    int sum = 0;
    for (int i = 1; i < 7; i++)
        sum += first(i);
    std::printf("%d %d\n", sum, Noted::alive);
    return Noted::alive;
}
