"""Loops and branches over weak numbers: programs of the library and of x, three numbers of f32.

What a body sees is weak as the carry started; what comes out is weak as the body gives it; a weak number whose dtype
the body changes becomes a strong one.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from .call_case import Array, Case, case


def counted(m: ModuleType, step: Callable[[Any], Any], start: Any, n: int = 3) -> Any:
    """``step`` on a carry, ``n`` times in a while loop."""
    return m.lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, step(s[1])), (0, start))


def strong(m: ModuleType, x: Any, dtype: str) -> Any:
    return m.numpy.asarray(x, dtype)


def root(m: ModuleType, f: Callable[[Any], Any], guess: Any) -> Any:
    def newton(f: Callable[[Any], Any], start: Any) -> Any:
        return m.lax.fori_loop(0, 9, lambda i, x: x - f(x) / (2 * x), start)

    return m.lax.custom_root(f, guess, newton, lambda g, b: b / g(1.0))


def seen(i: Any, like: Any) -> Any:
    """The type of an integer in a body, as a number: its bytes, plus 10 where it is weak."""
    return i.astype(like.dtype) * 0 + i.dtype.itemsize + 10 * bool(i.weak_type)


WEAK: dict[str, Callable[[ModuleType, Any], Any]] = {
    "while_of_halves": lambda m, x: counted(m, lambda c: c + 1.5, 0),
    "while_of_weak_floats": lambda m, x: counted(m, lambda c: c + 1.5, 0.0),
    "while_of_weak_integers": lambda m, x: counted(m, lambda c: c + 1, 0),
    "while_weak_to_f16": lambda m, x: counted(m, lambda c: c + strong(m, 1.5, "float16"), 0),
    "while_weak_float_to_f16": lambda m, x: counted(m, lambda c: c + strong(m, 1.5, "float16"), 0.5),
    "while_weak_to_u8": lambda m, x: counted(m, lambda c: c + strong(m, 1, "uint8"), 0),
    "while_weak_to_bf16": lambda m, x: counted(m, lambda c: c + strong(m, 1, "bfloat16"), 0),
    "while_weak_to_c64": lambda m, x: counted(m, lambda c: c * strong(m, 1j, "complex64"), 1.0),
    "while_weak_to_weak_complex": lambda m, x: counted(m, lambda c: c * 1j, 1),
    "while_strong_stays": lambda m, x: counted(m, lambda c: c + 1.5, strong(m, 0, "float16")),
    "while_strong_integer_to_weak": lambda m, x: counted(m, lambda c: 7, strong(m, 0, "int32")),
    "while_strong_float_to_weak": lambda m, x: counted(m, lambda c: 7.0, strong(m, 0, "float32")),
    "while_swaps": lambda m, x: counted(m, lambda c: (c[1], c[0]), (1.0, strong(m, 2, "float32"))),
    "while_sees_what_started": lambda m, x: counted(
        m, lambda c: (c[0] + x[0], c[0] * strong(m, 2, "float16")), (0.5, strong(m, 0, "float16"))
    ),
    "while_tests_what_started": lambda m, x: m.lax.while_loop(
        lambda c: (c[0] * strong(m, 1, "float16")).dtype.itemsize > c[1], lambda c: (c[0] + x[1], c[1] + 1), (0.0, 0)
    ),
    "scan_weak_to_strong": lambda m, x: m.lax.scan(lambda c, x: (c + x, c), 0.5, x),
    "scan_weak_integer_to_strong": lambda m, x: m.lax.scan(lambda c, x: (c + x.astype("int32"), c), 2, x),
    "scan_weak_to_other_dtype": lambda m, x: m.lax.scan(lambda c, x: (c + x, c), 2, x),
    "scan_weak_to_weak_float": lambda m, x: m.lax.scan(lambda c, x: (c + 0.5, c), 0, x),
    "scan_weak_results": lambda m, x: m.lax.scan(lambda c, x: (c + 1, (1, 2 * c, c * x, 1.0)), 0, x),
    "scan_strong_to_weak": lambda m, x: m.lax.scan(lambda c, x: (1.0, c), strong(m, 0, "float32"), x),
    "scan_weak_slices": lambda m, x: m.lax.scan(
        lambda c, x: (c + x, x * 2), 0, m.numpy.broadcast_to(m.numpy.asarray(1.0), (3,))
    ),
    "scan_of_no_runs": lambda m, x: m.lax.scan(lambda c, x: (c + 1.5, c), 0, None, length=0),
    "scan_sees_what_started": lambda m, x: m.lax.scan(lambda c, x: (c + x, c * strong(m, 2, "float16")), 0.5, x),
    "scan_weak_to_bf16": lambda m, x: m.lax.scan(lambda c, x: (c + x.astype("bfloat16"), c * 2), 0.5, x),
    "scan_strong_bf16": lambda m, x: m.lax.scan(
        lambda c, x: (c + x, c * 2.0), strong(m, 0, "bfloat16"), x.astype("bfloat16")
    ),
    "scan_of_while": lambda m, x: m.lax.scan(lambda c, x: (counted(m, lambda d: d + 1.5, c)[1], c), 0, x),
    "fori_weak": lambda m, x: m.lax.fori_loop(0, 3, lambda i, c: c + i, 0),
    "fori_weak_float": lambda m, x: m.lax.fori_loop(0, 3, lambda i, c: c + i, 0.0),
    "fori_half": lambda m, x: m.lax.fori_loop(0, 3, lambda i, c: c + 0.5, 0),
    "fori_never": lambda m, x: m.lax.fori_loop(3, 0, lambda i, c: c + 1.5, 0),
    "fori_integer_of_bytes": lambda m, x: m.lax.fori_loop(
        np.array(0, "int8"), np.array(3, "int8"), lambda i, c: seen(i, c), 0
    ),
    "fori_integer_of_i32": lambda m, x: m.lax.fori_loop(0, strong(m, 3, "int32"), lambda i, c: seen(i, c), 0),
    "fori_computed_upper": lambda m, x: m.jit(
        lambda n: m.lax.fori_loop(0, n, lambda i, c: (seen(i, c[0]), i), (0, 0))
    )(strong(m, 3, "int32")),
    "fori_computed_upper_byte": lambda m, x: m.jit(
        lambda n: m.lax.fori_loop(0, n, lambda i, c: (seen(i, c[0]), i), (0, 0))
    )(strong(m, 3, "int8")),
    "fori_computed_lower": lambda m, x: m.jit(
        lambda n: m.lax.fori_loop(n, 3, lambda i, c: (seen(i, c[0]), i), (0, 0))
    )(strong(m, 0, "int32")),
    "fori_computed_half": lambda m, x: m.lax.fori_loop(0, x[0].astype("int32") + 3, lambda i, c: c + 0.5, 0),
    "cond_weak": lambda m, x: m.lax.cond(x[0] > 0, lambda: 1, lambda: 2),
    "cond_weak_if_true": lambda m, x: m.lax.cond(x[0] > 0, lambda: 1.0, lambda: strong(m, 2, "float32")),
    "cond_weak_if_false": lambda m, x: m.lax.cond(x[0] > 0, lambda: x[0], lambda: 2.0),
    "cond_of_pairs": lambda m, x: m.lax.cond(x[0] > 0, lambda: (x[0], 2.0), lambda: (1.0, x[1])),
    "switch_weak_first": lambda m, x: m.lax.switch(1, [lambda: 1.0, lambda: x[0], lambda: x[1]]),
    "switch_weak_second": lambda m, x: m.lax.switch(1, [lambda: x[0], lambda: 1.0, lambda: x[1]]),
    "map_to_weak": lambda m, x: m.lax.map(lambda x: (1, 1.0, x * 2), x),
    "map_in_batches": lambda m, x: m.lax.map(lambda x: 1.0, x, batch_size=2),
    "derivative_of_a_scan": lambda m, x: m.value_and_grad(
        lambda a: m.numpy.sum(m.lax.scan(lambda c, x: (c * a + x, c), 0.5, x)[1])
    )(2.0),
    "tangent_of_a_scan": lambda m, x: m.jvp(
        lambda a: m.lax.scan(lambda c, _: (c * a, c), 1, None, length=2), (2.0,), (1.0,)
    ),
    "tangent_of_a_while": lambda m, x: m.jvp(lambda a: counted(m, lambda c: c * a, 1)[1], (2.0,), (1.0,)),
    "root_of_a_weak_guess": lambda m, x: root(m, lambda y: y * y - 2.0, 1.0),
    "root_of_a_strong_number": lambda m, x: root(m, lambda y: y * y - (x[0] * 0 + 2), 1.0),
}


def cases() -> list[Case]:
    x = Array("f32", (3,), -1.0, 1.0)
    return [
        case(f"weak_{name}", x, call=lambda m, x, call=call: call(m, m.numpy.asarray(x)), loose=4)
        for name, call in WEAK.items()
    ]


CASES = cases()
