"""``python tools/run_library_cases.py optax``: what the programs of ``library_cases/optax_cases.py`` return, as JSON.

Run as it is with JAX, and by ``python -m handlax.as_jax`` with handlax in its place.
"""

import importlib
import inspect
import json
import sys
import traceback
from typing import Any

import jax
import numpy as np


def numbers(x: Any) -> Any:
    """A leaf as JSON: its shape and numbers, complex ones as pairs."""
    if isinstance(x, bytes | str):
        return repr(x)
    array = np.asarray(jax.random.key_data(x) if jax.dtypes.issubdtype(jax.typeof(x).dtype, jax.dtypes.prng_key) else x)
    flat = array.ravel()
    parts = np.stack([flat.real, flat.imag]).ravel() if np.iscomplexobj(flat) else flat
    return [list(array.shape), parts.astype(float).tolist()]


def outcome(case: Any) -> Any:
    """The leaves of what a program returns, or the last line of its error with the line where it was raised."""
    try:
        return [numbers(x) for x in jax.tree.leaves(case())]
    except Exception as error:
        if "-v" in sys.argv:
            traceback.print_exc()
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''} ({frame.name})"


def main(library: str) -> None:
    module = importlib.import_module(f"library_cases.{library}_cases")
    programs = {
        name: case for name, case in vars(module).items() if not name.startswith("_")
        if inspect.isfunction(case) and case.__module__ == module.__name__ and not inspect.signature(case).parameters
    }
    print(json.dumps({name: outcome(case) for name, case in programs.items()}))


if __name__ == "__main__":
    main(sys.argv[1])
