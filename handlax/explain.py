"""``python -m handlax.explain (script.py | -m module) [arguments]``: run a program, and print where its time went.

The table is that of ``hx.profile``. It is printed when the program's threads have ended, also after an exception.
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Sequence
from contextlib import ExitStack

import handlax

from .launch import main_program


def main(arguments: Sequence[str]) -> None:
    program = main_program("python -m handlax.explain", "Run a program, and print where its time went.", arguments)
    recording = ExitStack()
    times = recording.enter_context(handlax.profile())

    @atexit.register  # Python waits for threads before
    def tell() -> None:
        recording.close()
        sys.stdout.write(f"\n{times}\n")

    program.run()


if __name__ == "__main__":
    main(sys.argv[1:])
else:
    sys.modules[__name__] = handlax.explain  # type: ignore[assignment]  # the function keeps its name in the package
