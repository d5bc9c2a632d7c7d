// SPDX-License-Identifier: MIT
// The library's algorithms with closures, containers and strings.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <vector>

struct Person {
    std::string name;
    int age;
    bool operator<(const Person &other) const { return age != other.age ? age < other.age : name < other.name; }
};

template <class T, class F> static T folded(const std::vector<Person> &all, T start, F f) {
    for (const auto &one : all)
        start = f(std::move(start), one);
    return start;
}

static int apply_twice(const std::function<int(int)> &f, int x) { return f(f(x)); }

int main() {
    std::vector<Person> people = {{"eve", 31}, {"adam", 47}, {"bob", 31}, {"carol", 22}};
    std::sort(people.begin(), people.end());
    int compared = 0;
    std::sort(people.begin(), people.end(), [&compared](const Person &a, const Person &b) {
        compared++;
        return a.name.size() != b.name.size() ? a.name.size() < b.name.size() : a.name < b.name;
    });
    std::map<int, std::vector<std::string>> by_age;
    for (auto &[name, age] : people)
        by_age[age].push_back(name);
    auto total = folded(people, 0L, [](long sum, const Person &p) { return sum + p.age; });
    auto names = folded(people, std::string(), [first = true](std::string s, const Person &p) mutable {
        if (!first) s += ",";
        first = false;
        return s + p.name;
    });
    auto oldest = std::max_element(people.begin(), people.end(), [](auto &a, auto &b) { return a.age < b.age; });
    std::vector<int> numbers(6);
    std::iota(numbers.begin(), numbers.end(), 1);
    numbers.erase(std::remove_if(numbers.begin(), numbers.end(), [](int n) { return n % 3 == 0; }), numbers.end());
    int base = 7, twice = apply_twice([base](int x) { return x * 2 + base; }, numbers.back());
    std::printf("%s %ld %s %zu %d %d\n", names.c_str(), total, oldest->name.c_str(), by_age.size(), twice, compared > 3);
    return 0;
}
