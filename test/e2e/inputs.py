# SPDX-License-Identifier: MIT
"""Deterministic input files for real programs: text that looks like logs and like source code."""
import os

_WORDS = ("connection request window buffer cache index trace block replay signal thread memory page store load "
          "kernel socket packet header checksum retry timeout queue worker error warning ready closed opened value").split()
_TYPES = ("int", "long", "char *", "size_t", "unsigned", "double")


class Random:
    """xorshift64*: the same on every Python."""

    def __init__(self, seed):
        self.state = seed * 2654435769 + 88172645463325252 & (1 << 64) - 1

    def next(self, below):
        x = self.state
        x ^= x >> 12
        x ^= x << 25 & (1 << 64) - 1
        x ^= x >> 27
        self.state = x
        return (x * 2685821657736338717 >> 33 & 0x7fffffff) % below

    def pick(self, items):
        return items[self.next(len(items))]


def _log_line(r, n):
    words = " ".join(r.pick(_WORDS) for _ in range(3 + r.next(6)))
    return "2024-03-%02d %02d:%02d:%02d.%06d host%d svc[%d]: %s %d\n" % (
        1 + n // 90000 % 28, n // 3600 % 24, n // 60 % 60, n % 60, r.next(1000000), r.next(8), 100 + r.next(900), words, r.next(100000))


def _source_lines(r):
    name = "%s_%s" % (r.pick(_WORDS), r.pick(_WORDS))
    lines = ["static %s %s(%s a, int b)\n" % (r.pick(_TYPES), name, r.pick(_TYPES)), "{\n"]
    for _ in range(2 + r.next(8)):
        lines.append("    %s_%s = %s(a + %d, b %s %d);\n" % (r.pick(_WORDS), r.pick(_WORDS), r.pick(_WORDS), r.next(256),
                                                            r.pick("+-*/&|"), 1 + r.next(64)))
    return lines + ["    return %s_%d;\n" % (r.pick(_WORDS), r.next(10)), "}\n\n"]


def text(path, size, seed=1):
    """Writes `size` bytes of text; large sizes repeat pieces of 2 MiB shifted by a new head, which
    is quick to make and no easier for a compressor with a small window."""
    r, pieces, length, n = Random(seed), [], 0, 0
    limit = min(size, 2 << 20)
    while length < limit:
        for line in [_log_line(r, n)] if r.next(3) else _source_lines(r):
            pieces.append(line)
            length += len(line)
        n += 1
    data = "".join(pieces).encode()
    with open(path, "wb") as f:
        left, turn = size, 0
        while left > 0:
            head = ("---- part %d %d\n" % (turn, r.next(1 << 30))).encode() if turn else b""
            start = turn * 70001 % len(data)
            part = (head + data[start:] + data[:start])[:left]
            f.write(part)
            left -= len(part)
            turn += 1


def tree(path, files=60, seed=5):
    """A folder tree with text files; returns the number of bytes."""
    r, total = Random(seed), 0
    for i in range(files):
        folder = os.path.join(path, "d%d" % (i % 7), "e%d" % (i % 3))
        os.makedirs(folder, exist_ok=True)
        name = os.path.join(folder, "file%d.txt" % i)
        size = 100 + r.next(9000)
        text(name, size, seed + i)
        os.chmod(name, 0o640 if i % 2 else 0o755)
        os.utime(name, (1700000000 + i * 1000, 1700000000 + i * 1000))
        total += size
    return total


def sql(path, rows):
    r = Random(9)
    with open(path, "w") as f:
        f.write("create table t(id integer primary key, name text, value real, kind int);\nbegin;\n")
        for i in range(rows):
            f.write("insert into t values(%d,'%s-%d',%d.%02d,%d);\n" % (
                i, r.pick(_WORDS), r.next(100000), r.next(10000), r.next(100), r.next(17)))
        f.write("commit;\ncreate index by_name on t(name);\ncreate index by_kind on t(kind, value);\n"
                "select count(*), sum(id), round(avg(value), 6), min(name), max(name) from t;\n"
                "select kind, count(*), round(sum(value), 3) from t group by kind order by kind;\n"
                "select name, count(*) c from t group by substr(name, 1, 4) order by c desc, name limit 10;\n"
                "update t set value = value * 2 where kind = 3;\ndelete from t where kind = 5;\n"
                "select count(*), round(sum(value), 3) from t where name between 'cache' and 'kernel';\n")
