"""Train a small network in mixed precision, by a handler around a step written for one precision.

    python examples/mixed_precision.py

Products of matrices take bfloat16 or float16 operands, forwards and backwards; sums, the loss and the parameters keep
their 32 bits. Gradients too small for float16 become zero, so the loss is scaled before it is differentiated: the scale
is halved, and the step left out, when a gradient overflows, and doubled when none has for a while.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import handlax as hx
from handlax import lax, nn, random
from handlax import numpy as hnp
from handlax.library import autocast

SIZES = (64, 64, 10)
BATCH = 64
EPOCHS = 15
RATE = 0.3
PATIENCE = 100  # steps without an overflow until the scale is doubled

Params = list[dict[str, Any]]


def initial(key: Any) -> Params:
    init = nn.initializers.he_normal()
    return [
        {"w": init(k, (m, n)), "b": hnp.zeros(n)}
        for k, m, n in zip(random.split(key, len(SIZES) - 1), SIZES, SIZES[1:])
    ]


def logits(params: Params, x: Any) -> Any:
    *hidden, last = params
    for layer in hidden:
        x = nn.relu(x @ layer["w"] + layer["b"])
    return x @ last["w"] + last["b"]


def loss(params: Params, x: Any, y: Any) -> Any:
    """Mean cross entropy."""
    return -hnp.mean(hnp.sum(nn.log_softmax(logits(params, x)) * nn.one_hot(y, SIZES[-1]), axis=-1))


def scaled_gradient(params: Params, x: Any, y: Any, scale: Any) -> tuple[Any, Params]:
    """The loss and its gradient, computed from ``scale`` times the loss so that small entries do not underflow."""
    value, gradient = hx.value_and_grad(lambda params: scale * loss(params, x, y))(params)
    return value / scale, hx.tree.map(lambda g: g / scale, gradient)


def step(state: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """One step of gradient descent, skipped where a gradient has overflowed."""
    params, scale, calm = state
    value, gradient = scaled_gradient(params, x, y, scale)
    finite = hnp.stack([hnp.all(hnp.isfinite(g)) for g in hx.tree.leaves(gradient)]).all()

    def go() -> Any:
        grown = calm + 1 >= PATIENCE
        moved = hx.tree.map(lambda p, g: p - RATE * g, params, gradient)
        return moved, hnp.where(grown, 2.0 * scale, scale), hnp.where(grown, 0, calm + 1)

    return lax.cond(finite, go, lambda: (params, 0.5 * scale, hnp.zeros_like(calm))), (value, finite)


def epochs(params: Params, scale: Any, x: Any, y: Any, key: Any) -> Any:
    """All epochs as one loop over batches of rows."""
    count = len(y) // BATCH

    def rows(key: Any) -> Any:
        return random.permutation(key, len(y))[: count * BATCH].reshape(count, BATCH)

    batches = hx.vmap(rows)(random.split(key, EPOCHS)).reshape(EPOCHS * count, BATCH)
    (params, scale, _), (values, finite) = lax.scan(
        lambda state, rows: step(state, x[rows], y[rows]), (params, scale, hnp.int32(0)), batches
    )
    return params, scale, values, finite


def products(program: Any) -> Counter[str]:
    """The dtypes of the operands of the products in a program, its bodies included."""
    counts: Counter[str] = Counter()
    for eqn in program.eqns:
        if eqn.op.name == "dot_general":
            counts[str(eqn.invars[0].aval.dtype)] += 1
        for body in getattr(eqn.op, "bodies", ()):
            counts += products(body)
    return counts


def digits() -> tuple[np.ndarray, ...]:
    """Images in [0, 1] and labels, shuffled, four fifths for training."""
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    x, y = (data.data[order] / 16.0).astype(np.float32), data.target[order].astype(np.int32)
    split = len(y) * 4 // 5
    return x[:split], y[:split], x[split:], y[split:]


def accuracy(params: Params, x: Any, y: Any) -> Any:
    return hnp.mean(hnp.argmax(logits(params, x), axis=-1) == y)


def trained(dtype: str, scale: float, data: tuple[np.ndarray, ...]) -> dict[str, Any]:
    """Train with products of this dtype, from the same initial parameters and with the same batches for all dtypes."""
    x, y, x_test, y_test = data
    arguments = (initial(random.key(0)), hnp.float32(scale), x, y, random.key(1))
    mixed = epochs if dtype == "float32" else hx.handle(autocast(dtype))(epochs)
    params, last_scale, values, finite = hx.jit(mixed)(*arguments)
    return {
        "products": dict(products(hx.make_program(mixed)(*arguments))),
        "accuracy": float(hx.jit(accuracy)(params, x_test, y_test)),
        "loss": float(values[-20:].mean()),
        "left out": int((~finite).sum()),
        "scale": float(last_scale),
        "parameters": {str(leaf.dtype) for leaf in hx.tree.leaves(params)},
    }


def main() -> None:
    data = digits()
    scales = {"float32": 1.0, "bfloat16": 1.0, "float16": 2.0**24}
    results = {dtype: trained(dtype, scale, data) for dtype, scale in scales.items()}
    for result in results.values():
        numbers = ", ".join(f"{name} {result[name]:.7g}" for name in ("accuracy", "loss", "left out", "scale"))
        print(f"products {result['products']}: {numbers}, parameters {', '.join(result['parameters'])}")
    for dtype, result in results.items():
        assert set(result["products"]) == {dtype} and result["parameters"] == {"float32"}
        assert result["accuracy"] > 0.94 and abs(result["accuracy"] - results["float32"]["accuracy"]) < 0.02
    assert results["float32"]["left out"] == results["bfloat16"]["left out"] == 0
    assert 0 < results["float16"]["left out"] < 20  # the first scale was too large: it was halved until it was not


if __name__ == "__main__":
    main()
