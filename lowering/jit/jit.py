"""jit: trace once, compile once, execute on the device.

    jit(f)(x) == f(x)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, overload

from ...effects.base.errors import BadArgument, need_function, need_one_of
from ...effects.base.lazy_module import LazyModule
from ...effects.base.tracebacks import unnamed_boundary
from ...effects.base.wrapping import with_methods, wraps
from ...effects.core.signatures import P, R
from ...effects.trees import pytrees
from ...interpreters.core.static_arguments import check_disjoint, choose
from ..arrays.call_shardings import CallShardings
from ..xla.lazy import runtime
from .call_fastpath import fast_path
from .compile_options import Inline, checked_options
from .dispatch import Jitted

if TYPE_CHECKING:
    from . import ahead_of_time
else:
    ahead_of_time = LazyModule("handlax.lowering.jit.ahead_of_time")

_NOT_GIVEN = pytrees.Unspecified()  # ``jit(static_argnums=0)`` is a decorator, ``jit(None)`` a mistake


@overload
def jit(
    fun: Callable[P, R], /, *,
    in_shardings: Any = ..., out_shardings: Any = ..., static_argnums: int | Sequence[int] | None = ...,
    static_argnames: str | Iterable[str] | None = ..., donate_argnums: int | Sequence[int] | None = ...,
    donate_argnames: str | Iterable[str] | None = ..., keep_unused: bool = ..., device: Any = ...,
    backend: str | None = ..., inline: bool | Inline = ..., compiler_options: Mapping[str, Any] | None = ...,
) -> ahead_of_time.Wrapped[P, R]: ...
@overload
def jit(
    *,
    in_shardings: Any = ..., out_shardings: Any = ..., static_argnums: int | Sequence[int] | None = ...,
    static_argnames: str | Iterable[str] | None = ..., donate_argnums: int | Sequence[int] | None = ...,
    donate_argnames: str | Iterable[str] | None = ..., keep_unused: bool = ..., device: Any = ...,
    backend: str | None = ..., inline: bool | Inline = ..., compiler_options: Mapping[str, Any] | None = ...,
) -> Callable[[Callable[P, R]], ahead_of_time.Wrapped[P, R]]: ...
def jit(
    fun: Callable[..., Any] | pytrees.Unspecified = _NOT_GIVEN,
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
    inline: bool | Inline = False,
    compiler_options: Mapping[str, Any] | None = None,
) -> Any:
    """Compile ``fun`` for the device: traced once for each combination of argument types, then executed as one program.

        jit(f)(x) == f(x)

    Under other transformations and inside other traces a call is one operation; its body is traced once all the same.

    Args:
        in_shardings, out_shardings: how arguments and results are cut over devices: shardings, or trees of them that
            are prefixes of the positional arguments and of the results; a PartitionSpec is about the mesh in force.
            Without one, None, an argument stays as it is, and the compiler chooses how a result is cut. A ``Format``
            has a layout too: arrays are row-major without one, and arguments are taken as they lie.
        static_argnums, static_argnames: arguments that are hashable Python values, not arrays; a trace for each value.
        donate_argnums, donate_argnames: arguments whose memory may be used for results; the call deletes them.
            Under another transformation or a handler nothing is donated: ``jit(handle(h)(f))``, not the reverse.
        keep_unused: pass arguments to the device that the result does not depend on.
        device, backend: the device; by default those of committed arguments, else those of the meshes that the program
            names, else of the mesh that ``set_mesh`` has set, else the default device.
        inline: under handlers, perform the operations of the body instead of one operation; see ``Inline``.
        compiler_options: XLA's options by name; and ``split_repeats``, by default True: whether repeated parts of the
            program, such as the blocks of a deep model, are compiled apart from each other, which is faster.

    Raises: BadArgument: a position or name that the function does not have, or ``split_repeats`` is no bool.
    BadStaticArgument: a static argument that is not hashable. NotAnArray: an argument or a result that is no array.
    DeviceMismatch: arguments or shardings over different devices. ShapeMismatch: a dimension that cannot be cut into
    equal parts.
    DeletedArray: an argument was donated before. UnhandledEffect: an effect without a handler.

    >>> jit(lambda x: x + 1)(2)
    Array(3, dtype=int32, weak_type=True)
    """
    if isinstance(fun, pytrees.Unspecified):
        options = dict(
            in_shardings=in_shardings, out_shardings=out_shardings, static_argnums=static_argnums,
            static_argnames=static_argnames, donate_argnums=donate_argnums, donate_argnames=donate_argnames,
            keep_unused=keep_unused, device=device, backend=backend, inline=inline, compiler_options=compiler_options,
        )
        return lambda f: jit(f, **options)
    need_function("jit", fun)
    shardings = CallShardings(in_shardings, out_shardings)
    shardings.check()
    static = choose(fun, "static", static_argnums, static_argnames)
    donate = choose(fun, "donate", donate_argnums, donate_argnames)
    check_disjoint(fun, static, donate)
    if device is not None and backend is not None:
        raise BadArgument(f"jit: device or backend must be None, got {device} and {backend!r}.")
    if device is not None and not runtime.is_device(device):
        raise BadArgument(f"jit: device must be a device, got {device!r}.", hint="hx.devices()[0] is one.")
    if backend is not None:
        device = runtime.backend(backend).default_device
    need_one_of("jit: keep_unused", keep_unused, (False, True))
    early = inline is Inline.JAX_EARLY or inline is True
    if device is not None and shardings:
        raise BadArgument(f"jit: device or shardings must be None, got {device} and {in_shardings}, {out_shardings}.")
    chosen = checked_options("jit", compiler_options)
    jitted = Jitted(fun, static, donate, keep_unused, device, early, chosen, (), shardings)
    return _with_methods(fast_path(jitted), jitted)


def _with_methods(call: Any, jitted: Jitted) -> Any:
    """``call`` with the name and documentation of the function, and the methods of a jitted function."""
    return with_methods(wraps(jitted.fun)(call), {
        "_jit_info": jitted,
        "_fun": jitted.fun,
        "trace": unnamed_boundary(lambda *args, **kwargs: ahead_of_time.trace(jitted, args, kwargs)),
        "lower": unnamed_boundary(lambda *args, **kwargs: ahead_of_time.trace(jitted, args, kwargs).lower()),
        "eval_shape": unnamed_boundary(lambda *args, **kwargs: ahead_of_time.trace(jitted, args, kwargs).out_info),
        "clear_cache": partial(clear, jitted),
        "_clear_cache": partial(clear, jitted),
        "_cache_size": lambda: len(jitted.compiled),
    })


def clear(jitted: Jitted) -> None:
    """Drop every trace and compiled program of one function."""
    jitted.clear()
