"""Loops: ``Scan`` runs a body a known number of times, ``While`` until a test fails."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from . import config, trees
from .arithmetic import add
from .arrays import Array, ConcreteArray, lift, scalar
from .bitwise import bitwise_and
from .bodies import Body, body_of, place, same_carry, seeing, stable_carry, started
from .closing import close_all
from .comparison import lt
from .control import HigherOrder
from .conversion import convert
from .dtypes import iinfo, int32
from .errors import BadArgument, DTypeMismatch, ShapeMismatch, TreeMismatch, need_function
from .operations import operation
from .programs import Program
from .promotion import promote
from .stack import perform
from .treedefs import describe
from .unrolling import Carry, known, unrolled_scan, unrolls


# c[i + 1], y[i] = body(s, c[i], x[i])  for i = 0, 1, ..., length - 1, or downwards
@operation
class Scan(HigherOrder):
    bodies: tuple[Program, ...]
    shared: int
    carry: int
    length: int
    backwards: bool = False
    unroll: int = 1
    runs = "loop"

    def reversed(self):
        return self.with_bodies(self.bodies, backwards=not self.backwards)


# c' = c where not test(s, c), else the same of body(s, c); reverse mode keeps at most ``slots`` carries at a time
@operation
class While(HigherOrder):
    bodies: tuple[Program, ...]
    shared: int
    carry: int
    slots: int = 0
    runs = "until"


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Any, Any]:
    """Run a function over the slices of ``xs``, handing a carry on.

        carry = init;  for i in range(n): carry, ys[i] = f(carry, xs[i]);  gives carry, ys

    Shapes: ``f: c, a -> c, b`` gives ``scan(f): c, [n, a] -> c, [n, b]``.
    Effects: performed once in every run, in order.

    Args:
        xs: arrays with one leading size; None with ``length``.
        reverse: from the last slice to the first; ``ys[i]`` still belongs to ``xs[i]``.
        unroll: how many runs share one round of the compiled loop; True: all of them.

    Raises: ShapeMismatch: leading sizes differ. StateTypeError: the carry changes its type; the message has its path.
    TreeMismatch: the carry changes its structure, or ``f`` gives no pair.

    >>> from handlax import numpy as hnp
    >>> scan(lambda c, x: (c + x, c), 0, hnp.array([1, 2, 3]))
    (Array(6, dtype=int32), Array([0, 1, 3], dtype=int32, weak_type=True))
    """
    need_function("scan", f)
    return _scan("scan", f, init, xs, length, reverse, unroll)


def _scan(
    name: str, f: Callable[..., Any], init: Any, xs: Any, length: Any, reverse: Any, unroll: Any, below: int = 0
) -> tuple[Any, Any]:
    """``scan`` under another name, for loops whose own part of the carry is the first ``below`` keys of its paths."""
    carries, carry_tree = trees.flatten(init)
    slices, xs_tree = trees.flatten(xs)
    carries, slices = [lift(c) for c in carries], [lift(x) for x in slices]
    size = _length(slices, xs_tree, length)
    rows = [x.type.update(shape=x.type.shape[1:]) for x in slices]
    count = len(carries)

    def step(*values: Any) -> tuple[Any, Any]:
        made = f(trees.unflatten(carry_tree, values[:count]), trees.unflatten(xs_tree, values[count:]))
        if not isinstance(made, (tuple, list)) or len(made) != 2:
            shown = made.type if isinstance(made, Array) else describe(made)
            raise TreeMismatch(
                f"{name}: the function must give (carry, y), got {shown}.", hint="give (carry, None) to stack nothing."
            )
        same_carry(name, carry_tree, trees.structure(made[0]), below)
        return made[0], made[1]

    rounds = _rounds(name, unroll, size)
    if size and unrolls():
        order = range(size)[:: -1 if reverse else 1]
        return unrolled_scan(Carry(name, carry_tree, below, carries), step, slices, order)

    def trace(types: Any) -> Body:
        return body_of(getattr(f, "__name__", name), step, [*types, *rows])

    body, seen, given = stable_carry(name, trace, carry_tree, [c.type for c in carries], below)
    bodies, captured = close_all([seeing(body.program, seen, given)])
    start = [started(c, t) for c, t in zip(carries, given)]
    op = Scan(bodies, len(captured), count, size, bool(reverse), rounds)
    return trees.unflatten(body.structure, perform(op, *captured, *start, *slices))


def _known(name: str, what: str, value: Any, hint: str | None = None) -> int:
    """An argument that must be an integer while tracing."""
    try:
        return operator.index(value)
    except TypeError:
        shown = value.type if isinstance(value, Array) else repr(value)
        raise BadArgument(f"{name}: {what} must be an integer known while tracing, got {shown}.", hint=hint) from None


def _length(slices: list[Any], tree: Any, length: Any) -> int:
    if length is not None:
        hint = "make it static (static_argnums), or use fori_loop, which takes bounds that are computed."
        length = _known("scan", "length", length, hint)
        if length < 0:
            raise BadArgument(f"scan: length must not be negative, got {length}.")
    for i, x in enumerate(slices):
        if not x.type.shape:
            raise ShapeMismatch(
                f"scan: xs must have a leading axis, got {x.type}{place(tree, i)}.", hint="values go in by closure."
            )
        size = x.type.shape[0]
        if length is None:
            length = size
        elif length != size:
            raise ShapeMismatch(
                f"scan: leading sizes must agree, got {length} and {size}{place(tree, i)}.",
                hint="slice xs to one size, or give no length.",
            )
    if length is None:
        raise BadArgument("scan: xs or length must be given.", hint="scan(f, init, None, length=n).")
    return length


def _rounds(name: str, unroll: int | bool, length: int) -> int:
    if unroll is True:
        return max(length, 1)
    count = _known(name, "unroll", unroll)
    if count < 0 or (unroll is not False and count < 1):
        raise BadArgument(f"{name}: unroll must be a positive integer or a bool, got {unroll!r}.")
    return max(count, 1)


def while_loop(
    cond_fun: Callable[[Any], Any],
    body_fun: Callable[[Any], Any],
    init_val: Any,
    *,
    max_steps: int | None = None,
    checkpoints: int | None = None,
) -> Any:
    """Run a function as long as a test holds.

        c = init_val;  while cond_fun(c): c = body_fun(c);  gives c

    Reverse mode needs a bound on what it may keep: ``max_steps``, the most runs there can be, whose carries are all
    kept (the loop ends there in any case); or ``checkpoints``, so many carries, from which the others are computed
    again: with ``s`` of them, ``C(s + t, t)`` runs cost at most ``t`` evaluations of each more. Derivatives of such a
    derivative keep the state of its own loops in the same way, at most 16 times.

    Raises: StateTypeError: the carry changes its type; the message has its path. TreeMismatch: it changes its
    structure. ShapeMismatch, DTypeMismatch: the test gives no scalar bool.
    Source: Griewank & Walther, "Algorithm 799: revolve", ACM TOMS 26 (2000).

    >>> while_loop(lambda x: x < 10.0, lambda x: 2.0 * x, 3.0)
    Array(12., dtype=float32, weak_type=True)
    """
    need_function("while_loop", cond_fun)
    need_function("while_loop", body_fun)
    return _while("while_loop", cond_fun, body_fun, init_val, max_steps, checkpoints)


def _while(
    name: str,
    cond_fun: Callable[[Any], Any],
    body_fun: Callable[[Any], Any],
    init_val: Any,
    max_steps: int | None = None,
    checkpoints: int | None = None,
    below: int = 0,
) -> Any:
    """``while_loop`` under another name, as ``_scan``."""
    slots = _slots(max_steps, checkpoints)
    leaves, tree = trees.flatten(init_val)
    count = len(leaves)
    # a bounded loop counts its runs, behind its carry
    carries = [*[lift(c) for c in leaves], *([] if max_steps is None else [scalar(0, int32)])]

    def step(*values: Any) -> list[Any]:
        made, structure = trees.flatten(body_fun(trees.unflatten(tree, values[:count])))
        same_carry(name, tree, structure, below)
        return [*map(lift, made), *[add(i, scalar(1, int32)) for i in values[count:]]]

    def more(*values: Any) -> Any:
        found = _tested(cond_fun(trees.unflatten(tree, values[:count])))
        return found if max_steps is None else bitwise_and(found, lt(values[count], scalar(max_steps, int32)))

    step.__name__, more.__name__ = getattr(body_fun, "__name__", name), getattr(cond_fun, "__name__", "test")
    run = _unrolled_while if unrolls() else _recorded_while
    return trees.unflatten(tree, run(Carry(name, tree, below, carries), more, step, slots)[:count])


def _recorded_while(carry: Carry, more: Callable[..., Any], step: Callable[..., Any], slots: int) -> Sequence[Any]:
    def trace(types: Any) -> Body:
        return body_of(step.__name__, step, types)

    body, seen, given = stable_carry(carry.name, trace, carry.structure, carry.types, carry.below)
    test = body_of(more.__name__, more, seen)
    bodies, captured = close_all([seeing(part.program, seen, given) for part in (test, body)])
    start = [started(c, t) for c, t in zip(carry.values, given)]
    return perform(While(bodies, len(captured), len(start), slots), *captured, *start)


def _unrolled_while(carry: Carry, more: Callable[..., Any], step: Callable[..., Any], slots: int) -> Sequence[Any]:
    """As far as the test is known; what is left is recorded, and goes on from what the test gave."""
    while (found := known(bool, test := more(*carry.values))) is not None:
        if not found:
            return carry.given
        carry.take(step(*carry.values))

    def rest(*values: Any) -> list[Any]:
        made = step(*values[:-1])
        return [*made, more(*made)]

    rest.__name__ = step.__name__
    whole = Carry(carry.name, carry.structure, carry.below, [*carry.values, test])
    return _recorded_while(whole, lambda *values: values[-1], rest, slots)


def _tested(more: Any) -> Any:
    leaves = trees.leaves(more)
    if len(leaves) != 1:
        raise TreeMismatch(
            f"while_loop: the test must give one bool, got {describe(more)}.", hint="combine several with & and |."
        )
    found = lift(leaves[0])
    if found.type.shape:
        raise ShapeMismatch(f"while_loop: the test must give a scalar, got {found.type}.", hint="use .any() or .all().")
    if found.type.dtype.kind != "b":
        raise DTypeMismatch(f"while_loop: the test must give a bool, got {found.type}.", hint="compare: x != 0.")
    return found


def _slots(max_steps: int | None, checkpoints: int | None) -> int:
    if max_steps is not None and checkpoints is not None:
        raise BadArgument("while_loop: max_steps or checkpoints may be given, not both.")
    for name, count in (("max_steps", max_steps), ("checkpoints", checkpoints)):
        if count is not None and _known("while_loop", name, count) < 1:
            raise BadArgument(f"while_loop: {name} must be a positive integer, got {count}.")
    return operator.index(checkpoints or max_steps or 0)


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any, *, unroll: Any = None) -> Any:
    """Run a function for each integer of a range, handing a carry on.

        c = init_val;  for i in range(lower, upper): c = body_fun(i, c);  gives c

    With bounds known while tracing it is a ``scan``, and has a reverse mode; else a ``while_loop``.

    Raises: StateTypeError: the carry changes its type; the message has its path. TreeMismatch: it changes its
    structure. DTypeMismatch: the bounds are no integers of one dtype. BadArgument: ``unroll`` needs known bounds.

    >>> fori_loop(0, 3, lambda i, x: x + i, 10)
    Array(13, dtype=int32, weak_type=True)
    """
    need_function("fori_loop", body_fun)
    first, last = lift(lower), lift(upper)
    for x in (first, last):
        if x.type.shape or x.type.dtype.kind not in "iu":
            raise DTypeMismatch(f"fori_loop: the bounds must be integer scalars, got {first.type} and {last.type}.")
    dtype, weak = promote(first.type.dtype, first.type.weak, last.type.dtype, last.type.weak)
    if not weak and first.type.dtype != last.type.dtype and not (first.type.weak or last.type.weak):
        raise DTypeMismatch(f"fori_loop: the bounds must have one dtype, got {first.type} and {last.type}.")
    bounds = [int(x) for x in (first, last) if isinstance(x, ConcreteArray)]
    static = len(bounds) == 2
    usual = config.current().default_int
    if static and dtype.itemsize <= usual.itemsize and max(bounds) <= iinfo(usual).max:
        dtype, weak = usual, True  # they count as Python's
    if static or first.type.dtype != dtype:
        first = convert(first, dtype, weak)
    last = convert(last, dtype, last.type.weak)
    one = scalar(1, dtype, first.type.weak)
    if static:
        length = max(bounds[1] - bounds[0], 0)

        def step(carry: Any, _: Any) -> Any:
            i, value = carry
            return (add(i, one), body_fun(i, value)), None

        rounds = 1 if unroll is None else unroll
        return _scan("fori_loop", step, (first, init_val), None, length, False, rounds, below=1)[0][1]
    if unroll is not None and unroll is not False:
        raise BadArgument("fori_loop: unroll needs bounds known while tracing.", hint="give Python integers.")
    ends = _while(
        "fori_loop",
        lambda carry: lt(carry[0], carry[1]),
        lambda carry: (add(carry[0], one), carry[1], body_fun(carry[0], carry[2])),
        (first, last, init_val),
        below=1,
    )
    return ends[2]
