#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A trace in an editor, through the Debug Adapter Protocol: every message fits the published schema, steps are those of tbdq and gdb,
stops are the events that tbdq finds, and nothing that a client sends stops the adapter."""
import base64
import json
import os
import random
import subprocess

import dapclient
import tbdtest
import test_remote

OVERFLOW = os.path.join(tbdtest.BUILD, "examples", "overflow")
MAIN = "first forward func_enter 1 where func==main"


def record(argv, folder):
    return tbdtest.record(argv, folder)[1]


def begin(trace, at="first", **how):
    client = dapclient.Client(**how)
    client.launch(trace=trace.path, at=at)
    return client


def places(trace, commands):
    """Where tbdq's own commands lead, one after another: [(position, line)]."""
    script = "goto %s\n" % MAIN + "".join("%s\nwhere\nprint 1\n" % command for command in commands)
    result = tbdtest.run([tbdtest.TBDQ, "-t", trace.path, "--json"], stdin=script.encode())
    rows = [json.loads(line) for line in result.out.splitlines()]
    found = [rows[i - 1] for i, row in enumerate(rows) if "expression" in row]
    return [("%d+%d" % (row["time"], row["offset"]), row.get("line")) for row in found]


def test_steps_are_those_of_tbdq(folder):
    trace = record([OVERFLOW], folder)
    words = {"next": "next", "stepIn": "step", "stepOut": "finish", "stepBack": "reverse-next", "tbdStepBackIn": "reverse-step",
             "tbdStepBackOut": "reverse-finish"}
    rng = random.Random(7)
    walk = ["stepIn", "stepIn", "stepIn", "next", "stepBack", "stepOut", "stepIn", "tbdStepBackIn", "tbdStepBackOut", "stepIn"]
    walk += [rng.choice(["stepIn", "stepIn", "stepBack", "tbdStepBackIn", "stepIn"]) for _ in range(30)] + ["stepOut", "next", "next", "stepBack"]
    wanted = places(trace, [words[w] for w in walk])
    client = begin(trace, MAIN)
    found = []
    for word in walk:
        assert client.go(word)["reason"] in ("step", "entry", "pause")
        at, _, line = client.where()
        found.append((at, line))
    client.close()
    assert len(set(found)) > 6 and found == wanted, [x for x in zip(walk, found, wanted) if x[1] != x[2]][:3]


def test_lines_back_are_those_of_gdb(folder):
    """gdb finds the line before by its own algorithm; it knows the trace through its remote protocol only."""
    trace = record([tbdtest.program("containers")], folder)
    steps = ["next"] * 7 + ["reverse-next"] * 5 + ["step"] * 2 + ["finish", "next", "next", "reverse-next", "reverse-next"]
    gdb = test_remote.in_trace(trace, "gdb.Breakpoint('containers.cc:57')\nrun('continue')\ngdb.execute('delete')\nsay(state()[4])\n" +
                               "".join("run(%r)\nsay(state()[4])\n" % step for step in steps))
    words = {"next": "next", "step": "stepIn", "finish": "stepOut", "reverse-next": "stepBack", "reverse-step": "tbdStepBackIn"}
    client = begin(trace)
    answer = client.ask("setBreakpoints", source={"path": "/somewhere/containers.cc"}, breakpoints=[{"line": 57}])
    assert answer["breakpoints"][0]["verified"]
    client.go("continue")
    ours = [client.where()[2]]
    client.ask("setBreakpoints", source={"path": "/somewhere/containers.cc"}, breakpoints=[])
    for step in steps:
        client.go(words[step])
        ours.append(client.where()[2])
    client.close()
    assert len(set(gdb)) > 6 and ours == gdb, [x for x in zip(["start"] + steps, ours, gdb) if x[1] != x[2]][:4]


