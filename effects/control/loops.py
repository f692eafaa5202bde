"""Loops: ``Scan`` iterates a body a known number of times, ``While`` until a test is false."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, overload

from ..base import config
from ..base.errors import (
    BadArgument,
    DTypeMismatch,
    ShapeMismatch,
    ShardingTypeError,
    TracerIntegerConversionError,
    TreeMismatch,
    need_function,
)
from ..base.later_layers import LaterLayers
from ..base.tracebacks import boundary
from ..base.wrapping import name_of
from ..core.array_interface import ArrayLike
from ..core.arrays import Array, Box, ConcreteArray, as_array, scalar
from ..core.containers import need_no_container
from ..core.operation import operation
from ..core.signatures import C, X, Y
from ..core.varying import vary
from ..operations.elementwise.arithmetic import add
from ..operations.elementwise.bitwise import bitwise_and
from ..operations.elementwise.comparison import lt
from ..operations.elementwise.conversion import convert
from ..operations.foundations.shapes import move_axis, reshape
from ..programs.closure_conversion import close_all
from ..programs.higher_order import HigherOrder
from ..programs.program import Program
from ..trees import pytrees
from ..trees.structure import describe
from ..types.dtype_promotion import promote
from ..types.dtypes import iinfo, int32
from ..types.extent import Extent, is_size, positive, unbound
from .eager_control import EagerCarry, concrete_or_none, unrolled_scan, unrolls
from .recorded_bodies import (
    RecordedBody,
    at_path,
    body_of,
    diverging,
    initial_carry,
    need_all_devices,
    need_one_choice,
    perform_bodies,
    same_carry,
    stable_carry,
    with_carry_types,
)


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
    param_names = {"shared": "num_consts", "carry": "num_carry", "backwards": "reverse"}
    fixed_params = {"_split_transpose": False}
    derived_params = {"linear": lambda op: (False,) * len(op.bodies[0].in_types)}


# while test(s, c): c = body(s, c);  reverse mode stores at most ``slots`` carries at a time
@operation
class While(HigherOrder):
    bodies: tuple[Program, ...]
    shared: int
    carry: int
    slots: int = 0
    runs = "until"

    def as_params(self):
        """As a primitive, each body has constants of its own: those of the test, of the body, then the carry."""
        names = ("cond_jaxpr", "cond_nconsts", "body_jaxpr", "body_nconsts")
        params = dict(zip(names, (self.bodies[0], self.shared, self.bodies[1], self.shared)))
        return {**params, "slots": self.slots} if self.slots else params

    @classmethod
    def from_params(cls, params):
        test, body, m, n = [params[name] for name in ("cond_jaxpr", "body_jaxpr", "cond_nconsts", "body_nconsts")]
        shared = (*test.in_types[:m], *body.in_types[:n])
        count = len(body.in_types) - n
        carry = range(m + n, m + n + count)
        in_types = (*shared, *body.in_types[n:])
        bodies = test.rewired(in_types, (*range(m), *carry)), body.rewired(in_types, (*range(m, m + n), *carry))
        return cls(bodies, m + n, count, params.get("slots", 0))

    def primitive_operands(self, operands):
        return [*operands[: self.shared], *operands]

    def result_type(op, *operands):
        choice = op.bodies[0].out_types[0]
        need_all_devices("while_loop", op.bodies, choice.varying)
        results = HigherOrder.result_type(op, *operands)
        need_one_choice("while_loop", choice, operands, results)
        return results


@overload
def scan(
    f: Callable[[Array, X], tuple[ArrayLike, Y]], init: ArrayLike, xs: X, length: int | None = None,
    reverse: bool = False, unroll: int | bool = 1, _split_transpose: bool = False,
) -> tuple[Array, Y]: ...
@overload
def scan(
    f: Callable[[C, X], tuple[C, Y]], init: C, xs: X, length: int | None = None,
    reverse: bool = False, unroll: int | bool = 1, _split_transpose: bool = False,
) -> tuple[C, Y]: ...
@overload
def scan(
    f: Callable[[C, None], tuple[C, Y]], init: C, xs: None = None, length: int | None = None,
    reverse: bool = False, unroll: int | bool = 1, _split_transpose: bool = False,
) -> tuple[C, Y]: ...
@boundary
def scan(
    f: Callable[..., Any],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Any, Any]:
    """Iterate a function over the slices of ``xs`` with a carry.

        carry = init;  for i in range(n): carry, ys[i] = f(carry, xs[i]);  gives carry, ys

    Shapes: ``f: c, a -> c, b`` gives ``scan(f): c, [n, a] -> c, [n, b]``.
    Effects: performed once per iteration, in order.

    Args:
        xs: arrays with one leading size; None with ``length``.
        reverse: from the last slice to the first; ``ys[i]`` still belongs to ``xs[i]``.
        unroll: the number of iterations in one iteration of the compiled loop; True or 0: all of them.

    Raises: ShapeMismatch: leading sizes differ. StateTypeError: the carry changes its type; the message has its path.
    TreeMismatch: the carry changes its structure, or ``f`` gives no pair. BadArgument: ``xs`` holds a container, such
    as a ``Ragged``, which has lanes of its own.

    >>> from handlax import numpy as hnp
    >>> scan(lambda c, x: (c + x, c), 0, hnp.array([1, 2, 3]))
    (Array(6, dtype=int32), Array([0, 1, 3], dtype=int32, weak_type=True))
    """
    need_function("scan", f)
    return scan_as("scan", f, init, xs, length, reverse, unroll)


def scan_as(
    name: str, f: Callable[..., Any], init: Any, xs: Any, length: Any = None, reverse: Any = False, unroll: Any = 1,
    below: int = 0,
) -> tuple[Any, Any]:
    """``scan`` for the function ``name``, which errors name, without the first ``below`` keys of the carry's paths."""
    carries, carry_tree = pytrees.flatten(init)
    slices, xs_tree = pytrees.flatten(xs)
    need_no_container(name, xs_tree)
    carries, slices = [as_array(c) for c in carries], [as_array(x) for x in slices]
    size = _length(name, slices, xs_tree, length)
    rows = [x.type.without_dimension(0) for x in slices]
    count = len(carries)

    def step(*values: Any) -> tuple[Any, Any]:
        result = f(pytrees.unflatten(carry_tree, values[:count]), pytrees.unflatten(xs_tree, values[count:]))
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            shown = result.type if isinstance(result, Array) else describe(result)
            raise TreeMismatch(
                f"{name}: the function must give (carry, y), got {shown}.", hint="give (carry, None) to stack nothing."
            )
        same_carry(name, carry_tree, pytrees.structure(result[0]), below)
        return result[0], result[1]

    unrolled = _unroll_count(name, unroll, size)
    if size and unrolls():
        order = range(size)[:: -1 if reverse else 1]
        return unrolled_scan(EagerCarry(name, carry_tree, below, carries), step, slices, order)

    def trace(types: Any) -> RecordedBody:
        return body_of(name_of(f), step, [*types, *rows], name)

    body, inside, outside = stable_carry(name, trace, carry_tree, [c.type for c in carries], below)
    bodies, captured = close_all([with_carry_types(body.program, inside, outside)])
    start = [initial_carry(c, t) for c, t in zip(carries, outside)]
    op = Scan(bodies, len(captured), count, size, bool(reverse), unrolled)
    return pytrees.unflatten(body.structure, perform_bodies(op, *captured, *start, *slices))


