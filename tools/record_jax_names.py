"""Write docs/site/jax_names.txt: the names that the public modules of the installed JAX have, a line per module.

    python tools/record_jax_names.py            in an environment with jax
"""

from __future__ import annotations

import importlib
import sys
import warnings
from pathlib import Path
from types import ModuleType

import reference

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "docs" / "site"))
from jax_names import NAMES, jax_module


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


def main() -> None:
    jax = importlib.import_module("jax")
    modules = {module: found for name in reference.NAMESPACES if (found := names(module := jax_module(name)))}
    lines = [f"{module}: {' '.join(found)}" for module, found in sorted(modules.items())]
    heading = f"# Public names of JAX {jax.__version__}, by tools/record_jax_names.py"
    NAMES.write_text("\n".join([heading, *lines]) + "\n")


if __name__ == "__main__":
    main()
