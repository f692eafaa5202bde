"""``RaggedLoop``: its evaluation, its program and its adjoint against a loop over the lanes."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import handlax as hx
from handlax import lax, perform
from handlax import numpy as hnp
from handlax.effects.base.stack import BASE, inside
from handlax.effects.types.array_type import array_type
from handlax.effects.types.extent import length
from handlax.interpreters.core.record import record
from handlax.interpreters.ragged.ragged_loop import RaggedLoop
from handlax.operations import Tanh

LENGTHS = np.array([2, 0, 70, 40], np.int32)
TOTAL, LONGEST, COUNT = 115, 80, len(LENGTHS)
N: Any = length(0)


def loop() -> RaggedLoop:
    """From a matrix that lanes share, rows [n, 3] and a vector of the lane to rows [n, 3] and a number."""

    def lane(w: Any, x: Any, v: Any) -> list[Any]:
        scores = hnp.tanh(x @ w @ x.T)
        return [scores @ x + v, (scores * v.sum()).sum()]

    f32 = lambda *shape: array_type(shape, np.float32)
    with inside(BASE):
        body = record(lane, [f32(3, 3), f32(N, 3), f32(3)], "lane")
    return RaggedLoop((body,), 1, 0, COUNT, ((0, TOTAL, LONGEST),))


def arguments() -> tuple[Any, Any, Any]:
    normal = np.random.default_rng(0).standard_normal
    return tuple([hnp.asarray(normal(shape), np.float32) for shape in ((3, 3), (TOTAL, 3), (COUNT, 3))])


def wanted(w: Any, x: Any, v: Any, lengths: Any = LENGTHS) -> tuple[Any, Any]:
    ends = np.cumsum(lengths)
    rows, sums = [], []
    for e, n, u in zip(ends.tolist(), lengths.tolist(), v):
        lane = x[e - n : e]
        scores = hnp.tanh(lane @ w @ lane.T)
        rows.append(scores @ lane + u)
        sums.append((scores * u.sum()).sum())
    return hnp.concatenate([*rows, hnp.zeros((TOTAL - int(ends[-1]), 3))]), hnp.stack(sums)


def assert_close(xs: Any, ys: Any) -> None:
    for x, y in zip(xs, ys, strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-3, atol=1e-3)


def performed(w: Any, x: Any, v: Any, n: Any = LENGTHS) -> Any:
    return perform(loop(), hnp.asarray(n), w, x, v)


@pytest.mark.parametrize("compiled", [False, True])
def test_rows_behind_the_last_lane_are_zeros(compiled: bool) -> None:
    f = hx.jit(performed) if compiled else performed
    assert_close(f(*arguments()), wanted(*arguments()))


@pytest.mark.parametrize(("longest", "most"), [(512, 4), (2048, 5), (8192, 6)])
def test_the_program_of_a_lane_stands_in_it_for_each_of_a_few_sizes(longest: int, most: int) -> None:
    """Each is compiled: XLA spends most of its time on them."""
    op = dataclasses.replace(loop(), bounds=((0, 4 * longest, longest),))
    types = [op.stacked(t) for t in op.bodies[0].in_types[1:]]
    text = hx.jit(perform, static_argnums=0).lower(op, hx.numpy.zeros(COUNT, int), hnp.ones((3, 3)), *types).as_text()
    assert text.count("stablehlo.while") == most
    assert text.count("stablehlo.dot_general") == 3 * most


def test_the_adjoint_sums_what_lanes_share() -> None:
    value = lambda f: lambda *xs: sum([hnp.sin(y).sum() for y in f(*xs)])
    gradients = hx.jit(hx.grad(value(performed), (0, 1, 2)))(*arguments())
    assert_close(gradients, hx.grad(value(wanted), (0, 1, 2))(*arguments()))


DIMS = [(None, 0, None, None), (1, None, None, None), (None, 1, 2, None), (0, 0, 0, 0)]


@pytest.mark.parametrize("dims", DIMS, ids=str)
def test_mapped_operands(dims: tuple[Any, ...]) -> None:
    *args, n = (*arguments(), LENGTHS)
    pairs = [x if d is None else hnp.stack([x, x[::-1]], d) for x, d in zip((*args, hnp.asarray(n)), dims)]
    results = hx.jit(hx.vmap(performed, dims))(*pairs)
    for k in range(2):
        one = [x if d is None else hnp.take(x, k, d) for x, d in zip(pairs, dims)]
        assert_close([y[k] for y in results], wanted(*one[:3], np.asarray(one[3])))


def test_its_text_is_read_back() -> None:
    program = hx.make_program(performed)(*arguments())
    again = hx.Program.parse(str(program))
    assert str(again) == str(program)
    assert_close(again(*arguments()), wanted(*arguments()))


def test_lanes_that_do_not_fit_read_no_row_outside() -> None:
    too_long = np.array([100, 100, 100, 100], np.int32)
    rows, sums = hx.jit(performed)(*arguments(), too_long)
    assert rows.shape == (TOTAL, 3)
    assert np.isfinite(np.asarray(sums)).all()


def test_one_program_serves_all_lengths() -> None:
    f = hx.jit(lambda n, x: lax.reduce_sum(performed(*arguments(), n)[0], (0, 1)) + x)
    for lengths in ([1, 2, 3, 4], [70, 0, 0, 45]):
        x = f(np.asarray(lengths, np.int32), np.float32(0))
        np.testing.assert_allclose(x, hnp.sum(wanted(*arguments(), np.asarray(lengths))[0]), rtol=1e-3)
    assert f._cache_size() == 1


def test_costs_are_those_of_lanes_of_the_mean_length() -> None:
    mean = -(-TOTAL // COUNT)
    of_products = lambda costs: costs.classes[(), "dot_general"].flops
    one = of_products(hx.costs(lambda w, x: hnp.tanh(x @ w @ x.T) @ x)(hnp.ones((3, 3)), hnp.ones((mean, 3))))
    found = hx.costs(performed)(*arguments())
    assert of_products(found) == COUNT * one
    assert not found.exact


@hx.effect(vmap="per_lane", diff="stop")
class Departure:
    def result_type(op: Any) -> None:
        return None


def end_where_large(op: Any, x: Any) -> Any:
    lax.cond(x.max() > 3, lambda: hx.perform(Departure()), lambda: None)
    return hx.perform(op, x)


def test_handlers_outside_that_end_the_program_or_log_what_no_lane_can_give_are_refused() -> None:
    ending = hx.handler({Departure: hx.final(lambda op: (hnp.zeros((TOTAL, 3)), hnp.zeros(COUNT)))})
    logging = hx.handler({Tanh: lambda s, op, x: ((*s, x), hx.perform(op, x))}, moves=hx.append)
    ends = hx.handle(ending)(hx.handle(hx.handler({Tanh: end_where_large}))(lambda *xs: tuple(performed(*xs))))
    with pytest.raises(hx.errors.CannotCross, match="its lanes are in no order"):
        ends(*arguments())
    with pytest.raises(hx.errors.CannotCross, match="there is none for all lanes"):
        hx.handle(logging, ())(performed)(*arguments())
