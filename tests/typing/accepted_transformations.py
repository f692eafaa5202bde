"""Transformed functions keep their signatures; gradients have the type of the first argument."""

from functools import partial
from typing import Any, assert_type

import handlax as hx
from handlax import Array
from handlax import numpy as hnp
from handlax.typing import ArrayLike

Parameters = dict[str, Array]


def affine(w: Parameters, x: Array, power: int = 1) -> Array:
    return (w["a"] * x + w["b"]) ** power


def loss(w: Parameters, x: Array, *, power: int = 1) -> Array:
    return affine(w, x, power).sum()


def with_aux(w: Parameters, x: Array) -> tuple[Array, int]:
    return loss(w, x), 3


def square(x: ArrayLike) -> Array:
    return hnp.square(x)


def of_number(x: float) -> float:
    return 2 * x


class Model:
    def __init__(self) -> None:
        self.w = 2.0

    @hx.jit(static_argnums=0)
    def thrice(self, x: Array) -> Array:
        return self.w * x + x

    @partial(hx.jit, static_argnums=0)
    def scaled(self, x: Array) -> Array:
        return self.w * x

    @staticmethod
    @hx.jit
    def twice(x: Array) -> Array:
        return x + x


@hx.jit
def jitted(x: Array, n: int = 2) -> Array:
    return x * n


@hx.jit(static_argnames="n")
def powers(x: Array, n: int) -> list[Array]:
    return [x**i for i in range(n)]


x = hnp.arange(3.0)
w = {"a": hnp.array(1.0), "b": hnp.array(2.0)}

assert_type(jitted(x), Array)
assert_type(jitted(x, n=3), Array)
assert_type(powers(x, n=2), list[Array])
assert_type(jitted.lower(x).compile().as_text(), str)
assert_type(jitted.trace(x).program, hx.Program)
assert_type(hx.jit(affine, donate_argnums=1)(w, x + 1, power=2), Array)
assert_type(Model().thrice(x), Array)
Model().scaled(x)
assert_type(Model.twice(x), Array)
assert_type(hx.vmap(affine, in_axes=(None, 0))(w, x), Array)
assert_type(hx.checkpoint(affine)(w, x), Array)
assert_type(hx.vmap(hx.jit(hx.grad(square)))(x), Array)

assert_type(hx.grad(loss)(w, x, power=2), Parameters)
assert_type(hx.grad(square)(2.0), Array)
assert_type(hx.grad(of_number)(2.0), Array)
assert_type(hx.grad(hx.grad(square))(2.0), Array)
assert_type(hx.grad(with_aux, has_aux=True)(w, x), tuple[Parameters, int])
assert_type(hx.grad(loss, argnums=1)(w, x), Any)
assert_type(hx.value_and_grad(loss)(w, x), tuple[Array, Parameters])
assert_type(hx.value_and_grad(with_aux, has_aux=True)(w, x), tuple[tuple[Array, int], Parameters])
assert_type(hx.jacfwd(square)(x), Array)
assert_type(hx.hessian(square)(x), Array)
assert_type(hx.jvp(square, (x,), (x,)), tuple[Array, Array])
assert_type(hx.vjp(square, x)[0], Array)
assert_type(hx.vjp(with_aux, w, x, has_aux=True)[2], int)
assert_type(hx.linearize(square, x)[0], Array)
assert_type(hx.make_program(affine)(w, x, power=2), hx.Program)
hx.make_program(affine, return_shape=True)(w, x)[0].ops
hx.handle(hx.handler({}))(affine)(w, x, power=2)
state, value = hx.handle(hx.handler({}), 0)(affine)(w, x)
with hx.handle(hx.handler({}), 0) as run:
    affine(w, x)


@hx.custom_jvp
def relu(x: Array) -> Array:
    return hnp.maximum(x, 0.0)


@relu.defjvp
def relu_rule(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (x,), (dx,) = primals, tangents
    return relu(x), hnp.where(x > 0, dx, 0.0)


@hx.custom_vjp
def clipped(x: Array) -> Array:
    return x


clipped.defvjp(lambda x: (x, None), lambda _, ct: (hnp.clip(ct, -1.0, 1.0),))

assert_type(relu(x), Array)
assert_type(hx.grad(relu)(2.0), Array)
assert_type(hx.grad(clipped)(2.0), Array)
assert_type(hx.pmap(square)(x[:1]), Array)
with hx.set_mesh(hx.make_mesh((1,), ("i",))):
    assert_type(hx.shard_map(square, in_specs=hx.P("i"), out_specs=hx.P("i"))(x), Array)
    assert_type(hx.shard_map(out_specs=hx.P("i"), in_specs=hx.P("i"))(square)(x), Array)
