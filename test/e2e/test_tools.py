#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tools of people who write programs - debuggers, build systems, compilers, test runners, parallel libraries - recorded
with all that they start."""
import os
import re
import shutil

import tbdtest
from test_workloads import check_all, put, self_test


def compiled(folder, text, *flags):
    program = folder + "/program"
    argv = [tbdtest.need("gcc"), "-g", "-O1", "-o", program, put(folder, "program.c", text), *flags]
    if tbdtest.run(argv).code:
        raise tbdtest.Skip("cannot be compiled: " + " ".join(flags))
    return program


# ---- what watches other programs ----

LOOP = """
#include <stdio.h>
static int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }
int main(void) { int s = 0; for (int i = 0; i < 3; i++) s += f(i); printf("%d\\n", s); return s; }
"""


def calls_in(log):
    with open(log, encoding="utf-8") as f:
        return re.findall(r"^(?:\[pid +\d+\] )?(\w+)\(", f.read(), re.M)


def test_strace(folder):
    """A program that is watched by ptrace runs natively, so that the watching tool shows its usual results."""
    program, logs = compiled(folder, LOOP), [folder + "/native.log", folder + "/traced.log"]
    argv = [tbdtest.need("strace"), "-e", "trace=clone,rt_sigaction,futex,getrandom,pread64,exit_group", "-o"]
    native = tbdtest.run(argv + [logs[0], program])
    traced, trace = tbdtest.record(argv + [logs[1], program], folder + "/traces")
    tbdtest.same(native, traced, tool_lines=True)
    assert traced.code == 2 and calls_in(logs[0]) == calls_in(logs[1]), calls_in(logs[1])
    trace.verify()


def test_gdb_long(folder):
    if not tbdtest.LONG:
        raise tbdtest.Skip("--long")
    program, argv = compiled(folder, LOOP, "-O0"), [tbdtest.need("gdb"), "-q", "-batch", "-nx"]
    for command in ("break f", "run", "bt", "up", "watch s", "delete 1", "continue", "delete", "continue"):
        argv += ["-ex", command]
    native = tbdtest.run(argv + [program], timeout=600)
    traced, trace = tbdtest.record(argv + [program], folder + "/traces", timeout=600)
    assert b"Hardware watchpoint" in native.out, native
    for result in (native, traced):
        result.out = re.sub(rb"process \d+", b"process", result.out)
    tbdtest.same(native, traced, tool_lines=True)
    for trace in tbdtest.traces(folder + "/traces"):
        trace.verify()


def test_valgrind(folder):
    """Its program is translated already, by a tool that knows no clone() of the engine's kind: it runs natively."""
    program, argv = compiled(folder, LOOP), [tbdtest.need("valgrind"), "-q", "--tool=none"]
    native = tbdtest.run([*argv, program])
    if native.code != 2:
        raise tbdtest.Skip("valgrind does not run the program: %s" % native)
    for options in ("", "mode=traced", "mode=crash"):
        traced, _ = tbdtest.record([*argv, program], "%s/traces-%s" % (folder, options), options)
        tbdtest.same(native, traced, tool_lines=True)
        assert b"runs under valgrind" in traced.err, traced


# ---- what the compiler adds ----

def test_sanitizers(folder):
    """Their runtimes need the engine's addresses, or must be the first library: such programs run natively."""
    for i, (compiler, kind) in enumerate((("gcc", "address"), ("gcc", "thread"), ("clang", "address"), ("clang", "memory"))):
        program = "%s/%d" % (folder, i)
        argv = [compiler, "-g", "-fsanitize=" + kind, "-o", program, put(folder, "program.c", LOOP)]
        if not shutil.which(compiler) or tbdtest.run(argv).code or tbdtest.run([program]).code != 2:
            continue
        native = tbdtest.run([program])
        traced, trace = tbdtest.record([program], "%s-traces" % program)
        tbdtest.same(native, traced, tool_lines=True)
        assert trace is None and b"sanitizer" in traced.err, traced


OPENMP = """
#include <omp.h>
#include <stdio.h>
int main(void)
{
    static double roots[20000];
    long sum = 0, tasks = 0;
    int seen[4] = { 0 };
    #pragma omp parallel num_threads(4) reduction(+ : sum)
    {
        #pragma omp for schedule(dynamic, 64)
        for (int i = 0; i < 20000; i++)
            sum += i * 7L % 13;
        #pragma omp for nowait
        for (int i = 0; i < 20000; i++)
            roots[i] = i * 0.5;
        #pragma omp barrier
        #pragma omp critical
        seen[omp_get_thread_num()]++;
        #pragma omp single
        for (int k = 0; k < 10; k++)
            #pragma omp task
            {
                #pragma omp atomic
                tasks += k;
            }
    }
    printf("%ld %ld %g %d%d%d%d\\n", sum, tasks, roots[19999], seen[0], seen[1], seen[2], seen[3]);
    return 0;
}
"""


def test_openmp(folder):
    result, _ = check_all([compiled(folder, OPENMP, "-fopenmp")], folder)
    assert result.out == b"119991 45 9999.5 1111\n", result


