"""Callbacks: operations that call a Python function on the host, also from compiled programs.

    pure_callback   a function of its arguments alone: may be removed, merged and repeated, as any pure operation
    io_callback     an effect with results; debug.callback, debug.print: effects without results

The base interpretation calls the function directly, a compiled program through the host. There ``ordered`` effects are
sequenced by a token that programs thread through (``lowering/xla/host_callbacks.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..base.errors import BadArgument, CallbackError, HandlaxError, NotAnArray, NotDifferentiable, need_function
from ..base.stack import BASE, inside, perform
from ..base.value_identity import ByIdentity
from ..base.wrapping import name_of
from ..core.arrays import Array, ConcreteArray, as_array, concrete
from ..core.operation import Operation, effect, operation
from ..functions.unsupported import no_sharding
from ..trees import pytrees
from ..types.array_type import ArrayType, array_type
from ..types.dtypes import ExtendedDType, canonical
from .vmap_methods import by_vmap_method, need_vmap_method


class CallbackArguments(NamedTuple):
    """The recipe to rebuild the arguments of a callback from its operands.

    ``tree``: the treedef of ``(args, kwargs)``; None: the operands are the arguments. ``fixed``: index and value of
    the leaves that are no arrays. ``keys``: index and dtype of the operands that are random keys.
    """

    tree: Any
    fixed: tuple[tuple[int, Any], ...] = ()
    keys: tuple[tuple[int, Any], ...] = ()

    def bind(self, values: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and keyword arguments from the operands, given as arrays or their NumPy data."""
        keys = dict(self.keys)
        leaves = [x if isinstance(x, Array) else _array(x, keys.get(i)) for i, x in enumerate(values)]
        if self.tree is None:
            return tuple(leaves), {}
        for i, value in self.fixed:
            leaves.insert(i, value)
        return pytrees.unflatten(self.tree, leaves)


IN_ORDER = CallbackArguments(None)


def _array(value: Any, key: Any) -> ConcreteArray:
    """An array of NumPy data; ``key``: its dtype if it is a random key."""
    data = np.asarray(value)
    if key is None:
        return concrete(array_type(data.shape, data.dtype), data)
    return concrete(array_type(data.shape[: data.ndim - len(key.shape)], key), data)


