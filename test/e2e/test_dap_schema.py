#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random sequences of requests of the Debug Adapter Protocol: each message of the adapter fits the published schema, in the order that the
specification asks for, and each request has one response.  With TBD_LONG=1: 200 sequences, else a few."""
import json
import os
import random

import dapclient
import tbdtest

MOVES = ("continue", "reverseContinue", "next", "stepIn", "stepOut", "stepBack", "goto", "restart", "tbdStepBackIn", "tbdStepBackOut", "tbdLastWrite")
ODD = (None, -1, 0, 1 << 40, 1 << 62, "", "x", "\x1b[2J", "0x", "0xffffffffffffffff", [], [{}], [None], {}, True, 1.5, "{a}%s")


class Walk:
    """Makes up requests from what earlier answers have named: threads, frames, values, targets, places."""

    def __init__(self, client, rng, source, functions, expressions):
        self.client, self.rng, self.source, self.functions, self.expressions = client, rng, source, functions, expressions
        self.threads, self.frames, self.references, self.targets, self.data = [1], [0], [0], [0], ["x"]
        self.addresses, self.sources, self.asked = ["0x10"], [{"path": source}], [0]

    def points(self, make):
        return [{**make(), **self.rng.choice([{}, {}, {"condition": self.rng.choice(self.expressions) + " == 0"}, {"hitCondition": self.rng.choice(["2", ">=2", "%3", "x"])},
                                              {"logMessage": "at {%s}" % self.rng.choice(self.expressions)}])} for _ in range(self.rng.randrange(4))]

    def next(self):
        """(command, arguments)."""
        pick, number = self.rng.choice, self.rng.randrange
        thread = {"threadId": pick(self.threads)}
        makers = {
            "initialize": lambda: {"adapterID": "tbd", "supportsProgressReporting": True},
            "launch": dict, "configurationDone": dict, "threads": dict, "modules": lambda: {"startModule": number(3), "moduleCount": number(4)},
            "loadedSources": dict, "pause": lambda: thread, "restart": dict,
            "cancel": lambda: pick([{"requestId": pick(self.asked)}, {"progressId": "progress%d" % number(3)}, {}]),
            "stackTrace": lambda: {**thread, "startFrame": number(3), "levels": number(30)},
            "scopes": lambda: {"frameId": pick(self.frames)},
            "variables": lambda: {"variablesReference": pick(self.references), **pick([{}, {"start": number(4), "count": number(6)}, {"filter": pick(["indexed", "named"])},
                                                                                      {"format": {"hex": True}}])},
            "evaluate": lambda: {"expression": pick(self.expressions + ["1+1", "x/3i $pc", "where", "calls " + pick(self.functions), "goto last", "nonsense("]),
                                 "context": pick(["watch", "hover", "repl", "clipboard", "variables"]), **pick([{}, {"frameId": pick(self.frames)}])},
            "completions": lambda: {"text": pick(["goto fi", "print ", "", "calls "]), "column": number(9)},
            "exceptionInfo": lambda: thread,
            "source": lambda: {"source": pick(self.sources), "sourceReference": number(2)},
            "breakpointLocations": lambda: {"source": pick(self.sources), "line": number(80), "endLine": number(90)},
            "gotoTargets": lambda: {"source": pick(self.sources), "line": number(80)},
            "goto": lambda: {**thread, "targetId": pick(self.targets)},
            "setBreakpoints": lambda: {"source": pick(self.sources), "breakpoints": self.points(lambda: {"line": number(80)})},
            "setFunctionBreakpoints": lambda: {"breakpoints": self.points(lambda: {"name": pick(self.functions + ["none"])})},
            "setInstructionBreakpoints": lambda: {"breakpoints": self.points(lambda: {"instructionReference": pick(self.addresses), "offset": number(9)})},
            "dataBreakpointInfo": lambda: pick([{"name": pick(self.expressions)}, {"name": "x", "variablesReference": pick(self.references)},
                                                {"name": pick(self.addresses), "asAddress": True, "bytes": number(9)}]),
            "setDataBreakpoints": lambda: {"breakpoints": [{"dataId": pick(self.data), "accessType": pick(["read", "write", "readWrite"])} for _ in range(number(3))]},
            "setExceptionBreakpoints": lambda: {"filters": pick([[], ["fatal"], ["signals"], ["none"]]), "filterOptions": pick([[], [{"filterId": "signals", "condition": "signal==10"}]])},
            "readMemory": lambda: {"memoryReference": pick(self.addresses), "offset": number(99) - 50, "count": number(99)},
            "disassemble": lambda: {"memoryReference": pick(self.addresses), "instructionOffset": number(9) - 5, "instructionCount": number(12), "resolveSymbols": True},
            "setVariable": lambda: {"variablesReference": pick(self.references), "name": "x", "value": "1"},
            "stepInTargets": lambda: {"frameId": pick(self.frames)}, "noSuchRequest": dict,
            "tbdPosition": dict, "tbdAsk": lambda: {"line": pick(["where", "bt", "calls " + pick(self.functions)])}, "tbdLastWrite": lambda: {"name": pick(self.expressions)},
        }
        for command in ("next", "stepIn", "stepOut", "stepBack", "tbdStepBackIn", "tbdStepBackOut", "continue", "reverseContinue"):
            makers[command] = lambda: {**thread, **pick([{}, {}, {"granularity": pick(["statement", "line", "instruction"])}])}
        command = pick(list(makers) + ["stepIn", "next", "stepBack", "variables", "scopes", "stackTrace"] * 2)
        arguments = makers[command]()
        if number(8) == 0 and arguments:
            arguments[pick(list(arguments))] = pick(ODD)
        return command, arguments

    def learn(self, command, body):
        rows = {"threads": "threads", "stackTrace": "stackFrames", "scopes": "scopes", "variables": "variables", "gotoTargets": "targets", "loadedSources": "sources"}
        if command == "dataBreakpointInfo" and body["dataId"]:
            self.data.append(body["dataId"])
        for row in body.get(rows.get(command, ""), []):
            self.references.append(row.get("variablesReference", 0))
            self.addresses += [row[name] for name in ("memoryReference", "instructionPointerReference") if row.get(name)]
            if command == "loadedSources":
                self.sources.append(row)
            known = {"threads": self.threads, "stackTrace": self.frames, "gotoTargets": self.targets}.get(command)
            if known is not None:
                known.append(row["id"])


def check_whole(messages, requests):
    """Everything that the adapter has sent, in its order."""
    last, open_moves, shown, answered = 0, 0, None, {}
    initialized = False
    for message in messages:
        dapclient.dapschema.check(message, last)
        last = message["seq"]
        if message["type"] == "event":
            name, body = message["event"], message.get("body", {})
            if name == "initialized":
                assert not initialized and any(requests.get(seq, [""])[0] in ("launch", "attach") for seq in answered), message
                initialized = True
            if name == "stopped":
                assert open_moves > 0, ("a stop without a request that moves", message)
                open_moves -= 1
            if name == "progressStart":
                assert shown is None and body["requestId"] in requests and body["requestId"] not in answered or open_moves, message
                shown = body["progressId"]
            if name in ("progressUpdate", "progressEnd"):
                assert shown == body["progressId"], message
                shown = None if name == "progressEnd" else shown
            continue
        seq = message["request_seq"]
        command, arguments = requests[seq]
        assert seq not in answered and message["command"] == command, (message, command)
        answered[seq] = message
        moved = command in MOVES or (command == "evaluate" and message["success"] and arguments.get("expression") == "goto last")
        open_moves += message["success"] and (moved or command == "configurationDone")
        if message["success"] and command.startswith("set") and "breakpoints" in message.get("body", {}) and isinstance(arguments.get("breakpoints"), list):
            assert len(message["body"]["breakpoints"]) == len(arguments["breakpoints"]), message
        if message["success"] and command == "disassemble" and isinstance(arguments.get("instructionCount"), int):
            assert len(message["body"]["instructions"]) == arguments["instructionCount"], (arguments, message)
    assert set(answered) == set(requests) and shown is None, set(requests) - set(answered)


def one_walk(path, server, trace, number, program):
    rng = random.Random(number)
    client = dapclient.SocketClient(path, server)
    heard = client.hear()
    walk = Walk(client, rng, *program)
    requests = {1: ("initialize", {})}

    def send(command, arguments):
        seq = client.send(command, **arguments)
        requests[seq] = (command, json.loads(json.dumps(arguments)))
        walk.asked.append(seq)
        return seq

    def take(seqs):
        for seq in seqs:
            message = client.next(lambda m, seq=seq: m["type"] == "response" and m["request_seq"] == seq, 60)
            if message["success"]:
                walk.learn(message["command"], message.get("body", {}))
    if rng.randrange(8):
        take([send("launch", {"trace": trace.path, "at": rng.choice(["first", "last", "first forward func_enter 1 where func==main"])})])
        take([send("threads", {})])
    for _ in range(12):
        if rng.randrange(3):
            take([send("stackTrace", {"threadId": walk.threads[-1]})])
        take([send(*walk.next()) for _ in range(rng.choice([1, 1, 1, 2, 5]))])
    last = send("disconnect", {})
    client.next(lambda m: m["type"] == "response" and m["request_seq"] == last)
    client.drop()
    with client.changed:
        client.changed.wait_for(lambda: client.ended, 60)
    check_whole(heard, requests)


def test_random_sequences_fit_the_schema(folder):
    programs = [
        ([os.path.join(tbdtest.BUILD, "examples", "overflow")], ("/x/overflow.c", ["set_name", "main"], ["settings.limit", "settings", "name", "&settings", "argv"])),
        ([tbdtest.program("containers")], ("/x/containers.cc", ["work", "main"], ["words", "numbers", "this", "argc"])),
        ([tbdtest.program("thread_lives")], ("/x/thread_lives.c", ["work", "main"], ["argc", "errno", "stdout"])),
        ([tbdtest.program("die_segv")], ("/x/die_segv.c", ["main"], ["argc", "environ"])),
    ]
    count = 200 if tbdtest.LONG else 16
    path, server = dapclient.serve(folder, {"TBD_DIR": os.path.join(folder, "t0")})  # a launch without a name opens the latest there
    try:
        for i, (argv, program) in enumerate(programs):
            trace = tbdtest.record(argv, os.path.join(folder, "t%d" % i))[1]
            for number in range(i, count, len(programs)):
                try:
                    one_walk(path, server, trace, number, program)
                except AssertionError as error:
                    raise AssertionError("sequence %d: %s" % (number, error)) from error
        assert server.poll() is None
    finally:
        server.terminate()
        said = server.communicate()[1]
    assert b"Sanitizer" not in said, said[-3000:]


if __name__ == "__main__":
    tbdtest.main(test_random_sequences_fit_the_schema)
