#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trace directories in which somebody has put FIFOs, devices and links, or which are somebody else's: no question waits, follows
a link, or changes a file of the reader."""
import os
import shutil
import stat
import struct
import subprocess

import tbdtest

OTHER = 12345  # a user that is not this one
SECOND = 30  # no question here takes that long, unless it waits for somebody


def recorded(folder, name="stores", options="window=2000"):
    _, trace = tbdtest.record([tbdtest.program(name)], os.path.join(folder, "traces"), options)
    return trace


def need_root():
    if os.geteuid() != 0:
        raise tbdtest.Skip("only root can give a file to somebody else")


def give(path, user):
    need_root()
    for place, folders, files in os.walk(path):
        for name in [place] + [os.path.join(place, n) for n in folders + files]:
            os.lchown(name, user, user)


def ask(trace, *words, env=None):
    result = tbdtest.run([tbdtest.TBDQ, "-t", trace if isinstance(trace, str) else trace.path, *words], stdin=None, timeout=SECOND, env=env)
    assert 0 <= result.code <= 4 and b"tbdq: expected" not in result.err, result
    return result


def files_of(path):
    return sorted(os.path.relpath(os.path.join(place, name), path) for place, _, files in os.walk(path) for name in files)


def one_line(result, code, *parts):
    """One line of error that says it, and the exit status."""
    lines = [line for line in result.err.decode().splitlines() if not line.startswith(("hint: ", "tbdq: note: "))]
    assert result.code == code and len(lines) == 1, result
    assert all(part in lines[0] for part in parts), (parts, lines)


def test_no_file_is_a_fifo_a_link_or_a_device(folder):
    trace = recorded(folder)
    ask(trace, "verify")
    names = [name for name in files_of(trace.path) if not name.startswith("cache")]
    assert {"header", "index", "blocks", "image", "windows/0/000.toc"} < set(names), names
    # Of the windows' files only those of the first, one in the middle and the last.
    numbers = sorted({name.split(".")[0] for name in names if name.startswith("windows/")})
    numbers = numbers if tbdtest.LONG else [numbers[0], numbers[len(numbers) // 2], numbers[-1]]
    for name in [name for name in names if not name.startswith("windows/") or name.split(".")[0] in numbers]:
        path, kept = os.path.join(trace.path, name), os.path.join(folder, "kept")
        os.rename(path, kept)
        questions = (("info",), ("verify", "-j", "2"), ("goto", "last", "backward", "store"))
        for number, plant in enumerate((lambda p: os.mkfifo(p), lambda p: os.symlink(kept, p), lambda p: os.mkdir(p))):
            plant(path)
            for words in questions if tbdtest.LONG or number == 0 else questions[number:number + 1]:
                result = ask(trace, *words)
                if name in ("index", "blocks"):
                    one_line(result, 4, name)
                elif name == "header":
                    assert result.code in (0, 1) and b"the trace is damaged: header" in result.err, result
            (os.rmdir if stat.S_ISDIR(os.lstat(path).st_mode) else os.unlink)(path)
        os.rename(kept, path)
    assert ask(trace, "verify").code == 0


def test_folders_that_are_links_are_not_entered(folder):
    trace = recorded(folder)
    for name in ("windows", "windows/0", "modules", "keys"):
        path, kept = os.path.join(trace.path, name), os.path.join(folder, "kept")
        if not os.path.isdir(path):
            continue
        os.rename(path, kept)
        os.symlink(kept, path)
        result = ask(trace, "verify", "-j", "1")
        assert name in ("modules", "keys") or result.code != 0, (name, result)
        assert not name.startswith("windows") or ask(trace, "regs").code != 0, name
        os.unlink(path)
        os.rename(kept, path)


def test_what_is_written_goes_to_no_link(folder):
    """The reader's own files, to which a trace's `position`, `frame`, `bookmarks` and `cache` lead."""
    trace = recorded(folder, options="window=2000,count=now,lean=always")
    victim, place = os.path.join(folder, "victim"), os.path.join(folder, "place")
    os.mkdir(place)
    for name in ("position", "frame", "bookmarks"):
        with open(victim, "w", encoding="ascii") as file:
            file.write("precious\n")
        path = os.path.join(trace.path, name)
        if os.path.lexists(path):
            os.unlink(path)
        os.symlink(victim, path)
    os.symlink(place, os.path.join(trace.path, "cache"))
    for words in (("goto", "last", "backward", "func_enter"), ("frame", "1"), ("frame", "0"), ("mark", "here"), ("goto", "@here"), ("all", "store"),
                  ("count", "store", "by", "func")):
        ask(trace, *words)
    with open(victim, encoding="ascii") as file:
        assert file.read() == "precious\n"
    assert os.listdir(place) == []
    assert not os.path.islink(os.path.join(trace.path, "bookmarks"))
    assert b"@here" in ask(trace, "marks").out


def test_another_user_s_trace_is_opened_only_by_name(folder):
    trace = recorded(folder)
    root = os.path.dirname(trace.path)
    give(trace.path, OTHER)
    latest = tbdtest.run([tbdtest.TBDQ, "info"], stdin=None, env={"TBD_DIR": root}, timeout=SECOND)
    one_line(latest, 3, "another user", str(OTHER), "-t TRACE")
    for name in (trace.path, os.path.join(root, "latest")):
        result = ask(name, "info")
        assert result.code == 0 and result.err == b"tbdq: note: the trace belongs to another user (%d)\n" % OTHER, result
    assert ask(os.path.basename(trace.path), "verify", env={"TBD_DIR": root}).code == 0


def test_another_user_s_latest_is_not_followed(folder):
    trace = recorded(folder)
    root = os.path.dirname(trace.path)
    need_root()
    os.lchown(os.path.join(root, "latest"), OTHER, OTHER)
    one_line(tbdtest.run([tbdtest.TBDQ, "info"], stdin=None, env={"TBD_DIR": root}, timeout=SECOND), 3, "another user", "-t TRACE")
    assert ask(os.path.join(root, "latest"), "info").code == 0


def test_processes_lists_no_traces_of_others(folder):
    trace = recorded(folder)
    root = os.path.dirname(trace.path)
    other = os.path.join(root, "other-1")
    shutil.copytree(trace.path, other)
    assert len(ask(trace, "processes").out.splitlines()) >= 1
    give(other, OTHER)
    os.unlink(os.path.join(other, "header"))
    os.mkfifo(os.path.join(other, "header"))
    assert ask(trace, "processes").code == 0


def test_split_debug_information_in_a_fifo_is_left_alone(folder):
    """libdw opens .dwo and .dwp files by itself, where the debug information says."""
    compiler = tbdtest.need("gcc")
    source, program = os.path.join(folder, "split.c"), os.path.join(folder, "split")
    with open(source, "w", encoding="ascii") as file:
        file.write("#include <stdio.h>\nint number;\nint twice(int x) { number = x; return 2 * x; }\n"
                   "int main(void) { return printf(\"%d\\n\", twice(21)) != 3; }\n")
    subprocess.run([compiler, "-g", "-O0", "-gsplit-dwarf", "-fcf-protection=none", "-o", "split", "split.c"], cwd=folder, check=True)
    dwo = [name for name in os.listdir(folder) if name.endswith(".dwo")]
    assert dwo, os.listdir(folder)
    _, trace = tbdtest.record([program], os.path.join(folder, "traces"))
    question = ("goto", "last", "backward", "store", "where", "func==twice")
    assert ask(trace, *question).code == 0
    assert b"21" in ask(trace, "print", "x").out
    os.unlink(os.path.join(folder, dwo[0]))
    os.mkfifo(os.path.join(folder, dwo[0]))
    assert b"21" not in ask(trace, "print", "x").out
    ask(trace, "list")
    os.unlink(os.path.join(folder, dwo[0]))
    for words in (("locals",), ("print", "x")):
        assert b"cannot be read: " + dwo[0].encode() in ask(trace, *words).err, words
    copies = [name for name in os.listdir(os.path.join(trace.path, "modules")) if name.endswith("split")]
    os.mkfifo(os.path.join(trace.path, "modules", copies[0] + ".dwp"))
    ask(trace, "print", "x")


def test_sources_that_are_no_files_are_not_shown(folder):
    compiler = tbdtest.need("gcc")
    source, program = os.path.join(folder, "text.c"), os.path.join(folder, "text")
    with open(source, "w", encoding="ascii") as file:
        file.write("int main(void)\n{\n    return 0;\n}\n")
    subprocess.run([compiler, "-g", "-O0", "-o", program, source], check=True)
    _, trace = tbdtest.record([program], os.path.join(folder, "traces"))
    assert ask(trace, "goto", "first", "forward", "line", "where", "func==main").code == 0
    assert b"return 0" in ask(trace, "list").out
    os.rename(source, source + ".real")
    os.symlink(source + ".real", source)
    assert b"return 0" in ask(trace, "list").out  # the user's own link
    if os.geteuid() == 0:
        os.lchown(source, OTHER, OTHER)
        assert b"return 0" not in ask(trace, "list").out
    os.unlink(source)
    for plant in (lambda: os.mkfifo(source), lambda: os.symlink("/dev/zero", source)):
        plant()
        assert b"return 0" not in ask(trace, "list").out
        os.unlink(source)

# ---- files that are not what they say ----

def test_giants_with_holes_are_refused_at_once(folder):
    trace = recorded(folder, options="window=2000,count=now")
    ask(trace, "verify")
    for name in ("header", "index", "blocks", "image", "windows/0/000.toc", "windows/0/000.trace", "windows/0/000.blocks"):
        path = os.path.join(trace.path, name)
        size = os.path.getsize(path)
        try:
            os.truncate(path, 1 << 40)
        except OSError as error:
            raise tbdtest.Skip("this file system has no files of 1 TB") from error
        for mode in (0o600, 0o660):
            os.chmod(path, mode)
            result = ask(trace, "verify", "-j", "1")
            text = result.out + result.err
            assert (result.code == 0 and name == "header") or result.code == 3, (name, result)
            assert b"says 1099511627776 bytes" in text, (name, result)
        os.truncate(path, size)
    assert ask(trace, "verify").code == 0


def test_an_exchanged_module_is_not_used(folder):
    trace = recorded(folder)
    modules = os.path.join(trace.path, "modules")
    name = next(name for name in os.listdir(modules) if "libc.so" in name)
    with open(os.path.join(modules, name), "rb") as file:
        content = file.read()
    os.unlink(os.path.join(modules, name))
    at = len(content) // 2 // 4096 * 4096
    for changed in (content[:-1], content + b"\0", bytes(64) + content[64:], content[:-64] + bytes(64),
                    bytes(byte ^ 1 for byte in content)):
        with open(os.path.join(modules, name), "wb") as file:
            file.write(changed)
        result = ask(trace, "info")
        assert b"modules/%s: it is not the file that was recorded" % os.fsencode(name) in result.err, (at, result)
    with open(os.path.join(modules, name), "wb") as file:
        file.write(content)
    result = ask(trace, "verify")
    assert result.code == 0 and not result.err, result


def inflated(folder, program, size):
    """A copy of the program whose debug information says that it becomes this large."""
    objcopy, bomb = tbdtest.need("objcopy"), os.path.join(folder, "bomb")
    subprocess.run([objcopy, "--compress-debug-sections=zlib", program, bomb], check=True)
    with open(bomb, "rb") as file:
        content = bytearray(file.read())
    at, entry, count, names = struct.unpack_from("<Q", content, 40)[0], *struct.unpack_from("<HHH", content, 58)
    strings = struct.unpack_from("<Q", content, at + names * entry + 24)[0]
    done = 0
    for i in range(count):
        name, _, flags, _, offset = struct.unpack_from("<IIQQQ", content, at + i * entry)
        text = bytes(content[strings + name:content.index(0, strings + name)])
        if flags & 0x800 and text.startswith(b".debug_"):  # SHF_COMPRESSED; Elf64_Chdr.ch_size
            struct.pack_into("<Q", content, offset + 8, size)
            done += 1
    with open(bomb, "wb") as file:
        file.write(content)
    assert done, "nothing is compressed"
    return bomb


def test_debug_sections_that_inflate_are_left_out(folder):
    source, program = os.path.join(folder, "text.c"), os.path.join(folder, "text")
    with open(source, "w", encoding="ascii") as file:
        file.write("#include <stdio.h>\nint number;\nint main(void)\n{\n    number = printf(\"text\\n\");\n    return 0;\n}\n" +
                   "".join("int text_%d(long a, long b);\nint text_%d(long a, long b) { return (int)(a * b); }\n" % (i, i) for i in range(100)))
    subprocess.run([tbdtest.need("gcc"), "-g", "-O0", "-o", program, source], check=True)
    for size in (3 << 30, 1 << 40, (1 << 64) - 1):
        says_that_it_is_left_out(inflated(folder, program, size), os.path.join(folder, "traces-%d" % size))
    zeros = os.path.join(folder, "zeros")
    with open(zeros, "wb") as file:
        file.truncate(256 << 20)
    for options in (["--update-section", ".debug_str=" + zeros, program], ["--compress-debug-sections=zlib", "zip"]):
        subprocess.run(["objcopy", *options, "zip"], cwd=folder, check=True)
    says_that_it_is_left_out(os.path.join(folder, "zip"), os.path.join(folder, "traces-zip"))
    assert os.path.getsize(os.path.join(folder, "zip")) < 1 << 20


def says_that_it_is_left_out(program, root):
    _, trace = tbdtest.record([program], root)
    for words in (("bt",), ("goto", "last", "backward", "store", "where", "func==main"), ("list",)):
        ask(trace, *words)
    result = ask(trace, "lines", "text.c")
    assert b"note: the debug information of %s is not used: unpacked it would take" % os.fsencode(program) in result.err, result


if __name__ == "__main__":
    tbdtest.main(*[value for name, value in sorted(globals().items()) if name.startswith("test_")])
