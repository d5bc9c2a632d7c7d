#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Processes: a forked child has a trace of its own, whole and linked to its parent's; the program's results
are the native ones; no process or file is left over."""
import os
import shutil
import time

import tbdtest


def check_tree(argv, folder, forked, started, ends=None, options="", env=None):
    """Runs natively and traced; `forked` traces begin at a fork, `started` at an exec or with the run; each is
    whole and verifies.  Returns the rows of `tbdq processes`."""
    root = os.path.join(folder, "traces")
    native = tbdtest.run(argv, env=env)
    traced, first = tbdtest.record(argv, root, options, env=env)
    tbdtest.same(native, traced)
    traces = tbdtest.traces(root)
    infos = [trace.info() for trace in traces]
    kinds = [sum(info["forked"] is kind for info in infos) for kind in (True, False)]
    assert kinds == [forked, started], "%s forked and %s started: %s" % (kinds[0], kinds[1], [t.path for t in traces])
    for trace, info in zip(traces, infos):
        assert info["end"] in ("exec",) or info["end"].startswith("exit "), (trace, info["end"], info["end_text"])
        assert info["dropped"] == 0 and info["blocks"] > 0, info
        trace.verify()
    rows = first.ask("processes")
    check_links(rows, traces)
    if ends is not None:
        assert sorted(row["end"] for row in rows) == sorted(ends), rows
    return rows


def check_links(rows, traces):
    """Every trace is in the tree, under one root; a parent's process id is the one that its child names."""
    by_path = {row["trace"]: row for row in rows}
    assert len(rows) == len(traces) == len(by_path), (rows, traces)
    assert [row["depth"] for row in rows].count(0) == 1 and rows[0]["asked"], rows
    for row in rows[1:]:
        parent = by_path[row["parent"]]
        assert parent["depth"] == row["depth"] - 1 and parent["started_ns"] <= row["started_ns"], (parent, row)
        assert parent["pid"] == (row["pid"] if row["by"] == "exec" else row["parent_pid"]), (parent, row)


def processes(mode, folder, forked, started, **how):
    return check_tree([tbdtest.program("processes"), mode], folder, forked, started, **how)


def test_work_in_parent_and_child(folder):
    rows = processes("work", folder, 1, 1, ends=["exit 0", "exit 3"])
    child = tbdtest.Trace(rows[1]["trace"])
    assert child.one("goto", "first", "forward", "syscall", 1, "where", "syscall == exit_group")["args"][0] in ("0x3", 3)
    assert child.ask("all", "func_enter", "where", "func == work"), "the child's calls are in its trace"
    text = child.tbdq("processes", json_output=False).out.decode()
    assert text.splitlines()[1].startswith("*") and " fork " in text, text
    assert "forked by %d" % rows[0]["pid"] in child.tbdq("info", json_output=False).out.decode()


def test_memory_of_a_child_is_known_from_its_start(folder):
    rows = processes("work", folder, 1, 1)
    parent, child = (tbdtest.Trace(row["trace"]) for row in rows)
    values = [trace.one("mem", "&value", "4", at="last")["bytes"] for trace in (parent, child)]
    first = child.one("mem", "&value", "4", at="first")["bytes"]
    assert (values, first) == (["05000000", "09000000"], "05000000"), (values, first)
    names = [frame["function"] for frame in child.ask("bt", at="first")]
    assert "mode_work" in names and "main" in names, names


def test_nested(folder):
    rows = processes("nested", folder, 3, 1, ends=["exit 0", "exit 1", "exit 2", "exit 3"])
    assert [row["depth"] for row in rows] == [0, 1, 2, 3], rows


def test_fork_in_a_loop(folder):
    processes("loop", folder, 50, 1)


def test_fork_then_exec(folder):
    rows = processes("exec", folder, 1, 2, ends=["exit 0", "exec", "exit 0"])
    assert [row["by"] for row in rows] == ["start", "fork", "exec"], rows


def test_fork_without_the_library(folder):
    processes("raw", folder, 1, 2, ends=["exit 0", "exec", "exit 0"])


