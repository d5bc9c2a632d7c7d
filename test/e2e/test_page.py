#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`tbdq view`: what the page shows is what tbdq says; it moves, asks and links; nothing that a program wrote becomes part of it; only who has its
address is answered; no client stops the server."""
import contextlib
import http.client
import json
import os
import random
import re
import signal
import socket
import subprocess
import time

import tbdtest
import webdriver

OVERFLOW = os.path.join(tbdtest.BUILD, "examples", "overflow")
RAY = os.path.join(tbdtest.BUILD, "examples", "ray")
SHOWN = "document.documentElement.dataset.at === arguments[0]"
MARKUP = "<img src=x onerror=window.owned=1>"


class Page:
    """A server; its address is `url`."""

    def __init__(self, trace, *words, at="first"):
        self.trace = trace
        self.process = subprocess.Popen([tbdtest.TBDQ, "-t", trace.path, "--at", at, "view", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env=tbdtest.clean_env())
        self.url = self.process.stdout.readline().decode().strip()
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/([0-9a-f]{32})/", self.url)
        assert found, (self.url, self.process.poll())
        self.port, self.token = int(found[1]), found[2]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        _, said = self.process.communicate(timeout=60)
        if error[0] is None:
            assert self.process.returncode == 0 and said == b"", (self.process.returncode, said[-2000:])

    def request(self, path, body=None, headers=None, method=None):
        """(status, body, headers)"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request(method or ("GET" if body is None else "POST"), path, body, headers or {})
        reply = connection.getresponse()
        with contextlib.closing(connection):
            return reply.status, reply.read(), dict(reply.getheaders())

    def ask(self, **question):
        status, body, _ = self.request("/%s/ask" % self.token, json.dumps(question))
        assert status == 200, (status, body)
        return json.loads(body)


def record(argv, folder):
    return tbdtest.record(argv, folder)[1]


def position(trace, *question):
    event = trace.one(*question)
    return "%d+%d" % (event["time"], event["offset"]) if event["offset"] else str(event["time"])


def is_shown(browser, at):
    browser.await_true(SHOWN, at)


def check_requests(browser, begin):
    """All that the page has requested is its own; the browser's first, empty page is not."""
    urls = [url for url in browser.requests() if not url.startswith(("data:", "chrome:", "chrome-extension:", "about:"))]
    assert urls and all(url.startswith(begin) for url in urls), urls


def submit(browser, line):
    browser.type("#question", line + webdriver.KEYS["Enter"])


# ---- what it shows: parts of one test, in one browser ----

def check_shown(_folder, browser, trace):
    """What it shows is what tbdq says."""
    store = position(trace, "goto", "last", "backward", "store", "1", "of", "settings.limit")
    with Page(trace, at=store) as page:
        browser.open(page.url)
        is_shown(browser, store)
        frames = trace.ask("bt", at=store)
        event = trace.one("where", at=store)
        assert browser.texts("#frames .function") == [frame["function"] for frame in frames], browser.texts("#frames .function")
        assert browser.text("#code .current .number") == str(event["line"]) and "*to++ = *name++" in browser.text("#code .current code")
        assert browser.texts("#variables summary .name") == [row["name"] for row in trace.ask("locals", at=store)]
        assert browser.texts("#variables summary .value") == [row["value"] for row in trace.ask("locals", at=store)]
        assert browser.text("#part .current code") == event["text"]
        browser.press("2")
        shown = dict(row.split("\n") for row in browser.texts("#part .register"))
        regs = trace.one("regs", at=store)
        assert shown and all(regs[name] == value for name, value in shown.items()), shown

        # A name in the source, and its history: a row each, whose position leads there, and back.
        browser.run("[...document.querySelectorAll('#code .name')].find((e) => e.textContent === 'settings').click()")
        browser.await_true("document.querySelector('#variables details[data-name=settings][open] .tools')")
        submit(browser, "history settings.limit")
        browser.await_true("document.querySelector('#replies tbody')")
        history = trace.ask("history", "settings.limit", at=store)
        cells = browser.run("return [...document.querySelectorAll('#replies tbody tr')].map((r) => [...r.cells].slice(0, 3).map((c) => c.innerText))")
        assert cells == [[row["from"], row["to"] or "", row["value"]] for row in history], cells
        browser.click("#replies tbody tr:nth-child(3) a.at")
        is_shown(browser, history[2]["from"])
        browser.back()
        is_shown(browser, store)

        # Steps are tbdq's; `why` is a graph with a box for each hop.
        browser.press("F", shift=True)
        call = trace.ask("reverse-finish", at=store)[-1]
        browser.await_true(SHOWN, "%d+%d" % (call["time"], call["offset"]) if call["offset"] else str(call["time"]))
        browser.back()
        is_shown(browser, store)
        submit(browser, "why $rdx")
        browser.await_true("document.querySelector('svg.why')")
        assert len(browser.texts("svg.why .hop")) == len(trace.ask("why", "$rdx", at=store))

        # The time line's stretch is the span of counts.
        browser.click("#count")
        browser.await_true("document.querySelector('#code .count.ran')")
        counted = {row["by"]: row["count"] for row in trace.ask("count", "line", "where", "src=<overflow.c>", "by", "line")}
        shown = browser.run("return [...document.querySelectorAll('#code .row')].filter((r) => r.querySelector('.ran')).map((r) => [r.dataset.line, r.querySelector('.ran').innerText])")
        assert {line: int(count) for line, count in shown} == {by.split(":")[1]: count for by, count in counted.items()}, (shown, counted)

        # Calls of a function; what is listed there is tbdq's answer.
        submit(browser, "calls set_name")
        browser.await_true("document.querySelectorAll('#replies article:first-child tbody tr').length === 3")
        cells = browser.run("return [...document.querySelectorAll('#replies article:first-child tbody tr')].map((r) => [r.cells[0].innerText, r.cells[1].innerText])")
        assert cells == [[row["position"], ", ".join(row["values"])] for row in trace.ask("calls", "set_name")], cells

        # An error is an answer; so is a question without one.
        submit(browser, "print nonsense")
        browser.await_true("document.querySelector('#replies pre.wrong')?.innerText.includes('nonsense')")
        assert browser.errors() == []
        check_requests(browser, page.url)


