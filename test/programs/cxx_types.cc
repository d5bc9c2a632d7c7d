// SPDX-License-Identifier: MIT
/* Variables of more than a hundred C++ types, at moments where test_cxx_values.py compares them with gdb's: containers and what they
 * nest, holders of values, numbers and times, the program's own classes. */
// flags: -O0 -std=gnu++17 -Wno-pedantic -Wno-unused -Wno-deprecated-declarations
#include <any>
#include <array>
#include <atomic>
#include <bitset>
#include <chrono>
#include <complex>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <forward_list>
#include <functional>
#include <initializer_list>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <queue>
#include <ratio>
#include <set>
#include <stack>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <typeindex>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <valarray>
#include <variant>
#include <vector>

namespace shop
{
enum class Color : unsigned char { red, green = 7, blue };
enum Level { low = 1, middle = 2, high = 4 };
enum Plain { first, second, fifth = 5 };

struct Point {
    int x, y;
    static int made;
    static constexpr double scale = 2.5;
    static const char *const name;
};
int Point::made = 12;
const char *const Point::name = "point";

struct Shape {
    virtual ~Shape() {}
    virtual double area() const { return 0; }
    void grow(int by) { id += by; }
    int id = 5;
    static int count;
};
int Shape::count = 3;

struct Circle : Shape {
    double r = 2;
    double area() const override { return 3 * r * r; }
};

struct Square : Shape {
    long side = 4;
    double area() const override { return (double)(side * side); }
};

struct Named {
    virtual ~Named() {}
    virtual const char *who() const { return "named"; }
    std::string name = "a name";
};

struct NamedCircle : Circle, Named {
    int extra = 9;
    const char *who() const override { return "circle"; }
};

struct Base {
    virtual ~Base() {}
    int b = 1;
};
struct Left : virtual Base {
    int l = 2;
};
struct Right : virtual Base {
    int r = 3;
};
struct Diamond : Left, Right {
    int d = 4;
};

struct Bits {
    unsigned a : 3;
    int b : 5;
    unsigned long c : 40;
    bool d : 1;
    Color e : 4;
};

union Both {
    int i;
    float f;
    unsigned char bytes[4];
};

struct Anonymous {
    int tag;
    union {
        int whole;
        struct {
            short low, high;
        };
    };
};

struct Node {
    int value;
    Node *next;
};

template <typename T, int N> struct Box {
    T items[N];
    int used = 1;
    static const int capacity = N;
};

template <> struct Box<bool, 1> {
    bool only = true;
};

struct Empty {
};
struct HoldsEmpty : Empty {
    int n = 6;
};
struct Self {
    Self *self;
    const Self &other;
};

typedef int (*Binary)(int, int);
int add(int a, int b)
{
    return a + b;
}
} // namespace shop

static int twice(int n)
{
    return 2 * n;
}

struct Functor {
    int base = 40;
    int operator()(int n) const { return base + n; }
};

__attribute__((noinline)) static int stop(int n)
{
    return n;
}

template <typename... T> static int used(const T &...values)
{
    return (0 + ... + (int)sizeof(values));
}

using namespace shop;

static int sequences()
{
    std::vector<int> numbers = { 1, 2, 3 };
    std::vector<std::string> words = { "one", "two", "a longer string than fits in it" };
    std::vector<std::vector<int>> nested = { { 1 }, {}, { 2, 3 } };
    std::vector<bool> flags = { true, false, true };
    std::vector<Point> points = { { 1, 2 }, { 3, 4 } };
    std::vector<std::pair<int, std::string>> pairs = { { 1, "a" }, { 2, "b" } };
    std::vector<std::unique_ptr<int>> owned;
    std::vector<int> none;
    std::vector<char> chars = { 'a', 'b', '\n' };
    std::vector<double> doubles = { 0.1, 1e100, -0.0 };
    std::vector<const char *> literals = { "x", "yz" };
    std::vector<int> many(300, 7);
    std::deque<int> deque = { 4, 5, 6 };
    std::deque<std::string> deque_words = { "d", "e" };
    std::deque<int> long_deque;
    std::list<int> list = { 7, 8 };
    std::list<std::string> list_words = { "l" };
    std::list<int> empty_list;
    std::forward_list<double> forward = { 1.5, 2.5 };
    std::array<int, 3> array = { 1, 2, 3 };
    std::array<std::string, 2> array_words = { "p", "q" };
    std::array<std::array<int, 2>, 2> array_nested = { { { 1, 2 }, { 3, 4 } } };
    std::array<int, 0> array_empty;
    std::stack<int> stack;
    std::queue<int> queue;
    std::priority_queue<int> heap;
    std::valarray<int> valarray = { 1, 2, 3 };
    std::initializer_list<int> init = { 9, 8 };
    std::vector<int>::iterator in_vector = numbers.begin() + 1;
    std::list<int>::iterator in_list = list.begin();
    std::deque<int>::iterator in_deque = deque.begin();

    owned.push_back(std::make_unique<int>(5));
    stack.push(1);
    queue.push(2);
    heap.push(3);
    for (int i = 0; i < 199; i++)
        long_deque.push_back(i / 30);
    return stop(used(numbers, words, nested, flags, points, pairs, owned, none, chars, doubles, literals, many, deque, deque_words,
                     list, list_words, empty_list, forward, array, array_words, array_nested, array_empty, stack, queue, heap,
                     valarray, init, in_vector, in_list, in_deque));
}

