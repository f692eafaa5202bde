"""``handlax.interop.jax``: functions of JAX's as functions of handlax, and the reverse, in one process.

    from_jax(f)(*xs) == f(*xs)        performs operations of handlax, for its transformations and handlers
    to_jax(f)(*xs) == f(*xs)          binds primitives of JAX's, for JAX's transformations

Programs keep what they consist of: calls, loops and branches, functions with rules of their own, random bits, calls of
the host. Trees of arguments and results may have nodes of either library. Arrays share their memory, as far as DLPack
knows their dtype.

JAX itself has to be installed; it is imported when one of the two is called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..effects.base.errors import need_function
from ..effects.base.wrapping import wraps
from ..effects.programs.program import Program
from . import readers as readers  # which adds to READERS
from . import writers as writers  # which adds to WRITERS
from .converted_functions import FromJax, ToJax
from .jax_modules import need_jax
from .jaxpr_reader import is_jaxpr, program_of

__all__ = ["from_jax", "to_jax"]


def from_jax(f: Any) -> Any:
    """A function of JAX's as a function of handlax; a ``ClosedJaxpr`` as a ``Program``.

        from_jax(f)(*xs) == f(*xs)        make_program(from_jax(f))(*xs) is its program

    The first call for arguments of some types traces ``f`` by ``jax.make_jaxpr``; what is performed is the same for all
    further ones. Derivatives, lanes and handlers are those of handlax; a function with a rule of its own keeps it.

    Args:
        f: its arguments and results are trees of arrays. One of 64 bits enables these in JAX while ``f`` is traced.

    Bits drawn from keys ``rbg`` are those of JAX, except under a ``jax.vmap`` in ``f``: there JAX draws those of all
    lanes together, and here each lane has the bits of its key.

    Raises: MissingModule: JAX is not installed, or ``as_jax`` stands for it. NotProvided: JAX traced an operation that
    handlax does not have, another library's primitive, or bits with ``jax_threefry_partitionable`` False; the message
    has its line. EscapedBox: an argument is a traced value of JAX's, or ``f`` closes over an array of handlax.
    NotAnArray: an argument is no array; the message names it. BadArgument: a size of an argument is symbolic, in
    ``export``.
    """
    need_jax("from_jax")
    if is_jaxpr(f):
        return program_of(f)
    need_function("from_jax", f)
    return _wrapped(f, FromJax(f))


def to_jax(f: Callable[..., Any] | Program) -> Callable[..., Any]:
    """A function or a program of handlax as a function of JAX's.

        to_jax(f)(*xs) == f(*xs)

    The first call for arguments of some types records ``f``. Derivatives and lanes are those of JAX; a function with a
    rule of its own keeps it. A pure operation that JAX does not have, a user's too, becomes a primitive there, and so
    does one whose rules ``hx.rules`` replaces around the call: the primitive has the rules in force there.

    Effects: calls of the host are JAX's; any other must be handled inside ``f``.

    Reverse mode of a ``while_loop`` is that of handlax alone, ``to_jax(hx.grad(f))``: JAX has none.

    Raises: MissingModule: JAX is not installed, or ``as_jax`` stands for it. UnhandledEffect: an effect is not handled.
    EscapedBox: an argument is a traced value of handlax. NotAnArray: an argument or a result is no array; the message
    names it. NotProvided: ``hx.rules`` replaces a rule of an operation with effects.
    """
    need_jax("to_jax")
    need_function("to_jax", f)
    return _wrapped(f, ToJax(f))


def _wrapped(f: Callable[..., Any], converted: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(f)
    def function(*args: Any, **kwargs: Any) -> Any:
        return converted(*args, **kwargs)

    return function
