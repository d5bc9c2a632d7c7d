#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Windows that are counted after the program's end (count=later): by a process that nobody waits for, and that may end at any moment."""
import contextlib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import time

import tbdtest
from test_progress import Terminal

ROUNDS, WINDOW = ("1500000", 100000) if tbdtest.LONG else ("600000", 40000)
OPTIONS = "count=later,window=%06d,aftercount=" % WINDOW
# However busy the machine is: without it, counting ends.
HURRIED = {"TBD_COUNT_HURRIED": "1"}
ORGANIZER = os.path.join(tbdtest.BUILD, "tbd-organizer")
# Few windows have a store to it, or call this function.
QUESTIONS = (("stores", "of", "rare"), ("calls", "mark"), ("count", "func_enter", "by", "func"))


def record(folder, after="no"):
    result, trace = tbdtest.record([tbdtest.program("many_windows"), ROUNDS], folder, OPTIONS + after, env=HURRIED)
    assert result.code == 0, result
    return trace


def count(trace, **how):
    """Begins to count, as after the program's end."""
    return subprocess.Popen([ORGANIZER, "--count=" + trace.path], env=tbdtest.clean_env(HURRIED), stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **how)


def answers(trace):
    return [trace.ask(*words) for words in QUESTIONS]


def skipped(trace):
    """How many windows a question for a rare store did not look at, as it explains."""
    result = trace.tbdq("--explain", "--no-cache", "goto", "first", "forward", "store", "1000", "where", "touches[&rare,8]")
    return next(line for line in result.err.decode().splitlines() if "skipped" in line).rpartition(";")[0]


def test_windows_are_counted_after_the_programs_end(folder):
    # Variables as long as each other: both runs do the same.
    now, later = os.path.join(folder, "now"), os.path.join(folder, "ltr")
    _, counted = tbdtest.record([tbdtest.program("many_windows"), ROUNDS], now, "count=now,lean=always,window=%08d" % WINDOW, env=HURRIED)
    trace = record(later, "yes")
    tbdtest.wait_counters(later)
    windows, info = trace.ask("windows"), trace.info()
    assert info["uncounted"] == 0 and all(w["level"] == 2 for w in windows), windows
    for here, there in zip(windows, counted.ask("windows")):
        # how many bytes a packed page takes depends on the process' addresses
        assert all(here[key] == there[key] for key in ("blocks", "stores", "calls", "returns", "pages", "words", "block_ids")
                   if key in there), (here, there)
    assert skipped(trace) == skipped(counted), (skipped(trace), skipped(counted))
    trace.verify()


def record_native(folder, after="no"):
    result, trace = tbdtest.record([tbdtest.program("many_windows"), "3000000"], folder, "mode=native,cut=5000,aftercount=" + after, env=HURRIED)
    tbdtest.need_native_play(result)
    return trace


def is_uncounted(trace):
    """Does it still have the messages of its stops?"""
    return os.path.isdir(os.path.join(trace.path, "stops"))


def test_a_recording_of_native_play_is_counted_after_the_programs_end(folder):
    now, after = os.path.join(folder, "now"), os.path.join(folder, "aft")
    question = ("count", "func_enter", "by", "func")
    expected = record_native(now).ask(*question)
    trace = record_native(after, "yes")
    tbdtest.wait_counters(after)
    uncounted = record_native(os.path.join(folder, "not"))
    listed = [json.loads(tbdtest.run([tbdtest.TBDQ, "--json", "ls"], env={"TBD_DIR": root}).out)["blocks"] for root in (os.path.join(folder, "not"), after)]
    assert is_uncounted(uncounted) and listed == [None, trace.info()["blocks"]], listed
    assert not is_uncounted(trace) and os.listdir(after).count("many_windows-1") == 1, os.listdir(trace.path)
    assert expected and trace.ask(*question) == expected and trace.info()["uncounted"] == 0, trace.info()
    assert trace.info()["window_blocks"] is None and not [name for name in os.listdir(after) if name.endswith(".counted")], os.listdir(after)
    trace.verify()


