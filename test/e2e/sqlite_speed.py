#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""sqlite_speed.py FILE ROWS MODE: the kinds of statements that databases are measured with, from three threads on one file.

Each thread has tables of its own there, so that its results do not depend on when the others run; what it prints
is a digest of every result."""
import hashlib
import sqlite3
import sys
import threading

WORDS = "zero one two three four five six seven eight nine".split()


def text(n):
    return " ".join(WORDS[int(digit)] for digit in str(n))


class Worker(threading.Thread):
    def __init__(self, name, k, rows):
        super().__init__()
        self.name_of_file, self.k, self.rows, self.seen = name, k, rows, hashlib.sha256()
        self.db = None

    def ask(self, statement, *values):
        result = self.db.execute(statement.replace("T_", "t%d_" % self.k), values).fetchall()
        self.seen.update(repr(result).encode())

    def put(self, statement, rows):
        self.db.execute("begin immediate")
        self.db.executemany(statement.replace("T_", "t%d_" % self.k), rows)
        self.db.execute("commit")

    def steps(self):
        return range(0, self.rows, max(self.rows // 8, 1))

    def number(self, i):
        return (i * 7919 + self.k * 104729) % 99991

    def run(self):
        self.db = sqlite3.connect(self.name_of_file, timeout=500, isolation_level=None)
        self.insert()
        self.select()
        self.change()
        self.join_tables()
        self.keys()
        self.db.close()

    def insert(self):
        for table, kind in (("T_plain", ""), ("T_unique", "unique"), ("T_copy", "")):
            self.ask("create table %s(a integer %s, b integer, c text)" % (table, kind))
        rows = [(i, self.number(i), text(self.number(i))) for i in range(self.rows)]
        self.put("insert into T_plain values(?, ?, ?)", rows)
        self.put("insert into T_unique values(?, ?, ?)", rows)

    def select(self):
        for i in self.steps():
            self.ask("select count(*), avg(b), sum(length(c)) from T_plain where b between ? and ?", i * 100, i * 100 + 9000)
            self.ask("select count(*), avg(b) from T_plain where c like ?", "%" + WORDS[i % 10] + "%")
            self.ask("select a, b, c from T_plain where c like ? order by c, a limit 10", "%" + WORDS[i % 10] + "%")
            self.ask("select c from T_unique where a = ?", i)

    def change(self):
        self.ask("create index T_by_b on T_plain(b)")
        self.ask("create index T_by_c on T_plain(c)")
        self.ask("select count(*), avg(b) from T_plain where b between 100 and 50000")
        self.ask("insert into T_copy select b, a, c from T_plain order by c")
        self.ask("delete from T_unique where a & 3 = 0")
        self.ask("insert or replace into T_unique select a, b, c from T_plain")
        self.ask("alter table T_unique add column d integer default 123")
        for i in self.steps():
            self.ask("update T_unique set d = d + b * 2 where b between ? and ?", i * 50, i * 50 + 3000)
            self.ask("update T_unique set c = ? where a = ?", text(i * 31), i)
        self.ask("delete from T_plain where b between 20000 and 30000")
        self.ask("select sum(d), count(distinct c) from T_unique")

    def join_tables(self):
        self.ask("select x.c, z.a from T_plain x, T_unique y, T_copy z where x.b = y.b and y.b = z.a and x.a < 40 order by 1, 2")
        self.ask("select a, (select max(y.b) from T_unique y where y.a <= x.a), exists(select 1 from T_copy z where z.b = x.a) "
                 "from T_plain x order by a limit 50")
        self.ask("with recursive n(i) as (select 1 union all select i + 1 from n where i < 200) "
                 "select sum(i * i), group_concat(i) from n")

    def keys(self):
        self.ask("create table T_text(k text primary key, v integer) without rowid")
        self.put("insert or replace into T_text values(?, ?)", [(text(self.number(i) // 9), i) for i in range(self.rows)])
        self.ask("select k, v, row_number() over (order by v desc) from T_text order by k limit 60")
        self.ask("select distinct substr(k, 1, 4) from T_text order by 1")


def main():
    name, rows, mode = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    db = sqlite3.connect(name, isolation_level=None)
    print(db.execute("pragma journal_mode = " + mode).fetchone())
    workers = [Worker(name, k, rows) for k in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        print(worker.k, worker.seen.hexdigest())
    db.execute("analyze")
    db.execute("vacuum")
    print(db.execute("pragma integrity_check").fetchall(), db.execute("select count(*) from sqlite_master").fetchone())


main()
