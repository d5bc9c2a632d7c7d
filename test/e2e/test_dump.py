#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Crash dumps (mode=crash) are opened like traces: at the moment of the death they show what gdb shows of a native run that dies there."""
import collections
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import time

import othertools
import tbdtest
from test_page import Page

GDB = """
for signo in ("SIGSEGV", "SIGABRT"):
    gdb.execute("handle %%s stop print" %% signo, to_string=True)
gdb.execute("set backtrace past-main on")
run()
def frames(thread):
    thread.switch()
    frame, found = gdb.newest_frame(), []
    while frame is not None and len(found) < 60:
        line = frame.find_sal()
        found.append([frame.name(), line.line if line.symtab else 0, frame.type() == gdb.SIGTRAMP_FRAME])
        frame = frame.older()
    return found
died = gdb.selected_thread()
say([frames(t) for t in [died] + [t for t in gdb.selected_inferior().threads() if t is not died]])
died.switch()
say({name: gdb.parse_and_eval(name).format_string() for name in %r})
say({"pc": value("$pc"), "rax": value("$rax"), "eflags": value("$eflags")})
"""
VARIABLES = ["list->key", "list->name", "list->next->key", "list->next->next->name", "total", "untouched[4000]", "other_is_ready"]


UNFINISHED = b"unknown: the dump could not be written to its end; `path` has what there is"


def crash(argv, root, options=""):
    """The dump of a program that ends as it does natively."""
    os.makedirs(root, exist_ok=True)
    env = tbdtest.trace_env(root, "mode=crash" + options)
    native, result = tbdtest.run(argv), tbdtest.run(argv, env=env)
    tbdtest.same(native, result)
    assert not result.err, result
    tbdtest.wait_organizers(root)
    return tbdtest.Trace(os.path.join(root, "latest"))


OWN = ("main", "die", "store", "waits", "both", "in_handler", "with_stack_pointer")  # functions of glibc have several names


def own_frames(frames):
    return [(name, line) for name, line, is_signal in frames if name in OWN]


def frames_of(stack):
    return [(frame["function"], frame["line"]) for frame in stack if frame.get("function") in OWN]


def check_against_gdb(how, folder):
    argv = [tbdtest.program("die_state")] + ([how] if how else [])
    dump = crash(tbdtest.fixed(argv), os.path.join(folder, "root" + how))
    threads, variables, registers = othertools.gdb_script(argv, GDB % VARIABLES)
    rows = dump.ask("threads")
    assert not any(key in row for row in rows for key in ("creator", "start", "blocks", "switches")), rows
    assert len(rows) == len(threads), (rows, threads)
    for row, frames in zip(rows, threads):
        stack = dump.ask("bt", "thread", row["thread"])
        wanted = own_frames(frames)
        assert wanted and frames_of(stack) == wanted, (how, frames_of(stack), wanted)
        assert stack[-1]["function"] in ("_start", "clone3", "clone"), stack
    for name, text in variables.items():
        found = dump.one("print", name)
        assert found["value"] == text, (how, name, found, text)
    regs = dump.one("regs")
    if how not in ("abort", "kill"):  # libraries lie elsewhere
        assert (int(regs["rip"], 16), int(regs["rflags"], 16) | 0x10000) == (registers["pc"], registers["eflags"] | 0x10000), (how, regs, registers)


def test_a_dump_shows_what_gdb_shows(folder):
    """Stacks of all threads, variables on heap and stack and in program files, registers."""
    for how in ("", "handler", "jump"):
        check_against_gdb(how, folder)


def test_a_dump_holds_all_that_a_recording_ends_with(folder):
    """Stack and locals of the thread that died, at the same addresses."""
    for name in ("die_segv", "die_fpe", "thread_dies"):
        argv = tbdtest.fixed([tbdtest.program(name)])
        dump = crash(argv, os.path.join(folder, name, "dump"))
        # as long as "mode=crash", so that the stack lies at the same addresses
        _, full = tbdtest.record(argv, os.path.join(folder, name, "full"), "budget=64G")
        full = next(t for t in tbdtest.traces(os.path.join(folder, name, "full")) if os.path.basename(t.path).startswith(name))
        at = tbdtest.position(full.one("goto", "last"))
        for words in (("bt",), ("locals",)):
            assert [{k: v for k, v in row.items() if k in ("function", "line", "name", "value")} for row in dump.ask(*words)] == \
                   [{k: v for k, v in row.items() if k in ("function", "line", "name", "value")} for row in full.ask(*words, at=at)], (name, words)
        first, second = dump.one("info"), full.one("info")
        assert first["end"] == second["end"], (first, second)


def test_stack_pointers_that_lead_nowhere(folder):
    """The registers are as they were, other threads and the end of the stack are there."""
    for how, sp in (("unmapped", 0x123450), ("smashed", None), ("noncanonical", 1 << 63)):
        dump = crash([tbdtest.program("die_state"), how], os.path.join(folder, how))
        regs = dump.one("regs")
        assert sp is None or int(regs["rsp"], 16) == sp, regs
        assert dump.ask("bt")[0]["function"] in ("with_stack_pointer", "main"), how
        other = next(row["thread"] for row in dump.ask("threads") if not row["control"])
        assert "waits" in [frame.get("function") for frame in dump.ask("bt", "thread", other)], how
        assert dump.one("print", "list->next->key")["value"] == "20", how
        assert len(dump.ask("path", 3)) >= 2, how