def test_popen(folder):
    rows = processes("popen", folder, 2, 3)  # sh, which forks twice and executes tr in one
    assert {os.path.basename(row["command"].split()[0]) for row in rows} == {"processes", "sh", "tr"}, rows


def test_daemon(folder):
    rows = processes("daemon", folder, 2, 1, ends=["exit 0", "exit 0", "exit 4"])
    assert [row["depth"] for row in rows] == [0, 1, 2], rows


def test_signals_around_forks(folder):
    processes("signals", folder, 20, 1)


def test_small_windows(folder):
    processes("nested", folder, 3, 1, options="window=50,chunks=2")


def test_pipeline(folder):
    shell = tbdtest.need("dash")
    rows = check_tree([shell, "-c", "printf 'b\\na\\nb\\n' | sort | uniq -c"], folder, 3, 3)
    assert sorted(row["command"] for row in rows if row["by"] == "exec") == ["sort", "uniq -c"], rows


def test_relative_folder(folder):
    """The trace folder is the same for a child of a process that has gone elsewhere."""
    here = os.path.join(folder, "here")
    os.makedirs(here)
    env = tbdtest.trace_env("traces")
    result = tbdtest.run([tbdtest.program("processes"), "daemon"], env=env, cwd=here)
    assert result.code == 0 and result.err == b"", result
    end = time.monotonic() + 30
    while len(tbdtest.traces(os.path.join(here, "traces"))) < 3 and time.monotonic() < end:
        time.sleep(0.05)
    assert len(tbdtest.traces(os.path.join(here, "traces"))) == 3, os.listdir(os.path.join(here, "traces"))


def test_relative_folder_of_tbd_record(folder):
    """Programs that are executed elsewhere are recorded in the same folder; an option counts like the variable."""
    command = ["--", "/bin/sh", "-c", "cd sub; /bin/ls >/dev/null; /bin/ls"]
    for place, extra, env in (("variable", [], {"TBD_DIR": "variable"}), ("option", ["--dir=option"], {"TBD_DIR": "other"})):
        os.makedirs(folder + "/sub", exist_ok=True)
        result = tbdtest.run([tbdtest.TBD, "record", *extra, *command], env=tbdtest.clean_env(env), cwd=folder)
        assert result.code == 0, result
        tbdtest.wait_organizers(folder + "/" + place)
        names = sorted(n for n in os.listdir(folder + "/" + place) if n.startswith(("ls-", "sh-")))
        assert "ls-1" in names and "ls-2" in names and not os.listdir(folder + "/sub") and not os.path.exists(folder + "/other"), names
        away = tbdtest.run([tbdtest.TBDQ, "info"], env=tbdtest.clean_env({"TBD_DIR": place}), cwd=folder + "/sub")
        assert away.code != 0 and os.path.join(os.path.realpath(folder), "sub", place).encode() in away.err, away
        assert tbdtest.run([tbdtest.TBDQ, "info"], env=tbdtest.clean_env({"TBD_DIR": place}), cwd=folder).code == 0


def test_children_can_be_left_out(folder):
    root = os.path.join(folder, "traces")
    result, trace = tbdtest.record([tbdtest.program("processes"), "work"], root, "children=no")
    assert result.code == 0 and result.err == b"", result
    assert len(tbdtest.traces(root)) == 1 and "untraced" in trace.info()["notes"][0], trace.info()


def test_a_child_without_an_organizer_runs_natively(folder):
    """The organizer is gone when the first child comes: one line and a hint, and the program's own results."""
    copy = os.path.join(folder, "tbd-organizer")
    shutil.copy(os.path.join(tbdtest.BUILD, "tbd-organizer"), copy)
    argv = ["dash", "-c", "rm %s; (echo in the child; exit 3); echo $?" % copy]
    tbdtest.need("dash")
    native = tbdtest.run(["dash", "-c", "(echo in the child; exit 3); echo $?"])
    traced, trace = tbdtest.record(argv, os.path.join(folder, "traces"), "organizer=" + copy)
    tbdtest.same(native, traced, tool_lines=True)
    lines = [line for line in traced.err.splitlines() if line.startswith(b"tbd: ") and b"hint" not in line]
    assert lines and all(b"organizer" in line for line in lines), traced.err
    assert trace.info()["end"] == "exit 0"
    trace.verify()


