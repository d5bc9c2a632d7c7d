#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`tbdq view` of a crash dump: the listing and what its rows held are what `path --values` says, on demand, with filters, as text and in a file; positions
before its end; the dial of the process that left it."""
import contextlib
import json
import os
import signal
import subprocess
import time

import tbdtest
import webdriver
from test_page import Page, MARKUP, SHOWN

FORENSICS = os.path.join(tbdtest.BUILD, "examples", "forensics")
GOES_ON = """#include <stdio.h>
int total;
int work(int by) { return total += by; }
int main(void)
{
    char line[80];
    while (fgets(line, sizeof(line), stdin)) {
        printf("%d\\n", work((int)line[0]));
        fflush(stdout);
    }
    return 0;
}
"""


def crash(folder, program, record=5):
    root = os.path.join(folder, os.path.basename(program) + ".dumps")
    done = tbdtest.run([tbdtest.TBD, "crash", "--record=%d" % record, "--", program], env=tbdtest.clean_env({"TBD_DIR": root}))
    assert done.code in (-signal.SIGSEGV, -signal.SIGABRT), done
    tbdtest.wait_organizers(root)
    return tbdtest.Trace(os.path.join(root, "latest"))


def test_positions_before_the_end_are_asked(folder):
    dump = crash(folder, os.path.join(FORENSICS, "list"))
    with Page(dump, at="-5+2") as page:
        assert page.ask(begin=True)["at"] == [-5, 2]
        for at in ([-5, 2], [-3, 0], [-400, 1]):
            text = "%d+%d" % tuple(at)
            answers = page.ask(lines=["where", "bt", "regs", "locals", "list 9", "print $rip", "x/2i $pc"], at=at)
            assert answers["at"] == at and answers["thread"] == 0, answers
            for answer in answers["answers"]:
                said = dump.tbdq(*answer["line"].split(), at=text)
                assert [json.loads(line) for line in said.out.splitlines()] == answer["objects"] and said.code == answer["status"], (answer, said)
            # The source around the position, not around the end.
            place = answers["answers"][0]["objects"][0]
            assert [row["line"] for row in answers["answers"][4]["objects"] if row["current"]] == [int(place["source"].split(":")[1])], answers["answers"][4]
        moved = page.ask(lines=["goto -9", "where", "print $rsp"], at=[-3, 0])
        assert moved["at"] == [-9, 0] and moved["answers"][1]["objects"][0]["position"] == "-9", moved
        assert page.ask(lines=["where"], at=[0, 0])["at"] == [0, 0]
        assert page.ask(lines=["regs"], at=[-10 ** 8, 0])["answers"][0]["status"] == 1
        for at in ([-1, -1], [-2 ** 40, 0], [-1], [-1, 0, 0], ["-1", 0], [-1.5, 0]):
            status, body, _ = page.request("/%s/ask" % page.token, json.dumps({"lines": ["where"], "at": at}))
            assert status == 400, (at, status, body)
        assert json.loads(page.request("/%s/dial" % page.token)[1]) == {"record": None}  # it has ended
        assert not os.path.exists(os.path.join(dump.path, "position"))
    # A frame that is selected at one position is that of no other.
    for here, others in (("-5", ("-5+1", "-6", "-400", "last")), ("last", ("-5",))):
        for other in others:
            assert dump.tbdq("frame", "1", at=here).code == 0
            assert [dump.one("frame", at=at)["frame"] for at in (here, other)] == [1, 0], (here, other)


def test_a_recording_has_no_such_positions(folder):
    trace = tbdtest.record([os.path.join(FORENSICS, "list")], folder)[1]
    with Page(trace) as page:
        answer = page.ask(lines=["where"], at=[-1, 0])["answers"][0]
        assert answer["status"] == 2 and answer["objects"] == [] and "dump" in answer["messages"], answer
        for body in (None, '{"record":1}'):
            assert page.request("/%s/dial" % page.token, body)[0] == 404


@contextlib.contextmanager
def program_that_goes_on(folder):
    """(a function that gives it something to do, the dump that it has left, the process)"""
    source, binary, root = (os.path.join(folder, name) for name in ("goes_on.c", "goes_on", "root"))
    with open(source, "w", encoding="ascii") as file:
        file.write(GOES_ON)
    subprocess.run([tbdtest.need("cc"), "-g", "-O0", source, "-o", binary], check=True)
    process = subprocess.Popen([tbdtest.TBD, "crash", "--record=3", "--trigger", "work times 1", "--", binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               env=tbdtest.clean_env({"TBD_DIR": root}))

    def tell():
        process.stdin.write(b"a\n")
        process.stdin.flush()
        return process.stdout.readline()

    assert tell() == b"97\n"
    end = time.monotonic() + 60
    while not any(trace.info()["finished"] for trace in tbdtest.traces(root)) and time.monotonic() < end:
        time.sleep(0.05)
    [dump] = tbdtest.traces(root)
    yield tell, dump, process
    process.stdin.close()
    assert process.wait(60) == 0
    process.stdout.close()
    tbdtest.wait_organizers(root)


def test_the_dial_is_that_of_the_process(folder):
    """It is read and turned while the program runs; by nobody else; nothing else is taken."""
    with program_that_goes_on(folder) as (tell, dump, process), Page(dump, at="last") as page:
        where = "/%s/dial" % page.token

        def setting():
            status, body, _ = page.request(where)
            assert status == 200, (status, body)
            return json.loads(body)

        assert setting() == {"record": 3, "most": 9}
        for wanted in (7, 0, 9):
            status, body, _ = page.request(where, '{"record":%d}' % wanted)
            assert status == 200 and json.loads(body)["record"] == wanted == setting()["record"], (wanted, status, body)
            tell()
        for body in ("", "{}", '{"record":10}', '{"record":-1}', '{"record":"1"}', '{"record":1,"ring":1}', '{"record":1,"record":2}', "[1]", "x"):
            assert page.request(where, body)[0] == 400, body
        for path, headers in (("/%s/dial" % ("0" * 32), {}), (where, {"Origin": "http://example.com"}), (where, {"Host": "example.com"})):
            assert page.request(path, '{"record":1}', headers)[0] == 403, (path, headers)
        assert setting()["record"] == 9
        process.stdin.close()
        assert process.wait(60) == 0
        assert setting() == {"record": None}
        status, said, _ = page.request(where, '{"record":1}')
        assert status == 404 and b"does not run" in said, (status, said)


# ---- the listing, in a browser ----

ROWS = """return [...document.querySelectorAll('#rows > .ran')].map((row) => ({back: row.dataset.back, thread: Number(row.dataset.thread), pc: row.dataset.pc,
  text: row.querySelector('.code').innerText, source: row.querySelector('.source')?.innerText ?? null, times: row.querySelector('.times')?.innerText ?? null}))"""
HELD = """return [...document.querySelectorAll('#rows > .ran')].slice(-arguments[0], -arguments[1] || undefined).map((row) => ({back: row.dataset.back,
  values: [...row.querySelectorAll(':scope > .data .held')].map((held) => ({name: held.querySelector('.name').innerText,
    values: [...held.querySelectorAll('.value')].map((e) => e.innerText), marks: [...held.querySelectorAll('.mark')].map((e) => e.innerText), because: held.querySelector('.because')?.innerText ?? null}))}))"""
# Opens rows, counted from the end, one after another; returns when all are answered.
OPEN = """const rows = [...document.querySelectorAll('#rows > .ran')].slice(-arguments[0], -arguments[1] || undefined); return (async () => {
  for (const row of rows) await row.toggleRow(true);
  while (rows.some((row) => row.querySelector('.data').innerText === '\\u2026')) await new Promise((done) => setTimeout(done, 20)); })()"""


def path(dump, *words):
    return [row for row in dump.ask("path", *words) if row.get("type") != "end"]


def held_of(row):
    """As the page shows it."""
    found = []
    for value in row["values"]:
        pairs = [(value[key], value[how]) for key, how in (("value", "certainty"), ("after", "after_certainty")) if how in value]
        if len(pairs) == 2 and value["value"] == value["after"]:
            pairs.pop()
        inferred = any(how == "inferred" for _, how in pairs)
        found.append({"name": value["name"], "values": ["?" if text is None else text for text, _ in pairs], "marks": [how for _, how in pairs], "because": value["why"] if inferred and "why" in value else None})
    return found


def open_dump(browser, page, hash_=""):
    browser.open("about:blank")
    browser.open(page.url + hash_)
    browser.await_true("document.querySelector('#rows .ran')")


def choose(browser, selector, value):
    """As somebody does who uses the control; waits for the listing."""
    browser.run("""document.querySelector('#rows').dataset.old = 1; const e = document.querySelector(arguments[0]);
      if (e.type === 'checkbox') e.checked = arguments[1]; else e.value = arguments[1];
      document.querySelector('#rows').replaceChildren(); e.dispatchEvent(new Event('change'))""", selector, value)
    browser.await_true("document.querySelector('#rows .ran')")


def check_rows(browser, dump, *words, rows, but=0):
    """Of the last rows, but for those at the end: (all marks, all reasons)."""
    browser.run(OPEN, rows, but)
    shown = browser.run(HELD, rows, but)
    asked = path(dump, str(rows), *words)[:rows - but]
    assert [row["back"] for row in shown] == [row["back"] for row in asked], (shown[0], asked[0])
    for mine, row in zip(shown, asked, strict=True):
        assert mine["values"] == held_of(row), (mine, row)
    return [mark for row in shown for value in row["values"] for mark in value["marks"]], [value["because"] for row in shown for value in row["values"]]


def check_listing(_folder, browser, dump):
    """Rows are those of path; each one's values those of path --values, with marks and reasons; by lines, blocks and instructions; filtered."""
    with Page(dump, at="last") as page:
        open_dump(browser, page)
        assert browser.run("return document.title").strip() and "SIGSEGV" in browser.text("#ended") and browser.text("#frames .selected .function")
        rows = path(dump, "400", "fold", "text")
        shown = browser.run(ROWS)
        assert [(row["back"], row["pc"], row["text"], row["source"]) for row in shown] == [(row["back"], row["pc"], row.get("text", ""), row.get("source")) for row in rows], shown[-3:]
        assert ["times" in row for row in rows] == [" times" in (row["times"] or "") for row in shown] and any("times" in row for row in rows), shown
        assert browser.run("return document.querySelectorAll('#rows .held').length") == 0  # nothing is asked for before
        choose(browser, "#folds", False)
        check_rows(browser, dump, "--values", rows=12)
        # What is in sight, with one question.
        choose(browser, "#unit", "")
        browser.press("v")
        browser.await_true("document.querySelectorAll('#rows .held').length > 3 && !/^\\u2026$/m.test(document.querySelector('#rows').innerText)")
        rows = {row["back"]: held_of(row) for row in path(dump, "40", "--values")}
        shown = [row for row in browser.run(HELD, 40, 0) if row["values"]]
        assert len(shown) > 3 and all(row["values"] == rows[row["back"]] for row in shown), shown
        choose(browser, "#unit", "insns")
        marks, because = check_rows(browser, dump, "insns", "--values", rows=132, but=120)
        assert set(marks) >= {"exact", "inferred"} and any(because), (set(marks), because)
        browser.click("#rows .because a.at")  # what a value rests on is a place to go to
        browser.await_true("document.documentElement.dataset.at.startsWith('-')")
        open_dump(browser, page)  # from the end again: that place may be before the listing's first page
        choose(browser, "#folds", False)
        choose(browser, "#unit", "insns")
        choose(browser, "#assumes", False)
        marks, because = check_rows(browser, dump, "insns", "--values", "--exact", rows=132, but=120)
        assert set(marks) == {"exact", "unknown"} and not any(because), (set(marks), because)
        choose(browser, "#assumes", True)
        choose(browser, "#variables-only", True)
        check_rows(browser, dump, "insns", "--values", "--variables", rows=6)
        choose(browser, "#variables-only", False)
        stack = int(dump.one("regs")["rsp"], 16)
        for only in ("rdx,rsp", "idle, i", "0x%x-0x%x" % (stack - 64, stack + 64)):
            choose(browser, "#only", only)
            marks, _ = check_rows(browser, dump, "insns", "--values", "--only", only.replace(" ", ""), rows=12)
            assert marks, only
        choose(browser, "#only", "")
        choose(browser, "#unit", "blocks")
        check_rows(browser, dump, "blocks", "--values", rows=12)
        # As text: what path prints.
        browser.click("#as-text")
        browser.await_true("document.querySelector('#replies pre')")
        thread = str(path(dump, "1")[0]["thread"])
        text = dump.tbdq("path", "400", "blocks", "thread", thread, "--values", "--why", json_output=False).out.decode()
        assert browser.run("return document.querySelector('#replies pre').textContent").strip() == text.strip()
        assert browser.errors() == []


