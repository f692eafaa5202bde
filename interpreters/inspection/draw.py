"""Drawings of programs: as an SVG picture and as an HTML page."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...effects.base.errors import BadArgument, need_function
from ...effects.base.immutables import ImmutableObject
from ...effects.base.later_layers import displayed
from ...effects.base.tracebacks import unnamed_boundary
from ...effects.base.wrapping import wraps
from ...effects.programs.program import Program
from ..transformations.make_program import trace
from .html import document
from .outline import Outline, bytes_text, outlines
from .svg import svg_text


@displayed
class Drawing(ImmutableObject):
    """A program as a picture. A value: equal to the drawing of an equal program.

    ``svg`` and ``html`` are the contents of files; ``save`` writes one of them; a notebook displays the drawing.
    """

    __slots__ = ("program", "_outlines")
    _guard = ("drawings", "draw(f)(*args) makes another one.")
    program: Program
    _outlines: tuple[Outline, ...]

    def __init__(self, program: Program):
        self._fill(program=program, _outlines=outlines(program))

    @property
    def svg(self) -> str:
        """The SVG text: one row per equation, the lifetimes of values, sub-programs in frames, memory as bars."""
        return svg_text(self._outlines)

    @property
    def html(self) -> str:
        """A self-contained HTML document: sub-programs fold, operands link to the equation that computes them."""
        return document(self._outlines)

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write ``svg`` or ``html``, by the suffix of the file name. Returns the path.

        Raises: BadArgument: the suffix is another.
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
    """The drawing of a program; of a function, ``draw(f)(*args)`` is the drawing of its program on such arguments.

        draw(f)(*args) == draw(make_program(f)(*args))

    It shows shapes, effects, the user's line of each equation with the handlers that rewrote it, sub-programs, and the
    memory that is live while each equation is executed.

    Raises: NotAFunction: neither a program nor a function.

    >>> draw(lambda x: x * 2.0 + 1.0)(3.0)
    Drawing(<lambda>(a: f32[]~) -> (f32[]~): 2 equations, 8 B at most)
    """
    if isinstance(fun, Program):
        return Drawing(fun)
    need_function("draw", fun)

    @wraps(fun)
    @unnamed_boundary
    def drawn(*args: Any, **kwargs: Any) -> Drawing:
        return Drawing(trace(fun, args, kwargs, label="draw").program)

    return drawn
