"""Draw which kind of clause or handler serves which purpose, and write the same as a list, from one table.

    python tools/handler_choice.py            write docs/tutorial/which-handler.svg, and the list in the page beside it
    python tools/handler_choice.py --check    print what is out of date, and fail if something is

Questions stand one below the other: yes leads to the answer on the right, no to the next question.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from architecture import INK, MARGIN, ROOT, WIDTH, box, text, write_or_check

PICTURE = ROOT / "docs" / "tutorial" / "which-handler.svg"
PAGE = ROOT / "docs" / "tutorial" / "which-handler.md"
LIST = re.compile(r"(?<=<!-- the picture, as a list -->\n).*?(?=<!-- the end of the list -->)", re.DOTALL)


class Choice(NamedTuple):
    """A question, in lines, and what serves where it is answered by yes: its name, what it does, the page about it."""

    question: tuple[str, ...]
    answer: str
    does: str
    page: str
    layer: str  # whose colours it has


CHOICES = (
    Choice(("Do values become something else,", "such as intervals, units or pairs?"), "an interpreter of your own",
           "rules give results from what boxes hold", "interpreter.md", "lowering"),
    Choice(("Does the effect take a function, which the handler", "executes never, once, often, or under others?"),
           "@hx.effect(scopes=1)", "the clause calls body(*operands)", "../how-to/scoped-effects.md", "interpreters"),
    Choice(("Should it mean something also where", "nobody handles it?"), "@hx.effect(default=clause)",
           "the outermost handler answers", "effect.md#a-default-for-those-who-do-not-handle-it", "effects"),
    Choice(("Does the clause give an answer, and no more?",), "a plain clause, hx.handle",
           "crosses loops, lanes, branches and gradients", "effect.md#declare-perform-handle", "effects"),
    Choice(("Does the clause end the program?",), "hx.final(clause)",
           "an exception as a value, in compiled loops too", "effect.md#errors-as-values-final", "effects"),
    Choice(("Are many programs answered together,", "or does the caller decide when one goes on?"),
           "hx.steps(Effect)(f)", "effects as values: Step(op, operands, resume)",
           "continuations.md#effects-as-values", "handlax"),
    Choice(("Does the program go on once at most,", "as with readers and consumers?"), "hx.once(clause), hx.direct",
           "executed, and never executed again", "continuations.md#two-ways-to-install-one-handler", "handlax"),
    Choice(("Do Python's if, while or recursion", "read the answers?"), "hx.ctl(clause), hx.direct",
           "executed; again for a second resumption", "continuations.md#two-ways-to-install-one-handler", "handlax"),
)
LAST = Choice((), "hx.ctl(clause), hx.handle", "recorded once, resumed as often as it is called",
              "effect.md#all-choices-ctl", "effects")

# The picture: questions in the left column, answers in the right one

ASKED, ANSWERED, HIGH, GAP = 400, 400, 54, 26
RIGHT = WIDTH - MARGIN - ANSWERED


def style() -> str:
    def rules(shade: int) -> str:
        lines = [f"text {{ fill: {INK['text'][shade]}; }} .soft {{ fill: {INK['soft'][shade]}; }}",
                 f".arrow {{ stroke: {INK['soft'][shade]}; }} .tip {{ fill: {INK['soft'][shade]}; }}",
                 f".question {{ fill: {INK['ground'][shade]}; stroke: {INK['soft'][shade]}; }}"]
        for layer in ("effects", "interpreters", "lowering", "handlax"):
            lines.append(f".{layer} {{ fill: {INK[layer][shade]}; fill-opacity: 0.1; stroke: {INK[layer][shade]}; }}")
        return "\n".join(lines)

    return "\n".join([
        "text { font: 14px system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif; }",
        ".name { font-family: ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace; font-weight: 600; }",
        ".arrow { fill: none; stroke-width: 1.5; } .small { font-size: 13px; }",
        rules(0), f"@media (prefers-color-scheme: dark) {{\n{rules(1)}\n}}",
    ])


def drawn_answer(choice: Choice, y: float) -> Iterator[str]:
    yield box(choice.layer, RIGHT, y, ANSWERED, HIGH, 8)
    yield text(RIGHT + 14, y + 23, choice.answer, "name")
    yield text(RIGHT + 14, y + 42, choice.does, "small soft")


def drawn_choice(choice: Choice, y: float) -> Iterator[str]:
    """A question, its answer, and the arrows of yes and no."""
    middle, below = y + HIGH / 2, y + HIGH
    yield box("question", MARGIN, y, ASKED, HIGH, 8)
    for i, line in enumerate(choice.question):
        yield text(MARGIN + 14, middle + 5 + 19 * (i - (len(choice.question) - 1) / 2), line)
    yield f'<path class="arrow" d="M{MARGIN + ASKED:g},{middle:g} H{RIGHT - 10:g}"/>'
    yield f'<path class="tip" d="M{RIGHT - 2:g},{middle:g} l-9,-5 v10 z"/>'
    yield text((MARGIN + ASKED + RIGHT) / 2 - 6, middle - 7, "yes", "small soft", "middle")
    yield text(MARGIN + 52, below + 17, "no", "small soft")
    if choice is CHOICES[-1]:
        last = below + GAP + HIGH / 2
        yield f'<path class="arrow" d="M{MARGIN + 40:g},{below:g} V{last:g} H{RIGHT - 10:g}"/>'
        yield f'<path class="tip" d="M{RIGHT - 2:g},{last:g} l-9,-5 v10 z"/>'
    else:
        yield f'<path class="arrow" d="M{MARGIN + 40:g},{below:g} V{below + GAP - 10:g}"/>'
        yield f'<path class="tip" d="M{MARGIN + 40:g},{below + GAP - 2:g} l-5,-9 h10 z"/>'
    yield from drawn_answer(choice, y)


def picture() -> str:
    lines = [line for i, choice in enumerate(CHOICES) for line in drawn_choice(choice, MARGIN + i * (HIGH + GAP))]
    end = MARGIN + len(CHOICES) * (HIGH + GAP)
    lines += drawn_answer(LAST, end)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {end + HIGH + MARGIN:g}" role="img">'
    title = "<title>Which kind of handler serves which purpose</title>"
    return "\n".join([head, title, f"<style>\n{style()}\n</style>", *lines, "</svg>"]) + "\n"


def quoted(words: str) -> str:
    """The words, with calls and public names as code."""
    return re.sub(r"@?[\w.]+(\([^)]*\))+|hx\.\w+", r"`\g<0>`", words)


def listing() -> str:
    """The questions and answers as a numbered list."""
    found = lambda choice: f"[{quoted(choice.answer)}]({choice.page}): {quoted(choice.does)}."
    rows = [f"{i}. {' '.join(choice.question)} {found(choice)}" for i, choice in enumerate(CHOICES, 1)]
    return "\n".join([*rows, f"{len(CHOICES) + 1}. Otherwise {found(LAST)}"]) + "\n"


def main(words: Sequence[str]) -> int:
    made = {PICTURE: picture(), PAGE: LIST.sub(lambda _: listing(), PAGE.read_text())}
    return write_or_check(made, "handler_choice.py", "handlers", "table", words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