def check_loops(_folder, browser, dump):
    """A row that stands for repeats has its values in each round; a row's instructions are inside it; earlier and later rows."""
    with Page(dump, at="last") as page:
        open_dump(browser, page)
        rows = path(dump, "400", "fold", "text")
        index = max(i for i, row in enumerate(rows) if row.get("loop", 0) > 1)
        first = index - rows[index]["loop"] + 1
        while rows[first]["times"] == rows[index]["times"] and (index - first) % rows[index]["loop"] != rows[index]["loop"] - 1:
            first -= 1
        loop, times = rows[index]["loop"], min(rows[index]["times"], 12)
        browser.run("return document.querySelectorAll('#rows > .ran')[arguments[0]].toggleRow(true)", index)
        shown = browser.run("return [...document.querySelectorAll('#rows > .ran')[arguments[0]].querySelectorAll('.round')].map((r) => [r.querySelector('.at').innerText, [...r.querySelectorAll('.held .value')].map((e) => e.innerText)])", index)
        whole = path(dump, str(loop * times + 1), "from", rows[first]["back"], "forward", "--values")[index - first:loop * times:loop]
        assert len(shown) == times >= 2, (shown, times)
        assert shown == [[row["back"], [text for value in held_of(row) for text in value["values"]]] for row in whole], (shown, whole)
        # Inside: instructions.
        browser.run("[...document.querySelectorAll('#rows > .ran:not(.folded) .line > .where > .small')].at(-1).click()")
        browser.await_true("document.querySelector('#rows .inner .ran')")
        inside = browser.run("return [...document.querySelectorAll('#rows .inner .ran')].map((r) => [r.dataset.back, r.querySelector('.code').innerText])")
        whole = path(dump, str(len(inside)), "insns", "from", inside[0][0], "forward")
        assert inside == [[row["back"], row["insn"]] for row in whole], (inside, whole)
        last = browser.run(ROWS)[0]["back"]
        browser.click("#earlier")
        browser.await_true("document.querySelector('#rows > .ran').dataset.back !== arguments[0]", last)
        backs = [row["back"] for row in browser.run(ROWS)]
        assert last.split("+")[0] == backs[-1].split("+")[0], (last, backs[-1])  # nothing is left out between
        browser.click("#later")
        browser.await_true("document.querySelector('#rows > .ran').dataset.back !== arguments[0]", backs[0])
        assert browser.errors() == []


