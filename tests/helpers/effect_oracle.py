"""What a program with effects means, in plain Python: generators for effects, dual numbers for derivatives.

It shares nothing with the package but this: a program is data, a ``Block``. A block is interpreted by a generator:
what it yields are events, what is sent back are answers.

    perform             an effect, with its operand; the answer is sent back
    scope, leave        a function of a scoped effect; sent back is which one is executed
    lanes, lane, end    what follows happens in each lane of a group, one after the other
    loop, iterate, end  in each iteration of a loop
    region, end         for each lane alone, since lanes part ways in it
    open, merge         from here on there is a second infinitesimal beside one; the two become one
    after               a statement has ended that may perform these effects

The law of order. The lanes of ``vmap`` advance together: each effect is performed for all lanes in index order, and so
is each region, all of which one lane performs before the next lane does. Regions are a branch, or a loop, that each
lane chooses for itself, and what follows a statement that may have ended some of the lanes, up to the next such
statement: see ``Regions``. Nested lanes perform row by row.

Loops in the ``vmap`` are around the group of lanes: how many is the last field of ``lanes`` and ``loop``. In a log the
axis of the lanes stands before those of these loops, as in a result. Effects under a derivative are performed once,
with the primal value, and their answers are constants.
"""

from __future__ import annotations

import math

from handlax.testing.effect_programs.blocks import BODIES, DEFAULTED, ONCE, count_of, row_of, row_of_statement

from .dual_numbers import Dual, add, cos, merged, mul, number, parts, sin, tags, without, without_derivative
from .effect_handling import Log, Regions, advance, handled

ARITHMETIC = {
    "add": lambda a, b: add(mul(0.6, a), mul(0.5, b)),
    "mul": lambda a, b: mul(sin(a), b),
    "sin": lambda a, b: sin(add(a, mul(0.3, b))),
    "cos": lambda a, b: cos(mul(a, b)),
}


# blocks


def run(block, env, lanes, tag=0):
    """Interpret a block on the values ``env``; ``lanes``: the mapped values of the lanes around it."""
    env = list(env)
    for statement in block.statements:
        kind, *fields = statement
        env.append((yield from STATEMENTS[kind](env, lanes, tag, *fields)))
        if lanes and kind not in INLINE and (row := row_of_statement(statement)):
            yield ("after", row)
    return [env[i] for i in block.outs]


INLINE = ("handle", "derivative", "vmap", "python_loop")  # what they contain are statements of the block around


def arithmetic(env, lanes, tag, name, i, j):
    return ARITHMETIC[name](env[i], env[j])
    yield


def perform(env, lanes, tag, effect, i):
    return (yield ("perform", effect, env[i]))


def mapped(env, lanes, i):
    """A number that differs from lane to lane, wherever lanes are."""
    return number(env[i]) + 1e-3 * sum(number(x) for x in lanes)


def in_region(lanes, row, inner):
    """Where lanes part ways; without effects for handlers outside there is nothing to see of it."""
    if not row:
        return silently(inner)
    if lanes:
        yield ("region", row)
    result = yield from inner
    if lanes:
        yield ("end",)
    return result


def silently(inner):
    """The result of a generator whose events are of no concern, but for effects with a default."""
    answer = None
    while (event := advance(inner, answer))[0] != "returned":
        assert event[0] not in ("perform", "scope") or event[1] == DEFAULTED, event
        answer = mul(0.8, sin(mul(0.7, event[2]))) if event[0] == "perform" else None
    return event[1]


def cond(env, lanes, tag, i, bound, one, other):
    block = one if mapped(env, lanes, i) > bound else other
    return (yield from in_region(lanes, row_of(one) | row_of(other), run(block, env, lanes, tag)))[0]


def cond_of_all(env, lanes, tag, one, other):
    return (yield from run(one if env[0] > 0.5 else other, env, lanes, tag))[0]


def switch(env, lanes, tag, i, blocks):
    which = min(max(math.floor(3.0 * mapped(env, lanes, i)), 0), len(blocks) - 1)
    row = set().union(*map(row_of, blocks))
    return (yield from in_region(lanes, row, run(blocks[which], env, lanes, tag)))[0]


def loop(indices, block, step, carry, known=True):
    """The last carry of a loop over a block; ``known``: handlers know how often it iterates."""
    yield ("loop", indices if known else None, row_of(block), row_of(block, parting=True), 0)
    for k in indices:
        yield ("iterate", k)
        carry = yield from step(k, carry)
    yield ("end",)
    return carry


