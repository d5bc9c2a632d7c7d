# SPDX-License-Identifier: MIT
"""Names, paths and texts that a recorded program chose are harmless: a terminal does not obey them, they cannot look like a
line of ours in a table, and a spreadsheet does not calculate them.  JSON is always valid."""
import csv
import io
import json
import os
import re
import shutil
import subprocess

import tbdtest

HOSTILE = b"=1+1\x1b]0;owned\x07\nFORGED\r\t\x9b31m\xff\xc2\x9b\xe2\x80\xae"
HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
QUESTIONS = ("info", "windows", "modules", "processes", "threads", "goto first", "goto last", "all func_enter where func==\"*odd*\"",
             "all store of stored", "all line where func==\"*odd*\"", "all syscall", "all thread_switch", "all block_entry where func==main",
             "stores of stored", "calls \"*odd*\"", "lines hostile_names.c", "syscalls", "signals", "count store of stored by func",
             "count store of stored by line", "count syscall by func", "history stored", "first stored > 3", "last stored > 3",
             "trace first last where func==\"*odd*\"", "why stored", "marks", "where", "regs", "mem text 64", "bt", "bt threads", "frame 1", "list",
             "print text", "print pointed", "print name", "print &text", "locals", "locals 1", "ptype stored", "disas 20", "verify", "dump 0",
             "step", "finish", "print nosuch", "goto first forward store where func==nosuch", "list nosuch.c:1", "help context")
NUMBER = re.compile(r"[-+]?[0-9.]+$")


def plain(raw, what):
    """The text of an answer, whose lines are ours; what nothing of may be obeyed."""
    text = raw.decode("utf-8")
    harmful = HARMFUL.search(text.replace("\r\n", "\n"))
    assert not harmful, (what, raw[max(0, harmful.start() - 40):harmful.end() + 40])
    assert not re.search(r"^\W*FORGED", text, re.M), (what, text)
    return text


def make_hostile(folder):
    """The program under a hostile name, with a hostile name of a function, and symbols of its own."""
    program = os.path.join(os.fsencode(folder), HOSTILE)
    objcopy = tbdtest.need("objcopy")
    subprocess.run([objcopy, "--redefine-sym", b"odd==odd\x1b]0;owned\x07\nFORGED\x9b\xe2\x80\xae", tbdtest.program("hostile_names"), program], check=True)
    return program


def recorded(folder):
    root, work = os.path.join(folder, "traces"), os.path.join(os.fsencode(folder), b"in " + HOSTILE)
    os.mkdir(work)
    program = make_hostile(folder)
    result, trace = None, None
    env = tbdtest.trace_env(root, "window=2000")
    done = subprocess.run([program, HOSTILE, b"@b\x1b[m", b"\xff"], cwd=work, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=100, check=False)
    assert done.returncode == 0 and done.stdout == b"named\n", done
    tbdtest.wait_organizers(root)
    traces = [os.path.join(root, name) for name in os.listdir(os.fsencode(root).decode()) if not name.startswith("latest") and "." not in name[:1]]
    traces = [path for path in traces if os.path.isdir(path) and not os.path.islink(path)]
    assert len(traces) == 1, traces
    trace = tbdtest.Trace(traces[0])
    at = trace.ask("all", "func_exit", "where", 'func=="*odd*"')[-1]
    return trace, tbdtest.position(at)


def ask(trace, at, question, *options):
    words = question.split(" ", 1)
    argv = [tbdtest.TBDQ, "-t", trace.path, "--at", at, *options, question if len(words) > 1 else words[0]]
    return tbdtest.run(argv, timeout=200)


def test_every_answer_is_plain(folder):
    trace, at = recorded(folder)
    seen = set()
    for question in QUESTIONS:
        result = ask(trace, at, question)
        assert result.code in (0, 1, 2), (question, result)
        text = plain(result.out, question) + plain(result.err, question)
        seen.update(name for name in ("\\x1b]0;owned\\a\\nFORGED", "\\u009b", "\\u202e", "\\xff", "\\x9b") if name in text)
        if question in ("modules", "info", "all syscall", "list", "bt", "threads", "calls \"*odd*\""):
            assert "\\x1b" in text or "\\n" in text, (question, text)
    assert len(seen) == 5, seen


