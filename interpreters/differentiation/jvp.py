"""jvp: forward-mode derivatives. A box pairs a primal with its tangent; a value that is no box has tangent zero.

    jvp(f)(x, dx) = f(x), f'(x) dx

The handler answers the operations that have one of its boxes as operand, by the operation's jvp rule: from primals and
tangents to results and their tangents. In rules None is the symbolic zero, a tangent that is never created. Operations
with bodies are crossed by ``body_transform``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ...effects.base import config
from ...effects.base.errors import HandlaxError, NotDifferentiable
from ...effects.base.stack import BASE, STACK, Run, current, inside
from ...effects.core.columns import JVP, componentwise, is_linear, zero, zeros_like
from ...effects.core.named_axes import under
from ...effects.core.operation import Operation, result_type
from ...effects.operations.dot_general import MULTILINEAR
from ...effects.operations.foundations.elementwise_factory import Elementwise
from ...effects.operations.foundations.sharding_constraint import cut_of, hide, reveal, states
from ...effects.programs.program import Program, interpret
from ...effects.programs.program_cache import ProgramCache
from ...effects.types.array_type import ArrayType
from ...effects.types.dtypes import is_inexact
from ..analysis.dependence import scattered
from ..core.body_transform import BodyTransformer, cross
from ..core.record import Record
from ..core.rule_cache import cached_rule_program
from ..core.rule_results import pair_of, result_and_tangent
from ..core.sited_box import SitedBox

_PROGRAMS = ProgramCache("jvp_program")
"""Derivative programs, by program, inputs that have a tangent and settings."""


class JvpBox(SitedBox):
    """A primal and its tangent, which is never None: a value with tangent zero is no box."""

    __slots__ = ("primal", "tangent")
    primal: Any
    tangent: Any

    def _unknown(self, error: type[HandlaxError], what: str, hint: str) -> Any:
        """The primal as a Python value for ``bool(x)`` and ``int(x)``, where it has one; other values would lose the
        tangent.
        """
        convert = _WITHOUT_TANGENT.get(name := what.partition(":")[0])
        if convert is not None:
            return convert(self.primal)
        if name in ("float", "complex", "item", "tolist"):
            hint = (
                "compute with hx.numpy, and fill arrays by its stack or by a = a.at[i].set(x); where the derivative is "
                f"to be 0, {name} of hx.lax.stop_gradient(x)."
            )
        return super()._unknown(error, what, hint)


_WITHOUT_TANGENT: dict[str, Callable[[Any], Any]] = {"bool": bool, "index": operator.index, "int": int}
"""Conversions whose results do not change with the value, nearly everywhere."""


def dual(run: Run, primal: Any, tangent: Any, site: Any) -> JvpBox:
    """The box of a primal and a tangent. Created for every operation: slots are set without a slower ``__init__``."""
    new = JvpBox()
    new.type = primal.type
    new.run = run
    new.primal = primal
    new.tangent = tangent
    new.site = site
    return new


class Jvp(BodyTransformer):
    """A run of forward mode: it answers operations that have one of its boxes as operand. A mark is True for a box."""

    __slots__ = ()

    def key(self) -> str:
        return "jvp"

    def takes_bodies(self, op: Any) -> bool:
        return bool(op.diff == "bodies")

    def split(self, x: Any) -> tuple[bool | None, Sequence[Any]]:
        return (True, (x.primal, x.tangent)) if x.run is self else (None, (x,))

    def part_types(self, mark: bool | None, type: ArrayType) -> Sequence[ArrayType]:
        return (type,) if mark is None else (type, type)

    def force(self, x: Any, mark: bool | None) -> Sequence[Any]:
        parts = self.split(x)[1]
        return parts if mark is None or len(parts) == 2 else (x, zeros_like(x))

    def box(self, mark: bool | None, parts: Sequence[Any]) -> Any:
        return parts[0] if mark is None else dual(self, parts[0], parts[1], self.cell.site)

    def pair(self, primal: Any, tangent: Any) -> Any:
        """The box of a primal and its tangent; the primal itself where the tangent is None."""
        return primal if tangent is None else dual(self, primal, tangent, self.cell.site)

    def unbox(self, x: Any) -> tuple[Any, Any]:
        """The primal and the tangent of any value; the tangent may be None."""
        return (x.primal, x.tangent) if x.run is self else (x, None)

    def answer(self, op: Operation, operands: tuple[Any, ...]) -> Any:
        values: Sequence[Any]  # primals, then the tangents that are not zero
        key: tuple[Any, ...]  # types of the operands, then of their tangents
        if len(operands) == 1:  # the two commonest arities written out: a hot path
            (x,) = operands
            if x.run is not self:
                return self.outer.answer(op, operands)
            values = (x.primal, x.tangent)
            key = (x.type, x.tangent.type)
        elif len(operands) == 2:
            x, y = operands
            if x.run is self:
                if y.run is self:
                    values = (x.primal, y.primal, x.tangent, y.tangent)
                    key = (x.type, y.type, x.tangent.type, y.tangent.type)
                else:
                    values = (x.primal, y, x.tangent)
                    key = (x.type, y.type, x.tangent.type, None)
            elif y.run is self:
                values = (x, y.primal, y.tangent)
                key = (x.type, y.type, None, y.tangent.type)
            else:
                return self.outer.answer(op, operands)
        else:
            primals, tangents = self.parts(operands)
            values = [*primals, *[dx for dx in tangents if dx is not None]]
            if len(values) == len(primals):
                return self.outer.answer(op, operands)
            key = (*[x.type for x in operands], *[None if dx is None else dx.type for dx in tangents])
        cell = self.cell
        site = cell.site
        user_line = cell.site = site or self.labelled_site()
        try:
            cached = None if op.memo is None else cached_rule_program(op, key, jvp_rule)
            if not cached:
                return self.by_rule(op, operands)
            results = self.outer.inline(cached.program, values)
        finally:
            cell.site = site
        if not cached.marks:
            return results[0]
        new = JvpBox()  # ``dual``, inlined
        new.run = self
        new.primal, new.tangent = results
        new.type = new.primal.type
        new.site = user_line
        return new

    def parts(self, operands: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The primals of operands, and their tangents, None for zero."""
        primals = tuple([x.primal if x.run is self else x for x in operands])
        return primals, tuple([x.tangent if x.run is self else None for x in operands])

    def by_rule(self, op: Operation, operands: tuple[Any, ...]) -> Any:
        """The results of an operation without the rule cache, by calling its jvp rule or crossing its bodies."""
        around = STACK.get()
        try:
            STACK.set(self.outer)
            if self.crosses(op) and not JVP.has(type(op)):
                return cross(self, op, operands)  # type: ignore[arg-type]
            rule = JVP.find(type(op)) if not op.effectful or JVP.has(type(op)) else effect_rule
            primals, tangents = self.parts(operands)
            called = partial(blind_rule, rule) if any(map(cut_of, primals)) else rule
            y, dy = result_and_tangent(op, rule, primals, called(op, primals, tangents))
            return tuple([self.pair(a, da) for a, da in zip(y, dy)]) if op.multiple_results else self.pair(y, dy)
        finally:
            STACK.set(around)


