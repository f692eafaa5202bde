"""sparsify: the handler under which operations have a sparse meaning. A box shows a sparse array as a dense one.

    todense(sparsify(f)(x)) == f(todense(x))

An operation with a box as operand is answered by its rule in the column ``sparse``: a function of sparse arrays and of
dense ones, the values of the handlers outside, which gives the same. Operations with bodies are crossed by
``body_transform``; the mark of a value is its layout, the parts are its buffers. All other handlers see operations on
buffers, so that derivatives, batches, compilation and effects are as of any other program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...effects.base.errors import CannotCross, NotSparse, TreeMismatch, need_function
from ...effects.base.source_locations import user_site
from ...effects.base.stack import STACK, Run, installed
from ...effects.base.wrapping import wraps
from ...effects.core.arrays import type_of
from ...effects.core.columns import SPARSE
from ...effects.core.operation import Operation
from ...effects.trees import pytrees
from ...effects.types.array_type import ArrayType, array_type
from ...interpreters.core.body_transform import BodyTransformer, cross
from ...interpreters.core.sited_box import SitedBox
from .sparse_array import JAXSparse, is_sparse


class SparseTracer(SitedBox):
    """A sparse array under ``sparsify``: its type is that of the dense array, ``value`` the sparse one."""

    __slots__ = ("value",)
    value: Any


class SparseLayout(NamedTuple):
    """What is static of a sparse array: its structure and the types of its buffers.

    ``stacked``: it is the layout of the slices of an array, which has one batch dimension more.
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
        """The layout that values with either have, of which the indices are sorted, or unique, if those of both are.

        Raises: TreeMismatch: they differ in more.
        """
        if self.structure == other.structure and self.fits(other):
            return self
        x, y = [pytrees.unflatten(layout.structure, layout.types) for layout in (self, other)]
        if type(x) is type(y) and x.shape == y.shape and self.fits(other):
            flags = {name: getattr(x, name) and getattr(y, name) for name in x.flags}
            return self._replace(structure=pytrees.structure(x.replaced(**flags)))
        raise TreeMismatch(
            f"sparsify: branches, and the iterations of a loop, must agree on the layout of a value, got {self} and "
            f"{other}.",
            hint="sparse.todense(x) gives the dense array; layouts are changed outside of sparsify.",
        )

    def fits(self, other: SparseLayout) -> bool:
        """Whether the buffers have the same shapes and dtypes, and equally many dimensions stacked."""
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
        """The box of a sparse array; a dense one is itself."""
        if not is_sparse(x):
            return x
        new = SparseTracer()
        new.run, new.value, new.site = self, x, self.cell.site
        data = type_of(x.data)
        new.type = array_type(x.shape, data.dtype, data.weak)
        return new

    def unboxed(self, x: Any) -> Any:
        """The sparse array of a box; any other value is itself."""
        return x.value if isinstance(x, SparseTracer) and x.run is self else x

    def split(self, x: Any) -> tuple[SparseLayout | None, Sequence[Any]]:
        return (SparseLayout.of(x.value), pytrees.leaves(x.value)) if x.run is self else (None, (x,))

    def part_types(self, mark: SparseLayout | None, type: ArrayType) -> Sequence[ArrayType]:
        return (type,) if mark is None else mark.types

    def box(self, mark: SparseLayout | None, parts: Sequence[Any]) -> Any:
        return parts[0] if mark is None else self.boxed(mark.array(parts))

    def force(self, x: Any, mark: SparseLayout | None) -> Sequence[Any]:
        found, parts = self.split(x)
        if (found is None) != (mark is None):
            raise TreeMismatch(
                f"sparsify: branches, and the iterations of a loop, must agree whether a value is sparse, got "
                f"{found or x.type} and {mark or 'a dense array'}.",
                hint="sparse.todense(x) gives the dense array.",
            )
        return parts

    def join(self, marks: Sequence[SparseLayout | None]) -> SparseLayout | None:
        layouts = [mark for mark in marks if mark is not None]
        if not layouts:
            return None
        found = layouts[0]
        for layout in layouts[1:]:
            found = found.joined(layout)
        return found

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
        cell.site = site or self.labelled_site()
        token = STACK.set(self.outer)
        try:
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
            STACK.reset(token)
            cell.site = site

    def fresh(self, outer: Run) -> Sparsify:
        return Sparsify(outer, self.label)


def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """``f`` on sparse arrays: a function of arrays, that takes and gives sparse ones where the arguments are sparse.

        todense(sparsify(f)(x)) == f(todense(x))

    Operations that would fill an array are refused; ``todense`` is how to ask for it.
    Effects: forwards everything.

    Args:
        use_tracer: ignored; ``f`` is called with values that stand for sparse arrays, so that there is one way.

    Raises: NotSparse: the results of an operation would be dense, or it has no rule in the column ``sparse``.
        TreeMismatch: branches, or the iterations of a loop, give different layouts.

    >>> from handlax import numpy as hnp
    >>> from handlax.experimental import sparse
    >>> x = sparse.BCOO.fromdense(hnp.array([[0.0, 1.0], [2.0, 0.0]]))
    >>> sparsify(lambda x, v: 2 * hnp.square(x).T @ v)(x, hnp.array([0.5, 1.0]))
    Array([8., 1.], dtype=float32)
    """

    need_function("sparsify", f)

    @wraps(f)
    def sparsified(*args: Any, **kwargs: Any) -> Any:
        run = Sparsify(STACK.get(), "sparsify", user_site(2))
        args, kwargs = pytrees.tree_map(run.boxed, (args, kwargs), is_leaf=is_sparse)
        with installed(run):
            y = f(*args, **kwargs)
        return pytrees.tree_map(run.unboxed, y)

    return sparsified


def same_places(x: Any, y: Any) -> bool:
    """Whether two sparse arrays store the same places, in the same order: they have the very same indices."""
    return (
        type(x) is type(y) and x.shape == y.shape and x.data.ndim == y.data.ndim
        and all([getattr(x, name) is getattr(y, name) for name in x.buffers[1:]])
    )  # fmt: skip


def refused(op: Operation, *operands: Any) -> Any:
    """The rule of operations without one. Raises: NotSparse."""
    found = ", ".join([repr(x) if is_sparse(x) else str(x.type) for x in operands])
    raise NotSparse(
        f"{op.name}: it has no sparse result, got {found}.",
        hint=f"sparse.todense(x) gives the dense array; or add a rule: @hx.columns.sparse.rule({type(op).__name__}).",
    )
