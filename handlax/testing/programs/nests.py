"""Nests: random functions of nested control flow and transformations, on which laws are checked.

    @given(nests())
    def test(nest): assert_close(nest(*nest.inputs(0)), nest.unrolled(*nest.inputs(0)))

A nest is Python text. It is executed with the operations of this library, ``CONTROL``, or with Python's own loops and
branches, ``UNROLLED``, which is its reference. Its functions are smooth and bounded; bodies capture outer values.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from .. import lax
from .. import numpy as hnp
from ..effects.base.caches import cached
from ..effects.control.checkpoint_policies import everything_saveable, nothing_saveable
from ..effects.core.arrays import as_array, perform
from ..effects.core.operation import effect
from ..effects.operations.elementwise.arithmetic import Mul
from ..effects.operations.elementwise.transcendental import Tanh
from ..interpreters.custom.custom_jvp import custom_jvp
from ..interpreters.custom.custom_vjp import custom_vjp
from ..interpreters.handlers.handle import handle
from ..interpreters.handlers.handler import handler
from ..interpreters.transformations.checkpoint import checkpoint
from ..interpreters.transformations.derivatives import grad, jvp, linear_transpose, linearize, value_and_grad, vjp
from ..interpreters.transformations.vmap import vmap
from ..lowering.jit.jit import jit
from .author import INPUTS, Author, Scope
from .nodes import NODES
from .unrolled import UNROLLED, next_state


@effect(vmap="per_lane")
class NestTell:
    """Returns the state of its handler, and updates it by ``next_state``."""

    def result_type(op, x):
        return x


def some_saveable(op: Any, *types: Any, **fields: Any) -> bool:
    """A checkpoint policy that saves some values and recomputes others."""
    return isinstance(op, (Tanh, Mul))


HANDLER = handler({NestTell: lambda state, op, x: (next_state(state, x), state)})

CONTROL = SimpleNamespace(
    jit=jit, vmap=vmap, grad=grad, value_and_grad=value_and_grad, jvp=jvp, linearize=linearize, vjp=vjp,
    linear_transpose=linear_transpose,
    scan=lax.scan, fori_loop=lax.fori_loop, while_loop=lax.while_loop, cond=lax.cond, switch=lax.switch, map=lax.map,
    checkpoint=checkpoint, nothing=nothing_saveable, everything=everything_saveable, some=some_saveable,
    custom_jvp=custom_jvp, custom_vjp=custom_vjp,
    handled=lambda f, state: handle(HANDLER, state)(f), tell=lambda x: perform(NestTell(), x),
)


SMOOTH = (0, 1, 2)  # the inputs that are differentiable


@dataclass(frozen=True)
class Nest:
    """A generated function of ``x: f64[], v: f64[3], w: f64[2,3], k: i32[], p: bool[]``, as text."""

    source: str

    def __call__(self, *inputs: Any) -> Any:
        return self.function(CONTROL)(*inputs)

    def unrolled(self, *inputs: Any) -> Any:
        """The reference: the same text with Python's loops and branches."""
        return self.function(UNROLLED)(*inputs)

    def function(self, control: Any) -> Callable[..., Any]:
        """The function, with ``control`` as its loops, branches and transformations."""
        f = _compiled(self.source)
        return lambda *inputs: tuple(map(as_array, f(control, hnp, *map(as_array, inputs))))

    def inputs(self, seed: int) -> list[np.ndarray[Any, Any]]:
        """Random inputs; the floats are between -1 and 1."""
        rng = np.random.default_rng(seed)
        floats = [np.asarray(rng.uniform(-1, 1, kind.shape)) for _, kind in INPUTS if kind.letter == "f"]
        return [*floats, np.asarray(rng.integers(0, 5), np.int32), np.asarray(rng.random() < 0.5)]

    def __repr__(self) -> str:
        return f"Nest('''\n{self.source}''')"


@cached("nests", 1000)
def _compiled(source: str) -> Callable[..., Any]:
    """The function of a text; its lines are in ``linecache``, for tracebacks."""
    name = f"<nest {hash(source):x}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    scope: dict[str, Any] = {}
    exec(compile(source, name, "exec"), scope)
    return scope["nest"]


def nests(**options: Any) -> st.SearchStrategy[Nest]:
    """A strategy for nests, with the options of ``written``.

    The strategy draws a single seed, so that examples are independent from the first on; Hypothesis therefore cannot
    shrink them, ``reduced`` does.
    """
    return st.builds(lambda seed: written(Random(seed), **options), st.integers(0, 2**63))


def written(
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
        size: the greatest number of statements of a body.
        only: the nodes to use, by their names in ``NODES``; all by default.
        without: nodes that are not used.
        tells: whether it performs effects for a handler around it, by ``tell`` of its control.
    """
    names = [name for name in (NODES if only is None else only) if name not in without]
    author = Author(random, {name: NODES[name] for name in names})
    scope = Scope([*INPUTS], 1, depth, reverse, tells)
    author.statements(scope, size, True)
    ends = [name for name, kind in scope.values if kind.letter == "f"][-3:]
    ends += [name for name, kind in scope.values if kind.letter != "f"][-1:]
    head = f"def nest(hx, hnp, {', '.join(name for name, _ in INPUTS)}):"
    return Nest("\n".join([head, *author.lines, f"    return {', '.join(ends)},", ""]))
