"""Write handlax/late_operations.py: the operations of modules that ``import handlax`` does not load, from the modules.

    python tools/late_operations.py            write the table
    python tools/late_operations.py --check    say whether it is out of date, and fail if it is
"""

from __future__ import annotations

import pkgutil
import sys
from importlib import import_module
from itertools import groupby
from pathlib import Path

import handlax
from handlax.effects.core.operation import OPERATIONS

FILE = Path(handlax.__file__).with_name("late_operations.py")
HEADER = '''"""The operations of modules that ``import handlax`` does not load: the name in texts, and the module.

Written by ``python tools/late_operations.py``.
"""

# module -> the names of its operations
_NAMES = {
'''
FOOTER = '''}

LATE_OPERATION_NAMES = {name: module for module, names in _NAMES.items() for name in names.split()}
'''


def table() -> str:
    """The text of the file. A user's program has no operation of ``handlax.testing``."""
    early = set(sys.modules)
    for module in pkgutil.walk_packages(handlax.__path__, "handlax."):
        import_module(module.name)
    later = {kind for kind in OPERATIONS.values() if kind.__module__ not in early}
    pairs = sorted((kind.__module__, kind.name) for kind in later if not kind.__module__.startswith("handlax.testing."))
    groups = groupby(pairs, lambda pair: pair[0])
    rows = [_row(module, " ".join([name for _, name in group])) for module, group in groups]
    return HEADER + "".join(rows) + FOOTER


def _row(module: str, names: str) -> str:
    """An entry of the table, in two lines where one would have more than 120 characters."""
    row = f'    "{module}": "{names}",\n'
    return row if len(row) <= 121 else row.replace('": "', '":\n        "')


def main(arguments: list[str]) -> int:
    text = table()
    stale = not FILE.exists() or FILE.read_text() != text
    if "--check" in arguments:
        print(f"{FILE.name}: {'out of date; run python tools/late_operations.py' if stale else 'as the code says'}")
        return int(stale)
    FILE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
