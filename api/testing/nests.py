"""Random functions made of nested control flow and transformations, to hold against laws.

    @given(nests())
    def test(nest): assert_close(nest(*nest.inputs(0)), nest.unrolled(*nest.inputs(0)))

A nest is Python text. It is run with the operations of this library, or with Python's own loops and branches in
their place, which is its reference. Its functions are smooth and bounded; their bodies capture outer values.
"""

from __future__ import annotations

import functools
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
from ..effects.arrays import lift, perform
from ..effects.operations import effect
from ..effects.policies import everything_saveable, nothing_saveable
from ..interpreters.custom_jvp import custom_jvp
from ..interpreters.custom_vjp import custom_vjp
from ..interpreters.derivatives import grad, jvp, linear_transpose, linearize, value_and_grad, vjp
from ..interpreters.handle import handle
from ..interpreters.handler import handler
from ..interpreters.mapping import vmap
from ..lowering.jit import jit
from ..lowering.rematerialise import checkpoint
from .author import INPUTS, Author, Scope
from .nodes import NODES
from .unrolled import UNROLLED, told


@effect(vmap="per_lane")
class NestTell:
    """Gives the state of the handler around, and changes it."""

    def result_type(op, x):
        return x


def some_saveable(op: Any, *types: Any, **fields: Any) -> bool:
    """A policy by which some values are kept and others computed again."""
    return op.name in ("tanh", "mul")


HANDLER = handler({NestTell: lambda state, op, x: (told(state, x), state)})

CONTROL = SimpleNamespace(
    jit=jit, vmap=vmap, grad=grad, value_and_grad=value_and_grad, jvp=jvp, linearize=linearize, vjp=vjp,
    linear_transpose=linear_transpose,
    scan=lax.scan, fori_loop=lax.fori_loop, while_loop=lax.while_loop, cond=lax.cond, switch=lax.switch, map=lax.map,
    checkpoint=checkpoint, nothing=nothing_saveable, everything=everything_saveable, some=some_saveable,
    custom_jvp=custom_jvp, custom_vjp=custom_vjp,
    handled=lambda f, state: handle(HANDLER, state)(f), tell=lambda x: perform(NestTell(), x),
)  # fmt: skip


SMOOTH = (0, 1, 2)  # the inputs that have a derivative


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
        run = _compiled(self.source)
        return lambda *inputs: tuple(map(lift, run(control, hnp, *map(lift, inputs))))

    def inputs(self, seed: int) -> list[np.ndarray[Any, Any]]:
        """Inputs for it; the floats are between -1 and 1."""
        rng = np.random.default_rng(seed)
        floats = [np.asarray(rng.uniform(-1, 1, kind.shape)) for _, kind in INPUTS if kind.letter == "f"]
        return [*floats, np.asarray(rng.integers(0, 5), np.int32), np.asarray(rng.random() < 0.5)]

    def __repr__(self) -> str:
        return f"Nest('''\n{self.source}''')"


@functools.lru_cache(1000)
def _compiled(source: str) -> Callable[..., Any]:
    name = f"<nest {hash(source):x}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    found: dict[str, Any] = {}
    exec(compile(source, name, "exec"), found)
    return found["nest"]


def nests(**options: Any) -> st.SearchStrategy[Nest]:
    """A strategy for nests, with the options of ``written``.

    Examples are spread evenly from the first on, which Hypothesis does only with what it draws as one number; a
    failing one is made smaller by ``reduced``.
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
    """A function with nestings up to ``depth`` deep; with ``reverse`` one that has a reverse mode.

    Args:
        size: the most statements of one body.
        only: the kinds of nodes, by their names in ``NODES``; all by default.
        without: kinds of nodes that are left out.
        tells: whether it performs for a handler around it, by ``tell`` of its control.
    """
    names = [name for name in (NODES if only is None else only) if name not in without]
    author = Author(random, {name: NODES[name] for name in names})
    scope = Scope([*INPUTS], 1, depth, reverse, tells)
    author.statements(scope, size, True)
    ends = [name for name, kind in scope.values if kind.letter == "f"][-3:]
    ends += [name for name, kind in scope.values if kind.letter != "f"][-1:]
    head = f"def nest(hx, hnp, {', '.join(name for name, _ in INPUTS)}):"
    return Nest("\n".join([head, *author.lines, f"    return {', '.join(ends)},", ""]))
