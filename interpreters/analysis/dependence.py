"""Dependence: which inputs of a program each of its variables depends on.

    dependence(p).results(marks)[j]   whether result j of p depends on a marked input

One forward pass computes a set of inputs for each variable, independently of the marks; it is memoised on the program.
A set is an integer: bit ``i`` stands for input ``i``. An operation with bodies composes the dependence of its bodies;
the carries of a loop are closed under any number of iterations, a transitive closure.

An effect comes after those of its class before it, so what it gives depends on what these depend on. Without this
order, where ``ordered`` is False, it depends on its operands alone: a linear map and its adjoint perform their effects
apart from those that are known.

``body_dependence`` answers the two questions on an operation with bodies: forward, which inputs and results depend on
marked operands (``reached``: partial evaluation and transposition), and backward, which inputs some results need
(``needed``: dead code elimination).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ...effects.core.named_axes import Axis
from ...effects.core.operation import Operation
from ...effects.programs.program import Program, derived_once, memoised

Marks = tuple[bool, ...]


def effect_kinds(op: Operation) -> set[Any]:
    """The classes of effects that an operation or its bodies perform, except naming a mapped axis."""
    return {type(effect) for effect in op.effects if not isinstance(effect, Axis)}


class Dependence(NamedTuple):
    """The sets of inputs that the variables of a program, its results and its effects depend on.

    ``effects``: by class, those before it included. ``roots``: the inputs that all operands of equations with effects
    depend on, which are needed whichever results are used.
    """

    values: list[int]
    outs: tuple[int, ...]
    effects: dict[Any, int]
    roots: int

    def results(self, marks: Sequence[bool]) -> Marks:
        """Which results depend on a marked input."""
        marked = as_set(marks)
        return tuple([out & marked != 0 for out in self.outs])


def as_set(marks: Sequence[bool]) -> int:
    """The bit set of the positions at which ``marks`` is True."""
    result = 0
    for i, yes in enumerate(marks):
        if yes:
            result |= 1 << i
    return result


def as_marks(numbers: int, count: int) -> Marks:
    """For each position below ``count``, whether it is in the bit set."""
    return tuple([numbers >> i & 1 == 1 for i in range(count)])


def scattered(values: Iterable[Any], marks: Sequence[bool]) -> list[Any]:
    """The values in order at the positions that are True, which are as many, and None at the others."""
    waiting = iter(values)
    return [next(waiting) if yes else None for yes in marks]


def union(sets: Iterable[int]) -> int:
    """The union of bit sets."""
    result = 0
    for numbers in sets:
        result |= numbers
    return result


def dependence(program: Program, ordered: bool = True) -> Dependence:
    """The dependence of a program, in one pass over its equations; ``ordered``: effects keep their order."""
    return _in_order(program) if ordered or not program.effects else _by_operands(program)


@derived_once
def _in_order(program: Program) -> Dependence:
    return _dependence(program, {}, True)


@derived_once
def _by_operands(program: Program) -> Dependence:
    return _dependence(program, {}, False)


def _iterated(bodies: Sequence[Program]) -> list[Dependence]:
    """The dependence of the bodies of a loop; an effect also depends on those of its class in earlier iterations."""
    dependences = [dependence(body) for body in bodies]
    before: dict[Any, int] = {}
    while (after := dependences[-1].effects) != before:
        before, dependences = after, []
        for body in bodies:
            dependences.append(_dependence(body, dependences[-1].effects if dependences else before, True))
    return dependences


def _dependence(program: Program, earlier: dict[Any, int], ordered: bool) -> Dependence:
    """The dependence of a program executed after effects that depend, by class, on the sets ``earlier``."""
    values = [1 << i for i in range(len(program.in_types))]
    effects = dict(earlier)
    roots = 0
    performs = bool(program.effects)
    for op, args, types in zip(program.ops, program.args, program.types):
        if op.bodied:
            operands = [values[n] if n >= 0 else 0 for n in args]
            results, performed, taken = body_dependence(op, ordered).composed(operands)
        else:
            inputs = 0
            for n in args:
                if n >= 0:
                    inputs |= values[n]
            if not performs and not op.multiple_results:
                values.append(inputs)
                continue
            results = [inputs] * len(types) if op.multiple_results else [inputs]
            performed = dict.fromkeys(effect_kinds(op), inputs) if performs else {}
            taken = inputs
        if performed:
            roots |= taken
            before = union([effects.get(kind, 0) for kind in performed])
            if ordered:
                results = [inputs | before for inputs in results]
            for kind, inputs in performed.items():
                effects[kind] = before | inputs
        values += results
    return Dependence(values, tuple([values[n] if n >= 0 else 0 for n in program.outs]), effects, roots)


class Reached(NamedTuple):
    """Which inputs of the bodies and which results depend on marked operands, and whether the loop's test does."""

    inputs: Marks
    results: Marks
    test: bool


