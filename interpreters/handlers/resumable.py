"""Handlers with ``ctl`` or ``final`` clauses: the function is recorded, and its program is interpreted.

    ctl     the clause takes the rest of the program, the continuation of its equation, as the function ``resume``
    final   the rest of the program is skipped, by a flag that the later equations test

Source: Plotkin & Pretnar, "Handlers of Algebraic Effects" (2009); Leijen, "Type Directed Compilation of Row-Typed
Algebraic Effects" (2017), for the kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ...effects.base.deep_calls import on_deep_stack
from ...effects.base.errors import BadCall, CannotCross, NotAnArray
from ...effects.base.source_locations import CodeLabeller, Site, labels_of, user_site
from ...effects.base.stack import STACK, at_site, current, grounded, installed
from ...effects.base.wrapping import name_of
from ...effects.control.body_rules import branch_index
from ...effects.core.arrays import Array, ConcreteArray, as_array
from ...effects.core.columns import zeros_like
from ...effects.core.operation import Operation, result_type
from ...effects.operations.elementwise.comparison import select_n
from ...effects.operations.manipulation.rearranging import stack
from ...effects.operations.manipulation.slicing import index_in_dim
from ...effects.programs.closure_conversion import close_all
from ...effects.programs.program import Program, bind, derived_once, interpret
from ...effects.trees import pytrees
from ..core.record import Record, record
from .answer_conversion import as_wide_array, fit_answer, zero_results
from .early_exit import Abort, with_exit_flag
from .elimination import eliminated, has_iterations
from .handler import ClauseKind, Handler, check_arity, ctl, once
from .installation import NO_STATE, HandlerRun, compiled_apart, final_answer
from .resumed_branches import Joined, Joins, NotJoined, joined_branch, resuming_branch
from .without_rule import without_rule


def run_reified(
    handler: Handler, state: Any, f: Callable[..., Any], args: Any, kwargs: Any, site: Any, unroll: bool
) -> Any:
    """``handle(handler, state)(f)(*args, **kwargs)``, by recording ``f`` and interpreting its program."""
    leaves, tree = pytrees.flatten((args, kwargs))
    arrays = {i: x for i, x in enumerate(map(_array_or_none, leaves)) if x is not None}
    xs = list(arrays.values())
    structures: list[Any] = []

    def flat(*boxes: Any) -> list[Any]:
        given = dict(zip(arrays, boxes))  # what is no array is handed through
        inner_args, inner_kwargs = pytrees.unflatten(tree, [given.get(i, x) for i, x in enumerate(leaves)])
        results, structure = pytrees.flatten(f(*inner_args, **inner_kwargs))
        structures.append(structure)
        return [as_array(y) for y in results]

    # effects of f resolve their types by the handlers in force: this one is among them, though it answers only later
    run = HandlerRun(STACK.get(), handler, state, site)
    recorder = _HandledFunction(run, "handle", user_site())
    with installed(run), installed(recorder):  # ``record`` would start a new call path, but that of f continues ours
        program = recorder.freeze(flat(*[recorder.input(x.type) for x in xs]), name_of(f))
    (structure,) = structures
    if not handler.resumes:
        return _with_early_exit(handler, state, program, xs, structure, site)
    end = lambda outs, s: final_answer(handler, s, pytrees.unflatten(structure, outs))
    return _Frame(handler, Joins(), program, bind(program, xs), end, unroll).evaluate(0, state)


class _HandledFunction(Record):
    """The record of a function under ``ctl`` or ``final`` clauses, with advice for errors about its boxes."""

    __slots__ = ()
    advice = (
        "a function under ctl or final clauses is recorded before a clause answers: branch by hx.lax.cond or "
        "hx.numpy.where, or execute it, hx.direct(h)(f), where Python reads answers; close over numbers that Python "
        "needs, lambda: f(3), and return what is used afterwards."
    )


def _array_or_none(x: Any) -> Array | None:
    """``x`` as an array; None if ``x`` is not convertible."""
    try:
        return as_array(x)
    except NotAnArray:
        return None


def _with_early_exit(
    handler: Handler, state: Any, program: Program, xs: Sequence[Any], structure: Any, site: Any
) -> Any:
    """The result of a program under a handler with ``final`` clauses: that of the first such clause, else its own."""
    recorder = Record(STACK.get(), "handle", site)
    run = HandlerRun(recorder, handler, state, site, _abort)
    if compiled_apart(recorder.outer):
        program = recorder.apart(program)
    with installed(run):
        outs = interpret(program, recorder.inputs(program.in_types))
    with installed(recorder):
        leaves, tree = pytrees.flatten(final_answer(handler, run.merged_state(), pytrees.unflatten(structure, outs)))
        handled = recorder.freeze([as_array(y) for y in leaves], program.name)
    (closed,), captured = close_all([handled], recorder.brought(handled))
    count = len(handled.outs)
    results = interpret(with_exit_flag(closed, tree), [*captured, *xs])
    flag, payload = results[-1], results[count:-1]
    return pytrees.unflatten(tree, [select_n(flag, y, x) for x, y in zip(payload, results)])


def _abort(run: HandlerRun, op: Operation, clause: Any, operands: tuple[Any, ...]) -> Any:
    """End the program with the answer of a ``final`` clause."""
    state = run.merged_state()
    leaves, tree = pytrees.flatten(call_clause(clause, op, operands, state))
    record: Any = current()  # of the handled program, or of a body of it
    wide = [as_wide_array(op.name, x) for x in leaves]
    # a number is converted to the type of the result by its value
    record.answer(Abort(op.name, tree), tuple([record.literal(x) if x.type.weak else x for x in wide]))
    return zero_results(op, operands)


@dataclass(slots=True, eq=False)
class _Frame:
    """An activation of a program: its values so far, and the continuation ``then`` of its results and the state.

    Values are assigned once, so the first resumption at an equation goes on in the same frame. Each later one, whose
    values differ from there on, goes on in a copy: one frame can be resumed many times. ``unroll``: loops of known
    length are unrolled. ``labels``: those of the operations whose body the program is.
    """

    handler: Handler
    joins: Joins
    program: Program
    env: list[Any]
    then: Callable[..., Any]
    unroll: bool = False
    labels: tuple[str, ...] = ()

    def evaluate(self, at: int, state: Any) -> Any:
        """Evaluate from equation ``at`` to the end of the handled program; the answer."""
        joined: list[Joined] = []
        answer = self.advance(at, state, joined)
        if joined:
            self.joins.confirm(joined, answer)
        return answer

    def advance(self, at: int, state: Any, branches: list[Joined]) -> Any:
        """The answer from equation ``at`` on, which is that of the rest after each of the branches that it joins."""
        run = HandlerRun(STACK.get(), self.handler, state)
        with grounded(run), at_site(None, run.cell):
            return self.advance_under(run, at, branches)

    def advance_under(self, run: HandlerRun, at: int, branches: list[Joined]) -> Any:
        """``advance`` with a new run of the handler, which answers what does not resume."""
        program, env, handler = self.program, self.env, self.handler
        starts, located = _starts(program), CodeLabeller(self.labels + run.labeller.labels).site
        for i in range(at, len(program.ops)):
            op: Any = program.ops[i]
            xs = tuple([env[n] for n in program.args[i]])
            clause: Any = handler.table.get(type(op))
            if isinstance(clause, ClauseKind):
                with at_site(located(program.sites[i]), run.cell):
                    state = run.merged_state()
                    resume = [self.resume(clause, i, op, xs, state is not NO_STATE)] if isinstance(clause, ctl) else []
                    return call_clause(clause, op, xs, state, *resume)
            if op.bodied and handler.takes_rest_in(op):
                before = run.merged_state()
                if op.runs != "one" or isinstance(xs[0], ConcreteArray):
                    return self.enter_body(i, op, xs, before)
                if not self.joins.undoable:
                    return self.recorded(i, before)
                evaluate = partial(self.evaluate_body, i)
                joined = joined_branch(op, xs, before, evaluate, self.rest(i), self.joins)
                if joined is None:
                    return resuming_branch(op, xs, before, evaluate, self.rest(i))
                branches.append(joined)
                env[starts[i] : starts[i + 1]], run.current = joined.results, joined.state
                continue
            with at_site(located(program.sites[i]), run.cell):
                y = run.answer(op, xs)
            env[starts[i] : starts[i + 1]] = op.as_results(y)
        return self.then([env[n] for n in program.outs], run.merged_state())

    def recorded(self, at: int, state: Any) -> Any:
        """The answer from equation ``at`` on, a branch; recorded, and again until every joined branch is confirmed."""
        joins = self.joins
        answers: list[Any] = []

        def arrays() -> list[Any]:
            answers[:] = [replace(self, env=list(self.env)).evaluate(at, state)]
            return [x for x in pytrees.leaves(answers[0]) if isinstance(x, Array)]

        joins.undoable = True
        try:
            while True:
                failed = len(joins.failed)
                try:
                    program = record(arrays, (), self.program.name, "")
                    break
                except NotJoined:
                    if len(joins.failed) == failed:
                        raise
            tree = pytrees.structure(answers[0])
            if len(program.outs) == tree.num_leaves:
                return pytrees.unflatten(tree, interpret(program, ()))
            return self.evaluate(at, state)  # the answer holds objects, in which boxes of the record may be
        finally:
            joins.undoable = False

    def rest(self, i: int) -> Callable[[Sequence[Any], Any], Any]:
        """The continuation of equation ``i``: a function from its results and the state to the answer."""
        first = _starts(self.program)[i]
        unused = [self]

        def resume(results: Sequence[Any], state: Any) -> Any:
            frame = unused.pop() if unused else replace(self, env=list(self.env))
            frame.env[first : first + len(results)] = results
            return on_deep_stack(frame.evaluate, i + 1, state)

        return resume

    def resume(self, clause: ctl, i: int, op: Operation, xs: tuple[Any, ...], stateful: bool) -> Callable[..., Any]:
        """The continuation of equation ``i``, as a function of the state and of the operation's answer."""
        rest = self.rest(i)
        used: list[bool] = []

        def resume(*args: Any, **named: Any) -> Any:
            state, y = answer_given(op, xs, stateful, args, named)
            if used and isinstance(clause, once):
                raise resumed_again(op)
            used.append(True)
            return rest(op.as_results(y), state)

        resume.tail = resume  # type: ignore[attr-defined]
        return resume

    def resuming(self) -> list[str]:
        """The sorted names of the operations whose clauses take, or drop, the rest."""
        kinds: list[Any] = [kind for kind, clause in self.handler.clauses.items() if isinstance(clause, ClauseKind)]
        return sorted([kind.name for kind in kinds])

    def evaluate_body(self, i: int, body: Program, values: Sequence[Any], state: Any, then: Callable[..., Any]) -> Any:
        """The answer of a body of equation ``i`` that ``then`` follows."""
        labels = labels_of(self.program.sites[i]) + self.labels
        frame = _Frame(self.handler, self.joins, body, bind(body, values), then, self.unroll, labels)
        return on_deep_stack(frame.evaluate, 0, state)

    def evaluate_in(
        self, i: int, handler: Handler, body: Program, values: Sequence[Any], state: Any, then: Callable[..., Any]
    ) -> Any:
        """``evaluate_body`` under another handler."""
        return replace(self, handler=handler, joins=Joins()).evaluate_body(i, body, values, state, then)

    def unrolled(self, i: int, op: Any, xs: tuple[Any, ...], state: Any) -> Any:
        """The answer of a loop by its iterations, each of which is the continuation of the one before."""
        _, shared, carry, each = op.groups(xs)
        order = range(op.length)[:: -1 if op.backwards else 1]
        rest = self.rest(i)

        def iterate(t: int, carry: Sequence[Any], earlier: Any, state: Any) -> Any:
            if t == op.length:
                rows = _in_list(earlier)[:: 1 if op.backwards else -1]
                return rest([*carry, *map(stack, zip(*rows))], state)
            row = [index_in_dim(x, order[t], 0, keepdims=False) for x in each]
            then = lambda results, after: iterate(
                t + 1, results[: op.carry], (results[op.carry :], earlier), after
            )
            return self.evaluate_body(i, op.bodies[0], [*shared, *carry, *row], state, then)

        return iterate(0, carry, None, state)

    def enter_body(self, i: int, op: Any, xs: tuple[Any, ...], state: Any) -> Any:
        """Evaluate a body with ``ctl`` clauses: inlined if it runs once, or if it is the one chosen; a loop of known
        length by tables of what follows each iteration, or unrolled.

        Raises: CannotCross: the continuation of one iteration of another loop, or of one lane, is not a function.
        """
        clause = f"the clause of {', '.join(self.resuming())} takes the rest of the program"
        body = executed_body(op, xs, clause, self.program.sites[i])
        if body is not None:
            return self.evaluate_body(i, *body, state, self.rest(i))
        if has_iterations(op):
            if not op.length:
                return self.rest(i)(never_executed(op, xs), state)
            if self.unroll:
                return self.unrolled(i, op, xs, state)
            with at_site(self.program.sites[i]):
                return eliminated(self.handler, op, xs, state, partial(self.evaluate_in, i), self.rest(i))
        if op.scopes:
            raise CannotCross(
                f"{op.name}: a clause that takes resume, of {', '.join(self.resuming())}, cannot cross it: the rest of "
                "the program after one execution of its function is not a function.",
                hint="handle it further out, hx.handle(h)(hx.handle(scoped)(f)); it is at "
                f"{Site(*self.program.sites[i])}.",
            )
        raise CannotCross(
            f"{op.name}: a clause that takes resume, of {', '.join(self.resuming())}, cannot cross it: the rest of "
            "the program after one iteration of a loop of unknown length, or in one lane, is not a function.",
            hint=f"{_INSTEAD.get(op.runs, 'unroll it in Python')}, or handle it by a plain clause; it is "
            f"at {Site(*self.program.sites[i])}.",
        )


