"""Callbacks: functions of Python, called on the host out of programs wherever these run.

    pure_callback   a function of its arguments alone: may be dropped, merged and repeated, as any operation
    io_callback     an effect with results; debug.callback, debug.print: effects without

The base interpretation calls the function. A device calls the host; ``ordered`` effects are chained there by a number
that programs hand on (``lowering/callbacks.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from . import trees
from .arrays import Array, ConcreteArray, concrete, lift
from .closing import close_all
from .control import record_body
from .dtypes import ExtendedDType, canonical
from .errors import BadArgument, CallbackError, CannotCross, HandlaxError, NotAnArray, NotDifferentiable, need_function
from .loops import Scan
from .operations import Operation, effect, operation
from .programs import Program
from .refusals import no_sharding
from .shapes import broadcast_in_dim
from .slicing import axis_at
from .stack import BASE, inside, perform
from .types import ArrayType, array_type

VMAP_METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")


class Arguments(NamedTuple):
    """How the operands make up the arguments of a function.

    ``fixed`` are the leaves that are no arrays, by number; ``keys`` the dtypes of operands that hold keys.
    """

    tree: Any
    fixed: tuple[tuple[int, Any], ...] = ()
    keys: tuple[tuple[int, Any], ...] = ()

    def bind(self, values: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        keys = dict(self.keys)
        leaves = [x if isinstance(x, Array) else _array(x, keys.get(i)) for i, x in enumerate(values)]
        if self.tree is None:
            return tuple(leaves), {}
        for i, value in self.fixed:
            leaves.insert(i, value)
        return trees.unflatten(self.tree, leaves)


IN_ORDER = Arguments(None)


def _array(value: Any, key: Any) -> ConcreteArray:
    data = np.asarray(value)
    if key is None:
        return concrete(array_type(data.shape, data.dtype), data)
    return concrete(array_type(data.shape[: data.ndim - len(key.shape)], key), data)


class Callback(Operation):
    """An operation that calls Python on the host."""

    __slots__ = ()
    multiple: ClassVar[bool] = True
    ordered: bool = False
    arguments: Arguments | None = None  # None: the operands, in order

    @property
    def label(op) -> str:
        """How messages call the function."""
        function = getattr(op, "function", None)
        return getattr(function, "__name__", type(function).__name__)

    def bound(op, values: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and named arguments from the operands: arrays, or what NumPy makes of them."""
        return (op.arguments or IN_ORDER).bind(values)

    def run(op, *args: Any, **kwargs: Any) -> Any:
        """What is called: on arrays, outside all handlers."""
        return op.function(*args, **kwargs)  # type: ignore[attr-defined]

    def call(op, *values: Any) -> tuple[np.ndarray[Any, Any], ...]:
        """The results for these operands. Raises CallbackError: the function raised, or gave something else."""
        args, kwargs = op.bound(values)
        try:
            with inside(BASE):
                made = op.run(*args, **kwargs)
        except Exception as error:
            found = error.what if isinstance(error, HandlaxError) else str(error)
            raise CallbackError(
                f"{op.name}: the callback must return, {op.label} raised {type(error).__name__}: {found}"
            ) from error
        return op.checked(made)

    def checked(op, made: Any) -> tuple[np.ndarray[Any, Any], ...]:
        """The results as NumPy arrays of the promised types. A number or array of another dtype of its kind is cast."""
        types = getattr(op, "results", None)
        if types is None:
            return ()
        leaves = trees.leaves(made)
        if len(leaves) != len(types):
            raise CallbackError(f"{op.name}: {op.label} must give {len(types)} arrays, gave {len(leaves)}.")
        return tuple([_fitting(op, y, t) for y, t in zip(leaves, types)])


def _fitting(op: Callback, y: Any, type: ArrayType) -> np.ndarray[Any, Any]:
    data = y.value if isinstance(y, ConcreteArray) else np.asarray(y)
    shape, dtype = type.shape, type.dtype
    if isinstance(dtype, ExtendedDType):
        shape, dtype = (*shape, *dtype.shape), np.dtype(np.uint32)
    if data.shape != shape or not (data.dtype == dtype or np.can_cast(data.dtype, dtype, "same_kind")):
        found = array_type(data.shape, data.dtype)
        raise CallbackError(
            f"{op.name}: {op.label} must give {type}, as promised, gave {found}.",
            hint="return numpy.asarray(y, dtype), or promise what it gives.",
        )
    return np.ascontiguousarray(data, dtype).reshape(shape)


