// SPDX-License-Identifier: MIT
// Constructors and destructors, temporaries, virtual and overloaded functions, operators, references, statics in functions.
#include <cstdio>
#include <utility>

volatile int alive, sum;

struct Base {
    int id;
    explicit Base(int n) : id(n) { alive++; }
    Base(const Base &other) : id(other.id + 100) { alive++; sum += id; }
    virtual ~Base() { alive--; }
    virtual int value() const { return id; }
};

struct Derived : Base {
    int more;
    explicit Derived(int n) : Base(n), more(n * 2)
    {
        sum += more;
    }
    ~Derived() override
    {
        sum -= more;
    }
    int value() const override { return id + more; }
};

struct Vector {
    int x = 1, y = 2;
    Vector operator+(const Vector &o) const { return { x + o.x, y + o.y }; }
    Vector &operator+=(int n) { x += n; y += n; return *this; }
    int operator[](int i) const { return i ? y : x; }
};

struct Member {
    Base first{1}, second{2};
    Vector v;
    int total() const { return first.value() + second.value() + v[0]; }
};

__attribute__((noinline)) static int use(const Base &b)
{
    return b.value();
}

__attribute__((noinline)) static int by_copy(Base b)
{
    b.id++;
    return b.value();
}

__attribute__((noinline)) static int counted()
{
    static Base once(42);
    static int calls = alive;

    return ++calls + once.id;
}

static int overloaded(int n) { return n; }
static int overloaded(double d) { return static_cast<int>(d * 2); }

__attribute__((noinline)) static int scopes(int n)
{
    Base outer(n);
    for (int i = 0; i < 2; i++) {
        Derived inner(i);
        if (i == n)
            return use(inner);
        sum += use(inner);
    }
    return use(outer);
}

int main()
{
    Base *b = new Derived(3);
    Member m;
    Vector v;

    sum += use(*b) + use(Base(9));
    sum += by_copy(*b);
    delete b;
    v += 4; v = v + m.v + Vector{};
    sum += v[0] + v[1] + m.total();
    sum += counted(), sum += counted();
    sum += overloaded(2) + overloaded(2.5);
    sum += scopes(1) + scopes(7);
    auto p = std::make_pair(Vector{}, 3);
    sum += p.first.x + p.second;
    std::printf("%d %d\n", alive, sum);
}
