"""Random draws in lanes of different lengths: each lane's equal exactly those that it has alone."""

import numpy as np
import pytest
from helpers.ragged_lanes import R, law_of_lanes

import handlax as hx
from handlax import lax, random
from handlax import numpy as hnp

ROWS = hnp.sin(hnp.arange(24.0)).reshape(12, 2)
LENGTHS = (3, 1, 6)


EXACT = {
    **{f"{width} bits": lambda k, x, w=width: random.bits(k, x.shape, f"uint{w}") for width in (8, 16, 32, 64)},
    "an axis before": lambda k, x: random.bits(k, (2, x.shape[0])).T,
    "two ragged axes": lambda k, x: lax.reduce_xor(random.bits(k, (x.shape[0], x.shape[0])), (1,)),
    "below the length": lambda k, x: random.randint(k, (4,), 0, x.shape[0]),
    "bernoulli": lambda k, x: random.bernoulli(k, 0.3, (x.shape[0],)),
    "keys": lambda k, x: random.key_data(random.split(k, x.shape[0])),
    "keys of places": lambda k, x: random.key_data(hx.vmap(random.fold_in, (None, 0))(k, hnp.arange(x.shape[0]))),
    "permutation of rows": lambda k, x: random.permutation(k, x),
    "permutation of the length": lambda k, x: random.permutation(k, x.shape[0]),
    "permutation of each column": lambda k, x: random.permutation(k, x, independent=True),
    "choice": lambda k, x: random.choice(k, x, (4,)),
    "choice without replacement": lambda k, x: random.choice(k, x, (1,), replace=False),
    "choice of numbers": lambda k, x: random.choice(k, x.shape[0], (x.shape[0],)),
    "choice by weights": lambda k, x: random.choice(k, x.shape[0], (5,), p=hnp.exp(x[:, 0]) / hnp.exp(x[:, 0]).sum()),
    "categorical": lambda k, x: random.categorical(k, x[:, 0]),
    "categorical of rows": lambda k, x: random.categorical(k, x),
}


def other_generator(name, width):
    def draw(key, x):
        own = random.split(random.key(random.key_data(key)[0], impl=name), x.shape[0])[0]
        return random.bits(own, (x.shape[0], 3), f"uint{width}")

    return draw


for name, width in (("threefry4x32", 64), ("philox2x32", 32), ("philox4x32", 32), ("rbg", 32), ("unsafe_rbg", 64)):
    EXACT[f"{name}, {width} bits"] = other_generator(name, width)
KEYS = random.split(random.key(5), len(LENGTHS))


@pytest.fixture(scope="module")
def alone():
    return [
        {name: draw(key, x) for name, draw in EXACT.items()} for key, x in zip(KEYS, hx.Ragged(ROWS, LENGTHS).to_list())
    ]


@pytest.fixture(scope="module", params=["known", "values"])
def mapped(request, alone):
    """All draws of all lanes in one program."""
    first, second, _ = alone
    ragged = {name: y.shape[:1] == (3,) and second[name].shape[:1] == (1,) for name, y in first.items()}
    axes = {name: R if yes else 0 for name, yes in ragged.items()}
    f = hx.vmap(lambda key, x: {name: draw(key, x) for name, draw in EXACT.items()}, (0, R), axes)
    if request.param == "known":
        return f(KEYS, hx.Ragged(ROWS, LENGTHS))
    return hx.jit(f)(KEYS, hx.Ragged(ROWS, hnp.array(LENGTHS), 7))


@pytest.mark.parametrize("name", EXACT)
def test_draws_equal_those_of_the_lane_alone(name, mapped, alone):
    found = mapped[name]
    for y, lane in zip(found.to_list() if isinstance(found, hx.Ragged) else found, alone, strict=True):
        np.testing.assert_array_equal(np.asarray(y), np.asarray(lane[name]))


def test_a_long_lane_is_shuffled_as_often_as_alone():
    lengths = (5, 1700, 1)
    keys = random.split(random.key(1), 3)
    x = hx.Ragged(hnp.zeros(sum(lengths)), hnp.array(lengths), 1700)
    y = hx.jit(hx.vmap(lambda k, x: random.permutation(k, x.shape[0]), (0, R), R))(keys, x)
    for lane, key, n in zip(y.to_list(), keys, lengths):
        np.testing.assert_array_equal(lane, random.permutation(key, n))


def key_of(number):
    return random.key((number * 1000).astype("int32"))


# a function of a lane, its arguments (``helpers.ragged_lanes``), and the axes of its results
CASES = {
    "dropout": (lambda x, s: hnp.where(random.bernoulli(key_of(s), 0.5, x.shape), x, 0), "rows number", R),
    "noise": (lambda x, s: x * random.normal(key_of(s), x.shape), "rows number", R),
    "permuted": (lambda x, s: hnp.cumsum(random.permutation(key_of(s), x), 0), "rows number", R),
    "permuted numbers": (lambda x, s: random.permutation(key_of(s), x[:, 0]) * x[:, 1], "rows number", R),
    "gamma": (lambda x, s: random.gamma(key_of(s), 1 + x[:, 0] ** 2), "rows number", R),
    "exponential": (lambda x, s: random.exponential(key_of(s), (3, x.shape[0])) @ x, "rows number", 0),
}
test_eager_lanes, test_compiled_lanes = law_of_lanes(CASES)