BARE = """
#include <stdio.h>
static volatile int sum;
__attribute__((noinline)) static void leaf(int n) { sum += n; }
__attribute__((noinline)) static void branch(int n)
{
    for (int i = 0; i < n; i++)
        leaf(i);
}
__attribute__((noinline)) static void dies(volatile int *where) { *where = sum; }
int main(int argc, char **argv)
{
    (void)argv;
    puts("now");
    fflush(stdout);
    branch(7);
    branch(5);
    leaf(argc);
    dies((volatile int *)(long)(argc - 1));
    return 0;
}
"""


def test_without_symbols(folder):
    """A dump of a stripped program has the same code, stacks, calls and counts under names made of addresses."""
    tbdtest.need("cc", "strip", "nm")
    named, bare = (os.path.join(folder, name, "die_bare") for name in ("named", "bare"))
    for path in (named, bare):
        os.makedirs(os.path.dirname(path))
    subprocess.run(["cc", "-O1", "-g", "-no-pie", "-fno-optimize-sibling-calls", "-x", "c", "-", "-o", named], input=BARE.encode(), check=True)
    subprocess.run(["strip", "-o", bare, named], check=True)
    functions = {int(words[0], 16): words[2] for words in map(str.split, subprocess.run(["nm", named], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines())
                 if len(words) == 3 and words[2] in ("leaf", "branch", "dies", "main", "_start")}
    address = {name: at for at, name in functions.items()}
    lines = ["path 90 blocks", "bt", "count func_enter by func", "count func_enter by module", "count block_entry by func"]
    ours = crash([named], os.path.join(folder, "dumps", "named")).script(lines + ["calls leaf", "calls branch", "bt -2", "path 90 insns"], begin=None)
    theirs = crash([bare], os.path.join(folder, "dumps", "bare")).script(
        lines + ["calls sub_%x" % address[name] for name in ("leaf", "branch")] + ["bt -2", "path 90 insns"], begin=None)

    def renamed(name):
        """What a name of the stripped program is called in the other."""
        return re.sub(r"\bsub_([0-9a-f]+)", lambda found: functions.get(int(found[1], 16), found[0]), name or "")

    def of_program(rows, *keys):
        """Only what is in the program and has a name there: the start files have functions that only symbols tell."""
        found = [[renamed(row.get(key)) if isinstance(row.get(key), str) else row.get(key) for key in keys] for row in rows]
        return [row for row in found if any(re.search(r"(^|!)(%s)\b" % "|".join(address), str(value)) for value in row)]

    assert all("sub_%x" % address["leaf"] in json.dumps(theirs[n]) for n in (0, 2, 5, 8)) and "leaf" not in json.dumps(theirs), theirs
    for n, keys in ((0, ("back", "pc", "function")), (1, ("frame", "pc", "function", "function_offset")), (2, ("by", "count")), (4, ("by", "count")),
                    (5, ("position", "exit", "function", "caller")), (6, ("position", "exit", "function", "caller")), (7, ("frame", "pc", "function")),
                    (8, ("back", "pc", "insn", "function"))):
        # Functions of the C library have several names; those of the same address may get another one here.
        assert of_program(ours[n], *keys) == of_program(theirs[n], *keys) != [], (n, ours[n], theirs[n])
    counts = {row["by"]: row["count"] for row in theirs[2]}
    assert counts["die_bare!sub_%x" % address["leaf"]] == 13 and counts["die_bare!sub_%x" % address["branch"]] == 2, counts
    assert len(theirs[5]) == 13 and len(theirs[6]) == 2, theirs[5:7]
    modules = [{row["by"]: row["count"] for row in answer[3]} for answer in (ours, theirs)]
    assert modules[0]["die_bare -> libc.so.6"] == modules[1]["die_bare -> libc.so.6"] and set(modules[0]) == set(modules[1]), modules
    assert modules[1]["die_bare -> die_bare"] >= 13 + 2 + 1, modules


INDIRECT = """
#include <string.h>
static volatile int one = 1;
__attribute__((noinline)) static int add_one(int n)
{
    if (n == 77)
        *(volatile int *)0 = 1;
    return n + 1;
}
__attribute__((noinline)) static int add_two(int n) { return n + 2; }
static int (*choose(void))(int) { return one ? add_one : add_two; }
int add(int) __attribute__((ifunc("choose")));
__attribute__((noinline)) static int under(int n) { return add(n); }
int main(void)
{
    char text[100];
    for (int i = 0; i < 9; i++) {
        memset(text, i + 65, sizeof(text) - 1);
        text[99] = 0;
        one += strlen(text) != 99 || under(i) != i + 1;
    }
    return add(77);
}
"""


def test_indirect_functions(folder):
    """A dump finds by the name of an indirect function the calls that a recording finds: not those of what chooses it, when it is bound."""
    tbdtest.need("cc")
    program = os.path.join(folder, "indirect")
    subprocess.run(["cc", "-O1", "-g", "-fno-builtin", "-x", "c", "-", "-o", program], input=INDIRECT.encode(), check=True)
    for bind in ("", "1"):
        env = {"LD_BIND_NOW": bind} if bind else {}
        full = tbdtest.run([tbdtest.TBD, "record", "--traced", "--dir=" + folder + "/full" + bind, "--", program], env=tbdtest.clean_env(env))
        done = tbdtest.run([tbdtest.TBD, "crash", "--", program], env=tbdtest.clean_env({**env, "TBD_DIR": folder + "/dump" + bind}))
        assert full.code == done.code == -signal.SIGSEGV, (full, done)
        tbdtest.wait_organizers(folder + "/full" + bind)
        tbdtest.wait_organizers(folder + "/dump" + bind)
        lines = ["calls " + name for name in ("add", "memset", "strlen", "indirect!add", "libc.so.6!mem?et", "add_one", "choose")]
        theirs = tbdtest.Trace(os.path.join(folder, "full" + bind, "latest")).script(lines)
        dump = tbdtest.Trace(os.path.join(folder, "dump" + bind, "latest"))
        ours = dump.script(lines + ["goto add", "bt"], begin=None)
        for line, rows, full_rows in zip(lines, ours, theirs):
            assert [row["caller"] for row in rows] == [row["caller"] for row in full_rows], (line, rows, full_rows)
        lengths = [len(rows) for rows in ours[:7]]
        assert lengths == [10, 9, 9, 10, 9, 10, 0], lengths
        assert [row["function"] for row in ours[8][:2]] == ["add_one", "main"], ours[8]


def test_how_much_memory(folder):
    """What a dump does not have is never shown as something else."""
    argv = [tbdtest.program("die_state")]
    for memory, has_heap in (("stacks", False), ("reachable", True), ("all", True)):
        dump = crash(argv, os.path.join(folder, memory), ",memory=" + memory)
        assert dump.one("print", "total")["value"] == "77"
        result = dump.tbdq("print", "list->key")
        assert (b'"10"' in result.out) == has_heap and (b"not known" in result.out + result.err) != has_heap, (memory, result)
        assert dump.one("print", "untouched[9]")["value"] == "0"
        assert dump.ask("bt")[-1]["function"] == "_start"


def test_two_that_crash_at_once(folder):
    argv = [tbdtest.program("die_state"), "two"]
    for n in range(40 if tbdtest.LONG else 8):
        dump = crash(argv, os.path.join(folder, str(n)))
        rows = dump.ask("threads")
        assert len(rows) == 2 and frames_of(dump.ask("bt"))[0][0] == "store", rows
        assert os.listdir(os.path.join(folder, str(n))).count("latest") == 1
        assert len([name for name in os.listdir(os.path.join(folder, str(n))) if name.startswith("die_state")]) == 1


def test_signals_and_ends(folder):
    """A signal from outside is a death, an exit is none."""
    for how, code in (("abort", -signal.SIGABRT), ("kill", -signal.SIGTERM)):
        dump = crash([tbdtest.program("die_state"), how], os.path.join(folder, how))
        assert dump.one("where")["signal"] == signal.Signals(-code).name, how
        assert "die" in [frame.get("function") for frame in dump.ask("bt")], how
    root = os.path.join(folder, "exit")
    os.makedirs(root)
    result = tbdtest.run([tbdtest.program("die_state"), "exit"], env=tbdtest.trace_env(root, "mode=crash"))
    tbdtest.wait_organizers(root)
    assert result.code == 3 and not os.listdir(root), (result, os.listdir(root))


def test_what_a_dump_cannot_answer(folder):
    dump = crash([tbdtest.program("die_segv")], folder)
    for words in ("step", "next", "finish", "reverse-step", "continue", "all store", "stores of bad", "syscalls", "trace 0+0 0+0",
                  "verify", "diverge 0", "raise 0", "lower 0", "first bad==0", "until main", "watch bad"):
        result = dump.tbdq(*words.split(), json_output=False)
        assert result.code == 3 and not result.out, (words, result)
        first, hint = result.err.decode().splitlines()
        assert first == "tbdq: %s: a crash dump has only the state at its end, and what ran last: see `path`" % words.split()[0], first
        assert hint.startswith("hint: "), hint
    for words, what in (("count store", "count takes block_entry, "), ("calls damage where depth==1", "calls takes FUNCTION"), ("lines die_segv.c where 1", "lines takes FILE"),
                        ("goto current forward line 1", "goto takes -N, ")):
        result = dump.tbdq(*words.split(), json_output=False)
        assert result.code == 3 and not result.out, (words, result)
        assert result.err.decode().startswith("tbdq: %s: a crash dump has what ran last, and takes no conditions about that: %s" % (words.split()[0], what)), result
    for words, code in (("goto -99999999", 1), ("goto no_such_function", 1), ("goto -1+60", 1), ("bt -99999999", 1), ("bt -x", 2), ("bt -1 2 3", 2), ("calls nothing", 1)):
        assert dump.tbdq(*words.split(), json_output=False).code == code, words
    assert dump.one("info")["dump"] is True
    assert b"crash dump" in dump.tbdq("info", json_output=False).out


def test_dumps_are_kept_like_traces(folder):
    """`latest` leads to them, `ls` shows and `rm` removes them; they hold nothing that others may read."""
    dump = crash([tbdtest.program("die_segv")], folder)
    env = tbdtest.clean_env({"TBD_DIR": folder})
    assert b"die_segv.c:10" in tbdtest.run([tbdtest.TBDQ, "bt"], env=env).out
    rows = [json.loads(line) for line in tbdtest.run([tbdtest.TBDQ, "--json", "ls"], env=env).out.splitlines()]
    assert [row["trace"] for row in rows] == ["die_segv-1"] and os.stat(dump.path).st_mode & 0o077 == 0, rows
    assert os.stat(os.path.join(dump.path, "crash")).st_mode & 0o077 == 0
    assert tbdtest.run([tbdtest.TBDQ, "rm", "die_segv-1"], env=env).code == 0
    assert not os.path.exists(os.path.join(folder, "die_segv-1"))


def core_stacks(argv, folder, env=None):
    """Functions of the program in the stacks of all threads, by the core file that gdb reads."""
    os.makedirs(folder, exist_ok=True)
    script = "ulimit -c unlimited || exit 77; exec " + shlex.join(argv)
    result = subprocess.run(["sh", "-c", script], env=tbdtest.clean_env(env), cwd=folder, check=False, stdout=subprocess.PIPE, timeout=100)
    cores = [name for name in os.listdir(folder) if name.startswith("core")]
    if result.returncode == 77 or not cores:
        raise tbdtest.Skip("core files do not come into the current folder here")
    said = subprocess.run([tbdtest.need("gdb"), "-nx", "-batch", "-ex", "thread apply all bt", argv[0], cores[0]], cwd=folder, check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=100).stdout.decode()
    return [re.findall(r"(?m)^#\d+ .*?(\w+) \(", stack) for stack in said.split("\nThread ")[1:]]


def test_the_core_file_stays_as_it_is(folder):
    """All threads are where they are natively: the one that dies and those that wait."""
    argv = [tbdtest.program("die_state")]
    native = core_stacks(argv, folder + "/native")
    found = core_stacks(argv, folder + "/crash", env=tbdtest.trace_env(folder + "/root", "mode=crash"))
    assert len(native) == 2 and any("waits" in stack for stack in native), native
    assert found == native, (found, native)


def test_dumps_of_a_program_that_goes_on(folder):
    """`tbd dump PID`, several times; each has all threads, and the program ends as ever, with a dump of its end."""
    process = tbdtest.start([tbdtest.program("die_state"), "later"], folder, "mode=crash")
    assert process.stdout.readline() == b"dying\n"
    for n in (1, 2, 3):
        time.sleep(0.1)
        result = tbdtest.run([tbdtest.TBD, "dump", str(process.pid)])
        assert result.code == 0 and not result.err, result
        # It is there when the command has ended.
        assert tbdtest.Trace(os.path.join(folder, "die_state-%d" % n)).info()["end"] == "detached", n
    assert process.wait(60) == -signal.SIGSEGV
    process.communicate()
    tbdtest.wait_organizers(folder)
    for n in (1, 2, 3, 4):
        dump = tbdtest.Trace(os.path.join(folder, "die_state-%d" % n))
        assert dump.info()["end"] == ("detached" if n < 4 else "signal 11"), (n, dump.info())
        stacks = [[frame.get("function") for frame in dump.ask("bt", "thread", row["thread"])] for row in dump.ask("threads")]
        assert len(stacks) == 2 and any("waits" in stack for stack in stacks) and any("main" in stack for stack in stacks), (n, stacks)
        assert dump.one("print", "list->next->key")["value"] == "20" and dump.tbdq("path", 3).code == 0
        nobody = dump.tbdq("path", 3, "thread", 1)
        assert nobody.code == 2 and not nobody.out and b"no such thread" in nobody.err, nobody
        # Positions of the first thread if none is named, and none has died.
        for words in (("--at", "-2", "print", "$rip"), ("advise", "100")):
            assert dump.tbdq(*words).code == 0, (n, dump.tbdq(*words))
    assert not os.path.exists(os.path.join(folder, "die_state-5"))
    for words in (["dump"], ["dump", "x"], ["dump", str(os.getpid())]):
        assert tbdtest.run([tbdtest.TBD, *words]).code == 2, words


def test_no_request_is_lost_behind_another(folder):
    """The kernel drops a signal while another of its number waits: a dump is made all the same each time, and all others get what they ask."""
    process = tbdtest.start(["cat"], folder, "mode=crash,memory=stacks", stdin=subprocess.PIPE)
    process.stdin.write(b"x")
    process.stdin.flush()
    assert process.stdout.read(1) == b"x"
    for n in range(1, 13):
        others = [subprocess.Popen([tbdtest.TBD, "set", str(process.pid), "ring=%dK" % (256 << n % 2)], stderr=subprocess.PIPE) for _ in range(3)]
        result = tbdtest.run([tbdtest.TBD, "dump", str(process.pid)])
        assert result.code == 0 and not result.err, result
        for other in others:
            assert other.communicate(timeout=60)[1] == b"" and other.returncode == 0, other
    assert process.communicate(timeout=60) == (b"", b"") and process.returncode == 0, process
    tbdtest.wait_organizers(folder)
    assert sorted(name for name in os.listdir(folder) if name.startswith("cat-")) == sorted("cat-%d" % n for n in range(1, 13)), os.listdir(folder)


WAITING_CALLS = ("426", "271")  # io_uring_enter, ppoll


def call_of(pid):
    with open("/proc/%d/syscall" % pid, encoding="ascii") as file:
        return file.read().split()[0]


def test_a_thread_that_waits_with_all_signals_blocked(folder):
    """By a mask of io_uring_enter's own (of ppoll's, where io_uring is refused): it is reached all the same, and a limited wait goes on."""
    for how in ("1", "0"):
        root = os.path.join(folder, how)
        process = tbdtest.start([tbdtest.program("uring_waits"), how], root, "mode=crash,memory=stacks")
        assert process.stdout.readline() == b"waiting\n"
        if how == "1":
            while call_of(process.pid) not in WAITING_CALLS:
                time.sleep(0.01)
            result = tbdtest.run([tbdtest.TBD, "dump", str(process.pid)], timeout=60)
            assert result.code == 0 and not result.err, result
            process.kill()
        out, err = process.communicate(timeout=60)
        assert (out, err, process.returncode) == ((b"", b"", -signal.SIGKILL) if how == "1" else (b"a second has passed\n", b"", 0)), (how, out, err)
        tbdtest.wait_organizers(root)
    functions = [frame.get("function") for frame in tbdtest.Trace(os.path.join(folder, "1", "uring_waits-1")).ask("bt")]
    assert "wait_with" in functions and "main" in functions, functions


def test_facts_of_the_system(folder):
    """As the process sees them itself; each can be left out."""
    argv = ["sh", "-c", "exec 5<%s; read line <&5; ulimit -c 0; kill -ABRT $$" % __file__]
    root = os.path.join(folder, "all")
    env = tbdtest.clean_env({**tbdtest.trace_env(root, "mode=crash"), "MARK_OF_THE_TEST": "a\tb\033[31m"})
    assert tbdtest.run(argv, env=env).code == -signal.SIGABRT
    tbdtest.wait_organizers(root)
    dump = tbdtest.Trace(os.path.join(root, "latest"))
    facts = {fact["name"]: fact["text"] for fact in dump.ask("facts")}
    assert list(facts) == ["command", "environment", "limits", "memory", "maps", "files", "load", "mounts", "processes"], list(facts)
    assert facts["command"].splitlines()[:2] == argv[:2], facts["command"]
    assert "MARK_OF_THE_TEST=a" in facts["environment"] and "LD_PRELOAD" in facts["environment"]
    assert re.search(r"Max core file size +0 ", facts["limits"]) and "VmRSS:" in facts["memory"] and "MemTotal:" in facts["memory"]
    file = next(line for line in facts["files"].splitlines() if os.path.basename(__file__) in line)
    assert int(re.search(r"offset (\d+)", file).group(1)) > 0, file
    assert re.fullmatch(r"[0-9.]+ .*", facts["load"].splitlines()[0]) and " / " in facts["mounts"] and "libc" in facts["maps"]
    own = [line for line in facts["processes"].splitlines() if line.startswith("%d " % os.getpid())]
    assert re.fullmatch(r"%d  parent %d  user %d  [A-Z]  cpu \d+\.\d\d s  memory [1-9]\d* kB  \S.*" % (os.getpid(), os.getppid(), os.geteuid()), own[0]), own
    assert "parent %d " % os.getpid() in facts["processes"] and len(own) == 1, facts["processes"]
    text = dump.tbdq("facts", "environment", json_output=False).out
    assert b"\033" not in text and b"MARK_OF_THE_TEST" in text, text
    assert dump.tbdq("facts", "weather").code == 1
    for options, wanted in (("none", []), ("limits+load", ["limits", "load"])):
        dump = crash([tbdtest.program("die_segv")], os.path.join(folder, options), ",facts=" + options)
        assert [fact["name"] for fact in dump.ask("facts")] == wanted, options
    root = os.path.join(folder, "unknown")
    result = tbdtest.run([tbdtest.program("die_segv")], env=tbdtest.trace_env(root, "mode=crash,facts=load+weather+limits"))
    assert result.err == b"tbd: there is no fact of the system called 'weather': man tbd, --facts\n", result
    tbdtest.wait_organizers(root)
    assert [fact["name"] for fact in tbdtest.Trace(os.path.join(root, "latest")).ask("facts")] == ["limits", "load"]


def test_damaged_facts(folder):
    """Any bytes are printed as text, or end the answer."""
    dump = crash([tbdtest.program("die_segv")], folder)
    path = os.path.join(dump.path, "facts")
    with open(path, "rb") as f:
        good = f.read()
    for bad in (b"", b"\0", b"limits 99999999999999999999\nx", b"limits -1\nx\n", b"limits 70000\n" + b"x" * 70001, b"limits 5\nab", b"a" * 1000,
                b"limits 3\n\0\033[\n", good[:-3], good[7:], good.replace(b" ", b"\0")):
        with open(path, "wb") as f:
            f.write(bad)
        for form in (True, False):
            result = dump.tbdq("facts", json_output=form)
            assert result.code in (0, 1) and b"\033" not in result.out and (not form or [json.loads(line) for line in result.out.splitlines()] is not None), (bad[:50], result)


def test_exits_leave_a_dump_if_asked(folder):
    """`dump=fail`: after a status that is not 0; `dump=exit`: after any."""
    failing, good = [tbdtest.program("die_state"), "exit"], [tbdtest.program("stores")]
    for options, argv, leaves in (("dump=fail", failing, True), ("dump=fail", good, False), ("dump=exit", good, True), ("dump=signal", failing, False)):
        root = os.path.join(folder, options + str(leaves))
        native = tbdtest.run(argv)
        result = tbdtest.run([tbdtest.TBD, "crash", "--" + options, "--", *argv], env=tbdtest.clean_env({"TBD_DIR": root}))
        tbdtest.same(native, result)
        tbdtest.wait_organizers(root)
        assert os.path.exists(os.path.join(root, "latest")) == leaves, (options, argv)
        if not leaves:
            continue
        dump = tbdtest.Trace(os.path.join(root, "latest"))
        assert dump.info()["end"] == "exit %d" % native.code, dump.info()
        assert dump.ask("bt")[-1]["function"] == "_start", dump.ask("bt")
        path = dump.tbdq("path", 2, json_output=False)
        assert path.code == 0 and b"ended the program" in path.out.splitlines()[0], path
    assert "waits" in [frame.get("function") for frame in tbdtest.Trace(os.path.join(folder, "dump=failTrue", "latest")).ask("bt", "thread", 2)]


def test_who_asks_a_program_that_is_killed_hears_it(folder):
    """It does not answer, and then it cannot; nobody has waited for it."""
    process = tbdtest.start([tbdtest.program("thread_spins_forever")], folder, "mode=crash")
    assert process.stdout.readline() == b"spinning\n"
    os.kill(process.pid, signal.SIGSTOP)
    asked = subprocess.Popen([tbdtest.TBD, "dump", str(process.pid)], stderr=subprocess.PIPE)
    pending = 0
    while not pending >> signal.SIGTRAP - 1 & 1:  # the question
        with open("/proc/%d/status" % process.pid, encoding="ascii") as f:
            [pending] = [int(line.split()[1], 16) for line in f if line.startswith("ShdPnd")]
        assert asked.poll() is None
    process.kill()
    _, err = asked.communicate(timeout=15)  # it gives up after 20 s
    assert asked.returncode == 4 and err.decode() == "tbd dump: process %d has ended\n" % process.pid, (asked.returncode, err)
    process.communicate(timeout=60)
    tbdtest.wait_organizers(folder)


MANY_THREADS = """
#include <pthread.h>
#include <stdlib.h>
static pthread_barrier_t all;
static void *wait(void *unused) { pthread_barrier_wait(&all); return unused; }
int main(void)
{
    pthread_t thread;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    pthread_barrier_init(&all, 0, 1102);
    for (int i = 0; i < 1100; i++)
        if (pthread_create(&thread, &small, wait, 0) != 0)
            return 77;
    abort();
}
"""


def test_threads_for_which_there_is_no_ring(folder):
    source, program = os.path.join(folder, "many.c"), os.path.join(folder, "many")
    with open(source, "w", encoding="ascii") as f:
        f.write(MANY_THREADS)
    assert tbdtest.run([tbdtest.need("cc"), "-pthread", "-o", program, source]).code == 0
    result, dump = tbdtest.record([program], os.path.join(folder, "dumps"), "mode=crash,memory=stacks")
    if result.code == 77:
        raise tbdtest.Skip("not as many threads here")
    assert result.code == -signal.SIGABRT, result
    rings = dump.info()["rings"]
    assert len(rings["threads"]) == 1024 and rings["without_ring"] == 77, (len(rings["threads"]), rings["without_ring"])
    assert b"77 more threads had no ring" in dump.tbdq("info", json_output=False).out


def test_who_asks_too_early_waits_for_the_dump(folder):
    """Its program was killed a moment ago: the collector stands still here."""
    env = tbdtest.clean_env({"TBD_DIR": folder})
    process = tbdtest.start([tbdtest.program("thread_spins_forever")], folder, "mode=crash")
    assert process.stdout.readline() == b"spinning\n"
    [collector] = tbdtest.organizers(folder)
    os.kill(collector, signal.SIGSTOP)
    process.kill()
    asked = subprocess.Popen([tbdtest.TBDQ, "info"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(0.3)
    assert asked.poll() is None and not os.listdir(folder), os.listdir(folder)
    process.communicate(timeout=60)
    os.kill(collector, signal.SIGCONT)
    out, err = asked.communicate(timeout=60)
    assert asked.returncode == 0 and b"no signal of its own" in out and not err, (asked.returncode, out, err)


def test_a_killed_program_has_what_ran_last_only(folder):
    """Questions about that are answered, of others that is said; its dump is listed and removed like others."""
    process = tbdtest.kill_spinning(folder)
    env = tbdtest.clean_env({"TBD_DIR": folder})
    name, = set(os.listdir(folder)) - {"latest"}
    for words in (["-t", name], []):  # `latest` leads there
        result = tbdtest.run([tbdtest.TBDQ, *words, "thread"], env=env)
        assert result.code == 3 and b"the program was killed: its dump has what ran last, and what follows from that: see `path`" in result.err.splitlines()[0], result
        assert b"no such trace" not in result.err and b"hint" not in result.err, result
    dump = tbdtest.Trace(os.path.join(folder, name))
    info, path = dump.info(), dump.ask("path", "100000", "blocks")
    assert info["rings_only"] and info["dump"] and info["finished"] and info["end"] == {"type": "end", "pid": process.pid}, info
    threads = {row["thread"]: row for row in info["rings"]["threads"]}
    ran = collections.Counter(row["thread"] for row in path if row.get("thread"))
    assert {thread: row["blocks"] for thread, row in threads.items()} == dict(ran) and len(ran) == 4, (info, ran)
    spinning = sorted(set(ran) - {process.pid})
    # Each of these has gone around its ring; the first thread has not yet waited as often.
    assert all(threads[thread]["lost_older"] for thread in spinning), threads
    text = dump.tbdq("info", json_output=False).out.decode()
    assert all("thread %d: %d blocks; what ran before is lost" % (thread, ran[thread]) in text for thread in spinning), text
    assert "missing    registers, memory" in text and "values     recorded beside the rings" in text and "process %d  no signal of its own" % process.pid in text, text
    last = {row["thread"]: row for row in path if row.get("thread")}
    lines = ["bt thread %d" % spinning[0], "where", "goto -5 thread %d" % spinning[1], "where", "bt", "bt thread %d" % spinning[2],
             "count block_entry by thread", "modules", "threads", "bt threads", "windows", "processes"]
    answers = dump.script(lines, begin=None)
    assert [row["function"] for row in answers[0]] == ["spin"] and answers[0][0]["pc"] == last[spinning[0]]["pc"], answers[0]
    assert answers[1][0]["thread"] == process.pid and answers[1][0]["pc"] == last[process.pid]["pc"], answers[1]
    assert (answers[3][0]["position"], answers[3][0]["thread"]) == ("-5", spinning[1]) and answers[4][0]["function"] == "spin", answers[2:5]
    assert answers[5][0]["pc"] == last[spinning[2]]["pc"], answers[5]
    assert {int(row["by"]): row["count"] for row in answers[6]} == dict(ran), (answers[6], ran)
    assert {"thread_spins_forever", "libc.so.6"} <= {row["module"] for row in answers[7]}, answers[7]
    assert {row["thread"]: (row["blocks"], row["pc"]) for row in answers[8]} == {thread: (ran[thread], last[thread]["pc"]) for thread in ran}, answers[8]
    assert {row["thread"]: row["pc"] for row in answers[9] if row["frame"] == 0} == {thread: row["pc"] for thread, row in last.items()}, answers[9]
    assert not any(answers[10:]), answers[10:]
    assert [dump.tbdq(word).code for word in ("step", "stores", "verify", "thread")] == [3] * 4
    with Page(dump) as page:
        begun = page.ask(begin=True)
        assert begun["dump"], begun
        assert page.ask(lines=["where"], at=[-5, 0])["answers"][0]["objects"][0]["position"] == "-5"
    rows = [json.loads(line) for line in tbdtest.run([tbdtest.TBDQ, "--json", "ls"], env=env).out.splitlines()]
    assert [(row["trace"], row["end"]) for row in rows] == [(name, "killed")], rows
    assert tbdtest.run([tbdtest.TBDQ, "rm", name], env=env).code == 0 and not os.listdir(folder), os.listdir(folder)


def test_a_full_disk(folder):
    """What there is space for is kept, and is readable or refused in one line; the program's end stays as it is."""
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], check=False, stderr=subprocess.PIPE).returncode != 0:
        raise tbdtest.Skip("needs root to make a small disk")
    opened = 0
    try:
        for kilobytes in (8, 24, 48, 64, 96, 160, 400, 4000):
            subprocess.run(["mount", "-o", "remount,size=%dk" % kilobytes, folder], check=True)
            argv = [tbdtest.program("die_state")]
            native, result = tbdtest.run(argv), tbdtest.run(argv, env=tbdtest.trace_env(folder, "mode=crash"))
            assert (native.code, native.out) == (result.code, result.out), result
            said = result.err.decode().splitlines()  # the program waits for its dump: what is wrong is said
            assert len(said) <= 2 and all(" ends early: the trace cannot be written: " in line and line[-1] != " " for line in said), said
            tbdtest.wait_organizers(folder)
            for name in os.listdir(folder):
                if not name.startswith("die_state"):
                    continue
                for words in (["info"], ["bt"], ["path", "3"]):
                    answer = tbdtest.run([tbdtest.TBDQ, "-t", os.path.join(folder, name), *words])
                    assert answer.code in (0, 1, 3) and len(answer.err.splitlines()) <= 3, (kilobytes, words, answer)
                    opened += words == ["bt"] and answer.code == 0
                    if words == ["info"] and answer.code == 0 and said:
                        assert UNFINISHED in answer.out or b"detached: recording stopped: " in answer.out, (kilobytes, answer)
                shutil.rmtree(os.path.join(folder, name))
            for name in (".modules", "latest"):
                path = os.path.join(folder, name)
                shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.path.lexists(path) and os.remove(path)
    finally:
        subprocess.run(["umount", folder], check=True)
    assert opened >= 1, opened


def test_an_unfinished_dump(folder):
    """The disk had space for the first files only."""
    dump = crash([tbdtest.program("die_state")], folder).path
    os.remove(os.path.join(dump, "image"))
    for name in ("index", "blocks"):
        os.truncate(os.path.join(dump, name), 64)
    header = os.path.join(dump, "header")
    os.truncate(header, os.path.getsize(header) - 40)  # CLOSED
    info = tbdtest.run([tbdtest.TBDQ, "-t", dump, "info"])
    assert info.code == 0 and UNFINISHED in info.out, info
    assert tbdtest.run([tbdtest.TBDQ, "-t", dump, "path", "3"]).code == 0
    stack = tbdtest.run([tbdtest.TBDQ, "-t", dump, "bt"])
    assert stack.code == 3 and b"the crash dump is not complete: see `info`, and `path`" in stack.err, stack


def check_part(trace, kilobytes):
    """Registers and stacks are there; of the heap nothing is made up."""
    info = tbdtest.run([tbdtest.TBDQ, "-t", trace, "info"])
    lost = re.search(rb"the disk is full: (\d+) of (\d+) pages of memory are not in this dump", info.out)
    assert info.code == 0 and lost and b"SIGSEGV" in info.out, (kilobytes, info)
    lost, pages = int(lost[1]), int(lost[2])
    assert 50 * 256 <= pages < 50 * 256 + 500 and pages - lost <= kilobytes // 4, (kilobytes, lost, pages)
    dump = tbdtest.Trace(trace)
    stack = dump.ask("bt")
    assert [frame["function"] for frame in stack[:6]] == ["die"] * 5 + ["main"] and stack[-1]["function"] == "_start", (kilobytes, stack)
    for number in range(5):
        assert dump.script(["goto last", "frame %d" % number, "print mine"])[-1][-1]["value"] == str(4715 - number), kilobytes
    assert dump.one("regs")["rip"] == stack[0]["pc"], kilobytes
    assert dump.ask("path", "1")[-1]["function"] == "die_large!die", kilobytes
    # nodes follow each other; how far those are apart that are known says what the image has
    newest = int(dump.one("print", "list")["value"], 16)
    known = 0
    for node in range(0, 50 * 256, 1600):
        answer = tbdtest.run([tbdtest.TBDQ, "-t", trace, "mem", "%#x" % (newest - node * 0x1000), "8"])
        known += answer.code == 0
        assert answer.code == 0 or (b"the trace does not hold this" in answer.err and not answer.out), (kilobytes, node, answer)
    assert 1600 * (known - 1) <= kilobytes // 4, (kilobytes, known)
    return pages - lost


def check_small_disk(folder):
    """Blocks have no space, and copies of the C library neither: stack, rings and variables do."""
    dump = crash([tbdtest.program("die_state")], os.path.join(folder, "small"))
    info = dump.tbdq("info", json_output=False)
    assert info.code == 0 and re.search(rb"the disk is full: copies of [1-4] files are not in this dump", info.out), info
    assert dump.ask("bt") and dump.ask("path", "5"), info
    shutil.rmtree(os.path.join(folder, "small"))


def test_more_memory_than_the_disk_has_space_for(folder):
    """Stacks are kept first, then as much of the rest as fits; memory that is not there is unknown, and the program's end stays as it is."""
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], check=False, stderr=subprocess.PIPE).returncode != 0:
        raise tbdtest.Skip("needs root to make a small disk")
    kept = []
    try:
        for kilobytes in (500, 1500, 4096):
            subprocess.run(["mount", "-o", "remount,size=%dk" % kilobytes, folder], check=True)
            root = os.path.join(folder, str(kilobytes))
            if kilobytes == 500:
                check_small_disk(folder)
            kept.append(check_part(crash([tbdtest.program("die_large")], root).path, kilobytes))
            shutil.rmtree(root)
    finally:
        subprocess.run(["umount", folder], check=True)
    assert kept[0] < kept[1] < kept[2], kept


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
