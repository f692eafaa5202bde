"""extend.core: equations and programs that code for JAX takes apart, changes and puts together."""

import numpy as np
import pytest
from helpers.third_party import OURS, inverse_of, inverted, side_of

import handlax as hx
from handlax import core, errors, lax
from handlax import numpy as hnp
from handlax.extend import core as extend_core
from handlax.extend.core import DropVar, Literal, Var, new_jaxpr_eqn

TABLE = hnp.arange(3.0)


def f(x):
    return hnp.sin(x) * TABLE + 2.0, lax.scan(lambda c, _: (c * x, c), x, None, length=3)[0]


def test_the_parts_have_the_names_of_jax():
    for name in ("ClosedJaxpr", "DropVar", "Jaxpr", "JaxprEqn", "Literal", "Var", "jaxpr_as_fun"):
        assert getattr(extend_core, name) is getattr(core, name)


def test_a_program_is_closed_over_its_constants():
    program = hx.make_jaxpr(f)(1.0)
    assert isinstance(program, core.ClosedJaxpr) and core.ClosedJaxpr(program.jaxpr, program.consts) == program
    doubled = core.ClosedJaxpr(program.jaxpr, [2 * x for x in program.consts])
    assert type(doubled) is type(program)
    assert doubled == program.replace(consts=doubled.consts) != program
    without = hx.make_jaxpr(hnp.sin)(1.0)
    assert core.ClosedJaxpr(without.jaxpr, []) == without
    with pytest.raises(errors.BadArgument, match="ClosedJaxpr"):
        core.ClosedJaxpr(program.jaxpr, [])


def test_replacing_nothing_gives_the_program_again():
    program = hx.make_jaxpr(f)(1.0)
    again = program.replace(eqns=program.eqns, effects=program.effects, debug_info=None)
    assert again == program == program.replace() and again.consts == program.consts
    assert program.replace(jaxpr=again) == program.replace(consts=program.consts) == program
    assert [eqn.source_info for eqn in again.eqns] == [eqn.source_info for eqn in program.eqns]


def test_equations_are_replaced():
    program = hx.make_jaxpr(f)(1.0)
    cosine = [eqn.replace(primitive=lax.cos_p) if eqn.primitive is lax.sin_p else eqn for eqn in program.eqns]
    longer = [eqn.replace(params={**eqn.params, "length": 4}) if eqn.primitive is lax.scan_p else eqn for eqn in cosine]
    y, z = program.replace(eqns=longer)(0.5)
    np.testing.assert_allclose(y, np.cos(0.5) * np.arange(3) + 2, rtol=1e-6)
    assert z == 0.5**5


def test_the_body_of_a_loop_is_replaced():
    program = hx.make_jaxpr(lambda x: lax.while_loop(lambda c: c < 8 * x, lambda c: c + x, x))(1.0)
    (loop,) = program.eqns
    body = loop.params["body_jaxpr"]
    carry, two = body.invars[-1], Literal(hnp.float32(2.0), body.invars[-1].aval)
    doubling = body.replace(eqns=[eqn.replace([carry, two], primitive=lax.mul_p) for eqn in body.eqns])
    changed = program.replace(eqns=[loop.replace(params={**loop.params, "body_jaxpr": doubling})])
    assert program(1.25) == (10.0,) and changed(1.25) == (10.0,) and changed(1.5) == (12.0,)


def test_a_program_is_put_together():
    program = hx.make_jaxpr(lambda x, y: x + y)(1.0, 2.0)
    x, y = program.invars
    new = Var(99, x.aval)
    eqns = [new_jaxpr_eqn([x, y], [new], lax.mul_p, {}), new_jaxpr_eqn([new, x], program.outvars, lax.sub_p, {})]
    made = program.replace(eqns=eqns)
    assert made(3.0, 5.0) == (12.0,)
    core.check_jaxpr(made)
    assert program.replace(eqns=eqns, outvars=[new])(3.0, 5.0) == (15.0,)
    with pytest.raises(errors.BadArgument, match="a variable must be defined before it is read"):
        program.replace(eqns=eqns[1:])
    with pytest.raises(errors.BadCall, match="a program has no equations"):
        program.replace(equations=eqns)


def test_constants_are_replaced():
    program = hx.make_jaxpr(lambda x: x * TABLE)(1.0)
    assert program.replace(consts=[TABLE + 1.0])(2.0)[0].tolist() == [2.0, 4.0, 6.0]
    with pytest.raises(errors.BadArgument, match="the constants must be those of the equations"):
        program.replace(consts=[])
    with pytest.raises(errors.BadArgument, match="the variables of the constants") as caught:
        program.replace(constvars=(), invars=(*program.constvars, *program.invars))
    assert "convert_constvars_jaxpr" in caught.value.hint
    assert program.replace(constvars=program.constvars) == program


def test_results_that_nothing_reads_are_dropped():
    program = hx.make_jaxpr(lambda x: lax.scan(lambda c, _: (c * x, c), x, None, length=3)[0])(1.0)
    (loop,) = program.eqns
    assert [type(v) for v in loop.outvars] == [Var, DropVar] and str(loop.outvars[1]) == "_"
    assert all(isinstance(v, Var) for v in loop.outvars)


INVERTED = inverted(OURS)
Y = (np.arange(5.0) + 1.0) / 5.0 + 0.5
EXPECTED = {
    "eager": 1.0, "jit": 0.5, "vmap of grad": 1 / (Y * (1 - np.log(Y) ** 2)), "through jit": 0.25,
}


@pytest.mark.parametrize("use", INVERTED)
def test_an_interpreter_of_equations_inverts_functions(use):
    np.testing.assert_allclose(INVERTED[use](), EXPECTED[use], rtol=1e-5)


def test_an_interpreter_names_what_it_does_not_know():
    with pytest.raises(LookupError, match="sin has no inverse"):
        inverse_of(OURS, hnp.sin)(0.5)


@pytest.mark.peer
@pytest.mark.parametrize("use", INVERTED)
def test_an_interpreter_of_equations_does_what_it_does_in_jax(use):
    theirs = np.asarray(inverted(side_of("jax", "interpreters"))[use]())
    np.testing.assert_allclose(INVERTED[use](), theirs, rtol=1e-5)


def test_the_programs_of_equations_are_found():
    program = hx.make_jaxpr(lambda x: hx.jit(lambda x: lax.cond(x > 0, hnp.sin, lambda x: x, x))(x))(1.0)
    (call,) = extend_core.subjaxprs(program)
    branches = list(extend_core.subjaxprs(call))
    assert len(branches) == 2 and branches == list(extend_core.jaxprs_in_params(call.eqns[-1].params))
    assert [list(extend_core.subjaxprs(each)) for each in branches] == [[], []]


def test_new_variables_are_those_of_no_program():
    program = hx.make_jaxpr(lambda x: hnp.sin(x))(1.0)
    one, two = extend_core.gensym(), extend_core.gensym("_")
    (eqn,) = program.eqns
    new = one(eqn.outvars[0].aval)
    assert len({new, one(new.aval), two(new.aval), *program.invars, *eqn.outvars}) == 5
    doubled = new_jaxpr_eqn([new, new], eqn.outvars, lax.add_p, {})
    assert program.replace(eqns=[eqn.replace(outvars=[new]), doubled])(1.0) == (2 * hnp.sin(1.0),)
