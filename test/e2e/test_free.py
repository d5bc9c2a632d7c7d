#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Free run (mode=free): threads at the same time, the kernel's own system calls; native results (test/programs again with --free)."""
import glob
import os
import sys

import run_program
import tbdtest


def same_as_native(argv, folder, **how):
    env = tbdtest.trace_env(folder, "mode=free")
    native, free = tbdtest.run(argv, **how), tbdtest.run(argv, env=env, **how)
    tbdtest.same(native, free)
    assert not os.listdir(folder), os.listdir(folder)
    return free


def test_programs_of_others(folder):
    """A shell with pipes and its children, and an interpreter with threads that load, compile and collect."""
    work = "import threading, json, re, zlib\n" \
           "def f(n):\n" \
           "    out[n] = zlib.crc32(json.dumps([re.sub('a+', str(i), 'caat') for i in range(200)]).encode()) + n\n" \
           "out = {}\n" \
           "threads = [threading.Thread(target=f, args=(n,)) for n in range(12)]\n" \
           "[t.start() for t in threads]; [t.join() for t in threads]; print(sorted(out.items()))\n"
    same_as_native([sys.executable, "-c", work], folder)
    same_as_native(["/bin/sh", "-c", "for i in 1 2 3; do echo $i | cat | sed s/1/x/; done; (exit 7); echo $?; kill -TERM $$"], folder)


def test_every_program(folder):
    if not tbdtest.LONG:
        raise tbdtest.Skip("for scripts/check --long")
    sys.argv.append("--free")
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "programs")
    for source in sorted(glob.glob(root + "/*.c") + glob.glob(root + "/*.cc")):
        name = os.path.splitext(os.path.basename(source))[0]
        try:
            run_program.check(source, tbdtest.program(name), os.path.join(folder, name))
        except tbdtest.Skip as reason:
            print("%s: skipped: %s" % (name, reason))
    same_as_native([tbdtest.program("thread_code"), "500"], folder)


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