static int associations()
{
    std::map<int, std::string> map = { { 1, "one" }, { 2, "two" } };
    std::map<std::string, std::vector<int>> map_nested = { { "a", { 1, 2 } }, { "b", {} } };
    std::map<Color, int> map_enum = { { Color::red, 1 } };
    std::map<int, int> map_empty;
    std::multimap<int, int> multimap = { { 1, 1 }, { 1, 2 } };
    std::set<std::string> set = { "s", "t" };
    std::multiset<int> multiset = { 3, 3 };
    std::set<std::pair<int, int>> set_pairs = { { 1, 2 } };
    std::unordered_map<int, double> hash = { { 1, 0.5 } };
    std::unordered_map<std::string, int> hash_words = { { "k", 1 } };
    std::unordered_set<int> hash_set = { 5 };
    std::unordered_multimap<int, int> hash_multi = { { 1, 1 } };
    std::unordered_multiset<int> hash_multiset = { 2, 2 };
    std::map<int, std::map<int, int>> map_map = { { 1, { { 2, 3 } } } };
    std::map<int, int>::iterator in_map = map_empty.end();
    std::set<std::string>::iterator in_set = set.begin();
    std::unordered_map<int, double>::iterator in_hash = hash.begin();

    return stop(used(map, map_nested, map_enum, map_empty, multimap, set, multiset, set_pairs, hash, hash_words, hash_set,
                     hash_multi, hash_multiset, map_map, in_map, in_set, in_hash));
}

static int holders()
{
    std::unique_ptr<int> unique = std::make_unique<int>(5);
    std::unique_ptr<int> unique_empty;
    std::unique_ptr<int[]> unique_array(new int[2]{ 1, 2 });
    std::unique_ptr<Shape> unique_shape = std::make_unique<Circle>();
    std::unique_ptr<FILE, int (*)(FILE *)> unique_file(nullptr, fclose);
    std::shared_ptr<std::string> shared = std::make_shared<std::string>("shared");
    std::shared_ptr<int> shared_empty;
    std::shared_ptr<Shape> shared_shape = std::make_shared<Square>();
    std::weak_ptr<std::string> weak = shared;
    std::optional<int> optional = 5;
    std::optional<std::string> optional_word = "word", optional_none;
    std::optional<std::vector<int>> optional_vector = std::vector<int>{ 1 };
    std::variant<int, std::string, double> variant_word = "w";
    std::variant<int, std::string, double> variant_number = 1.5;
    std::variant<std::monostate, int> variant_none;
    std::any any_none, any_int = 5, any_word = std::string("in any"), any_point = Point{ 1, 2 };
    std::any any_vector = std::vector<int>{ 1, 2 };
    std::function<int(int)> function_none, function_plain = twice, function_functor = Functor(),
                                           function_lambda = [](int n) { return n; };
    std::tuple<int, std::string, double> tuple = { 1, "t", 2.5 };
    std::tuple<int &, const char *> tuple_reference = { *unique, "c" };
    std::pair<int, double> pair = { 1, 2.5 };
    std::pair<std::string, Point> pair_mixed = { "p", { 3, 4 } };
    std::atomic<int> atomic = 3;
    std::atomic<bool> atomic_flag = true;
    std::atomic<Point> atomic_point = Point{ 5, 6 };
    std::atomic<int *> atomic_pointer = unique.get();
    std::reference_wrapper<int> reference = *unique;
    std::error_code error = std::make_error_code(std::errc::invalid_argument);
    std::error_code no_error;
    std::exception_ptr exception;
    std::runtime_error runtime("what");
    std::type_index type = typeid(int);

    return stop(used(unique, unique_empty, unique_array, unique_shape, unique_file, shared, shared_empty, shared_shape, weak,
                     optional, optional_word, optional_none, optional_vector, variant_word, variant_number, variant_none, any_none,
                     any_int, any_word, any_point, any_vector, function_none, function_plain, function_functor, function_lambda,
                     tuple, tuple_reference, pair, pair_mixed, atomic, atomic_flag, atomic_point, atomic_pointer, reference, error,
                     no_error, exception, runtime, type));
}

