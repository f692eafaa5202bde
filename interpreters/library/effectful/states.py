"""Mutable state as an effect: values by name that a program reads and writes.

    handle(state, {"n": 0})(f)(x) = ({"n": n'}, y)

Source: Plotkin & Pretnar, "Handlers of Algebraic Effects" (2009), section 3.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ....effects.base.errors import CannotCross, UnhandledEffect
from ....effects.control.callbacks import once_where_shared
from ....effects.control.recorded_bodies import body_of
from ....effects.core.arrays import as_array, perform
from ....effects.core.operation import effect
from ....effects.core.result_trees import AnswerTyped
from ....effects.programs.closure_conversion import close
from ....effects.programs.program import Program
from ....effects.trees import pytrees
from ...handlers.answer_types import perform_typed
from ...handlers.handler import handler

if TYPE_CHECKING:
    from ....effects.trees.cpp_pytrees import PyTreeDef

_REMEDY = "give it a start value around the function: hx.handle(hx.library.state, {'name': value})(f)."


# the value of this name in the state; for None, the whole state
@effect(vmap="per_lane")
class Get(AnswerTyped):
    label: Any = None
    like: Any = None
    remedy = _REMEDY

    batch = once_where_shared


# sets the state of this name to the tree of the operands
@effect(vmap="per_lane")
class Put:
    label: Any
    tree: PyTreeDef
    remedy = _REMEDY

    def result_type(op, *operands):
        return None

    def batch(op, dims, *leaves):
        raise CannotCross(
            f"put: lanes would overwrite each other's {op.label!r}, and only the last would stay.",
            hint="modify(name, f, x) updates it in one lane after the other; or handle it inside: "
            "vmap(hx.handle(hx.library.state, s)(f)).",
        )


# sets the state of this name to the body's result on the operands and the state before
@effect(vmap="per_lane")
class Modify:
    label: Any
    body: Program
    tree: PyTreeDef
    remedy = _REMEDY

    def result_type(op, *operands):
        return None


def get(name: Any = None) -> Any:
    """The current state of this name; for None, all of the state.

    ``handle(state, {"n": v})(lambda: get("n"))() == ({"n": v}, v)``. Lanes of a ``vmap`` inside read the same value.
    Raises: UnhandledEffect: no handler around has a state of this name.
    """
    return perform_typed(Get(name))


def put(name: Any, value: Any) -> None:
    """Give the state of this name a new value; with None as name, all of the state.

    Raises: UnhandledEffect: no handler around has a state of this name. CannotCross: lanes of a ``vmap`` inside the
    handler would overwrite each other's. Under a ``cond`` on a mapped value they write one after the other, in order.
    """
    leaves, tree = pytrees.flatten(value)
    perform(Put(name, tree), *leaves)


def modify(name: Any, f: Callable[..., Any], *operands: Any) -> None:
    """Update the state of this name to ``f(value, *operands)``, as one effect.

        modify(name, f, *xs)  means  put(name, f(get(name), *xs))

    In a ``vmap`` inside the handler the lanes update it one after the other, in index order. ``f`` must be pure.
    Raises: UnhandledEffect: no handler around has a state of this name. CannotCross: ``f`` performs an effect.
    """
    leaves, structure = pytrees.flatten(get(name))
    operand_leaves, operand_tree = pytrees.flatten(operands)
    xs = [as_array(x) for x in operand_leaves]
    state_types = [as_array(x).type for x in leaves]

    def flat(*values: Any) -> Any:
        count = len(xs)
        return f(pytrees.unflatten(structure, values[count:]), *pytrees.unflatten(operand_tree, values[:count]))

    body = body_of("modify", flat, [*[x.type for x in xs], *state_types])
    closed = close(body.program)
    if closed.program.effects:
        raise CannotCross(
            f"modify: the function must be pure, it performs {', '.join(sorted(map(str, closed.program.effects)))}.",
            hint="perform the effects before, and pass their results as operands.",
        )
    perform(Modify(name, closed.program, body.structure), *closed.captured, *xs)


def _get(s: Any, op: Any) -> Any:
    """The clause of ``Get``."""
    if _has(s, op):
        return s, s if op.label is None else s[op.label]
    return _forward(perform_typed if op.like is None else perform, s, op)


def _writing(new_value: Callable[..., Any]) -> Callable[..., Any]:
    """The clause of an effect that gives the state of its name the value ``new_value(op, before, *operands)``."""

    def clause(s: Any, op: Any, *operands: Any) -> Any:
        if not _has(s, op):
            return _forward(perform, s, op, *operands)
        new = pytrees.unflatten(op.tree, new_value(op, s if op.label is None else s[op.label], *operands))
        return new if op.label is None else {**s, op.label: new}, None

    return clause


def _has(s: Any, op: Any) -> bool:
    """Whether the state has the name of an effect; None is the name of all of it."""
    return op.label is None or (isinstance(s, Mapping) and op.label in s)


def _forward(perform: Callable[..., Any], s: Any, op: Any, *operands: Any) -> Any:
    """Forward an effect on a name that this state does not have. Raises: UnhandledEffect: nor has any outside."""
    try:
        return s, perform(op, *operands)
    except UnhandledEffect as error:
        names = ", ".join(map(repr, s)) if isinstance(s, Mapping) else "one without names"
        raise UnhandledEffect(f"{op.name}: there is no state {op.label!r}, only {names}.", hint=_REMEDY) from error


state = handler({
    Get: _get,
    Put: _writing(lambda op, before, *leaves: leaves),
    Modify: _writing(lambda op, before, *operands: op.body(*operands, *pytrees.leaves(before))),
})
"""Handles ``get``, ``put`` and ``modify``; its state is a mapping from names, or a single value without names."""
