"""Draw: a program as a picture and as a page."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..effects.errors import BadArgument, Immutable, need_function
from ..effects.programs import Program
from ..effects.wrapping import wraps
from .outline import Outline, bytes_text, outlines
from .pages import document, fragment
from .staging import make_program
from .svg import svg_text

SHOWN = 1000  # equations that a notebook is given to show


class Drawing:
    """A program as a picture. A value: equal to the drawing of an equal program.

    ``svg`` and ``html`` are the texts of files; ``save`` writes one of them; a notebook shows it as it is.
    """

    __slots__ = ("program", "_outlines")
    program: Program
    _outlines: tuple[Outline, ...]

    def __init__(self, program: Program):
        object.__setattr__(self, "program", program)
        object.__setattr__(self, "_outlines", outlines(program))

    def __setattr__(self, name: str, value: object) -> None:
        raise Immutable.of("drawings", name, "set", "draw(f)(*args) makes another one.")

    def __delattr__(self, name: str) -> None:
        raise Immutable.of("drawings", name, "deleted", "draw(f)(*args) makes another one.")

    @property
    def svg(self) -> str:
        """One row an equation, the lifetime of every value beside it, sub-programs in frames, memory as bars."""
        return svg_text(self._outlines)

    @property
    def html(self) -> str:
        """A document that stands alone: sub-programs fold, operands lead to where they are made."""
        return document(self._outlines)

    def _repr_html_(self) -> str:
        return fragment(self._outlines, SHOWN)

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write ``svg`` or ``html``, as the name of the file ends. Gives the path.

        Raises: BadArgument: the name ends otherwise.
        """
        file = Path(path)
        kinds = {".svg": lambda: self.svg, ".html": lambda: self.html, ".htm": lambda: self.html}
        if file.suffix.lower() not in kinds:
            raise BadArgument(f"save: the file must be .svg or .html, got {file.name!r}.", hint="save('program.html').")
        file.write_text(kinds[file.suffix.lower()](), encoding="utf-8")
        return file

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Drawing) and self.program == other.program

    def __hash__(self) -> int:
        return hash(("drawing", self.program))

    def __repr__(self) -> str:
        outline = self._outlines[0]
        return f"Drawing({outline.signature}: {outline.length}, {bytes_text(outline.memory.peak)} at most)"


def draw(fun: Program | Callable[..., Any]) -> Any:
    """The picture of a program; of a function, ``draw(f)(*args)`` is that of the program it performs on such arguments.

        draw(f)(*args) == draw(make_program(f)(*args))

    It shows shapes, effects, the user's line of each equation with the handlers that it came through, sub-programs, and
    how much memory is held while each equation runs.

    Raises: NotAFunction: neither a program nor a function.

    >>> draw(lambda x: x * 2.0 + 1.0)(3.0)
    Drawing(<lambda>(a: f32[]~) -> (f32[]~): 2 equations, 8 B at most)
    """
    if isinstance(fun, Program):
        return Drawing(fun)
    need_function("draw", fun)

    @wraps(fun)
    def drawn(*args: Any, **kwargs: Any) -> Drawing:
        return Drawing(make_program(fun)(*args, **kwargs))

    return drawn


def page_of(program: Program) -> str:
    """What a notebook shows of a program."""
    return fragment(outlines(program), SHOWN)
