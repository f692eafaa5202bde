"""The stepper's terminal interface: its display, and its commands."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ...effects.base.errors import BadArgument, HandlaxError
from ...effects.programs.program import Program, derived_once
from .outline import OutlineLine, escape, outlines, source_line

LONGEST = 64  # characters of a value in a line
AROUND = 3  # equations shown before and after the one that comes next


@derived_once
def outline_of(program: Program) -> tuple[OutlineLine, ...]:
    """The outline of a program's equations."""
    return outlines(program)[0].lines


def path_of(s: Any) -> str:
    """The programs around a stepper, outermost first: ``f > scan, iteration 2 of 10 > body``."""
    if s.outer is None:
        return str(s.program.name)
    op, r = s.outer.program.ops[s.outer.at], s.iteration
    number = f", {'test of ' if r.testing else ''}iteration {r.at}{f' of {op.length}' if op.stacks else ''}"
    return f"{path_of(s.outer)} > {op.name}{number if op.loops or op.stacks else ''} > {s.program.name}"


def text_of(value: Any) -> str:
    """A value in one line, shortened."""
    with np.printoptions(threshold=8, edgeitems=2, precision=6):
        text = " ".join(str(value).split())
    return text if len(text) <= LONGEST else text[: LONGEST - 4] + " ..."


def shown(s: Any, every: bool = False, html: bool = False) -> str:
    """The display of a stepper: the next equation with its line, those around it (or ``every`` one), values."""
    lines = outline_of(s.program)
    count = len(lines)
    first, last = (0, count) if every else (max(0, s.at - AROUND), min(count, s.at + AROUND + 1))
    position = "at the end" if s.done else f"before equation {s.at} of {count}"
    rows = [f"{path_of(s)}: {position}"]
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
    return f"<pre>{chr(10).join(texts)}</pre>"


class _PromptSession:
    """The state of a prompt: the current stepper, and steppers saved by name."""

    def __init__(self, stepper: Any, write: Callable[[str], Any]):
        self.s = stepper
        self.marks: dict[str, Any] = {}
        self.write = write

    def reply(self, text: str) -> None:
        self.write(text + "\n")

    def do(self, line: str) -> bool:
        """Execute one command line; False for ``quit``. A command that raises leaves the session where it was."""
        command, _, rest = line.strip().partition(" ")
        actions = {usage.partition(" ")[0]: action for usage, (_, action) in COMMANDS.items()}
        names = [name for name in actions if name.startswith(command or "next")]
        if not names:
            self.reply(f"there is no command {command!r}; help lists them.")
            return True
        name = command if command in names else names[0]
        if name == "quit":
            return False
        try:
            stepper = actions[name](self, rest.strip())
        except HandlaxError as error:
            self.reply(error.what + (f" ({error.hint})" if error.hint else ""))
            return True
        except Exception as error:  # from the rule of an operation
            self.reply(f"{type(error).__name__}: {error}")
            return True
        if stepper is not None:
            self.s = stepper
            self.reply(shown(self.s))
        return True

    def change(self, rest: str) -> Any:
        name, _, text = rest.partition("=")
        try:
            value = ast.literal_eval(text.strip())
            if isinstance(value, (list, tuple)):
                value = np.asarray(value, self.s[name.strip()].dtype)
        except (ValueError, SyntaxError, TypeError):
            raise BadArgument(f"set: {text.strip()!r} is no number or list.", hint="set c = [1.0, 2.0].") from None
        return self.s.set(name.strip(), value)

    def mark(self, rest: str) -> None:
        if not rest:
            raise BadArgument("mark: a name is needed.", hint="mark before.")
        self.marks[rest] = self.s
        self.reply(f"{rest} is here.")

    def marked(self, rest: str) -> Any:
        if rest not in self.marks:
            raise BadArgument(f"there is no mark {rest!r}; there are: {', '.join(self.marks) or 'none'}.")
        return self.marks[rest]

    def show(self, rest: str) -> None:
        if rest:
            self.reply(f"{rest}: {self.s[rest].type} = {self.s[rest]}")
        else:
            for name, value in self.s:
                self.reply(f"{name}: {value.type} = {text_of(value)}")


def _to(s: Any, place: str) -> Any:
    return s.to_nan() if place == "nan" else s.to(int(place) if place.isdigit() else place)


def _count(text: str, default: int) -> int:
    if text and not text.isdigit():
        raise BadArgument(f"a count is needed, got {text!r}.")
    return int(text) if text else default


# usage -> what it does, and the function of the session and the rest of the line: it returns the next stepper, or None;
# an abbreviation means the first command that it is a prefix of
COMMANDS: dict[str, tuple[str, Callable[[_PromptSession, str], Any]]] = {
    "next [n]": ("perform n equations, or one", lambda at, n: at.s.forward(_count(n, 1))),
    "back [n]": ("take n moves back, or one", lambda at, n: at.s.back(_count(n, 1))),
    "to PLACE": (
        "to an equation (12), a line (model.py:17), an operation (log), or the first nan", lambda at, x: _to(at.s, x)
    ),
    "into [k]": ("into iteration k of the sub-program of the next equation", lambda at, k: at.s.into(_count(k, 0))),
    "test [k]": ("into the test before iteration k", lambda at, k: at.s.into(_count(k, 0), test=True)),
    "iteration": ("to the next iteration of this sub-program", lambda at, _: at.s.next_iteration()),
    "out": ("to after this sub-program", lambda at, _: at.s.out()),
    "end": ("to the end", lambda at, _: at.s.end()),
    "set NAME = X": ("continue with another value", _PromptSession.change),
    "start": ("to the start of this sub-program", lambda at, _: at.s.start()),
    "print [NAME]": ("a value, or all of them", _PromptSession.show),
    "list": ("all equations", lambda at, _: at.reply(shown(at.s, every=True))),
    "mark NAME": ("mark this position", _PromptSession.mark),
    "go NAME": ("back to a marked position", _PromptSession.marked),
    "compare NAME": (
        "the values that differ from those at a marked position",
        lambda at, name: at.reply(str(at.marked(name).compare(at.s))),
    ),
    "help": ("this", lambda at, _: at.reply(HELP)),
    "quit": ("leave", lambda at, _: None),
}
HELP: str = "\n".join([f"{usage:14} {meaning}" for usage, (meaning, _) in COMMANDS.items()])
HELP += "\nAn empty line performs the next equation; a command may be abbreviated."


def prompt(stepper: Any) -> Any:
    """Execute commands from standard input until it ends or ``quit``; returns the stepper at the last position."""
    write = sys.stdout.write
    session = _PromptSession(stepper, write)
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
