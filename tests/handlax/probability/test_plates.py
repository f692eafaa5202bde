"""Plates: vmap, with sites of their own for each row."""

from __future__ import annotations

import numpy as np
from helpers.models_with_densities import XS
from helpers.same_trees import same

import handlax as hx
from handlax import lax, random
from handlax import numpy as hnp
from handlax import probability as hp

KEY = random.key(4)


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
