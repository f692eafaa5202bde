"""Control flow by Python's own loops and branches: the reference for the operations of this library.

Predicates must have values, so it is evaluated operation by operation, also under ``jvp`` and ``grad``; ``vmap`` is a
loop over lanes.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from itertools import repeat
from types import SimpleNamespace
from typing import Any

from ... import numpy as hnp
from ...effects.base import config
from ...effects.core.arrays import as_array
from ...effects.core.columns import EVALUATE, rules
from ...effects.core.operation import OPERATIONS
from ...effects.trees import pytrees
from ...interpreters.custom.custom_jvp import custom_jvp
from ...interpreters.custom.custom_vjp import custom_vjp
from ...interpreters.handlers.handle import handle
from ...interpreters.handlers.handler import handler
from ...interpreters.transformations.derivatives import grad, jvp, linearize, value_and_grad, vjp


def unperformed(op: Any, *xs: Any) -> Any:
    """Zeros of the type of an effect's result; of one that takes functions, what the first of them gives."""
    if op.scopes:
        return xs[0](*xs[op.scopes :])
    return pytrees.map(lambda t: hnp.zeros(t.shape, t.dtype), op.result_tree(*[x.type for x in xs]))


UNPERFORMED = handler(otherwise=unperformed, over=lambda op: op.effectful)


def scan(
    f: Callable[..., Any], init: Any, xs: Any, length: int | None = None, reverse: bool = False, unroll: Any = 1
) -> Any:
    leaves = pytrees.leaves(xs)
    size = leaves[0].shape[0] if leaves else length
    assert size is not None
    carry, rows = pytrees.map(as_array, init), []
    for i in reversed(range(size)) if reverse else range(size):
        carry, y = f(carry, pytrees.map(lambda x: x[i], xs))
        rows.append(y)
    if not size:  # a call for the types of its results, which performs nothing
        like = pytrees.map(lambda x: hnp.zeros(x.shape[1:], x.dtype), xs)
        state = _STATE.get(None)
        _, (_, row) = handled(handle(UNPERFORMED)(f), 0.0 if state is None else state.value)(carry, like)
        return carry, pytrees.map(lambda y: hnp.zeros((0, *hnp.shape(y)), hnp.asarray(y).dtype), row)
    return carry, pytrees.map(lambda *ys: hnp.stack(ys), *(reversed(rows) if reverse else rows))


def fori_loop(lower: Any, upper: Any, body: Callable[[Any, Any], Any], init: Any, *, unroll: Any = None) -> Any:
    carry = pytrees.map(as_array, init)
    for i in range(operator.index(lower), operator.index(upper)):
        carry = body(hnp.asarray(i), carry)
    return carry


def while_loop(
    test: Callable[[Any], Any],
    body: Callable[[Any], Any],
    init: Any,
    *,
    max_steps: int | None = None,
    checkpoints: int | None = None,
) -> Any:
    carry, iterations = pytrees.map(as_array, init), 0
    while test(carry) and iterations != max_steps:
        carry, iterations = body(carry), iterations + 1
    return carry


def cond(predicate: Any, true: Callable[..., Any], false: Callable[..., Any], *operands: Any) -> Any:
    return true(*operands) if predicate else false(*operands)


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    return branches[min(max(operator.index(index), 0), len(branches) - 1)](*operands)


def map_(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
    return scan(lambda carry, x: (carry, f(x)), (), xs)[1]


def vmap(
    f: Callable[..., Any], in_axes: Sequence[int | None], out_axes: Sequence[int] | None = None
) -> Callable[..., Any]:
    """A loop over lanes: ``f`` takes arrays and returns a tuple of arrays; ``out_axes`` are 0 where not given."""

    def lanes(*xs: Any) -> Any:
        size = next(x.shape[axis] for x, axis in zip(xs, in_axes) if axis is not None)
        rows = [
            f(*[x if axis is None else hnp.take(x, i, axis) for x, axis in zip(xs, in_axes)]) for i in range(size)
        ]
        return tuple([hnp.stack(column, axis) for column, axis in zip(zip(*rows), out_axes or repeat(0))])

    return lanes


def linear_transpose(f: Callable[..., Any], *like: Any) -> Callable[..., Any]:
    """The transpose by ``vjp`` at ``like``, so that predicates have values."""
    return vjp(f, *like)[1]


_STATE: ContextVar[SimpleNamespace] = ContextVar("_STATE")  # of the innermost handler in force, its ``value``


def next_state(state: Any, x: Any) -> Any:
    """The state of the nests' handler after ``tell(x)``."""
    return 0.5 * (state + x)


def tell(x: Any) -> Any:
    state = _STATE.get()
    before, state.value = state.value, next_state(state.value, x)
    return before


def handled(f: Callable[..., Any], state: Any) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        own = SimpleNamespace(value=as_array(state))
        outer = _STATE.set(own)
        try:
            y = f(*args)
        finally:
            _STATE.reset(outer)
        return own.value, y

    return call


# the words of texts
UNROLLED = SimpleNamespace(
    scan=scan, fori_loop=fori_loop, while_loop=while_loop, cond=cond, switch=switch, map=map_,
    vmap=vmap, jit=lambda f: f, checkpoint=lambda f, policy=None: f, nothing=None, everything=None, some=None,
    custom_jvp=custom_jvp, custom_vjp=custom_vjp,
    handled=handled, tell=tell, linear_transpose=linear_transpose,
    grad=grad, value_and_grad=value_and_grad, jvp=jvp, linearize=linearize, vjp=vjp,
)
"""The names of ``CONTROL`` by Python's loops and branches, and by derivatives of what they execute."""


def selected_switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """Every branch is computed, and the results of one are selected."""
    *others, chosen = [branch(*operands) for branch in branches]
    for k, results in reversed([*enumerate(others)]):
        chosen = pytrees.map(lambda y, z, k=k: hnp.where(index <= k, y, z), results, chosen)
    return chosen


def selected_cond(predicate: Any, true: Callable[..., Any], false: Callable[..., Any], *operands: Any) -> Any:
    return selected_switch(hnp.asarray(predicate).astype(bool).astype("int32"), (false, true), *operands)


SELECTED: Mapping[str, Callable[..., Any]] = {"cond": selected_cond, "switch": selected_switch}
"""The words of ``UNROLLED`` that differ where values are unknown to Python, for branches without effects."""


@contextlib.contextmanager
def evaluated() -> Iterator[None]:
    """A context in which operations are evaluated by NumPy in float64, loops and branches by Python."""
    kinds: Any = [kind for kind in OPERATIONS.values() if not kind.scopes]  # which handlers execute, and no rule
    bodied = {kind for kind in kinds if kind.bodied and not EVALUATE.has(kind) and hasattr(kind, "runs")}
    with config.configure(default_float="float64"), rules(evaluate={kind: EVALUATE.find(kind) for kind in bodied}):
        yield
