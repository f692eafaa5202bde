"""Values with two ragged axes under lengths that are values: equal to the loop over lanes, and in one lane's memory."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from helpers.chosen_cases import rest_in_sweep

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.interpreters.ragged import lane_by_lane

R = hx.ragged_axis
LENGTHS = np.array([3, 0, 40, 1], np.int32)
SPARE = 2
LONGEST = 45
softmax = hx.nn.softmax


def biased(x: Any, w: Any, b: Any, v: Any) -> Any:
    place = hnp.arange(x.shape[0])
    return softmax((x @ w) @ x.T + b[(place[:, None] - place[None, :]) % 8], -1) @ x + v


def two_layers(x: Any, w: Any, b: Any, v: Any) -> Any:
    for _ in range(2):
        x = hnp.tanh((x + softmax((x @ w) @ x.T, -1) @ x) @ w) + v
    return x


def causal(x: Any, w: Any, b: Any, v: Any) -> Any:
    place = hnp.arange(x.shape[0])
    return softmax(hnp.where(place[:, None] >= place[None, :], (x @ w) @ x.T, -hnp.inf), -1) @ x


def distances(x: Any, w: Any, b: Any, v: Any) -> Any:
    d = ((x[:, None] - x[None, :]) ** 2).sum(-1)
    return hnp.exp(-d).sum(0), d.max(initial=0.0), (d * v[0]).sum()


def branch(x: Any, w: Any, b: Any, v: Any) -> Any:
    s = lax.cond(v[0] > 0, lambda s: 2 * s, lambda s: s - 1, x @ x.T)
    return softmax(s, -1) @ x


def along(x: Any, w: Any, b: Any, v: Any) -> Any:
    return lax.scan(lambda c, r: (c + r @ x, c * r.sum()), v, softmax(x @ x.T, -1))[1]


def iterated(x: Any, w: Any, b: Any, v: Any) -> Any:
    s = x @ x.T
    return lax.scan(lambda c, k: (hnp.tanh(c * k) + 0.1 * s, (c @ x).sum(0)), s, hnp.arange(3.0))[0].sum(0)


@hx.custom_vjp
def doubled(s: Any, w: Any) -> Any:
    return hnp.sin(s) * w.sum()


doubled.defvjp(
    lambda s, w: (doubled(s, w), (s, w)),
    lambda saved, ct: (2 * ct * hnp.cos(saved[0]) * saved[1].sum(), (ct * hnp.sin(saved[0])).sum() * hnp.ones((3, 3))),
)

CASES = {
    "biased": biased,
    "two layers": two_layers,
    "causal": causal,
    "distances": distances,
    "branch": branch,
    "along": along,
    "iterated": iterated,
    "inner gradient": lambda x, w, b, v: hx.grad(lambda x: (softmax((x @ w) @ x.T, -1) @ x * v).sum())(x),
    "inner jit": lambda x, w, b, v: hx.jit(lambda x: softmax((x @ w) @ x.T, -1) @ x)(x) + v,
    "checkpoint": lambda x, w, b, v: hx.checkpoint(lambda x: softmax((x @ w) @ x.T, -1) @ x)(x) * v,
    "inner vmap": lambda x, w, b, v: hx.vmap(lambda r: softmax(x @ (w @ r)) @ x)(x),
    "custom rule": lambda x, w, b, v: doubled(x @ x.T, w).sum(1),
}
OUT_AXES = {"distances": (R, 0, 0)}


@pytest.fixture(autouse=True)
def _short_lanes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane_by_lane, "PAYS", 1)


def arguments() -> list[Any]:
    """Rows, of which the spare ones are NaN; a matrix and a vector that lanes share; a vector of each lane."""
    normal = np.random.default_rng(0).standard_normal
    rows = np.concatenate([normal((LENGTHS.sum(), 3)), np.full((SPARE, 3), np.nan)])
    return [hnp.asarray(x, np.float32) for x in (rows, normal((3, 3)), normal(8), normal((len(LENGTHS), 3)))]


def mapped(name: str) -> Any:
    """The function of a case over all lanes, of arrays; results with a ragged axis as rows."""
    over_lanes = hx.vmap(CASES[name], (R, None, None, 0), OUT_AXES.get(name, R))

    def f(x: Any, w: Any, b: Any, v: Any, n: Any) -> list[Any]:
        return hx.tree.leaves(
            hx.tree.map(
                lambda y: y.data if isinstance(y, hx.Ragged) else y,
                over_lanes(hx.Ragged(x, n, LONGEST), w, b, v),
                is_leaf=lambda y: isinstance(y, hx.Ragged),
            )
        )

    return f


def loop(name: str, x: Any, w: Any, b: Any, v: Any) -> list[Any]:
    """The same by a loop over the lanes."""
    ends = LENGTHS.cumsum()
    lanes = [hx.tree.leaves(CASES[name](x[e - n : e], w, b, u)) for e, n, u in zip(ends.tolist(), LENGTHS.tolist(), v)]
    return [(hnp.concatenate if ys[0].ndim else hnp.stack)(ys) for ys in zip(*lanes)]


def assert_close(a: Any, b: Any, tolerance: float = 2e-4) -> None:
    b = np.asarray(b)
    a = np.asarray(a)[: len(b)] if b.ndim else np.asarray(a)
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * max(1, np.abs(b).max(initial=0)))


def loss(ys: Any) -> Any:
    return sum([hnp.sin(y).sum() for y in ys])


def results_and_gradients(f: Any) -> Any:
    """``f``, and the gradients of its loss, by one function."""
    with_results = lambda *xs: (lambda ys: (loss(ys), ys))(f(*xs))
    return hx.grad(with_results, (0, 1, 2, 3), has_aux=True)


QUICK = {"biased", "two layers", "distances", "branch", "inner gradient", "custom rule"}


@pytest.mark.parametrize("name", rest_in_sweep(CASES, QUICK))
def test_lanes_equal_the_loop(name: str) -> None:
    args = arguments()
    text = str(hx.make_program(mapped(name))(*args, LENGTHS))
    assert text.count("ragged_loop[") == (2 if name == "two layers" else 1)
    gradients, ys = hx.jit(results_and_gradients(mapped(name)))(*args, LENGTHS)
    wanted_gradients, wanted_ys = results_and_gradients(partial(loop, name))(*args)
    for y, wanted in zip(ys, wanted_ys, strict=True):
        assert_close(y, wanted)
    for g, wanted in zip(gradients, wanted_gradients, strict=True):
        assert_close(g, wanted, 2e-3)
        assert np.isfinite(np.asarray(g)).all()


@pytest.mark.sweep
@pytest.mark.parametrize("name", CASES)
def test_second_derivatives_and_outer_lanes(name: str) -> None:
    x, w, b, v = arguments()
    real = int(LENGTHS.sum())
    of_rows = lambda f: lambda rows: hx.grad(lambda r: loss(f(r)))(rows)
    ones = hnp.ones_like(x)
    product = hx.jit(lambda n: hx.jvp(of_rows(lambda r: mapped(name)(r, w, b, v, n)), (x,), (ones,))[1])(LENGTHS)
    wanted = hx.jvp(of_rows(lambda r: loop(name, r, w, b, v)), (x[:real],), (ones[:real],))[1]
    assert_close(product, wanted, 5e-3)
    pairs = hnp.stack([x, 0.5 * x])
    for lengths, axis in ((LENGTHS, None), (np.stack([LENGTHS, LENGTHS[::-1]]), 0)):
        ys = hx.jit(hx.vmap(mapped(name), (0, None, None, None, axis)))(pairs, w, b, v, lengths)
        for k in range(2):
            single = hx.jit(mapped(name))(pairs[k], w, b, v, lengths if axis is None else lengths[k])
            for y, one in zip(ys, single, strict=True):
                assert_close(y[k], one)


def test_an_effect_between_is_performed_in_its_place() -> None:
    def f(x: Any) -> Any:
        s = x @ x.T
        hx.debug.callback(seen.append, s.sum())
        return softmax(s, -1) @ x

    seen: list[Any] = []
    x, *_ = arguments()
    y = hx.jit(lambda x, n: hx.vmap(f, R, R)(hx.Ragged(x, n, LONGEST)).data)(x, LENGTHS)
    hx.effects_barrier()
    ends = LENGTHS.cumsum()
    lanes = [x[e - n : e] for e, n in zip(ends.tolist(), LENGTHS.tolist())]
    np.testing.assert_allclose(sorted(map(float, seen)), sorted([float((r @ r.T).sum()) for r in lanes]), rtol=1e-4)
    assert_close(y, hnp.concatenate([softmax(r @ r.T, -1) @ r for r in lanes]))


def test_results_needed_one_after_the_other_are_not_computed_again_and_again() -> None:
    def f(x: Any) -> Any:
        s = hnp.tanh(x @ x.T)
        for _ in range(8):
            s = hnp.tanh(s)
            hx.debug.callback(lambda _: None, s.sum())
        return s @ x

    g = lambda x, n: hx.vmap(f, R, R)(hx.Ragged(x, n, LONGEST)).data
    x = arguments()[0]
    assert str(hx.make_program(g)(x, LENGTHS)).count("= tanh") <= 9 + 2 + 3


def test_no_array_is_as_large_as_all_lanes_squared() -> None:
    f = mapped("causal")
    lengths = np.full(64, 45, np.int32)
    _, w, b, _ = arguments()
    rows = hnp.ones((64 * 45, 3))
    lowered = hx.jit(f).lower(rows, w, b, hnp.ones((64, 3)), lengths)
    assert f"{64}x{45}x{45}" not in lowered.as_text()


@pytest.mark.parametrize("transform", [lambda f: f, hx.jit])
def test_without_lanes_nothing_waits(transform):
    given = hx.Ragged(hnp.ones((300, 3)), hnp.zeros(0, "int32"), longest=200)
    f = hx.vmap(lambda x: (softmax(x @ x.T, -1) @ x).sum(), R)
    assert transform(f)(given).shape == (0,)
    gradient = hx.grad(lambda x: f(hx.Ragged(x, given.segment_lengths, 200)).sum())
    assert not transform(gradient)(given.data).any()