static int texts_and_numbers()
{
    std::string text = "text", text_empty, text_zero("a\0b", 3), text_long(300, 'x');
    std::string text_odd = "q\"\\\n\t\x01\x7f\xc3\xa4";
    std::string_view view = text, view_part = std::string_view(text).substr(1, 2);
    std::wstring wide = L"wide \u00e4";
    std::wstring_view wide_view = wide;
    std::u16string sixteen = u"\u20ac";
    std::u32string thirtytwo = U"32";
    std::filesystem::path path = "/usr/lib/x.so";
    const char *literal = "literal";
    const wchar_t *wide_literal = L"wl";
    const char16_t *literal16 = u"l16";
    char buffer[16] = "buffer";
    wchar_t wide_buffer[4] = L"wb";
    char16_t char16 = u'\u00e4';
    char32_t char32 = U'z';
    wchar_t wchar = L'w';
    signed char small = -3;
    unsigned char byte = 200;
    bool truth = true;
    long double extended = 1.25L;
    float tiny = 1e-40f;
    double infinite = 1e308 * 10, not_number = infinite - infinite, tenth = 0.1;
    __int128 big = (__int128)1 << 90;
    std::complex<double> complex = { 1, -1 };
    std::bitset<10> bitset(5);
    std::byte raw{ 7 };
    std::chrono::seconds seconds(5);
    std::chrono::milliseconds milliseconds(1500);
    std::chrono::duration<double, std::ratio<60>> minutes(2.5);
    std::chrono::system_clock::time_point time_point(std::chrono::seconds(1));
    std::nullptr_t null = nullptr;
    size_t size = 1ul << 40;

    return stop(used(text, text_empty, text_zero, text_long, text_odd, view, view_part, wide, wide_view, sixteen, thirtytwo, path,
                     literal, wide_literal, literal16, buffer, wide_buffer, char16, char32, wchar, small, byte, truth, extended,
                     tiny, infinite, not_number, tenth, big, complex, bitset, raw, seconds, milliseconds, minutes, time_point, null,
                     size));
}

static int own_types()
{
    Color color = Color::blue, no_color = (Color)99;
    Level level = high, levels = (Level)(low | high), no_level = (Level)0, odd_level = (Level)9;
    Plain plain = second, no_plain = (Plain)77;
    Point point = { 1, 2 };
    Point grid[2][2] = { { { 1, 2 }, { 3, 4 } }, { { 5, 6 }, { 7, 8 } } };
    int matrix[2][3] = { { 1, 2, 3 }, { 4, 5, 6 } };
    int same[50] = { 0 };
    Circle circle;
    NamedCircle named;
    Shape *shape = &circle, *no_shape = nullptr, *far = &named;
    Named *second_base = &named;
    Shape &shape_reference = circle;
    const Circle &const_reference = circle;
    Circle &&rvalue = Circle();
    Diamond diamond;
    Base *virtual_base = &diamond;
    Bits bits = { 5, -3, 1ul << 39, true, Color::green };
    Both both = { 0x3f800000 };
    Anonymous anonymous = { 1, { 0x00020001 } };
    Node last = { 2, nullptr }, node = { 1, &last };
    Box<int, 2> box = { { 1, 2 } };
    Box<std::string, 1> box_word = { { "b" } };
    Box<bool, 1> box_special;
    Empty empty;
    HoldsEmpty holds_empty;
    Self self = { &self, self };
    Binary binary = add;
    int (*functions[2])(int) = { twice, nullptr };
    int Point::*member = &Point::y;
    void (Shape::*method)(int) = &Shape::grow;
    double (Shape::*virtual_method)() const = &Shape::area;
    int *pointer = &point.x;
    int **pointer_pointer = &pointer;
    const int *const constant = &point.y;
    void *nothing = &point;
    int &int_reference = point.x;
    int (&array_reference)[2][3] = matrix;
    int (*array_pointer)[3] = matrix;
    volatile int unsteady = 3;
    auto closure = [point, &color](int n) { return point.x + n + (int)color; };
    Point *const row[2] = { &point, nullptr };
    std::vector<Shape *> shapes = { &circle, &named };

    return stop(used(color, no_color, level, levels, no_level, odd_level, plain, no_plain, point, grid, matrix, same, circle, named,
                     shape, no_shape, far, second_base, shape_reference, const_reference, rvalue, diamond, virtual_base, bits, both,
                     anonymous, last, node, box, box_word, box_special, empty, holds_empty, self, binary, functions, member, method,
                     virtual_method, pointer, pointer_pointer, constant, nothing, int_reference, array_reference, array_pointer,
                     unsteady, closure, row, shapes) +
                closure(1));
}

int main()
{
    int sum = sequences() + associations() + holders() + texts_and_numbers() + own_types();

    std::printf("%d\n", sum > 0);
    return 0;
}
