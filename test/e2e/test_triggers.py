#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Triggers (mode=crash): dumps of a program that goes on, at places, under conditions, at signals; what `tbd set` changes while it runs."""
import contextlib
import ctypes
import fcntl
import os
import random
import signal
import struct
import subprocess
import time

import tbdtest

TBD = os.path.join(tbdtest.BUILD, "tbd")
# Does what its input says: `w N` calls work() N times, `d` dies in another thread while work() is called again and again.
SOURCE = r"""
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct item { int id; char name[16]; struct item *next; unsigned long long mask; signed char small; };
static struct item items[5] = { { 1, "one", 0, 1, -1 }, { 2, "two", 0, 2, -2 }, { 3, "three", &items[0], 1ull << 40, -3 },
                                { 4, "four", &items[2], 8, -4 }, { 5, "five", 0, 16, -5 } };
static volatile int total;
static __thread int own;
__attribute__((noinline)) int work(struct item *item, int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++) {
        sum += i * item->id; /* LINE */
        total += sum & 1;
    }
    own += sum;
    return sum;
}
static void handler(int signo) { (void)signo; total++; }
static void *die(void *p) { for (volatile int i = 0; i < 300000; i++) ; *(volatile int *)8 = 1; return p; }
int main(int argc, char **argv)
{
    char line[64];
    long all = 0;

    (void)argc, (void)argv;
    signal(SIGUSR1, handler);
    signal(SIGUSR2, handler);
    while (fgets(line, sizeof(line), stdin)) {
        pthread_t thread;
        int dies = *line == 'd', count = atoi(line + 1);

        if (dies)
            pthread_create(&thread, NULL, die, NULL);
        if (*line == 's')
            raise(count);
        for (int k = 0; *line == 'w' ? k < count : dies; k++)
            all += work(&items[k % 5], 40);
        printf("%ld %d\n", all, total);
        fflush(stdout);
    }
    return 0;
}
"""
LINE = SOURCE.split("/* LINE */", maxsplit=1)[0].count("\n") + 1


def build(folder, *flags):
    source, binary = os.path.join(folder, "doing.c"), os.path.join(folder, "doing")
    with open(source, "w", encoding="ascii") as f:
        f.write(SOURCE)
    subprocess.run(["cc", "-g", "-pthread", *(flags or ["-O0"]), source, "-o", binary], check=True)
    return binary


def dumps(root):
    """In the order in which they were made."""
    names = [name for name in os.listdir(root) if name.startswith("doing-")] if os.path.isdir(root) else []
    return [tbdtest.Trace(os.path.join(root, name)) for name in sorted(names, key=lambda n: int(n.rsplit("-", 1)[1]))]


def run(binary, root, trigger, text):
    argv = [TBD, "crash", "--trigger", trigger, "--", binary]
    native = tbdtest.run([binary], stdin=text)
    result = tbdtest.run(argv, stdin=text, env=tbdtest.clean_env({"TBD_DIR": root}))
    tbdtest.wait_organizers(root)
    return native, result, dumps(root)


# trigger -> the item's id in each dump that it leaves
CONDITIONS = {
    "work if item->id == 3": [3],
    "work times 4": [1, 2, 3, 4],
    "work times 9 if item->next && item->next->id == 1": [3, 3],
    'work if item->name == "three"': [3],
    "work if item->small < -3 or item->id * 2 + 1 > 100": [4],
    "work if arg1 == 40 and (item->mask >> 40) == 1": [3],
    "work if $rsi != 40": [],
    "work if item->next->id == 3": [4],  # what cannot be read does not hold
    "doing.c:%d if i == 7 and item->id == 2" % LINE: [2],
    "doing.c:%d times 2 if sum == 3 && total >= 0" % LINE: [1, 3],
    "work if (total & 0xff) / 4 % 2 == 1 ? item->id == 5 : item->id == 4": [4],
}


NORMAL, NORMAL_O2 = (2, 3, 4, 8), (5, 7)  # of these


