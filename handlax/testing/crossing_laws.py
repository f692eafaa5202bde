"""The laws that handlers and transformations share: whatever they do to operations, they cross bodies by one law.

    JIT.check(case, nest, seed)

NumPy evaluates the programs; XLA compiles them for the law of ``jit`` outside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from ..effects.base.config import configure
from ..effects.core.arrays import as_array
from ..effects.trees import pytrees
from ..interpreters.transformations.vmap import vmap
from ..lowering.jit.jit import jit
from .closeness import assert_results_equal
from .generator.nests import Nest
from .generator.unrolled import evaluated
from .law import Inapplicable, Law
from .recordings import Transformation, plain


class CrossingCase(Protocol):
    """How the subject of a check executes programs, and when two of its answers are equal."""

    def crossed(self, nest: Nest, of: Transformation = plain) -> Callable[..., Any]:
        """What the subject makes of a program, or of what a transformation makes of the program."""

    def unrolled(self, nest: Nest) -> Callable[..., Any]:
        """What the subject makes of a program with loops and branches of Python."""

    def same(self, actual: Any, expected: Any, what: str) -> None:
        """Assert that two answers of the subject are equal.

        Raises: AssertionError: they differ, by ``what``. Inapplicable: they have no arrays that could be compared.
        """


def assert_arrays_equal(actual: Any, expected: Any, what: str) -> None:
    """Assert that two trees of results are close. Raises: Inapplicable: they have no arrays to compare."""
    assert_results_equal(actual, expected, what=what)
    if not pytrees.leaves(expected):
        raise Inapplicable(f"there are no arrays to compare, in {expected!r:.60}")


@evaluated()
def crosses(case: CrossingCase, nest: Nest, seed: int) -> None:
    inputs = nest.inputs(seed)
    case.same(case.crossed(nest)(*inputs), case.unrolled(nest)(*inputs), "with loops and branches, against Python's")


@configure(default_float="float64")
def _jit(case: CrossingCase, nest: Nest, seed: int) -> None:
    f, inputs = case.crossed(nest), nest.inputs(seed)
    case.same(jit(f)(*inputs), evaluated()(f)(*inputs), "jit outside of it")


def inside(transform: Transformation, what: str) -> Callable[..., None]:
    """The check that the subject makes of a transformed program what it makes of the program."""

    @evaluated()
    def check(case: CrossingCase, nest: Nest, seed: int) -> None:
        inputs = nest.inputs(seed)
        case.same(case.crossed(nest, transform)(*inputs), case.crossed(nest)(*inputs), what)

    return check


@evaluated()
def _lanes(case: CrossingCase, nest: Nest, seed: int) -> None:
    f, rows = case.crossed(nest), [nest.inputs(seed), nest.inputs(seed + 1000)]
    mapped = vmap(f)(*[np.stack(column) for column in zip(*rows)])
    for y in map(as_array, pytrees.leaves(mapped)):
        assert y.shape[:1] == (len(rows),), f"vmap of it over {len(rows)} lanes gives an array of the type {y.type}"
    for lane, row in enumerate(rows):
        own = pytrees.map(lambda y, lane=lane: as_array(y)[lane], mapped)
        case.same(own, f(*row), f"lane {lane} of vmap")


SHORT = "short programs"  # what the law wants that compiles them
JIT = Law("jit", "jit outside of it changes nothing", _jit, wants=(SHORT,))
INNER_JIT = Law(
    "inner jit", "of a compiled function it gives what it gives of the function", inside(jit, "of a compiled function"))
LANES = Law("lanes", "vmap of it equals the lanes one by one", _lanes)
