"""The random programs of a check: those that its subject can cross; it finds out what it cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Any

from .. import numpy as hnp
from ..effects.base.errors import BadArgument, CannotCross, MissingRule, NotDifferentiable
from ..lowering.jit.ahead_of_time import eval_shape
from .generator.control import CONTROL
from .generator.control_flow import NODES
from .generator.nests import Nest, random_nest
from .generator.reducing import reduced
from .law import Law, Report, check_laws

REFUSALS = (CannotCross, MissingRule, NotDifferentiable)


class DrawnPrograms:
    """Random programs by number, of the statements in which a subject can perform effects.

    ``crossed(nest)`` is the program as the subject executes it. ``refused``: the statements that it refuses, and why.
    """

    def __init__(self, crossed: Callable[[Nest], Callable[..., Any]], without: dict[str, str] | None = None):
        self.crossed = crossed
        self.refused = dict(without or {})
        self.made: dict[int, Nest] = {}
        crossing = [name for name in NODES if name != "handled"]  # in which effects are for a handler outside
        for name in crossing:
            if name not in self.refused:
                several = [_performing_in(name, k) for k in range(3)]
                reason = next(filter(None, [refusal(crossed(nest), *nest.inputs(0)) for nest in several]), None)
                if reason is not None:
                    self.refused[name] = reason.splitlines()[0]
        self.nodes = [name for name in crossing if name not in self.refused]

    def program(self, k: int) -> Nest:
        """The program of a number; one that is refused is replaced."""
        if k not in self.made:
            drawn = (random_nest(Random(f"{k} {i}"), depth=2, size=3, only=self.nodes, tells=True) for i in range(300))
            for nest in (nest for nest in drawn if "hx.tell(" in nest.source):
                reason = refusal(self.crossed(nest), *nest.inputs(0))
                if reason is None:
                    self.made[k] = nest
                    return nest
            raise BadArgument(
                "a check of laws: there must be programs that are not refused, the last one of 300 is, for "
                f"{str(reason).splitlines()[0]}", hint="give rules for common operations, such as sin, tanh and mul.",
            )
        return self.made[k]

    def check(
        self, subject: str, case: Any, laws: Iterable[Law], lacks: Mapping[str, str],
        *, examples: int, seconds: float, seed: int,
    ) -> Report:
        """Check laws of a case on these programs, ``law.check(case, nest, seed)``. Raises: LawFails: one fails."""
        return check_laws(
            subject, laws, lambda law, k: (case, self.program(k), k), lacks={**self.refused, **lacks},
            examples=examples, seconds=seconds, seed=seed, reduce=reduced_example,
        ).with_left_out(self.refused)


def refusal(f: Callable[..., Any], *args: Any) -> str | None:
    """Why a function is refused when it is traced; None: it is not, or fails in another way, which a law will show."""
    try:
        eval_shape(f, *args)
    except REFUSALS as error:
        return str(error)
    except Exception:
        return None
    return None


def _performing_in(name: str, seed: int) -> Nest:
    """A small program with this statement, in a body of which it performs, if programs do so at all."""
    for k in range(30):
        nest = random_nest(Random(f"{name} {seed} {k}"), depth=1, size=3, only=[name], tells=True)
        if any(line.startswith(" " * 8) and "hx.tell(" in line for line in nest.source.splitlines()):
            break
    return nest


def reduced_example(example: Any, fails: Callable[[Any], bool]) -> Any:
    """The example with a smaller program."""
    case, nest, seed = example
    return case, reduced(nest, lambda other: _runs(other) and fails((case, other, seed))), seed


def _runs(nest: Nest) -> bool:
    """Whether a program, of which something was left out, is one at all."""
    try:
        eval_shape(nest.by(CONTROL, tell=hnp.sin), *nest.inputs(0))
    except Exception:
        return False
    return True
