#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The commands of tbdq as a user types them: keys, positions, statuses, call stacks, errors."""
import json
import os

import tbdtest

EVENT_KEYS = {"time", "offset", "thread", "type", "pc", "module", "function", "text"}


def recorded(folder, name="recursion", options="window=20000"):
    _, trace = tbdtest.record([tbdtest.program(name)], folder, options)
    return trace


def test_info_says_what_the_trace_is(folder):
    trace = recorded(folder)
    info, path = trace.info(), tbdtest.program("recursion")
    text = json.dumps(info)
    assert info["dropped"] == 0 and info["blocks"] > 10000 and path in text, info
    windows = trace.ask("windows")
    assert sum(w["blocks"] for w in windows) == info["blocks"] and len(windows) > 2, windows[:2]
    times = [w["time"] for w in windows]
    assert times[0] == 0 and all(a["time"] + a["blocks"] == b["time"] for a, b in zip(windows, windows[1:]))
    modules = json.dumps(trace.ask("modules"))
    assert "libc.so" in modules and path in modules, modules
    for command in ("info", "windows", "modules"):
        result = trace.tbdq(command, json_output=False)
        assert result.code == 0 and len(result.out.splitlines()) > 1, result


def test_info_says_how_the_program_ended(folder):
    for name, words in (("die_exit", "42"), ("die_segv", "11"), ("die_abort", "6"), ("stores", "0")):
        trace = recorded(folder + "/" + name, name)
        assert words in json.dumps(trace.info()["end"]), trace.info()


def test_events_have_their_keys(folder):
    trace = recorded(folder)
    for kind, more in (("func_enter", {"args"}), ("func_exit", {"retval"}), ("block_entry", set()),
                       ("store", {"addr", "size", "oldval", "newval"}), ("load", {"addr", "size"}), ("syscall", {"syscall", "args", "retval"})):
        event = trace.one("goto", "first", "forward", kind, 3)
        assert EVENT_KEYS | more <= set(event) and event["type"] == kind, (kind, event)
        assert event["pc"].startswith("0x"), event
        text = trace.tbdq("goto", "first", "forward", kind, 3, json_output=False)
        assert text.code == 0 and tbdtest.position(event).encode() in text.out, text


def test_forward_then_backward_comes_back(folder):
    trace = recorded(folder)
    total = trace.count("func_enter", "func==fib", 8361)
    assert total == 8361
    for n in (1, 2, 99, 4000, 8361):
        a = trace.one("goto", "first", "forward", "func_enter", n, "where", "func==fib")
        b = trace.one("goto", "last", "backward", "func_enter", total - n + 1, "where", "func==fib")
        assert tbdtest.position(a) == tbdtest.position(b), (n, a, b)
        if n > 1:
            back = trace.one("goto", tbdtest.position(a), "backward", "func_enter", n - 1, "where", "func==fib")
            first = trace.one("goto", "first", "forward", "func_enter", 1, "where", "func==fib")
            assert tbdtest.position(back) == tbdtest.position(first)
    assert not trace.ask("goto", "first", "forward", "func_enter", 8362, "where", "func==fib")
    assert trace.tbdq("goto", "first", "forward", "func_enter", 8362, "where", "func==fib").code == 1


def test_the_position_is_remembered_and_at_does_not_move_it(folder):
    trace = recorded(folder)
    trace.one("goto", "first", "forward", "func_enter", 10, "where", "func==fib")
    here = trace.one("where")
    trace.one("where", at="5")
    trace.one("regs", at="last")
    assert trace.one("where") == here
    after = trace.one("goto", "current", "forward", "func_enter", 1, "where", "func==fib")
    eleventh = trace.one("goto", "first", "forward", "func_enter", 11, "where", "func==fib")
    assert tbdtest.position(after) == tbdtest.position(eleventh)
    assert tbdtest.position(trace.one("goto", "100+1")) == "100+1"
    assert trace.one("goto", "first")["time"] == 0


def names(stack):
    frames = stack if isinstance(stack, list) else [stack]
    if len(frames) == 1 and "frames" in frames[0]:
        frames = frames[0]["frames"]
    return [f["function"].split("+")[0] for f in frames]


