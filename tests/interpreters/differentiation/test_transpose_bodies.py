"""Adjoints of bodies on the devices of a mesh: gradients by what is equal on all of them are summed as late as can be.

Each program adds ``step(w, x)`` up over the rows of ``xs``, of which each device has other columns.
"""

import functools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.interpreters.differentiation import transpose
from handlax.sharding import PartitionSpec as P


def looped(step):
    return lambda w, xs: lax.scan(lambda c, x: (c + step(w, x), None), 0.0, xs)[0]


@hx.custom_jvp
def with_slope(w, x):
    return (w * x).sum()


with_slope.defjvp(lambda p, t: (with_slope(*p), (2.0 * t[0] * p[1]).sum() + (p[0] * t[1]).sum()))


@hx.custom_vjp
def with_rule(w, x):
    return (w * x).sum()


with_rule.defvjp(lambda w, x: (with_rule(w, x), (w, x)), lambda r, ct: (2.0 * ct * r[1], ct * r[0]))


def wave(w, x):
    return hnp.sin(w * x).sum()


def until(step, w, x):
    count = lambda state: state[0] < 2
    return lax.while_loop(count, lambda s: (s[0] + 1, hnp.cos(s[1]) + step(w, x)), (0, 0.0), max_steps=3)[1]


STEPS = {
    "the body": wave,
    "by another dtype": lambda w, x: (w.astype("float64") * x).sum().astype(w.dtype),
    "by a factor": lambda w, x: (w * x).sum() * (w**2).sum(),
    "by a mean": lambda w, x: (w.mean() * x).sum(),
    "by a carry": lambda w, x: lax.fori_loop(0, 2, lambda i, c: c * w[1], w.sum()) * x.sum(),
    "a rule for tangents": with_slope,
    "a rule for cotangents": with_rule,
    "neither": lambda w, x: hnp.cos(x).sum(),
}
AROUND = {
    "jit": lambda step: hx.jit(step),
    "checkpoint": lambda step: hx.checkpoint(step),
    "jit, by another value": lambda step: hx.jit(lambda w, x: step(hnp.tanh(w), x)),
    "branches": lambda step: lambda w, x: lax.cond(w[1] > 0.5, step, lambda w, x: x.sum(), w, x),
    "branches of each device": lambda step: lambda w, x: lax.cond(x[0] > 0.2, step, wave, w, x),
    "until": lambda step: functools.partial(until, step),
    "fori_loop": lambda step: lambda w, x: lax.fori_loop(0, 2, lambda i, c: c + step(w, c * x), 0.5),
    "scan": lambda step: lambda w, x: looped(step)(w, hnp.stack([x, x + 1.0])),
}


def over(f, devices, length):
    """The gradient of the mean of ``f`` over devices of a mesh as a function over it, and its arguments."""
    mesh = hx.make_mesh((devices,), ("i",))
    slope = lambda w, xs: hx.grad(lambda w: lax.pmean(f(w, xs), "i"))(w)
    w, xs = hnp.arange(3.0) / 2, hnp.arange(3.0 * devices * length).reshape(length, 3 * devices) / 10
    return hx.shard_map(slope, mesh=mesh, in_specs=(P(), P(None, "i")), out_specs=P()), (w, xs)


def messages(f, devices, length):
    g, args = over(f, devices, length)
    return hx.costs(g)(*args).links["i"].number


def mean_gradient(f, w, xs, devices):
    return sum([hx.grad(f)(w, part) for part in hnp.split(xs, devices, axis=1)]) / devices


SHARED = {
    **{name: looped(step) for name, step in STEPS.items() if name not in ("neither", "by a carry")},
    **{f"in {name}": looped(around(wave)) for name, around in AROUND.items()},
    "slices": lambda w, xs: lax.scan(lambda c, wx: (hnp.sin(c + (wx[0] * wx[1]).sum()), None), 0.0,
                                     (hnp.stack([w] * len(xs)), xs))[0],
    "backwards by a counter": lambda w, xs: lax.fori_loop(0, len(xs), lambda i, c: c + (w * xs[i]).sum(), 0.0),
}


