"""One linearisation used many times, abstract evaluation of shapes, and a transposed linear map."""

import handlax
import handlax.numpy as jnp


def model(w, x):
    return jnp.tanh(w @ x) * jnp.exp(-jnp.abs(x[: w.shape[0]]))


def main():
    w = jnp.sin(jnp.arange(12.0)).reshape(3, 4)
    x = jnp.linspace(-1.0, 1.0, 4)
    value, push = handlax.linearize(lambda x: model(w, x), x)
    columns = handlax.vmap(push)(jnp.eye(4))
    _, pull = handlax.vjp(lambda x: model(w, x), x)
    rows = handlax.vmap(lambda ct: pull(ct)[0])(jnp.eye(3))
    back = handlax.linear_transpose(lambda x: w @ x, x)
    shape = handlax.eval_shape(handlax.jacfwd(model, argnums=(0, 1)), w, x)
    return {
        "value": value,
        "columns": columns,
        "rows": rows,
        "back": back(jnp.ones(3))[0],
        "shapes": [*shape[0].shape, *shape[1].shape],
        "dtype": str(shape[0].dtype),
    }
