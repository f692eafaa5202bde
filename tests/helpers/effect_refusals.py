"""What random programs with effects may be refused for: words of ``Place.refusal``, of the error and of the page."""

from __future__ import annotations

from typing import NamedTuple


class Refusal(NamedTuple):
    """``says``: what the error says, ``remedy``: its hint; ``row``: what the table of docs/tutorial/effect.md says."""

    says: str
    remedy: str
    row: str


REFUSED = {
    "the rest after an iteration": Refusal(
        "the rest of the program after one iteration of a loop of unknown length, or in one lane, is not a function",
        "give it a length, .* or handle it by a plain clause|handle it inside, vmap",
        "| `ctl` through a `while_loop`, or lanes |",
    ),
    "an iteration without support": Refusal(
        "a clause that takes resume cannot cross a loop: the rest of the program after one iteration is not a function",
        r"hx.ctl\(f, support=n\), .* hx.handle\(h, unroll=True\) makes the loop n parts",
        "| `ctl` through a loop of known length, without `support` |",
    ),
    "a state through a table": Refusal(
        "the state of a handler whose clause takes resume cannot cross it, since it may depend on all choices",
        r"pass it as a carry of the loop, or add it up in the answers: .* hx.handle\(h, unroll=True\)",
        "| `ctl` in a handler with a state, through a loop of known length |",
    ),
    "the rest after a function of a scoped effect": Refusal(
        "the rest of the program after one execution of its function is not a function",
        "handle it further out",
        "| `ctl` through a function of a [scoped effect]",
    ),
    "a log in a while loop": Refusal(
        "cannot cross a loop of unknown length: the number of its entries must be known",
        "use scan or fori_loop with constant bounds, or a state with an array of fixed size",
        "| `append` through a `while_loop` | the size of the log is unknown |",
    ),
    "some lanes alone": Refusal(
        "diverge, and only some of them would perform",
        r"handle it inside: vmap\(hx.handle\(h\)\(f\)\); or declare",
        "| `once` or `refuse` in a branch that only some lanes take | only some of them would perform it |",
    ),
    "a while loop in reverse mode": Refusal(
        "reverse mode cannot cross a loop of unknown length: unboundedly many carries|"
        "would be performed a second time by the linear part: the number of its results to save is unbounded",
        r"handle it inside, grad\(hx.handle\(h\)\(f\)\), and give while_loop max_steps=; or use scan",
        "| an effect with an answer in a `while_loop`, handled outside `grad` |",
    ),
    "a rule that a clause takes apart": Refusal(
        "its derivative is needed, but (the|a) clause .* from inside it, which takes away its rule",
        "perform the effect before or after it, or handle it by a plain clause",
        "| the derivative, or lanes, of a function with a rule for it that performs an effect with `ctl` |",
    ),
    "a body in direct style": Refusal(
        "its clause in direct style takes the rest of the function, and is performed in a body that is recorded",
        "perform it outside of vmap, while loops and branches by traced values, .* or record all by hx.handle",
        "| `ctl` or `final` under [`hx.direct`](continuations.md) in lanes, a `while_loop`, or a branch by a traced",
    ),
}

_LOOPS = ("the rest after an iteration", "an iteration without support", "a state through a table")
_ALIKE = {"the rest after an iteration": _LOOPS, "a body in direct style": ("a body in direct style", *_LOOPS)}


def messages(name: str) -> str:
    """What the error of a random program may say: of a loop it depends on its length and on the handler's state."""
    return "|".join([REFUSED[each].says for each in _ALIKE.get(name, (name,))])