def scan(env, lanes, tag, i, length, backwards, body):
    def step(k, state):
        carry, total = state
        carry, y = yield from run(body, [*env, carry, 0.1 * (k + 1)], lanes, tag)
        return carry, add(total, mul(0.1 * (k + 1), y))

    indices = range(length)[:: -1 if backwards else 1]
    return add(*(yield from loop(indices, body, step, (env[i], 0.0))))


def map_(env, lanes, tag, i, length, body):
    def step(k, total):
        (y,) = yield from run(body, [*env, add(env[i], 0.1 * (k + 1))], lanes, tag)
        return add(total, mul(0.1 * (k + 1), y))

    return (yield from loop(range(length), body, step, 0.0))


def fori(env, lanes, tag, i, length, body):
    def step(k, carry):
        return (yield from run(body, [*env, add(carry, 0.1 * k)], lanes, tag))[0]

    return (yield from loop(range(length), body, step, env[i]))


def python_loop(env, lanes, tag, i, length, body):
    carry = env[i]
    for k in range(length):
        (carry,) = yield from run(body, [*env, add(carry, 0.1 * k)], lanes, tag)
    return carry


def python_cond(env, lanes, tag, i, bound, one, other):
    return (yield from run(one if number(env[i]) > bound else other, env, lanes, tag))[0]


def counted_while(env, lanes, tag, i, length, steps, body):
    def step(k, carry):
        return (yield from run(body, [*env, carry], lanes, tag))[0]

    return (yield from loop(range(length), body, step, env[i], known=False))


def tested_while(env, lanes, tag, i, bound, steps, test, body):
    row = row_of(test) | row_of(body)

    def looped():
        carry = add(sin(env[i]), 1e-3 * sum(number(x) for x in lanes))
        yield ("loop", None, row, row, 0)
        while True:
            yield ("iterate", None)
            (z,) = yield from run(test, [*env, carry], lanes, tag)
            if number(carry) >= bound + 0.3 * math.sin(number(z)):
                break
            (y,) = yield from run(body, [*env, carry], lanes, tag)
            carry = add(carry, add(0.5, mul(0.1, sin(y))))
        yield ("end",)
        return carry

    return (yield from in_region(lanes, row, looped()))


def call(env, lanes, tag, block):
    return (yield from run(block, env, lanes, tag))[0]


def eval_shape(env, lanes, tag, i, block):
    return mul(0.5, env[i])
    yield


def vmap(env, lanes, tag, i, size, block):
    xs = [add(env[i], 0.3 * k) for k in range(size)]
    return (yield from of_lanes([run(block, [*env, x], [*lanes, x], tag) for x in xs]))


def ragged(env, lanes, tag, i, lengths, block):
    """Lanes whose loops are of different lengths: in each iteration those perform that have this row.

    There is one iteration at least, with rows of no lane.
    """
    starts = [sum(lengths[:k]) for k in range(len(lengths))]

    def lane(x, start, length):
        def step(k, carry):
            row = run(block, [*env, carry, 0.1 * (start + k + 1)], [*lanes, x], tag) if k < length else nothing(carry)
            return (yield from in_region([*lanes, x], row_of(block), row))[0]

        return [(yield from loop(range(max(1, *lengths)), block, step, x))]

    return (yield from of_lanes([lane(add(env[i], 0.3 * k), *each) for k, each in enumerate(zip(starts, lengths))]))


def nothing(x):
    return [x]
    yield


def of_lanes(blocks):
    """The weighed sum of the results of lanes."""
    total = 0.0
    for k, (y,) in enumerate((yield from together(blocks))):
        total = add(total, mul(1 / (k + 1), y))
    return total


SHARED = ("loop", "iterate", "end", "open", "merge", "after", "scope", "leave")  # events of all lanes at once


def together(lanes):
    """The results of lanes that advance together."""
    answers = [None] * len(lanes)
    loops = 0  # that are open
    while True:
        events = [advance(lane, answer) for lane, answer in zip(lanes, answers)]
        (kind,) = {event[0] for event in events}  # lanes part ways in regions only
        if kind == "returned":
            return [event[1] for event in events]
        answers = [None] * len(lanes)
        if kind in SHARED or (kind == "perform" and events[0][1] == ONCE):
            loops += (kind == "loop") - (kind == "end")
            answers = [(yield events[0])] * len(lanes)
            continue
        row, parting = {
            "perform": lambda effect, x: ({effect}, set()),
            "lanes": lambda size, row, parting, loops: (row, parting),
            "region": lambda row: (row, row),
        }[kind](*events[0][1:])
        yield ("lanes", len(lanes), row, parting, loops)
        for k, (lane, event) in enumerate(zip(lanes, events)):
            yield ("lane", k)
            answers[k] = yield from alone(lane, event)
        yield ("end",)


