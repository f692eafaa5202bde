"""Write lowering/compile/eager_rates.py: what each operation takes, for an element by NumPy and by XLA, and for a call.

    python tools/eager_rates.py [operation ...]       measure all operations, or those named, on a million elements

The operands are those of the laws, of enlarged shapes, or many lanes of them where an operation has sizes of its own.
"""

from __future__ import annotations

import importlib
import math
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

import handlax as hx
from handlax.effects.base.later_layers import LaterLayers
from handlax.effects.base.stack import perform
from handlax.effects.programs.operation_names import every_operation
from handlax.effects.programs.program import Program
from handlax.interpreters.core import evaluate
from handlax.interpreters.core.record import record_apart
from handlax.lowering.compile import eager_compilation, eager_rates
from handlax.lowering.compile.estimate import KINDS, NUMPY_CALL, XLA_BYTE, XLA_CALL, dtype_kind
from handlax.lowering.compile.estimate import column as column_of

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "lowering" / "compile" / "eager_rates.py"
LARGE, SMALL = 1_000_000, 20_000  # elements, and those of what NumPy computes slowly
SLOW = 0.01  # seconds for the small size
LONG = 8  # calls of NumPy functions, above which what a call takes is written down
PREFERRED = ("float32", "int32", "complex64")
HEADER = '''"""What each operation takes: nanoseconds for an element by NumPy and by XLA, and for a call by NumPy.

Estimates read them. Written by ``python tools/eager_rates.py``, measured on {}.
None: not measured.
"""

# module -> class -> nanoseconds of a call by NumPy, of operations that take much longer than a function of NumPy
CALLS: dict[str, dict[str, float]] = {{
{}}}

# module -> class -> (by NumPy, by XLA) for each of ``estimate.KINDS``
RATES: dict[str, dict[str, tuple[tuple[float, float] | None, ...]]] = {{
{}}}
'''


def shapes_of(case: Any) -> tuple[tuple[int, ...], ...]:
    """The largest shapes of a case, those first in which no operand is small."""

    def sizes(shapes: Any) -> tuple[int, int]:
        return min([math.prod(shape) for shape in shapes], default=0), sum([math.prod(shape) for shape in shapes])

    return max(case.shapes, key=sizes)


def enlarged(case: Any, dtype: Any, elements: int, lanes: bool) -> tuple[Program, list[Any], float]:
    """A program of the operation, its operands, and the size of its work."""
    rng = np.random.default_rng(0)
    shapes = shapes_of(case)
    small = [hx.device_put(x) for x in case.operands(dtype, shapes, rng)]
    program = evaluate.program_of(case.op, tuple([x.type for x in small]))
    size = work_of(program)
    if lanes:
        n = max(1, int(elements / max(size, 1)))
        xs = operands(case, dtype, tuple([(n, *shape) for shape in shapes]), rng)
        each = hx.vmap(lambda *xs: tuple(case.op.as_results(perform(case.op, *xs))))
        return record_apart(lambda *xs: (each(*xs), None), [x.type for x in xs])[0], xs, n * size
    factor, best = 1.0, None
    while size < elements:
        factor *= 1.25
        larger = tuple([tuple([max(d, int(d * factor)) if d > 1 else d for d in shape]) for shape in shapes])
        types = [x.type.update(shape=shape) for x, shape in zip(small, larger)]
        program = evaluate.program_of(case.op, tuple(types))
        new = work_of(program)
        if new == inf or new < size:
            break
        if factor > 1e7 or (factor > 1e3 and new == size):
            raise ValueError("it does not grow")
        size, best = new, larger
    if best is None or size < elements / 8:
        raise ValueError("it does not grow")
    xs = operands(case, dtype, best, rng)
    return evaluate.program_of(case.op, tuple([x.type for x in xs])), xs, size


def operands(case: Any, dtype: Any, shapes: Any, rng: Any) -> list[Any]:
    """The operands of a case, masks in order: most in programs are of NaN or edges, and NumPy's branches go one way."""
    xs = case.operands(dtype, shapes, rng)
    return [hx.device_put(np.sort(x, None).reshape(x.shape) if x.dtype == bool else x) for x in xs]


def work_of(program: Program) -> float:
    """The size of the work of a program of one operation."""
    return program.ops[0].workload_size(*program.in_types)


def best_time(f: Callable[[], Any]) -> float:
    """The least time of several calls, in seconds; of few where one takes long."""
    least, spent = inf, 0.0
    for _ in range(12):
        start = time.perf_counter()
        f()
        took = time.perf_counter() - start
        least, spent = min(least, took), spent + took
        if spent > 0.15:
            break
    return least


