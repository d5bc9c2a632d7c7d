#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Probes in running programs: what they count is what the program has counted itself; it computes what it computes natively."""
import array
import json
import mmap
import os
import random
import re
import signal
import socket
import struct
import subprocess
import time

import tbdtest

PROBED = os.path.join(tbdtest.PROGRAMS, "probed")
DO = ("do_add", "do_call", "do_loop", "do_table", "do_vector", "do_stack", "do_string", "do_flags", "do_memory")
OPEN, CODE, PLACE, TAKE, GUARD, START, STOP = range(1, 8)
COUNT = 1
END, PUT = 1, 37
RUNS = 20 if tbdtest.LONG else 2


def probe(script, argv, options=(), **more):
    return subprocess.run([tbdtest.TBD, "probe", "-q", *options, script, "--", *argv], capture_output=True, timeout=150, text=True,
                          env=tbdtest.clean_env(), check=False, **more)


def armed(argv, **more):
    process = subprocess.Popen([tbdtest.TBD, "arm", "--", *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                               env=tbdtest.clean_env(), **more)
    assert process.stdout.readline() == "ready\n"
    return process


def counts(text):
    """name -> calls, of the program's own lines."""
    return {name: int(value) for name, value in re.findall(r"^(do_\w+) (\d+)$", text, re.M)}


def native(*arguments):
    return subprocess.run([PROBED, *arguments], input="", capture_output=True, text=True, check=True).stdout


class Session:
    """The protocol of format/probe/probe.h, as a consumer that is not ours would speak it."""

    def __init__(self, pid):
        namespace = int(os.readlink("/proc/%d/ns/pid" % pid)[5:-1])
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.connect("\0tbd-armed-%d-%d" % (namespace, pid))
        self.fd = -1

    def ask(self, packet):
        self.socket.send(packet)
        reply, others, _, _ = self.socket.recvmsg(64, 256)
        for _, _, data in others:
            self.fd = array.array("i", data[:4])[0]
        return struct.unpack("<IIQ", reply)

    def open(self, maps=(), version=2, count=None):
        packet = struct.pack("<IIII", OPEN, len(maps) if count is None else count, version, 0)
        return self.ask((packet + b"".join(struct.pack("<IIIIqQ", *m) for m in maps)).ljust(16 + 32 * 32, b"\0"))

    def code(self, *instructions):
        return self.ask(struct.pack("<II", CODE, len(instructions)) + b"".join(struct.pack("<BBBBi", *i) for i in instructions))

    def places(self, kind, places):
        return self.ask(struct.pack("<II", kind, len(places)) + b"".join(struct.pack("<QII", a, c, 0) for a, c in places))

    def order(self, kind):
        return self.ask(struct.pack("<II", kind, 0))

    def count(self, map_index):
        """Of a map without keys, the sum of its four copies."""
        with mmap.mmap(self.fd, 0) as memory:
            at = 8192 + map_index * 64
            return sum(struct.unpack_from("<Q", memory, at + shard * 16 + 8)[0] for shard in range(4))


def addresses(pid, program, names):
    """Where functions of the program are in the process."""
    table = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    maps = open("/proc/%d/maps" % pid, encoding="utf-8").read()
    base = int(re.search(r"^(\w+)-.*%s$" % re.escape(os.path.realpath(program)), maps, re.M)[1], 16)
    return {name: base + int(re.search(r"^(\w+) \w %s$" % name, table, re.M)[1], 16) for name in names}


def instructions(program, names):
    """Offsets of the instructions of functions, by objdump."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", program], capture_output=True, text=True, check=True).stdout
    found = {}
    for name in names:
        body = re.search(r"^\w+ <%s>:\n(.*?)\n\n" % name, text, re.M | re.S)[1]
        found[name] = [int(line.split(":")[0], 16) for line in body.split("\n")
                       if re.match(r"\s+\w+:", line) and not re.search(r"\tud2|\(bad\)|\tint3", line)]
    return found


def test_counts_are_the_programs_own(_):
    """Entries and returns of functions, in four threads, with a signal handler that runs in between."""
    script = " ".join("uprobe:probed:%s { @%s = count() } uretprobe:probed:%s { @%s_ret = count() }" % (f, f, f, f) for f in DO
                      if f != "do_table")
    result = probe(script, [PROBED, "4", "1500"], input="")
    own = counts(result.stdout)
    seen = {name: int(value) for name, value in re.findall(r"^@(\w+): (\d+)$", result.stdout, re.M)}
    assert result.returncode == 0 and len(own) == len(DO), result
    for name in DO:
        if name not in ("do_table", "do_add"):
            assert seen[name] == seen[name + "_ret"] == own[name], (name, result.stdout)
    assert seen["do_add"] == own["do_add"] + 2 * own["do_call"], result.stdout
    assert native("4", "1500") == "".join(line + "\n" for line in result.stdout.split("\n") if line and line[0] != "@"), result


def test_signals_may_be_blocked_while_probes_are_hit(_):
    """Probes in code that runs with all signals blocked, and in a handler that blocks all: SIGTRAP stays deliverable."""
    result = probe("uprobe:probed:do_add { @ = count() } uprobe:probed:do_call { @c = count() }", [PROBED, "4", "1500", "masks"], input="")
    own = counts(result.stdout)
    seen = {name: int(value) for name, value in re.findall(r"^@(\w*): (\d+)$", result.stdout, re.M)}
    assert result.returncode == 0 and seen[""] == own["do_add"] + 2 * own["do_call"] and seen["c"] == own["do_call"], result
    process = armed([PROBED, "4", "1500", "masks"])
    tracer = subprocess.Popen([tbdtest.TBD, "probe", "-p", str(process.pid), "uprobe:probed:do_memory { @ = count() }"], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert "1 probes" in tracer.stderr.readline()
    own = counts(process.communicate("\n")[0])
    assert process.returncode == 0 and tracer.communicate()[0] == "@: %d\n" % own["do_memory"], own


def test_every_instruction_does_what_it_does_natively(_):
    """Branches, calls, string, vector, x87 instructions, the red zone, flags: each with a probe."""
    result = probe("insn:probed:do_* { @[reg(\"ip\")] = count() }", [PROBED, "2", "400"], input="")
    assert result.returncode == 0, result
    assert native("2", "400") == "".join(line + "\n" for line in result.stdout.split("\n") if line and line[0] != "@"), result
    assert len(re.findall(r"^@\[", result.stdout, re.M)) > 80, result.stdout


def test_signals_find_threads_in_the_program_s_code(_):
    """A handler that is called every 100 us, in threads that are mostly in a probe's code: it sees places of the program, its own
    hits count, and the program computes what it computes natively."""
    rounds = "1000000" if tbdtest.LONG else "250000"
    expected = re.search(r"^sum (\w+)$", native("4", rounds), re.M)[1]
    for script in ("{ @ = count() }", "{ @[arg0 & 1] = count() }"):
        result = probe("uprobe:probed:do_* " + script, [PROBED, "4", rounds, "where"], input="")
        looks, strange = map(int, re.search(r"^looks (\d+), strange (\d+)$", result.stdout, re.M).groups())
        own = counts(result.stdout)
        seen = sum(int(value) for value in re.findall(r"^@.*: (\d+)$", result.stdout, re.M))
        assert result.returncode == 0 and looks > 100 and strange == 0, result
        assert seen == sum(own.values()) + 2 * own["do_call"] and "sum %s\n" % expected in result.stdout, result


def test_jumps_and_traps_do_the_same(_):
    """Nearly all of these functions have room for a jump; --traps has none.  The counts are the same."""
    script = " ".join("uprobe:probed:%s /arg0 & 1/ { @%s = count() } uprobe:probed:%s { @s_%s = sum(arg0 * 3 - 1); @a_%s = avg(arg0 >> 2) }"
                      % (f, f, f, f, f) for f in DO)
    run = lambda *options: subprocess.run([tbdtest.TBD, "probe", *options, script, "--", PROBED, "2", "2000"], input="", text=True, timeout=150,
                                          capture_output=True, env=tbdtest.clean_env(), check=True)
    jumps, traps = run(), run("--traps")
    assert "18 probes" in jumps.stderr and ", 9 as jumps" in jumps.stderr and ", 0 as jumps" in traps.stderr, (jumps, traps)
    assert jumps.stdout == traps.stdout and len(re.findall(r"^@", jumps.stdout, re.M)) == 3 * len(DO), (jumps, traps)


def test_nothing_is_lost_while_probes_come_and_go(_):
    """Some places keep their probe: their counts are exact whatever is placed and taken beside them, in the same functions."""
    for run in range(RUNS):
        chance = random.Random(run)
        process = armed([PROBED, "8", "200000" if tbdtest.LONG else "12000"])
        session = Session(process.pid)
        assert session.open([(COUNT, 0, 1, 0, 0, 0)] * (len(DO) + 1))[0] == 0
        assert session.code(*[i for m in range(len(DO) + 1) for i in ((PUT, 0, 0, 0, m), (END, 0, 0, 0, 0))])[0] == 0
        entry = addresses(process.pid, PROBED, DO)
        found = instructions(PROBED, DO)
        base = entry["do_add"] - found["do_add"][0]
        others = [base + offset for name in DO for offset in found[name][1:]]
        assert session.places(PLACE, [(entry[name], 2 * i) for i, name in enumerate(DO)])[0] == 0
        assert session.order(START)[0] == 0

        def change(how, some, map_):
            answer = session.places(how, [(a, map_) for a in some])
            assert answer[0] == 0, (run, how, len(some), answer)

        # The first are there before it runs: on a busy machine it may be through before the second.
        some = others
        change(PLACE, some, 2 * len(DO))
        process.stdin.write("\n")
        process.stdin.flush()
        has_ended = False
        while not has_ended:
            has_ended = len(counts_so_far(process)) != 0
            change(TAKE, some, 0)
            some = chance.sample(others, chance.randrange(1, len(others) if tbdtest.LONG else 16))
            change(PLACE, some, 2 * len(DO))
        assert session.order(STOP)[0] == 0
        seen = {name: session.count(i) for i, name in enumerate(DO)}
        process.stdin.close()
        text = process.stdout.read()
        own = counts(text)
        own["do_add"] += 2 * own["do_call"]
        assert process.wait() == 0 and seen == own, (seen, own)
        session.socket.close()


def test_places_may_come_and_go_for_ever(_):
    """More places in turn than a session can have at once, while threads meet them: what stays counts exactly, and what comes last does."""
    process = armed([PROBED, "4", "12000"])
    session, entry = Session(process.pid), addresses(process.pid, PROBED, DO)
    assert session.open([(COUNT, 0, 1, 0, 0, 0)] * 4)[0] == 0
    assert session.code(*[i for m in range(4) for i in ((PUT, 0, 0, 0, m), (END, 0, 0, 0, 0))])[0] == 0
    assert session.places(PLACE, [(entry["do_loop"], 0)])[0] == 0 and session.order(START)[0] == 0
    many = [(entry["do_call"], 2)] * 1000

    def turn():
        assert session.places(PLACE, many)[0] == 0 and session.places(TAKE, many[:1])[0] == 0

    for _ in range(270):
        turn()
    process.stdin.write("\n")
    process.stdin.flush()
    turns = 0
    while not counts_so_far(process) or turns < 20:
        turn()
        turns += 1
    assert session.order(STOP)[0] == 0
    own = counts(process.stdout.readline() + "".join(process.stdout.readline() for _ in DO))
    assert session.count(0) == own["do_loop"] and session.count(3) == 0, (session.count(0), own)
    session.socket.close()
    process.communicate("\n")
    assert process.returncode == 0


def test_jumps_come_back(_):
    """A jump makes room for a probe beside it, and comes back when that has gone; a packet that takes what lies only under a jump changes nothing."""
    process = armed([PROBED, "2", "3000"])
    session, entry = Session(process.pid), addresses(process.pid, PROBED, DO)
    assert session.open([(COUNT, 0, 1, 0, 0, 0)] * 2)[0] == 0
    assert session.code(*[i for m in range(2) for i in ((PUT, 0, 0, 0, m), (END, 0, 0, 0, 0))])[0] == 0
    found = instructions(PROBED, DO)
    base = entry["do_add"] - found["do_add"][0]
    inner = {name: base + found[name][1] for name in DO if found[name][1] - found[name][0] < 5}

    def bytes_at(address):
        with open("/proc/%d/mem" % process.pid, "rb") as memory:
            memory.seek(address)
            return memory.read(5)

    assert session.places(PLACE, [(a, 0) for a in entry.values()])[0] == 0 and session.order(START)[0] == 0
    before = {name: bytes_at(entry[name]) for name in DO}
    inner = {name: at for name, at in inner.items() if before[name][0] == 0xe9}
    assert len(inner) >= 3, (inner, before)
    assert session.places(TAKE, [(a, 0) for a in inner.values()])[0] == 0
    assert {name: bytes_at(entry[name]) for name in DO} == before
    for _ in range(3):
        for name, at in inner.items():
            assert session.places(PLACE, [(at, 2)])[0] == 0 and bytes_at(entry[name])[0] == 0xcc, name
        assert session.places(TAKE, [(a, 0) for a in inner.values()])[0] == 0
        assert {name: bytes_at(entry[name]) for name in DO} == before
    process.stdin.write("\n")
    process.stdin.flush()
    own = counts("".join(process.stdout.readline() for _ in DO))
    assert session.order(STOP)[0] == 0 and session.count(0) == sum(own.values()) + 2 * own["do_call"], own
    session.socket.close()
    process.communicate("\n")
    assert process.returncode == 0


def counts_so_far(process):
    """The program has printed: it has ended its rounds, and waits."""
    import select
    return select.select([process.stdout], [], [], 0)[0]


def test_libc_with_a_probe_on_each_instruction(_):
    """Functions of libc that the program uses, all their instructions: its output stays."""
    sort = tbdtest.need("sort")
    data = "".join("%d %s\n" % (random.Random(i).randrange(10 ** 6), "x" * (i % 50)) for i in range(200))
    expected = subprocess.run([sort], input=data, capture_output=True, text=True, env=tbdtest.clean_env(), check=True).stdout
    patterns = ["str*", "mem*", "qsort*"] if not tbdtest.LONG else ["str*", "mem*", "*alloc*", "free", "*printf*", "f*", "__libc_*", "*locale*"]
    for pattern in patterns:
        result = probe("insn:libc:%s { @ = count() } end { }" % pattern, [sort], input=data)
        shown = re.sub(r"^@: \d+\n", "", result.stdout, flags=re.M)
        assert result.returncode == 0 and shown == expected, (pattern, result.stderr, len(shown))


def test_a_program_with_a_probe_on_each_instruction(_):
    """All functions of the program itself, also those of the startup code, whose symbols have no size."""
    result = probe("insn:probed:* { @ = count() }", [PROBED, "2", "100"], input="")
    assert result.returncode == 0 and re.sub(r"^@.*\n", "", result.stdout, flags=re.M) == native("2", "100"), result


def test_language(_):
    """Predicates, values, maps of all kinds, printf, JSON."""
    script = """
        uprobe:probed:do_add /arg0 % 2 == 0 && (arg0 / 2) >= 0 || arg0 == 1/ { @even = count(); @kinds[arg0 % 2, comm] = count() }
        uprobe:probed:do_add { $x = arg0 & 7; @s = stats($x); @a = avg($x); @l = min($x); @m = max($x); @h = lhist($x, 0, 8, 2); @sum = sum(1) }
        uprobe:probed:do_memory { @bad = sum(*(int32 *)16) }
        uprobe:probed:do_vector /$never/ { }
    """
    wrong = probe(script, [PROBED, "1", "50"], input="")
    assert wrong.returncode == 2 and "$never has no value yet" in wrong.stderr and "^" in wrong.stderr, wrong
    result = probe(script.replace("/$never/", ""), [PROBED, "1", "900"], ["--json"], input="")
    own = counts(result.stdout)
    rows = [json.loads(line) for line in result.stdout.split("\n") if line.startswith("{")]
    calls = own["do_add"] + 2 * own["do_call"]
    by = {(row["name"], str(row["key"])): row["value"] for row in rows}
    assert by[("sum", "[]")] == calls and by[("s", "[]")]["count"] == calls, rows
    assert by[("l", "[]")] == 0 and by[("m", "[]")] == 7 and by[("s", "[]")]["max"] == 7, rows
    assert sum(by[("h", "[]")].values()) == calls and set(by[("h", "[]")]) == {"[0, 2)", "[2, 4)", "[4, 6)", "[6, 8)"}, rows
    assert by[("even", "[]")] == by[("kinds", "[0, 'probed']")], rows
    assert ("bad", "[]") not in by and "at %d hits a value could not be read" % own["do_memory"] in result.stderr, result.stderr


NODES = r"""
#include <stdio.h>
#include <stdlib.h>
enum color { RED, GREEN };
struct node { struct node *next; const char *name; int count; short small[4]; unsigned bits : 3, more : 5; enum color color; char text[8]; };
static struct node *head;
long total = -5;
__attribute__((noinline)) int visit(struct node *n, int depth)
{
    int before = n->count;
    n->count += depth;
    total += n->count; /* AFTER */
    return n->count - before;
}
int main(void)
{
    int sum = 0;
    for (int i = 0; i < 40; i++) {
        struct node *n = calloc(1, sizeof(*n));
        *n = (struct node){ .next = head, .name = i % 2 ? "odd" : "even", .count = i * 100, .bits = (unsigned)i, .color = i & 1, .text = "t" };
        n->small[2] = (short)-i;
        n->text[1] = (char)('a' + i % 26);
        head = n;
    }
    for (struct node *n = head; n; n = n->next) {
        printf("own %s %d %d %u %d %s %ld %d %d\n", n->name, n->count, n->small[2], n->bits, n->color, n->text, total, n->next != 0, n->count % 7);
        sum += visit(n, n->count % 7);
    }
    return sum != 0 ? 0 : 1;
}
"""


def test_variables_of_the_program(folder):
    """Members, elements, bit-fields, texts and globals at each hit are what the program says of them; unoptimised and optimised."""
    source = os.path.join(folder, "nodes.c")
    with open(source, "w", encoding="utf-8") as f:
        f.write(NODES)
    after = 1 + next(i for i, line in enumerate(NODES.split("\n")) if "AFTER" in line)
    for level in ("-O0", "-O2"):
        program = os.path.join(folder, "nodes" + level)
        subprocess.run(["gcc", "-g", level, source, "-o", program], check=True)
        names = "str(n->name), n->count, n->small[1 + 1], n->bits, n->color, str(n->text), total, n->next != 0, depth"
        result = probe('uprobe:nodes%s:visit { printf("own %%s %%d %%d %%u %%d %%s %%d %%d %%d\\n", %s) }' % (level, names), [program], input="")
        own = re.findall(r"^own .*$", result.stdout, re.M)
        assert result.returncode == 0 and not result.stderr and len(own) == 80, result
        assert sorted(own)[::2] == sorted(own)[1::2], own  # each once by the program, once by us
        result = probe("line:nodes.c:%d /n->count > 2000 && *(&n->color) == 1/ { @[str(n->name), n->color] = sum((long)n->count - (n->count / 100) * 100) }"
                       % after, [program], ["--json"], input="")
        rows = [json.loads(line) for line in result.stdout.split("\n") if line.startswith("{")]
        expected = sum((i * 100) % 7 for i in range(1, 40, 2) if i * 100 + i * 100 % 7 > 2000)
        assert [(r["key"], r["value"]) for r in rows] == [(["odd", 1], expected)], (rows, expected)
        result = probe("insn:nodes%s:visit { @[before] = count() }" % level, [program], input="")
        assert result.returncode == 0, result
        if level == "-O2":  # it begins to be where it is loaded
            assert re.search(r"\d+ of \d+ places of insn:nodes-O2:visit are left out", result.stderr), result.stderr
        for wrong, text in (("nosuch->count", "no variable 'nosuch'"), ("n->nosuch", "no member 'nosuch'"), ("*n", "a struct is no single value")):
            result = probe('uprobe:nodes%s:visit { printf("%%d\\n", %s) }' % (level, wrong), [program], input="")
            assert result.returncode and text in result.stderr and "^" in result.stderr and "own" not in result.stdout, result


STEPS = r"""
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
static volatile sig_atomic_t over;
static void end(int number) { over = number; }
__attribute__((noinline, noipa)) uint64_t step(uint64_t i) { return i * 3 + 1; }
int main(void)
{
    struct timespec moment = { 0, 1000000 };
    uint64_t i = 0, sum = 0;
    signal(SIGTERM, end);
    puts("ready");
    fflush(stdout);
    while (!over) {
        for (int k = 0; k < 200; k++)
            sum += step(i++);
        nanosleep(&moment, NULL);
    }
    return sum == 3 * (i * (i - 1) / 2) + i ? 7 : 1;
}
"""


def is_stopped(pid):
    """The row may come before the signal has stopped the last thread."""
    for _ in range(1000):
        with open("/proc/%d/stat" % pid, encoding="utf-8") as f:
            if f.read().rsplit(")", 1)[1].split()[0] == "T":
                return True
        time.sleep(0.02)
    return False


def test_hits_are_triggers(folder):
    """record() and dump() end the session and begin then; stop() stops the process at the hit, and ctrl-C lets it go on."""
    program, source, root = (os.path.join(folder, name) for name in ("steps", "steps.c", "traces"))
    with open(source, "w", encoding="utf-8") as f:
        f.write(STEPS)
    subprocess.run(["gcc", "-g", "-O1", source, "-o", program], check=True)
    os.mkdir(root)
    environment = tbdtest.clean_env({"TBD_DIR": root})
    process = armed([program])
    wrong = probe("uprobe:steps:step { record(0) }", [program], input="")
    assert wrong.returncode == 2 and "1 to 86400 seconds" in wrong.stderr, wrong
    for words, statement in ((["-p", str(process.pid)], "record(1)"), (["-p", str(process.pid)], "dump()")):
        result = subprocess.run([tbdtest.TBD, "probe", "-q", "--json", *words, "uprobe:steps:step /i > 100/ { %s }" % statement],
                                capture_output=True, text=True, timeout=100, check=False, env=environment)
        rows = [json.loads(line) for line in result.stdout.split("\n") if line]
        assert result.returncode == 0, result
        assert [(r["type"], r["trigger"], r["place"]) for r in rows] == [("trigger", statement.split("(")[0], "steps!step")], result
    tbdtest.wait_organizers(root)
    recording, dump = tbdtest.traces(root)
    recording.verify()
    assert recording.count("func_enter", "func==step") > 0 and recording.info()["end"].startswith("detached")
    assert "steps!step" in dump.tbdq("path", "last", json_output=False).out.decode() or dump.ask("bt"), dump
    with subprocess.Popen([tbdtest.TBD, "probe", "-q", "-p", str(process.pid), "uprobe:steps:step { stop() }"], stdout=subprocess.PIPE,
                          text=True, env=environment) as asking:
        said, stopped = asking.stdout.readline(), is_stopped(process.pid)
        asking.send_signal(signal.SIGINT)
    assert re.match(r"stop: thread \d+ at steps!step", said) and stopped, said
    assert asking.returncode == 0
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 7


def test_records_come_in_order_and_whole(_):
    """More records than the rings hold: the program waits for the consumer; each thread's come in its own order."""
    result = probe('uprobe:probed:do_add { printf("%d %d\\n", tid, nsecs) }', [PROBED, "4", "9000"], input="")
    own = counts(result.stdout)
    rows = [tuple(map(int, line.split())) for line in result.stdout.split("\n") if re.fullmatch(r"\d+ \d+", line)]
    assert len(rows) == own["do_add"] + 2 * own["do_call"], (len(rows), own)
    for thread in {tid for tid, _ in rows}:
        times = [t for tid, t in rows if tid == thread]
        assert times == sorted(times)


def test_what_cannot_be_probed_is_said(_):
    """No such process, function, module; not armed; two at once; a wrong script shows its place."""
    run = lambda *a: subprocess.run([tbdtest.TBD, "probe", *a], capture_output=True, text=True, timeout=60, check=False)
    assert run("-p", str(2 ** 22 + 7), "uprobe:a:b { @ = count() }").returncode == 4
    wrong = run("-p", "1", "uprobe:a:b { @ = cuont() }")
    assert wrong.returncode == 2 and "1: uprobe:a:b { @ = cuont() }" in wrong.stderr, wrong
    process = armed([PROBED, "1", "10"])
    for script, text in (("uprobe:probed:nothing { @ = count() }", "no function nothing"), ("uprobe:libnone:f { @ = count() }", "no module"),
                         ("line:nothing.c:3 { @ = count() }", "no code belongs"),
                         ("range:libc:0x10-0x20 { @ = count() }", "hint: a range begins where an instruction does"), ("address:0x10 { @ = count() }", "no code at this address")):
        result = run("-p", str(process.pid), script)
        assert result.returncode in (1, 4) and text in result.stderr, result
    process.communicate("\n")
    assert process.returncode == 0


ODD = r"""
#include <stdio.h>
__attribute__((noinline)) long f_even(long x) { __asm__ volatile("" : "+r"(x)); return x * 1234567 + 3; }
__asm__(".globl f_odd\n.type f_odd, @function\nf_odd = f_even + 1\n.size f_odd, 2\n"
        ".globl f_raises\n.type f_raises, @function\nf_raises: ud2\n.size f_raises, 2");
int main(void)
{
    long sum = 0;
    puts("ready");
    fflush(stdout);
    getchar();
    for (long i = 0; i < 1000; i++)
        sum = f_even(sum + i);
    printf("%ld\n", sum);
    return 0;
}
"""


def test_the_wrong_word_is_pointed_at(_):
    """The arrow stands below it, not behind."""
    for clause, word, message in (("@x = histo(arg0)", "histo", "which is not histo"), ("@x[foo(3)] = count()", "foo", "foo is no function"),
                                  ("@x = count(); @y[@x] = count()", "@x]", "a map is no value"),
                                  ("@x[tid] = count(); @x = count()", "@x =", "@x is used in another way"), ("$a = 1 + qux(2)", "qux", "qux is no function")):
        script = "uprobe:libc:malloc { %s }" % clause
        result = subprocess.run([tbdtest.TBD, "probe", "-p", str(os.getpid()), script], capture_output=True, text=True, check=False)
        lines = result.stderr.split("\n")
        assert result.returncode == 2 and message in lines[0] and lines[1] == "  1: " + script, result
        assert lines[2] == " " * (5 + script.index(word)) + "^", (word, result)
    result = subprocess.run([tbdtest.TBD, "probe", "-p", "2147483646", "uprobe:libc:malloc { @ = count() }"], capture_output=True, text=True, check=False)
    assert result.returncode == 4 and "no such process\ntbd probe: hint: pgrep" in result.stderr, result


def test_places_that_cannot_be_probed_are_left_out(folder):
    """A trap in the middle of an instruction would change what the program computes: no symbol, address or packet leads to one. Of a pattern
    the rest is probed, and what is left out is said; all functions of libc can be asked for."""
    source, program = os.path.join(folder, "odd.c"), os.path.join(folder, "odd")
    with open(source, "w", encoding="ascii") as out:
        out.write(ODD)
    subprocess.run([tbdtest.need("cc"), "-O1", "-o", program, source], check=True)
    expected = subprocess.run([program], input="\n", capture_output=True, text=True, check=True).stdout
    result = subprocess.run([tbdtest.TBD, "probe", "uprobe:odd:f_* { @ = count() } uprobe:libc:* { @libc = count() }", "--", program], input="\n",
                            capture_output=True, text=True, timeout=150, env=tbdtest.clean_env(), check=False)
    assert result.returncode == 0 and re.sub(r"^@.*\n", "", result.stdout, flags=re.M) == expected and "@: 1000\n" in result.stdout, result
    assert re.search(r"^tbd probe: 1 of \d+ places are left out: the instruction there raises a signal itself \(odd!f_raises\)$", result.stderr, re.M), result
    for function, code, text in (("f_raises", 4, "raises a signal itself"), ("f_odd", 1, "no function f_odd, or no instruction there")):
        result = probe("uprobe:odd:%s { @ = count() }" % function, [program], input="\n")
        assert result.returncode == code and text in result.stderr, result
    result = probe("insn:libc:* { @ = count() }", [program], input="\n")
    assert result.returncode == 4 and re.search(r"\d{6} places are too many: a session has at most 262144$", result.stderr, re.M), result
    process = armed([program])
    at = addresses(process.pid, program, ["f_even"])["f_even"]
    result = subprocess.run([tbdtest.TBD, "probe", "-p", str(process.pid), "address:%d { @ = count() }" % (at + 1)], capture_output=True, text=True,
                            timeout=60, check=False)
    assert result.returncode == 4 and "in the middle of an instruction" in result.stderr, result
    session = Session(process.pid)
    assert session.open([(COUNT, 0, 1, 0, 0, 0)])[0] == 0 and session.code((PUT, 0, 0, 0, 0), (END, 0, 0, 0, 0))[0] == 0
    assert session.places(PLACE, [(at + 1, 0)])[0] == 0 and session.places(PLACE, [(at, 0)])[0] != 0  # they overlap
    assert session.order(STOP)[0] == 0
    session.socket.close()
    assert "ready\n" + process.communicate("\n")[0] == expected and process.returncode == 0, process.returncode


LATE = r"""
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    long calls = 0;
    for (int i = 0; i < argc - 2; i++) {
        void *library = dlopen(argv[1 + i], RTLD_NOW);
        long (*late)(long) = library ? (long (*)(long))dlsym(library, "late") : NULL;
        for (int k = 0; late && k < 1000; k++)
            calls += late(k) > 0;
        if (argv[argc - 1][0] == 'c')
            dlclose(library);
    }
    printf("%ld calls\n", calls);
    return 0;
}
"""
LATE_LIBRARY = r"""
static long count;
__attribute__((noinline)) long late(long x) { return ++count + x - x; }
__attribute__((constructor)) static void begin(void) { for (int i = 0; i < 5; i++) late(-1); }
"""


def test_what_comes_later_is_waited_for(folder):
    """--pending: functions of libraries that are loaded while the program runs, from their first call (in a constructor) on; each time when
    one is unloaded and loaded again; and a program's children that execute another one do not wait for probes."""
    compiler = tbdtest.need("cc")
    for name, text, options in (("late", LATE, ["-ldl"]), ("liblate.so", LATE_LIBRARY, ["-shared", "-fPIC"]),
                                ("libother.so", LATE_LIBRARY, ["-shared", "-fPIC"])):
        source = os.path.join(folder, name + ".c")
        with open(source, "w", encoding="ascii") as out:
            out.write(text)
        subprocess.run([compiler, "-O1", "-g", "-o", os.path.join(folder, name), source, *options], check=True)
    program, late, other = (os.path.join(folder, name) for name in ("late", "liblate.so", "libother.so"))
    script = "uprobe:liblate:late { @entry = count() } uretprobe:lib*:late { @ret = count() } line:libother.so.c:3 { @line = count() }"
    refused = probe(script, [program, late, "keep"])
    assert refused.returncode == 1 and "no module liblate" in refused.stderr and "--pending" in refused.stderr, refused
    for how in ("keep", "close"):
        result = probe(script, [program, late, other, late, how], ["--pending"])
        loaded = 1 if how == "keep" else 2 # the constructor runs when the library is mapped
        entries = 2000 + 5 * loaded
        assert result.returncode == 0 and "3000 calls\n" in result.stdout, result
        seen = {name: int(value) for name, value in re.findall(r"^@(\w+): (\d+)$", result.stdout, re.M)}
        assert seen == {"entry": entries, "ret": entries + 1005, "line": 1005}, (how, result)
    result = probe("uprobe:libc:malloc { @ = count() }", ["/bin/sh", "-c", "/bin/echo child; true"])
    assert result.returncode == 0 and "child\n" in result.stdout, result


def test_a_script_goes_on_in_a_program_that_is_executed(folder):
    """--pending: every call counts, from the new program's first instruction on, after several execve; the exit status is the last one's.
    A child that executes another program does not wait.  One that has lost tbd's environment is attached to."""
    script = "uprobe:probed:do_add { @ = count() } begin { printf(\"begin\\n\") } end { printf(\"end\\n\") }"
    command = "/bin/sh -c 'exit 3'; exec env A=1 sh -c 'exec \"$0\" 2 500' \"$0\""
    result = probe(script, ["sh", "-c", command, PROBED], ["--pending"], input="\n")
    own = counts(result.stdout)
    expected = own["do_add"] + 2 * own["do_call"]
    assert result.returncode == 0 and result.stdout.count("begin\n") == result.stdout.count("end\n") == 1, result
    assert int(re.search(r"^@: (\d+)$", result.stdout, re.M)[1]) == expected, (expected, result)
    result = probe(script, ["sh", "-c", "exec sh -c 'exit 7'"], ["--pending"])
    assert result.returncode == 7 and result.stdout == "begin\nend\n", result
    fifo = os.path.join(folder, "fifo")
    os.mkfifo(fifo)
    command = "(sleep 4; echo) > %s & exec env -i %s 2 500 < %s" % (fifo, PROBED, fifo)
    result = probe(script, ["sh", "-c", command], ["--pending"])
    own = counts(result.stdout)
    assert result.returncode == 0 and "@: %d\n" % (own["do_add"] + 2 * own["do_call"]) in result.stdout, result


def test_a_program_that_is_executed_is_said(_):
    """Without --pending: the script ends.  The next script finds what runs now, also where tbd's environment is gone."""
    for command in ("sleep 60", "env -i sleep 60"):
        process = armed(["sh", "-c", "echo ready; read x; exec " + command])
        with subprocess.Popen([tbdtest.TBD, "probe", "-p", str(process.pid), "uprobe:libc:malloc { @ = count() }"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as session:
            said = session.stderr.readline()
            assert " 1 probes in process %d" % process.pid in said, said
            process.stdin.write("\n")
            process.stdin.flush()
            out, said = session.communicate(timeout=60)
        assert session.returncode == 0 and out.startswith("@"), (out, said)
        assert re.search("process %d has executed /.*: the probes are gone\n.*--pending" % process.pid, said), said
        for _ in range(100): # env is executed before it
            if open("/proc/%d/comm" % process.pid, encoding="utf-8").read() == "sleep\n":
                break
            time.sleep(0.05)
        result = subprocess.run([tbdtest.TBD, "probe", "-p", str(process.pid), "uprobe:libc:malloc { @ = count() } interval:ms:1 { exit() }"],
                                capture_output=True, text=True, timeout=100, check=False)
        assert result.returncode == 0 and "1 probes" in result.stderr, result
        process.kill()
        process.communicate()


INLINED = r"""
#include <stdio.h>
#include <stdlib.h>
static volatile long sink;
static inline __attribute__((always_inline)) void price(long amount, long rate)
{
    sink += amount;
    sink ^= rate * amount;
}
static inline void both(long amount, long rate) { sink += amount * rate; sink ^= amount; }
__attribute__((noinline)) void first(long n) { if (n & 1) price(n, 3); sink++; }
__attribute__((noinline)) void second(long n) { price(n * 2, 5); if (n % 3 == 0) price(n, 7); both(n, n); }
int main(int argc, char **argv)
{
    void (*volatile called)(long, long) = both;
    long count = atol(argv[argc - 1]);
    for (long i = 0; i < count; i++) {
        first(i);
        second(i);
        called(i, 1);
    }
    return sink == 0;
}
"""


def test_inlined_copies_and_ranges(folder):
    """Where the code of inlined copies begins, as often as the source says; what a call alone has is refused there. Instructions of a part of a
    function, and between two addresses, as often as its loop goes round."""
    source, program = os.path.join(folder, "inlined.c"), os.path.join(folder, "inlined")
    with open(source, "w", encoding="ascii") as out:
        out.write(INLINED)
    subprocess.run([tbdtest.need("cc"), "-O2", "-g", "-o", program, source], check=True)
    numbers = lambda text: {name: int(value) for name, value in re.findall(r"^@(\w+): (-?\d+)$", text, re.M)}
    script = "uprobe:inlined:price { @price = count(); @amounts = sum(amount) } uprobe:inlined:both { @both = count() }"
    result = probe(script, [program, "300"])
    assert result.returncode == 0, result
    assert numbers(result.stdout) == {"price": 150 + 300 + 100, "both": 600,
                                      "amounts": sum(i * (i & 1) + i * 2 + i * (i % 3 == 0) for i in range(300))}, result
    result = probe("uprobe:inlined:both /arg0 >= 0/ { @both = count() } uretprobe:inlined:both { @ret = count() }", [program, "300"])
    assert numbers(result.stdout) == {"both": 300, "ret": 300} and "1 inlined copies of both are left out: arg0" in result.stderr, result
    result = probe("uretprobe:inlined:price { @ = count() }", [program, "300"])
    assert result.returncode == 2 and "price is inlined everywhere" in result.stderr, result
    start = int(re.search(r"^(\w+) \w do_loop$", subprocess.run(["nm", PROBED], capture_output=True, text=True, check=True).stdout, re.M)[1], 16)
    script = ("insn:probed:do_loop+7..do_loop+12 { @round = count() } uprobe:probed:do_loop+0..7 { @head = count() } "
              "range:probed:%#x-%#x { @range[reg(\"ip\")] = count() }" % (start + 7, start + 10))
    result = probe(script, [PROBED, "2", "400"], input="")
    own = counts(result.stdout)["do_loop"] # mov, xor; add, loop: five rounds
    assert result.returncode == 0 and numbers(result.stdout) == {"round": 10 * own, "head": 2 * own}, result
    assert re.findall(r"^@range\[.*\]: (\d+)$", result.stdout, re.M) == [str(5 * own)], result
    for wrong, text in (("insn:probed:do_loop+9..+3", "empty"), ("insn:probed:do_loop+1..do_add+3", "ends in the function"),
                        ("uretprobe:probed:do_loop+1..3", "no range"), ("range:probed:0x10-0x10", "empty")):
        result = probe(wrong + " { @ = count() }", [PROBED, "1", "10"], input="")
        assert result.returncode == 2 and text in result.stderr, result
    result = probe("range:probed:0x7000000-0x7000010 { @ = count() }", [PROBED, "1", "10"], input="")
    assert result.returncode == 1 and "no instructions there" in result.stderr, result


def test_threads_that_block_all_signals(_):
    """SIGTRAP is taken out of their masks for the session, where ptrace is allowed; else the session is refused."""
    process = armed([PROBED, "1", "10", "block"])
    seen = subprocess.Popen([tbdtest.TBD, "probe", "-p", str(process.pid), "uprobe:probed:do_add { @ = count() }"], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    line = seen.stderr.readline()
    own = counts(process.communicate("\n")[0])
    out = seen.communicate(timeout=60)[0]
    assert process.returncode == 0 and len(own) == len(DO), own
    if "blocks SIGTRAP" in line and os.geteuid() != 0:
        assert seen.returncode == 4 and not out, (line, out)
    else:
        assert "1 probes" in line and out == "@: %d\n" % (own["do_add"] + 2 * own["do_call"]), (line, out, own)


MOMENTS = r"""
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int is_over;
static void *nothing(void *x) { free(malloc(100)); return x; }
static void *make_threads(void *x)
{
    pthread_t thread;
    while (!is_over) {
        if (pthread_create(&thread, NULL, nothing, NULL) != 0 || pthread_join(thread, NULL) != 0)
            abort();
        usleep(100);
    }
    return x;
}
static void *make_programs(void *x)
{
    char *argv[] = { "true", NULL }, *none[] = { NULL };
    int status;
    pid_t child;
    while (!is_over) {
        if (posix_spawnp(&child, "true", NULL, NULL, argv, none) != 0 || waitpid(child, &status, 0) != child || status != 0)
            abort();
        usleep(1000);
    }
    return x;
}
int main(int argc, char **argv)
{
    void *(*const kinds[])(void *) = { make_threads, make_threads, make_programs };
    pthread_t threads[3];
    (void)argv;
    for (int i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, kinds[i], NULL) != 0)
            return 1;
    puts("ready");
    fflush(stdout);
    getchar();
    is_over = argc;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    puts("done");
    return 0;
}
"""


def test_sessions_begin_and_end_while_signals_are_blocked_for_moments(folder):
    """The C library blocks all signals while it makes a thread, ends one, or starts a program: the kernel would end the process at a trap there.
    Sessions begin and end at any moment of that."""
    source, program = os.path.join(folder, "moments.c"), os.path.join(folder, "moments")
    with open(source, "w", encoding="ascii") as out:
        out.write(MOMENTS)
    subprocess.run([tbdtest.need("cc"), "-O1", "-o", program, source, "-lpthread"], check=True)
    process = armed([program])
    begun = 0
    for _ in range(200 if tbdtest.LONG else 12):
        result = subprocess.run([tbdtest.TBD, "probe", "-q", "-p", str(process.pid), "uprobe:libc:malloc { @ = count() } interval:ms:5 { exit() }"],
                                capture_output=True, text=True, timeout=150, check=False)
        begun += result.returncode == 0
        assert process.poll() is None and (result.returncode == 0 or "blocks SIGTRAP" in result.stderr), (process.returncode, result)
    text = process.communicate("\n")[0]
    assert process.returncode == 0 and text == "done\n" and begun > 0, (process.returncode, text, begun)


MASKS = r"""
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static volatile int is_over;
static volatile long handled;
static void on_signal(int signo) { handled += signo == SIGSTKFLT; }
static void *change_masks(void *x)
{
    sigset_t some, before;
    sigemptyset(&some);
    sigaddset(&some, SIGUSR2);
    while (!is_over)
        if (pthread_sigmask(SIG_BLOCK, &some, &before) != 0 || pthread_sigmask(SIG_SETMASK, &before, NULL) != 0 || sigismember(&before, SIGTRAP))
            abort();
    return x;
}
static void *handle(void *x)
{
    for (long i = 1; !is_over; i++) {
        signal(SIGSTKFLT, on_signal);
        raise(SIGSTKFLT);
        if (handled != i || signal(SIGSTKFLT, i % 2 ? SIG_DFL : SIG_IGN) != on_signal)
            abort();
    }
    return x;
}
int main(int argc, char **argv)
{
    pthread_t threads[24];
    int count = atoi(argv[1]);
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, i == 0 && argc > 2 ? handle : change_masks, NULL) != 0)
            return 1;
    puts("ready");
    fflush(stdout);
    getchar();
    is_over = 1;
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    puts("done");
    return 0;
}
"""


def test_threads_in_the_trap_s_handler_do_not_block_it(folder):
    """Threads that change their masks all the time are mostly in the handler, with all signals blocked but one.  Sessions begin all the same,
    also where the program now handles the signal that is that one, and now does not; it gets its signals in any case."""
    source, program = os.path.join(folder, "masks.c"), os.path.join(folder, "masks")
    with open(source, "w", encoding="ascii") as out:
        out.write(MASKS)
    subprocess.run([tbdtest.need("cc"), "-O1", "-o", program, source, "-lpthread"], check=True)
    for words in (("24",), ("2", "handles")):
        process = armed([program, *words])
        for _ in range(100 if tbdtest.LONG else 6):
            result = subprocess.run([tbdtest.TBD, "probe", "-q", "-p", str(process.pid), "uprobe:libc:pthread_sigmask { @ = count() } interval:ms:50 { exit() }"],
                                    capture_output=True, text=True, timeout=150, check=False)
            assert process.poll() is None and result.returncode == 0, (words, process.returncode, result)
        text = process.communicate("\n")[0]
        assert process.returncode == 0 and text == "done\n", (words, process.returncode, text)


def test_armed_program_is_as_without(_):
    """No thread, descriptor or child more than natively; the keeper goes with the program."""
    script = ("import os, threading; print(sorted(os.listdir('/proc/self/fd')), os.listdir('/proc/self/task').__len__());"
              "\ntry: os.waitpid(-1, os.WNOHANG)\nexcept ChildProcessError: print('none')")
    python = tbdtest.need("python3")
    same = subprocess.run([python, "-c", script], capture_output=True, text=True, check=True).stdout
    result = subprocess.run([tbdtest.TBD, "arm", "--", python, "-c", script], capture_output=True, text=True, check=True, timeout=60,
                            env=tbdtest.clean_env())
    assert result.stdout == same and not result.stderr, result
    process = armed([PROBED, "1", "10"])
    keepers = lambda: [p for p in os.listdir("/proc") if p.isdigit() and is_keeper(p, process.pid)]
    for _ in range(100): # it takes its name after the program has begun
        if len(keepers()) == 1:
            break
        time.sleep(0.05)
    assert len(keepers()) == 1
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdin.close()
    for _ in range(100):
        if not keepers():
            return
        time.sleep(0.05)
    raise AssertionError("the keeper stays")


def is_keeper(pid, program):
    """Does this process listen for that program?"""
    try:
        return open("/proc/%s/comm" % pid, encoding="utf-8").read() == "tbd-keeper\n" and any(
            os.readlink("/proc/%s/fd/%s" % (pid, fd)).startswith("anon_inode:[pidfd]") and
            "Pid:\t%d\n" % program in open("/proc/%s/fdinfo/%s" % (pid, fd), encoding="utf-8").read()
            for fd in os.listdir("/proc/%s/fd" % pid))
    except OSError:
        return False


def test_wrong_packets_do_no_harm(_):
    """Lengths, counts, code and places that a keeper must refuse; a consumer that dies; the program goes on and is right."""
    process = armed([PROBED, "2", "3000"])
    session = Session(process.pid)
    for packet in (b"x", struct.pack("<II", 99, 0), struct.pack("<II", PLACE, 1), struct.pack("<II", OPEN, 5), os.urandom(1000)):
        assert session.ask(packet)[0] != 0
    assert session.open([(99, 0, 1, 0, 0, 0)])[0] != 0 and session.open([(COUNT, 0, 3, 0, 0, 0)])[0] != 0
    assert session.open([], count=10 ** 6)[0] != 0 and session.open([], version=77)[0] != 0
    assert session.open([(COUNT, 0, 1, 0, 0, 0)])[0] == 0 and session.open([(COUNT, 0, 1, 0, 0, 0)])[0] != 0
    for instruction in ((0, 0, 0, 0, 0), (99, 0, 0, 0, 0), (PUT, 0, 0, 0, 1), (PUT, 0, 0, 0, -1), (2, 16, 0, 0, 0), (27, 0, 0, 0, 5),
                        (27, 0, 0, 0, -2), (5, 0, 0, 3, 0), (34, 0, 0, 0, 7), (36, 0, 0, 0, 99)):
        assert session.code(instruction, (END, 0, 0, 0, 0))[0] != 0, instruction
    assert session.code((PUT, 0, 0, 0, 0))[0] != 0 and session.code((PUT, 0, 0, 0, 0), (END, 0, 0, 0, 0))[0] == 0
    entry = addresses(process.pid, PROBED, DO)
    for place in ((0, 0), (entry["do_add"], 5), (2 ** 63, 0), (0x500000000000, 0), (2 ** 47 - 1, 0)):
        assert session.places(PLACE, [place])[0] != 0, place
    assert session.places(GUARD, [(entry["do_add"], 0)])[0] != 0  # no system call
    assert session.places(PLACE, [(entry["do_add"], 0)])[0] == 0
    assert session.places(PLACE, [(entry["do_add"] + 1, 0)])[0] != 0  # inside the instruction before
    assert session.order(START)[0] == 0
    process.stdin.write("\n")
    process.stdin.flush()
    time.sleep(0.05)
    session.socket.close()
    text = process.communicate("\n")[0]
    assert process.returncode == 0 and "ready\n" + text == native("2", "3000"), text


if __name__ == "__main__":
    tbdtest.main(test_counts_are_the_programs_own,
                 test_signals_may_be_blocked_while_probes_are_hit,
                 test_every_instruction_does_what_it_does_natively,
                 test_signals_find_threads_in_the_program_s_code,
                 test_jumps_and_traps_do_the_same,
                 test_nothing_is_lost_while_probes_come_and_go,
                 test_places_may_come_and_go_for_ever,
                 test_jumps_come_back,
                 test_libc_with_a_probe_on_each_instruction,
                 test_a_program_with_a_probe_on_each_instruction,
                 test_language,
                 test_variables_of_the_program,
                 test_hits_are_triggers,
                 test_records_come_in_order_and_whole,
                 test_what_cannot_be_probed_is_said,
                 test_places_that_cannot_be_probed_are_left_out,
                 test_what_comes_later_is_waited_for,
                 test_a_script_goes_on_in_a_program_that_is_executed,
                 test_a_program_that_is_executed_is_said,
                 test_the_wrong_word_is_pointed_at,
                 test_inlined_copies_and_ranges,
                 test_threads_that_block_all_signals,
                 test_sessions_begin_and_end_while_signals_are_blocked_for_moments,
                 test_threads_in_the_trap_s_handler_do_not_block_it,
                 test_armed_program_is_as_without,
                 test_wrong_packets_do_no_harm)
