"""Strategies of nests of transformations, of handlers and of stacks of handlers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from random import Random

from hypothesis import strategies as st

from ...effects.base.errors import BadArgument
from ..effect_programs.programs import DrawnHandler, DrawnStack, random_handlers
from ..effect_programs.random_handlers import KINDS, MOVEMENTS, rates_of
from ..generator.drawn_choices import written
from ..generator.nests import Nest, nodes_named, random_nest
from ..generator.reducing import living


def nests(
    *,
    depth: int = 2,
    size: int = 3,
    reverse: bool = False,
    only: Sequence[str] | None = None,
    without: Sequence[str] = (),
    tells: bool = False,
) -> st.SearchStrategy[Nest]:
    """Functions of loops, branches, transformations and functions with rules, nested in one another.

        nest(*nest.inputs(seed)) == nest.unrolled(*nest.inputs(seed))
        nest.by(CONTROL, tell=f), nest.by(UNROLLED, tell=f): the same with ``f`` for each ``tell``

    They are ``Nest``s: smooth functions of ``x: f64[], v: f64[3], w: f64[2,3], k: i32[], p: bool[]``. They have no dead
    code. Shrinks to few statements, and to those that are first in ``only``; prints as Python text.

    Args:
        depth: how many levels of bodies there are at most.
        size: the greatest number of statements of a body.
        reverse: whether they are differentiable in reverse mode.
        only: what they are made of, beside expressions: of scan, fori_loop, while_loop, cond, switch, map, jit,
            checkpoint (with policies), handled, vmap (along axes), grad (or value_and_grad), jvp, linearize, vjp,
            custom_jvp and custom_vjp; all by default.
        without: of these what they are not made of.
        tells: whether some statements are ``tell(x)``, which gives a number, for a handler of yours around the nest.

    Raises: BadArgument: ``only`` or ``without`` has a name that is none of these.

    >>> from hypothesis import find
    >>> nest = find(nests(depth=1, size=1, only=["vmap"]), lambda nest: "hx.vmap(" in nest.source)
    >>> print(nest.source, end="")  # doctest: +ELLIPSIS
    def program(x, v, w, k, p):
    <BLANKLINE>
        def g...(f...):
            return (...)
        f..., = hx.vmap(g..., (...,), (0,))(...)
        return (v, w, f..., p)
    """
    nodes = nodes_named(only, without)

    def write(random: Random) -> Nest:
        levels, statements = random.randint(1, depth), random.randint(1, size)
        nest = random_nest(random, depth=levels, size=statements, reverse=reverse, only=nodes, tells=tells)
        return Nest(living(nest.source, ["tell"]))

    return written(write)


def stacks(
    *,
    min_handlers: int = 1,
    max_handlers: int = 3,
    kinds: Collection[str] = KINDS,
    movements: Collection[str | None] = MOVEMENTS,
) -> st.SearchStrategy[DrawnStack]:
    """Handlers in one another, whose clauses may perform further out what they are asked, or something else.

        stack(f): f under all of them        stack.performs(x): all effects that they answer, a number of the answers

    They are ``DrawnStack``s, of functions ``f`` whose result is a number, with which clauses compute. Shrinks to few
    handlers with few clauses; prints as a Python expression of the function ``stack``.

    Args:
        min_handlers, max_handlers: how many they are.
        kinds: of clauses: ``fun``, ``ctl`` and ``final``. Those of ``fun`` alone cross every loop.
        movements: of states: None (no state), carry, append, sum, max (both by ``merge``), split and tally.

    Raises: BadArgument: there are no such handlers, or so many.

    >>> from hypothesis import find
    >>> find(stacks(min_handlers=2, kinds=["fun"]), lambda stack: True)
    stacked(
        hx.handle(hx.handler({AskPlain: lambda op, x: 0.5 * hnp.sin(0.5 * x)})),
        hx.handle(hx.handler({AskPlain: lambda op, x: 0.5 * hnp.sin(0.5 * x)})),
    )
    """
    if not 1 <= min_handlers <= max_handlers:
        raise BadArgument(f"stacks: 1 <= min_handlers <= max_handlers, got {min_handlers} and {max_handlers}.")
    rates = rates_of(kinds, movements)
    return written(lambda random: random_handlers(random, least=min_handlers, most=max_handlers, rates=rates))


def handlers(
    *, kinds: Collection[str] = KINDS, movements: Collection[str | None] = MOVEMENTS
) -> st.SearchStrategy[DrawnHandler]:
    """Handlers of one or two effects: clauses of every kind, states of every movement, ``returns`` and ``otherwise``.

        drawn(f) == hx.handle(drawn.handler, *drawn.state)(f)
        drawn.performs(x): all effects that it answers, a number of the answers

    They are ``DrawnHandler``s, of functions ``f`` whose result is a number, with which clauses compute. Shrinks to a
    clause that answers once, without a state; prints as a Python expression of the function ``drawn``.

    Args:
        kinds, movements: as of ``stacks``.

    Raises: BadArgument: there are no handlers of these kinds and movements.

    >>> from hypothesis import find
    >>> find(handlers(kinds=["ctl"]), lambda drawn: True)
    hx.handle(hx.handler({AskPlain: hx.ctl(lambda resume, op, x: 0.5 * resume(0.5 * x))}, returns=lambda y: y))
    """
    return stacks(min_handlers=1, max_handlers=1, kinds=kinds, movements=movements).map(lambda stack: stack.handlers[0])