def test_conditions_are_those_of_questions(folder):
    """Registers, parameters, locals, members, texts, at a function's entry and at a line, also of optimized code."""
    for flags in (["-O0"], ["-O2"]):
        binary = build(folder, *flags)
        for number, (trigger, ids) in enumerate(CONDITIONS.items()):
            if flags == ["-O2"] and "doing.c" in trigger:
                continue
            if not tbdtest.LONG and number not in (NORMAL if flags == ["-O0"] else NORMAL_O2):
                continue
            root = os.path.join(folder, flags[0][1:] + str(number))
            native, result, found = run(binary, root, trigger, b"w 10\n")
            assert not result.err, (trigger, result)
            tbdtest.same(native, result)
            # `sum` is 3 times the id after i = 2
            assert [int(d.one("print", "item->id")["value"]) for d in found] == ids, (trigger, flags, found)
            for dump in found:
                assert dump.info()["end_text"] == "trigger: %s; the program went on" % trigger, dump.info()
                stack = [frame["function"] for frame in dump.ask("bt")]
                assert stack[:2] == ["work", "main"] and (LINE if "doing.c" in trigger else 1) <= dump.ask("bt")[0]["line"], stack


REALS = r"""
#include <math.h>
#include <stdio.h>
struct pair { double weight; float ratio; unsigned long long many; long few; };
static volatile struct pair now;
static double most = -1e300;
__attribute__((noinline)) double weigh(int id, double weight, float ratio)
{
    double product = weight * (double)ratio;
    if (product > most)
        most = product; /* LINE */
    return product;
}
int main(void)
{
    volatile double all = 0;

    for (int id = -4; id <= 5; id++) {
        now.weight = id + 0.125, now.ratio = (float)id / 4, now.many = id < 0 ? 0 - 1ull - (unsigned)(id + 4) * 4096ull : id, now.few = id * 1000L;
        all += weigh(id, id == 3 ? NAN : now.weight, now.ratio);
    }
    printf("%g\n", all / 3);
    return 0;
}
"""
# trigger -> the ids; NaN is weight of 3
REAL_CONDITIONS = {
    "weigh times 9 if weight > 2.0": [2, 4, 5],
    "weigh times 9 if weight >= 4.125 or weight <= -3.875": [-4, 4, 5],
    "weigh times 9 if weight != weight": [3],
    "weigh times 9 if not (weight < 1) and not (weight >= 1)": [3],
    "weigh times 9 if ratio == 0.25 || ratio * -4 == 2": [-2, 1],
    "weigh times 9 if now.weight - 0.125 == id && id / 2.0 == now.ratio * 2 && id > 3": [4, 5],
    "weigh times 9 if now.many > 1.8446744073709540e19": [-4, -3, -2],
    "weigh times 9 if now.few / 3.0 > 1333.3 and -now.weight < -1e-3": [4, 5],
    "weigh times 9 if (id > 0 ? now.weight : now.ratio) == 2.125": [2],
    "reals.c:%d times 9 if product > 2.5": [-4, 4, 5],
}


def test_floating_point_in_conditions(folder):
    """Doubles and floats in memory, in vector registers and as parameters, comparisons with NaN, numbers of 64 bits; the program's results stay."""
    source, binary = os.path.join(folder, "reals.c"), os.path.join(folder, "reals")
    with open(source, "w", encoding="ascii") as f:
        f.write(REALS)
    line = REALS.split("/* LINE */", maxsplit=1)[0].count("\n") + 1
    for level, normal in (("-O0", (1, 3, 6, 8, 9)), ("-O2", (0, 4))):
        subprocess.run(["cc", "-g", level, source, "-o", binary], check=True)
        native = tbdtest.run([binary])
        for number, (trigger, ids) in enumerate(REAL_CONDITIONS.items()):
            if number not in normal and not (tbdtest.LONG and (level == "-O0" or "reals.c" not in trigger)):
                continue
            root = os.path.join(folder, level[1:] + str(number))
            argv = [TBD, "crash", "--trigger", trigger.replace("%d", str(line)), "--", binary]
            result = tbdtest.run(argv, env=tbdtest.clean_env({"TBD_DIR": root}))
            tbdtest.wait_organizers(root)
            assert not result.err, (trigger, result)
            tbdtest.same(native, result)
            names = sorted((name for name in os.listdir(root) if name.startswith("reals-")), key=lambda n: (len(n), n))
            found = [int(tbdtest.Trace(os.path.join(root, name)).one("print", "id")["value"]) for name in names]
            assert found == ids, (trigger, level, found)