@pytest.mark.parametrize("f", SHARED.values(), ids=SHARED)
def test_gradients_by_what_iterations_share_are_summed_over_devices_once(f):
    g, (w, xs) = over(f, 2, 3)
    assert hnp.allclose(hx.jit(g)(w, xs), mean_gradient(f, w, xs, 2), rtol=1e-5)
    assert messages(f, 2, 3) == messages(f, 2, 5) == 2  # the mean and the gradient


STAYING = {
    "equal on all devices": (lambda w, x: lax.psum((w * x).sum(), "i") + w.sum(), 2.0, 3.0),
    "an operand of a collective": (lambda w, x: (w * x).sum() + lax.psum(w, "i").sum(), 1.0, 6.0),
}


@pytest.mark.parametrize(("step", "slope", "own"), STAYING.values(), ids=STAYING)
def test_a_gradient_of_which_a_part_is_equal_on_all_devices(step, slope, own):
    """The derivative of the mean by ``w`` is ``slope`` times the mean of the rows, added up, plus ``own``."""
    g, (w, xs) = over(looped(step), 2, 3)
    assert hnp.allclose(g(w, xs), slope * (xs[:, :3] + xs[:, 3:]).sum(0) / 2 + own)


def test_uses_of_a_value_are_summed_over_devices_together():
    assert messages(lambda w, xs: (w * xs).sum() + hnp.sin(w * xs).sum() + hx.jit(wave)(w, xs), 2, 3) == 2


def test_outside_of_loops_a_sum_stays_where_the_value_is_copied_to_devices():
    """The sum of a number, not of the weights that it is made of; but not of a number once for each place."""
    g, args = over(lambda w, xs: hx.jit(lambda w: (w**2).sum())(w) * xs.sum(), 2, 3)
    assert hx.costs(g)(*args).links["i"].bytes == 2 * 4  # of two devices: the mean and the number
    g, args = over(lambda w, xs: (hnp.broadcast_to(w, xs.shape) * xs).sum(), 2, 8)
    assert hx.costs(g)(*args).links["i"].bytes == (1 + 3) * 4


@given(
    st.sampled_from(sorted(STEPS)), st.lists(st.sampled_from(sorted(AROUND)), max_size=3), st.booleans(),
    st.sampled_from([2, 4]),
)
@settings(max_examples=12)
def test_when_they_are_summed_changes_no_gradient(step, around, iterated, devices):
    f = STEPS[step]
    for name in around:
        f = AROUND[name](f)
    f = looped(f) if iterated else (lambda one: lambda w, xs: one(w, xs[0]))(f)
    g, (w, xs) = over(f, devices, 2)
    late, number = hx.jit(g)(w, xs), messages(f, devices, 2)
    with pytest.MonkeyPatch.context() as patch:  # every body sums what it gives
        for name in ("transpose_body", "transpose_iteration"):
            patch.setattr(transpose, name, transpose.transpose_program)
        early, _ = over(f, devices, 2)
        assert hnp.allclose(late, hx.jit(early)(w, xs), rtol=1e-5, atol=1e-6)
        assert number <= messages(f, devices, 2)


@pytest.mark.each_choice
@pytest.mark.parametrize("around", ["jit", "checkpoint", "branches", "until", "scan"])
@pytest.mark.parametrize("step", ["by a mean", "by a carry"])
def test_in_what_each_device_chooses_itself_nothing_is_summed_over_devices(step, around):
    once = AROUND["branches of each device"](AROUND[around](STEPS[step]))
    f = lambda w, xs: once(w, xs[0]) + lax.while_loop(  # by values that differ too
        lambda s: s[0] < xs[0, 0] * 4, lambda s: (s[0] + 1, s[1] + AROUND[around](STEPS[step])(w, xs[0])),
        (0, 0.0), max_steps=3,
    )[1]
    g, (w, xs) = over(f, 2, 2)
    assert hnp.allclose(hx.jit(g)(w, xs), mean_gradient(f, w, xs, 2), rtol=1e-5)
