"""Differential testing: functions that are to give the same are compared on generated inputs.

    compare(f, g, inputs=st.tuples(arrays()))       two functions, of which one may be another library's
    compare(f, inputs=...)                          one function: by NumPy, by XLA, without optimisation, on 8 devices
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import hypothesis
import numpy as np
from hypothesis import HealthCheck, Phase, settings
from hypothesis.strategies import SearchStrategy

from ..effects.core.arrays import as_array
from ..effects.sharding.named_sharding import NamedSharding
from ..effects.sharding.partition_spec import PartitionSpec
from ..effects.trees import pytrees
from ..effects.types import dtypes
from ..lowering.arrays.device_put import device_put
from ..lowering.jit.devices import disable_jit, local_devices
from ..lowering.jit.jit import jit
from ..sharding import make_mesh
from .closeness import assert_close
from .first_difference import first_difference
from .law import Held, Law, LawFails, Report

Compared = Callable[..., Any]


class Way(NamedTuple):
    """A way to execute a function: its name, and a transformation that changes no result."""

    name: str
    transform: Callable[[Compared], Compared]


def by_numpy(f: Compared) -> Compared:
    """The function evaluated by NumPy, with loops and branches by Python; nothing is compiled."""

    def evaluated(*args: Any) -> Any:
        with disable_jit():
            return f(*args)

    return evaluated


def unoptimized(f: Compared) -> Compared:
    """The function compiled by XLA without the optimisations of its backend."""
    return jit(f, compiler_options={"xla_backend_optimization_level": 0})


def on_devices(f: Compared) -> Compared:
    """The function compiled for all devices, with each array divided among them where its size allows it."""

    def divided(*args: Any) -> Any:
        devices = local_devices()
        mesh = make_mesh((len(devices),), ("devices",), devices=devices)

        def placed(x: Any) -> Any:
            x = as_array(x)
            axes = [d for d, n in enumerate(x.shape) if n and n % len(devices) == 0][:1]
            spec = ["devices" if d in axes else None for d in range(x.ndim)]
            return device_put(x, NamedSharding(mesh, PartitionSpec(*spec)))

        return jit(f)(*pytrees.map(placed, args))

    return divided


WAYS = (
    Way("NumPy", by_numpy), Way("XLA", jit), Way("XLA without optimisation", unoptimized), Way("devices", on_devices),
)


def compare(
    f: Compared,
    g: Compared | None = None,
    *,
    inputs: SearchStrategy[tuple[Any, ...]],
    ways: Sequence[Way] = WAYS,
    loose: float = 1.0,
    examples: int = 50,
    seconds: float = 10.0,
    seed: int = 0,
) -> Report:
    """Compare a function with another one, or with itself executed in other ways, on inputs that are drawn.

        f(*inputs) == g(*inputs)          f(*inputs) == way(f)(*inputs)

    Args:
        g: the function that ``f`` is to equal, of NumPy arrays; it may be another library's.
        inputs: a strategy for tuples of arguments.
        ways: how ``f`` is executed, if there is no ``g``: ``by_numpy``, ``jit``, ``unoptimized``, ``on_devices``.
        loose: how many times the tolerance of their dtypes results may differ; see ``assert_close``.
        examples: how many inputs are drawn.
        seconds: how long; at least one.
        seed: of the draws.

    Raises: LawFails: they differ; with the simplest inputs found, and, if a way differs, the first operation to do so.

    >>> import numpy as np
    >>> from hypothesis import strategies as st
    >>> from handlax import numpy as hnp
    >>> print(compare(hnp.sinh, np.sinh, inputs=st.tuples(st.floats(-5, 5)), loose=10.0, examples=10))
    sinh: laws that hold: 1
      equal  ...
    """
    name = getattr(f, "__name__", repr(f))
    if g is not None:
        other = g
        sentence = f"{name} equals {getattr(g, '__name__', g)}"
        laws = [Law("equal", sentence, lambda *xs: _equal(f(*xs), other(*xs), loose))]
    else:
        laws = [Law(way.name, f"{name} is the same by {way.name}", _same_by(f, way, loose)) for way in ways]
    end = time.monotonic() + seconds
    return Report(name, tuple([_held(name, law, inputs, examples, end, seed) for law in laws]), {})


def _held(name: str, law: Law, inputs: SearchStrategy[Any], examples: int, end: float, seed: int) -> Held:
    """Draws inputs by Hypothesis, which makes those that fail simpler. Raises: LawFails: the law does."""
    tried, start = 0, time.monotonic()

    @hypothesis.seed(seed)
    @settings(
        max_examples=examples, deadline=None, database=None, phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck), report_multiple_bugs=False, print_blob=False,
    )
    @hypothesis.given(inputs)
    def holds(args: tuple[Any, ...]) -> None:
        nonlocal tried
        if tried and time.monotonic() > end:
            return
        tried += 1
        try:
            law.check(*args)
        except AssertionError as error:
            raise LawFails(name, law, args, error, seed) from error

    holds()
    return Held(law, tried, time.monotonic() - start)


def _same_by(f: Compared, way: Way, loose: float) -> Callable[..., None]:
    def check(*args: Any) -> None:
        try:
            _equal(way.transform(f)(*args), f(*args), loose)
        except AssertionError as error:
            where = first_difference(f, *args, otherwise=way.transform)
            raise AssertionError(f"{error}\nThe first operation that differs: {where}") from error

    return check


def _equal(actual: Any, expected: Any, loose: float) -> None:
    """Assert that two trees of arrays are close; floats of unequal dtypes as those of the narrower one."""
    xs, ys = ([np.asarray(x) for x in pytrees.leaves(tree)] for tree in (actual, expected))
    assert len(xs) == len(ys), f"{len(xs)} results, expected {len(ys)}"
    for k, (x, y) in enumerate(zip(xs, ys)):
        if dtypes.is_inexact(x.dtype) and dtypes.is_inexact(y.dtype):
            x, y = (x, y.astype(x.dtype)) if x.dtype.itemsize < y.dtype.itemsize else (x.astype(y.dtype), y)
        assert_close(x, y, loose, f"result {k}")
