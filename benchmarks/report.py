"""Results as lines, as a table and as a chart."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import matplotlib

import handlax

matplotlib.use("Agg")
from matplotlib import pyplot as plt

from .timing import Pair, Row

HERE = Path(__file__).parent
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"
SMALLEST = 1e-3          # the least ratio that the chart shows
COLOURS = {"met": "#1b7837", "MISSED": "#c51b2b", "": "#7f7f7f"}


@dataclass(frozen=True)
class Result:
    """A row with its measurement, or the error that prevented it."""

    row: Row
    pair: Pair | None
    error: str | None

    @property
    def verdict(self) -> str:
        if self.pair is None:
            return "FAILED"
        if self.row.bar is None:
            return ""
        return "met" if self.row.met(self.pair) else "MISSED"

    @property
    def theirs(self) -> str:
        assert self.pair is not None
        return figure(self.pair.theirs) if self.row.beside else "-"


def figure(x: float) -> str:
    return f"{x:,.0f}" if abs(x) >= 100 else f"{x:.3g}"


def line(result: Result) -> str:
    row, pair = result.row, result.pair
    if pair is None:
        return f"{row.name:60} FAILED: {result.error}"
    bar = "" if row.bar is None else f"{row.bar:.2f}"
    figures = f"{figure(pair.ours):>10} {result.theirs:>10} {row.unit:10} {pair.ratio:7.3f} {bar:>5}"
    return "\n".join([f"{row.name:60} {figures} {result.verdict}", *[f"    {note}" for note in pair.notes]])


def summary(results: Sequence[Result], seconds: float) -> str:
    barred = [r for r in results if r.row.bar is not None]
    met = sum(r.verdict == "met" for r in barred)
    failed = sum(r.error is not None for r in results)
    return f"{met} of {len(barred)} bars met, {failed} rows failed, {seconds:.0f} s"


def machine() -> str:
    """The processor and how many cores this process may use."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [x.split(":", 1)[1].strip() for x in info.read_text().splitlines() if x.startswith("model name")]
        name = models[0] if models else name
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{platform.system()} {platform.machine()}, {name}, {cores} cores, load average {os.getloadavg()[0]:.1f}"


def write(results: Sequence[Result], seconds: float) -> None:
    (HERE / "RESULTS.md").write_text(table(results, seconds))
    chart(results, HERE / "results.png")


def write_devices(results: Sequence[Result], seconds: float) -> None:
    """Put the figures of a GPU between the marks of docs/devices.md."""
    page = HERE.parent / "docs" / "devices.md"
    head, _, rest = page.read_text().partition(BEGIN)
    page.write_text(head + BEGIN + "\n" + figures(results, seconds) + END + rest.partition(END)[2])


def figures(results: Sequence[Result], seconds: float) -> str:
    """The rows of a GPU as one table, under the devices and versions with which they were measured."""
    (device,) = handlax.devices()[:1]
    versions = ", ".join(f"{name} {version(name)}" for name in ("jax", "jaxlib", "numpy"))
    lines = [
        f"{device.device_kind}, {device.client.platform_version.split()[-1]}, {versions}, Python "
        f"{platform.python_version()}, {machine()}; {summary(results, seconds)}.", "",
        "| row | handlax | JAX | unit | ratio |", "| --- | ---: | ---: | --- | ---: |",
    ]
    for r in results:
        measured = "" if r.pair is None else f"{figure(r.pair.ours)} | {r.theirs} | {r.row.unit} | {r.pair.ratio:.3f}"
        lines.append(f"| {r.row.name} | {measured or f'**FAILED**: {r.error} | | |'} |")
    return "\n".join(lines) + "\n"


def table(results: Sequence[Result], seconds: float) -> str:
    """The page of results as markdown."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("handlax", "jax", "jaxlib", "numpy"))
    lines = [
        "# handlax beside JAX", "",
        f"{summary(results, seconds)}. Written by `python -m benchmarks --write` on {datetime.date.today()}: "
        f"Python {platform.python_version()}, {versions}; {machine()}.", "",
        "Same program, same process, alternating, medians of at least 9 rounds; only ratios are comparable.",
        "Trace, transform and cold rows time functions with new code; the timer includes a visit of every equation.",
        "Every row asserts that both sides' results agree.",
        "A ratio is handlax's figure divided by JAX's: smaller is better.",
        "A dash: only handlax has a figure; the row or its note defines the ratio.", "",
        "![ratios against their bars](results.png)", "",
    ]
    for theme in dict.fromkeys(r.row.theme for r in results):
        lines += [f"## {theme.capitalize()}", "", "| row | handlax | JAX | unit | ratio | bar | aim | |"]
        lines += ["| --- | ---: | ---: | --- | ---: | ---: | ---: | --- |"]
        lines += [_cells(r) for r in results if r.row.theme == theme]
        lines.append("")
        for r in results:
            if r.row.theme == theme and r.pair is not None and r.pair.notes:
                lines += [f"- {r.row.name}:", *[f"    - {note}" for note in r.pair.notes]]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _cells(result: Result) -> str:
    row, pair = result.row, result.pair
    if pair is None:
        return f"| {row.name} | | | {row.unit} | | {row.bar} | | **FAILED**: {result.error} |"
    bar, aim = ("" if x is None else f"{x:.3g}" for x in (row.bar, row.aim))
    verdict = f"**{result.verdict}**" if result.verdict == "MISSED" else result.verdict
    cells = (row.name, figure(pair.ours), result.theirs, row.unit, f"{pair.ratio:.3f}", bar, aim, verdict)
    return f"| {' | '.join(cells)} |"


def chart(results: Sequence[Result], path: Path) -> None:
    """One line per row: the ratio as a dot on a logarithmic axis, its bar as a tick."""
    shown = [r for r in results if r.row.bar is not None]
    drawing, axes = plt.subplots(figsize=(10, 0.235 * len(shown) + 1.2))
    for height, result in enumerate(reversed(shown)):
        bar = result.row.bar
        axes.plot(bar, height, marker="|", markersize=11, markeredgewidth=2, color="#333333", zorder=2)
        if result.pair is None:
            axes.annotate("failed", (bar, height), xytext=(8, -3), textcoords="offset points", color=COLOURS["MISSED"])
            continue
        ratio = max(result.pair.ratio, SMALLEST)
        axes.plot([ratio, bar], [height, height], color="#cccccc", linewidth=1, zorder=1)
        axes.plot(ratio, height, marker="o", markersize=6, color=COLOURS[result.verdict], zorder=3)
    axes.set_xscale("log")
    axes.axvline(1.0, color="#999999", linewidth=0.8, linestyle=":")
    axes.set_yticks(range(len(shown)), [r.row.name for r in reversed(shown)], fontsize=8)
    axes.set_ylim(-0.8, len(shown) - 0.2)
    axes.grid(axis="x", which="major", color="#eeeeee")
    axes.set_axisbelow(True)
    axes.set_xlabel("handlax divided by JAX, smaller is better")
    axes.set_title("ratio (dot: green where the bar is met, red where it is missed) and bar (tick)", fontsize=10)
    for edge in ("top", "right", "left"):
        axes.spines[edge].set_visible(False)
    drawing.tight_layout()
    drawing.savefig(path, dpi=110)
    plt.close(drawing)


WRITERS = {"cpu": write, "gpu": write_devices}
