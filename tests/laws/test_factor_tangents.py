"""The tangents of the factors of matrices, put into the product rule, are the tangent of the matrix."""

import numpy as np
import pytest
from helpers.matrices import matrix

import handlax as hx
from handlax import lax

linalg, N = lax.linalg, 12


def adjoint(x):
    return x.conj().swapaxes(-1, -2)


def hermitian(x):
    return x + adjoint(x)


def lu_parts(x, ys, of):
    """The factors of one matrix: of its own, with ones on the diagonal, or of the tangent, with zeros."""
    one = np.eye(N, dtype=x.dtype) * of
    return [np.tril(ys[0], -1) + one, np.triu(ys[0])]


def lu_terms(x, dx, ys, dys):
    (l, u), (dl, du) = lu_parts(x, ys, 1), lu_parts(x, dys, 0)
    return [dl @ u, l @ du], np.take_along_axis(dx, ys[2][..., None], -2)


def eig_terms(x, dx, ys, dys):
    (w, _, v), (dw, _, dv) = ys, dys
    return [x @ dv, -dv * w[:, None], -v * dw[:, None]], -dx @ v


FACTORS = {
    "cholesky": (
        lambda x: [linalg.cholesky(x)],
        lambda x: x @ adjoint(x) + np.eye(N), hermitian,
        lambda x, dx, ys, dys: ([dys[0] @ adjoint(ys[0]), ys[0] @ adjoint(dys[0])], dx),
    ),
    "lu": (linalg.lu, None, None, lu_terms),
    "qr": (linalg.qr, None, None, lambda x, dx, ys, dys: ([dys[0] @ ys[1], ys[0] @ dys[1]], dx)),
    "eigh": (
        linalg.eigh, hermitian, hermitian,
        lambda x, dx, ys, dys: (
            [x @ dys[0], -dys[0] * ys[1][:, None], -ys[0] * dys[1][:, None]], -dx @ ys[0]),
    ),
    "svd": (
        lambda x: linalg.svd(x, full_matrices=False), None, None,
        lambda x, dx, ys, dys: (
            [(dys[0] * ys[1][:, None]) @ ys[2], (ys[0] * dys[1][:, None]) @ ys[2], (ys[0] * ys[1][:, None]) @ dys[2]],
            dx),
    ),
    "eig": (lambda x: linalg.eig(x, enable_eigvec_derivs=True), None, None, eig_terms),
    "solve": (
        lambda x: [hx.numpy.linalg.inv(x)], None, None,
        lambda x, dx, ys, dys: ([x @ dys[0]], -dx @ ys[0]),
    ),
}


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("name", FACTORS)
def test_the_product_rule_gives_the_tangent_of_the_matrix(name, dtype):
    f, prepared, of_tangent, terms = FACTORS[name]
    x, dx = ((g or (lambda y: y))(matrix((3, N, N), dtype, seed)) for g, seed in ((prepared, 0), (of_tangent, 1)))
    x, dx = x.astype(dtype), dx.astype(dtype)
    ys, dys = hx.jvp(lambda x: tuple(f(x)), (x,), (dx,))
    ys, dys = ([np.asarray(y) for y in zs] for zs in (ys, dys))
    parts, whole = terms(x, dx, ys, dys)
    norm = lambda y: np.linalg.norm(y, axis=(-2, -1))
    changes = sum([norm(y) for y in dys if y.ndim == 3 and y.dtype.kind in "fc"])
    bound = 10 * N * np.finfo(dtype).eps * (norm(x) * (1 + changes) + sum(map(norm, parts)))
    assert (norm(sum(parts) - whole) <= bound).all()
