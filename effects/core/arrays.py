"""Arrays: the immutable values that are operands and results of operations.

An ``Array`` is either a ``ConcreteArray``, whose data are known, or a ``Box`` of some run. The data of a concrete array
are a NumPy array, a device buffer, or both; ``ArrayBackend`` converts between them. ``as_array`` makes an array of a
value, and ``perform`` sends an operation to the innermost handler.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ..base import config
from ..base.caches import Cache
from ..base.errors import (
    BadArgument,
    BadCall,
    ConcretizationTypeError,
    DTypeMismatch,
    EscapedBox,
    HandlaxError,
    NotAnArray,
    RankMismatch,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    shortened,
    some_of,
)
from ..base.immutables import OwnCopy, setter
from ..base.later_layers import LaterLayers
from ..base.source_locations import NOWHERE, Site, called_with
from ..base.stack import Run, current
from ..types import dtypes
from ..types.array_type import ArrayType, array_type
from ..types.casting import number_data, python_number
from ..types.dtype_families import known_key_dtype
from ..types.lengths import read
from .array_exchange import Exchanged
from .array_interface import Array as Array
from .array_shards import OnDevices, OnNoDevice
from .operation import Operation
from .result_trees import as_declared


class UnsealedArray(Array):
    """A concrete array under construction. Setting its ``__class__`` to ``ConcreteArray`` makes it immutable.

    Three times faster than assigning past ``ImmutableObject.__setattr__``. For the same reason this class has no
    ``__init__``; ``ConcreteArray`` must have no slots of its own, or ``__class__`` could not be assigned.
    """

    __slots__ = ("type", "_value", "_buffer", "_shared")
    _value: np.ndarray[Any, Any] | None
    _buffer: Any
    _shared: bool  # set by ``share`` alone


class ConcreteArray(UnsealedArray, OnDevices, Exchanged, OwnCopy):
    """An array whose data are known. Created by ``concrete`` and ``from_buffers``; immutable."""

    __slots__ = ()
    _guard = ("array: arrays", "x.at[i].set(y) makes a new one.")

    @property
    def value(self) -> np.ndarray[Any, Any]:
        """The data as a NumPy array, read from the device on first use. Internal: users get read-only views of it."""
        value = self._value
        return self._read_buffer() if value is None else value

    def _read_buffer(self) -> np.ndarray[Any, Any]:
        value = LaterLayers.backend.to_numpy(self._buffer, self.type)
        _set_value(self, value)
        return value

    @property
    def buffer(self) -> Any:
        """The data as a device buffer, transferred on first use."""
        buffer = self._buffer
        if buffer is None:
            buffer = LaterLayers.backend.to_buffer(self._value, self.type)
            _set_buffer(self, buffer)
        return buffer

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if isinstance(self.type.dtype, dtypes.ExtendedDType):
            raise self._keys_error("numpy")
        value = self.value
        if dtype is not None and np.dtype(dtype) != value.dtype:
            if copy is False:
                raise BadArgument(f"numpy: an array of {self.type} as {np.dtype(dtype)} needs a copy, got copy=False.")
            return value.astype(dtype)
        if copy:
            return value.copy()
        owner: Any = value
        while isinstance(owner, np.ndarray):  # while an owner is writeable, NumPy lets its views become so again
            owner.setflags(write=False)
            owner = owner.base
        return value.view()

    def _read(self, name: str) -> np.ndarray[Any, Any]:
        return self.value

    def block_until_ready(self) -> ConcreteArray:
        if self._buffer is not None:
            LaterLayers.backend.block(self._buffer)
        return self

    def is_ready(self) -> bool:
        return self._buffer is None or LaterLayers.backend.is_ready(self._buffer)

    def is_deleted(self) -> bool:
        return self._value is None and LaterLayers.backend.is_deleted(self._buffer)

    def delete(self) -> None:
        """Free the data now; a later use raises DeletedArray. Does nothing to an array that ``share`` was called on."""
        if not is_shared(self):
            LaterLayers.backend.delete(self.buffer)
            _set_value(self, None)

    def unsafe_buffer_pointer(self) -> int:
        """The address of the data on the device, which a program to which they are donated can give to its result."""
        if self._buffer is None:  # memory of NumPy is no program's to write to
            _set_buffer(self, LaterLayers.backend.duplicate(self.buffer))
            _set_value(self, None)
        return super().unsafe_buffer_pointer()

    def copy_to_host_async(self) -> None:
        """Does nothing: the transfer starts and ends when the array is read."""

    def __bool__(self) -> bool:
        if isinstance(self.type.dtype, dtypes.ExtendedDType):
            raise self._keys_error("bool")
        if self.type.shape and self.type.size != 1:
            raise RankMismatch(
                f"bool: only an array of one element is true or false, got {self.type}.",
                hint="x.any(), x.all(), or x.size > 0.",
            )
        return bool(self.value)

    def _scalar(self, name: str) -> np.ndarray[Any, Any]:
        """The data of an array of rank 0, for Python's conversions to numbers.

        Raises: RankMismatch: the rank is not 0. DTypeMismatch: it is a random key.
        """
        if self.type.shape:
            raise RankMismatch(
                f"{name}: only an array of rank 0 is a Python number, got {self.type}.",
                hint="index first, x[0], or x.item() where it has one element.",
            )
        if isinstance(self.type.dtype, dtypes.ExtendedDType):
            raise self._keys_error(name)
        return self.value

    def __index__(self) -> int:
        if not dtypes.is_integer(self.type.dtype):
            raise DTypeMismatch(
                f"index: Python needs an integer here, got {self.type}.", hint="convert with int(x) or x.astype(int)."
            )
        return int(self._scalar("int"))

    def __format__(self, spec: str) -> str:
        if isinstance(self.type.dtype, dtypes.ExtendedDType):
            return format(repr(self), spec)
        value = self.value[()] if self.type.shape == () else self.value
        if spec and self.type.shape:
            raise RankMismatch(
                f"format: {spec!r} formats numbers, got {self.type}.",
                hint="format its elements, or numpy.array2string.",
            )
        return format(value, spec)

    def __repr__(self) -> str:
        if self._buffer is not None and not self._is_here:
            return f"Array(shape={self.type.shape}, dtype={self.type.dtype})"
        if isinstance(self.type.dtype, dtypes.ExtendedDType):
            return f"Array({self.type.shape}, dtype={self.type.dtype}) overlaying:\n{self.value}"
        text = np.array2string(self.value, separator=", ", prefix="Array(", suffix=")")
        shape = "" if self.size or self.type.shape == (0,) else f", shape={self.type.shape}"
        weak = ", weak_type=True" if self.type.weak else ""
        return f"Array({text}{shape}, dtype={self.type.dtype.name}{weak})"

    def __str__(self) -> str:
        return repr(self) if isinstance(self.type.dtype, dtypes.ExtendedDType) else str(self.value)

    def __iter__(self) -> Iterator[Any]:
        if not self.type.shape:
            raise no_rows_error(self.type)
        if self._buffer is not None and self.committed:
            return iter(LaterLayers.backend.rows(self))
        row_type = array_type(self.type.shape[1:], self.type.dtype, self.type.weak)
        return iter([concrete(row_type, np.asarray(row)) for row in self.value])

    def __reduce__(self) -> Any:
        return concrete, (self.type.cut_by(self.type.cut and self.type.cut.whole), np.array(self.value))


_set_value = setter(UnsealedArray, "_value")
_set_buffer = setter(UnsealedArray, "_buffer")
_set_shared = setter(UnsealedArray, "_shared")


def concrete(type: ArrayType, value: np.ndarray[Any, Any] | None, buffer: Any = None) -> ConcreteArray:
    """The concrete array of this type with these data, which the caller must not write to afterwards."""
    new = UnsealedArray()
    new.type = type
    new._value = value
    new._buffer = buffer
    new.__class__ = ConcreteArray
    return new  # type: ignore[return-value]


def second(x: ConcreteArray) -> ConcreteArray:
    """Another array with the same data, told from ``x`` by its identity."""
    return concrete(x.type, x._value, x._buffer)


def duplicate(x: Any) -> Any:
    """A copy of a concrete array that shares no memory with it, so that either may be donated; a box as it is."""
    if not isinstance(x, ConcreteArray):
        return x
    if x._value is not None and not x.committed:
        return concrete(x.type, x._value.copy())
    return concrete(x.type, None, LaterLayers.backend.duplicate(x.buffer))


def unaliased(xs: Sequence[Any], others: Sequence[Any] = ()) -> Sequence[Any]:
    """``xs``, an array that is one before it, or one of ``others``, replaced by a copy: each can be deleted alone.

    Boxes stay as they are, and arrays that ``share`` was called on, whose data neither ``delete`` nor donation frees.
    """
    if len(xs) == 1 and all([y is not xs[0] for y in others]):  # as the rest, faster
        return xs
    if len({*map(id, xs), *map(id, others)}) == len(xs) + len(others):
        return xs
    seen, apart = set(map(id, others)), []
    for x in xs:
        apart.append(duplicate(x) if id(x) in seen and not is_shared(x) else x)
        seen.add(id(x))
    return apart


def from_buffers(types: Iterable[ArrayType], buffers: Iterable[Any]) -> list[ConcreteArray]:
    """``[concrete(t, None, b) for t, b in zip(types, buffers)]``, with the calls inlined for speed."""
    arrays: list[Any] = []
    unsealed, sealed = UnsealedArray, ConcreteArray
    for type, buffer in zip(types, buffers):
        new = unsealed()
        new.type = type
        new._value = None
        new._buffer = buffer
        new.__class__ = sealed
        arrays.append(new)
    return arrays


ErrorClass = type[HandlaxError]  # inside a class with an attribute ``type``, that name is not the builtin


class Box(OnNoDevice, Array):
    """An array that a run owns, and pairs with data of its own: a tangent, a batch dimension, a variable of a program.

    Its value is unknown to Python: conversions to Python and NumPy values raise ``ConcretizationError``.
    """

    __slots__ = ("type", "run")
    type: ArrayType
    run: Run
    __array_priority__ = 1000

    def __init__(self, run: Run, type: ArrayType):
        self.run = run
        self.type = type

    @property
    def _trace(self) -> Run:  # as libraries that have interpreters of their own call it
        return self.run

    @property
    def shape(self) -> tuple[Any, ...]:
        return read(*self.type.shape) if self.type.ragged else self.type.shape

    @property
    def size(self) -> Any:
        return read(self.type.size)[0] if self.type.ragged else self.type.size

    @property
    def made_at(self) -> Site:
        """The user's line at which the box was created."""
        return NOWHERE

    @property
    def made_by(self) -> Any:
        """The operation whose result it is, where that is recorded; else None."""
        return None

    @property
    def arguments(self) -> list[str]:
        """The names of the arguments of the traced function on which the value depends; none where they are unknown."""
        parts = [getattr(self, slot, None) for kind in type(self).__mro__ for slot in getattr(kind, "__slots__", ())]
        return list(dict.fromkeys([name for part in parts if isinstance(part, Box) for name in part.arguments]))

    @property
    def origin(self) -> str:
        """The arguments on which the value depends, for messages: ``, which depends on x``; empty if unknown."""
        names = self.arguments
        return f", which depends on {some_of(names)}" if names else ""

    @property
    def described(self) -> str:
        """The type, the transformation and the origin, for messages."""
        return f"{self.type} under {self.run.described}{self.origin}"

    def _unknown(self, error: ErrorClass, what: str, hint: str) -> Any:
        hint = self.run.advice or hint
        raise error(f"{what}, got {self.described}, made at {self.made_at}.", hint=hint)

    def __bool__(self) -> bool:
        return self._unknown(
            TracerBoolConversionError,
            "bool: a Python condition needs a known value",
            "if: hx.lax.cond, hx.numpy.where; while: hx.lax.while_loop; or make the argument static (static_argnums).",
        )

    def __index__(self) -> int:
        return self._unknown(
            TracerIntegerConversionError,
            "index: Python needs a known integer here",
            "index by lax.dynamic_slice, loop by lax.fori_loop, or make the argument static (static_argnums).",
        )

    def _scalar(self, name: str) -> Any:
        hint = f"keep it an array: astype, numpy.stack, a.at[i].set(x); or move {name}() outside of the function."
        return self._unknown(ConcretizationTypeError, f"{name}: a Python number needs a known value", hint)

    _read = _scalar

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self._unknown(
            TracerArrayConversionError,
            "numpy: only arrays with known values can be passed to NumPy",
            "use the function of the same name in hx.numpy.",
        )

    def block_until_ready(self) -> Box:
        return self

    def __copy__(self) -> Box:
        return self

    def __deepcopy__(self, memo: object) -> Box:
        return self

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        field = "{}" if self.type.shape else f"{{:{spec}}}"
        hint = f'hx.debug.print("{field}", x) prints the value where the program is executed.'
        return self._unknown(ConcretizationTypeError, f"format: {spec!r} formats a known value", hint)

    def __repr__(self) -> str:
        return f"Box<{self.type}> of {self.run.described}"

    def __iter__(self) -> Iterator[Any]:
        if not self.type.shape:
            raise no_rows_error(self.type)
        return (self[i] for i in range(self.type.shape[0]))


