"""Explanations of retraces: which argument or setting changed, from what to what."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...effects.base.config import DEFAULTS, WATCHES
from ...effects.base.errors import BadArgument
from ...effects.base.wrapping import name_of
from ...effects.functions.captured import jit_info
from ...effects.programs.program import Program
from ...effects.types.array_type import ArrayType
from ...interpreters.analysis.repeats import repeats
from ...interpreters.analysis.simplify import dead_code_elimination
from ...interpreters.core.static_arguments import argument_names
from ...interpreters.core.trace_cache import leaf_names


def explain(f: Callable[..., Any]) -> str:
    """The kinds of calls that a jitted function was compiled for, in order, each with its change from the one before.

    Repeats of a program, which are compiled apart from each other, are named too.

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
        name = name_of(f)
        raise BadArgument(f"explain: the argument must be a jitted function, got {name}.", hint="pass jit(f).")
    kinds = _kinds(jitted)
    heading = f"{jitted.name}: compiled for {len(kinds)} kind{'s' if len(kinds) != 1 else ''} of calls"
    return "\n".join([heading, *kinds])


def last_kind(jitted: Any) -> str:
    """The line of ``explain`` on the call compiled last."""
    return _kinds(jitted)[-1]


def _kinds(jitted: Any) -> list[str]:
    """A line for each kind of calls, with its change from the one before."""
    lines = []
    before = None
    for number, (key, entry) in enumerate(list(jitted.compiled.items()), 1):
        (_, static, tree, types), _, _ = key
        names = leaf_names_of(jitted, static, tree)
        arguments = ", ".join([f"{name}: {t}" for name, t in zip(names, types)]) or "no arrays"
        changes = "" if before is None else f" ({'; '.join(_changes(before, key, names))})"
        lines.append(f"  {number}: {arguments}{_static(static)}{_repeats(entry.trace.recorded)}{changes}")
        before = key
    return lines


def leaf_names_of(jitted: Any, static: Any, tree: Any) -> list[str]:
    """The names, in messages, of the arrays in the arguments of a call that are not static.

    ``static`` and ``tree`` are parts of the call's key: the static arguments, and the structure of the others.
    """
    argument = argument_names(jitted.fun)
    fixed = set() if static is None else jitted.static.at(static[0])
    positions = [i for i in range(len(tree.children()[0].children()) + len(fixed)) if i not in fixed]
    return leaf_names(lambda i: argument(positions[i]), tree)


def _static_or_defaults(static: Any) -> str:
    return _static(static).removeprefix("; static ") or "the defaults"


def _static(static: Any) -> str:
    """The static arguments of a call, as ``explain`` prints them."""
    if static is None:
        return ""
    _, positional, named = static
    values = [f"{name}={value!r}" for name, (_, value) in (*positional, *named)]
    return f"; static {', '.join(values)}" if values else ""


def _repeats(program: Program) -> str:
    """The repeats of a program that is compiled, as ``explain`` prints them."""
    compiled, _ = dead_code_elimination(program)
    found = [f"{repeat.times} x {repeat.period} equations" for repeat in repeats(compiled)]
    return f"; repeats {', '.join(found)}" if found else ""


def _changes(before: Any, after: Any, names: list[str]) -> Iterator[str]:
    """The differences between two keys of ``Jitted.compiled``."""
    (settings, static, tree, types), device, donated = before
    (new_settings, new_static, new_tree, new_types), new_device, new_donated = after
    for name in DEFAULTS:
        if name not in WATCHES and getattr(settings, name) != getattr(new_settings, name):
            yield f"setting {name} from {getattr(settings, name)!r} to {getattr(new_settings, name)!r}"
    if static != new_static:
        yield f"static arguments from {_static_or_defaults(static)} to {_static_or_defaults(new_static)}"
    if tree != new_tree:
        yield f"structure from {tree} to {new_tree}"
    else:
        for name, t, new in zip(names, types, new_types):
            yield from _differences(name, t, new)
    if device != new_device:
        yield f"devices from {device} to {new_device}"
    if donated != new_donated:
        yield "donated arguments"


def _differences(name: str, t: ArrayType, new: ArrayType) -> Iterator[str]:
    """The differences between two types of the argument ``name``."""
    if t is new:
        return
    if t.shape != new.shape:
        yield f"{name}: shape from {t.shape} to {new.shape}"
    if t.dtype != new.dtype:
        yield f"{name}: dtype from {t.dtype} to {new.dtype}"
    if t.weak != new.weak and t.dtype == new.dtype:
        yield f"{name}: from {'weak to strong' if t.weak else 'strong to weak'}"
