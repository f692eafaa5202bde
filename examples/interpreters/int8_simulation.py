"""Quantisation: ``quantised(f, samples)`` computes every product of matrices in integers of 8 bits, with scales found
by calibration.

    python examples/interpreters/int8_simulation.py

The products of the recorded program are numbered, also those in loops and branches. One handler then finds the largest
operands of each, over all iterations and samples; another one rounds operands to 255 steps, and multiplies integers.
Derivatives pass the rounding as if it were not there. Source: Jacob et al., Quantization and training of neural
networks for efficient integer-arithmetic-only inference (2018).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import handlax as hx
from handlax import lax, nn, random
from handlax import numpy as hnp
from handlax import operations as o
from handlax.core import Literal
from handlax.extend import as_array, record


# y = x w, the product with this number in its program
@hx.operation
class Numbered:
    number: int
    product: o.DotGeneral

    def result_type(op, x, w):
        return op.product.result_type(x, w)

    def decompose(op, x, w):
        return hx.perform(op.product, x, w)


def numbered(program: Any, numbers: Iterator[int]) -> Any:
    """The program with numbered products of floats, those in its bodies too."""

    def f(*xs: Any) -> list[Any]:
        values = dict(zip(program.invars, xs))
        read = lambda v: v.val if isinstance(v, Literal) else values[v]
        for eqn in program.eqns:
            op, operands = eqn.op, [*map(read, eqn.operands)]
            if op.bodied:
                op = op.map_bodies(lambda body: numbered(body, numbers))
            elif type(op) is o.DotGeneral and all([hnp.issubdtype(x.dtype, hnp.floating) for x in operands]):
                op = Numbered(next(numbers), op)
            values.update(zip(eqn.outvars, op.as_results(hx.perform(op, *operands))))
        return [*map(read, program.outvars)]

    return record(f, program.in_types, program.name)


def watch(largest: Any, op: Any, x: Any, w: Any) -> Any:
    """The clause of calibration: its state has a row (largest abs x, largest abs w) for each product."""
    seen = hnp.stack([abs(x).max(), abs(w).max()])
    return largest.at[op.number].max(seen), hx.perform(op.product, x, w)


def rounded(largest: Any) -> Any:
    """The handler of products in integers, each with the scales of its number."""

    def clause(op: Any, x: Any, w: Any) -> Any:
        scales = hnp.maximum(largest[op.number], 1e-30) / 127
        a, b = [hnp.clip(hnp.round(v / s), -127, 127).astype("int8") for v, s in ((x, scales[0]), (w, scales[1]))]
        exact = hx.perform(op.product, x, w)
        integer = dataclasses.replace(op.product, preferred_element_type=np.dtype("int32"))
        y = hx.perform(integer, a, b).astype(exact.dtype) * (scales[0] * scales[1])
        return (exact + lax.stop_gradient(y - exact)).astype(exact.dtype)

    return hx.handler({Numbered: clause})


def quantised(f: Callable[..., Any], samples: Sequence[tuple[Any, ...]]) -> Callable[..., Any]:
    """``f`` with products in 8 bits, for arguments of the types of the samples, which show how large operands are."""
    numbers = itertools.count()
    program = numbered(hx.make_program(f)(*samples[0]), numbers)
    largest = hnp.zeros((max(next(numbers), 1), 2))
    calibration = hx.handler({Numbered: watch}, moves=hx.merge(hnp.maximum, -hnp.inf))
    for args in samples:
        largest, _ = hx.handle(calibration, largest)(program)(*hx.tree.leaves(args))
    result = hx.tree.structure(hx.eval_shape(f, *samples[0]))

    def simulated(*args: Any) -> Any:
        return hx.tree.unflatten(result, hx.handle(rounded(largest))(program)(*map(as_array, hx.tree.leaves(args))))

    return simulated


def network(x: Any, w: Any, v: Any) -> Any:
    return lax.scan(lambda h, w: (nn.relu(h @ w) + h, None), x, w)[0] @ v


def main() -> None:
    keys = random.split(random.key(0), 4)
    x, more = [random.normal(key, (32, 16)) for key in keys[:2]]
    w, v = random.normal(keys[2], (4, 16, 16)) / 4, random.normal(keys[3], (16, 3))
    coarse = hx.jit(quantised(network, [(x, w, v), (more, w, v)]))
    exact, found = network(x, w, v), coarse(x, w, v)
    error = float(abs(found - exact).max() / abs(exact).max())
    print(f"5 products in 8 bits: a relative error of {error:.4f}")
    assert 1e-5 < error < 0.03


if __name__ == "__main__":
    main()
