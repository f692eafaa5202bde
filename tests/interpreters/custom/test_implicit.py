"""custom_linear_solve and custom_root: derivatives by the equation, whatever the solver does."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp

A = np.array([[4.0, 1.0], [2.0, 3.0]], "float32")
B = np.array([1.0, 2.0], "float32")


def cramer(m, b):
    top, bottom = m[1, 1] * b[0] - m[0, 1] * b[1], m[0, 0] * b[1] - m[1, 0] * b[0]
    return hnp.stack([top, bottom]) / (m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0])


def solver(matvec, b):
    """A solver whose own derivative is wrong: it stops the gradient."""
    return lax.stop_gradient(cramer(hx.vmap(matvec)(hnp.eye(2)).T, b))


def solve(a, b):
    return lax.custom_linear_solve(lambda x: a @ x, b, solver, solver)


def close(a, b, tolerance=2e-4):
    for x, y in zip(hx.tree.leaves(a), hx.tree.leaves(b), strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=tolerance, atol=tolerance)


DERIVATIVES = [
    lambda f, n: hx.jacrev(f, n),
    lambda f, n: hx.jacfwd(f, n),
    lambda f, n: hx.jit(hx.jacrev(f, n)),
    lambda f, n: hx.jacrev(hx.jit(f), n),
    lambda f, n: hx.jacfwd(hx.jacrev(f, n), n),
    lambda f, n: hx.jacrev(hx.jacrev(f, n), n),
    lambda f, n: hx.jacfwd(hx.jacfwd(f, n), 1 - n),
    lambda f, n: hx.jit(hx.jacrev(hx.jacfwd(f, n), 1 - n)),
]


@pytest.mark.each_choice
@pytest.mark.parametrize("derivative", DERIVATIVES)
@pytest.mark.parametrize("argument", [0, 1])
def test_a_linear_solution_is_differentiated_to_any_order(derivative, argument):
    close(solve(A, B), np.linalg.solve(A, B))
    close(derivative(solve, argument)(A, B), derivative(cramer, argument)(A, B))


@pytest.mark.each_choice
@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0), (1, 1)])
@pytest.mark.parametrize("argument", [None, 0, 1])
def test_a_linear_solution_is_mapped(axes, argument):
    matrices = np.stack([A, A.T, A + np.eye(2, dtype="float32")], axes[0] or 0)
    vectors = np.stack([B, 2 * B, 3 * B], axes[1] or 0)
    given = (matrices if axes[0] is not None else A, vectors if axes[1] is not None else B)
    for wrap in (lambda f: f, hx.jit):
        ours, theirs = (f if argument is None else hx.jacrev(f, argument) for f in (solve, cramer))
        close(wrap(hx.vmap(ours, axes))(*given), hx.vmap(theirs, axes)(*given))
    close(
        hx.grad(lambda a: hx.vmap(solve, axes)(a, given[1]).sum())(given[0]),
        hx.grad(lambda a: hx.vmap(cramer, axes)(a, given[1]).sum())(given[0]),
    )


def test_a_linear_solution_in_a_loop():
    def steps(f):
        return lambda a: lax.scan(lambda b, _: (f(a, b), None), B, None, 3)[0].sum()

    for derivative in (hx.grad, hx.jacfwd, lambda f: hx.jit(hx.grad(f))):
        close(derivative(steps(solve))(A), derivative(steps(cramer))(A))


def test_conjugate_gradients_serve_for_a_symmetric_system():
    def iterate(matvec, b):
        def step(_, state):
            x, r, p, rr = state
            q = matvec(p)
            step = rr / (p @ q)
            r = r - step * q
            return x + step * p, r, r + (r @ r) / rr * p, r @ r

        return lax.fori_loop(0, 2, step, (hnp.zeros_like(b), b, b, b @ b))[0]

    def symmetric(a, b):
        return lax.custom_linear_solve(lambda x: (a + a.T) @ x, b, iterate, symmetric=True)

    def direct(a, b):
        return cramer(a + a.T, b)

    close(symmetric(A, B), direct(A, B))
    for argument in (0, 1):
        for derivative in DERIVATIVES[:5]:
            close(derivative(symmetric, argument)(A, B), derivative(direct, argument)(A, B))


def test_unknowns_may_be_trees_and_solvers_may_tell_more():
    def halve(matvec, b):
        return {"u": b["u"] / 2.0, "v": b["v"] / 2.0}, {"steps": 3, "norm": abs(b["u"])}

    def system(b, scale):
        return lax.custom_linear_solve(
            lambda x: {"u": 2.0 * scale * x["u"], "v": 2.0 * scale * x["v"]}, b, halve, halve, has_aux=True
        )

    b = {"u": hnp.float32(3.0), "v": hnp.ones(2)}
    x, aux = system(b, 1.0)
    assert (float(x["u"]), int(aux["steps"]), float(aux["norm"])) == (1.5, 3, 3.0)
    for wrap in (lambda f: f, hx.jit):
        gradient = wrap(hx.grad(lambda b, s: system(b, s)[0]["u"] + system(b, s)[1]["norm"], (0, 1)))(b, 1.0)
        close(gradient, ({"u": 0.5, "v": np.zeros(2)}, -1.5))
    mapped = hx.vmap(system, ({"u": None, "v": None}, 0))(b, hnp.ones(2))
    assert mapped[1]["steps"].tolist() == [3, 3]


def test_reverse_mode_needs_a_solver_of_the_transposed_system():
    def forward_only(a, b):
        return lax.custom_linear_solve(lambda x: a @ x, b, solver)

    close(hx.jacfwd(forward_only)(A, B), hx.jacfwd(cramer)(A, B))
    with pytest.raises(errors.NotDifferentiable, match="transpose_solve"):
        hx.jacrev(forward_only)(A, B)


def test_a_system_that_does_not_fit_is_refused():
    with pytest.raises(errors.ShapeMismatch, match="matvec must return f32\\[2\\], got f32\\[3\\]"):
        lax.custom_linear_solve(lambda x: hnp.ones((3, 2)) @ x, B, solver)
    with pytest.raises(errors.TreeMismatch, match="matvec"):
        lax.custom_linear_solve(lambda x: (x,), B, solver)
    with pytest.raises(errors.ShapeMismatch, match="unknowns"):
        lax.custom_linear_solve(lambda x: x, B, lambda f, b: b[0])
    with pytest.raises(errors.TreeMismatch, match="aux"):
        lax.custom_linear_solve(lambda x: x, B, lambda f, b: b, has_aux=True)


# Roots


def newton(f, x):
    return lax.while_loop(lambda x: hnp.abs(f(x)) > 1e-6 * hnp.abs(x), lambda x: x - f(x) / (3.0 * x * x), x)


def cube_root(a):
    return lax.custom_root(lambda x: x**3 - a, a, newton, lambda g, y: y / g(1.0))


def power(a):
    return a ** (1.0 / 3.0)


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: f,
        hx.grad,
        hx.jacfwd,
        lambda f: hx.grad(hx.grad(f)),
        lambda f: hx.jacfwd(hx.grad(f)),
        lambda f: hx.jit(hx.grad(f)),
        lambda f: hx.grad(hx.jit(f)),
        lambda f: lambda a: hx.vmap(f)(hnp.stack([a, 2.0 * a])),
        lambda f: lambda a: hx.vmap(hx.grad(f))(hnp.stack([a, 2.0 * a])),
        lambda f: hx.grad(lambda a: hx.vmap(f)(hnp.stack([a, 2.0 * a])).sum()),
        lambda f: hx.grad(lambda a: lax.scan(lambda c, _: (f(c), None), a, None, 2)[0]),
        lambda f: hx.grad(hx.checkpoint(f)),
        lambda f: hx.jit(hx.vmap(hx.grad(lambda a: lax.cond(a > 1, f, lambda a: a, a)), axis_size=2, in_axes=None)),
    ],
)
def test_a_root_is_differentiated_by_its_equation(transform):
    close(transform(cube_root)(8.0), transform(power)(8.0))


def test_a_root_of_several_unknowns_by_a_linear_solver():
    def tangent_solve(g, y):
        return lax.custom_linear_solve(g, y, solver, solver)

    def system(a, b):
        def f(x):
            return a @ x + x**3 - b

        def step(_, x):
            return x - cramer(hx.jacfwd(f)(x), f(x))

        return lax.custom_root(f, B, lambda f, x: lax.fori_loop(0, 8, step, x), tangent_solve)

    def unrolled(a, b):
        x = B
        for _ in range(8):
            x = x - cramer(a + hnp.diag(3.0 * x**2), a @ x + x**3 - b)
        return x

    close(system(A, B), unrolled(A, B))
    for derivative in DERIVATIVES[:5]:
        close(derivative(system, 0)(A, B), derivative(unrolled, 0)(A, B), 2e-3)
    close(hx.vmap(hx.jacrev(system), (None, 0))(A, np.stack([B, 2 * B]))[0], hx.jacrev(unrolled)(A, B), 2e-3)


def test_the_guess_and_what_a_solver_tells_have_no_derivative():
    def root(a, guess):
        def once(f, x):
            return x - f(x) / 2.0, {"residual": f(x)}

        return lax.custom_root(lambda x: x * 2.0 - a, guess, once, lambda g, y: y / g(1.0), True)

    (x, aux), (dx, daux) = hx.jvp(root, (3.0, 1.0), (1.0, 1.0))
    assert (float(x), float(aux["residual"]), float(dx), float(daux["residual"])) == (1.5, -1.0, 0.5, 0.0)
    assert float(hx.grad(lambda guess: root(3.0, guess)[0])(1.0)) == 0.0


def test_an_equation_that_does_not_fit_is_refused():
    with pytest.raises(errors.ShapeMismatch, match="f must return f32"):
        lax.custom_root(lambda x: hnp.stack([x, x]), hnp.float32(1.0), newton, lambda g, y: y)
    with pytest.raises(errors.TreeMismatch, match="custom_root"):
        lax.custom_root(lambda x: x, hnp.float32(1.0), lambda f, x: (x,), lambda g, y: y)
    with pytest.raises(errors.ShapeMismatch, match=r"custom_root, .*two at test_implicit"):
        hx.grad(lambda a: lax.custom_root(lambda x: x - a, a, lambda f, x: x - f(x), two))(1.0)


def two(g, y):
    return hnp.stack([y, y])
