"""Keys and draws: known answers, distributions, and what transformations make of them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import handlax as hx
from handlax import errors, random
from handlax.effects.operations import random_bits

KEY = random.key(0)
MANY = 20_000

# Random123, kat_vectors: threefry2x32, 20 rounds: counter, key, answer
VECTORS = [
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]


def words(keys):
    return np.asarray(random.key_data(keys))


def u32(x):
    return np.asarray(x, np.uint32)


def lanes(f, keys):
    """``f`` of every key, one after another."""
    return np.stack([np.asarray(f(random.wrap_key_data(row))) for row in words(keys)])


@pytest.mark.parametrize(("counter", "key", "answer"), VECTORS)
def test_the_block_function_gives_the_published_answers(counter, key, answer):
    operands = [u32(word) for word in (*key, *counter)]
    assert tuple(int(word) for word in random_bits.threefry2x32(*operands)) == answer
    assert tuple(int(word) for word in hx.jit(random_bits.threefry2x32)(*operands)) == answer


@pytest.mark.parametrize("count", [1, 2, 7, random_bits.PACKED])
def test_words_packed_in_an_integer_are_those_of_numpy(count):
    x0, x1 = random_bits.packed(0x13198A2E, 0x03707344, count)
    y0, y1 = random_bits.block(u32(0x13198A2E), u32(0x03707344), u32(0), np.arange(count, dtype=np.uint32))
    assert (random_bits.unpacked(x0, count) == y0).all() and (random_bits.unpacked(x1, count) == y1).all()


def test_a_piece_of_many_bits_is_the_same_alone():
    many = np.asarray(random.bits(KEY, (3 * random_bits.PIECE + 5,)))
    few = np.asarray(random.bits(KEY, (100,)))
    assert (many[:100] == few).all()
    assert (np.asarray(hx.jit(lambda k: random.bits(k, many.shape))(KEY)) == many).all()


@pytest.mark.parametrize(("seed", "data"), [
    (0, (0, 0)), (42, (0, 42)), (-1, (0, 2**32 - 1)), (2**32 - 1, (0, 2**32 - 1)), (-(2**31), (0, 2**31)),
    (2**40 + 5, (256, 5)), (-(2**31) - 1, (2**32 - 1, 2**31 - 1)), (np.int64(7), (0, 7)), (np.uint8(200), (0, 200)),
])
def test_a_seed_fills_the_words_of_a_key(seed, data):
    assert tuple(words(random.key(seed))) == data
    assert tuple(np.asarray(random.PRNGKey(seed))) == data


def test_an_array_of_seeds_gives_a_key_each_under_vmap():
    seeds = np.arange(-1, 3, dtype=np.int32)
    assert (words(hx.vmap(random.key)(seeds)) == np.stack([words(random.key(s)) for s in seeds])).all()
    assert tuple(words(hx.jit(random.key)(np.array(2**40 + 5)))) == (256, 5)


def test_keys_are_typed_and_show_their_words():
    assert KEY.dtype == hx.dtypes.KeyDType("threefry2x32")
    assert hx.dtypes.issubdtype(KEY.dtype, hx.dtypes.prng_key)
    assert KEY.shape == () and random.key_impl(KEY) == "threefry2x32" == random.key_impl(random.PRNGKey(0))
    assert "key<fry>" in repr(KEY)


def test_wrapping_undoes_opening():
    keys = random.split(KEY, (2, 3))
    assert (words(random.wrap_key_data(random.key_data(keys))) == words(keys)).all()
    assert random.wrap_key_data(random.key_data(keys)).type is keys.type


@pytest.mark.parametrize("num", [1, 3, (2, 3), 0, 400])
def test_split_gives_the_keys_that_fold_in_gives(num):
    found = words(random.split(KEY, num)).reshape(-1, 2)
    assert all((row == words(random.fold_in(KEY, i))).all() for i, row in list(enumerate(found))[:5])
    assert words(random.split(KEY, num)).shape == (*np.empty(num).shape, 2)


def test_keys_made_of_one_key_are_distinct_and_lead_to_distinct_draws():
    one = random.key(1)
    keys = [one, *random.split(one, 50), *[random.fold_in(one, 2**20 + i) for i in range(50)]]
    assert len({tuple(words(k)) for k in keys}) == len(keys)
    assert len({float(random.normal(k)) for k in keys}) == len(keys)


def test_a_key_used_twice_gives_the_same_numbers():
    assert (np.asarray(random.normal(KEY, (5,))) == np.asarray(random.normal(KEY, (5,)))).all()
    assert (np.asarray(random.normal(random.clone(KEY), (5,))) == np.asarray(random.normal(KEY, (5,)))).all()


DRAWS = {
    "bits": lambda k: random.bits(k, (3,)),
    "bits of 64": lambda k: random.bits(k, (3,), "uint64"),
    "uniform": lambda k: random.uniform(k, (2, 2), minval=-1.0, maxval=1.0),
    "normal": lambda k: random.normal(k),
    "complex normal": lambda k: random.normal(k, (2,), "complex64"),
    "randint": lambda k: random.randint(k, (4,), 0, 10),
    "small randint": lambda k: random.randint(k, (4,), -5, 5, "int8"),
    "bernoulli": lambda k: random.bernoulli(k, 0.3, (4,)),
    "permutation": lambda k: random.permutation(k, 6),
    "shuffle": lambda k: random.permutation(k, np.arange(12.0).reshape(3, 4), axis=1),
    "choice": lambda k: random.choice(k, 5, (3,), p=np.float32([0.1, 0.2, 0.3, 0.4, 0.0])),
    "sample": lambda k: random.choice(k, 5, (3,), replace=False),
    "categorical": lambda k: random.categorical(k, np.zeros((2, 3), np.float32)),
    "split": lambda k: random.key_data(random.split(k, 3)),
    "fold_in": lambda k: random.key_data(random.fold_in(k, 7)),
}


@pytest.mark.parametrize("name", DRAWS)
def test_vmap_over_keys_draws_for_each_key(name):
    keys = random.split(random.key(9), 3)
    expected = lanes(DRAWS[name], keys)
    assert np.asarray(hx.vmap(DRAWS[name])(keys)) == pytest.approx(expected, rel=1e-6)
    assert np.asarray(hx.jit(hx.vmap(DRAWS[name]))(keys)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", DRAWS)
def test_words_do_where_a_key_does(name):
    raw = random.PRNGKey(3)
    assert (np.asarray(DRAWS[name](raw)) == np.asarray(DRAWS[name](random.key(3)))).all()
    assert (np.asarray(DRAWS[name](np.asarray(raw))) == np.asarray(DRAWS[name](raw))).all()


@pytest.mark.parametrize("name", DRAWS)
def test_jit_draws_what_is_drawn_eagerly(name):
    assert np.asarray(hx.jit(DRAWS[name])(KEY)) == pytest.approx(np.asarray(DRAWS[name](KEY)), rel=1e-5)


def test_split_keys_can_be_unpacked_in_a_traced_function():
    def f(k):
        first, second = random.split(k)
        return random.bits(first), random.bits(second)

    assert [int(x) for x in hx.jit(f)(KEY)] == [int(x) for x in f(KEY)]


def test_words_give_words():
    raw = random.PRNGKey(3)
    assert random.split(raw).dtype == np.uint32 and random.split(raw).shape == (2, 2)
    assert random.fold_in(raw, 1).shape == (2,) and random.clone(raw).shape == (2,)


# mean and variance
MOMENTS = {
    "uniform": (lambda k, n: random.uniform(k, n), 1 / 2, 1 / 12),
    "normal": (lambda k, n: random.normal(k, n), 0.0, 1.0),
    "gumbel": (lambda k, n: random.gumbel(k, n), 0.5772, np.pi**2 / 6),
    "fine gumbel": (lambda k, n: random.gumbel(k, n, mode="high"), 0.5772, np.pi**2 / 6),
    "exponential": (lambda k, n: random.exponential(k, n), 1.0, 1.0),
    "laplace": (lambda k, n: random.laplace(k, n), 0.0, 2.0),
    "logistic": (lambda k, n: random.logistic(k, n), 0.0, np.pi**2 / 3),
    "truncated": (lambda k, n: random.truncated_normal(k, -1.0, 1.0, n), 0.0, 0.2911),
    "rademacher": (lambda k, n: random.rademacher(k, n), 0.0, 1.0),
    "bernoulli": (lambda k, n: random.bernoulli(k, 0.3, n), 0.3, 0.21),
    "fine bernoulli": (lambda k, n: random.bernoulli(k, 0.3, n, mode="high"), 0.3, 0.21),
    "randint": (lambda k, n: random.randint(k, n, 0, 10), 4.5, 8.25),
    "triangular": (lambda k, n: random.triangular(k, 0.0, 1.0, 3.0, n), 4 / 3, 7 / 18),
    "rayleigh": (lambda k, n: random.rayleigh(k, 2.0, n), 2 * np.sqrt(np.pi / 2), (4 - np.pi) / 2 * 4),
    "maxwell": (lambda k, n: random.maxwell(k, n), 2 * np.sqrt(2 / np.pi), 3 - 8 / np.pi),
    "two-sided maxwell": (lambda k, n: random.double_sided_maxwell(k, 1.0, 2.0, n), 1.0, 12.0),
    "weibull": (lambda k, n: random.weibull_min(k, 2.0, 1.0, n), 2.0, 4.0),
    "pareto": (lambda k, n: random.pareto(k, 5.0, n), 5 / 4, 5 / 48),
    "geometric": (lambda k, n: random.geometric(k, 0.4, n), 2.5, 0.6 / 0.16),
    "wald": (lambda k, n: random.wald(k, 0.5, n), 0.5, 0.125),
    "lognormal": (lambda k, n: random.lognormal(k, 0.5, n), np.exp(0.125), (np.exp(0.25) - 1) * np.exp(0.25)),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_draws_have_the_mean_and_variance_of_their_distribution(name):
    draw, mean, variance = MOMENTS[name]
    x = np.asarray(draw(random.key(5), (MANY,))).astype(np.float64)
    assert x.mean() == pytest.approx(mean, abs=5 * np.sqrt(variance / MANY))
    assert x.var() == pytest.approx(variance, rel=0.15)


def test_the_median_of_cauchy_draws_is_zero_and_half_of_them_lie_within_one():
    x = np.asarray(random.cauchy(KEY, (MANY,)))
    assert abs(np.median(x)) < 0.05 and (np.abs(x) < 1).mean() == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("method", ["cholesky", "eigh", "svd"])
def test_normal_vectors_have_their_mean_and_covariance(method):
    mean, cov = np.float32([1, -2]), np.float32([[2, 0.5], [0.5, 1]])
    x = np.asarray(random.multivariate_normal(KEY, mean, cov, (MANY,), method=method))
    assert x.mean(0) == pytest.approx(mean, abs=0.05) and np.cov(x.T) == pytest.approx(cov, abs=0.1)
    assert x.dtype == np.result_type(np.asarray(mean).dtype, np.asarray(cov).dtype)
    many = random.multivariate_normal(KEY, np.zeros((3, 1, 2), np.float32), np.stack([cov] * 4), method=method)
    assert many.shape == (3, 4, 2)


@pytest.mark.parametrize("method", ["eigh", "svd"])
def test_normal_vectors_of_a_singular_covariance_lie_in_its_range(method):
    direction = np.array([1.0, 2.0, -3.0])
    x = random.multivariate_normal(KEY, np.zeros(3), np.outer(direction, direction), (5,), "float64", method)
    assert np.abs(x).min() > 0.01
    np.testing.assert_allclose(x, x[:, :1] * direction, atol=1e-6)
    if method == "eigh":
        negative = random.multivariate_normal(KEY, np.zeros(2), np.diag([1.0, -1.0]), method=method)
        assert np.isnan(negative).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_uniform_draws_lie_in_their_interval(dtype):
    x = np.asarray(random.uniform(KEY, (MANY,), dtype)).astype(np.float64)
    assert x.min() >= 0 and x.max() < 1 and x.mean() == pytest.approx(0.5, abs=0.02)
    y = np.asarray(random.uniform(KEY, (MANY,), dtype, -2.0, 6.0)).astype(np.float64)
    assert y.min() >= -2 and y.max() <= 6 and y.mean() == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_truncated_draws_lie_strictly_between_their_bounds(dtype):
    x = np.asarray(random.truncated_normal(KEY, 0.5, 1.0, (MANY,), dtype)).astype(np.float64)
    assert x.min() > 0.5 and x.max() < 1.0


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int64", "uint64"])
def test_all_numbers_of_a_dtype_are_reached_where_the_bounds_span_it(dtype):
    info = np.iinfo(dtype)
    x = np.asarray(random.randint(KEY, (MANY,), info.min, int(info.max) + 1, dtype))
    quarter = np.bincount(np.floor((x.astype(np.float64) - info.min) / 2.0**info.bits * 4).astype(int), minlength=4)
    assert x.dtype == dtype and quarter / MANY == pytest.approx(0.25, abs=0.02)


def test_an_empty_interval_of_integers_gives_its_lower_bound():
    assert np.asarray(random.randint(KEY, (3,), 5, 5)).tolist() == [5] * 3
    assert np.asarray(random.randint(KEY, (3,), 5, 2)).tolist() == [5] * 3


def test_bounds_of_integers_broadcast():
    x = np.asarray(random.randint(KEY, (50, 2), np.int32([0, 100]), np.int32([[5]]), "int32"))
    assert (x[:, 0] < 5).all() and (x[:, 1] == 100).all()


def test_permutations_are_permutations_and_all_of_them_come():
    assert sorted(np.asarray(random.permutation(KEY, 1000))) == list(range(1000))
    keys = random.split(KEY, 600)
    orders = np.asarray(hx.vmap(lambda k: random.permutation(k, 3))(keys))
    _, counts = np.unique(orders, axis=0, return_counts=True)
    assert len(counts) == 6 and counts.min() > 60


def test_slices_stay_whole_unless_they_are_shuffled_independently():
    x = np.arange(40).reshape(4, 10)
    whole = np.asarray(random.permutation(KEY, x, axis=1))
    assert (np.diff(whole, axis=0) == 10).all()
    apart = np.asarray(random.permutation(KEY, x, axis=1, independent=True))
    assert (np.sort(apart, axis=1) == x).all() and not (np.diff(apart, axis=0) == 10).all()


def test_choice_without_replacement_takes_nothing_twice():
    assert len(set(np.asarray(random.choice(KEY, 30, (30,), replace=False)))) == 30
    weights = np.ones(30, np.float32) / 30
    assert len(set(np.asarray(random.choice(KEY, 30, (20,), replace=False, p=weights)))) == 20


def test_choices_and_categories_come_with_their_probabilities():
    p = np.float32([0.1, 0.2, 0.3, 0.4, 0.0])
    chosen = np.bincount(np.asarray(random.choice(KEY, 5, (MANY,), p=p)), minlength=5) / MANY
    assert chosen == pytest.approx(p, abs=0.02)
    drawn = np.asarray(random.categorical(KEY, np.log(p[:4]), shape=(MANY,)))
    assert np.bincount(drawn, minlength=4) / MANY == pytest.approx(p[:4], abs=0.02)


def test_choice_takes_slices_along_its_axis():
    a = np.arange(6).reshape(2, 3)
    x = np.asarray(random.choice(KEY, a, (4, 5), axis=1))
    assert x.shape == (2, 4, 5) and (x[1] - x[0] == 3).all()


def test_categories_without_replacement_differ_in_each_row():
    x = np.asarray(random.categorical(KEY, np.zeros((4, 5), np.float32), shape=(5, 4), replace=False))
    assert x.dtype == "int32" and (np.sort(x, axis=0) == np.arange(5)[:, None]).all()


def test_the_gradient_of_a_scaled_draw_is_the_draw():
    draw = float(random.normal(KEY))
    assert float(hx.grad(lambda s: s * random.normal(KEY))(2.0)) == pytest.approx(draw)
    assert float(hx.grad(lambda low: random.uniform(KEY, minval=low, maxval=2.0))(0.5)) == pytest.approx(
        1 - float(random.uniform(KEY))
    )
    waited = float(random.exponential(KEY))
    assert float(hx.jit(hx.grad(lambda b: random.exponential(KEY) * b))(1.0)) == pytest.approx(waited)


def test_defaults_follow_the_configuration():
    assert random.uniform(KEY).dtype == np.float32 and random.randint(KEY, (), 0, 3).dtype == np.int32
    with hx.configure(default_float="float64", default_int="int64"):
        assert random.normal(KEY).dtype == np.float64 and random.randint(KEY, (), 0, 3).dtype == np.int64
        assert random.bits(KEY).dtype == np.uint64 and random.permutation(KEY, 3).dtype == np.int64
        for replace, p in itertools.product((True, False), (None, np.float32([0.5, 0.2, 0.3]))):
            assert random.choice(KEY, 3, (2,), replace, p).dtype == np.int64


MISTAKES = {
    "a float for a key": (lambda: random.normal(np.zeros(2, np.float32)), errors.DTypeMismatch, "a key is needed"),
    "a number for a key": (lambda: random.normal(0), errors.DTypeMismatch, "a key is needed"),
    "three words": (lambda: random.normal(np.zeros(3, np.uint32)), errors.DTypeMismatch, "a key is needed"),
    "many keys": (lambda: random.normal(random.split(KEY)), errors.ShapeMismatch, "vmap"),
    "many keys to split": (lambda: random.split(random.split(KEY)), errors.ShapeMismatch, "vmap"),
    "a negative shape": (lambda: random.normal(KEY, (-1,)), errors.BadArgument, "negative"),
    "a shape of floats": (lambda: random.normal(KEY, (1.5,)), errors.BadArgument, "shape"),
    "a negative split": (lambda: random.split(KEY, -1), errors.BadArgument, "negative"),
    "integers from uniform": (lambda: random.uniform(KEY, (), "int32"), errors.DTypeMismatch, "float32"),
    "floats from randint": (lambda: random.randint(KEY, (), 0, 1, "float32"), errors.DTypeMismatch, "integer"),
    "signed bits": (lambda: random.bits(KEY, (), "int32"), errors.BadArgument, "uint32"),
    "unfit bounds": (lambda: random.uniform(KEY, (2,), minval=np.zeros(3)), errors.ShapeMismatch, "broadcast"),
    "a float seed": (lambda: random.key(1.5), errors.DTypeMismatch, "integer"),
    "a truth for a seed": (lambda: random.key(True), errors.DTypeMismatch, "integer"),
    "many seeds": (lambda: random.key(np.arange(3)), errors.ShapeMismatch, "vmap"),
    "a long seed": (lambda: random.key(2**64), errors.IntegerOverflow, "64 bits"),
    "two generators": (lambda: random.key(0, impl="rbg", dtype=KEY.dtype), errors.BadArgument, "not both"),
    "a dtype of numbers": (lambda: random.key(0, dtype="int32"), errors.BadArgument, "int32"),
    "words of another generator": (lambda: random.uniform(random.PRNGKey(0, impl="rbg")), errors.DTypeMismatch, "[2]"),
    "too many words": (lambda: random.wrap_key_data(np.zeros(4, "uint32")), errors.DTypeMismatch, "[2]"),
    "bits without end": (lambda: random.bits(random.key(0, impl="rbg"), (2**33,)), errors.BadArgument, "2**32"),
    "an unknown generator": (lambda: random.key(0, impl="dice"), errors.BadArgument, "dice"),
    "no generator": (lambda: random.key(0, impl=object()), errors.DTypeMismatch, "object"),
    "folding a negative number": (lambda: random.fold_in(KEY, -1), errors.IntegerOverflow, "sign"),
    "folding a float": (lambda: random.fold_in(KEY, 1.5), errors.DTypeMismatch, "integer"),
    "folding many": (lambda: random.fold_in(KEY, np.arange(2)), errors.ShapeMismatch, "vmap"),
    "integer probability": (lambda: random.bernoulli(KEY, 1), errors.DTypeMismatch, "float"),
    "unknown mode": (lambda: random.gumbel(KEY, mode="middle"), errors.BadArgument, "'low' or 'high'"),
    "too many": (lambda: random.choice(KEY, 3, (4,), replace=False), errors.BadArgument, "at most 3"),
    "nothing": (lambda: random.choice(KEY, 0), errors.BadArgument, "nothing"),
    "too few weights": (lambda: random.choice(KEY, 3, p=np.ones(2, np.float32)), errors.ShapeMismatch, "one entry"),
    "no such axis": (lambda: random.permutation(KEY, np.arange(3), axis=1), errors.BadArgument, "axis 1"),
    "too many categories": (
        lambda: random.categorical(KEY, np.zeros(3, np.float32), shape=(4,), replace=False),
        errors.BadArgument, "at most 3"),
    "no square covariance": (
        lambda: random.multivariate_normal(KEY, np.zeros(2), np.ones((2, 3))), errors.ShapeMismatch, "covariance"),
    "integer logits": (lambda: random.categorical(KEY, np.arange(3)), errors.DTypeMismatch, "floats"),
    "wrapping keys": (lambda: random.wrap_key_data(KEY), errors.DTypeMismatch, "words"),
    "adding to a key": (lambda: KEY + 1, errors.DTypeMismatch, "key<fry>"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_refused_with_the_line_where_it_was_made(name):
    mistake, error, text = MISTAKES[name]
    with pytest.raises(error) as caught:
        mistake()
    message = str(caught.value)
    assert text in message and "test_random.py" in message.splitlines()[1]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("compiled", [lambda f: f, hx.jit])
def test_uniform_draws_of_an_interval_whose_width_overflows_lie_in_it(dtype, compiled):
    largest = hx.numpy.asarray(hx.numpy.finfo(dtype).max, dtype)
    draw = lambda low, high: random.uniform(KEY, (MANY,), dtype, low, high)
    x = np.asarray(compiled(draw)(-largest, largest)).astype(np.longdouble) / np.asarray(largest).astype(np.longdouble)
    assert x.min() >= -1 and x.max() < 1 and x.mean() == pytest.approx(0, abs=0.05)
    slope = hx.grad(lambda s: hx.numpy.mean(draw(-s, s) / s))(hx.numpy.asarray(2.0, dtype))
    assert abs(slope) < 1e-2


@pytest.mark.parametrize(
    ("dtype", "bound"), [("float16", 6e4), ("bfloat16", 3e38), ("float32", 3e38), ("float64", 1e308)]
)
def test_uniform_numbers_between_bounds_whose_difference_overflows(dtype, bound):
    draw = lambda k: random.uniform(k, (2000,), dtype, -bound, bound)
    for f in (draw, hx.jit(draw)):
        share = np.asarray(f(random.key(0))).astype("float64") / bound
        assert abs(share.mean()) < 0.05 and abs(share.std() - 3**-0.5) < 0.02
