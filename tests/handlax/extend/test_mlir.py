"""extend.mlir: lowering rules in MLIR's values and in functions of arrays, by platform."""

import numpy as np
import pytest

import handlax as hx
from handlax import errors, export
from handlax import numpy as hnp
from handlax.core import ShapedArray
from handlax.extend import mlir
from handlax.extend.core import Primitive

hlo = mlir.dialects.stablehlo
X = hnp.array([1.0, 2.0, 3.0])


def made(name, types=lambda *xs, **params: xs[0], several=False):
    p = Primitive(name)
    p.multiple_results = several
    p.def_abstract_eval(types)
    return p


def test_a_rule_knows_the_types_and_the_module():
    seen = []

    def rule(ctx, x, *, by):
        seen.append((ctx.avals_in, ctx.avals_out, ctx.module_context.platforms, ctx.primitive))
        return [hlo.MulOp(x, mlir.ir_constant(np.full(3, by, "float32"))).result]

    p = made("times")
    mlir.register_lowering(p, rule)
    assert hx.jit(lambda x: p.bind(x, by=2.0))(X).tolist() == [2.0, 4.0, 6.0]
    assert seen == [((hx.typeof(X),), (hx.typeof(X),), ("cpu",), p)]


def test_equal_operations_share_a_function():
    p = made("shared_square")
    mlir.register_lowering(p, lambda ctx, x: [hlo.MulOp(x, x)])
    f = hx.jit(lambda x: p.bind(p.bind(x)) + p.bind(x[:2]).sum())
    assert f.lower(X).as_text().count("func.func private @shared_square") == 2
    assert f(X).tolist() == [6.0, 21.0, 86.0]
    assert hx.jit(lambda x: hx.lax.fori_loop(0, 2, lambda i, c: p.bind(c), x))(X).tolist() == [1.0, 16.0, 81.0]
    assert hx.jit(lambda x: hx.lax.cond(x[0] > 0, p.bind, lambda x: x, x))(X).tolist() == [1.0, 4.0, 9.0]


def test_a_rule_has_several_results_of_any_dtype():
    types = lambda x: [ShapedArray(x.shape, d) for d in ("uint8", "bool", "complex64", "bfloat16")] + [x]
    p = made("several_types", types, several=True)

    def rule(ctx, x):
        made = [hlo.ConvertOp(mlir.aval_to_ir_type(t), x) for t in ctx.avals_out[:1]]
        made += [hlo.compare(x, x, hlo.ComparisonDirectionAttr.get("EQ"))]
        return [*made, mlir.ir_constant(np.full(3, 1j, "complex64")), mlir.ir_constant(hnp.ones(3, "bfloat16")), [x]]

    mlir.register_lowering(p, rule)
    ys = hx.jit(p.bind)(X)
    assert [y.dtype.name for y in ys] == ["uint8", "bool", "complex64", "bfloat16", "float32"]
    assert [np.asarray(y, complex).tolist() for y in ys] == [[1, 2, 3], [1] * 3, [1j] * 3, [1] * 3, [1, 2, 3]]


def test_a_rule_calls_a_function_of_arrays():
    p = made("softened")
    soft = mlir.lower_fun(lambda x, *, by: hx.nn.softmax(x * by), multiple_results=False)
    mlir.register_lowering(p, lambda ctx, x, *, by: [hlo.AddOp(*soft(ctx, x, by=by), *soft(ctx, x, by=by))])
    np.testing.assert_allclose(hx.jit(lambda x: p.bind(x, by=2.0))(X), 2 * hx.nn.softmax(2 * X), rtol=1e-6)


def test_a_rule_is_that_of_the_platform():
    p = made("here")
    mlir.register_lowering(p, mlir.lower_fun(lambda x: x + 1, multiple_results=False), platform="gpu")
    with pytest.raises(errors.MissingRule, match="here: there is no lowering for cpu, only for cuda, rocm"):
        hx.jit(p.bind)(X)
    mlir.register_lowering(p, mlir.lower_fun(lambda x: x + 2, multiple_results=False))
    assert hx.jit(p.bind)(1.0) == 3.0
    mlir.register_lowering(p, mlir.lower_fun(lambda x: x + 3, multiple_results=False), platform="cpu")
    assert hx.jit(p.bind)(1.0) == 4.0


def test_a_rule_of_another_platform_leaves_an_operation_of_the_package_alone():
    former = hx.columns.LOWER.cell(hx.operations.Tan)
    try:
        mlir.register_lowering(hx.lax.tan_p, lambda ctx, x, **params: [x], platform="tpu")
        np.testing.assert_allclose(hx.jit(hnp.tan)(X), np.tan(X), rtol=1e-6)
        mlir.register_lowering(hx.lax.tan_p, lambda ctx, x, **params: [x])
        assert hx.jit(hnp.tan)(X).tolist() == X.tolist()
    finally:
        hx.columns.LOWER.assign(hx.operations.Tan, former)


