# SPDX-License-Identifier: MIT
"""What the end-to-end tests share: run a program natively and traced, compare, ask questions.

A traced run gets a trace root of its own (TBD_DIR) in a temporary folder.  `TBD_BUILD` names the build
tree.  A failed comparison is an AssertionError whose text says what differed; `main()` runs the
test functions of a file, each in a fresh folder, and returns 0, 1, or 77 (all skipped).
"""
import contextlib
import glob
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.abspath(os.environ.get("TBD_BUILD", os.path.join(SOURCE, "build")))
LIBRARY = os.path.join(BUILD, "libtbd.so")
TBDQ = os.path.join(BUILD, "tbdq")
TBD = os.path.join(BUILD, "tbd")
PROGRAMS = os.path.join(BUILD, "programs")
# tbdq's tables of names: not in the user's own cache.
os.environ["XDG_CACHE_HOME"] = os.path.join(BUILD, "cache")
# No core files.  Set here and inherited: a function between fork and exec (preexec_fn) would rule out vfork, which is several
# times quicker.
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
# Set by files of tests about windows that have their events: TBD_TEST_OPTIONS=count=later does not concern them.
KEEPS_EVENTS = False
LONG = "--long" in sys.argv or os.environ.get("TBD_LONG") == "1"


# The option and the variable with which a program runs as on a processor without AVX-512, whatever this one has.  libc asks
# the processor first, so it needs the variable.
V3 = "cpu=v3test"
V3_ENV = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX512CD,-AVX512DQ,-AVX512ER,-AVX512PF,-AVX512_VBMI,"
                            "-AVX512_VBMI2,-AVX512_VNNI,-AVX512_BITALG,-AVX512_VPOPCNTDQ,-AVX512_IFMA"}
# The variable with which a window is replayed in this way.
REPLAY_V3 = {"TBD_REPLAY_CPU": "v3"}


class Skip(Exception):
    """The machine lacks something; the text says what."""


def need(*programs):
    """Skips the test unless all programs are installed; returns the first one's path: the system's, rather than a wrapper."""
    found = [shutil.which(program, path="/usr/bin:" + os.environ.get("PATH", "")) for program in programs]
    if None in found:
        raise Skip("no " + programs[found.index(None)])
    return found[0]


def need_terminal():
    """(master, slave) of a new pseudo-terminal."""
    try:
        return os.openpty()
    except OSError as error:
        raise Skip("no pseudo-terminal: %s" % error) from error


class Result:
    def __init__(self, out, err, code):
        self.out, self.err, self.code = out, err, code

    def __repr__(self):
        return "status %d, stdout %r, stderr %r" % (self.code, self.out[-150:], self.err[-300:])


def clean_env(extra=None):
    env = {k: v for k, v in os.environ.items() if not k.startswith("TBD_") and k != "LD_PRELOAD"}
    env["LC_ALL"] = "C.UTF-8"
    env.update(extra or {})
    return env


def run(argv, stdin=b"", env=None, cwd=None, timeout=300):
    """Runs to the end.  With `stdin` None the standard input is /dev/null."""
    process = subprocess.Popen(argv, stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_env(env), cwd=cwd)
    try:
        out, err = process.communicate(stdin, timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate(timeout=30)
        raise AssertionError("no end after %d s: %s; stderr %r" % (timeout, argv, err[-500:]))
    return Result(out, err, process.returncode)


def trace_env(root, options="", preload=""):
    """The variables that have a program traced into `root`.  Windows keep their events, however busy the machine is, unless
    `options` says otherwise: what is compared must not depend on its speed."""
    if "lean=" not in options:
        options += ",lean=never" if options else "lean=never"
    if os.environ.get("TBD_TEST_OPTIONS") and "count=" not in options and not KEEPS_EVENTS:
        options += "," + os.environ["TBD_TEST_OPTIONS"]
    if "aftercount=" not in options:  # nobody counts beside the next test, or in a folder that is being removed
        options += ",aftercount=no"
    return {"LD_PRELOAD": (preload + ":" if preload else "") + LIBRARY, "TBD_DIR": root, "TBD_OPTIONS": options}


def idle_env(root, options=""):
    """The same, and as long, so that the stack lies where it does in a traced run: but the options are refused, and the
    program runs natively, for instance in gdb."""
    return {name: text.replace("window=", "windox=") for name, text in trace_env(root, options).items()}


def record(argv, root, options="", preload="", env=None, **how):
    """Runs traced; returns (result, trace of the first process)."""
    os.makedirs(root, exist_ok=True)
    result = run(argv, env={**(env or {}), **trace_env(root, options, preload)}, **how)
    wait_organizers(root)
    return result, find_trace(root, argv[0])


def need_native_play(result):
    """Skips where this kernel has not what native play needs."""
    if b"runs translated" in result.err:
        raise Skip("this kernel cannot: " + result.err.decode())


def start(argv, root, options="", **how):
    """Begins a traced run; its output is in pipes unless `how` says otherwise."""
    os.makedirs(root, exist_ok=True)
    how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}
    return subprocess.Popen(argv, env=clean_env(trace_env(root, options)), **how)


