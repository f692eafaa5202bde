"""The two libraries under one set of names, and functions with new code."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

import jax
import jax.lax
import jax.numpy
import numpy as np

import handlax
import handlax.lax
import handlax.numpy

_serial = itertools.count(1_000_003)


@dataclass(frozen=True)
class Side:
    """One library: its namespaces, and ``walk``, which visits every equation of its programs."""

    name: str
    lib: Any
    np: Any
    lax: Any
    walk: Callable[[Any], int]

    def trace(self, f: Callable[..., Any], *args: Any) -> Any:
        """The complete program of ``f``, every equation visited: operation, types, effects and source line."""
        program = self.lib.make_jaxpr(f)(*args)
        self.walk(program)
        return program

    def array(self, x: Any) -> Any:
        return self.np.asarray(x)

    def ready(self, x: Any) -> Any:
        return self.lib.block_until_ready(x)

    def __str__(self) -> str:
        return self.name


def _walk_tape(program: Any) -> int:
    """Visit the columns of a program of handlax, each of which has an entry per equation."""
    visited = 0
    for _op, _operands, _types, (_code, _offset) in zip(program.ops, program.args, program.types, program.sites):
        visited += 1
    assert program.effects is not None and program.out_types is not None
    return visited


def _walk_equations(closed: Any) -> int:
    visited = 0
    for equation in closed.jaxpr.eqns:
        _op, _operands, _types = equation.primitive, equation.invars, equation.outvars
        _site, _effects = equation.source_info, equation.effects
        visited += 1
    assert closed.effects is not None and closed.out_avals is not None
    return visited


OURS = Side("handlax", handlax, handlax.numpy, handlax.lax, _walk_tape)
THEIRS = Side("JAX", jax, jax.numpy, jax.lax, _walk_equations)


def renewed(f: FunctionType) -> Any:
    """``f`` with new code, for which the caches of both libraries, by identity or structure, have no entry."""
    code = _renewed_code(f.__code__, next(_serial))
    g = FunctionType(code, f.__globals__, f.__name__, f.__defaults__, f.__closure__)
    g.__kwdefaults__ = f.__kwdefaults__
    return g


def _renewed_code(code: CodeType, serial: int) -> CodeType:
    consts = [_renewed_code(c, serial) if isinstance(c, CodeType) else c for c in code.co_consts]
    return code.replace(co_consts=(*consts, serial))


def numpy_leaves(x: Any) -> list[np.ndarray[Any, Any]]:
    """The arrays of nested dictionaries, lists and tuples, in the order of their keys."""
    if isinstance(x, dict):
        return [leaf for key in sorted(x) for leaf in numpy_leaves(x[key])]
    if isinstance(x, (list, tuple)):
        return [leaf for part in x for leaf in numpy_leaves(part)]
    return [np.asarray(x)]


def assert_agree(ours: Any, theirs: Any, rtol: float = 2e-4, atol: float = 1e-5) -> None:
    """Assert equal structure, shapes and dtypes, and values equal up to rounding."""
    mine, peers = numpy_leaves(ours), numpy_leaves(theirs)
    assert len(mine) == len(peers), f"{len(mine)} results of handlax, {len(peers)} of JAX"
    for i, (x, y) in enumerate(zip(mine, peers)):
        assert x.shape == y.shape and x.dtype == y.dtype, f"result {i}: {x.dtype}{x.shape}, {y.dtype}{y.shape}"
        wide = np.float64 if x.dtype.kind not in "biuc" else x.dtype
        np.testing.assert_allclose(x.astype(wide), y.astype(wide), rtol=rtol, atol=atol, err_msg=f"result {i}")


def on(side: Side, x: Any) -> Any:
    """NumPy arrays in dictionaries, lists and tuples as arrays of one side."""
    if isinstance(x, dict):
        return {key: on(side, part) for key, part in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)([on(side, part) for part in x])
    return side.array(x)


def seeded(*shape: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).uniform(0.2, 0.9, shape).astype(dtype)


