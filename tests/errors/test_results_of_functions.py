"""Solvers and loops refuse, while they are traced, functions whose results have another structure, shape or dtype."""

from __future__ import annotations

import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.experimental.ode import odeint
from handlax.experimental.sparse.linalg import lobpcg_standard
from handlax.scipy.optimize import minimize
from handlax.scipy.sparse import linalg

X = hnp.ones(2)
KRYLOV = {name: getattr(linalg, name) for name in ("cg", "bicgstab", "gmres")}
first, keep = lambda x, *rest: x, lambda f, x: x

# For each function that a solver or loop takes: the call with ``wrong``, which is applied to the right result.
VECTORS = {
    "odeint": lambda wrong: odeint(lambda y, t: wrong(-y), X, hnp.array([0.0, 1.0])),
    **{f"{name} A": lambda wrong, f=f: f(wrong, X) for name, f in KRYLOV.items()},
    **{f"{name} M": lambda wrong, f=f: f(first, X, M=wrong) for name, f in KRYLOV.items()},
    "lobpcg_standard": lambda wrong: lobpcg_standard(wrong, hnp.eye(12, 2)),
    "custom_root f": lambda wrong: lax.custom_root(wrong, X, keep, keep),
    "custom_root solve": lambda wrong: lax.custom_root(first, X, lambda f, x: wrong(x), keep),
    "custom_root tangent_solve": lambda wrong: hx.grad(
        lambda a: lax.custom_root(lambda x: x - a, X, keep, lambda g, y: wrong(y)).sum()
    )(X),
    "custom_linear_solve matvec": lambda wrong: lax.custom_linear_solve(wrong, X, keep),
    "custom_linear_solve solve": lambda wrong: lax.custom_linear_solve(first, X, lambda m, b: wrong(b)),
    "custom_linear_solve transpose_solve": lambda wrong: lax.custom_linear_solve(
        first, X, keep, lambda m, b: wrong(b)
    ),
    "scan": lambda wrong: lax.scan(lambda c, x: (wrong(c), None), X, None, length=2),
    "while_loop": lambda wrong: lax.while_loop(lambda c: True, wrong, X),
    "fori_loop": lambda wrong: lax.fori_loop(0, 2, lambda i, c: wrong(c), X),
}
WRONG = {
    "another shape": lambda x: x[:1], "a scalar": lambda x: x.sum(), "a tuple": lambda x: (x,),
    "nothing": lambda x: None, "complex numbers": lambda x: x * 1j,
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("call", VECTORS)
def test_a_function_that_returns_something_else_than_its_vector_is_refused(call, wrong):
    refused = (errors.ShapeMismatch, errors.TreeMismatch, errors.DTypeMismatch, errors.StateTypeError, errors.BadCall)
    with pytest.raises(refused) as raised:
        hx.eval_shape(lambda: VECTORS[call](WRONG[wrong]))
    if wrong in ("another shape", "a scalar"):
        named, expected = call.split()[0], "f32[12,2]" if call == "lobpcg_standard" else "f32[2]"
        found = {"f32[12,2]": ("f32[1,2]", "f32[]"), "f32[2]": ("f32[1]", "f32[]")}[expected][wrong == "a scalar"]
        said = raised.value.what
        assert named in said and found in said and (expected in said or "(2,)" in said)


@pytest.mark.parametrize("wrong", [*WRONG, "integers"])
@pytest.mark.parametrize("method", ["BFGS", "l-bfgs-experimental-do-not-rely-on-this"])
def test_a_function_to_be_minimised_returns_a_real_scalar(method, wrong):
    results = {**WRONG, "a scalar": lambda x: x, "integers": lambda x: x.sum().astype(int)}
    with pytest.raises(errors.NotDifferentiable, match=r"scalar|real"):
        hx.eval_shape(lambda: minimize(results[wrong], X, method=method))


def test_derivatives_of_trees_are_compared_leaf_by_leaf():
    y, t = {"a": X, "b": X}, hnp.array([0.0, 1.0])
    with pytest.raises(errors.ShapeMismatch, match=r"odeint: func must return f32\[2\], got f32\[1\]"):
        odeint(lambda y, t: {"a": y["a"], "b": y["b"][:1]}, y, t)
    with pytest.raises(errors.TreeMismatch, match="odeint: func must return the structure"):
        odeint(lambda y, t: {"a": y["a"]}, y, t)


def test_real_numbers_of_another_dtype_are_converted():
    y = odeint(lambda y, t: hnp.ones(2, "int8"), X, hnp.array([0.0, 1.0]))
    assert y.dtype == "float32" and hnp.allclose(y[1], 2.0)


def product_of(name, **arguments):
    return lambda: KRYLOV[name](first, X, **arguments)


def minimized(method="BFGS", **options):
    return lambda: minimize(lambda x: (x * x).sum(), X, method=method, options=options)


def integrated(**arguments):
    return lambda: odeint(lambda y, t: -y, X, hnp.array([0.0, 1.0]), **arguments)


LIMITED, NAN = "l-bfgs-experimental-do-not-rely-on-this", float("nan")
BOUNDS = {
    **{
        f"{name}: {bound}": product_of(name, **{bound: value})
        for name in KRYLOV for bound, value in (("tol", NAN), ("atol", -1.0), ("maxiter", -1))
    },
    "gmres: restart": product_of("gmres", restart=0),
    **{f"odeint: {bound}": integrated(**{bound: NAN}) for bound in ("rtol", "atol", "mxstep", "hmax")},
    **{f"minimize: {bound}": minimized(**{bound: -1}) for bound in ("gtol", "maxiter", "line_search_maxiter")},
    **{f"minimize: {bound}": minimized(LIMITED, **{bound: NAN}) for bound in ("ftol", "maxls", "maxfun", "maxgrad")},
    "minimize: maxcor": minimized(LIMITED, maxcor=0),
    "lobpcg_standard: m": lambda: lobpcg_standard(hnp.eye(12), hnp.eye(12, 2), m=-1),
    "lobpcg_standard: tol": lambda: lobpcg_standard(hnp.eye(12), hnp.eye(12, 2), tol=NAN),
}


@pytest.mark.parametrize("bound", BOUNDS)
def test_bounds_and_tolerances_are_named_where_they_are_negative_or_nan(bound):
    with pytest.raises(errors.BadArgument, match=f"{bound} must be at least [01], got "):
        BOUNDS[bound]()


def test_a_traced_tolerance_is_taken_as_it_is():
    solved = hx.jit(lambda tol: linalg.cg(first, X, tol=tol)[0])(1e-5)
    assert hnp.allclose(solved, X)
