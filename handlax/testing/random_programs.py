"""Random programs of every vocabulary: those of a seed, and strategies for Hypothesis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from hypothesis import strategies as st

from ..effects.base.errors import BadArgument
from ..effects.core.operation import Operation
from ..effects.programs.program import Program
from .effect_programs.programs import random_effect_program
from .generator.equations import random_equations
from .generator.lane_programs import random_lane_program
from .generator.nests import random_nest
from .generator.random_program import RandomProgram
from .strategies.drawn_choices import written

VOCABULARIES: dict[str, Callable[..., RandomProgram]] = {
    "control flow": random_nest, "lanes": random_lane_program, "effects": random_effect_program,
}


def random_program(seed: int, vocabulary: str = "control flow", **options: Any) -> RandomProgram:
    """The random program of a seed: a well-typed, bounded function, as Python text.

        random_program(seed, ...) == random_program(seed, ...)

    Args:
        vocabulary: what it is written of. ``"control flow"``: loops, branches, transformations and handlers, nested in
            one another, of smooth functions; executed by Python's own loops it is its own reference. ``"lanes"``: the
            functions of arrays of the library, of a lane whose axes have lengths of their own. ``"effects"``: handlers
            of every kind and movement, in control flow, lanes and derivatives, of numbers.
        options: of control flow ``depth``, ``size``, ``reverse`` (differentiable in reverse mode), ``only``,
            ``without`` and ``tells``, see ``strategies.nests``; of lanes ``depth``; of effects ``depth`` and those of
            ``EffectAuthor``.

    Raises: BadArgument: there is no such vocabulary.

    >>> program = random_program(28, depth=1, size=2, only=["scan"])
    >>> print(program.source, end="")
    def program(x, v, w, k, p):
        def g1(c3, c6):
            (f2,) = c3
            (f4, f5) = c6
            f7 = f2[k % 2]
            return (f2,), (f7, f7)
        ((f8,), (f9, f10)) = hx.scan(g1, (w,), (v, v), reverse=True, unroll=2)
        return f8, f9, f10, p,
    >>> [y.shape for y in program(*program.inputs(0))]
    [(2, 3), (3, 3), (3, 3), ()]
    """
    return _author("random_program", vocabulary)(Random(seed), **options)


def _author(name: str, vocabulary: str) -> Callable[..., RandomProgram]:
    if vocabulary not in VOCABULARIES:
        listed = " or ".join([repr(each) for each in VOCABULARIES])
        raise BadArgument(f"{name}: the vocabulary is {listed}, got {vocabulary!r}.")
    return VOCABULARIES[vocabulary]


def programs(vocabulary: str = "control flow", **options: Any) -> st.SearchStrategy[RandomProgram]:
    """A strategy for random programs, with the arguments of ``random_program``, which Hypothesis shrinks.

    They have dead code, too; nests without it, and handlers, are in ``handlax.testing.strategies``.

    Raises: BadArgument: there is no such vocabulary.

    >>> import handlax
    >>> from hypothesis import given, settings
    >>> @settings(max_examples=3)
    ... @given(programs(depth=1))
    ... def test_compiled_programs_have_results_of_the_same_shapes(program):
    ...     inputs = program.inputs(0)
    ...     assert [y.shape for y in handlax.jit(program)(*inputs)] == [y.shape for y in program(*inputs)]
    >>> test_compiled_programs_have_results_of_the_same_shapes()
    """
    write = _author("programs", vocabulary)
    return written(lambda random: write(random, **options))


def equations(operations: st.SearchStrategy[Any] | None = None, **options: Any) -> st.SearchStrategy[Program]:
    """A strategy for recorded programs with the options of ``random_equations``, which Hypothesis shrinks.

    Args:
        operations: a strategy for lists of operations of yours, such as effects, that stand among the others.

    >>> from hypothesis import given, settings
    >>> @settings(max_examples=3)
    ... @given(equations(size=5))
    ... def test_a_program_is_read_back(program):
    ...     assert Program.parse(str(program), program.constants) == program
    >>> test_a_program_is_read_back()
    """
    def of(operations: Sequence[Operation]) -> st.SearchStrategy[Program]:
        return written(lambda random: random_equations(random, operations=operations, **options))

    return of(()) if operations is None else operations.flatmap(of)
