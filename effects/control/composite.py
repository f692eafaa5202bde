"""Composites: functions that a compiler may know by name; those that do not take what they are made of."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ..base.errors import BadArgument, EscapedBox, need_function
from ..base.stack import perform
from ..base.tracebacks import boundary
from ..base.wrapping import wraps
from ..core.arrays import Array, as_array
from ..core.operation import operation
from ..operations.foundations.attributes import attributes
from ..programs.closure_conversion import close_all
from ..programs.higher_order import Call, HigherOrder
from ..programs.program import Program
from ..trees import pytrees
from .recorded_bodies import body_of


class Replaceable(HigherOrder):
    """The family of calls of a body in whose place the compiler may take something else that computes the same."""

    __slots__ = ()
    shared = 0
    carry = 0
    prunes = False

    def as_call(self) -> Call:
        """A plain call of the body."""
        return Call(self.bodies, self.label)

    def with_bodies(self, bodies, **counts):
        """A plain call of another body."""
        return self if tuple(bodies) == self.bodies else Call(tuple(bodies), self.label)

    def map_bodies(self, f):
        bodies = (f(self.bodies[0]),)
        return self if bodies == self.bodies else super().with_bodies(bodies)


# (y, ...) = body(x, ...), which a compiler may replace by what it has under this name, with these attributes
@operation
class Composite(Replaceable):
    bodies: tuple[Program, ...]
    label: str
    version: int = 0
    attributes: tuple[tuple[str, Any], ...] = ()

    def lower(op, emit, *values):
        return emit.composite(op, values)


_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*([.][a-zA-Z0-9_$]+)+")


def composite(decomposition: Callable[..., Any], name: str, version: int = 0) -> Callable[..., Any]:
    """The function ``decomposition``, whose calls are one operation ``name`` in StableHLO.

        composite(f, "my.f")(x, k=3) == f(x, k=3)

    A compiler that knows the name may put a kernel of its own in place of it; others compile the decomposition.
    What changes this, such as ``vmap``, ``grad`` or a handler of its operations, leaves a call without the name.

    Args:
        decomposition: a function of arrays by position, and of attributes by keyword: numbers, strings, dtypes, NumPy
            arrays, and tuples and dictionaries of these. Those that are None are no attributes.
        version: that of its meaning.

    Raises: BadArgument: an attribute is none of these, or the name has no dot. EscapedBox: the decomposition uses a
    traced value that is no argument.

    Source: the StableHLO specification, ``composite``.

    >>> from handlax import lax
    >>> tangent = composite(lambda x: lax.sin(x) / lax.cos(x), "my.tangent")
    >>> tangent(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    need_function("composite", decomposition)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadArgument(f"composite: the name must be words with dots between them, 'my.name', got {name!r}.")

    @wraps(decomposition)
    @boundary
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = pytrees.flatten(args)
        xs = [as_array(leaf) for leaf in leaves]
        flat = lambda *ys: decomposition(*pytrees.unflatten(structure, ys), **kwargs)
        body = body_of(name, flat, [x.type for x in xs], "composite")
        (program,), captured = close_all((body.program,))
        _check_captured(name, captured)
        given = {key: value for key, value in kwargs.items() if value is not None}
        op = Composite((program,), name, version, attributes(f"composite {name!r}", given))
        return pytrees.unflatten(body.structure, perform(op, *captured, *xs))

    return call


def _check_captured(name: str, captured: tuple[Array, ...]) -> None:
    """Check that the decomposition captured no traced value. Raises: EscapedBox: it did."""
    for x in captured:
        if x.run is not None:
            raise EscapedBox(
                f"composite {name!r}: the decomposition must use its arguments alone, got a traced {x.type} from "
                f"around it.",
                hint="pass it as an argument.",
            )
