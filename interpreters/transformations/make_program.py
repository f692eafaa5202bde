"""Python functions recorded as programs: make_program, effects_of and closure_convert."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, ParamSpec, overload

import numpy as np

from ...effects.base.errors import (
    BadArgument,
    DTypeMismatch,
    RankMismatch,
    TreeMismatch,
    need_function,
)
from ...effects.base.immutables import ImmutableObject
from ...effects.base.tracebacks import boundary, unnamed_boundary
from ...effects.base.wrapping import name_of, wraps
from ...effects.control.recorded_bodies import RecordedBody, body_of
from ...effects.core.arrays import Box, as_array, type_of
from ...effects.functions.unsupported import must_be_empty
from ...effects.programs.program import Program
from ...effects.sharding.layout import Format
from ...effects.trees import pytrees
from ...effects.types import dtypes
from ...effects.types.array_type import ArrayType, array_type, stated
from ...effects.types.lengths import held
from ...effects.types.sized import declared_shape
from .derivatives import abstract

F = Callable[..., Any]
P = ParamSpec("P")


class ShapeDtypeStruct(ImmutableObject):
    """A shape and a dtype, accepted in place of an array where only its type is used. Immutable.

    A dtype that arrays cannot have, such as that of bytes, is kept, and refused where the type is used. ``sharding``
    may be a format, which has a layout too.

    >>> ShapeDtypeStruct.like(2.5).update(shape=(3,))
    ShapeDtypeStruct(shape=(3,), dtype=float32, weak_type=True)
    """

    __slots__ = ("shape", "dtype", "weak_type", "sharding", "layout")
    _guard = ("types", "make another: s.update(shape=...).")

    def __init__(self, shape: Sequence[int], dtype: Any, *, sharding: Any = None, weak_type: bool = False):
        if dtype is None:
            raise BadArgument("ShapeDtypeStruct: the dtype must be given, got None.")
        said = sharding if isinstance(sharding, Format) else Format(None, sharding)
        self._fill(
            shape=held(*declared_shape("ShapeDtypeStruct", shape)), dtype=_any_dtype(dtype), weak_type=weak_type,
            sharding=said.sharding, layout=said.layout,
        )

    @classmethod
    def like(cls, x: Any) -> ShapeDtypeStruct:
        """The shape, dtype and weakness of an array, a number, or anything with ``shape`` and ``dtype``; and the
        sharding of a committed array, or that a traced array's type states.
        """
        t = x if hasattr(x, "shape") and hasattr(x, "dtype") else type_of(x)
        if isinstance(x, Box):
            sharding = x.type.cut
        else:
            sharding = getattr(x, "sharding", None) if getattr(x, "committed", True) else None
        return cls(t.shape, t.dtype, weak_type=bool(getattr(t, "weak_type", False)), sharding=sharding)

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """A struct with another ``shape``, ``dtype``, ``weak_type`` or ``sharding``."""
        own = {"shape": self.shape, "dtype": self.dtype, "weak_type": self.weak_type, "sharding": self.format}
        return type(self)(**{**own, **changes})

    shape: tuple[int, ...]
    dtype: Any
    weak_type: bool
    sharding: Any
    layout: Any

    @property
    def format(self) -> Format:
        """The layout and the sharding."""
        return Format(self.layout, self.sharding)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def type(self) -> ArrayType:
        return stated(array_type(self.shape, dtypes.canonical(self.dtype), self.weak_type), self.sharding)

    def __len__(self) -> int:
        if not self.shape:
            raise RankMismatch("len: a shape of rank 0 has no length, got ().", hint="its size is 1.")
        return self.shape[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and all(
            [getattr(self, name) == getattr(other, name) for name in self.__slots__]
        )

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.weak_type, self.sharding, self.layout))

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype}{weak})"


def _any_dtype(dtype: Any) -> Any:
    """A dtype in its canonical form, or as NumPy has it if no array can have it."""
    try:
        return dtypes.named(dtype)
    except DTypeMismatch as refused:
        try:
            return np.dtype(dtype)
        except (TypeError, ValueError, SyntaxError):
            raise refused from None


def trace(
    fun: F, args: tuple[Any, ...], kwargs: dict[str, Any], static: Sequence[int] = (), label: str = "make_program"
) -> RecordedBody:
    """The program that ``fun`` performs on arguments of these types, and the treedef of its results.

    ``static``: positions of arguments that are passed on as Python values. ``label``: what traces, for messages.
    """
    count = len(args)
    fixed = {n % count for n in static} if count else set()
    leaves, tree = pytrees.flatten((tuple([None if n in fixed else x for n, x in enumerate(args)]), kwargs))

    def of_leaves(*boxes: Any) -> Any:
        values, named = pytrees.unflatten(tree, boxes)
        return fun(*[args[n] if n in fixed else x for n, x in enumerate(values)], **named)

    return body_of(name_of(fun), of_leaves, [abstract(x) for x in leaves], label)


@overload
def make_program(
    fun: Callable[P, Any], static_argnums: int | Sequence[int] = (), axis_env: Any = None,
    return_shape: Literal[False] = False, abstracted_axes: Any = None,
) -> Callable[P, Program]: ...
@overload
def make_program(
    fun: Callable[P, Any], static_argnums: int | Sequence[int] = (), axis_env: Any = None, *,
    return_shape: Literal[True], abstracted_axes: Any = None,
) -> Callable[P, tuple[Program, Any]]: ...
def make_program(
    fun: F, static_argnums: int | Sequence[int] = (), axis_env: Any = None, return_shape: bool = False,
    abstracted_axes: Any = None,
) -> F:
    """``make_program(f)(*args)`` is the program that ``f`` performs on arguments of these types. Also ``make_jaxpr``.

    >>> make_program(lambda x: x * 2.0)(1.0).out_avals
    (f32[]~,)
    """
    must_be_empty("make_program", "axis_env", axis_env, "name the axis with vmap(..., axis_name=...) inside.")
    must_be_empty("make_program", "abstracted_axes", abstracted_axes, "sizes are static: make one program for each.")
    static = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)

    @wraps(fun)
    @unnamed_boundary
    def recorded(*args: Any, **kwargs: Any) -> Any:
        program, out_tree = trace(fun, args, kwargs, static)
        return (program, _structs(program, out_tree)) if return_shape else program

    return recorded


def effects_of(fun: F) -> F:
    """``effects_of(f)(*args)`` is the effect row of ``f`` on arguments of these types: what it performs unhandled.

    >>> effects_of(lambda x: x * 2.0)(1.0)
    frozenset()
    """

    @wraps(fun)
    @unnamed_boundary
    def row(*args: Any, **kwargs: Any) -> Any:
        return trace(fun, args, kwargs, label="effects_of")[0].effects

    return row


def _structs(program: Program, out_tree: Any) -> Any:
    structs = [ShapeDtypeStruct(t.shape, t.dtype, weak_type=t.weak) for t in program.out_types]
    return pytrees.unflatten(out_tree, structs)


@boundary
def closure_convert(fun: F, *example_args: Any) -> tuple[F, list[Any]]:
    """A function of ``(*args, *consts)`` without captured boxes, and those constants.

        g, consts = closure_convert(f, x);  g(x, *consts) == f(x)
    """
    return closure_converted("closure_convert", fun, example_args)


def closure_converted(label: str, fun: F, example_args: tuple[Any, ...]) -> tuple[F, list[Any]]:
    """``closure_convert`` for the function ``label``, which errors name."""
    need_function(label, fun)
    program, out_tree = trace(fun, example_args, {}, label=label)
    captured = [i for i, const in enumerate(program.consts) if isinstance(const, Box)]
    _, in_tree = pytrees.flatten(example_args)
    count = len(example_args)

    def converted(*args: Any) -> Any:
        if len(args) != count + len(captured) or pytrees.structure(args[:count]) != in_tree:
            raise TreeMismatch(
                f"{label}: the function takes {in_tree} and {len(captured)} constants, got "
                f"{pytrees.structure(args)}."
            )
        consts = list(program.consts)
        for i, const in zip(captured, args[count:]):
            consts[i] = as_array(const)
        leaves = [as_array(x) for x in pytrees.flatten_up_to(in_tree, args[:count], label)]
        return pytrees.unflatten(out_tree, program.with_consts(consts)(*leaves))

    return converted, [program.consts[i] for i in captured]
