"""Types of arrays, ``f32[3]``: interned, so that equality is identity, and the hash is that of the object."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from enum import Enum
from math import prod
from typing import Any, ClassVar

import numpy as np

from ..base.errors import ShapeMismatch, ShardingTypeError
from ..base.immutables import ImmutableObject, setter
from ..base.later_layers import LaterLayers
from .dtype_families import ANY_INEXACT, ExtendedDType, float0, short_name
from .dtypes import named
from .extent import SYMBOLIC, Extent, as_size
from .lengths import read
from .manual_axis_type import ManualAxisType
from .sized import Sized, declared_shape, extents_in, with_sizes

Shape = tuple[int, ...]


class Space(Enum):
    """Where data lie: in the memory that a device computes in, or in its host's, which the device can read.

    ``device_put(x, Space.Host)`` moves an array, inside of programs too. ``Any`` is no place to move to.
    """

    Device = "device"
    Host = "host"
    Any = "any"

    __hash__ = object.__hash__  # not of the name, by a call: types are looked up by it

    def __repr__(self) -> str:
        return f"Space.{self.name}"


class ArrayType(ImmutableObject, Sized):
    """The type of an array: shape, dtype, and whether it is weak (``weak_type``). Equal types are the same object.

    ``varying``: in a program that each device of a mesh executes, the axes of the mesh, with their sizes, along which
    each has a value of its own; along all others it is the same on each. Where the cut is unreduced along such an axis
    the values are summands, of which the sum counts; where it is reduced they are equal, and their cotangents summands.
    ``cut``: how the value is cut over the devices of a mesh, a ``NamedSharding`` over the abstract mesh that names
    explicit axes and has an entry for each dimension; None: along no explicit axis. Where the compiler chooses, the
    entry is UNCONSTRAINED, in texts ``8@?``. Partial sums are ``f32[8]{U:a}``, values of partial cotangents ``{R:a}``.
    ``memory_space``: where the value lies, in texts ``f32<host>[3]`` where that is not the device's own memory.
    ``placed``: whether one of these three says something. ``mat``: what each device of a mesh has of the value, along
    the axes that ``shard_map`` divides.

    >>> ArrayType((3,), "float32"), ArrayType((3,), np.float32) is ArrayType((3,), np.dtype("float32"))
    (f32[3], True)
    """

    __slots__ = (
        "shape", "dtype", "weak", "varying", "cut", "memory_space", "placed", "mat", "size", "nbytes", "__weakref__"
    )
    _guard = ("types", "t.update(shape=..., dtype=...) makes another one.")
    shape: Shape
    dtype: Any
    weak: bool
    varying: frozenset[tuple[Hashable, int]]
    cut: Any
    memory_space: Space
    placed: bool
    mat: ManualAxisType
    size: int
    nbytes: int
    ragged: ClassVar[bool] = False  # whether a dimension is symbolic

    def __new__(
        cls, shape: Sequence[int], dtype: Any, weak: bool = False, *, weak_type: bool = False, sharding: Any = None
    ) -> ArrayType:
        return stated(array_type(declared_shape(cls.__name__, shape), named(dtype), weak or weak_type), sharding)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def weak_type(self) -> bool:
        return self.weak

    @property
    def vma(self) -> frozenset[Hashable]:
        """The names of the axes along which the value varies, other than as a summand or a reduced copy."""
        return self.mat.varying

    @property
    def manual_axis_type(self) -> ManualAxisType:
        """``mat``, by its long name."""
        return self.mat

    @property
    def manual(self) -> frozenset[Hashable]:
        """The names of the axes in ``varying``."""
        return frozenset([name for name, _ in self.varying])

    @property
    def sharding(self) -> Any:
        """The cut over the mesh in force, whose manual axes it no longer names; without a cut, P(None, ...)."""
        return LaterLayers.in_force(self.cut, self.ndim)

    def extents(self) -> list[Extent]:
        return extents_in(self.shape)

    def with_sizes(self, size: Callable[[Extent], int]) -> ArrayType:
        return self.update(shape=with_sizes(self.shape, size))

    def update(
        self, shape: tuple[int, ...] | None = None, dtype: Any = None, weak: bool | None = None, *,
        weak_type: bool | None = None, sharding: Any = None,
    ) -> ArrayType:
        """The same type with another shape, dtype, weakness, which is named ``weak`` or ``weak_type``, or sharding; one
        of another shape states no cut.
        """
        weak = weak_type if weak is None else weak
        shape = self.shape if shape is None else shape
        dtype = self.dtype if dtype is None else dtype
        cut = self.cut if sharding is None and shape == self.shape else None
        weak = self.weak if weak is None else weak
        new = array_type(shape, dtype, weak, self.varying, cut, self.memory_space)
        return new if sharding is None else stated(new, sharding)

    def along(self, varying: frozenset[tuple[Hashable, int]]) -> ArrayType:
        """The same type, varying along these axes."""
        if varying == self.varying:
            return self
        return array_type(self.shape, self.dtype, self.weak, varying, self.cut, self.memory_space)

    def cut_by(self, cut: Any) -> ArrayType:
        """The same type with this cut, or None."""
        if cut is self.cut:
            return self
        return array_type(self.shape, self.dtype, self.weak, self.varying, cut, self.memory_space)

    @property
    def dual(self) -> ArrayType:
        """The type of cotangents: partial sums where the value is whole by its type, and vice versa."""
        return self.cut_by(self.cut.dual) if self.cut is not None and are_added(self.dtype) else self

    def lying_in(self, space: Space) -> ArrayType:
        """The same type of a value in this memory."""
        if space is self.memory_space:
            return self
        return array_type(self.shape, self.dtype, self.weak, self.varying, self.cut, space)

    def with_dimension(self, d: int, size: Any) -> ArrayType:
        """The type of ``size`` such values, stacked along a new dimension ``d``, which is not cut."""
        shape, cut = self.shape, self.cut and self.cut.with_dimension(d)
        return array_type((*shape[:d], size, *shape[d:]), self.dtype, self.weak, self.varying, cut, self.memory_space)

    def without_dimension(self, d: int) -> ArrayType:
        """The type of the slices along dimension ``d``."""
        shape, cut = self.shape, self.cut and self.cut.without_dimension(d)
        return array_type(shape[:d] + shape[d + 1 :], self.dtype, self.weak, self.varying, cut, self.memory_space)

    def strong(self) -> ArrayType:
        """The same type, not weak."""
        if not self.weak:
            return self
        return array_type(self.shape, self.dtype, False, self.varying, self.cut, self.memory_space)

    def tangent(self) -> ArrayType:
        """The type of tangents and cotangents: itself where the dtype is inexact, in the device's memory; else of
        ``float0``.
        """
        return self.lying_in(Space.Device) if self.dtype in ANY_INEXACT else array_type(self.shape, float0, self.weak)

    def str_short(self) -> str:
        return str(self)

    # the names of a ShapedArray
    strip_weak_type = strong
    to_tangent_aval = to_ct_aval = at_least_vspace = tangent

    def __str__(self) -> str:
        summed = frozenset[Hashable]() if self.cut is None else self.cut.spec.summed_axes
        return self._text([axis for axis in self.varying if axis[0] not in summed])

    @property
    def exact_text(self) -> str:
        """The text of which no other type has the same: ``{a:2,U:a}`` where a device in ``shard_map`` has a summand."""
        return self._text(self.varying)

    def _text(self, varying: Iterable[tuple[Hashable, int]]) -> str:
        sizes = map(str, self.shape) if self.cut is None else self.cut.cut_sizes(self.shape)
        space = "" if self.memory_space is Space.Device else f"<{self.memory_space.value}>"
        plain = f"{short_name(self.dtype)}{space}[{','.join(sizes)}]" + ("~" if self.weak else "")
        if not self.placed:
            return plain
        along = [f"{name}:{size}" for name, size in sorted(varying, key=str)]
        along += [] if self.cut is None else self.cut.summed_axes()
        return f"{plain}{{{','.join(along)}}}" if along else plain

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        return array_type, (self.shape, self.dtype, self.weak, self.varying, self.cut, self.memory_space)


class SymbolicType(ArrayType):
    """The type of an array with a symbolic dimension. Within the package ``shape`` and ``size`` hold ``Extent``s, for a
    user's code ``Length``s, which belong to a mapped axis.
    """

    __slots__ = ()
    ragged = True

    @property
    def shape(self) -> Any:  # type: ignore[override]
        return read(*_SHAPE(self))

    @property
    def size(self) -> Any:  # type: ignore[override]
        return read(_SIZE(self))[0]

    @property
    def nbytes(self) -> Any:  # type: ignore[override]
        return read(_NBYTES(self))[0]

    def extents(self) -> list[Any]:
        return [*read(*extents_in(_SHAPE(self)))]


_SHAPE, _SIZE, _NBYTES = [ArrayType.__dict__[name].__get__ for name in ("shape", "size", "nbytes")]
INVARIANT: frozenset[tuple[Hashable, int]] = frozenset()
_THE_SAME = ManualAxisType()
_SETTERS = tuple([setter(ArrayType, name) for name in ArrayType.__slots__ if name != "__weakref__"])
_INTERNED: dict[tuple[Any, ...], ArrayType] = {}


def array_type(
    shape: tuple[int, ...], dtype: Any, weak: bool = False, varying: frozenset[tuple[Hashable, int]] = INVARIANT,
    cut: Any = None, space: Space = Space.Device,
) -> ArrayType:
    """The interned type of this shape (ints and ``Extent``s), dtype (or scalar type, or name) and weakness.

    Raises: ShapeMismatch: it has 2**63 bytes or more. ShardingTypeError: it is unreduced, and not of numbers.
    """
    key = (shape, dtype, weak, varying, cut, space)
    cached = _INTERNED.get(key)
    if cached is not None:
        return cached
    if not isinstance(dtype, np.dtype | ExtendedDType):
        return _INTERNED.setdefault(key, array_type(shape, np.dtype(dtype), weak, varying, cut, space))
    sizes = tuple([as_size(size) if isinstance(size, SYMBOLIC) else int(size) for size in shape])
    new: ArrayType = object.__new__(SymbolicType if Extent in map(type, sizes) else ArrayType)
    size = prod(sizes)
    if type(new) is ArrayType and max(size, *sizes, 0) * int(dtype.itemsize) >= 2**63:
        raise ShapeMismatch(f"an array must have fewer than 2**63 bytes, got {short_name(dtype)}{list(sizes)}.")
    placed = bool(varying or cut) or space is not Space.Device
    mat = _manual_axis_type(varying, cut) if varying else _THE_SAME
    values = (sizes, dtype, bool(weak), varying, cut, space, placed, mat, size, size * int(dtype.itemsize))
    for assign, value in zip(_SETTERS, values):
        assign(new, value)
    if cut is not None and cut.unreduced and not are_added(new.dtype):
        raise ShardingTypeError(
            f"unreduced: partial sums must be of numbers, got {new}.", hint="leave the axes out of unreduced.")
    # setdefault: two threads that create the same type get one object
    new = _INTERNED.setdefault((sizes, new.dtype, new.weak, varying, cut, space), new)
    return new


def _manual_axis_type(varying: frozenset[tuple[Hashable, int]], cut: Any) -> ManualAxisType:
    names = frozenset([name for name, _ in varying])
    if cut is None:
        return ManualAxisType(varying=names)
    unreduced, reduced = names & cut.spec.unreduced, names & cut.spec.reduced
    return ManualAxisType(varying=names - unreduced - reduced, unreduced=unreduced, reduced=reduced)


def are_added(dtype: Any) -> bool:
    """Whether values of this dtype have sums, as booleans and random keys have not."""
    return not isinstance(dtype, ExtendedDType) and dtype.kind != "b"


class OfArrayType:
    """Base class of values that are described by an array type ``aval`` without being arrays, such as recorded
    variables.
    """

    __slots__ = ()
    aval: ArrayType

    @property
    def shape(self) -> Shape:
        return read(*self.aval.shape) if self.aval.ragged else self.aval.shape

    @property
    def dtype(self) -> Any:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return len(self.aval.shape)

    @property
    def size(self) -> int:
        return read(self.aval.size)[0] if self.aval.ragged else self.aval.size


def as_array_type(declared: Any) -> ArrayType:
    """The array type that anything with ``shape`` and ``dtype`` describes: a ``ShapeDtypeStruct``, an array."""
    if isinstance(declared, ArrayType):
        return declared
    weak, sharding = getattr(declared, "weak_type", False), getattr(declared, "sharding", None)
    return stated(array_type(tuple(declared.shape), declared.dtype, weak), sharding)


def stated(t: ArrayType, sharding: Any) -> ArrayType:
    """The type as a value has it that has this sharding: with its cut and its memory; another's, or None, says nothing.
    """
    cut = getattr(sharding, "cut", None)
    return t if cut is None else t.cut_by(cut(t.ndim)).lying_in(sharding.memory_space or t.memory_space)


float32 = np.dtype("float32")
BOOL = np.dtype("bool")