def check_links(_folder, browser, dump):
    """A position before the end is a link that can be sent: stack, source, variables and registers there."""
    thread = path(dump, "1")[0]["thread"]
    backs = [row["back"] for row in path(dump, "6")]
    far = "-%d" % (int(path(dump, "400", "fold")[0]["back"][1:].split("+")[0]) + 100)  # before the listing's first page
    with Page(dump, at="last") as page:
        has_source = False
        for back in (backs[0], backs[-1], far):
            open_dump(browser, page, "#%s,thread=%d" % (back, thread))
            browser.await_true(SHOWN, back)
            where = dump.one("where", at=back)
            assert browser.texts("#frames .function") == [frame.get("function", frame["pc"]) + (" ?" if frame.get("guess") else "") for frame in dump.ask("bt", at=back)], back
            lines = [str(row["line"]) for row in map(json.loads, dump.tbdq("list", "400", at=back).out.splitlines()) if row["current"]]
            assert browser.texts("#code .current .number") == lines, (where, lines)
            has_source |= lines != []
            assert browser.run("return document.querySelector('#rows > .current')?.dataset.back ?? ''") in ("", back) or back == far
            registers = browser.run("return [...document.querySelectorAll('#part .register')].map((r) => [r.querySelector('.name').innerText, r.querySelector('.value').innerText, r.querySelector('.mark').innerText])")
            real = dump.one("regs", at=back)
            assert registers and registers == [[name, real[name]["value"] or "?", real[name]["certainty"]] for name, _, _ in registers], registers
            names = dump.ask("locals", at=back)
            assert browser.run("return [...document.querySelectorAll('#variables summary')].map((r) => [r.querySelector('.name').innerText, r.querySelector('.mark').innerText])") == [[row["name"], row["certainty"]] for row in names]
        assert has_source
        # A caller's frame there: its line and variables; other positions have their own frame selected.
        back = next(back for back in reversed(backs) if len(dump.ask("bt", at=back)) > 1)
        open_dump(browser, page, "#%s,thread=%d" % (back, thread))
        browser.await_true(SHOWN, back)
        browser.click("#frames .frame:nth-child(2)")
        browser.await_true("document.querySelector('#frames .frame:nth-child(2)').classList.contains('selected') && location.hash.includes('frame=1')")
        frame, names = (answer["objects"] for answer in page.ask(lines=["frame", "locals"], at=[int(part) for part in (back + "+0").split("+")[:2]], thread=thread, frame=1)["answers"])
        browser.await_true("document.querySelector('#file').innerText.endsWith(arguments[0])", ":%d" % frame[0]["line"] if "line" in frame[0] else "Source")
        browser.await_true("JSON.stringify([...document.querySelectorAll('#variables summary .name')].map((e) => e.innerText)) === JSON.stringify(arguments[0])", [row["name"] for row in names])
        open_dump(browser, page, "#%s,thread=%d" % (far, thread))
        browser.await_true(SHOWN, far)
        assert browser.run("return [...document.querySelectorAll('#frames .frame')].findIndex((e) => e.classList.contains('selected'))") == 0
        browser.run("[...document.querySelectorAll('#rows > .ran:not(.current) > .at')].at(-1).click()")
        browser.await_true("document.documentElement.dataset.at !== arguments[0]", far)
        assert browser.url().split("#")[1].startswith("-") and browser.run("return document.title").startswith("-")
        browser.back()
        browser.await_true(SHOWN, far)
        # A question there is about there, and its answer's positions are links.
        browser.type("#question", "why $rsp" + webdriver.KEYS["Enter"])
        browser.await_true("document.querySelector('#replies article')")
        assert len(browser.texts("#replies tbody tr")) == len(dump.ask("why", "$rsp", at=far))
        assert browser.run("return [...document.querySelectorAll('#replies tbody a.at')].every((a) => a.hash.includes('thread='))")
        assert browser.errors() == []


