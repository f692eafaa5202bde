"""Calls of control flow and of functions with rules of their own: values, promotion of carries, and derivatives."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from . import weak_cases
from .call_case import Array, Case, case

x = Array("f32", (5,), -1.0, 1.0)
w = Array("f32", (4, 3), -1.0, 1.0, 1)
s = Array("f32", (), -1.0, 1.0, 2)
i32 = Array("i32", (5,), 0, 6, 3)
CONTROL: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {}


def control(*arguments: Any) -> Callable[..., Any]:
    """Decorator: a case for a function of the library and these arguments, with the function's name."""

    def add(f: Callable[..., Any]) -> Callable[..., Any]:
        CONTROL[f.__name__] = f, arguments
        return f

    return add


def derivative(m: ModuleType, f: Callable[..., Any], *xs: Any) -> Any:
    """The gradient of the sum of the results of ``f`` by all arguments."""
    numbers = tuple(range(len(xs)))
    return m.grad(lambda *ys: sum([m.numpy.sum(m.numpy.sin(part)) for part in m.tree.leaves(f(*ys))]), numbers)(*xs)


@control(x)
def scan_sums(m, x):
    return m.lax.scan(lambda c, x: (c + x, c * x), 0.0, x)


@control(x)
def scan_backwards(m, x):
    return m.lax.scan(lambda c, x: (m.numpy.tanh(c + x), c), m.numpy.float32(0.5), x, reverse=True)


@control(s)
def scan_without_xs(m, s):
    return m.lax.scan(lambda c, _: (0.5 * c + 1, c), s, None, length=4)


@control(x)
def scan_of_nothing(m, x):
    return m.lax.scan(lambda c, x: (c + x, (c, 2)), m.numpy.float32(1), x[:0])


@control(x, i32)
def scan_of_trees(m, x, i):
    def step(c, row):
        return {"a": c["a"] + row[0], "n": c["n"] + row[1]}, (c["n"] > 5, None)

    end, (large, nothing) = m.lax.scan(step, {"a": m.numpy.zeros(()), "n": 0}, (x, i))
    assert nothing is None
    return end["a"], end["n"], large


@control(x)
def scan_unrolled(m, x):
    f = lambda c, x: (m.numpy.sin(c) + x, c)
    made = [m.lax.scan(f, m.numpy.float32(0), x, unroll=n) for n in (2, 7, True)]
    return [part for end, ys in made for part in (end, ys)]


@control(i32)
def scan_promotes_a_weak_carry(m, i):
    return m.lax.scan(lambda c, n: (c + n, None), 0, i.astype("int16"))[0]


@control(w)
def scan_derivative(m, w):
    f = lambda w: m.lax.scan(lambda c, row: (m.numpy.tanh(c + row), c * row), m.numpy.ones(3), w)
    return derivative(m, f, w)


@control(w)
def scan_in_scan_derivative(m, w):
    def outer(c, row):
        return m.lax.scan(lambda d, y: (m.numpy.sin(d * y), d), c, row)

    return derivative(m, lambda w: m.lax.scan(outer, 0.7, w), w)


@control(x)
def scan_second_derivative(m, x):
    f = lambda x: m.lax.scan(lambda c, y: (m.numpy.sin(c * y + y), None), 1.0, x)[0]
    return m.hessian(f)(x)


@control(x, s)
def scan_reads_outer_values(m, x, s):
    return derivative(m, lambda x, s: m.lax.scan(lambda c, y: (c * m.numpy.cos(s) + y * s, c), s, x), x, s)


@control(x, s)
def cond_of_arrays(m, x, s):
    return m.lax.cond(s > 0, lambda x: x + 1, lambda x: x * 2, x)


@control(x)
def cond_of_constants(m, x):
    return [m.lax.cond(p, m.numpy.sin, m.numpy.cos, x) for p in (True, False, 0, 3)]


