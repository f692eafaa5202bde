"""The page of wishes: every name that it tells to write is there."""

import re
from functools import reduce
from importlib import import_module
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "patterns.md"
NAMESPACES = {
    "hx": "handlax", "sparse": "handlax.experimental.sparse",
    **{name: f"handlax.{name}" for name in ("lax", "library", "probability", "random", "testing")},
}
NAME = re.compile(rf"`(?:@|with )?({'|'.join(NAMESPACES)})((?:\.\w+)+)")


def test_every_name_is_there():
    found = NAME.findall(PAGE.read_text())
    for namespace, rest in found:
        reduce(getattr, rest[1:].split("."), import_module(NAMESPACES[namespace]))
    assert len(found) > 35
