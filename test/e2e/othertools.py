# SPDX-License-Identifier: MIT
"""The answers of gdb, valgrind's lackey and strace about a program: the oracles of the comparison tests.

gdb runs the program with libtbd.so preloaded, but an unknown option makes the library do nothing
(one line on stderr, untraced).  So the environment, the mappings and all addresses are those of the
traced run under `setarch -R`.
"""
import json
import os
import re
import subprocess
import tempfile

import tbdtest

GDB_LIBRARY = os.path.join(tbdtest.BUILD, "libgdb_registers.so")  # see test/tools/gdb_registers.c
_PRELUDE = """
import gdb, json
for line in ("set pagination off", "set confirm off", "set startup-with-shell %(shell)s", "set breakpoint pending on",
             "set print finish off", "unset environment LINES", "unset environment COLUMNS", "unset environment LD_PRELOAD", "set debuginfod enabled off",
             "set can-use-hw-watchpoints 1", "handle all nostop noprint pass"):
    try:
        gdb.execute(line, to_string=True)
    except gdb.error:
        pass
# gdb itself needs these two signals
gdb.execute("handle SIGTRAP stop noprint nopass", to_string=True)
gdb.execute("handle SIGINT stop noprint nopass", to_string=True)
out = open(%(out)r, "w")
def say(value):
    out.write(json.dumps(value) + "\\n")
    out.flush()
def value(text):
    return int(gdb.parse_and_eval(text)) & ((1 << 64) - 1)
def alive():
    return gdb.selected_inferior().pid != 0
def run():
    gdb.execute("run", to_string=True)
def go():
    gdb.execute("continue", to_string=True)
"""


