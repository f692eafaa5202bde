"""Handlers whose clauses take the rest of the program, or drop it: the function is recorded, and its program is run.

    ctl     resume(y) goes on with the rest: never, once or many times
    final   the rest is dropped: a flag that every later part looks at

Source: Plotkin & Pretnar, "Handlers of Algebraic Effects" (2009); Leijen, "Type Directed Compilation of Row-Typed
Algebraic Effects" (2017), for the kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..effects import trees
from ..effects.arrays import ConcreteArray, lift
from ..effects.bodies import with_types
from ..effects.branches import Cond
from ..effects.closing import close_all
from ..effects.columns import zeros_like
from ..effects.comparison import select_n
from ..effects.errors import CannotCross, DTypeMismatch, TreeMismatch
from ..effects.modes import chosen
from ..effects.operations import Operation, result_type
from ..effects.programs import Program, bind, interpret
from ..effects.sources import Site
from ..effects.stack import STACK, Cell, current, installed
from .escaping import ABORT, escaping
from .handler import Handler, ctl
from .handling import NO_STATE, Handling, finished, fitted, pair
from .record import Record, record


def run_reified(handler: Handler, state: Any, f: Callable[..., Any], args: Any, kwargs: Any, site: Any) -> Any:
    """``handle(handler, state)(f)(*args, **kwargs)`` by way of the program of ``f``."""
    leaves, tree = trees.flatten((args, kwargs))
    xs = [lift(x) for x in leaves]
    found: list[Any] = []

    def flat(*boxes: Any) -> list[Any]:
        given, named = trees.unflatten(tree, boxes)
        results, structure = trees.flatten(f(*given, **named))
        found.append(structure)
        return [lift(y) for y in results]

    # the effects that f performs ask who is around: this handler is, though its clauses come later
    run = Handling(STACK.get(), handler, state, site)
    with installed(run):
        program = record(flat, [x.type for x in xs], getattr(f, "__name__", "program"), "handle")
    if handler.escapes:
        return _ending(handler, state, program, xs, found[0])
    end = lambda outs, s: finished(handler, s, trees.unflatten(found[0], outs))
    return _Frame(handler, program, bind(program, xs), end).go(0, state)


def _ending(handler: Handler, state: Any, program: Program, xs: Sequence[Any], structure: Any) -> Any:
    """The answer of a clause that ends the program, else the program's own."""
    answers: list[Any] = []

    def drop(run: Handling, op: Operation, clause: Any, operands: tuple[Any, ...]) -> Any:
        answer = clause.f(op, *operands) if run.current is NO_STATE else clause.f(run.current, op, *operands)
        leaves, tree = trees.flatten(answer)
        answers.append((op, tree))
        current().answer(ABORT, tuple([lift(x) for x in leaves]))
        return _nothing(op, operands)

    recorder = Record(STACK.get(), "handle")
    run = Handling(recorder, handler, state, None, drop)
    with installed(run):
        outs = interpret(program, [recorder.input(t) for t in program.in_types])
    with installed(recorder):
        leaves, tree = trees.flatten(finished(handler, run.current, trees.unflatten(structure, outs)))
        whole = recorder.freeze([lift(y) for y in leaves], program.name)
    for op, other in answers:
        if other != tree:
            raise TreeMismatch(
                f"{op.name}: a final clause must give what the handled function gives, {tree}, got {other}.",
                hint="let returns= and the clause give the same structure, such as (ok, value).",
            )
    (closed,), captured = close_all([escaping(whole)])
    count = len(whole.outs)
    results = interpret(closed, [*captured, *xs])
    return trees.unflatten(tree, _either(results[-1], results[count:-1], results[:count]))


def _nothing(op: Operation, operands: tuple[Any, ...]) -> Any:
    """Zeros of the result's types: nobody sees them."""
    types = result_type(op, tuple([x.type for x in operands]))
    made = [zeros_like(t) for t in (types if op.multiple else (types,))]
    return tuple(made) if op.multiple else made[0]


def _either(flag: Any, ended: Sequence[Any], results: Sequence[Any]) -> list[Any]:
    return [select_n(flag, y, x) for x, y in zip(ended, results)]