def brightness(browser):
    """Of the page's background, from 0 to 1."""
    color = browser.run("return getComputedStyle(document.body).backgroundColor + getComputedStyle(document.documentElement).backgroundColor")
    found = [int(c) for c in re.search(r"rgb\((\d+), (\d+), (\d+)\)", color).groups()]
    return sum(found) / 3 / 255


def check_keyboard(_folder, browser, trace):
    """It works by keyboard alone, at 400 pixels, when dark."""
    browser.make_dark()
    browser.resize(400, 800)
    with Page(trace) as page:
        browser.open(page.url)
        is_shown(browser, "0")
        browser.press("/")
        browser.type("#question", "goto fir")
        browser.await_true("[...document.querySelectorAll('#words li')].some((e) => e.innerText === 'first')")
        browser.type("#question", webdriver.KEYS["Tab"])
        assert browser.run("return document.querySelector('#question').value") == "goto first "
        browser.type("#question", "forward func_enter 1 where func==set_name" + webdriver.KEYS["Enter"])
        entry = position(trace, "goto", "first", "forward", "func_enter", "1", "where", "func==set_name")
        is_shown(browser, entry)
        assert browser.url().endswith("#" + entry), browser.url()
        browser.press("Escape")
        for key, command in (("s", "step"), ("n", "next"), ("i", "stepi"), ("I", "reverse-stepi"), ("End", "goto last"), ("Home", "goto first")):
            before = browser.run("return document.documentElement.dataset.at")
            event = trace.ask(*command.split(), at=before)[-1]
            browser.press(key, shift=key == "I")
            is_shown(browser, "%d+%d" % (event["time"], event["offset"]) if event["offset"] else str(event["time"]))
        wide = browser.run("return [document.documentElement.scrollWidth, innerWidth]")
        assert wide[0] <= wide[1], wide
        browser.click("#tabs [data-pane=stack]")
        assert browser.run("return getComputedStyle(document.querySelector('#stack')).display") == "flex"
        dark = brightness(browser)
        browser.make_dark(False)
        assert dark < 0.3 < 0.7 < brightness(browser), (dark, brightness(browser))
        assert browser.errors() == []
    browser.resize(1400, 900)


