// SPDX-License-Identifier: MIT
// flags: -O1
/* Values that optimized code does not have, but its debug information: constants in the parts of a struct.  And a pure virtual function
 * of a class in no namespace. */
#include <cstdio>

struct Shape {
    virtual int area() const = 0;
    virtual ~Shape() {}
};

struct Square : Shape {
    int side;
    explicit Square(int s) : side(s) {}
    int area() const override { return side * side; }
};

struct Pair {
    double real;
    int whole;
};

__attribute__((noipa)) int area_of(const Shape *shape)
{
    return shape->area();
}

int main()
{
    Square square(3);
    Pair pair = { 2.5, 1 };
    int sum = 0;

    for (int i = 0; i < 3; i++)
        sum += area_of(&square) + pair.whole;
    std::printf("%d\n", sum);
    return 0;
}
