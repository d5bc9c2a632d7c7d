#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`why` follows the bytes that were asked about: programs/moved_pieces moves eight different constants in all the ways that a value may go
through general and vector registers, whole and in parts.  The truth is the value: each constant is stored by one instruction."""
import tbdtest

PROGRAM = tbdtest.program("moved_pieces")
BYTES = {"parts[0]": 0x77, "parts[1]": 0x66, "parts[2]": 8}  # by mov al, mov ah, and what was in rax before


def assert_ends(hops, value, words="a constant"):
    assert hops[-1]["what"].endswith("%s %d" % (words, value)) and int(hops[-1]["value"], 16) == value, (value, hops)
    assert {hop["depth"] for hop in hops} == {0} and all(int(hop["value"], 16) == value for hop in hops), (value, hops)


def check(trace, words, names):
    """Each word comes from the constant that it holds, by copies alone."""
    values = [int(answer[0]["value"].split()[0]) for answer in trace.script(["goto last"] + ["print " + name for name in names])[1:]]
    assert len(set(values)) == 8, values
    hops = trace.script(["goto last"] + ["why " + name for name in names + list(BYTES)])[1:]
    for found, value in zip(hops, values + list(BYTES.values())):
        assert_ends(found, value, words)
    return hops


def test_each_word_comes_from_the_constant_that_it_holds(folder):
    trace = tbdtest.record([PROGRAM], folder)[1]
    moved = int(trace.one("print", "moved", at="last")["value"])
    hops = check(trace, "a constant", ["to[%d]" % number for number in range(moved)])
    pair = [found[1]["what"] for found in hops[12:14]]  # movhps
    assert pair[0].startswith("from xmm0") and pair[1].startswith("from bytes 8 to 15 of xmm0"), pair
    text = trace.tbdq("why", "to[11]", at="last", json_output=False).out.decode()
    assert "from bytes 8 to 15 of xmm0" in text, text


def test_a_dump_follows_the_same_bytes(folder):
    result = tbdtest.run([PROGRAM, "crash"], env=tbdtest.trace_env(folder, "mode=crash"))
    assert result.code == -11, result
    tbdtest.wait_organizers(folder)
    dump = tbdtest.find_trace(folder, "moved_pieces")
    moved = int(dump.one("print", "moved")["value"])
    # What `rep movsq` wrote no dump knows: how far it went is no constant.
    check(dump, "copied from constant", ["to[%d]" % number for number in range(moved) if not 5 <= number < 9])


if __name__ == "__main__":
    tbdtest.main(*[f for n, f in sorted(globals().items()) if n.startswith("test_")])
