"""Loops of known length whose bodies perform operations with ``ctl`` clauses, crossed by dynamic programming.

A choice is such an operation whose clause declares its support: it resumes with one of the integers 0, ..., n - 1. Let
z[t] be the choices of iteration t, c[t] the carry before it, and F the body as a function of its choices:

    c[t + 1] = F(z[t], c[t], x[t])

A carry remembers the choices on which it depends. Where all of them are among the last l iterations, the carry is a
function of u[t] = (z[t - l], ..., z[t - 1]), and so is the answer of what follows, of which two tables are made: of the
carries in the order of the loop, and of the answers in the opposite one.

    C[t + 1](u[t + 1]) = F(z[t], C[t](u[t]), x[t])
    R[T](u) = the rest of the program after the loop with the carry C[T](u)
    R[t](u) = the answer of the body with the carry C[t](u), in which what follows choices z has the answer R[t + 1](u')

u' has z in place of the oldest choices of u. Each is one scan, with n**(l + 1) evaluations of the body in an iteration,
where an enumeration of all paths has n**T in all.

The tables hold for every clause, not for sums alone, if the rest of the program performs no effects for handlers
further out: a clause knows of its rest only what ``resume`` gives at the support, and these are the table's entries.
The forward algorithm is the clause that sums, Viterbi's the one that takes the greatest; derivatives of the tables are
posterior probabilities.

Source: Koller & Friedman, "Probabilistic Graphical Models" (2009), chapter 9; Obermeyer et al., "Tensor Variable
Elimination for Plated Factor Graphs" (2019); Rabiner, "A tutorial on hidden Markov models" (1989).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from pyrsistent import pmap

from ...effects.base.errors import BadArgument, CannotCross
from ...effects.base.stack import STACK, Run, inside, installed
from ...effects.control.loops import scan_as
from ...effects.core.arrays import Box, ConcreteArray, scalar
from ...effects.core.named_axes import Axis, is_root
from ...effects.core.operation import Operation, result_type
from ...effects.core.result_trees import as_declared
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.indexing.dynamic_slicing import dynamic_index_in_dim
from ...effects.operations.manipulation.creation import iota, is_iota
from ...effects.operations.manipulation.rearranging import stack
from ...effects.operations.manipulation.slicing import concatenate, index_in_dim, slice_in_dim
from ...effects.programs.closure_conversion import with_inputs
from ...effects.programs.program import Program
from ...effects.trees import pytrees
from ...effects.types.array_type import array_type
from ...effects.types.dtypes import bool_, int32, is_integer
from ..analysis.dependence import dependence, scattered
from ..batching.batch import BatchBox
from ..core.record import Record, record
from ..transformations.vmap import vmap
from .answer_conversion import fit_answer, zero_results
from .handler import ClauseKind, Handler, check_arity, ctl, final
from .installation import NO_STATE
from .state_movements import carry as moves_as_carry

EvaluateUnder = Callable[..., Any]
"""``evaluate(handler, body, values, state, then)``: the answer of a body that ``then(results, state)`` follows."""
Path = tuple[Any, ...]
"""The choices made so far in one iteration, each an index into its support."""

INDEX = array_type((), int32)
UNROLL = "hx.handle(h, unroll=True)"


class Choice(NamedTuple):
    """Choice ``number`` of the iteration ``age`` iterations ago; its age is 0 in the iteration that is executed.

    In order: the oldest first.
    """

    age: int
    number: int

    @property
    def older(self) -> Choice:
        return Choice(self.age + 1, self.number)


def _oldest_first(choices: Any) -> list[Choice]:
    return sorted(choices, key=lambda choice: (-choice.age, choice.number))


class PathHandler(Handler):
    """A handler within one iteration of a loop: its clauses, with the path so far as the state.

    ``given(number, n)``: the value of a choice of n, in place of its clause, so that the body is a function of its
    choices; None: the clauses answer.
    """

    __slots__ = ("original", "given")
    original: Handler
    given: Callable[[int, int], Any] | None

    def __init__(self, original: Handler, given: Callable[[int, int], Any] | None = None):
        along = partial(_along_path, given)
        otherwise = None if original.otherwise is None else along(original.otherwise)
        clauses = pmap({kind: along(clause) for kind, clause in original.clauses.items()})
        super().__init__(clauses, otherwise, original.over, None, moves_as_carry)
        self._fill(original=original, given=given)


def _along_path(given: Callable[[int, int], Any] | None, clause: Any) -> Any:
    """A clause of a handler without a state, as a clause of ``PathHandler``, whose state is the path."""
    if not isinstance(clause, ClauseKind):
        return lambda path, op, *xs: (path, clause(op, *xs))
    if given is not None:
        return ctl(partial(_given, clause, given))
    if isinstance(clause, final):
        return final(lambda path, op, *xs: clause.f(op, *xs))
    return type(clause)(partial(_chosen, clause))


def _given(clause: Any, given: Callable[[int, int], Any], resume: Any, path: Path, op: Any, *xs: Any) -> Any:
    """Go on with the value that a choice is given; what only scores, or ends the program, is passed over."""
    count = support_of(clause, op, xs)
    if count is not None:
        z = given(len(path), count)
        return resume((*path, z), convert(z, op.as_results(_type_of(op, xs))[0].dtype))
    if not isinstance(clause, final) and op.as_results(_type_of(op, xs)):
        raise CannotCross(
            f"{op.name}: a clause that takes resume cannot cross a loop: the rest of the program after one iteration "
            "is not a function, unless the clause declares what it resumes with.",
            hint=f"hx.ctl(f, support=n), if it resumes with 0, ..., n - 1 alone; {UNROLL} makes the loop n parts.",
        )
    return resume(path, as_declared(op, tuple([x.type for x in xs]), op.as_results(zero_results(op, xs))))


def _chosen(clause: Any, resume: Any, path: Path, op: Any, *xs: Any) -> Any:
    """The answer of a clause whose ``resume`` extends the path."""
    count = support_of(clause, op, xs)

    def resume_along(y: Any = None) -> Any:
        if count is None:
            return resume(path, y)
        (z,) = op.as_results(fit_answer(op, xs, y))
        if isinstance(z, ConcreteArray) and not 0 <= z.item() < count:
            raise BadArgument(
                f"{op.name}: its clause resumes with one of 0, ..., {count - 1}, as it declares, got {z.item()}.",
                hint="support=n is the number of values that it resumes with.",
            )
        return resume((*path, convert(z, int32)), z)

    resume_along.tail = resume_along  # type: ignore[attr-defined]
    try:
        return clause.f(resume_along, op, *xs)
    except TypeError:
        check_arity(op, clause, [x.type for x in xs], False)
        raise


def _type_of(op: Operation, xs: Sequence[Any]) -> Any:
    return result_type(op, tuple([x.type for x in xs]))


def support_of(clause: Any, op: Operation, xs: Sequence[Any]) -> int | None:
    """The number of values with which the clause of ``op`` resumes; None if it declares none.

    Raises: BadArgument: it is no positive integer, or the result of ``op`` is no integer or bool.
    """
    support = clause.support if isinstance(clause, ctl) else None
    if support is None:
        return None
    count = support(op, *[x.type for x in xs]) if callable(support) else support
    if type(count) is not int or count < 1:
        raise BadArgument(
            f"{op.name}: the support of its clause must be a positive integer, got {count!r}.",
            hint="support=n, or a function (op, *types) -> n.",
        )
    results = op.as_results(_type_of(op, xs))
    if len(results) != 1 or results[0].shape or not (is_integer(results[0].dtype) or results[0].dtype == bool_):
        raise BadArgument(
            f"{op.name}: an operation whose clause declares a support has one scalar integer or bool as its result, "
            f"got {', '.join(map(str, results)) or 'None'}.",
            hint="let it give the index, and take the value from an array of them.",
        )
    return count


class _WithoutEffects(Run):
    """Performs everything but effects: what follows an iteration is performed for each entry of a table."""

    __slots__ = ()
    owns_boxes = False

    def answer(self, op: Any, operands: tuple[Any, ...]) -> Any:
        if is_root(op):
            performed = ", ".join(sorted({str(effect) for effect in op.effects if not isinstance(effect, Axis)}))
            raise CannotCross(
                f"{op.name}: what follows an iteration of a loop is performed for each choice, and would perform "
                f"{performed} more than once.",
                hint=f"answer it inside, hx.handle(h)(hx.handle(other)(f)); or {UNROLL}.",
            )
        return self.outer.answer(op, operands)


class _Stacked(Run):
    """Owns the stacked results of a loop that depend on its choices, which therefore have no value after it."""

    __slots__ = ()
    advice = f"a result that depends on all choices: put it into the answers, in a clause or in returns=; or {UNROLL}."


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """A loop whose carry remembers finitely many choices.

    ``evaluate``: how its body is interpreted. ``step``: F, with the choices as its first inputs; ``supports``: the
    number of values of each. ``remembered``: for each carry, the choices that it is a function of. ``moving``: for
    each carry, whether its table is another one in each iteration, also after the first ones.
    """

    handler: Handler
    op: Any
    operands: Any
    evaluate: EvaluateUnder
    step: Program
    supports: list[int]
    remembered: list[frozenset[Choice]]
    moving: list[bool]

    @property
    def depth(self) -> int:
        """The age of the oldest choice that a carry remembers."""
        return max([choice.age for own in self.remembered for choice in own], default=0)

    def window(self, t: int, own: frozenset[Choice] | None = None) -> list[Choice]:
        """The axes of the tables before iteration ``t``; those of the table of a carry that remembers ``own``."""
        choices = frozenset().union(*self.remembered) if own is None else own
        return _oldest_first([choice for choice in choices if choice.age <= t])

    def windows(self, t: int) -> list[list[Choice]]:
        return [self.window(t, own) for own in self.remembered]

    def values(self, choices: Sequence[Choice]) -> list[Any]:
        """For each choice all of its values."""
        return [iota(int32, self.supports[choice.number]) for choice in choices]

    def over(self, choices: Sequence[Choice], f: Callable[..., Any], axes: Sequence[Sequence[Choice]]) -> Any:
        """``f`` at all values of ``choices``, an axis for each; operand ``i`` of it has the axes ``axes[i]``."""
        for choice in reversed(choices):
            f = vmap(f, tuple([0 if choice in own else None for own in axes]), axis_size=self.supports[choice.number])
        return f

    # the iterations: number t takes slice t of the operands, or counted from the end

    def row(self, t: int) -> list[Any]:
        """The slices of iteration ``t``."""
        at = self.op.length - 1 - t if self.op.backwards else t
        return [index_in_dim(x, at, 0, keepdims=False) for x in self.operands.each]

    def rows(self, first: int) -> list[Any]:
        """The slices of the iterations from ``first`` on."""
        length = self.op.length
        bounds = (0, length - first) if self.op.backwards else (first, length)
        return [slice_in_dim(x, *bounds, axis=0) for x in self.operands.each]

    def joined(self, first: Sequence[Any], later: Sequence[Any]) -> list[Any]:
        """Stacked results, from those of each of the first iterations and the stack of those of the later ones."""
        if not first:
            return list(later)
        stacks = [stack(column[:: -1 if self.op.backwards else 1]) for column in zip(*first)]
        if not later:
            return stacks
        pairs = zip(later, stacks) if self.op.backwards else zip(stacks, later)
        return [concatenate(pair, 0) for pair in pairs]

    # the tables

    def carries(self) -> tuple[list[Any], Any, list[Any], list[Any]]:
        """C[0], ..., C[depth], whose axes become more; C[t] of the moving carries for the later t, stacked; C[length].
        And the stacked results. Without later iterations the second is None.
        """
        tables, results = [list(self.operands.carry)], []
        for t in range(min(self.depth, self.op.length)):
            carry, row = self.next_carries(t, tables[t], self.row(t))
            tables.append(carry)
            results.append(row)
        steady = tables[-1]
        if len(results) == self.op.length:
            return tables, None, steady, self.joined(results, [])

        def iteration(moving: list[Any], row: list[Any]) -> Any:
            after, stacked = self.next_carries(self.depth, self.with_moving(steady, moving), row)
            return self.that_move(after), (moving, stacked)

        what = f"{self.op.name}, what it carries"
        moving, (later, stacked) = self.scan(
            what, iteration, self.that_move(steady), self.rows(self.depth), self.op.backwards
        )
        return tables, later, self.with_moving(steady, moving), self.joined(results, stacked)

    def that_move(self, tables: Sequence[Any]) -> list[Any]:
        return [x for x, moves in zip(tables, self.moving) if moves]

    def with_moving(self, tables: Sequence[Any], moving: Sequence[Any]) -> list[Any]:
        """``tables``, with these in place of those that move."""
        return [x if new is None else new for x, new in zip(tables, scattered(moving, self.moving))]

    def scan(self, what: str, f: Callable[..., Any], init: Any, xs: Any, backwards: bool) -> Any:
        """Over the iterations after the first ones; ``what`` it computes, for messages."""
        return scan_as(what, f, init, xs, self.op.length - self.depth, backwards, self.op.unroll)

    def next_carries(self, t: int, tables: list[Any], row: list[Any]) -> tuple[list[Any], list[Any]]:
        """C[t + 1] from C[t]; and the stacked results of iteration ``t``, as they are where all choices are 0."""
        made = [Choice(0, choice.number) for choice in self.window(1)]
        grid = [*self.window(t), *made]

        def step(*values: Any) -> Any:
            chosen = dict(zip([choice.number for choice in made], values))
            zs = [chosen.get(number, scalar(0, int32)) for number in range(len(self.supports))]
            return list(self.step(*zs, *self.operands.shared, *values[len(made) :]))

        axes = [*[[choice] for choice in made], *self.windows(t), *[[] for _ in row]]
        results = self.over(grid, step, axes)(*self.values(made), *tables, *row)
        carries = [
            _at_first(y, grid, [choice.older in own for choice in grid]) for y, own in zip(results, self.remembered)
        ]
        return carries, [_at_first(y, grid, [False] * len(grid)) for y in results[self.op.carry :]]

    def answers_before(self, t: int, answers: Any, tables: list[Any], row: list[Any]) -> Any:
        """R[t] from R[t + 1] and C[t]."""
        before, after = self.window(t), self.window(t + 1)
        newest = [choice.number for choice in after if choice.age == 1]

        def answer(answers: Any, *values: Any) -> Any:
            def following(results: Sequence[Any], path: Path) -> Any:
                zs = [path[number] if number < len(path) else 0 for number in newest]  # a branch may make fewer
                return pytrees.map(partial(_at_choices, zs), answers)

            values = (*self.operands.shared, *values)
            return self.evaluate(PathHandler(self.handler), self.op.bodies[0], values, (), following)

        kept = [choice for choice in before if choice.older in after]
        axes = [kept, *self.windows(t), *[[] for _ in row]]
        return self.over(before, answer, axes)(answers, *tables, *row)

    def stacked_results(self, known: Sequence[Any]) -> list[Any]:
        """The stacked results for the rest of the program: ``known`` where no choice matters, else without a value."""
        outs = dependence(self.step).outs[self.op.carry :]
        types = self.op.result_type(*[x.type for group in self.operands for x in group])[self.op.carry :]
        nowhere = _Stacked(STACK.get(), f"the path through {self.op.name}")
        nowhere.ended = True
        return [Box(nowhere, t) if self.depends(out) else y for y, t, out in zip(known, types, outs)]

    def depends(self, inputs: int) -> bool:
        """Whether a choice, of this iteration or remembered, is among these inputs of the step, a bit set."""
        count = len(self.supports)
        return bool(inputs & (1 << count) - 1) or any([
            bool(own) and inputs >> count + self.op.shared + i & 1 == 1 for i, own in enumerate(self.remembered)
        ])

    # the two ways to cross it

    def answer(self, rest: Callable[..., Any], path: Any) -> Any:
        """R[0], the answer of the loop and of what follows it; the choices that the last carry remembers extend
        ``path``, if it stands in another loop.
        """
        first, later, tables, known = self.carries()
        results = self.stacked_results(known)
        last = self.window(self.op.length)

        def end(*values: Any) -> Any:
            zs, carry = values[: len(last)], values[len(last) :]
            return rest([*carry, *results], NO_STATE if path is None else (*path, *zs))

        axes = [*[[choice] for choice in last], *self.windows(self.op.length)]
        answers = self.over(last, end, axes)(*self.values(last), *tables)
        if later is not None:

            def iteration(answers: Any, each: Any) -> Any:
                moving, row = each
                return self.answers_before(self.depth, answers, self.with_moving(first[-1], moving), row), None

            what = f"{self.op.name}, the answers of clauses in it"
            answers, _ = self.scan(what, iteration, answers, (later, self.rows(self.depth)), not self.op.backwards)
        for t in reversed(range(min(self.depth, self.op.length))):
            answers = self.answers_before(t, answers, first[t], self.row(t))
        return answers

    def given(self, given: Callable[[int, int], Any], path: Path) -> tuple[list[Any], Path]:
        """Its results, and the path after it, as a function of the choices that the last carry remembers."""
        _, _, tables, known = self.carries()
        last = self.window(self.op.length)
        zs = {choice: given(len(path) + i, self.supports[choice.number]) for i, choice in enumerate(last)}
        carry = [_at_choices([zs[c] for c in own], x) for x, own in zip(tables, self.windows(self.op.length))]
        return [*carry, *self.stacked_results(known)], (*path, *zs.values())


def _at_first(x: Any, axes: Sequence[Choice], kept: Sequence[bool]) -> Any:
    """The element 0 of ``x`` along its leading axes, of which some are kept: along the others it is constant."""
    for d in reversed(range(len(axes))):
        x = x if kept[d] else index_in_dim(x, 0, d, keepdims=False)
    return x


def _at_choices(zs: Sequence[Any], x: Any) -> Any:
    """The entry of a table at these values of its first choices; where lanes number a choice, as in
    ``vmap(resume)(arange(n))``, the axis of the table is that of the lanes.
    """
    for z in zs:
        in_lanes = isinstance(z, BatchBox) and x.run is not z.run and z.value.type.shape == x.type.shape[:1]
        if in_lanes and is_iota(z.value):
            x = z.run.box(0, (x,))
        else:
            x = dynamic_index_in_dim(x, z, 0, keepdims=False, allow_negative_indices=False)
    return x


def has_iterations(op: Any) -> bool:
    """Whether ``op`` executes its body a known number of times, each time with the slices of one index; a loop over
    lanes of different lengths does not.
    """
    return op.runs == "loop" and not op.selects and type(op.length) is int


def chain_of(handler: Handler, op: Any, operands: Sequence[Any], evaluate: EvaluateUnder) -> Chain:
    """A loop as a chain, after recording its body as a function of its choices.

    Raises: CannotCross: a clause declares no support, or a carry remembers choices of all iterations.
    """
    supports: list[int] = []
    boxes: list[Any] = []
    inputs = Record(STACK.get(), "handle")

    def given(number: int, count: int) -> Any:
        if number == len(boxes):
            boxes.append(inputs.input(INDEX))
            supports.append(0)
        supports[number] = max(supports[number], count)
        return boxes[number]

    body = op.bodies[0]
    flat = lambda *values: evaluate(PathHandler(handler, given), body, values, (), lambda results, path: list(results))
    with installed(inputs):
        recorded = record(flat, body.in_types, body.name, "handle")
    step = with_inputs(recorded, boxes, [INDEX] * len(boxes))
    choices = remembered(op, step, len(boxes))
    moving = moving_carries(op, step, choices, len(boxes))
    return Chain(handler, op, op.groups(operands), evaluate, step, supports, choices, moving)


def remembered(op: Any, step: Program, count: int) -> list[frozenset[Choice]]:
    """For each carry the choices that it is a function of before an iteration: the least fixed point of

        remembered(c) = the choices of the iteration on which c depends, one iteration old,
                        and those that the carries remember on which it depends, one iteration older

    Raises: CannotCross: it has none.
    """
    carries = range(op.carry)
    outs = dependence(step).outs[: op.carry]
    made = [[k for k in range(count) if out >> k & 1] for out in outs]
    sources = [[j for j in carries if out >> count + op.shared + j & 1] for out in outs]
    known: list[frozenset[Choice]] = [frozenset() for _ in carries]
    while True:
        grown = [
            frozenset([*[Choice(1, k) for k in made[i]], *[choice.older for j in sources[i] for choice in known[j]]])
            for i in carries
        ]
        if grown == known:
            return known
        endless = [i for i in carries if any([choice.age > op.carry for choice in grown[i]])]
        if endless:
            i = next((i for i in endless if i in sources[i]), endless[0])
            raise CannotCross(
                f"{op.name}: its carry {i}, {step.out_types[i]}, depends on the choices of all earlier iterations, so "
                "what follows an iteration has no table.",
                hint="carry what depends on the last choices alone, and let clauses add up what is added up: a clause "
                f"of an operation without a result, such as w + resume(None); or {UNROLL}.",
            )
        known = grown


def moving_carries(op: Any, step: Program, remembered: Sequence[frozenset[Choice]], count: int) -> list[bool]:
    """For each carry whether its table is another one in each iteration.

    The others are those that an iteration passes on, and those that depend on choices, on what all iterations share,
    and on carries whose tables stay: from the iteration on that is as old as the oldest choice they remember.
    """
    first = count + op.shared
    outs = dependence(step).outs[: op.carry]
    moving = [number != i for i, number in enumerate(step.outs[: op.carry], first)]
    while True:
        passing = (1 << first) - 1 | sum([1 << first + i for i, moves in enumerate(moving) if not moves])
        fewer = [moves and (not own or out & ~passing != 0) for moves, own, out in zip(moving, remembered, outs)]
        if fewer == moving:
            return moving
        moving = fewer


def eliminated(
    handler: Handler, op: Any, operands: Sequence[Any], state: Any, evaluate: EvaluateUnder, rest: Callable[..., Any]
) -> Any:
    """The answer of a loop in whose body clauses take the rest of the program, and of the ``rest`` after it.

    Raises: CannotCross: the handler has a state, the body has no table (see ``chain_of``), or what is performed more
    than once has effects for handlers further out. StateTypeError, TreeMismatch: the answers after two iterations
    differ in type or structure.
    """
    within = isinstance(handler, PathHandler)
    if not within and state is not NO_STATE:
        raise CannotCross(
            f"{op.name}: the state of a handler whose clause takes resume cannot cross it, since it may depend on all "
            "choices.",
            hint=f"pass it as a carry of the loop, or add it up in the answers: w + resume(None); or {UNROLL}.",
        )
    chain = chain_of(handler.original if within else handler, op, operands, evaluate)  # type: ignore[attr-defined]
    if within:
        given = handler.given  # type: ignore[attr-defined]
        return chain.answer(rest, state) if given is None else rest(*chain.given(given, state))
    with inside(_WithoutEffects(STACK.get(), "")):
        return chain.answer(rest, None)
