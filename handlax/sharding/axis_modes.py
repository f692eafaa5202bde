"""Functions some of whose axes are automatic, or explicit: what remains of them is where their arrays are placed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..effects.base.errors import BadCall, need_function
from ..effects.sharding.mesh_scope import get_abstract_mesh
from ..lowering.arrays.sharding_constraints import reshard

Axes = str | tuple[str, ...] | None


def auto_axes(f: Any = None, /, *, axes: Axes = None, out_sharding: Any = None) -> Any:
    """The function with its results placed as ``out_sharding`` says; within it the compiler places the values.

        auto_axes(f, out_sharding=s)(x) == reshard(f(x), s)

    Axes place values alike whether they are automatic or explicit, so ``axes`` changes nothing more. The sharding may
    be given with the call, as ``out_sharding=``. Without ``f``, a decorator.

    Raises: BadCall: there is no sharding. BadArgument: the mesh in force has not one of the axes.
    """

    def call(f: Any, sharding: Any, *args: Any, **kwargs: Any) -> Any:
        return reshard(f(*args, **kwargs), sharding)

    return _placing("auto_axes", "out_sharding", call, f, axes, out_sharding)


def explicit_axes(f: Any = None, /, *, axes: Axes = None, in_sharding: Any = None) -> Any:
    """The function with its arguments placed as ``in_sharding`` says, a sharding for all or a tuple of them.

        explicit_axes(f, in_sharding=s)(x) == f(reshard(x, s))

    Axes place values alike whether they are automatic or explicit, so ``axes`` changes nothing more. The sharding may
    be given with the call, as ``in_sharding=``. Without ``f``, a decorator.

    Raises: BadCall: there is no sharding. BadArgument: the mesh in force has not one of the axes.
    """

    def call(f: Any, sharding: Any, *args: Any, **kwargs: Any) -> Any:
        return f(*reshard(args, sharding), **kwargs)

    return _placing("explicit_axes", "in_sharding", call, f, axes, in_sharding)


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
        for name in (axes,) if isinstance(axes, str) else axes or ():
            get_abstract_mesh().axis_size(where, name)
        return call(f, given, *args, **kwargs)

    return placed