class BodyDependence:
    """The dependence of an operation with bodies, as sets of inputs of the bodies.

    ``outs``: of each result of a body, over all branches; ``test``: of a loop's test, or of the effects in a scope, by
    which a clause may choose; ``effects``: by class; ``roots``: of all operands of equations with effects; of a scoped
    effect, whose clause takes every operand, all inputs.
    ``carried``: of each carry of a loop after any number of iterations, none included; empty where the operation is no
    loop. Carry ``k`` is input ``first + k``.
    """

    __slots__ = ("op", "outs", "test", "effects", "roots", "first", "carried")

    def __init__(self, op: Any, ordered: bool):
        self.op = op
        loops = op.loops and ordered
        bodies = _iterated(op.bodies) if loops else [dependence(body, ordered) for body in op.bodies]
        tests, main = bodies[: len(op.tests)], bodies[len(op.tests) :]
        self.outs = main[0].outs if len(main) == 1 else tuple(map(union, zip(*[each.outs for each in main])))
        self.test = union(tests[0].outs) if tests else 0
        self.effects = main[0].effects
        if len(bodies) > 1:
            kinds = {kind for each in bodies for kind in each.effects}
            self.effects = {kind: union([each.effects.get(kind, 0) for each in bodies]) for kind in kinds}
        self.roots = union([each.roots for each in bodies])
        if op.scopes:
            self.test = union(self.effects.values())
            self.effects = {**self.effects, type(op): self.test}
            self.roots = (1 << len(op.main[0].in_types)) - 1
        self.first = op.shared
        self.carried = _closed(self.outs[: op.carry], op.shared) if op.loops and op.transparent else ()

    def reached(self, marks: Sequence[bool]) -> Reached:
        """The inputs and results that depend on a marked operand; all results where one selects or reaches the test."""
        op, count = self.op, len(self.carried)
        inputs = list(marks[op.selects :])
        marked = as_set(inputs)
        if count:
            inputs[self.first : self.first + count] = [numbers & marked != 0 for numbers in self.carried]
            marked = as_set(inputs)
        test = self.test & marked != 0
        if test or True in marks[: op.selects] or (marked and not op.transparent):
            results = (True,) * len(self.outs)
        else:
            results = tuple([out & marked != 0 for out in self.outs[count:]])
            results = (*inputs[self.first : self.first + count], *results)
        return Reached(tuple(inputs), results, test)

    def late_effects(self, inputs: Sequence[bool]) -> frozenset[Any]:
        """The classes of a loop's effects that depend on these inputs of its body, in the same or a later iteration."""
        marked = as_set(inputs) if self.op.loops else 0
        return frozenset([kind for kind, numbers in self.effects.items() if numbers & marked])

    def needed(self, used: Sequence[bool]) -> tuple[Marks, Marks]:
        """The inputs of the bodies that used results, the test or effects need; and the results that are then live.

        More results are live than used where a loop carries a value that another live result depends on.
        """
        first, count = self.first, len(self.carried)
        live = self.test | self.roots | as_set(used[:count]) << first
        for out, yes in zip(self.outs[count:], used[count:]):
            if yes:
                live |= out
        for i, numbers in enumerate(self.carried, first):
            if live >> i & 1:
                live |= numbers
        inputs = as_marks(live, len(self.op.main[0].in_types))
        return inputs, (*inputs[first : first + count], *used[count:])

    def composed(self, operands: Sequence[int]) -> tuple[list[int], dict[Any, int], int]:
        """The sets that results, effects and roots depend on, if operand ``i`` depends on the set ``operands[i]``."""
        op = self.op
        if not op.transparent:
            everything = union(operands)
            return [everything] * len(self.outs), dict.fromkeys(effect_kinds(op), everything), everything
        inner = list(operands[op.selects :])
        count = len(self.carried)
        carries = _composed(self.carried, inner)
        inner[self.first : self.first + count] = carries
        if not (self.test or op.selects or self.effects):  # the common case: no control, no effects
            return [*carries, *_composed(self.outs[count:], inner)], {}, 0
        (test, roots, *outs) = _composed((self.test, self.roots, *self.outs[count:]), inner)
        control = union(operands[: op.selects]) | test  # what decides which body is executed, and how often
        effects = dict(zip(self.effects, [control | inputs for inputs in _composed(self.effects.values(), inner)]))
        results = [*carries, *outs]
        return [control | inputs for inputs in results] if control else results, effects, control | roots

    def entire(self, inputs: Marks) -> bool:
        """Whether everything that the bodies compute depends on these inputs, so that partial evaluation would know
        nothing.

        Operations that are ``cheap_to_recompute``, such as broadcasts, do not count.
        """
        op = self.op
        if not all(inputs[op.shared : op.shared + op.carry]):
            return False
        return all([_entire(body, inputs) for body in op.bodies])


