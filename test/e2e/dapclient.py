# SPDX-License-Identifier: MIT
"""A client of the Debug Adapter Protocol for the tests: every message of the adapter is checked against the schema."""
import json
import os
import socket
import subprocess
import threading

import dapschema
import tbdtest


class Refused(Exception):
    """The adapter has answered that it failed; the text says why."""


class Client:
    def __init__(self, trace=None, progress=False, extra=()):
        """`trace`: launches it; None: only initializes."""
        argv = [tbdtest.TBDQ, *extra, "dap"]
        self.server = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=tbdtest.clean_env())
        self._begin(lambda data: (self.server.stdin.write(data), self.server.stdin.flush()), self.server.stdout)
        self.capabilities = self.ask("initialize", adapterID="tbd", linesStartAt1=True, columnsStartAt1=True, supportsProgressReporting=progress)
        if trace is not None:
            self.launch(trace=trace.path if hasattr(trace, "path") else trace)

    def _begin(self, write, stream):
        self.write, self.stream = write, stream
        self.seq = self.last = 0
        self.messages, self.heard, self.ended = [], [], False
        self.changed = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        """All messages as they come."""
        try:
            while True:
                length = None
                while True:
                    line = self.stream.readline()
                    if not line:
                        return
                    if line == b"\r\n":
                        break
                    name, _, value = line.partition(b":")
                    assert name == b"Content-Length", line
                    length = int(value)
                message = json.loads(self.stream.read(length))
                with self.changed:
                    self.messages.append(message)
                    self.heard.append(message)
                    self.changed.notify_all()
        except (OSError, ValueError):
            return
        finally:
            with self.changed:
                self.ended = True
                self.changed.notify_all()

    def next(self, fits, timeout=120):
        """The first message that fits is taken out, and those before it that are no events."""
        def take():
            for i, message in enumerate(self.messages):
                if fits(message):
                    return self.messages.pop(i)
            return None
        found = None

        def is_there():
            nonlocal found
            found = take()
            return found is not None or self.ended
        with self.changed:
            assert self.changed.wait_for(is_there, timeout), "no such message; there are %r" % self.messages
        assert found is not None, "the adapter has ended: %r" % (self.server.stderr.read() if self.server.poll() is not None else "")
        return found

    def hear(self):
        """All messages from the first on, in their order, also those that are taken."""
        return self.heard

    def send(self, command, **arguments):
        self.seq += 1
        self.raw(json.dumps({"seq": self.seq, "type": "request", "command": command, "arguments": arguments}).encode())
        return self.seq

    def raw(self, body):
        self.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def answer(self, seq, timeout=120):
        message = self.next(lambda m: m["type"] == "response" and m["request_seq"] == seq, timeout)
        dapschema.check(message, message["seq"] - 1)
        if not message["success"]:
            raise Refused(message["body"]["error"]["format"] if "error" in message.get("body", {}) else message["message"])
        return message.get("body", {})

    def ask(self, command, **arguments):
        return self.answer(self.send(command, **arguments))

    def refused(self, command, **arguments):
        try:
            body = self.ask(command, **arguments)
        except Refused as error:
            return str(error)
        raise AssertionError("%s was not refused: %r" % (command, body))

    def event(self, name, timeout=120):
        message = self.next(lambda m: m["type"] == "event" and m["event"] == name, timeout)
        dapschema.check(message, message["seq"] - 1)
        return message.get("body", {})

    def launch(self, configure=True, **arguments):
        self.ask("launch", **arguments)
        self.event("initialized")
        if configure:
            self.ask("configurationDone")
            return self.stopped()
        return None

    def stopped(self):
        body = self.event("stopped")
        self.thread = body["threadId"]
        return body

    def go(self, command, **arguments):
        """A request that moves; the stop."""
        self.ask(command, **{"threadId": getattr(self, "thread", 0), **arguments})
        return self.stopped()

    def frames(self, **arguments):
        return self.ask("stackTrace", **{"threadId": self.thread, **arguments})["stackFrames"]

    def where(self):
        """(position, function, line) of the innermost frame."""
        frame = self.frames(levels=1)[0]
        at = self.ask("tbdPosition")
        return "%d+%d" % (at["time"], at["offset"]), frame["name"], frame["line"]

    def value(self, expression, **arguments):
        return self.ask("evaluate", expression=expression, context="watch", **arguments)["result"]

    def console(self, line):
        return self.ask("evaluate", expression=line, context="repl")["result"]

    def scope(self, name, frame=None):
        scopes = self.ask("scopes", frameId=frame if frame is not None else self.frames(levels=1)[0]["id"])["scopes"]
        return [s for s in scopes if s["name"] == name][0]["variablesReference"]

    def variables(self, reference, **arguments):
        return {v["name"]: v for v in self.ask("variables", variablesReference=reference, **arguments)["variables"]}

    def close(self):
        """Ends the session; the adapter must end, too, with a good status."""
        try:
            self.ask("disconnect")
        finally:
            self.server.stdin.close()
            self.server.wait(60)
        assert self.server.returncode == 0, (self.server.returncode, self.server.stderr.read())
        self.server.stdout.close()
        self.server.stderr.close()


class SocketClient(Client):
    """The same over a Unix socket of a server that is there."""

    def __init__(self, path, server, trace=None):
        self.server = server
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self._begin(self.socket.sendall, self.socket.makefile("rb"))
        self.ask("initialize", adapterID="tbd")
        if trace is not None:
            self.launch(trace=trace.path)

    def drop(self):
        """Goes without a word."""
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def close(self):
        self.ask("disconnect")
        self.drop()


def serve(folder, env=None):
    """(path, process) of a server at a Unix socket."""
    path = os.path.join(folder, "dap")
    server = subprocess.Popen([tbdtest.TBDQ, "dap", path], stderr=subprocess.PIPE, env=tbdtest.clean_env(env))
    assert b"listening" in server.stderr.readline()
    return path, server
