"""References as arguments of jitted and mapped functions: written back once, traced by type, under one name."""

from __future__ import annotations

from threading import Barrier

import numpy as np
import pytest
from helpers.other_threads import together

import handlax as hx
from handlax import errors
from handlax import numpy as hnp

X = hnp.ones(1)


def accumulate(a, b):
    a[...] = a[...] * 2 + b[...]
    return hnp.sum(a[...])


def in_numpy(a, b):
    a[...] = a * 2 + b
    return a.sum()


def test_a_jitted_function_writes_the_references_that_it_is_passed():
    f = hx.jit(accumulate)
    plain = [np.ones(3, np.float32), np.arange(3, dtype=np.float32)]
    refs = [hx.new_ref(x) for x in plain]
    for i, j in ((0, 1), (0, 1), (1, 0)):
        np.testing.assert_allclose(f(refs[i], refs[j]), in_numpy(plain[i], plain[j]))
        np.testing.assert_array_equal([ref[...] for ref in refs], plain)


def test_other_references_of_the_same_type_are_no_reason_to_trace_again():
    traces = []

    @hx.jit
    def f(ref, x):
        traces.append(None)
        ref[0] += x

    refs = [hx.new_ref(hnp.zeros(2)) for _ in range(3)]
    for ref in refs:
        f(ref, 2.0)
        f(ref, 3.0)
    assert len(traces) == 1
    np.testing.assert_array_equal([ref[...] for ref in refs], [[5.0, 0.0]] * 3)


@pytest.mark.parametrize("static", [{"static_argnums": 0}, {"static_argnames": "n"}, {"donate_argnums": 2}])
def test_static_and_donated_arguments_stand_beside_references(static):
    @lambda f: hx.jit(f, **static)
    def f(n, tree, x):
        tree["ref"][0] = x[0] * n
        return tree["ref"][...] + tree["y"]

    ref = hx.new_ref(hnp.ones(2))
    y = f(3, {"ref": ref, "y": 1.0}, hnp.full(2, 5.0))
    np.testing.assert_array_equal(y, [16.0, 2.0])
    np.testing.assert_array_equal(ref[...], [15.0, 1.0])


def test_a_static_reference_is_one_of_the_surroundings():
    ref = hx.new_ref(1.0)
    f = hx.jit(lambda q, x: q.__setitem__(..., q[...] + x), static_argnums=0)
    f(ref, 2.0)
    f(ref, 2.0)
    assert float(ref[...]) == 5.0


@pytest.mark.parametrize("outside", [lambda f: f, hx.jit, hx.checkpoint], ids=["no", "jit", "remat"])
def test_inner_references_pass_through_jitted_functions_under_grad(outside):
    f = hx.jit(accumulate)

    @outside
    def g(x):
        a, b = hx.new_ref(x), hx.new_ref(x * x)
        f(a, b)
        f(b, a)
        return hnp.sum(b[...])

    x = hnp.array([0.5, 2.0])  # a = 2x + x^2, b = 2x^2 + a
    np.testing.assert_allclose(g(x), np.sum(3 * x**2 + 2 * x))
    np.testing.assert_allclose(hx.grad(g)(x), 6 * x + 2)
    np.testing.assert_allclose(hx.vmap(hx.grad(g))(hnp.stack([x, 2 * x])), np.stack([6 * x + 2, 12 * x + 2]))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("outside", [lambda f: f, hx.jit])
def test_a_mapped_reference_has_an_element_for_each_lane(axis, outside):
    start = np.arange(6, dtype=np.float32).reshape(2, 3)
    ref = hx.new_ref(start)
    size = start.shape[axis]

    def f(q, x):
        q[...] = q[...] * x
        return hnp.sum(q[...])

    y = outside(hx.vmap(f, in_axes=(axis, 0)))(ref, hnp.arange(size))
    expected = start * np.arange(size).reshape((-1, 1) if axis == 0 else (1, -1))
    np.testing.assert_array_equal(ref[...], expected)
    np.testing.assert_array_equal(y, expected.sum(1 - axis % 2))


def test_pairwise_distances_are_written_into_a_matrix():
    def distance(x, y, out):
        out[...] = hnp.sum((x - y) ** 2)

    points = hnp.arange(12.0).reshape(3, 4)
    out = hx.new_ref(hnp.zeros((3, 3)))
    hx.vmap(hx.vmap(distance, (0, None, 0)), (None, 0, 0))(points, points, out)
    np.testing.assert_array_equal(out[...], np.sum((points[:, None] - points[None]) ** 2, -1))


