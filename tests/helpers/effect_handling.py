"""The part of ``effect_oracle`` that is about handlers: states, clauses, logs, and where a program ends early."""

from __future__ import annotations

import math

from handlax.testing.effect_programs.blocks import inner_blocks, left_by, performed_after, row_of_statement

from .dual_numbers import add, maximum, merged, mul, sin


def advance(block, answer):
    """The next event of a block; ("returned", result) at its end."""
    try:
        return block.send(answer)
    except StopIteration as end:
        return ("returned", end.value)


class Log:
    """The entries of a log: each a value, and its index and the size along each axis."""

    def __init__(self, entries=()):
        self.entries = tuple(entries)


class Group:
    """A group of lanes, a loop, a region or a scope that is open, or a second infinitesimal; ``closing``: the event.

    ``indices``: its lanes or iterations, None if their number is unknown; ``index``: the present one; ``keys``: of
    lanes; ``loops``: those around it that its lanes are around; ``row``: what is performed in it; ``parting``: whether
    lanes around part in each iteration, since some of them may have ended.
    ``shown``: handlers outside see it; where no effects are left for them in a region they see nothing of it.
    """

    def __init__(self, kind, shown=True, indices=None, keys=None, loops=0, row=(), parting=False, closing=("end",)):
        self.kind, self.shown, self.indices, self.keys, self.loops = kind, shown, indices, keys, loops
        self.row, self.parting, self.closing, self.index = row, parting, closing, 0

    @property
    def later(self):
        """The iterations after the present one."""
        return self.indices[self.indices.index(self.index) + 1 :]


class Regions:
    """Where lanes around a handler part since some of them may have ended.

    A block is cut after each statement that may end it. The first segment is executed by all lanes together; so are
    others as long as all lanes end alike; from the first statement on that a lane may perform and others not, each
    segment is a region. ``later``: for each segment but the first its row, and whether it is one.
    """

    def __init__(self, handler, block):
        self.ending = handler.ends
        self.later = []
        parted = cut = False
        for row, parting, always in equations(block):
            if cut:
                self.later.append([set(), parted])
                cut = False
            if self.later:
                self.later[-1][0] |= row
            cut = bool(row & self.ending)
            parted = parted or bool(parting & self.ending)
            if cut and always:
                break


def equations(block):
    """The statements that perform, as a handler around the block gets them: row, parting row, whether it just performs.

    Those in handled, mapped and differentiated blocks are statements of the block around.
    """
    for statement in block.statements:
        kind, *fields = statement
        if kind in ("handle", "vmap", "derivative", "python_loop"):
            (inner,) = inner_blocks(fields)
            times = fields[1] if kind == "python_loop" else 1
            for row, parting, always in [*equations(inner)] * times:
                if kind == "handle":
                    row, parting = left_by(fields[0], row), left_by(fields[0], parting)
                yield row, parting, always and kind != "vmap"
            if kind == "handle" and fields[0].after is not None:
                yield performed_after(fields[0]), set(), True
        elif row := row_of_statement(statement):
            yield row, row_of_statement(statement, parting=True), kind == "perform"


class Handling:
    """A handler while its block is executed: its state, and the groups that are open, outermost first."""

    def __init__(self, handler, state, regions):
        self.handler, self.state, self.regions = handler, state, regions
        self.groups, self.saved = [], []

    @property
    def shown(self):
        return all(group.shown for group in self.groups)

    def replay(self, block, history):
        """The next event of a block that is given the same answers again."""
        event = advance(block, None)
        for answer in history:
            if event[0] in ("lanes", "loop", "region", "scope", "open"):
                self.groups.append(Group("past", shown=False))
            elif event[0] in ("end", "leave", "merge"):
                self.groups.pop()
            event = advance(block, answer)
        return event

    # events that are no effects

    def crossed(self, event):
        """An event that begins or ends a group, or one of its lanes or iterations."""
        kind, *fields = event
        if kind == "end":
            yield from self.end()
        elif kind in ("lane", "iterate"):
            yield from self.turn(*fields)
        elif kind == "region":
            yield from self.begin_region(*fields)
        elif kind == "after":
            yield from self.after(*fields)
        elif kind == "merge":
            self.state = merged_state(self.state, *fields)
            yield from self.pop()
        elif kind == "open":
            self.groups.append(Group("open", self.shown, closing=("merge", *fields)))
            if self.shown:
                yield event
        else:
            yield from self.begin(kind, *fields)

    def begin_region(self, row, kind="region"):
        row = left_by(self.handler, row)
        shown = self.shown and bool(row)
        self.groups.append(Group(kind, shown))
        if shown:
            yield ("region", row)

    def end(self):
        if self.groups[-1].kind == "ended":
            yield from self.pop()
        group = self.groups[-1]
        if group.keys is not None:
            self.state = group.keys[-1]
        yield from self.pop()
        if self.groups and self.groups[-1].kind == "while":
            yield from self.pop()

    def pop(self):
        group = self.groups.pop()
        if group.shown:
            yield group.closing

    def begin(self, kind, *fields):
        """Begin a loop or lanes; where lanes perform what depends on their order they become a loop."""
        handler, (of, row, parting, loops) = self.handler, fields
        mine = {effect for effect in row if effect in handler.clauses}
        indices, keys = range(of) if kind == "lanes" else of, None
        if kind == "lanes" and mine and handler.moves == "split":
            keys = [add(mul(0.9, self.state), 0.1 * k) for k in range(of + 1)]
        elif kind == "lanes" and mine and (handler.moves == "carry" or mine & handler.ends):
            kind = "loop"
        alone = any(group.kind in ("region", "ended", "segment", "while") for group in self.groups)
        parts = self.regions is not None and not alone and bool(parting & self.regions.ending)
        if parts and indices is None:
            yield from self.begin_region(row, "while")
            parts = False
        shown = self.shown
        self.groups.append(Group(kind, shown, indices, keys, loops, row, parts))
        if shown:
            outside = left_by(handler, row), left_by(handler, parting), loops
            yield (kind, of if kind == "lanes" else indices, *outside)

    def turn(self, index):
        """The next lane, or iteration."""
        if self.groups[-1].kind == "ended":
            yield from self.pop()
        group = self.groups[-1]
        group.index = index
        if group.keys is not None:
            self.state = group.keys[index]
        if group.shown:
            yield ("lane" if group.kind == "lanes" else "iterate", index)
        if group.parting:
            yield from self.begin_region(group.row, "ended")

    def after(self, row):
        """A statement has ended: where it may have ended some lanes, what follows is a region."""
        regions = self.regions
        if regions is not None and row & regions.ending and all(g.kind == "segment" for g in self.groups):
            if self.groups:
                yield from self.pop()
            if regions.later:
                segment, parted = regions.later.pop(0)
                if parted:
                    yield from self.begin_region(segment, "segment")
        row = left_by(self.handler, row)
        if row and self.shown and self.handler.answers_once:  # another one may have ended before it
            yield ("after", row)

    def leave(self):
        """End what is open, and what lanes around that go on will begin and end."""
        while self.groups:
            ended = self.groups[-1].kind == "ended"
            yield from self.pop()
            if ended:
                for index in self.groups[-1].later:
                    yield from self.turn(index)
                    yield from self.pop()
        for segment, parted in self.regions.later if self.regions else ():
            if parted:
                yield from self.begin_region(segment, "segment")
                yield from self.pop()