def test_breakpoints_of_all_kinds(folder):
    trace = record([OVERFLOW], folder)
    calls = ["%d+%d" % (row["time"], row["offset"]) for row in trace.events("func_enter", "func==set_name")]
    stores = ["%d+%d" % (row["time"], row["offset"]) for row in trace.ask("all", "store", "where", "addr>=&settings+16 and addr<&settings+20")]
    client = begin(trace)

    def stops(command, count=50):
        found = []
        while len(found) < count:
            body = client.go(command)
            if body["reason"] in ("entry", "pause"):
                break
            found.append(client.where()[0])
        return found
    assert len(calls) == 3 and len(stores) >= 4
    client.ask("setFunctionBreakpoints", breakpoints=[{"name": "set_name"}])
    assert stops("continue") == calls and stops("reverseContinue") == calls[::-1]
    for hit, wanted in (("2", calls[1:2]), (">=2", calls[1:]), (">1", calls[1:]), ("%2", calls[1:2]), ("%3", calls[2:]), ("==4", [])):
        answer = client.ask("setFunctionBreakpoints", breakpoints=[{"name": "set_name", "hitCondition": hit}])
        assert answer["breakpoints"][0]["verified"]
        assert stops("continue") == wanted and stops("reverseContinue") == wanted[::-1], hit
    client.ask("setFunctionBreakpoints", breakpoints=[{"name": "set_name", "condition": "name[0] == 'a'"}])
    assert stops("continue") == calls[1:2] and stops("reverseContinue") == calls[1:2]
    answer = client.ask("setFunctionBreakpoints", breakpoints=[{"name": "no_such"}, {"name": "set_name", "condition": "nothing > 1"}, {"name": ""},
                                                               {"name": "set_name", "hitCondition": "often"}])["breakpoints"]
    assert [b["verified"] for b in answer] == [False] * 4 and all(b["message"] for b in answer), answer
    # A line; one without code means the next that has some.
    answer = client.ask("setBreakpoints", source={"path": "/elsewhere/overflow.c"},
                        breakpoints=[{"line": 34}, {"line": 31}, {"line": 5000}, {"line": 37, "logMessage": "limit {settings.limit}, {nonsense"}])["breakpoints"]
    assert [b["verified"] for b in answer] == [True, True, False, True] and [b.get("line") for b in answer] == [35, 35, None, 37], answer
    client.ask("setBreakpoints", source={"path": "/elsewhere/overflow.c"}, breakpoints=[{"line": 37, "logMessage": "limit {settings.limit}, {nope}"}])
    assert stops("continue") == []
    printed = client.event("output")["output"]
    assert printed.startswith("limit 1936601658, <") and printed.endswith(">\n"), printed
    client.ask("setBreakpoints", source={"path": "/elsewhere/overflow.c"}, breakpoints=[])
    # Data: `limit` of the global, by expression and by its place in the scope.
    info = client.ask("dataBreakpointInfo", name="settings.limit")
    assert info["dataId"].endswith(",4") and "write" in info["accessTypes"], info
    assert client.ask("dataBreakpointInfo", name="1+1")["dataId"] is None
    client.ask("setDataBreakpoints", breakpoints=[{"dataId": info["dataId"], "accessType": "write"}])
    assert set(stops("reverseContinue")) <= set(stores)
    client.ask("setDataBreakpoints", breakpoints=[])
    stops("continue")
    client.ask("tbdLastWrite", name="settings.limit")
    client.stopped()
    assert client.where()[:2] == (stores[-1], "set_name")
    # An instruction, as the frame names it.
    pc = client.frames()[0]["instructionPointerReference"]
    client.ask("setInstructionBreakpoints", breakpoints=[{"instructionReference": pc}])
    assert client.go("reverseContinue")["reason"] == "instruction breakpoint" and client.frames()[0]["instructionPointerReference"] == pc
    client.close()


