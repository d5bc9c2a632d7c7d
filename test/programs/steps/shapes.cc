// SPDX-License-Identifier: MIT
// Virtual functions through two bases and thunks, a visitor, a class by static polymorphism, pointers to members.
#include <cstdio>
#include <memory>
#include <vector>

struct Circle;
struct Box;

struct Visitor {
    virtual ~Visitor() = default;
    virtual void visit(const Circle &) = 0;
    virtual void visit(const Box &) = 0;
};

struct Shape {
    virtual ~Shape() {}
    virtual double area() const = 0;
    virtual void accept(Visitor &v) const = 0;
};

struct Named {
    virtual ~Named() { gone++; }
    virtual int length() const { return 5; }
    static int gone;
};
int Named::gone;

struct Circle : Shape, Named {
    explicit Circle(double r) : r(r) {}
    double area() const override { return 3 * r * r; }
    void accept(Visitor &v) const override { v.visit(*this); }
    int length() const override { return 6; }
    double r;
};

template <class Self> struct Counted {
    Counted() { ++made; }
    int twice() const { return 2 * static_cast<const Self *>(this)->sides(); }
    static inline int made = 0;
};

struct Box final : Shape, Counted<Box> {
    Box(double w, double h) : w(w), h(h) {}
    double area() const override {
        double a = w;
        a *= h;
        return a;
    }
    void accept(Visitor &v) const override { v.visit(*this); }
    int sides() const { return 4; }
    double w, h;
};

struct Sum : Visitor {
    void visit(const Circle &c) override { circles += c.r; }
    void visit(const Box &b) override {
        boxes += b.w + b.h;
        corners += b.twice();
    }
    double circles = 0, boxes = 0;
    int corners = 0;
};

static double total(const std::vector<std::unique_ptr<Shape>> &all, double (Shape::*measure)() const) {
    double sum = 0;
    for (auto &shape : all)
        sum += (shape.get()->*measure)();
    return sum;
}

static int lengths(const Named *named, int n) { return n ? named->length() + lengths(named, n - 1) : 0; }

int main() {
    std::vector<std::unique_ptr<Shape>> all;
    all.push_back(std::make_unique<Circle>(2));
    all.emplace_back(new Box(2, 3));
    all.push_back(std::make_unique<Circle>(1.5));
    Sum sum;
    for (auto &shape : all) shape->accept(sum);
    double area = total(all, &Shape::area);
    int chars = 0;
    for (auto &shape : all)
        if (auto named = dynamic_cast<Named *>(shape.get()))
            chars += lengths(named, 2);
    all.clear();
    std::printf("%g %g %g %d %d %d\n", area, sum.circles, sum.boxes, sum.corners, chars, Named::gone + Box::made);
    return 0;
}
