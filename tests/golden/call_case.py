"""Recorded calls: their arguments as data, their execution, and the comparison of their results."""

import base64
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np

SHORT = {
    "b1": "bool",
    **{f"{kind}{bits}": f"{name}{bits}" for kind, name in (("i", "int"), ("u", "uint")) for bits in (8, 16, 32, 64)},
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "c64": "complex64",
    "c128": "complex128",
}
LONG = {name: short for short, name in SHORT.items()}
WIDE = ("i64", "u64", "f64", "c128")
RTOL = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 2e-6, "float64": 5e-15, "complex64": 4e-6, "complex128": 1e-14}


def dtype_of(short: str) -> np.dtype:
    """The dtype of a short name: ``f32`` is float32."""
    return np.dtype(ml_dtypes.bfloat16) if short == "bf16" else np.dtype(SHORT[short])


def uniform(count: int, seed: int) -> np.ndarray:
    """``count`` numbers in [0, 1), the same on every machine: multiples of the golden ratio, modulo one."""
    return np.mod((np.arange(1, count + 1) + 31 * seed) * 0.6180339887498949, 1.0)


@dataclass(frozen=True)
class Array:
    """An array argument: evenly scattered numbers between ``low`` and ``high``, or the ``values`` given."""

    short: str
    shape: tuple[int, ...] = (6,)
    low: float = -3.0
    high: float = 3.0
    seed: int = 0
    values: tuple[Any, ...] | None = None

    def make(self) -> np.ndarray:
        dtype = dtype_of(self.short)
        if self.values is not None:
            return np.array(self.values).astype(dtype).reshape(self.shape)
        count = int(np.prod(self.shape, dtype=int))
        scattered = self.low + (self.high - self.low) * uniform(count, self.seed)
        if dtype.kind == "b":
            return (uniform(count, self.seed) > 0.5).reshape(self.shape)
        if dtype.kind in "iu":
            low = max(self.low, 0) if dtype.kind == "u" else self.low
            scattered = np.floor(low + (self.high - low) * uniform(count, self.seed))
        if dtype.kind == "c":
            scattered = scattered + 1j * (self.low + (self.high - self.low) * uniform(count, self.seed + 5))
        return scattered.astype(dtype).reshape(self.shape)

    def __str__(self) -> str:
        data = "" if self.values is None else "=" + ",".join(map(str, self.values))
        return f"{self.short}[{','.join(map(str, self.shape))}]{data}"


@dataclass(frozen=True)
class From:
    """An argument that the library constructs: its enumerations, dimension numbers, weak arrays and functions."""

    label: str
    make: Callable[[ModuleType], Any] = field(compare=False)

    def __str__(self) -> str:
        return self.label


@dataclass(frozen=True)
class Case:
    """One call.

    ``name`` is dotted from the library, or only a label where ``call`` says what is done.
    ``loose`` multiplies the tolerance; ``jit`` says whether the call has a meaning with traced arrays;
    ``vmap`` whether it has one when every array has another axis.
    """

    name: str
    args: tuple[Any, ...]
    kwargs: tuple[tuple[str, Any], ...] = ()
    call: Callable[..., Any] | None = None
    loose: float = 1.0
    jit: bool = True
    vmap: bool = True

    @property
    def label(self) -> str:
        words = [short(a) for a in self.args] + [f"{k}={short(v)}" for k, v in self.kwargs]
        return f"{self.name}({', '.join(words)})"

    @property
    def wide(self) -> bool:
        """Whether a dtype has 64 bits, so that JAX is called with 64 bits enabled."""
        words = [*self.args, *(v for _, v in self.kwargs)]
        return any(a.short in WIDE for a in arrays(words)) or any(str(w) in map(SHORT.get, WIDE) for w in words)

    @property
    def mapped(self) -> bool:
        """Whether the call has array arguments and can be mapped over one more axis of each."""
        return self.jit and self.vmap and any(True for _ in arrays([*self.args, *(v for _, v in self.kwargs)]))