def test_signals_and_threads(folder):
    trace = record([tbdtest.program("die_segv")], folder)
    signal = trace.one("signals")
    client = dapclient.Client()
    stop = client.launch(trace=trace.path)
    assert stop["reason"] == "exception" and client.ask("exceptionInfo", threadId=client.thread)["exceptionId"] == "SIGSEGV"
    client.ask("setExceptionBreakpoints", filters=["fatal"])
    client.go("reverseContinue")
    assert client.go("continue")["reason"] == "exception"
    assert client.frames()[0]["instructionPointerReference"] == signal["pc"]
    client.close()
    trace = record([tbdtest.program("thread_lives")], folder + "/threads")
    middle = str(max(row["start"] for row in trace.ask("threads")) + 1)
    client = begin(trace, middle)
    living = {row["thread"]: row for row in trace.ask("threads", at=middle) if "pc" in row}
    threads = client.ask("threads")["threads"]
    assert {t["id"]: t["name"] for t in threads} == {tid: row["name"] for tid, row in living.items()} and len(threads) > 1
    for thread in threads:
        rows = [json.loads(line) for line in trace.tbdq("--thread", str(thread["id"]), "bt", at=middle).out.splitlines()]
        frames = client.frames(threadId=thread["id"])
        assert [f["instructionPointerReference"] for f in frames] == [row["pc"] for row in rows] and len(rows) > 0
        assert [f["instructionPointerReference"] for f in client.frames(threadId=thread["id"], startFrame=1, levels=1)] == [r["pc"] for r in rows[1:2]]
    assert "lives here" in client.refused("stackTrace", threadId=1)
    client.close()


def test_values_part_by_part(folder):
    trace = record([tbdtest.program("containers")], folder)
    at = "first forward line 1 where src=<containers.cc,73>"
    client = begin(trace, at)
    at, function, _ = client.where()
    assert function.endswith("work") or "work(" in function, function
    wanted = {row["name"]: row for row in trace.ask("locals", at=at)}
    found = {**client.variables(client.scope("Locals")), **client.variables(client.scope("Arguments"))}
    assert {name: v["value"] for name, v in found.items()} == {name: row["value"] for name, row in wanted.items()} and len(found) > 15

    def tree(value, levels):
        """The value's parts as nested lists and dictionaries."""
        if not value["variablesReference"] or levels == 0:
            return value["value"]
        count = value.get("indexedVariables", 0)
        if not count:
            return {name: tree(v, levels - 1) for name, v in client.variables(value["variablesReference"]).items()}
        paged = []
        for start in range(0, count, 2):
            paged += [tree(v, levels - 1) for v in client.variables(value["variablesReference"], start=start, count=2, filter="indexed").values()]
        whole = client.variables(value["variablesReference"])
        assert len(paged) == count == len(whole), (value, len(paged), len(whole))
        return paged
    assert tree(found["ordered"], 2) == ["1", "2", "3"] and tree(found["list"], 2) == ["4", "5"]
    assert tree(found["bits"], 2) == ["true", "false", "true"] and tree(found["numbers"], 2) == [str(n) for n in wanted["numbers"]["data"]]
    words = client.variables(found["words"]["variablesReference"])
    assert {name: v["value"] for name, v in words.items()} == {'["one"]': "1", '["three"]': "3", '["two"]': "2"}, words
    queue = client.variables(found["queue"]["variablesReference"], start=3, count=2)
    assert [v["value"] for v in queue.values()] == [str(n) for n in wanted["queue"]["data"][3:5]]
    # Every part that has an expression is what the expression means.
    asked = 0
    for value in found.values():
        for part in client.variables(value["variablesReference"]).values() if value["variablesReference"] else ():
            if part.get("evaluateName") and not part["name"].startswith("<"):
                assert client.value(part["evaluateName"]) == part["value"], part
                asked += 1
    assert asked > 10, asked
    assert client.value("box.value * 2") == "3" and "recording cannot be changed" in client.refused("setVariable", variablesReference=1, name="x", value="1")
    assert "optimized" not in client.value("item->price") and client.refused("evaluate", expression="nothing", context="hover")
    registers = client.variables(client.scope("Registers"))
    regs = trace.one("regs", at=at)
    assert all(int(registers[name]["value"], 0) == int(regs[name], 0) for name in ("rax", "rsp", "r15", "rip", "rflags"))
    memory = client.ask("readMemory", memoryReference=registers["rsp"]["value"], count=64)
    said = b"".join(bytes.fromhex(row["bytes"].replace(" ", "")) for row in trace.ask("mem", "rsp", "64", at=at))
    assert base64.b64decode(memory["data"]) == said
    assert client.ask("readMemory", memoryReference="0x10", count=16)["unreadableBytes"] == 16
    code = client.ask("disassemble", memoryReference=registers["rip"]["value"], instructionOffset=-3, instructionCount=8)["instructions"]
    rows = trace.ask("disas", "work", at=at)
    index = [row["pc"] for row in rows].index(registers["rip"]["value"])
    assert [i["address"] for i in code] == [row["pc"] for row in rows[index - 3:index + 5]], (code, index)
    client.close()


