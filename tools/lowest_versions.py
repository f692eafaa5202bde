"""Print the lowest versions of the packages that handlax and the extras that are named need, as pip's pins.

    python tools/lowest_versions.py direct save      ->  numpy==2.3 jaxlib==0.10.2 ... greenlet==3.1 ...
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def lowest(requirements: Sequence[str]) -> Iterator[str]:
    """The lowest version of each requirement."""
    for requirement in requirements:
        name, _, version = requirement.partition(">=")
        yield f"{name}=={version.partition(',')[0]}"


def pins(extras: Sequence[str] = ()) -> list[str]:
    """The lowest versions of what handlax needs, and of what these extras add."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"]
    return [*lowest(project["dependencies"]), *[pin for extra in extras for pin in lowest(optional[extra])]]


if __name__ == "__main__":
    print(*pins(sys.argv[1:]))
