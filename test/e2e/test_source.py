#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Source lines, inlined calls and variables at the same places as gdb: -O0 and -O2, DWARF 4 and 5."""
import json
import os
import random
import re
import subprocess

import othertools
import tbdtest

OPTIONS = "window=500000"
KINDS = ("O0_4", "O0_5", "O2_4", "O2_5")
FUNCTIONS = ("add", "twice", "sum_list", "push", "mean", "move", "depth", "main")

# Stops at the wanted hits of the wanted addresses; `at_stop` says something about the place.
STOPS = """
wanted = %r
for address, hit in wanted:
    b = gdb.Breakpoint("*%%#x" %% address)
    b.ignore_count = hit - 1
hits = dict(wanted)
def where(frame):
    line = frame.find_sal()
    return [frame.name(), line.symtab.filename.split("/")[-1] if line.symtab else "", line.line,
            frame.type() == gdb.INLINE_FRAME]
def stack():
    frame, found = gdb.newest_frame(), []
    while frame is not None and (not found or found[-1][0] != "main"):
        found.append(where(frame))
        frame = frame.older()
    return found
run()
while alive():
    pc = value("$pc")
    if pc in hits:
        at_stop(pc, hits.pop(pc))
        [b.delete() for b in gdb.breakpoints() if b.location == "*%%#x" %% pc]
    go()
"""


class Program:
    """A build of variables.c, its trace at fixed addresses, and places in it chosen by a seed."""

    def __init__(self, kind, folder):
        self.path = tbdtest.program("variables_" + kind)
        _, self.trace = tbdtest.record(tbdtest.fixed([self.path]), folder, OPTIONS)
        self.trace = tbdtest.find_trace(folder, self.path)
        self.env = tbdtest.idle_env(folder, OPTIONS)

    def places(self, count, seed):
        """(address, hit) of `count` instructions of the functions."""
        text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", self.path], stdout=subprocess.PIPE, check=True).stdout.decode()
        found, inside = [], False
        for line in text.splitlines():
            head = re.match(r"^[0-9a-f]+ <([\w.]+)>:", line)
            inside = head.group(1) in FUNCTIONS if head else inside
            place = re.match(r"^ +([0-9a-f]+):\t", line)
            if inside and place and "rep" not in line:  # gdb stops at each repetition
                found.append(int(place.group(1), 16))
        chosen = random.Random(seed)
        return [(address, chosen.randint(1, 3)) for address in chosen.sample(found, min(count, len(found)))]

    def gdb(self, places, at_stop):
        return othertools.gdb_script([self.path], at_stop + STOPS % (places,), env=self.env)

    @staticmethod
    def goto(address, hit):
        return "goto first forward block_entry %d where pc==%#x" % (hit, address)


def check_lines(kind, folder):
    program = Program(kind, folder)
    said = program.gdb(program.places(30, kind), "def at_stop(pc, hit):\n    say([pc, hit, stack()])\n")
    assert len(said) >= 8, "%s: only %d stops" % (kind, len(said))
    inlined = 0
    answers = program.trace.script([line for pc, hit, _ in said for line in (program.goto(pc, hit), "bt")])
    for (pc, hit, wanted), [event], frames in zip(said, answers[::2], answers[1::2]):
        found = [[f["function"], os.path.basename(f.get("file", "")), f.get("line", 0), f["inlined"]] for f in frames]
        assert found[:len(wanted)] == wanted, (kind, hex(pc), hit, found[:len(wanted)], wanted)
        assert (os.path.basename(event["file"]), event["line"]) == (wanted[0][1], wanted[0][2]), (event, wanted)
        inlined += any(f["inlined"] for f in frames)
    assert inlined > 0 or kind.startswith("O0"), "no place in inlined code"


def test_lines_and_inlined_calls_as_gdb_sees_them(folder):
    for kind in KINDS:
        check_lines(kind, folder + "/" + kind)


