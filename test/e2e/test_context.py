#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Calling context (mode=context): tbd_context() against the stack that is unwound at the same moment, equal values of equal stacks in
every run, and native results."""
import glob
import json
import os
import re
import struct
import subprocess
import sys

import tbdtest
import test_rows

EXAMPLE = os.path.join(tbdtest.BUILD, "examples", "context")
SCHEMES = ("order", "xor", "sum")
# test/programs whose ways to go on are many: threads, signals, processes, generated code, jumps out of functions
PROGRAMS = ("bad_targets", "clones", "dl", "exceptions", "forks", "frames", "generated", "int80", "jumps", "long_jumps", "odd_stack", "recursion",
            "segv_repair", "self_modifying", "sig_bad_frames", "sig_edits", "sig_frame", "sig_storm", "sigstack", "spawns", "thread_cancel",
            "thread_code", "thread_exec", "thread_let_go", "thread_mix", "thread_signals", "unwinding")
NORMAL = ("bad_targets", "exceptions", "forks", "jumps", "sig_edits", "sigstack", "thread_mix")  # of these


def with_context(argv, folder, scheme="order", **how):
    return tbdtest.run(argv, env=tbdtest.trace_env(folder, "mode=context,scheme=" + scheme), **how)


def compiled(folder, name, options, text):
    """The path of the program, which has a build id."""
    binary = os.path.join(folder, name)
    with open(binary + ".c", "w", encoding="utf-8") as file:
        file.write(text)
    subprocess.run(["cc", *options, "-Wl,--build-id", "-I", os.path.join(tbdtest.SOURCE, "include"), binary + ".c", "-o", binary], check=True)
    return binary


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
    for name in PROGRAMS if tbdtest.LONG else NORMAL:
        argv = [tbdtest.program(name)]
        native, result = tbdtest.run(argv), with_context(argv, folder)
        assert (native.code, native.out) == (result.code, result.out), (name, native, result)
    work = "import json, threading\nt = [threading.Thread(target=lambda: json.loads(json.dumps(list(range(999))))) for _ in range(8)]\n" \
           "[x.start() for x in t]; [x.join() for x in t]; print(sum(range(1000)))"
    argv = [sys.executable, "-c", work]
    tbdtest.same(tbdtest.run(argv), with_context(argv, folder))


def crash_of(argv, root, mode):
    """The dump of the program's death."""
    result = tbdtest.run(tbdtest.fixed(argv), env=tbdtest.trace_env(root, mode))
    assert result.code < 0 or result.code >= 128, result
    tbdtest.wait_organizers(root)
    return tbdtest.Trace(os.path.join(root, "latest"))


def test_contexts_beside_crash_traces(folder):
    """The values are those that stacks have, and that they have alone; stacks and what ran are those of a crash trace alone."""
    both = tbdtest.trace_env(folder, "mode=crash,context,scheme=order")
    names = [line.rsplit(" ", 1)[0] for line in tbdtest.run([tbdtest.program("contexts"), "order"]).out.decode().splitlines()]
    result = tbdtest.run([tbdtest.program("contexts"), "order"], env=both)
    assert result.code == 0 and not result.err and result.out.decode().splitlines() == [name + " 1" for name in names], result
    alone = with_context([EXAMPLE], folder)
    tbdtest.same(alone, tbdtest.run([EXAMPLE], env=both))
    modes = ("mode=crash,wait=no", "mode=crash,context")  # of one length, so that stacks lie at the same addresses
    crash, dump = (crash_of([tbdtest.program("die_state"), "handler"], os.path.join(folder, "state" + mode), mode) for mode in modes)
    for rows in zip(crash.ask("threads"), dump.ask("threads"), strict=True):
        stacks = [[(frame.get("function"), frame["pc"]) for frame in trace.ask("bt", "thread", row["thread"])]
                  for trace, row in zip((crash, dump), rows)]
        assert len(stacks[0]) >= 3 and stacks[0] == stacks[1], stacks
    crash, dump = (crash_of([tbdtest.program("die_segv")], os.path.join(folder, "segv" + mode), mode) for mode in modes)
    ran = [[(step["function"], step["pc"]) for step in trace.ask("path", 500)[1:]] for trace in (crash, dump)]
    assert len(ran[0]) > 100 and ran[0] == ran[1], [step for step in zip(*ran) if step[0] != step[1]][:3]


