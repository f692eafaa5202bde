"""Convolutions against their definition as sums over the elements of each window."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import handlax as hx
from handlax import lax
from handlax.effects.operations.windows.convolution import ConvGeneralDilated
from handlax.errors import BadArgument, DTypeMismatch, ShapeMismatch


def padded(x, dilation, padding):
    """Give ``x`` with dilated and padded spatial dimensions, which come after the first two."""
    for axis, (d, (low, high)) in enumerate(zip(dilation, padding), 2):
        n = x.shape[axis]
        size = (n - 1) * d + 1 if n else 0
        places = [(low + i * d, i) for i in range(n) if 0 <= low + i * d < low + size + high]
        y = np.zeros((*x.shape[:axis], low + size + high, *x.shape[axis + 1 :]), x.dtype)
        for place, i in places:
            y[(slice(None),) * axis + (place,)] = x[(slice(None),) * axis + (i,)]
        x = y
    return x


def definition(x, y, strides, padding, lhs_dilation, rhs_dilation, numbers, features=1, batches=1):
    """Give the convolution by loops over groups, windows and their elements."""
    numbers = lax.conv_dimension_numbers(x.shape, y.shape, numbers)
    x, y = padded(x.transpose(numbers.lhs_spec), lhs_dilation, padding), y.transpose(numbers.rhs_spec)
    reach = [(k - 1) * d + 1 if k else 0 for k, d in zip(y.shape[2:], rhs_dilation)]
    spatial = [(n - k) // s + 1 if n >= k else 0 for n, k, s in zip(x.shape[2:], reach, strides)]
    groups = features * batches
    z = np.zeros((x.shape[0] // batches, y.shape[0], *spatial), np.result_type(x, y))
    xs = np.split(x, batches, 0) if batches > 1 else np.split(x, features, 1)
    for group, (part, weights) in enumerate(zip(xs, np.split(y, groups, 0))):
        out = slice(group * weights.shape[0], (group + 1) * weights.shape[0])
        for place in product(*map(range, spatial)):
            for k in product(*map(range, y.shape[2:])):
                at = tuple([p * s + i * d for p, s, i, d in zip(place, strides, k, rhs_dilation)])
                z[(slice(None), out, *place)] += part[(..., *at)] @ weights[(..., *k)].T
    return z.transpose(np.argsort(numbers.out_spec))


@st.composite
def convolutions(draw):
    """Two operands of float64, and all parameters."""
    rank = draw(st.integers(0, 2))
    one_to = lambda high: st.tuples(*[st.integers(1, high)] * rank)
    window, strides = draw(one_to(3)), draw(one_to(3))
    dilations = draw(one_to(3)), draw(one_to(3))
    spatial = draw(st.tuples(*[st.integers(0, 5)] * rank))
    padding = []
    for n, d in zip(spatial, dilations[0]):
        size = (n - 1) * d + 1 if n else 0
        low = draw(st.integers(-min(size, 2), 3))
        padding.append((low, draw(st.integers(-min(size + low, 2), 3))))
    features, batches = draw(st.sampled_from([(1, 1), (2, 1), (1, 2), (3, 1)]))
    inputs, outputs, batch = draw(st.integers(0, 2)), draw(st.integers(0, 2)), draw(st.integers(0, 2))
    lhs = (batch * batches, inputs * features, *spatial)
    rhs = (outputs * features * batches, inputs, *window)
    letters = "HW"[:rank]
    numbers = tuple(["".join(draw(st.permutations(ends + letters))) for ends in ("NC", "OI", "NC")])
    order = [name for name in numbers[1] if name in letters]  # strides are in the order of the letters of rhs
    sizes = [dict(zip((*ends, *order), shape)) for ends, shape in (("NC", lhs), ("OI", rhs))]
    shapes = [tuple([size[name] for name in names]) for size, names in zip(sizes, numbers)]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    x, y = [rng.standard_normal(shape) for shape in shapes]
    return x, y, (strides, tuple(padding), *dilations, numbers, features, batches)


def check(x, y, parameters, transform=lambda f: f):
    f = transform(lambda x, y: lax.conv_general_dilated(x, y, *parameters))
    z = definition(x, y, *parameters)
    np.testing.assert_allclose(np.asarray(f(x, y)), z, rtol=1e-12, atol=1e-12)
    rng = np.random.default_rng(0)
    dx, dy, ct = [rng.standard_normal(v.shape) for v in (x, y, z)]
    by_x, by_y = definition(dx, y, *parameters), definition(x, dy, *parameters)
    tangent = hx.jvp(f, (x, y), (dx, dy))[1]
    np.testing.assert_allclose(np.asarray(tangent), by_x + by_y, rtol=1e-12, atol=1e-12)
    pull = lambda x, y: hx.vjp(f, x, y)[1](ct)
    for cotangent, d, by in zip(pull(x, y), (dx, dy), (by_x, by_y)):
        np.testing.assert_allclose(np.sum(np.asarray(cotangent) * d), np.sum(ct * by), rtol=1e-9, atol=1e-9)
    both = np.sum(ct * definition(dx, dy, *parameters))  # of a bilinear function, the second derivative is itself
    changed = hx.jvp(pull, (x, y), (np.zeros_like(x), dy))[1][0]
    np.testing.assert_allclose(np.sum(np.asarray(changed) * dx), both, rtol=1e-9, atol=1e-9)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(convolutions())
def test_values_and_both_derivatives_are_those_of_the_definition(drawn):
    check(*drawn)


@pytest.mark.sweep
@settings(max_examples=60, deadline=None, derandomize=True)
@given(convolutions())
def test_compiled_values_and_both_derivatives_are_those_of_the_definition(drawn):
    check(*drawn, transform=hx.jit)


@pytest.mark.sweep
@settings(max_examples=60, deadline=None, derandomize=True)
@given(convolutions())
def test_compiled_convolutions_of_float32_are_those_of_the_definition(drawn):
    need_close_in_float32(*drawn)


def need_close_in_float32(x, y, parameters):
    """Check a compiled convolution of float32, for which XLA's loops are asked where they are faster, and adjoints."""
    convolve = lambda x, y: lax.conv_general_dilated(x, y, *parameters)
    x, y = [v.astype(np.float32) for v in (x, y)]
    z = definition(x, y, *parameters)
    np.testing.assert_allclose(np.asarray(hx.jit(convolve)(x, y)), z, rtol=1e-4, atol=1e-4)
    compiled = hx.jit(lambda x, y, ct: hx.vjp(convolve, x, y)[1](ct))(x, y, z)
    wanted = hx.vjp(convolve, *[v.astype(float) for v in (x, y)])[1](z.astype(float))
    for a, b in zip(compiled, wanted):
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-4, atol=1e-3)


