"""Tracing and transforming programs: microseconds per equation, whole models, nesting, many equations, memory."""

from __future__ import annotations

import functools
import gc
import itertools
import statistics
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
from jax._src.interpreters import mlir
from jax._src.lib.mlir import ir

from . import programs
from .sides import OURS, THEIRS, Side, assert_agree, on, renewed, seeded
from .timing import Pair, Plan, Prepare, Row, timed

LENGTH = 1000
MANY = 200_000


def _identity(side: Side, f: Any) -> Any:
    return f


def _jvp(side: Side, f: Any) -> Any:
    return lambda x: side.lib.jvp(f, (x,), (x,))


def _vmap(side: Side, f: Any) -> Any:
    return side.lib.vmap(f)


def _grad(side: Side, f: Any) -> Any:
    return side.lib.grad(lambda x: side.np.sum(f(x)))


def _vmap_grad(side: Side, f: Any) -> Any:
    return side.lib.vmap(_grad(side, f))


def _grad_grad(side: Side, f: Any) -> Any:
    return _grad(side, _grad(side, f))


TRANSFORMS: dict[str, tuple[Callable[[Side, Any], Any], tuple[int, ...]]] = {
    "": (_identity, (8,)), "jvp": (_jvp, (8,)), "vmap": (_vmap, (4, 8)), "grad": (_grad, (8,)),
    "vmap(grad)": (_vmap_grad, (4, 8)), "grad(grad)": (_grad_grad, (8,)),
}


def _written(side: Side, style: str, length: int) -> Any:
    if style == "lax":
        return programs.chain_lax(side.lax, length)
    return programs.chain_operators(length) if style == "operators" else programs.chain_numpy(side.np, length)


def traced(style: str, transform: str, length: int = LENGTH) -> Callable[[Side], Prepare]:
    """Trace a chain of operations under a transformation, with new code each round."""
    wrap, shape = TRANSFORMS[transform]

    def make(side: Side) -> Prepare:
        f, x = _written(side, style, length), side.array(seeded(*shape))

        def prepare() -> Callable[[], Any]:
            g = wrap(side, renewed(f))
            return lambda: side.trace(g, x)

        return prepare

    return make


def evaluates_alike(style: str, transform: str) -> Callable[[Any, Any], None]:
    """Both sides' functions give the same values; checked on a shorter chain, which compiles faster."""
    wrap, shape = TRANSFORMS[transform]

    def check(ours: Any, theirs: Any) -> None:
        assert len(ours.ops) >= LENGTH and len(theirs.jaxpr.eqns) >= LENGTH
        xs = [s.array(seeded(*shape)) for s in (OURS, THEIRS)]
        results = [s.lib.jit(wrap(s, _written(s, style, 16)))(x) for s, x in zip((OURS, THEIRS), xs)]
        assert_agree(*results)

    return check


def trace_row(name: str, bar: float, aim: float, style: str, transform: str) -> Row:
    measure = timed(traced(style, transform), per=LENGTH, check=evaluates_alike(style, transform), cold=True)
    return Row(name, bar, measure, aim)


def model(which: str, blocks: int = 2) -> tuple[Callable[[Side], Any], tuple[Any, ...]]:
    """A model's loss on either side, and its arguments in NumPy."""
    if which == "MLP":
        return lambda side: programs.mlp(side.np), (programs.mlp_params(), *programs.mlp_data())
    data = (programs.transformer_params(blocks), *programs.transformer_data())
    return lambda side: programs.transformer(side.np), data


def model_row(which: str, blocks: int, differentiate: bool, bar: float, aim: float) -> Row:
    loss, data = model(which, blocks)

    def make(side: Side) -> Prepare:
        f, args = loss(side), on(side, data)

        def prepare() -> Callable[[], Any]:
            g = renewed(f)
            h = side.lib.value_and_grad(g) if differentiate else g
            return lambda: side.trace(h, *args)

        return prepare

    def check(ours: Any, theirs: Any) -> None:
        small, few = model(which, 1)
        results = []
        for side in (OURS, THEIRS):
            f = small(side)
            results.append(side.lib.jit(side.lib.value_and_grad(f) if differentiate else f)(*on(side, few)))
        assert_agree(*results)

    title = which if which == "MLP" else f"transformer, {blocks} blocks"
    name = f"trace of grad: {title}" if differentiate else f"trace: {title}"
    return Row(name, bar, timed(make, check=check, cold=True), aim)


_FACTORS = itertools.count(1)


def nesting_row(depth: int) -> Row:
    """Trace nested programs of which no round of any depth has seen a part: caches find equal ones, by value."""
    def make(side: Side) -> Prepare:
        x = side.array(seeded(8))

        def prepare() -> Callable[[], Any]:
            f = renewed(programs.nested(side.lib, side.np, depth, renewed, 1.0 + 1e-6 * next(_FACTORS)))
            return lambda: side.trace(f, x)

        return prepare

    def check(ours: Any, theirs: Any) -> None:
        results = []
        for side in (OURS, THEIRS):
            f = programs.nested(side.lib, side.np, min(depth, 3), renewed)
            results.append(side.lib.jit(f)(side.array(seeded(8))))
        assert_agree(*results)

    bar, aim = (0.05, 0.03) if depth == 5 else (None, None)
    return Row(f"(sum . grad . jit)^{depth}, trace", bar, timed(make, check=check, cold=True), aim)


