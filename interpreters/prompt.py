"""The stepper at a terminal: what it shows, and the commands that it takes."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ..effects.errors import BadArgument, HandlaxError
from ..effects.programs import Program
from .outline import Line, escape, outlines, source_line

LONGEST = 64  # letters of a value in a line
AROUND = 3  # equations shown before and behind the one that comes next

# in the order in which a shortened word is taken for one of them
COMMANDS = {
    "next [n]": "perform n equations, or one",
    "back [n]": "take n moves back, or one",
    "to PLACE": "to an equation (12), a line (model.py:17), an operation (log), or the first nan",
    "into [k]": "into run k of the sub-program of the next equation",
    "test [k]": "into the test before run k",
    "run": "to the next run of this sub-program",
    "out": "behind this sub-program",
    "end": "to the end",
    "set NAME = X": "go on with another value",
    "start": "to the start of this sub-program",
    "print [NAME]": "a value, or all of them",
    "list": "the whole program",
    "mark NAME": "remember this moment",
    "go NAME": "back to a moment that was marked",
    "compare NAME": "what differs from a moment that was marked",
    "help": "this",
    "quit": "leave",
}
HELP = "\n".join([f"{usage:14} {meaning}" for usage, meaning in COMMANDS.items()])
HELP += "\nAn empty line performs the next equation; a word may be shortened."


def outline_of(program: Program) -> tuple[Line, ...]:
    """The lines of a program, remembered by it."""
    found = program._cache.get("lines")
    if found is None:
        found = program._cache["lines"] = outlines(program)[0].lines
    return found


def path_of(s: Any) -> str:
    """Which program this is, from the outermost inwards: ``f > scan, run 2 of 10 > body``."""
    if s.outer is None:
        return str(s.program.name)
    op, r = s.outer.program.ops[s.outer.at], s.round
    runs = f", {'test of ' if r.testing else ''}run {r.at}{f' of {op.length}' if op.stacks else ''}"
    return f"{path_of(s.outer)} > {op.name}{runs if op.loops or op.stacks else ''} > {s.program.name}"


def text_of(value: Any) -> str:
    """A value in one line, shortened."""
    with np.printoptions(threshold=8, edgeitems=2, precision=6):
        text = " ".join(str(value).split())
    return text if len(text) <= LONGEST else text[: LONGEST - 4] + " ..."


def shown(s: Any, whole: bool = False, html: bool = False) -> str:
    """Where a stepper stands: the equations around, those performed with their values, the user's line."""
    lines = outline_of(s.program)
    count = len(lines)
    first, last = (0, count) if whole else (max(0, s.at - AROUND), min(count, s.at + AROUND + 1))
    place = "at the end" if s.done else f"before equation {s.at} of {count}"
    rows = [f"{path_of(s)}: {place}"]
    rows.extend([f"     ... {first} above"] if first else [])
    number = s.program.count - sum([len(line.results) for line in lines[first:]])
    for i, line in enumerate(lines[first:last], first):
        mark = "->" if i == s.at else "  "
        values = [text_of(s.values[number + k]) for k in range(len(line.results))] if i < s.at else []
        rows.append(f" {mark} {i:3} {line.text}" + (f"   = {'; '.join(values)}" if values else ""))
        if i == s.at and line.site.code is not None:
            rows.append(f"        # {line.site.full}: {source_line(line.site)}")
        number += len(line.results)
    rows.extend([f"     ... {count - last} below"] if last < count else [])
    if s.done:
        rows.append(f" -> return ({', '.join([text_of(y) for y in s.results])})")
    if not html:
        return "\n".join(rows)
    texts = [f"<mark>{escape(row)}</mark>" if row.startswith(" ->") else escape(row) for row in rows]
    return f'<pre class="hx-step">{chr(10).join(texts)}</pre>'


