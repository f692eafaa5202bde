"""Write docs/site/jax_names.txt: the names that the public modules of the installed JAX have, a line per module.

    python tools/jax_names.py            in an environment with jax
"""

from __future__ import annotations

import importlib
import warnings
from pathlib import Path
from types import ModuleType

import reference

from handlax.as_jax.places import MODULES

NAMES = Path(__file__).resolve().parent.parent / "docs" / "site" / "jax_names.txt"


def jax_module(namespace: str) -> str:
    """The module of JAX's of which a namespace has the names: ``jax.X`` for ``handlax.X``, with few exceptions."""
    moved = {ours: theirs for theirs, ours in MODULES.items() if not theirs.startswith("jax._src")}
    return moved.get(namespace, "jax" + namespace.removeprefix("handlax"))


def names(module: str) -> list[str]:
    """The public names of a module of JAX's that are no modules; none where there is no such module."""
    try:
        found = importlib.import_module(module)
    except ImportError:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        listed = [name for name in dir(found) if not name.startswith("_")]
        return [name for name in listed if not isinstance(getattr(found, name, None), ModuleType)]


def read() -> dict[str, frozenset[str]]:
    """The names by module."""
    lines = [line.partition(":") for line in NAMES.read_text().splitlines() if not line.startswith("#")]
    return {module: frozenset(text.split()) for module, _, text in lines}


def main() -> None:
    jax = importlib.import_module("jax")
    modules = {module: found for name in reference.NAMESPACES if (found := names(module := jax_module(name)))}
    lines = [f"{module}: {' '.join(found)}" for module, found in sorted(modules.items())]
    NAMES.write_text("\n".join([f"# Public names of JAX {jax.__version__}, by tools/jax_names.py", *lines]) + "\n")


if __name__ == "__main__":
    main()