def short(value: Any) -> str:
    """The text of an argument in the label of its case."""
    if isinstance(value, list):
        return f"[{', '.join(map(short, value))}]"
    return str(value) if isinstance(value, Array | From | np.dtype) else repr(value)


def arrays(values: Iterable[Any]) -> Iterator[Array]:
    """The array arguments among ``values``, also inside lists."""
    for value in values:
        if isinstance(value, Array):
            yield value
        elif isinstance(value, list):
            yield from arrays(value)


def case(name: str, *args: Any, **options: Any) -> Case:
    """A case; ``call``, ``loose``, ``jit`` and ``vmap`` belong to it, other keywords to the function."""
    own = {k: options.pop(k) for k in ("call", "loose", "jit", "vmap") if k in options}
    return Case(name, args, tuple(options.items()), **own)


def each(name: str, dtypes: str, *shapes: tuple[int, ...], low: float = -3, high: float = 3, **options: Any) -> list:
    """One case per dtype, with one array per shape."""
    return [
        case(name, *(Array(d, s, low, high, i) for i, s in enumerate(shapes or ((6,),))), **options)
        for d in dtypes.split()
    ]


def function(case: Case, library: ModuleType) -> tuple[Callable[..., Any], list[np.ndarray]]:
    """The call as a function of its array arguments alone, and those arrays."""

    def argument(value: Any, arrays_left: Iterator[Any]) -> Any:
        if isinstance(value, list):
            return [argument(v, arrays_left) for v in value]
        if isinstance(value, From):
            return value.make(library)
        return next(arrays_left) if isinstance(value, Array) else value

    def call(*operands: Any) -> Any:
        rest = iter(operands)
        args = [argument(a, rest) for a in case.args]
        kwargs = {k: argument(v, rest) for k, v in case.kwargs}
        if case.call is not None:
            return case.call(library, *args, **kwargs)
        return attrgetter(case.name)(library)(*args, **kwargs)

    return call, [a.make() for a in arrays([*case.args, *(v for _, v in case.kwargs)])]


def leaves(value: Any) -> list[Any]:
    """The arrays of a result, with tuples and lists flattened."""
    return list(itertools.chain.from_iterable(map(leaves, value))) if isinstance(value, tuple | list) else [value]


def encoded(value: Any) -> list[Any]:
    """``[dtype, shape, weak, bytes]`` of one array."""
    array = np.asarray(value)
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return [LONG[array.dtype.name], list(array.shape), bool(getattr(value, "weak_type", False)), data]


def decoded(record: list[Any]) -> np.ndarray:
    """The array of a record."""
    return np.frombuffer(base64.b64decode(record[3]), dtype_of(record[0])).reshape(record[1])


def disagreement(found: np.ndarray, wanted: np.ndarray, loose: float = 1.0) -> str:
    """The difference between two arrays as text; empty where they agree.

    Integers and booleans exactly; floats within ``RTOL * (|wanted| + max|wanted| / 100)``, NaN and infinity alike.
    """
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return f"got {found.dtype}{found.shape}, recorded {wanted.dtype}{wanted.shape}"
    rtol = loose * RTOL.get(wanted.dtype.name, 0.0)
    if not rtol:
        return "" if np.array_equal(found, wanted) else f"got {found}, recorded {wanted}"
    up = np.complex128 if wanted.dtype.kind == "c" else np.float64
    f, w = found.astype(up), wanted.astype(up)
    size = np.where(np.isfinite(w), np.abs(w), 0)
    with np.errstate(invalid="ignore"):
        close = np.abs(f - w) <= rtol * (size + size.max(initial=0) / 100)
    close |= (f == w) | (np.isnan(f) & np.isnan(w))
    return "" if close.all() else f"got {f[~close]}, recorded {w[~close]}, rtol {rtol:.2g}"