def check_narrow(_folder, browser, dump):
    """By keyboard alone, at 400 pixels, when dark."""
    browser.make_dark()
    browser.resize(400, 800)
    with Page(dump, at="last") as page:
        open_dump(browser, page)
        browser.press("w")
        browser.press("Up")
        back = browser.run("return document.activeElement.closest('.ran').dataset.back")
        assert back == browser.run(ROWS)[-2]["back"]
        browser.press("Enter")
        browser.await_true("document.activeElement.closest('.ran').querySelector('.data .held, .data .round, .data .none:not(:empty)')")
        browser.press("g")
        browser.await_true(SHOWN, back)
        for pane in ("source", "answers", "stack", "values", "machine", "listing"):
            browser.click("#tabs [data-pane=%s]" % pane)
            wide = browser.run("return [document.documentElement.scrollWidth, innerWidth, document.querySelector('#%s').getBoundingClientRect().right]" % pane)
            assert max(wide[0], wide[2]) <= wide[1], (pane, wide)
        assert browser.errors() == []
    browser.make_dark(False)
    browser.resize(1400, 900)


def check_kept(folder, browser, dump):
    """A file has the same rows and values, and needs no server."""
    saved = os.path.join(folder, "dump.html")
    said = dump.tbdq("view", "--out", saved, "facts files")
    assert said.code == 0 and said.out == b"" and said.err == b"", said
    browser.requests()
    browser.open("file://" + saved)
    browser.await_true("document.querySelector('#rows .ran')")
    for unit, words in (("", []), ("insns", ["insns"])):
        choose(browser, "#unit", unit)
        rows = path(dump, "400", *words, "text", "--values")
        assert [row["back"] for row in browser.run(ROWS)] == [row["back"] for row in rows]
        check_rows(browser, dump, *words, "text", "--values", rows=400)
    urls = [url for url in browser.requests() if not url.startswith(("data:", "chrome:", "about:"))]
    assert urls and all(url.startswith("file://" + saved) for url in urls), urls
    assert browser.errors() == [] and "facts files" in browser.text("#replies")