def test_process_one_of_a_namespace(folder):
    """Orphans come to it, organizers too: it does not see them."""
    inside = [tbdtest.need("unshare"), "--pid", "--fork", "--mount-proc"]
    if tbdtest.run(inside + ["true"]).code:
        inside += ["--user", "--map-root-user"]
        if tbdtest.run(inside + ["true"]).code:
            raise tbdtest.Skip("no namespaces here")
    root = os.path.join(folder, "traces")
    os.makedirs(root)
    program = tbdtest.program("subreaper")
    native = tbdtest.run(inside + [program])
    traced = tbdtest.run(inside + [os.path.join(tbdtest.BUILD, "tbd"), "record", "--dir=" + root, "--", program])
    tbdtest.same(native, traced)
    tbdtest.wait_organizers(root)
    traces = tbdtest.traces(root)
    assert len(traces) == 5, traces
    for trace in traces:
        assert trace.info()["end"].startswith("exit "), trace.info()
        trace.verify()


def test_traces_are_whole_when_the_process_has_ended(folder):
    """Also that of the program which it had been before: its organizer may have much to write when the second program ends."""
    for options in ("mode=native", "mode=traced"):
        root = os.path.join(folder, options)
        os.makedirs(root)
        env = tbdtest.trace_env(root, options)
        result = tbdtest.run([tbdtest.program("writes_then_executes"), tbdtest.need("true")], env=env)
        traces = tbdtest.traces(root)
        assert result.code == 0 and len(traces) == 2, (result, traces)
        for trace in traces:
            info = trace.info()
            assert info["finished"] and info["end"] in ("exec", "exit 0"), info


def test_programs_started_without_the_library(folder):
    """They find the environment that they were given; what their own preloads were stays."""
    sh = ["sh", "-c", "echo $A; env -u PWD -u OLDPWD -u SHLVL -u _ | sort"]
    check_tree(["env", "-i", "A=b"] + sh, folder + "/1", 2, 4)
    check_tree(["env", "-u", "LD_PRELOAD", "A=c", "sh", "-c", "echo $LD_PRELOAD $A; exec cat /dev/null"], folder + "/2", 0, 3)
    check_tree(["env", "LD_PRELOAD=libm.so.6", "sh", "-c", "echo $LD_PRELOAD; exec grep -c libm.so /proc/self/maps"], folder + "/3", 0, 3)
    script = folder + "/script"
    with open(script, "w", encoding="utf-8") as f:
        f.write("#! /bin/sh -e\necho script $# $A\n")
    os.chmod(script, 0o755)
    check_tree(["env", "-i", "A=d", script, "one"], folder + "/4", 0, 2)


def test_programs_that_are_not_to_be_recorded(folder):
    """An empty LD_PRELOAD says so; a static program, or none at all, cannot be."""
    check_tree(["env", "LD_PRELOAD=", "sh", "-c", "echo ${LD_PRELOAD-unset}"], folder + "/1", 0, 1)
    check_tree(["env", "-i", "/no/such/program"], folder + "/2", 0, 1, ends=["exit 127"])
    source, program = folder + "/static.c", folder + "/static"
    with open(source, "w", encoding="utf-8") as f:
        f.write("#include <stdio.h>\nextern char **environ;\nint main(void) { for (char **v = environ; *v; v++) puts(*v); return 5; }\n")
    if tbdtest.run([tbdtest.need("gcc"), "-static", "-o", program, source]).code:
        raise tbdtest.Skip("no static C library")
    result = check_tree(["env", "-i", "A=b", program], folder + "/3", 0, 1, ends=["exec"])
    assert len(result) == 1


if __name__ == "__main__":
    tbdtest.main(*[function for name, function in sorted(globals().items()) if name.startswith("test_")])
