"""The error of an effect that nobody handles: eagerly, where its type is asked for, or in a program to be compiled."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..base.errors import UnhandledEffect
from ..base.source_locations import RawSite, Site
from .program import Program


def unhandled(name: str, effects: Iterable[Any], program: Program | None = None) -> UnhandledEffect:
    """The error of these effects, performed by what is called ``name``; by a program, at the line that performs one."""
    first, *_ = found = sorted(effects, key=str)
    error = UnhandledEffect(
        f"{name}: nobody handles {', '.join(map(str, found))}.",
        hint=first.remedy or "run it under hx.handle(handler)(f), with a clause for it.",
    )
    at = None if program is None else site_of_effect(program, first)
    return error if at is None else error.moved(f"at {Site(*at).full}")


def site_of_effect(program: Program, effect: Any) -> RawSite | None:
    """The site of the first equation that performs an effect, in the innermost body; None: none does visibly."""
    for op, at in zip(program.ops, program.sites):
        if effect in op.effects:
            within = [site_of_effect(body, effect) for body in getattr(op, "bodies", ())]
            return next((site for site in (*within, at) if site is not None and site[0] is not None), None)
    return None
