"""Operations that are performed once."""

from __future__ import annotations

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.effects.operations.elementwise.transcendental import Sin
from handlax.library import memo


def twice(x):
    return hnp.sin(x) * hnp.sin(x)


def performed(f, *args):
    """How often f performs a sine."""
    def clause(n, op, x):
        return n + 1, hx.perform(op, x)

    return hx.handle(hx.handler({Sin: clause}), 0)(f)(*args)[0]


def test_equal_operations_are_performed_once():
    assert performed(twice, 1.0) == 2
    assert performed(memo(twice), 1.0) == 1
    assert float(memo(twice)(1.0)) == float(twice(1.0))


def test_operands_are_compared_by_their_bits():
    f = lambda x, y: hnp.sin(x) + hnp.sin(y)
    assert performed(memo(f), hnp.array([1.0, 2.0]), hnp.array([1.0, 2.0])) == 1
    assert performed(memo(f), hnp.float32(0.0), hnp.float32(-0.0)) == 2
    assert performed(memo(f), hnp.float32(1.0), 1.0) == 2
    assert performed(memo(f), hnp.float32(hnp.nan), hnp.float32(hnp.nan)) == 1


def test_every_call_remembers_for_itself():
    f = memo(hnp.sin)
    assert performed(lambda x: f(x) + f(x), 1.0) == 2


def test_traced_values_are_compared_by_being_the_same():
    program = hx.make_program(memo(lambda x, y: hnp.sin(x) + hnp.sin(x) + hnp.sin(y)))(1.0, 1.0)
    assert [op.name for op in program.ops].count("sin") == 2


def test_loops_remember_for_themselves():
    f = lambda x: lax.scan(lambda c, _: (twice(c) + hnp.sin(x) * hnp.sin(x), None), x, None, 3)[0] + hnp.sin(x)
    assert int(performed(memo(f), 1.0)) == 2 * 3 + 1
    assert float(memo(f)(1.0)) == float(f(1.0))
    assert float(hx.jit(memo(hx.jit(f)))(1.0)) == float(hx.jit(f)(1.0))


def test_transformations_inside_and_around():
    for g in (memo(hx.grad(twice)), hx.grad(memo(twice)), hx.grad(hx.checkpoint(memo(twice)))):
        assert abs(float(g(1.0)) - float(hx.grad(twice)(1.0))) < 1e-6
    assert hx.vmap(memo(twice))(hnp.arange(3.0)).tolist() == hx.vmap(twice)(hnp.arange(3.0)).tolist()


def test_effects_are_performed_every_time():
    f = memo(lambda: (hx.tell(1.0), hx.tell(1.0)))
    assert len(hx.handle(hx.library.writer, ())(f)()[0]) == 2


def test_over_chooses_what_is_remembered():
    assert performed(memo(twice, over=lambda op: op.name != "sin"), 1.0) == 2
