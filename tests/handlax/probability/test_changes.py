"""Handlers that say how sites are drawn and how they count."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.models_with_densities import MODELS, XS, straight, values_of
from helpers.same_trees import same
from scipy import stats

import handlax as hx
from handlax import errors, lax, random
from handlax import numpy as hnp
from handlax import probability as hp

KEY = random.key(4)


@pytest.mark.parametrize("name", MODELS)
def test_jit_and_vmap_change_no_draw(name):
    model, _ = MODELS[name]
    expected = hp.seed(hp.trace(model), KEY)()
    nests = [hp.trace(model), hx.jit(hp.trace(model)), hp.trace(hx.jit(model))]
    for found in hx.jit(lambda: [hp.seed(nest, KEY)() for nest in nests])():
        same(found, expected)
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


def test_draws_are_reparametrised_inside_a_gradient():
    def expected(loc, log_scale):
        model = lambda: hp.sample("x", hp.Normal(loc, hnp.exp(log_scale)), shape=(1000,))
        return (hp.seed(model, KEY)() ** 2).mean()

    slopes = hx.grad(expected, (0, 1))(1.0, 0.0)
    assert float(slopes[0]) == pytest.approx(2.0, abs=0.2) and float(slopes[1]) == pytest.approx(2.0, abs=0.4)


def test_a_gradient_inside_of_seed_is_refused_with_the_way_out():
    with pytest.raises(errors.NotDifferentiable, match=r"'x' have a tangent[\s\S]*outside"):
        hp.seed(hx.grad(lambda m: hp.sample("x", hp.Normal(m, 1.0))), KEY)(0.0)


def test_a_hidden_site_draws_by_its_name_wherever_it_is_called_from():
    hidden = hp.block(lambda: hp.sample("x", hp.Normal()))
    drawn = float(hp.seed(hidden, random.key(0))())
    for called in (lambda: hidden(), lambda: hx.jit(hidden)(), hx.jit(lambda: hx.jit(hidden)())):
        assert float(hp.seed(called, random.key(0))()) == pytest.approx(drawn, rel=1e-5)
