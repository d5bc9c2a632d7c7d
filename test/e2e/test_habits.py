#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Commands of gdb: they mean the same in tbdq, or a hint says how to ask."""
import os
import re
import subprocess
import time

import othertools
import stepping
import tbdtest

GDB_STACK = """
gdb.execute("break leaf")
gdb.execute("run")
for line in gdb.execute("bt", to_string=True).splitlines():
    say(line)
"""
TABLE = os.path.join(tbdtest.SOURCE, "src/query/prompt/gdb_words.c")


def recorded(folder):
    trace = tbdtest.record([os.path.join(tbdtest.BUILD, "examples/overflow")], folder)[1]
    trace.one("goto", "last", "backward", "func_exit", "1", "where", "func==main")
    return trace


def said(trace, line):
    return trace.tbdq(line, json_output=False)


def test_words_of_gdb_mean_commands(folder):
    trace = recorded(folder)
    for theirs, ours in (("p settings", "print settings"), ("p/x settings.limit", "print /x settings.limit"),
                         ("print/x settings.limit", "print /x settings.limit"), ("backtrace", "bt"), ("l", "list"), ("f", "frame"),
                         ("x/2i $pc", "x/2i"), ("whatis settings", "ptype settings"), ("info locals", "locals"),
                         ("info reg", "regs"), ("i r", "regs"), ("info registers rip", "print /x $rip"), ("i r $rsp", "print /x $rsp"), ("info sharedlibrary", "modules"), ("info threads", "threads"),
                         ("when", "where")):
        assert (one := said(trace, ours)).code == 0 and one.out, (ours, one)
        assert (other := said(trace, theirs)).out == one.out and other.code == 0, (theirs, other)
    regs = trace.one("regs")
    for ours, theirs in (("rflags", "$eflags"), ("rflags", "$rflags"), ("fs_base", "$fs_base"), ("gs_base", "$gs_base")):
        assert tbdtest.number(trace.one("print", "/x", theirs)["value"]) == tbdtest.number(regs[ours]), (theirs, regs)
    said(trace, "up")
    assert b"may have changed eflags" in said(trace, "print $eflags").out and said(trace, "print /x $fs_base").code == 0
    said(trace, "down")
    words = ["x/2gx", "&settings"]
    assert said(trace, "x/2gx &settings").out
    assert trace.tbdq(*words, json_output=False).out == said(trace, " ".join(words)).out
    assert said(trace, "n").code == 0 and said(trace, "rn").code == 0


def test_what_has_no_equal_is_told_how(folder):
    trace = recorded(folder)
    for line, hint in (("awatch settings.limit", b"rwatch"), ("set var x=1", b"past"), ("run", b"goto first")):
        result = said(trace, line)
        assert result.code == 2 and b"hint: " in result.err and hint in result.err, (line, result)
    result = said(trace, "info auxv")
    assert result.code == 2 and b"help gdb" in result.err and not result.out, result


def test_what_is_tried_first(folder):
    trace = recorded(folder)
    assert said(trace, "stores settings.limit").out == said(trace, "stores of settings.limit").out != b""
    for joined, apart in (("print settings.limit/x", "print /x settings.limit"), ("p settings.limit/t", "print /t settings.limit")):
        assert said(trace, joined).out == said(trace, apart).out != b"", joined
    assert said(trace, "print settings.limit/settings.limit").out == b"1\n", "no format, but a division"
    rows = trace.tbdq("--csv", "bt", json_output=False).out.decode().split("\r\n")
    assert rows[0] == "frame,pc,module,function,file,line" and rows[1].split(",")[3] == "main", rows
    assert b"write" in said(trace, "count syscall by value").out
    empty = said(trace, "trace 10 5")
    assert empty.code == 1 and b"before the first" in empty.err, empty
    for line, wrong in (("syscalls where syscall == opeat", b"system call called 'opeat'"),
                        ("signals where signal != SIGFOO", b"signal called 'SIGFOO'"),
                        ("signals where time>1&&signal==SIGFOO", b"signal called 'SIGFOO'")):
        result = said(trace, line)
        assert result.code == 2 and wrong in result.err and not result.out, (line, result)