def _static_integer(name: str, what: str, value: Any, hint: str | None = None) -> int:
    """``value``, the argument ``what`` of the function ``name``, as a Python integer.

    Raises: BadArgument: ``value`` is no integer. TracerIntegerConversionError: ``value`` is a traced integer.
    """
    try:
        return operator.index(value)
    except TypeError:
        traced = isinstance(value, Box) and value.type.dtype.kind in "iub"
        error = TracerIntegerConversionError if traced else BadArgument
        shown = value.type if isinstance(value, Array) else repr(value)
        raise error(f"{name}: {what} must be an integer known while tracing, got {shown}.", hint=hint) from None


def _length(name: str, slices: list[Any], tree: Any, length: Any) -> int:
    """The number of iterations of a scan: ``length``, or the leading size of the slices.

    Raises: ShapeMismatch: a leaf has no leading axis, or leading sizes or ``length`` differ. ShardingTypeError: the
    leading axis is cut. BadArgument: ``length`` is negative or no integer, or there are neither slices nor ``length``.
    """
    if length is not None:
        hint = "make it static (static_argnums), or use fori_loop, which takes bounds that are computed."
        length = unbound(length)
        length = positive(length) if type(length) is Extent else _static_integer(name, "length", length, hint)
        if length < 0:
            raise BadArgument(f"{name}: length must not be negative, got {length}.")
    for i, x in enumerate(slices):
        if not x.type.shape:
            raise ShapeMismatch(
                f"{name}: xs must have a leading axis, got {x.type}{at_path(tree, i)}.",
                hint="pass it by closure instead.",
            )
        cut = x.type.cut
        if cut is not None and cut.spec[0] is not None and not cut.hides:
            raise ShardingTypeError(
                f"{name}: the leading dimension of xs must be whole, got {x.type}{at_path(tree, i)}.",
                hint="hx.reshard(xs, spec) with None as its first entry.",
            )
        size = x.type.shape[0]
        if length is None:
            length = size
        elif length != size:
            raise ShapeMismatch(
                f"{name}: leading sizes must agree, got {length} and {size}{at_path(tree, i)}.",
                hint="slice xs to one size, or pass no length.",
            )
    if length is None:
        raise BadArgument(f"{name}: xs or length must be given.", hint="scan(f, init, None, length=n).")
    return length


