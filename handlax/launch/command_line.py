"""A script or a module as the main program of this process, for commands that are put before it."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from collections.abc import Sequence
from typing import NamedTuple


class MainProgram(NamedTuple):
    """A script with its arguments, or with ``module`` a module with its own."""

    words: Sequence[str]
    module: bool

    def run(self) -> None:
        """Run it as ``python`` does: ``sys.argv`` and ``sys.path`` are what it expects."""
        sys.argv = list(self.words)
        if self.module:
            runpy.run_module(self.words[0], run_name="__main__", alter_sys=True)
        else:
            if not sys.flags.safe_path:
                sys.path[0] = os.path.dirname(os.path.abspath(self.words[0]))
            runpy.run_path(self.words[0], run_name="__main__")


def main_program(command: str, description: str, arguments: Sequence[str]) -> MainProgram:
    """The program that stands behind a command; without one, or without its file, the usage is printed, and the process
    ends with status 2.
    """
    parser = argparse.ArgumentParser(
        prog=command, description=description, usage="%(prog)s (script.py | -m module) [arguments]",
    )
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="a module instead of a script")
    parser.add_argument("program", nargs=argparse.REMAINDER, help="the script and its arguments")
    given = parser.parse_args(arguments)
    if not (given.module or given.program):
        parser.error("a script must be given, or -m and a module")
    if given.program and not os.path.exists(given.program[0]):
        parser.error(f"there is no file {given.program[0]}")
    return MainProgram(given.module or given.program, bool(given.module))
