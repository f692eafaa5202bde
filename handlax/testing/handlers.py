"""Conformance tests of handlers: the law of crossing is checked for one handler on random nests.

    check_handler(handler({Tick: lambda n, op: (n + 1, None)}), 0, performs=lambda x: tick())
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np

from .. import numpy as hnp
from ..effects.base.config import configure
from ..effects.core.arrays import as_array
from ..effects.trees import pytrees
from ..interpreters.handlers.handle import handle
from ..interpreters.handlers.handler import Handler
from ..interpreters.handlers.installation import NO_STATE
from ..interpreters.handlers.state_movements import merge
from ..interpreters.transformations.derivatives import jacfwd
from ..interpreters.transformations.vmap import vmap
from ..lowering.jit.jit import jit
from .generator.control import CONTROL
from .generator.control_flow import NODES
from .generator.nests import SMOOTH, Nest, random_nest
from .generator.unrolled import UNROLLED
from .laws import assert_close

# nodes in which effects for a handler outside may be performed
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
    """Check the law of crossing for a handler, on random nests of loops, branches, calls and checkpoints.

        handle(h, s)(f) == handle(h, s)(f with its loops unrolled)
        jit(handle(h, s)(f)) == handle(h, s)(jit(f)) == handle(h, s)(f)
        vmap(handle(h, s)(f)) == the lanes one after the other
        jacobian(handle(h, s)(f)) == jacobian(handle(h, s)(f with its loops unrolled))

    Where the state is merged, ``moves=merge(op, unit)``, with ``t`` the state that ``handle(h, unit)(f)`` gives::

        op(unit, t) == t == op(t, unit),   op(s, t) == op(t, s),   op(op(s, t), t) == op(s, op(t, t))
        handle(h, s)(f) == (op(s, t), y)    where handle(h, unit)(f) == (t, y): no answer reads the state

    Args:
        performs: a function of a float64 scalar that performs effects of the handler, at least once; its result, a
            scalar or None, is used by later statements.
        examples: the number of nests.
        lanes: whether the law of ``vmap`` is checked.
        derivatives: whether the law of the jacobian is checked.
        without: nodes that the handler refuses to cross, such as ``while_loop``.
        normal: maps a state to the part that has to be equal; of a log, for instance, all its values in one array.

    Raises: AssertionError: a law fails; the message has the text of the nest.
    """

    def tell(x: Any) -> Any:
        y = performs(x)
        return x if y is None else hnp.tanh(hnp.asarray(y, "float64") + x)

    def handled(f: Callable[..., Any], *xs: Any) -> tuple[Any, Any]:
        y = handle(handler, state)(f)(*xs)
        return (None, y) if state is NO_STATE else (normal(y[0]), y[1])

    nodes = [name for name in _CROSSED if name not in without]
    controls = [SimpleNamespace(**{**vars(space), "tell": tell}) for space in (CONTROL, UNROLLED)]
    with configure(default_float="float64"):
        for k in range(examples):
            nest = random_nest(Random(f"{seed} {k}"), depth=2, size=3, only=nodes, tells=True, reverse=derivatives)
            crossed, unrolled = (nest.function(hx=space) for space in controls)
            f, inputs = partial(handled, crossed), nest.inputs(k)
            y = f(*inputs)
            _equal(nest, "unrolled", y, handled(unrolled, *inputs))
            _equal(nest, "jit outside", y, jit(f)(*inputs))
            _equal(nest, "jit inside", y, handled(jit(crossed), *inputs))
            if isinstance(handler.moves, merge):
                _check_merge(nest, handler, state, crossed, inputs, normal)
            if lanes:
                rows = [inputs, nest.inputs(k + 1000)]
                stacked = [np.stack(column) for column in zip(*rows)]
                results = [f(*row) for row in rows]
                _equal(nest, "vmap", vmap(f)(*stacked), pytrees.tree_map(lambda *ys: hnp.stack(ys), *results))
            if derivatives:
                pair = [jacfwd(lambda *xs, g=g: handled(g, *xs)[1], SMOOTH)(*inputs) for g in (crossed, unrolled)]
                _equal(nest, "derivative", *pair)


def _check_merge(
    nest: Nest, handler: Handler, s: Any, f: Callable[..., Any], inputs: Any, normal: Callable[[Any], Any]
) -> None:
    """Check the laws of the handler's ``merge`` on states that a nest reaches, from ``s`` and from the unit."""
    op, unit = handler.moves.op, handler.moves.unit  # type: ignore[attr-defined]
    after, y = handle(handler, s)(f)(*inputs)
    t, alone = handle(handler, unit)(f)(*inputs)
    for law, actual, expected in (
        ("the unit of merge, left", op(unit, t), t),
        ("the unit of merge, right", op(t, unit), t),
        ("merge is commutative", op(s, t), op(t, s)),
        ("merge is associative", op(op(s, t), t), op(s, op(t, t))),
        ("a merged state", after, op(s, t)),
    ):
        _equal(nest, law, normal(actual), normal(expected))
    _equal(nest, "an answer reads the state that is merged", y, alone)


def _equal(nest: Nest, law: str, actual: Any, expected: Any) -> None:
    """Assert that the arrays of two trees are close. Raises: AssertionError: with the law and the text of the nest."""
    xs, ys = ([as_array(x) for x in pytrees.leaves(tree)] for tree in (actual, expected))
    try:
        assert len(xs) == len(ys), f"{len(xs)} results, expected {len(ys)}"
        for x, y in zip(xs, ys):
            assert_close(x, y)
    except AssertionError as error:
        raise AssertionError(f"{law}: {error}\n{nest!r}") from None
