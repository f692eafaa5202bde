"""``handlax.interop.jax``: functions of JAX's as functions of handlax, and the reverse, in one process.

    from_jax(f)(*xs) == f(*xs)        performs operations of handlax, for its transformations and handlers
    to_jax(f)(*xs) == f(*xs)          binds primitives of JAX's, for JAX's transformations

JAX itself has to be installed; it is imported when one of the two is called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..effects.base import config
from ..effects.base.caches import WeakCache
from ..effects.base.errors import need_function
from ..effects.base.wrapping import name_of, wraps
from ..effects.control.recorded_bodies import body_of
from ..effects.programs.program import Program
from .jax_modules import jax, need_jax
from .jax_values import our_array, our_type, their_array, their_type, with_widths
from .jaxpr_reader import is_jaxpr, program_of
from .jaxpr_writer import bind_program
from .mixed_trees import MixedStructure, flatten

__all__ = ["from_jax", "to_jax"]

_FROM, _TO = WeakCache("functions of JAX"), WeakCache("functions for JAX")
_SETTINGS = ("jax_enable_x64", "jax_default_matmul_precision", "jax_numpy_dtype_promotion", "jax_default_prng_impl")


class Converted(NamedTuple):
    """A function for arguments of some types: its program, and the structure of its result."""

    program: Program
    structure: MixedStructure


def from_jax(f: Any) -> Any:
    """A function of JAX's as a function of handlax, which performs the operations that JAX traces.

        from_jax(f)(*xs) == f(*xs)        make_program(from_jax(f))(*xs)  is its program

    The program of a ``ClosedJaxpr`` is a ``Program``.
    """
    need_jax("from_jax")
    if is_jaxpr(f):
        return program_of(f)
    need_function("from_jax", f)
    known = _FROM.part(f)

    @wraps(f)
    def performed(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = flatten((args, kwargs))
        xs = [our_array(leaf) for leaf in leaves]
        key = (structure, *[x.type for x in xs], *[getattr(jax.config, name) for name in _SETTINGS])
        converted = known.get(key) or _FROM.add(known, key, _traced_by_jax(f, structure, [x.type for x in xs]))
        return converted.structure.unflatten(converted.program(*xs))

    return performed


def _traced_by_jax(f: Callable[..., Any], structure: MixedStructure, types: Any) -> Converted:
    """The program that JAX traces for arguments of this structure and these types."""
    found: list[MixedStructure] = []

    def of_leaves(*xs: Any) -> list[Any]:
        args, kwargs = structure.unflatten(xs)
        results, tree = flatten(f(*args, **kwargs))
        found.append(tree)
        return results

    of_leaves.__name__ = name_of(f)
    with with_widths(types):
        jaxpr = jax.make_jaxpr(of_leaves)(*map(their_type, types))
    return Converted(program_of(jaxpr, name_of(f)), found[-1])


def to_jax(f: Callable[..., Any] | Program) -> Callable[..., Any]:
    """A function or a program of handlax as a function of JAX's, which binds the primitives of its operations.

        to_jax(f)(*xs) == f(*xs)
    """
    need_jax("to_jax")
    need_function("to_jax", f)
    known = _TO.part(f)

    @wraps(f)
    def bound(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = flatten((args, kwargs))
        xs = [their_array(leaf) for leaf in leaves]
        types = [our_type(jax.typeof(x)) for x in xs]
        key = (structure, config.current(), *types)
        converted = known.get(key) or _TO.add(known, key, _recorded(f, structure, types))
        with with_widths([*types, *converted.program.numbered_types()]):
            return converted.structure.unflatten(bind_program(converted.program, xs))

    return bound


def _recorded(f: Callable[..., Any], structure: MixedStructure, types: Any) -> Converted:
    """The program that handlax records for arguments of this structure and these types."""
    found: list[MixedStructure] = []

    def of_leaves(*xs: Any) -> list[Any]:
        args, kwargs = structure.unflatten(xs)
        results, tree = flatten(f(*args, **kwargs))
        found.append(tree)
        return results

    return Converted(body_of(name_of(f), of_leaves, types, "to_jax").program, found[-1])
