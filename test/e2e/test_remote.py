#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A trace in gdb, through gdb's remote protocol: the stops are those of gdb over the program itself, backward they are the mirror of
the way forward, and nothing that a client sends stops the server."""
import json
import os
import random
import re
import shutil
import socket
import struct
import subprocess
import xml.etree.ElementTree

import othertools
import tbdtest
from test_processors import need_avx512

OVERFLOW = os.path.join(tbdtest.BUILD, "examples", "overflow")
STATE = """
def state():
    frame = gdb.newest_frame()
    return [value("$pc"), value("$rsp"), value("$rax"), frame.name(), frame.find_sal().line]
"""


def record(argv, folder):
    return tbdtest.record(argv, folder)[1]


def in_trace(trace, script, at="first", timeout=150):
    """Runs `script` (Python, with say and value, as of othertools) in gdb over the trace."""
    tbdtest.need("gdb")
    path = os.path.join(trace.path, "..", "script-%d.py" % random.randrange(1 << 30))
    with open(path, "w", encoding="utf-8") as f:
        f.write("""
import gdb, json
gdb.execute("set pagination off"); gdb.execute("set confirm off"); gdb.execute("set width 0")
def say(what): print("SAID " + json.dumps(what), flush=True)
def value(text): return int(gdb.parse_and_eval(text)) & ((1 << 64) - 1)
def run(line): return gdb.execute(line, to_string=True)
""" + STATE + script)
    result = subprocess.run([tbdtest.TBDQ, "-t", trace.path, "--at", at, "gdb", "-nx", "-batch", "-x", path], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout, check=False, env=tbdtest.clean_env())
    assert b"Traceback" not in result.stderr and b"Error while" not in result.stderr, result.stderr[-1500:]
    return [json.loads(line[5:]) for line in result.stdout.decode().splitlines() if line.startswith("SAID ")]


def test_breakpoints_and_steps_are_those_of_a_native_run(folder):
    argv = [OVERFLOW]
    steps = """
run("continue")
say(state())
for word in ("stepi", "nexti", "stepi", "finish", "next", "stepi"):
    run(word)
    say(state())
"""
    native = othertools.gdb_script(argv, STATE + 'gdb.Breakpoint("main", temporary=True)\nrun()\nrun = lambda line: gdb.execute(line, to_string=True)\n'
                                   'gdb.Breakpoint("set_name")\n' + steps)
    trace = record(argv, folder)
    replayed = in_trace(trace, 'gdb.Breakpoint("set_name")\n' + steps)
    def shown(rows):
        return [[row[0] & 0xfff, row[3], row[4]] for row in rows]
    assert len(native) == 7 and shown(native) == shown(replayed), (native, replayed)


RANDOM = """
import random
def place():
    frame = gdb.newest_frame()
    return [frame.name(), frame.find_sal().line, int(gdb.parse_and_eval("(long)$pc & 0xfff")), int(gdb.parse_and_eval("$rsp - (long)$rbp"))]
def one(word):
    if word == "finish" and gdb.newest_frame().name() in ("main", "work"):
        word = "stepi 7"
    try:
        run(word)
    except gdb.error as error:  # no line, no function: a place that gdb knows nothing of
        return [str(error)] + place()
    return place()
def sequence(number):
    rng = random.Random(number)
    said = [place()]
    for _ in range(12):
        word = rng.choice(["stepi", "stepi 5", "nexti", "nexti 3", "step", "step", "next", "next 2", "finish", "finish"])
        said.append([word] + one(word))
    return said
"""


def test_random_sequences_stop_as_over_the_program(folder):
    """Forward as gdb does over the program itself, from a breakpoint on; then some instructions forward are the mirror of those backward."""
    argv = [tbdtest.program("containers")]
    count = 200 if tbdtest.LONG else 5
    native = othertools.gdb_script(argv, RANDOM + """
run = lambda line: gdb.execute(line, to_string=True)
gdb.Breakpoint("work")
for number in range(%d):
    run("run")
    say(sequence(number))
""" % count, timeout=1500)
    trace = record(argv, folder)
    replayed = in_trace(trace, RANDOM + """
gdb.Breakpoint("work")
for number in range(%d):
    run("reverse-continue"); run("reverse-continue"); run("continue")
    say(sequence(number))
    there = [place()]
    for _ in range(5):
        run("stepi")
        there.append(place())
    back = [there[-1]]
    for _ in range(5):
        run("reverse-stepi")
        back.append(place())
    say(back[::-1] == there)
