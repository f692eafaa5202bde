"""What a program with effects means, in plain Python: generators for effects, dual numbers for derivatives.

It shares nothing with the package. A program is the data that ``effect_programs`` writes. A block is interpreted by a
generator: what it yields are events, what is sent back are answers.

    perform             an effect, with its operand; the answer is sent back
    lanes, lane, end    what follows happens in each lane of a group, one after the other
    loop, iterate, end  in each iteration of a loop
    region, end         for each lane alone, since lanes part ways in it
    open, merge         from here on there is a second infinitesimal beside one; the two become one

The lanes of ``vmap`` advance together: each effect is performed for all lanes in index order, and so is each region.
Loops in the ``vmap`` are then around the group of lanes: how many is the last field of ``lanes`` and ``loop``. In a log
the axis of the lanes stands before those of these loops, as in a result.
Effects under a derivative are performed once, with the primal value, and their answers are constants.
"""

from __future__ import annotations

import math


class Dual:
    """``p + t e``, with the infinitesimal ``e`` of the derivative ``tag``; inner derivatives have higher tags."""

    def __init__(self, tag, p, t):
        self.tag, self.p, self.t = tag, p, t


def parts(x, tag):
    return (x.p, x.t) if isinstance(x, Dual) and x.tag == tag else (x, 0.0)


def top(*xs):
    return max([x.tag for x in xs if isinstance(x, Dual)], default=None)


def add(a, b):
    if (tag := top(a, b)) is None:
        return a + b
    (p, t), (q, u) = parts(a, tag), parts(b, tag)
    return Dual(tag, add(p, q), add(t, u))


def mul(a, b):
    if (tag := top(a, b)) is None:
        return a * b
    (p, t), (q, u) = parts(a, tag), parts(b, tag)
    return Dual(tag, mul(p, q), add(mul(t, q), mul(p, u)))


def sin(a):
    return math.sin(a) if (tag := top(a)) is None else Dual(tag, sin(a.p), mul(cos(a.p), a.t))


def cos(a):
    return math.cos(a) if (tag := top(a)) is None else Dual(tag, cos(a.p), mul(mul(-1.0, sin(a.p)), a.t))


def number(x):
    """The value without infinitesimals."""
    return number(x.p) if isinstance(x, Dual) else x


def maximum(a, b):
    if number(a) == number(b):  # both have a share in the derivative
        return add(mul(0.5, a), mul(0.5, b))
    return a if number(a) > number(b) else b


def without(x, tag):
    """The value without one infinitesimal."""
    if not isinstance(x, Dual):
        return x
    return without(x.p, tag) if x.tag == tag else Dual(x.tag, without(x.p, tag), without(x.t, tag))


def without_derivative(x, tag):
    """The value without the infinitesimals of one derivative: its own and those of custom functions in it."""
    while (own := top(x)) is not None and math.floor(own) == tag:
        x = without(x, own)
    return x if own is None or own < tag else Dual(own, *[without_derivative(part, tag) for part in (x.p, x.t)])


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
    for kind, *fields in block.statements:
        env.append((yield from STATEMENTS[kind](env, lanes, tag, *fields)))
    return [env[i] for i in block.outs]


def arithmetic(env, lanes, tag, name, i, j):
    return ARITHMETIC[name](env[i], env[j])
    yield


def perform(env, lanes, tag, effect, i):
    return (yield ("perform", effect, env[i]))


def mapped(env, lanes, i):
    """A number that differs from lane to lane, wherever lanes are."""
    return number(env[i]) + 1e-3 * sum(number(x) for x in lanes)


def advance(block, answer):
    """The next event of a block; ("returned", result) at its end."""
    try:
        return block.send(answer)
    except StopIteration as end:
        return ("returned", end.value)


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
    """The result of a generator whose events are of no concern."""
    while (event := advance(inner, None))[0] != "returned":
        assert event[0] != "perform", event
    return event[1]


def cond(env, lanes, tag, i, bound, one, other, row):
    block = one if mapped(env, lanes, i) > bound else other
    return (yield from in_region(lanes, row, run(block, env, lanes, tag)))[0]


def cond_of_all(env, lanes, tag, one, other):
    return (yield from run(one if env[0] > 0.5 else other, env, lanes, tag))[0]


def switch(env, lanes, tag, i, blocks, row):
    which = min(max(math.floor(3.0 * mapped(env, lanes, i)), 0), len(blocks) - 1)
    return (yield from in_region(lanes, row, run(blocks[which], env, lanes, tag)))[0]


def scan(env, lanes, tag, i, length, backwards, body):
    carry, total = env[i], 0.0
    yield ("loop", length, 0)
    for k in reversed(range(length)) if backwards else range(length):
        yield ("iterate", k)
        carry, y = yield from run(body, [*env, carry, 0.1 * (k + 1)], lanes, tag)
        total = add(total, mul(0.1 * (k + 1), y))
    yield ("end",)
    return add(carry, total)


def counted_while(env, lanes, tag, i, length, body):
    carry = env[i]
    yield ("loop", length, 0)
    for k in range(length):
        yield ("iterate", k)
        (carry,) = yield from run(body, [*env, carry], lanes, tag)
    yield ("end",)
    return carry