def check_hostile(folder, browser, _dump):
    """What a program wrote is text: names of functions, source lines, values."""
    source, program = os.path.join(folder, "hostile<b>.c"), os.path.join(folder, "hostile")
    with open(source, "w", encoding="utf-8") as file:
        file.write("""char text[80];
char *fall(char *at) { at[0] = '<'; *(volatile int *)(long)(at[0] - '<') = 1; /* %s */ return at; }
int main(void) { __builtin_strcpy(text, "%s"); return *fall(text); }
""" % (MARKUP, MARKUP))
    subprocess.run([tbdtest.need("cc"), "-g", "-O0", "-o", program, source], check=True)
    subprocess.run([tbdtest.need("objcopy"), "--redefine-sym", "fall=" + MARKUP, program], check=True)
    dump = crash(folder, program)
    saved = os.path.join(folder, "hostile.html")
    said = dump.tbdq("view", "--out", saved, "print text")
    assert said.code == 0, said
    with Page(dump, at="last") as page:
        for url in (page.url, "file://" + saved):
            browser.open("about:blank")
            browser.open(url)
            browser.await_true("document.querySelector('#rows .ran')")
            if url.startswith("http"):
                choose(browser, "#only", "text,<i>x</i>")
            browser.run(OPEN, 6, 0)
            assert MARKUP in browser.text("#rows"), browser.text("#rows")
            assert url.startswith("file") or any("onerror" in text for text in browser.texts("#rows .held")), browser.texts("#rows .data")
            assert browser.run("return [window.owned ?? null, document.querySelectorAll('img').length, document.querySelectorAll('#rows i').length]") == [None, 0, 0]
            assert browser.errors() == []


