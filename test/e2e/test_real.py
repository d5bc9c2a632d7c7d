#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Real programs: identical output, zero divergences, and an answer that another tool confirms."""
import os
import shutil
import subprocess

import inputs
import othertools
import tbdtest

SMALL, LARGE = 1000000, 40000000


def written(trace, condition="retval > 0"):
    """Bytes that successful write calls report, and how many there were."""
    events = trace.events("syscall", "(syscall==write or syscall==writev) and signed(retval) >= 0 and " + condition)
    return sum(tbdtest.number(e["retval"]) for e in events), len(events)


def check_written(trace, size):
    found, _ = written(trace)
    assert found == size, "write calls report %d bytes, the output has %d" % (found, size)


def check_calls(trace, argv, symbol, cwd=None, where=None):
    """A function is entered as often as gdb's breakpoint is hit."""
    if not othertools.ptrace_works():
        assert trace.count("func_enter", where or "func==" + symbol) > 0
        return
    wanted = othertools.gdb_count_calls(argv, symbol, cwd=cwd)
    found = trace.count("func_enter", where or "func==" + symbol, wanted)
    assert found == wanted and wanted > 0, "%s: %d calls in the trace, %d in gdb" % (symbol, found, wanted)


def compress(folder, program, size, level):
    name = os.path.join(folder, "text")
    inputs.text(name, size)
    argv = [tbdtest.need(program), level, "-c", name]
    result, trace = tbdtest.check_run(argv, folder, timeout=1500)
    packed = os.path.join(folder, "packed")
    with open(packed, "wb") as f:
        f.write(result.out)
    return argv, result, trace, packed


def check_gzip(folder, size):
    _, result, trace, packed = compress(folder, "gzip", size, "-6")
    check_written(trace, len(result.out))
    result, trace = tbdtest.check_run(["/usr/bin/gzip", "-d", "-c", packed], folder + "/d", stdin=None, timeout=1500)
    assert len(result.out) == size
    check_written(trace, size)


def test_gzip(folder):
    check_gzip(folder, SMALL)


def test_gzip_long(folder):
    if not tbdtest.LONG:
        raise tbdtest.Skip("--long")
    check_gzip(folder, LARGE)


def test_bzip2(folder):
    argv, result, trace, packed = compress(folder, "bzip2", SMALL if tbdtest.LONG else 200000, "-9")
    check_calls(trace, argv, "BZ2_bzWrite")
    check_written(trace, len(result.out))
    argv = ["/usr/bin/bzip2", "-d", "-c", packed]
    _, trace = tbdtest.check_run(argv, folder + "/d", timeout=600)
    check_calls(trace, argv, "BZ2_bzRead")


def test_xz(folder):
    argv, result, trace, packed = compress(folder, "xz", SMALL if tbdtest.LONG else 100000, "-2")
    check_calls(trace, argv, "lzma_code")
    check_written(trace, len(result.out))
    argv = ["/usr/bin/xz", "-d", "-c", packed]
    _, trace = tbdtest.check_run(argv, folder + "/d", timeout=600)
    check_calls(trace, argv, "lzma_code")


def test_ray(folder):
    ray = next((p for p in ("ray", "examples/ray") if os.path.exists(os.path.join(tbdtest.BUILD, p))), None)
    if ray is None:
        raise tbdtest.Skip("examples/ray is not built")
    argv = [os.path.join(tbdtest.BUILD, ray), "200" if tbdtest.LONG else "60"]
    result, trace = tbdtest.check_run(argv, folder, timeout=900)
    assert result.out.startswith(b"P"), result.out[:20]
    check_written(trace, len(result.out))


def test_sqlite3(folder):
    script, data = os.path.join(folder, "script.sql"), os.path.join(folder, "data.db")
    inputs.sql(script, 100000 if tbdtest.LONG else 1500)
    argv = [tbdtest.need("sqlite3"), data, ".read " + script]
    native = tbdtest.run(argv, stdin=None)
    os.unlink(data)
    result, trace = tbdtest.record(argv, folder + "/traces", stdin=None, timeout=1500)
    tbdtest.same(native, result)
    trace.verify(timeout=1500)
    os.unlink(data)
    check_calls(trace, argv, "sqlite3_step")
    os.unlink(data)


LUA = """
local t, words = {}, {"alpha", "beta", "gamma", "delta"}
for i = 1, N do t[i] = words[i % 4 + 1] .. (i * 7919 % 1000) end
table.sort(t)
local count, sum = {}, 0
for _, w in ipairs(t) do count[w:sub(1, 3)] = (count[w:sub(1, 3)] or 0) + #w end
for i = 1, N do sum = (sum * 31 + math.floor(math.sqrt(i) * 1000)) % 1000003 end
local co = coroutine.wrap(function() for i = 1, 100 do coroutine.yield(i) end end)
for i = 1, 100 do sum = sum + co() end
print(count.alp, count.bet, sum, string.format("%.6f", math.pi * N), pcall(error, "x"))
"""