def evaluate_callback(op: Callback, *values: Any) -> tuple[np.ndarray[Any, Any], ...]:
    """The cell ``evaluate`` of every callback."""
    return op.call(*values)


def lower_callback(op: Callback, emit: Any, *values: Any) -> Any:
    """The cell ``lower`` of every callback."""
    return emit.host_call(op, values)


# y = function(x), which depends on x alone
@operation
class PureCallback(Callback):
    function: Callable[..., Any]
    results: tuple[ArrayType, ...]
    arguments: Arguments | None = None
    vmap_method: str | None = None
    exempt: ClassVar[dict[str, str]] = {
        "jvp": "a function of Python has no derivative; custom_jvp gives it one",
        "transpose": "a function of Python is not known to be linear",
    }

    def result_type(op, *types):
        return op.results

    evaluate = evaluate_callback

    def batch(op, dims, *xs):
        size = next(x.shape[d] for x, d in zip(xs, dims) if d is not None)
        method = op.vmap_method
        if method is None:
            raise CannotCross(
                "pure_callback: vmap needs to know how the function takes many lanes, got vmap_method=None.",
                hint=f"choose one of {', '.join(VMAP_METHODS)}.",
            )
        if method.startswith("sequential"):
            program, shared, each = lane_body(op, dims, xs, size)
            loop = Scan((program,), len(shared), 0, size, False, size if method == "sequential_unrolled" else 1)
            return perform(loop, *shared, *each), 0
        return perform(op.widened(size), *[lanes_first(x, d, size, method) for x, d in zip(xs, dims)]), 0

    def jvp(op, primals, tangents):
        raise NotDifferentiable(
            f"pure_callback: a function of Python has no derivative that is known, and {op.label} is asked for one.",
            hint="give it one with hx.custom_jvp, or stop here: lax.stop_gradient(x).",
        )

    lower = lower_callback

    def widened(op, size):
        """The operation on all lanes at once, which stand first."""
        results = tuple([t.update(shape=(size, *t.shape)) for t in op.results])
        return PureCallback(op.function, results, op.arguments, op.vmap_method)


def lanes_first(x: Any, dim: int | None, size: int, method: str) -> Any:
    """An operand for all lanes at once, as the method says."""
    if dim is not None or method == "broadcast_all":
        return axis_at(x, dim, 0, size)
    if method == "legacy_vectorized":
        return x
    return broadcast_in_dim(x, (1, *x.shape), tuple(range(1, x.ndim + 1)))


def lane_body(op: Operation, dims: Sequence[int | None], xs: Sequence[Any], size: int) -> tuple[Program, Any, Any]:
    """The operation on one lane as a body, and its operands: shared by all lanes, and with the lanes first."""
    shared = [x for x, d in zip(xs, dims) if d is None]
    each = [axis_at(x, d, 0, size) for x, d in zip(xs, dims) if d is not None]

    def body(*values: Any) -> Any:
        fixed, rows = iter(values[: len(shared)]), iter(values[len(shared) :])
        return perform(op, *[next(fixed) if d is None else next(rows) for d in dims])

    types = [*[x.type for x in shared], *[x.type.update(shape=x.shape[1:]) for x in each]]
    (program,), captured = close_all([record_body(body, types, op.name)])
    return program, [*captured, *shared], each


# y = function(x), called once for each time that it is performed
@effect
class IoCallback(Callback):
    function: Callable[..., Any]
    results: tuple[ArrayType, ...]
    arguments: Arguments | None = None
    ordered: bool = False

    def result_type(op, *types):
        return op.results

    evaluate = evaluate_callback

    def jvp(op, primals, tangents):
        raise NotDifferentiable(
            f"io_callback: a function of Python has no derivative that is known, and {op.label} is asked for one.",
            hint="stop here, lax.stop_gradient(x), or give a rule to a function around it with hx.custom_jvp.",
        )

    lower = lower_callback


# Between the lanes of one equation there is no order that all its neighbours share.
IoCallback.vmap = property(lambda op: "refuse" if op.ordered else "per_lane")  # type: ignore[assignment]


# s', y = op(s, x): an ordered callback, which waits for the number ``s`` and gives the one that the next waits for
@effect
class Sequenced(Callback):
    inner: Callback

    label = property(lambda op: op.inner.label)

    def result_type(op, turn, *types):
        return (turn, *op.inner.result_type(*types))

    def call(op, turn, *values):
        return (np.add(turn, np.uint32(1), dtype=np.uint32), *op.inner.call(*values))

    evaluate = evaluate_callback
    lower = lower_callback


TURN = array_type((), np.dtype("uint32"))


