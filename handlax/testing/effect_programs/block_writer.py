"""Writes random programs with effects: which effects may be performed where, and which refusals there are.

``Place.refusal`` walks from a place in a program outwards, as an effect performed there does, and says what becomes of
it; the writer performs what is answered, and with the option ``daring`` now and then what is refused.
"""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

from .blocks import ASKING, BODIES, DEFAULTED, ONCE, SCOPED, WITHIN, Block, RandomClause, RandomHandler, row_of

UNTOLD = "untold"  # the effect is not answered, or the oracle does not say how
LOOPS = {"loop", "while", "until", "lanes", "ragged"}  # while: of a known number of iterations
BRANCHES = {"branch", "branch of all"}
BODY = LOOPS | BRANCHES  # what records its bodies
STEPS = 12  # no loop has more
REVERSE = ("grad", "vjp", "linearize", "jacrev")
DERIVATIVES = ("jvp", "jacfwd", *REVERSE)


def refused_by(handler: RandomHandler, clause: RandomClause, crossed: set[str], derived: bool) -> str | None:
    """The refusal of an effect that has crossed these structures when it gets to its clause; None: it is answered.

    ``derived``: whether there is a derivative outside of the handler.
    """
    takes, direct = clause.resumes or clause.ends, handler.style != "handle"
    if takes and direct and crossed & (BODY | {"scope", "recorded"}):
        return "a body in direct style"
    apart = clause.resumes or (takes and (handler.resumes or direct))  # the program is taken apart at the clause
    if apart and crossed & LOOPS:
        return "the rest after an iteration"
    if apart and "scope" in crossed:
        return "the rest after a function of a scoped effect"
    if apart and "custom" in crossed and derived:
        return "a rule that a clause takes apart"
    if handler.moves == "append" and crossed & {"while", "until"}:
        return "a log in a while loop"
    if handler.moves == "tally" and crossed & {"reified", "scope", "python branch", "ragged"}:
        return UNTOLD
    if handler.open and clause.ends and crossed & {"call", "branch of all", "custom", "reified", "scope"}:
        return UNTOLD  # these are cut into segments of their own
    return None


def around_derived(mode: str) -> tuple[tuple[str], ...]:
    """What is around a function that is differentiated."""
    return (("derivative",), ("reverse",)) if mode in REVERSE else (("derivative",),)


class Place(NamedTuple):
    """What surrounds a statement, outermost first: ("handle", handler) or a structure such as ("loop",)."""

    around: tuple[tuple[Any, ...], ...]
    depth: int

    def inside(self, *what: Any) -> Place:
        return Place((*self.around, what), self.depth - 1)

    def has(self, *kinds: str) -> bool:
        return any([each[0] in kinds for each in self.around])

    @property
    def opened(self) -> bool:
        """Whether a handler around lets effects beyond the lanes that part in it."""
        return any([kind == "handle" and rest[0].open for kind, *rest in self.around])

    @property
    def eager(self) -> bool:
        """Whether values are known here, if they are outside: no body and no handler is recorded."""
        return self.chosen and not self.has("chosen")

    @property
    def chosen(self) -> bool:
        """Whether a branch is chosen by a known value here, if values are known outside.

        A handler in a branch that takes programs apart does so while the branch is recorded.
        """
        inside = False
        for kind, *rest in self.around:
            inside = inside or kind == "chosen"
            if kind == "handle":
                if not rest[0].executes or (inside and not rest[0].answers_once):
                    return False
            elif kind not in ("python", "python branch", "chosen"):
                return False
        return True

    def allows(self, effect: int) -> bool:
        return self.refusal(effect) is None

    def refusal(self, effect: int) -> str | None:
        """What refuses an effect that is performed here; None: it is answered."""
        crossed: set[str] = set()
        for i, (kind, *rest) in reversed([*enumerate(self.around)]):
            if kind == "shape":
                return None  # nothing is performed
            if kind != "handle":
                refused = refused_between(effect, kind, crossed)
                if refused is not None:
                    return refused
                crossed |= {kind, f"scope of {rest[0]}"} if kind == "scope" else {kind}
                continue
            (handler,) = rest
            clause = handler.clauses.get(effect)
            if clause is not None:
                derived = any([each[0] == "derivative" for each in self.around[:i]])
                refused = refused_by(handler, clause, crossed, derived)
                if refused is not None or (handler.moves != "tally" and clause.onwards is None):
                    return refused
                effect = effect if handler.moves == "tally" else clause.onwards
            crossed = beyond_handler(handler, crossed)
        return None if effect == DEFAULTED else UNTOLD


