"""Derivatives at a point as values: the functions that ``linearize`` and ``vjp`` return.

    y, push = linearize(f, x);  push(dx) = f'(x) dx
    y, pull = vjp(f, x);        pull(ct) = (f'(x)^T ct,)

Each is a node of pytrees: its children are the residuals, its static data the linear program that reads them. So it
leaves ``jit``, is a residual or a carry, and is mapped by ``vmap``, as any other tree of arrays. The residuals of a
pullback are those arguments of ``f`` that it reads, ``args_res``, and what ``f`` computed, ``opaque_residuals``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...effects.base.errors import BadCall, DTypeMismatch, ShapeMismatch, TreeMismatch
from ...effects.base.immutables import ImmutableObject, setter
from ...effects.base.later_layers import LaterLayers
from ...effects.base.tracebacks import boundary
from ...effects.core.arrays import Array, as_array, is_number, scalar, type_of, unaliased
from ...effects.core.columns import zeros_like
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations.sharding_constraint import reveal
from ...effects.programs.program import Program
from ...effects.trees import pytrees
from ...effects.trees.structure import difference
from ...effects.types import dtypes
from ...effects.types.array_type import ArrayType
from ..analysis.dependence import scattered
from ..differentiation.linearize import Linearized
from ..differentiation.transpose import transpose_program
from .gradient_references import bound
from .saved_arguments import SplitResiduals, mirrored


def tangent_type(t: ArrayType) -> ArrayType | None:
    """The type of the tangents of values of this type; None for a dtype without tangents: integers, booleans, keys."""
    return t if dtypes.is_inexact(t.dtype) else None


def zero_tangent(t: ArrayType) -> Any:
    """The zero tangent of a value: zeros of its type, or of ``float0``, which NumPy has where the shape is known."""
    if dtypes.is_inexact(t.dtype):
        return zeros_like(t)
    return zeros_like(t.tangent()) if t.ragged else np.zeros(t.shape, dtypes.float0)


def tangent_of(where: str, t: ArrayType, dx: Any, cotangent: bool = False) -> Any:
    """The argument ``dx`` as a tangent of a value of type ``t``, checked and converted; None for one of ``float0``.

    Python numbers are converted, complex ones to complex types alone, and NumPy arrays of 64 bits within their kind,
    since their width is seldom meant.
    ``cotangent``: for a value without tangents any array of its shape will do, as in JAX.
    """
    if isinstance(dx, Array) and dx.type is t and dtypes.is_inexact(t.dtype):
        return dx
    if tangent_type(t) is None:
        dtype = getattr(dx, "dtype", None)
        if cotangent and type_of(dx).shape == t.shape:
            return None
        if dtype != dtypes.float0:
            raise DTypeMismatch(
                f"{where}: the tangent of {t} has dtype float0, got {dtype or type(dx).__name__}.",
                hint="np.zeros(x.shape, handlax.dtypes.float0), or leave the integer out of the derivative.",
            )
        return None
    given, dx = dx, as_array(dx)
    if dx.type.shape != t.shape:
        raise ShapeMismatch(f"{where}: {_owner(cotangent, 'shape')} {t.shape}, got {dx.type.shape}.")
    if dx.type.dtype != t.dtype:
        widest = np.float64 if dtypes.is_floating(t.dtype) else np.complex128
        same_kind = dtypes.is_complex(t.dtype) or not dtypes.is_complex(dx.type.dtype)
        if not (dx.type.weak and same_kind) and not (isinstance(given, np.ndarray) and given.dtype == widest):
            raise DTypeMismatch(f"{where}: {_owner(cotangent, 'dtype')} {t.dtype}, got {dx.type.dtype}.")
        dx = scalar(given, t.dtype) if is_number(given) else convert(dx, t.dtype)  # a number is rounded once
    return reveal(dx, t.cut)


def _owner(cotangent: bool, what: str) -> str:
    """What must have the ``what`` of what, for messages."""
    return f"a cotangent has the {what} of its result," if cotangent else f"a tangent has its primal's {what}"


def materialised(tangents: Sequence[Any], types: Sequence[ArrayType], given: Sequence[Any] = ()) -> Sequence[Any]:
    """The tangents of values of these types as arrays of their own, symbolic zeros replaced by arrays of zeros.

    None is another one, or one of those ``given``: a sum hands the same cotangent to all its terms.
    """
    return unaliased([zero_tangent(t) if dx is None else dx for dx, t in zip(tangents, types)], given)


def other_structure(what: str, model: str, needed: Any, given: Any) -> TreeMismatch:
    """The error of ``what``, which must have the structure ``needed`` of the ``model``, and has another one."""
    one, two, where = difference(needed, given)
    return TreeMismatch(f"{what} must have the structure of the {model}, got {two} for {one}{where}.")


class LinearSignature(NamedTuple):
    """Structures and types of the arguments and of the result of the function that was linearized."""

    in_tree: Any
    in_types: tuple[ArrayType, ...]
    out_tree: Any
    out_types: tuple[ArrayType, ...]
    tangent_types: tuple[ArrayType | None, ...]  # of each argument; None where its tangent is zero


class LinearFunction(ImmutableObject):
    """The derivative of a function at a point: a node with its residuals as children."""

    __slots__ = ("linear", "signature")
    _guard = ("derivatives", "linearize at another point.")
    linear: Linearized
    signature: LinearSignature

    def __init__(self, linear: Linearized, signature: LinearSignature):
        _set_linear(self, linear)
        _set_signature(self, signature)

    @property
    def residuals(self) -> tuple[Any, ...]:
        """The values that the derivative depends on."""
        return self._closed().residuals

    @property
    def program(self) -> Program:
        """The program that a call performs, from the residuals and the argument to the result."""
        return self._closed().tape  # type: ignore[return-value]

    @property
    def jaxpr(self) -> Program:
        return self.program

    def _closed(self) -> Linearized:
        """The derivative with its residuals as operands of its program; this form replaces the former one."""
        if not isinstance(self.linear.tape, Program):
            _set_linear(self, self.linear.closed())
        return self.linear

    def __repr__(self) -> str:
        return f"{type(self).__name__} of {len(self.residuals)} residuals by {self.program}"


_set_linear, _set_signature = (setter(LinearFunction, name) for name in ("linear", "signature"))


class Pushforward(LinearFunction):
    """``push(*dxs)``: the tangent of the result from tangents of the arguments; linear, may be called again."""

    __slots__ = ()

    @boundary
    def __call__(self, *tangents: Any) -> Any:
        of = self.signature
        dxs, tree = pytrees.flatten(tangents)
        if tree != of.in_tree:
            raise other_structure("linearize: the tuple of tangents", "tuple of primals", of.in_tree, tree)
        checked = [tangent_of("linearize", t, dx) for t, dx in zip(of.in_types, dxs)]
        dys = self.linear.pushforward([dx for dx in checked if dx is not None])
        return pytrees.unflatten(of.out_tree, materialised(dys, of.out_types, dxs))


class Pullback(LinearFunction):
    """``pull(ct)``: the cotangents of the arguments from the cotangent of the result; linear, may be called again.

    ``args_res[i]`` is argument ``i`` as the pullback saved it, with ``NotNeeded()`` for leaves that it does not read.
    It may be set, also entry by entry: to free an argument, or to give it back.
    """

    __slots__ = ("_argument_ids", "_split")
    _argument_ids: tuple[int, ...]  # of the argument leaves, beside which the residuals lived: equal ids are one array
    _split: SplitResiduals | None  # from the first look at the residuals on; ``linear`` then has none

    def __init__(
        self, linear: Linearized, signature: LinearSignature, arguments: Sequence[Any] = (),
        saveable: Sequence[bool] | None = None,
    ):
        _set_linear(self, linear)
        _set_signature(self, signature)
        _set_argument_ids(self, tuple([id(x) for x in arguments]))
        _set_split(self, None)
        if saveable is not None:
            self._separate(saveable)

    def _separate(self, saveable: Sequence[bool] | None = None) -> SplitResiduals:
        """The residuals, those that are arguments apart from the rest; this form replaces the former one."""
        if self._split is None:
            linear = super()._closed()
            leaves = {number: i for i, number in enumerate(self._argument_ids)}
            origins = tuple([leaves.get(id(x)) for x in linear.residuals])
            _set_split(self, SplitResiduals.of(self.signature.in_tree, linear.residuals, origins, saveable))
            _set_linear(self, linear._replace(residuals=()))
        return self._split  # type: ignore[return-value]

    def _closed(self) -> Linearized:
        if self._split is None:
            return super()._closed()
        return self.linear._replace(residuals=self._split.gather(self.signature.in_tree, self.signature.in_types))

    @property
    def args_res(self) -> list[Any]:
        """The arguments that the pullback reads, one entry for each positional argument."""
        return self._separate().arguments

    @property
    def opaque_residuals(self) -> list[Any]:
        """The residuals that are no argument."""
        return self._separate().opaque

    @property
    def out_nzs(self) -> Any:
        """Whether each result depends on the arguments that ``in_nzs`` marks, in the structure of the result."""
        return mirrored(self.signature.out_tree, iter(_nonzero(self.linear)))

    def __setattr__(self, name: str, value: object) -> None:
        if name == "args_res":
            self._separate().arguments = list(value)  # type: ignore[call-overload]
        elif name == "opaque_residuals":
            self._separate().opaque = list(value)  # type: ignore[call-overload]
        else:
            super().__setattr__(name, value)

    @boundary
    def __call__(self, *ct: Any) -> tuple[Any, ...]:
        of = self.signature
        if len(ct) != 1:
            raise BadCall(
                f"vjp: the pullback takes one cotangent, with the structure of the result, got {len(ct)} arguments.",
                hint=f"pull(({', '.join(['ct'] * len(ct))})) for a result that is a tuple." if ct else None,
            )
        cts, tree = pytrees.flatten(ct[0])
        if tree != of.out_tree:
            raise other_structure("vjp: the cotangent", "result", of.out_tree, tree)
        checked = [tangent_of("vjp", t.dual, leaf, cotangent=True) for t, leaf in zip(of.out_types, cts)]
        cotangents = (self.linear if self._split is None else self._closed()).pullback(checked)
        grads = scattered(cotangents, [t is not None for t in of.tangent_types])
        return pytrees.unflatten(of.in_tree, materialised(grads, [t.dual for t in of.in_types], cts))

    def with_refs(self, *entries: Any) -> Any:
        """The pullback that adds gradients to references; an entry for each argument leaf: ``pull.with_refs(ref)(ct)``.

        An entry is a ``Ref`` of the type of the gradient; ``ad.GradValue()``: it is returned; or ``ad.DontWant()``.
        """
        return bound(self, entries, self.signature.in_tree, self.signature.in_types)

    def with_logs(self, *ct: Any) -> tuple[Any, Any]:
        """The cotangents, and the dictionary of what backward rules logged: see ``custom_vjp.defvjp_with_logs``.

        Raises: BadArgument: two calls of rules logged under one name.
        """
        cts, logs = LaterLayers.collect_logs(self)(*ct)
        return cts, logs

    @property
    def program(self) -> Program:
        linear = self.linear if self._split is not None else self._closed()
        tape: Any = linear.tape
        known = len(linear.residuals if self._split is None else self._split.origins)
        mask = [i >= known for i in range(len(tape.in_types))]
        return transpose_program(tape, mask, [True] * len(tape.outs))[0]


_set_argument_ids, _set_split = (setter(Pullback, name) for name in ("_argument_ids", "_split"))


def _nonzero(linear: Linearized) -> tuple[bool, ...]:
    return tuple([n is not None for n in linear.tangents])


def _linearized(program: Program, nonzero: tuple[bool, ...], residuals: tuple[Any, ...]) -> Linearized:
    return Linearized(program, scattered(program.outs, nonzero), residuals)


def _flatten_pushforward(x: Pushforward) -> tuple[Sequence[Any], Any]:
    linear = x._closed()
    return linear.residuals, (linear.tape, _nonzero(linear), x.signature)


def _unflatten_pushforward(data: Any, residuals: Sequence[Any]) -> Pushforward:
    program, nonzero, signature = data
    return Pushforward(_linearized(program, nonzero, tuple(residuals)), signature)


def _flatten_pullback(x: Pullback) -> tuple[Sequence[Any], Any]:
    split = x._separate()
    return (split.arguments, split.opaque), (x.linear.tape, _nonzero(x.linear), x.signature, split.origins)


def _unflatten_pullback(data: Any, children: Sequence[Any]) -> Pullback:
    program, nonzero, signature, origins = data
    pull = Pullback(_linearized(program, nonzero, ()), signature)
    _set_split(pull, SplitResiduals(children[0], children[1], origins))
    return pull


pytrees.register_pytree_node(Pushforward, _flatten_pushforward, _unflatten_pushforward)
pytrees.register_pytree_node(Pullback, _flatten_pullback, _unflatten_pullback)
