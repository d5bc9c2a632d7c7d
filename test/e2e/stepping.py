# SPDX-License-Identifier: MIT
"""Where gdb's stepping commands lead from random moments of a program, and where tbdq's do: the machine of test_steps.py.

gdb runs the program under `record full`, so that every command can be given at every moment, forward and backward.  A moment is the
number of instructions since main() began; tbdq's `all state` gives the position of each.  `record full` does not know AVX and XSAVE:
libc is told to do without, in both runs."""
import bisect
import collections
import itertools
import json
import os
import random
import re
import subprocess

import othertools
import tbdtest

SOURCES = os.path.join(tbdtest.SOURCE, "test", "programs", "steps")
FORWARD = ("stepi", "nexti", "step", "next", "finish", "until")
BACKWARD = ("reverse-stepi", "reverse-nexti", "reverse-step", "reverse-next", "reverse-finish")
OPTIONS = "window=500000"
ENV = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX,-AVX2,-AVX512F,-AVX512VL,-AVX512BW,-XSAVE,-XSAVEC,-ERMS,-FSRM,-SSE4_2,-AVX_Fast_Unaligned_Load", "LD_BIND_NOW": "1"}
FLAGS = ["-g", "-w", "-fno-pie", "-no-pie"]
MORE_FLAGS = {"generators.cc": ["-std=c++20"]}

DIED = "gdb died"
MOST_DEATHS = 40  # in one program

SETTINGS = """
import re
for line in ("set width 0", "set record full insn-number-max unlimited", "set backtrace past-main on", "set print frame-arguments none", "set print symbol off",
             "set host-charset ASCII", "set target-charset ASCII", "set print object off"):
    gdb.execute(line, to_string=True)
def text(symbol, frame):
    try:
        return symbol.value(frame).format_string()
    except gdb.error as error:
        return "error: %%s" %% error
SCALAR = (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_PTR, gdb.TYPE_CODE_ENUM, gdb.TYPE_CODE_BOOL, gdb.TYPE_CODE_CHAR, gdb.TYPE_CODE_FLT)
def variables(frame):
    try:
        block = frame.block()
    except RuntimeError:
        return None
    found = []
    while block is not None:
        found += [[s.name, text(s, frame)] for s in block
                  if (s.is_variable or s.is_argument) and s.type.strip_typedefs().code in SCALAR]
        if block.function is not None:
            return found
        block = block.superblock
    return found
def stack():
    frame, found = gdb.newest_frame(), []
    while frame is not None and (not found or found[-1][0] != "main"):
        if frame.type() != gdb.TAILCALL_FRAME: # not on the stack: gdb's conclusion about what jumped away
            line = frame.find_sal()
            found.append([frame.name(), line.line, frame.type() == gdb.INLINE_FRAME, variables(frame) if len(found) < 4 else None])
        frame = frame.older()
    return found
"""

SCRIPT = SETTINGS + """
def number():
    match = re.search(r"Current instruction number is (\\d+)", gdb.execute("info record", to_string=True))
    return int(match.group(1)) if match else None
def answer(command):
    try:
        said = gdb.execute(command, to_string=True)
    except gdb.error as error:
        return "error: %%s" %% error
    at = number()
    return "end" if "No more reverse-execution history" in said or command.startswith("reverse") and at == 0 else at
def goto(at):
    try:
        gdb.execute("record goto %%d" %% at, to_string=True)
    except gdb.error as error:
        if "Already" not in str(error):
            raise
def begin(at, clean):
    # Where a step has come to the start of an inlined function, gdb shows its caller first; `goto` shows the function.
    goto(clean)
    gdb.execute("stepi", to_string=True)
    goto(at)
gdb.Breakpoint("*%#x", temporary=True)
run()
gdb.execute("record full", to_string=True)
b = gdb.Breakpoint("exit")
go()
b.delete()
for at, clean, command in %r:
    begin(at, clean)
    say(answer(command) if command else [at, value("$pc"), value("$rsp"), stack()])
"""

STACK = SETTINGS + """
gdb.Breakpoint("*%#x", temporary=True)
run()
b = gdb.Breakpoint("*%#x")
b.ignore_count = %d - (value("$pc") == %d)
if %d or value("$pc") != %d:
    go()
say(stack())
"""