class Held:
    """A function that cannot be hashed, compared by identity."""

    __slots__ = ("function", "__name__")

    def __init__(self, function: Callable[..., Any]):
        self.function = function
        self.__name__ = getattr(function, "__name__", type(function).__name__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def held(function: Callable[..., Any]) -> Callable[..., Any]:
    try:
        hash(function)
    except TypeError:
        return Held(function)
    return function


_LEAVES = (Array, np.ndarray, np.generic, bool, int, float, complex)


def taken_apart(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Arguments | None, list[Array]]:
    """How operands make up these arguments, and the operands: the arrays among the leaves; the rest is fixed."""
    leaves, tree = trees.flatten((args, kwargs))
    operands: list[Array] = []
    fixed = []
    for i, leaf in enumerate(leaves):
        try:
            operands.append(lift(leaf))
        except NotAnArray:
            fixed.append((i, leaf))
    keys = [(i, x.type.dtype) for i, x in enumerate(operands) if isinstance(x.type.dtype, ExtendedDType)]
    if not (fixed or keys or kwargs) and len(args) == len(operands) and all([isinstance(x, _LEAVES) for x in args]):
        return None, operands
    return Arguments(tree, tuple(fixed), tuple(keys)), operands


def promised(name: str, result_shape_dtypes: Any) -> tuple[tuple[ArrayType, ...], Any]:
    """The types of the results and their structure."""
    leaves, tree = trees.flatten(result_shape_dtypes)
    found = []
    for leaf in leaves:
        if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
            dtype = leaf.dtype
            found.append(array_type(tuple(leaf.shape), dtype if isinstance(dtype, ExtendedDType) else canonical(dtype)))
        else:
            try:
                found.append(lift(leaf).type.strong())
            except NotAnArray:
                raise BadArgument(
                    f"{name}: result_shape_dtypes must hold shapes and dtypes, got {type(leaf).__name__}.",
                    hint="hx.ShapeDtypeStruct(shape, dtype), or an array like the result.",
                ) from None
    return tuple(found), tree


def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """Call a function of Python whose result depends on its arguments alone.

        pure_callback(f, y, x) == f(x), of the shape and dtype of y

    It may be called more often than performed, or not at all where nobody needs the result. It has no derivative.

    Args:
        result_shape_dtypes: a tree of ``ShapeDtypeStruct`` or arrays: what the callback gives.
        vmap_method: how it takes many lanes. ``sequential``: one after the other. ``expand_dims``: all at once, lanes
            first, operands that are the same in all lanes with a leading size of 1; ``broadcast_all``: repeated.
            ``legacy_vectorized``: as they are. ``sequential_unrolled``: one after the other, without a loop.

    Raises: CallbackError: the callback raised, or gave something else, when the result is read. CannotCross: under
    ``vmap`` without a method. NotDifferentiable: under a derivative.

    >>> import numpy as np
    >>> pure_callback(np.sinc, np.float32(0), 0.5)
    Array(0.63661975, dtype=float32)
    """
    need_function("pure_callback", callback)
    no_sharding("pure_callback", sharding)
    if vmap_method is not None and vmap_method not in VMAP_METHODS:
        raise BadArgument(f"pure_callback: vmap_method must be one of {', '.join(VMAP_METHODS)}, got {vmap_method!r}.")
    types, tree = promised("pure_callback", result_shape_dtypes)
    arguments, operands = taken_apart(args, kwargs)
    return trees.unflatten(tree, perform(PureCallback(held(callback), types, arguments, vmap_method), *operands))


def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a function of Python, once for each time that this is performed.

        io_callback(f, y, x) == f(x), of the shape and dtype of y

    Effects: never dropped, merged or repeated. Ordered ones are called in the order in which they are performed, those
    of one thread's programs too. Under ``vmap`` once in each lane; an ordered one is refused there.

    Args:
        result_shape_dtypes: a tree of ``ShapeDtypeStruct`` or arrays: what the callback gives; None for nothing.

    Raises: CallbackError: the callback raised, or gave something else; when a result is read, or at
    ``effects_barrier``. CannotCross: ordered under ``vmap``. NotDifferentiable: under a derivative.

    >>> seen = []
    >>> io_callback(seen.append, None, 3)
    >>> seen
    [Array(3, dtype=int32)]
    """
    need_function("io_callback", callback)
    no_sharding("io_callback", sharding)
    types, tree = promised("io_callback", result_shape_dtypes)
    arguments, operands = taken_apart(args, kwargs)
    return trees.unflatten(tree, perform(IoCallback(held(callback), types, arguments, bool(ordered)), *operands))


