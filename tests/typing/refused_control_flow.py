"""Mistakes with loops and branches."""

from handlax import Array, lax

State = tuple[Array, Array]


def step(carry: State, x: Array) -> tuple[State, Array]:
    return carry, x


def double(x: Array) -> Array:
    return 2 * x


def mistakes(x: Array) -> Array:
    lax.scan(step, x, x)  # error: arg-type, reportArgumentType reportCallIssue
    lax.scan(double, x, x)  # error: arg-type, reportArgumentType reportCallIssue
    lax.fori_loop(0, 3, double, x)  # error: arg-type, reportArgumentType reportCallIssue
    lax.cond(x > 0, double, double)  # error: arg-type call-arg, reportArgumentType reportCallIssue
    lax.cond(x > 0, double, double, "x")  # error: arg-type, reportArgumentType reportCallIssue
    return lax.scan(step, (x, x), x)  # error: return-value, reportReturnType