def test_call_stacks(folder):
    trace = recorded(folder)
    deepest = trace.one("goto", "first", "forward", "func_enter", 1, "where", "func==fib and (arg0 & 0xffffffff)==1")
    frames = names(trace.ask("bt", at=tbdtest.position(deepest)))
    assert frames[:18] == ["fib"] * 18 and "main" in frames[18], frames
    event = trace.one("goto", "first", "forward", "func_enter", 7, "where", "stack=<**,is_odd,is_even>")
    assert event["function"].split("+")[0] == "is_even", event
    frames = names(trace.ask("bt", at=tbdtest.position(event)))
    assert frames[:2] == ["is_even", "is_odd"] and frames.count("is_even") == 8, frames
    event = trace.one("goto", "first", "forward", "func_enter", 1, "where", "func==fib and stack=<**,main,*,*,fib>")
    assert (tbdtest.number(event["args"][0]) & 0xffffffff) == 16, event


def test_conditions_with_registers_and_memory(folder):
    trace = recorded(folder, "stores", "window=3000")
    event = trace.one("goto", "first", "forward", "store", 1, "where", "addr==&neighbour and mem[&neighbour,8]==20")
    assert tbdtest.number(event["oldval"]) == 20 and tbdtest.number(event["newval"]) == 22, event
    event = trace.one("goto", "last", "backward", "store", 1, "where", "addr==&neighbour and newval==40 and size==8")
    assert tbdtest.number(event["oldval"]) == 38, event
    event = trace.one("goto", "first", "forward", "func_enter", 1, "where", "func==store_16 and (rdi & 0xffffffff)==77")
    assert tbdtest.number(event["args"][0]) & 0xffffffff == 77, event
    memory = trace.one("mem", "&neighbour", 8, at=tbdtest.position(event))
    assert int.from_bytes(bytes.fromhex(memory["bytes"]), "little") == 16, memory
    assert not trace.ask("goto", "first", "forward", "store", 1, "where", "addr==&neighbour and newval==41")


