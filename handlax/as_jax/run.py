"""A script or a module as the main program of this process, with ``handlax`` behind the name ``jax``."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from collections.abc import Sequence

from .views import install


def main(arguments: Sequence[str]) -> None:
    """Run a program as ``python`` does with these arguments: ``sys.argv`` and ``sys.path`` are what it expects."""
    parser = argparse.ArgumentParser(
        prog="python -m handlax.as_jax", description="Run a program written for JAX on handlax.",
        usage="%(prog)s (script.py | -m module) [arguments]",
    )
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="a module instead of a script")
    parser.add_argument("program", nargs=argparse.REMAINDER, help="the script and its arguments")
    given = parser.parse_args(arguments)
    program = given.module or given.program
    if not program:
        parser.error("a script must be given, or -m and a module")
    install()
    sys.argv = list(program)
    if given.module:
        runpy.run_module(program[0], run_name="__main__", alter_sys=True)
    else:
        if not sys.flags.safe_path:
            sys.path[0] = os.path.dirname(os.path.abspath(program[0]))
        runpy.run_path(program[0], run_name="__main__")