def check_text(folder, browser, _trace):
    """What a program wrote is text."""
    source = os.path.join(folder, "a<b>&'\".c")
    program = os.path.join(folder, "hostile<i>")
    with open(source, "w", encoding="utf-8") as file:
        file.write("""/* %s </script><script>window.owned=1</script> */
#include <unistd.h>
char text[] = "%s";
int named(const char *name) { return (int)write(1, name, sizeof(text)) != 0; }
int main(void) { return named(text) + named("</script><script>window.owned=1</script>"); }
""" % (MARKUP, MARKUP))
    subprocess.run([tbdtest.need("cc"), "-g", "-O0", "-o", program, source], check=True)
    subprocess.run([tbdtest.need("objcopy"), "--redefine-sym", "named=" + MARKUP, program], check=True)
    trace = record([program, MARKUP], os.path.join(folder, "hostile"))
    at = position(trace, "goto", "first", "forward", "syscall", "1", "where", "syscall==write")
    trace.ask("frame", "1", at=at)
    saved = os.path.join(folder, "page.html")
    assert trace.tbdq("view", "--out", saved, "syscalls", "print text", "print \"%s\"" % MARKUP, at=at).code == 0
    with Page(trace, at=at) as page:
        for url in (page.url + "#%s,frame=1" % at, "file://" + saved):
            browser.open(url)
            is_shown(browser, at)
            if url.startswith("http"):
                for line in ("syscalls", "print text", "info", "calls named", "bt", "nosuch " + MARKUP, "print \"%s\"" % MARKUP):
                    submit(browser, line)
                    browser.await_true("[...document.querySelectorAll('#replies .line')].some((e) => e.innerText === arguments[0])", line)
                assert MARKUP in browser.text("#frames") and MARKUP in browser.text("#variables"), browser.text("#frames")
                assert "</script>" in browser.text("#code"), browser.text("#code")
            assert MARKUP in browser.text("#replies")
            assert browser.run("return [window.owned ?? null, document.querySelectorAll('img').length, document.scripts.length]")[:2] == [None, 0]
            assert browser.errors() == []


def check_file(folder, browser, trace):
    """A file needs no server."""
    store = position(trace, "goto", "last", "backward", "store", "1", "of", "settings.limit")
    saved = os.path.join(folder, "page.html")
    said = trace.tbdq("view", "--out", saved, "history settings.limit", "why $rdx", at=store)
    assert said.code == 0 and said.out == b"" and said.err == b"", said
    with open(saved, encoding="utf-8") as file:
        text = file.read()
    assert not re.search(r"(?:src|href)=\"(?!data:|#)|https?://(?!www\.w3\.org/2000/svg)", re.sub(r"<script type=\"application/json\".*?</script>", "", text)), "names something else"
    browser.requests()
    browser.open("file://" + saved)
    is_shown(browser, store)
    assert browser.texts("#frames .function")[:2] == ["set_name", "main"]
    assert browser.text("#code .current .number") == str(trace.one("where", at=store)["line"])
    assert len(browser.texts("#replies tbody tr")) == len(trace.ask("history", "settings.limit", at=store)) + len(trace.ask("why", "$rdx", at=store))
    assert browser.texts("svg.why .hop") and "6 system calls" in browser.text("#range"), browser.text("#range")
    assert browser.errors() == []
    check_requests(browser, "file://" + saved)
    wrong = trace.tbdq("view", "--out", os.path.join(folder, "no", "where.html"))
    assert wrong.code == 4 and b"No such file" in wrong.err, wrong
    for words in (["--port", "70000"], ["--port", "x"], ["x"], ["--out"], ["--port", "1", "where"], ["--out", saved, "--nonsense"]):
        assert trace.tbdq("view", *words).code == 2, words


def test_the_page_in_a_browser(folder):
    trace = record([OVERFLOW], folder)
    with webdriver.Browser(folder) as browser:
        for check in (check_shown, check_keyboard, check_text, check_file):
            check(folder, browser, trace)
            browser.open("about:blank")  # what the last page asks of a server that has ended is no error
            browser.errors()
            print("        %s" % check.__doc__, flush=True)


