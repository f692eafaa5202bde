"""The author of programs with effects, and its handlers: their clauses perform what is answered further out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from random import Random

from ...effects.base.errors import BadArgument
from ..generator.author import Author, Vocabulary
from .blocks import ASKING, ONCE, SCOPED, RandomClause, RandomHandler
from .refusals import UNTOLD, Place, marked

# how often the first clause of a handler is of a kind, and the state of a movement
RATES: dict[tuple[str, str | None], int] = {
    ("fun", None): 10, ("fun", "carry"): 20,
    ("fun", "append"): 15, ("fun", "sum"): 15, ("fun", "max"): 15, ("fun", "split"): 15, ("fun", "tally"): 15,
    ("ctl", None): 14, ("ctl", "carry"): 28, ("final", None): 14, ("final", "carry"): 28,
}
KINDS = ("fun", "ctl", "final")
MOVEMENTS = (None, "carry", "append", "sum", "max", "split", "tally")


def rates_of(kinds: Collection[str], movements: Collection[str | None]) -> Mapping[tuple[str, str | None], int]:
    """The weights with which a random handler's first clause has each (kind, state movement), of those asked for.

    Raises: BadArgument: no handler has such a pair.
    """
    rates = {pair: often for pair, often in RATES.items() if pair[0] in kinds and pair[1] in movements}
    if not rates:
        raise BadArgument(
            f"handlers: there must be some of a kind and a movement, got kinds {kinds} and movements {movements}.",
            hint=f"kinds are {KINDS}; movements {MOVEMENTS}, of ctl and final None and 'carry' alone.",
        )
    return rates


class EffectAuthor(Author):
    """Chooses statements, effects and handlers.

    ``left``: how many structures and handlers it may still write. ``rates``: of handlers, see ``rates_of``. ``styles``:
    how one is installed whose clauses take, or drop, the rest of a program. ``compiles``: a compiled function may stand
    where nothing is traced. ``eager``: the arguments are known values. ``daring``: how often an effect is performed
    that will be refused; ``dared``: the refusal of the one that was.
    """

    def __init__(
        self,
        random: Random,
        vocabulary: Vocabulary,
        *,
        size: int = 8,
        rates: Mapping[tuple[str, str | None], int] = RATES,
        styles: Sequence[str] = ("handle",),
        compiles: bool = True,
        eager: bool = False,
        daring: float = 0.0,
    ):
        super().__init__(random, vocabulary)
        self.left, self.styles, self.compiles, self.eager, self.daring = size, styles, compiles, eager, daring
        self.rates = rates
        self.dared: str | None = None

    def number(self, low: float = -0.9, high: float = 0.9) -> float:
        """A multiple of 1/64, since products of two of a weak type are exact; the roundest are the first."""
        numbers = [k for k in range(round(low * 64), round(high * 64) + 1) if k]
        return self.choice(sorted(numbers, key=lambda k: (-(k & -k), k < 0, abs(k)))) / 64

    def numbers(self) -> tuple[float, float]:
        return self.number(), self.number()

    def dares(self) -> bool:
        """Whether what is written next may be refused."""
        return self.dared is None and self.chance(self.daring)

    def effects(self, place: Place) -> list[int]:
        """The effects to be performed here: those that are answered; or one that is refused."""
        outcomes = {effect: place.refusal(effect) for effect in (*ASKING, ONCE)}
        refused = {effect: why for effect, why in outcomes.items() if why not in (None, UNTOLD)}
        if refused and self.dares():
            effect = self.choice([*refused])
            self.dared = refused[effect]
            return [effect]
        return [effect for effect, refusal in outcomes.items() if refusal is None]


def random_handler(a: EffectAuthor, place: Place, kind: str | None = None, style: str | None = None) -> RandomHandler:
    """A handler of one or two effects, for here; of kind ctl or final its first clause is of this kind.

    What may not be is chosen, too, and left out: an example with fewer choices counts as simpler, whatever it is.
    """
    rates = {pair: often for pair, often in a.rates.items() if kind in (None, pair[0])}
    kind, moves = a.weighted(rates or {(kind, None): 1})
    open = a.chance(0.7) and kind == "final" and place.has("lanes") and not place.opened
    style = style or ("handle" if kind == "fun" else a.choice(a.styles))
    start = {None: None, "append": (), "tally": 0}.get(moves, a.number())
    handler = RandomHandler({}, moves, start, a.chance(0.3) and moves == "carry", style, open=open)
    clauses = {}
    effects = [e for e in ASKING if place.allows(e)] if moves == "tally" else [*ASKING, ONCE]
    for k, effect in enumerate(a.random.sample(effects, min(len(effects), a.integer(1, 2)))):
        clauses[effect] = random_clause(a, place, handler, effect, kind if k == 0 else "fun")
    if a.chance(0.2) and kind == "ctl" and len(clauses) == 2:  # both kinds in one handler
        clauses[effect] = clauses[effect]._replace(kind="final")
    if a.chance(0.3) and kind == "fun" and moves in (None, "carry"):
        clauses[a.choice(SCOPED)] = RandomClause(a.choice(["first", "second", "local"]), *a.numbers())
    return finished(a, place, handler._replace(clauses=clauses))


def finished(a: EffectAuthor, place: Place, handler: RandomHandler) -> RandomHandler:
    """The handler with what it makes of a result, and perhaps one clause for all effects."""
    plain = [effect for effect in handler.clauses if effect in ASKING]
    around = place.inside("handle", marked(handler))
    after = [effect for effect in ASKING if around.allows(effect)]
    if a.chance(0.3) and not handler.open:
        handler = handler._replace(returns=True, after=a.choice([None, *after]))
    alike = handler.answers_once and handler.moves != "tally" and len(plain) == len(handler.clauses) > 0
    if a.chance(0.2) and alike:
        clauses = dict.fromkeys(plain, handler.clauses[plain[0]])
        handler = handler._replace(clauses=clauses, otherwise=True)
    return handler


def random_clause(a: EffectAuthor, place: Place, handler: RandomHandler, effect: int, kind: str) -> RandomClause:
    """A clause that may perform an effect further out, where effects of its kind are answered."""
    times = a.choice([1, 2, 2, 0])
    if a.chance() and kind == "ctl" and times < 2:
        kind = "once"
    around = place.inside("handle", marked(handler._replace(clauses={effect: RandomClause(kind, 0.0, 0.0)})))
    targets = [ONCE] * (handler.moves is None) if effect == ONCE else ASKING
    outside = [target for target in targets if around.allows(target)]
    onwards = a.choice(outside) if a.chance(0.4) and outside and handler.moves != "split" else None
    return RandomClause(kind, *a.numbers(), onwards, times)