def refused_between(effect: int, kind: str, crossed: set[str]) -> str | None:
    """The refusal of an effect by a structure that it gets out of."""
    if kind in ("lanes", "ragged"):
        of_all_lanes = effect in (ONCE, BODIES)
        if of_all_lanes and (kind == "ragged" or crossed & {"branch", "until", f"scope of {WITHIN}"}):
            return "some lanes alone"
        if "closed" in crossed or (of_all_lanes and "ended" in crossed):
            return UNTOLD
    if kind == "reverse" and crossed & {"while", "until"}:
        return "a while loop in reverse mode"
    return None


def beyond_handler(handler: RandomHandler, crossed: set[str]) -> set[str]:
    """What an effect has crossed that gets out of a handler, too."""
    crossed = {each for each in crossed if each not in [f"scope of {effect}" for effect in handler.clauses]}
    if not any([each.startswith("scope of") for each in crossed]):
        crossed -= {"scope"}
    if handler.answers_once:
        return crossed
    crossed |= {"reified"}
    if handler.style == "handle":  # what follows a clause may become a branch
        crossed |= {"recorded", "ended"} | (set() if handler.open else {"closed"})
    return crossed


def marked(handler: RandomHandler) -> RandomHandler:
    """A handler of the same kind that answers nothing: what its clauses perform, it does not answer."""
    return handler._replace(clauses={-1 - effect: clause for effect, clause in handler.clauses.items()})


def performing(effect: int, i: int) -> Any:
    """A statement that performs an effect; one that is performed once gets what no transformation maps."""
    return ("perform", effect, 0 if effect == ONCE else i)


