#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""without.py CALL ERROR [ARGUMENT VALUE] -- LIBRARY PROGRAM [ARGUMENT...]: runs the program with LIBRARY preloaded where a system call fails with
this errno, as on a kernel without it, or where it is forbidden; with ARGUMENT only if that argument has this value.  All are numbers."""
import ctypes
import os
import struct
import sys

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 22, 38
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
FAIL, ALLOW = 0x50000, 0x7fff0000


def refuse(number, error, argument=None, value=None):
    argument_is = [] if argument is None else [(LOAD, 0, 0, 16 + 8 * argument), (EQUAL, 0, 1, value)]
    lines = [(LOAD, 0, 0, 0), (EQUAL, 0, len(argument_is) + 1, number)] + argument_is + [(RETURN, 0, 0, FAIL | error), (RETURN, 0, 0, ALLOW)]
    text = b"".join(struct.pack("<HBBI", *line) for line in lines)
    code = ctypes.create_string_buffer(text, len(text))
    program = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(lines), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
    for what in ((PR_SET_NO_NEW_PRIVS, 1, 0), (PR_SET_SECCOMP, 2, ctypes.addressof(program))):
        if libc.prctl(*what, 0, 0):
            sys.exit("without.py: %s" % os.strerror(ctypes.get_errno()))


def main():
    split = sys.argv.index("--")
    refuse(*(int(word, 0) for word in sys.argv[1:split]))
    os.environ["LD_PRELOAD"] = sys.argv[split + 1]
    os.execv(sys.argv[split + 2], sys.argv[split + 2:])


if __name__ == "__main__":
    main()