# ---- builders and testers ----

CMAKE = """
cmake_minimum_required(VERSION 3.20)
project(small C)
enable_testing()
add_library(part STATIC part.c)
add_executable(whole whole.c)
target_link_libraries(whole part)
add_test(NAME one COMMAND whole)
add_test(NAME two COMMAND whole 2)
"""


def test_cmake_ninja_ctest_long(folder):
    if not tbdtest.LONG:
        raise tbdtest.Skip("--long")
    source, build = folder + "/source", folder + "/build"
    put(source, "CMakeLists.txt", CMAKE)
    put(source, "part.c", "int part(int n) { return n * 2; }\n")
    put(source, "whole.c", "int part(int n);\nint main(int argc, char **argv) { return part(argc) + !argv[0] > 4; }\n")
    tbdtest.need("cmake", "ninja", "ctest")
    check_all(["cmake", "-G", "Ninja", "-S", source, "-B", build], folder + "/1", 20, lambda: shutil.rmtree(build, ignore_errors=True),
              timeout=600)
    check_all(["ninja", "--quiet", "-C", build], folder + "/2", 8, lambda: tbdtest.run(["ninja", "-C", build, "-t", "clean"]), timeout=600)
    os.makedirs(folder + "/3")
    self_test(["ctest", "--test-dir", build, "-j2"], folder + "/3", 3)


def test_prove_long(folder):
    if not tbdtest.LONG:
        raise tbdtest.Skip("--long")
    for i in range(2):
        put(folder, "%d.t" % i, "use Test::More tests => 3; ok(1); is(2, 1 + 1);\n"
            "my $p = fork(); exit 3 unless $p; waitpid $p, 0; is($? >> 8, 3);\n")
    self_test([tbdtest.need("prove"), "-j2", folder + "/0.t", folder + "/1.t"], folder, 5)


def test_clang_long(folder):
    """Compiler and linker in one process each, with threads of their own."""
    if not tbdtest.LONG:
        raise tbdtest.Skip("--long")
    source = put(folder, "program.c", OPENMP)
    check_all([tbdtest.need("clang"), "-O2", "-c", "-o", folder + "/program.o", source], folder, timeout=600)


RUST = """
use std::{collections::BTreeMap, sync::{Arc, Mutex}, thread};
fn main() {
    let m = Arc::new(Mutex::new(BTreeMap::new()));
    let all: Vec<_> = (0..4u64).map(|k| { let m = m.clone(); thread::spawn(move || for i in 0..1000u64 {
        *m.lock().unwrap().entry(i % 37).or_insert(0u64) += i * k; }) }).collect();
    for one in all { one.join().unwrap(); }
    std::panic::set_hook(Box::new(|_| {}));
    let caught = std::panic::catch_unwind(|| { let v: Vec<i32> = vec![]; v[0] }).is_err();
    println!("{:?} {}", m.lock().unwrap().iter().nth(5), caught);
}
"""


def test_rust_long(folder):
    """The compiler, and what it made."""
    if not tbdtest.LONG:
        raise tbdtest.Skip("--long")
    program = folder + "/program"
    check_all([tbdtest.need("rustc"), "-O", "-o", program, put(folder, "program.rs", RUST)], folder + "/1", timeout=1500)
    check_all([program], folder + "/2", timeout=600)


def test_chromium_long(folder):
    """A browser with its sandbox: processes in pid and user namespaces of their own, without /proc, under seccomp."""
    if not tbdtest.LONG:
        raise tbdtest.Skip("--long")
    page, root, nobody = folder + "/page.html", folder + "/traces", 65534
    put(folder, "page.html", "<p id=sum>?</p><script>let s = 0; for (let i = 0; i < 100000; i++) s += i % 7;"
                             " document.getElementById('sum').textContent = 'the sum is ' + s</script>")
    argv = [tbdtest.need("chromium"), "--headless", "--disable-gpu", "--user-data-dir=" + folder + "/data", "--dump-dom", "file://" + page]
    os.makedirs(root)
    if os.geteuid() == 0:  # the sandbox is not for root
        argv = [tbdtest.need("setpriv"), "--reuid=%d" % nobody, "--regid=%d" % nobody, "--clear-groups", *argv]
        for path in (folder, page, root):
            shutil.chown(path, nobody, nobody)
    native = tbdtest.run(argv, env={"HOME": folder}, timeout=300)
    if native.code or b"the sum is 299995" not in native.out:
        raise tbdtest.Skip("the browser's sandbox does not start here")
    shutil.rmtree(folder + "/data")
    traced, _ = tbdtest.record(argv, root, env={"HOME": folder}, timeout=2400)
    assert traced.code == 0 and traced.out == native.out, (traced.code, traced.out, traced.err[-2000:])
    # with a pid namespace's first process, the kernel ends all others in it, organizers too: some have not begun then
    whole = [trace for trace in tbdtest.traces(root) if os.path.exists(trace.path + "/index")]
    assert len(whole) >= 10, whole
    for trace in whole:
        trace.verify()


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
