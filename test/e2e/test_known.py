#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What native play has found in the code of files is kept beside the traces: the next process uses it, and nothing that lies there
changes what a program does or what a replay finds."""
import os
import re
import shutil
import struct
import subprocess

import tbdtest

MASK = (1 << 64) - 1
HEAD = 13  # words before the places: magic, sum, the key's ten, and their number
COUNT, PLACES = 12, 13


def hash64(data):
    """src/base/hash.h."""
    def mix(h):
        h ^= h >> 32
        h = h * 0xd6e8feb86659fd93 & MASK
        return h ^ h >> 32
    h = 0x9e3779b97f4a7c15 ^ len(data)
    for (word,) in struct.iter_unpack("<Q", data):
        h = mix(h ^ word) * 0x9fb21c651e98df25 & MASK
    return mix(h)


def kept(root):
    folder = os.path.join(root, ".code")
    return {name: os.path.join(folder, name) for name in sorted(os.listdir(folder))} if os.path.isdir(folder) else {}


def words_of(path):
    with open(path, "rb") as f:
        data = f.read()
    return list(struct.unpack(f"<{len(data) // 8}Q", data))


def write_words(path, words):
    """With the sum that they have."""
    words[1] = hash64(struct.pack(f"<{len(words) - 2}Q", *words[2:]))
    with open(path, "wb") as f:
        f.write(struct.pack(f"<{len(words)}Q", *words))


def record(root, env=None):
    """A run of a program that reads the clock and uses the C library; how many finds had to be decided."""
    tbdtest.need("sort")
    argv = ["sort", "-R", "--random-source=/etc/passwd", "/etc/passwd"]
    expected = tbdtest.run(argv)
    # the log would be among what the program prints to stderr, which is not compared
    result, trace = tbdtest.record(argv, root, "mode=native,count=now,log=debug", env=env)
    if b"runs translated" in result.err and b"native play needs" in result.err:
        raise tbdtest.Skip(result.err.decode()[:200])
    assert (result.out, result.code) == (expected.out, expected.code), (result.code, result.err[-500:])
    trace.verify()
    return len(re.findall(rb" for, \d+ against", result.err))


def filled(folder):
    """A folder of traces with what the program needs, and how much had to be decided for it."""
    root = os.path.join(folder, "traces")
    first = record(root)
    if not kept(root):
        raise tbdtest.Skip("the C library has just been installed")
    return root, first


def test_what_was_found_is_used_again(folder):
    root, first = filled(folder)
    files = {name: words_of(path) for name, path in kept(root).items()}
    assert first > 100 and record(root) < first / 10, first
    assert files == {name: words_of(path) for name, path in kept(root).items()}
    for name, words in files.items():
        info = os.stat(kept(root)[name])
        assert info.st_mode & 0o777 == 0o600 and len(words) == PLACES + words[COUNT], name
        assert words[1] == hash64(struct.pack(f"<{len(words) - 2}Q", *words[2:])), name


def test_a_file_that_is_not_right_is_made_again(folder):
    root, first = filled(folder)
    right = {name: words_of(path) for name, path in kept(root).items()}

    def torn(path, words):
        with open(path, "wb") as f:
            f.write(struct.pack("<8Q", *words[:8])[:61])

    def wrong_sum(path, words):
        with open(path, "wb") as f:
            # one place less, which nothing but the sum can tell
            some = [*words[:COUNT], words[COUNT] - 1, *words[PLACES:-1]] if words[COUNT] else [words[0], words[1] ^ 1, *words[2:]]
            f.write(struct.pack(f"<{len(some)}Q", *some))

    def other_engine(path, words):
        write_words(path, [*words[:2], words[2] ^ 1, *words[3:]])

    def no_instructions(path, words):
        write_words(path, [*words[:COUNT], 3, 0x10, 0x20, 0x31])

    def outside(path, words):
        write_words(path, [*words[:COUNT], 1, words[11] + 4096])

    def far_too_many(path, words):
        write_words(path, [*words[:COUNT], MASK // 8, *words[PLACES:]])

    def not_ordered(path, words):
        write_words(path, [*words[:COUNT], 2, 0x5000, 0x4000])

    for damage in (torn, wrong_sum, other_engine, no_instructions, outside, far_too_many, not_ordered):
        for name, path in kept(root).items():
            damage(path, list(right[name]))
        assert record(root) == first, damage.__name__
        assert {name: words_of(path) for name, path in kept(root).items()} == right, damage.__name__


def test_what_others_may_change_is_not_used(folder):
    root, first = filled(folder)
    for path in kept(root).values():
        os.chmod(path, 0o666)
    assert record(root) == first
    for path in kept(root).values():
        os.unlink(path)
        os.mkfifo(path)
    assert record(root) == first  # it does not wait
    elsewhere = os.path.join(folder, "elsewhere")
    for path in kept(root).values():
        shutil.copy(path, elsewhere)
        os.unlink(path)
        os.symlink(elsewhere, path)
    assert record(root) == first
    assert not any(os.path.islink(path) for path in kept(root).values())
    if os.geteuid() == 0:
        for path in kept(root).values():
            os.chown(path, 65534, 65534)
        assert record(root) == first
    names = set(kept(root))
    for path in kept(root).values():
        os.unlink(path)
    os.chmod(os.path.join(root, ".code"), 0o777)
    assert record(root) == first and names and not kept(root)


def test_where_nothing_can_be_kept_programs_run_as_before(folder):
    for name, place in (("file", lambda path: open(path, "w", encoding="ascii").close()), ("link", lambda path: os.symlink("/sys", path)),
                        ("fifo", os.mkfifo)):
        root = os.path.join(folder, name)
        os.mkdir(root, 0o700)
        place(os.path.join(root, ".code"))
        assert record(root) > 100 and record(root) > 100, name
    assert record(os.path.join(folder, *(4 * ["long" * 50]))) > 100


def test_nothing_is_kept_in_a_program_s_home(folder):
    home, cache = os.path.join(folder, "home"), os.path.join(folder, "cache")
    os.mkdir(home)
    os.mkdir(cache)
    record(os.path.join(folder, "traces"), {"HOME": home, "XDG_CACHE_HOME": cache})
    assert not os.listdir(home) and not os.listdir(cache), (os.listdir(home), os.listdir(cache))


def test_a_file_that_changes_is_looked_through_again(folder):
    """A copy of the C library with other times: nothing is known of it, and nothing is kept while it is new."""
    tbdtest.need("cc")
    root = os.path.join(folder, "traces")
    source, program = os.path.join(folder, "a.c"), os.path.join(folder, "a")
    with open(source, "w", encoding="ascii") as f:
        f.write("int main(void) { return 0; }\n" + "__asm__(\".rept 9000\\n lea 8(%rax), %rax\\n ret\\n .p2align 4\\n .endr\\n rdtsc\\n ret\");\n")
    subprocess.run(["cc", "-o", program, source], check=True)
    result, trace = tbdtest.record([program], root, "mode=native,count=now")
    tbdtest.need_native_play(result)
    assert result.code == 0
    trace.verify()
    assert str(os.stat(program).st_ino) not in {str(words_of(path)[4]) for path in kept(root).values()}


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
