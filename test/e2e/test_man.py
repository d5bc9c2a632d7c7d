#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The man pages of the tools and what the tools' own tables say (`--help`, `tbdq help`) name the same commands and options."""
import os
import re

import tbdtest

MAN = os.path.join(tbdtest.SOURCE, "man")


def page(name):
    """(all text, what stands in headings of paragraphs) without the marks of troff."""
    with open(os.path.join(MAN, name), encoding="utf-8") as f:
        lines = re.sub(r'\\f[BIRP]|"', "", f.read().replace("\\-", "-")).splitlines()
    headings = [line for before, line in zip(lines, lines[1:]) if before == ".TP"]
    return "\n".join(lines), "\n".join(headings)


def said(tool, *words):
    result = tbdtest.run([tool, *words], stdin=None)
    assert result.code == 0, result
    return result.out.decode()


def options(text):
    return set(re.findall(r"(?<![\w-])--?[a-z][a-z0-9-]*", text))


def same_options(tool, name, words=()):
    text, headings = page(name)
    wanted = set()
    for line in said(tool, *words).split("\ncommands:")[0].splitlines():
        if line.startswith("  "):
            wanted |= options(line.strip().split("  ")[0])
    assert len(wanted) > 5 and wanted <= options(text), (name, wanted - options(text))
    for heading in headings.splitlines():
        known, command = wanted | {"--help", "--version"}, heading.split()[1]
        if not options(heading) <= known and not command.startswith("-"):
            known |= options(said(tool, "help", command))  # an option of this command alone
        assert options(heading) <= known, (name, heading)


def test_pages_have_the_options_that_help_lists(folder):
    same_options(tbdtest.TBDQ, "tbdq.1", ("--help",))
    same_options(tbdtest.TBD, "tbd.1", ("--help",))


def test_the_page_of_tbdq_has_every_command(folder):
    _, headings = page("tbdq.1")
    listed = re.findall(r"^  ([a-z][\w-]*) +\S", said(tbdtest.TBDQ, "help"), re.M)
    missing = [name for name in listed if not re.search(r"^\.B\w*.*(?<![\w-])%s(?![\w-])" % re.escape(name), headings, re.M)]
    assert len(listed) > 30 and not missing, missing


def test_every_tool_has_a_page(folder):
    for name in ("tbd", "tbdq", "tbd-organizer"):
        text, _ = page(name + ".1")
        assert re.search(r"^\.TH %s 1" % name, text, re.M | re.I) and ".SH NAME" in text and ".SH SYNOPSIS" in text, name
        for other in re.findall(r"^\.BR (tbd[\w-]*) ?\((\d)\)", text, re.M):
            built = os.path.join(tbdtest.BUILD, "%s.%s" % other)
            assert os.path.exists(os.path.join(MAN, "%s.%s" % other)) or os.path.exists(built), (name, other)


if __name__ == "__main__":
    tbdtest.main(*[f for n, f in sorted(globals().items()) if n.startswith("test_")])
