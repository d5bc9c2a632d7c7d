#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`why` through pipes and sockets into the process that wrote: test/programs/channels.c says by construction where each value
comes from, in which process, from which line."""
import csv
import io
import json
import os
import re

import tbdtest

SOURCE = open(os.path.join(tbdtest.SOURCE, "test/programs/channels.c"), encoding="utf-8").read().splitlines()


def recorded(mode, folder, options=""):
    """(trace of the first process, {pid: trace} of all)."""
    root = os.path.join(folder, mode)
    argv = [tbdtest.program("channels"), mode]
    traced, first = tbdtest.record(argv, root, options)
    tbdtest.same(tbdtest.run(argv), traced)
    rows = first.ask("processes")
    return tbdtest.Trace(rows[0]["trace"]), {row["pid"]: tbdtest.Trace(row["trace"]) for row in rows}


def lines_of(text):
    return [number for number, line in enumerate(SOURCE, 1) if text in line]


def reads_of(hops):
    return [hop for hop in hops if "followed" in hop]


def check_hops(hops, traces):
    """What each row must keep to: its process is one that was recorded; what is read leads to the rows that follow, where the
    same value is written; positions go back within a process, but for the two rows at a call."""
    for hop in hops:
        assert hop["process"] in traces, hop
        if hop.get("trace"):
            assert hop["trace"] == traces[hop["process"]].path, hop
    for index, hop in enumerate(hops):
        if "followed" not in hop:
            continue
        piece, write = hop["followed"][0], hops[index + 1]
        assert write["what"].startswith("written to a ") and write["process"] == piece["process"], (hop, write)
        assert write["position"] == piece["position"], (hop, write)
        assert write["value"] == hop["value"] or piece["bytes"] < 4, (hop, write)  # a read may be a part of the value
        there = traces[piece["process"]].one("mem", piece["addr"], str(piece["bytes"]), at=piece["position"])["bytes"]
        assert int.from_bytes(bytes.fromhex(there), "little") == int(write["value"], 16), (there, write)


def check_made(trace, traces, expression, line, seed, pid=None, reads=1):
    """`why expression` leads through so many channels to make(seed), called in the line, in the process."""
    hops = trace.ask("why", expression, at="last")
    check_hops(hops, traces)
    assert len(reads_of(hops)) == reads, hops
    made = [hop for hop in hops if hop.get("function") == "make"]
    assert made and made[-1]["value"] == hex(seed * 3 + 1), (seed, hops)
    if pid is not None:
        assert made[-1]["process"] == pid, (pid, hops)
    called = [hop for hop in hops if hop.get("line") in lines_of(line) and hop["process"] == made[-1]["process"]]
    assert called and seed in [int(hop["value"], 16) for hop in called if "value" in hop], (line, seed, hops)
    return hops


def the_child(trace, traces):
    children = [pid for pid in traces if traces[pid].path != trace.path]
    assert len(children) == 1, traces
    return children[0]


def refusal(trace, expression="got"):
    hops = trace.ask("why", expression, at="last")
    assert len(hops) == 1 and "followed" not in hops[0], hops
    what = hops[0]["what"]
    assert "made by the system call read" in what and "it is not known who wrote it: " in what and "\n" not in what, what
    return what.split("it is not known who wrote it: ")[1]


def test_a_child_writes_to_a_pipe(folder):
    trace, traces = recorded("pipe", folder)
    hops = check_made(trace, traces, "got", "sent = make(seed);", 5, the_child(trace, traces))
    assert hops[0]["what"] == "made by the system call read from a pipe, written by process %d" % the_child(trace, traces), hops
    assert trace.info()["pid"] == hops[0]["process"] and "trace" not in hops[0] and "trace" in hops[1], hops


def test_a_parent_writes_to_a_pipe(folder):
    trace, traces = recorded("down", folder)
    child = the_child(trace, traces)
    read = traces[child].ask("why", "got", at="last")
    check_hops(read, traces)
    assert [hop["process"] for hop in read][:3] == [child] + [trace.info()["pid"]] * 2, read
    check_made(traces[child], traces, "got", "sent = make(6);", 6, trace.info()["pid"])


def test_a_process_writes_to_itself(folder):
    trace, traces = recorded("self", folder)
    hops = check_made(trace, traces, "got", "sent = make(7);", 7, trace.info()["pid"])
    assert "written by this process" in hops[0]["what"], hops
    table = trace.tbdq("why", "got", at="last", json_output=False).out.decode()
    assert table.startswith("position"), table  # one process: no column for it


def test_a_descriptor_is_moved_and_another_program_executed(folder):
    trace, traces = recorded("exec", folder)
    assert len(trace.ask("processes")) == 3, traces
    check_made(trace, traces, "got", "sent = make(40);", 40)


def test_a_question_and_its_answer(folder):
    trace, traces = recorded("pair", folder)
    hops = check_made(trace, traces, "got", "sent = make(8);", 8, trace.info()["pid"], reads=2)
    pids = [hop["process"] for hop in hops]
    changes = [pid for index, pid in enumerate(pids) if index == 0 or pids[index - 1] != pid]
    own, child = trace.info()["pid"], the_child(trace, traces)
    assert changes == [own, child, own], pids
    assert "twice" in [hop.get("function") for hop in hops if hop["process"] == child], hops


def test_many_reads_of_one_write_and_one_read_of_many(folder):
    trace, traces = recorded("parts", folder)
    child = the_child(trace, traces)
    check_made(trace, traces, "got", "values[i] = make(10 + i);", 11, child)
    for index in range(4):
        hops = trace.ask("why", "several[%d]" % index, at="last")
        check_hops(hops, traces)
        assert hops[1]["value"] == hex((20 + index) * 3 + 1), hops
        assert hops[3]["function"] == "make" and hops[3]["value"] == hops[1]["value"], hops
    whole = trace.ask("why", "several", at="last")  # all four: a read made from four writes
    assert [piece["bytes"] for piece in whole[0]["followed"]] == [4] * 4, whole
    assert [hop["value"] for hop in whole if hop["what"].startswith("written")] == [hex((20 + i) * 3 + 1) for i in range(4)], whole


def test_vectors(folder):
    trace, traces = recorded("vectors", folder)
    check_made(trace, traces, "got", "second = make(31);", 31, the_child(trace, traces))
    hops = trace.ask("why", "several[0]", at="last")
    check_hops(hops, traces)
    assert hops[0]["text"] == "syscall" and "readv" in hops[0]["what"] and hops[1]["what"].endswith("writev"), hops
    assert hops[1]["value"] == hex(30 * 3 + 1), hops


def test_a_pipe_that_does_not_wait(folder):
    trace, traces = recorded("nonblock", folder)
    check_made(trace, traces, "got", "sent = make(seed);", 12, the_child(trace, traces))


def test_messages_of_which_the_rest_is_lost(folder):
    trace, traces = recorded("messages", folder)
    check_made(trace, traces, "got", "sent = make(13);", 13, the_child(trace, traces))


def test_two_writers_whose_bytes_tell(folder):
    trace, traces = recorded("writers", folder)
    pids = set()
    for index in range(2):
        seed = (trace.one("print", "several[%d]" % index, at="last")["data"] - 1) // 3
        hops = trace.ask("why", "several[%d]" % index, at="last")
        check_hops(hops, traces)
        made = [hop for hop in hops if hop.get("function") == "make"][-1]
        assert made["value"] == hex(seed * 3 + 1), hops
        there = traces[made["process"]].ask("all", "func_enter", "where", "func == make")
        assert [event["args"][0] for event in there] == [hex(seed)] or [int(str(event["args"][0]), 0) for event in there] == [seed], (there, seed)
        pids.add(made["process"])
    assert len(pids) == 2, pids


def test_two_writers_whose_bytes_do_not_tell(folder):
    trace, _ = recorded("twins", folder)
    for index in range(2):
        assert "several processes or threads wrote to it" in refusal(trace, "several[%d]" % index)


def test_writers_one_after_the_other(folder):
    trace, traces = recorded("turns", folder)
    order = [row["pid"] for row in trace.ask("processes")][1:]
    for name, pid in zip(("several[0]", "got"), order):
        check_made(trace, traces, name, "sent = make(seed);", 17, pid)


def test_a_thread_that_waits_in_the_read(folder):
    trace, traces = recorded("threads", folder)
    hops = check_made(trace, traces, "got", "sent = make(18);", 18)
    assert hops[0]["function"].startswith("read") or "read" in hops[0]["caller"], hops
    assert "read_in_thread" in hops[0]["caller"] and hops[0]["thread"] != hops[1]["thread"], hops


def test_windows_that_keep_no_events(folder):
    trace, traces = recorded("pair", folder, "window=300")
    assert len(trace.ask("windows")) > 2
    for other in traces.values():
        other.ask("lower", "all", "1")
    check_made(trace, traces, "got", "sent = make(8);", 8, trace.info()["pid"], reads=2)


def test_what_cannot_be_followed(folder):
    trace, _ = recorded("splice", folder)
    assert refusal(trace) == "splice, tee or sendfile moved bytes through it"
    trace, _ = recorded("passed", folder)
    assert refusal(trace) == "its descriptor came from another process (SCM_RIGHTS)"
    trace, _ = recorded("stranger", folder)
    assert refusal(trace) == "no recorded process wrote to it"


def test_a_fifo_that_both_open(folder):
    trace, traces = recorded("fifo", folder)
    hops = check_made(trace, traces, "got", "sent = make(41 + i);", 42)
    assert "from a FIFO, written by process %d" % hops[1]["process"] in hops[0]["what"], hops


PIPELINE = {"writer": "#include <unistd.h>\nint value;\nint main(void)\n{\n    value = 41;\n    value++;\n    return write(1, &value, 4) != 4;\n}\n",
            "reader": "#include <unistd.h>\nint got;\nint main(void) { return read(0, &got, 4) != 4; }\n"}


def test_a_pipe_of_a_shell_that_is_not_recorded(folder):
    """This process makes it, and starts who writes and who reads, by themselves; a third one beside them has nothing to do with it."""
    for name, text in PIPELINE.items():
        path = os.path.join(folder, name)
        with open(path + ".c", "w", encoding="ascii") as file:
            file.write(text)
        assert tbdtest.run([tbdtest.need("cc"), "-g", "-O0", "-o", path, path + ".c"]).code == 0
    root, (read, write) = os.path.join(folder, "traces"), os.pipe()
    assert tbdtest.record([os.path.join(folder, "writer")], os.path.join(root))[0].out == b"*\0\0\0"
    started = [tbdtest.start([os.path.join(folder, "writer")], root, stdout=write), tbdtest.start([os.path.join(folder, "reader")], root, stdin=read)]
    for end in (read, write):
        os.close(end)
    for process in started:
        process.communicate(timeout=100)
        assert process.returncode == 0, started
    tbdtest.wait_organizers(root)
    trace = tbdtest.Trace(os.path.join(root, "reader-1"))
    traces = {one.info()["pid"]: one for one in tbdtest.traces(root)}
    hops = trace.ask("why", "got", at="last")
    check_hops(hops, traces)
    assert len(reads_of(hops)) == 1 and hops[0]["value"] == "0x2a", hops
    assert [hop["process"] for hop in hops if hop.get("line") == 6 and hop.get("function") == "main"][:1] == [started[0].pid], hops
    for one in traces.values():
        one.verify()
    fed = tbdtest.record([os.path.join(folder, "reader")], os.path.join(folder, "alone"), stdin=b"1234")[1]
    assert "no recorded process wrote to it" in refusal(fed), refusal(fed)


def test_connections(folder):
    """The third one: a question and its answer.  Merged and raised windows know them, too."""
    for mode, kind in (("tcp", "a TCP connection"), ("unix", "a Unix socket")):
        trace, traces = recorded(mode, folder, "window=300")
        hops = check_made(trace, traces, "got", "client_of(address, bytes, 45);", 45, trace.info()["pid"], reads=2)
        assert [kind in hop["what"] for hop in hops if hop["text"] == "syscall"] == [True] * 4, hops
        server = next(hop["process"] for hop in hops if hop.get("function") == "twice")
        assert server != trace.info()["pid"], hops
        client = next(other for pid, other in traces.items() if pid not in (server, trace.info()["pid"]))
        check_made(client, traces, "got", "client_of(address, bytes, 44);", 44, client.info()["pid"], reads=2)
        for each in traces.values():
            each.ask("lower", "all", "1")
            each.ask("merge", "all")
        assert trace.ask("why", "got", at="last") == hops
    trace, traces = recorded("unix", folder + "/raised", "window=300")
    for each in traces.values():
        each.ask("raise", "all")
    check_made(trace, traces, "got", "client_of(address, bytes, 45);", 45, trace.info()["pid"], reads=2)
    trace, traces = recorded("gone", folder)
    check_made(trace, traces, "got", "sent = make(46 + i);", 47)


def test_files(folder):
    """The last write to each place of a file, found by positions, lengths, and the clock."""
    trace, traces = recorded("file", folder)
    child = the_child(trace, traces)
    hops = check_made(trace, traces, "got", "write_at(fd, 0, 52);", 52, child)
    assert hops[0]["what"] == "made by the system call read from a file, written by process %d" % child, hops
    check_made(trace, traces, "several[0]", "write_at(fd, 4, 51);", 51, child)
    check_made(trace, traces, "several[2]", "write_at(fd, 0, 52);", 52, child)
    assert [piece["bytes"] for piece in trace.ask("why", "*(long *)&several[2]", at="last")[0]["followed"]] == [4, 4]
    trace, traces = recorded("append", folder, "window=300")
    check_made(trace, traces, "got", "sent = make(53 + i);", 55)
    for index in range(4):
        hops = trace.ask("why", "several[%d]" % index, at="last")
        check_hops(hops, traces)
        assert hops[1]["value"] == hex((53 + index) * 3 + 1), hops
    trace, traces = recorded("clock", folder)
    check_made(trace, traces, "got", "write_at(open(path, O_WRONLY), 0, 57);", 57)
    hops = recorded("mapped", folder)[0].ask("why", "got", at="last")
    assert len(hops) == 1 and "from a file; it is not known who wrote it: it was mapped, shared and writable" in hops[0]["what"], hops


def test_a_writer_whose_trace_is_gone(folder):
    trace, traces = recorded("pipe", folder)
    os.rename(traces[the_child(trace, traces)].path, os.path.join(folder, "elsewhere"))
    assert refusal(trace) == "no recorded process wrote to it"


def test_processes_in_native_play(folder):
    """Their traces number the stops until they are counted; the reader's and the writer's are, before the logs are read."""
    trace, traces = recorded("pipe", folder, "mode=native")
    check_made(trace, traces, "got", "sent = make(seed);", 5, the_child(trace, traces))
    trace, traces = recorded("tcp", folder, "mode=native")
    check_made(trace, traces, "got", "client_of(address, bytes, 45);", 45, trace.info()["pid"], reads=2)


def test_tables_csv_and_json_say_the_same(folder):
    trace, traces = recorded("pipe", folder)
    hops = trace.ask("why", "got", at="last")
    text = tbdtest.run([tbdtest.TBDQ, "-t", trace.path, "--csv", "--at", "last", "why", "got"], stdin=None).out.decode()
    parsed = list(csv.DictReader(io.StringIO(text)))
    assert [row["process"] for row in parsed] == [str(hop["process"]) for hop in hops], (parsed, hops)
    table = trace.tbdq("why", "got", at="last", json_output=False).out.decode().splitlines()
    assert table[0].split()[0] == "process" and [line.split()[0] for line in table[1:]] == [row["process"] for row in parsed], table
    assert json.loads(json.dumps(hops)) and all(re.fullmatch(r"\d+(\+\d+)?", hop["position"]) for hop in hops), hops


if __name__ == "__main__":
    tbdtest.main(*[value for name, value in sorted(globals().items()) if name.startswith("test_")])
