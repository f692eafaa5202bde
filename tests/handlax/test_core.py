"""Programs under JAX's names: read by code that knows jaxprs."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax import core, errors
from handlax import numpy as hnp


def test_a_tracer_is_a_value_that_is_not_known():
    seen = []
    hx.jit(lambda x: seen.append(x))(1.0)
    hx.grad(lambda x: (seen.append(x), x)[1])(1.0)
    assert [isinstance(x, core.Tracer) for x in (*seen, hnp.float32(1.0), 1.0)] == [True, True, False, False]


def test_an_interpreter_of_equations_gives_the_results_of_the_function():
    def f(x):
        return hnp.sin(x) * np.float32([1.0, 2.0]), x

    program = hx.make_jaxpr(f)(3.0)
    assert isinstance(program, core.ClosedJaxpr) and isinstance(program.jaxpr, core.Jaxpr)
    values = dict(zip(program.invars, [hnp.float32(3.0)]))
    read = lambda atom: atom.val if isinstance(atom, core.Literal) else values[atom]
    for equation in program.eqns:
        assert isinstance(equation, core.JaxprEqn) and all(isinstance(v, core.Var) for v in equation.outvars)
        y = equation.primitive.bind(*map(read, equation.invars), **equation.params)
        values.update(zip(equation.outvars, y if equation.primitive.multiple_results else [y]))
    found = [read(atom) for atom in program.outvars]
    for ys in (found, core.eval_jaxpr(program, program.consts, 3.0), core.jaxpr_as_fun(program)(3.0)):
        assert all(np.allclose(y, z) for y, z in zip(ys, f(3.0), strict=True))
    core.check_jaxpr(program)
    with pytest.raises(errors.BadArgument, match="takes"):
        core.eval_jaxpr(program, program.consts, 1.0, 2.0)


def test_types_are_shaped_arrays():
    assert core.ShapedArray((2,), np.dtype("float32")) == hx.typeof(np.ones(2, "float32")) == core.get_aval(hnp.ones(2))
    assert hx.make_jaxpr(lambda x: x)(1.0).effects == core.no_effects


@pytest.mark.parametrize(("dtype", "weak", "tangent"), [
    ("float32", False, "float32"), ("complex64", True, "complex64"),
    ("int32", True, "float0"), ("bool", False, "float0"),
])
def test_types_have_the_names_of_shaped_arrays(dtype, weak, tangent):
    t = core.ShapedArray((2,), dtype, weak)
    expected = hx.float0 if tangent == "float0" else np.dtype(tangent)
    assert t.to_tangent_aval() == t.to_ct_aval() == t.at_least_vspace() == core.ShapedArray((2,), expected, weak)
    assert t.strip_weak_type() == core.ShapedArray((2,), dtype)


def test_a_program_has_a_variable_for_each_constant():
    table = hnp.arange(3.0)
    p = hx.make_program(lambda x: x * table + 2.0)(1.0)
    assert [v.aval for v in p.constvars] == [hx.typeof(c) for c in p.consts]
    assert len({*p.constvars}) == len(p.consts) > 0
    environment = dict(zip(p.constvars, p.consts, strict=True))
    assert not any(x in environment for eqn in p.eqns for x in eqn.invars if not isinstance(x, core.Literal))


def test_a_program_is_evaluated_with_other_constants():
    p = hx.make_program(lambda x: x * hnp.arange(3.0))(1.0)
    for constants in ([np.ones(3, np.float32)], [hnp.ones(3)]):
        assert core.eval_jaxpr(p, constants, 2.0)[0].tolist() == [2.0, 2.0, 2.0]
        assert hx.grad(lambda x: core.eval_jaxpr(p, constants, x)[0].sum())(2.0) == 3.0
    assert hx.grad(lambda c: core.eval_jaxpr(p, [c], 2.0)[0].sum())(hnp.ones(3)).tolist() == [2.0, 2.0, 2.0]
    for wrong in ([], [np.ones(3)], [np.ones(2, np.float32)], [1.0], [*p.consts, 1.0]):
        with pytest.raises(errors.BadArgument, match="eval_jaxpr: the constants must be those of the equations"):
            core.eval_jaxpr(p, wrong, 2.0)


def test_constants_that_have_become_strong_are_those_of_the_equations():
    table = hnp.arange(3.0)
    p = hx.make_program(lambda x: (x * 6.0) * table * x)(1.0)
    assert any(c.weak_type for c in p.consts)
    strong = [hx.ShapeDtypeStruct(c.shape, c.dtype) for c in p.consts]
    assert hx.eval_shape(lambda consts: core.eval_jaxpr(p, consts, 2.0), strong)[0].shape == (3,)
    given = [c.astype(c.dtype) for c in p.consts]
    for evaluated in (core.eval_jaxpr, hx.jit(core.eval_jaxpr, static_argnums=0)):
        assert evaluated(p, given, 2.0)[0].tolist() == [0.0, 24.0, 48.0]
    assert core.ClosedJaxpr(p, given) == p


def test_names_of_what_programs_are_made_of():
    program = core.get_aval(1.0)
    assert isinstance(program, core.ShapedArray) and core.ShapedArray((), "float32", weak_type=True) == program
    with core.eval_context():
        assert not isinstance(hnp.ones(2) + 1, core.Tracer)
