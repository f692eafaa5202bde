"""What the package shares among results outlives ``delete`` and donation, and nobody can write to an array."""

import gc
import warnings

import numpy as np
import pytest

import handlax as hx
from handlax import lax, nn, random
from handlax import numpy as hnp
from handlax.library import memo

ARRAYS = (hnp.array(0.5), hnp.array([0.25, 0.5, 0.75]))
KEY = random.key(1)
PROGRAM = hx.make_program(lambda x: (x, 2.0, hnp.array([1.0, 3.0])))(1.0)
PARSED = hx.parse_program(str(PROGRAM)).unwrap()


def arrays(tree):
    return [x for x in hx.tree.leaves(tree) if isinstance(x, hx.Array)]


def values(tree):
    keys = [hx.dtypes.issubdtype(x.dtype, hx.dtypes.prng_key) for x in arrays(tree)]
    return [np.array(random.key_data(x) if key else x) for x, key in zip(arrays(tree), keys)]


def delete(tree):
    for x in arrays(tree):
        x.delete()


def donate(tree):
    for x in {id(x): x for x in arrays(tree)}.values():
        hx.jit(lambda x: x, donate_argnums=0)(x)


@pytest.fixture(params=[delete, donate])
def end(request):
    return request.param


@hx.effect
class Ask:
    def result_type(op):
        return hx.ArrayType((), "float32")


REIFIED = hx.handler({Ask: hx.ctl(lambda resume, op: resume(hnp.float32(1.0)))})


def at_compile_time():
    def f(x):
        with hx.ensure_compile_time_eval():
            return x, hnp.sin(3.0), hnp.asarray(2.0)

    return hx.jit(f)(1.0)


def untraced():
    with hx.disable_jit():
        return hx.jit(lambda x: (x, 2.0, lax.cond(x > 0, lambda: 3.0, lambda: 4.0)))(1.0)


