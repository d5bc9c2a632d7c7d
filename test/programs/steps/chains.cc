// SPDX-License-Identifier: MIT
// Small functions within small functions, all of which optimization puts into each other: fixed-point numbers, vectors, a hash, a bit set.
#include <cstdint>
#include <cstdio>
#include <initializer_list>

class Fixed {
  public:
    constexpr Fixed(int whole = 0) : bits(whole * 256) {}
    static constexpr Fixed of(int32_t bits) {
        Fixed f;
        f.bits = bits;
        return f;
    }
    constexpr Fixed operator+(Fixed o) const { return of(bits + o.bits); }
    constexpr Fixed operator-(Fixed o) const { return of(bits - o.bits); }
    constexpr Fixed operator*(Fixed o) const { return of(static_cast<int32_t>((static_cast<int64_t>(bits) * o.bits) >> 8)); }
    constexpr bool operator<(Fixed o) const { return bits < o.bits; }
    constexpr int whole() const { return bits >> 8; }

  private:
    int32_t bits;
};

struct Vec {
    Fixed x, y;
    Vec operator+(const Vec &o) const { return {x + o.x, y + o.y}; }
    Vec operator*(Fixed f) const { return {x * f, y * f}; }
    Fixed dot(const Vec &o) const { return x * o.x + y * o.y; }
    Fixed squared() const { return dot(*this); }
};

template <class T> static inline T most(T a, T b) { return a < b ? b : a; }
template <class T, class... More> static inline T most(T a, T b, More... more) { return most(most(a, b), more...); }

template <unsigned N> class Bits {
  public:
    void set(unsigned i) { word(i) |= mask(i); }
    bool has(unsigned i) const { return (words[i / 32] & mask(i)) != 0; }
    unsigned count() const {
        unsigned n = 0;
        for (unsigned i = 0; i < N; i++)
            n += has(i);
        return n;
    }

  private:
    static uint32_t mask(unsigned i) { return uint32_t{1} << i % 32; }
    uint32_t &word(unsigned i) { return words[i / 32]; }
    uint32_t words[(N + 31) / 32] = {};
};

static inline uint32_t turned(uint32_t x, int by) { return x << by | x >> (32 - by); }
static inline uint32_t mixed(uint32_t h, uint32_t x) {
    h ^= turned(x * 0x9e3779b1u, 13);
    return turned(h, 7) * 5 + 1;
}
static uint32_t hash(const char *text) {
    uint32_t h = 17;
    while (*text)
        h = mixed(h, static_cast<unsigned char>(*text++));
    return h;
}

__attribute__((noinline)) static Vec moved(Vec at, Vec speed, int steps) {
    for (int i = 0; i < steps; i++) {
        at = at + speed * Fixed::of(128);
        if (Fixed(20) < at.squared())
            speed = speed * Fixed(-1);
    }
    return at;
}

int main() {
    Bits<40> bits;
    for (const char *name : {"one", "two", "three", "four"})
        bits.set(hash(name) % 40);
    Vec end = moved({1, 2}, {3, -1}, 6);
    int widest = most(end.x, end.y, Fixed(2), end.squared()).whole();
    std::printf("%u %d %d %d\n", bits.count(), end.x.whole(), end.y.whole(), widest);
    return 0;
}
