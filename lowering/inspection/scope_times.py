"""scope_times: the time that the devices spend in each named scope of a function, such as the layers of a model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

from ...effects.base.errors import BadArgument, need_count, need_function
from ...effects.base.tracebacks import unnamed_boundary
from ...effects.base.wrapping import wraps
from ..jit.devices import block_until_ready
from ..jit.jit import jit
from ..xla.profiler import executed, trace
from .hlo_program import HOLDS_OTHERS, hlo_program


def scope_times(f: Callable[..., Any], calls: int = 3) -> Callable[..., Mapping[str, float]]:
    """``scope_times(f)(*args)``: the seconds that one call of the compiled ``f`` spends in each ``named_scope``.

    A scope is named as by ``costs(f)(*args).by_scope()``, ``""`` is outside of all. A kernel that XLA fuses of several
    scopes counts for that of its result. On several devices times add up. ``f`` is called once, and ``calls`` times for
    the profile of which the mean is given; its arguments must not be donated.

    Raises: ProfilerMisuse: a profile is being recorded. NotAnInteger, BadArgument: ``calls`` is no positive integer.
    BadArgument: ``f`` is a compiled function of a library, and its text cannot be found.

    >>> from handlax import named_scope, numpy
    >>> def f(x):
    ...     with named_scope("layer"):
    ...         return x @ x
    >>> scope_times(f)(numpy.ones((100, 100)))["layer"] > 0.0
    True
    """
    need_function("scope_times", f)
    calls = need_count("scope_times: calls", calls, least=1)

    @wraps(f)
    @unnamed_boundary
    def timed(*args: Any, **kwargs: Any) -> Mapping[str, float]:
        jitted: Any = f if hasattr(f, "lower") else jit(f)
        text = _text(jitted.lower(*args, **kwargs).compile())
        block_until_ready(jitted(*args, **kwargs))
        with trace() as session:
            for _ in range(calls):
                block_until_ready(jitted(*args, **kwargs))
        scopes = instruction_scopes(text)
        seconds = defaultdict[str, float](float)
        own = text.removeprefix("HloModule ").partition(",")[0]
        for module, _, name, duration in executed(session.profile_data, scopes):
            if name in scopes and module in (own, ""):
                seconds[scopes[name]] += duration / calls
        return dict(sorted(seconds.items()))

    return timed


def instruction_scopes(text: str) -> dict[str, str]:
    """The scopes of the instructions of a compiled program that take time themselves, by their names.

    >>> sine = '  %a.1 = f32[2]{0} sine(%b), metadata={op_name="encoder/norm/sin"}'
    >>> instruction_scopes("ENTRY %main (b: f32[2]) -> f32[2] {\\n" + sine)
    {'a.1': 'encoder/norm'}
    """
    instructions = chain(*hlo_program(text).computations.values())
    return {each.name: each.scope for each in instructions if not HOLDS_OTHERS.fullmatch(each.opcode)}


def _text(compiled: Any) -> str:
    """The HLO text of a compiled function, or of that which a library's own class of such functions holds.

    Raises: BadArgument: there is none.
    """
    held = [x for x in (compiled, *getattr(compiled, "__dict__", {}).values()) if hasattr(x, "as_text")]
    if not held:
        raise BadArgument(
            f"scope_times: the compiled function must have a text, got {type(compiled).__name__} without as_text().",
            hint="time the function that is compiled: scope_times(f), not of a wrapper of jit(f).",
        )
    return str(held[0].as_text())
