"""Programs as SVG pictures: one row per equation, one line per value from its definition to its last use.

    lifetimes | the equation as text | the user's line and the handlers that rewrote it | live bytes as a bar

A sub-program is drawn in a frame below the equation that executes it.
"""

from __future__ import annotations

from collections.abc import Sequence

from .outline import Outline, OutlineLine, bytes_text, escape, handler_lines

ROW, LANE, GAP, LETTER = 20, 9, 12, 7.3  # pixels: of a row, a column of lifetimes, between parts, and of a letter
BAR = 120  # the longest memory bar
LONGEST = 120  # characters of a text; the HTML page and the printed program do not shorten it
HUES = 8

STYLE = """
.hx { --ink: #1c2733; --soft: #5d6b7a; --line: #d5dce3; --paper: #ffffff; --bar: #9dbce0; --peak: #d1495b;
  --effect: #8a5a00; font: 12px ui-monospace, Menlo, Consolas, monospace; }
@media (prefers-color-scheme: dark) { .hx { --ink: #e3e9ef; --soft: #98a6b5; --line: #3a4550; --paper: #161b21;
  --bar: #3f6796; --peak: #ff7b8a; --effect: #f0b429; } }
.hx text { fill: var(--ink); white-space: pre; }
.hx .soft { fill: var(--soft); }
.hx .effect { fill: var(--effect); font-weight: bold; }
.hx .frame { fill: none; stroke: var(--line); }
.hx .paper { fill: var(--paper); }
.hx .bar { fill: var(--bar); }
.hx .peak { fill: var(--peak); }
.hx .life { fill: none; stroke-width: 1.6; }
.hx .wire { stroke: var(--line); }
"""
_COLOURS = "".join(
    f".hx .h{k} {{ stroke: hsl({k * 360 // HUES + 15}, 55%, 52%); fill: hsl({k * 360 // HUES + 15}, 55%, 52%); }}\n"
    for k in range(HUES)
)


