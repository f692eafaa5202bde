"""jvp: forward derivatives. A box pairs a primal with its tangent; None is the symbolic zero.

    jvp(f)(x, dx) = f(x), f'(x) dx
"""

from __future__ import annotations

from typing import Any

from ..effects.arrays import Box
from ..effects.columns import JVP
from ..effects.errors import NotDifferentiable
from ..effects.operations import Operation
from ..effects.sources import Site, user_site
from ..effects.stack import STACK, Run


class JvpBox(Box):
    """A primal and its tangent, which is never None."""

    __slots__ = ("primal", "tangent", "at")

    def __init__(self, run: Run, primal: Any, tangent: Any):
        self.type = primal.type
        self.run = run
        self.primal = primal
        self.tangent = tangent
        self.at = run.cell.site

    @property
    def made_at(self) -> Site:
        return Site(*self.at) if self.at is not None else self.run.installed_at


class Jvp(Run):
    """Answers by ownership: operations that have one of its boxes as operand."""

    __slots__ = ()
    name = "jvp"

    def box(self, primal: Any, tangent: Any) -> Any:
        return primal if tangent is None else JvpBox(self, primal, tangent)

    def unbox(self, x: Any) -> tuple[Any, Any]:
        return (x.primal, x.tangent) if x.run is self else (x, None)

    def answer(self, op: Operation, operands: tuple[Any, ...]) -> Any:
        for x in operands:
            if x.run is self:
                break
        else:
            return self.outer.answer(op, operands)
        primals = []
        tangents = []
        for x in operands:
            if x.run is self:
                primals.append(x.primal)
                tangents.append(x.tangent)
            else:
                primals.append(x)
                tangents.append(None)
        cell = self.cell
        site = cell.site
        if site is None:
            cell.site = user_site(2)
        token = STACK.set(self.outer)
        try:
            rule = JVP.find(type(op)) if not op.effectful or JVP.has(type(op)) else _effect
            y, dy = rule(op, tuple(primals), tuple(tangents))
            if not op.multiple:
                return y if dy is None else JvpBox(self, y, dy)
            return tuple([self.box(a, da) for a, da in zip(y, dy)])
        finally:
            STACK.reset(token)
            cell.site = site


def _effect(op: Operation, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    """An effect without a derivative of its own: stop, or refuse."""
    if op.diff == "stop":
        y = STACK.get().answer(op, primals)
        return y, (None,) * len(y) if op.multiple else None
    raise NotDifferentiable(
        f"{op.name}: an operand of this effect has a tangent, and the effect declares no derivative.",
        hint="declare @hx.effect(diff='stop'), or return the state: "
        "value_and_grad(lambda x: hx.handle(h, s)(f)(x), has_aux=True).",
    )