""" % count, timeout=1500)
    assert all(replayed[1::2]) and len(native) == count, replayed[1::2]
    for number, (ours, theirs) in enumerate(zip(replayed[::2], native)):
        assert ours == theirs, (number, [x for x in zip(ours, theirs) if x[0] != x[1]][:2])
    assert len({json.dumps(row[1:]) for rows in native for row in rows}) > min(count, 100)


def test_backward_is_the_mirror_of_forward(folder):
    trace = record([OVERFLOW], folder)
    said = in_trace(trace, """
gdb.Breakpoint("set_name")
gdb.Breakpoint("settings.limit", gdb.BP_WATCHPOINT)
def go(word):
    stops, before = [], None
    while run("monitor where").split()[0] != before and len(stops) < 100:
        before = run("monitor where").split()[0]
        run(word)
        stops.append(state())
    return stops[:-2]
forward = [s for s in go("continue")]
backward = go("reverse-continue")
say([s for s in forward if s[3] == "set_name" and s[0] == forward[0][0]])
say([s for s in backward if s[3] == "set_name" and s[0] == forward[0][0]][::-1])
say([len(forward), len(backward)])
gdb.execute("delete")
steps = [state()]
for n in range(100):
    run("stepi")
    steps.append(state())
back = [state()]
for n in range(100):
    run("reverse-stepi")
    back.append(state())
say(steps)
say(back[::-1])
""")
    forward, backward, counts, steps, back = said
    assert len(forward) == 3 and forward == backward, (forward, backward)
    assert counts[0] == counts[1] > 3, counts
    assert len(steps) == 101 and steps == back


def test_state_is_that_of_tbdq(folder):
    trace = record([OVERFLOW], folder)
    time = trace.ask("windows")[-1]["time"] + 200
    regs = trace.one("regs", at=str(time))
    names = [name for name in regs if re.fullmatch(r"r[a-ds0-9][xip0-9]?[0-9]?|rip|mxcsr", name)]
    assert len(names) >= 16, regs
    said = in_trace(trace, """
say([value("$" + name) for name in %r])
say([value("$xmm%%d.v2_int64[%%d]" %% (n, k)) for n in range(16) for k in range(2)])
say(list(bytearray(gdb.selected_inferior().read_memory(value("$rsp"), 64))))
say(run("info proc mappings").count("\\n") > 10)
say(run("monitor where"))
# What tbdq has to say goes where gdb's own messages go, not into a pipe that gdb would look into before each byte.
import glob, os
for path in glob.glob("/proc/self/task/*/children"):
    for child in open(path).read().split():
        assert os.readlink("/proc/" + child + "/fd/2") == os.readlink("/proc/self/fd/2"), child
for line in ("print $rax = 1", "set var *(char *)$rsp = 1"):
    try:
        run(line)
        say("done")
    except gdb.error as error:
        say(str(error))
""" % names, at=str(time))
    assert said[0] == [int(regs[name], 0) for name in names], (said[0], regs)
    xmm = [int(regs["xmm%d" % n], 0) for n in range(16)]
    assert said[1] == [x >> 64 * k & (1 << 64) - 1 for x in xmm for k in range(2)]
    memory = b"".join(bytes.fromhex(row["bytes"].replace(" ", "")) for row in trace.ask("mem", "rsp", "64", at=str(time)))
    assert bytes(said[2]) == memory
    assert said[3] and said[4].startswith("%d+0" % time), said[4]
    assert "done" not in said[5:] and len(said) == 7, said[5:]


WIDE = """
start = value("$pc")
code = gdb.newest_frame().architecture().disassemble(start, count=150)
for word in ("vpscatterdd", "vpcompressd", "vmovdqu8"):
    run("tbreak *%#x" % next(row["addr"] for row in code if word in row["asm"]))
    run("continue")
    say([value("$pc") - start, registers()])
"""
# gdb 13 itself shows wrong upper halves of zmm on some processors (seen on one of AMD's: zeros, and words of other registers).
# So the program stores its registers below its stack, by instructions that are put into its place: vmovdqu64 and kmovq.
STORED = """
import struct
def registers():
    below = [struct.pack("<i", 64 * n - 16384) for n in range(40)]
    stores = [bytes([0x62, (~n >> 3 & 1) << 7 | 0x61 | (~n >> 4 & 1) << 4, 0xfe, 0x48, 0x7f, 0x84 | (n & 7) << 3, 0x24]) + below[n] for n in range(32)]
    stores += [bytes([0xc4, 0xe1, 0xf8, 0x91, 0x84 | n << 3, 0x24]) + below[32 + n] for n in range(8)]
    memory, pc, stack = gdb.selected_inferior(), value("$pc"), value("$rsp")
    code = bytes(memory.read_memory(pc, len(b"".join(stores))))
    memory.write_memory(pc, b"".join(stores))
    run("stepi 40")
    memory.write_memory(pc, code)
    run("set $pc = %#x" % pc)
    words = struct.unpack("<320Q", memory.read_memory(stack - 16384, 2560))
    return list(words[:256]) + list(words[256::8])