def test_signals_are_triggers(folder):
    """Before the handler runs; ignored ones and others leave nothing."""
    binary, root = build(folder), os.path.join(folder, "root")
    text = b"s %d\ns %d\nw 3\ns %d\n" % (signal.SIGUSR1, signal.SIGUSR2, signal.SIGUSR1)
    native, result, found = run(binary, root, "signal USR1 times 2; work if item->id == 2; signal SIGHUP", text)
    assert not result.err, result
    tbdtest.same(native, result)
    assert [d.info()["end_text"].split(";")[0].split(": ")[1] for d in found] == \
        ["signal USR1 times 2", "work if item->id == 2", "signal USR1 times 2"], found
    assert [int(d.one("print", "total")["value"]) for d in found][0] == 0
    assert "raise" in [frame["function"] for frame in found[0].ask("bt")]


def tell(process, text):
    process.stdin.write(text)
    process.stdin.flush()
    return process.stdout.readline()


def set_(pid, *words):
    return tbdtest.run([TBD, "set", str(pid), *words])


CRASH_SET = 0x500000000000 + 0x7ec0  # base/layout.h
REFUSED = 4
# Of a request (format/probe/trigger.h): what it is about, the length of rings, counts, the first trigger, place and instruction.
WHAT, RING_BYTES, TRIGGERS, PLACES, CODES, TRIGGER, PLACE, CODE = 4, 8, 16, 20, 24, 32, 32 + 32 * 128, 32 + 32 * 128 + 256 * 24
REQUEST_BYTES = CODE + 2048 * 8


class Stranger:
    """Somebody who may open the rings' memory of a process, and writes requests there that are not as they must be."""
    def __init__(self, pid):
        self.pid, memory = pid, None
        for number in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open("/proc/%s/cmdline" % number, "rb") as f:
                words = f.read().split(b"\0")
                if words[0].endswith(b"tbd-organizer") and words[words.index(b"--pid") + 1] == b"%d" % pid:
                    memory = "/proc/%s/fd/%s" % (number, words[words.index(b"--stream-fd") + 1].decode())
        self.fd = os.open(memory, os.O_RDWR)
        areas, = struct.unpack("<Q", os.pread(self.fd, 8, 80))
        self.at = areas + (192 << 10)
        self.good = os.pread(self.fd, REQUEST_BYTES, self.at)

    def changed(self, at, form, *values):
        request = bytearray(self.good)
        struct.pack_into("<" + form, request, at, *values)
        return bytes(request)

    def post(self, request):
        """The engine's answer."""
        os.pwrite(self.fd, request[4:], self.at + 4)
        os.pwrite(self.fd, struct.pack("<I", 2), self.at)
        ctypes.CDLL(None).sigqueue(self.pid, signal.SIGTRAP, ctypes.c_void_p(CRASH_SET))
        for _ in range(3000):
            state, = struct.unpack("<I", os.pread(self.fd, 4, self.at))
            if state > 2:
                return state
            time.sleep(0.01)
        raise AssertionError("no answer")


def check_strangers(pid):
    """Each wrong request is refused, whatever is wrong in it; who holds the lock for ever is named."""
    assert set_(pid, "trigger=work if item->id == 5").code == 0
    stranger = Stranger(pid)
    count = struct.unpack_from("<I", stranger.good, CODES)[0]
    wrong = [(TRIGGERS, "I", 33), (TRIGGERS, "I", 1 << 31), (PLACES, "I", 257), (PLACES, "I", 0xffffffff), (CODES, "I", 2049), (CODES, "I", 0xffffffff),
             (TRIGGERS, "I", 0), (TRIGGER + 8, "I", 1001), (PLACE, "Q", 0), (PLACE, "Q", 1 << 63), (PLACE, "Q", (1 << 64) - 1), (PLACE + 8, "I", 1),
             (PLACE + 8, "I", 0xffffffff), (PLACE + 12, "I", count), (PLACE + 12, "I", 0xfffffffe), (PLACE + 16, "I", count), (PLACE + 20, "I", count),
             (CODE, "B", 255)]
    wrong += [(WHAT, "IQ", 2, size) for size in (0, 1, 4097, (4 << 20) + 4096, 1 << 63)]
    for at, form, *values in wrong:
        assert stranger.post(stranger.changed(at, form, *values)) == REFUSED, (at, values)
    numbers = random.Random(1)
    for _ in range(30):  # whatever is accepted of these, a condition only computes
        stranger.post(stranger.changed(CODE + numbers.randrange(8 * count), "I", numbers.getrandbits(32)))
    assert stranger.post(stranger.good) == 3
    fcntl.flock(stranger.fd, fcntl.LOCK_EX)
    result = set_(pid, "ring=1M")
    assert result.code == 4 and b"another `tbd set`" in result.err, result
    fcntl.flock(stranger.fd, fcntl.LOCK_UN)
    os.close(stranger.fd)


