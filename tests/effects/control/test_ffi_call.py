"""Foreign functions as operations: values, layouts, attributes, lanes, derivatives, effects, errors."""

import pickle

import numpy as np
import pytest
from helpers import foreign_library
from helpers.foreign_library import calls_of, count

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.effects.types.array_type import array_type
from handlax.ffi import FfiCall, FfiEffect, ffi_call
from handlax.lowering.compile.foreign_calls import _sharding_rule
from handlax.testing import OPERATION_LAWS, check_operation
from handlax.testing.operation_laws import assert_preserved

INFO = hx.ShapeDtypeStruct((), "int32")
COLUMNS = (1, 0)
L = {"uplo": np.uint8(ord("L"))}


def definite(seed, *lanes):
    x = np.random.default_rng(seed).normal(size=(*lanes, 3, 3)).astype("float32")
    return x @ np.swapaxes(x, -1, -2) + np.eye(3, dtype="float32")


def cholesky(x, method=None, **options):
    call = ffi_call(
        "lapack_spotrf_ffi", [x, INFO], vmap_method=method, input_layouts=[COLUMNS], output_layouts=[COLUMNS, None],
        input_output_aliases={0: 0}, **options,
    )
    return hnp.tril(call(x, **L)[0])


def solve(a, b, method=None, **options):
    """x of a x = b, a lower triangular."""
    call = ffi_call(
        "lapack_strsm_ffi", b, vmap_method=method, input_layouts=[COLUMNS] * 2, output_layouts=COLUMNS, **options
    )
    letters = {"side": "L", "uplo": "L", "trans_x": "N", "diag": "N"}
    return call(a, b, **{name: np.uint8(ord(letter)) for name, letter in letters.items()})


# calls


def test_a_call_gives_the_same_eagerly_compiled_and_in_loops():
    x = definite(0)
    expected = np.linalg.cholesky(x)
    for f in (cholesky, hx.jit(cholesky), hx.checkpoint(cholesky), lambda x: lax.cond(True, cholesky, lambda x: x, x)):
        np.testing.assert_allclose(f(x), expected, rtol=1e-5)
    _, ys = lax.scan(lambda c, x: (c, cholesky(x)), 0, definite(1, 4))
    np.testing.assert_allclose(ys, np.linalg.cholesky(definite(1, 4)), rtol=1e-5, atol=1e-6)


def test_results_have_the_structure_that_was_declared():
    x = definite(0)
    for like, kind in (([x, INFO], list), ((x, INFO), tuple), ({"a": x, "b": INFO}, dict)):
        y = ffi_call("lapack_spotrf_ffi", like)(x, **L)
        assert type(y) is kind
    assert isinstance(ffi_call("lapack_strsm_ffi", x)(x, x, side=L["uplo"], uplo=L["uplo"], trans_x=np.uint8(ord("N")),
                                                      diag=np.uint8(ord("N"))), hx.Array)


def test_a_program_with_a_call_is_preserved_by_text_and_pickle():
    program = hx.make_program(lambda x: ffi_call("f", x)(x, n=3, t=(1, 2.5), m={"a": np.arange(3.0)}, s='"'))(1.0)
    assert_preserved(program)
    assert pickle.loads(pickle.dumps(program)) == program
    assert program != hx.make_program(lambda x: ffi_call("f", x)(x, n=3.0, t=(1, 2.5)))(1.0)


def test_the_operation_is_one_that_handlers_answer():
    seen = hx.handler({FfiCall: lambda op, x: (2 * x,)})
    assert hx.handle(seen)(lambda x: ffi_call("nowhere", x)(x))(3.0) == 6.0
    with hx.rules(evaluate={FfiCall: lambda op, x: (3 * x,)}):
        assert ffi_call("nowhere", hx.ShapeDtypeStruct((), "float32"))(3.0) == 9.0


