#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`tbdq view` of a crash dump: positions before its end, and the dial of the process that left it."""
import json
import os
import signal
import subprocess
import time

import tbdtest
from test_page import Page

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
    root = os.path.join(folder, os.path.basename(program))
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
        assert page.request("/%s/dial" % page.token)[0] == 404  # it has ended
        assert not os.path.exists(os.path.join(dump.path, "position"))


def test_a_recording_has_no_such_positions(folder):
    trace = tbdtest.record([os.path.join(FORENSICS, "list")], folder)[1]
    with Page(trace) as page:
        answer = page.ask(lines=["where"], at=[-1, 0])["answers"][0]
        assert answer["status"] == 2 and answer["objects"] == [] and "dump" in answer["messages"], answer
        for body in (None, '{"record":1}'):
            assert page.request("/%s/dial" % page.token, body)[0] == 404


def test_the_dial_is_that_of_the_process(folder):
    """It is read and turned while the program runs; by nobody else; nothing else is taken."""
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
    with Page(dump, at="last") as page:
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
        process.stdout.close()
        tbdtest.wait_organizers(root)
        for body in (None, '{"record":1}'):
            status, said, _ = page.request(where, body)
            assert status == 404 and b"does not run" in said, (status, said)


if __name__ == "__main__":
    tbdtest.main(test_positions_before_the_end_are_asked, test_a_recording_has_no_such_positions, test_the_dial_is_that_of_the_process)
