"""Step: a program one equation at a time, forwards and backwards.

    s = step(f)(*args);  s.end().result == f(*args);  s.forward(n).back(n) is s

Every stepper is a value. What was computed is kept in a persistent vector that later ones share, so to keep a stepper
is to keep a moment, and to go on from it twice is a fork.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from pyrsistent import PVector, pvector

from ..effects import trees
from ..effects.arrays import Array, ConcreteArray, lift
from ..effects.conversion import convert
from ..effects.errors import BadArgument, ConcretizationError, DTypeMismatch, Immutable, ShapeMismatch, need_function
from ..effects.printing import letter
from ..effects.programs import Equation, Program
from ..effects.sources import Site
from ..effects.stack import Cell, current
from ..effects.wrapping import wraps
from . import rounds
from .comparing import Comparison, compared
from .prompt import prompt, shown
from .rounds import Round
from .simplify import is_root
from .staging import trace

Condition = Callable[["Stepper"], Any]


class Stepper:
    """A program at one moment: the values computed so far, and the equation that comes next. Immutable.

    ``s["c"]`` is a value by its name in the program's text; ``made`` are the results of the last equation.
    Within a sub-program ``outer`` is the stepper before the equation that runs it, and ``round`` which run this is.
    """

    __slots__ = ("program", "values", "at", "tree", "outer", "round", "before")
    program: Program
    values: PVector[Any]
    at: int
    tree: Any
    outer: Stepper | None
    round: Round | None
    before: Stepper | None

    def __init__(self, *fields: Any):
        for name, value in zip(self.__slots__, fields):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise Immutable.of("steppers", name, "set", "s.set(name, value) gives a new one.")

    def __delattr__(self, name: str) -> None:
        raise Immutable.of("steppers", name, "deleted", "s.set(name, value) gives a new one.")

    def _next(self, values: PVector[Any], at: int) -> Stepper:
        return Stepper(self.program, values, at, self.tree, self.outer, self.round, self)

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
    def made(self) -> tuple[Any, ...]:
        """The results of the equation performed last."""
        return tuple([self.values[v.number] for v in self.last.outvars]) if self.last is not None else ()

    @property
    def site(self) -> Site | None:
        """The user's line of the equation that comes next."""
        return None if self.done else self.program.site(self.at)

    def value(self, number: int) -> Any:
        """A value by its number; a negative one is a constant's."""
        return self.values[number] if number >= 0 else self.program.consts[-1 - number]

    @property
    def results(self) -> tuple[Any, ...]:
        """The program's results, in order. Raises: BadArgument: there are equations left."""
        if not self.done:
            raise BadArgument(f"step: {len(self.program) - self.at} equations are left.", hint="s.end().result.")
        return tuple([self.value(n) for n in self.program.outs])

    @property
    def result(self) -> Any:
        """What the function gives, when every equation has been performed; of a sub-program, a tuple."""
        return self.results if self.tree is None else trees.unflatten(self.tree, self.results)

    def number(self, name: str | int) -> int:
        """The number of a value that has been computed, by its name or number. Raises: BadArgument."""
        known = len(self.values)
        found = name if isinstance(name, int) else next((n for n in range(known) if letter(n) == name), known)
        if not 0 <= found < known:
            last = f"the last is {letter(known - 1)!r}" if known else "there are none"
            raise BadArgument(
                f"step: {name!r} is no value computed so far; {last}.", hint="names are as in the program."
            )
        return found

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
        run = current()
        cell = run.cell or Cell()
        outside = cell.site
        cell.site = program.sites[at]
        try:
            made = run.answer(program.ops[at], tuple([self.value(n) for n in program.args[at]]))
        finally:
            cell.site = outside
        return self._next(self.values.extend(made if program.ops[at].multiple else (made,)), at + 1)

    def back(self, n: int = 1) -> Stepper:
        """What was ``n`` moves ago, changes of values and ways in and out counted; ``s.forward().back() is s``.

        Effects that were performed stay performed.
        """
        s = self
        for _ in range(n):
            if s.before is None:
                raise BadArgument(f"back: this is the start, there are no {n} moves to take back.")
            s = s.before
        return s

    def start(self) -> Stepper:
        """Before the first equation of this program, in this run of it."""
        return self._earlier(0)

    def _earlier(self, index: int) -> Stepper:
        """The last moment of this run of this program at which no more than ``index`` equations had been performed."""
        s = self
        while s.at > index or s.outer is not self.outer or s.round is not self.round:
            if s.before is None:
                raise BadArgument(f"back: this program was entered behind equation {index}.")
            s = s.before
        return s

    def end(self) -> Stepper:
        """When every equation has been performed."""
        return self.forward(len(self.program))

    def to(self, where: int | str | Condition, inside: bool = False) -> Stepper:
        """Go to an equation, or forward until a condition holds.

        Args:
            where: an index in this program, backwards too; the next equation of a line, ``"model.py:17"`` or ``"17"``,
                or of an operation, ``"log"``, in sub-programs too; or a function of the stepper, asked after each
                equation.
            inside: ask the condition in every sub-program. Else only where it holds of the equation that runs it.

        Where a condition never holds this gives the end.

        Raises: BadArgument: there is no such equation ahead.
        """
        if isinstance(where, int):
            return self._to_index(where)
        if isinstance(where, str):
            return self._to_equation(where)
        need_function("to", where)
        return self._onward(where, lambda op: inside or is_root(op), lines=False)[1]

    def to_nan(self) -> Stepper:
        """Behind the next equation that makes a NaN, in the innermost sub-program; the end if none does."""
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

        found, s = self._onward(
            lambda s: not s.done and wanted(s.program.ops[s.at], s.program.site(s.at)),
            lambda op: is_root(op) or any(_has(body, wanted) for body in op.bodies),
            lines=True,
        )
        if not found:
            ahead = range(self.at, len(self.program))
            known = {str(self.program.site(i)) if line.isdigit() else self.program.ops[i].name for i in ahead}
            raise BadArgument(f"to: no equation ahead is {where}.", hint=f"those ahead: {', '.join(sorted(known))}.")
        return s

    def _onward(self, holds: Condition, enters: Callable[[Any], bool], lines: bool) -> tuple[bool, Stepper]:
        """Whether a condition will hold, and where; first in this sub-program, then in all that comes behind it."""
        found, s = self._search(holds, enters, lines)
        while not found and s.outer is not None:
            depth = s.outer
            s = s._later(skip_test=False)
            found = holds(s) if lines or s.outer is not depth else False
            if not found:
                found, s = s._search(holds, enters, lines)
        return found, s

    def _search(self, holds: Condition, enters: Callable[[Any], bool], lines: bool) -> tuple[bool, Stepper]:
        """Whether a condition holds before the end of this program, and where; else the end.

        ``enters`` says which sub-programs are walked through in any case. The others are, if the condition holds behind
        the equation that runs them. A search for ``lines`` asks about the start of a sub-program too.
        """
        s = self
        while not s.done:
            op: Any = s.program.ops[s.at]
            walked = op.bodied and enters(op)
            found, ahead = s._walk(holds, enters, lines) if walked else (False, s.forward())
            if not found and holds(ahead):
                found = True
                if op.bodied and not walked and not lines:
                    within, inner = s._walk(holds, enters, lines)
                    ahead = inner if within else ahead
            if found:
                return True, ahead
            s = ahead
        return False, s

    def _walk(self, holds: Condition, enters: Callable[[Any], bool], lines: bool) -> tuple[bool, Stepper]:
        """Whether a condition holds within the next equation, and where; else behind it."""
        r = self._first()
        while not rounds.over(r):
            inner = self._enter(r, self)
            if lines and holds(inner):
                return True, inner
            found, inner = inner._search(holds, enters, lines)
            if found:
                return True, inner
            r = rounds.after(r, inner.results)
        return False, self._behind(r, self)

    def _first(self) -> Round:
        if self.done or not self.program.ops[self.at].bodied:
            what = "the program is at its end" if self.done else f"{self.program.ops[self.at].name} runs none"
            raise BadArgument(f"into: the next equation must run a sub-program, {what}.")
        op: Any = self.program.ops[self.at]
        return rounds.first_round(op, [self.value(n) for n in self.program.args[self.at]])

    def _enter(self, r: Round, before: Stepper) -> Stepper:
        """The start of a run of the next equation's sub-programs."""
        return Stepper(rounds.body(r), pvector(rounds.inputs(r)), 0, None, self, r, before)

    def into(self, k: int = 0, test: bool = False) -> Stepper:
        """The start of run ``k`` of the sub-program of the next equation; the runs before it are performed.

        With ``test`` the test that decides about this run, where there is one.

        Raises: BadArgument: the next equation runs no sub-program, or not so often.
        """
        r = self._first()
        if test and not r.testing:
            raise BadArgument(f"into: {r.op.name} has no test.")
        while not rounds.over(r) and (r.at < k or (r.testing and not test)):
            r = rounds.run(r)
        if rounds.over(r) or k < 0:
            raise BadArgument(f"into: {r.op.name} makes {r.at} runs here, there is no run {k}.")
        return self._enter(r, self)

    def next_run(self) -> Stepper:
        """The start of the next run of this sub-program, this one performed to its end; behind the last, ``out``."""
        return self._later(skip_test=True)

    def _later(self, skip_test: bool) -> Stepper:
        outer, r = self._frame("next_run")
        r = rounds.after(r, self.end().results)
        if skip_test and r.testing:
            r = rounds.run(r)
        return outer._behind(r, self) if rounds.over(r) else outer._enter(r, self)

    def out(self) -> Stepper:
        """Behind the equation that runs this sub-program, when this run and all later ones are performed.

        A value that was changed in this run is what the later ones go on with.
        """
        outer, r = self._frame("out")
        r = rounds.after(r, self.end().results)
        while not rounds.over(r):
            r = rounds.run(r)
        return outer._behind(r, self)

    def _frame(self, where: str) -> tuple[Stepper, Round]:
        if self.outer is None or self.round is None:
            raise BadArgument(f"{where}: this is the outermost program.", hint="s.into() enters a sub-program.")
        return self.outer, self.round

    def _behind(self, r: Round, before: Stepper) -> Stepper:
        """Behind the next equation, whose sub-programs have run to the end."""
        values = self.values.extend(rounds.results(r))
        return Stepper(self.program, values, self.at + 1, self.tree, self.outer, self.round, before)

    def set(self, name: str | int, value: Any) -> Stepper:
        """The same moment with another value in the place of one. What was computed from it already stays as it is.

        Raises: BadArgument: it has not been computed yet. ShapeMismatch, DTypeMismatch: it has another type.
        """
        number = self.number(name)
        t = self.program.type_of(number)
        new = lift(value)
        _need_known("set", [new])
        if new.type.shape != t.shape:
            raise ShapeMismatch(f"set: {letter(number)} is {t}, got {new.type}.")
        if new.type.dtype != t.dtype and not new.type.weak:
            raise DTypeMismatch(f"set: {letter(number)} is {t}, got {new.type}.", hint="convert it with astype.")
        return self._next(self.values.set(number, convert(new, t.dtype, t.weak)), self.at)

    def compare(self, other: Stepper) -> Comparison:
        """The values in which two runs of one program differ, as far as both have been computed.

        Raises: BadArgument: they are at different programs.
        """
        if self.program != other.program:
            names = f"{self.program.name} and {other.program.name}"
            raise BadArgument(f"compare: both must be at the same program, got {names}.")
        return compared(self.program, list(self.values), list(other.values))

    def prompt(self) -> Stepper:
        """Step by commands typed at a terminal; gives the stepper where they ended. ``help`` lists them."""
        return prompt(self)

    def __repr__(self) -> str:
        return shown(self)

    def _repr_html_(self) -> str:
        return shown(self, html=True)


