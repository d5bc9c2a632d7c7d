# SPDX-License-Identifier: MIT
"""Commands that `tbdq gdb` adds to gdb: any command of tbdq, also those that move, and checkpoints.

gdb learns by a stop where it stands.  So after a command that has moved, one step is asked for, which the server answers with
where it stands, and nothing is carried out (QTbdArrive)."""
import gdb

MOVED = "gdb sees the new position after"
checkpoints = {}


def go(line):
    """Carries out a command of tbdq; if it moves, gdb comes along."""
    said = gdb.execute("monitor " + line, to_string=True)
    shown = [row for row in said.splitlines() if not row.startswith(MOVED)]
    if shown:
        print("\n".join(shown))
    if MOVED in said:
        gdb.execute("maintenance packet QTbdArrive", to_string=True)
        gdb.execute("stepi")


class Command(gdb.Command):
    """A command whose work is the function `act`, of its words."""

    def __init__(self, name, act, text):
        self.act = act
        self.__doc__ = text
        super().__init__(name, gdb.COMMAND_RUNNING)

    def invoke(self, argument, from_tty):
        """For gdb."""
        del from_tty
        self.act(argument)


def keep(_argument):
    """checkpoint"""
    number = max(checkpoints, default=0) + 1
    checkpoints[number] = gdb.execute("monitor where", to_string=True).split()[0]
    print("Checkpoint %d: position %s." % (number, checkpoints[number]))


def find(argument):
    """The number of a checkpoint."""
    number = int(argument) if argument.strip().isdigit() else 0
    if number not in checkpoints:
        raise gdb.GdbError("There is no checkpoint %s." % (argument or "without a number"))
    return number


def list_all(_argument):
    """info checkpoints"""
    for number, position in checkpoints.items():
        print("%d\tposition %s" % (number, position))
    if not checkpoints:
        print("No checkpoints.")


Command("tbd", go, "tbd COMMAND\nAny command of tbdq at the current position. If it moves, gdb moves.")
Command("checkpoint", keep, "Keeps the position in the recording, for `restart N`.")
Command("restart", lambda argument: go("goto " + checkpoints[find(argument)]), "restart N\nGoes to checkpoint N.")
Command("info checkpoints", list_all, "The checkpoints, and their positions in the recording.")
Command("delete checkpoint", lambda argument: checkpoints.pop(find(argument)), "delete checkpoint N\nForgets checkpoint N.")
