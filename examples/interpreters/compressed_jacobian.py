"""Compressed Jacobians: all entries of a sparse Jacobian from a few passes of forward mode.

    python examples/interpreters/compressed_jacobian.py

Columns without a common row share a pass: by ``pattern`` of jacobian_sparsity.py they can be told apart in its result.
Source: Curtis, Powell & Reid, On the estimation of sparse Jacobian matrices (1974).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jacobian_sparsity import pattern

import handlax as hx
from handlax import numpy as hnp
from handlax.experimental.sparse import BCOO
from handlax.extend import as_array


def colours(depends: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A number for each column, such that columns with a common row have different ones."""
    used: list[set[int]] = [set() for _ in depends]
    colour = np.zeros(depends.shape[1], int)
    for column in np.argsort(-depends.sum(0), kind="stable"):
        near = [used[row] for row in np.flatnonzero(depends[:, column])]
        taken = set().union(*near)
        colour[column] = next(c for c in range(len(taken) + 1) if c not in taken)
        for numbers in near:
            numbers.add(int(colour[column]))
    return colour


def sparse_jacobian(f: Callable[[Any], Any], x: Any) -> Callable[[Any], BCOO]:
    """``sparse_jacobian(f, x)(z).todense() == jacfwd(f)(z)``, as a matrix, for every z of the type of ``x``."""
    depends = pattern(f, x)
    (rows, columns), colour = np.nonzero(depends), colours(depends)
    seeds = np.eye(colour.max() + 1, dtype=as_array(x).dtype)[:, colour]

    def jacobian(z: Any) -> BCOO:
        push = lambda seed: hx.jvp(f, (z,), (seed.reshape(z.shape),))[1].ravel()
        compressed = hx.vmap(push)(hnp.array(seeds))
        return BCOO((compressed[colour[columns], rows], np.stack([rows, columns], 1)), shape=depends.shape)

    return jacobian


def brusselator(u: Any) -> Any:
    """A reaction with diffusion on a ring, both substances in one vector."""
    a, b = u.reshape(2, -1)
    spread = lambda c: hnp.roll(c, 1) - 2 * c + hnp.roll(c, -1)
    return hnp.concatenate([1 + a * a * b - 4 * a + spread(a), 3 * a - a * a * b + spread(b)])


def main() -> None:
    u = hnp.sin(hnp.arange(400.0))
    jacobian = hx.jit(sparse_jacobian(brusselator, u))
    passes = colours(pattern(brusselator, u)).max() + 1
    print(f"{jacobian(u).nse} of {u.size ** 2} entries, in {passes} passes of forward mode instead of {u.size}")
    assert passes < 12 and np.allclose(jacobian(u).todense(), hx.jacfwd(brusselator)(u), atol=1e-5)


if __name__ == "__main__":
    main()