def tested_while(env, lanes, tag, i, bound, test, body, row):
    def loop():
        carry = add(sin(env[i]), 1e-3 * sum(number(x) for x in lanes))
        yield ("loop", None, 0)
        while True:
            yield ("iterate", None)
            (z,) = yield from run(test, [*env, carry], lanes, tag)
            if number(carry) >= bound + 0.3 * math.sin(number(z)):
                break
            (y,) = yield from run(body, [*env, carry], lanes, tag)
            carry = add(carry, add(0.5, mul(0.1, sin(y))))
        yield ("end",)
        return carry

    return (yield from in_region(lanes, row, loop()))


def call(env, lanes, tag, block):
    return (yield from run(block, env, lanes, tag))[0]


def vmap(env, lanes, tag, i, size, block):
    xs = [add(env[i], 0.3 * k) for k in range(size)]
    ys = yield from together([run(block, [*env, x], [*lanes, x], tag) for x in xs])
    total = 0.0
    for k, (y,) in enumerate(ys):
        total = add(total, mul(1 / (k + 1), y))
    return total


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
        if kind in ("loop", "iterate", "end", "open", "merge"):
            loops += (kind == "loop") - (kind == "end")
            yield events[0]
            continue
        row = {"perform": lambda effect, x: {effect}, "lanes": lambda size, row, loops: row, "region": lambda row: row}
        yield ("lanes", len(lanes), row[kind](*events[0][1:]), loops)
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


def merged(x, one, other):
    """The value with one infinitesimal as another."""
    if isinstance(x, Log):
        return Log([(merged(value, one, other), path) for value, path in x.entries])
    if not isinstance(x, Dual):
        return x
    p, t = merged(x.p, one, other), merged(x.t, one, other)
    return add(p, Dual(other, 0.0, t)) if x.tag == one else Dual(x.tag, p, t)


def derivative(env, lanes, tag, i, mode, block):
    tag += 1
    inner = run(block, [*env, Dual(tag, env[i], 1.0)], lanes, tag)
    event = advance(inner, None)
    while event[0] != "returned":
        answer = None
        if event[0] == "perform":
            answer = yield ("perform", event[1], without_derivative(event[2], tag))
        elif event[0] not in ("open", "merge") or math.floor(event[2]) != tag:
            yield event
        event = advance(inner, answer)
    p, t = parts(event[1][0], tag)
    return add(p, mul(0.3, t))


def custom(env, lanes, tag, i, kind, rate, block):
    """A function of its argument alone, with a derivative of its own: ``rate cos x``.

    What it performs depends on the argument as its statements say: for that there is an infinitesimal beside the
    derivative's, which is not in the result.
    """
    x = env[i]
    if (own := top(x)) is None:
        return (yield from run(block, [1.0, x], lanes, tag))[0]
    beside = (own + math.floor(own) + 1) / 2  # above its own, below that of the next derivative inside
    yield ("open", beside, own)
    (y,) = yield from run(block, [1.0, Dual(beside, x.p, x.t)], lanes, tag)
    yield ("merge", beside, own)
    return add(without(y, beside), Dual(own, 0.0, mul(mul(rate, cos(x.p)), x.t)))


def handle(env, lanes, tag, handler, block):
    state = Log() if handler.moves == "append" else handler.start
    return (yield from handled(handler, lambda: run(block, env, lanes, tag), state))


STATEMENTS = {
    "arithmetic": arithmetic, "perform": perform, "cond": cond, "cond_of_all": cond_of_all, "switch": switch,
    "scan": scan, "counted_while": counted_while, "tested_while": tested_while, "jit": call, "checkpoint": call,
    "vmap": vmap, "derivative": derivative, "custom": custom, "handle": handle,
}


# handlers


class Log:
    """The entries of a log: each a value, and its index and the size along each axis."""

    def __init__(self, entries=()):
        self.entries = tuple(entries)


class Group:
    """A group of lanes, a loop or a region that is open: its size and the present index, the keys of lanes.

    ``loops``: those around it that its lanes are around.
    ``shown``: handlers outside see it; where no effects are left for them in a region they see nothing of it.
    """

    def __init__(self, kind, size=0, keys=None, shown=True, loops=0):
        self.kind, self.size, self.index, self.keys, self.shown, self.loops = kind, size, 0, keys, shown, loops


