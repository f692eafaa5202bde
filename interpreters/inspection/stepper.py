"""A stepper: evaluation of a program one equation at a time, forwards and backwards.

    s = step(f)(*args);  s.end().result == f(*args);  s.forward(n).back(n) is s

Every stepper is an immutable value, and every move returns a new one. The values computed so far are a persistent
vector that successive steppers share; two moves from one stepper are a fork.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from pyrsistent import PVector, pvector

from ...effects.base.errors import BadArgument, ConcretizationError, DTypeMismatch, ShapeMismatch, need_function
from ...effects.base.immutables import ImmutableObject
from ...effects.base.later_layers import displayed
from ...effects.base.source_locations import Site
from ...effects.base.stack import at_site, current
from ...effects.base.tracebacks import unnamed_boundary
from ...effects.base.wrapping import wraps
from ...effects.core.arrays import Array, ConcreteArray, as_array
from ...effects.core.named_axes import is_root
from ...effects.operations.elementwise.conversion import convert
from ...effects.programs.printer import letter
from ...effects.programs.program import Equation, Program
from ...effects.trees import pytrees
from ..core.bad_values import contains
from ..transformations.make_program import trace
from . import body_iterations
from .body_iterations import BodyIteration
from .compare_runs import RunComparison, compared
from .stepper_prompt import prompt, shown

Condition = Callable[["Stepper"], Any]


@displayed
class Stepper(ImmutableObject):
    """A program between two equations: the values computed so far, and the equation that comes next. Immutable.

    ``s["c"]`` is a value by its name in the program's text; ``last_results`` are the results of the last equation.
    In a sub-program, ``outer`` is the stepper before the equation that executes it, and ``iteration`` which iteration
    this is; ``before`` is the stepper from which the last move came.
    """

    __slots__ = ("program", "values", "at", "tree", "outer", "iteration", "before")
    _guard = ("steppers", "s.set(name, value) gives a new one.")
    program: Program
    values: PVector[Any]
    at: int
    tree: Any
    outer: Stepper | None
    iteration: BodyIteration | None
    before: Stepper | None

    def __init__(self, *fields: Any):
        self._fill(**dict(zip(self.__slots__, fields)))

    def _next(self, values: PVector[Any], at: int) -> Stepper:
        return Stepper(self.program, values, at, self.tree, self.outer, self.iteration, self)

    @property
    def done(self) -> bool:
        """Whether every equation has been performed."""
        return self.at == len(self.program)

    @property
    def equation(self) -> Equation | None:
        """The equation that comes next; None at the end."""
        return None if self.done else self.program.eqns[self.at]

    @property
    def last(self) -> Equation | None:
        """The equation performed last; None at the start."""
        return self.program.eqns[self.at - 1] if self.at else None

    @property
    def last_results(self) -> tuple[Any, ...]:
        """The results of the equation performed last."""
        return tuple([self.values[v.number] for v in self.last.outvars]) if self.last is not None else ()

    @property
    def site(self) -> Site | None:
        """The user's line of the equation that comes next."""
        return None if self.done else self.program.site(self.at)

    def value(self, number: int) -> Any:
        """A value by its number in the program; that of a constant is negative."""
        return self.values[number] if number >= 0 else self.program.consts[-1 - number]

    @property
    def results(self) -> tuple[Any, ...]:
        """The program's results, in order. Raises: BadArgument: not all equations have been performed."""
        if not self.done:
            raise BadArgument(f"step: {len(self.program) - self.at} equations are left.", hint="s.end().result.")
        return tuple([self.value(n) for n in self.program.outs])

    @property
    def result(self) -> Any:
        """The result of the function, when every equation has been performed; of a sub-program, a tuple."""
        return self.results if self.tree is None else pytrees.unflatten(self.tree, self.results)

    def number(self, name: str | int) -> int:
        """The number of a value that has been computed, by its name or number. Raises: BadArgument."""
        count = len(self.values)
        number = name if isinstance(name, int) else next((n for n in range(count) if letter(n) == name), count)
        if not 0 <= number < count:
            last = f"the last is {letter(count - 1)!r}" if count else "there are none"
            raise BadArgument(
                f"step: {name!r} is no value computed so far; {last}.", hint="names are as in the program."
            )
        return number

    def __getitem__(self, name: str | int) -> Any:
        return self.values[self.number(name)]

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """The values computed so far, with their names."""
        return iter([(letter(n), value) for n, value in enumerate(self.values)])

    def forward(self, n: int = 1) -> Stepper:
        """Perform the next ``n`` equations, under the handlers in force; fewer where the program ends."""
        s = self
        for _ in range(min(n, len(self.program) - self.at)):
            s = s._perform()
        return s

    def _perform(self) -> Stepper:
        program, at = self.program, self.at
        with at_site(program.sites[at]):
            y = current().answer(program.ops[at], tuple([self.value(n) for n in program.args[at]]))
        return self._next(self.values.extend(program.ops[at].as_results(y)), at + 1)

    def back(self, n: int = 1) -> Stepper:
        """The stepper ``n`` moves ago; ``s.forward().back() is s``. ``set``, ``into`` and ``out`` are moves too.

        Effects that were performed are not undone.
        """
        s = self
        for _ in range(n):
            if s.before is None:
                raise BadArgument(f"back: this is the start, there are no {n} moves to take back.")
            s = s.before
        return s

    def start(self) -> Stepper:
        """The stepper before the first equation of this program, in this iteration."""
        return self._earlier(0)

    def _earlier(self, index: int) -> Stepper:
        """The last stepper, in this iteration of this program, with at most ``index`` equations performed."""
        s = self
        while s.at > index or s.outer is not self.outer or s.iteration is not self.iteration:
            if s.before is None:
                raise BadArgument(f"back: this program was entered after equation {index}.")
            s = s.before
        return s

    def end(self) -> Stepper:
        """The stepper after the last equation of this program."""
        return self.forward(len(self.program))

    def to(self, where: int | str | Condition, inside: bool = False) -> Stepper:
        """Go to an equation, or forward until a condition holds.

        Args:
            where: an index in this program, backwards too; the next equation of a line, ``"model.py:17"`` or ``"17"``,
                or of an operation, ``"log"``, in sub-programs too; or a condition, a function of the stepper, which
                is evaluated after each equation.
            inside: evaluate the condition in every sub-program; else only in those of an equation after which it holds.

        If a condition never holds, this is the end.

        Raises: BadArgument: there is no such equation ahead.
        """
        if isinstance(where, int):
            return self._to_index(where)
        if isinstance(where, str):
            return self._to_equation(where)
        need_function("to", where)
        return self._onward(where, lambda op: inside or is_root(op), lines=False)[1]

    def to_nan(self) -> Stepper:
        """The stepper after the next equation with a NaN result, in the innermost sub-program; the end if there is
        none.
        """
        return self.to(has_nan)

    def _to_index(self, index: int) -> Stepper:
        if not 0 <= index <= len(self.program):
            raise BadArgument(f"to: equations are 0 to {len(self.program) - 1}, got {index}.")
        s = self._earlier(index)
        return s.forward(index - s.at)

    def _to_equation(self, where: str) -> Stepper:
        name, _, line = where.rpartition(":")

        def wanted(op: Any, site: Site) -> bool:
            return site.line == int(line) and site.file.endswith(name) if line.isdigit() else op.name == where

        reached, s = self._onward(
            lambda s: not s.done and wanted(s.program.ops[s.at], s.program.site(s.at)),
            lambda op: is_root(op) or any(_has(body, wanted) for body in op.bodies),
            lines=True,
        )
        if not reached:
            ahead = range(self.at, len(self.program))
            known = {str(self.program.site(i)) if line.isdigit() else self.program.ops[i].name for i in ahead}
            raise BadArgument(f"to: no equation ahead is {where}.", hint=f"those ahead: {', '.join(sorted(known))}.")
        return s

    def _onward(self, holds: Condition, enters: Callable[[Any], bool], lines: bool) -> tuple[bool, Stepper]:
        """Whether a condition will hold in this sub-program or after it, and the stepper where it first does.

        ``enters`` and ``lines`` are those of ``_search``.
        """
        reached, s = self._search(holds, enters, lines)
        while not reached and s.outer is not None:
            depth = s.outer
            s = s._later(skip_test=False)
            reached = holds(s) if lines or s.outer is not depth else False
            if not reached:
                reached, s = s._search(holds, enters, lines)
        return reached, s

    def _search(self, holds: Condition, enters: Callable[[Any], bool], lines: bool) -> tuple[bool, Stepper]:
        """Whether a condition holds before the end of this program, and the stepper where it does; else the end.

        Sub-programs of operations that ``enters`` accepts are always searched; others only if the condition holds after
        the equation that executes them. With ``lines`` the condition is evaluated at the start of sub-programs too.
        """
        s = self
        while not s.done:
            op: Any = s.program.ops[s.at]
            entered = op.bodied and not op.scopes and enters(op)
            holds_here, ahead = s._search_bodies(holds, enters, lines) if entered else (False, s.forward())
            if not holds_here and holds(ahead):
                holds_here = True
                if op.bodied and not op.scopes and not entered and not lines:
                    within, inner = s._search_bodies(holds, enters, lines)
                    ahead = inner if within else ahead
            if holds_here:
                return True, ahead
            s = ahead
        return False, s

    def _search_bodies(self, holds: Condition, enters: Callable[[Any], bool], lines: bool) -> tuple[bool, Stepper]:
        """Search the sub-programs of the next equation for a step at which a condition holds: whether there is one,
        and the stepper there, or that after the equation.
        """
        r = self._first()
        while not body_iterations.over(r):
            inner = self._enter(r, self)
            if lines and holds(inner):
                return True, inner
            reached, inner = inner._search(holds, enters, lines)
            if reached:
                return True, inner
            r = body_iterations.after(r, inner.results)
        return False, self._after(r, self)

    def _first(self) -> BodyIteration:
        """The first iteration of the equation that comes next. Raises: BadArgument: it has no sub-programs."""
        op: Any = None if self.done else self.program.ops[self.at]
        if op is None or not op.bodied or op.scopes:
            what = "the program is at its end" if op is None else f"{op.name} has none"
            what += ": its clause decides when its function is executed" * (op is not None and op.scopes > 0)
            raise BadArgument(f"into: the next equation must have a sub-program, {what}.")
        return body_iterations.first_iteration(op, [self.value(n) for n in self.program.args[self.at]])

    def _enter(self, r: BodyIteration, before: Stepper) -> Stepper:
        """The stepper at the start of an iteration ``r`` of the equation that comes next."""
        return Stepper(body_iterations.body(r), pvector(body_iterations.inputs(r)), 0, None, self, r, before)

    def into(self, k: int = 0, test: bool = False) -> Stepper:
        """The stepper at the start of iteration ``k`` of the next equation's sub-program; earlier iterations are
        performed.

        With ``test``, the start of the test of a ``while`` before this iteration.

        Raises: BadArgument: the next equation has no sub-program, no test, or fewer iterations.
        """
        r = self._first()
        if test and not r.testing:
            raise BadArgument(f"into: {r.op.name} has no test.")
        while not body_iterations.over(r) and (r.at < k or (r.testing and not test)):
            r = body_iterations.execute(r)
        if body_iterations.over(r) or k < 0:
            raise BadArgument(f"into: {r.op.name} has {r.at} iterations here, there is no iteration {k}.")
        return self._enter(r, self)

    def next_iteration(self) -> Stepper:
        """The stepper at the start of the sub-program's next iteration, with this one completed; after the last, as
        ``out``.
        """
        return self._later(skip_test=True)

    def _later(self, skip_test: bool) -> Stepper:
        """The stepper at the start of the sub-program executed next, skipping tests with ``skip_test``; after the last,
        as ``out``.
        """
        outer, r = self._frame("next_iteration")
        r = body_iterations.after(r, self.end().results)
        if skip_test and r.testing:
            r = body_iterations.execute(r)
        return outer._after(r, self) if body_iterations.over(r) else outer._enter(r, self)

    def out(self) -> Stepper:
        """The stepper after the equation that executes this sub-program, with all remaining iterations performed.

        The later iterations continue with the values that were changed in this one.
        """
        outer, r = self._frame("out")
        r = body_iterations.after(r, self.end().results)
        while not body_iterations.over(r):
            r = body_iterations.execute(r)
        return outer._after(r, self)

    def _frame(self, where: str) -> tuple[Stepper, BodyIteration]:
        """The stepper outside of this sub-program, and its iteration. Raises: BadArgument: this is none."""
        if self.outer is None or self.iteration is None:
            raise BadArgument(f"{where}: this is the outermost program.", hint="s.into() enters a sub-program.")
        return self.outer, self.iteration

    def _after(self, r: BodyIteration, before: Stepper) -> Stepper:
        """The stepper after the equation that comes next, whose iterations ``r`` are all done."""
        values = self.values.extend(body_iterations.results(r))
        return Stepper(self.program, values, self.at + 1, self.tree, self.outer, self.iteration, before)

    def set(self, name: str | int, value: Any) -> Stepper:
        """The same position with one value replaced. Values that were computed from it before do not change.

        Raises: BadArgument: it has not been computed yet. ShapeMismatch, DTypeMismatch: it has another type.
        """
        number = self.number(name)
        t = self.program.type_of(number)
        new = as_array(value)
        _need_known("set", [new])
        if new.type.shape != t.shape:
            raise ShapeMismatch(f"set: {letter(number)} is {t}, got {new.type}.")
        if new.type.dtype != t.dtype and not new.type.weak:
            raise DTypeMismatch(f"set: {letter(number)} is {t}, got {new.type}.", hint="convert it with astype.")
        return self._next(self.values.set(number, convert(new, t.dtype, t.weak)), self.at)

    def compare(self, other: Stepper) -> RunComparison:
        """The values that differ between two executions of one program, among those that both have computed.

        Raises: BadArgument: they are at different programs.
        """
        if self.program != other.program:
            names = f"{self.program.name} and {other.program.name}"
            raise BadArgument(f"compare: both must be at the same program, got {names}.")
        return compared(self.program, list(self.values), list(other.values))

    def prompt(self) -> Stepper:
        """Step by commands typed at a terminal, which ``help`` lists; returns the stepper at the last position."""
        return prompt(self)

    def __repr__(self) -> str:
        return shown(self)


