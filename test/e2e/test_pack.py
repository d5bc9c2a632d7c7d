#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A packed trace answers as the folder does, without the program, its debug file and its sources; what is no packed trace is refused."""
import ctypes.util
import http.server
import io
import os
import re
import shutil
import subprocess
import tarfile
import threading
import time

import tbdtest

SOURCE = """#include <stdio.h>
static int total;
static void add(int n)
{
    total += n; /* here */
}
int main(int argc, char **argv)
{
    for (int i = 0; i < 5; i++)
        add(i);
    printf("%d\\n", total);
    return argc > 1 ? argv[1][0] - '0' : 0;
}
"""


def build(folder, name="sums"):
    """A program whose debug information is in a file of its own."""
    source, path = os.path.join(folder, name + ".c"), os.path.join(folder, name)
    with open(source, "w", encoding="utf-8") as file:
        file.write(SOURCE)
    tbdtest.need("objcopy")
    for argv in (["cc", "-g", "-O0", source, "-o", path], ["objcopy", "--only-keep-debug", path, path + ".debug"],
                 ["objcopy", "--strip-debug", "--add-gnu-debuglink=" + path + ".debug", path]):
        done = tbdtest.run([tbdtest.need(argv[0])] + argv[1:])
        assert done.code == 0, done
    return path


QUESTIONS = (["log", "add", "%d", "n"], ["lines", "sums.c:5"], ["calls", "add"], ["--at", "last", "bt"], ["stores", "of", "total"])


def answers(trace, cache):
    env = {"XDG_CACHE_HOME": cache}
    out = []
    for words in QUESTIONS:
        said = tbdtest.run([tbdtest.TBDQ, "-t", trace, "--json"] + words, env=env)
        assert said.code == 0, (words, said)
        out.append(said.out)
    assert tbdtest.run([tbdtest.TBDQ, "-t", trace, "verify"], env=env).code == 0
    listed = tbdtest.run([tbdtest.TBDQ, "-t", trace, "goto", "sums.c:5", "then", "list"], env=env)
    shown = tbdtest.run([tbdtest.TBDQ, "-t", trace, "--at", "last", "list", "add"], env=env)
    return out, listed, shown


def test_a_packed_trace_answers_elsewhere(folder):
    path = build(folder)
    _, trace = tbdtest.record([path], folder + "/traces")
    before, _, shown = answers(trace.path, folder + "/cache1")
    assert b"total += n; /* here */" in shown.out, shown
    packed = os.path.join(folder, "run.tbd")
    said = trace.tbdq("pack", "--sources", packed)
    assert said.code == 0 and os.path.getsize(packed) > 10000, said
    for name in (path, path + ".debug", path + ".c"):
        os.remove(name)
    shutil.rmtree(folder + "/traces")
    after, _, shown = answers(packed, folder + "/cache2")
    for words, one, other in zip(QUESTIONS, before, after):
        assert one == other, (words, one, other)
    assert b"total += n; /* here */" in shown.out, shown
    names = tarfile.open(fileobj=io.BytesIO(subprocess.run([tbdtest.need("zstd"), "-dc", packed], stdout=subprocess.PIPE, check=True).stdout)).getnames() \
        if shutil.which("zstd") else []
    assert not names or any("/debug/" in name for name in names) and any(name.endswith("/sums.c") for name in names), names
    made = os.path.join(folder, "made")
    assert tbdtest.run([tbdtest.TBDQ, "unpack", packed, made]).code == 0
    assert answers(made, folder + "/cache3")[0] == before
    assert tbdtest.run([tbdtest.TBDQ, "unpack", packed, made]).code == 4, "it exists"
    sizes = {row["part"]: row["bytes"] for row in tbdtest.Trace(made).ask("du")}
    assert sizes["total"] == sum(size for part, size in sizes.items() if part != "total") and sizes["debug"] > 0, sizes