def test_the_listing_in_a_browser(folder):
    dump = crash(folder, os.path.join(FORENSICS, "crash_callback"), record=0)
    with webdriver.Browser(folder) as browser:
        for check in (check_listing, check_loops, check_links, check_narrow, check_kept, check_hostile):
            check(folder, browser, dump)
            browser.open("about:blank")  # what the last page asks of a server that has ended is no error
            browser.errors()
            print("        %s" % check.__doc__, flush=True)


def test_the_dial_in_a_browser(folder):
    with webdriver.Browser(folder) as browser, program_that_goes_on(folder) as (tell, dump, _), Page(dump, at="last") as page:
        open_dump(browser, page)
        browser.await_true("!document.querySelector('#dial').hidden")
        assert browser.run("return document.querySelector('#record').value") == "3"
        browser.click("#record option[value='6']")
        end = time.monotonic() + 60
        while json.loads(page.request("/%s/dial" % page.token)[1])["record"] != 6 and time.monotonic() < end:
            time.sleep(0.05)
        assert json.loads(page.request("/%s/dial" % page.token)[1])["record"] == 6 and tell()
        assert browser.errors() == []


if __name__ == "__main__":
    tbdtest.main(test_positions_before_the_end_are_asked, test_a_recording_has_no_such_positions, test_the_dial_is_that_of_the_process, test_the_listing_in_a_browser,
                 test_the_dial_in_a_browser)
