"""When two results count as equal: integers always exactly, floats up to rounding.

A tolerance is relative to the largest element, since a sum of terms is as exact as its largest one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ..effects.base.wrapping import ignoring_errors
from ..effects.core.arrays import Array, as_array
from ..effects.trees import pytrees
from ..effects.trees.structure import at, difference
from ..effects.types import dtypes

# About 100 roundings: results of one function by two orders of evaluation. Narrow floats have fewer steps to lose bits
# in, since they are mostly computed in float32 and rounded once; float64 also allows for differing libraries of
# elementary functions, whose last bits differ.
TOLERANCE = {
    "float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "float64": 1e-10, "complex64": 4e-5, "complex128": 1e-10,
}


def data(x: Any) -> np.ndarray[Any, Any]:
    """The data of a concrete array; of an array of keys, its uint32 words."""
    return np.asarray(x if isinstance(x, np.generic) else as_array(x).value)  # type: ignore[attr-defined]


def assert_close(actual: Any, expected: Any, loose: float = 1.0, what: str = "") -> None:
    """Assert that integers are equal, and floats up to ``loose`` times the tolerance of their dtype.

    The tolerance is relative to the largest element.
    """
    actual, expected = data(actual), data(expected)
    assert actual.shape == expected.shape, f"{what}: shapes {actual.shape} and {expected.shape}"
    assert actual.dtype == expected.dtype, f"{what}: dtypes {actual.dtype} and {expected.dtype}"
    assert_all(equal(actual, expected, loose), actual, expected, what)


def equal(actual: Any, expected: Any, loose: float = 1.0, loops: int = 0) -> Any:
    """Which elements of two arrays of one shape are equal: integers exactly, floats as ``assert_close`` says.

    With ``loops`` the tolerance is relative to the largest element for each index of so many leading axes.
    """
    inexact = [x.dtype for x in (actual, expected) if dtypes.is_inexact(x.dtype)]
    if not inexact:
        return np.asarray(actual == expected)
    wide = np.complex128 if any([dtype.kind == "c" for dtype in inexact]) else np.float64
    tolerance = loose * max([TOLERANCE.get(dtype.name, 0.1) for dtype in inexact])
    a, b = actual.astype(wide), expected.astype(wide)
    sizes = np.abs(np.where(np.isfinite(b), b, 0))
    largest = sizes.max(tuple(range(loops, b.ndim)), keepdims=True, initial=1e-30)
    return np.isclose(a, b, rtol=tolerance, atol=tolerance * largest, equal_nan=True)


@ignoring_errors
def assert_rounded(
    actual: Sequence[Any], f: Callable[..., Sequence[Any]], xs: Sequence[Any], operands: Sequence[Any], loose: float,
    what: str,
) -> None:
    """Assert that ``actual`` is close to ``f(*xs)``, or as far as rounding the operands explains.

    ``xs`` are the operands, perhaps in more bits.
    """
    expected, slack = list(map(data, f(*xs))), None
    for k, (y, z) in enumerate(zip(map(data, actual), expected, strict=True)):
        if dtypes.is_inexact(y.dtype):
            if not np.all(equal(y, z.astype(y.dtype), loose)):
                slack = slack or _changes(f, xs, operands, expected)
                y = np.where(np.abs(widened(y) - widened(z)) <= 4 * slack[k], z, y).astype(y.dtype)
            z = z.astype(y.dtype)
        assert_close(y, z, loose, what)


def _changes(
    f: Callable[..., Sequence[Any]], xs: Sequence[Any], operands: Sequence[Any], expected: Sequence[Any]
) -> list[float]:
    """What four roundings of the operands, random ones, change in each result beyond one, so that jumps count nothing:
    the largest change.
    """
    rng, largest = np.random.default_rng(9), [0.0] * len(expected)

    def changes(parts: Sequence[Any]) -> list[Any]:
        ys = map(data, f(*[x if part is None else np.asarray(widened(x) * (1 + part)).astype(x.dtype)
                           for x, part in zip(xs, parts)]))
        return [np.abs(widened(y) - widened(z)) if dtypes.is_inexact(z.dtype) else np.zeros(0)
                for y, z in zip(ys, expected)]

    for _ in range(4):
        parts = [rng.uniform(-1, 1, x.shape) * float(dtypes.finfo(x.dtype).eps) if dtypes.is_inexact(x.dtype) else None
                 for x in operands]
        four = changes([None if part is None else 4 * part for part in parts])
        for k, beyond in enumerate([b - a for a, b in zip(changes(parts), four)]):
            largest[k] = max(largest[k], float(beyond[np.isfinite(beyond)].max(initial=0.0)))
    return largest


def widened(x: Any) -> Any:
    """Floating-point numbers as float64, complex ones as complex128; an array of another dtype as it is."""
    return x.astype("complex128" if dtypes.is_complex(x.dtype) else "float64") if dtypes.is_inexact(x.dtype) else x


def assert_all(same: Any, actual: Any, expected: Any, what: str) -> None:
    """Assert that all elements of two arrays are the ``same``; the message has what was got and expected."""
    if not np.all(same):
        raise AssertionError(_difference(actual, expected, same, what))


def brief(x: Any) -> str:
    """The elements of an array in one line, of a large one a part, with all digits."""
    return " ".join(np.array2string(np.asarray(x), separator=", ", threshold=20, floatmode="unique").split())


def _difference(actual: Any, expected: Any, same: Any, what: str) -> str:
    """The message for two arrays of which some elements are not the ``same``."""
    lines = [f"{what}: {np.sum(~same)} of {same.size} elements differ", f"got      {brief(actual)}",
             f"expected {brief(expected)}"]
    if same.ndim:
        at = tuple(map(int, np.argwhere(~same)[0]))
        lines.append(f"first at {list(at)}: got {actual[at]}, expected {expected[at]}")
    return "\n".join(lines)


def assert_results_equal(
    actual: Any, expected: Any, loose: float = 10.0, *, exact: bool = True, weak: bool = False, what: str = ""
) -> None:
    """Assert that two trees of results have one structure, and leaves of one type that are close; ``weak``: types that
    are weak alike, too.

    With ``exact=False`` a leaf that is no array of this library need have a dtype of the same kind alone, and is
    compared in the narrower one of both.
    """
    about = f"{what}: " if what else ""
    structures = pytrees.structure(actual), pytrees.structure(expected)
    if structures[0] != structures[1]:
        got, wanted, where = difference(*structures)
        raise AssertionError(f"{about}the results{where}: {got}, expected {wanted}")
    for (path, x), y in zip(pytrees.flatten_with_path(actual)[0], pytrees.leaves(expected)):
        what = f"{about}the result{at(path)}"
        if exact or (isinstance(x, Array) and isinstance(y, Array)):
            types = as_array(x).type, as_array(y).type
            assert not weak or types[0] == types[1], f"{what}: the type is {types[0]}, expected {types[1]}"
            assert_close(x, y, loose, what)
        else:
            _assert_alike(x, y, loose, what)


def _assert_alike(x: Any, y: Any, loose: float, what: str) -> None:
    """Assert that two arrays have dtypes of one kind and close values; floats are compared in the narrower dtype."""
    x, y = (np.asarray(z) if isinstance(z, np.generic | int | float | complex) else data(z) for z in (x, y))
    kinds = [next(name for name, has in _FAMILIES.items() if has(z.dtype)) for z in (x, y)]
    assert kinds[0] == kinds[1], f"{what}: {kinds[0]} of {x.dtype}, expected {kinds[1]} of {y.dtype}"
    assert x.shape == y.shape, f"{what}: shapes {x.shape} and {y.shape}"
    narrower = min((x.dtype, y.dtype), key=lambda dtype: dtype.itemsize)
    if dtypes.is_inexact(narrower):
        x, y = x.astype(narrower), y.astype(narrower)
    assert_all(equal(x, y, loose), x, y, what)


_FAMILIES: Mapping[str, Callable[[Any], bool]] = MappingProxyType({
    "booleans": dtypes.is_bool, "integers": dtypes.is_integer, "real numbers": dtypes.is_floating,
    "complex numbers": dtypes.is_complex, "others": lambda dtype: True,
})