def start_live(folder, argv, options="mode=native,cut=5000,aftercount=yes"):
    """A recording of a program that waits for its input in the midst of its run, some of its windows counted: (process, path of the trace)."""
    os.makedirs(folder, exist_ok=True)
    process = subprocess.Popen(argv, env=tbdtest.clean_env({**HURRIED, **tbdtest.trace_env(folder, options)}), stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    name = os.path.basename(argv[-3]) + "-1"
    counted, most = os.path.join(folder, ".%s.counted" % name, "trace-1", "windows"), time.monotonic() + 60
    while not windows_in(counted) > 2:
        assert process.poll() is None and time.monotonic() < most, (process.poll(), os.listdir(folder))
        time.sleep(0.01)
    return process, os.path.join(folder, name)


def windows_in(path):
    return sum(name.endswith(".toc") for _, _, names in os.walk(path) for name in names)


def end_live(process):
    out, err = process.communicate(b"\n", timeout=120)
    assert process.returncode == 0 and out, (process.returncode, err)


LONG_RUN = tbdtest.fixed([tbdtest.program("many_windows"), "20000000", "wait"])
HOW_OFTEN = ("count", "func_enter", "by", "func")


def told(trace):
    calls = [{key: value for key, value in call.items() if key != "thread"} for call in trace.ask("calls", "mark")]
    return [trace.ask(*HOW_OFTEN), calls]


def test_native_play_is_counted_while_the_program_runs(folder):
    now, live = os.path.join(folder, "now"), os.path.join(folder, "lve")
    # Options as long as the other recording's: stacks begin below the environment.
    result, _ = tbdtest.record(LONG_RUN, now, "mode=native,cut=05000,aftercount=no", env=HURRIED)
    tbdtest.need_native_play(result)
    expected = told(tbdtest.find_trace(now, LONG_RUN[-3]))
    process, path = start_live(live, LONG_RUN)
    asked = tbdtest.run([tbdtest.TBDQ, "-t", path, *HOW_OFTEN])
    assert asked.code != 0 and b"still being recorded" in asked.err, asked
    end_live(process)
    tbdtest.wait_organizers(live)
    tbdtest.wait_counters(live)
    trace = tbdtest.Trace(path)
    assert not is_uncounted(trace) and trace.info()["uncounted"] == 0, trace.info()
    assert not [name for name in os.listdir(live) if name.endswith(".counted")], os.listdir(live)
    found = told(trace)
    assert found == expected, [pair for pair in zip(found, expected) if pair[0] != pair[1]]
    trace.verify()


def test_counting_while_the_program_runs_has_a_session_that_gives_way(folder):
    """The kernel may share processors out among sessions: then an idle thread takes half of one from a program of another session."""
    os.makedirs(folder, exist_ok=True)
    program = [tbdtest.program("many_windows"), "4000000000"]
    process = subprocess.Popen(program, env=tbdtest.clean_env(tbdtest.trace_env(folder, "mode=native,aftercount=yes")), stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        most = time.monotonic() + 60
        while not tbdtest.counters(folder):
            assert process.poll() is None and time.monotonic() < most, process.poll()
            time.sleep(0.01)
        counter = tbdtest.one_counter(folder)
        organizer, = tbdtest.organizers(folder)
        group = "/proc/%d/autogroup" % counter
        while os.getsid(counter) != counter or (os.path.exists(group) and os.access(group, os.W_OK) and not read_text(group).endswith(" nice 19\n")):
            assert process.poll() is None and time.monotonic() < most, (os.getsid(counter), counter, read_text(group))
            time.sleep(0.01)
        assert os.getsid(organizer) != os.getsid(counter) != os.getsid(process.pid)
    finally:
        process.kill()
        process.wait()
    tbdtest.wait_organizers(folder)
    for pid in tbdtest.counters(folder):
        os.kill(pid, signal.SIGKILL)
    tbdtest.wait_counters(folder)


def read_text(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def test_counting_while_the_program_runs_may_be_killed(folder):
    for i, whom in enumerate(("counter", "program", "organizer")):
        root = os.path.join(folder, str(i))
        process, path = start_live(root, LONG_RUN)
        if whom == "program":
            process.kill()
            process.communicate()
        else:
            found = tbdtest.counters(root) if whom == "counter" else tbdtest.organizers(root)
            assert found, whom
            for pid in found:
                os.kill(pid, signal.SIGKILL)
            end_live(process)
        tbdtest.wait_organizers(root)
        tbdtest.wait_counters(root)
        trace = tbdtest.Trace(path)
        assert trace.ask(*HOW_OFTEN) and not is_uncounted(trace), whom
        trace.verify()


def test_a_question_at_the_end_has_what_was_counted_before(folder):
    """Whoever asks is helped by the process that has counted while the program ran: it is not begun again."""
    process, path = start_live(folder, LONG_RUN)
    counter = tbdtest.counters(folder)
    made = os.path.join(folder, ".many_windows-1.counted", "trace-1")
    before = os.stat(made).st_ino
    end_live(process)
    tbdtest.wait_organizers(folder)
    trace = tbdtest.Trace(path)
    assert counter and trace.ask(*HOW_OFTEN) and os.stat(path).st_ino == before, (counter, os.listdir(folder))
    tbdtest.wait_counters(folder)
    trace.verify()


def children(pid):
    found = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            with open("/proc/%d/stat" % int(name), encoding="ascii", errors="replace") as file:
                state, parent = file.read().rpartition(")")[2].split()[:2]
            if int(parent) == pid and state not in "ZX":
                found.append(int(name))
    return found


def ask_beside_stopped_replays(folder):
    """What is shown while the question is answered: the replays of the counter were stopped while the program still ran."""
    process, path = start_live(folder, LONG_RUN)
    counter = tbdtest.one_counter(folder)
    made = os.path.join(folder, ".many_windows-1.counted", "trace-1")
    inode, stopped = os.stat(made).st_ino, set()
    try:
        process.stdin.write(b"\n")
        process.stdin.flush()
        while process.poll() is None or tbdtest.organizers(folder):
            for pid in set(children(counter)) - stopped if process.poll() is None else ():
                os.kill(pid, signal.SIGSTOP)
                stopped.add(pid)
            time.sleep(0.002)
        assert stopped and counter in tbdtest.counters(folder) and is_uncounted(tbdtest.Trace(path)), stopped
        terminal = Terminal(tbdtest.Trace(path), *HOW_OFTEN)
        shown = terminal.read()
        assert terminal.close() == 0 and os.stat(path).st_ino == inode, (shown, os.listdir(folder))
    finally:
        process.kill()
        for pid in stopped & set(children(counter)):
            os.kill(pid, signal.SIGCONT)
        process.communicate()
    tbdtest.wait_counters(folder)
    tbdtest.Trace(path).verify()
    return shown


def test_a_question_is_helped_where_idle_workers_get_no_time(folder):
    """As on a machine that others want: whoever asks at the program's end does not wait for them."""
    for attempt in range(5):  # on a busy machine all may be counted before the question has begun
        run = os.path.join(folder, str(attempt))
        os.makedirs(run)
        shown = ask_beside_stopped_replays(run)
        if "counting" in shown:
            break
    assert re.search(r"\rcounting, begun before: [1-9]\d* of \d+ windows", shown), shown


def test_questions_come_while_native_play_is_counted(folder):
    """Whoever asks does not wait for the process that counts beside others, and several may ask."""
    expected = None
    for i, chance in enumerate((0, 0.05, 0.2) if tbdtest.LONG else (0, 0.1)):
        trace = record_native(os.path.join(folder, str(i)))
        counting = count(trace)
        time.sleep(chance)
        asking = [subprocess.Popen([tbdtest.TBDQ, "-t", trace.path, "--json", "count", "func_enter", "by", "func"], env=tbdtest.clean_env(),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) for _ in range(3)]
        told = [process.communicate(timeout=300)[0] for process in asking]
        assert counting.wait() == 0 and all(process.returncode == 0 for process in asking), told
        assert told[0] and told[0] == told[1] == told[2] and expected in (None, told[0]), told
        expected = told[0]
        assert not is_uncounted(trace)
        trace.verify()


def test_counting_native_play_may_be_killed_at_any_moment(folder):
    trace, chance = record_native(folder), random.Random(3)
    for _ in range(3):
        process = count(trace)
        time.sleep(chance.uniform(0.02, 0.3))
        process.send_signal(chance.choice((signal.SIGKILL, signal.SIGTERM)))
        process.wait()
    assert count(trace).wait() == 0 and not is_uncounted(trace)
    trace.verify()
    assert trace.ask("count", "func_enter", "by", "func")


def test_counting_may_be_killed_at_any_moment(folder):
    trace, chance = record(folder), random.Random(7)
    expected, left = answers(trace), trace.info()["uncounted"]
    assert left > 20
    for _ in range(6):
        process = count(trace)
        time.sleep(chance.uniform(0.02, 0.3))
        process.send_signal(chance.choice((signal.SIGKILL, signal.SIGTERM)))
        process.wait()
        info = trace.info()
        assert info["uncounted"] <= left and info["finished"], info
        left = info["uncounted"]
    assert answers(trace) == expected
    trace.verify()
    assert count(trace).wait() == 0 and trace.info()["uncounted"] == 0
    assert answers(trace) == expected


def test_others_may_change_the_trace_meanwhile(folder):
    trace = record(folder)
    expected = answers(trace)
    both = [count(trace), count(trace)]
    trace.ask("merge", "20-27", "8")
    assert [process.wait() for process in both] == [0, 0]  # unless they were done before, the merge ended them
    assert count(trace).wait() == 0
    left = [w for w in trace.ask("windows") if w["uncounted"]]
    assert len(left) <= 1 and all(w["blocks"] == 8 * WINDOW for w in left), left
    assert answers(trace) == expected
    trace.verify()
    trace.ask("raise", "all")
    assert answers(trace) == expected
    trace.verify()


def test_what_cannot_be_written_stays_as_it_is(folder):
    trace = record(folder)
    expected, windows = answers(trace), trace.info()["uncounted"]
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # as the organizer does
    most = max(os.stat(os.path.join(at, name)).st_size for at, _, names in os.walk(trace.path) for name in names if name.endswith(".toc"))
    count(trace, restore_signals=False, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))).wait()
    left = trace.info()["uncounted"]
    assert 0 < left <= windows
    assert answers(trace) == expected
    trace.verify()
    copy = os.path.join(folder, "frozen")
    shutil.copytree(trace.path, os.path.join(copy, "many_windows-1"))
    frozen = tbdtest.Trace(os.path.join(copy, "many_windows-1"))
    with read_only(copy):
        count(frozen).wait()
        assert frozen.info()["uncounted"] == left
        assert answers(frozen) == expected


@contextlib.contextmanager
def read_only(folder):
    if os.geteuid() != 0:
        for at, _, _ in os.walk(folder):
            os.chmod(at, 0o500)
        yield
        for at, _, _ in os.walk(folder):
            os.chmod(at, 0o700)
        return
    bind = ["mount", "--bind", folder, folder]
    if tbdtest.run(bind).code or tbdtest.run(["mount", "-o", "remount,bind,ro", folder]).code:
        raise tbdtest.Skip("root may write anywhere, and mount nothing")
    yield
    tbdtest.run(["umount", folder])


def test_one_process_counts_for_all_programs_of_a_folder(folder):
    how = {**HURRIED, **tbdtest.trace_env(folder, OPTIONS + "yes")}
    programs = [subprocess.Popen([tbdtest.program("stores")], env=tbdtest.clean_env(how), stdout=subprocess.DEVNULL) for _ in range(4)]
    result, _ = tbdtest.record([tbdtest.program("forks")], folder, OPTIONS + "yes", env=HURRIED)
    assert result.code == 0, result
    for process in programs:
        process.communicate()
    tbdtest.wait_organizers(folder)
    tbdtest.wait_counters(folder)
    found = tbdtest.traces(folder)
    assert len(found) > 5 and all(trace.info()["uncounted"] == 0 for trace in found), [t for t in found if t.info()["uncounted"]]
    for trace in found:
        trace.verify()


def test_counting_ends_with_the_trace(folder):
    trace = record(folder)
    process = count(trace)
    time.sleep(0.1)
    assert tbdtest.run([tbdtest.TBDQ, "rm", "many_windows-1"], env={"TBD_DIR": folder}).code == 0
    assert process.wait() in (0, 3) and not os.path.exists(trace.path)


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