VARIABLES = """
gdb.execute("set host-charset ASCII")
gdb.execute("set target-charset ASCII")
def text(value):
    try:
        return value.format_string()
    except gdb.error as error:
        return "error: %%s" %% error
def locals_of(frame):
    block, found = frame.block(), []
    while block is not None:
        found += [[s.name, text(s.value(frame))] for s in block if s.is_variable or s.is_argument]
        if block.function is not None:
            return found
        block = block.superblock
    return found
# Names of the arguments, before the innermost function's first statement.
def not_stored_yet():
    block = gdb.newest_frame().block()
    while block.function is None:
        block = block.superblock
    is_first = gdb.find_pc_line(block.start).line == gdb.newest_frame().find_sal().line
    return [s.name for s in block if s.is_argument and is_first]
def at_stop(pc, hit):
    frame, frames = gdb.newest_frame(), []
    while frame is not None:
        frames.append(locals_of(frame))
        if frame.name() == "main":
            break
        frame = frame.older()
    say([pc, hit, frames, [text(gdb.parse_and_eval(e)) for e in %r], not_stored_yet()])
"""
GLOBALS = ["counter", "hidden", "ratio", "third", "ready", "byte", "letter", "title", "table", "grid", "paint", "number.real", "packed",
           "points", "inner", "runs", "blank", "large", "ends", "full", "rows", "counts", "many", "steps", "pairs", "spaced",
           "head", "chosen", "per_thread", "nothing", "points[1].y * 3 - counter", "&points[2]", "&points[2] - points",
           "table[counter % 4] << 2", "(char)table[1]", "*&counter + 1", "sizeof(struct node) / sizeof(table[0])", "packed.five > -8",
           "(unsigned char)packed.five", "number.bytes[7]", "*title", "title[2] == 't'", "head != 0 && head->key > 10",
           "counter / -2", "-7 % 3", "(double)counter / 2", "~(unsigned)packed.one", "!head", "1u - 2", "(long)1 << 40", "grid[1][2]", "*grid[1]",
           "table[1]@3", "*title@4", "pairs[0]@14", "large[0]@300", "*(int (*)[2])table", "(*(unsigned char (*)[3])&byte)[0]", "sizeof(int[10])",
           "sizeof(char *[3])", "wide", "wide_pointer", "symbols", "symbols[1]", "sixteen[0]@2", "sixteen[0]", "thirty_two", "long_third"]


def known(text):
    """Removes the reason, which gdb does not give; a struct without a known member counts as not known."""
    text = re.sub(r"<optimized out: [^>]*>", "<optimized out>", text)
    return re.sub(r"^\{[\w ={},]*(<optimized out>[\w ={},]*)+\}$", "<optimized out>", text)


def tidy(variables):
    """Sorted; gdb lists what an inlined function inherits twice, once without a place."""
    found = [(name, known(text)) for name, text in variables]
    places = {name for name, text in found if text != "<optimized out>"}
    return sorted({(name, text) for name, text in found if text != "<optimized out>" or name not in places})


def check_variables(kind, folder, tally):
    program = Program(kind, folder)
    said = program.gdb(program.places(18, kind + "v"), VARIABLES % (GLOBALS,))
    assert len(said) >= 6, "%s: only %d stops" % (kind, len(said))
    answers = iter(program.trace.script([line for pc, hit, frames, _, _ in said
                                         for line in [program.goto(pc, hit)] + ["locals %d" % number for number in range(len(frames))]]))
    for pc, hit, frames, values, early in said:
        [event] = next(answers)
        for number, wanted in enumerate(frames):
            rows = next(answers)
            # gdb shows a frame in which unoptimized code has stored nothing yet; what is passed has tests of its own.
            if number == 0 and event.get("function_offset") == 0 and kind.startswith("O0"):
                continue
            found = tidy((v["name"], v["value"]) for v in rows)
            if number == 0 and kind.startswith("O0"):
                found, wanted = ([(name, text) for name, text in values if name not in early] for values in (found, wanted))
            assert found == tidy(wanted), (kind, hex(pc), hit, number, found, tidy(wanted))
            tally["known"] += sum("<optimized out>" not in text for _, text in found)
            tally["unknown"] += sum("<optimized out>" in text for _, text in found)
    for pc, hit, frames, values, _ in said[:2] + said[-1:]:
        answers = program.trace.script([program.goto(pc, hit)] + ["print " + expression for expression in GLOBALS])
        for expression, wanted, [answer] in zip(GLOBALS, values, answers[1:]):
            assert answer["value"] == wanted, (kind, hex(pc), hit, expression, answer, wanted)


