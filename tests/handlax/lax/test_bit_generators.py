"""Random bits of XLA's generators, against XLA's own operation; numbers without a key."""

import functools

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.lowering.xla import jaxlib_runtime
from handlax.random import keyless

ALGORITHMS = {lax.RandomAlgorithm.RNG_THREE_FRY: "THREE_FRY", lax.RandomAlgorithm.RNG_PHILOX: "PHILOX"}
SHAPES = [(), (5,), (4, 3), (5, 3), (3, 4, 5), (2, 0)]
STATES = [np.uint32([5, 6, 7, 8]), np.uint32([1, 2, 2**32 - 1, 2**32 - 1])]
TEXT = """module @m attributes {{mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32}} {{
  func.func public @main(%a: tensor<2xui64>) -> (tensor<2xui64>, {out}) {{
    %s, %b = stablehlo.rng_bit_generator %a, algorithm = {algorithm} : (tensor<2xui64>) -> (tensor<2xui64>, {out})
    return %s, %b : tensor<2xui64>, {out}
  }}
}}"""


@functools.cache
def compiled(shape, dtype, algorithm):
    out = f"tensor<{''.join(f'{n}x' for n in shape)}u{dtype[1:]}>".replace("int", "i")
    device = hx.devices()[0]
    text = TEXT.format(out=out, algorithm=ALGORITHMS[algorithm])
    results, options = [((2,), np.uint64), (shape, np.dtype(dtype))], jaxlib_runtime.quick_options(text, [device])
    return jaxlib_runtime.compile(text, devices=[device], results=results, options=options)


def of_xla(state, shape, dtype, algorithm):
    """State and bits by XLA, which XLA draws for all of an array at once."""
    program = compiled(shape, dtype, algorithm)
    found = program.execute([jaxlib_runtime.put(state.view(np.uint64), hx.devices()[0])])
    kinds = (np.dtype(np.uint64), (2,)), (np.dtype(dtype), shape)
    return [jaxlib_runtime.to_numpy(y, *kind) for y, kind in zip(found, kinds)]


@pytest.mark.each_choice
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(("shape", "dtype"), [
    *[(shape, "uint32") for shape in SHAPES], ((4, 3), "uint64"), ((5,), "uint8"), ((4, 3), "uint16"),
])
def test_bits_and_states_are_those_of_xla(shape, dtype, algorithm):
    for state in STATES:
        if shape == (2, 0):
            wanted = state.view(np.uint64), np.zeros(shape, dtype)
        else:
            wanted = of_xla(state, shape, dtype, algorithm)
        after, bits = lax.rng_bit_generator(state, shape, dtype, algorithm)
        assert bits.dtype == dtype and bits.shape == shape
        assert (np.asarray(after).view(np.uint64) == wanted[0]).all() and (np.asarray(bits) == wanted[1]).all()
        after, same = lax.rng_bit_generator(state.view(np.uint64), shape, dtype, algorithm)
        assert after.dtype == "uint64" and (np.asarray(after) == wanted[0]).all() and (same == bits).all()


@pytest.mark.parametrize("algorithm", lax.RandomAlgorithm)
def test_a_lane_has_the_bits_of_its_own_key(algorithm):
    draw = lambda state: lax.rng_bit_generator(state, (3, 2), algorithm=algorithm)
    states = np.arange(12, dtype=np.uint32).reshape(3, 4)
    lanes = hx.jit(hx.vmap(draw))(states)
    for i, state in enumerate(states):
        for one, many in zip(draw(state), lanes):
            assert (one == many[i]).all()


def test_states_follow_each_other():
    """What is drawn at once is what is drawn in two steps of whole blocks."""
    state = STATES[0]  # near its end the counter of Philox runs into the copy of the key behind it
    half, first = lax.rng_bit_generator(state, (8,))
    end, second = lax.rng_bit_generator(half, (8,))
    whole, both = lax.rng_bit_generator(state, (16,))
    assert (end == whole).all() and (hnp.concatenate([first, second]) == both).all()


@pytest.mark.parametrize(("arguments", "error", "words"), [
    ((np.arange(3, dtype=np.uint32), (2,)), errors.ShapeMismatch, r"u32\[4\] or u64\[2\], got u32\[3\]"),
    ((np.arange(4), (2,)), errors.ShapeMismatch, r"got i64\[4\]"),
    ((STATES[0], (2,), "float32"), errors.DTypeMismatch, "an unsigned integer, got float32"),
    ((STATES[0], (2,), "uint32", 7), errors.BadArgument, "a lax.RandomAlgorithm, got 7"),
])
def test_other_states_dtypes_and_algorithms_are_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        lax.rng_bit_generator(*arguments)


def test_numbers_without_a_key_are_between_the_ends():
    draw = keyless.seed(lambda: (lax.rng_uniform(2.0, 3.0, (1000,)), lax.rng_uniform(-4, 4, (1000,))), hx.random.key(0))
    floats, integers = map(np.asarray, draw())
    assert floats.min() >= 2.0 and floats.max() < 3.0 and abs(floats.mean() - 2.5) < 0.05
    assert set(integers.tolist()) == set(range(-4, 4))
    with pytest.raises(errors.UnhandledEffect):
        lax.rng_uniform(0.0, 1.0, (2,))
    with pytest.raises(errors.ShapeMismatch, match="scalars"):
        lax.rng_uniform(np.zeros(2), 1.0, ())
    with pytest.raises(errors.DTypeMismatch, match="one dtype"):
        lax.rng_uniform(np.int32(0), np.float32(1), ())