def call_clause(clause: ClauseKind, op: Operation, xs: tuple[Any, ...], state: Any, *resume: Any) -> Any:
    """The answer of a clause that takes the rest of a program, ``resume``, or of one that drops it.

    Raises: BadCall: the clause takes other arguments.
    """
    given = () if state is NO_STATE else (state,)
    try:
        return clause.f(*resume, *given, op, *xs)
    except TypeError:
        check_arity(op, clause, [x.type for x in xs], bool(given))
        raise


def _in_list(linked: Any) -> list[Any]:
    """The items of ``(last, (..., (first, None)))``, the last first."""
    items = []
    while linked is not None:
        item, linked = linked
        items.append(item)
    return items


def never_executed(op: Any, xs: Sequence[Any]) -> list[Any]:
    """The results of a loop without iterations: the carry as it is, and empty stacks."""
    types = op.result_type(*[x.type for x in xs])[op.carry :]
    return [*op.groups(xs).carry, *[zeros_like(t) for t in types]]


_INSTEAD = {
    "lanes": "handle it inside, vmap(hx.handle(h)(f))",
    "mesh": "handle it inside, shard_map(hx.handle(h)(f), ...)",
    "until": "give it a length, as lax.fori_loop with static bounds has, or unroll it in Python",
}


def loop_answer(handler: Handler, op: Any, xs: Sequence[Any], state: Any, resume: Callable[..., Any]) -> Any:
    """The answer of a loop of known length in whose body clauses take the rest, and of ``resume``, the rest after it.

    Raises: what ``eliminated`` raises.
    """

    def evaluate(inner: Handler, body: Program, values: Sequence[Any], path: Any, then: Callable[..., Any]) -> Any:
        return _Frame(inner, Joins(), body, bind(body, values), then).evaluate(0, path)

    return eliminated(handler, op, xs, state, evaluate, lambda results, _: resume(tuple(results)))