def _unroll_count(name: str, unroll: int | bool, length: int) -> int:
    if unroll is False:
        return 1
    count = 0 if unroll is True else _static_integer(name, "unroll", unroll)
    if count < 0:
        raise BadArgument(f"{name}: unroll must be a bool or an integer that is not negative, got {unroll!r}.")
    return count or max(length, 1)


@overload
def while_loop(
    cond_fun: Callable[[Array], ArrayLike], body_fun: Callable[[Array], ArrayLike], init_val: ArrayLike, *,
    max_steps: int | None = None, checkpoints: int | None = None,
) -> Array: ...
@overload
def while_loop(
    cond_fun: Callable[[C], ArrayLike], body_fun: Callable[[C], C], init_val: C, *,
    max_steps: int | None = None, checkpoints: int | None = None,
) -> C: ...
@boundary
def while_loop(
    cond_fun: Callable[..., Any],
    body_fun: Callable[..., Any],
    init_val: Any,
    *,
    max_steps: int | None = None,
    checkpoints: int | None = None,
) -> Any:
    """Iterate a function while a test is true.

        c = init_val;  while cond_fun(c): c = body_fun(c);  gives c

    Reverse mode needs a bound on the memory for carries, one of

    - ``max_steps``: the loop ends after at most ``max_steps`` iterations, and the carries of all are stored;
    - ``checkpoints``: at most ``checkpoints`` carries are stored, the others recomputed from them. With ``s``
      checkpoints, a loop of ``C(s + t, t)`` iterations recomputes each iteration at most ``t`` times.

    Higher derivatives checkpoint the loops of the reverse mode in the same way, with at most 16 stored states.

    Raises: StateTypeError: the carry changes its type; the message has its path. TreeMismatch: it changes its
    structure. ShapeMismatch, DTypeMismatch: the test gives no scalar bool. BadArgument: ``max_steps`` or
    ``checkpoints`` is no positive integer, or both are passed.
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
    """``while_loop`` for the function ``name``; messages omit the first ``below`` keys of the carry's paths."""
    slots = _slots(max_steps, checkpoints)
    leaves, tree = pytrees.flatten(init_val)
    count = len(leaves)
    # a bounded loop counts its iterations in the last carry
    carries = [*[as_array(c) for c in leaves], *([] if max_steps is None else [scalar(0, int32)])]

    def step(*values: Any) -> list[Any]:
        results, structure = pytrees.flatten(body_fun(pytrees.unflatten(tree, values[:count])))
        same_carry(name, tree, structure, below)
        return [*map(as_array, results), *[add(i, scalar(1, int32)) for i in values[count:]]]

    def more(*values: Any) -> Any:
        test = _scalar_bool(cond_fun(pytrees.unflatten(tree, values[:count])))
        return test if max_steps is None else bitwise_and(test, lt(values[count], scalar(max_steps, int32)))

    step.__name__, more.__name__ = name_of(body_fun), name_of(cond_fun)
    loop = _unrolled_while if unrolls() else _recorded_while
    return pytrees.unflatten(tree, loop(EagerCarry(name, tree, below, carries), more, step, slots)[:count])


