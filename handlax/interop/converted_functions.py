"""Functions of one library, converted for arguments of given types: a program, and the structure of the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from keyword import iskeyword
from typing import Any, NamedTuple

from ..effects.base import config
from ..effects.base.caches import WeakCache
from ..effects.base.errors import NotAnArray
from ..effects.base.wrapping import name_of
from ..effects.control.recorded_bodies import body_of
from ..effects.core.arrays import Array, as_array
from ..effects.programs.higher_order import HigherOrder
from ..effects.programs.program import Program, derived_once
from ..effects.types.array_type import ArrayType
from ..interpreters.core.static_arguments import argument_names
from .jax_modules import jax
from .jax_values import our_array, their_array, their_type, type_in_jax, with_widths
from .jaxpr_reader import program_of
from .jaxpr_writer import bind_program
from .mixed_trees import MixedStructure, flatten

_FROM = WeakCache("functions converted from JAX")
"""The programs of a function of JAX's, by types of arguments and settings."""
_TO = WeakCache("functions converted to JAX")
"""The programs of a function that JAX calls, by types of arguments and settings."""
_SETTINGS = ("jax_enable_x64", "jax_default_matmul_precision", "jax_numpy_dtype_promotion", "jax_default_prng_impl",
             "jax_threefry_partitionable")


class Converted(NamedTuple):
    """A function for arguments of some types: its program, and the structure of its result."""

    program: Program
    structure: MixedStructure


class FromJax:
    """A function of JAX's in handlax: it performs the programs that JAX traces."""

    def __init__(self, f: Callable[..., Any]):
        self.f = f
        self.known = _FROM.part(f)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, structure = flatten((args, kwargs))
        xs = arguments(self.f, our_array, leaves, structure)
        program, tree = self._converted(structure, [x.type for x in xs])
        return tree.unflatten(program(*xs))

    def convert(self, *args: Array) -> Converted:
        """The program for arrays of these types, and the structure of its results."""
        return self._converted(flatten((args, {}))[1], [x.type for x in args])

    def _converted(self, structure: MixedStructure, types: Sequence[ArrayType]) -> Converted:
        key = (structure, *types, *[getattr(jax.config, name) for name in _SETTINGS])
        return self.known.get(key) or _FROM.add(self.known, key, self._traced(structure, types))

    def _traced(self, structure: MixedStructure, types: Sequence[ArrayType]) -> Converted:
        of_leaves, found = on_leaves(self.f, structure, lambda y: y)
        with with_widths(types):
            jaxpr = jax.make_jaxpr(of_leaves)(*map(their_type, types))
        return Converted(program_of(jaxpr, name_of(self.f)), found[-1])


class ToJax:
    """A function of handlax in JAX: it binds the primitives of the programs that handlax records."""

    def __init__(self, f: Callable[..., Any]):
        self.f = f
        self.known = _TO.part(f)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, structure = flatten((args, kwargs))
        xs = arguments(self.f, their_array, leaves, structure)
        types = [*map(type_in_jax, xs)]
        key = (structure, config.current(), *types)
        program, tree = self.known.get(key) or _TO.add(self.known, key, self._recorded(structure, types))
        with with_widths([*types, *types_within(program)]):
            return tree.unflatten(bind_program(program, xs))

    def _recorded(self, structure: MixedStructure, types: Sequence[ArrayType]) -> Converted:
        of_leaves, found = on_leaves(self.f, structure, as_array)
        return Converted(body_of(name_of(self.f), of_leaves, types, "to_jax").program, found[-1])


def arguments(
    f: Callable[..., Any], array: Callable[[Any], Any], leaves: Sequence[Any], structure: MixedStructure
) -> list[Any]:
    """The leaves of the arguments of ``f``, each made an array. Raises: NotAnArray: one is none; it is named."""
    return arrays(f"{name_of(f)}: arguments", array, leaves, lambda: structure.names(argument_names(f)))


def arrays(
    what: str, array: Callable[[Any], Any], leaves: Sequence[Any], names: Callable[[], Sequence[str]]
) -> list[Any]:
    """The leaves of a tree, each made an array. Raises: NotAnArray: one is none; it is named."""
    made: list[Any] = []
    for leaf in leaves:
        try:
            made.append(array(leaf))
        except NotAnArray:
            raise NotAnArray(
                f"{what} must be arrays or numbers, got {type(leaf).__name__} for {names()[len(made)]}.",
                hint="keep it outside: convert a function of the arrays alone.",
            ) from None
    return made


@derived_once
def types_within(program: Program) -> frozenset[ArrayType]:
    """The types of all values of a program, those in its bodies included."""
    bodies = [body for op in program.ops if isinstance(op, HigherOrder) for body in op.bodies]
    return frozenset(program.value_types()).union(*map(types_within, bodies))


def on_leaves(
    f: Callable[..., Any], structure: MixedStructure, result: Callable[[Any], Any]
) -> tuple[Callable[..., Any], list[MixedStructure]]:
    """``f`` as a function of the leaves of its arguments to those of its result, and the structures of its results.

    ``result`` makes a leaf of the result an array. Messages of either library name the line of ``f``.
    """
    found: list[MixedStructure] = []

    def of_leaves(*xs: Any) -> list[Any]:
        args, kwargs = structure.unflatten(xs)
        results = f(*args, **kwargs)
        leaves, tree = flatten(results)
        found.append(tree)
        names = lambda: flatten(((results,), {}))[1].names(lambda _: "the result")
        return arrays(f"{name_of(f)}: results", result, leaves, names)

    of_leaves.__name__ = name_of(f)
    of_leaves.__wrapped__ = f  # type: ignore[attr-defined]
    of_leaves.__signature__ = _leaf_signature(structure.names(argument_names(f)))  # type: ignore[attr-defined]
    return of_leaves, found


def _leaf_signature(names: Sequence[str]) -> Signature:
    """That of a function of leaves of these names, as far as parameters can have them."""
    if len({*names}) < len(names) or not all([name.isidentifier() and not iskeyword(name) for name in names]):
        return Signature([Parameter("leaves", Parameter.VAR_POSITIONAL)])
    return Signature([Parameter(name, Parameter.POSITIONAL_ONLY) for name in names])
