#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs that make code while they run: interpreters that compile, patterns that are compiled, callbacks."""
import os

import tbdtest

LUA = """
local function fib(n) if n < 2 then return n end return fib(n-1) + fib(n-2) end
local t, s = {}, 0
for i = 1, 50000 do t[i] = i * 3 % 1001 end
for r = 1, 3 do for i = 1, #t do s = s + t[i] end end
local ffi = require("ffi")
ffi.cdef[[void qsort(void *base, size_t n, size_t s, int (*cmp)(const int *, const int *));]]
local a = ffi.new("int[100]")
for i = 0, 99 do a[i] = (i * 37) % 100 end
ffi.C.qsort(a, 100, 4, function(x, y) return x[0] - y[0] end)
for i = 1, 99 do assert(a[i-1] <= a[i]) end
print(fib(20), s, a[0], a[99])
"""

CALLBACKS = """
import ctypes
libc = ctypes.CDLL(None)
Compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
numbers = (ctypes.c_int * 50)(*[(i * 37) % 50 for i in range(50)])
for _ in range(5):
    libc.qsort(numbers, 50, 4, Compare(lambda a, b: a[0] - b[0]))
print(list(numbers) == list(range(50)))
"""

SCRIPT = """
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
const o = {}, a = []
for (let i = 0; i < 20000; i++) o['k' + i % 100] = (o['k' + i % 100] || 0) + i
for (let i = 0; i < 20000; i++) a.push(i * 7919 % 10007)
a.sort((x, y) => x - y)
console.log(fib(20), Object.keys(o).length, a[777], JSON.stringify(o).length, /(\\d+)x\\1/.test('12x12'))
"""

SERVER = """
const http = require('http')
let served = 0
const server = http.createServer((q, r) => { served++; r.end('hello ' + q.url + '\\n') })
server.listen(0, '127.0.0.1', () => {
  const ask = i => {
    if (i == 20) { console.log('served', served); server.close(); return }
    http.get({ port: server.address().port, path: '/' + i, agent: false }, r => {
      let text = ''
      r.on('data', d => text += d)
      r.on('end', () => { if (i % 5 == 0) console.log(text.trim()); ask(i + 1) })
    })
  }
  ask(0)
})
"""

JAVA = """
import java.util.*;
public class Hello {
    static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    public static void main(String[] a) {
        Map<String, Integer> m = new TreeMap<>();
        for (int i = 0; i < 20000; i++)
            m.merge("k" + i % 97, i, Integer::sum);
        System.out.println(fib(25) + " " + m.size() + " " + m.get("k5"));
    }
}
"""


def written_to(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def test_luajit(folder):
    tbdtest.check_run([tbdtest.need("luajit"), written_to(folder, "t.lua", LUA)], folder)


def test_callbacks_from_c(folder):
    """libffi makes a piece of code for each."""
    tbdtest.check_run(["/usr/bin/python3", written_to(folder, "t.py", CALLBACKS)], folder)


def test_compiled_patterns(folder):
    numbers = written_to(folder, "numbers", "".join("%d\n" % n for n in range(20000)))
    result, _ = tbdtest.check_run([tbdtest.need("grep"), "-cP", r"(\d)\1+(?=7)", numbers], folder)
    assert result.out == b"486\n", result


def test_node(folder):
    tbdtest.check_run([tbdtest.need("node"), written_to(folder, "t.js", SCRIPT)], folder, timeout=600)


def test_node_server_long(folder):
    if not tbdtest.LONG:
        raise tbdtest.Skip("long")
    tbdtest.check_run([tbdtest.need("node"), written_to(folder, "t.js", SERVER)], folder, timeout=600)


def test_java_program_long(folder):
    if not tbdtest.LONG:
        raise tbdtest.Skip("long")
    tbdtest.check_run([tbdtest.need("java"), written_to(folder, "Hello.java", JAVA)], folder, timeout=1500)


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