def test_what_is_no_file_is_left_alone(folder):
    """A pack takes the place of a file, and of nothing else; what is no pack is said to be none."""
    _, trace = tbdtest.record([tbdtest.need("true")], folder + "/traces")
    fifo, link, text, packed = (os.path.join(folder, name) for name in ("fifo", "link", "text", "a.tbd"))
    os.mkfifo(fifo)
    os.symlink("/nowhere", link)
    with open(text, "w", encoding="utf-8") as file:
        file.write("text")
    for path, why in ((fifo, b"no regular file"), (link, b"no regular file"), (folder, b"no regular file"), (folder + "/no/a.tbd", b"No such file")):
        before = os.lstat(path) if os.path.lexists(path) else None
        said = trace.tbdq("pack", path)
        assert said.code == 4 and why in said.err, said
        assert before is None or os.lstat(path).st_ino == before.st_ino, path
    assert trace.tbdq("pack", text).code == 0 and trace.tbdq("pack", packed).code == 0
    assert tbdtest.run([tbdtest.TBDQ, "-t", text, "info"], env={"XDG_CACHE_HOME": folder + "/cache"}).code == 0
    for path in (fifo, tbdtest.need("true")):
        said = tbdtest.run([tbdtest.TBDQ, "-t", path, "info"])
        assert said.code == 3 and b"no packed trace" in said.err, said


def test_a_packed_dump_answers_elsewhere(folder):
    path = build(folder)
    root = os.path.join(folder, "traces")
    tbdtest.run([tbdtest.TBD, "crash", "--", "/bin/sh", "-c", path + "; kill -SEGV $$"], env={"TBD_DIR": root})
    tbdtest.wait_organizers(root)
    dump, packed = tbdtest.Trace(os.path.join(root, "latest")), os.path.join(folder, "dump.tbd")
    questions = (["path", "5"], ["--at", "last", "bt"], ["facts", "command"], ["regs"], ["path", "3", "--values"])
    env = {"XDG_CACHE_HOME": folder + "/cache"}
    before = [tbdtest.run([tbdtest.TBDQ, "-t", dump.path] + words, env=env) for words in questions]
    assert dump.tbdq("pack", packed).code == 0
    shutil.rmtree(root)
    for words, one in zip(questions, before):
        other = tbdtest.run([tbdtest.TBDQ, "-t", packed] + words, env=env)
        assert one.code == other.code == 0 and one.out == other.out, (words, one, other)


class DebugFiles(http.server.BaseHTTPRequestHandler):
    """A debuginfod that has one debug file, by its build id."""
    build_id, path_of_file, asked = "", "", []

    def do_GET(self):
        self.asked.append(self.path)
        if self.path != "/buildid/%s/debuginfo" % self.build_id:
            self.send_error(404)
            return
        with open(self.path_of_file, "rb") as file:
            content = file.read()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


