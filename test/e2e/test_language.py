#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Conditions over variables of the program: they hold exactly where `print` says so, and an error is
one line that points at its place."""
import os
import random
import re

import tbdtest

OWN = "module==\"variables_*\""


def recorded(folder, kind, options="window=500"):
    _, trace = tbdtest.record([tbdtest.program("variables_" + kind)], folder + "/" + kind, options)
    return trace


def printed(trace, places):
    """What print says of an expression at a position, for each of them, as a number; None where there is no value."""
    answers = trace.script([line for expression, position in places for line in ("goto " + position, "print " + expression)], may_fail=True)
    numbers = [re.match(r"(-?\d+)\b", answer[0]["value"]) if answer else None for answer in answers[1::2]]
    return [int(number.group(1)) if number else None for number in numbers]


def agrees(trace, kind, questions, samples=3):
    """Expressions as conditions and as print: the same at some events that match and some that do not.  How many matched."""
    lines = ["all %s where %s and %s%s" % (kind, OWN, where, more) for where, expression in questions for more in ("", " and (%s)" % expression)]
    answers = trace.script(lines)
    chosen, total = [], 0
    for (where, expression), everything, matching in zip(questions, answers[::2], answers[1::2]):
        everything, matching = ([tbdtest.position(e) for e in events] for events in (everything, matching))
        assert everything, (kind, where)
        for positions in (matching, [p for p in everything if p not in set(matching)]):
            chosen += [(expression, position, position in matching)
                       for position in random.Random(3).sample(positions, min(samples, len(positions)))]
        total += len(matching)
    for place, told in zip(chosen, printed(trace, [place[:2] for place in chosen])):
        assert bool(told) == place[2], (kind, place, told)
    return total


def test_conditions_hold_where_print_says_so(folder):
    total = 0
    for kind in ("O0_5", "O2_4"):
        trace = recorded(folder, kind)
        total += agrees(trace, "store", (("func==push", "key == 22"), ("func==push", "item->at.x == 2 * key && key != 0"),
                                         ("func==push", "(*to)->key >= 11"), ("func==sum_list", "at->key > 20 || total < 0"),
                                         ("func==depth", "n % 2 == 1"), ("func==move", "p.x - p.y < -1"),
                                         ("func==mean", "values[i] > 15"), ("func==push", "pushes == 3"),
                                         ("func==push", "packed.five == -7 && packed.color == 5 && !nothing"),
                                         ("func==add", "a + b > 5 || (unsigned char)(byte + 100) == 44"),
                                         ("func==push", "item->name[0] == 'n'"), ("func==sum_list", "hidden < 0 && ratio > 0.2")))
    assert total > 100, total


def test_arguments_are_known_at_a_function_s_first_instruction(folder):
    for kind in ("O0_4", "O2_5"):
        trace = recorded(folder, kind)
        keys = [len(trace.ask("all", "func_enter", "where", "func==push and key==%d" % (n * 11))) for n in range(6)]
        assert keys == [1, 1, 1, 1, 1, 0], (kind, keys)
        assert len(trace.ask("all", "func_enter", "where", "func==mean and values==&table && count==4")) == 1


def test_strings_and_patterns(folder):
    trace = recorded(folder, "O0_5")
    everything = trace.count("store", "func==push")
    for where, count in (("title == \"a title\"", everything), ("title != \"a title\"", 0), ("title == \"a titl\"", 0),
                         ("title =~ \"^a t\"", everything), ("title =~ \"^t\"", 0), ("title[2]=='t' and title+2 == \"title\"", everything)):
        assert trace.count("store", "func==push and " + where) == count, where
    assert trace.count("func_exit", "func==push and item->name == \"node 22\"") == 1
    assert trace.count("func_exit", "func==push and packed.color == GREEN and paint != RED") == 5
    assert trace.count("func_exit", "func==push and item->name =~ \"2+$\"") == 1


def test_lines_and_frames_of_an_event(folder):
    trace = recorded(folder, "O0_5")
    by_line = {}
    for event in trace.ask("all", "store", "where", "func==push"):
        by_line.setdefault(event["line"], []).append(tbdtest.position(event))
    assert len(by_line) >= 5
    for line, wanted in by_line.items():
        for where in ("src=<variables.c,%d>" % line, "func==push and line==%d" % line):
            found = [tbdtest.position(e) for e in trace.ask("all", "store", "where", where)]
            assert found == wanted, (where, found, wanted)
    assert trace.count("store", "frame==0") == 0 and trace.count("store", "func==push and frame-8==rsp") == 5


def test_of_is_typed(folder):
    trace = recorded(folder, "O0_4")
    last = trace.one("goto", "last", "backward", "func_exit", 1, "where", "func==sum_list")
    trace.ask("goto", tbdtest.position(last))
    negative = trace.ask("all", "store", "of", "hidden", "where", "oldval < 0 and newval > 0")
    assert len(negative) == 1, negative
    found = trace.one("goto", "last", "backward", "store", 1, "of", "points[1]", "where", "old.x == 3 and new.x != old.x")
    assert "move" in found["function"], found
    # what is stored is a pointer; a variable that has its type's name
    trace.one("goto", "last", "backward", "func_enter", 1, "where", "func==push")
    trace.one("goto", "current", "forward", "line", 2)
    found = trace.ask("all", "store", "of", "*to", "where", "newval->key == 22")
    assert len(found) == 1 and found == trace.ask("all", "store", "of", "*to", "where", "newval != 0 and newval->next->key == 11"), found
    assert b"77" in trace.tbdq("print", "(packed).small").out


def test_wrong_conditions_are_pointed_at(folder):
    trace = recorded(folder, "O0_5")
    for where, word in (("func==push and item.key==3", "key"), ("nosuch == 3", "nosuch"), ("func==push and item->nosuch==3", "nosuch"),
                        ("func==push and *key == 3", "*key"), ("func==push and key == \"x\"", "== \"x\""),
                        ("func==push and (struct nosuch *)item == 0", "struct nosuch"), ("func==push and item->", None),
                        ("func==push and &key[", None)):
        result = trace.tbdq("goto", "first", "forward", "store", 1, "where", where, json_output=False)
        lines = [line for line in result.err.decode().splitlines() if ": note: " not in line]
        assert result.code == 2 and lines and lines[0].startswith("tbdq: "), (where, result)
        if word:
            assert lines[2].index("^") == lines[1].index(word, lines[1].index("where")), (where, lines)


def test_what_commands_add_is_not_pointed_at(folder):
    """Messages show the line as it was typed, and point at the word in it."""
    trace = recorded(folder, "O0_5")
    for line, word in (("calls nosuch", "nosuch"), ("calls push where nosuch == 3", "nosuch"), ("lines list.c:1:2", "list.c:1:2"),
                       ("lines variables.c where kay == 3", "kay"), ("stores of nosuch", "nosuch"), ("stores of counter where newval = 3", "= 3"),
                       ("stores of first->key where new.nosuch == 3", "new.nosuch"), ("count store of counter where nosuch(", "("),
                       ("count store where func==nowhere by line", "nowhere"), ("count func_enter of counter by line", "counter"),
                       ("goto first forward func_enter where func==push then backward stare 1", "stare"),
                       ("goto first forward func_enter where func==push then backward store 1 where func==nowhere", "nowhere"),
                       ("goto last backward store of nosuch where time == 3 then forward line", "nosuch"), ("trace first last where nosuch = 3", "= 3"),
                       ("first func==push and nosuch = 4", "= 4"), ("last func == nowhere", "nowhere"), ("syscalls where syscall == nowhere", "nowhere")):
        result = trace.tbdq(*line.split(), json_output=False, at=tbdtest.position(trace.one("goto", "last", "backward", "func_exit", "where", "func==sum_list")))
        shown = [text for text in result.err.decode().splitlines() if ": note: " not in text]
        assert result.code == 2 and len(shown) >= 3 and shown[1] == "  " + line, (line, result)
        assert shown[2].index("^") == 2 + line.rindex(word), (line, shown)


def walk(trace, start, *commands):
    """Positions that a row of commands leads to."""
    trace.ask("goto", start)
    return [tbdtest.position(trace.ask(*c.split())[-1]) for c in commands]


def test_steps_go_both_ways(folder):
    trace = recorded(folder, "O0_5")
    main = trace.one("goto", "first", "forward", "func_enter", 1, "where", "func==main")
    lines = [tbdtest.position(e) for e in trace.ask("all", "line", "where", "func==main or func==push")]
    inner = [tbdtest.position(e) for e in trace.ask("all", "line", "where", "func==main")]
    assert len(inner) > 15 and len(lines) > len(inner) + 30
    steps = walk(trace, tbdtest.position(main), *["next"] * 5)
    assert steps == inner[1:6], (steps, inner)
    assert walk(trace, steps[-1], *["reverse-next"] * 4) == steps[3::-1]
    push = trace.ask("all", "func_enter", "where", "func==push")[2]
    inside = walk(trace, tbdtest.position(push), "step", "step", "reverse-step", "finish", "reverse-step")
    assert inside[0] == lines[lines.index(tbdtest.position(push)) + 1] and inside[2] == inside[0], inside
    behind = trace.one("where", at=inside[3])
    call = walk(trace, inside[1], "reverse-finish")[0]
    assert behind["function"] == "main" and trace.one("where", at=call)["text"].startswith("call"), (behind, call)
    assert walk(trace, call, "stepi") == [tbdtest.position(push)]
    exit = trace.ask("calls", "push")[2]["exit"]
    assert walk(trace, exit, "finish") == walk(trace, tbdtest.position(push), "finish") == [inside[3]]
    assert walk(trace, call, "stepi 7", "reverse-stepi 7", "goto current forward state 3", "reverse-stepi 3")[1::2] == [call, call]


def test_then_goes_on_from_what_was_found(folder):
    trace = recorded(folder, "O2_5")
    enter = trace.one("goto", "last", "backward", "store", "of", "hidden", "then", "backward", "func_enter", "where", "func==push")
    pushes = trace.ask("all", "func_enter", "where", "func==push")
    assert enter == pushes[-1]
    assert trace.ask("goto", "first", "forward", "func_enter", "where", "func==push", "then", "forward", "store", "where", "time < 5") == []


def test_signals_are_events(folder):
    _, trace = tbdtest.record([tbdtest.program("sigstack")], folder)
    events = trace.ask("all", "signal")
    assert events and all(e["signal"].startswith("SIG") for e in events), events
    assert trace.count("signal", "signal==%s" % events[0]["signal"]) == len([e for e in events if e["signal"] == events[0]["signal"]])
    handler = trace.one("where", at=tbdtest.position(events[0]))
    assert handler["pc"] == events[0]["pc"], (handler, events[0])


SCRIPT = """# finds the second push and asks there
goto first forward func_exit 2 where func==push
expect "func_exit"
let k = key
mark second
assert key == 11 && pushes == 2
goto last backward func_exit where func==push and key == ${k}
if key == 11
  echo right ${k}
