"""Programs on whole types: constraints stand where types stated cuts, and nothing else has changed."""

import numpy as np

import handlax as hx
from handlax import P, lax
from handlax import numpy as hnp
from handlax.interpreters.analysis.cut_constraints import stated_meshes, with_constraints
from handlax.interpreters.analysis.typecheck import typecheck
from handlax.sharding import AxisType

MESH = hx.make_mesh((2, 4), ("a", "b"), devices=hx.devices("cpu"))
MIXED = MESH.update(axis_types=(AxisType.Explicit, AxisType.Auto))
X = np.arange(32, dtype="float32").reshape(8, 4)


def program(f, *spec, mesh=MESH):
    return hx.make_program(f)(hx.device_put(X, hx.NamedSharding(mesh, P(*spec))))


def specs(program):
    return [tuple(op.sharding.spec) for op in program.ops if op.name == "sharding_constraint"]


def test_each_result_is_constrained_as_its_type_states():
    p = program(lambda x: hnp.sin(x).sum(0), "a", "b")
    q = with_constraints(p)
    assert stated_meshes(p) == (MESH.abstract_mesh,) and not stated_meshes(q)
    assert [str(t) for t in (*q.in_types, *q.out_types)] == ["f32[8,4]", "f32[4]"]
    assert specs(q) == [("a", "b"), ("b",)]
    np.testing.assert_allclose(q(X)[0], np.sin(X).sum(0), rtol=1e-5)


def test_the_program_on_whole_types_is_well_typed():
    f = lambda x: lax.fori_loop(0, 2, lambda i, c: hx.reshard(c * 2, hx.NamedSharding(MESH, P("a"))), x)
    typecheck(with_constraints(program(f, "a")))


def test_whole_programs_and_operations_without_a_cut_are_as_they_were():
    p = hx.make_program(lambda x: hnp.sin(x))(X)
    assert with_constraints(p) is p
    assert len(specs(with_constraints(program(lambda x: (hnp.ones(3) * 2, x + 1), "a")))) == 1


def test_hidden_values_are_left_to_the_compiler_and_bodies_are_entered():
    f = lambda x: lax.reshape(x, (4, 8), out_sharding=hx.NamedSharding(MESH, P("a")))
    q = with_constraints(program(f, "a"))
    assert [spec for spec in specs(q) if P.UNCONSTRAINED not in spec] == [("a",)]
    loop = with_constraints(program(lambda x: lax.fori_loop(0, 2, lambda i, c: c * 2, x), "a"))
    bodies = [body for op in loop.ops if op.bodied for body in op.bodies]
    assert not any(map(stated_meshes, bodies)) and [spec for body in bodies for spec in specs(body)]


def test_dimensions_that_automatic_axes_may_cut_stay_open():
    assert specs(with_constraints(program(lambda x: x + 1, "a", mesh=MIXED))) == [("a", P.UNCONSTRAINED)]