def test_dumps_have_contexts(folder):
    """Of each thread the value that tbd_context(), called from the same place, has returned."""
    binary = compiled(folder, "dies", ["-O1", "-g", "-pthread"], """#include <pthread.h>
#include <stdio.h>
#include <tbd/tbd.h>
typedef unsigned long step(void);
static volatile int is_ready, *volatile nowhere;
static unsigned long dies(void) { return *nowhere; }
static unsigned long spins(void) { is_ready = 1; for (;;) ; }
__attribute__((noinline)) static unsigned long calls(step *f) { unsigned long v = f(); __asm__ volatile("" : "+r"(v)); return v; }
static void both(step *last)
{
    step *volatile steps[] = { tbd_context, last };

    for (volatile int i = 0; i < 2; i++) {
        unsigned long v = calls(steps[i]);

        printf("0x%lx\\n", v);
        fflush(stdout);
    }
}
static void *thread(void *p) { both(spins); return p; }
int main(void)
{
    pthread_t id;

    pthread_create(&id, NULL, thread, NULL);
    while (!is_ready)
        ;
    both(dies);
    return 0;
}
""")
    for scheme in SCHEMES:
        root = os.path.join(folder, scheme)
        result = tbdtest.run([binary], env=tbdtest.trace_env(root, "mode=crash,context,scheme=" + scheme))
        tbdtest.wait_organizers(root)
        other, own = result.out.decode().split()
        rows = tbdtest.Trace(os.path.join(root, "latest")).ask("threads")
        assert [row["context"] for row in rows] == [own, other] and other != own, (scheme, rows, result)
        dump = tbdtest.Trace(os.path.join(root, "latest"))
        decoded = dump.ask("context")
        for row in decoded:
            test_rows.check_object("context", test_rows.documented()["context"], row)
        for row in rows:  # what is on the stack above the function itself
            calls = [frame["function"] for frame in dump.ask("bt", "thread", row["thread"]) if not frame["inlined"]][1:]
            mine = [other for other in decoded if other["thread"] == row["thread"] and other["stack"] == 1]
            assert names(mine) == calls and {other["value"] for other in mine} == {row["context"]} and mine[0]["threads"] == 1, (row, mine, calls)
            alone = dump.ask("context", row["context"])
            assert names([other for other in alone if other["stack"] == 1]) == calls, (alone, calls)
        if scheme == "order":
            assert dump.script(["context"]) == [decoded]  # the trace is open
    root = os.path.join(folder, "none")
    tbdtest.run([binary], env=tbdtest.trace_env(root, "mode=crash"))
    tbdtest.wait_organizers(root)
    dump = tbdtest.Trace(os.path.join(root, "latest"))
    assert all("context" not in row for row in dump.ask("threads"))
    result = dump.tbdq("context")
    assert result.code == 1 and b"the dump has no calling contexts" in result.err, result
    root = os.path.join(folder, "recorded")
    result = tbdtest.record([tbdtest.program("recursion")], root)[1].tbdq("context", "0x1")
    assert result.code == 2 and b"this trace is no crash dump that names it" in result.err, result
    result = tbdtest.run([tbdtest.TBDQ, "context", "0x1"], env=tbdtest.clean_env({"TBD_DIR": folder + "/nothing"}))
    assert result.code == 2 and b"--program is needed" in result.err, result


# ---- tbdq context ----

def values_of_example(folder, scheme):
    out = with_context([EXAMPLE], folder, scheme).out.decode()
    return [line.strip("[").split("]")[0].split()[-1] for line in out.splitlines()]


def decode(value, program, *words):
    result = tbdtest.run([tbdtest.TBDQ, "--json", "context", value, "--program", program, *words])
    rows = [json.loads(line) for line in result.out.splitlines()]
    for row in rows:
        test_rows.check_object("context", test_rows.documented()["context"], row)
    return result, rows


