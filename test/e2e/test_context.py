#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Calling context (mode=context): tbd_context() against the stack that is unwound at the same moment, equal values of equal stacks in
every run, and native results."""
import os
import sys

import tbdtest

EXAMPLE = os.path.join(tbdtest.BUILD, "examples", "context")
SCHEMES = ("order", "xor", "sum")
# test/programs whose ways to go on are many: threads, signals, processes, generated code, jumps out of functions
PROGRAMS = ("clones", "dl", "exceptions", "forks", "frames", "generated", "int80", "jumps", "long_jumps", "odd_stack", "recursion",
            "segv_repair", "self_modifying", "sig_bad_frames", "sig_edits", "sig_frame", "sig_storm", "sigstack", "spawns", "thread_cancel",
            "thread_code", "thread_exec", "thread_let_go", "thread_mix", "thread_signals", "unwinding")


def with_context(argv, folder, scheme="order", **how):
    return tbdtest.run(argv, env=tbdtest.trace_env(folder, "mode=context,scheme=" + scheme), **how)


def test_values_are_those_of_the_stacks(folder):
    """After calls, tail calls, longjmp, exceptions, in handlers at any instruction and on their stack, swapcontext, threads, forks."""
    native = tbdtest.run([tbdtest.program("contexts"), "order"])
    names = [line.rsplit(" ", 1) for line in native.out.decode().splitlines()]
    assert native.code == 0 and len(names) == 9 and {compared for _, compared in names} == {"0"}, native
    for scheme in SCHEMES:
        result = with_context([tbdtest.program("contexts"), scheme], folder, scheme)
        assert result.code == 0 and not result.err, result
        assert result.out.decode().splitlines() == [name + " 1" for name, _ in names], (scheme, result)


def test_equal_stacks_have_equal_values(folder):
    """In other runs, at other addresses, with other environments; each stack has a value of its own."""
    for scheme in SCHEMES:
        runs = [with_context([EXAMPLE], folder, scheme), with_context([EXAMPLE], "/tmp" + "/" * 99, scheme)]
        assert runs[0].out == runs[1].out and runs[0].code == 0 and not runs[0].err, runs
        values = [line.split()[0] for line in runs[0].out.decode().splitlines()[:-1]]
        assert len(values) == len(set(values)) == 3 and "[0x0000000000000000]" not in values, values


def test_programs_run_as_natively(folder):
    for name in PROGRAMS:
        argv = [tbdtest.program(name)]
        native, result = tbdtest.run(argv), with_context(argv, folder)
        assert (native.code, native.out) == (result.code, result.out), (name, native, result)
    work = "import json, threading\nt = [threading.Thread(target=lambda: json.loads(json.dumps(list(range(999))))) for _ in range(8)]\n" \
           "[x.start() for x in t]; [x.join() for x in t]; print(sum(range(1000)))"
    argv = [sys.executable, "-c", work]
    tbdtest.same(tbdtest.run(argv), with_context(argv, folder))


def test_wrong_options(folder):
    result = with_context([tbdtest.program("stores")], folder, "product")
    assert result.code == 0 and b"option 'scheme' in TBD_OPTIONS needs order|xor|sum" in result.err, result


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
