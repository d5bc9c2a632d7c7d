#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Values of C++ that need more than plain C types, as gdb and the printers of its C++ library show them."""
import re

import othertools
import tbdtest

OPTIONS = "window=500000"
STOPS = """
gdb.execute("set host-charset UTF-8")
gdb.Breakpoint("stop")
run()
while alive():
    frame = gdb.newest_frame().older()
    frame.select()
    found = {}
    block = frame.block()
    while block is not None and not block.is_global and not block.is_static:
        for symbol in block:
            if (symbol.is_variable or symbol.is_argument) and symbol.name not in found:
                try:
                    found[symbol.name] = frame.read_var(symbol).format_string(symbols=False, unions=True)
                except (gdb.error, RuntimeError, UnicodeError):
                    found[symbol.name] = None
        block = None if block.function else block.superblock
    say([str(frame.function() and frame.function().symtab and frame.find_sal().line), found])
    go()
"""


def recorded(folder, program="cxx_values"):
    path = tbdtest.program(program)
    tbdtest.record(tbdtest.fixed([path]), folder, OPTIONS)
    return path, tbdtest.find_trace(folder, path), tbdtest.idle_env(folder, OPTIONS)


def in_the_caller_of_stop(trace, number, lines):
    """The answers to these lines at the n-th call of stop(), about the function that calls it."""
    return trace.script(["goto first forward func_enter %d where func==stop" % number, "frame 1", *lines])[2:]


def stops(folder):
    """For each call of stop(): {name: value} of its caller's variables as gdb and as tbdq show them."""
    path, trace, env = recorded(folder)
    said = othertools.gdb_script([path], STOPS, env=env)
    found = []
    for number in range(len(said)):
        [frame], values = in_the_caller_of_stop(trace, number + 1, ["frame", "locals"])
        found.append({v["name"]: v["value"] for v in values})
        assert str(frame["line"]) == said[number][0], (frame, said[number])
    return trace, [s[1] for s in said], found


def plain(text):
    """Without names of symbols and classes of objects, which gdb leaves out here; a path without its parts."""
    text = re.sub(r"^\([^{}]* [*&]\) ", "", text)
    text = re.sub(r"(0x[0-9a-f]+) <[^>]*(?:<.*>)?[^>]*>", r"\\1", text)
    text = re.sub(r"(@0x[0-9a-f]+): .*", r"\1", text).replace("{<No data fields>}", "{}")
    return re.sub(r'(filesystem::path "[^"]*") = \{.*\}$', r"\1", text)


def test_closures_and_local_classes_have_variables(folder):
    trace, wanted, found = stops(folder)
    names = [set(values) for values in found]
    assert {"a", "b", "inner", "captured", "local"} <= names[0] and {"this", "n", "sum"} <= names[1], names
    assert {"k", "twice"} <= names[2] and {"d", "captured", "c"} <= names[3], names
    for before, after in zip(wanted[:4], found[:4]):
        assert len(before) >= 2, before
        for name, value in before.items():
            if value is not None:
                assert plain(after[name]) == plain(value), (name, after[name], value)
    rows = trace.ask("calls", "*Local::add") + trace.ask("calls", '"*lambda(int, double)*"')
    assert [r["values"][1:] for r in rows][0] == ["n=4"] and rows[1]["values"][1] == "a=1" and rows[0]["result"] == "14", rows


def test_values_are_printed_as_by_gdb(folder):
    _, wanted, found = stops(folder)
    compared = {}
    for name, value in wanted[-1].items():
        if value is not None and name not in ("i",):
            compared[name] = (plain(found[-1][name]), plain(value))
    assert len(compared) >= 28, sorted(compared)
    wrong = {name: pair for name, pair in compared.items() if pair[0] != pair[1]}
    assert not wrong, wrong


