# SPDX-License-Identifier: MIT
"""The calls of a program's own functions as single steps show them: ptrace(2) runs its code instruction by instruction, without tbd.
Libraries run freely, with all of the program's code replaced by breakpoints until they come back to it.

A function is entered where its first instruction is next.  Its call ends when the stack pointer rises above its return address: by a `ret`
that takes this address, else an exception or longjmp has left the frame."""
import collections
import ctypes
import os
import signal
import subprocess

TRACEME, STEP, CONT, GETREGS, SETREGS = 0, 9, 7, 12, 13
RAX, RIP, RSP = 10, 16, 19  # in struct user_regs_struct
RETURNS = (b"\xc3", b"\xf3\xc3", b"\xf2\xc3")
MOST = 5000000  # instructions

Call = collections.namedtuple("Call", "function sp nesting enter exit left result")

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def ptrace(request, pid, data=None):
    if libc.ptrace(request, pid, None, data) < 0:
        raise OSError(ctypes.get_errno(), "ptrace %d" % request)


class Process:
    """A stopped child process."""

    def __init__(self, path):
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                ptrace(TRACEME, 0)
                os.execve(path, [path], {"LD_BIND_NOW": "1"})
            finally:
                os._exit(127)
        self.status = os.waitpid(self.pid, 0)[1]
        self.regs = (ctypes.c_ulonglong * 27)()
        self.memory = open("/proc/%d/mem" % self.pid, "r+b", buffering=0)

    def go(self, request=STEP):
        """Passes on signals.  False: it has ended."""
        given = os.WSTOPSIG(self.status)
        ptrace(request, self.pid, 0 if given == signal.SIGTRAP else given)
        self.status = os.waitpid(self.pid, 0)[1]
        if not os.WIFSTOPPED(self.status):
            self.memory.close()
            return False
        ptrace(GETREGS, self.pid, ctypes.addressof(self.regs))
        return True

    def bytes_at(self, address, count):
        self.memory.seek(address)
        return self.memory.read(count)

    def write(self, address, code):
        self.memory.seek(address)
        self.memory.write(code)

    def go_to(self, start, count):
        """Runs until an instruction of this code is next.  False: the process has ended.  Signals are passed on."""
        before = self.bytes_at(start, count)
        self.write(start, b"\xcc" * count)
        while self.go(CONT):
            if os.WSTOPSIG(self.status) == signal.SIGTRAP:
                assert start < self.regs[RIP] <= start + count, hex(self.regs[RIP])
                self.regs[RIP] -= 1
                ptrace(SETREGS, self.pid, ctypes.addressof(self.regs))
                self.write(start, before)
                return True
        return False

    def code(self, path):
        """(start, size) of the program's own."""
        with open("/proc/%d/maps" % self.pid) as maps:
            rows = [line.split() for line in maps]
        start, end = [[int(x, 16) for x in row[0].split("-")] for row in rows if "x" in row[1] and row[-1] == os.path.realpath(path)][0]
        return start, end - start

    def returns_next(self):
        code = self.bytes_at(self.regs[RIP], 2)
        return code[:1] in RETURNS or code in RETURNS


def entries(path, functions):
    """{address: function} of a program that is linked at fixed addresses."""
    text = subprocess.run(["nm", "-C", "--defined-only", path], stdout=subprocess.PIPE, check=True).stdout.decode()
    symbols = [line.split(None, 2) for line in text.splitlines() if "[clone" not in line and ".cold" not in line]  # parts of functions
    found = {int(at, 16): name.split("(")[0] for at, kind, name in symbols if kind in "tT" and name.split("(")[0] in functions}
    assert sorted(found.values()) == sorted(functions), (path, found)
    return found


def calls(path, functions):
    """[Call] in the order of their entries; `enter` and `exit` count the program's own instructions; stack pointers count from its."""
    starts = entries(path, functions)
    process = Process(path)
    start, size = process.code(path)
    assert process.go_to(next(at for at, name in starts.items() if name == "main"), 1)
    regs, base, found, open_calls, number = process.regs, process.regs[RSP], [], [], 0
    returning = False
    while True:
        pc, sp = regs[RIP], regs[RSP]
        while open_calls and sp > open_calls[-1][0]:
            place, index = open_calls.pop()
            left = not (returning and sp == place + 8)
            found[index] = found[index]._replace(exit=number, left=left, result=None if left else regs[RAX])
        if pc in starts and (not open_calls or open_calls[-1][0] != sp):
            name = starts[pc]
            nesting = sum(found[index].function == name for _, index in open_calls)
            open_calls.append((sp, len(found)))
            found.append(Call(name, sp - base, nesting, number, None, False, None))
        returning = bool(open_calls) and sp == open_calls[-1][0] and process.returns_next()
        is_own = start <= pc < start + size
        if number >= MOST or not (process.go() if is_own else process.go_to(start, size)):
            break
        number += 1
    assert number < MOST, (path, number)
    return found
