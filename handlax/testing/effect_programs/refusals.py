"""Which effects may be performed where in a program, and which refusals there are.

``Place.refusal`` walks from a place in a program outwards, as an effect performed there does, and says what becomes of
it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .blocks import BODIES, DEFAULTED, ONCE, WITHIN, RandomClause, RandomHandler

UNTOLD = "untold"  # the effect is not answered, or the oracle does not say how
LOOPS = {"loop", "while", "until", "lanes", "ragged"}  # while: of a known number of iterations
BRANCHES = {"branch", "branch of all"}
BODY = LOOPS | BRANCHES  # what records its bodies
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

    around: tuple[tuple[Any, ...], ...] = ()

    def inside(self, *what: Any) -> Place:
        return Place((*self.around, what))

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