def test_no_client_stops_the_adapter(folder):
    trace = record([OVERFLOW], folder)
    path, server = dapclient.serve(folder)
    try:
        client = dapclient.SocketClient(path, server, trace)
        for command in ("noSuchRequest", "setVariable", "writeMemory"):
            assert client.refused(command)
        rng = random.Random(3)
        odd = [None, -1, 0, 1 << 40, "", "x", "0x", "\x1b[2J", "0xffffffffffffffff", [], [{}], [None], {}, {"path": "../../etc/passwd"}, True, 1.5]
        names = ("threadId frameId variablesReference name expression line source breakpoints memoryReference count offset instructionCount "
                 "instructionOffset targetId text column start levels startFrame filters filterOptions dataId context requestId arguments").split()
        asked = [c for c in dapclient.dapschema.RESPONSES if c not in ("disconnect", "launch", "attach", "initialize", "terminate")]
        seqs = []
        for i in range(400):
            seqs.append(client.send(rng.choice(asked), **{rng.choice(names): rng.choice(odd) for _ in range(rng.randrange(5))}))
        for seq in seqs:
            message = client.next(lambda m, seq=seq: m["type"] == "response" and m["request_seq"] == seq)
            dapclient.dapschema.check(message, message["seq"] - 1)
            assert "root:" not in json.dumps(message)
        for body in (b"", b"{", b"[]", b"{}", b'{"seq":1}', b'{"type":"request","command":3,"seq":1}', b"\xff\xfe", b'{"a":' * 5000, b"x" * 100000):
            client.raw(body)
            message = client.next(lambda m: m["type"] == "response" and m["request_seq"] == 0)
            assert not message["success"] and message["message"], message
        for number, odd in enumerate((b"\\ud800", b"\\udc00\\ud83d", b"\\u0000", b"\xff", b"\xed\xa0\x80"), 100000):  # no string of UTF-8
            client.raw(b'{"type":"request","command":"evaluate","seq":%d,"arguments":{"expression":"%s","context":"watch"}}' % (number, odd))
            message = client.next(lambda m, seq=number: m["type"] == "response" and m["request_seq"] == seq)
            assert not message["success"] and message["message"] and message["command"] == "evaluate", message
        client.write(b"Content-Length: 99999999999\r\n\r\n")
        client.write(b"x" * 10)
        assert "4 MiB" in client.next(lambda m: m["type"] == "response" and m["request_seq"] == 0)["message"]
        client.drop()                                           # in the middle of that message
        client = dapclient.SocketClient(path, server, trace)   # the next client is served
        client.write(b"\0\1garbage\r\n\r\n" * 300)
        client.write(b"Content-Length: nonsense\r\n\r\n")
        assert client.where()[0]
        client.send("reverseContinue", threadId=client.thread)
        client.drop()                                           # while it searches
        client = dapclient.SocketClient(path, server, trace)
        assert client.where()[0]
        client.close()
    finally:
        server.terminate()
        server.communicate()
    for wrong in (["example.com:1234"], ["0.0.0.0:1"], [":70000"], ["a", "b"]):
        said = tbdtest.run([tbdtest.TBDQ, "dap"] + wrong)
        assert said.code == 2 and said.err, said


