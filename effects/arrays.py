"""Arrays: immutable values that operations take and give.

``Array`` is what every value is: a concrete array, or a box of some run. Infix operators and methods perform
operations (they are attached by the families that define those operations). A concrete array holds its data as NumPy,
as a device buffer, or both; ``Backend`` is the protocol by which the device side is reached.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from . import config, dtypes, stack, trees
from .errors import (
    BadArgument,
    BadCall,
    ConcretizationTypeError,
    DTypeMismatch,
    HandlaxError,
    Immutable,
    IntegerOverflow,
    NotAnArray,
    RankMismatch,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
)
from .slots import setter
from .sources import NOWHERE, Site
from .stack import Run
from .types import ArrayType, array_type


class Array:
    """A value: ``type`` is its shape, dtype and weakness; ``run`` is the run whose box it is, None when concrete."""

    __slots__ = ("__weakref__",)
    type: ArrayType
    run: Run | None = None
    __array_priority__ = 100

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def dtype(self) -> Any:
        return self.type.dtype

    @property
    def ndim(self) -> int:
        return len(self.type.shape)

    @property
    def size(self) -> int:
        return math.prod(self.type.shape)

    @property
    def nbytes(self) -> int:
        return self.type.nbytes

    @property
    def itemsize(self) -> int:
        return int(self.type.dtype.itemsize)

    @property
    def weak_type(self) -> bool:
        return self.type.weak

    @property
    def aval(self) -> ArrayType:
        return self.type

    def __len__(self) -> int:
        if not self.type.shape:
            raise RankMismatch(f"len: an array of rank 0 has no length, got {self.type}.", hint="x.size is 1.")
        return self.type.shape[0]

    __hash__ = None  # type: ignore[assignment]

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return _Installed.namespace


class Backend(Protocol):
    """How concrete arrays reach a device."""

    def to_numpy(self, buffer: Any, type: ArrayType) -> np.ndarray[Any, Any]: ...

    def to_buffer(self, value: np.ndarray[Any, Any], type: ArrayType) -> Any: ...

    def block(self, buffer: Any) -> None: ...

    def devices(self, buffer: Any) -> set[Any]: ...

    def delete(self, buffer: Any) -> None: ...

    def is_deleted(self, buffer: Any) -> bool: ...

    def copy_to_device(self, buffer: Any, type: ArrayType, device: Any) -> Any: ...


class _Installed:
    backend: Backend
    namespace: Any  # the module of array functions, for the array API standard


def install_backend(backend: Backend, namespace: Any) -> None:
    """Called once by the package."""
    _Installed.backend = backend
    _Installed.namespace = namespace


def backend() -> Backend:
    return _Installed.backend


class Unsealed(Array):
    """A concrete array while it is being made: setting its class to ``ConcreteArray``, which adds the guard, seals it.

    Three times cheaper than going round the guard. It has no ``__init__``, and ``ConcreteArray`` no slots of its own:
    each would cost as much as the seal.
    """

    __slots__ = ("type", "_value", "_buffer")
    _value: np.ndarray[Any, Any] | None
    _buffer: Any


class ConcreteArray(Unsealed):
    """An array whose data are known. Made by ``concrete`` and ``from_buffers``; never changed."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> None:
        raise Immutable(f"array: arrays are immutable, {name!r} cannot be set.", hint="x.at[i].set(y) makes a new one.")

    def __delattr__(self, name: str) -> None:
        raise Immutable(f"array: arrays are immutable, {name!r} cannot be deleted.", hint="del x lets go of the array.")

    @property
    def value(self) -> np.ndarray[Any, Any]:
        """The data as NumPy. Never handed out writeable."""
        value = self._value
        return self._read() if value is None else value

    def _read(self) -> np.ndarray[Any, Any]:
        value = _Installed.backend.to_numpy(self._buffer, self.type)
        _set_value(self, value)
        return value

    @property
    def buffer(self) -> Any:
        """The data on the device, put there when first asked for."""
        buffer = self._buffer
        if buffer is None:
            buffer = _Installed.backend.to_buffer(self._value, self.type)  # type: ignore[arg-type]
            _set_buffer(self, buffer)
        return buffer

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if isinstance(self.type.dtype, dtypes.ExtendedDType):
            raise self._no_numbers("numpy")
        value = self.value
        if dtype is not None and np.dtype(dtype) != value.dtype:
            if copy is False:
                raise BadArgument(f"numpy: an array of {self.type} as {np.dtype(dtype)} needs a copy, got copy=False.")
            return value.astype(dtype)
        if copy:
            return value.copy()
        view = value.view()
        view.flags.writeable = False
        return view

    def _no_numbers(self, where: str) -> DTypeMismatch:
        return DTypeMismatch(f"{where}: {self.type} holds keys, no numbers.", hint="random.key_data gives their words.")

    def __dlpack__(self, **kwargs: Any) -> Any:
        # only version 1 can say that the memory is not to be written to
        version = kwargs.get("max_version")
        if version is not None and version[0] >= 1:
            return self.__array__().__dlpack__(**kwargs)
        if kwargs.get("copy") is False:
            raise BufferError("__dlpack__: max_version=(1, 0) or later is needed to share memory that is read-only.")
        return self.__array__(copy=True).__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.value.__dlpack_device__()

    def item(self, *index: int) -> Any:
        return self.value.item(*index)

    def tolist(self) -> Any:
        return self.value.tolist()

    def tobytes(self, order: str = "C") -> bytes:
        return self.value.tobytes(order)  # type: ignore[arg-type]

    def block_until_ready(self) -> ConcreteArray:
        if self._buffer is not None:
            _Installed.backend.block(self._buffer)
        return self

    def is_ready(self) -> bool:
        return True if self._buffer is None else bool(self._buffer.is_ready())

    def is_deleted(self) -> bool:
        return self._value is None and _Installed.backend.is_deleted(self._buffer)

    def delete(self) -> None:
        if self._buffer is not None:
            _Installed.backend.delete(self._buffer)
        else:
            _set_buffer(self, _Installed.backend.to_buffer(self._value, self.type))  # type: ignore[arg-type]
            _Installed.backend.delete(self._buffer)
        _set_value(self, None)

    def devices(self) -> set[Any]:
        return _Installed.backend.devices(self.buffer)

    @property
    def device(self) -> Any:
        (device,) = self.devices()
        return device

    @property
    def is_fully_addressable(self) -> bool:
        return True

    @property
    def is_fully_replicated(self) -> bool:
        return True

    def copy_to_host_async(self) -> None:
        """Nothing to start: reading waits."""

    def __bool__(self) -> bool:
        if isinstance(self.type.dtype, dtypes.ExtendedDType):
            raise self._no_numbers("bool")
        if self.type.shape and self.type.size != 1:
            raise RankMismatch(
                f"bool: only an array of one element is true or false, got {self.type}.",
                hint="x.any(), x.all(), or x.size > 0.",
            )
        return bool(self.value)

    def _scalar(self, name: str) -> np.ndarray[Any, Any]:
        """The value, where Python wants a number. Raises RankMismatch."""
        if self.type.shape:
            raise RankMismatch(
                f"{name}: only an array of rank 0 is a Python number, got {self.type}.",
                hint="index first, x[0], or x.item() where it has one element.",
            )
        if isinstance(self.type.dtype, dtypes.ExtendedDType):
            raise self._no_numbers(name)
        return self.value

    def __int__(self) -> int:
        return int(self._scalar("int"))

    def __float__(self) -> float:
        return float(self._scalar("float"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

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

    def __contains__(self, item: Any) -> bool:
        if isinstance(self.type.dtype, dtypes.ExtendedDType):
            raise self._no_numbers("in")
        return bool(np.any(self.value == np.asarray(item)))

    def __repr__(self) -> str:
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
            raise no_rows(self.type)
        row = array_type(self.type.shape[1:], self.type.dtype, self.type.weak)
        return iter([concrete(row, np.asarray(part)) for part in self.value])

    def __reduce__(self) -> Any:
        return concrete, (self.type, np.array(self.value))

    def __copy__(self) -> ConcreteArray:
        return self

    def __deepcopy__(self, memo: Any) -> ConcreteArray:
        return self


_set_value = setter(Unsealed, "_value")
_set_buffer = setter(Unsealed, "_buffer")


def concrete(type: ArrayType, value: np.ndarray[Any, Any] | None, buffer: Any = None) -> ConcreteArray:
    """The concrete array of this type over this data, which nobody else will write to."""
    new = Unsealed()
    new.type = type
    new._value = value
    new._buffer = buffer
    new.__class__ = ConcreteArray
    return new  # type: ignore[return-value]


def from_buffers(types: Iterable[ArrayType], buffers: Iterable[Any]) -> list[ConcreteArray]:
    """``[concrete(t, None, b) for t, b in zip(types, buffers)]``, without a call for each."""
    made: list[Any] = []
    blank, sealed = Unsealed, ConcreteArray
    for type, buffer in zip(types, buffers):
        new = blank()
        new.type = type
        new._value = None
        new._buffer = buffer
        new.__class__ = sealed
        made.append(new)
    return made


Raised = type[HandlaxError]


class Box(Array):
    """A run's own pairing of a value with its data. Its value is not known to Python."""

    __slots__ = ("type", "run")
    type: ArrayType
    run: Run

    @property
    def made_at(self) -> Site:
        """The user's line where the box was made."""
        return NOWHERE

    def _unknown(self, error: Raised, what: str, hint: str) -> Any:
        raise error(f"{what}, got {self.type} under {self.run.label}, made at {self.made_at}.", hint=hint)

    def __bool__(self) -> bool:
        return self._unknown(
            TracerBoolConversionError,
            "bool: a Python condition needs a known value",
            "use hx.numpy.where or hx.lax.select on values, or make the argument static (static_argnums).",
        )

    def __index__(self) -> int:
        return self._unknown(
            TracerIntegerConversionError,
            "index: Python needs a known integer here",
            "index with hx.numpy or lax.dynamic_slice, or make the argument static (static_argnums).",
        )

    def _scalar(self, name: str) -> Any:
        return self._unknown(
            ConcretizationTypeError,
            f"{name}: a Python number needs a known value",
            f"keep it an array (astype), or move {name}() outside the transformed function.",
        )

    def __int__(self) -> int:
        return self._scalar("int")

    def __float__(self) -> float:
        return self._scalar("float")

    def __complex__(self) -> complex:
        return self._scalar("complex")

    def item(self, *index: int) -> Any:
        return self._scalar("item")

    def tolist(self) -> Any:
        return self._scalar("tolist")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self._unknown(
            TracerArrayConversionError,
            "numpy: only arrays with known values can be given to NumPy",
            "use the function of the same name in hx.numpy.",
        )

    def block_until_ready(self) -> Box:
        return self

    def __repr__(self) -> str:
        return f"Box<{self.type}> of {self.run.label}"

    def __iter__(self) -> Iterator[Any]:
        if not self.type.shape:
            raise no_rows(self.type)
        return (self[i] for i in range(self.type.shape[0]))  # type: ignore[index]


def no_rows(type: ArrayType) -> RankMismatch:
    return RankMismatch(f"iter: an array of rank 0 has no rows, got {type}.", hint="x.item() is its number.")


def _owned(x: np.ndarray[Any, Any]) -> bool:
    """Whether nobody can write to the memory of ``x``: it and all its bases are read-only."""
    base: Any = x
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return False
        base = base.base
    return base is None


def from_numpy(x: np.ndarray[Any, Any], *, copy: bool | None = None, weak: bool = False) -> ConcreteArray:
    """An array of NumPy's data: copied in, unless nobody can write to it or ``copy=False``."""
    dtype = dtypes.canonical(x.dtype)
    if x.dtype is not dtype and x.dtype != dtype:
        x = x.astype(dtype)
    elif copy or (copy is None and not _owned(x)):
        x = x.copy()
    return concrete(array_type(x.shape, dtype, weak), x)


# (kind, bits, dtype, weak) -> constant
_CONSTANTS: dict[Any, ConcreteArray] = {}


def scalar(value: Any, dtype: Any = None, weak: bool = False) -> ConcreteArray:
    """The array of rank 0 for a Python number; equal numbers share one array."""
    kind = type(value)
    if dtype is None and (config.CONFIG.get() or config.PROCESS.settings) is not config.DEFAULT:
        dtype, weak = dtypes.scalar_type(value)  # the defaults are settings
    key = (kind, value, dtype, weak)
    if value == 0 and kind is not int:
        key = (kind, repr(value), dtype, weak)  # -0.0 == 0.0, and False == 0
    found = _CONSTANTS.get(key)
    if found is None:
        if dtype is None:
            dtype, weak = dtypes.scalar_type(value)
        if len(_CONSTANTS) > 4096:
            _CONSTANTS.clear()
        data = np.asarray(value).astype(dtype) if kind is not int else _integer(value, dtype)
        found = _CONSTANTS[key] = concrete(array_type((), dtype, weak), data)
    return found


def _integer(value: int, dtype: Any) -> np.ndarray[Any, Any]:
    """A Python integer in an array's dtype: one that fits the default integers wraps, any other must fit itself."""
    try:
        return np.asarray(value, dtype)
    except OverflowError:
        try:
            return np.asarray(value, dtypes.default_int()).astype(dtype)
        except OverflowError:
            raise IntegerOverflow(
                f"an integer must fit its dtype, got {value} for {dtype}.", hint="convert the array to a wider dtype."
            ) from None


_SCALARS: frozenset[type] = frozenset((bool, int, float, complex))


def lift(x: Any) -> Array:
    """``x`` as an array: arrays as they are, Python and NumPy numbers weak, NumPy arrays copied in.

    Raises: NotAnArray: ``x`` is nothing of the kind.
    """
    if isinstance(x, Array):
        return x
    if type(x) in _SCALARS:
        return scalar(x)
    if isinstance(x, np.ndarray):
        return from_numpy(x)
    if isinstance(x, np.generic):
        dtype, weak = dtypes.scalar_type(x)
        return concrete(array_type((), dtype, weak), np.asarray(x, dtype))
    for protocol in ("__handlax_array__", "__jax_array__"):
        convert = getattr(type(x), protocol, None)
        if convert is not None:
            return lift(convert(x))
    if isinstance(x, (bool, int, float, complex)):  # subclasses: enums and the like
        return scalar(_plain(x))
    if hasattr(type(x), "__array__") and not isinstance(x, (str, bytes)):
        return from_numpy(np.asarray(x))
    if hasattr(type(x), "__dlpack__"):
        return from_numpy(np.from_dlpack(x))
    raise NotAnArray(
        f"array: a number or an array is needed, got {type(x).__name__} {_short(x)}.",
        hint="hx.numpy.array makes an array of nested lists." if isinstance(x, (list, tuple)) else None,
    )


def lift_together(*xs: Any) -> list[Array]:
    """All as arrays; a weak number takes the dtype of the arrays that it stands with."""
    lifted = [x if isinstance(x, Array) else lift(x) for x in xs]
    strong = next((x.type.dtype for x in lifted if not x.type.weak), None)
    weak = strong is None
    if weak:
        strong = next((x.type.dtype for x in xs if isinstance(x, Array)), None)
        if strong is None:
            return lifted
    return [
        y if type(x) not in _SCALARS or y.type.dtype == strong or not _takes(strong, y.type.dtype)
        else scalar(x, strong, weak)
        for x, y in zip(xs, lifted)
    ]


def _takes(dtype: Any, number: Any) -> bool:
    """Whether an array of ``dtype`` keeps its dtype when it meets a Python number of dtype ``number``."""
    return not isinstance(dtype, dtypes.ExtendedDType) and dtypes.promote(dtype, False, number, True)[0] == dtype


def perform(op: Any, *operands: Any) -> Any:
    """Send an operation to the innermost handler; operands are lifted to arrays.

    Raises: UnhandledEffect: nobody answers the effect. MissingRule: a handler met an operation it has no rule for.
    """
    if isinstance(op, type) or not hasattr(op, "effectful"):
        shown = f"the class {op.__name__}" if isinstance(op, type) else type(op).__name__
        raise BadCall(
            f"perform: an operation is needed, got {shown}.", hint="perform(Op(...fields), *operands): make one first."
        )
    for x in operands:
        if not isinstance(x, Array):
            operands = tuple([x if isinstance(x, Array) else lift(x) for x in operands])
            break
    try:
        y = stack.current().answer(op, operands)
    except TypeError as error:
        if not isinstance(error, HandlaxError):
            _check_operands(op, operands)
        raise
    if not op.effectful:
        return y
    tree = op.result_tree(*[x.type for x in operands])
    if tree is None or type(tree) is ArrayType:  # the commonest trees by hand
        return y[0] if y else None
    return trees.unflatten(trees.structure(tree), y)


def _check_operands(op: Any, operands: Sequence[Array]) -> None:
    """Raises BadCall where the operation does not take so many operands."""
    typed = op.result_tree if op.effectful else op.result_type
    try:
        inspect.signature(typed).bind(*operands)
    except TypeError:
        wanted = list(inspect.signature(typed).parameters)
        raise BadCall(f"{op.name}: its operands are ({', '.join(wanted)}), got {len(operands)}.") from None


def _plain(x: Any) -> Any:
    kinds: tuple[Any, ...] = (bool, int, float, complex)
    for kind in kinds:
        if isinstance(x, kind):
            return kind(x)
    return x


def _short(x: Any) -> str:
    text = repr(x)
    return text if len(text) < 60 else text[:57] + "..."


def type_of(x: Any) -> ArrayType:
    """The type of ``x`` as an array, without converting it where that can be avoided."""
    if isinstance(x, Array):
        return x.type
    if type(x) in _SCALARS:
        return array_type((), *dtypes.scalar_type(x))
    if isinstance(x, np.ndarray):
        return array_type(x.shape, dtypes.canonical(x.dtype))
    return lift(x).type

