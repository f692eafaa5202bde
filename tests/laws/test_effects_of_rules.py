"""Checkpoints and loops perform what derivatives of the plain program perform, as often and in the same order.

    performed(derivative(g)) == performed(derivative(plain(g)))        unless it is refused

``plain(g)`` is ``g`` without its checkpoints, and with its loops unrolled by Python. What is performed are effects of
functions with derivative rules, of these rules, and of rules that call the function they belong to.
"""

from __future__ import annotations

import random

import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.effects.core.operation import operation
from handlax.effects.programs.closure_conversion import close_all
from handlax.effects.programs.higher_order import HigherOrder, record_body
from handlax.effects.programs.program import Program


@hx.effect(vmap="per_lane", diff="stop")
class Mark:
    number: int

    def result_type(op):
        return None


# the state is the list of the numbers in base 4, of which 31 fit
listing = hx.handler({Mark: lambda marks, op: (4 * marks + op.number, None)})


def mark(number, wanted=True):
    if wanted:
        hx.perform(Mark(number))


def forward_rule(performs, calls_itself):
    @hx.custom_jvp
    def f(x):
        mark(1, performs)
        return hnp.sin(x)

    @f.defjvp
    def _(xs, dxs):
        mark(2)
        return (f if calls_itself else hnp.sin)(*xs), hnp.cos(*xs) * dxs[0]

    return f


def backward_rule(performs, calls_itself):
    @hx.custom_vjp
    def f(x):
        mark(1, performs)
        return hnp.sin(x)

    def fwd(x):
        mark(2)
        return (f if calls_itself else hnp.sin)(x), x

    def bwd(x, ct):
        mark(3)
        return (hnp.cos(x) * ct,)

    f.defvjp(fwd, bwd)
    return f


def slope_alone(performs, calls_itself):
    """A rule that calls another function with a rule for the tangent alone, in a compiled function."""
    slope = hx.jit(forward_rule(performs, calls_itself))
    f = hx.custom_jvp(hnp.sin)
    f.defjvp(lambda xs, dxs: (hnp.sin(*xs), slope(*xs) * dxs[0]))
    return f


def checkpointed(policy):
    return lambda plain, f: f if plain else hx.checkpoint(f, policy=policy)


def scanned(reverse):
    def wrapped(plain, f):
        if plain:
            return lambda x: _unrolled(f, x)
        step = lambda c, _: (f(c), c * c)
        return lambda x: _results(*lax.scan(step, x, None, length=2, reverse=reverse))

    return wrapped


def _unrolled(f, x):
    y = f(x)
    return _results(f(y), hnp.stack([x * x, y * y]))


def _results(last, each):
    return last + hnp.sum(each)


LAYERS = {
    "checkpoint": checkpointed(None),
    "dots_saveable": checkpointed(hx.checkpoint_policies.dots_saveable),
    "everything_saveable": checkpointed(hx.checkpoint_policies.everything_saveable),
    "scan": scanned(False),
    "reverse_scan": scanned(True),
    "jit": lambda plain, f: hx.jit(f),
    "cond": lambda plain, f: lambda x: lax.cond(x > -5.0, f, lambda x: x, x),
    "between": lambda plain, f: lambda x: hnp.sin(f(hnp.cos(x)) * x),
}
FUNCTIONS = {"jvp": forward_rule, "vjp": backward_rule, "slope": slope_alone}
DERIVATIVES = {
    "grad": hx.grad,
    "grad of grad": lambda f: hx.grad(hx.grad(f)),
    "grad of jvp": lambda f: hx.grad(lambda x: hx.jvp(f, (x,), (1.0,))[1]),
    "jvp of grad": lambda f: lambda x: hx.jvp(hx.grad(f), (x,), (1.0,))[1],
}


def check(function, flags, layers, derivative):
    """The law for a function with a rule inside these layers, the first one innermost."""

    def meaning(plain):
        f = FUNCTIONS[function](*flags)
        for name in layers:
            f = LAYERS[name](plain, f)
        marks, slope = hx.handle(listing, hnp.asarray(0, "int64"))(DERIVATIVES[derivative](f))(0.3)
        return int(marks), round(float(slope), 4)

    assert meaning(False) == meaning(True), f"{function} {flags} in {', '.join(layers)}, {derivative}"


