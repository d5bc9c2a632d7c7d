#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The calls that probes see: `context` is the value that tbd_context() has with mode=context, `ustack` the same calls as addresses."""
import json
import os
import re
import subprocess

import tbdtest

CALLED = tbdtest.program("called")
LIBRARY = """static volatile int sink;
%s
void call_back(void (*function)(const char *), const char *what) { function(what); sink++; }
"""


def libraries(folder):
    """Two that differ in where the call is, so that each has a value of its own, although the second takes the first one's place."""
    paths = []
    for name, more in (("one", ""), ("two", "int more(void) { return sink + 40000; }")):
        paths.append(os.path.join(folder, "lib%s.so" % name))
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-xc", "-", "-o", paths[-1]], input=LIBRARY % more, text=True, check=True)
    return paths


def lines_of(out):
    return [line.rsplit(" ", 1) for line in out.splitlines()]


def with_contexts(argv, folder):
    """What the program itself says, translated: the truth."""
    result = tbdtest.run(argv, env=tbdtest.trace_env(folder, "mode=context"))
    assert result.code == 0 and not result.err, result
    return lines_of(result.out.decode())


def probed(script, argv, *options):
    result = subprocess.run([tbdtest.TBD, "probe", "-q", *options, script, "--", *argv], capture_output=True, timeout=150, text=True,
                            env=tbdtest.clean_env(), check=False)
    assert result.returncode == 0, result
    return result


def test_context_is_the_program_s_own_value(folder):
    """As a jump and as a trap.  What is not known is not guessed, the hit counts as unknown: too many calls, and with traps alone in
    handlers, whose frames do not say for which signal they are."""
    argv = [CALLED, *libraries(folder)]
    all_of_them = with_contexts(argv, folder)
    assert len(all_of_them) == len({value for _, value in all_of_them}) == 13, all_of_them
    for options, unknown in (((), {"too deep"}), (("--traps",), {"too deep", "handler", "handler elsewhere"})):
        result = probed('uprobe:libtbd*:tbd_context { printf("%016x\\n", context) }', argv, *options)
        values = [line for line in result.stdout.splitlines() if re.fullmatch("[0-9a-f]{16}", line)]
        assert values == [value for what, value in all_of_them if what not in unknown], (options, values, all_of_them)
        assert result.stderr == "tbd probe: at %d hits a value could not be read\n" % len(unknown), result.stderr


def test_context_is_a_key_and_a_condition(folder):
    expected = dict(with_contexts([CALLED], folder))
    result = probed("uprobe:libtbd*:tbd_context { @[context] = count() }", [CALLED], "--json")
    rows = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    counted = {"%016x" % (row["key"][0] & (2 ** 64 - 1)): row["value"] for row in rows}
    assert counted == {value: 1 for what, value in expected.items() if what != "too deep"}, (counted, expected)
    result = probed('uprobe:libtbd*:tbd_context /context == 0x%s/ { @ = count() }' % expected["aligned"], [CALLED])
    assert "\n@: 1\n" in result.stdout, result


def test_each_instruction_has_the_function_s_context(_):
    """In the middle of prologues and epilogues too, in code without frame pointers: one value where there is one caller."""
    for function in ("aligned*", "unknown_size*", "jump_back", "use_signals", "compare", "handle", "main"):
        result = probed("insn:called:%s { @[context] = count() }" % function, [CALLED])
        assert len(re.findall(r"^@\[", result.stdout, re.M)) == (2 if function == "handle" else 1) and not result.stderr, (function, result)


def test_stacks_are_those_of_the_context(_):
    result = probed("uprobe:libtbd*:tbd_context { @[ustack] = count() }", [CALLED])
    stacks = re.findall(r"^@\[\n(.*?)^\]: 1$", result.stdout, re.M | re.S)
    names = [[line.split("!")[-1].split("+")[0].split(".")[0].strip() for line in stack.splitlines()] for stack in stacks]
    assert ["tbd_context", "here", "aligned", "main", "__libc_start_call_main"] in [row[:5] for row in names], names
    assert ["tbd_context", "here", "unknown_size", "main"] in [row[:4] for row in names], names
    assert any(row[:3] == ["tbd_context", "here", "handle"] and "main" in row for row in names), names
    assert any(row[:3] == ["tbd_context", "here", "run_thread"] and "main" not in row for row in names), names
    assert any(row[:3] == ["tbd_context", "here", "compare"] and "main" in row for row in names), names


if __name__ == "__main__":
    tbdtest.main(test_context_is_the_program_s_own_value,
                 test_context_is_a_key_and_a_condition,
                 test_each_instruction_has_the_function_s_context,
                 test_stacks_are_those_of_the_context)