def test_debug_files_come_from_debuginfod(folder):
    """Only where the variable is set, and the library is there."""
    if not ctypes.util.find_library("debuginfod"):
        raise tbdtest.Skip("there is no libdebuginfod")
    path = build(folder)
    said = tbdtest.run([tbdtest.need("readelf"), "-n", path])
    build_id = re.search(r"Build ID: (\w+)", said.out.decode())[1]
    _, trace = tbdtest.record([path], folder + "/traces")
    before = answers(trace.path, folder + "/cache1")[0]
    os.mkdir(folder + "/elsewhere")
    handler = type("Handler", (DebugFiles,), {"build_id": build_id, "path_of_file": shutil.move(path + ".debug", folder + "/elsewhere"), "asked": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        for urls, is_there in (("", False), ("http://127.0.0.1:%d" % server.server_port, True)):
            packed = os.path.join(folder, "run%d.tbd" % is_there)
            env = {"DEBUGINFOD_URLS": urls, "DEBUGINFOD_CACHE_PATH": folder + "/debuginfod", "XDG_CACHE_HOME": folder + "/cache%d" % (2 + is_there)}
            said = tbdtest.run([tbdtest.TBDQ, "-t", trace.path, "pack", packed], env=env)
            assert said.code == 0 and bool(handler.asked) == is_there, (said, handler.asked)
            if is_there:
                assert answers(packed, folder + "/cache4")[0] == before, handler.asked
            else:
                assert tbdtest.run([tbdtest.TBDQ, "-t", packed, "lines", "sums.c:5"], env=env).code != 0
    finally:
        server.shutdown()
        server.server_close()


def archive(folder, name, *members):
    """A file that tar and zstd have made: (name, content, type)."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for member, content, kind in members:
            info = tarfile.TarInfo(member)
            info.size, info.type, info.linkname = len(content), kind, "/etc/passwd" if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE) else ""
            tar.addfile(info, io.BytesIO(content))
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        subprocess.run([tbdtest.need("zstd"), "-qc"], input=plain.getvalue(), stdout=file, check=True)
    return path


def test_hostile_archives_are_refused(folder):
    tbdtest.need("zstd")
    file, link, hard, device = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE
    outside = os.path.join(folder, "outside")
    bad = {"up": [("t/../../outside", b"x", file)], "absolute": [(outside, b"x", file)], "link": [("t/a", b"", link), ("t/a/b", b"x", file)],
           "hard": [("t/a", b"", hard)], "fifo": [("t/a", b"", device)], "dot": [("t/./a", b"x", file)], "bomb": [("t/a", bytes(300 << 20), file)]}
    for name, members in bad.items():
        path = archive(folder, name + ".tbd", *members)
        said = tbdtest.run([tbdtest.TBDQ, "unpack", path, os.path.join(folder, "made")])
        assert said.code == 4 and not os.path.exists(os.path.join(folder, "made")) and not os.path.exists(outside), (name, said)
        asked = tbdtest.run([tbdtest.TBDQ, "-t", path, "info"], env={"XDG_CACHE_HOME": folder + "/cache"})
        assert asked.code in (3, 4), (name, asked)
    good = archive(folder, "good.tbd", ("t/", b"", tarfile.DIRTYPE), ("t/a/b", b"content", file))
    assert tbdtest.run([tbdtest.TBDQ, "unpack", good, os.path.join(folder, "made")]).code == 0
    with open(os.path.join(folder, "made/a/b"), "rb") as made:
        assert made.read() == b"content"
    with open(good, "rb") as whole:
        content = whole.read()
    for cut in (3, 10, len(content) // 2, len(content) - 5):
        with open(os.path.join(folder, "cut.tbd"), "wb") as part:
            part.write(content[:cut])
        assert tbdtest.run([tbdtest.TBDQ, "unpack", os.path.join(folder, "cut.tbd"), os.path.join(folder, "made2")]).code == 4, cut


def test_sources_are_mapped_and_changes_are_said(folder):
    path = build(folder)
    _, trace = tbdtest.record([path], folder + "/traces")
    moved = os.path.join(folder, "moved")
    os.makedirs(moved)
    shutil.move(path + ".c", moved)
    words = ["--at", "last", "list", "add"]
    assert b"here" not in trace.tbdq(*words, json_output=False).out
    said = trace.tbdq("--source-map", folder + "=" + moved, *words, json_output=False)
    assert b"total += n; /* here */" in said.out and b"has changed" not in said.err, said
    shutil.move(os.path.join(moved, "sums.c"), path + ".c")
    now = time.time() + 5
    os.utime(path + ".c", (now, now))
    said = trace.tbdq(*words, json_output=False)
    assert b"sums.c has changed since the recording" in said.err, said
    assert trace.tbdq("--source-map", "nothing", "info", json_output=False).code == 2


def test_only_traces_of_wanted_ends_are_kept(folder):
    path = build(folder)
    for option, status, kept in (("failure", "0", False), ("failure", "3", True), ("signal", "3", False), ("exit", "0", True), ("always", "0", True)):
        root = os.path.join(folder, option + status)
        tbdtest.run([tbdtest.TBD, "record", "--save-on=" + option, "--", path, status], env={"TBD_DIR": root})
        tbdtest.wait_organizers(root)
        assert bool(tbdtest.traces(root)) == kept, (option, status, os.listdir(root))
        assert os.path.lexists(os.path.join(root, "latest")) == kept
    root = os.path.join(folder, "failure3")
    tbdtest.run([tbdtest.TBD, "record", "--save-on=failure", "--", path, "0"], env={"TBD_DIR": root})
    tbdtest.wait_organizers(root)
    assert os.readlink(os.path.join(root, "latest")) == "sums-1" and len(tbdtest.traces(root)) == 1
    root = os.path.join(folder, "killed")
    killed = tbdtest.run([tbdtest.TBD, "record", "--save-on=signal", "--", "/bin/sh", "-c", "kill -SEGV $$"], env={"TBD_DIR": root})
    tbdtest.wait_organizers(root)
    assert killed.code == -11 and len(tbdtest.traces(root)) == 1, (killed, os.listdir(root))


if __name__ == "__main__":
    tbdtest.main(test_a_packed_trace_answers_elsewhere, test_what_is_no_file_is_left_alone, test_a_packed_dump_answers_elsewhere,
                 test_debug_files_come_from_debuginfod, test_hostile_archives_are_refused, test_sources_are_mapped_and_changes_are_said,
                 test_only_traces_of_wanted_ends_are_kept)