def merged_state(state, one, other):
    if isinstance(state, Log):
        return Log([(merged(value, one, other), path) for value, path in state.entries])
    return merged(state, one, other)


def handled(handler, start, state, regions=None, history=()):
    """The answer of a handled block, which is started again and sent the answers of ``history``: how it is resumed."""
    block, this = start(), Handling(handler, state, regions)
    event, history = this.replay(block, history), list(history)
    while event[0] != "returned":
        answer, kind = None, event[0]
        clause = handler.clauses.get(event[1]) if kind in ("perform", "scope", "leave") else None
        if kind not in ("perform", "scope", "leave"):
            yield from this.crossed(event)
        elif clause is None or handler.moves == "tally":
            answer = yield from forwarded(this, event)
        elif kind != "perform":
            answer = at_scope(this, clause, kind)
        elif clause.ends:
            return (yield from ended(this, clause, event[2]))
        elif clause.resumes:
            x = yield from onwards(clause, event[2])
            resume = lambda s, y: handled(handler, start, s, None, (*history, y))
            return (yield from resumed(clause, this.state, x, resume))
        else:
            this.state, answer = yield from answered(this, clause, event[2])
        history.append(answer)
        event = advance(block, answer)
    yield from this.leave()
    y = finished(handler, this.state, event[1][0])
    return y if handler.after is None else add(y, (yield ("perform", handler.after, y)))


def forwarded(this, event):
    """The answer of a handler further out."""
    kind, effect, *_ = event
    if kind == "leave":
        yield from this.pop()
        return None
    answer = yield event
    if kind == "scope":
        this.groups.append(Group("scope", this.shown, closing=("leave", effect)))
    return answer


def at_scope(this, clause, kind):
    """Which function of a scoped effect is executed; ``local``: from another state, and the state is as before then."""
    if clause.kind == "local" and this.state is not None:
        if kind == "leave":
            this.state = this.saved.pop()
        else:
            this.saved.append(this.state)
            this.state = add(mul(0.5, this.state), 0.125)
    return clause.kind


def ended(this, clause, x):
    """The answer of a block that a clause ends."""
    x = yield from onwards(clause, x)
    result = add(mul(clause.a, x), 0.0 if this.state is None else this.state)
    for group in reversed(this.groups):
        if group.kind == "open":
            result = merged(result, *group.closing[1:])
    yield from this.leave()
    return result


def onwards(clause, x):
    return x if clause.onwards is None else (yield ("perform", clause.onwards, x))


def answered(this, clause, x):
    """The state and the answer after a clause that answers once."""
    a, b, moves, state = clause.a, clause.b, this.handler.moves, this.state
    if moves is None:
        inner = mul(b, x)
        return None, mul(a, sin(inner) if clause.onwards is None else (yield from onwards(clause, inner)))
    if moves == "carry":
        return add(mul(0.5, state), mul(a, x)), (yield from onwards(clause, add(x, mul(b, state))))
    if moves == "split":
        return add(mul(0.7, state), 0.1), mul(sin(state), x)
    answer = yield from onwards(clause, mul(b, x))
    if moves == "append":
        path = []
        for group in this.groups:
            if group.kind in ("lanes", "loop"):
                path.insert(len(path) - group.loops, (group.index, len(group.indices)))
        return Log([*state.entries, (mul(a, x), path)]), answer
    return (add(state, mul(a, x)) if moves == "sum" else maximum(state, x)), answer


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
        return add(y, 0.01 * state)
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