# As gdb's print shows them at a prompt.
PRINTED = """
gdb.execute("set host-charset UTF-8")
gdb.execute("set print object on")
gdb.execute("set print pretty %s")
gdb.Breakpoint("stop")
run()
while alive():
    frame = gdb.newest_frame().older()
    frame.select()
    found = {}
    for symbol in frame.block():
        if symbol.is_variable:
            try:
                shown = gdb.execute("print " + symbol.name, to_string=True).split(" = ", 1)[1].rstrip()
            except (gdb.error, RuntimeError, UnicodeError) as error:
                shown = str(error)
            found[symbol.name] = (shown, str(symbol.type.strip_typedefs().unqualified()))
    say(found)
    go()
"""

FUNCTION = "gdb's library has no printer for std::function, and shows its members"
EMPTY = "base classes without data are left out, and no text stands for \"no members\""
CAPTURED = "numbers that a member refers to are shown"
# What differs, as a pattern for what tbdq shows, and why.
DIFFERENT = {
    "in_map": (r"non-dereferenceable iterator for associative container", "gdb shows the tree's header as if it were a value"),
    "in_hash": (r"\{first = 1, second = 0.5\}", "gdb's library has no printer for iterators of unordered containers"),
    "function_none": (r"std::function \[no contained value\]", FUNCTION),
    "function_plain": (r"std::function containing int \(\*\)\(int\) = \{\[contained value\] = 0x\w+ <twice>\}", FUNCTION),
    "function_functor": (r"std::function containing Functor = \{\[contained value\] = \{base = 40\}\}", FUNCTION),
    "function_lambda": (r"std::function containing .* = \{\[contained value\] = \{\}\}", FUNCTION),
    "tuple_reference": (r"std::tuple containing = \{\[1\] = @0x\w+: 5, \[2\] = 0x\w+ \"c\"\}", CAPTURED),
    "closure": (r"\{__point = \{x = 1, .*\}, __color = @0x\w+: shop::Color::blue\}", CAPTURED),
    "reference": (r"\{_M_data = 0x\w+\}", EMPTY),
    "holds_empty": (r"\{n = 6\}", EMPTY),
    "error": (r"\{_M_value = 22, _M_cat = 0x\w+.*\}", "gdb's printer names the category's class; members are shown here"),
    "no_error": (r"\{_M_value = 0, _M_cat = 0x\w+.*\}", "gdb's printer names the category's class; members are shown here"),
    "type": (r"\{_M_target = 0x\w+ <typeinfo for int>\}", "gdb adds the symbol's version"),
    "text_odd": (r'"q\\"\\\\\\n\\t\\001\\177\\303\\244"', "bytes that are not ASCII are shown as octal numbers"),
    "path": (r'filesystem::path "/usr/lib/x.so"', "the path's parts are left out"),
    "raw": (r"7", "gdb does not find the definition of std::byte"),
    "runtime": (r".*", "its class is defined in the library alone, which may have debug information"),
    "null": (r"0x0", "gdb cannot print a std::nullptr_t"),
}
# An object's class is shown where the variable's type does not say it.
OBJECTS = {"shape", "far", "second_base", "shape_reference", "virtual_base"}


def as_here(text, found, name):
    """gdb's text without the type before it, unless that is an object's class, and without the parameters of functions."""
    if name not in OBJECTS and not found.startswith("("):
        text = re.sub(r"^\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\) ", "", text)
    text = re.sub(r"(<[^<>()]*)\([^()]*\)>", r"\1>", text).replace("<No data fields>", "")
    return re.sub(r"(&virtual [\w:]*)\(.*", r"\1", text)


def printed(folder, pretty):
    """{name: (as tbdq, as gdb shows it, number of the stop, type)} of all variables of all functions of cxx_types."""
    path, trace, env = recorded(folder, "cxx_types")
    found = {}
    for number, said in enumerate(othertools.gdb_script([path], PRINTED % pretty, env=env)):
        for v in in_the_caller_of_stop(trace, number + 1, ["locals"])[0]:
            found[v["name"]] = (v["value"], said[v["name"]][0], number + 1, said[v["name"]][1])
    return trace, found