class _Session:
    """The stepper that a prompt is at, and the moments that it was told to remember."""

    def __init__(self, stepper: Any, write: Callable[[str], Any]):
        self.s = stepper
        self.marks: dict[str, Any] = {}
        self.write = write

    def say(self, text: str) -> None:
        self.write(text + "\n")

    def do(self, line: str) -> bool:
        """Do what a line says; false where it says to leave."""
        word, _, rest = line.strip().partition(" ")
        known = [usage.partition(" ")[0] for usage in COMMANDS]
        names = [name for name in known if name.startswith(word or "next")]
        if not names:
            self.say(f"there is no command {word!r}; help lists them.")
            return True
        name = word if word in names else names[0]
        if name == "quit":
            return False
        try:
            there = getattr(self, f"do_{name}")(rest.strip())
        except HandlaxError as error:
            self.say(error.what + (f" ({error.hint})" if error.hint else ""))
            return True
        except Exception as error:  # whatever a rule raises, the session goes on from where it was
            self.say(f"{type(error).__name__}: {error}")
            return True
        if there is not None:
            self.s = there
            self.say(shown(self.s))
        return True

    def do_next(self, rest: str) -> Any:
        return self.s.forward(_count(rest, 1))

    def do_back(self, rest: str) -> Any:
        return self.s.back(_count(rest, 1))

    def do_to(self, rest: str) -> Any:
        if rest == "nan":
            return self.s.to_nan()
        return self.s.to(int(rest) if rest.isdigit() else rest)

    def do_into(self, rest: str) -> Any:
        return self.s.into(_count(rest, 0))

    def do_test(self, rest: str) -> Any:
        return self.s.into(_count(rest, 0), test=True)

    def do_run(self, rest: str) -> Any:
        return self.s.next_run()

    def do_out(self, rest: str) -> Any:
        return self.s.out()

    def do_end(self, rest: str) -> Any:
        return self.s.end()

    def do_start(self, rest: str) -> Any:
        return self.s.start()

    def do_set(self, rest: str) -> Any:
        name, _, written = rest.partition("=")
        try:
            value = ast.literal_eval(written.strip())
            if isinstance(value, (list, tuple)):
                value = np.asarray(value, self.s[name.strip()].dtype)
        except (ValueError, SyntaxError, TypeError):
            raise BadArgument(f"set: {written.strip()!r} is no number or list.", hint="set c = [1.0, 2.0].") from None
        return self.s.set(name.strip(), value)

    def do_mark(self, rest: str) -> None:
        if not rest:
            raise BadArgument("mark: a name is needed.", hint="mark before.")
        self.marks[rest] = self.s
        self.say(f"{rest} is here.")

    def marked(self, rest: str) -> Any:
        if rest not in self.marks:
            raise BadArgument(f"there is no mark {rest!r}; there are: {', '.join(self.marks) or 'none'}.")
        return self.marks[rest]

    def do_go(self, rest: str) -> Any:
        return self.marked(rest)

    def do_compare(self, rest: str) -> None:
        self.say(str(self.marked(rest).compare(self.s)))

    def do_list(self, rest: str) -> None:
        self.say(shown(self.s, whole=True))

    def do_help(self, rest: str) -> None:
        self.say(HELP)

    def do_print(self, rest: str) -> None:
        if rest:
            self.say(f"{rest}: {self.s[rest].type} = {self.s[rest]}")
        else:
            for name, value in self.s:
                self.say(f"{name}: {value.type} = {text_of(value)}")


def _count(text: str, default: int) -> int:
    if text and not text.isdigit():
        raise BadArgument(f"a count is needed, got {text!r}.")
    return int(text) if text else default


def prompt(stepper: Any) -> Any:
    """Take commands from standard input until it ends or one says to leave; gives the stepper that it was at."""
    write = sys.stdout.write
    session = _Session(stepper, write)
    write(shown(stepper) + "\nhelp lists the commands.\n")
    while True:
        try:
            if not session.do(input("step> ")):
                return session.s
        except EOFError:
            write("\n")
            return session.s
        except KeyboardInterrupt:
            write("\n")
