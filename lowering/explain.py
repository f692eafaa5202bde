"""Why a jitted function was traced again: which argument, which field, from what to what."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..effects.closures import jit_info
from ..effects.config import DEFAULTS
from ..effects.errors import BadArgument
from ..effects.types import ArrayType
from .statics import argument_names
from .traces import leaf_names


def explain(f: Callable[..., Any]) -> str:
    """What a jitted function has been compiled for, in order, and how each call differed from the one before.

    Raises: BadArgument: the function is not jitted.

    >>> from handlax import jit
    >>> f = jit(lambda x: x + 1)
    >>> y = f(1), f(2.0)
    >>> print(explain(f))
    <lambda>: compiled for 2 kinds of calls
      1: x: i32[]~
      2: x: f32[]~ (x: dtype from int32 to float32)
    """
    jitted = jit_info(f)
    if jitted is None:
        raise BadArgument(f"explain: a jitted function is needed, got {getattr(f, '__name__', type(f).__name__)}.")
    keys = list(jitted.table)
    lines = [f"{jitted.name}: compiled for {len(keys)} kind{'s' if len(keys) != 1 else ''} of calls"]
    before = None
    for number, key in enumerate(keys, 1):
        (_, static, tree, types), _, _ = key
        names = _names(jitted, static, tree, len(types))
        whole = ", ".join([f"{name}: {t}" for name, t in zip(names, types)]) or "no arrays"
        changes = "" if before is None else f" ({'; '.join(_changes(before, key, names))})"
        lines.append(f"  {number}: {whole}{_static(static)}{changes}")
        before = key
    return "\n".join(lines)


def _names(jitted: Any, static: Any, tree: Any, count: int) -> list[str]:
    args, kwargs = tree.unflatten(list(range(count)))
    argument = argument_names(jitted.fun)
    fixed = set() if static is None else jitted.static.at(static[0])
    places = [i for i in range(len(args) + len(fixed)) if i not in fixed]
    name = leaf_names(lambda i: argument(places[i]), args, kwargs)
    return [name(i) for i in range(count)]


def _given(static: Any) -> str:
    return _static(static).removeprefix("; static ") or "the defaults"


def _static(static: Any) -> str:
    if static is None:
        return ""
    _, positional, named = static
    given = [f"{place}={value!r}" for place, _, value in (*positional, *named)]
    return f"; static {', '.join(given)}" if given else ""


def _changes(before: Any, after: Any, names: list[str]) -> Iterator[str]:
    (settings, static, tree, types), device, donated = before
    (new_settings, new_static, new_tree, new_types), new_device, new_donated = after
    for name in DEFAULTS:
        if getattr(settings, name) != getattr(new_settings, name):
            yield f"setting {name} from {getattr(settings, name)!r} to {getattr(new_settings, name)!r}"
    if static != new_static:
        yield f"static arguments from {_given(static)} to {_given(new_static)}"
    if tree != new_tree:
        yield f"structure from {tree} to {new_tree}"
    else:
        for name, t, new in zip(names, types, new_types):
            yield from _differences(name, t, new)
    if device != new_device:
        yield f"device from {device} to {new_device}"
    if donated != new_donated:
        yield "donated arguments"


def _differences(name: str, t: ArrayType, new: ArrayType) -> Iterator[str]:
    if t is new:
        return
    if t.shape != new.shape:
        yield f"{name}: shape from {t.shape} to {new.shape}"
    if t.dtype != new.dtype:
        yield f"{name}: dtype from {t.dtype} to {new.dtype}"
    if t.weak != new.weak and t.dtype == new.dtype:
        yield f"{name}: from {'weak to strong' if t.weak else 'strong to weak'}"