class Callback(Operation):
    """An operation that calls a Python function on the host."""

    __slots__ = ()
    multiple_results: ClassVar[bool] = True
    calls_host: ClassVar[bool] = True
    ordered: bool = False
    arguments: CallbackArguments | None = None  # None: the operands, in order
    function: Callable[..., Any]
    results: tuple[ArrayType, ...] | None = None  # None: the function's result is ignored

    def result_type(op, *types: ArrayType) -> Any:
        return op.results

    def evaluate(op, *values: Any) -> tuple[np.ndarray[Any, Any], ...]:
        return op.call(*values)

    def lower(op, emit: Any, *values: Any) -> Any:
        return emit.host_call(op, values)

    @property
    def label(op) -> str:
        """The function's name in messages."""
        return name_of(op.function)

    def bound(op, values: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and keyword arguments from the operands, given as arrays or their NumPy data."""
        return (op.arguments or IN_ORDER).bind(values)

    def invoke(op, *args: Any, **kwargs: Any) -> Any:
        """Call the function on arrays; ``call`` does so outside all handlers."""
        return op.function(*args, **kwargs)

    def call(op, *values: Any) -> tuple[np.ndarray[Any, Any], ...]:
        """The results for these operands. Raises CallbackError: the function raised, or returned other types."""
        args, kwargs = op.bound(values)
        try:
            with inside(BASE):
                result = op.invoke(*args, **kwargs)
        except Exception as error:
            reason = error.what if isinstance(error, HandlaxError) else str(error)
            raise CallbackError(
                f"{op.name}: the callback must return, {op.label} raised {type(error).__name__}: {reason}"
            ) from error
        return op.checked(result)

    def checked(op, result: Any) -> tuple[np.ndarray[Any, Any], ...]:
        """The leaves of a result as NumPy arrays of the declared types; casts to a dtype of the same kind."""
        types = op.results
        if types is None:
            return ()
        leaves = pytrees.leaves(result)
        if len(leaves) != len(types):
            raise CallbackError(f"{op.name}: {op.label} must return {len(types)} arrays, returned {len(leaves)}.")
        return tuple([_checked_array(op, y, t) for y, t in zip(leaves, types)])


def _checked_array(op: Callback, y: Any, type: ArrayType) -> np.ndarray[Any, Any]:
    data = y.value if isinstance(y, ConcreteArray) else np.asarray(y)
    shape, dtype = type.shape, type.dtype
    if isinstance(dtype, ExtendedDType):
        shape, dtype = (*shape, *dtype.shape), np.dtype(np.uint32)
    if data.shape != shape or not (data.dtype == dtype or np.can_cast(data.dtype, dtype, "same_kind")):
        returned = array_type(data.shape, data.dtype)
        raise CallbackError(
            f"{op.name}: {op.label} must return {type}, as declared, returned {returned}.",
            hint="return numpy.asarray(y, dtype), or declare the type that it returns.",
        )
    return np.ascontiguousarray(data, dtype).reshape(shape)


# y = function(x), which depends on x alone
@operation
class PureCallback(Callback):
    function: Callable[..., Any]
    results: tuple[ArrayType, ...]
    arguments: CallbackArguments | None = None
    vmap_method: str | None = None
    aliases: ClassVar[tuple[tuple[int, int], ...]] = ()
    exempt: ClassVar[dict[str, str]] = {
        "jvp": "a Python function has no derivative; custom_jvp gives it one",
        "transpose": "a Python function is not known to be linear",
    }

    batch = by_vmap_method

    def sharding_rule(op, operands, results):
        return [(None,) * len(t.shape) for t in results]

    def jvp(op, primals, tangents):
        raise NotDifferentiable(
            f"pure_callback: a Python function has no known derivative, and one of {op.label} is needed.",
            hint="give it one with hx.custom_jvp, or stop here: lax.stop_gradient(x).",
        )

    def batched(op, size, mapped):
        """The operation on all lanes at once, the lanes along the first axis."""
        results = tuple([t.with_dimension(0, size) for t in op.results])
        return PureCallback(op.function, results, op.arguments, op.vmap_method)


def once_where_shared(op: Callback, dims: Sequence[int | None], *xs: Any) -> Any:
    """The batch rule: with operands that all lanes share it is called once for all of them, else once per lane."""
    if any([d is not None for d in dims]):
        return None
    ys = perform(op, *xs)
    return ys, (None,) * len(ys)


# y = function(x), called exactly once each time that it is performed
@effect
class IoCallback(Callback):
    function: Callable[..., Any]
    results: tuple[ArrayType, ...]
    arguments: CallbackArguments | None = None
    ordered: bool = False

    batch = once_where_shared

    def jvp(op, primals, tangents):
        raise NotDifferentiable(
            f"io_callback: a Python function has no known derivative, and one of {op.label} is needed.",
            hint="stop here, lax.stop_gradient(x), or give a rule to a function around it with hx.custom_jvp.",
        )


# Each equation executes all its lanes before the next one does: ordered callbacks of two lanes have no order to keep.
IoCallback.vmap = property(lambda op: "refuse" if op.ordered else "per_lane")  # type: ignore[assignment]


# s', y = op(s, x): an ordered callback with the token ``s`` of the one before, and the token of the next
@effect
class Sequenced(Callback):
    inner: Callback

    label = property(lambda op: op.inner.label)

    def result_type(op, *types):
        return (types[0], *op.inner.result_type(*types[1:]))

    def call(op, token, *values):
        return (np.add(token, np.uint32(1), dtype=np.uint32), *op.inner.call(*values))


TOKEN = array_type((), np.dtype("uint32"))


class UnhashableFunction(ByIdentity):
    """A function that cannot be hashed, compared by identity."""

    __slots__ = ("__name__",)

    def __init__(self, function: Callable[..., Any]):
        super().__init__(function)
        self.__name__ = name_of(function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.value(*args, **kwargs)


def hashable(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, wrapped in ``UnhashableFunction`` if it cannot be hashed."""
    try:
        hash(function)
    except TypeError:
        return UnhashableFunction(function)
    return function


_LEAVES = (Array, np.ndarray, np.generic, bool, int, float, complex)


def flattened_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[CallbackArguments | None, list[Array]]:
    """The arrays among the leaves of these arguments, as operands, and how to rebuild the arguments from them."""
    leaves, tree = pytrees.flatten((args, kwargs))
    operands: list[Array] = []
    fixed = []
    for i, leaf in enumerate(leaves):
        try:
            operands.append(as_array(leaf))
        except NotAnArray:
            fixed.append((i, leaf))
    keys = [(i, x.type.dtype) for i, x in enumerate(operands) if isinstance(x.type.dtype, ExtendedDType)]
    if not (fixed or keys or kwargs) and len(args) == len(operands) and all([isinstance(x, _LEAVES) for x in args]):
        return None, operands
    return CallbackArguments(tree, tuple(fixed), tuple(keys)), operands


def declared_types(name: str, result_shape_dtypes: Any) -> tuple[tuple[ArrayType, ...], Any]:
    """The types of the results and their treedef. Raises BadArgument: a leaf has no shape and dtype."""
    leaves, tree = pytrees.flatten(result_shape_dtypes)
    types = []
    for leaf in leaves:
        if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
            dtype = leaf.dtype
            types.append(array_type(tuple(leaf.shape), dtype if isinstance(dtype, ExtendedDType) else canonical(dtype)))
        else:
            try:
                types.append(as_array(leaf).type.strong())
            except NotAnArray:
                raise BadArgument(
                    f"{name}: result_shape_dtypes must be a tree of shapes and dtypes, got a leaf of type "
                    f"{type(leaf).__name__}.",
                    hint="hx.ShapeDtypeStruct(shape, dtype), or an array like the result.",
                ) from None
    return tuple(types), tree


def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """Call a Python function whose result depends only on its arguments.

        pure_callback(f, y, x) == f(x), of the shape and dtype of y

    It may be called more often than performed, or never, if its result is not used. It has no derivative.

    Args:
        result_shape_dtypes: a tree of ``ShapeDtypeStruct`` or arrays: shapes and dtypes of the results.
        vmap_method: how it is called on lanes. ``sequential``: on each lane, in a loop; ``sequential_unrolled``:
            without a loop. The others call it once, with the lanes along the first axis; operands that are not mapped
            get a leading axis of size 1 (``expand_dims``), are broadcast (``broadcast_all``), or stay as they are
            (``legacy_vectorized``).

    Raises: CallbackError: the callback raised or returned other types; where the result is read. CannotCross: under
    ``vmap`` without a method. NotDifferentiable: under a derivative.

    >>> import numpy as np
    >>> pure_callback(np.sinc, np.float32(0), 0.5)
    Array(0.63661975, dtype=float32)
    """
    need_function("pure_callback", callback)
    no_sharding("pure_callback", sharding)
    need_vmap_method("pure_callback", vmap_method)
    types, tree = declared_types("pure_callback", result_shape_dtypes)
    arguments, operands = flattened_arguments(args, kwargs)
    return pytrees.unflatten(tree, perform(PureCallback(hashable(callback), types, arguments, vmap_method), *operands))


def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function exactly once each time that this is performed.

        io_callback(f, y, x) == f(x), of the shape and dtype of y

    Effects: never removed, merged or repeated. Ordered ones are called in the order in which they are performed, across
    the programs of a thread too. Under ``vmap`` once per lane if an operand is mapped, where an ordered one is refused,
    and otherwise once for all lanes. Of several devices the first one calls, on whole values; in ``shard_map`` each
    does, on its pieces, and ordered ones in order on each.

    Args:
        result_shape_dtypes: a tree of ``ShapeDtypeStruct`` or arrays: shapes and dtypes of the results; None: none.

    Raises: CallbackError: the callback raised or returned other types; where a result is read, or at
    ``effects_barrier``. CannotCross: ordered, of a mapped operand. NotDifferentiable: under a derivative.

    >>> seen = []
    >>> io_callback(seen.append, None, 3)
    >>> seen
    [Array(3, dtype=int32)]
    """
    need_function("io_callback", callback)
    no_sharding("io_callback", sharding)
    types, tree = declared_types("io_callback", result_shape_dtypes)
    arguments, operands = flattened_arguments(args, kwargs)
    return pytrees.unflatten(tree, perform(IoCallback(hashable(callback), types, arguments, bool(ordered)), *operands))