"""
SHOWN = """
def registers():
    words = [int(gdb.parse_and_eval("$zmm%d.v8_int64[%d]" % (n, k))) & (1 << 64) - 1 for n in range(32) for k in range(8)]
    return words + [value("$k%d" % n) for n in range(8)]
"""


def test_wide_registers_are_those_of_a_native_run(folder):
    """All of zmm0 to zmm31 and k0 to k7, before instructions with masks."""
    need_avx512()
    program = tbdtest.program("vector_avx512")
    native = othertools.gdb_script([program], 'gdb.Breakpoint("main", temporary=True)\nrun()\nrun = lambda line: gdb.execute(line, to_string=True)\n' + STORED + WIDE,
                                   env=tbdtest.idle_env(folder, "cpu=own,window=20000"))
    tbdtest.record(tbdtest.fixed([program]), folder, "cpu=own,window=20000")
    trace = tbdtest.find_trace(folder, program)
    replayed = in_trace(trace, "run('tbreak main'); run('continue')\n" + SHOWN + WIDE)
    assert len(native) == len(replayed) == 3 and [row[0] for row in native] == [row[0] for row in replayed], (native, replayed)
    for (_, ours), (_, theirs) in zip(replayed, native):
        # Registers that main() does not set hold text of the environment, where idle_env() has x for w.
        same = [struct.pack("<264Q", *words).replace(b"x", b"w") for words in (ours, theirs)]
        assert same[0] == same[1], [(n, ours[n], theirs[n]) for n in range(264) if ours[n] != theirs[n]]
    assert len({word for _, words in native for word in words[:256]}) > 30 and any(words[256:] != 8 * [0] for _, words in native), native
    assert any(words[8 * n + 4:8 * n + 8] != 4 * [0] for _, words in native for n in range(32)), native


def test_threads_signals_and_calls(folder):
    trace = record([tbdtest.program("thread_lives")], folder)
    last = trace.ask("threads", at="last")
    said = in_trace(trace, """
say(sorted(t.ptid[1] for t in gdb.selected_inferior().threads()))
run("catch syscall exit_group")
say(run("continue"))
say(run("info threads").count("Thread"))
""", at="last")
    living = sorted(t["thread"] for t in last if "pc" in t)
    assert said[0] == living, (said, last)
    forward, backward = in_trace(trace, """
run("handle all nostop noprint pass"); run("break work"); run("break pthread_join")
def stop():
    return [gdb.selected_thread().ptid[1], value("$pc"), value("$rsp"), sorted(t.ptid[1] for t in gdb.selected_inferior().threads())]
def go(word, most):
    found = []
    while len(found) < most:
        run(word)
        if gdb.newest_frame().name() in ("_exit", "__GI__exit"):
            break
        found.append(stop())
    return found
forward = go("continue", 16)
say(forward)
if len(forward) < 16:
    run("reverse-continue")
say([stop()] + go("reverse-continue", len(forward) - 1))
""")
    assert forward == backward[::-1] and len({row[0] for row in forward}) > 2, (forward, backward)
    dying = record([tbdtest.program("die_segv")], folder + "/dying")
    said = in_trace(dying, """