def test_variables_and_expressions_as_gdb_sees_them(folder):
    for kind in KINDS:
        tally = {"known": 0, "unknown": 0}
        check_variables(kind, folder + "/" + kind, tally)
        print("        %s: %s" % (kind, tally))
        assert tally["known"] > 20, tally


def test_variables_in_conditions_have_the_values_of_printed_ones(folder):
    for kind in KINDS:
        trace = Program(kind, folder + "/" + kind).trace
        answer = subprocess.run([os.path.join(tbdtest.BUILD, "condition_check"), trace.path, "150", "5"], stdout=subprocess.PIPE, check=False)
        said = answer.stdout.decode()
        assert answer.returncode == 0, said
        print("        %s: %s" % (kind, said.strip()))
        found = dict(zip(said.split()[::2], map(float, said.split()[1::2])))
        assert found["same"] > 500 and found["missing"] < found["same"] / 10, said


# What is passed to the functions of test/programs/passed.cc; None: only the whole calling convention says where it is.
PASSED = {
    "by_string": {"text": '"hello"', "n": "5"},
    "made": {"key": "6"},
    "many": {"v": "std::vector of length 2, capacity 2 = {1, 2}", "extra": "7"},
    "by_large": {"large": "{a = {1, 2, 3, 4}}", "n": "8"},
    "by_small": {"small": None, "n": None},
    "two": {"n": "9"},
    "real": {"x": "2.5", "y": "2", "n": "10", "text": '"tt"'},
    "by_virtual": {"n": "12"},
    "by_holder": {"h": '{number = 13, text = "thirteen"}', "n": "14"},
    "by_plain": {"p": "{a = 1, b = 2, c = 3}", "n": "15"},
    "eight": dict(zip("abcdefgh", "12345678")),
}


def test_parameters_at_a_function_s_first_instruction(folder):
    """Unoptimized code has not stored them in its frame yet."""
    path = tbdtest.program("passed")
    tbdtest.record([path], folder)
    trace = tbdtest.find_trace(folder, path)
    for function, wanted in PASSED.items():
        event = trace.one("goto", "first", "forward", "func_enter", 1, "where", "func==" + function)
        found = {v["name"]: (re.sub(r"^@0x[0-9a-f]+: ", "", v["value"]) if v["known"] else None) for v in trace.ask("locals")}
        assert {name: found[name] for name in wanted} == wanted, (function, found)
        row = [v.split("=", 1) for v in trace.ask("calls", function)[0]["values"]]
        shown = {"small": "{a = 3, b = 4}", "n": "11"} if function == "by_small" else wanted
        assert all(value in ("?", shown[name]) or value.startswith("@0x") for name, value in row if name in wanted), (function, row)
        # At every event there, not only at the entry.
        name, value = [(name, value) for name, value in wanted.items()][-1]
        if function in ("by_small", "eight"):
            continue
        question = "func==%s and %s==%s" % (function, name, value)
        for kind in ("func_enter", "line"):
            first = trace.one("goto", "first", "forward", kind, 1, "where", question)
            assert tbdtest.position(first) == tbdtest.position(event), (question, first, event)


def test_frames_are_selected_and_listed(folder):
    trace = Program("O2_5", folder).trace
    event = trace.one("goto", "first", "forward", "func_enter", 7, "where", "func==depth")
    assert (event["line"], os.path.basename(event["file"])) == (trace.one("where")["line"], "variables.c")
    frames = trace.ask("bt")
    assert [f["function"] for f in frames[:8]] == ["depth"] * 7 + ["main"], frames
    assert trace.one("up", 7)["function"] == "main" and trace.one("frame")["frame"] == 7
    listed = trace.ask("list", 5)
    assert len(listed) == 5 and [line["current"] for line in listed] == [False, False, True, False, False]
    assert listed[2]["line"] == frames[7]["line"] and "depth(6)" in listed[2]["text"], listed
    assert trace.one("down", 3)["frame"] == 4 and trace.tbdq("down", 5).code == 2 and trace.one("frame")["frame"] == 4
    trace.one("goto", "current", "backward", "func_enter", 1)
    assert trace.one("frame")["frame"] == 0
    assert trace.one("up", 2)["frame"] == 2 and trace.one("goto", "current", "forward", "func_enter", 1)
    trace.one("goto", "current", "backward", "func_enter", 1)
    assert trace.one("frame")["frame"] == 0, "the frame of the visit before"
    text = trace.tbdq("where", json_output=False).out
    assert b"  variables.c:" in text, text


