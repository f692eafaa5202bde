"""From functions to programs and types, without running anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..effects import dtypes, trees
from ..effects.arrays import Box, lift
from ..effects.errors import Immutable, need_function
from ..effects.programs import Program
from ..effects.refusals import must_be_empty
from ..effects.sources import user_site
from ..effects.stack import STACK, Run, installed
from ..effects.types import ArrayType, array_type
from ..effects.wrapping import wraps
from .derivatives import abstract
from .record import record

F = Callable[..., Any]


class ShapeDtypeStruct:
    """A shape and a dtype that stand for an array where only its type matters."""

    __slots__ = ("shape", "dtype", "weak_type", "sharding")

    def __init__(self, shape: Sequence[int], dtype: Any, *, sharding: Any = None, weak_type: bool = False):
        for name, value in zip(self.__slots__, (tuple(shape), dtypes.canonical(dtype), weak_type, sharding)):
            object.__setattr__(self, name, value)

    shape: tuple[int, ...]
    dtype: Any
    weak_type: bool
    sharding: Any

    def __setattr__(self, name: str, value: object) -> None:
        raise Immutable.of("types", name, "set", "make another ShapeDtypeStruct.")

    def __delattr__(self, name: str) -> None:
        raise Immutable.of("types", name, "deleted", "make another ShapeDtypeStruct.")

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return self.type.size

    @property
    def type(self) -> ArrayType:
        return array_type(self.shape, self.dtype, self.weak_type)

    def __len__(self) -> int:
        return self.shape[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and self.type is other.type

    def __hash__(self) -> int:
        return hash(self.type)

    def __repr__(self) -> str:
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype})"


def trace(fun: F, args: tuple[Any, ...], kwargs: dict[str, Any], static: Sequence[int] = ()) -> tuple[Program, Any]:
    """The program of ``fun`` on arguments of these types, and the tree of its results."""
    count = len(args)
    fixed = {n % count for n in static} if count else set()
    leaves, tree = trees.flatten((tuple([None if n in fixed else x for n, x in enumerate(args)]), kwargs))
    found: list[Any] = []

    def flat(*boxes: Any) -> Sequence[Any]:
        given, named = trees.unflatten(tree, boxes)
        given = [args[n] if n in fixed else x for n, x in enumerate(given)]
        ys, out_tree = trees.flatten(fun(*given, **named))
        found.append(out_tree)
        return [lift(y) for y in ys]

    program = record(flat, [abstract(x) for x in leaves], getattr(fun, "__name__", "program"))
    return program, found[0]


def make_program(
    fun: F, static_argnums: int | Sequence[int] = (), axis_env: Any = None, return_shape: bool = False,
    abstracted_axes: Any = None,
) -> F:  # fmt: skip
    """``make_program(f)(*args)`` is the program that ``f`` performs on arguments of these types. Also ``make_jaxpr``.

    >>> make_program(lambda x: x * 2.0)(1.0).out_avals
    (f32[]~,)
    """
    must_be_empty("make_program", "axis_env", axis_env, "name the axis with vmap(..., axis_name=...) inside.")
    must_be_empty("make_program", "abstracted_axes", abstracted_axes, "types have known sizes: make one for each.")
    static = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)

    @wraps(fun)
    def made(*args: Any, **kwargs: Any) -> Any:
        program, out_tree = trace(fun, args, kwargs, static)
        return (program, _structs(program, out_tree)) if return_shape else program

    return made


def effects_of(fun: F) -> F:
    """``effects_of(f)(*args)`` is the effect row of ``f`` on arguments of these types: what it performs unhandled.

    >>> effects_of(lambda x: x * 2.0)(1.0)
    frozenset()
    """

    @wraps(fun)
    def row(*args: Any, **kwargs: Any) -> Any:
        return trace(fun, args, kwargs)[0].effects

    return row


def _structs(program: Program, out_tree: Any) -> Any:
    return trees.unflatten(out_tree, [ShapeDtypeStruct(t.shape, t.dtype, weak_type=t.weak) for t in program.out_types])


def closure_convert(fun: F, *example_args: Any) -> tuple[F, list[Any]]:
    """A function of ``(*args, *consts)`` without captured boxes, and those constants.

        g, consts = closure_convert(f, x);  g(x, *consts) == f(x)
    """
    need_function("closure_convert", fun)
    program, out_tree = trace(fun, example_args, {})
    captured = [i for i, const in enumerate(program.consts) if isinstance(const, Box)]
    _, in_tree = trees.flatten(example_args)
    count = len(example_args)

    def converted(*args: Any) -> Any:
        consts = list(program.consts)
        for i, const in zip(captured, args[count:]):
            consts[i] = lift(const)
        leaves = [lift(x) for x in in_tree.flatten_up_to(args[:count])]
        return trees.unflatten(out_tree, program.with_consts(consts)(*leaves))

    return converted, [program.consts[i] for i in captured]


def named_call(fun: F, *, name: str | None = None) -> F:
    """``fun`` inside ``named_scope(name)``."""
    label = str(name or getattr(fun, "__name__", "named_call"))

    @wraps(fun)
    def named(*args: Any, **kwargs: Any) -> Any:
        with named_scope(label):
            return fun(*args, **kwargs)

    named.__name__ = label
    return named


@contextmanager
def named_scope(name: str) -> Iterator[str]:
    """A name for what is performed in the block: messages list it among the handlers in force."""
    with installed(Run(STACK.get(), name, user_site(3))):
        yield name