def no_rows_error(type: ArrayType) -> RankMismatch:
    """The error of iterating over an array of rank 0."""
    return RankMismatch(f"iter: an array of rank 0 has no rows, got {type}.", hint="x.item() is its number.")


def from_numpy(x: np.ndarray[Any, Any], *, copy: bool | None = None) -> ConcreteArray:
    """The array of NumPy's data: a copy unless ``copy=False``.

    Raises: BadArgument: the array is masked, so that some of its elements have no value.
    """
    if x.__class__ is not np.ndarray:
        x = without_subclass(x)
    dtype = dtypes.canonicalize_dtype(x.dtype)
    if x.dtype is not dtype and x.dtype != dtype:
        x = x.astype(dtype)
    elif copy is not False:  # of read-only data too: a view made before may be writeable
        x = x.copy()
    return concrete(array_type(x.shape, dtype), x)


def without_subclass(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The data of an ``np.matrix``, ``np.memmap`` or other subclass as a plain array, whose arithmetic is NumPy's.

    Raises: BadArgument: the array is masked.
    """
    if isinstance(x, np.ma.MaskedArray):
        raise BadArgument(
            "array: every element must have a value, got a masked array.",
            hint="x.filled(value), or x.data with where=~x.mask.",
        )
    return np.asarray(x)


def share(x: ConcreteArray) -> ConcreteArray:
    """``x``, flagged as an array that the package keeps and may return again: a number, a constant of a program.

    From now on ``x.delete()`` does nothing, and a call to which ``x`` is donated gets a copy of its data.
    """
    _set_shared(x, True)
    return x


def is_shared(x: Array) -> bool:
    """Whether ``share`` was called on this array: ``delete`` and donation leave its data alone."""
    return hasattr(x, "_shared")


_CONSTANTS = Cache("numbers")
"""Arrays of rank 0 by Python type, number, dtype and weakness."""


def scalar(value: Any, dtype: Any = None, weak: bool = False) -> ConcreteArray:
    """The array of rank 0 of a Python or NumPy number, interned: equal numbers of equal dtype are one object.

    Without a dtype it has the default one of its class, weakly; with one it is rounded once, from its full value.
    """
    kind = type(value)
    if kind not in PYTHON_NUMBERS:
        if dtype is None:
            dtype, weak = dtypes.scalar_type(value)
        value = python_number(value, dtype)
        kind = type(value)
    if dtype is None and config.CONFIG.get().settings is not config.DEFAULT:
        dtype, weak = dtypes.scalar_type(value)  # default dtypes depend on the settings
    key = (kind, value, dtype, weak)
    if kind is complex or (value == 0 and kind is not int):
        key = (kind, repr(value), dtype, weak)  # -0.0 == 0.0, in either part of a complex number
    constant = _CONSTANTS.entries.get(key)
    if constant is None:
        if dtype is None:
            dtype, weak = dtypes.scalar_type(value)
        constant = share(concrete(array_type((), dtype, weak), number_data(value, dtype)))
        if kind is not int or not dtypes.is_integer(dtype) or dtypes.holds(dtype, value):
            _CONSTANTS.add(key, constant)  # whether others may wrap around depends on the settings
    return constant


_LISTS = "hx.numpy.array makes an array of nested lists."
PYTHON_NUMBERS: frozenset[type] = frozenset((bool, int, float, complex))


# Classes of arrays -> the array of an instance, or what is one; and its type. Libraries add classes of their own.
CONVERSIONS: dict[type, Callable[[Any], Any]] = {np.ndarray: from_numpy}
TYPE_RULES: dict[type, Callable[[Any], ArrayType]] = {
    np.ndarray: lambda x: array_type(x.shape, dtypes.canonicalize_dtype(x.dtype))
}
"""The type of an instance of each of these classes, as arguments of transformations; libraries add their own."""


def as_array(x: Any) -> Array:
    """``x`` as an array: an array itself, a Python or NumPy number, a copy of a NumPy array, random keys of JAX's.

    Raises: NotAnArray: ``x`` is neither a number nor an array; its class may say by ``__array_hint__`` what to do.
    EscapedBox: it is a traced value of another library.
    """
    if isinstance(x, Array):
        return x
    if type(x) in PYTHON_NUMBERS:
        return scalar(x)
    convert = CONVERSIONS.get(type(x))
    if convert is not None:
        made = convert(x)
        return made if isinstance(made, Array) else as_array(made)
    if isinstance(x, np.ndarray):
        return from_numpy(x)
    if isinstance(x, np.generic):
        return scalar(x)
    if hasattr(type(x), "_trace") and hasattr(type(x), "aval"):  # of the class: a wrapper may forward those of an array
        raise EscapedBox(
            f"array: a value that JAX traces is no operand of handlax, got {type(x).__name__} of type {x.aval}.",
            hint="hx.interop.jax.to_jax(f) is a function of handlax that JAX can trace; arrays of handlax that a "
            "function of JAX's needs are passed as arguments of from_jax(f).",
        )
    for protocol in ("__handlax_array__", "__jax_array__"):
        convert = getattr(type(x), protocol, None)
        if convert is not None:
            return as_array(convert(x))
    if dtypes.is_number_class(x.__class__):  # subclasses: enums and the like
        return scalar(x)
    exports = hasattr(type(x), "__dlpack__")
    if hasattr(type(x), "__array__") and not isinstance(x, (str, bytes)):
        try:
            return from_numpy(np.asarray(x))
        except TypeError:  # of some libraries: NumPy has no such dtype, or the memory is on a GPU
            keys = known_key_dtype(getattr(x, "dtype", None))
            if keys is not None and hasattr(x, "_base_array"):  # their words
                return concrete(array_type(tuple(x.shape), keys), np.asarray(as_array(x._base_array)))
            if not exports:
                raise
    if exports:
        return LaterLayers.imported(x)
    function, argument = called_with(x)
    needed = f"{argument} must be a number or an array" if argument else "a number or an array is needed"
    raise NotAnArray(
        f"{function or 'array'}: {needed}, got {type(x).__name__} {shortened(repr(x), 60)}.",
        hint=_LISTS if isinstance(x, (list, tuple)) else getattr(type(x), "__array_hint__", None),
    )


def is_number(x: Any) -> bool:
    """Whether ``x`` is a number whose class specifies no width: it takes the dtype of the arrays that it meets."""
    return type(x) in PYTHON_NUMBERS or dtypes.is_adaptable_class(x.__class__)


def as_arrays(*xs: Any) -> list[Array]:
    """All operands as arrays; numbers take the dtype of the first strong array, else of the first weak one.

    A number of a higher kind than that dtype, such as a float beside integers, keeps its own default dtype.
    """
    operands = [x if isinstance(x, Array) or is_number(x) else as_array(x) for x in xs]
    like: ArrayType | None = None
    for x in operands:
        if isinstance(x, Array) and (like is None or (like.weak and not x.type.weak)):
            like = x.type
    return [array_beside(x, like) for x in operands]


def array_beside(x: Any, like: ArrayType | None) -> Array:
    """``x`` as an array; a number takes the dtype of ``like``, unless its own kind is a higher one."""
    if like is None or not is_number(x):
        return as_array(x)
    rank = _RANKS.get(type(x)) or _RANKS[dtypes.number_type(x)[0]]
    return scalar(x, like.dtype, like.weak) if _RANKS.get(like.dtype, -1) >= rank else scalar(x)


# classes of numbers and dtypes -> the kind of number: each kind represents those of lower rank
_RANKS: Mapping[Any, int] = MappingProxyType(
    {bool: 0, int: 1, float: 2, complex: 3}
    | {d: 0 if d == dtypes.bool_ else 1 for d in (dtypes.bool_, *dtypes.ANY_INTEGER)}
    | {d: 2 if dtypes.is_floating(d) else 3 for d in dtypes.ANY_INEXACT}
)


def perform(op: Any, *operands: Any) -> Any:
    """Send an operation to the innermost handler, its operands converted by ``as_array``; return its result.

    An effect with scopes takes functions first, ``perform(Attempt(), f, x)``, which are recorded.

    Raises: UnhandledEffect: no handler answers the effect. MissingRule: a handler has no rule for the operation.
    BadCall: ``op`` is no operation, or takes another number of operands. NotAnArray: an operand is no array.
    """
    if not isinstance(op, Operation):
        shown = f"the class {op.__name__}" if isinstance(op, type) else type(op).__name__
        new = f"{op.__name__}({', '.join(op._names)})" if isinstance(op, type) and issubclass(op, Operation) else "Op()"
        hint = f"perform({new}, operand, ...), an instance of a class below @hx.effect or @hx.operation."
        raise BadCall(f"perform: an operation is needed, got {shown}.", hint=hint)
    if op.scopes:
        return LaterLayers.perform_scoped(op, *operands)
    for x in operands:
        if not isinstance(x, Array):
            operands = tuple([x if isinstance(x, Array) else as_array(x) for x in operands])
            break
    try:
        y = current().answer(op, operands)
    except TypeError as error:
        if not isinstance(error, HandlaxError):
            _check_operands(op, operands)
        raise
    if not (op.effectful and op.multiple_results):
        return y
    return as_declared(op, tuple([x.type for x in operands]) if operands else (), y)


def _check_operands(op: Any, operands: Sequence[Array]) -> None:
    """Raises BadCall where the operation takes another number of operands."""
    typed = op.result_tree if op.effectful else op.result_type
    try:
        inspect.signature(typed).bind(*operands)
    except TypeError:
        names = ', '.join(inspect.signature(typed).parameters)
        raise BadCall(f"{op.name}: its operands are ({names}), got {len(operands)}.") from None


def type_of(x: Any) -> ArrayType:
    """``as_array(x).type``, computed without a conversion; of an object whose ``type`` is an ArrayType, that type."""
    if isinstance(x, Array):
        return x.type
    if type(x) in PYTHON_NUMBERS:
        return array_type((), *dtypes.scalar_type(x))
    rule = TYPE_RULES.get(type(x))
    if rule is None and isinstance(x, np.ndarray):
        rule = TYPE_RULES[np.ndarray]
    if rule is not None:
        return rule(x)
    said = getattr(x, "type", None)
    return said if isinstance(said, ArrayType) else as_array(x).type