def test_a_layout_is_an_order_of_dimensions_the_last_of_which_is_adjacent_in_memory():
    def line(layout):
        f = lambda x: ffi_call("f", x, input_layouts=[layout], output_layouts=layout)(x)
        text = hx.jit(f).lower(np.zeros((2, 3, 4))).as_text()
        return next(line for line in text.splitlines() if "custom_call" in line)

    assert line(None).count("dense<[2, 1, 0]>") == 2
    assert line((0, 2, 1)).count("dense<[1, 2, 0]>") == 2
    assert line(type("Layout", (), {"major_to_minor": (2, 0, 1)})()).count("dense<[1, 0, 2]>") == 2


def test_what_was_declared_wrongly_is_refused():
    x = np.zeros((2, 3), "float32")
    y = hx.ShapeDtypeStruct((2, 3), "float64")
    for options, message in (
        ({"vmap_method": "vectorized"}, "vmap_method must be one of"),
        ({"custom_call_api_version": 5}, "custom_call_api_version must be"),
        ({"legacy_backend_config": "a"}, "legacy_backend_config is for"),
        ({"input_layouts": [None, None]}, "input_layouts must be one for each array, got 2 for 1"),
        ({"input_layouts": [(0, 0)]}, r"orders of the dimensions, got \(0, 0\) for f32\[2,3\]"),
        ({"output_layouts": (0, 1, 2)}, "orders of the dimensions"),
        ({"input_output_aliases": {1: 0}}, "input_output_aliases must be an operand and a result"),
        ({"input_output_aliases": {0: 1}}, "input_output_aliases"),
        ({"input_output_aliases": {1: 1}}, "input_output_aliases"),
        ({"input_output_aliases": {0: 0}, "output_layouts": (1, 0)}, "same shape, dtype and layout"),
    ):
        with pytest.raises(errors.BadArgument, match=message):
            ffi_call("f", x, **options)(x)
    with pytest.raises(errors.BadArgument, match="same shape, dtype and layout"):
        ffi_call("f", y, input_output_aliases={0: 0})(x)
    with pytest.raises(errors.BadArgument, match="attributes need custom_call_api_version=4"):
        ffi_call("f", x, custom_call_api_version=1)(x, n=3)
    for wrong in (None, hnp.ones(2), object(), 2**64, {1: 2}):
        with pytest.raises(errors.BadArgument, match="ffi_call 'f': "):
            ffi_call("f", x)(x, n=wrong)
    with pytest.raises(errors.BadArgument, match="result_shape_dtypes"):
        ffi_call("f", "float32")


def test_older_versions_take_a_text():
    f = lambda x: ffi_call("f", x, custom_call_api_version=2, legacy_backend_config='a "b"')(x)
    text = hx.jit(f).lower(1.0).as_text()
    assert "api_version = 2 : i32" in text and r'backend_config = "a \22b\22"' in text


@pytest.mark.parametrize("method", ["sequential", "broadcast_all"])
def test_the_laws_of_operations_hold_without_derivatives(method):
    xs = [np.random.default_rng(n).uniform(1, 2, (3, 3)).astype("float32") for n in range(2)]
    (op,) = hx.make_program(lambda a, b: solve(a, b, method))(*xs).ops
    (types,) = [law for law in OPERATION_LAWS if law.name == "tangent_types"]
    check_operation(op, [xs], laws=[law for law in OPERATION_LAWS if "reals" not in law.needs and law is not types])
    with pytest.raises(errors.NotDifferentiable):
        types.check(op, [xs])


# lanes


