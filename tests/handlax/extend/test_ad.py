"""extend.ad: derivatives of primitives, and the words by which they are declared."""

import numpy as np
import pytest

import handlax as hx
from handlax import errors
from handlax import numpy as hnp
from handlax.core import ShapedArray
from handlax.extend import ad, batching, mlir
from handlax.extend.core import Primitive
from handlax.testing import check_operation

X = hnp.array([1.0, 2.0, 3.0])


def made(name, f, types=lambda *xs, **params: xs[0], several=False):
    """A primitive that computes ``f``, without derivatives."""
    p = Primitive(name)
    p.multiple_results = several
    p.def_impl(f)
    p.def_abstract_eval(types)
    batching.defvectorized(p)
    mlir.register_lowering(p, mlir.lower_fun(f, multiple_results=several))
    return p


def laws_hold(p, *operands, **params):
    check_operation(p.operation.from_params(params), [[np.asarray(x, "float64") for x in operands]])


def test_deflinear_and_deflinear2_are_linear_in_all_operands():
    first = made("doubled", lambda x, *, by: x * by)
    ad.deflinear(first, lambda ct, *, by: [first.bind(ct, by=by)])
    laws_hold(first, [1.0, 2.0], by=3.0)
    seen = []

    def transpose(ct, x, y):
        seen.append((x, y))
        return [ct, -ct]

    second = made("difference", lambda x, y: x - y)
    ad.deflinear2(second, transpose)
    laws_hold(second, [1.0, 2.0], [4.0, 3.0])
    assert any(ad.is_undefined_primal(x) and x.aval.shape == (2,) for operands in seen for x in operands)
    assert hx.grad(lambda x: second.bind(x, 2.0 * x).sum())(X).tolist() == [-1.0] * 3


def test_defjvp_and_defjvp2_are_sums_of_terms():
    product = made("product", lambda x, y: x * y)
    ad.defjvp(product, lambda dx, x, y: dx * y, lambda dy, x, y: x * dy)
    laws_hold(product, [1.0, 2.0], [4.0, 3.0])
    root = made("root", hnp.sqrt)
    ad.defjvp2(root, lambda dx, y, x: dx / (y + y))
    laws_hold(root, [1.0, 2.0])
    first_only = made("first_only", lambda x, y: x * y)
    ad.defjvp(first_only, lambda dx, x, y: dx * y, None)
    assert hx.grad(lambda y: first_only.bind(2.0, y))(3.0) == 0.0
    assert hx.grad(first_only.bind)(2.0, 3.0) == 3.0


def test_defbilinear_transposes_in_each_operand():
    p = made("outer", lambda x, y: hnp.outer(x, y), lambda x, y: ShapedArray((*x.shape, *y.shape), x.dtype))
    batching.fancy_primitive_batchers[p] = lambda axis, xs, dims: (
        hnp.einsum("ni,nj->nij", *[batching.bdim_at_front(x, d, axis.size) for x, d in zip(xs, dims)]), 0)
    ad.defbilinear(p, lambda ct, x, y: ct @ y, lambda ct, x, y: x @ ct)
    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0, 5.0])
    gx, gy = hx.jit(hx.grad(lambda x, y: p.bind(x, y).sum(), argnums=(0, 1)))(x, y)
    assert gx.tolist() == [12.0, 12.0] and gy.tolist() == [3.0] * 3
    assert hx.hessian(lambda x: p.bind(x, x).sum())(x).tolist() == [[2.0, 2.0]] * 2


def test_defjvp_zero_has_no_slope():
    one, two = made("stair", hnp.floor), made("stairs", lambda x: [x, x], lambda x: [x, x], several=True)
    ad.defjvp_zero(one)
    ad.defjvp_zero(two)
    assert hx.grad(one.bind)(1.5) == 0.0 and hx.grad(lambda x: two.bind(x)[1])(1.5) == 0.0


def test_zeros_are_symbolic():
    seen = []

    def derivative(primals, tangents):
        seen.extend(map(type, tangents))
        return p.bind(*primals), ad.add_tangents(tangents[0], tangents[1])

    p = made("sum", lambda x, y: x + y)
    ad.primitive_jvps[p] = derivative
    assert hx.grad(p.bind)(1.0, 2.0) == 1.0 and seen[1] is ad.Zero and seen[0] is not ad.Zero
    zero = ad.Zero.from_primal_value(X)
    assert zero == ad.Zero(hx.typeof(X)) and ad.instantiate_zeros(zero).tolist() == [0.0] * 3
    assert ad.instantiate_zeros(X) is X and ad.add_tangents(zero, X) is X and ad.add_tangents(X, zero) is X
    assert ad.add_jaxvals(X, X).tolist() == [2.0, 4.0, 6.0] and ad.zeros_like_aval(zero.aval).shape == (3,)
    assert ad.Zero.from_primal_value(1).aval.dtype == hx.float0
    tree = [zero, ad.UndefinedPrimal(zero.aval), X]
    assert len(hx.tree.leaves(tree)) == 1 and hx.tree.map(lambda x: x, tree)[:2] == tree[:2]


def test_a_cotangent_of_several_results_may_be_zero():
    seen = []

    def transpose(cts, x):
        seen.append([type(ct) is ad.Zero for ct in cts])
        return [ad.add_tangents(*cts)]

    p = made("copies", lambda x: [x, x], lambda x: [x, x], several=True)
    ad.deflinear2(p, transpose)
    assert hx.grad(lambda x: p.bind(x)[1])(2.0) == 1.0 and seen == [[True, False]]
    laws_hold(p, [1.0, 2.0])