@control(x, s)
def cond_of_trees(m, x, s):
    y, n, nothing = m.lax.cond(s < 0, lambda t: (t["x"], 1, None), lambda t: (-t["x"], 2, None), {"x": x, "s": s})
    assert nothing is None
    return y, n


@control(x)
def cond_promotes_weak_results(m, x):
    x = m.numpy.asarray(x)
    return m.lax.cond(x[0] > 0, lambda: 1.0, lambda: x[1])


@control(x, s)
def cond_derivative(m, x, s):
    f = lambda x, s: m.lax.cond(s > 0.1, lambda x: m.numpy.sin(x) * s, lambda x: x * x, x)
    return derivative(m, f, x, s)


@control(x, Array("i32", (), values=(2,)))
def switch_inside(m, x, n):
    return [m.lax.switch(n + k, [m.numpy.sin, m.numpy.cos, lambda x: x * x], x) for k in (-5, -2, -1, 0, 9)]


@control(x, Array("i32", (), values=(1,)))
def switch_derivative(m, x, n):
    f = lambda x: m.lax.switch(n, [m.numpy.sin, lambda x: x**3, m.numpy.exp], x)
    return derivative(m, f, x)


@control(Array("i32", (), values=(27,)))
def while_of_integers(m, n):
    more = lambda c: c[0] > 1
    step = lambda c: (m.numpy.where(c[0] % 2 == 0, c[0] // 2, 3 * c[0] + 1), c[1] + 1)
    return m.lax.while_loop(more, step, (n, 0))


@control(x)
def while_of_floats(m, x):
    return m.lax.while_loop(lambda x: m.numpy.sum(x * x) < 50.0, lambda x: 1.5 * x, x)


@control(s)
def while_never(m, s):
    return m.lax.while_loop(lambda c: c[0] < 0, lambda c: (c[0] + 1, c[1] * 2), (0, s))


@control(s)
def while_forward_derivative(m, s):
    f = lambda s: m.lax.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, m.numpy.sin(c[1]) + s), (0, s))[1]
    return m.jvp(f, (s,), (m.numpy.ones_like(s),))


@control(x)
def fori_of_constants(m, x):
    made = [m.lax.fori_loop(a, b, lambda i, c: c + i * x, m.numpy.zeros_like(x)) for a, b in ((0, 4), (-2, 1), (3, 1))]
    return [*made, m.lax.fori_loop(0, 5, lambda i, c: c * 2 + i, 0, unroll=2)]


@control(x, Array("i32", (), values=(4,)))
def fori_of_values(m, x, n):
    return m.lax.fori_loop(1, n, lambda i, c: (c[0] * x + i, c[1] + 1), (x, 0))


@control(x)
def fori_derivative(m, x):
    return derivative(m, lambda x: m.lax.fori_loop(0, 3, lambda i, c: m.numpy.sin(c) * x + i, x), x)


@control(w)
def map_of_rows(m, w):
    return m.lax.map(lambda row: (m.numpy.sum(row), row > 0), w)


@control(w)
def map_in_batches(m, w):
    return m.lax.map(lambda row: m.numpy.cumsum(row), w, batch_size=3)


@control(w)
def map_derivative(m, w):
    return derivative(m, lambda w: m.lax.map(lambda row: row * m.numpy.sum(m.numpy.exp(row)), w), w)


@control(w)
def associative_scan_of_sums(m, w):
    return [m.lax.associative_scan(m.numpy.add, w, reverse=r, axis=a) for r in (False, True) for a in (0, 1)]


@control(w, w)
def associative_scan_of_pairs(m, a, b):
    compose = lambda f, g: (f[0] * g[0], g[0] * f[1] + g[1])
    return m.lax.associative_scan(compose, (a, b))


@control(Array("f32", (6, 2, 2), -1.0, 1.0, 4))
def associative_scan_of_matrices(m, a):
    return m.lax.associative_scan(m.numpy.matmul, a)


