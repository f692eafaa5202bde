"""Direct style equals the recorded style, and a plain interpreter of choices, on random programs."""

from __future__ import annotations

import random

import pytest

import handlax as hx
from handlax import lax


@hx.effect(vmap="per_lane")
class Choose:
    n: int

    def result_type(op):
        return hx.ArrayType((), "int32")


@hx.effect(vmap="per_lane", diff="stop")
class Add:
    def result_type(op, x):
        return hx.ArrayType((), "int32")


@hx.effect(vmap="per_lane")
class Fail:
    def result_type(op):
        return None


def random_program(rng, depth):
    """A tree of statements: ("choose", n), ("add", k), ("fail",), ("if", statements, statements), ("loop", n, ...)."""
    statements = []
    for _ in range(rng.randrange(1, 4)):
        kind = rng.choice(["choose", "add", "add", "fail", "if", "loop"] if depth else ["choose", "add", "fail"])
        if kind == "choose":
            statements.append(("choose", rng.randrange(1, 4)))
        elif kind == "add":
            statements.append(("add", rng.randrange(-3, 4)))
        elif kind == "fail":
            statements.append(("fail", rng.randrange(4)))
        elif kind == "if":
            statements.append(("if", random_program(rng, depth - 1), random_program(rng, depth - 1)))
        else:
            statements.append(("loop", rng.randrange(3), random_program(rng, depth - 1)))
    return statements


def execute(statements, x):
    """The program on handlax: effects and Python control flow on their answers."""
    for kind, *rest in statements:
        if kind == "choose":
            x = x * 4 + int(hx.perform(Choose(rest[0])))
        elif kind == "add":
            x = x + int(hx.perform(Add(), rest[0]))
        elif kind == "fail":
            if x % 4 == rest[0]:
                hx.perform(Fail())
        elif kind == "if":
            x = execute(rest[x % 2], x)
        else:
            for _ in range(rest[0]):
                x = execute(rest[1], x)
    return x


def worlds(statements, x, total, rest):
    """The worlds by a plain interpreter in continuation-passing style: [(result, sum of what was added)]."""
    if not statements:
        return rest(x, total)
    (kind, *given), after = statements[0], statements[1:]
    then = lambda x, total: worlds(after, x, total, rest)
    if kind == "choose":
        return [world for i in range(given[0]) for world in then(x * 4 + i, total)]
    if kind == "add":
        return then(x + total, total + given[0])
    if kind == "fail":
        return [("failed", total)] if x % 4 == given[0] else then(x, total)
    if kind == "if":
        return worlds(given[x % 2], x, total, then)
    return worlds([statement for _ in range(given[0]) for statement in given[1]], x, total, then)


HANDLER = hx.handler(
    {
        Choose: hx.ctl(lambda resume, s, op: [world for i in range(op.n) for world in resume(s, i)]),
        Add: lambda s, op, x: (s + x, s),
        Fail: hx.final(lambda s, op: [("failed", int(s))]),
    },
    returns=lambda s, x: [(x, int(s))],
)


@pytest.mark.parametrize("replay", [False, True])
def test_random_programs_have_the_worlds_of_a_plain_interpreter(replay):
    rng = random.Random(replay)
    compared = 0
    while compared < 150:
        program = random_program(rng, 3)
        expected = worlds(program, 1, 0, lambda x, total: [(x, total)])
        if len(expected) > 60:
            continue
        assert hx.direct(HANDLER, 0, replay=replay)(lambda: execute(program, 1))() == expected
        compared += 1


@pytest.mark.parametrize("replay", [False, True])
@pytest.mark.parametrize("compiled", [lambda f: f, hx.jit], ids=["eager", "jit"])
def test_a_loop_whose_test_performs_is_one_answer_of_the_log(compiled, replay):
    """It is answered by a loop with another test, under the same handler: of that a later resumption knows nothing."""

    def f(x):
        y = lax.while_loop(lambda c: hx.perform(Add(), c) < 4, lambda c: c + 1, x)
        hx.perform(Add(), y)
        return y * hx.perform(Choose(2))

    clauses = {
        Choose: hx.ctl(lambda resume, s, op: (resume(s, 1)[0], resume(s, 1)[1] + resume(s, 2)[1])),
        Add: lambda s, op, x: (s + 1, hx.perform(Add(), x)),
    }
    halving = hx.handle(hx.handler({Add: lambda op, x: x // 2}))
    run = halving(compiled(hx.direct(hx.handler(clauses), 0, replay=replay)(f)))
    assert run(1) == halving(hx.handle(hx.handler(clauses), 0)(f))(1) == (9, 24)