def has_nan(s: Stepper) -> bool:
    """Whether the equation performed last made a NaN: the condition of ``to_nan``."""
    return any(_nan_in(y) for y in s.made)


def _nan_in(x: Any) -> bool:
    value = x.value if isinstance(x, ConcreteArray) else None
    if value is None or value.dtype.kind not in "fcV":
        return False
    try:
        return bool(np.isnan(value).any())
    except TypeError:  # a dtype without NaN
        return False


def _has(program: Program, wanted: Callable[[Any, Site], bool]) -> bool:
    """Whether a program has an equation that is wanted, or one within it has."""
    for i, op in enumerate(program.ops):
        if wanted(op, program.site(i)):
            return True
        if op.bodied and any(_has(body, wanted) for body in op.bodies):  # type: ignore[attr-defined]
            return True
    return False


def _need_known(where: str, xs: list[Array]) -> None:
    for x in xs:
        if not isinstance(x, ConcreteArray):
            raise ConcretizationError(
                f"{where}: values must be known, got {x.type} of {x.run.label if x.run else 'nobody'}.",
                hint="step outside of transformations: hx.step(hx.grad(f))(x).",
            )


def step(fun: Callable[..., Any]) -> Callable[..., Stepper]:
    """``step(f)(*args)`` is a stepper at the start of the program that ``f`` performs on these arguments.

        step(f)(*args).end().result == f(*args)

    Effects: performed when their equation is, by the handlers in force there. ``step(handle(h)(f))`` steps through what
    the clauses perform.

    Raises: NotAFunction. ConcretizationError: an argument is a box, whose value nobody knows yet.

    >>> s = step(lambda x: (x + 1.0) * 2.0)(3.0)
    >>> s.forward()["b"], s.end().result
    (Array(4., dtype=float32, weak_type=True), Array(8., dtype=float32, weak_type=True))
    """
    need_function("step", fun)

    @wraps(fun)
    def stepped(*args: Any, **kwargs: Any) -> Stepper:
        program, tree = trace(fun, args, kwargs)
        inputs = [lift(x) for x in trees.leaves((args, kwargs))]
        _need_known("step", [*inputs, *program.consts])
        return Stepper(program, pvector(inputs), 0, tree, None, None, None)

    return stepped
