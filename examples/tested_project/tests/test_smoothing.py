"""The project's tests: laws of its operation and of its handler, and what the plug-in checks."""

import numpy as np
import pytest
from smoothing import Turn, diffuse, smooth, spend, spending

import handlax as hx
from handlax import numpy as hnp
from handlax.testing import check_handler, check_operation


@pytest.mark.parametrize("turn", [Turn(0), Turn(1), Turn(-4, axis=1)], ids=str)
def test_the_operation_satisfies_the_laws(turn, rng):
    check_operation(turn, operands=[[rng.normal(size=(3, 2))]])


def test_the_handler_crosses_control_flow_and_transformations():
    check_handler(spending, 0.0, performs=spend, examples=3)


def test_smoothing_keeps_the_sum(key):
    x = hx.random.uniform(key, (7,))
    np.testing.assert_allclose(smooth(x).sum(), x.sum(), rtol=1e-5)


def test_what_is_spent_is_added_up():
    total, x = hx.handle(spending, 0.0)(diffuse)(hnp.array([0.0, 4.0, 0.0, 0.0]), 2)
    assert total == 3.5 and x.tolist() == [1.0, 1.5, 1.0, 0.5]


def test_what_lanes_spend_is_added_up():
    assert hx.handle(spending, 0.0)(hx.vmap(spend))(hnp.array([1.0, 2.5]))[0] == 3.5


@pytest.mark.handlax(max_traces=1, max_compiles=1)
def test_one_trace_serves_all_values():
    f = hx.jit(smooth)
    assert f(np.ones(5, "float32")).tolist() == f(np.ones(5, "float32")).tolist()


def test_a_step_is_one_turn_to_each_side(program_snapshot, stablehlo_snapshot):
    x = np.zeros(5, "float32")
    program_snapshot(smooth)(x)
    stablehlo_snapshot(hx.grad(lambda x: smooth(x)[0]))(x)
