"""Nests: random functions of nested control flow and transformations, on which laws are checked.

    nest = random_nest(Random(0))
    nest(*nest.inputs(0)) == nest.unrolled(*nest.inputs(0))

A nest is executed with the operations of this library, ``CONTROL``, or with Python's own loops and branches,
``UNROLLED``, which is its reference. Its functions are smooth and bounded; bodies capture outer values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...effects.base.errors import BadArgument
from ...effects.core.arrays import as_array
from .author import Vocabulary
from .control_flow import NODES, TRACED_LENGTH
from .expressions import EXPRESSIONS, VARIANTS, of_kind
from .random_program import RandomProgram
from .unrolled import UNROLLED
from .writer import Body, Writer, function_text

DIFFERENTIABLE = (0, 1, 2)  # the inputs that are differentiable


class Nest(RandomProgram):
    """A function of ``x: f64[], v: f64[3], w: f64[2,3], k: i32[], p: bool[]``, to a tuple of arrays."""

    prelude = "from handlax import numpy as hnp\nfrom handlax.testing import CONTROL as hx\n"

    def function(self, **meanings: Any) -> Callable[..., Any]:
        """The function, with ``hx`` as its loops, branches and transformations."""
        f = super().function(**meanings)

        def of_arrays(*inputs: Any) -> tuple[Any, ...]:
            results = f(*map(as_array, inputs))
            if not isinstance(results, tuple):  # a smaller program may return one array, which has rows
                raise TypeError(f"a nest returns a tuple, got {type(results).__name__}")
            return tuple(map(as_array, results))

        return of_arrays

    def by(self, control: Any, **words: Any) -> Callable[..., Any]:
        """The function with the operations of a control, of which some words mean something else."""
        return self.function(hx=SimpleNamespace(**{**vars(control), **words}))

    def unrolled(self, *inputs: Any) -> Any:
        """The reference: the same text with Python's loops and branches."""
        return self.function(hx=UNROLLED)(*inputs)

    def inputs(self, seed: int) -> list[np.ndarray[Any, Any]]:
        """Random inputs; the floats are between -1 and 1."""
        rng = np.random.default_rng(seed)
        floats = [np.asarray(rng.uniform(-1, 1, shape)) for shape in ((), (3,), (2, 3))]
        return [*floats, np.asarray(rng.integers(0, 5), np.int32), np.asarray(rng.random() < 0.5)]


def nodes_named(only: Sequence[str] | None = None, without: Sequence[str] = ()) -> list[str]:
    """The names of nodes, all if ``only`` is None, but ``without`` some. Raises: BadArgument: it is that of none.

    ``without`` may also name variants of statements.
    """
    chosen = [*NODES] if only is None else only
    without = [name for name in without if name != TRACED_LENGTH and name not in VARIANTS]
    if unknown := [name for name in (*chosen, *without) if name not in NODES]:
        raise BadArgument(f"nests: a node must be one of {', '.join(NODES)}, got {unknown[0]!r}.")
    return [name for name in chosen if name not in without]


def random_nest(
    random: Random,
    *,
    reverse: bool = False,
    depth: int = 3,
    size: int = 4,
    only: Sequence[str] | None = None,
    without: Sequence[str] = (),
    tells: bool = False,
) -> Nest:
    """A random nest of at most ``depth`` levels; with ``reverse`` it is differentiable in reverse mode.

    Args:
        size: the greatest number of statements, in bodies 3 at most.
        only: the nodes to use, by their names in ``NODES``; all by default.
        without: nodes that are not used, by name, and variants of statements, such as those of ``VARIANTS``.
        tells: whether it performs effects for a handler around it, by ``tell`` of its control.

    Raises: BadArgument: a name is that of no node.
    """
    nodes = [NODES[name] for name in nodes_named(only, without)]
    vocabulary = Vocabulary(EXPRESSIONS, dict.fromkeys(nodes, 1.0), without=frozenset(without))
    a = Writer(random, vocabulary, min(size, 3))
    inputs = dict(zip("xvwkp", Nest("").inputs(0)))
    body = Body(inputs, inputs, depth, frozenset(["reverse"] * reverse + ["handler"] * tells))
    body.head = f"program({', '.join(inputs)})"
    a.statements(body, size, True)
    floats, others = ([x for x in body.names if of_kind(kinds)(body[x])] for kinds in ("f", "ib"))
    return Nest(function_text(body, f"{', '.join([*floats[-3:], *others[-1:]])},") + "\n")