def handled(handler, start, state, history=()):
    """The answer of a handled block, which is started again and sent the answers of ``history``: how it is resumed."""
    block, groups, opened = start(), [], []
    event = advance(block, None)
    for answer in history:  # of events that have happened
        opened = still_open(opened, event)
        if event[0] in ("lanes", "loop", "region"):
            groups.append(Group("past", shown=False))
        elif event[0] == "end":
            groups.pop()
        event = advance(block, answer)
    history = list(history)
    while event[0] != "returned":
        answer = None
        clause = handler.clauses.get(event[1]) if event[0] == "perform" else None
        opened = still_open(opened, event)
        if event[0] in ("open", "merge"):
            state = merged(state, *event[1:]) if event[0] == "merge" else state
            yield event
        elif event[0] != "perform":
            state = yield from crossed(handler, state, groups, event)
        elif clause is None or handler.moves == "tally":
            answer = yield event
        elif handler.kind == "final" and clause.ends:
            for group in groups:
                if group.shown:
                    yield ("end",)
            result = add(mul(clause.a, event[2]), 0.0 if state is None else state)
            for _, one, other in reversed(opened):
                yield ("merge", one, other)
                result = merged(result, one, other)
            return result
        elif handler.kind == "ctl" and clause.ends:
            resume = lambda s, y: handled(handler, start, s, (*history, y))
            return (yield from resumed(clause, state, event[2], resume))
        else:
            state, answer = yield from answered(handler, clause, event, state, groups)
        history.append(answer)
        event = advance(block, answer)
    return finished(handler, state, event[1][0])


def still_open(opened, event):
    """The events "open" whose infinitesimals are not merged after this event."""
    if event[0] == "open":
        return [*opened, event]
    return opened[:-1] if event[0] == "merge" else opened


def crossed(handler, state, groups, event):
    """The state after an event that begins or ends a group of lanes, a loop, or a region."""
    kind, *rest = event
    shown = all(group.shown for group in groups)
    if kind == "end":
        group = groups.pop()
        if group.shown:
            yield event
        return state if group.keys is None else group.keys[-1]
    if kind in ("lane", "iterate"):
        group = groups[-1]
        (group.index,) = rest
        if group.shown:
            yield ("lane" if group.kind == "lanes" else "iterate", group.index)
        return state if group.keys is None else group.keys[group.index]
    if kind == "loop":
        group, row = Group("loop", rest[0], shown=shown, loops=rest[1]), ()
    else:
        left = rest[0] if kind == "region" else rest[1]
        mine = {effect for effect in left if effect in handler.clauses}
        row = {e for e in left if e not in mine or handler.moves == "tally" or handler.clauses[e].forwards}
        if kind == "region":
            group = Group("region", shown=shown and bool(row))
        elif mine and handler.moves == "split":
            keys = [add(mul(0.9, state), 0.1 * k) for k in range(rest[0] + 1)]
            group = Group("lanes", rest[0], keys, shown, rest[2])
        elif mine and (handler.moves == "carry" or any(handler.clauses[effect].ends for effect in mine)):
            group = Group("loop", rest[0], shown=shown, loops=rest[2])
        else:
            group = Group("lanes", rest[0], shown=shown, loops=rest[2])
    groups.append(group)
    if group.shown:
        fields = {"loop": (group.size, group.loops), "lanes": (group.size, row, group.loops), "region": (row,)}
        yield (group.kind, *fields[group.kind])
    return state


def answered(handler, clause, event, state, groups):
    """The state and the answer after a clause that answers once."""
    _, effect, x = event
    a, b = clause.a, clause.b
    if handler.moves is None:
        inner = mul(b, x)
        return None, mul(a, (yield ("perform", effect, inner)) if clause.forwards else sin(inner))
    if handler.moves == "carry":
        y = add(x, mul(b, state))
        return add(mul(0.5, state), mul(a, x)), (yield ("perform", effect, y)) if clause.forwards else y
    if handler.moves == "split":
        return add(mul(0.7, state), 0.1), mul(sin(state), x)
    answer = (yield ("perform", effect, mul(b, x))) if clause.forwards else mul(b, x)
    if handler.moves == "append":
        path = []
        for group in groups:
            if group.kind in ("lanes", "loop"):
                path.insert(len(path) - group.loops, (group.index, group.size))
        return Log([*state.entries, (mul(a, x), path)]), answer
    return (add(state, mul(a, x)) if handler.moves == "sum" else maximum(state, x)), answer


def resumed(clause, s, x, resume):
    """The answer of a clause that resumes ``clause.times`` times."""
    if clause.times == 0:
        return mul(clause.a, x)
    first = yield from resume(None if s is None else add(s, x), mul(clause.a, x))
    if clause.times == 1:
        return mul(clause.b, first)
    second = yield from resume(None if s is None else mul(clause.b, s), mul(clause.b, x))
    return add(mul(0.5, first), mul(0.25, second))


def finished(handler, state, y):
    """The result of a handled block that ends: its result and what is left of the state."""
    if handler.moves == "tally":
        return add(y, 0.01 * handler.tally)
    if state is None:
        return y
    if not isinstance(state, Log):
        return add(y, mul(0.2, state))
    for value, path in state.entries:
        flat = 0
        for index, size in path:
            flat = flat * size + index
        y = add(y, mul(math.cos(flat), value))
    return y


def meaning(program, choice, x, y):
    """The result of a program whose own handlers answer all its effects."""
    return number(silently(run(program, [choice, x, y], []))[0])


def slope(program, choice, x, y):
    """The result, and its derivative by ``x``."""
    (result,) = silently(run(program, [choice, Dual(0, x, 1.0), y], [], 0))
    return [number(result), number(parts(result, 0)[1])]
