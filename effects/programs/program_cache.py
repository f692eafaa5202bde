"""The kind of cache for what is derived from programs and operations with bodies, by value."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from ..base.caches import Cache
from ..base.source_locations import LabelledCode, Site
from ..core.operation import Operation
from .program import Program, derived_once, has_rule, holds_rules, memoised


class ProgramCache(Cache):
    """A cache by keys with programs or operations among their elements: equal programs share what is derived from them.

    What is derived has the scopes of the program, so that equal programs in other scopes share nothing.

    What is derived from a program or operation with a user's rule or policy, a function that may hold data of any size,
    is kept by that alone, and freed with it.
    """

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        holder = _holder(key)
        scopes = tuple([scopes_in(x) for x in _programs(key)])
        key = (key, scopes) if any(scopes) else key
        return super().get(key, make) if holder is None else memoised(holder, (self.name, key), make)


@derived_once
def scopes_of(program: Program) -> list[tuple[str, ...]]:
    """The named scopes of each equation, outermost first; those of one scope share the code at their sites."""
    codes = program.sites.codes
    labelled = {id(code): code for code in codes if type(code) is LabelledCode}
    named = {key: Site(code, 0).scopes for key, code in labelled.items()}
    return [named.get(id(code), ()) for code in codes]


@derived_once
def scopes_in(program: Program) -> Hashable:
    """The named scopes of each equation, and of those in its bodies; None where there are none at all."""
    own = scopes_of(program)
    inner = [scopes_in(body) for op in program.ops if op.bodied for body in op.bodies]  # type: ignore[attr-defined]
    return (*own, *inner) if any(own) or any(inner) else None


def _programs(key: Any) -> list[Program]:
    """The programs among the elements of a key, and the bodies of the operations among them."""
    found: list[Program] = []
    for x in key if isinstance(key, tuple) else (key,):
        if isinstance(x, Program):
            found.append(x)
        elif isinstance(x, Operation) and x.bodied:
            found += x.bodies  # type: ignore[attr-defined]
    return found


def _holder(key: Any) -> Program | Operation | None:
    """The program or operation with a rule that keeps what is derived by this key; None: nothing in it has a rule."""
    for x in key if isinstance(key, tuple) else (key,):
        if isinstance(x, Operation):
            if has_rule(x):
                return x
            bodies: tuple[Program, ...] = x.bodies if x.bodied else ()  # type: ignore[attr-defined]
        else:
            bodies = (x,) if isinstance(x, Program) else ()
        held = next(filter(holds_rules, bodies), None)
        if held is not None:
            return held
    return None