def alone(lane, event):
    """One lane from an event to its end; the answer to the last one."""
    depth = 0
    while True:
        answer = yield event
        depth += event[0] in ("lanes", "loop", "region")
        depth -= event[0] == "end"
        if not depth:
            return answer
        event = advance(lane, answer)


def differentiated(block, env, lanes, tag):
    """The result of a block, and its derivative by the infinitesimal ``tag`` of ``env``, which effects do not see."""
    inner = run(block, env, lanes, tag)
    event = advance(inner, None)
    while event[0] != "returned":
        answer = None
        if event[0] == "perform":
            answer = yield ("perform", event[1], without_derivative(event[2], tag))
        elif event[0] not in ("open", "merge") or math.floor(event[2]) != tag:
            answer = yield event
        event = advance(inner, answer)
    return parts(event[1][0], tag)


def derivative(env, lanes, tag, i, mode, block):
    tag += 1
    p, t = yield from differentiated(block, [*env, Dual(tag, env[i], 1.0)], lanes, tag)
    return add(p, mul(0.3, t))


def custom(env, lanes, tag, i, kind, rate, block, again):
    """A function of its argument alone with a derivative of its own, ``rate cos x``, of any order if ``again``.

    What it performs depends on the argument as its statements say: for that there is an infinitesimal beside each of
    the argument's with this derivative, which is not in the result.
    """
    x = inner = env[i]
    derived = tags(x) if again else tags(x)[-1:]
    pairs = [((own + math.floor(own) + 1) / 2, own) for own in derived]  # above its own, below that of the next one
    for beside, own in pairs:
        inner = merged(inner, own, beside)
        yield ("open", beside, own)
    (y,) = yield from run(block, [1.0, inner], lanes, tag)
    for beside, own in reversed(pairs):
        y = without(y, beside)
        yield ("merge", beside, own)
    return add(y, by_rule(x, rate, again))


def by_rule(x, rate, again):
    """The infinitesimals of a function whose derivative is ``rate cos x``: the last one's, or all."""
    if not isinstance(x, Dual):
        return 0.0
    return Dual(x.tag, by_rule(x.p, rate, again) if again else 0.0, mul(mul(rate, cos(x.p)), x.t))


def scoped(env, lanes, tag, effect, first, second):
    def executed():
        which = yield ("scope", effect)
        (y,) = yield from run(second if which == "second" else first, env, lanes, tag)
        yield ("leave", effect)
        return y

    if effect == BODIES:
        return (yield from executed())
    return (yield from in_region(lanes, {effect} | row_of(first) | row_of(second), executed()))


def handle(env, lanes, tag, handler, block):
    state = handler.start
    if handler.moves == "append":
        state = Log()
    elif handler.moves == "tally":
        state = count_of(block, set(handler.clauses))
    regions = Regions(handler, block) if handler.open and lanes else None
    y = yield from handled(handler, lambda: run(block, env, lanes, tag), state, regions)
    if lanes and handler.after is not None:
        yield ("after", {handler.after})
    return y


STATEMENTS = {
    "arithmetic": arithmetic, "perform": perform, "cond": cond, "cond_of_all": cond_of_all, "switch": switch,
    "scan": scan, "map": map_, "fori": fori, "python_loop": python_loop, "python_cond": python_cond,
    "counted_while": counted_while, "tested_while": tested_while,
    "jit": call, "checkpoint": call, "eval_shape": eval_shape, "vmap": vmap, "ragged": ragged,
    "derivative": derivative, "custom": custom, "scoped": scoped, "handle": handle,
}


def meaning(program, choice, x, y):
    """The result of a program whose own handlers answer all its effects, but for those with a default."""
    return number(silently(run(program, [choice, x, y], []))[0])


def slope(program, choice, x, y):
    """The result, and its derivative by ``x``."""
    p, t = silently(differentiated(program, [choice, Dual(0, x, 1.0), y], [], 0))
    return [number(p), number(t)]