def names(rows):
    return [row["function"].split("!")[1] for row in rows for _ in range(row["times"])]


def test_values_are_decoded(folder):
    """Each is one stack from the program's start, in all schemes; without symbols the same places."""
    expected = [["log_line", "take", "ship", "main"], ["log_line", "take", "build", "main"], ["log_line", "take", "main"], ["lock", "main"]]
    stripped = os.path.join(folder, "context")
    subprocess.run(["strip", "-o", stripped, EXAMPLE], check=True)
    for scheme in SCHEMES:
        for value, functions in list(zip(values_of_example(folder, scheme), expected))[:4 if tbdtest.LONG or scheme == "order" else 1]:
            result, rows = decode(value, EXAMPLE, "--scheme", scheme)
            assert result.code == 0 and not result.err and names(rows)[:len(functions)] == functions, (scheme, result)
            assert names(rows)[-1] == "_start" and {row["begins"] for row in rows} == {"start"}, rows
            assert scheme != "order" or {row["stack"] for row in rows} == {1}, rows
            assert rows[0]["source"].startswith("context.c:"), rows
            if not tbdtest.LONG and (scheme, functions) != ("order", expected[0]):
                continue
            _, bare = decode(value, stripped, "--scheme", scheme)
            assert [row["address"] for row in bare] == [row["address"] for row in rows], (rows, bare)


def test_threads_signals_and_recursion_are_decoded(folder):
    source, binary = os.path.join(folder, "ways.c"), os.path.join(folder, "ways")
    with open(source, "w", encoding="utf-8") as file:
        file.write("""#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <tbd/tbd.h>
static void say(const char *what) { unsigned long v = tbd_context(); printf("%s %lx\\n", what, v); }
static void down(int n) { if (n) down(n - 1); else say("recursion"); __asm__(""); }
static void handler(int signo) { (void)signo; say("signal"); __asm__(""); }
static void *thread(void *p) { say("thread"); return p; }
int main(void)
{
    pthread_t id;

    down(20);
    signal(SIGUSR1, handler);
    raise(SIGUSR1);
    pthread_create(&id, NULL, thread, NULL);
    pthread_join(id, NULL);
    return 0;
}
""")
    subprocess.run(["cc", "-O0", "-I", os.path.join(tbdtest.SOURCE, "include"), source, "-o", binary, "-pthread"], check=True)
    result = with_context([binary], folder)
    values = dict(line.split() for line in result.out.decode().splitlines())
    _, rows = decode(values["recursion"], binary)
    assert names(rows)[:23] == ["say"] + ["down"] * 21 + ["main"] and [row["times"] for row in rows[:4]] == [1, 1, 20, 1], rows
    _, rows = decode(values["thread"], binary)
    assert names(rows)[:2] == ["say", "thread"] and {row["begins"] for row in rows} == {"elsewhere"}, rows
    _, rows = decode(values["signal"], binary)
    assert [row["function"].split("!")[-1] for row in rows[:3]] == ["say", "handler", "<signal 10>"] and rows[-1]["function"] == "ways!_start", rows


def test_log_texts_are_evidence(folder):
    value = values_of_example(folder, "order")[0]
    assert names(decode(value, EXAMPLE, "--log", "not enough in")[1])[0] == "log_line"
    result, rows = decode(value, EXAMPLE, "--log", "the lock was taken in", "--seconds", "1")  # main's, the fourth
    assert result.code == 1 and not rows and b"no stack has this value" in result.err, result


