#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Names and values in programs compiled in unusual ways: overloads, enumerators, containers; thread-local variables of
libraries; debug information in type units, in files that programs share (dwz), and found by a debug link."""
import os
import subprocess

import tbdtest

CXX = """
#include <deque>
#include <memory>
#include <string>
#include <vector>
namespace ns {
enum class colour { red, green };
enum plain { one = 1, two };
struct counter {
    int n = 0;
    __attribute__((noinline)) void add(int by) { n += by; }
    __attribute__((noinline)) void add(double by) { n += (int)by; }
    template <class T> __attribute__((noinline)) T twice(T v) { return v + v; }
};
struct shape { colour c = colour::green; plain p = two; };
}
int main()
{
    ns::counter counter;
    ns::shape shape;
    std::vector<int> numbers{ 1, 5, 3 };
    std::deque<long> queue{ 7, 8 };
    std::string text = "tbd";
    auto unique = std::make_unique<ns::shape>();
    auto shared = std::make_shared<int>(42);

    counter.add(3);
    counter.add(2.5);
    counter.add(4);
    counter.twice(4);
    return counter.n + (int)shape.c + *shared + (int)unique->c - 53;
}
"""

LIBRARY_TYPES = """
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
struct base { virtual ~base() {} int n = 1; };
struct derived : base { int more = 5; };
__attribute__((noinline)) int change(std::map<std::string, int> &m, const std::string &key) { return ++m.at(key); }
int main()
{
    std::map<std::string, int> ages{ { "ann", 31 }, { "bob", 42 } };
    std::unordered_map<int, std::vector<int>> lists{ { 7, { 1, 2, 3 } }, { 8, {} } };
    std::map<char, long> none;
    std::set<int> numbers{ 3, 1, 2 };
    std::list<int> chain{ 4, 5 };
    std::deque<int> queue{ 6, 7 };
    std::variant<int, std::string> word = std::string("a word"), number = 9;
    std::optional<std::string> note = "a note", nothing;
    std::shared_ptr<base> object = std::make_shared<derived>();
    std::string who = "bob";
    auto at = ages.find("bob"), end = ages.end(), begin = ages.begin();
    auto empty = none.begin();
    auto in_list = lists.find(7), no_list = lists.find(9);
    auto in_vector = lists[7].begin() + 1;
    auto in_chain = chain.begin();
    auto in_queue = queue.begin() + 1;
    auto in_set = numbers.find(2);

    return change(ages, who) + *in_vector + *in_chain + *in_queue + *in_set + (int)(at == end) + (int)(begin == at) +
           (int)(in_list == no_list) + (int)empty._M_node->_M_color - 43 - 2 - 4 - 7 - 2;
}
"""

LIBRARY = """
__thread int %(p)s_first = 11;
static __thread long %(p)s_second = 22;
int bump_%(p)s(int by)
{
    %(p)s_first += by;
    %(p)s_second += 2 * by;
    return %(p)s_first + (int)%(p)s_second;
}
"""

USER = """
#include <dlfcn.h>
#include <pthread.h>
int bump_linked(int by);
__thread int own = 3;
static void *thread(void *argument)
{
    own = 9;
    bump_linked(100);
    return argument;
}
int main(void)
{
    pthread_t other;
    int (*bump)(int) = (int (*)(int))dlsym(dlopen("./libopened.so", RTLD_NOW), "bump_opened");

    bump_linked(1);
    bump(5);
    pthread_create(&other, 0, thread, 0);
    pthread_join(other, 0);
    return 0;
}
"""


def compile_in(folder, name, text, *flags, compiler="cc"):
    source = os.path.join(folder, name + (".cc" if compiler == "c++" else ".c"))
    with open(source, "w", encoding="utf-8") as f:
        f.write(text)
    subprocess.run([compiler, "-g", "-O0", "-o", name, source, *flags], cwd=folder, check=True)
    return os.path.join(folder, name)


def at_end(folder, path, function="main"):
    result, trace = tbdtest.record([path], folder + "/traces", cwd=folder)
    assert result.code == 0, result
    trace.one("goto", "last", "backward", "func_exit", 1, "where", "func==%s" % function)
    return trace


def values(trace, wanted):
    found = {name: [row["value"] for row in rows] for name, rows in zip(wanted, trace.script(["print " + name for name in wanted], begin=None))}
    assert found == {name: [value] for name, value in wanted.items()}, found


def refused(trace, *words):
    result = trace.tbdq(*words)
    assert result.code == 2, (words, result)


def test_cxx_names(folder):
    trace = at_end(folder, compile_in(folder, "names", CXX, compiler="c++"))
    for name, count in (("ns::counter::add", 3), ("ns::counter::add(int)", 2), ("counter::add( double )", 1), ("add(long)", None),
                        ("*counter::add*", 3), ("ns::counter::twice", 1), ("twice<int>(int)", 1), ("*::twice*", 1)):
        if count is None:
            refused(trace, "all", "func_enter", "where", 'func=="%s"' % name)
        else:
            assert len(trace.ask("all", "func_enter", "where", 'func=="%s"' % name)) == count, name
    assert len(trace.ask("calls", "ns::counter::add(int)")) == 2
    trace.one("goto", "last", "backward", "line", 1, "where", "func==main")
    values(trace, {"ns::colour::green": "ns::colour::green", "shape.c == ns::colour::green": "1", "ns::two": "ns::two", "shape.p == two": "1",
                   "numbers[1]": "5", "queue[1]": "8", "text[2]": "100 'd'", "unique->p == ns::two": "1", "*shared": "42"})
    assert trace.one("ptype", "shape")["ctype"] == "ns::shape" and trace.one("ptype", "&shape")["ctype"] == "ns::shape *"
    refused(trace, "print", "numbers[3]")


def test_thread_local_variables_of_libraries(folder):
    for name in ("linked", "opened"):
        compile_in(folder, "lib%s.so" % name, LIBRARY % {"p": name}, "-fPIC", "-shared")
    trace = at_end(folder, compile_in(folder, "user", USER, "-L.", "-llinked", "-Wl,-rpath,."))
    values(trace, {"linked_first": "12", "linked_second": "24", "own": "3", "opened_first": "16", "opened_second": "32"})
    trace.one("goto", "first", "forward", "func_exit", 1, "where", "func==thread")
    values(trace, {"linked_first": "111", "linked_second": "222", "own": "9"})
    assert "has not used" in trace.one("print", "opened_first")["value"]


def many_types(number):
    types = "".join("struct s%d { int first_%d; struct s%d *next; char text[%d]; enum { A%d, B%d } kind; };\n" % ((i,) * 3 + (i + 1, i, i))
                    for i in range(60))
    objects = "".join("struct s%d v%d = { %d, &v%d, \"\", B%d };\n" % (i, i, i + 100, i, i) for i in range(60))
    return types + objects + "int main(void) { return v%d.first_%d + (int)v3.kind - %d; }\n" % (number, number, number + 101)


WANTED = {"v3.first_3": "103", "v3.kind": "B3", "B7": "B7", "((struct s4 *)&v4)->next->first_4": "104", "sizeof(struct s4)": "32"}


def check_types(folder, path):
    trace = at_end(folder, path)
    values(trace, WANTED)
    assert "first_3 = 103" in trace.one("print", "v3")["value"] and trace.one("ptype", "v3")["ctype"] == "struct s3"


def test_types_in_units_of_their_own(folder):
    for version in ("4", "5"):
        check_types(folder, compile_in(folder, "typed" + version, many_types(1), "-gdwarf-" + version, "-fdebug-types-section"))


def test_debug_information_that_programs_share(folder):
    tbdtest.need("dwz")
    paths = [compile_in(folder, "shared%d" % number, many_types(number)) for number in (1, 2)]
    os.mkdir(folder + "/common")
    subprocess.run(["dwz", "-m", "common/types", "-M", "common/types", *paths], cwd=folder, check=True)
    with open(paths[0], "rb") as f:
        assert b".gnu_debugaltlink" in f.read()
    for path in paths:
        check_types(folder, path)


def test_a_debug_link_beside_the_program(folder):
    path = compile_in(folder, "linked", many_types(1), "-Wl,--build-id=none")
    os.mkdir(folder + "/.debug")
    for command in (["objcopy", "--only-keep-debug", "--compress-debug-sections", path, folder + "/.debug/linked.dbg"],
                    ["strip", path], ["objcopy", "--add-gnu-debuglink=" + folder + "/.debug/linked.dbg", path]):
        subprocess.run(command, check=True)
    check_types(folder, path)


ORDER = """
#include <stdio.h>
#include <string.h>
#include <unistd.h>
struct order { int price, count, total; } o;
static int limit(int v)
{
    return v > 1000 ? 1000 : v;
}
static void settle(struct order *o, int rate)
{
    int gross = o->price * o->count;
    o->total = limit(gross - rate);
}
int main(void)
{
    char text[16] = "";
    int p[2], rate = 3, scaled = 0;
    if (pipe(p) != 0 || write(p[1], "7 12", 4) != 4 || read(p[0], text, 4) != 4)
        return 1;
    sscanf(text, "%d %d", &o.price, &o.count);
    settle(&o, rate);
    double half = o.total * 0.5;
    return (int)half - 40 + scaled;
}
"""


BITS = """
#include <string.h>
struct node { int key; unsigned flag : 1, other : 5, wide : 13, untouched : 3; long rest[3]; } *head, nodes[2];
void mark(struct node *n) { n->flag = 1; }
void widen(struct node *n, int by) { n->wide = 4000 + by; }
int main(int argc, char **argv)
{
    (void)argv;
    head = &nodes[argc - 1];
    mark(head);
    for (int i = 0; i < 40; i++)
        head->other = i & 31;
    widen(head, argc);
    for (int i = 0; i < 40; i++)
        head->other = i & 31;
    struct node copy = *head;
    copy.rest[1] = argc;
    memcpy(head, &copy, sizeof(copy)); /* the same bits, by wide stores */
    return head->other == 7 ? 0 : 1;
}
"""


def test_why_of_a_bit_field_passes_over_its_neighbours_stores(folder):
    for level in ("-O0", "-O2"):
        trace = at_end(folder, compile_in(folder, "bits" + level, BITS, level, "-fno-inline"))
        for field, value, function in (("flag", 1, "mark"), ("wide", 4001, "widen"), ("other", 7, "main")):
            first = trace.ask("why", "head->" + field)[0]
            assert first["function"] == function and int(first["value"], 16) == value, (level, field, first)
        never, = trace.ask("why", "head->untouched")
        assert never["position"] is None and "no store changed these bits" in never["what"] and int(never["value"], 16) == 0, (level, never)


def test_why_follows_calculations_to_all_they_were_made_from(folder):
    for level in ("-O0", "-O2"):
        trace = at_end(folder, compile_in(folder, "order" + level, ORDER, level))
        trace.one("goto", "last", "backward", "line", 1, "where", "func==main")
        hops = trace.ask("why", "/16", "o.total")
        ends = [h["what"] for h in hops]
        assert any("system call read from a pipe, written by this process" in end for end in ends), (level, ends)
        assert "a constant 3" in ends or any("constant 3" in end or "constant -3" in end or "rax-0x3" in h["text"]
                                             for end, h in zip(ends, hops)), (level, ends)
        deep = [h["depth"] for h in hops]
        assert deep[0] == 0 and max(deep) > 3 and all(b <= a + 1 for a, b in zip(deep, deep[1:])), deep
        within = {}
        for hop in hops:
            if hop["position"] is None:  # initial data: the end of its branch
                continue
            time = [hop["time"], hop["offset"]]
            assert hop["depth"] == 0 or time <= within[hop["depth"] - 1], ("a hop goes forward in time", hop)
            within[hop["depth"]] = time
        assert {h.get("function") for h in hops if "code" in h} & {"settle", "main"}, hops
        short = trace.ask("why", "/0", "o.total")
        assert short == [h for h in hops[:len(short)]] and {h["depth"] for h in short} == {0}, short
        assert "depth" not in trace.tbdq("why", "o.total", json_output=False).out.decode().splitlines()[0]


def many_names(folder):
    """A program of 20 units and 10,000 functions with namespaces: tables of small ones are not kept."""
    sources = []
    for unit in range(20):
        name = os.path.join(folder, "unit%d.cc" % unit)
        with open(name, "w", encoding="utf-8") as f:
            f.write("namespace unit%d {\nint counter_%d = %d;\nstruct only_%d { int first, second; } pair_%d = { %d, 2 };\n"
                    % ((unit,) * 6))
            f.write("".join("int work_%d(int value) { return value + %d; }\n" % (i, i) for i in range(500)))
            f.write("int run() { return work_7(counter_%d) + pair_%d.second; }\n}\n" % (unit, unit))
        sources.append(name)
    main = "".join("namespace unit%d { int run(); }\n" % unit for unit in range(20)) + \
        "int main() { return (" + " + ".join("unit%d::run()" % unit for unit in range(20)) + ") == 370 ? 0 : 1; }\n"
    return compile_in(folder, "many", main, *sources, compiler="c++")


KEPT = [["print", "counter_17"], ["print", "unit3::pair_3"], ["ptype", "only_12"], ["print", "((only_5 *)&pair_5)->second"],
        ["print", "no_such_name"], ["goto", "first", "forward", "func_enter", "3", "where", 'func=="*::run"'],
        ["goto", "first", "forward", "func_enter", "1", "where", "func==unit9::work_7"], ["--complete", "print unit1::count"],
        ["--complete", "print pair_1"]]


def answers(trace, cache, *options, questions=slice(None)):
    env = {"XDG_CACHE_HOME": cache}
    found = [tbdtest.run([tbdtest.TBDQ, "-q", "-t", trace.path, *options, *words], stdin=None, env=env) for words in KEPT[questions]]
    return [(r.code, r.out, r.err) for r in found]


def damage(path, how):
    with open(path, "rb") as f:
        content = bytearray(f.read())
    if how == "cut":
        content = content[:len(content) // 2]
    elif how == "empty":
        content = bytearray()
    elif how == "changed":
        content[len(content) // 2] ^= 64
    elif how == "head":
        content[12] ^= 1
    os.unlink(path)
    with open(path, "wb") as f:
        f.write(content)
    os.chmod(path, 0o666 if how == "open" else 0o600)


def test_names_are_kept_for_the_next_question(folder):
    trace = at_end(folder, many_names(folder))
    cache = folder + "/cache"
    wanted = answers(trace, folder + "/none", "--no-cache")
    assert not os.path.exists(folder + "/none")
    assert [code for code, _, _ in wanted] == [0, 0, 0, 0, 2, 0, 0, 0, 0], wanted
    assert wanted[0][1] == b"17\n" and wanted[7][1] == b"unit1::counter_1\n" and b"pair_19\n" in wanted[8][1], wanted
    assert answers(trace, cache) == wanted, "cold"
    kept = {name: os.stat(os.path.join(cache, "tbd/names", name)) for name in os.listdir(cache + "/tbd/names")}
    assert {name.rsplit(".")[-1] for name in kept} == {"order", "readable", "units"}, kept
    assert all(s.st_mode & 0o777 == 0o600 for s in kept.values()) and os.stat(cache + "/tbd/names").st_mode & 0o777 == 0o700
    assert answers(trace, cache) == wanted, "warm"
    assert {name: s.st_ino for name, s in kept.items()} == {e.name: e.inode() for e in os.scandir(cache + "/tbd/names")}
    for number, how in enumerate(("cut", "empty", "changed", "head", "open")):
        for name in kept:
            damage(os.path.join(cache, "tbd/names", name), how)
        some = slice(None) if tbdtest.LONG else slice(number % 3, None, 3)
        assert answers(trace, cache, questions=some) == wanted[some], how
    # Another recording of the program finds the same tables.
    names = sorted(os.listdir(cache + "/tbd/names"))
    _, again = tbdtest.record([folder + "/many"], folder + "/again")
    again.one("goto", "last", "backward", "func_exit", 1, "where", "func==main")
    assert [a[:2] for a in answers(again, cache, questions=slice(5))] == [a[:2] for a in wanted[:5]]
    assert sorted(os.listdir(cache + "/tbd/names")) == names
    many_make_the_tables_at_once(trace, folder + "/at-once")


def many_make_the_tables_at_once(trace, cache):
    env = tbdtest.clean_env({"XDG_CACHE_HOME": cache})
    running = [subprocess.Popen([tbdtest.TBDQ, "-q", "-t", trace.path, *KEPT[i % 6]], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
               for i in range(12)]
    said = [process.communicate() for process in running]
    assert said[:6] == said[6:] and said[0][0] == b"17\n", said
    assert not [name for name in os.listdir(cache + "/tbd/names") if name.startswith(".")]


def test_containers_by_key_iterator_and_member_function(folder):
    trace = at_end(folder, compile_in(folder, "types", LIBRARY_TYPES, "-std=c++17", compiler="c++"), "change")
    trace.one("up")  # in main() all is destroyed at the end
    values(trace, {
        'ages["ann"]': "31", 'ages["bob"]': "43", "ages[who]": "43", 'ages.at("ann") + 1': "32", "ages.size()": "2",
        "none.empty()": "true", "ages.empty()": "false", "lists[7]": "std::vector of length 3, capacity 3 = {1, 2, 3}",
        "lists[7][1]": "2", "lists[7].back()": "3", "lists[7].front()": "1", "lists[8].size()": "0", "*lists[7].data()": "1",
        "chain.back()": "5", "queue.front()": "6", "numbers.size()": "3", "who.size()": "3", "who.length() == 3": "1",
        "word": 'std::variant<int, std::string> [index 1] = {"a word"}', "number": "std::variant<int, std::string> [index 0] = {9}",
        "*note": '"a note"', "note.value().size()": "6", "note.has_value()": "true", "nothing.has_value()": "false",
        "object.get()->n": "1", "((derived *)object.get())->more": "5", "at->second": "43", "(*at).first": '"bob"', "*in_vector": "2",
        "in_vector": "2", "in_chain": "4", "in_queue": "7", "in_set": "2", "in_list->first": "7",
        "end": "non-dereferenceable iterator for associative container",
        "empty": "non-dereferenceable iterator for associative container",
        "no_list": "non-dereferenceable iterator for unordered container",
    })
    assert "<vtable for derived+16>" in trace.one("print", "*object")["value"]
    for wrong in ('ages["carl"]', "lists[9]", 'lists["x"]', "lists[7].at(3)", "nothing.value()", "change(ages, who)", "who.nothing()",
                  "main()", "ages.size(", "ages.at()", "chain.data()", "lists[8].back()"):
        result = trace.tbdq("print", wrong)
        assert result.code in (1, 2) and result.err.startswith(b"tbdq: ") and not result.out, (wrong, result)
    rows = trace.ask("stores", "of", 'ages["bob"]')
    assert [int(row["newval"], 0) for row in rows[-2:]] == [42, 43], rows
    parameters = trace.ask("calls", "change")[0]["values"]
    assert [text.split("=")[0] for text in parameters] == ["m", "key"] and all("not known" not in text for text in parameters), parameters


if __name__ == "__main__":
    tbdtest.main(test_cxx_names, test_containers_by_key_iterator_and_member_function, test_thread_local_variables_of_libraries, test_types_in_units_of_their_own,
                 test_debug_information_that_programs_share, test_a_debug_link_beside_the_program, test_why_of_a_bit_field_passes_over_its_neighbours_stores,
                 test_why_follows_calculations_to_all_they_were_made_from,
                 test_names_are_kept_for_the_next_question)
