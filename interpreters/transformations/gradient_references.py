"""Gradients in references: pullbacks that add to references of the caller, and those of functions of references.

    pull.with_refs(ref)(ct)   ==   ref[...] += f'(x)^T ct

Where the argument is a reference itself, ``f`` is a function of its first value, of which the last one is a result.
The caller's reference holds the cotangent of the last value before, and that of the first value after the call: what
it held is added to where ``f`` only reads, and goes through the writes where it writes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...effects.base.errors import BadArgument, TreeMismatch
from ...effects.base.frozen_values import Value
from ...effects.base.tracebacks import unnamed_boundary
from ...effects.core.columns import zeros_like
from ...effects.trees import pytrees
from ...effects.types.array_type import ArrayType
from ...effects.types.dtypes import is_inexact
from ..references.arguments import call_pure, positions_of, pure_of
from ..references.reference import Ref, addupdate, get, set


class GradValue(Value):
    """An entry of ``with_refs``: the gradient of this argument leaf is returned."""


class DontWant(Value):
    """An entry of ``with_refs``: the gradient of this argument leaf is dropped."""


@pytrees.register_static
class GradRef(Value):
    """The result in place of a gradient that was added to a reference."""


@pytrees.register_static
class DidntWant(Value):
    """The result in place of a gradient that was dropped."""


def bound(pull: Callable[[Any], Any], entries: Sequence[Any], in_tree: Any, types: Sequence[ArrayType]) -> Any:
    """The pullback whose gradients go where ``entries`` say: ``Ref``, ``GradValue`` or ``DontWant`` for each leaf.

    Raises: TreeMismatch: the entries have another structure than the arguments. BadArgument: a reference of another
    type than the gradient, or what is no entry.
    """
    leaves = _entries(entries, in_tree)
    for entry, t in zip(leaves, types):
        _check_entry(entry, t)

    @unnamed_boundary
    def accumulate(ct: Any) -> Any:
        return pytrees.unflatten(in_tree, list(map(_place, leaves, _leaves(pull(ct), in_tree))))

    return accumulate


def _entries(entries: Sequence[Any], in_tree: Any) -> list[Any]:
    leaves, tree = pytrees.flatten(tuple(entries))
    if tree != in_tree:
        raise TreeMismatch(
            f"vjp: with_refs takes entries of the structure of the arguments, {in_tree}, got {tree}.",
            hint="a Ref, ad.GradValue() or ad.DontWant() for each leaf.",
        )
    return leaves


def _check_entry(entry: Any, t: ArrayType) -> None:
    if isinstance(entry, (GradValue, DontWant)):
        return
    if not isinstance(entry, Ref):
        raise BadArgument(f"vjp: an entry of with_refs must be a Ref, GradValue or DontWant, got {entry!r}.")
    if not is_inexact(t.dtype) or (entry.shape, entry.dtype) != (t.shape, t.dtype):
        raise BadArgument(f"vjp: the gradient by an argument {t} requires a Ref of its type, got {entry.aval}.")


def _leaves(tree: Any, in_tree: Any) -> list[Any]:
    return list(in_tree.flatten_up_to(tree))


def _place(entry: Any, gradient: Any) -> Any:
    """Add, return or drop a gradient as its entry says; gives the value that takes its place in the result."""
    if isinstance(entry, Ref):
        addupdate(entry, None, gradient)
        return GradRef()
    return gradient if isinstance(entry, GradValue) else DidntWant()


class ReferencePullback:
    """The pullback of a function of references, which are leaves ``positions`` of its arguments; see ``with_refs``.

    ``pull``: that of the function of values, whose results are those of the function, and by leaf the last ``written``
    values of references that it writes.
    """

    __slots__ = ("pull", "positions", "written")

    def __init__(self, pull: Any, positions: tuple[int, ...], written: dict[int, ArrayType]):
        self.pull, self.positions, self.written = pull, positions, written

    def __call__(self, *ct: Any) -> Any:
        raise BadArgument(
            f"vjp: leaf {self.positions[0]} of the arguments is a reference, and so is its gradient.",
            hint="pull.with_refs(ref)(ct) adds it to ref[...]; ad.DontWant() in the place of ref drops it.",
        )

    def with_refs(self, *entries: Any) -> Callable[[Any], Any]:
        """The pullback that adds to references: an entry for each leaf of the arguments, as ``bound`` has them."""
        of = self.pull.signature
        leaves = _entries(entries, of.in_tree)
        own = [leaves[i] for i in self.positions if isinstance(leaves[i], Ref)]
        if any([leaves.count(ref) > 1 for ref in own]):
            raise BadArgument("vjp: the gradient of a reference needs a reference of its own, got one of them twice.")
        for i, (entry, t) in enumerate(zip(leaves, of.in_types)):
            _check_entry(entry, t)
            if i in self.positions and isinstance(entry, GradValue):
                raise BadArgument(
                    f"vjp: leaf {i} of the arguments is a reference, whose gradient cannot be returned as a value.",
                    hint="a Ref in with_refs, or ad.DontWant().",
                )

        @unnamed_boundary
        def accumulate(ct: Any) -> Any:
            last = {i: get(leaves[i]) if isinstance(leaves[i], Ref) else zeros_like(t) for i, t in self.written.items()}
            gradients = _leaves(self.pull((ct, last)), of.in_tree)
            for i in self.written:
                if isinstance(leaves[i], Ref):
                    set(leaves[i], None, zeros_like(self.written[i]))  # its cotangent went through the writes
            return pytrees.unflatten(of.in_tree, list(map(_place, leaves, gradients)))

        return accumulate


pytrees.register_pytree_node(
    ReferencePullback,
    lambda x: ((x.pull,), (x.positions, tuple(x.written.items()))),
    lambda data, children: ReferencePullback(children[0], data[0], dict(data[1])),
)


def vjp_of_references(vjp: Callable[..., Any], fun: Callable[..., Any], primals: tuple[Any, ...], has_aux: bool) -> Any:
    """``vjp`` where leaves of the arguments are references; they have their last values afterwards."""
    leaves = pytrees.leaves(primals)
    positions = positions_of(leaves)
    pure = pure_of(fun, positions)

    def results(*values: Any) -> Any:
        y, written = pure(*values)
        return ((y[0], written), y[1]) if has_aux else (y, written)

    def linearized(*values: Any) -> Any:
        (y, written), pull, *aux = vjp(results, *values, has_aux=has_aux)
        kept = {i: value.type for i, value in written.items()}
        return (y, ReferencePullback(pull, positions, kept), *aux), written

    return call_pure(linearized, primals, {}, positions)
