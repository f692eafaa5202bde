"""Print the lowest versions of the packages that handlax, ``direct`` and ``save`` need, as pip's pins.

    python tools/lowest_versions.py      ->  numpy==2.3 jaxlib==0.10.2 ...
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def lowest(requirements: Sequence[str]) -> Iterator[str]:
    """The lowest version of each requirement."""
    for requirement in requirements:
        name, _, version = requirement.partition(">=")
        yield f"{name}=={version.partition(',')[0]}"


def pins() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    return [*lowest(project["dependencies"]), *lowest(extras["direct"]), *lowest(extras["save"])]


if __name__ == "__main__":
    print(*pins())
