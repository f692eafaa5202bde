"""Rules of the user's inside of lanes whose lengths are values: derivatives equal those of the loop over the lanes."""

import itertools

import numpy as np
import pytest
from helpers.chosen_cases import rest_in_sweep

import handlax as hx
from handlax import lax
from handlax import numpy as hnp

R = hx.ragged_axis
LENGTHS = (5, 3)
LONGEST = 6
BODIES = {
    "sum": lambda v: v.sum() ** 2,
    "mean": lambda v: hnp.mean(v) ** 2,
    "softmax": lambda v: hx.nn.softmax(v),
    "logsumexp": lambda v: hx.nn.logsumexp(v),
    "cumsum": lambda v: hnp.cumsum(v) ** 2,
    "max": lambda v: v - v.max(),
}


def with_jvp(body):
    f = hx.custom_jvp(body)
    f.defjvp(lambda primals, tangents: hx.jvp(body, primals, tangents))
    return f


def with_vjp(body):
    f = hx.custom_vjp(body)
    f.defvjp(lambda v: (body(v), v), lambda v, ct: hx.vjp(body, v)[1](ct))
    return f


def with_vmap(body):
    f = hx.custom_batching.custom_vmap(body)
    f.def_vmap(lambda size, mapped, v: (hx.vmap(body)(v), True))
    return f


def with_solve(body):
    """The body of what solves ``2 x = v``, a map of which the rules know only how it is inverted."""
    halved = lambda v: lax.custom_linear_solve(
        lambda x: 2 * x, 2 * v, lambda matvec, b: b / 2, lambda vecmat, ct: ct / 2
    )
    return lambda v: body(halved(v))


RULES = {"jvp": with_jvp, "vjp": with_vjp, "vmap": with_vmap, "solve": with_solve}


def weighted(d, lengths, f):
    """The sum over the lanes of the squares of what ``f`` gives, times the number of the lane."""
    ragged = hx.Ragged(d, lengths, longest=LONGEST)
    return hx.vmap(lambda v, s: (f(v) ** 2).sum() * s, (R, 0))(ragged, hnp.array([1.0, 2.0])).sum()


def looped(d, body):
    return sum([(body(v) ** 2).sum() * (i + 1.0) for i, v in enumerate([d[:5], d[5:8]])])


def twice(d, lengths, f):
    return lax.scan(lambda c, _: (c + weighted(d, lengths, f) / 2, None), 0.0, None, length=2)[0]


def along(d, lengths, f):
    """The derivative along all directions at once, by one jvp of the compiled function for each."""
    g = hx.jit(lambda d, lengths: weighted(d, lengths, f))
    zero = np.zeros(lengths.shape, hx.dtypes.float0)
    return np.array([hx.jvp(g, (d, lengths), (e, zero))[1] for e in hnp.eye(len(d))])


MODES = {
    "grad(jit)": lambda f: lambda d, n: hx.grad(hx.jit(lambda d, n: weighted(d, n, f)))(d, n),
    "jit(grad)": lambda f: hx.jit(hx.grad(lambda d, n: weighted(d, n, f))),
    "jit(grad(checkpoint))": lambda f: hx.jit(hx.grad(hx.checkpoint(lambda d, n: weighted(d, n, f)))),
    "grad(scan)": lambda f: hx.grad(lambda d, n: twice(d, n, f)),
    "jvp(jit)": lambda f: lambda d, n: along(d, n, f),
    "jit in the lane": lambda f: hx.jit(hx.grad(lambda d, n: weighted(d, n, hx.jit(f)))),
    "checkpoint in the lane": lambda f: hx.jit(hx.grad(lambda d, n: weighted(d, n, hx.checkpoint(f)))),
}
ALL = itertools.product(RULES, BODIES, MODES)
CASES = [case for case in ALL if (case[0], case[2]) != ("vjp", "jvp(jit)")]  # which custom_vjp refuses
# of each rule, body and mode some are always run, the others in the sweep
OFTEN = {("jvp", body, "grad(jit)") for body in BODIES} | {(rule, "softmax", "jit(grad)") for rule in RULES}
OFTEN |= {("jvp", "sum", mode) for mode in MODES} | {("vjp", "cumsum", mode) for mode in MODES if mode != "jvp(jit)"}