def test_places_are_patterns_and_addresses_too(folder):
    trace = recorded(folder)
    entered = trace.one("goto", "first", "forward", "func_enter", "1", "where", "func==set_name")
    for place in ("set_name", "set_*", '"set_*"', "*et_nam*"):
        trace.ask("goto", "first")
        assert tbdtest.position(trace.one("goto", place)) == tbdtest.position(entered), place
    trace.ask("goto", "first")
    assert tbdtest.position(trace.one("goto", "*" + entered["pc"])) == tbdtest.position(entered)
    found = trace.script(["break *" + entered["pc"], "continue", "continue"])
    assert [answer[-1]["pc"] for answer in found[1:]] == [entered["pc"]] * 2 and found[1] != found[2], found
    for wrong in ("*0x40zz", '"set', "*4o"):
        assert trace.tbdq("goto", wrong).code == 2, wrong
    early = trace.ask("count", "store", "by", "line", "where", "func==set_name")
    assert early and early == trace.ask("count", "store", "where", "func==set_name", "by", "line"), early
    assert b"^~~~" in trace.tbdq("count", "store", "by", "line", "where", "func==nope").err


def test_disas_of_a_function_is_gdbs(folder):
    trace = recorded(folder)
    ours = trace.ask("disas", "main")
    theirs = subprocess.run([tbdtest.need("gdb"), "-nx", "-batch", "-ex", "disassemble /r main", os.path.join(tbdtest.BUILD, "examples/overflow")],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout.decode()
    offsets = [int(n) for n in re.findall(r"<\+(\d+)>:", theirs)]
    assert [int(row["pc"], 16) - int(ours[0]["pc"], 16) for row in ours] == offsets and len(offsets) > 10, (ours, theirs)
    assert ours[0]["function"] == "main" and len(trace.ask("disas", "2")) == 2


def test_lines_have_the_addresses_that_gdb_says(folder):
    trace, path = recorded(folder), os.path.join(tbdtest.BUILD, "examples/overflow")
    numbers = range(1, 42)
    theirs = subprocess.run([tbdtest.need("gdb"), "-nx", "-batch"] + [w for n in numbers for w in ("-ex", "echo @", "-ex", "info line overflow.c:%d" % n)] +
                            ["-ex", "echo @", "-ex", "info address main", path],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True).stdout.decode().split("@")[1:]
    *answers, main, whole = trace.script(["info line overflow.c:%d" % n for n in numbers] + ["symbol main", "line main"], may_fail=True)
    bias = int(main[0]["addr"], 16) - int(re.search(r"0x([0-9a-f]+)", theirs.pop()).group(1), 16)
    with_code, aside = 0, dict(stepping.asides(path))
    for number, wanted, rows in zip(numbers, theirs, answers):
        starts = [int(at, 16) for at in re.findall(r"starts at address 0x([0-9a-f]+)", wanted)]
        # gdb leaves out code that is not marked as a statement.
        assert bool(rows) >= bool(starts) and (starts or all(aside[int(r["start"], 16) - bias] for r in rows or [])), (number, wanted, rows)
        assert all(any(int(r["start"], 16) <= at + bias < int(r["end"], 16) for r in rows) for at in starts), (number, wanted, rows)
        assert all(r["line"] == number and r["source"] == "overflow.c:%d" % number for r in rows or []), rows
        with_code += len(starts)
    assert with_code > 3 and whole[0]["start"] == main[0]["addr"] and whole[0]["symbol"] == "overflow!main", whole
    missing = said(trace, "info line overflow.c:1")
    assert missing.code == 1 and b"the next line that has is " in missing.err, missing
    here, number, address = trace.script(["goto main", "line", "line %d" % whole[0]["line"], "line *%s" % main[0]["addr"]])[1:]
    assert address == whole and whole[0] in number and here[0]["symbol"].startswith("overflow!main"), (here, number, address)


def test_symbols_are_found_by_address_and_names_by_pattern(folder):
    trace = recorded(folder)
    assert said(trace, "info symbol &settings.limit").out.split()[1] == b"overflow!settings+0x10"
    assert said(trace, "info symbol $pc").out == said(trace, "symbol $pc").out != b""
    nowhere = said(trace, "symbol 5")
    assert nowhere.code == 1 and b"no symbol" in nowhere.err and not nowhere.out, nowhere
    row, = [r for r in trace.ask("info", "functions", "^set_n") if r["module"] == "overflow"]
    assert row["declaration"] == "void set_name(const char *)" and row["source"].startswith("overflow.c:") and not row["inlined"], row
    assert row["address"] == trace.one("symbol", "set_name")["addr"]
    assert any(r["function"] == "puts@plt" or "printf" in r["function"] for r in trace.ask("functions", "puts\\|printf")), "without debug information"
    row, = trace.ask("info", "variables", "^settings$")
    assert row["address"] == trace.one("print", "&settings")["data"] and row["variable"] == "settings", row
    assert trace.tbdq("types", "^no such type$").code == 1
    wrong = said(trace, "functions \\(")
    assert wrong.code == 2 and b"Unmatched" in wrong.err and not wrong.out, wrong


def test_names_of_cxx_have_their_scopes(folder):
    trace = tbdtest.record([tbdtest.program("exceptions")], folder)[1]
    functions = {r["function"]: r for r in trace.ask("functions", "^(anonymous namespace)::") if r["module"] == "exceptions"}
    assert {"(anonymous namespace)::dive", "(anonymous namespace)::Line::area"} <= set(functions), sorted(functions)
    assert re.fullmatch(r"static int \(anonymous namespace\)::dive\(int, const \(anonymous namespace\)::Shape &\)", functions["(anonymous namespace)::dive"]["declaration"]), functions
    with open(os.path.join(tbdtest.SOURCE, "test/programs/exceptions.cc"), encoding="utf-8") as f:
        lines = f.read().splitlines()
    assert " dive(" in lines[functions["(anonymous namespace)::dive"]["line"] - 1]
    row, = [r for r in trace.ask("variables", "destroyed") if r["module"] == "exceptions"]
    assert row["type"] == "int" and row["source"] == "exceptions.cc:%d" % (1 + lines.index("int destroyed;")), row
    rows = [r for r in trace.ask("types", "Square$") if r["module"] == "exceptions"]
    assert len(rows) == 1 and rows[0]["bytes"] == 16 and lines[rows[0]["line"] - 1].startswith("struct Square"), rows
    for line in ("calls Shape::area", 'count func_enter where func=="Shape::area"', "calls (anonymous namespace)::Shape::area", "goto Shape::area", "break Shape::area"):
        pure = said(trace, line)
        assert pure.code == 2 and b"'%s' is a virtual function" % (b"(anonymous namespace)::Shape::area" if "(" in line else b"Shape::area") in pure.err, pure
        assert b"overridden by Line::area, Square::area\n" in pure.err, pure
    for line in ("calls Shape::volume", "calls Line::Shape::area", "calls area_"):
        assert b"there is no function" in said(trace, line).err, line


def test_printf_writes_values_as_c_does(folder):
    trace = recorded(folder)
    limit = trace.one("print", "settings.limit")["data"]
    for line in ('printf "%d|%5.1f|%-12.4s|%c %x%%\\t%s\\n", settings.limit, settings.limit / 2.0, settings.name, settings.name[0], 255, &settings.name[3]',):
        wanted = "%d|%5.1f|%-12.4s|%c %x%%\t%s\n" % (limit, limit / 2.0, "sixteen and more", "s", 255, "teen and more:2ns")
        assert said(trace, line).out.decode() == wanted, (said(trace, line), wanted)
        assert trace.one(line)["text"] == wanted
    assert trace.tbdq("printf", "%d of %s\\n", "settings.limit", "settings.name", json_output=False).out.decode() == "%d of %s\n" % (limit, "sixteen and more")
    assert said(trace, 'printf "no end of a line"').out == b"no end of a line"
    for wrong, why in (('printf "%d\\n"', b"more conversions"), ('printf "%d', b"closing quote"), ('printf "%d" 1', b"comma"), ('printf "%q", 1', b"unknown conversion"),
                       ('printf "%d", settings', b"no number"), ('printf "1", 2', b"fewer conversions"), ("printf", b"takes a format"),
                       ('printf "%d", nope', b"nope")):
        result = said(trace, wrong)
        assert result.code == 2 and why in result.err and not result.out, (wrong, result)


def test_a_part_of_a_stack_says_how_much_more_there_is(folder):
    trace = recorded(folder)
    whole = said(trace, "bt").out.decode().splitlines()
    count = len(whole)
    assert count > 2
    assert said(trace, "bt 1").out.decode().splitlines() == whole[:1] + ["(%d more frames follow)" % (count - 1)]
    assert said(trace, "bt -1").out.decode().splitlines() == ["(%d more frames before these)" % (count - 1)] + whole[-1:]
    for line in ("bt -%d" % count, "bt %d" % (count + 5), "bt -20"):
        assert said(trace, line).out.decode().splitlines() == whole, line
    frames = trace.ask("bt")
    starts = [int(frame["pc"], 16) - frame["function_offset"] for frame in frames if frame["function"] == "main"]
    assert starts == [int(trace.one("goto", "*main")["pc"], 16)], (starts, frames)
    assert all("+%#x" % frame["function_offset"] in line for frame, line in zip(frames[1:], whole[1:])), (frames, whole)
    assert [row["frame"] for row in trace.ask("bt", "-2")] == [count - 2, count - 1]
    assert len(trace.tbdq("--csv", "bt", "2", json_output=False).out.splitlines()) == 3
    for wrong in ("bt 0", "bt x", "bt 1 2"):
        assert said(trace, wrong).code == 2, wrong


PASSED = """\
struct pair { int first, second; };
enum colour { RED, GREEN };
typedef int (*changer)(int);
static int twice(int n) { return 2 * n; }
volatile int sink;
extern "C" {
__attribute__((noipa)) int leaf(int n) { sink = n; return n; }
__attribute__((noipa)) int numbers(char c, unsigned char u, short s, long long big, float f, double d, bool truth, colour e)
{
    return leaf((int)(c + u + s + f + d + truth + e) + (int)(big >> 36)) + c + e;
}
__attribute__((noipa)) int pointers(const char *text, int *out, pair *at, pair whole, int &r, pair &other, changer change, void *none)
{
    pair here = { whole.second, r };
    int got = numbers(text[0], 200, -3, 1LL << 40, 1.5f, -2.25, true, GREEN);

    *out = change(got) + at->first + other.second + (none != 0);
    return got + *out + here.first + r;
}
__attribute__((noipa)) int again(int n, const char *text)
{
    int out = 0;
    pair p = { 1, 2 }, q = { 3, 4 };

    return n == 0 ? pointers(text, &out, &p, q, p.second, q, twice, 0) : again(n - 1, text) + 1;
}
}
int main() { return again(3, "ab\\n") == 5; }
"""


def test_frames_show_what_was_passed_as_gdb_does(folder):
    source, path = folder + "/passed.cc", folder + "/passed"
    with open(source, "w", encoding="utf-8") as f:
        f.write(PASSED)

    def tidy(text):
        """Without what differs between two runs."""
        text = re.sub(r"0x[0-9a-f]{6,}", "ADDRESS", text)
        text = re.sub(r"<twice\(int\)>", "<twice>", text)
        # gdb takes a vector register of a caller for what it is now, though the called function may have changed it
        return text if level == "-O0" else re.sub(r"\b([fd])=[^,]+", r"\1=?", text)
    for level in ("-O0", "-O2"):
        subprocess.run(["c++", "-g", level, "-o", path, source], check=True)
        trace = tbdtest.record([path], folder + "/traces" + level)[1]
        trace.one("goto", "first", "forward", "func_enter", 1, "where", "func==leaf")
        theirs = {}
        for line in othertools.gdb_script([path], GDB_STACK, own_mistakes=True):
            found = re.match(r"#(\d+) +(?:0x[0-9a-f]+ in )?([\w:]+) \((.*)\) at ", line)
            theirs[int(found[1])] = (found[2], tidy(re.sub(r"\w+@entry=", "", found[3])))
        frames = trace.ask("bt")
        wanted = [theirs[i] for i in range(len(theirs))]
        ours = [(frame["function"], tidy(", ".join("%s=%s" % (a["name"], a["value"]) for a in frame["arguments"])))
                for frame in frames[:len(wanted)]]
        assert len(wanted) >= 7 and ours == wanted, (level, ours, wanted)
        lines = said(trace, "bt").out.decode().splitlines()
        assert all(" (%s)" % args in tidy(line) for line, (_, args) in zip(lines, wanted)), lines
        assert said(trace, "up 2").out.decode().splitlines() == [lines[2]]
        if level == "-O0":
            full = said(trace, "bt full 3").out.decode()
            assert "        here = {first = 4, second = 2}\n" in full and "(%d more frames follow)" % (len(frames) - 3) in full, full
            got = trace.ask("bt", "full", "3")
            assert [one["name"] for one in got[2]["locals"]] == ["here", "got"] and "locals" not in frames[2], got


def test_help_has_every_word(folder):
    with open(TABLE, encoding="utf-8") as f:
        words = re.findall(r'^    \{ "([\w-]+)",\s', f.read(), re.M)
    text = tbdtest.run([tbdtest.TBDQ, "help", "gdb"], stdin=None).out.decode()
    missing = [w for w in words if w != "info" and not re.search(r"^  (info )?%s " % w, text, re.M)]
    assert len(words) > 30 and not missing, (missing, text)


def test_places_to_list_and_memory_by_expression(folder):
    trace = recorded(folder)
    lines = trace.ask("list", "main", "3")
    assert len(lines) == 3 and any("names[i]" in row["text"] for row in lines) and not any(row["current"] for row in lines), lines
    row = trace.ask("list", "overflow.c:%d" % lines[1]["line"], "1")[0]
    assert row["text"] == lines[1]["text"], row
    assert len(trace.ask("list", "set_name")) == 10
    for place in ("overflow.c:99999", "overflow.c:0", "nothing.c:3", "nothing"):
        result = said(trace, "list " + place)
        assert result.code == 1 and result.err and not result.out, (place, result)
    for words in ("18,20", "overflow.c:18,20"):
        assert [row["line"] for row in trace.ask("list", words)] == [18, 19, 20], words
    here = trace.one("where")["line"]
    assert [row["line"] for row in trace.ask("list", "%d,%d" % (here - 1, here + 1)) if row["current"]] == [here]
    assert trace.ask("list", "set_name,%d" % (lines[0]["line"]))[-1]["line"] == lines[0]["line"]
    assert said(trace, "list 20,18").code == 2 and said(trace, "list nothing.c:1,2").code == 1
    memory = said(trace, "mem &settings sizeof(settings)").out
    assert memory == said(trace, "mem settings.name 20").out and said(trace, "mem (long)&settings.limit 4").out, memory
    assert said(trace, "mem nothing 4").code == 2


def test_what_is_not_there_is_told_where_it_is_not(folder):
    _, trace = tbdtest.record([tbdtest.program("variables_O0_5")], folder)
    last = trace.one("goto", "last")
    for step in ("step", "next", "stepi"):
        answer = trace.tbdq(step, json_output=False)
        assert answer.code == 1 and b"after %s, where the recording ends" % tbdtest.position(last).encode() in answer.out, (step, answer)
    trace.one("goto", "first")
    for step in ("reverse-step", "reverse-stepi"):
        answer = trace.tbdq(step, json_output=False)
        assert answer.code == 1 and b"before 0+0, where the recording begins" in answer.out, (step, answer)
    assert tbdtest.position(trace.one("stepi", 3)) == tbdtest.position(trace.one("goto", "first", "forward", "state", 3))
    for words in (("ptype", "struct nosuch"), ("print", "(struct nosuch *)1"), ("print", "sizeof(struct nosuch)")):
        answer = trace.tbdq(*words, json_output=False)
        assert answer.code == 2 and b"there is no type 'struct nosuch' here" in answer.err and b"~~~~" in answer.err, answer


def test_values_one_behind_the_other(folder):
    trace = recorded(folder)
    assert said(trace, "print settings.name[0]@3").out == b'"six"\n', said(trace, "print settings.name[0]@3")
    assert said(trace, "print /x *(char *)&settings@1 + 1").out == b"{0x73, 0x69}\n"
    row = trace.one("print", "*(&settings.limit)@1")
    assert row["value"] == "{%s}" % trace.one("print", "settings.limit")["value"], row
    assert trace.one("print", "settings.name[0]@3")["ctype"] == "char [3]"
    kept = tbdtest.run([tbdtest.TBDQ, "-t", trace.path], stdin=b"print settings.name[0]@3\nprint $1\nprint $1[2]\n")
    assert kept.out.splitlines() == [b'"six"', b'"six"', b"120 'x'"], kept
    for wrong in ("settings@0", "settings@9999999", "settings@", "5@2", "settings@nothing"):
        result = said(trace, "print " + wrong)
        assert result.code in (1, 2) and result.err and not result.out, (wrong, result)


CRASH = """
volatile int before, after;
int there, *nowhere = WHERE;
int main(void)
{
    before = 1;
    *nowhere = 2;
    after = 3;
    ((void (*)(void))0)();
    return 0;
}
"""


def test_nothing_is_shown_behind_a_crash(folder):
    source, path = folder + "/crash.c", folder + "/crash"
    with open(source, "w", encoding="utf-8") as f:
        f.write(CRASH)
    for where, line in (("0", 7), ("&there", 9)):
        subprocess.run(["cc", "-g", "-O1", "-DWHERE=" + where, "-o", path, source], check=True)
        trace = tbdtest.record([path], folder + "/traces%d" % line)[1]
        event = trace.one("goto", "last")
        last, ahead = tbdtest.position(event), "%d+%d" % (event["time"], event["offset"] + 1)
        result = trace.tbdq("stepi", json_output=False)
        assert result.code == 1 and b"where the recording ends" in result.out, result
        for words in (["goto", ahead], *(["--at", ahead, word] for word in ("where", "regs", "bt", "list"))):
            result = trace.tbdq(*words)
            assert result.code == 2 and b"no such position" in result.err and not result.out, (words, result)
        assert len(trace.tbdq("disas", json_output=False).out.splitlines()) == (1 if line == 7 else 0)
        if line == 7:
            assert trace.one("print", "before")["value"] == "1" and trace.one("where")["line"] == 7
            back = tbdtest.position(trace.one("reverse-stepi"))
            assert tbdtest.position(trace.one("stepi")) == last != back
        else:  # nothing is at address 0; its caller is
            result = trace.tbdq("locals", json_output=False)
            assert result.code == 1 and b"hint: `up`" in result.err, result
            trace.one("up")
            assert trace.one("print", "before")["value"] == "1"


def test_a_recording_that_has_only_begun_is_told(folder):
    child = tbdtest.start(["/bin/sleep", "60"], folder)
    try:
        tbdtest.await_organizer(folder, child)
        end = time.monotonic() + 60
        while not os.path.exists(folder + "/sleep-1/windows") and time.monotonic() < end:
            time.sleep(0.05)
        for words in (["-t", folder + "/sleep-1", "info"], ["-t", "sleep-1", "goto", "last"], ["signals"]):
            result = tbdtest.run([tbdtest.TBDQ, *words], env=tbdtest.clean_env({"TBD_DIR": folder}))
            lines = result.err.decode().splitlines()
            assert result.code == 3 and len(lines) == 1 and "sleep-1: the recording has only begun" in lines[0], (words, result)
    finally:
        child.kill()
        child.wait()
    tbdtest.wait_organizers(folder)
    assert tbdtest.run([tbdtest.TBDQ, "info"], env=tbdtest.clean_env({"TBD_DIR": folder})).code == 0
    os.makedirs(folder + "/empty-1/windows")  # nobody records it
    result = tbdtest.run([tbdtest.TBDQ, "-t", folder + "/empty-1", "info"])
    assert result.code == 3 and b"no such trace" in result.err, result


def test_a_recording_that_never_came_to_a_window_is_told_and_can_be_removed(folder):
    def tbdq(*words):
        result = tbdtest.run([tbdtest.TBDQ, *words], env=tbdtest.clean_env({"TBD_DIR": folder}))
        return result.code, result.out.decode(), result.err.decode()

    child = tbdtest.start(["/bin/sleep", "60"], folder)
    try:
        while not os.path.exists(folder + "/sleep-1/windows") and child.poll() is None:
            time.sleep(0.02)
        code, out, _ = tbdq("ls")
        assert code == 0 and "sleep-1" in out and "has only begun" in out, out
        assert tbdq("rm", "sleep-1")[0] == 2
        assert tbdtest.kill_organizers(folder, child, 0) == 1
        tbdtest.wait_organizers(folder)
    finally:
        child.kill()
        child.communicate()
    code, _, err = tbdq("-t", "sleep-1", "info")
    assert code == 3 and "nothing was recorded: the organizer died" in err, err
    assert tbdtest.record([tbdtest.program("stores")], folder)[0].code == 0
    code, out, _ = tbdq("ls")
    assert code == 0 and "nothing recorded" in out and "stores-1" in out, out
    assert tbdq("rm", "stores-1")[0] == 0 and not os.path.lexists(folder + "/latest")
    assert tbdq("rm", "sleep-1") == (0, "", "") and "sleep-1" not in os.listdir(folder), os.listdir(folder)


def check_selection(trace, rows):
    there = tbdtest.position(trace.one("goto", "first", "forward", "func_enter", 1, "where", "func==work"))
    frames = trace.ask("bt", "threads")
    control = trace.one("thread")
    number = {row["thread"]: row["number"] for row in rows}
    assert control["control"] and control == [row for row in trace.ask("threads") if row.get("control")][0], control
    other = [f["thread"] for f in frames if f["frame"] == 1 and f["thread"] != control["thread"]][0]
    own = [f for f in frames if f["thread"] == other]
    registers = trace.one("regs", "thread", other)
    trace.one("frame", 1)
    chosen = trace.one("thread", number[other])
    assert (chosen["thread"], chosen["number"], chosen["control"], chosen["pc"]) == (other, number[other], False, own[0]["pc"]), chosen
    assert trace.one("thread") == chosen and trace.ask("bt") == own and trace.one("regs") == registers
    assert trace.one("where")["thread"] == other and trace.one("frame") == own[0], "the other thread's frame is not selected"
    assert trace.one("up") == own[1] and trace.one("frame") == own[1] and trace.one("down") == own[0]
    assert tbdtest.number(trace.one("print", "$sp")["value"]) == tbdtest.number(registers["rsp"])
    text = trace.tbdq("thread", json_output=False).out.decode()
    assert text.startswith("thread %d (id %d)  " % (number[other], other)) and "\n#0 " in text, text
    trace.one("thread", control["thread"])
    assert trace.one("regs")["thread"] == control["thread"]
    trace.one("thread", other)
    trace.one("goto", there)
    assert trace.one("thread") == control, "a move ends the selection"
    lines = "thread %d\nbt thread %d\nthread\ngoto %s\nthread\n" % (other, control["thread"], there)
    said_there = tbdtest.run([tbdtest.TBDQ, "-t", trace.path, "--at", there], stdin=lines.encode())
    heads = [line.split()[1] for line in said_there.out.decode().splitlines() if line.startswith("thread ")]
    assert said_there.code == 0 and heads == [str(n) for n in (number[other], number[other], control["number"])], said_there
    for words, why in ((("thread", "999999"), b"no such thread lives"), (("thread", "a"), b"number or id")):
        result = trace.tbdq(*words)
        assert result.code == 2 and why in result.err and not result.out, result


def test_every_thread_s_stack_and_share(folder):
    trace = tbdtest.record([tbdtest.program("threads")], folder)[1]
    rows = trace.ask("threads")
    most = max(int(row["start"]) for row in rows) + 1
    alive = [row["thread"] for row in trace.ask("threads", at=str(most)) if row.get("pc")]
    frames = trace.ask("bt", "threads", at=str(most))
    assert len(alive) > 1 and [f["thread"] for f in frames if f["frame"] == 0] == alive, (alive, frames)
    for tid in alive:
        own = [f for f in frames if f["thread"] == tid]
        assert own == trace.ask("bt", "thread", tid, at=str(most)), (tid, own)
    trace.one("goto", most)
    assert trace.ask("bt", "threads") == frames and len({f["sp"] for f in frames if f["frame"] == 0}) == len(alive), frames
    text = trace.tbdq("--at", str(most), "thread apply all bt", json_output=False)
    assert text.code == 0 and text.out.count(b"\nthread ") + 1 == len(alive), text
    check_selection(trace, rows)
    counts = {row["by"]: row["count"] for row in trace.ask("count", "func_enter", "by", "thread")}
    assert len(counts) == len(rows) and all(
        count == trace.count("func_enter", "thread == " + tid) for tid, count in counts.items()), counts


if __name__ == "__main__":
    tbdtest.main(*[f for n, f in sorted(globals().items()) if n.startswith("test_")])