class BlockWriter:
    """Writes random programs with one source of random choices.

    ``size``: the number of structures and handlers, at most. ``styles``: of handlers whose clauses take the rest of a
    program, or end it. ``compiles``: a compiled function may stand where nothing is traced. ``eager``: the arguments
    are known values. ``daring``: how often an effect is performed that will be refused.
    """

    def __init__(self, draw: Random, size: int, styles: tuple[str, ...], compiles: bool, eager: bool, daring: float):
        self.draw, self.styles, self.compiles, self.eager, self.daring = draw, styles, compiles, eager, daring
        self.left = size
        self.dared: str | None = None

    def number(self, low: float = -0.9, high: float = 0.9) -> float:
        """A number that products of two of a weak type give exactly."""
        return round(self.draw.uniform(low, high) * 64) / 64

    def effects(self, scope: Place) -> list[int]:
        """The effects to be performed here: those that are answered; or one that is refused."""
        outcomes = {effect: scope.refusal(effect) for effect in (*ASKING, ONCE)}
        refused = {effect: why for effect, why in outcomes.items() if why not in (None, UNTOLD)}
        if refused and self.dared is None and self.draw.random() < self.daring:
            effect = self.draw.choice(list(refused))
            self.dared = refused[effect]
            return [effect]
        return [effect for effect, refusal in outcomes.items() if refusal is None]

    def steps(self, scope: Place) -> int | None:
        """The bound of a loop of unknown length, which it needs in reverse mode."""
        if not scope.has("reverse"):
            return None
        if self.dared is None and self.draw.random() < self.daring:
            self.dared = "a while loop in reverse mode"
            return None
        return STEPS

    def block(self, scope: Place, count: int, size: int, outs: int = 1, often: bool = False) -> Block:
        """A block on ``count`` numbers with about ``size`` statements; ``often`` the first performs an effect."""
        statements: list[Any] = []
        if often and (effects := self.effects(scope)) and self.draw.random() < 0.6:
            statements.append(self.performed(effects, self.draw.randint(1, count - 1)))
        for _ in range(self.draw.randint(1 - len(statements), size)):
            statements.append(self.statement(scope, count + len(statements)))
        last = count + len(statements) - 1
        statements.append(("arithmetic", "add", last, self.draw.randint(1, last)))
        picks = [last + 1, *[self.draw.randint(max(1, last - 1), last + 1) for _ in range(outs - 1)]]
        return Block(tuple(statements), tuple(picks))

    def performed(self, effects: list[int], i: int) -> Any:
        """A statement that performs one of the effects."""
        return performing(self.draw.choice(effects), i)

    def statement(self, scope: Place, count: int) -> Any:
        effects = self.effects(scope)
        kinds = ["arithmetic"] + ["perform"] * 3 * bool(effects)
        if scope.depth > 0 and self.left > 0:
            kinds += ["cond", "cond_of_all", "switch", "scan", "scan", "map", "fori", "vmap", "vmap", "checkpoint"]
            kinds += ["derivative", "handle", "handle", "handle", "counted_while", "tested_while", "ended_while"]
            kinds += ["custom"] * 2 * (not scope.has("custom")) + ["eval_shape"] * (self.draw.random() < 0.3)
            kinds += ["jit"] * (self.compiles or scope.has("loop", "while", "until", "branch", "chosen"))
            kinds += ["unrolled"] + ["python_cond"] * 3 * (self.eager and scope.eager)
            kinds += ["scoped"] * 2 * bool(self.scoped_effects(scope)) + ["ragged"] * (not scope.has("ragged"))
        kind = self.draw.choice(kinds)
        i = self.draw.randint(1, count - 1)
        if kind == "arithmetic":
            return ("arithmetic", self.draw.choice(["add", "mul", "sin", "cos"]), i, self.draw.randint(1, count - 1))
        if kind == "perform":
            return self.performed(effects, i)
        self.left -= 1
        return getattr(self, f"write_{kind}")(scope, count, i)

    # structures

    def branches(self, scope: Place, kind: str, count: int, number: int = 2) -> list[Block]:
        scope = scope.inside("chosen" if self.eager and scope.chosen else kind)
        return [self.block(scope, count, 2) for _ in range(number)]

    def write_cond(self, scope: Place, count: int, i: int) -> Any:
        return ("cond", i, self.number(), *self.branches(scope, "branch", count))

    def write_cond_of_all(self, scope: Place, count: int, i: int) -> Any:
        return ("cond_of_all", *self.branches(scope, "branch of all", count))

    def write_switch(self, scope: Place, count: int, i: int) -> Any:
        return ("switch", i, tuple(self.branches(scope, "branch", count, 3)))

    def write_scan(self, scope: Place, count: int, i: int) -> Any:
        body = self.block(scope.inside("loop"), count + 2, 3, 2)
        return ("scan", i, self.draw.randint(1, 3), self.draw.random() < 0.3, body)

    def write_map(self, scope: Place, count: int, i: int) -> Any:
        return ("map", i, self.draw.randint(1, 3), self.block(scope.inside("loop"), count + 1, 3))

    def write_fori(self, scope: Place, count: int, i: int) -> Any:
        return ("fori", i, self.draw.randint(1, 3), self.block(scope.inside("loop"), count + 1, 3))

    def write_unrolled(self, scope: Place, count: int, i: int) -> Any:
        """A loop of Python's."""
        return ("unrolled", i, self.draw.randint(1, 2), self.block(scope.inside("python"), count + 1, 2))

    def write_python_cond(self, scope: Place, count: int, i: int) -> Any:
        """An ``if`` statement of Python's, whose test reads a known value, such as the answer of an effect."""
        inside = scope.inside("python branch")
        return ("python_cond", i, self.number(), *[self.block(inside, count, 2) for _ in range(2)])

    def write_counted_while(self, scope: Place, count: int, i: int) -> Any:
        body = self.block(scope.inside("while"), count + 1, 2)
        return ("counted_while", i, self.draw.randint(0, 3), self.steps(scope), body)

    def write_tested_while(self, scope: Place, count: int, i: int) -> Any:
        test, body = (self.block(scope.inside("until"), count + 1, size, often=True) for size in (1, 2))
        return ("tested_while", i, self.number(0.5, 2.0), self.steps(scope), test, body)

    def write_ended_while(self, scope: Place, count: int, i: int) -> Any:
        """A loop under a handler whose clause ends it, which it performs from some value of its carry on."""
        handler = self.handler(scope, "final", "handle")
        within = scope.inside("handle", handler).inside("until")
        (ending,) = handler.ends
        if not within.inside("branch").allows(ending):
            return self.write_tested_while(scope, count, i)
        test, rest = self.block(within, count + 1, 1, often=True), self.block(within, count + 2, 1)
        end = Block((performing(ending, count),), (count + 1,))
        go_on = Block((("arithmetic", "sin", count, i),), (count + 1,))
        body = Block((("cond", count, self.number(-0.5, 1.5), end, go_on), *rest.statements), rest.outs)
        loop = ("tested_while", i, self.number(0.5, 2.0), self.steps(scope), test, body)
        return ("handle", handler, Block((loop,), (count,)))

    def write_vmap(self, scope: Place, count: int, i: int) -> Any:
        return ("vmap", i, self.draw.randint(1, 3), self.block(scope.inside("lanes"), count + 1, 3))

    def write_ragged(self, scope: Place, count: int, i: int) -> Any:
        """Lanes of different lengths, each a loop over its rows."""
        lengths = tuple([self.draw.randint(0, 2) for _ in range(self.draw.randint(1, 3))])
        return ("ragged", i, lengths, self.block(scope.inside("ragged"), count + 2, 2))

    def write_jit(self, scope: Place, count: int, i: int) -> Any:
        return ("jit", self.block(scope.inside("call"), count, 2))

    def write_checkpoint(self, scope: Place, count: int, i: int) -> Any:
        return ("checkpoint", self.block(scope.inside("call"), count, 2))

    def write_eval_shape(self, scope: Place, count: int, i: int) -> Any:
        return ("eval_shape", i, self.block(scope.inside("shape"), count, 2))

    def write_derivative(self, scope: Place, count: int, i: int) -> Any:
        mode = self.draw.choice(DERIVATIVES)
        inside = Place((*scope.around, *around_derived(mode)), scope.depth - 1)
        return ("derivative", i, mode, self.block(inside, count + 1, 3))

    def write_custom(self, scope: Place, count: int, i: int) -> Any:
        kind = self.draw.choice(["jvp", "vjp"]) if scope.has("reverse") else "jvp"
        rate, block = self.number(), self.block(scope.inside("custom"), 2, 2)
        return ("custom", i, kind, rate, not row_of(block), block)

    # handlers

    def scoped_effects(self, scope: Place) -> list[int]:
        return [effect for effect in SCOPED if scope.allows(effect)]

    def write_scoped(self, scope: Place, count: int, i: int) -> Any:
        effect = self.draw.choice(self.scoped_effects(scope))
        return ("scoped", effect, *[self.block(scope.inside("scope", effect), count, 2) for _ in range(2)])

    def write_handle(self, scope: Place, count: int, i: int) -> Any:
        handler = self.handler(scope)
        return ("handle", handler, self.block(scope.inside("handle", handler), count, 3))

    def handler(self, scope: Place, kind: str | None = None, style: str | None = None) -> RandomHandler:
        """A handler of one or two effects; of kind ctl or final its first clause is of this kind."""
        draw = self.draw
        kind = kind or draw.choice(["fun"] * 5 + ["ctl", "ctl", "final", "final"])
        moves = draw.choice([None, "carry", "carry"])
        if kind == "fun":
            moves = draw.choice([moves, moves, "append", "sum", "max", "split", "tally"])
        open = kind == "final" and scope.has("lanes") and not scope.opened and draw.random() < 0.7
        style = style or ("handle" if kind == "fun" else draw.choice(self.styles))
        start = {None: None, "append": (), "tally": 0}.get(moves, self.number())
        handler = RandomHandler({}, moves, start, moves == "carry" and draw.random() < 0.3, style, open=open)
        clauses = {}
        for k, effect in enumerate(draw.sample((*ASKING, ONCE), draw.randint(1, 2))):
            clauses[effect] = self.clause(scope, handler, effect, kind if k == 0 else "fun")
        if kind == "ctl" and len(clauses) == 2 and draw.random() < 0.2:  # both kinds in one handler
            clauses[effect] = clauses[effect]._replace(kind="final")
        if kind == "fun" and moves in (None, "carry") and draw.random() < 0.3:
            clauses[draw.choice(SCOPED)] = RandomClause(draw.choice(["first", "second", "local"]), *self.numbers())
        if moves == "tally":
            clauses = {e: clause for e, clause in clauses.items() if e in ASKING and scope.allows(e)}
        handler = handler._replace(clauses=clauses)
        return self.finished(scope, handler)

    def finished(self, scope: Place, handler: RandomHandler) -> RandomHandler:
        """The handler with what it makes of a result, and perhaps one clause for all effects."""
        draw, plain = self.draw, [e for e in handler.clauses if e in ASKING]
        around = scope.inside("handle", marked(handler))
        after = [effect for effect in ASKING if around.allows(effect)]
        if draw.random() < 0.3 and not handler.open:
            handler = handler._replace(returns=True, after=draw.choice([None, *after]))
        alike = handler.answers_once and handler.moves != "tally" and len(plain) == len(handler.clauses) > 0
        if alike and draw.random() < 0.2:
            clauses = dict.fromkeys(plain, handler.clauses[plain[0]])
            handler = handler._replace(clauses=clauses, otherwise=True)
        return handler

    def numbers(self) -> tuple[float, float]:
        return self.number(), self.number()

    def clause(self, scope: Place, handler: RandomHandler, effect: int, kind: str) -> RandomClause:
        """A clause that may perform an effect further out, where effects of its kind are answered."""
        draw = self.draw
        times = draw.choice([0, 1, 2, 2])
        if kind == "ctl" and times < 2 and draw.random() < 0.5:
            kind = "once"
        around = scope.inside("handle", marked(handler._replace(clauses={effect: RandomClause(kind, 0.0, 0.0)})))
        targets = [ONCE] * (handler.moves is None) if effect == ONCE else ASKING
        outside = [target for target in targets if around.allows(target)]
        onwards = draw.choice(outside) if outside and handler.moves != "split" and draw.random() < 0.4 else None
        return RandomClause(kind, *self.numbers(), onwards, times)

    def program(self, depth: int, size: int, around: tuple[tuple[str], ...]) -> Block:
        """A program on (choice, x, y) that answers all its effects, but for one with a default now and then."""
        answered = [e for e in (*ASKING, ONCE) if e != DEFAULTED or self.draw.random() < 0.5]
        clauses = {effect: RandomClause("fun", *self.numbers()) for effect in answered}
        clauses |= {effect: RandomClause("first", *self.numbers()) for effect in SCOPED}
        base = RandomHandler(clauses, *self.draw.choice([(None, None), ("carry", self.number())]))
        scope = Place((*around, ("handle", base)), depth)
        return Block((("handle", base, self.block(scope, 3, size)),), (3,))


class Written(NamedTuple):
    """A program, and the refusal that it dares, if any."""

    program: Block
    dares: str | None


def random_block(
    random: Random,
    depth: int,
    *,
    size: int = 8,
    styles: tuple[str, ...] = ("handle",),
    compiles: bool = True,
    eager: bool = False,
    derivative: str | None = None,
    daring: float = 0.0,
) -> Written:
    """A program, nested so deep; the deeper, the fewer statements in a block.

    ``derivative``: how it is to be differentiated, one of ``DERIVATIVES``; the other options are those of the writer.
    """
    writer = BlockWriter(random, size, styles, compiles, eager, daring)
    program = writer.program(depth, max(2, 5 - depth), () if derivative is None else around_derived(derivative))
    return Written(program, writer.dared)
