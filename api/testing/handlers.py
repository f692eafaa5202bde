"""Conformance of handlers: the law of crossing, held against one handler over random nests.

    check_handler(handler({Tick: lambda n, op: (n + 1, None)}), 0, performs=lambda x: tick())
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np

from .. import numpy as hnp
from ..effects import trees
from ..effects.arrays import lift
from ..effects.config import configure
from ..interpreters.derivatives import jacfwd
from ..interpreters.handle import handle
from ..interpreters.handler import Handler
from ..interpreters.handling import NO_STATE
from ..interpreters.mapping import vmap
from ..lowering.jit import jit
from .laws import assert_close
from .nests import CONTROL, SMOOTH, Nest, written
from .nodes import NODES
from .unrolled import UNROLLED

# nodes in which a handler outside may be told something
_CROSSED = tuple(name for name in NODES if name != "handled")


def check_handler(
    handler: Handler,
    state: Any = NO_STATE,
    *,
    performs: Callable[[Any], Any],
    examples: int = 30,
    seed: int = 0,
    lanes: bool = True,
    derivatives: bool = True,
    without: Sequence[str] = (),
    normal: Callable[[Any], Any] = lambda state: state,
) -> None:
    """Hold the law of crossing against a handler, over random nests of loops, branches, calls and rematerialisation.

        handle(h, s)(f) == handle(h, s)(f with its loops unrolled)
        jit(handle(h, s)(f)) == handle(h, s)(jit(f)) == handle(h, s)(f)
        vmap(handle(h, s)(f)) == the lanes one after the other
        jacobian(handle(h, s)(f)) == jacobian(handle(h, s)(f with its loops unrolled))

    Args:
        performs: performs the handler's effects, once or oftener, given a float64 number; what it gives, a number too
            or None, is used further on.
        examples: how many nests.
        lanes: whether lanes of handled functions are checked.
        derivatives: whether derivatives of handled functions are checked.
        without: nodes of the nests that the handler refuses to cross, such as ``while_loop``.
        normal: what of the state has to be equal; of a log, for instance, all its values in one array.

    Raises: AssertionError: with the text of the nest, from which it can be run again.
    """

    def tell(x: Any) -> Any:
        y = performs(x)
        return x if y is None else hnp.tanh(hnp.asarray(y, "float64") + x)

    with configure(default_float="float64"):
        _check(handler, state, tell, (examples, seed), tuple(without), lanes, derivatives, normal)


def _check(
    handler: Handler,
    state: Any,
    tell: Callable[[Any], Any],
    which: tuple[int, int],
    without: tuple[str, ...],
    lanes: bool,
    derivatives: bool,
    normal: Callable[[Any], Any],
) -> None:
    examples, seed = which
    nodes = [name for name in _CROSSED if name not in without]
    controls = [SimpleNamespace(**{**vars(space), "tell": tell}) for space in (CONTROL, UNROLLED)]
    for k in range(examples):
        nest = written(Random(f"{seed} {k}"), depth=2, size=3, only=nodes, tells=True, reverse=derivatives)
        crossed, unrolled = (nest.function(space) for space in controls)
        inputs = nest.inputs(k)

        def handled(f: Callable[..., Any]) -> Callable[..., Any]:
            def run(*xs: Any) -> tuple[Any, Any]:
                made = handle(handler, state)(f)(*xs)
                return (None, made) if state is NO_STATE else (normal(made[0]), made[1])

            return run

        here = handled(crossed)
        one = here(*inputs)
        _equal(nest, "unrolled", one, handled(unrolled)(*inputs))
        _equal(nest, "jit outside", one, jit(here)(*inputs))
        _equal(nest, "jit inside", one, handled(jit(crossed))(*inputs))
        if lanes:
            rows = [nest.inputs(k), nest.inputs(k + 1000)]
            stacked = [np.stack(column) for column in zip(*rows)]
            parts = [here(*row) for row in rows]
            _equal(nest, "vmap", vmap(here)(*stacked), trees.tree_map(lambda *ys: hnp.stack(ys), *parts))
        if derivatives:
            places = tuple(SMOOTH)
            pair = [jacfwd(lambda *xs, f=f: handled(f)(*xs)[1], places)(*inputs) for f in (crossed, unrolled)]
            _equal(nest, "derivative", *pair)


def _equal(nest: Nest, law: str, found: Any, wanted: Any) -> None:
    xs, ys = (_leaves(tree) for tree in (found, wanted))
    try:
        assert len(xs) == len(ys), f"{len(xs)} results, wanted {len(ys)}"
        for x, y in zip(xs, ys):
            assert x.shape == y.shape, f"shape {x.shape}, wanted {y.shape}"
            assert_close(x, y)
    except AssertionError as error:
        raise AssertionError(f"{law}: {error}\n{nest!r}") from None


def _leaves(tree: Any) -> Sequence[np.ndarray[Any, Any]]:
    return [np.asarray(lift(x)) for x in trees.leaves(tree)]