def kill_spinning(root):
    """A program with mode=crash whose threads never left translated code when it was killed; returns the process."""
    process = start([program("thread_spins_forever")], root, "mode=crash")
    assert process.stdout.readline() == b"spinning\n"
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    wait_organizers(root)
    return process


def await_organizer(root, process):
    """Until there is one, or there will be none."""
    end = time.monotonic() + 10
    while not organizers(root) and time.monotonic() < end and process.poll() is None:
        time.sleep(0.002)


def kill_organizers(root, process, delay):
    """Those of a run, `delay` seconds after they began; how many there were."""
    await_organizer(root, process)
    time.sleep(delay)
    found = organizers(root)
    for pid in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return len(found)


def stop_and_continue(process):
    for _ in range(4):
        time.sleep(0.05)
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.05)
        process.send_signal(signal.SIGCONT)


def organizers(root, since=0, name=b"tbd-organizer"):
    """Process ids (from `since` upwards) of organizers that write below `root`."""
    found = []
    for pid in (int(pid) for pid in os.listdir("/proc") if pid.isdigit() and int(pid) >= since):
        command = _read("/proc/%d/cmdline" % pid)
        if command.split(b"\0", 1)[0].endswith(name) and os.fsencode(root) in command + _read("/proc/%d/environ" % pid):
            found.append(pid)
    return found


def _read(path):
    try:
        with open(path, "rb", buffering=0) as f:
            return f.read()
    except OSError:
        return b""


def counters(root):
    """Process ids of those that count windows below `root` after the programs' end."""
    return organizers(root, name=b"tbd-counter")


def one_counter(root):
    """The only one of counters(); a child that it has just forked looks like it until it runs a program of its own."""
    end, found = time.monotonic() + 60, []
    while len(found) != 1:
        assert time.monotonic() < end, found
        time.sleep(0.01)
        found = counters(root)
    return found[0]


def wait_organizers(root, timeout=120):
    _wait_until_gone(organizers, root, timeout)


def wait_counters(root, timeout=120):
    _wait_until_gone(counters, root, timeout)


def _wait_until_gone(processes, root, timeout):
    end = time.monotonic() + timeout
    while processes(root):
        if time.monotonic() > end:
            raise AssertionError("one of the %s still runs %d s after the program's end" % (processes.__name__, timeout))
        time.sleep(0.01)


def find_trace(root, program):
    """The oldest trace of `program` (a path) below `root`; None if there is none."""
    name = os.path.basename(os.path.realpath(shutil.which(program) or program))
    names = {name, os.path.basename(program)}
    found = []
    for path in os.listdir(root):
        head, _, number = path.rpartition("-")
        if head in names and number.isdigit() and os.path.isdir(os.path.join(root, path)):
            found.append((int(number), os.path.join(root, path)))
    return Trace(min(found)[1]) if found else None


def traces(root):
    """All traces below `root`, in the order of their names."""
    return [Trace(path) for path in sorted(glob.glob(root + "/*-[0-9]*"))]


def check_traces(root, least=1, may_be_killed=False):
    """Asserts that every process below `root` was recorded whole and replays; prints what was measured.
    `may_be_killed`: the program ends processes of its own with SIGKILL."""
    wait_organizers(root)
    infos, found = [], traces(root)
    for trace in found:
        info = trace.info()
        assert info["finished"] and info["dropped"] == 0, (trace, info)
        assert info["end"].startswith(("exit ", "exec", "signal ") + (("killed",) if may_be_killed else ())), (trace, info)
        trace.verify()
        infos.append(info)
    assert len(found) >= least, "%d traces, expected %d: %s" % (len(found), least, found)
    _print_recorded(infos)
    for note in sorted({note for info in infos for note in info["notes"]}):
        print("noted: " + note)
    return found