def test_unknown_values_and_files(folder):
    """One line says it, in bounded time."""
    result, rows = decode("0x123456789abcdef0", EXAMPLE)
    assert result.code == 1 and not rows and result.err.startswith(b"tbdq: no stack has this value") and result.err.count(b"\n") == 1 and b"tbd_context()" not in result.err, result
    result, rows = decode("0", EXAMPLE, "--seconds", "1")
    assert result.code == 1 and not rows and b"; tbd_context() returns 0 where contexts are not followed\n" in result.err, result
    for words in ([], ["1"], ["x", "--program", EXAMPLE], ["12345678123456789", "--program", EXAMPLE], ["-1", "--program", EXAMPLE],
                  ["1", "2", "--program", EXAMPLE], ["1", "--program"], ["1", "--program", EXAMPLE, "--scheme", "product"],
                  ["1", "--program", EXAMPLE, "--many", "1"], ["1", "--program", EXAMPLE, "--seconds", "0"], ["1", "--program", EXAMPLE, "--values", "-"]):
        result = tbdtest.run([tbdtest.TBDQ, "context", *words], env=tbdtest.clean_env({"TBD_DIR": os.path.join(folder, "nothing")}))
        assert result.code == 2 and not result.out and b"hint: tbdq context [VALUE]" in result.err, (words, result)
    cut = os.path.join(folder, "cut")
    with open(EXAMPLE, "rb") as file, open(cut, "wb") as part:
        part.write(file.read()[:5000])
    for path in ("/etc/passwd", "/dev/null", os.path.join(folder, "none"), cut):
        result = tbdtest.run([tbdtest.TBDQ, "context", "1", "--program", path])
        assert result.code in (1, 4) and not result.out and result.err.startswith(b"tbdq: "), (path, result)


def test_many_values_at_once(folder):
    """Each has the answer that it has alone, in order; one without a stack has a row; a line without a value ends it."""
    listed = os.path.join(folder, "values")
    values = values_of_example(folder, "order")[:3]
    text = "%s in a log line%s\n\n123456789abcdef0\n%s\n" % (values[0], " that is long" * 100, "\n".join(values[1:]))
    with open(listed, "w", encoding="utf-8") as file:
        file.write(text)
    alone = [json.loads(row) for value in values
             for row in tbdtest.run([tbdtest.TBDQ, "--json", "context", value, "--program", EXAMPLE]).out.splitlines()]
    for words, how in ((listed, {}), ("-", {"stdin": text.encode()})):
        result = tbdtest.run([tbdtest.TBDQ, "--json", "context", "--values", words, "--program", EXAMPLE, "--seconds", "1"], **how)
        rows = [json.loads(row) for row in result.out.splitlines()]
        assert result.code == 1 and not result.err and all(row.pop("seconds") >= 0 for row in rows), result
        assert list(dict.fromkeys(int(row["value"], 16) for row in rows)) == [int(value, 16) for value in [values[0], "123456789abcdef0", *values[1:]]], rows
        assert [{key: row[key] for key in row if key != "value"} for row in rows if row["stack"]] == alone, (rows, alone)
        assert [row["function"] for row in rows if not row["stack"]] == ["(none was found)"], rows
    result = tbdtest.run([tbdtest.TBDQ, "context", "--values", "-", "--program", EXAMPLE], stdin=b"1x\n")
    assert result.code == 2 and result.err == b"tbdq: -: line 1 has no value: '1x'\n", result
    result = tbdtest.run([tbdtest.TBDQ, "context", "--values", os.path.join(folder, "none"), "--program", EXAMPLE])
    assert result.code == 4 and b"cannot be read" in result.err, result


def test_a_program_that_is_not_there(folder):
    missing = os.path.join(folder, "none")
    result = tbdtest.run([tbdtest.TBDQ, "context", "1234", "--program", missing])
    assert result.code == 4 and result.err.decode() == "tbdq: --program %s: No such file or directory\n" % missing, result


def test_wrong_options(folder):
    result = with_context([tbdtest.program("stores")], folder, "product")
    assert result.code == 0 and b"option 'scheme' in TBD_OPTIONS needs order|xor|sum" in result.err, result


def learned(binary, folder, cache, *words):
    """Records the program, and keeps its stacks for further questions in this environment."""
    _, trace = tbdtest.record([binary, *words], os.path.join(folder, "full"))
    env = tbdtest.clean_env({"XDG_CACHE_HOME": cache})
    assert tbdtest.run([tbdtest.TBDQ, "context", "--learn", trace.path], env=env).code == 0
    return env