def rates(case: Any, dtype: Any) -> tuple[float, float]:
    """Nanoseconds for an element by NumPy and by XLA."""
    for lanes in (False, True):
        try:
            program, xs, size = enlarged(case, dtype, SMALL, lanes)
            if best_time(lambda: evaluate.chosen(program, None)(*xs)) < SLOW:
                program, xs, size = enlarged(case, dtype, LARGE, lanes)
            break
        except Exception:
            if lanes:
                raise
    numpy, xla = evaluate.chosen(program, None), eager_compilation._compiled_here(program)
    by_xla = xla(*xs)
    moved = XLA_BYTE * sum([x.type.nbytes for x in (*xs, *by_xla)])
    took = best_time(lambda: numpy(*xs)) * 1e9 - NUMPY_CALL * len(program.ops)
    other = best_time(lambda: hx.block_until_ready(xla(*xs))) * 1e9 - XLA_CALL - moved
    return _shown(took / size), _shown(other / size)


def _shown(nanoseconds: float) -> float:
    """The figure with four digits, three after the point at most."""
    return round(float(f"{max(nanoseconds, 0.0):.4g}"), 3)


def rows(cases: dict[Any, list[Any]], asked: set[str]) -> Iterator[tuple[Any, Any, float | None]]:
    """Each operation with its rates of all kinds of dtypes, and with what a call takes."""
    for kind in sorted(cases, key=lambda kind: (kind.__module__, kind.__qualname__)):
        if asked and kind.name not in asked:
            row = eager_rates.RATES.get(kind.__module__, {}).get(kind.__qualname__)
            call = eager_rates.CALLS.get(kind.__module__, {}).get(kind.__qualname__)
        else:
            row, call = tuple([measured(cases[kind], column) for column in KINDS]), call_time(cases[kind])
            print(kind.name, row, call, file=sys.stderr, flush=True)
        if row is not None and any(row):
            yield kind, row, call


def call_time(cases: list[Any]) -> float | None:
    """Nanoseconds of a call by NumPy on few elements; None where it takes no longer than a few functions of NumPy."""
    case = cases[0]
    dtype = min(case.dtypes, key=lambda d: (d.name not in PREFERRED, d.name))
    shapes = min(case.shapes, key=lambda shapes: sum([math.prod(shape) or inf for shape in shapes]))
    xs = [hx.device_put(x) for x in case.operands(dtype, shapes, np.random.default_rng(0))]
    f = evaluate.chosen(evaluate.program_of(case.op, tuple([x.type for x in xs])), None)
    took = best_time(lambda: [f(*xs) for _ in range(100)]) * 1e7
    return float(f"{took:.2g}") if took > LONG * NUMPY_CALL else None


def measured(cases: list[Any], column: str) -> tuple[float, float] | None:
    """The rates on dtypes of this kind: of the first case that can be enlarged, of products the best case of all."""
    found: list[tuple[float, float]] = []
    for case in cases:
        dtypes = [d for d in case.dtypes if dtype_kind(d) == column]
        dtypes.sort(key=lambda d: (d.name not in PREFERRED, d.name != "bfloat16", d.name))
        if not dtypes or (found and not case.op.contracts):
            continue
        try:
            if work_column(case, dtypes[0]) == column:
                found.append(rates(case, dtypes[0]))
        except Exception as error:
            print(f"  {case} {dtypes[0]}: {str(error).splitlines()[:1]}", file=sys.stderr)
    return min(found, default=None)


def work_column(case: Any, dtype: Any) -> str:
    """The column that the estimate reads for operands of this dtype."""
    xs = case.operands(dtype, shapes_of(case), np.random.default_rng(0))
    types = [hx.device_put(x).type for x in xs]
    return column_of([*types, *case.op.as_results(case.op.result_type(*types))])


def main() -> None:
    LaterLayers.plan = staticmethod(lambda program: None)
    sys.path.insert(0, str(ROOT / "tests"))
    found: dict[Any, list[Any]] = {}
    for path in sorted((ROOT / "tests" / "laws").glob("inputs_*.py")):
        for case in importlib.import_module(f"laws.{path.stem}").CASES:
            found.setdefault(type(case.op), []).append(case)
    unknown = set(sys.argv[1:]) - {kind.name for kind in found}
    if unknown:
        sys.exit(f"eager_rates.py: no operation with inputs for the laws is called {', '.join(sorted(unknown))}")
    ours = {kind for kind in every_operation() if kind.__module__.startswith("handlax.effects.operations.")}
    machine = f"{platform.machine()} with {os.cpu_count()} cores, NumPy {np.__version__}"
    timed = [*rows({k: cases for k, cases in found.items() if k in ours}, set(sys.argv[1:]))]
    calls = table([(kind, call) for kind, _, call in timed if call is not None])
    FILE.write_text(HEADER.format(machine, calls, table([(kind, row) for kind, row, _ in timed])))


def table(entries: list[tuple[Any, Any]]) -> str:
    """The lines of a dictionary: module -> class -> value."""
    lines, module = [], ""
    for kind, value in entries:
        if kind.__module__ != module:
            lines += ["    },\n"] if module else []
            module = kind.__module__
            lines += [f'    "{module}": {{\n']
        lines += [f'        "{kind.__qualname__}": {value},\n']
    return "".join([*lines, "    },\n"])


if __name__ == "__main__":
    main()