else
  goto 99999999999
end
- goto first forward store 1 where func==main and time < 3
if found
  assert 0
  if 1
    assert 0
  end
end
goto @second
"""


def script(trace, folder, text, expected):
    path = os.path.join(folder, "script.tbdq")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    result = tbdtest.run([tbdtest.TBDQ, "-t", trace.path, "-q", "-f", path], stdin=None)
    assert result.code == expected, result
    same = tbdtest.run([tbdtest.TBDQ, "-t", trace.path, "-q"], stdin=text.encode())
    assert (same.code, same.out) == (result.code, result.out), (same, result)
    return result


def test_scripts(folder):
    trace = recorded(folder, "O0_4")
    result = script(trace, folder, SCRIPT, 0)
    assert b"right 11\n" in result.out and result.out.splitlines()[-1].startswith(tbdtest.position(trace.one("where")).encode()), result
    for line, said in (("assert key == 12", b"assertion failed"), ("expect nothing like that", b"expected"), ("goto nowhere", b"no function called"),
                       ("assert nosuch", b"nosuch"), ("echo ${nosuch}", b"nosuch"), ("bogus", b"bogus"), ("end", b"no if"),
                       ("let = 3", b"let NAME"), ("assert 1 / 0", b"zero"), ("if key ==", b"early"), ("if 1", b"has no end")):
        result = script(trace, folder, SCRIPT + line + "\n", 1)
        assert said in result.err and (b".tbdq:%d: " % (len(SCRIPT.splitlines()) + 1) in result.err or line == "if 1"), (line, result)


def test_words_that_are_variables_too_are_told(folder):
    """A word of the language means that, also where a variable has its name: a note says so, unless it is clear."""
    _, trace = tbdtest.record([tbdtest.program("word_names")], folder)
    for word, kind in (("time", b"the event's"), ("frame", b"the event's"), ("ch", b"the register"), ("r8", b"the register")):
        note = b"tbdq: note: '%s' is %s here; the variable is var(%s)\n" % (word.encode(), kind, word.encode())
        for asked in (("count", "func_enter", "where", "func==look and %s != 1" % word), ("calls", "look", "where", "%s != 1" % word)):
            for _ in range(2): # the second answer may be a kept one
                result = trace.tbdq(*asked, json_output=False)
                assert result.err == note, (asked, result)
        for clear in ("var(%s) == 3" % word, "$%s != 3" % word if kind == b"the register" else "pc != 3"):
            result = trace.tbdq("count", "func_enter", "where", "func==look and %s" % clear, json_output=False)
            assert result.code == 0 and result.err == b"", (clear, result)
        assert trace.tbdq("count", "func_enter", "where", "func==main and %s != 1" % word, json_output=False).err == b"", word
    for function in ("look", "main"): # a global variable
        result = trace.tbdq("count", "func_enter", "where", "func==%s and offset == 7" % function, json_output=False)
        assert b"'offset' is the event's here" in result.err, result
    assert len(trace.ask("all", "func_enter", "where", "func==look and var(size) == 3 and var(ch) == 3")) == 1
    result = trace.tbdq("count", "func_enter", "where", "func==look and size == 3", json_output=False)
    assert result.code == 2 and b"a variable is var(size)" in result.err, result


def test_bookmarks(folder):
    trace = recorded(folder, "O2_4")
    found = trace.one("goto", "last", "backward", "func_enter", 1, "where", "func==push")
    trace.ask("mark", "here", at=tbdtest.position(found))
    assert trace.one("where", at="@here")["pc"] == found["pc"] and trace.one("marks")["name"] == "here"
    assert trace.one("goto", "@here", "backward", "func_exit")["time"] < found["time"]
    assert trace.tbdq("where", at="@nowhere").code == 2 and trace.tbdq("mark", "a b").code == 2


COUNTER = """
#include <string>
namespace shop {
struct base { int kind; std::string name; };
class counter : public base {
    int total = 0; double mean = 0;
public:
    explicit counter(int k) { kind = k; name = k == 1 ? "one" : "a longer name, on the heap"; }
    __attribute__((noinline)) int add(const int &by) { total += by; mean = total / 2.0; return total; }
};
}
int main() { shop::counter a(1), b(2); for (int i = 0; i < 5; i++) { a.add(i); b.add(10 * i); } return 0; }
"""


def test_members_of_the_object_in_a_method(folder):
    source, path = os.path.join(folder, "counter.cc"), os.path.join(folder, "counter")
    with open(source, "w", encoding="utf-8") as file:
        file.write(COUNTER)
    built = tbdtest.run([tbdtest.need("g++"), "-g", "-O0", "-o", path, source])
    assert built.code == 0, built
    _, trace = tbdtest.record([path], os.path.join(folder, "traces"))
    for where, count in (("total == 30 and kind == 2", 1), ("this->total > 0", 8), ("mean > 14.5 and by == 30", 1), ("kind == 1 && by == 4", 1),
                         ("(*this).total + by == 90", 1), ("kind == 3", 0), ("name == \"one\"", 5),
                         ("\"one\" != name and by == 10", 1), ("name == \"on\"", 0), ("name =~ \"heap$\"", 5)):
        found = trace.ask("all", "func_exit", "where", "func==\"*counter3add*\" and " + where)
        assert len(found) == count, (where, found)
    where = "func==\"*counter3add*\" and by == 30 and name != \"one\""  # `by` is in a register
    assert len(trace.ask("all", "func_enter", "where", where)) == 1


VALID = ["goto first forward store 1 where func==push and item->key == 22", "all line where src=<variables.c,113> && pushes > 2",
         "goto last backward store 1 of points[1] where old.x == 3 and new.x != old.x then backward func_enter where func==main",
         "stores of head->at.x where newval > 5", "calls push where key in (3)", "count store of counter where oldval < newval by line",
         "history table[(int)ratio + 2]", "first 'title =~ \"^a.*e$\" && *head->name == 'n''", "trace 365+2 @here where line > 3", "why $rax", "why packed.five",
         "print sizeof(struct node) * (long)&grid[1][2] / 0", "assert counter == 1.5e3 || !nothing", "mem &counter mem[rsp,8]", "goto current forward state 3",
         "mark x", "all func_enter where stack=<**,main,*> or frame - sp == 8 or (unsigned char)arg0 << 70 == 0x1", "next 2", "finish", "list 3"]


def test_any_text_gets_an_answer_or_one_clear_line(folder):
    trace = recorded(folder, "O0_5", "window=5000")
    chance = random.Random(7)
    signs = list("()[]<>{}+-*/%&|^~!=.,;:@#$'\"\\ ") + [" where ", " of ", " then ", " and ", "->", "=~", "\x01", "\xff", "99999999999999999999", "", "-1"]
    for n in range(1500 if tbdtest.LONG else 120):
        text = chance.choice(VALID)
        for _ in range(chance.randrange(4)):
            at = chance.randrange(len(text))
            text = text[:at] + chance.choice(signs) + text[at + chance.randrange(3):]
        result = tbdtest.run([tbdtest.TBDQ, "-t", trace.path, "-q", "--at", "1140", "--", text], stdin=None, timeout=60)
        assert result.code in (0, 1, 2) and (result.code != 2 or result.err.startswith(b"tbdq: ")), (text, result)
        pointer = [line for line in result.err.splitlines() if line.lstrip().startswith(b"^")]
        assert len(pointer) <= 1, (text, result)


if __name__ == "__main__":
    tbdtest.main(*[f for n, f in sorted(globals().items()) if n.startswith("test_")])
