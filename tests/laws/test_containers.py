"""The law of vmap over containers: it equals the loop over their elements, values and gradients."""

import numpy as np
import pytest
from helpers.chosen_cases import rest_in_sweep
from helpers.containers import CONTAINERS

import handlax as hx
from handlax import numpy as hnp

floats = lambda tree: [x for x in hx.tree.leaves(tree) if hnp.asarray(x).dtype == hnp.float32]


def changed(x):
    """Another element of the same structure: its arrays of floats, less their sum."""
    return hx.tree.map(lambda v: v * v - hnp.sin(v).sum() if v.dtype == hnp.float32 else v, x)


def total(x):
    """One number of an element."""
    return sum([hnp.sum(hnp.cos(v) * v) for v in floats(x)], hnp.float32(0))


WAYS = {
    "eager": lambda f: f,
    "calls inside": lambda f: hx.checkpoint(hx.jit(f)),
    "jit outside": lambda f: f,
}


def mapped_function(case, f, way, out_axes):
    g = hx.vmap(WAYS[way](f), in_axes=case.spec, out_axes=out_axes)
    return hx.jit(g) if way == "jit outside" else g


def check(found, wanted):
    for a, b in zip(hx.tree.leaves(found), hx.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5, atol=1e-5)


cases = pytest.mark.parametrize("case", CONTAINERS.values(), ids=list(CONTAINERS))
ways = pytest.mark.parametrize("way", WAYS)
eager_is_quick = pytest.mark.parametrize("way", rest_in_sweep(WAYS, ["eager"]))


@cases
@ways
def test_results_are_those_of_the_elements(case, way):
    x = case.container
    numbers = mapped_function(case, total, way, 0)(x)
    check(list(numbers), [total(element) for element in case.elements(x)])
    again = mapped_function(case, changed, way, case.spec)(x)
    assert type(again) is type(x)
    check(case.elements(again), [changed(element) for element in case.elements(x)])


@cases
@eager_is_quick
def test_gradients_are_those_of_the_loop(case, way):
    weigh = lambda numbers: sum([(i + 1) * y for i, y in enumerate(numbers)])
    loss = lambda x: weigh(mapped_function(case, lambda e: total(changed(e)), way, 0)(x))
    loop = lambda x: weigh([total(changed(element)) for element in case.elements(x)])
    found, wanted = [hx.grad(f, allow_int=True)(case.container) for f in (loss, loop)]
    check(floats(found), floats(wanted))


@cases
def test_two_maps_give_all_pairs(case):
    pairs = hx.vmap(hx.vmap(lambda x, y: total(x) * total(changed(y)), (None, case.spec)), (case.spec, None))
    elements = case.elements(case.container)
    wanted = [[total(x) * total(changed(y)) for y in elements] for x in elements]
    check(pairs(case.container, case.container), hnp.array(wanted))


@cases
def test_elements_in_a_loop_over_lanes(case):
    steps = lambda x: hx.lax.scan(lambda c, _: (hx.lax.cond(c > 0, hnp.sin, hnp.cos, c), c), total(x), length=3)[1]
    x = case.container
    check(list(hx.vmap(steps, case.spec)(x)), [steps(element) for element in case.elements(x)])