@pytest.mark.parametrize("case", rest_in_sweep(CASES, OFTEN), ids="-".join)
def test_derivatives_equal_those_of_the_loop(case):
    rule, body, mode = case
    d = hnp.sin(hnp.arange(1.0, 11.0)).at[8:].set(np.nan)  # spare rows
    f = BODIES[body]
    found = MODES[mode](RULES[rule](f))(d, hnp.array(LENGTHS))
    wanted = hx.grad(lambda d: looped(d, f))(d)
    np.testing.assert_allclose(found[:8], wanted[:8], rtol=1e-4, atol=1e-5)


@pytest.mark.each_choice
@pytest.mark.parametrize("rule", ["jvp", "vjp"])
@pytest.mark.parametrize("body", ["softmax", "max"])
def test_second_derivatives_and_rooms_for_each_lane(rule, body):
    d, at = hnp.sin(hnp.arange(1.0, 9.0)), hnp.cos(hnp.arange(8.0))
    slope = lambda f: lambda *args: (hx.grad(f)(*args) * at).sum()
    f = RULES[rule](BODIES[body])
    wanted = hx.grad(slope(lambda d: looped(d, BODIES[body])))(d)
    found = hx.grad(hx.jit(slope(lambda d, n: weighted(d, n, f))))(d, hnp.array(LENGTHS))
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)
    roomy = lambda d, n: (hx.vmap(f, R, out_axes=R)(hx.Ragged(d, n, longest=(6, 4))).data ** 2).sum()
    lanes = lambda d: sum([(BODIES[body](v) ** 2).sum() for v in (d[:5], d[5:])])
    np.testing.assert_allclose(hx.grad(hx.jit(roomy))(d, hnp.array(LENGTHS)), hx.grad(lanes)(d), rtol=1e-4, atol=1e-5)


def test_a_compiled_body_is_called_in_a_rule_and_around_it():
    prefixes = hx.jit(lambda v: hnp.cumsum(v))
    f = hx.custom_jvp(lambda v: prefixes(v))
    f.defjvp(lambda primals, tangents: (prefixes(*primals), prefixes(*tangents)))
    lane = lambda v, f, g: (f(v) * g(v) * f(g(v))).sum()
    d = hnp.sin(hnp.arange(1.0, 9.0))
    loss = lambda d, n: hx.vmap(lambda v: lane(v, f, prefixes), R)(hx.Ragged(d, n, longest=LONGEST)).sum()
    wanted = hx.grad(lambda d: sum([lane(v, hnp.cumsum, hnp.cumsum) for v in (d[:5], d[5:])]))(d)
    np.testing.assert_allclose(hx.jit(hx.grad(loss))(d, hnp.array(LENGTHS)), wanted, rtol=1e-4, atol=1e-5)


def test_a_rule_asks_for_numbers_that_are_values():
    class Places:
        def __init__(self, numbers):
            self.numbers = numbers

        def __index__(self):
            return self.numbers.shape[0]

    class Rows:
        pass

    class RowsAxis:
        pass

    def loss(d, numbers, lengths):
        body = lambda v: hnp.cumsum(v) * lax.axis_index("i")
        f = hx.custom_jvp(body)
        f.defjvp(lambda p, t: (body(*p), hnp.cumsum(*t) * lax.axis_index("i")))
        lanes = hx.vmap(lambda v: f(v).sum(), R, axis_size=Places(numbers), axis_name="i")
        return lanes(hx.Ragged(d, lengths)).sum()

    to_elt = lambda cont, get_idx, x, spec: x
    hx.register_vmappable(Rows, RowsAxis, Places, to_elt, lambda cont, n, y, spec: y, lambda p: p.numbers)
    try:
        slopes = hx.jit(hx.grad(hx.checkpoint(loss)))(hnp.ones(8), hnp.array([3, 7]), hnp.array(LENGTHS))
    finally:
        hx.unregister_vmappable(Rows)
    assert np.array_equal(slopes, [15, 12, 9, 6, 3, 21, 14, 7])
