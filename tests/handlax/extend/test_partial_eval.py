"""extend.partial_eval: functions traced to programs, of arguments of which some are known."""

import numpy as np
import pytest

import handlax as hx
from handlax import core
from handlax import numpy as hnp
from handlax.core import ShapedArray
from handlax.extend import partial_eval as pe
from handlax.extend.linear_util import wrap_init

VECTOR = ShapedArray((3,), "float32")
X = hnp.arange(3.0)


def test_what_depends_on_known_values_alone_is_computed():
    fun = wrap_init(lambda x, y: [x * 2.0, y + hnp.sin(x), y])
    pvals = [pe.PartialVal.known(X), pe.PartialVal.unknown(VECTOR)]
    jaxpr, outs, consts = pe.trace_to_jaxpr_nounits(fun, pvals)
    assert [out.is_known() for out in outs] == [True, False, False]
    assert outs[0].get_known().tolist() == [0.0, 2.0, 4.0] and outs[1].get_known() is None
    assert [out.get_aval() for out in outs] == [VECTOR] * 3
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["add"] and len(consts) == 1
    y, same = hx.core.eval_jaxpr(jaxpr, consts, X)
    np.testing.assert_allclose(y, X + np.sin(X), rtol=1e-6)
    assert same.tolist() == X.tolist()


def test_results_are_unknown_on_demand():
    fun = wrap_init(lambda x, y: [x * 2.0, y])
    pvals = [pe.PartialVal.known(X), pe.PartialVal.unknown(VECTOR)]
    for instantiate in (True, [True, False]):
        jaxpr, outs, _ = pe.trace_to_jaxpr_nounits(fun, pvals, instantiate)
        assert not any(out.is_known() for out in outs) and jaxpr(X)[0].tolist() == [0.0, 2.0, 4.0]


def test_tracing_is_seen_by_the_transformations_around():
    def f(x):
        jaxpr, _, consts = pe.trace_to_jaxpr_nounits(
            wrap_init(lambda a, b: [a * b * 3.0]), [pe.PartialVal.known(x), pe.PartialVal.unknown(hx.typeof(1.0))])
        return hx.core.eval_jaxpr(jaxpr, consts, 2.0)[0]

    assert hx.grad(f)(1.0) == hx.jit(hx.grad(f))(1.0) == 6.0


def test_a_function_is_traced_whole():
    jaxpr, avals, consts = pe.trace_to_jaxpr_dynamic(wrap_init(lambda x: [x * X, x]), [VECTOR])
    assert avals == [VECTOR] * 2 and len(consts) == 1 and jaxpr(X)[0].tolist() == [0.0, 1.0, 4.0]


def test_dead_code_is_dropped():
    jaxpr = hx.make_jaxpr(lambda x, y: (x * 2.0, hnp.sin(y)))(X, X)
    pruned, used = pe.dce_jaxpr(jaxpr, [True, False])
    assert used == [True, False] and len(pruned.eqns) == 1 and pruned(X)[0].tolist() == [0.0, 2.0, 4.0]
    assert pe.dce_jaxpr(jaxpr, True) == (jaxpr, [True, True])
    assert pe.dce_jaxpr(jaxpr, [True, False], [False, True])[1] == [True, True]


@pytest.mark.parametrize("used", [[True, True], [True, False], [False, True], [False, False]])
def test_the_constants_of_a_program_fit_what_is_left_of_it(used):
    jaxpr = hx.make_jaxpr(lambda x: (x * hnp.arange(3.0), hnp.sin(x) + hnp.float32(5.0)))(X)
    pruned, inputs = pe.dce_jaxpr(jaxpr, used)
    constants = [np.asarray(c) + 1 for c in jaxpr.consts]
    assert pruned.constvars == jaxpr.constvars and pruned.consts == jaxpr.consts
    whole = core.eval_jaxpr(jaxpr, constants, X)
    part = core.eval_jaxpr(pruned, constants, *[x for x, yes in zip([X], inputs) if yes])
    assert [y.tolist() for y in part] == [y.tolist() for y, yes in zip(whole, used) if yes]
    assert whole[0].tolist() == [0.0, 2.0, 6.0]


def test_constants_become_inputs():
    jaxpr = hx.make_jaxpr(lambda x: x * X)(X)
    opened = pe.convert_constvars_jaxpr(jaxpr)
    assert opened(X + 1.0, X)[0].tolist() == [0.0, 2.0, 6.0] and opened.in_avals == (VECTOR, VECTOR)
    assert pe.close_jaxpr(jaxpr) is jaxpr