def many_row(transform: str) -> Row:
    """Microseconds per equation at 200,000 equations against 1,000, for handlax alone."""

    def measure(plan: Plan) -> Pair:
        make_few, make_many = traced("operators", transform)(OURS), traced("operators", transform, MANY)(OURS)
        few, many = [], []
        program = make_many()()
        assert len(program.ops) >= MANY
        _check_values(program, transform)
        del program
        for _ in range(plan.rounds):
            many.append(_seconds(make_many()) / MANY)
            few.append(statistics.median([_seconds(make_few()) for _ in range(5)]) / LENGTH)
        at_few = statistics.median(few) * 1e6
        return Pair(statistics.median(many) * 1e6, at_few, (f"at 1,000 equations: {at_few:.2f} us per equation",))

    title = f"trace of {transform}" if transform else "trace"
    return Row(f"us per equation at 200,000 equations against 1,000, {title}", 2.0, measure, 1.5, beside=False)


def _check_values(program: Any, transform: str) -> None:
    """Evaluate the program of 200,000 equations; compare with NumPy in double precision. The chain is linear in x."""
    shape = TRANSFORMS[transform][1]
    x = seeded(*shape)
    wide = x.astype(np.float64)
    expected = programs.chain_operators(MANY)(wide)
    slope = programs.chain_operators(MANY)(np.ones_like(wide))
    wanted = {"": [expected], "jvp": [expected, expected], "vmap": [expected], "grad": [slope]}[transform]
    for got, want in zip(program(OURS.array(x)), wanted, strict=True):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-2, atol=1e-6)


def _seconds(thunk: Callable[[], Any]) -> float:
    gc.collect()
    start = time.perf_counter()
    result = thunk()
    elapsed = time.perf_counter() - start
    del result
    return elapsed


def memory_row(transform: str) -> Row:
    """Bytes that a program keeps allocated while it is referenced, per primal equation."""
    length = 4000

    def measure(plan: Plan) -> Pair:
        figures = []
        for side in (OURS, THEIRS):
            prepare = traced("lax", transform, length)(side)
            prepare()()
            figures.append(statistics.median([_allocated(prepare()) for _ in range(3)]) / length)
        return Pair(*figures)

    title = f"trace of {transform}" if transform else "trace"
    return Row(f"memory per recorded equation, {title}", 0.25, measure, 0.10, unit="bytes held")


def _allocated(thunk: Callable[[], Any]) -> float:
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        result = thunk()
        gc.collect()
        after = tracemalloc.get_traced_memory()[0]
        del result
        return after - before
    finally:
        tracemalloc.stop()


def lower_row(parse: bool) -> Row:
    """Trace and lower to verified StableHLO; JAX's own lowering verifies in both rows."""
    from_text = parse_text if parse else None

    def make(side: Side) -> Prepare:
        f, x = programs.chain_lax(side.lax, LENGTH), side.array(seeded(8))

        def prepare() -> Callable[[], Any]:
            g = side.lib.jit(renewed(f))
            if side is THEIRS:
                return lambda: g.lower(x)
            if from_text is None:
                return lambda: g.lower(x).as_text()
            return lambda: from_text(g.lower(x).as_text())

        return prepare

    name = "trace + lower, " + ("with parse and verification" if parse else "text")
    bars = (0.25, 0.14) if parse else (0.13, 0.05)
    return Row(name, bars[0], timed(make, per=LENGTH, check=_lowered_alike, cold=True), bars[1])


def parse_text(text: str) -> Any:
    """The MLIR module of a text, parsed and verified in one shared context."""
    return ir.Module.parse(text, _context())


@functools.cache
def _context() -> Any:
    return mlir.make_ir_context()


def _lowered_alike(ours: Any, theirs: Any) -> None:
    assert str(ours).count("stablehlo.sine") == theirs.as_text().count("stablehlo.sine") == LENGTH // 4
    evaluates_alike("lax", "")(OURS.trace(programs.chain_lax(OURS.lax, LENGTH), OURS.array(seeded(8))),
                          THEIRS.trace(programs.chain_lax(THEIRS.lax, LENGTH), THEIRS.array(seeded(8))))


ROWS = [
    trace_row("trace per equation, lax", 0.18, 0.07, "lax", ""),
    trace_row("trace per equation, operators", 0.10, 0.04, "operators", ""),
    trace_row("trace per equation, numpy", 0.10, 0.04, "numpy", ""),
    trace_row("trace of jvp, per primal equation", 0.17, 0.10, "lax", "jvp"),
    trace_row("trace of vmap, per primal equation", 0.12, 0.06, "lax", "vmap"),
    trace_row("trace of grad, per primal equation", 0.05, 0.02, "lax", "grad"),
    trace_row("trace of vmap(grad), per primal equation", 0.06, 0.02, "lax", "vmap(grad)"),
    trace_row("trace of grad(grad), per primal equation", 0.04, 0.02, "lax", "grad(grad)"),
    *[model_row(which, blocks, differentiate, (0.15, 0.08)[differentiate], 0.03)
      for differentiate in (False, True) for which, blocks in (("MLP", 0), ("transformer", 2), ("transformer", 12))],
    lower_row(False), lower_row(True),
    *[nesting_row(depth) for depth in range(1, 7)],
    *[many_row(transform) for transform in ("", "jvp", "vmap", "grad")],
    memory_row(""), memory_row("grad"),
]