@pytest.mark.each_choice
@pytest.mark.parametrize("derivative", [*DERIVATIVES][1:])
@pytest.mark.parametrize("function", ["jvp", "slope"])
def test_a_checkpoint_performs_what_rules_perform_once(function, derivative):
    for layers in (["between", "checkpoint"], ["checkpoint", "scan", "checkpoint"]):
        check(function, (False, True), layers, derivative)


@pytest.mark.parametrize("layers", [["scan"], ["reverse_scan"], ["checkpoint", "reverse_scan"]], ids=", ".join)
def test_a_loop_performs_no_backward_rule_for_cotangents_that_are_zero(layers):
    check("vjp", (False, True), layers, "grad of grad")


@operation
class Twice(HigherOrder):
    bodies: tuple[Program, ...]
    shared: int
    carry: int
    backwards: bool = False
    length = 2
    runs = "loop"


def test_a_loop_that_cannot_be_taken_apart_performs_no_backward_rule_for_cotangents_that_are_zero():
    def twice(x):
        bodies, _ = close_all([record_body(lambda c: [backward_rule(False, True)(c)], [x.type])])
        return hx.perform(Twice(bodies, 0, 1), x)[0]

    program = hx.grad(hx.grad(twice))
    with pytest.raises(hx.errors.CannotCross, match=r"twice: a backward rule performs .*zero in the last iteration"):
        hx.handle(listing, hnp.asarray(0, "int64"))(program)(0.3)


def test_a_backward_rule_of_what_a_checkpoint_computes_again_performs_nothing():
    with pytest.raises(hx.errors.CannotCross, match="performs mark, which would be performed a second time"):
        check("vjp", (False, True), ["between", "checkpoint"], "grad of grad")
    check("vjp", (False, True), ["between", "everything_saveable"], "grad of grad")
    check("vjp", (False, False), ["between", "checkpoint"], "grad of grad")


def test_an_effect_with_a_result_that_a_checkpoint_would_perform_again_is_refused():
    @hx.effect(diff="stop")
    class Ask:
        def result_type(op, x):
            return x

    @hx.custom_jvp
    def f(x):
        return hnp.sin(x)

    @f.defjvp
    def _(xs, dxs):
        return f(*xs), hx.perform(Ask(), hnp.cos(*xs)) * dxs[0]

    slope = hx.grad(hx.grad(hx.checkpoint(lambda x: hnp.sin(f(x) * x))))
    with pytest.raises(hx.errors.CannotCross, match="performs ask, which would be performed a second time"):
        hx.handle(hx.handler({Ask: lambda op, x: x}))(slope)(0.3)


def random_case(seed):
    """A function, its flags, layers and a derivative, of which a handler outside may see what they perform."""
    draw = random.Random(seed)
    layers = [draw.choice([*LAYERS]) for _ in range(draw.randrange(1, 4))]
    while sum("scan" in name for name in layers) > 1:  # at most 31 numbers
        layers.remove(next(name for name in layers if "scan" in name))
    function, derivative = draw.choice([*FUNCTIONS]), draw.choice([*DERIVATIVES])
    if function == "vjp" and derivative == "jvp of grad":  # a backward rule in forward mode changes no state
        derivative = "grad of grad"
    calls_itself = draw.random() < 0.7
    if function == "vjp" and calls_itself:  # a loop in a checkpoint stacks carries, of which the last has a dense zero
        layers.sort(key=lambda name: "scan" in name)
    return function, (draw.random() < 0.5, calls_itself), layers, derivative


@pytest.mark.sweep
@pytest.mark.parametrize("first", range(0, 300, 30))
def test_random_nests_perform_what_the_plain_program_performs(first):
    for seed in range(first, first + 30):
        case = random_case(seed)
        try:
            check(*case)
        except hx.errors.CannotCross as refused:
            if case[0] != "vjp" or "a second time" not in str(refused):
                raise