_PERFORM_ONE = (*MULTILINEAR, componentwise, zero)
"""Rules that perform their operation alone, on operands and tangents, as rules of linear operations do."""


def blind_rule(rule: Any, op: Operation, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Sequence[Any]:
    """What the jvp rule gives for operands of which some are cut: results and their tangents are cut as the type of
    the operation's results says. A rule that performs other operations is called on hidden operands.
    """
    if op.bodied or op.effectful or not states(map(cut_of, primals)):
        return rule(op, primals, tangents)
    types = op.as_results(result_type(op, tuple([x.type for x in primals])))
    if not (isinstance(op, Elementwise) or is_linear(rule) or rule in _PERFORM_ONE):
        primals, tangents = tuple(map(hide, primals)), tuple(map(hide, tangents))
    y, dy = pair_of(f"{op.name}, jvp", "result, tangent", rule(op, primals, tangents))
    ys = [reveal(part, t.cut) for part, t in zip(op.as_results(y), types)]
    dys = [None if part is None else reveal(part, t.cut) for part, t in zip(op.as_results(dy), types)]
    return op.from_results(ys), op.from_results(dys)


def jvp_rule(op: Operation, types: Sequence[Any]) -> tuple[Callable[..., Any], Sequence[ArrayType]]:
    """The jvp rule as a function of primals and nonzero tangents, and the types of these, for the rule cache.

    ``types``: of the operands, then of their tangents, None for zero. The mark: whether the result has a tangent.
    """
    count = len(types) // 2

    def rule(*values: Any) -> tuple[Sequence[Any], Any]:
        tangents = scattered(values[count:], [t is not None for t in types[count:]])
        rule = JVP.find(type(op))
        rule = partial(blind_rule, rule) if any(map(cut_of, values)) else rule
        y, dy = rule(op, values[:count], tuple(tangents))
        return ((y,), False) if dy is None else ((y, dy), True)

    return rule, [t for t in types if t is not None]


def effect_rule(op: Operation, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    """The jvp rule of effects without one of their own: zero tangents if ``diff="stop"``, else an error."""
    if op.diff == "stop":
        y = STACK.get().answer(op, primals)
        return y, (None,) * len(y) if op.multiple_results else None
    if op.scopes:
        raise NotDifferentiable(
            f"{op.name}: an operand of this effect, or what its function captures, has a tangent, and the effect "
            "declares no derivative.",
            hint="handle it inside: hx.grad(hx.handle(h)(f)); or, where clauses pass on what a function returns and do "
            "not compute with it, declare @hx.effect(scopes=1, diff='bodies').",
        )
    types = op.as_results(result_type(op, tuple([x.type for x in primals])))
    raise NotDifferentiable(
        f"{op.name}: an operand of this effect has a tangent, and the effect declares no derivative.",
        hint="handle it inside: grad(hx.handle(h)(f)), with a state grad(lambda x: hx.handle(h, s)(f)(x)[1]); or "
        "define jvp in its block; or declare @hx.effect(diff='stop'): its answer is a constant to grad."
        if any([is_inexact(t.dtype) for t in types])
        else "declare @hx.effect(diff='stop'), or return the state: "
        "value_and_grad(lambda x: hx.handle(h, s)(f)(x), has_aux=True).",
    )


def jvp_program(program: Program, nonzero: Sequence[bool]) -> tuple[Program, tuple[bool, ...]]:
    """The derivative of a program whose inputs ``nonzero[i]`` have tangents.

    Returns the derivative program, from primals, then nonzero tangents, to results, then their tangents; and for each
    result whether it has a tangent: if not, it is zero.
    """
    key = (program, tuple(nonzero), current().scope, config.current())
    return _PROGRAMS.get(key, lambda: _jvp_program(program, nonzero))


def push_forward(program: Program, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, list[Any]]:
    """The results of a program and their tangents, by its derivative program. None stands for a zero tangent."""
    derived, marks = jvp_program(program, [dx is not None for dx in tangents])
    results = interpret(derived, [*primals, *[dx for dx in tangents if dx is not None]])
    return results[: len(marks)], scattered(results[len(marks) :], marks)


def _jvp_program(program: Program, nonzero: Sequence[bool]) -> tuple[Program, tuple[bool, ...]]:
    """``jvp_program``, uncached."""
    recorder = Record(under(BASE, current().scope), "")
    run = Jvp(recorder, "jvp")
    primals = recorder.inputs(program.in_types)
    tangents = [recorder.input(t) if yes else None for yes, t in zip(nonzero, program.in_types)]
    with inside(run):
        results = interpret(program, [run.pair(x, dx) for x, dx in zip(primals, tangents)])
    outs, out_tangents = zip(*[run.unbox(y) for y in results]) if results else ((), ())
    marks = tuple([dy is not None for dy in out_tangents])
    return recorder.freeze([*outs, *[dy for dy in out_tangents if dy is not None]], program.name), marks
