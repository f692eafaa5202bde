"""References: what they hold inside every transformation, against a Python list that is written in place."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp


class Cells(list):
    """References as Python has them: what ``ref[...]`` reads and writes is an element of a list."""

    def __init__(self, value):
        super().__init__([value])

    def __getitem__(self, index):
        assert index is ...
        return super().__getitem__(0)

    def __setitem__(self, index, value):
        assert index is ...
        super().__setitem__(0, value)


class InPython:
    """Loops, branches and calls as Python executes them; references are lists."""

    new = Cells
    jit = staticmethod(lambda f: f)

    @staticmethod
    def loop(n, body):
        for i in range(n):
            body(i)

    scan = until = loop

    @staticmethod
    def branch(test, yes, no):
        yes() if bool(lax.stop_gradient(test)) else no()


class Compiled:
    """The same by handlax: every body closes over the references."""

    new = staticmethod(hx.new_ref)
    jit = staticmethod(hx.jit)

    @staticmethod
    def loop(n, body):
        lax.fori_loop(0, n, lambda i, c: (body(i), c)[1], 0)

    @staticmethod
    def scan(n, body):
        lax.scan(lambda c, i: (c, body(i)), None, hnp.arange(n))

    @staticmethod
    def until(n, body):
        left = hx.new_ref(n)

        def step(c):
            body(n - left[...])
            left[...] -= 1
            return c

        lax.while_loop(lambda c: left[...] > 0, step, 0)

    @staticmethod
    def branch(test, yes, no):
        lax.cond(test, lambda: (yes(), 0.0)[1], lambda: (no(), 0.0)[1])


def draw_block(rng, depth, kinds):
    """A random list of statements: assignments to one of three references, loops, branches, calls."""
    block = []
    for _ in range(rng.integers(1, 4)):
        kind = kinds[rng.integers(len(kinds))] if depth else "set"
        if kind == "set":
            block.append(("set", rng.integers(3), rng.integers(3), float(rng.normal())))
        elif kind == "branch":
            block.append((kind, rng.integers(3), draw_block(rng, depth - 1, kinds), draw_block(rng, depth - 1, kinds)))
        else:
            block.append((kind, int(rng.integers(0, 4)), draw_block(rng, depth - 1, kinds)))
    return block


def execute(world, block, refs, x):
    for kind, *rest in block:
        if kind == "set":
            target, source, factor = rest
            refs[target][...] = refs[target][...] + hnp.sin(refs[source][...] * factor + x)
        elif kind == "branch":
            source, yes, no = rest
            world.branch(
                refs[source][...] > 0.5, lambda: execute(world, yes, refs, x), lambda: execute(world, no, refs, x)
            )
        elif kind == "jit":
            world.jit(lambda y, body=rest[1]: execute(world, body, refs, y))(x)
        else:
            getattr(world, kind)(rest[0], lambda i, body=rest[1]: execute(world, body, refs, x * (i + 1)))


def program(world, block):
    """A pure function that makes three references, executes the block, and returns what they hold."""

    def f(x):
        refs = [world.new(x * k) for k in (1.0, 0.5, -1.0)]
        execute(world, block, refs, x)
        return sum(ref[...] * k for ref, k in zip(refs, (1.0, 2.0, 3.0)))

    return f


KINDS = ["set", "loop", "scan", "branch", "jit"]


@pytest.mark.parametrize("seed", [1, 3, *[pytest.param(n, marks=pytest.mark.sweep) for n in range(4, 40)]])
def test_random_programs_hold_what_a_list_holds(seed):
    block = draw_block(np.random.default_rng(seed), 3, KINDS)
    f, plain = program(Compiled, block), program(InPython, block)
    with hx.enable_x64(True):  # some slopes are 4e4, which would make 32 bits too few
        xs = hnp.array([0.3, 1.1])
        expected = [plain(x) for x in xs]
        slopes = [hx.grad(plain)(x) for x in xs]
        np.testing.assert_allclose([f(x) for x in xs], expected, rtol=1e-9)
        np.testing.assert_allclose([hx.jit(f)(x) for x in xs], expected, rtol=1e-9)
        np.testing.assert_allclose(hx.vmap(f)(xs), expected, rtol=1e-9)
        np.testing.assert_allclose([hx.grad(f)(x) for x in xs], slopes, rtol=1e-8)
        np.testing.assert_allclose(hx.jit(hx.vmap(hx.grad(f)))(xs), slopes, rtol=1e-8)
        np.testing.assert_allclose(hx.grad(hx.checkpoint(f))(xs[0]), slopes[0], rtol=1e-8)
        np.testing.assert_allclose(hx.jvp(f, (xs[1],), (1.0,))[1], slopes[1], rtol=1e-8)


@pytest.mark.parametrize("seed", [2, 5, *[pytest.param(n, marks=pytest.mark.sweep) for n in range(6, 20)]])
@pytest.mark.parametrize("transform", [lambda f: f, hx.jit, hx.checkpoint, hx.grad], ids=["no", "jit", "remat", "grad"])
def test_references_of_the_surroundings_are_written_once_by_each_call(seed, transform):
    block = draw_block(np.random.default_rng(seed + 100), 3, [*KINDS, "until"])
    refs, cells = [hx.new_ref(0.1 * k) for k in range(3)], [Cells(0.1 * k) for k in range(3)]

    def f(x):
        execute(Compiled, block, refs, lax.stop_gradient(x))
        return x * refs[0][...]

    transformed = transform(f)
    for x in (0.3, 0.7):
        y = transformed(x)
        execute(InPython, block, cells, x)
        expected = cells[0][...] * (1 if transform is hx.grad else x)
        np.testing.assert_allclose(y, expected, rtol=1e-4)
        np.testing.assert_allclose([ref[...] for ref in refs], [cell[...] for cell in cells], rtol=1e-4)


def test_without_jit_bodies_write_references_in_python():
    block = draw_block(np.random.default_rng(7), 3, KINDS)
    with hx.disable_jit():
        y = program(Compiled, block)(0.4)
    np.testing.assert_allclose(y, program(InPython, block)(0.4), rtol=1e-4)


def test_second_derivatives_through_a_loop_that_writes():
    def f(x):
        ref = hx.new_ref(x)
        lax.fori_loop(0, 3, lambda i, c: (ref.__setitem__(..., ref[...] * x), c)[1], 0)
        return ref[...]

    np.testing.assert_allclose(f(2.0), 16.0)
    np.testing.assert_allclose(hx.grad(hx.grad(lambda x: f(x)))(2.0), 12 * 2.0**2)
    np.testing.assert_allclose(hx.jit(hx.hessian(f))(2.0), 12 * 2.0**2)


def test_a_test_of_a_loop_may_use_references_of_two_levels():
    outside = hx.new_ref(0)

    def f(x):
        inside = hx.new_ref(x)

        def test(c):
            outside[...] += 1
            return inside[...] + c < 20

        lax.while_loop(test, lambda c: (inside.__setitem__(..., inside[...] * 2), c + 1)[1], 0)
        return inside[...]

    assert [int(f(1)), int(outside[...])] == [16, 5]
    assert [int(hx.jit(f)(3)), int(outside[...])] == [24, 9]


INDICES = [
    ..., 1, -1, slice(1, 3), (0, 2), (slice(None), 1), ([0, 0, 1], [1, 2, 3]), (slice(None, None, 2), slice(1, 3)),
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_indices_are_those_of_numpy(index):
    start = np.arange(12, dtype=np.float32).reshape(3, 4)
    ref, plain = hx.new_ref(start), start.copy()
    np.testing.assert_array_equal(ref[index], plain[index])
    value = np.float32(7) + plain[index]
    ref[index] = value
    plain[index] = value
    np.testing.assert_array_equal(ref[...], plain)
    before = hx.ref.swap(ref, index, value * 2)
    np.testing.assert_array_equal(before, plain[index])
    plain[index] = value * 2
    ref[index] += 1
    plain[index] += 1
    np.testing.assert_array_equal(hx.ref.get(ref), plain)
    hx.ref.addupdate(ref, index, 1.0)
    np.add.at(plain, index, 1.0)
    np.testing.assert_array_equal(hx.freeze(ref), plain)
    np.testing.assert_array_equal(start, np.arange(12).reshape(3, 4))


def test_a_mapped_index_reads_a_shared_reference():
    ref = hx.new_ref(hnp.arange(4.0) * 2)
    np.testing.assert_array_equal(hx.vmap(lambda i: ref[i])(hnp.array([3, 1])), [6.0, 2.0])


def test_a_reference_keeps_shape_dtype_and_strength():
    ref = hx.new_ref(1.0)
    ref[...] = 2
    assert (ref.shape, ref.dtype, ref.ndim, ref.size, ref[...].weak_type) == ((), np.float32, 0, 1, False)
    assert repr(ref) == "Ref(2., dtype=float32)"


def test_an_effect_and_a_reference_cross_the_same_loop():
    ref = hx.new_ref(0)

    def f():
        def body(c, x):
            hx.modify("n", lambda n: n + x)
            ref[...] += hx.get("n")
            return c, ref[...]

        return lax.scan(body, None, hnp.arange(4))[1]

    s, ys = hx.handle(hx.library.state, {"n": 0})(hx.jit(f))()
    assert int(s["n"]) == 6
    np.testing.assert_array_equal(ys, [0, 1, 4, 10])
    assert int(ref[...]) == 10


def test_a_block_of_a_handler_may_make_references():
    with hx.handle(hx.library.state, {"n": 1}):
        ref = hx.new_ref(2)
        ref[...] += hx.get("n")
    assert int(ref[...]) == 3

    def f(x):
        with hx.handle(hx.library.state, {"n": 1}):
            inner = hx.new_ref(x)
            inner[...] *= inner[...]
            y = inner[...]
        return y

    np.testing.assert_allclose(hx.vmap(f)(hnp.array([3.0, 2.0])), [9.0, 4.0])


def test_a_backward_rule_writes_a_reference_that_it_closes_over():
    seen = hx.new_ref(0.0)

    @hx.custom_vjp
    def stash(x):
        return x

    stash.defvjp(lambda x: (x, None), lambda _, ct: (seen.__setitem__(..., ct), (ct,))[1])
    np.testing.assert_allclose(hx.grad(lambda x: hnp.sin(stash(x)))(1.0), np.cos(1.0), rtol=1e-6)
    np.testing.assert_allclose(seen[...], np.cos(1.0), rtol=1e-6)


KEPT = []


@pytest.mark.handlax(leaks=False)  # references that outlive their trace are among the mistakes
@pytest.mark.parametrize(
    ("mistake", "error", "words"),
    [
        (lambda r: hx.vmap(lambda x: r.__setitem__(..., x))(hnp.arange(3.0)), errors.CannotCross, "share"),
        (lambda r: hx.vmap(lambda x: (r.__setitem__(..., 1.0), x)[1])(hnp.arange(3.0)), errors.CannotCross, "share"),
        (lambda r: hx.vmap(lambda x: lax.cond(x > 1, lambda: r.__setitem__(..., 1.0), lambda: None))(hnp.arange(3.0)),
         errors.CannotCross, "diverge"),
        (lambda r: hx.grad(lambda x: (r.__setitem__(..., x), x)[1])(1.0), errors.NotDifferentiable, "stop_gradient"),
        (lambda r: hx.grad(lambda x: hx.jit(lambda y: (r.__setitem__(..., y), y)[1])(x))(1.0),
         errors.NotDifferentiable, "stop_gradient"),
        (lambda r: hnp.sin(r), errors.NotAnArray, "present value"),
        (lambda r: hx.new_ref(r), errors.NotAnArray, "present value"),
        (lambda r: hx.new_ref(1.0, kind="no_grad_no_remat"), errors.BadArgument, "kind must be left out"),
        (lambda r: hx.new_ref(1.0, pin=True), errors.BadArgument, "pin must be left out"),
        (lambda r: r.__setitem__(..., hnp.arange(1)[0]), errors.DTypeMismatch, "astype"),
        (lambda r: r.__setitem__(..., hnp.zeros(2)), errors.ShapeMismatch, "does not fit"),
        (lambda r: hx.jit(lambda: r)(), errors.NotAnArray, "Ref"),
        (lambda r: hx.jit(lambda x: hx.new_ref(x))(1.0), errors.NotAnArray, "Ref"),
        (lambda r: lax.scan(lambda c, x: (c, r), 0, None, length=2), errors.NotAnArray, "present value"),
        (lambda r: (hx.freeze(r), r[...]), errors.DeletedArray, "frozen"),
        (lambda r: hx.jit(lambda: hx.freeze(r))(), errors.BadCall, "where it was made"),
        (lambda r: (hx.jit(lambda x: (KEPT.append(hx.new_ref(x)), x)[1])(1.0), KEPT[-1][...]),
         errors.EscapedBox, "has ended"),
        (lambda r: (hx.grad(lambda x: (KEPT.append(hx.new_ref(x)), x)[1])(1.0),
                    hx.jit(lambda: KEPT[-1].__setitem__(..., 1.0))()), errors.EscapedBox, "has ended"),
        (lambda r: hx.grad(lambda q: q[...])(r), errors.NotDifferentiable, "Ref"),
    ],
)
def test_what_has_no_one_meaning_is_refused(mistake, error, words):
    ref = hx.new_ref(1.0)
    with pytest.raises(error, match=words):
        mistake(ref)
    assert ref.frozen or float(ref[...]) == 1.0


def test_a_frozen_reference_is_refused_by_a_function_traced_before():
    ref = hx.new_ref(1.0)
    read = hx.jit(lambda: ref[...] + 1)
    assert float(read()) == 2.0
    hx.freeze(ref)
    with pytest.raises(errors.DeletedArray, match="frozen"):
        read()


def test_an_empty_reference_is_written_and_a_free_one_is_gone():
    def f(x):
        ref = hx.empty_ref(hx.ShapeDtypeStruct((3,), "float32"))
        ref[...] = x * 2
        ref[1] += 1
        y = ref[...]
        hx.free_ref(ref)
        return y

    for g in (f, hx.jit(f), lambda x: hx.vmap(f)(x[None])[0]):
        assert g(hnp.arange(3.0)).tolist() == [0.0, 3.0, 4.0]
    ref = hx.new_ref(1.0)
    hx.free_ref(ref)
    with pytest.raises(errors.DeletedArray):
        ref[...]
    with pytest.raises(errors.BadArgument):
        hx.empty_ref(hx.ShapeDtypeStruct((3,), "float32"), pin=True)


def test_a_reference_made_in_a_scope_outlives_it():
    with hx.named_scope("scope"):
        ref = hx.new_ref(1.0)
    ref[...] += 1.0
    assert ref[...] == 2.0 and hx.freeze(ref) == 2.0


def test_the_type_of_a_reference_is_that_of_what_it_holds():
    ref = hx.new_ref(hnp.ones((2, 3)))
    kind = hx.typeof(ref)
    assert kind == hx.typeof(hx.new_ref(hnp.zeros((2, 3)))) == hx.core.get_aval(ref) != hx.typeof(hnp.ones((2, 3)))
    assert (kind.inner_aval, kind.shape, kind.dtype) == (hx.typeof(ref[...]), (2, 3), np.float32)
    assert str(kind) == "Ref{f32[2,3]}" and hash(kind) == hash(hx.typeof(ref)) and len({kind, hx.typeof(ref)}) == 1
    assert hx.jit(lambda r: [hx.typeof(r) == kind, r[0, 0]][1])(ref) == 1