def test_a_reference_that_is_not_mapped_is_read_by_all_lanes_and_written_by_none():
    ref = hx.new_ref(hnp.array([1.0, 2.0]))
    xs = hnp.arange(2)
    for read in (lambda i, q: q[i], hx.jit(lambda i, q: q[i])):
        np.testing.assert_array_equal(hx.vmap(read, (0, None))(xs, ref), [1.0, 2.0])
    for write in (lambda i, q: q.__setitem__(0, 3.0), hx.jit(lambda i, q: q.__setitem__(0, 3.0))):
        with pytest.raises(errors.CannotCross, match="share"):
            hx.vmap(write, (0, None))(xs, ref)
    np.testing.assert_array_equal(ref[...], [1.0, 2.0])


def test_a_plumbing_reference_of_a_derivative_holds_no_tangent():
    ref = hx.new_ref(0.0)

    def f(x, q):
        q[...] += hx.lax.stop_gradient(x)
        return x * x

    np.testing.assert_allclose(hx.grad(f)(3.0, ref), 6.0)
    np.testing.assert_allclose(hx.grad(hx.jit(f))(3.0, ref), 6.0)
    assert float(ref[...]) == 6.0
    for wrong in (lambda x, q: q.__setitem__(..., x), hx.jit(lambda x, q: q.__setitem__(..., x))):
        with pytest.raises(errors.NotDifferentiable, match="stop_gradient"):
            hx.grad(lambda x, q, wrong=wrong: (wrong(x, q), x)[1])(3.0, ref)
    assert float(ref[...]) == 6.0


OUTER = hx.new_ref(1.0)


@hx.jit
def uses_outer(q):
    q[...] += OUTER[...]


@pytest.mark.parametrize("inside", [lambda f: f(), lambda f: hx.jit(f)(), lambda f: hx.jit(lambda x: f())(1.0)])
def test_two_names_for_one_reference_are_refused(inside):
    other = hx.new_ref(1.0)
    uses_outer(other)  # traced for this type of argument
    assert float(other[...]) == 2.0
    with pytest.raises(errors.BadCall, match="two names"):
        inside(lambda: uses_outer(OUTER))
    with pytest.raises(errors.BadCall, match="passed once"):
        inside(lambda: hx.jit(accumulate)(other, other))
    with pytest.raises(errors.BadCall, match="passed once"):
        inside(lambda: hx.vmap(accumulate, axis_size=2, in_axes=0)(*[hx.new_ref(hnp.ones(2))] * 2))
    with pytest.raises(errors.BadCall, match="where it was made"):
        inside(lambda: hx.jit(lambda q: hx.freeze(q))(other))
    assert (float(OUTER[...]), float(other[...])) == (1.0, 2.0)


@pytest.mark.parametrize("transformed", [hx.jit, lambda f: lambda q: hx.vmap(lambda x, q: f(q), (0, None))(X, q)[0]])
def test_threads_may_read_one_reference_by_a_function_that_it_is_passed_to(transformed):
    ref, inside = hx.new_ref(hnp.arange(3.0)), Barrier(4, timeout=60)

    def read(q):
        inside.wait()  # the reference is an argument of four calls
        return hnp.sum(q[...])

    assert together(4, lambda _: float(transformed(lambda q: read(q))(ref))) == [3.0] * 4


def test_a_donated_reference_keeps_its_value():
    x, y = hnp.ones(3), hnp.full(3, 2.0)
    ref = hx.new_ref(x)
    f = hx.jit(lambda n, tree, z: (n * tree["q"][...] + tree["y"], z * 2), static_argnums=0, donate_argnums=(1, 2))
    for _ in range(2):
        np.testing.assert_array_equal(f(2, {"q": ref, "y": y}, hnp.ones(3)), [[4.0] * 3, [2.0] * 3])
        assert y.is_deleted() and not x.is_deleted()  # what is no reference is donated
        y = hnp.full(3, 2.0)
    np.testing.assert_array_equal(ref[...], [1.0] * 3)
    write = hx.jit(lambda q: q.__setitem__(..., q[...] + 1), donate_argnums=0)
    write(ref)
    write(ref)
    np.testing.assert_array_equal(ref[...], [3.0] * 3)
    np.testing.assert_array_equal(x, [1.0] * 3)