stops = []
gdb.events.stop.connect(lambda event: stops.append(getattr(event, "stop_signal", "")))
run("continue")
say(stops[0])
say(value("$_siginfo._sifields._sigfault.si_addr"))
say(value("$pc"))
run("continue")
say(value("$pc"))
""")
    signal = dying.one("signals")
    assert said[:3] == ["SIGSEGV", int(signal["addr"], 0), int(signal["pc"], 0)] and said[-1] == said[2], (said, signal)


class Client:
    """Speaks the protocol without gdb."""

    def __init__(self, trace, folder):
        self.path = os.path.join(folder, "s%d" % random.randrange(1 << 30))
        self.server = subprocess.Popen([tbdtest.TBDQ, "-t", trace.path, "serve", "--gdb", self.path], stderr=subprocess.PIPE, env=tbdtest.clean_env())
        assert b"listening" in self.server.stderr.readline()
        assert os.stat(self.path).st_mode & 0o777 == 0o600
        self.connect()

    def connect(self):
        self.got = b""
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(self.path)

    def send(self, data):
        self.socket.sendall(b"$" + data + b"#%02x" % (sum(data) & 255))
        return self.packet()

    def packet(self):
        """The answer; what is printed on the console before it is left out."""
        while True:
            found = re.search(rb"\$([^#]*)#..", self.got, re.S)
            if found is None:
                more = self.socket.recv(65536)
                assert more, (self.got, self.server.poll())
                self.got += more
                continue
            self.got = self.got[found.end():]
            self.socket.sendall(b"+")
            if not re.fullmatch(rb"O([0-9a-f][0-9a-f])+", found.group(1)):
                return found.group(1)

    def close(self):
        self.socket.close()
        self.server.terminate()
        self.server.communicate()


def test_no_client_stops_the_server(folder):
    trace = record([OVERFLOW], folder)
    client = Client(trace, folder)
    rng = random.Random(5)
    try:
        for bad in (b"", b"nonsense", b"m", b"m1,", b"mffffffffffffffff,ffff", b"m10,10", b"p", b"pffff", b"Z9,1,1", b"Z2,ffffffffffffffff,8", b"z0", b"H", b"Hx",
                    b"Hgffffffffff", b"vCont", b"vCont;x", b"vCont;s:p1.1", b"vCont;r1", b"vFile:open:", b"vFile:open:2f6574632f706173737764,0,0",
                    b"vFile:open:2e2e,0,0", b"vFile:pread:99,1,1", b"vFile:close:-1", b"vFile:fstat:0", b"qXfer:", b"qXfer:features:read:", b"qXfer:features:read:target.xml:ffff",
                    b"qXfer:features:write:x:0:1", b"qRcmd,zz", b"qRcmd,6e6f", b"QPassSignals:zz", b"QCatchSyscalls:1;zz", b"G00", b"M0,1:00", b"P0=00", b"\0\0\0"):
            answer = client.send(bad)
            assert answer[:1] in (b"", b"E", b"F", b"O", b"l") or answer == b"OK", (bad, answer)
            assert not answer.startswith(b"F0") and b"root:" not in answer, (bad, answer)
        client.socket.sendall(b"$" + b"m" * 100000 + b"#00")   # too long
        client.socket.sendall(b"$?#00\x03garbage")             # a wrong checksum
        assert client.send(b"?").startswith(b"T05thread:")
        for _ in range(300):
            word = bytes(rng.choice(b"mgpGHTscbvCont;:,0123456789abcdefZzqRQX-\x03}*") for _ in range(rng.randrange(1, 30)))
            if word[:1] not in (b"D", b"k") and not word.startswith((b"vKill", b"\x03")):
                client.send(word)
        client.socket.sendall(b"$m0,")                          # cut off: the next client is served
        client.socket.close()
        client.connect()
        assert client.send(b"?").startswith(b"T05thread:")
        assert client.send(b"D") == b"OK"
        for wrong in (["--gdb", "example.com:1234"], ["--gdb", "0.0.0.0:1"], ["--gdb", ":70000"], []):
            said = trace.tbdq("serve", *wrong)
            assert said.code == 2 and said.err, said
    finally:
        client.close()
    at = trace.tbdq("serve", "--gdb", "x" * 200 + "/y")
    assert at.code in (2, 4), at


def library_path(name):
    text = subprocess.run(["ldd", tbdtest.program("containers")], stdout=subprocess.PIPE, check=True).stdout.decode()
    return re.search(re.escape(name) + r" => (\S+)", text).group(1)


def test_names_of_libraries_are_xml(folder):
    """UTF-8 as it is; what XML has no characters for does not spoil the list."""
    good, bad = os.fsencode(folder) + b"/\xc3\xa9\xe2\x82\xac & <\"'\n>", os.fsencode(folder) + b"/\xff\xef\xbf\xbf\x01\xef\xbf\xbe\xef\xbf\xbd"
    for where, name in ((good, "libm.so.6"), (bad, "libgcc_s.so.1")):
        os.mkdir(where)
        shutil.copy(library_path(name), os.fsdecode(where))
    path = os.fsdecode(good + b":" + bad)
    trace = tbdtest.record([tbdtest.program("containers")], folder, env={"LD_LIBRARY_PATH": path})[1]
    client = Client(trace, folder)
    try:
        client.send(b"c")
        answer = client.send(b"qXfer:libraries-svr4:read::0,ffff")
        assert answer[:1] == b"l", answer
        names = [row.get("name") for row in xml.etree.ElementTree.fromstring(re.sub(rb"}(.)", lambda m: bytes([m.group(1)[0] ^ 0x20]), answer[1:], flags=re.S))]
    finally:
        client.close()
    assert good.decode() + "/libm.so.6" in names, names
    assert folder + "/\\xff\\uffff\\ufffe\ufffd/libgcc_s.so.1" in names, names


if __name__ == "__main__":
    tbdtest.main(test_breakpoints_and_steps_are_those_of_a_native_run, test_random_sequences_stop_as_over_the_program, test_backward_is_the_mirror_of_forward, test_state_is_that_of_tbdq, test_wide_registers_are_those_of_a_native_run,
                 test_threads_signals_and_calls, test_no_client_stops_the_server, test_names_of_libraries_are_xml)
