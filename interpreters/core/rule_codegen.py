"""Generated code: a program as one straight-line Python function, without loops or look-ups between its equations.

    numpy_function(program, functions, fit)(*xs)       evaluates the program with NumPy
    recording_function(program, ...)(record, *xs)      appends its equations to a record
    partitioned_function(...)(tape, *xs)               performs its known part outside a tape, and records the rest

The source text depends only on the kind of function and the wiring, that is which variables each equation takes and
which are results. So it is compiled once per wiring; operations, types and constants are arguments of ``make``, which
the text defines, and which returns the function.

Names in the text: operands ``x0``, constants ``k0``, equation results ``y0``. In a function of arrays ``a``, ``c`` and
``b`` are their NumPy arrays; in a function of boxes they are their variables' numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from ...effects.base.caches import Cache
from ...effects.base.wrapping import ERRORS, SILENT
from ...effects.core.arrays import ConcreteArray, UnsealedArray
from ...effects.programs.program import Program

PythonFunction = Callable[..., Any]
_MAKERS = Cache("rule code")
"""Functions generated from rule programs, by their source."""
_SCOPE = {
    "__name__": __name__, "ndarray": np.ndarray, "unsealed": UnsealedArray, "Sealed": ConcreteArray,
    "errors": ERRORS.get, "handle": ERRORS.set, "SILENT": SILENT,
}


class Wiring:
    """The wiring of a program: which variables its equations take and return, without operations and types.

    ``inputs``: the number of inputs. ``args``: the variables that each equation takes; ``outs``: those of the results.
    ``tuples``: equation -> number of results, for the equations with a tuple of results; the others have one result.
    ``consts`` and ``count`` are ranges over constants and equations.
    """

    def __init__(
        self,
        inputs: int,
        args: Sequence[Sequence[int]],
        outs: Sequence[int],
        consts: int,
        tuples: Sequence[tuple[int, int]] = (),
    ):
        self.inputs = inputs
        self.args = args
        self.outs = outs
        self.consts = range(consts)
        self.count = range(len(args))
        self.tuples = dict(tuples)

    def name(self, n: int, letters: str = "xyk") -> str:
        """The name of variable ``n`` in the text; ``letters`` are those of inputs, results and constants."""
        x, y, k = letters[0], letters[1], letters[2]
        return f"{k}{-1 - n}" if n < 0 else f"{x}{n}" if n < self.inputs else f"{y}{n - self.inputs}"

    @property
    def used(self) -> list[int]:
        """The inputs that equations take."""
        return sorted({n for numbers in self.args for n in numbers if 0 <= n < self.inputs})

    def numbered(self) -> list[range]:
        """The numbers of each equation's results."""
        starts = [0]
        for i in self.count:
            starts.append(starts[-1] + self.tuples.get(i, 1))
        return [range(*pair) for pair in pairwise(starts)]

    @property
    def returned(self) -> list[int]:
        """The equations whose results are results of the program."""
        return sorted({n - self.inputs for n in self.outs if n >= self.inputs})

    def results(self) -> str:
        """The tuple of the program's results, as source text."""
        return row([self.name(n) for n in self.outs])


def row(names: Iterable[str]) -> str:
    """The tuple of these names, as source text."""
    return "(" + "".join([f"{name}, " for name in names]) + ")"


def _maker(
    kind: str, program: Program, write: Callable[[Wiring], list[str]], tuples: tuple[tuple[int, int], ...] = ()
) -> PythonFunction:
    """The compiled ``make`` for this kind of function and the program's wiring; cached by both."""
    wiring = (len(program.in_types), program.args, program.outs, len(program.consts), tuples)
    return _MAKERS.get((kind, *wiring), lambda: compiled(write(Wiring(*wiring))))


def compiled(lines: Sequence[str]) -> PythonFunction:
    """The function ``make`` that these lines of source text define."""
    names: dict[str, Any] = dict(_SCOPE)
    exec(compile("\n".join(lines), "<handlax rule program>", "exec"), names)
    return names["make"]


def numpy_function(
    program: Program, functions: Sequence[PythonFunction], fit: Callable[[Any, Any], Any], context: Any,
    bare: bool = False,
) -> PythonFunction:
    """The function from arrays to arrays that evaluates a program; if ``bare`` it returns its only result, no tuple.

    ``functions[i]`` evaluates equation ``i`` on NumPy arrays. ``context.run`` calls these functions; if ``context`` is
    None they are called in the caller's context, floating-point errors ignored. ``fit(y, type)`` converts each result.
    """
    tuples = tuple([(i, len(program.types[i])) for i, op in enumerate(program.ops) if op.multiple_results])
    types = program.numbered_types()[len(program.in_types):] if tuples else program.types
    kind = f"{'numpy' if context is None else 'native'}{bare:d}"
    make = _maker(kind, program, partial(_numpy_lines, native=context is not None, bare=bare), tuples)
    return make(functions, types, [t.dtype for t in types], program.consts, fit, context)


