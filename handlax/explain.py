"""``python -m handlax.explain (script.py | -m module) [arguments]``: run a program, and print where its time went.

The table is that of ``hx.profile``. It is printed too where the program ends by an exception.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import handlax

from .launch import main_program


def main(arguments: Sequence[str]) -> None:
    program = main_program("python -m handlax.explain", "Run a program, and print where its time went.", arguments)
    times: Any = None
    try:
        with handlax.profile() as times:
            program.run()
    finally:
        sys.stdout.write(f"\n{times}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
else:
    sys.modules[__name__] = handlax.explain  # type: ignore[assignment]  # the function keeps its name in the package