PERL = """
my (%h, @a); my $s = 0;
sub step { my ($x) = @_; return ($x * 1103515245 + 12345) % 2147483648 }
my $x = 42;
for my $i (1 .. N) { $x = step($x); $h{"key" . ($x % 500)} += $i; push @a, $x % 1000 }
my @sorted = sort { $a <=> $b } @a;
my $text = join ",", @sorted[0 .. 20];
$text =~ s/(\\d+),(\\d+)/$2-$1/g;
$s += $h{$_} for sort keys %h;
print "$s $text ", scalar(keys %h), "\\n";
"""

PYTHON = """
import hashlib, json, re, collections
class Node:
    def __init__(self, v): self.v, self.l, self.r = v, None, None
    def add(self, v):
        side = 'l' if v < self.v else 'r'
        n = getattr(self, side)
        n.add(v) if n else setattr(self, side, Node(v))
    def walk(self):
        if self.l: yield from self.l.walk()
        yield self.v
        if self.r: yield from self.r.walk()
x, root = 12345, Node(5000)
for i in range(N):
    x = (x * 1103515245 + 12345) % 2147483648
    root.add(x % 10000)
values = list(root.walk())
assert values == sorted(values)
c = collections.Counter(v % 7 for v in values)
text = json.dumps({str(k): c[k] for k in sorted(c)}) + ' ' + hashlib.sha256(repr(values).encode()).hexdigest()
try:
    {}['missing']
except KeyError as e:
    print(text, re.sub(r'[a-f]+', '*', text)[-20:], repr(e))
"""


def check_script(folder, argv, text, symbol, rounds, **how):
    script = os.path.join(folder, "script")
    with open(script, "w") as f:
        f.write(text.replace("N)", "%d)" % rounds).replace(" N ", " %d " % rounds).replace("1, N", "1, %d" % rounds))
    argv = argv + [script]
    result, trace = tbdtest.check_run(argv, folder, timeout=1500, **how)
    assert result.code == 0 and result.out, result
    check_calls(trace, argv, symbol)
    check_written(trace, len(result.out))


def test_lua(folder):
    check_script(folder, [tbdtest.need("lua5.4")], LUA, "lua_newuserdatauv", 200000 if tbdtest.LONG else 6000)


def test_perl(folder):
    check_script(folder, [tbdtest.need("perl")], PERL, "Perl_pp_entersub", 300000 if tbdtest.LONG else 5000,
                 env={"PERL_HASH_SEED": "0", "PERL_PERTURB_KEYS": "0"})


def test_python(folder):
    check_script(folder, [tbdtest.need("python3"), "-S", "-E"], PYTHON, "PyList_Sort", 50000 if tbdtest.LONG else 1000,
                 env={"PYTHONHASHSEED": "0"})


def test_ls(folder):
    where = "/usr" if tbdtest.LONG else "/usr/include/linux"
    if not os.path.isdir(where):
        where = "/usr/share/doc"
    argv = [tbdtest.need("ls"), "-lR", where]
    result, trace = tbdtest.check_run(argv, folder, timeout=1500)
    check_written(trace, len(result.out))


def test_sort(folder):
    name = os.path.join(folder, "text")
    inputs.text(name, 5000000 if tbdtest.LONG else 300000)
    argv = [tbdtest.need("sort"), "--parallel=1", "-k3", name]
    result, trace = tbdtest.check_run(argv, folder, timeout=600)
    check_written(trace, len(result.out))


def test_grep(folder):
    inputs.tree(folder + "/tree")
    argv = [tbdtest.need("grep"), "-rnE", "(packet|w[ao]r)[a-z]+ .*[0-9]{4}$", "tree"]
    result, trace = tbdtest.check_run(argv, folder, cwd=folder)
    assert result.out.count(b"\n") > 10
    check_written(trace, len(result.out))
    opened = othertools.strace_count(argv, "openat", cwd=folder)[0] if othertools.ptrace_works() else 1 << 30
    files = sum(len(names) for _, _, names in os.walk(folder + "/tree"))
    events = trace.events("syscall", "syscall==openat and signed(retval) >= 0")
    assert files <= len(events) <= opened, (files, len(events), opened)


def test_tar(folder):
    total = inputs.tree(folder + "/tree")
    argv = [tbdtest.need("tar"), "-cf", "-", "tree"]
    result, trace = tbdtest.check_run(argv, folder, cwd=folder)
    assert len(result.out) > total
    check_written(trace, len(result.out))
    packed = os.path.join(folder, "t.tar")
    with open(packed, "wb") as f:
        f.write(result.out)
    os.makedirs(folder + "/x")
    tbdtest.check_run(["/usr/bin/tar", "-xf", packed], folder + "/d", cwd=folder + "/x", stdin=None)
    assert subprocess.run(["diff", "-r", folder + "/tree", folder + "/x/tree"], check=False).returncode == 0
    shutil.rmtree(folder + "/x")


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
