"""``handlax.experimental.shard_map``: ``shard_map`` as it was called before it left this module."""

from collections.abc import Callable, Collection, Hashable
from typing import Any

from ..effects.core.signatures import P, R
from ..interpreters.transformations.shard_map import shard_map as _shard_map


def shard_map(
    f: Callable[P, R],
    mesh: Any,
    in_specs: Any,
    out_specs: Any,
    check_rep: bool = True,
    auto: Collection[Hashable] = frozenset(),
) -> Callable[P, R]:
    """``handlax.shard_map`` with positional arguments.

    Args:
        check_rep: the argument ``check_vma`` of ``handlax.shard_map``.
        auto: the mesh axes over which the compiler divides the work; ``f`` is mapped over all other axes.

    Raises: as ``handlax.shard_map``.
    """
    names = {name for name in mesh.axis_names if name not in auto}
    return _shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, axis_names=names, check_vma=check_rep)