def test_calls_of_recordings_help_the_search(folder):
    """A small run is recorded.  A larger one has other stacks of the same calls by pointer, 12 of them one after another: each is found, alone."""
    cache = os.path.join(folder, "cache")
    binary = compiled(folder, "deeper", ["-O1", "-g"], """#include <stdio.h>
#include <stdlib.h>
#include <tbd/tbd.h>
typedef void step(int);
static void say(int n) { printf("%d %lx\\n", n, (unsigned long)tbd_context()); }
#define STEP(name, next) static void name(int n) { if (n) steps[next](n - 1); else say(n); __asm__(""); }
static step *steps[16];
STEP(one, n % 5) STEP(two, (n + 1) % 5) STEP(three, (n * 3) % 5) STEP(four, (n / 2) % 5) STEP(five, 4 - n % 5)
static void other(int n) { steps[n](n); steps[n + 1](n); steps[n + 2](n); steps[n + 3](n); steps[n + 4](n); __asm__(""); }
int main(int argc, char **argv)
{
    step *const all[] = { one, two, three, four, five, other, other, other };

    for (unsigned i = 0; i < 16; i++)
        steps[i] = all[i % 8];
    for (int n = argc > 1 ? atoi(argv[1]) : 0; n >= 0; n--)
        for (volatile int i = 0; i < 5; i++)
            steps[i](n);
    return 0;
}
""")
    env = learned(binary, folder, cache, "6")
    out = with_context([binary, "12"], folder).out.decode().splitlines()[:5]
    assert len(set(out)) == 5, out
    for line in out[:5 if tbdtest.LONG else 2]:
        result = tbdtest.run([tbdtest.TBDQ, "--json", "context", line.split()[1], "--program", binary], env=env)
        rows = [json.loads(row) for row in result.out.splitlines()]
        assert result.code == 0 and {row["stack"] for row in rows} == {1}, (line, result)
        found = names(rows)
        assert found[0] == "say" and len(found) >= 15 and set(found[1:14]) <= {"one", "two", "three", "four", "five"} and found[14] == "main", found


def test_the_search_begins_at_stacks_of_recordings(folder):
    """40 calls by pointer deep, which is too far to go back; what comes after them no recording has had."""
    cache = os.path.join(folder, "cache")
    binary = compiled(folder, "far", ["-O1", "-g", "-fno-inline"], """#include <stdio.h>
#include <tbd/tbd.h>
typedef void step(int);
static int goes_on;
static step *steps[4];
static void say(int n) { printf("%d %lx\\n", n, (unsigned long)tbd_context()); __asm__(""); }
static void last(int n) { say(n); __asm__(""); }
static void later(int n) { last(n + 1); __asm__(""); }
#define STEP(name, next) static void name(int n) { if (n) steps[next](n - 1); else if (goes_on) later(n); else say(n); __asm__(""); }
STEP(one, n % 4) STEP(two, (n + 1) % 4) STEP(three, (n * 3) % 4) STEP(four, (n / 2) % 4)
int main(int argc, char **argv)
{
    steps[0] = one, steps[1] = two, steps[2] = three, steps[3] = four;
    goes_on = argc > 1 && argv[1][0] == '1';
    steps[argc % 4](40);
    return 0;
}
""")
    env = learned(binary, folder, cache, "0")
    value = with_context([binary, "1"], folder).out.decode().split()[1]
    result = tbdtest.run([tbdtest.TBDQ, "--json", "context", value, "--program", binary], env=env)
    rows = [json.loads(row) for row in result.out.splitlines()]
    assert result.code == 0 and {row["stack"] for row in rows} == {1}, result
    found = names(rows)
    assert found[:3] == ["say", "last", "later"] and "main" in found and "_start" in found and len(found) > 10, found