def has_nan(s: Stepper) -> bool:
    """Whether a result of the equation performed last has a NaN: the condition of ``to_nan``."""
    return any(contains(y, np.isnan) for y in s.last_results)


def _has(program: Program, wanted: Callable[[Any, Site], bool]) -> bool:
    """Whether a program, or a sub-program of it, has an equation that is ``wanted``."""
    for i, op in enumerate(program.ops):
        if wanted(op, program.site(i)):
            return True
        if op.bodied and any(_has(body, wanted) for body in op.bodies):  # type: ignore[attr-defined]
            return True
    return False


def _need_known(where: str, xs: list[Array]) -> None:
    """Check that the arrays have values. Raises: ConcretizationError: one of them is a box."""
    for x in xs:
        if not isinstance(x, ConcreteArray):
            raise ConcretizationError(
                f"{where}: values must be known, got {x.type} of {x.run.label if x.run else 'a trace'}.",
                hint="step around transformations: hx.step(hx.grad(f))(x).",
            )


def step(fun: Callable[..., Any]) -> Callable[..., Stepper]:
    """``step(f)(*args)`` is a stepper at the start of the program of ``f`` on these arguments.

        step(f)(*args).end().result == f(*args)

    Effects: performed when their equation is, by the handlers in force at that step. ``step(handle(h)(f))`` steps
    through the operations that the clauses perform.

    Raises: NotAFunction. ConcretizationError: an argument is a box, whose value is not known yet.

    >>> s = step(lambda x: (x + 1.0) * 2.0)(3.0)
    >>> s.forward()["b"], s.end().result
    (Array(4., dtype=float32, weak_type=True), Array(8., dtype=float32, weak_type=True))
    """
    need_function("step", fun)

    @wraps(fun)
    @unnamed_boundary
    def stepped(*args: Any, **kwargs: Any) -> Stepper:
        program, tree = trace(fun, args, kwargs, label="step")
        inputs = [as_array(x) for x in pytrees.leaves((args, kwargs))]
        _need_known("step", [*inputs, *program.consts])
        return Stepper(program, pvector(inputs), 0, tree, None, None, None)

    return stepped
