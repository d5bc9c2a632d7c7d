// SPDX-License-Identifier: MIT
// flags: -std=c++17 -O0 -fno-pie -no-pie
/* C++ as debuggers see it: namespaces, classes, references, templates, containers. */
#include <cstdio>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace shop
{
struct Item {
    std::string name;
    int price;
    virtual ~Item() {}
    virtual int cost() const { return price; }
};

struct Sale : Item {
    int off = 5;
    static int count;
    int cost() const override
    {
        int base = price;

        return base - off;
    }
};
int Sale::count = 3;

template <class T> struct Box {
    T value;
    T get() const { return value; }
};

namespace
{
int hidden = 77;
}
} // namespace shop

enum class Color : unsigned char { Red, Green = 4 };
static thread_local int per_thread = 9;

static int work(const std::vector<int> &numbers, const std::string &text, shop::Item *item, Color color)
{
    std::map<std::string, int> words{ { "one", 1 }, { "two", 2 }, { "three", 3 } };
    std::set<int> ordered{ 3, 1, 2 };
    std::unordered_map<int, std::string> hashed{ { 5, "five" } };
    std::unique_ptr<shop::Item> owned(new shop::Sale);
    std::shared_ptr<int> shared = std::make_shared<int>(42), other = shared;
    std::optional<int> some = 7, none;
    std::deque<int> queue;
    std::list<short> list{ 4, 5 };
    std::variant<int, double> either = 2.5;
    std::vector<bool> bits{ true, false, true };
    std::vector<std::string> strings{ "a", "a longer one, on the heap" };
    std::vector<int> empty;
    shop::Box<double> box{ 1.5 };
    int sum = per_thread + shop::hidden;

    for (int i = 0; i < 200; i++)
        queue.push_back(i * i);
    for (int i = 0; i < 190; i++)
        queue.pop_front();
    for (int number : numbers)
        sum += number;
    return sum + item->cost() + (int)color + (int)text.size() + (int)(box.get() * 2) + *other + some.value_or(0) +
           none.value_or(1) + (int)(words.size() + ordered.size() + hashed.size() + list.size() + queue.size()) +
           (int)either.index() + bits[0] + (int)strings.size() + (int)empty.size() + (owned != nullptr);
}

int main()
{
    std::vector<int> numbers{ 1, 2, 3 };
    shop::Sale sale;

    sale.name = "hat";
    sale.price = 30;
    printf("%d %d\n", work(numbers, "hello", &sale, Color::Green), sale.cost());
    return shop::Sale::count != 3;
}