def test_what_runs_can_be_changed(folder):
    """Triggers come and go, rings get longer and shorter, and have no gaps."""
    binary, root = build(folder), os.path.join(folder, "root")
    process = tbdtest.start([binary], root, "mode=crash,record=1", stdin=subprocess.PIPE)
    lines, wanted = [tell(process, b"w 7\n")], 0
    steps = [("ring=1M trigger=work if item->id == 4", b"w 5000\n", 1),
             ("trigger=doing.c:%d times 2 if item->id == 1 && i == 39" % LINE, b"w 7000\n", 2),
             ("ring=256K trigger=work", b"w 20\n", 1), ("trigger=", b"w 20\n", 0),
             ("ring=4M", b"w 30\n", 0), ("record=9", b"w 40\n", 0), ("trigger=work if item->id == 5", b"w 9000\n", 1)]
    for words, text, count in steps:
        first, _, second = words.partition(" trigger=")
        result = set_(process.pid, first, *(["trigger=" + second] if second else []))
        assert (result.code, result.out, result.err) == (0, b"", b""), (words, result)
        lines.append(tell(process, text))
        wanted += count
    for words, code, message in ((["trigger=nothing_of_this_name"], 1, b"no module of the process has a function called"),
                                 (["trigger=work if no_such_variable == 1"], 2, b""), (["trigger=work if ("], 2, b""),
                                 (['trigger=work if item->name =~ "t.*"'], 2, b""), (["trigger=signal NOPE"], 2, b"there is no such signal"),
                                 (["trigger=0x10"], 1, b"there is no code"), (["trigger=work times 0"], 2, b""), (["ring=1024M"], 2, b"4096 KiB"),
                                 (["ring=4K"], 2, b""), (["record=10"], 2, b"record=0 to 9"), (["ring="], 2, b""), (["trigger=doing.c:99999"], 1, b"no code belongs to line"), ([], 2, b"")):
        result = set_(process.pid, *words)
        assert (result.code == code or code == 2 and result.code in (1, 2)) and not result.out and message in result.err, (words, result)
        assert result.err.startswith(b"tbd set: ") and result.err.count(b"\n") <= 2, (words, result)
    check_strangers(process.pid)
    lines.append(tell(process, b"w 5\n"))
    wanted += 1  # its trigger is there again
    assert set_(os.getpid(), "ring=1M").code == 1
    native = tbdtest.run([binary], stdin=b"w 7\n" + b"".join(text for _, text, _ in steps) + b"w 5\n")
    assert b"".join(lines) == native.out, (lines, native)
    # with a ring that was made longer and has not come round, up to the end
    assert set_(process.pid, "trigger=signal USR2").code == 0
    tell(process, b"s %d\n" % signal.SIGUSR2)
    process.stdin.close()
    assert process.wait(60) == 0
    tbdtest.wait_organizers(root)
    found = dumps(root)
    assert len(found) == wanted + 1, (len(found), wanted)
    for dump in found:
        calls = [row for row in dump.ask("calls", "work") if row["exit"] is not None]
        assert {row["duration"] for row in calls} <= {calls[0]["duration"]} if calls else dump is found[0], (dump, calls[:3])
    sizes = [os.path.getsize(os.path.join(dump.path, "crash")) for dump in found]
    assert min(sizes[1:3]) > 900 << 10 > 600 << 10 > sizes[3], sizes  # with what is recorded beside rings


def test_wrong_triggers_leave_the_parts(folder):
    """One mistake takes all triggers, which is said, but not what else was asked for, which nobody can set later."""
    argv, env = [tbdtest.program("die_segv")], tbdtest.clean_env({"TBD_DIR": folder})
    result = tbdtest.run([tbdtest.TBD, "crash", "--parts=damage()", "--trigger=main;main if no_such_variable == 1", "--", *argv], env=env)
    assert result.code == -11 and result.err.count(b"\n") == 2, result
    assert b"no_such_variable" in result.err and result.err.endswith(b"hint: there are no triggers now\n"), result
    tbdtest.wait_organizers(folder)
    [dump] = tbdtest.traces(folder)
    assert {row["part"] for row in dump.ask("path", "parts")} == {"damage()"}
    result = tbdtest.run([tbdtest.TBD, "crash", "--trigger=main if no_such_variable == 1", "--", *argv], env=env)
    assert result.code == -11 and result.err.endswith(b"hint: there are no triggers now\n"), result