def _recorded_while(carry: EagerCarry, more: Callable[..., Any], step: Callable[..., Any], slots: int) -> Sequence[Any]:
    def trace(types: Any) -> RecordedBody:
        return body_of(step.__name__, step, types, carry.name)

    body, inside, outside = stable_carry(carry.name, trace, carry.structure, carry.types, carry.below)
    test = body_of(more.__name__, more, inside, carry.name)
    bodies, captured = close_all([with_carry_types(part.program, inside, outside) for part in (test, body)])
    start = [initial_carry(c, t) for c, t in zip(carry.values, outside)]
    varying = test.program.out_types[0].varying
    inputs = [vary(x, varying) for x in (*captured, *start)]
    bodies = tuple(diverging(bodies, varying))
    return perform_bodies(While(bodies, len(captured), len(start), slots), *inputs)


def _unrolled_while(carry: EagerCarry, more: Callable[..., Any], step: Callable[..., Any], slots: int) -> Sequence[Any]:
    """Iterate in Python while the value of the test is known, then record the remaining iterations as a ``While``.

    The carry of that loop ends with the value of the last test, which is thus not computed twice.
    """
    while (again := concrete_or_none(bool, test := more(*carry.values))) is not None:
        if not again:
            return carry.results
        carry.update(step(*carry.values))

    def rest(*values: Any) -> list[Any]:
        results = step(*values[:-1])
        return [*results, more(*results)]

    rest.__name__ = step.__name__
    tested = EagerCarry(carry.name, carry.structure, carry.below, [*carry.values, test])
    return _recorded_while(tested, lambda *values: values[-1], rest, slots)


def _scalar_bool(result: Any) -> Any:
    """The result of a loop's test as a scalar boolean array.

    Raises: TreeMismatch: the result is a tree. ShapeMismatch, DTypeMismatch: the leaf is no scalar bool.
    """
    if not pytrees.all_leaves([result]):
        raise TreeMismatch(
            f"while_loop: the test must give one bool, got {describe(result)}.", hint="combine several with & and |."
        )
    x = as_array(result)
    if x.type.shape:
        raise ShapeMismatch(f"while_loop: the test must give a scalar, got {x.type}.", hint="use .any() or .all().")
    if x.type.dtype.kind != "b":
        raise DTypeMismatch(f"while_loop: the test must give a bool, got {x.type}.", hint="compare: x != 0.")
    return x


def _slots(max_steps: int | None, checkpoints: int | None) -> int:
    """The largest number of carries that reverse mode of a ``while_loop`` stores; 0: no reverse mode.

    Raises: BadArgument: both arguments are given, or one is no positive integer.
    """
    if max_steps is not None and checkpoints is not None:
        raise BadArgument("while_loop: max_steps or checkpoints may be given, not both.")
    for name, count in (("max_steps", max_steps), ("checkpoints", checkpoints)):
        if count is not None and _static_integer("while_loop", name, count) < 1:
            raise BadArgument(f"while_loop: {name} must be a positive integer, got {count}.")
    return operator.index(checkpoints or max_steps or 0)


