"""The Python text of handlers, which are data, in the words of ``functions``.

>>> text_of_handler(RandomHandler({PLAIN: RandomClause("fun", 0.5, 0.25)}, "carry", 0.5))
'hx.handler({AskPlain: lambda s, op, x: (0.5 * s + 0.5 * x, x + 0.25 * s)})'
"""

from __future__ import annotations

from .blocks import BODIES, DEFAULTED, ONCE, OTHER, PLAIN, SCOPED, TREE, WITHIN, RandomClause, RandomHandler

EFFECT_NAMES = {
    PLAIN: "AskPlain", TREE: "AskTree", OTHER: "AskOther", DEFAULTED: "AskDefaulted", ONCE: "AskOnce",
    WITHIN: "RunWithin", BODIES: "RunBodies",
}
MOVES = {
    "append": "hx.append",
    "sum": "hx.merge(hnp.add, number(0.0))",
    "max": "hx.merge(hnp.maximum, hnp.full((), -hnp.inf))",
    "split": "hx.split(lambda key, n: 0.9 * key + 0.1 * hnp.arange(n, dtype='float64'))",
    "tally": "hx.tally(0, lambda a, b: a + b, max, lambda a, n: a * (5 if n is None else n))",
}
# of clauses that answer once, by the movement: the next state; and the answer, or what is asked further out
ANSWERS = {
    "carry": ("0.5 * s + {a} * x", "x + {b} * s"),
    "append": ("(*s, {a} * x)", "{b} * x"),
    "sum": ("s + {a} * x", "{b} * x"),
    "max": ("hnp.maximum(s, x)", "{b} * x"),
    "split": ("0.7 * s + 0.1", "hnp.sin(s) * x"),
}
SCOPED_ANSWERS = {"first": "first(*xs)", "second": "second(*xs)", "local": "first(*xs)"}
STATEFUL_SCOPED_ANSWERS = {
    "first": "first(s, *xs)", "second": "second(s, *xs)", "local": "(s, first(0.5 * s + 0.125, *xs)[1])",
}


INSTALLED = {"handle": "hx.handle({})", "direct": "hx.direct({})", "replay": "hx.direct({}, replay=True)"}


def text_of_installed(handler: RandomHandler) -> str:
    """The text of a handler around functions, from its initial state."""
    return INSTALLED[handler.style].format(", ".join([text_of_handler(handler), *text_of_start(handler)]))


def text_of_handler(handler: RandomHandler) -> str:
    """The text of a handler, which returns a result itself where a clause takes, or drops, the rest."""
    clauses = {EFFECT_NAMES[effect]: text_of_clause(handler, effect) for effect in handler.clauses}
    if handler.otherwise:
        words = [f"otherwise={next(iter(clauses.values()))}", f"over=lambda op: isinstance(op, {' | '.join(clauses)})"]
    else:
        listed = [f"{effect}: {text}" for effect, text in clauses.items()]
        words = ["\n    ".join(["{", *[f"{each}," for each in listed]]) + "\n}"]
        words = words if listed[1:] else [f"{{{''.join(listed)}}}"]
    if handler.makes_result:
        parameters = "s, y" if handler.moves else "y"
        words.append(f"returns=lambda {parameters}: {text_of_result(handler, 's', 'y')}")
    if handler.moves in MOVES:
        words.append(f"moves={MOVES[handler.moves]}")
    return f"hx.handler({', '.join(words)})"


def text_of_start(handler: RandomHandler) -> tuple[str, ...]:
    """The initial state, or nothing for a handler without one."""
    if handler.moves is None:
        return ()
    typed = isinstance(handler.start, float) and not handler.weak
    return (f"number({handler.start})" if typed else repr(handler.start),)


def text_of_result(handler: RandomHandler, s: str, y: str) -> str:
    """What is made of the result ``y`` of a handled function: what is left of the state too, and an effect after it."""
    if handler.moves == "append":
        text = f"{y} + logged({s})"
    elif handler.moves is not None:
        text = f"{y} + {0.01 if handler.moves == 'tally' else 0.2} * number({s})"
    else:
        text = y
    if handler.after is None:
        return text
    return f"{y if text == y else f'({y} := {text})'} + ask({EFFECT_NAMES[handler.after]}, {y})"


def text_of_clause(handler: RandomHandler, effect: int) -> str:
    """The text of the clause of a handler for an effect."""
    clause, state = handler.clauses[effect], ["s"] * (handler.moves is not None)
    if effect in SCOPED:
        answers = STATEFUL_SCOPED_ANSWERS if state else SCOPED_ANSWERS
        return f"lambda {', '.join([*state, 'op', 'first', 'second', '*xs'])}: {answers[clause.kind]}"
    if handler.moves == "tally":
        return "lambda op, *types: 1"
    replied = "reply(op, {})" if handler.otherwise or effect == TREE else "{}"
    parameters = [*["resume"] * clause.resumes, *state, "op", "x", *["*_"] * (replied != "{}")]
    if clause.ends:
        text = f"{clause.a} * {asked(clause, 'x')}{' + s' * bool(state)}"
    elif clause.resumes:
        text = _resumed(clause, bool(state), replied)
    else:
        text = _answered(clause, handler.moves, replied)
    function = f"lambda {', '.join(parameters)}: {text}"
    return function if clause.kind == "fun" else f"hx.{clause.kind}({function})"


def asked(clause: RandomClause, x: str) -> str:
    """A number, or the answer of the effect that a clause performs further out with it."""
    return x if clause.onwards is None else f"ask({EFFECT_NAMES[clause.onwards]}, {x})"


def _answered(clause: RandomClause, moves: str | None, replied: str) -> str:
    """The answer of a clause that answers once; with a state, the next one and the answer."""
    if moves is None:
        y = f"{clause.b} * x"
        return replied.format(f"{clause.a} * {f'hnp.sin({y})' if clause.onwards is None else asked(clause, y)}")
    state, y = [text.format(a=clause.a, b=clause.b) for text in ANSWERS[moves]]
    return f"({state}, {replied.format(asked(clause, y))})"


def _resumed(clause: RandomClause, stateful: bool, replied: str) -> str:
    """The answer of a clause that resumes ``clause.times`` times."""
    a, b = clause.a, clause.b
    x = "x" if clause.onwards is None else f"(x := {asked(clause, 'x')})"
    if clause.times == 0:
        return f"{a} * {x}"
    resumed = lambda s, y: f"resume({f'{s}, ' * stateful}{replied.format(y)})"
    first = resumed(f"s + {x}", f"{a} * {'x' if stateful else x}")
    return f"{b} * {first}" if clause.times == 1 else f"0.5 * {first} + 0.25 * {resumed(f'{b} * s', f'{b} * x')}"
