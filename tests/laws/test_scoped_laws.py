"""A scoped effect handled outside of a transformation or handler gives what it gives inside, or is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.effects.base.stack import STACK, inside, installed
from handlax.effects.core.arrays import Box, as_array
from handlax.experimental import jet
from handlax.interpreters.core.body_transform import BodyTransformer, cross


@hx.effect(vmap="per_lane", diff="stop")
class Tick:
    def result_type(op):
        return None


@hx.effect(vmap="per_lane", diff="stop")
class Fail:
    def result_type(op):
        return None


DECLARED = [*itertools.product(("refuse", "per_lane", "bodies"), ("refuse", "bodies"))]
EFFECTS = {
    declared: hx.effect(scopes=1, vmap=declared[0], diff=declared[1])(type("Scope", (), {})) for declared in DECLARED
}
CLAUSES = {
    "passes on": lambda op, body, *xs: body(*xs),
    "squares": lambda op, body, *xs: hx.tree.map(lambda y: y * y, body(*xs)),
    "computes": lambda op, body, *xs: 1.0 - 2.0 * body(*xs),
}
CASES = [
    (clause, declared)
    for clause, declared in itertools.product(CLAUSES, DECLARED)
    if clause == "passes on" or "bodies" not in declared
]


class TwoBox(Box):
    __slots__ = ("values",)

    def __init__(self, run, values):
        self.run, self.type, self.values = run, values[0].type, values


class Two(BodyTransformer):
    """A handler that declares nothing of scoped effects: it computes with two values at once."""

    __slots__ = ()

    def split(self, x):
        return (True, x.values) if x.run is self else (None, (x,))

    def part_types(self, mark, type):
        return (type, type) if mark else (type,)

    def force(self, x, mark):
        parts = self.split(x)[1]
        return parts * 2 if mark and len(parts) == 1 else parts

    def box(self, mark, parts):
        return TwoBox(self, tuple(parts)) if mark else parts[0]

    def answer(self, op, operands):
        if all(x.run is not self for x in operands):
            return self.outer.answer(op, operands)
        with inside(self.outer):
            if op.bodied:
                return cross(self, op, operands)
            return TwoBox(self, [self.outer.answer(op, xs) for xs in zip(*[self.force(x, True) for x in operands])])


def of_two(f):
    def both(x):
        run = Two(STACK.get(), "of_two")
        with installed(run):
            y = f(TwoBox(run, (as_array(x), as_array(-x))))
        return run.force(y, True)

    return both


counting = hx.handler({Tick: lambda n, op: (n + 1, None)})
ending = hx.handler({Fail: hx.final(lambda op: -1.0)})
ticking = lambda x: (hx.perform(Tick()), hx.perform(Tick()), 3.0 * x)[2]
failing = lambda x: (lax.cond(x > 5.0, lambda: hx.perform(Fail()), lambda: None), 3.0 * x)[1]
tripled = lambda x: 3.0 * x


def with_reference(perform):
    def f(x):
        ref = hx.new_ref(hnp.float32(1.0))

        def body(x):
            ref[...] = ref[...] + x
            return 3.0 * x

        return perform(body, x), ref[...]

    return hx.jit(f)


plain = lambda transform: lambda perform: transform(lambda x: perform(tripled, x))
AROUND = {  # the program, given how the effect is performed with a function and its operand
    "jvp": plain(lambda f: lambda x: hx.jvp(f, (x,), (1.0,))),
    "grad": plain(hx.grad),
    "checkpoint": plain(lambda f: hx.grad(hx.checkpoint(f))),
    "hessian": plain(hx.hessian),
    "jet": plain(lambda f: lambda x: jet.jet(f, (x,), ((1.0, 1.0),))),
    "vmap": plain(lambda f: lambda x: hx.vmap(f)(hnp.array([x, 2 * x]))),
    "interpreter": plain(of_two),
    "state": lambda perform: hx.handle(counting, 0)(lambda x: perform(ticking, x)),
    "exit": lambda perform: hx.handle(ending)(lambda x: perform(failing, x) + 1.0),
    "reference": with_reference,
}


def outcome(f):
    try:
        return [np.asarray(y) for y in hx.tree.leaves(f())]
    except (errors.CannotCross, errors.NotDifferentiable) as error:
        return type(error)


def allowed(around, in_vmap, in_derivatives):
    """Whether the effect declares that it may be performed there."""
    match around:
        case "vmap":
            return in_vmap != "refuse"
        case "jvp" | "grad" | "checkpoint" | "hessian" | "jet":
            return in_derivatives == "bodies"
        case _:
            return "bodies" in (in_vmap, in_derivatives)


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize(("clause", "declared"), CASES)
def test_handled_outside_it_is_what_it_is_inside_or_refused(clause, declared, around):
    op = EFFECTS[declared]()
    handled = hx.handle(hx.handler({type(op): CLAUSES[clause]}))
    perform = lambda f, x: hx.perform(op, f, x)
    expected = outcome(lambda: AROUND[around](lambda f, x: handled(lambda x: perform(f, x))(x))(2.0))
    got = outcome(lambda: handled(AROUND[around](perform))(2.0))
    if isinstance(got, type):
        assert not allowed(around, *declared)
    else:
        for x, y in zip(got, expected, strict=True):
            np.testing.assert_allclose(x, y)


def test_a_split_leaves_the_effect_whole_where_its_clause_computes():
    squaring = hx.handle(hx.handler(dict.fromkeys(EFFECTS.values(), CLAUSES["squares"])))
    op = EFFECTS["per_lane", "refuse"]()
    whole = hx.make_program(lambda a, b: hx.perform(op, lambda a, b: (2.0 * a, 3.0 * b), a, b))(1.0, 2.0)
    split = hx.partial_eval_program(whole, [False, True])

    def in_two_parts(a, b):
        known = split.known(a)
        rest = iter(split.rest(*split.residual_values([a], known), b))
        return tuple([next(rest) if late else known[i] for i, late in enumerate(split.unknown)])

    assert squaring(in_two_parts)(1.0, 2.0) == squaring(whole)(1.0, 2.0) == (4.0, 36.0)


def test_a_stopped_derivative_is_zero_in_every_series():
    @hx.effect(scopes=1, diff="stop")
    class Stopped:
        pass

    calling = hx.handle(hx.handler({Stopped: CLAUSES["passes on"]}))
    f = lambda x: hx.perform(Stopped(), tripled, x)
    assert calling(lambda: jet.jet(f, (2.0,), ((1.0, 1.0),)))() == (6.0, [0.0, 0.0])
    assert calling(lambda: hx.jvp(f, (2.0,), (1.0,)))() == (6.0, 0.0)