def test_every_object_is_json(folder):
    trace, at = recorded(folder)
    for question in QUESTIONS:
        if question.startswith(("dump", "help")):
            continue
        result = ask(trace, at, question, "--json")
        plain(result.err, question)
        assert re.fullmatch(rb"[\x20-\x7e\n]*", result.out), (question, result)
        for line in result.out.splitlines():
            json.loads(line)
    info = trace.info()
    name = "=1+1\x1b]0;owned\a\nFORGED\r\t\\x9b31m\\xff\x9b\u202e"
    assert info["args"][1] == name and info["args"][3] == "\\xff" and os.path.basename(info["cwd"]) == "in " + name, info
    assert any(os.path.basename(module["path"]).startswith(name) for module in trace.ask("modules", at=at)), trace.ask("modules", at=at)
    assert {thread["name"] for thread in trace.ask("threads")} == {"-y\x1b[m\n\\x9b\\xff", "@x\x1b[m\n\\x9b\\xff"}, trace.ask("threads")
    assert trace.ask("calls", '"*odd*"')[0]["function"] == "=odd\x1b]0;owned\a\nFORGED\\x9b\u202e"


def test_no_cell_is_calculated(folder):
    trace, at = recorded(folder)
    cells = set()
    for question in ("calls \"*odd*\"", "stores of stored", "syscalls", "count store of stored by func", "count store of stored by line",
                     "history stored", "history pointed", "trace first last where func==\"*odd*\"", "why stored", "lines \"*FORGED.c\"", "signals"):
        result = ask(trace, at, question, "--csv")
        text = plain(result.out, question)
        for row in csv.reader(io.StringIO(text, newline="")):
            cells.update(row)
            assert not [cell for cell in row if cell[:1] in tuple("=+-@\t\r") and not NUMBER.match(cell)], (question, row)
    assert any(cell.startswith("'=") for cell in cells), cells


def test_prompt_and_completions_are_plain(folder):
    trace, at = recorded(folder)
    for line in ("calls ", "calls =", "list ", "print "):
        plain(tbdtest.run([tbdtest.TBDQ, "-t", trace.path, "--complete", line]).out, line)
    script = os.path.join(folder, "script")
    with open(script, "w", encoding="utf-8") as out:
        out.write('goto %s\nlet n = text\necho {n}\nbt\nexpect nothing\n' % at)
    result = tbdtest.run([tbdtest.TBDQ, "-t", trace.path, "-f", script])
    assert result.code == 1 and "odd" in plain(result.out, script) + plain(result.err, script), result


def test_a_trace_with_a_hostile_name(folder):
    trace, at = recorded(folder)
    moved = os.path.join(os.fsencode(folder), HOSTILE + b".trace")
    shutil.copytree(os.fsencode(trace.path), moved)
    for words in (["info"], ["modules"], ["processes"], ["goto", "last"], ["mark", "here"]):
        result = tbdtest.run([tbdtest.TBDQ, "-t", moved, *words])
        assert result.code == 0, result
        plain(result.out + result.err, words)
    with open(os.path.join(moved, b"bookmarks"), "ab") as marks:
        marks.write(b"=1\x1b[m\x9b 5+0\n\xff\x1b]0;x\x07 7\n")
    with open(os.path.join(moved, b"header"), "r+b") as header:
        header.seek(40)
        header.write(b"\xff" * 40)
    for words in (["marks"], ["info"], ["goto", "last"], ["--json", "info"], ["--json", "marks"]):
        result = tbdtest.run([tbdtest.TBDQ, "-t", moved, *words])
        plain(result.out + result.err, words)
    result = tbdtest.run([tbdtest.TBDQ, "-t", moved + b"/none", "info"])
    assert result.code == 3 and b"\\x1b]0;owned" in result.err, result
    plain(result.err, moved)


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