def test_sums_are_those_of_the_index(folder):
    trace = tbdtest.record([RAY], folder, "count=now,window=100000")[1]
    info = trace.info()
    with Page(trace) as page:
        for pixels, span in ((1, [0, info["blocks"]]), (7, [0, info["blocks"]]), (1000, [0, info["blocks"]]), (3, [0, 100000]), (4096, [5, 9])):
            sums = page.ask(sums=pixels, span=span)
            assert all(len(sums[kind]) == pixels for kind in ("stores", "calls", "syscalls", "signals", "switches")), sums
            if span[1] == info["blocks"]:
                assert all(abs(sum(sums[kind]) - info[kind]) < 1e-3 * (info[kind] + 1) for kind in ("stores", "calls", "syscalls")), info
        windows = trace.ask("windows")
        sums = page.ask(sums=1, span=[0, info["blocks"]])
        assert [row[:2] for row in sums["windows"]] == [[row["time"], row["blocks"]] for row in windows]
        assert sums["threads"] == [{"thread": info["pid"], "number": 1, "runs": [1]}]
        one = windows[len(windows) // 2]
        sums = page.ask(sums=1, span=[one["time"], one["time"] + one["blocks"]])
        assert round(sums["calls"][0]) == one["calls"] and round(sums["stores"][0]) == one["stores"], (sums, one)


# ---- who asks ----

def test_only_who_has_the_address_is_answered(folder):
    trace = record([OVERFLOW], folder)
    with Page(trace) as page:
        good = "/%s/" % page.token
        host = "127.0.0.1:%d" % page.port
        wrong = [
            ("/", {}), ("/favicon.ico", {}), ("/" + page.token, {}), ("/%s/" % ("0" * 32), {}), ("/%s%s/" % (page.token[:31], "1" if page.token[31] == "0" else "0"), {}), ("/x" + good, {}), ("/%s//" % page.token.upper(), {}),
            (good, {"Host": "example.com"}), (good, {"Host": "127.0.0.1.example.com:%d" % page.port}), (good, {"Host": "127.0.0.1:80@example.com"}), (good, {"Host": ""}),
            (good, {"Origin": "http://example.com"}), (good, {"Origin": "null"}), (good, {"Origin": "https://" + host}), (good, {"Origin": "http://127.0.0.1:1"}),
        ]
        for path, headers in wrong:
            status, body, _ = page.request(path, headers=headers)
            assert status in (400, 403) and b"tbdq view has printed" in body or status == 400, (path, headers, status, body)
            status, body, _ = page.request(path + "ask", '{"lines":["where"]}', headers)
            assert status in (400, 403) and b"answers" not in body, (path, headers, status, body)
        for headers in ({}, {"Host": "localhost:1234"}, {"Origin": "http://" + host}):
            assert page.request(good, headers=headers)[0] == 200, headers
        status, _, headers = page.request(good)
        assert "default-src 'self'" in headers["Content-Security-Policy"] and headers["Referrer-Policy"] == "no-referrer" and headers["X-Content-Type-Options"] == "nosniff", headers
        for path in ("..", "../..", "%2e%2e/%2e%2e/etc/passwd", "main.js/", "nosuch.js"):
            assert page.request(good + path)[0] in (400, 403, 404), path
        assert page.request(good + "ask", method="DELETE")[0] == 405
        with contextlib.closing(socket.socket()) as other, contextlib.suppress(OSError):
            other.bind(("0.0.0.0", 0))
            address = [line.split()[3] for line in subprocess.run(["ss", "-ltn"], stdout=subprocess.PIPE, check=False).stdout.decode().splitlines() if ":%d " % page.port in line]
            assert all(one.startswith("127.0.0.1:") for one in address), address


def garbage(rng, token):
    """Bytes as a client might send them."""
    kind = rng.randrange(5)
    body = rng.choice(['{"lines":["where"]}', '{"lines":[', '{"lines":[1]}', '{"lines":["a\\u0000b"]}', '{"at":[1,-1],"lines":["where"]}', "[]", '{"sums":99999999,"span":[0,1]}',
                       '{"sums":5,"span":[5,1]}', '{"sums":5}', '{"begin":false}', '{"nosuch":1,"begin":true}', '{"lines":["where"],"lines":["bt"]}', "[" * 3000, '"\\ud800"',
                       '{"lines":["where\\n"]}', '{"at":[99999999999999999999,0],"begin":true}', '{"begin":true,"complete":"x"}'])
    head = "POST /%s/ask HTTP/1.1\r\nHost: 127.0.0.1\r\n" % token
    if kind == 0:
        return (head + "Content-Length: %d\r\n\r\n%s" % (len(body), body)).encode()
    if kind == 1:
        return (head + "Content-Length: %d\r\n\r\n%s" % (len(body) + rng.randrange(1, 99), body)).encode()  # cut off
    if kind == 2:
        return (head + "Transfer-Encoding: chunked\r\n\r\n%s\r\n%s\r\n0\r\n\r\n" % (rng.choice(["ffffffffffffffff", "-1", "5", "zz"]), body)).encode()
    if kind == 3:
        return bytes(rng.randrange(256) for _ in range(rng.randrange(1, 400)))
    return (head + "".join("X-%d: %s\r\n" % (i, "y" * 500) for i in range(rng.randrange(120))) + "\r\n").encode()


def send(page, data, reads=True):
    with contextlib.closing(socket.create_connection(("127.0.0.1", page.port), timeout=60)) as client, contextlib.suppress(ConnectionError, TimeoutError):
        client.sendall(data)
        client.settimeout(2 if tbdtest.LONG else 0.3)
        return client.recv(65536) if reads else b""
    return b""


def test_no_client_stops_the_server(folder):
    trace = record([OVERFLOW], folder)
    rng = random.Random(22)
    with Page(trace) as page:
        where = page.ask(lines=["where"], at=[250, 0])["answers"][0]["objects"]
        for i in range(250 if tbdtest.LONG else 40):
            data = garbage(rng, page.token)
            reply = send(page, data, reads=i % 3 != 0)
            assert b"HTTP/1.1 5" not in reply or b" 503 " in reply or b" 501 " in reply, (data, reply)
        for body in ("", "{}", '{"lines":["where"],"x":1}', '{"lines":["%s"]}' % ("x" * 5000), '{"lines":%s}' % json.dumps(["where"] * 17), '{"at":["1",0],"lines":["where"]}'):
            assert page.request("/%s/ask" % page.token, body)[0] == 400, body
        assert page.request("/%s/ask" % page.token, "x" * 100000)[0] == 413
        assert page.request("/%s/cancel" % page.token, "x" * 100)[0] == 400 and page.request("/%s/cancel" % page.token, "nobody")[0] == 200
        for line in ("rm overflow-1", "lower all", "merge all", "raise all", "pack %s/x" % folder, "unpack %s/x" % folder,
                     "export perfetto %s/x" % folder, "  export folded %s/x" % folder, "gdb", "serve --gdb", "view", "where | cat", "where > /tmp/x"):
            answer = page.ask(lines=[line])["answers"][0]
            assert answer["status"] == 2 and answer["messages"], answer
        assert not os.path.exists(folder + "/x")
        # A position that does not exist, one that was not given, another thread: nothing of it stays.
        assert page.ask(lines=["where"], at=[10 ** 12, 0])["answers"][0]["status"] != 0
        assert page.ask(lines=["frame 1", "frame"], at=[250, 0])["frame"] == 1
        answer = page.ask(lines=["frame", "step", "where"], at=[250, 0])
        assert answer["answers"][0]["objects"][0]["frame"] == 0 and answer["at"] != [250, 0], answer
        assert page.ask(lines=["where"], at=[250, 0])["answers"][0]["objects"] == where
        assert not os.path.exists(os.path.join(trace.path, "position")) and not os.path.exists(os.path.join(trace.path, "frame"))


def test_long_questions_are_cancelled(folder):
    trace = record([RAY], folder)
    slow = "all state where rax==0x123456789"  # every instruction of 10 million blocks
    with Page(trace) as page:
        def post(body):
            client = http.client.HTTPConnection("127.0.0.1", page.port, timeout=300)
            client.request("POST", "/%s/ask" % page.token, json.dumps(body))
            return client

        def progress():
            return json.loads(page.request("/%s/progress" % page.token)[1])

        def await_running(line):
            end = time.monotonic() + 60
            while time.monotonic() < end:
                now = progress()
                if now["running"] is not None and now["running"]["line"] == line:
                    return now
                time.sleep(0.05)
            raise AssertionError("not running: " + line)

        # One client cancels; another waits for its turn meanwhile, and is answered.
        first = post({"id": "slow", "lines": [slow]})
        await_running(slow)
        second = post({"id": "quick", "lines": ["where"], "at": [5, 0]})
        while progress()["waiting"] == 0:
            time.sleep(0.02)
        assert page.request("/%s/cancel" % page.token, "nobody")[0] == 200
        assert progress()["running"]["id"] == "slow"
        assert page.request("/%s/cancel" % page.token, "slow")[0] == 200
        reply = json.load(first.getresponse())
        assert reply["interrupted"] and reply["answers"][0]["status"] != 0, reply
        reply = json.load(second.getresponse())
        assert not reply["interrupted"] and reply["answers"][0]["objects"][0]["time"] == 5, reply
        # One goes away: its question ends.
        first = post({"id": "gone", "lines": [slow]})
        await_running(slow)
        first.close()
        assert page.ask(lines=["where"], at=[7, 0])["answers"][0]["objects"][0]["time"] == 7
        # An answer without end is cut.
        answer = page.ask(lines=["all block_entry"], rows=100)["answers"][0]
        assert answer["cut"] and len(answer["objects"]) == 100 and [row["time"] for row in answer["objects"]] == list(range(100)), answer["cut"]
        assert not page.ask(lines=["where"], at=[7, 0])["interrupted"]
        # Ctrl-C ends it in the middle of a question.
        first = post({"id": "last", "lines": [slow]})
        await_running(slow)


if __name__ == "__main__":
    tbdtest.main(test_the_page_in_a_browser, test_sums_are_those_of_the_index, test_only_who_has_the_address_is_answered, test_no_client_stops_the_server, test_long_questions_are_cancelled)
