#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Triggers, parts and branch contexts (mode=crash, mode=context) of code in modules that are loaded later, go, and come back."""
import json
import os
import subprocess

import tbdtest

TBD = os.path.join(tbdtest.BUILD, "tbd")
PLUGIN = r"""
static int begun;
__attribute__((constructor)) static void begin(void) { begun = 1; }
int plug(int n)
{
    int sum = begun;
    for (int i = 0; i < n; i++)
        sum += i; /* LINE */
    return sum;
}
"""
# dlopen, plug(10), dlclose, as often as argv[2] says, in argv[3] threads at the same time, and once in a forked child; lines of input wait
HOST = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static const char *path;
static int times;
static volatile int is_over;
static void *use(void *sum)
{
    for (int i = 0; i < times; i++) {
        void *library = dlopen(path, RTLD_NOW);
        int (*plug)(int) = (int (*)(int))dlsym(library, "plug");
        *(long *)sum += plug(10);
        dlclose(library);
    }
    return sum;
}
static void *spin(void *p)
{
    for (volatile long n = 0; !is_over; n++)
        ;
    return p;
}
int main(int argc, char **argv)
{
    int count = atoi(argv[3]);
    pthread_t threads[8], spinner;
    long sums[8] = { 0 }, sum = 0;

    path = argv[1], times = atoi(argv[2]);
    if (argc > 4 && !getchar())
        return 1;
    pthread_create(&spinner, NULL, spin, NULL);
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, use, &sums[i]);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL), sum += sums[i];
    is_over = 1;
    pthread_join(spinner, NULL);
    printf("%ld\n", sum);
    fflush(stdout);
    if (fork() == 0)
        _exit(*(long *)use(&sum) & 63);
    wait(&count);
    printf("%d\n", count);
    return 0;
}
"""


def build(folder):
    """The program, and its plugin."""
    for name, text in (("plugin.c", PLUGIN), ("host.c", HOST)):
        with open(os.path.join(folder, name), "w", encoding="ascii") as f:
            f.write(text)
    host, plugin = os.path.join(folder, "host"), os.path.join(folder, "libplugin.so")
    subprocess.run(["cc", "-g", "-O0", "-shared", "-fPIC", os.path.join(folder, "plugin.c"), "-o", plugin], check=True)
    subprocess.run(["cc", "-g", "-O1", os.path.join(folder, "host.c"), "-o", host, "-pthread", "-ldl"], check=True)
    return host, plugin


def dumps(root):
    """Of all processes, in the order of their names."""
    names = [name for name in os.listdir(root) if name.startswith("host-")] if os.path.isdir(root) else []
    return [tbdtest.Trace(os.path.join(root, name)) for name in sorted(names, key=lambda n: (len(n), n))]


def crash(folder, name, argv, *options):
    root = os.path.join(folder, name)
    native = tbdtest.run(argv)
    result = tbdtest.run([TBD, "crash", *options, "--", *argv], env=tbdtest.clean_env({"TBD_DIR": root}))
    tbdtest.wait_organizers(root)
    assert (result.code, result.out) == (native.code, native.out), result
    return result.err, dumps(root)


def test_triggers_wait_for_their_module(folder):
    """From its first instruction on; each time it comes; in all threads, and in forked children."""
    host, plugin = build(folder)
    line = PLUGIN.split("/* LINE */", maxsplit=1)[0].count("\n") + 1
    for number, (trigger, times, threads, wanted) in enumerate((("begin", 1, 1, 1), ("plug times 9", 3, 1, 6), ("libplugin.so!plug times 5 if n == 10", 2, 4, 5),
                                                                ("plugin.c:%d times 2 if i == 3" % line, 1, 1, 2), ("plug if n == 11", 2, 1, 0))):
        err, found = crash(folder, str(number), [host, plugin, str(times), str(threads)], "--trigger", trigger + "; main if argc == 99")
        assert err.startswith(b"tbd set: nothing that is loaded has the place of this trigger; it waits: %s\n" % trigger.encode()), err
        assert err.count(b"\n") == 1, err
        # a forked child has the dumps left that its parent had
        assert len(found) == wanted, (trigger, found)
        for dump in found:
            assert dump.info()["end_text"] == "trigger: %s; the program went on" % trigger, dump.info()
            assert dump.ask("bt")[0]["function"] == ("begin" if trigger == "begin" else "plug"), dump.ask("bt")
        if ":" in trigger:
            assert [int(d.one("print", "i")["value"]) for d in found] == [3] * len(found)


def test_what_never_came_is_said(folder):
    host, plugin = build(folder)
    err, found = crash(folder, "never", [host, plugin, "1", "1"], "--trigger", "no_such_function; nix.c:5 if a == 1;plug",
                       "--parts", "no_such_part();plugin.c;modules")
    lines = err.decode().splitlines()
    assert lines[-2:] == ["tbd: no module came that has the place of a trigger: no_such_function; nix.c:5 if a == 1",
                          "tbd: no module came that has a part: no_such_part()"], lines
    assert len(found) == 1
    err, found = crash(folder, "condition", [host, plugin, "1", "1"], "--trigger", "plug if no_such_variable == 1; begin")
    assert err.decode().splitlines()[-1] == "tbd: a trigger has no place in the module that came, or its condition no value: plug if no_such_variable == 1", err
    assert len(found) == 1


def test_parts_wait_for_their_module(folder):
    """A function and a source file, in each of two copies of the module that come one after the other."""
    host, plugin = build(folder)
    for part in ("libplugin.so:plug()", "plug()", "plugin.c"):
        err, found = crash(folder, "of-" + part.replace(":", "-"), [host, plugin, "2", "1"], "--parts", part, "--dump", "exit")
        assert err == b"tbd set: nothing that is loaded has code of these parts; they wait: %s\n" % part.encode(), err
        assert len(found) == 2, found  # the forked child has the part, too
        for dump in found:
            rows = [(row["function"].split("!")[-1], row["source"]) for row in dump.ask("path", "part", part) if row["function"]]
            assert rows.count(("plug", "plugin.c:9")) == 2, (dump, rows[-5:])
            assert {function for function, _ in rows} <= {"plug", "begin"}, set(rows)


def test_set_waits_if_it_is_told_to(folder):
    host, plugin = build(folder)
    root = os.path.join(folder, "set")
    process = tbdtest.start([host, plugin, "2", "2", "wait"], root, "mode=crash,trigger=main", stdin=subprocess.PIPE)
    while not dumps(root):  # it runs
        assert process.poll() is None
    result = tbdtest.run([TBD, "set", str(process.pid), "trigger=plug times 9"])
    assert result.code == 1 and b"hint: --pending waits until it is loaded" in result.err, result
    for _ in range(3):  # the last one counts
        result = tbdtest.run([TBD, "set", "--pending", str(process.pid), "trigger=plug times 3"])
        assert result.code == 0 and b"it waits: plug times 3" in result.err, result
    out, err = process.communicate(b"\n", timeout=60)
    tbdtest.wait_organizers(root)
    native = tbdtest.run([host, plugin, "2", "2", "wait"], stdin=b"\n")
    assert (process.returncode, out, err) == (0, native.out, b""), (out, err)
    assert [d.info()["end_text"].split(";")[0] for d in dumps(root)] == ["trigger: main"] + ["trigger: plug times 3"] * 3


def test_parts_with_too_many_functions(folder):
    """What a module that comes later has too much is said by the program itself, once."""
    host, plugin = build(folder)
    with open(os.path.join(folder, "many.c"), "w", encoding="ascii") as f:
        f.write(PLUGIN + "".join("int many_%d(int n) { return n; }\n" % n for n in range(600)))
    subprocess.run(["cc", "-g", "-O0", "-shared", "-fPIC", os.path.join(folder, "many.c"), "-o", plugin], check=True)
    err, found = crash(folder, "many", [host, plugin, "3", "2"], "--parts", "plug();many_*()", "--dump", "exit")
    waits, said, *more = err.decode().splitlines()
    assert waits.endswith("they wait: plug(); many_*()") and not more, err
    assert said == "tbd: the parts have too many functions, or pieces of code: 512 at most; not all of many_*() is kept", err
    assert all("plug" in {row["function"].split("!")[-1] for row in dump.ask("path", "part", "plug()") if row["function"]} for dump in found), found


def test_dumps_while_places_are_looked_for(folder):
    """Threads load and unload while other dumps are made: nothing that waits is lost, and nobody waits for ever."""
    host, plugin = build(folder)
    for trigger, wanted in (("no_such_function", 0), ("plug times 40 if n == 10", 40)):
        root = os.path.join(folder, trigger.split(maxsplit=1)[0])
        argv, options = [host, plugin, "30", "4", "wait"], "mode=crash,memory=stacks,trigger=main;" + trigger
        process = tbdtest.start(argv, root, options, stdin=subprocess.PIPE)
        while not dumps(root):
            assert process.poll() is None
        process.stdin.write(b"\n")
        process.stdin.flush()
        asked = 0
        while asked < 5 and process.poll() is None:
            asked += tbdtest.run([TBD, "dump", str(process.pid)]).code == 0
        out, _ = process.communicate(timeout=300)
        tbdtest.wait_organizers(root)
        native = tbdtest.run(argv, stdin=b"\n")
        assert (process.returncode, out) == (0, native.out), (process.returncode, out)
        made = [d.info()["end_text"].split(";")[0] for d in dumps(root)]
        assert made.count("trigger: " + trigger) == wanted and made.count("trigger: main") == 1, made


def test_a_program_is_killed_while_places_are_looked_for(folder):
    """At any moment: the collector does not wait for an answer, and what there is can be read."""
    host, plugin = build(folder)
    argv = [host, plugin, "100000", "1", "wait"]
    for n in range(5):
        root = os.path.join(folder, str(n))
        process = tbdtest.start(argv, root, "mode=crash,memory=stacks,trigger=main;no_such_function", stdin=subprocess.PIPE)
        while not dumps(root):
            assert process.poll() is None
        process.stdin.write(b"\n")
        process.stdin.flush()
        for _ in range(n):  # some time passes
            assert tbdtest.run([TBD, "set", str(process.pid), "ring=512K"]).code == 0
        process.kill()
        process.communicate(timeout=60)
        tbdtest.wait_organizers(root)
        assert any("killed" in d.info()["end_text"] or d.ask("path", 3) for d in dumps(root)), root


COUNTED = r"""
#include "tbd/tbd.h"
unsigned long long plug(int n)
{
    for (int i = 0; i < n; i++)
        ;
    return tbd_branch_context();
}
"""
CALLER = r"""
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        void *library = dlopen(argv[i], RTLD_NOW);
        unsigned long long (*plug)(int) = (unsigned long long (*)(int))dlsym(library, "plug");
        printf("%#llx\n", plug(7));
        dlclose(library);
    }
    return 0;
}
"""


def test_branches_of_a_library_that_is_loaded_later(folder):
    """Named by the library's file; twice in the same process; of a library that does not come it is said."""
    for name, text in (("counted.c", COUNTED), ("caller.c", CALLER)):
        with open(os.path.join(folder, name), "w", encoding="ascii") as f:
            f.write(text)
    caller, libraries = os.path.join(folder, "caller"), [os.path.join(folder, name) for name in ("libcounted.so", "libother.so")]
    for library in libraries:
        subprocess.run(["cc", "-g", "-O0", "-shared", "-fPIC", "-I", os.path.join(tbdtest.SOURCE, "include"), os.path.join(folder, "counted.c"),
                        "-o", library], check=True)
    subprocess.run(["cc", os.path.join(folder, "caller.c"), "-o", caller, "-ldl"], check=True)
    argv = [TBD, "record", "--mode=context", "--branches=%s:plug;%s:plug" % tuple(libraries), "--", caller]
    result = tbdtest.run(argv + [libraries[0], libraries[0]], env=tbdtest.clean_env({"TBD_DIR": folder}))
    values = result.out.decode().split()
    assert result.code == 0 and len(values) == 2 and values[0] == values[1] != "0", result
    assert result.err.startswith(b"tbd: no code of libother.so ran: no branches of the function at ") and result.err.count(b"\n") == 1, result.err
    said = tbdtest.run([tbdtest.TBDQ, "--json", "branches", values[0], "--program", libraries[0], "--function", "plug"], env=tbdtest.clean_env({}))
    assert said.code == 0 and [json.loads(line)["times"] for line in said.out.splitlines()] == [7], said


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
