"""Representations of rotations of e3nn-jax."""

import e3nn_jax as e3nn
import jax
import jax.numpy as jnp

KEY = jax.random.PRNGKey(0)
X = e3nn.normal("2x0e + 1o", KEY, (3,))
R = e3nn.rand_matrix(jax.random.PRNGKey(1))


def representations():
    return X.array, str(X.irreps), X.filter("1o").array, e3nn.concatenate([X, X]).regroup().array


def products():
    return e3nn.tensor_product(X, X).array, e3nn.elementwise_tensor_product(X, X).array, str(
        e3nn.tensor_product("0e + 1o", "1o")), e3nn.clebsch_gordan(1, 1, 2)


def rotations():
    rotated = X.transform_by_matrix(R)
    return rotated.array, e3nn.norm(rotated).array - e3nn.norm(X).array, e3nn.matrix_to_angles(R)


def spherical_harmonics():
    points = jax.random.normal(KEY, (4, 3))
    f = lambda x: e3nn.spherical_harmonics("0e + 1o + 2e", x, True).array
    return f(points), jax.jacobian(f)(points[0]), e3nn.sh(3, points, normalize=True)


def gates():
    return e3nn.gate(e3nn.normal("4x0e + 1o", KEY, ())).array, e3nn.scalar_activation(X, [jax.nn.silu, None]).array


def a_linear_layer():
    layer = e3nn.FunctionalLinear("2x0e + 1o", "0e + 2x1o")
    weights = [jax.random.normal(KEY, w.path_shape) for w in layer.instructions if w.i_in >= 0]
    return jax.grad(lambda w: (layer(w, X[0]).array ** 2).sum())(weights), layer(weights, X[0]).array


def scattered_sums():
    return e3nn.scatter_sum(X, dst=jnp.array([0, 1, 1]), output_size=2).array, e3nn.soft_one_hot_linspace(
        jnp.linspace(0.1, 0.9, 4), start=0.0, end=1.0, number=3, basis="smooth_finite", cutoff=True)