def check_types(trace):
    """Members that are not in the object, or that each object has elsewhere, have no offset; an enumeration has its values."""
    for name, rows in (("shop::Point", [["0", "int", "x"], ["4", "int", "y"], ["-", "static", "int", "made"]]),
                       ("shop::Color", [["0", "red"], ["7", "green"], ["8", "blue"]]), ("shop::Left", [["-", "virtual", "shop::Base"], ["8", "int", "l"]])):
        shown = [line.split() for line in trace.tbdq("ptype", name, json_output=False, at="last").out.decode().splitlines()[1:]]
        assert [row for row in rows if row not in shown] == [], (name, shown)


def test_a_hundred_types_are_printed_as_by_gdb(folder):
    trace, found = printed(folder, "off")
    check_types(trace)
    assert len(found) >= 150, len(found)
    wrong, equal = [], set()
    for name, (here, gdb, _, kind) in found.items():
        if name in DIFFERENT:
            assert re.fullmatch(DIFFERENT[name][0], here), (name, here, gdb)
            assert here != as_here(gdb, here, name) or name in ("runtime", "null"), ("no longer different", name)
        elif here != as_here(gdb, here, name):
            wrong.append((name, here, gdb))
        else:
            equal.add(kind)
    assert not wrong, wrong
    print("        %d types are shown alike; with a reason, not: %s" % (len(equal), ", ".join(
        sorted({found[name][3] for name in DIFFERENT if name in found} - equal))))
    assert len(equal) >= 130, sorted(equal)
    wanted = {"shop::Point::made": "12", "point.made": "12", "shop::Shape::count + 1": "4", "circle.count": "3", "shape->r": "2", "far->extra": "9",
              "diamond.b": "1", "virtual_base->d": "4", "shop::Point::scale": "2.5", "second_base->name": '"a name"',
              "true": "true", "no_shape == nullptr": "1", "'a'": "97 'a'", "'a' + 1": "98"}
    *shown, [shape] = in_the_caller_of_stop(trace, max(number for _, _, number, _ in found.values()), ["print " + text for text in [*wanted, "*shape"]])
    assert [row["value"] for [row] in shown] == list(wanted.values()), shown
    assert shape["value"].startswith("(shop::Circle) {<shop::Shape> = {_vptr.Shape = 0x"), shape


# Expressions over class_casts, and what C++ gives for them.
CASTS = {
    "((First *)all)->first": 1, "((Second *)all)->second": 2, "((Plain *)all)->plain": 3, "((const Second *)fixed)->second": 2,
    "((All *)second)->all": 4, "((All *)first)->plain": 3, "((All *)&referring.plain)->all": 4, "(Second *)nothing == 0": 1,
    "((Left *)both)->left": 5, "((Right *)both)->right": 6, "((Second *)both)->second": 2, "((First *)((char *)all))->first": 1,
    "(long)(Second *)all - (long)all": 16, "(char *)(Second *)all - (char *)all": 16, "(long)(First *)all == (long)all": 1,
    "nothing == nullptr": 1, "(all != nullptr) == true": 1, "(all == nullptr) == false": 1,
}
# These ask the object, or are not known to conditions.
CASTS_OF_PRINT = {
    "((First *)both)->first": 1, "((Both *)(First *)both)->both": 7, "(long)(Both *)(First *)both == (long)both": 1,
    "static_cast<Second *>(all)->second": 2, "static_cast<All *>(second)->all": 4, "const_cast<All *>(fixed)->all": 4,
    "dynamic_cast<All *>(first)->second": 2, "dynamic_cast<Both *>(first) == 0": 1, "(long)reinterpret_cast<Second *>(all) == (long)all": 1,
    "(*&referring.reference).first": 1, "(*&referring.plain).plain": 3, "&referring.plain == (Plain *)all": 1, "numbers[1]": 8, "shared->left": 5, "(*shared).first": 1,
}