class _Frame:
    """A program being run, with its values; whoever resumes it goes on with a copy of them."""

    __slots__ = ("handler", "program", "env", "then")

    def __init__(self, handler: Handler, program: Program, env: list[Any], then: Callable[..., Any]):
        self.handler = handler
        self.program = program
        self.env = env
        self.then = then

    def go(self, at: int, state: Any) -> Any:
        """Run from equation ``at`` to the end; gives the answer."""
        program, env, handler = self.program, self.env, self.handler
        starts = _starts(program)
        cell = current().cell or Cell()
        for i in range(at, len(program.ops)):
            op = program.ops[i]
            xs = tuple([env[n] for n in program.args[i]])
            clause: Any = handler.clauses.get(type(op))
            if clause is None and not op.bodied and handler.otherwise is not None and handler.over(op):
                clause = handler.otherwise
            if isinstance(clause, ctl):
                return self.controlled(clause, i, op, xs, state)
            if op.bodied and self.resumes_in(op):
                return self.enter(i, op, xs, state)
            outside, cell.site = cell.site, program.sites[i]
            try:
                if clause is None and op.bodied:
                    run = Handling(STACK.get(), handler, state)
                    y = run.answer(op, xs)
                    state = run.current
                elif clause is None:
                    y = current().answer(op, xs)
                elif state is NO_STATE:
                    y = fitted(op, xs, clause(op, *xs))
                else:
                    state, y = pair(op, clause(state, op, *xs))
                    y = fitted(op, xs, y)
            finally:
                cell.site = outside
            env[starts[i] : starts[i] + (len(y) if op.multiple else 1)] = y if op.multiple else (y,)
        return self.then([env[n] for n in program.outs], state)

    def rest(self, i: int) -> Callable[[Sequence[Any], Any], Any]:
        """What follows equation ``i``, as a function of its results and the state."""
        first = _starts(self.program)[i]

        def go_on(results: Sequence[Any], state: Any) -> Any:
            env = list(self.env)
            env[first : first + len(results)] = results
            return _Frame(self.handler, self.program, env, self.then).go(i + 1, state)

        return go_on

    def controlled(self, clause: ctl, i: int, op: Operation, xs: tuple[Any, ...], state: Any) -> Any:
        go_on = self.rest(i)

        def results(y: Any) -> Sequence[Any]:
            made = fitted(op, xs, y)
            return made if op.multiple else (made,)

        if state is NO_STATE:
            return clause.f(lambda y=None: go_on(results(y), NO_STATE), op, *xs)
        return clause.f(lambda s, y=None: go_on(results(y), s), state, op, *xs)

    def resumes_in(self, op: Any) -> bool:
        kinds = {kind for kind, clause in self.handler.clauses.items() if isinstance(clause, ctl)}
        return any(not kinds.isdisjoint(body.operations) for body in op.bodies)

    def enter(self, i: int, op: Any, xs: tuple[Any, ...], state: Any) -> Any:
        """A body that asks for the rest: in place where it runs once; the rest goes into every branch."""
        if op.runs == "once":
            body = op.bodies[0]
            return _Frame(self.handler, body, bind(body, xs), self.rest(i)).go(0, state)
        if op.runs == "one":
            index, *operands = xs
            if isinstance(index, ConcreteArray):
                body = op.bodies[chosen(index, len(op.bodies))]
                return _Frame(self.handler, body, bind(body, operands), self.rest(i)).go(0, state)
            return self.branches(i, op, index, operands, state)
        kinds: list[Any] = [kind for kind, clause in self.handler.clauses.items() if isinstance(clause, ctl)]
        names = sorted([kind.name for kind in kinds])
        raise CannotCross(
            f"{op.name}: a clause that takes resume, of {', '.join(names)}, cannot cross it: the rest of a loop, or of "
            f"one lane, is no value.",
            hint=f"unroll the loop in Python, or handle it by a clause that answers once; it is at "
            f"{Site(*self.program.sites[i])}.",
        )

    def branches(self, i: int, op: Any, index: Any, operands: Sequence[Any], state: Any) -> Any:
        """The rest of the program is one part of every branch."""
        leaves, structure = trees.flatten(() if state is NO_STATE else state)
        held = [lift(x) for x in leaves]
        found: list[Any] = []

        def branch(body: Program) -> Program:
            def flat(*values: Any) -> list[Any]:
                given, kept = values[: len(operands)], values[len(operands) :]
                s = NO_STATE if state is NO_STATE else trees.unflatten(structure, kept)
                answer = _Frame(self.handler, body, bind(body, given), self.rest(i)).go(0, s)
                ends, tree = trees.flatten(answer)
                found.append(tree)
                return [lift(y) for y in ends]

            return record(flat, [x.type for x in (*operands, *held)], body.name, "handle")

        programs = [branch(body) for body in op.bodies]
        for tree, program in zip(found, programs):
            if tree != found[0]:
                raise TreeMismatch(
                    f"{op.name}: the branches must give answers of one structure, got {found[0]} and {tree}.",
                    hint="resume equally often in every branch.",
                )
            for t, u in zip(program.out_types, programs[0].out_types):
                if t.shape != u.shape or t.dtype != u.dtype:
                    raise DTypeMismatch(f"{op.name}: the branches must give answers of one type, got {u} and {t}.")
        types = programs[0].out_types
        bodies, captured = close_all([with_types(program, types) for program in programs])
        results = current().answer(Cond(bodies, len(captured)), (index, *captured, *operands, *held))
        return trees.unflatten(found[0], results)


def _starts(program: Program) -> list[int]:
    """The number of the first result of every equation."""
    found = program._cache.get("starts")
    if found is None:
        number = len(program.in_types)
        found = []
        for op, made in zip(program.ops, program.types):
            found.append(number)
            number += len(made) if op.multiple else 1
        program._cache["starts"] = found
    return found