FEW = [(8, 8, 8), (8, 16, 8), (8, 8, 4), (1, 8, 1), (2, 2, 1)]  # inputs, outputs, feature groups
MANY = [(32, 32, 1), (32, 32, 2)]


def weighted(inputs, outputs, groups, rank=2):
    """A convolution of windows of 3 whose padding is not symmetric: operands and parameters."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, inputs, *[7] * rank)), rng.standard_normal((outputs, inputs // groups, *[3] * rank))
    return x, y, ((2, 1)[:rank], ((0, 2), (1, 1))[:rank], (1,) * rank, (1, 2)[:rank], None, groups)


@pytest.mark.each_choice
@pytest.mark.parametrize(("inputs", "outputs", "groups"), FEW + MANY)
@pytest.mark.parametrize("rank", [1, 2])
def test_convolutions_by_kernels_and_by_loops_are_those_of_the_definition(inputs, outputs, groups, rank):
    need_close_in_float32(*weighted(inputs, outputs, groups, rank))


@pytest.mark.parametrize("sizes", FEW + MANY)
def test_few_weights_in_a_group_are_lowered_for_loops_on_cpus(sizes):
    x, y, parameters = weighted(*sizes)
    text = lambda dtype: hx.jit(lambda x, y: lax.conv_general_dilated(x, y, *parameters)).lower(
        x.astype(dtype), y.astype(dtype)
    ).as_text()
    assert ("reverse = [true, true]" in text("float32")) is (sizes in FEW)
    assert "reverse" not in text("float64") + text("float16")


@pytest.mark.parametrize(("sizes", "loops"), [((8, 8, 8), False), ((8, 16, 8), True), ((16, 16, 4), True),
                                              ((128, 128, 2), False), ((32, 32, 1), False)])
def test_adjoints_of_the_weights_of_groups_are_lowered_for_loops_unless_they_are_wide(sizes, loops):
    x, y, parameters = [v.astype("float32") if isinstance(v, np.ndarray) else v for v in weighted(*sizes)]
    pull = lambda x, ct: hx.vjp(lambda y: lax.conv_general_dilated(x, y, *parameters), y)[1](ct)
    text = hx.jit(pull).lower(x, definition(x, y, *parameters)).as_text()
    assert ("reverse = [true, true]" in text) is loops


@pytest.mark.parametrize("mapped", [(0, None), (None, 1), (2, 0)])
@settings(max_examples=25, deadline=None, derandomize=True)
@given(convolutions())
def test_lanes_are_convolutions_of_their_own(mapped, drawn):
    x, y, parameters = drawn
    lanes = [(x, y), (2 * x, y + 1), (x - 1, -y)]
    f = lambda x, y: lax.conv_general_dilated(x, y, *parameters)
    stacked = [np.stack(values, d) if d is not None else values[0] for values, d in zip(zip(*lanes), mapped)]
    expected = [f(*[v if d is not None else first for v, d, first in zip(lane, mapped, lanes[0])]) for lane in lanes]
    np.testing.assert_allclose(np.asarray(hx.vmap(f, mapped)(*stacked)), np.stack(expected), rtol=1e-12, atol=1e-12)


def test_no_lanes_give_no_results():
    f = lambda x, y: lax.conv(x, y, (1,), "SAME")
    x, y = np.zeros((0, 2, 3, 4)), np.zeros((5, 3, 2))
    assert hx.vmap(f, (0, None))(x, y).shape == (0, 2, 5, 4)
    assert hx.vmap(f)(x, np.zeros((0, 5, 3, 2))).shape == (0, 2, 5, 4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "complex64", "int8", "uint16"])
def test_eager_and_compiled_agree_beyond_the_limit_between_them(dtype):
    rng = np.random.default_rng(0)
    x, y = [hx.numpy.asarray(rng.integers(-3, 4, shape), dtype) for shape in ((2, 4, 20, 20), (8, 4, 3, 3))]
    f = lambda x, y: lax.conv(x, y, (1, 1), "SAME")
    few = lax.conv_general_dilated(x[:, :, :4, :4], y, (1, 1), ((1, -1), (1, -1)))  # few enough for NumPy
    assert f(x, y).dtype == dtype
    np.testing.assert_array_equal(np.asarray(f(x, y)), np.asarray(hx.jit(f)(x, y)))
    np.testing.assert_array_equal(np.asarray(f(x, y))[:, :, :2, :2], np.asarray(few))


@pytest.mark.parametrize(("small", "large"), [(1.0, 1e8), (1e8, 1.0), (0.0, 1e30)])
@pytest.mark.parametrize("groups", [{}, {"feature_group_count": 2}, {"batch_group_count": 2}])
def test_neither_part_of_a_complex_number_is_rounded_as_the_other(small, large, groups):
    rng = np.random.default_rng(1)
    scaled = lambda shape: small * rng.normal(size=shape) + 1j * large * rng.normal(size=shape)
    x = scaled((2, 4, 9)).astype("complex64")
    y = rng.normal(size=(4, 4 // groups.get("feature_group_count", 1), 3)).astype("complex64")  # real
    f = lambda x, y: lax.conv_general_dilated(x, y, (1,), "VALID", **groups)
    wide, near = f(x.astype("complex128"), y.astype("complex128")), 40 * np.finfo("float32").eps
    for part in (np.real, np.imag):
        terms = f(abs(part(x)), abs(y.real))
        for z in (f(x, y), hx.jit(f)(x, y)):
            assert (abs(part(np.asarray(z)) - part(np.asarray(wide))) <= near * np.asarray(terms)).all()


def test_sums_are_computed_in_the_preferred_dtype():
    x, y = np.full((1, 300), 100, np.int8), np.full((1, 300), 100, np.int8)
    f = lambda x, y: lax.conv(x, y, (), "VALID", preferred_element_type=np.dtype("int32"))
    for z in (f(x, y), hx.jit(f)(x, y)):
        assert z.dtype == np.int32 and int(z[0, 0]) == 3_000_000


def test_the_preferred_dtype_is_no_promotion():
    x, y = np.full((1, 4), 100, np.int8), np.full((1, 4), 100, np.int8)
    with hx.configure(numpy_dtype_promotion="strict"):
        z = lax.conv(x, y, (), "VALID", preferred_element_type=np.float16)
        w = lax.dot_general(x, y, (((1,), (1,)), ((), ())), preferred_element_type=np.float32)
    assert z.dtype == np.float16 and float(z[0, 0]) == 40_000 and float(w[0, 0]) == 40_000


@pytest.mark.parametrize(
    ("error", "said", "change"),
    [
        (ShapeMismatch, "one rank", {"rhs": np.ones((1, 2, 3))}),
        (ShapeMismatch, "as many features", {"rhs": np.ones((1, 3, 2, 2))}),
        (DTypeMismatch, "one dtype", {"rhs": np.ones((1, 2, 2, 2), np.float32)}),
        (BadArgument, "must divide", {"feature_group_count": 3}),
        (BadArgument, "one of them 1", {"feature_group_count": 2, "batch_group_count": 2}),
        (BadArgument, "negative padding", {"padding": ((-3, -2), (0, 0))}),
        (BadArgument, "lhs_dilation is not 1", {"padding": "SAME", "lhs_dilation": (2, 2)}),
        (BadArgument, "'SAME', 'SAME_LOWER' or 'VALID'", {"padding": "FULL"}),
        (BadArgument, "pairs of integers", {"padding": ((1, 2), 3)}),
        (ShapeMismatch, "at least 1", {"window_strides": (0, 1)}),
        (ShapeMismatch, "one entry for each", {"window_strides": (1,)}),
        (DTypeMismatch, "represent all", {"lhs": np.ones((4, 2, 4, 4), complex), "rhs": np.ones((1, 2, 2, 2), complex),
                                          "preferred_element_type": np.float64}),
        (BadArgument, "lax.Precision", {"precision": "TF32_TF32_F32"}),
    ],
)
def test_what_does_not_fit_is_refused(error, said, change):
    arguments = {
        "lhs": np.ones((4, 2, 4, 4)), "rhs": np.ones((1, 2, 2, 2)), "window_strides": (1, 1), "padding": "VALID",
        **change,
    }
    with pytest.raises(error, match=said):
        lax.conv_general_dilated(**arguments)


def test_vectors_are_convolved_by_numpy_whatever_their_length():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((1, 1, 3000)), rng.standard_normal((1, 1, 40))
    op = ConvGeneralDilated((1,), ((5, -2),), (2,), (1,), lax.conv_dimension_numbers(x.shape, y.shape, None))
    assert op.workload_size(hx.numpy.asarray(x).type, hx.numpy.asarray(y).type) == 0
    f = lambda x, y: hx.perform(op, hx.numpy.asarray(x), hx.numpy.asarray(y))
    expected = np.convolve(np.concatenate([np.zeros(5), np.kron(x[0, 0], [1.0, 0.0])[:-3]]), y[0, 0, ::-1], "valid")
    np.testing.assert_allclose(np.asarray(f(x, y))[0, 0], expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(np.asarray(hx.jit(f)(x, y))[0, 0], expected, rtol=1e-10, atol=1e-12)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.integers(1, 6), st.integers(1, 5), st.integers(1, 3), st.tuples(st.integers(0, 4), st.integers(0, 4)),
    st.sampled_from(["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]), st.data(),
)
def test_nan_reaches_the_windows_of_vectors_that_hold_it_and_no_padding(n, k, dilation, padding, dtype, data):
    x, y = np.ones((1, 1, n)), np.ones((1, 1, k))
    parameters = (1,), (padding,), (dilation,), (1,), None
    reached = np.zeros(definition(x, y, *parameters).shape, bool)
    marked = [x.copy(), y.copy()]
    for i, v in enumerate((x, y)):
        place = data.draw(st.integers(-1, v.size - 1))  # -1: none
        if place >= 0:
            marked[i][..., place] = np.nan
            alone = [np.isnan(marked[j]) if j == i else w for j, w in enumerate((x, y))]
            reached |= definition(*[w.astype(float) for w in alone], *parameters) > 0
    z = lax.conv_general_dilated(*[hx.numpy.asarray(v, dtype) for v in marked], *parameters)
    np.testing.assert_array_equal(np.isnan(np.asarray(z).astype(complex)), reached)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("shift", [0, 2, 5])
def test_infinities_are_convolved_as_in_numpy(mode, shift):
    x, y = np.arange(-3.0, 5.0), np.roll([np.inf, 1.0, -2.0, 0.0, 3.0, 2.0], shift)
    with np.errstate(invalid="ignore"):
        wanted = np.convolve(x, y, mode)
    np.testing.assert_array_equal(hx.numpy.convolve(x, y, mode), wanted)
    np.testing.assert_array_equal(hx.numpy.convolve(y, x, mode), wanted)


def test_a_convolution_costs_a_product_and_a_sum_for_each_weight_of_a_window():
    x, w = np.ones((2, 3, 8), "float32"), np.ones((5, 3, 2), "float32")  # 2 x 5 x 7 results of 3 x 2 weights
    assert hx.costs(lambda x, w: lax.conv(x, w, (1,), "VALID"))(x, w).flops == 2 * (2 * 5 * 7) * (3 * 2)
