"""Every operation is a primitive: its parameters, under JAX's names, lead back to it."""

import importlib
import itertools

import numpy as np
import pytest
from laws.test_laws import CASES_OF

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.core import Literal
from handlax.effects.programs.operation_names import every_operation
from handlax.effects.programs.primitives import primitive_of
from handlax.extend.core import Primitive, primitives
from handlax.testing.operation_laws import results

OURS = sorted([k for k in every_operation() if k.__module__.startswith("handlax.")], key=lambda kind: kind.name)


def a_draw(case):
    dtype = min(case.dtypes, key=lambda d: (d.name != "float64", d.name))
    return case.draw(dtype, case.shapes[0], np.random.default_rng(0))


@pytest.mark.parametrize("kind", CASES_OF, ids=lambda kind: kind.name)
def test_the_parameters_of_an_operation_lead_back_to_it(kind):
    primitive = primitive_of(kind)
    for case in CASES_OF[kind]:
        params, operands = case.op.as_params(), a_draw(case)
        assert kind.from_params(params) == case.op
        y = primitive.bind(*operands, **params)
        bound = y if primitive.multiple_results else [y]
        assert isinstance(y, list) == primitive.multiple_results
        for a, b in zip(bound, results(case.op, operands), strict=True):
            assert a.aval == b.aval
            if not hx.dtypes.issubdtype(a.dtype, hx.dtypes.extended):
                np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_every_operation_has_one_primitive():
    for kind in OURS:
        primitive = primitive_of(kind)
        assert isinstance(primitive, Primitive) and primitive.operation is kind and primitive is primitive_of(kind)
        assert getattr(lax, f"{kind.name}_p") is primitive is getattr(primitives, f"{kind.name}_p")
        assert primitive.name == (kind.primitive_name or kind.name) and f"{kind.name}_p" in dir(primitives)


@pytest.mark.parametrize("name", [
    "custom_jvp_call", "custom_vjp_call", "jit", "pjit", "closed_call", "remat", "scatter_add", "while",
])
def test_the_names_of_jax_are_listed(name):
    assert f"{name}_p" in dir(primitives) and getattr(primitives, f"{name}_p") is getattr(lax, f"{name}_p")


def test_no_two_operations_share_the_name_of_a_primitive():
    names = [name for kind in OURS for name in {kind.name, primitive_of(kind).name, *kind.primitive_aliases}]
    assert len(names) == len({*names})


def replay(program, operands):
    """The results of a program, each equation performed by its primitive."""
    values = dict(zip(program.invars, operands))
    read = lambda atom: atom.val if isinstance(atom, Literal) else values[atom]
    for equation in program.eqns:
        params = equation.primitive.get_bind_params(equation.params)
        y = equation.primitive.bind(*map(read, equation.invars), **params)
        values.update(zip(equation.outvars, y if equation.primitive.multiple_results else [y]))
    return [read(atom) for atom in program.outvars]


@hx.custom_jvp
def halved_slope(x):
    return hnp.sin(x)


@hx.custom_vjp
def backward_only(x):
    return hnp.cos(x)


halved_slope.defjvp(lambda xs, dxs: (halved_slope(*xs), dxs[0] / 2))
backward_only.defvjp(lambda x: (backward_only(x), x), lambda x, ct: (3 * ct,))

HIGHER = {
    "jit": (lambda x: hx.jit(lambda y: y * x)(x + 1), {"jaxpr", "name", "inline", "keep_unused", "donated_invars"}),
    "cond": (lambda x: lax.cond(x[0] > 0, lambda: x, lambda: x * x), {"branches"}),
    "scan": (
        lambda x: lax.scan(lambda c, y: (c + y * x.sum(), c), 0.0, x, reverse=True),
        {"jaxpr", "num_consts", "num_carry", "length", "reverse", "linear", "unroll", "_split_transpose"}),
    "while": (
        lambda x: lax.while_loop(lambda c: c.sum() < x.sum() * 9, lambda c: c + x, x),
        {"cond_jaxpr", "cond_nconsts", "body_jaxpr", "body_nconsts"}),
    "custom_jvp_call": (halved_slope, {"call_jaxpr", "num_consts", "jvp_jaxpr_fun", "symbolic_zeros"}),
    "custom_vjp_call": (backward_only, {"call_jaxpr", "num_consts", "rule", "symbolic_zeros"}),
    "checkpoint": (hx.checkpoint(hnp.sin), {"jaxpr", "policy", "prevent_cse", "differentiated"}),
}


