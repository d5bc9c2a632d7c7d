// SPDX-License-Identifier: MIT
/* C++ exceptions through many frames, destructors, rethrow, containers, virtual calls. */
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

int destroyed;

struct Guard {
    ~Guard() { destroyed++; }
};

struct Shape {
    virtual ~Shape() = default;
    virtual int area() const = 0;
};
struct Square : Shape {
    int side;
    explicit Square(int s) : side(s) {}
    int area() const override { return side * side; }
};
struct Line : Shape {
    int area() const override { throw std::logic_error("no area"); }
};

__attribute__((noinline)) int dive(int depth, const Shape &shape)
{
    Guard guard;

    return depth == 0 ? shape.area() : dive(depth - 1, shape) + 1;
}

} // namespace

int main()
{
    std::map<std::string, int> counts;
    std::vector<std::unique_ptr<Shape>> shapes;
    int sum = 0;

    for (int i = 0; i < 60; i++) {
        if (i % 3 == 0)
            shapes.push_back(std::make_unique<Line>());
        else
            shapes.push_back(std::make_unique<Square>(i));
    }
    for (size_t i = 0; i < shapes.size(); i++) {
        try {
            try {
                sum += dive(static_cast<int>(i), *shapes[i]);
            } catch (const std::logic_error &) {
                throw std::runtime_error("wrapped " + std::to_string(i % 4));
            }
        } catch (const std::exception &e) {
            counts[e.what()]++;
        }
    }
    for (const auto &entry : counts)
        std::printf("%s %d\n", entry.first.c_str(), entry.second);
    std::printf("%d %d\n", sum, destroyed);
    return destroyed == 60 * 61 / 2 ? 0 : 1;
}
