"""Functions within which axes are automatic, or explicit."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..effects.base.errors import BadCall, need_function
from ..effects.sharding.mesh import AbstractMesh, AxisType
from ..effects.sharding.mesh_scope import get_abstract_mesh, use_abstract_mesh
from ..effects.sharding.named_sharding import NamedSharding, Sharding
from ..effects.sharding.partition_spec import PartitionSpec
from ..effects.trees import pytrees
from ..lowering.arrays.sharding_constraints import left_to, reshard

Axes = str | tuple[str, ...] | None


def auto_axes(f: Any = None, /, *, axes: Axes = None, out_sharding: Any = None) -> Any:
    """The function with its results placed as ``out_sharding`` says; within it the compiler places the values.

        auto_axes(f, out_sharding=s)(x) == reshard(f(x), s)

    Within it the axes, by default all of the mesh in force, else of the sharding's, are automatic: types state nothing
    about them. The sharding may be given with the call, as ``out_sharding=``. Without ``f``, a decorator.

    Raises: BadCall: there is no sharding. BadArgument: the mesh in force has not one of the axes.
    """

    def call(f: Any, sharding: Any, around: AbstractMesh, *args: Any, **kwargs: Any) -> Any:
        inside = _with_types(around, axes, AxisType.Auto)
        with use_abstract_mesh(inside):
            results = f(*left_to(inside, args), **left_to(inside, kwargs))
        return reshard(results, sharding)

    return _placing("auto_axes", "out_sharding", call, f, axes, out_sharding)


def explicit_axes(f: Any = None, /, *, axes: Axes = None, in_sharding: Any = None) -> Any:
    """The function with its arguments placed as ``in_sharding`` says, a sharding for all or a tuple of them.

        explicit_axes(f, in_sharding=s)(x) == f(reshard(x, s))

    Within it the axes, by default all of the mesh in force, else of the sharding's, are explicit; types of its results
    state what they stated outside. The sharding may be given with the call, as ``in_sharding=``. Without ``f``, a
    decorator.

    Raises: BadCall: there is no sharding. BadArgument: the mesh in force has not one of the axes.
    """

    def call(f: Any, sharding: Any, around: AbstractMesh, *args: Any, **kwargs: Any) -> Any:
        with use_abstract_mesh(_with_types(around, axes, AxisType.Explicit)):
            results = f(*reshard(args, sharding), **kwargs)
        return left_to(around, results)

    return _placing("explicit_axes", "in_sharding", call, f, axes, in_sharding)


def _mesh(sharding: Any) -> AbstractMesh:
    """The mesh in force; where none is, that of the first of these shardings that has one."""
    given = pytrees.leaves(sharding, lambda leaf: isinstance(leaf, (Sharding, PartitionSpec)))
    meshes = [get_abstract_mesh(), *[leaf.mesh.abstract_mesh for leaf in given if isinstance(leaf, NamedSharding)]]
    return next((mesh for mesh in meshes if not mesh.empty), meshes[0])


def _with_types(mesh: AbstractMesh, axes: Axes, kind: AxisType) -> AbstractMesh:
    """The mesh where these axes, or all, are of this kind."""
    return mesh.update_axis_types(dict.fromkeys(_names(axes) or mesh.axis_names, kind))


def _names(axes: Axes) -> tuple[str, ...]:
    return (axes,) if isinstance(axes, str) else axes or ()


def _placing(where: str, keyword: str, call: Callable[..., Any], f: Any, axes: Axes, sharding: Any) -> Any:
    """``f``, called by ``call`` with the sharding that is given here or, by this keyword, with the arguments."""
    if f is None:
        return lambda f: _placing(where, keyword, call, f, axes, sharding)
    need_function(where, f)

    @functools.wraps(f)
    def placed(*args: Any, **kwargs: Any) -> Any:
        given = kwargs.pop(keyword, None) if sharding is None else sharding
        if given is None:
            raise BadCall(f"{where}: {keyword} must be given, got none.", hint=f"{where}(f, {keyword}=hx.P('axis')).")
        around = _mesh(given)
        for name in _names(axes):
            around.axis_size(where, name)
        return call(f, given, around, *args, **kwargs)

    return placed