def test_casts_between_classes_are_those_of_the_language(folder):
    _, trace = tbdtest.record([tbdtest.program("class_casts")], folder, OPTIONS)
    every = {**CASTS, **CASTS_OF_PRINT}
    for (expression, value), [found] in zip(every.items(), in_the_caller_of_stop(trace, 1, ["print " + text for text in every]), strict=True):
        assert found["value"] == str(value), (expression, value, found)
    counts = trace.counts("func_enter where func==stop and (%s) == %d" % pair for pair in CASTS.items())
    assert counts == [1] * len(CASTS), dict(zip(CASTS, counts, strict=True))
    result = trace.tbdq("count", "func_enter", "where", "func==stop and ((First *)both)->first == 1", json_output=False)
    assert result.code == 2 and b"virtual base classes" in result.err, result


def test_data_of_another_scope_needs_its_name(folder):
    """`in` is not std::ios_base::in, which is in a library's symbol table; gdb does not take it for that either."""
    _, trace = tbdtest.record([tbdtest.program("class_casts")], folder, OPTIONS)
    for name in ("in", "app"):
        result = trace.tbdq("print", name, at="last")
        assert result.code == 2 and b"there is no variable '%s'" % name.encode() in result.err, result
        assert int(trace.one("print", "&std::ios_base::" + name, at="last")["data"], 16) > 4096


def test_pretty_values_are_laid_out_as_by_gdb(folder):
    trace, found = printed(folder, "on")
    names = ["point", "circle", "named", "map", "map_map", "set", "tuple", "bits", "anonymous", "points", "pairs", "grid", "unique", "shared",
             "optional", "any_point", "variant_word", "diamond", "list", "words"]
    lines = ["set print pretty on"]
    for number in sorted({found[name][2] for name in names}):
        lines += ["goto first forward func_enter %d where func==stop" % number, "frame 1"]
        for name in [n for n in names if found[n][2] == number]:
            lines += ["echo =" + name, "print " + name, "echo =."]
    said = tbdtest.run([tbdtest.TBDQ, "-t", trace.path], stdin="\n".join(lines).encode() + b"\n")
    shown = dict(re.findall(r"^=(\w+)\n(.*?)\n=\.$", said.out.decode(), re.M | re.S))
    assert len(shown) == len(names), (sorted(shown), said.err[-300:])
    for name in names:
        wanted = "\n".join(line.rstrip() for line in as_here(found[name][1], "", name).splitlines())
        assert shown[name] == wanted, (name, shown[name], wanted)



def test_constants_in_parts_of_a_struct_are_its_value(folder):
    """The debug information has the bytes themselves: DW_OP_implicit_value in a piece."""
    _, trace, _ = recorded(folder, "constants")
    at = ["goto first forward func_enter 2 where func==area_of", "frame 1"]
    _, _, (pair,), (part,) = trace.script([*at, "print pair", "print pair.real"])
    assert (pair["value"], part["value"]) == ("{real = 2.5, whole = 1}", "2.5"), (pair, part)


def test_a_pure_function_of_a_class_in_no_scope_names_what_overrides_it(folder):
    _, trace, _ = recorded(folder, "constants")
    pure = trace.tbdq("calls", "Shape::area", json_output=False)
    assert pure.code == 2 and b"'Shape::area' is a virtual function" in pure.err and b"overridden by Square::area\n" in pure.err, pure


if __name__ == "__main__":
    tbdtest.main(test_constants_in_parts_of_a_struct_are_its_value, test_a_pure_function_of_a_class_in_no_scope_names_what_overrides_it,
                 test_closures_and_local_classes_have_variables, test_values_are_printed_as_by_gdb, test_casts_between_classes_are_those_of_the_language, test_data_of_another_scope_needs_its_name,
                 test_a_hundred_types_are_printed_as_by_gdb, test_pretty_values_are_laid_out_as_by_gdb)
