"""State: values by name that a program reads and writes.

    handle(state, {"n": 0})(f)(x) = ({"n": n'}, y)

Source: Plotkin & Pretnar, "Handlers of Algebraic Effects" (2009), section 3.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...effects import trees
from ...effects.arrays import lift, perform
from ...effects.bodies import body_of
from ...effects.closing import close
from ...effects.errors import CannotCross, UnhandledEffect
from ...effects.operations import effect
from ...effects.programs import Program
from ...effects.stack import current
from ...effects.treedefs import TreeDef
from ..asking import answer_type, ask
from ..handler import handler

_REMEDY = "give it a start value around the function: hx.handle(hx.library.state, {'name': value})(f)."


# the state of this name; all of it without a name
@effect(vmap="per_lane")
class Get:
    label: Any = None
    like: Any = None
    remedy = _REMEDY

    def result_type(op):
        return answer_type(op)

    def batch(op, dims):
        y = current().answer(op, ())  # all lanes read the same
        return y, (None,) * len(y)


# from now on the state of this name is the tree of the operands
@effect(vmap="per_lane")
class Put:
    label: Any
    tree: TreeDef
    remedy = _REMEDY

    def result_type(op, *leaves):
        return None

    def batch(op, dims, *leaves):
        raise CannotCross(
            f"put: lanes would overwrite each other's {op.label!r}, and only the last would stay.",
            hint="modify(name, f, x) changes it in one lane after the other; or handle it inside: "
            "vmap(hx.handle(hx.library.state, s)(f)).",
        )


# from now on the state of this name is what the body makes of the operands and of what it was
@effect(vmap="per_lane")
class Modify:
    label: Any
    body: Program
    tree: TreeDef
    remedy = _REMEDY

    def result_type(op, *operands):
        return None


def get(name: Any = None) -> Any:
    """The state of this name now; the whole state without a name.

    ``handle(state, {"n": v})(lambda: get("n"))() == ({"n": v}, v)``. Lanes of a ``vmap`` inside read the same value.
    Raises: UnhandledEffect: no handler around has a state of this name.
    """
    return ask(Get(name))


def put(name: Any, value: Any) -> None:
    """Give the state of this name a new value; with None as name, all of the state.

    Raises: UnhandledEffect: no handler around has a state of this name. CannotCross: lanes of a ``vmap`` inside the
    handler would overwrite each other's; where only some lanes come to it, by a ``cond``, they do so in their order.
    """
    leaves, tree = trees.flatten(value)
    perform(Put(name, tree), *leaves)


def modify(name: Any, f: Callable[..., Any], *operands: Any) -> None:
    """Make ``f(value, *operands)`` of the state of this name, as one effect.

        modify(name, f, *xs)  means  put(name, f(get(name), *xs))

    In a ``vmap`` inside the handler it does so for one lane after the other, in their order. ``f`` must be pure.
    Raises: UnhandledEffect: no handler around has a state of this name. CannotCross: ``f`` performs an effect.
    """
    leaves, structure = trees.flatten(get(name))
    given, rest = trees.flatten(operands)
    xs = [lift(x) for x in given]
    kept = [lift(x).type for x in leaves]

    def flat(*values: Any) -> Any:
        count = len(xs)
        return f(trees.unflatten(structure, values[count:]), *trees.unflatten(rest, values[:count]))

    body = body_of("modify", flat, [*[x.type for x in xs], *kept])
    closed = close(body.program)
    if closed.program.effects:
        raise CannotCross(
            f"modify: the function must be pure, it performs {', '.join(sorted(map(str, closed.program.effects)))}.",
            hint="perform the effects before, and give what they answer as operands.",
        )
    perform(Modify(name, closed.program, body.structure), *closed.captured, *xs)


def _has(s: Any, name: Any) -> bool:
    return name is None or (isinstance(s, Mapping) and name in s)


def _set(s: Any, name: Any, value: Any) -> Any:
    return value if name is None else {**s, name: value}


def _forward(s: Any, op: Any, *operands: Any) -> Any:
    """To the handlers outside: this one has no state of that name."""
    try:
        return s, perform(op, *operands)
    except UnhandledEffect as error:
        known = ", ".join(map(repr, s)) if isinstance(s, Mapping) else "one without names"
        raise UnhandledEffect(f"{op.name}: there is no state {op.label!r}, only {known}.", hint=_REMEDY) from error


def _get(s: Any, op: Any) -> Any:
    if not _has(s, op.label):
        return _forward(s, op)
    return s, s if op.label is None else s[op.label]


def _put(s: Any, op: Any, *leaves: Any) -> Any:
    if not _has(s, op.label):
        return _forward(s, op, *leaves)
    return _set(s, op.label, trees.unflatten(op.tree, leaves)), None


def _modify(s: Any, op: Any, *operands: Any) -> Any:
    if not _has(s, op.label):
        return _forward(s, op, *operands)
    leaves = trees.leaves(s if op.label is None else s[op.label])
    return _set(s, op.label, trees.unflatten(op.tree, op.body(*operands, *leaves))), None


state = handler({Get: _get, Put: _put, Modify: _modify})
"""Answers ``get``, ``put`` and ``modify`` from its state: a mapping from names, or one value for all."""
