"""Random programs with effects, and random handlers, as values that print as Python text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from random import Random
from textwrap import indent
from typing import Any

import numpy as np

from ... import numpy as hnp
from ...effects.core.arrays import perform
from ...interpreters.handlers.handle import handle
from ...interpreters.handlers.handler import Handler
from ..generator.author import Vocabulary
from ..generator.random_program import RandomProgram, imported
from . import functions
from .blocks import ONCE, SCOPED, Block, RandomHandler, simpler
from .handler_text import EFFECT_NAMES, text_of_handler, text_of_installed, text_of_start
from .random_handlers import EffectAuthor, random_handler
from .refusals import Place
from .structures import random_block
from .text import text_of_block

PRELUDE = (
    "import handlax as hx\nfrom handlax import lax\nfrom handlax import numpy as hnp\n"
    "from handlax.testing.effect_programs.functions import *\n"
)


@dataclass(frozen=True, repr=False)
class EffectProgram(RandomProgram):
    """A function of a choice, 0 or 1, and two numbers to a number, whose handlers answer what it performs."""

    block: Block = field(hash=False)
    prelude = PRELUDE

    def smaller(self) -> Iterator[EffectProgram]:
        return map(effect_program, simpler(self.block))

    def inputs(self, seed: int) -> list[Any]:
        rng = np.random.default_rng(seed)
        return [np.asarray(float(rng.integers(2))), *[np.asarray(rng.uniform(-1, 1)) for _ in range(2)]]


def effect_program(block: Block) -> EffectProgram:
    """The program that a block is."""
    return EffectProgram(text_of_block(block), block)


def random_effect_program(random: Random, *, depth: int = 3, **options: Any) -> EffectProgram:
    """A program with effects, nested so deep, with the options of ``random_block``."""
    return effect_program(random_block(random, depth, **options).program)


@dataclass(frozen=True, repr=False)
class DrawnHandler:
    """A handler of functions to a number, with its initial state.

        drawn(f) == handle(drawn.handler, *drawn.state)(f)

    Prints as Python text in the words of ``EffectProgram.prelude``.
    """

    data: RandomHandler

    @property
    def handler(self) -> Handler:
        return eval(text_of_handler(self.data), imported(PRELUDE))

    @property
    def state(self) -> tuple[Any, ...]:
        """The initial state; nothing for a handler without one."""
        return tuple([eval(text, imported(PRELUDE)) for text in text_of_start(self.data)])

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """The function under the handler."""
        return handle(self.handler, *self.state)(f)

    def performs(self, x: Any) -> Any:
        """Performs each of the effects that it answers, and gives a number between -1 and 1 made of their answers."""
        return performed((self,), x)

    def __repr__(self) -> str:
        return text_of_installed(self.data)


@dataclass(frozen=True, repr=False)
class DrawnStack:
    """Handlers around a function to a number, outermost first, whose clauses perform what one further out answers.

        stack(f) == stack.handlers[0](stack.handlers[1](f))
    """

    handlers: tuple[DrawnHandler, ...]

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """The function under all handlers."""
        return functions.stacked(*self.handlers)(f)

    def performs(self, x: Any) -> Any:
        """Performs each of the effects that one answers, and gives a number between -1 and 1 made of their answers."""
        return performed(self.handlers, x)

    def __repr__(self) -> str:
        lines = "".join([f"{handler!r},\n" for handler in self.handlers])
        return f"stacked(\n{indent(lines, '    ')})"


def performed(handlers: Iterable[DrawnHandler], x: Any) -> Any:
    """A number made of the answers of all effects that these handlers answer, with what one performs further out."""
    place = reduce(lambda place, handler: place.inside("handle", handler.data), handlers, Place())
    answers = [x]
    for effect in dict.fromkeys([effect for handler in handlers for effect in handler.data.clauses]):
        kind = getattr(functions, EFFECT_NAMES[effect])
        if effect in SCOPED and place.allows(effect):
            answers.append(perform(kind(), hnp.sin, hnp.cos, x))
        elif place.allows(effect):  # one that is performed once gets what no transformation maps or differentiates
            answers.append(functions.ask(kind, functions.number(0.5) if effect == ONCE else x))
    return hnp.sin(sum(answers))


def random_handlers(random: Random, *, least: int = 1, most: int = 3, **options: Any) -> DrawnStack:
    """From ``least`` to ``most`` handlers in one another, with the options of ``EffectAuthor``."""
    a = EffectAuthor(random, Vocabulary({}, {}), **options)
    place, handlers = Place(), list[DrawnHandler]()
    for _ in range(a.integer(least, most)):
        data = random_handler(a, place)
        if handlers and data.moves is not None:  # what is further out computes with its result, which is one number
            data = data._replace(returns=True)
        place = place.inside("handle", data)
        handlers.append(DrawnHandler(data))
    return DrawnStack(tuple(handlers))