@control(w)
def associative_scan_derivative(m, w):
    return derivative(m, lambda w: m.lax.associative_scan(lambda a, b: a * b + m.numpy.sin(a), w), w)


def softplus(m: ModuleType) -> Any:
    f = m.custom_jvp(lambda x: m.numpy.log1p(m.numpy.exp(x)))
    f.defjvps(lambda dx, y, x: dx / (1 + m.numpy.exp(-x)))
    return f


@control(Array("f32", (4,), values=(-100.0, -1.0, 2.0, 100.0)))
def custom_jvp_rule(m, x):
    f = softplus(m)
    return f(x[1:3]), derivative(m, f, x), m.jvp(f, (x[1:3],), (x[:2],))


@control(x)
def custom_jvp_in_scan(m, x):
    f = softplus(m)
    return derivative(m, lambda x: m.lax.scan(lambda c, y: (f(c * y), c), 0.3, x), x)


def clipped(m: ModuleType) -> Any:
    """The identity, with a gradient that is no larger than a bound."""
    f = m.custom_vjp(lambda bound, x: x, nondiff_argnums=(0,))
    f.defvjp(lambda bound, x: (x, None), lambda bound, _, ct: (m.numpy.clip(ct, -bound, bound),))
    return f


@control(x)
def custom_vjp_rule(m, x):
    f = clipped(m)
    return f(0.5, x), derivative(m, lambda x: f(0.5, 3 * x), x)


@control(x)
def custom_vjp_in_loops(m, x):
    f = clipped(m)
    return derivative(m, lambda x: m.lax.fori_loop(0, 3, lambda i, c: f(0.7, m.numpy.sin(2 * c)), x), x)


@control(x)
def custom_gradient_of_a_square(m, x):
    f = m.custom_gradient(lambda x: (x**2, lambda ct: 5 * ct * x))
    return derivative(m, f, x)


@control(x)
def checkpoint_derivative(m, x):
    f = m.checkpoint(lambda x: m.numpy.sin(m.numpy.sin(x)) * x)
    return derivative(m, f, x), m.hessian(lambda x: m.numpy.sum(f(x)))(x)


@control(Array("f32", (), 0.5, 3.0))
def custom_root_of_a_cube(m, a):
    def root(a):
        solve = lambda f, start: m.lax.fori_loop(0, 30, lambda i, y: y - f(y) / (3 * y * y), start)
        return m.lax.custom_root(lambda y: y**3 - a, m.numpy.float32(1.5), solve, lambda g, b: b / g(1.0))

    return root(a), m.grad(root)(a), m.grad(m.grad(root))(a)


@control(Array("f32", (2, 2), values=(3.0, 1.0, 0.5, 2.0)), Array("f32", (2,), -1.0, 1.0))
def custom_linear_solve_of_two(m, a, b):
    def solve(matvec, b):
        columns = [matvec(row) for row in m.numpy.eye(2)]
        (p, r), (q, t) = columns[0], columns[1]
        return m.numpy.stack([t * b[0] - q * b[1], p * b[1] - r * b[0]]) / (p * t - q * r)

    f = lambda a, b: m.lax.custom_linear_solve(lambda v: a @ v, b, solve, transpose_solve=solve)
    return f(a, b), derivative(m, f, a, b)


@control(x)
def stop_gradient_of_a_factor(m, x):
    return derivative(m, lambda x: m.lax.stop_gradient(m.numpy.sin(x)) * x, x)


# derivatives consist of several operations, each with a rounding error of its own
LOOSE = {"while_of_floats": 4, "custom_root_of_a_cube": 8, "associative_scan_of_matrices": 8}


def cases() -> list[Case]:
    made = []
    for name, (call, arguments) in CONTROL.items():
        loose = LOOSE.get(name, 8 if "derivative" in name or "custom" in name else 2)
        made.append(case(name, *arguments, call=call, loose=loose))
    return made


CASES = [*cases(), *weak_cases.CASES]