def ptrace_works():
    """Some containers forbid ptrace, which gdb and strace need."""
    if not _works:
        result = subprocess.run(["gdb", "-nx", "-batch", "-ex", "set startup-with-shell off", "-ex", "run", "/bin/true"],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        _works.append(b"exited normally" in result.stdout)
    return _works[0]


_works = []
_watches = []


def need_watchpoints():
    """Some virtual machines take writes to debug registers, and never stop.  (Without -location gdb steps, as the expression has a register.)"""
    if not _watches:
        result = subprocess.run(["gdb", "-nx", "-batch", "-ex", "set startup-with-shell off", "-ex", "starti", "-ex", "watch -location *(long*)($rsp-8)", "-ex", "continue",
                                 "/bin/true"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        _watches.append(b"Hardware watchpoint" in result.stdout and b"Old value" in result.stdout)
    if not _watches[0]:
        raise tbdtest.Skip("no hardware watchpoints here")


def gdb_script(argv, script, env=None, cwd=None, stdin_file=None, timeout=200, own_mistakes=False):
    """Runs `script` (Python, with say/value/alive/run/go) in gdb over the program; returns what it said.
    With `own_mistakes` gdb's pretty printers may fail over values that are not initialised yet."""
    tbdtest.need("gdb")
    if not ptrace_works():
        raise tbdtest.Skip("gdb may not trace here")
    with tempfile.TemporaryDirectory(prefix="tbd-gdb-") as folder:
        out, path = os.path.join(folder, "out"), os.path.join(folder, "script.py")
        # gdb cannot pass an argument with a space without a shell; a shell changes the environment, hence addresses
        shell = "on" if any(c in word for word in argv for c in " '\"$;&|") else "off"
        with open(path, "w") as f:
            f.write(_PRELUDE % {"out": out, "shell": shell})
            for name, text in (env or {}).items():
                f.write("gdb.execute(%r)\n" % ("set environment %s = %s" % (name, text)))
            f.write(script)
        result = subprocess.run(["gdb", "-nx", "-batch", "-x", path, "--args"] + argv, cwd=cwd, env=tbdtest.clean_env({"LD_PRELOAD": GDB_LIBRARY}),
                                stdin=open(stdin_file, "rb") if stdin_file else subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout, check=False)
        if b"hardware" in result.stderr and b"atchpoint" in result.stderr:
            raise tbdtest.Skip("no debug registers: %r" % result.stderr[-200:])
        wrong = (b"Traceback",) if own_mistakes else (b"Python Exception", b"Traceback", b"gdb.error")
        if any(w in result.stderr for w in wrong) or not os.path.exists(out):
            raise AssertionError("gdb: %r" % result.stderr[-800:])
        with open(out) as f:
            return [json.loads(line) for line in f]


def gdb_count_calls(argv, symbol, **how):
    """How often `symbol` was called, counted by a breakpoint on its first instruction."""
    said = gdb_script(argv, """
b = gdb.Breakpoint(%r)
b.ignore_count = 1000000000
run()
say(b.hit_count)
""" % symbol, **how)
    return said[-1]


def gdb_accesses(argv, address, size, env, reads=True):
    """All accesses to `size` bytes at the fixed `address` from main() on: (pc after, value after)."""
    need_watchpoints()
    kind = "gdb.WP_ACCESS" if reads else "gdb.WP_WRITE"
    type_name = {1: "char", 2: "short", 4: "int", 8: "long"}[size]
    return gdb_script(argv, """
gdb.Breakpoint("main", temporary=True)
run()
gdb.Breakpoint("*(unsigned %s *)%#x", gdb.BP_WATCHPOINT, %s)
while True:
    go()
    if not alive():
        break
    say((value("$pc"), value("*(unsigned %s *)%#x")))
""" % (type_name, address, kind, type_name, address), env=env)


REGISTERS = "rax rbx rcx rdx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip".split()


def gdb_at_hits(argv, symbol, hits, script, env):
    """Runs `script` at the given hits (ascending numbers from 1) of the first instruction of `symbol`."""
    body = "".join("    " + line + "\n" for line in script.strip().splitlines())
    return gdb_script(argv, """
b = gdb.Breakpoint("*(char *)&%s")
run()
hit = 1
for n in %r:
    if n > hit:
        b.ignore_count = n - hit - 1
        go()
        hit = n
%s""" % (symbol, sorted(hits), body), env=env)


def gdb_registers_at(argv, symbol, hits, env):
    """Registers (and eflags) at those hits."""
    return gdb_at_hits(argv, symbol, hits, 'say({**{r: value("$" + r) for r in %r}, "eflags": value("$eflags")})' % REGISTERS, env)


def gdb_memory_at(argv, place, ranges, env):
    """Memory (address, bytes) as hexadecimal text when `place` is reached first after main() began."""
    return gdb_script(argv, """
gdb.Breakpoint("main", temporary=True)
run()
gdb.Breakpoint(%r)
go()
for address, size in %r:
    say(bytes(gdb.selected_inferior().read_memory(address, size)).hex())
""" % (place, ranges), env=env)


def _lackey_lines(argv, env):
    """Lackey's trace: (kind, address, size), kind one of I, L, S, M."""
    tbdtest.need("valgrind")
    with tempfile.TemporaryDirectory(prefix="tbd-lackey-") as folder:
        log = os.path.join(folder, "log")
        subprocess.run(["valgrind", "--tool=lackey", "--trace-mem=yes", "--log-file=" + log] + argv, check=False,
                       env=tbdtest.clean_env(env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       timeout=300)
        with open(log) as f:
            for line in f:
                match = re.match(r"(I | [LSM]) +([0-9a-fA-F]+),(\d+)", line)
                if match:
                    yield match.group(1).strip(), int(match.group(2), 16), int(match.group(3))


def lackey_accesses(argv, address, size, env=None):
    """Loads and stores that touch the range, in order: ("L" | "S" | "M", address, size)."""
    return [(kind, at, length) for kind, at, length in _lackey_lines(argv, env)
            if kind != "I" and at < address + size and at + length > address]


def lackey_accesses_of_code(argv, start, end, env=None):
    """Loads and stores made by instructions in [start, end), in order: (pc, "L" | "S" | "M", address, size)."""
    found, pc = [], 0
    for kind, at, length in _lackey_lines(argv, env):
        if kind == "I":
            pc = at
        elif start <= pc < end:
            found.append((pc, kind, at, length))
    return found


def symbol_address(path, name):
    """Address of a symbol in an executable at fixed addresses."""
    text = subprocess.run(["nm", path], stdout=subprocess.PIPE, check=True).stdout.decode()
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[2] == name:
            return int(words[0], 16)
    raise AssertionError("no symbol %s in %s" % (name, path))


def strace_count(argv, call, cwd=None):
    """How many system calls of that name the program makes, and the sum of their results."""
    tbdtest.need("strace", "gdb")
    if not ptrace_works():
        raise tbdtest.Skip("strace may not trace here")
    with tempfile.TemporaryDirectory(prefix="tbd-strace-") as folder:
        log = os.path.join(folder, "log")
        subprocess.run(["strace", "-o", log, "-e", "trace=" + call] + argv, check=False, cwd=cwd, env=tbdtest.clean_env(),
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
        with open(log) as f:
            results = [int(m.group(1)) for m in (re.search(r"= (-?\d+)", line) for line in f if line.startswith(call + "(")) if m]
    return len(results), sum(r for r in results if r > 0)
