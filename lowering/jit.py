"""jit: trace once, compile once, run on the device.

    jit(f)(x) == f(x)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..effects.errors import BadArgument, need_function
from . import traces
from .dispatch import Jitted
from .entrances import entrance
from .lazy import runtime, stages
from .statics import check_disjoint, choose


def jit(
    fun: Callable[..., Any] | None = None,
    /,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: Mapping[str, Any] | None = None,
) -> Any:
    """Compile ``fun`` for the device: traced once for each combination of argument types, then run as one program.

        jit(f)(x) == f(x)

    Under other transformations and inside other traces it is one operation, whose body is traced once all the same.

    Args:
        static_argnums, static_argnames: arguments that are Python values, not arrays: hashable; each value is a trace.
        donate_argnums, donate_argnames: arguments whose memory may be used for results; they are gone after the call.
        keep_unused: pass arguments to the device that the result does not depend on.
        device, backend: where it runs; else where its arguments lie, else on the default device.
        inline: under handlers, perform the body in place instead of as one operation.
        compiler_options: XLA's options by name.

    Raises: BadArgument: positions and names that the function has not. BadStaticArgument: a static argument that cannot
    be hashed. NotAnArray: an argument or a result that is no array. DeviceMismatch: arguments on two devices.
    DeletedArray: an argument was donated before. UnhandledEffect: an effect that nobody handles.

    >>> jit(lambda x: x + 1)(2)
    Array(3, dtype=int32, weak_type=True)
    """
    if fun is None:
        options = dict(
            in_shardings=in_shardings, out_shardings=out_shardings, static_argnums=static_argnums,
            static_argnames=static_argnames, donate_argnums=donate_argnums, donate_argnames=donate_argnames,
            keep_unused=keep_unused, device=device, backend=backend, inline=inline, compiler_options=compiler_options,
        )  # fmt: skip
        return lambda f: jit(f, **options)
    need_function("jit", fun)
    if in_shardings is not None or out_shardings is not None:
        raise BadArgument("jit: in_shardings and out_shardings must be None here.", hint="put arguments on devices.")
    static = choose(fun, "static", static_argnums, static_argnames)
    donate = choose(fun, "donate", donate_argnums, donate_argnames)
    check_disjoint(fun, static, donate)
    if device is not None and backend is not None:
        raise BadArgument(f"jit: a device or a backend can be given, got {device} and {backend!r}.")
    if backend is not None:
        device = runtime.backend(backend).default_device
    jitted = Jitted(fun, static, donate, keep_unused, device, inline, compiler_options)
    return _dress(entrance(jitted), jitted)


def _dress(call: Any, jitted: Jitted) -> Any:
    """The function's own name and documentation, and what can be done with a jitted function beside calling it."""
    functools.update_wrapper(call, jitted.fun)
    call._jit_info = jitted
    call._fun = jitted.fun
    call.trace = lambda *args, **kwargs: stages.trace(jitted, args, kwargs)
    call.lower = lambda *args, **kwargs: stages.trace(jitted, args, kwargs).lower()
    call.eval_shape = lambda *args, **kwargs: stages.trace(jitted, args, kwargs).out_info
    call.clear_cache = call._clear_cache = lambda: clear(jitted)
    call._cache_size = lambda: len(jitted.table)
    return call


def clear(jitted: Jitted) -> None:
    """Forget every trace and compiled program of one function."""
    jitted.clear()
    traces.forget(jitted.fun)