def test_memory_around_the_stack_pointer_is_the_same_from_a_replay_and_from_events(folder):
    """`mem rsp N` has it from the replay for the registers, `mem ADDRESS N` from what the trace recorded."""
    trace = recorded(folder)
    total = trace.info()["blocks"]
    places, lines = ((-128, 640), (3000, 64), (16384 - 128 - 32, 64)), []
    times = range(total // 40, total, total // 17)
    for time, [regs] in zip(times, trace.at(times, ["regs"])):
        lines.append("goto %d" % time)
        for offset, count in places:
            lines += ["mem rsp%+d %d" % (offset, count), "mem %#x %d" % (tbdtest.number(regs["rsp"]) + offset, count)]
    answers = trace.script(lines, may_fail=True)
    for i in range(0, len(lines), 1 + 2 * len(places)):
        for by_replay, by_events in zip(answers[i + 1::2][:len(places)], answers[i + 2::2]):
            assert by_replay == by_events, (lines[i], by_replay, by_events)
    assert sum(bool(answer) for answer in answers) > len(lines) * 2 // 3, answers


def test_disassembly_at_a_function(folder):
    trace = recorded(folder)
    event = trace.one("goto", "first", "forward", "func_enter", 1, "where", "func==ackermann")
    text = trace.tbdq("disas", at=tbdtest.position(event), json_output=False)
    assert text.code == 0 and event["text"].split()[0].encode() in text.out, text


def test_wrong_questions_get_one_clear_line(folder):
    trace = recorded(folder)
    for words in (["goto", "first", "sideways", "store", "1"], ["goto", "first", "forward", "shop", "1"], ["goto", "first", "forward", "store", "0"],
                  ["goto", "first", "forward", "store", "1", "where", "addr=="], ["goto", "first", "forward", "store", "1", "where", "adr==1"],
                  ["goto", "first", "forward", "store", "1", "where", "(addr==1"], ["goto", "first", "forward", "store", "1", "where", "addr==&no_such_name"],
                  ["mem", "zzz", "8"], ["frobnicate"]):
        result = trace.tbdq(*words, json_output=False)
        assert result.code == 2 and not result.out, (words, result)
        assert result.err.startswith(b"tbdq: ") or result.err.startswith(b"tbd: "), (words, result)
        assert len(result.err.splitlines()) <= 4, (words, result)
    result = tbdtest.run([tbdtest.TBDQ, "-t", folder + "/nothing", "info"])
    assert result.code in (3, 4) and b"nothing" in result.err and len(result.err.splitlines()) <= 2, result


def test_the_latest_trace_is_the_default(folder):
    trace = recorded(folder)
    result = tbdtest.run([tbdtest.TBDQ, "--json", "info"], env={"TBD_DIR": folder})
    assert result.code == 0 and json.loads(result.out) == trace.info(), result


def test_a_trace_that_cannot_be_written_is_readable(folder):
    trace = recorded(folder)
    for where, _, files in os.walk(trace.path):
        for name in files:
            os.chmod(os.path.join(where, name), 0o400)
        os.chmod(where, 0o500)
    assert trace.one("goto", "first", "forward", "func_enter", 1, "where", "func==fib")


def test_window_files_are_standard_lz4_frames(folder):
    trace, sizes = recorded(folder, options="window=20000,count=now"), {}
    for where, _, files in os.walk(os.path.join(trace.path, "windows")):
        for name in files:
            if name.endswith((".trace", ".blocks")):
                result = tbdtest.run([tbdtest.need("lz4"), "-dc", os.path.join(where, name)], stdin=None)
                assert result.code == 0, (name, result)
                sizes[name] = len(result.out)
    entries = sum(size for name, size in sizes.items() if name.endswith(".blocks"))
    assert len(sizes) >= 4 and entries >= trace.info()["blocks"] / 8, sizes


def test_sizes_are_those_of_the_files(folder):
    trace, sizes = recorded(folder, "many_windows", "count=now"), {"toc": 0, "trace": 0, "blocks": 0}
    for where, _, files in os.walk(os.path.join(trace.path, "windows")):
        for name in files:
            sizes[name.rsplit(".", 1)[1]] += os.path.getsize(os.path.join(where, name))
    info = trace.info()
    told = [sum(level[key] for level in info["levels"]) for key in ("toc_bytes", "trace_bytes", "block_bytes")]
    assert told == [sizes["toc"], sizes["trace"], sizes["blocks"]], (told, sizes)
    assert sum(w["stores"] for w in trace.ask("windows")) == info["stores"] > 1000000


def test_record_is_the_same_as_preloading(folder):
    program = tbdtest.program("die_exit")
    result = tbdtest.run([tbdtest.TBD, "record", "--dir", folder, "--window", "1000", "--", program], env={"TBD_DIR": "/nowhere"})
    tbdtest.wait_organizers(folder)
    tbdtest.same(tbdtest.run([program]), result)
    trace = tbdtest.find_trace(folder, program)
    tbdtest.ends_like(trace.info(), result)
    assert trace.info()["window_blocks"] == 1000
    trace.verify()
    for words in (["--help"], ["record", "--help"], ["--version"]):
        result = tbdtest.run([tbdtest.TBD, *words])
        assert result.code == 0 and result.out and not result.err, (words, result)
    for words in ([], ["record"], ["frobnicate"]):
        result = tbdtest.run([tbdtest.TBD, *words])
        assert result.code == 2 and result.err and not result.out, (words, result)


def test_help(folder):
    del folder
    for words in (["--help"], ["help"], ["help", "goto"], ["--version"]):
        result = tbdtest.run([tbdtest.TBDQ, *words], stdin=None)
        assert result.code == 0 and result.out and not result.err, (words, result)
    for command in ("info", "windows", "modules", "goto", "regs", "mem", "bt", "disas", "where", "verify"):
        assert command.encode() in tbdtest.run([tbdtest.TBDQ, "help"], stdin=None).out, command
    for command in ("goto", "bt", "context", "ls"):  # of which one word would be an argument
        asked, wanted = (tbdtest.run([tbdtest.TBDQ, *words], stdin=None) for words in ([command, "--help"], ["help", command]))
        assert asked.code == 0 and asked.out == wanted.out and not asked.err, (command, asked)
    assert tbdtest.run([tbdtest.TBDQ, "goot", "--help"], stdin=None).code == 2


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