def test_stacks_of_known_pieces_are_found(folder):
    """What one recording had apart comes together: 30 calls by pointer, a call that no recording has had, 30 more calls by pointer, and one more new call."""
    cache = os.path.join(folder, "cache")
    binary = compiled(folder, "pieces", ["-O1", "-g", "-fno-inline"], """#include <stdio.h>
#include <tbd/tbd.h>
typedef void step(int);
static int goes_on;
static step *steps[4], *others[4];
static void say(int n) { if (n < 0) printf("%lx\\n", (unsigned long)tbd_context()); __asm__(""); }
static void ends(int n) { say(n - 1); if (goes_on) say(n - 2); __asm__(""); }
static void hops(int n) { say(n); if (goes_on) others[goes_on](30); __asm__(""); }
#define STEP(name, steps, next, last) static void name(int n) { if (n) steps[next](n - 1); else last(n); __asm__(""); }
STEP(one, steps, n % 4, hops) STEP(two, steps, (n + 1) % 4, hops) STEP(three, steps, (n * 3) % 4, hops) STEP(four, steps, (n / 2) % 4, hops)
STEP(fifth, others, n % 4, ends) STEP(sixth, others, (n + 1) % 4, ends) STEP(seventh, others, (n * 3) % 4, ends) STEP(eighth, others, (n / 2) % 4, ends)
int main(int argc, char **argv)
{
    steps[0] = one, steps[1] = two, steps[2] = three, steps[3] = four;
    others[0] = fifth, others[1] = sixth, others[2] = seventh, others[3] = eighth;
    goes_on = argc > 1 && argv[1][0] == '1';
    steps[argc % 4](30);
    if (!goes_on)
        others[1](30);
    return 0;
}
""")
    env = learned(binary, folder, cache, "0")
    for value in with_context([binary, "1"], folder).out.decode().split():
        result = tbdtest.run([tbdtest.TBDQ, "--json", "context", value, "--program", binary], env=env)
        rows = [json.loads(row) for row in result.out.splitlines()]
        assert result.code == 0 and {row["stack"] for row in rows} == {1}, (value, result)
        found = [row["function"].split("!")[-1] for row in rows for _ in range(row["times"])]
        assert found[:2] == ["say", "ends"] and found.index("hops") == 33 and set(found[2:33]) <= {"fifth", "sixth", "seventh", "eighth"}, found
        assert set(found[34:65]) <= {"one", "two", "three", "four"} and found[65] == "main" and "_start" in found, found


def test_generated_code_is_marked(folder):
    """Calls of code in no file are rows of their own."""
    source, binary = os.path.join(folder, "made.c"), os.path.join(folder, "made")
    with open(source, "w", encoding="utf-8") as file:
        file.write("""#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <tbd/tbd.h>
static void say(void) { printf("%lx\\n", (unsigned long)tbd_context()); }
int main(void)
{
    static const unsigned char code[] = { 0x53, 0xff, 0xd7, 0x5b, 0xc3 }; /* push rbx ; call rdi ; pop rbx ; ret */
    void *made = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    memcpy(made, code, sizeof(code));
    ((void (*)(void (*)(void)))made)(say);
    return 0;
}
""")
    subprocess.run(["cc", "-O0", "-I", os.path.join(tbdtest.SOURCE, "include"), source, "-o", binary], check=True)
    value = with_context([binary], folder).out.decode().strip()
    _, rows = decode(value, binary)
    assert [row["function"].split("!")[-1] for row in rows[:3]] == ["say", "<no file>", "main"] and {row["stack"] for row in rows} == {1}, rows


def learned_calls(path):
    """The nodes of a dictionary: (1 + index of the parent, file, offset of the return address)."""
    with open(path, "rb") as file:
        data = file.read()
    path_bytes, count = struct.unpack_from("<IQ", data, 20)
    return [struct.unpack_from("<IIQ", data, 32 + path_bytes + 16 * i) for i in range(count)]


