"""Load a program of this folder, with the library it is written for or with another one of the same interface."""

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

HERE = Path(__file__).parent
SUPPORT = {"__init__", "loading", "record", "test_programs"}
PROGRAMS = sorted(path.stem for path in HERE.glob("*.py") if path.stem not in SUPPORT)
RECORDING = HERE / "results.npz"


def load(name: str, library: str = "handlax") -> ModuleType:
    """The program ``name`` as a module, with the word ``handlax`` replaced by ``library``."""
    path = HERE / f"{name}.py"
    module = ModuleType(f"program_{library}_{name}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses look their module up by name
    source = re.sub(r"\bhandlax\b", library, path.read_text())
    exec(compile(source, str(path), "exec"), module.__dict__)
    return module


def storable(value: Any) -> np.ndarray:
    """``value`` as an array that ``npz`` can hold: 16-bit floats widen, which loses nothing."""
    array = np.asarray(value)
    return array.astype(np.float32) if array.dtype.name in ("bfloat16", "float16") else array


def results(name: str, library: str = "handlax") -> tuple[dict[str, np.ndarray], float]:
    """What ``main()`` of the program gives, and the relative tolerance it names."""
    module = load(name, library)
    return {key: storable(value) for key, value in module.main().items()}, getattr(module, "RTOL", 2e-5)


def disagreement(found: np.ndarray, wanted: np.ndarray, rtol: float) -> str:
    """Empty where two results agree, else what differs.

    Exact for integers, booleans and words; for floats ``|found - wanted| <= rtol * (|wanted| + max|wanted|)``:
    the second term forgives cancellation in entries that are small beside the others.
    """
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return f"got {found.dtype}{found.shape}, recorded {wanted.dtype}{wanted.shape}"
    if wanted.dtype.kind not in "fc":
        return "" if np.array_equal(found, wanted) else f"got {found}, recorded {wanted}"
    size = np.where(np.isfinite(wanted), np.abs(wanted), 0)
    bound = rtol * (size + size.max(initial=0))
    with np.errstate(invalid="ignore"):
        close = (np.abs(found - wanted) <= bound) | (found == wanted) | (np.isnan(found) & np.isnan(wanted))
        excess = np.abs(found - wanted) / np.maximum(bound, 1e-30)
    if close.all():
        return ""
    worst = np.max(excess, where=np.isfinite(excess), initial=0)
    return f"{(~close).sum()} of {close.size} entries differ, the worst finite one by {worst:.3g} bounds"
