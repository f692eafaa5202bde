"""Arrays, types and parameters of the two libraries: each value of one as the value of the other that means the same.

    ours(theirs(x)) == x        theirs(ours(y)) == y
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

import numpy as np

from ..effects.base.errors import BadArgument, EscapedBox, NotAnArray, TypeCheckError
from ..effects.base.lazy_module import late_module
from ..effects.base.stack import BASE, inside
from ..effects.core.arrays import Array, as_array
from ..effects.operations.elementwise.conversion import convert
from ..effects.types import dtypes
from ..effects.types.array_type import ArrayType, array_type
from ..effects.types.dtype_families import known_key_dtype
from ..lowering.arrays.imported_arrays import imported
from ..random import key_data
from .jax_modules import jax, jax_primitives

_NAMESPACES = ("", ".lax", ".lax.linalg")  # in which both libraries have their enumerations and records
_WIDE = frozenset(map(np.dtype, ("int64", "uint64", "float64", "complex128")))


# Dtypes and types


def our_dtype(dtype: Any) -> Any:
    """A dtype of JAX's as one of handlax."""
    if isinstance(dtype, np.dtype):
        return dtype
    keys = known_key_dtype(dtype)
    if keys is None:
        raise BadArgument(f"interop.jax: a dtype that both libraries have is needed, got {dtype}.")
    return keys


def their_dtype(dtype: Any) -> Any:
    """A dtype of handlax as one of JAX's."""
    if not isinstance(dtype, dtypes.KeyDType):
        return dtype
    return jax.eval_shape(lambda: jax.random.key(0, impl=dtype.impl.name)).dtype


def our_type(aval: Any) -> ArrayType:
    """The array type of an abstract value of JAX's."""
    if not hasattr(aval, "shape") or not all([isinstance(size, int) for size in aval.shape]):
        raise BadArgument(f"interop.jax: an array of known shape is needed, got a value of type {aval}.")
    dtype = our_dtype(aval.dtype)
    return array_type(tuple(aval.shape), dtype, bool(getattr(aval, "weak_type", False)) and not dtypes.is_bool(dtype))


def type_in_jax(x: Any) -> ArrayType:
    """The array type of a value, or an abstract value, of JAX's."""
    return our_type(x if isinstance(x, jax.core.ShapedArray) else jax.typeof(x))


def their_type(t: ArrayType) -> Any:
    """The ``ShapeDtypeStruct`` of JAX's of an array type. Raises: BadArgument: a size of it is symbolic."""
    if not all([isinstance(size, int) for size in t.shape]):
        raise BadArgument(
            f"interop.jax: an array of known shape is needed, got {t}.",
            hint="JAX traces a function for one size: export it for each, or write it with hx.numpy.",
        )
    return jax.ShapeDtypeStruct(t.shape, their_dtype(t.dtype), weak_type=t.weak)


def with_widths(types: Iterable[ArrayType]) -> Any:
    """The context in which JAX keeps dtypes of 64 bits, if there is one among the types; else one without effect."""
    return jax.enable_x64(True) if any([t.dtype in _WIDE for t in types]) else nullcontext()


# Arrays


def our_array(x: Any) -> Array:
    """An array of JAX's, or what handlax takes as one, as an array of handlax; memory is shared where possible.

    Raises: EscapedBox: it is a traced value of JAX's. NotAnArray: it is no array.
    """
    if not isinstance(x, jax.Array):
        return as_array(x)
    if isinstance(x, jax.core.Tracer):
        raise EscapedBox(
            f"from_jax: a traced value of JAX's has no data that handlax could take, got {x}.",
            hint="to_jax(f) is a function of handlax that JAX can trace.",
        )
    t = our_type(x.aval)
    if dtypes.is_extended(t.dtype):
        return as_array(x)
    try:
        shared = imported(x, copy=False)
    except (BufferError, RuntimeError, TypeError):  # several devices, or a dtype that DLPack does not have
        shared = as_array(np.asarray(x))
    return our_weakness(shared, t)


def our_weakness(x: Array, t: ArrayType) -> Array:
    """A concrete array with the weakness of a type, whatever the handlers in force."""
    with inside(BASE):
        return convert(x, t.dtype, t.weak)


def their_array(x: Any) -> Any:
    """An array of handlax, or what JAX takes as one, as an array of JAX's; memory is shared where possible.

    Raises: EscapedBox: it is a traced value of handlax. NotAnArray: it is no array.
    """
    if isinstance(x, jax.Array):
        return x
    if not isinstance(x, Array):
        try:
            return jax.numpy.asarray(x)
        except TypeError as error:
            raise NotAnArray(f"to_jax: an array or a number is needed, got {type(x).__name__}.") from error
    if x.run is not None:
        raise EscapedBox(
            f"to_jax: a traced value of handlax has no data that JAX could take, got {x.type}.",
            hint="from_jax(f) is a function of JAX's that handlax can trace.",
        )
    if dtypes.is_extended(x.type.dtype):
        with inside(BASE):
            words = key_data(x)
        return jax.random.wrap_key_data(their_array(words), impl=x.type.dtype.impl.name)
    with with_widths([x.type]), jax.ensure_compile_time_eval():
        try:
            y = jax.numpy.from_dlpack(x)
        except (BufferError, RuntimeError, TypeError):  # a dtype that DLPack does not have
            y = jax.numpy.asarray(np.asarray(x))
        return their_weakness(y, x.type)


def their_constant(x: Array) -> Any:
    """A constant of a program as a value of JAX's; a number is one that JAX's programs have as a literal."""
    t = x.type
    if t.shape or dtypes.is_extended(t.dtype) or t.dtype.isbuiltin != 1:
        return their_array(x)
    number = x.item() if t.weak else np.asarray(x)[()]
    return number if type_in_jax(number) == t else their_array(x)


def their_weakness(y: Any, t: ArrayType) -> Any:
    """A value of JAX's with the weakness of a type. Raises: TypeCheckError: it has another shape or dtype."""
    found = type_in_jax(y)
    if (found.shape, found.dtype) != (t.shape, t.dtype):
        raise TypeCheckError(f"to_jax: a result must be {t}, JAX gives {found}.")
    if found.weak == t.weak:
        return y
    return jax_primitives()["convert_element_type"].bind(y, new_dtype=t.dtype, weak_type=t.weak, sharding=None)


# Parameters


def _namesake(value: Any, root: str) -> Any:
    """The class in the namespaces of ``root`` that has the name of the class of ``value``.

    Raises: BadArgument: there is none.
    """
    name = type(value).__name__
    for namespace in _NAMESPACES:
        found = getattr(late_module(f"{root}{namespace}"), name, None)
        if found is not None:
            return found
    raise BadArgument(f"interop.jax: a value that both libraries have is needed, got {value!r}.")


def translated(value: Any, root: str, change: Callable[[Any], Any]) -> Any:
    """A parameter as the other library, ``root``, has it; ``change`` gives programs, functions and dtypes, or None.

    A tuple is translated element by element, an enumeration and a named tuple to those of the same name; an integer of
    NumPy's becomes one of Python's.
    """
    changed = change(value)
    if changed is not None:
        return changed
    foreign = type(value).__module__.partition(".")[0] in ("jax", "jaxlib", "handlax")
    if isinstance(value, enum.Enum) and foreign:
        return _namesake(value, root)[value.name]
    if isinstance(value, (tuple, list)):
        items = [translated(item, root, change) for item in value]
        return _namesake(value, root)(*items) if hasattr(value, "_fields") else tuple(items)
    return int(value) if isinstance(value, np.integer) else value