class _Canvas:
    """The SVG elements drawn so far; those at the right edge are drawn last, when the width of the text is known."""

    def __init__(self, outlines: Sequence[Outline]):
        self.outlines = outlines
        self.parts: list[str] = []
        self.wires: list[str] = []
        self.frames: list[tuple[float, float, float]] = []  # left, top, height: they reach to the right edge
        self.bars: list[tuple[float, int, bool]] = []
        self.notes: list[tuple[float, OutlineLine]] = []
        self.right = 0.0
        self.most = max([outline.memory.peak for outline in outlines], default=0)

    def text(self, x: float, y: float, text: str, style: str = "") -> float:
        """Write text at a position; the x coordinate of its end."""
        shown = text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
        kind = f' class="{style}"' if style else ""
        self.parts.append(f'<text x="{x:g}" y="{y + 4:g}"{kind}>{escape(shown)}</text>')
        end = x + len(shown) * LETTER
        self.right = max(self.right, end)
        return end

    def handlers(self, x: float, y: float) -> float:
        """Write the handlers that equations passed through, each further in than that above; the y coordinate below."""
        lines = handler_lines(self.outlines)
        for i, line in enumerate(lines):
            self.text(x + GAP * i, y + ROW * (i + 0.5), line, "soft")
        return y + ROW * len(lines)

    def program(self, index: int, x: float, y: float) -> float:
        """Draw a program with its upper left corner at a position; the y coordinate of its lower edge."""
        outline = self.outlines[index]
        columns = outline.columns()
        start = x + GAP + (max(columns, default=-1) + 1) * LANE
        rows = [y + ROW / 2]
        self.text(start, rows[0], outline.signature)
        y += ROW
        peak = outline.memory.at
        runs = outline.runs
        for i, line in enumerate(outline.lines):
            if i in runs:
                self.text(start, y + ROW / 2, runs[i], "soft")
                y += ROW
            rows.append(y + ROW / 2)
            end = self.text(start, rows[-1], line.text)
            if line.effects:
                self.text(end + GAP, rows[-1], line.effects, "effect")
            self.notes.append((rows[-1], line))
            self.bars.append((rows[-1], outline.memory.during[i], i == peak))
            y += ROW
            for inner in line.inner:
                y = self.inner(inner.role, inner.number, inner.first, start + GAP, y)
        rows.append(y + ROW / 2)
        self.text(start, rows[-1], f"return ({', '.join([x.text for x in outline.outs])})", "soft")
        self.lives(outline, columns, x + LANE / 2, rows, start - 4)
        return y + ROW

    def inner(self, role: str, index: int, first: bool, x: float, y: float) -> float:
        """Draw a sub-program in its frame, or its name if it was drawn before; the y coordinate of its lower edge."""
        if not first:
            self.text(x, y + ROW / 2, f"{role}: {self.outlines[index].program.name}, as above", "soft")
            return y + ROW
        self.text(x, y + ROW / 2, role, "soft")
        top = y + ROW
        below = self.program(index, x + GAP / 2, top)
        self.frames.append((x, top, below - top))
        return below + ROW / 4

    def lives(self, outline: Outline, columns: list[int], x: float, rows: list[float], edge: float) -> None:
        """Draw the lifetime lines, dots at definitions and uses, and a wire from the dots to the text of the row."""
        at = [x + LANE * column for column in columns]
        defined = [0] * len(outline.inputs)
        for i, line in enumerate(outline.lines):
            defined.extend([i + 1] * len(line.results))
            used = [at[each.number] for each in (*line.operands, *line.results) if each.number >= 0]
            self.wire(min(used, default=edge), edge, rows[i + 1])
        self.wire(min([at[each.number] for each in outline.outs if each.number >= 0], default=edge), edge, rows[-1])
        for n, (row, last) in enumerate(zip(defined, outline.memory.last)):
            hue = f"h{columns[n] % HUES}"
            end = rows[max(last + 1, row)]
            self.parts.append(f'<path class="life {hue}" d="M{at[n]:g} {rows[row]:g}V{end:g}"/>')
            self.parts.append(f'<circle class="{hue}" cx="{at[n]:g}" cy="{rows[row]:g}" r="3"/>')
        for i, line in enumerate(outline.lines):
            self.dots(line.operands, at, columns, rows[i + 1])
        self.dots(outline.outs, at, columns, rows[-1])

    def dots(self, operands: Sequence[tuple[str, int]], at: list[float], columns: list[int], y: float) -> None:
        for n in {number for _, number in operands if number >= 0}:
            self.parts.append(f'<circle class="h{columns[n] % HUES}" cx="{at[n]:g}" cy="{y:g}" r="1.8"/>')

    def wire(self, left: float, right: float, y: float) -> None:
        if left < right:
            self.wires.append(f'<path class="wire" d="M{left:g} {y:g}H{right:g}"/>')

    def margin(self) -> float:
        """Draw source lines and memory bars, right of all text; the width of the picture."""
        right = self.right + GAP
        for y, line in self.notes:
            if line.site.code is not None:
                self.text(right, y, line.site.full, "soft")
        start = self.right + GAP
        for y, size, peak in self.bars:
            width = max(BAR * size / self.most, 1.0) if size else 0.0
            title = f"{bytes_text(size)} while it runs{', the most' if peak else ''}"
            self.parts.append(
                f'<rect class="{"peak" if peak else "bar"}" x="{start:g}" y="{y - 6:g}" width="{width:g}" height="12">'
                f"<title>{title}</title></rect>"
            )
            if peak:
                self.text(start + width + 4, y, bytes_text(size), "soft")
        return max(self.right, start + BAR) + GAP


def svg_text(outlines: Sequence[Outline]) -> str:
    """The text of an SVG file that shows the program of the first outline, its sub-programs in the others."""
    canvas = _Canvas(outlines)
    top = canvas.handlers(GAP / 2, GAP / 2)
    height = canvas.program(0, GAP / 2, top) + GAP / 2
    right = canvas.right + GAP / 2
    frames = [
        f'<rect class="frame" x="{x:g}" y="{y:g}" width="{right - x:g}" height="{h:g}"/>' for x, y, h in canvas.frames
    ]
    width = canvas.margin()
    parts = "\n".join([*frames, *canvas.wires, *canvas.parts])
    title = escape(f"{outlines[0].program.name}: {outlines[0].length}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="hx" role="img" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}">\n<title>{title}</title>\n<style>{STYLE}{_COLOURS}</style>\n'
        f'<rect class="paper" width="{width:g}" height="{height:g}"/>\n{parts}\n</svg>\n'
    )
