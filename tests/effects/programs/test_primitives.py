"""primitives: operations by name and parameters, and the user's own."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from helpers.other_threads import together
from helpers.third_party import OURS, multiply_add, side_of, sine_cosine, uses

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.core import ShapedArray
from handlax.effects.core.named_axes import Axis
from handlax.effects.programs.primitives import primitive_called, primitive_of
from handlax.extend.core import Effect, Primitive
from handlax.testing import check_operation

USES = uses(OURS)
MA, SC = multiply_add(OURS), sine_cosine(OURS)
X = hnp.array([1.0, 2.0, 3.0])
S = np.sin([1.0, 2.0, 3.0]), np.cos([1.0, 2.0, 3.0])
KNOWN = {
    "eager": 23.0,
    "jit": [3.0, 8.0, 15.0],
    "jvp": ([3.0, 8.0, 15.0], [4.0, 12.0, 24.0]),
    "grad": [4.0, 6.0, 8.0],
    "jit of grad": [4.0, 6.0, 8.0],
    "vmap": [3.0, 5.0, 7.0],
    "vmap of a later axis": [[3.0, 8.0, 15.0]] * 2,
    "jit of vmap of grad": [5.0, 7.0, 9.0],
    "hessian": np.diag([2.0, 2.0, 2.0]),
    "linear_transpose": [2.0, 6.0, 12.0],
    "linearize": [4.0, 12.0, 24.0],
    "scan": (7.56640625, [0.5, 1.25, 2.5625]),
    "grad of scan": 2 * 2.5625 * 2 * 1.25 * 2 * 0.5,
    "cond": [3.0, 8.0, 15.0],
    "while": 42.0,
    "checkpoint": [4.0, 6.0, 8.0],
    "two results": (2 * S[0], 2 * S[1]),
    "two results, jit": (2 * S[0], 2 * S[1]),
    "two results, grad": 4 * (S[1] ** 2 - S[0] ** 2),
    "two results, vmap": (2 * S[0], 2 * S[1]),
    "two results, all": 2 * S[1],
    "without a hash": (2 * S[0], 2 * S[1]),
}


def assert_equal_trees(actual, expected):
    actual, expected = hx.tree.leaves(actual), hx.tree.leaves(expected)
    for y, z in zip(actual, expected, strict=True):
        np.testing.assert_allclose(np.asarray(y), np.asarray(z), rtol=2e-6)


@pytest.mark.parametrize("use", USES)
def test_a_primitive_crosses_every_transformation(use):
    known = hx.tree.leaves(hx.tree.map(np.asarray, KNOWN[use], is_leaf=lambda x: not isinstance(x, tuple)))
    assert_equal_trees(USES[use](), known)


@pytest.mark.peer
@pytest.mark.parametrize("use", USES)
def test_a_primitive_computes_what_it_does_in_jax(use):
    assert_equal_trees(USES[use](), uses(side_of("jax", "interpreters"))[use]())


def test_every_law_holds_of_a_primitive_of_the_user():
    x, y, z = np.random.default_rng(0).normal(size=(3, 4))
    check_operation(MA.operation(), [[x, y, z]])
    check_operation(SC.operation.from_params({"scale": 2.0, "note": "a"}), [[x]])


def test_an_equation_leads_back_to_its_primitive():
    program = hx.make_jaxpr(lambda x: SC.bind(MA.bind(x, x, 2.0), scale=2.0, note=[1]))(X)
    first, second = program.eqns
    assert first.primitive is MA and second.primitive is SC
    assert first.params == {} and second.params == {"scale": 2.0, "note": [1]}
    assert_equal_trees(second.primitive.bind(X, **second.params), SC.bind(X, scale=2.0, note=None))
    assert isinstance(second.primitive.bind(X, **second.params), list)
    assert "multiply_add a a 2.0" in str(program)


def test_handlers_see_what_an_eager_primitive_does():
    doubled = hx.handler({MA.operation: lambda op, *xs: 2 * hx.perform(op, *xs)})
    assert hx.handle(doubled)(lambda: MA.bind(1.0, 2.0, 3.0))() == 10.0
    multiplied = hx.handler({hx.operations.Mul: lambda op, *xs: 0 * hx.perform(op, *xs)})
    assert hx.handle(multiplied)(lambda: MA.bind(1.0, 2.0, 3.0))() == 5.0  # an implementation is below all handlers


def test_a_rule_holds_from_the_moment_it_is_registered():
    p = Primitive("shifted")
    p.def_impl(lambda x: x + 1.0)
    p.def_abstract_eval(lambda x: ShapedArray(x.shape, x.dtype))
    with pytest.raises(errors.MissingRule, match="shifted"):
        hx.jit(p.bind)(1.0)
    compiled, derivative, mapped = hx.jit(p.bind), hx.jit(hx.grad(lambda x: p.bind(x))), hx.jit(hx.vmap(p.bind))
    for by in (1.0, 2.0):
        p.def_impl(lambda x, by=by: x + by)
        OURS.mlir.register_lowering(p, OURS.mlir.lower_fun(lambda x, by=by: x + by, multiple_results=False))
        OURS.ad.primitive_jvps[p] = lambda xs, dxs, by=by: (p.bind(*xs), by * dxs[0])
        OURS.batching.primitive_batchers[p] = lambda xs, dims, by=by: (p.bind(*xs) * by, dims[0])
        assert p.bind(1.0) == compiled(1.0) == 1.0 + by and derivative(1.0) == by
        assert mapped(hnp.ones(2)).tolist() == [(1 + by) * by] * 2
    del OURS.ad.primitive_jvps[p]
    with pytest.raises(errors.MissingRule, match="jvp"):
        derivative(1.0)


def test_parameters_compare_by_type_and_contents():
    make = lambda note: hx.make_program(lambda x: SC.bind(x, scale=2.0, note=note))(X)
    assert make([1, {"a": 2}]) == make([1, {"a": 2}]) and make(np.arange(3)) == make(np.arange(3))
    assert make([1]) != make([True]) and make([1]) != make((1,)) and make(1) != make(1.0)
    notes = [1]
    before = make(notes)
    notes.append(2)
    assert make(notes) != before


def test_a_primitive_is_pickled_by_its_module_and_name():
    program = hx.make_program(lambda x: SC.bind(x, scale=2.0, note=[1]))(X)
    assert pickle.loads(pickle.dumps(SC)) is SC and pickle.loads(pickle.dumps(program)) == program


def test_subclasses_may_say_that_there_are_several_results():
    class Several(Primitive):
        multiple_results = True

    p = Several("several")
    p.def_abstract_eval(lambda x: [x, x])
    p.def_impl(lambda x: [x, x])
    assert p.multiple_results and p.bind(1.0) == [1.0, 1.0]
    q = Primitive("one")
    assert not q.multiple_results and q.impl and repr(q) == "one"


def test_what_is_missing_is_named():
    p = Primitive("bare")
    with pytest.raises(errors.MissingRule, match="bare: there is no abstract evaluation"):
        p.bind(1.0)
    p.def_abstract_eval(lambda x: x)
    for call in (p.bind, hx.jit(p.bind), hx.grad(p.bind), lambda x: hx.vmap(p.bind)(hnp.ones(3))):
        with pytest.raises(errors.MissingRule, match="bare"):
            call(1.0)
    with pytest.raises(errors.MissingRule, match="bare: there is no implementation"):
        p.impl(1.0)


@pytest.fixture
def noted():
    """A primitive with the effect in its parameter ``effect``, and what its implementation was called with."""
    p = Primitive("noted")
    calls = []
    p.def_effectful_abstract_eval(lambda x, *, effect: (x, {effect} - {None}))
    p.def_impl(lambda x, *, effect: (calls.append((effect, np.asarray(x).tolist())), x)[1])
    OURS.mlir.register_lowering(p, OURS.mlir.lower_fun(lambda x, *, effect: x * 1.0, multiple_results=False))
    OURS.ad.primitive_jvps[p] = lambda xs, dxs, *, effect: (p.bind(*xs, effect=effect), 2 * dxs[0])
    return p, calls


def twice_noted(p):
    def f(x):
        p.bind(x, effect="a")
        return p.bind(2 * x, effect="b") + x

    return f


def test_the_effects_of_a_primitive_are_in_the_rows_of_programs(noted):
    p, _ = noted
    program = hx.make_jaxpr(twice_noted(p))(1.0)
    assert program.effects == {"a", "b"}
    assert [eqn.effects for eqn in program.eqns if eqn.primitive is p] == [{"a"}, {"b"}]
    assert hx.dead_code_elimination(program)[0] == program and "! {a, b}" in str(program)
    assert program.eqns[0].replace(params={"effect": "c"}).effects == {"c"}
    assert program.replace(eqns=[e.replace(primitive=p, params={"effect": None}) for e in program.eqns[:1]],
                           outvars=program.invars).effects == set()
    for body in (
        lambda x: hx.jit(twice_noted(p))(x),
        lambda x: lax.fori_loop(0, 3, lambda _, c: twice_noted(p)(c), x),
        lambda x: lax.while_loop(lambda c: c < 9.0, twice_noted(p), x),
        lambda x: lax.cond(x > 0, twice_noted(p), lambda x: x, x),
        hx.checkpoint(twice_noted(p)),
        hx.grad(twice_noted(p)),
    ):
        assert hx.make_jaxpr(body)(1.0).effects == {"a", "b"}
    assert hx.make_jaxpr(lambda x: p.bind(x, effect=None))(1.0).effects == set()


def test_a_primitive_with_effects_is_performed_once_and_in_order(noted):
    p, calls = noted
    both = [("a", 1.0), ("b", 2.0)]
    f = twice_noted(p)
    for run, value, performed in (
        (f, 3.0, both),
        (lambda x: hx.make_jaxpr(f)(0.0)(x)[0], 3.0, both),
        (hx.grad(f), 5.0, both),
        (lambda x: hx.linearize(f, x)[1](1.0), 5.0, both),
        (lambda x: hx.vmap(lambda y: y + p.bind(x, effect="a"))(hnp.zeros(2))[0], 1.0, both[:1]),
    ):
        assert float(run(1.0)) == pytest.approx(value)
        assert calls == performed
        calls.clear()
    assert hx.jit(f)(1.0) == 3.0 and hx.jit(hx.grad(f))(1.0) == 5.0 and not calls  # lowered


def test_a_handler_answers_the_effects_of_a_primitive_wherever_they_are_performed(noted):
    p, _ = noted
    count = hx.handler({p.operation: lambda n, op, x: (n + 1, 10 * x)})
    once = hx.handle(count, 0)(hx.grad(hx.checkpoint(lambda x: hnp.sin(p.bind(x, effect="a")))))
    assert once(1.0) == (1, 2 * hnp.cos(10.0))  # its results are saved
    loop = lambda x: lax.scan(lambda c, _: (c + p.bind(1.0, effect="a"), None), x, length=3)[0]
    for f, n, y in (
        (twice_noted(p), 2, 21.0),
        (loop, 3, 31.0),
        (hx.jit(loop), 3, 31.0),
        (lambda x: lax.cond(x > 0, loop, lambda x: x, x), 3, 31.0),
    ):
        handled = hx.handle(count, 0)(f)
        assert handled(1.0) == hx.jit(handled)(1.0) == (n, y)
        assert hx.make_jaxpr(handled)(1.0).effects == set()


def test_what_a_primitive_with_effects_does_not_say_is_refused(noted):
    p, _ = noted
    f = twice_noted(p)
    with pytest.raises(errors.CannotCross, match=r"noted: .* an operand differs from lane to lane"):
        hx.vmap(f)(X)
    OURS.batching.primitive_batchers[p] = lambda xs, dims, *, effect: (p.bind(*xs, effect=effect), dims[0])
    assert hx.vmap(f)(X).tolist() == [3.0, 6.0, 9.0]
    with pytest.raises(errors.CannotCross, match="lanes of vmap diverge, and only some of them would perform a, b"):
        hx.vmap(lambda x: lax.cond(x > 1, f, lambda x: x, x))(X)
    del OURS.ad.primitive_jvps[p]
    with pytest.raises(errors.NotDifferentiable, match="noted"):
        hx.grad(f)(1.0)
    with pytest.raises(errors.BadCall, match=r"noted: .* effects of its abstract evaluation, {a}, got {}"):
        hx.perform(p.operation.from_params({"effect": "a"}), 1.0)
    bare = Primitive("only_typed")
    bare.def_effectful_abstract_eval(lambda x: (x, {"a"}))
    with pytest.raises(errors.UnhandledEffect, match="only_typed"):
        bare.bind(1.0)
    with pytest.raises(errors.MissingRule, match="lower: only_typed"):
        hx.jit(bare.bind)(1.0)


def test_an_operation_with_effects_is_pickled():
    program = hx.make_program(lambda x: SIGNALLED.bind(x, by=2))(X)
    assert program.effects == {("signal", 2)} and pickle.loads(pickle.dumps(program)) == program


class Ringing(Effect):
    pass


def test_an_effect_may_be_an_object_of_a_class_of_its_own(noted):
    p, _ = noted
    one, two = Ringing(), Ringing()
    program = hx.make_jaxpr(lambda x: (p.bind(x, effect=one), p.bind(x, effect=two)))(X)
    assert program.effects == {one, two} and str(program).count("Ringing") >= 2
    (put,) = hx.make_jaxpr(lambda x: hx.put("n", x))(1.0).effects
    assert [isinstance(effect, Effect) for effect in (put, Axis("i"), one, "a")] == [True, True, True, False]
    assert hx.jit(hx.grad(lambda x: p.bind(x, effect=one)))(1.0) == 2.0


SIGNALLED = Primitive("signalled")
SIGNALLED.def_effectful_abstract_eval(lambda x, *, by: (x, {("signal", by)}))


def test_a_custom_bind_replaces_the_original():
    p = Primitive("bound")
    p.def_abstract_eval(lambda x: x)
    p.def_impl(lambda x: x)
    p.def_custom_bind(lambda x: Primitive.bind(p, x) + 1.0)
    assert p.bind(1.0) == 2.0


@pytest.mark.parametrize("shown", [str, lambda program: hx.draw(program)._repr_html_()])
def test_programs_with_primitives_are_shown(shown):
    assert "sine_cosine" in shown(hx.make_program(lambda x: SC.bind(x, scale=2.0, note=[1]))(X))


def test_primitives_cross_named_axes_and_shapes():
    f = lambda x: MA.bind(x, x, x)
    assert hx.jit(hx.vmap(lambda x: lax.psum(f(x), "i"), axis_name="i"))(X).tolist() == [20.0] * 3
    assert hx.eval_shape(f, X).shape == (3,)
    known, rest = hx.linearize(f, X)
    assert known.tolist() == [2.0, 6.0, 12.0] and rest(X).tolist() == [3.0, 10.0, 21.0]


def test_an_implementation_gets_keys_as_keys():
    p = Primitive("folded")
    p.def_impl(lambda key: hx.random.fold_in(key, int(hx.random.key_data(key).sum() > 0)))
    p.def_abstract_eval(lambda key: key)
    key = hx.random.key(7)
    assert hx.random.key_data(p.bind(key)).tolist() == hx.random.key_data(hx.random.fold_in(key, 1)).tolist()


def test_another_type_holds_from_the_moment_it_is_declared():
    p = Primitive("typed")
    p.def_impl(lambda x: x)
    p.def_abstract_eval(lambda x: x)
    OURS.mlir.register_lowering(p, OURS.mlir.lower_fun(lambda x: x.astype(types[-1]), multiple_results=False))
    types = ["float32"]
    compiled = hx.jit(lambda x: p.bind(x))
    assert compiled(1.0).dtype == "float32"
    types.append("int32")
    p.def_abstract_eval(lambda x: ShapedArray(x.shape, "int32"))
    assert compiled(1.0).dtype == "int32"


def test_lanes_of_different_lengths_have_primitives():
    p = Primitive("tripled")
    p.def_impl(lambda x: x * 3.0)
    p.def_abstract_eval(lambda x: x)
    OURS.batching.fancy_primitive_batchers[p] = lambda axis, xs, dims: (p.bind(xs[0]), dims[0])
    rows = hx.Ragged.from_list([np.ones(2, "float32"), np.ones(3, "float32")])
    tripled = hx.vmap(lambda row: p.bind(row).sum(), in_axes=hx.ragged_axis)
    assert tripled(rows).tolist() == [6.0, 9.0]


def test_primitives_are_loaded_when_one_is_asked_for():
    program = (
        "import sys, handlax as hx; hx.jit(hx.lax.sin)(1.0); hx.make_jaxpr(hx.lax.sin)(1.0).eqns;"
        "print([name for name in sys.modules if name.endswith('.primitives') or name.startswith('jaxlib.mlir')]);"
        "from handlax.extend import ad, batching, core; print(hx.lax.sin_p is core.primitives.sin_p);"
        "print([name for name in sys.modules if name.startswith('jaxlib.mlir')])")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.split() == ["[]", "True", "[]"]


def test_threads_that_come_at_once_get_the_same_primitive():
    @hx.operation
    class Fresh:
        def result_type(op, x):
            return x

    assert len({*map(id, together(8, lambda _: primitive_of(Fresh)))}) == 1


@pytest.mark.parametrize(("module", "name"), [
    (lax, "add_p"), (lax.linalg, "lu_p"), (lax.linalg, "householder_product_p"), (hx.ad_checkpoint, "name_p"),
    (hx.custom_derivatives, "custom_jvp_call_p"), (hx.custom_derivatives, "custom_vjp_call_p"),
])
def test_namespaces_have_the_primitives_of_their_functions(module, name):
    found = getattr(module, name)
    assert isinstance(found, Primitive) and f"{found}_p" == name and found is getattr(lax, name)
    for missing in ("no_such_p", "no_such"):
        with pytest.raises(AttributeError, match=missing):
            getattr(module, missing)


def test_a_clause_forwards_an_effectful_primitive_of_several_results_by_bind():
    p = Primitive("two_told")
    p.multiple_results = True
    p.def_effectful_abstract_eval(lambda x: ([x, x], {"told"}))
    outer = hx.handler({p.operation: lambda op, x: [x, x + 1]})
    inner = hx.handler({p.operation: lambda op, x: p.bind(2 * x)})
    for f in (lambda x: p.bind(x), hx.jit(lambda x: p.bind(x))):
        assert hx.handle(outer)(hx.handle(inner)(f))(1.0) == [2.0, 3.0]


def test_an_operation_of_a_user_hides_no_primitive_of_the_package():
    for called in ("jit", "while", "remat2", "add_any", "sin"):
        known = primitive_called(called)
        hx.operation(type("Hiding", (), {"__module__": __name__, "name": called, "result_type": lambda op, x: x}))
        assert primitive_called(called) is known


@pytest.mark.parametrize("made", [(3,), None, 2.0])
def test_an_abstract_evaluation_that_gives_no_type_is_refused(made):
    shapes_p = Primitive("gives_a_shape")
    shapes_p.def_abstract_eval(lambda x: made)
    with pytest.raises(errors.BadCall, match="gives_a_shape: the abstract evaluation must give a type, got"):
        hx.jit(shapes_p.bind)(X)