MAPPINGS = """
gdb.Breakpoint("*%#x", temporary=True)
run()
say(gdb.execute("info proc mappings", to_string=True))
"""

BLOCKS = """
for pc in %r:
    block, holds = gdb.block_for_pc(pc), True
    while block is not None and block.superblock is not None: # the outermost block is that of all units
        holds = holds and block.start <= pc < block.end
        block = block.superblock
    say([pc, holds])
"""

NATIVE = """
gdb.execute("set backtrace past-main on")
gdb.Breakpoint("*%#x", temporary=True)
run()
stops, left = {}, {}
for number, pc, hit in %r:
    if pc not in stops: # each address once
        stops[pc] = gdb.Breakpoint("*%%#x" %% pc)
        stops[pc].ignore_count = hit - 1 - (value("$pc") == pc)
        left[pc] = (number, hit - (value("$pc") == pc))
def moment():
    pc = value("$pc") if alive() else None
    return pc if pc in stops and stops[pc].hit_count == left[pc][1] else None
while stops and alive():
    if moment() is None:
        go()
    while moment() is not None:
        pc = moment()
        stops.pop(pc).delete()
        try:
            gdb.execute(%r, to_string=True)
        except gdb.error:
            break
        if moment() is None: # else it ran into the next one
            say([left[pc][0], [value("$pc"), value("$rsp")] if alive() else "end"])
"""


