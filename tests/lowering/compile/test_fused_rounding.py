"""Draws from a key are the same, bit for bit, whether XLA executes a sampler as a whole or one operation at a time."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax import lax, random
from handlax import numpy as hnp
from handlax.effects.operations.elementwise.transcendental import Exp
from handlax.effects.programs.program import bind
from handlax.interpreters.core import evaluate
from handlax.interpreters.core.record import record_apart
from handlax.lowering.compile.eager_compilation import _compiled_here
from handlax.lowering.compile.estimate import estimate
from handlax.lowering.compile.fused_rounding import loose_operations

pytestmark = pytest.mark.optimised

FEW = {
    "bits": lambda key, n: random.bits(key, (n,)),
    "uniform": lambda key, n: random.uniform(key, (n,)),
    "normal": lambda key, n: random.normal(key, (n,)),
    "normal, 64 bits": lambda key, n: random.normal(key, (n,), "float64"),
    "bernoulli": lambda key, n: random.bernoulli(key, 0.3, (n,)),
    "randint": lambda key, n: random.randint(key, (n,), -3, 1000),
    "permutation": lambda key, n: random.permutation(key, n),
    "split": lambda key, n: random.key_data(random.split(key, n)),
}
DRAWS = FEW | {
    "bits of a byte": lambda key, n: random.bits(key, (n,), "uint8"),
    "uniform between": lambda key, n: random.uniform(key, (n,), minval=-1.5, maxval=2.7),
    "uniform between powers of two": lambda key, n: random.uniform(key, (n,), minval=0.0, maxval=4.0),
    "uniform, 16 bits": lambda key, n: random.uniform(key, (n,), "bfloat16"),
    "normal, 16 bits": lambda key, n: random.normal(key, (n,), "float16"),
    "normal, complex": lambda key, n: random.normal(key, (n,), "complex64"),
    "randint of a byte": lambda key, n: random.randint(key, (n,), -3, 100, "int8"),
    "bernoulli, high": lambda key, n: random.bernoulli(key, hnp.float32(1e-9), (n,), mode="high"),
    "rademacher": lambda key, n: random.rademacher(key, (n,)),
    "exponential": lambda key, n: random.exponential(key, (n,)),
    "gumbel": lambda key, n: random.gumbel(key, (n,)),
    "gumbel, high": lambda key, n: random.gumbel(key, (n,), mode="high"),
    "laplace": lambda key, n: random.laplace(key, (n,)),
    "logistic": lambda key, n: random.logistic(key, (n,)),
    "cauchy": lambda key, n: random.cauchy(key, (n,)),
    "pareto": lambda key, n: random.pareto(key, 2.0, (n,)),
    "weibull": lambda key, n: random.weibull_min(key, 2.0, 3.0, (n,)),
    "rayleigh": lambda key, n: random.rayleigh(key, 2.0, (n,)),
    "maxwell": lambda key, n: random.maxwell(key, (n,)),
    "triangular": lambda key, n: random.triangular(key, 0.0, 0.3, 1.0, (n,)),
    "lognormal": lambda key, n: random.lognormal(key, 0.5, (n,)),
    "geometric": lambda key, n: random.geometric(key, 0.3, (n,)),
    "wald": lambda key, n: random.wald(key, 2.0, (n,)),
    "truncated normal": lambda key, n: random.truncated_normal(key, -1.0, 2.0, (n,)),
    "truncated normal, 64 bits": lambda key, n: random.truncated_normal(key, -1.0, 2.0, (n,), "float64"),
    "categorical": lambda key, n: random.categorical(key, hnp.linspace(0, 1, n)),
    "choice": lambda key, n: random.choice(key, n, (n,)),
    "choice by weights": lambda key, n: random.choice(key, 4, (n,), p=hnp.array([0.1, 0.2, 0.3, 0.4])),
    "fold_in": lambda key, n: random.key_data(random.fold_in(key, n)),
}
ALWAYS = ("bits", "uniform", "bernoulli", "randint", "permutation", "split")  # of integers, and of correct floats alone
IMPLS = ("threefry2x32", "rbg", "unsafe_rbg", "philox4x32")


def bits(x):
    """The bits of an array of floats, as integers; other arrays as they are."""
    x = np.asarray(x)
    return x.view(f"u{x.dtype.itemsize}") if x.dtype.kind in "fV" else x


def one_by_one(program, *operands):
    """The results of operations that are executed by NumPy; by XLA those that round loosely and that it does faster."""
    values = bind(program, operands)
    for op, args, numbers, _ in program.steps():
        inputs = tuple([values[n] for n in args])
        alone = evaluate.program_of(op, tuple([x.type for x in inputs]))
        found = op.rounding == "loose" and not op.bodied and estimate(alone)
        by_xla = found and found.xla < found.numpy
        results = (_compiled_here(alone) if by_xla else evaluate.chosen(alone, None))(*inputs)
        for n, y in zip(numbers, results):
            values[n] = y
    return [values[n] for n in program.outs]


def check(draw, key, n):
    """Whether the program of a draw is fused; if so, its results are compared."""
    program = record_apart(lambda key: ([draw(key, n)], None), [key.type])[0]
    if estimate(program) is None:
        return False
    for y, z in zip(_compiled_here(program)(key), one_by_one(program, key), strict=True):
        np.testing.assert_array_equal(bits(y), bits(z))
    return True


@pytest.mark.parametrize("name", FEW)
def test_a_sampler_of_correct_floats_is_fused_to_the_same_bits(name):
    key = random.key(3)
    assert check(FEW[name], key, 3000)
    assert check(FEW[name], key, 12) == (name in ALWAYS)


@pytest.mark.sweep
@pytest.mark.parametrize("impl", IMPLS)
@pytest.mark.parametrize("n", [1, 50, 3000, 200_000])
@pytest.mark.parametrize("name", DRAWS)
def test_every_sampler_that_is_fused_gives_the_same_bits(name, n, impl):
    for seed in range(2):
        check(DRAWS[name], random.key(seed, impl=impl), n)


X = hx.ShapeDtypeStruct((5,), "float32")
SAME = {
    "a correct one": (lambda x: abs(-x), True),
    "a sum": (lambda x: x + 1, True),
    "a sum of a sum": (lambda x: (x - 1) + 0.3, False),
    "a sum of a product": (lambda x: x * 3 + 1, False),
    "a difference from a product, negated": (lambda x: 1 - (-(x * 3)), False),
    "a sum of a product by a power of two": (lambda x: x * 4 + 1, True),
    "sums around a product by a power of two": (lambda x: (x - 1) * -2 + 0.3, True),
    "sums around a product by one": (lambda x: (x - 1) * lax.full((), 1.0) + 0.3, False),
    "a product of a sum": (lambda x: (x + 1) * x, True),
    "a product of a product": (lambda x: x * 0.1 * 0.7, False),
    "products by powers of two": (lambda x: x * 2 * 0.7, True),
    "what is rounded loosely": (lambda x: lax.exp(x), False),
    "a sum in the choice": (lambda x: lax.max(x * 3, x) + 1, False),
    "comparisons of sums": (lambda x: (x + 1 < x - 1).astype("float32") + 1, True),
    "16 bits": (lambda x: x.astype("bfloat16").astype("float32"), False),
    "complex": (lambda x: x.astype("complex64").real, False),
}


@pytest.mark.parametrize("name", SAME)
def test_what_may_be_rounded_otherwise_within_a_program_is_not_fused(name):
    f, same = SAME[name]
    assert (loose_operations(hx.make_program(f)(X)) == []) == same


def test_what_is_rounded_loosely_is_named():
    for f, found in ((lambda x: lax.exp(x) * 2, [0]), (lambda x: lax.exp(x) + 1, None),
                     (lambda x: lax.exp(x * 0.3), None), (lambda x: lax.exp(lax.log(x)), None),
                     (lambda x: x * 1.0 + 1, []), (lambda x: x * 3.0 * 1.0 + 1, None),
                     (lambda x: x * np.full(X.shape, 2, X.dtype) + 1, None)):
        assert loose_operations(hx.make_program(f)(X)) == found


def test_each_operation_takes_time_to_compile():
    costs = [estimate(hx.make_program(f)(X)).compile for f in (lax.exp, lambda x: lax.exp(x) * 2)]
    assert costs[0] < costs[1]


def test_a_sampler_is_compiled_no_earlier_than_what_it_rounds_loosely():
    key, n = random.key(3), 100_000
    program = record_apart(lambda key: ([random.lognormal(key, 0.5, (n,))], None), [key.type])[0]
    whole = estimate(program)
    exp = estimate(evaluate.program_of(Exp(), (program.type_of(program.outs[0]),)))
    assert whole.compile / (whole.numpy - whole.xla) >= exp.compile / (exp.numpy - exp.xla)


@pytest.mark.parametrize("name", FEW)
def test_a_draw_called_again_and_again_is_compiled_and_stays_the_same(name):
    key, draw = random.key(5), FEW[name]
    first, *others = [bits(draw(key, 60_000)) for _ in range(6)]
    assert all([np.array_equal(first, y) for y in others])


