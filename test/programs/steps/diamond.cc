// SPDX-License-Identifier: MIT
// A virtual base class under two others, calls while objects are made and unmade, casts across, members as pointers, static members.
#include <cstdio>
#include <cstring>

struct Part {
    explicit Part(int weight) : weight(weight) { log('p'); }
    virtual ~Part() { log('~'); }
    virtual int cost() const { return weight; }
    static void log(char what) {
        if (used < sizeof(made) - 1)
            made[used++] = what;
    }
    int weight;
    static char made[64];
    static unsigned used;
};
char Part::made[64];
unsigned Part::used;

struct Wheel : virtual Part {
    Wheel() : Part(2) { spokes += cost(); }
    int cost() const override { return Part::cost() * 3; }
    int spokes = 4;
};

struct Motor : virtual Part {
    explicit Motor(int power) : Part(9), power(power) { log('m'); }
    ~Motor() override { log(static_cast<char>('0' + cost() % 10)); }
    int cost() const override { return weight + power; }
    int power;
};

struct Car final : Wheel, Motor {
    Car(int power, const char *name) : Part(5), Motor(power) { std::strncpy(this->name, name, sizeof(this->name) - 1); }
    int cost() const override { return Wheel::cost() * 10 + Motor::cost(); }
    Car &operator+=(const Motor &other) {
        power += other.power;
        return *this;
    }
    char name[8] = {};
};

static int of_part(const Part &part) { return part.cost(); }

static int across(Part *part) {
    int found = 0;
    if (auto *wheel = dynamic_cast<Wheel *>(part))
        found += wheel->spokes;
    if (auto *motor = dynamic_cast<Motor *>(part))
        found += motor->*(&Motor::power) * 100;
    return found;
}

static int count() {
    static Wheel spare;
    return ++spare.spokes;
}

int main() {
    int total = 0;
    {
        Car car(30, "swift");
        Motor motor(7);
        Part *parts[] = {&car, &motor};
        car += motor;
        for (Part *part : parts)
            total += of_part(*part) + across(part);
        int Wheel::*member = &Wheel::spokes;
        total += car.*member + (car.*(&Car::cost))();
    }
    total += count() + count();
    std::printf("%d %s %u\n", total, Part::made, Part::used);
    return 0;
}
