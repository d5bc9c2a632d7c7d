#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs with threads: small quanta and windows, killed programs and organizers, real programs."""
import os
import random
import shutil
import time

import inputs
import tbdtest


def chance(seed):
    return random.Random(os.urandom(8) if tbdtest.LONG else seed)


def programs():
    names = ["threads", "thread_cancel", "thread_exit", "thread_lives", "thread_locks", "thread_main_leaves",
             "thread_many", "thread_mix", "thread_objects", "thread_pipes", "thread_processes", "thread_shared",
             "thread_signals", "thread_spin"]
    return [tbdtest.program(name) for name in names]


def test_small_quanta_and_windows(folder):
    """Turns change every few blocks, and windows end while threads wait in all kinds of ways."""
    numbers = chance(5)
    for i, path in enumerate(programs() * 20 if tbdtest.LONG else programs()[1::2]):
        native, root = tbdtest.run([path]), "%s/%d" % (folder, i)
        options = "quantum=%d,window=%d" % (numbers.randint(16, 2000), numbers.randint(1000, 30000))
        traced, trace = tbdtest.record([path], root, options)
        tbdtest.same(native, traced)
        assert trace is not None, (path, options)
        for one in tbdtest.traces(root):
            one.verify()
        shutil.rmtree(root)


def test_turns_end_from_the_second_thread_on(folder):
    """Also in the first window, which began with one thread; between any two instructions with blocks of one."""
    def changes_and_losses(root, options):
        traced, trace = tbdtest.record([tbdtest.program("thread_race"), "print"], "%s/%s" % (folder, root), options)
        trace.verify()
        return map(int, traced.out.split())
    changes, lost = changes_and_losses("blocks", "quantum=1000")
    assert changes >= 400, changes
    assert lost == 0, "an increment is inside one block"
    changes, lost = changes_and_losses("instructions", "quantum=100,insns=1")
    assert changes >= 10000 and lost > 0, (changes, lost)


def test_killed_at_random_moments(folder):
    numbers = chance(7)
    for i in range(50 if tbdtest.LONG else 5):
        root = "%s/%d" % (folder, i)
        process = tbdtest.start([tbdtest.program("thread_mix"), "2000"], root, "window=50000,quantum=2000")
        time.sleep(numbers.uniform(0.05, 0.5))
        process.kill()
        process.communicate(timeout=60)
        tbdtest.wait_organizers(root)
        for trace in tbdtest.traces(root):
            info = trace.info()
            assert info["dropped"] == 0, info
            trace.verify()
            if info["blocks"]:
                assert trace.one("goto", "last")["time"] < info["blocks"]
        shutil.rmtree(root)


def test_organizer_killed_at_random_moments(folder):
    """All threads go on natively, from wherever they are."""
    argv, numbers, hit = [tbdtest.program("thread_mix"), "500"], chance(11), 0
    native = tbdtest.run(argv)
    for i in range(40 if tbdtest.LONG else 6):
        root = "%s/%d" % (folder, i)
        process = tbdtest.start(argv, root, "quantum=1000")
        hit += tbdtest.kill_organizers(root, process, numbers.uniform(0, 0.3))
        out, err = process.communicate(timeout=100)
        tbdtest.same(native, tbdtest.Result(out, err, process.returncode), tool_lines=True)
        shutil.rmtree(root)
    assert hit > 0


def test_stop_and_continue(folder):
    argv = [tbdtest.program("thread_mix"), "300"]
    native, process = tbdtest.run(argv), tbdtest.start(argv, folder)
    tbdtest.stop_and_continue(process)
    out, err = process.communicate(timeout=100)
    tbdtest.same(native, tbdtest.Result(out, err, process.returncode))
    tbdtest.wait_organizers(folder)
    tbdtest.find_trace(folder, argv[0]).verify()


# ---- real programs ----

def text(folder, size):
    name = folder + "/text"
    inputs.text(name, size)
    return name


def test_xz(folder):
    tbdtest.check_run([tbdtest.need("xz"), "-T4", "--block-size=50000", "-c", text(folder, 200000)], folder)


def test_pigz(folder):
    tbdtest.check_run([tbdtest.need("pigz"), "-p", "4", "-n", "-c", text(folder, 600000)], folder)


def test_sort(folder):
    tbdtest.check_run([tbdtest.need("sort"), "--parallel=4", "-S", "4M", text(folder, 1500000)], folder)


def test_python(folder):
    script = ("import threading, queue, time\n"
              "q = queue.Queue(); out = []; lock = threading.Lock(); event = threading.Event(); waits = []\n"
              "def work():\n"
              "    for n in iter(q.get, None):\n"
              "        with lock: out.append(sum(range(n)))\n"
              "threads = [threading.Thread(target=work) for _ in range(6)]\n"
              "for t in threads: t.start()\n"
              "for n in range(300): q.put(n)\n"
              "for t in threads: q.put(None)\n"
              "for t in threads: t.join()\n"
              "def wait(): waits.append(event.wait(0.01)); waits.append(event.wait(50))\n"
              "t = threading.Thread(target=wait); t.start(); time.sleep(0.1); event.set(); t.join()\n"
              "print(sum(out), waits)\n")
    tbdtest.check_run(["/usr/bin/python3", "-c", script], folder)


if __name__ == "__main__":
    tbdtest.main(test_small_quanta_and_windows, test_turns_end_from_the_second_thread_on, test_killed_at_random_moments, test_organizer_killed_at_random_moments,
                 test_stop_and_continue, test_xz, test_pigz, test_sort, test_python)