NODES = {"inner.c": "struct node { char c[3]; }; struct leaf { short s; };\n"
                    "__attribute__((noinline)) int inner(int n) { struct node own = { { n } }; struct leaf l = { 1 }; return own.c[0] + l.s; }\n",
         "outer.c": "struct node { long a, b; }; typedef unsigned char tiny; int inner(int);\n"
                    "int main(void) { struct node own = { 1, 2 }; tiny t = 3; return inner((int)own.a) + t == 5 ? 0 : 1; }\n"}


def test_types_are_those_of_the_selected_frame(folder):
    paths = [os.path.join(folder, name) for name in NODES]
    for path, text in zip(paths, NODES.values()):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
    program = folder + "/types"
    subprocess.run(["cc", "-g", "-O0", "-o", program, *paths], check=True)
    trace = tbdtest.record([program], folder + "/traces")[1]
    said = othertools.gdb_script([program], """
gdb.Breakpoint("inner")
run()
for number in (0, 1):
    gdb.execute("frame %d" % number, to_string=True)
    for name in ("struct node", "own", "tiny", "int", "struct leaf"):
        try:
            say([number, name, int(gdb.parse_and_eval("sizeof(%s)" % name))])
        except gdb.error:
            say([number, name, None])
""")
    trace.one("goto", "first", "forward", "line", 1, "where", "func==inner")
    for number, name, size in said:
        trace.one("frame", number)
        result = trace.tbdq("ptype", name)
        if size is not None and (number, name) not in ((0, "tiny"), (1, "struct leaf")):  # gdb looks in other units, too
            assert result.code == 0 and json.loads(result.out)["size"] == size, (number, name, size, result)
    assert len(said) == 10 and [s[2] for s in said if s[1] == "struct node"] == [3, 16], said


def test_what_gdb_users_type_first(folder):
    """`info args` has no locals, `print $pc` the place, `ptype` of a pointer the members of what it leads to."""
    trace = Program("O0_5", folder).trace
    trace.one("goto", "last", "backward", "func_enter", 1, "where", "func==sum_list")
    names = {row["name"]: row["parameter"] for row in trace.ask("locals")}
    args = [name for name, parameter in names.items() if parameter]
    assert [row["name"] for row in trace.ask("locals", "args")] == args and 0 < len(args) < len(names), names
    assert trace.ask("locals", "args", 0) == trace.ask("info", "args") == trace.ask("locals", "args")
    assert trace.tbdq("locals", "args", 0, 1).code == trace.tbdq("locals", 0, 1).code == 2
    pc, sp = (trace.one("regs")[name] for name in ("rip", "rsp"))
    assert trace.tbdq("print", "$pc", json_output=False).out.decode() == pc + " <sum_list>\n"
    assert trace.one("print", "$rsp")["value"] == trace.one("print", "$sp")["value"] == sp
    assert trace.one("print", "$pc + 0")["value"] == str(int(pc, 16)) == trace.one("print", "/u", "$pc")["value"]
    trace.one("stepi")
    assert re.fullmatch(r"0x[0-9a-f]+ <sum_list\+[0-9]+>\n", trace.tbdq("print", "$rip", json_output=False).out.decode())
    whole = trace.tbdq("ptype", "*first", json_output=False).out.decode()
    text = trace.tbdq("ptype", "first", json_output=False).out.decode()
    assert text.count("\n") == whole.count("\n") + 1 > 3 and text.endswith(whole), (text, whole)
    assert trace.tbdq("ptype", "int *", json_output=False).out == b"int *, 8 bytes\n"


