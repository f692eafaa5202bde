"""Handlers of sites: densities by hand, values that come back, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from probabilistic import MODELS, XS, chain, forked, plated, straight, values_of
from scipy import stats

import handlax as hx
from handlax import errors, lax, random
from handlax import numpy as hnp
from handlax import probability as hp

KEY = random.key(4)
KEYS = [random.key(i) for i in (0, 1, 3)]


def coin():
    return hp.sample("coin", hp.Bernoulli(0.3))


def leaves(tree):
    return [np.asarray(x) for x in hx.tree.leaves(tree)]


def same(a, b):
    for x, y in zip(leaves(a), leaves(b), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_the_log_density_is_the_sum_written_by_hand(name):
    model, density = MODELS[name]
    for key in KEYS:
        values = values_of(hp.seed(hp.trace(model), key)()[0])
        expected = density({k: np.asarray(v, np.float64) for k, v in values.items()})
        found, _ = hp.log_density(model, values)()
        assert float(found) == pytest.approx(float(expected), rel=1e-4, abs=1e-4)
        staged = hx.jit(lambda v: hp.log_density(hx.jit(model), v)()[0])(values)
        assert float(staged) == pytest.approx(float(expected), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_the_gradient_of_the_log_density_is_that_of_differences(name):
    model, density = MODELS[name]
    values = values_of(hp.seed(hp.trace(model), KEYS[1])()[0])
    slopes = hx.grad(lambda v: hp.log_density(model, v)()[0])(values)
    base = {k: np.asarray(v, np.float64) for k, v in values.items()}
    for label, slope in slopes.items():
        found = np.zeros(base[label].shape)
        for at in np.ndindex(base[label].shape):
            near = []
            for step in (1e-4, -1e-4):
                moved = {k: v.copy() for k, v in base.items()}
                moved[label][at] += step
                near.append(density(moved))
            found[at] = (near[0] - near[1]) / 2e-4
        np.testing.assert_allclose(np.asarray(slope), found, rtol=5e-3, atol=5e-3)


@pytest.mark.parametrize("name", MODELS)
def test_a_replayed_trace_has_the_same_values(name):
    model, _ = MODELS[name]
    sites, y = hp.seed(hp.trace(model), KEY)()
    again, z = hp.seed(hp.trace(hp.replay(model, sites)), random.key(99))()
    assert sites.keys() == again.keys()
    same((values_of(sites), y), (values_of(again), z))
    same([s.log_prob for s in sites.values() if isinstance(s, hp.Site)],
         [s.log_prob for s in again.values() if isinstance(s, hp.Site)])  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_jit_and_vmap_change_no_draw(name):
    model, _ = MODELS[name]
    expected = hp.seed(hp.trace(model), KEY)()
    same(hx.jit(hp.seed(hp.trace(model), KEY))(), expected)
    same(hp.seed(hx.jit(hp.trace(model)), KEY)(), expected)
    same(hp.seed(hp.trace(hx.jit(model)), KEY)(), expected)
    many = hx.vmap(lambda key: hp.seed(hp.trace(model), key)())(random.split(KEY, 2))
    each = [hp.seed(hp.trace(model), key)() for key in random.split(KEY, 2)]
    same(many, hx.tree.map(lambda *xs: hnp.stack(xs), *each))


def test_all_draws_of_a_site_are_distinct():
    def model():
        loop = lax.scan(lambda c, _: (c, hp.sample("x", hp.Normal())), 0.0, None, 5)[1]
        rows = hp.plate("rows", 4)(lambda: hp.sample("y", hp.Normal()))()
        both = hp.plate("r", 2)(lambda: lax.scan(lambda c, _: (c, hp.sample("z", hp.Normal())), 0.0, None, 3)[1])()
        return hnp.concatenate([loop, rows, both.ravel()])

    drawn = np.asarray(hp.seed(model, KEY)())
    assert drawn.shape == (15,) and len(set(drawn.tolist())) == 15


def test_a_new_site_changes_no_other():
    def more():
        hp.sample("first", hp.Normal())
        return straight()

    before, after = (hp.seed(hp.trace(f), KEY)()[0] for f in (straight, more))
    same(values_of(before), {k: v for k, v in values_of(after).items() if k != "first"})


def test_a_new_site_in_a_plate_changes_no_other():
    def rows(more):
        def row(x):
            if more:
                hp.sample("first", hp.Normal())
            return hp.sample("x", hp.Normal())

        return hp.plate("rows")(row)(XS)

    drawn = np.asarray(hp.seed(rows, KEY)(False))
    assert np.array_equal(hp.seed(rows, KEY)(True), drawn) and len(set(drawn.tolist())) == 3
    same(hp.seed(lambda: hx.jit(lambda: rows(False))(), KEY)(), drawn)


def test_a_plate_stacks_in_front_of_the_loops_inside():
    def chains():
        return hp.plate("chains", 2)(lambda: lax.scan(lambda c, _: (c, hp.sample("z", hp.Normal())), 0.0, None, 3)[1])()

    sites, zs = hp.seed(hp.trace(chains), KEY)()
    assert sites["z"].value.shape == (2, 3) and np.array_equal(sites["z"].value, zs)


def test_a_plate_is_vmap():
    f = lambda x, y: {"sum": x * y, "y": y}
    xs, y = hnp.arange(6.0).reshape(2, 3), hnp.array([2.0, 3.0])
    same(hp.plate("p", in_axes=(1, None))(f)(xs, y), hx.vmap(f, in_axes=(1, None))(xs, y))
    same(hx.grad(lambda xs: hp.plate("p")(lambda x: (x * x).sum())(xs).sum())(xs), 2 * xs)


def test_plates_in_plates_and_lanes_around_them():
    def model(scale):
        inner = hp.plate("inner", 3)(lambda: hp.sample("x", hp.Normal(0.0, scale)))
        return hp.plate("outer", 2)(lambda: inner())()

    sites, y = hp.seed(hp.trace(model), KEY)(1.0)
    assert sites["x"].value.shape == (2, 3) and len(set(np.asarray(y).ravel().tolist())) == 6
    many = hp.seed(hx.vmap(model), KEY)(hnp.array([1.0, 10.0]))
    assert many.shape == (2, 2, 3) and len(set(np.asarray(many).ravel().tolist())) == 12


def test_sites_of_loops_and_plates_are_stacked_and_those_of_branches_tell_whether_they_were_taken():
    sites, _ = hp.seed(hp.trace(chain), KEY)()
    assert sites["z"].value.shape == (3,) and sites["y"].observed and not sites["z"].observed
    sites, _ = hp.seed(hp.trace(plated), KEY)()
    assert sites["slope"].value.shape == (3,)
    for key in KEYS:
        sites, _ = hp.seed(hp.trace(forked), key)()
        assert isinstance(sites["b"], hp.Site)  # both branches come to it
        assert bool(sites["up"].taken) == (float(sites["a"].value) > 0)


def test_a_conditioned_site_is_observed_and_a_substituted_one_is_not():
    sites, y = hp.seed(hp.trace(hp.condition(straight, {"a": 1.5})), KEY)()
    assert float(sites["a"].value) == 1.5 and sites["a"].observed
    assert float(y) == pytest.approx(1.5 + float(sites["b"].value.sum()))
    sites, _ = hp.seed(hp.trace(hp.substitute(straight, {"a": 1.5})), KEY)()
    assert float(sites["a"].value) == 1.5 and not sites["a"].observed


def test_conditioning_a_loop_gives_each_run_its_value():
    zs = hnp.array([1.0, 2.0, 3.0])
    _, y = hp.seed(hp.trace(hp.condition(chain, {"z": zs})), KEY)()
    assert np.array_equal(y, zs)


def test_intervening_hides_the_site():
    sites, _ = hp.seed(hp.trace(hp.do(straight, {"a": 2.0})), KEY)()
    assert set(sites) == {"b", "y"}
    density, _ = hp.log_density(hp.do(straight, {"a": 2.0}), {"b": hnp.array([1.0, 2.0])})()
    expected = stats.norm.logpdf([1, 2], 2, 2).sum() + stats.norm.logpdf(0.3, 3, 0.5)
    assert float(density) == pytest.approx(expected, rel=1e-5)


def test_a_hidden_site_is_drawn_and_does_not_count():
    def model():
        return hp.sample("a", hp.Normal()), hp.sample("b", hp.Normal())

    (sites, (a, b)) = hp.seed(hp.trace(hp.block(model, ["a"])), KEY)()
    assert set(sites) == {"b"} and float(a) != float(b) == float(sites["b"].value)
    assert set(hp.seed(hp.trace(hp.block(model)), KEY)()[0]) == set()
    assert set(hp.seed(hp.trace(hp.block(model, lambda name: name != "a")), KEY)()[0]) == {"a"}


def test_masks_and_scales_change_what_counts():
    whole = lambda f: float(hp.log_density(f)()[0])
    data = lambda: hp.observe("y", hp.Normal(), XS)
    each = stats.norm.logpdf(np.asarray(XS))
    assert whole(hp.mask(data, hnp.array([True, False, True]))) == pytest.approx(each[0] + each[2])
    assert whole(hp.scale(data, 10.0)) == pytest.approx(10 * each.sum(), rel=1e-5)
    both = hp.scale(hp.mask(hp.scale(data, 2.0), XS > 0), 3.0)
    assert whole(both) == pytest.approx(6 * (each[0] + each[2]), rel=1e-5)
    impossible = lambda: hp.observe("y", hp.Uniform(), 2.0)
    assert whole(hp.mask(impossible, False)) == 0.0


def test_masks_and_scales_reach_into_loops():
    loop = lambda: lax.scan(lambda c, x: (c, hp.observe("y", hp.Normal(), x)), 0.0, XS)[1]
    expected = 2 * stats.norm.logpdf(np.asarray(XS)).sum()
    assert float(hp.log_density(hp.scale(loop, 2.0))()[0]) == pytest.approx(expected, rel=1e-5)


def test_a_factor_counts_as_it_is():
    assert float(hp.log_density(lambda: hp.factor("f", hnp.array([1.0, 2.0])))()[0]) == 3.0
    assert float(hx.grad(lambda w: hp.log_density(lambda: hp.factor("f", w * w))()[0])(3.0)) == 6.0


def test_draws_are_reparametrised_inside_a_gradient():
    def expected(loc, log_scale):
        model = lambda: hp.sample("x", hp.Normal(loc, hnp.exp(log_scale)), shape=(1000,))
        return (hp.seed(model, KEY)() ** 2).mean()

    slopes = hx.grad(expected, (0, 1))(1.0, 0.0)
    assert float(slopes[0]) == pytest.approx(2.0, abs=0.2) and float(slopes[1]) == pytest.approx(2.0, abs=0.4)


def test_a_gradient_inside_of_seed_is_refused_with_the_way_out():
    with pytest.raises(errors.NotDifferentiable, match=r"'x' have a tangent[\s\S]*outside"):
        hp.seed(hx.grad(lambda m: hp.sample("x", hp.Normal(m, 1.0))), KEY)(0.0)


def test_a_batch_of_values_is_scored_at_once():
    values = {"a": hnp.arange(3.0), "b": hnp.ones((3, 2))}
    many = hx.vmap(lambda v: hp.log_density(straight, v)()[0])(values)
    each = [float(hp.log_density(straight, {"a": float(i), "b": hnp.ones(2)})()[0]) for i in range(3)]
    np.testing.assert_allclose(np.asarray(many), each, rtol=1e-5)


def test_a_site_of_a_while_loop_is_drawn_but_not_traced():
    def model():
        return lax.while_loop(lambda c: c < 3.0, lambda c: c + hp.sample("x", hp.Gamma(1.0)), 0.0)

    assert float(hp.seed(model, KEY)()) >= 3.0
    with pytest.raises(errors.CannotCross, match="'x'"):
        hp.seed(hp.trace(model), KEY)()
    with pytest.raises(errors.CannotCross, match="'x'"):
        hp.seed(hp.condition(model, {"x": 1.0}), KEY)()


def test_a_value_for_a_site_outside_passes_a_while_loop():
    def model():
        start = hp.sample("start", hp.Normal())
        return lax.while_loop(lambda c: c < 3.0, lambda c: c + hp.sample("x", hp.Gamma(1.0)), start)

    assert float(hp.seed(hp.condition(model, {"start": 7.0}), KEY)()) == 7.0


def test_a_value_for_a_branch_that_was_not_taken_is_drawn_anew():
    def model():
        a = hp.sample("a", hp.Normal())
        return lax.cond(a > 0, lambda: hp.sample("up", hp.Normal(5.0, 1.0)), lambda: 0.0)

    untaken = next(s for s in (hp.seed(hp.trace(model), k)()[0] for k in KEYS) if float(s["a"].value) <= 0)
    _, y = hp.seed(hp.replay(hp.trace(hp.condition(model, {"a": 1.0})), {"up": untaken["up"]}), KEY)()
    assert float(y) > 1.0


MISTAKES = {
    "no_handler": (lambda: coin(), errors.UnhandledEffect, "'coin'.*seed"),
    "no_handler_in_jit": (lambda: hx.jit(coin)(), errors.UnhandledEffect, "'coin'"),
    "no_value": (lambda: hp.log_density(coin)(), errors.UnhandledEffect, "value"),
    "order": (lambda: hp.trace(hp.seed(coin, KEY)), errors.BadArgument, "seed\\(trace"),
    "order_of_values": (lambda: hp.do(hp.seed(coin, KEY), {"coin": 1}), errors.BadArgument, "seed\\(do"),
    "typo": (lambda: hp.log_density(coin, {"coin": 1, "coins": 1})(), errors.BadArgument, "'coins'"),
    "twice": (lambda: hp.log_density(lambda: (coin(), coin()), {"coin": 1})(), errors.BadArgument, "two sites"),
    "observed_already": (lambda: hp.seed(hp.condition(straight, {"y": 1.0}), KEY)(), errors.BadArgument, "already"),
    "shape": (lambda: hp.seed(hp.condition(coin, {"coin": XS > 0}), KEY)(), errors.ShapeMismatch, "shape"),
    "rows": (lambda: hp.seed(hp.condition(chain, {"z": hnp.zeros(2)}), KEY)(), errors.ShapeMismatch, "one row"),
    "integers": (lambda: hp.seed(hp.condition(coin, {"coin": 0.5}), KEY)(), errors.BadArgument, "integers"),
    "no_distribution": (lambda: hp.sample("x", 0.0), errors.BadArgument, "distribution"),
    "no_name": (lambda: hp.sample(hp.Normal(), "x"), errors.BadArgument, "name"),
    "hide": (lambda: hp.block(coin, "coin"), errors.BadArgument, "list"),
    "mask": (lambda: hp.mask(coin, 1.0), errors.BadArgument, "True or False"),
    "values": (lambda: hp.condition(coin, [1]), errors.BadArgument, "names"),
    "plate_size": (lambda: hp.plate("p")(coin)(), errors.BadArgument, "how many"),
    "plate_sizes": (lambda: hp.plate("p", 2)(lambda x: x)(XS), errors.ShapeMismatch, "one size"),
    "branches": (lambda: hp.seed(hp.trace(lambda: lax.cond(
        hp.sample("a", hp.Normal()) > 0, lambda: hp.sample("b", hp.Normal(0.0, 1.0)),
        lambda: hp.sample("b", hp.Bernoulli(0.5)) + 0.0)), KEY)(), errors.StateTypeError, "different names"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_with_its_remedy(name):
    wrong, error, words = MISTAKES[name]
    with pytest.raises(error, match=words):
        wrong()