def _numpy_lines(w: Wiring, native: bool, bare: bool) -> list[str]:
    """The source of ``numpy_function``; ``native``: a context is given, whose ``run`` calls the functions."""
    results = w.numbered()
    lines = ["def make(functions, types, dtypes, consts, fit, context):"]
    lines += [f" {row([f'f{i}' for i in w.count])} = functions"]
    for letter, values in (("t", "types"), ("d", "dtypes")):
        lines += [f" {row([f'{letter}{n}' for numbers in results for n in numbers])} = {values}"]
    lines += [f" {row([f'k{i}' for i in w.consts])} = consts"]
    lines += [f" c{i} = k{i}.value" for i in w.consts]
    lines += [f" def rule_program({', '.join([f'x{i}' for i in range(w.inputs)])}):"]
    for n in w.used:
        lines += [f"  a{n} = x{n}._value", f"  if a{n} is None: a{n} = x{n}._read_buffer()"]
    lines += ["  run = context.run"] if native else ["  around = errors()", "  try:", "   handle(SILENT)"]
    indent = "  " if native else "   "
    for i, (operands, numbers) in enumerate(zip(w.args, results)):
        names = [f"b{n}" for n in numbers]
        target = row(names) if i in w.tuples else names[0]
        arguments = ", ".join([w.name(n, "abc") for n in operands])
        lines += [f"{indent}{target} = run(f{i}, {arguments})" if native else f"{indent}{target} = f{i}({arguments})"]
        lines += [f"{indent}if b{n}.__class__ is not ndarray or b{n}.dtype is not d{n}: b{n} = fit(b{n}, t{n})"
                  for n in numbers]
    lines += [] if native else ["  finally: handle(around)"]
    for n in w.returned:  # ``concrete``, without a call
        lines += [f"  y{n} = unsealed()", f"  y{n}.type = t{n}", f"  y{n}._value = b{n}", f"  y{n}._buffer = None"]
        lines += [f"  y{n}.__class__ = Sealed"]
    return [*lines, f"  return {w.name(w.outs[0]) if bare else w.results()}", " return rule_program"]


def recording_function(program: Program, box: type, user_site: Callable[[int], Any]) -> PythonFunction:
    """The function ``(record, *values) -> results`` that appends a program's equations to a record.

    ``box``: the class of the results. All equations have the site of the operation being performed.
    """
    return _maker("recording", program, _recording_lines)(program.ops, program.types, program.consts, box, user_site)


def _recording_lines(w: Wiring) -> list[str]:
    """The source of ``recording_function``."""
    n = len(w.args)
    lines = [
        "def make(ops, types, consts, Box, user_site):",
        f" {row([f't{i}' for i in w.count])} = types",
        f" {row([f'k{i}' for i in w.consts])} = consts",
        f" def rule_program(run, {', '.join([f'x{i}' for i in range(w.inputs)])}):",
        "  builder = run.builder",
    ]
    lines += [f"  a{i} = x{i}.number if x{i}.run is run else run.number(x{i})" for i in w.used]
    lines += [f"  c{i} = run.number(k{i})" for i in w.consts]
    lines += ["  b0 = builder.count", f"  builder.count = b0 + {n}"]
    used = {m - w.inputs for numbers in (*w.args, w.outs) for m in numbers}
    lines += [f"  b{i} = b0 + {i}" for i in w.count if i and i in used]
    lines += ["  code, offset = run.cell.site or user_site(3)", "  sites = builder.sites"]
    if n == 1:
        (numbers,) = w.args
        lines += [
            "  builder.ops.append(ops[0])", "  builder.types.append(t0)",
            f"  builder.args.append({row([w.name(m, 'abc') for m in numbers])})",
            "  sites.codes.append(code)", "  sites.offsets.append(offset)",
        ]
    else:
        lines += [
            "  builder.ops += ops", "  builder.types += types",
            f"  builder.args += {row([row([w.name(m, 'abc') for m in numbers]) for numbers in w.args])}",
            f"  sites.codes += {row(['code'] * n)}", f"  sites.offsets.extend({row(['offset'] * n)})",
        ]
    for i in w.returned:
        lines += [f"  y{i} = Box()", f"  y{i}.type = t{i}", f"  y{i}.run = run", f"  y{i}.number = b{i}"]
    return [*lines, f"  return {w.results()}", " return rule_program"]


def partitioned_function(
    known: Program, rest: PythonFunction, block: Any,
    unknown: Sequence[bool], residuals: Sequence[tuple[bool, int]], in_rest: Sequence[bool],
) -> PythonFunction:
    """The function ``(tape, *values) -> results`` of a partitioned program; operand i is the tape's if ``unknown[i]``.

    It inlines ``known`` outside the tape, then records ``rest`` on residuals and unknown values. ``residuals[i]`` is
    ``(True, n)`` for known operand ``n``, ``(False, n)`` for result ``n`` of ``known``. Result ``j`` of the program is
    the next one of ``rest`` if ``in_rest[j]``, else of ``known``. ``block``, if not None, is noted on the tape.
    """
    key = ("partitioned", len(known.outs), tuple(unknown), tuple(residuals), tuple(in_rest))
    return _MAKERS.get(key, lambda: compiled(_partitioned_lines(*key[1:])))(known, rest, block)


def _partitioned_lines(
    count: int, unknown: Sequence[bool], residuals: Sequence[tuple[bool, int]], in_rest: Sequence[bool]
) -> list[str]:
    """The source of ``partitioned_function``; ``count``: the number of results of ``known``."""
    operands = [f"x{i}" for i in range(len(unknown))]
    known_operands = [x for x, yes in zip(operands, unknown) if not yes]
    residual_names = [known_operands[n] if yes else f"g{n}" for yes, n in residuals]
    known_results, rest_results = iter(range(count)), iter(range(sum(in_rest)))
    results = [f"h{next(rest_results)}" if yes else f"g{next(known_results)}" for yes in in_rest]
    lines = ["def make(known, rest, block):", f" def rule_program(run, {', '.join(operands)}):"]
    if count:
        lines += [f"  {row([f'g{i}' for i in range(count)])} = run.outer.inline(known, {row(known_operands)})"]
    rest_operands = residual_names + [x for x, yes in zip(operands, unknown) if yes]
    lines += [f"  {row([f'h{i}' for i in range(sum(in_rest))])} = rest(run, {', '.join(rest_operands)})"]
    lines += ["  if block is not None: run.builder.inlined_blocks[len(run.builder.ops) - 1] = block"]
    return [*lines, f"  return {row(results)}", " return rule_program"]