def test_what_the_engine_refuses_is_said(folder):
    """The collector has posted it before the program runs; nobody waits for the answer."""
    argv, env = [tbdtest.program("recursion")], tbdtest.clean_env({"TBD_DIR": folder})
    native = tbdtest.run(argv)
    result = tbdtest.run([tbdtest.TBD, "crash", "--trigger=main;0x10", "--", *argv], env=env)
    assert (result.code, result.out) == (native.code, native.out), result
    assert b"no code at 0x10: there are no triggers" in result.err and b"hint: tbd set" in result.err, result
    tbdtest.wait_organizers(folder)
    assert not dumps(folder)


def test_a_crash_while_another_dump_is_written(folder):
    """Of a thread that dies while another one makes dumps: all can be read, and the end is the program's own."""
    binary = build(folder)
    for number in range(6 if tbdtest.LONG else 1):
        root = os.path.join(folder, "root%d" % number)
        _, result, found = run(binary, root, "work times 1000", b"d\n")
        assert result.code == -signal.SIGSEGV and not result.out and not result.err, result
        ends = [dump.info()["end"] for dump in found]
        assert ends[-1] == "signal 11" and set(ends[:-1]) <= {"detached"}, ends
        assert [frame["function"] for frame in found[-1].ask("bt")][0] == "die", found[-1].ask("bt")
        for dump in found[:-1]:
            assert [frame["function"] for frame in dump.ask("bt")][:2] == ["work", "main"], dump


def test_a_program_that_was_started_with_triggers_takes_others(folder):
    """Who has posted the first ones leaves no lock behind."""
    binary, root = build(folder), os.path.join(folder, "root")
    process = tbdtest.start([binary], root, "mode=crash,trigger=work if item->id == 2", stdin=subprocess.PIPE)
    tell(process, b"w 7\n")
    result = set_(process.pid, "trigger=work if item->id == 3")
    assert (result.code, result.out, result.err) == (0, b"", b""), result
    tell(process, b"w 7\n")
    process.stdin.close()
    assert process.wait(60) == 0
    tbdtest.wait_organizers(root)
    assert [int(d.one("print", "item->id")["value"]) for d in dumps(root)] == [2, 3]


def test_triggers_have_parts_of_their_own(folder):
    """What a trigger names is in its dumps, and nothing else of rings and parts; the next dump has everything again."""
    binary, root = build(folder), os.path.join(folder, "root")
    options = "mode=crash,tables=first,parts=work();modules;doing,trigger=signal USR1 times 2 with work();work with modules rings if item->id == 3;signal USR2 with doing"
    process = tbdtest.start([binary], root, options, stdin=subprocess.PIPE)
    texts = [b"w 2\n", b"s %d\n" % signal.SIGUSR1, b"s %d\n" % signal.SIGUSR2, b"w 3\n"]
    lines = [tell(process, text) for text in texts]
    for words, code, message in ((["trigger=work with nothing"], 2, b"was not started with this part: nothing"), (["trigger=work with rings doing  if total > 3"], 0, b""),
                                 (["trigger=signal HUP with modules"], 0, b"")):
        result = set_(process.pid, *words)
        assert result.code == code and message in result.err and bool(result.err) == bool(code), (words, result)
    assert set_(process.pid, "trigger=signal USR2").code == 0
    texts.append(b"s %d\n" % signal.SIGUSR2)
    lines.append(tell(process, texts[-1]))
    process.stdin.close()
    assert process.wait(60) == 0
    tbdtest.wait_organizers(root)
    assert b"".join(lines) == tbdtest.run([binary], stdin=b"".join(texts)).out
    shown = []
    for dump in dumps(root):
        parts = {row["part"] for row in dump.ask("path", 1 << 20, "parts")} if dump.tbdq("path", "parts").code == 0 else set()
        shown.append((parts, dump.tbdq("path", "5").code == 0, dump.tbdq("path", "first").code == 0))
        assert dump.ask("bt") and dump.one("print", "total"), dump  # the state is there
    assert shown == [({"work()"}, False, False), ({"doing"}, False, False), ({"modules"}, True, True), ({"work()", "modules", "doing"}, True, True)], shown


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