def test_stores_of_an_expression(folder):
    trace = Program("O2_5", folder).trace
    trace.one("goto", "last", "backward", "func_enter", 1, "where", "func==sum_list")
    event = trace.one("goto", "current", "backward", "store", 1, "of", "first->key", "where", "newval==44")
    assert event["function"] == "push" and event["newval"] == "0x2c" and event["oldval"] == "0x0", event
    address = trace.one("print", "counter")["addr"]
    assert trace.ask("all", "store", "of", "counter") == trace.ask("all", "store", "where", "touches[%s,4]" % address)
    for question, word in (("nowhere", b"no variable 'nowhere'"), ("3+4", b"no place in memory")):
        answer = trace.tbdq("goto", "last", "backward", "store", 1, "of", question)
        assert answer.code == 2 and word in answer.err, answer


PARTS = {
    "kept.c": "static int level = 1; static int only_here = 11; int kept(int by) { level += by; return level + only_here; }",
    "other.c": "int kept(int by); volatile int seen; void other(void) { seen = kept(10); seen = kept(20); }",
    "private.c": "static int shared = 2; int read_private(void) { shared++; return shared; }",
    "shared.c": "int shared = 3; static int level = 7; int change(void) { level += 2; return shared += level; }",
    "main.c": "void other(void); int read_private(void); int change(void);"
              "int main(void) { change(); other(); return change() + read_private() == 0; }",
}


def test_names_of_other_files_mean_what_all_can_see_or_the_program_has(folder):
    """As in gdb: a library keeps a `level` to itself, the program has one, too; one file keeps a `shared` to itself, another has it for all."""
    for name, text in PARTS.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text.replace(";", ";\n"))
    path, library = folder + "/parts", folder + "/libkept.so"
    subprocess.run(["cc", "-g", "-shared", "-fPIC", "-o", library, "kept.c", "other.c"], cwd=folder, check=True)
    subprocess.run(["cc", "-g", "-o", path, "private.c", "shared.c", "main.c", library, "-Wl,-rpath," + folder], cwd=folder, check=True)
    trace = tbdtest.record([path], folder + "/traces")[1]
    wanted = othertools.gdb_script([path], """
for function in ("change", "other", "kept", "read_private", "main"):
    gdb.Breakpoint(function, temporary=True)
run()
while alive():
    say([gdb.selected_frame().name()] + [int(gdb.parse_and_eval(name)) for name in ("level", "shared", "only_here")])
    go()
""")
    assert [one[0] for one in wanted] == ["main", "change", "other", "kept", "read_private"], wanted
    for function, *values in wanted:
        trace.one("goto", "first", "forward", "func_enter", 1, "where", "func==" + function)
        assert [int(trace.one("print", name)["value"]) for name in ("level", "shared", "only_here")] == values, (function, values)
    # The same in conditions, at each event's own place.
    entered = trace.ask("all", "func_enter", "where", "level == 9 and (func==change or func==other or func==kept or func==read_private)")
    assert [e["function"] for e in entered] == ["other", "change"], entered


FORTRAN = """program bounds
 type pt
  integer :: x
  real(8) :: y(3)
  integer :: z(-1:1)
 end type
 type(pt) :: p
 integer :: square(2,2)
 p%x = 1
 p%y = (/1d0,2d0,3d0/)
 p%z = (/4,5,6/)
 square = 7
 print *, p%x
end program
"""


def test_arrays_that_do_not_begin_with_0_have_their_elements(folder):
    """Fortran's begin with 1, or as declared."""
    compiler = tbdtest.need("gfortran")
    with open(folder + "/bounds.f90", "w", encoding="utf-8") as f:
        f.write(FORTRAN)
    subprocess.run([compiler, "-g", "-O0", "-o", "bounds", "bounds.f90"], cwd=folder, check=True)
    trace = tbdtest.record([folder + "/bounds"], folder + "/traces")[1]
    trace.one("goto", "first", "forward", "line", 1, "where", "src=<bounds.f90,13>")
    value = trace.one("print", "p")["value"]
    assert value == "{x = 1, y = {1, 2, 3}, z = {4, 5, 6}}", value
    assert trace.one("print", "sizeof(square)")["value"] == "16", trace.one("print", "sizeof(square)")


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