def test_stacks_of_recordings_are_known(folder):
    """Of a program that calls by pointers that the code does not tell: after one recording each value of another run has its stack."""
    cache = os.path.join(folder, "cache")
    binary = compiled(folder, "pointers", ["-O0", "-g"], """#include <stdio.h>
#include <setjmp.h>
#include <stdlib.h>
#include <tbd/tbd.h>
typedef void step(int);
static step *steps[4];
static jmp_buf out;
static void say(const char *what, int n) { printf("%s %d %lx\\n", what, n, (unsigned long)tbd_context()); }
static void one(int n) { if (n) steps[n % 4](n - 1); else say("one", n); __asm__(""); }
static void two(int n) { say("two", n); if (n) steps[(n + 1) % 4](n - 1); __asm__(""); }
static void three(int n) { if (n) steps[(n + 2) % 4](n - 1); say("three", n); }
static void leaves(int n) { say("leaves", n); if (n % 3 == 0) longjmp(out, 1); __asm__(""); }
/* what has arguments on the stack is called from further down */
static void many(int a, int b, int c, int d, int e, int f, int g, int n) { say("many", n + a + b + c + d + e + f + g); }
static void pushes(int n) { say("pushes", n); many(1, 2, 3, 4, 5, 6, 7, n); }
static int compare(const void *a, const void *b) { say("compare", *(const int *)a); return *(const int *)a - *(const int *)b; }
int main(void)
{
    int numbers[] = { 3, 1, 2 };

    steps[0] = one, steps[1] = two, steps[2] = three, steps[3] = leaves;
    for (volatile int n = 0; n < 12; n++)
        if (setjmp(out) == 0)
            steps[n % 4](n);
    qsort(numbers, 3, sizeof(int), compare);
    pushes(1);
    say("main", 0);
    return 0;
}
""")
    _, trace = tbdtest.record([binary], os.path.join(folder, "full"))
    env = tbdtest.clean_env({"XDG_CACHE_HOME": cache})
    learned = tbdtest.run([tbdtest.TBDQ, "context", "--learn", trace.path], env=env)
    assert learned.code == 0 and not learned.out and b" stacks of %s are known" % binary.encode() in learned.err, learned
    again = tbdtest.run([tbdtest.TBDQ, "context", "--learn", trace.path], env=env)
    assert again.code == 0 and b", 0 of them new" in again.err, again
    for scheme in SCHEMES:
        said = [line.split() for line in with_context([binary], folder, scheme).out.decode().splitlines()]
        said = sorted({(function, value) for function, _, value in said})
        assert len(said) >= 12, said
        for function, value in said[::1 if tbdtest.LONG or scheme == "order" else 6]:
            result = tbdtest.run([tbdtest.TBDQ, "--json", "context", value, "--program", binary, "--scheme", scheme], env=env)
            rows = [json.loads(line) for line in result.out.splitlines()]
            assert result.code == 0 and names(rows)[:2] == ["say", function] and "_start" in names(rows) and "main" in names(rows), (scheme, function, result)
            assert scheme != "order" or {row["stack"] for row in rows} == {1}, rows
    path, = glob.glob(cache + "/tbd/contexts/*")
    # a call that has returned is no caller of what its function calls later, from further down its stack
    start, size = (int(word, 16) for word in re.search(r"(?m)^(\S+) (\S+) t pushes$", tbdtest.run(["nm", "-S", binary]).out.decode()).groups())
    calls = learned_calls(path)
    inner = [(parent, calls[parent - 1][2]) for parent, _, offset in calls if start < offset <= start + size]
    assert len(inner) == 2 and not any(parent and start < caller <= start + size for parent, caller in inner), inner
    # a dictionary that is damaged is none
    with open(path, "rb") as file:
        good = file.read()
    for bad in (good[:-8], good[:60] + bytes(64) + good[124:]):
        with open(path, "wb") as file:
            file.write(bad)
        result = tbdtest.run([tbdtest.TBDQ, "context", "123456789abcdef0", "--program", binary, "--seconds", "1"], env=env)
        assert result.code == 1 and result.err.startswith(b"tbdq: no stack has this value"), (bad[:40], result)
    for words, code in ((["--learn", folder], 3), (["--learn"], 2), (["--learn", trace.path, "--many", "1"], 2)):
        assert tbdtest.run([tbdtest.TBDQ, "context", *words], env=env).code == code, words


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
