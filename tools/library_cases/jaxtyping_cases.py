"""Types of arrays of jaxtyping, checked when functions are called."""

import jax
import jax.numpy as jnp
from beartype import beartype
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree, jaxtyped


@jaxtyped(typechecker=beartype)
def product(x: Float[Array, "n k"], y: Float[Array, "k m"]) -> Float[Array, "n m"]:
    return x @ y


def accepted():
    return product(jnp.ones((2, 3)), jnp.ones((3, 4))), jax.jit(product)(jnp.ones((1, 3)), jnp.ones((3, 2)))


def refused():
    found = []
    for x, y in ((jnp.ones((2, 3)), jnp.ones((2, 4))), (jnp.ones((2, 3), int), jnp.ones((3, 4)))):
        try:
            product(x, y)
        except Exception as error:
            found.append("type" in str(error).lower())
    return found


def instances():
    x, key = jnp.ones((2, 3)), jax.random.key(0)
    kinds = (Float[Array, "2 3"], Float[Array, "3 2"], Int[Array, "..."], PRNGKeyArray)
    return [isinstance(value, kind) for value in (x, x.astype(int), key) for kind in kinds]


def inside_of_transformations():
    def f(x):
        return jnp.where(isinstance(x, Float[Array, ""]), x**2, 0.0)

    return jax.vmap(f)(jnp.arange(3.0)), jax.grad(f)(3.0)


def trees():
    return [isinstance({"a": jnp.ones(2), "b": jnp.ones(2)}, PyTree[Float[Array, "2"]]),
            isinstance({"a": jnp.ones(2), "b": 1}, PyTree[Float[Array, "2"]])]
