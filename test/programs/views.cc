// SPDX-License-Identifier: MIT
/* Strings of C++ as parameters: std::string by reference, std::string_view in two registers, characters in an array. */
// flags: -O2 -std=c++17
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

struct person {
    std::string name;
    int age;
};

volatile int visits;
thread_local int mood = 7;

struct pair {
    long first, second;
};

__attribute__((noinline)) int visit(const person &who, std::string_view title, const char *raw, double weight, pair both)
{
    visits = visits + who.age + static_cast<int>(title.size());
    mood += who.age;
    visits = visits + static_cast<int>(weight) + raw[0] + static_cast<int>(both.first - both.second);
    return visits + mood;
}

int main()
{
    std::vector<person> people = { { "bob", 3 }, { "a much longer name that lies on the heap", 4 }, { "", 5 } };
    std::string_view all = "doctor professor";
    double weight = 60.5;
    int sum = 0;

    for (const person &one : people) {
        sum += visit(one, all.substr(0, one.name == "bob" ? 6 : 16), one.name.c_str(), weight, pair{ one.age, 2 });
        weight += 10;
    }
    std::printf("%d\n", sum);
    return 0;
}