def _print_recorded(infos):
    """A line about verified traces, which `scripts/check --long` lists at its end."""
    print("recorded: %d traces, %d windows, %d blocks, 0 divergences" %
          (len(infos), sum(info["windows"] for info in infos), sum(info["blocks"] for info in infos)))


def same(native, traced, tool_lines=False):
    """Asserts that the program's results did not change.  With `tool_lines`, lines of stderr that
    begin with "tbd: " or "hint: " are the tracer's."""
    err = traced.err
    if tool_lines:
        err = b"".join(line for line in err.splitlines(True) if not line.startswith((b"tbd: ", b"hint: ")))
    for what, a, b in (("status", native.code, traced.code), ("stdout", native.out, traced.out), ("stderr", native.err, err)):
        if a != b:
            raise AssertionError("%s differs: native %s, traced %s\n(native: %r)\n(traced: %r)" %
                                 (what, _short(a), _short(b), native, traced))


def _short(value):
    return repr(value[-150:]) if isinstance(value, bytes) else str(value)


def ends_like(info, result):
    """Asserts that what info() says of a trace tells the end of the program as its parent saw it."""
    end, code = info["end"], result.code
    told = {"exit %d" % code} if code >= 0 else {"signal %d" % -code}
    if code == -9:
        told.add("killed")
    assert end in told, "the program ended with %d, the trace says: %s" % (code, end)


def disk_use(path):
    """Bytes of a trace; files may come and go meanwhile."""
    total = 0
    for where, _, names in os.walk(path):
        for name in names:
            try:
                total += os.lstat(os.path.join(where, name)).st_size
            except FileNotFoundError:
                pass
    return total


class Trace:
    def __init__(self, path):
        self.path = path

    def __repr__(self):
        return self.path

    def tbdq(self, *words, at=None, timeout=300, json_output=True, env=None):
        """Raw: the result of `tbdq`."""
        argv = [TBDQ, "-t", self.path]
        if at is not None:
            argv += ["--at", at]
        if json_output:
            argv += ["--json"]
        return run(argv + [str(w) for w in words], stdin=None, timeout=timeout, env=env)

    def ask(self, *words, at=None, timeout=300):
        """The answer's JSON objects; an empty list for "not found"."""
        result = self.tbdq(*words, at=at, timeout=timeout)
        if result.code not in (0, 1):
            raise AssertionError("tbdq %s: %r" % (" ".join(map(str, words)), result))
        answer = [json.loads(line) for line in result.out.decode().splitlines() if line.strip()]
        return answer if result.code == 0 else []

    def script(self, lines, may_fail=False, timeout=300, options=(), env=None, misses=False, begin="goto first"):
        """The answers to these lines, each as ask() gives it, from one process with these options of tbdq; it begins at the first
        position, or with `begin` None where the last question has led.  With `may_fail` a line that fails has the answer None, and
        the next one begins there again.  With `misses` the answer "not found" is the object that says so."""
        lines, mark = list(lines), "=== the next answer ==="
        text = "%s\necho %s\n" % (begin or "", mark) + "".join("- %s\necho %s\n" % (line, mark) for line in lines)
        result = run([TBDQ, "-t", self.path, "--json", *options], stdin=text.encode(), timeout=timeout, env=env)
        answers = result.out.decode().split(mark + "\n")
        found = [[json.loads(line) for line in answer.splitlines() if line.strip()] for answer in answers[1:-1]]
        if not misses:
            found = [[] if answer and answer[-1].get("found") is False else answer for answer in found]
        if may_fail and result.code == 1 and len(found) < len(lines) and b": failed: - " in result.err:
            return found + [None] + self.script(lines[len(found) + 1:], may_fail, timeout, options, env, misses, begin)
        if result.code != 0 or len(found) != len(lines):
            raise AssertionError("tbdq, after %d of %d lines: %r" % (len(found), len(lines), result))
        return found

    def at(self, times, lines):
        """The answers to these lines at each of these positions, one after the other, from one process."""
        found = self.script([line for time in times for line in ["goto %s" % time] + list(lines)])
        return [answer for i, answer in enumerate(found) if i % (len(lines) + 1)]

    def one(self, *words, at=None):
        answer = self.ask(*words, at=at)
        if len(answer) != 1:
            raise AssertionError("tbdq %s: %d answers: %r" % (" ".join(map(str, words)), len(answer), answer))
        return answer[0]

    def info(self):
        return self.one("info")

    def events(self, kind, where=""):
        """All events of a kind, in order."""
        return self.ask("all", kind, *(["where", where] if where else []))

    def count(self, kind, where="", guess=None):
        """The number of events of a kind: a search for far too many says how many it has found.  With
        a guess this is checked: the event of this number must exist, and the one after it must not."""
        numbers = [1 << 40] + ([guess, guess + 1] if guess else [])
        where = " where " + where if where else ""
        answers = self.script(("goto first forward %s %d%s" % (kind, number, where) for number in numbers), misses=True)
        (missed,), *around = answers
        assert missed["found"] is False and missed["matches"] < 1 << 40, missed
        if guess and missed["matches"] == guess:
            (last,), (after,) = around
            assert last.get("found") is not False and after["found"] is False, around
        return missed["matches"]

    def counts(self, questions):
        """How many events each of these finds ("store where ..."), from one process."""
        return [sum(row["count"] for row in rows) for rows in self.script("count " + question for question in questions)]

    def verify(self, timeout=600, env=None):
        """Asserts that every window replays without divergence."""
        result = self.tbdq("verify", "-j", "2", timeout=timeout, env=env)
        if result.code != 0:
            raise AssertionError("verify of %s: %r" % (self.path, result))
        return result