WAYS = {
    "asarray": lambda: hnp.asarray(2.0),
    "array": lambda: hnp.array(2.0),
    "full": lambda: lax.full((), 2.0),
    "constructor": lambda: hnp.float32(2.0),
    "device_put": lambda: hx.device_put({"a": 2.0, "b": np.float32(1.0)}),
    "key": lambda: random.key(7),
    "zeros_like": lambda: lax.full_like(2.0, 0),
    "result of jit": lambda: hx.jit(lambda x: (x, 2.0))(2.0),
    "cotangent": lambda: hx.value_and_grad(lambda x: x)(2.0),
    "zero cotangent": lambda: hx.grad(lambda x: 2.0)(1.0),
    "tangent": lambda: hx.jvp(lambda x: (x, 3.0), (2.0,), (1.0,)),
    "residual": lambda: hx.vjp(lambda x: x * 2.0, 1.0)[1](1.0),
    "basis": lambda: hx.jacfwd(lambda x: x)(2.0),
    "lanes": lambda: hx.vmap(lambda x: 2.0, axis_size=1, in_axes=None)(1.0),
    "cond": lambda: lax.cond(True, lambda: 2.0, lambda: 3.0),
    "switch": lambda: lax.switch(1, [lambda: 2.0, lambda: 3.0]),
    "scan": lambda: lax.scan(lambda c, _: (c, c), 2.0, None, length=0),
    "while": lambda: lax.while_loop(lambda c: False, lambda c: c, 2.0),
    "fori": lambda: lax.fori_loop(0, 0, lambda i, c: c, 2.0),
    "map": lambda: lax.map(lambda x: 2.0, hnp.arange(1)),
    "checkpoint": lambda: hx.checkpoint(lambda x: (x, 2.0))(1.0),
    "callback": lambda: hx.pure_callback(lambda: np.float32(2.0), hx.ShapeDtypeStruct((), "float32")),
    "memo": lambda: memo(lambda x: (hnp.sin(x), hnp.sin(x)))(2.0),
    "compile time": at_compile_time,
    "disable_jit": untraced,
    "program": lambda: PROGRAM(1.0),
    "parsed program": lambda: PARSED(1.0),
    "resumed program": lambda: hx.handle(REIFIED)(lambda: (hnp.asarray(2.0), hx.perform(Ask())))(),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_result_that_is_gone_is_there_the_next_time(way, end):
    expected = values(WAYS[way]())
    assert expected
    for _ in range(3):
        result = WAYS[way]()
        np.testing.assert_equal(values(result), expected)
        end(result)


def vectors(count):
    return [hnp.arange(3.0) + i for i in range(count)]


def sum_of(x, y):
    return hnp.sum(x + y)


def twice(x, y):
    return x + y, x + y


@hx.custom_vjp
def copied(x, y):
    return x


copied.defvjp(lambda x, y: (x, None), lambda _, ct: (ct, ct))
# derivatives in which one value is several results, at two vectors; what is given to them is a result, too
DERIVATIVES = {
    "gradients": lambda x, y: hx.grad(lambda x, y: hnp.sum(x + y), argnums=(0, 1))(x, y),
    "gradients of leaves": lambda x, y: hx.grad(lambda ws: hnp.sum(sum(ws)))([x, y, x + y]),
    "gradients of a custom rule": lambda x, y: hx.grad(lambda x, y: hnp.sum(copied(x, y)), argnums=(0, 1))(x, y),
    "gradients of a checkpoint": lambda x, y: hx.grad(hx.checkpoint(lambda x, y: hnp.sum(x + y)), (0, 1))(x, y),
    "gradients by numbers": lambda x, y: hx.value_and_grad(lambda x, y: x + y, argnums=(0, 1))(1.0, 2.0),
    "gradients of a constant": lambda x, y: hx.grad(lambda x, y: 3.0, argnums=(0, 1))(x[0], y[0]),
    "gradients of lanes": lambda x, y: hx.vmap(hx.grad(lambda x, y: x + y, argnums=(0, 1)))(x, y),
    "second derivatives": lambda x, y: hx.grad(lambda x: hx.vjp(sum_of, x, y)[1](1.0)[0] @ x)(x),
    "cotangents": lambda x, y: (y, hx.vjp(lambda x, y: x + y, x, x)[1](y)),
    "the cotangent of an identity": lambda x, y: (y, hx.vjp(lambda x: x, x)[1](y)),
    "cotangents of results": lambda x, y: (x, y, hx.vjp(lambda x, y: (x, y), x, y)[1]((x, y))),
    "cotangents of equal results": lambda x, y: hx.vjp(lambda x, y: (y, x), x, y)[1]((x, x)),
    "transposes": lambda x, y: (y, hx.linear_transpose(lambda x, y: x + y, x, x)(y)),
    "tangents": lambda x, y: (x, y, hx.jvp(lambda x: (x + 1, x + 2), (x,), (y,))),
    "tangents of a derivative": lambda x, y: (x, y, hx.linearize(lambda x: (x + 1, x + 2), x)[1](y)),
    "Jacobians of a sum": lambda x, y: hx.jacrev(lambda x, y: x + y, argnums=(0, 1))(x, y),
    "Jacobians": lambda x, y: (hx.jacrev(twice, (0, 1))(x, y), hx.jacfwd(twice, (0, 1))(x, y)),
    "Jacobians by numbers": lambda x, y: (hx.jacrev(twice, (0, 1))(1.0, 2.0), hx.jacfwd(twice, (0, 1))(1.0, 2.0)),
    "Hessians": lambda x, y: hx.hessian(lambda x, y: sum_of(x, y) ** 2, (0, 1))(x, y),
}


def donated_together(results):
    return hx.jit(lambda xs: xs, donate_argnums=0)(arrays(results))


@pytest.mark.parametrize("way", DERIVATIVES)
def test_the_results_of_a_derivative_are_arrays_of_their_own(way):
    expected = values(DERIVATIVES[way](*vectors(2)))
    result = DERIVATIVES[way](*vectors(2))
    np.testing.assert_equal(values(donated_together(result)), expected)
    result = DERIVATIVES[way](*vectors(2))
    for i, x in enumerate(arrays(result)):
        np.testing.assert_equal(np.array(x), expected[i])
        x.delete()


@pytest.mark.parametrize("way", [way for way in WAYS if way != "memo"])  # whose equal values are to be one array
def test_the_results_of_a_call_can_be_donated_together(way):
    expected = values(WAYS[way]())
    for _ in range(2):
        np.testing.assert_equal(values(donated_together(WAYS[way]())), expected)


def test_a_new_array_of_a_number_can_be_deleted():
    for x in (hnp.array(2.0), hnp.array(np.float32(2.0))):
        delete(x)
        assert x.is_deleted()
    shared = hnp.asarray(2.0)
    delete(shared)
    assert not shared.is_deleted() and float(shared) == 2.0


@pytest.mark.parametrize("f", [hnp.array, hnp.copy, lambda x: x.copy(), lambda x: hnp.reshape(x, 3, copy=True)])
@pytest.mark.parametrize("make", [hx.jit(lambda x: x + 1), lambda x: x + 1])
def test_a_copy_outlives_the_array(f, make, end):
    x = make(ARRAYS[1])
    y = f(x)
    end(x)
    gc.collect()
    np.testing.assert_array_equal(np.asarray(y), [1.25, 1.5, 1.75])


def test_a_small_array_that_a_program_captured_outlives_its_end(end):
    f = hx.jit(lambda x: x + captured)
    captured = hx.jit(lambda x: x + 1)(ARRAYS[1])
    assert f(1.0).tolist() == [2.25, 2.5, 2.75]
    end(captured)
    assert f(1.0).tolist() == f(np.float64(1.0)).tolist() == hx.jit(hx.vmap(f))(hnp.ones(1))[0].tolist()


def test_a_large_array_that_a_program_captured_is_the_users(end):
    captured = hnp.arange(1000.0)
    f = hx.jit(lambda x: x + captured)
    f(1.0)
    end(captured)
    with pytest.raises(hx.errors.DeletedArray):
        f(1.0)


def functions():
    for module in (hnp, hnp.linalg, lax, nn, random):
        for name in sorted(vars(module)):
            f = getattr(module, name)
            if callable(f) and not isinstance(f, type) and not name.startswith(("_", "save", "load", "set_", "print")):
                yield f


def attempts(f):
    """Calls of ``f`` with few arguments; most functions take some of them."""
    for args in ((), (2.0,), (3,), (0.5, 0.25), ARRAYS[:1], ARRAYS[1:], ARRAYS[1:] * 2, (KEY,)):
        yield lambda args=args: f(*args)
        if args and args[0] is ARRAYS[1]:
            yield lambda args=args: hx.vjp(f, *args)[0]
            yield lambda args=args: hx.jvp(f, args, args)


def test_no_function_gives_out_what_it_keeps():
    seen, lost = 0, []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for f in functions():
            for call in attempts(f):
                try:
                    first = call()
                except Exception:
                    continue
                results = [x for x in arrays(first) if not any(x is given for given in (*ARRAYS, KEY))]
                expected = values(first)
                delete(results)
                seen += len(results)
                try:
                    np.testing.assert_equal(values(call()), expected)
                except hx.errors.DeletedArray:
                    lost.append(f)
    assert not lost and seen > 400


@pytest.mark.parametrize("make", [
    lambda: hnp.asarray(2.0), lambda: hnp.array([1.0, 2.0]), lambda: hnp.arange(4.0).reshape(2, 2),
    lambda: hnp.arange(4.0) + 1, lambda: hx.jit(lambda x: x + 1)(1.0), lambda: hnp.ones(3, "bfloat16"),
    lambda: hnp.broadcast_to(hnp.arange(2.0), (3, 2)), lambda: hnp.arange(4.0)[1:],
])
def test_nobody_writes_to_an_array(make):
    x = make()
    for view in (np.asarray(x), np.asarray(x, copy=False), np.asarray(x)[...], np.asarray(x).T):
        assert not view.flags.writeable
        with pytest.raises(ValueError):
            view.flags.writeable = True
    if x.dtype != hnp.bfloat16:
        assert not np.from_dlpack(x).flags.writeable
        assert memoryview(np.asarray(x)).readonly


def test_memory_of_the_user_stays_writeable():
    for dtype in ("float32", "bfloat16"):
        memory = np.zeros(3, hnp.dtype(dtype))
        x = hnp.asarray(memory, copy=False)
        assert not np.asarray(x).flags.writeable and memory.flags.writeable
        memory[1] = 5
        assert hnp.asarray(x).tolist() == [0, 5, 0]
