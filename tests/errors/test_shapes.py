"""An error of shapes is a TypeError, as in jax.lax, and a ValueError, as in NumPy, wherever it is raised."""

import pytest

import handlax as hx
from handlax import lax, nn
from handlax import numpy as hnp

A, B, V = hnp.ones((2, 3)), hnp.ones((4, 5)), hnp.ones(3)

CASES = {
    "@": lambda: A @ B,
    "+": lambda: A + B,
    "==": lambda: A == B,
    "**": lambda: A**B,
    "dot": lambda: hnp.dot(A, B),
    "vdot": lambda: hnp.vdot(A, B),
    "inner": lambda: hnp.inner(A, B),
    "matmul": lambda: hnp.matmul(A, B),
    "matmul of a scalar": lambda: hnp.matmul(A, 2.0),
    "tensordot": lambda: hnp.tensordot(A, B, 1),
    "einsum": lambda: hnp.einsum("ij,jk->ik", A, B),
    "cross": lambda: hnp.cross(A, B),
    "where": lambda: hnp.where(A > 0, A, B),
    "concatenate": lambda: hnp.concatenate([A, B]),
    "concatenate ranks": lambda: hnp.concatenate([A, V]),
    "stack": lambda: hnp.stack([A, B]),
    "vstack": lambda: hnp.vstack([A, B]),
    "reshape": lambda: A.reshape(5),
    "reshape -1": lambda: hnp.reshape(A, (-1, 4)),
    "broadcast_to": lambda: hnp.broadcast_to(A, (3, 3)),
    "broadcast_arrays": lambda: hnp.broadcast_arrays(A, B),
    "squeeze": lambda: hnp.squeeze(A, 0),
    "split": lambda: hnp.split(A, 2, axis=1),
    "at": lambda: A.at[0].set(hnp.ones(2)),
    "lax.add": lambda: lax.add(A, B),
    "lax.select": lambda: lax.select(A > 0, A, B),
    "lax.clamp": lambda: lax.clamp(A, B, B),
    "lax.concatenate": lambda: lax.concatenate([A, V], 0),
    "lax.reshape": lambda: lax.reshape(A, (5,)),
    "lax.dot": lambda: lax.dot(A, B),
    "lax.dot_general": lambda: lax.dot_general(A, B, (((1,), (0,)), ((), ()))),
    "lax.broadcast_in_dim": lambda: lax.broadcast_in_dim(A, (3, 3), (0, 1)),
    "lax.broadcast_in_dim, one dimension twice": lambda: lax.broadcast_in_dim(hnp.ones((2, 2)), (2, 2), (0, 0)),
    "a shape of floats": lambda: lax.reshape(A, (1.5, 2.0)),
    "lax.slice": lambda: lax.slice(A, (0, 0), (3, 3)),
    "lax.dynamic_update_slice": lambda: lax.dynamic_update_slice(A, B, (0, 0)),
    "lax.scan": lambda: lax.scan(lambda c, x: (c, x), 0.0, (A, B)),
    "vmap": lambda: hx.vmap(hnp.add)(A, B),
    "jvp": lambda: hx.jvp(hnp.sin, (A,), (B,)),
    "linalg": lambda: hnp.linalg.norm(A @ B),
    "attention": lambda: nn.dot_product_attention(*[hnp.ones((1, 2, 1, n)) for n in (3, 4, 3)]),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("transform", [lambda f: f, hx.jit, hx.make_program], ids=["eager", "jit", "make_program"])
def test_both_builtin_errors_catch_it(case, transform):
    with pytest.raises(hx.errors.HandlaxError) as caught:
        transform(CASES[case])()
    assert isinstance(caught.value, TypeError) and isinstance(caught.value, ValueError)