def test_rules_are_given_tuples_so_that_in_axes_of_tuples_fit():
    p = made("tripled", lambda x, y: 3.0 * x + y)

    def rule(primals, tangents):
        assert all(type(dx) is not ad.Zero for dx in tangents)
        return hx.vmap(lambda xs, dxs: (p.bind(*xs), p.bind(*dxs)), in_axes=((0, 0), (0, 0)))(primals, tangents)

    ad.primitive_jvps[p] = rule
    y, dy = hx.jvp(p.bind, (X, X), (X, 2.0 * X))
    assert y.tolist() == (4.0 * X).tolist() and dy.tolist() == (5.0 * X).tolist()


def test_integers_have_no_tangents():
    p = made("scaled", lambda x, n: x * n)
    ad.defjvp(p, lambda dx, x, n: p.bind(dx, n), None)
    ad.primitive_transposes[p] = lambda ct, x, n: [p.bind(ct, n), None]
    assert hx.grad(lambda x: p.bind(x, hnp.int32(3)).sum())(X).tolist() == [3.0] * 3


def test_registries_are_mappings():
    p = made("listed", lambda x: x)
    assert p not in ad.primitive_jvps and ad.primitive_jvps.get(p) is None
    with pytest.raises(errors.MissingRule, match="listed"):
        hx.grad(p.bind)(1.0)
    rule = lambda xs, dxs: (p.bind(*xs), dxs[0])
    ad.primitive_jvps[p] = rule
    assert p in ad.primitive_jvps and ad.primitive_jvps[p] is rule and p in list(ad.primitive_jvps)
    assert ad.primitive_jvps.pop(p) is rule and len(ad.primitive_jvps) == len(list(ad.primitive_jvps))
    ad.primitive_transposes[p] = lambda ct, x: [ct]
    assert ad.get_primitive_transpose(p) is ad.primitive_transposes[p]


def test_a_rule_of_an_operation_of_the_package_is_replaced():
    before = hx.jit(hx.grad(hnp.tan))
    slope = float(before(0.5))
    former = hx.columns.JVP.cell(hx.operations.Tan)
    try:
        ad.primitive_jvps[hx.lax.tan_p] = lambda xs, dxs, **params: (hx.lax.tan_p.bind(*xs, **params), 7.0 * dxs[0])
        assert before(0.5) == 7.0
    finally:
        hx.columns.JVP.assign(hx.operations.Tan, former)
    assert before(0.5) == slope


def test_rules_of_the_package_are_read_in_the_form_of_jax():
    rule = ad.primitive_jvps[hx.lax.mul_p]
    y, dy = rule([X, X], [X, ad.Zero.from_primal_value(X)])
    assert y.tolist() == dy.tolist() == [1.0, 4.0, 9.0]
    y, dy = ad.primitive_jvps[hx.lax.floor_p]([X], [X])
    assert type(dy) is ad.Zero and hx.lax.sin_p in ad.primitive_jvps and hx.lax.sin_p not in ad.primitive_transposes
    total = ad.primitive_transposes[hx.lax.reduce_sum_p]
    assert total(2.0, ad.UndefinedPrimal(hx.typeof(X)), axes=(0,))[0].tolist() == [2.0] * 3
    zero = total(ad.Zero(hx.typeof(1.0)), ad.UndefinedPrimal(hx.typeof(X)), axes=(0,))
    assert zero == [ad.Zero(hx.typeof(X))]
    ct, none = ad.primitive_transposes[hx.lax.mul_p](X, ad.UndefinedPrimal(hx.typeof(X)), X)
    assert ct.tolist() == [1.0, 4.0, 9.0] and none is None
    tripled = made("like_cosine", hnp.cos)
    ad.primitive_jvps[tripled] = ad.primitive_jvps[hx.lax.cos_p]
    assert hx.grad(tripled.bind)(0.5) == hx.grad(hnp.cos)(0.5)


@pytest.mark.parametrize("cts", [lambda ct: ct, lambda ct: [], lambda ct: [ct, ct], lambda ct: [ct[:1]]])
def test_cotangents_are_as_many_as_operands_and_of_their_types(cts):
    p = made("miscounted", lambda x: x)
    ad.deflinear2(p, lambda ct, x: cts(ct))
    with pytest.raises((errors.TreeMismatch, errors.ShapeMismatch), match="miscounted, primitive_transposes: the rule"):
        hx.grad(lambda x: (p.bind(x) * x).sum())(X)


@pytest.mark.parametrize("rule", [
    lambda x, dx: (x[0], dx[0].sum()), lambda x, dx: (x[0][:1], dx[0]), lambda x, dx: x[0],
    lambda x, dx: (x[0], dx[0].astype("float16")), lambda x, dx: ([x[0]], dx[0]),
])
def test_results_and_tangents_of_a_rule_have_the_types_of_the_primitive_s(rule):
    p = made("mistyped", lambda x: x)
    ad.primitive_jvps[p] = rule
    with pytest.raises(errors.HandlaxError, match="mistyped, primitive_jvps: the rule must"):
        hx.jvp(p.bind, (X,), (X,))


def test_a_missing_rule_is_registered_as_the_hint_says():
    p = made("bare", lambda x: x)
    with pytest.raises(errors.MissingRule, match=r"ad\.primitive_jvps\[bare_p\] = rule"):
        hx.jvp(p.bind, (X,), (X,))
