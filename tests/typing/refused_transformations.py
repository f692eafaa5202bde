"""Mistakes with transformed functions."""

import handlax as hx
from handlax import Array


def f(x: Array, y: Array) -> Array:
    return x + y


def pair(x: Array, y: Array) -> tuple[Array, Array]:
    return x, y


@hx.jit
def jitted(x: Array, n: int = 2) -> Array:
    return x * n


@hx.custom_jvp
def own(x: Array) -> Array:
    return x


def mistakes(x: Array) -> Array:
    jitted(x, n="2")  # error: arg-type, reportArgumentType
    jitted(x, m=2)  # error: call-arg, reportCallIssue
    jitted.lowered(x)  # error: attr-defined, reportAttributeAccessIssue
    hx.jit(f)(x)  # error: call-arg, reportCallIssue
    hx.jit(f, static_args=0)  # error: call-overload, reportCallIssue
    hx.jit(None)  # error: call-overload, reportArgumentType
    hx.vmap(f)(x, "y")  # error: arg-type, reportArgumentType
    hx.vmap(3)  # error: arg-type, reportArgumentType
    hx.grad(f)(x)  # error: call-arg, reportCallIssue
    hx.grad(pair)  # error: arg-type, reportArgumentType reportCallIssue
    hx.grad(f)("x", x)  # error: arg-type, reportArgumentType
    hx.make_program(f)(x)  # error: call-arg, reportCallIssue
    hx.handle(hx.handler({}))(f)(x)  # error: call-arg, reportCallIssue
    hx.handle(hx.handler({}), 0)(f)(x)  # error: call-arg, reportCallIssue
    hx.vjp(f)  # error: call-overload, reportCallIssue
    hx.jvp(f, x, x)  # error: call-overload, reportArgumentType
    hx.checkpoint(f)(x)  # error: call-arg, reportCallIssue
    own("x")  # error: arg-type, reportArgumentType
    return hx.value_and_grad(f)(x, x)  # error: return-value, reportReturnType
