"""sparsify: the handler that gives operations their sparse meaning. A box stands for a dense array, and holds a sparse
one.

    todense(sparsify(f)(x)) == f(todense(x))

An operation with a box as operand is answered by its rule in the table ``sparse``, a function of sparse and dense
arrays with such results. Operations with bodies are crossed by ``body_transform``; the mark of a value is its layout,
its parts are the buffers. Outer handlers see operations on buffers alone, so that derivatives, batching, compilation
and effects are those of any other program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple

from ...effects.base.errors import CannotCross, NotSparse, TreeMismatch, need_function
from ...effects.base.source_locations import user_site
from ...effects.base.stack import STACK, Run, installed
from ...effects.base.tracebacks import unnamed_boundary
from ...effects.base.wrapping import wraps
from ...effects.core.arrays import type_of
from ...effects.core.columns import SPARSE
from ...effects.core.operation import Operation
from ...effects.trees import pytrees
from ...effects.types.array_type import ArrayType, array_type
from ...interpreters.core.body_transform import BodyTransformer, cross
from ...interpreters.core.sited_box import SitedBox
from .sparse_array import JAXSparse, is_sparse

__all__ = ["SparseTracer", "sparsify"]


class SparseTracer(SitedBox):
    """The box of a sparse array under ``sparsify``: its type is that of the dense array, its ``value`` the sparse
    array.
    """

    __slots__ = ("value",)
    value: Any


class SparseLayout(NamedTuple):
    """The static part of a sparse array: its pytree structure and the types of its buffers.

    ``stacked``: the values are slices of an array with one more batch dimension.
    """

    structure: Any
    types: tuple[ArrayType, ...]
    stacked: bool = False

    @staticmethod
    def of(x: JAXSparse) -> SparseLayout:
        buffers, structure = pytrees.flatten(x)
        return SparseLayout(structure, tuple([type_of(buffer) for buffer in buffers]))

    def array(self, buffers: Sequence[Any]) -> Any:
        """The sparse array with these buffers."""
        x = pytrees.unflatten(self.structure, buffers)
        return x.replaced(shape=(x.data.shape[0], *x.shape)) if self.stacked else x

    def slices(self) -> SparseLayout:
        """The layout of the slices along the first dimension.

        Raises: CannotCross: it is no batch dimension, or is repeated.
        """
        x = pytrees.unflatten(self.structure, self.types)
        size = x.shape[0]
        if not getattr(x, "n_batch", 0) or any([t.shape[0] != size for t in self.types]):
            raise CannotCross(
                f"sparsify: a loop takes slices along a batch dimension, got {self}.",
                hint="sparse.bcoo_update_layout(x, n_batch=1, on_inefficient=None) before the loop.",
            )
        lane = x.replaced(shape=x.shape[1:])
        return SparseLayout(pytrees.structure(lane), tuple([t.update(shape=t.shape[1:]) for t in self.types]))

    def joined(self, other: SparseLayout) -> SparseLayout:
        """The layout of a value that may have either layout: indices are sorted, or unique, if they are in both.

        Raises: TreeMismatch: they differ in more.
        """
        if self.structure == other.structure and self.agrees(other):
            return self
        x, y = [pytrees.unflatten(layout.structure, layout.types) for layout in (self, other)]
        if type(x) is type(y) and x.shape == y.shape and self.agrees(other):
            flags = {name: getattr(x, name) and getattr(y, name) for name in x.flags}
            return self._replace(structure=pytrees.structure(x.replaced(**flags)))
        raise TreeMismatch(
            f"sparsify: branches, and the iterations of a loop, must agree on the layout of a value, got {self} and "
            f"{other}.",
            hint="sparse.todense(x) gives the dense array; layouts are changed outside of sparsify.",
        )

    def agrees(self, other: SparseLayout) -> bool:
        """Whether the buffers of both layouts have equal shapes and dtypes, and are equally stacked."""
        ours, theirs = [[(t.shape, t.dtype) for t in layout.types] for layout in (self, other)]
        return ours == theirs and self.stacked == other.stacked

    def __str__(self) -> str:
        return repr(pytrees.unflatten(self.structure, self.types))


class Sparsify(BodyTransformer):
    """An installation of the handler of ``sparsify``: it answers operations that have one of its boxes as operand."""

    __slots__ = ()

    def key(self) -> str:
        return "sparsify"

    def boxed(self, x: Any) -> Any:
        """The box of a sparse array; a dense array is returned itself."""
        if not is_sparse(x):
            return x
        new = SparseTracer()
        new.run, new.value, new.site = self, x, self.cell.site
        data = type_of(x.data)
        new.type = array_type(x.shape, data.dtype, data.weak)
        return new

    def unboxed(self, x: Any) -> Any:
        """The sparse array of a box; any other value is returned itself."""
        return x.value if isinstance(x, SparseTracer) and x.run is self else x

    def split(self, x: Any) -> tuple[SparseLayout | None, Sequence[Any]]:
        return (SparseLayout.of(x.value), pytrees.leaves(x.value)) if x.run is self else (None, (x,))

    def part_types(self, mark: SparseLayout | None, type: ArrayType) -> Sequence[ArrayType]:
        return (type,) if mark is None else mark.types

    def box(self, mark: SparseLayout | None, parts: Sequence[Any]) -> Any:
        return parts[0] if mark is None else self.boxed(mark.array(parts))

    def force(self, x: Any, mark: SparseLayout | None) -> Sequence[Any]:
        layout, parts = self.split(x)
        if (layout is None) != (mark is None):
            raise TreeMismatch(
                f"sparsify: branches, and the iterations of a loop, must agree whether a value is sparse, got "
                f"{layout or x.type} and {mark or 'a dense array'}.",
                hint="sparse.todense(x) gives the dense array.",
            )
        return parts

    def join(self, marks: Sequence[SparseLayout | None]) -> SparseLayout | None:
        layouts = [mark for mark in marks if mark is not None]
        return reduce(SparseLayout.joined, layouts) if layouts else None

    def slice(self, mark: SparseLayout | None, parts: Sequence[Any]) -> tuple[SparseLayout | None, Sequence[Any]]:
        return None if mark is None else mark.slices(), parts

    def stack(self, mark: SparseLayout | None) -> SparseLayout | None:
        return None if mark is None else mark._replace(stacked=True)

    def choose(self, op: Any, operands: tuple[Any, ...]) -> Any:
        raise CannotCross(
            f"{op.name}: under sparsify what chooses is a dense value, got a sparse one.",
            hint="sparse.todense(x) gives the dense array.",
        )

    def answer(self, op: Operation, operands: tuple[Any, ...]) -> Any:
        if not any([x.run is self for x in operands]):
            return self.outer.answer(op, operands)
        cell = self.cell
        site = cell.site
        around = STACK.get()
        try:
            cell.site = site or self.labelled_site()
            STACK.set(self.outer)
            kind = type(op)
            known = SPARSE.complete().has(kind)
            if not known:
                if op.bodied:
                    return cross(self, op, operands)  # type: ignore[arg-type]
                if op.deferred:
                    raise CannotCross(
                        f"{op.name}: under sparsify a backward rule has dense arguments, got a sparse one.",
                        hint="custom_jvp, whose rule is of tangents; or sparse.todense(x) for the dense array.",
                    )
            y = (SPARSE.find(kind) if known else refused)(op, *[self.unboxed(x) for x in operands])
            return tuple(map(self.boxed, y)) if op.multiple_results else self.boxed(y)
        finally:
            cell.site = site
            STACK.set(around)

    def fresh(self, outer: Run) -> Sparsify:
        return Sparsify(outer, self.label)


def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """``f`` on sparse arrays: a function that takes sparse arrays in place of dense ones, and returns them.

        todense(sparsify(f)(x)) == f(todense(x))

    Operations with dense results are refused; ``todense`` converts explicitly.
    Effects: forwards everything.

    Args:
        use_tracer: ignored; ``f`` is always called with boxes.

    Raises: NotSparse: the results of an operation would be dense, or it has no rule in the table ``sparse``.
        TreeMismatch: branches, or the iterations of a loop, give different layouts.

    >>> from handlax import numpy as hnp
    >>> from handlax.experimental import sparse
    >>> x = sparse.BCOO.fromdense(hnp.array([[0.0, 1.0], [2.0, 0.0]]))
    >>> sparsify(lambda x, v: 2 * hnp.square(x).T @ v)(x, hnp.array([0.5, 1.0]))
    Array([8., 1.], dtype=float32)
    """

    need_function("sparsify", f)

    @wraps(f)
    @unnamed_boundary
    def sparsified(*args: Any, **kwargs: Any) -> Any:
        run = Sparsify(STACK.get(), "sparsify", user_site(2))
        args, kwargs = pytrees.tree_map(run.boxed, (args, kwargs), is_leaf=is_sparse)
        with installed(run):
            y = f(*args, **kwargs)
        return pytrees.tree_map(run.unboxed, y)

    return sparsified


def same_places(x: Any, y: Any) -> bool:
    """Whether two sparse arrays have the same coordinates in the same order: their index arrays are the same objects.
    """
    return (
        type(x) is type(y) and x.shape == y.shape and x.data.ndim == y.data.ndim
        and all([getattr(x, name) is getattr(y, name) for name in x.buffers[1:]])
    )


def refused(op: Operation, *operands: Any) -> Any:
    """The default rule: raise NotSparse."""
    operand_types = ", ".join([repr(x) if is_sparse(x) else str(x.type) for x in operands])
    raise NotSparse(
        f"{op.name}: it has no sparse result, got {operand_types}.",
        hint=f"sparse.todense(x) gives the dense array; or add a rule: @hx.columns.sparse.rule({type(op).__name__}).",
    )