@pytest.mark.each_choice
@pytest.mark.parametrize("method", ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all"])
@pytest.mark.parametrize("compiled", [False, True])
def test_lanes_are_called_by_the_method(method, compiled):
    a, b = np.linalg.cholesky(definite(2, 4, 5)), np.random.default_rng(3).normal(size=(5, 4, 3, 2)).astype("float32")
    f = hx.vmap(hx.vmap(lambda a, b: solve(a, b, method, input_output_aliases={1: 0})), in_axes=(0, 1))
    y = (hx.jit(f) if compiled else f)(a, b)
    np.testing.assert_allclose(y, np.linalg.solve(a, np.swapaxes(b, 0, 1)), rtol=2e-4, atol=1e-5)


def test_the_shapes_that_a_method_gives():
    x, shared = np.zeros((4, 3), "float32"), np.zeros(2, "float32")

    program = lambda method, **options: hx.make_program(hx.vmap(
        lambda x, y: ffi_call("f", [x, y], vmap_method=method, **options)(x, y), in_axes=(0, None)))(x, shared)
    taken = lambda program: [str(t) for op, t in _operands(program) if type(op) is FfiCall]
    assert taken(program("expand_dims")) == ["f32[4,3]", "f32[1,2]"]
    assert taken(program("broadcast_all")) == ["f32[4,3]", "f32[4,2]"]
    assert taken(program("legacy_vectorized")) == ["f32[4,3]", "f32[2]"]
    assert taken(program("expand_dims", input_output_aliases={1: 1})) == ["f32[4,3]", "f32[4,2]"]


def _operands(program):
    return [(op, program.type_of(n)) for op, args in zip(program.ops, program.args) for n in args]


def test_vmap_without_a_method_is_refused():
    with pytest.raises(errors.CannotCross, match="ffi_call: vmap needs a method"):
        hx.vmap(cholesky)(definite(0, 2))


def test_devices_of_a_mesh_call_on_their_pieces():
    mesh = hx.make_mesh((1,), ("i",))
    lanes = hx.vmap(lambda x: cholesky(x, "broadcast_all"))
    f = hx.shard_map(lanes, mesh=mesh, in_specs=hx.P("i"), out_specs=hx.P("i"))
    np.testing.assert_allclose(hx.jit(f)(definite(0, 2)), np.linalg.cholesky(definite(0, 2)), rtol=1e-4, atol=1e-6)


# derivatives


@pytest.mark.parametrize("effectful", [False, True])
def test_a_derivative_is_refused_and_the_message_names_the_remedy(effectful):
    f = lambda x: cholesky(x, has_side_effect=effectful).sum()
    for g in (hx.grad(f), hx.jit(hx.grad(f)), lambda x: hx.jvp(f, (x,), (x,))):
        with pytest.raises(errors.NotDifferentiable, match=r"'lapack_spotrf_ffi'(.|\n)*hx.custom_vjp or hx.custom_jvp"):
            g(definite(0))
    assert hx.grad(lambda x: f(lax.stop_gradient(x)) + x[0, 0])(definite(0))[0, 0] == 1


def test_a_kernel_of_cpp_has_the_derivative_of_its_rule():
    rms_norm = foreign_library.rms_norm()
    reference = lambda x, eps: x / hnp.sqrt((x * x).mean(-1, keepdims=True) + eps)
    x = np.random.default_rng(0).normal(size=(3, 5)).astype("float32")
    np.testing.assert_allclose(rms_norm(x, 1e-3), reference(x, 1e-3), rtol=1e-6)
    np.testing.assert_allclose(hx.jit(hx.vmap(lambda x: rms_norm(x, 1e-3)))(x), reference(x, 1e-3), rtol=1e-6)
    w = np.random.default_rng(1).normal(size=x.shape).astype("float32")
    loss = lambda f: lambda x: (w * f(x, 1e-3)).sum()
    for transform in (hx.grad, lambda f: hx.jit(hx.grad(f)), lambda f: hx.grad(hx.checkpoint(f))):
        np.testing.assert_allclose(transform(loss(rms_norm))(x), hx.grad(loss(reference))(x), rtol=1e-4, atol=1e-6)


# attributes and errors


def test_attributes_reach_the_function_with_their_types():
    foreign_library.library()
    call = ffi_call("test_attributes", hx.ShapeDtypeStruct((6,), "float64"))
    values = dict(i=-(2**62), d=0.1, b=True, s="four", a=np.float32([1, 2.5]), more={"n": np.int32(7)})
    for f in (lambda: call(**values), hx.jit(lambda: call(**values))):
        assert f().tolist() == [-(2.0**62), 0.1, 1.0, 4.0, 3.5, 7.0]
    with pytest.raises(errors.ExecutionError, match="INVALID_ARGUMENT"):
        call(**{**values, "i": 3.0})


@pytest.mark.parametrize("donated", [False, True])
def test_an_error_of_the_function_is_one_of_the_program_with_its_message(donated):
    rms_norm = foreign_library.rms_norm()
    f = lambda x: rms_norm(x, -1.0)
    for g in (f, hx.jit(f, donate_argnums=(0,) if donated else ()), hx.jit(lambda x: lax.map(f, x))):
        with pytest.raises(errors.ExecutionError, match="eps must not be negative") as caught:
            hx.block_until_ready(g(hnp.ones((2, 3))))
        assert isinstance(caught.value, errors.JaxRuntimeError) and caught.value.where.startswith("at ")


def test_a_function_that_is_not_registered_is_a_compile_error():
    for options in ({}, {"custom_call_api_version": 2}):
        f = ffi_call("nowhere", INFO, **options)
        for g in (f, hx.jit(f)):
            with pytest.raises(errors.CompileError, match=r"'nowhere'(.|\n)*hx.ffi.register_ffi_target"):
                g()


# effects


def test_an_effect_is_called_each_time_and_a_pure_call_only_if_its_result_is_used():
    for f in (count, hx.jit(count)):
        assert calls_of(f, 1.0) == 1
    assert calls_of(hx.jit(lambda x: count(count(x))), 1.0) == 2
    assert calls_of(hx.jit(lambda x: lax.fori_loop(0, 5, lambda i, x: count(x), x)), 1.0) == 5
    assert calls_of(hx.jit(lambda x: count(x, effectful=False)), 1.0) == 0
    bounded = lambda x: lax.while_loop(lambda i: (count(x + i), i < 3)[1], lambda i: i + 1, 0)
    assert calls_of(bounded, 1.0) == calls_of(hx.jit(bounded), 1.0) == 4
    assert calls_of(hx.jit(hx.grad(hx.checkpoint(lambda x: x * count(lax.stop_gradient(x))))), 1.0) == 1
    (effect,) = hx.make_program(count)(1.0).effects
    assert isinstance(effect, FfiEffect)


def test_an_effect_in_lanes_is_called_as_the_method_says():
    x = np.zeros(4, "float32")
    for compile in (lambda f: f, hx.jit):
        assert calls_of(compile(hx.vmap(lambda x: count(x, method="sequential"))), x) == 4
        assert calls_of(compile(hx.vmap(lambda x: count(x, method="broadcast_all"))), x) == 1
        assert calls_of(compile(hx.vmap(lambda x: count(1.0) + x)), x) == 1
        with pytest.raises(errors.CannotCross, match="vmap needs a method"):
            compile(hx.vmap(count))(x)


def test_an_effect_in_lanes_that_diverge_is_called_for_each_that_takes_the_branch_or_refused():
    x = np.arange(4, dtype="float32")
    f = lambda method: hx.vmap(lambda x: lax.cond(x > 0, lambda: count(x, method=method), lambda: x))
    assert calls_of(f("sequential"), x) == calls_of(hx.jit(f("sequential")), x) == 3
    with pytest.raises(errors.CannotCross, match="lanes of vmap diverge"):
        f("broadcast_all")(x)


def test_an_effect_is_answered_by_a_handler():
    counter = hx.handler({FfiEffect: lambda n, op, *xs: (n + 1, ())})
    n, _ = hx.handle(counter, 0)(lambda x: lax.fori_loop(0, 3, lambda i, x: count(x), x))(1.0)
    assert n == 3


def test_effects_in_nested_lanes_are_performed_row_by_row():
    written = hx.handler({FfiEffect: lambda s, op, x: (10 * s + x, (x,))})
    each = ffi_call("count", hx.ShapeDtypeStruct((), "float32"), has_side_effect=True, vmap_method="sequential")
    table = hx.numpy.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    in_branch = lambda x: lax.cond(x > 0, each, lambda x: x, x)
    for f in (each, in_branch, hx.jit(each)):
        assert float(hx.handle(written, 0.0)(hx.vmap(hx.vmap(f)))(table)[0]) == 123456
        assert float(hx.handle(written, 0.0)(hx.vmap(hx.vmap(f), in_axes=1))(table)[0]) == 142536


# devices


def test_an_effect_over_devices_is_called_by_each_in_a_shard_map_and_else_refused():
    mesh = hx.make_mesh((2,), ("i",), devices=hx.devices()[:2])
    xs = hx.device_put(np.arange(4.0), hx.NamedSharding(mesh, hx.P("i")))
    mapped = hx.shard_map(lambda x: count(x), mesh=mesh, in_specs=hx.P("i"), out_specs=hx.P("i"))
    for compile in (lambda f: f, hx.jit):
        assert calls_of(compile(mapped), xs) == 2
        with pytest.raises(errors.CannotCross, match=r"which of 2 devices calls(.|\n)*inside hx.shard_map"):
            compile(count)(xs)
    one = hx.make_mesh((1,), ("i",), devices=hx.devices()[:1])
    assert calls_of(hx.jit(count), hx.device_put(np.arange(4.0), hx.NamedSharding(one, hx.P("i")))) == 1


def test_lanes_over_devices_are_gathered_or_cut_where_the_function_was_registered_so():
    mesh = hx.make_mesh((2,), ("i",), devices=hx.devices()[:2])
    xs = hx.device_put(definite(0, 4), hx.NamedSharding(mesh, hx.P("i")))
    compiled = lambda: hx.jit(hx.vmap(lambda x: cholesky(x, "broadcast_all"))).lower(xs).compile()
    before = compiled()
    hx.ffi.register_ffi_target_as_batch_partitionable("lapack_spotrf_ffi")
    hx.clear_caches()
    after = compiled()
    assert "all-gather" in before.as_text() and "all-gather" not in after.as_text()
    for stage in (before, after):
        np.testing.assert_allclose(stage(xs), np.linalg.cholesky(definite(0, 4)), rtol=1e-4, atol=1e-6)
    assert after(xs).sharding.spec == hx.P("i", None, None)


# lowering rules


def test_the_fields_of_an_operation_are_the_attributes_of_its_call():
    @hx.operation
    class Scaled:
        by: np.float32
        word: str = "a"

        def result_type(op, x):
            return x

        lower = hx.ffi.ffi_lowering("f", operand_layouts=[(0, 1)], backend_config={"n": np.int8(2)})

    text = hx.jit(lambda x: hx.perform(Scaled(np.float32(2)), x)).lower(np.zeros((2, 3))).as_text()
    assert 'backend_config = {by = 2.0 : f32, n = 2 : i8, word = "a"}' in text and "has_side_effect" not in text
    assert "indices_of_shape_operands" not in text
    assert "operand_layouts = [dense<[0, 1]> : tensor<2xindex>], result_layouts = [dense<[1, 0]>" in text


def test_an_effect_of_ones_own_is_a_foreign_call():
    foreign_library.library()

    @hx.effect(vmap="per_lane")
    class Counted:
        calls_host = True

        def result_type(op, x):
            return None

        lower = hx.ffi.ffi_lowering("test_count")

    def f(x):
        hx.perform(Counted(), x)
        return x

    assert calls_of(f, 1.0) == calls_of(hx.jit(f), 1.0) == 1
    assert calls_of(hx.jit(lambda x: lax.fori_loop(0, 4, lambda i, x: f(x), x)), 1.0) == 4
    assert calls_of(hx.vmap(f), np.zeros(3, "float32")) == 3


def test_what_a_lowering_rule_cannot_take_is_refused():
    for options in ({"backend_config": "text"}, {"backend_config": {"n": 1}, "api_version": 2}):
        with pytest.raises(errors.BadArgument, match="backend_config must be a mapping"):
            hx.ffi.ffi_lowering("f", **options)


def test_lanes_are_cut_together_and_other_dimensions_are_factors_of_their_own():
    matrix, vector = array_type((4, 2), "float32"), array_type((4, 3), "float32")
    rule = "#sdy.op_sharding_rule<([i, j])->([i, k], [i, l]) {i=4, j=2, k=3, l=3}, custom>"
    assert _sharding_rule(1, [matrix], [vector, vector]) == rule
    many = _sharding_rule(0, [array_type((1,) * 20, "float32")], [])
    assert "r, s, t, u, v, w, x, y, z, z_1, z_2])" in many and many.count("=1") == 20
