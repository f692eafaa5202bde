"""The random programs of a check, of statements and expressions that its subject does not refuse, as is found out."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from random import Random
from types import MappingProxyType
from typing import Any

from .. import numpy as hnp
from ..effects.base.errors import BadArgument, CannotCross, MissingRule, NotDifferentiable
from ..interpreters.handlers.open_log import UnknownLog
from ..lowering.jit.ahead_of_time import eval_shape
from .crossing_laws import SHORT, CrossingCase
from .generator.control import CONTROL
from .generator.control_flow import NODES, TRACED_LENGTH
from .generator.expressions import SMOOTH, TOLD, VARIANTS
from .generator.nests import Nest, random_nest
from .generator.reducing import living, reduced
from .generator.unrolled import UNROLLED
from .law import Law, Report, check_laws

REFUSALS = (CannotCross, MissingRule, NotDifferentiable)
TRIES = 100  # programs that are tried for one that is not refused
NONE: Mapping[str, str] = MappingProxyType({})
DRAWS = 16  # programs that are drawn for one, the one whose results depend most on its bodies


class DrawnPrograms:
    """Random programs by number, of the statements and expressions that a subject does not refuse.

    ``case.crossed(nest)`` is the program as the subject executes it. ``refused``: what it refuses, and why, by the name
    of the statement or the text of the expression. A statement is refused if most programs are that perform effects in
    it; that is found out when the first program is asked for.
    """

    def __init__(self, case: CrossingCase, without: Mapping[str, str] = NONE):
        self.case, self.refused, self.probed = case, dict(without), False
        self.made: dict[tuple[int, tuple[str, ...]], Nest] = {}
        self.broad: dict[tuple[str, ...], Nest | None] = {}  # None: it is refused

    def probe_all(self) -> None:
        """Find out which expressions and statements are refused."""
        self.probed = True
        loop = f"hx.fori_loop(0, k % 4, lambda i, c: {TOLD.format(x='c')}, x)"
        for name, text in {**VARIANTS, TRACED_LENGTH: loop}.items():
            self.probe(name, [Nest(f"def program(x, v, w, k, p):\n    return ({text},)\n")])
        for name in NODES:
            if name != "handled":  # in which effects are not for the subject
                self.probe(name, [self.performing_in(name, seed) for seed in range(3)])

    def probe(self, name: str, nests: list[Nest]) -> None:
        """Find out whether most of these programs, which have the statement or expression of this name, are refused."""
        if name not in self.refused:
            reasons = [reason for nest in nests if (reason := self.refusal(nest)) is not None]
            if 2 * len(reasons) > len(nests):
                self.refused[name] = reasons[0].splitlines()[0]

    def refusal(self, nest: Nest) -> str | None:
        return refusal(self.case.crossed(nest), *nest.inputs(0))

    def performing_in(self, name: str, seed: int) -> Nest:
        """A small program with this statement, in a body of which it performs, if programs do so at all."""
        for k in range(8):
            nest = random_nest(
                Random(f"{name} {seed} {k}"), depth=1, size=3, only=[name], without=[*self.refused], tells=True
            )
            if any([line.startswith(" " * 8) and "hx.tell(" in line for line in nest.source.splitlines()]):
                break
        return nest

    def program(self, k: int, without: tuple[str, ...] = ()) -> Nest:
        """The program of a number, also without some statements; one that is refused is replaced.

        Raises: BadArgument: all are refused.
        """
        if (k, without) not in self.made:
            reason = ""
            for i in range(TRIES):
                nest = max([self.drawn(f"{k} {i} {j}", without) for j in range(DRAWS)], key=liveness)
                refused = self.refusal(nest)
                if refused is None:
                    self.made[k, without] = nest
                    return nest
                reason = refused
            raise BadArgument(
                f"a check of laws: there must be programs that are not refused, the last one of {TRIES} is, for "
                f"{reason.splitlines()[0]}", hint="give rules for common operations, such as add, mul and sin.",
            )
        return self.made[k, without]

    def example(self, law: Law, k: int, first: bool) -> Nest:
        """The program of a number for a law; the first is a broad one, unless the law wants short programs."""
        if not self.probed:
            self.probe_all()
        if first and law.without not in self.broad:
            nest = broad_program({*self.refused, *law.without})
            self.broad[law.without] = nest if self.refusal(nest) is None else None
        broad = self.broad[law.without] if first and SHORT not in law.wants else None
        return broad or self.program(k, law.without)

    def drawn(self, seed: str, without: tuple[str, ...]) -> Nest:
        nodes = [name for name in NODES if name != "handled"]
        return random_nest(
            Random(seed), depth=2, size=3, only=nodes, without=[*self.refused, *without], tells=True
        )


def check_on_programs(
    subject: str, case: CrossingCase, laws: Iterable[Law], lacks: Mapping[str, str], *, examples: int, seconds: float,
    seed: int, without: Mapping[str, str] = NONE,
) -> Report:
    """Check laws of a case, ``law.check(case, nest, seed)``, on programs that it does not refuse.

    Raises: LawFails: one fails.
    """
    drawn = DrawnPrograms(case, without)
    report = check_laws(
        subject, laws, lambda law, k: (case, drawn.example(law, k, k == seed), k), lacks=lacks, examples=examples,
        seconds=seconds, seed=seed, reduce=with_reduced_program, refusal=refusal_of,
    )
    return replace(report, refused=drawn.refused)


# the statements of a broad program, with functions ``every`` and ``few`` of all expressions and of some
BROAD: Mapping[str, str] = MappingProxyType({
    "scan": "z, r = hx.scan(lambda c, y: (every(c, y),) * 2, z, r)",
    "cond": "z = hx.cond(p, few, every, z, x)",
    "jit": "z = hx.jit(few)(z, x)",
    "checkpoint": "z = hx.checkpoint(few)(z, x)",
    "fori_loop": "z = hx.fori_loop(0, 2, lambda i, c: few(c, x), z)",
    "while_loop": "(n, z) = hx.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, few(c[1], x)), (0, z))",
    "switch": "z = hx.switch(k - 1, (lambda f0, y: f0, few), z, x)",
    "map": "r = hx.map(lambda y: few(y, x), r)",
})
ADDED = f"{{x}} + {TOLD}"


def broad_program(without: Collection[str]) -> Nest:
    """A program of all expressions of floats, one after the other, also in bodies of the statements of ``BROAD``."""
    forms, told = [text for text in SMOOTH if text not in without], [ADDED] * (TOLD not in without)
    return program_of([name for name in BROAD if name not in without], [*forms, *told], [*forms[1:4], *told])


def simple_programs(nest: Nest) -> list[Nest]:
    """Shorter programs than this one, of no statement of ``BROAD`` or of one that it has, with effects if it has some.
    """
    has = lambda name: f"hx.{name}(" in nest.source
    forms = [SMOOTH[1], *[ADDED] * has("tell")]
    simple = [program_of(names, forms, forms) for names in ([], *[[name] for name in BROAD if has(name)])]
    return [each for each in simple if len(each.source) < len(nest.source)]


def program_of(statements: Iterable[str], every: Sequence[str], few: Sequence[str]) -> Nest:
    """A program of all arguments and of statements of ``BROAD``, with functions of these expressions, in this order."""
    lines = ["z, r = every(x, x), v", *[BROAD[name] for name in statements], "return (z, r, w, k, p)"]
    for name, texts in (("few", few), ("every", every)):
        forms = [f"    f{i + 1} = {text.format(x=f'f{i}', y='y', i='k', b='p')}" for i, text in enumerate(texts)]
        lines = [f"def {name}(f0, y):", *forms, f"    return f{len(texts)}", *lines]
    return Nest("def program(x, v, w, k, p):\n" + "".join([f"    {line}\n" for line in lines]))


def liveness(nest: Nest) -> tuple[bool, int]:
    """How much a program can show of its subject, to choose the best of several by: whether it performs effects, and
    then how many statements its results depend on that compute floats in bodies of functions.
    """
    return "hx.tell(" in nest.source, len(COMPUTED.findall(living(nest.source)))


COMPUTED = re.compile(r"^ {8,}f\d+ = ", re.MULTILINE)


def refusal_of(error: Exception) -> str | None:
    """The text of an error that is a refusal; None: it is none.

    A clause that does more than append to a log is none: it breaks what its handler declares.
    """
    return str(error) if isinstance(error, REFUSALS) and not isinstance(error, UnknownLog) else None


def refusal(f: Callable[..., Any], *args: Any) -> str | None:
    """Why a function is refused when it is traced; None: it is not, or fails in another way, which a law will show."""
    try:
        eval_shape(f, *args)
    except Exception as error:
        return refusal_of(error)
    return None


def with_reduced_program(example: Any, fails: Callable[[Any], bool]) -> Any:
    """The example, which ends with a program and its seed, with a smaller program for which it still ``fails``.

    Simple programs are tried first, each of which takes a fraction of the time.
    """
    *others, nest, seed = example
    runs = _runs if _runs(nest, seed) else _ends  # a program may fail where it is traced
    still = lambda nest: runs(nest, seed) and fails((*others, nest, seed))
    smaller = lambda each: chain(simple_programs(nest) if each is nest else (), each.smaller())
    return (*others, reduced(nest, still, smaller), seed)


def _runs(nest: Nest, seed: int) -> bool:
    """Whether a program, of which something was left out, is one at all, and its loops end."""
    try:
        eval_shape(nest.by(CONTROL, tell=hnp.sin), *nest.inputs(seed))
    except Exception:
        return False
    return _ends(nest, seed)


def _ends(nest: Nest, seed: int) -> bool:
    """Whether the loops of a program end, those of Python."""
    try:
        for inputs in (nest.inputs(seed), nest.inputs(seed + 1000)):
            nest.by(UNROLLED, tell=hnp.sin, while_loop=ending_while_loop)(*inputs)
    except Exception:
        return False
    return True


def ending_while_loop(test: Callable[..., Any], body: Callable[..., Any], init: Any, **options: Any) -> Any:
    """The loop in Python. Raises: RuntimeError: it does not end; those that are drawn do after four iterations."""
    iterations = iter(range(8))

    def counted(carry: Any) -> Any:
        if next(iterations, None) is None:
            raise RuntimeError("the loop does not end")
        return body(carry)

    return UNROLLED.while_loop(test, counted, init, **options)
