"""An error inside of a user's function names the public function that was called with it."""

from __future__ import annotations

import inspect
import re

import pytest

import handlax as hx
from handlax import ad_checkpoint, custom_batching, custom_derivatives, debug, experimental, lax, scipy, test_util
from handlax import numpy as hnp
from handlax.experimental import checkify, jet, ode, sparse
from handlax.sharding import PartitionSpec as P

XS = hnp.arange(3.0)
X = hnp.asarray(1.0)
INDEX = hnp.zeros((1, 1), "int32")
DIMENSIONS = lax.ScatterDimensionNumbers((), (0,), (0,))


def on_a_device(f):
    return hx.shard_map(f, mesh=hx.make_mesh((1,), ("d",)), in_specs=P("d"), out_specs=P("d"))(XS[:1])


TRACING = {
    hx.checkpoint: lambda f: hx.checkpoint(f)(X),
    hx.closure_convert: lambda f: hx.closure_convert(f, X),
    hx.costs: lambda f: hx.costs(f)(X),
    hx.draw: lambda f: hx.draw(f)(X),
    hx.effects_of: lambda f: hx.effects_of(f)(X),
    hx.eval_shape: lambda f: hx.eval_shape(f, X),
    hx.explain_handlers: lambda f: hx.explain_handlers(f)(X),
    hx.grad: lambda f: hx.grad(f)(X),
    hx.jacrev: lambda f: hx.jacrev(f)(X),
    hx.jit: lambda f: hx.jit(f)(X),
    hx.jvp: lambda f: hx.jvp(f, (X,), (X,)),
    hx.linear_transpose: lambda f: hx.linear_transpose(f, X)(X),
    hx.linearize: lambda f: hx.linearize(f, X),
    hx.make_program: lambda f: hx.make_program(f)(X),
    hx.pmap: lambda f: hx.pmap(f)(XS[:1]),
    hx.shard_map: on_a_device,
    hx.step: lambda f: hx.step(f)(X),
    hx.value_and_grad: lambda f: hx.value_and_grad(f)(X),
    hx.vjp: lambda f: hx.vjp(f, X),
    hx.vmap: lambda f: hx.vmap(f)(XS),
    ad_checkpoint.draw: lambda f: ad_checkpoint.draw(f)(X),
    ad_checkpoint.memory_plan: lambda f: ad_checkpoint.memory_plan(f, 1000)(X),
    ad_checkpoint.saved_residuals: lambda f: ad_checkpoint.saved_residuals(f, X),
    custom_derivatives.linear_call: lambda f: custom_derivatives.linear_call(f, f, X, X),
    lax.cond: lambda f: lax.cond(True, f, f, X),
    lax.custom_linear_solve: lambda f: lax.custom_linear_solve(f, X, lambda m, b: b),
    lax.custom_root: lambda f: lax.custom_root(f, X, lambda f, x: x, lambda g, y: y),
    lax.fori_loop: lambda f: lax.fori_loop(0, 3, lambda i, c: f(c), X),
    lax.map: lambda f: lax.map(f, XS),
    lax.reduce: lambda f: lax.reduce(XS, 0.0, f, (0,)),
    lax.reduce_window: lambda f: lax.reduce_window(XS, 0.0, f, (2,), (1,), "VALID"),
    lax.scan: lambda f: lax.scan(lambda c, x: (f(c), x), X, XS),
    lax.scatter_apply: lambda f: lax.scatter_apply(XS, INDEX, f, DIMENSIONS, update_shape=(1,)),
    lax.switch: lambda f: lax.switch(0, [f, f], X),
    lax.while_loop: lambda f: lax.while_loop(lambda c: True, f, X),
    scipy.sparse.linalg.bicgstab: lambda f: scipy.sparse.linalg.bicgstab(f, XS),
    scipy.sparse.linalg.cg: lambda f: scipy.sparse.linalg.cg(f, XS),
    scipy.sparse.linalg.gmres: lambda f: scipy.sparse.linalg.gmres(f, XS),
    ode.odeint: lambda f: ode.odeint(f, XS, XS),
}

COMPOSED = "consists of transformations, which the error names as handlers in force"
CALLED = "calls the function as it is, or a handler without tracing it"
LATER = "the function runs later: on the host, in a handler, or as the rule of another one"
PLAIN = "takes no function of arrays"
OTHERS = {
    COMPOSED: [
        hx.hessian, hx.jacfwd, hx.vtile, hx.xmap, hx.smap, hx.fwd_and_bwd, hnp.apply_along_axis,
        hnp.fromfunction, hnp.vectorize, jet.jet, scipy.optimize.minimize, ad_checkpoint.print_saved_residuals,
        sparse.grad, sparse.jacfwd, sparse.jacrev, sparse.value_and_grad, test_util.check_grads, test_util.check_jvp,
        test_util.check_vjp,
    ],
    CALLED: [
        hx.call_and_reap, hx.checkify, checkify.checkify, hx.harvest, hx.nest, hx.plant, hx.reap, hx.named_call,
        hx.modify, sparse.sparsify, custom_batching.sequential_vmap, lax.associative_scan, hnp.apply_over_axes,
        hnp.frompyfunc, hnp.ufunc,
    ],
    LATER: [
        hx.custom_gradient, hx.custom_jvp, hx.custom_vjp, custom_batching.custom_vmap, hx.ctl, hx.once, hx.final,
        hx.split, hx.pure_callback, debug.callback, debug.inspect_array_sharding, experimental.io_callback,
    ],
    PLAIN: [hx.explain, hnp.gradient],
}
PARAMETERS = {
    "f", "fun", "func", "function", "fn", "body_fun", "true_fun", "computation", "callback", "branches", "func1d",
    "pyfunc", "matvec",
}
MODULES = (
    hx, lax, hnp, ad_checkpoint, custom_batching, custom_derivatives, debug, experimental, test_util, checkify, jet,
    ode, sparse, scipy.optimize, scipy.sparse.linalg,
)


def of_a_value(*args):
    """Reads a value while it is traced."""
    return float(hnp.sum(hx.tree.leaves(args)[-1]))


def of_no_array(*args):
    """Returns what is no array."""
    return object()


@pytest.mark.parametrize("mistake", [of_a_value, of_no_array], ids=lambda f: f.__name__)
@pytest.mark.parametrize("entrance", TRACING, ids=lambda f: f.__name__)
def test_an_error_names_the_function_that_was_called(entrance, mistake):
    with pytest.raises(hx.errors.HandlaxError) as raised:
        TRACING[entrance](mistake)
    assert re.search(rf"\b{entrance.__name__}\b", str(raised.value))


def test_every_entrance_is_listed():
    listed = {*TRACING, *[f for functions in OTHERS.values() for f in functions]}
    missing = {
        f"{module.__name__}.{name}"
        for module in MODULES
        for name in getattr(module, "__all__", dir(module))
        if callable(f := getattr(module, name))
        and not name.startswith("_") and f not in listed
        and not PARAMETERS.isdisjoint(parameters(f))
    }
    assert not missing, missing


def parameters(f):
    try:
        return [*inspect.signature(f).parameters][:2]
    except (TypeError, ValueError):
        return []