def test_what_is_not_valid_is_refused():
    p = made("wrong")
    mlir.register_lowering(p, lambda ctx, x: [hlo.ConvertOp(mlir.ir.RankedTensorType.get([2], mlir.dtype_to_ir_type(
        np.dtype("int32"))), x)])
    with pytest.raises(errors.CompileError, match="wrong_0: a lowering rule must build valid operations"):
        hx.jit(p.bind)(X)


@pytest.mark.parametrize("has_side_effect", [False, True])
def test_a_rule_calls_the_host(has_side_effect):
    p, seen = made("on_host"), []

    def on_host(x):
        seen.append(x.tolist())
        return (x[::-1].copy(),)

    def rule(ctx, x):
        results, _, keepalive = mlir.emit_python_callback(
            ctx, on_host, None, [x], ctx.avals_in, ctx.avals_out, has_side_effect=has_side_effect, sharding=None)
        ctx.module_context.add_keepalive(keepalive)
        with pytest.raises(errors.BadArgument, match="sharding must be None"):
            mlir.emit_python_callback(ctx, on_host, None, [], [], [], has_side_effect=False, sharding=hx.P())
        with pytest.raises(errors.BadArgument, match="what emit_python_callback gives"):
            ctx.module_context.add_keepalive(on_host)
        return results

    mlir.register_lowering(p, rule)
    assert hx.jit(lambda x: p.bind(x) * 2.0)(X).tolist() == [6.0, 4.0, 2.0] and seen == [[1.0, 2.0, 3.0]]


@hx.operation
class Doubled:
    def result_type(op, x):
        return x

    def lower(op, emit, x):
        t = "tensor<3xf32>"
        body = f"    %0 = stablehlo.add %arg0, %arg0 : {t}\n    return %0 : {t}\n  }}\n"
        symbol = emit.defined(op, "doubled", lambda name: f"  func.func private @{name}(%arg0: {t}) -> {t} {{\n{body}")
        return emit.call_of(symbol, [x], [x.type])[0]


def test_a_function_enters_the_module_as_text():
    f = hx.jit(lambda x: hx.perform(Doubled(), hx.perform(Doubled(), x)))
    assert f(X).tolist() == [4.0, 8.0, 12.0]
    text = f.lower(X).as_text()
    assert text.count("func.func private @doubled_0") == 1 and text.count("call @doubled_0") == 2


def test_a_program_for_several_platforms_has_the_rule_of_each():
    p = made("by_platform")
    mlir.register_lowering(p, lambda ctx, x: [hlo.AddOp(x, x)], platform="cpu")
    mlir.register_lowering(p, lambda ctx, x: [hlo.MulOp(hlo.AddOp(x, x), x)], platform="cuda")
    for platforms in (["cpu", "cuda"], ["cuda", "cpu"]):
        exported = export.export(hx.jit(p.bind), platforms=platforms)(X)
        assert exported.mlir_module().count("stablehlo.multiply") == 1
        assert exported.call(X).tolist() == [2.0, 4.0, 6.0]


@pytest.mark.parametrize("f", [
    lambda x: [x[:2]], lambda x: [x.astype("int32")], lambda x: [x, x], lambda x: [], lambda x: ["x"],
])
def test_results_of_a_function_have_the_types_of_the_abstract_evaluation(f):
    p = made("other_types")
    mlir.register_lowering(p, mlir.lower_fun(f))
    with pytest.raises(errors.HandlaxError, match="other_types, register_lowering: the rule must give"):
        hx.jit(p.bind)(X)


def test_a_rule_may_give_a_bare_value_and_a_missing_one_is_registered_as_the_hint_says():
    p = made("bare_value")
    with pytest.raises(errors.MissingRule, match=r"mlir\.register_lowering\(bare_value_p, rule\)"):
        hx.jit(p.bind)(X)
    mlir.register_lowering(p, lambda ctx, x: hlo.AddOp(x, x).result)
    assert hx.jit(p.bind)(X).tolist() == [2.0, 4.0, 6.0]


def test_a_lowering_by_a_function_of_arrays_is_a_decomposition():
    p = made("decomposed_square")
    mlir.register_lowering(p, mlir.lower_fun(lambda x, *, by: by * x * x, multiple_results=False))
    op = p.operation.from_params({"by": 3.0})
    assert hx.columns.DECOMPOSE.find(p.operation)(op, X).tolist() == [3.0, 12.0, 27.0]
    mlir.register_lowering(p, lambda ctx, x, *, by: [hlo.MulOp(x, x)])
    assert hx.columns.DECOMPOSE.find(p.operation)(op, X).tolist() == [3.0, 12.0, 27.0]