@pytest.mark.parametrize("name", HIGHER)
def test_operations_with_bodies_have_the_parameters_of_jax(name):
    f, params = HIGHER[name]
    x = hnp.array([0.5, 1.5, 2.0])
    program = hx.make_jaxpr(f)(x)
    equation = next(eqn for eqn in program.eqns if eqn.primitive.name == name)
    assert params - {"shared"} <= {*equation.params} <= params | {"shared"}
    replayed = lambda x: replay(program, [x])
    for ours, expected in itertools.product([replayed, hx.jit(replayed)], [f]):
        for y, z in zip(ours(x), hx.tree.leaves(expected(x)), strict=True):
            np.testing.assert_allclose(y, z, rtol=1e-6)
    slope = lambda g: hx.jvp(lambda x: hx.tree.leaves(g(x)), (x,), (x,))[1]
    for y, z in zip(slope(replayed), slope(f), strict=True):
        np.testing.assert_allclose(y, z, rtol=1e-6)


def test_constants_of_a_while_belong_to_its_bodies():
    x = hnp.array([0.5, 1.5, 2.0])
    (equation,) = [eqn for eqn in hx.make_jaxpr(HIGHER["while"][0])(x).eqns if eqn.primitive.name == "while"]
    test, body = equation.params["cond_jaxpr"], equation.params["body_jaxpr"]
    m, n = equation.params["cond_nconsts"], equation.params["body_nconsts"]
    consts = [v.aval for v in equation.invars]
    assert test.in_avals == (*consts[:m], *consts[m + n :]) and body.in_avals == (*consts[m : m + n], *consts[m + n :])


def test_parameters_that_have_one_value_may_be_left_out():
    x = hnp.arange(6.0)
    assert lax.reshape_p.bind(x, new_sizes=(2, 3)).shape == (2, 3)
    assert lax.reshape_p.bind(x, new_sizes=(2, 3), dimensions=None, sharding=None).shape == (2, 3)
    with pytest.raises(hx.errors.BadStaticArgument, match="reshape: dimensions must be None"):
        lax.reshape_p.bind(x, new_sizes=(2, 3), dimensions=(0,))
    with pytest.raises(hx.errors.BadCall, match="reshape: it has no parameter 'shape'"):
        lax.reshape_p.bind(x, shape=(2, 3))
    with pytest.raises(hx.errors.BadCall, match="misses its field"):
        lax.reshape_p.bind(x)


def test_modules_without_the_primitive_say_so():
    for module in (lax, primitives, importlib.import_module("handlax.effects.programs.primitives")):
        with pytest.raises(AttributeError, match="no attribute 'nothing_p'"):
            module.nothing_p
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            module.nothing


@pytest.mark.parametrize("f", [halved_slope, backward_only], ids=["custom_jvp", "custom_vjp"])
def test_the_body_of_a_function_with_a_rule_is_bound_as_a_function(f):
    x = hnp.array([0.5, 1.5])
    (equation,) = hx.make_jaxpr(f)(x).eqns
    params = equation.primitive.get_bind_params(equation.params)
    assert "call_jaxpr" not in params
    np.testing.assert_array_equal(params["subfuns"][0].call_wrapped(x)[0], f(x))
    again = lambda x: equation.primitive.bind(x, **params)[0]
    np.testing.assert_array_equal(hx.grad(lambda x: again(x).sum())(x), hx.grad(lambda x: f(x).sum())(x))
    for others in ((), (hnp.sin,), (*params["subfuns"], hnp.sin)):
        with pytest.raises(hx.errors.BadCall, match="subfuns must be the body of an equation"):
            equation.primitive.bind(x, **{**params, "subfuns": others})
