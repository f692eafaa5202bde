"""Programs as HTML pages, self-contained: without scripts and external resources.

Every operand links to the equation that computes it, sub-programs fold; light and dark mode and keyboard navigation
work.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence

from .outline import Outline, OutlineLine, OutlineOperand, bytes_text, escape, handler_lines, source_line

POINTS = 400  # bars of a memory figure; of a longer program each bar is the maximum over a group of equations

# Mixed with the colour of the surrounding text, so that a page is readable in the theme of any notebook or site
STYLE = r"""
.hx-page { --soft: color-mix(in srgb, currentColor 65%, transparent);
  --line: color-mix(in srgb, currentColor 22%, transparent); --mark: color-mix(in srgb, #f0b429 35%, transparent);
  --link: color-mix(in srgb, #2f7de0 70%, currentColor); --bar: color-mix(in srgb, #4a86c8 60%, transparent);
  --peak: #d1495b; --effect: color-mix(in srgb, #c98a00 65%, currentColor);
  font: 13px/1.55 ui-monospace, Menlo, Consolas, monospace; padding: 6px 0; text-align: left; overflow-x: auto; }
.hx-page h2 { font: inherit; font-size: 15px; font-weight: bold; margin: 0 0 4px; padding: 0; border: 0;
  overflow-wrap: anywhere; }
.hx-page p { font: inherit; margin: 2px 0 8px; color: var(--soft); }
.hx-page ol { list-style: none; margin: 0; padding: 0; border-left: 2px solid var(--line); }
.hx-page li { margin: 0; padding: 0 0 0 18px; position: relative; }
.hx-page .row { display: flex; gap: 14px; align-items: baseline; }
.hx-page .eq { flex: 1 1 auto; min-width: 0; overflow-wrap: anywhere; }
.hx-page .soft { color: var(--soft); flex: 0 1 auto; }
.hx-page .memory { flex: 0 0 128px; height: 10px; align-self: center; }
.hx-page .memory i { display: block; height: 100%; background: var(--bar); }
.hx-page .memory.most i { background: var(--peak); }
.hx-page .op { font-weight: bold; }
.hx-page .effect { color: var(--effect); font-weight: bold; }
.hx-page a { color: var(--link); text-decoration: none; }
.hx-page a:hover, .hx-page a:focus { text-decoration: underline; }
.hx-page .def { font-weight: bold; scroll-margin: 40vh 0; }
.hx-page .def:target { background: var(--mark); outline: 2px solid var(--peak); }
.hx-page summary { cursor: pointer; list-style: none; }
.hx-page summary::-webkit-details-marker { display: none; }
.hx-page summary::before { content: "\25b8"; position: absolute; left: 5px; color: var(--soft); }
.hx-page details[open] > summary::before { content: "\25be"; }
.hx-page :focus-visible { outline: 2px solid var(--link); outline-offset: 1px; }
.hx-page .inner { margin: 4px 0 10px 12px; padding: 6px 0 6px 10px; border: 1px solid var(--line); border-right: 0; }
.hx-page figure { margin: 4px 0 10px; }
.hx-page .bars { display: block; width: 100%; height: 64px; background: transparent; }
.hx-page .bar { fill: var(--bar); }
.hx-page .peak { fill: var(--peak); }
.hx-page table { border-collapse: collapse; margin: 4px 0 10px; font: inherit; width: auto; }
.hx-page th, .hx-page td { padding: 1px 14px 1px 0; text-align: left; vertical-align: top; border: 0;
  background: none; color: inherit; }
.hx-page th { font-weight: bold; border-bottom: 1px solid var(--line); }
.hx-page .r { text-align: right; }
.hx-page .total td { border-top: 1px solid var(--line); }
.hx-page pre { font: inherit; margin: 4px 0; padding: 0; background: none; border: 0; color: inherit;
  overflow-x: auto; }
.hx-page mark { background: var(--mark); color: inherit; }
.hx-page .boxes td { border: 1px solid var(--line); padding: 4px 12px; text-align: center; }
.hx-page .values { display: block; max-width: 100%; image-rendering: pixelated; color: inherit; }
"""
_DOCUMENT_STYLE = """
:root { color-scheme: light dark; }
body { margin: 0; }
main > .hx-page { --ink: #1c2733; --soft: #5d6b7a; --line: #d5dce3; --paper: #ffffff; --mark: #fff3c4; --link: #0b5394;
  --bar: #9dbce0; --peak: #d1495b; --effect: #8a5a00;
  color: var(--ink); background: var(--paper); padding: 12px 16px; min-height: calc(100vh - 24px); }
@media (prefers-color-scheme: dark) { main > .hx-page { --ink: #e3e9ef; --soft: #98a6b5; --line: #3a4550;
  --paper: #161b21; --mark: #4a3f14; --link: #8ec3ff; --bar: #3f6796; --peak: #ff7b8a; --effect: #f0b429; } }
"""


def in_page(elements: str) -> str:
    """An element with the styles of pages, which can stand in any document."""
    return f'<div class="hx-page">\n<style>{STYLE}</style>\n{elements}</div>\n'


def program_elements(outlines: Sequence[Outline], limit: int | None = None) -> str:
    """The elements that show the program of these outlines; at most ``limit`` equations are shown."""
    page = _Page(outlines, limit)
    body = page.program(0)
    handlers = escape(" > ".join(handler_lines(outlines)))
    legend = f"<p>handlers, outermost first: {handlers}</p>\n" if handlers else ""
    more = ""
    if page.left_out:
        more = f'<p>{page.left_out} more equations; hx.draw(program).save("program.html") shows all.</p>\n'
    return f"{legend}{body}{more}"


def document(outlines: Sequence[Outline]) -> str:
    """The program of these outlines as an HTML document, which is well-formed XML too."""
    title = escape(outlines[0].program.name)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"/>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>'
        f"<title>{title}</title>\n<style>{_DOCUMENT_STYLE}</style></head>\n"
        f"<body><main>\n{in_page(program_elements(outlines))}</main></body>\n</html>\n"
    )


class _Page:
    """The HTML of the programs of one page; counts the equations shown and left out."""

    def __init__(self, outlines: Sequence[Outline], limit: int | None):
        self.outlines = outlines
        self.left = sum(len(outline.lines) for outline in outlines) if limit is None else limit
        self.left_out = 0
        # a notebook page may have several programs: the anchors of each have a prefix of their own
        text = "\n".join([line.text for outline in outlines for line in outline.lines[: self.left]])
        self.prefix = f"hx{zlib.crc32((outlines[0].signature + text).encode('utf-8', 'replace')):08x}"

    def anchor(self, index: int, number: int) -> str:
        return f"{self.prefix}-p{index}-v{number}"

    def program(self, index: int) -> str:
        """A section with the signature, the memory and the equations of one program."""
        outline = self.outlines[index]
        memory = outline.memory
        shown = outline.lines[: self.left]
        self.left -= len(shown)
        self.left_out += len(outline.lines) - len(shown)
        runs = outline.runs
        rows = "".join([run_text(runs, i) + self.row(index, i, line) for i, line in enumerate(shown)])
        inputs = ", ".join(
            [f"{self.definition(index, x)}: {escape(str(t))}" for x, t in zip(outline.inputs, outline.program.in_types)]
        )
        row = f' <span class="effect">! {escape(outline.effects)}</span>' if outline.effects else ""
        outs = escape(", ".join(map(str, outline.program.out_types)))
        results = ", ".join([self.operand(index, x) for x in outline.outs])
        at = f" (equation {memory.at})" if memory.at is not None else ""
        return (
            f'<section aria-label="program {escape(outline.program.name)}">\n'
            f"<h2>{escape(outline.program.name)}({inputs}) -&gt; ({outs}){row}</h2>\n"
            f"<p>{outline.length}; {bytes_text(memory.held)} of inputs and constants, "
            f"at most {bytes_text(memory.peak)} beside them{at}</p>\n{memory_figure(outline)}"
            f'<ol>\n{rows}<li><span class="soft">return</span> ({results})</li>\n</ol>\n</section>\n'
        )

    def row(self, index: int, i: int, line: OutlineLine) -> str:
        """One equation as a list item; its sub-programs fold."""
        outline = self.outlines[index]
        text = self.equation(index, i, line, outline)
        if not line.inner:
            return f"<li>{text}</li>\n"
        inner = "".join([self.inner(each.role, each.number, each.first) for each in line.inner])
        return f"<li><details><summary>{text}</summary>\n{inner}</details></li>\n"

    def inner(self, role: str, index: int, first: bool) -> str:
        name = f"{self.prefix}-p{index}"
        if not first:
            shown = escape(self.outlines[index].program.name)
            return f'<div class="inner"><span class="soft">{escape(role)}:</span> <a href="#{name}">{shown}</a></div>\n'
        return f'<div class="inner" id="{name}"><span class="soft">{escape(role)}</span>\n{self.program(index)}</div>\n'

    def equation(self, index: int, i: int, line: OutlineLine, outline: Outline) -> str:
        results = ", ".join([f"{self.definition(index, x)}: {escape(t)}" for x, t in zip(line.results, line.types)])
        operands = "".join([" " + self.operand(index, x) for x in line.operands])
        fields = f'<span class="soft">[{escape(line.fields)}]</span>' if line.fields else ""
        effect = f' <span class="effect">{escape(line.effects)}</span>' if line.effects else ""
        equals = " = " if results else ""
        return (
            f'<span class="row"><span class="eq">{results}{equals}<span class="op">{escape(line.name)}</span>{fields}'
            f"{operands}{effect}</span>{self.source(line)}{self.memory(outline, i)}</span>"
        )

    def source(self, line: OutlineLine) -> str:
        """The user's line, and the handlers that rewrote the equation."""
        site = line.site
        if site.code is None:
            return ""
        under = f" &#8592; {escape(' > '.join(site.under))}" if site.under else ""
        written = escape(f"{site.file}:{site.line}: {source_line(site)}")
        return f'<span class="soft" title="{written}">{escape(str(site))}{under}</span>'

    def memory(self, outline: Outline, i: int) -> str:
        """A bar of the bytes that are live while the equation is executed."""
        memory = outline.memory
        size, most = memory.during[i], max(memory.peak, 1)
        kind = "memory most" if i == memory.at and size else "memory"
        label = f"{bytes_text(size)} while it runs, {bytes_text(memory.after[i])} after it"
        width = f"{100 * size / most:.3g}"
        return (
            f'<span class="{kind}" role="img" aria-label="{label}" title="{label}">'
            f'<i style="width:{width}%"></i></span>'
        )

    def definition(self, index: int, value: OutlineOperand) -> str:
        return f'<span class="def" id="{self.anchor(index, value.number)}">{escape(value.text)}</span>'

    def operand(self, index: int, value: OutlineOperand) -> str:
        if value.number < 0:
            return f"<span>{escape(value.text)}</span>"
        return f'<a href="#{self.anchor(index, value.number)}">{escape(value.text)}</a>'


def run_text(runs: Mapping[int, str], i: int) -> str:
    """A list item above the first equation of a repeat's run; empty above others."""
    return f'<li><span class="soft">{runs[i]}</span></li>\n' if i in runs else ""


def memory_figure(outline: Outline) -> str:
    """A bar chart of the live bytes at each equation, the peak marked; empty for a program that needs no memory."""
    memory = outline.memory
    if not memory.peak or len(memory.during) < 2:
        return ""
    group = -(-len(memory.during) // POINTS)
    sizes = [max(memory.during[i : i + group]) for i in range(0, len(memory.during), group)]
    bars = []
    for i, size in enumerate(sizes):
        kind, height = "peak" if size == memory.peak else "bar", 100 * size / memory.peak
        box = f'x="{i}" y="{100 - height:.4g}" width="0.9" height="{height:.4g}"'
        bars.append(f'<rect class="{kind}" {box}><title>equation {i * group}: {bytes_text(size)}</title></rect>')
    label = f"memory by equation: at most {bytes_text(memory.peak)}, at equation {memory.at}"
    return (
        f'<figure style="max-width:{24 * len(sizes)}px">'
        f'<svg xmlns="http://www.w3.org/2000/svg" class="bars" role="img" aria-label="{label}" '
        f'viewBox="0 0 {len(sizes)} 100" preserveAspectRatio="none">\n<title>{label}</title>{"".join(bars)}\n'
        "</svg></figure>\n"
    )
