"""Linear systems of lineax."""

import jax
import jax.numpy as jnp
import lineax as lx

M = jax.random.normal(jax.random.key(0), (4, 4)) + 4 * jnp.eye(4)
S = M @ M.T
B = jnp.arange(4.0)


def dense_systems():
    solvers = (lx.LU(), lx.QR(), lx.SVD())
    return [lx.linear_solve(lx.MatrixLinearOperator(M), B, solver).value for solver in solvers]


def positive_systems():
    operator = lx.MatrixLinearOperator(S, lx.positive_semidefinite_tag)
    solvers = (lx.Cholesky(), lx.CG(1e-6, 1e-6))
    return [lx.linear_solve(operator, B, solver).value for solver in solvers]


def iterations():
    operator = lx.JacobianLinearOperator(lambda x, _: M @ x + 0.1 * x**2, jnp.ones(4))
    return lx.linear_solve(operator, B, lx.GMRES(1e-5, 1e-5)).value


def least_squares():
    return lx.linear_solve(lx.MatrixLinearOperator(M[:, :2]), B, lx.AutoLinearSolver(well_posed=None)).value


def derivatives():
    solve = lambda m, b: (lx.linear_solve(lx.MatrixLinearOperator(m), b).value ** 2).sum()
    return jax.grad(solve, (0, 1))(M, B), jax.vmap(solve, (None, 0))(M, jnp.eye(4))


def structured_operators():
    return (
        lx.linear_solve(lx.DiagonalLinearOperator(B + 1), B).value,
        lx.linear_solve(lx.TridiagonalLinearOperator(jnp.full(4, 4.0), jnp.ones(3), jnp.ones(3)), B).value,
        lx.linear_solve(lx.MatrixLinearOperator(jnp.tril(M), lx.lower_triangular_tag), B).value,
    )