def body_dependence(op: Any, ordered: bool = True) -> BodyDependence:
    """The dependence of an operation with bodies; memoised on the body if there is only one."""
    if len(op.bodies) > 1 or not op.transparent:
        return BodyDependence(op, ordered)
    key = (BodyDependence, type(op), op.shared, op.carry, ordered or not op.effects)
    result: BodyDependence = memoised(op.bodies[0], key, lambda: BodyDependence(op.without_own_rule(), ordered))
    return result


def _composed(sets: Iterable[int], inner: Sequence[int]) -> list[int]:
    """For each set the union of ``inner[i]`` over its elements ``i``. Equal sets are computed once."""
    seen = {0: 0}
    results = []
    for numbers in sets:
        combined = seen.get(numbers)
        if combined is None:
            combined, left = 0, numbers
            while left:
                i = left.bit_length() - 1
                combined |= inner[i]
                left ^= 1 << i
            seen[numbers] = combined
        results.append(combined)
    return results


def _closed(outs: Sequence[int], first: int) -> tuple[int, ...]:
    """The reflexive transitive closure: for each carry itself and the inputs it depends on over all iterations.

    ``outs[k]``: the inputs that carry ``k`` depends on after one iteration; as an input it has number ``first + k``.
    Each row is closed by a search that takes in a closed row at once, without its carries.
    """
    rows = list(outs)
    carries = (1 << len(rows)) - 1 << first
    done = 0  # carries whose row is closed
    for k in range(len(rows)):
        reached = rows[k] | 1 << first + k
        waiting = reached & carries ^ 1 << first + k
        while waiting:
            closed = waiting & done
            i = (closed or waiting).bit_length() - 1
            row = rows[i - first]
            waiting = waiting & ~row if closed else (waiting | row & carries & ~reached) ^ 1 << i
            reached |= row
        rows[k] = reached
        done |= 1 << first + k
    return tuple(rows)


def _entire(program: Program, inputs: Marks) -> bool:
    """Whether everything that a program computes, its results included, depends on these inputs."""
    if not all(dependence(program).results(inputs)):
        return False
    if computes_without(program, inputs):
        return False
    values, marked = dependence(program).values, as_set(inputs)
    for op, args in zip(program.ops, program.args):
        if op.bodied:
            inner = body_dependence(op)
            if not inner.entire(inner.reached([n >= 0 and values[n] & marked != 0 for n in args]).inputs):
                return False
    return True


def computes_without(program: Program, marks: Sequence[bool]) -> bool:
    """Whether an equation of the program depends on no marked input; those ``cheap_to_recompute`` do not count."""
    values, marked, at = dependence(program).values, as_set(marks), len(program.in_types)
    for op, types in zip(program.ops, program.types):
        count = len(types) if op.multiple_results else 1
        if count and not values[at] & marked and not op.cheap_to_recompute:
            return True
        at += count
    return False