def _bounds(first: Array, last: Array) -> tuple[Array, Array, int | None]:
    """The bounds of a range in one dtype, and the length of the range; None where a bound is not known while tracing.

    Raises: DTypeMismatch: the bounds are no integer scalars, or have different dtypes of which none is weak.
    """
    for x in (first, last):
        if x.type.shape or x.type.dtype.kind not in "iu":
            raise DTypeMismatch(f"fori_loop: the bounds must be integer scalars, got {first.type} and {last.type}.")
    dtype, weak = promote(first.type.dtype, first.type.weak, last.type.dtype, last.type.weak)
    if not weak and first.type.dtype != last.type.dtype and not (first.type.weak or last.type.weak):
        raise DTypeMismatch(f"fori_loop: the bounds must have one dtype, got {first.type} and {last.type}.")
    bounds = [int(x) for x in (first, last) if isinstance(x, ConcreteArray)]
    static = len(bounds) == 2
    default = config.current().default_int
    if static and dtype.itemsize <= default.itemsize and max(bounds) <= iinfo(default).max:
        dtype, weak = default, True  # as for Python integers
    if static or first.type.dtype != dtype:
        first = convert(first, dtype, weak)
    return first, convert(last, dtype, last.type.weak), max(bounds[1] - bounds[0], 0) if static else None


@overload
def fori_loop(
    lower: ArrayLike, upper: ArrayLike, body_fun: Callable[[Array, Array], ArrayLike], init_val: ArrayLike, *,
    unroll: int | bool | None = None,
) -> Array: ...
@overload
def fori_loop(
    lower: ArrayLike, upper: ArrayLike, body_fun: Callable[[Array, C], C], init_val: C, *,
    unroll: int | bool | None = None,
) -> C: ...
@boundary
def fori_loop(lower: Any, upper: Any, body_fun: Callable[..., Any], init_val: Any, *, unroll: Any = None) -> Any:
    """Iterate a function over the integers of a range with a carry.

        c = init_val;  for i in range(lower, upper): c = body_fun(i, c);  gives c

    With bounds known while tracing the loop is a ``scan``, which has a reverse mode; otherwise a ``while_loop``.

    Raises: StateTypeError: the carry changes its type; the message has its path. TreeMismatch: it changes its
    structure. DTypeMismatch: the bounds are no integers of one dtype. BadArgument: ``unroll`` needs known bounds.

    >>> fori_loop(0, 3, lambda i, x: x + i, 10)
    Array(13, dtype=int32, weak_type=True)
    """
    need_function("fori_loop", body_fun)
    first, last, length = _bounds(as_array(lower), as_array(upper))
    low, high = unbound(lower), unbound(upper)
    if length is None and Extent in (type(low), type(high)) and is_size(low) and is_size(high):
        length = positive(high - low)
    one = scalar(1, first.type.dtype, first.type.weak)
    if length is not None:

        def step(carry: Any, _: Any) -> Any:
            i, value = carry
            return (add(i, one), body_fun(i, value)), None

        step.__name__ = name_of(body_fun)
        unrolled = 1 if unroll is None else unroll
        return scan_as("fori_loop", step, (first, init_val), None, length, False, unrolled, below=1)[0][1]
    if unroll is not None and unroll is not False:
        raise BadArgument("fori_loop: unroll needs bounds known while tracing.", hint="pass Python integers.")

    def more(carry: Any) -> Any:
        return lt(carry[0], carry[1])

    def advance(carry: Any) -> Any:
        return add(carry[0], one), carry[1], body_fun(carry[0], carry[2])

    advance.__name__ = name_of(body_fun)
    return _while("fori_loop", more, advance, (first, last, init_val), below=1)[2]


def _along_lane(combine: Any, first: Sequence[Any], xs: Sequence[Any], axis: int) -> tuple[list[Any], list[Any]]:
    """The inclusive scan of ``combine`` along ``axis``: the last state, and the arrays of all states.

        c[0] = combine(first, xs[0]);  c[i] = combine(c[i - 1], xs[i])

    ``first`` and the last state have size 1 along ``axis``.
    """

    def step(carry: Sequence[Any], rows: Sequence[Any]) -> Any:
        new = combine(carry, [reshape(row, c.type.shape) for row, c in zip(rows, carry)])
        return list(new), [reshape(y, row.type.shape) for y, row in zip(new, rows)]

    last, ys = scan(step, list(first), [move_axis(x, axis, 0) for x in xs])
    return last, [move_axis(y, 0, axis) for y in ys]


LaterLayers.scan_along_lane = staticmethod(_along_lane)
