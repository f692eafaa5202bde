"""Derivatives with respect to sparse arrays: by their stored entries, so that gradients are sparse, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...effects.base.wrapping import wraps
from ...effects.trees import pytrees
from ...interpreters.transformations import derivatives
from .sparse_array import is_sparse

__all__ = ["grad", "jacfwd", "jacobian", "jacrev", "value_and_grad"]


class _StoredData:
    """A stand-in for sparse argument ``number``: its data, with respect to which the derivative is taken."""

    def __init__(self, data: Any, number: int):
        self.data, self.number = data, number


pytrees.register_pytree_node(_StoredData, lambda x: ((x.data,), x.number), lambda n, data: _StoredData(data[0], n))


def _by_stored_entries(transform: Callable[..., Any], of_derivatives: Callable[..., Any]) -> Callable[..., Any]:
    """``transform`` with respect to the data of sparse arguments; ``of_derivatives(f, y)`` applies ``f`` to the
    derivatives in ``y``.
    """

    def transformed(
        fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **options: Any
    ) -> Callable[..., Any]:
        @wraps(fun)
        def derivative(*args: Any, **kwargs: Any) -> Any:
            sparse_args: list[Any] = []

            def opened(x: Any) -> Any:
                if not is_sparse(x):
                    return x
                sparse_args.append(x)
                return _StoredData(x.data, len(sparse_args) - 1)

            def closed(tree: Any) -> Any:
                """The tree with sparse arrays in place of their data, to which dimensions of results may be added."""
                return pytrees.tree_map(
                    lambda x: _like(sparse_args[x.number], x.data) if isinstance(x, _StoredData) else x, tree,
                    is_leaf=lambda x: isinstance(x, _StoredData),
                )

            args = pytrees.tree_map(opened, args, is_leaf=is_sparse)
            inner = lambda *args, **kwargs: fun(*closed(args), **kwargs)
            y = transform(inner, argnums, has_aux=has_aux, **options)(*args, **kwargs)
            return of_derivatives(closed, y, has_aux)

        return derivative

    name = transformed.__name__ = transformed.__qualname__ = transform.__name__
    transformed.__doc__ = f"""``{name}`` by the stored entries of sparse arguments, so that it gives sparse arrays.

    Args: as of ``handlax.{name}``.
    """
    return transformed


def _like(x: Any, data: Any) -> Any:
    """The sparse array with other data; leading dimensions of these become further batch dimensions."""
    extra = data.shape[: data.ndim - x.data.ndim] if hasattr(data, "shape") else ()
    if not extra:
        return x.replaced(data=data)
    others = {name: getattr(x, name)[(None,) * len(extra)] for name in x.buffers[1:]}
    return x.replaced(data=data, shape=(*extra, *x.shape), **others)


def _first(closed: Callable[..., Any], y: Any, has_aux: bool) -> Any:
    return (closed(y[0]), y[1]) if has_aux else closed(y)


grad = _by_stored_entries(derivatives.grad, _first)
jacfwd = _by_stored_entries(derivatives.jacfwd, _first)
jacrev = jacobian = _by_stored_entries(derivatives.jacrev, _first)
value_and_grad = _by_stored_entries(derivatives.value_and_grad, lambda closed, y, has_aux: (y[0], closed(y[1])))