def executed_body(op: Any, xs: Sequence[Any], clause: str, site: Any) -> tuple[Program, Sequence[Any]] | None:
    """The body that is executed once in place of ``op``, and its operands; None where there is none, as of a loop.

    ``clause``: what a clause does from inside the body, for the refusal of a rule that ``op`` has; ``site``: its place.
    """
    if op.runs == "once":
        if not op.prunes:
            op, xs = without_rule(op, xs, clause, site)
        return op.bodies[0], xs
    if op.runs == "one" and isinstance(xs[0], ConcreteArray):
        index, *operands = xs
        return op.bodies[branch_index(index, len(op.bodies))], operands
    return None


def answer_given(
    op: Any, xs: tuple[Any, ...], stateful: bool, args: tuple[Any, ...], named: dict[str, Any]
) -> tuple[Any, Any]:
    """The state, and the answer as results of ``op``, that ``resume(*args, **named)`` gives.

    Raises: BadCall: it takes other arguments; what ``fit_answer`` raises.
    """
    names = ("s", "y") if stateful else ("y",)
    given = {**dict(zip(names, args)), **named}
    fits = len(given) == len(args) + len(named) and given.keys() <= {*names} and given.keys() >= {*names[:-1]}
    if not fits or ("y" not in given and op.as_results(result_type(op, tuple([x.type for x in xs])))):
        shown = ", ".join([*map(_short, args), *[f"{name}={_short(x)}" for name, x in named.items()]])
        raise BadCall(
            f"{op.name}: a handler {'with' if stateful else 'without'} a state resumes by "
            f"resume({', '.join(names)}), got resume({shown}).",
            hint="the clause is (resume, op, *operands), and (resume, s, op, *operands) under hx.handle(h, s).",
        )
    return given.get("s", NO_STATE), fit_answer(op, xs, given.get("y"))


def resumed_again(op: Operation) -> BadCall:
    """The error for a clause of kind ``once``, or a step, that is resumed again."""
    return BadCall(
        f"{op.name}: a clause hx.once, or a step, resumes at most once, it resumes again.",
        hint="make it hx.ctl, or hx.steps(E, many=True): the function is then executed again, with the same answers.",
    )


def _short(x: Any) -> str:
    """A value in a message: an array as its type."""
    return str(x.type) if isinstance(x, Array) else repr(x)


@derived_once
def _starts(program: Program) -> list[int]:
    """``program.starts()``, derived once."""
    return program.starts()