def test_two_clients_and_a_program_that_is_recorded(folder):
    traces = os.path.join(folder, "traces")
    client = dapclient.Client(progress=True)
    client.launch(program=OVERFLOW, args=["x"], recordOptions=["--dir=" + traces], at=MAIN)
    assert client.event("output")["output"] == "limit is 1936601658, it should be 100\n"
    trace = client.ask("tbdPosition")["trace"]
    assert os.path.dirname(trace) == traces and client.where()[1] == "main"
    second = dapclient.Client(trace)
    before = client.where()
    second.go("reverseContinue")
    assert client.where() == before and second.where() != before
    assert second.console("goto " + MAIN) and second.stopped()["reason"] == "goto" and second.where() == before
    assert "func_enter" in [t["label"] for t in second.ask("completions", text="goto first forward func", column=24)["targets"]]
    rows = second.ask("tbdAsk", line="calls set_name")["rows"]
    assert len(rows) == 3 and second.where() == before, rows
    target = second.ask("gotoTargets", source={"path": "overflow.c"}, line=37)["targets"][0]
    second.ask("goto", threadId=second.thread, targetId=target["id"])
    assert second.stopped()["reason"] == "goto" and second.where()[2] == 37
    sources = second.ask("loadedSources")["sources"]
    text = second.ask("source", source=[s for s in sources if s["name"] == "overflow.c"][0], sourceReference=0)["content"]
    assert "void set_name(const char *name)" in text and second.refused("source", source={"path": "/etc/passwd"}, sourceReference=0)
    lines = [row["line"] for row in second.ask("breakpointLocations", source={"path": "overflow.c"}, line=30, endLine=38)["breakpoints"]]
    assert lines, lines
    for line in range(30, 39):  # a line without code means the next one that has some
        set_at = second.ask("setBreakpoints", source={"path": "overflow.c"}, breakpoints=[{"line": line}])["breakpoints"][0]
        assert set_at["line"] == min([there for there in lines if there >= line], default=set_at["line"]), (line, set_at, lines)
    second.ask("setBreakpoints", source={"path": "overflow.c"}, breakpoints=[])
    assert second.ask("breakpointLocations", source={"path": "overflow.c"}, line=1 << 62, endLine=1 << 63 - 1)["breakpoints"] == []
    assert any(m["name"] == "overflow" for m in second.ask("modules")["modules"])
    second.close()
    client.close()
    third = dapclient.Client()
    assert "no trace is open" in third.refused("threads") and third.refused("launch", trace=folder + "/none")
    assert third.refused("launch", program=folder + "/none")
    third.close()
    result = subprocess.run([tbdtest.TBDQ, "dap"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=tbdtest.clean_env(), timeout=60, check=False)
    assert result.returncode == 0 and result.stdout == b""


def test_long_searches_are_shown_and_cancelled(folder):
    """Progress events from beginning to end; by the request's number or the progress', while it searches and while it waits."""
    trace = record([os.path.join(tbdtest.BUILD, "examples", "ray")], folder)
    client = dapclient.Client(progress=True)
    client.launch(trace=trace.path, at="first")
    slow = "all state where rax==0x123456789"  # every instruction of 10 million blocks
    for by_request in (True, False):
        seq = client.send("evaluate", expression=slow, context="repl")
        waiting = client.send("evaluate", expression="1+1", context="watch")
        begun = client.event("progressStart")
        assert begun["requestId"] == seq and begun["cancellable"] and begun["title"], begun
        update = client.next(lambda m, begun=begun: m.get("event") == "progressUpdate" and m["body"]["progressId"] == begun["progressId"])
        dapclient.dapschema.check(update, update["seq"] - 1)
        assert 0 <= update["body"]["percentage"] <= 100, update
        cancelled = client.send("cancel", **({"requestId": seq} if by_request else {"progressId": begun["progressId"]}))
        try:
            client.answer(seq)
            raise AssertionError("it was not cancelled")
        except dapclient.Refused as error:
            assert "cancelled" in str(error), error
        assert client.event("progressEnd")["progressId"] == begun["progressId"]
        client.answer(cancelled)
        assert client.answer(waiting)["result"] == "2"
    # A request that has not begun, too.
    seq, later = client.send("evaluate", expression=slow, context="repl"), client.send("evaluate", expression="2+2", context="watch")
    client.event("progressStart")
    client.send("cancel", requestId=later)
    client.send("cancel", requestId=seq)
    for number in (seq, later):
        try:
            client.answer(number)
            raise AssertionError("it was not cancelled")
        except dapclient.Refused:
            pass
    assert client.value("3+3") == "6"
    client.close()


NPM = """
const { DebugClient } = require(%s);
const client = new DebugClient(%s, 'dap', 'tbd'), said = [];
client.defaultTimeout = 60000;
async function go(request) {
    const [stop] = await Promise.all([client.waitForEvent('stopped'), request()]);
    const frames = await client.stackTraceRequest({ threadId: stop.body.threadId });
    const frame = frames.body.stackFrames[0];
    said.push([stop.body.reason, frame.name, frame.line]);
    return { threadId: stop.body.threadId, frame };
}
(async () => {
    await client.start();
    const has = await client.initializeRequest({ adapterID: 'tbd', linesStartAt1: true, columnsStartAt1: true, pathFormat: 'path' });
    said.push([has.body.supportsStepBack, has.body.supportsDataBreakpoints, has.body.supportsGotoTargetsRequest]);
    await Promise.all([client.waitForEvent('initialized'), client.launchRequest({ trace: %s, at: %s })]);
    await client.setFunctionBreakpointsRequest({ breakpoints: [{ name: 'set_name' }] });
    let { threadId, frame } = await go(() => client.configurationDoneRequest({}));
    ({ threadId, frame } = await go(() => client.continueRequest({ threadId })));
    await go(() => client.nextRequest({ threadId }));
    await go(() => client.stepBackRequest({ threadId }));
    await go(() => client.stepOutRequest({ threadId }));
    await go(() => client.reverseContinueRequest({ threadId }));
    ({ frame } = await go(() => client.stepInRequest({ threadId })));
    const scopes = await client.scopesRequest({ frameId: frame.id });
    const variables = await client.variablesRequest({ variablesReference: scopes.body.scopes[0].variablesReference });
    said.push(variables.body.variables.map((v) => v.name));
    said.push((await client.evaluateRequest({ expression: 'name', context: 'hover', frameId: frame.id })).body.result);
    const targets = await client.gotoTargetsRequest({ source: frame.source, line: 37 });
    await go(() => client.gotoRequest({ threadId, targetId: targets.body.targets[0].id }));
    said.push((await client.threadsRequest()).body.threads.length);
    console.log(JSON.stringify(said));
    await client.disconnectRequest({});
})().catch((error) => { console.error(error); process.exit(1); });
"""


def test_the_test_client_of_debug_adapters(folder):
    """@vscode/debugadapter-testsupport of npm, which editors' authors test with, finds the same places."""
    module = os.environ.get("TBD_DAP_CLIENT", "@vscode/debugadapter-testsupport")
    if tbdtest.run([tbdtest.need("node"), "-e", "require.resolve(%s)" % json.dumps(module)]).code:
        raise tbdtest.Skip("no @vscode/debugadapter-testsupport: npm install it, and set TBD_DAP_CLIENT to its path")
    trace = record([OVERFLOW], folder)
    script = os.path.join(folder, "client.js")
    with open(script, "w", encoding="utf-8") as f:
        f.write(NPM % tuple(json.dumps(text) for text in (module, tbdtest.TBDQ, trace.path, MAIN)))
    result = tbdtest.run(["node", script])
    assert result.code == 0, result
    said = json.loads(result.out.splitlines()[-1])
    assert said[0] == [True, True, True], said
    entry, over = ["function breakpoint", "set_name", said[2][2]], said[3]
    assert said[1][:2] == ["entry", "main"] and said[2] == entry and over[:2] == ["step", "main"] and said[4] == entry, said
    assert said[5] == over and said[6] == entry and said[7][0] == "step", said
    assert said[9] and said[10] == ["goto", said[10][1], 37] and said[11] == 1, said


EXTENSION = """
const Module = require('module'), commands = {}, said = [], asked = [], answers = %s;
let adapters, onEvent, bar = { show() { said.push(this.text); }, hide() {} };
const session = { type: 'tbd', customRequest: async (name, args) => { asked.push([name, args]); return answers[name]; } };
const vscode = {
    window: { createStatusBarItem: () => bar, showInputBox: async (how) => how.value || '', showErrorMessage: (text) => said.push(text),
              showInformationMessage: (text) => said.push(text), showQuickPick: async (all) => { said.push(all); return all[1]; }, activeTextEditor: undefined },
    workspace: { getConfiguration: () => ({ get: (name, otherwise) => otherwise }) }, StatusBarAlignment: { Left: 1 },
    DebugAdapterExecutable: class { constructor(...words) { this.words = words; } },
    commands: { registerCommand: (name, run) => { commands[name] = run; } },
    debug: { activeDebugSession: session, activeStackItem: { threadId: 7, frameId: 3 }, registerDebugAdapterDescriptorFactory: (type, factory) => { adapters = factory; },
             registerDebugConfigurationProvider() {}, onDidReceiveDebugSessionCustomEvent: (call) => { onEvent = call; }, onDidTerminateDebugSession() {} },
};
const load = Module._load;
Module._load = (name, ...rest) => name === 'vscode' ? vscode : load(name, ...rest);
require(%s).activate({ subscriptions: [] });
(async () => {
    onEvent({ session, event: 'tbdPosition', body: { time: 500, offset: 2, blocks: 1001 } });
    await commands['tbd.lastWrite']({ container: { variablesReference: 4 }, variable: { name: 'x' } });
    await commands['tbd.lastWrite']({ container: { variablesReference: 4 }, variable: { name: 'y', evaluateName: 'p->y' } });
    vscode.window.showInputBox = async (how) => how.prompt === 'A function' ? 'set_name' : 'name[0] != 0';
    await commands['tbd.callers']();
    await commands['tbd.stepBackIn']();
    console.log(JSON.stringify({ said, asked, commands: Object.keys(commands), adapter: adapters.createDebugAdapterDescriptor().words }));
})();
"""


def test_the_extension_for_vs_code_asks_what_the_adapter_answers(folder):
    """With a stand-in for the editor; its requests are then sent to the adapter."""
    tbdtest.need("node")
    trace = record([OVERFLOW], folder)
    client = begin(trace, "last")
    source = os.path.join(tbdtest.SOURCE, "editors", "vscode")
    rows = client.ask("tbdAsk", line="calls set_name where name[0] != 0")
    script = os.path.join(folder, "run.js")
    with open(script, "w", encoding="utf-8") as f:
        f.write(EXTENSION % (json.dumps({"tbdAsk": rows}), json.dumps(os.path.join(source, "extension.js"))))
    said = tbdtest.run(["node", script])
    assert said.code == 0, said
    found = json.loads(said.out)
    assert found["adapter"] == ["tbdq", ["dap"]] and "500+2" in found["said"][0], found
    with open(os.path.join(source, "package.json"), encoding="utf-8") as f:
        package = json.load(f)
    assert {c["command"] for c in package["contributes"]["commands"]} == set(found["commands"])
    asked = found["asked"]
    assert asked[0] == ["tbdLastWrite", {"name": "x", "variablesReference": 4}] and asked[1] == ["tbdLastWrite", {"name": "p->y", "frameId": 3}], asked
    assert asked[2] == ["tbdAsk", {"line": "calls set_name where name[0] != 0"}] and len(found["said"][1]) == len(rows["rows"]) == 3, found
    assert asked[3][0] == "evaluate" and asked[4] == ["tbdStepBackIn", {"threadId": 7}], asked
    client.ask("evaluate", **asked[3][1])
    assert client.stopped()["reason"] == "goto" and client.where()[0] == found["said"][1][1]["description"] and client.where()[1] == "set_name"
    client.close()


if __name__ == "__main__":
    tbdtest.main(test_steps_are_those_of_tbdq, test_lines_back_are_those_of_gdb, test_breakpoints_of_all_kinds, test_signals_and_threads,
                 test_values_part_by_part, test_no_client_stops_the_adapter, test_two_clients_and_a_program_that_is_recorded,
                 test_long_searches_are_shown_and_cancelled, test_the_test_client_of_debug_adapters, test_the_extension_for_vs_code_asks_what_the_adapter_answers)
