"""Calls of every function that ``handlax.numpy`` shares with another module of this interface, and their comparison.

Each function is called with each row of arguments that the other module takes: what it refuses says nothing.
"""

import warnings

import ml_dtypes
import numpy as np

import handlax as hx
from handlax import numpy as hnp

NAN, INF = np.nan, np.inf
ARRAYS = {
    "special": np.array([0.0, -0.0, 1, -1.5, 2.5, -2.5, NAN, INF, -INF, 3], np.float32),
    "f32": np.array([2.0, 0.5, -1.0, 3.0, 3.0, -2.0], np.float32),
    "f64": np.array([[1.0, 2.0, 0.0], [3.0, -1.0, 2.5], [0.5, 1.0, 4.0]]),
    "f16": np.array([1.0, -2.0, 250.0, 0.5], np.float16),
    "i32": np.array([0, 1, -1, 7, -(2**15), 2**15], np.int32),
    "i8": np.array([0, 1, 127, -128, 5], np.int8),
    "u8": np.array([0, 1, 255, 128, 7], np.uint8),
    "i64": np.array([0, 3, 2**62, -(2**62), -5], np.int64),
    "bool": np.array([True, False, True, True]),
    "c64": np.array([1 + 1j, 0, -2j, 3 - 1j, 1 + 1j], np.complex64),
    "c64 special": np.array([complex(1, NAN), complex(INF, 1), complex(NAN, 0), complex(-INF, -INF), 2], np.complex64),
    "none": np.zeros((0,), np.float32),
    "rows of none": np.zeros((0, 3), np.float32),
    "scalar": np.array(2.5, np.float32),
    "one": np.array([7.0], np.float32),
    "matrix": np.array([[1, 2, 3], [4, 5, 6]], np.int32),
    "block": np.arange(24.0, dtype=np.float32).reshape(2, 3, 4),
}
ONE = [(name,) for name in ARRAYS]
QUICK = [*ONE, ("f32", "f32"), ("i32", "i32"), ("c64", "c64"), ("f64", 0), ("f64", 1), ("f32", 2), ("matrix", 1),
         ("f32", "f32", "f32")]
TWO = [(name, name) for name in ARRAYS if name not in ("i64", "block")]
MORE = [("i8", "u8"), ("i32", "special"), ("bool", "i8"), ("f32", "scalar"), *[
    (name, k) for name in ("f32", "i32", "bool", "c64", "f64", "matrix", "none", "special", "block")
    for k in (0, 1, 2, -1)], *[(name, 1, 2) for name in ("f32", "f64", "matrix", "block")],
    ("special", "special", "special"), ("bool", "special", "special")]
ALL = list(dict.fromkeys([*QUICK, *TWO, *MORE]))

# of files, text and functions; those that answer with memory or with the limits of a dtype
_OTHERS = """save savez savez_compressed load fromfile frombuffer fromfunction fromiter fromstring from_dlpack
printoptions set_printoptions get_printoptions array_repr array_str array2string vectorize ufunc frompyfunc finfo iinfo
issubdtype isdtype empty empty_like"""


def shared_names(other):
    """The functions that both modules have."""
    mine = {name: getattr(hnp, name) for name in dir(hnp) if name[0] != "_" and name not in _OTHERS.split()}
    functions = [name for name, f in mine.items() if callable(f) and not isinstance(f, type)]
    return [name for name in functions if callable(getattr(other, name, None))]


def arguments(row):
    """Fresh arrays and the numbers of a row."""
    return tuple(ARRAYS[word].copy() if isinstance(word, str) else word for word in row)


def results(f, xs):
    """The leaves of the result, or None where the call is refused."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return hx.tree_util.tree_leaves(f(*xs))
        except Exception:
            return None


def _agree(x, y):
    """Elements that are equal up to the rounding of the narrower dtype; NaN and infinities part by part."""
    inexact = [v.dtype for v in (x, y) if v.dtype.kind in "fcV"]
    if not inexact:
        return np.asarray(x.astype(object) == y.astype(object))
    eps = max(float(ml_dtypes.finfo(dtype).eps) for dtype in inexact)
    u, v = x.astype(complex), y.astype(complex)
    size = np.abs(np.where(np.isfinite(v), v, 0)).max(initial=0)
    equal = True
    with np.errstate(all="ignore"):
        for p, q in ((u.real, v.real), (u.imag, v.imag)):
            near = np.abs(p - q) <= 64 * eps * (np.abs(q) + 0.01 * size)
            equal &= (p == q) | (np.isnan(p) & np.isnan(q)) | near
    return equal


def difference(ours, theirs, types=False):
    """What differs between two lists of leaves, in words, or None; with ``types`` also dtypes and weak types."""
    if len(ours) != len(theirs):
        return f"{len(ours)} results, not {len(theirs)}"
    for x, y in zip(ours, theirs):
        if types:
            mine, other = ((str(v.dtype), bool(v.weak_type)) if hasattr(v, "weak_type") else () for v in (x, y))
            if mine != other:
                return f"{mine}, not {other}"
        x, y = np.asarray(x), np.asarray(y)
        if x.shape != y.shape:
            return f"shape {x.shape}, not {y.shape}"
        if not {x.dtype.kind, y.dtype.kind} & set("OSU") and not (same := _agree(x, y)).all():
            place = tuple(np.argwhere(~same)[0])
            return f"{x[place]} at {tuple(map(int, place))}, not {y[place]}"
    return None


def found_differences(name, other, rows, types=False):
    """By row, what the function of this name gives otherwise than that of the other module."""
    found = {}
    for row in rows:
        theirs = results(getattr(other, name), arguments(row))
        ours = None if theirs is None else results(getattr(hnp, name), arguments(row))
        words = None if ours is None else difference(ours, theirs, types)
        if words is not None:
            found[row] = words
    return found