class Program:
    """A program, its trace, and the instructions that it executed since main() began."""

    def __init__(self, path, folder):
        self.path, self.name = path, os.path.basename(path)
        os.makedirs(folder, exist_ok=True)
        tbdtest.record(tbdtest.fixed([path]), folder, OPTIONS, env=ENV)
        self.trace = tbdtest.find_trace(folder, path)
        self.env = {**tbdtest.idle_env(folder, OPTIONS), **ENV}
        self.moved = self.misplaced = None
        main = self.trace.one("goto", "first", "forward", "func_enter", 1, "where", "func==main")
        self.main = int(main["pc"], 16)
        found = self.trace.ask("all", "state", "where", "time>=%d" % main["time"])
        self.states = [(tbdtest.position(e), int(e["pc"], 16), e.get("module"), e.get("outer", e.get("function")), e.get("line"), e["text"]) for e in found]
        end = [i for i, state in enumerate(self.states) if state[3] == "exit"]
        del self.states[end[0] if end else len(self.states):]
        # gdb counts each round of a `rep` instruction.
        more = self.rounds([i for i, e in enumerate(found[:len(self.states)]) if e["text"].startswith("rep")])
        self.numbers, number = [], 0
        for i in range(len(self.states)):
            self.numbers.append(number)
            number += more.get(i, 1)
        self.number_of = {state[0]: number for state, number in zip(self.states, self.numbers)}
        self.index_of = {number: i for i, number in enumerate(self.numbers)}

        self.aside = asides(path)
        self.chains = chains(path, {state[1] for state in self.states if state[2] == self.name})
        self.entries = entries(path)
        foreign = [state[2] != self.name for state in self.states]
        self.foreign = [i for i in range(1, len(foreign) - 1) if foreign[i] and foreign[i + 1]] or [1]

    def rounds(self, places):
        """{index: rounds} of `rep` instructions: by what they take from rcx."""
        lines = ["goto %s\nregs" % self.states[i + k][0] for i in places for k in (0, 1)]
        said = tbdtest.run([tbdtest.TBDQ, "-t", self.trace.path, "--json"], stdin="\n".join(lines).encode() + b"\n")
        rcx = [int(json.loads(line)["rcx"], 16) for line in said.out.splitlines() if b'"rcx"' in line]
        assert len(rcx) == 2 * len(places), said
        return {i: max(1, before - after) for i, before, after in zip(places, rcx[::2], rcx[1::2])}

    def clean(self, number):
        """The nearest moment from which `stepi` leads to no inlined function: the way of `record goto` takes its time."""
        index = self.index_of[number]
        at = bisect.bisect(self.foreign, index)
        return self.numbers[min(self.foreign[max(at - 1, 0):at + 1], key=lambda i: abs(i - index))]

    def moments(self, count, seed):
        """Numbers (as gdb counts) of instructions in the program's own code, half of them at the starts of lines that are reached seldom."""
        own = [i for i, state in enumerate(self.states)
               if state[2] == self.name and state[4] is not None and not state[5].startswith("rep") and i > 1]
        chosen = random.Random(seed)
        places = {}
        for i in own:
            places.setdefault(self.states[i][1], []).append(i)
        seldom = [chosen.choice(places[pc]) for pc in chosen.sample(sorted(places), min(count // 2, len(places)))]
        return sorted({self.numbers[i] for i in seldom + chosen.sample(own, min(count - len(seldom), len(own)))})

    def text(self, number):
        if number not in self.index_of:
            return str(number)
        position, pc, _, function, line, _ = self.states[self.index_of[number]]
        return "%d (%s, %#x, %s:%s)" % (number, position, pc, function, line)

    def gdb(self, moments, commands):
        """[[moment, pc, sp, stack, [number where each command leads, "end" of the record, or DIED]]].  gdb 13 ends with an internal error at
        some commands (seen: `until` in a throwing function that -O2 moved away from its caller): another gdb goes on behind them."""
        asks, answers = [(at, self.clean(at), command) for at in moments for command in [None] + list(commands)], []
        for _ in range(MOST_DEATHS):
            answers += othertools.gdb_script([self.path], SCRIPT % (self.main, asks[len(answers):]), env=self.env, own_mistakes=True, timeout=1000)
            if len(answers) == len(asks):
                break
            assert asks[len(answers)][2], "gdb died at moment %s" % self.text(asks[len(answers)][0])
            answers.append(DIED)
        assert len(answers) == len(asks), "gdb died too often: %s" % (asks[len(answers) - 1],)
        width = 1 + len(commands)
        return [answers[i] + [answers[i + 1:i + width]] for i in range(0, len(answers), width)]

    def gdb_natively(self, moments, command):
        """{moment: [pc, rsp] where the command leads, or "end"} in one run without a record.  A moment is a number of hits of its address;
        those that the command before ran into are left out."""
        hits, wanted = collections.Counter(), []
        for i, state in enumerate(self.states):
            hits[state[1]] += 1
            if self.numbers[i] in moments:
                wanted.append((self.numbers[i], state[1], hits[state[1]]))
        said = othertools.gdb_script([self.path], NATIVE % (self.main, wanted, command), env=self.env, own_mistakes=True, timeout=1000)
        return dict(said)

    def is_misplaced(self, pc):
        """Does gdb take the code for that of a block which, as gdb itself says, ends before or begins after it?  It gives a block the ranges
        of its abstract origin, too.  gcc names as such the block of a coroutine's body, for the part of it that is inlined where it begins."""
        if self.misplaced is None:
            own = sorted({state[1] - k for state in self.states if state[2] == self.name for k in (0, 1)})
            said = othertools.gdb_script([self.path], BLOCKS % (own,), env=self.env)
            self.misplaced = {at for at, holds in said if not holds}
        return pc in self.misplaced

    def recorded_pc(self, pc):
        """Where the instruction of a native run is in the recording: a library may lie some pages away, as the lengths of paths decide."""
        if self.moved is None:
            said, = othertools.gdb_script([self.path], MAPPINGS % self.main, env=self.env, own_mistakes=True)
            recorded, self.moved = {}, []
            for module in self.trace.ask("modules"):
                recorded.setdefault(module["module"], int(module["start"], 16))
            first = {}
            for start, end, path in re.findall(r"^ *0x([0-9a-f]+) +0x([0-9a-f]+) .* (/\S+)$", said, re.MULTILINE):
                name = os.path.basename(path)
                first.setdefault(name, int(start, 16))
                self.moved.append((int(start, 16), int(end, 16), recorded.get(name, first[name]) - first[name]))
        return next((pc + by for start, end, by in self.moved if start <= pc < end), pc)

    def gdb_stack_natively(self, at):
        """The stack at the moment as SCRIPT shows it, in a run without a record."""
        pc = self.states[self.index_of[at]][1]
        before = sum(state[1] == pc for state in self.states[:self.index_of[at]])
        said = othertools.gdb_script([self.path], STACK % (self.main, pc, before, pc, before, pc), env=self.env, own_mistakes=True)
        return said[-1]

    def tbdq(self, moments, commands):
        """[(stack, [[number, pc, rsp] of where each command leads, or None])] for each moment, from one process.  The number is None where
        an instruction begins that faults."""
        lines = []
        for at in moments:
            lines += ["goto " + self.states[self.index_of[at]][0], "echo stack", "bt"]
            for command in commands:
                lines += ["goto " + self.states[self.index_of[at]][0], "echo step", "- " + command, "echo where", "where", "regs"]
        result = tbdtest.run([tbdtest.TBDQ, "-t", self.trace.path, "--json", "-j", "1"], stdin="\n".join(lines).encode() + b"\n", timeout=1000)
        assert result.code == 0, result
        found = []
        for part in result.out.decode().split("stack\n")[1:]:
            steps = part.split("step\n")
            frames = [json.loads(line) for line in steps[0].splitlines()[:-1]]
            found.append((frames, [self.leads_to(step) for step in steps[1:]]))
        return found

    def leads_to(self, step):
        said, where = step.split("where\n")
        if not said.strip() or '"found":false' in said:
            return None
        where, regs = [json.loads(line) for line in where.splitlines()[:2]]
        return [self.number_of.get(tbdtest.position(where)), int(where["pc"], 16), int(regs["rsp"], 16)]


def asides(path):
    """Sorted [(address, are there no statements in this row of the line table?)]."""
    text = subprocess.run(["objdump", "--dwarf=decodedline", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout.decode()
    rows = {}
    for line in text.splitlines():
        match = re.match(r"^\S+ +(?:\d+|-) +0x([0-9a-f]+) *(?:\d+)? *(x)?", line)
        if match:
            address = int(match.group(1), 16)
            rows[address] = rows.get(address, True) and not match.group(2)
    return sorted(rows.items())


def chains(path, addresses):
    """{address: [(function, line)] of the copies of inlined functions around it and their function, innermost first}: binutils' answer."""
    said = subprocess.run(["addr2line", "-a", "-i", "-f", "-e", path], input="".join("%#x\n" % a for at in addresses for a in (at, at - 1)).encode(),
                          stdout=subprocess.PIPE, check=True).stdout.decode()
    found = {}
    for part in re.split(r"^0x", said, flags=re.M)[1:]:
        address, *lines = part.splitlines()
        found[int(address, 16)] = [(function, int(re.match(r".*:(\d+|\?)", place).group(1).replace("?", "0")))
                                   for function, place in zip(lines[::2], lines[1::2])]
    return found


def entries(path):
    """The addresses where copies of inlined functions are entered (DW_AT_entry_pc)."""
    text = subprocess.run(["objdump", "--dwarf=info", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout.decode()
    return {int(at, 16) for part in text.split("(DW_TAG_")[1:] if part.startswith("inlined_subroutine)")
            for at in re.findall(r"DW_AT_entry_pc +: 0x([0-9a-f]+)", part)}


def built(name, level, folder, compiler=None):
    source = os.path.join(SOURCES, name)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "%s_%s" % (os.path.basename(name).split(".")[0], level))
    compiler = compiler or ("g++" if name.endswith(".cc") else "gcc")
    subprocess.run([compiler, *FLAGS, *MORE_FLAGS.get(name, []), "-" + level, "-o", path, source], check=True)
    return path


# ---- differences that have a reason ----

def depths(program, index, least):
    """(index, depth) of the states before `index` down to `least`: depth 1 is a function that the one at `index` called, -1 its caller."""
    depth = 0
    for i in range(index - 1, least - 1, -1):
        word = program.states[i][5].split()[0]
        depth += (word == "ret") - (word == "call")
        yield i, depth


def goes_to_call(program, at, number):
    """Is this the call of the function at the moment?  The single-stepped list tells."""
    index = program.index_of[number]
    between = [depth for _, depth in depths(program, program.index_of[at], index + 1)]
    return program.states[index][5].startswith("call") and all(d >= 0 for d in between) and between[-1:] in ([0], [])


def is_last_call(program, at, number):
    """Is this the last call of the function at the moment, which exceptions may lie between?"""
    index, here = program.index_of[number], program.index_of[at]
    entry = program.states[index + 1]
    return program.states[index][5].startswith("call") and program.states[here][3] in (entry[3], entry[3] + ".cold") and \
        all(state[1] != entry[1] for state in program.states[index + 2:here])


def is_aside(program, index):
    at = bisect.bisect(program.aside, (program.states[index][1], True))
    return at != 0 and program.aside[at - 1][1]


def is_in_the_middle(program, index):
    """Is a copy of an inlined function entered here, although the code before belongs to it, too?"""
    pc = program.states[index][1]
    here, before = (program.chains.get(a, [])[::-1] for a in (pc, pc - 1))
    return pc in program.entries and len(here) > 1 and len(before) > 1 and here[0] == before[0] and here[1][0] == before[1][0]


def is_in_same_copy(program, pc, other):
    """Of the same inlined function, called by the same line."""
    here, there = program.chains.get(pc, []), program.chains.get(other, [])
    return len(here) > 1 and len(there) >= len(here) and there[-len(here)][0] == here[0][0] and there[len(there) - len(here) + 1:] == here[1:]


def line_at(program, index, around):
    """The line of the state, and seen from a function with that many copies of inlined functions around: that of the call that it is in."""
    state = program.states[index]
    chain = program.chains.get(state[1], [])
    return chain[-around][1] if around and len(chain) > around and chain[-around][1] else state[4]


def is_beginning(program, at, number, is_over=False):
    """Documented: from the middle of a line to its beginning, from there to the beginning of the line before; from a function's first line to
    its caller.  So no third line lies between, but lines of functions that were called (`is_over`: of inlined ones, too), and code that
    optimization has moved."""
    first, last = program.index_of[number], program.index_of[at]
    if first >= last:
        return False
    around = min(len(program.chains.get(program.states[i][1], [])) for i in (first, last)) if is_over else 0
    lines, lowest = {}, 0
    for i, depth in depths(program, last, first):
        lowest = min(lowest, depth)
        is_entry = program.states[i - 1][5].startswith("call")
        if depth == lowest and not is_aside(program, i) and program.states[i][4] is not None:
            lines.setdefault(depth, []).append((line_at(program, i, around if depth == 0 else 0), is_entry))
    allowed = {(0, program.states[last][4]), (min(lowest, depth), program.states[first][4])}
    if around:
        allowed |= {(0, program.chains[program.states[i][1]][-around][1]) for i in (first, last)}
    for level, found in lines.items():
        allowed |= {(level, line) for line, is_entry in found if is_entry}
    return all((level, line) in allowed for level, found in lines.items() for line, _ in found)


def is_piece_ahead(program, own, there):
    """Is `own` in an inlined function that the line at `there` calls?"""
    chain = program.chains.get(own[1], [])
    return own[3] == there[3] and len(chain) > 1 and chain[-1][1] == there[4]


def after_return(program, at):
    """The state where the function at this moment has returned."""
    depth = 0
    for state, after in zip(program.states[program.index_of[at]:], program.states[program.index_of[at] + 1:]):
        word = state[5].split()[0]
        depth += (word == "call") - (word == "ret")
        if depth < 0:
            return after
    return program.states[-1]


def is_left(program, at, number):
    """Does an exception or longjmp lead to the state?"""
    names = {program.states[i][3] for i in range(program.index_of[at], program.index_of[number])}
    return any("longjmp" in name or name.startswith("_Unwind_") for name in names if name)


def is_landing(program, at):
    """Has an unwinder led here?"""
    return (program.states[program.index_of[at] - 1][3] or "").startswith("_Unwind_")


def is_before_landing(program, at, number, is_over):
    """Is this where the code before the landing pad was: of the line there, and of no other one in between?  `is_over`: in the moment's
    function; else anywhere in the program."""
    here, first = program.index_of[at], program.index_of[number]
    own, between = program.states[first], program.states[first:here]
    if is_over and own[3] != program.states[here][3]:
        return False
    return all(state[4] == own[4] for state in between
               if state[2] == program.name and state[4] is not None and (not is_over or state[3] == own[3]))


def is_whole_thunk(program, number):
    """Is this in a thunk that returns without having gone to its function?"""
    first = program.index_of[number]
    states = itertools.takewhile(lambda state: not state[5].startswith("ret"), program.states[first:])
    name = program.states[first][3] or ""
    return " thunk to " in name and all(state[3] == name for state in states)


def is_first_statement(program, command, at, number):
    """By the single-stepped list and the line table: is this the next statement of another line, for `next` of this function or its callers?"""
    here, rows = program.index_of[at], dict(program.aside)
    around = len(program.chains.get(program.states[here][1], []))

    def line_of(i):
        return program.states[i][3], line_at(program, i, around) if command == "next" else program.states[i][4]
    depth = 0
    for i in range(here + 1, program.index_of[number] + 1):
        word = program.states[i - 1][5].split()[0]
        depth += (word == "call") - (word == "ret")
        _, pc, module, _, line, _ = program.states[i]
        begins = not rows.get(pc, True) if module == program.name else line is not None
        if begins and line_of(i) != line_of(here) and (command == "step" or depth <= 0):
            return program.numbers[i] == number
    return False


def is_right(program, command, at, number):
    """As far as the single-stepped list tells without gdb."""
    if command == "finish":
        return program.states[program.index_of[number]] == after_return(program, at)
    return command in ("step", "next") and is_first_statement(program, command, at, number)


MISPLACED = "gdb takes the code for that of a block which lies elsewhere: it adds the ranges of the block's abstract origin"


def explain(program, command, at, theirs, ours, frames):
    """Why gdb 13 and tbdq differ; None: no reason is known.  `frames`: gdb's, at the moment."""
    if ours in program.index_of and command in FORWARD and is_left(program, at, ours):
        return "gdb loses a function that an exception or longjmp leaves, or goes on from there"
    if ours in program.index_of and command in FORWARD and theirs is None and is_landing(program, at):
        return "gdb loses the frame in which an exception lands, and runs to the end of its record"
    if command == "step" and ours in program.index_of and theirs is None and is_whole_thunk(program, ours):
        return "gdb waits where a thunk's function begins, but the function's code is in the thunk"
    if theirs not in program.index_of or ours not in program.index_of:
        return None
    here, there, own = (program.states[program.index_of[n]] for n in (at, theirs, ours))
    if command == "reverse-finish" and goes_to_call(program, at, ours) and not goes_to_call(program, at, theirs):
        return "gdb takes a call of the same function deeper in the recursion, or code moved out of it for a function"
    if command == "reverse-finish" and is_last_call(program, at, ours) and not there[5].startswith("call"):
        return "gdb loses the frame in code that was moved out of a function, after an exception"
    if command == "reverse-finish" and frames[0][2]:
        return "the inlined function's code is in pieces"
    if command in ("reverse-step", "reverse-next") and \
       (is_beginning(program, at, ours, command == "reverse-next") or (own[3:5] == there[3:5] and ours < theirs)):
        return "gdb takes each row of the line table for a line"
    if command == "until" and there[1] <= here[1]:
        return "gdb goes back, after a line or an inlined function in between"
    if command == "until" and " thunk to " in (there[3] or ""):
        return "gdb stops in a thunk of a function that is called"
    if command == "until" and (here[3] in (own[3], there[3]) or len(frames) > 1 and frames[0][0] == frames[1][0] != own[3]):
        return "gdb takes other frames of a recursive function for the same"
    if there[4] is None and command in ("reverse-step", "reverse-next", "reverse-nexti") and is_landing(program, at) and \
       is_before_landing(program, at, ours, command != "reverse-step"):
        return "gdb stops within the unwinder, which has no lines"
    if there[4] is None and command in FORWARD:
        return "gdb stops in code without lines that a jump led to"
    if (command in FORWARD and ours < theirs or command == "reverse-next" and ours > theirs and is_in_same_copy(program, own[1], there[1])) and \
       is_in_the_middle(program, program.index_of[ours]):
        return "gdb does not know where the inlined function is entered"
    if command in ("step", "next", "until") and ours < theirs and is_piece_ahead(program, own, there):
        return "a piece of an inlined function comes before what gdb takes for its start"
    if command in ("step", "next", "until") and ours > theirs and there[3:5] in (here[3:5], after_return(program, at)[3:5]):
        return "gdb stops at the next piece of the same line, as it leaves out rows with discriminators"
    before = program.states[program.index_of[ours] - 1]
    if command == "finish" and frames[0][2] and is_in_same_copy(program, here[1], there[1]) and \
       not (is_in_same_copy(program, here[1], own[1]) and is_in_same_copy(program, here[1], before[1])):
        return "gdb takes a further piece of the inlined function for another call"
    if command == "step" and ours < theirs and len(frames) > 1 and (frames[1][0] or "sub_").startswith("sub_"):
        return "gdb runs on out of a function that has no name, and enters nothing that is called from there"
    if command == "step" and frames[0][2] and own[3:5] == here[3:5]:
        return "gdb passes over the next copy of an inlined function on the same line"
    if any(program.is_misplaced(state[1]) for state in (here, there, own)) and is_right(program, command, at, ours):
        return MISPLACED
    return None


# ---- stacks and variables ----

def with_misplaced(program, groups, ours):
    """tbdq's frames as gdb has them if it takes code for that of a copy: a frame more, of the function that the copy is in.  The rest must be the same."""
    found, rest = [], list(ours)
    for number, group in enumerate(groups):
        own, rest = rest[:len(group)], rest[len(group):]
        if own and program.is_misplaced(int(group[0]["pc"], 16) - (number != 0)):
            own = own[:-1] + [own[-1][:2] + (True,), None]
        found += own
    return found


def is_stack_with_misplaced(program, groups, ours, theirs):
    wanted = with_misplaced(program, groups, ours)
    return None in wanted and len(wanted) >= len(theirs) and \
        all(a is None or a[1:] == b[1:] and b[0] in (a[0], "") for a, b in zip(wanted, theirs))


def explain_stack(program, frames, ours, theirs):
    """Why gdb shows another stack than tbdq's `frames`; None: no reason is known."""
    groups = [list(group) for _, group in itertools.groupby(frames, lambda f: (f["pc"], f["sp"]))]
    if is_stack_with_misplaced(program, groups, ours, theirs):
        return MISPLACED
    chains = [program.chains.get(int(group[0]["pc"], 16) - (number != 0)) for number, group in enumerate(groups)]
    if len(ours) == len(theirs) and all(a == b or a[1:] == b[1:] and any("ECI" in name for chain in chains for name, _ in chain or [])
                                        for a, b in zip(ours, theirs)):
        return "gdb names an inherited constructor by its base class"
    lines = [line for group, chain in zip(groups, chains)
             for _, line in (chain if chain is not None and len(chain) == len(group) else [("", None)] * len(group))]
    for number, (line, mine) in enumerate(zip(lines, ours)):
        if mine[1] != line and (len(ours) != len(theirs) or mine != theirs[number]) and line is not None:
            return None
    return "binutils has tbdq's frames and lines; gdb leaves out rows with discriminators"


def variables(program, moments, depths):
    """{(moment, frame): [{"name":, "value":}]} of that many frames at each moment, from one process."""
    lines = []
    for at, depth in zip(moments, depths):
        lines.append("goto " + program.states[program.index_of[at]][0])
        for frame in range(depth):
            lines += ["echo frame %d %d" % (at, frame), "- locals %d" % frame]
    result = tbdtest.run([tbdtest.TBDQ, "-t", program.trace.path, "--json", "-j", "1"], stdin="\n".join(lines).encode() + b"\n", timeout=1000)
    assert result.code == 0, result
    found, key = {}, None
    for line in result.out.decode().splitlines():
        if line.startswith("frame "):
            key = tuple(map(int, line.split()[1:]))
            found[key] = []
        elif key is not None and '"name"' in line:
            found[key].append(json.loads(line))
    return found


def stack_of(program, at):
    return program.trace.ask("bt", at=program.states[program.index_of[at]][0])


def entry_of(program, at, out=0):
    """The moment when the function at this moment was entered, or the one that many calls further out."""
    last = program.index_of[at]
    before = [i for i, depth in depths(program, last, 0) if depth < -out]
    return program.numbers[before[0] + 1] if before else at


def entered_with(program, at, frame, register):
    """What the register held when the frame's function was entered, as text."""
    frames = stack_of(program, at)
    out = len({(f["pc"], f["sp"]) for f in frames[:frame + 1]}) - 1
    position = program.states[program.index_of[entry_of(program, at, out)]][0]
    return program.trace.one("regs", at=position)[register]


def is_never_stored(program, at, frame, name):
    """Does the frame's variable hold what was there before the recording began?"""
    position = program.states[program.index_of[at]][0]
    lines = "goto %s\nframe %d\necho place\nprint &%s\n" % (position, frame, name)
    place = tbdtest.run([tbdtest.TBDQ, "-t", program.trace.path, "--json", "-j", "1"], stdin=lines.encode())
    if place.code != 0:  # it is in a register
        return False
    address = json.loads(place.out.decode().split("place\n")[1])["data"]
    address = int(address, 16) if address else 0
    return address and not program.trace.ask("goto", "first", "backward", "store", 1, "where", "addr<=%#x && addr+size>%#x" % (address + 3, address), at=position)


def shown_values(program, at, frame, name):
    """What gdb shows at the moment, in a run without a record."""
    stack = program.gdb_stack_natively(at)
    return [value for other, value in (stack[frame][3] or [] if frame < len(stack) else []) if other == name]


def is_shown(program, at, frame, name, value):
    return value in shown_values(program, at, frame, name)


def is_known_at_entry(program, at, frame, name, value):
    """Does gdb show the value when the frame's function has been entered?  There it is in a register."""
    frames = stack_of(program, at)
    entered = entry_of(program, at, len({(f["pc"], f["sp"]) for f in frames[:frame + 1]}) - 1)
    copies = sum(f["pc"] == frames[frame]["pc"] and f["sp"] == frames[frame]["sp"] for f in frames)  # and the function that they are in
    return any(is_shown(program, entered, number, name, value) for number in range(min(copies, 4)))


def after(program, at):
    return program.numbers[min(program.index_of[at] + 1, len(program.numbers) - 1)]


def is_entry(program, at):
    index = program.index_of[at]
    return program.states[index - 1][5].startswith("call") and program.states[index - 1][3] != program.states[index][3]


def has_empty_range(program, at):
    """Has a location list a range that ends where it begins, here, and after it another one that begins here?"""
    pc = "%016x" % program.states[program.index_of[at]][1]
    text = subprocess.run(["objdump", "--dwarf=loc", program.path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout.decode()
    ranges = re.findall(r"^.*\b([0-9a-f]{16}) ([0-9a-f]{16}) \(DW_OP_", text, re.MULTILINE)
    return any(one == (pc, pc) and other[0] == pc and other[1] != pc for one, other in zip(ranges, ranges[1:]))


def after_opening(program, at):
    """In a function's opening line: the moment after it.  Code without lines may lead to the function, as a trampoline on the stack."""
    first, index = program.index_of[entry_of(program, at)], program.index_of[at]
    function, line = program.states[index][3:5]
    if any(state[4] not in (None, line) for state in program.states[first:index]):
        return None
    behind = next((i for i in range(index, len(program.states)) if program.states[i][4] != line), index)
    return program.numbers[behind] if program.states[behind][3] == function else None


def explain_value(program, at, frame, name, ours, theirs):
    """Why gdb shows another value of a variable; None: no reason is known."""
    whole = re.fullmatch(r"\(\w+ \*\) (0x[0-9a-f]+)", ours[0])
    if whole and any(re.fullmatch("0x[0-9a-f]+", pointer) and 0 < int(pointer, 16) - int(whole.group(1), 16) < 256
                     for pointer in [theirs] + shown_values(program, at, frame, name)):
        return "tbdq shows the whole object that a pointer to a base leads to"
    if theirs == "<optimized out>" and is_known_at_entry(program, at, frame, name, ours[0]):
        return "gdb does not know what a register held at the function's entry"
    if is_shown(program, at, frame, name, ours[0]):
        return "gdb has another value after `record goto` than in a run without a record"
    if is_entry(program, at) and has_empty_range(program, at) and is_shown(program, after(program, at), frame, name, ours[0]):
        return "gdb takes the empty range of a location list at the function's entry, not the one that begins there"
    opened = after_opening(program, at)
    if frame == 0 and opened and is_shown(program, opened, frame, name, ours[0]):
        return "gdb reads where a parameter is to be, before it is stored there"
    if name == "this" and ours == [entered_with(program, at, frame, "rdi")] and theirs != ours[0]:
        return "gdb has another `this` than was passed in rdi"
    if is_never_stored(program, at, frame, name):
        return "the variable has no value yet: it holds what the loader left there"
    place = stack_of(program, at)[frame]
    if theirs == "<optimized out>" and program.is_misplaced(int(place["pc"], 16) - (frame != 0)) and ours == [entered_with(program, at, frame, "rdi")]:
        return MISPLACED
    return None


def is_in_prologue(program, at):
    """gdb shows variables of unoptimized code that are not stored in the frame yet; tbdq shows what is passed."""
    index = program.index_of[at]
    for i in range(index, max(index - 30, 0), -1):
        if program.states[i - 1][5].startswith("call"):
            return program.states[i][4] == program.states[index][4]
    return False