def position(event):
    return "%d+%d" % (event["time"], event["offset"]) if event.get("offset") else str(event["time"])


def number(text):
    """A value of an answer: addresses and values come as hexadecimal strings."""
    return int(text, 0) if isinstance(text, str) else text


def program(name):
    path = os.path.join(PROGRAMS, name)
    if not os.path.exists(path):
        raise AssertionError("%s is not there: build first, and say where by TBD_BUILD" % path)
    return path


def fixed(argv):
    """The command with the same addresses in every run."""
    command = [need("setarch"), "x86_64", "-R"]
    if run(command + ["true"]).code:
        raise Skip("address randomisation cannot be switched off here")
    return command + argv


@contextlib.contextmanager
def one_processor():
    """For runs that are compared with each other: the number of a thread's processor is in its memory (rseq(2)), and another
    one after a move is a change of memory that the other run does not have."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def check_run(argv, folder, options="", preload="", verify=True, tool_lines=False, **how):
    """Native and traced run of the same command must agree, and the trace must verify."""
    native = run(argv, **how)
    env = how.pop("env", None)
    traced, trace = record(argv, os.path.join(folder, "traces"), options, preload, env=env, **how)
    same(native, traced, tool_lines)
    assert trace is not None, "no trace was written: %r" % traced
    if verify:
        trace.verify()
    info = trace.info()
    ends_like(info, traced)
    if verify:
        _print_recorded([info])
    return traced, trace


def free_port():
    """A port of loopback on which no process listens at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main(*tests):
    """Runs the tests (all, or those named on the command line)."""
    wanted = [a for a in sys.argv[1:] if a.startswith("test_")]
    outcome = {"passed": 0, "failed": 0, "skipped": 0}
    for test in filter(callable, tests):  # not the modules that a file imports
        if wanted and test.__name__ not in wanted:
            continue
        folder = tempfile.mkdtemp(prefix="tbd-e2e-")
        start = time.monotonic()
        try:
            test(folder)
            verdict, text = "passed", ""
        except Skip as reason:
            verdict, text = "skipped", str(reason)
        except Exception as error:  # a test that breaks is a test that fails
            verdict, text = "failed", str(error) if isinstance(error, AssertionError) else traceback.format_exc()
        outcome[verdict] += 1
        print("%-7s %5.1f s  %s%s" % (verdict, time.monotonic() - start, test.__name__, ": " + text if text else ""))
        sys.stdout.flush()
        if verdict != "failed" or "--keep" not in sys.argv:
            for pid in organizers(folder) + counters(folder):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            shutil.rmtree(folder, ignore_errors=True)
        else:
            print("        kept: " + folder)
    if outcome["failed"] or not any(outcome.values()):
        sys.exit(1)
    sys.exit(77 if not outcome["passed"] else 0)
