"""Formulas as straight Python: one function for each, without loops, look-ups or arrays of ours between its steps.

    evaluated(program, functions, fit)(*xs)     performs it with NumPy
    recorded(program)(run, *xs)                 takes its equations over into what a run records
    parted(...)(run, *xs)                       performs its known part outside, and records the rest

The text depends on the wiring alone, so that formulas of one wiring share their code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy._core import umath

from ..effects.arrays import ConcreteArray, Unsealed
from ..effects.caches import Cache
from ..effects.programs import Program

# Infinities and NaNs are values here. What np.errstate(all="ignore") puts in force, made once: four times as fast.
SILENT = umath._make_extobj(all="ignore")
ERRORS = umath._extobj_contextvar

Made = Callable[..., Any]
_MAKERS = Cache("formula code")
_SCOPE = {
    "__name__": __name__, "enter": ERRORS.set, "leave": ERRORS.reset, "SILENT": SILENT, "ndarray": np.ndarray,
    "Unsealed": Unsealed, "ConcreteArray": ConcreteArray,
}  # fmt: skip


class Wiring:
    """Which values of a formula its equations take and it gives: operands ``x0``, constants ``k0``, results ``y0``."""

    def __init__(self, given: int, args: Sequence[Sequence[int]], outs: Sequence[int], consts: int):
        self.given = given
        self.args = args
        self.outs = outs
        self.consts = range(consts)
        self.count = range(len(args))

    def name(self, n: int, letters: str = "xyk") -> str:
        x, y, k = letters[0], letters[1], letters[2]
        return f"{k}{-1 - n}" if n < 0 else f"{x}{n}" if n < self.given else f"{y}{n - self.given}"

    @property
    def used(self) -> list[int]:
        """The operands that equations take."""
        return sorted({n for numbers in self.args for n in numbers if 0 <= n < self.given})

    @property
    def made(self) -> list[int]:
        """The equations whose results are given."""
        return sorted({n - self.given for n in self.outs if n >= self.given})

    def results(self) -> str:
        return row([self.name(n) for n in self.outs])


def row(names: Iterable[str]) -> str:
    return "(" + "".join([f"{name}, " for name in names]) + ")"


def _maker(kind: str, program: Program, write: Callable[[Wiring], list[str]]) -> Made:
    """The function that makes functions of this wiring, from what its text calls by other names."""
    wiring = (len(program.in_types), program.args, program.outs, len(program.consts))
    return _MAKERS.get((kind, *wiring), lambda: compiled(write(Wiring(*wiring))))


def compiled(lines: Sequence[str]) -> Made:
    """``make`` of these lines."""
    names: dict[str, Any] = dict(_SCOPE)
    exec(compile("\n".join(lines), "<handlax formula>", "exec"), names)
    return names["make"]


def evaluated(program: Program, functions: Sequence[Made], fit: Callable[[Any, Any], Any]) -> Made:
    """``functions[i]`` is what equation ``i`` does to NumPy arrays; ``fit(y, type)`` brings a result to its type."""
    make = _maker("evaluated", program, _evaluation)
    return make(functions, program.types, [t.dtype for t in program.types], program.consts, fit)


def _evaluation(w: Wiring) -> list[str]:
    lines = ["def make(functions, types, dtypes, consts, fit):"]
    for letter, values in (("f", "functions"), ("t", "types"), ("d", "dtypes")):
        lines += [f" {row([f'{letter}{i}' for i in w.count])} = {values}"]
    lines += [f" {row([f'k{i}' for i in w.consts])} = consts"]
    lines += [f" c{i} = k{i}.value" for i in w.consts]
    lines += [f" def formula({', '.join([f'x{i}' for i in range(w.given)])}):"]
    for n in w.used:
        lines += [f"  a{n} = x{n}._value", f"  if a{n} is None: a{n} = x{n}._read()"]
    lines += ["  token = enter(SILENT)", "  try:", "   pass"]
    for i, numbers in enumerate(w.args):
        lines += [
            f"   b{i} = f{i}({', '.join([w.name(n, 'abc') for n in numbers])})",
            f"   if b{i}.__class__ is not ndarray or b{i}.dtype is not d{i}: b{i} = fit(b{i}, t{i})",
        ]
    lines += ["  finally:", "   leave(token)"]
    for i in w.made:
        lines += [
            f"  y{i} = Unsealed()", f"  y{i}.type = t{i}", f"  y{i}._value = b{i}",
            f"  y{i}._buffer = None", f"  y{i}.__class__ = ConcreteArray",
        ]  # fmt: skip
    return [*lines, f"  return {w.results()}", " return formula"]


def recorded(program: Program, box: type, user_site: Callable[[int], Any]) -> Made:
    """The function of a run that records, and of values; ``box`` is the class of what the run gives."""
    return _maker("recorded", program, _recording)(program.ops, program.types, program.consts, box, user_site)


def _recording(w: Wiring) -> list[str]:
    n = len(w.args)
    lines = [
        "def make(ops, types, consts, Box, user_site):",
        f" {row([f't{i}' for i in w.count])} = types",
        f" {row([f'k{i}' for i in w.consts])} = consts",
        f" def formula(run, {', '.join([f'x{i}' for i in range(w.given)])}):",
        "  builder = run.builder",
    ]
    lines += [f"  a{i} = x{i}.number if x{i}.run is run else run.number(x{i})" for i in w.used]
    lines += [f"  c{i} = run.number(k{i})" for i in w.consts]
    lines += ["  b0 = builder.count", f"  builder.count = b0 + {n}"]
    asked = {m - w.given for numbers in (*w.args, w.outs) for m in numbers}
    lines += [f"  b{i} = b0 + {i}" for i in w.count if i and i in asked]
    lines += ["  code, offset = run.cell.site or user_site(3)", "  sites = builder.sites"]
    if n == 1:
        (numbers,) = w.args
        lines += [
            "  builder.ops.append(ops[0])", "  builder.types.append(t0)",
            f"  builder.args.append({row([w.name(m, 'abc') for m in numbers])})",
            "  sites.codes.append(code)", "  sites.offsets.append(offset)",
        ]  # fmt: skip
    else:
        lines += [
            "  builder.ops += ops", "  builder.types += types",
            f"  builder.args += {row([row([w.name(m, 'abc') for m in numbers]) for numbers in w.args])}",
            f"  sites.codes += {row(['code'] * n)}", f"  sites.offsets.extend({row(['offset'] * n)})",
        ]  # fmt: skip
    for i in w.made:
        lines += [f"  y{i} = Box()", f"  y{i}.type = t{i}", f"  y{i}.run = run", f"  y{i}.number = b{i}"]
    return [*lines, f"  return {w.results()}", " return formula"]


def parted(
    known: Program, rest: Made, stretch: Any,
    unknown: Sequence[bool], residuals: Sequence[tuple[bool, int]], later: Sequence[bool],
) -> Made:  # fmt: skip
    """The function of a tape, and of values that are its own where ``unknown``: what is known is performed outside."""
    key = ("parted", len(known.outs), tuple(unknown), tuple(residuals), tuple(later))
    return _MAKERS.get(key, lambda: compiled(_parting(*key[1:])))(known, rest, stretch)


def _parting(
    found: int, unknown: Sequence[bool], residuals: Sequence[tuple[bool, int]], later: Sequence[bool]
) -> list[str]:
    given = [f"x{i}" for i, yes in enumerate(unknown) if not yes]
    kept = [given[n] if yes else f"g{n}" for yes, n in residuals]
    first, second = iter(range(found)), iter(range(sum(later)))
    results = [f"h{next(second)}" if yes else f"g{next(first)}" for yes in later]
    operands = [f"x{i}" for i in range(len(unknown))]
    lines = ["def make(known, rest, stretch):", f" def formula(run, {', '.join(operands)}):"]
    if found:
        lines += [f"  {row([f'g{i}' for i in range(found)])} = run.outer.take(known, {row(given)})"]
    operands = kept + [x for x, yes in zip(operands, unknown) if yes]
    lines += [f"  {row([f'h{i}' for i in range(sum(later))])} = rest(run, {', '.join(operands)})"]
    lines += ["  if stretch is not None: run.builder.taken[len(run.builder.ops) - 1] = stretch"]
    return [*lines, f"  return {row(results)}", " return formula"]
